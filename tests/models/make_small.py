#!/usr/bin/env python3
"""Writes a whole GGUF model that is small: random weights, the same every time, and a vocabulary of 300 tokens.

    make_small.py [--layers N] [--further N] [--type F32 | Q8_0] [--architecture NAME] [--tokenizer NAME] [--pre NAME]
                  [--key NAME=VALUE]... [--extra TENSOR]... [--only TOKEN] [--answer TEXT | --story] [--nan] FILE

The model is a llama with 64 hidden values, 4 heads of 16, and room for 64 positions. Its text means nothing, except
with --story: then it continues "Once upon a time" with a sentence. Options:

  --type              element type of the matrices
  --architecture, --tokenizer, --pre
                      names in the file; the tensors and the vocabulary stay those of a llama
  --further N         adds N layers for multi-token prediction, which a decoder ignores
  --key NAME=VALUE    sets a key of the architecture to a JSON value; without a value the key is left out
  --extra TENSOR      adds a vector
  --only TOKEN        suppresses all other tokens
  --answer TEXT       makes the last token TEXT, the only one that the model predicts
  --nan               makes the last norm NaN
"""
import argparse
import json
import math
import random
import struct

from make_gguf import ALIGNMENT, ARRAY, TYPES, F32, I32, STRING, key, string

HIDDEN, FF, HEADS, KV_HEADS, HEAD_DIM, ROOM = 64, 96, 4, 2, 16, 64
NORMAL, UNKNOWN, CONTROL, BYTE = 1, 2, 3, 6
WORDS = ["\u2581", "\u2581the", "\u2581a", "\u2581was", "\u2581once", "\u2581upon", "\u2581time", "th", "he", "an",
         "on", "ti", "me", "\u00e4", "\u6a21"] + [chr(letter) for letter in range(ord("a"), ord("z") + 1)]
STORY = "Once upon a time there lived one small kernel that never spilled its registers." # no word twice
FIRST_PIECE, END = 259, 2


def array(name, kind, values):
    data = string(name) + struct.pack("<IIQ", ARRAY, kind, len(values))
    if kind == STRING:
        return data + b"".join(map(string, values))
    return data + struct.pack("<%d%s" % (len(values), "f" if kind == F32 else "i"), *values)


def story_pieces():
    """Returns the story's words as tokens, and the pieces that the tokenizer merges on its way to a word."""
    words = ["\u2581" + word for word in STORY.split()]
    letters = {letter for word in words for letter in word}
    parts = {word[:end] for word in words for end in range(2, len(word))}
    return words, sorted((letters | parts) - set(words))


def pieces(options):
    """Returns the tokens after the three control tokens and the bytes."""
    if options.story:
        words, parts = story_pieces()
        return words + parts
    return WORDS[:-1] + [options.answer or WORDS[-1]]


def vocabulary(options, words):
    """Returns the keys of a SentencePiece vocabulary: control tokens, all bytes, and pieces; longer ones merge first."""
    tokens = ["<unk>", "<s>", "</s>"] + ["<0x%02X>" % byte for byte in range(256)] + words
    kinds = [UNKNOWN, CONTROL, CONTROL] + [BYTE] * 256 + [NORMAL] * len(words)
    return [key("tokenizer.ggml.model", options.tokenizer),
            array("tokenizer.ggml.tokens", STRING, tokens),
            array("tokenizer.ggml.scores", F32, [float(len(token)) for token in tokens]),
            array("tokenizer.ggml.token_type", I32, kinds),
            *([key("tokenizer.ggml.pre", options.pre)] if options.pre else []),
            *([array("tokenizer.ggml.suppress_tokens", I32, [i for i in range(len(tokens)) if i != options.only])]
              if options.only else []),
            key("tokenizer.ggml.bos_token_id", 1), key("tokenizer.ggml.eos_token_id", 2)]


def keys(options):
    of = options.architecture + "."
    values = {"block_count": options.layers + options.further, "nextn_predict_layers": options.further,
              "context_length": ROOM, "embedding_length": HIDDEN, "feed_forward_length": FF,
              "attention.head_count": HEADS, "attention.head_count_kv": KV_HEADS,
              "attention.layer_norm_rms_epsilon": 1e-5, "rope.dimension_count": HEAD_DIM}
    values.update(text.split("=") for text in options.key)
    parsed = {name: json.loads(value) if isinstance(value, str) else value
              for name, value in values.items() if value != ""}
    return [key("general.architecture", options.architecture),
            *(key(of + name, value) for name, value in parsed.items())]


def q8_0(values):
    """Returns blocks of 32: an f16 scale and 8-bit numbers, rounded as ggml rounds them."""
    data = b""
    for at in range(0, len(values), 32):
        block = values[at:at + 32]
        scale = max(map(abs, block)) / 127 or 1.0
        data += struct.pack("<e32b", scale, *(math.floor(value / scale + 0.5) for value in block))
    return data


class Tensors:
    def __init__(self, options, vocab):
        self.type, self.random, self.vocab = options.type, random.Random(1), vocab
        self.answers, self.tells = options.answer is not None, options.story
        self.infos, self.data = [], b""

    def add(self, name, ne, values=None):
        kind = self.type if len(ne) > 1 else "F32"
        if self.answers and len(ne) > 1: # layers add nothing, and only the last token has a logit other than 0
            rows = [1.0] * self.vocab if name == "token_embd.weight" else [0.0] * (ne[1] - 1) + [float("output.w" in name)]
            values = [value for value in rows for _ in range(ne[0])]
        if values is None: # the outputs are about as large as the inputs
            values = [self.random.gauss(0, ne[0] ** -0.5) for _ in range(math.prod(ne))]
        if self.tells:
            values = self.tell(name, values)
        self.infos.append(string(name) + struct.pack("<I%dQ" % len(ne), len(ne), *ne) +
                          struct.pack("<IQ", TYPES[kind][0], len(self.data)))
        data = q8_0(values) if kind == "Q8_0" else struct.pack("<%df" % len(values), *values)
        self.data += data + bytes(-len(data) % ALIGNMENT)

    def tell(self, name, values):
        """Makes every token of the story predict the next: its row of the head is the embedding of the one before it."""
        if "attn_output" in name or "ffn_down" in name: # the hidden state stays close to the embedding
            return [value / 32 for value in values]
        if name == "token_embd.weight":
            self.embedding = values
        elif name == "output.weight":
            tokens = [FIRST_PIECE + i for i in range(len(STORY.split()))] + [END]
            for token, following in zip(tokens, tokens[1:]):
                row = self.embedding[token * HIDDEN:][:HIDDEN]
                values[following * HIDDEN:(following + 1) * HIDDEN] = [4 * value for value in row]
        return values

    def add_all(self, options):
        ones = [1.0] * HIDDEN
        self.add("token_embd.weight", (HIDDEN, self.vocab))
        for layer in range(options.layers):
            of = "blk.%d." % layer
            self.add(of + "attn_norm.weight", (HIDDEN,), ones)
            self.add(of + "attn_q.weight", (HIDDEN, HEADS * HEAD_DIM))
            self.add(of + "attn_k.weight", (HIDDEN, KV_HEADS * HEAD_DIM))
            self.add(of + "attn_v.weight", (HIDDEN, KV_HEADS * HEAD_DIM))
            self.add(of + "attn_output.weight", (HEADS * HEAD_DIM, HIDDEN))
            self.add(of + "ffn_norm.weight", (HIDDEN,), ones)
            self.add(of + "ffn_gate.weight", (HIDDEN, FF))
            self.add(of + "ffn_up.weight", (HIDDEN, FF))
            self.add(of + "ffn_down.weight", (FF, HIDDEN))
        self.add("output_norm.weight", (HIDDEN,), [math.nan] * HIDDEN if options.nan else ones)
        self.add("output.weight", (HIDDEN, self.vocab))
        for name in options.extra:
            self.add(name, (HEADS * HEAD_DIM,))
        for layer in range(options.layers, options.layers + options.further):
            self.add("blk.%d.nextn.eh_proj.weight" % layer, (2 * HIDDEN, HIDDEN))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--layers", type=int, default=2)
    parser.add_argument("--further", type=int, default=0)
    parser.add_argument("--type", choices=("F32", "Q8_0"), default="Q8_0")
    parser.add_argument("--architecture", default="llama")
    parser.add_argument("--tokenizer", default="llama")
    parser.add_argument("--pre")
    parser.add_argument("--key", action="append", default=[])
    parser.add_argument("--extra", action="append", default=[])
    parser.add_argument("--only", type=int)
    parser.add_argument("--answer")
    parser.add_argument("--story", action="store_true")
    parser.add_argument("--nan", action="store_true")
    parser.add_argument("file")
    options = parser.parse_args()
    words = pieces(options)
    tensors, all_keys = Tensors(options, FIRST_PIECE + len(words)), \
        keys(options) + vocabulary(options, words)
    tensors.add_all(options)
    head = b"GGUF" + struct.pack("<IQQ", 3, len(tensors.infos), len(all_keys)) + b"".join(all_keys + tensors.infos)
    with open(options.file, "wb") as file:
        file.write(head + bytes(-len(head) % ALIGNMENT) + tensors.data)


if __name__ == "__main__":
    main()
