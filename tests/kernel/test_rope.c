/* RoPE and cache writes, on every device.
 *
 * Errors are bounded by 6e-7 of |a| + |b| of a pair, which requires angles within 1e-6. Rows that
 * must not be written keep their previous bytes. The emulator also reports every written byte. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "test.h"
#include "kernel/suite.h"
#include "ref/half.h"
#include "ref/quant.h"
#include "ref/reference.h"

enum { OUT_Q, OUT_K, OUT_V, IN_QKV, IN_POSITIONS, ROWS = 4, LONGEST = 40 };

static const char *const kv_types[] = { "f32", "f16", "bf16", "q8_0" };
enum { KV_TYPES = 4 };

/* Checks several positions, with separate caches and with one. */
static void check(const subject *s, const char *text)
{
    for (int one_cache = 0; one_cache < 2; one_cache++) {
        arena *a = arena_new();
        instance in = suite_made(a, s->family, "%s", text);
        const int64_t lengths[] = { in.shape.max_seq_len, in.shape.max_seq_len + 1, 1, 0 };
        trial_setup setup = suite_setup(&in, s->device);
        setup.one_cache = one_cache;
        trial t = trial_prepare(a, &in, &setup);
        for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
            trial_shorten(&t, lengths[i]);
            expect_trial_right(a, s->device, &in, &t);
        }
        arena_free(a);
    }
}

static void is_right_for_head_dims(arena *a, const subject *s)
{
    static const char *const styles[] = { "norm", "neox", "none" };
    for (int i = 1; i <= 32; i++) {
        int head_dim = 8 * i - (i % 3 ? 0 : 4);
        const char *type = kv_types[i % (head_dim % 32 ? KV_TYPES - 1 : KV_TYPES)];
        check(s, arena_format(a,
                              "head_dim=%d num_heads=3 num_kv_heads=1 max_seq_len=%d m=%d rope=%s "
                              "kv_type=%s qk_norm=%s",
                              head_dim, LONGEST, ROWS, styles[i / 3 % 3], type,
                              i % 2 ? "rms" : "none"));
    }
}

static void is_right_for_parts_of_heads(arena *a, const subject *s)
{
    static const int dims[] = { 2, 16, 40, 64, 66, 96, 128 };
    for (size_t i = 0; i < 4 * sizeof dims / sizeof *dims; i++)
        check(s, arena_format(a,
                              "head_dim=128 num_heads=2 num_kv_heads=2 max_seq_len=%d m=%d "
                              "rope=%s n_rot=%d kv_type=%s qk_norm=%s rope_factors=%s",
                              LONGEST, ROWS, i / 7 % 2 ? "norm" : "neox", dims[i % 7],
                              kv_types[i % KV_TYPES], i % 3 ? "rms" : "none",
                              i / 14 ? "divide" : "none"));
}

/* Covers every position of a small ring, with launches of several rows. */
static void is_right_for_rings(arena *a, const subject *s)
{
    static const int rings[] = { 4, 7, 39, 40, 64 };
    for (int i = 0; i < KV_TYPES * 5; i++) {
        arena *run_arena = arena_new();
        instance in = suite_made(run_arena, s->family,
                                 "head_dim=32 num_heads=2 num_kv_heads=2 max_seq_len=%d "
                                 "m=%d ring=%d kv_type=%s gated=%s",
                                 LONGEST, ROWS, rings[i / KV_TYPES], kv_types[i % KV_TYPES],
                                 i % 3 ? "none" : "copy");
        for (int one_cache = 0; one_cache < 2; one_cache++) {
            trial_setup setup = suite_setup(&in, s->device);
            setup.one_cache = one_cache;
            trial t = trial_prepare(run_arena, &in, &setup);
            for (int64_t length = LONGEST + 2; length >= 0; length--) {
                trial_shorten(&t, length);
                expect_trial_right(run_arena, s->device, &in, &t);
            }
        }
        arena_free(run_arena);
    }
    (void)a;
}

static void is_right_for_gated_heads(arena *a, const subject *s)
{
    static const char *const options[] = { "head_dim=256 n_rot=64 rope=neox qk_norm=rms",
                                           "head_dim=256 n_rot=64 rope=norm ring=9",
                                           "head_dim=64 rope=neox rope_factors=divide",
                                           "head_dim=96 rope=none qk_norm=rms ring=64" };
    for (int i = 0; i < KV_TYPES * 4; i++)
        check(s,
              arena_format(a, "num_heads=%d num_kv_heads=%d max_seq_len=%d m=%d %s kv_type=%s %s",
                           2 + i % 3 * 2, 1 + i % 2, LONGEST, ROWS, options[i / KV_TYPES],
                           kv_types[i % KV_TYPES], i % 5 ? "gated=copy" : ""));
}

/* Interleaved gates must not change a bit of q, k and v, and must be copied bit by bit. */
static void gates_follow_their_heads(arena *a, const subject *s)
{
    enum { DIM = 256, HEADS = 4, KV_HEADS = 2, PLAIN = HEADS + 2 * KV_HEADS, OUT_GATE = 3 };
    const char *text = "head_dim=256 num_heads=4 num_kv_heads=2 max_seq_len=40 m=4 n_rot=64 "
                       "rope=neox qk_norm=rms";
    instance plain = suite_made(a, s->family, "%s", text),
             gated = suite_made(a, s->family, "%s gated=copy", text);
    trial_setup setup = suite_setup(&plain, s->device),
                gated_setup = suite_setup(&gated, s->device);
    trial t = trial_prepare(a, &plain, &setup), both = trial_prepare(a, &gated, &gated_setup);
    const float *heads = t.params[IN_QKV].content.bytes;
    uint32_t *mixed = arena_alloc(a, sizeof *mixed * ROWS * (PLAIN + HEADS) * DIM);
    uint32_t *gates = arena_alloc(a, sizeof *gates * ROWS * HEADS * DIM);
    random_source r = { 5 };
    for (int i = 0; i < ROWS * HEADS * DIM; i++)
        gates[i] = (uint32_t)random_next(&r);
    uint32_t *to = mixed;
    for (int i = 0; i < ROWS * PLAIN; i++) {
        memcpy(to, heads + i * DIM, DIM * sizeof *to);
        to += DIM;
        if (i % PLAIN >= HEADS)
            continue;
        memcpy(to, gates + (i / PLAIN * HEADS + i % PLAIN) * DIM, DIM * sizeof *to);
        to += DIM;
    }
    put_input(&both, 0, mixed);
    for (unsigned i = 1; i < 4; i++)
        put_input(&both, i, t.params[IN_QKV + i].content.bytes);
    const void *outputs[2][MAX_PARAMS];
    kernel plain_kernel = suite_kernel(a, &plain), gated_kernel = suite_kernel(a, &gated);
    expect_right(suite_launch_all(a, s->device, &plain_kernel, &t, outputs[0]));
    expect_right(suite_launch_all(a, s->device, &gated_kernel, &both, outputs[1]));
    for (int i = OUT_Q; i <= OUT_V; i++) {
        const trial_param *p = &t.params[i];
        expect_same_bits(gated.name, p->param.name, outputs[1][i], outputs[0][i], p->size);
    }
    expect_same_bits(gated.name, "gates", outputs[1][OUT_GATE], gates,
                     sizeof *gates * ROWS * HEADS * DIM);
}

/* kv_write, given separate rows of K and V, must write the same bits as rope_kv_write. */
static void kv_write_writes_the_same_caches(arena *a, const subject *s)
{
    enum { HEADS = 3, KV_HEADS = 2, ALL = HEADS + 2 * KV_HEADS, OUTPUTS = 2 };
    static const char *const options[] = { "rope=none", "rope=neox ring=9", "rope=norm n_rot=32",
                                           "rope=neox rope_factors=divide state=settled" };
    const family *alone = family_find(families, "kv_write");
    for (int i = 0; i < 2 * KV_TYPES * 4; i++) {
        bool normed = i % 2;
        const char *text =
            arena_format(a, "head_dim=64 num_kv_heads=2 max_seq_len=%d m=%d kv_type=%s %s", LONGEST,
                         ROWS, kv_types[i / 2 % KV_TYPES], options[i / 2 / KV_TYPES]);
        instance with_q =
            suite_made(a, s->family, "num_heads=3 %s qk_norm=%s", text, normed ? "rms" : "none");
        instance without = suite_made(a, alone, "%s k_norm=%s", text, normed ? "rms" : "none");
        trial_setup setup = suite_setup(&with_q, s->device),
                    setup_without = suite_setup(&without, s->device);
        trial t = trial_prepare(a, &with_q, &setup),
              rows = trial_prepare(a, &without, &setup_without);
        const float *qkv = suite_param(&t, "qkv")->content.bytes;
        const size_t head = (size_t)with_q.shape.head_dim;
        for (size_t row = 0; row < ROWS; row++)
            for (size_t j = 0; j < OUTPUTS; j++) {
                float *to = suite_param(&rows, j ? "v_rows" : "k_rows")->content.bytes;
                memcpy(to + row * KV_HEADS * head, qkv + (row * ALL + HEADS + j * KV_HEADS) * head,
                       KV_HEADS * head * sizeof *to);
            }
        static const char *const shared[] = { "positions", "k_norm", "factors" };
        for (size_t j = 0; j < sizeof shared / sizeof *shared; j++) {
            if ((j == 1 && !normed) || (j == 2 && !with_q.options.rope.factors))
                continue;
            trial_param *p = suite_param(&rows, shared[j]);
            memcpy(p->content.bytes, suite_param(&t, shared[j])->content.bytes, p->size);
        }
        const void *outputs[2][MAX_PARAMS];
        kernel k = suite_kernel(a, &with_q), k_alone = suite_kernel(a, &without);
        expect_right(suite_launch_all(a, s->device, &k, &t, outputs[0]));
        expect_right(suite_launch_all(a, s->device, &k_alone, &rows, outputs[1]));
        for (size_t j = 0; j < OUTPUTS; j++)
            expect_same_bits(without.name, t.params[OUT_K + j].param.name, outputs[1][j],
                             outputs[0][OUT_K + j], t.params[OUT_K].size);
        expect_right(suite_run(a, s->device, &k_alone, &rows, NULL, NULL));
    }
}

static const char *const scalings[] = {
    "",
    "rope_scaling=linear rope_factor=8",
    "rope_scaling=linear rope_factor=0.01",
    "rope_scaling=yarn rope_factor=4 rope_original_context=16",
    "rope_scaling=yarn rope_factor=32 rope_original_context=4096 rope_base=150000",
    "rope_scaling=yarn rope_factor=40 rope_original_context=4096 rope_extension=0.5",
    "rope_scaling=yarn rope_factor=16 rope_original_context=8192 rope_beta_fast=8 rope_beta_slow=2",
    "rope_factors=divide rope_base=500000",
    ("rope_factors=divide rope_scaling=yarn rope_factor=4 rope_original_context=32 "
     "rope_magnitude=1.19"),
    "rope_magnitude=1.3465735902799727 temperature_length=16 temperature_scale=0.1",
    "temperature_length=8192 temperature_scale=0.25",
};
enum { SCALINGS = sizeof scalings / sizeof *scalings };

static void is_right_for_scalings(arena *a, const subject *s)
{
    for (int i = 0; i < SCALINGS; i++)
        check(s, arena_format(a,
                              "head_dim=64 num_heads=2 num_kv_heads=1 max_seq_len=%d m=%d rope=%s "
                              "kv_type=f32 %s",
                              LONGEST, ROWS, i % 2 ? "norm" : "neox", scalings[i]));
}

static void is_right_for_inputs_of_every_kind(arena *a, const subject *s)
{
    for (int type = 0; type < KV_TYPES; type++)
        for (fill_kind kind = 0; kind < FILL_KINDS; kind++) {
            instance in = suite_made(a, s->family,
                                     "head_dim=96 num_heads=2 num_kv_heads=2 max_seq_len=9 "
                                     "m=3 kv_type=%s qk_norm=%s",
                                     kv_types[type], kind % 2 ? "rms" : "none");
            expect_filled_right(a, s->device, &in, kind);
        }
}

/* Returns the worst error of cos and sin: the kernel rotates pairs (1, 0) to (cos, sin). */
static double worst_turn(arena *a, const subject *s, const char *text, const uint32_t *positions,
                         float *factors)
{
    instance in = suite_made(a, s->family,
                             "head_dim=128 num_heads=1 num_kv_heads=1 max_seq_len=1 m=5 "
                             "rope=neox %s",
                             text);
    kernel k = suite_kernel(a, &in);
    trial t = suite_trial(a, &in, s->device);
    enum { DIM = 128, PAIRS = DIM / 2, POSITIONS = 5 };
    float *qkv = arena_zalloc(a, sizeof *qkv * POSITIONS * 3 * DIM);
    for (int i = 0; i < POSITIONS * 3 * DIM; i++)
        qkv[i] = i % DIM < PAIRS ? 1 : 0;
    put_input(&t, 0, qkv);
    put_input(&t, 1, positions);
    if (factors)
        put_input(&t, 2, factors);
    const void *output;
    const uint8_t *written;
    expect_right(suite_launch(a, s->device, &k, &t, &output, &written));
    const float *q = output;
    double worst = 0;
    for (int i = 0; i < POSITIONS * PAIRS; i++) {
        uint64_t pair = (uint64_t)(i % PAIRS);
        rope_angle by = ref_rope_angle(&in.options.rope, pair, factors ? (double)factors[pair] : 1,
                                       positions[i / PAIRS]);
        worst = fmax(worst, fabs((double)q[i / PAIRS * DIM + i % PAIRS] - by.cos));
        worst = fmax(worst, fabs((double)q[i / PAIRS * DIM + PAIRS + i % PAIRS] - by.sin));
    }
    return worst;
}

static void cos_and_sin_are_accurate_to_3e_7(arena *a, const subject *s)
{
    static const uint32_t positions[][5] = { { 0, 1, 4095, 131071, 1 << 20 },
                                             { 2, 1000003, 524287, 99999, 1048575 } };
    static const char *const options[] = {
        "rope_base=10000",
        "rope_base=500000",
        "rope_base=1e6",
        "rope_base=150000 rope_scaling=yarn rope_factor=32 rope_original_context=4096",
        "rope_scaling=linear rope_factor=8",
        "rope_base=10000 rope_factors=divide",
        "rope_base=500000 rope_factors=divide",
        ("rope_base=1e6 rope_factors=divide rope_scaling=yarn rope_factor=4 "
         "rope_original_context=4096"),
    };
    float factors[64];
    double worst = 0;
    for (int i = 0; i < 64; i++)
        factors[i] = i < 20 ? 1 : i < 40 ? 1 + 0.37f * (float)(i - 20) : 8;
    for (size_t i = 0; i < 2 * sizeof options / sizeof *options; i++)
        worst = fmax(worst, worst_turn(a, s, options[i / 2], positions[i % 2],
                                       strstr(options[i / 2], "factors") ? factors : NULL));
    print_message("# cos and sin are within %.2g on the %s\n", worst, s->device->name);
    assert_true(worst > 0 && worst <= 3e-7);
}

/* Copies the inputs of one row from another trial; weights are common. */
static void take_row(trial *t, const trial *all, size_t row)
{
    for (size_t i = IN_QKV; i < t->param_count; i++) {
        uint64_t size = t->params[i].size;
        if (t->params[i].param.data == DATA_SEQUENCES)
            continue;
        memcpy(t->params[i].content.bytes,
               (const char *)all->params[i].content.bytes + (i <= IN_POSITIONS ? row * size : 0),
               size);
    }
}

static void rows_do_not_depend_on_their_number(arena *a, const subject *s)
{
    enum { MANY = 8 };
    const char *text = "head_dim=96 num_heads=3 num_kv_heads=1 max_seq_len=40 qk_norm=rms "
                       "rope_base=500000 temperature_length=3 temperature_scale=0.1";
    for (int type = 0; type < KV_TYPES; type++) {
        const void *all[MAX_PARAMS], *alone[MAX_PARAMS];
        const char *options = arena_format(a, "%s kv_type=%s", text, kv_types[type]);
        instance many = suite_made(a, s->family, "%s m=%d", options, MANY);
        instance one = suite_made(a, s->family, "%s m=1", options);
        kernel many_kernel = suite_kernel(a, &many), one_kernel = suite_kernel(a, &one);
        trial_setup many_setup = suite_setup(&many, s->device);
        trial_setup one_setup = suite_setup(&one, s->device);
        trial t = trial_prepare(a, &many, &many_setup);
        expect_right(suite_launch_all(a, s->device, &many_kernel, &t, all));
        for (size_t row = 0; row < MANY; row++) {
            trial single = trial_prepare(a, &one, &one_setup);
            take_row(&single, &t, row);
            expect_right(suite_launch_all(a, s->device, &one_kernel, &single, alone));
            for (int i = OUT_Q; i <= OUT_V; i++) {
                const trial_param *p = &single.params[i];
                size_t at = i == OUT_Q ? row : t.sequences[row];
                expect_same_bits(many.name, arena_format(a, "%s of row %zu", p->param.name, row),
                                 (const char *)all[i] + at * p->size, alone[i], p->size);
            }
        }
    }
}

/* The cache's rows of V must be rounded to the host's bits. */
static void rounds_as_the_host_does(arena *a, const subject *s)
{
    enum { DIM = 256 };
    float x[3 * DIM];
    random_source r = { 11 };
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < 3 * DIM; i++) {
            uint32_t bits = (uint32_t)random_next(&r);
            if (round == 0) /* ties of f16 and of bf16 */
                bits = (bits & 0xbfffe000) | (i % 2 ? 0x1000 : 0);
            if (round == 1)
                bits = (bits & 0xffff0000) | 0x8000;
            memcpy(&x[i], &bits, sizeof bits);
            if (i % 37 == 0)
                x[i] = i % 2 ? INFINITY : NAN;
        }
        for (int type = 0; type < KV_TYPES - 1; type++) {
            instance in = suite_made(a, s->family,
                                     "head_dim=%d num_heads=1 num_kv_heads=1 max_seq_len=1 "
                                     "kv_type=%s",
                                     DIM, kv_types[type]);
            kernel k = suite_kernel(a, &in);
            trial t = suite_trial(a, &in, s->device);
            put_input(&t, 0, x);
            const void *outputs[MAX_PARAMS];
            expect_right(suite_launch_all(a, s->device, &k, &t, outputs));
            float got[DIM];
            ref_decode(kv_format(&in), outputs[OUT_V], DIM, got);
            for (int i = 0; i < DIM; i++) {
                float v = x[2 * DIM + i];
                float expected = type == 0   ? v
                                 : type == 1 ? half_to_float(half_from_float(v))
                                             : bfloat_to_float(bfloat_from_float(v));
                if (isnan(expected) ? !isnan(got[i]) : memcmp(&got[i], &expected, sizeof v) != 0)
                    fail_msg("%s of %.9g is %.9g, not %.9g", kv_types[type], (double)v,
                             (double)got[i], (double)expected);
            }
        }
    }
}

static void quantizes_as_ggml_does(arena *a, const subject *s)
{
    enum { DIM = 64 };
    instance in = suite_made(a, s->family,
                             "head_dim=%d num_heads=1 num_kv_heads=1 max_seq_len=1 "
                             "kv_type=q8_0",
                             DIM);
    kernel k = suite_kernel(a, &in);
    trial t = suite_trial(a, &in, s->device);
    float x[3 * DIM] = { 0 };
    uint8_t blocks[2 * 36];
    for (int i = 0; i < DIM; i++)
        x[2 * DIM + i] = i % 32 ? (i % 2 ? 0.5f : -0.5f) + (float)(i * 3 % 120 - 60) : 127;
    put_input(&t, 0, x);
    const void *outputs[MAX_PARAMS];
    expect_right(suite_launch_all(a, s->device, &k, &t, outputs));
    const uint8_t *got = outputs[OUT_V];
    ref_encode_q8_1(x + 2 * DIM, DIM, blocks);
    for (int b = 0; b < 2; b++) {
        expect_same_bits(in.name, "d", got + b * 34, blocks + b * 36, 2);
        expect_same_bits(in.name, "quants", got + b * 34 + 2, blocks + b * 36 + 4, 32);
    }
}

/* A NaN or infinity in an input or factor must reach all dependent outputs, and no others. */
static void nan_and_infinity_reach_dependent_outputs(arena *a, const subject *s)
{
    for (int i = 0; i < 2 * KV_TYPES; i++) {
        instance in = suite_made(a, s->family,
                                 "head_dim=64 num_heads=2 num_kv_heads=1 max_seq_len=9 m=2 "
                                 "n_rot=32 rope=%s rope_factors=divide kv_type=%s qk_norm=%s",
                                 i % 2 ? "norm" : "neox", kv_types[i / 2], i % 3 ? "rms" : "none");
        for (unsigned spoiled = 0; spoiled < 4; spoiled++)
            for (int kind = WITH_NAN; kind <= WITH_INFINITY; kind++) {
                trial_setup setup = suite_setup(&in, s->device);
                setup.spoiled = kind == WITH_NAN ? WITH_NAN : WITH_INFINITY;
                setup.spoiled_input = spoiled;
                trial t = trial_prepare(a, &in, &setup);
                expect_trial_right(a, s->device, &in, &t);
            }
        static const float none[] = { NAN, INFINITY, -INFINITY };
        for (size_t j = 0; j < 3; j++) {
            trial t = suite_trial(a, &in, s->device);
            float *factors = t.params[t.param_count - 1].content.bytes;
            factors[5] = none[j];
            expect_trial_right(a, s->device, &in, &t);
        }
    }
}

static bool is_rope(const family *f)
{
    return f->op == OP_ROPE_KV_WRITE;
}

LIST_TESTS
{
    static const suite_check checks[] = {
        CHECK(is_right_for_head_dims),
        CHECK(is_right_for_parts_of_heads),
        CHECK(is_right_for_rings),
        CHECK(is_right_for_gated_heads),
        CHECK(gates_follow_their_heads),
        CHECK(kv_write_writes_the_same_caches),
        CHECK(is_right_for_scalings),
        CHECK(is_right_for_inputs_of_every_kind),
        CHECK(cos_and_sin_are_accurate_to_3e_7),
        CHECK(rows_do_not_depend_on_their_number),
        CHECK(rounds_as_the_host_does),
        CHECK(quantizes_as_ggml_does),
        CHECK(nan_and_infinity_reach_dependent_outputs),
    };
    suite_list(__FILE__, suite_weights, EACH, is_rope, checks, sizeof checks / sizeof *checks);
}
