#!/usr/bin/env python3
"""Checks that cut_library.py leaves one PTX per module of a library, and code in used modules: try_cut.py NVCC

The library is made here, with kernels named like llama.cpp's. nvcc compresses them and lays them out as in the package.
"""
import os
import re
import subprocess
import sys
import tarfile
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import cut_library
from cut_library import CUBIN, LIBRARIES, PTX, Entry, HEAD, REGION

TARGETS = (75, 80, 86, 87, 88, 89, 90, 100, 103, 110, 120, 121)
KERNELS = ["rope_norm", "of_no_model"] # the first of them is used


def entries(library):
    """Yields, for each module, the list of (kind, SM, content)."""
    for start, head, end in cut_library.regions(library):
        _, _, _, room = REGION.unpack_from(library, start)
        found, at = [], start + head
        while at < start + head + room:
            entry = Entry(*HEAD.unpack_from(library, at))
            data = library[at + entry.head_bytes:at + entry.head_bytes + entry.bytes]
            found.append((entry.kind, entry.sm, cut_library.decompress(bytes(data[:entry.compressed]), entry.plain_bytes)))
            at += entry.head_bytes + entry.bytes
        yield found


def main():
    nvcc = sys.argv[1]
    ptxas = os.path.join(os.path.dirname(os.path.realpath(nvcc)), "ptxas")
    with tempfile.TemporaryDirectory(prefix="ptxgen_cut_") as folder:
        objects = []
        for name in KERNELS:
            objects.append(os.path.join(folder, name + ".o"))
            with open(os.path.join(folder, name + ".cu"), "w") as file:
                file.write("__global__ void %s(float *x) { x[threadIdx.x] *= 2; }\n" % name)
            targets = [word for target in TARGETS for word in ("-gencode", "arch=compute_%d,code=compute_%d" % (target, target))]
            subprocess.run([nvcc, "-c", "-Xcompiler", "-fPIC", "--compress-mode=size"] + targets +
                           ["-o", objects[-1], os.path.join(folder, name + ".cu")], check=True)
        package = os.path.join(folder, "package")
        os.mkdir(package)
        library = os.path.join(package, "libggml-cuda.so")
        subprocess.run([nvcc, "-shared", "-cudart", "none", "-o", library] + objects, check=True)
        for name in LIBRARIES:
            with open(os.path.join(package, name), "w") as file:
                file.write(name)
        out = os.path.join(folder, "peer.tar.xz")
        done = subprocess.run([sys.executable, cut_library.__file__, package, out, ptxas], capture_output=True, text=True)
        said = done.stdout
        if done.returncode:
            sys.exit("FAILED: %s%s" % (said, done.stderr))
        with tarfile.open(out) as archive:
            archive.extractall(folder)
        with open(os.path.join(folder, "llama", "libggml-cuda.so"), "rb") as file:
            after = file.read()
        names = sorted(os.listdir(os.path.join(folder, "llama")))
        modules = list(entries(after))
        if names != sorted(LIBRARIES + ("libggml-cuda.so",)) or os.path.getsize(library) != len(after):
            sys.exit("FAILED: %s of %d bytes" % (names, len(after)))
        if "2 modules, 1 compiled" not in said or len(modules) != 2:
            sys.exit("FAILED: %s; %d modules" % (said, len(modules)))
        for module in modules:
            text = module[-1][2].decode().rstrip("\0")
            kinds = [(kind, sm) for kind, sm, _ in module]
            used = "rope_norm" in text
            if kinds != ([(CUBIN, 90)] if used else []) + [(PTX, 90)] or not re.search(r"^\.target sm_90", text, re.M):
                sys.exit("FAILED: entries %s, %s" % (kinds, text))
            if used:
                path = os.path.join(folder, "a.ptx")
                with open(path, "w") as file:
                    file.write(text)
                subprocess.run([ptxas, "-arch=sm_90", "-O3", "-o", path + ".cubin", path], check=True)
                with open(path + ".cubin", "rb") as file:
                    if file.read() != module[0][2]:
                        sys.exit("FAILED: the machine code is not the PTX's")
        os.remove(os.path.join(package, LIBRARIES[0]))
        done = subprocess.run([sys.executable, cut_library.__file__, package, out], capture_output=True, text=True)
        if not done.returncode or LIBRARIES[0] not in done.stderr:
            sys.exit("FAILED: a library is missing: %s" % done.stderr)


if __name__ == "__main__":
    main()
