#include "gen/common/fragments.h"

void fragment_add(ptx *p, const var sums[4], val4 a, val2 b)
{
    val4 c = { { V(sums[0]), V(sums[1]), V(sums[2]), V(sums[3]) } };
    val4 d = mma_m16n8k16_f16(p, a, b, c);
    for (unsigned i = 0; i < 4; i++)
        assign(p, sums[i], d.v[i]);
}
