/* Analyses of an entry's control flow:
 * - immediate post-dominators, by the algorithm of Cooper, Harvey and Kennedy ("A simple, fast
 *   dominance algorithm") on the reversed graph
 * - registers that are read before they are written on some path, registers that may hold undefined
 *   values, and live registers, by iteration to a fixed point
 *
 * A branch reconverges at its immediate post-dominator. If an early return leaves it without one,
 * it reconverges where the paths do that continue to the last return of the entry. */
#include "emu/parse/parser.h"

#define NONE UINT32_MAX

typedef struct block {
    uint32_t first, end;     /* range of ops */
    uint32_t successors[2];  /* block numbers, or NONE; the number of blocks is the exit */
    uint32_t first_pred;     /* an edge, or NONE */
    uint32_t order;          /* reverse postorder of the reversed graph; NONE: cannot reach the
                                exit */
    uint32_t post_dominator; /* a position in that order */
} block;

typedef struct graph {
    arena *arena;
    entry *entry;
    block *blocks; /* followed by the exit */
    uint32_t count;
    uint32_t
        *next_pred; /* next edge to the same successor; edge 2 b + i is successor i of block b */
    uint32_t last_exit; /* last reachable block in the text that ends threads */
    uint32_t *order;    /* blocks that reach the exit, starting with the exit */
    uint32_t order_count;
} graph;

static void make_blocks(graph *g)
{
    const op *ops = g->entry->ops.items;
    uint32_t count = (uint32_t)g->entry->ops.count;
    uint32_t *block_of = arena_zalloc(g->arena, (count + 1) * sizeof *block_of);
    block_of[0] = 1;
    for (uint32_t i = 0; i < count; i++) {
        if (ops[i].is_branch)
            block_of[i + 1] = 1;
        if (ops[i].target != NO_TARGET)
            block_of[ops[i].target] = 1;
    }
    for (uint32_t i = 0; i < count; i++)
        g->count += block_of[i];
    g->blocks = arena_zalloc(g->arena, (g->count + 1) * sizeof *g->blocks);
    uint32_t next = 0;
    for (uint32_t i = 0; i < count; i++) {
        if (block_of[i])
            g->blocks[next++].first = i;
        g->blocks[next - 1].end = i + 1;
        block_of[i] = next - 1;
    }
    for (uint32_t b = 0; b < g->count; b++) {
        const op *last = &ops[g->blocks[b].end - 1];
        uint32_t *successor = g->blocks[b].successors;
        bool falls = !last->ends || last->guard != PREDICATE_TRUE;
        successor[0] = successor[1] = NONE;
        if (last->is_branch)
            *successor++ = last->target == NO_TARGET ? g->count : block_of[last->target];
        if (falls)
            *successor = b + 1 < g->count ? b + 1 : g->count;
    }
}

static void find_last_exit(graph *g)
{
    uint32_t depth = 0;
    uint32_t *stack = arena_alloc(g->arena, (2 * (size_t)g->count + 1) * sizeof *stack);
    bool *seen = arena_zalloc(g->arena, g->count + 1);
    stack[depth++] = 0;
    while (depth) {
        uint32_t at = stack[--depth];
        if (at == g->count || seen[at])
            continue;
        seen[at] = true;
        for (int s = 0; s < 2; s++) {
            uint32_t successor = g->blocks[at].successors[s];
            if (successor != NONE)
                stack[depth++] = successor;
            if (successor == g->count && at > g->last_exit)
                g->last_exit = at;
        }
    }
}

/* Orders blocks in reverse postorder of a depth-first search from the exit against the edges. */
static void order_blocks(graph *g)
{
    uint32_t total = g->count + 1, depth = 0;
    uint32_t *stack = arena_alloc(g->arena, total * sizeof *stack);
    uint32_t *edges = arena_alloc(g->arena, total * sizeof *edges); /* next edge to follow */
    bool *seen = arena_zalloc(g->arena, total);
    for (uint32_t b = 0; b < total; b++) {
        g->blocks[b].order = NONE;
        edges[b] = g->blocks[b].first_pred;
    }
    g->order = arena_alloc(g->arena, total * sizeof *g->order);
    uint32_t first = total;
    stack[depth++] = g->count;
    seen[g->count] = true;
    while (depth) {
        uint32_t *edge = &edges[stack[depth - 1]];
        if (*edge == NONE) {
            g->order[--first] = stack[--depth];
            continue;
        }
        uint32_t pred = *edge / 2;
        *edge = g->next_pred[*edge];
        if (!seen[pred]) {
            seen[pred] = true;
            stack[depth++] = pred;
        }
    }
    g->order_count = total - first;
    memmove(g->order, g->order + first, g->order_count * sizeof *g->order);
    for (uint32_t i = 0; i < g->order_count; i++)
        g->blocks[g->order[i]].order = i;
}

static void find_post_dominators(graph *g)
{
    for (uint32_t i = 0; i < g->order_count; i++)
        g->blocks[g->order[i]].post_dominator = i ? NONE : 0;
    for (bool changed = true; changed;) {
        changed = false;
        for (uint32_t i = 1; i < g->order_count; i++) {
            block *b = &g->blocks[g->order[i]];
            uint32_t found = NONE;
            for (int s = 0; s < 2; s++) {
                if (b->successors[s] == NONE)
                    continue;
                const block *successor = &g->blocks[b->successors[s]];
                if (successor->order == NONE || successor->post_dominator == NONE)
                    continue;
                uint32_t other = successor->order;
                while (found != NONE && other != found) /* finds the common dominator */
                    if (other > found)
                        other = g->blocks[g->order[other]].post_dominator;
                    else
                        found = g->blocks[g->order[found]].post_dominator;
                found = other;
            }
            changed |= found != b->post_dominator;
            b->post_dominator = found;
        }
    }
}

/* Sets reconverge of branches that have none. */
static void set_reconvergence(graph *g)
{
    g->next_pred = arena_alloc(g->arena, (2 * (size_t)g->count + 1) * sizeof *g->next_pred);
    for (uint32_t b = 0; b <= g->count; b++)
        g->blocks[b].first_pred = NONE;
    for (uint32_t edge = 2 * g->count; edge-- > 0;) {
        uint32_t to = g->blocks[edge / 2].successors[edge % 2];
        if (to == NONE)
            continue;
        g->next_pred[edge] = g->blocks[to].first_pred;
        g->blocks[to].first_pred = edge;
    }

    order_blocks(g);
    find_post_dominators(g);
    for (uint32_t i = 0; i < g->count; i++) {
        const block *b = &g->blocks[i];
        op *last = &g->entry->ops.items[b->end - 1];
        if (last->target == NO_TARGET || b->order == NONE || b->post_dominator == NONE ||
            last->reconverge != NO_TARGET)
            continue;
        uint32_t dominator = g->order[b->post_dominator];
        last->reconverge = dominator < g->count ? g->blocks[dominator].first : NO_TARGET;
    }
}

typedef struct register_sets {
    uint64_t *words, *work; /* work: of the current block */
    size_t stride;          /* words per set */
} register_sets;

static register_sets new_sets(const graph *g, int byte)
{
    size_t stride = g->entry->regs.count / 64 + 1, bytes = g->count * stride * sizeof(uint64_t);
    register_sets s = { .words = arena_alloc(g->arena, bytes),
                        .work = arena_alloc(g->arena, stride * sizeof(uint64_t)),
                        .stride = stride };
    memset(s.words, byte, bytes);
    return s;
}

/* Stores the work set as a block's. Returns true if that changes the block's set. */
static bool keep_set(register_sets *s, uint32_t b)
{
    uint64_t *kept = s->words + b * s->stride;
    bool changes = memcmp(kept, s->work, s->stride * sizeof *kept) != 0;
    memcpy(kept, s->work, s->stride * sizeof *kept);
    return changes;
}

static bool has_register(const uint64_t *words, uint32_t r)
{
    return words[r / 64] >> r % 64 & 1;
}

static uint32_t used_register(const entry *e, const op *o, unsigned index)
{
    return e->uses.items[o->uses + index];
}

/* Finds the registers that are written on every path to the end of each block. Returns true if sets
 * have changed. marks: the sets are final; marks reads of other registers. */
static bool sweep_defined(graph *g, register_sets *s, bool marks)
{
    entry *e = g->entry;
    bool changed = false;
    for (uint32_t b = 0; b < g->count; b++) {
        const block *blk = &g->blocks[b];
        memset(s->work, b == 0 ? 0 : 0xff, s->stride * sizeof *s->work);
        for (uint32_t edge = b ? blk->first_pred : NONE; edge != NONE; edge = g->next_pred[edge])
            for (size_t w = 0; w < s->stride; w++)
                s->work[w] &= s->words[edge / 2 * s->stride + w];
        for (uint32_t i = blk->first; i < blk->end; i++) {
            op *o = &e->ops.items[i];
            for (unsigned r = 0; marks && r < o->reads; r++) {
                reg *read = op_register(e, o, r);
                if (has_register(s->work, used_register(e, o, r)))
                    continue;
                o->watch |= WATCH_READS;
                if (!read->tracked)
                    read->tracked = ++e->tracked_count;
            }
            for (unsigned r = o->reads; o->guard == PREDICATE_TRUE && r < o->reads + o->writes; r++)
                s->work[used_register(e, o, r) / 64] |= UINT64_C(1) << used_register(e, o, r) % 64;
        }
        changed |= keep_set(s, b);
    }
    return changed;
}

static void find_undefined_reads(graph *g)
{
    register_sets s = new_sets(g, 0xff);
    while (sweep_defined(g, &s, false))
        continue;
    sweep_defined(g, &s, true);
    for (size_t i = 0; i < g->entry->ops.count; i++) {
        op *o = &g->entry->ops.items[i];
        for (unsigned w = o->reads; w < o->reads + o->writes; w++)
            o->watch |= op_register(g->entry, o, w)->tracked ? WATCH_WRITES : 0;
    }
}

/* Effects of undefined sources other than CARRY_ON, by instruction. */
static const struct {
    uint8_t carry;
    op_exec *execs[24];
} carries[] = {
    { CARRY_SELECTED, { exec_selp32, exec_selp64 } },
    { CARRY_LOGIC, { exec_predicate_logic } },
    { CARRY_COMPARED, { exec_setp } },
    { CARRY_ALL_LANES, { exec_vote, exec_ballot, exec_match_any, exec_match_all, exec_redux } },
    { CARRY_SPECIAL, { exec_mma, exec_wmma, exec_wgmma, exec_movmatrix, exec_shfl } },
    { CARRY_LOADED, { exec_ld, exec_ldmatrix, exec_wmma_load } },
    { CARRY_STORED, { exec_st, exec_stmatrix, exec_wmma_store } },
    { CARRY_USED,
      { exec_elect, exec_atom, exec_async_copy, exec_prefetch, exec_async_arrive, exec_bulk_copy,
        exec_bulk_prefetch, exec_mbarrier_init, exec_mbarrier_inval, exec_mbarrier_arrive,
        exec_mbarrier_bytes, exec_mbarrier_test, exec_bar, exec_bar_arrive, exec_bar_warp,
        exec_table_miss, exec_call_miss, exec_heap_alloc, exec_heap_free } },
};

static bool accesses_arrays(const op *o)
{
    return (o->carry == CARRY_LOADED || o->carry == CARRY_STORED) &&
           (space_has_arrays((ptx_space)o->space) || o->space == SPACE_GENERIC);
}

/* Marks results and memory that an op may leave undefined. Returns true if any is new. */
static bool spread_undefined(entry *e, const op *o)
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

/* Finds registers that may hold undefined values (see check/undefined.h). */
static void find_carried(entry *e)
{
    for (size_t i = 0; i < e->regs.count; i++)
        if (e->regs.items[i].tracked)
            e->regs.items[i].carried = ++e->carried_count;
    for (size_t i = 0; i < e->ops.count; i++)
        for (size_t j = 0; j < sizeof carries / sizeof *carries; j++)
            for (op_exec *const *exec = carries[j].execs; *exec; exec++)
                if (*exec == e->ops.items[i].exec)
                    e->ops.items[i].carry = carries[j].carry;
    for (bool changed = e->carried_count; changed;) {
        changed = false;
        for (size_t i = 0; i < e->ops.count; i++)
            changed |= spread_undefined(e, &e->ops.items[i]);
    }
    for (size_t i = 0; i < e->ops.count && e->carried_count; i++) {
        op *o = &e->ops.items[i];
        bool carries_on = e->undefined_memory && accesses_arrays(o);
        for (unsigned j = 0; j < o->reads + o->writes; j++)
            carries_on |= op_register(e, o, j)->carried != 0;
        o->watch |= carries_on ? WATCH_CARRIES : 0;
    }
}

/* Returns the number of 32-bit registers that a register occupies. */
static uint32_t weight(const entry *e, uint32_t r)
{
    ptx_type type = e->regs.items[r].type;
    return type == TYPE_pred ? 0 : emu_type_bits(type) == 64 ? 2 : 1;
}

/* Turns the set of live registers at a block's end into the set at its start. */
static void live_through(const graph *g, uint32_t b, uint64_t *live)
{
    entry *e = g->entry;
    uint32_t now = 0; /* number of live 32-bit registers */
    for (uint32_t r = 0; r < e->regs.count; r++)
        now += has_register(live, r) ? weight(e, r) : 0;
    for (uint32_t i = g->blocks[b].end; i-- > g->blocks[b].first;) {
        const op *o = &e->ops.items[i];
        for (unsigned u = o->reads + o->writes; u-- > 0;) { /* writes, then reads */
            uint32_t r = used_register(e, o, u);
            bool read = u < o->reads;
            if (has_register(live, r) == read || (!read && o->guard != PREDICATE_TRUE))
                continue;
            live[r / 64] ^= UINT64_C(1) << r % 64;
            now += read ? weight(e, r) : 0 - weight(e, r);
        }
        e->info.live_registers = now > e->info.live_registers ? now : e->info.live_registers;
    }
}

/* Finds the live registers at the start of each block. */
static void count_live_registers(graph *g)
{
    register_sets s = new_sets(g, 0);
    for (bool changed = true; changed;) {
        changed = false;
        for (uint32_t b = g->count; b-- > 0;) {
            memset(s.work, 0, s.stride * sizeof *s.work);
            for (int i = 0; i < 2; i++) {
                uint32_t next = g->blocks[b].successors[i];
                for (size_t w = 0; next < g->count && w < s.stride; w++)
                    s.work[w] |= s.words[next * s.stride + w];
            }
            live_through(g, b, s.work);
            changed |= keep_set(&s, b);
        }
    }
}

static void find_unread_results(const graph *g)
{
    entry *e = g->entry;
    uint64_t *read = arena_zalloc(g->arena, (e->regs.count / 64 + 1) * sizeof *read);
    for (size_t i = 0; i < e->ops.count; i++)
        for (unsigned r = 0; r < e->ops.items[i].reads; r++) {
            uint32_t which = used_register(e, &e->ops.items[i], r);
            read[which / 64] |= UINT64_C(1) << which % 64;
        }
    for (size_t i = 0; i < e->ops.count; i++) {
        op *o = &e->ops.items[i];
        o->unread = o->atomic;
        for (unsigned w = o->reads; w < o->reads + o->writes; w++)
            o->unread &= !has_register(read, used_register(e, o, w));
    }
}

void flow_analyse(arena *a, entry *e)
{
    arena *scratch = arena_new_in(a);
    graph g = { .arena = scratch, .entry = e };
    make_blocks(&g);
    find_last_exit(&g);
    set_reconvergence(&g);
    find_undefined_reads(&g);
    find_carried(e);
    count_live_registers(&g);
    find_unread_results(&g);
    /* For branches without a reconvergence point, keeps only the exit of last_exit. */
    for (uint32_t b = 0; b < g.count; b++)
        for (int s = 0; s < 2; s++)
            if (g.blocks[b].successors[s] == g.count && b != g.last_exit)
                g.blocks[b].successors[s] = NONE;
    set_reconvergence(&g);
    arena_free(scratch);
}
