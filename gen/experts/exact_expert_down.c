/* Nothing is rounded: a warp takes a row of every expert's matrix, and goes through the list with
 * it, a row of X at a time. What is computed stands in experts/expert_down.h.
 */
#include "gen/products/exact.h"
#include "gen/experts/expert_down.h"
#include "ref/reference.h"

/* A row's product with one vector: the lane's part. */
static val exact_product(ptx *p, const expert_down *d, val id, val row, val vector)
{
    instance one = *d->in;
    gemv_operands g = d->g;
    val product;
    one.shape.m = 1;
    g.x = vector;
    g.w = expert_plane(p, &d->planes, d->g.w, id, d->g.row_bytes);
    exact s = { .in = &one,
                .x = &g,
                .rows = 1,
                .formats = { instance_weights(d->in) },
                .at = { gemv_row(p, &g, row) },
                .columns = dim_k(p, d->in) };
    exact_multiply(p, &s, &product);
    return product;
}

static void exact_expert_down_build(ptx *p, const instance *in)
{
    expert_down d = expert_down_new(p, in, 1, WARP);
    val row = named(p, "row", ctaid_x(p));
    expert_down_begin(p, &d);
    PTX_FOR (p, number, 0, d.in_use, 1) {
        expert_entry e = expert_entry_at(p, &d.planes, d.list, number);
        PTX_FOR (p, user, 0, e.count, 1) {
            val word = expert_choice(p, &e, user), row_of_x = expert_row(p, in, word);
            var product = ptx_var(p, F32, expert_nan(p));
            PTX_IF (p, expert_exists(p, in, e.id)) {
                val biases[STREAM_ROWS];
                val sum =
                    exact_product(p, &d, e.id, row, expert_down_values(p, &d, word, row_of_x));
                expert_down_biases(p, &d, e.id, row, biases);
                assign(p, product, in->options.bias ? add(p, sum, biases[0]) : sum);
            }
            val of_row = get(p, product);
            expert_down_add(p, &d, row_of_x, expert_down_weight(p, &d, word, row_of_x), &of_row);
        }
    }
    if (expert_down_has_shared(in)) {
        val products[MAX_VECTORS];
        gemv_operands g = d.of_shared;
        for (unsigned v = 0; v < d.vectors; v++)
            g.behind[v] = imm(U64, expert_down_shared_values_at(d.in, v));
        exact s = { .in = &d.shared,
                    .x = &g,
                    .rows = 1,
                    .formats = { instance_weights(&d.shared) },
                    .at = { gemv_row(p, &g, row) },
                    .columns = dim_k(p, &d.shared) };
        exact_multiply(p, &s, products);
        for (unsigned v = 0; v < d.vectors; v++)
            expert_down_add(p, &d, imm(U32, v), expert_down_weight_of_shared(p, &d, v),
                            &products[v]);
    }
    expert_down_store(p, &d, row);
}

const family exact_expert_down = {
    .name = "exact_expert_down",
    .summary = "down-projections of the experts that rows use, weighted and added, nothing rounded",
    .computes = EXPERT_DOWN_COMPUTES,
    .op = OP_EXPERT_DOWN,
    .activations = FORMAT_F32,
    .same_bits = true,
    .keys = (const key[]){ KEYS_OF_EXPERT_DOWN, KEYS_AROUND_EXPERT_DOWN, KEY_END },
    .params = (const param[]){ PARAMS_OF_EXPERT_DOWN, PARAM_END },
    .launch = { .block = "32", .grid = { "n" }, .overlap = WAITS_FIRST, .registers = 128 },
    .check = expert_down_check,
    .build = exact_expert_down_build,
    .fit = ref_fit_experts,
    .reference = ref_expert_down,
    .tolerance = 5e-7,
};
