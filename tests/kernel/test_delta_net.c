/* Gated delta nets on every device. Updated states and convolution rings are judged as outputs. */
#include <float.h>
#include <math.h>
#include <string.h>

#include "test.h"
#include "kernel/suite.h"
#include "ref/quant.h"
#include "kernel/problem.h"
#include "ref/reference.h"

enum { OUT_Y, OUT_STATES, OUT_CONVS, OUTPUTS };         /* parameters */
enum { X, CONV, DT, A, GAMMA, POSITIONS, BA };          /* inputs; BA only with tiled heads */
enum { DIM = 32, HEADS = 4, KEY_HEADS = 2, MANY = 64 }; /* sizes in most tests */
enum { CHANNELS = (2 * KEY_HEADS + HEADS) * DIM, Z = CHANNELS, AFTER_Z = Z + HEADS * DIM };
enum { LAYOUTS = 2 };

static const char usual[] = "head_dim=32 num_heads=4 num_kv_heads=2 max_seq_len=100 epsilon=1e-6";

static int columns_of(int layout)
{
    return AFTER_Z + (layout == DELTA_TILED ? 0 : 2 * HEADS);
}

static void check(const subject *s, const char *text, fill_kind kind)
{
    for (int one_cache = 0; one_cache < 2; one_cache++) {
        arena *a = arena_new();
        instance in = suite_made(a, s->family, "%s", text);
        const int64_t longest = in.shape.max_seq_len,
                      lengths[] = { longest, longest + 1, 17, 3, 0 };
        trial_setup setup = suite_setup(&in, s->device);
        setup.one_cache = one_cache;
        setup.kind = kind;
        trial t = trial_prepare(a, &in, &setup);
        for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
            trial_shorten(&t, lengths[i]);
            expect_trial_right(a, s->device, &in, &t);
        }
        arena_free(a);
    }
}

static void is_right_for_sizes(arena *a, const subject *s)
{
    static const struct {
        int dim, heads, key_heads, m;
    } sizes[] = { { 32, 1, 1, 1 },  { 32, 3, 1, 8 },  { 64, 4, 2, 3 }, { 96, 2, 2, 2 },
                  { 128, 2, 1, 1 }, { 128, 1, 1, 4 }, { 32, 6, 3, 2 } };
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        for (int layout = 0; layout < LAYOUTS; layout++)
            check(s,
                  arena_format(a,
                               "head_dim=%d num_heads=%d num_kv_heads=%d max_seq_len=40 m=%d "
                               "layout=%s",
                               sizes[i].dim, sizes[i].heads, sizes[i].key_heads, sizes[i].m,
                               layout_choices[layout].word),
                  FILL_NORMAL);
}

static void is_right_for_inputs_of_every_kind(arena *a, const subject *s)
{
    for (int kind = 0; kind < FILL_KINDS; kind++)
        for (int layout = 0; layout < LAYOUTS; layout++)
            check(s, arena_format(a, "%s m=5 layout=%s", usual, layout_choices[layout].word),
                  (fill_kind)kind);
}

/* Several groups of 8 rows, with a full or a partial last group. Lengths below m leave the first
 * rows unused. */
static void is_right_for_many_rows(arena *a, const subject *s)
{
    static const struct {
        int dim, heads, key_heads, m;
    } sizes[] = {
        { 32, 6, 3, 9 }, { 64, 2, 2, 17 }, { 128, 2, 1, 17 }, { 32, 4, 2, 64 }, { 32, 2, 1, 200 }
    };
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        check(s,
              arena_format(a,
                           "head_dim=%d num_heads=%d num_kv_heads=%d max_seq_len=%d m=%d "
                           "layout=%s",
                           sizes[i].dim, sizes[i].heads, sizes[i].key_heads, sizes[i].m + 30,
                           sizes[i].m, layout_choices[i % LAYOUTS].word),
              FILL_NORMAL);
}

/* The rows of a launch: each row's sequence and position. */
typedef struct rows {
    size_t count;
    struct {
        int sequence;
        uint32_t position;
    } at[MANY];
} rows;

enum { SEQUENCES = 4, STATE = HEADS * DIM * DIM, RING = DELTA_RING * CHANNELS };

typedef struct sequences {
    float *states[SEQUENCES], *rings[SEQUENCES];
} sequences;

/* Returns uninitialized memory, with all bits set. */
static sequences sequences_new(arena *a)
{
    sequences made;
    for (int i = 0; i < SEQUENCES; i++) {
        made.states[i] = memset(arena_alloc(a, STATE * sizeof(float)), 0xff, STATE * sizeof(float));
        made.rings[i] = memset(arena_alloc(a, RING * sizeof(float)), 0xff, RING * sizeof(float));
    }
    return made;
}

/* Returns an input by number. With many rows, counters precede the inputs. */
static trial_param *input_of(trial *t, size_t number)
{
    trial_param *p = &t->params[OUTPUTS];
    while (p->param.kind != PARAM_IN)
        p++;
    return p + number;
}

/* Returns a trial of m rows with fixed weights. */
static trial trial_of(arena *a, const subject *s, int layout, size_t m, kernel *k)
{
    instance *in = arena_alloc(a, sizeof *in);
    *in = suite_made(a, s->family, "%s m=%d layout=%s", usual, (int)m, layout_choices[layout].word);
    *k = suite_kernel(a, in);
    trial t = suite_trial(a, in, s->device);
    random_source r = { 77 };
    static const size_t weights[] = { CONV, DT, A, GAMMA };
    for (size_t i = 0; i < sizeof weights / sizeof *weights; i++) {
        trial_param *of = input_of(&t, weights[i]);
        ref_fill(FORMAT_F32, of->content.bytes, of->values, FILL_NORMAL, &r);
    }
    float *decays = input_of(&t, A)->content.bytes;
    for (int i = 0; i < HEADS; i++)
        decays[i] = -fabsf(decays[i]);
    return t;
}

/* The inputs of rows: x and, with tiled heads, betas and alphas. */
typedef struct row_inputs {
    int layout;
    const float *x, *ba;
} row_inputs;

/* Updates the sequences by one launch of rows and returns y. */
static const float *advance(arena *a, const subject *s, const sequences *q, const rows *r,
                            const row_inputs *with)
{
    kernel k;
    trial t = trial_of(a, s, with->layout, r->count, &k);
    const void *outputs[MAX_PARAMS];
    uint32_t *positions = input_of(&t, POSITIONS)->content.bytes;
    put_input(&t, X, with->x);
    if (with->layout == DELTA_TILED)
        put_input(&t, BA, with->ba);
    int *numbers = arena_alloc(a, r->count * sizeof *numbers);
    for (size_t i = 0; i < r->count; i++) {
        positions[i] = r->at[i].position;
        numbers[i] = r->at[i].sequence;
    }
    const uint32_t *places = suite_put_places(a, &t, numbers);
    for (size_t i = 0; i < r->count; i++) {
        int sequence = r->at[i].sequence;
        memcpy((float *)t.params[OUT_STATES].content.bytes + places[i] * STATE, q->states[sequence],
               STATE * sizeof(float));
        memcpy((float *)t.params[OUT_CONVS].content.bytes + places[i] * RING, q->rings[sequence],
               RING * sizeof(float));
    }
    expect_right(suite_launch_all(a, s->device, &k, &t, outputs));
    for (size_t i = 0; i < r->count; i++) {
        int sequence = r->at[i].sequence;
        memcpy(q->states[sequence], (const float *)outputs[OUT_STATES] + places[i] * STATE,
               STATE * sizeof(float));
        memcpy(q->rings[sequence], (const float *)outputs[OUT_CONVS] + places[i] * RING,
               RING * sizeof(float));
    }
    return outputs[OUT_Y];
}

static const float *floats_of(arena *a, size_t count, random_source *r)
{
    float *x = arena_alloc(a, count * sizeof *x);
    ref_fill(FORMAT_F32, x, count, FILL_NORMAL, r);
    return x;
}

/* Consecutive rows of one sequence. */
typedef struct run {
    int sequence;
    uint32_t first, count;
} run;

static rows rows_of(const run *runs, size_t count)
{
    rows r = { 0 };
    for (size_t i = 0; i < count; i++)
        for (uint32_t j = 0; j < runs[i].count; j++) {
            r.at[r.count].sequence = runs[i].sequence;
            r.at[r.count++].position = runs[i].first + j;
        }
    return r;
}

/* Updates sequences by one launch, and copies of them row by row. Both must have the same bits. */
static void check_step(arena *a, const subject *s, int layout, const rows *step,
                       const sequences *together, const sequences *alone, random_source *r)
{
    const row_inputs all = { layout, floats_of(a, step->count * (size_t)columns_of(layout), r),
                             floats_of(a, step->count * 2 * HEADS, r) };
    const float *y = advance(a, s, together, step, &all);
    for (size_t row = 0; row < step->count; row++) {
        rows one = { 1, { { step->at[row].sequence, step->at[row].position } } };
        const row_inputs its = { layout, all.x + row * (size_t)columns_of(layout),
                                 all.ba + row * 2 * HEADS };
        const float *its_y = advance(a, s, alone, &one, &its);
        expect_same_bits(s->family->name, arena_format(a, "y of row %zu in a batch", row),
                         y + row * HEADS * DIM, its_y, HEADS * DIM * sizeof(float));
        for (int j = 0; j < HEADS * DIM; j++)
            assert_true(isfinite(its_y[j]));
    }
    for (int j = 0; j < SEQUENCES; j++) {
        const char *of = arena_format(a, "sequence %d after one launch", j);
        expect_same_bits(s->family->name, arena_format(a, "state of %s", of), together->states[j],
                         alone->states[j], STATE * sizeof(float));
        expect_same_bits(s->family->name, arena_format(a, "ring of %s", of), together->rings[j],
                         alone->rings[j], RING * sizeof(float));
    }
}

static void check_rows(arena *a, const subject *s, int layout)
{
    static const rows steps[] = {
        { 8, { { 0, 0 }, { 0, 1 }, { 0, 2 }, { 1, 0 }, { 2, 0 }, { 2, 1 }, { 2, 2 }, { 2, 3 } } },
        { 8, { { 0, 3 }, { 0, 4 }, { 0, 5 }, { 0, 6 }, { 0, 7 }, { 0, 8 }, { 0, 9 }, { 0, 10 } } },
        { 7, { { 0, 11 }, { 0, 12 }, { 0, 13 }, { 0, 14 }, { 0, 15 }, { 0, 16 }, { 0, 17 } } },
        { 5, { { 1, 1 }, { 3, UINT32_MAX }, { 0, 18 }, { 2, 4 }, { 2, 5 } } },
        { 4, { { 3, 100 }, { 2, 6 }, { 0, 19 }, { 1, 2 } } },
        { 2, { { 1, 99 }, { 1, 100 } } }, /* the last position, and one out of range */
    };
    sequences together = sequences_new(a), alone = sequences_new(a);
    random_source r = { 3 };
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++)
        check_step(a, s, layout, &steps[i], &together, &alone, &r);
}

static void rows_do_not_depend_on_their_number(arena *a, const subject *s)
{
    check_rows(a, s, DELTA_GROUPED);
    check_rows(a, s, DELTA_TILED);
}

/* With 14 to 18 rows of a sequence, the last inputs overwrite ring slots of the first rows. */
static void many_rows_have_the_bits_of_single_rows(arena *a, const subject *s)
{
    static const struct {
        size_t count;
        run runs[4];
    } steps[] = {
        { 3, { { 0, 0, 9 }, { 1, 0, 2 }, { 2, 0, 8 } } },
        { 4, { { 0, 9, 16 }, { 1, 2, 1 }, { 2, 8, 14 }, { 3, UINT32_MAX, 1 } } },
        { 2, { { 0, 25, 35 }, { 2, 22, 18 } } },
        { 4, { { 3, 0, 5 }, { 1, 3, 13 }, { 0, 60, 15 }, { 2, 0, 17 } } },
        { 1, { { 0, 75, 40 } } }, /* positions 100 to 114 are out of range */
    };
    for (int layout = 0; layout < LAYOUTS; layout++) {
        sequences together = sequences_new(a), alone = sequences_new(a);
        random_source r = { 5 };
        for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
            const rows step = rows_of(steps[i].runs, steps[i].count);
            check_step(a, s, layout, &step, &together, &alone, &r);
        }
    }
}

/* A NaN or infinity in an input must reach all dependent outputs, and no others. */
static void check_nan_and_infinity(arena *a, const subject *s, int layout)
{
    enum { KEYS = KEY_HEADS * DIM, GROUP = HEADS / KEY_HEADS };
    enum { HEAD_1 = 2, ONE_VALUE = 16 }; /* bits of heads; or only y[7] of them */
    const bool tiled = layout == DELTA_TILED;
    const unsigned of_key_0 = tiled ? 4 | 1 : 2 | 1;
    const size_t factors = OUTPUTS + (tiled ? BA : X), b = tiled ? 0 : AFTER_Z,
                 alpha = b + (tiled ? HEADS : GROUP);
    const struct {
        size_t param, element; /* in outputs, an element that is read */
        unsigned shows;
    } places[] = {
        { OUTPUTS + X, 7, of_key_0 },
        { OUTPUTS + X, KEYS + 7, of_key_0 },
        { OUTPUTS + X, 2 * KEYS + DIM + 7, HEAD_1 },
        { OUTPUTS + X, Z + DIM + 7, HEAD_1 | ONE_VALUE },
        { factors, b + 1, HEAD_1 },
        { factors, alpha + 1, HEAD_1 },
        { OUTPUTS + CONV, 4 * (2 * KEYS + DIM + 7), HEAD_1 },
        { OUTPUTS + DT, 1, HEAD_1 },
        { OUTPUTS + A, 1, HEAD_1 },
        { OUTPUTS + GAMMA, 7, 15 | ONE_VALUE },
        { OUT_STATES, DIM * DIM + 9 * DIM + 7, HEAD_1 },
        { OUT_CONVS, 5 * CHANNELS + 2 * KEYS + DIM + 7, HEAD_1 }, /* position 37 */
    };
    static const float none[] = { NAN, INFINITY, -INFINITY };
    for (size_t i = 0; i < sizeof places / sizeof *places; i++)
        for (size_t j = 0; j < sizeof none / sizeof *none; j++) {
            kernel k;
            const void *outputs[MAX_PARAMS];
            trial t = trial_of(a, s, layout, 1, &k);
            trial_param *p = &t.params[places[i].param];
            *(uint32_t *)t.params[OUTPUTS + POSITIONS].content.bytes = 39;
            ((float *)p->content.bytes)[places[i].element] = none[j];
            expect_right(suite_launch_all(a, s->device, &k, &t, outputs));
            const float *y = outputs[OUT_Y];
            for (int head = 0; head < HEADS; head++)
                for (int value = 0; value < DIM; value++) {
                    bool hit = places[i].shows >> head & 1 &&
                               (!(places[i].shows & ONE_VALUE) || value == 7);
                    if (!isfinite(y[head * DIM + value]) != hit)
                        fail_msg("place %zu set to %g: y[%d][%d] is %g", i, (double)none[j], head,
                                 value, (double)y[head * DIM + value]);
                }
        }
}

static void nan_and_infinity_reach_dependent_outputs(arena *a, const subject *s)
{
    check_nan_and_infinity(a, s, DELTA_GROUPED);
    check_nan_and_infinity(a, s, DELTA_TILED);
}

/* With a = -FLT_MAX, the decay depends on how a softplus below the range of f32 is rounded. The
 * error bound must allow for that. */
static void a_softplus_below_the_range_of_f32_is_right(arena *a, const subject *s)
{
    enum { FIRST = 80, LAST = 110 };
    for (int t = FIRST; t <= LAST; t++) {
        instance in = suite_made(a, s->family, "%s layout=tiled", usual);
        trial with = suite_trial(a, &in, s->device);
        float *dt = with.params[OUTPUTS + DT].content.bytes,
              *decays = with.params[OUTPUTS + A].content.bytes;
        for (int i = 0; i < HEADS; i++) {
            dt[i] = (float)-t - 0.25f * (float)i;
            decays[i] = -FLT_MAX;
        }
        trial_shorten(&with, 17);
        expect_trial_right(a, s->device, &in, &with);
    }
}

/* One column of v and one row of k are set: the state must store v under k, and q must read it. */
static void a_state_stores_v_under_k_and_q_reads_it(arena *a, const subject *s)
{
    enum { LARGE = 40 }; /* so large that silu(x) = x and sigmoid(x) = 1 */
    kernel k;
    const void *outputs[MAX_PARAMS];
    trial t = trial_of(a, s, DELTA_GROUPED, 1, &k);
    float x[AFTER_Z + 2 * HEADS] = { 0 }, conv[CHANNELS][DELTA_CONV] = { { 0 } }, gamma[DIM],
                          zero[HEADS] = { 0 };
    for (int c = 0; c < CHANNELS; c++)
        conv[c][DELTA_CONV - 1] = 1;
    for (int i = 0; i < DIM; i++)
        gamma[i] = 1;
    x[2 * KEY_HEADS * DIM + 5] = 3 * LARGE; /* v of head 0: column 5 */
    x[KEY_HEADS * DIM + 9] = LARGE;         /* k: row 9 */
    x[9] = LARGE;                           /* q reads row 9 */
    for (int i = 0; i < DIM; i++)
        x[Z + i] = LARGE;
    x[AFTER_Z] = LARGE; /* b */
    put_input(&t, X, x);
    put_input(&t, CONV, conv);
    put_input(&t, GAMMA, gamma);
    put_input(&t, A, zero); /* no decay */
    memset(t.params[OUT_STATES].content.bytes, 0, STATE * sizeof(float));
    ((float *)t.params[OUT_STATES].content.bytes)[6 * DIM + 9] = 10;
    ((float *)t.params[OUT_STATES].content.bytes)[5 * DIM + 8] = 2;
    expect_right(suite_launch_all(a, s->device, &k, &t, outputs));
    const float *state = outputs[OUT_STATES], *y = outputs[OUT_Y];
    for (int i = 0; i < DIM * DIM; i++) {
        float expected = i == 5 * DIM + 9 ? 3 * LARGE : i == 5 * DIM + 8 ? 2 : 0;
        if (!(fabsf(state[i] - expected) <= 1e-4f))
            fail_msg("state[%d][%d] is %g, not %g", i / DIM, i % DIM, (double)state[i],
                     (double)expected);
    }
    for (int i = 0; i < DIM; i++) {
        float expected = i == 5 ? LARGE * sqrtf(DIM) : 0;
        if (!(fabsf(y[i] - expected) <= 1e-3f))
            fail_msg("y[%d] is %g, not %g", i, (double)y[i], (double)expected);
    }
}

static bool is_delta_net(const family *f)
{
    return f->op == OP_DELTA_NET;
}

LIST_TESTS
{
    static const suite_check checks[] = {
        CHECK(is_right_for_sizes),
        CHECK(is_right_for_many_rows),
        CHECK(is_right_for_inputs_of_every_kind),
        CHECK(rows_do_not_depend_on_their_number),
        CHECK(many_rows_have_the_bits_of_single_rows),
        CHECK(nan_and_infinity_reach_dependent_outputs),
        CHECK(a_softplus_below_the_range_of_f32_is_right),
        CHECK(a_state_stores_v_under_k_and_q_reads_it),
    };
    suite_list(__FILE__, suite_weights, EACH, is_delta_net, checks, sizeof checks / sizeof *checks);
}
