#!/usr/bin/env python3
"""Compares the starter engine's tokens of random texts with those of other tokenizers, for every kind of tokenizer.

    tokenizers.py ENGINE_TOKENS LLAMA_TOKENS LLAMA_FOLDER SOURCE [--seed N] [--count N] [--write]

All read the same vocabularies (tests/engine/vocabularies.py). The reference is llama.cpp's library (see compare.py), with
text in normalization form C where the model's own tokenizer composes text, which llama.cpp does not. The kinds in
PATTERNS have Hugging Face's tokenizers as reference, because llama.cpp only approximates these patterns:
    npm install --prefix SOURCE @huggingface/tokenizers@0.2.0
Prints a row per kind. --write writes tests/engine/tokens.xz. Exits with 77 (skipped) without one of the references.
"""
import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import unicodedata

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "engine"))
from compare import NO_LIBRARY, find_library, skip
from tokens import COUNT, SEED, engine_tokens, show, write_golden
from vocabularies import NORMAL, USER_DEFINED, kinds, pre_tokenizers, run, texts_of, write_texts

CONTRACTIONS = "(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
UPPER, LOWER = r"\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}", r"\p{Ll}\p{Lm}\p{Lo}\p{M}"
SPACES = r"\s*[\r\n]+|\s+(?!\S)|\s+"


def cased(upper, lower, ending, digits, line_ends=r"[\r\n/]*"):
    """Returns GPT-4o's pattern: words with upper case first, then lower case."""
    start = r"[^\r\n\p{L}\p{N}]?"
    return (rf"{start}[{upper}]*[{lower}]+{ending}|{start}[{upper}]+[{lower}]*{ending}|{digits}"
            rf"| ?[^\s\p{{L}}\p{{N}}]+{line_ends}|{SPACES}")


GPT_4O = [cased(UPPER, LOWER, CONTRACTIONS, r"\p{N}{1,3}")]
COHERE = [r"\d{1,3}(?=(?:\d{3})*\b)"] + GPT_4O
NOT_HAN = r"&&[^\p{Han}]"
PATTERNS = {
    "gpt-4o": GPT_4O,
    "llama4": GPT_4O,
    "kanana2": GPT_4O,
    "minimax-m2": GPT_4O,
    "talkie": GPT_4O,
    "tekken": [cased(UPPER, LOWER, "", r"\p{N}")],
    "tiny_aya": COHERE,
    "cohere2moe": COHERE,
    "kimi-k2": [r"[\p{Han}]+|" + cased(UPPER + NOT_HAN, LOWER + NOT_HAN, CONTRACTIONS, r"\p{N}{1,3}", r"[\r\n]*")],
    "youtu": ["[\uac00-\ud7a3\u3131-\u318e]+|[\uff01\u2026\u201c\u201d\u2018\u2019\u2014\uff1a\uff1b\uff0c\u3001-\u303f"
              "\ufe30-\ufe4f]+|[\u3105-\u312f]+|[\u4e00-\u9fa5\u3040-\u309f\u30a0-\u30ff]+",
              cased(UPPER, LOWER, CONTRACTIONS, r"\p{N}")],
    "superbpe": [r"\p{N}+", r"(?=(\d{3})+(?!\d))"],
    "afmoe": [r"\p{N}{1,3}(?=(?:\p{N}{3})*(?!\p{N}))",
              "[\u4e00-\u9fff\u3400-\u4dbf\u8c48-\ufaff\u3040-\u309f\u30a0-\u30ff\uff65-\uff9f\u2f00-\u2fdf\u0e40-\u0e7f"
              "\u0e80-\u0eff\u1780-\u17ff\u1000-\u109f\uaa60-\uaa7f\ua9e0-\ua9ff\uac00-\ud7af\u1100-\u11ff]+",
              r"[!\"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+"
              r"| ?[\p{P}\p{S}]+[\r\n]*|" + SPACES],
}


def tokenizer_json(vocabulary, patterns, flags):
    """Returns a vocabulary as Hugging Face's tokenizer.json."""
    special = {text: at for at, (text, kind) in enumerate(vocabulary.tokens) if kind != NORMAL or text == "<|im_end|>"}
    added = [{"id": at, "content": text, "single_word": False, "lstrip": False, "rstrip": False, "normalized": False,
              "special": vocabulary.tokens[at][1] != USER_DEFINED} for text, at in special.items()]
    splits = [{"type": "Split", "pattern": {"Regex": pattern}, "behavior": "Isolated", "invert": False}
              for pattern in patterns]
    by_byte = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": False}
    return {"version": "1.0", "truncation": None, "padding": None, "added_tokens": added,
            "normalizer": {"type": "NFC"} if "COMPOSES" in flags else None,
            "pre_tokenizer": {"type": "Sequence", "pretokenizers": splits + [by_byte]},
            "post_processor": None, "decoder": {"type": "ByteLevel"},
            "model": {"type": "BPE", "dropout": None, "unk_token": None, "continuing_subword_prefix": None,
                      "end_of_word_suffix": None, "fuse_unk": False, "byte_fallback": False,
                      "ignore_merges": "KEEPS_WORDS" in flags, "merges": [list(pair) for pair in vocabulary.merges],
                      "vocab": {text: at for at, (text, _) in enumerate(vocabulary.tokens) if text not in special}}}


class References:
    def __init__(self, options):
        self.flags = pre_tokenizers(options.source)
        self.llama = [options.llama_tokens, find_library(options.llama_folder, options.source)]
        tried = subprocess.run(self.llama + ["no model", os.devnull], capture_output=True, text=True)
        if tried.returncode == NO_LIBRARY:
            skip(tried.stderr.strip())
        places = [os.path.join(top, "node_modules/@huggingface/tokenizers") for top in (options.source, "/opt")]
        self.package = next(filter(os.path.isdir, places), None)
        if not self.package or not shutil.which("node"):
            skip("no node, or no @huggingface/tokenizers in " + " or ".join(places))

    def tokens(self, kind, vocabulary, pre, texts):
        """Returns a reference's name, the tokens of each text, and the tokens that end an answer or None."""
        flags = self.flags.get(kind, [])
        with tempfile.TemporaryDirectory(prefix="ptxgen_tokens_") as folder:
            model, file = os.path.join(folder, "model"), os.path.join(folder, "texts")
            if kind in PATTERNS:
                with open(model, "w") as out:
                    json.dump(tokenizer_json(vocabulary, PATTERNS[kind], flags), out)
                write_texts(file, texts)
                bos = [vocabulary.bos] if "ADDS_BOS" in flags else []
                rows = run(["node", os.path.join(os.path.dirname(__file__), "hf_tokens.mjs"), self.package, model, file])
                return "Hugging Face", [bos + row for row in rows], None
            vocabulary.write(model, pre)
            if "COMPOSES" in flags:
                texts = [unicodedata.normalize("NFC", text.decode()).encode() for text in texts]
            write_texts(file, texts)
            *rows, ends = run(self.llama + [model, file, "start"])
            return "llama.cpp", rows, ends


def main():
    parser = argparse.ArgumentParser()
    for name in ("engine_tokens", "llama_tokens", "llama_folder", "source"):
        parser.add_argument(name)
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    references, golden, wrong = References(options), {}, 0
    print("| kind | reference | texts | equal |\n|---|---|---|---|")
    for kind, (vocabulary, pre) in kinds(options.source).items():
        texts = texts_of(kind, vocabulary, options.seed, options.count)
        name, expected, expected_ends = references.tokens(kind, vocabulary, pre, texts)
        *tokens, ends = engine_tokens(options.engine_tokens, kind, vocabulary, pre, texts)
        bad = [at for at in range(options.count) if tokens[at] != expected[at]]
        print("| %s | %s | %d | %d |" % (kind, name, len(texts), len(texts) - len(bad)))
        for at in bad[:2]:
            show(kind, vocabulary, texts[at], tokens[at], expected[at])
        if expected_ends not in (None, ends):
            print("%s: ends %s, not %s" % (kind, ends, expected_ends))
        wrong += len(bad) + (expected_ends not in (None, ends))
        golden[kind] = expected[:COUNT]
    if options.write and not wrong:
        write_golden(golden)
    sys.exit(wrong > 0)


if __name__ == "__main__":
    main()
