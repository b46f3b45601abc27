/* Kernel families: what each accepts, how it is launched, how it is built and what it should
 * compute.
 *
 * A family is one const struct; families.def lists them all. The spec parser, --help-family, the
 * header, the manifest and --verify read nothing else, so that a fact about a family stands in one
 * place.
 */
#ifndef PTXGEN_KERNEL_FAMILY_H
#define PTXGEN_KERNEL_FAMILY_H

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

/* What kernels are for. */
typedef enum purpose {
    PURPOSE_PRODUCT,   /* matrix times vector, */
    PURPOSE_QUANTIZED, /* or times a quantized one */
    PURPOSE_SEVERAL,   /* several products of one vector */
    PURPOSE_VECTORS,   /* makes vectors for products */
    PURPOSE_ATTENTION,
    PURPOSE_AROUND, /* what a decoder's step does besides */
    PURPOSE_ALONE,  /* activations and copies, as launches of their own */
    PURPOSE_EXPERTS,
    PURPOSE_LATENT,
    PURPOSE_PIPELINE,
    PURPOSE_COUNT
} purpose;

/* Indexed by operation: see operation.def. */
typedef struct operation_info {
    const char *name;
    purpose purpose;
    const char *identity;
} operation_info;
extern const operation_info operations[OP_COUNT];

/* Return true if an operation makes a gate and what it gates; if it multiplies by experts on tensor
 * cores. */
bool operation_is_gated(operation op);
bool operation_is_of_experts(operation op);

enum { DIMS_STATIC, DIMS_DYNAMIC };        /* dims: k, n, m baked in, or parameters of the kernel */
enum { ROWS_FIXED, ROWS_RUN_TIME };        /* rows of X and Y: m of them, or any number */
enum { VARIANT_PLAIN, VARIANT_AUTO };      /* variant: as named, or as cost_choose finds */
enum { SEQ_LEN_DIRECT, SEQ_LEN_INDIRECT }; /* seq_len: a parameter, or a pointer to it */
enum { CHUNKING_FREE, CHUNKING_FIXED };    /* chunks: as suit the grid, or of chunk_size */
enum { TRIGGER_FIRST, TRIGGER_WAITED }; /* the next launch may start: at once, or behind the wait */
enum { STATE_CHANGING, STATE_SETTLED }; /* what one step leaves for the next: see overlap below */
enum { KV_FUSED, KV_SEPARATE };         /* kv: K and V by one kernel where there is one, or apart */
enum { MAX_MATRICES = 4 };              /* of an instance that may differ in format */

/* One configuration of a family: what one kernel is generated for. With dynamic dims the sizes k, n
 * and m may be 0 (not given); where they are given they name and tune the kernel, and other sizes
 * run as well. */
typedef struct instance {
    const family *family;
    const char *name; /* file stem, PTX entry and C identifier after the prefix */
    location where;   /* of its section in the spec */
    problem_shape shape;
    problem_options options;
    int64_t dims;         /* DIMS_ */
    int64_t rows_mode;    /* ROWS_; with RUN_TIME shape.m is how many a block takes at once */
    int64_t seq_len_mode; /* SEQ_LEN_ */
    int64_t num_warps;
    int64_t outputs_per_block;
    int64_t weights_of[MAX_MATRICES]; /* of several matrices each one's, as weights */
    int64_t apart;                    /* of pipelines: kernels that might be one, */
    int64_t quantized;                /* x given as q8_1 */
    int64_t weights;                  /* index in weights_choices */
    int64_t rows_per_warp;
    int64_t x_type,
        y_type;          /* TYPE_ of the activations that a kernel reads, and of what it writes */
    int64_t stages;      /* of what is copied ahead */
    int64_t tile_rows;   /* of an expert, multiplied at once; 0: as its share of rows says */
    int64_t passes;      /* that x comes in; 0: as few as fit, see launch_fit */
    int64_t splits;      /* parts of k that blocks of their own multiply; 0: one */
    int64_t kv_type;     /* KV_ */
    int64_t chunks;      /* a sequence is split into, at most */
    int64_t chunking;    /* CHUNKING_ */
    int64_t chunk_limit; /* of fixed chunks of a sequence; 0: none */
    int64_t trigger;     /* TRIGGER_ */
    int64_t state;       /* STATE_ */
    int64_t next;        /* bytes of what the launch behind reads first; 0: not fetched for it */
    int64_t variant;     /* VARIANT_; AUTO stands for other instances and is never generated */
    int64_t precision;   /* PRECISION_ */

    target_set excluded;     /* those of the spec's targets that it is not generated for */
    const family *chosen_by; /* whose variant = auto asked for it; NULL: the spec names it */
    target_set chosen_for[PRECISION_COUNT]; /* the targets for which, with which precision */
} instance;

/* A key that a section of the spec may set: a whole number or one of some words, stored in an
 * int64_t field of the instance, or a real number in a double field. */
typedef struct choice {
    const char *word;
    const char *tag; /* in the instance's name: "" or "_indirect"; NULL: made of the word */
} choice;

typedef struct real_range {
    double min, max, def;
    const char *def_text; /* what the default stands for; NULL: itself */
} real_range;

typedef struct key {
    const char *name;
    const char *summary; /* a few words for --help-family */
    size_t field;        /* offset in instance */
    int64_t min, max;
    int64_t multiple_of; /* 0 or 1: any */
    bool of_weights;     /* a multiple of what a row of the weights' format is: see key_multiple, */
    bool of_out;         /* a multiple of a block of the type that out says */
    bool of_blocks;      /* with of_weights: of a block, also of floats, which have none */
    size_t of_weights_in; /* or of the format that this field of the instance says; 0: of all */
    uint64_t allowed;     /* of weights_choices: a bit for each that the key takes; 0: all */
    int64_t def;          /* the default; 0 with required */
    size_t like;          /* field of the instance whose value is the default; 0: none */
    bool required;
    bool at_run_time;      /* with dynamic dims: need not be given, and is passed as NAME_dim */
    size_t counted_with;   /* field of the instance with which the number is passed as NAME_val, and
                              the key is how many of them a block takes at once; 0: none */
    bool zero_is_none;     /* has no part in the name where it is 0 */
    size_t only_with;      /* field of the instance without which it means nothing; 0: none */
    const char *tag;       /* numbers: "k" makes "_k4096" of 4096 */
    const choice *choices; /* words: ends with { NULL, NULL }; the value is the index */
    unsigned sm; /* the first architecture that has other choices than the first; 0: all have */
    int64_t specific_from;  /* numbers from here on are for the own target of one architecture; */
    unsigned specific_sm;   /* 0: all are for all */
    const real_range *real; /* real numbers: in place of min, max and def; the default has no part
                               in the name */
} key;

#define KEY_END \
    {           \
        0       \
    }
#define KEY_FIELD(member) offsetof(instance, member)
/* A real_range by its fields. */
#define RANGE(...) ((const real_range){ __VA_ARGS__ })
/* Keys of whole numbers, of words (a list of choices) and of real numbers (a real_range). Further
 * fields follow the last argument: KEY_NUMBER("n", "rows", shape.n, 1, 99, .required = true). */
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
/* The format of W, one of weights_choices, and columns that suit it. */
#define KEY_WEIGHTS KEY_WORD("weights", "format of W", weights, weights_choices, .required = true)
#define KEY_K_OF_WEIGHTS                                                                         \
    KEY_NUMBER("k", "columns of W", shape.k, 1, INT32_MAX, .of_weights = true, .required = true, \
               .at_run_time = true, .tag = "k")
#define KEY_DIMS KEY_WORD("dims", "sizes baked in, or parameters", dims, dims_choices)
#define KEY_NUM_WARPS(default_warps) \
    KEY_NUMBER("num_warps", "warps a block", num_warps, 1, 32, .def = (default_warps), .tag = "w")
/* Vectors multiplied at once: always baked in, since a kernel has a sum for each in registers. With
 * rows = run_time there may be more, or fewer: the grid's y has a block for every m of them. */
#define KEY_M(least)                                                                \
    KEY_NUMBER("m", "rows of X and Y", shape.m, least, MAX_VECTORS, .def = (least), \
               .counted_with = KEY_FIELD(rows_mode), .tag = "m")
/* Rows of X, any number: the grid's y has a block for each MAX_VECTORS of them. */
#define KEY_ANY_M                                                   \
    KEY_NUMBER("m", "rows of X and Y", shape.m, 1, 65535, .def = 2, \
               .counted_with = KEY_FIELD(rows_mode), .tag = "m")
/* Rows of a kernel with one or more blocks for each row. */
#define KEY_ROW_COUNT KEY_NUMBER("m", "rows", shape.m, 1, 65535, .def = 1, .tag = "m")
#define KEY_ROWS      KEY_WORD("rows", "of X and Y: m, or a parameter", rows_mode, rows_choices)
enum { MAX_VECTORS = 8 };
#define KEY_VARIANT \
    KEY_WORD("variant", "auto: the family tuned for target and shape", variant, variant_choices)
#define KEY_PRECISION                                                             \
    KEY_WORD("precision", "with auto; q8: x may be rounded to 8 bits", precision, \
             precision_choices, .def = PRECISION_Q8)
#define KEY_EPSILON KEY_REAL("epsilon", "of the RMS norm", options.epsilon, "eps", epsilon_range)
extern const real_range epsilon_range;
#define KEY_TRIGGER \
    KEY_WORD("trigger", "the next launch: at once, or behind the wait", trigger, trigger_choices)
#define KEY_STATE(said) KEY_WORD("state", said, state, state_choices)
/* Blocks that are done have weights fetched into the L2 that the launch behind reads: see
 * gen/common/next.h. The parameter is the last one of a family's table. */
enum { NEXT_MULTIPLE = TARGET_LINE, NEXT_MOST = 1 << 30 };
#define KEY_NEXT                                                                         \
    KEY_NUMBER("next", "bytes fetched for the next launch; 0: none", next, 0, NEXT_MOST, \
               .multiple_of = NEXT_MULTIPLE, .zero_is_none = true, .tag = "next")
#define NEXT_WEIGHTS \
    IN(F32, next, "next/4", 16, .only_with = KEY_FIELD(next), .order = ORDER_FETCHED)
/* A factor that is 1 unless it is said. */
#define KEY_SCALE(said) KEY_REAL("scale", said, options.scale, "scale", factor_range)
extern const real_range factor_range;
enum { /* the FORMAT rows of format.def, as weights_choices has them */
#define FORMAT(id, ...) WEIGHTS_##id,
#include "kernel/format.def"
};
extern const choice dims_choices[], rows_choices[], variant_choices[], precision_choices[],
    seq_len_choices[], kv_type_choices[], out_choices[], weights_choices[], scaled_choices[],
    bias_choices[], residual_choices[], norm_choices[], activation_choices[], layout_choices[],
    kv_choices[], approximation_choices[], broadcast_choices[], trigger_choices[], state_choices[];
/* The types of activations, by the numbers of out_choices. */
enum { TYPE_F32, TYPE_F16, TYPE_BF16, TYPE_Q8_1, TYPE_COUNT };

/* A parameter of a kernel. Pointers are outputs, inputs or scratch of a format; the rest are u32
 * numbers. */
typedef enum param_kind {
    PARAM_NONE,
    PARAM_OUT,
    PARAM_IN,
    PARAM_SCRATCH, /* what blocks tell each other: nothing that the caller reads */
    PARAM_U32,
    PARAM_SEQ_LEN, /* in a family's table only: a number or a pointer as the instance says */
} param_kind;

/* How random values of an input are made, for tests. */
typedef enum param_random {
    RANDOM_ANY,
    RANDOM_FITTED,   /* by the family's fit: few numbers are possible */
    RANDOM_ARRANGED, /* any, which the family's fit arranges */
    RANDOM_SMALL,    /* floats as small as weights of other formats, some 0.05 */
    RANDOM_STEEP     /* floats so large in every second head that few positions count */
} param_random;

/* When a launch may read it, relative to the wait for the launches ahead: see overlap. */
typedef enum param_order {
    ORDER_USUAL,   /* weights ahead of the wait, all else behind it */
    ORDER_WRITTEN, /* weights that a launch may write: behind it */
    ORDER_SETTLED, /* with state = settled ahead of it: positions, lengths, addresses */
    ORDER_FETCHED  /* only into the L2: nothing is made of it */
} param_order;

typedef enum param_data {
    DATA_PLAIN,
    DATA_CACHE,        /* K or V: elements of the instance's kv_type; positions from seq_len on are
                          not read, and those that are not a row's not written */
    DATA_UPDATED,      /* outputs of addresses: what these point to is read first, and but for what
                          the reference says is left as it was */
    DATA_PARTIAL_ROWS, /* of attention: head_dim sums of 2^(s - max) v, max, the sum of 2^(s - max),
                          two zeros; max is the largest score s in units of log 2 */
    DATA_ZEROED        /* scratch: has to be 0 before the first launch, and is again after each */
} param_data;

typedef struct param {
    const char *name;
    param_kind kind;
    format format;
    format target;             /* of FORMAT_ADDRESS: of what each address points to, */
    const char *target_values; /* and how many of them */
    const char *unit;          /* values that belong together, as a row; NULL: single ones */
    bool weights;              /* of the format that the key weights says, */
    unsigned matrix;           /* or weights_of[matrix - 1]; 0: weights */
    struct {                   /* when there is one */
        size_t only_with;      /* field of the instance that must not be 0; 0: always */
        uint64_t only_of;      /* values of that field, a bit each; 0: all but 0 */
        int64_t only_above;    /* what that field has to exceed; 0: nothing */
        size_t also_with;      /* another field that must not be 0 */
    };
    param_random random;
    param_order order;
    param_data data;
    bool of_others;      /* an output of the blocks that launch.others counts */
    size_t type_in;      /* field of the instance that says its type; 0: format is it */
    const char *holds;   /* what its values are, where their names do not say it; NULL: they do */
    const char *values;  /* pointers: formula of the number of values, "n*k" */
    const char *touched; /* of what a launch takes in part: values that are read for a row, and of
                            what is updated those that are written as well; NULL: all are, */
    bool by_expert;      /* or for an expert that rows use, however many rows */
    const char *bytes;   /* the same in bytes, "n*k/256*144"; filled in by instance_params */
    unsigned align;      /* bytes that the kernel's loads rely on, */
    size_t row;       /* field with the values of a row: loads rely on what all rows keep of that;
                         0: there are none */
    const char *size; /* numbers: the size it carries, "k", "n", "seq_len" */
} param;

/* Parameters: number of values, alignment, and further fields: IN(F32, x, "m*k", 16, .small =
 * true). */
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
/* Rows that tell of a chunk of positions: see partial_rows. */
#define PARTIAL_ROWS(how, count)                                               \
    PARAM(how, F32, partials, count "*(head_dim+4)", 16, .unit = "head_dim+4", \
          .data = DATA_PARTIAL_ROWS)
#define COUNTERS(id, ...)                                                                          \
    {                                                                                              \
        .name = #id, .kind = PARAM_SCRATCH, .data = DATA_ZEROED, .format = FORMAT_U32, .align = 4, \
        .values = __VA_ARGS__                                                                      \
    }
#define IN_WHERE(field_name, type, id, count, ...) \
    IN(type, id, count, __VA_ARGS__, .only_with = KEY_FIELD(options.field_name))
/* Numbers of which few are possible: the family's fit makes them. */
#define IN_FITTED(type, id, count, alignment) \
    IN(type, id, count, alignment, .random = RANDOM_FITTED)
/* What stands in the state of a step. */
#define ROW_POSITIONS    IN(U32, positions, "m", 4, .random = RANDOM_FITTED, .order = ORDER_SETTLED)
#define SEQUENCE_LENGTHS IN(U32, seq_lens, "m", 4, .order = ORDER_SETTLED)
/* A cache of K or V, as an array or as an array of addresses of such, one a sequence. */
#define KV_CACHE(id) \
    IN(F32, id, "num_kv_heads*max_seq_len*head_dim", 16, .data = DATA_CACHE, .unit = "head_dim")
#define KV_CACHES(id) KV_CACHES_OF(id, IN, "max_seq_len")
/* The same in families whose caches may be rings: rows is the size CACHE_ROWS. */
#define KV_RINGS(id) KV_CACHES_OF(id, IN, "cache_rows")
/* The same that a kernel writes positions of: the addresses are an input, what they point to is the
 * output. */
#define KV_RINGS_OUT(id) KV_CACHES_OF(id, OUT, "cache_rows")
#define KV_CACHES_OF(id, how, rows)                                              \
    PARAM(how, ADDRESS, id, "m", 8, .data = DATA_CACHE, .target = FORMAT_F32,    \
          .target_values = "num_kv_heads*" rows "*head_dim", .unit = "head_dim", \
          .order = ORDER_SETTLED)
/* What m addresses point to, and the kernel brings up to date. */
#define UPDATED(type, id, count, moved)                                     \
    OUT(ADDRESS, id, "m", 8, .data = DATA_UPDATED, .target = FORMAT_##type, \
        .target_values = count, .touched = moved)
#define PARAM_END KEY_END

/* A part of formulas that has a name, to which later ones may refer. */
typedef struct term {
    const char *name, *formula;
} term;

/* A size that formulas may name and that follows from an instance's keys in another way. */
typedef struct derived_size {
    const char *name;
    int64_t (*value)(const instance *in);
    const char *said; /* what it is, for --help-family */
} derived_size;

/* Dependent launches (programmatic stream serialization): on sm_90 and newer, where the host asks
 * for it, a kernel may start before the launch ahead of it in its stream has finished. Such a
 * kernel says at its start that the next launch may start. All its threads wait for the launch
 * ahead (griddepcontrol.wait) before they write anything, and before they read anything but weights
 * and the module's tables, which nothing writes while steps run. ptx/overlap.c refuses a kernel
 * that breaks this.
 *
 * So no launch finishes before the one ahead of it, and what launches read and write is ordered as
 * without overlap, as long as each kernel of the chain waits. The first launch of a step is an
 * ordinary one. A launch whose kernel does not know, as a copy or a user's kernel, starts when the
 * last one has finished.
 *
 * The last launch of a step writes what the step leaves for the next: tokens, positions, lengths. A
 * kernel with trigger = waited waits first, and says then that the next launch may start. If such a
 * kernel, or an ordinary launch, is the first of a step, all others of the step start when the step
 * ahead has finished. With state = settled they read positions, lengths and the addresses of caches
 * before their wait, and prefetch rows of caches into the L2. Nothing in the step but its last
 * launch may write what is settled. */
typedef enum overlap {
    NO_OVERLAP,
    WAITS_FIRST, /* ahead of all that the family builds */
    WAITS_ITSELF /* where the family builds it: it has something to do first */
} overlap;

/* Launch geometry as formulas over the family's keys and the run-time values (see formula.h). */
typedef struct launch {
    const char *block;   /* threads, one dimension */
    const char *grid[3]; /* NULL: 1 */
    const char *shared;  /* static shared memory in bytes; NULL: none */
    const char *dynamic_shared;
    const term *terms;         /* of the formulas above; ends with { NULL, NULL }. NULL: none */
    const derived_size *sizes; /* that formulas name; ends with { NULL }. NULL: none */
    const char *roomier;       /* the family for GPUs with too little shared memory; NULL: none */
    const char *rows; /* of W that a block takes at once when it strides over them; NULL: one */
    int64_t (*block_of_row)(const instance *in, int64_t row, int64_t blocks); /* of several
        matrices: which of so many blocks in x takes a row of Y; NULL: it follows from rows */
    bool dealt;         /* which results a block has follows from inputs */
    bool weights_first; /* those of a warp's first turn are fetched into the L2 ahead of x */
    bool loads_at_once; /* no load waits for a number or an address that was loaded itself */
    const char *others; /* formula: blocks at the end of a row of the grid that have none of the
                           first output, but all of another one together; NULL: none */
    overlap overlap;
    unsigned registers; /* a thread may have at most: .maxnreg. 64 lets an SM run 32 warps */
} launch;

struct family {
    const char *name;
    const char *summary;  /* one line for --list */
    const char *computes; /* one line of mathematics: "y[n] = W[n,k] x[k]" */
    operation op;
    format weights, activations; /* what PREFIX_find looks for; FORMAT_NONE where it has none, or
                                    where a key says the weights */
    bool quantizes; /* rounds x to 8 bits, 32 values by one scale, as q8_1 does, unless the weights
                       are  floats */
    bool halves;    /* rounds x and W to f16 */
    bool whole_lines;  /* loads W in whole lines of 16 bytes, the last one too: W's bytes say so */
    bool one_sequence; /* its m rows are positions of one sequence, with one cache */
    bool same_bits; /* a row's results are the same to the bit whatever the grid, the number of SMs
                       and of warps, and whether alone or as one of m, */
    size_t same_bits_with;   /* where this field of the instance is not 0; 0: always */
    unsigned sm;             /* the first architecture that has what it needs; 0: all have */
    int preference;          /* among families that fit a query the highest is found */
    const char *cache_heads; /* formula: query heads that a block loads a value of a cache for, all
                                those it has of a KV head; NULL: each head's come for it alone */
    const char *each_matrix; /* of several matrices: the family that does with one what this one
                                does with each; NULL: none does */
    const char *counted_as;  /* the family whose figures of cost it has; NULL: its own */
    const char *of_rows; /* the family that does the same with rows that q8_rows has made, with what
                            is left of a norm in their factors; NULL: none does */
    const key *keys;     /* ends with KEY_END */
    const param *params; /* outputs, weights, inputs, numbers; ends with PARAM_END */
    launch launch;

    /* Problems between keys that the table cannot say: NULL or a message, and the key to blame. */
    const char *(*check)(const instance *in, arena *a, const char **blamed);

    void (*build)(ptx *p, const instance *in);

    const struct pipeline_step *steps; /* of a pipeline, in place of all from op on */

    void (*fit)(const problem *p, unsigned input, void *bytes, uint64_t values); /* makes the values
        of random inputs that can't be right possible ones; NULL: all can be */
    reference *reference;
    bool reference_is_whole; /* it computes all of an output, however few values are asked for */
    double tolerance;        /* largest error right results have, relative to ref_value.magnitude */
};

typedef enum family_id {
#define FAMILY(id, name) FAMILY_##id,
#include "kernel/families.def"
#undef FAMILY
    FAMILY_COUNT
} family_id;

/* All families by their ids, which is the order of --list; ends with NULL. */
extern const family *const families[FAMILY_COUNT + 1];

const family *family_find(const family *const *list, const char *name);
const key *family_key(const family *f, const char *name);

/* Returns true if a family takes rows of x with a factor each, as f16_rows and q8_rows do. */
bool family_takes_rows(const family *f);

/* Formats of W, x and y by the family or the keys; of W FORMAT_NONE: there is no W. Precision is
 * what x is multiplied as: its own format, or q8_1 or f16 where the family rounds it. */
format instance_weights(const instance *in);
format instance_activations(const instance *in);
format instance_result(const instance *in);
format instance_precision(const instance *in);

/* Of several matrices one alone: its format as the weights, its rows as n. */
instance instance_matrix(const instance *in, unsigned matrix);

/* The format whose rows are multiples of most values: all have sizes of which one is a multiple of
 * the other. */
format instance_strictest_weights(const instance *in);

/* Where a format stands in weights_choices; -1: it is none. */
int64_t instance_weights_index(format weights);

/* Return true if the key may be set to one of its choices; if it has a meaning with the instance's
 * other values; if its row allows the instance's value; if all rows do. */
bool key_takes_choice(const key *k, const choice *c);
bool key_matters(const instance *in, const key *k);
bool instance_takes(const instance *in, const key *k);
bool instance_takes_all(const instance *in);

/* What a number of the key has to be a multiple of, at least 1; and the format whose rows decide
 * it. */
int64_t key_multiple(const instance *in, const key *k);
format key_weights(const instance *in, const key *k);

/* Returns true if the caller passes a size at each launch; its smallest and largest value. */
bool key_is_passed(const instance *in, const key *k);
int64_t key_least(const instance *in, const key *k);
int64_t key_most(const instance *in, const key *k);

/* The largest number that a key takes on a target. */
int64_t key_most_for(const key *k, const target *t);

/* A key's default; beside the instance's other values that of the key that it is like. */
int64_t key_default(const key *k);
int64_t instance_default(const instance *in, const key *k);

/* Read and write the value of a key in an instance, by its field; a real number as its bits. */
int64_t instance_value(const instance *in, const key *k);
void instance_set(instance *in, const key *k, int64_t value);

/* Returns true if a target has what the family and the values of its keys need. */
bool instance_suits(const instance *in, const target *t);

/* An instance that has each key's own default. */
instance instance_of_defaults(const family *f);

/* A real number as an int64_t that holds it, and back; positive ones compare as their bits do. */
int64_t real_bits(double number);
double real_of_bits(int64_t bits);

/* The shortest decimal that reads back as the number: "50", "0.125", "1e-5". */
const char *real_text(arena *a, double number);

/* The value of a key as a spec says it: "4096", "dynamic", "1e-5"; those of all keys that are not
 * the usual ones, "k=4096 n=4096 num_warps=2"; and the name that follows from them. */
const char *instance_value_text(arena *a, const instance *in, const key *k);
const char *instance_configuration(arena *a, const instance *in);
const char *instance_make_name(arena *a, const instance *in);

/* Returns true if the family promises the same bits for an instance. */
bool instance_same_bits(const instance *in);

/* The precisions with which variant = auto chose the instance for a target, a bit each. */
unsigned instance_chosen(const instance *in, const target *t);

/* Adds to an instance what another one of the same name is asked for. */
void instance_merge(instance *in, const instance *other);

/* "in", "out", "inout", "scratch" or "zeroed": what a parameter is to the caller. */
const char *param_direction(const param *p);

/* The format of K and V; and the rows of a cache of a head: max_seq_len, or those of its ring. */
format kv_format(const instance *in);
int64_t kv_rows(const instance *in);

/* The parameters of an instance's kernel: those of its family's table, then with dynamic dims
 * k_dim, n_dim and m_dim for those sizes it has, and m_val where m is counted at run time. Returns
 * their number, at most MAX_PARAMS. */
size_t instance_params(arena *a, const instance *in, param params[MAX_PARAMS]);

#endif
