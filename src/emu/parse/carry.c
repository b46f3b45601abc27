#include "emu/exec.h"
#include "emu/parse/parser.h"

static const struct {
    op_exec *exec;
    uint8_t carry;
} kinds[] = {
    { exec_selp32, CARRY_CHOSEN },
    { exec_selp64, CARRY_CHOSEN },
    { exec_predicate_logic, CARRY_LOGIC },
    { exec_setp, CARRY_COMPARED },
    { exec_vote, CARRY_TOGETHER },
    { exec_ballot, CARRY_TOGETHER },
    { exec_match_any, CARRY_TOGETHER },
    { exec_match_all, CARRY_TOGETHER },
    { exec_redux, CARRY_TOGETHER },
    { exec_elect, CARRY_DECIDES },
    { exec_mma, CARRY_BY_ITSELF },
    { exec_wmma, CARRY_BY_ITSELF },
    { exec_wgmma, CARRY_BY_ITSELF },
    { exec_movmatrix, CARRY_BY_ITSELF },
    { exec_shfl, CARRY_BY_ITSELF },
    { exec_ld, CARRY_LOADED },
    { exec_ldmatrix, CARRY_LOADED },
    { exec_wmma_load, CARRY_LOADED },
    { exec_st, CARRY_STORED },
    { exec_stmatrix, CARRY_STORED },
    { exec_wmma_store, CARRY_STORED },
    { exec_atom, CARRY_DECIDES },
    { exec_async_copy, CARRY_DECIDES },
    { exec_prefetch, CARRY_DECIDES },
    { exec_async_arrive, CARRY_DECIDES },
    { exec_bulk_load, CARRY_DECIDES },
    { exec_bulk_store, CARRY_DECIDES },
    { exec_bulk_prefetch, CARRY_DECIDES },
    { exec_mbarrier_init, CARRY_DECIDES },
    { exec_mbarrier_inval, CARRY_DECIDES },
    { exec_mbarrier_arrive, CARRY_DECIDES },
    { exec_mbarrier_bytes, CARRY_DECIDES },
    { exec_mbarrier_test, CARRY_DECIDES },
    { exec_bar, CARRY_DECIDES },
    { exec_bar_arrive, CARRY_DECIDES },
    { exec_bar_warp, CARRY_DECIDES },
    { exec_table_miss, CARRY_DECIDES },
    { exec_call_miss, CARRY_DECIDES },
    { exec_heap_alloc, CARRY_DECIDES },
    { exec_heap_free, CARRY_DECIDES },
};

static bool accesses_arrays(const op *o)
{
    return (o->carry == CARRY_LOADED || o->carry == CARRY_STORED) &&
           (space_has_arrays((ptx_space)o->space) || o->space == SPACE_GENERIC);
}

/* Marks what an op makes undefined. Returns true if that is new. */
static bool spread(entry *e, const op *o)
{
    bool loads = o->carry == CARRY_LOADED, changed = false;
    bool undefined = loads && accesses_arrays(o) && e->undefined_memory;
    for (unsigned i = op_first_source(o); !loads && i < o->reads; i++)
        undefined |= op_register(e, o, i)->carried != 0;
    if (!undefined)
        return false;
    if (o->carry == CARRY_STORED && accesses_arrays(o)) {
        changed = !e->undefined_memory;
        e->undefined_memory = true;
    }
    for (unsigned i = 0; i < o->writes; i++) {
        reg *r = op_register(e, o, o->reads + i);
        changed |= !r->carried;
        if (!r->carried)
            r->carried = ++e->carried_count;
    }
    return changed;
}

void carry_analyse(entry *e)
{
    for (size_t i = 0; i < e->regs.count; i++)
        if (e->regs.items[i].tracked)
            e->regs.items[i].carried = ++e->carried_count;
    for (size_t i = 0; i < e->ops.count; i++)
        for (size_t j = 0; j < sizeof kinds / sizeof *kinds; j++)
            if (kinds[j].exec == e->ops.items[i].exec)
                e->ops.items[i].carry = kinds[j].carry;
    for (bool changed = e->carried_count; changed;) {
        changed = false;
        for (size_t i = 0; i < e->ops.count; i++)
            changed |= spread(e, &e->ops.items[i]);
    }
    for (size_t i = 0; i < e->ops.count && e->carried_count; i++) {
        op *o = &e->ops.items[i];
        bool carries = e->undefined_memory && accesses_arrays(o);
        for (unsigned j = 0; j < o->reads + o->writes; j++)
            carries |= op_register(e, o, j)->carried != 0;
        o->watch |= carries ? WATCH_CARRIES : 0;
    }
}
