/* Routers whose choice does not hang on rounding, and whether it does.
 *
 * Of any random router the scores of the last chosen expert and the first that is not are close
 * where there are many experts. So here the rows of a router are multiples of one vector, and some
 * noise: of as many experts as are used (or are not, where these are fewer) about 1, of as many -1,
 * of the others about 0. A token has the former or the latter, as its product with that vector has
 * one sign or the other, and it is close only where that product is near 0. Tokens where it is are
 * not fed.
 */
#ifndef PTXGEN_MODEL_CHECK_STEP_ROUTER_H
#define PTXGEN_MODEL_CHECK_STEP_ROUTER_H

#include "ref/random.h"
#include "model/reference/step.h"

/* Makes the router of a layer such, where it is of floats, and its choice bias: one expert is
 * lifted above all. Elsewhere it does nothing. */
void step_make_router(arena *a, const decoder *d, int64_t layer, void *model, ref_weights *weights,
                      random_source *r);

/* Whether neither arithmetic nor rounding might change an expert of the token that was fed last, by
 * itself, to two references, one of which rounds nothing. noise [layers] has the largest
 * differences of scores so far, and gets the token's, but not where these are why it is not clear.
 */
bool step_is_clear(const decoder *d, const ref_step *rounded, const ref_step *exact, double *noise);

/* Returns false if the rounded step alone shows that step_is_clear would return false: then the
 * exact step need not be run. */
bool step_may_be_clear(const decoder *d, const ref_step *rounded, const double *noise);

#endif
