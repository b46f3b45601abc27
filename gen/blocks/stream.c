/* What streaming products of integers and of floats have in common: see stream.h. */
#include "gen/blocks/stream.h"

#include "gen/blocks/reduce.h"

enum { WARP = 32 };

static const stream_format *const stream_formats[FORMAT_COUNT] = {
#define FORMAT(id, ...) [FORMAT_##id] = &stream_##id,
#include "format.def"
};

int64_t stream_step_values(format weights)
{
    const stream_format *f = stream_formats[weights];
    return f->scales == NO_SCALE ? WARP * STREAM_LANE_BYTES / formats[weights].block_bytes
                                 : WARP * STREAM_SEGMENT * f->segments;
}

int64_t stream_step_bytes(format weights)
{
    const stream_format *f = stream_formats[weights];
    return f->scales == NO_SCALE ? stream_step_values(weights) * F32_BYTES
                                 : stream_integers_step_bytes(f);
}

int64_t stream_table_bytes(format weights)
{
    return stream_formats[weights]->table_bytes;
}

val stream_source_vector(ptx *p, const instance *in, const stream_source *s, unsigned vector)
{
    place at = place_of_vector(p, s->of->x, s->of->behind, vector, imm(U32, (uint32_t)in->shape.k),
                               F32_BYTES);
    return add(p, at.base, at.offset);
}

val4 stream_source_four(ptx *p, const stream_source *s, unsigned vector, val at, val gamma_at,
                        int64_t offset)
{
    val4 x = ld_const_v4(p, F32, at, offset);
    if (!s->gamma.kind)
        return x;
    val4 gamma = ld_const_v4(p, F32, gamma_at, offset);
    for (int i = 0; i < 4; i++) {
        assign(p, s->squares[vector], fma(p, x.v[i], x.v[i], s->squares[vector]));
        x.v[i] = mul(p, x.v[i], gamma.v[i]);
    }
    return x;
}

val stream_warp(ptx *p)
{
    return mad(p, ctaid_x(p), imm(U32, ptx_block(p) / WARP), warp_id(p));
}

val stream_warps(ptx *p)
{
    return mul(p, nctaid_x(p), ptx_block(p) / WARP);
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

unsigned stream_registers(const instance *in)
{
    enum { OF_ONE_VECTOR = 80, CROWDED = 104 };
    const stream_format *f = stream_formats[instance_weights(in)];
    unsigned rows = of_one_matrix(in) ? (unsigned)in->rows_per_warp : STREAM_ROWS;
    if (in->shape.m > 1)
        return in->family->launch.registers;
    return f->crowded == rows && !stream_rows_share_pointers(in) ? CROWDED : OF_ONE_VECTOR;
}

/* The factor that the norm leaves for each vector, in shared memory: thread i adds up what the
 * warps have of vector i. The barriers are those of the tile, too. */
static val norm_factors(ptx *p, const instance *in, const stream_source *source)
{
    unsigned warps = ptx_block(p) / WARP, vectors = (unsigned)in->shape.m;
    /* Factors first: their address is then the array's and takes no register through all rows. */
    val factors = shared_array(p, "squares", F32, (warps + 1) * vectors);
    val parts = add(p, factors, vectors * F32_BYTES);
    for (unsigned v = 0; v < vectors; v++) {
        val sum = warp_sum(p, get(p, source->squares[v]));
        val part = mad(p, warp_id(p), imm(U32, F32_BYTES), add(p, parts, v * warps * F32_BYTES));
        PTX_IF (p, eq(p, lane_id(p), 0))
            st_shared(p, F32, part, 0, sum);
    }
    barrier(p);
    PTX_IF (p, lt(p, tid_x(p), vectors)) {
        val of_vector = mad(p, tid_x(p), imm(U32, warps * F32_BYTES), parts);
        val sum = ld_shared(p, F32, of_vector, 0);
        for (unsigned w = 1; w < warps; w++)
            sum = add(p, sum, ld_shared(p, F32, of_vector, w * F32_BYTES));
        val mean = mul(p, sum, (float)(1.0 / (double)in->shape.k));
        st_shared(p, F32, mad(p, tid_x(p), imm(U32, F32_BYTES), factors), 0,
                  rsqrt(p, add(p, mean, (float)in->options.epsilon)));
    }
    barrier(p);
    return factors;
}

stream stream_begin(ptx *p, const instance *in, const gemv_operands *g, unsigned rows, val *factors)
{
    stream s = { .in = in,
                 .f = stream_formats[instance_weights(in)],
                 .rows = rows,
                 .vectors = (unsigned)in->shape.m };
    bool floats = s.f->scales == NO_SCALE;
    stream_source source = { .of = g };
    if (in->options.norm) {
        source.gamma = parameter(p, "gamma");
        for (unsigned v = 0; v < s.vectors; v++)
            source.squares[v] = var_f32(p, 0.0f);
    }
    s.table = shared_dynamic(p, "activations", floats ? F32 : U32);
    s.tile = s.f->table_bytes ? add(p, s.table, s.f->table_bytes) : s.table;
    if (floats)
        stream_floats_stage(p, in, &source, s.tile);
    else
        stream_integers_stage(p, &s, &source);
    if (s.f->table_bytes) {
        phase(p, "unpack the tables");
        s.f->table(p, s.table);
    }
    if (in->options.norm) {
        phase(p, "sum the squares of x");
        *factors = norm_factors(p, in, &source);
    } else {
        barrier(p);
    }
    phase(p, "stream weights");
    if (floats)
        s.tile = mad(p, lane_id(p), imm(U32, STREAM_LANE_BYTES), s.tile);
    else
        stream_integers_begin(p, &s);
    return s;
}

void stream_add(ptx *p, stream *s, const place addresses[STREAM_ROWS])
{
    for (unsigned i = 0; i < s->rows * s->vectors; i++)
        s->sums[i] = var_f32(p, 0.0f);
    if (s->f->scales == NO_SCALE)
        stream_floats_add(p, s, addresses);
    else
        stream_integers_add(p, s, addresses);
}
