#!/bin/sh
# Checks that the manual page and the completions have exactly the options of --help, with their arguments, and the
# targets, stages and [ptxgen] keys that the program accepts.
#
#     documented.sh SOURCE_ROOT
set -u
sed --version 2>/dev/null | grep -q GNU || exit 77
root=$1
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
mkdir "$scratch/man"
for page in "$root"/templates/man/*.[1-8]; do
    "$PTXGEN" --man "$(basename "$page")" >"$scratch/man/$(basename "$page")" || : >"$scratch/failed"
done

fail() {
    echo "FAILED: $1"
    : >"$scratch/failed" # a variable would be lost in a pipe
}

# same WHAT: the lines on standard input are the lines of the file "expected", in any order.
same() {
    sort -u >"$scratch/found"
    [ -s "$scratch/expected" ] && diff -u "$scratch/expected" "$scratch/found" || fail "$1"
}

# "out required", "validate optional" or "verify none", after the short option, if there is one.
"$PTXGEN" --help | sed -n \
    -e 's/^  \(-[a-z], \|    \)--\([a-z-]*\)\[=[A-Z]*\] .*/\1\2 optional/p; t' \
    -e 's/^  \(-[a-z], \|    \)--\([a-z-]*\) [A-Z][A-Z/]* .*/\1\2 required/p; t' \
    -e 's/^  \(-[a-z], \|    \)--\([a-z-]*\) .*/\1\2 none/p' |
    sed 's/^ *//' | sort -u >"$scratch/options"
[ "$(wc -l <"$scratch/options")" -ge 15 ] || fail "--help lists too little"

cp "$scratch/options" "$scratch/expected"
sed -n -e 's/^\.It Fl \([a-z] , \)\{0,1\}-\([a-z-]*\) Ns Op = .*/\1\2 optional/p; t' \
    -e 's/^\.It Fl \([a-z] , \)\{0,1\}-\([a-z-]*\) Ar .*/\1\2 required/p; t' \
    -e 's/^\.It Fl \([a-z] , \)\{0,1\}-\([a-z-]*\)$/\1\2 none/p' "$root/templates/man/ptxgen.1" |
    sed 's/^\([a-z]\) , /-\1, /' | same "the options of the man page"

sed -n 's/^complete -c ptxgen //p' "$root/templates/completion/ptxgen.fish" |
    sed -n -e 's/^-s \([a-z]\) -l/-\1, -l/' -e 's/^\(-[a-z], \)\{0,1\}-l \([a-z-]*\) \(.*\)/\1\2 \3/p' |
    sed -e 's/^\(\(-., \)\{0,1\}[a-z-]*\) -[rx] .*/\1 required/; t' \
        -e 's/^\(\(-., \)\{0,1\}[a-z-]*\) -[fF] .*/\1 optional/; t' -e 's/ -d .*/ none/' |
    same "the options of the fish completion"

sed -n "s/^    '\(([^)]*)\)\{0,1\}//p" "$root/templates/completion/_ptxgen" |
    sed "s/^'{-\([a-z]\)+*,\(--[a-z-]*=\{0,1\}\)}'/-\1, \2/" |
    sed -e 's/--\([a-z-]*\)=-\[.*/\1 optional/; t' \
        -e 's/--\([a-z-]*\)=\[.*/\1 required/; t' -e 's/--\([a-z-]*\)\[.*/\1 none/' |
    same "the options of the zsh completion"

# The bash completion asks the program for its options. It has a case for each option with an argument.
sed -n 's/ none$//; t; s/ [a-z]*$//; s/\([a-z-]*\)$/--\1/p' "$scratch/options" | sort -u >"$scratch/expected"
sed -n '/^    case \$option/,/^    esac/s/^    \(-[^)]*\)).*/\1/p' "$root/templates/completion/ptxgen.bash" |
    sed 's/ | /\n/g' | sed -e '/^-[a-z]$/{N;s/\n/, /}' | same "the arguments of the bash completion"

printf '[f32_gemv]\nshape = 256x1\n' >"$scratch/right.ini"
"$PTXGEN" --spec "$scratch/right.ini" --print-outputs --target nothing_like_it 2>&1 |
    sed -n "s/.*the targets are \(.*\) \[E.*/\1/p" | sed 's/, /\n/g' | sort -u >"$scratch/expected"
for shell in ptxgen.bash ptxgen.fish _ptxgen; do
    grep -o 'sm_[0-9]*a\{0,1\}' "$root/templates/completion/$shell" | same "the targets of $shell"
done

"$PTXGEN" --spec "$scratch/right.ini" --dump nothing_like_it 2>&1 |
    sed -n 's/.*accepts a list of \(.*\), not .*/\1/p' | sed 's/, \| and /\n/g' | sort -u >"$scratch/expected"
sed -n 's/.*--dump) .*words=\$.\(.*\). ;;/\1/p' "$root/templates/completion/ptxgen.bash" |
    sed 's/\\n/\n/g' | same "the stages of the bash completion"
sed -n "s/.*'--dump=.*compadd - \(.*\)' .*/\1/p" "$root/templates/completion/_ptxgen" |
    tr ' ' '\n' | same "the stages of the zsh completion"
sed -n 's/.* -l dump .*append , \(.*\))..*/\1/p' "$root/templates/completion/ptxgen.fish" |
    tr ' ' '\n' | same "the stages of the fish completion"

printf '[ptxgen]\nnothing_like_it = 1\n' >"$scratch/keys.ini"
"$PTXGEN" --spec "$scratch/keys.ini" --print-outputs 2>&1 |
    sed -n 's/.*its keys are \(.*\) \[E.*/\1/p' | sed 's/, /\n/g' | sort -u >"$scratch/expected"
"$PTXGEN" --help-family ptxgen | sed -n -e 's/^keys/    /' -e 's/^        \([a-z][a-z]*\) .*/\1/p' | same "the keys of [ptxgen]"

if command -v mandoc >/dev/null; then
    for page in "$scratch"/man/*; do
        mandoc -T lint -W warning "$page" || fail "mandoc -T lint $page"
    done
fi
if command -v man >/dev/null; then
    for page in "$scratch"/man/*; do
        man --warnings -E UTF-8 -l "$page" 2>&1 >/dev/null | grep . && fail "man --warnings $page"
    done
fi
command -v zsh >/dev/null && { zsh -n "$root/templates/completion/_ptxgen" || fail zsh; }
command -v fish >/dev/null && { fish -n "$root/templates/completion/ptxgen.fish" || fail fish; }

[ ! -e "$scratch/failed" ]
