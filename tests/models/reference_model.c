/* Runs a model in double precision, by model/reference/step.h.
 *
 *     reference_model MODEL.gguf TOKENS LOGITS CASE [HIDDEN [GAPS]]
 *
 * TOKENS is a text file of token numbers. The outputs are binary f64:
 *
 *     LOGITS   [tokens, vocab]
 *     HIDDEN   [tokens, layers + 1, hidden]
 *     GAPS     [tokens], the smallest gap of all layers' routers
 *
 * CASE is one of
 *
 *     f32              nothing is rounded
 *     q8               activations are rounded to 8 bits like in the kernels
 *     f16, bf16, q8_0  type of the cache; all else is exact
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "model/gguf/gguf.h"
#include "model/from_gguf/read.h"
#include "model/reference/step.h"
#include "ref/reference.h"

enum { MOST_TOKENS = 4096 };

typedef struct read_model {
    gguf_file file;
    model model;
} read_model;

static ref_tensor weights_of(void *user, decoder_tensor t, int64_t layer)
{
    const read_model *m = user;
    char name[DECODER_NAME];
    decoder_tensor_name(&m->model.decoder, t, layer, name);
    return (ref_tensor){ .blocks = gguf_data(&m->file, gguf_find(&m->file, name)),
                         .rows = decoder_rows(&m->model.decoder, t, layer) };
}

static size_t read_tokens(const char *path, ref_row rows[MOST_TOKENS])
{
    FILE *file = fopen(path, "r");
    size_t count = 0;
    while (file && count < MOST_TOKENS && fscanf(file, "%u", &rows[count].token) == 1)
        count++;
    if (file)
        fclose(file);
    return count;
}

static void choose_case(const char *name, decoder *d)
{
    static const char *const types[KV_COUNT] = {
        [KV_F32] = "f32", [KV_F16] = "f16", [KV_BF16] = "bf16", [KV_Q8_0] = "q8_0"
    };
    d->precision = strcmp(name, "q8") == 0 ? PRECISION_Q8 : PRECISION_F32;
    for (int type = 0; type < KV_COUNT; type++)
        if (strcmp(name, types[type]) == 0)
            d->kv_type = type;
}

static double least_gap(const ref_step *s, int64_t layers, size_t row)
{
    double least = HUGE_VAL;
    for (int64_t layer = 0; layer < layers; layer++)
        least = fmin(least, ref_step_choice(s, layer, row).gap);
    return least;
}

static bool write_all(const char *path, const double *values, size_t count)
{
    FILE *out = fopen(path, "wb");
    bool whole = out && fwrite(values, sizeof *values, count, out) == count;
    return out && !fclose(out) && whole;
}

int main(int argc, char **argv)
{
    static ref_row rows[MOST_TOKENS];
    static double gaps[MOST_TOKENS];
    if (argc < 5)
        return 2;
    read_model m;
    gguf_error error;
    arena *a = arena_new();
    diags d = diags_new(a);
    const model_options options = { .kv_type = KV_F32 };
    if (!gguf_open(argv[1], &m.file, &error) ||
        !model_read(a, argv[1], &m.file, &options, &m.model, &d)) {
        fprintf(stderr, "reference_model: %s is not a supported model\n", argv[1]);
        return 1;
    }
    decoder *of = &m.model.decoder;
    choose_case(argv[4], of);
    size_t count = read_tokens(argv[2], rows), size = (size_t)of->vocab;
    size_t hidden_size = (size_t)((of->layers + 1) * of->hidden);
    double *logits = arena_alloc(a, count * size * sizeof *logits);
    double *hidden = arena_alloc(a, count * hidden_size * sizeof *hidden);
    ref_step *s = ref_step_new(a, of, weights_of, &m);
    ref_step_feed(s, rows, count, logits, hidden);
    for (size_t i = 0; i < count; i++)
        gaps[i] = least_gap(s, of->layers, i);
    bool written = write_all(argv[3], logits, count * size) &&
                   (argc < 6 || write_all(argv[5], hidden, count * hidden_size)) &&
                   (argc < 7 || write_all(argv[6], gaps, count));
    gguf_close(&m.file);
    arena_free(a);
    return !written;
}
