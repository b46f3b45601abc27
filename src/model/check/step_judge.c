/* The reference rounds what the kernels round (activations to 8 bits, K and V to kv_type),
 * but a kernel's float arithmetic may round the other way where a value is near a tie, and from
 * there on its values differ as if noise had been added that is at most as large as rounding's own.
 * How large that is in this model is measured: by a second reference that rounds nothing. With R
 * the differences of the two at some place (the hidden states behind a layer, say, of all rows), an
 * element may be off by
 *
 *   2 max |R| + 4 rms(R) + FLOAT_ERROR rms
 *
 * where the last part is for float arithmetic that amplifies on its way through products, norms and
 * a softmax, and rms that of the reference. With activations of 8 bits that is some percent; what
 * is wired wrongly changes a vector by about its own size.
 */
#include "model/check/step_trial.h"

#include <math.h>
#include <string.h>

#include "ref/quant.h"

static const double FLOAT_ERROR = 2e-4;

/* Returns the bound of an element's error. */
static double bound_of(const step_compared *c)
{
    double largest = 0, squares = 0, rounding = 0;
    for (size_t i = 0; i < c->count; i++) {
        double by = c->rounded[i] - c->exact[i];
        largest = fmax(largest, fabs(by));
        rounding += by * by;
        squares += c->rounded[i] * c->rounded[i];
    }
    double count = (double)c->count;
    return 2 * largest + 4 * sqrt(rounding / count) + FLOAT_ERROR * sqrt(squares / count);
}

bool step_compare(step_trial *t, const step_rows *r, int64_t layer, const step_compared *c,
                  double *worst)
{
    double bound = bound_of(c), most = 0;
    size_t at = 0;
    for (size_t i = 0; i < c->count; i++) {
        double error = fabs((double)c->got[i] - c->rounded[i]) / bound;
        if (c->got[i] == (float)c->rounded[i])
            continue;
        if (!(error <= most)) {
            most = isnan(error) ? HUGE_VAL : error;
            at = i;
        }
    }
    *worst = fmax(*worst, most);
    if (most <= 1)
        return true;
    return step_reject(
        t, arena_format(t->arena, "%s, %s: %s[%zu][%zu] is %.9g, expected %.9g: %.3g of its bound",
                        step_name(t, r), step_layer_name(t, layer), c->what, at / c->row_size,
                        at % c->row_size, (double)c->got[at], c->rounded[at], most));
}

/* Compares the hidden states of tokens' rows after a layer. */
static bool judge_hidden(step_trial *t, const plan_step *step, const step_rows *r,
                         const step_expected *e, int64_t layer)
{
    const decoder *d = t->v->plan->decoder;
    size_t size = (size_t)d->hidden, fed = 0, buffer = 0;
    double *expected[2];
    while (strcmp(step->buffers[buffer].name, "h") != 0)
        buffer++;
    float *got =
        step_read(t, t->workspace + step->buffers[buffer].offset, r->m * size * sizeof *got);
    for (size_t i = 0; i < r->m; i++)
        if (r->is_row[i])
            memmove(got + fed++ * size, got + i * size, size * sizeof *got);
    for (int v = 0; v < 2; v++) {
        const double *hidden = e->hidden[v] + (layer + 1) * d->hidden;
        expected[v] = arena_alloc(t->scratch, fed * size * sizeof *expected[v]);
        for (size_t i = 0; i < fed; i++)
            memcpy(expected[v] + i * size, hidden + i * (size_t)(d->layers + 1) * size,
                   size * sizeof *hidden);
    }
    const step_compared c = { "h", got, expected[0], expected[1], fed * size, size };
    return step_compare(t, r, layer, &c, &t->result.worst_hidden);
}

/* Parts of the caches that a layer has written, those of one token together. */
typedef struct written {
    const char *what;
    ref_cached *items;
    size_t count, of_token;
} written;

static bool judge_written(step_trial *t, const step_rows *r, int64_t layer, const written *w)
{
    const step_model *m = &t->v->model;
    size_t size = w->count ? (size_t)ref_cached_values(m->d, w->items) : 0, count = w->count * size;
    float *got = arena_alloc(t->scratch, count * sizeof *got);
    double *rounded = arena_alloc(t->scratch, count * sizeof *rounded);
    double *exact = arena_alloc(t->scratch, count * sizeof *exact);
    for (size_t i = 0, at = 0; i < w->count; i++, at += size) {
        const ref_cached *which = &w->items[i];
        uint64_t bytes = step_model_row_bytes(m, which);
        ref_step_cached(t->rounded, which, rounded + at);
        ref_step_cached(t->exact, which, exact + at);
        ref_decode(step_model_format(m, which),
                   step_read(t, step_cache_address(t, which), (size_t)bytes), size, got + at);
    }
    const step_compared c = { w->what, got, rounded, exact, count, w->of_token * size };
    return !count || step_compare(t, r, layer, &c, &t->result.worst_hidden);
}

/* Compares what each row has written to the caches of some heads. */
static bool judge_rows(step_trial *t, const step_rows *r, int64_t layer, const char *what,
                       int64_t heads, bool values)
{
    written w = { what, arena_alloc(t->scratch, r->m * (size_t)heads * sizeof *w.items), 0,
                  (size_t)heads };
    for (size_t i = 0; i < r->m; i++)
        for (int64_t head = 0; r->is_row[i] && head < heads; head++)
            w.items[w.count++] =
                (ref_cached){ r->rows[i].sequence, layer, head, r->positions[i], values };
    return judge_written(t, r, layer, &w);
}

/* Compares the states of sequences after their last rows. */
static bool judge_states(step_trial *t, const step_rows *r, int64_t layer)
{
    size_t heads = (size_t)t->v->plan->decoder->delta_value_heads;
    written w = { "state", arena_alloc(t->scratch, r->m * heads * sizeof *w.items), 0, heads };
    for (size_t i = 0; i < r->m; i++) {
        bool last = r->is_row[i];
        for (size_t j = i + 1; j < r->m; j++)
            last &= !r->is_row[j] || r->rows[j].sequence != r->rows[i].sequence;
        for (size_t head = 0; last && head < heads; head++)
            w.items[w.count++] =
                (ref_cached){ r->rows[i].sequence, layer, (int64_t)head, r->positions[i], false };
    }
    return judge_written(t, r, layer, &w);
}

static bool judge_caches(step_trial *t, const step_rows *r, int64_t layer)
{
    const decoder *d = t->v->plan->decoder;
    if (d->recurrent[layer])
        return judge_states(t, r, layer) && judge_rows(t, r, layer, "inputs", 1, true);
    if (d->latent)
        return judge_rows(t, r, layer, "latent", 1, false);
    return judge_rows(t, r, layer, "K", d->num_kv_heads, false) &&
           judge_rows(t, r, layer, "V", d->num_kv_heads, true);
}

bool step_judge_layer(step_trial *t, const plan_step *step, const step_rows *r,
                      const step_expected *e, int64_t layer)
{
    return (layer < 0 || judge_caches(t, r, layer)) && judge_hidden(t, step, r, e, layer);
}

computed_logits step_read_logits(const step_trial *t, const plan_step *step)
{
    const plan *p = t->v->plan;
    uint64_t address = t->state + p->state.logits;
    computed_logits l = { .count = (size_t)(step->logits_rows * p->decoder->vocab) };
    l.values = step_read(t, address, l.count * sizeof *l.values);
    if (!t->in_part)
        return l;
    l.are = arena_alloc(t->scratch, l.count * sizeof *l.are);
    for (size_t i = 0; i < l.count; i++)
        l.are[i] = emu_written(t->memory, address + i * sizeof *l.values, sizeof *l.values);
    return l;
}

/* Logits that were not computed count as right. */
bool step_judge_logits(step_trial *t, const plan_step *step, const step_rows *r,
                       const step_expected *e)
{
    const plan *p = t->v->plan;
    const computed_logits l = step_read_logits(t, step);
    size_t size = (size_t)p->decoder->vocab, first = r->m - (size_t)step->logits_rows, fed = 0;
    for (size_t i = 0; i < r->m; i++) {
        if (!r->is_row[i])
            continue;
        const double *rounded = e->logits[0] + fed * size, *exact = e->logits[1] + fed * size;
        float *got = i < first ? NULL : l.values + (i - first) * size;
        fed++;
        for (size_t j = 0; got && l.are && j < size; j++)
            if (!l.are[(i - first) * size + j])
                got[j] = (float)rounded[j];
        const step_compared c = { "logits", got, rounded, exact, size, size };
        if (got && !step_compare(t, r, p->decoder->layers, &c, &t->result.worst))
            return false;
    }
    return true;
}

/* Checks that a row of the state has the token, position and length that follow a row of the step.
 */
static bool judge_next(step_trial *t, const step_rows *r, size_t row, size_t next,
                       const float *logits)
{
    const plan *p = t->v->plan;
    uint32_t largest = 0;
    for (uint32_t i = 1; i < p->decoder->vocab; i++)
        largest = logits[i] > logits[largest] ? i : largest;
    const struct {
        const char *what;
        uint32_t got, expected;
    } words[] = {
        { "token", step_read_word(t, p->state.tokens, next), largest },
        { "position", step_read_word(t, p->state.positions, next), r->positions[row] + 1 },
        { "length", step_read_word(t, p->state.lengths, next), r->lengths[row] + 1 },
    };
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (words[i].got != words[i].expected)
            return step_reject(t, arena_format(t->arena,
                                               "%s: the next %s of row %zu is %u, expected %u",
                                               step_name(t, r), words[i].what, next, words[i].got,
                                               words[i].expected));
    return true;
}

bool step_judge_state(step_trial *t, const plan_step *step, const step_rows *r)
{
    const plan *p = t->v->plan;
    size_t size = (size_t)p->decoder->vocab, sampled = (size_t)step->sampled_rows;
    const float *logits =
        step_read(t, t->state + p->state.logits, (size_t)step->logits_rows * size * sizeof *logits);
    for (size_t i = r->m - sampled; i < r->m; i++)
        if (r->is_row[i] && !judge_next(t, r, i, sampled == 1 ? 0 : i,
                                        logits + (i + (size_t)step->logits_rows - r->m) * size))
            return false;
    return true;
}
