/* One step of a Mamba-2 layer (state space duality), which Nemotron-H, Granite 4 and Falcon-H1 use
 * beside or in place of attention, for m rows: a causal convolution of the inputs, the recurrence on
 * the state of each head, and the gate, in one launch.
 *
 * With H heads of D channels, I = H D, G groups, N = state_size and C = I + 2 G N channels of the
 * convolution (X of all heads, then B, then C of all groups), for a row at position p:
 *
 *   u[c] = silu(bias[c] + sum over j < k of conv[c][j] input[p - k + 1 + j][c]), where inputs before
 *          p = 0 are 0
 *   X = u_X,  B = u_B,  C = u_C;  head h uses group h / (H / G)
 *   delta = softplus(x_dt + dt),  decay = exp(delta a)
 *   state = decay state + delta X B^T,  y = (state C + d X) silu(z)
 *
 * A model's norm of y by groups is a launch of its own.
 *
 * Source: Dao and Gu, "Transformers are SSMs", 2024, as llama.cpp computes it.
 *
 * A row of x has z [I], the inputs of the convolution [C], and x_dt [H]. A state is [I, N] by
 * channel. convs points to the ring of the last inputs, [16, C]; position p is in slot p % 16.
 *
 * Rows with the same state address belong to one sequence. They must be neighbours with consecutive
 * positions; their inputs then come from x. At position 0 the state counts as 0 and no inputs are
 * read, so a sequence may start in memory that was not cleared. A row at max_seq_len or beyond
 * (such as 2^32 - 1) leaves state and inputs unchanged, and its y is 0.
 *
 * A block processes 32 channels of a head, for a row and the following rows of its sequence, in
 * order. Their state stays in registers: it is read once and written once. 8 lanes share two
 * channels. Each block computes B and C of its group itself, 8 rows at a time. Blocks of the other
 * rows of the sequence end immediately.
 *
 * The new inputs of up to 8 rows go to the ring's slots p to p + 7, and the launch reads only slots
 * p - 3 to p - 1. The inputs of more rows may go to any slot. So those of B and C are then stored by
 * the last block of their group, found by a counter. No other block reads those of X.
 */
#include "gen/recurrent/conv_rows.h"
#include "gen/common/reduce.h"
#include "gen/common/functions.h"
#include "kernel/family.h"
#include "kernel/formula.h"
#include "kernel/problem.h"
#include "ref/reference.h"

enum { MOST_STATE = 256, PIECE = 4, LANES = 8, MOST_VALUES = MOST_STATE / LANES };
enum { TILE = 32, CHANNELS = 2, THREADS = TILE / CHANNELS * LANES };
enum { GROUP_ROWS = CONV_GROUP_ROWS };

/* A row in shared memory: B and C, then per channel X, silu(z) and y without the gate, then delta
 * and decay. */
enum { AT_X, AT_GATE, AT_Y, VECTORS };
enum { DELTA, DECAY, FACTORS = 4 };

typedef struct scan {
    const instance *in;
    conv_rows rows;
    unsigned inner, size;                 /* I, N */
    unsigned vectors, factors, row_bytes; /* offsets in bytes in shared memory */
    val tile, head, group;                /* of the block; the tile's first channel is 32 tile */
    val number;                           /* index of the tile in its group */
    val first, end;     /* range of the block's rows in the current group of rows */
    val channel, piece; /* the thread's first channel in the tile, and its first piece */
    val shared;
} scan;

static unsigned tiles_of_group(const instance *in)
{
    return (unsigned)(in->shape.num_heads * in->shape.head_dim / in->shape.num_groups / TILE);
}

static val shared_row(ptx *p, const scan *s, val row)
{
    val place = conv_rows_are_many(s->in) ? rem(p, row, GROUP_ROWS) : row;
    return mad(p, place, s->row_bytes, s->shared);
}

static int64_t vector_at(const scan *s, unsigned vector)
{
    return s->vectors + vector * TILE * F32_BYTES;
}

/* Returns the channel of the convolution of an item: N of B, N of C, 32 of X. */
static val channel_of(ptx *p, const scan *s, val item)
{
    unsigned groups = (unsigned)s->in->shape.num_groups;
    val of_b = mad(p, s->group, s->size, add(p, item, s->inner));
    val of_c = add(p, of_b, (groups - 1) * s->size);
    val of_x = mad(p, s->tile, TILE, sub(p, item, 2 * s->size));
    return select(p, lt(p, item, s->size), of_b, select(p, lt(p, item, 2 * s->size), of_c, of_x));
}

/* Computes delta and decay of a row. exp and softplus would turn infinities into numbers; adding 0
 * times the argument makes the result NaN. */
static void make_factors(ptx *p, const scan *s, val number)
{
    val behind = mul_wide(p, s->head, F32_BYTES), row = conv_rows_x(p, &s->rows, number);
    val x_dt = ld_global(p, F32, add(p, row, behind), s->rows.channels * F32_BYTES);
    val a = ld_const(p, F32, add(p, parameter(p, "a"), behind), 0);
    val t = add(p, x_dt, ld_const(p, F32, add(p, parameter(p, "dt"), behind), 0));
    val delta = fma(p, t, imm(F32, 0), softplus(p, t));
    val decay = fma(p, a, imm(F32, 0), power_of_e(p, mul(p, a, delta)));
    val to = shared_row(p, s, number);
    st_shared(p, F32, to, s->factors + DELTA * F32_BYTES, delta);
    st_shared(p, F32, to, s->factors + DECAY * F32_BYTES, decay);
}

/* Computes the convolutions, gates and factors of the current rows. */
static void prepare(ptx *p, const scan *s)
{
    PTX_FOR (p, number, s->first, s->end, 1) {
        val row = shared_row(p, s, number);
        for (unsigned i = 0; i < 2 * s->size + TILE; i += THREADS) {
            val item = add(p, tid_x(p), i), inside = imm(PRED, 1);
            if (i + THREADS > 2 * s->size + TILE)
                inside = lt(p, item, 2 * s->size + TILE);
            PTX_IF (p, inside) {
                val u =
                    conv_rows_convolve(p, &s->rows, number, channel_of(p, s, item), imm(PRED, 0));
                st_shared(p, F32, mad(p, item, F32_BYTES, row), 0, u);
            }
        }
        PTX_IF (p, ge(p, tid_x(p), THREADS - TILE)) {
            val lane = lane_id(p), channel = mad(p, s->tile, TILE, lane);
            val x = mad_wide(p, channel, F32_BYTES, conv_rows_x(p, &s->rows, number));
            val z = ld_global(p, F32, x, -(int64_t)s->inner * F32_BYTES);
            st_shared(p, F32, mad(p, lane, F32_BYTES, row), vector_at(s, AT_GATE),
                      by_sigmoid(p, z, z));
        }
        PTX_IF (p, eq(p, tid_x(p), TILE))
            make_factors(p, s, number);
    }
}

/* The thread's part of two channels of the state: half a tile apart, every eighth piece of each. */
typedef struct channels {
    unsigned pieces;
    val place;
    var values[CHANNELS][MOST_VALUES];
} channels;

static int64_t piece_at(const scan *s, unsigned channel, unsigned piece)
{
    return ((int64_t)channel * (TILE / CHANNELS) * s->size + (int64_t)piece * LANES * PIECE) *
           F32_BYTES;
}

static channels load_channels(ptx *p, const scan *s)
{
    channels c = { .pieces = s->size / (LANES * PIECE) };
    val channel = mad(p, s->tile, TILE, s->channel);
    val row = mad_wide(p, channel, s->size * F32_BYTES, s->rows.state);
    c.place = mad_wide(p, s->piece, PIECE * F32_BYTES, row);
    for (unsigned i = 0; i < CHANNELS; i++)
        for (unsigned j = 0; j < c.pieces * PIECE; j++)
            c.values[i][j] = var_f32(p, 0.0f);
    PTX_IF (p, ne(p, s->rows.position, 0))
        for (unsigned i = 0; i < CHANNELS; i++)
            for (unsigned j = 0; j < c.pieces; j++) {
                val4 four = ld_global_v4(p, F32, c.place, piece_at(s, i, j));
                for (unsigned l = 0; l < PIECE; l++)
                    assign(p, c.values[i][j * PIECE + l], four.v[l]);
            }
    return c;
}

static void store_channels(ptx *p, const scan *s, const channels *c)
{
    for (unsigned i = 0; i < CHANNELS; i++)
        for (unsigned j = 0; j < c->pieces; j++) {
            val4 four;
            for (unsigned l = 0; l < PIECE; l++)
                four.v[l] = get(p, c->values[i][j * PIECE + l]);
            st_global_v4(p, F32, c->place, piece_at(s, i, j), four);
        }
}

/* Applies one row of the recurrence to the thread's channels. */
static void step(ptx *p, const scan *s, const channels *c, val number)
{
    val row = shared_row(p, s, number), x[CHANNELS], added[CHANNELS], y[CHANNELS];
    val delta = ld_shared(p, F32, row, s->factors + DELTA * F32_BYTES);
    val decay = ld_shared(p, F32, row, s->factors + DECAY * F32_BYTES);
    val of_channel = mad(p, s->channel, F32_BYTES, row);
    val of_piece = mad(p, s->piece, PIECE * F32_BYTES, row);
    for (unsigned i = 0; i < CHANNELS; i++) {
        x[i] =
            ld_shared(p, F32, of_channel, vector_at(s, AT_X) + i * (TILE / CHANNELS) * F32_BYTES);
        added[i] = mul(p, x[i], delta);
        y[i] = imm(F32, 0);
    }
    for (unsigned j = 0; j < c->pieces; j++) {
        int64_t at = j * LANES * PIECE * F32_BYTES;
        val4 b = ld_shared_v4(p, F32, of_piece, at);
        val4 out = ld_shared_v4(p, F32, of_piece, s->size * F32_BYTES + at);
        for (unsigned i = 0; i < CHANNELS; i++)
            for (unsigned l = 0; l < PIECE; l++) {
                var element = c->values[i][j * PIECE + l];
                assign(p, element, fma(p, b.v[l], added[i], mul(p, element, decay)));
                y[i] = fma(p, out.v[l], element, y[i]);
            }
    }
    for (unsigned i = 0; i < CHANNELS; i++)
        y[i] = group_sum(p, y[i], LANES);
    val d = ld_const(p, F32, mad_wide(p, s->head, F32_BYTES, parameter(p, "d")), 0);
    PTX_IF (p, eq(p, s->piece, 0))
        for (unsigned i = 0; i < CHANNELS; i++)
            st_shared(p, F32, of_channel, vector_at(s, AT_Y) + i * (TILE / CHANNELS) * F32_BYTES,
                      fma(p, x[i], d, y[i]));
}

/* Returns &y[row][first channel of the tile + lane] for a row of the block. */
static val y_of(ptx *p, const scan *s, val number)
{
    val row = add(p, s->rows.row, number);
    val tile = mad(p, row, imm(U32, s->inner / TILE), s->tile);
    return mad_wide(p, mad(p, tile, TILE, lane_id(p)), F32_BYTES, parameter(p, "y"));
}

/* Stores y; each warp processes a row. */
static void store_y(ptx *p, const scan *s)
{
    PTX_FOR (p, number, add(p, s->first, warp_id(p)), s->end, THREADS / WARP) {
        val from = mad(p, lane_id(p), F32_BYTES, shared_row(p, s, number));
        val y = ld_shared(p, F32, from, vector_at(s, AT_Y));
        val gate = ld_shared(p, F32, from, vector_at(s, AT_GATE));
        st_global(p, F32, y_of(p, s, number), 0, mul(p, y, gate));
    }
}

/* Stores the last inputs of the block's X to the ring, and those of B and C for the whole group. */
static void keep_inputs(ptx *p, const scan *s)
{
    val stores = eq(p, s->number, 0);
    if (conv_rows_are_many(s->in)) {
        val number = mad(p, s->rows.row, imm(U32, s->in->shape.num_groups), s->group);
        val counter = mad_wide(p, number, sizeof(uint32_t), parameter(p, "counters"));
        stores = block_is_last(p, counter, imm(U32, tiles_of_group(s->in)), s->rows.word);
    }
    PTX_IF (p, lt(p, tid_x(p), TILE))
        conv_rows_keep_last(p, &s->rows, mad(p, s->tile, TILE, lane_id(p)));
    PTX_IF (p, stores)
        PTX_FOR (p, item, tid_x(p), imm(U32, 2 * s->size), THREADS)
            conv_rows_keep_last(p, &s->rows, channel_of(p, s, item));
}

static scan scan_new(ptx *p, const instance *in)
{
    const problem_shape *shape = &in->shape;
    scan s = { .in = in,
               .rows = { .in = in, .taps = (unsigned)shape->conv_kernel },
               .inner = (unsigned)(shape->num_heads * shape->head_dim),
               .size = (unsigned)shape->state_size };
    s.rows.channels = s.inner + 2 * (unsigned)shape->num_groups * s.size;
    s.rows.columns = s.inner + s.rows.channels + (unsigned)shape->num_heads;
    s.vectors = 2 * s.size * F32_BYTES;
    s.factors = (unsigned)vector_at(&s, VECTORS);
    s.row_bytes = s.factors + FACTORS * F32_BYTES;
    bool many = conv_rows_are_many(in);
    s.shared = shared_array(p, "rows", F32,
                            (many ? GROUP_ROWS : (unsigned)shape->m) * s.row_bytes / F32_BYTES);
    if (many)
        s.rows.word = shared_array(p, "word", U32, 1);
    s.tile = named(p, "tile", ctaid_x(p));
    s.head = named(p, "head", div(p, s.tile, (unsigned)shape->head_dim / TILE));
    s.group = named(p, "group", div(p, s.tile, tiles_of_group(in)));
    s.number = rem(p, s.tile, tiles_of_group(in));
    s.channel = named(p, "channel", div(p, tid_x(p), LANES));
    s.piece = rem(p, tid_x(p), LANES);
    return s;
}

static void scan_rows(ptx *p, const scan *s, const channels *c)
{
    phase(p, "convolve and gate");
    prepare(p, s);
    barrier(p);
    phase(p, "recurrence, row by row");
    ptx_loop_work(p, CHANNELS * c->pieces * PIECE, "elements of the state");
    PTX_FOR (p, number, s->first, s->end, 1)
        step(p, s, c, number);
    barrier(p);
    phase(p, "store y");
    store_y(p, s);
}

static void mamba2_build(ptx *p, const instance *in)
{
    phase(p, "find the block's rows");
    scan s = scan_new(p, in);
    conv_rows_find(p, &s.rows);
    val x = mad_wide(p, s.rows.row, s.rows.columns * F32_BYTES, parameter(p, "x"));
    s.rows.x = add(p, x, s.inner * F32_BYTES);
    PTX_IF (p, ge(p, s.rows.position, imm(U32, in->shape.max_seq_len))) {
        PTX_IF (p, lt(p, tid_x(p), TILE))
            st_global(p, F32, y_of(p, &s, imm(U32, 0)), 0, imm(F32, 0));
        ret(p);
    }
    phase(p, "load the state");
    channels c = load_channels(p, &s);
    if (conv_rows_are_many(in))
        PTX_FOR (p, group, imm(U32, 0), s.rows.count, GROUP_ROWS) {
            s.first = group;
            s.end = min(p, add(p, group, GROUP_ROWS), s.rows.count);
            scan_rows(p, &s, &c);
            barrier(p);
        }
    else {
        s.first = imm(U32, 0);
        s.end = s.rows.count;
        scan_rows(p, &s, &c);
    }
    phase(p, "store the state");
    store_channels(p, &s, &c);
    phase(p, "store the last inputs to the ring");
    keep_inputs(p, &s);
}

static const char *check_mamba2(const instance *in, arena *a, const char **blamed)
{
    long long heads = in->shape.num_heads, groups = in->shape.num_groups;
    long long of_x = 2 * heads * in->shape.head_dim + 2 * groups * in->shape.state_size + heads;
    if (heads % groups) {
        *blamed = "num_groups";
        return arena_format(a, "num_heads = %lld is not a multiple of num_groups = %lld; use %lld",
                            heads, groups, (heads / groups + 1) * groups);
    }
    if (of_x > INT32_MAX / DELTA_RING / F32_BYTES) {
        *blamed = "num_heads";
        return arena_format(a, "a row of x would have %lld values, too many for 32-bit offsets",
                            of_x);
    }
    return NULL;
}

#define CONVOLVED "(num_heads*head_dim+2*num_groups*state_size)"

static const key keys[] = {
    KEY_NUMBER("head_dim", "channels per head, e.g. 64", shape.head_dim, TILE,
               PROBLEM_MOST_HEAD_DIM, .multiple_of = TILE, .required = true, .tag = "d"),
    KEY_NUMBER("num_heads", "heads, e.g. 128", shape.num_heads, 1, 65535, .required = true,
               .tag = "h"),
    KEY_NUMBER("num_groups", "groups of heads with a B and a C, e.g. 8", shape.num_groups, 1, 65535,
               .def = 1, .tag = "g"),
    KEY_NUMBER("state_size", "state values per channel, e.g. 128", shape.state_size, LANES *PIECE,
               MOST_STATE, .multiple_of = LANES * PIECE, .required = true, .tag = "n"),
    KEY_NUMBER("conv_kernel", "positions of the convolution", shape.conv_kernel, 2, DELTA_CONV,
               .def = DELTA_CONV, .tag = "c"),
    KEY_WORD("bias", "added to the convolution", options.bias, bias_choices),
    KEY_NUMBER("max_seq_len", "positions per sequence, e.g. 8192", shape.max_seq_len, 1, INT32_MAX,
               .required = true, .tag = "s"),
    KEY_NUMBER("m", "rows", shape.m, 1, PROBLEM_MOST_ROWS, .def = 1, .tag = "m"),
    KEY_END,
};

const family mamba2 = {
    .name = "mamba2",
    .summary = "one step of a Mamba-2 layer: convolution, recurrence and gate",
    .computes = "S[h] = decay S[h] + delta X B', y[m,h] = (S[h] C + d X) silu(z)",
    .op = OP_MAMBA2,
    .same_bits = true,
    .activations = FORMAT_F32,
    .keys = keys,
    .params =
        (const param[]){
            OUT(F32, y, "m*num_heads*head_dim", 4),
            UPDATED(F32, states, "num_heads*head_dim*state_size",
                    "2*num_heads*head_dim*state_size"),
            UPDATED(F32, convs, "16*" CONVOLVED, "conv_kernel*" CONVOLVED),
            COUNTERS(counters, "m*num_groups", .only_with = KEY_FIELD(shape.m),
                     .only_above = GROUP_ROWS),
            IN(F32, x, "m*(2*num_heads*head_dim+2*num_groups*state_size+num_heads)", 4),
            IN(F32, conv, "conv_kernel*" CONVOLVED, 16),
            IN(F32, dt, "num_heads", 4),
            IN_FITTED(F32, a, "num_heads", 4),
            IN(F32, d, "num_heads", 4),
            IN_FITTED(U32, positions, "m", 4),
            IN_WHERE(bias, F32, bias, CONVOLVED, 4),
            PARAM_END,
        },
    .launch = { .block = "128",
                .grid = { "num_heads*head_dim/32", "m" },
                .shared = "4*min(m, 8)*(2*state_size+100)+4*min(1, m/9)",
                .dealt = true,
                .overlap = WAITS_FIRST,
                .registers = 128 },
    .check = check_mamba2,
    .build = mamba2_build,
    .fit = ref_fit_mamba2,
    .reference = ref_mamba2,
    .tolerance = 5e-7,
};
