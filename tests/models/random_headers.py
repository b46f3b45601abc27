#!/usr/bin/env python3
"""Checks steps of random models, made from headers of GGUF files.

    random_headers.py PTXGEN MODELS [--seed N] [--count N] [--architecture NAME] [--keep FOLDER]

MODELS has a small model, or several, of each architecture: the templates. A random model differs in sizes, layers,
lists by layer, windows, tensor types and optional tensors. --from-gguf may refuse a header, with a message. Of all
others, --verify must prove the step. Models cycle through the architectures that PTXGEN lists. --keep keeps headers and
specs in a folder. Exits with 77 (skipped) without MODELS.
"""
import argparse
import glob
import itertools
import os
import random
import re
import struct
import subprocess
import sys
import tempfile

from make_gguf import TYPES, header_of

SCALARS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
STRING, ARRAY = 8, 9
MOST_LAYERS = 5
# Sizes of each tensor as expressions of a layer's sizes. In a template, a size may be a multiple of its expression, as
# in a fused matrix. Any other size stays as it is in the template.
SHAPES = {
    "token_embd": "n, vocab", "output": "n, vocab", "output_norm": "n",
    "rope_freqs": "(key if head_gates else rope) // 2",
    "rope_factors_long": "rope // 2", "rope_factors_short": "rope // 2",
    "attn_q": "n, heads * key", "attn_k": "n, kv * key", "attn_v": "n, kv * value",
    "attn_qkv": "n, (heads + 2 * kv) * key", "attn_output": "heads * value, n", "attn_sinks": "heads",
    "attn_q_norm": "(heads if rows_normed else 1) * key", "attn_k_norm": "(kv if rows_normed else 1) * key",
    "attn_gate": "n, heads if head_gates else heads * key",
    "attn_q_a": "n, q_rank", "attn_q_a_norm": "q_rank", "attn_q_b": "q_rank, heads * key",
    "attn_kv_a_mqa": "n, latent + rope", "attn_kv_a_norm": "latent", "attn_k_b": "key - rope, latent, heads",
    "attn_v_b": "latent, value, heads", "attn_kv_b": "latent, heads * (key - rope + value)",
    "ffn_gate": "n, ff", "ffn_up": "n, ff", "ffn_down": "ff, n", "ffn_gate_inp": "n, experts",
    "ffn_gate_exps": "n, expert_ff, experts", "ffn_up_exps": "n, expert_ff, experts",
    "ffn_gate_up_exps": "n, expert_ff, experts", "ffn_down_exps": "expert_ff, n, experts", "exp_probs_b": "experts",
    "ffn_gate_shexp": "n, shared_ff", "ffn_up_shexp": "n, shared_ff", "ffn_down_shexp": "shared_ff, n",
    "ffn_gate_inp_shexp": "n", "ffn_gate_inp.scale": "n", "ffn_down_exps.scale": "experts",
    "eh_proj": "n, n", "embed_tokens": "n, vocab", "shared_head_head": "n, vocab",
    "in_proj": "n, n", "conv": "rows, n", "out_proj": "n, n", "ssm_in": "n, rows", "ssm_out": "columns, n",
    "ssm_ba": "n, rows", "ssm_alpha": "n, rows", "ssm_beta": "n, rows", "inp_gate": "n, rows", "proj": "columns, n",
    "per_layer_model_proj": "n, rows",
}
BIASES = ("attn_q.bias", "attn_k.bias", "attn_v.bias")


def listed(value):
    return value if isinstance(value, list) else [value]


def at(value, layer):
    return value[layer] if isinstance(value, list) else value


def read_value(file, kind):
    if kind == STRING:
        return file.read(read_value(file, 10)).decode("utf8", "replace")
    if kind == ARRAY:
        kind, count = read_value(file, 4), read_value(file, 10)
        return [read_value(file, kind) for _ in range(count)]
    form = "<" + SCALARS[kind]
    return struct.unpack(form, file.read(struct.calcsize(form)))[0]


class Template:
    """A model's keys, without the tokenizer's, and tensors: sizes and type by name."""

    def __init__(self, path):
        self.keys, self.tensors = {}, {}
        types = {number: name for name, (number, _, _) in TYPES.items()}
        with open(path, "rb") as file:
            file.read(8)
            tensors, keys = read_value(file, 10), read_value(file, 10)
            for _ in range(keys):
                name = read_value(file, STRING)
                value = read_value(file, read_value(file, 4))
                self.keys[name] = value
            for _ in range(tensors):
                name = read_value(file, STRING)
                ne = [read_value(file, 10) for _ in range(read_value(file, 4))]
                self.tensors[name] = ne, types[read_value(file, 4)]
                read_value(file, 10)
        self.architecture = self.keys["general.architecture"]
        self.keys = {name.removeprefix(self.architecture + "."): value for name, value in self.keys.items()
                     if not name.startswith(("general.", "tokenizer."))}
        self.vocab = self.tensors["token_embd.weight"][0][1]
        self.layers = self.keys["block_count"] - self.keys.get("nextn_predict_layers", 0)
        heads = max(listed(self.keys.get("attention.head_count", 1)))
        self.head_dim = self.keys.get("attention.key_length", self.keys["embedding_length"] // max(heads, 1))

    def of_layer(self, layer):
        start = "blk.%d." % layer
        return {name[len(start):]: info for name, info in self.tensors.items() if name.startswith(start)}

    def is_recurrent(self, layer):
        return any("ssm_" in name for name in self.of_layer(layer))


def sizes(keys, layer, vocab, template):
    """Returns the sizes of a layer, or of the last one with attention for layer -1."""
    heads_of, n = keys.get("attention.head_count", 1), keys["embedding_length"]
    heads, key = at(heads_of, layer), keys.get("attention.key_length", n // max(1, *listed(heads_of)))
    windowed = at(keys.get("attention.sliding_window_pattern", False), layer) is True
    if windowed and "attention.key_length_swa" in keys:
        key = keys["attention.key_length_swa"]
    value, latent = key, keys.get("attention.kv_lora_rank", 0)
    if latent:
        split = "_mla" * ("attention.key_length_mla" in keys)
        key, value = keys["attention.key_length" + split], keys["attention.value_length" + split]
    ff = at(keys.get("feed_forward_length", 0), layer)
    expert_ff = keys.get("expert_feed_forward_length", ff)
    normed, gate = (template.tensors.get("blk.0.attn_%s.weight" % name, ([0, 0], 0))[0] for name in ("q_norm", "gate"))
    return {
        "n": n, "vocab": vocab, "heads": heads, "kv": at(keys.get("attention.head_count_kv", heads), layer),
        "key": key, "value": value, "rope": keys.get("rope.dimension_count", key), "latent": latent,
        "q_rank": keys.get("attention.q_lora_rank", 0), "ff": ff, "experts": keys.get("expert_count", 0),
        "expert_ff": expert_ff, "rows": 0, "columns": 0,
        "shared_ff": keys.get("expert_shared_feed_forward_length", keys.get("expert_shared_count", 1) * expert_ff),
        "rows_normed": normed[0] > template.head_dim,
        "head_gates": len(gate) == 2 and gate[1] == at(template.keys.get("attention.head_count", 0), 0),
    }


def resized(name, ne, old, new, is_recurrent):
    """Returns a tensor's sizes for a layer's new sizes."""
    part = name.rsplit(".", 1)[0].split(".")[-1] if name.endswith((".weight", ".bias", ".scale")) else name
    is_norm = "norm" in part and not part.startswith("ssm_")
    shape = SHAPES.get(name, SHAPES.get(part, "n" if is_norm else "rows")).split(", ")
    if name.endswith(".bias") and len(shape) > 1: # rows, of each expert
        shape = shape[1:]
    if is_recurrent and part in ("attn_qkv", "attn_gate"):
        shape = shape[:1] + ["rows"]
    result = []
    for size, text in itertools.zip_longest(ne, shape[:len(ne)], fillvalue="rows"):
        was = eval(text, {}, old)
        result.append(size // was * eval(text, {}, new) if was and size % was == 0 else size)
    return result


class RandomModel:
    """A header, by a generator of random numbers."""

    def __init__(self, template, rng):
        self.template, self.rng, self.keys = template, rng, dict(template.keys)
        self.vocab = rng.choice((33, 64, 128, 320))
        self.choose_layers()
        self.choose_heads()
        self.choose_feed_forward()
        self.choose_attention()
        self.types = {}
        self.tensors = self.make_tensors()

    def scaled(self, name, units, unit):
        """Replaces a key's number, or each number of its list, by a multiple of unit."""
        old = self.keys.get(name)
        if old is not None:
            new = {value: unit * self.rng.choice(units) if value else 0 for value in listed(old)}
            self.keys[name] = [new[value] for value in old] if isinstance(old, list) else new[old]

    def choose_layers(self):
        """Chooses the template's layer for each layer."""
        template, keys, rng = self.template, self.keys, self.rng
        old, lead = template.layers, keys.get("leading_dense_block_count", 0)
        interval = keys.get("full_attention_interval")
        layers = old if keys.get("attention.shared_kv_layers") else rng.randint(1, max(min(old + 1, MOST_LAYERS), 1))
        if lead:
            keys["leading_dense_block_count"] = rng.randint(0, layers - 1)
        if interval:
            layers = max(layers, 2)
            interval = keys["full_attention_interval"] = rng.randint(2, min(layers, 3))

        def fits(layer, of):
            return ((not lead or (of < lead) == (layer < keys["leading_dense_block_count"])) and
                    (not interval or template.is_recurrent(of) == ((layer + 1) % interval != 0)))

        self.sources = [rng.choice([of for of in range(old) if fits(layer, of)]) for layer in range(layers)]
        if keys.get("attention.shared_kv_layers"):
            self.sources = list(range(old))
        self.sources += range(old, keys["block_count"])
        for name, value in keys.items():
            if isinstance(value, list) and len(value) == keys["block_count"] and "sections" not in name:
                keys[name] = [value[of] for of in self.sources]
        keys["block_count"], self.layers = len(self.sources), layers

    def choose_heads(self):
        keys, rng = self.keys, self.rng
        if keys.get("ssm.inner_size") != 2 * keys["embedding_length"]: # some architectures fix this ratio
            keys["embedding_length"] = 32 * rng.randint(1, 8)
        if "attention.kv_lora_rank" in keys:
            self.choose_latent()
            return
        head, shrink = rng.choice((32, 64, 64, 96, 128, 48, 80)), rng.choice((1, 1, 1, 2))
        counts = [(kv, kv * rng.randint(1, 3)) for kv in (rng.randint(1, 3) for _ in self.sources)]
        own_kv, own_head = keys.get("attention.head_count_kv", 1), "attention.key_length" in keys
        if isinstance(own_kv, list) and not own_head: # the heads have embedding_length values
            heads = keys["attention.head_count"]
            divisors = [kv for kv in range(1, heads + 1) if heads % kv == 0]
            keys["attention.head_count_kv"] = [rng.choice(divisors) if kv else 0 for kv in own_kv]
            head = keys["embedding_length"] // heads
            counts = [(0, heads)]
        elif isinstance(own_kv, list) or (keys["attention.head_count"] and rng.random() < 0.3):
            own_head = True
            keys["attention.head_count_kv"] = [kv if at(own_kv, layer) else 0 for layer, (kv, _) in enumerate(counts)]
            keys["attention.head_count"] = [heads for _, heads in counts]
        elif keys["attention.head_count"]:
            keys["attention.head_count_kv"], keys["attention.head_count"] = counts[0]
        if not own_head and "ssm.inner_size" not in keys:
            keys["embedding_length"] = head * counts[0][1]
        old_head, old_rope = self.template.head_dim, keys.get("rope.dimension_count", 0)
        for ending in "", "_swa":
            size = max(head // (2 if ending else 1), 32)
            if own_head and (not ending or "attention.key_length_swa" in keys):
                keys["attention.key_length" + ending] = keys["attention.value_length" + ending] = size
            if "rope.dimension_count" + ending in keys:
                keys["rope.dimension_count" + ending] = max(size * old_rope // old_head // shrink // 2 * 2, 2)
        self.scale_sections()

    def scale_sections(self):
        old, pairs = self.keys.get("rope.dimension_sections"), self.keys.get("rope.dimension_count", 0) // 2
        if old:
            first, second = (pairs * part // sum(old) for part in old[:2])
            self.keys["rope.dimension_sections"] = [first, second, pairs - first - second, 0]

    def choose_latent(self):
        keys, rng = self.keys, self.rng
        heads, latent, rope = rng.randint(1, 4), 32 * rng.randint(1, 5), keys["rope.dimension_count"]
        key, value = rope + 32 * rng.randint(1, 3), 16 * rng.randint(1, 6)
        keys["attention.head_count"], keys["attention.kv_lora_rank"] = heads, latent
        if "attention.q_lora_rank" in keys:
            keys["attention.q_lora_rank"] = 32 * rng.randint(1, 4)
        if "attention.key_length_mla" in keys:
            keys["attention.key_length_mla"], keys["attention.value_length_mla"] = key, value
            key, value = latent + rope, latent
        else:
            keys["attention.head_count_kv"] = heads
        keys["attention.key_length"], keys["attention.value_length"] = key, value

    def choose_feed_forward(self):
        keys, rng, old = self.keys, self.rng, self.template.keys
        self.scaled("feed_forward_length", range(1, 6), 32)
        if not isinstance(old.get("feed_forward_length"), list) and "expert_count" not in keys and rng.random() < 0.3:
            keys["feed_forward_length"] = [32 * rng.randint(1, 5) for _ in self.sources]
        if not keys.get("expert_count"):
            return
        self.scaled("expert_feed_forward_length", range(1, 4), 32)
        if old.get("expert_feed_forward_length") == old["feed_forward_length"]:
            keys["expert_feed_forward_length"] = keys["feed_forward_length"]
        if "expert_shared_feed_forward_length" in keys:
            rows = keys["expert_feed_forward_length"] if "expert_shared_count" in keys else 32 * rng.randint(1, 3)
            keys["expert_shared_feed_forward_length"] = keys.get("expert_shared_count", 1) * rows
        groups = max(keys.get("expert_group_count", 1), 1)
        keys["expert_count"] = groups * rng.randint(2, 4)
        keys["expert_used_count"] = rng.randint(1, keys["expert_count"] // groups)

    def choose_attention(self):
        keys, rng = self.keys, self.rng
        if "attention.sliding_window" in keys:
            keys["attention.sliding_window"] = rng.choice((1, 5, 9, 16, 40))
            if rng.random() < 0.2 and not isinstance(keys.get("attention.sliding_window_pattern"), list):
                keys["attention.sliding_window_pattern"] = rng.choice((
                    rng.randint(1, 4), [rng.random() < 0.6 for _ in self.sources]))
        if rng.random() < 0.2 and "rope.freq_base" in keys:
            keys["rope.scaling.type"] = rng.choice(("none", "linear", "yarn"))
            keys.setdefault("rope.scaling.factor", 4.0)

    def pick_type(self, part, columns):
        """Returns the part's usual type, or another."""
        possible = [name for name, (_, values, _) in TYPES.items() if columns % values == 0]
        usual = self.types.setdefault(part, self.rng.choice(possible))
        return usual if usual in possible and self.rng.random() < 0.8 else self.rng.choice(possible)

    def make_tensors(self):
        """Returns name, sizes and type of all tensors."""
        rng, template, tensors = self.rng, self.template, []
        optional = ({"output.weight"}, {"rope_freqs.weight"}, set(BIASES), {"attn_q_norm.weight", "attn_k_norm.weight"})
        dropped = set().union(*(names for names in optional if rng.random() < 0.06))
        added = BIASES if rng.random() < 0.06 else ()

        def add(name, full, info, layer, of):
            new = sizes(self.keys, layer, self.vocab, template)
            old = sizes(template.keys, of, template.vocab, template)
            ne = resized(name, info[0], old, new, template.is_recurrent(max(of, 0)))
            if name not in dropped:
                tensors.append((full, ne, "F32" if info[1] == "F32" else self.pick_type(name, ne[0])))

        whole = {name: info for name, info in template.tensors.items() if not name.startswith("blk.")}
        if rng.random() < 0.2:
            whole.setdefault("output.weight", whole["token_embd.weight"])
        for name, info in whole.items():
            add(name, name, info, -1, -1)
        for layer, of in enumerate(self.sources):
            parts = template.of_layer(of)
            if "attn_q.weight" in parts:
                parts |= {name: (parts[name.replace("bias", "weight")][0][1:], "F32")
                          for name in BIASES if name in added and name.replace("bias", "weight") in parts}
            for name, info in parts.items():
                add(name, "blk.%d.%s" % (layer, name), info, layer, of)
        return tensors

    def header(self):
        prefix = self.template.architecture + "."
        keys = {name if name.startswith("xielu.") else prefix + name: value for name, value in self.keys.items()}
        return header_of({"general.architecture": self.template.architecture} | keys, self.tensors)[0]


def run(command):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
    return done.returncode, done.stdout, done.stderr


def check(ptxgen, model, rng, folder, name):
    """Returns "right", "refused: REASON" or "WRONG: OUTPUT"."""
    path, spec = (os.path.join(folder, name + ending) for ending in (".gguf", ".ini"))
    with open(path, "wb") as file:
        file.write(model.header())
    kv_type, steps = rng.choice(("f32", "f16", "bf16", "q8_0")), rng.choice(("1", "1", "1", "1, 3", "2", "4, 16"))
    status, text, errors = run([ptxgen, "--target", rng.choice(("sm_80", "sm_90", "sm_120")), "--max-seq-len",
                                rng.choice(("32", "64")), "--kv-type", kv_type, "--from-gguf", path])
    if status == 1 and "error: " in errors:
        return "refused: " + errors[errors.index("error: ") + 7:].split("\n")[0]
    if status:
        return "WRONG: --from-gguf ends with %d\n%s" % (status, errors)
    text = re.sub(r"(?m)^(m *=).*", r"\1 " + steps, text)
    with open(spec, "w") as file:
        file.write(text + "precision = %s\n" % rng.choice(("q8", "q8", "f32")))
    status, text, errors = run([ptxgen, "-j", "1", "--spec", spec, "--verify"])
    if status == 1 and "[E022]" in errors: # of the rows of a step
        return "refused: " + errors[errors.index("error: ") + 7:].split("\n")[0]
    return "WRONG: --verify ends with %d\n%s" % (status, text + errors) if status else "right"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("ptxgen")
    parser.add_argument("models")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--architecture")
    parser.add_argument("--keep")
    options = parser.parse_args()
    listed_names = re.search(r"--from-gguf supports ([^;]*);", run([options.ptxgen, "--list"])[1])[1].split(", ")
    templates = {}
    for path in sorted(glob.glob(os.path.join(options.models, "*.gguf"))):
        template = Template(path)
        if template.layers <= MOST_LAYERS + 3 and options.architecture in (None, template.architecture):
            templates.setdefault(template.architecture, []).append(template)
    names = [name for name in listed_names if name in templates]
    if not names:
        print("no models in %s: skipped" % options.models)
        sys.exit(77)
    counts = {"right": 0, "refused": 0, "WRONG": 0}
    with tempfile.TemporaryDirectory(prefix="ptxgen_headers_") as folder:
        for number in range(options.count):
            rng = random.Random("%d/%d" % (options.seed, number))
            architecture = names[(number + options.seed * options.count) % len(names)]
            model = RandomModel(rng.choice(templates[architecture]), rng)
            result = check(os.path.abspath(options.ptxgen), model, rng, options.keep or folder,
                           "header_%d_%d" % (options.seed, number))
            counts[result.split(":")[0]] += 1
            print("%d %s %s" % (number, architecture, result), flush=True)
    print(", ".join("%d %s" % (count, name) for name, count in counts.items()))
    sys.exit(counts["WRONG"] > 0 or counts["right"] < counts["refused"])


if __name__ == "__main__":
    main()
