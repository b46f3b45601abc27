/* A parsed module: the result of emu_load, which emu_launch runs.
 *
 * Each instruction is decoded once into an op whose operands are byte offsets into a warp's
 * register file. One call runs it for 32 lanes. Immediates, variable addresses and special
 * registers are registers, too, filled before a warp starts. */
#pragma once

#include "base/arena.h"
#include "base/hash.h"
#include "emu/emu.h"
#include "emu/types.h"

typedef struct warp warp;
typedef struct op op;

typedef void op_exec(warp *w, const op *o, lane_mask mask);

typedef enum ptx_space {
    SPACE_GENERIC,
    SPACE_GLOBAL,
    SPACE_SHARED,
    SPACE_LOCAL,
    SPACE_PARAM,
    SPACE_CONST,
} ptx_space;

/* Address spaces. Shared arrays do not start at 0, as on sm_90, and ARRAY_GAP unused bytes separate
 * any two arrays. Generic addresses of shared and local memory lie in two windows. */
enum {
    SHARED_STATIC_BASE = 0x400,
    SHARED_DYNAMIC_BASE = 0x110000,
    LOCAL_BASE = 0x100,
    ARRAY_GAP = 128,
    PARAM_STRIDE_LOG2 = 16, /* parameter i is at (i + 1) << PARAM_STRIDE_LOG2 */
    MAX_SHARED_BYTES = 227 * 1024,
    MAX_PARAM_BYTES = 32764,
};
#define SHARED_WINDOW UINT64_C(0x010000000000)
#define LOCAL_WINDOW  UINT64_C(0x020000000000)
#define WINDOW_BYTES  UINT64_C(0x1000000)

/* Function addresses, distinct from all data addresses. */
#define FUNCTION_BASE UINT64_C(0x030000000000)
enum { FUNCTION_STRIDE = 16 };

/* Returns true for shared and local memory, which hold only a kernel's arrays. */
static inline bool space_has_arrays(ptx_space space)
{
    return space == SPACE_SHARED || space == SPACE_LOCAL;
}

/* Returns the space of a generic address. */
static inline ptx_space space_at(uint64_t address)
{
    return address - SHARED_WINDOW < WINDOW_BYTES  ? SPACE_SHARED
           : address - LOCAL_WINDOW < WINDOW_BYTES ? SPACE_LOCAL
                                                   : SPACE_GLOBAL;
}

/* Returns the generic address at which a space begins. */
static inline uint64_t space_window(ptx_space space)
{
    return space == SPACE_SHARED ? SHARED_WINDOW : space == SPACE_LOCAL ? LOCAL_WINDOW : 0;
}

/* Modifiers of many instructions. */
enum {
    MOD_RZ = 1 << 0,
    MOD_RM = 1 << 1,
    MOD_RP = 1 << 2,
    MOD_INTEGRAL = 1 << 3, /* .rni .rzi .rmi .rpi: round to an integer */
    MOD_FTZ = 1 << 4,
    MOD_SAT = 1 << 5,
    MOD_RELU = 1 << 6,
    MOD_NAN = 1 << 7,
    MOD_DIRECTED = MOD_RZ | MOD_RM | MOD_RP,
};

typedef enum ptx_compare {
    COMPARE_EQ,
    COMPARE_NE,
    COMPARE_LT,
    COMPARE_LE,
    COMPARE_GT,
    COMPARE_GE,
    COMPARE_EQU,
    COMPARE_NEU,
    COMPARE_LTU,
    COMPARE_LEU,
    COMPARE_GTU,
    COMPARE_GEU,
    COMPARE_NUM,
    COMPARE_NAN,
} ptx_compare;

/* Operation of an atomic, a reduction, or a combination of predicates. */
typedef enum ptx_combine {
    COMBINE_NONE,
    COMBINE_ADD,
    COMBINE_MIN,
    COMBINE_MAX,
    COMBINE_INC,
    COMBINE_DEC,
    COMBINE_EXCH,
    COMBINE_CAS,
    COMBINE_AND,
    COMBINE_OR,
    COMBINE_XOR,
    COMBINE_POPC,
} ptx_combine;

/* Values of op.variant, by instruction. */
enum { SHUFFLE_UP, SHUFFLE_DOWN, SHUFFLE_BUTTERFLY, SHUFFLE_INDEX };
enum { VOTE_ALL, VOTE_ANY, VOTE_UNIFORM };
/* mbarrier: meaning of the last operand of arrive, of expect_tx and complete_tx, of the waits */
enum { ARRIVE_COUNT, ARRIVE_BYTES };
enum { TX_EXPECTED, TX_COMES };
enum { WAIT_STATE, WAIT_PARITY };
enum { ASYNC_SIZE, ASYNC_IGNORE }; /* op.combine: last operand of cp.async, bytes or ignore-src */
enum { CARRY_IN = 1 << 0, CARRY_OUT = 1 << 1, MUL_HIGH = 1 << 2 };

/* Fields of matrix ops (see matrix.h):
 *
 *     field       mma, wmma.mma              wmma.load, .store      ldmatrix, stmatrix
 *     variant     shape                      shape                  number of matrices
 *     combine     elements of A              elements in memory
 *     compare     elements of B              matrix and layout      .trans
 *     src_bits    elements of C
 *     dst_bits    elements of D
 *     vector      registers of A as written
 *     type2       registers of B as written  registers
 *     uniform     1-bit product by xor
 */

/* Maximum numbers of results, sources, vector elements, and elements in braces. */
enum { MAX_RESULTS = 8, MAX_SOURCES = 24, MAX_VECTOR = 8, MAX_GROUP = 128 };
#define NO_TARGET UINT32_MAX

/* Memory ordering of a fence or an access towards other blocks. */
enum { ORDER_STRONG = 1 << 0, ORDER_ACQUIRE = 1 << 1, ORDER_RELEASE = 1 << 2 };

/* Predicates 0 and 1 are constant. The first 64-bit register takes unused results. */
enum { PREDICATE_TRUE = 0, PREDICATE_FALSE = 1, SINK_PLACE = 0 };

/* Actions of an op on registers that may be undefined: check reads, note writes, track values. */
enum { WATCH_READS = 1 << 0, WATCH_WRITES = 1 << 1, WATCH_CARRIES = 1 << 2 };

/* Effects of undefined sources on an op. */
enum {
    CARRY_ON,        /* results are undefined */
    CARRY_SELECTED,  /* selp: as the selected source */
    CARRY_LOGIC,     /* predicates: unless the other one determines the result */
    CARRY_COMPARED,  /* setp with a predicate: likewise */
    CARRY_ALL_LANES, /* results of all lanes are undefined */
    CARRY_SPECIAL,   /* handled by the instruction */
    CARRY_LOADED,
    CARRY_STORED,
    CARRY_USED,
};

struct op {
    op_exec *exec;
    /* Byte offsets into a warp's register file; predicates: indices into warp.predicates. */
    uint32_t dst[MAX_RESULTS], src[MAX_SOURCES];
    int64_t offset;  /* added to an address */
    int64_t offset2; /* added to a second address */
    uint32_t guard;  /* predicate index */
    uint32_t line;
    uint32_t target;     /* branch: index of the destination op */
    uint32_t reconverge; /* branch: index of the op where its lanes reconverge, or NO_TARGET */
    uint32_t uses;       /* index of its first register in entry.uses */
    uint64_t unused;     /* load: mask of bytes that are padding and never used */
    uint16_t reads, writes;
    bool guard_not;
    uint8_t watch;       /* mask of WATCH_ bits */
    uint8_t carry;       /* effect of undefined sources: CARRY_ON, … */
    bool is_branch;      /* control may jump */
    bool ends;           /* control never falls through, unless guarded */
    bool address64;      /* 64-bit address register */
    bool pred_not;       /* the predicate operand is negated */
    bool uniform;        /* .uni: all active lanes must take the same path */
    bool strong;         /* .volatile, .relaxed, …: strong in the memory model */
    bool non_coherent;   /* .nc: need not see stores of its launch */
    bool atomic, store;  /* atom and red; st */
    bool unread;         /* atom and red: the old value is never read */
    uint8_t vector;      /* number of vector elements, at least 1 */
    uint8_t type, type2; /* ptx_type of the result and of the source */
    uint8_t dst_bits, src_bits;
    uint8_t space;   /* ptx_space */
    uint8_t compare; /* ptx_compare */
    uint8_t combine; /* ptx_combine */
    uint8_t variant; /* a value specific to the instruction */
    uint8_t mods;
    uint8_t order; /* mask of ORDER_ bits; 0 = none towards other blocks */
};

/* A declared register, a constant or a special register. */
typedef struct reg {
    const char *name;
    ptx_type type;
    uint32_t place; /* offset in the register file, or index of the predicate */
    /* 1 + index among registers that may be read unwritten, or hold an undefined value; or 0 */
    uint32_t tracked, carried;
} reg;

/* An array in shared or local memory, or a variable in global or constant memory. */
typedef struct variable {
    const char *name;
    ptx_space space;
    uint64_t size, align;
    uint64_t element;     /* bytes per element of an array */
    uint64_t offset;      /* shared and local arrays: address in that space */
    bool dynamic;         /* extern .shared: the launch sets the size */
    bool parameter;       /* .param of a call, held in local memory */
    const uint8_t *bytes; /* global and constant variables: initial value, size bytes */
    uint32_t index;       /* global and constant variables: index in emu_module.globals */
} variable;

typedef struct variables {
    VEC(const variable *) list;
    uint64_t end; /* address after the last variable */
} variables;

typedef struct param {
    const char *name;
    size_t size, offset; /* offset in the launch's parameter buffer */
} param;

/* A constant in the register file: bits plus, if base is not NULL, the address of a variable. */
typedef struct constant {
    uint64_t bits;
    const variable *base;
    uint32_t place;
    bool wide; /* 64 bits */
} constant;

typedef enum special {
#define REGISTER(name, text, type, value) SPECIAL_##name,
#include "emu/specials.def"
    SPECIAL_COUNT,
} special;

typedef struct special_place {
    special which;
    uint32_t place;
    bool wide; /* 64 bits */
} special_place;

/* A function body that recursive calls re-enter (see stack.c), and the state that they save. */
typedef struct recursion {
    uint32_t start; /* index of its first op */
    uint32_t first_register, end_register;
    uint64_t first_local, end_local; /* range of addresses in local memory */
    VEC(const variable *) shared;    /* caller's variables used as parameters by the first call */
} recursion;

typedef struct variable_pair {
    const variable *from, *to;
} variable_pair;

/* A recursive call: a call inside the body of the called function. */
typedef struct recursive_call {
    const recursion *of;
    VEC(variable_pair) arguments, results;
} recursive_call;

typedef struct entry {
    const char *name;
    VEC(param) params;
    emu_entry_info info; /* except counts that emu_entry derives */
    variables shared, local;
    VEC(op) ops;
    VEC(reg) regs;
    VEC(uint32_t) uses; /* registers of each op: reads, then writes */
    VEC(constant) constants;
    VEC(special_place) specials;
    VEC(recursion *) recursions;
    VEC(recursive_call) recursive_calls;
    bool has_stack;
    const variable *stack;       /* stack of a thread, at the end of local memory; NULL = none */
    const variable *result_room; /* temporary storage for results of recursive calls */
    uint32_t file_bytes, predicate_count, tracked_count, carried_count;
    bool undefined_memory; /* shared or local memory may hold undefined values */
} entry;

/* An address, or part of it, in the initial value of a variable. */
typedef struct relocation {
    const variable *in, *base;
    uint64_t offset, addend; /* offset in in; addend to base's address */
    unsigned size, shift;
} relocation;

struct emu_module {
    VEC(entry *) entries;
    VEC(variable *) globals;                /* variables of global and constant memory */
    name_map entry_numbers, global_numbers; /* indices in entries and in globals, by name */
    VEC(relocation) relocations;
    VEC(emu_report) unknown; /* see emu_unknown */
    unsigned target, isa;    /* as in emu_module_info */
    bool specific;           /* as in emu_module_info */
};

/* Returns the index of the first register that an op reads after its guard. */
static inline unsigned op_first_source(const op *o)
{
    return o->guard != PREDICATE_TRUE;
}

/* Returns the register at an index of an op: reads first, writes from op.reads on. */
static inline reg *op_register(const entry *e, const op *o, unsigned index)
{
    return &e->regs.items[e->uses.items[o->uses + index]];
}

/* Returns true if an atomic operation may be deferred: relaxed, and its result is never read. */
static inline bool op_may_wait(const op *o)
{
    return o->unread && o->order == ORDER_STRONG;
}

static inline uint64_t round_up(uint64_t value, uint64_t align)
{
    return (value + align - 1) & ~(align - 1);
}

/* Functions exec_NAME for the rows of emu_ops.def. Decoders select the ones declared after it. */
#define ROW(name, pattern, operands, decode, target) op_exec exec_##name;
#include "emu/emu_ops.def"

op_exec exec_pack, exec_unpack, exec_clock, exec_unknown;

/* Returns the fastest equivalent of an instruction on this processor. */
op_exec *exec_lanes_here(op_exec *exec);

/* Returns the fastest implementation of a cvt. */
op_exec *exec_cvt_for(const op *o);

const entry *module_entry(const emu_module *m, const char *name);
