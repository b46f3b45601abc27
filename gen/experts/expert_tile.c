#include "gen/experts/expert_down.h"

#include "gen/common/reduce.h"

unsigned expert_tile_variants(unsigned vectors, unsigned variants[EXPERT_TILE_VARIANTS])
{
    unsigned count = 0;
    for (unsigned power = 1; power < vectors; power *= 2)
        variants[count++] = power;
    variants[count++] = vectors;
    return count;
}

expert_tile expert_tile_of(const instance *in)
{
    enum { ROOM_OF_ONE = 48 * 1024, ROOM_OF_SEVERAL = 60 * 1024 };
    const problem_shape *s = &in->shape;
    instance shared = expert_down_shared(in);
    stream experts = stream_plan(in, 0);
    bool several = s->m > 1;
    int64_t of_vector = experts.pass_steps * experts.x.bytes, of_shared = 0;
    int64_t totals = several ? in->num_warps * WARP * in->rows_per_warp * s->m * F32_BYTES : 0;
    expert_tile t = { .passes = experts.passes > 1, .tables = stream_table_bytes(in) };
    if (s->n_shared) {
        stream of_all = stream_plan(&shared, 0);
        of_shared = s->m * of_all.pass_steps * of_all.x.bytes;
        t.shared_passes = of_all.passes > 1;
        t.tables += stream_table_bytes(&shared);
    }
    /* If m = 1, two blocks share an SM; if m > 1, they use too many registers for that. */
    int64_t room = (several ? ROOM_OF_SEVERAL : ROOM_OF_ONE) - t.tables - totals;
    t.apart = s->n_shared && !t.passes && !t.shared_passes && s->m * of_vector + of_shared <= room;
    /* Upper limit of the vectors: the variants of all experts in use. */
    int64_t choices = s->m * s->experts_used, wide = experts_listed(in) * s->m;
    int64_t most = !several ? choices : 2 * choices < wide ? 2 * choices : wide;
    int64_t fit = (room - (t.apart ? of_shared : 0)) / of_vector;
    fit = fit < most ? fit : most;
    fit = fit < WARP ? fit : WARP; /* one per lane */
    t.slots = (unsigned)(t.passes || fit < s->m ? s->m : fit);
    t.all_fit = !t.passes && t.slots >= most && (t.apart || !s->n_shared);
    t.bytes = t.slots * of_vector;
    t.both = t.apart ? t.bytes + of_shared : t.bytes > of_shared ? t.bytes : of_shared;
    t.staged = t.tables + t.both + totals;
    return t;
}

enum { PLAN_BYTES = PLAN_RECORD * 4 };

val expert_plan_expert(ptx *p, const expert_plan *plan, val number)
{
    return mad(p, number, PLAN_BYTES, add(p, plan->words, PLAN_BYTES));
}

val expert_plan_vector(ptx *p, const expert_plan *plan, val number)
{
    return mad(p, number, PLAN_BYTES, add(p, plan->words, (1 + plan->tile.slots) * PLAN_BYTES));
}

val expert_plan_word(ptx *p, val at, unsigned word)
{
    return ld_shared(p, U32, at, word * 4);
}

/* Plans a tile if m = 1: one thread per expert and its vector. */
static void plan_of_one_row(ptx *p, const expert_plan *plan, val experts)
{
    const expert_down *d = plan->of;
    val number = tid_x(p);
    PTX_IF (p, eq(p, number, 0)) {
        st_shared(p, U32, plan->words, PLAN_HEAD_FIRST * 4, plan->first);
        st_shared(p, U32, plan->words, PLAN_HEAD_EXPERTS * 4, experts);
    }
    PTX_IF (p, lt(p, number, plan->tile.slots))
        st_shared(p, U32, expert_plan_expert(p, plan, number), PLAN_EXPERT_ID * 4,
                  imm(U32, PLAN_NO_EXPERT));
    PTX_IF (p, lt(p, number, experts)) {
        expert_entry e = expert_entry_at(p, d->in, d->list, add(p, plan->first, number));
        val word = expert_choice(p, &e, imm(U32, 0)), none = imm(U32, 0);
        val id = min(p, e.id, imm(U32, PLAN_NO_EXPERT - 1));
        st_shared(p, U32, expert_plan_expert(p, plan, number), PLAN_EXPERT_ID * 4, id);
        st_shared(p, F32, expert_plan_vector(p, plan, number), PLAN_WEIGHT * 4,
                  expert_down_weight(p, d, word, none));
    }
}

/* Plans a tile if m > 1: one lane of the first warp per expert, as many experts as fit. */
static void plan_of_rows(ptx *p, const expert_plan *plan)
{
    const expert_down *d = plan->of;
    val lane = lane_id(p), number = add(p, plan->first, lane), zero = imm(U32, 0);
    val exists = plan->tile.passes ? eq(p, lane, 0) : lt(p, number, d->in_use);
    expert_entry e = expert_entry_at(p, d->in, d->list, min(p, number, sub(p, d->in_use, 1)));
    /* Vectors of the lane's expert in the tile. */
    unsigned variants[EXPERT_TILE_VARIANTS],
        v = expert_tile_variants(plan->of->vectors, variants) - 1;
    val needed = imm(U32, variants[v]);
    while (v--)
        needed = select(p, le(p, e.count, variants[v]), imm(U32, variants[v]), needed);
    val places = select(p, exists, needed, zero);
    /* Inclusive prefix sum over the lanes: the end of the expert's vectors in the tile. */
    val end = places;
    for (unsigned behind = 1; behind < WARP; behind *= 2) {
        val other = shuffle_from(p, end, bit_and(p, sub(p, lane, behind), WARP - 1));
        end = add(p, end, select(p, ge(p, lane, behind), other, imm(U32, 0)));
    }
    val first = sub(p, end, places);
    val fits = bit_and(p, exists, le(p, end, plan->tile.slots));
    val experts = warp_max(p, select(p, fits, add(p, lane, 1), zero));
    val vectors = warp_max(p, select(p, fits, end, zero));
    PTX_IF (p, eq(p, lane, 0)) {
        val4 head = { { plan->first, experts, vectors, zero } };
        st_shared_v4(p, U32, plan->words, 0, head);
    }
    PTX_IF (p, fits) {
        val4 of_expert = { { e.id, first, places, zero } };
        st_shared_v4(p, U32, expert_plan_expert(p, plan, lane), 0, of_expert);
        for (unsigned i = 0; i < d->vectors; i++)
            PTX_IF (p, gt(p, places, i)) {
                val used = gt(p, e.count, i);
                val word = expert_choice(p, &e, select(p, used, imm(U32, i), zero));
                val row = expert_row(p, d->in, word), weight = expert_down_weight(p, d, word, row);
                val4 of_vector = { { word, select(p, used, row, imm(U32, PLAN_NO_ROW)),
                                     bits_as(p, U32, weight), row } };
                st_shared_v4(p, U32, expert_plan_vector(p, plan, add(p, first, i)), 0, of_vector);
            }
    }
}

val expert_plan_make(ptx *p, const expert_plan *plan)
{
    const expert_down *d = plan->of;
    if (d->vectors == 1) {
        val experts = min(p, sub(p, d->in_use, plan->first), plan->tile.slots);
        plan_of_one_row(p, plan, experts);
        return experts;
    }
    PTX_IF (p, eq(p, warp_id(p), 0))
        plan_of_rows(p, plan);
    barrier(p);
    return ld_shared(p, U32, plan->words, PLAN_HEAD_VECTORS * 4);
}

val expert_plan_source(ptx *p, const void *context, val vector)
{
    const expert_plan *plan = context;
    const expert_down *d = plan->of;
    val zero = imm(U32, 0);
    if (d->vectors == 1) {
        expert_entry e = expert_entry_at(p, d->in, d->list, add(p, plan->first, vector));
        return expert_down_values(p, d, expert_choice(p, &e, zero), zero);
    }
    val at = expert_plan_vector(p, plan, vector);
    return expert_down_values(p, d, expert_plan_word(p, at, PLAN_WORD_OF_LIST),
                              expert_plan_word(p, at, PLAN_ROW));
}
