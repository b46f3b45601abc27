/* What decoders of instructions share: an op in the making, and the taking of operands. */
#ifndef PTXGEN_EMU_PARSE_DECODER_H
#define PTXGEN_EMU_PARSE_DECODER_H

#include "emu/parse/parser.h"

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

/* Whether a register of one type may be used as another. wider: it may have more bits. */
bool decode_type_takes(ptx_type wanted, ptx_type given, bool wider);

void decode_expect(decoder *d, unsigned least, unsigned most);

/* The places of operands, which are checked and noted. */
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
