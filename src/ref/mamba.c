/* Mamba-2 and the recurrence of Mamba, see ref_mamba2 and ref_mamba_scan in reference.h. The latter
 * counts as one head, whose channels have a delta and a row of a each. */
#include <float.h>
#include <math.h>
#include <string.h>

#include "base/arena.h"
#include "ref/quant.h"
#include "ref/recurrent.h"
#include "ref/reference.h"

enum { X, CONV, DT, A, D, POSITIONS, BIAS }; /* inputs of Mamba-2 */
enum { U = CONV, BC = BIAS };                /* inputs of Mamba in the same places */
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

static bool is_mamba2(const problem *p)
{
    return p->shape.num_heads;
}

static uint64_t inner_of(const problem *p)
{
    return (uint64_t)(is_mamba2(p) ? p->shape.num_heads * p->shape.head_dim : p->shape.n);
}

static uint64_t channels_of_head(const problem *p)
{
    return is_mamba2(p) ? (uint64_t)p->shape.head_dim : inner_of(p);
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

/* Reads B or C of a row of bc. */
static void read_vector(const problem *p, uint64_t first, ref_value *to)
{
    uint64_t size = (uint64_t)p->shape.state_size;
    double squares = 0;
    for (uint64_t i = 0; i < size; i++) {
        double value = problem_read_one(p, BC, first + i);
        to[i] = (ref_value){ value, 0 };
        squares += value * value;
    }
    if (p->options.norm == NORM_NONE)
        return;
    double factor = 1 / sqrt(squares / (double)size + p->options.epsilon);
    if (!(squares <= (double)FLT_MAX))
        factor = NAN;
    for (uint64_t i = 0; i < size; i++) {
        double value = to[i].value * factor;
        to[i] = (ref_value){ value, ROUNDINGS * fabs(value) };
    }
}

static head_rows head_rows_of(arena *a, const recurrence *r, uint64_t first, uint64_t last,
                              uint64_t head)
{
    const problem *p = r->p;
    uint64_t size = (uint64_t)p->shape.state_size;
    head_row *rows = arena_alloc(a, (last - first + 1) * sizeof *rows), *to = rows;
    for (uint64_t row = first; row <= last; row++, to++) {
        if (!is_mamba2(p)) {
            uint64_t rank = (uint64_t)p->shape.dt_rank, b = row * (rank + 2 * size) + rank;
            read_vector(p, b, to->b);
            read_vector(p, b + size, to->c);
            continue;
        }
        uint64_t groups = (uint64_t)p->shape.num_groups;
        uint64_t group = head / ((uint64_t)p->shape.num_heads / groups);
        uint64_t b = inner_of(p) + group * size, c = b + groups * size;
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
    uint64_t size = (uint64_t)p->shape.state_size, inner = inner_of(p);
    double d = problem_read_one(p, D, is_mamba2(p) ? h->head : channel);
    for (uint64_t i = 0; i < size; i++)
        state[i] = recurrence_state(h->r, h->first, inner * size, channel * size + i);
    for (uint64_t row = h->first; row <= h->last; row++) {
        const head_row *at = &h->rows[row - h->first];
        uint64_t element = row * inner + channel;
        double dt = is_mamba2(p) ? 0 : problem_read_one(p, DT, element);
        ref_value x = is_mamba2(p) ? recurrence_convolved(h->r, h->first, row, channel)
                                   : (ref_value){ problem_read_one(p, U, element), 0 };
        ref_value added = ref_product(is_mamba2(p) ? at->delta : ref_softplus(dt, 0), x);
        for (uint64_t i = 0; i < size; i++) {
            ref_value decay = is_mamba2(p)
                                  ? at->decay
                                  : ref_decay(dt, 0, problem_read_one(p, A, channel * size + i));
            state[i] = ref_sum(ref_product(decay, state[i]), ref_product(at->b[i], added));
        }
        if (!y)
            continue;
        double z = problem_read_one(
            p, X, is_mamba2(p) ? row * h->r->columns + channel : (2 * row + 1) * inner + channel);
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
    uint64_t dim = channels_of_head(r->p), before = UINT64_MAX;
    arena *a = arena_new();
    head_rows h = { 0 };
    vector state;
    for (uint64_t done = 0, run; done < count; done += run) {
        uint64_t sequence = (first + done) / of_state, within = (first + done) % of_state;
        uint64_t channel = within / size, last;
        run = size - within % size < count - done ? size - within % size : count - done;
        if (!recurrence_last_row(r, sequence, &last)) {
            for (uint64_t i = done; i < done + run; i++)
                values[i] = (ref_value){ recurrence_before(r, OUTPUT_STATES, first + i), 0 };
            continue;
        }
        if (sequence != before || channel / dim != h.head)
            h = head_rows_of(a, r, recurrence_first_row(r, last), last, channel / dim);
        before = sequence;
        advance(&h, channel, state, NULL);
        memcpy(values + done, state + within % size, run * sizeof *values);
        for (uint64_t i = done; i < done + run; i++)
            values[i].magnitude += FLT_MIN;
    }
    arena_free(a);
}

/* Computes values of y by runs of rows and by heads, each with one pass of the recurrence. */
static void y_values(const recurrence *r, uint64_t first, uint64_t end, ref_value *values)
{
    uint64_t inner = inner_of(r->p), dim = channels_of_head(r->p);
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

void ref_mamba_scan(const problem *p, unsigned output, uint64_t first, uint64_t count,
                    ref_value *values)
{
    ref_mamba2(p, output, first, count, values);
}

/* Every FORGETFUL-th value of a is -FLT_MAX: the decay underflows to 0. */
void ref_fit_mamba(const problem *p, unsigned input, void *bytes, uint64_t values)
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
