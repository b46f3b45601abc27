/* An arena: memory that is freed all at once.
 *
 * Everything a run allocates lives in an arena and goes with it, so no code below main frees
 * anything. An arena belongs to one thread at a time. Allocation never fails from the caller's
 * point of view: when the system has no memory left, the process ends in os_out_of_memory.
 */
#ifndef PTXGEN_BASE_ARENA_H
#define PTXGEN_BASE_ARENA_H

#include <stdarg.h>
#include <stddef.h>

#if defined(__GNUC__)
#define PRINTF_LIKE(at, first) __attribute__((format(printf, at, first)))
#else
#define PRINTF_LIKE(at, first)
#endif

typedef struct arena arena;

arena *arena_new(void);
void arena_free(arena *a);

/* Forgets all allocations but keeps the memory for the next ones. */
void arena_reset(arena *a);

/* size bytes, aligned for any type, not initialised. */
void *arena_alloc(arena *a, size_t size);

/* The same, set to zero. */
void *arena_zalloc(arena *a, size_t size);

/* A copy of size bytes, followed by a NUL that is not counted. */
char *arena_copy(arena *a, const void *bytes, size_t size);
char *arena_strdup(arena *a, const char *text);
char *arena_format(arena *a, const char *format, ...) PRINTF_LIKE(2, 3);
char *arena_vformat(arena *a, const char *format, va_list args) PRINTF_LIKE(2, 0);

/* A growable array: struct { T *items; size_t count, capacity; }. VEC_PUSH makes room for one more
 * item and gives a pointer to it, uninitialised. */
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

/* At least doubles the capacity of an array and moves its items. What VEC_PUSH calls. */
void *arena_grow(arena *a, void *items, size_t *capacity, size_t item_size);

#endif
