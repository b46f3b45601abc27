/* A short convolution of each channel, for m rows. LFM2 uses the gated form in place of attention;
 * Mamba uses silu before its recurrence. With L = conv_kernel, for a row at position p:
 *
 *   w[i] = sum over j < L of conv[i][j] v_(p - L + 1 + j)[i]
 *
 *   form = gated   v = b u,  y = c w          x [m, 3n] has rows b, c, u
 *   form = silu    v = u,  y = silu(w + bias) x [m, 2n] has rows u and n values that are not read
 *
 * where values v of positions before 0 are 0. Source: LFM2 and Gu and Dao, "Mamba", 2023, as
 * llama.cpp computes them.
 *
 * convs has a sequence's ring of the last values v, [16, n], aligned to 16 bytes; position p is in slot
 * p % 16. Rows with the same ring belong to one sequence. They must be neighbours with consecutive
 * positions. A row at max_seq_len or beyond (such as 2^32 - 1) changes nothing, and its y is 0.
 *
 * A thread owns four channels of a row. The rows of a sequence are independent except for the ring:
 *
 *   row 0         its block also computes rows 1 to L - 2, which need the ring, too. It reads
 *                 slots p - L + 1 to p - 1, then stores v of the last 16 rows
 *   rows to L - 2 their blocks end immediately
 *   other rows    the values v come from x
 *
 * v is rounded to f32 wherever it is computed, so a row does not depend on other rows. */
#include "gen/recurrent/conv_rows.h"
#include "gen/common/functions.h"
#include "gen/common/next.h"
#include "gen/common/reduce.h"
#include "kernel/family.h"
#include "kernel/problem.h"
#include "ref/reference.h"

enum { THREADS = 128, OWN = 4, MOST_TAPS = 4, ADDRESS_BYTES = 8 };

typedef struct short_rows {
    const instance *in;
    bool gated;
    unsigned channels, taps;
    unsigned x_bytes; /* of a row of x */
    val row, position;
    val column;             /* the thread's first channel */
    val conv;               /* address of the thread's weights */
    val ring, x, y;         /* addresses of the thread's channels: slot 0, and the row */
    val continues;          /* the row continues the previous row */
    val inside;             /* taps - 1 previous rows are of the sequence */
    val w[OWN * MOST_TAPS]; /* weights, by channel */
    val4 bias;
} short_rows;

/* Finds out how many of the previous rows belong to the row's sequence. */
static void find_previous(ptx *p, short_rows *r)
{
    r->continues = r->inside = imm(PRED, 0);
    for (unsigned back = 1; back < r->taps && back < r->in->shape.m; back++) {
        val row = sub(p, max(p, r->row, back), back - 1);
        val more = bit_and(p, ge(p, r->row, back), conv_rows_go_on(p, r->in, row));
        r->inside = back > 1 ? bit_and(p, r->inside, more) : more;
        r->continues = back > 1 ? r->continues : more;
    }
    if (r->taps > r->in->shape.m)
        r->inside = imm(PRED, 0);
}

static val slot_of(ptx *p, const short_rows *r, val position)
{
    return mad_wide(p, bit_and(p, position, DELTA_RING - 1), r->channels * F32_BYTES, r->ring);
}

/* Returns v of a row of x. */
static val4 inputs_of(ptx *p, const short_rows *r, val x)
{
    val4 b = ld_const_v4(p, F32, x, 0);
    if (!r->gated)
        return b;
    val4 u = ld_const_v4(p, F32, x, (int64_t)2 * r->channels * F32_BYTES);
    for (unsigned i = 0; i < OWN; i++)
        b.v[i] = mul(p, b.v[i], u.v[i]);
    return b;
}

/* Stores y of a row; inputs[j] is v of j positions before. */
static void store_y(ptx *p, const short_rows *r, val x, val y, const val4 *inputs)
{
    val4 out;
    if (r->gated)
        out = ld_const_v4(p, F32, x, (int64_t)r->channels * F32_BYTES);
    for (unsigned i = 0; i < OWN; i++) {
        const val *w = &r->w[i * r->taps];
        val sum = r->gated ? mul(p, inputs[0].v[i], w[r->taps - 1])
                           : fma(p, inputs[0].v[i], w[r->taps - 1], r->bias.v[i]);
        for (unsigned back = 1; back < r->taps; back++)
            sum = fma(p, inputs[back].v[i], w[r->taps - 1 - back], sum);
        out.v[i] = r->gated ? mul(p, out.v[i], sum) : by_sigmoid(p, sum, sum);
    }
    st_global_v4(p, F32, y, 0, out);
}

/* Computes the first rows of a sequence and stores the last values of its `count` rows. With more
 * than 16 rows, a row may overwrite the slot of a first row. */
static void compute_first(ptx *p, const short_rows *r, val count)
{
    unsigned m = (unsigned)r->in->shape.m;
    unsigned ahead = r->taps - 1 < m ? r->taps - 1 : m; /* rows that may need the ring */
    val4 inputs[MOST_TAPS];                             /* v of j positions before */
    for (unsigned back = 1; back < r->taps; back++) {
        var values[OWN];
        for (unsigned i = 0; i < OWN; i++)
            values[i] = var_f32(p, 0.0f);
        PTX_IF (p, ge(p, r->position, back)) {
            val4 loaded = ld_global_v4(p, F32, slot_of(p, r, sub(p, r->position, back)), 0);
            for (unsigned i = 0; i < OWN; i++)
                assign(p, values[i], loaded.v[i]);
        }
        for (unsigned i = 0; i < OWN; i++)
            inputs[back].v[i] = get(p, values[i]);
    }
    for (unsigned number = 0; number < ahead; number++) {
        val at = number ? min(p, sub(p, count, 1), number) : imm(U32, 0);
        val x = number ? mad_wide(p, at, r->x_bytes, r->x) : r->x;
        inputs[0] = inputs_of(p, r, x);
        PTX_IF (p, number ? lt(p, number, count) : imm(PRED, 1)) {
            val y = add(p, r->y, (int64_t)number * r->channels * F32_BYTES);
            store_y(p, r, x, y, inputs);
            st_global_v4(p, F32, slot_of(p, r, add(p, r->position, number)), 0, inputs[0]);
        }
        for (unsigned back = r->taps - 1; back > 0; back--)
            inputs[back] = inputs[back - 1];
    }
    val from = sub(p, max(p, count, DELTA_RING + ahead), DELTA_RING);
    if (m > ahead)
        PTX_FOR (p, number, from, count, 1)
            st_global_v4(p, F32, slot_of(p, r, add(p, r->position, number)), 0,
                         inputs_of(p, r, mad_wide(p, number, r->x_bytes, r->x)));
}

static short_rows short_rows_new(ptx *p, const instance *in)
{
    short_rows r = { .in = in,
                     .gated = in->options.conv_form == CONV_GATED,
                     .channels = (unsigned)in->shape.n,
                     .taps = (unsigned)in->shape.conv_kernel };
    r.x_bytes = (r.gated ? 3 : 2) * r.channels * F32_BYTES;
    r.row = named(p, "row", ctaid_y(p));
    r.column = named(p, "column", mul(p, mad(p, ctaid_x(p), THREADS, tid_x(p)), OWN));
    val behind = mul_wide(p, r.column, F32_BYTES);
    val position_at = mad_wide(p, r.row, sizeof(uint32_t), parameter(p, "positions"));
    val sequence_at = mad_wide(p, r.row, sizeof(uint32_t), parameter(p, "sequences"));
    r.position = named(p, "position", load_state(p, is_settled(in), U32, position_at));
    val sequence = load_state(p, is_settled(in), U32, sequence_at);
    r.ring = add(p, conv_rows_own(p, "convs", sequence, DELTA_RING * in->shape.n), behind);
    r.conv = mad_wide(p, r.column, r.taps * F32_BYTES, parameter(p, "conv"));
    r.x = add(p, mad_wide(p, r.row, r.x_bytes, parameter(p, "x")), behind);
    r.y = add(p, mad_wide(p, r.row, r.channels * F32_BYTES, parameter(p, "y")), behind);
    return r;
}

static void short_conv_build(ptx *p, const instance *in)
{
    bool early = is_settled(in) && ptx_overlaps(p), many = in->shape.m > 1;
    if (!early)
        wait_for_launches(p);
    phase(p, "find the rows of the sequence");
    short_rows r = short_rows_new(p, in);
    find_previous(p, &r);
    var count = var_u32(p, 1);
    if (many)
        PTX_IF (p, bit_not(p, r.continues))
            assign(p, count, conv_rows_count(p, in, r.row));
    if (early) {
        PTX_IF (p, lt(p, r.column, r.channels)) {
            prefetch(p, r.conv, 0);
            for (unsigned back = 1; back < r.taps; back++)
                prefetch(p, slot_of(p, &r, sub(p, r.position, back)), 0);
        }
        wait_for_launches(p);
    }
    ret_if(p,
           bit_or(p, ge(p, r.column, r.channels), bit_and(p, r.continues, bit_not(p, r.inside))));
    PTX_IF (p, ge(p, r.position, imm(U32, in->shape.max_seq_len))) {
        val zero = imm(F32, 0);
        st_global_v4(p, F32, r.y, 0, ((val4){ { zero, zero, zero, zero } }));
        ret(p);
    }
    for (unsigned i = 0; i < r.taps; i++) {
        val4 w = ld_const_v4(p, F32, r.conv, i * OWN * F32_BYTES);
        for (unsigned j = 0; j < OWN; j++)
            r.w[i * OWN + j] = w.v[j];
    }
    if (!r.gated)
        r.bias = ld_const_v4(p, F32, mad_wide(p, r.column, F32_BYTES, parameter(p, "bias")), 0);
    phase(p, "convolve");
    PTX_IF (p, r.inside) { /* all inputs are in x */
        val4 inputs[MOST_TAPS];
        for (unsigned back = 0; back < r.taps; back++)
            inputs[back] = inputs_of(p, &r, sub(p, r.x, (int64_t)back * r.x_bytes));
        store_y(p, &r, r.x, r.y, inputs);
    }
    PTX_ELSE (p)
        compute_first(p, &r, get(p, count));
}

static const choice forms[] =
    CHOICES([CONV_GATED] = { "gated", "" }, [CONV_SILU] = { "silu", "_silu" });

const family short_conv = {
    .name = "short_conv",
    .summary = "short convolution of each channel over the last positions",
    .computes = "y[m,n] = c * conv(b * u)[n], with (b, c, u) = x[m,3n]; or silu(conv(u) + bias)",
    F32_FAMILY(OP_SHORT_CONV, short_conv_build, ref_short_conv, 2e-7),
    .keys = KEYS(KEY_NUMBER("n", "channels, e.g. 2048", shape.n, OWN, 1 << 20, .multiple_of = OWN,
                            .required = true, .tag = "n"),
                 KEY_NUMBER("conv_kernel", "positions of the convolution, e.g. 3",
                            shape.conv_kernel, 2, MOST_TAPS, .required = true, .tag = "c"),
                 KEYS_OF_SEQUENCES,
                 KEY_WORD("form", "gated: y = c conv(b u); silu: y = silu(conv(u) + bias)",
                          options.conv_form, forms),
                 KEY_STATE("settled: positions and sequences read early")),
    .params = PARAMS(OUT(F32, y, "m*n", 16), UPDATED(F32, convs, "16*n", "conv_kernel*n"),
                     IN(F32, x, "m*(3-form)*n", 16), IN(F32, conv, "n*conv_kernel", 16),
                     ROW_POSITIONS, IN_WHERE(conv_form, F32, bias, "n", 16), ROW_SEQUENCES),
    .launch = { .block = "128",
                .grid = { "ceil_div(n, 512)", "m" },
                .dealt = true,
                .overlap = WAITS_ITSELF,
                .registers = 64 },
    .fit = ref_fit_rope,
};
