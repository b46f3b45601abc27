#!/usr/bin/env python3
"""Runs a trained model in every weight format and in mixes, and compares its logits with the reference's.

    check_formats.py PTXGEN LIBCUDA_FOLDER SOURCE MODELS CONVERT REFERENCE [FORMAT[+BETTER] ...]

MODELS has stories260K.gguf, f32, and its greedy tokens. It is padded with zeros to super-blocks and quantized
(convert_model.c), goes through --from-gguf, the generated header and the emulated driver, and is compared with the
double-precision reference of the same file (reference_model.c). Exits with 77 (skipped) without MODELS.
PTXGEN_TEST_SHARE=N runs one format in N, and all mixes. PTXGEN_TEST_POSITIONS limits the 24 positions.

Bounds of the largest difference of a logit (whose standard deviation is about 6):

  f32   2e-4: only f32 arithmetic rounds, in every format
  q8    the effect of 8-bit activations on this model, from the reference in double. E is the largest difference and R the
        root mean square between the reference with 8-bit activations and without. The kernels' logits are within 2 E, and
        their root mean square within 1.5 R, of the exact ones (plus 2e-4). A kernel's product differs from the
        reference's only by f32 arithmetic. But a value near the middle between two codes may round to the other, and
        later errors are then another sample of the same distribution.

Tokens must be the reference's where its lead over the second token exceeds twice the bound. They must be the
unquantized model's where that lead exceeds twice the bound plus the format's effect on the logits, as measured by the
reference.
"""
import concurrent.futures
import os
import sys
import tempfile

from check_models import Model, Tools, difference, numbers, run

FORMATS = """f32 f16 bf16 q4_0 q4_1 q5_0 q5_1 q8_0 q2_k q3_k q4_k q5_k q6_k iq2_xxs iq2_xs iq2_s iq3_xxs
    iq3_s iq1_s iq1_m iq4_nl iq4_xs tq1_0 tq2_0 mxfp4 nvfp4 q1_0 q2_0""".split()
# "every" uses all formats in turn, one per matrix, in one model.
MIXES = ["every", "q4_k+q6_k", "q5_k+q6_k", "q3_k+q5_k", "iq3_xxs+q4_k"]
F32_BOUND = 2e-4
POSITIONS = int(os.environ.get("PTXGEN_TEST_POSITIONS", 24))
AT_ONCE = 8


class Stories:
    def __init__(self, tools, convert, reference):
        self.tools, self.convert, self.reference = tools, convert, reference
        self.source = os.path.join(tools.models, "stories260K.gguf")
        with open(os.path.join(tools.models, "stories260K.greedy_tokens.txt")) as file:
            self.golden = [int(line.split()[1]) for line in file if not line.startswith("#")]
        self.golden = self.golden[:POSITIONS]
        self.tokens = [1] + self.golden[:-1]
        tools.models = tempfile.mkdtemp(prefix="ptxgen_formats_")
        with open(self.path("tokens"), "w") as file:
            file.write(" ".join(map(str, self.tokens)))
        self.make("f32")
        self.exact = self.logits_in_double("f32", "f32")
        self.vocab = len(self.exact) // POSITIONS
        self.tools.judge("f32: the reference gives llama2.c's tokens",
                         [best for best, _ in self.leads(self.exact)] == self.golden)

    def path(self, name):
        return os.path.join(self.tools.models, name)

    def make(self, name):
        run([self.convert, self.source, self.path(name + ".gguf")] + name.split("+"))

    def logits_in_double(self, name, precision):
        logits = self.path(name + "." + precision)
        run([self.reference, self.path(name + ".gguf"), self.path("tokens"), logits, precision])
        return numbers(logits, "d")

    def rows(self, logits):
        return [logits[i:i + self.vocab] for i in range(0, len(logits), self.vocab)]

    def leads(self, logits):
        """Returns each position's best token, and its lead over the second."""
        found = []
        for row in self.rows(logits):
            best = max(range(self.vocab), key=row.__getitem__)
            found.append((best, row[best] - max(row[:best] + row[best + 1:])))
        return found

    def tokens_agree(self, got, expected, bounds):
        """Returns True if tokens agree where a lead exceeds twice its bound, and the number of these positions."""
        sure = [(a, b) for (a, _), (b, lead), bound in
                zip(self.leads(got), self.leads(expected), bounds) if lead > 2 * bound]
        return all(a == b for a, b in sure), len(sure)

    def check(self, name):
        """Returns the report on a format, and True if it is right."""
        self.make(name)
        exact = self.logits_in_double(name, "f32")
        rounded = self.logits_in_double(name, "q8")
        step = [difference(a, b)[0] for a, b in zip(self.rows(exact), self.rows(self.exact))]
        by_format, by_8_bits = difference(exact, self.exact), difference(rounded, exact)
        bounds = {"f32": (F32_BOUND, F32_BOUND),
                  "q8": (F32_BOUND + 2 * by_8_bits[0], F32_BOUND + 1.5 * by_8_bits[1])}
        said = ["%s: its logits are %.2g (rms %.2g) from the unquantized model's; 8 bits move them "
                "by %.2g (rms %.2g)" % ((name,) + by_format + by_8_bits)]
        right = [True]
        for case, (bound, rms_bound) in bounds.items():
            model = Model(self.tools, name, case, POSITIONS, "1, %d" % AT_ONCE)
            got, _ = model.logits(self.tokens, AT_ONCE)
            worst, rms = difference(got, exact)
            same, sure = self.tokens_agree(got, exact, [bound] * POSITIONS)
            told, told_sure = self.tokens_agree(got, self.exact, [bound + each for each in step])
            equal = sum(a == b for (a, _), (b, _) in zip(self.leads(got), self.leads(exact)))
            said.append("%s %s: worst %.2g of %.2g, rms %.2g of %.2g; %d of %d tokens equal, %d "
                        "have to be, %d of the unquantized model's" %
                        (name, case, worst, bound, rms, rms_bound, equal, POSITIONS, sure,
                         told_sure))
            right.append(worst <= bound and rms <= rms_bound and same and told)
        return zip(said, right)


def main():
    tools = Tools(*sys.argv[1:5])
    if not os.path.exists(os.path.join(tools.models, "stories260K.gguf")):
        print("no stories260K.gguf in %s: skipped" % tools.models)
        sys.exit(77)
    with tempfile.TemporaryDirectory(prefix="ptxgen_formats_") as tempfile.tempdir:
        stories = Stories(tools, os.path.abspath(sys.argv[5]), os.path.abspath(sys.argv[6]))
        tools.gguf_objects()
        full = os.environ.get("PTXGEN_TEST_TIER") == "full"
        share = 1 if full else int(os.environ.get("PTXGEN_TEST_SHARE", 1))
        names = sys.argv[7:] or MIXES + FORMATS[::share]
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as workers:
            for lines in workers.map(stories.check, names):
                for said, right in lines:
                    tools.judge(said, right)
    sys.exit(tools.failed)


if __name__ == "__main__":
    main()
