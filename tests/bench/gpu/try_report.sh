#!/bin/sh
# Checks that README's table and the cost model's constants are report.py's output: try_report.sh SOURCE_ROOT
set -eu
root=$1
report=$root/tests/bench/gpu/report.py
results=$root/tests/bench/results/gpu-nvidia-h200.json
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

python3 "$report" --check "$root/README.md" "$results"
sed 's/^\(| Llama-3.1-8B Q4_K_M |\) [0-9]*/\1 1/' "$root/README.md" >"$scratch/README.md"
if python3 "$report" --check "$scratch/README.md" "$results" 2>"$scratch/why"; then
    echo "FAILED: another number is not seen"
    exit 1
fi
grep -q 'report.py --readme' "$scratch/why"
python3 "$report" --readme "$scratch/README.md" "$results"
cmp "$scratch/README.md" "$root/README.md"

# Equal results give equal constants, whatever the file had. Constants without a measurement stay.
sed 's/^\(RAMP	\|LAUNCH	\|READ_SHARE H200 SXM	\)[0-9.e-]*/\11.5e-06/' "$root/src/cost/measured.tsv" >"$scratch/measured.tsv"
python3 "$report" --constants "$scratch/measured.tsv" "$results" >"$scratch/said"
grep -q '^LAUNCH 5.4e-07, was 1.5e-06$' "$scratch/said"
for name in READ_SHARE LAUNCH OVERLAPPED_LAUNCH 'READ_SHARE H200 SXM'; do
    [ "$(grep "^$name	" "$scratch/measured.tsv")" = "$(grep "^$name	" "$root/src/cost/measured.tsv")" ]
done
cp "$root/src/cost/measured.tsv" "$scratch/measured.tsv"
python3 "$report" --constants "$scratch/measured.tsv" "$results" >"$scratch/said"
cmp "$scratch/measured.tsv" "$root/src/cost/measured.tsv"

# Predictions that are off by more than 15 % are listed, and no others.
cat >"$scratch/gpu.json" <<'END'
{"device": "G", "date": "2026-01-01", "commit": "c", "tasks": [{"stage": "kernels", "task": "ours", "state": "done",
 "figures": {}, "failures": [["slow", "wrong"]], "tables": [{"title": "T", "columns": ["kernel", "us", "model us", "of model", "bound"],
 "rows": [["near", 11.4, 10.0, 1.14, "memory"], ["slow", 20.0, 10.0, 2.0, "issue"], ["fast", 8.0, 10.0, 0.8, "memory"],
          ["unknown", 1.0, "", "", ""]]}]}]}
END
python3 "$report" "$scratch/gpu.json" >"$scratch/said"
sed -n '/off by more/,$s/^ *\([0-9.]* x\).*: \(.*\)/\1 \2/p' "$scratch/said" >"$scratch/off"
diff - "$scratch/off" <<'END'
2.00 x slow
0.80 x fast
END
grep -q '^FAILED slow: wrong$' "$scratch/said"
