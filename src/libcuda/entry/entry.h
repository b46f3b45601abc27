/* Makes entry points of the tables in this folder. A file here has the functions that the rows of
 * its table call, and includes the table after them: see entry_points.def. */
#ifndef PTXGEN_LIBCUDA_ENTRY_ENTRY_H
#define PTXGEN_LIBCUDA_ENTRY_ENTRY_H

#include "libcuda/driver.h"

/* How a call starts, by the words of a table's column. */
enum {
    RUNS_QUEUED = 1,
    WRITES_PRINTED = 2, /* what kernels have printed so far */
    NEEDS_CONTEXT = 4,
    ENTER_driver = RUNS_QUEUED | WRITES_PRINTED,
    ENTER_ask = WRITES_PRINTED,
    ENTER_context = ENTER_driver | NEEDS_CONTEXT,
    ENTER_ask_context = ENTER_ask | NEEDS_CONTEXT,
    ENTER_add_context = NEEDS_CONTEXT,
};

/* Starts a call and takes the lock, whatever it returns. The thread's current context, or NULL if
 * the call needs none: CUDA_ERROR_INVALID_CONTEXT if there is none, and if a kernel of it failed
 * what that kernel's launch returned. */
CUresult enter(int how, CUcontext *current);

/* In a row's result: the first result or, if it is a success, the next; and a success once a check
 * has passed and expressions have been evaluated. */
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

#endif
