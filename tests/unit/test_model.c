/* From GGUF headers to decoders: the result of each architecture's keys and tensors, and the
 * defaults of absent keys. */
#include "base/os.h"
#include "model/from_gguf/read.h"
#include "model_sample.h"
#include "test_arena.h"

typedef struct right_model {
    const char *what, *architecture, *edits, *section;
} right_model;

static const right_model right_models[] = {
    { "plain", "llama", "", SECTION("architecture = llama\n" OWN_OUTPUT) },
    { "defaults of keys", "llama",
      "-ARCH.attention.head_count_kv\n-ARCH.rope.freq_base\n" BOTH("attn_k.weight", "512 512 q4_K")
          BOTH("attn_v.weight", "512 512 q4_K"),
      "[decoder]\narchitecture = llama\nlayers = 2\nhidden = 512\nff = 768\nnum_heads = 8\n"
      "vocab = 1000\nweights = q4_k\nweights.token_embd = q6_k\nweights.output = q6_k\n" },
    { "numbers of 64 bits, and lists by layer", "llama",
      "ARCH.embedding_length = 512L\nARCH.attention.head_count = [8, 8]\n"
      "ARCH.feed_forward_length = [768, 768]\nARCH.attention.head_count_kv = [2, 2]\n",
      SECTION("architecture = llama\n" OWN_OUTPUT) },
    { "tied output, biases, factors", "llama",
      "-output.weight\nrope_freqs.weight: 32 1 f32\n" QKV_BIASES BOTH("ffn_down.bias", "512 1 f32")
          BOTH("attn_output.bias", "512 1 f32"),
      SECTION("architecture = llama\noutput = tied\nrope_factors = tensor\n"
              "biases = attn_q, attn_k, attn_v, attn_output, ffn_down\n") },
    { "factors of matrices and of their inputs", "llama",
      BOTH("attn_q.scale", "1 1 f32") BOTH("attn_k.scale", "1 1 f32")
          BOTH("attn_v.scale", "1 1 f32") BOTH("attn_output.scale", "1 1 f32")
              BOTH("ffn_gate.scale", "1 1 f32") BOTH("ffn_up.scale", "1 1 f32")
                  BOTH("ffn_down.scale", "1 1 f32")
                      BOTH("ffn_down.input_scale",
                           "1 1 f32") "output.scale: 1 1 f32\noutput.input_scale: 1 1 f32\n",
      SECTION("architecture = llama\nscales = attn_q, attn_k, attn_v, attn_output, ffn_gate, "
              "ffn_up, ffn_down, output\n" OWN_OUTPUT) },
    { "one factor for fused gate and up", "phi3",
      FUSED_QKV FUSED_GATE_UP BOTH("ffn_up.scale", "1 1 f32"),
      SECTION("architecture = phi3\nrope = neox\nfused = attn_qkv, ffn_gate_up\n"
              "scales = ffn_up\nweights.attn_qkv = q5_k\n" OWN_OUTPUT) },
    { "formats by layer", "llama",
      "blk.1.attn_v.weight: 512 128 q6_K\nblk.0.ffn_down.weight: 768 512 q8_0\n",
      SECTION("architecture = llama\n" OWN_OUTPUT
              "weights.attn_v = q6_k: 1\nweights.ffn_down = q8_0: 0\n") },
    { "a head size that is not hidden / heads", "llama",
      "ARCH.attention.key_length = 32\nARCH.attention.value_length = 32\n" BOTH("attn_q.weight",
                                                                                "512 256 q4_K")
          BOTH("attn_k.weight", "512 64 q4_K") BOTH("attn_v.weight", "512 64 q4_K")
              BOTH("attn_output.weight", "256 512 q4_K") "ARCH.rope.dimension_count = 16\n",
      SECTION("architecture = llama\nhead_dim = 32\nrope_dims = 16\n" OWN_OUTPUT) },
    { "the old key of a linear scale", "llama", "ARCH.rope.scale_linear = 4.0\n",
      SECTION("architecture = llama\nrope_scaling = linear\nrope_factor = 4\n" OWN_OUTPUT) },
    { "a scale of 1, or of type none", "llama",
      "ARCH.rope.scaling.type = none\nARCH.rope.scaling.factor = 4.0\n",
      SECTION("architecture = llama\n" OWN_OUTPUT) },
    { "YaRN", "llama",
      "ARCH.rope.scaling.type = yarn\nARCH.rope.scaling.factor = 4.0\n"
      "ARCH.rope.scaling.original_context_length = 32768\n"
      "ARCH.rope.scaling.yarn_beta_fast = 16.0\n"
      "ARCH.rope.scaling.yarn_log_multiplier = 1.0\nARCH.attention.layer_norm_epsilon = 0.5\n",
      SECTION("architecture = llama\nrope_scaling = yarn\nrope_factor = 4\n"
              "rope_original_context = 32768\nrope_beta_fast = 16\n"
              "rope_magnitude = 1.138629436111989\n" OWN_OUTPUT) },
    { "a linear scale, and the context before it", "llama",
      "ARCH.rope.scaling.type = linear\nARCH.rope.scaling.factor = 2.5\n"
      "ARCH.rope.scaling.original_context_length = 4096\n",
      SECTION("architecture = llama\nrope_scaling = linear\nrope_factor = 2.5\n" OWN_OUTPUT) },
    { "no experts", "llama", "ARCH.expert_count = 0\nARCH.expert_used_count = 0\n",
      SECTION("architecture = llama\n" OWN_OUTPUT) },
    { "a window wider than the caches", "qwen2",
      "ARCH.attention.sliding_window = 131072\n" QKV_BIASES "output.bias: 1000 1 f32\n",
      SECTION("architecture = qwen2\nrope = neox\nbiases = attn_q, attn_k, attn_v, "
              "output\n" OWN_OUTPUT) },
    { "no biases, and a key of old files", "qwen2", "ARCH.use_parallel_residual = true\n",
      SECTION("architecture = qwen2\nrope = neox\n" OWN_OUTPUT) },
    { "qwen3", "qwen3", HEAD_NORMS,
      SECTION("architecture = qwen3\nrope = neox\nnorms = attn_q_norm, attn_k_norm\n" OWN_OUTPUT) },
    { "temperature", "mistral3",
      "ARCH.rope.scaling.type = yarn\nARCH.rope.scaling.factor = 16.0\n"
      "ARCH.rope.scaling.original_context_length = 16384\n"
      "ARCH.rope.scaling.yarn_log_multiplier = 1.0\nARCH.attention.temperature_scale = 0.1\n",
      SECTION("architecture = mistral3\nrope_scaling = yarn\nrope_factor = 16\n"
              "rope_original_context = 16384\ntemperature_scale = 0.1\n"
              "temperature_length = 16384\n" OWN_OUTPUT) },
    { "gemma2", "gemma2",
      "ARCH.attention.scale = 0.5\nARCH.attn_logit_softcapping = "
      "50.0\nARCH.final_logit_softcapping = "
      "30.0\n-output.weight\n" NORM("post_attention_norm") NORM("post_ffw_norm"),
      SECTION("architecture = gemma2\nrope = neox\nactivation = gelu\nwindow = 4096\n"
              "window_layers = 0\nattention_softcap = 50\nfinal_softcap = 30\noutput = tied\n"
              "embedding_scale = 22.627416997969522\n"
              "norms = post_attention_norm, post_ffw_norm\n") },
    { "early gemma2 without caps and window", "gemma2",
      "-ARCH.rope.freq_base\n-output.weight\n" NORM("post_attention_norm") NORM("post_ffw_norm"),
      "[decoder]\nlayers = 2\nhidden = 512\nff = 768\nnum_heads = 8\nnum_kv_heads = 2\n"
      "vocab = 1000\nweights = q4_k\nweights.token_embd = q6_k\n"
      "architecture = gemma2\nrope = neox\nactivation = gelu\nwindow = 4096\n"
      "window_layers = 0\nattention_softcap = 50\nfinal_softcap = 30\noutput = tied\n"
      "embedding_scale = 22.627416997969522\n"
      "norms = post_attention_norm, post_ffw_norm\n" },
    { "gemma3 with its own pattern", "gemma3",
      "ARCH.attention.sliding_window = 512\nARCH.attention.sliding_window_pattern = 2\n"
      "ARCH.rope.scaling.type = linear\nARCH.rope.scaling.factor = 8.0\n-output.weight\n" NORM(
          "post_attention_norm") NORM("post_ffw_norm") HEAD_NORMS,
      SECTION("architecture = gemma3\nrope = neox\nactivation = gelu\nwindow = 512\n"
              "window_layers = 0\noutput = tied\nrope_scaling = linear\nrope_factor = 8\n"
              "rope_scaling.window = none\nrope_base.window = 10000\n"
              "embedding_scale = 22.627416997969522\n"
              "norms = attn_q_norm, attn_k_norm, post_attention_norm, post_ffw_norm\n") },
    { "gemma3 without windows", "gemma3",
      NORM("post_attention_norm") NORM("post_ffw_norm") HEAD_NORMS,
      SECTION("architecture = gemma3\nrope = neox\nactivation = gelu\n"
              "embedding_scale = 22.627416997969522\n" OWN_OUTPUT
              "norms = attn_q_norm, attn_k_norm, post_attention_norm, post_ffw_norm\n") },
    { "long factors", "phi3",
      FUSED_QKV FUSED_GATE_UP LONG_FACTORS
      "ARCH.rope.scaling.type = longrope\n"
      "ARCH.rope.scaling.original_context_length = 4096\n"
      "ARCH.rope.scaling.attn_factor = 1.19\nARCH.attention.sliding_window = 2047\n",
      SECTION("architecture = phi3\nrope = neox\nfused = attn_qkv, ffn_gate_up\n"
              "rope_factors = long\nrope_magnitude = 1.19\nweights.attn_qkv = q5_k\n" OWN_OUTPUT) },
    { "short factors", "phi3",
      FUSED_QKV FUSED_GATE_UP LONG_FACTORS "ARCH.rope.scaling.original_context_length = 8192\n",
      SECTION("architecture = phi3\nrope = neox\nfused = attn_qkv, ffn_gate_up\n"
              "rope_factors = short\nweights.attn_qkv = q5_k\n" OWN_OUTPUT) },
    { "no factors", "phi3", FUSED_QKV FUSED_GATE_UP,
      SECTION("architecture = phi3\nrope = neox\nfused = attn_qkv, ffn_gate_up\n"
              "weights.attn_qkv = q5_k\n" OWN_OUTPUT) },
    { "granite", "granite",
      "ARCH.embedding_scale = 12.0\nARCH.residual_scale = 0.22\nARCH.logit_scale = 16.0\n"
      "ARCH.attention.scale = 0.0078125\nARCH.rope.scaling.finetuned = true\n",
      SECTION("architecture = granite\nembedding_scale = 12\nresidual_scale = 0.22\n"
              "logit_scale = 0.0625\nattention_scale = 0.0078125\n" OWN_OUTPUT) },
    { "keys of hybrids in a model without recurrent layers", "granite",
      "ARCH.logit_scale = 16.0\nARCH.ssm.conv_kernel = 4\nARCH.ssm.state_size = 128\n"
      "ARCH.expert_count = 0\nARCH.expert_used_count = 0\n"
      "ARCH.expert_shared_feed_forward_length = 768\nARCH.deepstack_mapping = [-1, -1]\n",
      SECTION("architecture = granite\nlogit_scale = 0.0625\n" OWN_OUTPUT) },
    { "RMS norms where others have LayerNorms", "cohere2moe",
      "ARCH.attention.layer_norm_epsilon = 1e-5\nARCH.logit_scale = 0.25\n"
      "ARCH.attention.sliding_window = 512\nARCH.rope.freq_base_swa = 10000.0\n"
      "-blk.0.ffn_norm.weight\n-blk.1.ffn_norm.weight\n" EXPERT_KEYS OWN_ROWS EXPERTS,
      EXPERT_SECTION("architecture = cohere2moe\nnum_kv_heads = 2\nbranches = parallel\n"
                     "gating = sigmoid\nwindow = 512\nlogit_scale = 0.25\n") },
    { "a shared expert as wide as the others", "hunyuan-moe",
      "ARCH.feed_forward_length = 256\n" EXPERT_KEYS EXPERTS HEAD_NORMS BOTH(
          "ffn_gate_shexp.weight", "512 256 q4_K") BOTH("ffn_up_shexp.weight", "512 256 q4_K")
          BOTH("ffn_down_shexp.weight", "256 512 q4_K"),
      EXPERT_SECTION("architecture = hunyuan-moe\nnum_kv_heads = 2\nrope = neox\n"
                     "shared_ff = 256\nexperts_normed = yes\nqk_norm = head_after_rope\n"
                     "norms = attn_q_norm, attn_k_norm\n") },
    { "sections without axes", "glm4",
      "ARCH.rope.dimension_sections = [0, 0, 0, 0]\n" FUSED_GATE_UP NORM("post_attention_norm")
          NORM("post_ffw_norm"),
      SECTION("architecture = glm4\nfused = ffn_gate_up\n" OWN_OUTPUT
              "norms = post_attention_norm, post_ffw_norm\n") },
    { "mixtral", "llama", "ARCH.feed_forward_length = 256\n" EXPERT_KEYS EXPERTS,
      EXPERT_SECTION("architecture = llama\nnum_kv_heads = 2\nexperts_normed = yes\n") },
    { "a router that is not f32, and a shared expert", "llama",
      "ARCH.feed_forward_length = 256L\nARCH.expert_shared_feed_forward_length = 512L\n"
      "ARCH.expert_count = 8L\nARCH.expert_used_count = 2L\n" EXPERTS SHARED_EXPERT
      "blk.1.ffn_gate_inp.weight: 512 8 f16\n",
      EXPERT_SECTION("architecture = llama\nnum_kv_heads = 2\nexperts_normed = yes\n"
                     "shared_ff = 512\nweights.ffn_gate_inp = f16: 1\n") },
    { "qwen3moe", "qwen3moe", EXPERT_KEYS OWN_ROWS EXPERTS HEAD_NORMS,
      EXPERT_SECTION("architecture = qwen3moe\nnum_kv_heads = 2\nrope = neox\n"
                     "experts_normed = yes\nnorms = attn_q_norm, attn_k_norm\n") },
    { "expert rows from the key of the total", "qwen3moe",
      "ARCH.feed_forward_length = 512\n" EXPERT_KEYS EXPERTS HEAD_NORMS,
      EXPERT_SECTION("architecture = qwen3moe\nnum_kv_heads = 2\nrope = neox\n"
                     "experts_normed = yes\nnorms = attn_q_norm, attn_k_norm\n") },
    { "a file's expert weights key overrides the default", "qwen3moe",
      "ARCH.expert_weights_norm = false\nARCH.expert_weights_scale = 2.5\n"
      "ARCH.expert_gating_func = 2\nARCH.expert_group_count = 4\n"
      "ARCH.expert_group_used_count = 2\n" EXPERT_KEYS OWN_ROWS EXPERTS HEAD_NORMS,
      EXPERT_SECTION("architecture = qwen3moe\nnum_kv_heads = 2\nrope = neox\ngating = sigmoid\n"
                     "experts_scale = 2.5\nexpert_groups = 4\nexpert_groups_used = 2\n"
                     "norms = attn_q_norm, attn_k_norm\n") },
    { "granitemoe", "granitemoe",
      "ARCH.feed_forward_length = 256\nARCH.embedding_scale = 12.0\nARCH.logit_scale = 16.0\n"
      "ARCH.residual_scale = 0.22\nARCH.attention.scale = 0.0078125\n" EXPERT_KEYS EXPERTS,
      EXPERT_SECTION("architecture = granitemoe\nnum_kv_heads = 2\nexperts_normed = yes\n"
                     "embedding_scale = 12\nresidual_scale = 0.22\nlogit_scale = 0.0625\n"
                     "attention_scale = 0.0078125\n") },
    { "gpt-oss", "gpt-oss", GPT_OSS,
      EXPERT_SECTION("architecture = gpt-oss\nnum_kv_heads = 2\nrope = neox\n"
                     "activation = swiglu_oai\ngating = softmax_of_chosen\nsinks = add\n"
                     "window = 128\nwindow_layers = 0\nffn_norm = post_attention_norm\n"
                     "biases = attn_q, attn_k, attn_v, attn_output, ffn_gate_inp, ffn_gate_exps, "
                     "ffn_up_exps, ffn_down_exps\n") },
    { "gpt-oss with a separate rope base in windows", "gpt-oss",
      GPT_OSS "ARCH.rope.freq_base_swa = 10000.0\nARCH.attention.sliding_window_pattern = [0, 1]\n",
      EXPERT_SECTION("architecture = gpt-oss\nnum_kv_heads = 2\nrope = neox\n"
                     "activation = swiglu_oai\ngating = softmax_of_chosen\nsinks = add\n"
                     "window = 128\nwindow_layers = 1\nffn_norm = post_attention_norm\n"
                     "rope_base.window = 10000\n"
                     "biases = attn_q, attn_k, attn_v, attn_output, ffn_gate_inp, ffn_gate_exps, "
                     "ffn_up_exps, ffn_down_exps\n") },
    { "deepseek2 without experts", "deepseek2",
      "ARCH.attention.kv_lora_rank = 256\nARCH.attention.head_count_kv = 1\n"
      "ARCH.attention.key_length = 288\nARCH.attention.value_length = 256\n"
      "ARCH.attention.key_length_mla = 96\nARCH.attention.value_length_mla = 64\n"
      "ARCH.rope.dimension_count = 32\nARCH.leading_dense_block_count = 2\n"
      "ARCH.expert_shared_count = 0\nARCH.expert_weights_scale = 1.0\n"
      "-blk.0.attn_k.weight\n-blk.0.attn_v.weight\n-blk.1.attn_k.weight\n"
      "-blk.1.attn_v.weight\n" BOTH("attn_q.weight", "512 768 q4_K")
          BOTH("attn_kv_a_mqa.weight", "512 288 q4_K") BOTH("attn_kv_a_norm.weight", "256 1 f32")
              BOTH("attn_k_b.weight", "64 256 8 q8_0") BOTH("attn_v_b.weight", "256 64 8 q4_K"),
      "[decoder]\nlayers = 2\nhidden = 512\nff = 768\nnum_heads = 8\nvocab = 1000\n"
      "rope_base = 500000\nweights = q4_k\nweights.token_embd = q6_k\n"
      "architecture = deepseek2\nlatent = 256\nvalue_dim = 64\nhead_dim = 96\n"
      "rope_dims = 32\nweights.attn_k_b = q8_0\n" OWN_OUTPUT },
    { "deepseek2 lite", "deepseek2", LATENT_KEYS LATENT_TENSORS, LATENT_SECTION("") },
    { "deepseek2 with low-rank q, groups and a choice bias", "deepseek2",
      LATENT_KEYS LATENT_TENSORS
      "ARCH.attention.q_lora_rank = 128\nARCH.expert_gating_func = 2\n"
      "ARCH.expert_weights_norm = true\nARCH.expert_weights_scale = 2.5\n"
      "ARCH.expert_group_count = 4\nARCH.expert_group_used_count = 2\n"
      "blk.1.exp_probs_b.bias: 8 1 f32\n-blk.0.attn_q.weight\n-blk.1.attn_q.weight\n" BOTH(
          "attn_q_a.weight", "512 128 q4_K") BOTH("attn_q_a_norm.weight", "128 1 f32")
          BOTH("attn_q_b.weight", "128 768 q8_0"),
      LATENT_SECTION("q_rank = 128\ngating = sigmoid\nexperts_normed = yes\nexperts_scale = 2.5\n"
                     "expert_groups = 4\nexpert_groups_used = 2\nbiases = exp_probs_b\n"
                     "weights.attn_q_b = q8_0\n") },
    { "YaRN of deepseek2 is in the scale of scores", "deepseek2",
      LATENT_KEYS LATENT_TENSORS "ARCH.rope.scaling.type = yarn\nARCH.rope.scaling.factor = 40.0\n"
                                 "ARCH.rope.scaling.original_context_length = 4096\n"
                                 "ARCH.rope.scaling.yarn_log_multiplier = 0.0707\n",
      LATENT_SECTION("rope_scaling = yarn\nrope_factor = 40\nrope_original_context = 4096\n"
                     "attention_scale = 0.16224054109680577\n") },
    { "YaRN of deepseek2 without a multiplier", "deepseek2",
      LATENT_KEYS LATENT_TENSORS "ARCH.rope.scaling.type = yarn\nARCH.rope.scaling.factor = 40.0\n"
                                 "ARCH.rope.scaling.original_context_length = 4096\n",
      LATENT_SECTION("rope_scaling = yarn\nrope_factor = 40\nrope_original_context = 4096\n"
                     "rope_magnitude = 1.3688879454113936\n"
                     "attention_scale = 0.1912494441560206\n") },
    { "YaRN of mistral4 is in the scale of scores, and its multiplier in that of RoPE", "mistral4",
      LATENT_KEYS LATENT_TENSORS "ARCH.rope.scaling.type = yarn\nARCH.rope.scaling.factor = 40.0\n"
                                 "ARCH.rope.scaling.original_context_length = 4096\n"
                                 "ARCH.rope.scaling.yarn_log_multiplier = 0.0707\n",
      LATENT_SECTION_OF("mistral4",
                        "rope_scaling = yarn\nrope_factor = 40\nrope_original_context = 4096\n"
                        "rope_magnitude = 1.0857263992561355\nweights.attn_k_b = "
                        "q8_0\nattention_scale = 0.19124944415602052\n") },
    { "deepseek2 of 2024, with the matrices of k and v in one tensor", "deepseek2",
      LATENT_KEYS
      "ARCH.attention.key_length = 96\nARCH.attention.value_length = 64\n"
      "ARCH.attention.head_count_kv = "
      "8\n-ARCH.attention.key_length_mla\n-ARCH.attention.value_length_mla\n" LATENT_TENSORS
      "-blk.0.attn_k_b.weight\n-blk.0.attn_v_b.weight\n-blk.1.attn_k_b.weight\n"
      "-blk.1.attn_v_b.weight\n" BOTH("attn_kv_b.weight", "256 1024 q4_K"),
      LATENT_SECTION_OF("deepseek2", "fused = attn_kv_b\n") },
    { "deepseek2 with a temperature", "deepseek2",
      LATENT_KEYS LATENT_TENSORS "ARCH.attention.temperature_scale = 0.1\n"
                                 "ARCH.attention.temperature_length = 8192\n",
      LATENT_SECTION("temperature_scale = 0.1\ntemperature_length = 8192\n") },
    { "deepseek2 with a temperature from YaRN's context on", "deepseek2",
      LATENT_KEYS LATENT_TENSORS "ARCH.rope.scaling.type = yarn\nARCH.rope.scaling.factor = 40.0\n"
                                 "ARCH.rope.scaling.original_context_length = 4096\n"
                                 "ARCH.rope.scaling.yarn_log_multiplier = 0.0707\n"
                                 "ARCH.attention.temperature_scale = 0.1\n",
      LATENT_SECTION("rope_scaling = yarn\nrope_factor = 40\nrope_original_context = 4096\n"
                     "attention_scale = 0.16224054109680577\ntemperature_scale = 0.1\n"
                     "temperature_length = 4096\n") },
    { "deepseek2 without multi-token prediction", "deepseek2",
      LATENT_KEYS LATENT_TENSORS FURTHER_LAYER, LATENT_SECTION("") },
    { "qwen3next without multi-token prediction", "qwen3next", NEXT_KEYS NEXT_TENSORS FURTHER_LAYER,
      NEXT_SECTION("") },
    { "fused gate and up of all experts", "deepseek2",
      LATENT_KEYS LATENT_TENSORS "-blk.1.ffn_gate_exps.weight\n-blk.1.ffn_up_exps.weight\n"
                                 "blk.1.ffn_gate_up_exps.weight: 512 512 8 q4_K\n",
      LATENT_SECTION("fused = ffn_gate_up_exps\n") },
    { "qwen3next", "qwen3next", NEXT_KEYS NEXT_TENSORS, NEXT_SECTION("") },
    { "qwen3next with fused experts", "qwen3next",
      NEXT_KEYS NEXT_TENSORS
      "-blk.0.ffn_gate_exps.weight\n-blk.0.ffn_up_exps.weight\n-blk.1.ffn_gate_exps.weight\n"
      "-blk.1.ffn_up_exps.weight\n" BOTH("ffn_gate_up_exps.weight", "512 512 8 q4_K"),
      NEXT_SECTION("fused = ffn_gate_up_exps\n") },
    { "qwen35", "qwen35", TILED_KEYS TILED_NETS,
      SECTION("architecture = qwen35\n" TILED_SECTION OWN_OUTPUT) },
    { "qwen35 by a list of layers", "qwen35",
      TILED_KEYS TILED_NETS "ARCH.full_attention_interval = 4\n"
                            "ARCH.attention.recurrent_layers = [1, 0]\n",
      SECTION("architecture = qwen35\n" TILED_SECTION OWN_OUTPUT) },
    { "qwen35 without multi-token prediction", "qwen35",
      TILED_KEYS TILED_NETS FURTHER_LAYER "ARCH.attention.recurrent_layers = [1, 0, 0]\n",
      SECTION("architecture = qwen35\n" TILED_SECTION OWN_OUTPUT) },
    { "qwen35moe", "qwen35moe", TILED_KEYS TILED_NETS TILED_EXPERTS,
      EXPERT_SECTION("architecture = qwen35moe\nnum_kv_heads = 2\nshared_ff = 512\n"
                     "shared_gate = sigmoid\nexperts_normed = yes\n" TILED_SECTION) },
    { "qwen35moe without multi-token prediction", "qwen35moe",
      TILED_KEYS TILED_NETS TILED_EXPERTS FURTHER_LAYER,
      EXPERT_SECTION("architecture = qwen35moe\nnum_kv_heads = 2\nshared_ff = 512\n"
                     "shared_gate = sigmoid\nexperts_normed = yes\n" TILED_SECTION) },
};

ARENA_TEST(every_architecture_becomes_its_decoder)
{
    for (size_t i = 0; i < sizeof right_models / sizeof *right_models; i++) {
        const right_model *m = &right_models[i];
        outcome o = read_edited(a, m->architecture, m->edits, &usual_options);
        if (!o.right)
            fail_msg("%s: %s", m->what, o.messages);
        check_decoder(a, m->what, &o.model.decoder, m->section);
    }
}

ARENA_TEST(granite_without_finetuning_has_no_rope)
{
    outcome o =
        read_edited(a, "granite", "ARCH.logit_scale = 1.0\nARCH.rope.scaling.finetuned = false\n",
                    &usual_options);
    assert_true(o.right);
    check_decoder(a, "granite", &o.model.decoder,
                  "[decoder]\narchitecture = granite\nlayers = 2\nhidden = 512\nff = 768\n"
                  "num_heads = 8\nnum_kv_heads = 2\nvocab = 1000\nrope = none\nweights = q4_k\n"
                  "weights.token_embd = q6_k\nweights.output = q6_k\n");
}

/* The 27B models are recognized by their number of layers. */
ARENA_TEST(the_largest_gemma_scales_scores_by_its_width)
{
    static const char *const names[] = { "gemma2", "gemma3" };
    static const int layers[] = { 46, 62 };
    for (int i = 0; i < 2; i++) {
        strbuf edits = strbuf_new(a);
        strbuf_format(&edits,
                      "ARCH.block_count = %d\nARCH.attention.key_length = 32\n"
                      "ARCH.attention.value_length = 32\nARCH.rope.dimension_count = 32\n",
                      layers[i]);
        if (i == 0)
            strbuf_put(&edits, "ARCH.attn_logit_softcapping = 50.0\n"
                               "ARCH.final_logit_softcapping = 30.0\n");
        outcome o = read_edited(a, names[i], edits.text, &usual_options);
        assert_false(o.right); /* the file lacks the tensors of these layers */
        assert_true(o.model.decoder.attention_scale > 0.1249999 &&
                    o.model.decoder.attention_scale < 0.1250001);
    }
}

/* GLM-4.7-Flash files without a gating key are recognized by layers and vocabulary. */
ARENA_TEST(old_files_of_deepseek2_have_the_gating_of_their_family)
{
    static const struct {
        const char *edits;
        int64_t gating;
    } cases[] = {
        { "ARCH.block_count = 47\nARCH.vocab_size = 154880\n", GATING_SIGMOID },
        { "ARCH.block_count = 48\nARCH.vocab_size = 154880\nARCH.nextn_predict_layers = 1\n",
          GATING_SIGMOID },
        { "ARCH.block_count = 47\nARCH.vocab_size = 154880\nARCH.expert_gating_func = 1\n",
          GATING_SOFTMAX },
        { "ARCH.block_count = 47\nARCH.vocab_size = 102400\n", GATING_SOFTMAX },
        { "ARCH.block_count = 60\nARCH.vocab_size = 154880\n", GATING_SOFTMAX },
        { "ARCH.block_count = 60\nARCH.expert_gating_func = 0\n", GATING_SOFTMAX },
        { "ARCH.block_count = 61\nARCH.expert_gating_func = 2\n", GATING_SIGMOID },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        outcome o = read_edited(a, "deepseek2", arena_format(a, LATENT_KEYS "%s", cases[i].edits),
                                &usual_options);
        assert_int_equal(o.model.decoder.gating, cases[i].gating);
    }
}

/* Architectures with one common base use it as default. Other architectures require the key. */
ARENA_TEST(a_missing_rope_base_has_the_family_s_default_or_is_an_error)
{
    for (const char *at = model_architectures(a); *at; at += strcspn(at, ", ")) {
        at += strspn(at, ", ");
        const char *name = arena_copy(a, at, strcspn(at, ", "));
        outcome o = read_edited(a, name, "-ARCH.rope.freq_base\n", &usual_options);
        const char *missing = arena_format(a, "%s.rope.freq_base is missing", name);
        if (!strstr(o.messages, missing))
            assert_true(o.model.decoder.rope[0].base >= 10000 &&
                        o.model.decoder.rope[0].base <= 10000);
    }
}

ARENA_TEST(options_set_size_and_type_of_the_caches)
{
    model_options options = { .max_seq_len = 4096, .kv_type = KV_Q8_0 };
    static const char edits[] =
        FUSED_QKV FUSED_GATE_UP LONG_FACTORS "ARCH.rope.scaling.original_context_length = 4096\n"
                                             "ARCH.attention.sliding_window = 2047\n";
    outcome o = read_edited(a, "phi3", edits, &options);
    assert_true(o.right);
    assert_int_equal(o.model.decoder.max_seq_len, 4096);
    assert_int_equal(o.model.decoder.kv_type, KV_Q8_0);
    assert_true(o.model.decoder.has[TENSOR_ROPE_SHORT]);
    assert_int_equal(o.model.ignored_window, 2047);
    assert_int_equal(o.model.context_length, 131072);
    options.max_seq_len = 4097;
    o = read_edited(a, "phi3", edits, &options);
    assert_true(o.model.decoder.has[TENSOR_ROPE_LONG]);
    o = read_edited(a, "llama", "ARCH.context_length = 2048\n", &usual_options);
    assert_int_equal(o.model.decoder.max_seq_len, 2048);
}

ARENA_TEST(layers_after_the_decoder_are_counted)
{
    outcome o = read_edited(a, "qwen35", TILED_KEYS TILED_NETS FURTHER_LAYER, &usual_options);
    assert_true(o.right);
    assert_int_equal(o.model.decoder.layers, 2);
    assert_int_equal(o.model.further_layers, 1);
    o = read_edited(a, "qwen35", TILED_KEYS TILED_NETS "ARCH.nextn_predict_layers = 0\n",
                    &usual_options);
    assert_true(o.right);
    assert_int_equal(o.model.decoder.layers, 2);
    assert_int_equal(o.model.further_layers, 0);
}

/* A model in two parts: all keys and half of the tensors, and the other half. */
ARENA_TEST(parts_of_a_model_are_joined)
{
    const char *folder, *error, *path = NULL;
    file_text whole = base_text(a, "llama"), parts[2] = { 0 };
    size_t tensors = 0;
    for (size_t i = 0; i < whole.count; i++) {
        bool is_tensor = whole.items[i][name_length(whole.items[i])] == ':';
        file_text *part = &parts[is_tensor && tensors % 2];
        tensors += is_tensor;
        *VEC_PUSH(a, part) = whole.items[i];
    }
    assert_true(os_temporary_directory(a, &folder, &error));
    for (int p = 0; p < 2; p++) {
        edit(a, &parts[p], "llama",
             arena_format(a, "split.no = %d\nsplit.count = 2\nsplit.tensors.count = %zu\n", p,
                          tensors));
        gguf_writer w = write_file(a, &parts[p]);
        path = arena_format(a, "%s/m-0000%d-of-00002.gguf", folder, p + 1);
        assert_true(os_write_file(a, path, w.out.text, w.out.length, &error));
    }
    gguf_file file;
    gguf_error wrong;
    if (!gguf_open(path, &file, &wrong))
        fail_msg("%s", wrong.message);
    outcome o = read_file(a, &file, &usual_options);
    if (!o.right)
        fail_msg("%s", o.messages);
    check_decoder(a, "two parts", &o.model.decoder, SECTION("architecture = llama\n" OWN_OUTPUT));
    gguf_close(&file);
    os_remove_directory(a, folder);
}
