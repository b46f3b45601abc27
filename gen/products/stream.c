#include "gen/products/stream_plan.h"

#include "gen/formats/grid.h"

val stream_warp(ptx *p, val block)
{
    return mad(p, block, imm(U32, ptx_block(p) / WARP), warp_id(p));
}

val stream_warps(ptx *p)
{
    return mul(p, nctaid_x(p), ptx_block(p) / WARP);
}

stream_memory stream_memory_new(ptx *p, const instance *in, unsigned chunks)
{
    bool floats = weight_format_of(instance_weights(in))->stream.floats;
    stream_memory memory = { .staged = shared_dynamic(p, "activations", floats ? F32 : U32) };
    /* Allocated first: the address is then the array's and needs no register in the loop. */
    if (in->options.norm)
        memory.factors = shared_array(p, "squares", F32, (chunks + 1) * (unsigned)in->shape.m);
    if (stream_is_of_8_bits(in))
        memory.factors = shared_array(p, "x_factors", F32, (unsigned)in->shape.m);
    return memory;
}

void stream_row_places(ptx *p, bool alike, const gemv_operands *g, val row, unsigned rows,
                       place addresses[STREAM_ROWS])
{
    addresses[0] = (place){ gemv_loop_row(p, g, row, 0, rows), 0 };
    for (unsigned r = 1; r < rows && r < STREAM_ROWS; r++)
        addresses[r] = alike ? (place){ addresses[0].base, (int64_t)(r * g->row_bytes.bits) }
                             : (place){ gemv_loop_row(p, g, row, r, rows), 0 };
}

/* Prefetches bytes from an address: a lane fetches every 32nd line. */
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

void stream_prefetch_rows(ptx *p, const gemv_operands *g, val row, unsigned rows, unsigned in_all)
{
    int64_t row_bytes = (int64_t)g->row_bytes.bits;
    int64_t most = target_bytes_ahead(ptx_target(p)) / in_all,
            of_row = most < row_bytes ? most : row_bytes;
    if (gemv_loops_are_full(g, rows) && of_row == row_bytes) {
        prefetch_bytes(p, gemv_row(p, g, row), rows * row_bytes);
        return;
    }
    for (unsigned r = 0; r < rows; r++)
        prefetch_bytes(p, gemv_loop_row(p, g, row, r, rows), of_row);
}

static stream stream_new(ptx *p, const instance *in, const gemv_operands *g, unsigned rows,
                         const stream_memory *memory)
{
    stream s = stream_plan(in, rows);
    s.source.of = g;
    bool apart = memory->table.kind;
    s.table = apart ? memory->table : memory->staged;
    s.staged = s.f->table_bytes && !apart ? add(p, s.table, s.f->table_bytes) : memory->staged;
    return s;
}

void stream_fill_table(ptx *p, const stream *s)
{
    if (!s->f->table_bytes)
        return;
    phase(p, "unpack lookup tables");
    grid_stage(p, s->f, s->table);
}

void stream_begin_lane(ptx *p, stream *s)
{
    if (s->f->floats)
        s->tile = mad(p, lane_id(p), imm(U32, STREAM_LANE_BYTES), s->staged);
    else
        stream_integers_begin(p, s);
}

stream stream_begin(ptx *p, const instance *in, const gemv_operands *g, unsigned rows,
                    const stream_memory *memory)
{
    stream s = stream_new(p, in, g, rows, memory);
    bool at_once = s.passes == 1;
    val factor = { 0 };
    if (stream_is_of_8_bits(in)) {
        /* Factors from q8_rows: thread v loads that of vector v, and stores it after staging. */
        val row = gemv_vector_read(p, g, min(p, tid_x(p), s.vectors - 1));
        factor = ld_const(p, F32, mad_wide(p, row, F32_BYTES, parameter(p, "factors")), 0);
    }
    if (in->options.norm) {
        s.source.gamma = parameter(p, "gamma");
        s.source.factors = memory->factors;
        s.source.partial = add(p, memory->factors, s.vectors * F32_BYTES);
        s.source.chunks = (unsigned)stream_chunks(in);
    }
    if (at_once)
        stream_stage(p, &s, imm(U32, 0));
    if (factor.kind)
        PTX_IF (p, lt(p, tid_x(p), s.vectors))
            st_shared(p, F32, mad(p, tid_x(p), imm(U32, F32_BYTES), memory->factors), 0, factor);
    stream_fill_table(p, &s);
    if (at_once && in->options.norm)
        stream_norm_factors(p, &s);
    if (at_once || s.f->table_bytes) /* stream_begin_lane may read the table */
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
    stream_fill_table(p, &s);
    if (s.f->table_bytes)
        barrier(p);
    return s;
}

void stream_note_rows(ptx *p, const stream *s)
{
    unsigned k = (unsigned)s->in->shape.k;
    if (!s->f->floats && s->passes == 1 && k / s->step_values <= s->loop_steps)
        ptx_loop_work(p, s->rows * k / s->lanes, "weights");
}

stream stream_of_vectors(ptx *p, const stream *s, val first, unsigned count)
{
    stream some = *s;
    val bytes = mul(p, first, s->pass_steps * s->x.bytes);
    some.vectors = count;
    stream_plan_loop(&some);
    some.tile = add(p, s->tile, bytes);
    if (s->beside.kind)
        some.beside = add(p, s->beside, bytes);
    return some;
}

void stream_add(ptx *p, stream *s, const place addresses[STREAM_ROWS])
{
    for (unsigned i = 0; i < s->rows * s->vectors; i++)
        s->sums[i] = var_f32(p, 0.0f);
    if (s->f->floats)
        stream_floats_add(p, s, addresses);
    else
        stream_integers_add(p, s, addresses);
    if (s->in->options.norm && s->passes > 1) {
        stream_norm_factors(p, s);
        barrier(p);
    }
}

/* Returns true if one stream serves both matrices, or the only one. */
static bool alike(const instance *in, unsigned from)
{
    return in->options.ungated || in->weights_of[from] == in->weights_of[from + 1];
}

int64_t stream_pair_registers(const instance *in, unsigned from)
{
    enum { OF_TWO_STREAMS = 128 }; /* registers that two streams of one vector need */
    instance gate = gemv_first_of_pair(in, from), up = instance_matrix(in, from + 1);
    int64_t of_gate = stream_registers(&gate), of_up = stream_registers(&up);
    int64_t most = of_gate > of_up ? of_gate : of_up;
    return alike(in, from) || most > OF_TWO_STREAMS ? most : OF_TWO_STREAMS;
}

int64_t stream_pair_staged_bytes(const instance *in, unsigned from)
{
    instance gate = gemv_first_of_pair(in, from), up = instance_matrix(in, from + 1);
    return stream_staged_bytes(&gate) + (alike(in, from) ? 0 : stream_staged_bytes(&up));
}

static val row_of_tensor(ptx *p, const gemv_pair *of, val row)
{
    return of->before.kind ? add(p, row, of->before) : row;
}

void stream_pair_prefetch(ptx *p, const gemv_pair *of, val first)
{
    PTX_IF (p, lt(p, first, of->g[0].n))
        for (unsigned i = 0; i < of->count; i++)
            stream_prefetch_rows(p, &of->g[i], row_of_tensor(p, of, first), 1, of->count);
}

void stream_pair_multiply(ptx *p, const gemv_pair *of, const stream_memory *memory, val first,
                          val stride)
{
    const instance *in = &of->of[0];
    unsigned streams = of->count > 1 && in->weights != of->of[1].weights ? GEMV_PAIR : 1;
    unsigned rows = of->count / streams;
    stream_memory of_stream = *memory;
    gemv_operands g = of->g[0];
    stream s[GEMV_PAIR];
    g.factors = memory->factors;
    for (unsigned i = 0; i < streams; i++) {
        s[i] = stream_begin(p, &of->of[i], &of->g[i], rows, &of_stream);
        of_stream.staged = add(p, of_stream.staged, stream_staged_bytes(&of->of[i]));
    }
    PTX_FOR (p, row, first, g.n, stride) {
        place addresses[GEMV_PAIR][STREAM_ROWS];
        val of_tensor = row_of_tensor(p, of, row);
        for (unsigned i = 0; i < of->count; i++)
            addresses[i / rows][i % rows] = (place){ gemv_row(p, &of->g[i], of_tensor), 0 };
        for (unsigned i = 0; i < streams; i++)
            stream_add(p, &s[i], addresses[i]);
        phase(p, "reduce, activate and store");
        gemv_biases biases = gemv_biases_of_row(p, in, of->bias.kind ? add(p, row, of->bias) : row);
        val sums[GEMV_PAIR * MAX_VECTORS];
        for (unsigned v = 0; v < in->shape.m; v++) {
            sums[of->count * v] = get(p, s[0].sums[rows * v]);
            if (of->count > 1)
                sums[of->count * v + 1] = get(p, s[streams - 1].sums[rows * v + rows - 1]);
        }
        gemv_store_gated(p, in, &g, row, sums, &biases);
    }
}
