/* Texts to encode, and their tokens, for programs that compare tokenizers.
 *
 * A file of texts has texts of any bytes, each after its length (u32, little-endian). The output is
 * a line of token numbers per text. */
#ifndef PTXGEN_TESTS_TEXTS_H
#define PTXGEN_TESTS_TEXTS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

/* Reads the next text. The caller frees it. Returns false at the end of the file. */
static inline bool next_text(FILE *file, char **text, uint32_t *length)
{
    uint8_t bytes[4];
    if (fread(bytes, 1, sizeof bytes, file) != sizeof bytes)
        return false;
    *length = (uint32_t)bytes[0] | (uint32_t)bytes[1] << 8 | (uint32_t)bytes[2] << 16 |
              (uint32_t)bytes[3] << 24;
    *text = malloc(*length + 1);
    if (!*text || fread(*text, 1, *length, file) != *length) {
        fprintf(stderr, "the file of texts is cut short\n");
        exit(1);
    }
    return true;
}

static inline void print_tokens(const uint32_t *tokens, size_t count)
{
    for (size_t i = 0; i < count; i++)
        printf("%s%u", i ? " " : "", (unsigned)tokens[i]);
    putchar('\n');
}

#endif
