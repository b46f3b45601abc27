#include "gen/common/norm.h"

#include "gen/common/reduce.h"

val norm_factor(ptx *p, const instance *in, val mean)
{
    return rsqrt(p, add(p, mean, (float)in->options.epsilon));
}

val norm_factor_or_nan(ptx *p, const instance *in, val mean)
{
    val factor = norm_factor(p, in, mean);
    return fma(p, mean, imm(F32, 0), factor);
}

val norm_chunk_squares(ptx *p, const val *x, unsigned count)
{
    val sum = imm(F32, 0);
    for (unsigned i = 0; i < count; i++)
        sum = fma(p, x[i], x[i], sum);
    return warp_sum(p, sum);
}

val norm_mean_of_chunks(ptx *p, const instance *in, val sums, unsigned chunks)
{
    var sum = var_f32(p, 0.0f);
    PTX_FOR (p, chunk, lane_id(p), chunks, WARP)
        assign(p, sum, add(p, sum, ld_shared(p, F32, mad(p, chunk, imm(U32, F32_BYTES), sums), 0)));
    return mul(p, warp_sum(p, get(p, sum)), (float)(1.0 / (double)in->shape.k));
}
