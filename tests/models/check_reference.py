#!/usr/bin/env python3
"""Compares the double-precision reference of a step with golden values of whole models.

    check_reference.py REFERENCE MODELS NAME...

MODELS has NAME.gguf with logits, hidden states, logits with a rounded cache and the routers' gaps, all in double (see
its README). REFERENCE is reference_model. Exits with 77 (skipped) without MODELS.

Both are in double. The remaining difference comes from numbers in the file's keys: the reference reads an f32 such as
0.22 as the decimal number it was written from, 5e-8 away from the f32 that the golden values use.
"""
import array
import json
import math
import os
import sys
import tempfile

from check_models import BOUNDS, KV_CASES, difference, numbers, run

EXACT = 1e-5
# Some cached values of these models are so close to ties that the reference rounds them the other way.
TIES = ("deepseek2_lite", "minicpm", "afmoe")


class Reference:
    def __init__(self, program, models, name, folder):
        self.program, self.name, self.folder, self.failed = program, name, folder, False
        self.base = os.path.join(models, name)
        with open(self.base + ".json") as file:
            self.facts = json.load(file)

    def run(self, tokens, case):
        """Checks logits, hidden states, and routers' gaps."""
        paths = [os.path.join(self.folder, what) for what in ("tokens", "logits", "hidden", "gaps")]
        with open(paths[0], "w") as file:
            file.write(" ".join(map(str, tokens)))
        run([self.program, self.base + ".gguf", paths[0], paths[1], case] + paths[2:])
        return [numbers(path, "d") for path in paths[1:]]

    def golden(self, what):
        return numbers(self.base + "." + what + ".f64", "d")

    def judge(self, what, got, expected, bound):
        worst, rms = difference(got, expected)
        right = len(got) == len(expected) and worst <= bound
        self.failed |= not right
        print("%s %s %s: worst %.2g of %.2g, rms %.2g" %
              ("ok    " if right else "WRONG ", self.name, what, worst, bound, rms))


def rows(values, size, numbers_of_rows):
    return array.array("d", [x for row in numbers_of_rows
                             for x in values[row * size:(row + 1) * size]])


def greedy_tokens(logits, size, positions):
    return [max(range(size), key=logits[p * size:(p + 1) * size].__getitem__) for p in positions]


def check(reference):
    facts = reference.facts
    vocab, tokens, greedy = facts["vocab"], facts["tokens"], facts["greedy"]
    logits, hidden, gaps = reference.run(tokens + greedy, "f32")
    reference.judge("logits", logits[:len(tokens) * vocab], reference.golden("logits"), EXACT)
    reference.judge("hidden states",
                    rows(hidden, (facts["layers"] + 1) * facts["width"], facts["hidden_positions"]),
                    reference.golden("hidden"), EXACT)
    got = greedy_tokens(logits, vocab, range(len(tokens) - 1, len(tokens) + len(greedy) - 1))
    reference.judge("greedy tokens", got, greedy, 0)
    if facts.get("router_gaps"):
        reference.judge("gaps of routers", gaps, facts["router_gaps"], EXACT)
    if not os.path.exists(reference.base + ".kv.f64"):
        return # a model without attention
    golden, positions = reference.golden("kv"), facts["kv_positions"]
    for case in KV_CASES:
        index, size = facts["kv_types"].index(case), len(positions) * vocab
        reference.judge(case, rows(reference.run(tokens, case)[0], vocab, positions),
                        golden[index * size:(index + 1) * size],
                        BOUNDS[case][0] if reference.name in TIES else EXACT)


def main():
    program, models, names = os.path.abspath(sys.argv[1]), sys.argv[2], sys.argv[3:]
    names = [name for name in names if os.path.exists(os.path.join(models, name + ".gguf"))]
    if not names:
        print("no such models in %s: skipped" % models)
        sys.exit(77)
    failed = False
    with tempfile.TemporaryDirectory(prefix="ptxgen_reference_") as folder:
        for name in names:
            reference = Reference(program, models, name, folder)
            check(reference)
            failed |= reference.failed
    sys.exit(failed)


if __name__ == "__main__":
    main()
