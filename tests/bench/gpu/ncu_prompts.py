#!/usr/bin/env python3
"""Profiles prompts' products with ncu: ncu_prompts.py BENCH_GPU [KERNEL]...

Runs bench_gpu under ncu for each of a few kernels and prints a line for each counter of its first launch,
"ncu_KERNEL_COUNTER value unit":

  time       of the launch, at the GPU's clocks
  tensor     cycles with active tensor cores, of all cycles
  gmma       wgmma instructions, of the tensor cores' peak
  shared     passes of the shared memory's data pipe, of its peak
  conflicts  bank conflicts in shared memory
  memory     of the device memory's peak bandwidth
  warps      resident warps, of an SM's maximum
  issue      cycles in which a scheduler issues, of active cycles
  registers  per thread

ncu is searched on PATH and in /usr/local/cuda/bin. A failing kernel prints "FAILED KERNEL: reason", and the next one
follows; "passed N" counts the others.

Exit status: 0 all right; 1 an error; 77 there is no ncu, or it may not read the counters.
"""
import csv
import os
import shutil
import subprocess
import sys
import tempfile

COUNTERS = {
    "gpu__time_duration.sum": ("time", 1e-3, "us"),
    "sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_elapsed": ("tensor", 1, "percent"),
    "sm__inst_executed_pipe_tensor_op_gmma.avg.pct_of_peak_sustained_active": ("gmma", 1, "percent"),
    "l1tex__data_pipe_lsu_wavefronts_mem_shared.avg.pct_of_peak_sustained_elapsed":
        ("shared", 1, "percent"),
    "l1tex__data_bank_conflicts_pipe_lsu_mem_shared.sum": ("conflicts", 1, "count"),
    "dram__throughput.avg.pct_of_peak_sustained_elapsed": ("memory", 1, "percent"),
    "sm__warps_active.avg.pct_of_peak_sustained_active": ("warps", 1, "percent"),
    "smsp__issue_active.avg.pct_of_peak_sustained_active": ("issue", 1, "percent"),
    "launch__registers_per_thread": ("registers", 1, "count"),
}
FEW = list(COUNTERS)[:2] # if an ncu does not know all of them

# By name: the family, its keys, and the target; None: the newest of the device.
KERNELS = {
    "wgmma_q4k": ("mma_gemm_f16", "weights = q4_k\nshape = 4096x14336\nm = 128", None),
    "wgmma_f16": ("mma_gemm_f16", "weights = f16\nshape = 4096x14336\nm = 256", None),
    "mma_q4k": ("mma_gemm_f16", "weights = q4_k\nshape = 4096x14336\nm = 128", "sm_90"),
    "gate_up_q4k": ("mma_gate_up_f16", "weights = q4_k\nshape = 4096x14336\nm = 128", None),
}
LIMIT = 60 # seconds per kernel


class NotPermitted(Exception):
    pass


def profile(ncu, bench_gpu, name, counters):
    """Returns the counters of a kernel's first launch, by name."""
    family, keys, target = KERNELS[name]
    with tempfile.TemporaryDirectory() as scratch:
        spec = os.path.join(scratch, name + ".ini")
        with open(spec, "w", encoding="utf-8") as file:
            file.write(f"[{family}]\n{keys}\n")
        command = [ncu, "--csv", "--print-units", "base", "--clock-control", "none",
                   "--kernel-name", f"regex:^{family}_", "--launch-count", "1", "--kill", "yes",
                   "--metrics", ",".join(counters), bench_gpu, "--brief", "--in-l2", "--jobs", "1",
                   *(["--target", target] if target else []), spec]
        try:
            done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                  text=True, timeout=LIMIT, check=False)
        except subprocess.TimeoutExpired:
            raise RuntimeError(f"ncu took more than {LIMIT} s") from None
    if "ERR_NVGPUCTRPERM" in done.stdout:
        raise NotPermitted()
    lines = done.stdout.splitlines()
    start = next((i for i, line in enumerate(lines) if line.startswith('"ID"')), len(lines))
    values = {}
    for row in csv.DictReader(lines[start:]):
        try:
            values[row["Metric Name"]] = float(row["Metric Value"].replace(",", ""))
        except (KeyError, TypeError, ValueError, AttributeError):
            pass  # "n/a", or a line of the program
    if not values:
        said = [line for line in lines if "==ERROR==" in line] or lines[-1:]
        raise RuntimeError(said[0].strip() if said else f"ncu said nothing, status {done.returncode}")
    return values


def main(bench_gpu, *names):
    ncu = shutil.which("ncu") or shutil.which("/usr/local/cuda/bin/ncu")
    if not ncu:
        print("ncu_prompts.py: there is no ncu", file=sys.stderr)
        return 77
    passed, failed = 0, 0
    for name in names or KERNELS:
        try:
            try:
                values = profile(ncu, bench_gpu, name, COUNTERS)
            except RuntimeError:
                values = profile(ncu, bench_gpu, name, FEW)
        except NotPermitted:
            print("ncu_prompts.py: ncu may not read the GPU's counters (ERR_NVGPUCTRPERM)",
                  file=sys.stderr)
            return 77
        except (RuntimeError, OSError) as e:
            print(f"FAILED ncu_{name}: {e}", flush=True)
            failed += 1
            continue
        for counter, (short, factor, unit) in COUNTERS.items():
            if counter in values:
                print(f"ncu_{name}_{short} {values[counter] * factor:.4g} {unit}", flush=True)
        passed += 1
    print(f"passed {passed}")
    return 1 if failed else 0


if __name__ == "__main__":
    if len(sys.argv) < 2 or not set(sys.argv[2:]) <= set(KERNELS):
        sys.exit(f"usage: ncu_prompts.py BENCH_GPU [{'|'.join(KERNELS)}]...")
    sys.exit(main(*sys.argv[1:]))
