/* Order of the work of a tensor-core product. A block has a tile of rows of X, 128 rows of W and 8
 * warps, each with a part of the tile of Y in registers.
 *
 *   1. The largest value of each row of X decides a power of two that brings it to 2^14 .. 2^15, so
 *      that nothing finite overflows as f16. It is 1 if the largest value is in [1, 2^15). With a
 *      norm, squares are summed in the same pass. Rows that are f16 come with their factors
 *      (f16_rows.c). Rows of W get powers only in formats beyond the range of f16.
 *   2. A step of 32 values of k: X is loaded one step early, multiplied by its row's power, rounded
 *      and stored in a tile; W is decoded into another tile (gemm_tile.h).
 *   3. Barrier. All warps multiply the tiles. There are two of each, for even and odd steps: the
 *      next step stores to tiles that no warp reads, and reuses these after the next barrier.
 *   4. Epilogue: sums are multiplied by the powers' inverses and stored.
 *
 * For f32 X the code of 2 and 3 exists twice: if all powers of X are 1, which is usual, the
 * multiplications are skipped.
 *
 * An element's products are summed in the order of k, 16 at once, in any tile. With split-K the
 * blocks along z have a part of k each, of whole chunks. The last of a tile's blocks adds their
 * sums in the order of k, then runs 4. */
#include "gen/products/gemm_tile.h"

#include "gen/common/halves.h"
#include "gen/common/q8_1.h"
#include "gen/products/gemv.h"
#include "gen/products/product_keys.h"

enum { LINE = STREAM_LANE_BYTES, PARTS_AT_ONCE = 8 };

/* A block's product of one tile. */
typedef struct gemm {
    const instance *in;
    bool gated; /* the tile alternates rows of gate and of up: a lane has both of a column */
    gemv_operands g;
    gemm_weights w;
    gemm_x x;
    gemm_sums s;
    unsigned x_tile;         /* bytes of a tile of X */
    val column;              /* the block's first row of W */
    val plane, first_bias;   /* the expert's offset in W (bytes) and in biases; or VAL_NONE */
    val w_powers, w_factors; /* powers of W's rows, inverses, in shared memory; or VAL_NONE */
} gemm;

/* Without a key: twice the rows per expert of an even distribution; most experts have no more. */
int64_t gemm_expert_rows(const instance *in)
{
    const problem_shape *s = &in->shape;
    int64_t rows = 2 * s->m * s->experts_used / s->experts;
    int64_t most = s->m < GEMM_USUAL_ROWS ? s->m : GEMM_USUAL_ROWS;
    return in->tile_rows ? in->tile_rows : rows < 1 ? 1 : rows < most ? rows : most;
}

/* Returns rows per block at a time: of X, or of an expert. */
static unsigned rows_at_once(const instance *in)
{
    return (unsigned)(operation_is_of_experts(in->family->op) ? gemm_expert_rows(in) : in->shape.m);
}

/* Returns the number of matrices that each have their own blocks; gate and up share theirs. */
static unsigned matrix_count(const instance *in)
{
    return in->family->op == OP_QKV ? gemv_matrices_of_qkv(in) : 1;
}

static gemm_weights weights_of_matrix(const instance *in, unsigned number)
{
    instance one = in->family->op == OP_QKV ? instance_matrix(in, number) : *in;
    return gemm_weights_of(&one);
}

int64_t gemm_columns(const instance *in)
{
    return instance_is_gated(in) ? GEMM_COLUMNS / 2 : GEMM_COLUMNS;
}

int64_t gemm_rows(const instance *in)
{
    int64_t rows = instance_is_gated(in) ? 2 * GEMM_FRAGMENT : GEMM_FRAGMENT;
    while (rows < rows_at_once(in))
        rows *= 2;
    return rows;
}

int64_t gemm_shared_bytes(const instance *in)
{
    unsigned most = 0;
    for (unsigned i = 0; i < matrix_count(in); i++) {
        gemm_weights w = weights_of_matrix(in, i);
        most = gemm_ring_bytes(&w) > most ? gemm_ring_bytes(&w) : most;
    }
    return 2 * ((unsigned)gemm_rows(in) * GEMM_ROW_BYTES + GEMM_W_TILE) + most;
}

int64_t gemm_powers_bytes(const instance *in)
{
    bool scaled = false;
    for (unsigned i = 0; i < matrix_count(in); i++)
        scaled |= weights_of_matrix(in, i).scaled;
    return scaled ? 2 * GEMM_COLUMNS * F32_BYTES : 0;
}

int64_t gemm_tile_values(const instance *in)
{
    return gemm_rows(in) * GEMM_COLUMNS;
}

const char *gemm_check(const instance *in, arena *a, const char **blamed)
{
    instance whole = *in;
    whole.splits = 0;
    *blamed = "splits";
    if (in->splits == 1)
        return "splits = 1 is no split; use splits = 0";
    for (unsigned i = 0; in->splits && i < matrix_count(in); i++) {
        gemm_weights w = weights_of_matrix(&whole, i);
        if (w.tail || w.whole % in->splits)
            return arena_format(a,
                                "splits = %lld: k = %lld does not divide into parts of whole "
                                "chunks of %u values; use 0 for no split",
                                (long long)in->splits, (long long)in->shape.k, w.chunk);
    }
    return check_product(in, a, blamed);
}

/* Returns the address of row `number` of the tile in W. */
static val row_of_w(ptx *p, const gemm *t, val number)
{
    val last = sub(p, t->g.n, 1);
    if (!t->gated) {
        val row = gemv_row(p, &t->g, min(p, add(p, t->column, number), last));
        return t->plane.kind ? add(p, row, t->plane) : row;
    }
    unsigned gate_rows = gemm_gate_rows(&t->s);
    val pair = mad(p, div(p, number, 2 * gate_rows), gate_rows, bit_and(p, number, gate_rows - 1));
    val is_up = ne(p, bit_and(p, number, gate_rows), 0);
    val matrix = select(p, is_up, parameter(p, "wu"), parameter(p, "wg"));
    if (t->plane.kind)
        matrix = add(p, matrix, t->plane);
    return mad_wide(p, min(p, add(p, t->column, pair), last), t->w.row_bytes, matrix);
}

/* Finds the powers of X's rows, and allocates those of W's. */
static val find_powers(ptx *p, gemm *t)
{
    val x_scaled = gemm_x_find_powers(p, &t->x);
    if (gemm_powers_bytes(t->in)) {
        t->w_powers = shared_array(p, "w_powers", F32, GEMM_COLUMNS);
        t->w_factors = shared_array(p, "w_factors", F32, GEMM_COLUMNS);
    }
    return x_scaled;
}

static unsigned part_bytes(const gemm *t)
{
    bool floats = !weight_format_of(t->w.format)->largest.scale;
    return floats ? LINE : formats[t->w.format].block_bytes;
}

/* Updates the largest value with lines of a row of floats, or with the scales of blocks, a warp's
 * width apart. The loads are independent. Past the last part it is repeated. */
static void measure_parts(ptx *p, const gemm *t, val row, val part, unsigned count, val last,
                          var largest)
{
    const weight_format *f = weight_format_of(t->w.format);
    for (unsigned i = 0; i < count; i++) {
        val values[STREAM_LANE_BYTES];
        unsigned number = f->largest.scale ? 1 : LINE / formats[t->w.format].block_bytes;
        val at = mad_wide(p, min(p, add(p, part, i * WARP), last), part_bytes(t), row);
        if (f->largest.scale) {
            values[0] = mul(p, f->largest.scale(p, at, f->largest.offset), f->largest.times);
        } else {
            val4 line = ld_const_v4(p, U32, at, 0);
            f->stream.floats(p, &line, values);
        }
        assign(p, largest, q8_largest(p, get(p, largest), values, number));
    }
}

static void find_powers_of_w(ptx *p, const gemm *t)
{
    unsigned parts = t->w.row_bytes / part_bytes(t), of_lane = (parts + WARP - 1) / WARP;
    unsigned at_once = of_lane < PARTS_AT_ONCE ? of_lane : PARTS_AT_ONCE;
    PTX_FOR (p, number, warp_id(p), GEMM_COLUMNS, GEMM_THREADS / WARP) {
        val row = row_of_w(p, t, number), last = imm(U32, parts - 1);
        var largest = var_u32(p, 0);
        PTX_FOR (p, part, lane_id(p), parts, at_once * WARP)
            measure_parts(p, t, row, part, at_once, last, largest);
        powers_store(p, get(p, largest), number, t->w_powers, t->w_factors, (val){ 0 });
    }
}

/* Runs a step of a chunk, whose X is loaded, then loads `next` values of X, `bytes` further. */
static void step(ptx *p, gemm *t, unsigned number, unsigned valid, unsigned next, val bytes)
{
    unsigned parity = number % 2;
    gemm_x_store(p, &t->x, parity * t->x_tile);
    gemm_decode_step(p, &t->w, number, valid, parity * GEMM_W_TILE);
    if (next)
        gemm_x_load(p, &t->x, bytes, next);
    gemm_sums_sync(p, &t->s);
    gemm_sums_multiply(p, &t->s, parity);
}

static unsigned values_of_step(unsigned values, unsigned number)
{
    unsigned first = number * GEMM_STEP;
    return first >= values ? 0 : values - first < GEMM_STEP ? values - first : GEMM_STEP;
}

/* Runs all steps. After the last whole chunk X's next step is loaded early only if it is whole. */
static void multiply(ptx *p, gemm *t)
{
    unsigned steps = t->w.chunk / GEMM_STEP, tail_first = values_of_step(t->w.tail, 0);
    val step_bytes = imm(U64, GEMM_STEP * t->x.value_bytes);
    for (unsigned i = 0; i + 1 < t->w.stages; i++)
        gemm_copy_chunk(p, &t->w, imm(U32, i));
    gemm_x_load(p, &t->x, (val){ 0 }, t->w.whole ? GEMM_STEP : tail_first);
    if (t->w.whole) {
        if (!t->x.scaled)
            ptx_loop_work(p, t->w.chunk * GEMM_COLUMNS / GEMM_THREADS, "weights");
        PTX_FOR (p, chunk, 0, t->w.whole, 1) {
            gemm_next_chunk(p, &t->w, chunk);
            val bytes = step_bytes;
            if (tail_first < GEMM_STEP)
                bytes = select(p, eq(p, chunk, t->w.whole - 1), imm(U64, 0), step_bytes);
            for (unsigned s = 0; s < steps; s++)
                step(p, t, s, GEMM_STEP, GEMM_STEP, s + 1 < steps ? step_bytes : bytes);
        }
        if (tail_first && tail_first < GEMM_STEP)
            gemm_x_load(p, &t->x, step_bytes, tail_first);
    }
    if (!t->w.tail)
        return;
    phase(p, "last chunk");
    gemm_next_chunk(p, &t->w, imm(U32, t->w.whole));
    for (unsigned s = 0; s * GEMM_STEP < t->w.tail; s++)
        step(p, t, s, values_of_step(t->w.tail, s), values_of_step(t->w.tail, s + 1), step_bytes);
}

/* Returns a sum times the inverses of the powers, and the norm's factor. */
static val whole_sum(ptx *p, const gemm *t, var sum, val factor, val of_tile)
{
    if (!t->w.scaled)
        return mul(p, sum, factor);
    val of_w = ld_shared(p, F32, mad(p, of_tile, F32_BYTES, t->w_factors), 0);
    val least = min(p, factor, of_w);
    if (t->x.f16) /* its factor may be NaN, which min drops */
        least = fma(p, factor, imm(F32, 0), least);
    return mul(p, mul(p, sum, least), max(p, factor, of_w));
}

/* Computes and stores an element of Y from the lane's sums of a row and a column. */
static void store_element(ptx *p, const gemm *t, unsigned row, unsigned column, val own, val factor,
                          val first_column)
{
    unsigned tile_column = gemm_sums_column(&t->s, column), gate_rows = gemm_gate_rows(&t->s),
             of_y = tile_column;
    if (t->gated && tile_column / gate_rows % 2)
        return; /* a row of up */
    if (t->gated)
        of_y = tile_column / (2 * gate_rows) * gate_rows + tile_column % gate_rows;
    val n = add(p, first_column, of_y);
    PTX_IF (p, lt(p, n, t->g.n)) {
        val column_of_y = t->g.before.kind ? add(p, n, t->g.before) : n;
        val stride = t->g.stride.kind ? t->g.stride : t->g.n;
        val offset = shl(p, mad_wide(p, own, stride, convert(p, U64, column_of_y)), 2);
        val of_tile = add(p, t->s.column, tile_column);
        val y = whole_sum(p, t, gemm_sums_at(&t->s, row, column), factor, of_tile);
        if (t->gated) {
            val up = whole_sum(p, t, gemm_sums_of_up(&t->s, row, column), factor,
                               add(p, of_tile, gate_rows));
            gemv_biases biases =
                gemv_biases_of_row(p, t->in, t->first_bias.kind ? add(p, n, t->first_bias) : n);
            gemv_add_biases(p, &biases, &y, &up);
            y = gated(p, &t->in->options, y, up);
        } else {
            y = gemv_finished(p, &t->g, y, n, offset);
        }
        st_global(p, F32, add(p, t->g.y, offset), 0, y);
    }
}

static void store_row(ptx *p, const gemm *t, unsigned row, val first_column)
{
    val number = add(p, t->s.row, gemm_sums_row(&t->s, row)), own = add(p, t->x.first, number);
    unsigned at_once = rows_at_once(t->in);
    val of_block = at_once < t->x.rows ? lt(p, number, at_once) : imm(PRED, 1);
    PTX_IF (p, bit_and(p, of_block, lt(p, own, t->x.m))) {
        val factor = gemm_x_factor(p, &t->x, number, own);
        if (t->x.expert)
            own = expert_choice(p, t->x.expert, own);
        for (unsigned column = 0; column < gemm_sums_column_count(&t->s); column++)
            store_element(p, t, row, column, own, factor, first_column);
    }
}

static void store_tile(ptx *p, gemm *t)
{
    if (!t->gated && t->first_bias.kind &&
        t->g.bias.kind) /* here rather than at the start: that would cost registers */
        t->g.bias = mad_wide(p, t->first_bias, F32_BYTES, t->g.bias);
    gemm_sums_place(p, &t->s);
    val first = t->s.column; /* of Y; with alternating gate and up, half of the preceding rows */
    if (t->gated) {
        unsigned gate_rows = gemm_gate_rows(&t->s);
        val in_gate = bit_and(p, t->s.column, gate_rows - 1);
        first = mad(p, div(p, t->s.column, 2 * gate_rows), gate_rows, in_gate);
    }
    first = add(p, t->column, first);
    for (unsigned row = 0; row < gemm_sums_row_count(&t->s); row++)
        if (gemm_sums_row(&t->s, row) < rows_at_once(t->in))
            store_row(p, t, row, first);
}

/* Multiplies the block's part of a matrix, or of gate and up, from W's powers to the store. */
static void multiply_matrix(ptx *p, gemm *t, val tiles, val x_scaled)
{
    if (t->w.scaled) {
        phase(p, "powers of two of W's rows");
        find_powers_of_w(p, t);
        barrier(p);
    }
    phase(p, "multiply");
    val w_tile = add(p, tiles, 2 * t->x_tile), ring = add(p, w_tile, 2 * GEMM_W_TILE);
    val row = row_of_w(p, t, gemm_own_row(p));
    if (t->in->splits)
        row = mad_wide(p, ctaid_z(p), t->w.whole * t->w.chunk_bytes, row);
    gemm_weights_begin(p, &t->w, row, ring, w_tile);
    if (t->w.scaled)
        t->w.own.scale = ld_shared(p, F32, mad(p, t->w.row, F32_BYTES, t->w_powers), 0);
    t->x.apart = t->w.decoder->apart;
    gemm_x_begin(p, &t->x, tiles);
    gemm_sums_begin(p, &t->s, tiles, w_tile);
    if (t->x.f16) {
        multiply(p, t);
    } else {
        PTX_IF (p, x_scaled) {
            t->x.scaled = true;
            multiply(p, t);
        }
        PTX_ELSE (p) {
            t->x.scaled = false;
            multiply(p, t);
        }
    }
    gemm_sums_end(p, &t->s);
    phase(p, "store");
    store_tile(p, t);
}

/* Multiplies Q, K and V. Runs of neighbouring matrices of one format share code. */
static void multiply_qkv(ptx *p, gemm *t, val tiles, val x_scaled)
{
    instance fixed = *t->in;
    gemv_run runs[QKV_MATRICES];
    fixed.rows_mode = ROWS_FIXED;
    unsigned count = gemv_runs_of_qkv(&fixed, GEMM_COLUMNS, runs);
    for (unsigned r = 0; r < count; r++) {
        val block = sub(p, ctaid_x(p), runs[r].before);
        PTX_IF (p, lt(p, block, runs[r].groups)) {
            gemm one = *t;
            gemv_operands of[QKV_MATRICES];
            one.w = weights_of_matrix(t->in, runs[r].from);
            gemv_operands_of_run(p, &fixed, &runs[r], of);
            one.g = gemv_matrix_of_run(p, &runs[r], of, &block);
            one.column = named(p, "first column", mul(p, block, GEMM_COLUMNS));
            multiply_matrix(p, &one, tiles, x_scaled);
        }
    }
}

static gemm gemm_new(ptx *p, const instance *in)
{
    unsigned rows = (unsigned)gemm_rows(in);
    gemm t = {
        .in = in,
        .gated = instance_is_gated(in),
        .x_tile = rows * GEMM_ROW_BYTES,
        .x = { .in = in,
               .f16 = in->family->activations == FORMAT_F16,
               .value_bytes = formats[in->family->activations].block_bytes,
               .rows = rows,
               .k = (unsigned)in->shape.k },
        .s = { .in = in, .rows = rows, .by_wgmma = ptx_has_wgmma(ptx_target(p)) },
    };
    t.x.base = parameter(p, "x");
    if (in->splits)
        t.s.ticket = shared_array(p, "ticket", U32, 1);
    return t;
}

static val tiles_of(ptx *p, const gemm *t)
{
    val tiles = shared_dynamic(p, "tiles", U32);
    if (t->s.by_wgmma)
        shared_align(p, tiles, GEMM_TILE_ALIGNMENT);
    return tiles;
}

/* Sets the only matrix, or gate and up. */
static void set_matrix(ptx *p, gemm *t)
{
    t->w = gemm_weights_of(t->in);
    instance fixed = *t->in;
    fixed.rows_mode = ROWS_FIXED;
    bool ungated = t->in->options.ungated;
    t->g = t->gated  ? gemv_of(p, &fixed, "y", "wg", "x")
           : ungated ? gemv_of(p, &fixed, "y", "wu", "x")
                     : gemv_parameters(p, &fixed);
    if (ungated)
        t->g.epilogue = 1 + t->in->options.activation;
    if (ungated && t->in->options.bias)
        t->g.bias = parameter(p, "bu");
    t->column = named(p, "first column", mul(p, ctaid_x(p), (unsigned)gemm_columns(t->in)));
}

/* Multiplies the rows that use an expert. A block's index in y is the number of an entry in the
 * list (products/experts.h); the blocks in z stride over the tiles of its rows. Y has a row per
 * choice, [m * experts_used, n]. X has one per row with gate and up, else one per choice. An expert
 * id out of range reads no weights and gives NaN. */
static void multiply_experts(ptx *p, const instance *in)
{
    gemm t = gemm_new(p, in);
    unsigned at_once = rows_at_once(in);
    val tiles = tiles_of(p, &t);
    val list = parameter(p, "list"), in_use = lt(p, ctaid_y(p), experts_in_use(p, list));
    ret_if(p, bit_not(p, in_use));
    expert_entry e = expert_entry_at(p, in, list, ctaid_y(p));
    t.x.expert = &e;
    t.x.m = e.count;
    set_matrix(p, &t);
    PTX_IF (p, expert_exists(p, in, e.id)) {
        val plane = mul_wide(p, expert_first_row(p, in, e.id), t.w.row_bytes);
        t.plane = named(p, "the expert's matrix", plane);
        t.first_bias = mul(p, e.id, (unsigned)in->shape.n);
        PTX_FOR (p, first, mul(p, ctaid_z(p), at_once), e.count, mul(p, nctaid_z(p), at_once)) {
            t.x.first = first;
            val x_scaled = find_powers(p, &t);
            multiply_matrix(p, &t, tiles, x_scaled);
            barrier(p); /* before powers are stored again */
        }
    }
    PTX_ELSE (p) {
        val n = add(p, t.column, tid_x(p)), of_block = lt(p, tid_x(p), gemm_columns(in));
        PTX_IF (p, bit_and(p, of_block, lt(p, n, t.g.n)))
            PTX_FOR (p, number, 0, t.x.m, 1) {
                val row = mad_wide(p, expert_choice(p, &e, number), t.g.n, convert(p, U64, n));
                st_global(p, F32, add(p, t.g.y, shl(p, row, 2)), 0, expert_nan(p));
            }
    }
}

void gemm_build(ptx *p, const instance *in)
{
    if (operation_is_of_experts(in->family->op)) {
        multiply_experts(p, in);
        return;
    }
    gemm t = gemm_new(p, in);
    t.x.m = in->rows_mode == ROWS_RUN_TIME ? named(p, "m_val", parameter(p, "m_val"))
                                           : imm(U32, in->shape.m);
    t.x.first = named(p, "first row", mul(p, ctaid_y(p), (unsigned)in->shape.m));
    val x_scaled = find_powers(p, &t), tiles = tiles_of(p, &t);
    if (in->family->op == OP_QKV) {
        multiply_qkv(p, &t, tiles, x_scaled);
        return;
    }
    set_matrix(p, &t);
    multiply_matrix(p, &t, tiles, x_scaled);
}
