#!/bin/sh
# Checks that headers with launch functions compile without warnings by every compiler at hand: with a stand-in for
# cuda.h included before or after them, without it, and with the real one if CUDA is installed. The program needs no
# libcuda, and nothing in it exits or prints.
#
#     PTXGEN=build/ptxgen tests/launch/compile.sh tests/launch/compile.ini [HEADER]
#
# HEADER is the toy_kernels.h of a decoder (see decoder/toy.c), which is compiled with them. Exits with 77 (skipped)
# without a compiler. Each way to include the header is tried with some standards of each compiler; with
# PTXGEN_TEST_TIER=full, with all.
set -eu

spec=$1
here=$(cd "$(dirname "$1")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
for prefix in engine Engine ptxgen; do
    "$PTXGEN" -q --spec "$spec" --out "$work" --prefix $prefix
done
cp "$here/user.c" "$work/user.cc"
decoder=-DNO_DECODER
if [ $# -gt 1 ]; then
    cp "$2" "$work"
    decoder=-DDECODER
fi

# Prints the folder of the real cuda.h, or nothing.
cuda_include() {
    nvcc=$(command -v nvcc || true)
    for folder in "${CUDA_HOME:-/nowhere}/include" "${nvcc%/bin/nvcc}/include" /usr/local/cuda/include; do
        if [ -f "$folder/cuda.h" ]; then
            echo "$folder"
            return
        fi
    done
}
real=$(cuda_include)
# A copy under another name, which only an explicit include finds.
mkdir "$work/real"
printf '#pragma GCC system_header\n#include "%s/cuda.h"\n' "$real" >"$work/real/real_cuda.h"

compiled=0 row=0
# try COMPILER STANDARD SOURCE OPTION...: compiles; run COMPILER ...: compiles and runs.
try() {
    compiler=$1 standard=$2 source=$3
    shift 3
    command -v "$compiler" >/dev/null || return 0
    "$compiler" -std="$standard" -Wall -Wextra -Wpedantic -Wconversion -Wshadow -Werror \
        -DWANTED_LAUNCH='"cuLaunchKernel"' $decoder -I"$here" -I"$work" "$@" "$source"
    compiled=$((compiled + 1))
}
# try_some NUMBER COMPILER STANDARD ...: tries one combination in three; NUMBER shifts the choice by one per row. In
# tier full it tries all.
try_some() {
    [ "${PTXGEN_TEST_TIER-}" != full ] && [ $((($1 + row) % 3)) != 0 ] && return
    shift
    try "$@"
}
run() {
    try "$@" -o "$work/user" -ldl
    command -v "$1" >/dev/null || return 0
    "$work/user" || { echo "FAILED: $*: exit status $?"; exit 1; }
}

before='-DBEFORE="fake_cuda.h"' behind='-DBEHIND="fake_cuda.h"'
for language in 'gcc clang c99 c11 c17 c2x user.c' 'g++ clang++ c++11 c++17 c++20 c++2b user.cc'; do
    # shellcheck disable=SC2086
    set -- $language
    source=$here/user.c
    [ "$7" = user.c ] || source=$work/user.cc
    for compiler in "$1" "$2"; do
        for standard in "$3" "$4" "$5" "$6"; do
            row=$((row + 1))
            try_some 0 $compiler $standard "$source" -fsyntax-only "$before"
            try_some 1 $compiler $standard "$source" -fsyntax-only "$behind"
            try_some 2 $compiler $standard "$source" -fsyntax-only
            [ -z "$real" ] || try_some 3 $compiler $standard "$source" -fsyntax-only -isystem "$real"
            [ -z "$real" ] || try_some 4 $compiler $standard "$source" -fsyntax-only -I"$work/real" '-DBEHIND="real_cuda.h"'
        done
    done
    run "$1" "$3" "$source"
    run "$2" "$3" "$source" "$before"
    [ -z "$real" ] || run "$1" "$4" "$source" -isystem "$real"
done
[ "$compiled" -gt 0 ] || exit 77

cc -std=c11 -I"$here" -I"$work" -DWANTED_LAUNCH='""' $decoder -c "$here/user.c" -o "$work/user.o"
if command -v nm >/dev/null && nm -u "$work/user.o" | grep -E 'exit|print|puts|abort|assert|[^a-z]cu[A-Z]'; then
    echo "FAILED: what a header must not call"
    exit 1
fi
if command -v readelf >/dev/null && readelf -d "$work/user" | grep -q 'NEEDED.*libcuda'; then
    echo "FAILED: needs libcuda"
    exit 1
fi

# Per-thread default streams use other entry points, with cuda.h and without it.
for types in -DNONE ${real:+-isystem"$real"}; do
    cc -std=c11 -I"$here" -I"$work" -DWANTED_LAUNCH='"cuLaunchKernel_ptsz"' $decoder "$types" \
        -DCUDA_API_PER_THREAD_DEFAULT_STREAM "$here/user.c" -o "$work/user" -ldl
    "$work/user" || { echo "FAILED: per-thread default streams, $types: exit status $?"; exit 1; }
done
echo "$compiled compilations, the real cuda.h in ${real:-no folder}"
