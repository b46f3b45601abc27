#!/bin/sh
# Times every family on the GPU of this machine, and PyTorch where there is one that has the GPU:
# gpu_bench.sh SOURCE_ROOT BENCH_PROGRAM [OPTION]...; $SHAPES may name another spec.
set -eu
root=$1
shift
results=$root/tests/bench/results
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
status=0
shapes=${SHAPES:-$root/tests/bench/gpu/shapes.ini}
"$@" "$shapes" >"$scratch/table" || status=$?
[ -s "$scratch/table" ] || exit "$status"
if command -v python3 >/dev/null; then
    torch=0
    python3 "$root/tests/bench/gpu/peers/torch_peers.py" "$shapes" >>"$scratch/table" || torch=$?
    [ "$torch" = 0 ] || [ "$torch" = 77 ] || status=$torch
fi
device=$(sed -n '1s/,.*//p' "$scratch/table" | tr 'A-Z ()' 'a-z-__')
mkdir -p "$results"
{
    commit=$(cat "$root/commit" 2>/dev/null ||
        git -C "$root" describe --always --dirty 2>/dev/null || echo unknown)
    printf '%s, commit %s\n\n' "$(date -u +%Y-%m-%d)" "$commit"
    cat "$scratch/table"
} >"$results/gpu-$device.md"
echo "wrote $results/gpu-$device.md"
exit "$status"
