/* The recurrence and the gate of a Mamba layer for m rows. With I = n channels and N = state_size,
 * for a row:
 *
 *   delta = softplus(dt),  decay = exp(delta a)
 *   state = decay state + (delta u) B^T,  y = (state C + d u) silu(z)
 *
 * where delta is of each channel and decay of each element of the state [I, N]. With norm = rms, B
 * and C are divided by sqrt(mean of squares + epsilon) first.
 *
 * Source: Gu and Dao, "Mamba", 2023, as llama.cpp computes it. Other launches compute the rest:
 * short_conv the silu u [m, I] of the convolution; products bc = ssm_x u and dt = ssm_dt ... + bias.
 *
 * A row of x has the inputs of the convolution, which are not read, and z [I]. A row of bc has
 * dt_rank values that are not read, then B and C.
 *
 * Rows with the same state address belong to one sequence. They must be neighbours with consecutive
 * positions. At position 0 the state counts as 0. A row at max_seq_len or beyond (such as 2^32 - 1)
 * leaves the state unchanged, and its y is 0.
 *
 * A block processes 32 channels: see scan.h. N / 4 lanes share a channel. */
#include "gen/recurrent/scan.h"
#include "gen/common/reduce.h"
#include "gen/common/functions.h"
#include "kernel/family.h"
#include "kernel/problem.h"
#include "ref/reference.h"

enum { TILE = SCAN_TILE, LEAST_STATE = 8, MOST_STATE = 32 };

/* Copies B and C of a row to shared memory; each lane has values 32 apart. */
static void copy_b_and_c(ptx *p, const scan *s, val number)
{
    unsigned both = 2 * s->size, columns = both + (unsigned)s->in->shape.dt_rank;
    val row = mul_wide(p, add(p, s->rows.row, number), columns * F32_BYTES);
    for (unsigned i = 0; i < both; i += WARP) {
        unsigned lanes = both < WARP ? both : WARP;
        val item = add(p, rem(p, lane_id(p), lanes), i);
        val at = mad_wide(p, item, F32_BYTES, add(p, parameter(p, "bc"), row));
        val value = ld_global(p, F32, at, s->in->shape.dt_rank * F32_BYTES);
        if (s->in->options.norm == NORM_RMS) {
            val mean = mul(p, group_sum(p, mul(p, value, value), s->size), 1 / (float)s->size);
            value = mul(p, value, norm_factor_or_nan(p, s->in, mean));
        }
        PTX_IF (p, lt(p, lane_id(p), lanes))
            st_shared(p, F32, mad(p, item, F32_BYTES, scan_row(p, s, number)), 0, value);
    }
}

/* Prepares the current rows, a row per warp; each lane has a channel. softplus would turn an
 * infinite dt into 0; adding 0 times it makes the result NaN. */
static void prepare(ptx *p, const scan *s)
{
    PTX_FOR (p, number, add(p, s->first, warp_id(p)), s->end, scan_threads(s) / WARP) {
        val place =
            mad(p, add(p, s->rows.row, number), s->inner, mad(p, s->tile, TILE, lane_id(p)));
        val behind = mul_wide(p, place, F32_BYTES);
        val dt = ld_global(p, F32, add(p, parameter(p, "dt"), behind), 0);
        val u = ld_global(p, F32, add(p, parameter(p, "u"), behind), 0);
        val channel = mad(p, s->tile, TILE, lane_id(p));
        val x = mad_wide(p, channel, F32_BYTES, conv_rows_x(p, &s->rows, number));
        val z = ld_global(p, F32, x, s->inner * F32_BYTES);
        copy_b_and_c(p, s, number);
        val to = mad(p, lane_id(p), F32_BYTES, scan_row(p, s, number));
        st_shared(p, F32, to, scan_vector_at(s, SCAN_X), u);
        st_shared(p, F32, to, scan_vector_at(s, SCAN_GATE), by_sigmoid(p, z, z));
        st_shared(p, F32, to, scan_factors_at(s), fma(p, dt, imm(F32, 0), softplus(p, dt)));
    }
}

static void mamba_scan_build(ptx *p, const instance *in)
{
    scan s = { .in = in,
               .rows = { .in = in,
                         .columns = 2 * (unsigned)in->shape.n,
                         .state_values = in->shape.n * in->shape.state_size },
               .inner = (unsigned)in->shape.n,
               .size = (unsigned)in->shape.state_size,
               .by_channel = true,
               .lanes = (unsigned)in->shape.state_size / SCAN_PIECE,
               .channels = 1,
               .prepare = prepare };
    phase(p, "find the block's rows");
    scan_start(p, &s);
    s.tile = named(p, "tile", ctaid_x(p));
    scan_find_rows(p, &s);
    val channel = mad(p, s.tile, TILE, s.channel);
    s.d = ld_const(p, F32, mad_wide(p, channel, F32_BYTES, parameter(p, "d")), 0);
    scan_advance(p, &s);
}

static const char *check_mamba_scan(const instance *in, arena *a, const char **blamed)
{
    long long size = in->shape.state_size;
    if (!(size & (size - 1)))
        return NULL;
    return blame_key(a, blamed, "state_size",
                     "state_size = %lld is not a power of two; use 16 or 32", size);
}

const family mamba_scan = {
    .name = "mamba_scan",
    .summary = "recurrence and gate of a Mamba layer",
    .computes = "S = exp(delta a) S + delta u B', y[m,n] = (S C + d u) silu(z)",
    F32_FAMILY(OP_MAMBA_SCAN, mamba_scan_build, ref_mamba_scan, 5e-7),
    .keys =
        KEYS(KEY_NUMBER("n", "channels, e.g. 8192", shape.n, TILE, 1 << 20, .multiple_of = TILE,
                        .required = true, .tag = "n"),
             KEY_NUMBER("state_size", "state values per channel, a power of two", shape.state_size,
                        LEAST_STATE, MOST_STATE, .multiple_of = LEAST_STATE, .def = 16, .tag = "z"),
             KEY_NUMBER("dt_rank", "values before B in a row of bc, e.g. 256", shape.dt_rank, 0,
                        65535, .zero_is_none = true, .tag = "r"),
             KEY_WORD("norm", "of B and of C", options.norm, norm_choices), KEYS_OF_SEQUENCES,
             KEY_REAL("epsilon", "added to the mean square of the norm", options.epsilon, "eps",
                      epsilon_range, .only_with = KEY_FIELD(options.norm))),
    .params = PARAMS(OUT(F32, y, "m*n", 4), UPDATED(F32, states, "n*state_size", "2*n*state_size"),
                     IN(F32, x, "m*2*n", 4), IN(F32, u, "m*n", 4), IN(F32, dt, "m*n", 4),
                     IN_FITTED(F32, a, "n*state_size", 16), IN(F32, d, "n", 4),
                     IN_FITTED(U32, positions, "m", 4), IN(F32, bc, "m*(dt_rank+2*state_size)", 4),
                     ROW_SEQUENCES),
    .launch = { .block = "8*state_size",
                .grid = { "n/32", "m" },
                .shared = "4*min(m, 8)*(2*state_size+128)+4*min(1, m/9)",
                .dealt = true,
                .overlap = WAITS_FIRST,
                .registers = 64 },
    .check = check_mamba_scan,
    .fit = ref_fit_mamba,
};
