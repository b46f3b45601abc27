/* What the parts of a step share: the caches, and a call of ref_step_feed with its vectors, norms
 * and products.
 *
 * Values of all tokens of a call stand one token's behind another's, [count, size]. What a part of
 * a layer allocates goes with the layer.
 */
#ifndef PTXGEN_MODEL_REFERENCE_STEP_CALL_H
#define PTXGEN_MODEL_REFERENCE_STEP_CALL_H

#include "ref/matrix.h"
#include "model/reference/step_attention.h"

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

struct ref_step {
    arena *arena;
    const decoder *d;
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

/* Where a row of the cache is that was fed. */
double *step_fed_row(const ref_step *s, const ref_cached *which);

/* The states of a delta net's value heads, [value heads, S, S], and the inputs at a position. */
double *call_states(const call *c, size_t token);
double *call_inputs(const call *c, size_t token, uint64_t position);

/* Place for [count, size] values. */
double *call_vectors(const call *c, int64_t size);

/* A plane of a tensor as a matrix; a row of a tensor that is there; all of one that has one row.
 * NULL where there is no such tensor. */
ref_matrix call_matrix(const call *c, decoder_tensor t, uint64_t plane);
const double *call_row(const call *c, decoder_tensor t, uint64_t row);
const double *call_vector(const call *c, decoder_tensor t);

/* 1 / sqrt(mean(x^2) + epsilon); and that times the gains, in place. */
double call_norm_factor(const call *c, const double *x, int64_t size);
void call_norm(const call *c, double *x, int64_t size, const double *gains);

/* Vectors ahead of a product: with a norm the factor stands apart, since it is applied behind. */
typedef struct operand {
    const double *x;       /* [count, size] */
    const double *factors; /* [count]; NULL: 1 */
    size_t count;
    int64_t size;
} operand;

/* h [count, size] ahead of a product behind a norm, where there is one of that name. */
operand call_normed(const call *c, const double *h, int64_t size, decoder_tensor norm);

/* y[v] = factor[v] W x[v] + b, in rows of stride values, with a plane of W and the row of its
 * number of b; TENSOR_COUNT is no bias. */
typedef struct product {
    decoder_tensor w, bias;
    uint64_t plane;
} product;
void call_multiply(const call *c, const operand *o, const product *p, double *y, size_t stride);

/* h += scale x, of a normed x where the layer has such a norm. */
void call_add_branch(const call *c, double *h, const double *x, decoder_tensor norm);

/* A number that is 1 where it is not told. */
double step_or_1(double scale);

/* cos and sin of the angles of the layer's RoPE at a token's position. */
const rope_options *call_rope(const call *c);
const double *call_turns(const call *c, size_t token);

/* o of a token's queries that share a head of K and V, of the layer's positions; what is not said
 * of the query is the decoder's. */
void call_attend(const call *c, size_t token, int64_t kv_head, ref_query *query, double *o);

/* Keeps how a token's experts were chosen. */
void step_note_choice(const call *c, size_t token, const ref_choice *choice);

/* The parts of a layer: each adds its branch to h. */
void call_add_attention(const call *c, double *h);
void call_add_latent_attention(const call *c, double *h);
void call_add_delta_net(const call *c, double *h);
void call_add_ffn(const call *c, double *h);
void call_add_experts(const call *c, double *h);

#endif
