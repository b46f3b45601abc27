#!/usr/bin/env python3
"""Runs models through the generated header and the emulated driver, and compares logits.

    check_models.py PTXGEN LIBCUDA_FOLDER SOURCE MODELS NAME [CASE ...]

MODELS has NAME.gguf with logits in double (see its README). CASES: f32, f16, bf16, q8_0 (the cache's
type, nothing else rounded), q8 (activations rounded to 8 bits); all where none is named, and where there are turns
(PTXGEN_TEST_TURN) of rounded ones those that have theirs. prompt: steps of many rows, on tensor cores. ring,
ring_f16, ...: of a model with a window, caches that are rings give the bits of whole ones, with each type
of cache or with one. Exits with 77 (skipped) where MODELS is not there.

For each case the largest difference of a logit and the root of the mean square are printed beside
their bounds; logits of tokens fed one by one and eight by eight have to be the same to the bit.
"""
import array
import json
import math
import os
import re
import subprocess
import sys
import tempfile

# Largest and root mean square, on logits whose standard deviation is 2 to 4: of what the f32
# arithmetic of all layers does, and of K and V that round to the other side.
BOUNDS = {"f32": (2e-4, 2e-5), "f16": (1e-2, 1e-3), "bf16": (1e-2, 1e-3), "q8_0": (6e-2, 5e-3)}
# With 8-bit activations: the root mean square of llama.cpp's own kernels, from the models' README. What
# rounding adds to these logits is noise: two ways that are as good differ by some percent.
OWN_KERNELS = {"llama": 0.14, "llama_bias": 0.14, "llama_types": 0.22, "qwen2": 0.12, "qwen3": 0.16,
               "gemma2": 0.11, "gemma3": 0.23, "phi3": 0.27, "granite": 0.07, "mistral3": 0.20,
               "stories260K_q4": 0.10, "mixtral": 0.19, "qwen3moe": 0.20, "gpt_oss": 0.14,
               "granitemoe": 0.25, "deepseek2": 0.67, "qwen3next": 0.39}
WITH_EXPERTS = ("mixtral", "qwen3moe", "gpt_oss", "granitemoe", "deepseek2", "qwen3next")
MOST_OF_OWN = 1.1
# Of that what products of f16 leave, which have three bits more. llama_types has gates and ups of different formats,
# whose x is rounded to 8 bits.
HALVES_OF_OWN = {None: 1 / 8, "llama_types": 1 / 2}
KV_CASES = ("f16", "bf16", "q8_0")


def run(command, **options):
    done = subprocess.run(command, capture_output=True, text=True, **options)
    if done.returncode:
        sys.exit("FAILED: %s\n%s%s" % (" ".join(command), done.stdout, done.stderr))
    return done.stdout


def numbers(path, kind):
    values = array.array(kind)
    with open(path, "rb") as file:
        values.frombytes(file.read())
    return values


class Model:
    """One model, generated for one case: a folder with its header and program."""

    def __init__(self, tools, name, case, context, m="1, 8", lines=""):
        self.tools, self.name = tools, name
        self.folder = tempfile.TemporaryDirectory(prefix="ptxgen_model_")
        self.gguf = os.path.join(tools.models, name + ".gguf")
        spec = run([tools.ptxgen, "--from-gguf", self.gguf])
        spec = re.sub(r"(?m)^(max_seq_len *=).*", r"\1 %d" % context, spec)
        rounds = case in ("q8", "prompt")
        spec = re.sub(r"(?m)^(kv_type *=).*", r"\1 " + ("f32" if rounds else case), spec)
        spec = re.sub(r"(?m)^(m *=).*", r"\1 " + m, spec)
        spec += lines + "logits = all\nprecision = %s\n" % ("q8" if rounds else "f32")
        self.spec = self.path("model.ini")
        with open(self.spec, "w") as file:
            file.write(spec)
        run([tools.ptxgen, "-q", "--spec", self.spec, "--out", self.folder.name])
        # Not optimized: the header is large, and the time goes to the emulator.
        run(["cc", "-O0", "-I" + self.folder.name, "-I" + tools.source + "/src",
             "-I" + tools.source + "/src/gguf", "-o", self.path("run"),
             tools.source + "/tests/models/run_model.c"] + tools.gguf_objects() +
            ["-L" + tools.libcuda, "-l:libcuda.so.1", "-ldl"])

    def path(self, name):
        return os.path.join(self.folder.name, name)

    def logits(self, tokens, most, greedy=0):
        with open(self.path("tokens"), "w") as file:
            file.write(" ".join(map(str, tokens)))
        said = run([self.path("run"), self.gguf, self.path("tokens"), self.path("logits"),
                    str(most), str(greedy)],
                   env=dict(os.environ, LD_LIBRARY_PATH=self.tools.libcuda))
        return numbers(self.path("logits"), "f"), [int(token) for token in said.split()]


def has_turn(name, number, turns=2):
    """Whether it is the turn of a model's part of this number; without turns it always is."""
    turn = os.environ.get("PTXGEN_TEST_TURN")
    return turn is None or (int(turn) + list(OWN_KERNELS).index(name) + number) % turns == 0


def difference(got, expected):
    errors = [abs(a - b) for a, b in zip(got, expected)]
    worst = math.inf if any(math.isnan(e) for e in errors) else max(errors)
    return worst, math.sqrt(sum(e * e for e in errors) / len(errors))


def calm_rows(got, golden, vocab):
    """The three quarters of the rows that differ least: where rounding chose another expert, logits differ by
    as much as logits do, which says nothing of the kernels."""
    starts = range(0, len(got), vocab)
    rows = sorted(((got[i:i + vocab], golden[i:i + vocab]) for i in starts), key=lambda row: difference(*row)[1])
    kept = rows[:len(rows) * 3 // 4]
    return [x for row in kept for x in row[0]], [x for row in kept for x in row[1]]


class Tools:
    def __init__(self, ptxgen, libcuda, source, models):
        self.ptxgen, self.libcuda = os.path.abspath(ptxgen), os.path.abspath(libcuda)
        self.source, self.models = os.path.abspath(source), os.path.abspath(models)
        self.failed = False
        self.objects = None

    def gguf_objects(self):
        """The GGUF reader: of the library beside ptxgen, or compiled once for all models."""
        library = os.path.join(os.path.dirname(self.ptxgen), "libptxgen-core.a")
        if os.path.exists(library):
            return [library]
        if not self.objects:
            folder, source = tempfile.mkdtemp(prefix="ptxgen_gguf_"), self.source + "/src/gguf/"
            files = sorted(file for file in os.listdir(source) if file.endswith(".c"))
            run(["cc", "-O1", "-c", "-I" + self.source + "/src"] + [source + f for f in files],
                cwd=folder)
            self.objects = [os.path.join(folder, file[:-2] + ".o") for file in files]
        return self.objects

    def judge(self, said, right):
        self.failed |= not right
        print("%s  %s" % ("ok    " if right else "WRONG ", said))


def check(tools, name, case):
    """The golden logits of every position, or of those with a rounded cache."""
    with open(os.path.join(tools.models, name + ".json")) as file:
        facts = json.load(file)
    vocab, tokens = facts["vocab"], facts["tokens"]
    golden = numbers(os.path.join(tools.models, name + ".logits.f64"), "d")
    model = Model(tools, name, case, facts["context"])
    expected_greedy = facts["greedy"] if case == "f32" else []
    got, greedy = model.logits(tokens, 1, len(expected_greedy))
    eight, greedy_of_eight = model.logits(tokens, 8, len(expected_greedy[:4]))
    tools.judge("%s %s: alone and as one of eight the same bits" % (name, case), got == eight)
    if case in KV_CASES:
        index = facts["kv_types"].index(case)
        rounded = numbers(os.path.join(tools.models, name + ".kv.f64"), "d")
        rows = facts["kv_positions"]
        golden = rounded[index * len(rows) * vocab:(index + 1) * len(rows) * vocab]
        got = array.array("f", [x for row in rows for x in got[row * vocab:(row + 1) * vocab]])
    if case == "q8" and "router_gaps" in facts:
        got, golden = calm_rows(got, golden, vocab)
    worst, rms = difference(got, golden)
    if case == "q8":
        bound, rms_bound = math.inf, MOST_OF_OWN * OWN_KERNELS[name]
    else:
        bound, rms_bound = BOUNDS[case]
    tools.judge("%s %s: worst %.2g of %.2g, rms %.3g of %.2g" %
                (name, case, worst, bound, rms, rms_bound), worst <= bound and rms <= rms_bound)
    if case == "f32":
        tools.judge("%s %s: greedy tokens" % (name, case),
                    greedy == expected_greedy and greedy_of_eight == expected_greedy[:4])


def check_rings(tools, name, types):
    """A text four times as long as the window and more, one token a step and eight."""
    with open(os.path.join(tools.models, name + ".json")) as file:
        facts = json.load(file)
    context = 64
    text = (facts["tokens"] * 2)[:context]
    for kv in types:
        whole = Model(tools, name, kv, context, lines="window_cache = full\n")
        rings = Model(tools, name, kv, context, lines="window_cache = ring\n")
        for most in (1, 8):
            same = whole.logits(text, most)[0] == rings.logits(text, most)[0]
            tools.judge("%s %s: %d tokens, %d a step, rings give the bits of whole caches" %
                        (name, kv, context, most), same)


def check_prompt(tools, name):
    """Steps on tensor cores, of 16 rows and of 64: the golden logits, and the same bits of both. With nothing rounded
    as many rows have the bits of one. The latter two take turns."""
    with open(os.path.join(tools.models, name + ".json")) as file:
        facts = json.load(file)
    vocab, tokens = facts["vocab"], facts["tokens"]
    golden = numbers(os.path.join(tools.models, name + ".logits.f64"), "d")
    model = Model(tools, name, "prompt", facts["context"], "16, 64")
    got = model.logits(tokens, 64)[0]
    worst, rms = difference(got, golden)
    bound = HALVES_OF_OWN.get(name, HALVES_OF_OWN[None]) * OWN_KERNELS[name]
    tools.judge("%s prompt: worst %.2g, rms %.3g of %.2g" % (name, worst, rms, bound), rms <= bound)
    if has_turn(name, 0):
        tools.judge("%s prompt: in steps of 16 the same bits" % name, model.logits(tokens, 16)[0] == got)
    if name in WITH_EXPERTS or not has_turn(name, 1): # which are not exact by so many rows
        return
    few = tokens[:20]
    exact = Model(tools, name, "f32", facts["context"], "1, 64")
    same = exact.logits(few, 64)[0] == exact.logits(few, 1)[0]
    tools.judge("%s prompt: with nothing rounded the bits of single tokens" % name, same)


def main():
    tools = Tools(*sys.argv[1:5])
    name, cases = sys.argv[5], sys.argv[6:] or list(BOUNDS) + ["q8"]
    if not os.path.exists(os.path.join(tools.models, name + ".gguf")):
        print("no %s.gguf in %s: skipped" % (name, tools.models))
        sys.exit(77)
    for case in cases:
        if case == "prompt":
            check_prompt(tools, name)
        elif case.startswith("ring"):
            check_rings(tools, name, [case[5:]] if case[5:] else ("f32",) + KV_CASES)
        elif case == "f32" or has_turn(name, cases.index(case)):
            check(tools, name, case)
    sys.exit(tools.failed)


if __name__ == "__main__":
    main()
