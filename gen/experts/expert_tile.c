#include "gen/experts/expert_tile.h"

enum { WARP = 32 };

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
