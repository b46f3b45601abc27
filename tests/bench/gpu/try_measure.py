#!/usr/bin/env python3
"""Tries gpu-kit/run measure on the emulated driver.

    try_measure.py whole|stopped|lacking GPU_KIT_SH SOURCE_ROOT BUILD_ROOT LIBCUDA_FOLDER FILE...

Packs the kit with FILEs, as for a machine without our libraries and without a compiler, and runs it with --quick.

  whole     runs all stages: each task is done, or skipped because this machine lacks a tool; the results have all figures;
            the estimated time is below nine minutes
  stopped   stops in the middle of each stage: the results have everything that was printed before
  lacking   runs as GPUs that lack a feature, with a missing program, and without a GPU: failures are named, the rest runs
"""
import glob
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time

MOST = 540
SKIPPED = 77
SILENT = ("correct", "sanitizer") # stages whose programs print when a part ends
LIBRARIES = re.compile("inih|jansson|cmocka|pcre2|utf8proc")


def fail(text):
    sys.exit("FAILED: " + text)


class Kit:
    def __init__(self, scratch, pack, root, build, libcuda, files):
        self.folder = os.path.join(scratch, "gpu-kit")
        self.env = dict(os.environ, LD_LIBRARY_PATH=libcuda, WITHOUT_MODELS="1")
        self.scratch = scratch
        self.run([pack, root, build, self.folder, "small"] + files)

    def run(self, command, status=0, **env):
        done = subprocess.run(command, capture_output=True, text=True, errors="replace",
                              env=dict(self.env, **env))
        if done.returncode != status:
            fail("%s: exit status %d\n%s%s" % (" ".join(command), done.returncode, done.stdout, done.stderr))
        return done.stdout

    def command(self, *options):
        return [os.path.join(self.folder, "run"), "measure", "--quick"] + list(options)

    def measure(self, *options, status=0, **env):
        """Returns the output and the results."""
        results = tempfile.mkdtemp(dir=self.scratch)
        said = self.run(self.command("--results", results, *options), status, **env)
        return said, self.results(results), results

    def results(self, folder):
        names = os.listdir(folder)
        if len(names) > 8:
            fail("%d files in the results: %s" % (len(names), names))
        with open(glob.glob(folder + "/gpu-*.json")[0]) as file:
            return json.load(file)


def tasks_of(results):
    return {(task["stage"], task["task"]): task for task in results["tasks"]}


def check_libraries(kit):
    """All libraries except the system's come from the kit."""
    said = kit.run(["sh", "-c", "ldd %s/bin/* 2>/dev/null || true" % kit.folder],
                   LD_LIBRARY_PATH=kit.folder + "/bin:" + kit.env["LD_LIBRARY_PATH"])
    foreign = [line for line in said.splitlines() if "=>" in line and LIBRARIES.search(line) and kit.folder not in line]
    if foreign:
        fail("the kit's programs take these from the machine:\n" + "\n".join(foreign))


def whole(kit):
    check_libraries(kit)
    total = float(kit.run([kit.folder + "/run", "measure", "--list"]).split()[-2])
    if not 60 < total < MOST:
        fail("all tasks together take %g s" % total)
    said, results, _ = kit.measure()
    for task in results["tasks"]:
        name = "%s %s" % (task["stage"], task["task"])
        if not re.search(r"# +\d+ s left: %s, some \d+ s" % re.escape(name), said) and "skipped" not in task["state"]:
            fail("nothing was printed before " + name)
        if task["state"] == "done" and not task["figures"] and not task["tables"] and not task["passed"]:
            fail("nothing is known of " + name)
        if task["failures"] or task["state"] != "done" and not task["state"].startswith("skipped"):
            fail("%s: %s %s" % (name, task["state"], task["failures"]))
    tasks = tasks_of(results)
    steps, file = tasks["steps", "tiny"], tasks["llama", "small"]["figures"]
    names = [row[0] for row in steps["tables"][0]["rows"]]
    if "step of 1" not in names or not any("next" in name for name in names):
        fail("rows of steps: %s" % names)
    if not set(tasks["constants", "all"]["figures"]) >= {"copy", "read", "launch_gap", "latency"}:
        fail("constants: %s" % tasks["constants", "all"]["figures"])
    if not {"ours_tg128", "ours_rows8", "ours_pp512"} <= set(file) or tasks["correct", "kernels"]["passed"] < 1:
        fail("figures %s, %s" % (file, tasks["correct", "kernels"]))
    kit.run([kit.folder + "/run", "kernels", "--quick", "--jobs", "1", "f32_gemv"])
    if os.path.exists(kit.folder + "/bin/engine") and len(kit.run([kit.folder + "/run", "engine", "once upon"]).split()) < 3:
        fail("the engine prints nothing")


def slow_down(kit):
    """Makes programs print as usual and then hang; adds a stand-in for compute-sanitizer to the kit."""
    def write(path, text):
        with open(path, "w") as file:
            file.write("#!/bin/sh\n" + text)
        os.chmod(path, 0o755)

    for path in glob.glob(kit.folder + "/bin/bench_*") + [kit.folder + "/bin/ptxgen-test"]:
        os.rename(path, path + ".real")
        # Not in runs that only open the GPU: measure.py's, and test_parts.sh's with a share of 1000000.
        write(path, '"$0.real" "$@"\n[ "$1" = --device ] || [ "${PTXGEN_TEST_SHARE-}" = 1000000 ] || exec sleep 600\n')
    os.mkdir(kit.scratch + "/tools")
    write(kit.scratch + "/tools/compute-sanitizer", "exec sleep 600\n")
    kit.env["PATH"] = kit.scratch + "/tools:" + kit.env["PATH"]


def stop_in(kit, stage, how):
    """Stops a stage at its first output, or after some time in stages that print at the end."""
    folder = tempfile.mkdtemp(dir=kit.scratch)
    run = subprocess.Popen(kit.command("--results", folder, stage), env=kit.env, stdout=subprocess.DEVNULL,
                           start_new_session=True)
    start, found = time.monotonic(), None
    while time.monotonic() < start + 60 and run.poll() is None and not found:
        time.sleep(0.1)
        written = glob.glob(folder + "/gpu-*.json")
        for task in kit.results(folder)["tasks"] if written else []:
            silent = stage in SILENT and time.monotonic() > start + 4
            if task["state"] == "cut off" and (silent or task["figures"] or task["tables"] and task["tables"][0]["rows"]):
                found = task
    if run.poll() is not None:
        fail("%s ended by itself: %s" % (stage, found))
    os.kill(run.pid, how)
    status = run.wait()
    subprocess.run(["pkill", "-f", kit.scratch], check=False) # the killed script left its programs running
    if not found:
        fail("nothing came of %s" % stage)
    after = tasks_of(kit.results(folder))[stage, found["task"]]
    if after["state"] != "cut off" or not found["figures"].items() <= after["figures"].items():
        fail("%s was stopped: %s" % (stage, after))
    with open("%s/%s.txt" % (folder, stage)) as file:
        if len(file.read().splitlines()) < (1 if stage in SILENT else 3):
            fail("%s.txt is empty" % stage)
    if how == signal.SIGTERM and status != 1:
        fail("exit status %d when it is stopped" % status)


def stopped(kit):
    slow_down(kit)
    for stage in ("constants", "correct", "steps", "llama", "kernels", "experiments", "sanitizer"):
        stop_in(kit, stage, signal.SIGTERM)
    stop_in(kit, "kernels", signal.SIGKILL)
    start = time.monotonic()
    said, results, _ = kit.measure("--seconds", "9", "constants", "steps")
    states = [task["state"] for task in results["tasks"]]
    if states[0] != "out of time" or set(states[1:]) != {"no time"} or time.monotonic() - start > 30:
        fail("9 seconds: %s after %.0f s\n%s" % (states, time.monotonic() - start, said))


def lacking(kit):
    said, results, _ = kit.measure("constants", "steps", "kernels", PTXGEN_CUDA_TARGET="sm_80")
    names = [row[0] for row in tasks_of(results)["steps", "tiny"]["tables"][0]["rows"]]
    if "step of 1" not in names or "step of 1, no overlap" in names:
        fail("a GPU without overlap: rows %s" % names)
    # The header of the small model begins at sm_80.
    said, results, _ = kit.measure("constants", "llama", status=1, PTXGEN_CUDA_TARGET="sm_75")
    tasks = tasks_of(results)
    if tasks["constants", "all"]["state"] != "done" or tasks["llama", "small"]["state"] != "failed":
        fail("a GPU that no kernel is for: %s" % said)
    os.rename(kit.folder + "/bin/bench_constants", kit.folder + "/bin/away")
    said, results, _ = kit.measure("constants", "steps", status=1)
    tasks = tasks_of(results)
    if "bench_constants" not in str(tasks["constants", "all"]["failures"]) or tasks["steps", "tiny"]["state"] != "done":
        fail("a program is missing: %s" % said)
    kit.run(kit.command(), status=SKIPPED, LD_LIBRARY_PATH="")


def main():
    what, *arguments = sys.argv[1:]
    pack, root, build, libcuda = map(os.path.abspath, arguments[:4])
    with tempfile.TemporaryDirectory(prefix="ptxgen_measure_") as scratch:
        {"whole": whole, "stopped": stopped, "lacking": lacking}[what](
            Kit(scratch, pack, root, build, libcuda, [os.path.abspath(file) for file in arguments[4:]]))


if __name__ == "__main__":
    main()
