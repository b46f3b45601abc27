/* Shared by the parts of a step: caches, and a call of ref_step_feed with its vectors, norms and
 * products. Vectors of all tokens of a call are [count, size]. Allocations of a layer's part are
 * freed after the layer. */
#pragma once

#include "ref/quant.h"
#include "model/reference/step.h"

/* The caches of a sequence. A layer with a recurrence has the states of its heads and its last
 * DELTA_RING inputs, at position % DELTA_RING. A layer with attention and a cache has rows. */
typedef struct sequence {
    uint64_t begin, length; /* first position with rows here; positions so far */
    uint64_t before;        /* length before the last call */
    uint64_t room;          /* capacity of rows, in positions */
    ref_earlier *earlier;
    void *user;
    double **rows;            /* [layers, 2] of [room, heads, row] */
    double **states, **saved; /* [layers] of recurrent values: now, and before the last call */
} sequence;

/* Sizes of a recurrence: channels, values of all states, of one, and of all with inputs. */
typedef struct recurrent_sizes {
    uint64_t channels, states, state, all;
} recurrent_sizes;

struct ref_step {
    arena *arena;
    const decoder *d;
    recurrent_sizes sizes;
    ref_weights *weights;
    void *user;
    sequence *sequences;
    double *scores, *gaps; /* of the last call: [layers, scored, experts] and [layers, scored] */
    size_t scored;
    int64_t m; /* rows of the step */
    bool attends_in_f16;
};

/* A call of ref_step_feed: its tokens, and the current layer. */
typedef struct call {
    ref_step *s;
    arena *a; /* freed after the layer */
    const ref_row *rows;
    size_t count;
    uint64_t *positions; /* [count] */
    int64_t layer;
    const double *per_layer; /* [count, layers, per_layer]; NULL without per-layer embeddings */
} call;

/* Assigns positions to the tokens and enlarges the caches for them. */
void call_assign_positions(call *c);

/* Returns the address of a fed token's cache row, in the layer's own cache. */
double *call_cache_row(const call *c, size_t token, int64_t kv_head, bool values);

/* Returns the address of its sequence's states by head, or inputs at a position. */
double *call_states(const call *c, size_t token);
double *call_inputs(const call *c, size_t token, uint64_t position);

/* Stores a token's inputs, and returns their convolution with the last ones, [channels]. The last
 * weight is for the token's own inputs; those before position 0 are zero. bias = TENSOR_COUNT:
 * none. */
double *call_convolve(const call *c, size_t token, const double *own, decoder_tensor weights,
                      decoder_tensor bias);

/* Returns x sigmoid(x), and log(1 + exp(x)). */
double step_silu(double x);
double step_softplus(double x);

/* Allocates [count, size] values. */
double *call_vectors(const call *c, int64_t size);

ref_matrix call_matrix(const call *c, decoder_tensor t, uint64_t plane);

/* Returns a row of a tensor, or NULL if the layer lacks the tensor. */
const double *call_row(const call *c, decoder_tensor t, uint64_t row);

/* Applies an RMS norm in place: x *= factor * gains. */
void call_norm(const call *c, double *x, int64_t size, const double *gains);

/* Operands of a product. A norm's factor is separate, because it multiplies the product. */
typedef struct operand {
    const double *x;       /* [count, size] */
    const double *factors; /* [count]; NULL = 1 */
    size_t count;
    int64_t size;
} operand;

/* Returns h [count, size] as operands, normed if the layer has the norm. */
operand call_normed(const call *c, const double *h, int64_t size, decoder_tensor norm);

/* Computes y[v] = factor[v] W x[v] + b in rows of stride values, for one plane of W and its row of
 * biases. FFN_GATE_UP's two biases are not added. */
void call_multiply(const call *c, const operand *o, decoder_tensor w, uint64_t plane, double *y,
                   size_t stride);

/* Returns the products with a tensor of one plane, [count, rows]. */
double *call_product(const call *c, const operand *o, decoder_tensor w);

/* Adds scale * x to h, with x normed if the layer has the norm. */
void call_add_normed(const call *c, double *h, const double *x, decoder_tensor norm, double scale);

/* Adds a branch to h likewise, times residual_scale. */
void call_add_branch(const call *c, double *h, const double *x, decoder_tensor norm);

/* Adds the branch W x to h, where x [count, size] is the output of attention or a recurrence. */
void call_add_output(const call *c, double *h, const double *x, int64_t size, decoder_tensor w);

/* Returns scale, or 1 if it is 0. */
double step_or_1(double scale);
double ref_sigmoid(double x);

/* Rounds a head's row as a cache of kv_type does. */
void ref_cache_round(int64_t kv_type, double *row, int64_t head_dim);

/* Computes cos and sin of RoPE's angles times the magnitude. factors may be NULL. */
void ref_angles(const rope_options *o, const double *factors, uint64_t position, double *turns);

rope_options call_rope(const call *c);

/* Returns its cos and sin at a token's position: see ref_angles. */
const double *call_angles(const call *c, size_t token);

void call_rotate(const call *c, const double *turns, double *head);

/* Queries of heads that share a KV head. The callback reads a row of K or V. */
typedef void ref_read_row(const void *user, bool values, uint64_t position, double *row);
typedef struct ref_query {
    const double *q;     /* [heads, head_dim] */
    const double *sinks; /* [heads], a further logit without a value each; NULL = none */
    int64_t heads, head_dim;
    int64_t value_dim; /* values of a row of V that are used */
    double scale, softcap;
    uint64_t begin, end;
    bool halves; /* round operands to f16 */
} ref_query;

/* Computes o [heads, value_dim]. room has space for heads (end - begin) + head_dim values. */
void ref_attend(const ref_query *query, ref_read_row *read, const void *user, double *o,
                double *room);

/* Computes attention of a token. Fills in scale, softcap, positions and halves. */
void call_attend(const call *c, size_t token, int64_t kv_head, ref_query *query, double *o);

/* Add a branch of the layer to h. from are the hidden states that the branch reads. */
void call_add_attention(const call *c, const double *from, double *h);
void call_add_latent_attention(const call *c, const double *from, double *h);
void call_add_delta_net(const call *c, const double *from, double *h);
void call_add_short_conv(const call *c, const double *from, double *h);
void call_add_mamba2(const call *c, const double *from, double *h);
void call_add_mamba(const call *c, const double *from, double *h);
void call_add_ffn(const call *c, const double *from, double *h);
void call_add_experts(const call *c, const double *from, double *h);
void call_add_both(const call *c, const double *from, double *h); /* dense beside experts */
void call_add_per_layer(const call *c, double *h);

/* Returns the tokens' per-layer embeddings, [count, layers, per_layer]. h are their embeddings. */
const double *call_per_layer(const call *c, const double *h);
