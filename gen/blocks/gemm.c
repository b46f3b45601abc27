/* A block has a tile of rows of X, 128 rows of W and 8 warps, each with a part of the tile of Y in
 * registers.
 *
 *   1. Of each row of X the largest value decides a power of two that brings it to 2^14 .. 2^15, so
 *      that nothing finite overflows as f16; it is 1 where the largest is at least 1 and less than
 *      2^15 already. With a norm, squares are added up on the way. W is f16 as it is, but for
 *      formats whose numbers f16 has no room for: these get powers, too.
 *   2. A step of 32 values of k: X's are loaded a step ahead, multiplied by their row's power,
 *      rounded and stored in a tile; W's are decoded into another one (gemm_weights.h).
 *   3. Barrier. All warps multiply by the tiles, of which there are two of each, for even and odd
 *      steps: what the next step stores nobody reads, and what is read is stored again only behind
 *      the next barrier, which comes when all have read it.
 *   4. Sums times what the powers left out are stored.
 *
 * 2 and 3 are there twice: where all powers of X are 1, which is usual, nothing is multiplied by
 * them.
 *
 * An element's products are added up in the order of k, 16 at once, whatever tile it is in.
 */
#include "gen/blocks/gemm.h"

#include "gen/blocks/powers.h"
#include "gen/blocks/q8_1.h"
#include "gen/blocks/unpack.h"

enum {
    WARP = 32,
    WARPS = GEMM_THREADS / WARP,
    FRAGMENT = 16, /* rows of an A and columns of two Bs, and their depth */
    DEPTHS = GEMM_STEP / FRAGMENT,
    B_COLUMNS = 8,
    MOST_DOWN = 4, /* fragments of a warp */
    MOST_ACROSS = 2,
    QUADS = 2, /* 16-byte lines of f32 in a unit */
    QUAD = 4,
    MOST_PIECES = 2,                             /* units of X that a thread stages, */
    PIECE_ROWS = GEMM_THREADS / GEMM_STEP_UNITS, /* so many rows apart */
    W_TILE = GEMM_COLUMNS * GEMM_ROW_BYTES,
    FRAGMENT_BYTES = FRAGMENT * GEMM_ROW_BYTES, /* from one to the next below it */
};

typedef struct gemm {
    const instance *in;
    bool gated; /* there are two matrices, of gate and up */
    gemv_operands g;
    gemm_weights w;
    unsigned rows, k;
    unsigned down, across;   /* fragments of a warp */
    unsigned pieces;         /* units of X that a thread stages, */
    unsigned x_tile;         /* and bytes of a tile of them */
    val m;                   /* rows of X */
    val first, column;       /* the block's first row of X and of W */
    val x_powers, factors;   /* of rows, in shared memory */
    val w_powers, w_factors; /* the same of W; without a kind: none */
    bool x_scaled;           /* some of x_powers may be other than 1 */
    val staging;             /* whether the thread stages X; */
    val store;               /* where its first unit goes, */
    val first_value;         /* number of its first value in the step, */
    val power;               /* that of its row, */
    var from[MOST_PIECES];   /* and where they are, of the step that is loaded next */
    var gamma;
    var x[MOST_PIECES][GEMM_UNIT], norm[GEMM_UNIT];
    val a[DEPTHS], b[DEPTHS]; /* a lane's addresses for ldmatrix */
    var sums[MOST_DOWN][2 * MOST_ACROSS][4];
} gemm;

/* Rows of gate and of up take turns in the tile by fragments, so that a warp has both of a column:
 * it is two fragments wide. */
static bool is_gated(const instance *in)
{
    return in->family->op == OP_GATE_UP_SWIGLU;
}

int64_t gemm_columns(const instance *in)
{
    return is_gated(in) ? GEMM_COLUMNS / 2 : GEMM_COLUMNS;
}

int64_t gemm_rows(const instance *in)
{
    int64_t rows = is_gated(in) ? 2 * FRAGMENT : FRAGMENT;
    while (rows < in->shape.m)
        rows *= 2;
    return rows;
}

static unsigned tile_bytes(const instance *in)
{
    return 2 * ((unsigned)gemm_rows(in) * GEMM_ROW_BYTES + W_TILE);
}

int64_t gemm_shared_bytes(const instance *in)
{
    gemm_weights w = gemm_weights_of(in);
    return tile_bytes(in) + gemm_ring_bytes(&w);
}

/* Of a row of which a lane has seen the largest value's bits: stores the power that its values are
 * multiplied by, and the inverse times a factor. */
static void store_power(ptx *p, val largest, val row, val powers, val factors, val factor)
{
    val power = power_for_halves(p, warp_max(p, largest)), inverse = inverse_of_power(p, power);
    PTX_IF (p, eq(p, lane_id(p), 0)) {
        val offset = mul(p, row, F32_BYTES);
        st_shared(p, F32, add(p, powers, offset), 0, power_of_two(p, power));
        st_shared(p, F32, add(p, factors, offset), 0,
                  factor.kind ? mul(p, inverse, factor) : inverse);
    }
}

static val row_of_x(ptx *p, const gemm *t, val number)
{
    val row = min(p, add(p, t->first, number), sub(p, t->m, 1));
    return mad_wide(p, row, (long long)t->k * F32_BYTES, t->g.x);
}

static void find_powers_of_x(ptx *p, const gemm *t)
{
    bool norm = t->in->options.norm;
    PTX_FOR (p, number, warp_id(p), t->rows, WARPS) {
        val row = row_of_x(p, t, number), factor = { 0 };
        var largest = var_u32(p, 0), squares = var_f32(p, 0.0f);
        PTX_FOR (p, quad, lane_id(p), t->k / QUAD, WARP) {
            val offset = mul_wide(p, quad, QUAD * F32_BYTES);
            val4 x = ld_const_v4(p, F32, add(p, row, offset), 0);
            for (unsigned i = 0; norm && i < QUAD; i++)
                assign(p, squares, fma(p, x.v[i], x.v[i], squares));
            if (norm) {
                val4 gamma = ld_const_v4(p, F32, add(p, parameter(p, "gamma"), offset), 0);
                for (unsigned i = 0; i < QUAD; i++)
                    x.v[i] = mul(p, x.v[i], gamma.v[i]);
            }
            assign(p, largest, q8_largest(p, get(p, largest), x.v, QUAD));
        }
        if (norm) {
            val mean = div(p, warp_sum(p, get(p, squares)), (float)t->k);
            factor = rsqrt(p, add(p, mean, (float)t->in->options.epsilon));
        }
        store_power(p, get(p, largest), number, t->x_powers, t->factors, factor);
    }
}

/* The address of a row of the tile. */
static val row_of_w(ptx *p, const gemm *t, val number)
{
    val last = sub(p, t->g.n, 1);
    if (!t->gated)
        return gemv_row(p, &t->g, min(p, add(p, t->column, number), last));
    val pair = mad(p, shr(p, number, 5), FRAGMENT, bit_and(p, number, FRAGMENT - 1));
    val is_up = ne(p, bit_and(p, number, FRAGMENT), 0);
    val matrix = select(p, is_up, parameter(p, "wu"), parameter(p, "wg"));
    return mad_wide(p, min(p, add(p, t->column, pair), last), t->w.row_bytes, matrix);
}

/* Rows of f32 may end with half a piece, which the first lane takes. */
static void find_powers_of_w(ptx *p, const gemm *t)
{
    PTX_FOR (p, number, warp_id(p), GEMM_COLUMNS, WARPS) {
        val row = row_of_w(p, t, number);
        var largest = var_u32(p, 0);
        PTX_FOR (p, piece, lane_id(p), t->k / UNPACKED, WARP) {
            val values[UNPACKED];
            unpack_piece(p, t->w.format, row, piece, values);
            assign(p, largest, q8_largest(p, get(p, largest), values, UNPACKED));
        }
        if (t->k % UNPACKED) {
            val4 last = ld_const_v4(p, F32, row, (int64_t)(t->k - QUAD) * F32_BYTES);
            assign(p, largest, q8_largest(p, get(p, largest), last.v, QUAD));
        }
        store_power(p, get(p, largest), number, t->w_powers, t->w_factors, (val){ 0 });
    }
}

/* Whether some of X's rows have powers other than 1. */
static val find_powers(ptx *p, gemm *t)
{
    phase(p, "find the powers of two of rows");
    t->x_powers = shared_array(p, "x_powers", F32, t->rows);
    t->factors = shared_array(p, "factors", F32, t->rows);
    find_powers_of_x(p, t);
    if (t->w.scaled) {
        t->w_powers = shared_array(p, "w_powers", F32, GEMM_COLUMNS);
        t->w_factors = shared_array(p, "w_factors", F32, GEMM_COLUMNS);
        find_powers_of_w(p, t);
    }
    barrier(p);
    val power =
        ld_shared(p, F32, mad(p, bit_and(p, tid_x(p), t->rows - 1), F32_BYTES, t->x_powers), 0);
    return ne(p, barrier_count(p, ne(p, power, 1.0f)), 0);
}

/* Units of X: a thread has every 256th, each four threads those of a row. */
static void begin_staging(ptx *p, gemm *t, val tile)
{
    unsigned units = t->rows * GEMM_STEP_UNITS;
    val row = div(p, tid_x(p), GEMM_STEP_UNITS), unit = bit_and(p, tid_x(p), GEMM_STEP_UNITS - 1);
    t->pieces = units > GEMM_THREADS ? units / GEMM_THREADS : 1;
    t->staging = units < GEMM_THREADS ? lt(p, tid_x(p), units) : imm(PRED, 1);
    t->first_value = mul(p, unit, GEMM_UNIT);
    t->store = gemm_unit(p, tile, row, unit);
    row = units < GEMM_THREADS ? min(p, row, t->rows - 1) : row;
    t->power = mad(p, row, F32_BYTES, t->x_powers);
    for (unsigned i = 0; i < t->pieces; i++) {
        val own = add(p, row, i * PIECE_ROWS);
        t->from[i] = var_u64(p, mad_wide(p, t->first_value, F32_BYTES, row_of_x(p, t, own)));
        for (unsigned j = 0; j < GEMM_UNIT; j++)
            t->x[i][j] = var_f32(p, 0.0f);
    }
    if (!t->in->options.norm)
        return;
    t->gamma = var_u64(p, mad_wide(p, t->first_value, F32_BYTES, parameter(p, "gamma")));
    for (unsigned j = 0; j < GEMM_UNIT; j++)
        t->norm[j] = var_f32(p, 0.0f);
}

static void load_unit(ptx *p, const gemm *t, var from, unsigned there, const var to[GEMM_UNIT])
{
    for (unsigned quad = 0; quad < QUADS; quad++) {
        val needed =
            there == GEMM_STEP ? imm(PRED, 1) : lt(p, add(p, t->first_value, quad * QUAD), there);
        for (unsigned i = 0; there < GEMM_STEP && i < QUAD; i++)
            assign(p, to[quad * QUAD + i], 0.0f);
        PTX_IF (p, needed) {
            val4 four = ld_const_v4(p, F32, get(p, from), quad * QUAD * F32_BYTES);
            for (unsigned i = 0; i < QUAD; i++)
                assign(p, to[quad * QUAD + i], four.v[i]);
        }
    }
}

/* Begins to load X's next step, of which so many values are there; where there is none, the latest
 * one again. */
static void load_x(ptx *p, const gemm *t, unsigned there)
{
    PTX_IF (p, t->staging) {
        for (unsigned i = 0; i < t->pieces; i++)
            load_unit(p, t, t->from[i], there, t->x[i]);
        if (t->in->options.norm)
            load_unit(p, t, t->gamma, there, t->norm);
    }
}

static void advance_x(ptx *p, const gemm *t, val bytes)
{
    for (unsigned i = 0; i < t->pieces; i++)
        assign(p, t->from[i], add(p, t->from[i], bytes));
    if (t->in->options.norm)
        assign(p, t->gamma, add(p, t->gamma, bytes));
}

static void store_x(ptx *p, const gemm *t, unsigned tile_offset)
{
    bool apart = t->w.decoder->apart;
    PTX_IF (p, t->staging)
        for (unsigned i = 0; i < t->pieces; i++) {
            val x[GEMM_UNIT], power = ld_shared(p, F32, t->power, i * PIECE_ROWS * F32_BYTES);
            val4 words;
            for (unsigned j = 0; j < GEMM_UNIT; j++) {
                x[j] = get(p, t->x[i][j]);
                x[j] = t->in->options.norm ? mul(p, x[j], t->norm[j]) : x[j];
                x[j] = t->x_scaled ? mul(p, x[j], power) : x[j];
            }
            for (unsigned j = 0; j < QUAD; j++) {
                unsigned low = apart ? j / 2 * QUAD + j % 2 : 2 * j;
                words.v[j] = pack_halves(p, x[low], x[low + (apart ? 2 : 1)]);
            }
            st_shared_v4(p, U32, t->store, tile_offset + i * PIECE_ROWS * GEMM_ROW_BYTES, words);
        }
}

/* The warps' parts lie in two rows of four, or where the tile is one fragment high in one row. */
static void begin_products(ptx *p, gemm *t, val x_tile, val w_tile)
{
    unsigned high = t->rows > FRAGMENT ? 2 : 1, wide = WARPS / high;
    t->down = t->rows / high / FRAGMENT;
    t->across = GEMM_COLUMNS / wide / FRAGMENT;
    val warp = warp_id(p), lane = lane_id(p), octet = div(p, lane, 8);
    val row = mad(p, div(p, warp, wide), t->down * FRAGMENT, bit_and(p, lane, FRAGMENT - 1));
    val column = mad(p, bit_and(p, warp, wide - 1), t->across * FRAGMENT,
                     mad(p, div(p, octet, 2), B_COLUMNS, bit_and(p, lane, 7)));
    for (unsigned d = 0; d < DEPTHS; d++) {
        t->a[d] = gemm_unit(p, x_tile, row, add(p, div(p, octet, 2), 2 * d));
        t->b[d] = gemm_unit(p, w_tile, column, add(p, bit_and(p, octet, 1), 2 * d));
    }
    for (unsigned i = 0; i < t->down; i++)
        for (unsigned j = 0; j < 2 * t->across; j++)
            for (unsigned c = 0; c < 4; c++)
                t->sums[i][j][c] = var_f32(p, 0.0f);
}

static void add_product(ptx *p, var sums[4], val4 a, val2 b)
{
    val4 c = { { get(p, sums[0]), get(p, sums[1]), get(p, sums[2]), get(p, sums[3]) } };
    val4 d = mma_m16n8k16_f16(p, a, b, c);
    for (unsigned i = 0; i < 4; i++)
        assign(p, sums[i], d.v[i]);
}

static void multiply_step(ptx *p, gemm *t, unsigned parity)
{
    for (unsigned d = 0; d < DEPTHS; d++) {
        val4 a[MOST_DOWN], b[MOST_ACROSS];
        for (unsigned i = 0; i < t->down; i++)
            a[i] = ldmatrix_x4(p, t->a[d], parity * t->x_tile + i * FRAGMENT_BYTES);
        for (unsigned j = 0; j < t->across; j++)
            b[j] = ldmatrix_x4(p, t->b[d], parity * W_TILE + j * FRAGMENT_BYTES);
        for (unsigned j = 0; j < 2 * t->across; j++)
            for (unsigned i = 0; i < t->down; i++)
                add_product(p, t->sums[i][j], a[i],
                            (val2){ { b[j / 2].v[j % 2 * 2], b[j / 2].v[j % 2 * 2 + 1] } });
    }
}

/* A step of a chunk, for which X is loaded already; behind it comes one with so many values, as
 * many bytes further on in X. */
static void step(ptx *p, gemm *t, unsigned number, unsigned there, unsigned next, val bytes)
{
    unsigned parity = number % 2;
    store_x(p, t, parity * t->x_tile);
    gemm_decode_step(p, &t->w, number, there, parity * W_TILE);
    if (next) {
        advance_x(p, t, bytes);
        load_x(p, t, next);
    }
    barrier(p);
    multiply_step(p, t, parity);
}

static unsigned values_of_step(unsigned values, unsigned number)
{
    unsigned first = number * GEMM_STEP;
    return first >= values ? 0 : values - first < GEMM_STEP ? values - first : GEMM_STEP;
}

/* Behind the last whole chunk X's next step is loaded only if it is whole as well. */
static void multiply(ptx *p, gemm *t)
{
    unsigned steps = t->w.chunk / GEMM_STEP, tail_first = values_of_step(t->w.tail, 0);
    val step_bytes = imm(U64, GEMM_STEP * F32_BYTES);
    for (unsigned i = 0; i + 1 < t->w.stages; i++)
        gemm_copy_chunk(p, &t->w, imm(U32, i));
    load_x(p, t, t->w.whole ? GEMM_STEP : tail_first);
    if (t->w.whole) {
        ptx_loop_work(p, t->w.chunk, "values of k");
        PTX_FOR (p, chunk, 0, t->w.whole, 1) {
            gemm_next_chunk(p, &t->w, chunk);
            val bytes = step_bytes;
            if (tail_first < GEMM_STEP)
                bytes = select(p, eq(p, chunk, t->w.whole - 1), imm(U64, 0), step_bytes);
            for (unsigned s = 0; s < steps; s++)
                step(p, t, s, GEMM_STEP, GEMM_STEP, s + 1 < steps ? step_bytes : bytes);
        }
        if (tail_first && tail_first < GEMM_STEP) {
            advance_x(p, t, step_bytes);
            load_x(p, t, tail_first);
        }
    }
    if (!t->w.tail)
        return;
    phase(p, "the last chunk");
    gemm_next_chunk(p, &t->w, imm(U32, t->w.whole));
    for (unsigned s = 0; s * GEMM_STEP < t->w.tail; s++)
        step(p, t, s, values_of_step(t->w.tail, s), values_of_step(t->w.tail, s + 1), step_bytes);
}

/* A sum of a row of X, times what powers of two, and a norm, have left out of it. */
static val whole_sum(ptx *p, const gemm *t, var sum, val factor, val of_tile)
{
    if (!t->w.scaled)
        return mul(p, sum, factor);
    val of_w = ld_shared(p, F32, mad(p, of_tile, F32_BYTES, t->w_factors), 0);
    return mul(p, mul(p, sum, min(p, factor, of_w)), max(p, factor, of_w));
}

/* Of sums c of a row of fragments, those of columns from one on; column of_tile of the tile. */
static val element(ptx *p, const gemm *t, const var sums[][4], unsigned j, unsigned c, val factor,
                   val of_tile, val n, val offset)
{
    val sum = whole_sum(p, t, sums[j][c], factor, add(p, of_tile, j * B_COLUMNS));
    if (!t->gated)
        return gemv_finished(p, &t->g, sum, n, offset);
    val up = whole_sum(p, t, sums[j + 2][c], factor, add(p, of_tile, (j + 2) * B_COLUMNS));
    gemv_biases biases = gemv_biases_of_row(p, t->in, n);
    if (biases.gate.kind) {
        sum = add(p, sum, biases.gate);
        up = add(p, up, biases.up);
    }
    return gated(p, t->in->options.activation, sum, up);
}

/* A lane has two neighbouring columns of rows g and g + 8 of each fragment of 8 columns. */
static void store_row(ptx *p, const gemm *t, val row, val of_tile, val column, unsigned down,
                      unsigned half)
{
    val number = add(p, row, down * FRAGMENT + half * B_COLUMNS), own = add(p, t->first, number);
    val of_block =
        t->in->shape.m < t->rows ? lt(p, number, (unsigned)t->in->shape.m) : imm(PRED, 1);
    PTX_IF (p, bit_and(p, of_block, lt(p, own, t->m))) {
        val factor = ld_shared(p, F32, mad(p, number, F32_BYTES, t->factors), 0);
        for (unsigned j = 0; j < (t->gated ? 1 : 2) * t->across; j++)
            for (unsigned i = 0; i < 2; i++) {
                val n = add(p, column, j * B_COLUMNS + i);
                PTX_IF (p, lt(p, n, t->g.n)) {
                    val offset = shl(p, mad_wide(p, own, t->g.n, convert(p, U64, n)), 2);
                    val y = element(p, t, t->sums[down], j, 2 * half + i, factor,
                                    add(p, of_tile, i), n, offset);
                    st_global(p, F32, add(p, t->g.y, offset), 0, y);
                }
            }
    }
}

static void store_tile(ptx *p, const gemm *t)
{
    unsigned wide = GEMM_COLUMNS / (t->across * FRAGMENT);
    val warp = warp_id(p), lane = lane_id(p);
    val row = mad(p, div(p, warp, wide), t->down * FRAGMENT, div(p, lane, 4));
    val of_warp = bit_and(p, warp, wide - 1), of_lane = mul(p, bit_and(p, lane, 3), 2);
    val of_tile = mad(p, of_warp, t->across * FRAGMENT, of_lane);
    val column = add(p, t->column, t->gated ? mad(p, of_warp, FRAGMENT, of_lane) : of_tile);
    for (unsigned down = 0; down < t->down; down++)
        for (unsigned half = 0; half < 2; half++)
            store_row(p, t, row, of_tile, column, down, half);
}

void gemm_build(ptx *p, const instance *in)
{
    gemm t = { .in = in,
               .gated = is_gated(in),
               .w = gemm_weights_of(in),
               .rows = (unsigned)gemm_rows(in),
               .k = (unsigned)in->shape.k };
    instance fixed = *in;
    fixed.rows_mode = ROWS_FIXED;
    t.g = t.gated ? gemv_of(p, &fixed, "y", "wg", "x") : gemv_parameters(p, &fixed);
    t.m = in->rows_mode == ROWS_RUN_TIME ? named(p, "m_val", parameter(p, "m_val"))
                                         : imm(U32, in->shape.m);
    t.first = named(p, "first row", mul(p, ctaid_y(p), (unsigned)in->shape.m));
    t.column = named(p, "first column", mul(p, ctaid_x(p), (unsigned)gemm_columns(in)));
    t.x_tile = t.rows * GEMM_ROW_BYTES;
    val x_scaled = find_powers(p, &t);
    phase(p, "multiply");
    val tiles = shared_dynamic(p, "tiles", U32);
    val w_tile = add(p, tiles, 2 * t.x_tile), ring = add(p, w_tile, 2 * W_TILE);
    gemm_weights_begin(p, &t.w, row_of_w(p, &t, gemm_own_row(p)), ring, w_tile);
    if (t.w.scaled)
        t.w.scale = ld_shared(p, F32, mad(p, t.w.row, F32_BYTES, t.w_powers), 0);
    begin_staging(p, &t, tiles);
    begin_products(p, &t, tiles, w_tile);
    PTX_IF (p, x_scaled) {
        t.x_scaled = true;
        multiply(p, &t);
    }
    PTX_ELSE (p) {
        t.x_scaled = false;
        multiply(p, &t);
    }
    phase(p, "store");
    store_tile(p, &t);
}
