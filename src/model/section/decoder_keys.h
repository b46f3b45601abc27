/* The keys of a [decoder] section, each with the field of struct decoder that it is for: reading,
 * printing, --help-family and what messages suggest follow this one table; and a section while it
 * is read. */
#ifndef PTXGEN_MODEL_SECTION_DECODER_KEYS_H
#define PTXGEN_MODEL_SECTION_DECODER_KEYS_H

#include "input/section.h"
#include "kernel/family.h"
#include "model/decoder.h"

typedef enum setting_kind {
    SETTING_VALUE,    /* a number, a real number or a word, in the key's field */
    SETTING_NAME,     /* the architecture's: a word that is free */
    SETTING_LAYERS,   /* a list of layers, a byte for each from the key's field on */
    SETTING_ROWS,     /* a list of numbers of tokens */
    SETTING_TENSORS,  /* a list of words, each a tensor that there is */
    SETTING_TENSOR,   /* the second of two words where there is a tensor */
    SETTING_OUTPUT,   /* whether there is an output matrix */
    SETTING_FACTORS,  /* which tensor has RoPE's factors */
    SETTING_WEIGHTS,  /* a format */
    SETTING_FORMATS,  /* formats of one tensor by layer; the key's name goes on with the tensor's */
    SETTING_METADATA, /* a key of the file; the key's name goes on with that */
} setting_kind;

/* What it takes for a key to mean something. */
typedef struct setting_case {
    size_t number; /* field of the decoder that is not 0; 0: any is */
    bool (*holds)(const decoder *d);
    bool (*rope_holds)(const rope_options *rope); /* of rope[is_windowed] */
    bool is_windowed;
    const char *said; /* "window" */
    bool usual;       /* it holds of decoders that say nothing of it */
} setting_case;

/* As in families, but that fields are offsets in struct decoder. A key whose case does not hold has
 * its default. */
typedef struct setting {
    key key;
    setting_kind kind;
    const setting_case *when; /* NULL: always */
    int64_t (*derive)(const decoder *d);
    const char *said;     /* what the default or derived value is; NULL: itself */
    const char *range;    /* what a value looks like; NULL: as the key says */
    const uint8_t *words; /* SETTING_TENSORS: the tensor of each choice; _TENSOR: that */
    bool all_layers;      /* SETTING_LAYERS: the default is all of them that are not recurrent */
    bool one_is_zero;     /* a factor of 1 is stored as 0 */
    bool shown;           /* printed even where it is the default: what a user may want to change */
    bool kibi;            /* printed as a multiple of 1024 where it is one */
    bool is_free; /* it says nothing of which model it is: the user decides, or the tensors do */
} setting;

/* In the order in which they are read and printed: a default comes after what it is made of. Ends
 * with a key without name. */
extern const setting decoder_settings[];

extern const char FORMATS_PREFIX[];  /* "weights." */
extern const char METADATA_PREFIX[]; /* "metadata." */

int64_t setting_value(const setting *s, const decoder *d);

/* A factor of 1 becomes 0 where the key says so. */
void setting_store(const setting *s, decoder *d, int64_t value);
int64_t setting_default(const setting *s, const decoder *d);

/* Returns a value as a section says it. */
const char *setting_text(arena *a, const setting *s, int64_t value);

/* What --help-family shows of it. */
const char *setting_default_text(arena *a, const setting *s);

/* Whether the key means something beside the values of those ahead of it. */
bool setting_matters(const setting *s, const decoder *d);

/* Returns the key of a tensor's formats. */
const char *formats_key(arena *a, decoder_tensor t);

/* Returns true if no tensor ahead of it has the same name, of those of a decoder or (NULL) of all.
 */
bool tensor_is_first(const decoder *d, decoder_tensor t);

/* Whether the tensor is a matrix that the decoder has. */
bool decoder_has_matrix(const decoder *d, unsigned t);

/* How many layers may have a tensor: 1 where it is the model's. */
int64_t decoder_copies(const decoder *d, unsigned t);

/* The format of a tensor that no key names, where the others have the common one: that of a router
 * is f32. */
format tensor_usual_format(unsigned t, format common);

typedef struct reader {
    arena *arena;
    diags *diags;
    const section *section;
    decoder *out;
    VEC(const char *) names; /* all that may stand in front of '=': of formats, those of matrices */
    bool damaged;            /* a value was wrong, so that what depends on others says nothing */
} reader;

/* Returns the first entry of a key; NULL where the section does not give it. */
const entry *reader_entry(const reader *r, const char *name);

/* Returns where to put a problem with a key: at its value, or where the section does not give it,
 * at the section's name. */
location reader_blame(const reader *r, const char *name);

/* Reads the formats of the matrices that the decoder has: weights = FORMAT for all of them, and
 * exceptions by tensor and layer, weights.TENSOR = FORMAT, FORMAT: 0..3, 7, FORMAT: 5. */
void decoder_read_formats(reader *r);

/* Reports what does not go together in a decoder each key of which is right. */
void decoder_check(const reader *r);

#endif
