#include "gen/products/gemm_tile.h"

#include "gen/common/halves.h"
#include "gen/common/q8_1.h"
#include "gen/common/reduce.h"

enum {
    WARPS = GEMM_THREADS / WARP,
    QUADS = 2, /* 16-byte lines of f32 in a unit */
    QUAD = 4,
    HALF_BYTES = 2,
    QUAD_PAIRS = QUAD / 2,                       /* words of its values as f16 */
    MOST_AT_ONCE = 8,                            /* quads of a row that a lane loads at once */
    PIECE_ROWS = GEMM_THREADS / GEMM_STEP_UNITS, /* rows between two units of a thread */
};

/* Returns the row of X for choice `number` of an expert. */
static val chosen_row(ptx *p, const gemm_x *x, val number)
{
    val word = expert_choice(p, x->expert, number);
    return x->in->family->op == OP_EXPERT_GATE_UP ? expert_row(p, x->in, word) : word;
}

static val address_of_row(ptx *p, const gemm_x *x, val number)
{
    val row = min(p, add(p, x->first, number), sub(p, x->m, 1));
    if (x->expert)
        row = chosen_row(p, x, row);
    return mad_wide(p, row, (long long)x->k * x->value_bytes, x->base);
}

/* A lane's running largest value (its bits) and sum of squares of a row. */
typedef struct row_stats {
    val row; /* address of the row */
    var largest, squares;
} row_stats;

/* Adds several quads of a row, a warp's width apart, all loaded at once. */
static void measure_quads(ptx *p, const gemm_x *x, const row_stats *stats, val quad, unsigned count)
{
    bool norm = x->in->options.norm;
    val offset = mul_wide(p, quad, QUAD * F32_BYTES);
    val at = add(p, stats->row, offset), of_gamma = imm(U64, 0);
    val4 values[MOST_AT_ONCE], gamma[MOST_AT_ONCE];
    if (norm)
        of_gamma = add(p, parameter(p, "gamma"), offset);
    for (unsigned i = 0; i < count; i++)
        values[i] = ld_const_v4(p, F32, at, i * WARP * QUAD * F32_BYTES);
    for (unsigned i = 0; norm && i < count; i++)
        gamma[i] = ld_const_v4(p, F32, of_gamma, i * WARP * QUAD * F32_BYTES);
    for (unsigned i = 0; i < count; i++) {
        for (unsigned j = 0; norm && j < QUAD; j++) {
            assign(p, stats->squares, fma(p, values[i].v[j], values[i].v[j], stats->squares));
            values[i].v[j] = mul(p, values[i].v[j], gamma[i].v[j]);
        }
        assign(p, stats->largest, q8_largest(p, get(p, stats->largest), values[i].v, QUAD));
    }
}

val gemm_x_find_powers(ptx *p, gemm_x *x)
{
    if (x->f16) {
        x->factors = parameter(p, "factors");
        return (val){ 0 };
    }
    phase(p, "powers of two of X's rows");
    x->powers = shared_array(p, "x_powers", F32, x->rows);
    x->factors = shared_array(p, "factors", F32, x->rows);
    unsigned quads = x->k / QUAD, step = MOST_AT_ONCE * WARP, whole = quads / step * step;
    PTX_FOR (p, number, warp_id(p), x->rows, WARPS) {
        val factor = { 0 };
        const row_stats stats = { address_of_row(p, x, number), var_u32(p, 0), var_f32(p, 0.0f) };
        if (whole)
            PTX_FOR (p, quad, lane_id(p), whole, step)
                measure_quads(p, x, &stats, quad, MOST_AT_ONCE);
        if (whole < quads)
            PTX_FOR (p, quad, add(p, lane_id(p), whole), quads, WARP)
                measure_quads(p, x, &stats, quad, 1);
        if (x->in->options.norm) {
            val mean = div(p, warp_sum(p, get(p, stats.squares)), (float)x->k);
            factor = norm_factor(p, x->in, mean);
        }
        powers_store(p, get(p, stats.largest), number, x->powers, x->factors, factor);
    }
    barrier(p);
    val power =
        ld_shared(p, F32, mad(p, bit_and(p, tid_x(p), x->rows - 1), F32_BYTES, x->powers), 0);
    return ne(p, barrier_count(p, ne(p, power, 1.0f)), 0);
}

/* A thread owns every 256th unit; four neighbouring threads own a row. */
void gemm_x_begin(ptx *p, gemm_x *x, val tile)
{
    unsigned units = x->rows * GEMM_STEP_UNITS;
    val row = div(p, tid_x(p), GEMM_STEP_UNITS), unit = bit_and(p, tid_x(p), GEMM_STEP_UNITS - 1);
    x->pieces = units > GEMM_THREADS ? units / GEMM_THREADS : 1;
    x->staging = units < GEMM_THREADS ? lt(p, tid_x(p), units) : imm(PRED, 1);
    x->first_value = mul(p, unit, GEMM_UNIT);
    x->store = gemm_unit(p, tile, row, unit);
    row = units < GEMM_THREADS ? min(p, row, x->rows - 1) : row;
    if (!x->f16)
        x->power = mad(p, row, F32_BYTES, x->powers);
    for (unsigned i = 0; i < x->pieces; i++) {
        val own = add(p, row, i * PIECE_ROWS);
        val from = mad_wide(p, x->first_value, x->value_bytes, address_of_row(p, x, own));
        if (x->in->splits)
            from =
                mad_wide(p, ctaid_z(p), x->k / (unsigned)gemm_splits(x->in) * x->value_bytes, from);
        x->from[i] = var_u64(p, from);
        for (unsigned j = 0; j < (x->f16 ? QUADS * QUAD_PAIRS : GEMM_UNIT); j++)
            x->loaded[i][j] = x->f16 ? var_u32(p, 0) : var_f32(p, 0.0f);
    }
    if (!x->in->options.norm)
        return;
    x->gamma = var_u64(p, mad_wide(p, x->first_value, F32_BYTES, parameter(p, "gamma")));
    for (unsigned j = 0; j < GEMM_UNIT; j++)
        x->norm[j] = var_f32(p, 0.0f);
}

/* Loads a unit: f32 by quads; f16 at once if rows are multiples of 16 bytes, else by halves. */
static void load_unit(ptx *p, const gemm_x *x, var from, unsigned valid, const var to[GEMM_UNIT])
{
    unsigned of_word = x->f16 ? 2 : 1, words = GEMM_UNIT / of_word;
    unsigned at_once = x->f16 && x->k % GEMM_UNIT ? QUAD_PAIRS : QUAD;
    type t = x->f16 ? U32 : F32;
    for (unsigned first = 0; first < words; first += at_once) {
        val needed = valid == GEMM_STEP ? imm(PRED, 1)
                                        : lt(p, add(p, x->first_value, first * of_word), valid);
        for (unsigned i = 0; valid < GEMM_STEP && i < at_once; i++)
            assign(p, to[first + i], imm(t, 0));
        PTX_IF (p, needed) {
            val4 loaded;
            if (at_once == QUAD) {
                loaded = ld_const_v4(p, t, get(p, from), first * F32_BYTES);
            } else {
                val2 two = ld_const_v2(p, t, get(p, from), first * F32_BYTES);
                loaded = (val4){ { two.v[0], two.v[1] } };
            }
            for (unsigned i = 0; i < at_once; i++)
                assign(p, to[first + i], loaded.v[i]);
        }
    }
}

void gemm_x_load(ptx *p, const gemm_x *x, val bytes, unsigned valid)
{
    for (unsigned i = 0; bytes.kind && i < x->pieces; i++)
        assign(p, x->from[i], add(p, x->from[i], bytes));
    if (bytes.kind && x->in->options.norm)
        assign(p, x->gamma, add(p, x->gamma, bytes));
    PTX_IF (p, x->staging) {
        for (unsigned i = 0; i < x->pieces; i++)
            load_unit(p, x, x->from[i], valid, x->loaded[i]);
        if (x->in->options.norm)
            load_unit(p, x, x->gamma, valid, x->norm);
    }
}

/* Returns a unit's pairs of f16: values 0 and 2, 1 and 3 if `apart`. */
static val4 unit_of_f16(ptx *p, const gemm_x *x, unsigned piece)
{
    enum { LOW_HALVES = 0x5410, HIGH_HALVES = 0x7632 };
    val4 words;
    for (unsigned j = 0; j < QUADS * QUAD_PAIRS; j++)
        words.v[j] = get(p, x->loaded[piece][j]);
    for (unsigned j = 0; x->apart && j < QUADS * QUAD_PAIRS; j += QUAD_PAIRS) {
        val low = words.v[j], high = words.v[j + 1];
        words.v[j] = prmt(p, low, high, LOW_HALVES);
        words.v[j + 1] = prmt(p, low, high, HIGH_HALVES);
    }
    return words;
}

static val4 unit_of_f32(ptx *p, const gemm_x *x, unsigned piece)
{
    val values[GEMM_UNIT], power = ld_shared(p, F32, x->power, piece * PIECE_ROWS * F32_BYTES);
    val4 words;
    for (unsigned j = 0; j < GEMM_UNIT; j++) {
        values[j] = get(p, x->loaded[piece][j]);
        values[j] = x->in->options.norm ? mul(p, values[j], x->norm[j]) : values[j];
        values[j] = x->scaled ? mul(p, values[j], power) : values[j];
    }
    for (unsigned j = 0; j < QUAD; j++) {
        unsigned low = x->apart ? j / 2 * QUAD + j % 2 : 2 * j;
        words.v[j] = pack_halves(p, values[low], values[low + (x->apart ? 2 : 1)]);
    }
    return words;
}

void gemm_x_store(ptx *p, const gemm_x *x, unsigned tile_offset)
{
    PTX_IF (p, x->staging)
        for (unsigned i = 0; i < x->pieces; i++) {
            val4 words = x->f16 ? unit_of_f16(p, x, i) : unit_of_f32(p, x, i);
            st_shared_v4(p, U32, x->store, tile_offset + i * PIECE_ROWS * GEMM_ROW_BYTES, words);
        }
}

val gemm_x_factor(ptx *p, const gemm_x *x, val number, val own)
{
    if (!x->f16)
        return ld_shared(p, F32, mad(p, number, F32_BYTES, x->factors), 0);
    val row = x->expert ? chosen_row(p, x, own) : own;
    return ld_const(p, F32, mad_wide(p, row, F32_BYTES, x->factors), 0);
}
