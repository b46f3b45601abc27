/* Processes, threads, signals and time. Like os.h, hides differences between systems. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"

/* Sets *error to the text of errno and returns false. */
bool os_fail(arena *a, const char **error);

/* Reads a descriptor to its end; more than `most` bytes are an error. expected: a size hint. */
bool os_read_all(arena *a, int descriptor, size_t expected, size_t most, char **bytes, size_t *size,
                 const char **error);

/* Returns the path of a program on PATH, or name if it has a slash and is executable; or NULL. */
const char *os_find_program(arena *a, const char *name);

/* Returns the folder of this executable, after symbolic links, or NULL if unknown. */
const char *os_program_folder(arena *a);

/* Becomes the program at path, with an environment variable set. Returns only on failure. */
void os_become(arena *a, const char *path, char *const *argv, const char *variable,
               const char *value, const char **error);

/* Runs argv (NULL-terminated, argv[0] is a path) without a shell and without standard input, and
 * waits. output: standard output and error. status: exit status, or 128 + signal. */
bool os_run(arena *a, const char *const *argv, char **output, int *status, const char **error);

/* Calls work(context, i) for each i < count on up to `jobs` threads, and waits. */
void os_parallel(unsigned jobs, size_t count, void (*work)(void *context, size_t i), void *context);

/* Between these calls, SIGHUP, SIGINT, SIGQUIT and SIGTERM are only recorded, and they kill the
 * children of os_run. The caller can then remove its temporary files. A failing write raises no
 * signal. os_deliver_signals raises the recorded signal. Calls cannot be nested. */
void os_defer_signals(void);
void os_deliver_signals(void);

bool os_interrupted(void); /* true after a deferred signal */

/* Calls work(context) in one thread. Returns false if a truncated mapped file interrupts it. */
bool os_try_mapped(void (*work)(void *context), void *context);

unsigned os_cpu_count(void);   /* number of cores available to this process */
uint64_t os_nanoseconds(void); /* monotonic clock */
