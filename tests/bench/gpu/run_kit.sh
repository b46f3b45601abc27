#!/bin/sh
# Tests and measures on this machine's GPU:
#
#     run [measure] [--seconds N] [--quick] [--peer PEER] [--list] [STAGE]...
#     run tests [--seconds N]
#     run kernels [OPTION]... [FAMILY]...
#     run steps [OPTION]... [SPEC]...
#     run engine [PROMPT]
#
# measure does everything, most valuable first, ends within N seconds (540), and writes its results into results/ in the
# kit; report.py shows them. Options are described in measure.py, run_tests.sh, bench_gpu.c and bench_step.c. SPEC has a
# [decoder], as ptxgen --from-gguf writes it; without SPEC, all in models/ are timed. The engine's text means nothing:
# its model has random weights.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
gpu=$here/tests/bench/gpu
export LD_LIBRARY_PATH="$here/bin${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
# Containers may have the driver here, unknown to the linker.
for place in /usr/local/nvidia/lib64 /usr/lib/wsl/lib; do
    [ ! -e "$place/libcuda.so.1" ] || LD_LIBRARY_PATH=$LD_LIBRARY_PATH:$place
done
# The driver's cache of thousands of compiled kernels, for the next run.
export CUDA_CACHE_PATH="${CUDA_CACHE_PATH:-$here/cache}" CUDA_CACHE_MAXSIZE=4294967296
mkdir -p "$CUDA_CACHE_PATH"
what=measure
case ${1-} in
measure | tests | kernels | steps | engine) what=$1 && shift ;;
esac
case $what in
measure) exec python3 "$gpu/measure.py" "$@" ;;
tests) exec sh "$gpu/run_tests.sh" "$here" "$@" ;;
engine) exec "$here/bin/engine" "$here/headers/small.gguf" "${1-once upon a time}" ;;
steps)
    case " $* " in
    *.ini\ *) exec "$here/bin/bench_step" "$@" ;;
    *) exec "$here/bin/bench_step" "$@" "$here"/models/*.ini ;;
    esac
    ;;
kernels)
    options=
    peers=
    ! ls "$here"/bin/*_peer.ptx >/dev/null 2>&1 || peers=yes
    while :; do
        case ${1-} in
        --rows | --target | --jobs) options="$options $1 ${2-}" && shift 2 ;;
        --*) options="$options $1" && shift ;;
        *) break ;;
        esac
    done
    # shellcheck disable=SC2086
    exec "$here/bin/bench_gpu" ${peers:+--peers "$here/bin"} $options "${SHAPES:-$here/bin/shapes.ini}" "$@"
    ;;
esac
