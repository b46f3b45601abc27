/* The meaning of list items: numbers, ranges, words and shapes, checked against their key. */
#pragma once

#include "base/hash.h"
#include "input/section.h"
#include "kernel/generate.h"

/* One value of a list. A shape has two numbers, k and n; a real number is stored as its bits. */
typedef struct value {
    int64_t numbers[2];
    const item *item; /* the item that it comes from */
    bool blamed;      /* a problem with other keys was reported here, so further ones are not */
} value;

typedef VEC(value) value_list;

/* Parses a key's list: numbers, ranges, real numbers, or words as indices of choices. Drops
 * equal values with a warning and reports invalid items to d. */
void values_read(arena *a, const key *k, const entry *e, value_list *out, diags *d);

/* Parses the list of shape, which sets the keys k and n. */
void values_read_shapes(arena *a, const key *k, const key *n, const entry *e, value_list *out,
                        diags *d);

/* Returns the end of a message about an unknown name: "; did you mean 'k'?", or if none is similar,
 * the introduction and all candidates: "; the choices are a, b". */
const char *suggestion(arena *a, const char *text, const char *const *candidates, size_t count,
                       const char *introduction);

/* Returns true if an unknown key of a section is probably a misspelling of the wanted key. */
bool section_misspells(const section *s, const char *wanted, const char *const *names,
                       size_t count);

/* Parses 4096, 4k, 1M, 2^20 or 2^31-1. Returns false for other text or beyond int64_t. */
bool spec_parse_number(const char *text, int64_t *out);

/* One factor of a product: the values of a key, or of k and n for shape. */
typedef struct axis {
    const key *keys[2];
    value_list values;
    size_t at; /* index of the current instance's value */
} axis;

/* The cartesian product of the lists of a family's section. */
typedef struct product {
    const family *family;
    const section *section;
    VEC(axis) axes; /* in the order of the family's keys; the last varies fastest */
    uint64_t count; /* number of instances; SPEC_MAX_INSTANCES + 1 for any larger number */
    bool blamed;    /* a problem between keys was reported at the section's name */
} product;

/* Reads a section's keys. Missing keys have their defaults; the default of dims is default_dims
 * unless that is NULL (an empty list: invalid and reported before). Returns false if a required
 * list is missing or has no valid value. Reports invalid items and drops them. */
bool product_read(arena *a, const section *s, const family *f, const value_list *default_dims,
                  product *out, diags *d);

typedef VEC(instance) instance_list;

/* Choices of variant = auto for each target. */
typedef struct alias_list {
    VEC(alias) made;
    name_map names;
} alias_list;

/* Appends the instances of a product. An instance that the family or a target rejects is reported
 * once for each value that causes it. variant = auto is replaced by the choice for each target,
 * with an alias. An instance whose name exists is merged into the existing one, with a note. out
 * must have room for all of them, since aliases point into it. */
void product_expand(arena *a, product *p, const target *const *wanted, size_t wanted_count,
                    name_map *names, instance_list *out, alias_list *aliases, diags *d);
