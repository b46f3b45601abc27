/* Tests of --verify for steps with experts, sinks, rings, latent attention, delta nets and per-layer
 * embeddings. Correct steps must pass. A decoder that differs from the kernels must be found. */
#include <string.h>

#include "test_arena.h"
#include "verify_sample.h"

#define HEADS   "hidden = 64\nnum_heads = 4\nnum_kv_heads = 2\nhead_dim = 32\nvocab = 96\n"
#define EXPERTS "experts = 5\nexperts_used = 2\nexpert_ff = 32\n"

static const char gpt_oss[] =
    HEAD HEADS EXPERTS "layers = 2\nmax_seq_len = 128\nweights = q8_0\n"
                       "weights.ffn_gate_exps = mxfp4\nactivation = swiglu_oai\n"
                       "gating = softmax_of_chosen\nsinks = add\nwindow = 20\n"
                       "window_layers = 0\nrope = neox\nffn_norm = post_attention_norm\n"
                       "biases = attn_q, attn_k, attn_v, attn_output, ffn_gate_inp, "
                       "ffn_gate_exps, ffn_up_exps, ffn_down_exps\nm = 1, 3\n";

static const char deepseek[] =
    HEAD "hidden = 64\nff = 96\nnum_heads = 2\nnum_kv_heads = 1\nhead_dim = 64\nvocab = 96\n"
         "layers = 2\nmax_seq_len = 64\nexperts = 8\nexperts_used = 2\nexpert_ff = 32\n"
         "shared_ff = 32\nexpert_layers = 1\nlatent = 64\nq_rank = 32\nvalue_dim = 32\n"
         "gating = sigmoid\nexperts_normed = yes\nexperts_scale = 2.5\nexpert_groups = 4\n"
         "expert_groups_used = 2\nrope = norm\nrope_dims = 32\nattention_scale = 0.3\n"
         "biases = exp_probs_b\nweights = q8_0\nkv_type = q8_0\nm = 1, 3\n";

static const char qwen3next[] =
    HEAD HEADS EXPERTS "layers = 2\nmax_seq_len = 64\nshared_ff = 32\nexperts_normed = yes\n"
                       "shared_gate = sigmoid\nrecurrent_layers = 0\ndelta_key_heads = 1\n"
                       "delta_value_heads = 2\ndelta_head_dim = 32\nattention_gate = sigmoid\n"
                       "rope = neox\nrope_dims = 16\nnorms = attn_q_norm, attn_k_norm\n"
                       "ffn_norm = post_attention_norm\nweights = q8_0\nm = 1, 3\n"
                       "sequences = 2\nlogits = all\n";

/* Tiled value heads, followed by a feed-forward. */
#define TILED(key_heads, value_heads)                                                   \
    HEAD HEADS "layers = 2\nmax_seq_len = 64\nrecurrent_layers = 0\n"                   \
               "delta_key_heads = " key_heads "\ndelta_value_heads = " value_heads "\n" \
               "delta_head_dim = 32\ndelta_layout = tiled\nattention_gate = sigmoid\n"  \
               "rope = neox\nrope_dims = 16\nnorms = attn_q_norm, attn_k_norm\n"        \
               "ffn_norm = post_attention_norm\nweights = q8_0\nm = 1, 8\n"
static const char qwen35[] = TILED("3", "6") "ff = 96\n";

/* Groups of two experts: most tokens are close to a tie between choices. */
static const char narrow_groups[] =
    HEAD "hidden = 320\nnum_heads = 9\nnum_kv_heads = 3\nhead_dim = 64\nvocab = 96\n"
         "experts = 8\nexperts_used = 3\nexpert_ff = 32\nexpert_groups = 4\n"
         "expert_groups_used = 2\nlayers = 3\nmax_seq_len = 200\nweights = q4_0\n"
         "rope = neox\nm = 1, 2, 6\nbiases = ffn_gate_inp, ffn_gate_exps, ffn_up_exps, "
         "ffn_down_exps\n";

/* A norm follows the scaled sum of experts. */
#define GROK                                                            \
    HEAD HEADS EXPERTS "layers = 2\nmax_seq_len = 64\nweights = q8_0\n" \
                       "norms = post_attention_norm, post_ffw_norm\n"   \
                       "shared_ff = 32\nactivation = gelu\nresidual_scale = 0.5\n"
static const char grok[] = GROK "m = 1, 3\n", grok_prompt[] = GROK "m = 20\n";

#define GEMMA4_NORMS \
    "norms = attn_q_norm, attn_k_norm, post_attention_norm, post_ffw_norm\nv_norm = yes\n"
#define GEMMA4                                                                               \
    "max_seq_len = 64\nwindow = 20\nrope = neox\nrope_dims.window = 32\nactivation = gelu\n" \
    "attention_scale = 1\nlayer_scale = layer_output_scale\nweights = q8_0\n" GEMMA4_NORMS

/* Per-layer embeddings, and two layers that read the caches of the others. */
#define GEMMA4_E                                                                                \
    HEAD "layers = 4\nhidden = 64\nff = 96, 64: 2..3\nnum_heads = 4\nnum_kv_heads = 2\n"        \
         "head_dim = 32, 64: 1, 3\ncache_layer = 0: 2, 1: 3\nv_from_k_layers = 1\nvocab = 96\n" \
         "window_layers = 0, 2\nper_layer = 32\nweights.per_layer_model_proj = bf16\n" GEMMA4
static const char gemma4_e[] = GEMMA4_E "m = 1, 3\n", gemma4_e_prompt[] = GEMMA4_E "m = 20\n",
                  gemma4_e_host[] = GEMMA4_E "m = 1, 3\nper_layer_table = host\n";

/* A dense feed-forward beside experts. */
#define GEMMA4_MOE                                                                               \
    HEAD EXPERTS                                                                                 \
        "layers = 2\nhidden = 64\nff = 96\nffn_layers = 0, 1\nnum_heads = 4\nnum_kv_heads = 2\n" \
        "head_dim = 32, 64: 1\nvocab = 96\nwindow_layers = 0\nexperts_normed = yes\n"            \
        "router_norm = ffn_gate_inp.scale\nrouter_scale = 0.125\nscales = ffn_down_exps\n"       \
        "fused = ffn_gate_up_exps\n" GEMMA4
static const char gemma4_moe[] = GEMMA4_MOE "m = 1, 3\n",
                  gemma4_moe_exact[] = GEMMA4_MOE "m = 1\nprecision = f32\nkv_type = f32\n",
                  gemma4_moe_prompt[] = GEMMA4_MOE "m = 20\n";

static void assert_right(arena *a, const char *text)
{
    made m;
    make(a, text, &m);
    step_result r = run(a, &m);
    if (!r.right)
        fail_msg("%s", r.message);
    assert_true(r.worst < 1 && r.worst_hidden < 1 && r.positions >= 6);
}

ARENA_TEST(steps_with_experts_sinks_and_rings_are_right)
{
    assert_right(a, gpt_oss);
}

ARENA_TEST(steps_with_norms_after_experts_are_right)
{
    assert_right(a, grok);
    assert_right(a, grok_prompt);
}

ARENA_TEST(steps_with_per_layer_embeddings_are_right)
{
    assert_right(a, gemma4_e);
    assert_right(a, gemma4_e_prompt);
    assert_right(a, gemma4_e_host);
}

ARENA_TEST(steps_with_a_dense_feed_forward_beside_experts_are_right)
{
    assert_right(a, gemma4_moe);
    assert_right(a, gemma4_moe_prompt);
}

ARENA_TEST(steps_with_latents_and_groups_of_experts_are_right)
{
    assert_right(a, deepseek);
    assert_right(a, narrow_groups);
}

ARENA_TEST(steps_with_delta_nets_are_right)
{
    assert_right(a, qwen3next);
}

ARENA_TEST(steps_with_tiled_delta_nets_are_right)
{
    assert_right(a, qwen35);
    assert_right(a, TILED("2", "2") "ff = 96\nweights.ssm_beta = f32\nprecision = f32\n");
    assert_right(a, TILED("1", "4") "ff = 96\nweights.ssm_alpha = f32\nweights.ssm_beta = f16\n");
    assert_right(a, TILED("2", "4") EXPERTS "shared_ff = 32\nexperts_normed = yes\n"
                                            "shared_gate = sigmoid\nsequences = 2\nlogits = all\n");
}

/* A tiled delta net has one launch more than attention has: betas and alphas. */
ARENA_TEST(tiled_delta_nets_take_four_launches_a_layer)
{
    static const struct {
        const char *text;
        size_t launches; /* including the feed-forward's */
    } cases[] = {
        { qwen35, 6 },
        { TILED("3", "6") EXPERTS, 7 },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        made m;
        make(a, cases[i].text, &m);
        for (size_t s = 0; s < m.plan.step_count; s++)
            assert_int_equal(m.plan.steps[s].layer_launches, cases[i].launches);
    }
}

/* A changed number of the decoder, which only the reference sees. */
typedef struct change {
    size_t at, size;
    int64_t number;
    const char *found;
} change;

#define NUMBER(member, value, found)                             \
    {                                                            \
        offsetof(decoder, member), sizeof(int64_t), value, found \
    }
#define TENSOR_GONE(id, found)                           \
    {                                                    \
        offsetof(decoder, has[TENSOR_##id]), 1, 0, found \
    }

static void assert_changes_are_found(arena *a, const char *text, const change *changes,
                                     size_t count)
{
    made m;
    make(a, text, &m);
    const decoder right = m.decoder;
    for (size_t i = 0; i < count; i++) {
        m.decoder = right;
        memcpy((char *)&m.decoder + changes[i].at, &changes[i].number, changes[i].size);
        assert_finds(a, &m, changes[i].found);
    }
}

ARENA_TEST(wrong_experts_and_sinks_are_found)
{
    static const change changes[] = {
        TENSOR_GONE(ATTN_SINKS, "layer 0: h["),
        TENSOR_GONE(FFN_GATE_INP_BIAS, "layer 0: h["),
        TENSOR_GONE(FFN_GATE_EXPS_BIAS, "layer 0: h["),
        TENSOR_GONE(FFN_UP_EXPS_BIAS, "layer 0: h["),
        TENSOR_GONE(FFN_DOWN_EXPS_BIAS, "layer 0: h["),
        NUMBER(experts_used, 1, "layer 0: h["),
        NUMBER(gating, GATING_SOFTMAX, "layer 0: h["),
        NUMBER(activation, ACTIVATION_SILU, "layer 0: h["),
        NUMBER(window, 19, "layer 0: h["),
        NUMBER(window, 21, "layer 0: h["),
    };
    assert_changes_are_found(a, gpt_oss, changes, sizeof changes / sizeof *changes);
}

ARENA_TEST(wrong_latents_and_groups_are_found)
{
    static const change changes[] = {
        TENSOR_GONE(EXP_PROBS_B, "layer 1: h["),
        NUMBER(experts_normed, 0, "layer 1: h["),
        NUMBER(experts_scale, 0, "layer 1: h["),
        NUMBER(shared_ff, 0, "layer 1: h["),
        NUMBER(attention_scale, 0, "layer 0: h["),
        NUMBER(rope[0].style, ROPE_NEOX, "layer 0: latent["),
    };
    assert_changes_are_found(a, deepseek, changes, sizeof changes / sizeof *changes);
}

ARENA_TEST(wrong_per_layer_embeddings_and_scales_are_found)
{
    static const change changes[] = {
        TENSOR_GONE(LAYER_OUTPUT_SCALE, "layer 0: h["),     TENSOR_GONE(POST_NORM, "layer 0: h["),
        TENSOR_GONE(PER_LAYER_PROJ_NORM, "layer 0: h["),    NUMBER(v_norm, 0, "layer 0: V["),
        NUMBER(activation, ACTIVATION_SILU, "layer 0: h["),
    };
    assert_changes_are_found(a, gemma4_e, changes, sizeof changes / sizeof *changes);
}

ARENA_TEST(wrong_norms_and_scales_of_experts_are_found)
{
    static const change changes[] = {
        TENSOR_GONE(POST_FFW_NORM_1, "layer 0: h["),
        TENSOR_GONE(POST_FFW_NORM_2, "layer 0: h["),
        TENSOR_GONE(PRE_FFW_NORM_2, "layer 0: h["),
        TENSOR_GONE(FFN_DOWN_EXPS_SCALE, "layer 0: h["),
        TENSOR_GONE(ROUTER_NORM, "layer 0: h["),
        NUMBER(router_scale, 0, "layer 0: h["),
    };
    assert_changes_are_found(a, gemma4_moe_exact, changes, sizeof changes / sizeof *changes);
}

/* Two layers exchange their per-layer embeddings. */
ARENA_TEST(per_layer_embeddings_of_another_layer_are_found)
{
    made m;
    make(a, gemma4_e, &m);
    plan_argument *of[2];
    for (int64_t layer = 0; layer < 2; layer++)
        of[layer] = find_argument(a, &m, find_launch(&m, layer, "per_layer -> inner"), "times");
    assert_true(of[0]->offset != of[1]->offset);
    swap(of[0], of[1]);
    assert_finds(a, &m, "layer 0: h[");
}

ARENA_TEST(shared_experts_without_their_gate_are_found)
{
    static const change changes[] = {
        TENSOR_GONE(FFN_GATE_INP_SHEXP, "layer 0: h["),
        TENSOR_GONE(ATTN_Q_NORM, "layer 1: h["),
    };
    assert_changes_are_found(a, qwen3next, changes, sizeof changes / sizeof *changes);
}

/* Swaps two arguments of a launch of layer 0 and checks the report. */
static void assert_swap_is_found(arena *a, const char *text, const char *said, const char *one,
                                 const char *other, const char *words)
{
    made m;
    make(a, text, &m);
    plan_launch *l = find_launch(&m, 0, said);
    swap(find_argument(a, &m, l, one), find_argument(a, &m, l, other));
    assert_finds(a, &m, words);
}

ARENA_TEST(swapped_vectors_of_a_delta_net_are_found)
{
    assert_swap_is_found(a, qwen3next, "states -> delta", "dt", "a", "layer 0: state[");
}

ARENA_TEST(swapped_betas_and_alphas_are_found)
{
    assert_swap_is_found(a, qwen35, "ssm_beta ssm_alpha -> ba", "wq", "wk", "layer 0: state[");
}

/* Value head h uses key head h / 2 of 3 instead of h % 3. */
ARENA_TEST(tiled_heads_read_as_grouped_heads_are_found)
{
    static const char tiled[] = "rem.u32 ", by[] = ", 3;";
    made m;
    make(a, qwen35, &m);
    size_t changed = 0;
    for (size_t i = 0; i < m.set.kernel_count; i++) {
        if (!strstr(m.set.kernels[i].instance->name, "delta_net"))
            continue;
        char *text = arena_strdup(a, m.set.kernels[i].ptx);
        char *at = strstr(text, tiled);
        assert_non_null(at);
        char *divisor = strchr(at, ';') + 1 - strlen(by);
        assert_memory_equal(divisor, by, strlen(by));
        memcpy(at, "div", strlen("div"));
        divisor[2] = '2';
        m.set.kernels[i].ptx = text;
        changed++;
    }
    assert_int_equal(changed, 2);
    assert_finds(a, &m, "layer 0: state[");
}

ARENA_TEST(swapped_gates_of_experts_are_found)
{
    made m;
    make(a, deepseek, &m);
    plan_launch *gate_up = find_launch(&m, 1, "gate and up of experts");
    swap(find_argument(a, &m, gate_up, "wsg"), find_argument(a, &m, gate_up, "wsu"));
    assert_finds(a, &m, "layer 1: h[");
    swap(find_argument(a, &m, gate_up, "wsg"), find_argument(a, &m, gate_up, "wsu"));
    plan_launch *down = find_launch(&m, 1, "ffn_down of experts");
    find_argument(a, &m, down, "residual")->offset = find_argument(a, &m, down, "x")->offset;
    assert_finds(a, &m, "layer 1: h[");
}
