#include "cost/cost.h"

#include <math.h>
#include <string.h>

#include "cost/measured.h"
#include "kernel/formula.h"

/* Round trips of the last block, which merges the results of the others: for the counter, the
 * addresses of the results, and the results. */
enum { MERGE_TRIPS = 3 };

static const double MEGA = 1e6, GIGA = 1e9;

/* Counted figures and their number of vectors. */
typedef struct counted_at {
    const cost_figures *figures; /* NULL: none */
    unsigned m;
} counted_at;

/* Returns true if figures a are a better match than b: for a newer target, or for a target-specific
 * kernel, or on the same target and the same side of m for a number of vectors closer to m. */
static bool is_nearer(const counted_at *a, const counted_at *b, unsigned m)
{
    if (!b->figures || a->figures->sm != b->figures->sm)
        return !b->figures || a->figures->sm > b->figures->sm;
    if (a->figures->specific != b->figures->specific)
        return a->figures->specific;
    return a->m <= m ? a->m > b->m : a->m < b->m;
}

static double between(double low, double high, double share)
{
    return low + (high - low) * share;
}

/* Interpolates figures that depend on the number of vectors. Equal values stay exactly equal. */
static void set_between(cost_figures *f, const cost_figures *low, const cost_figures *high,
                        double share)
{
    f->instructions = between(low->instructions, high->instructions, share);
    f->beside = between(low->beside, high->beside, share);
    f->in_flight = between(low->in_flight, high->in_flight, share);
    f->products = between(low->products, high->products, share);
    f->shared_bytes = between(low->shared_bytes, high->shared_bytes, share);
    f->x_bytes = between(low->x_bytes, high->x_bytes, share);
    f->l1_clocks = between(low->l1_clocks, high->l1_clocks, share);
}

bool cost_has_expert_tiles(const instance *in)
{
    return operation_is_of_experts(in->family->op) && family_key(in->family, "tile");
}

/* Returns true if each block multiplies only some of the rows of x. */
static bool splits_rows(const instance *in)
{
    return in->family->block_rows && !operation_is_of_experts(in->family->op);
}

unsigned cost_vectors(const instance *in)
{
    const char *of_kernel = cost_has_expert_tiles(in) ? "tile_rows"
                            : splits_rows(in)         ? "vectors"
                                                      : in->family->cache_heads;
    return (unsigned)(of_kernel ? formula_value(of_kernel, in, NULL) : in->shape.m);
}

double cost_row_groups(const instance *in, int64_t rows)
{
    double groups = in->rows_mode == ROWS_RUN_TIME ? ceil((double)rows / (double)in->shape.m) : 1;
    return groups * (splits_rows(in) ? ceil((double)in->shape.m / cost_vectors(in)) : 1);
}

/* Finds the figures of a family with the instance's weights for a target, or for the newest counted
 * target before it. Target-specific figures match only their own target. Interpolates between two
 * counted numbers of vectors. */
static bool find_counted(const instance *in, const target *t, cost_figures *found)
{
    counted_at below = { NULL, 0 }, above = { NULL, 0 }; /* with at most m vectors; with more */
    format weights = instance_weights(in);
    unsigned m = cost_vectors(in);
    const char *name = in->family->counted_as ? in->family->counted_as : in->family->name;
    for (const cost_row *row = cost_table; row->family; row++) {
        if (row->weights != weights || strcmp(row->family, name) != 0)
            continue;
        counted_at one = { NULL, row->m };
        for (const cost_figures *f = row->figures; f->sm; f++)
            if (f->specific ? t->specific && f->sm == t->sm : f->sm <= t->sm)
                one.figures = f;
        counted_at *side = one.m <= m ? &below : &above;
        if (one.figures && is_nearer(&one, side, m))
            *side = one;
    }
    const cost_figures *low = below.figures, *high = above.figures;
    if (!low && !high)
        return false;
    *found = low ? *low : *high;
    if (!low || !high || below.m == m)
        return true;
    *found = *high;
    set_between(found, low, high, (double)(m - below.m) / (above.m - below.m));
    return true;
}

/* Updates an average of figures: `of` has the weight share, sum the rest. */
static void add_share(cost_figures *sum, const cost_figures *of, double share)
{
    sum->sm = of->sm > sum->sm ? of->sm : sum->sm;
    sum->specific |= of->specific;
    sum->registers = of->registers > sum->registers ? of->registers : sum->registers;
    sum->shared = of->shared > sum->shared ? of->shared : sum->shared;
    sum->load_bytes = between(sum->load_bytes, of->load_bytes, share);
    sum->unit_bytes = between(sum->unit_bytes, of->unit_bytes, share);
    sum->turn = between(sum->turn, of->turn, share);
    set_between(sum, sum, of, share);
}

bool cost_find(const instance *in, const target *t, cost_figures *found)
{
    const char *each = in->family->each_matrix;
    bool counted = find_counted(in, t, found), one_format = true;
    unsigned matrices = 0; /* number of matrices that may have different formats */
    for (const param *p = in->family->params; p->name; p++)
        matrices = p->matrix > matrices ? p->matrix : matrices;
    for (unsigned i = 1; i < matrices; i++)
        one_format &= in->weights_of[i] == in->weights_of[0] || !instance_matrix(in, i).shape.n;
    if (!each || (counted && one_format))
        return counted;
    if (!matrices) {
        instance one = *in;
        one.family = family_find(families, each);
        return find_counted(&one, t, found);
    }
    *found = (cost_figures){ 0 };
    double rows = 0; /* all matrices have the same number of columns */
    for (unsigned i = 0; i < matrices; i++) {
        instance one = instance_matrix(in, i);
        cost_figures figures;
        if (!one.shape.n)
            continue;
        one.family = family_find(families, each);
        if (!find_counted(&one, t, &figures))
            return false;
        rows += (double)one.shape.n;
        add_share(found, &figures, (double)one.shape.n / rows);
    }
    return true;
}

cost_gpu cost_gpu_of_part(const target *t, const gpu_part *part)
{
    static const struct {
        const char *part;
        double share; /* achievable fraction of the published bandwidth, from measured.tsv */
    } measured[] = { COST_READ_SHARES };
    double share = COST_READ_SHARE;
    for (size_t i = 0; i < sizeof measured / sizeof *measured; i++)
        if (strcmp(measured[i].part, part->name) == 0)
            share = measured[i].share;
    return (cost_gpu){ t,
                       part->sm_count,
                       part->clock_mhz * MEGA,
                       part->bandwidth_gbps * GIGA * share,
                       part->tensor_fmas,
                       t->specific ? part->wgmma_fmas : 0,
                       part->byte_fmas };
}

cost_gpu cost_gpu_of(const target *t)
{
    const gpu_part *part = target_part(t);
    for (const target *older = t; !part && older > targets; older--)
        part = target_part(older - 1);
    return cost_gpu_of_part(t, part);
}

static double value_bytes(format f)
{
    return (double)formats[f].block_bytes / formats[f].block_values;
}

double cost_experts(const problem_shape *s)
{
    double all = (double)s->experts, of_row = (double)s->experts_used;
    return all * (1 - pow(1 - of_row / all, (double)s->m));
}

double cost_expert_tiles(const instance *in)
{
    const problem_shape *s = &in->shape;
    double of_tile = (double)formula_value("at_once", in, NULL), tiles = 0, all = (double)s->m;
    double chance = (double)s->experts_used / (double)s->experts;
    for (double rows = 1; rows <= all; rows++) {
        double ways = lgamma(all + 1) - lgamma(rows + 1) - lgamma(all - rows + 1);
        double chance_of_rows = exp(ways + rows * log(chance)) * pow(1 - chance, all - rows);
        tiles += chance_of_rows * ceil(rows / of_tile);
    }
    return tiles * (double)s->experts;
}

double cost_touched(const instance *in, const param *p)
{
    const problem_shape *s = &in->shape;
    double values = (double)formula_value(p->values, in, NULL);
    if (p->touched)
        return (double)formula_value(p->touched, in, NULL) * (p->by_expert      ? cost_experts(s)
                                                              : p->touched_once ? 1.0
                                                                                : (double)s->m);
    if (p->data == DATA_CACHE && p->kind == PARAM_OUT)
        return (double)(s->m * problem_cache_heads(s) * problem_cache_values(s));
    return values;
}

cost_work cost_work_of_rows(arena *a, const instance *planned, int64_t rows)
{
    instance fixed = *planned;
    const instance *in = &fixed;
    fixed.rows_mode = ROWS_FIXED;
    fixed.shape.m = rows;
    cost_work work = { .rows = rows };
    param params[MAX_PARAMS];
    size_t count = instance_params(a, in, params);
    double largest_input = 0;
    bool has_numbers = false, has_counters = false;
    format weights = instance_weights(in);
    /* Each query head loads a cache value, or a block loads it for several heads. */
    double loads = (double)in->shape.num_heads / (double)problem_cache_heads(&in->shape);
    if (in->family->cache_heads)
        loads = ceil(loads / cost_vectors(in));
    for (size_t i = 0; i < count; i++) {
        const param *p = &params[i];
        has_counters |= p->data == DATA_ZEROED;
        if (p->kind == PARAM_U32 || p->kind == PARAM_SCRATCH || p->order == ORDER_FETCHED)
            continue;
        double values = cost_touched(in, p);
        format f = p->format;
        has_numbers |= p->kind == PARAM_IN && f == FORMAT_U32;
        work.bytes += values * value_bytes(f);
        if (p->kind == PARAM_IN && values > largest_input)
            largest_input = values;
        bool may_be_x = f == in->family->activations && work.units > 0;
        if (p->data == DATA_UPDATED)
            work.units += values;
        else if (p->data == DATA_CACHE && p->kind == PARAM_IN)
            work.units += values * loads;
        else if (p->kind == PARAM_IN && (p->matrix || f == weights) && f != FORMAT_NONE &&
                 !may_be_x)
            work.units += values;
        if (work.units > 0 && work.unit_bytes <= 0)
            work.unit_bytes = value_bytes(f);
    }
    if (work.units <= 0) {
        work.units = largest_input;
        work.unit_bytes = value_bytes(FORMAT_F32);
    }
    if (cost_has_expert_tiles(in))
        work.units *= cost_expert_tiles(in) / cost_experts(&in->shape);
    work.units *= cost_row_groups(planned, rows);
    /* Lengths, positions and sequences arrive together; the numbers of pages follow them. */
    work.first_trips = has_numbers && !in->family->launch.loads_at_once ? 1 : 0;
    if (in->options.page)
        work.first_trips++;
    /* If all positions are one chunk of a fixed size, there is no merge. */
    int64_t positions = in->shape.max_seq_len, window = in->options.window;
    if (window && window < positions)
        positions = window;
    bool free = family_key(in->family, "chunking") && in->chunking == CHUNKING_FREE;
    bool merges = free || positions > in->shape.chunk_size;
    work.last_trips = has_counters && merges ? MERGE_TRIPS : 0;
    return work;
}

cost_work cost_work_of(arena *a, const instance *in)
{
    return cost_work_of_rows(a, in, in->shape.m);
}
