/* A [decoder] section while it is read. */
#ifndef PTXGEN_MODEL_SECTION_DECODER_READER_H
#define PTXGEN_MODEL_SECTION_DECODER_READER_H

#include "model/decoder.h"
#include "input/section.h"

typedef struct reader {
    arena *arena;
    diags *diags;
    const section *section;
    decoder *out;
    bool damaged; /* a value was wrong, so that what depends on others says nothing */
} reader;

/* The first entry of a key; NULL where the section does not give it. */
const entry *reader_entry(const reader *r, const char *key);

/* Where to put a problem with a key: at its value, or where the section does not give it, at the
 * section's name. */
location reader_blame(const reader *r, const char *key);

#endif
