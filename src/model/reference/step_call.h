/* What the parts of a step share: the caches, and a call of ref_step_feed with its vectors, norms
 * and products.
 *
 * Values of all tokens of a call stand one token's behind another's, [count, size]. What a part of
 * a layer allocates goes with the layer.
 */
#ifndef PTXGEN_MODEL_REFERENCE_STEP_CALL_H
#define PTXGEN_MODEL_REFERENCE_STEP_CALL_H

#include "ref/quant.h"
#include "model/reference/step.h"

/* What there is of a sequence. A delta net's layer has the states of its value heads and its last
 * DELTA_RING inputs, at position % DELTA_RING; others have rows. */
typedef struct sequence {
    uint64_t begin, length; /* positions from begin on have rows here, those before are earlier */
    uint64_t before;        /* the length ahead of the last call */
    uint64_t room;          /* positions that the rows have place for */
    ref_earlier *earlier;
    void *user;
    double **rows;            /* [layers, 2] of [room, heads, values of a row] */
    double **states, **saved; /* [layers] of values, and what they were ahead of the last call */
} sequence;

/* Heads that have rows of their own, and values of a row; of a delta net the channels of an input,
 * and the values of all its states, of one, and with its inputs, which follow. */
typedef struct cache_sizes {
    uint64_t heads, row, channels, states, state, layer;
} cache_sizes;

struct ref_step {
    arena *arena;
    const decoder *d;
    cache_sizes sizes;
    ref_weights *weights;
    void *user;
    sequence *sequences;
    double *scores, *gaps; /* of the last call: [layers, scored, experts], [layers, scored] */
    size_t scored;
    int64_t m; /* rows of the step that tokens are fed as */
    bool attends_by_halves;
};

/* A call of feed: its tokens, and what of it is one layer's. */
typedef struct call {
    ref_step *s;
    arena *a; /* goes with the layer */
    const ref_row *rows;
    size_t count;
    uint64_t *positions; /* [count] */
    int64_t layer;
} call;

/* Takes the tokens' positions, with room in the caches. */
void call_take_positions(call *c);

/* Returns the row of the cache of a token that is fed; its states of a delta net's value heads,
 * [value heads, S, S]; and the inputs of its sequence at a position. */
double *call_cache_row(const call *c, size_t token, int64_t kv_head, bool values);
double *call_states(const call *c, size_t token);
double *call_inputs(const call *c, size_t token, uint64_t position);

/* Returns room for [count, size] values. */
double *call_vectors(const call *c, int64_t size);

/* Returns a plane of a tensor as a matrix. */
ref_matrix call_matrix(const call *c, decoder_tensor t, uint64_t plane);

/* Returns a row of a tensor; NULL if the layer has no such tensor. */
const double *call_row(const call *c, decoder_tensor t, uint64_t row);

/* Returns 1 / sqrt(mean(x^2) + epsilon). */
double call_norm_factor(const call *c, const double *x, int64_t size);

/* Multiplies x by that and by gains, in place. */
void call_norm(const call *c, double *x, int64_t size, const double *gains);

/* Vectors ahead of a product: with a norm the factor stands apart, since it is applied behind. */
typedef struct operand {
    const double *x;       /* [count, size] */
    const double *factors; /* [count]; NULL: 1 */
    size_t count;
    int64_t size;
} operand;

/* Returns h [count, size] ahead of a product behind a norm, if there is one of that name. */
operand call_normed(const call *c, const double *h, int64_t size, decoder_tensor norm);

/* Computes y[v] = factor[v] W x[v] + b, in rows of stride values, with a plane of W and the row of
 * its bias that has this number; the two biases of FFN_GATE_UP are left out. */
void call_multiply(const call *c, const operand *o, decoder_tensor w, uint64_t plane, double *y,
                   size_t stride);

/* Returns y of a tensor of one plane, one vector behind another. */
double *call_product(const call *c, const operand *o, decoder_tensor w);

/* Adds to h: scale x, of a normed x where the layer has such a norm. */
void call_add_branch(const call *c, double *h, const double *x, decoder_tensor norm);

/* Adds W x of attention's output, x [count, size]. */
void call_add_output(const call *c, double *h, const double *x, int64_t size, decoder_tensor w);

/* Returns a number that is 1 where it is not told. */
double step_or_1(double scale);
double ref_sigmoid(double x);

/* Rounds a row of a head as a cache of a type does. */
void ref_cache_round(int64_t kv_type, double *row, int64_t head_dim);

/* Computes cos and sin of a position's angles, [dims / 2, 2], times the magnitude; factors may be
 * NULL. */
void ref_turns(const rope_options *o, const double *factors, uint64_t position, double *turns);

/* The layer's RoPE, and its cos and sin at a token's position. */
const rope_options *call_rope(const call *c);
const double *call_turns(const call *c, size_t token);

/* Turns a head's values. */
void call_rotate(const call *c, const double *turns, double *head);

/* Queries over positions [begin, end) of what a head's row is read by. */
typedef void ref_read_row(const void *user, bool values, uint64_t position, double *row);
typedef struct ref_query {
    const double *q;     /* [heads, head_dim]: those that share a head of K and V */
    const double *sinks; /* [heads], one more logit of each, without a value; NULL: none */
    int64_t heads, head_dim;
    int64_t value_dim; /* values of a row of V that count */
    double scale, softcap;
    uint64_t begin, end;
    bool halves; /* factors are those of f16 that are nearest, see ref_round_to_half */
} ref_query;

/* Computes o [heads, value_dim]; room has place for heads (end - begin) + head_dim values. */
void ref_attend(const ref_query *query, ref_read_row *read, const void *user, double *o,
                double *room);

/* The same over the layer's positions of a token; the rest of the query is the decoder's. */
void call_attend(const call *c, size_t token, int64_t kv_head, ref_query *query, double *o);

/* The parts of a layer: each adds its branch to h. */
void call_add_attention(const call *c, double *h);
void call_add_latent_attention(const call *c, double *h);
void call_add_delta_net(const call *c, double *h);
void call_add_ffn(const call *c, double *h);
void call_add_experts(const call *c, double *h);

#endif
