#!/usr/bin/env python3
"""Compiles files with another compiler for its warnings: syntax.py COMPILER BUILD_FOLDER OTHER_BUILD_FOLDER

The files are those of BUILD_FOLDER that have no object in OTHER_BUILD_FOLDER, the other compiler's build. Writes
nothing. Exits with 1 on an error; with -Werror a warning is one.
"""
import concurrent.futures
import json
import os
import pathlib
import shlex
import subprocess
import sys


def commands(folder):
    for entry in json.loads(pathlib.Path(folder, "compile_commands.json").read_text()):
        yield entry, (pathlib.Path(entry["directory"]) / entry["file"]).resolve()


def look(compiler, entry):
    words = shlex.split(entry["command"])
    start = next(i for i, word in enumerate(words) if word.startswith("-"))
    arguments = words[start:]
    for option in ("-o", "-MF", "-MQ"):
        at = arguments.index(option)
        del arguments[at:at + 2]
    arguments.remove("-MD")
    return subprocess.run([compiler, "-fsyntax-only", *arguments], cwd=entry["directory"], text=True,
                          capture_output=True, check=False)


def main(compiler, folder, other):
    compiled = {file for entry, file in commands(other) if pathlib.Path(other, entry["output"]).exists()}
    left = {file: entry for entry, file in commands(folder) if file not in compiled and file.suffix == ".c"}
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        results = list(pool.map(lambda entry: look(compiler, entry), left.values()))
    for result in results:
        sys.stderr.write(result.stderr)
    print(f"{len(left)} files")
    return int(any(result.returncode for result in results))


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
