#include "check/trial.h"

#include <math.h>
#include <string.h>

#include "base/strbuf.h"
#include "kernel/formula.h"
#include "ref/half.h"
#include "ref/quant.h"
#include "ref/reference.h"

enum {
    LARGEST_INPUT = 32 * 1024 * 1024, /* bytes, or of all buffers of an array; larger inputs
                                         repeat */
};

/* Magnitude of random weights in blocks. */
static const float SMALL = 0.05f;

/* Factors that make logits of some tens or hundreds. Random q8_0 values are smaller and need a
 * larger factor. STEEPER exceeds the ratio of neighbouring powers of two. */
static const float STEEP = 40, STEEP_OF_Q8_0 = 400, STEEPER = 10, FLATTEST = 0x1p-4f;

/* A router's logit whose exp() overflows an f32. */
static const float LARGE_LOGIT = 150;

/* Ratio of magnitudes of neighbouring rows, for huge or tiny inputs. */
static const float FAR = 0x1p12f;

/* Factor for small scores with a few large values, whose rounding must not change a weight. */
static const float FLAT = 0x1p-12f;

bool trial_is_read_cache(const trial_param *p)
{
    return p->param.data == DATA_CACHE && p->param.kind == PARAM_IN;
}

int64_t trial_valid_positions(const trial *t, size_t sequence)
{
    int64_t length = 0, most = t->setup.shape.max_seq_len;
    for (size_t i = 0; i < t->row_count; i++)
        if (t->sequences[i] == sequence && t->seq_lens[i] > length)
            length = t->seq_lens[i];
    return length < most ? length : most;
}

int64_t trial_valid_rows(const trial *t, size_t sequence)
{
    int64_t positions = trial_valid_positions(t, sequence), rows = trial_cache_rows(t);
    return positions < rows ? positions : rows;
}

int64_t trial_cache_rows(const trial *t)
{
    int64_t rows = (int64_t)ref_page_rows(&t->problem), most = t->setup.shape.max_seq_len;
    return t->setup.shape.max_seq_len && t->instance->options.page ? (most + rows - 1) / rows * rows
                                                                   : rows;
}

/* Fills rows [from, to) of a sequence's caches with NaN unless the cache repeats. */
static void spoil(const trial *t, size_t sequence, int64_t from, int64_t to)
{
    uint64_t heads = (uint64_t)problem_cache_heads(&t->setup.shape);
    for (size_t i = 0; i < t->param_count; i++) {
        const trial_param *p = &t->params[i];
        if (!trial_is_read_cache(p) || p->content.stored < p->content.size)
            continue;
        uint64_t bytes =
            format_bytes(p->param.format, (uint64_t)problem_cache_values(&t->setup.shape));
        for (int64_t row = from; row < to; row++)
            for (uint64_t head = 0; head < heads; head++)
                memset((char *)p->content.bytes +
                           bytes * ref_cache_row(&t->problem, sequence, head, (uint64_t)row),
                       0xff, bytes);
    }
}

/* Returns true if the family's fit function generates an input. */
static bool is_fitted(const trial *t, const param *p)
{
    return t->instance->family->fit && p->data != DATA_CACHE &&
           (p->unit || p->random == RANDOM_FITTED);
}

static bool by_runs(const trial *t)
{
    return t->instance->family->by_runs;
}

/* Gives each row a sequence, one to all rows, or one to each run: half of the rows, and the rest in
 * equal runs. */
static void assign_sequences(trial *t)
{
    size_t rows = t->row_count, runs = by_runs(t) ? (size_t)t->instance->options.runs : rows;
    if (t->setup.one_cache)
        runs = 1;
    size_t first = runs == 1 ? rows : by_runs(t) ? (rows + 1) / 2 : 1, rest = rows - first;
    runs = runs < rest + 1 ? runs : rest + 1;
    for (size_t i = 0; i < rows; i++) {
        size_t run = i < first ? 0 : 1 + (i - first) * (runs - 1) / rest;
        t->sequences[i] = (uint32_t)((run + rows / 2) % rows);
    }
}

/* Gives neighbouring positions distant pages, and lists sequences and tiles. */
static void assign_pages(trial *t)
{
    uint64_t rows = t->row_count;
    for (size_t i = 0; i < t->param_count; i++) {
        trial_param *p = &t->params[i];
        uint32_t *numbers = p->content.bytes;
        if (p->param.data == DATA_SEQUENCES)
            for (uint64_t row = 0; row < rows; row++)
                numbers[row] = t->sequences[row];
        if (p->param.data == DATA_TILES) {
            uint64_t most = (uint64_t)formula_value("run_rows", t->instance, NULL), tile = 0;
            memset(numbers, 0, p->size);
            for (uint64_t row = 0, count; row < rows; row += count) {
                for (count = 1; count < most && row + count < rows &&
                                t->sequences[row + count] == t->sequences[row];)
                    count++;
                numbers[tile++] = (uint32_t)(row | count << 16);
            }
        }
        if (p->param.data == DATA_PAGES) {
            for (uint64_t entry = 0; entry < p->values; entry++)
                numbers[entry] = (uint32_t)ref_scattered_page(entry, p->values);
            t->problem.pages = numbers;
        }
    }
}

/* Updates the inputs that depend on sequence lengths, except caches. */
static void lengths_changed(trial *t)
{
    const problem_shape *s = &t->setup.shape;
    unsigned input = 0, xielu = 0;
    for (size_t i = 0; i < t->param_count; i++) {
        trial_param *p = &t->params[i];
        const char *size = p->param.size; /* name of the shape's size that a number passes */
        if (p->param.kind == PARAM_U32 && p->param.format == FORMAT_F32)
            memcpy(&p->number, &t->problem.xielu[xielu++], sizeof p->number);
        else if (p->param.kind == PARAM_U32)
            p->number = (uint32_t)(strcmp(size, "k") == 0   ? s->k
                                   : strcmp(size, "n") == 0 ? s->n
                                   : strcmp(size, "m") == 0 ? s->m
                                                            : s->seq_len);
        if (p->param.kind == PARAM_IN && p->param.format == FORMAT_U32 &&
            p->param.data == DATA_PLAIN && p->param.random != RANDOM_FITTED)
            memcpy(p->content.bytes, t->seq_lens, p->size);
        t->problem.strange = t->setup.spoiled && t->setup.spoiled_input == input;
        if (p->param.kind == PARAM_IN && is_fitted(t, &p->param))
            t->instance->family->fit(&t->problem, input, p->content.bytes,
                                     p->content.stored / formats[p->param.format].block_bytes);
        input += p->param.kind == PARAM_IN;
    }
}

/* Sets the longest sequence's length, and computes the lengths of all sequences. */
static void set_seq_len(trial *t, int64_t seq_len, uint32_t *seq_lens)
{
    int64_t most = t->setup.shape.max_seq_len, valid = seq_len < most ? seq_len : most;
    const int64_t lengths[] = { seq_len, seq_len < most ? 0 : valid - valid / 8, valid - valid / 2,
                                valid - valid / 4 };
    t->setup.shape.seq_len = seq_len;
    t->problem.shape.seq_len = seq_len;
    for (size_t i = t->row_count, run = 0; i-- > 0;) {
        bool goes_on = i + 1 < t->row_count && t->sequences[i] == t->sequences[i + 1];
        run += !goes_on && i + 1 < t->row_count;
        int64_t number = by_runs(t) ? (int64_t)run : (int64_t)i;
        int64_t length = lengths[number % (int64_t)(sizeof lengths / sizeof *lengths)];
        seq_lens[i] = (uint32_t)(seq_len > most || t->setup.one_cache ? seq_len : length);
        if (goes_on)
            seq_lens[i] = seq_lens[i + 1] - (seq_lens[i + 1] > 0);
    }
}

void trial_shorten_each(trial *t, const uint32_t *seq_lens)
{
    trial before = *t;
    size_t bytes = t->row_count * sizeof *t->seq_lens;
    before.seq_lens = memcpy(arena_alloc(t->arena, bytes), t->seq_lens, bytes);
    memcpy(t->seq_lens, seq_lens, bytes);
    for (size_t i = 0; i < t->row_count; i++)
        spoil(t, i, trial_valid_rows(t, i), trial_valid_rows(&before, i));
    lengths_changed(t);
}

void trial_shorten(trial *t, int64_t seq_len)
{
    uint32_t *seq_lens = arena_alloc(t->arena, t->row_count * sizeof *seq_lens);
    set_seq_len(t, seq_len, seq_lens);
    trial_shorten_each(t, seq_lens);
}

static void fill(const trial *t, format f, void *bytes, uint64_t size, random_source *r)
{
    const format_info *info = &formats[f];
    ref_fill(f, bytes, size / info->block_bytes * info->block_values, t->setup.kind, r);
}

/* Returns a filled buffer of values of which `unit` belong together; `bytes` are readable. */
static device_buffer filled(arena *a, const trial *t, format f, uint64_t values, uint64_t unit,
                            uint64_t bytes, random_source *r)
{
    uint64_t unit_bytes = unit * formats[f].block_bytes, size = format_bytes(f, values);
    device_buffer made = { .size = size, .readable = bytes > size ? bytes : size };
    /* A large buffer repeats after an odd number of units: no two heads fall on the same bytes. */
    uint64_t most = size < LARGEST_INPUT ? size : LARGEST_INPUT;
    uint64_t period = (most / 4 / unit_bytes | 1) * unit_bytes;
    made.stored = size > LARGEST_INPUT && period < size ? period : size;
    uint64_t behind = made.stored < size ? 0 : made.readable - size;
    made.bytes = arena_alloc(a, made.stored + behind);
    memset((char *)made.bytes + made.stored, 0xff, behind);
    fill(t, f, made.bytes, made.stored, r);
    return made;
}

static uint64_t size_of(const trial *t, const char *formula)
{
    const problem_shape *s = &t->setup.shape;
    run_values run = { s->k, s->n, s->m, t->setup.sm_count };
    return (uint64_t)formula_value(formula, t->instance, &run);
}

/* Multiplies values by cyclic factors, one factor per `unit` values. */
static void multiply_parts(float *x, uint64_t count, uint64_t unit, const float *factors,
                           size_t all)
{
    for (uint64_t i = 0; i < count; i++)
        x[i] *= factors[i / unit % all];
}

/* Makes heads of q steep or flat. A flat head weighs all positions about equally, so that each
 * affects the result. A steep head reveals a wrong sign or cap of scores; the steepest one reveals
 * a maximum that is not the largest. If q is rounded to f16, the flattest head has another power of
 * two than its neighbours. */
static void make_steep(const trial *t, float *q, uint64_t count)
{
    float factor = t->instance->kv_type == KV_Q8_0 ? STEEP_OF_Q8_0 : STEEP;
    const float factors[] = { 1, factor, FLATTEST, STEEPER * factor, 1 };
    multiply_parts(q, count, (uint64_t)problem_cache_values(&t->setup.shape), factors,
                   sizeof factors / sizeof *factors);
}

/* Returns the standard deviation of router weights that gives logits of a magnitude. */
static float router_weight(const trial *t, float logit)
{
    return logit / sqrtf((float)t->setup.shape.k);
}

/* Makes scores very negative: positive K times negative q, or positive router inputs times negative
 * W. Sinks are more negative. One expert gets all the weight. The lowest score differs between
 * heads, and is below any constant used for minus infinity except the largest floats. */
static void make_negative(const trial *t, const trial_param *p, unsigned input, format f,
                          const device_buffer *made, random_source *r)
{
    enum { ROUTER_W, ROUTER_X, MASKED = 5 };
    const float LOWEST_SINK = -1e7f, LOWEST_X = -11000, Q8_0 = 25, LOGIT = 2500, NEARER = 0.5f;
    uint64_t blocks = made->stored / formats[f].block_bytes;
    uint64_t values = blocks * formats[f].block_values;
    operation op = t->instance->family->op;
    bool routes = op == OP_MOE_ROUTE;
    float *x = made->bytes;
    if (p->param.data == DATA_CACHE || (routes && input > ROUTER_W))
        ref_set_sign(f, made->bytes, values, false);
    if (routes && input == ROUTER_W) {
        uint64_t k = (uint64_t)t->setup.shape.k, row = random_below(r, values / k);
        ref_resize(f, made->bytes, values, router_weight(t, LOGIT) / SMALL, r);
        ref_resize(f, (char *)made->bytes + format_bytes(f, row * k), k, NEARER, r);
        ref_set_sign(f, made->bytes, values, true);
    }
    if (p->param.random == RANDOM_STEEP) {
        uint64_t head = (uint64_t)problem_cache_values(&t->setup.shape);
        float more = sqrtf(64 / (float)head) * (t->instance->kv_type == KV_Q8_0 ? Q8_0 : 1);
        /* for heads of 64 values; an odd number, since lanes may hold every second head */
        const float factors[] = { 4200, 40, 5, 4200, 400 };
        for (uint64_t i = 0; i < values; i++)
            x[i] = -fabsf(x[i]) * more;
        multiply_parts(x, values, head, factors, sizeof factors / sizeof *factors);
    }
    for (uint64_t i = 0; i < values && p->param.only_with == KEY_FIELD(options.sinks); i++)
        x[i] = LOWEST_SINK * (1 + fabsf(x[i]));
    /* Every fifth input of a softmax is minus infinity; the others have similar magnitudes. */
    for (uint64_t i = 0; i < blocks && op == OP_SOFTMAX; i++) {
        uint8_t *bytes = (uint8_t *)made->bytes + i * formats[f].block_bytes;
        float one;
        ref_decode(f, bytes, 1, &one);
        ref_store(f, bytes, i % MASKED == MASKED - 1 ? -INFINITY : LOWEST_X * (1 + fabsf(one)));
    }
}

static void spoil_block(trial *t, uint64_t block)
{
    size_t size = formats[t->spoilt.format].block_bytes;
    uint8_t *bytes = t->spoilt.bytes + block * size;
    memcpy(t->spoilt.before, bytes, size);
    t->spoilt.at = block;
    t->spoiled = ref_spoil(t->spoilt.format, bytes, block, t->setup.spoiled == WITH_INFINITY);
}

void trial_move_spoiled(trial *t, uint64_t block)
{
    size_t size = formats[t->spoilt.format].block_bytes;
    memcpy(t->spoilt.bytes + t->spoilt.at * size, t->spoilt.before, size);
    spoil_block(t, block);
}

/* Makes some inputs of an activation very negative, but with a result that is not 0. exp(x) or
 * exp(-x^2 / 2) then shows the rounding of the exponent. A lane has 4 or 8 values. */
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

static void fill_input(arena *a, trial *t, trial_param *p, unsigned input, random_source *r)
{
    format f = p->param.format;
    uint64_t unit = p->param.unit ? size_of(t, p->param.unit) : 1;
    device_buffer *made = &p->content;
    *made = filled(a, t, f, p->values, unit, size_of(t, p->param.bytes), r);
    const format_info *info = &formats[f];
    operation op = t->instance->family->op;
    uint64_t blocks = made->stored / info->block_bytes, all = blocks * info->block_values;
    bool normal = t->setup.kind == FILL_NORMAL;
    if (p->param.random == RANDOM_SMALL && info->block_values == 1)
        ref_resize(f, made->bytes, blocks, SMALL, r);
    if (op == OP_MOE_ROUTE && input == 0 && normal && t->setup.turn % 2)
        ref_resize(f, made->bytes, all, router_weight(t, LARGE_LOGIT) / SMALL, r);
    if ((op == OP_SILU || op == OP_GELU || op == OP_SWIGLU) && !input && normal)
        make_exponents_large(t, f, made->bytes, blocks, r);
    if (p->param.random == RANDOM_STEEP && normal)
        make_steep(t, made->bytes, blocks);
    if (p->param.random == RANDOM_STEEP && t->setup.kind == FILL_OUTLIERS)
        ref_resize(f, made->bytes, blocks, FLAT, r);
    bool of_rows = p->param.values &&
                   (strcmp(p->param.values, "m*k") == 0 || strcmp(p->param.values, "n*k") == 0);
    if (t->instance->family->halves && t->setup.kind >= FILL_TINY && f == FORMAT_F32 && of_rows) {
        /* Magnitudes of rows that are rounded to f16 differ by more than the range of f16. */
        const float factors[] = { 1, FAR, 1 / FAR };
        multiply_parts(made->bytes, blocks, (uint64_t)t->setup.shape.k, factors,
                       sizeof factors / sizeof *factors);
    }
    if (p->param.random == RANDOM_ARRANGED && normal)
        t->instance->family->fit(&t->problem, input, made->bytes, blocks);
    if (t->setup.kind == FILL_NEGATIVE)
        make_negative(t, p, input, f, made, r);
    if (t->setup.spoiled && input == t->setup.spoiled_input && !is_fitted(t, &p->param)) {
        enum { NEAR_VALUES = 4096 }; /* the first block of a grid reads values below this index */
        uint64_t near = (NEAR_VALUES - 1) / info->block_values + 1;
        t->spoilt.format = f;
        t->spoilt.bytes = made->bytes;
        t->spoilt.blocks = t->spoilt.of_row = blocks;
        t->spoilt.weights = p->param.weights;
        if (p->param.values && strncmp(p->param.values, "m*", 2) == 0)
            t->spoilt.of_row /= (uint64_t)t->setup.shape.m;
        spoil_block(t, random_below(r, near < blocks ? near : blocks));
    }
    t->problem.inputs[input] = p->content.bytes;
    t->problem.input_formats[input] = f;
    t->problem.periods[input] = made->stored < made->size ? all : 0;
}

size_t trial_input_count(arena *a, const instance *in)
{
    param params[MAX_PARAMS];
    size_t count = instance_params(a, in, params), inputs = 0;
    for (size_t i = 0; i < count; i++)
        inputs += params[i].kind == PARAM_IN && params[i].order != ORDER_FETCHED;
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
    trial t = { .arena = a,
                .instance = in,
                .setup = *setup,
                .row_count = setup->shape.m > 0 ? (size_t)setup->shape.m : 1,
                .problem = { .shape = setup->shape,
                             .options = trial_options(in),
                             .quantizes = in->family->quantizes,
                             .negative = setup->kind == FILL_NEGATIVE,
                             .turn = setup->turn,
                             .xielu = { 0.8f, 1.3f, 0.5f, setup->seed % 2 ? -1e-6f : -0.25f } } };
    t.seq_lens = arena_zalloc(a, t.row_count * sizeof *t.seq_lens);
    t.problem.seq_lens = t.seq_lens;
    t.sequences = arena_alloc(a, t.row_count * sizeof *t.sequences);
    assign_sequences(&t);
    t.problem.sequences = t.sequences;
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
        if (p->param.order == ORDER_FETCHED) /* prefetched but not read */
            p->content = (device_buffer){ p->size, p->size, p->size, arena_zalloc(a, p->size) };
        else if (p->param.kind == PARAM_IN)
            fill_input(a, &t, p, inputs++, &r);
        if (p->param.data == DATA_UPDATED) {
            p->content = filled(a, &t, p->param.format, p->values, p->values, 0, &r);
            t.problem.before[outputs] = p->content.bytes;
        }
        outputs += p->param.kind == PARAM_OUT;
    }
    assign_pages(&t);
    set_seq_len(&t, setup->shape.seq_len, t.seq_lens);
    for (size_t i = 0; setup->shape.max_seq_len && i < t.row_count; i++)
        spoil(&t, i, trial_valid_rows(&t, i), trial_cache_rows(&t));
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
    } parts[] = { { "k", s->k, s->k > 0 },
                  { "n", s->n, s->n > 0 },
                  { "m", s->m, s->m > 1 },
                  { "seq_len", s->seq_len, s->max_seq_len > 0 },
                  { "sm_count", t->setup.sm_count, true } };
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
