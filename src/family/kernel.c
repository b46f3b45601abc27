#include "family/kernel.h"

#include <string.h>

const char *const embedding_names[EMBED_COUNT] = { "string", "c23", "incbin" };

bool embedding_find(const char *word, embedding *found)
{
    for (size_t i = 0; i < EMBED_COUNT; i++)
        if (strcmp(embedding_names[i], word) == 0) {
            *found = (embedding)i;
            return true;
        }
    return false;
}
