/* [decoder]: the section of a spec that says a model's step, and struct decoder. */
#ifndef PTXGEN_MODEL_SECTION_DECODER_SECTION_H
#define PTXGEN_MODEL_SECTION_DECODER_SECTION_H

#include "model/decoder.h"
#include "input/section.h"

#define DECODER_SECTION "decoder"

/* Prints what --help-family says of the section. */
void decoder_help(strbuf *out);

/* Reads it. All that is wrong goes to d; false where something is. What means nothing beside other
 * keys, as all of rope[1] without a window, is as its defaults are. */
bool decoder_read(arena *a, const section *s, decoder *out, diags *d);

/* Returns the first key in which a decoder is not the one that its metadata make, "rope_base =
 * 10000, not 500000"; NULL: none. Keys of how it is run do not count, as max_seq_len and m, nor
 * tensors. */
const char *decoder_edited(arena *a, const decoder *d, const decoder *other);

/* A comment behind the line of a key. */
typedef struct decoder_note {
    const char *key, *text;
} decoder_note;

/* Prints the section, so that reading it gives the decoder again: what differs from the defaults,
 * and what a user may want to change. notes end with { NULL, NULL }. */
void decoder_print(strbuf *out, const decoder *d, const decoder_note *notes);

#endif
