#!/bin/sh
# Headers with launch functions compile without a warning by every compiler at hand, with the
# stand-in for cuda.h and, where CUDA is installed, with the real one; the program links no libcuda.
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

if [ -n "$real" ]; then
    try cc c11 "$here/user.c" -isystem "$real" -DCUDA_API_PER_THREAD_DEFAULT_STREAM
    grep -q cuLaunchKernel_ptsz "$work/user" || { echo "FAILED: per-thread default streams"; exit 1; }
fi
echo "$compiled programs, the real cuda.h in ${real:-no folder}"
