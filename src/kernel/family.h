/* Kernel families: what each accepts, how it is launched and built, and what it computes.
 *
 * A family is one const struct; families.def lists them all. The spec parser, --help-family, the
 * header, the manifest and --verify read only these structs, so that every fact about a family is
 * in one place. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/diag.h"
#include "kernel/problem.h"
#include "kernel/target.h"

typedef struct ptx ptx;
typedef struct family family;

typedef enum operation {
#define OPERATION(id, ...) OP_##id,
#include "kernel/operation.def"
#undef OPERATION
    OP_COUNT
} operation;

/* Purposes of kernels, the groups of --list. */
typedef enum purpose {
    PURPOSE_PRODUCT,   /* matrix times vector */
    PURPOSE_QUANTIZED, /* quantized matrix times vector */
    PURPOSE_SEVERAL,   /* several products of one vector */
    PURPOSE_VECTORS,   /* vectors for products */
    PURPOSE_ATTENTION,
    PURPOSE_AROUND, /* other work of a decoder's step */
    PURPOSE_ALONE,  /* activations and copies as separate launches */
    PURPOSE_EXPERTS,
    PURPOSE_LATENT,
    PURPOSE_PIPELINE,
    PURPOSE_COUNT
} purpose;

/* Facts about an operation; operations[] is indexed by operation, see operation.def. */
typedef struct operation_info {
    const char *name;
    purpose purpose;
    const char *identity;
} operation_info;
extern const operation_info operations[OP_COUNT];

/* Returns true if an operation multiplies by experts: gate and up, or one matrix. */
bool operation_is_of_experts(operation op);

enum { DIMS_STATIC, DIMS_DYNAMIC };        /* dims: k, n, m built in, or parameters of the kernel */
enum { ROWS_FIXED, ROWS_RUN_TIME };        /* rows of X and Y: m, or any number */
enum { VARIANT_PLAIN, VARIANT_AUTO };      /* variant: as named, or as cost_choose finds */
enum { SEQ_LEN_DIRECT, SEQ_LEN_INDIRECT }; /* seq_len: a number, or a pointer to it */
enum { CHUNKING_FREE, CHUNKING_FIXED };    /* chunks: sized for the grid, or of chunk_size */
enum { TRIGGER_FIRST, TRIGGER_WAITED }; /* the next launch may start at once, or after the wait */
enum { STATE_CHANGING, STATE_SETTLED }; /* tokens, positions, lengths: see overlap below */
enum { KV_FUSED, KV_SEPARATE };         /* K and V by one kernel if there is one, or by two */
enum { MAX_MATRICES = 4 };              /* matrices of an instance with formats of their own */

/* A configuration of a family, for which one kernel is generated. With dynamic dims, k, n and m may
 * be 0 (not given); given values name and tune the kernel, which also runs other sizes. */
typedef struct instance {
    const family *family;
    const char *name; /* file stem, PTX entry, and C identifier after the prefix */
    location where;   /* place of its section in the spec */
    problem_shape shape;
    problem_options options;
    int64_t dims;         /* DIMS_ */
    int64_t rows_mode;    /* ROWS_; with ROWS_RUN_TIME, shape.m is the rows per block */
    int64_t seq_len_mode; /* SEQ_LEN_ */
    int64_t num_warps;
    int64_t outputs_per_block;
    int64_t weights_of[MAX_MATRICES]; /* format of each of several matrices, as weights */
    int64_t apart;                    /* pipelines: KV_ */
    int64_t quantized;                /* 1: x is given as q8_1 */
    int64_t weights;                  /* index in weights_choices */
    int64_t rows_per_warp;
    int64_t x_type, y_type; /* TYPE_ of the activations read, and of the result */
    int64_t stages;         /* stages of the copy pipeline */
    int64_t tile_rows;      /* rows of an expert per tile; 0: by its share of the rows */
    int64_t passes;         /* passes over x; 0: as few as fit, see launch_fit */
    int64_t splits;         /* split-K: parts of k in separate blocks; 0: one */
    int64_t kv_type;        /* KV_ */
    int64_t chunks;         /* maximum chunks of a sequence */
    int64_t chunking;       /* CHUNKING_ */
    int64_t chunk_limit;    /* maximum fixed-size chunks of a sequence; 0: no limit */
    int64_t trigger;        /* TRIGGER_ */
    int64_t state;          /* STATE_ */
    int64_t next;           /* bytes of the next launch's weights to prefetch into L2; 0 = off */
    int64_t variant;   /* VARIANT_; an AUTO instance is replaced by others and never generated */
    int64_t precision; /* PRECISION_ */

    target_set excluded;     /* targets of the spec without a kernel of this instance */
    const family *chosen_by; /* family whose variant = auto chose it; NULL: named in the spec */
    target_set chosen_for[PRECISION_COUNT]; /* targets it was chosen for, per precision */
} instance;

typedef struct choice {
    const char *word;
    const char *tag; /* in the instance's name, e.g. "" or "_indirect"; NULL: from the word */
} choice;

/* A list of choices. WORD: a choice whose tag is its word. */
#define CHOICES(...)   \
    {                  \
        __VA_ARGS__,   \
        {              \
            NULL, NULL \
        }              \
    }
#define WORD(text) \
    {              \
        text, NULL \
    }

typedef struct real_range {
    double min, max, def;
    const char *def_text; /* text of the default in help; NULL: the number */
} real_range;

typedef struct key {
    const char *name;
    const char *summary; /* short description for --help-family */
    size_t field;        /* offset in instance of its value: an int64_t, or a double if real */
    int64_t min, max;
    int64_t multiple_of;       /* divisor of valid values; 0 or 1: any value */
    bool of_weights;           /* a multiple of the weights' row unit, see key_multiple */
    bool of_out;               /* a multiple of a block of the format in out */
    bool of_blocks;            /* with of_weights: a multiple of a block, also for floats */
    size_t of_weights_in;      /* of_weights: field with the format; 0: the strictest of all */
    size_t of_weights_with;    /* of_weights: field that must be set; 0: none */
    size_t of_weights_without; /* of_weights: field that must not be set; 0: none */
    uint64_t allowed;          /* bit mask of accepted choices; 0: all */
    int64_t def;               /* default; 0 if required */
    size_t like;               /* field of the instance that is the default; 0: none */
    bool required;
    bool at_run_time;       /* with dynamic dims: optional, and passed as NAME_dim */
    size_t counted_with;    /* field of the instance that, if set, makes the number a parameter
                              NAME_val; the key is then the number per block; 0: none */
    bool zero_is_none;      /* left out of the name if 0 */
    size_t only_with;       /* field that must be set for the key to matter; 0: none */
    size_t or_with;         /* second field with which the key matters; 0: none */
    size_t unless;          /* field that must be 0 for the key to matter; 0: none */
    const char *tag;        /* numbers: "k" makes "_k4096" */
    const choice *choices;  /* words: ends with { NULL, NULL }; the value is the index */
    unsigned sm;            /* oldest architecture with choices other than the first; 0: all */
    int64_t specific_from;  /* values from here on require the target specific_sm with suffix "a" */
    unsigned specific_sm;   /* 0: all values run on all targets */
    const real_range *real; /* real numbers: replaces min, max, def; default not in the name */
} key;

#define KEY_END \
    {           \
        0       \
    }
/* A family's keys. */
#define KEYS(...)         ((const key[]){ __VA_ARGS__, KEY_END })
#define KEY_FIELD(member) offsetof(instance, member)
/* A pointer to a real_range with the given fields. */
#define RANGE(...) ((const real_range){ __VA_ARGS__ })
/* Keys of whole numbers, of words (choices) and of real numbers (a real_range). Further fields
 * follow the last argument: KEY_NUMBER("n", "rows", shape.n, 1, 99, .required = true). */
#define KEY_NUMBER(id, said, member, least, ...)                                                  \
    {                                                                                             \
        .name = id, .summary = said, .field = KEY_FIELD(member), .min = least, .max = __VA_ARGS__ \
    }
#define KEY_WORD(id, said, member, ...)                                                 \
    {                                                                                   \
        .name = id, .summary = said, .field = KEY_FIELD(member), .choices = __VA_ARGS__ \
    }
#define KEY_REAL(id, said, member, word, ...)                                                      \
    {                                                                                              \
        .name = id, .summary = said, .field = KEY_FIELD(member), .tag = word, .real = &__VA_ARGS__ \
    }
#define KEY_K(multiple)                                                                      \
    KEY_NUMBER("k", "columns of W", shape.k, multiple, INT32_MAX, .multiple_of = (multiple), \
               .required = true, .at_run_time = true, .tag = "k")
#define KEY_N                                                                                  \
    KEY_NUMBER("n", "rows of W", shape.n, 1, INT32_MAX, .required = true, .at_run_time = true, \
               .tag = "n")
/* The format of W, one of weights_choices, and a k that is a multiple of its row unit. */
#define KEY_WEIGHTS KEY_WORD("weights", "format of W", weights, weights_choices, .required = true)
#define KEY_K_OF_WEIGHTS                                                                         \
    KEY_NUMBER("k", "columns of W", shape.k, 1, INT32_MAX, .of_weights = true, .required = true, \
               .at_run_time = true, .tag = "k")
#define KEY_DIMS KEY_WORD("dims", "sizes built in, or parameters", dims, dims_choices)
#define KEY_NUM_WARPS(default_warps) \
    KEY_NUMBER("num_warps", "warps per block", num_warps, 1, 32, .def = (default_warps), .tag = "w")
/* Rows of X and Y multiplied at once. m is always built in, since a kernel has a register sum per
 * row. With rows = run_time any number of rows is allowed: the grid's y has a block per m rows. */
#define KEY_M(least)                                                                \
    KEY_NUMBER("m", "rows of X and Y", shape.m, least, MAX_VECTORS, .def = (least), \
               .counted_with = KEY_FIELD(rows_mode), .tag = "m")
/* Any number of rows of X: the grid's y has a block per MAX_VECTORS rows. */
#define KEY_ANY_M                                                   \
    KEY_NUMBER("m", "rows of X and Y", shape.m, 1, 65535, .def = 2, \
               .counted_with = KEY_FIELD(rows_mode), .tag = "m")
/* Rows of a kernel with at least one block per row. */
#define KEY_ROW_COUNT KEY_NUMBER("m", "rows", shape.m, 1, 65535, .def = 1, .tag = "m")
/* Token ids of each row's sequence in device memory: the one at position t is t % history. */
#define KEY_HISTORY(said) \
    KEY_NUMBER("history", said, options.history, 0, 1 << 20, .zero_is_none = true, .tag = "history")
#define KEY_ROWS KEY_WORD("rows", "rows of X, Y: m, or a parameter", rows_mode, rows_choices)
enum { MAX_VECTORS = 8 };
#define KEY_VARIANT \
    KEY_WORD("variant", "auto: the fastest family for target and shape", variant, variant_choices)
#define KEY_PRECISION                                                            \
    KEY_WORD("precision", "for auto; q8: x may be rounded to 8 bits", precision, \
             precision_choices, .def = PRECISION_Q8)
#define KEY_EPSILON                                                                     \
    KEY_REAL("epsilon", "added to the mean square of the norm", options.epsilon, "eps", \
             epsilon_range)
extern const real_range epsilon_range;
#define KEY_TRIGGER                                                                  \
    KEY_WORD("trigger", "next launch may start at once, or after the wait", trigger, \
             trigger_choices)
#define KEY_STATE(said) KEY_WORD("state", said, state, state_choices)
/* Finished blocks prefetch the next launch's weights: gen/common/next.h. NEXT_WEIGHTS is last. */
enum { NEXT_MULTIPLE = TARGET_LINE, NEXT_MOST = 1 << 30 };
#define KEY_NEXT                                                                            \
    KEY_NUMBER("next", "bytes to prefetch for the next launch; 0: off", next, 0, NEXT_MOST, \
               .multiple_of = NEXT_MULTIPLE, .zero_is_none = true, .tag = "next")
#define NEXT_WEIGHTS \
    IN(F32, next, "next/4", 16, .only_with = KEY_FIELD(next), .order = ORDER_FETCHED)
/* A factor, 1 by default. */
#define KEY_SCALE(said) KEY_REAL("scale", said, options.scale, "scale", factor_range)
extern const real_range factor_range;
enum { /* FORMAT rows of format.def, in the order of weights_choices */
#define FORMAT(id, ...) WEIGHTS_##id,
#include "kernel/format.def"
};
extern const choice dims_choices[], rows_choices[], variant_choices[], precision_choices[],
    seq_len_choices[], kv_type_choices[], out_choices[], weights_choices[], scaled_choices[],
    bias_choices[], residual_choices[], norm_choices[], activation_choices[], layout_choices[],
    epilogue_choices[], times_choices[], gamma_choices[], out_scale_choices[], kv_choices[],
    approximation_choices[], broadcast_choices[], trigger_choices[], state_choices[];
/* Types of activations, in the order of out_choices. */
enum { TYPE_F32, TYPE_F16, TYPE_BF16, TYPE_Q8_1, TYPE_COUNT };

/* Kind of a kernel's parameter: a pointer to an output, input or scratch buffer, or a u32. */
typedef enum param_kind {
    PARAM_NONE,
    PARAM_OUT,
    PARAM_IN,
    PARAM_SCRATCH, /* communication between blocks; not read by the caller */
    PARAM_U32,     /* a number of 4 bytes: f32 if the format says so */
    PARAM_SEQ_LEN, /* in a family's table only: number or pointer, by the instance */
} param_kind;

/* Random values of an input, for tests. */
typedef enum param_random {
    RANDOM_ANY,
    RANDOM_FITTED,   /* from the family's fit: few values are valid */
    RANDOM_ARRANGED, /* any values, arranged by the family's fit */
    RANDOM_SMALL,    /* floats of about 0.05, like weights of other formats */
    RANDOM_STEEP     /* floats so large in every second head that few positions count */
} param_random;

/* When a launch may read the parameter, relative to its wait for earlier launches: see overlap. */
typedef enum param_order {
    ORDER_USUAL,   /* weights before the wait, all others after it */
    ORDER_WRITTEN, /* weights that a launch may write: after it */
    ORDER_SETTLED, /* positions, lengths, addresses: before it if state = settled */
    ORDER_FETCHED  /* only prefetched into L2, the values are not used */
} param_order;

typedef enum param_data {
    DATA_PLAIN,
    DATA_CACHE,     /* K or V in the instance's kv_type; positions from seq_len on are not read,
                          and other rows' positions are not written */
    DATA_UPDATED,   /* an output that is read first and, except for the reference's values, left
                          unchanged */
    DATA_SEQUENCES, /* the number of each row's sequence */
    DATA_PAGES,     /* the numbers of the pages of each sequence */
    DATA_TILES, /* tiles of run_rows rows or fewer of one sequence: first row + 2^16 rows, or 0 */
    DATA_PARTIAL_ROWS, /* partial results of attention: head_dim sums of 2^(s - max) v, max, the sum
                          of 2^(s - max), two zeros; s is a score in units of log 2 */
    DATA_ZEROED,       /* scratch: 0 before the first launch, and after each launch */
    DATA_PARTLY        /* output of which only the reference's values are written */
} param_data;

typedef struct param {
    const char *name;
    param_kind kind;
    format format;
    const char *unit;       /* formula of the values of a unit, e.g. a row; NULL: 1 */
    bool weights;           /* its format is the key weights, or weights_of[matrix - 1] */
    unsigned matrix;        /* 0: the key weights */
    struct {                /* condition for the parameter's presence */
        size_t only_with;   /* field of the instance that must not be 0; 0: always present */
        uint64_t only_of;   /* bit mask of accepted values below 64; 0: all but 0 */
        int64_t only_above; /* lower bound of that field, exclusive; 0: none */
        size_t or_with[2];  /* fields that, if set, replace only_with; 0: none */
        size_t also_with;   /* second field that must not be 0; 0: none */
        size_t unless;      /* field that must be 0; 0: none */
    };
    param_random random;
    param_order order;
    param_data data;
    bool of_others;      /* output of the blocks counted by launch.others */
    size_t type_in;      /* field of the instance with its TYPE_; 0: format */
    const char *holds;   /* description of its values, or NULL if the name suffices */
    const char *values;  /* pointers: formula of the number of values, e.g. "n*k" */
    const char *touched; /* buffers read in part: formula of the values read per row; updated
                            buffers: also of the values written; NULL: all */
    bool by_expert;      /* touched is per expert in use, not per row */
    bool touched_once;   /* touched is per launch */
    const char *bytes;   /* formula of the bytes, e.g. "n*k/256*144"; set by instance_params */
    unsigned align;      /* alignment in bytes that the kernel's loads need */
    size_t row;          /* field with a row's values: all rows limit align; 0: no rows */
    const char *size;    /* numbers: the size that it passes, "k", "n", "seq_len" */
} param;

/* Parameters: type, name, values, alignment, fields: IN(F32, x, "m*k", 16, .random = …). */
#define OUT(type, id, count, ...)     PARAM(OUT, type, id, count, __VA_ARGS__)
#define IN(type, id, count, ...)      PARAM(IN, type, id, count, __VA_ARGS__)
#define SCRATCH(type, id, count, ...) PARAM(SCRATCH, type, id, count, __VA_ARGS__)
#define PARAM(how, type, id, count, ...)                                            \
    {                                                                               \
        .name = #id, .kind = PARAM_##how, .format = FORMAT_##type, .values = count, \
        .align = __VA_ARGS__                                                        \
    }
#define QUERIES(count) IN(F32, q, count, 16, .random = RANDOM_STEEP)
#define WEIGHTS(id, ...)                                                                   \
    {                                                                                      \
        .name = #id, .kind = PARAM_IN, .weights = true, .align = 16, .values = __VA_ARGS__ \
    }
/* Rows of partial results, one per chunk of positions: see partial_rows. */
#define PARTIAL_ROWS(how, count) PARTIAL_ROWS_WITH(how, count, 0)
#define PARTIAL_ROWS_WITH(how, count, with)                                    \
    PARAM(how, F32, partials, count "*(head_dim+4)", 16, .unit = "head_dim+4", \
          .data = DATA_PARTIAL_ROWS, .only_with = with)
#define COUNTERS(id, ...)                                                                          \
    {                                                                                              \
        .name = #id, .kind = PARAM_SCRATCH, .data = DATA_ZEROED, .format = FORMAT_U32, .align = 4, \
        .values = __VA_ARGS__                                                                      \
    }
#define IN_WHERE(field_name, type, id, count, ...) \
    IN(type, id, count, __VA_ARGS__, .only_with = KEY_FIELD(options.field_name))
/* An f32 passed by value, with one value of an option. Numbers follow all pointers. */
#define NUMBER_WHERE(field_name, value, id, said)                                         \
    {                                                                                     \
        .name = #id, .kind = PARAM_U32, .format = FORMAT_F32, .size = #id, .holds = said, \
        .only_with = KEY_FIELD(options.field_name), .only_of = UINT64_C(1) << (value)     \
    }
/* Numbers with few valid values, from the family's fit. */
#define IN_FITTED(type, id, count, alignment) \
    IN(type, id, count, alignment, .random = RANDOM_FITTED)
/* Inputs from the state of a step. */
#define ROW_POSITIONS    IN(U32, positions, "m", 4, .random = RANDOM_FITTED, .order = ORDER_SETTLED)
#define SEQUENCE_LENGTHS IN(U32, seq_lens, "m", 4, .order = ORDER_SETTLED)
/* The cache of K or V of a single sequence. */
#define KV_CACHE(id) \
    IN(F32, id, "num_kv_heads*max_seq_len*head_dim", 16, .data = DATA_CACHE, .unit = "head_dim")
/* A pool of K or V with the pages of all sequences. The formula has room for m sequences of
 * max_seq_len positions; a pool may have any number of pages. The sizes are those of CACHE_PAGES. */
#define KV_POOL(how, id) KV_POOL_WITH(how, id, .unit = "head_dim")
#define KV_POOL_WITH(how, id, ...)                                                             \
    PARAM(how, F32, id, "m*seq_pages*num_kv_heads*page_rows*head_dim", 16, .data = DATA_CACHE, \
          __VA_ARGS__)
/* The sequence of each row, and the pages of each sequence. Without the key `page` a sequence has
 * one page, whose number is the sequence's. */
#define ROW_SEQUENCES           ROW_SEQUENCES_WITH(.order = ORDER_SETTLED)
#define ROW_SEQUENCES_WITH(...) IN(U32, sequences, "m", 4, .data = DATA_SEQUENCES, __VA_ARGS__)
#define PAGE_TABLE              PAGE_TABLE_WITH(.order = ORDER_SETTLED)
#define PAGE_TABLE_WITH(...)                                                                   \
    IN(U32, pages, "m*seq_pages", 4, .data = DATA_PAGES, .only_with = KEY_FIELD(options.page), \
       __VA_ARGS__)
/* Buffers of m sequences that the kernel updates, `count` values each. */
#define UPDATED(type, id, count, ...) \
    OUT(type, id, "m*" count, 16, .data = DATA_UPDATED, .touched = __VA_ARGS__)
#define PARAM_END KEY_END
/* A family's parameters. */
#define PARAMS(...) ((const param[]){ __VA_ARGS__, PARAM_END })

/* A named part of a launch's formulas. Later formulas may use the name. */
typedef struct term {
    const char *name, *formula;
} term;
#define TERMS(...) ((const term[]){ __VA_ARGS__, { NULL, NULL } })

/* A size for formulas that a function computes from an instance. */
typedef struct derived_size {
    const char *name;
    int64_t (*value)(const instance *in);
    const char *said; /* description for --help-family */
} derived_size;
#define SIZES(...) ((const derived_size[]){ __VA_ARGS__, { NULL, NULL, NULL } })

/* Dependent launches (programmatic stream serialization). On sm_90 and newer, if the host asks for
 * it, a kernel may start before its predecessor in the stream has finished. It signals at its start
 * that the next launch may start. All its threads wait for the predecessor (griddepcontrol.wait)
 * before they write, and before they read anything but weights and the module's tables, which
 * nothing writes while steps run. ptx/overlap.c refuses a kernel that breaks this rule.
 *
 * So no launch finishes before its predecessor, and reads and writes are ordered as without
 * overlap, if each kernel of the chain waits. The first launch of a step is an ordinary launch. An
 * ordinary successor, such as a copy or a user's kernel, starts when the last launch has finished.
 *
 * The last launch of a step writes the state for the next step: tokens, positions, lengths. A
 * kernel with trigger = waited first waits and then signals. If the first launch of a step is such
 * a kernel or an ordinary launch, all other launches of the step start after the previous step has
 * finished. With state = settled they read positions, lengths and cache addresses before their
 * wait, and prefetch cache rows into L2. In the step, only the last launch may write the settled
 * state. */
typedef enum overlap {
    NO_OVERLAP,
    WAITS_FIRST, /* before all that the family builds */
    WAITS_ITSELF /* where the family builds it, after other work */
} overlap;

/* Launch geometry as formulas over the family's keys and run-time values, see formula.h. */
typedef struct launch {
    const char *block;   /* threads per block, one dimension */
    const char *grid[3]; /* blocks in x, y, z; NULL: 1 */
    const char *shared;  /* bytes of static shared memory; NULL: none */
    const char *dynamic_shared;
    const term *terms;         /* terms of these formulas; ends with { NULL, NULL }. NULL: none */
    const derived_size *sizes; /* derived sizes in formulas; ends with { NULL }. NULL: none */
    const char *roomier;       /* family for GPUs with too little shared memory; NULL: none */
    const char *rows;          /* rows of W per iteration of a block with a stride loop; NULL: 1 */
    const char *teams;         /* iterations that a block does at once; NULL: 1 */
    /* Several matrices: returns the block in x of a row of Y. NULL: it follows from rows. */
    int64_t (*block_of_row)(const instance *in, int64_t row, int64_t blocks);
    bool dealt;         /* inputs decide which results a block computes */
    bool weights_first; /* a warp's first weights are prefetched into L2 before x is read */
    bool loads_at_once; /* no load depends on a loaded number or address */
    const char *others; /* formula: blocks at the end of the grid's x that compute another output
                           together, and no values of the first; NULL: none */
    overlap overlap;
    unsigned registers; /* maximum registers per thread (.maxnreg); 64 allows 32 warps per SM */
} launch;

struct family {
    const char *name;
    const char *summary;  /* one line for --list */
    const char *computes; /* formula in one line: "y[n] = W[n,k] x[k]" */
    operation op;
    format weights, activations; /* formats for queries; FORMAT_NONE: none, or by a key */
    bool quantizes;              /* rounds x to 8 bits like q8_1, unless the weights are floats */
    bool halves;                 /* rounds x and W to f16 */
    int64_t (*block_rows)(const instance *in); /* rows of X per block, at most; NULL: MAX_VECTORS */
    bool whole_lines; /* loads W in 16-byte lines, including the last, which W's bytes contain */
    bool by_runs;     /* neighbouring rows of a sequence share tiles, which an input lists */
    bool same_bits;   /* a row's results are bit-identical for any grid and other rows */
    size_t same_bits_with;   /* same_bits only if this field of the instance is not 0; 0: always */
    unsigned sm;             /* oldest architecture with the needed instructions; 0: all */
    int preference;          /* rank among families that fit a query; the highest is found */
    const char *cache_heads; /* formula: query heads per load of a cache value, if a block loads it
                                for all of its query heads of a KV head; NULL: one */
    const char *each_matrix; /* several matrices: family that computes one of them; NULL: none */
    const char *counted_as;  /* family whose cost figures it uses; NULL: its own */
    const char *of_rows; /* family that computes the same from rows of q8_rows, with the rest of a
                            norm in their factors; NULL: none */
    const key *keys;     /* ends with KEY_END */
    const param *params; /* outputs, weights, inputs, numbers; ends with PARAM_END */
    launch launch;

    /* Checks relations between keys. Returns NULL, or a message, with the key in *blamed. */
    const char *(*check)(const instance *in, arena *a, const char **blamed);

    void (*build)(ptx *p, const instance *in);

    const struct pipeline_step *steps; /* pipelines only: the steps, instead of build */

    /* Makes random inputs valid. NULL: all random values are valid. */
    void (*fit)(const problem *p, unsigned input, void *bytes, uint64_t values);
    reference *reference;
    bool reference_is_whole; /* computes a whole output, however few values are requested */
    double tolerance;        /* maximum error of correct results, relative to ref_value.magnitude */
};

/* Fields of a family of f32 x whose results have the same bits in any grid and among any rows. */
#define F32_FAMILY(of, built_by, computed_by, bound)                           \
    .op = of, .activations = FORMAT_F32, .same_bits = true, .build = built_by, \
    .reference = computed_by, .tolerance = bound

/* Returns a message about the value of a key: the result of a family's check. */
#define blame_key(a, blamed, key, ...) (*(blamed) = (key), arena_format(a, __VA_ARGS__))

typedef enum family_id {
#define FAMILY(id, name) FAMILY_##id,
#include "kernel/families.def"
#undef FAMILY
    FAMILY_COUNT
} family_id;

/* All families by family_id, in the order of --list; ends with NULL. */
extern const family *const families[FAMILY_COUNT + 1];

const family *family_find(const family *const *list, const char *name);
const key *family_key(const family *f, const char *name);

/* Returns true if a family accepts rows of x with a factor each, from f16_rows or q8_rows. */
bool family_takes_rows(const family *f);

/* Returns true if a kernel computes a gate and the rows that it gates. */
bool instance_is_gated(const instance *in);

/* Returns the format of W, or FORMAT_NONE if there is no W. */
format instance_weights(const instance *in);

/* Return the formats of x and y. */
format instance_activations(const instance *in);
format instance_result(const instance *in);

/* Returns the format of x inside the product: q8_1 or f16 if the family rounds it, else its own. */
format instance_precision(const instance *in);

/* Returns an instance with one of several matrices: its format as weights, its rows as n. */
instance instance_matrix(const instance *in, unsigned matrix);

/* Returns the format with the largest row unit; the units of all formats divide each other. */
format instance_strictest_weights(const instance *in);

/* Returns the index of a format in weights_choices, or -1. */
int64_t instance_weights_index(format weights);

/* Returns true if a key accepts a choice. */
bool key_takes_choice(const key *k, const choice *c);

/* Returns true if a key has an effect with the instance's other values. */
bool key_matters(const instance *in, const key *k);

/* Return true if the instance's value of a key is valid; if all its values are. */
bool instance_takes(const instance *in, const key *k);
bool instance_takes_all(const instance *in);

/* Returns true if a key's values are multiples of the row unit of its weights. */
bool key_is_of_weights(const instance *in, const key *k);

/* Returns the divisor of a key's valid values, at least 1. */
int64_t key_multiple(const instance *in, const key *k);

/* Returns the format that decides key_multiple. */
format key_weights(const instance *in, const key *k);

/* Returns true if the caller passes a size at each launch. */
bool key_is_passed(const instance *in, const key *k);

/* Return the minimum and maximum of a number. */
int64_t key_least(const instance *in, const key *k);
int64_t key_most(const instance *in, const key *k);

/* Returns the largest valid number of a key on a target. */
int64_t key_most_for(const key *k, const target *t);

/* Returns a key's default, or the first choice that a required key accepts, without regard to like. */
int64_t key_default(const key *k);

/* Returns a key's default with the instance's other values: for a key with like, that field. */
int64_t instance_default(const instance *in, const key *k);

/* Return and set a key's value in an instance; real numbers as their bits. */
int64_t instance_value(const instance *in, const key *k);
void instance_set(instance *in, const key *k, int64_t value);

/* Returns true if a target has the instructions for the family and its keys' values. */
bool instance_suits(const instance *in, const target *t);

/* Returns an instance with every key at its own default. */
instance instance_of_defaults(const family *f);

/* Convert a real number to its bits, which compare like positive numbers, and back. */
int64_t real_bits(double number);
double real_of_bits(int64_t bits);

/* Returns the shortest decimal that reads back as the number: "50", "0.125", "1e-5". */
const char *real_text(arena *a, double number);

/* Returns a key's value as in a spec: "4096", "dynamic", "1e-5". */
const char *instance_value_text(arena *a, const instance *in, const key *k);

/* Returns the keys and values that matter, without usual ones: "k=4096 n=4096 num_warps=2". */
const char *instance_configuration(arena *a, const instance *in);

/* Returns the instance's name: the family and the tags of its values. */
const char *instance_make_name(arena *a, const instance *in);

/* Returns true if the family promises bit-identical results for an instance. */
bool instance_same_bits(const instance *in);

/* Returns a bit mask of the precisions for which variant = auto chose the instance on a target. */
unsigned instance_chosen(const instance *in, const target *t);

/* Merges targets and choices of another instance with the same name into an instance. */
void instance_merge(instance *in, const instance *other);

/* Returns "in", "out", "inout", "scratch" or "zeroed", from the caller's view. */
const char *param_direction(const param *p);

/* Returns the format of K and V. */
format kv_format(const instance *in);

/* Return the rows of a page per KV head: page, ring or max_seq_len; and the pages of max_seq_len
 * positions. */
int64_t kv_page_rows(const instance *in);
int64_t kv_pages(const instance *in);

/* Writes a kernel's parameters: its family's table, k_dim, n_dim and m_dim of dynamic dims, and
 * m_val if m is counted at run time. Returns their number, at most MAX_PARAMS. */
size_t instance_params(arena *a, const instance *in, param params[MAX_PARAMS]);
