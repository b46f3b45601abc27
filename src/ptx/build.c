/* Values, variables and instructions: what kernel files call.
 *
 * Every arithmetic call ends in emit, which gives numbers the type of the operands beside them,
 * checks the types against ops.def, folds, and appends the instruction. Structured control flow is
 * in scope.c.
 */
#include "ptx/ir.h"

#include <stdarg.h>
#include <string.h>

/* The functions below have the kernel-facing macros' names. */
#undef abs
#undef div
#undef min
#undef max

const op_info op_table[OP_KINDS] = {
#define OP(id, text, results, operands, types, isa, sm, flags)                               \
    [OP_##id] = { text, results, operands, sizeof(results) - 1, sizeof(operands) - 1, types, \
                  isa,  sm,      flags },
#include "ptx/ops.def"
#undef OP
};

const type_info type_table[] = {
    [NO_TYPE] = { "", "", "", 0, 0 },
    [PRED] = { "pred", "pred", "%p", 1, CLASS_PRED },
    [U8] = { "u8", "b8", "%r", 1, CLASS_32 },
    [S8] = { "s8", "b8", "%r", 1, CLASS_32 },
    [U16] = { "u16", "b16", "%r", 2, CLASS_32 },
    [S16] = { "s16", "b16", "%r", 2, CLASS_32 },
    [F16] = { "f16", "b16", "%h", 2, CLASS_16 },
    [U32] = { "u32", "b32", "%r", 4, CLASS_32 },
    [S32] = { "s32", "b32", "%r", 4, CLASS_32 },
    [F32] = { "f32", "b32", "%f", 4, CLASS_F32 },
    [U64] = { "u64", "b64", "%rd", 8, CLASS_64 },
    [S64] = { "s64", "b64", "%rd", 8, CLASS_64 },
    [F64] = { "f64", "b64", "%fd", 8, CLASS_F64 },
};

/* Room for most kernels, so that the lists need not grow. */
enum { USUAL_INSTRUCTIONS = 512 };

ptx *ptx_new(arena *a, const char *name, const target *t, unsigned block)
{
    ptx *p = arena_zalloc(a, sizeof *p);
    p->arena = a;
    p->name = name;
    p->target = t;
    p->block = block;
    p->code.capacity = USUAL_INSTRUCTIONS;
    p->code.items = arena_alloc(a, USUAL_INSTRUCTIONS * sizeof *p->code.items);
    p->registers.capacity = USUAL_INSTRUCTIONS;
    p->registers.items = arena_alloc(a, USUAL_INSTRUCTIONS * sizeof *p->registers.items);
    *VEC_PUSH(a, &p->registers) = (ptx_register){ 0 };
    return p;
}

const target *ptx_target(const ptx *p)
{
    return p->target;
}

unsigned ptx_block(const ptx *p)
{
    return p->block;
}

void ptx_heading(ptx *p, const char *line)
{
    *VEC_PUSH(p->arena, &p->headings) = line;
}

void ptx_param(ptx *p, type t, const char *name)
{
    *VEC_PUSH(p->arena, &p->params) = (ptx_parameter){ name, t };
}

void ptx_min_blocks(ptx *p, unsigned blocks)
{
    p->min_blocks = blocks;
}

void ptx_max_registers(ptx *p, unsigned registers)
{
    p->max_registers = registers;
}

void ptx_fail(ptx *p, const char *format, ...)
{
    if (p->error)
        return;
    va_list args;
    va_start(args, format);
    p->error = arena_vformat(p->arena, format, args);
    va_end(args);
}

const char *op_name(op o)
{
    return op_table[o].text;
}

val val_of_var(var v)
{
    v.storage.kind = VAL_VAR;
    return v.storage;
}

val val_of_int(long long number)
{
    return (val){ .kind = VAL_NUMBER, .bits = (uint64_t)number };
}

val val_of_f32(float number)
{
    uint32_t bits;
    memcpy(&bits, &number, sizeof bits);
    return (val){ .kind = VAL_IMM, .type = F32, .bits = bits };
}

val imm(type t, long long number)
{
    uint64_t mask = type_table[t].bytes == 8 ? UINT64_MAX : UINT32_MAX;
    return (val){ .kind = VAL_IMM, .type = (uint8_t)t, .bits = (uint64_t)number & mask };
}

/* What an operand is when the same instruction fails on it: a value that harms nobody. */
static val nothing(type t)
{
    return (val){ .kind = VAL_IMM, .type = (uint8_t)t };
}

static uint32_t new_register(ptx *p, type t, bool variable)
{
    *VEC_PUSH(p->arena, &p->registers) = (ptx_register){ (uint8_t)t, variable };
    return (uint32_t)(p->registers.count - 1);
}

static inst *append(ptx *p, op o, type t)
{
    inst *i = VEC_PUSH(p->arena, &p->code);
    i->op = (uint8_t)o;
    i->type = (uint8_t)t;
    i->second = NO_TYPE;
    i->results = i->operands = 0;
    i->guard_not = i->ahead = false;
    i->guard = i->target = 0;
    i->base.kind = VAL_NONE;
    i->offset = 0;
    i->comment = NULL;
    return i;
}

static val add_result(ptx *p, inst *i, type t)
{
    uint32_t id = new_register(p, t, false);
    i->result[i->results++] = id;
    return (val){ .kind = VAL_REG, .type = (uint8_t)t, .id = id };
}

static type widened(type t)
{
    return t == U32 ? U64 : t == S32 ? S64 : NO_TYPE;
}

/* The type of operand number n by ops.def; NO_TYPE where any 32-bit integer does. */
static type signature_type(char letter, type t, type second)
{
    switch (letter) {
    case 't':
        return t;
    case 's':
        return second;
    case 'w':
        return widened(t);
    case 'p':
        return PRED;
    case 'u':
    case 'i':
        return U32;
    default:
        return NO_TYPE;
    }
}

/* A C number as an immediate of a type, if the type can hold it. */
static val number_as(ptx *p, op o, type t, val v)
{
    int64_t number = (int64_t)v.bits;
    bool fits = t == U32   ? number >= 0 && number <= UINT32_MAX
                : t == S32 ? number >= INT32_MIN && number <= INT32_MAX
                : t == U64 ? number >= 0
                           : t == S64;
    if (t == F32)
        return val_of_f32((float)number);
    if (!fits)
        ptx_fail(p, "%s: the number %lld is no %s", op_name(o), (long long)number,
                 type_table[t].name);
    return imm(t, number);
}

static val address_in_register(ptx *p, val array)
{
    inst *i = append(p, OP_MOV_ADDR, U32);
    i->operand[i->operands++] = array;
    i->comment = p->shared.items[array.id].name;
    return add_result(p, i, U32);
}

static val fit_operand(ptx *p, op o, char letter, type t, type second, val v)
{
    type wanted = signature_type(letter, t, second);
    if (v.kind == VAL_NUMBER)
        return number_as(p, o, wanted ? wanted : S32, v);
    if (v.kind == VAL_SHARED)
        v = address_in_register(p, v);
    bool right = wanted ? v.type == wanted : v.type == U32 || v.type == S32;
    if (letter == 'u' && v.type == S32) /* a count or selector: its sign does not matter */
        right = true;
    if (v.kind == VAL_NONE || !right) {
        ptx_fail(p, "%s: an operand is %s where %s is needed", op_name(o),
                 v.kind == VAL_NONE ? "nothing" : type_table[v.type].name,
                 wanted ? type_table[wanted].name : "a 32-bit integer");
        return nothing(wanted ? wanted : U32);
    }
    return v;
}

static val copied(ptx *p, val v)
{
    inst *i = append(p, OP_MOV, v.type);
    i->operand[i->operands++] = v;
    return add_result(p, i, v.type);
}

static val emit(ptx *p, op o, type t, type second, const val *given)
{
    const op_info *info = &op_table[o];
    if (!(info->types & BIT(t)))
        ptx_fail(p, "%s: does not take %s", info->text, type_table[t].name);

    val operands[MAX_VECTOR] = { { 0 } };
    unsigned count = info->operand_count;
    for (unsigned n = 0; n < count; n++)
        operands[n] = fit_operand(p, o, info->operands[n], t, second, given[n]);
    if (info->flags & COMMUTES && operands[0].kind == VAL_IMM && operands[1].kind != VAL_IMM) {
        val first = operands[0];
        operands[0] = operands[1];
        operands[1] = first;
    }
    val folded;
    if (ptx_fold(o, t, operands, &folded))
        return folded.kind == VAL_VAR ? copied(p, folded) : folded;

    /* The right operand may be an immediate, the left one of most instructions may not stand alone.
     */
    inst *i = append(p, o, t);
    i->second = (uint8_t)second;
    i->operands = (uint8_t)count;
    memcpy(i->operand, operands, count * sizeof *operands);
    type result = signature_type(info->results[0], t, second);
    if (info->results[0] == 'x') /* dp4a: signed as soon as one factor is */
        result = t == U32 && second == U32 ? U32 : S32;
    return add_result(p, i, result);
}

/* The type of the first operand that has one. */
static type common_type(const val *operands, unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        if (operands[i].kind != VAL_NUMBER && operands[i].kind != VAL_NONE)
            return operands[i].type;
    return U32;
}

static val emit1(ptx *p, op o, val a)
{
    return emit(p, o, common_type(&a, 1), NO_TYPE, &a);
}

static val emit2(ptx *p, op o, val a, val b)
{
    val operands[] = { a, b };
    return emit(p, o, common_type(operands, 2), NO_TYPE, operands);
}

static val emit3(ptx *p, op o, val a, val b, val c)
{
    val operands[] = { a, b, c };
    return emit(p, o, common_type(operands, 3), NO_TYPE, operands);
}

static bool is_float(val a, val b)
{
    return BIT(a.kind == VAL_NUMBER ? b.type : a.type) & (FLOATS | BIT(F16));
}

static void comment_on(inst *items, size_t count, val v, const char *name)
{
    if (count && items[count - 1].results == 1 && items[count - 1].result[0] == v.id)
        items[count - 1].comment = name;
}

val named(ptx *p, const char *name, val v)
{
    if (v.kind == VAL_REG) {
        comment_on(p->code.items, p->code.count, v, name);
        comment_on(p->prologue.items, p->prologue.count, v, name);
    }
    return v;
}

var ptx_var(ptx *p, type t, val initial)
{
    var v = { .storage = { .kind = VAL_VAR, .type = (uint8_t)t, .id = new_register(p, t, true) } };
    ptx_assign(p, v, initial);
    return v;
}

var var_like(ptx *p, val initial)
{
    return ptx_var(p, initial.type, initial);
}

void ptx_assign(ptx *p, var v, val value)
{
    value = fit_operand(p, OP_MOV, 't', v.storage.type, NO_TYPE, value);
    inst *i = append(p, OP_MOV, v.storage.type);
    i->operand[i->operands++] = value;
    i->result[i->results++] = v.storage.id;
}

val get(ptx *p, var v)
{
    return copied(p, val_of_var(v));
}

val ptx_add(ptx *p, val a, val b)
{
    return emit2(p, OP_ADD, a, b);
}

val ptx_sub(ptx *p, val a, val b)
{
    return emit2(p, OP_SUB, a, b);
}

val ptx_mul(ptx *p, val a, val b)
{
    return emit2(p, is_float(a, b) ? OP_MUL : OP_MUL_LO, a, b);
}

/* log2 of an unsigned constant that is a power of two above 1, else 0. */
static unsigned power(val a, val b)
{
    bool constant = b.kind == VAL_IMM || b.kind == VAL_NUMBER;
    if (!constant || b.bits < 2 || b.bits & (b.bits - 1) ||
        (BIT(a.type) & ~(BIT(U32) | BIT(U64))) || a.kind == VAL_NUMBER)
        return 0;
    unsigned n = 0;
    while (b.bits >> (n + 1))
        n++;
    return n;
}

val ptx_div(ptx *p, val a, val b)
{
    if (power(a, b))
        return ptx_shr(p, a, imm(U32, power(a, b)));
    return emit2(p, is_float(a, b) ? OP_DIV_RN : OP_DIV, a, b);
}

val ptx_rem(ptx *p, val a, val b)
{
    if (power(a, b))
        return ptx_and(p, a, imm(a.type, (long long)b.bits - 1));
    return emit2(p, OP_REM, a, b);
}

val ptx_min(ptx *p, val a, val b)
{
    return emit2(p, OP_MIN, a, b);
}

val ptx_max(ptx *p, val a, val b)
{
    return emit2(p, OP_MAX, a, b);
}

val ptx_neg(ptx *p, val a)
{
    return emit1(p, OP_NEG, a);
}

val ptx_abs(ptx *p, val a)
{
    return emit1(p, OP_ABS, a);
}

val ptx_mad(ptx *p, val a, val b, val c)
{
    val operands[] = { a, b, c };
    bool real = BIT(common_type(operands, 3)) & FLOATS;
    return emit3(p, real ? OP_FMA : OP_MAD_LO, a, b, c);
}

val ptx_mul_wide(ptx *p, val a, val b)
{
    return emit2(p, OP_MUL_WIDE, a, b);
}

val ptx_mad_wide(ptx *p, val a, val b, val c)
{
    return emit3(p, OP_MAD_WIDE, a, b, c);
}

val ptx_dp4a(ptx *p, val a, val b, val c)
{
    val operands[] = { a, b, c };
    return emit(p, OP_DP4A, common_type(&a, 1), common_type(&b, 1), operands);
}

val ptx_and(ptx *p, val a, val b)
{
    return emit2(p, OP_AND, a, b);
}

val ptx_or(ptx *p, val a, val b)
{
    return emit2(p, OP_OR, a, b);
}

val ptx_xor(ptx *p, val a, val b)
{
    return emit2(p, OP_XOR, a, b);
}

val ptx_not(ptx *p, val a)
{
    return emit1(p, OP_NOT, a);
}

val ptx_shl(ptx *p, val a, val b)
{
    return emit2(p, OP_SHL, a, b);
}

val ptx_shr(ptx *p, val a, val b)
{
    return emit2(p, OP_SHR, a, b);
}

val ptx_bfe(ptx *p, val a, val first, val count)
{
    return emit3(p, OP_BFE, a, first, count);
}

val ptx_prmt(ptx *p, val a, val b, val selector)
{
    return emit3(p, OP_PRMT, a, b, selector);
}

val ptx_shf_r(ptx *p, val low, val high, val count)
{
    return emit3(p, OP_SHF_R, low, high, count);
}

val ptx_lop3(ptx *p, val a, val b, val c, unsigned table)
{
    val operands[] = { a, b, c, imm(U32, table) };
    return emit(p, OP_LOP3, common_type(operands, 3), NO_TYPE, operands);
}

val ptx_rcp(ptx *p, val a)
{
    return emit1(p, OP_RCP_RN, a);
}

val ptx_rcp_approx(ptx *p, val a)
{
    return emit1(p, OP_RCP_APPROX, a);
}

val ptx_sqrt(ptx *p, val a)
{
    return emit1(p, OP_SQRT_RN, a);
}

val ptx_rsqrt(ptx *p, val a)
{
    return emit1(p, OP_RSQRT, a);
}

val ptx_ex2(ptx *p, val a)
{
    return emit1(p, OP_EX2, a);
}

val ptx_convert(ptx *p, type t, val a)
{
    type from = common_type(&a, 1);
    if (from == t)
        return a.kind == VAL_VAR ? copied(p, a) : a;
    bool to_real = BIT(t) & (FLOATS | BIT(F16)), from_real = BIT(from) & (FLOATS | BIT(F16));
    bool exact = to_real && from_real && type_table[t].bytes > type_table[from].bytes;
    op o = to_real && !exact ? OP_CVT_RN : from_real && !to_real ? OP_CVT_RZI : OP_CVT;
    return emit(p, o, t, from, &a);
}

val ptx_convert_nearest(ptx *p, type t, val a)
{
    return emit(p, OP_CVT_RNI, t, common_type(&a, 1), &a);
}

val ptx_as(ptx *p, type t, val a)
{
    if (a.kind == VAL_VAR)
        a = copied(p, a);
    if (type_table[t].reg_class != type_table[a.type].reg_class) {
        ptx_fail(p, "as: %s is not another view of %s", type_table[t].name,
                 type_table[a.type].name);
        return nothing(t);
    }
    a.type = (uint8_t)t;
    return a;
}

val ptx_bits_as(ptx *p, type t, val a)
{
    if (type_table[t].bytes != type_table[a.type].bytes)
        ptx_fail(p, "bits_as: %s has not the size of %s", type_table[t].name,
                 type_table[a.type].name);
    if (type_table[t].reg_class == type_table[a.type].reg_class)
        return ptx_as(p, t, a);
    return emit(p, OP_MOV_BITS, t, a.type, &a);
}

val2 ptx_halves(ptx *p, val a)
{
    a = fit_operand(p, OP_HALVES, 't', common_type(&a, 1), NO_TYPE, a);
    inst *i = append(p, OP_HALVES, a.type);
    i->second = F16;
    i->operand[i->operands++] = a;
    val low = add_result(p, i, F16), high = add_result(p, i, F16);
    return (val2){ { low, high } };
}

val ptx_eq(ptx *p, val a, val b)
{
    return emit2(p, OP_SETP_EQ, a, b);
}

val ptx_ne(ptx *p, val a, val b)
{
    return emit2(p, OP_SETP_NE, a, b);
}

val ptx_lt(ptx *p, val a, val b)
{
    return emit2(p, OP_SETP_LT, a, b);
}

val ptx_le(ptx *p, val a, val b)
{
    return emit2(p, OP_SETP_LE, a, b);
}

val ptx_gt(ptx *p, val a, val b)
{
    return emit2(p, OP_SETP_GT, a, b);
}

val ptx_ge(ptx *p, val a, val b)
{
    return emit2(p, OP_SETP_GE, a, b);
}

val ptx_select(ptx *p, val condition, val yes, val no)
{
    val operands[] = { yes, no, condition };
    return emit(p, OP_SELP, common_type(operands, 2), NO_TYPE, operands);
}

/* An instruction of the prologue: one that any place of the kernel may use. */
static inst *ahead(ptx *p, op o, type t)
{
    inst *i = VEC_PUSH(p->arena, &p->prologue);
    memset(i, 0, sizeof *i);
    i->op = (uint8_t)o;
    i->type = (uint8_t)t;
    i->ahead = true;
    return i;
}

static val special(ptx *p, sreg which)
{
    if (!p->sreg_values[which].kind) {
        inst *i = ahead(p, OP_MOV_SREG, U32);
        i->target = which;
        p->sreg_values[which] = add_result(p, i, U32);
    }
    return p->sreg_values[which];
}

val tid_x(ptx *p)
{
    return special(p, SREG_TID_X);
}

val ctaid_x(ptx *p)
{
    return special(p, SREG_CTAID_X);
}

val ctaid_y(ptx *p)
{
    return special(p, SREG_CTAID_Y);
}

val ctaid_z(ptx *p)
{
    return special(p, SREG_CTAID_Z);
}

val nctaid_x(ptx *p)
{
    return special(p, SREG_NCTAID_X);
}

static val thread_number(ptx *p, val *known, op o, unsigned number, const char *name)
{
    if (!known->kind) {
        val tid = tid_x(p);
        inst *i = ahead(p, o, U32);
        i->operand[i->operands++] = tid;
        i->operand[i->operands++] = imm(U32, number);
        i->comment = name;
        *known = add_result(p, i, U32);
    }
    return *known;
}

val lane_id(ptx *p)
{
    return p->block <= 32 ? tid_x(p) : thread_number(p, &p->lane, OP_AND, 31, "lane");
}

val warp_id(ptx *p)
{
    return p->block <= 32 ? imm(U32, 0) : thread_number(p, &p->warp, OP_SHR, 5, "warp");
}

val parameter(ptx *p, const char *name)
{
    size_t n = 0;
    while (n < p->params.count && strcmp(p->params.items[n].name, name) != 0)
        n++;
    if (n == p->params.count) {
        ptx_fail(p, "there is no parameter '%s'", name);
        return nothing(U64);
    }
    if (!p->param_values)
        p->param_values = arena_zalloc(p->arena, p->params.count * sizeof *p->param_values);
    if (!p->param_values[n].kind) {
        inst *i = ahead(p, OP_LD_PARAM, p->params.items[n].type);
        i->target = (uint32_t)n;
        p->param_values[n] = add_result(p, i, p->params.items[n].type);
    }
    return p->param_values[n];
}

static void note_use(inst *i, uint32_t id)
{
    if (id)
        i->use[i->uses++] = id;
}

static void list_all(ptx *p, inst *items, size_t count)
{
    for (size_t n = 0; n < count; n++) {
        inst *i = &items[n];
        i->uses = 0;
        for (unsigned k = 0; k < i->operands; k++)
            note_use(i, val_register(i->operand[k]));
        note_use(i, val_register(i->base));
        note_use(i, i->guard);
        p->list[p->count++] = i;
    }
}

void ptx_list_instructions(ptx *p)
{
    p->list = arena_alloc(p->arena, (p->prologue.count + p->code.count + 1) * sizeof *p->list);
    list_all(p, p->prologue.items, p->prologue.count);
    list_all(p, p->code.items, p->code.count);
}

static type register_type(type memory)
{
    return memory == U8 || memory == U16 ? U32 : memory == S8 || memory == S16 ? S32 : memory;
}

/* A load or store of count values of a type at base + offset. */
static inst *access(ptx *p, op o, type t, unsigned count, val base, int64_t offset)
{
    bool shared = o == OP_LD_SHARED || o == OP_ST_SHARED;
    if (!(op_table[o].types & BIT(t)))
        ptx_fail(p, "%s: does not take %s", op_name(o), type_table[t].name);
    if (shared ? base.type != U32 : base.type != U64)
        ptx_fail(p, "%s: the address is %s", op_name(o), type_table[base.type].name);
    if (offset < INT32_MIN || offset > INT32_MAX)
        ptx_fail(p, "%s: the offset %lld has more than 32 bits", op_name(o), (long long)offset);
    if (offset % (int64_t)(type_table[t].bytes * count))
        ptx_fail(p, "%s: the offset %lld is not a multiple of the %u bytes accessed", op_name(o),
                 (long long)offset, type_table[t].bytes * count);
    inst *i = append(p, o, t);
    i->base = base;
    i->offset = offset;
    return i;
}

static void load(ptx *p, op o, type t, unsigned count, val base, int64_t offset, val *values)
{
    inst *i = access(p, o, t, count, base, offset);
    for (unsigned n = 0; n < count; n++)
        values[n] = add_result(p, i, register_type(t));
}

static void store(ptx *p, op o, type t, unsigned count, val base, int64_t offset, const val *values)
{
    val fitting[MAX_VECTOR];
    for (unsigned n = 0; n < count; n++)
        fitting[n] = fit_operand(p, o, 't', register_type(t), NO_TYPE, values[n]);
    inst *i = access(p, o, t, count, base, offset);
    for (unsigned n = 0; n < count; n++)
        i->operand[i->operands++] = fitting[n];
}

val ptx_load_global(ptx *p, type t, val base, int64_t offset)
{
    val v;
    load(p, OP_LD_GLOBAL, t, 1, base, offset, &v);
    return v;
}

val ptx_load_const(ptx *p, type t, val base, int64_t offset)
{
    val v;
    load(p, OP_LD_CONST, t, 1, base, offset, &v);
    return v;
}

val ptx_load_shared(ptx *p, type t, val base, int64_t offset)
{
    val v;
    load(p, OP_LD_SHARED, t, 1, base, offset, &v);
    return v;
}

val2 ptx_load_const_v2(ptx *p, type t, val base, int64_t offset)
{
    val2 v;
    load(p, OP_LD_CONST, t, 2, base, offset, v.v);
    return v;
}

val4 ptx_load_const_v4(ptx *p, type t, val base, int64_t offset)
{
    val4 v;
    load(p, OP_LD_CONST, t, 4, base, offset, v.v);
    return v;
}

val4 ptx_load_shared_v4(ptx *p, type t, val base, int64_t offset)
{
    val4 v;
    load(p, OP_LD_SHARED, t, 4, base, offset, v.v);
    return v;
}

void ptx_store_global(ptx *p, type t, val base, int64_t offset, val value)
{
    store(p, OP_ST_GLOBAL, t, 1, base, offset, &value);
}

void ptx_store_global_v4(ptx *p, type t, val base, int64_t offset, val4 values)
{
    store(p, OP_ST_GLOBAL, t, 4, base, offset, values.v);
}

void ptx_store_shared(ptx *p, type t, val base, int64_t offset, val value)
{
    store(p, OP_ST_SHARED, t, 1, base, offset, &value);
}

void ptx_store_shared_v4(ptx *p, type t, val base, int64_t offset, val4 values)
{
    store(p, OP_ST_SHARED, t, 4, base, offset, values.v);
}

val shared_array(ptx *p, const char *name, type t, unsigned count)
{
    *VEC_PUSH(p->arena, &p->shared) = (ptx_shared){ name, t, count };
    return (val){ .kind = VAL_SHARED, .type = U32, .id = (uint32_t)(p->shared.count - 1) };
}

val shared_dynamic(ptx *p, const char *name, type t)
{
    return shared_array(p, name, t, PTX_DYNAMIC);
}

/* PTX ISA 9.7.9.6: c is the clamp in bits 0-4 and the mask of the group's lane bits in 8-12. */
static val shuffle(ptx *p, op o, val v, val which, unsigned width)
{
    enum { FULL_WARP = 32, LAST_LANE = 31 };
    if (v.kind == VAL_NUMBER)
        ptx_fail(p, "%s: a shuffle of a constant", op_name(o));
    unsigned groups = (FULL_WARP - width) << 8;
    val operands[] = { v, which, imm(U32, groups | LAST_LANE), imm(U32, UINT32_MAX) };
    return emit(p, o, v.type, NO_TYPE, operands);
}

val ptx_shuffle_xor(ptx *p, val v, unsigned mask, unsigned width)
{
    return shuffle(p, OP_SHFL_BFLY, v, imm(U32, mask), width);
}

val ptx_shuffle_down(ptx *p, val v, unsigned distance, unsigned width)
{
    return shuffle(p, OP_SHFL_DOWN, v, imm(U32, distance), width);
}

val ptx_shuffle_from(ptx *p, val v, val lane, unsigned width)
{
    return shuffle(p, OP_SHFL_IDX, v, lane, width);
}

void barrier(ptx *p)
{
    inst *i = append(p, OP_BAR_SYNC, NO_TYPE);
    i->operand[i->operands++] = imm(U32, 0);
}
