/* Quantizes an f32 model whose rows are too short for super-blocks.
 *
 *     convert_model IN.gguf OUT.gguf FORMAT [BETTER]
 *
 * IN is of architecture llama, and its embeddings are a quarter of a super-block wide. OUT computes
 * the same, with the rows of all matrices padded with zeros to super-blocks. Embeddings and heads
 * are four times as many, so the mean of squares in a norm is a quarter. Norm weights are therefore
 * halved, and epsilon is a quarter. These are powers of two, so nothing is rounded.
 *
 * All matrices get FORMAT. With BETTER, the embedding gets BETTER, and so do attn_v and ffn_down in
 * half of the layers, as in mixes like Q4_K_M. FORMAT "every" gives each matrix another format. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/os.h"
#include "gguf_writer.h"
#include "models/quantize.h"

enum { SUPER_BLOCK = 256, WIDER = 4, ALIGNMENT = 32 };
static const format EVERY = FORMAT_COUNT; /* all formats, one after another */

typedef struct conversion {
    arena *arena;
    gguf_file file;
    uint64_t hidden, heads, kv_heads, ff, layers;
    format plain, better;
} conversion;

static _Noreturn void give_up(const char *what, const char *why)
{
    fprintf(stderr, "convert_model: %s: %s\n", what, why);
    exit(1);
}

static uint64_t number(const conversion *c, const char *key)
{
    uint64_t value;
    const gguf_key *k = gguf_find_key(&c->file, arena_format(c->arena, "llama.%s", key));
    if (!gguf_get_u64(k, 0, &value))
        give_up(key, "missing");
    return value;
}

static bool holds_weights(format f)
{
    return formats[f].gguf_type != NO_GGUF_TYPE && f != FORMAT_Q8_1;
}

static format format_of(const char *name)
{
    if (strcmp(name, "every") == 0)
        return EVERY;
    for (format f = 0; f < FORMAT_COUNT; f++)
        if (holds_weights(f) && strcmp(formats[f].name, name) == 0)
            return f;
    give_up(name, "unknown weight format; use for example q4_k or every");
}

/* Returns a dimension of a tensor after padding. */
static uint64_t padded(const conversion *c, uint64_t size)
{
    if (size == c->ff)
        return (size + SUPER_BLOCK - 1) / SUPER_BLOCK * SUPER_BLOCK;
    bool is_wide = size == c->hidden || size == c->hidden / c->heads * c->kv_heads;
    return is_wide ? WIDER * size : size;
}

/* Returns true for the layers that get more bits in llama.cpp's mixes. */
static bool has_more_bits(uint64_t layer, uint64_t layers)
{
    return layer < layers / 8 || layer >= 7 * layers / 8 || (layer - layers / 8) % 3 == 2;
}

/* Returns the format of a matrix for "every": each matrix gets the next format. */
static format next_format(const conversion *c, const gguf_tensor *t)
{
    format f = FORMAT_F32;
    for (const gguf_tensor *other = c->file.tensors; other < t; other++)
        if (other->n_dims > 1)
            do
                f = (f + 1) % FORMAT_COUNT;
            while (!holds_weights(f));
    return f;
}

static format format_in(const conversion *c, const gguf_tensor *t)
{
    if (t->n_dims == 1)
        return FORMAT_F32;
    if (c->plain == EVERY)
        return next_format(c, t);
    unsigned long layer = strncmp(t->name, "blk.", 4) == 0 ? strtoul(t->name + 4, NULL, 10) : 0;
    bool is_chosen = strstr(t->name, "attn_v") || strstr(t->name, "ffn_down");
    if (strstr(t->name, "token_embd") || (is_chosen && has_more_bits(layer, c->layers)))
        return c->better;
    return c->plain;
}

/* Returns the content of a tensor, padded and quantized. */
static const void *converted(const conversion *c, const gguf_tensor *t, uint64_t *bytes)
{
    const float *from = gguf_data(&c->file, t);
    uint64_t columns = padded(c, t->ne[0]), rows = t->n_dims > 1 ? padded(c, t->ne[1]) : 1;
    float *values = arena_zalloc(c->arena, columns * rows * sizeof *values);
    format f = format_in(c, t);
    if (!from || t->type->id != (uint32_t)formats[FORMAT_F32].gguf_type)
        give_up(t->name, "not f32");
    for (uint64_t row = 0; row < t->ne[1]; row++)
        for (uint64_t i = 0; i < t->ne[0]; i++)
            values[row * columns + i] = from[row * t->ne[0] + i] * (t->n_dims == 1 ? 0.5f : 1);
    *bytes = format_bytes(f, columns * rows);
    char *blocks = arena_alloc(c->arena, *bytes);
    quantize(f, values, columns * rows, blocks);
    return blocks;
}

static void put_keys(const conversion *c, gguf_writer *w)
{
    double epsilon;
    if (!gguf_get_f64(gguf_find_key(&c->file, "llama.attention.layer_norm_rms_epsilon"), 0,
                      &epsilon))
        give_up("epsilon", "missing");
    const struct {
        const char *name;
        uint64_t value;
    } numbers[] = {
        { "llama.context_length", number(c, "context_length") },
        { "llama.embedding_length", padded(c, c->hidden) },
        { "llama.block_count", c->layers },
        { "llama.feed_forward_length", padded(c, c->ff) },
        { "llama.rope.dimension_count", number(c, "rope.dimension_count") },
        { "llama.attention.head_count", WIDER * c->heads },
        { "llama.attention.head_count_kv", WIDER * c->kv_heads },
    };
    gguf_put_text(w, "general.architecture", "llama");
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        gguf_put_number(w, numbers[i].name, GGUF_U32, numbers[i].value);
    gguf_put_f32(w, "llama.attention.layer_norm_rms_epsilon", (float)(epsilon / WIDER));
}

static void write_model(const conversion *c, const char *path)
{
    enum { KEYS = 9, VERSION = 3 };
    gguf_writer w = gguf_start(c->arena, VERSION, c->file.tensor_count, KEYS);
    gguf_writer data = { .out = strbuf_new(c->arena) };
    put_keys(c, &w);
    for (size_t i = 0; i < c->file.tensor_count; i++) {
        const gguf_tensor *t = &c->file.tensors[i];
        uint64_t bytes, ne[] = { padded(c, t->ne[0]), 0, 0 };
        const char *blocks = converted(c, t, &bytes);
        if (t->n_dims > 1)
            ne[1] = padded(c, t->ne[1]);
        gguf_put_tensor(&w, t->name, ne, (uint32_t)formats[format_in(c, t)].gguf_type,
                        data.out.length);
        strbuf_bytes(&data.out, blocks, bytes);
        gguf_pad(&data, ALIGNMENT);
    }
    gguf_pad(&w, ALIGNMENT);
    FILE *file = fopen(path, "wb");
    if (!file || fwrite(w.out.text, 1, w.out.length, file) != w.out.length ||
        fwrite(data.out.text, 1, data.out.length, file) != data.out.length || fclose(file))
        give_up(path, "cannot be written");
}

int main(int argc, char **argv)
{
    gguf_error error;
    if (argc < 4)
        return 2;
    conversion c = { .arena = arena_new(), .plain = format_of(argv[3]) };
    c.better = argc > 4 ? format_of(argv[4]) : c.plain;
    if (!gguf_open(argv[1], &c.file, &error))
        give_up(argv[1], error.message);
    c.hidden = number(&c, "embedding_length");
    c.heads = number(&c, "attention.head_count");
    c.kv_heads = number(&c, "attention.head_count_kv");
    c.ff = number(&c, "feed_forward_length");
    c.layers = number(&c, "block_count");
    if (c.hidden * WIDER != SUPER_BLOCK)
        give_up(argv[1], "its embedding length is not 64, a quarter of a super-block");
    write_model(&c, argv[2]);
    gguf_close(&c.file);
    arena_free(c.arena);
    return 0;
}
