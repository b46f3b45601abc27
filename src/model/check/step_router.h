/* Routers whose choice does not depend on rounding, and a test of that.
 *
 * In a random router with many experts, the last chosen expert's score is close to the next one. So
 * the rows of this router are multiples of one vector, plus some noise. With n the smaller number
 * of used and unused experts, n multiples are about 1, n about -1, and the others about 0. The sign
 * of a token's product with the vector decides its experts. The choice is close only if the product
 * is near 0; such tokens are not fed. */
#pragma once

#include "ref/random.h"
#include "model/reference/step.h"

/* Makes a layer's f32 router and its choice bias, which lifts one expert; else a no-op. */
void step_make_router(arena *a, const decoder *d, int64_t layer, void *model, ref_weights *weights,
                      random_source *r);

/* Returns true if neither arithmetic nor rounding can change an expert of the last token, which was
 * fed alone to both references. noise [layers] has the largest differences of scores so far; the
 * token's differences are added if the choice is clear. */
bool step_is_clear(const decoder *d, const ref_step *rounded, const ref_step *exact, double *noise);

/* Returns false if step_is_clear would return false by the rounded step alone. */
bool step_may_be_clear(const decoder *d, const ref_step *rounded, const double *noise);
