#!/bin/sh
# Checks the library's declarations of the driver API against CUDA's: every source file compiles with the real cuda.h,
# which checks each function's type, each constant and each layout. The library has every function of CUDA's.
#
#     tests/libcuda/agreement.sh . build/src/libcuda/libcuda.so.1
#
# Exits with 77 (skipped) without CUDA 13.
set -eu

library=$(realpath "$2")
cd "$1"
nvcc=$(command -v nvcc || true)
for folder in "${CUDA_HOME:-/nowhere}/include" "${nvcc%/bin/nvcc}/include" /usr/local/cuda/include; do
    [ ! -f "$folder/cuda.h" ] || break
done
version=$(sed -n 's/^#define CUDA_VERSION \([0-9]*\)$/\1/p' "$folder/cuda.h" 2>/dev/null || true)
[ "${version:-0}" -ge 13000 ] || { echo "no cuda.h of CUDA 13: skipped"; exit 77; }

for file in src/libcuda/*.c src/libcuda/entry/*.c tests/libcuda/interface.c; do
    ${CC:-cc} -std=c11 -Wall -Wextra -Werror -Isrc -isystem "$folder" -DPTXGEN_REAL_CUDA_H \
        -fsyntax-only "$file"
done

if command -v nm >/dev/null; then
    names=$(mktemp)
    trap 'rm -f "$names"' EXIT
    nm -D --defined-only "$library" | sed 's/.* //' >"$names"
    missing=$(sed -n 's/.*CUresult CUDAAPI \(cu[A-Za-z0-9_]*\)(.*/\1/p' "$folder/cuda.h" "$folder/cudaGL.h" |
        grep -v '^cuWGL' | sort -u | grep -vxFf "$names" || true)
    [ -z "$missing" ] || { echo "not in $library:" $missing; exit 1; }
fi
echo "agrees with $folder/cuda.h, $version"
