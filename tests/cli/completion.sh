#!/bin/bash
# Runs the completions in their shells, as a user does who presses Tab.
#
#     completion.sh SOURCE_ROOT
set -u
completion=$1/templates/completion
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
mkdir -p "$scratch/bin" "$scratch/place/a folder"
ln -s "$PTXGEN" "$scratch/bin/ptxgen"
PATH=$scratch/bin:$PATH
cd "$scratch/place" || exit 1
: >kernels.ini
: >notes.txt
failed=0

source "$completion/ptxgen.bash"
compopt() { :; } # this bash has no line editor

# in_bash EXPECTED WORD...: compares the completions of the last word, one per line.
in_bash() {
    local expected=$1
    shift
    COMP_WORDS=(ptxgen "$@") COMP_CWORD=$# COMPREPLY=()
    _ptxgen ptxgen
    check "bash: ptxgen $*" "$expected" "$(printf '%s\n' "${COMPREPLY[@]+"${COMPREPLY[@]}"}")"
}

in_fish() {
    command -v fish >/dev/null || return 0
    check "fish: $2" "$1" "$(fish --no-config -c "source '$completion/ptxgen.fish'; complete -C '$2'" | cut -f 1)"
}

check() {
    [ "$2" = "$3" ] && return
    printf 'FAILED: %s\n--- expected\n%s\n--- offered\n%s\n' "$1" "$2" "$3"
    failed=1
}

in_bash "--help-family"$'\n'"--help" --he
in_bash "--verify"$'\n'"--verbose"$'\n'"--version" --ver
in_bash "kernels.ini"$'\n'"a folder" --spec ''
in_bash "kernels.ini" -s k
in_bash "a folder" --out ''
in_bash "always" --color al
in_bash "auto"$'\n'"always" --color = a
in_bash "auto"$'\n'"always"$'\n'"never" --color = ''
in_bash "q4k_gemv" --help-family q4k
in_bash "E014" --explain E014
in_bash "E014" --explain = E014
in_bash "--version" --explain --vers
in_bash "sm_80,sm_75" --target sm_80,sm_7
in_bash "build,fold" --dump build,f
in_bash "" --prefix x
in_bash "notes.txt" --depfile n
[ "$(_ptxgen_options ptxgen | wc -l)" -ge 15 ] || check "bash: options" "at least 15" "fewer"

in_fish "q4k_gemv" "ptxgen --help-family q4k_g"
in_fish "--explain=E014" "ptxgen --explain=E014"
in_fish "--version" "ptxgen --vers"
in_fish "always" "ptxgen --color al"

exit "$failed"
