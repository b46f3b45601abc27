/* Sizes. Vectors behind a norm are of size 1, and a product with rows of k weights of size s /
 * sqrt(k) is of size s. With scores of standard deviation 2, say, a softmax is neither flat, which
 * would hide how q and k turn, nor at one position. What a layer adds to the hidden states is to be
 * about as large as these, or one of the two would not be seen. A final cap is to bend the largest
 * logits.
 */
#include "check/step_model.h"

#include <math.h>
#include <string.h>

#include "family/memory_plan.h"
#include "ref/quant.h"

enum { MOST_BYTES = 4 << 20, MEASURED = 4096, KERNEL_READS = 16 };
static const double SCORES = 2, HEADS = 1.5, BRANCH = 2, GATE = 1.3, LOGITS = 3, BIAS = 0.3;

/* Root mean square of the first values. */
static double size_of(format f, const void *bytes, uint64_t values)
{
    float decoded[MEASURED];
    double squares = 0;
    uint64_t count = values < MEASURED ? values : MEASURED;
    ref_decode(f, bytes, count, decoded);
    for (uint64_t i = 0; i < count; i++)
        squares += (double)decoded[i] * (double)decoded[i];
    return sqrt(squares / (double)count);
}

static void fill_sized(format f, void *bytes, uint64_t values, double size, random_source *r)
{
    ref_fill(f, bytes, values, FILL_NORMAL, r);
    ref_resize(f, bytes, values, (float)(size / size_of(f, bytes, values)), r);
}

static double or_1(double scale)
{
    return scale != 0 ? fabs(scale) : 1;
}

/* The size of each of q and k that makes the scores what they should be. */
static double size_of_heads(const decoder *d)
{
    double unit = sqrt((double)d->head_dim);
    return sqrt(SCORES / (unit * (d->attention_scale != 0 ? d->attention_scale : 1 / unit)));
}

static double size_of_logits(const decoder *d)
{
    return d->final_softcap > 0 ? d->final_softcap / 2 : LOGITS;
}

/* The size that the products with a matrix should have where x is of size 1. */
static double product_size(const decoder *d, decoder_tensor t)
{
    switch (t) {
    case TENSOR_ATTN_Q:
    case TENSOR_ATTN_K:
        return d->has[TENSOR_ATTN_Q_NORM] ? HEADS : size_of_heads(d);
    case TENSOR_ATTN_QKV:
    case TENSOR_ATTN_V:
        return HEADS;
    case TENSOR_ATTN_OUTPUT:
    case TENSOR_FFN_DOWN:
        return BRANCH / or_1(d->residual_scale);
    case TENSOR_FFN_GATE:
    case TENSOR_FFN_UP:
    case TENSOR_FFN_GATE_UP:
        return GATE;
    default:
        return 1;
    }
}

static double matrix_size(const decoder *d, decoder_tensor t, uint64_t columns)
{
    return t == TENSOR_TOKEN_EMBD ? 1 / or_1(d->embedding_scale)
                                  : product_size(d, t) / sqrt((double)columns);
}

/* Gains of a norm, about. The last one makes up for an embedding that is the output matrix, too. */
static double gain_size(const decoder *d, decoder_tensor t)
{
    double one_product =
        d->has[TENSOR_OUTPUT] ? 1 : sqrt((double)d->hidden) / or_1(d->embedding_scale);
    switch (t) {
    case TENSOR_OUTPUT_NORM:
        return size_of_logits(d) / or_1(d->logit_scale) / one_product;
    case TENSOR_ATTN_Q_NORM:
    case TENSOR_ATTN_K_NORM:
        return size_of_heads(d);
    case TENSOR_POST_ATTENTION_NORM:
    case TENSOR_POST_FFW_NORM:
        return 1 / or_1(d->residual_scale);
    default:
        return 1;
    }
}

/* From half of a size to three halves, of either sign: so common parts of a vector don't grow from
 * product to product. */
static void fill_gains(float *gains, uint64_t count, double size, random_source *r)
{
    for (uint64_t i = 0; i < count; i++) {
        double part = 0.5 + (double)random_below(r, 1 << 20) / (1 << 20);
        gains[i] = (float)(random_below(r, 2) ? part * size : -part * size);
    }
}

static void fill_vector(const decoder *d, decoder_tensor t, float *values, uint64_t count,
                        random_source *r)
{
    if (tensor_infos[t].kind == TENSOR_NORM)
        fill_gains(values, count, gain_size(d, t), r);
    for (uint64_t i = 0; i < count && tensor_infos[t].kind == TENSOR_BIAS; i++)
        values[i] = (float)BIAS * random_normal(r);
    for (uint64_t i = 0; i < count && tensor_infos[t].kind == TENSOR_FACTORS; i++)
        values[i] = 1 + 3 * (float)random_below(r, 1 << 20) / (1 << 20);
}

static model_tensor make_tensor(arena *a, const decoder *d, const plan_tensor *t, random_source *r)
{
    uint64_t row = format_bytes(t->format, t->columns), most = MOST_BYTES / row;
    uint64_t rows = most < t->rows ? most | 1 : t->rows;
    model_tensor made = { .stored = rows * row, .rows = rows };
    made.size = (t->bytes + KERNEL_READS - 1) / KERNEL_READS * KERNEL_READS;
    made.bytes = arena_alloc(a, made.stored + KERNEL_READS);
    memset((char *)made.bytes + made.stored, 0xff, KERNEL_READS);
    if (tensor_is_matrix(t->tensor))
        fill_sized(t->format, made.bytes, rows * t->columns, matrix_size(d, t->tensor, t->columns),
                   r);
    else
        fill_vector(d, t->tensor, made.bytes, t->columns, r);
    return made;
}

static void make_cache(arena *a, step_model *m, random_source *r)
{
    uint64_t dim = (uint64_t)m->d->head_dim;
    double window = m->d->window ? (double)m->d->window : 1;
    for (int i = 0; i < 2; i++) {
        m->rows[i] = arena_alloc(a, MODEL_CACHE_ROWS * m->row_bytes);
        m->first[i] = arena_alloc(a, MODEL_LARGE_POSITIONS * m->row_bytes);
        fill_sized(m->kv_format, m->rows[i], MODEL_CACHE_ROWS * dim, 1, r);
        fill_sized(m->kv_format, m->first[i], MODEL_LARGE_POSITIONS * dim, i ? sqrt(window) : 1,
                   r); /* what one of so many positions adds to o */
    }
}

step_model step_model_new(arena *a, const plan *p, uint64_t seed)
{
    random_source r = { seed };
    step_model m = { .d = p->decoder,
                     .plan = p,
                     .tensors = arena_alloc(a, p->tensor_count * sizeof *m.tensors),
                     .kv_format = kv_formats[p->decoder->kv_type] };
    m.row_bytes = format_bytes(m.kv_format, (uint64_t)m.d->head_dim);
    for (size_t i = 0; i < p->tensor_count; i++)
        m.tensors[i] = make_tensor(a, m.d, &p->tensors[i], &r);
    make_cache(a, &m, &r);
    return m;
}

const void *step_model_row(const step_model *m, const ref_cached *which)
{
    uint64_t row = (uint64_t)(which->kv_head * m->d->max_seq_len) + which->position;
    bool first = which->position < MODEL_LARGE_POSITIONS;
    const char *rows = first ? m->first[which->values] : m->rows[which->values];
    return rows + row % (first ? MODEL_LARGE_POSITIONS : MODEL_CACHE_ROWS) * m->row_bytes;
}

ref_tensor step_model_weights(void *user, decoder_tensor t, int64_t layer)
{
    const step_model *m = user;
    for (size_t i = 0; i < m->plan->tensor_count; i++)
        if (m->plan->tensors[i].tensor == t &&
            (!tensor_infos[t].by_layer || m->plan->tensors[i].layer == layer))
            return (ref_tensor){ m->tensors[i].bytes, m->tensors[i].rows };
    return (ref_tensor){ NULL, 1 };
}

void step_model_earlier(void *user, const ref_cached *which, float *row)
{
    const step_model *m = user;
    ref_decode(m->kv_format, step_model_row(m, which), (uint64_t)m->d->head_dim, row);
}
