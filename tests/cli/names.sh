#!/bin/bash
# Tests folders with difficult names: Make and Ninja run ptxgen again when a file of the spec changes and only then, or
# ptxgen reports that it cannot write the name.
set -u
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
failed=0 built=0 refused=0
for tool in make ninja; do
    command -v $tool >/dev/null || { echo "$tool is missing: skipped"; exit 77; }
done

# Stands in for ptxas, which must exist.
mkdir "$scratch/bin"
cat >"$scratch/bin/ptxas" <<'.'
#!/bin/sh
[ "$1" = --version ] && echo 'Cuda compilation tools, release 12.4, V12.4.131'
[ "$1" = --help ] && echo "Allowed values for this option: 'sm_80','sm_90'."
exit 0
.
chmod +x "$scratch/bin/ptxas"
PATH=$scratch/bin:$PATH

# fail WHAT: reports a failure of the current name.
fail() {
    printf 'FAILED: %q: %s\n' "$name" "$1"
    failed=1
}

# make_state: 0 if the header is up to date, 1 if Make would generate it.
make_state() {
    printf '%%.h:\n\t@echo made\n' >rules
    make -rR -q -f d -f rules >said 2>&1
}

# ended STATUS: 0 is success; 2 needs the code for bad names; anything else is a failure.
ended() {
    [ "$1" = 0 ] && { built=$((built + 1)); return 0; }
    [ "$1" = 2 ] && grep -q '\[E040\]' said || { cat said; fail "status $1"; }
    refused=$((refused + 1))
    return 1
}

names=(plain 'a b' 'aéb' ./-a ./x/../-a ' a' 'a ' 'a(b)' '(a)' '~a' 'a\#b' 'a\:b' 'a\\ b' 'a\' $'a\tb' $'a\nb' $'a\rb' $'a\x01b' $'a\x7fb')
for character in '!' '"' '#' '$' '%' '&' "'" '(' ')' '*' '+' ',' - . : ';' '<' '=' '>' '?' @ '[' '\' ']' '^' _ '`' '{' '|' '}' '~'; do
    names+=("a${character}b")
done
for number in "${!names[@]}"; do
    name=${names[number]}
    mkdir -p "$scratch/$number/x" "$scratch/$number/$name" && cd "$scratch/$number" || exit 1
    printf '[ptxgen]\nprefix = k\ninclude = part.ini\n' >"$name/k.ini"
    printf '[f32_gemv]\nshape = 64x1\n' >"$name/part.ini"

    "$PTXGEN" -q "--spec=$name/k.ini" "--out=$name/o" --depfile d >said 2>&1
    if ended $?; then
        make_state || fail "Make would run ptxgen again: $(cat said)"
        touch -d '2 hours' "$name/part.ini"
        make_state
        [ $? = 1 ] || fail "Make does not see a change: $(cat said)"
        touch "$name/part.ini"
    fi
    "$PTXGEN" -q "--spec=$name/k.ini" "--out=$name/o" --emit-ninja "$name/b.ninja" --depfile d >said 2>&1
    if ended $?; then
        ninja -f "$name/b.ninja" verify >said 2>&1 || { cat said; fail "Ninja"; }
        ninja -n -f "$name/b.ninja" verify >said 2>&1
        grep -q 'no work to do' said || fail "Ninja would run again: $(cat said)"
        touch -d '2 hours' "$name/part.ini"
        ninja -n -f "$name/b.ninja" verify >said 2>&1
        grep -q 'no work to do' said && fail "Ninja does not see a change"
    fi
done
[ $built -ge 40 ] && [ $refused -ge 30 ] || { echo "FAILED: $built built, $refused refused"; failed=1; }
cd / || exit 1
exit $failed
