#!/bin/sh
# Checks that torch_peers.py reads a spec's lists: torch_peers.sh PYTHON TORCH_PEERS
set -eu
spec=$(mktemp)
trap 'rm -f "$spec"' EXIT
cat >"$spec" <<'END'
; of one kind each
[stream_gemv:q4k]
weights = q4_k
shape = 1024x40, 4kx1k,  ; a comment
        512x3
[stream_gemv:q4k_batch]
weights = q4_k
shape = 256x1
m     = 2, 4
[q4k_gemv]
shape = 256x2
[mma_gemm_f16]
weights = q4_k, q6_k
shape = 512x1k
m = 128
[mma_gemm_f16:again]
weights = f16
shape = 512x1k
[gqa_flash_decoding]
head_dim     = 64
num_heads    = 8
num_kv_heads = 2
kv_type      = q8_0, f16
max_seq_len  = 2^8, 1k..3k:1k
m            = 3
END
[ "$("$1" "$2" --list "$spec")" = "\
linear_f16_k1024_n40 0.1 MB
linear_f16_k4096_n1024 8.4 MB
linear_f16_k512_n3 0.0 MB
linear_f16_k512_n1024_m256 1.8 MB
linear_f16_k512_n1024_m512 2.6 MB
sdpa_d64_h8_kv2_s256_m3_f16 0.4 MB
sdpa_d64_h8_kv2_s1024_m3_f16 1.6 MB
sdpa_d64_h8_kv2_s2048_m3_f16 3.2 MB
sdpa_d64_h8_kv2_s3072_m3_f16 4.7 MB" ]
[ "$("$1" "$2" --list "$spec" gqa_flash_decoding | sed 's/_.*//' | sort -u)" = sdpa ]
[ -z "$("$1" "$2" --list "$spec" q4k_gemv)" ]
