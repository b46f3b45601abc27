/* What the launches of a layer have in common: products with what stands around them, and RoPE. */
#ifndef PTXGEN_MODEL_PLAN_PLAN_PRODUCT_H
#define PTXGEN_MODEL_PLAN_PLAN_PRODUCT_H

#include "model/plan/planner.h"

/* Returns the family of a product with a tensor by what may be rounded: x to 8 bits, nothing, or in
 * steps of prompts x and W to f16. */
family_id plan_product_family(const planner *p, decoder_tensor t, family_id rounding,
                              family_id exact, family_id of_prompts);

/* Returns true if a product with a tensor is of x and W rounded to f16. */
bool plan_is_of_halves(const planner *p, decoder_tensor t);

/* Binds x of a product, and what a norm of it needs: by the kernel itself, or where it is of halves
 * by a launch ahead of it, if no other product of the layer has had the same one. */
void plan_bind_rows(planner *p, launch_draft *l, const plan_rows *of);

/* Sets an RMS norm of x ahead of a product, with the gains of a tensor. */
void plan_norm(const planner *p, launch_draft *l, decoder_tensor gains);

/* A product of one matrix; it has a bias where the decoder has one of the matrix. */
typedef struct plan_product {
    decoder_tensor w;
    buffer_id x, y, residual; /* BUFFERS: none; y: the logits */
    decoder_tensor norm;      /* TENSOR_COUNT: none */
    double scale, softcap;
    const char *said; /* NULL: by the names of all these */
} plan_product;
void plan_multiply(planner *p, const plan_product *of, int64_t rows, uint64_t first_row);

/* Multiplies a matrix by norm(x) of all rows. */
void plan_multiply_normed(planner *p, buffer_id x, decoder_tensor norm, decoder_tensor w,
                          buffer_id y);

/* activation(W_gate x) * (W_up x) of x = norm(middle), with biases where there are some; gate and
 * up may be one tensor's halves, fused. TENSOR_COUNT: there is no such tensor. */
typedef struct plan_gates {
    decoder_tensor gate, up, fused;
    buffer_id y;
    const char *said; /* NULL: by their names */
} plan_gates;
void plan_multiply_gates(planner *p, const plan_gates *of);

/* A product that is added to the hidden states, scaled: with a norm behind it in a launch of its
 * own, by way of a buffer. */
typedef struct plan_branch {
    decoder_tensor w, post_norm; /* post_norm: TENSOR_COUNT: none */
    buffer_id x, product, residual, sum;
} plan_branch;
void plan_add_branch(planner *p, const plan_branch *of);

/* Adds the norm of a branch, behind a launch that made the product. */
void plan_add_normed(planner *p, const plan_branch *of);

/* Multiplies two or (v: TENSOR_COUNT: none) three matrices by norm(h). Their products stand one
 * behind the other in a row of y. */
void plan_multiply_matrices(planner *p, decoder_tensor q, decoder_tensor k, decoder_tensor v,
                            buffer_id y);

/* Sets angles, without how many values turn, and binds the tensor of their factors, if any. */
void plan_set_rope(const planner *p, launch_draft *l, const rope_options *rope);

/* Returns true if latent attention's q comes by products of its own, as in steps of prompts on
 * tensor cores. */
bool plan_is_apart(const planner *p);

/* attn_output o + h -> middle. */
extern const plan_branch plan_attention_output;

/* The parts of a layer, a file each. */
void plan_attention(planner *p);
void plan_latent_attention(planner *p);
void plan_delta_net(planner *p);
void plan_experts(planner *p);

#endif
