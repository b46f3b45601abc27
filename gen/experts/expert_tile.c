#include "gen/experts/expert_tile.h"

#include "gen/common/reduce.h"

unsigned expert_tile_variants(unsigned vectors, unsigned variants[EXPERT_TILE_VARIANTS])
{
    unsigned count = 0;
    for (unsigned power = 1; power < vectors; power *= 2)
        variants[count++] = power;
    variants[count++] = vectors;
    return count;
}

/* Vectors that the tile has at most: of each expert in use a variant's. */
static int64_t most_vectors(const instance *in)
{
    int64_t choices = in->shape.m * in->shape.experts_used, wide = experts_listed(in) * in->shape.m;
    return in->shape.m == 1 ? choices : 2 * choices < wide ? 2 * choices : wide;
}

static int64_t vector_bytes(const instance *in)
{
    return stream_pass_steps(in) * stream_step_bytes(in);
}

static int64_t table_bytes(const instance *in)
{
    return stream_table_bytes(instance_weights(in));
}

int64_t expert_tile_tables_bytes(const instance *in)
{
    instance shared = expert_down_shared(in);
    return table_bytes(in) + (expert_down_has_shared(in) ? table_bytes(&shared) : 0);
}

static int64_t shared_tile_bytes(const instance *in)
{
    instance shared = expert_down_shared(in);
    return expert_down_has_shared(in) ? in->shape.m * vector_bytes(&shared) : 0;
}

static int64_t totals_bytes(const instance *in)
{
    return in->shape.m > 1 ? in->num_warps * WARP * in->rows_per_warp * in->shape.m * F32_BYTES : 0;
}

/* For tiles: of one row of X two blocks share an SM, of several they have too many registers. */
static int64_t room(const instance *in)
{
    enum { OF_ONE = 48 * 1024, OF_SEVERAL = 60 * 1024 };
    int64_t all = in->shape.m == 1 ? OF_ONE : OF_SEVERAL;
    return all - expert_tile_tables_bytes(in) - totals_bytes(in);
}

bool expert_tile_is_apart(const instance *in)
{
    instance shared = expert_down_shared(in);
    return expert_down_has_shared(in) && stream_passes(in) == 1 && stream_passes(&shared) == 1 &&
           in->shape.m * vector_bytes(in) + shared_tile_bytes(in) <= room(in);
}

int64_t expert_tile_slots(const instance *in)
{
    int64_t left = room(in) - (expert_tile_is_apart(in) ? shared_tile_bytes(in) : 0);
    int64_t fit = left / vector_bytes(in), most = most_vectors(in);
    fit = fit < most ? fit : most;
    fit = fit < WARP ? fit : WARP; /* a lane each */
    return stream_passes(in) > 1 || fit < in->shape.m ? in->shape.m : fit;
}

int64_t expert_tile_bytes(const instance *in)
{
    return expert_tile_slots(in) * vector_bytes(in);
}

int64_t expert_tiles_bytes(const instance *in)
{
    int64_t tile = expert_tile_bytes(in), shared = shared_tile_bytes(in);
    return expert_tile_is_apart(in) ? tile + shared : tile > shared ? tile : shared;
}

int64_t expert_tile_staged_bytes(const instance *in)
{
    return expert_tile_tables_bytes(in) + expert_tiles_bytes(in) + totals_bytes(in);
}

bool expert_tile_all_fit(const instance *in)
{
    return stream_passes(in) == 1 && expert_tile_slots(in) >= most_vectors(in) &&
           (expert_tile_is_apart(in) || !expert_down_has_shared(in));
}

enum { PLAN_BYTES = PLAN_RECORD * 4 };

static val record(ptx *p, const expert_plan *plan, val number, unsigned behind)
{
    return mad(p, number, PLAN_BYTES, add(p, plan->words, behind * PLAN_BYTES));
}

val expert_plan_expert(ptx *p, const expert_plan *plan, val number)
{
    return record(p, plan, number, 1);
}

val expert_plan_vector(ptx *p, const expert_plan *plan, val number)
{
    return record(p, plan, number, 1 + plan->slots);
}

val expert_plan_word(ptx *p, val at, unsigned word)
{
    return ld_shared(p, U32, at, word * 4);
}

/* Of one row: an expert, and its vector, a thread. */
void expert_plan_of_one_row(ptx *p, const expert_plan *plan, val experts)
{
    const expert_down *d = plan->of;
    val number = tid_x(p);
    PTX_IF (p, eq(p, number, 0)) {
        st_shared(p, U32, plan->words, PLAN_HEAD_FIRST * 4, plan->first);
        st_shared(p, U32, plan->words, PLAN_HEAD_EXPERTS * 4, experts);
    }
    PTX_IF (p, lt(p, number, plan->slots))
        st_shared(p, U32, expert_plan_expert(p, plan, number), PLAN_EXPERT_ID * 4,
                  imm(U32, PLAN_NO_EXPERT));
    PTX_IF (p, lt(p, number, experts)) {
        expert_entry e = expert_entry_at(p, &d->planes, d->list, add(p, plan->first, number));
        val word = expert_choice(p, &e, imm(U32, 0)), none = imm(U32, 0);
        val id = min(p, e.id, imm(U32, PLAN_NO_EXPERT - 1));
        st_shared(p, U32, expert_plan_expert(p, plan, number), PLAN_EXPERT_ID * 4, id);
        st_shared(p, F32, expert_plan_vector(p, plan, number), PLAN_WEIGHT * 4,
                  expert_down_weight(p, d, word, none));
    }
}

/* Of several rows: an expert a lane of the first warp, as many as fit. */
void expert_plan_of_rows(ptx *p, const expert_plan *plan)
{
    const expert_down *d = plan->of;
    val lane = lane_id(p), number = add(p, plan->first, lane), zero = imm(U32, 0);
    bool alone = stream_passes(d->in) > 1;
    val exists = alone ? eq(p, lane, 0) : lt(p, number, d->in_use);
    expert_entry e = expert_entry_at(p, &d->planes, d->list, min(p, number, sub(p, d->in_use, 1)));
    /* Vectors that the lane's expert takes in the tile. */
    unsigned variants[EXPERT_TILE_VARIANTS],
        v = expert_tile_variants(plan->of->vectors, variants) - 1;
    val needed = imm(U32, variants[v]);
    while (v--)
        needed = select(p, le(p, e.count, variants[v]), imm(U32, variants[v]), needed);
    val places = select(p, exists, needed, zero);
    /* The end of these among all: the sum over the lanes up to the own one. */
    val end = places;
    for (unsigned behind = 1; behind < WARP; behind *= 2) {
        val other = shuffle_from(p, end, bit_and(p, sub(p, lane, behind), WARP - 1));
        end = add(p, end, select(p, ge(p, lane, behind), other, imm(U32, 0)));
    }
    val first = sub(p, end, places);
    val fits = bit_and(p, exists, le(p, end, plan->slots));
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

/* Where vector number vector of the tile comes from. */
val expert_plan_source(ptx *p, const void *context, val vector)
{
    const expert_plan *plan = context;
    const expert_down *d = plan->of;
    val zero = imm(U32, 0);
    if (d->vectors == 1) {
        expert_entry e = expert_entry_at(p, &d->planes, d->list, add(p, plan->first, vector));
        return expert_down_values(p, d, expert_choice(p, &e, zero), zero);
    }
    val at = expert_plan_vector(p, plan, vector);
    return expert_down_values(p, d, expert_plan_word(p, at, PLAN_WORD_OF_LIST),
                              expert_plan_word(p, at, PLAN_ROW));
}
