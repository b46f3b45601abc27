#!/bin/sh
# Runs the benchmarks on this machine's GPU, of models' steps and of kernels, then the kernel tests, or
# one of these:
#
#     run [bench] [--quick] [FAMILY]...
#     run steps [OPTION OF bench_step]... [SPEC]...
#     run tests
#     run engine [PROMPT]
#
# SPEC has a [decoder], as ptxgen --from-gguf writes it; models/ has those of real models. What the
# engine prints means nothing: small.gguf has random weights.
# $SHAPES and $RESULTS as for gpu_bench.sh; $PTXGEN_TEST_FAMILY names the only family to test.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
what=both
case ${1-} in
bench | steps | tests | engine) what=$1 && shift ;;
esac
export LD_LIBRARY_PATH="$here/bin${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
# What the driver compiles, thousands of kernels, is there for the next run.
export CUDA_CACHE_PATH="${CUDA_CACHE_PATH:-$here/cache}"
mkdir -p "$CUDA_CACHE_PATH"
status=0
if [ "$what" = engine ]; then
    exec "$here/bin/engine" "$here/models/small.gguf" "${1-once upon a time}"
fi
if [ "$what" = steps ]; then
    case " $*" in
    *.ini*) ;;
    *) set -- "$@" "$here"/models/*.ini ;;
    esac
    exec "$here/bin/bench_step" "$@"
fi
if [ "$what" != tests ]; then
    set -- --steps "$here/bin/bench_step" "$here/models" "$@"
    if ls "$here"/bin/*_peer.ptx >/dev/null 2>&1; then
        set -- --peers "$here/bin" "$@"
    fi
    sh "$here/tests/bench/gpu/gpu_bench.sh" "$here" "$here/bin/bench_gpu" "$@" || status=1
fi
# Each program in parts, as many at a time as there are processors: the driver's compiler takes most of the time.
run_tests() {
    parts=16
    logs=$(mktemp -d)
    export PTXGEN_GOLDEN="$here/tests/golden" PTXGEN_TEST_DEVICE=GPU PTXGEN_TEST_SHARE=$parts
    for test in "$here"/bin/test_*; do
        turn=0
        while [ $turn -lt $parts ]; do
            echo "$test" $turn
            turn=$((turn + 1))
        done
    done | xargs -P "$(nproc)" -n 2 sh -c 'PTXGEN_TEST_TURN=$2 "$1" >"$0/${1##*/}.$2" 2>&1' "$logs" || status=1
    for log in "$logs"/*; do
        grep -q '^\[  PASSED  \]' "$log" || echo "${log##*/} did not end" # it was killed, or crashed
        sed -n '/^\[ RUN\|^\[  *OK\|^\[  SKIPPED\|^\[=====\|^\[  PASSED/!p' "$log"
    done
    sed -n 's/^\[  PASSED  \] \([0-9]*\) test.*/\1/p' "$logs"/* |
        awk '{ passed += $1 } END { printf "[  PASSED  ] %d tests\n", passed }'
    rm -r "$logs"
}
if [ "$what" != bench ]; then
    run_tests
fi
exit "$status"
