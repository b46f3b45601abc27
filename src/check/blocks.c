#include "check/blocks.h"

#include <math.h>
#include <string.h>

#include "kernel/formula.h"

enum {
    WHOLE_WORK = 20000000,  /* thread instructions up to which all blocks run */
    SMALL_WORK = 80000000,  /* thread instructions of a shape that gets more kinds of inputs */
    SAMPLED_WORK = 4000000, /* thread instructions up to which further random blocks are added */
    LARGE_WORK = 200000000, /* thread instructions of a block from which a sample has only one */
    MAX_CHOICES = 16,       /* maximum number of sampled blocks, or of groups that run together */
};

static uint64_t at_least_one(int64_t size)
{
    return size > 0 ? (uint64_t)size : 1;
}

/* Estimates the work of a product for one row of X. */
static double product_work(double rows, double columns)
{
    return 5.0 * fmax(columns, 1) * fmax(rows, 1);
}

/* Estimates the work of an operation for one row of X, with a cache of span positions. */
static double row_work(operation op, const problem_shape *s, int64_t span)
{
    double rows = (double)(s->n + s->n_kv + s->n_v), columns = (double)s->k;
    double heads = (double)s->num_heads, dim = (double)s->head_dim, state = (double)s->state_size;
    double latent = (double)s->latent * (double)(s->nope + s->value_dim) +
                    (double)((s->nope + s->n_rope) * s->q_rank);
    double attended = (double)at_least_one(problem_cache_values(s)) * (double)at_least_one(span);
    double chosen = columns * (double)at_least_one(s->experts_used) + (double)s->n_shared;
    return op == OP_EMBED_ROWS || op == OP_PER_LAYER_ROWS ? product_work(1, columns)
           : op == OP_MOE_ROUTE                        ? product_work((double)s->experts, columns)
           : op == OP_MLA_QUERY || op == OP_MLA_VALUES ? 10.0 * heads * latent
           : op == OP_ROPE       ? 30.0 * (double)(s->num_heads + s->num_kv_heads) * dim
           : op == OP_KV_WRITE   ? 40.0 * (double)s->num_kv_heads * dim
           : op == OP_DELTA_NET  ? 15.0 * heads * dim * dim
           : op == OP_MAMBA2     ? 15.0 * heads * dim * state
           : op == OP_SHORT_CONV ? 20.0 * rows
           : op == OP_MAMBA_SCAN ? 25.0 * rows * state
           : op == OP_SAMPLE     ? 1e6 + 400.0 * rows
           : s->max_seq_len      ? 12.0 * fmax(heads, 1) * attended
                                 : product_work(rows, chosen);
}

static uint64_t work_of(operation op, const problem_shape *s, int64_t span)
{
    double work = row_work(op, s, span) * (double)at_least_one(s->m);
    return (uint64_t)fmin(work, (double)(UINT64_C(1) << 62));
}

/* Rounds rows up to those of a block. Without a cache, one position counts. */
uint64_t blocks_work(const trial *t)
{
    problem_shape s = t->setup.shape;
    const instance *in = t->instance;
    int64_t rows = (int64_t)blocks_rows_a_turn(in), span = 1, window = t->problem.options.window;
    for (size_t i = 0; i < t->param_count; i++)
        if (trial_is_read_cache(&t->params[i]))
            span = trial_valid_positions(t, t->sequences[0]);
    if (window && window < span)
        span = window;
    s.n = s.n && s.n < rows ? rows : s.n;
    if (in->rows_mode == ROWS_RUN_TIME && s.m < in->shape.m)
        s.m = in->shape.m;
    return work_of(in->family->op, &s, span);
}

bool blocks_are_few(operation op, const problem_shape *s)
{
    return work_of(op, s, 1) <= SMALL_WORK;
}

uint64_t blocks_of_grid(const trial *t)
{
    return (uint64_t)t->grid[0] * t->grid[1] * t->grid[2];
}

bool blocks_chosen(const block_choice *c, uint64_t block)
{
    for (size_t i = 0; i < c->count; i++)
        if (c->blocks[i] == block)
            return true;
    return c->count == 0;
}

uint64_t blocks_partners(const trial *t)
{
    for (size_t i = 0; i < t->param_count; i++)
        if (t->params[i].param.data == DATA_ZEROED)
            return t->grid[2];
    return 1;
}

/* Inserts a block and its partners, which finish its results, in ascending order. */
static void choose(block_choice *c, const trial *t, uint64_t first)
{
    uint64_t plane = (uint64_t)t->grid[0] * t->grid[1], count = blocks_partners(t);
    for (uint64_t z = 0; z < count; z++) {
        uint64_t block = count == 1 ? first : first % plane + z * plane;
        size_t at = c->count;
        while (at && c->blocks[at - 1] >= block)
            at--;
        if (at < c->count && c->blocks[at] == block)
            continue;
        memmove(c->blocks + at + 1, c->blocks + at, (c->count - at) * sizeof *c->blocks);
        c->blocks[at] = block;
        c->count++;
    }
}

uint64_t blocks_rows_a_turn(const instance *in)
{
    return at_least_one(formula_value(in->family->launch.rows, in, NULL));
}

int64_t blocks_block_of_row(const instance *in, int64_t row, int64_t across)
{
    const launch *l = &in->family->launch;
    if (l->block_of_row)
        return l->block_of_row(in, row, across);
    return l->rows ? row / (int64_t)blocks_rows_a_turn(in) % across : -1;
}

uint64_t blocks_last_of_output(const trial *t)
{
    const launch *l = &t->instance->family->launch;
    const problem_shape *s = &t->setup.shape;
    uint64_t across = t->grid[0], last_group = blocks_of_grid(t) - across;
    int64_t others = l->others ? formula_value(l->others, t->instance, NULL) : 0;
    if (l->block_of_row)
        return last_group +
               (uint64_t)l->block_of_row(t->instance, s->n + s->n_kv + s->n_v - 1, (int64_t)across);
    if (s->n && strstr(l->grid[0], "sm_count")) /* blocks stride over the rows */
        return last_group + ((uint64_t)s->n - 1) / blocks_rows_a_turn(t->instance) % across;
    return last_group + across - 1 - (uint64_t)others;
}

/* Chooses the blocks with the first and last rows of Q, K and V, and the last block along y. */
static void choose_at_matrix_ends(block_choice *c, const trial *t)
{
    const problem_shape *s = &t->setup.shape;
    const int64_t v = s->n + s->n_kv, all = v + s->n_v;
    const int64_t rows[] = { s->n - 1, s->n, v - 1, s->n_v ? v : v - 1, all - 1 };
    int64_t block = 0, across = t->grid[0];
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        block = t->instance->family->launch.block_of_row(t->instance, rows[i], across);
        choose(c, t, (uint64_t)block);
    }
    choose(c, t, blocks_of_grid(t) - (uint64_t)(across - block));
}

/* Chooses blocks for entries of a list of experts. The last entry in use may name a missing expert.
 * A sample also gets a middle entry, since the first entry often has the first matrix. */
static void choose_entries(block_choice *c, const trial *t, selection which)
{
    unsigned input = 0;
    const uint32_t *list = NULL;
    for (size_t i = 0; i < t->param_count && t->instance->family->halves && !list; i++) {
        if (strcmp(t->params[i].param.name, "list") == 0)
            list = t->params[i].content.bytes;
        else
            input += t->params[i].param.kind == PARAM_IN;
    }
    if (!list || !list[0] || list[0] > t->grid[1])
        return;
    if (which == SAMPLED_BLOCKS || (t->setup.spoiled && t->setup.spoiled_input == input))
        choose(c, t, (uint64_t)(list[0] - 1) * t->grid[0]);
    if (which == SAMPLED_BLOCKS)
        choose(c, t, (uint64_t)(list[0] / 2) * t->grid[0]);
}

block_choice blocks_choose(arena *a, const trial *t, selection which)
{
    block_choice c = { .count = 0 };
    uint64_t work = blocks_work(t), grid = blocks_of_grid(t), together = blocks_partners(t);
    if (work <= WHOLE_WORK)
        return c;
    c.blocks = arena_alloc(a, MAX_CHOICES * together * sizeof *c.blocks);
    choose(&c, t, which == FIRST_BLOCK ? 0 : grid - 1);
    if (which == LAST_BLOCK)
        choose(&c, t, blocks_last_of_output(t));
    choose_entries(&c, t, which);
    if (which != SAMPLED_BLOCKS || work / grid > LARGE_WORK)
        return c;
    choose(&c, t, 0);
    choose(&c, t, blocks_last_of_output(t));
    if (t->instance->family->launch.block_of_row) {
        choose_at_matrix_ends(&c, t);
    } else if (t->setup.shape.n) {
        uint64_t last_turn = ((uint64_t)t->setup.shape.n - 1) / blocks_rows_a_turn(t->instance);
        uint64_t across = t->grid[0], last_group = grid - across;
        choose(&c, t, last_turn % across);
        choose(&c, t, (last_turn + 1) % across);
        choose(&c, t, last_group + last_turn % across);
    }
    if (t->instance->family->launch.dealt)
        choose(&c, t, t->grid[0] - 1);
    if (together > 1) {
        /* a kernel that uses a neighbour's counter would finish too early */
        choose(&c, t, t->grid[0] > 1);
        choose(&c, t, t->grid[1] > 1 ? t->grid[0] : 0);
    }
    random_source r = { t->setup.seed };
    uint64_t work_at_once = (work / grid + 1) * together;
    for (uint64_t i = c.count / together; i < MAX_CHOICES && i * work_at_once < SAMPLED_WORK; i++)
        choose(&c, t, random_below(&r, grid));
    return c;
}
