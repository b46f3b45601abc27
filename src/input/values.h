/* What the items of a list mean: numbers, ranges, words and shapes, checked against the key they
 * are for. */
#ifndef PTXGEN_INPUT_VALUES_H
#define PTXGEN_INPUT_VALUES_H

#include "kernel/family.h"
#include "input/section.h"

/* One value of a list; a shape has two, k and n. A real number stands as its bits. */
typedef struct value {
    int64_t numbers[2];
    const item *item; /* that it came from */
    bool blamed;      /* for a problem with other keys, so that it is not blamed again */
} value;

typedef VEC(value) value_list;

/* The values of a list for a key: numbers and ranges, real numbers, or the indices of the key's
 * words. A value that stands twice is kept once, with a warning. Wrong items go to d; the others
 * are kept. */
void values_read(arena *a, const key *k, const entry *e, value_list *out, diags *d);

/* The same for shape = KxN, where k and n are the keys that it gives. */
void values_read_shapes(arena *a, const key *k, const key *n, const entry *e, value_list *out,
                        diags *d);

/* What a user who wrote text may have meant, as the end of a message: "; did you mean 'k'?", or
 * with none that is close introduction and all candidates: "; the choices are a, b". */
const char *suggestion(arena *a, const char *text, const char *const *candidates, size_t count,
                       const char *introduction);

/* Reads a number as a spec has it: 4096, 4k, 1M, 2^20 or 2^31-1. Returns false for anything else,
 * and for numbers above 2^62. */
bool spec_parse_number(const char *text, int64_t *out);

#endif
