#!/usr/bin/env python3
"""Loads models with the header of their --from-gguf spec, as each GPU that the header serves, and runs steps.

    check_gpus.py PTXGEN LIBCUDA_FOLDER SOURCE FOLDER PART/PARTS run|create

run: runs a step of one token and one of eight of each supported model in FOLDER, on the emulated driver. The default
targets run as every GPU from sm_80 on; sm_75 runs as sm_75 and as two newer GPUs. The logits have the same bits on all
GPUs of a header. create: loads all kernels of the steps; files of real models have no weights. Handles each PARTS-th
model, starting at PART. Exits with 77 (skipped) without FOLDER.
"""
import os
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from check_models import Tools, run  # noqa: E402

GPUS = {None: (80, 86, 87, 89, 90, 100, 103, 110, 120, 121), "sm_75": (75, 86, 120)}
TOKENS = "1 5 9 2 7 3 8 4 6" # one, then eight


def compile_program(tools, folder, source):
    program = os.path.join(folder, "program")
    run(["cc", "-O0", "-I" + folder, "-I" + tools.source + "/src", "-I" + tools.source + "/src/model/gguf", "-o", program,
         os.path.join(tools.source, "tests/models", source)] + tools.gguf_objects() +
        ["-L" + tools.libcuda, "-l:libcuda.so.1", "-ldl"])
    return program


def check(tools, gguf, targets, with_weights):
    """Returns the GPUs with a failure, or None if the architecture is not supported."""
    with tempfile.TemporaryDirectory(prefix="ptxgen_gpus_") as folder:
        said = ["--target", targets] if targets else []
        spec = subprocess.run([tools.ptxgen, "-q", "--from-gguf", gguf, "--max-seq-len", "64"] + said,
                              capture_output=True, text=True)
        if spec.returncode:
            return None
        path, logits, wrong = os.path.join(folder, "model.ini"), {}, []
        with open(path, "w") as file:
            file.write(spec.stdout)
        run([tools.ptxgen, "-q", "--spec", path, "--out", folder])
        program = compile_program(tools, folder, "run_model.c" if with_weights else "create_model.c")
        with open(os.path.join(folder, "tokens"), "w") as file:
            file.write(TOKENS)
        for gpu in GPUS[targets]:
            logits[gpu] = b""
            for most in ("1", "8") if with_weights else ("",):
                arguments = [gguf, os.path.join(folder, "tokens"), os.path.join(folder, "logits"), most] if most else []
                tokens = TOKENS[:3] if most == "1" else TOKENS
                if arguments:
                    with open(arguments[1], "w") as file:
                        file.write(tokens)
                done = subprocess.run([program] + arguments, capture_output=True, text=True,
                                      env=dict(os.environ, LD_LIBRARY_PATH=tools.libcuda,
                                               PTXGEN_CUDA_TARGET="sm_%d" % gpu))
                if done.returncode:
                    print(done.stdout + done.stderr, end="")
                    wrong.append("sm_%d" % gpu)
                    break
                if arguments:
                    with open(arguments[2], "rb") as file:
                        logits[gpu] += file.read()
            if logits[gpu] != logits[GPUS[targets][0]] and "sm_%d" % gpu not in wrong:
                wrong.append("sm_%d (other logits)" % gpu)
        return wrong


def main():
    tools = Tools(*sys.argv[1:5])
    part, parts = map(int, sys.argv[5].split("/"))
    if not os.path.isdir(tools.models):
        print("no folder %s: skipped" % tools.models)
        sys.exit(77)
    files = sorted(file for file in os.listdir(tools.models) if file.endswith(".gguf"))
    supported = 0
    for file in files[part::parts]:
        for targets in GPUS:
            wrong = check(tools, os.path.join(tools.models, file), targets, sys.argv[6] == "run")
            if wrong is None:
                break
            supported += 1
            found = "wrong on " + ", ".join(wrong) if wrong else "right on all GPUs"
            tools.judge("%s, targets %s: %s" % (file, targets or "as --from-gguf says", found), not wrong)
    if not supported:
        sys.exit("FAILED: no model was supported")
    sys.exit(tools.failed)


if __name__ == "__main__":
    main()
