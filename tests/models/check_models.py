#!/usr/bin/env python3
"""Checks models by their generated headers against golden logits.

    check_models.py PTXGEN LIBCUDA_FOLDER SOURCE MODELS NAME [CASE ...]

MODELS has NAME.gguf with logits in double (see its README). Without CASE, all cases run:
  f32, f16, bf16, q8_0   type of the cache; nothing else is rounded
  q8                     activations rounded to 8 bits
  prompt                 steps of many rows, on tensor cores
  host                   for a model with per-layer embeddings: their table in host memory gives the bits of one on the device
  ring, ring_f16, ...    for a model with a window: ring caches give the bits of whole ones, for each cache type or for one
Exits with 77 (skipped) without MODELS. judge_models.py has the conditions.
"""
import json
import os
import re
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from judge_models import (BOUNDS, KV_CASES, MOST_OF_OWN, OWN_KERNELS, Program, check_case,  # noqa: E402
                          check_prompt, difference, numbers, run, same_bits, takes)

__all__ = ["BOUNDS", "KV_CASES", "MOST_OF_OWN", "OWN_KERNELS", "Model", "Tools", "difference", "load", "numbers", "run"]


class Model(Program):
    """A model generated for one case: a folder with its header and program."""

    def __init__(self, tools, name, case, context, m="1, 8", lines="", cache="f32"):
        self.tools, self.name = tools, name
        self.folder = tempfile.TemporaryDirectory(prefix="ptxgen_model_")
        super().__init__(self.path("run"), os.path.join(tools.models, name + ".gguf"),
                         dict(os.environ, LD_LIBRARY_PATH=tools.libcuda))
        spec = run([tools.ptxgen, "--from-gguf", self.gguf])
        spec = re.sub(r"(?m)^(max_seq_len *=).*", r"\1 %d" % context, spec)
        rounds = case in ("q8", "prompt")
        spec = re.sub(r"(?m)^(kv_type *=).*", r"\1 " + (case if case in KV_CASES else cache), spec)
        spec = re.sub(r"(?m)^(m *=).*", r"\1 " + m, spec)
        for line in lines.splitlines():
            spec = re.sub(r"(?m)^%s *=.*\n" % line.split()[0], "", spec)
        spec += lines + "logits = all\nprecision = %s\n" % ("q8" if rounds else "f32")
        self.spec = self.path("model.ini")
        with open(self.spec, "w") as file:
            file.write(spec)
        run([tools.ptxgen, "-q", "--spec", self.spec, "--out", self.folder.name])
        # Not optimized: the header is large, and the run time is the emulator's.
        run(["cc", "-O0", "-I" + self.folder.name, "-I" + tools.source + "/src",
             "-I" + tools.source + "/src/model/gguf", "-o", self.path("run"),
             tools.source + "/tests/models/run_model.c"] + tools.gguf_objects() +
            ["-L" + tools.libcuda, "-l:libcuda.so.1", "-ldl"])

    def path(self, name):
        return os.path.join(self.folder.name, name)


class Tools:
    def __init__(self, ptxgen, libcuda, source, models):
        self.ptxgen, self.libcuda = os.path.abspath(ptxgen), os.path.abspath(libcuda)
        self.source, self.models = os.path.abspath(source), os.path.abspath(models)
        self.failed = False
        self.objects = None

    def gguf_objects(self):
        """Returns the GGUF reader: from the library beside ptxgen, or compiled once for all models."""
        library = os.path.join(os.path.dirname(self.ptxgen), "libptxgen-core.a")
        if os.path.exists(library):
            return [library]
        if not self.objects:
            folder, source = tempfile.mkdtemp(prefix="ptxgen_gguf_"), self.source + "/src/model/gguf/"
            files = sorted(file for file in os.listdir(source) if file.endswith(".c"))
            run(["cc", "-O1", "-c", "-I" + self.source + "/src"] + [source + f for f in files],
                cwd=folder)
            self.objects = [os.path.join(folder, file[:-2] + ".o") for file in files]
        return self.objects

    def judge(self, said, right, where=""):
        self.failed |= not right
        print("%s  %s%s" % ("ok    " if right else "WRONG ", said, "; " + where if where and not right else ""))


def load(tools, name):
    """Returns a model's facts and its golden logits."""
    with open(os.path.join(tools.models, name + ".json")) as file:
        return json.load(file), numbers(os.path.join(tools.models, name + ".logits.f64"), "d")


def check(tools, name, case):
    facts, golden = load(tools, name)
    if case in KV_CASES and not os.path.exists(os.path.join(tools.models, name + ".kv.f64")):
        print("%s has no attention: %s skipped" % (name, case))
        return
    model, positions = Model(tools, name, case, facts["context"]), None
    if case in KV_CASES:
        positions, index = facts["kv_positions"], facts["kv_types"].index(case)
        rounded, size = numbers(os.path.join(tools.models, name + ".kv.f64"), "d"), len(positions) * facts["vocab"]
        golden = rounded[index * size:(index + 1) * size]
    for verdict in check_case(model, facts, name, case, golden, positions):
        tools.judge(*verdict)


def check_rings(tools, name, types):
    """Runs a text more than four times as long as the window, in steps of one token and of eight."""
    facts = load(tools, name)[0]
    context = 64
    text = (facts["tokens"] * 2)[:context]
    for kv in types:
        whole = Model(tools, name, kv, context, lines="window_cache = full\n")
        rings = Model(tools, name, kv, context, lines="window_cache = ring\n")
        for most in (1, 8):
            tools.judge(*same_bits("%s %s: %d tokens, %d a step, rings give the bits of whole caches" %
                                   (name, kv, context, most), rings.logits(text, most)[0], whole.logits(text, most)[0],
                                   facts["vocab"]))


def check_host(tools, name):
    facts = load(tools, name)[0]
    device, host = [Model(tools, name, "f32", facts["context"], lines="per_layer_table = %s\n" % memory)
                    for memory in ("device", "host")]
    for most in (1, 8):
        tools.judge(*same_bits("%s host: %d a step, a table in host memory gives the bits of one on the device" % (name, most),
                               host.logits(facts["tokens"], most)[0], device.logits(facts["tokens"], most)[0], facts["vocab"]))


def check_prompts(tools, name):
    """Runs steps of many rows. With nothing rounded, and for every second model, many rows must give the bits of one."""
    facts, golden = load(tools, name)
    for verdict in check_prompt(Model(tools, name, "prompt", facts["context"], "16, 64"), facts, name, golden):
        tools.judge(*verdict)
    if "router_gaps" in facts or not takes(name, 1): # with this number of rows these are not exact
        return
    few = facts["tokens"][:20]
    exact = Model(tools, name, "f32", facts["context"], "1, 64")
    tools.judge(*same_bits("%s prompt: with nothing rounded the bits of single tokens" % name,
                           exact.logits(few, 64)[0], exact.logits(few, 1)[0], facts["vocab"]))


def main():
    tools = Tools(*sys.argv[1:5])
    name, cases = sys.argv[5], sys.argv[6:] or list(BOUNDS) + ["q8"]
    if not os.path.exists(os.path.join(tools.models, name + ".gguf")):
        print("no %s.gguf in %s: skipped" % (name, tools.models))
        sys.exit(77)
    for case in cases:
        if case == "prompt":
            check_prompts(tools, name)
        elif case == "host":
            check_host(tools, name)
        elif case.startswith("ring"):
            check_rings(tools, name, [case[5:]] if case[5:] else ("f32",) + KV_CASES)
        else:
            check(tools, name, case)
    sys.exit(tools.failed)


if __name__ == "__main__":
    main()
