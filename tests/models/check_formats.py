#!/usr/bin/env python3
"""Runs a trained model in every weight format and in mixes, and holds its logits to bounds.

    check_formats.py PTXGEN LIBCUDA_FOLDER SOURCE MODELS CONVERT REFERENCE [FORMAT[+BETTER] ...]

MODELS has stories260K.gguf, f32, and its greedy tokens. It is padded with zeros to super-blocks and
quantized (convert_model.c), goes through --from-gguf, the generated header and the emulated driver,
and is compared with the double-precision reference of the same file (reference_model.c). Exits
with 77 (skipped) where MODELS is not there. PTXGEN_TEST_SHARE=N leaves one format in N,
PTXGEN_TEST_POSITIONS so many of 24 positions, and the mixes always.

Bounds, of the largest difference of a logit (whose standard deviation is about 6):

  f32   2e-4: nothing is rounded but by f32 arithmetic, whatever the format
  q8    what rounding activations to 8 bits does to this model, by the reference in double: with E
        the largest difference and R the root mean square of the reference with 8 bits from that
        without, the kernels' logits are within 2 E, and their root mean square within 1.5 R, of
        the exact ones (and 2e-4 more). A kernel's product differs from the reference's by f32
        arithmetic alone, but a value next to the middle between two codes may round to the other,
        so that from there on its errors are another draw of the same kind

Tokens are the reference's wherever its lead over the second exceeds twice the bound, and those of
the unquantized model wherever that one's lead exceeds twice the bound and what the format does to
the logits at that position, measured by the reference.
"""
import concurrent.futures
import os
import sys
import tempfile

from check_models import Model, Tools, difference, numbers, run

FORMATS = """f32 f16 bf16 q4_0 q4_1 q5_0 q5_1 q8_0 q2_k q3_k q4_k q5_k q6_k iq2_xxs iq2_xs iq2_s iq3_xxs
    iq3_s iq1_s iq1_m iq4_nl iq4_xs tq1_0 tq2_0 mxfp4 nvfp4 q1_0 q2_0""".split()
# With every format in turn, a matrix each, there are all in one model.
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
        """Of each position the best token, and its lead over the second."""
        found = []
        for row in self.rows(logits):
            best = max(range(self.vocab), key=row.__getitem__)
            found.append((best, row[best] - max(row[:best] + row[best + 1:])))
        return found

    def tokens_agree(self, got, expected, bounds):
        """Where a lead exceeds twice a bound; and how many positions those are."""
        sure = [(a, b) for (a, _), (b, lead), bound in
                zip(self.leads(got), self.leads(expected), bounds) if lead > 2 * bound]
        return all(a == b for a, b in sure), len(sure)

    def check(self, name):
        """What is said of a format, with whether it is right."""
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
