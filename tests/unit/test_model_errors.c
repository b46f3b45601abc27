/* Models that no decoder can be made of: whatever has no meaning is refused by its name. */
#include "model_sample.h"
#include "ref/random.h"
#include "test_arena.h"

typedef struct wrong_model {
    const char *architecture, *edits, *messages;
} wrong_model;

/* clang-format off */
#define ALL_NAMES "llama, mistral3, qwen2, qwen3, gemma2, gemma3, phi3, granite"
static const wrong_model wrong_models[] = {
    { "llama", "-general.architecture\n", "general.architecture is missing; this is no file of a model [E072]\n" },
    { "bert", "", "architecture 'bert' has no decoder here; there are " ALL_NAMES " [E071]\n" },
    { "deepseek2", "ARCH.attention.kv_lora_rank = 512\n",
      "architecture 'deepseek2' has no decoder here, it needs multi-head latent attention; there are " ALL_NAMES " [E071]\n" },
    { "qwen3moe", "ARCH.expert_count = 8\n",
      "architecture 'qwen3moe' has no decoder here, it needs a mixture of experts; there are " ALL_NAMES " [E071]\n" },
    { "qwen3next", "ARCH.ssm.conv_kernel = 4\nARCH.expert_count = 8\n",
      "architecture 'qwen3next' has no decoder here, it needs layers with a recurrent state (delta net or SSM); there are "
      ALL_NAMES " [E071]\n" },
    { "llama", "ARCH.expert_count = 8\n",
      "llama.expert_count says that the model needs a mixture of experts, which has no decoder here [E072]\n" },
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
    { "granite", "ARCH.rope.scaling.finetuned = 3.5\n", "granite.rope.scaling.finetuned is of type f32, not a bool [E072]\n" },
    { "gemma2", NORM("post_attention_norm") NORM("post_ffw_norm"),
      "gemma2.attn_logit_softcapping is missing [E072]\ngemma2.final_logit_softcapping is missing [E072]\n" },
    { "mistral3", "ARCH.attention.temperature_scale = 0.1\n",
      "mistral3.attention.temperature_scale goes with temperature_length or rope.scaling.original_context_length [E072]\n" },
    { "llama", "-blk.1.ffn_up.weight\n", "blk.1.ffn_up.weight is missing [E073]\n" },
    { "llama", "-token_embd.weight\n", "token_embd.weight is missing [E073]\n" },
    { "llama", "blk.0.attn_q.bias: 512 1 f32\n", "blk.1.attn_q.bias is missing [E073]\n" },
    { "llama", "blk.1.attn_q.bias: 512 1 f32\n", "blk.1.attn_q.bias has no use in a decoder of architecture llama [E073]\n" },
    { "llama", "blk.2.attn_q.weight: 512 512 q4_K\nsome.scale: 1 1 f32\n",
      "blk.2.attn_q.weight and 1 other tensors have no use in a decoder of architecture llama [E073]\n" },
    { "llama", "blk.1.attn_k.weight: 512 256 q4_K\n", "blk.1.attn_k.weight is [512, 256], not [512, 128] as the keys say [E073]\n" },
    { "llama", "rope_freqs.weight: 64 1 f32\n", "rope_freqs.weight is [64], not [32] as the keys say [E073]\n" },
    { "llama", "output.weight: 512 999 q6_K\n", "output.weight is [512, 999], not [512, 1000] as the keys say [E073]\n" },
    { "llama", "blk.1.attn_norm.weight: 512 1 f16\n",
      "blk.1.attn_norm.weight is of type f16; norms, biases and factors of RoPE are f32 here [E073]\n" },
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
        print_error("%s\n%s%sinstead of\n%s", m->architecture, m->edits, o.messages, m->messages);
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
    static const char *const names[] = { "llama", "gemma3", "phi3", "granite" };
    static const char *const edits[] = {
        "ARCH.rope.scaling.type = yarn\nARCH.rope.scaling.factor = 4.0\n",
        "ARCH.attention.sliding_window = 512\n" NORM("post_attention_norm") NORM("post_ffw_norm")
            HEAD_NORMS,
        FUSED_QKV FUSED_GATE_UP LONG_FACTORS,
        "ARCH.logit_scale = 16.0\nARCH.attention.head_count = [8, 8]\n",
    };
    size_t opened = 0, right = 0;
    for (uint64_t seed = 1; seed <= TRIALS; seed++) {
        arena *scratch = arena_new_in(a);
        random_source r = { seed };
        size_t which = random_below(&r, 4);
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
