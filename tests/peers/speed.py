#!/usr/bin/env python3
"""Checks on the CPU that llama_speed measures the model that our generated headers run.

    speed.py PTXGEN LIBCUDA_FOLDER SOURCE MODELS LLAMA_SPEED FILL_GGUF LLAMA_FOLDER LLAMA_PEER

LLAMA_PEER, a script, runs llama_speed on a trained model; the generated tokens must be ours. A model with random
weights, made by fill_gguf, must load and give finite logits, and ptxgen must read it. Exits with 77 (skipped) without
MODELS or llama.cpp's library; see compare.py.
"""
import os
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "models"))
import check_models
from compare import NO_LIBRARY, find_library, skip

TRAINED = "stories260K_q4"
RANDOM = [("llama", []), ("llama", ["q8_0"]), ("qwen3moe", []), ("gpt_oss", [])]
COUNT, DEPTH, PROMPT, ROWS = 24, 9, 20, 8
FIGURES = ["tg%d" % COUNT, "tg%d_at%d" % (COUNT, DEPTH), "pp%d" % PROMPT, "rows%d" % ROWS, "seqs%d" % ROWS]


def measure(command, library, gguf):
    """Returns the figures in tokens/s and the tokens generated from token 1."""
    done = subprocess.run(command + [library, gguf, "--cpu", "--repeat", "1", "--tokens", str(COUNT), "--depth", "0",
                           "--depth", str(DEPTH), "--prompt", str(PROMPT), "--rows", str(ROWS)],
                          capture_output=True, text=True)
    if done.returncode == NO_LIBRARY:
        skip(done.stderr.strip())
    if done.returncode:
        sys.exit("FAILED: %s\n%s%s" % (gguf, done.stdout, done.stderr))
    lines = [line.split() for line in done.stdout.splitlines()]
    figures = {line[0]: float(line[1]) for line in lines if line[-1] == "tokens/s" and line[0] != "#"}
    tokens = [line[3:] for line in lines if line[:3] == ["#", FIGURES[0], "tokens"]]
    if list(figures) != FIGURES or min(figures.values()) <= 0 or len(tokens) != 1:
        sys.exit("FAILED: %s: figures %s and %d lists of tokens" % (gguf, figures, len(tokens)))
    return figures, [int(token) for token in tokens[0]]


def main():
    tools = check_models.Tools(*sys.argv[1:5])
    if not os.path.isdir(tools.models):
        skip("no " + tools.models)
    program, fill = map(os.path.abspath, sys.argv[5:7])
    library = find_library(sys.argv[7], tools.source)
    with tempfile.TemporaryDirectory(prefix="ptxgen_speed_") as folder:
        for name, form in RANDOM:
            gguf = os.path.join(folder, "_".join([name] + form) + ".gguf")
            check_models.run([fill, os.path.join(tools.models, name + ".gguf"), gguf] + form)
            measure([program], library, gguf)
            check_models.run([tools.ptxgen, "--from-gguf", gguf])
    os.environ["LLAMA_SPEED"] = program
    figures, theirs = measure(["sh", sys.argv[8]], library, os.path.join(tools.models, TRAINED + ".gguf"))
    model = check_models.Model(tools, TRAINED, "q8", COUNT + 1)
    ours = theirs[:1] + model.logits(theirs[:1], 1, COUNT - 1)[1]
    print("\n".join("%s %g tokens/s" % figure for figure in figures.items()))
    if ours != theirs:
        sys.exit("FAILED: llama.cpp's tokens %s, ours %s" % (theirs, ours))


if __name__ == "__main__":
    main()
