/* Norms of q, k and v before and after RoPE, wide heads, and pairs that are not rotated, on every
 * device. Rows of V that come from K, and q alone, must have the bits of the kernel with all inputs. */
#include <math.h>
#include <string.h>

#include "test.h"
#include "kernel/suite.h"

enum { ROWS = 4, LONGEST = 40 };

static const char *const kv_types[] = { "f32", "f16", "bf16", "q8_0" };
static const char *const norms[] = { "none", "rms", "rms_after", "rms_row" };
enum { KV_TYPES = 4, NORMS = 4 };

static void check_instance(arena *a, const subject *s, const instance *in)
{
    trial_setup setup = suite_setup(in, s->device);
    trial t = trial_prepare(a, in, &setup);
    expect_trial_right(a, s->device, in, &t);
}

static void is_right_for_norms(arena *a, const subject *s)
{
    static const int heads[] = { 1, 7, 8, 9, 17 }, head_dims[] = { 32, 96, 132, 512 };
    const family *alone = family_find(families, "kv_write");
    for (int i = 0; i < 40; i++) {
        int head_dim = head_dims[i % 4];
        const char *text = arena_format(
            a, "head_dim=%d num_kv_heads=%d max_seq_len=%d m=%d kv_type=%s rope=%s n_rot=%d %s %s",
            head_dim, heads[i / 2 % 5], LONGEST, ROWS,
            kv_types[i % (head_dim % 32 ? KV_TYPES - 1 : KV_TYPES)], i % 3 ? "neox" : "norm",
            i % 2 ? head_dim : head_dim / 4 * 2, i % 5 < 3 ? "v_norm=rms" : "",
            i % 7 < 3 ? "v_from=k" : "");
        instance in = suite_made(a, s->family, "%s num_heads=%d qk_norm=%s %s", text, heads[i % 5],
                                 norms[i / 3 % NORMS], i % 4 < 2 ? "gated=copy" : "");
        check_instance(a, s, &in);
        in = suite_made(a, alone, "%s k_norm=%s", text, norms[i / 3 % NORMS]);
        check_instance(a, s, &in);
    }
}

/* Copies the inputs that two trials share by name, except `but`. */
static void share_inputs(trial *to, trial *from, const char *but)
{
    for (size_t i = 0; i < to->param_count; i++) {
        trial_param *p = &to->params[i];
        if (p->param.kind == PARAM_IN && strcmp(p->param.name, but) != 0)
            memcpy(p->content.bytes, suite_param(from, p->param.name)->content.bytes, p->size);
    }
}

/* Copies `count` heads per row between inputs whose rows have other numbers of heads. */
static void copy_heads(float *to, size_t to_heads, const float *from, size_t from_heads,
                       size_t count, size_t dim)
{
    for (size_t row = 0; row < ROWS; row++)
        memcpy(to + row * to_heads * dim, from + row * from_heads * dim, count * dim * sizeof *to);
}

static void v_from_k_is_v_of_equal_rows(arena *a, const subject *s)
{
    enum { HEADS = 3, KV = 2, DIM = 64, ALL = HEADS + 2 * KV };
    for (int i = 0; i < 2 * KV_TYPES; i++) {
        const char *text = arena_format(a,
                                        "head_dim=64 num_heads=3 num_kv_heads=2 max_seq_len=%d "
                                        "m=%d kv_type=%s v_norm=rms qk_norm=%s",
                                        LONGEST, ROWS, kv_types[i / 2], norms[i % 2]);
        instance own = suite_made(a, s->family, "%s", text),
                 from_k = suite_made(a, s->family, "%s v_from=k", text);
        trial t = suite_trial(a, &own, s->device), without = suite_trial(a, &from_k, s->device);
        share_inputs(&without, &t, "qkv");
        float *all = suite_param(&t, "qkv")->content.bytes;
        copy_heads(all + (HEADS + KV) * DIM, ALL, all + HEADS * DIM, ALL, KV, DIM);
        copy_heads(suite_param(&without, "qkv")->content.bytes, HEADS + KV, all, ALL, HEADS + KV,
                   DIM);
        const void *outputs[2][MAX_PARAMS];
        kernel k = suite_kernel(a, &own), k_without = suite_kernel(a, &from_k);
        expect_right(suite_launch_all(a, s->device, &k, &t, outputs[0]));
        expect_right(suite_launch_all(a, s->device, &k_without, &without, outputs[1]));
        for (size_t j = 0; j < 3; j++) {
            const trial_param *p = &t.params[j];
            expect_same_bits(from_k.name, p->param.name, outputs[1][j], outputs[0][j], p->size);
        }
    }
}

static void q_alone_has_the_bits_of_q(arena *a, const subject *s)
{
    enum { HEADS = 9, KV = 2, DIM = 96, ALL = HEADS + 2 * KV };
    for (int i = 0; i < NORMS; i++) {
        const char *text = arena_format(a,
                                        "head_dim=96 num_heads=9 num_kv_heads=2 max_seq_len=%d "
                                        "m=%d rope=neox temperature_length=3 temperature_scale=0.1 "
                                        "rope_factors=divide qk_norm=%s",
                                        LONGEST, ROWS, norms[i]);
        instance with = suite_made(a, s->family, "%s", text),
                 alone = suite_made(a, s->family, "%s kv=none", text);
        trial t = suite_trial(a, &with, s->device), q = suite_trial(a, &alone, s->device);
        share_inputs(&q, &t, "qkv");
        copy_heads(suite_param(&q, "qkv")->content.bytes, HEADS,
                   suite_param(&t, "qkv")->content.bytes, ALL, HEADS, DIM);
        const void *outputs[2][MAX_PARAMS];
        kernel k = suite_kernel(a, &with), k_alone = suite_kernel(a, &alone);
        expect_right(suite_launch_all(a, s->device, &k, &t, outputs[0]));
        expect_right(suite_launch_all(a, s->device, &k_alone, &q, outputs[1]));
        expect_same_bits(alone.name, "q", outputs[1][0], outputs[0][0], t.params[0].size);
    }
}

static void norms_of_rows_do_not_depend_on_other_rows(arena *a, const subject *s)
{
    const char *text = "head_dim=64 num_heads=20 num_kv_heads=9 max_seq_len=40 qk_norm=rms_row";
    instance many = suite_made(a, s->family, "%s m=%d", text, ROWS),
             one = suite_made(a, s->family, "%s m=1", text);
    kernel k_many = suite_kernel(a, &many), k_one = suite_kernel(a, &one);
    trial t = suite_trial(a, &many, s->device);
    const void *all[MAX_PARAMS], *alone[MAX_PARAMS];
    expect_right(suite_launch_all(a, s->device, &k_many, &t, all));
    for (size_t row = 0; row < ROWS; row++) {
        trial single = suite_trial(a, &one, s->device);
        for (size_t i = 0; i < single.param_count; i++) {
            trial_param *p = &single.params[i];
            bool by_row = !strcmp(p->param.name, "qkv") || !strcmp(p->param.name, "positions");
            if (p->param.kind == PARAM_IN && p->param.data != DATA_SEQUENCES)
                memcpy(p->content.bytes,
                       (const char *)t.params[i].content.bytes + (by_row ? row * p->size : 0),
                       p->size);
        }
        expect_right(suite_launch_all(a, s->device, &k_one, &single, alone));
        for (size_t i = 0; i < 3; i++) {
            const trial_param *p = &single.params[i];
            size_t at = i ? t.sequences[row] : row;
            expect_same_bits(many.name, p->param.name, (const char *)all[i] + at * p->size,
                             alone[i], p->size);
        }
    }
}

/* Checks that pairs are rotated or keep their bits. With sections 24, 20, 20 of 64 pairs only 61
 * and 62 are beyond their section; factors of 1e30 stop any pair. */
static void pairs_without_turns_keep_their_bits(arena *a, const subject *s)
{
    enum { DIM = 128, PAIRS = DIM / 2, STOPPED = 17 };
    static const char *const options[] = {
        "rope_section_t=24 rope_section_h=20 rope_section_w=20", "rope_factors=divide",
        "rope_factors=divide rope_section_t=24 rope_section_h=20 rope_section_w=20"
    };
    for (int i = 0; i < 3; i++) {
        instance in = suite_made(a, s->family,
                                 "head_dim=128 num_heads=1 num_kv_heads=1 max_seq_len=100000 m=1 "
                                 "rope=neox rope_base=1000 %s",
                                 options[i]);
        kernel k = suite_kernel(a, &in);
        trial t = suite_trial(a, &in, s->device);
        const uint32_t position = 99999;
        memcpy(suite_param(&t, "positions")->content.bytes, &position, sizeof position);
        for (int j = 0; i > 0 && j < PAIRS; j++)
            ((float *)suite_param(&t, "factors")->content.bytes)[j] = j == STOPPED ? 1e30f : 1;
        const float *x = suite_param(&t, "qkv")->content.bytes;
        const void *output;
        const uint8_t *written;
        expect_right(suite_launch(a, s->device, &k, &t, &output, &written));
        const float *q = output;
        for (int j = 0; j < PAIRS; j++) {
            bool beyond = i != 1 && (j == 61 || j == 62), stopped = i > 0 && j == STOPPED;
            bool same = memcmp(&q[j], &x[j], sizeof *q) == 0 &&
                        memcmp(&q[j + PAIRS], &x[j + PAIRS], sizeof *q) == 0;
            if (same != (beyond || stopped))
                fail_msg("pair %d of %s is%s rotated", j, options[i], same ? " not" : "");
        }
    }
}

static void nan_and_infinity_reach_their_norms(arena *a, const subject *s)
{
    for (int i = 0; i < 2 * NORMS; i++) {
        instance in =
            suite_made(a, s->family,
                       "head_dim=64 num_heads=9 num_kv_heads=2 max_seq_len=9 m=2 "
                       "n_rot=32 rope=neox v_norm=rms qk_norm=%s kv_type=%s %s",
                       norms[i % NORMS], i % 3 ? "f16" : "q8_0", i < NORMS ? "" : "v_from=k");
        for (unsigned spoiled = 0; spoiled < (i % NORMS ? 4u : 2u); spoiled++)
            for (int kind = WITH_NAN; kind <= WITH_INFINITY; kind++) {
                trial_setup setup = suite_setup(&in, s->device);
                setup.spoiled = kind == WITH_NAN ? WITH_NAN : WITH_INFINITY;
                setup.spoiled_input = spoiled;
                trial t = trial_prepare(a, &in, &setup);
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
        CHECK(is_right_for_norms),
        CHECK(v_from_k_is_v_of_equal_rows),
        CHECK(q_alone_has_the_bits_of_q),
        CHECK(norms_of_rows_do_not_depend_on_other_rows),
        CHECK(pairs_without_turns_keep_their_bits),
        CHECK(nan_and_infinity_reach_their_norms),
    };
    suite_list(__FILE__, suite_weights, EACH, is_rope, checks, sizeof checks / sizeof *checks);
}
