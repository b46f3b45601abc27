/* The logits of a model in double precision, by ref/step.h.
 *
 *     reference_model MODEL.gguf TOKENS LOGITS f32|q8
 *
 * TOKENS is a file of numbers; LOGITS gets f64 [tokens, vocab]. The cache is exact. With q8
 * activations are rounded to 8 bits where the kernels do.
 */
#include <stdio.h>
#include <string.h>

#include "gguf/gguf.h"
#include "model/read.h"
#include "ref/step.h"

enum { MOST_TOKENS = 4096 };

typedef struct read_model {
    gguf_file file;
    model model;
} read_model;

static ref_tensor weights_of(void *user, decoder_tensor t, int64_t layer)
{
    const read_model *m = user;
    char name[DECODER_NAME];
    decoder_tensor_name(t, layer, name);
    return (ref_tensor){ gguf_data(&m->file, gguf_find(&m->file, name)),
                         decoder_rows(&m->model.decoder, t) };
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

int main(int argc, char **argv)
{
    static ref_row rows[MOST_TOKENS];
    if (argc < 5)
        return 2;
    read_model m;
    gguf_error error;
    arena *a = arena_new();
    diags d = diags_new(a);
    const model_options options = { .kv_type = KV_F32 };
    if (!gguf_open(argv[1], &m.file, &error) ||
        !model_read(a, argv[1], &m.file, &options, &m.model, &d)) {
        fprintf(stderr, "reference_model: %s is no model\n", argv[1]);
        return 1;
    }
    m.model.decoder.precision = strcmp(argv[4], "q8") == 0 ? PRECISION_Q8 : PRECISION_F32;
    size_t count = read_tokens(argv[2], rows), values = count * (size_t)m.model.decoder.vocab;
    double *logits = arena_alloc(a, values * sizeof *logits);
    ref_step_feed(ref_step_new(a, &m.model.decoder, weights_of, &m), rows, count, logits, NULL);
    FILE *out = fopen(argv[3], "wb");
    if (!out || fwrite(logits, sizeof *logits, values, out) != values || fclose(out))
        return 1;
    gguf_close(&m.file);
    arena_free(a);
    return 0;
}
