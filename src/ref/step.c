#include "ref/step.h"

#include <math.h>
#include <string.h>

#include "ref/matrix.h"
#include "ref/quant.h"
#include "ref/step_attention.h"

enum { K, V };

typedef struct sequence {
    uint64_t begin, length; /* positions from begin on have rows here, those before are earlier */
    uint64_t room;          /* positions that the rows have place for */
    ref_earlier *earlier;
    void *user;
    double **rows; /* [layers, 2] of [room, num_kv_heads, head_dim] */
} sequence;

struct ref_step {
    arena *arena;
    const decoder *d;
    ref_weights *weights;
    void *user;
    sequence *sequences;
};

/* A call of feed: its tokens, and what of it is one layer's. */
typedef struct call {
    ref_step *s;
    arena *a; /* goes with the call */
    const ref_row *rows;
    size_t count;
    uint64_t *positions; /* [count] */
    int64_t layer;
} call;

ref_step *ref_step_new(arena *a, const decoder *d, ref_weights *weights, void *user)
{
    ref_step *s = arena_alloc(a, sizeof *s);
    *s = (ref_step){ .arena = a, .d = d, .weights = weights, .user = user };
    s->sequences = arena_zalloc(a, (size_t)d->sequences * sizeof *s->sequences);
    for (int64_t i = 0; i < d->sequences; i++)
        s->sequences[i].rows = arena_zalloc(a, (size_t)d->layers * 2 * sizeof(double *));
    return s;
}

void ref_step_start(ref_step *s, int64_t sequence_number, uint64_t positions, ref_earlier *earlier,
                    void *user)
{
    sequence *q = &s->sequences[sequence_number];
    q->begin = q->length = positions;
    q->earlier = earlier;
    q->user = user;
}

static size_t kv_size(const decoder *d)
{
    return (size_t)(d->num_kv_heads * d->head_dim);
}

static void make_room(ref_step *s, sequence *q)
{
    uint64_t room = q->room ? 2 * q->room : 16;
    size_t size = kv_size(s->d) * sizeof(double);
    for (int64_t i = 0; i < 2 * s->d->layers; i++) {
        double *rows = arena_alloc(s->arena, room * size);
        if (q->room)
            memcpy(rows, q->rows[i], q->room * size);
        q->rows[i] = rows;
    }
    q->room = room;
}

/* A head's row that was fed. */
static double *fed_row(const ref_step *s, const ref_cached *which)
{
    const sequence *q = &s->sequences[which->sequence];
    return q->rows[2 * which->layer + (which->values ? V : K)] +
           (which->position - q->begin) * kv_size(s->d) +
           (uint64_t)(which->kv_head * s->d->head_dim);
}

void ref_step_cached(const ref_step *s, const ref_cached *which, double *row)
{
    const sequence *q = &s->sequences[which->sequence];
    float earlier[DECODER_MOST_HEAD_DIM];
    if (which->position >= q->begin) {
        memcpy(row, fed_row(s, which), (size_t)s->d->head_dim * sizeof *row);
        return;
    }
    q->earlier(q->user, which, earlier);
    for (int64_t i = 0; i < s->d->head_dim; i++)
        row[i] = (double)earlier[i];
}

static double *vectors(const call *c, int64_t size)
{
    return arena_alloc(c->a, c->count * (size_t)size * sizeof(double));
}

static double or_1(double scale)
{
    return scale != 0 ? scale : 1;
}

static ref_matrix matrix_of(const call *c, decoder_tensor t)
{
    const decoder *d = c->s->d;
    ref_tensor have = c->s->weights(c->s->user, t, c->layer);
    return (ref_matrix){ decoder_format(d, t, c->layer), have.blocks, decoder_rows(d, t),
                         decoder_columns(d, t), have.rows };
}

/* The values of a tensor that is a vector; NULL where there is none. */
static const double *vector_of(const call *c, decoder_tensor t)
{
    if (!decoder_has(c->s->d, t, c->layer))
        return NULL;
    ref_matrix one_row = matrix_of(c, t);
    double *values = arena_alloc(c->a, one_row.columns * sizeof *values);
    ref_matrix_row(&one_row, 0, values);
    return values;
}

static double norm_factor(const decoder *d, const double *x, int64_t size)
{
    double squares = 0;
    for (int64_t i = 0; i < size; i++)
        squares += x[i] * x[i];
    return 1 / sqrt(squares / (double)size + d->epsilon);
}

/* Vectors ahead of a product: with a norm the factor stands apart, since it is applied behind. */
typedef struct operand {
    const double *x;
    const double *factors; /* [count]; NULL: 1 */
    int64_t size;
} operand;

static operand normed(const call *c, const double *h, decoder_tensor t)
{
    int64_t size = c->s->d->hidden;
    double *x = vectors(c, size), *factors = vectors(c, 1);
    const double *gains = vector_of(c, t);
    if (!gains)
        return (operand){ h, NULL, size };
    for (size_t v = 0; v < c->count; v++) {
        factors[v] = norm_factor(c->s->d, h + v * (size_t)size, size);
        for (int64_t i = 0; i < size; i++)
            x[(int64_t)v * size + i] = h[(int64_t)v * size + i] * gains[i];
    }
    return (operand){ x, factors, size };
}

/* What the kernels of integer formats multiply in place of the vectors. */
static const double *rounded(const call *c, const operand *o)
{
    double *x = vectors(c, o->size), q[Q8_1_VALUES];
    for (size_t i = 0; i < c->count * (size_t)o->size; i += Q8_1_VALUES) {
        double d = ref_round_to_8_bits(o->x + i, q);
        for (size_t j = 0; j < Q8_1_VALUES; j++)
            x[i + j] = d * q[j];
    }
    return x;
}

/* y[v] = factor[v] W x[v] + b, in rows of stride values. */
static void multiply(const call *c, const operand *o, decoder_tensor t, decoder_tensor bias,
                     double *y, size_t stride)
{
    const ref_matrix w = matrix_of(c, t);
    bool rounds = c->s->d->precision == PRECISION_Q8 && formats[w.format].block_values > 1;
    const double *b = bias != TENSOR_COUNT ? vector_of(c, bias) : NULL;
    ref_matrix_times(&w, rounds ? rounded(c, o) : o->x, c->count, y, stride,
                     arena_alloc(c->a, w.columns * sizeof(double)));
    for (size_t v = 0; v < c->count; v++)
        for (uint64_t i = 0; i < w.rows; i++)
            y[v * stride + i] =
                y[v * stride + i] * (o->factors ? o->factors[v] : 1) + (b ? b[i] : 0);
}

/* q, k and v of all tokens, each token's in one row of this many values. */
static int64_t qkv_size(const decoder *d)
{
    return (d->num_heads + 2 * d->num_kv_heads) * d->head_dim;
}

static double *multiply_qkv(const call *c, const double *h)
{
    const decoder *d = c->s->d;
    int64_t size = qkv_size(d), k = d->num_heads * d->head_dim, v = k + (int64_t)kv_size(d);
    operand o = normed(c, h, TENSOR_ATTN_NORM);
    double *qkv = vectors(c, size);
    if (d->has[TENSOR_ATTN_QKV]) {
        multiply(c, &o, TENSOR_ATTN_QKV, TENSOR_ATTN_QKV_BIAS, qkv, (size_t)size);
        return qkv;
    }
    multiply(c, &o, TENSOR_ATTN_Q, TENSOR_ATTN_Q_BIAS, qkv, (size_t)size);
    multiply(c, &o, TENSOR_ATTN_K, TENSOR_ATTN_K_BIAS, qkv + k, (size_t)size);
    multiply(c, &o, TENSOR_ATTN_V, TENSOR_ATTN_V_BIAS, qkv + v, (size_t)size);
    return qkv;
}

static const rope_options *rope_of(const call *c)
{
    return &c->s->d->rope[c->s->d->windowed[c->layer] != 0];
}

static const double *factors_of(const call *c)
{
    const uint8_t *has = c->s->d->has;
    if (!rope_of(c)->factors)
        return NULL;
    return vector_of(c, has[TENSOR_ROPE_LONG]    ? TENSOR_ROPE_LONG
                        : has[TENSOR_ROPE_SHORT] ? TENSOR_ROPE_SHORT
                                                 : TENSOR_ROPE_FREQS);
}

/* Heads one behind another, normed where there are gains, and turned. */
static void turn_heads(const call *c, double *heads, int64_t count, const double *gains,
                       const double *turns)
{
    int64_t dim = c->s->d->head_dim;
    for (double *head = heads; head < heads + count * dim; head += dim) {
        double factor = gains ? norm_factor(c->s->d, head, dim) : 1;
        for (int64_t i = 0; gains && i < dim; i++)
            head[i] *= factor * gains[i];
        ref_rotate(rope_of(c), turns, head);
    }
}

/* The cache's rows of a token, from its k and v. */
static void write_cache(const call *c, size_t token, const double *k, const double *v)
{
    const decoder *d = c->s->d;
    for (int64_t i = 0; i < 2 * d->num_kv_heads; i++) {
        bool values = i >= d->num_kv_heads;
        int64_t head = values ? i - d->num_kv_heads : i;
        double *row = fed_row(c->s, &(ref_cached){ c->rows[token].sequence, c->layer, head,
                                                   c->positions[token], values });
        memcpy(row, (values ? v : k) + head * d->head_dim, (size_t)d->head_dim * sizeof *row);
        ref_cache_round(d->kv_type, row, d->head_dim);
    }
}

static void turn_and_write(const call *c, double *qkv)
{
    const decoder *d = c->s->d;
    const rope_options *o = rope_of(c);
    const double *factors = factors_of(c), *q_gains = vector_of(c, TENSOR_ATTN_Q_NORM),
                 *k_gains = vector_of(c, TENSOR_ATTN_K_NORM);
    double *turns = arena_alloc(c->a, (size_t)d->head_dim * sizeof *turns);
    int64_t q_size = d->num_heads * d->head_dim;
    for (size_t token = 0; token < c->count; token++) {
        double *q = qkv + (int64_t)token * qkv_size(d), *k = q + q_size;
        double temperature = ref_rope_temperature(o, c->positions[token]);
        ref_turns(o, factors, c->positions[token], turns);
        turn_heads(c, q, d->num_heads, q_gains, turns);
        turn_heads(c, k, d->num_kv_heads, k_gains, turns);
        for (int64_t i = 0; i < q_size; i++)
            q[i] *= temperature;
        write_cache(c, token, k, k + kv_size(d));
    }
}

typedef struct head_reader {
    const ref_step *s;
    ref_cached row;
} head_reader;

static void read_row(const void *user, bool values, uint64_t position, double *row)
{
    const head_reader *r = user;
    ref_cached which = r->row;
    which.values = values;
    which.position = position;
    ref_step_cached(r->s, &which, row);
}

/* The o of a token, [num_heads, head_dim]. */
static void attend(const call *c, size_t token, const double *q, double *o)
{
    const decoder *d = c->s->d;
    int64_t shared = d->num_heads / d->num_kv_heads;
    uint64_t end = c->positions[token] + 1, window = (uint64_t)d->window;
    ref_query query = {
        .heads = shared,
        .head_dim = d->head_dim,
        .scale = d->attention_scale != 0 ? d->attention_scale : 1 / sqrt((double)d->head_dim),
        .softcap = d->attention_softcap,
        .begin = d->windowed[c->layer] && window && window < end ? end - window : 0,
        .end = end,
    };
    size_t room = (size_t)shared * (query.end - query.begin) + (size_t)d->head_dim;
    double *scores = arena_alloc(c->a, room * sizeof *scores);
    for (int64_t head = 0; head < d->num_kv_heads; head++) {
        head_reader reader = { c->s, { c->rows[token].sequence, c->layer, head, 0, false } };
        query.q = q + head * shared * d->head_dim;
        ref_attend(&query, read_row, &reader, o + head * shared * d->head_dim, scores);
    }
}

/* h += scale x, of a normed x where the layer has such a norm. */
static void add_branch(const call *c, double *h, const double *x, decoder_tensor norm)
{
    const decoder *d = c->s->d;
    const double *gains = vector_of(c, norm);
    double scale = or_1(d->residual_scale);
    for (size_t v = 0; v < c->count; v++, h += d->hidden, x += d->hidden) {
        double factor = gains ? norm_factor(d, x, d->hidden) : 1;
        for (int64_t i = 0; i < d->hidden; i++)
            h[i] += scale * (gains ? x[i] * factor * gains[i] : x[i]);
    }
}

static void add_attention(const call *c, double *h)
{
    const decoder *d = c->s->d;
    int64_t size = d->num_heads * d->head_dim;
    double *o = vectors(c, size), *sum = vectors(c, d->hidden), *qkv = multiply_qkv(c, h);
    turn_and_write(c, qkv);
    for (size_t token = 0; token < c->count; token++)
        attend(c, token, qkv + (int64_t)token * qkv_size(d), o + (int64_t)token * size);
    multiply(c, &(operand){ o, NULL, size }, TENSOR_ATTN_OUTPUT, TENSOR_ATTN_OUTPUT_BIAS, sum,
             (size_t)d->hidden);
    add_branch(c, h, sum, TENSOR_POST_ATTENTION_NORM);
}

/* Gate and up of all tokens, each token's gate ahead of its up. */
static double *multiply_gate_up(const call *c, const double *h)
{
    const decoder *d = c->s->d;
    operand o = normed(c, h, TENSOR_FFN_NORM);
    double *gate_up = vectors(c, 2 * d->ff);
    size_t stride = 2 * (size_t)d->ff;
    if (d->has[TENSOR_FFN_GATE_UP]) {
        multiply(c, &o, TENSOR_FFN_GATE_UP, TENSOR_COUNT, gate_up, stride);
        return gate_up;
    }
    multiply(c, &o, TENSOR_FFN_GATE, TENSOR_FFN_GATE_BIAS, gate_up, stride);
    multiply(c, &o, TENSOR_FFN_UP, TENSOR_FFN_UP_BIAS, gate_up + d->ff, stride);
    return gate_up;
}

static void add_ffn(const call *c, double *h)
{
    const decoder *d = c->s->d;
    double *f = vectors(c, d->ff), *sum = vectors(c, d->hidden), *gate_up = multiply_gate_up(c, h);
    for (size_t v = 0; v < c->count; v++) {
        const double *gate = gate_up + (int64_t)v * 2 * d->ff, *up = gate + d->ff;
        for (int64_t i = 0; i < d->ff; i++)
            f[(int64_t)v * d->ff + i] =
                ref_activation(d->activation, gate[i]) * ref_gate_factor(d->activation, up[i]);
    }
    multiply(c, &(operand){ f, NULL, d->ff }, TENSOR_FFN_DOWN, TENSOR_FFN_DOWN_BIAS, sum,
             (size_t)d->hidden);
    add_branch(c, h, sum, TENSOR_POST_FFW_NORM);
}

static double *embed(const call *c)
{
    const decoder *d = c->s->d;
    const ref_matrix w = matrix_of(c, TENSOR_TOKEN_EMBD);
    double *h = vectors(c, d->hidden), scale = or_1(d->embedding_scale);
    for (size_t v = 0; v < c->count; v++) {
        double *row = h + (int64_t)v * d->hidden;
        ref_matrix_row(&w, c->rows[v].token % w.rows, row);
        for (int64_t i = 0; i < d->hidden; i++)
            row[i] = c->rows[v].token < w.rows ? scale * row[i] : NAN;
    }
    return h;
}

static void multiply_logits(const call *c, const double *h, double *logits)
{
    const decoder *d = c->s->d;
    operand o = normed(c, h, TENSOR_OUTPUT_NORM);
    double scale = or_1(d->logit_scale), cap = d->final_softcap;
    multiply(c, &o, d->has[TENSOR_OUTPUT] ? TENSOR_OUTPUT : TENSOR_TOKEN_EMBD, TENSOR_OUTPUT_BIAS,
             logits, (size_t)d->vocab);
    for (size_t i = 0; i < c->count * (size_t)d->vocab; i++) {
        logits[i] *= scale;
        logits[i] = cap > 0 ? cap * tanh(logits[i] / cap) : logits[i];
    }
}

/* The tokens' states into [count, layers + 1, hidden], behind a number of layers. */
static void keep(const call *c, const double *h, int64_t layers, double *hidden)
{
    const decoder *d = c->s->d;
    for (size_t v = 0; v < c->count && hidden; v++)
        memcpy(hidden + ((int64_t)v * (d->layers + 1) + layers) * d->hidden,
               h + (int64_t)v * d->hidden, (size_t)d->hidden * sizeof *h);
}

static void take_positions(call *c)
{
    for (size_t i = 0; i < c->count; i++) {
        sequence *q = &c->s->sequences[c->rows[i].sequence];
        c->positions[i] = q->length++;
        if (q->length - q->begin > q->room)
            make_room(c->s, q);
    }
}

void ref_step_feed(ref_step *s, const ref_row *rows, size_t count, double *logits, double *hidden)
{
    arena *a = arena_new_in(s->arena), *of_layer = arena_new_in(a);
    call c = { s, a, rows, count, arena_alloc(a, count * sizeof(uint64_t)), 0 };
    take_positions(&c);
    double *h = embed(&c);
    keep(&c, h, 0, hidden);
    for (c.a = of_layer; c.layer < s->d->layers; c.layer++) {
        arena_reset(of_layer);
        add_attention(&c, h);
        add_ffn(&c, h);
        keep(&c, h, c.layer + 1, hidden);
    }
    c.layer = 0; /* what the model has once counts as that of the first */
    if (logits)
        multiply_logits(&c, h, logits);
    arena_free(a);
}
