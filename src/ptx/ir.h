/* The builder's internal form of a kernel: a list of instructions with labels, kept until it is
 * printed. Kernel files include only ptx.h.
 *
 * A kernel is generated in about 20 microseconds, and users generate thousands. So passes walk the
 * list as rarely as possible and test for the most frequent instructions first. */
#pragma once

#include "ptx/ptx.h"

#define BIT(t) (1u << (t))
#define SINTS  (BIT(S32) | BIT(S64))
#define INTS32 (BIT(U32) | BIT(S32))
#define INTS   (BIT(U32) | BIT(U64) | SINTS)
#define FLOATS BIT(F32)
#define BITS32 (INTS32 | FLOATS)
#define PREDS  BIT(PRED)
#define ALL    (INTS | FLOATS | BIT(F16))
#define BYTES  (BIT(U8) | BIT(S8) | BIT(U16) | BIT(S16))

enum {
    COMMUTES = 1,
    EFFECT = 2,
    GLOBAL = 4,
    SHARED = 8,
    SPREAD_RULE = 16,
    WARP_SYNC = 32,
    CTA_SYNC = 64,
    BRANCH = 128,
    GROUPS = 256,
    FOLDS = 512,
    SPECIFIC = 1024,
    ADDS = 2048,
};

/* A row of ops.def. */
typedef struct op_info {
    const char *text;
    const char *results, *operands; /* letters, one per value */
    uint8_t isa, sm;
    uint16_t types, flags;
} op_info;

extern const op_info op_table[INST_KINDS];

typedef struct type_info {
    const char *name;      /* "u32" */
    const char *bits_name; /* "b32" */
    uint8_t bytes;
    uint8_t in_register; /* type of the register that holds a value of this type */
} type_info;

/* Indexed by type. */
extern const type_info type_table[];
extern const uint8_t register_classes[];

/* Register classes. Registers of a class are declared and numbered together. */
enum { CLASS_PRED, CLASS_16, CLASS_32, CLASS_F32, CLASS_64, CLASS_COUNT };

typedef struct class_info {
    const char *type; /* ".b32" */
    char prefix[4];   /* of register names: "%r" */
    uint8_t prefix_length;
} class_info;

extern const class_info class_table[CLASS_COUNT];

/* LONGEST_MNEMONIC includes the indentation. */
enum { MAX_RESULTS = 4, MAX_OPERANDS = 12, MAX_SUMS = 128, LONGEST_MNEMONIC = 62 };

/* An instruction. operand holds values and addresses. target is the label of BRA and LABEL, the
 * parameter of LD_PARAM, the special register of MOV_SREG, the array of MOV_GLOBAL, or the source
 * offset of CP_ASYNC (an int32_t). It is small because every pass walks all instructions. */
typedef struct inst {
    uint8_t op, type, second;
    uint8_t results, operands; /* counts */
    bool guard_not;            /* runs if the guard operand is false */
    bool commented;            /* see ptx_comment_of */
    int32_t offset;
    uint32_t target;
    uint32_t *result; /* registers; at most MAX_RESULTS, or MAX_SUMS of an ADDS instruction */
    val operand[];
} inst;

typedef struct ptx_comment {
    const inst *inst;
    const char *text;
} ptx_comment;

/* Per-register state of all passes. */
typedef struct ptx_register {
    uint8_t type;
    bool variable;
    bool needed;    /* order.c, dead.c: a needed instruction reads it */
    uint8_t spread; /* uniform.c */
    uint32_t uses;  /* number of reads in the list; valid from ptx_order on */
    uint32_t note;  /* scratch of order.c and definitions.c */
    uint32_t place; /* order.c: its stretch; definitions.c: block of its latest definition plus 1, 0
                       = none */
} ptx_register;

typedef struct ptx_parameter {
    const char *name;
    type type;
    ptx_changes changes;
} ptx_parameter;

typedef struct ptx_shared {
    const char *name;
    type type;
    unsigned count; /* PTX_DYNAMIC: set by the launch */
    unsigned align; /* in bytes */
} ptx_shared;

/* Alignment in bytes that permits vector loads from any array. */
enum { ARRAY_ALIGNMENT = 16 };

/* A constant array of the module. */
typedef struct ptx_global {
    const char *name;
    const char *const *comment; /* lines, NULL-terminated */
    const uint64_t *words;
    unsigned count;
    val address;
} ptx_global;

enum { PTX_DYNAMIC = 0 };

/* Printed as $, name and suffix: "$row_loop". */
typedef struct ptx_label {
    const char *name, *suffix;
} ptx_label;

struct ptx {
    arena *arena;
    const char *name;
    const target *target;
    unsigned block, max_registers;
    bool overlaps;    /* see ptx_overlap */
    bool keeps_loads; /* see ptx_keep_loads */
    VEC(const char *) headings;
    VEC(ptx_parameter) params;
    VEC(ptx_shared) shared;
    VEC(ptx_global) globals;
    VEC(ptx_register) registers; /* number 0 means no register */
    VEC(ptx_label) labels;
    VEC(inst *) code;
    VEC(ptx_comment) comments;
    VEC(uint32_t) anchors; /* see order.c: indices into code */
    uint32_t latest_note;  /* note of the latest instruction's results */
    VEC(inst *) prologue;  /* precedes code: parameters and thread indices, each read once */
    val *param_values;     /* by parameter; VAL_NONE until first read */
    val special_values[SPECIAL_COUNT];
    val lane, warp;
    size_t constant_if;    /* end of the latest constant condition in code, plus 1 */
    bool constant_if_held; /* value of that condition */
    bool has_unreachable;  /* there may be unreachable code or a jump to the next instruction */
    inst **list;           /* the finished kernel: prologue and code, transformed by the passes */
    size_t count;
    /* Positions in list, from its end: unneeded instructions, and movs between registers. */
    VEC(inst **) passed_over;
    VEC(inst **) copies;
    const char *loop_note; /* comment of the next loop's label, or NULL */
    const char *error;     /* first error, or NULL */
    unsigned dump_stages;
    strbuf *dump;
};

enum { LONGEST_NAME = 127 };

/* Returns the name, or "" with an error if it has more than LONGEST_NAME characters. */
const char *ptx_name(ptx *p, const char *name);

/* Returns the mnemonic with its placeholders, for messages. */
const char *op_name(ptx_op o);

/* Returns the type that a letter of ops.def requires of an operand or result. */
static inline type letter_type(char letter, ptx_op o, type t, type second)
{
    return letter == 't' || letter == 'v'   ? t
           : letter == 's'                  ? second
           : letter == 'w'                  ? (t == U32 ? U64 : S64)
           : letter == 'p' || letter == 'c' ? PRED
           : letter == 'a'                  ? (op_table[o].flags & SHARED ? U32 : U64)
           : letter == 'g' || letter == 'l' ? U64
           : letter == 'x'                  ? S32
           : letter == 'd'                  ? (t == U32 && second == U32 ? U32 : S32)
                                            : U32;
}

/* Returns true for a letter of ops.def that denotes a value, false for braces. */
static inline bool is_value_letter(char letter)
{
    return letter <= 'z';
}

static inline bool is_prefetch(ptx_op o)
{
    return o == INST_PREFETCH_L2 || o == INST_PREFETCH_BULK;
}

/* Returns true for cp.async, whose operands are the source and the bytes written. */
static inline bool is_copy(ptx_op o)
{
    return *op_table[o].operands == 'g';
}

/* Returns the bytes accessed at the address for count values of a type. Each lane of ldmatrix
 * addresses a row of eight b16, for any number of results. */
static inline unsigned access_bytes(ptx_op o, type t, unsigned count)
{
    enum { MATRIX_ROW_BYTES = 16 };
    bool rows = o == INST_LDMATRIX || o == INST_LDMATRIX_TRANS;
    return rows ? MATRIX_ROW_BYTES : type_table[t].bytes * count;
}

/* Iterates over an instruction's operands. Those without a register have number 0. */
#define FOR_EACH_USE(i, used)                                                                   \
    for (const val *used = (i)->operand, *used##_end = used + (i)->operands; used < used##_end; \
         used++)

/* fold.c: returns true and the value if an instruction yields a constant or one of its operands. */
bool ptx_fold(ptx_op o, type t, const val *operands, unsigned count, val *result);

/* build.c: appends an instruction with operands to the code or the prologue, without results. */
inst *ptx_append(ptx *p, ptx_op o, type t, const val *operands, unsigned count);
inst *ptx_append_prologue(ptx *p, ptx_op o, type t, const val *operands, unsigned count);

/* Sets the comment at the end of an instruction's line. No-op if text is NULL. */
void ptx_set_comment(ptx *p, inst *i, const char *text);
const char *ptx_comment_of(const ptx *p, const inst *i);

/* Adds a result to the latest instruction, in a new register. */
val ptx_add_result(ptx *p, inst *i, type t);

/* Converts a number or a shared array to an operand of type t. */
val ptx_fit(ptx *p, ptx_op o, type t, val v);

/* Emit an instruction by its row in ops.def, operands converted, or return the folded value. */
void ptx_emit_group(ptx *p, ptx_op o, type t, type second, val *operands, val *results);
val ptx_emit(ptx *p, ptx_op o, type t, type second, val *operands);

/* Copies the current value of v to a new register. */
val ptx_copy(ptx *p, val v);

/* Builds list from the prologue and the code. No instruction may be added afterwards. */
void ptx_list_instructions(ptx *p);

/* dead.c: removes unreachable code; later, unused results and redundant copies of variables. */
void ptx_remove_unreachable(ptx *p);
void ptx_remove_unused(ptx *p);

/* order.c: sorts the instructions by the uses of their values. A register's note is the position
 * of its definition, plus 1 in the prologue, plus PROLOGUE_LIMIT + 1 in the code. Variables and
 * results of instructions with effects have note 0. If instructions were removed, call
 * ptx_note_places first. */
enum { PROLOGUE_LIMIT = 1 << 20 };
void ptx_note_places(ptx *p);
void ptx_order(ptx *p);

/* How much values or threads vary in a block. Spreads include bits of more uniform ones. */
typedef enum spread { BLOCK_UNIFORM = 0, WARP_UNIFORM = 1, BY_LANE = 3 } spread;

/* A basic block [first, end). successor: blocks or -1. exits: a path ends the thread here. */
typedef struct ptx_basic_block {
    uint32_t first, end;
    int successor[2];
    int postdominator; /* immediate post-dominator; the number of blocks denotes the exit */
    bool exits;
    bool reached;     /* uniform.c */
    uint8_t spread;   /* uniform.c: of the conditions that control it */
    uint32_t because; /* uniform.c: instruction index of the branch that controls it */
} ptx_basic_block;

typedef struct ptx_flow {
    ptx_basic_block *blocks;
    size_t count;
    int *stack; /* scratch with room for all block numbers */
} ptx_flow;

/* flow.c: builds the control flow graph. Returns false with p->error if it is broken. */
bool ptx_flow_build(ptx *p, ptx_flow *flow);

/* Verifies the kernel: check.c, definitions.c, overlap.c, uniform.c. False: p->error is set. */
bool ptx_verify(ptx *p);

typedef struct ptx_outside_read {
    const inst *inst;
    uint32_t block, id;
} ptx_outside_read;

typedef struct ptx_block_definition {
    uint32_t block, bit;
} ptx_block_definition;

/* State of the definition check. A register's note is its bit in the sets plus 1. Note 0: the
 * register has one definition, and only its block reads it. */
typedef struct ptx_definitions {
    ptx *p;
    const ptx_flow *flow;
    uint32_t bits;
    size_t words; /* per set */
    VEC(ptx_outside_read) reads;
    VEC(ptx_block_definition) made; /* definitions of registers with a bit */
    uint64_t *at_entry; /* a set per block: registers defined on every path to its entry */
} ptx_definitions;

/* Record reads of registers that are not defined earlier in their block, and definitions.
 * ptx_check_definitions checks them after the walk over all blocks. */
void ptx_note_outside_read(ptx_definitions *d, const inst *i, uint32_t id, uint32_t block);
void ptx_note_definition_again(ptx_definitions *d, ptx_register *r, uint32_t block);
static inline void ptx_note_definition(ptx_definitions *d, ptx_register *r, uint32_t block)
{
    if (r->place || r->note)
        ptx_note_definition_again(d, r, block);
    r->place = block + 1;
}
bool ptx_check_definitions(ptx_definitions *d);

/* uniform.c: returns the spread of results with SPREAD_RULE, given that of the operands. */
uint8_t ptx_spread_by_rule(const ptx *p, const inst *i, uint8_t operands);

/* Raises the spread of all blocks between a divergent branch and its post-dominator. Returns true
 * if a block up to the branch's changes, which a forward walk has already visited. */
bool ptx_raise_region(ptx_flow *flow, int branch_block, uint8_t s);

/* Runs after the first walk. changed: the walk raised a block that it had already visited. */
bool ptx_check_uniform(ptx *p, ptx_flow *flow, const ptx_definitions *d, bool changed);

/* overlap.c, for kernels that overlap with preceding launches. ptx_load_what_changes turns ld_const
 * into an ordinary load if a preceding launch may write the data. ptx_check_overlap checks that
 * every path waits once, and accesses no memory in use by such a launch before. */
void ptx_load_what_changes(ptx *p);
bool ptx_check_overlap(ptx *p, const ptx_flow *flow);

/* print.c: prints the kernel into arena a. */
void ptx_print(ptx *p, arena *a, ptx_output *out);

/* Describes an instruction for messages, with its index in the list. */
const char *ptx_describe(ptx *p, const inst *i);
