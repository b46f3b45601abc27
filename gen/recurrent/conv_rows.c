#include "gen/recurrent/conv_rows.h"

#include "gen/common/reduce.h"
#include "gen/common/functions.h"
#include "gen/common/next.h"
#include "kernel/problem.h"

const char *conv_rows_check(arena *a, const char *divisor, long long heads, long long groups,
                            long long of_x, const char **blamed)
{
    *blamed = heads % groups ? divisor : "num_heads";
    return heads % groups
               ? arena_format(a, "num_heads = %lld is not a multiple of %s = %lld; use %lld", heads,
                              divisor, groups, (heads / groups + 1) * groups)
           : of_x > INT32_MAX / DELTA_RING / F32_BYTES
               ? arena_format(a, "a row of x would have %lld values, too many for 32-bit offsets",
                              of_x)
               : NULL;
}

bool conv_rows_are_many(const instance *in)
{
    return in->shape.m > CONV_GROUP_ROWS;
}

/* Returns true if position `at` continues the position ahead of it, of the same sequence. */
static val follows(ptx *p, const instance *in, val same, val at, val ahead)
{
    val next = bit_and(p, same, eq(p, sub(p, at, 1), ahead));
    val counts = bit_and(p, ne(p, at, 0), lt(p, at, imm(U32, in->shape.max_seq_len)));
    return bit_and(p, next, counts);
}

/* Loads like load_state, at an offset. */
static val load_either(ptx *p, const instance *in, type t, val at, int64_t offset)
{
    return is_settled(in) ? ld_settled(p, t, at, offset) : ld_const(p, t, at, offset);
}

val conv_rows_own(ptx *p, const char *pool, val sequence, int64_t values)
{
    return mad(p, convert(p, U64, sequence), imm(U64, values * F32_BYTES), parameter(p, pool));
}

val conv_rows_go_on(ptx *p, const instance *in, val row)
{
    val place = mad_wide(p, row, sizeof(uint32_t), parameter(p, "positions"));
    val sequence = mad_wide(p, row, sizeof(uint32_t), parameter(p, "sequences"));
    const int64_t before = -(int64_t)sizeof(uint32_t);
    val at = load_either(p, in, U32, place, 0), ahead = load_either(p, in, U32, place, before);
    val same =
        eq(p, load_either(p, in, U32, sequence, 0), load_either(p, in, U32, sequence, before));
    return follows(p, in, same, at, ahead);
}

val conv_rows_count(ptx *p, const instance *in, val row)
{
    val m = imm(U32, in->shape.m);
    var left = var_u32(p, 0); /* rows from the lane's first row that starts a new run */
    PTX_FOR (p, other, add(p, row, add(p, lane_id(p), 1)), m, WARP)
        PTX_IF (p, bit_not(p, conv_rows_go_on(p, in, other)))
            assign(p, left, max(p, get(p, left), sub(p, m, other)));
    return sub(p, sub(p, m, row), warp_max(p, get(p, left)));
}

void conv_rows_find(ptx *p, conv_rows *r)
{
    unsigned m = (unsigned)r->in->shape.m;
    r->row = named(p, "row", ctaid_y(p));
    val positions = parameter(p, "positions"), sequences = parameter(p, "sequences");
    val own_sequence = ld_const(p, U32, mad_wide(p, r->row, sizeof(uint32_t), sequences), 0);
    r->state = conv_rows_own(p, "states", own_sequence, r->state_values);
    if (r->taps)
        r->inputs = conv_rows_own(p, "convs", own_sequence, DELTA_RING * (int64_t)r->channels);
    r->position = ld_const(p, U32, mad_wide(p, r->row, sizeof(uint32_t), positions), 0);
    if (conv_rows_are_many(r->in)) {
        PTX_IF (p, ne(p, r->row, 0))
            ret_if(p, conv_rows_go_on(p, r->in, r->row));
        val count = conv_rows_count(p, r->in, r->row);
        PTX_IF (p, eq(p, tid_x(p), 0))
            st_shared(p, U32, r->word, 0, count);
        barrier(p);
        r->count = named(p, "rows", ld_shared(p, U32, r->word, 0));
        return;
    }
    val at = ld_const(p, U32, positions, 0), sequence = ld_const(p, U32, sequences, 0);
    val inside = eq(p, r->row, 0), count = imm(U32, 1);
    val goes_on_itself = imm(PRED, 0); /* the block's row continues the previous one */
    for (unsigned i = 1; i < m; i++) {
        val next = ld_const(p, U32, positions, i * sizeof(uint32_t));
        val its_sequence = ld_const(p, U32, sequences, i * sizeof(uint32_t));
        val behind_it = follows(p, r->in, eq(p, sequence, its_sequence), next, at);
        val own = eq(p, r->row, i);
        goes_on_itself = bit_or(p, goes_on_itself, bit_and(p, own, behind_it));
        inside = bit_and(p, inside, behind_it);
        count = select(p, inside, add(p, count, 1), count);
        inside = bit_or(p, inside, own);
        at = next;
        sequence = its_sequence;
    }
    r->count = named(p, "rows", count);
    ret_if(p, goes_on_itself);
}

val conv_rows_x(ptx *p, const conv_rows *r, val number)
{
    return mad_wide(p, number, r->columns * F32_BYTES, r->x);
}

static val ring_slot(ptx *p, const conv_rows *r, val position)
{
    return mad_wide(p, bit_and(p, position, DELTA_RING - 1), r->channels * F32_BYTES, r->inputs);
}

static val4 weights_of(ptx *p, const conv_rows *r, val channel)
{
    val at = mad_wide(p, channel, r->taps * F32_BYTES, parameter(p, "conv"));
    if (r->taps == DELTA_CONV)
        return ld_const_v4(p, F32, at, 0);
    val4 w;
    for (unsigned i = 0; i < r->taps; i++)
        w.v[i] = ld_const(p, F32, at, i * F32_BYTES);
    return w;
}

val conv_rows_convolve(ptx *p, const conv_rows *r, val number, val channel, val keeps)
{
    val row = conv_rows_x(p, r, number), position = add(p, r->position, number);
    val own = ld_global(p, F32, mad_wide(p, channel, F32_BYTES, row), 0);
    val4 w = weights_of(p, r, channel);
    val sum = mul(p, own, w.v[r->taps - 1]);
    if (r->in->options.bias) {
        val bias = ld_const(p, F32, mad_wide(p, channel, F32_BYTES, parameter(p, "bias")), 0);
        sum = fma(p, own, w.v[r->taps - 1], bias);
    }
    for (unsigned back = 1; back < r->taps; back++) {
        var input = var_f32(p, 0.0f);
        val from_x = ge(p, number, back), ring = ring_slot(p, r, sub(p, position, back));
        val from = select(p, from_x, sub(p, row, (long long)back * r->columns * F32_BYTES), ring);
        PTX_IF (p, ge(p, position, back))
            assign(p, input, ld_global(p, F32, mad_wide(p, channel, F32_BYTES, from), 0));
        sum = fma(p, get(p, input), w.v[r->taps - 1 - back], sum);
    }
    if (!conv_rows_are_many(r->in)) {
        val slot = ring_slot(p, r, position);
        PTX_IF (p, keeps)
            st_global(p, F32, mad_wide(p, channel, F32_BYTES, slot), 0, own);
    }
    return by_sigmoid(p, sum, sum);
}

void conv_rows_keep_last(ptx *p, const conv_rows *r, val channel)
{
    val ring = imm(U32, DELTA_RING), first = sub(p, max(p, r->count, ring), ring);
    PTX_FOR (p, number, first, r->count, 1) {
        val from = mad_wide(p, channel, F32_BYTES, conv_rows_x(p, r, number));
        val slot = ring_slot(p, r, add(p, r->position, number));
        st_global(p, F32, mad_wide(p, channel, F32_BYTES, slot), 0, ld_global(p, F32, from, 0));
    }
}
