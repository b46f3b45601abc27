/* Compares outputs with the reference.
 *
 * Floating-point outputs must be within the family's tolerance, relative to the magnitude of the
 * sum. For outputs narrower than f32, an error of half a unit in the last place is allowed in
 * addition. Integers must be equal.
 *
 * Quantized outputs are compared with the quantization of values x, which themselves have errors
 * within the tolerance. For a q8_0 or q8_1 block with D = amax / 127:
 * - d must be D rounded to fp16
 * - each q must be within half a step of x / D, and slightly more near a tie, where f32 arithmetic
 *   may round either way
 * - s of q8_1 must be D * sum(q) rounded to fp16, with the q of the output
 */
#include "check/trial.h"

#include <math.h>
#include <string.h>

#include "ref/half.h"
#include "ref/quant.h"
#include "ref/reference.h"

enum { JUDGED_AT_ONCE = 4096 }; /* elements; a multiple of every format's block size */

/* Ratio of errors of sums with equal signs to errors of sums that cancel. */
static const double OF_ONE_SIGN = 4;

/* Distance of x / D from a tie, in steps, within which f32 times 1 / D may round either way. */
static const double TIE_TOLERANCE = 127 * 0x1p-21;

/* Relative rounding error of an f32 d: of 1 / 127, and of the product with it. */
static const double SCALE_ROUNDING = 0x1p-22;

/* Returns the error bound of a number computed in f32 and rounded to fp16: half a unit in the last
 * place of 11 bits or of the subnormals, and some f32 roundings. */
static double half_rounding(double exact)
{
    return fmax(fabs(exact) * (0x1p-11 + 0x1p-20), 0x1p-25 * (1 + 0x1p-9));
}

static void note(judgement *j, const param *p, const char *field, uint64_t element, double got,
                 double expected, double error)
{
    if (isnan(error))
        error = HUGE_VAL;
    if (error < j->worst || (error == j->worst && j->output))
        return;
    j->worst = error;
    j->output = p->name;
    j->field = field;
    j->element = element;
    j->got = got;
    j->expected = expected;
}

/* Returns an error as a fraction of its bound, after subtracting the format's rounding; 0 for a NaN
 * or infinite bound. If the expected value is not finite, the result must not be finite either. */
static double error_of(double got, double expected, double rounding, double bound)
{
    if (!isfinite(expected))
        return isfinite(got) ? HUGE_VAL : 0;
    if (isnan(bound) || bound == HUGE_VAL)
        return 0;
    double beyond = isfinite(got) ? fabs(got - expected) - rounding : HUGE_VAL;
    return beyond > 0 ? beyond / bound : 0;
}

/* Returns true if a number exceeds the range of f16. */
static bool overflows(double exact)
{
    return isinf(half_to_float(half_from_float((float)exact)));
}

static void judge_half(const param *p, const char *field, uint64_t element, double got,
                       double exact, double error, judgement *j)
{
    double expected = (double)half_to_float(half_from_float((float)exact));
    note(j, p, field, element, got, expected,
         got == expected ? 0 : error_of(got, exact, 0, half_rounding(exact) + error));
}

unsigned trial_quants_at(format f)
{
    return f == FORMAT_Q8_0 ? Q8_0_QUANTS : f == FORMAT_Q8_1 ? Q8_1_QUANTS : Q8_F32_QUANTS;
}

/* Loads a block as q8_1. q8_0 and q8_f32 have no s, which becomes 0. */
static q8_1_block load_q8(format f, const uint8_t *bytes)
{
    q8_1_block block = { 0 };
    uint16_t d;
    if (f == FORMAT_Q8_1)
        return q8_1_load(bytes);
    memcpy(&d, bytes + Q8_0_D, sizeof d);
    if (f == FORMAT_Q8_0)
        block.d = half_to_float(d);
    else
        memcpy(&block.d, bytes + Q8_F32_D, sizeof block.d);
    memcpy(block.q, bytes + trial_quants_at(f), sizeof block.q);
    return block;
}

static void judge_q8_block(const param *p, const void *bytes, const ref_value *x, uint64_t first,
                           double tolerance, judgement *j)
{
    format f = p->format;
    q8_1_block block = load_q8(f, bytes);
    for (int i = 0; i < Q8_1_VALUES; i++)
        if (!isfinite(x[i].value)) { /* must appear in d */
            note(j, p, "d of ", first, (double)block.d, x[i].value,
                 error_of((double)block.d, x[i].value, 0, 0));
            return;
        }
    double largest = 0, off = 0;
    int sum = 0;
    for (int i = 0; i < Q8_1_VALUES; i++) {
        largest = fmax(largest, fabs(x[i].value));
        off = fmax(off, tolerance * x[i].magnitude);
        sum += block.q[i];
    }
    double d = largest / Q8_1_LARGEST;
    if (f == FORMAT_Q8_F32) {
        d = fmax(d, REF_LEAST_OF_8_BITS / Q8_1_LARGEST);
        note(j, p, "d of ", first, (double)block.d, d,
             error_of((double)block.d, d, 0, off / Q8_1_LARGEST + d * SCALE_ROUNDING));
    } else {
        judge_half(p, "d of ", first, (double)block.d, d, off / Q8_1_LARGEST, j);
    }
    if (f == FORMAT_Q8_1)
        judge_half(p, "s of ", first, (double)block.s, d * sum, fabs(sum * off / Q8_1_LARGEST), j);
    if (f != FORMAT_Q8_F32 && overflows(d))
        return;
    for (int i = 0; i < Q8_1_VALUES; i++) {
        double exact = d > 0 ? x[i].value / d : 0;
        double beyond = fabs(block.q[i] - exact) - 0.5;
        note(j, p, "q of ", first + (uint64_t)i, block.q[i], exact,
             beyond > 0 ? beyond / (TIE_TOLERANCE + (d > 0 ? 2 * off / d : 0)) : 0);
    }
}

/* Compares integers exactly. The reference's infinite magnitude accepts any integer. */
void judge_values(const param *p, const void *bytes, const ref_value *expected, uint64_t first,
                  uint64_t count, double tolerance, judgement *j)
{
    format f = p->format;
    j->judged += count;
    for (uint64_t i = 0; i < count; i += formats[f].block_values) {
        const char *at = (const char *)bytes + format_bytes(f, i);
        const ref_value *of = &expected[i];
        uint32_t word;
        if (f == FORMAT_U32) {
            memcpy(&word, at, sizeof word);
            note(j, p, "", first + i, word, of->value,
                 word == of->value || isinf(of->magnitude) ? 0 : HUGE_VAL);
        } else if (formats[f].block_values == 1) {
            float got;
            double exact = of->value, rounding = 0;
            ref_decode(f, at, 1, &got);
            if (f == FORMAT_F16 || f == FORMAT_BF16)
                rounding =
                    f == FORMAT_F16 ? half_rounding(exact) : fabs(exact) * (0x1p-8 + 0x1p-20);
            if (!isinf(got) || !isfinite(exact) || f != FORMAT_F16 || !overflows(exact))
                note(j, p, "", first + i, (double)got, exact,
                     error_of((double)got, exact, rounding, tolerance * of->magnitude));
        } else {
            judge_q8_block(p, at, of, first + i, tolerance, j);
        }
    }
}

/* Returns the end of a run of blocks that are all written or all not written. */
static uint64_t run_end(const uint8_t *written, uint64_t block, uint64_t end)
{
    uint64_t at = block;
    while (at < end && !written[at] == !written[block])
        at++;
    return at;
}

/* Computes at most JUDGED_AT_ONCE reference values of an output. */
static void expect(const trial *t, size_t index, uint64_t first, uint64_t count, ref_value *values)
{
    unsigned output = 0;
    for (size_t i = 0; i < index; i++)
        output += t->params[i].param.kind == PARAM_OUT;
    t->instance->family->reference(&t->problem, output, first, count, values);
}

uint64_t trial_output_blocks(const trial_param *p)
{
    return p->size / formats[p->param.format].block_bytes;
}

/* Returns the first block whose written state differs from the reference's. */
static uint64_t wrong_block(const trial *t, size_t index, const trial_output *o, bool written)
{
    ref_value expected[JUDGED_AT_ONCE];
    uint64_t block_values = formats[t->params[index].param.format].block_values;
    uint64_t at_once = JUDGED_AT_ONCE / block_values, end = o->written ? o->count : 0;
    for (uint64_t at = 0, last; at < end; at = last) {
        last = run_end(o->written, at, end - at < at_once ? end : at + at_once);
        if (!o->written[at] == written)
            continue;
        expect(t, index, (o->first + at) * block_values, (last - at) * block_values, expected);
        for (uint64_t i = at; i < last; i++) {
            const ref_value *v = &expected[(i - at) * block_values];
            bool is_free = isinf(v->magnitude) && isfinite(v->value);
            if (is_free == written)
                return o->first + i;
        }
    }
    return o->first + o->count;
}

uint64_t trial_missing_block(const trial *t, size_t index, const trial_output *o)
{
    return wrong_block(t, index, o, false);
}

uint64_t trial_stray_block(const trial *t, size_t index, const trial_output *o)
{
    param_data data = t->params[index].param.data;
    return data == DATA_CACHE || data == DATA_PARTLY ? wrong_block(t, index, o, true)
                                                     : o->first + o->count;
}

trial_blocks trial_row_blocks(const trial *t, const trial_param *p, size_t row, int64_t kv_head)
{
    const problem_shape *s = &t->setup.shape;
    uint64_t position = t->seq_lens[row] - 1u;
    uint64_t count = (uint64_t)problem_cache_values(s) / formats[p->param.format].block_values;
    if (!t->seq_lens[row] || position >= (uint64_t)s->max_seq_len)
        return (trial_blocks){ 0, 0 };
    uint64_t at = ref_cache_row(&t->problem, t->sequences[row], (uint64_t)kv_head, position);
    return (trial_blocks){ at * count, count };
}

/* Returns false for rows that are skipped to save time.
 * - Tensor-core products: the reference decodes a row of W and one of x for each element. One row
 *   in eight is enough: a fragment has two such rows, and all lanes with elements of a row.
 * - Experts are not skipped, since their rows come from a list, and a tile may contain none of the
 *   judged rows.
 * - Large states with many rows: each row depends on all previous rows. About eight rows at odd
 *   distances are enough, since they have different positions among the eight rows of a block. */
static bool is_judged(const trial *t, size_t index, uint64_t element)
{
    enum { LONG_ROWS = 1024, LEAST_ROWS = 16, ROWS_APART = 8 };
    enum { LARGE_STATE = 128, MANY_ROWS = 32, JUDGED_ROWS = 8 };
    const problem_shape *s = &t->setup.shape;
    const family *f = t->instance->family;
    uint64_t rows = (uint64_t)s->m, apart = 1;
    if (f->halves && !s->experts && s->k >= LONG_ROWS && s->m >= LEAST_ROWS)
        apart = ROWS_APART;
    else if ((f->op == OP_DELTA_NET || f->op == OP_MAMBA2) && s->m > MANY_ROWS &&
             (s->head_dim >= LARGE_STATE || s->state_size >= LARGE_STATE))
        apart = rows / JUDGED_ROWS | 1;
    if (apart == 1 || t->params[index].param.data != DATA_PLAIN)
        return true;
    uint64_t row = element / (t->params[index].values / rows);
    return row % apart == t->setup.seed % apart || row + 1 == rows;
}

void trial_judge(const trial *t, size_t index, const trial_output *o, judgement *j)
{
    if (!t->problem.kept) {
        trial keeping = *t;
        arena *a = arena_new();
        keeping.problem.kept = ref_kept_new(a);
        trial_judge(&keeping, index, o, j);
        arena_free(a);
        return;
    }
    const param *p = &t->params[index].param;
    double tolerance = t->instance->family->tolerance;
    if (t->setup.kind == FILL_NEGATIVE)
        tolerance *= OF_ONE_SIGN;
    ref_value some[JUDGED_AT_ONCE], *expected = some;
    const format_info *f = &formats[p->format];
    uint64_t block_values = f->block_values;
    uint64_t at_once = JUDGED_AT_ONCE / block_values;
    if (t->instance->family->reference_is_whole && o->count > at_once) {
        at_once = o->count;
        expected = arena_alloc(t->arena, o->count * block_values * sizeof *expected);
    }
    for (uint64_t at = 0, end; at < o->count; at = end) {
        end = o->count - at < at_once ? o->count : at + at_once;
        if (o->written)
            end = run_end(o->written, at, end);
        if (o->written && !o->written[at])
            continue;
        uint64_t first = (o->first + at) * block_values, count = (end - at) * block_values;
        if (!is_judged(t, index, first))
            continue;
        expect(t, index, first, count, expected);
        judge_values(p, (const char *)o->bytes + at * f->block_bytes, expected, first, count,
                     tolerance, j);
    }
}
