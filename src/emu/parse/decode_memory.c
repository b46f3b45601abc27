/* Decoders of addresses, vectors, and memory instructions, including asynchronous ones. */
#include "emu/parse/parser.h"

uint32_t decode_address_place(decoder *d, const operand *o, bool wide)
{
    variables *shared = &d->p->entry->shared;
    if (o->kind == OPERAND_PARAM)
        return parser_constant(
            d->p, (((uint64_t)o->index + 1) << PARAM_STRIDE_LOG2) + (uint64_t)o->offset, NULL,
            wide);
    const variable *v = o->variable;
    bool in_memory = v->space == SPACE_GLOBAL || v->space == SPACE_CONST;
    size_t i = 0;
    while (i < shared->list.count && shared->list.items[i] != v)
        i++;
    if (v->space == SPACE_SHARED && i == shared->list.count)
        *VEC_PUSH(d->p->arena, &shared->list) = v;
    if (in_memory && !wide)
        decode_error(d, "an address in global memory must have 64 bits");
    return parser_constant(d->p, (in_memory ? 0 : v->offset) + (uint64_t)o->offset,
                           in_memory ? v : NULL, wide);
}

void decode_address(decoder *d, unsigned to, const operand *o)
{
    bool element = o->kind == OPERAND_VARIABLE && o->element; /* name[index] */
    if (o->kind != OPERAND_ADDRESS && !element)
        decode_error(d, "an address must be in brackets");
    const operand *base = element ? o : o->elements;
    d->op.address64 = true;
    d->op.offset = element ? 0 : o->offset;
    if (!base) {
        d->op.src[to] = parser_constant(d->p, 0, NULL, true);
    } else if (base->kind == OPERAND_REG) {
        unsigned bits = emu_type_bits(base->type);
        if ((bits != 32 && bits != 64) || emu_type_kind(base->type) == KIND_FLOAT)
            decode_error(d, "an address must be an integer of 32 or 64 bits");
        d->op.address64 = bits == 64;
        d->op.src[to] = decode_read_register(d, base->index);
    } else {
        d->op.src[to] = decode_address_place(d, base, true);
        /* reports a variable in the wrong state space without a run */
        ptx_space declared = base->kind == OPERAND_PARAM ? SPACE_PARAM : base->variable->space;
        bool anywhere = declared == SPACE_GLOBAL || declared == SPACE_CONST;
        if (d->op.space == SPACE_PARAM && base->kind == OPERAND_VARIABLE &&
            base->variable->parameter)
            d->op.space = SPACE_LOCAL;
        else if (d->op.space != declared && !(d->op.space == SPACE_GENERIC && anywhere))
            decode_error(d, "the variable is in another state space");
    }
}

/* Registers may be wider than the elements, but all must have the same size. */
void decode_vector(decoder *d, unsigned to, const operand *o, bool result)
{
    ptx_type type = (ptx_type)d->op.type;
    bool wider = emu_type_kind(type) != KIND_FLOAT, braces = o->kind == OPERAND_VECTOR;
    const operand *elements = braces ? o->elements : o;
    if ((braces ? o->count : 1) != d->op.vector)
        decode_error(d, "the number of elements does not match the vector size");
    d->op.dst_bits = d->op.src_bits = 32;
    for (unsigned i = 0; i < d->op.vector; i++) {
        const operand *e = &elements[i];
        if (result)
            d->op.dst[to + i] = decode_result_place(d, e, type, wider);
        else
            d->op.src[to + i] = decode_source_place(d, e, type, wider);
        unsigned bits = emu_type_bits(e->kind == OPERAND_REG ? e->type : type);
        if (e->kind == OPERAND_REG && elements[0].kind == OPERAND_REG &&
            bits != emu_type_bits(elements[0].type))
            decode_error(d, "all elements of a vector must have the same size");
        if (e->kind == OPERAND_REG || !result)
            d->op.dst_bits = d->op.src_bits = (uint8_t)bits;
    }
}

/* Returns the ORDER_ bits of a strong instruction; 0 below the default scope .gpu. */
static uint8_t order_of(const instruction *in)
{
    bool both = instruction_has(in, "acq_rel") || instruction_has(in, "sc");
    bool acquires = both || instruction_has(in, "acquire");
    bool releases = both || instruction_has(in, "release");
    if (instruction_has(in, "cta") || instruction_has(in, "cluster"))
        return 0;
    return (uint8_t)(ORDER_STRONG | (acquires ? ORDER_ACQUIRE : 0) |
                     (releases ? ORDER_RELEASE : 0));
}

/* Checks a vector, and decodes ordering and scope. .relaxed, .acquire and .release need a scope. */
static void take_access(decoder *d)
{
    const instruction *in = d->in;
    bool ordered = instruction_has(in, "relaxed") || instruction_has(in, "acquire") ||
                   instruction_has(in, "release");
    bool scoped = instruction_has(in, "cta") || instruction_has(in, "cluster") ||
                  instruction_has(in, "gpu") || instruction_has(in, "sys");
    if (ordered && !scoped)
        decode_error(d, "an ordered access needs a scope, such as .gpu");
    if (scoped && !ordered && !instruction_has(in, "mmio"))
        decode_error(d, "a scope is only allowed with .relaxed, .acquire or .release");
    d->op.strong = ordered || instruction_has(in, "volatile");
    d->op.order = d->op.strong ? order_of(in) : 0;
    if (d->op.vector * emu_type_bits(d->op.type) > (d->op.vector == 8 ? 256 : 128))
        decode_error(d, "a vector has at most 128 bits, or 256 with .v8");
}

void decode_ld(decoder *d)
{
    bool ldu = strcmp(d->in->name, "ldu") == 0, nc = instruction_has(d->in, "nc");
    if (nc && !instruction_has(d->in, "global"))
        decode_error(d, "'.nc' is only allowed with .global");
    if (ldu)
        d->op.space = SPACE_GLOBAL;
    d->op.non_coherent = nc || ldu;
    take_access(d);
}

void decode_st(decoder *d)
{
    d->op.store = true;
    take_access(d);
}

void decode_atom(decoder *d)
{
    static const struct {
        ptx_combine combine;
        const char *types;
    } allowed[] = {
        { COMBINE_ADD, "u32 s32 u64 f32 f64 f16 f16x2 bf16 bf16x2" },
        { COMBINE_MIN, "u32 s32 u64 s64" },
        { COMBINE_MAX, "u32 s32 u64 s64" },
        { COMBINE_INC, "u32" },
        { COMBINE_DEC, "u32" },
        { COMBINE_EXCH, "b32 b64" },
        { COMBINE_CAS, "b16 b32 b64" },
        { COMBINE_AND, "b32 b64" },
        { COMBINE_OR, "b32 b64" },
        { COMBINE_XOR, "b32 b64" },
    };
    const char *type = emu_type_name(d->op.type);
    for (size_t i = 0; i < sizeof allowed / sizeof *allowed; i++)
        if (allowed[i].combine == d->op.combine && !strstr(allowed[i].types, type))
            decode_error(d, "this operation does not exist for this type");
    d->op.order = order_of(d->in);
    d->op.atomic = true;
}

/* membar, and a fence without semantics, acquire and release. */
void decode_fence(decoder *d)
{
    d->op.order = order_of(d->in);
    if (d->op.order == ORDER_STRONG)
        d->op.order |= ORDER_ACQUIRE | ORDER_RELEASE;
}

void decode_cvta(decoder *d)
{
    if (d->op.type2 != TYPE_u64)
        decode_error(d, "addresses must have 64 bits");
    decode_expect(d, 2, 2);
    d->op.variant = instruction_has(d->in, "to");
    decode_result(d, 0, &d->in->operands[0], TYPE_u64);
    const operand *o = &d->in->operands[1];
    if (o->kind == OPERAND_VARIABLE && !d->op.variant)
        d->op.src[0] = decode_address_place(d, o, true);
    else
        decode_source(d, 0, o, TYPE_u64);
}

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

/* cp.async.cg.shared.global [to], [from], size{, src-size or a predicate ignore-src} */
void decode_async_copy(decoder *d)
{
    decode_expect(d, 3, 4);
    const operand *operands = d->in->operands, *size = &operands[2];
    if (size->kind != OPERAND_INTEGER || (size->bits != 4 && size->bits != 8 && size->bits != 16))
        decode_error(d, "the copy size must be 4, 8 or 16 bytes");
    if (instruction_has(d->in, "cg") && size->bits != 16)
        decode_error(d, "with .cg the copy size must be 16 bytes");
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
        decode_error(d, "the number of groups must be a constant");
    decode_source(d, 0, &d->in->operands[0], TYPE_u32);
}

static void expect_sm_90(decoder *d)
{
    if (d->p->module->target < 90)
        DECODE_ERROR(d, "%s.%s.%s requires sm_90 or higher; .target is sm_%u", d->in->name,
                     d->in->modifiers[0], d->in->modifiers[1], d->p->module->target);
}

static void decode_bulk_places(decoder *d, ptx_space to, ptx_space from)
{
    expect_sm_90(d);
    decode_places(d, 16, to, from);
    decode_source(d, 2, &d->in->operands[2], TYPE_u32);
}

/* Reads the policy of .L2::cache_hint, which affects no result. */
static void decode_hint(decoder *d, unsigned index)
{
    bool hinted = instruction_has(d->in, "L2::cache_hint");
    decode_expect(d, index + hinted, index + hinted);
    if (hinted)
        decode_source_place(d, &d->in->operands[index], TYPE_b64, false);
}

/* [to], [from], size, [mbarrier]. dst holds the offset of the third address. */
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
    expect_sm_90(d);
    d->op.space = SPACE_GLOBAL;
    decode_address(d, 0, &d->in->operands[0]);
    decode_source(d, 1, &d->in->operands[1], TYPE_u32);
}

void decode_bulk_wait(decoder *d)
{
    expect_sm_90(d);
    decode_async_wait(d);
    d->op.variant = instruction_has(d->in, "read");
}

/* mbarrier operations that arrive or wait order memory, except with .relaxed. */
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
