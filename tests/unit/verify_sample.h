/* Small decoders for verification of their steps, with plans that tests may corrupt. */
#ifndef PTXGEN_TESTS_VERIFY_SAMPLE_H
#define PTXGEN_TESTS_VERIFY_SAMPLE_H

#include <string.h>

#include "test_arena.h"
#include "diags_text.h"
#include "model/check/verify_model.h"
#include "check/verify_set.h"
#include "kernel/generate.h"
#include "model/storey.h"
#include "input/spec.h"

#define HEAD  "[ptxgen]\nprefix = t\ntargets = sm_80\n[decoder]\n"
#define SMALL "hidden = 64\nff = 96\nnum_heads = 4\nnum_kv_heads = 2\nhead_dim = 32\nvocab = 96\n"

typedef struct made {
    spec spec;
    kernel_set set;
    decoder decoder; /* a copy that the test may change, like plan */
    plan plan;
} made;

static inline void make_by(arena *a, const char *text, const upper_storey *storey, made *m)
{
    diags d = diags_new(a);
    if (!spec_parse(a, "spec.ini", text, strlen(text), families, storey, NULL, &m->spec, &d) ||
        !generate_kernels(a, &m->spec, &m->set, &d))
        fail_msg("%s", diags_text(a, &d));
    m->decoder = *m->set.plan->decoder;
    m->plan = *m->set.plan;
    m->plan.decoder = &m->decoder;
}

static inline void make(arena *a, const char *text, made *m)
{
    make_by(a, text, &model_storey, m);
}

static inline step_result run(arena *a, const made *m)
{
    return verify_step(a, &m->plan, m->set.targets, m->set.target_count, m->set.kernels,
                       m->set.kernel_count, 1, verify_orders(&m->plan), 1);
}

/* Verifies the plan with all layers, each numbered as in the model. */
static inline step_result run_plan(arena *a, const made *m)
{
    chosen_layers all = { .count = m->decoder.layers };
    for (int64_t i = 0; i < all.count; i++)
        all.numbers[i] = i;
    return verify_plan(a, &m->plan, &all, m->set.kernels, m->set.kernel_count, 1,
                       verify_orders(&m->plan), 1);
}

static inline void assert_finds(arena *a, const made *m, const char *words)
{
    step_result r = run_plan(a, m);
    if (r.right || !strstr(r.message, words))
        fail_msg("'%s' is not in '%s'", words, r.right ? "right" : r.message);
}

/* Finds a launch of the one-token step whose description contains said. */
static inline plan_launch *find_launch(const made *m, int64_t layer, const char *said)
{
    const plan_step *step = &m->plan.steps[0];
    for (size_t i = 0; i < step->launch_count; i++)
        if (step->launches[i].layer == layer && strstr(step->launches[i].said, said))
            return &step->launches[i];
    fail_msg("no launch's description contains '%s'", said);
    return NULL;
}

static inline plan_argument *find_argument(arena *a, const made *m, plan_launch *l,
                                           const char *name)
{
    param params[MAX_PARAMS];
    size_t count = instance_params(a, &m->plan.kernels[l->kernel], params);
    for (size_t i = 0; i < count; i++)
        if (strcmp(params[i].name, name) == 0)
            return &l->arguments[i];
    fail_msg("no parameter is named %s", name);
    return NULL;
}

static inline void swap(plan_argument *x, plan_argument *y)
{
    plan_argument kept = *x;
    *x = *y;
    *y = kept;
}

#endif
