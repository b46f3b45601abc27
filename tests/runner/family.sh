#!/bin/sh
# Checks a family's sections of every_family.ini: family.sh FAMILY BUILD_FOLDER SOURCE_FOLDER
#
# Runs --verify, and --validate if there is a ptxas: for sm_90, since tests run the oldest target's kernels, or for all
# targets if the family has no kernels for sm_90. Then counts instructions of the family's kernels, and prints each row
# of costs.tsv that has changed, before and after.
set -eu
family=$1 build=$2 source=$3
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
PATH=$PATH:/usr/local/cuda/bin
export PATH

awk -v family="$family" '
    /^\[/ { wanted = $0 == "[ptxgen]" || $0 == "[" family "]" || index($0, "[" family ":") == 1 }
    wanted' "$source/tests/every_family.ini" >"$work/spec.ini"
set -- --spec "$work/spec.ini" --target sm_90
"$build/ptxgen" "$@" --print-outputs >/dev/null 2>&1 || set -- --spec "$work/spec.ini"
if command -v ptxas >/dev/null; then
    set -- "$@" --validate
else
    echo "ptxas           skipped: not found"
fi
status=0
"$build/ptxgen" "$@" --verify 2>&1 || status=1

table=$source/src/cost/costs.tsv
cp "$table" "$work/costs.tsv"
if "$build/tests/bench/cost" count "$build/tests/bench/cost.ini" "$work/costs.tsv" "$family" >"$work/said" 2>&1; then
    diff "$table" "$work/costs.tsv" | sed -n 's/^< /was /p; s/^> /is  /p'
    echo "instructions    $(grep -c "^$family	" "$table") rows of src/cost/costs.tsv," \
        "$(diff "$table" "$work/costs.tsv" | grep -c '^>') of them changed"
else
    echo "instructions    skipped: $(tail -1 "$work/said")"
fi
exit $status
