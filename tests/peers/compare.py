#!/usr/bin/env python3
"""Compares the logits of models, run by their generated headers, with those of llama.cpp's library.

    compare.py PTXGEN LIBCUDA_FOLDER SOURCE MODELS LLAMA_LOGITS LLAMA_FOLDER [NAME ...]

Both read the same files, and get the same tokens one by one, with f32 caches. llama.cpp uses its kernels for the CPU,
which round activations to 8 bits; ours run with precision = q8 and f32. MODELS has golden logits in double (see its
README). Prints a row per model: root mean squares of ours and llama.cpp's against the golden logits and against each
other, the number of positions whose largest logit is the golden token's, and the number of greedy tokens until one
differs.

The library is that of the npm package, or of another LLAMA_FOLDER:
    npm install --prefix SOURCE @node-llama-cpp/linux-x64@3.22.1
Exits with 77 (skipped) without MODELS or the library.
"""
import json
import os
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "models"))
import check_models
from check_models import difference, numbers

NAMES = list(check_models.OWN_KERNELS) + ["stories260K_q4"]
IN_PACKAGE = "node_modules/@node-llama-cpp/linux-x64/bins/linux-x64"
SKIPPED, NO_LIBRARY = 77, 3

HEAD = """\
| model | q8 | llama.cpp | between | f32 worst | f32 | tokens q8 | tokens llama.cpp | greedy q8 | \
greedy llama.cpp |
|---|---|---|---|---|---|---|---|---|---|"""
ROW = "| %s | %.3f | %.3f | %.3f | %.1e | %.1e | %d of %d | %d of %d | %d of %d | %d of %d |"


def skip(why):
    print(why + ": skipped")
    sys.exit(SKIPPED)


def find_library(folder, source):
    """Returns the folder of llama.cpp's library: the named one, or the npm package's."""
    places = [folder] if folder else [os.path.join(top, IN_PACKAGE) for top in (source, "/opt")]
    found = next(filter(os.path.isdir, places), None)
    if not found:
        skip("no llama.cpp in " + " or ".join(places))
    return found


class Llama:
    def __init__(self, program, folder, source):
        self.program = os.path.abspath(program)
        self.folder = find_library(folder, source)
        done = subprocess.run([self.program, self.folder], capture_output=True, text=True)
        if done.returncode == NO_LIBRARY:
            skip(done.stderr.strip())
        self.version = done.stdout.strip()

    def logits(self, gguf, tokens, positions, greedy):
        with tempfile.TemporaryDirectory(prefix="ptxgen_llama_") as folder:
            paths = [os.path.join(folder, name) for name in ("tokens", "logits")]
            with open(paths[0], "w") as file:
                file.write(" ".join(map(str, tokens)))
            said = check_models.run([self.program, self.folder, gguf] + paths +
                                    [str(positions), str(greedy)])
            return numbers(paths[1], "f"), [int(token) for token in said.split()]


def largest(logits, vocab):
    rows = [logits[at:at + vocab] for at in range(0, len(logits), vocab)]
    return [row.index(max(row)) for row in rows]


def equal(tokens, expected):
    return sum(a == b for a, b in zip(tokens, expected))


def leading(tokens, expected):
    same = [a == b for a, b in zip(tokens, expected)]
    return same.index(False) if False in same else len(same)


def refusal(tools, name):
    """Returns the reason why ptxgen refuses a model, or None."""
    done = subprocess.run([tools.ptxgen, "--from-gguf", os.path.join(tools.models, name + ".gguf")],
                          capture_output=True, text=True)
    return done.stderr.splitlines()[0].split("error: ")[-1] if done.returncode else None


def compare(tools, llama, name):
    """Returns True if our logits are as near to the golden ones as they should be."""
    with open(os.path.join(tools.models, name + ".json")) as file:
        facts = json.load(file)
    vocab, tokens, greedy = facts["vocab"], facts["tokens"], facts["greedy"]
    golden = numbers(os.path.join(tools.models, name + ".logits.f64"), "d")
    golden_tokens = largest(golden, vocab)
    runs = {case: check_models.Model(tools, name, case, facts["context"]) for case in ("q8", "f32")}
    q8, greedy_q8 = runs["q8"].logits(tokens, 1, len(greedy))
    f32, _ = runs["f32"].logits(tokens, 8)
    gguf = runs["q8"].gguf
    theirs, greedy_theirs = llama.logits(gguf, tokens, facts["context"], len(greedy))
    if len(theirs) != len(golden):
        sys.exit("FAILED: llama.cpp left %d logits of %d" % (len(theirs), len(golden)))
    worst, rms = difference(f32, golden)
    of_q8, of_llama = difference(q8, golden)[1], difference(theirs, golden)[1]
    print(ROW % (name, of_q8, of_llama, difference(q8, theirs)[1], worst, rms,
                 equal(largest(q8, vocab), golden_tokens), len(tokens),
                 equal(largest(theirs, vocab), golden_tokens), len(tokens),
                 leading(greedy_q8, greedy), len(greedy),
                 leading(greedy_theirs, greedy), len(greedy)), flush=True)
    bound, rms_bound = check_models.BOUNDS["f32"]
    return worst <= bound and rms <= rms_bound and of_q8 <= check_models.MOST_OF_OWN * of_llama


def main():
    tools = check_models.Tools(*sys.argv[1:5])
    if not os.path.isdir(tools.models):
        skip("no " + tools.models)
    llama = Llama(sys.argv[5], sys.argv[6], tools.source)
    print("%s\n\n%s" % (llama.version, HEAD), flush=True)
    wrong = []
    for name in sys.argv[7:] or NAMES:
        why = refusal(tools, name)
        if why:
            print("| %s | %s |" % (name, why), flush=True)
        elif not compare(tools, llama, name):
            wrong.append(name)
    if wrong:
        print("\nWRONG: %s: f32 out of its bounds, or q8 farther off than llama.cpp" % ", ".join(wrong))
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
