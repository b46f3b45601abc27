#!/bin/bash
# Checks that --list has each family once, under a purpose with advice, and that --list -v prints the times of
# --list -v --target for all GPUs side by side.
#
#     list.sh SOURCE_ROOT
set -u
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
failed=0

fail() {
    echo "FAILED: $1"
    failed=1
}

"$PTXGEN" --list >"$scratch/list"
grep '^[A-Z]' "$scratch/list" | grep -v ': .' && fail "a purpose without a word about what to take"

# The families of the registry; pipelines are families with steps.
sed -n 's/^FAMILY([A-Z0-9_]*, \([a-z0-9_]*\))$/\1/p' "$1/src/kernel/families.def" | sort >"$scratch/families"
sed -n '/^Pipelines/q; s/^  \([a-z0-9_]*\) .*/\1/p' "$scratch/list" | sort | diff "$scratch/families" - ||
    fail "families that are missing, or there twice"
sed -n '1,/^Pipelines/d; s/^  \([a-z0-9_]*\) .*/\1/p' "$scratch/list" >"$scratch/pipelines"
grep -q . "$scratch/pipelines" || fail "no pipeline"
while read -r name; do
    "$PTXGEN" --help-family "$name" | grep -q '^steps' || fail "$name is no pipeline"
done <"$scratch/pipelines"
grep -q '^Models: --from-gguf supports afmoe, .*, qwen3next, .*, step35; see --help-family decoder$' "$scratch/list" ||
    fail "the architectures of models"
for name in $(sed 's/.*: //' <(grep '^[A-Z]' "$scratch/list" | grep -v '^Models') | grep -o '[a-z0-9]*_[a-z0-9_]*'); do
    grep -q "^  $name " "$scratch/list" || fail "there is no $name to take"
done

# A row's time on one GPU is start + end + body. The body is at least the longest of memory or balance (without the part
# that was prefetched), issue, latency, tensor cores and shared memory, and at most their sum.
"$PTXGEN" --list -v --target sm_80 | awk 'on && NF { printf "%.1f %s\n", $15, substr($NF, 1, 1) }
                                          /^kernel/ { on = 1 }' >"$scratch/one"
"$PTXGEN" --list -v --target sm_80 |
    awk 'on && NF && $15 != "-" { memory = ($6 > $9 ? $6 : $9) - $13
                    longest = memory
                    for (i = 7; i <= 11; i++) if (i != 9 && $i > longest) longest = $i
                    least = ($6 - $13 > longest || longest > memory ? longest : $6 - $13) + $12 + $14
                    most = memory + $7 + $8 + $10 + $11 + $12 + $14
                    if ($15 < least - 0.26 || $15 > most + 0.36) { print; wrong = 1 } }
         /^kernel/ { on = 1 }
         END { exit wrong }' || fail "times that their parts cannot come to"
"$PTXGEN" --list -v | awk 'on { print substr($0, column, 11) }
    /^kernel/ { on = 1; column = index($0, "sm_80") + 5 - 9 }' |
    awk '{ printf "%.1f %s\n", $1, $2 }' >"$scratch/all"
[ "$(wc -l <"$scratch/one")" -ge 40 ] || fail "the model knows too little"
paste -d ' ' "$scratch/one" "$scratch/all" |
    awk 'function off(a, b) { return a > b ? a - b : b - a }
         off($1, $3) > 0.26 || $2 != $4 { print "row " NR ": " $0; wrong = 1 } END { exit wrong }' ||
    fail "--list -v and --list -v --target sm_80 differ"

exit $failed
