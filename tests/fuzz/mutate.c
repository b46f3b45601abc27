/* Mutations of inputs. Half of them are libFuzzer's own, byte by byte and with the dictionary's
 * words. The other half replace whole words and lines by parts of the same text, which is more
 * often still meaningful. */
#include <string.h>

#include "tests/fuzz/fuzz.h"

enum { MAX_EDITS = 4, MAX_COPIED = 512 };

typedef struct span {
    size_t at, length;
} span;

static uint32_t next_random(uint64_t *state)
{
    *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)(*state >> 33);
}

static int is_word(uint8_t c)
{
    return (c >= '0' && c <= '9') || ((c | 0x20) >= 'a' && (c | 0x20) <= 'z') || c == '_' ||
           c == '%' || c == '$';
}

/* Returns the word at a position, or the single byte if it is in no word. */
static span word_at(const uint8_t *text, size_t size, size_t at)
{
    size_t end = at + 1;
    if (is_word(text[at])) {
        while (at && is_word(text[at - 1]))
            at--;
        while (end < size && is_word(text[end]))
            end++;
    }
    return (span){ at, end - at };
}

static span line_at(const uint8_t *text, size_t size, size_t at)
{
    size_t end = at;
    while (at && text[at - 1] != '\n')
        at--;
    while (end < size && text[end] != '\n')
        end++;
    return (span){ at, (end < size ? end + 1 : end) - at };
}

/* Replaces one part of the text by a copy of another part. Returns the new size. */
static size_t replace(uint8_t *text, size_t size, size_t max_size, span old, span with)
{
    uint8_t copy[MAX_COPIED];
    if (with.length > MAX_COPIED || size - old.length + with.length > max_size)
        return size;
    size_t behind = old.at + old.length;
    memcpy(copy, text + with.at, with.length);
    memmove(text + old.at + with.length, text + behind, size - behind);
    memcpy(text + old.at, copy, with.length);
    return size - old.length + with.length;
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed)
{
    uint64_t state = seed;
    if (next_random(&state) % 2)
        return LLVMFuzzerMutate(data, size, max_size);
    for (uint32_t edits = 1 + next_random(&state) % MAX_EDITS; size && edits; edits--) {
        span (*part)(const uint8_t *, size_t, size_t) = next_random(&state) % 2 ? word_at : line_at;
        span old = part(data, size, next_random(&state) % size);
        span with = part(data, size, next_random(&state) % size);
        switch (next_random(&state) % 3) {
        case 0:
            with.length = 0; /* delete */
            break;
        case 1:
            old.length = 0; /* insert */
            break;
        default:
            break;
        }
        size = replace(data, size, max_size, old, with);
    }
    return size ? size : LLVMFuzzerMutate(data, size, max_size);
}
