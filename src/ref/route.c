/* The router of a mixture of experts, in double, by sorting. If rounding errors may swap two
 * scores, their order is uncertain, and results that depend on it have infinite magnitudes. */
#include <float.h>
#include <math.h>

#include "ref/reference.h"

enum { IDS, WEIGHTS }; /* outputs; the list is the third */
enum { MOST_EXPERTS = PROBLEM_MOST_EXPERTS, MOST_USED = PROBLEM_MOST_EXPERTS_USED };
typedef ref_score score;
typedef ref_routing routed;
static const double TOLERANCE = REF_ROUTE_TOLERANCE;

/* Relative errors in units of the tolerance: a softmax's sum of some hundred exp terms and its
 * division; and the absolute error of subnormal floats. */
static const double OF_PARTS = 4, OF_SUBNORMALS = FLT_MIN / REF_ROUTE_TOLERANCE;
/* Logit difference at which p is 0 as a float. */
static const double FAR_BELOW = 110;
/* Magnitude of a logit at which p is unknown. */
static const double MOST_ERROR = 0.01 / REF_ROUTE_TOLERANCE;
/* Magnitude of an unknown p: any number from 0 to 1 is accepted, but not NaN. */
static const double IN_DOUBT = 1 / REF_ROUTE_TOLERANCE;
static const double MOST_FINITE = FLT_MAX / 4; /* larger numbers may be infinite as floats */

/* Numbers of the inputs. */
typedef struct route_inputs {
    unsigned bias, choice_bias, expert_scale, w_shared;
} route_inputs;

static route_inputs inputs_of(const problem *p)
{
    unsigned next = p->options.norm ? 3 : 2;
    route_inputs i = { 0 };
    i.bias = next;
    next += p->options.bias != 0;
    i.choice_bias = next;
    next += p->options.route.choice_bias != 0;
    i.expert_scale = next;
    next += p->options.route.expert_scale != 0;
    i.w_shared = next;
    return i;
}

static ref_value sigmoid(ref_value x)
{
    double value = 1 / (1 + exp(-x.value)), slope = value * (1 - value);
    if (x.magnitude > MOST_ERROR)
        return (ref_value){ value, x.magnitude > MOST_FINITE ? HUGE_VAL : IN_DOUBT };
    return (ref_value){ value, slope * (x.magnitude + fabs(x.value) + OF_PARTS) + 2 * value +
                                   OF_SUBNORMALS };
}

/* Computes the softmax of logits. Its error is 0 if all others are far below the largest. */
static void softmax(const ref_value *logits, unsigned count, ref_value *p)
{
    double max = -HUGE_VAL, second = -HUGE_VAL, sum = 0, of_sum = 0, most = 0;
    for (unsigned i = 0; i < count; i++) {
        second = fmax(second, fmin(max, logits[i].value));
        max = fmax(max, logits[i].value);
        most = fmax(most, logits[i].magnitude);
    }
    bool one = max - second > FAR_BELOW + 2 * TOLERANCE * most;
    for (unsigned i = 0; i < count; i++) {
        double part = exp(logits[i].value - max);
        sum += part;
        of_sum += part > 0 ? part * logits[i].magnitude : 0;
    }
    for (unsigned i = 0; i < count; i++) {
        double part = exp(logits[i].value - max) / sum, distance = fabs(logits[i].value - max);
        double off = one ? 0 : logits[i].magnitude + of_sum / sum;
        p[i].value = part;
        p[i].magnitude = most > MOST_FINITE ? HUGE_VAL
                         : off > MOST_ERROR
                             ? IN_DOUBT
                             : OF_SUBNORMALS + (part > 0 ? part * (off + distance + OF_PARTS) : 0);
    }
}

static void scale(ref_value *v, double factor)
{
    v->value *= factor;
    v->magnitude =
        v->magnitude * fabs(factor) + fabs(v->value) + (v->value != 0 ? OF_SUBNORMALS : 0);
}

static score score_of(ref_value v, unsigned number)
{
    score s = { v.value, TOLERANCE * v.magnitude, number, v.magnitude == 0 };
    if (isinf(v.value))
        s.error = 0;
    else if (isnan(s.error) || fabs(v.value) > MOST_FINITE)
        s.error = HUGE_VAL;
    return s;
}

/* Returns true if a ranks before b; surely_ranks_before: despite errors. */
static bool ranks_before(const score *a, const score *b)
{
    if (isnan(a->value) != isnan(b->value))
        return isnan(a->value);
    if (a->value > b->value || a->value < b->value)
        return a->value > b->value;
    return a->number < b->number;
}

static bool surely_ranks_before(const score *a, const score *b)
{
    bool equal = !(a->value > b->value) && !(a->value < b->value);
    if (isnan(a->value) || isnan(b->value))
        return ranks_before(a, b);
    if (equal && ((a->same_bits && b->same_bits) || isinf(a->value)))
        return a->number < b->number;
    return a->value - a->error > b->value + b->error;
}

static void sort(score *s, unsigned count)
{
    for (unsigned i = 1; i < count; i++) {
        score one = s[i];
        unsigned at = i;
        for (; at && ranks_before(&one, &s[at - 1]); at--)
            s[at] = s[at - 1];
        s[at] = one;
    }
}

/* Returns true if the first `few` certainly rank before all others. */
static bool is_set_certain(const score *s, unsigned count, unsigned few)
{
    for (unsigned i = 0; i < few; i++)
        for (unsigned j = few; j < count; j++)
            if (!surely_ranks_before(&s[i], &s[j]))
                return false;
    return true;
}

/* Returns the margin of the last of the first `few` over the next. */
static double margin_after(const score *s, unsigned count, unsigned few)
{
    return few < count ? s[few - 1].value - s[few].value : HUGE_VAL;
}

/* Keeps the experts of the best groups, by the sum of each group's two best scores. */
static void choose_groups(const problem *p, routed *r)
{
    unsigned groups = (unsigned)p->options.route.groups, experts = (unsigned)p->shape.experts;
    unsigned used = (unsigned)p->options.route.groups_used, size = experts / groups;
    score of_groups[MOST_EXPERTS], kept[MOST_EXPERTS];
    for (unsigned g = 0; g < groups; g++) {
        score members[MOST_EXPERTS];
        for (unsigned i = 0; i < size; i++)
            members[i] = r->scores[g * size + i];
        sort(members, size);
        double error = 0;
        for (unsigned i = 0; i < size; i++)
            error = fmax(error, members[i].error);
        double sum = members[0].value + members[1].value;
        of_groups[g] = score_of((ref_value){ sum, 0 }, g);
        of_groups[g].error = fmax(of_groups[g].error, 2 * error + TOLERANCE * fabs(sum));
        of_groups[g].same_bits = members[0].same_bits && members[1].same_bits;
    }
    sort(of_groups, groups);
    r->gap = margin_after(of_groups, groups, used);
    r->set_in_doubt = !is_set_certain(of_groups, groups, used);
    r->count = 0;
    for (unsigned g = 0; g < used; g++)
        for (unsigned i = 0; i < size; i++)
            kept[r->count++] = r->scores[of_groups[g].number * size + i];
    for (unsigned i = 0; i < r->count; i++)
        r->scores[i] = kept[i];
}

static void choose(const problem *p, routed *r)
{
    const route_options *o = &p->options.route;
    unsigned used = (unsigned)p->shape.experts_used, experts = (unsigned)p->shape.experts;
    bool by_logits = !o->choice_bias && !o->groups;
    for (unsigned e = 0; e < experts; e++) {
        ref_value v = by_logits ? r->logits[e] : r->p[e];
        if (o->choice_bias) {
            v.value += problem_read_one(p, inputs_of(p).choice_bias, e);
            v.magnitude += fabs(v.value);
        }
        r->by_number[e] = v.value;
        r->scores[e] = score_of(v, e);
        r->scores[e].same_bits = r->logits[e].magnitude == 0;
    }
    r->count = experts;
    r->gap = HUGE_VAL;
    r->set_in_doubt = false;
    if (o->groups)
        choose_groups(p, r);
    sort(r->scores, r->count);
    r->gap = fmin(r->gap, margin_after(r->scores, r->count, used));
    r->set_in_doubt |= !is_set_certain(r->scores, r->count, used);
    for (unsigned i = 0; i < used; i++) {
        r->slot_in_doubt[i] = r->set_in_doubt && o->groups;
        for (unsigned j = 0; j < r->count; j++)
            r->slot_in_doubt[i] |= j < i   ? !surely_ranks_before(&r->scores[j], &r->scores[i])
                                   : j > i ? !surely_ranks_before(&r->scores[i], &r->scores[j])
                                           : false;
    }
}

/* Returns the largest factor that a weight may have. */
static double most_scale(const problem *p)
{
    double most = p->options.route.expert_scale ? 0 : 1;
    for (unsigned e = 0; p->options.route.expert_scale && e < p->shape.experts; e++)
        most = fmax(most, fabs(problem_read_one(p, inputs_of(p).expert_scale, e)));
    return p->options.scale > 0 ? most * p->options.scale : most;
}

static void weigh(const problem *p, routed *r)
{
    const route_options *o = &p->options.route;
    unsigned used = (unsigned)p->shape.experts_used;
    bool chosen_alone = o->gating == GATING_SOFTMAX_OF_CHOSEN;
    ref_value chosen[MOST_USED] = { { 0 } };
    for (unsigned i = 0; i < used; i++) {
        chosen[i] = r->logits[r->scores[i].number];
        r->weights[i] = r->p[r->scores[i].number];
    }
    if (chosen_alone)
        softmax(chosen, used, r->weights);
    double sum = 0, off = 0;
    for (unsigned i = 0; i < used; i++) {
        sum += r->weights[i].value;
        off += r->weights[i].magnitude;
    }
    double divisor = sum < ROUTE_LEAST_SUM ? ROUTE_LEAST_SUM : sum;
    for (unsigned i = 0; o->normed && i < used; i++) {
        double value = r->weights[i].value / divisor;
        r->weights[i] = (ref_value){ value, r->weights[i].magnitude / divisor +
                                                value * (off / divisor + OF_PARTS) };
    }
    for (unsigned i = 0; i < used; i++) {
        if (p->options.scale > 0)
            scale(&r->weights[i], p->options.scale);
        if (o->expert_scale)
            scale(&r->weights[i],
                  problem_read_one(p, inputs_of(p).expert_scale, r->scores[i].number));
        if (r->slot_in_doubt[i] || (r->set_in_doubt && (chosen_alone || o->normed)))
            r->weights[i].magnitude = fmax(r->weights[i].magnitude, IN_DOUBT * most_scale(p));
    }
}

void ref_route(const problem *p, routed *r)
{
    unsigned experts = (unsigned)p->shape.experts;
    for (unsigned e = 0; e < experts; e++)
        r->p[e] = p->options.route.gating == GATING_SIGMOID ? sigmoid(r->logits[e]) : r->logits[e];
    if (p->options.route.gating == GATING_SOFTMAX)
        softmax(r->logits, experts, r->p);
    choose(p, r);
    weigh(p, r);
}

static ref_value number_in_doubt(double number, bool doubt)
{
    return (ref_value){ number, doubt ? HUGE_VAL : 0 };
}

static void list_experts(const problem *p, const routed *rows, ref_value *words)
{
    uint64_t m = (uint64_t)p->shape.m, used = (uint64_t)p->shape.experts_used;
    uint64_t experts = (uint64_t)p->shape.experts, entry = EXPERT_LIST_HEAD, entries = 0;
    uint64_t room = (uint64_t)problem_experts_listed(&p->shape);
    bool doubt = false;
    for (uint64_t v = 0; v < m; v++)
        doubt |= rows[v].set_in_doubt;
    for (unsigned e = 0; e < experts; e++) {
        uint64_t count = 0;
        for (uint64_t v = 0; v < m; v++)
            for (uint64_t slot = 0; slot < used; slot++)
                if (rows[v].scores[slot].number == e)
                    words[entry + EXPERT_FIRST_ROW + count++] = number_in_doubt(
                        (double)(v * used + slot), doubt || rows[v].slot_in_doubt[slot]);
        if (!count)
            continue;
        words[entry] = number_in_doubt(e, doubt);
        words[entry + 1] = number_in_doubt((double)count, doubt);
        for (; count < m; count++)
            words[entry + EXPERT_FIRST_ROW + count] = number_in_doubt(UINT32_MAX, doubt);
        entry += EXPERT_FIRST_ROW + m;
        entries++;
    }
    for (unsigned i = 0; i < EXPERT_LIST_HEAD; i++)
        words[i] = i ? number_in_doubt(0, false) : number_in_doubt((double)entries, doubt);
    for (; entries < room; entries++)
        for (uint64_t i = 0; i < EXPERT_FIRST_ROW + m; i++)
            words[entry++] = number_in_doubt(i == 1 ? 0 : UINT32_MAX, doubt);
}

void ref_moe_route(const problem *p, unsigned output, uint64_t first, uint64_t count,
                   ref_value *values)
{
    uint64_t used = (uint64_t)p->shape.experts_used, m = (uint64_t)p->shape.m;
    uint64_t weights = used + (p->options.route.shared != SHARED_NONE);
    arena *a = arena_new();
    routed *rows = arena_alloc(a, m * sizeof *rows);
    uint64_t entries = (uint64_t)problem_experts_listed(&p->shape);
    ref_value *words =
        arena_alloc(a, (EXPERT_LIST_HEAD + entries * (EXPERT_FIRST_ROW + m)) * sizeof *words);
    uint64_t of_row = output == IDS ? used : output == WEIGHTS ? weights : 0;
    for (uint64_t v = 0; v < m; v++) {
        if (of_row && (v < first / of_row || v > (first + count - 1) / of_row))
            continue;
        for (unsigned e = 0; e < p->shape.experts; e++) {
            rows[v].logits[e] = ref_dot_row(p, 0, e, 1, v);
            if (p->options.route.logit_scale > 0)
                scale(&rows[v].logits[e], p->options.route.logit_scale);
            if (p->options.bias)
                ref_add(p, inputs_of(p).bias, e, &rows[v].logits[e]);
        }
        ref_route(p, &rows[v]);
        if (p->options.route.shared == SHARED_PLAIN)
            rows[v].weights[used] = (ref_value){ 1, 0 };
        if (p->options.route.shared == SHARED_GATED)
            rows[v].weights[used] = sigmoid(ref_dot_row(p, inputs_of(p).w_shared, 0, 1, v));
        if (p->options.route.shared_scale > 0)
            scale(&rows[v].weights[used], p->options.route.shared_scale);
    }
    if (output > WEIGHTS)
        list_experts(p, rows, words);
    for (uint64_t i = 0; i < count; i++) {
        uint64_t at = first + i;
        if (output == IDS)
            values[i] = number_in_doubt(rows[at / used].scores[at % used].number,
                                        rows[at / used].slot_in_doubt[at % used]);
        else if (output == WEIGHTS)
            values[i] = rows[at / weights].weights[at % weights];
        else
            values[i] = words[at];
    }
    arena_free(a);
}
