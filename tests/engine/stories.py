#!/usr/bin/env python3
"""Models that were trained to tell stories, run by the generated header, tell those that others computed.

    stories.py PTXGEN LIBCUDA_FOLDER SOURCE MODELS

MODELS has stories260K.gguf, its tokenizer and the tokens of llama2.c's own run, and the same model in Q4_K_M (see its
README). Exits with 77 (skipped) where they are not there. Steps of several tokens and of one have to choose the same
tokens, in f32, and the starter engine, as everybody makes it, has to print their text.
"""
import os
import struct
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "models"))
from check_models import Model, Tools, run  # noqa: E402

BOS, VOCAB, ROOM, ALONE = 1, 512, 512, 12
# How many tokens of a model's list have to be right: from there on the two likeliest logits differ by less than the
# arithmetic of f32 decides.
STORIES = {"stories260K": 256, "stories260K_q4": 185}


def golden_tokens(tools, name):
    with open(os.path.join(tools.models, name + ".greedy_tokens.txt")) as file:
        return [int(line.split()[1]) for line in file if not line.startswith("#")][:STORIES[name]]


def pieces(tools):
    """The bytes of each token, of tok512.bin."""
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
    """All of the story as a prompt, in steps of eight tokens, and its beginning one by one."""
    golden, model = golden_tokens(tools, name), Model(tools, name, "f32", ROOM)
    tokens = [BOS] + golden[:-1]
    logits, _ = model.logits(tokens, 8)
    tools.judge("%s: %d tokens eight by eight" % (name, len(golden)), choices(logits, VOCAB) == golden)
    alone, told = model.logits(tokens[:ALONE], 1, 4)
    tools.judge("%s: %d tokens one by one" % (name, ALONE),
                alone == logits[:ALONE * VOCAB] and told == golden[ALONE - 1:ALONE + 3])


def check_text(tools, name, folder):
    program, gguf = os.path.join(folder, "engine"), os.path.join(tools.models, name + ".gguf")
    run([tools.ptxgen, "-q", "--init", "engine", "--out", folder, "--from-gguf", gguf])
    run([tools.ptxgen, "-q", "--spec", os.path.join(folder, "model.ini"), "--out", folder])
    run(["sh", "-c", "cc -O0 -o engine *.c -lpcre2-8 -ldl"], cwd=folder)
    done = subprocess.run([program, gguf, ""], capture_output=True, env=dict(os.environ, LD_LIBRARY_PATH=tools.libcuda))
    texts = pieces(tools)
    tools.judge("%s: the starter engine's text" % name,
                done.stdout == b"".join(texts[token] for token in golden_tokens(tools, name)) + b"\n")


def main():
    tools = Tools(*sys.argv[1:5])
    if not os.path.exists(os.path.join(tools.models, "stories260K.gguf")):
        print("no stories260K.gguf in %s: skipped" % tools.models)
        sys.exit(77)
    with tempfile.TemporaryDirectory(prefix="ptxgen_stories_") as folder:
        check_text(tools, "stories260K", folder)
    check_tokens(tools, "stories260K")
    check_tokens(tools, "stories260K_q4")
    sys.exit(tools.failed)


if __name__ == "__main__":
    main()
