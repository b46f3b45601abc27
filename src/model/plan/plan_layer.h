/* The launches of a step, one after the other. */
#ifndef PTXGEN_MODEL_PLAN_PLAN_LAYER_H
#define PTXGEN_MODEL_PLAN_PLAN_LAYER_H

#include "model/plan/planner.h"

/* From token to hidden states; a layer; the logits of the step's last rows; from the last rows'
 * logits to tokens. */
void plan_embed(planner *p);
void plan_layer(planner *p);
void plan_logits(planner *p, int64_t rows);
void plan_sample(planner *p, int64_t rows, int64_t logits_rows);

#endif
