/* Models that no decoder supports: every unsupported key or tensor must be refused by name. */
#include "model_sample.h"
#include "ref/random.h"
#include "test_arena.h"

typedef struct wrong_model {
    const char *architecture, *edits, *messages;
} wrong_model;

#define NO_LAYERS                                                                \
    "-blk.0.attn_norm.weight\n-blk.1.attn_norm.weight\n-blk.0.ffn_norm.weight\n" \
    "-blk.1.ffn_norm.weight\n-blk.0.attn_q.weight\n-blk.1.attn_q.weight\n"       \
    "-blk.0.attn_k.weight\n-blk.1.attn_k.weight\n-blk.0.attn_v.weight\n"         \
    "-blk.1.attn_v.weight\n-blk.0.attn_output.weight\n-blk.1.attn_output.weight\n"

/* clang-format off */
#define MIXTRAL "ARCH.feed_forward_length = 256\n" EXPERT_KEYS EXPERTS
static const wrong_model wrong_models[] = {
    { "llama", "-general.architecture\n", "general.architecture is missing; the file contains no model [E072]\n" },
    { "bert", "", "architecture 'bert' is not supported; supported are ALL [E071]\n" },
    { "minicpm3", "ARCH.attention.kv_lora_rank = 512\n",
      "architecture 'minicpm3' with multi-head latent attention is not supported; supported are ALL [E071]\n" },
    { "olmoe", "ARCH.expert_count = 8\n",
      "architecture 'olmoe' with a mixture of experts is not supported; supported are ALL [E071]\n" },
    { "plamo2", "ARCH.ssm.conv_kernel = 4\nARCH.expert_count = 8\n",
      "architecture 'plamo2' with recurrent layers (delta net or SSM) is not supported; supported are ALL [E071]\n" },
    { "qwen3", "ARCH.expert_count = 8\n",
      "qwen3.expert_count: architecture qwen3 is not supported with a mixture of experts [E072]\n" },
    { "llama", "ARCH.nextn_predict_layers = 1\n",
      "llama.nextn_predict_layers: architecture llama is not supported with layers that predict further tokens [E072]\n" },
    { "deepseek2", LATENT_KEYS LATENT_TENSORS "ARCH.nextn_predict_layers = 2\n",
      "deepseek2.nextn_predict_layers = 2 leaves none of 2 layers to the decoder [E072]\n" },
    { "llama", "ARCH.expert_count = 8\n", "llama.expert_used_count is missing [E072]\n" },
    { "llama", MIXTRAL "ARCH.expert_used_count = 9\n",
      "llama.expert_used_count = 9 is more than expert_count = 8 [E072]\n" },
    { "llama", MIXTRAL "ARCH.expert_gating_func = 4\n",
      "llama.expert_gating_func = 4 is unknown; known are 1 (softmax), 2 (sigmoid) and 3 (softmax of the chosen) [E072]\n" },
    { "llama", MIXTRAL "ARCH.leading_dense_block_count = 2\n",
      "llama.leading_dense_block_count = 2 leaves none of 2 layers with experts [E072]\n" },
    { "llama", MIXTRAL "ARCH.expert_group_count = 3\nARCH.expert_group_used_count = 2\n",
      "llama.expert_group_count = 3 with expert_group_used_count = 2 and expert_count = 8; the groups must divide the experts, and 1 to all of them are used [E072]\n" },
    { "llama", MIXTRAL "ARCH.feed_forward_length = [256, 512]\n",
      "llama.feed_forward_length is 256 in layer 0 and 512 in layer 1; all layers must have the same value [E072]\n" },
    { "llama", MIXTRAL "blk.1.ffn_up_exps.weight: 512 256 7 q4_K\n",
      "blk.1.ffn_up_exps.weight has shape [512, 256, 7], but the keys require [512, 256, 8] [E073]\n" },
    { "llama", MIXTRAL "blk.0.ffn_gate.0.weight: 512 256 q4_K\n",
      "blk.0.ffn_gate.0.weight is not supported; use a file with ffn_gate_exps, one tensor for all experts, instead of ffn_gate.0 [E073]\n" },
    { "qwen3moe", HEAD_NORMS, "qwen3moe.expert_count is missing [E072]\nqwen3moe.expert_used_count is missing [E072]\n" },
    { "qwen3moe", HEAD_NORMS EXPERT_KEYS OWN_ROWS EXPERTS BOTH("ffn_gate_up_exps.weight", "512 512 8 q4_K"),
      "blk.0.ffn_gate_up_exps.weight and 1 more are not used by architecture qwen3moe [E073]\n" },
    { "gpt-oss", GPT_OSS "-ARCH.attention.sliding_window\n", "gpt-oss.attention.sliding_window is missing [E072]\n" },
    { "gpt-oss", GPT_OSS "-ARCH.expert_feed_forward_length\n", "gpt-oss.expert_feed_forward_length is missing [E072]\n" },
    { "gpt-oss", GPT_OSS "-blk.1.attn_sinks.weight\n", "blk.1.attn_sinks.weight is missing [E073]\n" },
    { "gpt-oss", GPT_OSS "blk.0.ffn_up_exps.bias: 256 1 f32\n",
      "blk.0.ffn_up_exps.bias has shape [256], but the keys require [256, 8] [E073]\n" },
    { "deepseek2", LATENT_KEYS LATENT_TENSORS "-ARCH.attention.key_length_mla\n",
      "deepseek2.attention.head_count_kv = 1, but 8 is required: attn_kv_b has k and v of each head [E072]\n" },
    { "deepseek2", LATENT_KEYS LATENT_TENSORS "blk.0.attn_kv_b.weight: 256 1024 q4_K\n",
      "blk.0.attn_kv_b.weight is not used by architecture deepseek2 [E073]\n" },
    { "deepseek2", LATENT_KEYS LATENT_TENSORS "ARCH.attention.key_length = 256\nARCH.attention.head_count_kv = 8\n"
      "ARCH.attention.value_length = 64\n",
      "deepseek2.attention.head_count_kv = 8, but 1 is required: all heads share one cache row [E072]\n"
      "deepseek2.attention.key_length = 256, but 288 is required: kv_lora_rank + rope.dimension_count [E072]\n"
      "deepseek2.attention.value_length = 64, but 256 is required: the value of kv_lora_rank [E072]\n" },
    { "deepseek2", LATENT_KEYS LATENT_TENSORS "ARCH.attention.key_length_mla = 32\n",
      "deepseek2.rope.dimension_count = 32 leaves no part of attention.key_length_mla = 32 without RoPE [E072]\n" },
    { "deepseek2", LATENT_KEYS LATENT_TENSORS "ARCH.attention.temperature_scale = 0.1\n",
      "deepseek2.attention.temperature_scale needs attention.temperature_length or rope.scaling.original_context_length [E072]\n" },
    { "deepseek2", LATENT_KEYS LATENT_TENSORS "blk.0.attn_k_b.weight: 256 64 8 q8_0\n",
      "blk.0.attn_k_b.weight has shape [256, 64, 8], but the keys require [64, 256, 8] [E073]\n" },
    { "qwen3next", NEXT_KEYS NEXT_TENSORS "ARCH.ssm.conv_kernel = 3\n",
      "qwen3next.ssm.conv_kernel = 3, but 4 is required: the length of a delta net's convolution [E072]\n" },
    { "qwen3next", NEXT_KEYS NEXT_TENSORS "ARCH.ssm.inner_size = 256\n",
      "qwen3next.ssm.inner_size = 256, but 128 is required: ssm.time_step_rank * ssm.state_size [E072]\n" },
    { "qwen3next", NEXT_KEYS NEXT_TENSORS "ARCH.ssm.group_count = 3\n",
      "qwen3next.ssm.time_step_rank = 4 is not a multiple of ssm.group_count = 3 [E072]\n" },
    { "qwen3next", NEXT_KEYS NEXT_TENSORS "ARCH.full_attention_interval = 3\n",
      "qwen3next.full_attention_interval = 3 is out of range; 2 to the number of layers, 2, leave layers of both kinds [E072]\n" },
    { "qwen3next", NEXT_KEYS NEXT_TENSORS "ARCH.full_attention_interval = 1\n",
      "qwen3next.full_attention_interval = 1 is out of range; 2 to the number of layers, 2, leave layers of both kinds [E072]\n" },
    { "qwen3next", NEXT_KEYS NEXT_TENSORS "blk.0.ssm_in.weight: 512 384 q4_K\n",
      "blk.0.ssm_in.weight is not supported; use a file with attn_qkv and attn_gate instead of ssm_in [E073]\n" },
    { "qwen3next", NEXT_KEYS NEXT_TENSORS "blk.0.ssm_alpha.weight: 512 4 q4_K\nblk.0.ssm_beta.weight: 512 4 q4_K\n",
      "blk.0.ssm_alpha.weight is not supported; use a file with ssm_ba instead of ssm_alpha and ssm_beta [E073]\n" },
    { "qwen3next", NEXT_KEYS NEXT_TENSORS "ARCH.rope.dimension_sections = [3, 3, 2, 0]\n",
      "qwen3next.rope.dimension_sections is not supported; ignoring it could change the logits [E072]\n" },
    { "qwen3next", NEXT_KEYS NEXT_TENSORS "-ARCH.rope.dimension_count\n",
      "qwen3next.rope.dimension_count is missing [E072]\n" },
    { "qwen35", TILED_KEYS TILED_NETS "-ARCH.rope.dimension_count\n", "qwen35.rope.dimension_count is missing [E072]\n" },
    { "qwen35", TILED_KEYS TILED_NETS "-blk.0.ssm_alpha.weight\n", "blk.0.ssm_alpha.weight is missing [E073]\n" },
    { "qwen35", TILED_KEYS TILED_NETS "-blk.0.ssm_beta.weight\n", "blk.0.ssm_beta.weight is missing [E073]\n" },
    { "qwen35", TILED_KEYS TILED_NETS "-blk.0.ssm_alpha.weight\n-blk.0.ssm_beta.weight\nblk.0.ssm_ba.weight: 512 8 q4_K\n",
      "blk.0.ssm_ba.weight is not supported; use a file with ssm_alpha and ssm_beta instead of ssm_ba [E073]\n" },
    { "qwen35", TILED_KEYS TILED_NETS "blk.0.ssm_alpha.weight: 512 8 f32\n",
      "blk.0.ssm_alpha.weight has shape [512, 8], but the keys require [512, 4] [E073]\n" },
    { "qwen35", TILED_KEYS TILED_NETS "blk.0.ssm_dt.bias: 2 1 f32\n",
      "blk.0.ssm_dt.bias has shape [2], but the keys require [4] [E073]\n" },
    { "qwen35", TILED_KEYS TILED_NETS "ARCH.ssm.group_count = 3\n",
      "qwen35.ssm.time_step_rank = 4 is not a multiple of ssm.group_count = 3 [E072]\n" },
    { "qwen35", TILED_KEYS TILED_NETS "ARCH.attention.recurrent_layers = [1, 1]\n",
      "qwen35.attention.recurrent_layers marks all of 2 layers as recurrent; some must be recurrent and some have attention [E072]\n" },
    { "qwen35", TILED_KEYS TILED_NETS "ARCH.attention.recurrent_layers = [0, 0]\n",
      "qwen35.attention.recurrent_layers marks none of 2 layers as recurrent; some must be recurrent and some have attention [E072]\n" },
    { "qwen35", TILED_KEYS TILED_NETS "ARCH.attention.recurrent_layers = [1]\n",
      "qwen35.attention.recurrent_layers has no value for layer 1 [E072]\n" },
    { "qwen35", TILED_KEYS TILED_NETS "ARCH.rope.dimension_sections = [3, 3, 1, 1]\n",
      "qwen35.rope.dimension_sections is not a list of four lengths, of which the first three add up to rope.dimension_count / 2 = 8 [E072]\n" },
    { "qwen35", TILED_KEYS TILED_NETS "ARCH.rope.dimension_sections = [0, 0, 0, 0]\n",
      "qwen35.rope.dimension_sections is not a list of four lengths, of which the first three add up to rope.dimension_count / 2 = 8 [E072]\n" },
    { "qwen35", TILED_KEYS TILED_NETS "ARCH.rope.dimension_sections = [3, 3, 2]\n",
      "qwen35.rope.dimension_sections is not a list of four lengths, of which the first three add up to rope.dimension_count / 2 = 8 [E072]\n" },
    { "qwen35", TILED_KEYS TILED_NETS "ARCH.rope.dimension_sections = [3, 3, 9, 0]\n",
      "qwen35.rope.dimension_sections is not a list of four lengths, of which the first three add up to rope.dimension_count / 2 = 8 [E072]\n" },
    { "qwen35", TILED_KEYS TILED_NETS "ARCH.nextn_predict_layers = 2\n",
      "qwen35.nextn_predict_layers = 2 leaves none of 2 layers to the decoder [E072]\n" },
    { "qwen35", TILED_KEYS FURTHER_LAYER NO_LAYERS NO_FFN, "the file has only the layers that predict further tokens [E073]\n" },
    { "qwen35", TILED_KEYS TILED_NETS FURTHER_LAYER "ARCH.block_count = 2\nARCH.nextn_predict_layers = 0\n",
      "blk.2.attn_norm.weight and 3 more are not used by architecture qwen35 [E073]\n" },
    { "qwen35", TILED_KEYS TILED_NETS "ARCH.expert_count = 8\n",
      "qwen35.expert_count: architecture qwen35 is not supported with a mixture of experts [E072]\n" },
    { "qwen35moe", TILED_KEYS TILED_NETS TILED_EXPERTS "-blk.1.ffn_gate_inp_shexp.weight\n",
      "blk.1.ffn_gate_inp_shexp.weight is missing [E073]\n" },
    { "qwen3next", NEXT_KEYS NEXT_TENSORS "blk.0.ssm_conv1d.weight: 4 256 f16\n",
      "blk.0.ssm_conv1d.weight has type f16; only matrices may differ from f32 [E073]\n" },
    { "llama", "-ARCH.block_count\n-ARCH.attention.layer_norm_rms_epsilon\n",
      "llama.block_count is missing [E072]\nllama.attention.layer_norm_rms_epsilon is missing [E072]\n" },
    { "llama", "ARCH.block_count = many\n", "llama.block_count is of type string, not a whole number [E072]\n" },
    { "llama", "ARCH.block_count = 513\n", "llama.block_count = 513 is too large; the largest is 512 [E072]\n" },
    { "llama", "ARCH.attention.head_count = 0\n", "llama.attention.head_count = 0 is out of range; 1 to 1073741824 are supported [E072]\n" },
    { "llama", "ARCH.attention.head_count_kv = [2, 1]\n",
      "blk.1.attn_k.weight has shape [512, 128], but the keys require [512, 64] [E073]\n"
      "blk.1.attn_v.weight has shape [512, 128], but the keys require [512, 64] [E073]\n" },
    { "llama", "ARCH.attention.head_count_kv = [2, 0]\n",
      "llama.attention.head_count_kv = 0 in layer 1 is out of range; 1 to 1073741824 are supported [E072]\n" },
    { "llama", "ARCH.attention.head_count_kv = [2]\n",
      "llama.attention.head_count_kv has 1 values for 2 layers [E072]\n" },
    { "llama", "ARCH.attention.value_length = 32\n",
      "llama.attention.value_length = 32, but 64 is required: k and v have the same head size in all layers [E072]\n" },
    { "llama", "ARCH.rope.scaling.type = dynamic\n",
      "llama.rope.scaling.type = 'dynamic' is unknown; known are none, linear and yarn [E072]\n" },
    { "llama", "ARCH.rope.scaling.type = longrope\n",
      "llama.rope.scaling.type = 'longrope' is unknown; known are none, linear and yarn [E072]\n" },
    { "llama", "ARCH.rope.freq_base = -1.0\n", "llama.rope.freq_base is negative or not finite [E072]\n" },
    { "llama", "ARCH.rope.freq_base = [1, 2]\n", "llama.rope.freq_base is an array of i32, not a number [E072]\n" },
    { "llama", "ARCH.attention.sliding_window = 1024\n",
      "llama.attention.sliding_window is not supported; ignoring it could change the logits [E072]\n" },
    { "llama", "ARCH.attention.temperature_scale = 0.1\n",
      "llama.attention.temperature_scale is not supported; ignoring it could change the logits [E072]\n" },
    { "granite", "ARCH.logit_scale = 8.0\nARCH.rope.scaling.finetuned = 3.5\n", "granite.rope.scaling.finetuned is of type f32, not a bool [E072]\n" },
    { "granite", "", "granite.logit_scale is missing [E072]\n" },
    { "gpt-oss", GPT_OSS "-ARCH.attention.sliding_window\n", "gpt-oss.attention.sliding_window is missing [E072]\n" },
    { "mistral3", "ARCH.attention.temperature_scale = 0.1\n",
      "mistral3.attention.temperature_scale needs attention.temperature_length or rope.scaling.original_context_length [E072]\n" },
    { "llama", "-blk.1.ffn_up.weight\n", "blk.1.ffn_up.weight is missing [E073]\n" },
    { "llama", BOTH("attn_q.scale", "1 1 f32"), "blk.0.attn_k.scale is missing [E073]\nblk.0.attn_v.scale is missing [E073]\n" },
    { "llama", BOTH("ffn_down.scale", "512 1 f32"), "blk.0.ffn_down.scale has shape [512], but the keys require [1] [E073]\n" },
    { "llama", "-output.weight\noutput.scale: 1 1 f32\n",
      "output.scale is not used by architecture llama [E073]\n" },
    { "llama", MIXTRAL BOTH("ffn_up_exps.scale", "8 1 f32"),
      "blk.0.ffn_up_exps.scale and 1 more are not used by architecture llama [E073]\n" },
    { "llama", "-token_embd.weight\n", "token_embd.weight is missing [E073]\n" },
    { "llama", "blk.0.attn_q.bias: 512 1 f32\n",
      "blk.1.attn_q.bias is missing [E073]\nblk.0.attn_k.bias is missing [E073]\nblk.0.attn_v.bias is missing [E073]\n" },
    { "llama", BOTH("attn_v.bias", "128 1 f32") BOTH("ffn_gate.bias", "768 1 f32"),
      "blk.0.attn_q.bias is missing [E073]\nblk.0.attn_k.bias is missing [E073]\nblk.0.ffn_up.bias is missing [E073]\n" },
    { "llama", "blk.1.attn_q.bias: 512 1 f32\n", "blk.1.attn_q.bias is not used by architecture llama [E073]\n" },
    { "llama", "blk.2.attn_q.weight: 512 512 q4_K\nsome.scale: 1 1 f32\n",
      "blk.2.attn_q.weight and 1 more are not used by architecture llama [E073]\n" },
    { "llama", "blk.1.attn_k.weight: 512 256 q4_K\n", "blk.1.attn_k.weight has shape [512, 256], but the keys require [512, 128] [E073]\n" },
    { "llama", "rope_freqs.weight: 64 1 f32\n", "rope_freqs.weight has shape [64], but the keys require [32] [E073]\n" },
    { "llama", "output.weight: 512 999 q6_K\n", "output.weight has shape [512, 999], but the keys require [512, 1000] [E073]\n" },
    { "llama", "blk.1.attn_norm.weight: 512 1 f16\n",
      "blk.1.attn_norm.weight has type f16; only matrices may differ from f32 [E073]\n" },
    { "llama", "blk.0.ffn_up.weight: 512 768 i8\nblk.1.ffn_up.weight: 512 768 i8\n",
      "blk.0.ffn_up.weight has type i8, which is not supported [E073]\n" },
    { "llama", BOTH("ffn_up.weight", "512 1536 q4_K") "-blk.0.ffn_gate.weight\n-blk.1.ffn_gate.weight\n",
      "blk.0.ffn_gate.weight is missing [E073]\nblk.0.ffn_up.weight has shape [512, 1536], but the keys require [512, 768] [E073]\n" },
    { "qwen2", "blk.0.attn_q.bias: 512 1 f32\nblk.1.attn_q.bias: 512 1 f32\n",
      "blk.0.attn_k.bias is missing [E073]\nblk.0.attn_v.bias is missing [E073]\n" },
};
/* clang-format on */

/* Replaces ALL by the supported architectures. */
static const char *with_architectures(arena *a, const char *text)
{
    const char *all = strstr(text, "ALL ");
    return all ? arena_format(a, "%.*s%s%s", (int)(all - text), text, model_architectures(a),
                              all + strlen("ALL"))
               : text;
}

ARENA_TEST(every_wrong_model_is_refused_with_its_messages)
{
    size_t wrong = 0;
    for (size_t i = 0; i < sizeof wrong_models / sizeof *wrong_models; i++) {
        const wrong_model *m = &wrong_models[i];
        outcome o = read_edited(a, m->architecture, m->edits, &usual_options);
        const char *messages = with_architectures(a, m->messages);
        if (strcmp(o.messages, messages) == 0)
            continue;
        print_error("%s\n%.200s\n", m->architecture, m->edits);
        print_error("%sinstead of\n%s", o.messages, messages);
        wrong++;
    }
    assert_int_equal(wrong, 0);
}

/* Removes a line of a file, or changes its first number. */
static void damage(arena *a, file_text *text, random_source *r)
{
    static const char *const numbers[] = {
        "0",       "1",  "2", "3",   "-1",  "64",  "513",         "65536",
        "1000000", "7L", "0", "256", "128", "4.5", "1073741824L", "9223372036854775807L",
    };
    size_t at = random_below(r, text->count), name = name_length(text->items[at]);
    const char *line = text->items[at];
    size_t first = name + strcspn(line + name, "0123456789");
    size_t length = strspn(line + first, "0123456789.eL-");
    bool is_tensor = line[name] == ':';
    if (!line[first] || random_below(r, 8) == 0)
        text->items[at] = "";
    else if (is_tensor)
        text->items[at] = arena_format(a, "%.*s%d%s", (int)first, line, 256 << random_below(r, 4),
                                       line + first + length);
    else
        text->items[at] = arena_format(a, "%.*s%s%s", (int)first, line,
                                       numbers[random_below(r, sizeof numbers / sizeof *numbers)],
                                       line + first + length);
}

ARENA_TEST(any_header_is_read_or_refused)
{
    enum { TRIALS = 3000 };
    static const char *const names[] = { "llama",   "gemma3",    "phi3",      "granite",
                                         "gpt-oss", "deepseek2", "qwen3next", "qwen35" };
    static const char *const edits[] = {
        "ARCH.rope.scaling.type = yarn\nARCH.rope.scaling.factor = 4.0\n",
        "ARCH.attention.sliding_window = 512\n" NORM("post_attention_norm") NORM("post_ffw_norm")
            HEAD_NORMS,
        FUSED_QKV FUSED_GATE_UP LONG_FACTORS,
        "ARCH.logit_scale = 16.0\nARCH.attention.head_count = [8, 8]\n",
        GPT_OSS,
        LATENT_KEYS LATENT_TENSORS,
        NEXT_KEYS NEXT_TENSORS,
        TILED_KEYS TILED_NETS FURTHER_LAYER,
    };
    size_t opened = 0, right = 0;
    for (uint64_t seed = 1; seed <= TRIALS; seed++) {
        arena *scratch = arena_new_in(a);
        random_source r = { seed };
        size_t which = random_below(&r, sizeof names / sizeof *names);
        file_text text = base_text(scratch, names[which]);
        gguf_file file;
        gguf_error error;
        edit(scratch, &text, names[which], edits[which]);
        for (uint64_t count = 1 + random_below(&r, 3); count--;)
            damage(scratch, &text, &r);
        gguf_writer w = write_file(scratch, &text);
        if (gguf_open_memory("m.gguf", w.out.text, w.out.length, &file, &error)) {
            outcome o = read_file(scratch, &file, &usual_options);
            diags d = diags_new(scratch);
            strbuf printed = strbuf_new(scratch);
            decoder back;
            right += o.right;
            if (o.right)
                decoder_print(&printed, &o.model.decoder, NULL);
            if (o.right && parse_decoder(scratch, printed.text, &back, &d))
                assert_null(decoder_difference(scratch, &o.model.decoder, &back));
            opened++;
        }
        gguf_close(&file);
        arena_free(scratch);
    }
    assert_true(opened > TRIALS / 2 && right > TRIALS / 20 && right < TRIALS / 2);
}
