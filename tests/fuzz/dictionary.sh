#!/bin/sh
# Prints a fuzzer's dictionary, one quoted word per line.
#
#     dictionary.sh ptx FILE...   words of the emulator's tables: instructions, modifiers, directives
#     dictionary.sh spec PTXGEN   families, keys and their values, from the tool
#     dictionary.sh driver        nothing, because its inputs are binary; likewise fatbin
#     dictionary.sh gguf FILE...  keys that the reader looks up
#     dictionary.sh tokenizer FILE...
#                                 keys of the starter engine's tokenizer, and names of tokens
set -eu
what=$1
shift

# Strings with a space are messages.
table_words() {
    grep -oh '"[^" ]*"' "$@" | grep -oE '%?[A-Za-z_][A-Za-z0-9_]+(::[A-Za-z0-9_]+)*'
}

spec_words() {
    for family in $("$1" --list | sed -n 's/^  \([^ ]*\) .*/\1/p'); do
        printf '[%s]\n' "$family"
        "$1" --help-family "$family" | awk -F '  +' '
            /^[a-z]/ { in_keys = /^keys/ }
            in_keys { print $2; gsub(", ", "\n", $3); print $3 }'
    done
    printf '%s\n' '[ptxgen]' prefix targets sm_75 sm_120 shape '2^' .. 4kx1k
}

case $what in
driver | fatbin) echo ;;
ptx) table_words "$@" ;;
spec) spec_words "$@" ;;
tokenizer) grep -ohE '"(tokenizer\.[a-z._]*|<[|a-z_]*>|[a-z0-9]+-[a-z0-9-]+)"' "$@" | tr -d '"' ;;
gguf) grep -oh '"[a-z]*\.[a-z.]*"' "$@" | tr -d '"' ;;
esac | LC_ALL=C sort -u | sed '/./s/.*/"&"/; 1i # words' # libFuzzer refuses an empty file
