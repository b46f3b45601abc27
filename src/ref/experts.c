/* Experts: random lists like a router's, and the products of reference.h. */
#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "ref/random.h"
#include "ref/reference.h"

/* Returns a random number below limit that is not in chosen. */
static uint32_t pick_unused(const uint32_t *chosen, uint64_t count, uint64_t limit,
                            random_source *r)
{
    for (;;) {
        uint32_t number = (uint32_t)random_below(r, limit);
        uint64_t i = 0;
        while (i < count && chosen[i] != number)
            i++;
        if (i == count)
            return number;
    }
}

/* Adds a row's word to an expert's entry. Creates the entry if it is missing. */
static void add_row_word(uint32_t *list, uint64_t entry_words, uint32_t id, uint32_t word)
{
    uint32_t *entry = list + EXPERT_LIST_HEAD, *end = entry + list[0] * entry_words;
    while (entry < end && entry[EXPERT_ID] < id)
        entry += entry_words;
    if (entry == end || entry[EXPERT_ID] != id) {
        memmove(entry + entry_words, entry, (size_t)(end - entry) * sizeof *entry);
        memset(entry, 0xff, entry_words * sizeof *entry);
        entry[EXPERT_ID] = id;
        entry[EXPERT_ROWS] = 0;
        list[0]++;
    }
    entry[EXPERT_FIRST_ROW + entry[EXPERT_ROWS]++] = word;
}

/* Marks the rows that use an expert: `wanted` rows with free slots, from row first on, and all rows
 * that need every remaining expert. Returns false if there are none. */
static bool choose_rows(const problem *p, const uint64_t *free, uint64_t experts_left,
                        uint64_t wanted, uint64_t first, bool *chosen_rows)
{
    uint64_t rows = (uint64_t)p->shape.m, count = 0;
    for (uint64_t i = 0; i < rows; i++) {
        uint64_t row = (first + i) % rows;
        chosen_rows[row] = free[row] && (count < wanted || free[row] == experts_left);
        count += chosen_rows[row];
    }
    return count > 0;
}

/* Moves the expert with the most rows to the end of the list. */
static void move_fullest_last(uint32_t *list, uint64_t entry_words)
{
    uint32_t *first = list + EXPERT_LIST_HEAD, *end = first + list[0] * entry_words, *most = first;
    uint32_t moved[EXPERT_FIRST_ROW + EXPERT_MOST_ROWS];
    for (uint32_t *entry = first; entry < end; entry += entry_words)
        if (entry[EXPERT_ROWS] > most[EXPERT_ROWS])
            most = entry;
    memcpy(moved, most, entry_words * sizeof *moved);
    memmove(most, most + entry_words,
            (size_t)(end - most) * sizeof *most - entry_words * sizeof *most);
    memcpy(end - entry_words, moved, entry_words * sizeof *moved);
}

/* Kernels have different code for experts with all rows, some rows and one row. So row counts cycle
 * through these sizes, starting at random. In some lists every expert has one row, which makes long
 * lists. Missing experts are tested, though callers must not name them. */
void ref_fit_experts(const problem *p, unsigned input, void *bytes, uint64_t values)
{
    enum { FEW = 3, SIZES = 5, LONG_LISTS = 3 };
    (void)input;
    uint64_t rows = (uint64_t)p->shape.m, used = (uint64_t)p->shape.experts_used;
    uint64_t experts = (uint64_t)p->shape.experts, entry_words = EXPERT_FIRST_ROW + rows;
    uint64_t free[EXPERT_MOST_ROWS], count = 0;
    uint32_t *list = bytes, chosen[EXPERTS_USED_AT_MOST * EXPERT_MOST_ROWS];
    bool chosen_rows[EXPERT_MOST_ROWS];
    random_source r = { (uint64_t)list[0] << 32 | list[values - 1] };
    uint64_t turn = random_below(&r, SIZES);
    bool alone = random_below(&r, LONG_LISTS) == 0;
    memset(list, 0, EXPERT_LIST_HEAD * sizeof *list);
    memset(list + EXPERT_LIST_HEAD, 0xff, (values - EXPERT_LIST_HEAD) * sizeof *list);
    for (uint64_t row = 0; row < rows; row++)
        free[row] = used;
    for (;; count++) {
        const uint64_t sizes[SIZES] = { rows, 1, (rows + 1) / 2, 2, 1 + random_below(&r, rows) };
        uint64_t wanted = alone ? 1 : sizes[(turn + count) % SIZES];
        if (!choose_rows(p, free, experts - count, wanted, random_below(&r, rows), chosen_rows))
            break;
        chosen[count] = pick_unused(chosen, count, experts, &r);
        for (uint64_t row = 0; row < rows; row++)
            if (chosen_rows[row])
                add_row_word(list, entry_words, chosen[count],
                             (uint32_t)(row * used + used - free[row]--));
    }
    uint32_t *last = list + EXPERT_LIST_HEAD + (list[0] - 1) * entry_words;
    if (p->strange)
        move_fullest_last(list, entry_words);
    if (p->strange)
        last[EXPERT_ID] = random_below(&r, 2) ? UINT32_MAX : (uint32_t)experts;
    else if (rows >= FEW && last[EXPERT_ROWS] < rows)
        last[EXPERT_ID] = (uint32_t)experts;
}

/* Returns the expert of a choice, row * experts_used + slot; UINT32_MAX if it has none. */
static uint32_t expert_of(const problem *p, unsigned input, uint64_t choice)
{
    const uint32_t *list = p->inputs[input], *entry = list + EXPERT_LIST_HEAD;
    for (uint32_t i = 0; i < list[0]; i++, entry += EXPERT_FIRST_ROW + p->shape.m)
        for (uint32_t row = 0; row < entry[EXPERT_ROWS]; row++)
            if (entry[EXPERT_FIRST_ROW + row] == choice)
                return entry[EXPERT_ID];
    return UINT32_MAX;
}

enum { GATE, UP, MATRICES };

/* Returns 2, or 1 if up has no gate; its sum then takes the place of the gate's. */
static unsigned matrices_of(const problem *p)
{
    return p->options.ungated ? 1 : MATRICES;
}

/* Numbers of the inputs. Products without weights have no residual. */
typedef struct expert_inputs {
    unsigned shared, x, bias, residual, output, weights, list;
} expert_inputs;

static expert_inputs inputs_of(const problem *p, unsigned matrices, bool weighted)
{
    expert_inputs in = { .shared = matrices };
    in.x = in.shared + (p->shape.n_shared > 0 ? matrices : 0);
    in.bias = in.x + 1 + ref_beside_x(p);
    in.residual = in.bias + (p->options.bias ? matrices : 0);
    in.output = in.residual + (p->options.residual != 0);
    in.weights = in.output + (p->options.route.shared != SHARED_NONE);
    in.list = weighted ? in.weights + 1 : in.residual;
    return in;
}

/* Computes a row of gate and up, inputs `matrices` and `matrices` + 1, or of up alone. */
static ref_value gated_row(const problem *p, const expert_inputs *in, unsigned matrices,
                           uint64_t matrix_row, uint64_t bias, uint64_t row)
{
    uint64_t k = (uint64_t)p->shape.k;
    ref_value sums[MATRICES] = { { 0 }, { 1, 0 } };
    for (unsigned i = GATE; i < matrices_of(p); i++) {
        sums[i] =
            ref_dot(p, (ref_run){ matrices + i, matrix_row * k }, (ref_run){ in->x, row * k }, k);
        if (p->options.bias && matrices == GATE)
            ref_add(p, in->bias + i, bias, &sums[i]);
    }
    problem own = *p;
    own.options.limit = matrices == GATE ? p->options.limit : p->options.shared_limit;
    return ref_gated(&own, sums[GATE], sums[UP]);
}

static ref_value gate_up(const problem *p, uint64_t element)
{
    expert_inputs in = inputs_of(p, matrices_of(p), false);
    uint64_t n = (uint64_t)p->shape.n, used = (uint64_t)p->shape.experts_used;
    uint64_t of_row = used * n + (uint64_t)p->shape.n_shared;
    uint64_t row = element / of_row, within = element % of_row, slot = within / n;
    if (slot >= used)
        return gated_row(p, &in, in.shared, within - used * n, 0, row);
    uint64_t expert = expert_of(p, in.list, row * used + slot);
    if (expert >= (uint64_t)p->shape.experts)
        return (ref_value){ NAN, NAN };
    return gated_row(p, &in, GATE, expert * (uint64_t)p->shape.plane_rows + within % n,
                     expert * n + within % n, row);
}

REF_BY_ELEMENT(ref_expert_gate_up, gate_up)

/* Returns the weight of a row's slot; slot experts_used is the shared expert. */
static double weight_of(const problem *p, unsigned weights, uint64_t row, uint64_t slot)
{
    uint64_t of_row = (uint64_t)p->shape.experts_used +
                      (p->shape.n_shared > 0 || p->options.route.shared != SHARED_NONE);
    return problem_read_one(p, weights, row * of_row + slot);
}

static void add_weighted(ref_value *sum, double weight, ref_value term)
{
    double value = weight * term.value;
    sum->value += value;
    sum->magnitude += fabs(weight) * term.magnitude + ref_lost(value);
}

/* Returns the values of a row's slot; slot experts_used is the shared expert. */
static ref_run values_of(const problem *p, unsigned f, uint64_t row, uint64_t slot)
{
    uint64_t k = (uint64_t)p->shape.k, used = (uint64_t)p->shape.experts_used;
    return (ref_run){ f, row * (used * k + (uint64_t)p->shape.n_shared) + slot * k };
}

static ref_value down(const problem *p, uint64_t element)
{
    expert_inputs in = inputs_of(p, 1, true);
    uint64_t row = element / (uint64_t)p->shape.n, column = element % (uint64_t)p->shape.n;
    uint64_t shared = (uint64_t)p->shape.n_shared, used = (uint64_t)p->shape.experts_used;
    uint64_t k = (uint64_t)p->shape.k;
    ref_value sum = { 0, 0 };
    for (uint64_t slot = 0; slot < used; slot++) {
        uint64_t expert = expert_of(p, in.list, row * used + slot);
        if (expert >= (uint64_t)p->shape.experts)
            return (ref_value){ NAN, NAN };
        uint64_t w_row = expert * (uint64_t)p->shape.n + column;
        ref_value dot = ref_dot(p, (ref_run){ 0, w_row * k }, values_of(p, in.x, row, slot), k);
        if (p->options.bias)
            ref_add(p, in.bias, w_row, &dot);
        add_weighted(&sum, weight_of(p, in.weights, row, slot), dot);
    }
    if (shared)
        add_weighted(&sum, weight_of(p, in.weights, row, used),
                     ref_dot(p, (ref_run){ in.shared, column * shared },
                             values_of(p, in.x, row, used), shared));
    if (p->options.route.shared != SHARED_NONE) {
        double output = problem_read_one(p, in.output, element);
        add_weighted(&sum, weight_of(p, in.weights, row, used),
                     (ref_value){ output, fabs(output) });
    }
    ref_scale(p, &sum);
    if (p->options.residual)
        ref_add(p, in.residual, element, &sum);
    return sum;
}

REF_BY_ELEMENT(ref_expert_down, down)

/* Computes an element from W, x, factors, bias and the list. */
static ref_value product(const problem *p, uint64_t element)
{
    uint64_t k = (uint64_t)p->shape.k, n = (uint64_t)p->shape.n;
    uint64_t choice = element / n, column = element % n;
    unsigned bias = 2 + ref_beside_x(p), list = bias + (p->options.bias != 0);
    uint64_t expert = expert_of(p, list, choice);
    if (expert >= (uint64_t)p->shape.experts)
        return (ref_value){ NAN, NAN };
    uint64_t row = expert * (uint64_t)p->shape.plane_rows + column;
    ref_value dot = ref_dot(p, (ref_run){ 0, row * k }, (ref_run){ 1, choice * k }, k);
    if (p->options.bias)
        ref_add(p, bias, expert * n + column, &dot);
    return dot;
}

REF_BY_ELEMENT(ref_expert_product, product)

/* Computes an element from x, the shared expert's values, a residual and the weights. */
static ref_value weighted_sum(const problem *p, uint64_t element)
{
    uint64_t n = (uint64_t)p->shape.n, used = (uint64_t)p->shape.experts_used;
    uint64_t row = element / n, column = element % n;
    bool shared = p->options.route.shared != SHARED_NONE;
    unsigned residual = 1 + shared, weights = residual + (p->options.residual != 0);
    ref_value sum = { 0, 0 };
    for (uint64_t slot = 0; slot < used + shared; slot++) {
        double weight = problem_read_one(p, weights, row * (used + shared) + slot);
        double value = slot == used ? problem_read_one(p, 1, element)
                                    : problem_read_one(p, 0, (row * used + slot) * n + column);
        add_weighted(&sum, weight, (ref_value){ value, fabs(value) });
    }
    ref_scale(p, &sum);
    if (p->options.residual)
        ref_add(p, residual, element, &sum);
    return sum;
}

REF_BY_ELEMENT(ref_expert_sum, weighted_sum)
