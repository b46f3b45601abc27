/* The table of a [decoder] section's keys with the fields of struct decoder that they set. Parser,
 * printer, --help-family and messages use it. Below it, the reader of a section. */
#pragma once

#include "input/section.h"
#include "kernel/family.h"
#include "model/decoder.h"

typedef enum setting_kind {
    SETTING_VALUE,    /* number or word, in the key's field */
    SETTING_NAME,     /* architecture: any name */
    SETTING_BY_LAYER, /* number, and others for some layers: in decoder_layer fields */
    SETTING_LAYERS,   /* list of layers: a byte in decoder_layer is 1 */
    SETTING_ROWS,     /* list of tokens per step */
    SETTING_TENSORS,  /* list of words, each a tensor that exists */
    SETTING_RENAMED,  /* list of words, each a tensor with its other name in the file */
    SETTING_TENSOR,   /* two words; the second means that the tensor exists */
    SETTING_OUTPUT,   /* own or tied output matrix */
    SETTING_FACTORS,  /* tensor of RoPE's factors */
    SETTING_WEIGHTS,  /* format */
    SETTING_FORMATS,  /* formats of one tensor by layer; the key ends with its name */
    SETTING_METADATA, /* key of the file; the key ends with its name */
} setting_kind;

/* The condition under which a key is valid. All parts that are set must hold. */
typedef struct setting_case {
    size_t number; /* offset of a decoder field that must be positive; 0 = no such field */
    size_t choice; /* offset of a field whose value is in the set of bits `chosen`; 0 = no field */
    uint32_t chosen;
    tensor_part part; /* a layer has the part; without layers, `usual` decides. 0 = any decoder */
    bool (*holds)(const decoder *d);
    uint32_t scalings; /* set of ROPE_ scalings of rope[is_windowed], which has a style; 0 = any */
    bool (*rope_holds)(const rope_options *rope); /* applied to rope[is_windowed] */
    bool is_windowed;
    const char *said; /* text for messages: "window" */
    bool usual;       /* true if it holds by default */
} setting_case;

/* A key of [decoder], in struct decoder; its default if its condition does not hold. */
typedef struct setting {
    key key;
    setting_kind kind;
    const setting_case *when;                           /* NULL = always valid */
    int64_t (*derive)(const decoder *d, int64_t layer); /* default; layer 0 for single values */
    tensor_part part;     /* SETTING_BY_LAYER: layers in which the value matters */
    const char *said;     /* the default in words; NULL = print its value */
    const char *range;    /* example of a value for the help; NULL = range of key */
    const uint8_t *words; /* tensor of each choice; of SETTING_TENSOR the only one */
    bool one_is_zero;     /* a factor of 1 is stored as 0 */
    bool shown;           /* printed even if default, because users may change it */
    bool kibi;            /* printed as a multiple of 1024 if possible */
    bool is_free;         /* not compared with metadata: the user or the tensors decide it */
} setting;

/* The table, ended by a key without name. */
extern const setting decoder_settings[];

extern const char NO_LAYERS[];       /* "none", an empty list of layers */
extern const char FORMATS_PREFIX[];  /* "weights." */
extern const char METADATA_PREFIX[]; /* "metadata." */

/* Return a value, of a layer or (layer 0) of the decoder. A layer list's values are 0 and 1. */
int64_t setting_value(const setting *s, const decoder *d, int64_t layer);

/* Stores a value; a factor of 1 as 0 with one_is_zero. */
void setting_store(const setting *s, decoder *d, int64_t layer, int64_t value);
int64_t setting_default(const setting *s, const decoder *d, int64_t layer);

/* Returns the layer itself: the default of cache_layer. */
int64_t derive_own_layer(const decoder *d, int64_t layer);

/* Returns true if a layer's value has an effect. */
bool setting_has_layer(const setting *s, const decoder *d, int64_t layer);

const char *setting_text(arena *a, const setting *s, int64_t value);

/* Returns the default as --help-family shows it. */
const char *setting_default_text(arena *a, const setting *s);

/* Returns true if the key is valid with the values of earlier keys. */
bool setting_matters(const setting *s, const decoder *d);

/* Returns "weights.TENSOR". */
const char *formats_key(arena *a, decoder_tensor t);

/* Returns true if no earlier tensor has the same name, among the decoder's or (d = NULL) all. */
bool tensor_is_first(const decoder *d, decoder_tensor t);

bool decoder_has_matrix(const decoder *d, unsigned t);

/* Returns the number of layers that may have a tensor; 1 for tensors of the model. */
int64_t decoder_copies(const decoder *d, unsigned t);

/* Returns the format of a tensor without a key: f32 for a router, else the common format. */
format tensor_usual_format(unsigned t, format common);

typedef struct reader {
    arena *arena;
    diags *diags;
    const section *section;
    decoder *out;
    VEC(const char *) names; /* valid keys; with weights.TENSOR of all matrices */
    bool damaged;            /* a value was wrong; dependent keys are not checked */
} reader;

/* Returns the first entry of a key, or NULL. */
const entry *reader_entry(const reader *r, const char *name);

/* Returns the location for a problem with a key: its value, or if absent the section's name. */
location reader_blame(const reader *r, const char *name);

/* Reads a list of layer numbers. Returns false after a problem, or if there are none. */
bool reader_layers(const reader *r, const entry *e, bool set[DECODER_MOST_LAYERS]);

/* Reads the value of one item with a key's rules. Returns false after a problem. */
bool reader_item(const reader *r, const key *k, const item *i, int64_t *out);

/* A list of values by layer while it is read. */
typedef struct layered {
    reader *reader;
    const entry *entry;
    const setting *set_number;          /* the setting of numbers; NULL = formats */
    decoder_tensor tensor;              /* any tensor of the name */
    int64_t layers;                     /* number of layers, 1 for a single tensor */
    bool single;                        /* values do not differ by layer */
    const char *name, *thing, *example; /* for messages */
    bool (*read)(const struct layered *l, const item *word, int64_t *out);
    /* Sets a layer's value. Returns false if the layer has no such value. */
    bool (*set)(const struct layered *l, int64_t layer, int64_t value);
    bool has_rest; /* an item without layers: the value of all other layers */
    int64_t rest;
    bool named[DECODER_MOST_LAYERS]; /* layers with a value of their own */
} layered;
void layered_read(layered *l);

/* Reads the formats of the decoder's matrices: weights = FORMAT for all, with exceptions by tensor
 * and layer: weights.TENSOR = FORMAT, FORMAT: 0..3, 7, FORMAT: 5. */
void decoder_read_formats(reader *r);

/* Reports conflicts between valid keys. */
void decoder_check(const reader *r);
