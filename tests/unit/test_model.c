/* From GGUF headers to decoders: what every architecture's keys and tensors become, what their
 * absence means, and that whatever has no meaning is refused by its name. */
#include <stdio.h>
#include <stdlib.h>

#include "base/explain.h"
#include "base/os.h"
#include "decoder_sample.h"
#include "from_gguf.h"
#include "gguf_writer.h"
#include "model/read.h"
#include "ref/random.h"
#include "test_arena.h"

static const model_options usual = { .kv_type = -1 };

/* A file as text, a line each: "key = 1", "= 1.5" (f32), "= 1L" (u64), "= text", "= [1, 2]", "=
 * true", or "tensor: columns rows type". ARCH stands for the architecture. */
typedef VEC(const char *) file_text;

static size_t name_length(const char *line)
{
    return strcspn(line, " :");
}

/* Replaces the line of the same name, or adds one; "-name" takes it away. */
static void edit_line(arena *a, file_text *text, const char *line)
{
    bool removed = line[0] == '-';
    size_t at = 0;
    line += removed;
    while (at < text->count && (name_length(text->items[at]) != name_length(line) ||
                                strncmp(text->items[at], line, name_length(line)) != 0))
        at++;
    assert_true(!removed || at < text->count);
    if (at == text->count)
        *VEC_PUSH(a, text) = line;
    text->items[at] = removed ? "" : line;
}

static void edit(arena *a, file_text *text, const char *architecture, const char *lines)
{
    for (const char *at = lines; *at; at += strcspn(at, "\n") + 1) {
        strbuf line = strbuf_new(a);
        size_t length = strcspn(at, "\n");
        for (size_t i = 0; i < length; i++) {
            bool is_name = strncmp(at + i, "ARCH", 4) == 0;
            strbuf_bytes(&line, is_name ? architecture : at + i,
                         is_name ? strlen(architecture) : 1);
            i += is_name ? 3 : 0;
        }
        edit_line(a, text, line.text);
    }
}

enum { LAYERS = 2 };

/* What all architectures have. */
static file_text base_text(arena *a, const char *architecture)
{
    static const char keys[] = "general.architecture = ARCH\n"
                               "ARCH.block_count = 2\n"
                               "ARCH.context_length = 131072\n"
                               "ARCH.embedding_length = 512\n"
                               "ARCH.feed_forward_length = 768\n"
                               "ARCH.attention.head_count = 8\n"
                               "ARCH.attention.head_count_kv = 2\n"
                               "ARCH.attention.layer_norm_rms_epsilon = 1e-5\n"
                               "ARCH.rope.freq_base = 500000.0\n"
                               "ARCH.vocab_size = 1000\n"
                               "tokenizer.ggml.model = gpt2\n"
                               "token_embd.weight: 512 1000 q6_K\n"
                               "output_norm.weight: 512 1 f32\n"
                               "output.weight: 512 1000 q6_K\n";
    static const char layer[] = "blk.%d.attn_norm.weight: 512 1 f32\n"
                                "blk.%d.attn_q.weight: 512 512 q4_K\n"
                                "blk.%d.attn_k.weight: 512 128 q4_K\n"
                                "blk.%d.attn_v.weight: 512 128 q4_K\n"
                                "blk.%d.attn_output.weight: 512 512 q4_K\n"
                                "blk.%d.ffn_norm.weight: 512 1 f32\n"
                                "blk.%d.ffn_gate.weight: 512 768 q4_K\n"
                                "blk.%d.ffn_up.weight: 512 768 q4_K\n"
                                "blk.%d.ffn_down.weight: 768 512 q4_K\n";
    file_text text = { 0 };
    edit(a, &text, architecture, keys);
    for (int l = 0; l < LAYERS; l++)
        edit(a, &text, architecture, arena_format(a, layer, l, l, l, l, l, l, l, l, l));
    return text;
}

static const gguf_type *type_named(const char *name)
{
    const gguf_type *type;
    for (size_t i = 0; (type = gguf_list_types(i)); i++)
        if (strcmp(type->name, name) == 0)
            return type;
    fail_msg("no type %s", name);
    return NULL;
}

static void put_array(gguf_writer *w, const char *name, const char *values)
{
    uint64_t count = 1;
    for (const char *c = values; *c; c++)
        count += *c == ',';
    gguf_put_array(w, name, GGUF_I32, count);
    for (const char *at = values; count--; at += strcspn(at, ",") + 1)
        gguf_put(w, (uint64_t)strtoll(at + 1, NULL, 10), 4);
}

static void put_key(gguf_writer *w, const char *name, const char *value)
{
    char last = value[strlen(value) - 1];
    bool is_number = value[strspn(value, "-0123456789.eL")] == '\0';
    if (value[0] == '[')
        put_array(w, name, value);
    else if (strcmp(value, "true") == 0 || strcmp(value, "false") == 0)
        gguf_put_number(w, name, GGUF_BOOL, value[0] == 't');
    else if (!is_number)
        gguf_put_text(w, name, value);
    else if (strpbrk(value, ".e"))
        gguf_put_f32(w, name, strtof(value, NULL));
    else
        gguf_put_number(w, name, last == 'L' ? GGUF_U64 : GGUF_I32,
                        (uint64_t)strtoll(value, NULL, 10));
}

/* Returns the bytes of the tensor's data. */
static uint64_t put_tensor(gguf_writer *w, const char *name, const char *line, uint64_t offset)
{
    unsigned long long columns, rows;
    char type_name[16];
    assert_int_equal(sscanf(line, "%llu %llu %15s", &columns, &rows, type_name), 3);
    const gguf_type *type = type_named(type_name);
    gguf_put_tensor(w, name, rows == 1 ? GGUF_NE(columns) : GGUF_NE(columns, rows), type->id,
                    offset);
    return columns / type->block_values * rows * type->block_bytes;
}

static gguf_writer write_file(arena *a, const file_text *text)
{
    uint64_t counts[2] = { 0 }, offset = 0;
    for (size_t i = 0; i < text->count; i++)
        if (*text->items[i])
            counts[text->items[i][name_length(text->items[i])] == ':']++;
    gguf_writer w = gguf_start(a, 3, counts[1], counts[0]);
    for (int tensors = 0; tensors < 2; tensors++)
        for (size_t i = 0; i < text->count; i++) {
            const char *line = text->items[i];
            size_t length = name_length(line);
            const char *name = arena_copy(a, line, length);
            if (!length || (line[length] == ':') != tensors)
                continue;
            if (tensors)
                offset = (offset + put_tensor(&w, name, line + length + 1, offset) + 31) / 32 * 32;
            else
                put_key(&w, name, line + length + strlen(" = "));
        }
    return w;
}

typedef struct outcome {
    model model;
    bool right;
    const char *messages; /* "message [E072]", a line each */
} outcome;

static outcome read_file(arena *a, const gguf_file *file, const model_options *options)
{
    outcome o;
    diags d = diags_new(a);
    strbuf messages = strbuf_new(a);
    o.right = model_read(a, "m.gguf", file, options, &o.model, &d);
    assert_int_equal(o.right, d.list.count == 0);
    for (size_t i = 0; i < d.list.count; i++) {
        assert_string_equal(d.list.items[i].where.file, "m.gguf");
        strbuf_format(&messages, "%s [%s]\n", d.list.items[i].message,
                      diag_number(d.list.items[i].code));
    }
    o.messages = messages.text;
    return o;
}

static outcome read_edited(arena *a, const char *architecture, const char *edits,
                           const model_options *options)
{
    file_text text = base_text(a, architecture);
    gguf_file file;
    gguf_error error;
    edit(a, &text, architecture, edits);
    gguf_writer w = write_file(a, &text);
    if (!gguf_open_memory("m.gguf", w.out.text, w.out.length, &file, &error))
        fail_msg("%s", error.message);
    outcome o = read_file(a, &file, options);
    gguf_close(&file);
    return o;
}

/* Whether a decoder is what a section says, and what is printed of it reads as it. */
static void check_decoder(arena *a, const char *what, const decoder *d, const char *text)
{
    diags problems = diags_new(a);
    strbuf printed = strbuf_new(a), messages = strbuf_new(a);
    decoder expected, back;
    bool right = parse_decoder(a, text, &expected, &problems);
    decoder_print(&printed, d, NULL);
    right &= parse_decoder(a, printed.text, &back, &problems);
    diags_render(&problems, &messages, false);
    const char *wrong = right ? decoder_difference(a, d, &expected) : "the text";
    wrong = wrong ? wrong : decoder_difference(a, d, &back);
    if (wrong)
        fail_msg("%s: %s is wrong in\n%s%s", what, wrong, printed.text, messages.text);
}

#define SECTION(keys)                                                                  \
    "[decoder]\nlayers = 2\nhidden = 512\nff = 768\nnum_heads = 8\nnum_kv_heads = 2\n" \
    "vocab = 1000\nrope_base = 500000\nweights = q4_k\nweights.token_embd = q6_k\n" keys
#define OWN_OUTPUT "weights.output = q6_k\n"

typedef struct right_model {
    const char *what, *architecture, *edits, *section;
} right_model;

#define BOTH(name, shape) "blk.0." name ": " shape "\nblk.1." name ": " shape "\n"
#define NORM(name)        BOTH(name ".weight", "512 1 f32")
#define HEAD_NORMS        BOTH("attn_q_norm.weight", "64 1 f32") BOTH("attn_k_norm.weight", "64 1 f32")
#define QKV_BIASES                   \
    BOTH("attn_q.bias", "512 1 f32") \
    BOTH("attn_k.bias", "128 1 f32") BOTH("attn_v.bias", "128 1 f32")
#define FUSED_QKV                                                                                \
    "-blk.0.attn_q.weight\n-blk.0.attn_k.weight\n-blk.0.attn_v.weight\n"                         \
    "-blk.1.attn_q.weight\n-blk.1.attn_k.weight\n-blk.1.attn_v.weight\n" BOTH("attn_qkv.weight", \
                                                                              "512 768 q5_K")
#define FUSED_GATE_UP \
    "-blk.0.ffn_gate.weight\n-blk.1.ffn_gate.weight\n" BOTH("ffn_up.weight", "512 1536 q4_K")
#define LONG_FACTORS "rope_factors_long.weight: 32 1 f32\nrope_factors_short.weight: 32 1 f32\n"

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
    { "formats by layer", "llama",
      "blk.1.attn_v.weight: 512 128 q6_K\nblk.0.ffn_down.weight: 768 512 q8_0\n",
      SECTION("architecture = llama\n" OWN_OUTPUT
              "weights.attn_v = q6_k: 1\nweights.ffn_down = q8_0: 0\n") },
    { "heads of a size of their own", "llama",
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
      "ARCH.rope.scaling.original_context_length = 32768\nARCH.rope.scaling.yarn_beta_fast = "
      "16.0\n",
      SECTION("architecture = llama\nrope_scaling = yarn\nrope_factor = 4\n"
              "rope_original_context = 32768\nrope_beta_fast = 16\n"
              "rope_magnitude = 1.138629436111989\n" OWN_OUTPUT) },
    { "a linear scale, and the context ahead of it", "llama",
      "ARCH.rope.scaling.type = linear\nARCH.rope.scaling.factor = 2.5\n"
      "ARCH.rope.scaling.original_context_length = 4096\n",
      SECTION("architecture = llama\nrope_scaling = linear\nrope_factor = 2.5\n" OWN_OUTPUT) },
    { "no experts", "llama", "ARCH.expert_count = 0\nARCH.expert_used_count = 0\n",
      SECTION("architecture = llama\n" OWN_OUTPUT) },
    { "a window wider than the caches", "qwen2",
      "ARCH.attention.sliding_window = 131072\n" QKV_BIASES "output.bias: 1000 1 f32\n",
      SECTION("architecture = qwen2\nrope = neox\nbiases = attn_q, attn_k, attn_v, "
              "output\n" OWN_OUTPUT) },
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
      "ARCH.attn_logit_softcapping = 50.0\nARCH.final_logit_softcapping = "
      "30.0\n-output.weight\n" NORM("post_attention_norm") NORM("post_ffw_norm"),
      SECTION("architecture = gemma2\nrope = neox\nactivation = gelu\nwindow = 4096\n"
              "window_layers = 0\nattention_softcap = 50\nfinal_softcap = 30\noutput = tied\n"
              "embedding_scale = 22.627416997969522\n"
              "norms = post_attention_norm, post_ffw_norm\n") },
    { "gemma3 with a pattern of its own", "gemma3",
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
};

ARENA_TEST(every_architecture_becomes_its_decoder)
{
    for (size_t i = 0; i < sizeof right_models / sizeof *right_models; i++) {
        const right_model *m = &right_models[i];
        outcome o = read_edited(a, m->architecture, m->edits, &usual);
        if (!o.right)
            fail_msg("%s: %s", m->what, o.messages);
        check_decoder(a, m->what, &o.model.decoder, m->section);
    }
}

ARENA_TEST(granite_that_was_not_finetuned_has_no_rope)
{
    outcome o = read_edited(a, "granite", "ARCH.rope.scaling.finetuned = false\n", &usual);
    assert_true(o.right);
    check_decoder(a, "granite", &o.model.decoder,
                  "[decoder]\narchitecture = granite\nlayers = 2\nhidden = 512\nff = 768\n"
                  "num_heads = 8\nnum_kv_heads = 2\nvocab = 1000\nrope = none\nweights = q4_k\n"
                  "weights.token_embd = q6_k\nweights.output = q6_k\n");
}

/* Models of 27 billion weights are known by their layers. */
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
        outcome o = read_edited(a, names[i], edits.text, &usual);
        assert_false(o.right); /* there are no tensors of so many layers */
        assert_true(o.model.decoder.attention_scale > 0.1249999 &&
                    o.model.decoder.attention_scale < 0.1250001);
    }
}

ARENA_TEST(options_set_room_and_kind_of_the_caches)
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
    o = read_edited(a, "llama", "ARCH.context_length = 2048\n", &usual);
    assert_int_equal(o.model.decoder.max_seq_len, 2048);
}

/* A file of a name and with a general.name as given; NULL: none. */
static const char *prefix_made_of(arena *a, const char *file_name, const char *model_name)
{
    const char *folder, *error;
    file_text text = base_text(a, "llama");
    strbuf out = strbuf_new(a), said = strbuf_new(a);
    diags d = diags_new(a);
    if (model_name)
        edit(a, &text, "llama", arena_format(a, "general.name = %s\n", model_name));
    gguf_writer w = write_file(a, &text);
    assert_true(os_temporary_directory(a, &folder, &error));
    const char *path = arena_format(a, "%s/%s", folder, file_name);
    assert_true(os_write_file(a, path, w.out.text, w.out.length, &error));
    assert_true(from_gguf(a, path, &(spec_overrides){ 0 }, &usual, &out, &said, &d));
    os_remove_directory(a, folder);
    const char *prefix = strstr(out.text, "prefix  = ") + strlen("prefix  = ");
    return arena_copy(a, prefix, strcspn(prefix, "\n"));
}

ARENA_TEST(a_prefix_is_made_of_the_models_name_or_the_files)
{
    static const struct {
        const char *file, *model, *prefix;
    } cases[] = {
        { "x.gguf", "Meta Llama-3.1--8B Instruct_", "meta_llama_3_1_8b_instruct" },
        { "x.gguf",
          "7B Gr\xc3\xb6\xc3\x9f"
          "e",
          "m7b_gr_e" },
        { "Qwen3-4B-Q4_K_M-00001.gguf", NULL, "qwen3_4b_q4_k_m_00001" },
        { "Qwen3.gguf", "\xe6\xa8\xa1\xe5\x9e\x8b", "qwen3" },
        { "---.gguf", NULL, "model" },
        { "long.gguf", "a12345678901234567890123456789012345678901234567890123456789012 tail",
          "a12345678901234567890123456789012345678901234567890123456789012" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_string_equal(prefix_made_of(a, cases[i].file, cases[i].model), cases[i].prefix);
}

/* A model in two parts: all keys and half of the tensors, and the other half. */
ARENA_TEST(parts_of_a_model_are_one)
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
    outcome o = read_file(a, &file, &usual);
    if (!o.right)
        fail_msg("%s", o.messages);
    check_decoder(a, "two parts", &o.model.decoder, SECTION("architecture = llama\n" OWN_OUTPUT));
    gguf_close(&file);
    os_remove_directory(a, folder);
}

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
    { "llama", "blk.0.ffn_up.weight: 512 768 q1_0\nblk.1.ffn_up.weight: 512 768 q1_0\n",
      "blk.0.ffn_up.weight is of type q1_0, which has no format here [E073]\n" },
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
        outcome o = read_edited(a, m->architecture, m->edits, &usual);
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
            outcome o = read_file(scratch, &file, &usual);
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

typedef struct known_file {
    const char *name, *expected; /* a section, or messages */
} known_file;

/* Reads files of a folder and compares what they become. */
static void check_files(arena *a, const char *folder, const known_file *files, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        gguf_file file;
        gguf_error error;
        if (!gguf_open(arena_format(a, "%s/%s.gguf", folder, files[i].name), &file, &error))
            fail_msg("%s", error.message);
        outcome o = read_file(a, &file, &usual);
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
    };
    const char *folder = getenv("PTXGEN_REAL_HEADERS");
    if (!folder)
        skip();
    check_files(a, folder, files, sizeof files / sizeof *files);
}

#define TINY(sizes) "[decoder]\nvocab = 320\nnorm_epsilon = 1e-6\nmax_seq_len = 64\n" sizes
#define NEEDS(name, feature)                                                              \
    "architecture '" name "' has no decoder here, it needs " feature "; there are llama," \
    " mistral3, qwen2, qwen3, gemma2, gemma3, phi3, granite [E071]\n"

/* The small models beside the project, where there are any. */
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
        { "llama_types", "blk.3.ffn_gate.weight is of type q1_0, which has no format here [E073]\n"
                         "blk.3.ffn_up.weight is of type q2_0, which has no format here [E073]\n" },
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
        { "stories260K",
          "[decoder]\narchitecture = llama\nlayers = 5\nhidden = 64\nff = 172\nnum_heads = 8\n"
          "num_kv_heads = 4\nvocab = 512\nmax_seq_len = 512\noutput = tied\nweights = f32\n" },
        { "stories260K_q4",
          "[decoder]\narchitecture = llama\nlayers = 5\nhidden = 256\nff = 256\nnum_heads = 32\n"
          "num_kv_heads = 16\nvocab = 512\nnorm_epsilon = 2.5e-6\nmax_seq_len = 512\n"
          "output = tied\nweights = q4_k\nweights.token_embd = q6_k\n"
          "weights.attn_v = q6_k: 2, 4\nweights.ffn_down = q6_k: 2, 4\n" },
        { "mixtral", "llama.expert_count says that the model needs a mixture of experts, which "
                     "has no decoder here [E072]\n" },
        { "qwen3moe", NEEDS("qwen3moe", "a mixture of experts") },
        { "granitemoe", NEEDS("granitemoe", "a mixture of experts") },
        { "gpt_oss", NEEDS("gpt-oss", "a mixture of experts") },
        { "deepseek2", NEEDS("deepseek2", "multi-head latent attention") },
        { "qwen3next", NEEDS("qwen3next", "layers with a recurrent state (delta net or SSM)") },
    };
    const char *folder = getenv("PTXGEN_MODELS");
    if (!folder || !os_exists(folder))
        skip();
    check_files(a, folder, files, sizeof files / sizeof *files);
}
