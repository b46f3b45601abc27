/* Routers whose choice does not depend on rounding, and the test that it does not.
 *
 * In a random router with many experts, the score of the last chosen expert is close to that of the
 * next one. So the rows of a router are multiples of one vector, with some noise: about 1 for as
 * many experts as a token uses (or does not use, if these are fewer), -1 for as many, about 0 for
 * the others. The sign of a token's product with that vector decides which experts it gets. The
 * choice is close only if that product is near 0; such tokens are not fed.
 */
#ifndef PTXGEN_MODEL_CHECK_STEP_ROUTER_H
#define PTXGEN_MODEL_CHECK_STEP_ROUTER_H

#include "ref/random.h"
#include "model/reference/step.h"

/* Makes such a router for a layer that has one of floats, and its choice bias, which lifts one
 * expert above all. */
void step_make_router(arena *a, const decoder *d, int64_t layer, void *model, ref_weights *weights,
                      random_source *r);

/* Returns true if neither arithmetic nor rounding might change an expert of the last token, which
 * was fed alone to two references, one of which rounds nothing. noise [layers] has the largest
 * differences of scores so far. The token's differences are added to it if the choice is clear. */
bool step_is_clear(const decoder *d, const ref_step *rounded, const ref_step *exact, double *noise);

/* Returns false if the rounded step alone shows that step_is_clear would return false: then the
 * exact step need not be run. */
bool step_may_be_clear(const decoder *d, const ref_step *rounded, const double *noise);

#endif
