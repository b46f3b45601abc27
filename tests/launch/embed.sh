#!/bin/sh
# A program gets the bytes of the .ptx files in each of the ways that a header can hold them, and a
# compiler that does not know a way says so.
#
#     PTXGEN=build/ptxgen tests/launch/embed.sh tests/launch/launch.ini
#
# Exits with 77 (skipped) where there is no compiler.
set -eu

spec=$1
here=$(cd "$(dirname "$1")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
strict='-Wall -Wextra -Wpedantic -Wconversion -Wshadow -Werror'
for way in string c23 incbin; do
    "$PTXGEN" -q --spec "$spec" --out "$work/$way" --embed "$way"
    cp "$here/embed.c" "$work/$way/embed.cc"
done

tried=0
# The program prints every kernel's PTX in turn; the manifest has the same order.
try() {
    way=$1 compiler=$2
    shift 2
    command -v "$compiler" >/dev/null || return 0
    # shellcheck disable=SC2086
    "$compiler" $strict -I"$work/$way" "$@" -o "$work/embed"
    "$work/embed" >"$work/embedded"
    sed -n 's/.*"file": "\(.*\)",/\1/p' "$work/$way/engine_kernels.json" |
        (cd "$work/$way" && xargs cat) >"$work/files"
    cmp "$work/embedded" "$work/files" || { echo "FAILED: $way, $compiler $*"; exit 1; }
    tried=$((tried + 1))
}

refuse() {
    reason=$1 compiler=$2
    shift 2
    command -v "$compiler" >/dev/null || return 0
    if "$compiler" "$@" -c -o "$work/embed.o" 2>"$work/errors"; then
        echo "FAILED: compiled: $compiler $*"
        exit 1
    fi
    grep -q "$reason" "$work/errors" || { echo "FAILED: does not say '$reason'"; cat "$work/errors"; exit 1; }
}

for compiler in gcc clang; do
    try string $compiler -std=c99 "$here/embed.c"
    try incbin $compiler -std=c99 "$here/embed.c"
    try incbin $compiler -std=c17 -O2 "-DENGINE_KERNELS_FOLDER=\"$work/incbin/\"" "$here/embed.c"
    mkdir -p "$work/elsewhere"
    cp "$work/incbin/engine_kernels.h" "$work/elsewhere"
    refuse 'mwv_q4k_gemv_k512_n7_w4.ptx' $compiler -I"$work/elsewhere" "$here/embed.c"
done
for compiler in g++ clang++; do
    try string $compiler -std=c++11 "$work/string/embed.cc"
    try incbin $compiler -std=c++20 "$work/incbin/embed.cc"
done

embeds=0
for compiler in cc gcc-15 gcc-16 clang clang-19 clang-20 clang-21; do
    command -v $compiler >/dev/null || continue
    if printf '#ifndef __has_embed\n#error\n#endif\n' | $compiler -std=c2x -fsyntax-only -xc - 2>/dev/null; then
        try c23 $compiler -std=c2x "$here/embed.c"
        embeds=$((embeds + 1))
    else
        refuse 'embed = c23' $compiler -I"$work/c23" "$here/embed.c"
    fi
done

[ "$tried" -gt 0 ] || exit 77
echo "$tried programs; $embeds compilers with #embed"
