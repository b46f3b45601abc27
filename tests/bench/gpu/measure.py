#!/usr/bin/env python3
"""Tests and measures everything on this machine's GPU, most valuable first, in a limited time.

    measure.py [--seconds N] [--quick] [--results FOLDER] [--peer PEER] [--list] [STAGE]...

It is part of the kit (see gpu_kit.sh) and is called as `gpu-kit/run measure`. A stage is a list of tasks. A task is a
program of the kit with the seconds that it should take on an H200. Without STAGE all stages run. A task is left out if
the time left is too short for it, or if this machine lacks its tools.

--seconds N     ends after N seconds (540) and stops a running program.
--quick         uses tiny models and few kernels, to try the script, also on the emulated driver. Times mean nothing.
--results       the folder for results: STAGE.txt, the output of a stage's programs, and gpu-DEVICE.json, with device,
                driver, date, commit, and each task's state, figures, tables and failures. Both are written while the
                programs run, so that a stop loses nothing. The default is the first free name of results, results-2,
                ... in the kit.
--peer PEER     llama.cpp's CUDA library, a folder or a .tar.xz (see cut_library.py). The default is peer.tar.xz in or
                beside the kit, if it exists.
--list          prints stages and tasks with their seconds, and runs none.

The programs' output is read line by line. "NAME VALUE UNIT" is a figure. A Markdown table has its title above it and
plain numbers in its cells. "FAILED NAME: TEXT" is a failure, and "passed N" counts passed checks. A program exits with
77 if it has nothing to run on.

Exit status: 0 nothing failed; 1 something failed; 2 wrong usage; 77 there is no GPU. report.py shows the results.
"""
import argparse
import datetime
import glob
import json
import os
import queue
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
KIT = os.path.abspath(os.path.join(HERE, "..", "..", ".."))
FAILED, USAGE, SKIPPED = 1, 2, 77
SECONDS = 540
WRITE_EVERY = 0.5
GRACE = 3 # seconds between the first signal and the second
SLACK = 3 # a program is stopped after SLACK times its seconds, plus 10
FIGURE = re.compile(r"(\S+) (-?[0-9.]+(?:e[-+]?[0-9]+)?) (\S+)$")


def number(text):
    try:
        return float(text)
    except ValueError:
        return text


def as_text(value, line="\n"):
    """Returns JSON with each list of plain values, such as a row of a table, on one line, so that diffs can be read."""
    inner = line + " "
    if isinstance(value, dict) and value:
        return "{" + ",".join(inner + json.dumps(k) + ": " + as_text(v, inner) for k, v in value.items()) + line + "}"
    if isinstance(value, list) and any(isinstance(v, (list, dict)) for v in value):
        return "[" + ",".join(inner + as_text(v, inner) for v in value) + line + "]"
    return json.dumps(value)


class Task:
    """A program and its output. `seconds` is its time on an H200; `lacking` returns the reason why it cannot run, or
    None.
    """

    def __init__(self, stage, name, seconds, command, env=None, lacking=None):
        self.stage, self.name, self.estimate, self.command = stage, name, seconds, command
        self.env, self.lacking = env or {}, lacking
        self.state, self.seconds, self.passed = "not reached", 0.0, 0
        self.figures, self.tables, self.failures = {}, [], []
        self.title, self.columns = "", None

    def read(self, line):
        """Adds the content of one line of output."""
        failed, figure = re.match(r"FAILED ([^:]*): (.*)", line), FIGURE.match(line)
        if line.startswith("|"):
            self.read_row([number(cell.strip()) for cell in line.strip()[1:-1].split("|")])
        elif failed:
            self.failures.append([failed[1], failed[2]])
        elif re.match(r"passed [0-9]+$", line):
            self.passed += int(line.split()[1])
        elif figure:
            self.figures[figure[1]] = [float(figure[2]), figure[3]]
        elif not line.startswith("#"):
            self.columns = None
            self.title = line.rstrip(":") or self.title

    def read_row(self, cells):
        if self.columns is None:
            self.columns = cells
            self.tables.append({"title": self.title, "columns": cells, "rows": []})
        elif not set("".join(map(str, cells))) <= set("-:"):
            self.tables[-1]["rows"].append(cells)

    def fail(self, text):
        self.failures.append([self.name, text])

    def as_data(self):
        return {"stage": self.stage, "task": self.name, "state": self.state, "estimate": self.estimate,
                "seconds": round(self.seconds, 1), "passed": self.passed, "failures": self.failures,
                "figures": self.figures, "tables": self.tables}


class Run:
    """A run of some tasks: the remaining time and the results."""

    def __init__(self, options, device, tasks):
        self.options, self.device, self.tasks = options, device, tasks
        self.started = time.monotonic()
        self.cut_off, self.process = False, None
        self.scratch = tempfile.mkdtemp(prefix="ptxgen_measure_", dir=best_scratch())
        self.json = os.path.join(options.results, "gpu-%s.json" % slug_of(device["device"]))
        self.written, self.is_written = 0.0, True

    def left(self):
        return self.options.seconds - (time.monotonic() - self.started)

    def write(self):
        """Replaces the results file."""
        data = dict(self.device, seconds=round(time.monotonic() - self.started, 1), quick=self.options.quick,
                    tasks=[task.as_data() for task in self.tasks])
        with open(self.json + ".new", "w") as file:
            file.write(as_text(data) + "\n")
        os.replace(self.json + ".new", self.json)
        self.written, self.is_written = time.monotonic(), True

    def stop(self, how=signal.SIGTERM):
        """Stops the running program and its children."""
        try:
            if self.process and self.process.poll() is None:
                os.killpg(self.process.pid, how)
        except ProcessLookupError:
            pass

    def on_signal(self, *_):
        self.cut_off = True
        self.stop()

    def limit(self, task):
        return min(self.left(), SLACK * task.estimate + 10)

    def start(self, task):
        """Starts the program. Returns a queue of its lines, with None at the end."""
        lines = queue.Queue()
        env = dict(os.environ, SECONDS_LEFT="%d" % max(1, self.limit(task) - GRACE), SCRATCH=self.scratch, **task.env)
        self.process = subprocess.Popen(task.command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                        errors="replace", env=env, start_new_session=True)

        def follow(output):
            for line in output:
                lines.put(line)
            lines.put(None)

        threading.Thread(target=follow, args=[self.process.stdout], daemon=True).start()
        return lines

    def follow(self, task, log):
        """Reads the program's output until it ends or its time is over. Returns True if its time was over."""
        print("$ " + " ".join(task.command), file=log, flush=True)
        try:
            lines = self.start(task)
        except OSError as error: # the program does not exist
            task.fail(str(error))
            return False
        end, late = time.monotonic() + self.limit(task), False
        while True:
            try:
                line = lines.get(timeout=max(0.01, min(WRITE_EVERY, end - time.monotonic())))
            except queue.Empty:
                line = ""
            if line is None:
                return late
            if line:
                log.write(line)
                log.flush()
                task.read(line.rstrip("\n"))
                self.is_written = False
            if not self.is_written and time.monotonic() - self.written > WRITE_EVERY:
                self.write()
            if time.monotonic() > end:
                self.stop(signal.SIGKILL if late else signal.SIGTERM)
                end, late = time.monotonic() + GRACE, True

    def run(self, task):
        print("# %3.0f s left: %s %s, some %.0f s" % (self.left(), task.stage, task.name, task.estimate), flush=True)
        start = time.monotonic()
        task.state = "cut off" # the state until the program has ended
        self.process = None
        self.write()
        with open(os.path.join(self.options.results, task.stage + ".txt"), "a") as log:
            late = self.follow(task, log)
        status = self.process.wait() if self.process else FAILED
        task.seconds = time.monotonic() - start
        if not self.cut_off:
            self.judge(task, status, late)
        print("# %s %s: %s after %.1f s%s%s" % (
            task.stage, task.name, task.state, task.seconds, ", %d passed" % task.passed if task.passed else "",
            ", %d FAILED" % len(task.failures) if task.failures else ""), flush=True)
        for failure in task.failures:
            print("FAILED %s: %s" % tuple(failure), flush=True)

    def judge(self, task, status, late):
        if status not in (0, SKIPPED) and not late and not task.failures:
            task.fail("exit status %d" % status if status > 0 else "killed by signal %d" % -status)
        task.state = ("failed" if task.failures else "out of time" if late else "skipped" if status == SKIPPED else "done")

    def run_all(self):
        for task in self.tasks:
            if self.cut_off:
                break
            if task.estimate > self.left():
                task.state = "no time"
                continue
            why = task.lacking and task.lacking()
            if why:
                task.state = "skipped: " + why
                print("# %s %s: skipped: %s" % (task.stage, task.name, why), flush=True)
                continue
            self.run(task)
        self.write()

    def end(self):
        self.stop(signal.SIGKILL)
        shutil.rmtree(self.scratch, ignore_errors=True)

    def conclude(self):
        """Prints the results of all tasks. Returns the exit status."""
        states = [task.state.split(":")[0] for task in self.tasks]
        failures = sum(len(task.failures) for task in self.tasks)
        print("# " + ", ".join("%d %s" % (states.count(state), state) for state in dict.fromkeys(states)) +
              "; %d passed, %d FAILED; %.0f s; %s" % (sum(task.passed for task in self.tasks), failures,
                                                     time.monotonic() - self.started, self.json), flush=True)
        return FAILED if failures or "failed" in states or self.cut_off else 0


def best_scratch():
    """A folder in memory, if there is much of it: models of many gigabytes are written and read once."""
    shm = "/dev/shm"
    return shm if os.path.isdir(shm) and shutil.disk_usage(shm).free > 30e9 else None


def kit(*names):
    return os.path.join(KIT, *names)


def lacks(*programs):
    """Returns a function that names which of some programs this machine lacks, or returns None."""
    def find():
        missing = [name for name in programs if not (shutil.which(name) or os.path.exists(name))]
        return "no " + ", ".join(map(os.path.basename, missing)) if missing else None
    return find


# The models whose steps are timed, and llama.cpp on their files, most telling first, with seconds for each.
STEPS = {"llama_3.1_8b": 13, "llama_3.1_8b_q8_0": 13, "qwen3_30b_a3b": 16, "gpt_oss_20b": 15, "llama_3.2_1b_bf16": 9}
SAME_FILE = {"llama_3.1_8b": 30, "qwen3_30b_a3b": 50, "llama_3.1_8b_q8_0": 30}


def newest_kernels(device):
    """Returns the variable that makes tests use kernels for the newest default target that the device runs."""
    capability = float(device.get("compute_cap", "9.0"))
    return {"PTXGEN_TEST_TARGET": "sm_90" if capability >= 9 else "sm_80"} if capability >= 8 else {}


def all_tasks(options, device):
    """Returns the tasks of all stages, most valuable first."""
    gpu, quick, python = kit("tests/bench/gpu"), ["--quick"] if options.quick else [], [sys.executable]
    tests = ["sh", gpu + "/run_tests.sh", KIT]
    # With --quick, two small families represent all.
    one = {"PTXGEN_TEST_FAMILY": "silu,sample"} if options.quick else {}
    # For each family, the kernels that a header's loader chooses on this GPU; at the end the kernels of the oldest
    # targets.
    tier = dict(one, TEST_GROUPS="every_family", **newest_kernels(device))
    wgmma = {"PTXGEN_TEST_TARGET": "sm_90a", "TEST_GROUPS": "every_family", "PTXGEN_TEST_FAMILY": "mma_qkv" if options.quick
             else "mma_gemm,mma_gate_up,mma_gemm_f16,mma_gate_up_f16,mma_qkv,mma_expert_gate_up,mma_expert_down"}
    bench_gpu = [kit("bin/bench_gpu")] + (quick or ["--brief"])
    peers = ["--peers", kit("bin")] if glob.glob(kit("bin/*_peer.ptx")) else []
    models = ["tiny"] if options.quick else list(STEPS)
    seconds = STEPS if not options.quick else {"tiny": 5, "small": 5}

    tasks = [
        Task("constants", "all", 5, [kit("bin/bench_constants")] + quick),
        Task("correct", "kernels", 25, tests, env=tier),
        Task("correct", "wgmma", 6, tests, env=wgmma),
        Task("correct", "models", 20, python + [gpu + "/run_models.py", kit("golden_models")],
             lacking=lacks(kit("golden_models"))),
    ]
    steps = [kit("bin/bench_step"), "--repeat", "30"] + (quick or ["--positions", "256"])
    for name in models:
        tasks.append(Task("steps", name, seconds[name], steps + ["--next", kit("models", name + ".ini")]))
    tasks.append(Task("steps", "load", 15, [kit("bin/bench_load"), "--threads", "8"] + quick +
                      [kit("models", models[0] + ".ini")]))
    for name, of_file in ({"small": 5} if options.quick else SAME_FILE).items():
        tasks.append(Task("llama", name, of_file, ["sh", gpu + "/same_file.sh"] + quick + [KIT, name] +
                          ([options.peer] if options.peer else [])))
    tasks += [
        Task("kernels", "ours", 35, bench_gpu + peers + [gpu + ("/quick.ini" if options.quick else "/measure.ini")]),
        Task("kernels", "of 8-bit rows", 12, bench_gpu + [gpu + ("/quick.ini" if options.quick else "/int8.ini")]),
        Task("kernels", "prompts of 512", 7, bench_gpu + ["--rows", "512", gpu + "/measure.ini", "mma_gemm_f16",
                                                          "mma_gate_up_f16"]),
        Task("kernels", "torch", 17, python + [gpu + "/peers/torch_peers.py", gpu + "/measure.ini"],
             lacking=lacks("nvidia-smi")),
        Task("kernels", "of steps", 12, steps + ["--prompts", "none", "--kernels"] +
             [kit("models", name + ".ini") for name in models[::2]]),
        Task("experiments", "in the L2 cache", 9, bench_gpu + ["--in-l2", gpu + "/in_l2.ini"]),
        Task("experiments", "kernels", 16, bench_gpu + [gpu + "/experiments.ini"]),
        Task("experiments", "steps", 12, steps + ["--prompts", "none", "--warps", "gate_up=8,16", "--early", "--without",
                                                  "rope_kv_write", kit("models", models[0] + ".ini")]),
        Task("experiments", "probes", 8, [kit("bin/bench_probes")] + quick),
        Task("experiments", "pipes of prompts", 25, python + [gpu + "/ncu_prompts.py", kit("bin/bench_gpu")]),
        Task("sanitizer", "ten families", 45, ["sh", gpu + "/sanitize.sh", KIT], env=one),
        Task("correct", "kernels of old targets", 20, tests, env=dict(one, TEST_GROUPS="every_family")),
        Task("correct", "all kernels", 60, tests, env=dict(one, **newest_kernels(device))),
    ]
    return tasks


def slug_of(device):
    return re.sub(r"[^a-z0-9.]+", "-", device.lower()).strip("-")


def find_device():
    """Returns facts about the machine, or None if there is no GPU."""
    done = subprocess.run([kit("bin/bench_gpu"), "--device"], capture_output=True, text=True)
    if done.returncode:
        print("measure.py: " + done.stderr.strip(), file=sys.stderr)
        return None
    device = {"device": done.stdout.strip(), "date": datetime.date.today().isoformat(), "processors": os.cpu_count()}
    with open(kit("commit")) as file:
        device["commit"] = file.read().strip()
    smi = shutil.which("nvidia-smi")
    keys = "driver_version", "compute_cap", "clocks.max.sm", "clocks.max.memory", "power.limit", "memory.total"
    if smi and "emulator" not in device["device"]:
        said = subprocess.run([smi, "-i", "0", "--query-gpu=" + ",".join(keys), "--format=csv,noheader"],
                              capture_output=True, text=True)
        if not said.returncode:
            device.update(zip(keys, said.stdout.strip().split(", ")))
        device["driver"] = device.pop("driver_version", "unknown")
    return device


def free_folder():
    """Returns the first of results, results-2, ... that does not exist in the kit."""
    number = 1
    while os.path.exists(kit("results" + ("-%d" % number if number > 1 else ""))):
        number += 1
    return kit("results" + ("-%d" % number if number > 1 else ""))


def find_peer():
    return next(iter(glob.glob(kit("peer.tar.xz")) + glob.glob(os.path.join(os.path.dirname(KIT), "peer.tar.xz"))), None)


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--seconds", type=float, default=SECONDS)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--results", default=None)
    parser.add_argument("--peer", default=find_peer())
    parser.add_argument("--list", action="store_true")
    parser.add_argument("stages", nargs="*")
    options = parser.parse_args()
    stages = list(dict.fromkeys(task.stage for task in all_tasks(options, {})))
    wrong = [stage for stage in options.stages if stage not in stages]
    if wrong:
        print("measure.py: there is no stage '%s'; the stages are %s" % (wrong[0], ", ".join(stages)), file=sys.stderr)
        return USAGE
    device = {} if options.list else find_device()
    if device is None:
        return SKIPPED
    tasks = [task for task in all_tasks(options, device) if not options.stages or task.stage in options.stages]
    if options.list:
        for task in tasks:
            print("%4.0f s  %s %s" % (task.estimate, task.stage, task.name))
        print("%4.0f s" % sum(task.estimate for task in tasks))
        return 0
    options.results = os.path.abspath(options.results or free_folder())
    os.makedirs(options.results, exist_ok=True)
    run = Run(options, device, tasks)
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, run.on_signal)
    print("# %s; %.0f s for tasks of %.0f s; results in %s" % (
        device["device"], options.seconds, sum(task.estimate for task in tasks), options.results), flush=True)
    try:
        run.run_all()
    except OSError as error:
        print("measure.py: the results cannot be written into %s: %s" % (options.results, error), file=sys.stderr)
        return FAILED
    finally:
        run.end()
    return run.conclude()


if __name__ == "__main__":
    sys.exit(main())
