"""Random texts, and vocabularies of every kind of tokenizer: the same on every machine.

A vocabulary's tokens also span words, digits and spaces, so that tokens show where a tokenizer splits text. Texts have
many scripts, emoji, numbers, white space, invisible characters and names of special tokens.
"""
import os
import re
import struct
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "models"))
from make_gguf import ALIGNMENT, ARRAY, F32, I32, STRING, key, string

NORMAL, UNKNOWN, CONTROL, USER_DEFINED, BYTE = 1, 2, 3, 4, 6
SPACE = "\u2581"
MERGES, LONGEST = 1500, 16 # bytes

LETTERS = [ # ranges of scripts, most of them without the rare letters
    (0xC0, 0xFF), (0x100, 0x17F), (0x1C4, 0x1CC), (0x2B0, 0x2B8), (0x391, 0x3A1), (0x3B1, 0x3C9), (0x410, 0x44F),
    (0x531, 0x545), (0x561, 0x575), (0x5D0, 0x5EA), (0x621, 0x63A), (0x905, 0x939), (0x93E, 0x94D), (0x995, 0x9A8),
    (0x9BE, 0x9C4), (0xB85, 0xB8A), (0xBBE, 0xBC2), (0xE01, 0xE3A), (0xE40, 0xE4E), (0xE94, 0xE97), (0xF40, 0xF47),
    (0x1000, 0x1021), (0x102B, 0x1032), (0x10A0, 0x10C5), (0x10D0, 0x10FA), (0x1100, 0x1112), (0x1161, 0x1175),
    (0x11A8, 0x11C2), (0x1200, 0x1220), (0x13A0, 0x13B0), (0x1780, 0x17A2), (0x17B6, 0x17D3), (0x1820, 0x1842),
    (0x1C90, 0x1CA0), (0x1E00, 0x1E1F), (0x3041, 0x3060), (0x30A1, 0x30C0), (0x3105, 0x3115), (0x3131, 0x3140),
    (0x3400, 0x3410), (0x4E00, 0x4E20), (0x9FA0, 0x9FA5), (0xAA60, 0xAA6F), (0xAB70, 0xAB80), (0xAC00, 0xAC20),
    (0xF900, 0xF910), (0xFF21, 0xFF3A), (0xFF41, 0xFF5A), (0xFF66, 0xFF76), (0x10400, 0x1044F), (0x1D400, 0x1D420),
    (0x1E900, 0x1E943), (0x20000, 0x20010)]
MARKS = [(0x300, 0x30F), (0x327, 0x328), (0x5B0, 0x5BC), (0x64B, 0x652), (0x20DD, 0x20E0), (0x3099, 0x309A), (0xFE0E, 0xFE0F)]
NUMBERS = [(0x660, 0x669), (0x966, 0x96F), (0xFF10, 0xFF19), (0x2160, 0x216B), (0xBC, 0xBE), (0xB2, 0xB3), (0x2460, 0x2469),
           (0x1D7CE, 0x1D7D7), (0x3021, 0x3029)]
SIGNS = [(0xA1, 0xA9), (0x2010, 0x2027), (0x20A0, 0x20AF), (0x2190, 0x219F), (0x2200, 0x221F), (0x2500, 0x250F),
         (0x3001, 0x3003), (0x3008, 0x3011), (0xFF01, 0xFF0F), (0x964, 0x965), (0x60C, 0x60C), (0x6D4, 0x6D4),
         (0x24B6, 0x24BF), (0xFF1A, 0xFF1F)]
EMOJI = [(0x1F600, 0x1F610), (0x1F466, 0x1F469), (0x1F3FB, 0x1F3FF), (0x1F1E6, 0x1F1F0), (0x2764, 0x2764)]
WHITE = [" ", "  ", "   ", "      ", "\t", "\n", "\n\n", "\r\n", "\r", " \n", "\n  ", "\v", "\f", "\u0085", "\u00a0",
         "\u1680", "\u2003", "\u2028", "\u2029", "\u202f", "\u205f", "\u3000"]
INVISIBLE = ["\u200b", "\u200c", "\u200d", "\u2060", "\ufeff", "\u00ad", "\u180e", "\ue000", "\x01", "\x1b", "\x7f", "\0"]
ASCII_SIGNS = "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~"
WORDS = ["the", "hello", "World", "HTTP", "Server", "getUserName", "x", "I", "don", "we", "O", "naive", "return", "int",
         "std", "if", "SELECT", "https", "www", "Th", "er", "on", "IMGIMGABZ", "sentinel"]
CONTRACTIONS = ["'s", "'t", "'re", "'ve", "'m", "'ll", "'d", "'S", "'T", "'RE", "'Ve", "'LL", "'x", "\u2019s", "'"]


class Random:
    def __init__(self, seed):
        self.state = seed

    def below(self, limit):
        self.state = (self.state * 6364136223846793005 + 1442695040888963407) & (1 << 64) - 1
        return (self.state >> 33) % limit

    def choose(self, values):
        return values[self.below(len(values))]

    def characters(self, ranges, most):
        first, last = self.choose(ranges)
        return "".join(chr(first + self.below(last - first + 1)) for _ in range(1 + self.below(most)))


def piece(random, specials):
    kind = random.below(32)
    if kind < 8:
        return random.choose(WORDS)
    if kind < 10:
        return "".join(chr(random.choose((65, 97)) + random.below(26)) for _ in range(1 + random.below(7)))
    if kind < 13:
        return "".join(str(random.below(10)) for _ in range(1 + random.below(9)))
    if kind < 15:
        return random.choose(CONTRACTIONS)
    if kind < 18:
        return "".join(random.choose(ASCII_SIGNS) for _ in range(1 + random.below(4)))
    if kind < 22:
        return random.choose(WHITE)
    if kind < 26:
        return random.characters(LETTERS, 5)
    if kind == 26:
        return random.characters(LETTERS, 1) + random.characters(MARKS, 2)
    if kind == 27:
        return random.characters(NUMBERS, 5)
    if kind == 28:
        return random.characters(SIGNS, 3)
    if kind == 29:
        return random.characters(EMOJI, 2) + random.choose(["", "\u200d", "\ufe0f"])
    if kind == 30:
        return random.choose(INVISIBLE)
    return random.choose(specials)


def make_texts(seed, count, specials):
    random = Random(seed)
    texts = []
    for _ in range(count):
        pieces = [piece(random, specials) + random.choose(["", "", " "]) for _ in range(random.below(40))]
        texts.append("".join(pieces))
    return texts


def apply_merges(symbols, ranks):
    """Merges adjacent symbols, the lowest rank first, the leftmost of equal ones."""
    symbols = list(symbols)
    while True:
        found = [(ranks[pair], at) for at, pair in enumerate(zip(symbols, symbols[1:])) if pair in ranks]
        if not found:
            return symbols
        at = min(found)[1]
        symbols[at:at + 2] = [symbols[at] + symbols[at + 1]]


def make_merges(symbols_of, size):
    """Returns random pairs of adjacent symbols of random texts, and thereby mostly frequent ones."""
    random, ranks = Random(7), {}
    texts = make_texts(5, 300, [" "])
    while len(ranks) < MERGES:
        text = random.choose(texts)
        start = random.below(len(text) + 1)
        symbols = apply_merges(symbols_of(text[start:start + 24]), ranks)
        if len(symbols) < 2:
            continue
        at = random.below(len(symbols) - 1)
        if size(symbols[at] + symbols[at + 1]) <= LONGEST and "\0" not in text:
            ranks.setdefault((symbols[at], symbols[at + 1]), len(ranks))
    return list(ranks)


def byte_characters():
    """Returns GPT-2's character for each byte."""
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [byte for byte in range(256) if byte not in printable]
    return [chr(byte if byte in printable else 256 + others.index(byte)) for byte in range(256)]


class Vocabulary:
    """Tokens as (text, type), merges, and values of other keys by name."""

    def __init__(self, model, tokens, merges, **keys):
        self.model, self.merges, self.keys = model, merges, keys
        self.tokens = list({text: (text, kind) for text, kind in reversed(tokens)}.values())[::-1]
        self.bos = keys.get("bos_token_id", 1)

    def specials(self):
        return [text for text, kind in self.tokens if kind in (CONTROL, USER_DEFINED)]

    def write(self, path, pre=None):
        def array(name, kind, values):
            data = string("tokenizer.ggml." + name) + struct.pack("<IIQ", ARRAY, kind, len(values))
            if kind == STRING:
                return data + b"".join(map(string, values))
            return data + struct.pack("<%d%s" % (len(values), "f" if kind == F32 else "i"), *values)

        keys = [key("general.architecture", "llama"), key("tokenizer.ggml.model", self.model),
                array("tokens", STRING, [text for text, _ in self.tokens]),
                array("token_type", I32, [kind for _, kind in self.tokens])]
        if pre:
            keys.append(key("tokenizer.ggml.pre", pre))
        if self.model == "llama":
            keys.append(array("scores", F32, [-float(at) for at in range(len(self.tokens))]))
        else:
            keys.append(array("merges", STRING, [left + " " + right for left, right in self.merges]))
        keys += [key("tokenizer.ggml." + name, value) for name, value in self.keys.items()]
        with open(path, "wb") as file:
            head = b"GGUF" + struct.pack("<IQQ", 3, 0, len(keys)) + b"".join(keys)
            file.write(head + bytes(-len(head) % ALIGNMENT))


def byte_level():
    characters = byte_characters()
    merges = make_merges(lambda text: [characters[byte] for byte in text.encode()], len)
    tokens = [(text, NORMAL) for text in characters + [left + right for left, right in merges]]
    tokens += [("<|endoftext|>", CONTROL), ("<|im_start|>", CONTROL), ("<|im_end|>", NORMAL), ("[INST]", CONTROL),
               ("<tool>", USER_DEFINED), ("<tool>s", USER_DEFINED), ("<|user|>", CONTROL)]
    first = len(dict(tokens)) - 7
    return Vocabulary("gpt2", tokens, merges, bos_token_id=first + 1, eos_token_id=first)


def by_character(text):
    return list(text.replace(" ", SPACE))


def characters_of(texts):
    """Returns most characters of texts. The others become bytes."""
    characters = sorted(set("".join(texts)) - {" ", "\0"})
    return [SPACE] + [c for at, c in enumerate(characters) if at % 5]


def byte_tokens():
    return [("<0x%02X>" % byte, BYTE) for byte in range(256)]


def sentencepiece():
    merges = make_merges(by_character, lambda text: len(text.encode()))
    pieces = characters_of(make_texts(5, 300, [" "])) + [left + right for left, right in merges]
    tokens = [("<unk>", UNKNOWN), ("<s>", CONTROL), ("</s>", CONTROL)] + byte_tokens()
    tokens += [("[INST]", USER_DEFINED), ("<|user|>", CONTROL)] + [(text, NORMAL) for text in pieces]
    return Vocabulary("llama", tokens, [])


def gemma_4():
    merges = make_merges(by_character, lambda text: len(text.encode()))
    tokens = [("<pad>", CONTROL), ("<eos>", CONTROL), ("<bos>", CONTROL), ("<unk>", UNKNOWN), ("<mask>", CONTROL),
              ("<|turn>", CONTROL), ("<turn|>", CONTROL), ("<|channel>", USER_DEFINED), ("<|tool_response>", USER_DEFINED),
              ("\n\n\n", NORMAL), ("\n\n", NORMAL)] + byte_tokens()
    pieces = characters_of(make_texts(5, 300, [" "]) + ["\n"]) + [left + right for left, right in merges]
    known = set(pieces)
    merges = [pair for pair in merges if pair[0] in known and pair[1] in known]
    tokens += [(text, NORMAL) for text in pieces]
    return Vocabulary("gemma4", tokens, merges, bos_token_id=2, eos_token_id=1, unknown_token_id=3)


def pre_tokenizers(source):
    """Returns the flags of each name in pre_tokenizers.def."""
    with open(os.path.join(source, "templates/engine/pre_tokenizers.def")) as file:
        rows = re.findall(r'PRE_TOKENIZER\("([^"]+)", ([A-Z_ |0]+)', file.read())
    return {name: flags.split(" | ") for name, flags in rows}


def kinds(source):
    """Returns the vocabulary and tokenizer.ggml.pre of each kind of tokenizer by name."""
    vocabulary = byte_level()
    found = {name: (vocabulary, name) for name in pre_tokenizers(source) if name != "gemma4"}
    return {"llama": (sentencepiece(), None), "gemma4": (gemma_4(), None), **found}


def texts_of(kind, vocabulary, seed, count):
    """Returns random texts as bytes. SentencePiece's also have invalid UTF-8; other kinds have no reference for it.

    White space is ASCII for DeepSeek, because llama.cpp leaves other spaces out of a pattern's ranges.
    """
    bos = vocabulary.tokens[vocabulary.bos][0]
    texts, random = [], Random(seed)
    for text in make_texts(seed, count, vocabulary.specials()):
        data = ("." + text if text.startswith(bos) else text).encode() # the engine adds no second BOS token
        if kind in ("deepseek-llm", "deepseek-coder"):
            data = re.sub("[\x85\xa0\u1680\u2000-\u3000]", lambda found: " " if found[0].isspace() else found[0],
                          data.decode()).encode()
        if kind == "llama" and random.below(2):
            at = random.below(len(data) + 1)
            data = data[:at] + bytes((random.below(256), random.below(256))) + data[at:]
        texts.append(data)
    return texts


def write_texts(path, texts):
    """Writes texts as texts.h describes."""
    with open(path, "wb") as file:
        for text in texts:
            file.write(struct.pack("<I", len(text)) + text)


def run(command):
    """Runs a program that encodes texts. Returns a list of token numbers per line of its output."""
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        sys.exit("FAILED: %s: %s" % (" ".join(command), done.stderr))
    return [[int(number) for number in line.split()] for line in done.stdout.splitlines()]
