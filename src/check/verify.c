/* Verifies a kernel by many trials. A trial runs the whole grid if that is little work, otherwise
 * chosen blocks (see blocks.h). Written elements must be right, and a whole grid must write all
 * elements.
 *
 * A kernel for any number of rows of X runs with one row, with one group of rows, and with several
 * groups of which the last is partial.
 *
 * Sequence lengths only shrink from trial to trial in the same buffers. Positions that become
 * invalid are set to NaN, which reveals their use. */
#include "check/verify.h"

#include "kernel/formula.h"
#include "ref/reference.h"
#include <string.h>

enum {
    NAN_WORK = 30000000,    /* thread instructions for one input with a NaN */
    USUAL_SM_COUNT = 132,   /* SM count of an H100 */
    TURNS_A_BLOCK = 3,      /* iterations of a grid-stride kernel in its looping trial */
    SOME_SEQ_LEN = 300,     /* a few chunks of flash decoding */
    SEVERAL_CHUNKS = 1100,  /* more than the blocks of one SM */
    ODD_SEQ_LEN = 97,       /* one chunk that all its warps share */
    FEW_POSITIONS = 4,      /* below this, a state lacks some of its inputs */
    MOST_LENGTHS = 16,      /* maximum number of sequence lengths in a trial */
    MOST_BEYOND = 3,        /* maximum number of lengths with some rows beyond the cache */
    LONG_SEQ_LEN = 1 << 15, /* maximum length for inputs other than the ordinary ones */
    TURNS_AT_MOST = 64,     /* maximum iterations per block with the usual SM count */
    ROUTES = 8,             /* ordinary inputs of a router with few rows */
    LARGE_ROUTES = 2,       /* with many rows: one with usual and one with large logits */
    LISTS = 4,              /* inputs with lists of experts */
    PLACES = 32,            /* positions of a NaN */
    FEW_PLACES = 7,         /* positions of a NaN if each is slow */
    PLACE_VALUES = 8192,    /* positions are below this value, several iterations of a loop */
};

/* Launches the trial with NaN after the valid cache positions. For a cache that repeats its bytes,
 * the first invalid position of each head becomes NaN in the emulator's memory. */
static bool launch_spoiled(verifier *v, selection which)
{
    const trial *t = &v->trial;
    uint64_t heads = (uint64_t)problem_cache_heads(&t->setup.shape);
    for (size_t i = 0; i < t->param_count; i++) {
        const trial_param *p = &t->params[i];
        uint64_t bytes =
            format_bytes(p->param.format, (uint64_t)problem_cache_values(&t->setup.shape));
        if (!trial_is_read_cache(p) || p->content.stored == p->content.size)
            continue;
        for (size_t sequence = 0; sequence < t->row_count; sequence++) {
            int64_t valid = trial_valid_rows(t, sequence);
            for (uint64_t head = 0; head < heads && valid < trial_cache_rows(t); head++) {
                uint64_t row = ref_cache_row(&t->problem, sequence, head, (uint64_t)valid);
                emu_fill(v->run.device->memory, v->run.addresses[i] + row * bytes,
                         &(uint8_t){ 0xff }, 1, bytes);
            }
        }
    }
    return verifier_launch(v, which);
}

/* Returns true if a family updates states in memory. */
static bool updates(const instance *in)
{
    for (const param *p = in->family->params; p->name; p++)
        if (p->data == DATA_UPDATED)
            return true;
    return false;
}

/* Returns true if the rows can be positions of one sequence whose cache the kernel writes. */
static bool writes_one_cache(const instance *in, const problem_shape *s)
{
    for (const param *p = in->family->params; p->name; p++)
        if (p->kind == PARAM_OUT && (p->data == DATA_CACHE || p->data == DATA_UPDATED))
            return !in->options.ring || s->m <= in->options.ring;
    return false;
}

/* Runs sequence lengths: beyond the cache, where the rows contain its last position, decreasing
 * ones with other remainders of merged chunks, and a single chunk. */
static bool run_lengths(verifier *v)
{
    const instance *in = v->kernel->instance;
    const int64_t longest = v->trial.setup.shape.max_seq_len, size = in->shape.chunk_size;
    const int64_t few = updates(in) ? FEW_POSITIONS : 1;
    const int64_t shorter[] = { size || in->chunks ? longest * 2 / 3 : 0,
                                size || in->chunks ? longest * 2 / 5 : 0,
                                size - size / 3,
                                SOME_SEQ_LEN,
                                ODD_SEQ_LEN,
                                few,
                                few - few / 4,
                                few - few / 2,
                                1 };
    int64_t lengths[MOST_LENGTHS];
    size_t count = 0;
    for (int64_t beyond = writes_one_cache(in, &in->shape) ? in->shape.m - 1 : 1;
         beyond > 1 && count < MOST_BEYOND; beyond--)
        lengths[count++] = longest + beyond;
    lengths[count++] = longest + 1;
    lengths[count++] = UINT32_MAX;
    lengths[count++] = longest;
    while (lengths[count - 1]) {
        int64_t next = 0;
        for (size_t i = 0; i < sizeof shorter / sizeof *shorter; i++)
            if (shorter[i] < lengths[count - 1] && shorter[i] > next)
                next = shorter[i];
        lengths[count++] = next;
    }
    bool right = true;
    for (size_t i = 0; right && i < count; i++) {
        trial_shorten(&v->trial, lengths[i]);
        right = launch_spoiled(v, lengths[i] > longest ? LAST_BLOCK : SAMPLED_BLOCKS);
    }
    return right;
}

/* Runs with the first rows unused and the others at consecutive positions. */
static bool run_positions(verifier *v, size_t unused, uint32_t first)
{
    size_t rows = v->trial.row_count;
    uint32_t *lengths = arena_alloc(v->scratch, rows * sizeof *lengths);
    for (size_t i = 0; i < rows; i++)
        lengths[i] = i < unused ? 0 : (uint32_t)(first + i - unused);
    trial_shorten_each(&v->trial, lengths);
    return verifier_launch(v, SAMPLED_BLOCKS);
}

/* Runs rows of different sequences, each one position longer than the previous row. */
static bool run_neighbours(verifier *v)
{
    return run_positions(v, 0, 1);
}

/* Runs with 1, 2, ... unused rows, and the other rows in one sequence. */
static bool run_unused(verifier *v)
{
    bool right = true;
    for (size_t unused = 1; right && unused < v->trial.row_count; unused++)
        right = run_positions(v, unused, FEW_POSITIONS);
    return right;
}

static bool run_alone(verifier *v)
{
    return launch_spoiled(v, SAMPLED_BLOCKS);
}

static bool run_first(verifier *v)
{
    return verifier_launch(v, FIRST_BLOCK);
}

/* Returns a trial's seed. It changes only for families whose inputs depend on it. */
static uint64_t seed_of(const verifier *v, uint64_t number)
{
    return v->kernel->instance->family->fit ? v->seed + number : v->seed;
}

/* Returns the first spoiled block that a launch reads: of the first token or used expert. */
static uint64_t first_chosen(const trial *t)
{
    uint64_t rows = 1, row = 0;
    for (size_t i = 0; t->spoilt.weights && i < t->param_count; i++) {
        const trial_param *p = &t->params[i];
        const uint32_t *words = p->content.bytes;
        if (p->param.kind == PARAM_IN && strcmp(p->param.name, "tokens") == 0) {
            rows = (uint64_t)t->setup.shape.n;
            row = words[0];
        } else if (p->param.kind == PARAM_IN && strcmp(p->param.name, "list") == 0) {
            rows = (uint64_t)t->setup.shape.experts;
            row = words[EXPERT_LIST_HEAD + EXPERT_ID];
        }
    }
    return row < rows ? t->spoilt.blocks / rows * row : 0;
}

/* Returns the block for the i-th NaN. Four consecutive NaNs are in different values of 16 bytes.
 * Consecutive groups of four are in different eighths of the input's beginning, since an unrolled
 * loop has separate instructions for each. */
static uint64_t place_of(const trial *t, uint64_t first, uint64_t i)
{
    enum { AT_ONCE = 4, PARTS = 8, PRIME = 129 };
    static const uint64_t parts[PARTS] = { 0, 4, 2, 6, 1, 5, 3, 7 };
    uint64_t blocks = t->spoilt.blocks,
             near = PLACE_VALUES / formats[t->spoilt.format].block_values;
    if (near > t->spoilt.of_row)
        near = t->spoilt.of_row;
    uint64_t at =
        near * parts[i / AT_ONCE % PARTS] / PARTS + (first + i * PRIME) % (near / PARTS + 1);
    return (first_chosen(t) + at / AT_ONCE * AT_ONCE + i % AT_ONCE) % blocks;
}

/* Runs the first block with a NaN at several positions of an input, more if it is little work, and
 * the last block with a NaN in the last value. Some references take longer than the kernel. */
static bool run_places(verifier *v)
{
    trial *t = &v->trial;
    bool slow = t->instance->family->halves || t->setup.shape.max_seq_len;
    uint64_t first = t->spoilt.at, blocks = t->spoilt.blocks, before = v->result.instructions;
    bool right = verifier_launch(v, FIRST_BLOCK);
    uint64_t work = slow ? verifier_block_work(t) : v->result.instructions - before;
    uint64_t possible = NAN_WORK / (work + 1), most = slow ? FEW_PLACES : PLACES;
    uint64_t places = possible < most ? possible : most;
    for (uint64_t i = 0; right && t->spoiled && i < places; i++) {
        trial_move_spoiled(t, place_of(t, first, i));
        right = verifier_launch(v, FIRST_BLOCK);
    }
    if (!right || !t->spoiled)
        return right;
    trial_move_spoiled(t, blocks - 1);
    return verifier_launch(v, LAST_BLOCK);
}

/* Runs the first block with an infinity in its inputs. */
static bool run_infinite(verifier *v)
{
    trial *t = &v->trial;
    if (t->spoiled)
        trial_move_spoiled(t, place_of(t, t->spoilt.at, 0));
    return verifier_launch(v, FIRST_BLOCK);
}

/* Runs with a NaN, then an infinity, in each input: dependent results must not be finite. */
static bool run_spoiled(verifier *v, const problem_shape *shape, int64_t sm_count)
{
    trial_setup setup = { .shape = *shape, .sm_count = sm_count, .seed = v->seed };
    setup.shape.seq_len = shape->max_seq_len < SOME_SEQ_LEN ? shape->max_seq_len : SOME_SEQ_LEN;
    size_t inputs = trial_input_count(v->scratch, v->kernel->instance);
    bool right = true;
    for (size_t i = 0; right && i < inputs; i++) {
        setup.spoiled_input = (unsigned)i;
        for (setup.spoiled = WITH_NAN; right && setup.spoiled <= WITH_INFINITY; setup.spoiled++) {
            setup.seed = seed_of(v, 2 * i + setup.spoiled);
            right = verifier_try(v, &setup, setup.spoiled == WITH_NAN ? run_places : run_infinite);
        }
    }
    return right;
}

/* Returns the number of ordinary inputs: several for routers and lists of experts. */
static uint64_t ordinary_inputs(const instance *in)
{
    operation op = in->family->op;
    bool lists = in->shape.m > 1 && blocks_are_few(op, &in->shape) &&
                 (op == OP_EXPERT_GATE_UP || op == OP_EXPERT_DOWN);
    if (op == OP_SAMPLE)
        return ref_sampling_turns(&in->shape);
    if (op == OP_MOE_ROUTE)
        return in->shape.m < ROUTES ? ROUTES : LARGE_ROUTES;
    return lists ? LISTS : 1;
}

/* Returns true if the kernel computes or merges a softmax of scores. */
static bool has_scores(const instance *in)
{
    operation op = in->family->op;
    bool has = op == OP_MOE_ROUTE || op == OP_SOFTMAX;
    for (const param *p = in->family->params; p->name; p++)
        has |= p->random == RANDOM_STEEP || p->data == DATA_PARTIAL_ROWS;
    return has;
}

/* Runs with very negative scores, and with lengths that are not multiples of a tile. */
static bool run_negative(verifier *v)
{
    static const int64_t lengths[] = { SOME_SEQ_LEN - 1, ODD_SEQ_LEN, ODD_SEQ_LEN / 3 - 1,
                                       FEW_POSITIONS + 1, FEW_POSITIONS - 1 };
    int64_t longest = v->trial.setup.shape.seq_len;
    bool right = run_alone(v);
    for (size_t i = 0; right && i < sizeof lengths / sizeof *lengths; i++)
        if (lengths[i] < longest) {
            trial_shorten(&v->trial, lengths[i]);
            right = run_alone(v);
        }
    return right;
}

/* Runs ordinary inputs, and again with rows that share a cache if possible. Then zeros, tiny and
 * huge values, which can cause a division by zero, lost bits or overflow; a large grid runs one
 * block of these. Outliers follow for kernels with a power of two per row, a norm or a limit, where
 * a few values determine the result. */
static bool run_sizes(verifier *v, const problem_shape *shape, int64_t sm_count)
{
    static const fill_kind others[] = { FILL_ZERO, FILL_TINY, FILL_HUGE };
    trial_setup setup = { .shape = *shape, .sm_count = sm_count, .seed = v->seed };
    setup.shape.seq_len = shape->max_seq_len;
    const uint64_t end = v->seed + ordinary_inputs(v->kernel->instance);
    bool right = verifier_try(v, &setup, shape->max_seq_len ? run_lengths : run_alone);
    while (right && ++setup.seed < end) {
        setup.turn++;
        right = verifier_try(v, &setup, run_alone);
    }
    setup.seed = v->seed;
    setup.turn = 0;
    if (right && updates(v->kernel->instance) && shape->m > 1)
        right = verifier_try(v, &setup, run_neighbours);
    setup.one_cache = writes_one_cache(v->kernel->instance, shape);
    if (right && setup.one_cache)
        right = verifier_try(v, &setup, run_lengths);
    if (right && setup.one_cache && updates(v->kernel->instance) &&
        shape->max_seq_len >= FEW_POSITIONS + shape->m)
        right = verifier_try(v, &setup, run_unused);
    setup.one_cache = false;
    if (setup.shape.seq_len > LONG_SEQ_LEN)
        setup.shape.seq_len = LONG_SEQ_LEN;
    for (size_t i = 0; right && i < sizeof others / sizeof *others; i++) {
        setup.kind = others[i];
        setup.seed = seed_of(v, setup.kind);
        right = verifier_try(v, &setup, run_first);
    }
    if (right && has_scores(v->kernel->instance)) {
        setup.kind = FILL_NEGATIVE;
        if (setup.shape.seq_len > SOME_SEQ_LEN)
            setup.shape.seq_len = SOME_SEQ_LEN;
        right = verifier_try(v, &setup, run_negative);
    }
    const problem_options o = trial_options(v->kernel->instance);
    setup.kind = FILL_OUTLIERS;
    bool few_decide = o.halves || o.norm || o.activation == ACTIVATION_SWIGLU_OAI;
    return right && (!few_decide || !blocks_are_few(v->kernel->instance->family->op, shape) ||
                     verifier_try(v, &setup, run_alone));
}

/* Runs with one SM if that makes each block process several chunks. */
static bool run_fewer_blocks(verifier *v, const problem_shape *shape)
{
    const instance *in = v->kernel->instance;
    const char *blocks = in->family->launch.grid[2];
    trial_setup setup = { .shape = *shape, .sm_count = 1, .seed = v->seed };
    run_values one_sm = { .m = shape->m, .sm_count = 1 },
               usual = { .m = shape->m, .sm_count = USUAL_SM_COUNT };
    setup.shape.seq_len = shape->max_seq_len;
    if (formula_value(blocks, in, &one_sm) == formula_value(blocks, in, &usual))
        return true;
    bool right = verifier_try(v, &setup, run_alone);
    if (!right || !has_scores(in))
        return right;
    setup.kind = FILL_NEGATIVE;
    if (setup.shape.seq_len > SEVERAL_CHUNKS)
        setup.shape.seq_len = SEVERAL_CHUNKS;
    return verifier_try(v, &setup, run_alone);
}

/* Runs a shape with the usual SM count. If one SM has fewer blocks than the output needs, also runs
 * with an SM count that makes grid-stride blocks compute several rows. */
static bool run_shape(verifier *v, const problem_shape *s)
{
    const instance *in = v->kernel->instance;
    const char *grid = in->family->launch.grid[0];
    run_values run = { s->k, s->n, s->m, 0 };
    bool strides = formula_value(grid, in, &run) < 0;
    run.sm_count = 1;
    int64_t blocks = formula_value(grid, in, &run), looping = 0;
    if (strides && s->n > blocks)
        looping = s->n / blocks / (int64_t)blocks_rows_a_turn(in) / TURNS_A_BLOCK;
    if (strides && s->n > blocks && looping < 1)
        looping = 1;
    bool long_loops = looping > USUAL_SM_COUNT * TURNS_AT_MOST / TURNS_A_BLOCK;
    int64_t usual = long_loops ? looping : USUAL_SM_COUNT;
    return run_sizes(v, s, usual) && (!looping || looping == usual || run_sizes(v, s, looping)) &&
           run_fewer_blocks(v, s) && run_spoiled(v, s, usual);
}

/* With rows = run_time, runs 1 row, one group, one row less, and several groups of which the last
 * lacks a row. The other trials have one row in the last group, where most of a group is missing.
 */
static bool run_shape_with_rows(verifier *v, const problem_shape *shape)
{
    const instance *in = v->kernel->instance;
    /* rows of one sequence must fit a ring */
    bool fits_ring = in->family->by_runs && in->options.ring;
    int64_t group = in->shape.m;
    int64_t most = fits_ring ? in->options.ring - in->options.window + 1 : INT64_MAX;
    const int64_t rows[] = { 1, group - 1, group, 3 * group - 1 };
    problem_shape other = *shape;
    if (in->rows_mode == ROWS_FIXED)
        return run_shape(v, shape);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        trial_setup setup = { .shape = *shape, .sm_count = USUAL_SM_COUNT, .seed = v->seed };
        setup.shape.m = rows[i];
        if (rows[i] && rows[i] <= most && !verifier_try(v, &setup, run_alone))
            return false;
    }
    other.m = group < most ? group + 1 : most;
    return run_shape(v, &other);
}

/* Runs other sizes: the smallest, some odd multiples, and one without a remainder. */
static bool run_other_sizes(verifier *v)
{
    static const int64_t columns[] = { 1, 3, 5, 32 }, rows[] = { 1, 7, 33, 2 };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        instance other = *v->kernel->instance;
        for (const key *k = other.family->keys; k->name; k++) {
            int64_t unit = key_multiple(&other, k), least = k->min > unit ? k->min : unit;
            int64_t size = least + ((unit > 1 ? columns[i] : rows[i]) - 1) * unit;
            if (k->at_run_time)
                instance_set(&other, k, size < k->max ? size : k->max);
        }
        if (!run_shape_with_rows(v, &other.shape))
            return false;
    }
    return true;
}

verify_result verify_kernel(arena *a, const kernel *k, uint64_t seed, verify_cores *cores,
                            bool alike, const trial_setup *setup)
{
    const instance *in = k->instance;
    verifier v = { .result_arena = a,
                   .scratch = arena_new(),
                   .kernel = k,
                   .seed = seed,
                   .cores = cores,
                   .alike = alike };
    bool loaded = verifier_load(&v), fixed = true; /* all sizes are fixed */
    for (const key *size = in->family->keys; size->name; size++)
        fixed = fixed && (!size->at_run_time || instance_value(in, size));
    if (loaded && setup)
        verifier_try(&v, setup, run_alone);
    else if (loaded && (!fixed || run_shape_with_rows(&v, &in->shape)) && in->dims == DIMS_DYNAMIC)
        run_other_sizes(&v);
    if (v.result.right && !setup)
        verifier_check_rounding(&v);
    arena_free(v.scratch);
    return v.result;
}
