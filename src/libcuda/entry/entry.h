/* Generates entry points from the tables in this folder. A .c file here defines the functions that
 * the rows of its table call, then includes the table: see entry_points.def. */
#pragma once

#include "libcuda/driver.h"

/* Flags for the start of a call, and the values of a table's `enters` column. */
enum {
    RUNS_QUEUED = 1,
    WRITES_PRINTED = 2, /* writes buffered kernel output */
    NEEDS_CONTEXT = 4,
    ENTER_driver = RUNS_QUEUED | WRITES_PRINTED,
    ENTER_ask = WRITES_PRINTED,
    ENTER_context = ENTER_driver | NEEDS_CONTEXT,
    ENTER_ask_context = ENTER_ask | NEEDS_CONTEXT,
    ENTER_add_context = NEEDS_CONTEXT,
};

/* Starts a call. Takes the lock, on failure too. With NEEDS_CONTEXT, *current is the thread's
 * current context: returns CUDA_ERROR_INVALID_CONTEXT if there is none, or the stored error if one
 * of its kernels failed. Otherwise *current is NULL. */
CUresult enter(int how, CUcontext *current);

/* THEN evaluates next if first succeeds; AFTER evaluates expressions if check succeeds. */
#define THEN(first, next) ((r = (first)) ? r : (next))
#define AFTER(check, ...) THEN(check, ((void)(__VA_ARGS__), (CUresult)CUDA_SUCCESS))

#define ENTRY(name, version, since, enters, parameters, ...) \
    CUresult name##version parameters                        \
    {                                                        \
        CUcontext current;                                   \
        CUresult r = enter(ENTER_##enters, &current);        \
        return leave(r ? r : (__VA_ARGS__));                 \
    }
#define FORWARD(name, version, since, parameters, ...) \
    CUresult name##version parameters                  \
    {                                                  \
        return __VA_ARGS__;                            \
    }
#define ALIAS(name, version, since, of) SAME_FUNCTION(name##version, of)

#define ENTRY_PER_THREAD(name, version, since, ending, ...) \
    ENTRY(name, version, since, __VA_ARGS__)                \
    SAME_FUNCTION(name##version##ending, name##version)
#define FORWARD_PER_THREAD(name, version, since, ending, ...) \
    FORWARD(name, version, since, __VA_ARGS__)                \
    SAME_FUNCTION(name##version##ending, name##version)
#define ALIAS_PER_THREAD(name, version, since, ending, of) \
    SAME_FUNCTION(name##version, of)                       \
    SAME_FUNCTION(name##version##ending, of)

#define SAME_FUNCTION(symbol, of) __typeof__(of) symbol __attribute__((alias(#of)));
