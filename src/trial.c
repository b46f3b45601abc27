/* Floating-point outputs are held to the family's tolerance, relative to the magnitude of the sum.
 *
 * Quantized outputs are judged by what quantization may do to exact values x. For a q8_1 block with
 * D = amax / 127: the stored d is D rounded to fp16; every q is within half a step of x / D, a
 * little more where x / D is so close to a tie that float arithmetic may take either side; the
 * stored s is D * sum(q) rounded to fp16, of the q that are there.
 */
#include "trial.h"

#include <math.h>
#include <string.h>

#include "base/strbuf.h"
#include "gen/formula.h"
#include "ref/half.h"
#include "ref/quant.h"

enum {
    JUDGED_AT_ONCE = 4096,            /* elements: whole blocks of every format */
    LARGEST_INPUT = 32 * 1024 * 1024, /* bytes; what is larger repeats itself */
};

/* How much of a step x / D may be off a tie in float arithmetic with a multiplication by 1 / D. */
static const double TIE_TOLERANCE = 127 * 0x1p-21;

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

static double error_of(double got, double expected, double bound)
{
    if (got == expected)
        return 0;
    return isfinite(got) ? fabs(got - expected) / bound : HUGE_VAL;
}

static void judge_floats(const param *p, const void *bytes, const ref_value *expected,
                         uint64_t first, uint64_t count, double tolerance, judgement *j)
{
    for (uint64_t i = 0; i < count; i++) {
        float got;
        ref_decode(p->format, (const char *)bytes + format_bytes(p->format, i), 1, &got);
        note(j, p, "", first + i, (double)got, expected[i].value,
             error_of((double)got, expected[i].value, tolerance * expected[i].magnitude));
    }
}

static void judge_half(const param *p, const char *field, uint64_t element, double got,
                       double exact, judgement *j)
{
    double expected = (double)half_to_float(half_from_float((float)exact));
    note(j, p, field, element, got, expected,
         got == expected ? 0 : error_of(got, exact, half_rounding(exact)));
}

static void judge_q8_1_block(const param *p, const void *bytes, const ref_value *x, uint64_t first,
                             judgement *j)
{
    q8_1_block block = q8_1_load(bytes);
    double largest = 0;
    int sum = 0;
    for (int i = 0; i < Q8_1_VALUES; i++) {
        largest = fmax(largest, fabs(x[i].value));
        sum += block.q[i];
    }
    double d = largest / Q8_1_LARGEST;
    judge_half(p, "d of ", first, (double)block.d, d, j);
    judge_half(p, "s of ", first, (double)block.s, d * sum, j);
    for (int i = 0; i < Q8_1_VALUES; i++) {
        double exact = d > 0 ? x[i].value / d : 0;
        double beyond = fabs(block.q[i] - exact) - 0.5;
        note(j, p, "q of ", first + (uint64_t)i, block.q[i], exact,
             beyond > 0 ? beyond / TIE_TOLERANCE : 0);
    }
}

void judge_values(const param *p, const void *bytes, const ref_value *expected, uint64_t first,
                  uint64_t count, double tolerance, judgement *j)
{
    j->judged += count;
    if (p->format != FORMAT_Q8_1) {
        judge_floats(p, bytes, expected, first, count, tolerance, j);
        return;
    }
    for (uint64_t i = 0; i < count; i += Q8_1_VALUES)
        judge_q8_1_block(p, (const char *)bytes + format_bytes(p->format, i), expected + i,
                         first + i, j);
}

/* The end of the run of blocks that starts at a block and are all written, or all not. */
static uint64_t run_end(const uint8_t *written, uint64_t block, uint64_t end)
{
    uint64_t at = block;
    while (at < end && !written[at] == !written[block])
        at++;
    return at;
}

void trial_judge(const trial *t, size_t index, const void *bytes, const uint8_t *written,
                 judgement *j)
{
    const trial_param *p = &t->params[index];
    const family *f = t->instance->family;
    unsigned output = 0;
    for (size_t i = 0; i < index; i++)
        output += t->params[i].param.kind == PARAM_OUT;

    ref_value expected[JUDGED_AT_ONCE];
    uint64_t block_values = formats[p->param.format].block_values;
    uint64_t blocks = p->values / block_values, at_once = JUDGED_AT_ONCE / block_values;
    for (uint64_t block = 0, end; block < blocks; block = end) {
        end = blocks - block < at_once ? blocks : block + at_once;
        if (written)
            end = run_end(written, block, end);
        if (written && !written[block])
            continue;
        uint64_t first = block * block_values, count = (end - block) * block_values;
        f->reference(&t->problem, output, first, count, expected);
        judge_values(&p->param, (const char *)bytes + format_bytes(p->param.format, first),
                     expected, first, count, f->tolerance, j);
    }
}

bool trial_is_cache(const trial_param *p)
{
    return p->param.kind == PARAM_IN && p->param.values && strstr(p->param.values, "max_seq_len");
}

int64_t trial_valid_positions(const trial *t)
{
    const problem_shape *s = &t->setup.shape;
    return s->seq_len < s->max_seq_len ? s->seq_len : s->max_seq_len;
}

/* Makes the positions [from, to) of a cache [heads, max_seq_len, head_dim] NaN, where all of it is
 * there. */
static void spoil(const trial *t, trial_param *p, int64_t from, int64_t to)
{
    static const uint16_t not_a_number = 0x7e00;
    const problem_shape *s = &t->setup.shape;
    if (!trial_is_cache(p) || p->stored < p->size || from >= to)
        return;
    uint64_t value_bytes = formats[p->param.format].block_bytes;
    uint64_t dim = (uint64_t)s->head_dim, head_values = (uint64_t)s->max_seq_len * dim;
    for (uint64_t head = 0; head * head_values < p->values; head++)
        for (uint64_t i = (uint64_t)from * dim; i < (uint64_t)to * dim; i++) {
            char *at = (char *)p->bytes + (head * head_values + i) * value_bytes;
            float wide = NAN;
            memcpy(at, p->param.format == FORMAT_F16 ? (const void *)&not_a_number : &wide,
                   value_bytes);
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

static void set_seq_len(trial *t, int64_t seq_len)
{
    t->setup.shape.seq_len = seq_len;
    t->problem.shape.seq_len = seq_len;
    for (size_t i = 0; i < t->param_count; i++) {
        trial_param *p = &t->params[i];
        uint32_t number = (uint32_t)seq_len;
        if (p->param.kind == PARAM_U32)
            p->number = size_named(&t->setup.shape, p->param.size);
        else if (p->param.kind == PARAM_IN && p->param.format == FORMAT_U32)
            memcpy(p->bytes, &number, sizeof number);
    }
}

void trial_shorten(trial *t, int64_t seq_len)
{
    int64_t before = trial_valid_positions(t);
    set_seq_len(t, seq_len);
    for (size_t i = 0; i < t->param_count; i++)
        spoil(t, &t->params[i], trial_valid_positions(t), before);
}

/* A number of bytes that an input repeats after when it is too large: whole blocks of every format,
 * and odd many of them, so that rows and heads don't fall on the same bytes. */
static uint64_t repeat_after(const format_info *f, uint64_t size)
{
    uint64_t period = (LARGEST_INPUT / 4 / f->block_bytes | 1) * f->block_bytes;
    return size > LARGEST_INPUT ? period : size;
}

static void fill_input(arena *a, trial *t, trial_param *p, unsigned input, random_source *r)
{
    const format_info *f = &formats[p->param.format];
    p->stored = repeat_after(f, p->size);
    p->bytes = arena_alloc(a, p->stored);
    uint64_t values = p->stored / f->block_bytes * f->block_values;
    ref_fill(p->param.format, p->bytes, values, t->setup.kind, r);
    t->problem.inputs[input] = p->bytes;
    t->problem.input_formats[input] = p->param.format;
    t->problem.periods[input] = p->stored < p->size ? values : 0;
}

trial trial_prepare(arena *a, const instance *in, const trial_setup *setup)
{
    trial t = { .instance = in,
                .setup = *setup,
                .problem = { .shape = setup->shape, .epsilon = in->epsilon } };
    run_values run = { setup->shape.k, setup->shape.n, setup->shape.m, setup->sm_count };
    param params[MAX_PARAMS];
    random_source r = { setup->seed };
    unsigned inputs = 0;

    t.param_count = instance_params(a, in, params);
    for (size_t i = 0; i < t.param_count; i++) {
        trial_param *p = &t.params[i];
        p->param = params[i];
        p->values =
            p->param.kind == PARAM_U32 ? 1 : (uint64_t)formula_value(params[i].values, in, &run);
        p->size = p->param.kind == PARAM_U32 ? sizeof p->number
                                             : format_bytes(p->param.format, p->values);
        if (p->param.kind == PARAM_IN)
            fill_input(a, &t, p, inputs++, &r);
    }
    set_seq_len(&t, setup->shape.seq_len);
    for (size_t i = 0; i < t.param_count; i++)
        spoil(&t, &t.params[i], trial_valid_positions(&t), setup->shape.max_seq_len);

    const launch *l = &in->family->launch;
    t.block = (unsigned)formula_value(l->block, in, &run);
    for (int i = 0; i < 3; i++)
        t.grid[i] = (unsigned)formula_value(l->grid[i], in, &run);
    t.dynamic_shared = l->dynamic_shared ? (size_t)formula_value(l->dynamic_shared, in, &run) : 0;
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
    return text.text;
}
