/* Loads, stores, atomic operations and addresses. */
#include "emu/decoder.h"
#include "emu/machine.h"

static ptx_space space_of(const instruction *in)
{
    static const char *const names[] = { "global", "shared", "local", "param", "const" };
    unsigned found = instruction_which(in, names, 5);
    if (instruction_has(in, "shared::cta"))
        return SPACE_SHARED;
    return found < 5 ? (ptx_space)(found + SPACE_GLOBAL) : SPACE_GENERIC;
}

/* Where a path through the text has a use for a shared array, the entry has it. */
static void use_variable(decoder *d, const variable *v)
{
    entry *e = d->p->entry;
    if (v->space != SPACE_SHARED)
        return;
    for (size_t i = 0; i < e->shared.list.count; i++)
        if (e->shared.list.items[i] == v)
            return;
    *VEC_PUSH(d->p->arena, &e->shared.list) = v;
}

static uint64_t param_address(const operand *o)
{
    return ((uint64_t)o->index + 1) << PARAM_STRIDE_LOG2;
}

/* The place of an address as a value: what mov and cvta take besides registers. */
uint32_t decode_address_place(decoder *d, const operand *o, bool wide)
{
    if (o->kind == OPERAND_PARAM)
        return parser_constant(d->p, param_address(o) + (uint64_t)o->offset, NULL, wide);
    const variable *v = o->variable;
    bool in_memory = v->space == SPACE_GLOBAL || v->space == SPACE_CONST;
    use_variable(d, v);
    if (in_memory && !wide)
        decode_error(d, "an address of global memory has 64 bits");
    return parser_constant(d->p, (in_memory ? 0 : v->offset) + (uint64_t)o->offset,
                           in_memory ? v : NULL, wide);
}

/* [base + offset] */
void decode_address(decoder *d, unsigned to, unsigned index)
{
    const operand *o = decode_operand(d, index);
    if (o->kind != OPERAND_ADDRESS)
        decode_error(d, "an address stands in brackets");
    const operand *base = o->elements;
    d->op.address64 = true;
    d->op.offset = o->offset;
    if (!base) {
        d->op.src[to] = parser_constant(d->p, 0, NULL, true);
    } else if (base->kind == OPERAND_REG) {
        ptx_type type = d->p->entry->regs.items[base->index].type;
        type_kind kind = emu_type_kind(type);
        if ((emu_type_bits(type) != 32 && emu_type_bits(type) != 64) || kind == KIND_FLOAT)
            decode_error(d, "an address is an integer of 32 or 64 bits");
        d->op.address64 = emu_type_bits(type) == 64;
        d->op.src[to] = decode_read_register(d, base->index);
    } else {
        d->op.src[to] = decode_address_place(d, base, true);
    }
}

/* A space that the address of a variable contradicts is a mistake that no run is needed for. */
static void check_space(decoder *d, unsigned index)
{
    const operand *base = decode_operand(d, index)->elements;
    ptx_space space = (ptx_space)d->op.space;
    if (!base || base->kind == OPERAND_REG)
        return;
    ptx_space declared = base->kind == OPERAND_PARAM ? SPACE_PARAM : base->variable->space;
    if (space == SPACE_PARAM && base->kind == OPERAND_VARIABLE && base->variable->parameter) {
        d->op.space = SPACE_LOCAL;
        return;
    }
    if (space == SPACE_GENERIC && (declared == SPACE_GLOBAL || declared == SPACE_CONST))
        return;
    if (space != declared)
        decode_error(d, "this variable is in another state space");
}

/* n elements in braces or one register, as sources or results. */
static void take_vector(decoder *d, unsigned index, ptx_type type, bool result)
{
    const operand *o = decode_operand(d, index);
    unsigned count = instruction_has(d->in, "v2")   ? 2
                     : instruction_has(d->in, "v4") ? 4
                     : instruction_has(d->in, "v8") ? 8
                                                    : 1;
    bool wider = emu_type_kind(type) != KIND_FLOAT;
    const operand *elements = o->kind == OPERAND_VECTOR ? o->elements : o;
    if ((o->kind == OPERAND_VECTOR ? o->count : 1) != count)
        decode_error(d, "the vector has another number of elements");
    if (count * emu_type_bits(type) > (count == 8 ? 256 : 128))
        decode_error(d, "a vector has at most 128 bits");
    d->op.vector = (uint8_t)count;
    d->op.dst_bits = d->op.src_bits = 32;
    for (unsigned i = 0; i < count; i++) {
        const operand *e = &elements[i];
        if (result)
            d->op.dst[i] = decode_result_place(d, e, type, wider);
        else
            d->op.src[i + 1] = decode_source_place(d, e, type, wider);
        unsigned bits = e->kind == OPERAND_REG ? emu_type_bits(e->type) : emu_type_bits(type);
        if (i > 0 && e->kind == OPERAND_REG && elements[0].kind == OPERAND_REG &&
            bits != emu_type_bits(elements[0].type))
            decode_error(d, "the elements of a vector have one size");
        if (e->kind == OPERAND_REG || !result)
            d->op.dst_bits = d->op.src_bits = (uint8_t)bits;
    }
}

/* What an instruction that is strong means to other blocks: nothing at a scope of less than .gpu.
 * An atomic operation has that scope where it names none. */
static uint8_t order_of(const instruction *in)
{
    static const char *const narrow[] = { "cta", "cluster" };
    bool both = instruction_has(in, "acq_rel") || instruction_has(in, "sc");
    bool acquires = both || instruction_has(in, "acquire");
    bool releases = both || instruction_has(in, "release");
    if (instruction_which(in, narrow, 2) < 2)
        return 0;
    return (uint8_t)(ORDER_STRONG | (acquires ? ORDER_ACQUIRE : 0) |
                     (releases ? ORDER_RELEASE : 0));
}

/* .relaxed, .acquire and .release say among whom, nothing else does. */
static void take_order(decoder *d)
{
    static const char *const orders[] = { "relaxed", "acquire", "release" };
    static const char *const scopes[] = { "cta", "cluster", "gpu", "sys" };
    bool ordered = instruction_which(d->in, orders, 3) < 3;
    bool scoped = instruction_which(d->in, scopes, 4) < 4;
    if (ordered && !scoped)
        decode_error(d, "an ordered access names a scope, as in .gpu");
    if (scoped && !ordered && !instruction_has(d->in, "mmio"))
        decode_error(d, "a scope goes with .relaxed, .acquire or .release");
    d->op.strong = ordered || instruction_has(d->in, "volatile");
    d->op.order = d->op.strong ? order_of(d->in) : 0;
}

void decode_ld(decoder *d)
{
    ptx_type type = instruction_type(d->in);
    if (instruction_has(d->in, "nc") && !instruction_has(d->in, "global"))
        decode_error(d, "'.nc' goes with .global");
    decode_expect(d, 2, 2);
    d->op.space = (uint8_t)(strcmp(d->in->name, "ldu") ? space_of(d->in) : SPACE_GLOBAL);
    d->op.type = (uint8_t)type;
    d->op.non_coherent = instruction_has(d->in, "nc") || strcmp(d->in->name, "ldu") == 0;
    take_order(d);
    take_vector(d, 0, type, true);
    decode_address(d, 0, 1);
    check_space(d, 1);
    d->op.exec = d->op.space == SPACE_PARAM ? exec_ld_param : exec_ld;
}

void decode_st(decoder *d)
{
    ptx_type type = instruction_type(d->in);
    decode_expect(d, 2, 2);
    d->op.space = (uint8_t)space_of(d->in);
    d->op.type = (uint8_t)type;
    take_order(d);
    decode_address(d, 0, 0);
    check_space(d, 0);
    take_vector(d, 1, type, false);
    d->op.exec = exec_st;
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
    bool atom = strcmp(d->in->name, "atom") == 0;
    unsigned next = atom;
    ptx_type type = instruction_type(d->in);
    d->op.combine = (uint8_t)instruction_combine(d->in);
    d->op.type = (uint8_t)type;
    d->op.space = (uint8_t)space_of(d->in);
    d->op.order = order_of(d->in);
    for (size_t i = 0; i < sizeof allowed / sizeof *allowed; i++)
        if (allowed[i].combine == d->op.combine && !strstr(allowed[i].types, emu_type_name(type)))
            decode_error(d, "this operation does not exist for this type");
    unsigned count = next + (d->op.combine == COMBINE_CAS ? 3 : 2);
    decode_expect(d, count, count);
    d->op.dst[0] = d->p->sink;
    if (atom)
        decode_result(d, 0, 0, type);
    decode_address(d, 0, next);
    check_space(d, next);
    decode_source(d, 1, next + 1, type);
    if (d->op.combine == COMBINE_CAS)
        decode_source(d, 2, next + 2, type);
    d->op.exec = exec_atom;
}

/* membar, and a fence that does not say how, order both ways. */
void decode_fence(decoder *d)
{
    decode_expect(d, 0, 0);
    d->op.order = order_of(d->in);
    if (d->op.order == ORDER_STRONG)
        d->op.order |= ORDER_ACQUIRE | ORDER_RELEASE;
    d->op.exec = exec_fence;
}

/* cp.async.cg.shared.global [to], [from], size{, bytes to read or a predicate to read none} */
void decode_async_copy(decoder *d)
{
    decode_expect(d, 3, 4);
    const operand *size = decode_operand(d, 2);
    if (size->kind != OPERAND_INTEGER || (size->bits != 4 && size->bits != 8 && size->bits != 16))
        decode_error(d, "a copy is of 4, 8 or 16 bytes");
    if (instruction_has(d->in, "cg") && size->bits != 16)
        decode_error(d, "a copy past the first-level cache is of 16 bytes");
    d->op.type = TYPE_b32;
    d->op.vector = (uint8_t)(size->bits / 4);
    d->op.space = SPACE_GLOBAL;
    decode_address(d, 1, 1);
    check_space(d, 1);
    d->op.offset2 = d->op.offset;
    d->op.variant = d->op.address64;
    d->op.space = SPACE_SHARED;
    decode_address(d, 0, 0);
    check_space(d, 0);
    const operand *last = d->in->operand_count == 4 ? decode_operand(d, 3) : size;
    bool ignores = last->kind == OPERAND_REG && last->type == TYPE_pred;
    d->op.combine = ignores ? ASYNC_IGNORE : ASYNC_SIZE;
    if (ignores)
        decode_predicate(d, 2, 3);
    else
        d->op.src[2] = decode_source_place(d, last, TYPE_u32, false);
    d->op.exec = exec_async_copy;
}

void decode_async_commit(decoder *d)
{
    decode_expect(d, 0, 0);
    d->op.exec = exec_async_commit;
}

void decode_async_wait(decoder *d)
{
    decode_expect(d, 1, 1);
    if (decode_operand(d, 0)->kind != OPERAND_INTEGER)
        decode_error(d, "the number of groups is a constant");
    decode_source(d, 0, 0, TYPE_u32);
    d->op.exec = exec_async_wait;
}

void decode_async_wait_all(decoder *d)
{
    decode_expect(d, 0, 0);
    d->op.variant = 1;
    d->op.exec = exec_async_wait;
}

void decode_cvta(decoder *d)
{
    if (instruction_type(d->in) != TYPE_u64)
        decode_error(d, "addresses have 64 bits");
    decode_expect(d, 2, 2);
    d->op.space = (uint8_t)space_of(d->in);
    d->op.variant = instruction_has(d->in, "to");
    decode_result(d, 0, 0, TYPE_u64);
    const operand *o = decode_operand(d, 1);
    if (o->kind == OPERAND_VARIABLE && !d->op.variant)
        d->op.src[0] = decode_address_place(d, o, true);
    else
        decode_source(d, 0, 1, TYPE_u64);
    d->op.exec = exec_cvta;
}

void decode_isspacep(decoder *d)
{
    decode_expect(d, 2, 2);
    d->op.space = (uint8_t)space_of(d->in);
    d->op.dst[0] = decode_predicate_result(d, decode_operand(d, 0));
    decode_source(d, 0, 1, TYPE_u64);
    d->op.exec = exec_isspacep;
}
