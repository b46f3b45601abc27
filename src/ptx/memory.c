/* Where values come from and go to: thread numbers, parameters, memory; and the barrier. */
#include "ptx/ir.h"

#include <string.h>

static val special(ptx *p, sreg which)
{
    if (!p->sreg_values[which].kind) {
        inst *i = ptx_append_ahead(p, OP_MOV_SREG, U32);
        i->target = which;
        p->sreg_values[which] = ptx_add_result(p, i, U32);
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

val nctaid_z(ptx *p)
{
    return special(p, SREG_NCTAID_Z);
}

static val thread_number(ptx *p, val *known, op o, unsigned number, const char *name)
{
    if (!known->kind) {
        val tid = tid_x(p);
        inst *i = ptx_append_ahead(p, o, U32);
        ptx_set_operands(i, (val[]){ tid, imm(U32, number) }, 2);
        i->comment = name;
        *known = ptx_add_result(p, i, U32);
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
        return ptx_nothing(U64);
    }
    if (!p->param_values)
        p->param_values = arena_zalloc(p->arena, p->params.count * sizeof *p->param_values);
    if (!p->param_values[n].kind) {
        inst *i = ptx_append_ahead(p, OP_LD_PARAM, p->params.items[n].type);
        i->target = (uint32_t)n;
        p->param_values[n] = ptx_add_result(p, i, p->params.items[n].type);
    }
    return p->param_values[n];
}

/* A load or store of count values of a type at base + offset; stored is NULL for a load. */
static inst *access(ptx *p, op o, type t, unsigned count, const val *stored, val base,
                    int64_t offset)
{
    bool shared = o == OP_LD_SHARED || o == OP_ST_SHARED;
    if (!(op_table[o].types & BIT(t)))
        ptx_fail(p, "%s: does not take %s", op_name(o), type_table[t].name);
    if (shared ? base.type != U32 : base.type != U64)
        ptx_fail(p, "%s: the address is %s", op_name(o), type_table[base.type].name);
    if (offset < INT32_MIN || offset > INT32_MAX)
        ptx_fail(p, "%s: the offset %lld has more than 32 bits", op_name(o), (long long)offset);
    unsigned size = type_table[t].bytes * count; /* a power of two */
    if (offset & (size - 1))
        ptx_fail(p, "%s: the offset %lld is not a multiple of the %u bytes accessed", op_name(o),
                 (long long)offset, size);
    inst *i = ptx_append(p, o, t);
    if (stored)
        ptx_set_operands(i, stored, count);
    i->base = base;
    ptx_note_use(i, base);
    i->offset = offset;
    return i;
}

static void load(ptx *p, op o, type t, unsigned count, val base, int64_t offset, val *values)
{
    inst *i = access(p, o, t, count, NULL, base, offset);
    for (unsigned n = 0; n < count; n++)
        values[n] = ptx_add_result(p, i, type_table[t].in_register);
}

static void store(ptx *p, op o, type t, unsigned count, val base, int64_t offset, const val *values)
{
    val fitting[MAX_VECTOR];
    for (unsigned n = 0; n < count; n++)
        fitting[n] = ptx_fit(p, o, type_table[t].in_register, values[n]);
    access(p, o, t, count, fitting, base, offset);
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

val2 ptx_load_global_v2(ptx *p, type t, val base, int64_t offset)
{
    val2 v;
    load(p, OP_LD_GLOBAL, t, 2, base, offset, v.v);
    return v;
}

val4 ptx_load_global_v4(ptx *p, type t, val base, int64_t offset)
{
    val4 v;
    load(p, OP_LD_GLOBAL, t, 4, base, offset, v.v);
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

val2 ptx_load_shared_v2(ptx *p, type t, val base, int64_t offset)
{
    val2 v;
    load(p, OP_LD_SHARED, t, 2, base, offset, v.v);
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

val atomic_inc(ptx *p, val base, val most)
{
    val fitting = ptx_fit(p, OP_ATOM_INC, U32, most);
    return ptx_add_result(p, access(p, OP_ATOM_INC, U32, 1, &fitting, base, 0), U32);
}

val shared_array(ptx *p, const char *name, type t, unsigned count)
{
    *VEC_PUSH(p->arena, &p->shared) = (ptx_shared){ ptx_name(p, name), t, count };
    return (val){ .kind = VAL_SHARED, .type = U32, .id = (uint32_t)(p->shared.count - 1) };
}

val shared_dynamic(ptx *p, const char *name, type t)
{
    return shared_array(p, name, t, PTX_DYNAMIC);
}

void warp_barrier(ptx *p)
{
    inst *i = ptx_append(p, OP_BAR_WARP, NO_TYPE);
    ptx_set_operands(i, (val[]){ imm(U32, 0xffffffff) }, 1);
}

void barrier(ptx *p)
{
    inst *i = ptx_append(p, OP_BAR_SYNC, NO_TYPE);
    ptx_set_operands(i, (val[]){ imm(U32, 0) }, 1);
}
