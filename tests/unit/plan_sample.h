/* Builds plans for tests of their launches and costs. */
#ifndef PTXGEN_TESTS_PLAN_SAMPLE_H
#define PTXGEN_TESTS_PLAN_SAMPLE_H

#include "test_arena.h"
#include "diags_text.h"
#include "decoder_sample.h"
#include "model/plan/plan.h"
#include "model/plan_cost.h"

/* Returns the plan of a section for a target, with integer products on tensor cores for up to 64 rows.
 * Returns NULL if there is no plan; d has the reason. */
static inline plan *plan_of(arena *a, const char *text, const char *target_name,
                            const plan_model *model, diags *d)
{
    const target *wanted = target_find(target_name);
    decoder *of = arena_zalloc(a, sizeof *of);
    location where = { .file = "spec.ini", .line = 1 };
    bool right = parse_decoder(a, text, of, d);
    memset(of->bytes_for, BYTES_FOR_FEW | BYTES_FOR_SOME, sizeof of->bytes_for);
    return right ? plan_make(a, of, where, &wanted, 1, model, d) : NULL;
}

/* Returns the plan of a section for a target. Fails the test if there is none. */
static inline plan *modelled_plan(arena *a, const char *text, const char *target_name,
                                  const plan_model *model)
{
    diags d = diags_new(a);
    plan *made = plan_of(a, text, target_name, model, &d);
    if (!made)
        fail_msg("%s: %s", text, diags_text(a, &d));
    return made;
}

static inline plan *right_plan(arena *a, const char *text, const char *target_name)
{
    return modelled_plan(a, text, target_name, &cost_model);
}

#endif
