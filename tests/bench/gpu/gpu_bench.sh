#!/bin/sh
# Times every family, or those named, on the GPU of this machine, and PyTorch where there is one that
# has the GPU; ahead of all families the steps of the models in a folder:
#
#     gpu_bench.sh SOURCE_ROOT BENCH_GPU [--quick] [--peers FOLDER] [--steps BENCH_STEP MODELS] [FAMILY]...
#
# $SHAPES may name another spec, $RESULTS another folder for the table. The table is written while it
# is made, so that a run that is cut off leaves what it has, and never over an earlier one.
set -eu
root=$1
bench_gpu=$2
shift 2
quick=
peers=
bench_step=
while :; do
    case ${1-} in
    --quick) quick=--quick ;;
    --peers) peers=$2 && shift ;;
    --steps) bench_step=$2 models=$3 && shift 2 ;;
    *) break ;;
    esac
    shift
done
shapes=${SHAPES:-$root/tests/bench/gpu/shapes.ini}
results=${RESULTS:-$root/tests/bench/results}

device=$("$bench_gpu" --device)
name=$results/gpu-$(echo "$device" | tr 'A-Z ()' 'a-z-__')
[ -z "${SHAPES-}" ] || name=$name-$(basename "$shapes" .ini)
table=$name.md
number=1
while [ -e "$table" ]; do
    number=$((number + 1))
    table=$name-$number.md
done
mkdir -p "$results"
failed=$(mktemp)
trap 'rm -f "$failed"' EXIT
trap 'exit 1' HUP INT TERM

commit=$(cat "$root/commit" 2>/dev/null ||
    git -C "$root" describe --always --dirty 2>/dev/null || echo unknown)
echo "writing $table"
{
    printf '%s, commit %s, %s\n\n' "$(date -u +%Y-%m-%d)" "$commit" "$(basename "$shapes")${*:+: $*}"
    if [ -n "$bench_step" ] && [ $# = 0 ]; then
        "$bench_step" $quick --kernels "$models"/*.ini || echo $? >"$failed"
        echo
    fi
    "$bench_gpu" $quick ${peers:+--peers "$peers"} "$shapes" "$@" || echo $? >"$failed"
    if command -v python3 >/dev/null; then
        status=0
        python3 "$root/tests/bench/gpu/peers/torch_peers.py" "$shapes" "$@" || status=$?
        [ "$status" = 0 ] || [ "$status" = 77 ] || echo $status >"$failed"
    fi
} | tee "$table"
exit "$(grep . "$failed" || echo 0)"
