#!/usr/bin/env python3
"""Models that were trained to tell stories, run by the generated header, tell those that others computed.

    stories.py PTXGEN LIBCUDA_FOLDER SOURCE MODELS

MODELS has stories260K.gguf, its tokenizer and the tokens of llama2.c's own run, and the same model in Q4_K_M (see its
README). PTXGEN_TEST_TOKENS is how many tokens of the latter are compared, all of them where it is not
set. Exits with 77 (skipped) where they are not there. The f32 story without the engine is left to PTXGEN_TEST_TIER=full. Steps of several tokens and of one have to choose the same
tokens, in f32, and the starter engine, as the README makes it, has to print their text.
"""
import os
import re
import shutil
import struct
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "models"))
from check_models import Model, Tools  # noqa: E402

BOS, VOCAB, ROOM, ALONE = 1, 512, 512, 12
# How many tokens of a model's list have to be right: from there on the two likeliest logits differ by less than the
# arithmetic of f32 decides.
STORIES = {"stories260K": 256, "stories260K_q4": int(os.environ.get("PTXGEN_TEST_TOKENS", 185))}


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


def without_times(text):
    return re.sub(r"[0-9.]+ (s|tokens/s)\b", r"N \1", text)


def check_readme(tools, work):
    """The README's commands, run one after the other, print what stands below each, but for times; the emulated driver
    is that of the build."""
    with open(os.path.join(tools.source, "README.md"), encoding="utf8") as file:
        shown = re.search(r"## Quick start.*?\n\n((?:    .*\n)+)", file.read()).group(1).replace("\n    ", "\n")[4:]
    commands = [line[2:] for line in shown.splitlines() if line.startswith("$ ")]
    shutil.copy(os.path.join(tools.models, "stories260K.gguf"), work)
    script = "PATH=$1:$PATH\nexec 2>&1\n" + "".join("echo '$ %s'\n%s\n" % (c.replace("'", "'\\''"), c) for c in commands)
    done = subprocess.run(["sh", "-e", "-c", script, "sh", os.path.dirname(tools.ptxgen)], capture_output=True, text=True,
                          cwd=work)
    right = done.returncode == 0 and without_times(done.stdout) == without_times(shown)
    tools.judge("the README's commands", right)
    if not right:
        print(done.stdout)


def check_text(tools, program):
    """The starter engine's text, of a prompt without a word."""
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
        check_readme(tools, work)
        told = [lambda: check_text(tools, os.path.join(work, "engine", "engine")),
                lambda: check_tokens(tools, "stories260K"), lambda: check_tokens(tools, "stories260K_q4")]
        for check in told if os.environ.get("PTXGEN_TEST_TIER") == "full" else told[::2]:
            check()
    sys.exit(tools.failed)


if __name__ == "__main__":
    main()
