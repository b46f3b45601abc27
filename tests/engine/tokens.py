#!/usr/bin/env python3
"""Compares the starter engine's tokens of random texts with tokens.xz, for every kind of tokenizer.

    tokens.py ENGINE_TOKENS SOURCE

tokens.xz has tokens of llama.cpp, or of Hugging Face's tokenizers where llama.cpp only approximates a model's own
pattern. tests/peers/tokenizers.py writes it: a line with the kinds, then for each text a line per kind.
"""
import lzma
import os
import sys
import tempfile

from vocabularies import kinds, run, texts_of, write_texts

SEED, COUNT = 11, 200
GOLDEN = os.path.join(os.path.dirname(os.path.abspath(__file__)), "tokens.xz")


def read_golden():
    """Returns the tokens of each text by kind."""
    with lzma.open(GOLDEN, "rt") as file:
        names, *lines = file.read().splitlines()
    names = names.split()
    return {name: [[int(number) for number in line.split()] for line in lines[at::len(names)]]
            for at, name in enumerate(names)}


def write_golden(tokens):
    lines = [" ".join(map(str, tokens[name][at])) for at in range(COUNT) for name in tokens]
    with lzma.open(GOLDEN, "wt", preset=9 | lzma.PRESET_EXTREME) as file:
        file.write("\n".join([" ".join(tokens)] + lines) + "\n")


def engine_tokens(program, kind, vocabulary, pre, texts):
    """Returns the engine's tokens of each text, and as last item the tokens that end an answer."""
    with tempfile.TemporaryDirectory(prefix="ptxgen_tokens_") as folder:
        model, file = os.path.join(folder, "m.gguf"), os.path.join(folder, "texts")
        vocabulary.write(model, pre)
        write_texts(file, texts)
        return run([program, model, file, "start"])


def show(kind, vocabulary, text, tokens, expected):
    print("%s: %r\n  %s\n  %s" % (kind, text, *([vocabulary.tokens[token][0] for token in row] for row in (tokens, expected))))


def main():
    golden, found = read_golden(), kinds(sys.argv[2])
    if sorted(golden) != sorted(found):
        sys.exit("FAILED: tokens.xz has other kinds: %s" % " ".join(sorted(set(golden) ^ set(found))))
    wrong = 0
    for kind, (vocabulary, pre) in found.items():
        texts = texts_of(kind, vocabulary, SEED, COUNT)
        tokens = engine_tokens(sys.argv[1], kind, vocabulary, pre, texts)
        for text, ours, theirs in zip(texts, tokens, golden[kind]):
            if ours != theirs:
                wrong += 1
                if wrong <= 10:
                    show(kind, vocabulary, text, ours, theirs)
    print("%d kinds, %d texts each, %d tokenized differently" % (len(found), COUNT, wrong))
    sys.exit(wrong > 0)


if __name__ == "__main__":
    main()
