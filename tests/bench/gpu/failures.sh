#!/bin/sh
# Checks that a failing kernel costs bench_gpu only its own row, a failing model bench_step its own, and a failing
# figure bench_constants or bench_probes its own.
#
#     failures.sh BENCH_GPU BENCH_STEP MODEL BENCH_CONSTANTS CONSTANTS_PTX BENCH_PROBES PROBES_PTX
#
# One kernel needs more memory than the emulated device has. One peer traps, which destroys the context. One peer is too
# new for the driver.
set -eu
bench_gpu=$1
bench_step=$2
model=$3
bench_constants=$4
constants=$5
bench_probes=$6
probes=$7
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

cat >"$scratch/spec.ini" <<'END'
[embed_rows]
weights = f32
k = 256k
n = 256k
[q4k_gemv]
shape = 512x8
[stream_gemv:q4k]
weights = q4_k
shape = 512x8, 256x8
END

# Writes a peer with this PTX version and this body, and compares the result of each row.
expect() {
    cat >"$scratch/stream_q4k_gemv_peer.ptx" <<END
.version $1
.target sm_75
.address_size 64
.visible .entry stream_q4k_gemv_peer()
{
    $2;
}
END
    status=0
    "$bench_gpu" --quick --peers "$scratch" "$scratch/spec.ini" >"$scratch/table" || status=$?
    sed -n -e 's/^| \([^|]*_k[0-9][^|]*\) |.*| \([^|]*\) |$/\1 \2/' -e 's/ in L2$//' -e 's/ $//' \
        -e 's/^\(FAILED .*([0-9]*)\).*/\1/' -e '/_k[0-9]\|^passed/p' "$scratch/table" >"$scratch/rows"
    cat >"$scratch/expected"
    diff "$scratch/expected" "$scratch/rows"
    [ "$status" = 1 ]
}

expect 7.0 trap <<'END'
embed_rows_f32_k262144_n262144_m1 FAILED
FAILED embed_rows_f32_k262144_n262144_m1: cuMemAlloc_v2: out of memory (2)
passed 0
q4k_gemv_k512_n8
stream_gemv_q4k_k512_n8_m1_w12_r2
nvcc: stream_gemv_q4k_k512_n8_m1_w12_r2 FAILED
FAILED nvcc: stream_gemv_q4k_k512_n8_m1_w12_r2: cuCtxSynchronize: unspecified launch failure (719)
passed 2
stream_gemv_q4k_k256_n8_m1_w12_r2
nvcc: stream_gemv_q4k_k256_n8_m1_w12_r2 FAILED
FAILED nvcc: stream_gemv_q4k_k256_n8_m1_w12_r2: cuCtxSynchronize: unspecified launch failure (719)
passed 1
passed 0
END
expect 9.9 trap <<'END'
embed_rows_f32_k262144_n262144_m1 FAILED
FAILED embed_rows_f32_k262144_n262144_m1: cuMemAlloc_v2: out of memory (2)
passed 0
q4k_gemv_k512_n8
stream_gemv_q4k_k512_n8_m1_w12_r2
nvcc: stream_gemv_q4k_k512_n8_m1_w12_r2 FAILED
FAILED nvcc: stream_gemv_q4k_k512_n8_m1_w12_r2: cuModuleLoadDataEx: the provided PTX was compiled with an unsupported toolchain (222)
stream_gemv_q4k_k256_n8_m1_w12_r2
passed 3
END
expect 7.0 ret <<'END'
embed_rows_f32_k262144_n262144_m1 FAILED
FAILED embed_rows_f32_k262144_n262144_m1: cuMemAlloc_v2: out of memory (2)
passed 0
q4k_gemv_k512_n8
stream_gemv_q4k_k512_n8_m1_w12_r2
nvcc: stream_gemv_q4k_k512_n8_m1_w12_r2 FAILED
FAILED nvcc: stream_gemv_q4k_k512_n8_m1_w12_r2: not every element of the outputs was written
stream_gemv_q4k_k256_n8_m1_w12_r2
nvcc: stream_gemv_q4k_k256_n8_m1_w12_r2 FAILED
FAILED nvcc: stream_gemv_q4k_k256_n8_m1_w12_r2: not every element of the outputs was written
passed 3
END

# A GPU that cannot run some of the kernels, and none of the probes.
cat >"$scratch/mixed.ini" <<'END'
[mma_gemm_f16]
weights = q4_k
shape = 512x40
m = 128, 256
[q4k_gemv]
shape = 512x8
END
expect_mixed() {
    PTXGEN_CUDA_TARGET=$1 "$bench_gpu" --quick "$scratch/mixed.ini" |
        sed -n 's/^| \([^|]*_k[0-9][^|]*\) |.*/\1/p; /^# mma/p; /^passed/p' >"$scratch/rows"
    diff - "$scratch/rows"
}
expect_mixed sm_86 <<'END'
# mma_gemm_f16_q4k_k512_n40_m256_rows_s3 needs another target than sm_86
mma_gemm_f16_q4k_k512_n40_m128_rows_s3
q4k_gemv_k512_n8
passed 2
END
expect_mixed sm_75 <<'END'
# mma_gemm_f16_q4k_k512_n40_m128_rows_s3 needs another target than sm_75
# mma_gemm_f16_q4k_k512_n40_m256_rows_s3 needs another target than sm_75
q4k_gemv_k512_n8
passed 1
END

# Batches of launches, as on a GPU, instead of one launch each.
"$bench_gpu" --brief --in-l2 --jobs 2 "$scratch/mixed.ini" q4k_gemv >"$scratch/table"
[ "$(tail -n 1 "$scratch/table")" = "passed 1" ]

status=0
PTXGEN_CUDA_TARGET=sm_86 "$bench_probes" --quick || status=$?
[ "$status" = 77 ]

# A spec without a model, and a model whose caches exceed the memory.
sed -e 's/^layers .*/layers = 400/' -e 's/^max_seq_len .*/max_seq_len = 1M/' "$model" \
    >"$scratch/large.ini"
status=0
"$bench_step" --quick --prompts none "$scratch/spec.ini" "$scratch/large.ini" "$model" \
    >"$scratch/table" || status=$?
sed -n 's/^\(FAILED .*\|passed .*\)/\1/p; s/^| \(step of [0-9]*\) |.*/\1/p' "$scratch/table" \
    >"$scratch/rows"
diff - "$scratch/rows" <<'END'
FAILED spec: the spec has no [decoder]
FAILED large: cuMemAlloc_v2: out of memory (2)
passed 0
step of 1
step of 8
passed 1
END
[ "$status" = 1 ]

# Replaces the kernels beside the program by kernels that read other bytes, or follow no pointers.
cp "$bench_constants" "$scratch/bench_constants"
sed -e 's/ld.global.cg.u64 %at, \[%at\]/mov.u64 %at, %at/' \
    -e 's/add.u32 %x14, %x14, %x15/add.u32 %x14, %x14, 0/' "$constants" >"$scratch/constants.ptx"
status=0
"$scratch/bench_constants" --quick >"$scratch/figures" || status=$?
sed -n 's/^\(FAILED.*\)/\1/p; s/^\(clock\|passed\) /\1 /p' "$scratch/figures" |
    sed 's/^clock .* /clock /' >"$scratch/rows"
diff - "$scratch/rows" <<'END'
FAILED read: the bytes read differ from memory
FAILED clock_reading: the bytes read differ from memory
FAILED read_l2: the bytes read differ from memory
FAILED read_l1: the bytes read differ from memory
clock MHz
FAILED latency: the last pointer differs from the one written
FAILED latency_near: the last pointer differs from the one written
FAILED latency_l2: the last pointer differs from the one written
passed 9
END
[ "$status" = 1 ]

# Probes that stage or read other bytes, one that traps, which destroys the context, and one that does not follow
# pointers.
cp "$bench_probes" "$scratch/bench_probes"
sed -e '/entry stage_quads/,/^}/s/st.shared.u32 \[%at+512\], %q1/st.shared.u32 [%at+512], %q2/' \
    -e '/entry read_q8_words/,/^}/s/^.done:/&\n    trap;/' "$probes" >"$scratch/probes.ptx"
expect_probes() {
    status=0
    "$scratch/bench_probes" --quick >"$scratch/figures" || status=$?
    sed -n '/^FAILED\|^passed\|^touch_6x256/{s/^\(touch[^ ]*\) .*/\1/;s/: cu.*(/: (/;
        s/: sum .*/: sum/;p}' "$scratch/figures" >"$scratch/rows"
    diff - "$scratch/rows"
    [ "$status" = 1 ]
}
expect_probes <<'END'
FAILED stage_4096: the staged bytes are not x in 8 bits
FAILED stage_14336: the staged bytes are not x in 8 bits
FAILED q8_words: (719)
FAILED q8_lines: (719)
passed 4
touch_6x256
FAILED cold_latency: the last pointer differs from the one written
passed 28
END
sed '/entry read_q8_lines/,/^}/s/0x5432/0x3210/
    s/st.global.v4.u32 \[%to\], {%x0, %x1/st.global.v4.u32 [%to], {%x1, %x1/' "$probes" >"$scratch/probes.ptx"
cp "$constants" "$scratch/constants.ptx"
expect_probes <<'END'
FAILED q8_lines: sum
FAILED touch_48x32: the copy differs from its source
FAILED touch_12x128: the copy differs from its source
FAILED touch_6x256: the copy differs from its source
FAILED touch_132x32: the copy differs from its source
FAILED touch_132x256: the copy differs from its source
passed 57
END
