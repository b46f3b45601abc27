/* From a model's file to its logits: the reference step of the small models must match logits that
 * another program computed in double precision. Skipped without the models. */
#include <jansson.h>
#include <math.h>
#include <stdlib.h>

#include "base/os.h"
#include "model/gguf/gguf.h"
#include "model/from_gguf/read.h"
#include "model/reference/step.h"
#include "test_arena.h"
#include "ref/reference.h"

enum { MOST_TOKENS = 64 };

/* The file's numbers were written as decimals: 1.19 where the others have 1.19000006. Leaving out
 * any part of a model changes some logit by 2e-4 or more. */
static const double TOLERANCE = 2e-5;

typedef struct tested_model {
    arena *arena;
    const char *folder, *name;
    gguf_file file;
    model model;
    ref_row tokens[MOST_TOKENS];
    size_t token_count;
    json_t *json;
} tested_model;

static ref_tensor weights_of(void *user, decoder_tensor t, int64_t layer)
{
    const tested_model *m = user;
    char name[DECODER_NAME];
    decoder_tensor_name(&m->model.decoder, t, layer, name);
    return (ref_tensor){ .blocks = gguf_data(&m->file, gguf_find(&m->file, name)),
                         .rows = decoder_rows(&m->model.decoder, t, layer) };
}

/* Opens a model without rounding, and its test tokens. Returns false if the models are absent. */
static bool open_model(arena *a, const char *name, int64_t max_seq_len, tested_model *m)
{
    const model_options options = { .max_seq_len = max_seq_len, .kv_type = KV_F32 };
    gguf_error error;
    json_error_t wrong;
    diags d = diags_new(a);
    *m = (tested_model){ .arena = a, .folder = getenv("PTXGEN_MODELS"), .name = name };
    if (!m->folder || !os_exists(m->folder))
        return false;
    if (!gguf_open(arena_format(a, "%s/%s.gguf", m->folder, name), &m->file, &error))
        fail_msg("%s", error.message);
    assert_true(model_read(a, name, &m->file, &options, &m->model, &d));
    m->model.decoder.precision = PRECISION_F32;
    m->json = json_load_file(arena_format(a, "%s/%s.json", m->folder, name), 0, &wrong);
    assert_non_null(m->json);
    const json_t *tokens = json_object_get(m->json, "tokens");
    m->token_count = json_array_size(tokens);
    assert_in_range(m->token_count, 1, MOST_TOKENS);
    for (size_t i = 0; i < m->token_count; i++)
        m->tokens[i].token = (uint32_t)json_integer_value(json_array_get(tokens, i));
    return true;
}

static void close_model(tested_model *m)
{
    json_decref(m->json);
    gguf_close(&m->file);
}

/* Returns the doubles of a file, which must have exactly count of them. */
static const double *read_golden(tested_model *m, const char *what, size_t count)
{
    char *bytes;
    size_t size;
    const char *error, *path = arena_format(m->arena, "%s/%s.%s.f64", m->folder, m->name, what);
    assert_true(os_read_file(m->arena, path, &bytes, &size, &error));
    assert_int_equal(size, count * sizeof(double));
    return (const double *)bytes;
}

/* Returns the largest error of the first tokens' logits, fed in one step. */
static double largest_error(tested_model *m, const double *golden, size_t tokens)
{
    size_t count = tokens * (size_t)m->model.decoder.vocab;
    double *logits = arena_alloc(m->arena, count * sizeof *logits), most = 0;
    ref_step *step = ref_step_new(m->arena, &m->model.decoder, weights_of, m);
    ref_step_feed(step, m->tokens, tokens, logits, NULL);
    for (size_t i = 0; i < count; i++)
        most = fmax(most, isnan(logits[i]) ? HUGE_VAL : fabs(logits[i] - golden[i]));
    return most;
}

static const char *const names[] = { "llama",    "llama_bias",     "qwen2",   "qwen3",
                                     "gemma2",   "gemma3",         "phi3",    "granite",
                                     "mistral3", "stories260K_q4", "seed_oss" };
enum { MODELS = sizeof names / sizeof *names };

ARENA_TEST(logits_equal_the_golden_logits)
{
    for (size_t i = 0; i < MODELS; i++) {
        tested_model m;
        if (!open_model(a, names[i], 0, &m))
            skip();
        size_t count = m.token_count * (size_t)m.model.decoder.vocab;
        double error = largest_error(&m, read_golden(&m, "logits", count), m.token_count);
        if (!(error < TOLERANCE))
            fail_msg("%s: logits differ by %g", names[i], error);
        close_model(&m);
    }
}

/* Hidden states after the embedding and after each layer. */
ARENA_TEST(hidden_states_equal_the_golden_states)
{
    for (size_t i = 0; i < MODELS; i++) {
        tested_model m;
        if (!open_model(a, names[i], 0, &m))
            skip();
        const decoder *d = &m.model.decoder;
        size_t values = (size_t)(d->layers + 1) * (size_t)d->hidden;
        const json_t *positions = json_object_get(m.json, "hidden_positions");
        const double *golden = read_golden(&m, "hidden", 2 * values);
        double *hidden = arena_alloc(a, m.token_count * values * sizeof *hidden), most = 0;
        ref_step_feed(ref_step_new(a, d, weights_of, &m), m.tokens, m.token_count, NULL, hidden);
        for (size_t v = 0; v < 2 * values; v++) {
            size_t at = (size_t)json_integer_value(json_array_get(positions, v / values));
            most = fmax(most, fabs(hidden[at * values + v % values] - golden[v]));
        }
        if (!(most < TOLERANCE))
            fail_msg("%s: hidden states differ by %g", names[i], most);
        close_model(&m);
    }
}

ARENA_TEST(logits_of_rounded_caches_equal_the_golden_logits)
{
    static const int64_t types[] = { KV_F16, KV_BF16, KV_Q8_0 };
    for (size_t i = 0; i < MODELS; i++) {
        tested_model m;
        if (!open_model(a, names[i], 0, &m))
            skip();
        size_t vocab = (size_t)m.model.decoder.vocab, tokens = m.token_count;
        const json_t *positions = json_object_get(m.json, "kv_positions");
        const double *golden = read_golden(&m, "kv", 3 * 2 * vocab);
        double *logits = arena_alloc(a, tokens * vocab * sizeof *logits);
        for (size_t type = 0; type < 3; type++) {
            m.model.decoder.kv_type = types[type];
            if (types[type] == KV_Q8_0 && m.model.decoder.at[0].head_dim % Q8_0_VALUES)
                continue;
            ref_step_feed(ref_step_new(a, &m.model.decoder, weights_of, &m), m.tokens, tokens,
                          logits, NULL);
            double most = 0;
            for (size_t p = 0; p < 2; p++) {
                size_t at = (size_t)json_integer_value(json_array_get(positions, p));
                for (size_t v = 0; v < vocab; v++)
                    most = fmax(most,
                                fabs(logits[at * vocab + v] - golden[(type * 2 + p) * vocab + v]));
            }
            if (!(most < TOLERANCE))
                fail_msg("%s: logits with cache %zu differ by %g", names[i], type, most);
        }
        close_model(&m);
    }
}

ARENA_TEST(short_rope_factors_apply_to_short_caches)
{
    tested_model m;
    if (!open_model(a, "phi3", 24, &m))
        skip();
    size_t tokens = (size_t)json_integer_value(json_object_get(m.json, "short_context"));
    size_t count = tokens * (size_t)m.model.decoder.vocab;
    assert_true(largest_error(&m, read_golden(&m, "short.logits", count), tokens) < TOLERANCE);
    close_model(&m);
}
