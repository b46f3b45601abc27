#include "gen/pipeline.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gen/attention_keys.h"
#include "gen/blocks/q4k.h"
#include "gen/formula.h"

const char WORKSPACE[] = "workspace";

static const choice weights_choices[] = { { "q4_k", "" }, { "q6_k", "_q6k" }, { NULL, NULL } };

#define KEY_WEIGHTS                                                               \
    {                                                                             \
        .name = "weights", .summary = "format of W", .field = KEY_FIELD(weights), \
        .choices = weights_choices                                                \
    }
#define KEY_N_KV                                                                               \
    {                                                                                          \
        .name = "n_kv", .summary = "rows of Wk and of Wv", .field = KEY_FIELD(n_kv), .min = 1, \
        .max = INT32_MAX, .required = true, .tag = "kv"                                        \
    }

#define QUANTIZE                                                                       \
    {                                                                                  \
        .families = { "q8_1_quantize" }, .bind = { { "q8", WORKSPACE }, { "x", "x" } } \
    }
#define GEMV(family, rows, output, matrix)           \
    {                                                \
        .families = { family }, .n = rows, .bind = { \
            { "y", output },                         \
            { "w", matrix },                         \
            { "x", WORKSPACE }                       \
        }                                            \
    }

static const family dp4a = {
    .name = "dp4a",
    .summary = "pipeline: f32 x to q8_1, then W x with dp4a",
    .computes = "y[n] = W[n,k] q8_1(x[k])",
    .keys = (const key[]){ KEY_K(Q4K_VALUES), KEY_N, KEY_WEIGHTS, KEY_END },
    .steps =
        (const pipeline_step[]){ QUANTIZE,
                                 { .families = { "hw_dp4a_q4k_gemv", "hw_dp4a_q6k_gemv" },
                                   .bind = { { "y", "y" }, { "w", "w" }, { "x", WORKSPACE } } },
                                 { .n = NULL } },
};

static const family qkv = {
    .name = "qkv",
    .summary = "pipeline: f32 x to q8_1 once, then Q, and K with V",
    .computes = "q[n] = Wq[n,k] x[k], k[n_kv] = Wk[n_kv,k] x[k], v[n_kv] = Wv[n_kv,k] x[k]",
    .keys = (const key[]){ KEY_K(Q4K_VALUES), KEY_N, KEY_N_KV, KEY_END },
    .steps = (const pipeline_step[]){ QUANTIZE,
                                      GEMV("hw_dp4a_q4k_gemv", "n", "q", "wq"),
                                      { .families = { "fused_kv_hw_dp4a_q4k_gemv" },
                                        .n = "n_kv",
                                        .bind = { { "keys", "k" },
                                                  { "values", "v" },
                                                  { "wk", "wk" },
                                                  { "wv", "wv" },
                                                  { "x", WORKSPACE } } },
                                      { .n = NULL } },
};

static const family batched_gate_up = {
    .name = "batched_gate_up",
    .summary = "pipeline: m vectors to q8_1 once, then gate and up",
    .computes = "G[m,n] = X[m,k] Wg[n,k]^T, U[m,n] = X[m,k] Wu[n,k]^T",
    .keys = (const key[]){ KEY_K(Q4K_VALUES), KEY_N, KEY_M(2), KEY_END },
    .steps = (const pipeline_step[]){ QUANTIZE,
                                      GEMV("batched_hw_dp4a_q4k_gemv", "n", "g", "wg"),
                                      GEMV("batched_hw_dp4a_q4k_gemv", "n", "u", "wu"),
                                      { .n = NULL } },
};

static const family batched_qkv = {
    .name = "batched_qkv",
    .summary = "pipeline: m vectors to q8_1 once, then Q, K and V",
    .computes = "Q[m,n] = X[m,k] Wq[n,k]^T, K[m,n_kv] = X[m,k] Wk[n_kv,k]^T, V likewise",
    .keys = (const key[]){ KEY_K(Q4K_VALUES), KEY_N, KEY_N_KV, KEY_M(2), KEY_END },
    .steps = (const pipeline_step[]){ QUANTIZE,
                                      GEMV("batched_hw_dp4a_q4k_gemv", "n", "q", "wq"),
                                      GEMV("batched_hw_dp4a_q4k_gemv", "n_kv", "k", "wk"),
                                      GEMV("batched_hw_dp4a_q4k_gemv", "n_kv", "v", "wv"),
                                      { .n = NULL } },
};

static const family flash_decoding = {
    .name = "flash_decoding",
    .summary = "pipeline: decode attention of m sequences by chunks, then the chunks merged",
    .computes = "o[m,h] = softmax(q[m,h] K[m]' scale) V[m]",
    .keys =
        (const key[]){ ATTENTION_SHAPE, KEY_SEQUENCES, KEY_CHUNK_SIZE, ATTENTION_OPTIONS, KEY_END },
    .steps =
        (const pipeline_step[]){
            { .families = { "flash_decoding_chunk" },
              .bind = { { "partials", WORKSPACE },
                        { "q", "q" },
                        { "k", "k" },
                        { "v", "v" },
                        { "seq_lens", "seq_lens" } } },
            { .families = { "flash_decoding_reduce" },
              .bind = { { "o", "o" }, { "partials", WORKSPACE }, { "seq_lens", "seq_lens" } } },
            { .n = NULL } },
    .check = check_flash_decoding,
};

const family *const pipelines[] = { &dp4a,           &qkv, &batched_gate_up, &batched_qkv,
                                    &flash_decoding, NULL };

const family *const *families_and_pipelines(arena *a)
{
    size_t kernels = 0, others = 0;
    while (families[kernels])
        kernels++;
    while (pipelines[others])
        others++;
    const family **all = arena_alloc(a, (kernels + others + 1) * sizeof *all);
    memcpy(all, families, kernels * sizeof *all);
    memcpy(all + kernels, pipelines, (others + 1) * sizeof *all);
    return all;
}

size_t pipeline_step_count(const family *f)
{
    size_t count = 0;
    while (f->steps[count].families[0])
        count++;
    return count;
}

/* Takes the pipeline's value for every key of the step that the pipeline has, its n by the name
 * that the step says; for the others the step's own default. */
instance step_instance(arena *a, const instance *in, const pipeline_step *s)
{
    const char *name = s->families[in->weights] ? s->families[in->weights] : s->families[0];
    instance made = { .family = family_find(families, name), .where = in->where };
    if (!made.family) {
        fprintf(stderr, "ptxgen: pipeline %s has a step of no family %s\n", in->family->name, name);
        abort();
    }
    for (const key *k = made.family->keys; k->name; k++) {
        bool rows = s->n && strcmp(k->name, "n") == 0;
        const key *given = family_key(in->family, rows ? s->n : k->name);
        instance_set(&made, k, given ? instance_value(in, given) : key_default(k));
    }
    made.name = instance_make_name(a, &made);
    return made;
}

const char *step_buffer(const pipeline_step *s, const char *param_name)
{
    for (const binding *b = s->bind; b->param; b++)
        if (strcmp(b->param, param_name) == 0)
            return b->buffer;
    return NULL;
}

static param *find_buffer(pipeline_buffers *list, const char *name)
{
    for (size_t i = 0; i < list->count; i++)
        if (strcmp(list->params[i].name, name) == 0)
            return &list->params[i];
    return NULL;
}

enum { OUTPUTS, WEIGHTS, INPUTS, NUMBERS, ROLES };

static int role(const param *p)
{
    if (p->kind == PARAM_U32)
        return NUMBERS;
    bool blocks = formats[p->format].block_values > 1;
    return p->kind == PARAM_OUT ? OUTPUTS : blocks ? WEIGHTS : INPUTS;
}

/* The buffers of one role that a step brings along, and its part of the workspace. */
static void add_buffers(arena *a, const pipeline *p, size_t index, int wanted,
                        pipeline_buffers *list)
{
    param params[MAX_PARAMS];
    size_t count = instance_params(a, p->steps[index], params);
    for (size_t i = 0; i < count; i++) {
        const char *buffer = step_buffer(&p->instance->family->steps[index], params[i].name);
        int64_t bytes = params[i].kind == PARAM_U32
                            ? (int64_t)sizeof(uint32_t)
                            : formula_value(params[i].bytes, p->steps[index], NULL);
        if (buffer == WORKSPACE) {
            list->workspace = bytes > list->workspace ? bytes : list->workspace;
            continue;
        }
        param *listed = find_buffer(list, buffer);
        if (listed && params[i].align > listed->align)
            listed->align = params[i].align;
        if (listed || role(&params[i]) != wanted)
            continue;
        list->bytes[list->count] = bytes;
        list->params[list->count] = params[i];
        list->params[list->count++].name = buffer;
    }
}

pipeline_buffers pipeline_buffers_of(arena *a, const pipeline *p)
{
    pipeline_buffers list = { .count = 0 };
    for (int wanted = 0; wanted < ROLES; wanted++)
        for (size_t i = 0; i < p->step_count; i++)
            add_buffers(a, p, i, wanted, &list);
    return list;
}
