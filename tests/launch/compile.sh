#!/bin/sh
# Headers with launch functions compile without a warning by every compiler at hand, with the
# stand-in for cuda.h and, where CUDA is installed, with the real one; the program needs no libcuda,
# and nothing in it exits or prints.
#
#     PTXGEN=build/ptxgen tests/launch/compile.sh tests/launch/launch.ini
#
# Exits with 77 (skipped) where there is no compiler.
set -eu

spec=$1
here=$(cd "$(dirname "$1")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$PTXGEN" -q --spec "$spec" --out "$work"
"$PTXGEN" -q --spec "$spec" --out "$work" --prefix ptxgen
cp "$here/user.c" "$work/user.cc"

# The folder of the real cuda.h; nothing where there is none.
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

compiled=0
try() {
    compiler=$1 standard=$2 source=$3
    shift 3
    command -v "$compiler" >/dev/null || return 0
    "$compiler" -std="$standard" -Wall -Wextra -Wpedantic -Wconversion -Wshadow -Werror \
        -I"$here" -I"$work" "$@" "$source" -o "$work/user" -ldl
    "$work/user" || { echo "FAILED: $compiler -std=$standard $*: exit status $?"; exit 1; }
    compiled=$((compiled + 1))
}

for compiler in gcc clang; do
    for standard in c99 c11 c17; do
        try $compiler $standard "$here/user.c" -DFAKE_CUDA
        [ -z "$real" ] || try $compiler $standard "$here/user.c" -isystem "$real"
    done
done
for compiler in g++ clang++; do
    for standard in c++11 c++17 c++20; do
        try $compiler $standard "$work/user.cc" -DFAKE_CUDA
        [ -z "$real" ] || try $compiler $standard "$work/user.cc" -isystem "$real"
    done
done
[ "$compiled" -gt 0 ] || exit 77

cc -std=c11 -DFAKE_CUDA -I"$here" -I"$work" -c "$here/user.c" -o "$work/user.o"
if command -v nm >/dev/null && nm -u "$work/user.o" | grep -E 'exit|print|puts|abort|assert|[^a-z]cu[A-Z]'; then
    echo "FAILED: what a header must not call"
    exit 1
fi
if command -v readelf >/dev/null && readelf -d "$work/user" | grep -q 'NEEDED.*libcuda'; then
    echo "FAILED: needs libcuda"
    exit 1
fi

if [ -n "$real" ]; then
    try cc c11 "$here/user.c" -isystem "$real" -DCUDA_API_PER_THREAD_DEFAULT_STREAM
    grep -q cuLaunchKernel_ptsz "$work/user" || { echo "FAILED: per-thread default streams"; exit 1; }
fi
echo "$compiled programs, the real cuda.h in ${real:-no folder}"
