/* Mamba-2 and the recurrence of Mamba on every device. Updated states and rings are judged as
 * outputs. */
#include <math.h>
#include <string.h>

#include "test.h"
#include "kernel/mutate.h"
#include "kernel/suite.h"
#include "kernel/problem.h"
#include "ref/quant.h"
#include "ref/reference.h"

enum { OUT_Y, OUT_STATES, OUT_CONVS };             /* outputs */
enum { X, CONV, DT, A, D, POSITIONS, BIAS };       /* inputs of Mamba-2 */
enum { U = CONV, BC = BIAS };                      /* inputs of mamba_scan in the same places */
enum { MOST = 64, SEQUENCES = 4, LARGEST = 4096 }; /* rows; sequences; values of a state or ring */

/* Sizes of the usual instance of a family. */
typedef struct layout {
    const char *keys;
    size_t outputs, y, state, ring;
    struct {
        size_t input, columns; /* columns: 0 ends the list */
    } of_rows[5];
} layout;

static const layout layouts[] = {
    { "head_dim=32 num_heads=4 num_groups=2 state_size=32 bias=add max_seq_len=100",
      3,
      128,
      128 * 32,
      DELTA_RING * 256,
      { { X, 128 + 256 + 4 } } },
    { "n=64 state_size=16 dt_rank=3 norm=rms max_seq_len=100",
      2,
      64,
      64 * 16,
      0,
      { { X, 128 }, { U, 64 }, { DT, 64 }, { BC, 3 + 2 * 16 } } },
};

static const layout *layout_of(const subject *s)
{
    return &layouts[s->family->op == OP_MAMBA_SCAN];
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
    static const char *const mamba2[] = {
        "head_dim=32 num_heads=1 state_size=32 max_seq_len=40",
        "head_dim=64 num_heads=3 state_size=64 max_seq_len=40 m=2",
        "head_dim=96 num_heads=2 num_groups=2 state_size=96 max_seq_len=40 m=8 conv_kernel=2",
        "head_dim=128 num_heads=2 state_size=256 max_seq_len=40 m=3 bias=add conv_kernel=3",
        "head_dim=64 num_heads=2 num_groups=2 state_size=128 max_seq_len=40 m=9 bias=add",
        "head_dim=32 num_heads=6 num_groups=3 state_size=32 max_seq_len=90 m=64",
    };
    static const char *const scan[] = {
        "n=32 state_size=8 max_seq_len=40",      "n=96 state_size=16 max_seq_len=40 m=8",
        "n=64 state_size=32 max_seq_len=40 m=3", "n=32 max_seq_len=40 m=9 norm=rms",
        "n=32 max_seq_len=90 m=64 dt_rank=1",
    };
    bool is_scan = layout_of(s)->ring == 0;
    (void)a;
    for (size_t i = 0; i < (is_scan ? sizeof scan : sizeof mamba2) / sizeof *scan; i++)
        check(s, is_scan ? scan[i] : mamba2[i], FILL_NORMAL);
}

static void is_right_for_inputs_of_every_kind(arena *a, const subject *s)
{
    for (int kind = 0; kind < FILL_KINDS; kind++)
        check(s, arena_format(a, "%s m=5", layout_of(s)->keys), (fill_kind)kind);
}

/* Returns an input by number. With many rows, counters precede the inputs. */
static trial_param *input_of(const subject *s, trial *t, size_t number)
{
    trial_param *p = &t->params[layout_of(s)->outputs];
    while (p->param.kind != PARAM_IN)
        p++;
    return p + number;
}

typedef struct sequences {
    float states[SEQUENCES][LARGEST], rings[SEQUENCES][LARGEST];
} sequences;

/* The rows of a launch, and their inputs in the order of layout.of_rows. */
typedef struct rows {
    size_t count;
    int sequences[MOST];
    uint32_t positions[MOST];
    const float *inputs[4];
} rows;

/* Returns a trial of m rows with fixed weights. */
static trial trial_of(arena *a, const subject *s, size_t m, kernel *k)
{
    instance *in = arena_alloc(a, sizeof *in);
    *in = suite_made(a, s->family, "%s m=%d", layout_of(s)->keys, (int)m);
    *k = suite_kernel(a, in);
    trial t = suite_trial(a, in, s->device);
    random_source r = { 77 };
    for (size_t i = 0; i < (layout_of(s)->ring ? BIAS : BC) + 1u; i++) {
        trial_param *p = input_of(s, &t, i);
        bool of_rows = i == POSITIONS;
        for (size_t j = 0; layout_of(s)->of_rows[j].columns; j++)
            of_rows |= layout_of(s)->of_rows[j].input == i;
        if (of_rows)
            continue;
        ref_fill(FORMAT_F32, p->content.bytes, p->values, FILL_NORMAL, &r);
        for (uint64_t j = 0; i == A && j < p->values; j++)
            ((float *)p->content.bytes)[j] = -fabsf(((float *)p->content.bytes)[j]);
    }
    return t;
}

/* Updates the sequences by one launch of rows and returns y. */
static const float *advance(arena *a, const subject *s, sequences *q, const rows *r)
{
    const layout *l = layout_of(s);
    kernel k;
    trial t = trial_of(a, s, r->count, &k);
    const void *outputs[MAX_PARAMS];
    for (size_t i = 0; l->of_rows[i].columns; i++)
        put_input(&t, l->of_rows[i].input, r->inputs[i]);
    put_input(&t, POSITIONS, r->positions);
    const uint32_t *places = suite_put_places(a, &t, r->sequences);
    for (size_t i = 0; i < r->count; i++) {
        float *states = t.params[OUT_STATES].content.bytes,
              *rings = t.params[OUT_CONVS].content.bytes;
        memcpy(states + places[i] * l->state, q->states[r->sequences[i]], l->state * sizeof(float));
        if (l->ring)
            memcpy(rings + places[i] * l->ring, q->rings[r->sequences[i]], l->ring * sizeof(float));
    }
    expect_right(suite_launch_all(a, s->device, &k, &t, outputs));
    for (size_t i = 0; i < r->count; i++) {
        const float *states = outputs[OUT_STATES], *rings = outputs[OUT_CONVS];
        memcpy(q->states[r->sequences[i]], states + places[i] * l->state, l->state * sizeof(float));
        if (l->ring)
            memcpy(q->rings[r->sequences[i]], rings + places[i] * l->ring, l->ring * sizeof(float));
    }
    return outputs[OUT_Y];
}

/* Consecutive rows of one sequence. */
typedef struct run {
    int sequence;
    uint32_t first, count;
} run;

/* Updates sequences by one launch, and copies of them row by row. Both must have the same bits. */
static void check_step(arena *a, const subject *s, const run *runs, sequences *together,
                       sequences *alone, random_source *random)
{
    const layout *l = layout_of(s);
    rows r = { 0 };
    for (; runs->count; runs++)
        for (uint32_t i = 0; i < runs->count; i++) {
            r.sequences[r.count] = runs->sequence;
            r.positions[r.count++] = runs->first + i;
        }
    for (size_t i = 0; l->of_rows[i].columns; i++) {
        float *x = arena_alloc(a, r.count * l->of_rows[i].columns * sizeof *x);
        ref_fill(FORMAT_F32, x, r.count * l->of_rows[i].columns, FILL_NORMAL, random);
        r.inputs[i] = x;
    }
    const float *y = advance(a, s, together, &r);
    for (size_t row = 0; row < r.count; row++) {
        rows one = { 1, { r.sequences[row] }, { r.positions[row] }, { 0 } };
        for (size_t i = 0; l->of_rows[i].columns; i++)
            one.inputs[i] = r.inputs[i] + row * l->of_rows[i].columns;
        const float *its_y = advance(a, s, alone, &one);
        expect_same_bits(s->family->name, arena_format(a, "y of row %zu in a batch", row),
                         y + row * l->y, its_y, l->y * sizeof(float));
        for (size_t j = 0; j < l->y; j++)
            assert_true(isfinite(its_y[j]));
    }
    expect_same_bits(s->family->name, "sequences after one launch", together, alone,
                     sizeof *together);
}

/* The sequences start in uninitialized memory, with all bits set. With 14 to 18 rows of a sequence,
 * the last inputs overwrite ring slots of the first rows. */
static void many_rows_have_the_bits_of_single_rows(arena *a, const subject *s)
{
    static const run steps[][5] = {
        { { 0, 0, 3 }, { 1, 0, 1 }, { 2, 0, 4 } },
        { { 0, 3, 8 } },
        { { 1, 1, 1 }, { 3, UINT32_MAX, 1 }, { 0, 11, 1 }, { 2, 4, 2 } },
        { { 0, 12, 9 }, { 2, 6, 2 }, { 3, UINT32_MAX, 1 } },
        { { 0, 21, 16 }, { 1, 2, 1 }, { 2, 8, 14 } },
        { { 3, 0, 5 }, { 1, 3, 13 }, { 2, 22, 18 } },
        { { 1, 98, 3 } },  /* the last positions, and one out of range */
        { { 0, 75, 40 } }, /* positions 100 to 114 are out of range */
    };
    sequences *together = arena_alloc(a, sizeof *together), *alone = arena_alloc(a, sizeof *alone);
    random_source random = { 5 };
    memset(together, 0xff, sizeof *together);
    memset(alone, 0xff, sizeof *alone);
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++)
        check_step(a, s, steps[i], together, alone, &random);
}

/* X of channel 5 is stored under B[9] of its group, and C[9] reads it. */
static void a_state_stores_x_under_b_and_c_reads_it(arena *a, const subject *s)
{
    enum { GROUP_1 = 64 + 5, INNER = 128, N = 32, CHANNELS = 256, LARGE = 40 };
    kernel k;
    const void *outputs[MAX_PARAMS];
    float x[INNER + CHANNELS + 4] = { 0 }, conv[CHANNELS][DELTA_CONV] = { { 0 } },
                               zero[CHANNELS] = { 0 };
    if (!layout_of(s)->ring)
        return;
    trial t = trial_of(a, s, 1, &k);
    for (int c = 0; c < CHANNELS; c++)
        conv[c][DELTA_CONV - 1] = 1;
    x[GROUP_1] = LARGE;                       /* z: silu(z) = z */
    x[INNER + GROUP_1] = 3 * LARGE;           /* X */
    x[INNER + INNER + N + 9] = LARGE;         /* B of group 1 */
    x[INNER + INNER + 2 * N + N + 9] = LARGE; /* C of group 1 */
    x[INNER + CHANNELS + 2] = LARGE;          /* softplus(x_dt) = x_dt, of head 2 */
    put_input(&t, X, x);
    put_input(&t, CONV, conv);
    put_input(&t, DT, zero);
    put_input(&t, A, zero); /* no decay */
    put_input(&t, D, zero);
    put_input(&t, BIAS, zero);
    put_input(&t, POSITIONS, &(uint32_t){ 30 });
    float *state = memset(t.params[OUT_STATES].content.bytes, 0, INNER * N * sizeof(float));
    memset(t.params[OUT_CONVS].content.bytes, 0, DELTA_RING * CHANNELS * sizeof(float));
    state[GROUP_1 * N + 9] = 7;
    state[GROUP_1 * N + 8] = 5; /* C does not read it */
    expect_right(suite_launch_all(a, s->device, &k, &t, outputs));
    const float *after = outputs[OUT_STATES], *y = outputs[OUT_Y],
                stored = 3.0f * LARGE * LARGE * LARGE;
    for (int i = 0; i < INNER * N; i++) {
        float expected = i == GROUP_1 * N + 9 ? stored + 7 : i == GROUP_1 * N + 8 ? 5 : 0;
        assert_true(fabsf(after[i] - expected) <= 1e-6f * stored * (expected != 0));
    }
    for (int i = 0; i < INNER; i++) {
        float expected = i == GROUP_1 ? (stored + 7) * LARGE * LARGE : 0;
        assert_true(fabsf(y[i] - expected) <= 1e-6f * expected);
    }
}

static void faults_are_found(arena *a, const subject *s)
{
    static const char mamba2[] =
        "head_dim=32 num_heads=4 num_groups=2 state_size=32 max_seq_len=100",
                      many[] = "head_dim=32 num_heads=4 num_groups=2 state_size=32 max_seq_len=100 "
                               "m=20";
    static const planted_fault faults[] = {
        FAULT("mamba2", mamba2, "and.b32", ", 15;", 1, "and.b32 $1, $2, 7;"),
        FAULT("mamba2", mamba2, "setp.ge.u32", ", 2;", 0, "setp.gt.u32 $1, $2, 2;"),
        FAULT("mamba2", many, "sub.u32", ", 16;", 1, "sub.u32 $1, $2, 15;"),
        FAULT("mamba2", many, "atom.acq_rel.gpu.global.inc.u32", "", 1, "mov.u32 $1, 1;"),
        FAULT("mamba_scan", "n=64 max_seq_len=100", "shfl.sync.bfly.b32", "", 1, "mov.b32 $1, 0;"),
    };
    (void)s;
    expect_faults_found(a, faults, sizeof faults / sizeof *faults);
}

static bool is_mamba(const family *f)
{
    return f->op == OP_MAMBA2 || f->op == OP_MAMBA_SCAN;
}

LIST_TESTS
{
    static const suite_check checks[] = {
        CHECK(is_right_for_sizes),
        CHECK(is_right_for_inputs_of_every_kind),
        CHECK(many_rows_have_the_bits_of_single_rows),
        CHECK(a_state_stores_x_under_b_and_c_reads_it),
        CHECK(faults_are_found),
    };
    suite_list(__FILE__, suite_weights, EACH, is_mamba, checks, sizeof checks / sizeof *checks);
}
