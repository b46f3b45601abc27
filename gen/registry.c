/* The list of kernel families: a new one is its file and its line here. */
#include "kernel/family.h"

#define FAMILIES                                  \
    FAMILY(f32_gemv)                              \
    FAMILY(q4_0_gemv)                             \
    FAMILY(q5_0_gemv)                             \
    FAMILY(q8_0_gemv)                             \
    FAMILY(q4k_gemv)                              \
    FAMILY(coalesced_q4k_gemv)                    \
    FAMILY(vectorized_q4k_gemv)                   \
    FAMILY(mwv_q4k_gemv)                          \
    FAMILY(wide_q4k_gemv)                         \
    FAMILY(tiled_q4k_gemv)                        \
    FAMILY(chunked_tiled_q4k_gemv)                \
    FAMILY(dp4a_q4k_gemv)                         \
    FAMILY(mwv_dp4a_q4k_gemv)                     \
    FAMILY(hw_dp4a_q4k_gemv)                      \
    FAMILY(batched_hw_dp4a_q4k_gemv)              \
    FAMILY(inline_q8_dp4a_q4k_gemv)               \
    FAMILY(fused_fp32_q4k_gemv)                   \
    FAMILY(fused_gate_up_q4k_gemv)                \
    FAMILY(fused_rmsnorm_q4k_gemv)                \
    FAMILY(fused_kv_hw_dp4a_q4k_gemv)             \
    FAMILY(fused_gate_up_swiglu_hw_dp4a_q4k_gemv) \
    FAMILY(q6k_gemv)                              \
    FAMILY(coalesced_q6k_gemv)                    \
    FAMILY(mwv_q6k_gemv)                          \
    FAMILY(batched_q6k_gemv)                      \
    FAMILY(dp4a_q6k_gemv)                         \
    FAMILY(hw_dp4a_q6k_gemv)                      \
    FAMILY(gemv)                                  \
    FAMILY(exact_qkv)                             \
    FAMILY(exact_gate_up)                         \
    FAMILY(stream_gemv)                           \
    FAMILY(stream_qkv)                            \
    FAMILY(stream_gate_up)                        \
    FAMILY(stream_gemv_q8)                        \
    FAMILY(stream_qkv_q8)                         \
    FAMILY(stream_gate_up_q8)                     \
    FAMILY(mma_gemm)                              \
    FAMILY(mma_gate_up)                           \
    FAMILY(mma_gemm_f16)                          \
    FAMILY(mma_gate_up_f16)                       \
    FAMILY(mma_qkv)                               \
    FAMILY(mma_expert_gate_up)                    \
    FAMILY(mma_expert_down)                       \
    FAMILY(expert_sum)                            \
    FAMILY(exact_expert_down)                     \
    FAMILY(stream_expert_down)                    \
    FAMILY(exact_expert_gate_up)                  \
    FAMILY(stream_expert_gate_up)                 \
    FAMILY(q8_1_quantize)                         \
    FAMILY(q8_rows)                               \
    FAMILY(f16_rows)                              \
    FAMILY(embed_rows)                            \
    FAMILY(rms_norm)                              \
    FAMILY(rope)                                  \
    FAMILY(softmax)                               \
    FAMILY(transpose)                             \
    FAMILY(silu)                                  \
    FAMILY(gelu)                                  \
    FAMILY(relu)                                  \
    FAMILY(swiglu)                                \
    FAMILY(add)                                   \
    FAMILY(multiply)                              \
    FAMILY(scale)                                 \
    FAMILY(convert)                               \
    FAMILY(kv_write)                              \
    FAMILY(rope_kv_write)                         \
    FAMILY(delta_net)                             \
    FAMILY(sample)                                \
    FAMILY(moe_route)                             \
    FAMILY(incremental_attention)                 \
    FAMILY(multi_warp_attention)                  \
    FAMILY(batched_incremental_attention)         \
    FAMILY(flash_decoding_chunk)                  \
    FAMILY(flash_decoding_reduce)                 \
    FAMILY(gqa_flash_decoding)                    \
    FAMILY(mma_flash_decoding)                    \
    FAMILY(mma_attention)                         \
    FAMILY(mla_query)                             \
    FAMILY(mla_attention)                         \
    FAMILY(mla_values)

#define FAMILY(name) extern const family name;
FAMILIES
#undef FAMILY

const family *const families[] = {
#define FAMILY(name) &name,
    FAMILIES NULL,
#undef FAMILY
};
