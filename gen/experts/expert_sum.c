/* Weighted sum of the expert outputs of each row, in the order of its slots; other rows do not
 * matter. A thread computes 16 bytes of a row of Y, or one value if n is not a multiple of 4. Only
 * the sums are rounded. */
#include "gen/products/experts.h"
#include "gen/products/product_keys.h"
#include "ref/reference.h"

enum { THREADS = 256, FOUR = 4 };

static int64_t values_of_thread(const instance *in)
{
    return in->shape.n % FOUR ? 1 : FOUR;
}

static void load_values(ptx *p, const instance *in, const char *name, val row, val column,
                        val values[FOUR])
{
    val at = mad_wide(p, row, in->shape.n * F32_BYTES, parameter(p, name));
    at = mad_wide(p, column, F32_BYTES, at);
    if (values_of_thread(in) == FOUR)
        load_floats(p, at, 0, FOUR, values);
    else
        values[0] = ld_const(p, F32, at, 0);
}

static void expert_sum_build(ptx *p, const instance *in)
{
    unsigned count = (unsigned)values_of_thread(in), used = (unsigned)in->shape.experts_used;
    unsigned weights = used + (unsigned)experts_shared_weights(in);
    val row = named(p, "row", ctaid_y(p));
    val column = mul(p, mad(p, ctaid_x(p), THREADS, tid_x(p)), count);
    ret_if(p, ge(p, column, in->shape.n));
    /* All slots are loaded before the sums. */
    val parts[EXPERTS_USED_AT_MOST + 1][FOUR], sums[FOUR], residual[FOUR];
    val weight = mad_wide(p, row, weights * F32_BYTES, parameter(p, "weights"));
    for (unsigned slot = 0; slot < used; slot++)
        load_values(p, in, "x", mad(p, row, used, imm(U32, slot)), column, parts[slot]);
    if (weights > used)
        load_values(p, in, "shared", row, column, parts[used]);
    for (unsigned i = 0; i < count; i++)
        sums[i] = imm(F32, 0);
    for (unsigned slot = 0; slot < weights; slot++) {
        val by = ld_const(p, F32, weight, slot * F32_BYTES);
        for (unsigned i = 0; i < count; i++)
            sums[i] = fma(p, by, parts[slot][i], sums[i]);
    }
    for (unsigned i = 0; in->options.scale > 0 && i < count; i++)
        sums[i] = mul(p, sums[i], (float)in->options.scale);
    if (in->options.residual)
        load_values(p, in, "residual", row, column, residual);
    for (unsigned i = 0; in->options.residual && i < count; i++)
        sums[i] = add(p, sums[i], residual[i]);
    val y = mad_wide(p, row, in->shape.n * F32_BYTES, parameter(p, "y"));
    y = mad_wide(p, column, F32_BYTES, y);
    if (count == FOUR)
        store_floats(p, y, 0, FOUR, sums);
    else
        st_global(p, F32, y, 0, sums[0]);
}

const family expert_sum = {
    .name = "expert_sum",
    .summary = "weighted sum of the expert outputs of each row",
    .computes = "y[m,n] = residual + scale sum over slots of weights[m,slot] x[m,slot,n]",
    F32_FAMILY(OP_EXPERT_SUM, expert_sum_build, ref_expert_sum, 5e-7),
    .keys =
        KEYS(KEY_N, KEY_EXPERTS_USED, KEY_ROW_COUNT, KEY_SHARED_OUTPUT,
             KEY_OPTION(residual, "add: residual[m,n] is added"), KEY_SCALE("factor of the sum")),
    .params = PARAMS(OUT(F32, y, "m*n", 16), IN(F32, x, "m*experts_used*n", 16),
                     IN_WHERE(route.shared, F32, shared, "m*n", 16),
                     IN_WHERE(residual, F32, residual, "m*n", 16),
                     IN(F32, weights, "m*(experts_used+shared_weights)", 4)),
    .launch = { .block = "256",
                .grid = { "ceil_div(n, 256*values)", "m" },
                .sizes = SIZES(
                    { "values", values_of_thread,
                      "per thread: 4, or 1 if n is not a multiple of 4" },
                    { "shared_weights", experts_shared_weights, "1 with a shared expert, else 0" }),
                .overlap = WAITS_FIRST,
                .registers = 128 },
};
