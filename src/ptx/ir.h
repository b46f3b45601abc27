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
#define FLOATS (BIT(F32) | BIT(F64))
#define BITS32 (INTS32 | BIT(F32))
#define PREDS  BIT(PRED)
#define ALL    (INTS | FLOATS | BIT(F16))
#define BYTES  (BIT(U8) | BIT(S8) | BIT(U16) | BIT(S16))

enum {
    COMMUTES = 1,
    EFFECT = 2,
    LOAD = 4,
    STORE = 8,
    WARP_SYNC = 16,
    CTA_SYNC = 32,
    BRANCH = 64,
};

typedef enum op {
#define OP(id, text, results, operands, types, isa, sm, flags) OP_##id,
#include "ptx/ops.def"
#undef OP
    OP_KINDS
} op;

/* One row of ops.def. */
typedef struct op_info {
    const char *text;
    char results[5], operands[5]; /* letters */
    uint8_t result_count, operand_count;
    uint8_t isa, sm;
    unsigned types, flags;
} op_info;

extern const op_info op_table[OP_KINDS];

typedef struct type_info {
    const char *name;      /* "u32" */
    const char *bits_name; /* "b32" */
    uint8_t bytes;
    uint8_t reg_class;
    uint8_t in_register; /* the type of the register that holds it */
} type_info;

/* Indexed by type. */
extern const type_info type_table[];

/* Registers of one class are declared and numbered together. */
enum { CLASS_PRED, CLASS_16, CLASS_32, CLASS_F32, CLASS_64, CLASS_F64, CLASS_COUNT };

typedef struct class_info {
    const char *type;   /* ".b32" */
    const char *prefix; /* of its registers: "%r" */
} class_info;

extern const class_info class_table[CLASS_COUNT];

typedef enum sreg {
    SREG_TID_X,
    SREG_CTAID_X,
    SREG_CTAID_Y,
    SREG_CTAID_Z,
    SREG_NCTAID_X,
    SREG_NCTAID_Z,
    SREG_COUNT
} sreg;

enum { MAX_VECTOR = 4 };

/* operand holds values only; a memory operand is base + offset, a BRA or LABEL has its label in
 * target, LD_PARAM its parameter, MOV_SREG its special register. The registers come first, since
 * most passes look at nothing else. */
typedef struct inst {
    uint8_t op, type, second;
    uint8_t results, operands, uses; /* how many there are */
    bool guard_not;
    uint32_t guard; /* predicate register; 0: none */
    uint32_t target;
    uint32_t result[MAX_VECTOR];
    uint32_t use[MAX_VECTOR + 2]; /* all registers that it reads: of operands, base, guard */
    const char *comment;
    val base;
    int64_t offset;
    val operand[MAX_VECTOR];
} inst;

typedef struct ptx_register {
    uint8_t type;
    bool variable;
} ptx_register;

typedef struct ptx_parameter {
    const char *name;
    type type;
} ptx_parameter;

typedef struct ptx_shared {
    const char *name;
    type type;
    unsigned count; /* PTX_DYNAMIC: the launch says it */
} ptx_shared;

enum { PTX_DYNAMIC = 0 };

/* Printed as $ and name and suffix, "$row_loop". */
typedef struct ptx_label {
    const char *name, *suffix;
} ptx_label;

struct ptx {
    arena *arena;
    const char *name;
    const target *target;
    unsigned block, min_blocks, max_registers;
    bool asked_target;
    VEC(const char *) headings;
    VEC(ptx_parameter) params;
    VEC(ptx_shared) shared;
    VEC(ptx_register) registers; /* number 0 is none */
    VEC(ptx_label) labels;
    VEC(inst) code;
    VEC(inst) prologue; /* runs ahead of code: parameters and thread numbers, each read once */
    val *param_values;  /* by parameter; VAL_NONE where it was not read so far */
    val sreg_values[SREG_COUNT];
    val lane, warp;
    bool has_unreachable; /* code that nothing reaches may have been built, or a needless jump */
    inst **list; /* the kernel once it is built: prologue and code as the passes leave them */
    size_t count;
    uint32_t *uses;        /* by register: how often the list reads it; kept from ptx_order on */
    const char *loop_note; /* for the next loop's label, or NULL */
    const char *error;     /* the first one */
    unsigned dump_stages;
    strbuf *dump;
};

/* Remembers a mistake, if it is the first. */
void ptx_fail(ptx *p, const char *format, ...) PRINTF_LIKE(2, 3);

/* The name itself, or "" and an error where it is longer than a line of PTX has room for. */
enum { LONGEST_NAME = 127 };
const char *ptx_name(ptx *p, const char *name);

/* The mnemonic without its placeholders filled in, for messages. */
const char *op_name(op o);

/* Walks every register that an instruction reads; id points to its number. */
#define FOR_EACH_USE(i, id) \
    for (const uint32_t *id = (i)->use, *id##_end = id + (i)->uses; id < id##_end; id++)

/* fold.c: the value that an instruction would compute, where that is known or one of its operands;
 * false where it has to be computed. */
bool ptx_fold(op o, type t, const val *operands, val *result);

static inline uint32_t val_register(val v)
{
    return v.kind == VAL_REG || v.kind == VAL_VAR ? v.id : 0;
}

static inline void ptx_note_use(inst *i, val v)
{
    if (val_register(v))
        i->use[i->uses++] = v.id;
}

static inline void ptx_set_operands(inst *i, const val *v, unsigned count)
{
    i->operands = (uint8_t)count;
    for (unsigned n = 0; n < count; n++) {
        i->operand[n] = v[n];
        ptx_note_use(i, v[n]);
    }
}

/* build.c: a new instruction at the end of the code or of the prologue, without operands. */
inst *ptx_append(ptx *p, op o, type t);
inst *ptx_append_ahead(ptx *p, op o, type t);

/* A new register for a result of an instruction. */
val ptx_add_result(ptx *p, inst *i, type t);

/* A value as an operand of a type: numbers and shared arrays become what the instruction takes. */
val ptx_fit(ptx *p, op o, type t, val v);

/* An instruction of one result with the operands that ops.def gives it, or what it folds to. */
val ptx_emit(ptx *p, op o, type t, type second, const val *given);

/* What a value is now. */
val ptx_copy(ptx *p, val v);

/* In place of a value that could not be made. */
val ptx_nothing(type t);

/* The list of all instructions, the prologue's first. No instruction may be added afterwards. */
void ptx_list_instructions(ptx *p);

/* dead.c: removes what can't run; and, behind ptx_order, copies from and to variables that can be
 * done without and results that nobody uses. */
void ptx_remove_unreachable(ptx *p);
void ptx_remove_unused(ptx *p);

/* order.c: puts values into the order that follows from their uses. */
void ptx_order(ptx *p);

/* A stretch of instructions that run together: [first, end). successors are block numbers; -1:
 * none. A block that ends the thread on some path has exits set. */
typedef struct ptx_basic_block {
    uint32_t first, end;
    int successor[2];
    int postdominator; /* immediate; the number of blocks stands for the kernel's exit */
    bool exits;
} ptx_basic_block;

typedef struct ptx_flow {
    ptx_basic_block *blocks;
    size_t count;
} ptx_flow;

/* flow.c: the control flow graph; false and p->error on a label that does not resolve or code that
 * runs off the end. */
bool ptx_flow_build(ptx *p, ptx_flow *flow);

/* check.c, definitions.c, uniform.c: the parts of the verifier; each false with p->error set. */
bool ptx_check_instructions(ptx *p);
bool ptx_check_definitions(ptx *p, const ptx_flow *flow);
bool ptx_check_uniform(ptx *p, const ptx_flow *flow);

/* print.c */
void ptx_print(ptx *p, ptx_output *out);
unsigned ptx_isa(const ptx *p);
size_t ptx_shared_bytes(const ptx *p);

/* An instruction as text, for messages: "setp.lt.u32 $row_loop". */
const char *ptx_describe(ptx *p, const inst *i);

#endif
