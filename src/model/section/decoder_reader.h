/* A [decoder] section while it is read. */
#ifndef PTXGEN_MODEL_SECTION_DECODER_READER_H
#define PTXGEN_MODEL_SECTION_DECODER_READER_H

#include "input/section.h"
#include "model/decoder.h"

typedef struct reader {
    arena *arena;
    diags *diags;
    const section *section;
    decoder *out;
    VEC(const char *) names; /* all that may stand in front of '=': of formats, those of matrices */
    bool damaged;            /* a value was wrong, so that what depends on others says nothing */
} reader;

/* Returns the first entry of a key; NULL where the section does not give it. */
const entry *reader_entry(const reader *r, const char *name);

/* Returns where to put a problem with a key: at its value, or where the section does not give it,
 * at the section's name. */
location reader_blame(const reader *r, const char *name);

/* Reads the formats of the matrices that the decoder has: weights = FORMAT for all of them, and
 * exceptions by tensor and layer, weights.TENSOR = FORMAT, FORMAT: 0..3, 7, FORMAT: 5. */
void decoder_read_formats(reader *r);

/* Reports what does not go together in a decoder each key of which is right. */
void decoder_check(const reader *r);

#endif
