/* Down-projections of experts, weighted and added up: row v of Y is
 *
 *   y[v] = residual[v] + scale (sum over its experts, ascending by id, of
 *          weights[v][slot] (W[id] f[v][slot] + bd[id]) + weights[v][experts_used] Ws f[v][shared])
 *
 * with what of these there are. f is [m, experts_used k + n_shared]: the values of each slot,
 * behind them those of the expert that all rows use. Which experts rows use stands in device
 * memory: see blocks/experts.h. An id that is no expert's reads no weights, and its rows are NaN.
 *
 * exact_expert_down rounds nothing: a warp takes a row of every expert's matrix, and goes through
 * the list with it, a row of X at a time.
 *
 * stream_expert_down streams as blocks/stream.h says. A warp goes through the experts of the list;
 * of each it reads its rows once, and multiplies them with all vectors of f whose rows use the
 * expert: code for 1, 2, 4 and 8 of them (or m), so that of three the last one is there twice, and
 * its second result counts nothing. The lanes' parts are added up behind the last expert. In shared
 * memory a block has
 *
 *   tables         of the experts' format, and of the shared expert's
 *   tile           as many vectors as there is room for, in the list's order, those of an expert
 *                  side by side
 *   another tile   of the shared expert's vectors, m of them; the same one where that is too much
 *   totals         where m is more than 1: the lanes' parts of a warp's rows times all rows of X.
 *                  Of one row of X they are in registers
 *   the plan       the first entry of the list that the tile has, how many, and how many vectors;
 *                  of each expert its id, its first vector, how many vectors, nothing;
 *                  of each vector its word of the list, its row of X or none, its weight, and the
 *                  row of X that it is of
 *
 * Where all vectors fit they are staged once, and warps go on alone. Else experts come in groups
 * that fit, for all rows of a turn one after the other, and all warps of a block with them. With
 * passes each expert's columns are staged in parts, as those of other streams.
 *
 * All additions to a row are in the order of the list, whichever rows there are beside it.
 */
#include "gen/blocks/exact.h"
#include "gen/blocks/experts.h"
#include "gen/blocks/reduce.h"
#include "gen/blocks/stream.h"
#include "gen/stream_keys.h"

enum { SHARED = 0 /* of weights_of */ };
enum { VARIANTS = 4, WARP = 32 };

typedef struct down {
    const instance *in;
    instance planes; /* of the experts' matrices, */
    instance shared; /* of that of the expert that all rows use */
    unsigned rows, vectors;
    gemv_operands g, of_shared;
    val weights, biases, list, in_use;
    var totals[STREAM_ROWS * MAX_VECTORS]; /* rows * vector + row: the lane's parts, */
    val totals_at;                         /* or in shared memory: its first; without a kind: no */
    /* Of the streaming one: */
    unsigned slots; /* vectors of f that the tile has room for */
    stream experts, of_all;
    val plan;
    val first; /* the list's entry that the tile starts with */
} down;

static bool has_shared(const instance *in)
{
    return in->shape.n_shared > 0;
}

static instance planes_of(const instance *in)
{
    instance planes = *in;
    planes.shape.plane_rows = in->shape.n;
    return planes;
}

static instance shared_of(const instance *in)
{
    instance shared = instance_matrix(in, SHARED);
    shared.shape.k = in->shape.n_shared;
    return shared;
}

static down down_new(ptx *p, const instance *in, unsigned rows)
{
    down d = { .in = in,
               .planes = planes_of(in),
               .shared = shared_of(in),
               .rows = rows,
               .vectors = (unsigned)in->shape.m };
    d.g = gemv_of(p, in, "y", "w", "x");
    d.g.scale = in->options.scale;
    if (in->options.residual)
        d.g.residual = parameter(p, "residual");
    if (has_shared(in))
        d.of_shared = gemv_of(p, &d.shared, "y", "ws", "x");
    if (in->options.bias)
        d.biases = parameter(p, "bd");
    d.weights = parameter(p, "weights");
    d.list = parameter(p, "list");
    d.in_use = experts_in_use(p, d.list);
    return d;
}

/* Where the values of a row's choice are: its word counts all rows' slots. */
static val values_of(ptx *p, const down *d, val word, val row)
{
    val at = mad_wide(p, word, (unsigned)d->in->shape.k * F32_BYTES, d->g.x);
    return has_shared(d->in) && d->vectors > 1
               ? mad_wide(p, row, (unsigned)d->in->shape.n_shared * F32_BYTES, at)
               : at;
}

/* Where those of a row's shared expert are. */
static int64_t shared_values_at(const instance *in, unsigned row)
{
    const problem_shape *s = &in->shape;
    return ((row + 1) * s->experts_used * s->k + row * s->n_shared) * F32_BYTES;
}

static val weight_of(ptx *p, const down *d, val word, val row)
{
    val number = has_shared(d->in) && d->vectors > 1 ? add(p, word, row) : word;
    return ld_const(p, F32, mad_wide(p, number, F32_BYTES, d->weights), 0);
}

static val weight_of_shared(ptx *p, const down *d, unsigned row)
{
    int64_t used = d->in->shape.experts_used;
    return ld_const(p, F32, d->weights, (row * (used + 1) + used) * F32_BYTES);
}

static unsigned total_count(const down *d)
{
    return d->rows * d->vectors;
}

/* From one of a lane's totals to its next. */
static unsigned total_bytes(const ptx *p)
{
    return ptx_block(p) * F32_BYTES;
}

static void begin_totals(ptx *p, down *d)
{
    for (unsigned i = 0; i < total_count(d); i++)
        if (d->totals_at.kind)
            st_shared(p, F32, d->totals_at, i * total_bytes(p), imm(F32, 0));
        else
            d->totals[i] = var_f32(p, 0.0f);
}

/* To the totals of a row of X, a number or one known at run time, the weighted product of each row
 * of weights. */
static void add_weighted(ptx *p, down *d, val row_of_x, val weight, const val *products)
{
    for (unsigned r = 0; d->totals_at.kind && r < d->rows; r++) {
        val at = mad(p, row_of_x, d->rows * total_bytes(p), d->totals_at);
        val total = ld_shared(p, F32, at, r * total_bytes(p));
        st_shared(p, F32, at, r * total_bytes(p), fma(p, weight, products[r], total));
    }
    for (unsigned i = 0; !d->totals_at.kind && i < total_count(d); i++) {
        val sum = fma(p, weight, products[i % d->rows], d->totals[i]);
        val own = eq(p, row_of_x, i / d->rows);
        assign(p, d->totals[i], select(p, own, sum, get(p, d->totals[i])));
    }
}

static void store_totals(ptx *p, const down *d, val row)
{
    val sums[STREAM_ROWS * MAX_VECTORS];
    for (unsigned i = 0; i < total_count(d); i++)
        sums[i] = d->totals_at.kind ? ld_shared(p, F32, d->totals_at, i * total_bytes(p))
                                    : get(p, d->totals[i]);
    gemv_store_turn(p, &d->g, row, d->rows, d->vectors,
                    block_sum_spread(p, sums, total_count(d), 1));
}

/* The biases of an expert's rows, which one lane adds. */
static void load_biases(ptx *p, const down *d, val id, val row, val biases[STREAM_ROWS])
{
    val n = d->g.n, first = mul(p, id, n), zero = imm(F32, 0), only = eq(p, lane_id(p), 0);
    for (unsigned r = 0; r < d->rows && d->biases.kind; r++) {
        val own = r ? add(p, row, r) : row;
        if (!gemv_turns_are_whole(&d->g, d->rows))
            own = min(p, own, sub(p, n, 1));
        val at = mad_wide(p, add(p, first, own), F32_BYTES, d->biases);
        biases[r] = select(p, only, ld_const(p, F32, at, 0), zero);
    }
}

static val not_a_number(ptx *p)
{
    return bits_as(p, F32, imm(U32, 0x7fffffff));
}

/* A row's product with one vector: the lane's part. */
static val exact_product(ptx *p, const down *d, val id, val row, val vector)
{
    instance one = *d->in;
    gemv_operands g = d->g;
    val product;
    one.shape.m = 1;
    g.x = vector;
    g.w = expert_plane(p, &d->planes, d->g.w, id, d->g.row_bytes);
    exact s = { .in = &one,
                .x = &g,
                .rows = 1,
                .formats = { instance_weights(d->in) },
                .at = { gemv_row(p, &g, row) },
                .columns = dim_k(p, d->in) };
    exact_multiply(p, &s, &product);
    return product;
}

static void add_exact_shared(ptx *p, down *d, val row)
{
    val products[MAX_VECTORS];
    gemv_operands g = d->of_shared;
    for (unsigned v = 0; v < d->vectors; v++)
        g.behind[v] = imm(U64, shared_values_at(d->in, v));
    exact s = { .in = &d->shared,
                .x = &g,
                .rows = 1,
                .formats = { instance_weights(&d->shared) },
                .at = { gemv_row(p, &g, row) },
                .columns = dim_k(p, &d->shared) };
    exact_multiply(p, &s, products);
    for (unsigned v = 0; v < d->vectors; v++)
        add_weighted(p, d, imm(U32, v), weight_of_shared(p, d, v), &products[v]);
}

static void build_exact(ptx *p, const instance *in)
{
    down d = down_new(p, in, 1);
    val row = named(p, "row", ctaid_x(p));
    begin_totals(p, &d);
    PTX_FOR (p, number, 0, d.in_use, 1) {
        expert_entry e = expert_entry_at(p, &d.planes, d.list, number);
        PTX_FOR (p, user, 0, e.count, 1) {
            val word = expert_choice(p, &e, user), row_of_x = expert_row(p, in, word);
            var product = ptx_var(p, F32, not_a_number(p));
            PTX_IF (p, expert_exists(p, in, e.id)) {
                val biases[STREAM_ROWS];
                val sum = exact_product(p, &d, e.id, row, values_of(p, &d, word, row_of_x));
                load_biases(p, &d, e.id, row, biases);
                assign(p, product, in->options.bias ? add(p, sum, biases[0]) : sum);
            }
            val of_row = get(p, product);
            add_weighted(p, &d, row_of_x, weight_of(p, &d, word, row_of_x), &of_row);
        }
    }
    if (has_shared(in))
        add_exact_shared(p, &d, row);
    store_totals(p, &d, row);
}

/* The numbers of vectors that there is code for: powers of two, and m. Returns how many. */
static unsigned variants_of(unsigned vectors, unsigned variants[VARIANTS])
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
    return stream_pass_steps(in) * stream_step_bytes(instance_weights(in));
}

static int64_t table_bytes(const instance *in)
{
    return stream_table_bytes(instance_weights(in));
}

static int64_t tables_bytes(const instance *in)
{
    instance shared = shared_of(in);
    return table_bytes(in) + (has_shared(in) ? table_bytes(&shared) : 0);
}

static int64_t shared_tile_bytes(const instance *in)
{
    instance shared = shared_of(in);
    return has_shared(in) ? in->shape.m * vector_bytes(&shared) : 0;
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
    return all - tables_bytes(in) - totals_bytes(in);
}

/* Whether the tile of the shared expert is another one. */
static bool is_apart(const instance *in)
{
    instance shared = shared_of(in);
    return has_shared(in) && stream_passes(in) == 1 && stream_passes(&shared) == 1 &&
           in->shape.m * vector_bytes(in) + shared_tile_bytes(in) <= room(in);
}

/* As many as there is room for, and one expert's. */
static int64_t slots(const instance *in)
{
    int64_t left = room(in) - (is_apart(in) ? shared_tile_bytes(in) : 0);
    int64_t fit = left / vector_bytes(in), most = most_vectors(in);
    fit = fit < most ? fit : most;
    fit = fit < WARP ? fit : WARP; /* a lane each */
    return stream_passes(in) > 1 || fit < in->shape.m ? in->shape.m : fit;
}

static int64_t tiles_bytes(const instance *in)
{
    int64_t tile = slots(in) * vector_bytes(in), shared = shared_tile_bytes(in);
    return is_apart(in) ? tile + shared : tile > shared ? tile : shared;
}

static int64_t staged_bytes(const instance *in)
{
    return tables_bytes(in) + tiles_bytes(in) + totals_bytes(in);
}

static bool all_fit(const instance *in)
{
    return stream_passes(in) == 1 && slots(in) >= most_vectors(in) &&
           (is_apart(in) || !has_shared(in));
}

/* The plan, in words. */
enum { PLAN_RECORD = 4, PLAN_BYTES = PLAN_RECORD * 4 };
enum { HEAD_FIRST, HEAD_EXPERTS, HEAD_VECTORS }; /* entries of the list, and its first one */
enum { EXPERT, FIRST_VECTOR, VECTOR_COUNT };
enum { WORD_OF_LIST, ROW_OF_X, WEIGHT };
#define NO_ROW    UINT32_MAX
#define NO_EXPERT UINT32_MAX /* of one row of X: there are fewer */

static val record(ptx *p, const down *d, val number, unsigned behind)
{
    return mad(p, number, PLAN_BYTES, add(p, d->plan, behind * PLAN_BYTES));
}

static val expert_record(ptx *p, const down *d, val number)
{
    return record(p, d, number, 1);
}

static val vector_record(ptx *p, const down *d, val number)
{
    return record(p, d, number, 1 + d->slots);
}

static val plan_word(ptx *p, val at, unsigned word)
{
    return ld_shared(p, U32, at, word * 4);
}

/* Of one row: an expert, and its vector, a thread. */
static void plan_one_row(ptx *p, const down *d, val experts)
{
    val number = tid_x(p);
    PTX_IF (p, eq(p, number, 0)) {
        st_shared(p, U32, d->plan, HEAD_FIRST * 4, d->first);
        st_shared(p, U32, d->plan, HEAD_EXPERTS * 4, experts);
    }
    PTX_IF (p, lt(p, number, d->slots))
        st_shared(p, U32, expert_record(p, d, number), EXPERT * 4, imm(U32, NO_EXPERT));
    PTX_IF (p, lt(p, number, experts)) {
        expert_entry e = expert_entry_at(p, &d->planes, d->list, add(p, d->first, number));
        val word = expert_choice(p, &e, imm(U32, 0)), none = imm(U32, 0);
        val id = min(p, e.id, imm(U32, NO_EXPERT - 1));
        st_shared(p, U32, expert_record(p, d, number), EXPERT * 4, id);
        st_shared(p, F32, vector_record(p, d, number), WEIGHT * 4, weight_of(p, d, word, none));
    }
}

/* The sum over the lanes up to the own one. */
static val sum_up_to(ptx *p, val v)
{
    val lane = lane_id(p);
    for (unsigned behind = 1; behind < WARP; behind *= 2) {
        val other = shuffle_from(p, v, bit_and(p, sub(p, lane, behind), WARP - 1));
        v = add(p, v, select(p, ge(p, lane, behind), other, imm(U32, 0)));
    }
    return v;
}

/* The vectors that an expert takes whose rows are so many. */
static val places_for(ptx *p, const down *d, val rows)
{
    unsigned variants[VARIANTS], i = variants_of(d->vectors, variants) - 1;
    val places = imm(U32, variants[i]);
    while (i--)
        places = select(p, le(p, rows, variants[i]), imm(U32, variants[i]), places);
    return places;
}

/* Of several rows: an expert a lane of the first warp, as many as fit. */
static void plan_rows(ptx *p, const down *d)
{
    val lane = lane_id(p), number = add(p, d->first, lane), zero = imm(U32, 0);
    bool alone = stream_passes(d->in) > 1;
    val exists = alone ? eq(p, lane, 0) : lt(p, number, d->in_use);
    expert_entry e = expert_entry_at(p, &d->planes, d->list, min(p, number, sub(p, d->in_use, 1)));
    val places = select(p, exists, places_for(p, d, e.count), zero);
    val end = sum_up_to(p, places), first = sub(p, end, places);
    val fits = bit_and(p, exists, le(p, end, d->slots));
    val experts = warp_max(p, select(p, fits, add(p, lane, 1), zero));
    val vectors = warp_max(p, select(p, fits, end, zero));
    PTX_IF (p, eq(p, lane, 0)) {
        val4 head = { { d->first, experts, vectors, zero } };
        st_shared_v4(p, U32, d->plan, 0, head);
    }
    PTX_IF (p, fits) {
        val4 of_expert = { { e.id, first, places, zero } };
        st_shared_v4(p, U32, expert_record(p, d, lane), 0, of_expert);
        for (unsigned i = 0; i < d->vectors; i++)
            PTX_IF (p, gt(p, places, i)) {
                val used = gt(p, e.count, i);
                val word = expert_choice(p, &e, select(p, used, imm(U32, i), zero));
                val row = expert_row(p, d->in, word), weight = weight_of(p, d, word, row);
                val4 of_vector = { { word, select(p, used, row, imm(U32, NO_ROW)),
                                     bits_as(p, U32, weight), row } };
                st_shared_v4(p, U32, vector_record(p, d, add(p, first, i)), 0, of_vector);
            }
    }
}

/* Where vector number vector of the tile comes from. */
static val planned_vector(ptx *p, const void *context, val vector)
{
    enum { ROW = 3 };
    const down *d = context;
    val zero = imm(U32, 0);
    if (d->vectors == 1) {
        expert_entry e = expert_entry_at(p, &d->planes, d->list, add(p, d->first, vector));
        return values_of(p, d, expert_choice(p, &e, zero), zero);
    }
    val at = vector_record(p, d, vector);
    return values_of(p, d, plan_word(p, at, WORD_OF_LIST), plan_word(p, at, ROW));
}

static val shared_vector(ptx *p, const void *context, val vector)
{
    const down *d = context;
    val first = add(p, d->g.x, shared_values_at(d->in, 0));
    return mad_wide(p, vector, (unsigned)(shared_values_at(d->in, 1) - shared_values_at(d->in, 0)),
                    first);
}

/* The experts of the group; of one row of X as many as there may be. */
static val experts_of_group(ptx *p, const down *d)
{
    return d->vectors > 1 ? ld_shared(p, U32, d->plan, HEAD_EXPERTS * 4) : imm(U32, d->slots);
}

/* Plans a group and puts its vectors into the tile; with passes the latter is for later. */
static void stage_group(ptx *p, down *d, val first)
{
    d->first = first;
    phase(p, "plan and stage experts' values");
    if (d->vectors > 1) {
        PTX_IF (p, eq(p, warp_id(p), 0))
            plan_rows(p, d);
        barrier(p);
        d->experts.source.vectors = ld_shared(p, U32, d->plan, HEAD_VECTORS * 4);
    } else {
        d->experts.source.vectors = min(p, sub(p, d->in_use, d->first), d->slots);
        plan_one_row(p, d, d->experts.source.vectors);
    }
    if (stream_passes(d->in) == 1)
        stream_stage_vectors(p, &d->experts);
    if (stream_passes(d->in) == 1 || d->vectors == 1)
        barrier(p);
}

/* An expert's rows times count vectors of the tile, from number first on. Those from certain on may
 * be there for nothing. */
static void add_products(ptx *p, down *d, const place addresses[STREAM_ROWS],
                         const val biases[STREAM_ROWS], val first, unsigned count, unsigned certain)
{
    stream s = stream_of_vectors(p, &d->experts, first, count);
    stream_add(p, &s, addresses);
    if (d->vectors > 1)
        warp_barrier(p); /* or ptxas has the plan's words in registers all the while */
    for (unsigned i = 0; i < count; i++) {
        val at = vector_record(p, d, i ? add(p, first, i) : first), products[STREAM_ROWS];
        val weight = ld_shared(p, F32, at, WEIGHT * 4);
        val row = d->vectors > 1 ? plan_word(p, at, ROW_OF_X) : imm(U32, 0);
        for (unsigned r = 0; r < d->rows; r++) {
            products[r] = get(p, s.sums[d->rows * i + r]);
            if (d->biases.kind)
                products[r] = add(p, products[r], biases[r]);
        }
        PTX_IF (p, i < certain ? imm(PRED, 1) : ne(p, row, imm(U32, NO_ROW)))
            add_weighted(p, d, row, weight, products);
    }
}

/* Rows that use an expert that does not exist. */
static void add_nothing(ptx *p, down *d, val first, val count)
{
    const val unknown[STREAM_ROWS] = { not_a_number(p), not_a_number(p) };
    for (unsigned i = 0; i < d->vectors; i++)
        PTX_IF (p, d->vectors > 1 ? gt(p, count, i) : imm(PRED, 1)) {
            val row = d->vectors > 1 ? plan_word(p, vector_record(p, d, add(p, first, i)), ROW_OF_X)
                                     : imm(U32, 0);
            PTX_IF (p, d->vectors > 1 ? ne(p, row, imm(U32, NO_ROW)) : imm(PRED, 1))
                add_weighted(p, d, row, imm(F32, 0), unknown);
        }
}

static void add_expert(ptx *p, down *d, val number, val row)
{
    unsigned variants[VARIANTS], variant_count = variants_of(d->vectors, variants);
    bool several = d->vectors > 1;
    val at = expert_record(p, d, number), id = named(p, "expert", plan_word(p, at, EXPERT));
    val first = several ? plan_word(p, at, FIRST_VECTOR) : number;
    val count = several ? plan_word(p, at, VECTOR_COUNT) : imm(U32, 1);
    PTX_IF (p, expert_exists(p, d->in, id)) {
        place addresses[STREAM_ROWS];
        val biases[STREAM_ROWS];
        gemv_operands g = d->g;
        g.w = expert_plane(p, &d->planes, d->g.w, id, d->g.row_bytes);
        stream_rows_of_turn(p, stream_rows_share_pointers(d->in), &g, row, d->rows, addresses);
        load_biases(p, d, id, row, biases);
        for (unsigned i = 0; i < variant_count; i++)
            PTX_IF (p, several ? eq(p, count, variants[i]) : imm(PRED, 1))
                add_products(p, d, addresses, biases, first, variants[i],
                             i ? variants[i - 1] + 1 : 1);
    }
    PTX_ELSE (p)
        PTX_IF (p, several ? imm(PRED, 1) : ne(p, id, imm(U32, NO_EXPERT)))
            add_nothing(p, d, first, count);
}

static void stage_shared(ptx *p, down *d)
{
    phase(p, "stage the shared expert's values");
    stream_stage_vectors(p, &d->of_all);
}

static void add_shared(ptx *p, down *d, val row)
{
    place addresses[STREAM_ROWS];
    stream s = d->of_all;
    phase(p, "stream the shared expert's weights");
    stream_begin_lane(p, &s);
    stream_rows_of_turn(p, stream_rows_share_pointers(&d->shared), &d->of_shared, row, d->rows,
                        addresses);
    stream_add(p, &s, addresses);
    for (unsigned v = 0; v < d->vectors; v++) {
        val products[STREAM_ROWS];
        for (unsigned r = 0; r < d->rows; r++)
            products[r] = get(p, s.sums[d->rows * v + r]);
        add_weighted(p, d, imm(U32, v), weight_of_shared(p, d, v), products);
    }
}

static void finish(ptx *p, down *d, val row)
{
    phase(p, "reduce and store");
    store_totals(p, d, row);
}

/* Warps on their own. */
static void multiply_at_once(ptx *p, down *d)
{
    unsigned rows = d->rows;
    stage_group(p, d, imm(U32, 0));
    val first = mul(p, stream_warp(p, ctaid_x(p)), rows), stride = mul(p, stream_warps(p), rows);
    PTX_FOR (p, row, first, d->g.n, stride) {
        begin_totals(p, d);
        phase(p, "stream experts' weights");
        stream_begin_lane(p, &d->experts);
        stream_note_rows(p, &d->experts);
        PTX_FOR (p, number, 0, experts_of_group(p, d), 1)
            add_expert(p, d, number, row);
        if (has_shared(d->in))
            add_shared(p, d, row);
        finish(p, d, row);
    }
}

/* An entry of the list that the tile need not have yet; with passes it has none. */
static void add_entry(ptx *p, down *d, val entry, val row)
{
    bool passes = stream_passes(d->in) > 1;
    val number = imm(U32, 0), missing = imm(PRED, 1);
    if (!passes) {
        number = sub(p, entry, ld_shared(p, U32, d->plan, HEAD_FIRST * 4));
        missing = ge(p, number, ld_shared(p, U32, d->plan, HEAD_EXPERTS * 4));
    }
    PTX_IF (p, missing) {
        barrier(p); /* behind the last use of plan and tile */
        stage_group(p, d, entry);
    }
    d->experts.source.vectors =
        d->vectors > 1 ? ld_shared(p, U32, d->plan, HEAD_VECTORS * 4) : imm(U32, 1);
    if (!passes)
        number = sub(p, entry, ld_shared(p, U32, d->plan, HEAD_FIRST * 4));
    PTX_IF (p, passes ? imm(PRED, 1) : lt(p, row, d->g.n))
        add_expert(p, d, number, row);
}

/* The tile has no experts, or not any more. */
static void forget_group(ptx *p, const down *d)
{
    const val zero = imm(U32, 0);
    PTX_IF (p, eq(p, tid_x(p), 0))
        st_shared_v4(p, U32, d->plan, 0, ((val4){ { zero, zero, zero, zero } }));
}

/* The shared expert, where its values are in the same tile as those of others. */
static void stage_shared_again(ptx *p, down *d)
{
    barrier(p);
    forget_group(p, d);
    stage_shared(p, d);
    barrier(p);
}

/* All warps of a block go through the groups of a turn. Those that it has no rows for do nothing in
 * between, or with passes take the last ones again and store nothing. */
static void multiply_in_groups(ptx *p, down *d)
{
    unsigned rows = d->rows, of_block = (unsigned)d->in->num_warps * rows;
    bool passes = stream_passes(d->in) > 1, shared = has_shared(d->in);
    bool shared_passes = shared && stream_passes(&d->shared) > 1;
    uint32_t last = (uint32_t)(d->in->shape.n - 1) / rows * rows;
    forget_group(p, d);
    barrier(p);
    PTX_FOR (p, turn, mul(p, ctaid_x(p), of_block), d->g.n, mul(p, nctaid_x(p), of_block)) {
        val row = mad(p, warp_id(p), rows, turn), exists = lt(p, row, d->g.n);
        val own = passes || shared_passes ? min(p, row, imm(U32, last)) : row;
        begin_totals(p, d);
        phase(p, "stream experts' weights");
        stream_begin_lane(p, &d->experts);
        PTX_FOR (p, entry, 0, d->in_use, 1)
            add_entry(p, d, entry, own);
        if (shared && !shared_passes && !is_apart(d->in))
            stage_shared_again(p, d);
        if (shared_passes) {
            barrier(p);
            forget_group(p, d);
        }
        PTX_IF (p, shared_passes ? imm(PRED, 1) : exists)
            if (shared)
                add_shared(p, d, own);
        PTX_IF (p, exists)
            finish(p, d, row);
    }
}

/* Two rows with pointers of their own, beside the list's, take some more than the 80 of a stream:
 * two blocks of 10 warps still share an SM. */
static unsigned registers_of(const instance *in)
{
    enum { OF_TWO_ROWS = 96 };
    const instance of[] = { *in, shared_of(in) };
    unsigned registers = 0;
    for (unsigned i = 0; i < (has_shared(in) ? 2u : 1u); i++) {
        unsigned own = stream_registers(&of[i]);
        if (own < OF_TWO_ROWS && in->rows_per_warp > 1 && !stream_rows_share_pointers(&of[i]))
            own = OF_TWO_ROWS;
        registers = own > registers ? own : registers;
    }
    return registers;
}

static void build_stream(ptx *p, const instance *in)
{
    down d = down_new(p, in, (unsigned)in->rows_per_warp);
    ptx_max_registers(p, registers_of(in));
    d.slots = (unsigned)slots(in);
    d.plan = shared_array(p, "plan", U32, PLAN_RECORD * (1 + 2 * d.slots));
    stream_memory memory = stream_memory_new(p, in, 0);
    val first = memory.staged;
    memory.table = first;
    memory.staged = add(p, first, tables_bytes(in));
    if (d.vectors > 1)
        d.totals_at = mad(p, tid_x(p), F32_BYTES, add(p, memory.staged, tiles_bytes(in)));
    d.experts = stream_begin_empty(p, in, &d.g, d.rows, &memory);
    d.experts.source.place = planned_vector;
    d.experts.source.context = &d;
    if (has_shared(in)) {
        memory.table = add(p, first, table_bytes(in));
        if (is_apart(in))
            memory.staged = add(p, memory.staged, slots(in) * vector_bytes(in));
        d.of_all = stream_begin_empty(p, &d.shared, &d.of_shared, d.rows, &memory);
        d.of_all.source.place = shared_vector;
        d.of_all.source.context = &d;
        if (is_apart(in))
            stage_shared(p, &d);
    }
    if (all_fit(in))
        multiply_at_once(p, &d);
    else
        multiply_in_groups(p, &d);
}

static const char *check(const instance *in, arena *a, const char **blamed)
{
    instance planes = planes_of(in);
    return check_experts(&planes, a, blamed);
}

#define EXPERT_DOWN_COMPUTES                                                                      \
    "y[m,n] = residual + scale sum over experts e of row m, weights[m,e] (x[m,e,k] W[e,n,k]^T + " \
    "bd[e,n])"
#define KEYS_OF_EXPERT_DOWN                                                               \
    KEY_WEIGHTS,                                                                          \
        { .name = "weights_s",                                                            \
          .summary = "format of Ws, of the expert that all rows use",                     \
          .field = KEY_FIELD(weights_of[SHARED]),                                         \
          .choices = weights_choices,                                                     \
          .def = WEIGHTS_Q4_K,                                                            \
          .like = KEY_FIELD(weights),                                                     \
          .only_with = KEY_FIELD(shape.n_shared),                                         \
          .tag = "s" },                                                                   \
        { .name = "k",                                                                    \
          .summary = "columns of an expert's W",                                          \
          .field = KEY_FIELD(shape.k),                                                    \
          .min = 1,                                                                       \
          .max = 1 << 20,                                                                 \
          .of_weights = true,                                                             \
          .of_weights_in = KEY_FIELD(weights),                                            \
          .required = true,                                                               \
          .tag = "k" },                                                                   \
        KEY_N, KEY_EXPERTS, KEY_EXPERTS_USED,                                             \
        { .name = "n_shared",                                                             \
          .summary = "columns of Ws; 0: there is none",                                   \
          .field = KEY_FIELD(shape.n_shared),                                             \
          .max = 1 << 20,                                                                 \
          .of_weights = true,                                                             \
          .of_weights_in = KEY_FIELD(weights_of[SHARED]),                                 \
          .zero_is_none = true,                                                           \
          .tag = "shared" },                                                              \
    {                                                                                     \
        .name = "m", .summary = "rows of X and Y", .field = KEY_FIELD(shape.m), .min = 1, \
        .max = MAX_VECTORS, .def = 1, .tag = "m"                                          \
    }
#define KEYS_AROUND_EXPERT_DOWN                                                      \
    KEY_OPTION(bias, "vectors [experts,n] added to W x"),                            \
        KEY_OPTION(residual, "values [m,n] added"),                                  \
    {                                                                                \
        .name = "scale", .summary = "of the sum", .field = KEY_FIELD(options.scale), \
        .tag = "scale", .real = &product_scale_range                                 \
    }
#define PARAMS_OF_EXPERT_DOWN                                            \
    OUT(F32, y, "m*n", 4), EXPERTS_WEIGHTS(w, 0, "experts*n*k"),         \
        { .name = "ws",                                                  \
          .kind = PARAM_IN,                                              \
          .weights = true,                                               \
          .matrix = SHARED + 1,                                          \
          .values = "n*n_shared",                                        \
          .align = 16,                                                   \
          .only_with = KEY_FIELD(shape.n_shared) },                      \
        IN(F32, x, "m*(experts_used*k+n_shared)", 16), EXPERTS_BIAS(bd), \
        IN_WHERE(residual, F32, residual, "m*n", 4),                     \
        IN(F32, weights, "m*(experts_used+min(1, n_shared))", 4), EXPERTS_LIST

const family exact_expert_down = {
    .name = "exact_expert_down",
    .summary = "down-projections of the experts that rows use, weighted and added, nothing rounded",
    .computes = EXPERT_DOWN_COMPUTES,
    .op = OP_EXPERT_DOWN,
    .activations = FORMAT_F32,
    .same_bits = true,
    .keys = (const key[]){ KEYS_OF_EXPERT_DOWN, KEYS_AROUND_EXPERT_DOWN, KEY_END },
    .params = (const param[]){ PARAMS_OF_EXPERT_DOWN, PARAM_END },
    .launch = { .block = "32", .grid = { "n" }, .registers = 128 },
    .check = check,
    .build = build_exact,
    .fit = ref_fit_experts,
    .reference = ref_expert_down,
    .tolerance = 5e-7,
};

static const derived_size sizes[] = {
    { "slots", slots, "vectors of x that are staged at once, those of an expert 1, 2, 4 or m" },
    { "staged", staged_bytes, "bytes of them and of the shared expert's, with tables ahead" },
    { NULL, NULL, NULL },
};

const family stream_expert_down = {
    .name = "stream_expert_down",
    .summary = "streaming down-projections of experts, weighted and added: x rounded as by "
               "stream_gemv",
    .computes = EXPERT_DOWN_COMPUTES,
    .op = OP_EXPERT_DOWN,
    .activations = FORMAT_F32,
    .quantizes = true,
    .same_bits = true,
    .preference = 20,
    .keys = (const key[]){ KEYS_OF_EXPERT_DOWN, KEY_STREAM_WARPS, KEY_ROWS_PER_WARP(1), KEY_PASSES,
                           KEYS_AROUND_EXPERT_DOWN, KEY_END },
    .params = (const param[]){ PARAMS_OF_EXPERT_DOWN, PARAM_END },
    .launch = { .block = "32*num_warps",
                .grid = { "min(ceil_div(n, num_warps*rows_per_warp), sm_count*2)" },
                .shared = "16+32*slots",
                .dynamic_shared = "staged",
                .sizes = sizes,
                .rows = "num_warps*rows_per_warp",
                .registers = 168 },
    .check = check,
    .build = build_stream,
    .fit = ref_fit_experts,
    .reference = ref_expert_down_quantizing,
    .tolerance = REF_QUANTIZING_TOLERANCE,
};
