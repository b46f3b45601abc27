#!/bin/sh
# Times every family on the GPU of this machine: gpu_bench.sh SOURCE_ROOT BENCH_PROGRAM [OPTION]...
set -eu
root=$1
shift
results=$root/tests/bench/results
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
status=0
"$@" "$root/tests/bench/gpu/shapes.ini" >"$scratch/table" || status=$?
[ -s "$scratch/table" ] || exit "$status"
device=$(sed -n '1s/,.*//p' "$scratch/table" | tr 'A-Z ()' 'a-z-__')
mkdir -p "$results"
{
    commit=$(git -C "$root" describe --always --dirty 2>/dev/null || echo unknown)
    printf '%s, commit %s\n\n' "$(date -u +%Y-%m-%d)" "$commit"
    cat "$scratch/table"
} >"$results/gpu-$device.md"
echo "wrote $results/gpu-$device.md"
exit "$status"
