/* The plan of a decoder's steps, as the manifest has it under "decoder". */
#ifndef PTXGEN_MODEL_EMIT_MANIFEST_PLAN_H
#define PTXGEN_MODEL_EMIT_MANIFEST_PLAN_H

#include <jansson.h>

#include "base/arena.h"
#include "model/plan/plan.h"

json_t *plan_json(arena *a, const plan *p);

/* What a program must know of it that no number says. */
extern const char plan_convention[];

#endif
