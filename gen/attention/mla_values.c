/* What becomes of latent attention's result: a head's values' matrix times its sum of latents, a
 * warp a row, nothing rounded. o is [m, H, L], W [H * value_dim, L], y [m, H, value_dim]. Of more
 * than 8 rows of o a block has 8. */
#include "gen/common/next.h"
#include "gen/products/row_products.h"
#include "gen/attention/mla.h"
#include "ref/reference.h"

enum { WARPS = 8 };

static void mla_values_build(ptx *p, const instance *in)
{
    const problem_shape *s = &in->shape;
    format f = instance_weights(in);
    unsigned rows = (unsigned)(s->num_heads * s->value_dim);
    unsigned latent_bytes = (unsigned)s->latent * F32_BYTES;
    unsigned row_bytes = (unsigned)s->num_heads * latent_bytes;
    row_group group = row_group_new(p, in, ctaid_y(p));
    row_products r = row_products_new(f, (unsigned)s->latent, group.count, imm(U64, 0), row_bytes);
    val warp = mad(p, ctaid_x(p), imm(U32, WARPS), warp_id(p));
    val row =
        named(p, "row", mad(p, warp, imm(U32, row_products_rows(&r)), row_products_own(p, &r)));
    val own = min(p, row, rows - 1), head = named(p, "head", div(p, own, s->value_dim));
    val sums[MAX_VECTORS];
    r.x = mad_wide(p, head, latent_bytes, row_group_start(p, &group, parameter(p, "o"), row_bytes));
    row_products_of(
        p, &r, mad_wide(p, own, (unsigned)format_bytes(f, (uint64_t)s->latent), parameter(p, "w")),
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
    return WARPS * row_products_rows(&r);
}

static const derived_size sizes[] = {
    { "block_rows", block_rows, "rows of a block: a warp has one, or several short ones" },
    { "groups", row_group_count, "of up to 8 rows of o" },
    { NULL, NULL, NULL },
};

const family mla_values = {
    .name = "mla_values",
    .summary = "the values' matrix times what latent attention gives, a warp a row",
    .computes = "y[m,h] = W[h] o[m,h]",
    .op = OP_MLA_VALUES,
    .same_bits = true,
    .activations = FORMAT_F32,
    .keys =
        (const key[]){
            KEY_WEIGHTS,
            KEY_MLA_HEADS,
            KEY_NUMBER("latent", "columns of W", shape.latent, 32, MLA_MOST_LATENT,
                       .multiple_of = 32, .of_weights = true, .required = true, .tag = "l"),
            KEY_NUMBER("value_dim", "rows of W a head", shape.value_dim, 1, 1024, .required = true,
                       .tag = "d"),
            KEY_MLA_ROWS,
            KEY_NEXT,
            KEY_END,
        },
    .params = (const param[]){ OUT(F32, y, "m*num_heads*value_dim", 4),
                               WEIGHTS(w, "num_heads*value_dim*latent"),
                               IN(F32, o, "m*num_heads*latent", 16), NEXT_WEIGHTS, PARAM_END },
    .launch = { .block = "256",
                .grid = { "ceil_div(num_heads*value_dim, block_rows)", "groups" },
                .sizes = sizes,
                .overlap = WAITS_FIRST,
                .registers = 128 },
    .build = mla_values_build,
    .reference = ref_mla_values,
    .tolerance = 5e-7,
};
