/* What streaming products of integers and of floats have in common: see stream.h. */
#include "gen/products/stream.h"

#include "gen/common/norm.h"
#include "gen/common/reduce.h"
#include "gen/products/experts.h"

enum { WARP = 32 };

static const stream_format *const stream_formats[FORMAT_COUNT] = {
#define FORMAT(id, ...) [FORMAT_##id] = &stream_##id,
#include "kernel/format.def"
};

bool stream_is_of_floats(const instance *in)
{
    return stream_formats[instance_weights(in)]->scales == NO_SCALE;
}

/* Whether X comes in 8 bits, as q8_rows makes it. */
static bool is_of_8_bits(const instance *in)
{
    return in->family->activations == FORMAT_Q8_F32;
}

/* The fewest lanes that have a row in a step. A step is no less than what a warp stages at once, a
 * segment a lane. */
static unsigned lanes_of_row(const instance *in)
{
    const stream_format *f = stream_formats[instance_weights(in)];
    if (f->scales == NO_SCALE)
        return WARP;
    unsigned lanes = WARP / f->segments;
    while (lanes < WARP && lanes * STREAM_SEGMENT * f->segments < in->shape.k)
        lanes *= 2;
    return lanes;
}

unsigned stream_lanes(const instance *in)
{
    if (in->family->op != OP_EXPERT_DOWN)
        return WARP;
    unsigned lanes = lanes_of_row(in), beside = 0;
    if (expert_down_has_shared(in)) {
        instance shared = expert_down_shared(in);
        beside = lanes_of_row(&shared);
    }
    return lanes > beside ? lanes : beside;
}

int64_t stream_row_groups(const instance *in)
{
    return WARP / stream_lanes(in);
}

int64_t stream_step_values(const instance *in)
{
    format weights = instance_weights(in);
    const stream_format *f = stream_formats[weights];
    return f->scales == NO_SCALE ? WARP * STREAM_LANE_BYTES / formats[weights].block_bytes
                                 : stream_lanes(in) * STREAM_SEGMENT * f->segments;
}

int64_t stream_step_bytes(const instance *in)
{
    const stream_format *f = stream_formats[instance_weights(in)];
    return f->scales == NO_SCALE ? stream_step_values(in) * F32_BYTES
                                 : stream_integers_step_bytes(f, stream_lanes(in));
}

int64_t stream_table_bytes(format weights)
{
    return stream_formats[weights]->table_bytes;
}

val stream_warp(ptx *p, val block)
{
    return mad(p, block, imm(U32, ptx_block(p) / WARP), warp_id(p));
}

val stream_warps(ptx *p)
{
    return mul(p, nctaid_x(p), ptx_block(p) / WARP);
}

unsigned stream_steps(const instance *in)
{
    int64_t step = stream_step_values(in);
    return (unsigned)((in->shape.k + step - 1) / step);
}

int64_t stream_pass_steps(const instance *in)
{
    const stream_format *f = stream_formats[instance_weights(in)];
    unsigned steps = stream_steps(in), passes = (unsigned)in->passes;
    if (passes <= 1)
        return steps;
    unsigned turn =
        f->scales == NO_SCALE ? stream_floats_turn_steps(in) : stream_integers_turn_steps(in, f);
    unsigned of_pass = ((steps + passes - 1) / passes + turn - 1) / turn * turn;
    return of_pass < steps ? of_pass : steps;
}

unsigned stream_passes(const instance *in)
{
    unsigned of_pass = (unsigned)stream_pass_steps(in);
    return (stream_steps(in) + of_pass - 1) / of_pass;
}

int64_t stream_chunks(const instance *in)
{
    bool floats = stream_is_of_floats(in);
    int64_t values = stream_passes(in) * stream_pass_steps(in) * stream_step_values(in);
    return values / (WARP * (floats ? STREAM_PIECE : STREAM_SEGMENT));
}

int64_t stream_staged_bytes(const instance *in)
{
    return stream_table_bytes(instance_weights(in)) +
           in->shape.m * stream_pass_steps(in) * stream_step_bytes(in);
}

stream_memory stream_memory_new(ptx *p, const instance *in, unsigned chunks)
{
    bool floats = stream_formats[instance_weights(in)]->scales == NO_SCALE;
    stream_memory memory = { .staged = shared_dynamic(p, "activations", floats ? F32 : U32) };
    /* Factors first: their address is then the array's and takes no register through all rows. */
    if (in->options.norm)
        memory.factors = shared_array(p, "squares", F32, (chunks + 1) * (unsigned)in->shape.m);
    if (is_of_8_bits(in))
        memory.factors = shared_array(p, "x_factors", F32, (unsigned)in->shape.m);
    return memory;
}

static bool of_one_matrix(const instance *in)
{
    return family_key(in->family, "rows_per_warp");
}

bool stream_rows_share_pointers(const instance *in)
{
    uint64_t row_bytes = format_bytes(instance_weights(in), (uint64_t)in->shape.k);
    return of_one_matrix(in) && in->rows_per_warp > 1 && in->shape.n % in->rows_per_warp == 0 &&
           row_bytes % STREAM_LANE_BYTES == 0;
}

/* Whose code has more around a turn. */
static bool is_of_experts(const instance *in)
{
    return in->shape.experts > 0;
}

unsigned stream_registers(const instance *in)
{
    enum { OF_ONE_VECTOR = 80, CROWDED = 112, OF_VECTORS = 128 };
    const stream_format *f = stream_formats[instance_weights(in)];
    unsigned rows = of_one_matrix(in) ? (unsigned)in->rows_per_warp : STREAM_ROWS;
    if (in->shape.m > 1) {
        unsigned most = in->family->launch.registers;
        /* Passes need more where that leaves an SM as many blocks, or where the format spills. */
        bool two_blocks = 2 * in->num_warps <= target_warps_with(OF_VECTORS);
        bool alone = in->passes > 1 && (!two_blocks || f->crowded_passes) &&
                     in->num_warps <= target_warps_with(most);
        return f->crowded_vectors || is_of_experts(in) || alone ? most : OF_VECTORS;
    }
    int64_t step = stream_step_values(in), k = in->shape.k;
    bool own_pointers = f->crowded == rows && !stream_rows_share_pointers(in);
    bool ends = f->crowded_end && k > step && k < 2 * step;
    if (own_pointers || ends)
        return CROWDED;
    return rows == STREAM_ROWS && f->registers ? f->registers : OF_ONE_VECTOR;
}

/* The factor that the norm leaves for each vector, of which a warp takes one at a time: a lane adds
 * up every 32nd chunk. */
static void norm_factors(ptx *p, const instance *in, const stream_source *source)
{
    unsigned vectors = (unsigned)in->shape.m;
    phase(p, "sum the squares of x");
    barrier(p);
    PTX_FOR (p, vector, warp_id(p), vectors, ptx_block(p) / WARP) {
        val of_vector = mad(p, vector, imm(U32, source->chunks * F32_BYTES), source->partial);
        val mean = norm_mean_of_chunks(p, in, of_vector, source->chunks);
        PTX_IF (p, eq(p, lane_id(p), 0))
            st_shared(p, F32, mad(p, vector, imm(U32, F32_BYTES), source->factors), 0,
                      norm_factor(p, in, mean));
    }
}

/* A chunk of a vector as it is in memory: what a lane has of x, and of gamma. */
typedef struct chunk {
    stream_part part;
    val exists; /* whether X has the lane's values */
    val of_x;   /* number of the chunk in all of its vector */
    val gamma[STREAM_SEGMENT];
} chunk;

static val vector_at(ptx *p, const stream *s, val vector)
{
    if (s->source.place)
        return s->source.place(p, s->source.context, vector);
    return gemv_vector(p, s->source.of, vector);
}

/* A segment, half of a block. */
static void load_segment(ptx *p, val vector, val number, stream_part *part)
{
    val block = mad_wide(p, shr(p, number, 1), Q8_F32_BYTES, vector);
    val half = add(p, block, mul_wide(p, bit_and(p, number, 1), STREAM_SEGMENT));
    part->d = ld_const(p, F32, block, Q8_F32_D);
    for (unsigned i = 0; i < STREAM_WORDS; i++)
        part->q[i] =
            as(p, S32, ld_const(p, U32, half, Q8_F32_QUANTS + (int64_t)(i * sizeof(uint32_t))));
}

/* Lanes past the end of X load its end. */
static chunk load_chunk(ptx *p, const stream *s, val number, unsigned chunks, val pass,
                        unsigned values)
{
    const stream_source *source = &s->source;
    unsigned pieces = (unsigned)s->in->shape.k / values;
    chunk c = { .part = { .vector = imm(U32, 0), .chunk = number }, .exists = imm(PRED, 1) };
    if (s->vectors > 1 || source->vectors.kind) {
        c.part.vector = div(p, number, chunks);
        c.part.chunk = sub(p, number, mul(p, c.part.vector, chunks));
    }
    c.of_x = mad(p, pass, imm(U32, chunks), c.part.chunk);
    val piece = mad(p, c.of_x, imm(U32, WARP), lane_id(p));
    if (stream_passes(s->in) * chunks * WARP != pieces) {
        c.exists = lt(p, piece, pieces);
        piece = min(p, piece, pieces - 1);
    }
    val vector = vector_at(p, s, c.part.vector);
    if (is_of_8_bits(s->in))
        load_segment(p, vector, piece, &c.part);
    else
        load_floats(p, mad_wide(p, piece, values * F32_BYTES, vector), 0, values, c.part.x);
    if (source->gamma.kind)
        load_floats(p, mad_wide(p, piece, values * F32_BYTES, source->gamma), 0, values, c.gamma);
    return c;
}

/* The squares of a vector are added up by chunks, so that the order of additions does not depend on
 * the number of warps. */
static void norm_chunk(ptx *p, const stream *s, chunk *c, unsigned values)
{
    const stream_source *source = &s->source;
    val sum = norm_chunk_squares(p, c->part.x, values);
    for (unsigned i = 0; i < values; i++)
        c->part.x[i] = mul(p, c->part.x[i], c->gamma[i]);
    val of_vector = mad(p, c->part.vector, imm(U32, source->chunks * F32_BYTES), source->partial);
    PTX_IF (p, eq(p, lane_id(p), 0))
        st_shared(p, F32, mad(p, c->of_x, imm(U32, F32_BYTES), of_vector), 0, sum);
}

static void stage_chunk(ptx *p, const stream *s, chunk *c, unsigned values)
{
    if (c->part.d.kind)
        c->part.d = select(p, c->exists, c->part.d, imm(F32, 0));
    for (unsigned i = 0; i < values && !c->part.d.kind && c->exists.kind == VAL_REG; i++) {
        c->part.x[i] = select(p, c->exists, c->part.x[i], imm(F32, 0));
        if (s->source.gamma.kind)
            c->gamma[i] = select(p, c->exists, c->gamma[i], imm(F32, 0));
    }
    if (s->source.gamma.kind)
        norm_chunk(p, s, c, values);
    if (s->f->scales == NO_SCALE)
        stream_floats_stage(p, s, &c->part);
    else
        stream_integers_stage(p, s, &c->part);
}

/* Stages a pass of all vectors, by all threads of the block. A warp loads the chunks of some parts
 * before it stages any; in place of those that there are not it takes the first one again. Between
 * passes registers hold the sums, too, so that fewer chunks are loaded at once. */
static void stage(ptx *p, const stream *s, val pass)
{
    enum { AT_ONCE = 32, OF_8_BITS = 64, OF_MANY = 128 }; /* values of a lane */
    unsigned values = s->f->scales == NO_SCALE ? STREAM_PIECE : STREAM_SEGMENT;
    unsigned chunks = s->pass_steps * (unsigned)stream_step_values(s->in) / (WARP * values);
    unsigned warps = ptx_block(p) / WARP, turns = (chunks * s->vectors + warps - 1) / warps;
    bool many = s->vectors > 1 && stream_passes(s->in) == 1;
    unsigned at_once = !is_of_8_bits(s->in) ? AT_ONCE : many ? OF_MANY : OF_8_BITS;
    unsigned most = at_once / values, count = turns < most ? turns : most;
    bool fixed = !s->source.vectors.kind;
    val parts = mul(p, fixed ? imm(U32, s->vectors) : s->source.vectors, chunks);
    PTX_FOR (p, first, warp_id(p), parts, count * warps) {
        chunk loaded[AT_ONCE / STREAM_PIECE];
        for (unsigned i = 0; i < count; i++) {
            val part = i ? add(p, first, i * warps) : first;
            if (i && !(fixed && chunks * s->vectors % (count * warps) == 0))
                part = select(p, lt(p, part, parts), part, first);
            loaded[i] = load_chunk(p, s, part, chunks, pass, values);
        }
        for (unsigned i = 0; i < count; i++)
            stage_chunk(p, s, &loaded[i], values);
    }
}

void stream_rows_of_turn(ptx *p, bool alike, const gemv_operands *g, val row, unsigned rows,
                         place addresses[STREAM_ROWS])
{
    addresses[0] = (place){ gemv_row_of_turn(p, g, row, 0, rows), 0 };
    for (unsigned r = 1; r < rows && r < STREAM_ROWS; r++)
        addresses[r] = alike ? (place){ addresses[0].base, (int64_t)(r * g->row_bytes.bits) }
                             : (place){ gemv_row_of_turn(p, g, row, r, rows), 0 };
}

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* A lane has every 32nd line. */
static void prefetch_bytes(ptx *p, val from, int64_t bytes)
{
    int64_t lines = (bytes + TARGET_LINE - 1) / TARGET_LINE;
    val lane = lane_id(p), line = mad_wide(p, lane, TARGET_LINE, from);
    for (int64_t first = 0; first < lines; first += WARP) {
        int64_t last = lines - 1 - first;
        if (last < WARP - 1)
            line = mad_wide(p, min(p, lane, (unsigned)last), TARGET_LINE, from);
        prefetch(p, line, first * TARGET_LINE);
    }
}

void stream_prefetch_turn(ptx *p, const gemv_operands *g, val row, unsigned rows, unsigned in_all)
{
    int64_t row_bytes = (int64_t)g->row_bytes.bits;
    int64_t most = target_bytes_ahead(ptx_target(p)) / in_all, of_row = least(most, row_bytes);
    if (gemv_turns_are_whole(g, rows) && of_row == row_bytes) {
        prefetch_bytes(p, gemv_row(p, g, row), rows * row_bytes);
        return;
    }
    for (unsigned r = 0; r < rows; r++)
        prefetch_bytes(p, gemv_row_of_turn(p, g, row, r, rows), of_row);
}

static stream stream_new(ptx *p, const instance *in, const gemv_operands *g, unsigned rows,
                         const stream_memory *memory)
{
    stream s = { .in = in,
                 .f = stream_formats[instance_weights(in)],
                 .rows = rows,
                 .vectors = (unsigned)in->shape.m,
                 .lanes = stream_lanes(in),
                 .pass_steps = (unsigned)stream_pass_steps(in),
                 .source = { .of = g } };
    bool apart = memory->table.kind;
    s.table = apart ? memory->table : memory->staged;
    s.staged = s.f->table_bytes && !apart ? add(p, s.table, s.f->table_bytes) : memory->staged;
    return s;
}

static void fill_table(ptx *p, const stream *s)
{
    if (!s->f->table_bytes)
        return;
    phase(p, "unpack the tables");
    s->f->table(p, s->table);
}

void stream_begin_lane(ptx *p, stream *s)
{
    if (s->f->scales == NO_SCALE)
        s->tile = mad(p, lane_id(p), imm(U32, STREAM_LANE_BYTES), s->staged);
    else
        stream_integers_begin(p, s);
}

/* What came with X: a vector's is loaded by the thread of its number ahead of the staging, which it
 * is on its way through, and stored behind it. */
static val load_factor(ptx *p, const stream *s)
{
    val row = gemv_vector_read(p, s->source.of, min(p, tid_x(p), s->vectors - 1));
    return ld_const(p, F32, mad_wide(p, row, F32_BYTES, parameter(p, "factors")), 0);
}

static void store_factor(ptx *p, const stream *s, val factor, val factors)
{
    PTX_IF (p, lt(p, tid_x(p), s->vectors))
        st_shared(p, F32, mad(p, tid_x(p), imm(U32, F32_BYTES), factors), 0, factor);
}

stream stream_begin(ptx *p, const instance *in, const gemv_operands *g, unsigned rows,
                    const stream_memory *memory)
{
    stream s = stream_new(p, in, g, rows, memory);
    bool at_once = stream_passes(in) == 1;
    val factor = is_of_8_bits(in) ? load_factor(p, &s) : (val){ 0 };
    if (in->options.norm) {
        s.source.gamma = parameter(p, "gamma");
        s.source.factors = memory->factors;
        s.source.partial = add(p, memory->factors, s.vectors * F32_BYTES);
        s.source.chunks = (unsigned)stream_chunks(in);
    }
    if (at_once)
        stage(p, &s, imm(U32, 0));
    if (factor.kind)
        store_factor(p, &s, factor, memory->factors);
    fill_table(p, &s);
    if (at_once && in->options.norm)
        norm_factors(p, in, &s.source);
    if (at_once || s.f->table_bytes) /* what lanes know ahead of rows may be of a table */
        barrier(p);
    phase(p, "stream weights");
    stream_begin_lane(p, &s);
    stream_note_rows(p, &s);
    return s;
}

stream stream_begin_empty(ptx *p, const instance *in, const gemv_operands *g, unsigned rows,
                          const stream_memory *memory)
{
    stream s = stream_new(p, in, g, rows, memory);
    fill_table(p, &s);
    if (s.f->table_bytes)
        barrier(p);
    return s;
}

void stream_stage_vectors(ptx *p, stream *s)
{
    stage(p, s, imm(U32, 0));
}

void stream_note_rows(ptx *p, const stream *s)
{
    if (s->f->scales != NO_SCALE)
        stream_integers_note_rows(p, s);
}

stream stream_of_vectors(ptx *p, const stream *s, val first, unsigned count)
{
    stream some = *s;
    val bytes = mul(p, first, (unsigned)(s->pass_steps * stream_step_bytes(s->in)));
    some.vectors = count;
    some.tile = add(p, s->tile, bytes);
    if (s->beside.kind)
        some.beside = add(p, s->beside, bytes);
    return some;
}

/* Barriers: behind the last use of what was staged, and of the norm's factors; and ahead of the
 * first one. */
void stream_stage_pass(ptx *p, stream *s, val pass)
{
    barrier(p);
    phase(p, "stage a pass of x");
    stage(p, s, pass);
    barrier(p);
    phase(p, "stream its weights");
}

void stream_add(ptx *p, stream *s, const place addresses[STREAM_ROWS])
{
    for (unsigned i = 0; i < s->rows * s->vectors; i++)
        s->sums[i] = var_f32(p, 0.0f);
    if (s->f->scales == NO_SCALE)
        stream_floats_add(p, s, addresses);
    else
        stream_integers_add(p, s, addresses);
    if (s->in->options.norm && stream_passes(s->in) > 1) {
        norm_factors(p, s->in, &s->source);
        barrier(p);
    }
}
