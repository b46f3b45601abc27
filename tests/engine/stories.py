#!/usr/bin/env python3
"""Trained models tell the stories that other programs computed, by the generated header and by the starter engine.

    stories.py PTXGEN LIBCUDA_FOLDER SOURCE MODELS

MODELS has stories260K.gguf, its tokenizer and the tokens of llama2.c's own run, and the same model in Q4_K_M (see its
README). Checks, in f32, that steps of one token and of eight choose these tokens, and that the starter engine prints
their text. PTXGEN_TEST_TOKENS limits the tokens of the Q4_K_M model. PTXGEN_TEST_TIER=full adds the header's own run of
the f32 model. Exits with 77 (skipped) if MODELS lacks the files.
"""
import os
import struct
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "models"))
from check_models import Model, Tools  # noqa: E402

BOS, VOCAB, ROOM, ALONE = 1, 512, 512, 12
# The number of tokens that must match. After them, the lead of the likeliest logit is below the rounding error of f32.
STORIES = {"stories260K": 256, "stories260K_q4": int(os.environ.get("PTXGEN_TEST_TOKENS", 185))}


def golden_tokens(tools, name):
    with open(os.path.join(tools.models, name + ".greedy_tokens.txt")) as file:
        return [int(line.split()[1]) for line in file if not line.startswith("#")][:STORIES[name]]


def pieces(tools):
    """Returns the bytes of each token, from tok512.bin."""
    with open(os.path.join(tools.models, "tok512.bin"), "rb") as file:
        data = file.read()
    at, texts = 4, []
    while at < len(data):
        length, = struct.unpack_from("<i", data, at + 4)
        texts.append(data[at + 8:at + 8 + length])
        at += 8 + length
    return [bytes([index - 3]) if 3 <= index < 259 else text for index, text in enumerate(texts)]


def choices(logits, vocab):
    rows = [logits[at:at + vocab] for at in range(0, len(logits), vocab)]
    return [max(range(vocab), key=row.__getitem__) for row in rows]


def check_tokens(tools, name):
    """Checks the whole story as a prompt, in steps of eight tokens, and its beginning token by token."""
    golden, model = golden_tokens(tools, name), Model(tools, name, "f32", ROOM)
    tokens = [BOS] + golden[:-1]
    logits, _ = model.logits(tokens, 8)
    tools.judge("%s: %d tokens eight by eight" % (name, len(golden)), choices(logits, VOCAB) == golden)
    alone, told = model.logits(tokens[:ALONE], 1, 4)
    tools.judge("%s: %d tokens one by one" % (name, ALONE),
                alone == logits[:ALONE * VOCAB] and told == golden[ALONE - 1:ALONE + 3])


def build_engine(tools, work):
    """Returns the starter engine of stories260K, built in work."""
    gguf, folder = os.path.join(tools.models, "stories260K.gguf"), os.path.join(work, "engine")
    subprocess.run([tools.ptxgen, "-q", "--init", "engine", "--out", folder, "--from-gguf", gguf], check=True)
    subprocess.run([tools.ptxgen, "-q", "--spec", "model.ini", "--out", "."], check=True, cwd=folder)
    subprocess.run("cc -O2 -o engine *.c -lpcre2-8 -lutf8proc -ldl", shell=True, check=True, cwd=folder)
    return os.path.join(folder, "engine")


def check_text(tools, program):
    """Checks the starter engine's text for an empty prompt."""
    gguf, texts = os.path.join(tools.models, "stories260K.gguf"), pieces(tools)
    done = subprocess.run([program, gguf, ""], capture_output=True, env=dict(os.environ, LD_LIBRARY_PATH=tools.libcuda))
    golden = b"".join(texts[token] for token in golden_tokens(tools, "stories260K"))
    tools.judge("the starter engine's text", done.stdout == golden + b"\n")


def main():
    tools = Tools(*sys.argv[1:5])
    if not os.path.exists(os.path.join(tools.models, "stories260K.gguf")):
        print("no stories260K.gguf in %s: skipped" % tools.models)
        sys.exit(77)
    with tempfile.TemporaryDirectory(prefix="ptxgen_stories_") as work:
        program = build_engine(tools, work)
        told = [lambda: check_text(tools, program),
                lambda: check_tokens(tools, "stories260K"), lambda: check_tokens(tools, "stories260K_q4")]
        for check in told if os.environ.get("PTXGEN_TEST_TIER") == "full" else told[::2]:
            check()
    sys.exit(tools.failed)


if __name__ == "__main__":
    main()
