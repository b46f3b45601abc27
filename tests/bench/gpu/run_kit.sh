#!/bin/sh
# Runs the kernel tests on this machine's GPU, then the benchmark: run [OPTION_OF_BENCH_GPU]...
set -eu
here=$(cd "$(dirname "$0")" && pwd)
export LD_LIBRARY_PATH="$here/bin${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
export PTXGEN_GOLDEN="$here/tests/golden" PTXGEN_TEST_DEVICE=GPU
status=0
for test in "$here"/bin/test_*; do
    "$test" || status=1
done
if ls "$here"/bin/*_peer.ptx >/dev/null 2>&1; then
    set -- --peers "$here/bin" "$@"
fi
sh "$here/tests/bench/gpu/gpu_bench.sh" "$here" "$here/bin/bench_gpu" "$@" || status=1
exit "$status"
