/* Parts of the references of recurrent families: sequences of rows, their causal convolution, and
 * arithmetic with error bounds.
 *
 * Each number has a magnitude: to first order, a correct result is off by at most the tolerance
 * times it. Magnitudes propagate by the derivatives, and each rounding adds the number itself. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "kernel/problem.h"

/* Relative errors of a sigmoid, of exp and of a reciprocal root, in roundings. */
enum { ROUNDINGS = 4 };

/* Covers an f32 sigmoid that stops at -87, near the smallest normal, at tolerance 2e-7. */
#define LOST_SIGMOID (1.7e-38 / 2e-7)

/* A family's sequences, and the rows of x with the inputs of its convolution. */
typedef struct recurrence {
    const problem *p;
    unsigned positions, x, conv, bias; /* inputs; bias counts if options.bias is 1 */
    unsigned states, convs;            /* outputs */
    uint64_t columns;                  /* of x */
    uint64_t first, channels;          /* first column of the convolution, and its channels */
    uint64_t taps;                     /* weights per channel */
} recurrence;

uint32_t recurrence_position(const recurrence *r, uint64_t row);

/* Returns true if a row's position is below max_seq_len. */
bool recurrence_uses(const recurrence *r, uint64_t row);

/* Returns the first row of the sequence of consecutive positions that ends at row. */
uint64_t recurrence_first_row(const recurrence *r, uint64_t row);

/* Finds the last used row of a sequence. Returns false if there is none. */
bool recurrence_last_row(const recurrence *r, uint64_t sequence, uint64_t *row);

/* Returns an element of an updated output before the launch. */
double recurrence_before(const recurrence *r, unsigned output, uint64_t element);

/* Returns an element of its sequence's state of count values before a row; at position 0 it is 0. */
ref_value recurrence_state(const recurrence *r, uint64_t row, uint64_t count, uint64_t element);

/* Returns silu of a channel's convolution. start is the row's recurrence_first_row. */
ref_value recurrence_convolved(const recurrence *r, uint64_t start, uint64_t row, uint64_t channel);

/* Computes elements of the rings of convolution inputs. */
void recurrence_rings(const recurrence *r, uint64_t first, uint64_t count, ref_value *values);

ref_value ref_silu(ref_value x);

/* Returns log(1 + exp(alpha + dt)), and exp(a log(...)): NaN unless all are finite. */
ref_value ref_softplus(double alpha, double dt);
ref_value ref_decay(double alpha, double dt, double a);

ref_value ref_product(ref_value a, ref_value b);
ref_value ref_sum(ref_value a, ref_value b);
ref_value ref_dot_product(const ref_value *a, const ref_value *b, uint64_t count);
