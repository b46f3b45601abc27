/* The builder's own form of a kernel: a list of instructions with labels, kept until it is printed.
 * Not for kernel files, which see ptx.h alone.
 *
 * A kernel is generated in some twenty microseconds, and users generate thousands: passes walk
 * the list as rarely as they can, and what most instructions are is decided first.
 */
#ifndef PTXGEN_PTX_IR_H
#define PTXGEN_PTX_IR_H

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

/* One row of ops.def. */
typedef struct op_info {
    const char *text;
    const char *results, *operands; /* letters */
    uint8_t isa, sm;
    uint16_t types, flags;
} op_info;

extern const op_info op_table[INST_KINDS];

typedef struct type_info {
    const char *name;      /* "u32" */
    const char *bits_name; /* "b32" */
    uint8_t bytes;
    uint8_t in_register; /* the type of the register that holds it */
} type_info;

/* Indexed by type. */
extern const type_info type_table[];
extern const uint8_t register_classes[];

/* Registers of one class are declared and numbered together. */
enum { CLASS_PRED, CLASS_16, CLASS_32, CLASS_F32, CLASS_64, CLASS_COUNT };

typedef struct class_info {
    const char *type; /* ".b32" */
    char prefix[4];   /* of its registers: "%r" */
    uint8_t prefix_length;
} class_info;

extern const class_info class_table[CLASS_COUNT];

/* A mnemonic: with its indentation. */
enum { MAX_RESULTS = 4, MAX_OPERANDS = 12, MAX_SUMS = 128, LONGEST_MNEMONIC = 62 };

/* Operands are values and addresses; a BRA or LABEL has its label in target, LD_PARAM its
 * parameter, MOV_SREG its special register, MOV_GLOBAL its array, CP_ASYNC the offset of what it
 * reads (as an int32_t). Small, since all instructions of a kernel are walked over several times.
 */
typedef struct inst {
    uint8_t op, type, second;
    uint8_t results, operands; /* how many there are */
    bool guard_not;            /* runs where the operand, its guard, does not hold */
    bool commented;            /* see ptx_comment_of */
    int32_t offset;
    uint32_t target;
    uint32_t *result; /* registers: MAX_RESULTS at most, of what adds to sums MAX_SUMS */
    val operand[];
} inst;

typedef struct ptx_comment {
    const inst *inst;
    const char *text;
} ptx_comment;

/* What passes keep of a register stands together. */
typedef struct ptx_register {
    uint8_t type;
    bool variable;
    bool needed;    /* order.c, dead.c: something that is needed reads it */
    uint8_t spread; /* uniform.c */
    uint32_t uses;  /* how often the list reads it; kept from ptx_order on */
    uint32_t note;  /* order.c, definitions.c: see there */
    uint32_t place; /* order.c: its stretch; definitions.c: the block of its latest definition, plus
                       one; 0: none so far */
} ptx_register;

typedef struct ptx_parameter {
    const char *name;
    type type;
    ptx_changes changes;
} ptx_parameter;

typedef struct ptx_shared {
    const char *name;
    type type;
    unsigned count; /* PTX_DYNAMIC: the launch says it */
    unsigned align; /* bytes */
} ptx_shared;

/* Arrays follow each other, each aligned so that vector loads may be used on any. */
enum { ARRAY_ALIGNMENT = 16 };

/* An array of the module with initial values. */
typedef struct ptx_global {
    const char *name;
    const char *const *comment; /* lines, up to NULL */
    const uint64_t *words;
    unsigned count;
    val address;
} ptx_global;

enum { PTX_DYNAMIC = 0 };

/* Printed as $ and name and suffix, "$row_loop". */
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
    VEC(ptx_register) registers; /* number 0 is none */
    VEC(ptx_label) labels;
    VEC(inst *) code;
    VEC(ptx_comment) comments;
    VEC(uint32_t) anchors; /* see order.c: their places in code */
    uint32_t latest_note;  /* of what the latest instruction makes */
    VEC(inst *) prologue;  /* runs ahead of code: parameters and thread numbers, each read once */
    val *param_values;     /* by parameter; VAL_NONE where it was not read so far */
    val special_values[SPECIAL_COUNT];
    val lane, warp;
    size_t constant_if; /* where the latest condition known ahead ended, plus one, and whether it */
    bool constant_if_held; /* held */
    bool has_unreachable;  /* code that nothing reaches may have been built, or a needless jump */
    inst **list; /* the kernel once it is built: prologue and code as the passes leave them */
    size_t count;
    /* Places on the list, from its end: of what ptx_order settled without anything that is needed
     * seeming to read it, and of movs between registers. */
    VEC(inst **) passed_over;
    VEC(inst **) copies;
    const char *loop_note; /* for the next loop's label, or NULL */
    const char *error;     /* the first one */
    unsigned dump_stages;
    strbuf *dump;
};

/* The name itself, or "" and an error where it is longer than a line of PTX has room for. */
enum { LONGEST_NAME = 127 };
const char *ptx_name(ptx *p, const char *name);

/* The mnemonic without its placeholders filled in, for messages. */
const char *op_name(ptx_op o);

/* What an operand or result has to be by its letter in ops.def. */
static inline type letter_type(char letter, ptx_op o, type t, type second)
{
    switch (letter) {
    case 't':
    case 'v':
        return t;
    case 's':
        return second;
    case 'w':
        return t == U32 ? U64 : S64;
    case 'p':
    case 'c':
        return PRED;
    case 'a':
        return op_table[o].flags & SHARED ? U32 : U64;
    case 'g':
    case 'l':
        return U64;
    case 'x':
        return S32;
    case 'd':
        return t == U32 && second == U32 ? U32 : S32;
    default:
        return U32;
    }
}

/* Returns true if a letter of ops.def stands for a value; braces do not. */
static inline bool is_value_letter(char letter)
{
    return letter <= 'z';
}

static inline bool is_prefetch(ptx_op o)
{
    return o == INST_PREFETCH_L2 || o == INST_PREFETCH_BULK;
}

/* A copy's first operand is its source's address, its second one how many bytes it writes. */
static inline bool is_copy(ptx_op o)
{
    return *op_table[o].operands == 'g';
}

/* What an access to count values of a type reads or writes at its address. A lane's address for
 * ldmatrix is that of a row of eight b16, however many of its words the lane gets. */
static inline unsigned access_bytes(ptx_op o, type t, unsigned count)
{
    enum { MATRIX_ROW_BYTES = 16 };
    bool rows = o == INST_LDMATRIX || o == INST_LDMATRIX_TRANS;
    return rows ? MATRIX_ROW_BYTES : type_table[t].bytes * count;
}

/* Walks the operands of an instruction. What is no register has the number 0, which passes treat as
 * one that is always there. */
#define FOR_EACH_USE(i, used)                                                                   \
    for (const val *used = (i)->operand, *used##_end = used + (i)->operands; used < used##_end; \
         used++)

/* fold.c: the value that an instruction of so many operands would compute, where that is known or
 * one of its operands; false where it has to be computed. */
bool ptx_fold(ptx_op o, type t, const val *operands, unsigned count, val *result);

/* build.c: a new instruction with its operands at the end of the code or of the prologue, without
 * results. */
inst *ptx_append(ptx *p, ptx_op o, type t, const val *operands, unsigned count);
inst *ptx_append_ahead(ptx *p, ptx_op o, type t, const val *operands, unsigned count);

/* A comment at the end of an instruction's line; none where text is NULL. */
void ptx_set_comment(ptx *p, inst *i, const char *text);
const char *ptx_comment_of(const ptx *p, const inst *i);

/* A new register for a result of the latest instruction. */
val ptx_add_result(ptx *p, inst *i, type t);

/* A value as an operand of a type: numbers and shared arrays become what the instruction takes. */
val ptx_fit(ptx *p, ptx_op o, type t, val v);

/* An instruction with the operands and results that ops.def gives it, or what it folds to. The
 * operands become what the instruction takes. */
void ptx_emit_group(ptx *p, ptx_op o, type t, type second, val *operands, val *results);
val ptx_emit(ptx *p, ptx_op o, type t, type second, val *operands);

/* What a value is now. */
val ptx_copy(ptx *p, val v);

/* The list of all instructions, the prologue's first. No instruction may be added afterwards. */
void ptx_list_instructions(ptx *p);

/* dead.c: removes what can't run; and, behind ptx_order, copies from and to variables that can be
 * done without and results that nobody uses. */
void ptx_remove_unreachable(ptx *p);
void ptx_remove_unused(ptx *p);

/* order.c: puts values into the order that follows from their uses, notes these on the way. A value
 * of the code has its place there, plus AHEAD_LIMIT + 1, as its note, one of the prologue its place
 * plus one; variables and what an instruction with an effect makes have none. Where instructions
 * went, ptx_note_places has to follow. */
enum { AHEAD_LIMIT = 1 << 20 };
void ptx_note_places(ptx *p);
void ptx_order(ptx *p);

/* How much a value, or which threads run a block, differs over the block of threads. The bits of
 * one contain those of a more even one. */
typedef enum spread { BLOCK_UNIFORM = 0, WARP_UNIFORM = 1, BY_LANE = 3 } spread;

/* A stretch of instructions that run together: [first, end). successors are block numbers; -1:
 * none. A block that ends the thread on some path has exits set. */
typedef struct ptx_basic_block {
    uint32_t first, end;
    int successor[2];
    int postdominator; /* immediate; the number of blocks stands for the kernel's exit */
    bool exits;
    bool reached;     /* uniform.c */
    uint8_t spread;   /* uniform.c: of the conditions that decide whether it runs */
    uint32_t because; /* uniform.c: the branch that does, as index of its instruction */
} ptx_basic_block;

typedef struct ptx_flow {
    ptx_basic_block *blocks;
    size_t count;
    int *stack; /* room for all block numbers */
} ptx_flow;

/* flow.c: the control flow graph; false and p->error on a label that does not resolve or code that
 * runs off the end. */
bool ptx_flow_build(ptx *p, ptx_flow *flow);

/* The verifier. check.c has the walk over all instructions, definitions.c and uniform.c further
 * parts of it; each gives false with p->error set. */
bool ptx_verify(ptx *p);

typedef struct ptx_outside_read {
    const inst *inst;
    uint32_t block, id;
} ptx_outside_read;

typedef struct ptx_block_definition {
    uint32_t block, bit;
} ptx_block_definition;

/* The note of a register is its bit in the sets, plus one; 0: it is defined once and read in that
 * block. */
typedef struct ptx_definitions {
    ptx *p;
    const ptx_flow *flow;
    uint32_t bits;
    size_t words; /* of a set */
    VEC(ptx_outside_read) reads;
    VEC(ptx_block_definition) made; /* of registers that have a bit */
    uint64_t *at_entry; /* a set for each block: what is defined wherever it was entered from */
} ptx_definitions;

/* What an instruction reads that is not defined ahead of it in its block, and definitions: noted
 * while walking over the blocks, checked at the end. */
void ptx_note_outside_read(ptx_definitions *d, const inst *i, uint32_t id, uint32_t block);
void ptx_note_definition_again(ptx_definitions *d, ptx_register *r, uint32_t block);
static inline void ptx_note_definition(ptx_definitions *d, ptx_register *r, uint32_t block)
{
    if (r->place || r->note)
        ptx_note_definition_again(d, r, block);
    r->place = block + 1;
}
bool ptx_check_definitions(ptx_definitions *d);

/* uniform.c: the spread of what an instruction with SPREAD_RULE makes, by that of its operands. */
uint8_t ptx_spread_by_rule(const ptx *p, const inst *i, uint8_t operands);

/* Raises the blocks between an uneven branch and the block where its ways join. True where that
 * changes one which a walk over all has seen, up to the branch's. */
bool ptx_raise_region(ptx_flow *flow, int branch_block, uint8_t s);

/* Behind a first walk; changed: something that it had seen already. */
bool ptx_check_uniform(ptx *p, ptx_flow *flow, const ptx_definitions *d, bool changed);

/* overlap.c, of kernels that overlap with launches ahead of them. ld_const becomes an ordinary load
 * where one of those launches may write what is loaded; and of what such a launch may still use
 * nothing is touched ahead of the wait, of which each path has one. */
void ptx_load_what_changes(ptx *p);
bool ptx_check_overlap(ptx *p, const ptx_flow *flow);

/* print.c: the text goes into a. */
void ptx_print(ptx *p, arena *a, ptx_output *out);

/* An instruction as text, for messages: "setp.lt.u32 $row_loop". */
const char *ptx_describe(ptx *p, const inst *i);

#endif
