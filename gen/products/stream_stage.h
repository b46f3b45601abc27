/* Activations of streaming products on their way into the tile, and the products with what is
 * there: stream_integers.c and stream_floats.c. */
#ifndef PTXGEN_GEN_PRODUCTS_STREAM_STAGE_H
#define PTXGEN_GEN_PRODUCTS_STREAM_STAGE_H

#include "gen/products/stream_plan.h"

/* Integers: a lane's place in a step. */
stream_lane stream_lane_at(ptx *p, const stream *s, val lane);

/* Stages a pass of all vectors, by all threads of the block. */
void stream_stage(ptx *p, const stream *s, val pass);

/* A turn's pass ahead of its weights, where there are several: by all threads of the block. */
void stream_stage_pass(ptx *p, const stream *s, val pass);

/* Computes the factor that the norm leaves for each vector. */
void stream_norm_factors(ptx *p, const stream *s);

/* The two kinds: what the lanes know ahead of all rows; what a turn of a loop over rows does, said
 * ahead of it where it is all of a row; all weights of the rows at these addresses into sums. */
void stream_integers_begin(ptx *p, stream *s);
void stream_integers_note_rows(ptx *p, const stream *s);
void stream_integers_add(ptx *p, stream *s, const place addresses[STREAM_ROWS]);
void stream_floats_add(ptx *p, stream *s, const place addresses[STREAM_ROWS]);

#endif
