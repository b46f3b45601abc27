#include "base/arena.h"

#include <setjmp.h>
#include <stdalign.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Tests set both to 1, so that each allocation needs its own chunk, which may fail. */
#ifndef FIRST_CHUNK
#define FIRST_CHUNK   ((size_t)64 * 1024)
#define LARGEST_CHUNK ((size_t)4 * 1024 * 1024)
#endif

enum {
    FIRST_CAPACITY = 8,
    OUT_OF_MEMORY = 3, /* exit status */
};

typedef struct chunk {
    struct chunk *next;
    size_t size;
    alignas(max_align_t) unsigned char bytes[];
} chunk;

void arena_exhausted(const arena *a, size_t size)
{
    for (; a; a = a->parent)
        if (a->failure)
            longjmp(*(jmp_buf *)a->failure, 1);
    char wanted[48] = "";
    if (size)
        snprintf(wanted, sizeof wanted, " (%zu bytes requested)", size);
    fprintf(stderr, "ptxgen: out of memory%s\n", wanted);
    fflush(stderr);
    _Exit(OUT_OF_MEMORY); /* _Exit, since other threads still run and use global state */
}

bool arena_try(arena *a, void (*work)(void *context), void *context)
{
    jmp_buf failure;
    void *outer = a->failure;
    bool failed = true;
    a->failure = &failure;
    if (setjmp(failure) == 0) {
        work(context);
        failed = false;
    }
    a->failure = outer;
    return !failed;
}

/* Returns NULL if there is no memory. */
static chunk *chunk_new(size_t size)
{
    chunk *c = size > SIZE_MAX - sizeof *c ? NULL : malloc(sizeof *c + size);
    if (c) {
        c->next = NULL;
        c->size = size;
    }
    return c;
}

static void use_chunk(arena *a, chunk *c)
{
    a->current = c;
    a->at = c->bytes;
    a->end = c->bytes + c->size;
}

arena *arena_try_new(arena *parent)
{
    arena *a = malloc(sizeof *a);
    chunk *first = a ? chunk_new(FIRST_CHUNK) : NULL;
    if (!first) {
        free(a);
        return NULL;
    }
    *a = (arena){ .first = first, .parent = parent };
    use_chunk(a, first);
    if (parent) {
        a->next = parent->children;
        if (a->next)
            a->next->previous = a;
        parent->children = a;
    }
    return a;
}

arena *arena_new_in(arena *parent)
{
    arena *a = arena_try_new(parent);
    if (!a)
        arena_exhausted(parent, FIRST_CHUNK);
    return a;
}

arena *arena_new(void)
{
    return arena_new_in(NULL);
}

void arena_free(arena *a)
{
    if (!a)
        return;
    while (a->children)
        arena_free(a->children);
    if (a->next)
        a->next->previous = a->previous;
    if (a->previous)
        a->previous->next = a->next;
    else if (a->parent)
        a->parent->children = a->next;
    for (chunk *c = a->first, *next; c; c = next) {
        next = c->next;
        free(c);
    }
    free(a);
}

void arena_reset(arena *a)
{
    use_chunk(a, a->first);
}

bool arena_next_chunk(arena *a, size_t size)
{
    chunk *next = a->current->next; /* a chunk that arena_reset kept */
    if (!next || next->size < size) {
        size_t usual = a->current->size * 2 < LARGEST_CHUNK ? a->current->size * 2 : LARGEST_CHUNK;
        chunk *fresh = chunk_new(size > usual ? size : usual);
        if (!fresh)
            return false;
        fresh->next = next;
        a->current->next = fresh;
        next = fresh;
    }
    use_chunk(a, next);
    return true;
}

void arena_shrink(arena *a, void *bytes, size_t size)
{
    a->at = bytes;
    arena_alloc(a, size);
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
    /* Formats into the rest of the chunk first, which is usually large enough. */
    va_list again;
    va_copy(again, args);
    char *text = (char *)a->at;
    size_t room = (size_t)(a->end - a->at);
    int length = vsnprintf(text, room, format, again);
    va_end(again);
    if (length < 0)
        return arena_strdup(a, "");
    size_t size = (size_t)length + 1;
    text = arena_alloc(a, size); /* the same address if the text fitted */
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
        arena_exhausted(a, SIZE_MAX);
    void *moved = arena_alloc(a, grown * item_size);
    if (old)
        memcpy(moved, items, old * item_size);
    *capacity = grown;
    return moved;
}
