#!/bin/sh
# The kit for machines with a GPU brings its libraries with it and runs, here on the emulated
# driver: try_kit.sh GPU_KIT_SH SOURCE_ROOT SPEC LIBCUDA_FOLDER PROGRAM_PTX_OR_MODEL...
set -eu
pack=$1
root=$2
spec=$3
libcuda=$4
shift 4
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
"$pack" "$root" "$scratch/kit.tar.gz" "$@"
tar -C "$scratch" -xzf "$scratch/kit.tar.gz"
kit=$scratch/gpu-kit

LD_LIBRARY_PATH=$kit/bin ldd "$kit"/bin/test_* "$kit"/bin/bench_* "$kit"/bin/engine* >"$scratch/libraries"
if grep -E 'inih|jansson|cmocka|pcre2|utf8proc' "$scratch/libraries" | grep -v "$kit/bin"; then
    echo "the kit's programs take these from the machine"
    exit 1
fi

export LD_LIBRARY_PATH=$libcuda SHAPES=$spec PTXGEN_TEST_FAMILY=f32_gemv
"$kit/run" --quick >"$scratch/log" 2>&1 || { cat "$scratch/log" && exit 1; }
grep -q '^| stream_gemv_q4k' "$scratch/log"
grep -q '^passed [1-9]' "$scratch/log"
for result in "$kit"/tests/bench/results/gpu-*.md; do
    grep -q "commit $(cat "$kit/commit")" "$result"
    grep -q '^| stream_gemv_q4k' "$result"
    grep -q '^| step of 8 |' "$result"
done

"$kit/run" tests >"$scratch/log" 2>&1
grep -q '^passed [1-9]' "$scratch/log"
"$kit/run" bench --quick f32_gemv >"$scratch/log"
[ "$(sed -n 's/^| \([a-z].*_gemv\)_k.*/\1/p' "$scratch/log")" = f32_gemv ]
"$kit/run" steps --quick --positions 3 --prompts none >"$scratch/log"
grep -q '^tiny, behind 3 tokens:' "$scratch/log"
if [ -e "$kit/bin/engine" ]; then
    [ "$("$kit/run" engine "once upon" 2>/dev/null | wc -w)" -gt 2 ]
fi
[ "$(find "$kit/tests/bench/results" -name '*.md' | wc -l)" = 2 ]
