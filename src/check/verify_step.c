/* Trials. Each is a sequence, or several, from its first token on or from some position on, behind
 * random rows of K and V: so positions across the edge of a window need no thousands of steps.
 * Rows of a cache behind the last token are NaN. One of the steps runs on what the step ahead of it
 * has left in the state, as in a captured graph. The last of m tokens is run once more, alone: its
 * logits must have the same bits. Of a large vocabulary only the steps of single tokens from the
 * first position on compute all logits, and choose a token; others those of some blocks.
 *
 * Bounds. The reference rounds what the kernels round (activations to 8 bits, K and V to kv_type),
 * but a kernel's float arithmetic may round the other way where a value is near a tie, and from
 * there on its values differ as if noise had been added that is at most as large as rounding's own.
 * How large that is in this model is measured: by a second reference that rounds nothing. With R
 * the differences of the two at some place (the hidden states behind a layer, say, of all rows), an
 * element may be off by
 *
 *   2 max |R| + 4 rms(R) + FLOAT_ERROR rms
 *
 * where the last part is for float arithmetic that amplifies on its way through products, norms and
 * a softmax, and rms that of the reference. With activations of 8 bits that is some percent; what
 * is wired wrongly changes a vector by about its own size.
 */
#include "check/verify_step.h"

#include <math.h>
#include <string.h>

#include "base/os.h"
#include "check/step_model.h"
#include "emu/emu.h"
#include "family/formula.h"
#include "ref/quant.h"

enum {
    USUAL_SM_COUNT = 132,
    FAR = 601,              /* a position that several chunks of a sequence lie ahead of */
    SEVERAL_APART = 37,     /* positions between those of several sequences */
    LARGE_OUTPUT = 1 << 26, /* weights of the logits' product, above which a step may do with some
                               blocks of it */
    SOME_BLOCKS = 16,
};
static const double FLOAT_ERROR = 2e-4;

/* What all trials share. */
typedef struct step_kernel {
    const kernel *kernel;
    const emu_module *module;
} step_kernel;

typedef struct verifier {
    const plan *plan;
    const chosen_layers *names;
    step_kernel *kernels; /* as in plan.kernels */
    step_model model;
    decoder exact; /* the same decoder with nothing rounded */
    uint64_t seed;
} verifier;

typedef enum trial_kind { FROM_THE_START, AT_AN_EDGE, SEVERAL_SEQUENCES, TRIALS } trial_kind;

typedef struct trial {
    const verifier *v;
    arena *arena, *scratch; /* scratch is for one step */
    trial_kind kind;
    random_source random;
    emu_memory *memory;
    uint64_t *tensors; /* addresses, as in plan.tensors */
    uint64_t *caches;  /* of [sequences, layers, 2] */
    uint64_t state, workspace;
    ref_step *rounded, *exact;
    uint64_t *lengths; /* of sequences */
    bool in_part;      /* some blocks of the logits' product are run */
    bool right;
    step_result result;
} trial;

/* Rows of a step. Those without a sequence are none. */
typedef struct step_rows {
    size_t m;
    bool is_row[DECODER_MOST_ROWS];
    ref_row rows[DECODER_MOST_ROWS];
    uint32_t positions[DECODER_MOST_ROWS], lengths[DECODER_MOST_ROWS];
    ref_row fed[DECODER_MOST_ROWS]; /* those that are, one behind another */
    size_t fed_count;
} step_rows;

/* What the references make of it. */
typedef struct expected {
    double *logits[2], *hidden[2]; /* rounded, exact */
} expected;

static bool reject(trial *t, const char *message)
{
    t->right = false;
    t->result.message = message;
    return false;
}

/* "blk.17", or what stands ahead of or behind the layers. */
static const char *layer_name(const trial *t, int64_t layer)
{
    if (layer < 0 || layer >= t->v->plan->decoder->layers)
        return layer < 0 ? "ahead of the layers" : "behind the layers";
    return arena_format(t->arena, "layer %lld", (long long)t->v->names->numbers[layer]);
}

static const char *step_name(const trial *t, const step_rows *r)
{
    const char *where = t->kind == FROM_THE_START ? "from the first position on"
                        : t->kind == AT_AN_EDGE   ? "behind earlier positions"
                                                  : "of several sequences";
    uint32_t position = r->positions[r->m - 1];
    return arena_format(t->arena, "step of %zu token%s %s, the last at position %u", r->m,
                        r->m == 1 ? "" : "s", where, position);
}

/* The address of an argument. Tensors and caches are allocations of their own, so that what leaves
 * one is found. 0: there is nothing. */
static uint64_t address_of(const trial *t, const plan_argument *argument)
{
    const plan *p = t->v->plan;
    switch (argument->memory) {
    case PLAN_STATE:
        return t->state + argument->offset;
    case PLAN_WORKSPACE:
        return t->workspace + argument->offset;
    case PLAN_CACHE:
        return t->caches[argument->offset / p->cache_bytes] + argument->offset % p->cache_bytes;
    default:
        break;
    }
    for (size_t i = 0; i < p->tensor_count; i++)
        if (argument->offset - p->tensors[i].offset < p->tensors[i].bytes)
            return t->tensors[i] + argument->offset - p->tensors[i].offset;
    return 0;
}

static void describe_launch(const trial *t, const plan_launch *l, const step_rows *r,
                            emu_launch_config *config, uint64_t *values)
{
    const step_kernel *k = &t->v->kernels[l->kernel];
    const instance *in = &t->v->plan->kernels[l->kernel];
    const launch *how = &in->family->launch;
    run_values run = { in->shape.k, in->shape.n, (int64_t)r->m, USUAL_SM_COUNT };
    const void **params = arena_alloc(t->scratch, MAX_PARAMS * sizeof *params);
    for (size_t i = 0; i < l->argument_count; i++) {
        const plan_argument *argument = &l->arguments[i];
        values[i] = argument->is_number ? argument->number : address_of(t, argument);
        params[i] = &values[i];
        if (argument->is_number)
            run.m = argument->number;
    }
    *config = (emu_launch_config){
        .module = k->module,
        .entry = in->name,
        .block = { (unsigned)formula_value(how->block, in, &run), 1, 1 },
        .params = params,
        .param_count = l->argument_count,
        .no_race_check = true, /* each kernel by itself has it */
    };
    for (int i = 0; i < 3; i++)
        config->grid[i] = (unsigned)formula_value(how->grid[i], in, &run);
    if (how->dynamic_shared)
        config->dynamic_shared = (size_t)formula_value(how->dynamic_shared, in, &run);
}

static bool gives_logits(const plan *p, const plan_launch *l)
{
    return l->layer == p->decoder->layers && l->arguments[0].memory == PLAN_STATE &&
           l->arguments[0].offset == p->state.logits;
}

/* From the first block to the last. What they have written is known afterwards. */
static void choose_blocks(const trial *t, emu_launch_config *config, uint64_t *blocks)
{
    uint64_t grid = (uint64_t)config->grid[0] * config->grid[1] * config->grid[2];
    emu_clear_written(t->memory, t->state);
    if (grid <= SOME_BLOCKS)
        return;
    for (uint64_t i = 0; i < SOME_BLOCKS; i++)
        blocks[i] = i * (grid - 1) / (SOME_BLOCKS - 1);
    config->blocks = blocks;
    config->block_count = SOME_BLOCKS;
}

static bool run_launch(trial *t, const plan_launch *l, const step_rows *r)
{
    uint64_t values[MAX_PARAMS], blocks[SOME_BLOCKS];
    emu_launch_config config;
    emu_stats stats = { 0 };
    emu_report report;
    describe_launch(t, l, r, &config, values);
    if (t->in_part && l->layer == t->v->plan->decoder->layers) {
        if (!gives_logits(t->v->plan, l))
            return true;
        choose_blocks(t, &config, blocks);
    }
    bool ended = emu_launch(t->memory, &config, &stats, &report);
    t->result.instructions += stats.thread_instructions;
    if (ended)
        return true;
    return reject(t, arena_format(t->arena, "%s, %s: %s (%s): %s [%s], PTX line %u",
                                  step_name(t, r), layer_name(t, l->layer), config.entry, l->said,
                                  report.message, emu_fault_name(report.fault), report.line));
}

/* The values of the two references at some place, and what a kernel has left there. */
typedef struct compared {
    const char *what;
    const float *got;
    const double *rounded, *exact;
    size_t count;
    size_t row_size; /* of rows, for the message */
} compared;

/* How far an element may be off. */
static double bound_of(const compared *c)
{
    double largest = 0, squares = 0, rounding = 0;
    for (size_t i = 0; i < c->count; i++) {
        double by = c->rounded[i] - c->exact[i];
        largest = fmax(largest, fabs(by));
        rounding += by * by;
        squares += c->rounded[i] * c->rounded[i];
    }
    double count = (double)c->count;
    return 2 * largest + 4 * sqrt(rounding / count) + FLOAT_ERROR * sqrt(squares / count);
}

static bool compare(trial *t, const step_rows *r, int64_t layer, const compared *c, double *worst)
{
    double bound = bound_of(c), most = 0;
    size_t at = 0;
    for (size_t i = 0; i < c->count; i++) {
        double error = fabs((double)c->got[i] - c->rounded[i]) / bound;
        if (c->got[i] == (float)c->rounded[i])
            continue;
        if (!(error <= most)) {
            most = isnan(error) ? HUGE_VAL : error;
            at = i;
        }
    }
    *worst = fmax(*worst, most);
    if (most <= 1)
        return true;
    return reject(t, arena_format(t->arena,
                                  "%s, %s: %s[%zu][%zu] is %.9g, expected %.9g: %.3g of its bound",
                                  step_name(t, r), layer_name(t, layer), c->what, at / c->row_size,
                                  at % c->row_size, (double)c->got[at], c->rounded[at], most));
}

static void *read_bytes(const trial *t, uint64_t address, size_t size)
{
    void *bytes = arena_zalloc(t->scratch, size);
    if (!emu_read(t->memory, address, bytes, size))
        memset(bytes, 0xff, size); /* floats that are none */
    return bytes;
}

/* Rows [m, size] of floats, those alone that are tokens' rows. */
static float *read_rows(const trial *t, uint64_t address, const step_rows *r, size_t size)
{
    float *all = read_bytes(t, address, r->m * size * sizeof *all);
    size_t kept = 0;
    for (size_t i = 0; i < r->m; i++)
        if (r->is_row[i])
            memmove(all + kept++ * size, all + i * size, size * sizeof *all);
    return all;
}

static const plan_buffer *hidden_buffer(const plan_step *step)
{
    for (size_t i = 0; i < step->buffer_count; i++)
        if (strcmp(step->buffers[i].name, "h") == 0)
            return &step->buffers[i];
    return NULL;
}

/* The reference's hidden states of all rows behind a number of layers. */
static double *hidden_behind(const trial *t, const double *hidden, size_t rows, int64_t layers)
{
    const decoder *d = t->v->plan->decoder;
    size_t size = (size_t)d->hidden;
    double *all = arena_alloc(t->scratch, rows * size * sizeof *all);
    for (size_t i = 0; i < rows; i++)
        memcpy(all + i * size, hidden + (i * (size_t)(d->layers + 1) + (size_t)layers) * size,
               size * sizeof *all);
    return all;
}

static bool judge_hidden(trial *t, const plan_step *step, const step_rows *r, const expected *e,
                         int64_t layer)
{
    const decoder *d = t->v->plan->decoder;
    size_t size = (size_t)d->hidden;
    const compared c = {
        .what = "h",
        .got = read_rows(t, t->workspace + hidden_buffer(step)->offset, r, size),
        .rounded = hidden_behind(t, e->hidden[0], r->fed_count, layer + 1),
        .exact = hidden_behind(t, e->hidden[1], r->fed_count, layer + 1),
        .count = r->fed_count * size,
        .row_size = size,
    };
    return compare(t, r, layer, &c, &t->result.worst_hidden);
}

static uint64_t cache_address(const trial *t, const ref_cached *which)
{
    const step_model *m = &t->v->model;
    uint64_t row = (uint64_t)(which->kv_head * m->d->max_seq_len) + which->position;
    size_t cache = 2 * (size_t)(which->sequence * m->d->layers + which->layer) + which->values;
    return t->caches[cache] + row * m->row_bytes;
}

/* K or V of all rows and heads that a layer has written. */
static bool judge_cache(trial *t, const step_rows *r, int64_t layer, bool values)
{
    const decoder *d = t->v->plan->decoder;
    size_t dim = (size_t)d->head_dim, size = (size_t)d->num_kv_heads * dim;
    float *got = arena_alloc(t->scratch, r->m * size * sizeof *got);
    double *rounded = arena_alloc(t->scratch, r->m * size * sizeof *rounded);
    double *exact = arena_alloc(t->scratch, r->m * size * sizeof *exact);
    size_t at = 0;
    for (size_t i = 0; i < r->m; i++)
        for (int64_t head = 0; r->is_row[i] && head < d->num_kv_heads; head++, at += dim) {
            const ref_cached which = { r->rows[i].sequence, layer, head, r->positions[i], values };
            ref_step_cached(t->rounded, &which, rounded + at);
            ref_step_cached(t->exact, &which, exact + at);
            ref_decode(t->v->model.kv_format,
                       read_bytes(t, cache_address(t, &which), t->v->model.row_bytes), dim,
                       got + at);
        }
    const compared c = { values ? "V" : "K", got, rounded, exact, at, size };
    return compare(t, r, layer, &c, &t->result.worst_hidden);
}

static bool judge_layer(trial *t, const plan_step *step, const step_rows *r, const expected *e,
                        int64_t layer)
{
    if (layer < 0)
        return judge_hidden(t, step, r, e, layer);
    return judge_cache(t, r, layer, false) && judge_cache(t, r, layer, true) &&
           judge_hidden(t, step, r, e, layer);
}

/* The logits of a step, and of each whether it was computed. */
typedef struct computed_logits {
    float *values;
    bool *are; /* NULL: all */
    size_t count;
} computed_logits;

static computed_logits read_logits(const trial *t, const plan_step *step)
{
    const plan *p = t->v->plan;
    uint64_t address = t->state + p->state.logits;
    computed_logits l = { .count = (size_t)(step->logits_rows * p->decoder->vocab) };
    l.values = read_bytes(t, address, l.count * sizeof *l.values);
    if (!t->in_part)
        return l;
    l.are = arena_alloc(t->scratch, l.count * sizeof *l.are);
    for (size_t i = 0; i < l.count; i++)
        l.are[i] = emu_written(t->memory, address + i * sizeof *l.values, sizeof *l.values);
    return l;
}

/* What was not computed is taken to be right. */
static bool judge_logits(trial *t, const plan_step *step, const step_rows *r, const expected *e)
{
    const plan *p = t->v->plan;
    const computed_logits l = read_logits(t, step);
    size_t size = (size_t)p->decoder->vocab, first = r->m - (size_t)step->logits_rows, fed = 0;
    for (size_t i = 0; i < r->m; i++) {
        if (!r->is_row[i])
            continue;
        const double *rounded = e->logits[0] + fed * size, *exact = e->logits[1] + fed * size;
        float *got = i < first ? NULL : l.values + (i - first) * size;
        fed++;
        for (size_t j = 0; got && l.are && j < size; j++)
            if (!l.are[(i - first) * size + j])
                got[j] = (float)rounded[j];
        const compared c = { "logits", got, rounded, exact, size, size };
        if (got && !compare(t, r, p->decoder->layers, &c, &t->result.worst))
            return false;
    }
    return true;
}

static uint32_t largest_of(const float *logits, size_t count)
{
    size_t largest = 0;
    for (size_t i = 1; i < count; i++)
        if (logits[i] > logits[largest])
            largest = i;
    return (uint32_t)largest;
}

static uint32_t read_word(const trial *t, uint64_t offset, size_t row)
{
    return *(uint32_t *)read_bytes(t, t->state + offset + row * sizeof(uint32_t), sizeof(uint32_t));
}

/* The token, position and length of a row of the state are what comes behind a row of the step. */
static bool judge_next(trial *t, const step_rows *r, size_t row, size_t next, const float *logits)
{
    const plan *p = t->v->plan;
    const struct {
        const char *what;
        uint32_t got, expected;
    } words[] = {
        { "token", read_word(t, p->state.tokens, next),
          largest_of(logits, (size_t)p->decoder->vocab) },
        { "position", read_word(t, p->state.positions, next), r->positions[row] + 1 },
        { "length", read_word(t, p->state.lengths, next), r->lengths[row] + 1 },
    };
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (words[i].got != words[i].expected)
            return reject(t, arena_format(t->arena, "%s: the next %s of row %zu is %u, expected %u",
                                          step_name(t, r), words[i].what, next, words[i].got,
                                          words[i].expected));
    return true;
}

static bool judge_state(trial *t, const plan_step *step, const step_rows *r)
{
    const plan *p = t->v->plan;
    size_t size = (size_t)p->decoder->vocab, sampled = (size_t)step->sampled_rows;
    const float *logits = read_bytes(t, t->state + p->state.logits,
                                     (size_t)step->logits_rows * size * sizeof *logits);
    for (size_t i = r->m - sampled; i < r->m; i++)
        if (r->is_row[i] && !judge_next(t, r, i, sampled == 1 ? 0 : i,
                                        logits + (i + (size_t)step->logits_rows - r->m) * size))
            return false;
    return true;
}

static void write_state(const trial *t, const step_rows *r)
{
    const plan *p = t->v->plan;
    const decoder *d = p->decoder;
    size_t words = r->m * sizeof(uint32_t);
    uint32_t tokens[DECODER_MOST_ROWS];
    for (size_t i = 0; i < r->m; i++)
        tokens[i] = r->rows[i].token;
    emu_write(t->memory, t->state + p->state.tokens, tokens, words);
    emu_write(t->memory, t->state + p->state.positions, r->positions, words);
    emu_write(t->memory, t->state + p->state.lengths, r->lengths, words);
    for (int64_t layer = 0; layer < d->layers; layer++)
        for (size_t i = 0; i < 2 * (size_t)p->rows; i++) {
            size_t row = i % (size_t)p->rows, values = i / (size_t)p->rows;
            int64_t sequence = row < r->m ? r->rows[row].sequence : 0;
            emu_write(t->memory,
                      t->state + p->state.caches +
                          (2 * (size_t)layer * (size_t)p->rows + i) * sizeof(uint64_t),
                      &t->caches[2 * (size_t)(sequence * d->layers + layer) + values],
                      sizeof(uint64_t));
        }
}

static bool run_launches(trial *t, const plan_step *step, const step_rows *r, const expected *e)
{
    for (size_t i = 0; i < step->launch_count; i++) {
        const plan_launch *l = &step->launches[i];
        bool last = i + 1 == step->launch_count || l[1].layer != l->layer;
        if (!run_launch(t, l, r))
            return false;
        if (last && l->layer < t->v->plan->decoder->layers && !judge_layer(t, step, r, e, l->layer))
            return false;
    }
    return judge_logits(t, step, r, e) && (t->in_part || judge_state(t, step, r));
}

static expected feed_references(trial *t, const step_rows *r)
{
    const decoder *d = t->v->plan->decoder;
    ref_step *const both[] = { t->rounded, t->exact };
    size_t hidden = (size_t)(d->layers + 1) * (size_t)d->hidden;
    expected e;
    for (int i = 0; i < 2; i++) {
        e.logits[i] =
            arena_alloc(t->scratch, r->fed_count * (size_t)d->vocab * sizeof *e.logits[i]);
        e.hidden[i] = arena_alloc(t->scratch, r->fed_count * hidden * sizeof *e.hidden[i]);
        ref_step_feed(both[i], r->fed, r->fed_count, e.logits[i], e.hidden[i]);
    }
    return e;
}

static void add_row(step_rows *r, const trial *t, int64_t sequence, uint32_t token)
{
    uint64_t position = t->lengths[sequence]++;
    r->is_row[r->m] = true;
    r->rows[r->m] = r->fed[r->fed_count++] = (ref_row){ sequence, token };
    r->positions[r->m] = (uint32_t)position;
    r->lengths[r->m++] = (uint32_t)position + 1;
}

static void add_no_row(step_rows *r)
{
    r->is_row[r->m] = false;
    r->rows[r->m] = (ref_row){ 0, UINT32_MAX };
    r->positions[r->m] = UINT32_MAX;
    r->lengths[r->m++] = 0;
}

static uint32_t random_token(trial *t)
{
    return (uint32_t)random_below(&t->random, (uint64_t)t->v->plan->decoder->vocab);
}

static bool run_step(trial *t, const plan_step *step, const step_rows *r, bool from_the_state)
{
    expected e = feed_references(t, r);
    t->result.positions += r->fed_count;
    if (!from_the_state)
        write_state(t, r);
    return run_launches(t, step, r, &e);
}

static const plan_step *step_of_one(const plan *p)
{
    return p->steps[0].m == 1 ? &p->steps[0] : NULL;
}

static bool is_large(const plan *p)
{
    return p->decoder->vocab * p->decoder->hidden > LARGE_OUTPUT;
}

static bool has_room(const trial *t, int64_t sequence, int64_t tokens)
{
    return (int64_t)t->lengths[sequence] + tokens <= t->v->plan->decoder->max_seq_len;
}

/* The last row again: the step has left all that it was computed from. */
static bool run_alone(trial *t, const plan_step *step, const step_rows *all)
{
    const plan *p = t->v->plan;
    const plan_step *one = step_of_one(p);
    size_t last = all->m - 1, size = (size_t)p->decoder->vocab;
    const computed_logits l = read_logits(t, step);
    const float *logits = l.values + l.count - size;
    step_rows r = { .m = 1,
                    .is_row = { true },
                    .rows = { all->rows[last] },
                    .positions = { all->positions[last] },
                    .lengths = { all->lengths[last] } };
    write_state(t, &r);
    for (size_t i = 0; i < one->launch_count; i++)
        if (!run_launch(t, &one->launches[i], &r))
            return false;
    const computed_logits alone = read_logits(t, one);
    for (size_t i = 0; i < size; i++)
        if ((!l.are || (l.are[l.count - size + i] && alone.are[i])) &&
            memcmp(&alone.values[i], &logits[i], sizeof *logits) != 0)
            return reject(t, arena_format(t->arena,
                                          "%s: logits[%zu] of the last token is %.9g, and %.9g "
                                          "where it is the only one",
                                          step_name(t, all), i, (double)logits[i],
                                          (double)alone.values[i]));
    return true;
}

/* Some tokens of a sequence behind rows that are none, as at the end of a prompt; then the last of
 * them alone. */
static bool run_tokens(trial *t, const plan_step *step, int64_t sequence, int64_t count)
{
    step_rows r = { 0 };
    arena_reset(t->scratch);
    if (!has_room(t, sequence, count))
        return true;
    for (int64_t i = count; i < step->m; i++)
        add_no_row(&r);
    for (int64_t i = 0; i < count; i++)
        add_row(&r, t, sequence, random_token(t));
    return run_step(t, step, &r, false) &&
           (step->m == 1 || !step_of_one(t->v->plan) || run_alone(t, step, &r));
}

/* The token that the step ahead has chosen, which is in the state with all that it needs. */
static bool run_chosen(trial *t, int64_t sequence)
{
    const plan *p = t->v->plan;
    step_rows r = { 0 };
    arena_reset(t->scratch);
    if (t->in_part || !step_of_one(p) || !has_room(t, sequence, 1))
        return true;
    add_row(&r, t, sequence, read_word(t, p->state.tokens, 0));
    return run_step(t, step_of_one(p), &r, true);
}

/* Has a sequence start behind some positions. Those from there on are no numbers. */
static void start_at(trial *t, int64_t sequence, uint64_t position)
{
    const decoder *d = t->v->plan->decoder;
    void *none = memset(arena_alloc(t->arena, t->v->model.row_bytes), 0xff, t->v->model.row_bytes);
    t->lengths[sequence] = position;
    ref_step_start(t->rounded, sequence, position, step_model_earlier, (void *)&t->v->model);
    ref_step_start(t->exact, sequence, position, step_model_earlier, (void *)&t->v->model);
    ref_cached at = { .sequence = sequence };
    for (at.layer = 0; at.layer < d->layers; at.layer++)
        for (at.kv_head = 0; at.kv_head < d->num_kv_heads; at.kv_head++)
            for (int values = 0; values < 2; values++) {
                at.values = values;
                for (at.position = 0;
                     at.position < MODEL_LARGE_POSITIONS && at.position < (uint64_t)d->max_seq_len;
                     at.position++)
                    emu_write(t->memory, cache_address(t, &at), step_model_row(&t->v->model, &at),
                              t->v->model.row_bytes);
                for (at.position = position; at.position < position + 3 * DECODER_MOST_ROWS &&
                                             at.position < (uint64_t)d->max_seq_len;
                     at.position++)
                    emu_write(t->memory, cache_address(t, &at), none, t->v->model.row_bytes);
            }
}

static bool has_window(const decoder *d)
{
    bool has = false;
    for (int64_t i = 0; i < d->layers; i++)
        has |= d->windowed[i] != 0;
    return has && d->window;
}

/* A position from which on something else holds: the first that a window leaves out, or one where
 * the temperature rises; else one with many ahead of it. */
static uint64_t edge_of(const plan *p)
{
    const decoder *d = p->decoder;
    uint64_t room = 3 * DECODER_MOST_ROWS, longest = (uint64_t)d->max_seq_len;
    double length = d->rope[0].temperature_length;
    uint64_t edge = has_window(d) ? (uint64_t)d->window : length > 0 ? (uint64_t)length : FAR;
    return edge + room < longest ? edge : longest > 2 * room ? longest - room : longest / 2;
}

/* Of a large vocabulary and several tokens a step, what comes from the steps at an edge is enough.
 */
static bool run_from_the_start(trial *t)
{
    const plan *p = t->v->plan;
    start_at(t, 0, 0);
    for (size_t i = 0; i < p->step_count; i++) {
        const plan_step *step = &p->steps[i];
        bool enough = is_large(p) && i && i + 1 == p->step_count;
        if (!enough && (!run_tokens(t, step, 0, step->m) || !run_chosen(t, 0) ||
                        (step->m > 1 && !run_tokens(t, step, 0, (step->m + 1) / 2))))
            return false;
    }
    return true;
}

static bool run_at_an_edge(trial *t)
{
    const plan *p = t->v->plan;
    uint64_t edge = edge_of(p), ahead = (uint64_t)p->rows / 2 + 1;
    start_at(t, 0, edge > ahead ? edge - ahead : 0);
    t->in_part = is_large(p);
    return run_tokens(t, &p->steps[p->step_count - 1], 0, p->rows) && run_chosen(t, 0) &&
           run_chosen(t, 0);
}

/* A token of each sequence, at positions of its own, behind rows that are none. */
static bool run_several(trial *t)
{
    const plan *p = t->v->plan;
    const plan_step *step = &p->steps[p->step_count - 1];
    int64_t sequences = p->decoder->sequences < step->m ? p->decoder->sequences : step->m;
    step_rows r = { 0 };
    if (sequences < 2)
        return true;
    for (int64_t i = 0; i < sequences; i++)
        start_at(t, i, (uint64_t)(i * SEVERAL_APART) % (uint64_t)p->decoder->max_seq_len);
    for (int64_t i = sequences; i < step->m; i++)
        add_no_row(&r);
    for (int64_t i = 0; i < sequences; i++)
        add_row(&r, t, i, random_token(t));
    arena_reset(t->scratch);
    t->in_part = is_large(p);
    return run_step(t, step, &r, false);
}

static uint64_t map_tensor(emu_memory *memory, const model_tensor *t, uint64_t bytes)
{
    return t->stored == bytes ? emu_map(memory, t->bytes, t->size, true)
                              : emu_map_pattern(memory, t->size, t->bytes, t->stored);
}

static void map_all(trial *t)
{
    const verifier *v = t->v;
    const plan *p = v->plan;
    const decoder *d = p->decoder;
    t->memory = emu_memory_new_in(t->arena);
    t->tensors = arena_alloc(t->arena, p->tensor_count * sizeof *t->tensors);
    for (size_t i = 0; i < p->tensor_count; i++)
        t->tensors[i] = map_tensor(t->memory, &v->model.tensors[i], p->tensors[i].bytes);
    size_t caches = 2 * (size_t)(d->layers * d->sequences);
    t->caches = arena_alloc(t->arena, caches * sizeof *t->caches);
    for (size_t i = 0; i < caches; i++)
        t->caches[i] = emu_map_pattern(t->memory, p->cache_bytes, v->model.rows[i % 2],
                                       MODEL_CACHE_ROWS * v->model.row_bytes);
    t->state = emu_alloc(t->memory, p->bytes[PLAN_STATE]);
    static const uint8_t zero = 0;
    emu_fill(t->memory, t->state, &zero, 1, p->bytes[PLAN_STATE]);
    t->workspace = emu_alloc(t->memory, p->bytes[PLAN_WORKSPACE]);
}

static void run_trial(void *context, size_t i)
{
    trial *t = (trial *)context + i;
    const verifier *v = t->v;
    t->scratch = arena_new_in(t->arena);
    t->random = (random_source){ v->seed + i + 1 };
    t->right = true;
    t->lengths = arena_zalloc(t->arena, (size_t)v->plan->decoder->sequences * sizeof *t->lengths);
    t->rounded = ref_step_new(t->arena, v->plan->decoder, step_model_weights, (void *)&v->model);
    t->exact = ref_step_new(t->arena, &v->exact, step_model_weights, (void *)&v->model);
    map_all(t);
    if (t->kind == FROM_THE_START)
        run_from_the_start(t);
    else if (t->kind == AT_AN_EDGE)
        run_at_an_edge(t);
    else
        run_several(t);
}

/* The oldest target's kernel of each of the plan's; NULL, or the name of the one that there is not.
 */
static const char *load_kernels(arena *a, verifier *v, const kernel *kernels, size_t count)
{
    emu_report report;
    v->kernels = arena_zalloc(a, v->plan->kernel_count * sizeof *v->kernels);
    for (size_t i = 0; i < v->plan->kernel_count; i++) {
        step_kernel *k = &v->kernels[i];
        for (size_t j = 0; j < count && !k->kernel; j++)
            if (strcmp(kernels[j].instance->name, v->plan->kernels[i].name) == 0)
                k->kernel = &kernels[j];
        if (k->kernel)
            k->module = emu_load(a, k->kernel->ptx, k->kernel->ptx_length, &report);
        if (!k->module)
            return v->plan->kernels[i].name;
    }
    return NULL;
}

static void add_result(step_result *all, const trial *t, arena *a)
{
    all->right = all->right && t->right;
    all->positions += t->result.positions;
    all->worst = fmax(all->worst, t->result.worst);
    all->worst_hidden = fmax(all->worst_hidden, t->result.worst_hidden);
    all->instructions += t->result.instructions;
    if (!t->right && !all->message)
        all->message = arena_strdup(a, t->result.message);
}

step_result verify_plan(arena *a, const plan *p, const chosen_layers *names, const kernel *kernels,
                        size_t kernel_count, uint64_t seed, unsigned jobs)
{
    arena *of_all = arena_new();
    step_result result = { .right = true, .layers = p->decoder->layers };
    verifier v = { .plan = p, .names = names, .exact = *p->decoder, .seed = seed };
    v.exact.precision = PRECISION_F32;
    v.exact.kv_type = KV_F32;
    const char *missing = load_kernels(of_all, &v, kernels, kernel_count);
    if (missing) {
        result.right = false;
        result.message =
            arena_format(a, "the step needs the kernel %s, which is not there", missing);
        arena_free(of_all);
        return result;
    }
    v.model = step_model_new(of_all, p, seed);
    trial trials[TRIALS];
    for (int i = 0; i < TRIALS; i++)
        trials[i] = (trial){ .v = &v, .arena = arena_new(), .kind = (trial_kind)i };
    os_parallel(jobs, TRIALS, run_trial, trials);
    for (int i = 0; i < TRIALS; i++) {
        add_result(&result, &trials[i], a);
        arena_free(trials[i].arena);
    }
    arena_free(of_all);
    return result;
}
