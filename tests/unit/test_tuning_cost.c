/* The table behind variant = auto against the cost model: for the matrices of real models, on the
 * GPU that the model knows of each target. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>

#include "cost.h"
#include "gen/formula.h"
#include "gen/tuning.h"

typedef struct shape {
    int64_t k, n;
} shape;

/* Attention, feed-forward and vocabulary matrices of models of 0.6, 1, 1.5, 3, 4, 7, 8, 32, 70 and
 * 405 billion weights. */
static const shape shapes[] = {
    { 1024, 1024 },  { 1024, 3072 },   { 1024, 4096 },   { 256, 1024 },     { 512, 4096 },
    { 2048, 2048 },  { 2048, 512 },    { 2048, 8192 },   { 8192, 2048 },    { 2048, 128256 },
    { 1536, 1536 },  { 1536, 256 },    { 1536, 8960 },   { 8960, 1536 },    { 1536, 151936 },
    { 3072, 3072 },  { 3072, 1024 },   { 3072, 8192 },   { 8192, 3072 },    { 3072, 128256 },
    { 2560, 2560 },  { 2560, 1024 },   { 2560, 9728 },   { 9728, 2560 },    { 2560, 151936 },
    { 3584, 3584 },  { 3584, 512 },    { 3584, 18944 },  { 18944, 3584 },   { 3584, 152064 },
    { 4096, 4096 },  { 4096, 1024 },   { 4096, 14336 },  { 14336, 4096 },   { 4096, 128256 },
    { 5120, 5120 },  { 5120, 1024 },   { 5120, 25600 },  { 25600, 5120 },   { 5120, 151936 },
    { 8192, 8192 },  { 8192, 1024 },   { 8192, 28672 },  { 28672, 8192 },   { 8192, 128256 },
    { 4096, 128 },   { 8192, 128 },    { 8192, 256 },    { 4096, 512 },     { 16384, 16384 },
    { 16384, 2048 }, { 16384, 53248 }, { 53248, 16384 }, { 16384, 128256 },
};

enum { MAX_FAMILIES = 3 };
typedef struct group {
    const char *plain;
    double slack; /* times as fast another kernel may be: the more, the fewer rows */
    const char *families[MAX_FAMILIES];
} group;

static const group groups[] = {
    { "q4k_gemv", 1.1, { "vectorized_q4k_gemv", "mwv_q4k_gemv", "stream_q4k_gemv" } },
    { "q6k_gemv", 1.1, { "q6k_gemv", "mwv_q6k_gemv", "stream_q6k_gemv" } },
    { "q8_0_gemv", 1.3, { "q8_0_gemv", "stream_q8_0_gemv" } },
    { "q5_0_gemv", 1.3, { "q5_0_gemv", "stream_q5_0_gemv" } },
    { "q4_0_gemv", 1.3, { "q4_0_gemv", "stream_q4_0_gemv" } },
};

/* What auto may take for a plain family's shape on a GPU: seconds by the model. */
typedef struct choice_times {
    instance chosen;
    double time, best_exact, best, slack;
} choice_times;

/* Blocks that stay for many rows come in twos for an SM, and the second of two that do not fit
 * would only begin when the first has ended. */
static bool fits(const instance *in, const cost_gpu *gpu)
{
    const launch *l = &in->family->launch;
    if (!l->rows)
        return true;
    const cost_figures *f = cost_find(in->family->name, gpu->target->sm);
    size_t shared = f->shared + (size_t)formula_value(l->dynamic_shared, in, NULL);
    unsigned threads = (unsigned)formula_value(l->block, in, NULL);
    return target_blocks_per_sm(gpu->target, threads, f->registers, shared) >= 2;
}

static double seconds(arena *a, const instance *in, const cost_gpu *gpu)
{
    return cost_predict(a, cost_find(in->family->name, gpu->target->sm), in, gpu).total;
}

/* The least time of a family with any usual number of warps and rows, each warp of a row having two
 * super-blocks at least. */
static double fastest(arena *a, const family *f, shape s, const cost_gpu *gpu)
{
    enum { WARP_VALUES = 512 };
    static const int64_t warps[] = { 1, 2, 4, 8, 12 };
    double least = INFINITY;
    for (size_t i = 0; i < sizeof warps / sizeof *warps; i++)
        for (int64_t rows = 1; rows <= 2; rows++) {
            instance in = { .family = f };
            for (const key *k = f->keys; k->name; k++)
                instance_set(&in, k, key_default(k));
            in.shape.k = s.k;
            in.shape.n = s.n;
            in.num_warps = warps[i];
            in.rows_per_warp = rows;
            bool shares_rows = !family_key(f, "rows_per_warp") && warps[i] > 1;
            bool has_work = !shares_rows || s.k >= warps[i] * WARP_VALUES;
            if (has_work && fits(&in, gpu))
                least = fmin(least, seconds(a, &in, gpu));
        }
    return least;
}

static choice_times times_of(arena *a, const group *g, shape s, int64_t precision,
                             const cost_gpu *gpu)
{
    instance asked = { .family = family_find(families, g->plain),
                       .variant = VARIANT_AUTO,
                       .precision = precision,
                       .shape = { .k = s.k, .n = s.n } };
    choice_times c = { .chosen = tuning_choose(&asked, gpu->target),
                       .best_exact = INFINITY,
                       .best = INFINITY,
                       .slack = g->slack };
    c.time = seconds(a, &c.chosen, gpu);
    for (size_t i = 0; i < MAX_FAMILIES && g->families[i]; i++) {
        const family *f = family_find(families, g->families[i]);
        double time = fastest(a, f, s, gpu);
        c.best = fmin(c.best, time);
        if (!f->quantizes)
            c.best_exact = fmin(c.best_exact, time);
    }
    return c;
}

/* Calls visit for all plain families, GPUs and shapes. */
static void for_all(int64_t precision, void (*visit)(const choice_times *c, const char *gpu))
{
    arena *a = arena_new();
    for (size_t g = 0; g < sizeof groups / sizeof *groups; g++)
        for (size_t t = 0; t < target_count; t++) {
            cost_gpu gpu;
            if (!cost_gpu_of(&targets[t], &gpu))
                continue;
            for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++) {
                choice_times c = times_of(a, &groups[g], shapes[s], precision, &gpu);
                visit(&c, target_part(&targets[t])->name);
            }
        }
    arena_free(a);
}

static void fail_choice(const choice_times *c, const char *gpu, double other)
{
    const instance *in = &c->chosen;
    fail_msg("%s, k = %lld, n = %lld: %s with %lld warps %.2f us, another %.2f us", gpu,
             (long long)in->shape.k, (long long)in->shape.n, in->family->name,
             (long long)in->num_warps, c->time * 1e6, other * 1e6);
}

static void near_the_best(const choice_times *c, const char *gpu)
{
    if (c->time > c->slack * c->best)
        fail_choice(c, gpu, c->best);
}

static void near_the_best_exact_one(const choice_times *c, const char *gpu)
{
    if (c->time > c->slack * c->best_exact)
        fail_choice(c, gpu, c->best_exact);
}

static void worth_rounding(const choice_times *c, const char *gpu)
{
    if (c->chosen.family->quantizes && c->best_exact < 1.05 * c->time)
        fail_choice(c, gpu, c->best_exact);
}

static void nothing_is_much_faster_than_what_is_chosen(void **state)
{
    (void)state;
    for_all(PRECISION_Q8, near_the_best);
}

static void nothing_exact_is_much_faster_than_what_is_chosen_with_f32(void **state)
{
    (void)state;
    for_all(PRECISION_F32, near_the_best_exact_one);
}

static void what_rounds_saves_a_twentieth_at_least(void **state)
{
    (void)state;
    for_all(PRECISION_Q8, worth_rounding);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_is_much_faster_than_what_is_chosen),
        cmocka_unit_test(nothing_exact_is_much_faster_than_what_is_chosen_with_f32),
        cmocka_unit_test(what_rounds_saves_a_twentieth_at_least),
    };
    return cmocka_run_group_tests_name("tuning_cost", tests, NULL, NULL);
}
