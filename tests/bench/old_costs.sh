#!/bin/bash
# Checks that a row of the table of costs is named after its kernel changed, and that counting restores this row and no
# other. A malformed row stops the build.
#
#     old_costs.sh EMBED_COSTS COST_PROGRAM COST.ini COSTS.tsv
set -u
embed=$1 cost=$2 spec=$3 table=$4
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

fail() {
    echo "FAILED: $1"
    exit 1
}

line=$(grep -n '^rms_norm' "$table" | cut -d : -f 1)
while IFS='|' read -r change message; do
    awk -F '\t' -v OFS='\t' '$1 == "rms_norm" { '"$change"' } { print }' "$table" >"$scratch/wrong"
    "$embed" "$scratch/wrong" "$scratch/wrong.c" 2>"$scratch/printed" && fail "no error: $message"
    echo "$scratch/wrong:$line: error: $message" | diff - "$scratch/printed" || fail "another error"
done <<'END'
$6 = "y4"|a figure must be a letter of the head's list and a number
$6 = "r"|a figure must be a letter of the head's list and a number
NF--|the numbers of columns of row and heading differ
$6 = sprintf("r%01100d", 4)|the line is too long
END

awk -F '\t' -v OFS='\t' '$1 == "rms_norm" { $4 = "00000000"; $6 = "r1" } $1 == "f32_gemv" { $6 = "r1" } { print }' \
    "$table" >"$scratch/changed"
cp "$scratch/changed" "$scratch/table"
"$cost" check "$spec" "$table" "$scratch/before" >"$scratch/printed" || fail "check"
grep -q ' rms_norm ' "$scratch/before" && { echo "rms_norm is to be counted: skipped"; exit 77; }
cmp "$scratch/printed" "$scratch/before" || fail "the list is not what is printed"
"$cost" check "$spec" "$scratch/table" "$scratch/list" >"$scratch/printed" || fail "check of an old row"
{ cat "$scratch/before"; echo "    rms_norm none m = 1"; } | grep '^    ' | sort >"$scratch/expected"
grep '^    ' "$scratch/list" | sort | diff "$scratch/expected" - || fail "check names other rows"

"$cost" count "$spec" "$scratch/table" q6k_gemv >"$scratch/printed" 2>&1 ||
    { cat "$scratch/printed"; echo "no such ptxas: skipped"; exit 77; }
cmp "$scratch/changed" "$scratch/table" || fail "count of another family changes the table"
"$cost" count "$spec" "$scratch/table" rms_norm >/dev/null || fail "count"
diff <(grep -v '^f32_gemv' "$table") <(grep -v '^f32_gemv' "$scratch/table") || fail "the row is counted otherwise"
grep '^f32_gemv' "$scratch/changed" | diff - <(grep '^f32_gemv' "$scratch/table") || fail "another row was counted"
