#!/bin/sh
# Checks that the arguments of ptxgen_add_kernels reach ptxgen, that CMake follows a spec which changes its prefix, that
# with PREFIX it does not run again, and that errors are reported while configuring.
#
#     cmake_arguments.sh PTXGEN_BUILD PREFIX
#
# Exits with 77 (skipped) if a tool is missing.
set -eu
. "$(dirname "$0")/../stage.sh"
for tool in meson cmake ninja; do
    command -v $tool >/dev/null || { echo "$tool is missing: skipped"; exit 77; }
done

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
stage "$1" "$work/stage" "$work/copy"
printf '[f32_gemv]\nshape = 256x3\n' >"$work/small.ini"
printf '[f32_gemv]\nshape = 256by3\n' >"$work/wrong.ini"

fail() {
    cat "$work/log"
    echo "FAILED: $1"
    exit 1
}

# A project without a program: find_package with these words, then these lines.
configure() {
    rm -rf "$work/build"
    {
        echo 'cmake_minimum_required(VERSION 3.20)'
        echo 'project(engine NONE)'
        echo "find_package(ptxgen $2 REQUIRED)"
        echo 'add_library(kernels INTERFACE)'
        echo "$3"
    } >"$work/CMakeLists.txt"
    cmake -G Ninja -DCMAKE_PREFIX_PATH="$work/stage$1" -S "$work" -B "$work/build" >"$work/log" 2>&1
}

refuses() {
    if configure "$1" "$2" "$3"; then fail "this is accepted: find_package(ptxgen $2) $3"; fi
    grep -q "$4" "$work/log" || fail "no word of '$4'"
}

configure "$2" 0.1 'ptxgen_add_kernels(kernels SPEC small.ini PREFIX gpu TARGETS sm_80 sm_90 VALIDATE VERIFY)' ||
    fail "all arguments"
ninja -C "$work/build" -t commands kernels_gpu_kernels >"$work/log"
grep -q -e '--prefix gpu --target sm_80,sm_90 --validate --verify' "$work/log" || fail "arguments do not arrive"

configure "$2" 0.1...0.9 'ptxgen_add_kernels(kernels SPEC small.ini PREFIX gpu VERIFY)
    ptxgen_add_kernels(kernels SPEC small.ini)' || fail "two sets for one target"
ninja -C "$work/build" kernels_gpu_kernels kernels_ptxgen_kernels >"$work/log" || fail "the build"
for made in gpu/gpu_kernels.h gpu/gpu_kernels.json gpu/gpu.f32_gemv_k256_n3.sm_80.ptx ptxgen/ptxgen_kernels.h; do
    [ -f "$work/build/ptxgen/$made" ] || fail "there is no $made"
done
ninja -C "$work/build" clean >"$work/log"
[ ! -e "$work/build/ptxgen/gpu" ] || fail "clean leaves kernels"

configure "$2" '' 'ptxgen_add_kernels(kernels SPEC small.ini PREFIX gpu)' || fail "no version"
ninja -C "$work/build" kernels_gpu_kernels >"$work/log"
sleep 0.05
touch "$work/small.ini"
ninja -C "$work/build" -v kernels_gpu_kernels >"$work/log"
grep -q -e '--spec' "$work/log" || fail "a touched spec does not run ptxgen"
! grep -q regenerate "$work/log" || fail "a touched spec runs CMake"

configure "$2" '' 'ptxgen_add_kernels(kernels SPEC small.ini)' || fail "no prefix"
sleep 0.05
printf '[ptxgen]\nprefix = other\n' >>"$work/small.ini"
ninja -C "$work/build" kernels_other_kernels >"$work/log" || fail "a changed prefix"
[ -f "$work/build/ptxgen/other/other_kernels.h" ] || fail "a changed prefix does not change the header's name"

refuses "$2" 0.1 'ptxgen_add_kernels(engine SPEC small.ini)' "no target 'engine'"
refuses "$2" 0.1 'ptxgen_add_kernels(kernels small.ini)' 'SPEC is missing'
refuses "$2" 0.1 'ptxgen_add_kernels(kernels SPEC small.ini VERFY)' "unknown or incomplete argument 'VERFY'"
refuses "$2" 0.1 'ptxgen_add_kernels(kernels SPEC wrong.ini)' 'wrong.ini:2:9: error:'
refuses "$2" 0.1 'ptxgen_add_kernels(kernels SPEC missing.ini)' 'missing.ini: error: cannot read'
refuses "$2" 0.99 '' 'version'
refuses "$2" 1.0 '' 'version'
echo "ptxgen_add_kernels takes what it should and says what is wrong"
