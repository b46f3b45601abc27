/* What the items of a list mean: numbers, ranges, words and shapes, checked against the key they
 * are for. */
#ifndef PTXGEN_INPUT_VALUES_H
#define PTXGEN_INPUT_VALUES_H

#include "base/hash.h"
#include "input/section.h"
#include "kernel/generate.h"

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

/* Returns true if an unknown key of a section was probably meant to be the wanted one. */
bool section_misspells(const section *s, const char *wanted, const char *const *names,
                       size_t count);

/* Reads a number as a spec has it: 4096, 4k, 1M, 2^20 or 2^31-1. Returns false for anything else,
 * and for numbers above 2^62. */
bool spec_parse_number(const char *text, int64_t *out);

/* One factor of a product: the values of a key, or with shape those of two. */
typedef struct axis {
    const key *keys[2];
    value_list values;
    size_t at; /* the value that the present instance has */
} axis;

/* A family's section as the cartesian product of its lists. */
typedef struct product {
    const family *family;
    const section *section;
    VEC(axis) axes; /* in the order of the family's keys; the last varies fastest */
    uint64_t count; /* instances; SPEC_MAX_INSTANCES + 1 stands for all above */
    bool blamed;    /* the section itself, for a problem between keys */
} product;

/* Reads a section's keys. Keys that are absent take their defaults, dims those of default_dims
 * where it is not NULL (empty: wrong, and reported already). False when a list is missing or has no
 * right value; wrong items alone are left out, after their error. */
bool product_read(arena *a, const section *s, const family *f, const value_list *default_dims,
                  product *out, diags *d);

typedef VEC(instance) instance_list;

/* What variant = auto chose for each target. */
typedef struct alias_list {
    VEC(alias) made;
    name_map names;
} alias_list;

/* Adds the instances that the family and every target take; what they do not take goes to d, once
 * for each value to blame. variant = auto is replaced by what it chooses for the targets, which
 * gets an alias. One whose name is known already is merged into that, with a note. out has room for
 * all of them, so that what an alias points to does not move. */
void product_expand(arena *a, product *p, const target *const *wanted, size_t wanted_count,
                    name_map *names, instance_list *out, alias_list *aliases, diags *d);

#endif
