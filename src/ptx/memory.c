/* Thread indices, parameters, memory accesses and barriers. */
#include "ptx/ir.h"

#include <string.h>

enum { FOUR = 4 };

val ptx_special_register(ptx *p, ptx_special which)
{
    if (!p->special_values[which].kind) {
        inst *i = ptx_append_prologue(p, INST_MOV_SREG, U32, NULL, 0);
        i->target = which;
        p->special_values[which] = ptx_add_result(p, i, U32);
    }
    return p->special_values[which];
}

static val thread_number(ptx *p, val *known, ptx_op o, unsigned number, const char *name)
{
    if (!known->kind) {
        val operands[] = { tid_x(p), imm(U32, number) };
        inst *i = ptx_append_prologue(p, o, U32, operands, 2);
        ptx_set_comment(p, i, name);
        *known = ptx_add_result(p, i, U32);
    }
    return *known;
}

val lane_id(ptx *p)
{
    return p->block <= 32 ? tid_x(p) : thread_number(p, &p->lane, INST_AND, 31, "lane");
}

val warp_id(ptx *p)
{
    return p->block <= 32 ? imm(U32, 0) : thread_number(p, &p->warp, INST_SHR, 5, "warp");
}

val kept_in_register(ptx *p, uint32_t number)
{
    val zero = shr(p, ptx_special_register(p, SPECIAL_LANEID), 5); /* lanes are below 32 */
    return add(p, zero, imm(U32, number));
}

val parameter(ptx *p, const char *name)
{
    size_t n = 0;
    while (n < p->params.count && strcmp(p->params.items[n].name, name) != 0)
        n++;
    if (n == p->params.count) {
        ptx_fail(p, "unknown parameter '%s'", name);
        return imm(U64, 0);
    }
    if (!p->param_values)
        p->param_values = arena_zalloc(p->arena, p->params.count * sizeof *p->param_values);
    if (!p->param_values[n].kind) {
        inst *i = ptx_append_prologue(p, INST_LD_PARAM, p->params.items[n].type, NULL, 0);
        i->target = (uint32_t)n;
        p->param_values[n] = ptx_add_result(p, i, p->params.items[n].type);
    }
    return p->param_values[n];
}

/* Checks an offset against its range and the access size, a power of two. */
static void check_offset(ptx *p, ptx_op o, int64_t offset, unsigned size)
{
    if (offset < INT32_MIN || offset > INT32_MAX)
        ptx_fail(p, "%s: the offset %lld exceeds 32 bits", op_name(o), (long long)offset);
    if (offset & (size - 1))
        ptx_fail(p, "%s: the offset %lld is not a multiple of the %u bytes accessed", op_name(o),
                 (long long)offset, size);
}

/* Appends an access to count values at base + offset; operands has room for the address. */
static inst *access(ptx *p, ptx_op o, type t, unsigned count, val *operands, unsigned operand_count,
                    val base, int64_t offset)
{
    if (!(op_table[o].types & BIT(t)))
        ptx_fail(p, "%s does not support type %s", op_name(o), type_table[t].name);
    if (base.type != (op_table[o].flags & SHARED ? U32 : U64))
        ptx_fail(p, "%s: the address has type %s", op_name(o), type_table[base.type].name);
    check_offset(p, o, offset, access_bytes(o, t, count));
    operands[operand_count] = base;
    inst *i = ptx_append(p, o, t, operands, operand_count + 1);
    i->offset = (int32_t)offset;
    return i;
}

void ptx_keep_loads(ptx *p, bool keep)
{
    p->keeps_loads = keep;
}

void ptx_load_values(ptx *p, ptx_op o, type t, unsigned count, val base, int64_t offset,
                     val *values)
{
    val address;
    if (p->keeps_loads && o == INST_LD_CONST)
        o = INST_LD_GLOBAL;
    inst *i = access(p, o, t, count, &address, 0, base, offset);
    for (unsigned n = 0; n < count; n++)
        values[n] = ptx_add_result(p, i, type_table[t].in_register);
}

void ptx_store_values(ptx *p, ptx_op o, type t, unsigned count, val base, int64_t offset,
                      const val *values)
{
    val operands[MAX_OPERANDS];
    for (unsigned n = 0; n < count; n++)
        operands[n] = ptx_fit(p, o, type_table[t].in_register, values[n]);
    access(p, o, t, count, operands, count, base, offset);
}

val ptx_load(ptx *p, ptx_op o, type t, val base, int64_t offset)
{
    val v;
    ptx_load_values(p, o, t, 1, base, offset, &v);
    return v;
}

/* The L1 cache may hold data of an earlier launch until the wait invalidates it. So a load before
 * the wait must read from the L2, which has all stores of finished launches. */
val ptx_load_settled(ptx *p, type t, val base, int64_t offset)
{
    return ptx_load(p, ptx_overlaps(p) ? INST_LD_SETTLED : INST_LD_CONST, t, base, offset);
}

val2 ptx_load_v2(ptx *p, ptx_op o, type t, val base, int64_t offset)
{
    val2 v;
    ptx_load_values(p, o, t, 2, base, offset, v.v);
    return v;
}

val4 ptx_load_v4(ptx *p, ptx_op o, type t, val base, int64_t offset)
{
    val4 v;
    ptx_load_values(p, o, t, 4, base, offset, v.v);
    return v;
}

void load_floats(ptx *p, val base, int64_t offset, unsigned count, val *values)
{
    ptx_op o = base.type == U32 ? INST_LD_SHARED : INST_LD_CONST;
    for (unsigned i = 0; i < count; i += FOUR)
        ptx_load_values(p, o, F32, FOUR, base, offset + i * (int64_t)sizeof(float), values + i);
}

void store_floats(ptx *p, val base, int64_t offset, unsigned count, const val *values)
{
    ptx_op o = base.type == U32 ? INST_ST_SHARED : INST_ST_GLOBAL;
    for (unsigned i = 0; i < count; i += FOUR)
        ptx_store_values(p, o, F32, FOUR, base, offset + i * (int64_t)sizeof(float), values + i);
}

void ptx_copy_async(ptx *p, ptx_op o, val to, int64_t to_offset, val from, int64_t from_offset,
                    val present)
{
    enum { COPIED = 16 };
    check_offset(p, o, from_offset, COPIED);
    val operands[4] = { ptx_fit(p, o, U64, from), imm(U32, COPIED) };
    unsigned count = 2;
    if (o == INST_CP_ASYNC_CG_FILL)
        operands[count++] = ptx_fit(p, o, U32, present);
    access(p, o, U8, COPIED, operands, count, to, to_offset)->target = (uint32_t)from_offset;
}

void ptx_control(ptx *p, ptx_op o)
{
    ptx_append(p, o, NO_TYPE, NULL, 0);
}

void ptx_control_number(ptx *p, ptx_op o, unsigned number)
{
    ptx_append(p, o, NO_TYPE, (val[]){ imm(U32, number) }, 1);
}

void ptx_part_barrier(ptx *p, val id, unsigned threads)
{
    ptx_append(p, INST_BAR_PART, NO_TYPE, (val[]){ id, imm(U32, threads) }, 2);
}

/* PTX ISA, "Matrix Descriptor":
 * - bits 0 to 13: address / 16
 * - bits 16 to 29: stride along k / 16, ignored for swizzled layouts
 * - bits 32 to 45: stride of eight rows / 16
 * - bits 62 and 63: swizzle mode
 */
val wgmma_matrix(ptx *p, val address)
{
    enum { UNIT = 16, EIGHT_ROWS = 512, SWIZZLE_64 = 2, ADDRESS_BITS = 14 };
    uint64_t fixed = (uint64_t)SWIZZLE_64 << 62 | (uint64_t)(EIGHT_ROWS / UNIT) << 32 | 1 << 16;
    val number = bfe(p, address, 4, ADDRESS_BITS);
    return bit_or(p, convert(p, U64, number), imm(U64, (long long)fixed));
}

void wgmma_m64k16_f16(ptx *p, const var *sums, unsigned columns, val a, val b)
{
    if (columns % 8 || !columns || columns > 2 * MAX_SUMS)
        ptx_fail(p, "%s: %u columns; use a multiple of 8 up to 256", op_name(INST_WGMMA_F16),
                 columns);
    val operands[] = { ptx_fit(p, INST_WGMMA_F16, U64, a),
                       ptx_fit(p, INST_WGMMA_F16, U64, b),
                       imm(U32, 1),
                       imm(U32, 1),
                       imm(U32, 1),
                       imm(U32, 0),
                       imm(U32, 0) };
    inst *i = ptx_append(p, INST_WGMMA_F16, F32, operands, 7);
    i->result = arena_alloc(p->arena, columns / 2 * sizeof *i->result);
    for (unsigned n = 0; n < columns / 2; n++)
        i->result[i->results++] = sums[n].storage.id;
}

bool ptx_has_wgmma(const target *t)
{
    return t->specific && t->sm == op_table[INST_WGMMA_F16].sm;
}

val ptx_atomic(ptx *p, ptx_op o, val base, val number)
{
    val operands[2] = { ptx_fit(p, o, U32, number) };
    return ptx_add_result(p, access(p, o, U32, 1, operands, 1, base, 0), U32);
}

void ptx_prefetch(ptx *p, val base, int64_t offset)
{
    val address;
    access(p, INST_PREFETCH_L2, U8, 1, &address, 0, base, offset);
}

bool ptx_can_prefetch_bulk(const ptx *p)
{
    return ptx_target(p)->sm >= op_table[INST_PREFETCH_BULK].sm;
}

void ptx_prefetch_bulk(ptx *p, val base, int64_t offset, val bytes)
{
    val operands[2] = { ptx_fit(p, INST_PREFETCH_BULK, U32, bytes) };
    access(p, INST_PREFETCH_BULK, U8, 1, operands, 1, base, offset);
}

val shared_array(ptx *p, const char *name, type t, unsigned count)
{
    *VEC_PUSH(p->arena, &p->shared) = (ptx_shared){ ptx_name(p, name), t, count, ARRAY_ALIGNMENT };
    return (val){ .kind = VAL_SHARED, .type = U32, .bits = p->shared.count - 1 };
}

val shared_dynamic(ptx *p, const char *name, type t)
{
    return shared_array(p, name, t, PTX_DYNAMIC);
}

void shared_align(ptx *p, val array, unsigned bytes)
{
    p->shared.items[array.bits].align = bytes;
}

val global_array(ptx *p, const char *name, const char *const *comment, const uint64_t *words,
                 unsigned count)
{
    for (size_t n = 0; n < p->globals.count; n++)
        if (p->globals.items[n].count == count &&
            memcmp(p->globals.items[n].words, words, count * sizeof *words) == 0)
            return p->globals.items[n].address;
    inst *i = ptx_append_prologue(p, INST_MOV_GLOBAL, U64, NULL, 0);
    i->target = (uint32_t)p->globals.count;
    val address = ptx_add_result(p, i, U64);
    *VEC_PUSH(p->arena, &p->globals) =
        (ptx_global){ ptx_name(p, name), comment,
                      memcpy(arena_alloc(p->arena, count * sizeof *words), words,
                             count * sizeof *words),
                      count, address };
    return address;
}

val barrier_count(ptx *p, val condition)
{
    val operands[] = { imm(U32, 0), condition };
    return ptx_emit(p, INST_BAR_COUNT, U32, NO_TYPE, operands);
}
