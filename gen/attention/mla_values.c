/* The values of latent attention: o [m, H, L] times W [H * value_dim, L] is y [m, H, value_dim], one
 * or several rows per warp, without quantization. With plane_rows W is a file's attn_kv_b: the last
 * value_dim of each plane_rows rows. */
#include "gen/attention/mla.h"
#include "gen/common/next.h"
#include "gen/products/product_keys.h"
#include "gen/products/row_products.h"
#include "ref/reference.h"

enum { WARPS = 8 };

static void mla_values_build(ptx *p, const instance *in)
{
    const problem_shape *s = &in->shape;
    format f = instance_weights(in);
    unsigned rows = (unsigned)(s->num_heads * s->value_dim);
    unsigned latent_bytes = (unsigned)s->latent * F32_BYTES;
    unsigned skipped = s->plane_rows ? (unsigned)(s->plane_rows - s->value_dim) : 0;
    unsigned row_bytes = (unsigned)s->num_heads * latent_bytes;
    row_group group = row_group_new(p, in, ctaid_y(p));
    row_products r = row_products_new(f, (unsigned)s->latent, group.count, imm(U64, 0), row_bytes);
    val warp = mad(p, ctaid_x(p), imm(U32, WARPS), warp_id(p));
    val row = named(p, "row", mad(p, warp, imm(U32, r.rows), row_products_own(p, &r)));
    val own = min(p, row, rows - 1), head = named(p, "head", div(p, own, s->value_dim));
    val sums[MAX_VECTORS],
        number = skipped ? mad(p, head, imm(U32, skipped), add(p, own, skipped)) : own;
    r.x = mad_wide(p, head, latent_bytes, row_group_start(p, &group, parameter(p, "o"), row_bytes));
    row_products_of(
        p, &r,
        mad_wide(p, number, (unsigned)format_bytes(f, (uint64_t)s->latent), parameter(p, "w")),
        sums);
    val y = row_group_start(p, &group, parameter(p, "y"), rows * F32_BYTES);
    val at = mad_wide(p, row, F32_BYTES, y);
    PTX_IF (p, bit_and(p, lt(p, row, rows), row_products_first(p, &r)))
        for (unsigned v = 0; v < group.count; v++)
            PTX_IF (p, row_is_own(p, &group, row_of_group(p, &group, imm(U32, v))))
                st_global(p, F32, at, (int64_t)v * rows * F32_BYTES, sums[v]);
    fetch_next(p, in);
}

static int64_t block_rows(const instance *in)
{
    row_products r =
        row_products_new(instance_weights(in), (unsigned)in->shape.latent, 1, (val){ 0 }, 0);
    return WARPS * r.rows;
}

static const char *check_mla_values(const instance *in, arena *a, const char **blamed)
{
    if (!in->shape.plane_rows || in->shape.plane_rows > in->shape.value_dim)
        return NULL;
    return blame_key(a, blamed, "plane_rows",
                     "plane_rows = %lld is not more than value_dim = %lld; use nope + value_dim",
                     (long long)in->shape.plane_rows, (long long)in->shape.value_dim);
}

const family mla_values = {
    .name = "mla_values",
    .summary = "product of the values' matrix with the result of latent attention",
    .computes = "y[m,h] = W[h] o[m,h]",
    F32_FAMILY(OP_MLA_VALUES, mla_values_build, ref_mla_values, 5e-7),
    .keys = KEYS(KEY_WEIGHTS, KEY_MLA_HEADS,
                 KEY_NUMBER("latent", "columns of W, e.g. 512", shape.latent, 32, MLA_MOST_LATENT,
                            .multiple_of = 32, .of_weights = true, .required = true, .tag = "l"),
                 KEY_NUMBER("value_dim", "rows of W per head, e.g. 128", shape.value_dim, 1, 1024,
                            .required = true, .tag = "d"),
                 KEY_MLA_PLANE_ROWS("rows per head of attn_kv_b as W; 0: attn_v_b"), KEY_MLA_ROWS,
                 KEY_NEXT),
    .params =
        PARAMS(OUT(F32, y, "m*num_heads*value_dim", 4),
               WEIGHTS(w, "num_heads*value_dim*latent", MLA_WHOLE),
               WEIGHTS(w, "num_heads*plane_rows*latent", MLA_PART("num_heads*value_dim*latent")),
               IN(F32, o, "m*num_heads*latent", 16), NEXT_WEIGHTS),
    .launch = { .block = "256",
                .grid = { "ceil_div(num_heads*value_dim, block_rows)", "groups" },
                .sizes = SIZES({ "block_rows", block_rows,
                                 "rows per block; a warp has one row, or several short rows" },
                               { "groups", row_group_count, "groups of up to 8 rows of o" }),
                .overlap = WAITS_FIRST,
                .registers = 128 },
    .check = check_mla_values,
};
