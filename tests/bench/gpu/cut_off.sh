#!/bin/sh
# gpu_bench.sh leaves the rows that it has when it is cut off, and never writes over an earlier
# table: cut_off.sh GPU_BENCH_SH SOURCE_ROOT BENCH_GPU
set -eu
gpu_bench=$1
root=$2
bench_gpu=$3
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

cat >"$scratch/mine.ini" <<'END'
[stream_gemv:q4k]
weights = q4_k
shape = 512x8
[q4k_gemv]
shape = 512x8
END
cat >"$scratch/stream_q4k_gemv_peer.ptx" <<'END'
.version 7.0
.target sm_75
.address_size 64
.visible .entry stream_q4k_gemv_peer()
{
$for_ever:
    bra $for_ever;
}
END
export SHAPES="$scratch/mine.ini" RESULTS="$scratch/results"

# All processes of the run get the signal, as from whoever sets it a time limit.
timeout 60 "$gpu_bench" "$root" "$bench_gpu" --quick --peers "$scratch" >"$scratch/shown" &
run=$!
for i in $(seq 300); do
    ! grep -q '^| stream_gemv_q4k' "$RESULTS"/*.md 2>/dev/null || break
    sleep 0.1
done
kill "$run"
if wait "$run"; then
    echo "it came to an end before that"
    exit 1
fi
first=$(echo "$RESULTS"/gpu-*-mine.md)
cp "$first" "$scratch/first"
grep -q '^| stream_gemv_q4k' "$first"
grep -q '^| stream_gemv_q4k' "$scratch/shown"

"$gpu_bench" "$root" "$bench_gpu" --quick q4k_gemv
cmp "$first" "$scratch/first"
second=$(echo "$RESULTS"/gpu-*-mine-2.md)
grep -q 'mine.ini: q4k_gemv$' "$second"
[ "$(grep -c '^| [a-z0-9_]*_gemv' "$second")" = 1 ]
