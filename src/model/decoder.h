/* A model's step, as data: the architecture of a decoder with all that decides its logits. A
 * [decoder] section says it, the plan of a step is made from it, and the reference computes it.
 *
 * A layer, of hidden states h [m, hidden]:
 *
 *   q, k, v = W h' + b,  h' = norm(h) attn_norm     one fused matrix where ATTN_QKV is there
 *   q, k    = rope(head_norm(q), head_norm(k))      the norms where ATTN_Q_NORM is there
 *   o       = W (softmax(scale q k') v gate) + b    softmax with one more logit a head where there
 *                                                   are ATTN_SINKS; with attention_gate times
 *                                                   sigmoid(gate)
 *   h      += residual_scale o                      of norm(o) post_attention_norm where that is
 *   f       = W (act(W_gate h'') (W_up h'')) + b    h'' = norm(h) ffn_norm
 *   h      += residual_scale f                      of norm(f) post_ffw_norm where that is
 *
 * ahead of all h = embedding_scale token_embd[token], behind all
 * logits = cap(logit_scale (W_output norm(h) output_norm + b)).
 *
 * Latent attention (latent > 0): a row of the cache is [norm(c) attn_kv_a_norm, rope(r)] of
 * [c, r] = W_kv_a h'; q is W_q h' or, with a q_rank, W_q_b (norm(W_q_a h') attn_q_a_norm), of a
 * head [nope, rope]; its query is [W_k_b nope, rope(rope)], its o W_v_b softmax(scale query row')
 * c.
 *
 * A recurrent layer has a gated delta net in place of attention: see reference.h, ref_delta_net.
 *
 * Experts, of layers from dense_layers on: f is the sum over the experts_used chosen ones of
 * weight * (W_down (act(W_gate h'') (W_up h'')) + b), and of the shared expert, see ref_moe_route.
 */
#ifndef PTXGEN_MODEL_DECODER_H
#define PTXGEN_MODEL_DECODER_H

#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"
#include "kernel/problem.h"

enum { DECODER_MOST_LAYERS = 512 };
/* Rows of a step, and steps. More rows than a few are those of a prompt: matrices are multiplied by
 * tiles of them on tensor cores, which targets have from one on, see decoder_is_prompt. */
enum { DECODER_FEW_ROWS = 8, DECODER_MOST_STEPS = 16, DECODER_PROMPT_SM = 80 };
typedef enum decoder_tensor {
#define TENSOR(id, ...) TENSOR_##id,
#include "model/tensors.def"
#undef TENSOR
    TENSOR_COUNT
} decoder_tensor;

typedef enum tensor_kind {
    TENSOR_MATRIX,
    TENSOR_EXACT,
    TENSOR_NORM,
    TENSOR_BIAS,
    TENSOR_SCALE,
    TENSOR_FACTORS,
    TENSOR_CONV,
    TENSOR_DECAY
} tensor_kind;

typedef enum tensor_part {
    PART_MODEL,
    PART_LAYER,
    PART_ATTENTION,
    PART_DELTA,
    PART_DENSE,
    PART_EXPERTS
} tensor_part;

typedef struct tensor_info {
    const char *name; /* in a GGUF, behind "blk.N." where by_layer */
    bool by_layer;
    tensor_part part;
    tensor_kind kind;
    unsigned planes, rows, columns; /* SIZE_; rows of a plane */
} tensor_info;
extern const tensor_info tensor_infos[TENSOR_COUNT];

/* A key of the file that a decoder was made from, without "ARCHITECTURE.", and its value as text: a
 * number, numbers with commas, or a word. */
typedef struct decoder_metadata {
    const char *name, *text;
} decoder_metadata;

/* How a key of a GGUF file is compared with the decoder's value. */
typedef enum decoder_key_use {
    DECODER_KEY_REQUIRED, /* it has this value */
    DECODER_KEY_OPTIONAL, /* the same, or it is missing: the value is its default */
    DECODER_KEY_IGNORED   /* it may have any value */
} decoder_key_use;
typedef struct decoder_key {
    const char *name; /* "llama.rope.freq_base" */
    const char *text; /* the value */
    const char *same; /* another text that means the same; NULL: none */
    decoder_key_use use;
    const double *values; /* NULL: the value is a text */
    size_t count;         /* 1: of each value of an array too */
} decoder_key;

/* Keys and tensors that are compared with a file before its weights are used. */
typedef struct decoder_file {
    const decoder_key *keys;
    size_t key_count;
    const char *const *ignored_tensors;
    size_t ignored_tensor_count;
    const char *edited; /* a key of [decoder] that is not what metadata says; NULL: none */
} decoder_file;

enum { NEXT_NONE, NEXT_FETCHED };
typedef struct decoder {
    const char *architecture; /* as in general.architecture; says nothing that the rest does not */
    int64_t layers, hidden, ff, num_heads, num_kv_heads, head_dim, vocab;
    double epsilon;     /* of every RMS norm */
    int64_t activation; /* ACTIVATION_ of the gate */

    /* Attention. rope[0] is for layers over the whole context, rope[1] for windowed ones. */
    rope_options rope[2];
    int64_t window; /* positions, the query's own included; 0: no layer has one */
    uint8_t windowed[DECODER_MOST_LAYERS];               /* 1: the layer has it */
    int64_t window_cache;                                /* WINDOW_CACHE_: of windowed layers */
    double attention_scale;                              /* of q.k; 0: 1 / sqrt(head_dim) */
    double attention_softcap, final_softcap;             /* 0: none */
    double embedding_scale, residual_scale, logit_scale; /* 0: 1 */
    int64_t attention_gate; /* 1: of a head's 2 head_dim rows of attn_q the second half is a gate */

    /* Latent attention: the values of a latent, 0: there is none; what q goes through, 0: nothing;
     * of a head of o. Of a head's q the last rope dims turn. */
    int64_t latent, q_rank, value_dim;

    /* Gated delta nets: layers that are such, and their heads of k and q, and of v; which of the
     * latter a head of the former serves, and with that what the matrices of betas and alphas are:
     * of DELTA_GROUPED one, ssm_ba, of DELTA_TILED two. */
    uint8_t recurrent[DECODER_MOST_LAYERS];
    int64_t delta_key_heads, delta_value_heads, delta_head_dim;
    int64_t delta_layout; /* DELTA_ */

    /* Experts, 0: there are none: their number, how many a token has, rows of ffn_up of one, and of
     * the shared expert; layers ahead of those that have them; how they are chosen. */
    int64_t experts, experts_used, expert_ff, shared_ff, dense_layers;
    int64_t gating;                            /* GATING_ */
    int64_t experts_normed;                    /* 1: weights are divided by their sum, */
    double experts_scale;                      /* and multiplied; 0: 1 */
    int64_t expert_groups, expert_groups_used; /* 0: one group */

    /* The tensors: which there are, and of each its format, by layer. Of those of the model as a
     * whole layer 0 counts. Without OUTPUT the embedding stands in; without ATTN_QKV there are Q, K
     * and V, without FFN_GATE_UP gate and up. The short factors hold where ROPE_SHORT is there and
     * not ROPE_LONG: the choice is made ahead of all this. */
    uint8_t has[TENSOR_COUNT];
    uint8_t formats[TENSOR_COUNT][DECODER_MOST_LAYERS]; /* format */

    /* The step. */
    int64_t kv_type; /* KV_ */
    int64_t max_seq_len;
    int64_t precision;             /* PRECISION_: Q8, or F32 with nothing rounded */
    int64_t m[DECODER_MOST_STEPS]; /* tokens of a step, ascending: a step for each */
    int64_t m_count;
    int64_t sequences;  /* caches: at least 1 */
    int64_t next;       /* NEXT_: what launches fetch for those behind them */
    int64_t all_logits; /* 1: of every token of a step; 0: of the last one */

    /* The file: keys that decide what is above, and what follows from them. */
    const decoder_metadata *metadata;
    size_t metadata_count;
    const decoder_file *file; /* NULL: not known */
} decoder;

enum { WINDOW_CACHE_RING, WINDOW_CACHE_FULL };

/* Whether a layer has what tensors of a part are of; of those of the model as a whole any layer. */
bool decoder_has_part(const decoder *d, tensor_part part, int64_t layer);

/* Whether a layer has a tensor; of those of the model as a whole any layer. */
bool decoder_has(const decoder *d, decoder_tensor t, int64_t layer);

/* Says which tensors there are by all else: has[] says beforehand which of the fused ones there
 * are, which norm is ahead of the feed-forward, and what is there besides: an output matrix,
 * biases. */
void decoder_add_tensors(decoder *d);

/* The norm ahead of the feed-forward: two names of one thing. */
decoder_tensor decoder_ffn_norm(const decoder *d);

/* Returns the tensor whose only value the products with a matrix are multiplied by, which the
 * decoder need not have; TENSOR_COUNT where matrices of that name have none. */
decoder_tensor decoder_scale(decoder_tensor matrix);

/* Returns the tensor that is added to the products with a matrix, in the same way; of the embedding
 * that of the output, which it may stand in for. */
decoder_tensor decoder_bias(decoder_tensor matrix);

/* A tensor that has a format of its own. */
bool tensor_is_matrix(decoder_tensor t);

/* Planes of a tensor, rows of all of them, and columns. */
uint64_t decoder_planes(const decoder *d, decoder_tensor t);
uint64_t decoder_rows(const decoder *d, decoder_tensor t);
uint64_t decoder_columns(const decoder *d, decoder_tensor t);

/* The format of a tensor of a layer, and the bytes of all of it. */
format decoder_format(const decoder *d, decoder_tensor t, int64_t layer);
uint64_t decoder_bytes(const decoder *d, decoder_tensor t, int64_t layer);

/* Whether a step of so many rows is one of a prompt, whose matrices tensor cores multiply by; and
 * why the decoder has no such steps, NULL: it has. */
bool decoder_is_prompt(int64_t m);
const char *decoder_lacks_prompts(const decoder *d);

/* What a step's product with a tensor of a layer rounds: of x, values to 8 bits in blocks, or of x
 * and W to f16. */
typedef enum decoder_rounding {
    ROUNDS_NOTHING,
    ROUNDS_TO_8_BITS,
    ROUNDS_TO_HALVES
} decoder_rounding;
decoder_rounding decoder_product_rounding(const decoder *d, int64_t m, decoder_tensor t,
                                          int64_t layer);

/* Its name in a GGUF, "blk.3.attn_q.weight": at most DECODER_NAME bytes with the NUL. */
enum { DECODER_NAME = 64 };
void decoder_tensor_name(decoder_tensor t, int64_t layer, char name[DECODER_NAME]);

/* "attn_q" of attn_q.weight. */
const char *tensor_word(arena *a, decoder_tensor t);

#endif
