/* An arena: memory that is freed all at once.
 *
 * Everything a run allocates lives in an arena and goes with it, so no code below main frees
 * anything. An arena belongs to one thread at a time. Allocation never fails from the caller's
 * point of view: when the system has no memory left, the process says so and ends with status 3. A
 * library that lives in somebody else's process wraps what it does in arena_try instead, and what
 * fails then is that call.
 */
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

arena *arena_new(void);

/* An arena that is freed with another one, unless that happens before, and fails as that one does.
 */
arena *arena_new_in(arena *parent);
void arena_free(arena *a);

/* Calls work(context). False where memory ran out on the way, in this arena or one inside of it:
 * work did not go on from there, and what it had changed by then stays changed. Nothing but that
 * and a return may end work. Calls nest. */
bool arena_try(arena *a, void (*work)(void *context), void *context);

/* The same as without try, but NULL where there is no memory. parent may be NULL: in none. */
arena *arena_try_new(arena *parent);
void *arena_try_alloc(arena *a, size_t size);

/* What an allocation of size bytes does that cannot be had, for those who take memory from
 * elsewhere: ends the innermost arena_try of an arena or of those it is in, or else the process,
 * which NULL always does. size 0: not known. */
_Noreturn void arena_exhausted(const arena *a, size_t size);

/* Forgets all allocations but keeps the memory for the next ones. */
void arena_reset(arena *a);

/* Goes on to a chunk with room for size bytes, or for rounded of them, which is the same rounded up
 * to the alignment of all. Fails where there is no memory. */
void arena_next_chunk(arena *a, size_t size, size_t rounded);

/* size bytes, aligned for any type, not initialised. */
static inline void *arena_alloc(arena *a, size_t size)
{
    const size_t alignment = _Alignof(max_align_t);
    size_t rounded = (size + alignment - 1) & ~(alignment - 1);
    if (rounded < size || (size_t)(a->end - a->at) < rounded)
        arena_next_chunk(a, size, rounded);
    void *bytes = a->at;
    a->at += rounded;
    return bytes;
}

/* Takes the latest allocation back but for its first size bytes. */
void arena_shrink(arena *a, void *bytes, size_t size);

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
