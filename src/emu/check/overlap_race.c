/* Two launches race if both access a byte, at least one stores, and the later launch's thread does
 * so while the earlier launch may be unfinished (overlap_order.h). Two accesses that are strong at
 * .gpu scope, as atomic operations are, do not race. Memory that ld.global.nc loads must not change
 * while its launch runs. So that load races even after a wait, with every launch that may be
 * unfinished when its own launch begins.
 *
 * The order in which the emulator runs the two accesses does not matter. Each launch records its
 * loads and stores in grains of GRAIN_BYTES: a mask of bytes per PTX line that accesses the grain.
 * Memory that kernels cannot write is left out. */
#include "emu/check/overlap_order.h"

enum { GRAIN_BYTES = 64, PAGE_GRAINS = 64, FIRST_PAGES = 64 };

/* The bytes of a grain that a PTX line accesses in one way. */
typedef struct overlap_record {
    struct overlap_record *next;
    uint64_t bytes; /* bit mask */
    uint32_t line;
    uint8_t phase, kind; /* kind: access_kind */
    bool strong, non_coherent;
} overlap_record;

typedef struct overlap_page {
    uint64_t number; /* of grains from PAGE_GRAINS * number on */
    overlap_record *grains[PAGE_GRAINS];
} overlap_page;

/* Returns the slot of a page in the hash table; it is empty if the page does not exist. */
static overlap_page **find_page(const overlap_launch *l, uint64_t number)
{
    uint64_t hash = number * UINT64_C(0x9e3779b97f4a7c15);
    size_t at = (size_t)(hash >> 32) & (l->page_room - 1);
    while (l->pages[at] && l->pages[at]->number != number)
        at = (at + 1) & (l->page_room - 1);
    return &l->pages[at];
}

static void add_record(overlap_launch *l, uint64_t grain, const overlap_record *new)
{
    if (2 * l->page_count >= l->page_room) {
        overlap_page **old = l->pages;
        size_t room = l->page_room;
        l->page_room = room ? 2 * room : FIRST_PAGES;
        l->pages = arena_zalloc(l->arena, l->page_room * sizeof(overlap_page *));
        for (size_t i = 0; i < room; i++)
            if (old[i])
                *find_page(l, old[i]->number) = old[i];
    }
    overlap_page **place = find_page(l, grain / PAGE_GRAINS);
    if (!*place) {
        *place = arena_zalloc(l->arena, sizeof **place);
        (*place)->number = grain / PAGE_GRAINS;
        l->page_count++;
    }
    overlap_record **first = &(*place)->grains[grain % PAGE_GRAINS];
    for (overlap_record *r = *first; r; r = r->next)
        if (r->line == new->line && r->phase == new->phase && r->kind == new->kind) {
            r->bytes |= new->bytes;
            return;
        }
    overlap_record *r = arena_alloc(l->arena, sizeof *r);
    *r = *new;
    r->next = *first;
    *first = r;
}

/* Names all ranges that contain an address: "byte 8 of 'h' or byte 72 of 'o'". */
static const char *place_of(const overlap *all, const allocation *of, uint64_t address)
{
    const char *said = NULL;
    for (size_t i = 0; i < all->range_count; i++) {
        const emu_range *r = &all->ranges[i];
        if (address - r->address < r->size)
            said = arena_format(all->arena, "%s%sbyte %llu of '%s'", said ? said : "",
                                said ? " or " : "", (ull)(address - r->address), r->name);
    }
    if (said)
        return said;
    return arena_format(all->arena, "byte %llu of an allocation of %llu bytes",
                        (ull)(address - of->address), (ull)of->size);
}

/* Returns why an access races by itself, or NULL if another launch is the reason. */
static const char *own_reason(const overlap_record *r)
{
    if (r->phase == BEFORE_WAIT)
        return "no griddepcontrol.wait precedes the access";
    return r->non_coherent ? "a non-coherent load (.nc) need not see stores made since its launch "
                             "began, even after a wait"
                           : NULL;
}

/* Returns the reason why an access of the later launch is not ordered after the earlier launch. */
static const char *find_reason(const overlap_launch *earlier, const overlap_launch *later,
                               const overlap_record *r)
{
    const overlap *all = earlier->all;
    const overlap_launch *gap = NULL; /* the last launch between them that ended without waiting */
    if (own_reason(r))
        return own_reason(r);
    for (unsigned i = 0; i < OVERLAP_LAUNCHES; i++) {
        const overlap_launch *l = all->launches[i];
        if (l && !l->waited && l->number > earlier->number && l->number < later->number &&
            (!gap || l->number > gap->number))
            gap = l;
    }
    return arena_format(
        all->arena,
        "the griddepcontrol.wait before it covers launches up to '%s', which ends without waiting",
        gap ? gap->name : "");
}

static const char *const verbs[] = {
    [ACCESS_LOAD] = "loads", [ACCESS_STORE] = "stores", [ACCESS_ATOMIC] = "updates"
};

static bool passes_race(const access *x, const allocation *of, const overlap_launch *mine,
                        const overlap_record *new, const overlap_launch *other,
                        const overlap_record *old)
{
    bool is_later = other->number < mine->number;
    const overlap_launch *earlier = is_later ? other : mine, *later = is_later ? mine : other;
    const overlap_record *first = is_later ? old : new, *second = is_later ? new : old;
    size_t apart = later->number - earlier->number;
    bool passes =
        ACCESS_CHECK(x, EMU_CHECK_RACE,
                     "race between launches: '%s' %s %s at line %u; '%s', %zu launch%s before it, "
                     "%s it at line %u and may not have finished: %s",
                     later->name, verbs[second->kind], place_of(mine->all, of, x->address),
                     second->line, earlier->name, apart, apart == 1 ? "" : "es", verbs[first->kind],
                     first->line, find_reason(earlier, later, second));
    if (passes)
        return true;
    emu_report *report = x->warp->machine->report;
    report->other_launch = other->number;
    report->other_line = old->line;
    return false;
}

/* Returns the phase that orders an access: a wait does not order a non-coherent load. */
static int phase_of(const overlap_record *r)
{
    return r->non_coherent ? BEFORE_WAIT : r->phase;
}

/* Checks an access against unknown launches. Returns false and a fault on a race. */
static bool check_unknown(const access *x, const addresses *a, lane_mask mask, const allocation *of,
                          const overlap_record *r)
{
    const overlap_launch *mine = x->warp->machine->dependence.overlap->launch;
    overlap_set unknown = overlap_set_of(mine->all->unknown);
    if (!mask || !(mine->unfinished[phase_of(r)] & unknown) ||
        (x->kind == ACCESS_LOAD && !of->changing))
        return true;
    access at = *x;
    at.lane = lowest_lane(mask);
    at.address = a->at[at.lane];
    return ACCESS_CHECK(&at, EMU_CHECK_RACE,
                        "race with preceding launches: '%s' %s %s, which they may still %s: %s",
                        mine->name, verbs[x->kind], place_of(mine->all, of, at.address),
                        x->kind == ACCESS_LOAD ? "store" : "use", own_reason(r));
}

/* Returns true if a new record races with an old one of another launch. */
static bool records_race(const overlap_launch *mine, const overlap_record *new,
                         const overlap_launch *other, const overlap_record *old)
{
    overlap_set unfinished = other->number < mine->number
                                 ? mine->unfinished[phase_of(new)] & overlap_set_of(other)
                                 : other->unfinished[phase_of(old)] & overlap_set_of(mine);
    return unfinished && new->bytes & old->bytes &&
           (new->kind != ACCESS_LOAD || old->kind != ACCESS_LOAD) && !(new->strong && old->strong);
}

/* Records accesses of lanes to a grain. Returns false and a fault on a race. */
static bool note_in_grain(const access *x, const addresses *a, lane_mask mask, const allocation *of,
                          uint64_t grain, const overlap_record *new)
{
    overlap_launch *mine = x->warp->machine->dependence.overlap->launch;
    const overlap *all = mine->all;
    overlap_set others = mine->unfinished[phase_of(new)] | mine->followers;
    for (unsigned i = 0; i < OVERLAP_LAUNCHES && others >> i; i++) {
        const overlap_launch *other = others >> i & 1 ? all->launches[i] : NULL;
        const overlap_page *p =
            other && other->page_room ? *find_page(other, grain / PAGE_GRAINS) : NULL;
        const overlap_record *old = p ? p->grains[grain % PAGE_GRAINS] : NULL;
        for (; old; old = old->next) {
            if (!records_race(mine, new, other, old))
                continue;
            access at = *x;
            at.address = grain * GRAIN_BYTES;
            while (!((new->bytes & old->bytes) >> at.address % GRAIN_BYTES & 1))
                at.address++;
            at.lane = lowest_lane(mask);
            while (at.lane < WARP_LANES - 1 &&
                   !(mask >> at.lane & 1 && at.address - a->at[at.lane] < x->size))
                at.lane++;
            if (!passes_race(&at, of, mine, new, other, old))
                return false;
        }
    }
    if (mine->leads || mine->unfinished[phase_of(new)])
        add_record(mine, grain, new);
    return true;
}

/* Checks lanes of one phase. Neighbouring lanes in a grain share a record. */
static bool check_phase(const access *x, const addresses *a, lane_mask mask, int phase,
                        const allocation *of)
{
    overlap_record r = { .line = x->op->line,
                         .phase = (uint8_t)phase,
                         .kind = (uint8_t)x->kind,
                         .strong = x->op->order != 0,
                         .non_coherent = x->op->non_coherent };
    uint64_t grain = 0, bytes = x->size < GRAIN_BYTES ? (UINT64_C(1) << x->size) - 1 : UINT64_MAX;
    if (!check_unknown(x, a, mask, of, &r))
        return false;
    EACH_LANE (i, mask) {
        if (r.bytes && grain != a->at[i] / GRAIN_BYTES) {
            if (!note_in_grain(x, a, mask, of, grain, &r))
                return false;
            r.bytes = 0;
        }
        grain = a->at[i] / GRAIN_BYTES;
        r.bytes |= bytes << a->at[i] % GRAIN_BYTES;
    }
    return !r.bytes || note_in_grain(x, a, mask, of, grain, &r);
}

bool overlap_lanes(const access *x, const addresses *a, lane_mask mask, const allocation *of)
{
    if (!x->warp->machine->dependence.overlap || (of->read_only && !of->changing))
        return true;
    lane_mask waited_lanes = overlap_waited_lanes(x->warp, mask);
    return check_phase(x, a, mask & ~waited_lanes, BEFORE_WAIT, of) &&
           check_phase(x, a, waited_lanes, AFTER_WAIT, of);
}

bool overlap_lane(const access *x, const allocation *of)
{
    addresses a;
    a.at[x->lane] = x->address;
    return overlap_lanes(x, &a, (lane_mask)1 << x->lane, of);
}
