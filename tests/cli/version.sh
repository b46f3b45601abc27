#!/bin/sh
# Checks that --version prints the project's version and the ABI number of generated headers.
#
#     version.sh SOURCE_ROOT VERSION
set -eu
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
printf '[f32_gemv]\nshape = 256x1\n' |
    "$PTXGEN" --quiet --spec - --out "$scratch"
abi=$(sed -n 's/^#define PTXGEN_ABI \([0-9]*\)$/\1/p' "$scratch/ptxgen_kernels.h")
[ "$("$PTXGEN" --version)" = "ptxgen $2, header ABI $abi" ]
grep -q "\"ptxgen\": \"$2\"" "$scratch/ptxgen_kernels.json"
grep -q "\"abi\": $abi," "$scratch/ptxgen_kernels.json"
grep -q "^// ptxgen $2 " "$scratch/ptxgen.f32_gemv_k256_n1.sm_80.ptx"
# The sources take the version from the build and do not repeat it.
! grep -rnF "\"$2\"" "$1/src" "$1/gen" --include='*.[ch]'
