/* What a kernel computes: the sizes, options and inputs of a problem, and the type of the
 * references that compute its result. Kernels, references and checks all read it.
 */
#ifndef PTXGEN_KERNEL_PROBLEM_H
#define PTXGEN_KERNEL_PROBLEM_H

#include <stdbool.h>
#include <stdint.h>

#include "kernel/format.h"

/* Limits of what kernels are made for. */
enum {
    PROBLEM_MOST_ROWS = 512,          /* rows of X */
    PROBLEM_MOST_POSITIONS = 1 << 24, /* of a sequence */
    PROBLEM_MOST_HEAD_DIM = 256,
    PROBLEM_MOST_EXPERTS = 512,
    PROBLEM_MOST_EXPERTS_USED = 32,
    PROBLEM_MOST_EXPERT_GROUPS = 32,
    PROBLEM_MOST_LATENT = 512,
    PROBLEM_LATENT_UNIT = 32, /* latents, and values that turn, are a multiple of it */
    PROBLEM_MOST_LATENT_ROPE = 128,
    PROBLEM_MOST_LATENT_HEADS = 1024,
    PROBLEM_MOST_Q_RANK = 8192,
    PROBLEM_MOST_DELTA_HEAD = 128,
    PROBLEM_MOST_VOCAB = 1 << 28
};
/* Values of a row of a cache: of K and V, or a latent and rope. */
enum { PROBLEM_MOST_CACHED = 640 };
/* Inputs that a delta net's convolution is over, and those that its cache has, a ring: as many as a
 * step may add besides those that it still needs. */
enum { DELTA_CONV = 4, DELTA_RING = 16 };

enum { MAX_PARAMS = 16 };

/* The sizes of what is computed. A size that an operation does not have is 0. */
typedef struct problem_shape {
    int64_t k, n, m;   /* W is [n,k], X is [m,k], Y is [m,n] */
    int64_t n_kv, n_v; /* rows of K and of V, where Q has n; without V n_v is 0 */
    int64_t head_dim, num_heads, num_kv_heads;
    int64_t max_seq_len, seq_len;  /* positions that the cache holds, and that are valid */
    int64_t chunk_size;            /* positions that one chunk of a split sequence has */
    int64_t experts, experts_used; /* matrices of which each row of X uses some */
    int64_t n_shared;   /* rows of the matrices of an expert that all rows of X use; 0: none */
    int64_t plane_rows; /* from an expert's matrix to the next one's in a tensor */
    /* Of latent attention: values of a cache row that are its value, those of it behind them that
     * turn; of a head of q those that do not, and of its result; columns of the matrix that makes
     * q, where it comes compressed. */
    int64_t latent, n_rope, nope, value_dim, q_rank;
} problem_shape;

/* Rotary position embedding: pairs of a head's first dims values turn by
 * position base^(-2i / dims), divided by factor where they are scaled. */
enum { ROPE_NORM, ROPE_NEOX, ROPE_NONE }; /* pairs (2i, 2i+1), (i, i + dims/2), or none */
enum { ROPE_UNSCALED, ROPE_LINEAR, ROPE_YARN };
typedef struct rope_options {
    int64_t style; /* ROPE_ */
    int64_t dims;  /* even, at most head_dim */
    int64_t scaling;
    int64_t factors; /* 1: angles are divided by an input [dims/2], too */
    double base, factor;
    double original_context, extension, beta_fast, beta_slow; /* of yarn */
    double magnitude;                                         /* of cos and sin; 0: 1 */
    double temperature_scale;  /* q is multiplied by 1 + scale ln(1 + floor(position / length)), */
    double temperature_length; /* where there is a length */
} rope_options;

/* How a mixture's experts are chosen by their logits. */
enum { GATING_SOFTMAX, GATING_SIGMOID, GATING_SOFTMAX_OF_CHOSEN };
enum { SHARED_NONE, SHARED_PLAIN, SHARED_GATED };
typedef struct route_options {
    int64_t gating;              /* GATING_ */
    int64_t normed;              /* 1: weights are divided by their sum */
    int64_t choice_bias;         /* 1: an input [experts] is added for the choice alone */
    int64_t groups, groups_used; /* of neighbouring experts; 0: one group */
    int64_t shared;              /* SHARED_: an expert that every row has */
} route_options;

/* What else decides a result. 0: without it, or as usual. */
typedef struct problem_options {
    int64_t scaled;         /* 1: an input of each matrix has the factor of its products */
    int64_t bias, residual; /* 1: an input that is added to a product; of an RMS norm RESIDUAL_ */
    int64_t norm;           /* NORM_ of x ahead of a product */
    int64_t activation;     /* ACTIVATION_ of a gate */
    int64_t window;         /* last positions that attention is over; 0: all */
    int64_t sinks;          /* 1: of each head one more logit, without a value */
    int64_t gate;           /* 1: attention's result is multiplied by sigmoid(gate) */
    int64_t halves;         /* 1: attention's factors may be rounded to f16 */
    int64_t row_factors;    /* 1: of each row of x an input behind x has what its products, or those
                               of a choice of it, are multiplied by */
    int64_t gated;          /* 1: behind each head of q stands its gate */
    int64_t apart;          /* 1: latents are an input of their own, not behind q */
    int64_t ring;           /* rows of a cache, position t in row t % ring; 0: max_seq_len */
    double scale;           /* of q.k, 0: 1 / sqrt(head_dim); of a product or an embedding, 0: 1 */
    double softcap;         /* c of c tanh(score / c), also of logits; 0: none */
    double epsilon;         /* added to the mean square by which an RMS norm divides */
    int64_t approximation;  /* GELU_ */
    int64_t broadcast;      /* BROADCAST_ of the second of two arrays */
    int64_t qk_norm;        /* 1: heads of q and k are RMS-normed ahead of RoPE */
    int64_t layout;         /* DELTA_ of a delta net's value heads */
    rope_options rope;
    route_options route;
} problem_options;
enum { NORM_NONE, NORM_RMS };
/* What an RMS norm adds to hidden states: x itself, norming the sum; the normed x; the normed x,
 * norming the sum as well. */
enum { RESIDUAL_NONE, RESIDUAL_ADD, RESIDUAL_POST_NORM, RESIDUAL_POST_AND_PRE_NORM };
/* The key head of value head h of r a key head: h / r; or h % key heads, where the betas and the
 * alphas are an input of their own. */
enum { DELTA_GROUPED, DELTA_TILED };
enum { ACTIVATION_SILU, ACTIVATION_GELU, ACTIVATION_SWIGLU_OAI };
enum { GELU_ERF, GELU_TANH };                        /* x Phi(x), or Phi by a hyperbolic tangent */
enum { BROADCAST_NONE, BROADCAST_ROW };              /* [m,k], or [k] for all rows */
enum { KV_F32, KV_F16, KV_BF16, KV_Q8_0, KV_COUNT }; /* elements of K and V, */
extern const format kv_formats[KV_COUNT];            /* and their formats */
/* Activations ahead of a product stay f32, or may be rounded to 8 bits. */
enum { PRECISION_F32, PRECISION_Q8, PRECISION_COUNT };

/* inputs are the pointer parameters that a kernel reads, in the order of its parameters. */
typedef struct problem {
    problem_shape shape;
    problem_options options;
    const void *inputs[MAX_PARAMS];
    format input_formats[MAX_PARAMS];
    uint64_t periods[MAX_PARAMS]; /* values after which an input too large to exist repeats itself,
                                     whole blocks; 0: all of it is there */

    /* Attention. Inputs that are arrays of m addresses, one a sequence, have sequences in place of
     * inputs; their formats and periods are those of what the addresses point to. */
    const void *const *sequences[MAX_PARAMS];
    const void *const *before[MAX_PARAMS]; /* by the number of an output that is an array of
        addresses, and updated: what these point to ahead of the launch */
    const uint32_t *seq_lens; /* of m sequences; NULL: shape.seq_len is that of the only one */
    bool one_cache;           /* m rows write to one cache, as positions of one sequence */
    bool negative;            /* all scores of a softmax are to be very negative */
    uint64_t turn; /* inputs of which few are possible take turns: the number of this one */
    bool strange;  /* the input that is fitted is to have what callers must not pass */

    /* Activations that integers are multiplied by are rounded first, 32 by 32: x becomes d q, where
     * d is amax / 127, of an amax of at least 1e-30, and q is x / d rounded. Where x / d is so
     * close to a tie that float arithmetic may take either side, a magnitude leaves room for the
     * other one: |w| d at REF_QUANTIZING_TOLERANCE. */
    bool quantizes;

    struct ref_kept *kept; /* what references keep from one element to the next; NULL: nothing */
} problem;

/* Values of a position's row in a cache, and rows of a position. */
static inline int64_t problem_cache_values(const problem_shape *s)
{
    return s->latent ? s->latent + s->n_rope : s->head_dim;
}
static inline int64_t problem_cache_heads(const problem_shape *s)
{
    return s->latent ? 1 : s->num_kv_heads;
}

/* Returns how many entries a list of experts has room for: experts that m rows may use between
 * them. */
static inline int64_t problem_experts_listed(const problem_shape *s)
{
    int64_t chosen = s->m * s->experts_used;
    return chosen < s->experts ? chosen : s->experts;
}

typedef struct ref_value {
    double value;
    double magnitude; /* sum of the absolute terms */
} ref_value;

/* Elements first .. first + count - 1 of the output numbered output (counting the outputs alone).
 * An element of a quantized output is one of its values before quantization: how far quantizing may
 * move it is for the comparison to judge. */
typedef void reference(const problem *p, unsigned output, uint64_t first, uint64_t count,
                       ref_value *values);

/* Which experts m rows use, as words. Word 0 has the number of experts in use, three zeros follow,
 * then the entry of each, ascending by id: its id, the number of rows that use it, and for each of
 * these, ascending, row * experts_used + slot, where slot is the place that the row gave it. Of an
 * entry's m such words, and of the list's entries, those that are not in use are
 * EXPERT_LIST_UNUSED.
 */
enum {
    EXPERT_LIST_HEAD = 4,
    EXPERT_ID = 0,
    EXPERT_ROWS,
    EXPERT_FIRST_ROW, /* and words of an entry beside its rows */
};
#define EXPERT_LIST_UNUSED UINT32_MAX
#define EXPERT_LIST_VALUES "4+min(experts,m*experts_used)*(2+m)" /* words of it */
enum { EXPERTS_USED_AT_MOST = 64, EXPERT_MOST_ROWS = 512 };      /* experts by a row; and rows */

/* Words of a row that say how its token is chosen: see ref_sample. */
enum {
    SAMPLING_TEMPERATURE,
    SAMPLING_TOP_K, /* u32, 0: all; the others f32 */
    SAMPLING_TOP_P, /* 1: all */
    SAMPLING_MIN_P, /* 0: all */
    SAMPLING_SEED_LOW,
    SAMPLING_SEED_HIGH,
    SAMPLING_WORDS = 8
};
#define SAMPLING_SAID                                                               \
    "8 words a row: f32 temperature (0: the likeliest token), u32 top_k (0: all), " \
    "f32 top_p (1: all), f32 min_p (0: all), u64 seed, 2 words that are not read"

enum { PARTIAL_EXTRA = 4 }; /* values of a partial row besides head_dim */

#endif
