/* Models that no decoder can be made of: whatever has no meaning is refused by its name. */
#include "model_sample.h"
#include "ref/random.h"
#include "test_arena.h"

typedef struct wrong_model {
    const char *architecture, *edits, *messages;
} wrong_model;

/* clang-format off */
#define ALL_NAMES \
    "deepseek2, gemma2, gemma3, gpt-oss, granite, granitemoe, llama, mistral3, phi3, qwen2, qwen3, qwen3moe, " \
    "qwen3next, qwen35, qwen35moe, seed_oss"
#define MIXTRAL "ARCH.feed_forward_length = 256\n" EXPERT_KEYS EXPERTS
static const wrong_model wrong_models[] = {
    { "llama", "-general.architecture\n", "general.architecture is missing; this is no file of a model [E072]\n" },
    { "bert", "", "architecture 'bert' has no decoder here; there are " ALL_NAMES " [E071]\n" },
    { "minicpm3", "ARCH.attention.kv_lora_rank = 512\n",
      "architecture 'minicpm3' has no decoder here, it needs multi-head latent attention; there are " ALL_NAMES " [E071]\n" },
    { "olmoe", "ARCH.expert_count = 8\n",
      "architecture 'olmoe' has no decoder here, it needs a mixture of experts; there are " ALL_NAMES " [E071]\n" },
    { "mamba", "ARCH.ssm.conv_kernel = 4\nARCH.expert_count = 8\n",
      "architecture 'mamba' has no decoder here, it needs layers with a recurrent state (delta net or SSM); there are "
      ALL_NAMES " [E071]\n" },
    { "gemma4", "",
      "architecture 'gemma4' has no decoder here, it needs heads of two sizes and embeddings by layer; there are "
      ALL_NAMES " [E071]\n" },
    { "qwen3", "ARCH.expert_count = 8\n",
      "qwen3.expert_count says that the model needs a mixture of experts, which has no decoder here [E072]\n" },
    { "llama", "ARCH.nextn_predict_layers = 1\n",
      "llama.nextn_predict_layers says that the model needs layers that predict further tokens, which has no decoder "
      "here [E072]\n" },
    { "deepseek2", LATENT_KEYS LATENT_TENSORS "ARCH.nextn_predict_layers = 2\n",
      "deepseek2.nextn_predict_layers = 2 leaves no layer of 2 to the decoder [E072]\n" },
    { "llama", "ARCH.expert_count = 8\n", "llama.expert_used_count is missing [E072]\n" },
    { "llama", MIXTRAL "ARCH.expert_used_count = 9\n",
      "llama.expert_used_count = 9 is more than expert_count = 8 [E072]\n" },
    { "llama", MIXTRAL "ARCH.expert_gating_func = 4\n",
      "llama.expert_gating_func = 4 is unknown; there are 1 (softmax), 2 (sigmoid) and 3 (softmax of the chosen) [E072]\n" },
    { "llama", MIXTRAL "ARCH.leading_dense_block_count = 2\n",
      "llama.leading_dense_block_count = 2 leaves no layer of 2 that has experts [E072]\n" },
    { "llama", MIXTRAL "ARCH.expert_group_count = 3\nARCH.expert_group_used_count = 2\n",
      "llama.expert_group_count = 3 with expert_group_used_count = 2 and expert_count = 8: groups divide the experts, and "
      "up to all are used [E072]\n" },
    { "llama", MIXTRAL "ARCH.feed_forward_length = [256, 512]\n",
      "llama.feed_forward_length is 256 in layer 0 and 512 in layer 1; a decoder here has one value for all layers [E072]\n" },
    { "llama", MIXTRAL "blk.1.ffn_up_exps.weight: 512 256 7 q4_K\n",
      "blk.1.ffn_up_exps.weight is [512, 256, 7], not [512, 256, 8] as the keys say [E073]\n" },
    { "llama", MIXTRAL "blk.0.ffn_gate.0.weight: 512 256 q4_K\n",
      "blk.0.ffn_gate.0.weight has no use here; a file is read that has ffn_gate_exps, of all experts, in place of "
      "ffn_gate.0 [E073]\n" },
    { "qwen3moe", HEAD_NORMS, "qwen3moe.expert_count is missing [E072]\nqwen3moe.expert_used_count is missing [E072]\n" },
    { "qwen3moe", HEAD_NORMS EXPERT_KEYS OWN_ROWS EXPERTS BOTH("ffn_gate_up_exps.weight", "512 512 8 q4_K"),
      "blk.0.ffn_gate_up_exps.weight and 1 other tensors have no use in a decoder of architecture qwen3moe [E073]\n" },
    { "gpt-oss", GPT_OSS "-ARCH.attention.sliding_window\n", "gpt-oss.attention.sliding_window is missing [E072]\n" },
    { "gpt-oss", GPT_OSS "-ARCH.expert_feed_forward_length\n", "gpt-oss.expert_feed_forward_length is missing [E072]\n" },
    { "gpt-oss", GPT_OSS "-blk.1.attn_sinks.weight\n", "blk.1.attn_sinks.weight is missing [E073]\n" },
    { "gpt-oss", GPT_OSS "blk.0.ffn_up_exps.bias: 256 1 f32\n",
      "blk.0.ffn_up_exps.bias is [256], not [256, 8] as the keys say [E073]\n" },
    { "deepseek2", LATENT_KEYS LATENT_TENSORS "-ARCH.attention.key_length_mla\n",
      "deepseek2.attention.key_length_mla is missing, so that the file has attn_kv_b; a llama.cpp from April 2025 on makes "
      "files with attn_k_b and attn_v_b in its place, which are read here [E072]\n" },
    { "deepseek2", LATENT_KEYS LATENT_TENSORS "blk.0.attn_kv_b.weight: 256 1024 q4_K\n",
      "blk.0.attn_kv_b.weight has no use here; a file is read that has attn_k_b and attn_v_b in place of attn_kv_b [E073]\n" },
    { "deepseek2", LATENT_KEYS LATENT_TENSORS "ARCH.attention.key_length = 256\nARCH.attention.head_count_kv = 8\n"
      "ARCH.attention.value_length = 64\n",
      "deepseek2.attention.head_count_kv = 8 is not 1; there is one row for all heads [E072]\n"
      "deepseek2.attention.key_length = 256 is not 288; it is kv_lora_rank + rope.dimension_count [E072]\n"
      "deepseek2.attention.value_length = 64 is not 256; it is kv_lora_rank [E072]\n" },
    { "deepseek2", LATENT_KEYS LATENT_TENSORS "ARCH.attention.key_length_mla = 32\n",
      "deepseek2.rope.dimension_count = 32 leaves nothing of attention.key_length_mla = 32 that does not turn [E072]\n" },
    { "deepseek2", LATENT_KEYS LATENT_TENSORS "ARCH.attention.temperature_scale = 0.1\n",
      "deepseek2.attention.temperature_scale goes with temperature_length or rope.scaling.original_context_length [E072]\n" },
    { "deepseek2", LATENT_KEYS LATENT_TENSORS "blk.0.attn_k_b.weight: 256 64 8 q8_0\n",
      "blk.0.attn_k_b.weight is [256, 64, 8], not [64, 256, 8] as the keys say [E073]\n" },
    { "qwen3next", NEXT_KEYS NEXT_TENSORS "ARCH.ssm.conv_kernel = 3\n",
      "qwen3next.ssm.conv_kernel = 3 is not 4; the inputs that a convolution is over [E072]\n" },
    { "qwen3next", NEXT_KEYS NEXT_TENSORS "ARCH.ssm.inner_size = 256\n",
      "qwen3next.ssm.inner_size = 256 is not 128; it is ssm.time_step_rank * ssm.state_size [E072]\n" },
    { "qwen3next", NEXT_KEYS NEXT_TENSORS "ARCH.ssm.group_count = 3\n",
      "qwen3next.ssm.time_step_rank = 4 is not a multiple of ssm.group_count = 3 [E072]\n" },
    { "qwen3next", NEXT_KEYS NEXT_TENSORS "ARCH.full_attention_interval = 3\n",
      "qwen3next.full_attention_interval = 3 is not from 2 to 2, the number of layers: there are layers of both kinds [E072]\n" },
    { "qwen3next", NEXT_KEYS NEXT_TENSORS "ARCH.full_attention_interval = 1\n",
      "qwen3next.full_attention_interval = 1 is not from 2 to 2, the number of layers: there are layers of both kinds [E072]\n" },
    { "qwen3next", NEXT_KEYS NEXT_TENSORS "blk.0.ssm_in.weight: 512 384 q4_K\n",
      "blk.0.ssm_in.weight has no use here; a file is read that has attn_qkv and attn_gate in place of ssm_in [E073]\n" },
    { "qwen3next", NEXT_KEYS NEXT_TENSORS "blk.0.ssm_alpha.weight: 512 4 q4_K\nblk.0.ssm_beta.weight: 512 4 q4_K\n",
      "blk.0.ssm_alpha.weight has no use here; a file is read that has ssm_ba in place of ssm_alpha and ssm_beta [E073]\n" },
    { "qwen3next", NEXT_KEYS NEXT_TENSORS "ARCH.rope.dimension_sections = [3, 3, 2, 0]\n",
      "qwen3next.rope.dimension_sections has no meaning here; what it changes would be left out [E072]\n" },
    { "qwen3next", NEXT_KEYS NEXT_TENSORS "-ARCH.rope.dimension_count\n",
      "qwen3next.rope.dimension_count is missing [E072]\n" },
    { "qwen35", TILED_KEYS TILED_NETS "-ARCH.rope.dimension_count\n", "qwen35.rope.dimension_count is missing [E072]\n" },
    { "qwen35", TILED_KEYS TILED_NETS "-blk.0.ssm_alpha.weight\n", "blk.0.ssm_alpha.weight is missing [E073]\n" },
    { "qwen35", TILED_KEYS TILED_NETS "-blk.0.ssm_beta.weight\n", "blk.0.ssm_beta.weight is missing [E073]\n" },
    { "qwen35", TILED_KEYS TILED_NETS "-blk.0.ssm_alpha.weight\n-blk.0.ssm_beta.weight\nblk.0.ssm_ba.weight: 512 8 q4_K\n",
      "blk.0.ssm_ba.weight has no use here; a file is read that has ssm_alpha and ssm_beta in place of ssm_ba [E073]\n" },
    { "qwen35", TILED_KEYS TILED_NETS "blk.0.ssm_alpha.weight: 512 8 f32\n",
      "blk.0.ssm_alpha.weight is [512, 8], not [512, 4] as the keys say [E073]\n" },
    { "qwen35", TILED_KEYS TILED_NETS "blk.0.ssm_dt.bias: 2 1 f32\n",
      "blk.0.ssm_dt.bias is [2], not [4] as the keys say [E073]\n" },
    { "qwen35", TILED_KEYS TILED_NETS "ARCH.ssm.group_count = 3\n",
      "qwen35.ssm.time_step_rank = 4 is not a multiple of ssm.group_count = 3 [E072]\n" },
    { "qwen35", TILED_KEYS TILED_NETS "ARCH.attention.recurrent_layers = [1, 1]\n",
      "qwen35.attention.recurrent_layers has all of 2 layers: there are layers of both kinds [E072]\n" },
    { "qwen35", TILED_KEYS TILED_NETS "ARCH.attention.recurrent_layers = [0, 0]\n",
      "qwen35.attention.recurrent_layers has none of 2 layers: there are layers of both kinds [E072]\n" },
    { "qwen35", TILED_KEYS TILED_NETS "ARCH.attention.recurrent_layers = [1]\n",
      "qwen35.attention.recurrent_layers says nothing of layer 1 [E072]\n" },
    { "qwen35", TILED_KEYS TILED_NETS "ARCH.rope.dimension_sections = [3, 3, 1, 1]\n",
      "qwen35.rope.dimension_sections leaves values to a fourth position, which text does not have: its first three lengths "
      "are those of 8 pairs taken by turns [E072]\n" },
    { "qwen35", TILED_KEYS TILED_NETS "ARCH.rope.dimension_sections = [0, 0, 0, 0]\n",
      "qwen35.rope.dimension_sections leaves values to a fourth position, which text does not have: its first three lengths "
      "are those of 8 pairs taken by turns [E072]\n" },
    { "qwen35", TILED_KEYS TILED_NETS "ARCH.rope.dimension_sections = [3, 3, 2]\n",
      "qwen35.rope.dimension_sections is no list of four lengths of up to rope.dimension_count / 2 = 8 [E072]\n" },
    { "qwen35", TILED_KEYS TILED_NETS "ARCH.rope.dimension_sections = [3, 3, 9, 0]\n",
      "qwen35.rope.dimension_sections is no list of four lengths of up to rope.dimension_count / 2 = 8 [E072]\n" },
    { "qwen35", TILED_KEYS TILED_NETS "ARCH.nextn_predict_layers = 2\n",
      "qwen35.nextn_predict_layers = 2 leaves no layer of 2 to the decoder [E072]\n" },
    { "qwen35", TILED_KEYS TILED_NETS FURTHER_LAYER "ARCH.block_count = 2\nARCH.nextn_predict_layers = 0\n",
      "blk.2.attn_norm.weight and 3 other tensors have no use in a decoder of architecture qwen35 [E073]\n" },
    { "qwen35", TILED_KEYS TILED_NETS "ARCH.expert_count = 8\n",
      "qwen35.expert_count says that the model needs a mixture of experts, which has no decoder here [E072]\n" },
    { "qwen35moe", TILED_KEYS TILED_NETS TILED_EXPERTS "-blk.1.ffn_gate_inp_shexp.weight\n",
      "blk.1.ffn_gate_inp_shexp.weight is missing [E073]\n" },
    { "qwen3next", NEXT_KEYS NEXT_TENSORS "blk.0.ssm_conv1d.weight: 4 256 f16\n",
      "blk.0.ssm_conv1d.weight is of type f16; all but matrices is f32 here [E073]\n" },
    { "llama", "-ARCH.block_count\n-ARCH.attention.layer_norm_rms_epsilon\n",
      "llama.block_count is missing [E072]\nllama.attention.layer_norm_rms_epsilon is missing [E072]\n" },
    { "llama", "ARCH.block_count = many\n", "llama.block_count is of type string, not a whole number [E072]\n" },
    { "llama", "ARCH.block_count = 513\n", "llama.block_count = 513 is more than 512 [E072]\n" },
    { "llama", "ARCH.attention.head_count = 0\n", "llama.attention.head_count = 0 is not from 1 to 1073741824 [E072]\n" },
    { "llama", "ARCH.attention.head_count_kv = [2, 1]\n",
      "llama.attention.head_count_kv is 2 in layer 0 and 1 in layer 1; a decoder here has one value for all layers [E072]\n" },
    { "llama", "ARCH.attention.value_length = 32\n",
      "llama.attention.value_length = 32 is not 64; heads of k and v, and of all layers, have one size here [E072]\n" },
    { "llama", "ARCH.rope.scaling.type = dynamic\n",
      "llama.rope.scaling.type = 'dynamic' is unknown; there are none, linear and yarn [E072]\n" },
    { "llama", "ARCH.rope.scaling.type = longrope\n",
      "llama.rope.scaling.type = 'longrope' is unknown; there are none, linear and yarn [E072]\n" },
    { "llama", "ARCH.rope.freq_base = -1.0\n", "llama.rope.freq_base is negative, or no finite number [E072]\n" },
    { "llama", "ARCH.rope.freq_base = [1, 2]\n", "llama.rope.freq_base is an array of i32, not a number [E072]\n" },
    { "llama", "ARCH.attention.sliding_window = 1024\n",
      "llama.attention.sliding_window has no meaning here; what it changes would be left out [E072]\n" },
    { "llama", "ARCH.attention.temperature_scale = 0.1\n",
      "llama.attention.temperature_scale has no meaning here; what it changes would be left out [E072]\n" },
    { "granite", "ARCH.logit_scale = 8.0\nARCH.rope.scaling.finetuned = 3.5\n", "granite.rope.scaling.finetuned is of type f32, not a bool [E072]\n" },
    { "granite", "", "granite.logit_scale is missing [E072]\n" },
    { "gpt-oss", GPT_OSS "-ARCH.attention.sliding_window\n", "gpt-oss.attention.sliding_window is missing [E072]\n" },
    { "mistral3", "ARCH.attention.temperature_scale = 0.1\n",
      "mistral3.attention.temperature_scale goes with temperature_length or rope.scaling.original_context_length [E072]\n" },
    { "llama", "-blk.1.ffn_up.weight\n", "blk.1.ffn_up.weight is missing [E073]\n" },
    { "llama", BOTH("attn_q.scale", "1 1 f32"), "blk.0.attn_k.scale is missing [E073]\nblk.0.attn_v.scale is missing [E073]\n" },
    { "llama", BOTH("ffn_down.scale", "512 1 f32"), "blk.0.ffn_down.scale is [512], not [1] as the keys say [E073]\n" },
    { "llama", "-output.weight\noutput.scale: 1 1 f32\n",
      "output.scale has no use in a decoder of architecture llama [E073]\n" },
    { "llama", MIXTRAL BOTH("ffn_up_exps.scale", "8 1 f32"),
      "blk.0.ffn_up_exps.scale and 1 other tensors have no use in a decoder of architecture llama [E073]\n" },
    { "llama", "-token_embd.weight\n", "token_embd.weight is missing [E073]\n" },
    { "llama", "blk.0.attn_q.bias: 512 1 f32\n",
      "blk.1.attn_q.bias is missing [E073]\nblk.0.attn_k.bias is missing [E073]\nblk.0.attn_v.bias is missing [E073]\n" },
    { "llama", BOTH("attn_v.bias", "128 1 f32") BOTH("ffn_gate.bias", "768 1 f32"),
      "blk.0.attn_q.bias is missing [E073]\nblk.0.attn_k.bias is missing [E073]\nblk.0.ffn_up.bias is missing [E073]\n" },
    { "llama", "blk.1.attn_q.bias: 512 1 f32\n", "blk.1.attn_q.bias has no use in a decoder of architecture llama [E073]\n" },
    { "llama", "blk.2.attn_q.weight: 512 512 q4_K\nsome.scale: 1 1 f32\n",
      "blk.2.attn_q.weight and 1 other tensors have no use in a decoder of architecture llama [E073]\n" },
    { "llama", "blk.1.attn_k.weight: 512 256 q4_K\n", "blk.1.attn_k.weight is [512, 256], not [512, 128] as the keys say [E073]\n" },
    { "llama", "rope_freqs.weight: 64 1 f32\n", "rope_freqs.weight is [64], not [32] as the keys say [E073]\n" },
    { "llama", "output.weight: 512 999 q6_K\n", "output.weight is [512, 999], not [512, 1000] as the keys say [E073]\n" },
    { "llama", "blk.1.attn_norm.weight: 512 1 f16\n",
      "blk.1.attn_norm.weight is of type f16; all but matrices is f32 here [E073]\n" },
    { "llama", "blk.0.ffn_up.weight: 512 768 i8\nblk.1.ffn_up.weight: 512 768 i8\n",
      "blk.0.ffn_up.weight is of type i8, which has no format here [E073]\n" },
    { "llama", BOTH("ffn_up.weight", "512 1536 q4_K") "-blk.0.ffn_gate.weight\n-blk.1.ffn_gate.weight\n",
      "blk.0.ffn_gate.weight is missing [E073]\nblk.0.ffn_up.weight is [512, 1536], not [512, 768] as the keys say [E073]\n" },
    { "qwen2", "", "blk.0.attn_q.bias is missing [E073]\nblk.0.attn_k.bias is missing [E073]\nblk.0.attn_v.bias is missing [E073]\n" },
};
/* clang-format on */

ARENA_TEST(every_wrong_model_is_refused_with_its_messages)
{
    size_t wrong = 0;
    for (size_t i = 0; i < sizeof wrong_models / sizeof *wrong_models; i++) {
        const wrong_model *m = &wrong_models[i];
        outcome o = read_edited(a, m->architecture, m->edits, &usual_options);
        if (strcmp(o.messages, m->messages) == 0)
            continue;
        print_error("%s\n%.200s\n", m->architecture, m->edits);
        print_error("%sinstead of\n%s", o.messages, m->messages);
        wrong++;
    }
    assert_int_equal(wrong, 0);
}

/* Takes away a line of a file, or makes its first number another one. */
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
