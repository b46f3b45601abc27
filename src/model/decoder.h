/* A decoder model's step as data: the architecture and everything that decides its logits. It is
 * read from a [decoder] section. The plan of a step is made from it, and the reference computes it.
 *
 * A layer computes, for hidden states h [m, hidden]:
 *
 *   q, k, v = W h' + b,  h' = norm(h) attn_norm     one fused matrix with ATTN_QKV; h' = h with
 *                                                   no_pre_norms
 *   q, k    = rope(head_norm(q), head_norm(k))      norms with ATTN_Q_NORM, placed by qk_norm
 *   o       = W (softmax(scale q k') v gate) + b    ATTN_SINKS add a logit a head to the softmax;
 *                                                   gate: sigmoid(gate) with attention_gate, else 1
 *   h      += residual_scale o                      norm(o) post_attention_norm with that tensor
 *   f       = W (act(W_gate h'') (W_up h'')) + b    h'' = norm(h) ffn_norm; h'' = h' with parallel;
 *                                                   with no_gates W act(W_up h'' + b) + b
 *   h      += residual_scale f                      norm(f) post_ffw_norm with that tensor
 *
 * Layers may lack parts, and differ in heads, windows and RoPE: see decoder_layer. A layer with
 * cache = l reads the rows of K and V that layer l wrote, and has neither.
 *
 * With a dense feed-forward beside experts, the former reads norm(h) ffn_norm and the experts read
 * norm(h) pre_ffw_norm_2. Then
 *
 *   f = norm(dense) post_ffw_norm_1 + norm(experts) post_ffw_norm_2
 *
 * With per-layer embeddings, e [layers, per_layer] of a token are made before the layers, and a
 * layer has a third branch:
 *
 *   e  = (norm(W_per_layer_model_proj h / sqrt(hidden)) per_layer_proj_norm
 *         + sqrt(per_layer) per_layer_token_embd[token]) / sqrt(2)        norm by layer
 *   h += residual_scale norm(W_proj (act(W_inp_gate h) e)) post_norm
 *
 * At its end, a layer multiplies h by layer_output_scale.
 *
 * Before the layers h = embedding_scale token_embd[token], normed with embedding_norm. After them
 * logits = cap(logit_scale (W_output norm(h) output_norm + b)).
 *
 * Latent attention (latent > 0): with [c, r] = W_kv_a h', a cache row is [norm(c) attn_kv_a_norm,
 * rope(r)]. q is W_q h' or, with a q_rank, W_q_b (norm(W_q_a h') attn_q_a_norm); a head of q is
 * [nope, pe]. Its query is [W_k_b nope, rope(pe)], its o is W_v_b softmax(scale query row') c.
 *
 * A recurrent layer has a gated delta net, a short convolution or a Mamba layer instead of attention
 * or beside it: see ref_delta_net, ref_short_conv, ref_mamba2 and ref_mamba_scan in reference.h. The
 * norm of y by groups with SSM_NORM follows mamba2.
 *
 * Mixture of experts: f is the sum over the experts_used chosen experts of weight * (W_down
 * (act(W_gate h'') (W_up h'')) + b), plus the shared expert: see ref_moe_route. The router reads
 * h'' or, with ROUTER_NORM, norm(h) times its gains. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"
#include "kernel/problem.h"

enum { DECODER_MOST_LAYERS = 512 };
/* Limits of steps. A step of more than DECODER_FEW_ROWS rows is a prompt step: its matrices are
 * multiplied in tiles on tensor cores, from sm_80 on. Int8 tensor cores give a row the same bits in
 * all steps of up to DECODER_BYTE_ROWS rows. */
enum {
    DECODER_FEW_ROWS = 8,
    DECODER_MOST_STEPS = 16,
    DECODER_PROMPT_SM = 80,
    DECODER_BYTE_ROWS = 64
};
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
    TENSOR_DECAY,
    TENSOR_GAIN
} tensor_kind;

/* Layers that may have a tensor. */
typedef enum tensor_part {
    PART_MODEL,     /* no layer: once */
    PART_LAYER,     /* every layer */
    PART_ATTENTION, /* layers with softmax attention */
    PART_KV,        /* those that write K and V to their own cache */
    PART_V,         /* those whose V is not made from K */
    PART_RECURRENT, /* layers with a recurrence */
    PART_FEED,      /* layers with a feed-forward, dense or of experts */
    PART_DENSE,
    PART_EXPERTS,
    PART_BESIDE /* a dense feed-forward beside experts */
} tensor_part;

typedef struct tensor_info {
    const char *name; /* name in a GGUF, without the prefix "blk.N." of by_layer */
    bool by_layer;
    tensor_part part;
    tensor_kind kind;
    unsigned planes, rows, columns; /* SIZE_ values; rows of one plane */
} tensor_info;
extern const tensor_info tensor_infos[TENSOR_COUNT];

/* A metadata key of the file, without "ARCHITECTURE."; text: numbers with commas, or a word. */
typedef struct decoder_metadata {
    const char *name, *text;
} decoder_metadata;

/* The rule by which a GGUF file's key is compared with the decoder's value. */
typedef enum decoder_key_use {
    DECODER_KEY_REQUIRED, /* present, with this value */
    DECODER_KEY_OPTIONAL, /* this value, or absent: it is the default */
    DECODER_KEY_IGNORED   /* any value */
} decoder_key_use;
typedef struct decoder_key {
    const char *name; /* "llama.rope.freq_base" */
    const char *text; /* value as text */
    const char *same; /* alternative text with the same meaning, or NULL */
    decoder_key_use use;
    const double *values; /* numeric values; NULL if the value is text */
    size_t count;         /* number of values; 1 also matches an array of equal values */
} decoder_key;

/* Keys and tensors to compare with a file before its weights are used. */
typedef struct decoder_file {
    const decoder_key *keys;
    size_t key_count;
    const char *const *ignored_tensors;
    size_t ignored_tensor_count;
    const char *edited; /* first value that differs from the metadata, or NULL */
} decoder_file;

/* A layer: attention, recurrence or both, then dense, experts or both. Lacking parts: 0. */
typedef struct decoder_layer {
    uint8_t attends, recurs, is_dense, is_routed; /* 1 = the layer has the part */
    uint8_t windowed;                             /* 1 = attention sees a window */
    uint8_t unturned;                             /* 1 = no RoPE */
    uint8_t v_from_k;                             /* 1 = V is K before its norm and RoPE */
    int64_t num_heads, num_kv_heads, head_dim;
    int64_t cache;                     /* the layer whose K and V attention reads */
    int64_t ff;                        /* rows of ffn_up */
    double expert_limit, shared_limit; /* clamps of SwiGLU: experts; shared expert and dense
                                          feed-forward; 0 = none */
    double xielu_alpha_n, xielu_alpha_p, xielu_beta, xielu_eps;
} decoder_layer;

enum { NEXT_NONE, NEXT_FETCHED };
enum { RECURRENCE_DELTA, RECURRENCE_SHORT_CONV, RECURRENCE_MAMBA2, RECURRENCE_MAMBA };
enum { ATTENTION_GATE_NONE, ATTENTION_GATE_OF_Q, ATTENTION_GATE_VALUES, ATTENTION_GATE_HEADS };
enum { QK_NORM_HEAD, QK_NORM_HEAD_AFTER, QK_NORM_ROW };
typedef struct decoder {
    const char *architecture; /* general.architecture; decides no kernel */
    int64_t layers, hidden, vocab;
    decoder_layer at[DECODER_MOST_LAYERS];
    double epsilon;     /* epsilon of norms */
    int64_t activation; /* ACTIVATION_, applied to the gate, or without gates to ffn_up */
    int64_t no_gates;   /* 1 = feed-forwards have no gate */

    /* Norms. */
    int64_t layer_norm;       /* 1 = norms before branches and of the output are LayerNorms */
    int64_t no_pre_norms;     /* 1 = no norm before attention and feed-forward */
    int64_t parallel;         /* 1 = attention and feed-forward both read norm(h) attn_norm */
    double post_norm_epsilon; /* 0 = epsilon */
    int64_t qk_norm;          /* QK_NORM_, of ATTN_Q_NORM and ATTN_K_NORM */
    int64_t v_norm;           /* 1 = heads of V are normed, without gains */
    int64_t embedding_norm;   /* 1 = embeddings are normed, without gains */

    /* Attention. rope[0] is for layers with full context, rope[1] for windowed layers. */
    rope_options rope[2];
    int64_t factor_dims;    /* twice the values of ROPE_FREQS; 0 = rope[0].dims */
    int64_t window;         /* positions, including the query's own; 0 = no windowed layers */
    int64_t window_cache;   /* WINDOW_CACHE_, of windowed layers */
    double attention_scale; /* factor of q.k; 0 = 1 / sqrt(head_dim) */
    double attention_softcap, final_softcap;             /* 0 = off */
    double embedding_scale, residual_scale, logit_scale; /* 0 = 1 */
    int64_t attention_gate; /* ATTENTION_GATE_; OF_Q: each head has 2 head_dim rows in attn_q: q,
                               then the gate */

    /* Latent attention: values of the latent (0 = off), rank of q (0 = full rank), and values of a
     * head of o. RoPE rotates the last rope dims of a head of q. */
    int64_t latent, q_rank, value_dim;

    /* Recurrences, all of one kind. */
    int64_t recurrence; /* RECURRENCE_ */
    /* Gated delta nets: numbers of heads of k and q, and of v. */
    int64_t delta_key_heads, delta_value_heads, delta_head_dim;
    int64_t delta_layout; /* DELTA_: GROUPED has ssm_ba; TILED has ssm_beta and ssm_alpha */
    /* Positions of the convolution. Mamba: channels, and values of a channel's state. */
    int64_t conv_kernel, inner, state_size;
    int64_t state_heads, state_groups; /* of Mamba-2: heads of channels; groups with a B and a C */
    int64_t dt_rank;                   /* of Mamba: columns of ssm_dt */
    int64_t dt_b_c_norm;               /* of Mamba: 1 = they are normed, without gains */

    /* Mixture of experts: experts of a layer (0 = dense model) and of a token. Rows of ffn_up of an
     * expert and of the shared expert. */
    int64_t experts, experts_used, expert_ff, shared_ff;
    int64_t gating;                            /* GATING_ */
    int64_t experts_normed;                    /* 1 = weights are divided by their sum */
    double experts_scale;                      /* factor of the weights after that; 0 = 1 */
    double shared_scale;                       /* factor of the shared expert; 0 = 1 */
    double router_scale;                       /* factor of the router's logits; 0 = 1 */
    int64_t expert_groups, expert_groups_used; /* 0 = one group */

    /* Per-layer embeddings: values per layer (0 = none), and layers in a row of their table. */
    int64_t per_layer, embedded_layers;
    int64_t table_on_host; /* 1 = the table is in host memory */

    /* Tensors that the decoder has. Fused tensors replace their parts: ATTN_QKV replaces Q, K and
     * V, FFN_GATE_UP replaces gate and up. Without OUTPUT the embedding is the output matrix. At
     * most one of ROPE_LONG and ROPE_SHORT is set: max_seq_len has decided. */
    uint8_t has[TENSOR_COUNT];
    uint8_t renamed[TENSOR_COUNT]; /* 1 = the file has the tensor's other name */
    uint8_t formats[TENSOR_COUNT][DECODER_MOST_LAYERS]; /* by layer; the model's in layer 0 */

    /* The step. */
    int64_t kv_type; /* KV_ */
    int64_t max_seq_len;
    int64_t page;                  /* positions per page of K and V; 0 = a sequence is one page */
    int64_t precision;             /* PRECISION_: Q8, or F32 without rounding */
    int64_t m[DECODER_MOST_STEPS]; /* tokens of each step, ascending */
    int64_t m_count;
    int64_t sequences;               /* sequences with caches, at least 1 */
    int64_t next;                    /* NEXT_: weights that launches prefetch for later launches */
    uint8_t bytes_for[FORMAT_COUNT]; /* BYTES_FOR_: steps that multiply a format on int8 tensor
                                        cores */
    int64_t all_logits;  /* 1 = logits of every token of a step, 0 = of the last token */
    int64_t logits_rows; /* rows of a step with logits, chosen at launch; 0 = as all_logits says */
    int64_t caller_samples;              /* 1 = steps do not sample */
    int64_t penalties, biases, logprobs; /* of sampling: tokens that penalties count, biases of a
                                            sequence, best tokens with log-probabilities; 0 = none */
    int64_t token_mask;                  /* 1 = rows may have a mask of allowed tokens */

    /* The file: keys that decide the fields above, and what loaders compare. */
    const decoder_metadata *metadata;
    size_t metadata_count;
    const decoder_file *file; /* NULL if unknown */
} decoder;

/* Flags of steps: of up to DECODER_FEW_ROWS rows, of more up to DECODER_BYTE_ROWS, and of more. */
enum { BYTES_FOR_NONE, BYTES_FOR_FEW = 1, BYTES_FOR_SOME = 2, BYTES_FOR_MANY = 4 };

enum { WINDOW_CACHE_RING, WINDOW_CACHE_FULL };

/* Returns true if a layer has tensors of a part; always true for PART_MODEL and PART_LAYER. */
bool decoder_has_part(const decoder *d, tensor_part part, int64_t layer);

/* Returns the first layer with a part, or -1. */
int64_t decoder_first_layer(const decoder *d, tensor_part part);

/* Returns true if a layer has a tensor. For tensors of the model the layer does not matter. */
bool decoder_has(const decoder *d, decoder_tensor t, int64_t layer);

/* Sets layers' numbers to 0 where they have no effect, and has[] of the tensors that follow from
 * the other fields. The caller has set has[] of optional tensors: fused matrices, PRE_FFN_NORM,
 * OUTPUT, biases and scales. */
void decoder_complete(decoder *d);

/* Returns the norm before the feed-forward (ffn_norm, post_attention_norm) or TENSOR_COUNT. */
decoder_tensor decoder_ffn_norm(const decoder *d);

/* Writes a layer's numbers of xielu: see problem.h. */
void decoder_xielu(const decoder *d, int64_t layer, float numbers[XIELU_NUMBERS]);

decoder_tensor decoder_expert_norm(const decoder *d, int64_t layer);

bool decoder_is_beside(const decoder *d, int64_t layer);

/* Returns the post-norm of a layer's last branch, which the decoder may lack; TENSOR_COUNT if a
 * layer without feed-forward has both attention and a recurrence. */
decoder_tensor decoder_last_norm(const decoder *d, int64_t layer);

/* Returns RoPE of a layer; style ROPE_NONE without RoPE. */
rope_options decoder_rope(const decoder *d, int64_t layer);

/* Caches have slots of two parts: K and V, or states and last inputs. A layer's slot has its number.
 * If it has attention and a recurrence, another slot after the layers has the states. Returns the
 * number of slots, and a recurrent layer's slot of states. */
int64_t decoder_slots(const decoder *d);
int64_t decoder_states_slot(const decoder *d, int64_t layer);

/* Return the sizes of a recurrence's memory: heads with a state each, values of a head's state,
 * channels of a convolution's input, and its positions. Mamba has a head for each channel. */
uint64_t decoder_state_heads(const decoder *d);
uint64_t decoder_state_values(const decoder *d);
uint64_t decoder_channels(const decoder *d);
int64_t decoder_taps(const decoder *d);

/* Returns the window of a layer's attention in positions, or 0. */
int64_t decoder_window(const decoder *d, int64_t layer);

/* Returns the scalar that scales a matrix's products, or TENSOR_COUNT; the decoder may lack it. */
decoder_tensor decoder_scale(decoder_tensor matrix);

/* Returns the bias of a matrix (TOKEN_EMBD: OUTPUT_BIAS), which may be absent; or TENSOR_COUNT. */
decoder_tensor decoder_bias(decoder_tensor matrix);

/* Returns true if the tensor is a matrix and has a format. All other tensors are f32. */
bool tensor_is_matrix(decoder_tensor t);

/* Returns the number of matrices in a layer's tensor: experts or heads, else 1. */
uint64_t decoder_planes(const decoder *d, decoder_tensor t, int64_t layer);

/* Returns the rows of all planes. */
uint64_t decoder_rows(const decoder *d, decoder_tensor t, int64_t layer);
uint64_t decoder_columns(const decoder *d, decoder_tensor t, int64_t layer);

/* Returns a head's rows of attn_kv_b: those of k without RoPE, then those of v. */
int64_t decoder_kv_b_rows(const decoder *d, int64_t layer);

/* Returns the tensor's most rows, or columns, of any layer; 0 if the decoder lacks it. */
uint64_t decoder_most_rows(const decoder *d, decoder_tensor t);
uint64_t decoder_most_columns(const decoder *d, decoder_tensor t);

/* Returns the format of a layer's tensor; f32 unless it is a matrix. */
format decoder_format(const decoder *d, decoder_tensor t, int64_t layer);

/* Returns the size of a layer's tensor, in bytes. */
uint64_t decoder_bytes(const decoder *d, decoder_tensor t, int64_t layer);

/* Returns true for prompt steps: more than DECODER_FEW_ROWS rows. */
bool decoder_is_prompt(int64_t m);

/* Returns the feature that rules out prompt steps, in words, or NULL. */
const char *decoder_lacks_prompts(const decoder *d);

/* Operands that a step's product rounds: x to 8 bits in blocks, or x and W to f16. */
typedef enum decoder_rounding {
    ROUNDS_NOTHING,
    ROUNDS_TO_8_BITS,
    ROUNDS_TO_HALVES
} decoder_rounding;
decoder_rounding decoder_product_rounding(const decoder *d, int64_t m, decoder_tensor t,
                                          int64_t layer);

/* Returns the rows of a step of m rows that have logits. */
int64_t decoder_logits_rows(const decoder *d, int64_t m);

/* Returns true if int8 tensor cores may multiply a layer's tensor by m rows, and also those that
 * share its kernel: all have integer formats, gate and up the same, and none is of experts. */
bool decoder_takes_bytes(const decoder *d, int64_t m, decoder_tensor t, int64_t layer);

enum { DECODER_NAME = 64 };

/* Writes a tensor's name in a GGUF, "blk.3.attn_q.weight", NUL included. */
void decoder_tensor_name(const decoder *d, decoder_tensor t, int64_t layer,
                         char name[DECODER_NAME]);

/* Returns the name up to its last dot: "attn_q" of attn_q.weight. */
const char *tensor_word(arena *a, decoder_tensor t);
