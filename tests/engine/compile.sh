#!/bin/sh
# Checks that the starter engine and server compile without warnings by every compiler at hand, as C99 and as C11, with cuda.h and
# without it.
#
#     PTXGEN=build/ptxgen tests/engine/compile.sh SOURCE MODEL.gguf
#
# Exits with 77 (skipped) without a compiler.
set -eu
source=$1 model=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
for program in engine server; do
    "$PTXGEN" -q --init $program --out "$work/$program" --from-gguf "$model"
    "$PTXGEN" -q --spec "$work/$program/model.ini" --out "$work/$program"
done
mkdir "$work/cuda"
cp "$source/tests/launch/fake_cuda.h" "$work/cuda/cuda.h"

# Prints the folder of the real cuda.h, or nothing.
real=
nvcc=$(command -v nvcc || true)
for folder in "${CUDA_HOME:-/nowhere}/include" "${nvcc%/bin/nvcc}/include" /usr/local/cuda/include; do
    [ -n "$real" ] || [ ! -f "$folder/cuda.h" ] || real=$folder
done

compiled=0
# try COMPILER STANDARD FILE OPTION...
try() {
    compiler=$1 standard=$2 file=$3
    shift 3
    "$compiler" -std="$standard" -Wall -Wextra -Wpedantic -Wconversion -Wshadow -Wstrict-prototypes -Werror \
        -fsyntax-only "$@" "$file"
    compiled=$((compiled + 1))
}

for compiler in gcc clang; do
    command -v $compiler >/dev/null || continue
    for standard in c99 c11; do
        for file in "$work"/engine/*.c "$work"/server/server.c "$work"/server/clients.c; do
            try $compiler $standard "$file"
        done
        for file in "$work"/engine/engine.c "$work"/engine/loader.c "$work"/server/server.c; do
            try $compiler $standard "$file" -I"$work/cuda"
            [ -z "$real" ] || try $compiler $standard "$file" -isystem "$real"
        done
    done
done
[ "$compiled" -gt 0 ] || exit 77
echo "$compiled compilations, the real cuda.h in ${real:-no folder}"
