/* The state of a parse, shared by the parsers of declarations, operands and instructions. */
#pragma once

#include "base/hash.h"
#include "emu/module.h"
#include "emu/parse/lexer.h"

enum { MAX_OPERANDS = 8, MAX_MODIFIERS = 16 };

typedef enum operand_kind {
    OPERAND_REG,
    OPERAND_INTEGER,
    OPERAND_FLOAT,
    OPERAND_VARIABLE, /* address of a variable, plus offset */
    OPERAND_PARAM,    /* address of a parameter, plus offset */
    OPERAND_SPECIAL,
    OPERAND_VECTOR,  /* {a, b} */
    OPERAND_ADDRESS, /* [base + offset] */
    OPERAND_LABEL,   /* a name without any other meaning yet */
    OPERAND_SINK,    /* _ */
} operand_kind;

typedef struct operand operand;
struct operand {
    operand_kind kind;
    bool negated;       /* !p */
    bool element;       /* OPERAND_VARIABLE: name[index]; offset has the index */
    bool single;        /* OPERAND_FLOAT: written as 0f, bits are a float's */
    uint64_t bits;      /* value of a number; a double unless single */
    const char *name;   /* label */
    uint32_t index;     /* register or parameter */
    variable *variable; /* OPERAND_VARIABLE */
    special special;    /* OPERAND_SPECIAL */
    ptx_type type;      /* type of a register or special register */
    int64_t offset;
    const operand *pair; /* q in p|q */
    operand *elements;   /* elements of a vector, or base of an address (NULL = none) */
    unsigned count;
};

typedef struct instruction {
    unsigned line;
    const char *name;
    const char *modifiers[MAX_MODIFIERS];
    unsigned modifier_count;
    const struct form *form; /* form of the name with its modifiers; NULL: not looked up yet */
    operand operands[MAX_OPERANDS];
    unsigned operand_count;
    const operand *guard;  /* NULL: all lanes */
    uint64_t unused_bytes; /* of a load, from a preceding pragma */
} instruction;

/* Symbols in nested scopes. */
typedef enum symbol_kind {
    SYMBOL_REG,
    SYMBOL_REG_RANGE, /* .reg .b32 %r<4>, with the name "%r" */
    SYMBOL_VARIABLE,
    SYMBOL_PARAM,
    SYMBOL_LABEL,
    SYMBOL_TARGETS, /* table of labels for brx */
    SYMBOL_FORM,    /* an instruction name with its modifiers */
} symbol_kind;

typedef struct symbol {
    const char *name;
    symbol_kind kind;
    ptx_type type;             /* type of registers */
    uint32_t index;            /* index of the register, parameter or op */
    uint32_t count;            /* number of registers of a range, or of labels */
    uint32_t *members;         /* range: 1 + register index, 0 before the first use */
    variable *variable;        /* SYMBOL_VARIABLE */
    const char *const *labels; /* SYMBOL_TARGETS */
    const struct form *form;   /* SYMBOL_FORM, see decode.c */
    unsigned depth;            /* depth of its scope */
    size_t number;             /* number of its name */
    uint32_t next;             /* 1 + index of the next older symbol with its name, or 0 */
} symbol;

typedef struct symbols {
    VEC(symbol) list;
    name_map numbers;     /* numbers of names, including names of closed scopes */
    VEC(uint32_t) newest; /* per name number, 1 + index of its newest symbol, or 0 */
    unsigned depth;
    unsigned floor; /* scopes below this depth are invisible, except the module's, which is 0 */
} symbols;

typedef struct reference {
    const char *label;
    uint32_t op;
    unsigned line;
} reference;

/* A function's text, after .func. */
typedef struct function {
    const char *name;
    lexer start;
    uint64_t address;                                  /* 0: never used as a value */
    enum { MAY_RECUR, RECURS, DOES_NOT_RECUR } recurs; /* MAY_RECUR: not yet known */
    uint64_t visit;                                    /* last search that visited it */
} function;

typedef struct parser {
    lexer lex;
    void (*parse_body)(struct parser *p); /* parses { statements } with their own scope */
    arena *arena;
    emu_module *module;
    entry *entry;
    bool defers; /* unknown items are errors only when a kernel reaches them */
    symbols symbols;
    symbols forms;             /* forms: instruction names with modifiers */
    VEC(reference) references; /* branches to labels not yet declared */
    VEC(function) functions;
    name_map function_numbers;     /* index in functions, by name */
    uint64_t visits;               /* number of searches through function bodies */
    lexer start;                   /* of the module */
    bool functions_are_known;      /* all functions of the text */
    bool pointers_are_known;       /* which functions have an address */
    struct call *call;             /* innermost call being inlined; NULL in an entry's own body */
    bool recurs;                   /* that call is recursive: local variables are on the stack */
    uint64_t unused_bytes;         /* of the next instruction */
    uint32_t calls;                /* number in the entry so far */
    uint32_t *constant_heads;      /* per bucket, 1 + index of its newest constant, or 0 */
    unsigned constant_bucket_bits; /* log2 of the number of buckets; 0 = none yet */
    VEC(uint32_t) constant_next;   /* per constant, the next older one of its bucket */
    uint32_t special_places[SPECIAL_COUNT]; /* 1 + place; 0 = not used yet */
    uint64_t shared_end;                    /* end of arrays declared outside entries */
    uint64_t global_bytes;                  /* bytes in global and constant memory so far */
    uint64_t registers;                     /* number declared in the entry so far */
} parser;

/* parser.c */

/* Open a scope, and close it with its declarations. */
size_t symbols_open(symbols *s);
void symbols_close(symbols *s, size_t opened);

/* Returns the innermost symbol of a name, or NULL. */
symbol *symbols_find(symbols *s, const char *name);

/* Adds a symbol, valid until the next one. Returns NULL if the innermost scope has the name. */
symbol *symbols_add(symbols *s, arena *a, const char *name, symbol_kind kind);

/* Skips the rest of the statement that contains the current token. */
void parser_skip_statement(parser *p);

/* Notes an unknown item, or ends the parse with an error. */
void parser_note_unknown(parser *p, unsigned line, const char *what);

/* functions.c */

/* Parses a function after ".func", and records its text if it has a body. */
void parser_function(parser *p);

/* Returns a function by name, which may follow later in the text, or NULL. */
const function *function_find(parser *p, const char *name);

/* Returns true if a known function may call itself, directly or indirectly. */
bool function_recurs(parser *p, const char *name);

/* Returns the address of a function, or 0 if its name is never used as a value. */
uint64_t function_address(parser *p, const char *name);

/* Returns true if the sizes of a function's parameters and results are exactly these. */
bool function_takes(parser *p, const function *f, const uint64_t *results, size_t result_count,
                    const uint64_t *arguments, size_t count);

/* expand.c */

/* Parses a call after "call": emits the ops of the function, or of each possible one. */
void parser_call(parser *p, unsigned line, const operand *guard);
void parser_return(parser *p, unsigned line, const operand *guard);
void parser_targets(parser *p, const char *name, unsigned line);
void parser_table_branch(parser *p, const instruction *in);

/* operand.c */
operand parser_operand(parser *p);
int64_t parser_integer(parser *p);

/* Returns the bits of a floating-point constant as a double, if wide, or as a float. */
uint64_t operand_float_bits(const operand *o, bool wide);

/* Returns the index of a new register of the entry. Predicates have a separate register file. */
uint32_t parser_add_register(parser *p, const char *name, ptx_type type);

/* Return the offset of a constant, a special register, or a new slot in the register file. */
uint32_t parser_constant(parser *p, uint64_t bits, const variable *base, bool wide);
uint32_t parser_special(parser *p, special which);
uint32_t parser_place(parser *p, unsigned bits);

/* Refuses registers that hide a special register: ptxas would use the special one. */
void parser_refuse_special(parser *p, const char *name, uint64_t count, unsigned line);

/* declare.c */

symbol *parser_declare(parser *p, const char *name, symbol_kind kind, unsigned line);
uint64_t parser_in_range(parser *p, const char *what, uint64_t lowest, uint64_t highest);

/* Parse ".b32 %r<4>, %x;" after .reg, or a single ".b32 x", valid until the next declaration. */
void parser_registers(parser *p);
const reg *parser_register(parser *p);

/* Consumes the name of a state space for variables. Returns false if there is none. */
bool parser_space(parser *p, ptx_space *space);

/* Parses ".align 4 .b8 name[16];" after the state space. */
void parser_variables(parser *p, ptx_space space, bool external);

/* Parse a parameter of an entry or a function, as ".param .u64 .ptr .global .align 16 name" or
 * ".param .align 8 .b8 name[24]". A function's is a variable in local memory, or another name for
 * the given one. Returns the parameter as declared. */
void parser_param(parser *p);
variable *parser_formal(parser *p, variable *given, ptx_type *type);

/* Adds a hidden variable to an entry's local memory. */
const variable *parser_hidden(parser *p, const char *name, uint64_t size, bool dynamic);

/* Resolves branches, from a reference on, to labels of the current scope. */
void parser_resolve_labels(parser *p, size_t first);

static inline unsigned parser_line(const parser *p)
{
    return p->lex.token.line;
}

/* decode.c */

/* Appends an instruction's op to the entry. The result is valid until the next append. */
op *decode_instruction(parser *p, const instruction *in);

/* Appends a generated instruction. text: its name with modifiers, as "setp.eq.b64". */
op *parser_emit(parser *p, unsigned line, const operand *guard, const char *text,
                const operand *operands, size_t count);

/* Looks up the form of an instruction. Returns a message if it is unknown, or NULL. */
const char *decode_find(parser *p, instruction *in);

/* Appends an op that stops a kernel with a message, or ends the parse. */
void decode_unknown(parser *p, unsigned line, const operand *guard, const char *what);

/* flow.c */

/* Sets reconverge, watch, carry and unread of ops, tracked and carried of registers with their
 * counts, and undefined_memory and live_registers of an entry. Temporary memory is in the arena. */
void flow_analyse(arena *a, entry *e);

/* Shared by instruction decoders: the op in progress, and the decoding of operands. */

enum { MAX_READS = MAX_GROUP + MAX_SOURCES + 1, MAX_WRITES = MAX_GROUP };

typedef struct decoder {
    parser *p;
    const instruction *in;
    op op;
    uint32_t reads[MAX_READS], writes[MAX_WRITES]; /* registers; op.reads and op.writes of them */
    unsigned pairs;                                /* number of operands p|q decoded */
} decoder;

_Noreturn void decode_error(decoder *d, const char *what);
#define DECODE_ERROR(d, ...) lexer_error(&(d)->p->lex, (d)->in->line, __VA_ARGS__)

bool instruction_has(const instruction *in, const char *modifier);

void decode_expect(decoder *d, unsigned least, unsigned most);

/* Returns true if a register of type given fits type wanted or, if wider, has more bits. */
bool decode_type_takes(ptx_type wanted, ptx_type given, bool wider);

/* Check an operand, note its register, and return its place in the register file. */
uint32_t decode_read_register(decoder *d, uint32_t index);
uint32_t decode_source_place(decoder *d, const operand *o, ptx_type type, bool wider);
uint32_t decode_result_place(decoder *d, const operand *o, ptx_type type, bool wider);

/* Returns a predicate result, or UINT32_MAX if o is NULL or a sink. */
uint32_t decode_predicate_result(decoder *d, const operand *o);

/* Set the op's source or result number to. */
void decode_source(decoder *d, unsigned to, const operand *o, ptx_type type);
void decode_predicate(decoder *d, unsigned to, const operand *o);
void decode_result(decoder *d, unsigned to, const operand *o, ptx_type type);

/* Decode [base + offset], and an address as a value of mov or cvta. */
void decode_address(decoder *d, unsigned to, const operand *o);
uint32_t decode_address_place(decoder *d, const operand *o, bool wide);

/* Decodes op.vector registers of the op's type as results or sources, from number to on. */
void decode_vector(decoder *d, unsigned to, const operand *o, bool result);

/* Returns an op's registers of matrix A, B, C, D, or F: the fragment that it loads or stores. */
unsigned decode_fragment_registers(const op *o, char matrix);

#define DECODER(name) void decode_##name(decoder *d);
#include "emu/emu_ops.def"
