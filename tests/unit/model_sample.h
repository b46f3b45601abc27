/* Builds GGUF files of models from text. */
#ifndef PTXGEN_TESTS_MODEL_SAMPLE_H
#define PTXGEN_TESTS_MODEL_SAMPLE_H

#include <stdio.h>
#include <stdlib.h>

#include "base/diag.h"
#include "decoder_sample.h"
#include "gguf_writer.h"
#include "model/from_gguf/read.h"
#include "test.h"

static const model_options usual_options = { .kv_type = -1 };

/* A file as text, one entry per line: "key = 1", "= 1.5" (f32), "= 1L" (u64), "= text", "= [1, 2]",
 * "= true", or "tensor: columns rows type". ARCH is replaced by the architecture's name. */
typedef VEC(const char *) file_text;

static inline size_t name_length(const char *line)
{
    return strcspn(line, " :");
}

/* Replaces the line of the same name, or adds the line. "-name" removes it. */
static inline void edit_line(arena *a, file_text *text, const char *line)
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

static inline void edit(arena *a, file_text *text, const char *architecture, const char *lines)
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

/* Returns the keys and tensors that every architecture has. */
static inline file_text base_text(arena *a, const char *architecture)
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

static inline const gguf_type *type_named(const char *name)
{
    for (uint32_t id = 0; id < 256; id++) {
        const gguf_type *type = gguf_find_type(id);
        if (type && strcmp(type->name, name) == 0)
            return type;
    }
    fail_msg("unknown type %s", name);
    return NULL;
}

static inline void put_array(gguf_writer *w, const char *name, const char *values)
{
    uint64_t count = 1;
    for (const char *c = values; *c; c++)
        count += *c == ',';
    gguf_put_array(w, name, GGUF_I32, count);
    for (const char *at = values; count--; at += strcspn(at, ",") + 1)
        gguf_put(w, (uint64_t)strtoll(at + 1, NULL, 10), 4);
}

static inline void put_key(gguf_writer *w, const char *name, const char *value)
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

/* Writes a tensor's info. Returns the bytes of its data. */
static inline uint64_t put_tensor(gguf_writer *w, const char *name, const char *line,
                                  uint64_t offset)
{
    unsigned long long columns, rows, planes = 1;
    char type_name[16];
    if (sscanf(line, "%llu %llu %llu %15s", &columns, &rows, &planes, type_name) < 4)
        assert_int_equal(sscanf(line, "%llu %llu %15s", &columns, &rows, type_name), 3);
    const gguf_type *type = type_named(type_name);
    gguf_put_tensor(w, name,
                    planes > 1 ? GGUF_NE(columns, rows, planes)
                    : rows > 1 ? GGUF_NE(columns, rows)
                               : GGUF_NE(columns),
                    type->id, offset);
    return columns / type->block_values * rows * planes * type->block_bytes;
}

static inline gguf_writer write_file(arena *a, const file_text *text)
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
    const char *messages; /* one "message [E072]" per line */
} outcome;

static inline const decoder_key *expected_key(const decoder_file *expected, const char *name)
{
    for (size_t i = 0; i < expected->key_count; i++) {
        const char *wanted = expected->keys[i].name;
        size_t length = strcspn(wanted, "*"); /* "granite.ssm.*": all keys that begin so */
        if (strncmp(wanted, name, length) == 0 && (wanted[length] || !name[length]))
            return &expected->keys[i];
    }
    return NULL;
}

static inline void check_key(const gguf_file *file, const decoder_key *wanted)
{
    const gguf_key *found = gguf_find_key(file, wanted->name);
    gguf_string text;
    double number;
    if (!found && wanted->use == DECODER_KEY_REQUIRED)
        fail_msg("%s is expected", wanted->name);
    if (!found || wanted->use == DECODER_KEY_IGNORED)
        return;
    if (!wanted->values) {
        assert_true(gguf_get_string(found, &text) && gguf_string_is(text, wanted->text));
        return;
    }
    assert_true(wanted->count == 1 || wanted->count == found->count);
    for (uint64_t i = 0; i < found->count; i++)
        if (!gguf_get_f64(found, i, &number) ||
            (float)number < (float)wanted->values[wanted->count > 1 ? i : 0] ||
            (float)number > (float)wanted->values[wanted->count > 1 ? i : 0])
            fail_msg("%s is expected to be %s", wanted->name, wanted->text);
}

/* Checks that the file's keys give the section's decoder, and that the file has every key a header
 * expects. */
static inline void check_file_keys(arena *a, const gguf_file *file, const decoder *read)
{
    strbuf text = strbuf_new(a);
    diags found = diags_new(a);
    decoder *d = arena_alloc(a, sizeof *d);
    model *again = arena_alloc(a, sizeof *again);
    decoder_file expected;
    decoder_print(&text, read, NULL);
    if (!parse_decoder(a, text.text, d, &found))
        return; /* a spec rejects it: no kernels */
    if (!model_expect(a, d, again, &expected, &found))
        fail_msg("%s", found.list.items[0].message);
    const char *edited = decoder_edited(a, d, &again->decoder);
    if (edited)
        fail_msg("%s in\n%s", edited, text.text);
    const char *prefix = arena_format(a, "%s.", d->architecture);
    for (size_t i = 0; i < file->key_count; i++)
        if (strncmp(file->keys[i].name, prefix, strlen(prefix)) == 0 &&
            !expected_key(&expected, file->keys[i].name))
            fail_msg("%s is not expected", file->keys[i].name);
    for (size_t i = 0; i < expected.key_count; i++)
        check_key(file, &expected.keys[i]);
}

static inline outcome read_file(arena *a, const gguf_file *file, const model_options *options)
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
    if (o.right)
        check_file_keys(a, file, &o.model.decoder);
    return o;
}

static inline outcome read_edited(arena *a, const char *architecture, const char *edits,
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

/* Checks that a decoder equals the section text, and that its printed form parses back to it. */
static inline void check_decoder(arena *a, const char *what, const decoder *d, const char *text)
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
        fail_msg("%s: %s differs in\n%s%s", what, wrong, printed.text, messages.text);
}

#define SECTION(keys)                                                                  \
    "[decoder]\nlayers = 2\nhidden = 512\nff = 768\nnum_heads = 8\nnum_kv_heads = 2\n" \
    "vocab = 1000\nrope_base = 500000\nweights = q4_k\nweights.token_embd = q6_k\n" keys
#define OWN_OUTPUT        "weights.output = q6_k\n"

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
#define NO_FFN                                                               \
    "-blk.0.ffn_gate.weight\n-blk.1.ffn_gate.weight\n-blk.0.ffn_up.weight\n" \
    "-blk.1.ffn_up.weight\n-blk.0.ffn_down.weight\n-blk.1.ffn_down.weight\n"
#define EXPERT_KEYS "ARCH.expert_count = 8\nARCH.expert_used_count = 2\n"
#define OWN_ROWS    "ARCH.expert_feed_forward_length = 256\n"
#define ROUTER      BOTH("ffn_gate_inp.weight", "512 8 f32")
#define EXPERTS                                                  \
    NO_FFN ROUTER BOTH("ffn_gate_exps.weight", "512 256 8 q4_K") \
        BOTH("ffn_up_exps.weight", "512 256 8 q4_K")             \
            BOTH("ffn_down_exps.weight", "256 512 8 q6_K")
#define SHARED_EXPERT                             \
    BOTH("ffn_gate_shexp.weight", "512 512 q4_K") \
    BOTH("ffn_up_shexp.weight", "512 512 q4_K")   \
    BOTH("ffn_down_shexp.weight", "512 512 q4_K")
#define PRE_FFN_NORM "-blk.0.ffn_norm.weight\n-blk.1.ffn_norm.weight\n" NORM("post_attention_norm")

#define EXPERT_SECTION(keys)                                                                \
    "[decoder]\nlayers = 2\nhidden = 512\nexperts = 8\nexperts_used = 2\nexpert_ff = 256\n" \
    "num_heads = 8\nvocab = 1000\nrope_base = 500000\nweights = q4_k\n"                     \
    "weights.token_embd = q6_k\nweights.ffn_down_exps = q6_k\n" OWN_OUTPUT keys

/* gpt-oss: all biases, sinks, and the window. */
#define GPT_OSS                                                                                \
    EXPERT_KEYS OWN_ROWS EXPERTS PRE_FFN_NORM QKV_BIASES BOTH("attn_output.bias", "512 1 f32") \
        BOTH("attn_sinks.weight", "8 1 f32") BOTH("ffn_gate_inp.bias", "8 1 f32")              \
            BOTH("ffn_gate_exps.bias", "256 8 f32") BOTH("ffn_up_exps.bias", "256 8 f32")      \
                BOTH("ffn_down_exps.bias", "512 8 f32") "ARCH.attention.sliding_window = 128\n"

/* Latent attention with 8 heads of 64 + 32, values of 64, and a dense layer before the experts. */
#define LATENT_KEYS                                                              \
    "ARCH.attention.kv_lora_rank = 256\nARCH.attention.head_count_kv = 1\n"      \
    "ARCH.attention.key_length = 288\nARCH.attention.value_length = 256\n"       \
    "ARCH.attention.key_length_mla = 96\nARCH.attention.value_length_mla = 64\n" \
    "ARCH.rope.dimension_count = 32\nARCH.leading_dense_block_count = 1\n"       \
    "ARCH.expert_shared_count = 2\n" EXPERT_KEYS OWN_ROWS
#define LATENT_TENSORS                                                                             \
    "-blk.0.attn_k.weight\n-blk.0.attn_v.weight\n-blk.1.attn_k.weight\n-blk.1.attn_v."             \
    "weight\n" BOTH("attn_q.weight", "512 768 q4_K") BOTH("attn_kv_a_mqa.weight", "512 288 q4_K")  \
        BOTH("attn_kv_a_norm.weight", "256 1 f32") BOTH("attn_k_b.weight", "64 256 8 q8_0")        \
            BOTH("attn_v_b.weight",                                                                \
                 "256 64 8 q4_K") "-blk.1.ffn_gate.weight\n-blk.1.ffn_up.weight\n-blk.1.ffn_down." \
                                  "weight\n"                                                       \
                                  "blk.1.ffn_gate_inp.weight: 512 8 "                              \
                                  "f32\nblk.1.ffn_gate_exps.weight: 512 256 8 q4_K\n"              \
                                  "blk.1.ffn_up_exps.weight: 512 256 8 "                           \
                                  "q4_K\nblk.1.ffn_down_exps.weight: 256 512 8 q6_K\n"             \
                                  "blk.1.ffn_gate_shexp.weight: 512 512 "                          \
                                  "q4_K\nblk.1.ffn_up_shexp.weight: 512 512 q4_K\n"                \
                                  "blk.1.ffn_down_shexp.weight: 512 512 q4_K\n"
#define LATENT_SECTION(keys) LATENT_SECTION_OF("deepseek2", "weights.attn_k_b = q8_0\n" keys)
#define LATENT_SECTION_OF(name, keys)                                                        \
    EXPERT_SECTION("architecture = " name "\nshared_ff = 512\nexpert_layers = 1\nff = 768\n" \
                   "latent = 256\nvalue_dim = 64\nhead_dim = 96\nrope_dims = 32\n" keys)

/* Layer 0 is a delta net with 2 key heads and 4 value heads of 32. Layer 1 has gated attention. */
#define NEXT_KEYS                                                                       \
    "ARCH.full_attention_interval = 2\nARCH.ssm.conv_kernel = 4\n"                      \
    "ARCH.ssm.group_count = 2\nARCH.ssm.time_step_rank = 4\nARCH.ssm.state_size = 32\n" \
    "ARCH.ssm.inner_size = 128\nARCH.rope.dimension_count = 16\n"                       \
    "ARCH.expert_shared_feed_forward_length = 512\n" EXPERT_KEYS OWN_ROWS
#define NEXT_TENSORS                                                                               \
    EXPERTS PRE_FFN_NORM SHARED_EXPERT BOTH(                                                       \
        "ffn_gate_inp_shexp.weight",                                                               \
        "512 1 f32") "-blk.0.attn_q.weight\n-blk.0.attn_k.weight\n-blk.0.attn_v.weight\n"          \
                     "-blk.0.attn_output.weight\nblk.0.attn_qkv.weight: 512 256 q5_K\n"            \
                     "blk.0.attn_gate.weight: 512 128 q4_K\nblk.0.ssm_conv1d.weight: 4 256 f32\n"  \
                     "blk.0.ssm_dt.bias: 4 1 f32\nblk.0.ssm_a: 4 1 f32\nblk.0.ssm_ba.weight: 512 " \
                     "8 q4_K\n"                                                                    \
                     "blk.0.ssm_norm.weight: 32 1 f32\nblk.0.ssm_out.weight: 128 512 q8_0\n"       \
                     "blk.1.attn_q.weight: 512 1024 q4_K\nblk.1.attn_q_norm.weight: 64 1 f32\n"    \
                     "blk.1.attn_k_norm.weight: 64 1 f32\n"
#define NEXT_SECTION(keys)                                                                      \
    EXPERT_SECTION("architecture = qwen3next\nnum_kv_heads = 2\nshared_ff = 512\n"              \
                   "shared_gate = sigmoid\nexperts_normed = yes\nrope = neox\nrope_dims = 16\n" \
                   "norms = attn_q_norm, attn_k_norm\nffn_norm = post_attention_norm\n"         \
                   "attention_gate = sigmoid\nrecurrent_layers = 0\ndelta_key_heads = 2\n"      \
                   "delta_value_heads = 4\ndelta_head_dim = 32\nweights.attn_qkv = q5_k\n"      \
                   "weights.ssm_out = q8_0\n" keys)

/* Delta nets of the same sizes with tiled value heads, without the feed-forward's keys. */
#define TILED_KEYS                                                                      \
    "ARCH.full_attention_interval = 2\nARCH.ssm.conv_kernel = 4\n"                      \
    "ARCH.ssm.group_count = 2\nARCH.ssm.time_step_rank = 4\nARCH.ssm.state_size = 32\n" \
    "ARCH.ssm.inner_size = 128\nARCH.rope.dimension_count = 16\n"                       \
    "ARCH.rope.dimension_sections = [3, 3, 2, 0]\n"
#define TILED_NETS                                                                            \
    PRE_FFN_NORM "-blk.0.attn_q.weight\n-blk.0.attn_k.weight\n-blk.0.attn_v.weight\n"         \
                 "-blk.0.attn_output.weight\nblk.0.attn_qkv.weight: 512 256 q5_K\n"           \
                 "blk.0.attn_gate.weight: 512 128 q4_K\nblk.0.ssm_conv1d.weight: 4 256 f32\n" \
                 "blk.0.ssm_dt.bias: 4 1 f32\nblk.0.ssm_a: 4 1 f32\n"                         \
                 "blk.0.ssm_beta.weight: 512 4 q8_0\nblk.0.ssm_alpha.weight: 512 4 f32\n"     \
                 "blk.0.ssm_norm.weight: 32 1 f32\nblk.0.ssm_out.weight: 128 512 q8_0\n"      \
                 "blk.1.attn_q.weight: 512 1024 q4_K\nblk.1.attn_q_norm.weight: 64 1 f32\n"   \
                 "blk.1.attn_k_norm.weight: 64 1 f32\n"
#define TILED_EXPERTS                                                                \
    EXPERT_KEYS OWN_ROWS                                                             \
        "ARCH.expert_shared_feed_forward_length = 512\n" EXPERTS SHARED_EXPERT BOTH( \
            "ffn_gate_inp_shexp.weight", "512 1 f32")
#define TILED_SECTION                                                                  \
    "rope = neox\nrope_dims = 16\nnorms = attn_q_norm, attn_k_norm\n"                  \
    "ffn_norm = post_attention_norm\nattention_gate = sigmoid\nrecurrent_layers = 0\n" \
    "delta_key_heads = 2\ndelta_value_heads = 4\ndelta_head_dim = 32\n"                \
    "delta_layout = tiled\nweights.attn_qkv = q5_k\nweights.ssm_beta = q8_0\n"         \
    "weights.ssm_alpha = f32\nweights.ssm_out = q8_0\n"
/* A third layer for multi-token prediction, which the decoder ignores. */
#define FURTHER_LAYER                                                         \
    "ARCH.block_count = 3\nARCH.nextn_predict_layers = 1\n"                   \
    "blk.2.attn_norm.weight: 512 1 f32\nblk.2.attn_q.weight: 512 1024 q4_K\n" \
    "blk.2.nextn.eh_proj.weight: 1024 512 q4_K\nblk.2.nextn.enorm.weight: 512 1 f32\n"

#define LONG_FACTORS "rope_factors_long.weight: 32 1 f32\nrope_factors_short.weight: 32 1 f32\n"

#endif
