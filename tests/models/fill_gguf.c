/* Writes a GGUF model with random weights and the shapes of a GGUF header.
 *
 *     fill_gguf HEADER.gguf OUT.gguf [FORMAT]
 *
 * HEADER may be a file without data, such as make_gguf.py writes. With FORMAT, e.g. q8_0, all
 * quantized tensors get that format. OUT has no tokenizer ("no_vocab"): llama.cpp and ptxgen load
 * it and run on token numbers. Weights are normally distributed with the deviation 0.02, norms are
 * near 1.
 *
 * Each format has one pool of blocks, quantized once and repeated without a gap. Each tensor
 * continues in the pool where the previous one ended. The pool is longer than a router's matrix, so
 * that no two experts are alike. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/os.h"
#include "gguf_writer.h"
#include "models/quantize.h"

/* 8191, the pool's number of super-blocks, is prime, so that no row length divides the pool. */
enum { SUPER_BLOCK = 256, POOL_VALUES = 8191 * SUPER_BLOCK, VERSION = 3 };
static const float DEVIATION = 0.02f;

typedef struct pool {
    char *blocks;
    uint64_t bytes, next;
} pool;

typedef struct filling {
    arena *arena;
    gguf_file header;
    pool pools[FORMAT_COUNT];
    format chosen; /* format of all quantized tensors; FORMAT_NONE: keep each tensor's format */
    float *values; /* array of POOL_VALUES */
    FILE *out;
} filling;

static _Noreturn void give_up(const char *what, const char *why)
{
    fprintf(stderr, "fill_gguf: %s: %s\n", what, why);
    exit(1);
}

static bool holds_weights(format f)
{
    return formats[f].gguf_type != NO_GGUF_TYPE && f != FORMAT_Q8_1;
}

static format format_of_type(const gguf_type *type)
{
    for (format f = 0; f < FORMAT_COUNT; f++)
        if (holds_weights(f) && (uint32_t)formats[f].gguf_type == type->id)
            return f;
    give_up(type->name, "weights of this type cannot be generated");
}

static format format_of_name(const char *name)
{
    for (format f = 0; f < FORMAT_COUNT; f++)
        if (holds_weights(f) && strcmp(formats[f].name, name) == 0)
            return f;
    give_up(name, "unknown weight format; use for example q4_k or q8_0");
}

static format format_in(const filling *f, const gguf_tensor *t)
{
    bool is_quantized = t->type->block_values > 1;
    return is_quantized && f->chosen != FORMAT_NONE ? f->chosen : format_of_type(t->type);
}

/* Fills the values with normally distributed numbers of deviation 1, each a sum of four uniform
 * numbers. */
static void make_values(filling *f)
{
    uint64_t state = 1;
    f->values = arena_alloc(f->arena, POOL_VALUES * sizeof *f->values);
    for (size_t i = 0; i < POOL_VALUES; i++) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        uint64_t bits = state ^ state >> 29;
        float sum = 0;
        for (int part = 0; part < 4; part++)
            sum += (float)(bits >> (16 * part) & 0xffff) / 65536.0f - 0.5f;
        f->values[i] = sum * sqrtf(3);
    }
}

/* Returns the blocks of a format, made at their first use. */
static pool *pool_of(filling *f, format kind)
{
    pool *p = &f->pools[kind];
    if (!p->blocks) {
        float *scaled = arena_alloc(f->arena, POOL_VALUES * sizeof *scaled);
        for (size_t i = 0; i < POOL_VALUES; i++)
            scaled[i] = f->values[i] * DEVIATION;
        p->bytes = format_bytes(kind, POOL_VALUES);
        p->blocks = arena_alloc(f->arena, p->bytes);
        quantize(kind, scaled, POOL_VALUES, p->blocks);
    }
    return p;
}

static void write_bytes(filling *f, const void *bytes, size_t size)
{
    if (fwrite(bytes, 1, size, f->out) != size)
        give_up("the model", "cannot be written; is the disk full?");
}

static uint64_t values_of(const gguf_tensor *t)
{
    return t->ne[0] * t->ne[1] * t->ne[2] * t->ne[3];
}

/* Writes a vector of f32 factors: norms and the frequency factors of RoPE. */
static void write_factors(filling *f, const gguf_tensor *t)
{
    for (uint64_t i = 0; i < values_of(t); i++) {
        float value = 1 + DEVIATION * f->values[i % POOL_VALUES];
        write_bytes(f, &value, sizeof value);
    }
}

static void write_tensor(filling *f, const gguf_tensor *t)
{
    format kind = format_in(f, t);
    if (kind == FORMAT_F32 && (strstr(t->name, "norm") || strstr(t->name, "rope_f"))) {
        write_factors(f, t);
        return;
    }
    pool *p = pool_of(f, kind);
    for (uint64_t left = format_bytes(kind, values_of(t)); left;) {
        uint64_t part = p->bytes - p->next < left ? p->bytes - p->next : left;
        write_bytes(f, p->blocks + p->next, part);
        p->next = (p->next + part) % p->bytes;
        left -= part;
    }
}

static bool is_kept(const filling *f, const gguf_key *k)
{
    bool is_type = strcmp(k->name, "general.file_type") == 0 && f->chosen != FORMAT_NONE;
    size_t length = strlen(k->name);
    bool is_vocab_size = length > 11 && strcmp(k->name + length - 11, ".vocab_size") == 0;
    return strncmp(k->name, "tokenizer.", 10) != 0 && !is_type && !is_vocab_size;
}

static void put_strings(const filling *f, gguf_writer *w, const gguf_key *k)
{
    gguf_string *strings = arena_alloc(f->arena, k->count * sizeof *strings);
    if (!(k->is_array ? gguf_get_strings(k, strings) : gguf_get_string(k, strings)))
        give_up(k->name, "cannot be read");
    for (uint64_t i = 0; i < k->count; i++) {
        gguf_put(w, strings[i].length, 8);
        strbuf_bytes(&w->out, strings[i].bytes, strings[i].length);
    }
}

static void put_key(const filling *f, gguf_writer *w, const gguf_key *k)
{
    if (k->is_array)
        gguf_put_array(w, k->name, k->type, k->count);
    else
        gguf_put_key(w, k->name, k->type);
    if (k->type == GGUF_STRING)
        put_strings(f, w, k);
    else
        strbuf_bytes(&w->out, (const char *)k->bytes, k->count * gguf_value_bytes(k->type));
}

/* Appends the header's keys without its tokenizer. */
static void put_keys(const filling *f, gguf_writer *w)
{
    gguf_string architecture;
    const gguf_tensor *embedding = gguf_find(&f->header, "token_embd.weight");
    if (!gguf_get_string(gguf_find_key(&f->header, "general.architecture"), &architecture) ||
        !embedding)
        give_up("general.architecture or token_embd.weight", "missing");
    for (size_t i = 0; i < f->header.key_count; i++)
        if (is_kept(f, &f->header.keys[i]))
            put_key(f, w, &f->header.keys[i]);
    gguf_put_text(w, "tokenizer.ggml.model", "no_vocab");
    gguf_put_number(
        w, arena_format(f->arena, "%.*s.vocab_size", (int)architecture.length, architecture.bytes),
        GGUF_U32, embedding->ne[1]);
}

static void write_header(filling *f)
{
    uint64_t keys = 2, offset = 0, alignment = f->header.alignment;
    for (size_t i = 0; i < f->header.key_count; i++)
        keys += is_kept(f, &f->header.keys[i]);
    gguf_writer w = gguf_start(f->arena, VERSION, f->header.tensor_count, keys);
    put_keys(f, &w);
    for (size_t i = 0; i < f->header.tensor_count; i++) {
        const gguf_tensor *t = &f->header.tensors[i];
        format kind = format_in(f, t);
        uint64_t ne[GGUF_MAX_DIMS + 1] = { 0 };
        memcpy(ne, t->ne, t->n_dims * sizeof *ne);
        if (ne[0] % formats[kind].block_values != 0)
            give_up(t->name, "its row length is not a multiple of the format's block; use q8_0");
        gguf_put_tensor(&w, t->name, ne, (uint32_t)formats[kind].gguf_type, offset);
        offset =
            (offset + format_bytes(kind, values_of(t)) + alignment - 1) / alignment * alignment;
    }
    gguf_pad(&w, alignment);
    write_bytes(f, w.out.text, w.out.length);
}

int main(int argc, char **argv)
{
    static const char zeros[4096];
    gguf_error error;
    if (argc < 3 || argc > 4) {
        fprintf(stderr, "usage: fill_gguf HEADER.gguf OUT.gguf [FORMAT]\n");
        return 2;
    }
    filling f = { .arena = arena_new(),
                  .chosen = argc > 3 ? format_of_name(argv[3]) : FORMAT_NONE };
    if (!gguf_open(argv[1], &f.header, &error))
        give_up(argv[1], error.message);
    if (f.header.alignment > sizeof zeros)
        give_up(argv[1], "its alignment is above the limit of 4096 bytes");
    f.out = fopen(argv[2], "wb");
    if (!f.out)
        give_up(argv[2], "cannot be written");
    make_values(&f);
    write_header(&f);
    for (size_t i = 0; i < f.header.tensor_count; i++) {
        const gguf_tensor *t = &f.header.tensors[i];
        uint64_t bytes = format_bytes(format_in(&f, t), values_of(t));
        write_tensor(&f, t);
        write_bytes(&f, zeros, -bytes % f.header.alignment);
    }
    if (fclose(f.out) != 0)
        give_up(argv[2], "cannot be written; is the disk full?");
    gguf_close(&f.header);
    arena_free(f.arena);
    return 0;
}
