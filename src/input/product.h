/* A family's section as the cartesian product of its lists. */
#ifndef PTXGEN_INPUT_PRODUCT_H
#define PTXGEN_INPUT_PRODUCT_H

#include "base/hash.h"
#include "input/section.h"
#include "kernel/generate.h"
#include "input/values.h"

/* One factor: the values of a key, or with shape those of two. */
typedef struct axis {
    const key *keys[2];
    value_list values;
    size_t at; /* the value that the present instance has */
} axis;

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

/* What variant = auto chose for each target, as indices of the instances, which may still move. */
typedef struct asked_alias {
    const char *name;
    size_t *chosen;
} asked_alias;

typedef struct alias_list {
    VEC(asked_alias) asked;
    name_map names;
} alias_list;

/* Adds the instances that the family and every target take; what they do not take goes to d, once
 * for each value to blame. variant = auto is replaced by what it chooses for the targets, which
 * gets an alias. One whose name is known already is merged into that, with a note. */
void product_expand(arena *a, product *p, const target *const *wanted, size_t wanted_count,
                    name_map *names, instance_list *out, alias_list *aliases, diags *d);

#endif
