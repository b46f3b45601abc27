/* The kernels to mutate: kernels of every family, in small sizes. */
#ifndef PTXGEN_TESTS_SUBJECTS_H
#define PTXGEN_TESTS_SUBJECTS_H

#include "input/spec.h"

typedef VEC(kernel) subject_list;

/* Makes the subjects. Families in the spec `listed` get its instances. Every other family gets one
 * kernel per combination of its keys' words, such as static and dynamic dims. Its sizes give every
 * loop several iterations and a remainder, and more rows than the blocks of a grid-stride grid.
 * names selects families and ends with NULL; empty = all. Returns false and sets *error if a kernel
 * cannot be built. */
bool make_subjects(arena *a, const spec *listed, char *const *names, subject_list *out,
                   const char **error);

#endif
