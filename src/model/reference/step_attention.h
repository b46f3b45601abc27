/* Attention of a step in double precision: how a cache rounds, RoPE, and a query over positions. */
#ifndef PTXGEN_MODEL_REFERENCE_STEP_ATTENTION_H
#define PTXGEN_MODEL_REFERENCE_STEP_ATTENTION_H

#include "model/reference/step.h"

/* Rounds a row of a head as a cache of a type does. */
void ref_cache_round(int64_t kv_type, double *row, int64_t head_dim);

/* cos and sin of a position's angles, [dims / 2, 2], times the magnitude; factors may be NULL. */
void ref_turns(const rope_options *o, const double *factors, uint64_t position, double *turns);

/* A head's values, turned. */
void ref_rotate(const rope_options *o, const double *turns, double *head);

/* o of queries over positions [begin, end) of what a head's row is read by. */
typedef void ref_read_row(const void *user, bool values, uint64_t position, double *row);
typedef struct ref_query {
    const double *q;     /* [heads, head_dim]: those that share a head of K and V */
    const double *sinks; /* [heads], one more logit of each, without a value; NULL: none */
    int64_t heads, head_dim;
    int64_t value_dim; /* values of a row of V that count */
    double scale, softcap;
    uint64_t begin, end;
    bool halves; /* factors are those of f16 that are nearest, see ref_round_to_half */
} ref_query;

/* o [heads, value_dim]; room has place for heads (end - begin) + head_dim values. */
void ref_attend(const ref_query *query, ref_read_row *read, const void *user, double *o,
                double *room);

double ref_sigmoid(double x);

#endif
