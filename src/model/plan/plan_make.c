/* Makes a plan. Buffers of the workspace have the same addresses in every layer. Attention, or its
 * replacement, computes middle from h. The feed-forward follows:
 *
 *   gate_up    norm(middle), W_gate W_up           -> f
 *   down       W_down f + middle                   -> h
 *
 * In prompt steps a launch converts norm(middle) or f to f16 rows for tensor-core products, once
 * for all products of the same x.
 *
 * With post-norms the last products write to a buffer, and a norm adds it to h or middle. h and
 * middle are two buffers because no kernel writes what it reads. */
#include "kernel/memory_plan.h"
#include "model/plan/plan_product.h"

/* Appends bytes to a piece of memory. Returns their offset. */
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
    decoder_tensor_name(d, t, layer, name);
    plan_tensor made = {
        .name = arena_strdup(p->arena, name),
        .tensor = t,
        .layer = layer,
        .format = decoder_format(d, t, layer),
        .rows = decoder_rows(d, t, layer),
        .columns = decoder_columns(d, t, layer),
        .bytes = decoder_bytes(d, t, layer),
        .memory = t == TENSOR_PER_LAYER_TOKEN_EMBD && d->table_on_host ? PLAN_HOST : PLAN_WEIGHTS,
    };
    made.offset = take(p->plan, made.memory, made.bytes);
    p->numbers[t][layer] = (uint32_t)p->tensors.count;
    *VEC_PUSH(p->arena, &p->tensors) = made;
}

/* Places the tensors in order of use: before, in and after the layers. */
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

/* Returns the most values per row of a layer's first product, of attention or recurrence. */
static int64_t qkv_values(const decoder *d)
{
    static const uint8_t direct[] = { TENSOR_ATTN_Q,   TENSOR_ATTN_K,   TENSOR_ATTN_V,
                                      TENSOR_ATTN_QKV, TENSOR_ATTN_Q_A, TENSOR_ATTN_KV_A },
                         recurrent[] = { TENSOR_DELTA_QKV, TENSOR_DELTA_GATE, TENSOR_SSM_BA,
                                         TENSOR_SHORTCONV_IN, TENSOR_SSM_IN };
    int64_t most = 0;
    for (int64_t layer = 0; layer < d->layers; layer++) {
        int64_t attention = 0, net = 0;
        for (size_t i = 0; i < sizeof direct; i++)
            attention +=
                decoder_has(d, direct[i], layer) ? (int64_t)decoder_rows(d, direct[i], layer) : 0;
        for (size_t i = 0; i < sizeof recurrent; i++)
            net += decoder_has(d, recurrent[i], layer)
                       ? (int64_t)decoder_rows(d, recurrent[i], layer)
                       : 0;
        most = larger(most, larger(attention, net));
    }
    return most;
}

/* Returns the most values of q, over all layers. */
static int64_t q_values(const decoder *d)
{
    int64_t most = 0;
    for (int64_t layer = 0; layer < d->layers; layer++)
        most = larger(most, d->at[layer].num_heads *
                                (d->latent ? d->latent + d->rope[0].dims : d->at[layer].head_dim));
    return most;
}

static int64_t most_ff(const decoder *d)
{
    int64_t most = 0;
    for (int64_t layer = 0; layer < d->layers; layer++)
        most = larger(most, d->at[layer].ff);
    return most;
}

/* Adds the first launch. It waits before later launches start: they see the last step. */
static void add_embed(planner *p)
{
    static const plan_bind binds[] = { { "w", BIND_TENSOR, TENSOR_TOKEN_EMBD },
                                       { "tokens", BIND_STATE, AT_TOKENS },
                                       { "history", BIND_STATE, AT_HISTORY },
                                       { "positions", BIND_STATE, AT_POSITIONS },
                                       { 0 } };
    const decoder *d = p->d;
    bool overlaps = false; /* on any target, since a kernel has one configuration on all */
    for (size_t i = 0; i < p->target_count; i++)
        overlaps |= target_overlaps(p->targets[i]);
    const plan_key keys[] = { { "weights", planner_format(p, TENSOR_TOKEN_EMBD) },
                              { "k", d->hidden },
                              { "n", d->vocab },
                              { "scale", real_bits(d->embedding_scale) },
                              { "trigger", overlaps ? TRIGGER_WAITED : TRIGGER_FIRST },
                              { "history", plan_history(d) },
                              { 0 } };
    const buffer_id y = d->embedding_norm ? BUFFER_NORMED : BUFFER_H;
    launch_draft l = planner_draft(p, FAMILY_EMBED_ROWS, keys, binds);
    planner_bind_buffer(p, &l, "y", y, 0);
    planner_add(p, &l, arena_format(p->arena, "token_embd[token] -> %s", buffer_lives[y].name));
    if (!d->embedding_norm)
        return;
    static const plan_bind norm_binds[] = { { "y", BIND_BUFFER, BUFFER_H },
                                            { "x", BIND_BUFFER, BUFFER_NORMED },
                                            { 0 } };
    const plan_key norm_keys[] = {
        { "k", d->hidden }, { "gamma", 1 }, { "epsilon", real_bits(d->epsilon) }, { 0 }
    };
    planner_launch(p, FAMILY_RMS_NORM, norm_keys, norm_binds, "norm(normed) -> h");
}

static const plan_gates dense_gates = {
    .gate = TENSOR_FFN_GATE, .up = TENSOR_FFN_UP, .fused = TENSOR_FFN_GATE_UP, .y = BUFFER_F
};

static void add_feed_forward(planner *p)
{
    static const plan_branch down = { .w = TENSOR_FFN_DOWN,
                                      .post_norm = TENSOR_POST_FFW_NORM,
                                      .x = BUFFER_F,
                                      .product = BUFFER_DOWN };
    plan_multiply_gates(p, &dense_gates);
    plan_add_branch(p, &down);
}

/* Adds the dense feed-forward beside experts: both norms of it come after those. */
static void add_dense(planner *p)
{
    const plan_product down = { .w = TENSOR_FFN_DOWN,
                                .x = BUFFER_F,
                                .y = BUFFER_DENSE,
                                .residual = BUFFERS,
                                .norm = TENSOR_COUNT };
    plan_multiply_gates(p, &dense_gates);
    plan_multiply(p, &down, p->m, 0);
    p->rows.x = BUFFERS; /* f of experts will differ */
}

static void (*const recurrences[])(planner *) = {
    [RECURRENCE_DELTA] = plan_delta_net,
    [RECURRENCE_SHORT_CONV] = plan_short_conv,
    [RECURRENCE_MAMBA2] = plan_mamba2,
    [RECURRENCE_MAMBA] = plan_mamba,
};

static void add_layer(planner *p)
{
    const decoder_layer *at = &p->d->at[p->layer];
    p->branches = 0;
    if (at->attends && p->d->latent)
        plan_latent_attention(p);
    else if (at->attends)
        plan_attention(p);
    if (at->recurs)
        recurrences[p->d->recurrence](p);
    if (at->is_routed && at->is_dense)
        add_dense(p);
    if (at->is_routed)
        plan_experts(p);
    else if (at->is_dense)
        add_feed_forward(p);
    if (p->d->per_layer)
        plan_add_per_layer(p);
    if (p->branches % 2)
        p->exchanged = !p->exchanged;
    p->exchanges |= p->exchanged || (at->attends && at->recurs);
    p->branches = 0;
}

/* Gathers the hidden states of the rows with logits. */
static void choose_rows(planner *p, int64_t rows)
{
    static const plan_bind binds[] = { { "y", BIND_BUFFER, BUFFER_CHOSEN },
                                       { "w", BIND_BUFFER, BUFFER_H },
                                       { "tokens", BIND_STATE, AT_CHOSEN },
                                       { 0 } };
    const plan_key keys[] = { { "weights", instance_weights_index(FORMAT_F32) },
                              { "k", p->d->hidden },
                              { "n", p->m },
                              { "m", rows },
                              { 0 } };
    planner_launch(p, FAMILY_EMBED_ROWS, keys, binds, "h[chosen rows] -> chosen");
}

static void add_logits(planner *p, int64_t rows, bool chosen)
{
    const decoder *d = p->d;
    const plan_product of = { .w = d->has[TENSOR_OUTPUT] ? TENSOR_OUTPUT : TENSOR_TOKEN_EMBD,
                              .x = chosen ? BUFFER_CHOSEN : BUFFER_H,
                              .y = BUFFERS,
                              .residual = BUFFERS,
                              .norm = TENSOR_OUTPUT_NORM,
                              .scale = d->logit_scale,
                              .softcap = d->final_softcap };
    if (chosen)
        choose_rows(p, rows);
    plan_multiply(p, &of, rows, chosen ? 0 : (uint64_t)(p->m - rows));
}

#define SETTINGS_BINDS                                                                \
    { "history", BIND_STATE, AT_HISTORY }, { "penalties", BIND_STATE, AT_PENALTIES }, \
        { "biases", BIND_STATE, AT_BIASES }, { "mask", BIND_STATE, AT_MASK },         \
        { "logprobs", BIND_STATE, AT_LOGPROBS }, { "best", BIND_STATE, AT_BEST },     \
        { "adjusted", BIND_BUFFER, BUFFER_ADJUSTED },                                 \
    {                                                                                 \
        "ranked", BIND_BUFFER, BUFFER_RANKED                                          \
    }

static void add_sample(planner *p, int64_t rows, int64_t logits_rows, bool chosen)
{
    static const plan_bind binds[] = {
        { "token", BIND_STATE, AT_TOKENS },
        { "next_position", BIND_STATE, AT_POSITIONS },
        { "length", BIND_STATE, AT_LENGTHS },
        { "told", BIND_BUFFER, BUFFER_TOLD },
        { "sampling", BIND_STATE, AT_SAMPLING },
        SETTINGS_BINDS,
        { 0 },
    };
    static const plan_bind chosen_binds[] = {
        { "token", BIND_STATE, AT_CHOSEN_TOKENS },
        { "next_position", BIND_STATE, AT_CHOSEN_POSITIONS },
        { "length", BIND_STATE, AT_CHOSEN },
        { "told", BIND_BUFFER, BUFFER_TOLD },
        { "sampling", BIND_STATE, AT_SAMPLING },
        { "positions", BIND_STATE, AT_CHOSEN_POSITIONS },
        SETTINGS_BINDS,
        { 0 },
    };
    const plan_state *s = &p->plan->state;
    uint64_t ahead = (uint64_t)(logits_rows - rows) * (uint64_t)p->d->vocab * sizeof(float);
    const plan_key keys[] = { { "n", p->d->vocab },
                              { "m", rows },
                              { "history", plan_history(p->d) },
                              { "biases", p->d->biases },
                              { "mask", p->d->token_mask },
                              { "logprobs", p->d->logprobs },
                              { 0 } };
    launch_draft l = planner_draft(p, FAMILY_SAMPLE, keys, chosen ? chosen_binds : binds);
    planner_bind_state(&l, "logits", s->logits + ahead, "logits");
    uint64_t last = (uint64_t)(p->m - rows) * sizeof(uint32_t);
    planner_bind_state(&l, "sequences", chosen ? s->chosen_sequences : s->sequences + last,
                       chosen        ? "their sequences"
                       : rows < p->m ? "sequence of the last row"
                                     : "sequences");
    if (!chosen)
        planner_bind_state(&l, "positions", s->positions + last,
                           rows < p->m ? "positions of the last row" : "positions");
    planner_add(p, &l, chosen ? "logits -> their tokens" : "logits -> token, position, length");
}

static void make_step(planner *p, int64_t m, plan_step *step)
{
    const decoder *d = p->d;
    *step = (plan_step){ .m = m,
                         .logits_rows = decoder_logits_rows(d, m),
                         .chooses = d->logits_rows && d->logits_rows < m };
    bool each = d->logits_rows || (d->sequences > 1 && d->all_logits);
    step->sampled_rows = d->caller_samples ? 0 : each ? step->logits_rows : 1;
    p->m = m;
    p->exchanged = p->exchanges = false;
    p->launches.count = 0;
    p->rows.x = BUFFERS;
    p->normed = TENSOR_COUNT;
    int64_t heads = 0, used = d->experts_used;
    bool shared_apart = false, apart = plan_separates_q(p);
    for (p->layer = 0; p->layer < d->layers; p->layer++) {
        heads = larger(heads, d->at[p->layer].num_heads * d->at[p->layer].head_dim);
        shared_apart |= planner_has(p, TENSOR_FFN_DOWN_EXPS) && plan_separates_shared(p);
    }
    const problem_shape shape = { .m = m, .experts = d->experts, .experts_used = used };
    bool beside = d->has[TENSOR_POST_FFW_NORM_1];
    const int64_t values[BUFFERS] = {
#define BUFFER(id, name, first, last, values) values,
#include "model/plan/buffers.def"
#undef BUFFER
    };
    for (int i = 0; i < BUFFERS; i++)
        p->buffer_bytes[i] = values[i] * m * (int64_t)sizeof(float);
    if (d->experts) /* see ref_moe_route */
        p->buffer_bytes[BUFFER_LIST] =
            (EXPERT_LIST_HEAD + problem_experts_listed(&shape) * (EXPERT_FIRST_ROW + m)) *
            (int64_t)sizeof(uint32_t);
    p->layer = -1;
    p->branches = 0;
    step->hidden = arena_alloc(p->arena, (size_t)(d->layers + 1) * sizeof *step->hidden);
    bool *exchanged = arena_zalloc(p->arena, (size_t)(d->layers + 1) * sizeof *exchanged);
    add_embed(p);
    if (d->per_layer)
        plan_make_per_layer(p);
    for (p->layer = 0; p->layer < d->layers; p->layer++) {
        size_t before = p->launches.count;
        add_layer(p);
        exchanged[p->layer + 1] = p->exchanged;
        if (p->launches.count - before > step->layer_launches)
            step->layer_launches = p->launches.count - before;
    }
    add_logits(p, step->logits_rows, step->chooses);
    if (step->sampled_rows)
        add_sample(p, step->sampled_rows, step->logits_rows, step->chooses);
    planner_fetch_ahead(p);
    planner_place_buffers(p, step, exchanged);
}

static uint64_t take_words(plan *p, uint64_t count)
{
    return take(p, PLAN_STATE, count * sizeof(uint32_t));
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
    s->sequences = take(made, PLAN_STATE, words);
    made->tiles = arena_alloc(p->arena, PROBLEM_MOST_TILES * sizeof *made->tiles);
    for (int64_t layer = 0; layer < d->layers; layer++) {
        int64_t tile_rows = plan_tile_rows(p, layer);
        size_t same = 0;
        while (same < made->tile_count && made->tiles[same].rows != tile_rows)
            same++;
        if (tile_rows && same == PROBLEM_MOST_TILES)
            diag_error(p->diags, DIAG_CONFLICT, p->where,
                       "layers have more than %d different numbers of heads per KV head",
                       PROBLEM_MOST_TILES);
        else if (tile_rows && same == made->tile_count)
            made->tiles[made->tile_count++] =
                (plan_tiles){ tile_rows, take(made, PLAN_STATE, words) };
    }
    if (d->logits_rows && d->logits_rows < made->rows) {
        s->chosen = take(made, PLAN_STATE, words);
        s->chosen_positions = take(made, PLAN_STATE, words);
        s->chosen_sequences = take(made, PLAN_STATE, words);
        s->chosen_tokens = take(made, PLAN_STATE, words);
    }
    s->pages = take(made, PLAN_STATE, (uint64_t)(d->sequences * plan_pages(d)) * sizeof(uint32_t));
    s->sampling = take_words(made, (uint64_t)d->sequences * SAMPLING_WORDS);
    uint64_t logits_rows = (uint64_t)decoder_logits_rows(d, made->rows);
    uint64_t sequences = (uint64_t)d->sequences, logprobs = (uint64_t)d->logprobs;
    s->history = take_words(made, sequences * (uint64_t)plan_history(d));
    s->penalties = take_words(made, plan_history(d) ? sequences * PENALTY_WORDS : 0);
    s->biases = take_words(made, sequences * (uint64_t)d->biases * 2);
    s->mask = take_words(made, logits_rows * plan_mask_words(d));
    s->logprobs = take_words(made, logprobs ? logits_rows * (1 + logprobs) : 0);
    s->best = take_words(made, logits_rows * logprobs);
    s->logits = take_words(made, logits_rows * (uint64_t)d->vocab);
}

/* Places the two parts of a slot, each for all sequences, or per page. */
static void place_slot(planner *p, int64_t slot, plan_memory memory, uint64_t first,
                       uint64_t second)
{
    const uint64_t bytes[PLAN_CACHE_PARTS] = { first, second };
    uint64_t count = memory == PLAN_CACHE ? (uint64_t)p->d->sequences : 1;
    for (int part = 0; part < PLAN_CACHE_PARTS; part++)
        p->plan->caches[slot][part] =
            (plan_cache){ take(p->plan, memory, count * bytes[part]), bytes[part], memory };
}

static void place_caches(planner *p)
{
    const decoder *d = p->d;
    plan *made = p->plan;
    int64_t slots = decoder_slots(d);
    uint64_t states = decoder_state_heads(d) * decoder_state_values(d) * sizeof(float);
    uint64_t inputs = DELTA_RING * decoder_channels(d) * sizeof(float);
    made->caches = arena_zalloc(p->arena, (size_t)slots * sizeof *made->caches);
    for (int64_t layer = 0; layer < d->layers; layer++) {
        const decoder_layer *at = &d->at[layer];
        int64_t ring = plan_ring(d, layer);
        int64_t rows = ring ? ring : d->page ? d->page : d->max_seq_len;
        int64_t values = d->latent ? d->latent + d->rope[0].dims : at->head_dim;
        uint64_t row = format_bytes(kv_formats[d->kv_type], (uint64_t)values);
        uint64_t bytes = (uint64_t)((d->latent ? 1 : at->num_kv_heads) * rows) * row;
        if (decoder_has_part(d, PART_KV, layer))
            place_slot(p, layer, ring || !d->page ? PLAN_CACHE : PLAN_PAGES, bytes,
                       d->latent ? 0 : bytes);
        if (at->recurs && !at->attends)
            place_slot(p, layer, PLAN_CACHE, states, inputs);
    }
    for (int64_t slot = d->layers; slot < slots; slot++)
        place_slot(p, slot, PLAN_CACHE, states, inputs);
}

plan *plan_make(arena *a, const decoder *of, location where, const target *const *wanted,
                size_t wanted_count, const plan_model *model, diags *d)
{
    planner p = { .arena = a,
                  .d = of,
                  .plan = arena_alloc(a, sizeof *p.plan),
                  .targets = wanted,
                  .target_count = wanted_count,
                  .where = where,
                  .diags = d };
    size_t errors = d->errors;
    const target *oldest = wanted[0];
    int64_t most = of->m[of->m_count - 1];
    if (decoder_is_prompt(most) && of->precision == PRECISION_Q8 &&
        oldest->sm < DECODER_PROMPT_SM) {
        diag_error(d, DIAG_CONFLICT, where,
                   "m = %lld needs the tensor cores of sm_%d or newer, and %s is a target; use m "
                   "<= %d, or remove that target",
                   (long long)most, DECODER_PROMPT_SM, oldest->name, DECODER_FEW_ROWS);
        return NULL;
    }
    *p.plan = (plan){ .decoder = of,
                      .model = model,
                      .targets = (const void *)arena_copy(a, wanted, wanted_count * sizeof *wanted),
                      .target_count = wanted_count,
                      .rows = most,
                      .steps = arena_alloc(a, (size_t)of->m_count * sizeof *p.plan->steps),
                      .step_count = (size_t)of->m_count };
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
