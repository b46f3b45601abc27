/* Processes, threads, signals and time, as os.h has files: what differs between systems. */
#ifndef PTXGEN_BASE_OS_PROCESS_H
#define PTXGEN_BASE_OS_PROCESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"

/* Reads a descriptor up to its end; expected is a first guess of the size. */
bool os_read_all(arena *a, int descriptor, size_t expected, size_t most, char **bytes, size_t *size,
                 const char **error);

/* The program of this name on PATH, or name itself where it has a slash and can be run; else NULL.
 */
const char *os_find_program(arena *a, const char *name);

/* The folder of this program's file, where links lead to, or NULL where the system does not say. */
const char *os_program_folder(arena *a);

/* This process becomes the program at path, with an environment variable set for it. Comes back
 * where that fails. */
void os_become(arena *a, const char *path, char *const *argv, const char *variable,
               const char *value, const char **error);

/* Runs argv (NULL-ended, argv[0] a path) without a shell and with no standard input, and waits.
 * output gets what it wrote to standard output and error; status its exit status, 128 + n for
 * signal n. */
bool os_run(arena *a, const char *const *argv, char **output, int *status, const char **error);

/* Calls work(context, i) for every i below count on up to jobs threads; returns when all are done.
 */
void os_parallel(unsigned jobs, size_t count, void (*work)(void *context, size_t i), void *context);

/* Between these two a signal that would end the process (SIGHUP, SIGINT, SIGQUIT, SIGTERM) is
 * noted, and kills the children of os_run, so that the caller can remove its temporary files; a
 * failing write raises none. os_deliver_signals raises the one that came. Not nested. */
void os_defer_signals(void);
void os_deliver_signals(void);

/* Returns true if a deferred signal came. os_parallel then starts no further work. */
bool os_interrupted(void);

/* Calls work(context). Returns false, in the middle of it, if a mapped file turned out to be
 * shorter than it was. For one thread of the process. */
bool os_try_mapped(void (*work)(void *context), void *context);

/* How many cores this process may use. */
unsigned os_cpu_count(void);

uint64_t os_nanoseconds(void); /* of a clock that never goes back */

#endif
