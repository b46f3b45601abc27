/* Rotary position embedding of a head whose values are spread over the lanes of a warp, and the
 * cache rows that heads become. Value i of a head is lane i % 32's; the 32 values from 32 j on are
 * its part j. */
#ifndef PTXGEN_GEN_ROWS_ROPE_H
#define PTXGEN_GEN_ROWS_ROPE_H

#include "kernel/family.h"
#include "ptx/ptx.h"

enum { HEAD_PART = 32, MOST_HEAD_PARTS = 8 };

/* Parts of a head, of which the last may have fewer lanes. */
unsigned head_parts(const instance *in);

/* The place of the lane's value of a part in its head, and whether there is one: where there is
 * none, the place is that of the head's last value. */
val head_place(ptx *p, const instance *in, unsigned part);
val head_has(ptx *p, const instance *in, unsigned part);

/* The value with which another one turns: sin is minus sin for the first of the two. A value behind
 * those that turn has itself. */
typedef struct rope_pair {
    val pair;    /* number: of cos and sin */
    val partner; /* place in the head */
    val first;   /* predicates: it is the first of the two; */
    val turns;   /* it does turn */
} rope_pair;
rope_pair rope_pair_of(ptx *p, const instance *in, unsigned part);

/* cos and sin of a pair's angle at a position, times the magnitude: within 2e-7. */
typedef struct rope_turn {
    val cos, sin;
} rope_turn;
rope_turn rope_turn_at(ptx *p, const instance *in, val pair, val position);

/* A value of a pair, turned by its angle with its partner; behind those that turn, itself. */
val rope_turned_by(ptx *p, const rope_pair *r, const rope_turn *by, val x, val partner);
val rope_turned(ptx *p, const instance *in, const rope_pair *r, val position, val x, val partner);

/* What q is multiplied by at a position, where the options say so. */
val rope_temperature(ptx *p, const instance *in, val position);

/* Stores the lane's value of a part to a row of a cache of kv_type, where a predicate holds. Lanes
 * without a value and rows of q8_0 take part in any case. */
void cache_store(ptx *p, const instance *in, val row, unsigned part, val value, val where);

#endif
