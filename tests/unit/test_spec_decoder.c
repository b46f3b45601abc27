/* Section [decoder]: its values with few keys and with all keys; parsing must invert printing. */
#include "test_arena.h"
#include "diags_text.h"
#include "base/diag.h"
#include "decoder_sample.h"
#include "ref/random.h"
#include "input/spec.h"
#include "model/storey.h"

#define SMALL                                                                  \
    "[decoder]\nlayers = 4\nhidden = 256\nff = 512\nnum_heads = 4\nvocab = 8k" \
    "\nweights = q4_k\n"

static decoder read_right(arena *a, const char *text)
{
    diags d = diags_new(a);
    decoder out;
    if (!parse_decoder(a, text, &out, &d))
        fail_msg("%s", diags_text(a, &d));
    return out;
}

static bool is_near(double value, double expected)
{
    return value > expected * (1 - 1e-15) && value < expected * (1 + 1e-15);
}

ARENA_TEST(a_short_section_has_defaults)
{
    decoder d = read_right(a, SMALL);
    assert_string_equal(d.architecture, "custom");
    assert_int_equal(d.at[0].num_kv_heads, 4);
    assert_int_equal(d.at[0].head_dim, 64);
    assert_int_equal(d.vocab, 8192);
    assert_true(is_near(d.epsilon, 1e-5));
    assert_int_equal(d.activation, ACTIVATION_SILU);
    assert_int_equal(d.window, 0);
    assert_int_equal(d.rope[0].style, ROPE_NORM);
    assert_int_equal(d.rope[0].dims, 64);
    assert_true(is_near(d.rope[0].base, 10000));
    assert_int_equal(d.rope[0].factors, 0);
    assert_int_equal(d.max_seq_len, 8192);
    assert_int_equal(d.kv_type, KV_F16);
    assert_int_equal(d.precision, PRECISION_Q8);
    assert_int_equal(d.m_count, 2);
    assert_int_equal(d.m[0], 1);
    assert_int_equal(d.m[1], 8);
    assert_int_equal(d.sequences, 1);
    for (unsigned t = 0; t < TENSOR_COUNT; t++) {
        static const uint8_t there[] = { TENSOR_TOKEN_EMBD, TENSOR_ATTN_NORM,   TENSOR_ATTN_Q,
                                         TENSOR_ATTN_K,     TENSOR_ATTN_V,      TENSOR_ATTN_OUTPUT,
                                         TENSOR_FFN_NORM,   TENSOR_FFN_GATE,    TENSOR_FFN_UP,
                                         TENSOR_FFN_DOWN,   TENSOR_OUTPUT_NORM, TENSOR_OUTPUT };
        assert_int_equal(d.has[t], memchr(there, (int)t, sizeof there) != NULL);
        if (decoder_has_matrix(&d, t))
            assert_int_equal(decoder_format(&d, t, tensor_infos[t].by_layer ? 3 : 0), FORMAT_Q4_K);
    }
}

ARENA_TEST(a_tensor_has_formats_by_layer)
{
    decoder d = read_right(a, SMALL "weights.attn_v = q6_k: 0..1, 3\n"
                                    "weights.ffn_down = q5_k,\n  q6_k: 0 .. 2 : 2, q8_0:1\n"
                                    "weights.output = q6_k\n");
    static const uint8_t attn_v[] = { FORMAT_Q6_K, FORMAT_Q6_K, FORMAT_Q4_K, FORMAT_Q6_K },
                         ffn_down[] = { FORMAT_Q6_K, FORMAT_Q8_0, FORMAT_Q6_K, FORMAT_Q5_K };
    assert_memory_equal(d.formats[TENSOR_ATTN_V], attn_v, 4);
    assert_memory_equal(d.formats[TENSOR_FFN_DOWN], ffn_down, 4);
    assert_int_equal(d.formats[TENSOR_OUTPUT][0], FORMAT_Q6_K);
    assert_int_equal(d.formats[TENSOR_TOKEN_EMBD][0], FORMAT_Q4_K);
}

ARENA_TEST(windowed_layers_may_have_their_own_rope)
{
    decoder d = read_right(a, SMALL "rope = neox\nrope_base = 1e6\nrope_scaling = linear\n"
                                    "rope_factor = 8\nwindow = 512\nwindow_layers = 0..2\n"
                                    "rope_base.window = 10000\nrope_scaling.window = none\n");
    static const uint8_t windowed[] = { 1, 1, 1, 0 };
    assert_int_equal(d.window, 512);
    for (int64_t l = 0; l < d.layers; l++)
        assert_int_equal(d.at[l].windowed, windowed[l]);
    assert_int_equal(d.rope[0].scaling, ROPE_LINEAR);
    assert_true(is_near(d.rope[0].factor, 8) && is_near(d.rope[0].base, 1e6));
    assert_int_equal(d.rope[1].style, ROPE_NEOX);
    assert_int_equal(d.rope[1].scaling, ROPE_UNSCALED);
    assert_true(is_near(d.rope[1].base, 1e4));
}

ARENA_TEST(a_factor_of_one_is_dropped)
{
    decoder d = read_right(a, SMALL),
            ones = read_right(a, SMALL "embedding_scale = 1\n"
                                       "residual_scale = 1.0\nlogit_scale = "
                                       "1e0\nrope_magnitude = 1\n");
    assert_null(decoder_difference(a, &d, &ones));
}

ARENA_TEST(fused_tensors_replace_others)
{
    decoder d = read_right(a, SMALL "fused = attn_qkv, ffn_gate_up\nweights.ffn_up = q5_k\n"
                                    "biases = attn_qkv\noutput = tied\n");
    assert_true(d.has[TENSOR_ATTN_QKV] && d.has[TENSOR_FFN_GATE_UP] && d.has[TENSOR_ATTN_QKV_BIAS]);
    assert_false(d.has[TENSOR_ATTN_Q] || d.has[TENSOR_FFN_UP] || d.has[TENSOR_OUTPUT]);
    assert_int_equal(d.formats[TENSOR_FFN_GATE_UP][0], FORMAT_Q5_K);
    assert_int_equal(d.formats[TENSOR_FFN_UP][0], FORMAT_NONE);
}

#define EXPERTS                                                                                   \
    "[decoder]\nlayers = 4\nhidden = 256\nnum_heads = 4\nvocab = 8k\nweights = q4_k\nexperts = 8" \
    "\nexperts_used = 2\nexpert_ff = 512\n"

ARENA_TEST(layers_with_experts_need_no_dense_rows)
{
    decoder d = read_right(a, EXPERTS);
    assert_int_equal(d.experts, 8);
    assert_int_equal(d.experts_used, 2);
    assert_int_equal(d.expert_ff, 512);
    assert_int_equal(d.shared_ff, 0);
    assert_int_equal(d.gating, GATING_SOFTMAX);
    assert_int_equal(d.experts_normed, 0);
    assert_true(d.has[TENSOR_FFN_GATE_INP] && d.has[TENSOR_FFN_GATE_EXPS] &&
                d.has[TENSOR_FFN_UP_EXPS] && d.has[TENSOR_FFN_DOWN_EXPS]);
    assert_false(d.has[TENSOR_FFN_GATE] || d.has[TENSOR_FFN_UP] || d.has[TENSOR_FFN_DOWN] ||
                 d.has[TENSOR_FFN_UP_SHEXP]);
    assert_int_equal(decoder_format(&d, TENSOR_FFN_GATE_EXPS, 3), FORMAT_Q4_K);
    assert_int_equal(decoder_format(&d, TENSOR_FFN_GATE_INP, 3), FORMAT_F32);
    assert_int_equal(decoder_rows(&d, TENSOR_FFN_UP_EXPS, 3), 8 * 512);
}

ARENA_TEST(formats_cover_only_layers_with_the_tensor)
{
    decoder d = read_right(a, EXPERTS "shared_ff = 256\nexpert_layers = 1..3\nff = 1024\n"
                                      "weights.ffn_gate_inp = f16: 2\nweights.ffn_up_exps = q6_k\n"
                                      "weights.ffn_up = q5_k\nshared_gate = sigmoid\n");
    static const uint8_t router[] = { FORMAT_NONE, FORMAT_F32, FORMAT_F16, FORMAT_F32 },
                         ups[] = { FORMAT_NONE, FORMAT_Q6_K, FORMAT_Q6_K, FORMAT_Q6_K },
                         dense[] = { FORMAT_Q5_K, FORMAT_NONE, FORMAT_NONE, FORMAT_NONE };
    assert_memory_equal(d.formats[TENSOR_FFN_GATE_INP], router, 4);
    assert_memory_equal(d.formats[TENSOR_FFN_UP_EXPS], ups, 4);
    assert_memory_equal(d.formats[TENSOR_FFN_UP], dense, 4);
    assert_true(d.has[TENSOR_FFN_GATE_INP_SHEXP] && d.has[TENSOR_FFN_DOWN_SHEXP]);
}

ARENA_TEST(latent_attention_has_one_kv_head)
{
    decoder d = read_right(a, SMALL "latent = 256\nvalue_dim = 32\nrope_dims = 32\nq_rank = 128\n"
                                    "weights.attn_k_b = q8_0\nweights.attn_q_b = q8_0\n"
                                    "weights.attn_output = q8_0\nm = 1, 256\n");
    assert_int_equal(d.at[0].num_kv_heads, 1);
    assert_int_equal(d.m[1], 256);
    assert_false(d.has[TENSOR_ATTN_Q] || d.has[TENSOR_ATTN_K] || d.has[TENSOR_ATTN_V]);
    assert_true(d.has[TENSOR_ATTN_Q_A] && d.has[TENSOR_ATTN_Q_B] && d.has[TENSOR_ATTN_KV_A]);
    assert_int_equal(decoder_rows(&d, TENSOR_ATTN_KV_A, 0), 256 + 32);
    assert_int_equal(decoder_columns(&d, TENSOR_ATTN_K_B, 0), 32);
    assert_int_equal(decoder_columns(&d, TENSOR_ATTN_OUTPUT, 0), 4 * 32);
}

ARENA_TEST(a_delta_net_replaces_attention)
{
    decoder d = read_right(a, SMALL "recurrent_layers = 0..2\ndelta_key_heads = 2\n"
                                    "delta_value_heads = 4\ndelta_head_dim = 64\nwindow = 9\n"
                                    "attention_gate = sigmoid\nsinks = add\nwindow_cache = full\n"
                                    "fused = ffn_gate_up\nffn_norm = post_attention_norm\n"
                                    "weights.attn_qkv = q5_k: 1\nm = 1, 256\n");
    static const uint8_t windowed[] = { 0, 0, 0, 1 };
    assert_int_equal(d.m[1], 256);
    for (int64_t l = 0; l < d.layers; l++)
        assert_int_equal(d.at[l].windowed, windowed[l]);
    assert_int_equal(d.window_cache, WINDOW_CACHE_FULL);
    assert_int_equal(d.attention_gate, 1);
    assert_int_equal(decoder_rows(&d, TENSOR_ATTN_Q, 3), 2 * 256);
    assert_true(d.has[TENSOR_ATTN_SINKS] && d.has[TENSOR_PRE_FFN_NORM]);
    assert_false(d.has[TENSOR_FFN_NORM]);
    assert_true(decoder_has(&d, TENSOR_DELTA_QKV, 2) && !decoder_has(&d, TENSOR_DELTA_QKV, 3));
    assert_int_equal(decoder_format(&d, TENSOR_DELTA_QKV, 1), FORMAT_Q5_K);
    assert_int_equal(decoder_format(&d, TENSOR_DELTA_QKV, 0), FORMAT_Q4_K);
}

ARENA_TEST(betas_and_alphas_of_tiled_heads_are_two_matrices)
{
    static const char heads[] = SMALL "recurrent_layers = 0..2\ndelta_key_heads = 2\n"
                                      "delta_value_heads = 4\ndelta_head_dim = 64\n";
    decoder d = read_right(a, heads);
    assert_int_equal(d.delta_layout, DELTA_GROUPED);
    assert_true(d.has[TENSOR_SSM_BA]);
    assert_false(d.has[TENSOR_SSM_BETA] || d.has[TENSOR_SSM_ALPHA]);
    assert_int_equal(decoder_rows(&d, TENSOR_SSM_BA, 0), 8);
    d = read_right(a, arena_format(a,
                                   "%sdelta_layout = tiled\nweights.ssm_beta = q8_0\n"
                                   "weights.ssm_alpha = f32, q8_0: 1\n",
                                   heads));
    assert_int_equal(d.delta_layout, DELTA_TILED);
    assert_false(d.has[TENSOR_SSM_BA]);
    assert_true(decoder_has(&d, TENSOR_SSM_BETA, 2) && !decoder_has(&d, TENSOR_SSM_ALPHA, 3));
    assert_int_equal(decoder_rows(&d, TENSOR_SSM_BETA, 0), 4);
    assert_int_equal(decoder_rows(&d, TENSOR_SSM_ALPHA, 0), 4);
    assert_int_equal(decoder_format(&d, TENSOR_SSM_BETA, 1), FORMAT_Q8_0);
    assert_int_equal(decoder_format(&d, TENSOR_SSM_ALPHA, 0), FORMAT_F32);
    assert_int_equal(decoder_format(&d, TENSOR_SSM_ALPHA, 1), FORMAT_Q8_0);
}

ARENA_TEST(per_layer_embeddings_have_tensors_of_all_layers)
{
    decoder d = read_right(a, SMALL "per_layer = 256\nlayer_scale = layer_output_scale\n"
                                    "weights.per_layer_model_proj = bf16\n");
    assert_int_equal(decoder_rows(&d, TENSOR_PER_LAYER_MODEL_PROJ, 0), 4 * 256);
    assert_int_equal(decoder_columns(&d, TENSOR_PER_LAYER_TOKEN_EMBD, 0), 4 * 256);
    assert_int_equal(decoder_columns(&d, TENSOR_PER_LAYER_PROJ_NORM, 0), 256);
    assert_int_equal(decoder_rows(&d, TENSOR_INP_GATE, 3), 256);
    assert_int_equal(decoder_columns(&d, TENSOR_PROJ, 3), 256);
    assert_int_equal(decoder_format(&d, TENSOR_PER_LAYER_MODEL_PROJ, 0), FORMAT_BF16);
    for (int64_t l = 0; l < d.layers; l++)
        assert_int_equal(decoder_last_norm(&d, l), TENSOR_POST_NORM);
    assert_true(decoder_has(&d, TENSOR_LAYER_OUTPUT_SCALE, 3));
}

ARENA_TEST(layers_with_both_feed_forwards_have_norms_of_both)
{
    decoder d = read_right(a, EXPERTS "expert_layers = 1..3\nffn_layers = 0..2\nff = 1024\n"
                                      "norms = post_ffw_norm\nrouter_norm = ffn_gate_inp.scale\n"
                                      "router_scale = 0.0625\nscales = ffn_down_exps\n");
    for (int64_t l = 0; l < d.layers; l++) {
        bool both = l == 1 || l == 2;
        assert_int_equal(decoder_is_beside(&d, l), both);
        assert_int_equal(decoder_has(&d, TENSOR_POST_FFW_NORM_1, l), both);
        assert_int_equal(decoder_has(&d, TENSOR_ROUTER_NORM, l), l > 0);
        assert_int_equal(decoder_expert_norm(&d, l),
                         both ? TENSOR_PRE_FFW_NORM_2 : TENSOR_FFN_NORM);
    }
    assert_true(is_near(d.router_scale, 0.0625));
    assert_int_equal(decoder_columns(&d, TENSOR_FFN_DOWN_EXPS_SCALE, 1), 8);
    assert_int_equal(decoder_scale(TENSOR_FFN_DOWN_EXPS), TENSOR_COUNT);
    assert_int_equal(decoder_scale(TENSOR_FFN_GATE_INP), TENSOR_COUNT);
}

/* attn_qkv is a tensor of attention in some layers and of a delta net in others. */
ARENA_TEST(two_tensors_of_one_name_share_their_key)
{
    decoder d = read_right(a, SMALL "recurrent_layers = 0, 1\ndelta_key_heads = 2\n"
                                    "delta_value_heads = 4\ndelta_head_dim = 64\nfused = attn_qkv\n"
                                    "weights.attn_qkv = q5_k, q6_k: 0, 3\n");
    assert_int_equal(decoder_format(&d, TENSOR_DELTA_QKV, 0), FORMAT_Q6_K);
    assert_int_equal(decoder_format(&d, TENSOR_DELTA_QKV, 1), FORMAT_Q5_K);
    assert_int_equal(decoder_format(&d, TENSOR_ATTN_QKV, 2), FORMAT_Q5_K);
    assert_int_equal(decoder_format(&d, TENSOR_ATTN_QKV, 3), FORMAT_Q6_K);
}

typedef struct wrong_section {
    const char *text, *messages; /* appended to SMALL, from line 8 on; one "line:first-last: …" per
                                    message */
} wrong_section;

/* clang-format off */
#define FEW_EXPERTS "experts = 8\nexpert_ff = 256\nexpert_layers = 1..3\n"
#define LATENT      "latent = 512\nvalue_dim = 64\nweights.attn_k_b = f32\n"
#define DELTA(value_heads) \
    "delta_key_heads = 2\ndelta_value_heads = " value_heads "\ndelta_head_dim = 64\n"
static const wrong_section wrong_sections[] = {
    { "rope_bas = 1e6\n", "8:1-8: decoder has no key 'rope_bas'; did you mean 'rope_base'? [E008]\n" },
    { "weights.attn_w = q6_k\n",
      "8:1-14: decoder has no key 'weights.attn_w'; did you mean 'weights.attn_q'? [E008]\n" },
    { "softmax_of_all = 1\n",
      "8:1-14: decoder has no key 'softmax_of_all'; ptxgen --help-family decoder lists all keys [E008]\n" },
    { "targets = sm_80\n", "8:1-7: decoder has no key 'targets'; set it in [ptxgen] [E008]\n" },
    { "layers = 5\n", "8:1-6: duplicate key 'layers' in this section; the first is on line 2 [E009]\n" },
    { "num_kv_heads = 3\n",
      "8:16-16: num_heads = 4 is not a multiple of num_kv_heads = 3 [E022]\n" },
    { "head_dim = 18\n",
      "8:12-13: head_dim = 18 is not a multiple of 4; use 16 or 20 [E014]\n" },
    { "rope_dims = 63\n",
      "8:13-14: rope_dims = 63 is not a multiple of 2; use 62 or 64 [E014]\n" },
    { "rope_dims = 66\n", "8:13-14: rope_dims = 66 is more than head_dim = 64 [E022]\n" },
    { "rope = yes\n", "8:8-10: rope cannot be 'yes'; the choices are norm, neox, none [E016]\n" },
    { "rope_base = big\n", "8:13-15: rope_base = 'big' is not a number; write 1e-5 or 0.00001 [E012]\n" },
    { "rope_factor = 8\n", "8:1-11: 'rope_factor' is valid only with rope_scaling = linear or yarn [E022]\n" },
    { "rope_scaling = linear\n",
      "1:2-8: decoder requires the key 'rope_factor' with rope_scaling = linear or yarn [E010]\n" },
    { "rope_scaling = yarn\nrope_factor = 4\n",
      "1:2-8: decoder requires the key 'rope_original_context' with rope_scaling = yarn [E010]\n" },
    { "rope_scaling = linar\nrope_factor = 4\n",
      "8:16-20: rope_scaling cannot be 'linar'; did you mean 'linear'? [E016]\n" },
    { "temperature_scale = 0.1\n",
      "1:2-8: decoder requires the key 'temperature_length' with temperature_scale [E010]\n" },
    { "window_layers = 0\n", "8:1-13: 'window_layers' is valid only with window [E022]\n" },
    { "rope_base.window = 10\n", "8:1-16: 'rope_base.window' is valid only with rope.window = norm or neox [E022]\n" },
    { "window = 9\nwindow_layers = 0..4\n",
      "9:20-20: layer = 4 is too large; the largest is 3 [E013]\n" },
    { "window = 9\nrope_factors.window = tensor\n",
      "9:23-28: rope_factors.window = tensor needs rope_factors [E022]\n" },
    { "window = 9\nrope_factors = tensor\nrope_dims.window = 32\n",
      "10:20-21: rope_dims.window differs from rope_dims, and the tensor of rope_factors has rope_dims/2 = 32 values; set rope_factors.window = none [E022]\n" },
    { "max_seq_len = 1k, 2k\n", "8:19-20: max_seq_len is one value, not a list [E016]\n" },
    { "max_seq_len = 1..4\n", "8:15-18: max_seq_len is one value, not a range [E016]\n" },
    { "architecture = llama, qwen\n", "8:23-26: architecture is one name, not a list [E016]\n" },
    { "architecture = my model\n",
      "8:16-23: 'my model' is not a name; use up to 64 letters, digits, '_', '-' and '.' [E016]\n" },
    { "kv_type = q8_0\nhead_dim = 8\nrope_dims = 8\n",
      "8:11-14: kv_type = q8_0 needs a head_dim that is a multiple of 32, not 8; use f16 [E022]\n"
      "7:11-14: q4_k needs rows of a multiple of 256 values, attn_output has 32; set another format in weights.attn_output [E014]\n" },
    { "biases = attn_q\nfused = attn_qkv\n",
      "8:10-15: attn_q.bias needs attn_q.weight, which the decoder does not have [E022]\n" },
    { "biases = attn_q\n", "8:10-15: attn_q.bias needs attn_k.bias, which the decoder does not have [E022]\n" },
    { "biases = attn_v\n", "8:10-15: attn_v.bias needs attn_q.bias, which the decoder does not have [E022]\n" },
    { "biases = attn_q, attn_k\n", "8:10-15: attn_k.bias needs attn_v.bias, which the decoder does not have [E022]\n" },
    { "biases = ffn_gate\n", "8:10-17: ffn_gate.bias needs ffn_up.bias, which the decoder does not have [E022]\n" },
    { "biases = ffn_up, ffn_down\n", "8:10-15: biases = ffn_up needs ffn_up and, if there is a gate, biases = ffn_gate [E022]\n" },
    { "biases = attn_qkv\n",
      "8:10-17: attn_qkv.bias needs attn_qkv.weight, which the decoder does not have [E022]\n" },
    { "norms = attn_q_norm\n",
      "8:9-19: attn_q_norm.weight needs attn_k_norm.weight, which the decoder does not have [E022]\n" },
    { "norms = attn_norm\n", "8:9-17: norms cannot be 'attn_norm'; did you mean 'attn_q_norm'? [E016]\n" },
    { "weights.attn_q = q9_k\n", "8:18-21: weights.attn_q cannot be 'q9_k'; did you mean 'q4_k'? [E016]\n" },
    { "weights.attn_q = q9_k: 0, 2\n", "8:18-21: weights.attn_q cannot be 'q9_k'; did you mean 'q4_k'? [E016]\n" },
    { "weights.attn_q = q6_k: 4\n", "8:24-24: layer = 4 is too large; the largest is 3 [E013]\n" },
    { "weights.attn_q = q6_k: 0..2, q5_k: 2\n",
      "8:36-36: layer 2 has two formats in 'weights.attn_q'; remove one [E022]\n" },
    { "weights.attn_q = q6_k, q5_k\n",
      "8:24-27: 'weights.attn_q' has two formats for all layers; give one of them layers: q5_k: 0..3 [E022]\n" },
    { "weights.attn_q = q6_k, 2\n",
      "8:24-24: '2' is not a format; layers follow a format and a colon: q6_k: 0..3, 7 [E016]\n" },
    { "weights.attn_q = 2\n",
      "8:18-18: '2' is not a format; layers follow a format and a colon: q6_k: 0..3, 7 [E016]\n" },
    { "weights.attn_q = q6_k:\n",
      "8:18-22: 'q6_k:' names no layers; write q6_k: 0..3, 7, or remove the colon [E012]\n" },
    { "weights.output = q6_k: 0\n",
      "8:18-24: output is a single tensor, not one per layer; write q6_k [E022]\n" },
    { "weights.output = q6_k\noutput = tied\n",
      "8:1-14: this decoder has no tensor output; it has token_embd, "
      "attn_q, attn_k, attn_v, attn_output, ffn_gate, ffn_up, ffn_down [E022]\n" },
    { "m = 1, 513\n", "8:8-10: m = 513 is too large; the largest is 512 [E013]\n" },
    { "m = 1..17\n", "8:1-1: m has more than 16 numbers; each makes a step [E013]\n" },
    { FEW_EXPERTS "experts_used = 2\nm = 8, 9\nprecision = f32\n",
      "12:5-5: m = 9 needs prompt kernels, which do not exist for experts with precision = f32; use m <= 8 [E022]\n" },
    { "experts_used = 2\n", "8:1-12: 'experts_used' is valid only with experts [E022]\n" },
    { "gating = sigmoid\n", "8:1-6: 'gating' is valid only with experts [E022]\n" },
    { "experts = 8\n",
      "1:2-8: decoder requires the key 'experts_used' with experts [E010]\n"
      "1:2-8: decoder requires the key 'expert_ff' with experts [E010]\n"
      "4:1-2: 'ff' is valid only with ffn_layers [E022]\n" },
    { FEW_EXPERTS "experts_used = 9\n", "11:16-16: experts_used = 9 is more than experts = 8 [E022]\n" },
    { "experts = 8\nexpert_ff = 256\nexperts_used = 2\nexpert_layers = none\n",
      "11:17-20: expert_layers is empty; name the layers with experts, or remove experts = 8 [E022]\n" },
    { "ffn_layers = 0..2\nrecurrent_layers = none\nattention_layers = 0..2\n",
      "8:14-17: layer 3 has neither attention, recurrence nor feed-forward [E022]\n" },
    { "cache_layer = 3: 2\n", "8:15-18: layer 2 reads the cache of layer 3, which is no earlier layer with a cache of its own [E022]\n" },
    { "cache_layer = 1: 2, 2: 3\n", "8:15-18: layer 3 reads the cache of layer 2, which is no earlier layer with a cache of its own [E022]\n" },
    { "cache_layer = 1: 3\nhead_dim = 64, 128: 3\n", "8:15-18: layer 3 reads the cache of layer 1, which has other num_kv_heads or head_dim [E022]\n" },
    { "cache_layer = 1: 3\nwindow = 9\nwindow_layers = 3\n", "8:15-18: layer 3 reads the cache of layer 1, which has another window [E022]\n" },
    { "num_kv_heads = 2, 4: 1, 2, 1: 1\n", "8:31-31: layer 1 has two values in 'num_kv_heads'; remove one [E022]\n" },
    { "num_kv_heads = 2, 4\n", "8:19-19: 'num_kv_heads' has two values for all layers; give one of them layers: 4: 0..3 [E022]\n" },
    { "num_kv_heads = 2, 3: 1\n", "8:16-16: num_heads = 4 is not a multiple of num_kv_heads = 3 in layer 1 [E022]\n" },
    { FEW_EXPERTS "experts_used = 2\nexpert_groups = 4\n",
      "1:2-8: decoder requires the key 'expert_groups_used' with expert_groups [E010]\n" },
    { FEW_EXPERTS "experts_used = 2\nexpert_groups = 3\nexpert_groups_used = 1\n",
      "12:17-17: expert_groups = 3 does not divide experts = 8 into groups of two or more [E022]\n" },
    { FEW_EXPERTS "experts_used = 2\nexpert_groups = 8\nexpert_groups_used = 1\n",
      "12:17-17: expert_groups = 8 does not divide experts = 8 into groups of two or more [E022]\n" },
    { FEW_EXPERTS "experts_used = 2\nexpert_groups = 2\nexpert_groups_used = 3\n",
      "13:22-22: expert_groups_used = 3 is more than expert_groups = 2 [E022]\n" },
    { FEW_EXPERTS "experts_used = 3\nexpert_groups = 4\nexpert_groups_used = 1\n",
      "13:22-22: expert_groups_used = 1 groups have 2 experts, fewer than experts_used = 3 [E022]\n" },
    { FEW_EXPERTS "experts_used = 2\nshared_gate = sigmoid\n", "12:1-11: 'shared_gate' is valid only with shared_ff [E022]\n" },
    { FEW_EXPERTS "experts_used = 2\nbiases = ffn_gate_exps, ffn_gate_inp\n",
      "12:10-22: ffn_gate_exps.bias needs ffn_up_exps.bias, which the decoder does not have [E022]\n" },
    { FEW_EXPERTS "experts_used = 2\nfused = ffn_gate_up_exps\nbiases = ffn_gate_exps, ffn_up_exps\n",
      "13:10-22: ffn_gate_exps.bias needs ffn_gate_exps.weight, which the decoder does not have [E022]\n"
      "13:10-22: ffn_up_exps.bias needs ffn_up_exps.weight, which the decoder does not have [E022]\n" },
    { FEW_EXPERTS "experts_used = 2\nweights.ffn_up_exps = q6_k: 0..2\n",
      "12:29-32: layer 0 has no ffn_up_exps [E022]\n" },
    { "biases = ffn_gate_inp, exp_probs_b\n",
      "8:10-21: ffn_gate_inp.bias needs ffn_gate_inp.weight, which the decoder does not have [E022]\n"
      "8:10-21: exp_probs_b.bias needs ffn_gate_inp.weight, which the decoder does not have [E022]\n" },
    { "fused = ffn_gate_up_exps\n",
      "8:9-24: ffn_gate_up_exps.weight needs ffn_down_exps.weight, which the decoder does not have [E022]\n" },
    { "scales = attn_q\n", "8:10-15: attn_q.scale needs attn_k.scale, which the decoder does not have [E022]\n" },
    { "scales = ffn_up\n", "8:10-15: scales = ffn_up needs ffn_gate, or fused = ffn_gate_up [E022]\n" },
    { "scales = output\noutput = tied\n",
      "8:10-15: output.scale needs output.weight, which the decoder does not have [E022]\n" },
    { "q_rank = 64\n", "8:1-6: 'q_rank' is valid only with latent [E022]\n" },
    { "latent = 512\n", "1:2-8: decoder requires the key 'value_dim' with latent [E010]\n" },
    { "latent = 500\nvalue_dim = 64\n",
      "8:10-12: latent = 500 is not a multiple of 32; use 480 or 512 [E014]\n" },
    { LATENT "rope_dims = 32\nnum_kv_heads = 4\n",
      "12:16-16: num_kv_heads = 4 does not go with latent, whose cache rows are shared by all heads; use 1 [E022]\n" },
    { "latent = 512\nvalue_dim = 64\nweights.attn_k_b = f32\n",
      "1:2-8: rope_dims = 64 equals head_dim; with latent it must be smaller, e.g. 64 of 192 [E022]\n" },
    { LATENT "rope = none\n", "11:8-11: rope = none does not go with latent, which rotates the last values of each head; use norm or neox [E022]\n" },
    { LATENT "rope_dims = 16\n",
      "11:13-14: rope_dims = 16 does not go with latent; use a multiple of 32 up to 128 [E013]\n" },
    { LATENT "rope_dims = 32\nhead_dim = 60\n",
      "12:12-13: head_dim - rope_dims = 28 is not a multiple of 8, as latent requires [E014]\n" },
    { LATENT "rope_dims = 32\nwindow = 9\n", "12:1-6: 'window' is valid only with latent = none [E022]\n" },
    { LATENT "rope_dims = 32\nsinks = add\n", "12:1-5: 'sinks' is valid only with latent = none [E022]\n" },
    { "fused = attn_kv_b\n", "8:9-17: fused = attn_kv_b needs latent [E022]\n" },
    { LATENT "rope_dims = 32\nfused = attn_qkv\n", "12:9-16: fused = attn_qkv does not go with latent [E022]\n" },
    { LATENT "rope_dims = 32\nnorms = attn_q_norm, attn_k_norm\n",
      "12:9-19: attn_q_norm and attn_k_norm do not go with latent, which has its own norms [E022]\n" },
    { LATENT "rope_dims = 32\nbiases = attn_q, attn_k, attn_v\n",
      "12:10-15: attn_k.bias needs attn_k.weight, which the decoder does not have [E022]\n"
      "12:10-15: attn_v.bias needs attn_v.weight, which the decoder does not have [E022]\n" },
    { "delta_key_heads = 2\n", "8:1-15: 'delta_key_heads' is valid only with recurrence = delta_net [E022]\n" },
    { "recurrent_layers = 0..2\n",
      "1:2-8: decoder requires the key 'delta_key_heads' with recurrence = delta_net [E010]\n"
      "1:2-8: decoder requires the key 'delta_value_heads' with recurrence = delta_net [E010]\n"
      "1:2-8: decoder requires the key 'delta_head_dim' with recurrence = delta_net [E010]\n" },
    { "recurrent_layers = 0..4\n" DELTA("4"), "8:23-23: layer = 4 is too large; the largest is 3 [E013]\n" },
    { "recurrent_layers = 0..2\n" DELTA("3"),
      "10:21-21: delta_value_heads = 3 is not a multiple of delta_key_heads = 2 [E022]\n"
      "7:11-14: q4_k needs rows of a multiple of 256 values, ssm_out has 192; set another format in weights.ssm_out [E014]\n" },
    { "recurrent_layers = 1\n" DELTA("4") "window = 9\nwindow_layers = 0, 1\n",
      "13:17-17: layer 1 has no attention and cannot have a window [E022]\n" },
    { "recurrent_layers = 1\n" DELTA("4") "weights.attn_q = q6_k: 1\n", "12:24-24: layer 1 has no attn_q [E022]\n" },
    { "recurrent_layers = 1\n" DELTA("4") "delta_layout = rows\n",
      "12:16-19: delta_layout cannot be 'rows'; the choices are grouped, tiled [E016]\n" },
    { "delta_layout = tiled\n", "8:1-12: 'delta_layout' is valid only with recurrence = delta_net [E022]\n" },
    { "recurrent_layers = 1\n" DELTA("4") "delta_layout = tiled\nweights.ssm_ba = q6_k\n",
      "13:1-14: this decoder has no tensor ssm_ba; it has token_embd, attn_q, attn_k, attn_v, attn_output, "
      "attn_qkv, attn_gate, ssm_beta, ssm_alpha, ssm_out, ffn_gate, ffn_up, ffn_down, output [E022]\n" },
    { "recurrent_layers = 1\n" DELTA("4") "weights.ssm_alpha = q6_k\n",
      "12:1-17: this decoder has no tensor ssm_alpha; it has token_embd, attn_q, attn_k, attn_v, "
      "attn_output, attn_qkv, attn_gate, ssm_ba, ssm_out, ffn_gate, ffn_up, ffn_down, output [E022]\n" },
    { "per_layer = 48\n", "8:13-14: per_layer = 48 is not a multiple of 32; use 32 or 64 [E014]\n" },
    { "per_layer_table = host\n", "8:1-15: 'per_layer_table' is valid only with per_layer [E022]\n" },
    { "per_layer = 256\nactivation = swiglu_oai\n",
      "8:13-15: per_layer does not go with activation = swiglu_oai or xielu [E022]\n" },
    { "layer_scale = layer_output_scale\n",
      "8:15-32: layer_scale needs a norm behind each layer's last branch, and layer 0 has none; add norms = post_attention_norm, post_ffw_norm [E022]\n" },
    { FEW_EXPERTS "experts_used = 2\nffn_layers = 0..3\n",
      "1:2-8: a dense feed-forward beside experts needs norms = post_ffw_norm [E022]\n" },
    { "router_norm = ffn_gate_inp.scale\n", "8:1-11: 'router_norm' is valid only with experts [E022]\n" },
    { "scales = ffn_down_exps\n",
      "8:10-22: ffn_down_exps.scale needs ffn_down_exps.weight, which the decoder does not have [E022]\n" },
    { "window_cache = full\n", "8:1-12: 'window_cache' is valid only with window [E022]\n" },
    { "attention_gate = sigmoid\nfused = attn_qkv\n",
      "9:9-16: fused = attn_qkv does not go with attention_gate = sigmoid [E022]\n" },
    { "ffn_norm = post_attention_norm\nnorms = post_attention_norm\n",
      "9:9-27: ffn_norm = post_attention_norm uses this tensor already; remove it from norms [E022]\n" },
    { "weights.ffn_down = iq4_xs: 1\nweights.attn_k = q8_0, q4_k:0\nff = 96\n",
      "10:1-2: duplicate key 'ff' in this section; the first is on line 4 [E009]\n" },
};
/* clang-format on */

/* Returns one "8:1-8: message [E008]" per line, in the order of detection. */
static const char *messages_of(arena *a, const char *text)
{
    diags d = diags_new(a);
    decoder out;
    strbuf messages = strbuf_new(a);
    bool right = parse_decoder(a, text, &out, &d);
    assert_int_equal(right, d.errors == 0);
    for (size_t i = 0; i < d.list.count; i++) {
        const diagnostic *m = &d.list.items[i];
        strbuf_format(&messages, "%u:%u-%u: %s [%s]\n", m->where.line, m->where.column,
                      m->where.column + m->where.length - 1, m->message, diag_number(m->code));
    }
    return messages.text;
}

ARENA_TEST(every_wrong_section_is_refused_with_its_messages)
{
    size_t wrong = 0;
    for (size_t i = 0; i < sizeof wrong_sections / sizeof *wrong_sections; i++) {
        const wrong_section *w = &wrong_sections[i];
        const char *messages = messages_of(a, arena_format(a, SMALL "%s", w->text));
        if (strcmp(messages, w->messages) == 0)
            continue;
        print_error("%s:\n%sinstead of\n%s", w->text, messages, w->messages);
        wrong++;
    }
    assert_int_equal(wrong, 0);
}

ARENA_TEST(missing_and_misspelt_keys_are_named_once)
{
    assert_string_equal(messages_of(a, "[decoder]\nlayer = 4\nhidden = 256\n"),
                        "2:1-5: decoder has no key 'layer'; did you mean 'layers'? [E008]\n"
                        "1:2-8: decoder requires the key 'ff' [E010]\n"
                        "1:2-8: decoder requires the key 'num_heads' [E010]\n"
                        "1:2-8: decoder requires the key 'vocab' [E010]\n"
                        "1:2-8: decoder requires the key 'weights' [E010]\n");
    assert_string_equal(messages_of(a, "[decoder]\nlayers = 513\nhidden = 100\nff = 3\n"
                                       "num_heads = 7\nvocab = 9\nweights = f32\n"),
                        "2:10-12: layers = 513 is too large; the largest is 512 [E013]\n");
    assert_string_equal(messages_of(a, "[decoder]\nlayers = 1\nhidden = 100\nff = 3\n"
                                       "num_heads = 7\nvocab = 9\nweights = f32\n"),
                        "5:13-13: num_heads = 7 does not divide hidden = 100; decoder requires the "
                        "key 'head_dim' [E010]\n");
}

ARENA_TEST(notes_and_long_lists_are_printed_for_a_person)
{
    strbuf layers = strbuf_new(a), out = strbuf_new(a);
    for (int l = 0; l < 62; l++)
        strbuf_format(&layers, "%s%d", l ? ", " : "", l);
    decoder d = read_right(
        a, "[decoder]\nlayers = 62\nhidden = 256\nff = 512\nnum_heads = 4\nvocab = 8k\n"
           "weights = q4_k\nweights.attn_v = q6_k: 0..6, 9, 12..42:3, 43, 44, 50, 52, 54, 56\n");
    decoder_print(&out, &d,
                  (const decoder_note[]){ { "m", "tokens of the steps" }, { NULL, NULL } });
    assert_string_equal(
        out.text,
        "[decoder]\n"
        "; The model. These keys decide the logits: they have to be the file's.\n"
        "architecture = custom                   ; model family; decides no kernel\n"
        "layers       = 62                       ; number of layers\n"
        "hidden       = 256                      ; hidden size: values per token between layers\n"
        "ff           = 512                      ; feed-forward size: rows of ffn_up\n"
        "num_heads    = 4                        ; query heads\n"
        "num_kv_heads = 4                        ; key-value heads\n"
        "head_dim     = 64                       ; values of a head\n"
        "vocab        = 8192                     ; vocabulary size\n"
        "norm_epsilon = 1e-5                     ; epsilon of the norms\n"
        "activation   = silu                     ; activation of the gate\n"
        "rope         = norm                     ; rotated pairs: 2i, 2i+1 (norm) or i, i+dims/2 "
        "(neox)\n"
        "rope_base    = 10000                    ; base of RoPE's angles\n"
        "\n"
        "; The step. Change these keys as you like; ptxgen --help-family decoder lists more.\n"
        "max_seq_len  = 8k                       ; KV-cache length in tokens, e.g. 8k\n"
        "kv_type      = f16                      ; type of the KV cache\n"
        "m            = 1, 8                     ; tokens of the steps\n"
        "\n"
        "; The file's weight formats: one for all matrices, then exceptions by tensor and layer.\n"
        "weights        = q4_k                   ; format of all matrices but routers, which are "
        "f32\n"
        "weights.attn_v = q6_k: 0..6, 9..39:3, 42..44, 50..56:2\n");
}

static bool by_chance(random_source *r)
{
    return random_below(r, 2);
}

static int64_t random_value(const setting *s, random_source *r)
{
    const key *k = &s->key;
    if (k->real) {
        double top = k->real->max < 1000 ? k->real->max : 1000;
        return real_bits(k->real->min +
                         (top - k->real->min) * (double)random_below(r, 1000) / 1000);
    }
    size_t choices = 0;
    while (k->choices && k->choices[choices].word)
        choices++;
    if (choices)
        return (int64_t)random_below(r, choices);
    int64_t unit = k->multiple_of ? k->multiple_of : 1;
    return k->min + unit * (int64_t)random_below(r, (uint64_t)((k->max - k->min) / unit) + 1);
}

static void random_experts(decoder *d, random_source *r)
{
    d->experts = 4 << random_below(r, 6);
    d->experts_used = 1 + (int64_t)random_below(r, (uint64_t)d->experts / 4);
    d->expert_ff = 256 * (1 + (int64_t)random_below(r, 8));
    d->shared_ff = 256 * (int64_t)random_below(r, 3);
    int64_t first = (int64_t)random_below(r, (uint64_t)d->layers);
    bool both = random_below(r, 4) == 0;
    for (int64_t l = 0; l < d->layers; l++) {
        d->at[l].is_routed = l >= first;
        d->at[l].is_dense = l < first || both;
    }
    if (by_chance(r)) {
        d->expert_groups = 2;
        d->expert_groups_used = 1 + (int64_t)random_below(r, 2);
    }
}

static void random_latent(decoder *d, random_source *r)
{
    d->latent = 256 * (1 + (int64_t)random_below(r, 2));
    d->q_rank = 256 * (int64_t)random_below(r, 4);
    d->value_dim = 32 * (1 + (int64_t)random_below(r, 8));
    int64_t head_dim = 64 + 32 * (int64_t)random_below(r, 6);
    for (int64_t l = 0; l < d->layers; l++) {
        d->at[l].num_kv_heads = 1;
        d->at[l].head_dim = head_dim;
    }
}

static void random_delta_nets(decoder *d, random_source *r)
{
    d->delta_key_heads = 8 << random_below(r, 3);
    d->delta_value_heads = d->delta_key_heads * (1 + (int64_t)random_below(r, 3));
    d->delta_head_dim = 32 * (1 + (int64_t)random_below(r, 4));
    for (int64_t l = 1; l < d->layers; l++)
        if (random_below(r, 3) > 0 || l == 1) {
            d->at[l].recurs = 1;
            d->at[l].attends = d->at[l].windowed = d->at[l].unturned = d->at[l].v_from_k = 0;
        }
}

/* Sets random sizes that are valid with all other settings. */
static void random_sizes(decoder *d, random_source *r)
{
    d->layers = 1 + (int64_t)random_below(r, by_chance(r) ? 8 : DECODER_MOST_LAYERS);
    d->hidden = 256 * (1 + (int64_t)random_below(r, 50));
    bool vary = by_chance(r);
    decoder_layer at = { 0 };
    for (int64_t l = 0; l < d->layers; l++) {
        if (!l || (vary && random_below(r, 4) == 0)) {
            at.num_kv_heads = 1 + (int64_t)random_below(r, 8);
            at.num_heads = at.num_kv_heads * 8;
            at.head_dim = 32 * (1 + (int64_t)random_below(r, 8));
            at.ff = 256 * (1 + (int64_t)random_below(r, 50));
        }
        d->at[l] = at;
        d->at[l].attends = d->at[l].is_dense = 1;
        d->at[l].unturned = vary && random_below(r, 4) == 0;
        d->at[l].cache = l;
    }
    if (by_chance(r) && d->layers > 1)
        random_experts(d, r);
    if (random_below(r, 4) == 0)
        random_latent(d, r);
    else if (vary && random_below(r, 4) == 0)
        for (int64_t l = 0; l < d->layers; l++)
            d->at[l].v_from_k = random_below(r, 3) == 0;
    if (random_below(r, 4) == 0 && d->layers > 1)
        random_delta_nets(d, r);
    for (int64_t l = 1; vary && !d->latent && l < d->layers; l++) {
        const decoder_layer *from = &d->at[l - 1];
        bool same = from->attends && from->cache == l - 1 && d->at[l].attends &&
                    from->num_kv_heads == d->at[l].num_kv_heads &&
                    from->head_dim == d->at[l].head_dim;
        if (same && random_below(r, 4) == 0)
            d->at[l].cache = l - 1;
        if (d->at[l].cache != l)
            d->at[l].v_from_k = 0;
    }
    decoder_complete(d);
}

static void random_formats(decoder *d, random_source *r)
{
    static const uint8_t some[] = { FORMAT_F32, FORMAT_Q4_K, FORMAT_Q6_K, FORMAT_IQ4_XS };
    for (unsigned t = 0; t < TENSOR_COUNT; t++) {
        bool whole = true;
        for (int64_t l = 0; l < decoder_copies(d, t); l++)
            whole &= decoder_columns(d, t, l) % 256 == 0;
        bool mixed = by_chance(r) && whole;
        uint8_t most = some[whole ? random_below(r, sizeof some) : 0];
        for (int64_t l = 0; decoder_has_matrix(d, t) && l < decoder_copies(d, t); l++)
            if (decoder_has(d, t, l))
                d->formats[t][l] = mixed ? some[random_below(r, sizeof some)] : most;
    }
}

static void random_lists(decoder *d, random_source *r)
{
    for (int64_t m = 1; m <= DECODER_FEW_ROWS; m++)
        if (by_chance(r) || m == DECODER_FEW_ROWS)
            d->m[d->m_count++] = m;
    if (by_chance(r) && !decoder_lacks_prompts(d))
        d->m[d->m_count++] = PROBLEM_MOST_ROWS - (int64_t)random_below(r, 2);
    uint64_t period = 1 + random_below(r, 6), offset = random_below(r, period);
    for (int64_t l = 0; d->window && l < d->layers; l++)
        d->at[l].windowed =
            d->at[l].attends && (((uint64_t)l % period != offset) == by_chance(r) || l == 0);
    for (int64_t l = 0; l < d->layers; l++) /* a shared cache has one window */
        if (d->at[l].attends)
            d->at[l].windowed = d->at[d->at[l].cache].windowed;
}

static void random_tensors(decoder *d, random_source *r)
{
    bool fused = !d->latent && d->attention_gate != ATTENTION_GATE_OF_Q && by_chance(r);
    bool biased = by_chance(r), dense = decoder_first_layer(d, PART_DENSE) >= 0;
    d->has[TENSOR_ATTN_QKV] = fused;
    d->has[TENSOR_FFN_GATE_UP] = dense && !d->no_gates && by_chance(r);
    d->has[TENSOR_FFN_GATE_UP_EXPS] = d->experts && !d->no_gates && by_chance(r);
    d->has[TENSOR_PRE_FFN_NORM] = !d->no_pre_norms && !d->parallel && by_chance(r);
    d->has[TENSOR_FFN_GATE_INP_SHEXP] = d->shared_ff && by_chance(r);
    d->has[TENSOR_ATTN_SINKS] = !d->latent && by_chance(r);
    decoder_complete(d);
    d->has[TENSOR_ATTN_QKV_BIAS] = fused && biased;
    d->has[TENSOR_ATTN_Q_BIAS] = d->has[TENSOR_ATTN_K_BIAS] = d->has[TENSOR_ATTN_V_BIAS] =
        d->has[TENSOR_ATTN_K] && d->has[TENSOR_ATTN_V] && biased;
    d->has[TENSOR_FFN_DOWN_BIAS] = dense && by_chance(r);
    d->has[TENSOR_FFN_GATE_INP_BIAS] = d->experts && by_chance(r);
    d->has[TENSOR_EXP_PROBS_B] = d->experts && by_chance(r);
    d->has[TENSOR_FFN_GATE_EXPS_BIAS] = d->has[TENSOR_FFN_UP_EXPS_BIAS] =
        d->has[TENSOR_FFN_GATE_EXPS] && by_chance(r);
    d->has[TENSOR_POST_ATTENTION_NORM] = d->has[TENSOR_FFN_NORM] && by_chance(r);
    d->has[TENSOR_POST_FFW_NORM] =
        d->has[TENSOR_POST_ATTENTION_NORM] || d->has[TENSOR_POST_FFW_NORM_1];
    d->has[TENSOR_ROUTER_NORM] = d->experts && by_chance(r);
    d->has[TENSOR_FFN_DOWN_EXPS_SCALE] = d->experts && by_chance(r);
    d->has[TENSOR_LAYER_OUTPUT_SCALE] = by_chance(r);
    for (int64_t l = 0; l < d->layers; l++) {
        decoder_tensor norm = decoder_last_norm(d, l);
        d->has[TENSOR_LAYER_OUTPUT_SCALE] &= norm != TENSOR_COUNT && d->has[norm];
    }
    d->has[TENSOR_OUTPUT] = by_chance(r);
    d->renamed[TENSOR_OUTPUT_NORM] = by_chance(r);
    d->renamed[TENSOR_EXP_PROBS_B] = by_chance(r);
    if (d->rope[0].factors)
        d->has[TENSOR_ROPE_FREQS + random_below(r, 3)] = 1;
}

/* Returns true if random_sizes sets the key's field. */
static bool is_size(const char *name)
{
    if (strncmp(name, "rope_section_", strlen("rope_section_")) == 0)
        return true; /* the three depend on each other */
    static const char *const sizes[] = {
        "layers",
        "hidden",
        "experts",
        "experts_used",
        "expert_ff",
        "shared_ff",
        "ff",
        "cache_layer",
        "recurrence",
        "latent",
        "q_rank",
        "value_dim",
        "num_heads",
        "num_kv_heads",
        "head_dim",
        "expert_groups",
        "delta_key_heads",
        "expert_groups_used",
        "delta_value_heads",
        "delta_head_dim",
    };
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        if (strcmp(sizes[i], name) == 0)
            return true;
    return false;
}

static decoder random_decoder(random_source *r)
{
    decoder d = { .architecture = by_chance(r) ? "custom" : "llama-4.x" };
    random_sizes(&d, r);
    for (const setting *s = decoder_settings; s->key.name; s++) {
        if (is_size(s->key.name))
            continue;
        if (s->kind == SETTING_FACTORS)
            d.rope[0].factors = setting_matters(s, &d) && by_chance(r);
        if (d.latent && d.rope[0].style == ROPE_NONE)
            d.rope[0].style = ROPE_NEOX;
        if (s->kind != SETTING_VALUE)
            continue;
        bool takes = setting_matters(s, &d) && (s->key.required || by_chance(r));
        setting_store(s, &d, 0, takes ? random_value(s, r) : setting_default(s, &d, 0));
    }
    random_lists(&d, r);
    if (d.per_layer && (d.activation == ACTIVATION_XIELU || d.activation == ACTIVATION_SWIGLU_OAI))
        d.activation = ACTIVATION_GELU;
    for (int i = 0; i < 2; i++)
        for (int64_t l = 0; l < d.layers; l++)
            if (d.at[l].attends && (d.rope[i].dims > d.at[l].head_dim || d.rope[1].factors))
                d.rope[i].dims = 32;
    for (const setting *s = decoder_settings; s->key.name && d.rope[0].style == ROPE_NONE; s++)
        if (strcmp(s->key.name, "rope_dims") == 0)
            d.rope[0].dims = setting_default(s, &d, 0);
    if (d.latent)
        d.rope[0].dims = d.rope[1].dims = 32;
    if (d.window == 0 || d.rope[1].style == ROPE_NONE)
        d.rope[1].dims = d.rope[0].dims;
    d.rope[1].factors = d.rope[0].factors && d.rope[1].factors && d.rope[1].dims == d.rope[0].dims;
    if (d.window == 0 || d.rope[1].style == ROPE_NONE)
        d.rope[1].factors = d.rope[0].factors;
    random_tensors(&d, r);
    random_formats(&d, r);
    if (decoder_lacks_prompts(&d)) /* because of a format */
        while (d.m_count > 1 && decoder_is_prompt(d.m[d.m_count - 1]))
            d.m[--d.m_count] = 0;
    return d;
}

ARENA_TEST(parsing_inverts_printing)
{
    enum { DECODERS = 2000 };
    for (uint64_t seed = 1; seed <= DECODERS; seed++) {
        if (!test_takes_row(seed, EACH))
            continue;
        arena *scratch = arena_new_in(a);
        random_source r = { seed };
        decoder d = random_decoder(&r), back;
        strbuf text = strbuf_new(scratch);
        decoder_print(&text, &d, NULL);
        diags problems = diags_new(scratch);
        bool right = parse_decoder(scratch, text.text, &back, &problems);
        const char *difference = right ? decoder_difference(scratch, &d, &back) : "errors";
        if (difference || problems.list.count) {
            diags_render(&problems, &text, false);
            fail_msg("seed %llu: %s\n%s", (unsigned long long)seed, difference, text.text);
        }
        arena_free(scratch);
    }
}

/* Decoders that cover every feature with its own limits. */
static const char *const bases[] = {
    "hidden = 256\nff = 512\nnum_heads = 4\nnum_kv_heads = 1\nhead_dim = 512\nvocab = 512\n"
    "window = 128\nwindow_layers = 0\nrope_scaling = yarn\nrope_factor = 4\n"
    "rope_original_context = 4096\ntemperature_scale = 0.1\ntemperature_length = 100\n",
    "hidden = 256\nexperts = 64\nexperts_used = 2\nexpert_ff = 256\nshared_ff = 256\n"
    "expert_layers = 1..3\nff = 512\nnum_heads = 4\nnum_kv_heads = 1\nvocab = 512\n"
    "expert_groups = 32\nexpert_groups_used = 32\n",
    "hidden = 256\nff = 512\nlatent = 256\nq_rank = 128\nvalue_dim = 64\nnum_heads = 4\n"
    "head_dim = 96\nrope_dims = 32\nvocab = 512\n",
    "hidden = 256\nff = 512\nnum_heads = 4\nnum_kv_heads = 1\nvocab = 512\n"
    "recurrent_layers = 0\ndelta_key_heads = 1\ndelta_value_heads = 8\ndelta_head_dim = 64\n",
};

/* Returns the errors of a base with one line replaced or added. */
static diags errors_with(arena *a, const char *base, const char *name, const char *value)
{
    strbuf text = strbuf_new(a);
    spec made;
    diags d = diags_new(a);
    strbuf_put(&text, "[ptxgen]\ntargets = sm_80\n[decoder]\n");
    strbuf_format(&text, "%s = %s\n", name, value);
    if (strcmp(name, "layers") != 0)
        strbuf_put(&text, "layers = 2\n");
    if (strcmp(name, "m") != 0)
        strbuf_put(&text, "m = 512\n");
    strbuf_put(&text, "weights = q8_0\n");
    for (const char *at = base; *at; at += strcspn(at, "\n") + 1)
        if (strncmp(at, name, strlen(name)) != 0 || at[strlen(name)] != ' ')
            strbuf_bytes(&text, at, strcspn(at, "\n") + 1);
    spec_parse(a, "s.ini", text.text, text.length, families, &model_storey,
               &(const spec_overrides){ 0 }, &made, &d);
    return d;
}

/* Limits of one key or of two keys must be reported at a key. A kernel's limit would be reported at
 * the section on line 3. */
ARENA_TEST(limits_of_keys_are_those_of_the_kernels)
{
    enum { SECTION_LINE = 3 };
    for (size_t b = 0; b < sizeof bases / sizeof *bases; b++)
        for (const setting *s = decoder_settings; s->key.name; s++)
            for (int largest = 0; largest < 2; largest++) {
                const key *k = &s->key;
                bool is_number = s->kind == SETTING_VALUE && !k->choices;
                if (!is_number && strcmp(k->name, "m") != 0)
                    continue;
                arena *scratch = arena_new_in(a);
                int64_t unit = k->multiple_of > 1 ? k->multiple_of : 1;
                const char *value =
                    k->real ? real_text(scratch, largest ? k->real->max : k->real->min)
                            : arena_format(scratch, "%lld",
                                           (long long)(largest ? k->max / unit * unit : k->min));
                diags d = errors_with(scratch, bases[b], k->name, value);
                for (size_t i = 0; i < d.list.count; i++)
                    if (d.list.items[i].where.line == SECTION_LINE &&
                        d.list.items[i].code != DIAG_MISSING_KEY &&
                        d.list.items[i].code != DIAG_SHARED_MEMORY) /* limit of num_heads *
                                                                       head_dim */
                        fail_msg("%s = %s: %s", k->name, value, d.list.items[i].message);
                arena_free(scratch);
            }
}
