/* A kernel's PTX as a header has it: the text of its file, but for the strings of a model's header.
 * Its kernels are long, and what only readers of PTX need, indentation, columns and comments, would
 * be a third of the header. Lines are those of the file, so that the driver's report of a fault is.
 */
#ifndef PTXGEN_EMIT_HEADER_TEXT_H
#define PTXGEN_EMIT_HEADER_TEXT_H

#include "kernel/kernel.h"

typedef struct header_text {
    const char *text;
    size_t length;
    uint64_t checksum;  /* FNV-1a */
    const char *behind; /* the kernel's name; NULL: the file's text */
    size_t before;      /* bytes ahead of the name */
} header_text;

header_text header_text_of(arena *a, const kernel_set *set, const kernel *k);

/* Whether two texts are the same but for the name. */
bool header_text_is_alike(const header_text *a, const header_text *b);

#endif
