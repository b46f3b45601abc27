/* The parts of sampling: see gen/sampling/sample.c. A block has a row, or a part of a long one; the
 * last block that is done with its part goes on with the row.
 *
 * Tokens are ordered: the larger logit first, of equal ones the lower number. A logit is compared
 * by its height (see common/reduce.h).
 */
#ifndef PTXGEN_GEN_SAMPLING_SAMPLER_H
#define PTXGEN_GEN_SAMPLING_SAMPLER_H

#include "gen/common/reduce.h"

enum { WORD = 4, AT_ONCE = 4 }; /* bytes; loads in flight */

/* The row, how its token is chosen, and where the block keeps what it finds. */
typedef struct sampler {
    const instance *in;
    unsigned n, parts;       /* tokens, parts of the row */
    unsigned warps, threads; /* of a block, with room for a candidate a thread */
    val row, part;           /* numbers; */
    val first, end;          /* and the tokens of the part */
    val logits, token;       /* the row's logits; where its token goes */
    val told;                /* what its parts' blocks tell each other */
    val temperature, top_k, top_p, min_p;
    val seed[2];
    val chance, inverse; /* of the temperature */
    val best, number;    /* height and number of the first token, and what that counts as */
    val most;
    val heights, numbers, weights; /* shared memory: candidates, */
    val of_warps, found;           /* what each warp finds, and what is told to all */
} sampler;

/* Two words, or a u64; a number of candidates; and that of the block among those of its row. */
enum { FOUND_WORDS = 4, FOUND_COUNT = 8, FOUND_TICKET = 12 };

/* Visits tokens start .. end - 1, multiples of four where n is one: each thread some of them, in
 * ascending order, with at_once loads in flight, 1 to AT_ONCE. A thread that has fewer visits its
 * first four again, where is_new does not hold. */
typedef void visit(ptx *p, const sampler *s, void *context, val is_new, val logit, val number);
void over_tokens(ptx *p, const sampler *s, val start, val end, unsigned at_once, visit *take,
                 void *context);

/* Returns what a logit counts as. weight_of_height returns exp of that in relation to the first
 * token's, by an inverse of the temperature, in units of 2^-31, rounded. */
#define WEIGHT_ONE 0x1p31f
val counts_as(ptx *p, const sampler *s, val height);
val weight_of_height(ptx *p, const sampler *s, val height, val inverse);

/* The part of a sum of weights that top_p asks for, at least 1; the weight that min_p lets pass. */
val top_p_goal(ptx *p, const sampler *s, val sum);
val least_weight(ptx *p, const sampler *s);

/* Gathers the first top_k tokens of the part and some more, and returns their number to all
 * threads: more than s->threads where they do not fit. own is the largest height of the thread's
 * tokens. In a row of several parts they are told to the last block, which gathers those of all
 * parts with gather_told. */
val gather_candidates(ptx *p, const sampler *s, val own);
val gather_told(ptx *p, const sampler *s);

/* Tells the last block of the first token of each warp. first_of_parts takes a lane's part of all.
 */
void tell_first(ptx *p, const sampler *s, const first_number *of_warp);
void first_of_parts(ptx *p, const sampler *s, const first_number *first);

/* Candidates in shared memory: stores one; loads the thread's, where it has one; returns the sums
 * of weights over all of them and over those ahead of the thread's. */
void store_candidate(ptx *p, const sampler *s, val slot, val height, val number);
typedef struct candidate {
    val exists, height, number, count; /* how many there are in all, 0 where the thread has none */
} candidate;
candidate own_candidate(ptx *p, const sampler *s, val count);
typedef struct weight_sums {
    var all, ahead;
} weight_sums;
weight_sums sum_weights(ptx *p, const sampler *s, const candidate *c, val weight);

/* Draw one of the gathered candidates, or of all tokens of the row, and store it. Both give the
 * same token. */
void draw_candidate(ptx *p, const sampler *s, val count);
void draw_of_all(ptx *p, const sampler *s);

/* Returns floor(sum fraction / 2^32) of a u64 and a u32.
 *
 * Probabilities and chance are whole numbers: the same bits on every GPU and on the emulator.
 * Nothing here uses the hardware's approximations, and no product and sum may be fused that are not
 * fused here. Sums of whole numbers are exact in any order. */
val fraction_of_sum(ptx *p, val sum, val fraction);

/* Returns the first word of Philox4x32-10 (Salmon and others, "Parallel random numbers: as easy as
 * 1, 2, 3", SC 2011), of the counter (counter, 0, 0, 0). */
val philox(ptx *p, val counter, val key_low, val key_high);

#endif
