#!/bin/bash
# What README and manual pages show of the tool is what the tool prints; the README is short enough to be read, its
# table of formats says what the formats and the families say, and it names the architectures.
#
#   readme.sh SOURCE_ROOT            checks; with PTXGEN set
#   readme.sh SOURCE_ROOT update     writes the table into the README
set -u
root=$1
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
failed=0

fail() {
    echo "FAILED: $1"
    failed=1
}

# | Q4_K | 0.5625 | all |: the type, bytes a weight, and which of the families with weights take it.
formats() {
    local families family with_weights
    families=$("$PTXGEN" --list | sed -n '/^Pipelines/q; s/^  \([^ ]*\) .*/\1/p')
    for family in $families; do # "family q4_k" of each that its key takes
        "$PTXGEN" --help-family "$family" | awk -v family="$family" '
            /^params/ { exit } # which may be called weights, too
            /^keys/ { sub(/^keys/, "    ") } # the key may be the first
            $1 == "weights" { on = 1; sub(/^ *weights/, "") }
            on { while (match($0, /^ *[a-z0-9_]+,? ?/)) {
                     word = substr($0, RSTART, RLENGTH); more = word ~ /,/; gsub(/[ ,]/, "", word)
                     print family, word
                     $0 = substr($0, RLENGTH + 1)
                     if (!more) { on = 0; break }
                 } }'
    done >"$scratch/takes"
    with_weights=$(cut -d ' ' -f 1 "$scratch/takes" | sort -u | wc -l)
    echo '| type | bytes a weight | families with `weights` |'
    echo '|---|---|---|'
    sed -n 's/^FORMAT([A-Z0-9_]*, "\([a-z0-9_]*\)", [0-9A-Z_]*, \([0-9]*\), \([0-9]*\), .*/\1 \2 \3/p' \
        "$root/src/kernel/format.def" | while read -r name values bytes; do
        awk -v name="$name" -v values="$values" -v bytes="$bytes" -v all="$with_weights" '
            $2 == name { taking = taking (taking ? ", " : "") "`" $1 "`"; count++ }
            END { printf "| %s | %.5g | %s |\n", toupper(name), bytes / values, count == all ? "all" : taking }' \
            "$scratch/takes"
    done
}

if [ "${2-}" = update ]; then
    formats >"$scratch/formats"
    awk -v table="$scratch/formats" '
        /^\| type \| bytes/ { on = 1; while ((getline line <table) > 0) print line }
        /^$/ { on = 0 }
        !on' "$root/README.md" >"$scratch/README.md" && cp "$scratch/README.md" "$root/README.md"
    exit
fi

# shown NAME TEXT: below each "$ ptxgen --list" or "$ ptxgen --help-family ..." stands what that prints, up to a blank
# line.
shown() {
    grep -E '^ *\$ ptxgen --(list|help-family [a-z0-9_]+)$' "$2" | sed 's/^ *\$ //' >"$scratch/commands"
    while read -r command; do
        awk -v command="\$ $command" '
            index($0, command) && $0 ~ /^ *\$/ { on = 1; indent = index($0, "$"); next }
            /^$/ { on = 0 }
            on { print substr($0, indent) }' "$2" >"$scratch/shown"
        # shellcheck disable=SC2086
        "$PTXGEN" ${command#ptxgen } >"$scratch/printed"
        diff -u "$scratch/shown" "$scratch/printed" || fail "$1 shows another output of $command"
        echo "$1: $command" >>"$scratch/checked"
    done <"$scratch/commands"
}

shown README.md "$root/README.md"
for page in ptxgen spec header libcuda; do
    "$PTXGEN" --man "$page" >"$scratch/page" || fail "--man $page"
    shown "the page $page" "$scratch/page"
done
[ -s "$scratch/checked" ] || fail "no page shows a command"

formats >"$scratch/formats"
[ "$(wc -l <"$scratch/formats")" -ge 8 ] || fail "too few formats"
sed -n '/^| type | bytes/,/^$/p' "$root/README.md" | sed '/^$/d' |
    diff -u - "$scratch/formats" || fail "the README's table of formats; tests/readme.sh . update writes it"
"$PTXGEN" --list | sed -n 's/^Models: --from-gguf takes \(.*\); see .*/\1/p' | sed 's/, /\n/g' >"$scratch/architectures"
[ "$(wc -l <"$scratch/architectures")" -ge 13 ] || fail "too few architectures"
sed -n '/Architectures: /,/;/p' "$root/README.md" | tr -c 'a-z0-9_-' '\n' >"$scratch/words"
while read -r name; do
    grep -qx -e "$name" "$scratch/words" || fail "the README does not name the architecture $name"
done <"$scratch/architectures"
[ "$(wc -l <"$root/README.md")" -lt 200 ] || fail "the README has 200 lines or more"
exit $failed
