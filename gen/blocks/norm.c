#include "gen/blocks/norm.h"

val norm_factor(ptx *p, const instance *in, val mean)
{
    return rsqrt(p, add(p, mean, (float)in->options.epsilon));
}

val norm_factor_or_nan(ptx *p, const instance *in, val mean)
{
    val factor = norm_factor(p, in, mean);
    return fma(p, mean, imm(F32, 0), factor);
}
