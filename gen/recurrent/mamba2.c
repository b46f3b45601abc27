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
 * A block processes 32 channels of a head: see scan.h. 8 lanes share two channels. Each block
 * computes B and C of its group itself, 8 rows at a time.
 *
 * The new inputs of up to 8 rows go to the ring's slots p to p + 7, and the launch reads only slots
 * p - 3 to p - 1. The inputs of more rows may go to any slot. So those of B and C are then stored
 * by the last block of their group, found by a counter. No other block reads those of X. */
#include "gen/recurrent/scan.h"
#include "gen/common/reduce.h"
#include "gen/common/functions.h"
#include "kernel/family.h"
#include "kernel/problem.h"
#include "ref/reference.h"

enum { MOST_STATE = 256, TILE = SCAN_TILE, LANES = 8, CHANNELS = 2 };
enum { UNIT = LANES * SCAN_PIECE, THREADS = TILE / CHANNELS * LANES };

static unsigned tiles_of_group(const instance *in)
{
    return (unsigned)(in->shape.num_heads * in->shape.head_dim / in->shape.num_groups / TILE);
}

static val head_of(ptx *p, const scan *s)
{
    return div(p, s->tile, (unsigned)s->in->shape.head_dim / TILE);
}

/* Returns the channel of the convolution of an item: N of B, N of C, 32 of X. */
static val channel_of(ptx *p, const scan *s, val item)
{
    unsigned groups = (unsigned)s->in->shape.num_groups;
    val of_b = mad(p, div(p, s->tile, tiles_of_group(s->in)), s->size, add(p, item, s->inner));
    val of_c = add(p, of_b, (groups - 1) * s->size);
    val of_x = mad(p, s->tile, TILE, sub(p, item, 2 * s->size));
    return select(p, lt(p, item, s->size), of_b, select(p, lt(p, item, 2 * s->size), of_c, of_x));
}

/* Computes delta and decay of a row. exp and softplus would turn infinities into numbers; adding 0
 * times the argument makes the result NaN. */
static void make_factors(ptx *p, const scan *s, val number)
{
    val behind = mul_wide(p, head_of(p, s), F32_BYTES), row = conv_rows_x(p, &s->rows, number);
    val x_dt = ld_global(p, F32, add(p, row, behind), s->rows.channels * F32_BYTES);
    val a = ld_const(p, F32, add(p, parameter(p, "a"), behind), 0);
    val t = add(p, x_dt, ld_const(p, F32, add(p, parameter(p, "dt"), behind), 0));
    val delta = fma(p, t, imm(F32, 0), softplus(p, t));
    val decay = fma(p, a, imm(F32, 0), power_of_e(p, mul(p, a, delta)));
    val to = scan_row(p, s, number);
    st_shared(p, F32, to, scan_factors_at(s) + SCAN_DELTA * F32_BYTES, delta);
    st_shared(p, F32, to, scan_factors_at(s) + SCAN_DECAY * F32_BYTES, decay);
}

/* Computes the convolutions, gates and factors of the current rows. */
static void prepare(ptx *p, const scan *s)
{
    PTX_FOR (p, number, s->first, s->end, 1) {
        val row = scan_row(p, s, number);
        for (unsigned i = 0; i < 2 * s->size + TILE; i += THREADS) {
            val item = add(p, tid_x(p), i), inside = imm(PRED, 1);
            if (i + THREADS > 2 * s->size + TILE)
                inside = lt(p, item, 2 * s->size + TILE);
            PTX_IF (p, inside) {
                val channel = channel_of(p, s, item);
                val u = conv_rows_convolve(p, &s->rows, number, channel, imm(PRED, 0));
                st_shared(p, F32, mad(p, item, F32_BYTES, row), 0, u);
            }
        }
        PTX_IF (p, ge(p, tid_x(p), THREADS - TILE)) {
            val lane = lane_id(p), channel = mad(p, s->tile, TILE, lane);
            val x = mad_wide(p, channel, F32_BYTES, conv_rows_x(p, &s->rows, number));
            val z = ld_global(p, F32, x, -(int64_t)s->inner * F32_BYTES);
            val to = mad(p, lane, F32_BYTES, row);
            st_shared(p, F32, to, scan_vector_at(s, SCAN_GATE), by_sigmoid(p, z, z));
        }
        PTX_IF (p, eq(p, tid_x(p), TILE))
            make_factors(p, s, number);
    }
}

static void mamba2_build(ptx *p, const instance *in)
{
    const problem_shape *shape = &in->shape;
    scan s = { .in = in,
               .rows = { .in = in, .taps = (unsigned)shape->conv_kernel },
               .inner = (unsigned)(shape->num_heads * shape->head_dim),
               .size = (unsigned)shape->state_size,
               .lanes = LANES,
               .channels = CHANNELS,
               .prepare = prepare };
    s.rows.state_values = (int64_t)s.inner * s.size;
    s.rows.channels = s.inner + 2 * (unsigned)shape->num_groups * s.size;
    s.rows.columns = s.inner + s.rows.channels + (unsigned)shape->num_heads;
    phase(p, "find the block's rows");
    scan_start(p, &s);
    s.tile =
        named(p, "tile",
              conv_rows_are_many(in) ? mad(p, ctaid_x(p), imm(U32, tiles_of_group(in)), ctaid_z(p))
                                     : ctaid_x(p));
    scan_find_rows(p, &s);
    s.rows.x = add(p, s.rows.x, s.inner * F32_BYTES);
    s.d = ld_const(p, F32, mad_wide(p, head_of(p, &s), F32_BYTES, parameter(p, "d")), 0);
    scan_advance(p, &s);
    phase(p, "store the last inputs to the ring");
    unsigned tiles = tiles_of_group(in); /* one of them stores those of B and C */
    val stores = eq(p, rem(p, s.tile, tiles), 0);
    if (conv_rows_are_many(in)) {
        val number = mad(p, s.rows.row, imm(U32, shape->num_groups), div(p, s.tile, tiles));
        val counter = mad_wide(p, number, sizeof(uint32_t), parameter(p, "counters"));
        stores = block_is_last(p, counter, imm(U32, tiles), s.rows.word);
    }
    PTX_IF (p, lt(p, tid_x(p), TILE))
        conv_rows_keep_last(p, &s.rows, mad(p, s.tile, TILE, lane_id(p)));
    PTX_IF (p, stores)
        PTX_FOR (p, item, tid_x(p), imm(U32, 2 * s.size), THREADS)
            conv_rows_keep_last(p, &s.rows, channel_of(p, &s, item));
}

static const char *check_mamba2(const instance *in, arena *a, const char **blamed)
{
    long long heads = in->shape.num_heads, groups = in->shape.num_groups;
    long long of_x = 2 * heads * in->shape.head_dim + 2 * groups * in->shape.state_size + heads;
    return conv_rows_check(a, "num_groups", heads, groups, of_x, blamed);
}

static int64_t tiles_together(const instance *in)
{
    return conv_rows_are_many(in) ? tiles_of_group(in) : 1;
}

static int64_t tiles_across(const instance *in)
{
    return in->shape.num_heads * in->shape.head_dim / TILE / tiles_together(in);
}

#define CONVOLVED "(num_heads*head_dim+2*num_groups*state_size)"

const family mamba2 = {
    .name = "mamba2",
    .summary = "one step of a Mamba-2 layer: convolution, recurrence and gate",
    .computes = "S[h] = decay S[h] + delta X B', y[m,h] = (S[h] C + d X) silu(z)",
    F32_FAMILY(OP_MAMBA2, mamba2_build, ref_mamba2, 5e-7),
    .keys =
        KEYS(KEY_NUMBER("head_dim", "channels per head, e.g. 64", shape.head_dim, TILE,
                        PROBLEM_MOST_HEAD_DIM, .multiple_of = TILE, .required = true, .tag = "d"),
             KEY_NUMBER("num_heads", "heads, e.g. 128", shape.num_heads, 1, 65535, .required = true,
                        .tag = "h"),
             KEY_NUMBER("num_groups", "groups of heads with a B and a C, e.g. 8", shape.num_groups,
                        1, 65535, .def = 1, .tag = "g"),
             KEY_NUMBER("state_size", "state values per channel, e.g. 128", shape.state_size, UNIT,
                        MOST_STATE, .multiple_of = UNIT, .required = true, .tag = "n"),
             KEY_NUMBER("conv_kernel", "positions of the convolution", shape.conv_kernel, 2,
                        DELTA_CONV, .def = DELTA_CONV, .tag = "c"),
             KEY_WORD("bias", "added to the convolution", options.bias, bias_choices),
             KEYS_OF_SEQUENCES),
    .params = PARAMS(
        OUT(F32, y, "m*num_heads*head_dim", 4),
        UPDATED(F32, states, "num_heads*head_dim*state_size", "2*num_heads*head_dim*state_size"),
        UPDATED(F32, convs, "16*" CONVOLVED, "conv_kernel*" CONVOLVED),
        COUNTERS(counters, "m*num_groups", .only_with = KEY_FIELD(shape.m),
                 .only_above = CONV_GROUP_ROWS),
        IN(F32, x, "m*(2*num_heads*head_dim+2*num_groups*state_size+num_heads)", 4),
        IN(F32, conv, "conv_kernel*" CONVOLVED, 16), IN(F32, dt, "num_heads", 4),
        IN_FITTED(F32, a, "num_heads", 4), IN(F32, d, "num_heads", 4),
        IN_FITTED(U32, positions, "m", 4), IN_WHERE(bias, F32, bias, CONVOLVED, 4), ROW_SEQUENCES),
    .launch = { .block = "128",
                .grid = { "tiles", "m", "together" },
                .sizes =
                    SIZES({ "tiles", tiles_across, "tiles of 32 channels; with m > 8, groups" },
                          { "together", tiles_together, "with m > 8, tiles of a group; else 1" }),
                .shared = "4*min(m, 8)*(2*state_size+100)+4*min(1, m/9)",
                .dealt = true,
                .overlap = WAITS_FIRST,
                .registers = 128 },
    .check = check_mamba2,
    .fit = ref_fit_mamba,
};
