/* A parsed module: what emu_load makes of PTX text and emu_launch runs.
 *
 * Every instruction is decoded once into an op whose operands are places in the register file of a
 * warp, so that running it is one call for 32 lanes. Immediates, addresses of variables and special
 * registers are registers as well, filled before a warp starts. */
#ifndef PTXGEN_EMU_MODULE_H
#define PTXGEN_EMU_MODULE_H

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

/* The emulator's address spaces. Shared arrays do not start at 0, as on sm_90, and unused bytes lie
 * between any two arrays. Generic addresses of shared and local memory lie in windows. */
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

/* Functions have addresses that nothing else has. */
#define FUNCTION_BASE UINT64_C(0x030000000000)
enum { FUNCTION_STRIDE = 16 };

/* Returns true if a space holds nothing but a kernel's arrays. */
static inline bool space_has_arrays(ptx_space space)
{
    return space == SPACE_SHARED || space == SPACE_LOCAL;
}

/* The space that a generic address means, and where a space's addresses are among generic ones. */
static inline ptx_space space_at(uint64_t address)
{
    return address - SHARED_WINDOW < WINDOW_BYTES  ? SPACE_SHARED
           : address - LOCAL_WINDOW < WINDOW_BYTES ? SPACE_LOCAL
                                                   : SPACE_GLOBAL;
}

static inline uint64_t space_window(ptx_space space)
{
    return space == SPACE_SHARED ? SHARED_WINDOW : space == SPACE_LOCAL ? LOCAL_WINDOW : 0;
}

/* Modifiers that many instructions share. */
enum {
    MOD_RZ = 1 << 0,
    MOD_RM = 1 << 1,
    MOD_RP = 1 << 2,
    MOD_INTEGRAL = 1 << 3, /* .rni .rzi .rmi .rpi: to a whole number */
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

/* What an atomic operation or a reduction does, or how a predicate is combined. */
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

/* What op.variant says, by instruction. */
enum { SHUFFLE_UP, SHUFFLE_DOWN, SHUFFLE_BUTTERFLY, SHUFFLE_INDEX };
enum { VOTE_ALL, VOTE_ANY, VOTE_UNIFORM };
/* mbarrier: the last operand of arrive, of expect_tx and complete_tx, of test_wait and try_wait */
enum { ARRIVE_COUNT, ARRIVE_BYTES };
enum { TX_EXPECTED, TX_COMES };
enum { WAIT_STATE, WAIT_PARITY };
enum { ASYNC_SIZE, ASYNC_IGNORE }; /* op.combine: what the last operand of cp.async says */
enum { CARRY_IN = 1 << 0, CARRY_OUT = 1 << 1, MUL_HIGH = 1 << 2 };

/* Ops of matrices (see matrix.h) keep their shape in op.variant and what elements there are in
 * op.combine: of a product those of A, with those of B, C and D in op.compare, src_bits and
 * dst_bits, and how many registers A and B are written with in op.vector and type2; of wmma.load
 * and wmma.store those in memory, with which matrix it is in op.compare, and its registers in
 * op.type2. op.uniform is for products of bits: by xor. ldmatrix and stmatrix have how many
 * matrices in op.variant, .trans in op.compare. */

/* Registers that an instruction writes and reads, and elements in braces. */
enum { MAX_RESULTS = 8, MAX_SOURCES = 24, MAX_VECTOR = 8, MAX_GROUP = 128 };
#define NO_TARGET UINT32_MAX

/* What a fence or an access means to other blocks, by its scope and its ordering. */
enum { ORDER_STRONG = 1 << 0, ORDER_ACQUIRE = 1 << 1, ORDER_RELEASE = 1 << 2 };

/* Predicates 0 and 1 of every kernel hold true and false. The first 64-bit register of its file is
 * a place for results that nobody wants. */
enum { PREDICATE_TRUE = 0, PREDICATE_FALSE = 1, SINK_PLACE = 0 };

/* What there is to do about registers that some path leaves undefined when an instruction runs:
 * reads and writes of them where reading is a fault, or values that come of them. */
enum { WATCH_READS = 1 << 0, WATCH_WRITES = 1 << 1, WATCH_CARRIES = 1 << 2 };

/* What becomes of an op's undefined sources. */
enum {
    CARRY_ON,        /* its results are undefined */
    CARRY_CHOSEN,    /* selp: the one that is chosen */
    CARRY_LOGIC,     /* of predicates: unless the other one decides */
    CARRY_COMPARED,  /* the same for setp with a predicate */
    CARRY_TOGETHER,  /* the results of all lanes are undefined */
    CARRY_BY_ITSELF, /* as its own code says */
    CARRY_LOADED,
    CARRY_STORED,
    CARRY_DECIDES,
};

struct op {
    op_exec *exec;
    /* Byte offsets into a warp's register file; for predicates indices into its predicates. */
    uint32_t dst[MAX_RESULTS], src[MAX_SOURCES];
    int64_t offset;  /* added to an address */
    int64_t offset2; /* added to a second address */
    uint32_t guard;  /* a predicate */
    uint32_t line;
    uint32_t target;     /* of a branch: the op it jumps to */
    uint32_t reconverge; /* of a branch: the op where its paths meet again, NO_TARGET for none */
    uint32_t uses;       /* the first of its register uses in entry.uses */
    uint64_t unused;     /* bytes of a load, a bit each, that nothing is done with: padding */
    uint16_t reads, writes;
    bool guard_not;
    uint8_t watch;       /* WATCH_READS and so on: what is to be done about registers */
    uint8_t carry;       /* what becomes of undefined sources, one of CARRY_ON and so on */
    bool is_branch;      /* control may go elsewhere than to the next op */
    bool ends;           /* control never goes to the next op of the text, unless guarded */
    bool address64;      /* the address register has 64 bits */
    bool pred_not;       /* the predicate operand is negated */
    bool uniform;        /* .uni: all lanes that are active go the same way */
    bool strong;         /* .volatile, .relaxed, …: ordered by the memory model */
    bool non_coherent;   /* need not see what this launch has stored */
    bool atomic, store;  /* atom and red; st */
    bool unread;         /* of atom and red: nobody reads what was found */
    uint8_t vector;      /* elements of a vector operand, at least 1 */
    uint8_t type, type2; /* ptx_type: of the result and of the source */
    uint8_t dst_bits, src_bits;
    uint8_t space;   /* ptx_space */
    uint8_t compare; /* ptx_compare */
    uint8_t combine; /* ptx_combine */
    uint8_t variant; /* a choice of its own of an instruction */
    uint8_t mods;
    uint8_t order; /* ORDER_STRONG and so on; 0: nothing to other blocks */
};

/* A register as declared, or a constant or special register. */
typedef struct reg {
    const char *name;
    ptx_type type;
    uint32_t place; /* offset in the register file, or index of the predicate */
    /* 1 + its index among registers that some path reads without having written it, and among those
     * that may hold a value that comes of one; 0: it is none */
    uint32_t tracked, carried;
} reg;

/* An array in shared or local memory, or a variable in global or constant memory. */
typedef struct variable {
    const char *name;
    ptx_space space;
    uint64_t size, align;
    uint64_t element;     /* bytes of one of an array's */
    uint64_t offset;      /* of shared and local arrays: its address in that space */
    bool dynamic;         /* extern .shared: its size is the launch's */
    bool parameter;       /* of a call: .param, kept in local memory */
    const uint8_t *bytes; /* of global and constant variables: initial content, size bytes */
    uint32_t index;       /* of global and constant variables: its place in the module */
} variable;

typedef struct variables {
    VEC(const variable *) list;
    uint64_t end; /* the address after the last */
} variables;

typedef struct param {
    const char *name;
    size_t size, offset; /* in the parameter block of a launch */
} param;

/* A constant in the register file: bits, plus the address of a variable where there is one. */
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

/* A body that lanes start over (see stack.c): where, and what it has that they put aside. */
typedef struct recursion {
    uint32_t start; /* an op */
    uint32_t first_register, end_register;
    uint64_t first_local, end_local; /* addresses in local memory */
    VEC(const variable *) shared;    /* the first caller's, used as parameters */
} recursion;

typedef struct variable_pair {
    const variable *from, *to;
} variable_pair;

/* A call inside of the body of the function that is called. */
typedef struct recursive_call {
    const recursion *of;
    VEC(variable_pair) arguments, results;
} recursive_call;

typedef struct entry {
    const char *name;
    VEC(param) params;
    emu_entry_info info; /* but for numbers that follow from what is here */
    variables shared, local;
    VEC(op) ops;
    VEC(reg) regs;
    VEC(uint32_t) uses; /* registers that ops read, then write */
    VEC(constant) constants;
    VEC(special_place) specials;
    VEC(recursion *) recursions;
    VEC(recursive_call) recursive_calls;
    bool has_stack;
    const variable *stack;       /* of each thread, after all other local memory; NULL: none */
    const variable *result_room; /* of recursive calls, for a while */
    uint32_t file_bytes, predicate_count, tracked_count, carried_count;
    bool undefined_memory; /* values that come of undefined ones may be in shared or local memory */
} entry;

/* Bytes of a variable that are those of an address, from bit shift on. */
typedef struct relocation {
    const variable *in, *base;
    uint64_t offset, addend; /* in in, and to base's address */
    unsigned size, shift;
} relocation;

struct emu_module {
    VEC(entry *) entries;
    VEC(variable *) globals;                /* of global and constant memory */
    name_map entry_numbers, global_numbers; /* by name, the index in entries and in globals */
    VEC(relocation) relocations;
    VEC(emu_report) unknown; /* see emu_unknown */
    unsigned target, isa;    /* as emu_module_info has them */
    bool specific;           /* the same */
};

/* Returns the index of the first register that an op reads and that is no guard. */
static inline unsigned op_first_source(const op *o)
{
    return o->guard != PREDICATE_TRUE;
}

/* A register that an op reads or, from op.reads on, writes. */
static inline reg *op_register(const entry *e, const op *o, unsigned index)
{
    return &e->regs.items[e->uses.items[o->uses + index]];
}

/* Returns true if an atomic operation may be deferred until something else touches its place. */
static inline bool op_may_wait(const op *o)
{
    return o->unread && o->order == ORDER_STRONG;
}

static inline uint64_t round_up(uint64_t value, uint64_t align)
{
    return (value + align - 1) & ~(align - 1);
}

/* What runs the instructions of emu_ops.def: exec_NAME for each. Decoders choose those below
 * instead of their row's. */
#define ROW(name, pattern, operands, decode, target) op_exec exec_##name;
#include "emu/emu_ops.def"

op_exec exec_pack, exec_unpack, exec_clock, exec_unknown;

/* Returns the fastest implementation of an arithmetic instruction on this processor, or of a cvt of
 * some types. All give the same results. */
op_exec *exec_lanes_here(op_exec *exec);
op_exec *exec_cvt_for(const op *o);

const entry *module_entry(const emu_module *m, const char *name);

#endif
