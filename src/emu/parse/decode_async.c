/* Asynchronous copies and mbarriers. */
#include "emu/parse/decoder.h"
#include "emu/run/async.h"

/* Where a copy by so many bytes goes and where it comes from, in these spaces. */
static void decode_places(decoder *d, unsigned bytes, ptx_space to, ptx_space from)
{
    d->op.type = TYPE_b32;
    d->op.vector = (uint8_t)(bytes / 4);
    d->op.space = (uint8_t)from;
    decode_address(d, 1, &d->in->operands[1]);
    d->op.offset2 = d->op.offset;
    d->op.variant = d->op.address64;
    d->op.space = (uint8_t)to;
    decode_address(d, 0, &d->in->operands[0]);
}

/* cp.async.cg.shared.global [to], [from], size{, bytes to read or a predicate to read none} */
void decode_async_copy(decoder *d)
{
    decode_expect(d, 3, 4);
    const operand *operands = d->in->operands, *size = &operands[2];
    if (size->kind != OPERAND_INTEGER || (size->bits != 4 && size->bits != 8 && size->bits != 16))
        decode_error(d, "a copy is of 4, 8 or 16 bytes");
    if (instruction_has(d->in, "cg") && size->bits != 16)
        decode_error(d, "a copy past the first-level cache is of 16 bytes");
    decode_places(d, (unsigned)size->bits, SPACE_SHARED, SPACE_GLOBAL);
    const operand *last = &operands[d->in->operand_count - 1];
    bool ignores = last->kind == OPERAND_REG && last->type == TYPE_pred;
    d->op.combine = ignores ? ASYNC_IGNORE : ASYNC_SIZE;
    if (ignores)
        decode_predicate(d, 2, last);
    else
        d->op.src[2] = decode_source_place(d, last, TYPE_u32, false);
}

void decode_async_wait(decoder *d)
{
    decode_expect(d, 1, 1);
    if (d->in->operands[0].kind != OPERAND_INTEGER)
        decode_error(d, "the number of groups is a constant");
    decode_source(d, 0, &d->in->operands[0], TYPE_u32);
}

static void expect_target(decoder *d, unsigned least)
{
    if (d->p->module->target < least)
        lexer_error(&d->p->lex, d->in->line, "%s.%s.%s exists from sm_%u on, and .target is sm_%u",
                    d->in->name, d->in->modifiers[0], d->in->modifiers[1], least,
                    d->p->module->target);
}

static void decode_bulk_places(decoder *d, ptx_space to, ptx_space from)
{
    expect_target(d, 90);
    decode_places(d, 16, to, from);
    decode_source(d, 2, &d->in->operands[2], TYPE_u32);
}

/* The policy of .L2::cache_hint, which changes no result. */
static void decode_hint(decoder *d, unsigned index)
{
    bool hinted = instruction_has(d->in, "L2::cache_hint");
    decode_expect(d, index + hinted, index + hinted);
    if (hinted)
        decode_source_place(d, &d->in->operands[index], TYPE_b64, false);
}

/* [to], [from], size, [mbarrier]: the third address has its offset among the results, of which
 * there are none. */
void decode_bulk_load(decoder *d)
{
    decode_hint(d, 4);
    d->op.space = SPACE_SHARED;
    decode_address(d, 3, &d->in->operands[3]);
    d->op.dst[0] = (uint32_t)d->op.offset;
    d->op.dst[1] = d->op.address64;
    decode_bulk_places(d, SPACE_SHARED, SPACE_GLOBAL);
}

void decode_bulk_store(decoder *d)
{
    decode_hint(d, 3);
    decode_bulk_places(d, SPACE_GLOBAL, SPACE_SHARED);
}

void decode_bulk_prefetch(decoder *d)
{
    decode_hint(d, 2);
    expect_target(d, 90);
    d->op.space = SPACE_GLOBAL;
    decode_address(d, 0, &d->in->operands[0]);
    decode_source(d, 1, &d->in->operands[1], TYPE_u32);
}

void decode_bulk_wait(decoder *d)
{
    expect_target(d, 90);
    decode_async_wait(d);
    d->op.variant = instruction_has(d->in, "read");
}

/* Without .relaxed an mbarrier operation that arrives or waits orders memory. */
void decode_mbarrier(decoder *d)
{
    bool arrives = strncmp(d->in->modifiers[0], "arrive", 6) == 0;
    d->op.variant = arrives ? (instruction_has(d->in, "expect_tx") ? ARRIVE_BYTES : ARRIVE_COUNT)
                    : instruction_has(d->in, "complete_tx") ? TX_COMES
                    : instruction_has(d->in, "parity")      ? WAIT_PARITY
                                                            : WAIT_STATE;
    d->op.order = instruction_has(d->in, "relaxed") ? 0 : ORDER_ACQUIRE | ORDER_RELEASE;
    d->op.compare = instruction_has(d->in, "arrive_drop");
    d->op.uniform = instruction_has(d->in, "noComplete") || instruction_has(d->in, "noinc");
}
