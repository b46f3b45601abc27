/* The description of an architecture, and the reader of model files, which architectures extend. */
#pragma once

#include "base/diag.h"
#include "model/from_gguf/model.h"
#include "model/gguf/gguf.h"

/* A key that was read or looked for. */
typedef struct model_note {
    decoder_key key; /* name without the architecture's prefix */
    bool is_there, is_required;
} model_note;

typedef struct model_reader {
    arena *arena;
    diags *diags;
    const gguf_file *file;
    location where; /* the file */
    const struct architecture *architecture;
    bool *known_keys, *known_tensors; /* by index in the file: read, or known to be irrelevant */
    VEC(model_note) notes;            /* one per key, in reading order */
    VEC(const char *) ignored;        /* names of tensors */
    model *out;
} model_reader;

/* Features beyond dense layers with softmax attention. */
enum {
    FEATURE_EXPERTS = 1,
    FEATURE_EXPERTS_ALWAYS = 2, /* experts are required */
    FEATURE_LATENT = 4,
    FEATURE_RECURRENT = 8,
    FEATURE_NEXTN = 16, /* last layers predict further tokens; the decoder leaves them out */
    FEATURE_MIXED = 32, /* layers with 0 KV heads have no attention, with ff = 0 no feed-forward */
    FEATURE_LAYER_NORM = 64,     /* LayerNorms, with the key layer_norm_epsilon */
    FEATURE_NO_PRE_NORMS = 128,  /* no norms before attention and feed-forward */
    FEATURE_PARALLEL = 256,      /* attention and feed-forward read the same norm */
    FEATURE_NO_GATES = 512,      /* feed-forwards without a gate */
    FEATURE_OWN_OUTPUT = 1024,   /* the output matrix is never the embedding */
    FEATURE_FULL_FACTORS = 2048, /* rope_freqs is for layers without a window only; windowed ones
                                    rotate their own number of values */
    FEATURE_TWO_EPSILONS = 4096, /* layer_norm_epsilon is required and the default of the RMS
                                    norms' */
    FEATURE_NORM_BY_KEY = 8192,  /* LayerNorms only if the key layer_norm_rms_epsilon is absent */
    FEATURE_YARN_LOG = 16384,    /* the key yarn_log_multiplier; others have it without effect */
    FEATURE_GATING_KEY = 32768   /* with experts the key expert_gating_func is required */
};

/* Rows of an expert's ffn_up, where the file does not name them. OWN: the key is required. OF_ALL:
 * feed_forward_length. SHARED_OUT: feed_forward_length / experts_used. */
enum { EXPERT_ROWS_OWN, EXPERT_ROWS_OF_ALL, EXPERT_ROWS_SHARED_OUT };

/* An architecture. Zero fields mean as in llama: ROPE_NORM, ACTIVATION_SILU, GATING_SOFTMAX. The
 * lists of tensors add to those that every decoder has, and end with TENSOR_COUNT. Fused q, k and v
 * may replace three matrices in all architectures. */
typedef struct architecture {
    const char *name; /* general.architecture */
    int64_t rope_style, activation, qk_norm;
    double rope_base;  /* default of rope.freq_base; 0 = required, because models differ */
    unsigned features; /* set of FEATURE_ */
    int64_t gating, experts_normed, expert_rows; /* defaults of keys */
    const uint8_t *required, *optional;
    /* Keys without effect, "vision.*" for all that begin so; ends with NULL; NULL = none. */
    const char *const *void_keys;
    bool may_fuse_gate_up, may_fuse_experts, has_long_factors;
    void (*read_heads)(model_reader *r);   /* reads head sizes; NULL = default keys */
    void (*adapt_layers)(model_reader *r); /* sets layers' parts after heads and experts, or NULL */
    void (*adapt)(model_reader *r);        /* reads the architecture's own keys, or NULL */
} architecture;

/* A list of tensors; the end of a list of architectures. */
#define QKV_BIASES TENSOR_ATTN_Q_BIAS, TENSOR_ATTN_K_BIAS, TENSOR_ATTN_V_BIAS, TENSOR_ATTN_QKV_BIAS
#define QK_NORMS   TENSOR_ATTN_Q_NORM, TENSOR_ATTN_K_NORM
#define POST_NORMS TENSOR_POST_ATTENTION_NORM, TENSOR_POST_FFW_NORM
#define TENSOR_LIST(...)          \
    (const uint8_t[])             \
    {                             \
        __VA_ARGS__, TENSOR_COUNT \
    }
#define KEY_LIST(...)     \
    (const char *const[]) \
    {                     \
        __VA_ARGS__, NULL \
    }
#define ARCHITECTURE_END \
    {                    \
        0                \
    }

/* The list arch_FILE of each file in model/arch; ends with NULL. The build generates it. */
extern const architecture *const model_architecture_lists[];

/* Biases of all products of attention and feed-forward. */
extern const uint8_t model_biases[];

/* These, and rope_freqs. */
extern const uint8_t model_biases_and_factors[];

/* Reads a key, equal in all layers. After problems, returns the fallback or 1. */
int64_t model_number(model_reader *r, const char *name, int64_t least, int64_t fallback);
int64_t model_required_number(model_reader *r, const char *name);

/* Reads numbers, by layer or one; required if fallback = 0. Values are positive. */
void model_numbers(model_reader *r, const char *name, int64_t least, int64_t fallback,
                   int64_t values[DECODER_MOST_LAYERS]);

/* Reads real numbers by layer: one for all, or a list. fallback is NULL if the key is required. */
void model_reals(model_reader *r, const char *name, const double *fallback,
                 double values[DECODER_MOST_LAYERS]);

double model_real(model_reader *r, const char *name, double fallback);
double model_required_real(model_reader *r, const char *name);
bool model_flag(model_reader *r, const char *name, bool fallback);

/* Copies a string of the file; truncates a long one. */
const char *model_shown_text(model_reader *r, gguf_string text);

/* Returns a key's text, or fallback if the key is absent. */
const char *model_text(model_reader *r, const char *name, const char *fallback);

/* Reports a key whose value is not the given number, which other keys imply; why says how. */
void model_require_same(model_reader *r, const char *name, int64_t number, const char *why);

/* Returns a key's whole name: "llama.block_count"; names of xielu have no architecture. */
const char *model_key_name(arena *a, const char *prefix, const char *name);

/* Returns the architecture's key, named without prefix, or NULL if it is without effect. */
const gguf_key *model_find_key(const model_reader *r, const char *name);

/* Returns a key likewise, marks it as known and notes its numbers. */
const gguf_key *model_use_key(model_reader *r, const char *name);

/* Marks a key as known, whose value does not matter. */
void model_ignore_key(model_reader *r, const char *name);

/* Marks a key as known if it has no effect. */
void model_ignore_void(model_reader *r, const char *name);

/* Notes an alternative text that means the same as a key's value and its default. */
void model_note_same(model_reader *r, const char *name, const char *same);

/* Notes a key's value. is_optional: the value is the default, so that a file may omit the key. */
void model_note_number(model_reader *r, const char *name, double value, bool is_optional);

/* Sets the embedding's scale to sqrt(hidden). */
void model_scale_embedding(model_reader *r);

/* Leaves RoPE out of the layers that are not windowed. */
void model_turn_windowed(model_reader *r);

/* Makes all layers windowed but the last of each period. A pattern in the file overrides period. */
void model_windows(model_reader *r, int64_t window, int64_t period);

/* Reads rope.dimension_sections, if it is there. Pairs take turns at three axes of a position, which
 * are equal in text. A pair whose axis has no pair left is not rotated. */
void model_read_sections(model_reader *r);

void model_read_mamba2(model_reader *r);

/* Reads the scale of queries by position: q *= 1 + scale ln(1 + floor(position / length)). */
void model_read_temperature(model_reader *r);

/* Returns RoPE without scaling and factors. */
rope_options model_plain_rope(int64_t style, int64_t dims);

/* Returns a layer's tensor in the file, or NULL. */
const gguf_tensor *model_find_tensor(const model_reader *r, decoder_tensor t, int64_t layer);

/* Chooses RoPE's long factors if max_seq_len exceeds the original context, else the short. */
void model_choose_factors(model_reader *r);

/* Gives experts to the layers with a router in the file, and a feed-forward to the others. */
void model_route_by_tensors(model_reader *r);

/* Marks unused tensors as known: in all layers; in one; or by a prefix. */
void model_ignore_tensor(model_reader *r, decoder_tensor t);
void model_ignore_in_layer(model_reader *r, decoder_tensor t, int64_t layer);
void model_ignore_prefix(model_reader *r, const char *prefix);

void model_error(model_reader *r, diag_code code, const char *format, ...) PRINTF_LIKE(3, 4);

/* Reports a key of the architecture. The text starts with the key's name without prefix. */
void model_bad_key(model_reader *r, const char *format, ...) PRINTF_LIKE(2, 3);

/* The three passes over a file: model_read_keys reads the keys of all architectures, sizes and
 * RoPE; model_check_keys reports unknown keys; model_read_tensors reports tensors that are missing,
 * unused, or of another shape or type. */
void model_read_keys(model_reader *r, const model_options *options);
void model_check_keys(model_reader *r);
void model_read_tensors(model_reader *r);

/* Returns a feature, and its key, that the architecture lacks here; NULL: unknown. */
const char *model_missing_feature(model_reader *r, const char **key);

/* Makes a file in memory from the decoder's metadata and tensors, without data. Never closed. */
void model_file_of(arena *a, const decoder *d, gguf_file *file);
