#include "base/arena.h"

#include <stdalign.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/os.h"

enum { FIRST_CHUNK = 64 * 1024, LARGEST_CHUNK = 4 * 1024 * 1024, FIRST_CAPACITY = 8 };

typedef struct chunk {
    struct chunk *next;
    size_t size;
    alignas(max_align_t) unsigned char bytes[];
} chunk;

struct arena {
    chunk *first, *current;
    size_t used; /* of current */
};

static chunk *chunk_new(size_t size)
{
    chunk *c = size > SIZE_MAX - sizeof *c ? NULL : malloc(sizeof *c + size);
    if (!c)
        os_out_of_memory(size);
    c->next = NULL;
    c->size = size;
    return c;
}

arena *arena_new(void)
{
    arena *a = malloc(sizeof *a);
    if (!a)
        os_out_of_memory(sizeof *a);
    a->first = a->current = chunk_new(FIRST_CHUNK);
    a->used = 0;
    return a;
}

void arena_free(arena *a)
{
    if (!a)
        return;
    for (chunk *c = a->first, *next; c; c = next) {
        next = c->next;
        free(c);
    }
    free(a);
}

void arena_reset(arena *a)
{
    a->current = a->first;
    a->used = 0;
}

/* The next chunk that has room for size bytes: one kept by arena_reset, or a new one put in its
 * place. */
static void next_chunk(arena *a, size_t size)
{
    chunk *next = a->current->next;
    if (!next || next->size < size) {
        size_t usual = a->current->size * 2 < LARGEST_CHUNK ? a->current->size * 2 : LARGEST_CHUNK;
        chunk *fresh = chunk_new(size > usual ? size : usual);
        fresh->next = next;
        a->current->next = fresh;
        next = fresh;
    }
    a->current = next;
    a->used = 0;
}

void *arena_alloc(arena *a, size_t size)
{
    size_t rounded = (size + alignof(max_align_t) - 1) & ~(alignof(max_align_t) - 1);
    if (rounded < size)
        os_out_of_memory(size);
    if (a->current->size - a->used < rounded)
        next_chunk(a, rounded);
    void *bytes = a->current->bytes + a->used;
    a->used += rounded;
    return bytes;
}

void *arena_zalloc(arena *a, size_t size)
{
    return memset(arena_alloc(a, size), 0, size);
}

char *arena_copy(arena *a, const void *bytes, size_t size)
{
    char *copy = arena_alloc(a, size + 1);
    if (size)
        memcpy(copy, bytes, size);
    copy[size] = '\0';
    return copy;
}

char *arena_strdup(arena *a, const char *text)
{
    return arena_copy(a, text, strlen(text));
}

char *arena_vformat(arena *a, const char *format, va_list args)
{
    /* Mostly there is room in the chunk, and no need to measure first. */
    va_list again;
    va_copy(again, args);
    char *text = (char *)a->current->bytes + a->used;
    size_t room = a->current->size - a->used;
    int length = vsnprintf(text, room, format, again);
    va_end(again);
    if (length < 0)
        return arena_strdup(a, "");
    size_t size = (size_t)length + 1;
    text = arena_alloc(a, size); /* the same place where it fitted */
    if (size > room)
        vsnprintf(text, size, format, args);
    return text;
}

char *arena_format(arena *a, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    char *text = arena_vformat(a, format, args);
    va_end(args);
    return text;
}

void *arena_grow(arena *a, void *items, size_t *capacity, size_t item_size)
{
    size_t old = *capacity, grown = old ? old * 2 : FIRST_CAPACITY;
    if (grown > SIZE_MAX / 2 / item_size)
        os_out_of_memory(SIZE_MAX);
    void *moved = arena_alloc(a, grown * item_size);
    if (old)
        memcpy(moved, items, old * item_size);
    *capacity = grown;
    return moved;
}
