/* What is mutated: kernels of every family of the registry, in small sizes. */
#ifndef PTXGEN_TESTS_SUBJECTS_H
#define PTXGEN_TESTS_SUBJECTS_H

#include "input/spec.h"

typedef VEC(kernel) subject_list;

/* Of families that a spec lists, its instances; of the others a kernel for each choice of the
 * family's words (static and dynamic dims, direct and indirect sequence lengths), in sizes that let
 * every loop make several turns and leave a rest, with more rows than the blocks of a grid that
 * strides. Of the families named; of all where names, which end with NULL, are none. False and the
 * reason where one can't be built. */
bool make_subjects(arena *a, const spec *listed, char *const *names, subject_list *out,
                   const char **error);

#endif
