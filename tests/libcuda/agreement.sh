#!/bin/sh
# The library's own declarations of the driver API are those of CUDA's: every source file compiles
# against the real cuda.h, which checks each function's type, each constant and each layout.
#
#     tests/libcuda/agreement.sh .
#
# Exits with 77 (skipped) where no CUDA 13 is installed.
set -eu

cd "$1"
nvcc=$(command -v nvcc || true)
for folder in "${CUDA_HOME:-/nowhere}/include" "${nvcc%/bin/nvcc}/include" /usr/local/cuda/include; do
    [ ! -f "$folder/cuda.h" ] || break
done
version=$(sed -n 's/^#define CUDA_VERSION \([0-9]*\)$/\1/p' "$folder/cuda.h" 2>/dev/null || true)
[ "${version:-0}" -ge 13000 ] || { echo "no cuda.h of CUDA 13: skipped"; exit 77; }

for file in src/libcuda/*.c src/libcuda/entry/*.c; do
    ${CC:-cc} -std=c11 -Wall -Wextra -Werror -Isrc -isystem "$folder" -DPTXGEN_REAL_CUDA_H \
        -fsyntax-only "$file"
done
echo "agrees with $folder/cuda.h, $version"
