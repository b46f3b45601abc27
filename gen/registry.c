/* The list of kernel families: a new one is its file and its two lines here. */
#include "gen/family.h"

extern const family f32_gemv;
extern const family q4k_gemv;
extern const family mwv_q4k_gemv;
extern const family mwv_dp4a_q4k_gemv;
extern const family q8_1_quantize;
extern const family incremental_attention;

const family *const families[] = {
    &f32_gemv, &q4k_gemv, &mwv_q4k_gemv, &mwv_dp4a_q4k_gemv, &q8_1_quantize, &incremental_attention,
    NULL,
};
