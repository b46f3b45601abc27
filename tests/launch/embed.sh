#!/bin/sh
# Checks that a program gets the bytes of the .ptx files in each way that a header can embed them, and that a compiler
# reports a way which it does not support.
#
#     PTXGEN=build/ptxgen tests/launch/embed.sh tests/launch/launch.ini
#
# Exits with 77 (skipped) without a compiler.
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
# The program prints the PTX of all kernels in the manifest's order.
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
    refuse 'engine.mwv_q4k_gemv_k512_n7_w4.sm_75.ptx' $compiler -I"$work/elsewhere" "$here/embed.c"
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

# A .ptx file that changes after generation: with the same number of bytes, more, or fewer.
changed=$work/changed
"$PTXGEN" -q --spec "$spec" --out "$changed" --embed incbin
file=$changed/engine.mwv_q4k_gemv_k512_n7_w4.sm_75.ptx
cp "$file" "$work/original"
for compiler in gcc clang; do
    command -v $compiler >/dev/null || continue
    for edit in 's/add.u32/sub.u32/' '$ a //' '$ d'; do
        sed "$edit" "$work/original" >"$file"
        cmp -s "$file" "$work/original" && { echo "FAILED: '$edit' changes nothing"; exit 1; }
        # shellcheck disable=SC2086
        $compiler $strict -I"$changed" "$here/embed.c" -o "$work/embed"
        status=0
        "$work/embed" >/dev/null || status=$?
        [ $status = 2 ] || { echo "FAILED: $compiler: '$edit' goes unnoticed"; exit 1; }
    done
done

# Two specs share a folder: each header has kernels of its own targets, and a second run of both changes nothing.
two=$work/two
mkdir "$two"
for spec_of in 'a sm_80' 'b sm_90'; do
    printf '[ptxgen]\nprefix = %s\ntargets = %s\n[f32_gemv]\nshape = 4096x256\n' ${spec_of} >"$two/${spec_of% *}.ini"
done
cat >"$two/two.c" <<'.'
#define A_KERNELS_IMPLEMENTATION
#include "a_kernels.h"
#define B_KERNELS_IMPLEMENTATION
#include "b_kernels.h"
int main(void)
{
    return !strstr(a_kernels[0]->ptx, ".target sm_80\n") || !strstr(b_kernels[0]->ptx, ".target sm_90\n");
}
.
for way in string c23 incbin; do
    "$PTXGEN" -q --spec "$two/a.ini" --out "$two/$way" --embed "$way"
    "$PTXGEN" -q --spec "$two/b.ini" --out "$two/$way" --embed "$way"
    for name in a b; do
        "$PTXGEN" --spec "$two/$name.ini" --out "$two/$way" --embed "$way" | grep -q ', 0 changed)' ||
            { echo "FAILED: $way: $name's files are not as it left them"; exit 1; }
    done
done
for compiler in gcc clang; do
    command -v $compiler >/dev/null || continue
    for way in string incbin; do
        $compiler -I"$two/$way" "$two/two.c" -o "$two/two" && "$two/two" ||
            { echo "FAILED: $way: a kernel of the wrong target"; exit 1; }
    done
done

[ "$tried" -gt 0 ] || exit 77
echo "$tried programs; $embeds compilers with #embed"
