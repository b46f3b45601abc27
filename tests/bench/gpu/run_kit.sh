#!/bin/sh
# Runs the benchmarks on this machine's GPU, of models' steps and of kernels, then the kernel tests, or
# one of these:
#
#     run [bench] [--quick] [FAMILY]...
#     run steps [OPTION OF bench_step]... [SPEC]...
#     run tests [--seconds N]
#     run engine [PROMPT]
#
# SPEC has a [decoder], as ptxgen --from-gguf writes it; models/ has those of real models. What the
# engine prints means nothing: small.gguf has random weights.
# $SHAPES and $RESULTS as for gpu_bench.sh; run_tests.sh says what else chooses tests.
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
if [ "$what" = tests ]; then
    exec sh "$here/tests/bench/gpu/run_tests.sh" "$here" "$@"
fi
set -- --steps "$here/bin/bench_step" "$here/models" "$@"
if ls "$here"/bin/*_peer.ptx >/dev/null 2>&1; then
    set -- --peers "$here/bin" "$@"
fi
sh "$here/tests/bench/gpu/gpu_bench.sh" "$here" "$here/bin/bench_gpu" "$@" || status=1
if [ "$what" = both ]; then
    sh "$here/tests/bench/gpu/run_tests.sh" "$here" || status=1
fi
exit "$status"
