/* Gated delta nets, see ref_delta_net in reference.h.
 *
 * The relative error of the root of a sum of squares is the root of the sum of the squared errors,
 * over the root. */
#include <float.h>
#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "base/arena.h"
#include "ref/quant.h"
#include "ref/recurrent.h"
#include "ref/reference.h"

enum { X, CONV, DT, A, GAMMA, POSITIONS, BA }; /* inputs */
enum { OUTPUT_Y, OUTPUT_STATES, OUTPUT_CONVS };
enum { MOST_DIM = 128 };

/* Huge inputs that only a sigmoid or an exponential reads are raised to LARGEST_GATE. */
static const float HUGE_GATE = 100, LARGEST_GATE = 3e38f;

typedef ref_value vector[MOST_DIM];

/* Vectors and factors of a value head in a row. */
typedef struct head_row {
    bool used;
    vector q, k, v, gate;
    ref_value decay, beta;
} head_row;

typedef struct sizes {
    uint64_t dim, heads, key_heads, group, channels, columns;
} sizes;

static bool is_tiled(const problem *p)
{
    return p->options.layout == DELTA_TILED;
}

static sizes sizes_of(const problem *p)
{
    uint64_t dim = (uint64_t)p->shape.head_dim, heads = (uint64_t)p->shape.num_heads;
    uint64_t key_heads = (uint64_t)p->shape.num_kv_heads;
    uint64_t channels = (2 * key_heads + heads) * dim;
    return (sizes){ dim,       heads,
                    key_heads, heads / key_heads,
                    channels,  channels + heads * (dim + (is_tiled(p) ? 0 : 2)) };
}

/* Positions of b and alpha of a row's head. */
typedef struct factor_place {
    unsigned input;
    uint64_t b, alpha;
} factor_place;

static factor_place factors_at(const problem *p, const sizes *s, uint64_t row, uint64_t head)
{
    if (is_tiled(p)) {
        uint64_t b = row * 2 * s->heads + head;
        return (factor_place){ BA, b, b + s->heads };
    }
    uint64_t b = row * s->columns + s->channels + s->heads * s->dim +
                 head / s->group * 2 * s->group + head % s->group;
    return (factor_place){ X, b, b + s->group };
}

static recurrence recurrence_of(const problem *p)
{
    sizes s = sizes_of(p);
    return (recurrence){ .p = p,
                         .positions = POSITIONS,
                         .x = X,
                         .conv = CONV,
                         .states = OUTPUT_STATES,
                         .convs = OUTPUT_CONVS,
                         .columns = s.columns,
                         .channels = s.channels,
                         .taps = DELTA_CONV };
}

static void convolve(const recurrence *r, uint64_t first, uint64_t row, uint64_t channel,
                     ref_value *u)
{
    for (uint64_t i = 0; i < (uint64_t)r->p->shape.head_dim; i++)
        u[i] = recurrence_convolved(r, first, row, channel + i);
}

/* Multiplies u by scale / max(|u|, epsilon). */
static void normalize(const problem *p, double scale, ref_value *u)
{
    double squares = 0, errors = 0;
    for (int64_t i = 0; i < p->shape.head_dim; i++) {
        squares += u[i].value * u[i].value;
        errors += u[i].magnitude * u[i].magnitude;
    }
    double length = sqrt(squares);
    double doubt = length > 0 ? sqrt(errors) / fmax(length, p->options.epsilon) : 0;
    double factor = scale / (length < p->options.epsilon ? p->options.epsilon : length);
    for (int64_t i = 0; i < p->shape.head_dim; i++) {
        double value = u[i].value * factor;
        u[i] = (ref_value){ value, factor * u[i].magnitude + (doubt + ROUNDINGS) * fabs(value) };
    }
}

static head_row head_row_of(const problem *p, uint64_t first, uint64_t row, uint64_t head)
{
    sizes s = sizes_of(p);
    uint64_t key = is_tiled(p) ? head % s.key_heads : head / s.group, keys = s.key_heads * s.dim;
    uint64_t z = row * s.columns + s.channels + head * s.dim;
    recurrence r = recurrence_of(p);
    head_row h = { .used = recurrence_uses(&r, row) };
    if (!h.used)
        return h;
    convolve(&r, first, row, key * s.dim, h.q);
    convolve(&r, first, row, keys + key * s.dim, h.k);
    convolve(&r, first, row, 2 * keys + head * s.dim, h.v);
    normalize(p, 1 / sqrt((double)s.dim), h.q);
    normalize(p, 1, h.k);
    factor_place at = factors_at(p, &s, row, head);
    double b = problem_read_one(p, at.input, at.b), beta = 1 / (1 + exp(-b));
    h.beta = (ref_value){ isfinite(b) ? beta : NAN, ROUNDINGS * beta + LOST_SIGMOID };
    h.decay = ref_decay(problem_read_one(p, at.input, at.alpha), problem_read_one(p, DT, head),
                        problem_read_one(p, A, head));
    for (uint64_t i = 0; i < s.dim; i++) {
        double value = problem_read_one(p, X, z + i), gamma = problem_read_one(p, GAMMA, i);
        h.gate[i] = ref_silu((ref_value){ value, 0 });
        h.gate[i].value *= gamma;
        h.gate[i].magnitude = h.gate[i].magnitude * fabs(gamma) + fabs(h.gate[i].value);
    }
    return h;
}

/* Advances a column of the state by a row. Returns the column's value of o. */
static ref_value step(const problem *p, const head_row *h, uint64_t column, ref_value *state)
{
    uint64_t dim = (uint64_t)p->shape.head_dim;
    ref_value held = ref_product(h->decay, ref_dot_product(state, h->k, dim)),
              minus = { -held.value, held.magnitude };
    ref_value rest = ref_sum(h->v[column], minus);
    rest.magnitude += fabs(h->v[column].value) + fabs(held.value);
    ref_value d = ref_product(h->beta, rest);
    for (uint64_t i = 0; i < dim; i++)
        state[i] = ref_sum(ref_product(h->decay, state[i]), ref_product(h->k[i], d));
    return ref_dot_product(state, h->q, dim);
}

static void load_column(const problem *p, uint64_t row, uint64_t head, uint64_t column,
                        ref_value *state)
{
    sizes s = sizes_of(p);
    recurrence r = recurrence_of(p);
    for (uint64_t i = 0; i < s.dim; i++)
        state[i] =
            recurrence_state(&r, row, s.heads * s.dim * s.dim, (head * s.dim + column) * s.dim + i);
}

/* Returns rows [first, last] of a head. */
static head_row *head_rows_of(arena *a, const problem *p, uint64_t first, uint64_t last,
                              uint64_t head)
{
    head_row *rows = arena_alloc(a, (last - first + 1) * sizeof *rows);
    for (uint64_t row = first; row <= last; row++)
        rows[row - first] = head_row_of(p, first, row, head);
    return rows;
}

/* Returns y of a head for rows [from, last] of a sequence that starts at row first. */
static vector *y_of_head(arena *a, const problem *p, uint64_t first, uint64_t from, uint64_t last,
                         uint64_t head)
{
    uint64_t dim = (uint64_t)p->shape.head_dim;
    vector *o = arena_zalloc(a, (last - first + 1) * sizeof *o), state;
    recurrence r = recurrence_of(p);
    if (!recurrence_uses(&r, last))
        return o;
    const head_row *rows = head_rows_of(a, p, first, last, head);
    for (uint64_t column = 0; column < dim; column++) {
        load_column(p, first, head, column, state);
        for (uint64_t row = first; row <= last; row++)
            o[row - first][column] = step(p, &rows[row - first], column, state);
    }
    for (uint64_t row = from; row <= last; row++) { /* gated norm */
        ref_value *y = o[row - first];
        double squares = 0, errors = 0;
        for (uint64_t i = 0; i < dim; i++) {
            squares += y[i].value * y[i].value;
            errors += y[i].magnitude * y[i].magnitude;
        }
        double divisor = squares / (double)dim + p->options.epsilon, factor = 1 / sqrt(divisor);
        double doubt = sqrt(errors / (double)dim / divisor);
        for (uint64_t i = 0; i < dim; i++) {
            double value = y[i].value * factor;
            ref_value normed = { squares <= (double)FLT_MAX ? value : NAN,
                                 y[i].magnitude * factor + (doubt + ROUNDINGS) * fabs(value) };
            y[i] = ref_product(normed, rows[row - first].gate[i]);
            y[i].magnitude += FLT_MIN;
        }
    }
    return o + (from - first);
}

/* Computes states. A state that is not updated must be bit-identical. */
static void state_values(const problem *p, uint64_t first, uint64_t count, ref_value *values)
{
    sizes s = sizes_of(p);
    uint64_t of_state = s.heads * s.dim * s.dim, head_before = UINT64_MAX, last;
    recurrence r = recurrence_of(p);
    arena *a = arena_new();
    const head_row *rows = NULL;
    vector column;
    for (uint64_t done = 0, run; done < count; done += run) {
        uint64_t at = first + done, sequence = at / of_state, within = at % of_state;
        uint64_t head = within / s.dim / s.dim, number = within / s.dim % s.dim;
        run = s.dim - within % s.dim < count - done ? s.dim - within % s.dim : count - done;
        if (!recurrence_last_row(&r, sequence, &last)) {
            for (uint64_t i = 0; i < run; i++)
                values[done + i] = (ref_value){ recurrence_before(&r, OUTPUT_STATES, at + i), 0 };
            continue;
        }
        uint64_t from = recurrence_first_row(&r, last);
        if (sequence * s.heads + head != head_before)
            rows = head_rows_of(a, p, from, last, head);
        head_before = sequence * s.heads + head;
        load_column(p, from, head, number, column);
        for (uint64_t row = from; row <= last; row++)
            step(p, &rows[row - from], number, column);
        memcpy(values + done, column + within % s.dim, run * sizeof *values);
        for (uint64_t i = done; i < done + run; i++)
            values[i].magnitude += FLT_MIN;
    }
    arena_free(a);
}

/* Computes a head's rows by runs, each with one pass through the recurrence. */
static void y_values(const problem *p, uint64_t first, uint64_t end, uint64_t head,
                     ref_value *values)
{
    sizes s = sizes_of(p);
    recurrence r = recurrence_of(p);
    uint64_t row_size = s.heads * s.dim, own = head * s.dim;
    uint64_t row = first / row_size, last = (end - 1) / row_size;
    row += row * row_size + own + s.dim <= first;
    while (row <= last && row * row_size + own < end) {
        arena *a = arena_new();
        uint64_t start = recurrence_first_row(&r, row), to = row;
        while (to < last && (to + 1) * row_size + own < end &&
               recurrence_first_row(&r, to + 1) == start)
            to++;
        const vector *y = (const vector *)y_of_head(a, p, start, row, to, head);
        for (; row <= to; row++, y++)
            for (uint64_t i = 0, at = row * row_size + own; i < s.dim; i++, at++)
                if (at >= first && at < end)
                    values[at - first] = (*y)[i];
        arena_free(a);
    }
}

void ref_delta_net(const problem *p, unsigned output, uint64_t first, uint64_t count,
                   ref_value *values)
{
    recurrence r = recurrence_of(p);
    if (output == OUTPUT_STATES)
        state_values(p, first, count, values);
    if (output == OUTPUT_CONVS)
        recurrence_rings(&r, first, count, values);
    for (uint64_t head = 0; output == OUTPUT_Y && head < (uint64_t)p->shape.num_heads; head++)
        y_values(p, first, first + count, head, values);
}

/* Raises huge b to the f32 limit. A strange trial has NaN or infinite b or alpha. */
static void fit_factors(const problem *p, unsigned input, float *numbers, uint64_t values)
{
    sizes s = sizes_of(p);
    uint64_t rows = (uint64_t)p->shape.m;
    for (uint64_t i = 0; i < rows * s.heads; i++) {
        factor_place at = factors_at(p, &s, i / s.heads, i % s.heads);
        if (at.input != input)
            break;
        float *b = &numbers[at.b];
        const float strange[] = { *b, NAN, *b, -INFINITY };
        if (fabsf(*b) > HUGE_GATE)
            *b = copysignf(LARGEST_GATE, *b);
        if (p->strange && i < s.heads)
            *b = strange[i % 4];
        if (p->strange && i < s.heads && i % 4 == 2)
            numbers[at.alpha] = INFINITY;
    }
    if (p->strange)
        ref_spoil_either(numbers, values);
}

/* Fits inputs. Every FORGETFUL-th head gets an a of -FLT_MAX: its decay underflows to 0. */
void ref_fit_delta_net(const problem *p, unsigned input, void *bytes, uint64_t values)
{
    enum { FORGETFUL = 4 };
    uint32_t *positions = bytes;
    float *numbers = bytes;
    if (input == X || input == BA) {
        fit_factors(p, input, numbers, values);
        return;
    }
    for (uint64_t i = 0; i < values; i++)
        if (input == POSITIONS)
            positions[i] = p->seq_lens[i] - 1;
        else if (input == DT)
            numbers[i] =
                fabsf(numbers[i]) > HUGE_GATE ? copysignf(LARGEST_GATE, numbers[i]) : numbers[i];
        else
            numbers[i] = i % FORGETFUL == FORGETFUL - 1 ? -FLT_MAX : -fabsf(numbers[i]);
    if (p->strange && (input == DT || input == A))
        ref_spoil_either(numbers, values);
}
