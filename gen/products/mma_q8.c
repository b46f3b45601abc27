#include "gen/products/mma_q8.h"

#include <string.h>

#include "gen/common/q8_1.h"

enum {
    PARTS = 4,
    WARPS = 8,
    LINE_BYTES = 128, /* eight units: the banks of shared memory */
    TILE_BYTES = MMA_ROWS * MMA_ROW_BYTES,
    MINIMA_AT = MMA_QUADS * MMA_RECORD_STRIDE,
    SUM_ROW_BYTES = (MMA_COLUMNS + 2) * F32_BYTES, /* 16 rows lie in different banks */
    SUM_BYTES = MMA_ROWS * SUM_ROW_BYTES,
};

static const stream_format *format_of(const instance *in)
{
    const weight_format *w = weight_format_of(instance_weights(in));
    return w->tensor_stream ? w->tensor_stream : &w->stream;
}

static unsigned parts_of(const instance *in)
{
    return in->shape.m <= MMA_FEW_ROWS ? PARTS : 1;
}

/* Minima of groups with scales are integers: tensor cores multiply them by the sums of x. */
static bool has_small_minima(const stream_format *f)
{
    return f->minima && f->scales == SCALES;
}

/* Bytes of a row's minima: of all groups, or in each quad of its two groups. */
static unsigned minima_bytes(const mma_q8_block *m)
{
    return has_small_minima(&m->format) ? MMA_QUADS * m->groups * F32_BYTES : 2 * F32_BYTES;
}

static unsigned minima_stride(const mma_q8_block *m)
{
    return MMA_ROWS * minima_bytes(m) + 32;
}

static unsigned records_bytes(const mma_q8_block *m)
{
    const stream_format *f = &m->format;
    unsigned planes = has_small_minima(f) ? 1 : f->minima ? MMA_QUADS : 0;
    return MINIMA_AT + planes * minima_stride(m);
}

static mma_q8_block plan(const instance *in, mma_q8_form form)
{
    mma_q8_block m = { .format = *format_of(in),
                       .parts = parts_of(in),
                       .sets = form.sets,
                       .pair = form.pair,
                       .direct = format_of(in)->fragments };
    /* Lane l of four has word l of each segment; the tile has them in order. */
    if (m.format.order == CROSSWISE) {
        m.format.order = IN_ORDER;
        m.format.twos = true;
    }
    m.s = stream_plan_parts(in, &m.format, m.parts);
    m.turns = (m.s.steps + m.parts - 1) / m.parts;
    m.pass_turns = m.s.pass_steps / m.parts;
    m.lanes = m.s.as_stored ? MMA_STORED_LANES : m.s.lanes;
    m.loads = MMA_ROWS * m.lanes / WARP;
    m.groups = m.format.scales == ONE_SCALE || m.format.twos ? 2 : 4;
    m.tiles = (m.s.vectors + MMA_COLUMNS - 1) / MMA_COLUMNS;
    m.ragged = m.s.ragged || m.turns * m.parts != m.s.steps;
    m.row_bytes = (unsigned)format_bytes(instance_weights(in), (uint64_t)in->shape.k);
    m.alike = m.row_bytes % STREAM_LANE_BYTES == 0 && in->shape.n % mma_q8_rows(form) == 0;
    m.whole_steps = m.tiles == 1 && !m.s.ragged && m.row_bytes % STREAM_LANE_BYTES == 0;
    m.steady = m.s.weights->alignment >= STREAM_LANE_BYTES ||
               m.parts * m.s.step_bytes % STREAM_LANE_BYTES == 0;
    m.alternates =
        !m.steady && m.parts * m.s.step_bytes % STREAM_LANE_BYTES == STREAM_LANE_BYTES / 2 &&
        m.s.alignment == STREAM_LANE_BYTES && m.s.weights->alignment < 4 && m.format.order < EIGHTS;
    return m;
}

/* Bytes of a warp's tile. The sums take its place. */
static unsigned tile_bytes(const mma_q8_block *m)
{
    return !m->direct ? TILE_BYTES : m->parts > 1 ? m->tiles * SUM_BYTES : 0;
}

mma_q8_form mma_q8_form_of(const instance *in, bool gated)
{
    enum { ROOM = 48 * 1024, WIDE = 8192 /* rows of W that give each of some 130 SMs four sets */ };
    bool several = in->shape.m > MMA_COLUMNS, direct = format_of(in)->fragments;
    /* Registers are short for a pair of Q5_K and several tiles that a list chooses. */
    bool lacks =
        operation_is_of_experts(in->family->op) && several && instance_weights(in) == FORMAT_Q5_K;
    mma_q8_form form = { .warps = WARPS, .pair = gated && direct && !lacks };
    bool many = in->shape.m > MMA_FEW_ROWS || (several && in->shape.n >= WIDE);
    form.sets = direct && !lacks && (gated || many) ? MMA_MOST_SETS : 1;
    mma_q8_block m = plan(in, form);
    if (WARPS * (tile_bytes(&m) + m.sets * records_bytes(&m)) > ROOM)
        form.warps = PARTS;
    return form;
}

int64_t mma_q8_block_rows(const instance *in)
{
    bool many = in->shape.m > MMA_FEW_ROWS, qkv = in->family->op == OP_QKV;
    for (unsigned i = 0; i < (qkv ? QKV_MATRICES : 1); i++) { /* registers are short otherwise */
        instance one = qkv ? instance_matrix(in, i) : *in;
        const stream_format *f = format_of(&one);
        bool large =
            f->table_bytes || f->minima || f->unit == 1 || in->family->op == OP_GATE_UP_SWIGLU;
        many &= f->fragments || !large;
    }
    many &= in->shape.k >= 4 * MMA_STEP; /* ptxas unrolls few turns */
    return many ? MMA_FEW_ROWS : MMA_FEW_ROWS / 2;
}

int64_t mma_q8_rows(mma_q8_form form)
{
    return form.pair ? MMA_ROWS : MMA_ROWS * form.sets;
}

int64_t mma_q8_teams(const instance *in, mma_q8_form form)
{
    return form.warps / parts_of(in);
}

int64_t mma_q8_bytes(const instance *in, mma_q8_form form)
{
    mma_q8_block m = plan(in, form);
    return form.warps * (tile_bytes(&m) + m.sets * records_bytes(&m)) + m.format.table_bytes +
           m.s.vectors * m.s.vector_bytes;
}

/* Returns the lane's address in the rows of X: vector 8 * tile + column, or the last one. */
static place of_vector(ptx *p, const mma_q8_block *m, unsigned tile, val column, val at)
{
    unsigned first = tile * MMA_COLUMNS, bytes = m->s.vector_bytes;
    val count = m->s.source.vectors;
    if (!count.kind && first + MMA_COLUMNS <= m->s.vectors)
        return (place){ mad(p, column, bytes, at), (int64_t)first * bytes };
    val last = count.kind ? sub(p, count, 1) : imm(U32, m->s.vectors - 1);
    val vector = min(p, add(p, column, first), last);
    return (place){ mad(p, vector, bytes, at), 0 };
}

/* Returns a value that ptxas keeps in a register instead of computing it anew, if some are free. */
static val kept(ptx *p, const mma_q8_block *m, val v)
{
    return m->tiles == 1 ? shuffle_from(p, v, lane_id(p)) : v;
}

/* Sets the lane's addresses in shared memory. */
static void set_places(ptx *p, mma_q8_block *m, val tiles, val records)
{
    val lane = lane_id(p), octet = div(p, lane, 8);
    bool four = m->format.segments == 4;
    val tile = mad(p, warp_id(p), tile_bytes(m), tiles);
    m->records = mad(p, warp_id(p), m->sets * records_bytes(m), records);
    m->read = mad(p, div(p, lane, 4), MMA_RECORD_BYTES, m->records);
    val row = div(p, lane, m->lanes), quad = four ? m->lane : div(p, m->lane, 2);
    m->store = mad(p, m->lane, (four ? 2 : 1) * MMA_UNIT_BYTES, mad(p, row, MMA_ROW_BYTES, tile));
    m->record = mad(p, quad, MMA_RECORD_STRIDE, mad(p, row, MMA_RECORD_BYTES, m->records));
    if (!four)
        m->record = mad(p, rem(p, m->lane, 2), MMA_RECORD_BYTES / 2, m->record);
    m->record = kept(p, m, m->record);
    /* Four values that are alike only at run time: ptxas keeps them in neighbouring registers. */
    for (unsigned i = 0; i < 4; i++)
        m->starts.v[i] = i && m->format.look_up && m->parts == 1
                             ? m->starts.v[0]
                             : as(p, S32, kept(p, m, add(p, shr(p, lane, 5 + i), DP4A_START)));
    unsigned of_step = MMA_STEP / m->s.weights->block_values; /* blocks */
    val block = of_step > 1 ? div(p, m->lane, m->s.lanes / of_step) : imm(U32, 0);
    if (m->whole_steps) { /* offsets */
        block = mul(p, block, m->s.as_stored ? MMA_UNIT_BYTES : m->s.weights->block_bytes);
        of_step = m->ragged ? 0 : m->s.step_bytes;
    }
    m->first_block = kept(p, m, mad(p, m->part, of_step, block));
    m->a = mad(p, div(p, lane, MMA_ROWS), four || m->format.look_up ? MMA_UNIT_BYTES : LINE_BYTES,
               mad(p, rem(p, lane, MMA_ROWS), MMA_ROW_BYTES, tile));
    /* Loads of x: four units of a quad, and scales of its groups. */
    val start_of_part = mad(p, m->part, m->s.x.bytes, m->s.staged);
    val unit = four && !m->format.halves ? mul(p, octet, m->s.x.plane)
                                         : mad(p, bit_and(p, octet, 1), m->s.x.plane,
                                               mul(p, shr(p, octet, 1), MMA_UNIT_BYTES));
    if (m->s.as_stored) {
        mma_q8_stored_begin(p, &m->stored, m->lane, tile, m->records);
        unit = mul(p, octet, MMA_UNIT_BYTES);
    }
    val column = rem(p, lane, MMA_COLUMNS);
    if (m->direct) { /* two words of a group */
        column = div(p, lane, 4);
        unit = mad(p, div(p, m->lane, 2), m->s.x.plane,
                   mul(p, rem(p, m->lane, 2), MMA_UNIT_BYTES / 2));
    }
    val columns = mul(p, rem(p, lane, 4), 2), beside = add(p, start_of_part, m->s.x.quants);
    /* The sum of group lane % 4: behind a lane's two scales, or after the scales of all lanes. */
    val group = rem(p, lane, 4), sums = mad(p, group, F32_BYTES, imm(U32, m->s.x.sums_at));
    if (m->groups == 2)
        sums = mad(p, div(p, group, 2), 2 * F32_BYTES, sums);
    sums = add(p, sums, beside);
    for (unsigned t = 0; t < m->tiles; t++) {
        m->b[t] = of_vector(p, m, t, column, add(p, start_of_part, unit));
        for (unsigned i = 0; i < 2; i++)
            m->beside[t][i] = of_vector(p, m, t, add(p, columns, i), beside);
        if (m->whole_steps && !m->s.source.vectors.kind && m->s.vectors == MMA_COLUMNS)
            m->beside[t][1] = (place){ m->beside[t][0].base, m->s.vector_bytes };
        m->sums_of_x[t] = of_vector(p, m, t, div(p, lane, 4), sums);
    }
}

/* Sets s.lane to the lane's place in a turn. */
static void set_lane(ptx *p, mma_q8_block *m, val turn)
{
    val step = mad(p, turn, m->parts, m->part);
    stream_lane_begin(p, &m->s, mad(p, step, m->lanes, m->lane));
    if (m->direct && m->parts == 1 && m->row_bytes % LINE_BYTES == 0)
        m->s.lane.swizzle = bit_and(p, div(p, lane_id(p), m->lanes), 3);
}

/* Returns the lane's pointers into its row of a load. Lanes past the end have the last block. */
static stream_row row_at(ptx *p, const mma_q8_block *m, unsigned load, val turn)
{
    const format_info *w = m->s.weights;
    bool steps = m->whole_steps;
    unsigned values = steps ? MMA_STEP : w->block_values;
    val unit = mad(p, turn, m->parts * (MMA_STEP / values), steps ? m->part : m->first_block);
    if (m->ragged)
        unit = min(p, unit, (unsigned)m->s.in->shape.k / values - 1);
    if (steps)
        unit = m->ragged ? add(p, unit, m->step) : get(p, m->step);
    val row = get(p, m->row[load]);
    val at = mad_wide(p, unit, values / w->block_values * w->block_bytes, row);
    return stream_row_at(p, &m->s, row, at, m->steady && !m->ragged);
}

/* Returns the number of loads that share pointers. */
static unsigned loads_alike(const mma_q8_block *m)
{
    return !m->alike ? 1 : m->pair ? m->loads : m->sets * m->loads;
}

/* Returns the lane's pointers of all loads. Rows at constant distances share those of the first. */
static void rows_at(ptx *p, const mma_q8_block *m, val turn, stream_row rows[MMA_MOST_LOADS])
{
    for (unsigned i = 0; i < m->sets * m->loads; i++) {
        unsigned before = i % loads_alike(m);
        rows[i] = before ? rows[i - before] : row_at(p, m, i, turn);
        rows[i].offset = (int64_t)before * WARP / m->lanes * m->row_bytes;
    }
}

/* Sets a variable, which may be new. */
static void set(ptx *p, var *to, val v)
{
    if (to->storage.kind)
        assign(p, *to, v);
    else
        *to = var_like(p, v);
}

/* Loads a step of the rows. */
static void load_turn(ptx *p, mma_q8_block *m, val turn)
{
    stream_row rows[MMA_MOST_LOADS];
    rows_at(p, m, turn, rows);
    if (m->s.as_stored) {
        mma_q8_stored_copy(p, &m->stored, rows);
        return;
    }
    for (unsigned i = 0; i < m->sets * m->loads; i++) {
        val words[STREAM_LOADED] = { 0 };
        stream_load_words(p, &m->format, &rows[i], rows[i].offset, words);
        for (unsigned j = 0; j < STREAM_LOADED && words[j].kind; j++)
            set(p, &m->loaded[i][j], words[j]);
    }
}

void mma_q8_load_first(ptx *p, mma_q8_block *m)
{
    load_turn(p, m, imm(U32, 0));
}

void mma_q8_set_rows(ptx *p, mma_q8_block *m, const gemv_operands *g, val group)
{
    unsigned rows = m->pair ? MMA_ROWS : m->sets * MMA_ROWS;
    val first = mul(p, group, rows), lane = div(p, lane_id(p), m->lanes);
    bool by_steps = m->whole_steps && m->alike;
    if (m->whole_steps)
        set(p, &m->step, mul(p, group, by_steps ? rows * m->s.steps : 0));
    unsigned of_pair = m->pair ? m->loads : m->sets * m->loads; /* loads from one matrix */
    bool full = gemv_loops_are_full(g, of_pair * WARP / m->lanes);
    for (unsigned i = 0; i < m->sets * m->loads; i += loads_alike(m)) {
        const gemv_operands *of = &g[i / of_pair];
        if (by_steps && m->matrix[i].id && m->matrix[i].id == of->w.id)
            continue; /* the lane's row of the matrix does not change */
        m->matrix[i] = of->w;
        val row = add(p, lane, i % of_pair * WARP / m->lanes);
        row = by_steps ? row : add(p, first, row);
        row = gemv_row(p, of, m->alike || full ? row : min(p, row, sub(p, of->n, 1)));
        set(p, &m->row[i], m->whole_steps ? add(p, row, convert(p, U64, m->first_block)) : row);
    }
}

void mma_q8_begin(ptx *p, const instance *in, mma_q8_form form, const gemv_operands *g, val shared,
                  mma_q8_block *m)
{
    unsigned warps = form.warps;
    *m = plan(in, form);
    val records = add(p, shared, warps * tile_bytes(m));
    m->s.f = &m->format;
    m->s.source.of = g;
    if (g->chosen)
        m->s.source.vectors = g->chosen->count;
    m->s.table = add(p, records, warps * m->sets * records_bytes(m));
    m->s.staged = add(p, m->s.table, m->format.table_bytes);
    if (m->s.passes == 1)
        stream_stage(p, &m->s, imm(U32, 0));
    stream_fill_table(p, &m->s);
    barrier(p);
    phase(p, "multiply");
    m->lane = lane_in_group(p, m->lanes);
    m->part = m->parts == 1 ? imm(U32, 0) : rem(p, warp_id(p), m->parts);
    m->team = m->parts == warps ? imm(U32, 0) : div(p, warp_id(p), m->parts);
    m->sums_bytes = m->s.as_stored ? records_bytes(m) : tile_bytes(m);
    m->partial = mad(p, m->team, m->parts * m->sums_bytes, m->s.as_stored ? records : shared);
    set_places(p, m, shared, records);
    /* The rotation of pieces alternates, unless it changes otherwise. */
    for (unsigned turn = 2; turn--;) {
        set_lane(p, m, imm(U32, turn));
        memcpy(m->selectors[turn], m->s.lane.shift.selector, sizeof m->selectors[turn]);
    }
    for (unsigned i = 0; i < 4 * m->tiles * m->sets; i++)
        m->sums[i / 4 / m->tiles][i / 4 % m->tiles][i % 4] = var_f32(p, 0.0f);
}

/* Returns the offset of unit j of a quad in a row: see mma_q8.h. With two segments per lane, unit 2h
 * + i is segment i of the quad's lane h. */
static int64_t unit_at(const stream_format *f, unsigned quad, unsigned j)
{
    if (f->segments == 4)
        return (2 * quad + j % 2) * MMA_UNIT_BYTES + j / 2 * LINE_BYTES;
    return (2 * quad + j / 2) * MMA_UNIT_BYTES + j % 2 * LINE_BYTES;
}

/* Adds a part of the format's offset to the bytes of a word, below 128: so both products of a weight's
 * words stay small. */
static val centred(ptx *p, const stream_format *f, val bytes, unsigned half)
{
    unsigned size = (unsigned)-f->offset,
             part = half ? size % (unsigned)f->unit : size / (unsigned)f->unit;
    val top = IN_EACH_BYTE(0x80);
    return as(p, S32, bit_xor(p, sub(p, bit_or(p, bytes, top), IN_EACH_BYTE(part)), top));
}

/* Stores a lane's segments of a row: quants in the last segment's unit. Formats with two words per
 * weight are stored by `half`. */
static void store_quants(ptx *p, const mma_q8_block *m, const stream_weights *w, unsigned load,
                         unsigned half, bool crosswise)
{
    const stream_format *f = &m->format;
    int64_t row = (int64_t)load * WARP / m->lanes * MMA_ROW_BYTES;
    for (unsigned i = 0; i < (f->look_up ? 1 : f->segments); i++) {
        const val *q = w->q[i] + (size_t)half * STREAM_WORDS;
        unsigned up = f->scales == ONE_SCALE && !i ? f->up[1] - f->up[0] : 0;
        val4 words;
        for (unsigned j = 0; j < STREAM_WORDS; j++)
            words.v[j] = f->unit > 1 ? centred(p, f, q[j], half) : up ? shl(p, q[j], up) : q[j];
        if (crosswise) { /* word `lane` of segments 4i + j */
            val at = sub(p, m->store, mul(p, m->lane, 2 * MMA_UNIT_BYTES - F32_BYTES));
            for (unsigned j = 0; j < STREAM_WORDS; j++)
                st_shared(p, U32, at, row + unit_at(f, i, j), as(p, U32, words.v[j]));
        } else {
            st_shared_v4(p, words.v[0].type, m->store, row + unit_at(f, 0, i), words);
        }
    }
}

/* Stores the scales of a lane's groups, and minima. */
static void store_scales(ptx *p, const mma_q8_block *m, const stream_weights *w, unsigned load)
{
    const stream_format *f = &m->format;
    unsigned step = f->scales == ONE_SCALE || f->twos ? 2 : 1, of_lane = f->segments / step;
    val row = div(p, lane_id(p), m->lanes), s[STREAM_SEGMENTS]; /* of the load */
    int64_t first = load % m->loads * WARP / m->lanes, of_set = load / m->loads * records_bytes(m);
    unsigned each = m->groups == 2 ? 2 : 1; /* a scale, and the start's part */
    for (unsigned i = 0; i < of_lane; i++) {
        val scale = w->scale[i * step];
        s[each * i] = f->halves ? scale : scale.kind ? mul(p, w->d, scale) : w->d;
        if (each == 2)
            s[2 * i + 1] = mul(p, s[2 * i], -MMA_START);
    }
    if (of_lane * each == 2)
        st_shared_v2(p, F32, m->record, of_set + first * MMA_RECORD_BYTES,
                     ((val2){ { s[0], s[1] } }));
    else
        st_shared_v4(p, s[0].type, m->record, of_set + first * MMA_RECORD_BYTES,
                     ((val4){ { s[0], s[1], s[2], s[3] } }));
    val minima = mad(p, row, minima_bytes(m), m->records);
    int64_t minima_at = of_set + MINIMA_AT + first * minima_bytes(m);
    if (has_small_minima(f)) {
        val to = mad(p, m->lane, of_lane * F32_BYTES, minima);
        for (unsigned i = 0; i < of_lane; i += 2)
            st_shared_v2(p, F32, to, minima_at + i * F32_BYTES,
                         ((val2){ { w->min[i * step], w->min[(i + 1) * step] } }));
    } else if (f->minima) {
        minima = mad(p, shr(p, m->lane, 1), minima_stride(m), minima);
        minima = mad(p, bit_and(p, m->lane, 1), F32_BYTES, minima);
        st_shared(p, F32, minima, minima_at, w->dmin);
    }
}

/* Scales of a quad's groups: of rows g and g + 8 of W with the start's parts, or of two rows of X
 * with their sum terms; minima of W. */
typedef struct quad_scales {
    val scale[2][4], beside[2][4], minima[2][2];
} quad_scales;

static void load_scales(ptx *p, const mma_q8_block *m, unsigned set, unsigned quad, quad_scales *of)
{
    int64_t start_of_set = set * records_bytes(m);
    bool pairs = m->groups == 2, full = m->sets * m->tiles == MMA_MOST_SETS * MMA_MOST_TILES;
    for (unsigned r = 0; r < 2; r++) {
        int64_t row = (int64_t)r * 8;
        int64_t at = start_of_set + quad * MMA_RECORD_STRIDE + row * MMA_RECORD_BYTES;
        val4 words = ld_shared_v4(p, m->format.halves ? S32 : F32, m->read, at);
        for (unsigned g = 0; g < m->groups; g++) {
            of->scale[r][g] = words.v[pairs ? 2 * g : g];
            if (!m->format.halves)
                of->beside[r][g] =
                    pairs && !full ? words.v[2 * g + 1] : mul(p, of->scale[r][g], -MMA_START);
        }
        if (!m->format.minima || has_small_minima(&m->format))
            continue;
        at = start_of_set + MINIMA_AT + quad * minima_stride(m) + row * minima_bytes(m);
        val own = mad(p, div(p, lane_id(p), 4), minima_bytes(m), m->records);
        memcpy(of->minima[r], ld_shared_v2(p, F32, own, at).v, sizeof of->minima[r]);
    }
}

/* Loads d and the sum terms of a quad's groups of a row of X. */
static void load_x(ptx *p, const mma_q8_block *m, place at, unsigned quad, val4 *two_quads,
                   val d[4], val sums[4])
{
    const stream_format *f = &m->format;
    const stream_tile *x = &m->s.x;
    bool four = f->segments == 4, few = x->words == 2, has_sums = stream_has_sums(f);
    unsigned lanes = four ? 1 : 2;
    int64_t first = at.offset + (int64_t)quad * lanes * x->words * F32_BYTES;
    bool neighbours = f->halves || x->words == 1; /* d of quads 2h and 2h + 1 */
    if (neighbours)
        first = at.offset + quad / 2 * (f->halves ? 2 : 1) * MMA_UNIT_BYTES;
    if (neighbours && m->tiles == 1) {
        if (quad % 2 == 0)
            *two_quads = ld_shared_v4(p, F32, at.base, first);
        memcpy(d, two_quads->v + (size_t)quad % 2 * 2, 2 * sizeof *d);
        return;
    }
    first += neighbours ? quad % 2 * 2 * F32_BYTES : 0;
    if (neighbours || (four && m->groups == 2 && has_small_minima(f))) { /* without sums */
        memcpy(d, ld_shared_v2(p, F32, at.base, first).v, 2 * sizeof *d);
        return;
    }
    for (unsigned i = 0; i < (few ? 1 : lanes); i++) {
        val4 words = ld_shared_v4(p, F32, at.base, first + i * MMA_UNIT_BYTES);
        bool pairs = few ? f->scales == ONE_SCALE : four && m->groups == 2 && !has_sums;
        for (unsigned g = 0; g < (few || four ? m->groups : 2); g++) { /* pairs: d, sum, d, sum */
            d[2 * i + g] = words.v[pairs ? 2 * g : g];
            sums[2 * i + g] = words.v[pairs ? 2 * g + 1 : (2 + g) % 4];
        }
    }
    if (four && m->groups == 4 && has_sums)
        memcpy(sums, ld_shared_v4(p, F32, at.base, first + x->sums_at).v, 4 * sizeof *sums);
}

/* Returns the offset of a turn in the tile of x. */
static val offset_of(ptx *p, const mma_q8_block *m, val turn)
{
    val in_pass = m->first_turn.kind ? sub(p, turn, m->first_turn) : turn;
    return mul(p, in_pass, m->parts * m->s.x.bytes);
}

val mma_q8_tile_exists(ptx *p, const mma_q8_block *m, unsigned tile)
{
    val count = m->s.source.vectors;
    return tile && count.kind ? gt(p, count, tile * MMA_COLUMNS) : imm(PRED, 1);
}

/* Fragments of a quad of a set's rows, both words of a weight, and scales. */
typedef struct set_fragments {
    val4 a[2][2];
    quad_scales scales;
} set_fragments;

/* Returns the products of a group, plus their start. */
static val4 group_product(ptx *p, const mma_q8_block *m, unsigned g, const set_fragments *w,
                          const val4 *b, const val sums[2][4])
{
    val4 c = m->starts;
    const stream_format *f = &m->format;
    bool two = m->groups == 2;
    unsigned half = two ? g : g / 2, in_half = two ? 0 : g % 2;
    for (unsigned i = 0; i < 4 && f->offset && f->unit <= 1; i++)
        c.v[i] = bits_as(p, S32, sums[i % 2][g]);
    for (unsigned i = 0; i < (f->unit == 1 ? 2 : 1); i++)
        c = ptx_mma_bytes(p, w->a[i][half].v + (size_t)2 * in_half, b->v + (two ? 2 * g : g),
                          two ? 32 : 16, c);
    return c;
}

/* Adds the scaled products of a group to the sums. */
static void add_scaled(ptx *p, const mma_q8_block *m, unsigned g, const quad_scales *w,
                       const var to[4], const val4 *c, const val d[2][4], const val sums[2][4],
                       bool coarse)
{
    const stream_format *f = &m->format;
    for (unsigned i = 0; i < 4; i++) {
        unsigned row = i / 2, column = i % 2;
        val product = fma(p, bits_as(p, F32, c->v[i]), w->scale[row][g], w->beside[row][g]);
        if (f->unit > 1) /* scales of more than 22 bits */
            product = mul(p, dp4a_sum_as_f32(p, c->v[i]), w->scale[row][g]);
        val of = d[column][g];
        if (f->unit > 1 && coarse)
            of = mul(p, of, (float)f->unit);
        val acc = fma(p, product, of, to[i]);
        if (f->minima && !has_small_minima(f))
            acc = fma(p, w->minima[row][g], sums[column][g], acc);
        assign(p, to[i], acc);
    }
}

/* Adds the products of halves of 32 values, scaled by integers: their sum is exact. */
static void add_halves(ptx *p, unsigned of_two, const set_fragments *w, const val4 *b,
                       const var to[4], const val d[2][4])
{
    val4 c[2];
    for (unsigned half = 0; half < 2; half++)
        c[half] = ptx_mma_bytes(p, w->a[0][half].v + (size_t)2 * of_two, b->v + 2 * half + of_two,
                                16, (val4){ { V(0), V(0), V(0), V(0) } });
    for (unsigned i = 0; i < 4; i++) {
        const val *scale = w->scales.scale[i / 2] + (size_t)2 * of_two;
        val sum = mad(p, c[1].v[i], scale[1], mul(p, c[0].v[i], scale[0]));
        assign(p, to[i], fma(p, convert(p, F32, sum), d[i % 2][of_two], to[i]));
    }
}

/* Fragments of a quad of a tile of rows of X, with scales and sum terms of two rows. */
typedef struct x_fragments {
    val4 b;
    val d[2][4], sums[2][4];
} x_fragments;

static void load_tile(ptx *p, mma_q8_block *m, unsigned quad, unsigned tile, val offset,
                      x_fragments *x)
{
    unsigned unit_bytes = (m->format.segments == 4 ? 1 : 2) * MMA_UNIT_BYTES;
    val base = add(p, m->b[tile].base, offset);
    int64_t at_quad = m->b[tile].offset + quad * unit_bytes;
    if (m->format.halves)
        at_quad = m->b[tile].offset + quad / 2 * 2 * MMA_UNIT_BYTES + quad % 2 * 2 * m->s.x.plane;
    if (m->direct)
        for (int64_t g = 0; g < 2; g++)
            memcpy(x->b.v + 2 * g, ld_shared_v2(p, U32, base, at_quad + 2 * g * m->s.x.plane).v,
                   2 * sizeof *x->b.v);
    else if (!m->s.as_stored)
        x->b = ldmatrix_x4(p, base, at_quad);
    for (unsigned i = 0; i < 2; i++) {
        place at = { add(p, m->beside[tile][i].base, offset), m->beside[tile][i].offset };
        load_x(p, m, at, quad, &m->two_quads[i], x->d[i], x->sums[i]);
    }
}

/* Adds the products of a quad with a tile of rows of X. */
static void multiply_tile(ptx *p, const mma_q8_block *m, unsigned quad, unsigned tile,
                          const x_fragments *x, const set_fragments *sets, bool coarse)
{
    bool halves = m->format.halves;
    for (unsigned i = 0; i < 2 && halves; i++)
        add_halves(p, i, sets, &x->b, m->of_turn[tile], x->d);
    for (unsigned set = 0; set < m->sets && !halves; set++)
        for (unsigned g = 0; g < m->groups; g++) {
            val4 c = m->s.as_stored ? mma_q8_stored_product(p, &m->stored, 2 * quad + g, m->starts)
                                    : group_product(p, m, g, &sets[set], &x->b, x->sums);
            add_scaled(p, m, g, &sets[set].scales, m->sums[set][tile], &c, x->d, x->sums, coarse);
        }
}

/* Subtracts dmin times the product of minima and sums of x, by tf32 products of eight groups. A sum
 * is its upper part, rounded to tf32, and the rest, which has at most twelve bits. */
static void subtract_minima(ptx *p, const mma_q8_block *m, val offset, const stream_weights *w)
{
    enum { EIGHT_GROUPS = 8 * F32_BYTES, HALF_UNIT = 0x1000 };
    const uint32_t upper_part = 0xffffe000;
    val zero = imm(F32, 0), lane = lane_id(p);
    unsigned eights = MMA_QUADS * m->groups / 8;
    val row = mad(p, rem(p, lane, MMA_ROWS), minima_bytes(m), m->records);
    row = mad(p, div(p, lane, MMA_ROWS), MMA_UNIT_BYTES, row);
    for (unsigned t = 0; t < m->tiles; t++)
        PTX_IF (p, mma_q8_tile_exists(p, m, t)) {
            val base = add(p, m->sums_of_x[t].base, offset);
            val4 products[MMA_MOST_SETS];
            for (unsigned set = 0; set < m->sets; set++)
                products[set] = (val4){ { zero, zero, zero, zero } };
            for (unsigned e = 0; e < eights; e++) {
                val2 high, low;
                for (unsigned i = 0; i < 2; i++) { /* groups t and t + 4 of eight */
                    val sum = ld_shared(p, U32, base,
                                        m->sums_of_x[t].offset +
                                            (2 * e + i) * 2 * MMA_UNIT_BYTES / (m->groups / 2));
                    high.v[i] = bit_and(p, add(p, sum, HALF_UNIT), upper_part);
                    low.v[i] =
                        bits_as(p, U32, sub(p, bits_as(p, F32, sum), bits_as(p, F32, high.v[i])));
                }
                for (unsigned set = 0; set < m->sets; set++) {
                    val4 a =
                        ldmatrix_x4(p, row, set * records_bytes(m) + MINIMA_AT + e * EIGHT_GROUPS);
                    products[set] = mma_m16n8k8_tf32(p, a, low, products[set]);
                    products[set] = mma_m16n8k8_tf32(p, a, high, products[set]);
                }
            }
            for (unsigned i = 0; i < 4 * m->sets; i++) {
                unsigned set = i / 4, row_of_set = i % 4 / 2;
                val scale = neg(p, w[set * m->loads + row_of_set].dmin);
                var sum = m->sums[set][t][i % 4];
                assign(p, sum, fma(p, scale, products[set].v[i % 4], sum));
            }
        }
}

/* Loads the fragments of a quad: a[i][j] are groups or pairs of groups j, of both words i. */
static void load_fragments(ptx *p, const mma_q8_block *m, unsigned quad, const stream_weights *w,
                           val4 a[2][2])
{
    enum { LOADED_GROUPS = 2 /* of four words of q */ };
    for (unsigned i = 0; m->direct && i < 4; i++) {
        unsigned word = quad % LOADED_GROUPS * 2, of = quad / LOADED_GROUPS;
        a[0][i / 2].v[i % 2] = w[i % 2].q[2 * (i / 2) + of][word];
        a[0][i / 2].v[2 + i % 2] = w[i % 2].q[2 * (i / 2) + of][word + 1];
    }
    if (m->format.look_up) { /* rows g and g + 8 of two groups */
        val4 codes = ldmatrix_x4(p, m->a, 2 * quad * MMA_UNIT_BYTES);
        for (unsigned i = 0; i < 4; i++) {
            val parts[2][2];
            m->format.look_up(p, &m->s.lane, codes.v[i], parts);
            for (unsigned j = 0; j < 4; j++)
                a[j % 2][i / 2].v[j / 2 * 2 + i % 2] = as(p, S32, parts[j / 2][j % 2]);
        }
        return;
    }
    for (unsigned i = 0; !m->direct && i < 2; i++) {
        val4 *of = &a[0][i];
        int64_t unit = unit_at(&m->format, quad, 2 * i);
        if (m->format.halves)
            unit = unit_at(&m->format, quad / 2 * 2 + i, 0) + quad % 2 * LINE_BYTES;
        *of = ldmatrix_x4(p, m->a, unit);
        for (unsigned j = 0; j < 4 && m->sign; j++)
            of->v[j] = as(p, S32, of->v[j]);
    }
}

/* Adds the products of a turn's rows of W with all rows of X. coarse: the tile has the first of a
 * weight's two words, which counts `unit` times. */
static void multiply(ptx *p, mma_q8_block *m, val turn, const stream_weights *loaded, bool coarse)
{
    val offset = offset_of(p, m, turn);
    if (m->s.as_stored)
        mma_q8_stored_load_x(p, &m->stored, add(p, m->b[0].base, offset), m->b[0].offset);
    for (unsigned i = 0; i < 4 * m->tiles && m->format.halves; i++)
        m->of_turn[i / 4][i % 4] = var_f32(p, 0.0f);
    for (unsigned quad = 0; quad < MMA_QUADS; quad++) {
        set_fragments w[MMA_MOST_SETS];
        if (quad && m->tiles > 1) /* keeps ptxas from loading all quads at once */
            warp_barrier(p);
        for (unsigned set = 0; set < m->sets; set++) {
            if (!m->s.as_stored)
                load_fragments(p, m, quad, loaded + (size_t)set * m->loads, w[set].a);
            load_scales(p, m, set, quad, &w[set].scales);
        }
        x_fragments x[2];
        for (unsigned t = 0; t < m->tiles && m->parts == 1; t++) { /* a tile is loaded in advance */
            for (unsigned next = t ? t + 1 : 0; next <= t + 1 && next < m->tiles; next++)
                load_tile(p, m, quad, next, offset, &x[next % 2]);
            warp_barrier(p);
            multiply_tile(p, m, quad, t, &x[t % 2], w, coarse);
        }
        for (unsigned t = 0; t < m->tiles && m->parts > 1; t++) {
            if (t && t % 2 == 0)
                warp_barrier(p);
            PTX_IF (p, mma_q8_tile_exists(p, m, t)) {
                load_tile(p, m, quad, t, offset, &x[0]);
                multiply_tile(p, m, quad, t, &x[0], w, coarse);
            }
        }
    }
    for (unsigned i = 0; i < 4 * m->tiles && m->format.halves; i++) {
        var to = m->sums[0][i / 4][i % 4];
        assign(p, to, fma(p, m->of_turn[i / 4][i % 4], loaded[i % 4 / 2].d, to));
    }
}

void mma_q8_add(ptx *p, mma_q8_block *m, val turn, const mma_q8_next *next)
{
    const stream_format *f = format_of(m->s.in);
    stream_weights w[MMA_MOST_LOADS];
    stream_row rows[MMA_MOST_LOADS];
    for (unsigned i = 0; i < STREAM_WORDS && m->alternates; i++)
        m->s.lane.shift.selector[i] =
            select(p, eq(p, bit_and(p, turn, 1), 0), m->selectors[0][i], m->selectors[1][i]);
    if (!m->steady && !m->alternates)
        set_lane(p, m, turn);
    rows_at(p, m, turn, rows);
    if (m->s.as_stored)
        mma_q8_stored_load_w(p, &m->stored);
    for (unsigned i = 0; i < m->sets * m->loads && !m->s.as_stored; i++) {
        val words[STREAM_LOADED];
        for (unsigned j = 0; j < STREAM_LOADED && m->loaded[i][j].storage.kind; j++)
            words[j] = get(p, m->loaded[i][j]);
        w[i] = f->decode(p, &rows[i], words);
        if (!m->direct)
            store_quants(p, m, &w[i], i, 0, f->order == CROSSWISE);
        store_scales(p, m, &w[i], i);
        m->sign = f->unit || w[i].q[0][0].type == S32;
    }
    warp_barrier(p);
    if (has_small_minima(f) && m->parts == 1) /* first: it ends the use of dmin */
        subtract_minima(p, m, offset_of(p, m, turn), w);
    val following = add(p, turn, 1), last = eq(p, following, m->turns);
    if (m->whole_steps && !m->ragged)
        assign(p, m->step, add(p, m->step, m->parts));
    PTX_IF (p, last)
        next->set_rows(p, m, next->context);
    load_turn(p, m, select(p, last, imm(U32, 0), following));
    multiply(p, m, turn, w, true);
    if (has_small_minima(f) && m->parts > 1)
        subtract_minima(p, m, offset_of(p, m, turn), w);
    if (!m->s.as_stored) /* else the next turn begins with one */
        warp_barrier(p);
    if (f->unit <= 1)
        return;
    for (unsigned i = 0; i < m->loads; i++)
        store_quants(p, m, &w[i], i, 1, false);
    warp_barrier(p);
    multiply(p, m, turn, w, false);
    warp_barrier(p);
}

void mma_q8_barrier(ptx *p, const mma_q8_block *m)
{
    if (m->parts == 1)
        warp_barrier(p);
    else if (m->parts * WARP == ptx_block(p))
        barrier(p);
    else
        part_barrier(p, add(p, m->team, 1), m->parts * WARP);
}

void mma_q8_store_sums(ptx *p, const mma_q8_block *m, unsigned set)
{
    if (m->parts == 1)
        return;
    if (m->s.as_stored)
        warp_barrier(p);
    val lane = lane_id(p);
    val own =
        mad(p, div(p, lane, 4), SUM_ROW_BYTES, mad(p, rem(p, lane, 4), 2 * F32_BYTES, m->partial));
    own = mad(p, m->part, m->sums_bytes, own);
    for (unsigned t = 0; t < m->tiles; t++)
        for (unsigned r = 0; r < 2; r++) {
            const var *of = m->sums[set][t] + (size_t)2 * r;
            st_shared_v2(p, F32, own, t * SUM_BYTES + r * 8 * SUM_ROW_BYTES,
                         ((val2){ { get(p, of[0]), get(p, of[1]) } }));
            assign(p, of[0], 0.0f);
            assign(p, of[1], 0.0f);
        }
    mma_q8_barrier(p, m);
}

void mma_q8_end_set(ptx *p, const mma_q8_block *m, unsigned set)
{
    for (unsigned i = 0; i < 4 * m->tiles * m->sets && m->parts == 1 && set + 1 == m->sets; i++)
        assign(p, m->sums[i / 4 / m->tiles][i / 4 % m->tiles][i % 4], 0.0f);
    mma_q8_barrier(p, m); /* before the tiles are stored again */
}

unsigned mma_q8_own(const mma_q8_block *m)
{
    return m->tiles * MMA_COLUMNS * MMA_ROWS / (m->parts * WARP);
}

val mma_q8_result(ptx *p, const mma_q8_block *m, unsigned i)
{
    unsigned threads = m->parts * WARP;
    if (m->parts == 1) { /* a tile's products are rows g and g + 8 of columns 2t and 2t + 1 */
        val lane = lane_id(p), own = mad(p, rem(p, lane, 4), 2 * MMA_ROWS, div(p, lane, 4));
        return add(p, own, i / 4 * MMA_COLUMNS * MMA_ROWS + i % 2 * MMA_ROWS + i % 4 / 2 * 8);
    }
    return add(p, rem(p, tid_x(p), threads), i * threads);
}

void mma_q8_sum(ptx *p, const mma_q8_block *m, unsigned set, val sums[MMA_MOST_OWN])
{
    for (unsigned i = 0; i < mma_q8_own(m); i++) {
        if (m->parts == 1) {
            sums[i] = get(p, m->sums[set][i / 4][i % 4]);
            continue;
        }
        val result = mma_q8_result(p, m, i), column = div(p, result, MMA_ROWS);
        val at = mad(p, rem(p, column, MMA_COLUMNS), F32_BYTES, m->partial);
        at = mad(p, rem(p, result, MMA_ROWS), SUM_ROW_BYTES, at);
        at = mad(p, div(p, column, MMA_COLUMNS), SUM_BYTES, at);
        sums[i] = ld_shared(p, F32, at, 0);
        for (unsigned part = 1; part < m->parts; part++)
            sums[i] = add(p, sums[i], ld_shared(p, F32, at, part * m->sums_bytes));
    }
}
