/* An arena: memory that is freed all at once.
 *
 * Everything a run allocates lives in an arena, so no code below main frees anything. An arena
 * belongs to one thread at a time. Allocation never fails for the caller: when the system has no
 * memory left, the process says so and ends with status 3. A library in somebody else's process
 * wraps its work in arena_try, and that call fails instead. */
#ifndef PTXGEN_BASE_ARENA_H
#define PTXGEN_BASE_ARENA_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>

#if defined(__GNUC__)
#define PRINTF_LIKE(at, first) __attribute__((format(printf, at, first)))
#else
#define PRINTF_LIKE(at, first)
#endif

/* Its fields are for the functions here alone. */
typedef struct arena {
    unsigned char *at, *end; /* what is left of the current chunk */
    struct chunk *first, *current;
    void *failure; /* where the innermost arena_try that runs goes on, or NULL */
    struct arena *parent, *children, *next, *previous;
} arena;

/* Makes an arena: by itself, or one that is freed with its parent at the latest and fails as that
 * does. */
arena *arena_new(void);
arena *arena_new_in(arena *parent);

/* Makes an arena, or returns NULL if there is no memory. The parent may be NULL. */
arena *arena_try_new(arena *parent);
void arena_free(arena *a);

/* Calls work(context). Returns false if memory ran out, in this arena or one inside of it: work
 * stopped there, and what it had changed stays changed. Only that and a return may end work. Calls
 * nest. */
bool arena_try(arena *a, void (*work)(void *context), void *context);

/* Ends the innermost arena_try of an arena or of its parents, or else the process, as an allocation
 * of size bytes does that fails (0: not known). NULL ends the process. */
_Noreturn void arena_exhausted(const arena *a, size_t size);

/* Forgets all allocations but keeps the memory for the next ones. */
void arena_reset(arena *a);

/* Goes on to a chunk with room for size bytes. Returns false if there is no memory. */
bool arena_next_chunk(arena *a, size_t size);

/* Returns size bytes, aligned for any type, not initialised, or NULL if there is no memory. */
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

/* Takes the latest allocation back but for its first size bytes. */
void arena_shrink(arena *a, void *bytes, size_t size);

void *arena_zalloc(arena *a, size_t size);

/* Copies size bytes, and a NUL behind them. */
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
