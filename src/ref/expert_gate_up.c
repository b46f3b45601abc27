/* Gate and up of the experts that rows use: see reference.h. */
#include <math.h>

#include "ref/reference.h"

enum { GATE, UP, MATRICES };

/* The inputs, by their numbers; biases and the list are the last ones. */
typedef struct gate_up_inputs {
    unsigned shared, x, bias, list;
} gate_up_inputs;

static gate_up_inputs inputs_of(const problem *p)
{
    gate_up_inputs in = { .shared = MATRICES };
    in.x = in.shared + (p->shape.n_shared > 0 ? MATRICES : 0u);
    in.bias = in.x + 1 + ref_beside_x(p);
    in.list = in.bias + (p->options.bias ? MATRICES : 0u);
    return in;
}

/* A row of gate and up, which are inputs from one on. */
static ref_value gated_row(const problem *p, const gate_up_inputs *in, unsigned matrices,
                           uint64_t matrix_row, uint64_t bias, uint64_t row)
{
    uint64_t k = (uint64_t)p->shape.k;
    ref_value sums[MATRICES];
    for (unsigned i = GATE; i < MATRICES; i++) {
        sums[i] =
            ref_dot(p, (ref_run){ matrices + i, matrix_row * k }, (ref_run){ in->x, row * k }, k);
        if (p->options.bias && matrices == GATE)
            ref_add(p, in->bias + i, bias, &sums[i]);
    }
    return ref_gated(p, sums[GATE], sums[UP]);
}

static ref_value gate_up(const problem *p, uint64_t element)
{
    gate_up_inputs in = inputs_of(p);
    uint64_t n = (uint64_t)p->shape.n, used = (uint64_t)p->shape.experts_used;
    uint64_t of_row = used * n + (uint64_t)p->shape.n_shared;
    uint64_t row = element / of_row, within = element % of_row, slot = within / n;
    if (slot >= used)
        return gated_row(p, &in, in.shared, within - used * n, 0, row);
    uint64_t expert = ref_expert_of(p, in.list, row * used + slot);
    if (expert >= (uint64_t)p->shape.experts)
        return (ref_value){ NAN, NAN };
    return gated_row(p, &in, GATE, expert * (uint64_t)p->shape.plane_rows + within % n,
                     expert * n + within % n, row);
}

void ref_expert_gate_up(const problem *p, unsigned output, uint64_t first, uint64_t count,
                        ref_value *values)
{
    (void)output;
    for (uint64_t i = 0; i < count; i++)
        values[i] = gate_up(p, first + i);
}
