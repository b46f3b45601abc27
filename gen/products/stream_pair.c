/* Both rows by one stream, where their formats are the same; else each has one, and X stands in
 * shared memory twice. */
#include "gen/products/stream_pair.h"

/* Matrices of one format, by one stream. */
static bool alike(const instance *in, unsigned from)
{
    return in->weights_of[from] == in->weights_of[from + 1];
}

/* Two streams of one vector need more registers than one. */
enum { OF_TWO_STREAMS = 128 };

unsigned stream_pair_registers(const instance *in, unsigned from)
{
    instance gate = instance_matrix(in, from), up = instance_matrix(in, from + 1);
    unsigned of_gate = stream_registers(&gate), of_up = stream_registers(&up);
    unsigned most = of_gate > of_up ? of_gate : of_up;
    return alike(in, from) || most > OF_TWO_STREAMS ? most : OF_TWO_STREAMS;
}

int64_t stream_pair_staged_bytes(const instance *in, unsigned from)
{
    instance gate = instance_matrix(in, from), up = instance_matrix(in, from + 1);
    return stream_staged_bytes(&gate) + (alike(in, from) ? 0 : stream_staged_bytes(&up));
}

static val row_of_tensor(ptx *p, const stream_pair *of, val row)
{
    return of->before.kind ? add(p, row, of->before) : row;
}

void stream_pair_prefetch(ptx *p, const stream_pair *of, val first)
{
    PTX_IF (p, lt(p, first, of->g[0].n))
        for (unsigned i = 0; i < STREAM_PAIR; i++)
            stream_prefetch_turn(p, &of->g[i], row_of_tensor(p, of, first), 1, STREAM_PAIR);
}

void stream_pair_multiply(ptx *p, const stream_pair *of, const stream_memory *memory, val first,
                          val stride)
{
    const instance *in = &of->matrices[0];
    unsigned streams = in->weights == of->matrices[1].weights ? 1 : STREAM_PAIR;
    unsigned rows = STREAM_PAIR / streams;
    stream_memory of_stream = *memory;
    gemv_operands g = of->g[0];
    stream s[STREAM_PAIR];
    g.factors = memory->factors;
    for (unsigned i = 0; i < streams; i++) {
        s[i] = stream_begin(p, &of->matrices[i], &of->g[i], rows, &of_stream);
        of_stream.staged = add(p, of_stream.staged, stream_staged_bytes(&of->matrices[i]));
    }
    PTX_FOR (p, row, first, g.n, stride) {
        place addresses[STREAM_PAIR][STREAM_ROWS];
        val of_tensor = row_of_tensor(p, of, row);
        for (unsigned i = 0; i < STREAM_PAIR; i++)
            addresses[i / rows][i % rows] = (place){ gemv_row(p, &of->g[i], of_tensor), 0 };
        for (unsigned i = 0; i < streams; i++)
            stream_add(p, &s[i], addresses[i]);
        phase(p, "reduce, activate and store");
        gemv_biases biases = gemv_biases_of_row(p, in, of->bias.kind ? add(p, row, of->bias) : row);
        val sums[STREAM_PAIR * MAX_VECTORS];
        for (unsigned v = 0; v < in->shape.m; v++) {
            sums[STREAM_PAIR * v] = get(p, s[0].sums[rows * v]);
            sums[STREAM_PAIR * v + 1] = get(p, s[streams - 1].sums[rows * v + rows - 1]);
        }
        gemv_store_gated(p, in, &g, row, sums, &biases);
    }
}
