/* Basic blocks; immediate post-dominators by the algorithm of Cooper, Harvey and Kennedy ("A
 * simple, fast dominance algorithm") on the reversed graph; and which registers are written on
 * every path that leads to a read, and how many are live at a time, by iteration to a fixed point.
 *
 * The ways of a branch meet at its immediate post-dominator. Where there is none because some path
 * returns early, they meet where those paths do that go on to the last return of the entry.
 */
#include "emu/parse/parser.h"

#define NONE UINT32_MAX

typedef struct block {
    uint32_t first, end;    /* its ops */
    uint32_t successors[2]; /* blocks, NONE where there are fewer; count of blocks: the exit */
    uint32_t first_pred;    /* in graph.preds */
    uint32_t pred_count;
    uint32_t order;          /* in the reversed graph's reverse postorder, NONE: can't reach exit */
    uint32_t post_dominator; /* a position in that order */
} block;

typedef struct graph {
    arena *arena;
    entry *entry;
    block *blocks; /* and the exit behind the last */
    uint32_t count;
    uint32_t *preds;
    uint32_t last_exit; /* the last block in the text that ends threads and can be reached */
    uint32_t *order;    /* blocks that reach the exit, the exit first */
    uint32_t order_count;
} graph;

static bool is_guarded(const op *o)
{
    return o->guard != PREDICATE_TRUE;
}

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
        bool falls = !last->ends || is_guarded(last);
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

static void make_preds(graph *g)
{
    g->preds = arena_zalloc(g->arena, (2 * (size_t)g->count + 1) * sizeof *g->preds);
    for (uint32_t b = 0; b <= g->count; b++)
        g->blocks[b].pred_count = 0;
    for (uint32_t b = 0; b < g->count; b++)
        for (int i = 0; i < 2; i++)
            if (g->blocks[b].successors[i] != NONE)
                g->blocks[g->blocks[b].successors[i]].pred_count++;
    uint32_t next = 0;
    for (uint32_t b = 0; b <= g->count; b++) {
        g->blocks[b].first_pred = next;
        next += g->blocks[b].pred_count;
        g->blocks[b].pred_count = 0;
    }
    for (uint32_t b = 0; b < g->count; b++)
        for (int i = 0; i < 2; i++)
            if (g->blocks[b].successors[i] != NONE) {
                block *s = &g->blocks[g->blocks[b].successors[i]];
                g->preds[s->first_pred + s->pred_count++] = b;
            }
}

/* Orders blocks in reverse postorder, depth first from the exit against the edges. */
static void order_blocks(graph *g)
{
    uint32_t total = g->count + 1, depth = 0;
    uint32_t *stack = arena_alloc(g->arena, total * sizeof *stack);
    uint32_t *next_pred = arena_zalloc(g->arena, total * sizeof *next_pred);
    bool *seen = arena_zalloc(g->arena, total);
    g->order = arena_alloc(g->arena, total * sizeof *g->order);
    uint32_t first = total;
    stack[depth++] = g->count;
    seen[g->count] = true;
    while (depth) {
        block *b = &g->blocks[stack[depth - 1]];
        if (next_pred[stack[depth - 1]] == b->pred_count) {
            g->order[--first] = stack[--depth];
            continue;
        }
        uint32_t pred = g->preds[b->first_pred + next_pred[stack[depth - 1]]++];
        if (!seen[pred]) {
            seen[pred] = true;
            stack[depth++] = pred;
        }
    }
    g->order_count = total - first;
    memmove(g->order, g->order + first, g->order_count * sizeof *g->order);
    for (uint32_t b = 0; b < total; b++)
        g->blocks[b].order = NONE;
    for (uint32_t i = 0; i < g->order_count; i++)
        g->blocks[g->order[i]].order = i;
}

static uint32_t common_dominator(const graph *g, uint32_t a, uint32_t b)
{
    while (a != b) {
        while (a > b)
            a = g->blocks[g->order[a]].post_dominator;
        while (b > a)
            b = g->blocks[g->order[b]].post_dominator;
    }
    return a;
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
                found =
                    found == NONE ? successor->order : common_dominator(g, successor->order, found);
            }
            changed |= found != b->post_dominator;
            b->post_dominator = found;
        }
    }
}

/* Sets reconverge of branches that have none. */
static void find_meeting_points(graph *g)
{
    make_preds(g);
    order_blocks(g);
    find_post_dominators(g);
    for (uint32_t i = 0; i < g->count; i++) {
        const block *b = &g->blocks[i];
        op *last = &g->entry->ops.items[b->end - 1];
        if (last->target == NO_TARGET || b->order == NONE || b->post_dominator == NONE ||
            last->reconverge != NO_TARGET)
            continue;
        uint32_t meets = g->order[b->post_dominator];
        last->reconverge = meets < g->count ? g->blocks[meets].first : NO_TARGET;
    }
}

typedef struct bits {
    uint64_t *words;
    size_t stride; /* words a block */
} bits;

static bool bit_at(const uint64_t *words, uint32_t index)
{
    return words[index / 64] >> index % 64 & 1;
}

static void set_writes(const entry *e, const op *o, uint64_t *defined)
{
    if (is_guarded(o))
        return;
    for (unsigned i = 0; i < o->writes; i++) {
        uint32_t r = e->uses.items[o->uses + o->reads + i];
        defined[r / 64] |= UINT64_C(1) << r % 64;
    }
}

/* Finds the registers that are written on every path to a block. */
static void flow_through(const graph *g, const bits *defined, uint32_t b, uint64_t *at_start)
{
    const block *blk = &g->blocks[b];
    memset(at_start, b == 0 ? 0 : 0xff, defined->stride * sizeof *at_start);
    for (uint32_t i = 0; b != 0 && i < blk->pred_count; i++) {
        const uint64_t *pred = defined->words + g->preds[blk->first_pred + i] * defined->stride;
        for (size_t w = 0; w < defined->stride; w++)
            at_start[w] &= pred[w];
    }
}

static void check_reads(const graph *g, uint32_t b, uint64_t *defined)
{
    entry *e = g->entry;
    for (uint32_t i = g->blocks[b].first; i < g->blocks[b].end; i++) {
        op *o = &e->ops.items[i];
        for (unsigned r = 0; r < o->reads; r++) {
            uint32_t read = e->uses.items[o->uses + r];
            if (bit_at(defined, read))
                continue;
            o->watch |= WATCH_READS;
            if (!e->regs.items[read].tracked)
                e->regs.items[read].tracked = ++e->tracked_count;
        }
        set_writes(e, o, defined);
    }
}

static void find_undefined_reads(graph *g)
{
    entry *e = g->entry;
    bits defined = { .stride = (e->regs.count + 63) / 64 + 1 };
    size_t bytes = defined.stride * sizeof *defined.words;
    defined.words = arena_alloc(g->arena, g->count * bytes);
    memset(defined.words, 0xff, g->count * bytes);
    uint64_t *words = arena_alloc(g->arena, bytes);
    for (bool changed = true; changed;) {
        changed = false;
        for (uint32_t b = 0; b < g->count; b++) {
            flow_through(g, &defined, b, words);
            for (uint32_t i = g->blocks[b].first; i < g->blocks[b].end; i++)
                set_writes(e, &e->ops.items[i], words);
            changed |= memcmp(words, defined.words + b * defined.stride, bytes) != 0;
            memcpy(defined.words + b * defined.stride, words, bytes);
        }
    }
    for (uint32_t b = 0; b < g->count; b++) {
        flow_through(g, &defined, b, words);
        check_reads(g, b, words);
    }
    for (size_t i = 0; i < e->ops.count; i++) {
        op *o = &e->ops.items[i];
        for (unsigned w = 0; w < o->writes; w++)
            if (e->regs.items[e->uses.items[o->uses + o->reads + w]].tracked)
                o->watch |= WATCH_WRITES;
    }
}

static uint32_t weight(const entry *e, uint32_t r)
{
    ptx_type type = e->regs.items[r].type;
    return type == TYPE_pred ? 0 : emu_type_bits(type) == 64 ? 2 : 1;
}

/* Makes a register live or not. Returns the change in 32-bit registers. */
static int32_t set_live(const entry *e, uint64_t *words, uint32_t r, bool live)
{
    if (bit_at(words, r) == live)
        return 0;
    words[r / 64] ^= UINT64_C(1) << r % 64;
    return live ? (int32_t)weight(e, r) : -(int32_t)weight(e, r);
}

/* Turns what is live at a block's end into what is live at its start. */
static void live_through(const graph *g, uint32_t b, uint64_t *words)
{
    entry *e = g->entry;
    uint32_t now = 0; /* 32-bit registers that are live */
    for (uint32_t r = 0; r < e->regs.count; r++)
        now += bit_at(words, r) ? weight(e, r) : 0;
    for (uint32_t i = g->blocks[b].end; i-- > g->blocks[b].first;) {
        const op *o = &e->ops.items[i];
        for (unsigned w = 0; w < o->writes && !is_guarded(o); w++)
            now += (uint32_t)set_live(e, words, e->uses.items[o->uses + o->reads + w], false);
        for (unsigned r = 0; r < o->reads; r++)
            now += (uint32_t)set_live(e, words, e->uses.items[o->uses + r], true);
        e->live_registers = now > e->live_registers ? now : e->live_registers;
    }
}

/* Finds live registers at the start of each block, by iteration to a fixed point. */
static void count_live_registers(graph *g)
{
    bits live = { .stride = (g->entry->regs.count + 63) / 64 + 1 };
    size_t bytes = live.stride * sizeof *live.words;
    live.words = arena_zalloc(g->arena, g->count * bytes);
    uint64_t *words = arena_alloc(g->arena, bytes);
    for (bool changed = true; changed;) {
        changed = false;
        for (uint32_t b = g->count; b-- > 0;) {
            memset(words, 0, bytes);
            for (int s = 0; s < 2; s++) {
                uint32_t next = g->blocks[b].successors[s];
                for (size_t w = 0; next < g->count && w < live.stride; w++)
                    words[w] |= live.words[next * live.stride + w];
            }
            live_through(g, b, words);
            changed |= memcmp(words, live.words + b * live.stride, bytes) != 0;
            memcpy(live.words + b * live.stride, words, bytes);
        }
    }
}

static void find_unread_results(const graph *g)
{
    entry *e = g->entry;
    uint64_t *read = arena_zalloc(g->arena, (e->regs.count / 64 + 1) * sizeof *read);
    for (size_t i = 0; i < e->ops.count; i++)
        for (unsigned r = 0; r < e->ops.items[i].reads; r++) {
            uint32_t which = e->uses.items[e->ops.items[i].uses + r];
            read[which / 64] |= UINT64_C(1) << which % 64;
        }
    for (size_t i = 0; i < e->ops.count; i++) {
        op *o = &e->ops.items[i];
        o->unread = o->atomic;
        for (unsigned w = 0; w < o->writes; w++)
            o->unread &= !bit_at(read, e->uses.items[o->uses + o->reads + w]);
    }
}

void flow_analyse(arena *a, entry *e)
{
    arena *scratch = arena_new_in(a);
    graph g = { .arena = scratch, .entry = e };
    make_blocks(&g);
    find_last_exit(&g);
    find_meeting_points(&g);
    find_undefined_reads(&g);
    carry_analyse(e);
    count_live_registers(&g);
    find_unread_results(&g);
    /* Branches that meet nowhere yet: the exit is that of the last block that has one. */
    for (uint32_t b = 0; b < g.count; b++)
        for (int s = 0; s < 2; s++)
            if (g.blocks[b].successors[s] == g.count && b != g.last_exit)
                g.blocks[b].successors[s] = NONE;
    find_meeting_points(&g);
    arena_free(scratch);
}
