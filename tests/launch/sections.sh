#!/bin/sh
# Checks that a program which names its kernels, and looks none up, contains the PTX of these kernels only. It is
# compiled into sections, and its linker drops unused ones.
#
#     PTXGEN=build/ptxgen tests/launch/sections.sh tests/launch/launch.ini
#
# Exits with 77 (skipped) without a compiler, or if the linker has no --gc-sections. Each program is built by one
# compiler in one way to embed; with PTXGEN_TEST_TIER=full, by all.
set -eu

spec=$1
here=$(cd "$(dirname "$1")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
for way in string incbin; do
    "$PTXGEN" -q --spec "$spec" --out "$work/$way" --embed "$way"
done
all=$(find "$work/string" -name '*.ptx' | wc -l)
cp "$here/sections.c" "$work/sections.cc"
sections='-ffunction-sections -fdata-sections -Wl,--gc-sections'
echo 'int main(void) { return 0; }' >"$work/nothing.c"
cc -Wl,--gc-sections "$work/nothing.c" -o "$work/nothing" 2>/dev/null || exit 77

# Prints the number of kernels whose PTX is in the program, and sets $size to its size.
has() {
    expected=$1
    shift
    command -v "$1" >/dev/null || return 0
    "$@" -I"$here" -o "$work/program"
    found=$(grep -a -o '\.visible \.entry' "$work/program" | wc -l)
    size=$(wc -c <"$work/program")
    [ "$found" -eq "$expected" ] || { echo "FAILED: $found kernels, not $expected: $*"; exit 1; }
    "$work/program" || { echo "FAILED: exit status $?: $*"; exit 1; }
    echo "$found kernels, $size bytes: $(echo "$*" | sed "s|$work/||g; s|$here/||g")"
}

# Tries one in three; in tier full, all.
number=0
has_some() {
    number=$((number + 1))
    [ "${PTXGEN_TEST_TIER-}" != full ] && [ $((number % 3)) != 0 ] || has "$@"
}

# An alias contains its candidates and nothing else: three kernels of alias.ini, one for each target.
"$PTXGEN" -q --spec "$here/alias/alias.ini" --out "$work/alias"
# shellcheck disable=SC2086
has 3 cc "-I$work/alias" -O2 $sections -DUSE_ALIAS "$here/sections.c"

# shellcheck disable=SC2086
for way in string incbin; do
    include=-I$work/$way
    for compiler in gcc clang; do
        has_some "$all" $compiler "$include" "$here/sections.c"
        has_some 1 $compiler "$include" $sections "$here/sections.c"
        has_some 4 $compiler "$include" $sections -DUSE_PIPELINE "$here/sections.c"
        has_some "$all" $compiler "$include" $sections -DUSE_ALL "$here/sections.c"
        has_some 1 $compiler "$include" -O2 $sections "$here/sections.c"
    done
done
for compiler in g++ clang++; do
    # shellcheck disable=SC2086
    has 1 $compiler "$include" -O2 $sections "$work/sections.cc"
done
