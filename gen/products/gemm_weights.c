#include "gen/products/gemm_tile.h"

enum { LINE = 16, USUAL_BLOCKS = 128, FLOATS = 64 };

val gemm_unit(ptx *p, val tile, val row, val unit)
{
    val swizzled = bit_xor(p, unit, bit_and(p, shr(p, row, 1), GEMM_STEP_UNITS - 1));
    return mad(p, row, GEMM_ROW_BYTES, mad(p, swizzled, GEMM_UNIT_BYTES, tile));
}

/* Returns the most 16-byte lines that `bytes` bytes can lie in. */
static unsigned lines_of(const gemm_weights *w, unsigned bytes)
{
    return (LINE - w->own.aligned + bytes + LINE - 1) / LINE;
}

int64_t gemm_splits(const instance *in)
{
    return in->splits ? in->splits : 1;
}

gemm_weights gemm_weights_of(const instance *in)
{
    gemm_weights w = { .format = instance_weights(in), .stages = (unsigned)in->stages };
    const format_info *f = &formats[w.format];
    unsigned k = (unsigned)in->shape.k;
    w.decoder = &weight_format_of(w.format)->gemm;
    w.chunk = f->block_values == 1             ? FLOATS
              : f->block_values < USUAL_BLOCKS ? USUAL_BLOCKS
                                               : f->block_values;
    w.chunk_bytes = (unsigned)format_bytes(w.format, w.chunk);
    w.whole = k / w.chunk / (unsigned)gemm_splits(in);
    w.tail = in->splits ? 0 : k % w.chunk;
    w.row_bytes = (unsigned)format_bytes(w.format, k);
    w.own.aligned = LINE; /* or a smaller power of two */
    while (w.row_bytes % w.own.aligned || w.chunk_bytes % w.own.aligned)
        w.own.aligned /= 2;
    w.scaled = weight_format_of(w.format)->beyond_f16;
    unsigned lines = lines_of(&w, w.chunk_bytes);
    while (f->block_values > 1 && lines % 4 != 2) /* avoids bank conflicts */
        lines++;
    w.stride = lines * LINE;
    return w;
}

unsigned gemm_ring_bytes(const gemm_weights *w)
{
    return w->stages * GEMM_COLUMNS * w->stride;
}

val gemm_own_row(ptx *p)
{
    return named(p, "row of the tile", div(p, tid_x(p), 2));
}

void gemm_weights_begin(ptx *p, gemm_weights *w, val source, val ring, val tile)
{
    w->row = gemm_own_row(p);
    w->own.half = named(p, "half", bit_and(p, tid_x(p), 1));
    w->source = var_u64(p, source);
    w->ring = mad(p, w->row, w->stride, ring);
    for (unsigned i = 0; i < 2; i++)
        w->store[i] = gemm_unit(p, tile, w->row, mad(p, w->own.half, 2, imm(U32, i)));
    w->to = var_u32(p, 0);
    if (w->own.aligned < LINE)
        w->place = var_u32(p, bit_and(p, convert(p, U32, source), LINE - 1));
}

/* Copies a chunk; the row's two threads copy alternate lines. */
static void copy_lines(ptx *p, const gemm_weights *w, unsigned bytes)
{
    unsigned least = (bytes + LINE - 1) / LINE, most = lines_of(w, bytes);
    val source = get(p, w->source), begin = imm(U32, 0);
    if (w->own.aligned < LINE) {
        begin = bit_and(p, convert(p, U32, source), LINE - 1);
        source = sub(p, source, convert(p, U64, begin));
    }
    val first_line = mul(p, w->own.half, LINE), end = add(p, begin, bytes);
    val from = add(p, source, convert(p, U64, first_line));
    val to = add(p, add(p, w->ring, get(p, w->to)), first_line);
    for (unsigned line = 0; line < most; line += 2) {
        val needed = line + 1 < least ? imm(PRED, 1) : lt(p, add(p, first_line, line * LINE), end);
        PTX_IF (p, needed)
            cp_async_cg(p, to, line * LINE, from, line * LINE);
    }
}

void gemm_copy_chunk(ptx *p, gemm_weights *w, val chunk)
{
    PTX_IF (p, lt(p, chunk, w->whole))
        copy_lines(p, w, w->chunk_bytes);
    if (w->tail)
        PTX_IF (p, eq(p, chunk, w->whole))
            copy_lines(p, w, (unsigned)format_bytes(w->format, w->tail));
    assign(p, w->source, add(p, w->source, w->chunk_bytes));
    val next = add(p, w->to, GEMM_COLUMNS * w->stride);
    assign(p, w->to, select(p, eq(p, next, gemm_ring_bytes(w)), imm(U32, 0), next));
    cp_async_commit(p);
}

/* Only younger groups stay pending. The barrier precedes the copy into the last chunk's stage. */
void gemm_next_chunk(ptx *p, gemm_weights *w, val chunk)
{
    cp_async_wait(p, w->stages - 2);
    warp_barrier(p);
    gemm_copy_chunk(p, w, add(p, chunk, w->stages - 1));
    val at = add(p, w->ring, get(p, w->to)); /* the oldest chunk follows the latest copy */
    if (w->own.aligned < LINE) {
        at = add(p, at, get(p, w->place));
        assign(p, w->place, bit_and(p, add(p, w->place, w->chunk_bytes % LINE), LINE - 1));
    }
    w->own.at = named(p, "the chunk's row", at);
    if (w->decoder->begin)
        w->decoder->begin(p, &w->own);
}

/* A format without a decoder has its unpacked values rounded. */
void gemm_decode_step(ptx *p, gemm_weights *w, unsigned step, unsigned valid, unsigned tile_offset)
{
    const format_info *f = &formats[w->format];
    val words[GEMM_OWN / 2];
    if (w->decoder->step) {
        w->decoder->step(p, &w->own, step, valid, words);
    } else {
        unsigned block = step * GEMM_STEP / f->block_values;
        val at = block ? add(p, w->own.at, block * f->block_bytes) : w->own.at;
        for (unsigned piece = 0; piece < GEMM_OWN / UNPACKED; piece++) {
            val values[UNPACKED];
            unsigned known = step * GEMM_STEP % f->block_values + piece * UNPACKED;
            unpack_half(p, w->format, at, w->own.half, known, values);
            for (unsigned i = 0; i < UNPACKED; i++)
                values[i] = w->scaled ? mul(p, values[i], w->own.scale) : values[i];
            for (unsigned i = 0; i < UNPACKED / 2; i++)
                words[piece * UNPACKED / 2 + i] = pack_halves(p, values[2 * i], values[2 * i + 1]);
        }
    }
    for (unsigned i = 0; i < 2; i++)
        st_shared_v4(
            p, U32, w->store[i], tile_offset,
            ((val4){ { words[4 * i], words[4 * i + 1], words[4 * i + 2], words[4 * i + 3] } }));
}
