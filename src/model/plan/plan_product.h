/* What the launches of a layer have in common: products with what stands around them, caches, RoPE.
 */
#ifndef PTXGEN_MODEL_PLAN_PLAN_PRODUCT_H
#define PTXGEN_MODEL_PLAN_PLAN_PRODUCT_H

#include "model/plan/planner.h"

/* Whether kernels may round x to 8 bits: the name of one that does, or of one that does not. */
const char *plan_kernel_name(const planner *p, const char *rounding, const char *exact);

/* The same of a product with a tensor, which in steps of prompts may be one of f16. */
const char *plan_product_name(const planner *p, decoder_tensor t, const char *rounding,
                              const char *exact, const char *of_prompts);

/* Whether a product with a tensor is of x and W rounded to f16. */
bool plan_is_of_halves(const planner *p, decoder_tensor t);

/* Binds x of a product, and what a norm of it needs: by the kernel itself, or where it is of halves
 * by a launch ahead of it, if no other product of the layer has had the same one. */
void plan_bind_rows(planner *p, instance *in, bindings *b, const plan_rows *of);

/* Has a product that is complete take its x in 8 bits from a launch ahead of it, where the model
 * has that worth it. */
void plan_prepare_rows(planner *p, instance *in, bindings *b, const plan_rows *of);

/* activation(W_gate x) * (W_up x) of x = norm(middle), with biases where there are some; gate and
 * up may be one tensor's halves. A tensor that there never is: TENSOR_COUNT. */
typedef struct plan_gates {
    decoder_tensor gate, up, fused, gate_bias, up_bias;
    buffer_id y;
    const char *said, *said_fused;
} plan_gates;
void plan_multiply_gates(planner *p, const plan_gates *of);

/* An RMS norm of x ahead of a product, with the gains of a tensor. */
void plan_norm(const planner *p, instance *in, bindings *b, decoder_tensor gains);

/* A product of one matrix. */
typedef struct plan_product {
    decoder_tensor w, bias;   /* bias: TENSOR_COUNT: none */
    buffer_id x, y, residual; /* BUFFERS: none; y: the logits */
    decoder_tensor norm;      /* TENSOR_COUNT: none */
    double scale, softcap;
    const char *said;
} plan_product;

/* Of some rows of x, from one on. */
void plan_multiply(planner *p, const plan_product *of, int64_t rows, uint64_t first_row);

/* A product that is added to the hidden states, scaled: with a norm behind it in a launch of its
 * own, by way of a buffer. */
typedef struct plan_branch {
    decoder_tensor w, bias, post_norm;
    buffer_id x, product, residual, sum;
    const char *said;                   /* where it adds itself, */
    const char *said_alone, *said_norm; /* and of the two launches */
} plan_branch;
void plan_add_branch(planner *p, const plan_branch *of);

/* Whether a branch has its norm here; and the launch of that, behind one that made the product. */
bool plan_has_post_norm(const planner *p, const plan_branch *of);
void plan_add_normed(planner *p, const plan_branch *of);

/* Whether latent attention's q comes by products of its own, as in steps of prompts on tensor
 * cores. */
bool plan_is_apart(const planner *p);

/* attn_output o + h -> middle. */
extern const plan_branch plan_attention_output;

/* Up to three matrices of norm(h), whose products stand one behind the other in a row of y; w[2]
 * may be TENSOR_COUNT. */
typedef struct plan_matrices {
    decoder_tensor w[3], bias[3];
    buffer_id y;
    const char *said;
} plan_matrices;
void plan_multiply_matrices(planner *p, const plan_matrices *of);

/* The addresses of the rows' caches of the layer, by the names of parameters; second may be NULL.
 */
void plan_bind_caches(const planner *p, bindings *b, const char *first, const char *second);

/* Angles, without how many values turn. */
void plan_set_rope(instance *in, const rope_options *rope);

/* The tensor of factors of a layer's angles, where it has one. */
void plan_bind_factors(const planner *p, bindings *b, const rope_options *rope);

/* The parts of a layer, each of which is a file. */
void plan_attention(planner *p);
void plan_latent_attention(planner *p);
void plan_delta_net(planner *p);
void plan_experts(planner *p);

#endif
