/* Headers of real models and small models of all architectures: their decoders, or the reason why
 * there is none. */
#include <stdlib.h>

#include "base/os.h"
#include "model_sample.h"
#include "test_arena.h"

typedef struct known_file {
    const char *name, *expected; /* a section, or messages */
} known_file;

/* Reads files of a folder and compares their sections or messages. */
static void check_files(arena *a, const char *folder, const known_file *files, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        gguf_file file;
        gguf_error error;
        if (!gguf_open(arena_format(a, "%s/%s.gguf", folder, files[i].name), &file, &error))
            fail_msg("%s", error.message);
        outcome o = read_file(a, &file, &usual_options);
        if (o.right && files[i].expected[0] == '[')
            check_decoder(a, files[i].name, &o.model.decoder, files[i].expected);
        else
            assert_string_equal(o.messages, files[i].expected);
        gguf_close(&file);
    }
}

ARENA_TEST(headers_of_real_models_become_their_decoders)
{
    static const known_file files[] = {
        { "llama_3.1_8b",
          "[decoder]\narchitecture = llama\nlayers = 32\nhidden = 4096\nff = 14336\n"
          "num_heads = 32\nnum_kv_heads = 8\nvocab = 128256\nrope_base = 500000\n"
          "rope_factors = tensor\nweights = q4_k\nweights.output = q6_k\n"
          "weights.attn_v = q6_k: 0..3, 6, 9, 12, 15, 18, 21, 24, 27, 28..31\n"
          "weights.ffn_down = q6_k: 0..3, 6, 9, 12, 15, 18, 21, 24, 27, 28..31\n" },
        { "qwen2.5_7b",
          "[decoder]\narchitecture = qwen2\nlayers = 28\nhidden = 3584\nff = 18944\n"
          "num_heads = 28\nnum_kv_heads = 4\nvocab = 152064\nnorm_epsilon = 1e-6\nrope = neox\n"
          "rope_base = 1000000\nbiases = attn_q, attn_k, attn_v\nweights = q5_k\n"
          "weights.output = q6_k\nweights.attn_v = q6_k: 0..2, 5..20:3, 23..27\n"
          "weights.ffn_down = q6_k: 0..2, 5..20:3, 23..27\n" },
        { "qwen3_4b", "[decoder]\narchitecture = qwen3\nlayers = 36\nhidden = 2560\nff = 9728\n"
                      "num_heads = 32\nnum_kv_heads = 8\nhead_dim = 128\nvocab = 151936\n"
                      "norm_epsilon = 1e-6\nrope = neox\nrope_base = 1000000\n"
                      "norms = attn_q_norm, attn_k_norm\noutput = tied\nweights = q8_0\n" },
        { "gemma_3_12b",
          "[decoder]\narchitecture = gemma3\nlayers = 48\nhidden = 3840\nff = 15360\n"
          "num_heads = 16\nnum_kv_heads = 8\nhead_dim = 256\nvocab = 262208\n"
          "norm_epsilon = 1e-6\nactivation = gelu\nwindow = 1024\n"
          "window_layers = 0..4, 6..10, 12..16, 18..22, 24..28, 30..34, 36..40, 42..46\n"
          "rope = neox\nrope_base = 1000000\nrope_scaling = linear\nrope_factor = 8\n"
          "rope_base.window = 10000\nrope_scaling.window = none\n"
          "embedding_scale = 61.96773353931867\noutput = tied\n"
          "norms = attn_q_norm, attn_k_norm, post_attention_norm, post_ffw_norm\n"
          "weights = q4_0\nweights.token_embd = q6_k\n" },
        { "phi_4_mini",
          "[decoder]\narchitecture = phi3\nlayers = 32\nhidden = 3072\nff = 8192\n"
          "num_heads = 24\nnum_kv_heads = 8\nvocab = 200064\nrope = neox\nrope_dims = 96\n"
          "rope_magnitude = 1.190238\nrope_factors = long\nfused = attn_qkv, ffn_gate_up\n"
          "output = tied\nweights = q4_k\nweights.token_embd = q6_k\n"
          "weights.attn_qkv = q5_k\nweights.ffn_down = q6_k: 0..3, 6..24:3, 27..31\n" },
        { "command_r7b",
          "[decoder]\narchitecture = cohere2\nlayers = 32\nhidden = 4096\nff = 14336\n"
          "num_heads = 32\nnum_kv_heads = 8\nhead_dim = 128\nvocab = 256000\nnorm = layer\n"
          "branches = parallel\nwindow = 4096\nwindow_layers = 0..2, 4..6, 8..10, 12..14, 16..18, "
          "20..22, 24..26, 28..30\nrope = norm\nrope_base = 50000\nno_rope_layers = 3..31:4\n"
          "logit_scale = 0.25\noutput = tied\nweights = q4_k\nweights.token_embd = q6_k\n"
          "weights.attn_v = q6_k: 0..3, 6..24:3, 27..31\n"
          "weights.ffn_down = q6_k: 0..3, 6..24:3, 27..31\n" },
        { "glm_4.5_air",
          "[decoder]\narchitecture = glm4moe\nlayers = 46\nhidden = 4096\nexperts = 128\n"
          "experts_used = 8\nexpert_ff = 1408\nshared_ff = 1408\nexpert_layers = 1..45\n"
          "ff = 10944\nnum_heads = 96\nnum_kv_heads = 8\nhead_dim = 128\nvocab = 151552\n"
          "gating = sigmoid\nexperts_normed = yes\nrope = neox\nrope_base = 1000000\n"
          "rope_dims = 64\nbiases = attn_q, attn_k, attn_v, exp_probs_b\n"
          "ffn_norm = post_attention_norm\nweights = q4_k\n"
          "weights.attn_v = q6_k: 0..4, 7..37:3, 40..45\nweights.ffn_down = q8_0\n"
          "weights.ffn_down_exps = q5_0, q8_0: 1..4, 7..37:3, 40..45\n"
          "weights.ffn_down_shexp = q5_0, q8_0: 1..4, 7..37:3, 40..45\nweights.output = q6_k\n" },
        { "mixtral_8x7b",
          "[decoder]\narchitecture = llama\nlayers = 32\nhidden = 4096\nexperts = 8\n"
          "experts_used = 2\nexpert_ff = 14336\nnum_heads = 32\nnum_kv_heads = 8\n"
          "vocab = 32000\nexperts_normed = yes\nrope_base = 1000000\nweights = q4_k\n"
          "weights.attn_k = q8_0\nweights.attn_v = q8_0\nweights.attn_output = q5_k\n"
          "weights.ffn_down_exps = q6_k: 0..3, 6..24:3, 27..31\nweights.output = q6_k\n" },
        { "qwen3_30b_a3b",
          "[decoder]\narchitecture = qwen3moe\nlayers = 48\nhidden = 2048\nexperts = 128\n"
          "experts_used = 8\nexpert_ff = 768\nnum_heads = 32\nnum_kv_heads = 4\n"
          "head_dim = 128\nvocab = 151936\nnorm_epsilon = 1e-6\nexperts_normed = yes\n"
          "rope = neox\nrope_base = 1000000\nnorms = attn_q_norm, attn_k_norm\n"
          "weights = q4_k\nweights.attn_v = q6_k: 0..5, 8..38:3, 41..47\n"
          "weights.ffn_down_exps = q6_k: 0..5, 8..38:3, 41..47\nweights.output = q6_k\n" },
        { "gpt_oss_20b",
          "[decoder]\narchitecture = gpt-oss\nlayers = 24\nhidden = 2880\nexperts = 32\n"
          "experts_used = 4\nexpert_ff = 2880\nnum_heads = 64\nnum_kv_heads = 8\n"
          "head_dim = 64\nvocab = 201088\nactivation = swiglu_oai\n"
          "gating = softmax_of_chosen\nsinks = add\nwindow = 128\nwindow_layers = 0..22:2\n"
          "rope = neox\nrope_base = 150000\nrope_scaling = yarn\nrope_factor = 32\n"
          "rope_original_context = 4096\nrope_magnitude = 1.3465735902799727\n"
          "biases = attn_q, attn_k, attn_v, attn_output, ffn_gate_inp, ffn_gate_exps, "
          "ffn_up_exps, ffn_down_exps\nffn_norm = post_attention_norm\nweights = q8_0\n"
          "weights.ffn_gate_exps = mxfp4\nweights.ffn_up_exps = mxfp4\n"
          "weights.ffn_down_exps = mxfp4\n" },
        { "deepseek_v2_lite",
          "[decoder]\narchitecture = deepseek2\nlayers = 27\nhidden = 2048\nexperts = 64\n"
          "experts_used = 6\nexpert_ff = 1408\nshared_ff = 2816\nexpert_layers = 1..26\nff = "
          "10944\n"
          "latent = 512\nvalue_dim = 128\nnum_heads = 16\nhead_dim = 192\nvocab = 102400\n"
          "norm_epsilon = 1e-6\nrope_dims = 64\nrope_scaling = yarn\nrope_factor = 40\n"
          "rope_original_context = 4096\nattention_scale = 0.11472138679292612\n"
          "weights = q4_k\nweights.attn_k_b = q5_0\nweights.ffn_down = q8_0\n"
          "weights.ffn_down_exps = q5_0, q8_0: 1, 2..20:3, 23..26\n"
          "weights.ffn_down_shexp = q6_k: 1, 2..20:3, 23..26\nweights.output = q6_k\n" },
        { "deepseek_v2_lite_2024",
          "[decoder]\narchitecture = deepseek2\nlayers = 27\nhidden = 2048\nexperts = 64\n"
          "experts_used = 6\nexpert_ff = 1408\nshared_ff = 2816\nexpert_layers = 1..26\n"
          "ff = 10944\n"
          "latent = 512\nvalue_dim = 128\nnum_heads = 16\nhead_dim = 192\nvocab = 102400\n"
          "norm_epsilon = 1e-6\nrope_dims = 64\nrope_scaling = yarn\nrope_factor = 40\n"
          "rope_original_context = 4096\nattention_scale = 0.11472138679292612\n"
          "fused = attn_kv_b\nweights = q4_k\nweights.ffn_down = q8_0\n"
          "weights.ffn_down_exps = q5_0, q8_0: 1, 2..20:3, 23..26\n"
          "weights.ffn_down_shexp = q6_k: 1, 2..20:3, 23..26\nweights.output = q6_k\n" },
        { "qwen3_next_80b_a3b",
          "[decoder]\narchitecture = qwen3next\nlayers = 48\nhidden = 2048\nexperts = 512\n"
          "experts_used = 10\nexpert_ff = 512\nshared_ff = 512\nnum_heads = 16\n"
          "num_kv_heads = 2\nhead_dim = 256\nvocab = 151936\nnorm_epsilon = 1e-6\n"
          "experts_normed = yes\nshared_gate = sigmoid\n"
          "recurrent_layers = 0..2, 4..6, 8..10, 12..14, 16..18, 20..22, 24..26, 28..30, "
          "32..34, 36..38, 40..42, 44..46\ndelta_key_heads = 16\ndelta_value_heads = 32\n"
          "delta_head_dim = 128\nattention_gate = sigmoid\nrope = neox\nrope_base = 10000000\n"
          "rope_dims = 64\nnorms = attn_q_norm, attn_k_norm\nffn_norm = post_attention_norm\n"
          "weights = q4_k\nweights.attn_v = q6_k: 3, 11, 23, 35, 43, 47\n"
          "weights.attn_qkv = q5_k\nweights.ffn_down_exps = q6_k: 0..5, 8..38:3, 41..47\n"
          "weights.ffn_down_shexp = q6_k: 0..5, 8..38:3, 41..47\nweights.output = q6_k\n" },
        { "qwen3.5_27b",
          "[decoder]\narchitecture = qwen35\nlayers = 64\nhidden = 5120\nff = 17408\n"
          "num_heads = 24\nnum_kv_heads = 4\nhead_dim = 256\nvocab = 248320\n"
          "norm_epsilon = 1e-6\n"
          "recurrent_layers = 0..2, 4..6, 8..10, 12..14, 16..18, 20..22, 24..26, 28..30, "
          "32..34, 36..38, 40..42, 44..46, 48..50, 52..54, 56..58, 60..62\n"
          "delta_key_heads = 16\ndelta_value_heads = 48\ndelta_head_dim = 128\n"
          "delta_layout = tiled\nattention_gate = sigmoid\nrope = neox\nrope_base = 10000000\n"
          "rope_dims = 64\nnorms = attn_q_norm, attn_k_norm\nffn_norm = post_attention_norm\n"
          "weights = q4_k\nweights.attn_v = q6_k: 3, 7..55:12, 59, 63\n"
          "weights.attn_qkv = q5_k\nweights.ffn_down = q6_k: 0..7, 10..52:3, 55..63\n"
          "weights.output = q6_k\n" },
        { "lfm2_8b_a1b",
          "[decoder]\narchitecture = lfm2moe\nlayers = 24\nhidden = 2048\nexperts = 32\n"
          "experts_used = 4\nexpert_ff = 1792\nexpert_layers = 2..23\nff = 7168\n"
          "num_heads = 32\nnum_kv_heads = 8\nvocab = 65536\ngating = sigmoid\n"
          "experts_normed = yes\n"
          "recurrent_layers = 0, 1, 3..5, 7..9, 11..13, 15..17, 19, 20, 22, 23\n"
          "recurrence = short_conv\nconv_kernel = 3\nrope = neox\nrope_base = 1000000\n"
          "biases = exp_probs_b\nnorms = attn_q_norm, attn_k_norm\nrenamed = token_embd_norm\n"
          "output = tied\nweights = q4_k\nweights.token_embd = q6_k\n"
          "weights.attn_v = q6_k: 2, 14, 21\nweights.ffn_down = q6_k\n"
          "weights.ffn_down_exps = q6_k: 2..17:3, 20..23\n" },
        { "nemotron_h_8b",
          "[decoder]\narchitecture = nemotron_h\nlayers = 52\nhidden = 4096\n"
          "recurrent_layers = 0..6:2, 9..17:2, 20..28:2, 31..39:2, 42..50:2\n"
          "recurrence = mamba2\nattention_layers = 7..40:11\n"
          "ffn_layers = 1, 3, 5, 8..16:2, 19..27:2, 30..38:2, 41..51:2\nff = 21504\n"
          "num_heads = 32\nnum_kv_heads = 8\nvocab = 131072\nbranches = parallel\n"
          "activation = relu2\nffn_gate = no\nconv_kernel = 4\ninner = 8192\n"
          "state_size = 128\nstate_heads = 128\nstate_groups = 8\nstate_norm = ssm_norm\n"
          "rope = none\nweights = q4_k\nweights.attn_v = q6_k: 29\n"
          "weights.ffn_down = q6_k: 1, 3, 5, 8, 14, 23, 32, 38, 41, 45..51:2\n"
          "weights.output = q6_k\n" },
    };
    const char *folder = getenv("PTXGEN_REAL_HEADERS");
    if (!folder)
        skip();
    check_files(a, folder, files, sizeof files / sizeof *files);
}

#define TINY(sizes) "[decoder]\nvocab = 320\nnorm_epsilon = 1e-6\nmax_seq_len = 64\n" sizes

/* The small models in the folder PTXGEN_MODELS; skipped without it. */
ARENA_TEST(models_beside_the_project_become_their_decoders)
{
    static const known_file files[] = {
        { "llama",
          TINY("architecture = llama\nlayers = 2\nhidden = 256\nff = 256\nnum_heads = 8\n"
               "num_kv_heads = 2\nrope_base = 500000\nrope_factors = tensor\nweights = q4_k\n"
               "weights.attn_v = q6_k: 1\nweights.ffn_down = q6_k: 1\nweights.output = q6_k\n") },
        { "llama_bias",
          TINY("architecture = llama\nlayers = 2\nhidden = 256\nff = 96\nnum_heads = 3\n"
               "num_kv_heads = 1\nhead_dim = 64\nrope_scaling = linear\nrope_factor = 2\n"
               "biases = attn_q, attn_k, attn_v, attn_output, ffn_gate, ffn_up, ffn_down\n"
               "output = tied\nweights = q5_k\nweights.token_embd = q6_k\n"
               "weights.attn_v = q6_k: 1\nweights.attn_output = q5_1\n"
               "weights.ffn_down = q5_1: 0, q8_0: 1\n") },
        { "llama_types",
          TINY("architecture = llama\nlayers = 4\nhidden = 256\nff = 256\nnum_heads = 4\n"
               "num_kv_heads = 1\nhead_dim = 64\nrope_scaling = yarn\nrope_factor = 4\n"
               "rope_original_context = 16\nrope_magnitude = 1.138629436111989\noutput = tied\n"
               "weights = q6_k\nweights.attn_q = q5_1, q2_k: 1, iq2_s: 2, tq1_0: 3\n"
               "weights.attn_k = f32, f16: 0, iq3_xxs: 2, tq2_0: 3\n"
               "weights.attn_v = bf16, q3_k: 1, mxfp4: 3, iq3_s: 2\n"
               "weights.attn_output = q4_0, q4_k: 1, iq1_s: 2, nvfp4: 3\n"
               "weights.ffn_gate = q5_k, q4_1: 0, iq1_m: 2, q1_0: 3\n"
               "weights.ffn_up = q5_0, iq4_nl: 2, iq2_xxs: 1, q2_0: 3\n"
               "weights.ffn_down = q8_0: 0, iq4_xs: 2, iq2_xs: 1\n") },
        { "qwen2",
          TINY("architecture = qwen2\nlayers = 2\nhidden = 224\nff = 96\nnum_heads = 7\n"
               "num_kv_heads = 1\nrope = neox\nrope_base = 1000000\noutput = tied\n"
               "biases = attn_q, attn_k, attn_v\nweights = q5_0\nweights.token_embd = q8_0\n"
               "weights.attn_v = q8_0: 1\nweights.ffn_down = q8_0: 1\n") },
        { "qwen3",
          TINY("architecture = qwen3\nlayers = 2\nhidden = 256\nff = 96\nnum_heads = 2\n"
               "num_kv_heads = 1\nrope = neox\nrope_base = 1000000\noutput = tied\n"
               "norms = attn_q_norm, attn_k_norm\nweights = q4_k\nweights.token_embd = q6_k\n"
               "weights.attn_v = q6_k: 1\nweights.ffn_down = q5_0, q8_0: 1\n") },
        { "gemma2",
          TINY("architecture = gemma2\nlayers = 2\nhidden = 256\nff = 128\nnum_heads = 2\n"
               "num_kv_heads = 1\nhead_dim = 64\nactivation = gelu\nrope = neox\nwindow = 12\n"
               "window_layers = 0\nattention_softcap = 6\nfinal_softcap = 15\n"
               "embedding_scale = 16\noutput = tied\nnorms = post_attention_norm, post_ffw_norm\n"
               "weights = q4_k\nweights.token_embd = q6_k\nweights.attn_v = q5_k\n"
               "weights.attn_output = q5_0\nweights.ffn_down = q5_0\n") },
        { "gemma3",
          TINY("architecture = gemma3\nlayers = 7\nhidden = 160\nff = 32\nnum_heads = 2\n"
               "num_kv_heads = 1\nhead_dim = 64\nactivation = gelu\nrope = neox\nwindow = 8\n"
               "window_layers = 0..4, 6\nrope_base = 1000000\nrope_scaling = linear\n"
               "rope_factor = 8\nrope_base.window = 10000\nrope_scaling.window = none\n"
               "embedding_scale = 12.649110640673518\noutput = tied\nweights = q4_0\n"
               "norms = attn_q_norm, attn_k_norm, post_attention_norm, post_ffw_norm\n"
               "weights.token_embd = q8_0\nweights.ffn_down = q4_1\n") },
        { "phi3", TINY("architecture = phi3\nlayers = 2\nhidden = 256\nff = 64\nnum_heads = 4\n"
                       "num_kv_heads = 2\nrope = neox\nrope_magnitude = 1.19\nrope_factors = long\n"
                       "fused = attn_qkv, ffn_gate_up\noutput = tied\nweights = q4_k\n"
                       "weights.token_embd = q6_k\nweights.attn_qkv = q5_k\n"
                       "weights.ffn_down = q5_0, q8_0: 1\n") },
        { "granite",
          TINY("architecture = granite\nlayers = 2\nhidden = 96\nff = 96\nnum_heads = 3\n"
               "num_kv_heads = 1\nattention_scale = 0.0625\nembedding_scale = 12\n"
               "residual_scale = 0.22\nlogit_scale = 0.125\noutput = tied\nweights = q8_0\n") },
        { "mistral3",
          TINY("architecture = mistral3\nlayers = 2\nhidden = 256\nff = 128\nnum_heads = 3\n"
               "num_kv_heads = 1\nhead_dim = 64\nrope_base = 1000000\nrope_scaling = yarn\n"
               "rope_factor = 4\nrope_original_context = 16\ntemperature_scale = 0.1\n"
               "temperature_length = 16\noutput = tied\nweights = iq4_xs\n"
               "weights.token_embd = q6_k\nweights.attn_v = q5_k\n"
               "weights.attn_output = iq4_nl\nweights.ffn_down = iq4_nl\n") },
        { "seed_oss",
          TINY("architecture = seed_oss\nlayers = 2\nhidden = 256\nff = 96\nnum_heads = 3\n"
               "num_kv_heads = 1\nhead_dim = 64\nrope = neox\nrope_base = 10000000\n"
               "biases = attn_q, attn_k, attn_v\nffn_norm = post_attention_norm\n"
               "weights = q4_k\nweights.attn_v = q6_k: 1\nweights.attn_output = q5_0\n"
               "weights.ffn_down = q5_0, q8_0: 1\nweights.output = q6_k\n") },
        { "stories260K",
          "[decoder]\narchitecture = llama\nlayers = 5\nhidden = 64\nff = 172\nnum_heads = 8\n"
          "num_kv_heads = 4\nvocab = 512\nmax_seq_len = 512\noutput = tied\nweights = f32\n" },
        { "stories260K_q4",
          "[decoder]\narchitecture = llama\nlayers = 5\nhidden = 256\nff = 256\nnum_heads = 32\n"
          "num_kv_heads = 16\nvocab = 512\nnorm_epsilon = 2.5e-6\nmax_seq_len = 512\n"
          "output = tied\nweights = q4_k\nweights.token_embd = q6_k\n"
          "weights.attn_v = q6_k: 2, 4\nweights.ffn_down = q6_k: 2, 4\n" },
        { "mixtral",
          TINY("architecture = llama\nlayers = 2\nhidden = 256\nexperts = 4\nexperts_used = 2\n"
               "expert_ff = 64\nnum_heads = 4\nnum_kv_heads = 2\nhead_dim = 32\n"
               "experts_normed = yes\noutput = tied\nweights = q4_k\nweights.token_embd = q6_k\n"
               "weights.attn_k = q8_0\nweights.attn_v = q8_0\nweights.attn_output = q5_1\n"
               "weights.ffn_down_exps = q5_0: 0, q8_0: 1\n") },
        { "qwen3moe",
          TINY("architecture = qwen3moe\nlayers = 2\nhidden = 256\nexperts = 7\n"
               "experts_used = 3\nexpert_ff = 32\nnum_heads = 4\nnum_kv_heads = 1\n"
               "head_dim = 32\nexperts_normed = yes\nrope = neox\nrope_base = 1000000\n"
               "norms = attn_q_norm, attn_k_norm\noutput = tied\nweights = q4_k\n"
               "weights.token_embd = q6_k\nweights.attn_v = q6_k: 1\nweights.attn_output = q5_0\n"
               "weights.ffn_down_exps = q5_0: 0, q8_0: 1\n") },
        { "granitemoe",
          TINY("architecture = granitemoe\nlayers = 2\nhidden = 256\nexperts = 4\n"
               "experts_used = 2\nexpert_ff = 32\nnum_heads = 2\nnum_kv_heads = 1\nhead_dim = 64\n"
               "experts_normed = yes\nattention_scale = 0.03125\nembedding_scale = 12\n"
               "residual_scale = 0.22\nlogit_scale = 0.125\noutput = tied\nweights = q5_k\n"
               "weights.token_embd = q6_k\nweights.attn_v = q6_k: 1\nweights.attn_output = q5_1\n"
               "weights.ffn_down_exps = q5_1: 0, q8_0: 1\n") },
        { "gpt_oss",
          "[decoder]\narchitecture = gpt-oss\nvocab = 320\nnorm_epsilon = 1e-6\nlayers = 2\n"
          "hidden = 160\nexperts = 4\nexperts_used = 2\nexpert_ff = 64\nnum_heads = 4\n"
          "num_kv_heads = 1\nhead_dim = 32\nactivation = swiglu_oai\n"
          "gating = softmax_of_chosen\nsinks = add\nwindow = 12\nwindow_layers = 0\nrope = neox\n"
          "rope_base = 150000\nrope_scaling = yarn\nrope_factor = 32\n"
          "rope_original_context = 4096\nrope_magnitude = 1.3465735902799727\n"
          "biases = attn_q, attn_k, attn_v, attn_output, ffn_gate_inp, ffn_gate_exps, "
          "ffn_up_exps, ffn_down_exps\nffn_norm = post_attention_norm\nweights = q8_0\n"
          "weights.ffn_gate_exps = mxfp4\nweights.ffn_up_exps = mxfp4\n"
          "weights.ffn_down_exps = mxfp4\n" },
        { "deepseek2",
          TINY("architecture = deepseek2\nlayers = 2\nhidden = 256\nexperts = 4\n"
               "experts_used = 2\nexpert_ff = 32\nshared_ff = 64\nexpert_layers = 1\nff = 64\n"
               "latent = 128\nq_rank = 64\nvalue_dim = 32\nnum_heads = 4\nhead_dim = 64\n"
               "gating = sigmoid\nexperts_normed = yes\nexperts_scale = 2.5\nrope_dims = 32\n"
               "rope_scaling = yarn\nrope_factor = 4\nrope_original_context = 16\n"
               "attention_scale = 0.15070352262556408\nbiases = exp_probs_b\noutput = tied\n"
               "weights = q4_k\nweights.token_embd = q6_k\nweights.attn_q_b = q5_0\n"
               "weights.attn_k_b = q5_0\nweights.attn_v_b = q5_0\nweights.attn_output = q5_0\n"
               "weights.ffn_down = q5_0\nweights.ffn_down_exps = q8_0\n"
               "weights.ffn_down_shexp = q5_0\n") },
        { "qwen3next",
          TINY("architecture = qwen3next\nlayers = 2\nhidden = 256\nexperts = 4\n"
               "experts_used = 2\nexpert_ff = 32\nshared_ff = 32\nnum_heads = 2\n"
               "num_kv_heads = 1\nhead_dim = 64\nexperts_normed = yes\nshared_gate = sigmoid\n"
               "recurrent_layers = 0\ndelta_key_heads = 2\ndelta_value_heads = 4\n"
               "delta_head_dim = 32\nattention_gate = sigmoid\nrope = neox\nrope_dims = 16\n"
               "norms = attn_q_norm, attn_k_norm\nffn_norm = post_attention_norm\noutput = tied\n"
               "weights = q4_k\nweights.token_embd = q6_k\nweights.attn_v = q6_k\n"
               "weights.attn_output = q5_0\nweights.attn_qkv = q5_k\nweights.ssm_out = q5_0\n"
               "weights.ffn_down_exps = q5_0: 0, q8_0: 1\nweights.ffn_down_shexp = q5_0\n") },
    };
    const char *folder = getenv("PTXGEN_MODELS");
    if (!folder || !os_exists(folder))
        skip();
    check_files(a, folder, files, sizeof files / sizeof *files);
}

/* The keys that a header expects in a file, for a section with all of them. */

static const char llama_section[] =
    "[decoder]\narchitecture = llama\nlayers = 2\nhidden = 256\nff = 512\nnum_heads = 4\n"
    "vocab = 300\nweights = f32\nmax_seq_len = 32\n"
    "metadata.block_count = 2\nmetadata.embedding_length = 256\n"
    "metadata.attention.head_count = 4\nmetadata.feed_forward_length = 512\n"
    "metadata.attention.layer_norm_rms_epsilon = 1e-5\n";

static decoder_key key_of(arena *a, const char *section_text, const char *metadata,
                          const char *name, const char **edited)
{
    diags found = diags_new(a);
    decoder *d = arena_alloc(a, sizeof *d);
    model *again = arena_alloc(a, sizeof *again);
    decoder_file file;
    assert_true(parse_decoder(a, arena_format(a, "%s%s", section_text, metadata), d, &found));
    if (!model_expect(a, d, again, &file, &found))
        fail_msg("%s", found.list.items[0].message);
    *edited = decoder_edited(a, d, &again->decoder);
    for (size_t i = 0; i < file.key_count; i++)
        if (strcmp(file.keys[i].name, name) == 0)
            return file.keys[i];
    fail_msg("unknown key %s", name);
    return file.keys[0];
}

ARENA_TEST(a_key_that_determines_the_decoder_is_compared)
{
    static const char context[] = "metadata.context_length = 64\n",
                      yarn[] =
                          "metadata.context_length = 64\nrope_scaling = yarn\nrope_factor = 4\n"
                          "rope_original_context = 64\nrope_magnitude = 1.1386294361119891\n"
                          "metadata.rope.scaling.type = yarn\n"
                          "metadata.rope.scaling.factor = 4\n";
    static const struct {
        const char *metadata, *name;
        decoder_key_use use;
        const char *edited;
    } cases[] = {
        { context, "llama.attention.layer_norm_rms_epsilon", DECODER_KEY_REQUIRED, NULL },
        { context, "llama.rope.freq_base", DECODER_KEY_OPTIONAL, NULL },
        { context, "llama.vocab_size", DECODER_KEY_IGNORED, NULL },
        { context, "llama.block_count", DECODER_KEY_IGNORED, NULL }, /* minus the
                                                                        multi-token-prediction
                                                                        layers */
        { context, "llama.context_length", DECODER_KEY_IGNORED, NULL },
        { yarn, "llama.rope.scaling.type", DECODER_KEY_REQUIRED, NULL },
        /* Default of the original context length. */
        { yarn, "llama.context_length", DECODER_KEY_REQUIRED, NULL },
        { "metadata.context_length = 64\nmetadata.attention.sliding_window = 32\n",
          "llama.attention.sliding_window", DECODER_KEY_OPTIONAL, NULL },
        { "metadata.context_length = 64\nrope_base = 500000\n", "llama.rope.freq_base",
          DECODER_KEY_OPTIONAL, "rope_base = 500000, not 10000" },
        { "metadata.context_length = 64\nmetadata.rope.freq_base = 500000\n",
          "llama.rope.freq_base", DECODER_KEY_REQUIRED, "rope_base = 10000, not 500000" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *edited;
        decoder_key wanted = key_of(a, llama_section, cases[i].metadata, cases[i].name, &edited);
        assert_int_equal(wanted.use, cases[i].use);
        if (cases[i].edited)
            assert_string_equal(edited, cases[i].edited);
        else if (edited)
            fail_msg("%u: %s", (unsigned)i, edited);
    }
}

/* A default that depends on the size of the vocabulary, which the file's keys may not state. */
ARENA_TEST(a_default_that_depends_on_the_vocabulary_is_the_section_s)
{
    static const char flash[] =
        "[decoder]\narchitecture = deepseek2\nlayers = 47\nhidden = 512\nexperts = 8\n"
        "experts_used = 2\nexpert_ff = 256\nshared_ff = 512\nexpert_layers = 1..46\nff = 768\n"
        "latent = 256\nvalue_dim = 64\nnum_heads = 8\nhead_dim = 96\nrope_dims = 32\n"
        "vocab = 154880\ngating = sigmoid\nweights = q8_0\n"
        "metadata.block_count = 47\nmetadata.context_length = 131072\n"
        "metadata.embedding_length = 512\nmetadata.feed_forward_length = 768\n"
        "metadata.attention.head_count = 8\nmetadata.attention.head_count_kv = 1\n"
        "metadata.attention.kv_lora_rank = 256\nmetadata.attention.key_length = 288\n"
        "metadata.attention.value_length = 256\nmetadata.attention.key_length_mla = 96\n"
        "metadata.attention.value_length_mla = 64\nmetadata.rope.dimension_count = 32\n"
        "metadata.attention.layer_norm_rms_epsilon = 1e-5\nmetadata.expert_count = 8\n"
        "metadata.expert_used_count = 2\nmetadata.expert_feed_forward_length = 256\n"
        "metadata.expert_shared_count = 2\nmetadata.leading_dense_block_count = 1\n";
    const char *edited;
    decoder_key gating = key_of(a, flash, "", "deepseek2.expert_gating_func", &edited);
    assert_int_equal(gating.use, DECODER_KEY_OPTIONAL);
    if (edited)
        fail_msg("%s", edited);
}

/* gemma3's windowed layers have their own default. All other architectures' windowed layers default
 * to the base of the other layers. */
ARENA_TEST(a_key_with_two_defaults_has_the_last_one)
{
    static const char gemma[] =
        "[decoder]\narchitecture = gemma3\nlayers = 2\nhidden = 256\nff = 512\nnum_heads = 4\n"
        "vocab = 300\nactivation = gelu\nrope = neox\nrope_base = 1e6\nwindow = 16\n"
        "rope_base.window = 10000\nembedding_scale = 16\nmax_seq_len = 32\nweights = f32\n"
        "metadata.block_count = 2\nmetadata.context_length = 64\n"
        "metadata.embedding_length = 256\nmetadata.attention.head_count = 4\n"
        "metadata.feed_forward_length = 512\nmetadata.attention.sliding_window = 16\n"
        "metadata.attention.layer_norm_rms_epsilon = 1e-5\nmetadata.rope.freq_base = 1e6\n";
    const char *edited;
    decoder_key base = key_of(a, gemma, "", "gemma3.rope.freq_base_swa", &edited);
    assert_int_equal(base.use, DECODER_KEY_OPTIONAL);
    assert_string_equal(base.text, "10000");
    base = key_of(a, gemma, "metadata.rope.freq_base_swa = 10000\n", "gemma3.rope.freq_base_swa",
                  &edited);
    assert_int_equal(base.use, DECODER_KEY_OPTIONAL);
    assert_string_equal(base.text, "10000");
    assert_null(edited);
}
