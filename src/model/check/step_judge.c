/* Bounds of errors. The reference rounds what the kernels round: activations to 8 bits, K and V to
 * kv_type. Near a tie a kernel's float arithmetic may round the other way. Its later values then
 * differ as if noise of at most the rounding's own size had been added. A second reference, which
 * rounds nothing, measures that size in this model. Let R be the differences of the two references
 * in a tensor, such as the hidden states after a layer. An element may be off by
 *
 *   2 max |R| + 4 rms(R) + FLOAT_ERROR rms
 *
 * where rms is that of the reference. The last term covers float arithmetic, whose errors grow
 * through products, norms and a softmax. With 8-bit activations the bound is a few percent. A
 * wiring error changes a vector by about its own size.
 *
 * An element x of a recurrence's state is a sum of products of rounded values. It may be off by
 * 4 rms(R) |x| / rms more. */
#include "model/check/step_trial.h"

#include <math.h>
#include <string.h>

#include "ref/quant.h"

static const double FLOAT_ERROR = 2e-4;

bool step_compare(step_trial *t, const step_rows *r, int64_t layer, const step_compared *c,
                  double *worst)
{
    double largest = 0, squares = 0, rounding = 0, count = (double)c->count, most = 0;
    size_t at = 0;
    for (size_t i = 0; i < c->count; i++) {
        double by = c->rounded[i] - c->exact[i];
        largest = fmax(largest, fabs(by));
        rounding += by * by;
        squares += c->rounded[i] * c->rounded[i];
    }
    double bound = 2 * largest + 4 * sqrt(rounding / count) + FLOAT_ERROR * sqrt(squares / count);
    double growth = c->are_products && squares > 0 ? 4 * sqrt(rounding / squares) : 0;
    for (size_t i = 0; i < c->count; i++) {
        double room = bound + growth * fabs(c->rounded[i]);
        double error = fabs((double)c->got[i] - c->rounded[i]) / room;
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
    return step_reject(t, "%s, %s: %s[%zu][%zu] is %.9g, expected %.9g: %.3g of its bound",
                       step_name(t, r), step_layer_name(t, layer), c->what, at / c->row_size,
                       at % c->row_size, (double)c->got[at], c->rounded[at], most);
}

/* Compares cache rows of some heads: of each row of the step, or of each sequence's last row. */
static bool judge_rows(step_trial *t, const step_rows *r, const ref_cached *any, const char *what,
                       int64_t heads, bool only_last)
{
    const step_model *m = &t->v->model;
    size_t size = (size_t)ref_cached_values(m->d, any), most = r->m * (size_t)heads * size;
    float *got = arena_alloc(t->scratch, most * sizeof *got);
    double *rounded = arena_alloc(t->scratch, most * sizeof *rounded);
    double *exact = arena_alloc(t->scratch, most * sizeof *exact);
    size_t count = 0;
    for (size_t i = 0; i < r->m; i++) {
        bool judged = r->is_row[i];
        for (size_t j = i + 1; only_last && j < r->m; j++)
            judged &= !r->is_row[j] || r->rows[j].sequence != r->rows[i].sequence;
        for (int64_t head = 0; judged && head < heads; head++, count += size) {
            ref_cached which = *any;
            which.sequence = r->rows[i].sequence;
            which.kv_head = head;
            which.position = r->positions[i];
            const void *row = step_read(t, step_cache_address(t, &which),
                                        (size_t)step_model_row_bytes(m, &which));
            ref_step_cached(t->rounded, &which, rounded + count);
            ref_step_cached(t->exact, &which, exact + count);
            ref_decode(step_model_format(m, &which), row, size, got + count);
        }
    }
    const step_compared c = {
        what, got, rounded, exact, count, (size_t)heads * size, any->recurrent && !any->values
    };
    return !count || step_compare(t, r, any->layer, &c, &t->result.worst_hidden);
}

/* Compares what a layer has written to its caches. */
static bool judge_caches(step_trial *t, const step_rows *r, int64_t layer)
{
    const decoder *d = t->v->plan->decoder;
    const ref_cached k = { .layer = layer }, v = { .layer = layer, .values = true };
    const ref_cached state = { .layer = layer, .recurrent = true },
                     inputs = { .layer = layer, .recurrent = true, .values = true };
    int64_t heads = d->latent ? 1 : d->at[layer].num_kv_heads;
    if (d->at[layer].recurs &&
        (!judge_rows(t, r, &state, "state", (int64_t)decoder_state_heads(d), true) ||
         !judge_rows(t, r, &inputs, "inputs", 1, false)))
        return false;
    return !decoder_has_part(d, PART_KV, layer) ||
           (judge_rows(t, r, &k, d->latent ? "latent" : "K", heads, false) &&
            (d->latent || judge_rows(t, r, &v, "V", heads, false)));
}

bool step_judge_layer(step_trial *t, const plan_step *step, const step_rows *r,
                      const step_expected *e, int64_t layer)
{
    const decoder *d = t->v->plan->decoder;
    size_t size = (size_t)d->hidden, fed = 0;
    double *expected[2];
    if (layer >= 0 && !judge_caches(t, r, layer))
        return false;
    float *got = step_read(t, t->workspace + step->hidden[layer + 1], r->m * size * sizeof *got);
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
    const step_compared c = { "h", got, expected[0], expected[1], fed * size, size, false };
    return step_compare(t, r, layer, &c, &t->result.worst_hidden);
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

/* Logits of blocks that did not run count as right. */
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
        const step_compared c = { "logits", got, rounded, exact, size, size, false };
        if (got && !step_compare(t, r, p->decoder->layers, &c, &t->result.worst))
            return false;
    }
    return true;
}

bool step_judge_state(step_trial *t, const plan_step *step, const step_rows *r)
{
    const plan *p = t->v->plan;
    size_t size = (size_t)p->decoder->vocab, sampled = (size_t)step->sampled_rows;
    const float *logits =
        step_read(t, t->state + p->state.logits, (size_t)step->logits_rows * size * sizeof *logits);
    for (size_t i = r->m - sampled; i < r->m; i++) {
        const float *own = logits + (i + (size_t)step->logits_rows - r->m) * size;
        size_t next = step->chooses  ? i + sampled - r->m
                      : sampled == 1 ? 0
                                     : i; /* the state's row for the next step */
        uint32_t largest = 0;
        for (uint32_t j = 1; j < size; j++)
            largest = own[j] > own[largest] ? j : largest;
        const struct {
            const char *what;
            uint32_t got, expected;
        } words[] = {
            { "token",
              step_read_word(t, step->chooses ? p->state.chosen_tokens : p->state.tokens, next),
              largest },
            { "position", step_read_word(t, p->state.positions, next), r->positions[i] + 1 },
            { "length", step_read_word(t, p->state.lengths, next), r->lengths[i] + 1 },
        };
        for (size_t w = 0; r->is_row[i] && w < (step->chooses ? 1 : 3); w++)
            if (words[w].got != words[w].expected)
                return step_reject(t, "%s: the next %s of row %zu is %u, expected %u",
                                   step_name(t, r), words[w].what, next, words[w].got,
                                   words[w].expected);
    }
    return true;
}
