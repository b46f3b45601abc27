/* The stack of each thread: alloca, and calls of recursive functions.
 *
 * All other calls are inlined (see expand.c), and so is the first call of a recursive function. A
 * recursive call inside that body re-enters the body. It saves the body's registers, parameters and
 * flags for the calling lanes, copies the arguments to the parameters, and jumps to the start of
 * the body. At the end each lane restores its newest saved state, except the results, and continues
 * after that call.
 *
 * Example: fib's body is inlined as ops 10 to 40, and op 40 is its (return). Lanes at op 25, a
 * (recurse), wait in a frame at op 26 and start at op 10 with unwritten registers. At op 40 their
 * state is restored and they continue at op 26. Lanes at op 40 without saved state belong to the
 * first call and continue at op 41. */
#include "emu/check/undefined.h"
#include "emu/run/access.h"

enum { LEAST_FRAME = 16 }; /* minimum stack bytes per call */

#define UNREACHED (NO_TARGET - 1) /* a reconvergence point that no lane reaches */

/* State that the lanes of a call have saved. */
struct call_record {
    struct call_record *next;
    const recursive_call *call;
    lane_mask lanes; /* lanes that have not returned */
    uint32_t pc;     /* where they continue */
    size_t room;
    uint8_t *bytes;
};

/* Copies the state of a body to a record or, if back, from it, for some lanes. */
typedef struct transfer {
    warp *warp;
    uint8_t *at; /* position in the record */
    lane_mask lanes;
    bool back;
} transfer;

static void transfer_bytes(transfer *t, void *there, size_t size)
{
    if (t->back)
        memcpy(there, t->at, size);
    else
        memcpy(t->at, there, size);
    t->at += size;
}

/* Transfers a mask. Bits of other lanes keep their value. */
static void transfer_mask(transfer *t, lane_mask *there)
{
    lane_mask kept = *there;
    transfer_bytes(t, there, sizeof *there);
    if (t->back)
        *there = (*there & t->lanes) | (kept & ~t->lanes);
}

static void transfer_register(transfer *t, const reg *r)
{
    warp *w = t->warp;
    size_t size = emu_type_bits(r->type) == 64 ? sizeof(u64) : sizeof(u32);
    if (r->type == TYPE_pred)
        transfer_mask(t, &w->predicates[r->place]);
    else
        for (int i = 0; i < WARP_LANES; i++)
            if (t->lanes >> i & 1)
                transfer_bytes(t, w->file + r->place + (size_t)i * size, size);
            else
                t->at += size;
    if (r->tracked)
        transfer_mask(t, &w->defined[r->tracked - 1]);
    if (r->carried)
        transfer_mask(t, &w->defined[r->carried - 1]);
}

static size_t place_in_local(const warp *w, int lane, uint64_t address)
{
    return thread_of(w, lane) * w->machine->local_bytes + (size_t)(address - LOCAL_BASE);
}

static void transfer_local(transfer *t, uint64_t address, size_t size)
{
    machine *m = t->warp->machine;
    for (int i = 0; i < WARP_LANES; i++) {
        size_t at = place_in_local(t->warp, i, address);
        if (!(t->lanes >> i & 1)) {
            t->at += size * (m->local_undefined ? 3 : 2);
            continue;
        }
        transfer_bytes(t, m->local + at, size);
        transfer_bytes(t, m->local_written + at, size);
        if (m->local_undefined)
            transfer_bytes(t, m->local_undefined + at, size);
    }
}

static void transfer_all(transfer *t, const recursion *r)
{
    const entry *e = t->warp->machine->entry;
    for (uint32_t i = r->first_register; i < r->end_register; i++)
        transfer_register(t, &e->regs.items[i]);
    transfer_local(t, r->first_local, (size_t)(r->end_local - r->first_local));
    for (size_t i = 0; i < r->shared.count; i++)
        transfer_local(t, r->shared.items[i]->offset, (size_t)r->shared.items[i]->size);
}

static struct call_record *new_record(warp *w, const recursive_call *c)
{
    machine *m = w->machine;
    size_t local = (size_t)(c->of->end_local - c->of->first_local);
    for (size_t i = 0; i < c->of->shared.count; i++)
        local += (size_t)c->of->shared.items[i]->size;
    size_t registers = c->of->end_register - c->of->first_register; /* upper bound */
    size_t size =
        registers * (WARP_LANES * sizeof(u64) + 2 * sizeof(lane_mask)) + local * 3 * WARP_LANES;
    struct call_record **at = &m->spare_records, *r;
    while (*at && (*at)->room < size)
        at = &(*at)->next;
    r = *at;
    if (r) {
        *at = r->next;
    } else {
        r = arena_zalloc(m->arena, sizeof *r);
        r->bytes = arena_alloc(m->arena, size + 1);
        r->room = size;
    }
    r->next = w->records;
    w->records = r;
    return r;
}

void stack_begin_block(machine *m)
{
    if (m->stack_used)
        memset(m->stack_used, 0, m->threads * sizeof *m->stack_used);
    struct call_record *r;
    for (unsigned i = 0; i < m->warp_count; i++)
        while (m->warps[i].records)
            LIST_MOVE(r, &m->warps[i].records, m->spare_records);
}

/* Copies a lane's variables of a call. The variables of a pair have equal sizes. */
static void copy_variables(const warp *w, int lane, const variable_pair *pairs, size_t count)
{
    machine *m = w->machine;
    for (size_t i = 0; i < count; i++) {
        size_t from = place_in_local(w, lane, pairs[i].from->offset);
        size_t to = place_in_local(w, lane, pairs[i].to->offset), size = (size_t)pairs[i].to->size;
        memmove(m->local + to, m->local + from, size);
        memmove(m->local_written + to, m->local_written + from, size);
        if (m->local_undefined)
            memmove(m->local_undefined + to, m->local_undefined + from, size);
    }
}

/* dst[0]: index in entry.recursive_calls. */
void exec_recurse(warp *w, const op *o, lane_mask mask)
{
    machine *m = w->machine;
    const recursive_call *c = &m->entry->recursive_calls.items[o->dst[0]];
    warp_check_limit(w, o, mask);
    EACH_LANE (i, mask) {
        uint32_t *used = &m->stack_used[thread_of(w, i)];
        if (*used + LEAST_FRAME > m->stack_size)
            warp_fault(w, o, i, EMU_OUT_OF_BOUNDS, 0,
                       "stack overflow: %u of the thread's %zu bytes are in use, and each "
                       "recursive call needs at least %d",
                       *used, m->stack_size, LEAST_FRAME);
        if (has_fault(m))
            return;
        *used += LEAST_FRAME;
    }
    if (w->depth + 1 + m->own_frames >= m->frames) {
        m->frames = 2 * m->frames + m->own_frames;
        for (unsigned i = 0; i < m->warp_count; i++) {
            frame *frames = arena_alloc(m->arena, m->frames * sizeof *frames);
            memcpy(frames, m->warps[i].frames, m->warps[i].depth * sizeof *frames);
            m->warps[i].frames = frames;
        }
    }
    struct call_record *r = new_record(w, c);
    r->call = c;
    r->lanes = mask;
    r->pc = w->pc;
    transfer t = { .warp = w, .at = r->bytes, .lanes = mask };
    transfer_all(&t, c->of);
    EACH_LANE (i, mask)
        copy_variables(w, i, c->arguments.items, c->arguments.count);
    for (uint32_t i = c->of->first_register; i < c->of->end_register;
         i++) { /* unwritten in the new call */
        const reg *of = &m->entry->regs.items[i];
        if (of->tracked)
            w->defined[of->tracked - 1] &= ~mask;
        if (of->carried)
            w->defined[of->carried - 1] &= ~mask;
    }
    w->frames[w->depth++] = (frame){ .pc = w->pc, .reconverge = w->reconverge, .mask = w->active };
    w->reconverge = UNREACHED;
    w->pc = c->of->start;
    set_active(w, mask);
}

/* Returns a lane's newest record of a body, or NULL. */
static struct call_record **find_record(warp *w, const recursion *of, int lane)
{
    for (struct call_record **at = &w->records; *at; at = &(*at)->next)
        if ((*at)->call->of == of && (*at)->lanes >> lane & 1)
            return at;
    return NULL;
}

/* Copies a lane's results of a call to result_room, or from there to the caller's variables. */
static void move_results(const warp *w, int lane, const recursive_call *c, bool back)
{
    uint64_t at = w->machine->entry->result_room->offset;
    for (size_t i = 0; i < c->results.count; i++) {
        const variable_pair *p = &c->results.items[i];
        variable aside = { .offset = at, .size = p->to->size };
        variable_pair move =
            back ? (variable_pair){ &aside, p->to } : (variable_pair){ p->from, &aside };
        copy_variables(w, lane, &move, 1);
        at += p->to->size;
    }
}

/* dst[0]: index in entry.recursions. Lanes of different depths return depth by depth. */
void exec_return(warp *w, const op *o, lane_mask mask)
{
    const recursion *of = w->machine->entry->recursions.items[o->dst[0]];
    for (int i = 0; i < WARP_LANES; i++) {
        struct call_record **at = mask >> i & 1 ? find_record(w, of, i) : NULL;
        if (!at)
            continue;
        struct call_record *r = *at;
        lane_mask lanes = 0;
        for (int j = i; j < WARP_LANES; j++)
            if (mask >> j & 1 && find_record(w, of, j) == at)
                lanes |= UINT32_C(1) << j;
        EACH_LANE (j, lanes)
            move_results(w, j, r->call, false);
        transfer t = { .warp = w, .at = r->bytes, .lanes = lanes, .back = true };
        transfer_all(&t, of);
        EACH_LANE (j, lanes) {
            move_results(w, j, r->call, true);
            w->machine->stack_used[thread_of(w, j)] -= LEAST_FRAME;
        }
        r->lanes &= ~lanes;
        if (!(r->lanes & w->alive))
            LIST_MOVE(r, at, w->machine->spare_records);
        set_active(w, w->active & ~lanes);
        w->pc--;
        if (!w->active)
            warp_resume(w);
        return;
    }
}

void exec_alloca(warp *w, const op *o, lane_mask mask)
{
    machine *m = w->machine;
    uint64_t base = m->entry->stack->offset;
    u64 results[WARP_LANES] = { 0 };
    bool wide = emu_type_bits(o->type) == 64;
    EACH_LANE (i, mask) {
        uint32_t *used = &m->stack_used[thread_of(w, i)];
        u64 size = get_bits(source(w, o, 0), i, wide), align = get_u32(source(w, o, 1), i);
        if (align & (align - 1)) {
            warp_fault(w, o, i, EMU_MISALIGNED, 0, "alloca: alignment %llu is not a power of two",
                       (ull)align);
            return;
        }
        uint64_t start = round_up(base + *used, align ? align : sizeof(u64));
        if (size > m->stack_size || start + size > base + m->stack_size) {
            warp_fault(
                w, o, i, EMU_OUT_OF_BOUNDS, 0,
                "stack overflow: alloca of %llu bytes with %u of the thread's %zu bytes in use",
                (ull)size, *used, m->stack_size);
            return;
        }
        memset(m->local_written + place_in_local(w, i, start), 0, (size_t)size);
        *used = (uint32_t)(start + size - base);
        results[i] = start;
    }
    write_lanes(w->file + o->dst[0], results, wide, mask);
}

void exec_stack_save(warp *w, const op *o, lane_mask mask)
{
    const machine *m = w->machine;
    u64 results[WARP_LANES];
    for (int i = 0; i < WARP_LANES; i++)
        results[i] = m->entry->stack->offset + m->stack_used[thread_of(w, i) % m->threads];
    write_lanes(w->file + o->dst[0], results, emu_type_bits(o->type) == 64, mask);
}

void exec_stack_restore(warp *w, const op *o, lane_mask mask)
{
    machine *m = w->machine;
    EACH_LANE (i, mask) {
        u64 to =
            get_bits(source(w, o, 0), i, emu_type_bits(o->type) == 64) - m->entry->stack->offset;
        uint32_t *used = &m->stack_used[thread_of(w, i)];
        if (to > *used) {
            warp_fault(w, o, i, EMU_OUT_OF_BOUNDS, 0,
                       "stackrestore of a value that stacksave has not returned");
            return;
        }
        *used = (uint32_t)to;
    }
}
