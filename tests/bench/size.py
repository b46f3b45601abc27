#!/usr/bin/env python3
"""Prints what a model's kernels add to a program, beside libraries that do the same, as a table.

    size.py PTXGEN MODEL.gguf [NAME=LIBRARY]...
    size.py --check README PTXGEN MODEL.gguf       exits with 1 if README's table is off by more than 10 %

Generates the model's header (the GGUF's data are not read) and builds the starter engine with it: -O2, stripped, without
debug information. Needs cc, and PCRE2 and utf8proc for the engine. Peers are named with their library's file.
"""
import os
import re
import subprocess
import sys
import tempfile
import time


def run(*command, folder=None):
    return subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True).stdout


def stripped(path):
    """Returns the size of a program or library without its symbols, in bytes."""
    copy = path + ".stripped"
    run("strip", "-o", copy, path)
    return os.path.getsize(copy)


def measure(ptxgen, model, folder):
    """Returns rows of the table: a name and bytes."""
    start = time.monotonic()
    run(ptxgen, "-q", "--init", "engine", "--out", folder, "--from-gguf", model)
    run(ptxgen, "-q", "--spec", "model.ini", "--out", ".", folder=folder)
    seconds = time.monotonic() - start
    kernels = [name for name in os.listdir(folder) if name.endswith(".ptx")]
    sources = sorted(name for name in os.listdir(folder) if name.endswith(".c"))
    flags = ["-ffunction-sections", "-fdata-sections", "-Wl,--gc-sections"]
    run("cc", "-O2", *flags, "-o", "engine", *sources, "-lpcre2-8", "-lutf8proc", "-ldl", folder=folder)
    libraries = [line.split()[0] for line in run("ldd", "engine", folder=folder).splitlines() if "=>" in line]
    print("%s: %d kernels, generated in %.1f s; the program needs %s and, on a GPU, libcuda.so.1\n" %
          (os.path.basename(model), len(kernels), seconds, ", ".join(sorted(libraries))))
    return [("generated header, all of its PTX as text", os.path.getsize(os.path.join(folder, "model_kernels.h"))),
            ("starter engine with all kernels", stripped(os.path.join(folder, "engine")))]


def check(readme, size):
    """Exits with a message if the README's size of the program is off."""
    with open(readme, encoding="utf8") as file:
        shown = re.search(r"^\| code to ship[^|]*\| ([0-9.]+) MB", file.read(), re.M)
    if not shown or abs(float(shown[1]) * 1e6 - size) > 0.1 * size:
        sys.exit("%s: the program has %.1f MB, the row \"code to ship\" says %s" %
                 (readme, size / 1e6, shown[1] + " MB" if shown else "nothing"))


def main():
    words = sys.argv[1:]
    readme = words[1] if words[:1] == ["--check"] and len(words) == 4 else None
    words = words[2:] if readme else words
    if len(words) < 2 or words[0].startswith("-"):
        sys.exit(__doc__.strip())
    ptxgen, model = map(os.path.realpath, words[:2])
    with tempfile.TemporaryDirectory(prefix="ptxgen_size_") as work:
        rows = measure(ptxgen, model, os.path.join(work, "engine"))
        for peer in words[2:]:
            name, _, path = peer.partition("=")
            copy = os.path.join(work, "peer")
            run("cp", path, copy)
            rows.append((name, stripped(copy)))
    if readme:
        check(readme, rows[1][1])
    print("| what | MB |\n|---|---|")
    for name, size in rows:
        print("| %s | %.1f |" % (name, size / 1e6))


if __name__ == "__main__":
    main()
