/* Latent attention (DeepSeek-AI, "DeepSeek-V2", section 2.1), absorbed: the products with the key
 * and value matrices are applied to q and to the result, so attention works on the latents.
 *
 * A product's magnitude is the sum of |w| times the magnitude of x, since x may itself be a
 * product. NORM_MAGNITUDE covers the errors of an RMS norm's factor. */
#include <math.h>

#include "ref/reference.h"

enum { OUTPUT_Q, OUTPUT_CACHE };
enum { MOST_ROPE = 256, MOST_LATENT = 1024, MOST_NOPE = 1024, MOST_RANK = 16384 };
enum { NORM_MAGNITUDE = 3 };

/* Numbers of the inputs. */
typedef struct query_inputs {
    unsigned w, wq, qc, kv, gamma, gamma_q, positions, factors;
} query_inputs;

static query_inputs inputs_of(const problem *p)
{
    unsigned rank = p->shape.q_rank > 0, apart = p->options.apart > 0;
    return (query_inputs){ .w = 0,
                           .wq = 1,
                           .qc = 1 + rank,
                           .kv = 1 + rank + apart,
                           .gamma = 2 + rank + apart,
                           .gamma_q = 3 + rank + apart,
                           .positions = 3 + 2 * rank + apart,
                           .factors = 4 + 2 * rank + apart };
}

static uint64_t row_of_kv(const problem_shape *s)
{
    return (uint64_t)(s->latent + s->n_rope);
}

static uint64_t row_values(const problem *p)
{
    const problem_shape *s = &p->shape;
    int64_t q = s->q_rank ? s->q_rank : s->num_heads * (s->nope + s->n_rope);
    return (uint64_t)q + (p->options.apart ? 0 : row_of_kv(s));
}

/* Reads count values of an input from first on, RMS-normed. */
static void read_normed(const problem *p, unsigned input, uint64_t first, uint64_t count,
                        unsigned gamma, ref_value *values)
{
    float x[MOST_RANK], weights[MOST_RANK];
    double squares = 0;
    problem_read(p, input, first, count, x);
    problem_read(p, gamma, 0, count, weights);
    for (uint64_t i = 0; i < count; i++)
        squares += (double)x[i] * (double)x[i];
    double factor = 1 / sqrt(squares / (double)count + p->options.epsilon);
    for (uint64_t i = 0; i < count; i++) {
        double value = (double)x[i] * factor * (double)weights[i];
        values[i] = (ref_value){ value, NORM_MAGNITUDE * fabs(value) + ref_lost(value) };
    }
}

static ref_value times_row(const problem *p, unsigned matrix, uint64_t row, uint64_t columns,
                           const ref_value *x)
{
    float w[MOST_RANK];
    ref_value sum = { 0, 0 };
    problem_read(p, matrix, row * columns, columns, w);
    for (uint64_t i = 0; i < columns; i++) {
        double term = (double)w[i] * x[i].value;
        sum.value += term;
        sum.magnitude += fabs((double)w[i]) * x[i].magnitude + ref_lost(term);
    }
    return sum;
}

/* Computes columns [first, end) of the sum of rows of a matrix, each times a value of x. */
static void sum_of_rows(const problem *p, unsigned matrix, uint64_t row, uint64_t rows,
                        uint64_t first, uint64_t end, const ref_value *x, ref_value *sums)
{
    uint64_t columns = (uint64_t)p->shape.latent;
    float w[MOST_LATENT];
    for (uint64_t l = first; l < end; l++)
        sums[l] = (ref_value){ 0, 0 };
    for (uint64_t i = 0; first < end && i < rows; i++) {
        problem_read(p, matrix, (row + i) * columns, columns, w);
        for (uint64_t l = first; l < end; l++) {
            double term = (double)w[l] * x[i].value;
            sums[l].value += term;
            sums[l].magnitude += fabs((double)w[l]) * x[i].magnitude + ref_lost(term);
        }
    }
}

/* Reads values [first, first + count) of a head of q before RoPE. */
static void read_q(const problem *p, uint64_t row, uint64_t head, uint64_t first, uint64_t count,
                   ref_value *values)
{
    const problem_shape *s = &p->shape;
    uint64_t start = head * (uint64_t)(s->nope + s->n_rope) + first;
    ref_value x[MOST_RANK];
    if (s->q_rank) {
        uint64_t rank = (uint64_t)s->q_rank;
        read_normed(p, inputs_of(p).qc, row * row_values(p), rank, inputs_of(p).gamma_q, x);
        for (uint64_t i = 0; i < count; i++)
            values[i] = times_row(p, inputs_of(p).wq, start + i, rank, x);
        return;
    }
    ref_read(p, inputs_of(p).qc, row * row_values(p) + start, count, values);
}

static void rotate(const problem *p, uint64_t row, ref_value *values)
{
    rope_options o = p->options.rope;
    o.dims = p->shape.n_rope;
    uint32_t position = ((const uint32_t *)p->inputs[inputs_of(p).positions])[row];
    ref_turn(p, &o, inputs_of(p).factors, position, values);
}

/* Computes values [first, end) of a head of the absorbed q, and all rotated ones if any. */
static void head_of_q(const problem *p, uint64_t number, uint64_t first, uint64_t end,
                      ref_value *values)
{
    const problem_shape *s = &p->shape;
    uint64_t latent = (uint64_t)s->latent, nope = (uint64_t)s->nope;
    uint64_t row = number / (uint64_t)s->num_heads, head = number % (uint64_t)s->num_heads;
    uint32_t position = ((const uint32_t *)p->inputs[inputs_of(p).positions])[row];
    ref_value x[MOST_NOPE];
    double temperature = ref_rope_temperature(&p->options.rope, position);
    if (first < latent)
        read_q(p, row, head, 0, nope, x);
    if (s->plane_rows)
        sum_of_rows(p, inputs_of(p).w, head * (uint64_t)s->plane_rows, nope, first,
                    end < latent ? end : latent, x, values);
    for (uint64_t l = first; !s->plane_rows && l < end && l < latent; l++)
        values[l] = times_row(p, inputs_of(p).w, head * latent + l, nope, x);
    if (end > latent) {
        read_q(p, row, head, nope, (uint64_t)s->n_rope, values + latent);
        rotate(p, row, values + latent);
    }
    for (uint64_t i = first; i < end; i++) {
        values[i].value *= temperature;
        values[i].magnitude *= temperature;
        if (position == UINT32_MAX)
            values[i] = (ref_value){ 0, HUGE_VAL };
    }
}

static void row_of_cache(const problem *p, uint64_t number, ref_value *values)
{
    const problem_shape *s = &p->shape;
    uint64_t latent = (uint64_t)s->latent, turned = (uint64_t)s->n_rope, row, head;
    for (uint64_t i = 0; i < latent + turned; i++)
        values[i] = (ref_value){ 0, HUGE_VAL };
    if (!ref_row_at(p, inputs_of(p).positions, number, &row, &head))
        return;
    uint64_t first =
        p->options.apart ? row * row_of_kv(s) : (row + 1) * row_values(p) - row_of_kv(s);
    read_normed(p, inputs_of(p).kv, first, latent, inputs_of(p).gamma, values);
    ref_read(p, inputs_of(p).kv, first + latent, turned, values + latent);
    rotate(p, row, values + latent);
}

void ref_mla_query(const problem *p, unsigned output, uint64_t first, uint64_t count,
                   ref_value *values)
{
    uint64_t width = (uint64_t)problem_cache_values(&p->shape), end = first + count;
    ref_value all[MOST_LATENT + MOST_ROPE];
    while (first < end) {
        uint64_t number = first / width, from = first % width;
        uint64_t left = width - from, run = left < end - first ? left : end - first;
        if (output == OUTPUT_Q)
            head_of_q(p, number, from, from + run, all);
        else
            row_of_cache(p, number, all);
        for (uint64_t i = 0; i < run; i++)
            *values++ = all[from + i];
        first += run;
    }
}

void ref_mla_values(const problem *p, unsigned output, uint64_t first, uint64_t count,
                    ref_value *values)
{
    enum { W, O };
    (void)output;
    uint64_t latent = (uint64_t)p->shape.latent, rows = (uint64_t)p->shape.value_dim;
    uint64_t heads = (uint64_t)p->shape.num_heads, plane = (uint64_t)p->shape.plane_rows;
    uint64_t skipped = plane ? plane - rows : 0;
    ref_value x[MOST_LATENT];
    for (uint64_t at = first; at < first + count; at++) {
        if (at == first || at % rows == 0)
            ref_read(p, O, at / rows * latent, latent, x);
        uint64_t row = at % (rows * heads);
        *values++ = times_row(p, W, row + (row / rows + 1) * skipped, latent, x);
    }
}
