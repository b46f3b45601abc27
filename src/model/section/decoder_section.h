/* Parses and prints [decoder], the section of a spec that describes a model's step. */
#pragma once

#include "model/decoder.h"
#include "input/section.h"

#define DECODER_SECTION "decoder"

void decoder_help(strbuf *out);

/* Returns the keys of the section as help texts show them. */
const struct help_row *decoder_help_rows(arena *a, size_t *count);

/* Reads the section into out. Reports all problems to d and returns false after any. Fields whose
 * condition does not hold, such as rope[1] without a window, have defaults. */
bool decoder_read(arena *a, const section *s, decoder *out, diags *d);

/* Returns the first key in which d differs from other, the decoder of its metadata: "rope_base =
 * 10000, not 500000". Returns NULL if none does. Keys that the user may choose, such as max_seq_len
 * and m, and tensors are not compared. */
const char *decoder_edited(arena *a, const decoder *d, const decoder *other);

/* A comment after a key's line. */
typedef struct decoder_note {
    const char *key, *text;
} decoder_note;

/* Prints the section, so that parsing gives the decoder again: all keys that differ from their
 * defaults, and keys that users may change. notes end with { NULL, NULL }. */
void decoder_print(strbuf *out, const decoder *d, const decoder_note *notes);
