#!/bin/sh
# What the README shows of the tool is what the tool prints: each indented line "$ ptxgen ..." of --list and
# --help-family is followed by exactly that output.
#
#   readme.sh README
set -eu
readme=$1
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
grep -E '^    \$ ptxgen --(list|help-family [a-z0-9_]+)$' "$readme" | sed 's/^    \$ //' >"$scratch/commands"
[ -s "$scratch/commands" ]
while read -r command; do
    # From the command to the next blank line, without the indentation.
    awk -v command="    \$ $command" '$0 == command { on = 1; next } /^$/ { on = 0 } on { print substr($0, 5) }' \
        "$readme" >"$scratch/shown"
    # shellcheck disable=SC2086
    "$PTXGEN" ${command#ptxgen } >"$scratch/printed"
    diff -u "$scratch/shown" "$scratch/printed" || { echo "README differs from: $command"; exit 1; }
done <"$scratch/commands"
