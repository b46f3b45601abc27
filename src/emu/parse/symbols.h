/* Names in PTX text and what they stand for, in nested scopes. */
#ifndef PTXGEN_EMU_PARSE_SYMBOLS_H
#define PTXGEN_EMU_PARSE_SYMBOLS_H

#include "emu/module.h"

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
    uint32_t next;             /* the next older symbol of its bucket, plus 1 */
} symbol;

typedef struct symbols {
    VEC(symbol) list;
    uint32_t *heads; /* by bucket, 1 + the index of its newest symbol, or 0 */
    size_t buckets;  /* a power of 2, at least list.count; 0 before the first symbol */
    unsigned depth;
    unsigned floor; /* scopes below this one are not seen, but for the module's, which is 0 */
} symbols;

/* Opens a scope; what is declared from here on is forgotten when it is closed. */
size_t symbols_open(symbols *s);
void symbols_close(symbols *s, size_t opened);

/* The innermost symbol of this name, or NULL. */
symbol *symbols_find(symbols *s, const char *name);

/* The same of a name that is the first length characters of a text. */
symbol *symbols_find_start(symbols *s, const char *name, size_t length);

/* NULL when the innermost scope has the name already. The symbol is valid until the next add. */
symbol *symbols_add(symbols *s, arena *a, const char *name, symbol_kind kind);

#endif
