/* Softmax of rows: y = exp(scale x - max) / sum. A block processes one row; a thread has pieces of
 * up to 16 bytes, one block width apart. A short row stays in registers. A long row is read twice:
 * first for the maximum and the sum, then for the results. The first pass is an online softmax
 * (Milakov and Gimelshein, "Online normalizer calculation for softmax") with compensated summation
 * (Kahan).
 *
 * The maximum starts at the lowest finite number, so that minus infinity has weight 0. A row is NaN
 * if all of its values are minus infinity, or if it contains a NaN or plus infinity. No thread
 * reads what another thread writes: y may alias x if their types are equal. */
#include "gen/common/functions.h"
#include "gen/common/reduce.h"
#include "gen/common/values.h"

#include <float.h>

#include "kernel/formula.h"
#include "ref/reference.h"

enum { MOST_KEPT = 16 };

typedef enum reduction { MAXIMUM, SUM } reduction;

typedef struct row {
    const instance *in;
    format x, y;
    unsigned at_once, threads, count; /* pieces per thread */
    val from, to, column;             /* addresses of the row; the thread's first column */
    float scale;                      /* scale * log2(e) */
    var kept[MOST_KEPT];
    var max, sum, lost;
    val parts; /* shared memory: maxima, then sums of the warps */
} row;

/* Returns the values per piece: 16 bytes of the narrower type, or fewer to divide k. */
static int64_t values_at_once(const instance *in)
{
    int64_t count = in->x_type == TYPE_F32 && in->y_type == TYPE_F32 ? 4 : MOST_VALUES;
    while (in->shape.k % count)
        count /= 2;
    return count;
}

static void load_piece(ptx *p, const row *r, val column, val *values)
{
    values_load(p, r->x, mad_wide(p, column, formats[r->x].block_bytes, r->from), r->at_once,
                values);
}

static void store_piece(ptx *p, const row *r, val column, const val *values)
{
    values_store(p, r->y, mad_wide(p, column, formats[r->y].block_bytes, r->to), r->at_once,
                 values);
}

static val weight(ptx *p, const row *r, val x, val max)
{
    return ex2(p, mul(p, sub(p, x, max), r->scale));
}

/* Returns the maximum or the sum over the block of one value per warp. */
static val reduce_warps(ptx *p, const row *r, reduction how, val of_warp)
{
    unsigned warps = r->threads / WARP;
    int64_t offset = how == SUM ? warps * F32_BYTES : 0;
    val lane = lane_id(p);
    if (warps == 1)
        return of_warp;
    PTX_IF (p, eq(p, lane, 0))
        st_shared(p, F32, mad(p, warp_id(p), F32_BYTES, r->parts), offset, of_warp);
    barrier(p);
    var part = var_f32(p, how == SUM ? 0.0f : -FLT_MAX);
    PTX_IF (p, lt(p, lane, warps))
        assign(p, part, ld_shared(p, F32, mad(p, lane, F32_BYTES, r->parts), offset));
    return how == SUM ? warp_sum(p, get(p, part)) : warp_max(p, get(p, part));
}

static val is_in_row(ptx *p, const row *r, unsigned piece)
{
    unsigned step = r->threads * r->at_once, k = (unsigned)r->in->shape.k;
    return (piece + 1) * step <= k ? imm(PRED, 1) : lt(p, r->column, k - piece * step);
}

static void from_registers(ptx *p, row *r)
{
    unsigned values = r->count * r->at_once, step = r->threads * r->at_once;
    phase(p, "maximum");
    val least = bits_as(p, F32, imm(U32, 0xff800000)); /* missing values weigh 0 */
    for (unsigned i = 0; i < r->count * r->at_once; i++)
        r->kept[i] = var_like(p, least);
    for (unsigned i = 0; i < r->count; i++)
        PTX_IF (p, is_in_row(p, r, i)) {
            val loaded[MOST_VALUES];
            load_piece(p, r, add(p, r->column, i * step), loaded);
            for (unsigned j = 0; j < r->at_once; j++)
                assign(p, r->kept[i * r->at_once + j], loaded[j]);
        }
    val max = get(p, r->max), sum = imm(F32, 0);
    for (unsigned i = 0; i < values; i++)
        max = max(p, max, r->kept[i]);
    max = reduce_warps(p, r, MAXIMUM, warp_max(p, max));
    phase(p, "sum");
    for (unsigned i = 0; i < values; i++) {
        assign(p, r->kept[i], weight(p, r, get(p, r->kept[i]), max));
        sum = i ? add(p, sum, r->kept[i]) : get(p, r->kept[i]);
    }
    val factor = rcp(p, reduce_warps(p, r, SUM, warp_sum(p, sum)));
    phase(p, "store");
    for (unsigned i = 0; i < r->count; i++)
        PTX_IF (p, is_in_row(p, r, i)) {
            val y[MOST_VALUES];
            for (unsigned j = 0; j < r->at_once; j++)
                y[j] = mul(p, r->kept[i * r->at_once + j], factor);
            store_piece(p, r, add(p, r->column, i * step), y);
        }
}

static void from_memory(ptx *p, row *r)
{
    unsigned step = r->threads * r->at_once, k = (unsigned)r->in->shape.k;
    phase(p, "maximum and sum");
    r->lost = var_f32(p, 0.0f);
    ptx_loop_work(p, r->at_once, "values");
    PTX_FOR (p, column, r->column, k, step) {
        val x[MOST_VALUES];
        load_piece(p, r, column, x);
        val before = get(p, r->max), max = before;
        for (unsigned i = 0; i < r->at_once; i++)
            max = max(p, max, x[i]);
        assign(p, r->max, max);
        val weights = weight(p, r, x[0], max), scaled = weight(p, r, before, max);
        for (unsigned i = 1; i < r->at_once; i++)
            weights = add(p, weights, weight(p, r, x[i], max));
        val sum = mul(p, r->sum, scaled), more = sub(p, weights, mul(p, r->lost, scaled));
        val total = add(p, sum, more); /* with Kahan's compensation */
        assign(p, r->lost, sub(p, sub(p, total, sum), more));
        assign(p, r->sum, total);
    }
    val own = get(p, r->max);
    val max = reduce_warps(p, r, MAXIMUM, warp_max(p, own));
    val sum = mul(p, r->sum, weight(p, r, own, max));
    val factor = rcp(p, reduce_warps(p, r, SUM, warp_sum(p, sum)));
    phase(p, "store");
    ptx_loop_work(p, r->at_once, "values");
    PTX_FOR (p, column, r->column, k, step) {
        val x[MOST_VALUES];
        load_piece(p, r, column, x);
        for (unsigned i = 0; i < r->at_once; i++)
            x[i] = mul(p, weight(p, r, x[i], max), factor);
        store_piece(p, r, column, x);
    }
}

static void softmax_build(ptx *p, const instance *in)
{
    row r = { .in = in, .x = instance_activations(in), .y = instance_result(in) };
    unsigned k = (unsigned)in->shape.k;
    r.at_once = (unsigned)values_at_once(in);
    r.threads = WARP * formula_unsigned("warps", in);
    r.count = (k + r.threads * r.at_once - 1) / (r.threads * r.at_once);
    r.column = named(p, "column", mul(p, tid_x(p), r.at_once));
    r.from = mad_wide(p, ctaid_x(p), k * formats[r.x].block_bytes, parameter(p, "x"));
    r.to = mad_wide(p, ctaid_x(p), k * formats[r.y].block_bytes, parameter(p, "y"));
    r.scale = (float)((in->options.scale > 0 ? in->options.scale : 1) * LOG2_E);
    r.max = var_f32(p, -FLT_MAX);
    r.sum = var_f32(p, 0.0f);
    if (r.threads > WARP)
        r.parts = shared_array(p, "parts", F32, 2 * r.threads / WARP);
    if (r.count * r.at_once <= MOST_KEPT)
        from_registers(p, &r);
    else
        from_memory(p, &r);
}

static const term terms[] = { { "warps", "min(32, ceil_div(k, 32*at_once))" }, { NULL, NULL } };

const family softmax = {
    .name = "softmax",
    .summary = "softmax of rows of any length, with a scale",
    .computes = "y[m,k] = softmax(scale x[m,k])",
    F32_FAMILY(OP_SOFTMAX, softmax_build, ref_softmax, 4e-7),
    .keys = KEYS(KEY_NUMBER("k", "columns", shape.k, 1, 1 << 24, .required = true, .tag = "k"),
                 KEYS_OF_ANY_ROWS, KEY_TYPE("type of x"), KEY_OUT("type of y", FLOAT_TYPES),
                 KEY_SCALE("factor of x, e.g. 0.125")),
    .params = PARAMS(TYPED_OUT(y, "m*k"), TYPED_IN(x, "m*k")),
    .launch = { .block = "32*warps",
                .grid = { "m" },
                .shared = "8*warps*min(1, warps - 1)",
                .terms = terms,
                .sizes = SIZES({ "at_once", values_at_once,
                                 "values per piece: at most 8, at most 4 if all are f32" }),
                .overlap = WAITS_FIRST,
                .registers = 64 },
    .reference_is_whole = true,
};
