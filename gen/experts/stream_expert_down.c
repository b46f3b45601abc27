/* Streaming kernel of experts/expert_down.h, built on products/stream_plan.h; both document their
 * layouts. A warp walks the experts of the list. It reads its rows of an expert once and multiplies
 * them with all vectors of f that use the expert. Code is generated for 1, 2, 4 and m vectors;
 * three vectors are padded to four, and the padding's result is dropped. The lanes' partial sums
 * are reduced after the last expert. If rows are narrow, groups of lanes have different rows of the
 * same expert.
 *
 * If all vectors fit, they are staged once, and the warps of a block run independently. Otherwise
 * experts are staged in groups that fit, and all warps of a block process the groups together. With
 * passes, each expert's columns are staged in parts, as in other streams. */
#include "gen/common/next.h"
#include "gen/experts/expert_down.h"
#include "ref/reference.h"

typedef struct streamed {
    expert_down d;
    expert_plan plan; /* plan of the tile */
    stream experts, of_all;
} streamed;

static val shared_vector(ptx *p, const void *context, val vector)
{
    const expert_down *d = context;
    int64_t first = expert_down_shared_values_at(d->in, 0);
    int64_t apart = expert_down_shared_values_at(d->in, 1) - first;
    return mad_wide(p, vector, (unsigned)apart, add(p, d->g.x, first));
}

/* Plans a group and stages its vectors. With passes they are staged later. */
static void stage_group(ptx *p, streamed *s, val first)
{
    expert_down *d = &s->d;
    s->plan.first = first;
    phase(p, "plan and stage experts' values");
    s->experts.source.vectors = expert_plan_make(p, &s->plan);
    if (!s->plan.tile.passes)
        stream_stage(p, &s->experts, imm(U32, 0));
    if (!s->plan.tile.passes || d->vectors == 1)
        barrier(p);
}

/* Adds the products of an expert's rows with count vectors of the tile, from first on. Vectors from
 * number `certain` on may be padding. */
static void add_products(ptx *p, streamed *s, const place addresses[STREAM_ROWS],
                         const val biases[STREAM_ROWS], val first, unsigned count, unsigned certain)
{
    expert_down *d = &s->d;
    stream one = stream_of_vectors(p, &s->experts, first, count);
    stream_add(p, &one, addresses);
    if (d->vectors > 1 && !s->experts.f->floats)
        warp_barrier(p); /* keeps the plan out of registers; some float formats spill with it */
    for (unsigned i = 0; i < count; i++) {
        val at = expert_plan_vector(p, &s->plan, i ? add(p, first, i) : first),
            products[STREAM_ROWS];
        val weight = ld_shared(p, F32, at, PLAN_WEIGHT * 4);
        val row = d->vectors > 1 ? expert_plan_word(p, at, PLAN_ROW_OF_X) : imm(U32, 0);
        for (unsigned r = 0; r < d->rows; r++) {
            products[r] = get(p, one.sums[d->rows * i + r]);
            if (d->biases.kind)
                products[r] = add(p, products[r], biases[r]);
        }
        PTX_IF (p, i < certain ? imm(PRED, 1) : ne(p, row, imm(U32, PLAN_NO_ROW)))
            expert_down_add(p, d, row, weight, products);
    }
}

/* Adds NaN to the rows that use an expert that does not exist. */
static void add_nan(ptx *p, streamed *s, val first, val count)
{
    expert_down *d = &s->d;
    const val unknown[STREAM_ROWS] = { expert_nan(p), expert_nan(p) };
    for (unsigned i = 0; i < d->vectors; i++)
        PTX_IF (p, d->vectors > 1 ? gt(p, count, i) : imm(PRED, 1)) {
            val row = d->vectors > 1
                          ? expert_plan_word(p, expert_plan_vector(p, &s->plan, add(p, first, i)),
                                             PLAN_ROW_OF_X)
                          : imm(U32, 0);
            PTX_IF (p, d->vectors > 1 ? ne(p, row, imm(U32, PLAN_NO_ROW)) : imm(PRED, 1))
                expert_down_add(p, d, row, imm(F32, 0), unknown);
        }
}

static void add_expert(ptx *p, streamed *s, val number, val first_row)
{
    expert_down *d = &s->d;
    unsigned variants[EXPERT_TILE_VARIANTS];
    unsigned variant_count = expert_tile_variants(d->vectors, variants);
    bool several = d->vectors > 1;
    val at = expert_plan_expert(p, &s->plan, number),
        id = named(p, "expert", expert_plan_word(p, at, PLAN_EXPERT_ID));
    val first = several ? expert_plan_word(p, at, PLAN_FIRST_VECTOR) : number;
    val count = several ? expert_plan_word(p, at, PLAN_VECTOR_COUNT) : imm(U32, 1);
    PTX_IF (p, expert_exists(p, d->in, id)) {
        place addresses[STREAM_ROWS];
        val biases[STREAM_ROWS], row = expert_down_row_to_read(p, d, first_row);
        gemv_operands g = d->g;
        g.w = expert_plane(p, d->in, d->g.w, id, d->g.row_bytes);
        stream_row_places(p, stream_rows_share_pointers(d->in), &g, row, d->rows, addresses);
        expert_down_biases(p, d, id, row, biases);
        for (unsigned i = 0; i < variant_count; i++)
            PTX_IF (p, several ? eq(p, count, variants[i]) : imm(PRED, 1))
                add_products(p, s, addresses, biases, first, variants[i],
                             i ? variants[i - 1] + 1 : 1);
    }
    PTX_ELSE (p)
        PTX_IF (p, several ? imm(PRED, 1) : ne(p, id, imm(U32, PLAN_NO_EXPERT)))
            add_nan(p, s, first, count);
}

static void stage_shared(ptx *p, streamed *s)
{
    phase(p, "stage the shared expert's values");
    stream_stage(p, &s->of_all, imm(U32, 0));
}

static void add_shared(ptx *p, streamed *s, val first_row)
{
    expert_down *d = &s->d;
    place addresses[STREAM_ROWS];
    stream one = s->of_all;
    phase(p, "stream the shared expert's weights");
    stream_begin_lane(p, &one);
    val row = expert_down_row_to_read(p, d, first_row);
    stream_row_places(p, stream_rows_share_pointers(&d->shared), &d->of_shared, row, d->rows,
                      addresses);
    stream_add(p, &one, addresses);
    for (unsigned v = 0; v < d->vectors; v++) {
        val products[STREAM_ROWS];
        for (unsigned r = 0; r < d->rows; r++)
            products[r] = get(p, one.sums[d->rows * v + r]);
        expert_down_add(p, d, imm(U32, v), expert_down_weight_of_shared(p, d, v), products);
    }
}

/* Multiplies with all vectors staged at once: warps run independently. */
static void multiply_at_once(ptx *p, streamed *s)
{
    expert_down *d = &s->d;
    unsigned rows = d->rows_of_warp;
    stage_group(p, s, imm(U32, 0));
    val first = mul(p, stream_warp(p, ctaid_x(p)), rows), stride = mul(p, stream_warps(p), rows);
    PTX_FOR (p, row, first, d->g.n, stride) {
        expert_down_begin(p, d);
        phase(p, "stream experts' weights");
        stream_begin_lane(p, &s->experts);
        stream_note_rows(p, &s->experts);
        /* The experts of the group; if m = 1, all slots. */
        PTX_FOR (p, number, 0,
                 d->vectors > 1 ? ld_shared(p, U32, s->plan.words, PLAN_HEAD_EXPERTS * 4)
                                : imm(U32, s->plan.tile.slots),
                 1)
            add_expert(p, s, number, row);
        if (d->in->shape.n_shared)
            add_shared(p, s, row);
        phase(p, "reduce and store");
        expert_down_store(p, d, row);
    }
}

/* Adds an entry of the list, and first stages its group if the tile does not have it. With passes
 * the tile never has it. */
static void add_entry(ptx *p, streamed *s, val entry, val row)
{
    expert_down *d = &s->d;
    bool passes = s->plan.tile.passes;
    val number = imm(U32, 0), missing = imm(PRED, 1);
    if (!passes) {
        number = sub(p, entry, ld_shared(p, U32, s->plan.words, PLAN_HEAD_FIRST * 4));
        missing = ge(p, number, ld_shared(p, U32, s->plan.words, PLAN_HEAD_EXPERTS * 4));
    }
    PTX_IF (p, missing) {
        barrier(p); /* after the last use of plan and tile */
        stage_group(p, s, entry);
    }
    s->experts.source.vectors =
        d->vectors > 1 ? ld_shared(p, U32, s->plan.words, PLAN_HEAD_VECTORS * 4) : imm(U32, 1);
    phase(p, "stream experts' weights");
    if (!passes)
        number = sub(p, entry, ld_shared(p, U32, s->plan.words, PLAN_HEAD_FIRST * 4));
    PTX_IF (p, passes ? imm(PRED, 1) : lt(p, row, d->g.n))
        add_expert(p, s, number, row);
}

static void clear_group(ptx *p, const streamed *s)
{
    const val zero = imm(U32, 0);
    PTX_IF (p, eq(p, tid_x(p), 0))
        st_shared_v4(p, U32, s->plan.words, 0, ((val4){ { zero, zero, zero, zero } }));
}

/* Multiplies group by group; all warps of a block process the groups of an iteration together. A
 * warp without rows is idle in between. With passes it computes the last rows again and stores
 * nothing. */
static void multiply_in_groups(ptx *p, streamed *s)
{
    expert_down *d = &s->d;
    unsigned rows = d->rows_of_warp, of_block = (unsigned)d->in->num_warps * rows;
    const expert_tile *tile = &s->plan.tile;
    bool shared = d->in->shape.n_shared, shared_passes = tile->shared_passes;
    uint32_t last = (uint32_t)(d->in->shape.n - 1) / rows * rows;
    clear_group(p, s);
    barrier(p);
    PTX_FOR (p, turn, mul(p, ctaid_x(p), of_block), d->g.n, mul(p, nctaid_x(p), of_block)) {
        val row = mad(p, warp_id(p), rows, turn), exists = lt(p, row, d->g.n);
        val own = tile->passes || shared_passes ? min(p, row, imm(U32, last)) : row;
        expert_down_begin(p, d);
        stream_begin_lane(p, &s->experts);
        PTX_FOR (p, entry, 0, d->in_use, 1)
            add_entry(p, s, entry, own);
        if (shared && !shared_passes && !tile->apart) {
            barrier(p);
            clear_group(p, s);
            stage_shared(p, s);
            barrier(p);
        }
        if (shared_passes) {
            barrier(p);
            clear_group(p, s);
        }
        PTX_IF (p, shared_passes ? imm(PRED, 1) : exists)
            if (shared)
                add_shared(p, s, own);
        PTX_IF (p, exists) {
            phase(p, "reduce and store");
            expert_down_store(p, d, row);
        }
    }
}

/* Returns the registers per thread. Two rows with separate pointers, plus the list's pointers, need
 * more than the 80 of a stream. With 96, two blocks of 10 warps still share an SM. */
static int64_t registers_of(const instance *in)
{
    enum { OF_TWO_ROWS = 96 };
    const instance of[] = { *in, expert_down_shared(in) };
    int64_t registers = 0;
    for (unsigned i = 0; i < (in->shape.n_shared ? 2u : 1u); i++) {
        int64_t own = stream_registers(&of[i]);
        if (own < OF_TWO_ROWS && in->rows_per_warp > 1 && !stream_rows_share_pointers(&of[i]))
            own = OF_TWO_ROWS;
        registers = own > registers ? own : registers;
    }
    return registers;
}

static void stream_expert_down_build(ptx *p, const instance *in)
{
    streamed s = { .d = expert_down_new(p, in, (unsigned)in->rows_per_warp,
                                        stream_plan(in, 0).lanes) };
    expert_down *d = &s.d;
    ptx_max_registers(p, (unsigned)registers_of(in));
    s.plan = (expert_plan){ .of = d, .tile = expert_tile_of(in) };
    s.plan.words = shared_array(p, "plan", U32, PLAN_RECORD * (1 + 2 * s.plan.tile.slots));
    stream_memory memory = stream_memory_new(p, in, 0);
    val first = memory.staged;
    memory.table = first;
    memory.staged = add(p, first, s.plan.tile.tables);
    if (d->vectors > 1)
        d->totals_at = mad(p, tid_x(p), F32_BYTES, add(p, memory.staged, s.plan.tile.both));
    s.experts = stream_begin_empty(p, in, &d->g, d->rows, &memory);
    s.experts.source.place = expert_plan_source;
    s.experts.source.context = &s.plan;
    if (in->shape.n_shared) {
        memory.table = add(p, first, stream_table_bytes(in));
        if (s.plan.tile.apart)
            memory.staged = add(p, memory.staged, s.plan.tile.bytes);
        s.of_all = stream_begin_empty(p, &d->shared, &d->of_shared, d->rows, &memory);
        s.of_all.source.place = shared_vector;
        s.of_all.source.context = d;
        if (s.plan.tile.apart)
            stage_shared(p, &s);
    }
    if (s.plan.tile.all_fit)
        multiply_at_once(p, &s);
    else
        multiply_in_groups(p, &s);
    fetch_next(p, in);
}

static int64_t slots(const instance *in)
{
    return expert_tile_of(in).slots;
}

static int64_t staged_bytes(const instance *in)
{
    return expert_tile_of(in).staged;
}

static int64_t row_groups(const instance *in)
{
    return WARP / stream_plan(in, 0).lanes;
}

const family stream_expert_down = {
    .name = "stream_expert_down",
    .summary = "streaming weighted sum of expert down-projections: x quantized as in "
               "stream_gemv",
    EXPERT_DOWN,
    .whole_lines = true,
    .quantizes = true,
    .preference = 20,
    .keys = KEYS(KEYS_OF_EXPERT_DOWN, KEY_STREAM_WARPS(12), KEY_ROWS_PER_WARP(1), KEY_PASSES,
                 KEYS_AROUND_EXPERT_DOWN, KEY_NEXT),
    .params = PARAMS(PARAMS_OF_EXPERT_DOWN, NEXT_WEIGHTS),
    .launch = { .block = "32*num_warps",
                .grid = { "min(ceil_div(n, num_warps*rows_per_warp*row_groups), sm_count*2)" },
                .shared = "16+32*slots",
                .dynamic_shared = "staged",
                .sizes = SIZES(
                    { "slots", slots, "vectors of x staged at once; an expert has 1, 2, 4 or m" },
                    { "staged", staged_bytes, "bytes of tables and staged vectors" },
                    { "row_groups", row_groups,
                      "rows per warp: 1, or 2 or 4 for rows too narrow for 32 lanes" }),
                .rows = "num_warps*rows_per_warp*row_groups",
                .overlap = WAITS_FIRST,
                .registers = 168 },
    .build = stream_expert_down_build,
    .tolerance = 4e-7, /* 2.9e-7 was measured on sums of eleven experts */
};
