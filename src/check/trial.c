/* Floating-point outputs are held to the family's tolerance, relative to the magnitude of the sum;
 * where they are narrower than f32, it is what they are off beyond half a unit in their last place.
 * Whole numbers have to be equal.
 *
 * Quantized outputs are judged by what quantization may do to values x, which themselves may be off
 * by the tolerance where they have a magnitude. For a q8_0 or q8_1 block with D = amax / 127: the
 * stored d is D rounded to fp16; every q is within half a step of x / D, a little more where x / D
 * is so close to a tie that float arithmetic may take either side; the stored s of q8_1 is D *
 * sum(q) rounded to fp16, of the q that are there.
 */
#include "check/trial.h"

#include <math.h>
#include <string.h>

#include "base/strbuf.h"
#include "kernel/formula.h"
#include "ref/half.h"
#include "ref/quant.h"
#include "ref/reference.h"

enum {
    JUDGED_AT_ONCE = 4096,            /* elements: whole blocks of every format */
    LARGEST_INPUT = 32 * 1024 * 1024, /* bytes; what is larger repeats itself. Those that an array
                                         of addresses points to share that */
};

/* What weights of blocks are by their size. */
static const float SMALL = 0.05f;

/* What makes logits of some tens or a hundred; random values of q8_0 are smaller. Ten times as much
 * is more than powers of two of float differ by. */
static const float STEEP = 40, STEEP_OF_Q8_0 = 400, STEEPER = 10, FLATTEST = 0x1p-4f;

/* Logits of a router that exp() of a float has no room for. */
static const float LARGE_LOGIT = 150;

/* By what errors of a sum exceed those of terms that cancel, where all have the same sign. */
static const double OF_ONE_SIGN = 4;

/* By what huge or tiny rows differ. */
static const float FAR = 0x1p12f;

/* What leaves scores small where a few values are large, so that what these are rounded to does not
 * show in a weight. */
static const float FLAT = 0x1p-12f;

/* How much of a step x / D may be off a tie in float arithmetic with a multiplication by 1 / D. */
static const double TIE_TOLERANCE = 127 * 0x1p-21;

/* Of a d that is f32: of 1 / 127, and of the product with it. */
static const double SCALE_ROUNDING = 0x1p-22;

/* A number that is exact up to float arithmetic, after rounding to fp16: half a unit in the last
 * place of 11 bits, or of the subnormals, and some float roundings. */
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

/* What is no number has to stay none. Where the magnitude is none either, nothing is known. */
static double error_of(double got, double expected, double bound)
{
    if (!isfinite(expected))
        return isfinite(got) ? HUGE_VAL : 0;
    if (isnan(bound))
        return 0;
    if (got == expected || bound == HUGE_VAL)
        return 0;
    return isfinite(got) ? fabs(got - expected) / bound : HUGE_VAL;
}

format trial_output_format(const param *p)
{
    return p->target_values ? p->target : p->format;
}

/* The same where rounding to a format alone may make some of the difference. */
static double error_beyond(double got, double expected, double rounding, double bound)
{
    bool compared = isfinite(got) && isfinite(expected) && rounding > 0;
    double beyond = compared ? fmax(0, fabs(got - expected) - rounding) : 0;
    return compared ? error_of(beyond, 0, bound) : error_of(got, expected, bound);
}

static double rounding_of(format f, double exact)
{
    return f == FORMAT_F16    ? half_rounding(exact)
           : f == FORMAT_BF16 ? fabs(exact) * (0x1p-8 + 0x1p-20)
                              : 0;
}

/* Beyond what f16 holds. */
static bool overflows(format f, double exact)
{
    return f == FORMAT_F16 && isinf(half_to_float(half_from_float((float)exact)));
}

static void judge_floats(const param *p, const void *bytes, const ref_value *expected,
                         uint64_t first, uint64_t count, double tolerance, judgement *j)
{
    format f = trial_output_format(p);
    for (uint64_t i = 0; i < count; i++) {
        float got;
        double exact = expected[i].value;
        ref_decode(f, (const char *)bytes + format_bytes(f, i), 1, &got);
        if (isinf(got) && isfinite(exact) && overflows(f, exact))
            continue;
        note(j, p, "", first + i, (double)got, exact,
             error_beyond((double)got, exact, rounding_of(f, exact),
                          tolerance * expected[i].magnitude));
    }
}

/* Whole numbers are right or wrong; where a choice lies within rounding, the reference says so by
 * a magnitude that is infinite. */
static void judge_numbers(const param *p, const void *bytes, const ref_value *expected,
                          uint64_t first, uint64_t count, judgement *j)
{
    for (uint64_t i = 0; i < count; i++) {
        uint32_t got;
        memcpy(&got, (const char *)bytes + i * sizeof got, sizeof got);
        note(j, p, "", first + i, got, expected[i].value,
             got == expected[i].value || isinf(expected[i].magnitude) ? 0 : HUGE_VAL);
    }
}

static void judge_half(const param *p, const char *field, uint64_t element, double got,
                       double exact, double error, judgement *j)
{
    double expected = (double)half_to_float(half_from_float((float)exact));
    note(j, p, field, element, got, expected,
         got == expected ? 0 : error_of(got, exact, half_rounding(exact) + error));
}

unsigned trial_quants_at(format f)
{
    return f == FORMAT_Q8_0 ? Q8_0_QUANTS : f == FORMAT_Q8_1 ? Q8_1_QUANTS : Q8_F32_QUANTS;
}

/* Of q8_0 and q8_f32, which have no s, d and q stand as in q8_1_block. */
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
    format f = trial_output_format(p);
    q8_1_block block = load_q8(f, bytes);
    for (int i = 0; i < Q8_1_VALUES; i++)
        if (!isfinite(x[i].value)) { /* in d it shows in every product of the block */
            note(j, p, "d of ", first, (double)block.d, x[i].value,
                 error_of((double)block.d, x[i].value, 0));
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
             error_of((double)block.d, d, off / Q8_1_LARGEST + d * SCALE_ROUNDING));
    } else {
        judge_half(p, "d of ", first, (double)block.d, d, off / Q8_1_LARGEST, j);
    }
    if (f == FORMAT_Q8_1)
        judge_half(p, "s of ", first, (double)block.s, d * sum, fabs(sum * off / Q8_1_LARGEST), j);
    if (f != FORMAT_Q8_F32 && overflows(FORMAT_F16, d))
        return;
    for (int i = 0; i < Q8_1_VALUES; i++) {
        double exact = d > 0 ? x[i].value / d : 0;
        double beyond = fabs(block.q[i] - exact) - 0.5;
        note(j, p, "q of ", first + (uint64_t)i, block.q[i], exact,
             beyond > 0 ? beyond / (TIE_TOLERANCE + (d > 0 ? 2 * off / d : 0)) : 0);
    }
}

void judge_values(const param *p, const void *bytes, const ref_value *expected, uint64_t first,
                  uint64_t count, double tolerance, judgement *j)
{
    format f = trial_output_format(p);
    j->judged += count;
    if (f == FORMAT_U32) {
        judge_numbers(p, bytes, expected, first, count, j);
        return;
    }
    if (formats[f].block_values == 1) {
        judge_floats(p, bytes, expected, first, count, tolerance, j);
        return;
    }
    for (uint64_t i = 0; i < count; i += Q8_1_VALUES)
        judge_q8_block(p, (const char *)bytes + format_bytes(f, i), expected + i, first + i,
                       tolerance, j);
}

/* The end of the run of blocks that starts at a block and are all written, or all not. */
static uint64_t run_end(const uint8_t *written, uint64_t block, uint64_t end)
{
    uint64_t at = block;
    while (at < end && !written[at] == !written[block])
        at++;
    return at;
}

/* The reference's values of an output, count at most JUDGED_AT_ONCE. */
static void expect(const trial *t, size_t index, uint64_t first, uint64_t count, ref_value *values)
{
    unsigned output = 0;
    for (size_t i = 0; i < index; i++)
        output += t->params[i].param.kind == PARAM_OUT;
    t->instance->family->reference(&t->problem, output, first, count, values);
}

uint64_t trial_target_blocks(const trial_param *p)
{
    uint64_t bytes = p->targets ? p->targets->size : p->size;
    return bytes / formats[trial_output_format(&p->param)].block_bytes;
}

uint64_t trial_output_blocks(const trial_param *p)
{
    return trial_target_blocks(p) * (p->targets ? p->target_count : 1);
}

/* Whether the reference has no value for an element. */
static bool is_free(const ref_value *v)
{
    return isinf(v->magnitude) && isfinite(v->value);
}

/* The first block that is written, or not, though the reference says otherwise. */
static uint64_t wrong_block(const trial *t, size_t index, const trial_output *o, bool written)
{
    ref_value expected[JUDGED_AT_ONCE];
    uint64_t block_values = formats[trial_output_format(&t->params[index].param)].block_values;
    uint64_t at_once = JUDGED_AT_ONCE / block_values, end = o->written ? o->count : 0;
    for (uint64_t at = 0, last; at < end; at = last) {
        last = run_end(o->written, at, end - at < at_once ? end : at + at_once);
        if (!o->written[at] == written)
            continue;
        expect(t, index, (o->first + at) * block_values, (last - at) * block_values, expected);
        for (uint64_t i = at; i < last; i++)
            if (is_free(&expected[(i - at) * block_values]) == written)
                return o->first + i;
    }
    return o->first + o->count;
}

uint64_t trial_missing_block(const trial *t, size_t index, const trial_output *o)
{
    return wrong_block(t, index, o, false);
}

uint64_t trial_stray_block(const trial *t, size_t index, const trial_output *o)
{
    return t->params[index].param.cache ? wrong_block(t, index, o, true) : o->first + o->count;
}

trial_blocks trial_row_blocks(const trial *t, const trial_param *p, size_t row, int64_t kv_head)
{
    const problem_shape *s = &t->setup.shape;
    uint64_t head = p->target_count == 1 ? 0 : row;
    head = head * (uint64_t)problem_cache_heads(s) + (uint64_t)kv_head;
    uint64_t position = t->seq_lens[row] - 1u, rows = ref_cache_rows(&t->problem);
    uint64_t count = (uint64_t)problem_cache_values(s) / formats[p->param.target].block_values;
    if (!t->seq_lens[row] || position >= (uint64_t)s->max_seq_len)
        return (trial_blocks){ 0, 0 };
    return (trial_blocks){ (head * rows + position % rows) * count, count };
}

/* From a row that is judged to the next one. Each element of a product takes a row of W and one of
 * x, decoded. Of the tiles of a large product on tensor cores one row in eight is enough: a
 * fragment has two of those, and all lanes that have elements of a row. But experts take rows by a
 * list, so that a tile may have none of them. Of many rows of a large state each takes all that are
 * ahead of it, and some eight of them are enough, at odd distances: so they have different places
 * among the eight that a block has at once. */
static uint64_t rows_apart(const trial *t)
{
    enum { LONG_ROWS = 1024, LEAST_ROWS = 16, ROWS_APART = 8 };
    enum { LARGE_STATE = 128, MANY_ROWS = 32, JUDGED_ROWS = 8 };
    const problem_shape *s = &t->setup.shape;
    if (t->instance->family->halves && !s->experts && s->k >= LONG_ROWS && s->m >= LEAST_ROWS)
        return ROWS_APART;
    if (t->instance->family->op == OP_DELTA_NET && s->head_dim >= LARGE_STATE && s->m > MANY_ROWS)
        return (uint64_t)s->m / JUDGED_ROWS | 1;
    return 1;
}

static bool is_judged(const trial *t, size_t index, uint64_t element)
{
    uint64_t rows = (uint64_t)t->setup.shape.m, apart = rows_apart(t);
    if (apart == 1 || t->params[index].targets)
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
    const format_info *f = &formats[trial_output_format(p)];
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

uint64_t trial_first_remains(const trial_param *p, const void *bytes)
{
    uint64_t at = 0;
    while (at < p->size && !((const uint8_t *)bytes)[at])
        at++;
    return at;
}

size_t trial_cache_count(const trial_param *p)
{
    return !p->param.cache || p->param.kind != PARAM_IN ? 0
           : p->targets                                 ? (size_t)p->target_count
                                                        : 1;
}

trial_buffer trial_cache(const trial_param *p, size_t sequence)
{
    if (!p->targets)
        return p->content;
    return p->targets[sequence < p->target_count ? sequence : 0];
}

int64_t trial_valid_positions(const trial *t, size_t sequence)
{
    int64_t length = t->seq_lens[sequence], most = t->setup.shape.max_seq_len;
    for (size_t i = 0; t->setup.one_cache && i < t->sequence_count; i++)
        length = t->seq_lens[i] > length ? t->seq_lens[i] : length;
    return length < most ? length : most;
}

int64_t trial_valid_rows(const trial *t, size_t sequence)
{
    int64_t positions = trial_valid_positions(t, sequence);
    int64_t rows = (int64_t)ref_cache_rows(&t->problem);
    return positions < rows ? positions : rows;
}

/* Makes the rows [from, to) of a cache [heads, rows, values] NaN, where all of it is there. All
 * bits set are a NaN in every float format. */
static void spoil(const trial *t, trial_buffer cache, format f, int64_t from, int64_t to)
{
    uint64_t row = format_bytes(f, (uint64_t)problem_cache_values(&t->setup.shape));
    uint64_t head = row * ref_cache_rows(&t->problem);
    if (cache.stored == cache.size && from < to)
        for (uint64_t at = row * (uint64_t)from; at < cache.size; at += head)
            memset((char *)cache.bytes + at, 0xff, row * (uint64_t)(to - from));
}

static void spoil_all(const trial *t, size_t sequence, int64_t from, int64_t to)
{
    for (size_t i = 0; i < t->param_count; i++) {
        const param *p = &t->params[i].param;
        if (sequence < trial_cache_count(&t->params[i]))
            spoil(t, trial_cache(&t->params[i], sequence),
                  t->params[i].targets ? p->target : p->format, from, to);
    }
}

/* The size that a number passes to the kernel: its parameter names one of the shape's. */
static uint32_t size_named(const problem_shape *s, const char *name)
{
    int64_t size = strcmp(name, "k") == 0   ? s->k
                   : strcmp(name, "n") == 0 ? s->n
                   : strcmp(name, "m") == 0 ? s->m
                                            : s->seq_len;
    return (uint32_t)size;
}

/* Whether the family's fit makes an input's values. */
static bool is_fitted(const trial *t, const param *p)
{
    return t->instance->family->fit && (p->unit || p->fitted) && !p->target_values;
}

/* What the sequences' lengths decide besides the caches. */
static void lengths_changed(trial *t)
{
    unsigned input = 0;
    for (size_t i = 0; i < t->param_count; i++) {
        trial_param *p = &t->params[i];
        if (p->param.kind == PARAM_U32)
            p->number = size_named(&t->setup.shape, p->param.size);
        if (p->param.kind == PARAM_IN && p->param.format == FORMAT_U32 && !p->param.fitted)
            memcpy(p->content.bytes, t->seq_lens, p->size);
        t->problem.strange = t->setup.spoiled && t->setup.spoiled_input == input;
        if (p->param.kind == PARAM_IN && is_fitted(t, &p->param))
            t->instance->family->fit(&t->problem, input, p->content.bytes,
                                     p->content.stored / formats[p->param.format].block_bytes);
        input += p->param.kind == PARAM_IN;
    }
}

static void set_seq_len(trial *t, int64_t seq_len)
{
    int64_t most = t->setup.shape.max_seq_len, valid = seq_len < most ? seq_len : most;
    const int64_t lengths[] = { seq_len, seq_len < most ? 0 : valid - valid / 8, valid - valid / 2,
                                valid - valid / 4 };
    t->setup.shape.seq_len = seq_len;
    t->problem.shape.seq_len = seq_len;
    for (size_t i = 0; i < t->sequence_count; i++) {
        int64_t ahead = (int64_t)(t->sequence_count - 1 - i);
        t->seq_lens[i] =
            (uint32_t)(seq_len > most ? seq_len : lengths[i % (sizeof lengths / sizeof *lengths)]);
        if (t->setup.one_cache)
            t->seq_lens[i] = (uint32_t)(seq_len > ahead ? seq_len - ahead : 0);
    }
}

/* The trial as it is, for lengths_shortened. */
static trial lengths_kept(const trial *t)
{
    trial before = *t;
    before.seq_lens = memcpy(arena_alloc(t->arena, t->sequence_count * sizeof *t->seq_lens),
                             t->seq_lens, t->sequence_count * sizeof *t->seq_lens);
    return before;
}

static void lengths_shortened(trial *t, const trial *before)
{
    for (size_t i = 0; i < t->sequence_count; i++)
        spoil_all(t, i, trial_valid_rows(t, i), trial_valid_rows(before, i));
    lengths_changed(t);
}

void trial_shorten(trial *t, int64_t seq_len)
{
    trial before = lengths_kept(t);
    set_seq_len(t, seq_len);
    lengths_shortened(t, &before);
}

void trial_shorten_each(trial *t, const uint32_t *seq_lens)
{
    trial before = lengths_kept(t);
    memcpy(t->seq_lens, seq_lens, t->sequence_count * sizeof *seq_lens);
    lengths_shortened(t, &before);
}

/* A number of bytes that an input repeats after when it and others like it are too large together:
 * whole units, and odd many of them, so that rows and heads don't fall on the same bytes. */
static uint64_t repeat_after(uint64_t unit, uint64_t size, uint64_t count)
{
    uint64_t most = size < LARGEST_INPUT ? size : LARGEST_INPUT;
    uint64_t period = (most / 4 / unit | 1) * unit;
    return size > LARGEST_INPUT / count && period < size ? period : size;
}

static void fill(const trial *t, format f, void *bytes, uint64_t size, random_source *r)
{
    const format_info *info = &formats[f];
    ref_fill(f, bytes, size / info->block_bytes * info->block_values, t->setup.kind, r);
}

/* Several that repeat themselves lie in the same bytes, each starting a unit behind the other. */
static void fill_all(arena *a, const trial *t, trial_buffer *made, uint64_t count, format f,
                     uint64_t values, uint64_t unit, uint64_t bytes, random_source *r)
{
    uint64_t unit_bytes = unit * formats[f].block_bytes, size = format_bytes(f, values);
    trial_buffer one = { .size = size, .readable = bytes > size ? bytes : size };
    one.stored = repeat_after(unit_bytes, size, count);
    if (one.stored < size) {
        uint64_t all = one.stored + (count - 1) * unit_bytes;
        one.bytes = arena_alloc(a, all);
        fill(t, f, one.bytes, all, r);
    }
    for (uint64_t i = 0; i < count; i++) {
        made[i] = one;
        if (one.stored < size) {
            made[i].bytes = (char *)one.bytes + i * unit_bytes;
            continue;
        }
        made[i].bytes = arena_alloc(a, one.readable);
        memset((char *)made[i].bytes + size, 0xff, one.readable - size);
        fill(t, f, made[i].bytes, size, r);
    }
}

static uint64_t size_of(const trial *t, const char *formula)
{
    const problem_shape *s = &t->setup.shape;
    run_values run = { s->k, s->n, s->m, t->setup.sm_count };
    return (uint64_t)formula_value(formula, t->instance, &run);
}

static void set_targets(arena *a, trial_param *p, trial_buffer *made, uint64_t count)
{
    p->targets = made;
    p->target_count = count;
    p->content = (trial_buffer){ p->size, p->size, p->size, arena_zalloc(a, p->size) };
}

/* Caches that are written to, and states that are read first. */
static void make_targets(arena *a, trial *t, trial_param *p, unsigned output, random_source *r)
{
    uint64_t count = t->setup.one_cache ? 1 : p->values;
    uint64_t size = format_bytes(p->param.target, size_of(t, p->param.target_values));
    trial_buffer *made = arena_zalloc(a, p->values * sizeof *made);
    for (uint64_t i = 0; i < p->values; i++)
        made[i] = (trial_buffer){ .size = size, .readable = size };
    set_targets(a, p, made, count);
    if (!p->param.updated)
        return;
    const void **before = arena_alloc(a, count * sizeof *before);
    for (uint64_t i = 0; i < count; i++) {
        made[i].stored = size;
        before[i] = made[i].bytes = arena_alloc(a, size);
        fill(t, p->param.target, made[i].bytes, size, r);
    }
    t->problem.before[output] = before;
}

/* Flat heads weigh all positions much the same, so that each of them shows in the result; of steep
 * ones a wrong sign or cap of scores does, of the steepest any maximum that is not the largest.
 * Where q is rounded to f16, the flattest has another power of two than its neighbours. */
static void make_steep(const trial *t, float *q, uint64_t count)
{
    uint64_t head = (uint64_t)problem_cache_values(&t->setup.shape);
    float factor = t->instance->kv_type == KV_Q8_0 ? STEEP_OF_Q8_0 : STEEP;
    const float factors[] = { 1, factor, FLATTEST, STEEPER * factor, 1 };
    for (uint64_t i = 0; i < count; i++)
        q[i] *= factors[i / head % (sizeof factors / sizeof *factors)];
}

/* Rows of what is rounded to f16, with their sizes further apart than f16 has room for. */
static void set_apart(const trial *t, const trial_param *p, float *x, uint64_t count)
{
    const float factors[] = { 1, FAR, 1 / FAR };
    bool rows = strcmp(p->param.values, "m*k") == 0 || strcmp(p->param.values, "n*k") == 0;
    for (uint64_t i = 0; rows && i < count; i++)
        x[i] *= factors[i / (uint64_t)t->setup.shape.k % (sizeof factors / sizeof *factors)];
}

/* Returns the standard deviation of a router's weights with which its logits are about so large. */
static float router_weight(const trial *t, float logit)
{
    return logit / sqrtf((float)t->setup.shape.k);
}

/* Makes floats of a softmax very negative, every fifth one minus infinity, and the rest all of one
 * size: lowest times 1 to 6. */
static void lower_floats(format f, uint8_t *bytes, uint64_t values, float lowest)
{
    enum { MASKED = 5 };
    for (uint64_t i = 0; i < values; i++, bytes += formats[f].block_bytes) {
        float x;
        ref_decode(f, bytes, 1, &x);
        x = i % MASKED == MASKED - 1 ? -INFINITY : lowest * (1 + fabsf(x));
        uint16_t half = f == FORMAT_F16 ? half_from_float(x) : bfloat_from_float(x);
        memcpy(bytes, f == FORMAT_F32 ? (void *)&x : &half, formats[f].block_bytes);
    }
}

/* Makes scores very negative: products of positive K, or x of a router, with negative q or W. What
 * is alone beside the scores is more negative. One expert has all the weight. The lowest scores of
 * heads differ, down to less than any constant that could stand for minus infinity but the largest
 * floats. */
static void make_negative(const trial *t, const trial_param *p, unsigned input, format f,
                          const trial_buffer *made, random_source *r)
{
    enum { ROUTER_W, ROUTER_X };
    const float LOWEST_SINK = -1e7f, LOWEST_X = -11000, Q8_0 = 25, LOGIT = 2500, NEARER = 0.5f;
    uint64_t values = made->stored / formats[f].block_bytes * formats[f].block_values;
    bool routes = t->instance->family->op == OP_MOE_ROUTE;
    if (p->param.cache || (routes && input > ROUTER_W))
        ref_set_sign(f, made->bytes, values, false);
    if (routes && input == ROUTER_W) {
        uint64_t k = (uint64_t)t->setup.shape.k, row = random_below(r, values / k);
        ref_resize(f, made->bytes, values, router_weight(t, LOGIT) / SMALL, r);
        ref_resize(f, (char *)made->bytes + format_bytes(f, row * k), k, NEARER, r);
        ref_set_sign(f, made->bytes, values, true);
    }
    float *x = made->bytes;
    if (p->param.steep) {
        uint64_t head = (uint64_t)problem_cache_values(&t->setup.shape);
        /* By 5: scores of heads of 64 values. An odd number: lanes may hold every second head. */
        const float factors[] = { 4200, 40, 5, 4200, 400 };
        float more = sqrtf(64 / (float)head);
        if (t->instance->kv_type == KV_Q8_0)
            more *= Q8_0;
        for (uint64_t i = 0; i < values; i++)
            x[i] = -fabsf(x[i]) * more * factors[i / head % (sizeof factors / sizeof *factors)];
    }
    for (uint64_t i = 0; i < values && p->param.only_with == KEY_FIELD(options.sinks); i++)
        x[i] = LOWEST_SINK * (1 + fabsf(x[i]));
    if (t->instance->family->op == OP_SOFTMAX)
        lower_floats(f, made->bytes, values, LOWEST_X);
}

static void spoil_block(trial *t, uint64_t block)
{
    size_t size = formats[t->spoilt.format].block_bytes;
    uint8_t *bytes = t->spoilt.bytes + block * size;
    memcpy(t->spoilt.before, bytes, size);
    t->spoilt.at = block;
    t->spoiled = ref_spoil(t->spoilt.format, bytes, block, t->setup.spoiled == WITH_INFINITY);
}

/* Returns how many blocks from the first on are near enough for the first block of a grid. */
static uint64_t spoilt_among(const trial *t)
{
    enum { VALUES = 4096 };
    uint64_t blocks = (VALUES - 1) / formats[t->spoilt.format].block_values + 1;
    return blocks < t->spoilt.blocks ? blocks : t->spoilt.blocks;
}

void trial_move_spoiled(trial *t, uint64_t block)
{
    size_t size = formats[t->spoilt.format].block_bytes;
    memcpy(t->spoilt.bytes + t->spoilt.at * size, t->spoilt.before, size);
    spoil_block(t, block);
}

/* Makes some inputs of an activation very negative, but not so much that nothing is left of the
 * result: that of exp(x), or of exp(-x^2 / 2), shows what the exponent loses to rounding. A lane
 * has 4 or 8 values. */
static void make_exponents_large(const trial *t, format f, uint8_t *bytes, uint64_t values,
                                 random_source *r)
{
    enum { PERIOD = 5 };
    const float factor = t->instance->family->op == OP_GELU ? 6 : 45;
    for (uint64_t i = 1; i < values; i += i % PERIOD == 1 ? 2 : 3) {
        ref_resize(f, bytes + format_bytes(f, i), 1, factor, r);
        ref_set_sign(f, bytes + format_bytes(f, i), 1, true);
    }
}

/* Nobody reads it. */
static void fill_fetched(arena *a, trial_param *p)
{
    p->content = (trial_buffer){ p->size, p->size, p->size, arena_zalloc(a, p->size) };
}

static void fill_input(arena *a, trial *t, trial_param *p, unsigned input, random_source *r)
{
    bool addresses = p->param.format == FORMAT_ADDRESS;
    format f = addresses ? p->param.target : p->param.format;
    uint64_t unit = p->param.unit ? size_of(t, p->param.unit) : 1;
    uint64_t values = addresses ? size_of(t, p->param.target_values) : p->values;
    uint64_t rows = addresses ? p->values : 1, count = t->setup.one_cache ? 1 : rows;
    trial_buffer *made = addresses ? arena_alloc(a, count * sizeof *made) : &p->content;
    const void **contents = arena_alloc(a, rows * sizeof *contents);
    fill_all(a, t, made, count, f, values, unit, addresses ? 0 : size_of(t, p->param.bytes), r);
    for (uint64_t i = 0; i < rows; i++)
        contents[i] = made[i < count ? i : 0].bytes;
    if (addresses) {
        set_targets(a, p, made, count);
        t->problem.sequences[input] = contents;
    }
    const format_info *info = &formats[f];
    if (p->param.small && info->block_values == 1)
        ref_resize(f, made->bytes, made->stored / info->block_bytes, SMALL, r);
    if (t->instance->family->op == OP_MOE_ROUTE && input == 0 && t->setup.kind == FILL_NORMAL &&
        t->setup.turn % 2)
        ref_resize(f, made->bytes, made->stored / info->block_bytes * info->block_values,
                   router_weight(t, LARGE_LOGIT) / SMALL, r);
    operation op = t->instance->family->op;
    if ((op == OP_SILU || op == OP_GELU || op == OP_SWIGLU) && !input &&
        t->setup.kind == FILL_NORMAL)
        make_exponents_large(t, f, made->bytes, made->stored / info->block_bytes, r);
    if (p->param.steep && t->setup.kind == FILL_NORMAL)
        make_steep(t, made->bytes, made->stored / info->block_bytes);
    if (p->param.steep && t->setup.kind == FILL_OUTLIERS)
        ref_resize(f, made->bytes, made->stored / info->block_bytes, FLAT, r);
    if (t->instance->family->halves && t->setup.kind >= FILL_TINY && f == FORMAT_F32)
        set_apart(t, p, made->bytes, made->stored / info->block_bytes);
    if (p->param.arranged && t->setup.kind == FILL_NORMAL)
        t->instance->family->fit(&t->problem, input, made->bytes, made->stored / info->block_bytes);
    if (t->setup.kind == FILL_NEGATIVE)
        make_negative(t, p, input, f, made, r);
    if (t->setup.spoiled && input == t->setup.spoiled_input && !is_fitted(t, &p->param)) {
        t->spoilt.format = f;
        t->spoilt.bytes = made->bytes;
        t->spoilt.blocks = made->stored / info->block_bytes;
        t->spoilt.of_row = t->spoilt.blocks;
        t->spoilt.weights = p->param.weights;
        if (p->param.values && strncmp(p->param.values, "m*", 2) == 0)
            t->spoilt.of_row /= (uint64_t)t->setup.shape.m;
        spoil_block(t, random_below(r, spoilt_among(t)));
    }
    t->problem.inputs[input] = p->content.bytes;
    t->problem.input_formats[input] = f;
    t->problem.periods[input] =
        made->stored < made->size ? made->stored / info->block_bytes * info->block_values : 0;
}

size_t trial_input_count(arena *a, const instance *in)
{
    param params[MAX_PARAMS];
    size_t count = instance_params(a, in, params), inputs = 0;
    for (size_t i = 0; i < count; i++)
        inputs += params[i].kind == PARAM_IN && !params[i].fetched;
    return inputs;
}

problem_options trial_options(const instance *in)
{
    problem_options options = in->options;
    options.halves |= in->family->halves;
    options.row_factors |= family_takes_rows(in->family);
    return options;
}

trial trial_prepare(arena *a, const instance *in, const trial_setup *setup)
{
    trial t = {
        .arena = a,
        .instance = in,
        .setup = *setup,
        .sequence_count = setup->shape.m > 0 ? (size_t)setup->shape.m : 1,
        .problem = { .shape = setup->shape,
                     .options = trial_options(in),
                     .quantizes = in->family->quantizes,
                     .negative = setup->kind == FILL_NEGATIVE,
                     .turn = setup->turn },
    };
    t.setup.one_cache |= in->family->one_sequence;
    t.problem.one_cache = t.setup.one_cache;
    t.seq_lens = arena_zalloc(a, t.sequence_count * sizeof *t.seq_lens);
    t.problem.seq_lens = t.seq_lens;
    param params[MAX_PARAMS];
    random_source r = { setup->seed };
    unsigned inputs = 0, outputs = 0;

    t.param_count = instance_params(a, in, params);
    for (size_t i = 0; i < t.param_count; i++) {
        trial_param *p = &t.params[i];
        p->param = params[i];
        p->values = p->param.kind == PARAM_U32 ? 1 : size_of(&t, params[i].values);
        p->size = p->param.kind == PARAM_U32 ? sizeof p->number
                                             : format_bytes(p->param.format, p->values);
        if (p->param.fetched)
            fill_fetched(a, p);
        else if (p->param.kind == PARAM_IN)
            fill_input(a, &t, p, inputs++, &r);
        if (p->param.kind == PARAM_OUT && p->param.target_values)
            make_targets(a, &t, p, outputs, &r);
        outputs += p->param.kind == PARAM_OUT;
    }
    set_seq_len(&t, setup->shape.seq_len);
    for (size_t i = 0; i < t.sequence_count; i++)
        spoil_all(&t, i, trial_valid_rows(&t, i), (int64_t)ref_cache_rows(&t.problem));
    lengths_changed(&t);

    const launch *l = &in->family->launch;
    t.block = (unsigned)size_of(&t, l->block);
    for (int i = 0; i < 3; i++)
        t.grid[i] = (unsigned)size_of(&t, l->grid[i]);
    t.dynamic_shared = l->dynamic_shared ? (size_t)size_of(&t, l->dynamic_shared) : 0;
    return t;
}

const char *trial_describe(arena *a, const trial *t)
{
    const problem_shape *s = &t->setup.shape;
    const struct {
        const char *name;
        int64_t value;
        bool shown;
    } parts[] = {
        { "k", s->k, s->k > 0 },
        { "n", s->n, s->n > 0 },
        { "m", s->m, s->m > 1 },
        { "seq_len", s->seq_len, s->max_seq_len > 0 },
        { "sm_count", t->setup.sm_count, true },
    };
    strbuf text = strbuf_new(a);
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        if (parts[i].shown)
            strbuf_format(&text, "%s %lld, ", parts[i].name, (long long)parts[i].value);
    strbuf_format(&text, "%s inputs, seed %llu", fill_kind_names[t->setup.kind],
                  (unsigned long long)t->setup.seed);
    if (t->setup.one_cache)
        strbuf_put(&text, ", one cache");
    if (t->spoiled)
        strbuf_format(&text, ", %s in input %u",
                      t->setup.spoiled == WITH_NAN ? "a NaN" : "an infinity",
                      t->setup.spoiled_input);
    return text.text;
}
