/* Gate and up projections of experts: a row must have the same bits alone, beside others, and with
 * any grid. */
#include <string.h>

#include "test.h"
#include "kernel/suite.h"

enum { ROWS = 8, SM_COUNT = 3 };

static bool is_gate_up_of_experts(const family *f)
{
    return f->op == OP_EXPERT_GATE_UP;
}

static launched *prepare(arena *a, const subject *s, const char *text)
{
    launched *l = suite_launched(a, s->family->name, text);
    trial_setup setup = { .shape = l->in.shape, .sm_count = SM_COUNT, .seed = 5 };
    l->trial = trial_prepare(a, &l->in, &setup);
    return l;
}

/* Returns a copy of f, since the device's buffer is valid only until the next launch. */
static const char *run(arena *a, const subject *s, const launched *l)
{
    const void *f;
    const uint8_t *written;
    expect_right(suite_launch(a, s->device, &l->kernel, &l->trial, &f, &written));
    size_t size = l->trial.params[0].size;
    return memcpy(arena_alloc(a, size), f, size);
}

/* Writes a list with only one row's entries. */
static void take_entries(const uint32_t *all, uint32_t *own, uint32_t row, uint32_t used)
{
    enum { OWN_WORDS = EXPERT_FIRST_ROW + 1 };
    const uint32_t *from = all + EXPERT_LIST_HEAD;
    uint32_t *to = own + EXPERT_LIST_HEAD;
    memset(own, 0, EXPERT_LIST_HEAD * sizeof *own);
    for (uint32_t i = 0; i < all[0]; i++, from += EXPERT_FIRST_ROW + ROWS)
        for (uint32_t j = 0; j < from[EXPERT_ROWS]; j++)
            if (from[EXPERT_FIRST_ROW + j] / used == row) {
                to[EXPERT_ID] = from[EXPERT_ID];
                to[EXPERT_ROWS] = 1;
                to[EXPERT_FIRST_ROW] = from[EXPERT_FIRST_ROW + j] % used;
                to += OWN_WORDS;
                own[0]++;
            }
}

/* Copies one row's inputs from another trial. */
static void take_inputs(trial *t, trial *of, uint32_t row)
{
    for (size_t i = 0; i < t->param_count; i++) {
        trial_param *to = &t->params[i], *from = &of->params[i];
        if (to->param.kind != PARAM_IN)
            continue;
        if (strcmp(to->param.name, "list") == 0)
            take_entries(from->content.bytes, to->content.bytes, row,
                         (uint32_t)t->instance->shape.experts_used);
        else
            memcpy(to->content.bytes,
                   (const char *)from->content.bytes + (from->size - to->size) / (ROWS - 1) * row,
                   to->size);
    }
}

static void compare_rows(arena *a, const subject *s, const char *keys)
{
    const char *text = suite_known_keys(a, s->family, keys);
    launched *all = prepare(a, s, arena_format(a, "%s%s m=%d", s->weights, text, ROWS));
    const char *f = run(a, s, all);
    for (uint32_t row = 0; row < ROWS; row++) {
        launched *one = prepare(a, s, arena_format(a, "%s%s m=1", s->weights, text));
        size_t bytes = one->trial.params[0].size;
        take_inputs(&one->trial, &all->trial, row);
        expect_same_bits(all->in.name, arena_format(a, "row %u alone", row), run(a, s, one),
                         f + row * bytes, bytes);
    }
}

static void rows_have_the_same_bits_alone(arena *a, const subject *s)
{
    compare_rows(a, s, "k=2304 n=5 experts=9 experts_used=3 norm=rms bias=add");
    compare_rows(a, s, "k=768 n=7 plane_rows=14 experts=6 experts_used=2 n_shared=9");
    compare_rows(a, s, "k=768 n=7 experts=6 experts_used=2 n_shared=9 activation=relu2 ungated=1");
}

/* With k = 6400 the rows do not fit in shared memory together. */
static void long_rows_have_the_same_bits_alone(arena *a, const subject *s)
{
    compare_rows(a, s, "k=6400 n=2 experts=3 experts_used=2 n_shared=3 norm=rms");
}

static void any_grid_gives_the_same_bits(arena *a, const subject *s)
{
    static const unsigned grids[] = { 11, 12, 25, 40, 100 }; /* at least one block per entry */
    launched *l = prepare(a, s,
                          arena_format(a,
                                       "%sk=512 n=29 experts=9 experts_used=3 n_shared=31 "
                                       "num_warps=2 norm=rms m=5",
                                       s->weights));
    const char *f = run(a, s, l);
    for (size_t i = 0; i < sizeof grids / sizeof *grids; i++) {
        l->trial.grid[0] = grids[i];
        expect_same_bits(l->in.name, arena_format(a, "by %u blocks", grids[i]), run(a, s, l), f,
                         l->trial.params[0].size);
    }
}

LIST_TESTS
{
    static const suite_check checks[] = {
        CHECK(rows_have_the_same_bits_alone),
        CHECK_WITH(long_rows_have_the_same_bits_alone, .key = "num_warps"),
        CHECK_WITH(any_grid_gives_the_same_bits, .key = "num_warps"),
    };
    enum { ONE_FORMAT_IN = 9 }; /* formats share the code under test */
    suite_list(__FILE__, suite_weights, ONE_FORMAT_IN, is_gate_up_of_experts, checks,
               sizeof checks / sizeof *checks);
}
