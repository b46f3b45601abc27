/* Mamba-2, see ref_mamba2 in reference.h. */
#include <float.h>
#include <math.h>
#include <string.h>

#include "base/arena.h"
#include "ref/quant.h"
#include "ref/recurrent.h"
#include "ref/reference.h"

enum { X, CONV, DT, A, D, POSITIONS, BIAS }; /* inputs */
enum { OUTPUT_Y, OUTPUT_STATES, OUTPUT_CONVS };
enum { MOST_STATE = 256 };

typedef ref_value vector[MOST_STATE];

/* Vectors and factors of a head in a row. */
typedef struct head_row {
    vector b, c;
    ref_value delta, decay;
} head_row;

/* Rows first to last of a sequence, for one head. */
typedef struct head_rows {
    const recurrence *r;
    uint64_t head, first, last;
    const head_row *rows;
} head_rows;

static uint64_t inner_of(const problem *p)
{
    return (uint64_t)(p->shape.num_heads * p->shape.head_dim);
}

static recurrence recurrence_of(const problem *p)
{
    uint64_t inner = inner_of(p);
    uint64_t channels = inner + 2 * (uint64_t)(p->shape.num_groups * p->shape.state_size);
    return (recurrence){ .p = p,
                         .positions = POSITIONS,
                         .x = X,
                         .conv = CONV,
                         .bias = BIAS,
                         .states = OUTPUT_STATES,
                         .convs = OUTPUT_CONVS,
                         .columns = inner + channels + (uint64_t)p->shape.num_heads,
                         .first = inner,
                         .channels = channels,
                         .taps = (uint64_t)p->shape.conv_kernel };
}

static head_rows head_rows_of(arena *a, const recurrence *r, uint64_t first, uint64_t last,
                              uint64_t head)
{
    const problem *p = r->p;
    uint64_t groups = (uint64_t)p->shape.num_groups, size = (uint64_t)p->shape.state_size;
    uint64_t group = head / ((uint64_t)p->shape.num_heads / groups);
    uint64_t b = inner_of(p) + group * size, c = b + groups * size;
    head_row *rows = arena_alloc(a, (last - first + 1) * sizeof *rows), *to = rows;
    for (uint64_t row = first; row <= last; row++, to++) {
        for (uint64_t i = 0; i < size; i++) {
            to->b[i] = recurrence_convolved(r, first, row, b + i);
            to->c[i] = recurrence_convolved(r, first, row, c + i);
        }
        double x_dt = problem_read_one(p, X, row * r->columns + r->first + r->channels + head);
        double dt = problem_read_one(p, DT, head);
        to->delta = ref_softplus(x_dt, dt);
        to->decay = ref_decay(x_dt, dt, problem_read_one(p, A, head));
    }
    return (head_rows){ r, head, first, last, rows };
}

/* Advances a channel's state over all rows. Unless y is NULL, stores a value per row to it. */
static void advance(const head_rows *h, uint64_t channel, ref_value *state, ref_value *y)
{
    const problem *p = h->r->p;
    uint64_t size = (uint64_t)p->shape.state_size;
    double d = problem_read_one(p, D, h->head);
    for (uint64_t i = 0; i < size; i++)
        state[i] = recurrence_state(h->r, h->first, channel * size + i);
    for (uint64_t row = h->first; row <= h->last; row++) {
        const head_row *at = &h->rows[row - h->first];
        ref_value x = recurrence_convolved(h->r, h->first, row, channel);
        ref_value added = ref_product(at->delta, x);
        for (uint64_t i = 0; i < size; i++)
            state[i] = ref_sum(ref_product(at->decay, state[i]), ref_product(at->b[i], added));
        if (!y)
            continue;
        double z = problem_read_one(p, X, row * h->r->columns + channel);
        ref_value sum =
            ref_sum(ref_dot_product(state, at->c, size), ref_product((ref_value){ d, 0 }, x));
        y[row - h->first] = ref_product(sum, ref_silu((ref_value){ z, 0 }));
        y[row - h->first].magnitude += FLT_MIN;
    }
}

/* Computes states. A state that is not updated must be bit-identical. */
static void state_values(const recurrence *r, uint64_t first, uint64_t count, ref_value *values)
{
    uint64_t size = (uint64_t)r->p->shape.state_size, of_state = inner_of(r->p) * size;
    uint64_t dim = (uint64_t)r->p->shape.head_dim, target_before = UINT64_MAX;
    arena *a = arena_new();
    head_rows h = { 0 };
    vector state;
    for (uint64_t done = 0, run; done < count; done += run) {
        uint64_t target = (first + done) / of_state, within = (first + done) % of_state;
        uint64_t channel = within / size, last = recurrence_last_row(r, target);
        run = size - within % size < count - done ? size - within % size : count - done;
        if (!recurrence_uses(r, last)) {
            for (uint64_t i = 0; i < run; i++)
                values[done + i] =
                    (ref_value){ recurrence_before(r, OUTPUT_STATES, target, within + i), 0 };
            continue;
        }
        if (target != target_before || channel / dim != h.head)
            h = head_rows_of(a, r, recurrence_first_row(r, last), last, channel / dim);
        target_before = target;
        advance(&h, channel, state, NULL);
        memcpy(values + done, state + within % size, run * sizeof *values);
        for (uint64_t i = done; i < done + run; i++)
            values[i].magnitude += FLT_MIN;
    }
    arena_free(a);
}

/* Computes the requested values of y, by runs of rows and by heads, each with one pass through the
 * recurrence. */
static void y_values(const recurrence *r, uint64_t first, uint64_t end, ref_value *values)
{
    uint64_t inner = inner_of(r->p), dim = (uint64_t)r->p->shape.head_dim;
    for (uint64_t row = first / inner, to; row <= (end - 1) / inner; row = to + 1) {
        uint64_t start = recurrence_first_row(r, row);
        for (to = row; to < (end - 1) / inner && recurrence_first_row(r, to + 1) == start;)
            to++;
        arena *a = arena_new();
        ref_value *y = arena_alloc(a, (to - start + 1) * sizeof *y);
        head_rows h = { .head = UINT64_MAX };
        for (uint64_t channel = 0; channel < inner; channel++) {
            vector state;
            bool asked = false;
            for (uint64_t at = row; at <= to; at++)
                asked |= at * inner + channel >= first && at * inner + channel < end;
            if (!asked)
                continue;
            memset(y, 0, (to - start + 1) * sizeof *y);
            if (recurrence_uses(r, to)) {
                if (h.head != channel / dim)
                    h = head_rows_of(a, r, start, to, channel / dim);
                advance(&h, channel, state, y);
            }
            for (uint64_t at = row; at <= to; at++)
                if (at * inner + channel >= first && at * inner + channel < end)
                    values[at * inner + channel - first] = y[at - start];
        }
        arena_free(a);
    }
}

void ref_mamba2(const problem *p, unsigned output, uint64_t first, uint64_t count,
                ref_value *values)
{
    recurrence r = recurrence_of(p);
    if (output == OUTPUT_STATES)
        state_values(&r, first, count, values);
    else if (output == OUTPUT_CONVS)
        recurrence_rings(&r, first, count, values);
    else if (count)
        y_values(&r, first, first + count, values);
}

/* Every FORGETFUL-th head gets an a of -FLT_MAX: its decay underflows to 0. */
void ref_fit_mamba2(const problem *p, unsigned input, void *bytes, uint64_t values)
{
    enum { FORGETFUL = 4 };
    uint32_t *positions = bytes;
    float *numbers = bytes;
    for (uint64_t i = 0; i < values; i++)
        if (input == POSITIONS)
            positions[i] = p->seq_lens[i] - 1;
        else
            numbers[i] = i % FORGETFUL == FORGETFUL - 1 ? -FLT_MAX : -fabsf(numbers[i]);
    if (p->strange && input == A)
        ref_spoil_either(numbers, values);
}
