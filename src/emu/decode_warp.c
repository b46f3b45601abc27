/* Control flow, barriers, and what lanes do together. */
#include "emu/decoder.h"
#include "emu/machine.h"

void decode_shfl(decoder *d)
{
    static const char *const modes[] = { "up", "down", "bfly", "idx" };
    decode_expect(d, 5, 5);
    const operand *to = decode_operand(d, 0);
    d->op.variant = (uint8_t)instruction_which(d->in, modes, 4);
    d->op.dst[0] = decode_result_place(d, to, TYPE_b32, false);
    d->op.dst[1] = decode_pair_result(d, to);
    for (unsigned i = 0; i < 4; i++)
        decode_source(d, i, i + 1, i == 0 ? TYPE_b32 : TYPE_u32);
    d->op.exec = exec_shfl;
}

void decode_vote(decoder *d)
{
    static const char *const modes[] = { "all", "any", "uni", "ballot" };
    decode_expect(d, 3, 3);
    d->op.variant = (uint8_t)instruction_which(d->in, modes, 4);
    if (d->op.variant == VOTE_BALLOT)
        decode_result(d, 0, 0, TYPE_b32);
    else
        d->op.dst[0] = decode_predicate_result(d, decode_operand(d, 0));
    decode_predicate(d, 0, 1);
    decode_source(d, 1, 2, TYPE_u32);
    d->op.exec = exec_vote;
}

void decode_match(decoder *d)
{
    ptx_type type = instruction_type(d->in);
    decode_expect(d, 3, 3);
    const operand *to = decode_operand(d, 0);
    d->op.variant = instruction_has(d->in, "all");
    d->op.type = (uint8_t)type;
    d->op.dst[0] = decode_result_place(d, to, TYPE_b32, false);
    d->op.dst[1] = d->op.variant ? decode_pair_result(d, to) : UINT32_MAX;
    decode_source(d, 0, 1, type);
    decode_source(d, 1, 2, TYPE_u32);
    d->op.exec = exec_match;
}

void decode_activemask(decoder *d)
{
    decode_expect(d, 1, 1);
    decode_result(d, 0, 0, TYPE_b32);
    d->op.exec = exec_activemask;
}

void decode_redux(decoder *d)
{
    ptx_type type = instruction_type(d->in);
    decode_expect(d, 3, 3);
    d->op.combine = (uint8_t)instruction_combine(d->in);
    d->op.type = (uint8_t)type;
    if ((d->op.combine >= COMBINE_AND) != (type == TYPE_b32))
        decode_error(d, "this operation does not exist for this type");
    decode_result(d, 0, 0, type);
    decode_source(d, 0, 1, type);
    decode_source(d, 1, 2, TYPE_u32);
    d->op.exec = exec_redux;
}

void decode_bra(decoder *d)
{
    decode_expect(d, 1, 1);
    const operand *to = decode_operand(d, 0);
    if (to->kind != OPERAND_LABEL)
        decode_error(d, "a branch goes to a label");
    *VEC_PUSH(d->p->arena, &d->p->references) = (reference){ .label = to->name,
                                                             .op = (uint32_t)d->p->entry->ops.count,
                                                             .line = d->in->line };
    d->op.is_branch = d->op.ends = true;
    d->op.uniform = instruction_has(d->in, "uni");
    d->op.exec = exec_bra;
}

/* What is left of brx.idx behind the comparisons with all its targets. */
void decode_table_branch(decoder *d)
{
    decode_expect(d, 2, 2);
    decode_source(d, 0, 0, TYPE_u32);
    d->op.exec = exec_table_miss;
}

void decode_exit(decoder *d)
{
    decode_expect(d, 0, 0);
    d->op.is_branch = d->op.ends = true;
    d->op.uniform = instruction_has(d->in, "uni");
    d->op.exec = exec_exit;
}

void decode_trap(decoder *d)
{
    decode_expect(d, 0, 0);
    d->op.exec = exec_trap;
}

/* Operands of an instruction that does nothing here are read all the same. */
void decode_nothing(decoder *d)
{
    for (unsigned i = 0; i < d->in->operand_count; i++)
        if (d->in->operands[i].kind == OPERAND_ADDRESS)
            decode_address(d, i, i);
        else
            decode_source(d, i, i, TYPE_u32);
    d->op.exec = exec_nothing;
}

void decode_bar_warp(decoder *d)
{
    decode_expect(d, 1, 1);
    decode_source(d, 0, 0, TYPE_u32);
    d->op.exec = exec_bar_warp;
}

/* bar.sync a{, b}: barrier a, b threads; without b (then 0) all of the block. */
void decode_bar(decoder *d)
{
    bool arrive = instruction_has(d->in, "arrive");
    decode_expect(d, 1 + arrive, 2);
    decode_source(d, 0, 0, TYPE_u32);
    d->op.src[1] = parser_constant(d->p, 0, NULL, false);
    if (d->in->operand_count == 2)
        decode_source(d, 1, 1, TYPE_u32);
    d->op.variant = arrive ? BAR_ARRIVE : BAR_SYNC;
    d->op.exec = exec_bar;
}

void decode_bar_red(decoder *d)
{
    decode_expect(d, 3, 4);
    bool counted = d->in->operand_count == 4;
    d->op.combine = (uint8_t)instruction_combine(d->in);
    if (d->op.combine == COMBINE_POPC)
        decode_result(d, 0, 0, TYPE_u32);
    else
        d->op.dst[0] = decode_predicate_result(d, decode_operand(d, 0));
    decode_source(d, 0, 1, TYPE_u32);
    d->op.src[1] = parser_constant(d->p, 0, NULL, false);
    if (counted)
        decode_source(d, 1, 2, TYPE_u32);
    decode_predicate(d, 2, counted ? 3 : 2);
    d->op.variant = BAR_RED;
    d->op.exec = exec_bar;
}
