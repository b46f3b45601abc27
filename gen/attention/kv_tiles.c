#include "gen/attention/kv_tiles.h"

#include "gen/common/halves.h"
#include "gen/common/reduce.h"

enum {
    HALF_BYTES = 2,
    UNIT_BYTES = 16,
    UNIT_VALUES = UNIT_BYTES / HALF_BYTES,
    UNIT_WORDS = UNIT_BYTES / 4,
    PASS_UNITS = 8, /* units that a warp stores at once */
    MOST_UNITS = 32,
    LANE_VALUES = 8,  /* values per lane of a row that is rounded */
    LEAST_GROUP = 4,  /* lanes per row */
    MOST_AT_ONCE = 2, /* rows of K and of V that a lane loads at once */
    OF_COLUMNS = 3,   /* floats per row of K and V: kv_columns */
    ADDRESS_BYTES = 8,
    BIAS = EXPONENT_BIAS,
    LARGEST = LARGEST_EXPONENT,
    LEAST_OF_K = LARGEST - BIAS + 1, /* minimum exponent of a row's maximum: 2^-e is an f32 */
    LEAST_OF_V = BIAS - 86,          /* minimum: sums of 2^-E are f32 */
};

#define IN_EACH_HALF(bits) imm(U32, 0x00010001LL * (bits))

bool kv_tiles_round(const instance *in)
{
    return in->kv_type != KV_F16;
}

unsigned kv_tiles_width(const instance *in)
{
    unsigned all = (unsigned)in->shape.head_dim;
    return all > PROBLEM_SPLIT_HEAD_DIM ? all / 2 : all;
}

static unsigned row_stride(unsigned values)
{
    return values * HALF_BYTES + UNIT_BYTES;
}

int64_t kv_tiles_bytes(const instance *in, unsigned keys)
{
    int64_t of_k = row_stride((unsigned)in->shape.head_dim), of_v = row_stride(kv_tiles_width(in));
    int64_t both = keys * (of_k + of_v);
    return kv_tiles_round(in) ? both + OF_COLUMNS * (int64_t)keys * F32_BYTES : both;
}

typedef enum kv_side { OF_K, OF_V } kv_side; /* the order in shared memory */

/* Assigns units to threads without bank conflicts. Eight neighbouring lanes have eight neighbouring
 * units. In a part with fewer units, they have units of rows that are `units` apart: with 2 units,
 * of rows 0, 2, 4 and 6, then of 1, 3, 5 and 7. */
static kv_part part_new(ptx *p, const kv_tiles *t, unsigned stride, unsigned units,
                        unsigned first_unit)
{
    unsigned threads = t->warps * WARP, all = t->keys * units;
    kv_part part = { .units = units, .rows = threads / units };
    part.turns = all > threads ? all / threads : 1;
    part.exists = all < threads ? lt(p, tid_x(p), all) : imm(PRED, 1);
    val unit = bit_and(p, tid_x(p), units - 1);
    if (units >= PASS_UNITS) {
        part.row = div(p, tid_x(p), units);
    } else {
        val eighth = div(p, tid_x(p), PASS_UNITS);
        val spread = bit_and(p, div(p, tid_x(p), units), PASS_UNITS / units - 1);
        part.row = mad(p, div(p, eighth, units), PASS_UNITS,
                       mad(p, spread, units, bit_and(p, eighth, units - 1)));
    }
    part.within = mad(p, unit, UNIT_BYTES, imm(U32, first_unit * UNIT_BYTES));
    part.at = mad(p, part.row, imm(U32, stride), add(p, t->memory, part.within));
    return part;
}

static kv_layout rows_new(ptx *p, const kv_tiles *t, unsigned values)
{
    kv_layout r = { .stride = row_stride(values) };
    unsigned left = values / UNIT_VALUES, first_unit = 0;
    for (unsigned units = MOST_UNITS; left; units /= 2)
        for (; left >= units; left -= units, first_unit += units)
            r.parts[r.part_count++] = part_new(p, t, r.stride, units, first_unit);
    if (t->rounded) {
        instance row = *t->in;
        row.shape.head_dim = values;
        r.lane = row_lane_new(p, &row, row_split_of(&row, LANE_VALUES, LEAST_GROUP));
    }
    return r;
}

val kv_tiles_put_caches(ptx *p, val k, val v)
{
    val caches = shared_array(p, "caches", U64, 2);
    PTX_IF (p, eq(p, tid_x(p), 0)) {
        st_shared(p, U64, caches, 0, k);
        st_shared(p, U64, caches, ADDRESS_BYTES, v);
    }
    return caches;
}

kv_tiles kv_tiles_new(ptx *p, const instance *in, unsigned keys, unsigned warps, val caches,
                      cache_pages pages, val first, val end)
{
    kv_tiles t = { .in = in,
                   .pages = pages,
                   .warps = warps,
                   .keys = keys,
                   .rounded = kv_tiles_round(in),
                   .caches = caches,
                   .first = first,
                   .end = end };
    unsigned all = (unsigned)in->shape.head_dim, width = kv_tiles_width(in);
    unsigned of_k = row_stride(all), of_v = row_stride(width);
    t.bytes = t.keys * of_k;
    t.memory = shared_dynamic(p, "kv_rows", U32);
    t.columns = add(p, t.memory, t.bytes + t.keys * of_v);
    if (in->options.ring)
        t.ring_row = named(p, "row of the first", rem(p, first, imm(U32, in->options.ring)));
    val lane = lane_id(p), octet = div(p, lane, 8), row = bit_and(p, lane, 7);
    val odd = bit_and(p, octet, 1), upper = div(p, octet, 2);
    t.k_at = mad(p, mad(p, upper, 8, row), imm(U32, of_k), mad(p, odd, UNIT_BYTES, t.memory));
    t.v_at = mad(p, mad(p, odd, 8, row), imm(U32, of_v), mad(p, upper, UNIT_BYTES, t.memory));
    t.rows[OF_K] = rows_new(p, &t, all);
    t.rows[OF_V] = width == all ? t.rows[OF_K] : rows_new(p, &t, width);
    return t;
}

/* Returns the row of the position that is `behind` positions after the block's first one. */
static val row_behind(ptx *p, const kv_tiles *t, val behind)
{
    if (!t->in->options.ring)
        return cache_pages_row(p, &t->pages, add(p, t->first, behind));
    val row = add(p, t->ring_row, behind);
    return min(p, row, sub(p, row, t->in->options.ring));
}

static val cache_of(ptx *p, const kv_tiles *t, kv_side side)
{
    return ld_shared(p, U64, t->caches, side * ADDRESS_BYTES);
}

/* Starts to copy the thread's units of a part of a tile. count (s32) is the number of rows from the
 * tile's first row on; missing rows become zeros. */
static void copy_part(ptx *p, const kv_tiles *t, const kv_part *part, kv_side side, val tile,
                      val count)
{
    unsigned row_bytes = cache_row_bytes(t->in);
    val own = mad_wide(p, part->row, row_bytes, convert(p, U64, part->within));
    val row = mul(p, tile, t->keys);
    if (t->in->options.page) /* a tile after the last position has no page */
        row = cache_pages_row(p, &t->pages, min(p, row, sub(p, t->end, 1)));
    val from = mad_wide(p, row, row_bytes, add(p, cache_of(p, t, side), own));
    val left = sub(p, count, as(p, S32, part->row));
    for (unsigned turn = 0; turn < part->turns; turn++) {
        unsigned further = turn * part->rows;
        val present = gt(p, left, (int)further);
        cp_async_cg_fill(p, part->at, (int64_t)further * t->rows[side].stride + side * t->bytes,
                         from, (int64_t)further * row_bytes,
                         select(p, present, imm(U32, UNIT_BYTES), imm(U32, 0)));
    }
}

/* Does the same if neighbouring positions may be far apart: in a ring, or in pages that are shorter
 * than a tile. */
static void copy_part_of_rows(ptx *p, const kv_tiles *t, const kv_part *part, kv_side side,
                              val tile)
{
    val first = mad(p, tile, imm(U32, t->keys), sub(p, part->row, t->first));
    val count = sub(p, t->end, t->first),
        own = add(p, cache_of(p, t, side), convert(p, U64, part->within));
    for (unsigned turn = 0; turn < part->turns; turn++) {
        unsigned further = turn * part->rows;
        val behind = add(p, first, further), present = lt(p, behind, count);
        val row = row_behind(p, t, select(p, present, behind, imm(U32, 0)));
        cp_async_cg_fill(p, part->at, (int64_t)further * t->rows[side].stride + side * t->bytes,
                         mad_wide(p, row, cache_row_bytes(t->in), own), 0,
                         select(p, present, imm(U32, UNIT_BYTES), imm(U32, 0)));
    }
}

static void copy_tile(ptx *p, const kv_tiles *t, kv_side side, val tile)
{
    val count = as(p, S32, sub(p, t->end, mul(p, tile, t->keys)));
    for (const kv_part *part = t->rows[side].parts;
         part < t->rows[side].parts + t->rows[side].part_count; part++)
        PTX_IF (p, part->exists) {
            if (t->in->options.ring || t->in->options.page % t->keys)
                copy_part_of_rows(p, t, part, side, tile);
            else
                copy_part(p, t, part, side, tile, count);
        }
    cp_async_commit(p);
}

void kv_tiles_begin(ptx *p, const kv_tiles *t, val tile)
{
    if (!t->rounded)
        copy_tile(p, t, OF_K, tile);
}

static raw_row load_row(ptx *p, const kv_tiles *t, kv_side side, val position)
{
    val row = min(p, position, sub(p, t->end, 1));
    if (t->in->options.ring || t->in->options.page)
        row = row_behind(p, t, sub(p, max(p, row, t->first), t->first));
    const row_lane *lane = &t->rows[side].lane;
    val at = add(p, cache_of(p, t, side), row_lane_offset(p, lane));
    val first = mad_wide(p, row, cache_row_bytes(t->in), at);
    return raw_row_load(p, lane, first, add(p, first, lane->last_offset), 0);
}

/* Returns the exponent of the largest finite value, at least `least`. Infinities and NaN must not
 * turn the other values into zeros: adding 1 to the exponent makes them negative, and keeps the
 * order of the others. */
static val largest_exponent(ptx *p, const val *values, unsigned count, unsigned least)
{
    val next = imm(S32, 1 << EXPONENT_SHIFT);
    val largest = imm(S32, (long long)(least + 1) << EXPONENT_SHIFT);
    for (unsigned i = 0; i < count; i++)
        largest = max(p, largest, add(p, bits_as(p, S32, abs(p, values[i])), next));
    return as(p, U32, sub(p, shr(p, largest, EXPONENT_SHIFT), 1));
}

/* Rounds the lane's values of a row, multiplied by a power of two, and stores them to the tile's
 * row at address at. Returns the exponent of the row's largest value. */
static val round_row(ptx *p, const row_lane *lane, const raw_row *loaded, unsigned least, val at)
{
    const row_split *s = &lane->split;
    val values[MAX_LANE_VALUES];
    raw_row_unpack(p, lane, loaded, values);
    val exponent = group_max(p, largest_exponent(p, values, row_split_values(s), least), s->group);
    val power = power_of_two(p, sub(p, imm(U32, LARGEST + BIAS), exponent));
    val to = mad(p, lane->first_piece, s->piece * HALF_BYTES, at);
    for (unsigned i = 0; i < row_split_values(s); i += 4) {
        unsigned piece = i / s->piece;
        bool last = s->ragged && piece + 1 == s->pieces;
        int64_t offset =
            (int64_t)piece * s->group * s->piece * HALF_BYTES + i % s->piece * HALF_BYTES;
        val4 four;
        for (unsigned j = 0; j < 4; j++)
            four.v[j] = convert(p, F16, mul(p, values[i + j], power));
        PTX_IF (p, last ? lane->has_last : imm(PRED, 1))
            st_shared_v4(p, F16, to, offset, four);
    }
    return exponent;
}

static void round_tile(ptx *p, const kv_tiles *t, val tile)
{
    const kv_layout *of = t->rows;
    unsigned group = of[OF_K].lane.split.group, rows = t->warps * (WARP / group),
             at_once = MOST_AT_ONCE;
    while (at_once * rows > t->keys)
        at_once /= 2;
    val own = mad(p, warp_id(p), WARP / group, of[OF_K].lane.group);
    PTX_FOR (p, row, 0, t->keys, at_once * rows) {
        raw_row k[MOST_AT_ONCE], v[MOST_AT_ONCE];
        val number = add(p, own, row);
        val position = mad(p, tile, imm(U32, t->keys), number);
        for (unsigned i = 0; i < at_once; i++) {
            k[i] = load_row(p, t, OF_K, add(p, position, i * rows));
            v[i] = load_row(p, t, OF_V, add(p, position, i * rows));
        }
        for (unsigned i = 0; i < at_once; i++) {
            val here = add(p, number, i * rows);
            val at = mad(p, here, imm(U32, of[OF_K].stride), t->memory);
            val of_k = round_row(p, &of[OF_K].lane, &k[i], LEAST_OF_K, at);
            if (of[OF_V].stride != of[OF_K].stride)
                at = mad(p, here, imm(U32, of[OF_V].stride), t->memory);
            val of_v = round_row(p, &of[OF_V].lane, &v[i], LEAST_OF_V, add(p, at, t->bytes));
            unsigned next = t->keys * F32_BYTES;
            PTX_IF (p, eq(p, of[OF_K].lane.lane, 0)) {
                val to = mad(p, here, F32_BYTES, t->columns);
                val exponent = sub(p, of_v, LARGEST);
                st_shared(p, F32, to, 0, power_of_two(p, sub(p, of_k, LARGEST - BIAS)));
                st_shared(p, F32, to, next, convert(p, F32, as(p, S32, exponent)));
                st_shared(p, F32, to, 2 * next, power_of_two(p, sub(p, imm(U32, BIAS), exponent)));
            }
        }
    }
}

void kv_tiles_next_keys(ptx *p, const kv_tiles *t, val tile)
{
    if (t->rounded) {
        barrier(p);
        round_tile(p, t, tile);
        barrier(p);
        return;
    }
    cp_async_wait(p, 0);
    barrier(p);
    copy_tile(p, t, OF_V, tile);
}

void kv_tiles_next_values(ptx *p, const kv_tiles *t, val tile)
{
    if (t->rounded)
        return;
    cp_async_wait(p, 0);
    barrier(p);
    copy_tile(p, t, OF_K, add(p, tile, 1));
}

static kv_fragments fragments(val4 m)
{
    return (kv_fragments){ { { { m.v[0], m.v[1] } }, { { m.v[2], m.v[3] } } } };
}

kv_fragments kv_tiles_keys(ptx *p, const kv_tiles *t, unsigned down, unsigned across)
{
    return fragments(ldmatrix_x4(p, t->k_at,
                                 (int64_t)across * KV_FRAGMENT * t->rows[OF_K].stride +
                                     (int64_t)down * KV_FRAGMENT * HALF_BYTES));
}

kv_fragments kv_tiles_values(ptx *p, const kv_tiles *t, val down, unsigned across)
{
    val at = mad(p, down, imm(U32, KV_FRAGMENT * t->rows[OF_V].stride), t->v_at);
    return fragments(
        ldmatrix_x4_trans(p, at, (int64_t)across * KV_FRAGMENT * HALF_BYTES + t->bytes));
}

kv_columns kv_tiles_columns(ptx *p, const kv_tiles *t, val column, unsigned further)
{
    val at = mad(p, column, F32_BYTES, t->columns);
    int64_t offset = further * F32_BYTES, next = t->keys * F32_BYTES;
    return (kv_columns){ .factors = ld_shared_v2(p, F32, at, offset),
                         .exponents = ld_shared_v2(p, F32, at, offset + next),
                         .inverses = ld_shared_v2(p, F32, at, offset + 2 * next) };
}

val nonfinite_halves(ptx *p, val pair)
{
    enum { EXPONENT = 0x7c00, NEXT = 0x0400, CARRY = 0x8000 };
    val carried = add(p, bit_and(p, pair, IN_EACH_HALF(EXPONENT)), IN_EACH_HALF(NEXT));
    return bit_and(p, carried, IN_EACH_HALF(CARRY));
}

val kv_tiles_count_nonfinite(ptx *p, const kv_tiles *t)
{
    var nonfinite = var_u32(p, 0);
    const kv_layout *v = &t->rows[OF_V];
    for (unsigned i = 0; i < v->part_count; i++) {
        const kv_part *part = &v->parts[i];
        PTX_IF (p, part->exists)
            for (unsigned turn = 0; turn < part->turns; turn++) {
                val4 unit = ld_shared_v4(p, U32, part->at,
                                         (int64_t)turn * part->rows * v->stride + t->bytes);
                for (unsigned j = 0; j < UNIT_WORDS; j++)
                    assign(p, nonfinite, bit_or(p, nonfinite, nonfinite_halves(p, unit.v[j])));
            }
    }
    return barrier_count(p, ne(p, nonfinite, 0));
}

void kv_tiles_clear_nonfinite(ptx *p, const kv_tiles *t)
{
    barrier(p);
    const kv_layout *v = &t->rows[OF_V];
    for (unsigned i = 0; i < v->part_count; i++) {
        const kv_part *part = &v->parts[i];
        PTX_IF (p, part->exists)
            for (unsigned turn = 0; turn < part->turns; turn++) {
                int64_t offset = (int64_t)turn * part->rows * v->stride + t->bytes;
                val4 unit = ld_shared_v4(p, U32, part->at, offset);
                for (unsigned j = 0; j < UNIT_WORDS; j++) {
                    val which = shr(p, nonfinite_halves(p, unit.v[j]), 15);
                    unit.v[j] = bit_and(p, unit.v[j], bit_not(p, mul(p, which, 0xffff)));
                }
                st_shared_v4(p, U32, part->at, offset, unit);
            }
    }
    barrier(p);
}
