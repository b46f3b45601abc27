/* The problem that a kernel computes: sizes, options and inputs, and the type of references that
 * compute its result. Kernels, references and checks read it. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "kernel/format.h"

/* Limits of all kernels. */
enum {
    PROBLEM_MOST_ROWS = 512,          /* rows of X */
    PROBLEM_MOST_TILES = 8,           /* lists of tiles of a step */
    PROBLEM_MOST_POSITIONS = 1 << 24, /* positions of a sequence */
    PROBLEM_MOST_HEAD_DIM = 512,
    PROBLEM_SPLIT_HEAD_DIM = 256, /* tensor cores process longer heads in two halves */
    PROBLEM_MOST_EXPERTS = 512,
    PROBLEM_MOST_EXPERTS_USED = 32,
    PROBLEM_MOST_EXPERT_GROUPS = 32,
    PROBLEM_MOST_LATENT = 512,
    PROBLEM_LATENT_UNIT = 32, /* divisor of latent and n_rope */
    PROBLEM_MOST_LATENT_ROPE = 128,
    PROBLEM_MOST_LATENT_HEADS = 1024,
    PROBLEM_MOST_Q_RANK = 8192,
    PROBLEM_MOST_DELTA_HEAD = 128,
    PROBLEM_MOST_VOCAB = 1 << 28
};
/* Maximum values of a cache row: of K and V, or a latent and its RoPE part. */
enum { PROBLEM_MOST_CACHED = 640 };
/* Inputs of a delta net's convolution, and rows of its ring cache of inputs. The ring has room for
 * the inputs still needed and those that a step may add. */
enum { DELTA_CONV = 4, DELTA_RING = 16 };

enum { MAX_PARAMS = 20 };

/* The sizes of a problem. A size that an operation does not have is 0. */
typedef struct problem_shape {
    int64_t k, n, m;   /* W is [n,k], X is [m,k], Y is [m,n] */
    int64_t n_kv, n_v; /* rows of K and of V, if Q has n; n_v is 0 without V */
    int64_t head_dim, num_heads, num_kv_heads;
    int64_t max_seq_len, seq_len;  /* positions of the cache, and valid positions */
    int64_t chunk_size;            /* positions per chunk of a split sequence */
    int64_t experts, experts_used; /* number of experts, and experts per row of X */
    int64_t n_shared;              /* rows of the shared expert's matrices; 0: none */
    int64_t plane_rows;            /* rows from an expert's matrix to the next in a tensor */
    /* Latent attention:
     *  - latent, n_rope: values of a cache row without and with RoPE; the latent is also the value
     *  - nope: values of a head of q without RoPE
     *  - value_dim: values of a head's result
     *  - q_rank: columns of the matrix that makes q from its compressed form; 0: not compressed
     */
    int64_t latent, n_rope, nope, value_dim, q_rank;
    /* State space models: state values per channel, groups of heads with inputs in common (of a
     * norm: rows of weights; 0: one), and positions of the convolution */
    int64_t state_size, num_groups, conv_kernel;
    int64_t dt_rank;   /* columns of the matrix that makes delta */
    int64_t per_layer; /* per-layer embeddings: values per layer */
} problem_shape;

/* Rotary position embedding: pairs of a head's first dims values are rotated by position base^(-2i
 * / dims), divided by factor if they are scaled. */
enum { ROPE_NORM, ROPE_NEOX, ROPE_NONE }; /* pairs (2i, 2i+1), (i, i + dims/2), or no RoPE */
enum { ROPE_UNSCALED, ROPE_LINEAR, ROPE_YARN };
enum { ROPE_AXES = 3 }; /* time, height and width; a text's positions are equal in all of them */
typedef struct rope_options {
    int64_t style; /* ROPE_ */
    int64_t dims;  /* even, at most head_dim */
    int64_t scaling;
    int64_t factors; /* 1: an input [dims/2] also divides the angles */
    double base, factor;
    double original_context, extension, beta_fast, beta_slow; /* YaRN */
    double magnitude;                                         /* factor of cos and sin; 0: 1 */
    double temperature_scale;    /* q is multiplied by 1 + scale ln(1 + floor(position / length)) */
    double temperature_length;   /* 0: without */
    int64_t sections[ROPE_AXES]; /* pairs of each axis, interleaved: pair i has axis a = i % 3 if
                                    i < 3 * sections[a]; other pairs are not rotated. All 0: all
                                    pairs are rotated */
} rope_options;

/* Choice of a mixture's experts by their logits. */
enum { GATING_SOFTMAX, GATING_SIGMOID, GATING_SOFTMAX_OF_CHOSEN };
enum { SHARED_NONE, SHARED_PLAIN, SHARED_GATED };
typedef struct route_options {
    int64_t gating;              /* GATING_ */
    int64_t normed;              /* 1: weights are divided by their sum */
    int64_t choice_bias;         /* 1: an input [experts] is added for the choice only */
    int64_t groups, groups_used; /* groups of adjacent experts; 0: one group */
    int64_t shared;              /* SHARED_: an expert for every row */
    int64_t expert_scale;        /* 1: an input [experts] multiplies the weights of its experts */
    double logit_scale;          /* factor of the logits; 0: 1 */
    double shared_scale;         /* factor of the shared expert's weight; 0: 1 */
} route_options;

/* Options that decide a result. 0: without the option, or the default. */
typedef struct problem_options {
    int64_t scaled;         /* 1: an input has a factor for each matrix's product */
    int64_t bias, residual; /* 1: an input added to the product; RMS norm: RESIDUAL_ */
    int64_t norm;           /* NORM_ of x before a product */
    int64_t activation;     /* ACTIVATION_ of the gate, or of up without a gate */
    int64_t epilogue;       /* activation of a product without a gate: 1 + ACTIVATION_; 0: none */
    int64_t times;          /* 1: an input [m, n] multiplies the activated product */
    double limit;           /* c of min(silu(g), c) max(min(u, c), -c); 0: none */
    double shared_limit;    /* limit of the shared expert */
    int64_t ungated;        /* 1: up has no gate */
    int64_t window;         /* last positions that attention covers; 0: all */
    int64_t sinks;          /* 1: each head has an additional logit without a value */
    int64_t gate;           /* GATE_ that multiplies attention's result */
    int64_t halves;         /* 1: attention may round its operands to f16 */
    int64_t row_factors;    /* 1: an input after x has a factor per row of x, for its products or
                               chosen ones */
    int64_t gated;          /* 1: each head of q is followed by its gate */
    int64_t apart;          /* 1: latents are a separate input, not part of q */
    int64_t ring;           /* rows of a ring cache, position t in row t % ring; 0: max_seq_len */
    int64_t page;           /* positions per page of a cache; 0: a sequence has one page */
    int64_t runs;           /* runs of neighbouring rows of one sequence, at most */
    double scale;           /* factor. Attention, 0: 1 / sqrt(head_dim), or 1 / sqrt(latent +
                               n_rope); others, 0: 1 */
    double softcap;         /* c of c tanh(score / c), also for logits; 0: none */
    double factor;          /* of the sum of per-layer rows; 0: 1 */
    double epsilon;         /* added to the mean square in an RMS norm */
    int64_t approximation;  /* GELU_ */
    int64_t broadcast;      /* BROADCAST_ of the second operand */
    int64_t qk_norm;        /* HEADS_NORM_ of q and k */
    int64_t v_norm;         /* 1: each head of V gets an RMS norm without weights */
    int64_t v_from_k;       /* 1: V is made from K's values before norm and RoPE */
    int64_t q_alone;        /* 1: only q is computed, without K and V */
    int64_t layout;         /* DELTA_ order of a delta net's value heads */
    int64_t gamma;          /* GAMMA_: weights of an RMS norm */
    int64_t out_scale;      /* 1: an input is the factor of h_out */
    int64_t conv_form;      /* CONV_ of a short convolution */
    int64_t history;        /* token ids kept per row: the one at position t is t % history */
    int64_t biases;         /* sampling: most biases of a row */
    int64_t mask;           /* 1: sampling from the tokens that a bit mask allows */
    int64_t logprobs;       /* sampling: best tokens whose log-probabilities are written */
    rope_options rope;
    route_options route;
} problem_options;
/* Gate of attention's result: a value per element, or one per head. */
enum { GATE_NONE, GATE_SIGMOID, GATE_SIGMOID_HEAD, GATE_SOFTPLUS, GATE_SOFTPLUS_HEAD };
enum { NORM_NONE, NORM_RMS };
enum { GAMMA_INPUT, GAMMA_NONE };
/* RMS norm of q and k: of each head, before or after RoPE; of all heads of a row together. */
enum { HEADS_NORM_NONE, HEADS_NORM_BEFORE, HEADS_NORM_AFTER, HEADS_NORM_ROW };
/* Residual of an RMS norm, added to the hidden states: x, before the norm; the normed x; the normed
 * x, and the sum is normed, too. */
enum { RESIDUAL_NONE, RESIDUAL_ADD, RESIDUAL_POST_NORM, RESIDUAL_POST_AND_PRE_NORM };
/* Key head of value head h, with r value heads per key head: h / r, or h % key heads; with
 * DELTA_TILED betas and alphas are a separate input. */
enum { DELTA_GROUPED, DELTA_TILED };
enum { CONV_GATED, CONV_SILU }; /* y = c conv(b u), or silu(conv(u) + bias) */
enum {
    ACTIVATION_SILU,
    ACTIVATION_GELU, /* by tanh */
    ACTIVATION_SWIGLU_OAI,
    ACTIVATION_GELU_ERF,
    ACTIVATION_RELU,
    ACTIVATION_RELU2, /* the square of relu */
    ACTIVATION_XIELU  /* of Apertus, without a gate: see xielu below */
};
/* Numbers of xielu, parameters of the kernel in this order. x > 0: positive x^2 + beta x; else
 * negative (expm1(min(x, epsilon)) - x) + beta x. The host computes positive = ln(1 + e^alpha_p) and
 * negative = beta + ln(1 + e^alpha_n) from a model's alphas in double, and rounds them to f32. */
enum { XIELU_POSITIVE, XIELU_NEGATIVE, XIELU_BETA, XIELU_EPSILON, XIELU_NUMBERS };
enum { GELU_ERF, GELU_TANH };                        /* x Phi(x): exact, or by tanh */
enum { BROADCAST_NONE, BROADCAST_ROW };              /* [m,k], or [k] for every row */
enum { KV_F32, KV_F16, KV_BF16, KV_Q8_0, KV_COUNT }; /* type of K and V */
extern const format kv_formats[KV_COUNT];            /* indexed by KV_ */
/* Precision of activations in a product: f32, or rounding to 8 bits allowed. */
enum { PRECISION_F32, PRECISION_Q8, PRECISION_COUNT };

/* A problem with its inputs: the pointers that a kernel reads, in order of parameters. */
typedef struct problem {
    problem_shape shape;
    float xielu[XIELU_NUMBERS];
    problem_options options;
    const void *inputs[MAX_PARAMS];
    format input_formats[MAX_PARAMS];
    uint64_t periods[MAX_PARAMS]; /* whole blocks of values after which a very large input repeats;
                                     0: the input is complete */

    const void *before[MAX_PARAMS]; /* by output: an updated output's content before the launch */
    const uint32_t *seq_lens;       /* lengths by row; NULL: the only row has shape.seq_len */
    const uint32_t *sequences;      /* sequence by row; NULL: row i is of sequence i */
    const uint32_t *pages;          /* page numbers by sequence; NULL: ascending */
    bool negative;                  /* test: all scores of the softmax are very negative */
    uint64_t turn; /* test: number of this problem, selects one of few valid inputs */
    bool strange;  /* test: the fitted input has values that callers must not pass */

    /* true: activations of integer products are rounded in groups of 32. x becomes d q with d =
     * amax / 127, amax at least 1e-30, and q = x / d rounded. If x / d is so close to a tie that
     * f32 arithmetic may round either way, the magnitude allows for both: |w| d at
     * REF_QUANTIZING_TOLERANCE. */
    bool quantizes;

    struct ref_kept *kept; /* cache of the references between elements; NULL: empty */
} problem;

/* Returns the values of a cache row. */
static inline int64_t problem_cache_values(const problem_shape *s)
{
    return s->latent ? s->latent + s->n_rope : s->head_dim;
}

/* Returns the cache rows per position. */
static inline int64_t problem_cache_heads(const problem_shape *s)
{
    return s->latent ? 1 : s->num_kv_heads;
}

/* Returns the maximum number of distinct experts that m rows use: the entries of an expert list. */
static inline int64_t problem_experts_listed(const problem_shape *s)
{
    int64_t chosen = s->m * s->experts_used;
    return chosen < s->experts ? chosen : s->experts;
}

typedef struct ref_value {
    double value;
    double magnitude; /* sum of the absolute values of the terms */
} ref_value;

/* Computes elements first to first + count - 1 of an output; output counts only outputs. Elements
 * of a quantized output are its values before quantization. */
typedef void reference(const problem *p, unsigned output, uint64_t first, uint64_t count,
                       ref_value *values);

/* Expert list: the experts that m rows use, as words.
 *
 *  - word 0: number of experts in use; words 1 to 3: 0
 *  - an entry per expert, ascending by id: id, number of rows that use it, and for each such row,
 *    ascending, row * experts_used + slot, where slot is the expert's place in the row's choice
 *
 * An entry has room for m rows; unused words and entries are EXPERT_LIST_UNUSED. */
enum {
    EXPERT_LIST_HEAD = 4,
    EXPERT_ID = 0,
    EXPERT_ROWS,
    EXPERT_FIRST_ROW, /* also the words of an entry without its rows */
};
#define EXPERT_LIST_UNUSED UINT32_MAX
#define EXPERT_LIST_VALUES "4+min(experts,m*experts_used)*(2+m)" /* words of a list */
enum { EXPERTS_USED_AT_MOST = 64, EXPERT_MOST_ROWS = 512 };      /* experts per row; rows */

/* Words of a row's sampling parameters: see ref_sample. */
enum {
    SAMPLING_TEMPERATURE,
    SAMPLING_TOP_K, /* u32, 0: all; the others are f32 */
    SAMPLING_TOP_P, /* 1: all */
    SAMPLING_MIN_P, /* 0: all */
    SAMPLING_SEED_LOW,
    SAMPLING_SEED_HIGH,
    SAMPLING_BIASES, /* u32, with the key biases: number of biases in use */
    SAMPLING_MASKED, /* u32, with the key mask: not 0 if the row uses its mask */
    SAMPLING_WORDS
};
#define SAMPLING_SAID                                                          \
    "8 words per sequence: f32 temperature (0: greedy), u32 top_k (0: all), "  \
    "f32 top_p (1: all), f32 min_p (0: all), u64 seed, u32 number of biases, " \
    "u32 masked (1: yes); the last two are unused without the keys biases and mask"
/* Words of a row's penalties, with the key history. */
enum {
    PENALTY_REPETITION, /* 1: none; the others are 0 for none */
    PENALTY_FREQUENCY,
    PENALTY_PRESENCE,
    PENALTY_LAST, /* u32: last tokens that count; the others are f32 */
    PENALTY_WORDS
};
#define PENALTIES_SAID                                                         \
    "4 words per row: f32 repetition (1: none), f32 frequency, f32 presence, " \
    "u32 last_n (0: none)"

enum { PARTIAL_EXTRA = 4 }; /* values of a row of partial results in addition to head_dim */

/* Returns true if a gate has one value per head. */
static inline bool problem_gate_is_of_head(int64_t gate)
{
    return gate == GATE_SIGMOID_HEAD || gate == GATE_SOFTPLUS_HEAD;
}
