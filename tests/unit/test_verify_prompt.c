/* Tests of --verify for prompt steps. Correct steps must pass, with all blocks of products or with
 * some of them. Faults of a plan must be found and named. */
#include <string.h>

#include "test_arena.h"
#include "model/plan_cost.h"
#include "model/section/decoder_section.h"
#include "verify_sample.h"

static const char *const samples[] = {
    HEAD SMALL "layers = 2\nmax_seq_len = 128\nweights = q8_0\nrope_factors = tensor\n"
               "weights.attn_v = q5_0\nm = 1, 8, 20\nbiases = attn_q, attn_k, attn_v, attn_output, "
               "ffn_gate, ffn_up, ffn_down\n",
    HEAD SMALL "layers = 2\nmax_seq_len = 160\nweights = q8_0\nweights.ffn_up = q5_0\nrope = neox\n"
               "window = 40\nwindow_layers = 0\nnorms = attn_q_norm, attn_k_norm, "
               "post_attention_norm, post_ffw_norm\noutput = tied\nactivation = gelu\n"
               "attention_softcap = 6\nkv_type = q8_0\nm = 17, 48\nlogits = all\n",
    HEAD SMALL "layers = 2\nmax_seq_len = 96\nweights = q4_0\nrope = neox\nsequences = 3\n"
               "fused = attn_qkv, ffn_gate_up\nlogits = all\nm = 1, 4, 16\n",
    HEAD SMALL "layers = 2\nmax_seq_len = 96\nweights = q8_0\nprecision = f32\nm = 1, 24\n",
};

/* Latent attention with a low-rank q, also without rounding, and with a direct q. */
#define LATENTS(positions)                                                                    \
    HEAD "hidden = 64\nff = 96\nnum_heads = 2\nnum_kv_heads = 1\nhead_dim = 64\nvocab = 96\n" \
         "layers = 2\nlatent = 64\nvalue_dim = 32\nrope_dims = 32\nweights = q8_0\n"          \
         "attention_scale = 0.3\nmax_seq_len = " positions "\n"
#define LATENT LATENTS("160")
static const char *const latent_samples[] = {
    LATENT "q_rank = 64\nkv_type = q8_0\nm = 1, 8, 20\n",
    LATENT "q_rank = 64\nprecision = f32\nm = 1, 17\n",
    LATENT "sequences = 2\nlogits = all\nm = 24\n",
};

#define NETS                                                                                 \
    HEAD SMALL                                                                               \
        "layers = 2\nmax_seq_len = 160\nrecurrent_layers = 0\ndelta_head_dim = 32\n"         \
        "attention_gate = sigmoid\nrope = neox\nrope_dims = 16\n"                            \
        "norms = attn_q_norm, attn_k_norm\nffn_norm = post_attention_norm\nweights = q8_0\n" \
        "delta_key_heads = 2\ndelta_value_heads = 4\n"
static const char *const net_samples[] = {
    NETS "m = 1, 8, 20\n",
    NETS "delta_layout = tiled\nsequences = 2\nlogits = all\nm = 24\n",
    NETS "precision = f32\nm = 1, 17\n",
};

static void assert_made_right(arena *a, const made *m, size_t number)
{
    step_result r = run(a, m);
    if (!r.right)
        fail_msg("sample %zu: %s", number, r.message);
    assert_true(r.worst < 1 && r.worst_hidden < 1 && r.positions > 16);
}

static void assert_right(arena *a, const char *const *texts, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        made m;
        if (!test_takes_row(i, EACH))
            continue;
        make(a, texts[i], &m);
        assert_made_right(a, &m, i);
    }
}

ARENA_TEST(steps_of_prompts_are_right)
{
    assert_right(a, samples, sizeof samples / sizeof *samples);
}

ARENA_TEST(steps_of_prompts_with_latents_are_right)
{
    assert_right(a, latent_samples, sizeof latent_samples / sizeof *latent_samples);
}

ARENA_TEST(steps_of_prompts_with_delta_nets_are_right)
{
    assert_right(a, net_samples, sizeof net_samples / sizeof *net_samples);
}

/* Plans a section with integer products on tensor cores in steps of up to 64 rows. */
static bool read_with_bytes(arena *a, const section *s, const target *const *wanted,
                            size_t wanted_count, planned *out, diags *d)
{
    decoder *read = arena_zalloc(a, sizeof *read);
    if (!decoder_read(a, s, read, d))
        return false;
    memset(read->bytes_for, BYTES_FOR_FEW | BYTES_FOR_SOME, sizeof read->bytes_for);
    const plan *p = plan_make(a, read, s->name_where, wanted, wanted_count, &cost_model, d);
    if (p)
        *out = (planned){ p, p->kernels, p->kernel_count };
    return p != NULL;
}

#define EXPERTS                                                                                  \
    HEAD "hidden = 64\nnum_heads = 4\nnum_kv_heads = 2\nhead_dim = 32\nvocab = 96\nlayers = 2\n" \
         "max_seq_len = 160\nexperts = 5\nexperts_used = 2\nexpert_ff = 32\n"                    \
         "experts_normed = yes\nm = 1, 8, 20, 72\n"

/* Experts of integer formats have the same bits with any number of rows. The shared one is apart. */
ARENA_TEST(steps_with_experts_by_bytes_are_right)
{
    static const char *const texts[] = {
        EXPERTS "weights = q8_0\nshared_ff = 32\nshared_gate = sigmoid\nlogits = all\n",
        EXPERTS "weights = q5_0\nweights.ffn_down_exps = q8_0\nfused = ffn_gate_up_exps\n",
        EXPERTS "weights = q4_0\nbiases = ffn_gate_exps, ffn_up_exps, ffn_down_exps\n"
                "norms = post_ffw_norm\nsequences = 2\nlogits = all\n",
    };
    static const char *const wanted[] = { "mma_q8_expert_gate_up", "mma_q8_expert_down" };
    upper_storey by_bytes = model_storey;
    by_bytes.read = read_with_bytes;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        made m;
        if (!test_takes_row(i, EACH))
            continue;
        make_by(a, texts[i], &by_bytes, &m);
        for (size_t s = 0; s < m.plan.step_count; s++)
            for (int w = 0; w < 2; w++) {
                size_t count = 0;
                for (size_t l = 0; l < m.plan.steps[s].launch_count; l++) {
                    const instance *in = &m.plan.kernels[m.plan.steps[s].launches[l].kernel];
                    count += strcmp(in->family->name, wanted[w]) == 0;
                }
                assert_int_equal(count, 2);
            }
        assert_made_right(a, &m, i);
    }
}

/* Prompts use four chunks of positions. Without rounding they use the chunks of single rows. */
ARENA_TEST(only_rounded_prompts_have_their_own_chunks)
{
    static const struct {
        const char *text;
        int64_t of_one, of_many;
    } cases[] = {
        { LATENTS("4096") "m = 1, 17, 64\n", 128, 1024 },
        { LATENTS("4096") "m = 1, 17, 64\nprecision = f32\n", 128, 128 },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        made m;
        size_t seen = 0;
        make(a, cases[i].text, &m);
        for (size_t j = 0; j < m.plan.kernel_count; j++) {
            const problem_shape *s = &m.plan.kernels[j].shape;
            if (m.plan.kernels[j].family->op != OP_MLA_ATTENTION)
                continue;
            assert_int_equal(s->chunk_size, s->m > 1 ? cases[i].of_many : cases[i].of_one);
            seen++;
        }
        assert_int_equal(seen, 3);
    }
}

/* Each row attends to the preceding positions but not to its own. */
ARENA_TEST(a_row_of_a_prompt_that_does_not_see_itself_is_found)
{
    made m;
    make(a, latent_samples[2], &m);
    plan_launch *l = find_launch(&m, 0, "-> latents");
    find_argument(a, &m, l, "seq_lens")->offset = m.plan.state.positions;
    assert_finds(a, &m, "layer 0: h[");
}

/* The ring of a delta net's inputs uses other bits of the position as slot. */
ARENA_TEST(inputs_in_wrong_slots_are_found)
{
    static const char right[] = ", 15;", wrong[] = ", 14;";
    made m;
    size_t changed = 0;
    make(a, net_samples[1], &m);
    for (size_t i = 0; i < m.set.kernel_count; i++) {
        kernel *k = &m.set.kernels[i];
        char *text = arena_copy(a, k->ptx, k->ptx_length), *at = text;
        bool is_net = strcmp(k->instance->family->name, "delta_net") == 0;
        for (; is_net && (at = strstr(at, right)); changed++)
            memcpy(at, wrong, strlen(wrong));
        k->ptx = text;
    }
    assert_true(changed);
    assert_finds(a, &m, "layer 0: ");
}

/* Two blocks of rows, in products large enough to be run in part. */
#define LARGE_OF(weights)                                                                       \
    HEAD "layers = 2\nhidden = 1024\nff = 2048\nnum_heads = 8\nnum_kv_heads = 2\nvocab = 256\n" \
         "max_seq_len = 512\nweights = " weights "\nm = 136\n"
#define LARGE LARGE_OF("q8_0")

static void assert_large_right(arena *a, const char *text)
{
    made m;
    make(a, text, &m);
    step_result r = run_plan(a, &m);
    if (!r.right)
        fail_msg("%s", r.message);
    assert_true(r.positions < 136 && r.worst_hidden > 0);
}

ARENA_TEST(large_products_of_prompts_are_verified_by_some_blocks)
{
    assert_large_right(a, LARGE);
}

/* Delta nets need the rows of a sequence to be consecutive. */
ARENA_TEST(large_products_beside_delta_nets_are_verified_by_some_blocks)
{
    assert_large_right(a, LARGE "recurrent_layers = 0\ndelta_key_heads = 4\n"
                                "delta_value_heads = 8\ndelta_head_dim = 128\n"
                                "attention_gate = sigmoid\nrope = neox\n");
}

ARENA_TEST(a_wrong_matrix_of_a_large_product_is_found)
{
    made m;
    make(a, LARGE, &m);
    plan_launch *gates = find_launch(&m, 1, "ffn_gate");
    swap(find_argument(a, &m, gates, "wg"), find_argument(a, &m, gates, "wu"));
    assert_finds(a, &m, "layer 1: h[");
}

/* The kernel is at fault if its output is not the product of its arguments. */
ARENA_TEST(a_wrong_kernel_of_a_large_product_is_found)
{
    made m;
    make(a, LARGE, &m);
    for (size_t i = 0; i < m.set.kernel_count; i++) {
        kernel *k = &m.set.kernels[i];
        char *text = arena_copy(a, k->ptx, k->ptx_length), *power = strstr(text, "ex2.approx");
        if (!power || !strstr(k->instance->name, "gate_up"))
            continue;
        memcpy(power, "rcp", strlen("rcp"));
        k->ptx = text;
    }
    assert_finds(a, &m, ": f[");
}

ARENA_TEST(a_launch_with_fewer_rows_than_its_step_is_found)
{
    made m;
    make(a, LARGE_OF("f16"), &m); /* their products have a number of rows */
    find_argument(a, &m, find_launch(&m, 0, "attn_output"), "m_val")->number = 128;
    assert_finds(a, &m, "layer 0: ");
}
