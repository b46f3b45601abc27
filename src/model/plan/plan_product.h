/* Launches that the parts of a layer share: products with norms, biases and residuals, and RoPE. */
#pragma once

#include "model/plan/planner.h"

/* Returns true if int8 tensor cores multiply a tensor by the step's rows: with every m of a decoder
 * that has several, since a row has the same bits with each. */
bool plan_uses_bytes(const planner *p, decoder_tensor t);

/* Returns a product's family by what rounds: 8 bits of x, on int8 tensor cores or not; nothing; f16 of
 * x and W. */
family_id plan_product_family(const planner *p, decoder_tensor t, family_id of_bytes,
                              family_id rounding, family_id exact, family_id of_prompts);

/* Returns rows of a buffer for products with their norm. A LayerNorm gets a launch of its own,
 * unless its result exists already. TENSOR_COUNT, or a norm that the decoder lacks: no norm. */
plan_rows plan_normed(planner *p, buffer_id x, decoder_tensor norm, uint64_t first, int64_t count,
                      int64_t columns);

/* Returns the rows that the feed-forward reads, with their norm. */
plan_rows plan_feed_rows(planner *p);

/* Binds x of a product and its norm. A family that reads converted rows gets a preceding launch
 * that makes them. The launch is omitted if the buffer has these rows of the layer already. */
void plan_bind_rows(planner *p, launch_draft *l, const plan_rows *of);

/* A product of one matrix, with the matrix's bias if the decoder has it. */
typedef struct plan_product {
    decoder_tensor w;
    int64_t first, rows;      /* rows of w; rows = 0: all of them */
    buffer_id x, y, residual; /* BUFFERS = none; for y, the logits */
    decoder_tensor norm;      /* TENSOR_COUNT = none */
    double scale, softcap;
    bool activated; /* true = the decoder's activation of the product */
    bool times;     /* true = times the layer's per-layer embeddings */
} plan_product;
void plan_multiply(planner *p, const plan_product *of, int64_t rows, uint64_t first_row);

/* Adds the product of a matrix and norm(x), for all rows. */
void plan_multiply_normed(planner *p, buffer_id x, decoder_tensor norm, decoder_tensor w,
                          buffer_id y);

/* activation(W_gate x) * (W_up x) for the rows that the feed-forward reads, with biases if the
 * decoder has them, or without gates activation(W_up x). If the decoder has the tensor fused, gate
 * and up are its halves. TENSOR_COUNT = no such tensor. */
typedef struct plan_gates {
    decoder_tensor gate, up, fused;
    buffer_id y;
} plan_gates;
void plan_multiply_gates(planner *p, const plan_gates *of);

/* A product added to the hidden states; with a post-norm, by a further launch. */
typedef struct plan_branch {
    decoder_tensor w, post_norm; /* post_norm = TENSOR_COUNT: none */
    buffer_id x, product;
} plan_branch;
void plan_add_branch(planner *p, const plan_branch *of);

/* Adds the post-norm of a branch whose product is in its buffer. */
void plan_add_normed(planner *p, const plan_branch *of);

/* Returns the rows per tile of attention of runs in a layer; 0 if it has no such attention. */
int64_t plan_tile_rows(const planner *p, int64_t layer);

/* Returns the buffer that gets the hidden states after the next branch. */
buffer_id plan_next_stream(const planner *p);

/* Adds the products of two (v = TENSOR_COUNT) or three matrices and norm(h) to rows of y. */
void plan_multiply_matrices(planner *p, decoder_tensor q, decoder_tensor k, decoder_tensor v,
                            buffer_id y);

/* Sets RoPE's keys but the number of rotated values, and binds the tensor of its factors. */
void plan_set_rope(const planner *p, launch_draft *l, const rope_options *rope);

/* Returns true if latent attention computes q by separate products, on tensor cores. */
bool plan_separates_q(const planner *p);

/* Returns true if a layer of experts, on tensor cores, has separate products for the shared one. */
bool plan_separates_shared(const planner *p);

/* attn_output o + h -> middle */
extern const plan_branch plan_attention_output;

/* Adds the launches of a layer's part, each in a file of its own. */
void plan_attention(planner *p);
void plan_latent_attention(planner *p);
void plan_delta_net(planner *p);
void plan_short_conv(planner *p);
void plan_mamba(planner *p);
void plan_mamba2(planner *p);
void plan_experts(planner *p);
void plan_add_per_layer(planner *p);

/* Adds the launches that make per-layer embeddings, after the embedding. */
void plan_make_per_layer(planner *p);
