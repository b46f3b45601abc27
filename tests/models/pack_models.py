#!/usr/bin/env python3
"""Packs models, their programs and golden logits for a machine with a GPU, where run_models.py runs them.

    pack_models.py PTXGEN SOURCE MODELS OUT_FOLDER [NAME ...]

MODELS is the same as for check_models.py. Without NAME, all models that it knows are packed. For each model OUT_FOLDER
gets NAME.gguf, NAME.json (its facts), NAME.logits (the golden ones as f32), and programs that need libc and a CUDA
driver: NAME.f32 (nothing rounded), NAME.q8 (8-bit activations) and NAME.prompt (steps of many rows), the latter two
with f16 caches. The facts of a trained model have its story: the tokens after the first, in parts without near ties.
Exits with 77 (skipped) without MODELS.
"""
import concurrent.futures
import json
import os
import shutil
import sys
from array import array

from check_models import BOUNDS, OWN_KERNELS, Model, Tools, load, run

# Rows of a step, and the cache type. With rounded activations it is the default of --from-gguf.
CASES = {"f32": ("1, 8", "f32"), "q8": ("1, 8", "f16"), "prompt": ("16, 64", "f16")}
STORY = 200 # tokens of a trained model's text
SAFE = 10 # a token must be the same everywhere if its logit leads by this multiple of the bound


def story(tools, name):
    """Returns the parts of a trained model's text between near ties, each with a prompt and the following tokens."""
    path = os.path.join(tools.models, name + ".greedy_tokens.txt")
    if not os.path.exists(path):
        return []
    text, parts = [1], []
    with open(path) as file:
        for line in [line.split() for line in file if not line.startswith("#")][:STORY]:
            if float(line[3]) < SAFE * BOUNDS["f32"][0]:
                parts.append(None)
            elif not parts or parts[-1] is None:
                parts.append({"prompt": list(text), "tokens": []})
            if parts[-1]:
                parts[-1]["tokens"].append(int(line[1]))
            text.append(int(line[1]))
    return [part for part in parts if part]


def pack(tools, name, case, out):
    context = load(tools, name)[0]["context"]
    room = max([context] + [len(part["prompt"]) + len(part["tokens"]) + 1 for part in story(tools, name)])
    rows, cache = CASES[case]
    model = Model(tools, name, case, room, rows, cache=cache)
    run(["strip", "-o", os.path.join(out, "%s.%s" % (name, case)), model.program])


def main():
    ptxgen, source, models, out = sys.argv[1:5]
    tools = Tools(ptxgen, run([ptxgen, "run", "printenv", "LD_LIBRARY_PATH"]).split(":")[0].strip(), source, models)
    names = sys.argv[5:] or list(OWN_KERNELS)
    if not os.path.exists(os.path.join(tools.models, names[0] + ".gguf")):
        print("no %s.gguf in %s: skipped" % (names[0], tools.models))
        sys.exit(77)
    os.makedirs(out, exist_ok=True)
    tools.gguf_objects()
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as workers:
        programs = [workers.submit(pack, tools, name, case, out) for name in names for case in CASES]
    for program in programs:
        program.result()
    for name in names:
        facts, golden = load(tools, name)
        kept = {key: facts[key] for key in ("vocab", "tokens", "greedy", "router_gaps") if key in facts}
        kept["story"] = story(tools, name)
        shutil.copyfile(os.path.join(tools.models, name + ".gguf"), os.path.join(out, name + ".gguf"))
        with open(os.path.join(out, name + ".json"), "w") as file:
            json.dump(kept, file)
        with open(os.path.join(out, name + ".logits"), "wb") as file:
            array("f", golden).tofile(file)


if __name__ == "__main__":
    main()
