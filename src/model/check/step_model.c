/* Sizes (root mean squares) of random weights. A normed vector has size 1, and a product with k
 * columns of weights of size s / sqrt(k) has size s. Scores have a standard deviation of about 2: a
 * flat softmax would hide errors of RoPE, and a peaked one would see one position only. A layer's
 * branch is about as large as the hidden states, so that errors in either show. A final cap bends
 * the largest logits. A router chooses the same experts in float and double: see step_router.h. */
#include "model/check/step_model.h"

#include <math.h>
#include <string.h>

#include "model/check/step_router.h"
#include "ref/quant.h"
#include "ref/reference.h"

enum {
    MOST_BYTES = 4 << 20,
    MOST_OF_EXPERTS = 256 << 10,
    MEASURED = 4096,
    KERNEL_READS = 16,
    ROWS_OF_LARGE = 128
};
#define LARGE_MATRIX (UINT64_C(1) << 26) /* weights */
#define HEADS        1.5
#define GATE         1.3
static const double SCORES = 2, BRANCH = 2, LOGITS = 3, BIAS = 0.3;

/* Makes random values of a given root mean square, measured on the first ones. */
static void fill_sized(format f, void *bytes, uint64_t values, double size, random_source *r)
{
    float decoded[MEASURED];
    double squares = 0;
    uint64_t count = values < MEASURED ? values : MEASURED;
    ref_fill(f, bytes, values, FILL_NORMAL, r);
    ref_decode(f, bytes, count, decoded);
    for (uint64_t i = 0; i < count; i++)
        squares += (double)decoded[i] * (double)decoded[i];
    ref_resize(f, bytes, values, (float)(size / sqrt(squares / (double)count)), r);
}

static double or_1(double scale)
{
    return scale != 0 ? fabs(scale) : 1;
}

static double scale_of_scores(const decoder *d, int64_t layer)
{
    return d->attention_scale != 0 ? d->attention_scale : 1 / sqrt((double)d->at[layer].head_dim);
}

/* Returns the size of q and k that gives scores of size SCORES. In latent attention it is the size
 * of the RoPE part, which has half of the variance. */
static double size_of_heads(const decoder *d, int64_t layer)
{
    double dims = d->latent ? 2 * (double)d->rope[0].dims : (double)d->at[layer].head_dim;
    return sqrt(SCORES / (sqrt(dims) * scale_of_scores(d, layer)));
}

/* Returns the size of products with a matrix for x of size 1. */
static double product_size(const decoder *d, decoder_tensor t, int64_t layer)
{
    static const double sizes[TENSOR_COUNT] = {
        [TENSOR_ATTN_QKV] = HEADS,      [TENSOR_ATTN_V] = HEADS,
        [TENSOR_ATTN_V_B] = HEADS,      [TENSOR_ATTN_Q_A] = HEADS,
        [TENSOR_DELTA_QKV] = HEADS,     [TENSOR_SSM_IN] = HEADS,
        [TENSOR_ATTN_GATE] = GATE,      [TENSOR_DELTA_GATE] = GATE,
        [TENSOR_FFN_GATE] = GATE,       [TENSOR_FFN_UP] = GATE,
        [TENSOR_FFN_GATE_UP] = GATE,    [TENSOR_FFN_GATE_EXPS] = GATE,
        [TENSOR_FFN_UP_EXPS] = GATE,    [TENSOR_FFN_GATE_UP_EXPS] = GATE,
        [TENSOR_FFN_GATE_SHEXP] = GATE, [TENSOR_FFN_UP_SHEXP] = GATE,
        [TENSOR_INP_GATE] = GATE,
    };
    switch (t) {
    case TENSOR_ATTN_Q:
    case TENSOR_ATTN_K:
        return d->has[TENSOR_ATTN_Q_NORM] ? HEADS : size_of_heads(d, layer);
    case TENSOR_ATTN_Q_B:
    case TENSOR_ATTN_KV_A:
        return size_of_heads(d, layer);
    case TENSOR_ATTN_K_B:
        /* for the other half of the scores' variance: the latent has size 1 */
        return SCORES /
               (sqrt(2 * (double)d->latent) * scale_of_scores(d, layer) * size_of_heads(d, layer));
    case TENSOR_ATTN_KV_B: /* its rows of k, multiplied as columns, are to have that size, too */
        return product_size(d, TENSOR_ATTN_K_B, layer) *
               sqrt((double)d->latent / (double)decoder_columns(d, TENSOR_ATTN_K_B, layer));
    case TENSOR_ATTN_OUTPUT:
    case TENSOR_SSM_OUT:
    case TENSOR_SHORTCONV_OUT:
    case TENSOR_FFN_DOWN:
    case TENSOR_FFN_DOWN_SHEXP:
        return BRANCH / or_1(d->residual_scale);
    case TENSOR_FFN_DOWN_EXPS: {
        /* Weighted experts sum up to a dense feed-forward. Sigmoid weights are about 0.7. */
        bool shares = d->experts_normed || d->gating != GATING_SIGMOID;
        double used = (double)d->experts_used, all = shares ? 1 / sqrt(used) : 0.7 * sqrt(used);
        return BRANCH / (all * or_1(d->residual_scale) * or_1(d->experts_scale));
    }
    default:
        return sizes[t] > 0 ? sizes[t] : 1;
    }
}

/* Returns the size of a norm's gains. The last norm compensates for a tied output matrix. */
static double gain_size(const decoder *d, decoder_tensor t, int64_t layer)
{
    double one_product =
        d->has[TENSOR_OUTPUT] ? 1 : sqrt((double)d->hidden) / or_1(d->embedding_scale);
    switch (t) {
    case TENSOR_OUTPUT_NORM:
        return (d->final_softcap > 0 ? d->final_softcap / 2 : LOGITS) / or_1(d->logit_scale) /
               one_product;
    case TENSOR_ATTN_Q_NORM:
    case TENSOR_ATTN_K_NORM:
        return size_of_heads(d, layer);
    case TENSOR_POST_ATTENTION_NORM:
    case TENSOR_POST_FFW_NORM:
    case TENSOR_POST_NORM:
        return 1 / or_1(d->residual_scale);
    case TENSOR_ROUTER_NORM:
        return 1 / or_1(d->router_scale);
    default:
        return 1;
    }
}

/* Returns a vector's value: 0.5 to 1.5 times its size, with a random sign. */
static float vector_value(const plan_tensor *of, double gain, random_source *r)
{
    decoder_tensor t = of->tensor;
    double columns = (double)of->columns;
    switch (tensor_infos[t].kind) {
    case TENSOR_NORM: {
        double part = 0.5 + (double)random_below(r, 1 << 20) / (1 << 20);
        return (float)(random_below(r, 2) ? part * gain : -part * gain);
    }
    case TENSOR_BIAS: {
        double size = t == TENSOR_ATTN_SINKS           ? SCORES
                      : t == TENSOR_FFN_GATE_INP_SHEXP ? GATE / sqrt(columns)
                                                       : BIAS;
        return (float)size * random_normal(r);
    }
    case TENSOR_SCALE:
    case TENSOR_GAIN:
        return 0.5F + random_part(r);
    case TENSOR_FACTORS:
        return 1 + 3 * random_part(r);
    case TENSOR_CONV:
        return random_normal(r) / sqrtf((float)columns);
    case TENSOR_DECAY:
        return -0.1F - random_part(r);
    default:
        return 0;
    }
}

/* Makes a tensor's content: a limited number of rows, which repeat. A router's rows are all made,
 * because equal rows would have equal logits. With experts few rows are made, since repeated rows
 * cost the reference nothing when tokens are fed one by one. A large matrix has few, too: see
 * step_product_repeats. The number is odd, so that experts start at different rows. */
static model_tensor make_tensor(arena *a, const decoder *d, const plan_tensor *t, random_source *r)
{
    bool soon = d->experts && tensor_infos[t->tensor].by_layer;
    uint64_t row = format_bytes(t->format, t->columns);
    uint64_t rows = (soon ? MOST_OF_EXPERTS : MOST_BYTES) / row;
    if (!d->experts && t->rows * t->columns > LARGE_MATRIX && rows > ROWS_OF_LARGE)
        rows = ROWS_OF_LARGE;
    rows = rows < t->rows && t->tensor != TENSOR_FFN_GATE_INP ? rows | 1 : t->rows;
    uint64_t values = rows * t->columns;
    model_tensor made = { .stored = rows * row, .rows = rows };
    made.size = (t->bytes + KERNEL_READS - 1) / KERNEL_READS * KERNEL_READS;
    made.bytes = arena_alloc(a, made.stored + KERNEL_READS);
    memset((char *)made.bytes + made.stored, 0xff, KERNEL_READS);
    if (tensor_is_matrix(t->tensor)) {
        double size = t->tensor == TENSOR_TOKEN_EMBD ? 1 / or_1(d->embedding_scale)
                      : t->tensor == TENSOR_PER_LAYER_TOKEN_EMBD
                          ? 1 / sqrt((double)d->per_layer)
                          : product_size(d, t->tensor, t->layer) / sqrt((double)t->columns);
        fill_sized(t->format, made.bytes, values, size, r);
        return made;
    }
    double gain = gain_size(d, t->tensor, t->layer);
    for (uint64_t i = 0; i < values; i++)
        ((float *)made.bytes)[i] = vector_value(t, gain, r);
    return made;
}

/* Makes rows of K and V, enough for the longest row of any layer. */
static void make_rows(arena *a, step_model *m, random_source *r)
{
    uint64_t values = 0;
    for (int64_t layer = 0; layer < m->d->layers; layer++) {
        const ref_cached any = { .layer = layer };
        if (m->d->at[layer].attends && ref_cached_values(m->d, &any) > values)
            values = ref_cached_values(m->d, &any);
    }
    double window = m->d->window ? (double)m->d->window : 1;
    m->row_bytes = format_bytes(m->kv_format, values);
    for (int i = 0; values && i < 2; i++) {
        m->rows[i] = arena_alloc(a, MODEL_CACHE_ROWS * m->row_bytes);
        m->first[i] = arena_alloc(a, MODEL_LARGE_POSITIONS * m->row_bytes);
        fill_sized(m->kv_format, m->rows[i], MODEL_CACHE_ROWS * values, 1, r);
        fill_sized(m->kv_format, m->first[i], MODEL_LARGE_POSITIONS * values, i ? sqrt(window) : 1,
                   r); /* one of `window` positions adds enough to o */
    }
}

step_model step_model_new(arena *a, const plan *p, uint64_t seed)
{
    random_source r = { seed };
    step_model m = { .d = p->decoder,
                     .plan = p,
                     .tensors = arena_alloc(a, p->tensor_count * sizeof *m.tensors),
                     .kv_format = kv_formats[p->decoder->kv_type] };
    for (size_t i = 0; i < p->tensor_count; i++)
        m.tensors[i] = make_tensor(a, m.d, &p->tensors[i], &r);
    for (int64_t layer = 0; layer < m.d->layers; layer++)
        step_make_router(a, m.d, layer, &m, step_model_weights, &r);
    for (size_t i = 0; m.d->experts && i < p->tensor_count; i++)
        if (tensor_is_matrix(p->tensors[i].tensor) && tensor_infos[p->tensors[i].tensor].by_layer) {
            model_tensor *t = &m.tensors[i];
            uint64_t count = t->rows * p->tensors[i].columns;
            t->values = arena_alloc(a, count * sizeof *t->values);
            ref_decode(p->tensors[i].format, t->bytes, count, t->values);
        }
    make_rows(a, &m, &r);
    if (decoder_first_layer(m.d, PART_RECURRENT) < 0)
        return m;
    /* size of states that keys of length 1 and values of size 1 leave */
    uint64_t size = decoder_state_values(m.d), states = decoder_state_heads(m.d) * size;
    uint64_t inputs = DELTA_RING * decoder_channels(m.d);
    m.states = arena_alloc(a, states * sizeof *m.states);
    m.inputs = arena_alloc(a, inputs * sizeof *m.inputs);
    for (uint64_t i = 0; i < states; i++)
        m.states[i] = random_normal(&r) / sqrtf(sqrtf((float)size));
    for (uint64_t i = 0; i < inputs; i++)
        m.inputs[i] = (float)HEADS * random_normal(&r);
    return m;
}

uint64_t step_model_cache_rows(const step_model *m, int64_t layer)
{
    const ref_cached any = { .layer = layer };
    uint64_t heads = m->d->latent ? 1 : (uint64_t)m->d->at[layer].num_kv_heads;
    return m->plan->caches[layer][0].bytes / (heads * step_model_row_bytes(m, &any));
}

uint64_t step_model_page(const step_model *m, int64_t sequence, uint64_t index)
{
    uint64_t pages = (uint64_t)plan_pages(m->d);
    return ref_scattered_page((uint64_t)sequence * pages + index,
                              pages * (uint64_t)m->d->sequences);
}

/* Returns the number of a row in its pool. */
static uint64_t row_number(const step_model *m, const ref_cached *which)
{
    uint64_t rows = step_model_cache_rows(m, which->layer), page = (uint64_t)which->sequence;
    uint64_t heads = m->d->latent ? 1 : (uint64_t)m->d->at[which->layer].num_kv_heads;
    if (m->plan->caches[m->d->at[which->layer].cache][0].memory == PLAN_PAGES)
        page = step_model_page(m, which->sequence, which->position / rows);
    return (page * heads + (uint64_t)which->kv_head) * rows + which->position % rows;
}

static uint64_t recurrent_offset(const step_model *m, const ref_cached *which)
{
    return (which->values ? which->position % DELTA_RING : (uint64_t)which->kv_head) *
           step_model_row_bytes(m, which);
}

uint64_t step_model_offset(const step_model *m, const ref_cached *which)
{
    if (!which->recurrent)
        return row_number(m, which) * step_model_row_bytes(m, which);
    int64_t slot = decoder_states_slot(m->d, which->layer);
    uint64_t of_sequence = m->plan->caches[slot][which->values].bytes;
    return (uint64_t)which->sequence * of_sequence + recurrent_offset(m, which);
}

format step_model_format(const step_model *m, const ref_cached *which)
{
    return which->recurrent ? FORMAT_F32 : m->kv_format;
}

uint64_t step_model_row_bytes(const step_model *m, const ref_cached *which)
{
    return format_bytes(step_model_format(m, which), ref_cached_values(m->d, which));
}

uint64_t step_model_pattern(const step_model *m, int64_t layer)
{
    const ref_cached any = { .layer = layer };
    uint64_t bytes = step_model_row_bytes(m, &any);
    return MODEL_CACHE_ROWS * m->row_bytes / bytes * bytes;
}

/* Rows repeat through the pool, as the mapped pattern does. */
const void *step_model_row(const step_model *m, const ref_cached *which)
{
    if (which->recurrent)
        return (const char *)(which->values ? m->inputs : m->states) + recurrent_offset(m, which);
    bool first = which->position < MODEL_LARGE_POSITIONS;
    const char *rows = first ? m->first[which->values] : m->rows[which->values];
    uint64_t bytes = step_model_row_bytes(m, which), number = row_number(m, which);
    uint64_t count = first ? MODEL_LARGE_POSITIONS : step_model_pattern(m, which->layer) / bytes;
    return rows + number % count * bytes;
}

ref_tensor step_model_weights(void *user, decoder_tensor t, int64_t layer)
{
    const step_model *m = user;
    for (size_t i = 0; i < m->plan->tensor_count; i++)
        if (m->plan->tensors[i].tensor == t &&
            (!tensor_infos[t].by_layer || m->plan->tensors[i].layer == layer))
            return (ref_tensor){ m->tensors[i].bytes, m->tensors[i].rows, m->tensors[i].values };
    return (ref_tensor){ NULL, 1, NULL };
}

void step_model_earlier(void *user, const ref_cached *which, float *row)
{
    const step_model *m = user;
    ref_decode(step_model_format(m, which), step_model_row(m, which),
               ref_cached_values(m->d, which), row);
}
