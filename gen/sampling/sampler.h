/* Shared declarations of sampling: see gen/sampling/sample.c. A block processes a row, or a part of
 * a long row; the last block to finish its part continues with the whole row.
 *
 * Tokens are ordered: larger logits first, and for equal logits the lower token number first.
 * Logits are compared by their heights (see common/reduce.h). */
#pragma once

#include "gen/common/reduce.h"

enum { WORD = 4, AT_ONCE = 4 }; /* bytes; loads in flight */

/* Tokens per part: each of 512 threads loads 4 times 16 bytes at once. */
#define PART      8192
#define PART_TEXT "8192"

/* A row, its sampling settings, and the block's memory. */
typedef struct sampler {
    const instance *in;
    unsigned n, parts;       /* tokens of the row; parts of the row */
    unsigned warps, threads; /* warps and threads of a block; one candidate fits per thread */
    val sequence;            /* the row's, whose settings it uses */
    val row, part;           /* indices */
    val first, end;          /* token range of the part */
    val logits, token;       /* the row's logits; address of its token */
    val model_logits;        /* the row's logits before adjust_logits */
    bool adjusts;            /* logits may be adjusted: written by this kernel, not to be scaled */
    val told;                /* global memory for the results of the row's parts */
    val temperature, top_k, top_p, min_p;
    val seed[2];
    val chance, inverse;           /* random number; 1 / temperature */
    val best, number;              /* height and number of the row's first token */
    val most;                      /* scaled and capped logit of that token */
    val heights, numbers, weights; /* candidates, in shared memory */
    val of_warps, found;           /* shared memory: results per warp; values for all threads */
} sampler;

/* Words and byte offsets of `found`: two words or a u64, the number of candidates, the block's
 * ticket. */
enum { FOUND_WORDS = 4, FOUND_COUNT = 8, FOUND_TICKET = 12 };

/* Visits tokens start to end - 1 (multiples of 4 if n is). Each thread visits some of them in
 * ascending order, with at_once (1 to AT_ONCE) loads in flight. A thread with fewer tokens visits
 * its first four again, with is_new false. */
typedef void visit(ptx *p, const sampler *s, void *context, val is_new, val logit, val number);
void visit_tokens(ptx *p, const sampler *s, val start, val end, unsigned at_once, visit *take,
                  void *context);

/* Replaces the row's logits by a copy with penalties, biases and mask, if the row has any. high has
 * the second four words of its settings. */
void adjust_logits(ptx *p, sampler *s, val4 high, val position);

/* With the key logprobs: store the best tokens of the part for the row's last block; store the row's
 * log-probabilities when its token is stored, or NaN if the row is not used. */
void rank_part(ptx *p, const sampler *s);
void store_logprobs(ptx *p, const sampler *s, bool used);

#define WEIGHT_ONE 0x1p31f /* the weight of the first token */
/* Returns a logit of the model, scaled and capped. NaN and infinities remain. */
val model_logit(ptx *p, const sampler *s, val logit);
/* Returns the logit of a height, scaled and capped. */
val scaled_logit(ptx *p, const sampler *s, val height);
/* Returns exp((logit - first token's logit) * inverse), rounded, in units of 2^-31. */
val weight_of_height(ptx *p, const sampler *s, val height, val inverse);

/* Returns the part of a sum of weights that top_p keeps, at least 1. */
val top_p_goal(ptx *p, const sampler *s, val sum);
/* Returns the smallest weight that min_p keeps. */
val least_weight(ptx *p, const sampler *s);

/* Gathers the first top_k tokens of the part, and some more. Returns their number to all threads,
 * or more than s->threads if they do not fit. own is the largest height of the thread's tokens. In
 * a row of several parts, the candidates go to global memory, and the last block gathers them with
 * gather_told. */
val gather_candidates(ptx *p, const sampler *s, val own);
val gather_told(ptx *p, const sampler *s);

/* Stores the first token of each warp for the last block. */
void store_first(ptx *p, const sampler *s, const first_number *of_warp);
/* Finds the first of these tokens, or without of_parts of the block's warps, and tells it to all
 * threads in s->best and s->number. */
void first_of_all(ptx *p, sampler *s, const first_number *f, bool of_parts);

void store_candidate(ptx *p, const sampler *s, val slot, val height, val number);
typedef struct candidate {
    val exists, height, number, count; /* number of all candidates; 0 if the thread has none */
} candidate;
candidate own_candidate(ptx *p, const sampler *s, val count);
typedef struct weight_sums {
    var all, before;
} weight_sums;
/* Returns the sums of the weights of all candidates, and of those before the thread's candidate. */
weight_sums sum_weights(ptx *p, const sampler *s, const candidate *c, val weight);

/* Draw and store a token: from the gathered candidates, or from all tokens of the row. Both give
 * the same token. */
void draw_candidate(ptx *p, const sampler *s, val count);
void draw_of_all(ptx *p, const sampler *s);

/* Returns the sum over the warp's lanes to all of them. */
val warp_sum_u64(ptx *p, val v);

/* Returns floor(sum fraction / 2^32) of a u64 and a u32.
 *
 * Probabilities and random numbers are integers: the same bits on every GPU and on the emulator.
 * The code uses no approximate instructions, and no multiply-add is fused unless written as fma.
 * Integer sums are exact in any order. */
val fraction_of_sum(ptx *p, val sum, val fraction);

/* Returns the first word of Philox4x32-10 (Salmon and others, "Parallel random numbers: as easy as
 * 1, 2, 3", SC 2011) for the counter (counter, 0, 0, 0). */
val philox(ptx *p, val counter, val key_low, val key_high);
