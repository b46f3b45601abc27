/* Experts of prompts and batches on the tensor cores, by a list in device memory
 * (products/experts.h): see products/gemm.h. A row of X has a row of Y for each of its choices, row
 * * experts_used + slot; expert_sum weighs those and adds them up.
 */
#include "gen/products/gemm.h"
#include "gen/products/product_keys.h"
#include "ref/reference.h"

static int64_t tiles_of_share(const instance *in)
{
    const problem_shape *s = &in->shape;
    int64_t rows = s->experts * gemm_rows(in);
    return (s->m * s->experts_used + rows - 1) / rows;
}

static const derived_size sizes[] = {
    { "listed", experts_listed, "experts that rows may use, at most" },
    { "at_once", gemm_expert_rows, "rows of an expert that a block has at a time" },
    { "shares", tiles_of_share, "tiles of an expert's rows, were they as many of each" },
    GEMM_SIZES,
    { NULL, NULL, NULL },
};

#define KEYS_OF_EXPERTS                                                                    \
    KEY_WEIGHTS, KEY_K_OF_WEIGHTS, KEY_N, KEY_EXPERTS, KEY_EXPERTS_USED,                   \
        KEY_NUMBER("m", "rows that have choices", shape.m, 1, EXPERT_MOST_ROWS, .def = 16, \
                   .tag = "m"),                                                            \
        KEY_NUMBER("tile", "rows of an expert at once; 0: by how many there are of each",  \
                   tile_rows, 0, GEMM_USUAL_ROWS, .zero_is_none = true, .tag = "t"),       \
        KEY_STAGES, KEY_OPTION(bias, "vectors [experts,n] added to products")

#define LAUNCH                                                                                  \
    {                                                                                           \
        .block = "256", .grid = { "ceil_div(n, columns)", "listed", "shares" },                 \
        .shared = GEMM_SHARED_OF_F16, .dynamic_shared = "tiles", .sizes = sizes, .dealt = true, \
        .overlap = WAITS_FIRST, .registers = 255                                                \
    }

const family mma_expert_gate_up = {
    .name = "mma_expert_gate_up",
    .summary = "gate and up of the experts that rows use, with the activation, as mma_gemm_f16",
    .computes = "f[m,slot,n] = activation(x[m,k] Wg[expert[m,slot]]^T) * (x[m,k] Wu[...]^T)",
    .op = OP_EXPERT_GATE_UP,
    .activations = FORMAT_F16,
    .halves = true,
    .whole_lines = true,
    .same_bits = true,
    .sm = 80,
    .keys = (const key[]){ KEYS_OF_EXPERTS, KEY_PLANE_ROWS, KEY_ACTIVATION, KEY_END },
    .params = (const param[]){ OUT(F32, y, "m*experts_used*n", 4),
                               EXPERTS_WEIGHTS(wg, 0, EXPERTS_VALUES("k")),
                               EXPERTS_WEIGHTS(wu, 0, EXPERTS_VALUES("k")), F16_ROWS("m"),
                               EXPERTS_BIAS(bg), EXPERTS_BIAS(bu), EXPERTS_LIST, PARAM_END },
    .launch = LAUNCH,
    .check = check_experts,
    .build = gemm_build_of_experts,
    .fit = ref_fit_experts,
    .reference = ref_expert_gate_up,
    .tolerance = 1e-3,
};

const family mma_expert_down = {
    .name = "mma_expert_down",
    .summary = "products of the experts that rows use, for each choice of a row, as mma_gemm_f16",
    .computes = "y[m,slot,n] = x[m,slot,k] W[expert[m,slot]]^T",
    .op = OP_EXPERT_PRODUCT,
    .activations = FORMAT_F16,
    .halves = true,
    .whole_lines = true,
    .same_bits = true,
    .sm = 80,
    .keys = (const key[]){ KEYS_OF_EXPERTS, KEY_PLANE_ROWS, KEY_END },
    .params =
        (const param[]){ OUT(F32, y, "m*experts_used*n", 4),
                         EXPERTS_WEIGHTS(w, 0, EXPERTS_VALUES("k")), F16_ROWS("m*experts_used"),
                         EXPERTS_BIAS(bias), EXPERTS_LIST, PARAM_END },
    .launch = LAUNCH,
    .check = check_experts,
    .build = gemm_build_of_experts,
    .fit = ref_fit_experts,
    .reference = ref_expert_product,
    .tolerance = 1e-3,
};
