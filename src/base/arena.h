/* An arena: memory that is freed all at once.
 *
 * All allocations of a run are in an arena, so code below main frees nothing. An arena belongs to
 * one thread at a time. An allocation never returns an error: without memory, the process prints a
 * message and exits with status 3. In a library, arena_try fails instead. */
#pragma once

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>

#if defined(__GNUC__)
#define PRINTF_LIKE(at, first) __attribute__((format(printf, at, first)))
#else
#define PRINTF_LIKE(at, first)
#endif

/* The fields are private to the functions of this file. */
typedef struct arena {
    unsigned char *at, *end; /* rest of the current chunk */
    struct chunk *first, *current;
    void *failure; /* jump target of the innermost running arena_try, or NULL */
    struct arena *parent, *children, *next, *previous;
} arena;

/* Creates an arena. A child fails as its parent does, and is freed with it at the latest. */
arena *arena_new(void);
arena *arena_new_in(arena *parent);

/* Creates an arena, or returns NULL if there is no memory. parent may be NULL. */
arena *arena_try_new(arena *parent);
void arena_free(arena *a);

/* Calls work(context), also nested. Returns false if memory ran out in this arena or a child: work
 * was interrupted, and its changes remain. Work must return or run out of memory. */
bool arena_try(arena *a, void (*work)(void *context), void *context);

/* Fails as an allocation of size bytes without memory does (0: size unknown): ends the innermost
 * arena_try of the arena or its parents, or else the process. A NULL arena ends the process. */
_Noreturn void arena_exhausted(const arena *a, size_t size);

/* Frees all allocations and keeps the chunks for new ones. */
void arena_reset(arena *a);

/* Switches to a chunk with room for size bytes. Returns false if there is no memory. */
bool arena_next_chunk(arena *a, size_t size);

/* Returns size bytes, aligned for any type and uninitialised, or NULL if there is no memory. */
static inline void *arena_try_alloc(arena *a, size_t size)
{
    const size_t alignment = _Alignof(max_align_t);
    size_t rounded = (size + alignment - 1) & ~(alignment - 1);
    if (rounded < size || ((size_t)(a->end - a->at) < rounded && !arena_next_chunk(a, rounded)))
        return NULL;
    void *bytes = a->at;
    a->at += rounded;
    return bytes;
}

static inline void *arena_alloc(arena *a, size_t size)
{
    void *bytes = arena_try_alloc(a, size);
    if (!bytes)
        arena_exhausted(a, size);
    return bytes;
}

/* Shrinks the latest allocation to its first size bytes. */
void arena_shrink(arena *a, void *bytes, size_t size);

void *arena_zalloc(arena *a, size_t size);

/* Copies size bytes and appends a NUL. */
char *arena_copy(arena *a, const void *bytes, size_t size);
char *arena_strdup(arena *a, const char *text);
char *arena_format(arena *a, const char *format, ...) PRINTF_LIKE(2, 3);
char *arena_vformat(arena *a, const char *format, va_list args) PRINTF_LIKE(2, 0);

/* A growable array. VEC_PUSH appends an uninitialised item and returns a pointer to it. */
#define VEC(type)               \
    struct {                    \
        type *items;            \
        size_t count, capacity; \
    }
#define VEC_PUSH(a, vec)                                                                   \
    ((vec)->count == (vec)->capacity                                                       \
         ? (void)((vec)->items =                                                           \
                      arena_grow(a, (vec)->items, &(vec)->capacity, sizeof *(vec)->items)) \
         : (void)0,                                                                        \
     &(vec)->items[(vec)->count++])

/* Doubles the capacity of an array, at least, and moves its items. Called by VEC_PUSH. */
void *arena_grow(arena *a, void *items, size_t *capacity, size_t item_size);
