/* The state of a parse, shared by the parts that read declarations, operands and instructions. */
#ifndef PTXGEN_EMU_PARSE_PARSER_H
#define PTXGEN_EMU_PARSE_PARSER_H

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
    OPERAND_LABEL,   /* a name that is nothing else yet */
    OPERAND_SINK,    /* _ */
} operand_kind;

typedef struct operand operand;
struct operand {
    operand_kind kind;
    bool negated;       /* !p */
    bool element;       /* OPERAND_VARIABLE: name[index], which offset says */
    bool single;        /* OPERAND_FLOAT: written as 0f, bits are a float's */
    uint64_t bits;      /* of a number; a float that is not single is a double */
    const char *name;   /* of a label */
    uint32_t index;     /* of a register or parameter */
    variable *variable; /* of OPERAND_VARIABLE */
    special special;    /* of OPERAND_SPECIAL */
    ptx_type type;      /* of a register or special register */
    int64_t offset;
    const operand *pair; /* the q of p|q */
    operand *elements;   /* of a vector; the base of an address, NULL for none */
    unsigned count;
};

/* One instruction as written. */
typedef struct instruction {
    unsigned line;
    const char *name;
    const char *modifiers[MAX_MODIFIERS];
    unsigned modifier_count;
    const struct form *form; /* of the name with its modifiers; NULL: not looked up yet */
    operand operands[MAX_OPERANDS];
    unsigned operand_count;
    const operand *guard;  /* NULL: all lanes */
    uint64_t unused_bytes; /* of a load, as a pragma before it says */
} instruction;

/* Names and their meanings, in nested scopes. */
typedef enum symbol_kind {
    SYMBOL_REG,
    SYMBOL_REG_RANGE, /* .reg .b32 %r<4>; its name is "%r" */
    SYMBOL_VARIABLE,
    SYMBOL_PARAM,
    SYMBOL_LABEL,
    SYMBOL_TARGETS, /* a table of labels for brx */
    SYMBOL_FORM,    /* an instruction with its modifiers */
} symbol_kind;

typedef struct symbol {
    const char *name;
    symbol_kind kind;
    ptx_type type;             /* of registers */
    uint32_t index;            /* of the register, parameter or op */
    uint32_t count;            /* of a range, or of labels */
    uint32_t *members;         /* of a range: 1 + register index, 0 before the first use */
    variable *variable;        /* of a variable */
    const char *const *labels; /* of a table */
    const struct form *form;   /* of an instruction with its modifiers, see decode.c */
    unsigned depth;            /* of the scope it was declared in */
    size_t number;             /* of its name */
    uint32_t next;             /* 1 + the index of the next older symbol of its name, or 0 */
} symbol;

typedef struct symbols {
    VEC(symbol) list;
    name_map numbers;     /* of names, also of scopes that are closed */
    VEC(uint32_t) newest; /* by number of a name, 1 + the index of its newest symbol, or 0 */
    unsigned depth;
    unsigned floor; /* scopes below this one are not seen, but for the module's, which is 0 */
} symbols;

typedef struct reference {
    const char *label;
    uint32_t op;
    unsigned line;
} reference;

/* A function's text, from behind .func on. */
typedef struct function {
    const char *name;
    lexer start;
    uint64_t address;                                  /* 0: nobody takes it */
    enum { MAY_RECUR, RECURS, DOES_NOT_RECUR } recurs; /* MAY_RECUR: nobody has looked */
    uint64_t visit;                                    /* the last search that came here */
} function;

typedef struct parser {
    lexer lex;
    void (*parse_body)(struct parser *p); /* { statements } with a scope of their own */
    arena *arena;
    emu_module *module;
    entry *entry;
    bool defers; /* what is not known is an error only where a kernel comes to it */
    symbols symbols;
    symbols forms;             /* instructions with their modifiers */
    VEC(reference) references; /* branches whose label was not seen when the scope was open */
    VEC(function) functions;
    name_map function_numbers; /* by name, the index in functions */
    uint64_t visits;           /* searches through the bodies of functions so far */
    lexer start;               /* of the module */
    bool functions_are_known;  /* all of the text */
    bool pointers_are_known;   /* which functions have an address */
    struct call *call;         /* whose body is being parsed, NULL in an entry's own */
    bool recurs;              /* and whether it may call itself: local variables are on the stack */
    uint64_t unused_bytes;    /* of the next instruction */
    uint32_t calls;           /* in the entry so far */
    uint32_t *constant_heads; /* by bucket, 1 + the index of its newest constant, or 0 */
    unsigned constant_bucket_bits;          /* there are 2^bits buckets; 0: none yet */
    VEC(uint32_t) constant_next;            /* of each constant, the next older one of its bucket */
    uint32_t special_places[SPECIAL_COUNT]; /* 0: not used yet */
    uint64_t shared_end;                    /* of the arrays declared outside of entries */
    uint64_t global_bytes;                  /* declared in global and constant memory so far */
    uint64_t registers;                     /* declared in the entry so far */
} parser;

/* parser.c */

/* Open a scope, and forget what has been declared in it. */
size_t symbols_open(symbols *s);
void symbols_close(symbols *s, size_t opened);

/* Return the innermost symbol of a name or NULL, and a new one, valid until the next, or NULL if
 * the innermost scope has the name already. */
symbol *symbols_find(symbols *s, const char *name);
symbol *symbols_add(symbols *s, arena *a, const char *name, symbol_kind kind);

/* Goes past the end of the statement that the current token is in. */
void parser_skip_statement(parser *p);

/* Notes what the emulator does not know, or ends the parse. */
void parser_note_unknown(parser *p, unsigned line, const char *what);

/* functions.c */

/* Parses .func …, after the word, and notes the place of a function that has a body. */
void parser_function(parser *p);

/* Return the function of a name, which may follow later in the text, or NULL; true if one that is
 * known may call itself, also by way of others; and where pointers to one point, 0 if none is. */
const function *function_find(parser *p, const char *name);
bool function_recurs(parser *p, const char *name);
uint64_t function_address(parser *p, const char *name);

/* Returns true if a function takes and gives exactly arguments and results of these sizes. */
bool function_takes(parser *p, const function *f, const uint64_t *results, size_t result_count,
                    const uint64_t *arguments, size_t count);

/* expand.c */

/* Parses call … after the word: appends the ops of the function, or of those that may be called. */
void parser_call(parser *p, unsigned line, const operand *guard);
void parser_return(parser *p, unsigned line, const operand *guard);
void parser_targets(parser *p, const char *name, unsigned line);
void parser_table_branch(parser *p, const instruction *in);

/* operand.c */
operand parser_operand(parser *p);
int64_t parser_integer(parser *p);

/* Returns the bits of a floating-point constant as a double's, if wide, or a float's. */
uint64_t operand_float_bits(const operand *o, bool wide);

/* Returns the index of a new register of the entry. Predicates have places of their own. */
uint32_t parser_add_register(parser *p, const char *name, ptx_type type);

/* Return the place of a constant, a special register, or something new in the register file. */
uint32_t parser_constant(parser *p, uint64_t bits, const variable *base, bool wide);
uint32_t parser_special(parser *p, special which);
uint32_t parser_place(parser *p, unsigned bits);

/* Refuses a register, if count is 0, or a range of count that hides a special register: ptxas takes
 * the special register where a declared one has its name. */
void parser_refuse_special(parser *p, const char *name, uint64_t count, unsigned line);

/* declare.c */

symbol *parser_declare(parser *p, const char *name, symbol_kind kind, unsigned line);
uint64_t parser_in_range(parser *p, const char *what, uint64_t lowest, uint64_t highest);

/* Parse .b32 %r<4>, %x; after .reg, or a single .b32 x, valid until the next is declared. */
void parser_registers(parser *p);
const reg *parser_register(parser *p);

/* Goes past the name of a state space that variables are declared in, if there is one. */
bool parser_space(parser *p, ptx_space *space);

/* Parses .align 4 .b8 name[16]; after the state space. */
void parser_variables(parser *p, ptx_space space, bool external);

/* Parse .param .u64 .ptr .global .align 16 name or .param .align 8 .b8 name[24], an entry's or a
 * function's. That is a variable in local memory, or another name for the given one; the variable
 * returned is the parameter as declared. */
void parser_param(parser *p);
variable *parser_formal(parser *p, variable *given, ptx_type *type);

/* Adds a variable to an entry's local memory without a name that a program may use. */
const variable *parser_hidden(parser *p, const char *name, uint64_t size, bool dynamic);

/* Gives branches, from a reference on, the ops of the labels that the scope has. */
void parser_resolve_labels(parser *p, size_t first);

/* Returns the line of the current token. */
static inline unsigned parser_line(const parser *p)
{
    return p->lex.token.line;
}

/* decode.c */

/* Appends the op of an instruction to the entry. Valid until the next is appended. */
op *decode_instruction(parser *p, const instruction *in);

/* The same for an instruction that is made up: its name with modifiers, as "setp.eq.b64". */
op *parser_emit(parser *p, unsigned line, const operand *guard, const char *text,
                const operand *operands, size_t count);

/* Looks up the form of an instruction. Returns what is not known of it, or NULL. */
const char *decode_find(parser *p, instruction *in);

/* Appends an op that stops a kernel and says why, or ends the parse. */
void decode_unknown(parser *p, unsigned line, const operand *guard, const char *what);

/* flow.c */

/* Sets reconverge of all branches, watch, carry and unread of ops, tracked and carried of registers
 * with their counts, undefined_memory and live_registers of the entry. Its own memory is in the
 * arena for a while. */
void flow_analyse(arena *a, entry *e);

/* What decoders of instructions share: an op in the making, and the taking of operands. */

enum { MAX_READS = MAX_GROUP + MAX_SOURCES + 1, MAX_WRITES = MAX_GROUP };

typedef struct decoder {
    parser *p;
    const instruction *in;
    op op;
    uint32_t reads[MAX_READS], writes[MAX_WRITES]; /* registers, op.reads and op.writes of them */
    unsigned pairs;                                /* operands of the form p|q that were taken */
} decoder;

_Noreturn void decode_error(decoder *d, const char *what);
#define DECODE_ERROR(d, ...) lexer_error(&(d)->p->lex, (d)->in->line, __VA_ARGS__)

bool instruction_has(const instruction *in, const char *modifier);

/* Checks the number of operands. */
void decode_expect(decoder *d, unsigned least, unsigned most);

/* Returns true if a register of one type may be used as another. wider: it may have more bits. */
bool decode_type_takes(ptx_type wanted, ptx_type given, bool wider);

/* Return the places of operands, which are checked and noted. */
uint32_t decode_read_register(decoder *d, uint32_t index);
uint32_t decode_source_place(decoder *d, const operand *o, ptx_type type, bool wider);
uint32_t decode_result_place(decoder *d, const operand *o, ptx_type type, bool wider);

/* A predicate result; UINT32_MAX where none is wanted, o is NULL or a sink. */
uint32_t decode_predicate_result(decoder *d, const operand *o);

/* Make an operand the op's source or result to. */
void decode_source(decoder *d, unsigned to, const operand *o, ptx_type type);
void decode_predicate(decoder *d, unsigned to, const operand *o);
void decode_result(decoder *d, unsigned to, const operand *o, ptx_type type);

/* [base + offset], and an address as a value: what mov and cvta take besides registers. */
void decode_address(decoder *d, unsigned to, const operand *o);
uint32_t decode_address_place(decoder *d, const operand *o, bool wide);

/* As many registers of the op's type as op.vector says, as results or as sources from to on. */
void decode_vector(decoder *d, unsigned to, const operand *o, bool result);

/* Registers that an op has of matrix A, B, C or D, or F: of the one that it loads or stores. */
unsigned decode_fragment_registers(const op *o, char matrix);

#define DECODER(name) void decode_##name(decoder *d);
#include "emu/emu_ops.def"

#endif
