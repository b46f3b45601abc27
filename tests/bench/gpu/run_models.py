#!/usr/bin/env python3
"""Runs packed models on this machine's GPU and compares their logits with golden ones.

    run_models.py PACK [--seconds N] [--story N] [NAME[.CASE] ...]

PACK is a folder that pack_models.py has written. Without NAME, all of its models run in all cases. Each processor runs
one program, because the driver's compiler takes most of the time. When a program ends, prints "passed N", and for each
failure "FAILED MODEL.CASE: ..." with the position and token of the largest difference and both logits. Starts no
program after N seconds (or SECONDS_LEFT, a variable). --story limits the tokens of a trained model's text.

Exit status: 0 all passed, 1 a check failed, 77 there is no GPU, or no model.
"""
import argparse
import concurrent.futures
import ctypes
import json
import os
import re
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../models"))
from judge_models import Program, check_case, check_prompt, check_story, numbers  # noqa: E402

LONGEST = 120 # seconds for one program, with the driver's compilation


def missing_gpu():
    """Returns the reason why there is no GPU, or None."""
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError as error:
        return str(error)
    count = ctypes.c_int(0)
    status = driver.cuInit(0) or driver.cuDeviceGetCount(ctypes.byref(count))
    if status or not count.value:
        return "cuInit, cuDeviceGetCount: status %d, %d devices" % (status, count.value)
    return None


class Part:
    """One program of a model, with its checks."""

    def __init__(self, pack, name, case):
        self.name, self.case, self.pack = name, case, pack
        with open(os.path.join(pack, name + ".json")) as file:
            self.facts = json.load(file)

    def verdicts(self, story, timeout):
        path = os.path.join(self.pack, self.name)
        program = Program("%s.%s" % (path, "f32" if self.case == "story" else self.case), path + ".gguf")
        if self.case == "story":
            return check_story(program, self.facts, self.name, story, timeout)
        golden = numbers(path + ".logits", "f")
        if self.case == "prompt":
            return check_prompt(program, self.facts, self.name, golden, timeout)
        return check_case(program, self.facts, self.name, self.case, golden, timeout=timeout)

    def run(self, story, deadline):
        """Prints its findings. Returns True if it ended by itself, and True if nothing failed."""
        left = deadline - time.monotonic()
        if left <= 0:
            return False, True
        passed, failures, ended = 0, [], True
        try:
            for said, right, where in self.verdicts(story, min(left, LONGEST)):
                passed += right
                if not right:
                    failures.append("%s; %s" % (said.split(": ", 1)[1], where))
        except subprocess.TimeoutExpired as late:
            ended = late.timeout == LONGEST
            if ended:
                failures.append("it does not end within %d s" % LONGEST)
        except (Exception, SystemExit) as error:
            text = " ".join(str(error).split())
            failures.append(re.sub("^FAILED: .*?: status", "status", text)[:2000])
        lines = ["FAILED %s.%s: %s\n" % (self.name, self.case, failure) for failure in failures]
        sys.stdout.write("".join(lines) + ("passed %d\n" % passed if passed else ""))
        sys.stdout.flush()
        return ended, not failures


def main():
    options = argparse.ArgumentParser(description="Runs packed models on this machine's GPU.")
    options.add_argument("pack", metavar="PACK")
    options.add_argument("names", metavar="NAME[.CASE]", nargs="*")
    options.add_argument("--seconds", type=float, metavar="N", default=os.environ.get("SECONDS_LEFT") or "inf")
    options.add_argument("--story", type=int, metavar="N", help="tokens of each part of a trained model's text; 0: none")
    options = options.parse_intermixed_args()
    deadline = time.monotonic() + float(options.seconds)
    there = sorted(file[:-5] for file in os.listdir(options.pack) if file.endswith(".json")) \
        if os.path.isdir(options.pack) else []
    why = missing_gpu() if there else "no models in %s" % options.pack
    if why:
        print(why, file=sys.stderr)
        sys.exit(77)
    parts = [Part(options.pack, name, case) for case in ("f32", "story", "q8", "prompt") for name in there]
    parts = [part for part in parts if part.case != "story" or part.facts["story"]]
    named = {word: [part for part in parts if word in (part.name, "%s.%s" % (part.name, part.case))]
             for word in options.names}
    for word, found in named.items():
        if not found:
            sys.exit("%s: no such model, or case of one, in %s" % (word, options.pack))
    if named:
        parts = [part for part in parts if any(part in found for found in named.values())]
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as workers:
        ends = list(workers.map(lambda part: part.run(options.story, deadline), parts))
    reached = sum(ended for ended, _ in ends)
    if reached < len(parts):
        print("# not reached: %d of %d parts" % (len(parts) - reached, len(parts)))
    sys.exit(not all(right for _, right in ends))


if __name__ == "__main__":
    main()
