/* The caches of sequences: growing lists of rows of K and V, or of latents, from the sequence's
 * start on; for a recurrence a state and the last inputs. */
#include <string.h>

#include "model/reference/step_call.h"

enum { K, V };

uint64_t ref_cached_values(const decoder *d, const ref_cached *which)
{
    if (which->recurrent)
        return which->values ? decoder_channels(d) : decoder_state_values(d);
    return (uint64_t)(d->latent ? d->latent + d->rope[0].dims : d->at[which->layer].head_dim);
}

/* Returns the rows of K, or of V, per position. */
static uint64_t heads_of(const decoder *d, int64_t layer)
{
    return d->latent ? 1 : (uint64_t)d->at[layer].num_kv_heads;
}

ref_step *ref_step_new(arena *a, const decoder *d, ref_weights *weights, void *user)
{
    ref_step *s = arena_alloc(a, sizeof *s);
    *s = (ref_step){ .arena = a, .d = d, .weights = weights, .user = user, .m = 1 };
    recurrent_sizes *sizes = &s->sizes;
    sizes->channels = decoder_channels(d);
    sizes->state = decoder_state_values(d);
    sizes->states = decoder_state_heads(d) * sizes->state;
    sizes->all = sizes->states + DELTA_RING * sizes->channels;
    s->sequences = arena_zalloc(a, (size_t)d->sequences * sizeof *s->sequences);
    for (int64_t i = 0; i < d->sequences; i++) {
        sequence *q = &s->sequences[i];
        q->rows = arena_zalloc(a, (size_t)d->layers * 2 * sizeof *q->rows);
        q->states = arena_zalloc(a, (size_t)d->layers * sizeof *q->states);
        q->saved = arena_zalloc(a, (size_t)d->layers * sizeof *q->saved);
        for (int64_t layer = 0; layer < d->layers; layer++)
            if (d->at[layer].recurs) {
                q->states[layer] = arena_zalloc(a, s->sizes.all * sizeof(double));
                q->saved[layer] = arena_zalloc(a, s->sizes.all * sizeof(double));
            }
    }
    return s;
}

/* Returns the address of a head's state, or of the inputs at a position. */
static double *state_of(const ref_step *s, const ref_cached *which)
{
    double *states = s->sequences[which->sequence].states[which->layer];
    if (which->values)
        return states + s->sizes.states + which->position % DELTA_RING * s->sizes.channels;
    return states + (uint64_t)which->kv_head * s->sizes.state;
}

static void read_earlier_state(ref_step *s, const ref_cached *which)
{
    const sequence *q = &s->sequences[which->sequence];
    uint64_t count = ref_cached_values(s->d, which);
    arena *a = arena_new_in(s->arena);
    float *values = arena_alloc(a, count * sizeof *values);
    double *state = state_of(s, which);
    q->earlier(q->user, which, values);
    for (uint64_t i = 0; i < count; i++)
        state[i] = (double)values[i];
    arena_free(a);
}

void ref_step_start(ref_step *s, int64_t number, uint64_t positions, ref_earlier *earlier,
                    void *user)
{
    sequence *q = &s->sequences[number];
    ref_cached which = { .sequence = number };
    q->begin = q->length = q->before = positions;
    q->earlier = earlier;
    q->user = user;
    for (which.layer = 0; which.layer < s->d->layers; which.layer++) {
        if (!s->d->at[which.layer].recurs)
            continue; /* a recurrence needs its state and the last inputs */
        memset(q->states[which.layer], 0, s->sizes.all * sizeof(double));
        for (uint64_t back = 1; back < (uint64_t)decoder_taps(s->d) && back <= positions; back++) {
            which = (ref_cached){ number, which.layer, 0, positions - back, true, true };
            read_earlier_state(s, &which);
        }
        for (uint64_t head = 0; positions && head < decoder_state_heads(s->d); head++) {
            which = (ref_cached){ number, which.layer, (int64_t)head, positions - 1, false, true };
            read_earlier_state(s, &which);
        }
    }
}

void call_assign_positions(call *c)
{
    const decoder *d = c->s->d;
    for (int64_t i = 0; i < d->sequences; i++) {
        sequence *q = &c->s->sequences[i];
        q->before = q->length;
        for (int64_t layer = 0; layer < d->layers; layer++)
            if (d->at[layer].recurs)
                memcpy(q->saved[layer], q->states[layer], c->s->sizes.all * sizeof(double));
    }
    for (size_t i = 0; i < c->count; i++) {
        sequence *q = &c->s->sequences[c->rows[i].sequence];
        c->positions[i] = q->length++;
        if (q->length - q->begin <= q->room)
            continue;
        uint64_t room = q->room ? 2 * q->room : 16;
        for (int64_t part = 0; part < 2 * d->layers; part++) {
            const ref_cached any = { .layer = part / 2 };
            if (!decoder_has_part(d, PART_KV, any.layer) || (d->latent && part % 2 == V))
                continue;
            uint64_t values = heads_of(d, any.layer) * ref_cached_values(d, &any);
            size_t size = (size_t)values * sizeof(double);
            double *rows = arena_alloc(c->s->arena, room * size);
            if (q->room)
                memcpy(rows, q->rows[part], q->room * size);
            q->rows[part] = rows;
        }
        q->room = room;
    }
}

void ref_step_undo(ref_step *s)
{
    for (int64_t i = 0; i < s->d->sequences; i++) {
        sequence *q = &s->sequences[i];
        q->length = q->before;
        for (int64_t layer = 0; layer < s->d->layers; layer++)
            if (s->d->at[layer].recurs)
                memcpy(q->states[layer], q->saved[layer], s->sizes.all * sizeof(double));
    }
}

static double *fed_row(const ref_step *s, const ref_cached *which)
{
    const sequence *q = &s->sequences[which->sequence];
    uint64_t row =
        (which->position - q->begin) * heads_of(s->d, which->layer) + (uint64_t)which->kv_head;
    return q->rows[2 * which->layer + (which->values ? V : K)] +
           row * ref_cached_values(s->d, which);
}

double *call_cache_row(const call *c, size_t token, int64_t kv_head, bool values)
{
    const ref_cached which = { .sequence = c->rows[token].sequence,
                               .layer = c->layer,
                               .kv_head = kv_head,
                               .position = c->positions[token],
                               .values = values };
    return fed_row(c->s, &which);
}

double *call_states(const call *c, size_t token)
{
    return state_of(c->s, &(ref_cached){ c->rows[token].sequence, c->layer, 0, 0, false, true });
}

double *call_inputs(const call *c, size_t token, uint64_t position)
{
    return state_of(c->s,
                    &(ref_cached){ c->rows[token].sequence, c->layer, 0, position, true, true });
}

void ref_step_cached(const ref_step *s, const ref_cached *which, double *row)
{
    const sequence *q = &s->sequences[which->sequence];
    uint64_t count = ref_cached_values(s->d, which);
    float earlier[PROBLEM_MOST_CACHED];
    if (which->recurrent) {
        memcpy(row, state_of(s, which), count * sizeof *row);
        return;
    }
    if (which->position >= q->begin) {
        memcpy(row, fed_row(s, which), count * sizeof *row);
        return;
    }
    q->earlier(q->user, which, earlier);
    for (uint64_t i = 0; i < count; i++)
        row[i] = (double)earlier[i];
}
