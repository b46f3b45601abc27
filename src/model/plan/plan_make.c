#include "model/plan/plan_make.h"

#include "kernel/memory_plan.h"
#include "model/plan/plan_product.h"

/* Places a part behind all others of its memory. */
static uint64_t take(plan *p, plan_memory memory, uint64_t bytes)
{
    uint64_t at = p->bytes[memory];
    p->bytes[memory] = (uint64_t)memory_aligned((int64_t)(at + bytes));
    return at;
}

static void place_tensor(planner *p, decoder_tensor t, int64_t layer)
{
    const decoder *d = p->d;
    char name[DECODER_NAME];
    decoder_tensor_name(t, layer, name);
    plan_tensor made = {
        .name = arena_strdup(p->arena, name),
        .tensor = t,
        .layer = layer,
        .format = decoder_format(d, t, layer),
        .rows = decoder_rows(d, t),
        .columns = decoder_columns(d, t),
        .bytes = decoder_bytes(d, t, layer),
    };
    made.offset = take(p->plan, PLAN_WEIGHTS, made.bytes);
    p->numbers[t][layer] = (uint32_t)p->tensors.count;
    *VEC_PUSH(p->arena, &p->tensors) = made;
}

/* In the order of use: those ahead of the layers, the layers', those behind them. */
static void place_tensors(planner *p)
{
    const decoder *d = p->d;
    for (int t = 0; t < TENSOR_OUTPUT_NORM; t++)
        if (d->has[t] && !tensor_infos[t].by_layer)
            place_tensor(p, (decoder_tensor)t, 0);
    for (int64_t layer = 0; layer < d->layers; layer++)
        for (int t = 0; t < TENSOR_COUNT; t++)
            if (tensor_infos[t].by_layer && decoder_has(d, (decoder_tensor)t, layer))
                place_tensor(p, (decoder_tensor)t, layer);
    for (int t = TENSOR_OUTPUT_NORM; t < TENSOR_COUNT; t++)
        if (d->has[t])
            place_tensor(p, (decoder_tensor)t, 0);
    p->plan->tensors = p->tensors.items;
    p->plan->tensor_count = p->tensors.count;
}

static int64_t larger(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* Values of a row that the first product of a layer gives, of the kind that has the most. */
static int64_t qkv_values(const decoder *d)
{
    static const uint8_t direct[] = { TENSOR_ATTN_Q,   TENSOR_ATTN_K,   TENSOR_ATTN_V,
                                      TENSOR_ATTN_QKV, TENSOR_ATTN_Q_A, TENSOR_ATTN_KV_A },
                         delta[] = { TENSOR_DELTA_QKV, TENSOR_ATTN_GATE, TENSOR_SSM_BA };
    int64_t attention = 0, net = 0;
    for (size_t i = 0; i < sizeof direct; i++)
        attention += d->has[direct[i]] ? (int64_t)decoder_rows(d, direct[i]) : 0;
    for (size_t i = 0; i < sizeof delta; i++)
        net += d->has[delta[i]] ? (int64_t)decoder_rows(d, delta[i]) : 0;
    return larger(attention, net);
}

static void size_buffers(planner *p)
{
    const decoder *d = p->d;
    int64_t heads = d->num_heads * d->head_dim, used = d->experts_used;
    const problem_shape rows = { .m = p->m, .experts = d->experts, .experts_used = used };
    bool prompt = decoder_is_prompt(p->m), apart = plan_is_apart(p);
    const int64_t values[BUFFERS] = {
#define BUFFER(id, name, first, last, values) values,
#include "model/plan/buffers.def"
#undef BUFFER
    };
    for (int i = 0; i < BUFFERS; i++)
        p->buffer_bytes[i] = values[i] * p->m * (int64_t)sizeof(float);
    if (d->experts) /* see ref_moe_route */
        p->buffer_bytes[BUFFER_LIST] =
            (EXPERT_LIST_HEAD + problem_experts_listed(&rows) * (EXPERT_FIRST_ROW + p->m)) *
            (int64_t)sizeof(uint32_t);
}

static void make_step(planner *p, int64_t m, plan_step *step)
{
    const decoder *d = p->d;
    *step = (plan_step){ .m = m,
                         .logits_rows = d->all_logits ? m : 1,
                         .sampled_rows = d->sequences > 1 && d->all_logits ? m : 1 };
    p->m = m;
    p->launches.count = 0;
    p->rows.x = BUFFERS;
    size_buffers(p);
    p->layer = -1;
    plan_embed(p);
    for (p->layer = 0; p->layer < d->layers; p->layer++) {
        size_t before = p->launches.count;
        plan_layer(p);
        if (p->launches.count - before > step->layer_launches)
            step->layer_launches = p->launches.count - before;
    }
    plan_logits(p, step->logits_rows);
    plan_sample(p, step->sampled_rows, step->logits_rows);
    planner_fetch_ahead(p);
    planner_place_buffers(p, step);
}

static void place_state(planner *p)
{
    const decoder *d = p->d;
    plan *made = p->plan;
    plan_state *s = &made->state;
    uint64_t rows = (uint64_t)made->rows, words = rows * sizeof(uint32_t);
    s->tokens = take(made, PLAN_STATE, words);
    s->positions = take(made, PLAN_STATE, words);
    s->lengths = take(made, PLAN_STATE, words);
    s->sampling = take(made, PLAN_STATE, rows * SAMPLING_WORDS * sizeof(uint32_t));
    s->caches = take(made, PLAN_STATE, 2 * rows * (uint64_t)d->layers * sizeof(uint64_t));
    s->logits =
        take(made, PLAN_STATE, (d->all_logits ? rows : 1) * (uint64_t)d->vocab * sizeof(float));
}

static uint64_t cache_part_bytes(const decoder *d, int64_t layer, int part)
{
    uint64_t channels = decoder_rows(d, TENSOR_SSM_CONV1D), size = (uint64_t)d->delta_head_dim;
    if (d->recurrent[layer])
        return sizeof(float) *
               (part ? DELTA_RING * channels : (uint64_t)d->delta_value_heads * size * size);
    if (d->latent)
        return part ? 0
                    : (uint64_t)d->max_seq_len *
                          format_bytes(kv_formats[d->kv_type], decoder_rows(d, TENSOR_ATTN_KV_A));
    int64_t ring = plan_ring(d, layer);
    return (uint64_t)(d->num_kv_heads * (ring ? ring : d->max_seq_len)) *
           format_bytes(kv_formats[d->kv_type], (uint64_t)d->head_dim);
}

static void place_caches(planner *p)
{
    const decoder *d = p->d;
    plan *made = p->plan;
    made->caches = arena_alloc(p->arena, (size_t)d->layers * sizeof *made->caches);
    for (int64_t layer = 0; layer < d->layers; layer++)
        for (int part = 0; part < PLAN_CACHE_PARTS; part++) {
            uint64_t bytes = cache_part_bytes(d, layer, part);
            made->caches[layer][part] = (plan_cache){ take(made, PLAN_CACHE, bytes), bytes };
        }
    made->sequence_bytes = made->bytes[PLAN_CACHE];
    made->bytes[PLAN_CACHE] *= (uint64_t)d->sequences;
}

static void check_targets(const planner *p)
{
    const target *oldest = p->targets[0];
    int64_t most = p->d->m[p->d->m_count - 1];
    if (decoder_is_prompt(most) && p->d->precision == PRECISION_Q8 &&
        oldest->sm < DECODER_PROMPT_SM)
        diag_error(p->diags, DIAG_CONFLICT, p->where,
                   "m = %lld is a step of a prompt, on the tensor cores of sm_%d and newer, and %s "
                   "is one of the targets: take %d at most, or leave that target out",
                   (long long)most, DECODER_PROMPT_SM, oldest->name, DECODER_FEW_ROWS);
}

plan *plan_make(arena *a, const decoder *of, location where, const target *const *wanted,
                size_t wanted_count, const plan_model *model, diags *d)
{
    planner p = { .arena = a,
                  .d = of,
                  .plan = arena_zalloc(a, sizeof *p.plan),
                  .targets = wanted,
                  .target_count = wanted_count,
                  .where = where,
                  .diags = d };
    size_t errors = d->errors;
    check_targets(&p);
    if (d->errors > errors)
        return NULL;
    p.plan->decoder = of;
    p.plan->model = model;
    p.plan->targets = memcpy(arena_alloc(a, wanted_count * sizeof *wanted), wanted,
                             wanted_count * sizeof *wanted);
    p.plan->target_count = wanted_count;
    p.plan->rows = of->m[of->m_count - 1];
    p.plan->step_count = (size_t)of->m_count;
    p.plan->steps = arena_alloc(a, p.plan->step_count * sizeof *p.plan->steps);
    p.numbers = arena_alloc(a, TENSOR_COUNT * sizeof *p.numbers);
    place_tensors(&p);
    place_caches(&p);
    place_state(&p);
    for (size_t i = 0; i < p.plan->step_count; i++)
        make_step(&p, of->m[i], &p.plan->steps[i]);
    planner_place_counters(&p, take(p.plan, PLAN_STATE, (uint64_t)p.counters));
    p.plan->kernels = p.kernels.items;
    p.plan->kernel_count = p.kernels.count;
    return d->errors > errors ? NULL : p.plan;
}
