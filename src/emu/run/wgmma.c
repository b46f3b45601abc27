/* wgmma: asynchronous matrix products of a group of four warps, D = A B + D or D = A B, with 64
 * rows and up to 256 columns.
 *
 * Warp w of a group computes rows 16 w to 16 w + 15. Its registers of D are 16 x 8 fragments (see
 * matrix.h), one per eight columns. Registers of A are a 16 x 16 fragment. Descriptors name
 * matrices in shared memory: rows of A, and columns of B, are contiguous along k, in units of 16
 * bytes with one of four swizzle modes.
 *
 * A product reads its inputs when it starts. Its registers get the sums when the warp waits for its
 * group. Until then no thread may write the inputs or the registers, and a read of the registers
 * returns the old values. A proxy fence must separate ordinary stores from a product, and a
 * wgmma.fence must follow other writes of its registers.
 *
 * Sums are computed as by mma.sync (see matrix.c), in the order of k. Each warp computes its 16
 * rows when it arrives. The four warps of a group must execute the same instructions. */
#include "emu/run/async.h"
#include "emu/check/shared_race.h"
#include "emu/check/undefined.h"
#include "emu/run/access.h"
#include "emu/run/arith.h"
#include "emu/run/matrix.h"

enum {
    GROUP = 4, /* warps per group */
    ROWS = 16, /* rows per warp */
    DEPTH = 16,
    COLUMNS = 256,        /* maximum */
    DESCRIPTOR_BITS = 18, /* bits of an address */
    UNIT = 16,            /* bytes of a unit; UNITS per row or column of a product */
    UNITS = 2,
    HALVES = UNIT / 2,
    MOST_READS = (ROWS + COLUMNS) * UNITS,
};

typedef struct product {
    struct product *next;
    const op *op;
    bool committed;
    uint32_t group;
    unsigned reads;
    uint32_t read[MOST_READS]; /* offsets of the units read from shared memory */
    uint32_t before[COLUMNS / 2][WARP_LANES];
    float sums[COLUMNS / 2][WARP_LANES];
    lane_mask undefined[COLUMNS / 2];
} product;

typedef struct begun {
    const op *op;
    u64 a, b;
} begun;

typedef struct warp_state {
    product *pending; /* oldest first */
    uint32_t groups;  /* number of committed groups */
    size_t begun;
    bool fenced;   /* a wgmma.fence has been executed */
    uint8_t *file; /* copy of the registers at the latest wgmma.fence */
} warp_state;

typedef struct wgmma_state {
    warp_state warps[MAX_WARPS];
    VEC(begun) history[MAX_WARPS / GROUP]; /* per group of warps */
    product *spare;
} wgmma_state;

static wgmma_state *state_of(machine *m)
{
    if (!m->wgmma)
        m->wgmma = arena_zalloc(m->arena, sizeof *m->wgmma);
    return m->wgmma;
}

void wgmma_begin_block(machine *m, const warp *w)
{
    warp_state *own = &m->wgmma->warps[w->index];
    product *p;
    while (own->pending)
        LIST_MOVE(p, &own->pending, m->wgmma->spare);
    own->groups = 0;
    own->begun = 0;
    own->fenced = false;
    if (w->index % GROUP == 0)
        m->wgmma->history[w->index / GROUP].count = 0;
}

/* Returns the register of D that is result i. */
static const reg *sum_register(const warp *w, const op *o, unsigned i)
{
    return op_register(w->machine->entry, o, o->reads + i);
}

/* Layout of a matrix in shared memory: rows of A, or columns of B, in groups of eight. */
typedef struct layout {
    u32 start;      /* address */
    u32 row_bytes;  /* stride of rows in a group */
    u32 group, run; /* strides of groups and of units, in bytes */
    unsigned bits;  /* swizzle: number of bits of a 128-byte line's number that permute its units */
    u64 moved;      /* offset from a GPU's addresses to the emulator's */
} layout;

/* Decodes a descriptor: PTX ISA, "Matrix Descriptor Format". */
static layout layout_of(const machine *m, u64 descriptor)
{
    enum { NONE, SWIZZLE_128, SWIZZLE_64, SWIZZLE_32 };
    static const struct {
        u32 row_bytes;
        unsigned bits;
    } ways[] = { [NONE] = { 16, 0 },
                 [SWIZZLE_128] = { 128, 3 },
                 [SWIZZLE_64] = { 64, 2 },
                 [SWIZZLE_32] = { 32, 1 } };
    const variables *all = &m->entry->shared;
    u32 mask = (1u << DESCRIPTOR_BITS) - 1, low = SHARED_DYNAMIC_BASE & mask;
    unsigned way = (unsigned)(descriptor >> 62);
    layout l = { .start = (u32)(descriptor & 0x3fff) << 4,
                 .row_bytes = ways[way].row_bytes,
                 .group = (u32)(descriptor >> 32 & 0x3fff) << 4,
                 .run = way == NONE ? (u32)(descriptor >> 16 & 0x3fff) << 4 : UNIT,
                 .bits = ways[way].bits };
    /* on a GPU dynamic shared memory follows the static arrays, which affects the swizzle */
    for (size_t i = 0; i < all->list.count && !l.moved; i++) {
        const variable *v = all->list.items[i];
        if (!v->dynamic || l.start < (all->end < low ? all->end : low))
            continue;
        u64 first = round_up(all->end, v->align);
        l.start = (u32)first + ((l.start - low) & mask);
        l.moved = SHARED_DYNAMIC_BASE - first;
    }
    return l;
}

/* Reads a descriptor, which must be equal in all lanes. Returns false after a fault. */
static bool take_descriptor(warp *w, const op *o, int which, u64 *descriptor)
{
    enum { BASE_OFFSET = 7 };
    *descriptor = get_u64(source(w, o, which), 0);
    for (int lane = 1; lane < WARP_LANES; lane++)
        if (get_u64(source(w, o, which), lane) != *descriptor)
            return warp_fault(
                w, o, lane, EMU_INACTIVE_LANE, 0,
                "wgmma needs the same matrix descriptor in all lanes; lane %d has another one",
                lane);
    if (*descriptor >> 49 & BASE_OFFSET)
        return warp_fault(w, o, 0, EMU_UNKNOWN, 0,
                          "wgmma: a matrix with a base offset is not supported");
    return true;
}

/* Returns the bytes of a unit in shared memory, or NULL and a fault. */
static const uint8_t *read_unit(warp *w, const op *o, product *p, u64 address, bool *undefined)
{
    machine *m = w->machine;
    unsigned other = 0;
    access x = { w, o, 0, ACCESS_LOAD, SPACE_SHARED, address, UNIT };
    const uint8_t *bytes = access_array(&x);
    if (!bytes)
        return NULL;
    size_t offset = (size_t)(bytes - m->shared.bytes);
    if (!shared_is_fenced(&m->shared, offset, UNIT, thread_of(w, 0), &other) &&
        !ACCESS_CHECK(&x, EMU_CHECK_RACE,
                      "race: wgmma reads bytes that thread %u of the block stored, with no "
                      "fence.proxy.async in between",
                      other))
        return NULL;
    *undefined |= undefined_bytes(m, SPACE_SHARED, bytes, UNIT);
    p->read[p->reads++] = (uint32_t)offset;
    return bytes;
}

static float value_at(const op *o, const uint8_t *bytes)
{
    u16 bits;
    memcpy(&bits, bytes, sizeof bits);
    return o->combine == ELEMENT_f16 ? value_of_half(bits) : value_of_bfloat(bits);
}

typedef struct matrices {
    float a[ROWS][DEPTH], b[DEPTH][COLUMNS];
    bool undefined_rows[ROWS], undefined_columns[COLUMNS];
} matrices;

/* The rows of A, or columns of B, that a warp reads, and the destination of their values. */
typedef struct side {
    unsigned first, count;
    float *values; /* destination, with the strides row_step and, along k, depth_step */
    unsigned row_step, depth_step;
    bool *undefined; /* per row */
} side;

static bool read_side(warp *w, const op *o, product *p, u64 descriptor, const side *s)
{
    layout l = layout_of(w->machine, descriptor);
    for (unsigned row = 0; row < s->count; row++)
        for (unsigned unit = 0; unit < UNITS; unit++) {
            unsigned number = s->first + row;
            u32 at = l.start + number / 8 * l.group + number % 8 * l.row_bytes + unit * l.run;
            u32 line = at >> 7 & ((1u << l.bits) - 1);
            const uint8_t *bytes =
                read_unit(w, o, p, (at ^ line << 4) + l.moved, &s->undefined[row]);
            if (!bytes)
                return false;
            for (unsigned i = 0; i < HALVES; i++)
                s->values[row * s->row_step + (unit * HALVES + i) * s->depth_step] =
                    value_at(o, bytes + 2 * i);
        }
    return true;
}

static const matrix_shape *fragment_shape(void)
{
    return matrix_shape_at((unsigned)matrix_shape_named("m16n8k16"));
}

/* Gathers A from registers. Reports a fault if one was written since the latest wgmma.fence. */
static bool gather_a(warp *w, const op *o, matrices *m)
{
    const matrix_shape *s = fragment_shape();
    const uint8_t *file = w->machine->wgmma->warps[w->index].file;
    for (unsigned r = 0; r < 4; r++) {
        lane_mask undefined = undefined_source(w, o, (int)r, false);
        if (memcmp(file + o->src[r], source(w, o, (int)r), sizeof(lanes32)) != 0)
            return warp_fault(w, o, 0, EMU_RACE, 0,
                              "race: wgmma reads a register of A that was written since the latest "
                              "wgmma.fence");
        for (int lane = 0; lane < WARP_LANES; lane++) {
            matrix_place at = matrix_place_of(s, PART_A, ELEMENT_f16, r, lane);
            u32 pair = get_u32(source(w, o, (int)r), lane);
            for (unsigned i = 0; i < 2; i++) {
                u16 bits = (u16)(pair >> 16 * i);
                m->a[at.row][at.column + i] = value_at(o, (const uint8_t *)&bits);
            }
            m->undefined_rows[at.row] |= undefined >> lane & 1;
        }
    }
    return true;
}

/* Finds which result of an op is a register, starting with guess i. Returns false if none is. */
static bool is_sum(const warp *w, const op *o, const reg *r, unsigned *i)
{
    if (*i < o->writes && sum_register(w, o, *i) == r)
        return true;
    for (unsigned j = 0; j < o->writes; j++)
        if (sum_register(w, o, j) == r) {
            *i = j;
            return true;
        }
    return false;
}

/* Initialises result i of D: from a product in flight, or from the register. */
static bool init_sums(warp *w, const op *o, product *p, unsigned i, bool adds)
{
    const reg *r = sum_register(w, o, i);
    const lanes32 *now = (const lanes32 *)(w->file + r->place);
    unsigned j = i;
    const product *latest = NULL; /* latest product in flight with this register, as its result j */
    for (const product *q = w->machine->wgmma->warps[w->index].pending; q; q = q->next)
        if (is_sum(w, q->op, r, &j))
            latest = q;
    const void *expected = latest ? (const void *)latest->before[j]
                                  : w->machine->wgmma->warps[w->index].file + r->place;
    memcpy(p->before[i], now, sizeof p->before[i]);
    memset(p->sums[i], 0, sizeof p->sums[i]);
    p->undefined[i] = 0;
    if (memcmp(expected, now, sizeof *now) != 0)
        return warp_fault(
            w, o, 0, EMU_RACE, 0,
            "race: wgmma accumulates in register %s, which was written since %s", r->name,
            latest ? "another wgmma that accumulates in it began" : "the latest wgmma.fence");
    if (!adds)
        return true;
    memcpy(p->sums[i], latest ? (const void *)latest->sums[j] : now, sizeof p->sums[i]);
    p->undefined[i] = latest ? latest->undefined[j] : undefined_register(w, r);
    return true;
}

/* Returns the place of element i of D in lane 0. D consists of fragments of 8 columns. */
static matrix_place place_in_lane_0(const matrix_shape *s, unsigned i)
{
    enum { OF_FRAGMENT = 4, FRAGMENT_COLUMNS = 8 };
    matrix_place at = matrix_place_in_lane_0(s, PART_C, ELEMENT_f32, i % OF_FRAGMENT);
    at.column += i / OF_FRAGMENT * FRAGMENT_COLUMNS;
    return at;
}

static void multiply_product(const op *o, product *p, const matrices *m)
{
    float sign = o->compare ? -1.0f : 1.0f, sums[ROWS][COLUMNS];
    unsigned columns = o->type2 * 8u;
    const matrix_shape *s = fragment_shape();
    for (unsigned i = 0; i < o->writes; i++) {
        matrix_place lane_0 = place_in_lane_0(s, i);
        for (int lane = 0; lane < WARP_LANES; lane++) {
            matrix_place at = matrix_place_in(lane_0, PART_C, ELEMENT_f32, lane);
            sums[at.row][at.column] = p->sums[i][lane];
        }
    }
    for (unsigned row = 0; row < ROWS; row++)
        for (unsigned k = 0; k < DEPTH; k++) {
            float a = sign * m->a[row][k];
            for (unsigned column = 0; column < columns; column++)
                sums[row][column] = a * m->b[k][column] + sums[row][column];
        }
    for (unsigned i = 0; i < o->writes; i++) {
        matrix_place lane_0 = place_in_lane_0(s, i);
        for (int lane = 0; lane < WARP_LANES; lane++) {
            matrix_place at = matrix_place_in(lane_0, PART_C, ELEMENT_f32, lane);
            bool undefined = m->undefined_rows[at.row] || m->undefined_columns[at.column];
            p->sums[i][lane] = canonical(sums[at.row][at.column]);
            p->undefined[i] |= (lane_mask)undefined << lane;
        }
    }
}

/* Checks that all warps of the group start the same products. */
static bool check_same_product(warp *w, const op *o, u64 a, u64 b)
{
    wgmma_state *s = state_of(w->machine);
    size_t number = s->warps[w->index].begun++;
    if (w->index / GROUP * GROUP + GROUP > w->machine->warp_count)
        return warp_fault(
            w, o, 0, EMU_INACTIVE_LANE, 0,
            "wgmma needs four warps per group; the block has %u warps, and this is warp %u",
            w->machine->warp_count, w->index);
    if (number == s->history[w->index / GROUP].count)
        *VEC_PUSH(w->machine->arena, &s->history[w->index / GROUP]) = (begun){ o, a, b };
    const begun *first = &s->history[w->index / GROUP].items[number];
    if (first->op == o && first->a == a && first->b == b)
        return true;
    return warp_fault(w, o, 0, EMU_INACTIVE_LANE, 0,
                      "the four warps of a group must execute the same wgmma; another one executes "
                      "that of line %u%s",
                      first->op->line, first->op == o ? " with other matrices" : "");
}

static product *new_product(machine *m, const op *o)
{
    wgmma_state *s = m->wgmma;
    product *p = s->spare;
    if (p)
        s->spare = p->next;
    else
        p = arena_alloc(m->arena, sizeof *p);
    p->op = o;
    p->next = NULL;
    p->committed = false;
    p->reads = 0;
    return p;
}

/* Sources: A's descriptor or four registers, B's descriptor, and whether to accumulate. */
void exec_wgmma(warp *w, const op *o, lane_mask mask)
{
    matrices m = { 0 };
    u64 a = 0, b = 0;
    bool in_registers = o->variant;
    if (o->uniform) {
        warp_fault(w, o, lowest_lane(mask), EMU_UNKNOWN, 0,
                   "wgmma: transposed matrices are not supported");
        return;
    }
    if (!matrix_lanes(w, o, mask, "wgmma"))
        return;
    if (!state_of(w->machine)->warps[w->index].fenced) {
        warp_fault(w, o, 0, EMU_RACE, 0, "race: wgmma with no wgmma.fence before it");
        return;
    }
    if ((!in_registers && !take_descriptor(w, o, 0, &a)) || !take_descriptor(w, o, 4, &b) ||
        !check_same_product(w, o, a, b))
        return;
    lane_mask adds = predicate(w, o->src[5], o->pred_not);
    if (adds && adds != ALL_LANES) {
        warp_fault(w, o, lowest_lane(~adds), EMU_INACTIVE_LANE, 0,
                   "wgmma: scale-d must be equal in all lanes");
        return;
    }
    product *p = new_product(w->machine, o);
    side rows = { w->index % GROUP * ROWS, ROWS, m.a[0], DEPTH, 1, m.undefined_rows };
    side columns = { 0, o->type2 * 8u, m.b[0], 1, COLUMNS, m.undefined_columns };
    bool good = in_registers ? gather_a(w, o, &m) : read_side(w, o, p, a, &rows);
    good = good && read_side(w, o, p, b, &columns);
    for (unsigned i = 0; good && i < o->writes; i++)
        good = init_sums(w, o, p, i, adds);
    if (!good)
        return;
    multiply_product(o, p, &m);
    product **end = &w->machine->wgmma->warps[w->index].pending;
    while (*end)
        end = &(*end)->next;
    *end = p;
    for (unsigned r = 0; r < p->reads; r++)
        shared_begin_read(&w->machine->shared, p->read[r], UNIT, thread_of(w, 0));
}

void exec_wgmma_fence(warp *w, const op *o, lane_mask mask)
{
    machine *m = w->machine;
    if (!matrix_lanes(w, o, mask, "wgmma.fence"))
        return;
    warp_state *s = &state_of(m)->warps[w->index];
    if (!s->file)
        s->file = arena_alloc(m->arena, m->entry->file_bytes);
    s->fenced = true;
    memcpy(s->file, w->file, m->entry->file_bytes);
}

void exec_wgmma_commit(warp *w, const op *o, lane_mask mask)
{
    if (!matrix_lanes(w, o, mask, "wgmma.commit_group"))
        return;
    warp_state *s = &state_of(w->machine)->warps[w->index];
    for (product *p = s->pending; p; p = p->next)
        if (!p->committed) {
            p->committed = true;
            p->group = s->groups;
        }
    s->groups++;
}

/* Writes the sums to their registers, and to the copy of the latest wgmma.fence. */
static bool write_sums(warp *w, product *p)
{
    machine *m = w->machine;
    uint8_t *fenced = m->wgmma->warps[w->index].file;
    for (unsigned i = 0; i < p->op->writes; i++) {
        const reg *r = sum_register(w, p->op, i);
        uint8_t *held = w->file + r->place;
        if (memcmp(held, p->before[i], sizeof p->before[i]) != 0)
            return warp_fault(
                w, p->op, 0, EMU_RACE, 0,
                "race: register %s is written while a wgmma that accumulates in it is in flight",
                r->name);
        memcpy(held, p->sums[i], sizeof p->sums[i]);
        memcpy(fenced + r->place, p->sums[i], sizeof p->sums[i]);
        undefined_set_register(w, r, p->undefined[i], ALL_LANES);
        for (product *later = p->next; later; later = later->next) {
            unsigned j = i;
            if (is_sum(w, later->op, r, &j))
                memcpy(later->before[j], p->sums[i], sizeof later->before[j]);
        }
    }
    for (unsigned r = 0; r < p->reads; r++)
        shared_end_read(&m->shared, p->read[r], UNIT);
    return true;
}

void exec_wgmma_wait(warp *w, const op *o, lane_mask mask)
{
    if (!matrix_lanes(w, o, mask, "wgmma.wait_group"))
        return;
    wgmma_state *s = state_of(w->machine);
    warp_state *own = &s->warps[w->index];
    u64 open = get_u32(source(w, o, 0), 0);
    product *p;
    while (own->pending && own->pending->committed && own->pending->group + open < own->groups) {
        if (!write_sums(w, own->pending))
            return;
        LIST_MOVE(p, &own->pending, s->spare);
    }
}

void wgmma_exit(warp *w, const op *o, lane_mask mask)
{
    const product *p = w->machine->wgmma->warps[w->index].pending;
    if (p)
        warp_fault(w, o, lowest_lane(mask), EMU_RACE, 0,
                   "race: the warp ends while its wgmma of line %u is in flight; wait with "
                   "wgmma.wait_group",
                   p->op->line);
}
