#!/bin/sh
# Every code has an explanation of several lines whose example brings about that code and no other:
# a wrong kernels.ini, commands that run beside a right one, or, for defects, the message itself.
set -u
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cd "$scratch" || exit 1
printf '#!/bin/sh\nexec "%s" "$@"\n' "$PTXGEN" >ptxgen
chmod +x ptxgen
PATH=$scratch:$PATH
failed=0

fail() {
    echo "FAILED: $1: $2"
    failed=1
}

ptxgen --explain >list || exit 1
codes=$(sed 's/ .*//' list)
[ "$(echo "$codes" | wc -l)" -ge 30 ] || fail list "too short"
[ "$codes" = "$(echo "$codes" | LC_ALL=C sort -u)" ] || fail list "not sorted, or a code twice"

for code in $codes; do
    ptxgen --explain "$code" >explanation || fail "$code" "not explained"
    [ "$(wc -l <explanation)" -ge 10 ] || fail "$code" "explained in a few words"
    awk 'length > 84 && !/^    /' explanation | grep . && fail "$code" "a line above 84 characters"
    [ "$(head -n 1 explanation)" = "$(sed -n "s/^$code  /$code: /p" list)" ] ||
        fail "$code" "list and explanation differ"
    awk '/^What to do:/ { on = 0 } on { sub(/^    /, ""); print } /^Example:/ { on = 1; getline }' \
        explanation >example

    rm -rf case && mkdir case && cd case || exit 1
    if grep -q '^\$ ' ../example; then
        printf '[f32_gemv]\nshape = 256x1\n' >kernels.ini
        sed -n 's/^\$ //p' ../example >commands
        sh ./commands >messages 2>&1
    elif grep -q "\[$code\]" ../example; then
        cp ../example messages
    else
        cp ../example kernels.ini
        ptxgen --spec kernels.ini --print-outputs >messages 2>&1
    fi
    found=$(grep -o '\[E[0-9]*\]' messages | sort -u)
    [ "$found" = "[$code]" ] || { cat messages; fail "$code" "the example gives '$found'"; }
    cd .. || exit 1
done
exit "$failed"
