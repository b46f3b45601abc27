"""Runs a model's program and judges its logits. Shared by check_models.py and run_models.py of the GPU kit.

A model's facts are in MODEL.json: tokens and properties. Bounds limit the largest difference of a logit and the root
mean square. Tokens fed one by one and eight by eight must give the same bits. A check yields what it tested, the
verdict, and the difference.
"""
import itertools
import math
import os
import subprocess
import sys
import tempfile
from array import array

# Largest difference and root mean square, for logits whose standard deviation is 2 to 4. They bound the rounding of f32
# arithmetic in all layers, and of K and V values that round the other way.
BOUNDS = {"f32": (2e-4, 2e-5), "f16": (1e-2, 1e-3), "bf16": (1e-2, 1e-3), "q8_0": (6e-2, 5e-3)}
# Models whose logits change by more if K and V differ by 1e-6 of their row's largest value before they are rounded: the
# largest of five such runs of the reference. A latent is the key and the value of all heads; 64 layers add up.
WIDER_BOUNDS = {name: {"bf16": (2e-2, 5e-3)} for name in ("deepseek2", "deepseek2_kvb", "deepseek2_lite", "mistral4")}
WIDER_BOUNDS["afmoe"] = {"f16": (1e-2, 1.7e-3), "bf16": (3e-2, 8.1e-3)}
WIDER_BOUNDS["exaone4_64"] = {"f16": (1.9e-2, 4.4e-3), "bf16": (1e-1, 2.5e-2), "q8_0": (2.2e-1, 3.7e-2)}
WIDER_BOUNDS["stories260K_q4"] = {"bf16": (4.1e-2, 6.2e-3)}
# With 8-bit activations: the root mean square of llama.cpp's kernels, from the models' README. Rounding adds noise to
# these logits, so two equally good methods differ by some percent. This is also the list of tested models.
OWN_KERNELS = {
    "llama": 0.14,
    "llama_bias": 0.14,
    "llama_types": 0.22,
    "qwen2": 0.12,
    "qwen3": 0.16,
    "gemma2": 0.11,
    "gemma3": 0.23,
    "phi3": 0.27,
    "granite": 0.07,
    "mistral3": 0.20,
    "stories260K_q4": 0.10,
    "mixtral": 0.19,
    "qwen3moe": 0.20,
    "gpt_oss": 0.14,
    "granitemoe": 0.25,
    "deepseek2": 0.67,
    "qwen3next": 0.39,
    "qwen35": 0.17,
    "qwen35moe": 0.09,
    "seed_oss": 0.10,
    "deepseek2_kvb": 0.35,
    "deepseek2_lite": 0.31,
    "mistral4": 0.29,
    "internlm2": 0.12,
    "ernie4_5": 0.15,
    "ernie4_5_moe": 0.15,
    "glm4moe": 0.27,
    "glm4": 0.08,
    "glm4_sections": 0.11,
    "glm4moe_mtp": 0.09,
    "dots1": 0.46,
    "bailingmoe2": 0.41,
    "minicpm": 0.14,
    "exaone4": 0.13,
    "exaone4_64": 0.14,
    "smollm3": 0.22,
    "afmoe": 0.34,
    "muse_glimmer": 0.11,
    "cohere2": 0.09,
    "gemma4": 0.18,
    "gemma4_moe": 0.13,
    "gemma4_ple": 0.42,
    "cohere2moe": 0.16,
    "gemma": 0.16,
    "gemma1": 0.14,
    "qwen2moe": 0.22,
    "qwen3vl": 0.20,
    "qwen3vlmoe": 0.50,
    "olmo2": 0.07,
    "olmo3": 0.12,
    "hunyuan_dense": 0.14,
    "hunyuan_moe": 0.41,
    "hy_v3": 0.57,
    "minimax_m2": 0.74,
    "arcee": 0.11,
    "apertus": 0.08,
    "step35": 0.19,
    "lfm2": 0.16,
    "lfm2moe": 0.18,
    "nemotron_h": 0.19,
    "falcon_h1": 0.09,
    "granitehybrid": 0.10,
    "nemotron_h_moe": 0.62,
    "mamba2": 0.06,
    "mamba": 0.14,
}
MOST_OF_OWN = 1.1
# The share of it that remains with f16 products, which have three more bits. In llama_types, gate and up have different
# formats, and their x is rounded to 8 bits.
HALVES_OF_OWN = {None: 1 / 8, "llama_types": 1 / 2}
KV_CASES = ("f16", "bf16", "q8_0")


def run(command, **options):
    """Returns the standard output. Raises SystemExit with the error."""
    done = subprocess.run(command, capture_output=True, text=True, **options)
    if done.returncode:
        sys.exit("FAILED: %s: status %d\n%s%s" % (" ".join(command), done.returncode, done.stdout, done.stderr))
    return done.stdout


def numbers(path, kind):
    values = array(kind)
    with open(path, "rb") as file:
        values.frombytes(file.read())
    return values


class Program:
    """A program that runs a model's step: run_model with the header of one case."""

    def __init__(self, path, gguf, env=None):
        self.program, self.gguf, self.env = path, gguf, env

    def logits(self, tokens, most, greedy=0, timeout=None):
        """Feeds tokens in steps of at most `most`. Returns their logits, and the `greedy` following tokens."""
        with tempfile.TemporaryDirectory(prefix="ptxgen_logits_") as folder:
            paths = [os.path.join(folder, file) for file in ("tokens", "logits")]
            with open(paths[0], "w") as file:
                file.write(" ".join(map(str, tokens)))
            said = run([self.program, self.gguf] + paths + [str(most), str(greedy)], env=self.env, timeout=timeout)
            return numbers(paths[1], "f"), [int(token) for token in said.split()]


def takes(name, number, step=2):
    """Returns True if a model's check with this number runs: one in `step`, or all in tier full."""
    full = os.environ.get("PTXGEN_TEST_TIER") == "full"
    return full or (list(OWN_KERNELS).index(name) + number) % step == 0


def difference(got, expected):
    errors = [abs(a - b) for a, b in zip(got, expected)]
    worst = math.inf if any(math.isnan(e) for e in errors) else max(errors)
    return worst, math.sqrt(sum(e * e for e in errors) / len(errors))


def place(got, golden, vocab, positions=None):
    """Returns the place of the largest difference between two lists of logits, NaN first, with both values."""
    if len(got) != len(golden) or not got:
        return "%d logits, expected %d" % (len(got), len(golden))
    errors = [math.inf if math.isnan(a - b) else abs(a - b) for a, b in zip(got, golden)]
    at = max(range(len(errors)), key=errors.__getitem__)
    position = positions[at // vocab] if positions else at // vocab
    return "position %d, token %d: %.9g, expected %.9g" % (position, at % vocab, got[at], golden[at])


def calm_positions(got, golden, vocab):
    """Returns the three quarters of the positions that differ least. Where rounding chose another expert, logits are
    unrelated, which is not the kernels' fault.
    """
    def rms(position):
        return difference(rows_of(got, vocab, [position]), rows_of(golden, vocab, [position]))[1]
    positions = sorted(range(len(golden) // vocab), key=rms)
    return positions[:len(positions) * 3 // 4]


def rows_of(logits, vocab, positions):
    return [x for position in positions for x in logits[position * vocab:(position + 1) * vocab]]


def same_bits(said, got, expected, vocab):
    return said, got == expected, place(got, expected, vocab)


def within(said, got, golden, vocab, bounds, positions=None):
    if len(got) != len(golden):
        return said, False, place(got, golden, vocab)
    worst, rms = difference(got, golden)
    most = "" if math.isinf(bounds[0]) else " of %.2g" % bounds[0]
    return ("%s: worst %.2g%s, rms %.3g of %.2g" % (said, worst, most, rms, bounds[1]),
            worst <= bounds[0] and rms <= bounds[1], place(got, golden, vocab, positions))


def same_tokens(said, got, expected):
    pairs = enumerate(itertools.zip_longest(got, expected, fillvalue="none"))
    first = next((at, *pair) for at, pair in pairs if pair[0] != pair[1]) if got != expected else ()
    return said, got == expected, "token %d: %s, expected %s" % first if first else ""


def check_case(program, facts, name, case, golden, positions=None, timeout=None):
    """Checks the golden logits of every position, or of some."""
    vocab, tokens, said = facts["vocab"], facts["tokens"], "%s %s: " % (name, case)
    expected = facts["greedy"] if case == "f32" else []
    got, greedy = program.logits(tokens, 1, len(expected), timeout)
    eight, greedy_of_eight = program.logits(tokens, 8, len(expected[:4]), timeout)
    yield same_bits(said + "alone and as one of eight the same bits", eight, got, vocab)
    bounds = BOUNDS[case] if case in BOUNDS else (math.inf, MOST_OF_OWN * OWN_KERNELS[name])
    bounds = WIDER_BOUNDS.get(name, {}).get(case, bounds)
    if case == "q8" and "router_gaps" in facts and len(got) == len(golden):
        positions = calm_positions(got, golden, vocab)
        golden = rows_of(golden, vocab, positions)
    if positions:
        got = rows_of(got, vocab, positions)
    yield within(said + "logits", got, golden, vocab, bounds, positions)
    if expected:
        yield same_tokens(said + "greedy tokens", greedy, expected)
        yield same_tokens(said + "greedy tokens after steps of eight", greedy_of_eight, expected[:4])


def check_story(program, facts, name, most, timeout=None):
    """Checks the first `most` tokens of each part of a trained model's text. A launch of a graph makes each token."""
    for part in facts["story"]:
        tokens = part["tokens"][:most]
        told = program.logits(part["prompt"], 8, len(tokens), timeout)[1]
        yield same_tokens("%s story: tokens after %d" % (name, len(part["prompt"])), told, tokens)


def check_prompt(program, facts, name, golden, timeout=None):
    """Checks steps on tensor cores: 64 rows and, for every second model, 16 rows, which must give the same bits."""
    vocab, tokens, said = facts["vocab"], facts["tokens"], "%s prompt: " % name
    got = program.logits(tokens, 64, 0, timeout)[0]
    with open(program.program, "rb") as file:  # its kernels' names
        by_bytes = b"mma_q8" in file.read()
    bound = (MOST_OF_OWN if by_bytes else HALVES_OF_OWN.get(name, HALVES_OF_OWN[None])) * OWN_KERNELS[name]
    may_move = by_bytes and "router_gaps" in facts and len(got) == len(golden)
    calm = calm_positions(got, golden, vocab) if may_move else range(len(golden) // vocab)
    yield within(said + "logits", rows_of(got, vocab, calm), rows_of(golden, vocab, calm), vocab, (math.inf, bound), calm)
    if takes(name, 0):
        yield same_bits(said + "in steps of 16 the same bits", program.logits(tokens, 16, 0, timeout)[0], got, vocab)


if __name__ == "__main__":
    print(*OWN_KERNELS)
