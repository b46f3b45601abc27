/* The list of kernel families: a new one is its file and its two lines here. */
#include "gen/family.h"

extern const family f32_gemv;
extern const family q4_0_gemv;
extern const family q5_0_gemv;
extern const family q8_0_gemv;
extern const family q4k_gemv;
extern const family coalesced_q4k_gemv;
extern const family vectorized_q4k_gemv;
extern const family wide_q4k_gemv;
extern const family mwv_q4k_gemv;
extern const family tiled_q4k_gemv;
extern const family chunked_tiled_q4k_gemv;
extern const family mwv_dp4a_q4k_gemv;
extern const family dp4a_q4k_gemv;
extern const family hw_dp4a_q4k_gemv;
extern const family batched_hw_dp4a_q4k_gemv;
extern const family inline_q8_dp4a_q4k_gemv;
extern const family fused_fp32_q4k_gemv;
extern const family fused_gate_up_q4k_gemv;
extern const family fused_rmsnorm_q4k_gemv;
extern const family fused_kv_hw_dp4a_q4k_gemv;
extern const family fused_gate_up_swiglu_hw_dp4a_q4k_gemv;
extern const family q6k_gemv;
extern const family coalesced_q6k_gemv;
extern const family mwv_q6k_gemv;
extern const family batched_q6k_gemv;
extern const family dp4a_q6k_gemv;
extern const family hw_dp4a_q6k_gemv;
extern const family q8_1_quantize;
extern const family incremental_attention;

const family *const families[] = {
    &f32_gemv,
    &q4_0_gemv,
    &q5_0_gemv,
    &q8_0_gemv,
    &q4k_gemv,
    &coalesced_q4k_gemv,
    &vectorized_q4k_gemv,
    &wide_q4k_gemv,
    &mwv_q4k_gemv,
    &tiled_q4k_gemv,
    &chunked_tiled_q4k_gemv,
    &dp4a_q4k_gemv,
    &mwv_dp4a_q4k_gemv,
    &hw_dp4a_q4k_gemv,
    &batched_hw_dp4a_q4k_gemv,
    &inline_q8_dp4a_q4k_gemv,
    &fused_fp32_q4k_gemv,
    &fused_gate_up_q4k_gemv,
    &fused_rmsnorm_q4k_gemv,
    &fused_kv_hw_dp4a_q4k_gemv,
    &fused_gate_up_swiglu_hw_dp4a_q4k_gemv,
    &q6k_gemv,
    &coalesced_q6k_gemv,
    &mwv_q6k_gemv,
    &batched_q6k_gemv,
    &dp4a_q6k_gemv,
    &hw_dp4a_q6k_gemv,
    &q8_1_quantize,
    &incremental_attention,
    NULL,
};
