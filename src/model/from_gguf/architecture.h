/* What an architecture is to the reader of models, and what its file may use. */
#ifndef PTXGEN_MODEL_FROM_GGUF_ARCHITECTURE_H
#define PTXGEN_MODEL_FROM_GGUF_ARCHITECTURE_H

#include "base/diag.h"
#include "model/from_gguf/model.h"
#include "model/gguf/gguf.h"

/* A key that was read, or looked for. */
typedef struct model_note {
    decoder_key key; /* its name without the architecture's prefix */
    bool is_there, is_required;
} model_note;

typedef struct model_reader {
    arena *arena;
    diags *diags;
    const gguf_file *file;
    location where; /* the file */
    const struct architecture *architecture;
    bool *known_keys, *known_tensors; /* of the file's: those that were read, or say nothing */
    VEC(model_note) notes;            /* in the order of reading, each key once */
    VEC(const char *) ignored;        /* names of tensors */
    model *out;
} model_reader;

/* What a model may be besides dense layers with softmax attention. */
enum {
    FEATURE_EXPERTS = 1,
    FEATURE_EXPERTS_ALWAYS = 2, /* it has to have them */
    FEATURE_LATENT = 4,
    FEATURE_RECURRENT = 8,
    FEATURE_NEXTN = 16 /* last layers predict further tokens: those are left out */
};

/* Rows of an expert's ffn_up where no key says them: there has to be one; as many as all
 * feed-forwards have; as many as those shared out among the experts of a token. */
enum { EXPERT_ROWS_OWN, EXPERT_ROWS_OF_ALL, EXPERT_ROWS_SHARED_OUT };

/* The style and activation hold for all layers; what an architecture does not say is as of a llama:
 * ROPE_NORM, ACTIVATION_SILU, GATING_SOFTMAX. Tensors are those besides what every decoder has;
 * each list ends with TENSOR_COUNT. Fused q, k and v may stand in place of three in all. */
typedef struct architecture {
    const char *name; /* general.architecture */
    int64_t rope_style, activation;
    double rope_base;  /* of files without rope.freq_base; 0: it is required, as models differ */
    unsigned features; /* FEATURE_, several */
    int64_t gating, experts_normed, expert_rows; /* where no key says them */
    const uint8_t *required, *optional;
    bool may_fuse_gate_up, may_fuse_experts, has_long_factors;
    void (*read_heads)(model_reader *r); /* sizes of heads; NULL: as usual */
    void (*adapt)(model_reader *r);      /* what is read besides the keys of all; NULL: nothing */
} architecture;

/* A list of tensors, and the end of a list of architectures. */
#define TENSOR_LIST(...)          \
    (const uint8_t[])             \
    {                             \
        __VA_ARGS__, TENSOR_COUNT \
    }
#define ARCHITECTURE_END \
    {                    \
        0                \
    }

/* The lists of all files in model/arch, each of which defines arch_FILE; ends with NULL. The build
 * makes it of the files' names. */
extern const architecture *const model_architecture_lists[];

/* Biases of the products of attention and ffn. */
extern const uint8_t model_biases[];

/* Keys by their names behind "ARCHITECTURE."; a key that is a list by layer has to have one value
 * for all. A problem is reported and the fallback returned. */
int64_t model_number(model_reader *r, const char *name, int64_t least, int64_t fallback);
int64_t model_required_number(model_reader *r, const char *name);
double model_real(model_reader *r, const char *name, double fallback);
double model_required_real(model_reader *r, const char *name);
bool model_flag(model_reader *r, const char *name, bool fallback);

/* Copies a string of the file; the end of a long one is left out. */
const char *model_shown_text(model_reader *r, gguf_string text);

/* The text of a key; fallback where it has none. */
const char *model_text(model_reader *r, const char *name, const char *fallback);

/* A number that may only be what others say, and why it is that. */
void model_require_same(model_reader *r, const char *name, int64_t number, const char *why);

/* A key of the architecture, without its prefix; NULL where there is none. The latter marks it as
 * known: it is about to be read. */
const gguf_key *model_find_key(const model_reader *r, const char *name);
const gguf_key *model_use_key(model_reader *r, const char *name);

/* Marks a key as known that means nothing here. */
void model_ignore_key(model_reader *r, const char *name);

/* Notes another text that means the same as a key's and as its default. */
void model_note_same(model_reader *r, const char *name, const char *same);

/* Notes the value of a key, which a file may leave out if that is the same as this value. */
void model_note_number(model_reader *r, const char *name, double value, bool is_optional);

/* Gives all layers a window but each last of period. A pattern in the file stands above that. */
void model_windows(model_reader *r, int64_t window, int64_t period);

/* Reads how queries grow with their position: q *= 1 + scale ln(1 + floor(position / length)). */
void model_read_temperature(model_reader *r);

/* RoPE without scaling and factors. */
rope_options model_plain_rope(int64_t style, int64_t dims);

/* Marks a tensor as known that the decoder leaves out. */
void model_ignore_tensor(model_reader *r, decoder_tensor t);

void model_error(model_reader *r, diag_code code, const char *format, ...) PRINTF_LIKE(3, 4);

/* Reports a key of the architecture, without whose prefix the text starts. */
void model_bad_key(model_reader *r, const char *format, ...) PRINTF_LIKE(2, 3);

/* How a file is read: keys that all architectures have, sizes, norms and RoPE; then those that
 * nothing has read and that say something are reported; then the tensors: those that are missing,
 * have another shape, or a type that has no format, and those that nothing uses are reported. */
void model_read_keys(model_reader *r, const model_options *options);
void model_check_keys(model_reader *r);
void model_read_tensors(model_reader *r);

/* Returns what a file asks for that no decoder here has: "a mixture of experts"; NULL: nothing
 * known. */
const char *model_missing_feature(model_reader *r, const char **key);

/* Makes a file of the decoder's metadata and of tensors without data. Nothing is to be closed. */
void model_file_of(arena *a, const decoder *d, gguf_file *file);

#endif
