/* Processes, threads, signals and time, as os.h has files: what differs between systems. */
#ifndef PTXGEN_BASE_OS_PROCESS_H
#define PTXGEN_BASE_OS_PROCESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"

/* Sets *error to what errno says, and returns false. */
bool os_fail(arena *a, const char **error);

/* Reads a descriptor up to its end; expected is a first guess of the size. */
bool os_read_all(arena *a, int descriptor, size_t expected, size_t most, char **bytes, size_t *size,
                 const char **error);

/* Returns the program of this name on PATH, or name itself if it has a slash and can be run. */
const char *os_find_program(arena *a, const char *name);

/* Returns the folder of this program's file, behind links, or NULL if it is not known. */
const char *os_program_folder(arena *a);

/* Replaces this process by the program at path, with an environment variable set. Returns only if
 * that fails. */
void os_become(arena *a, const char *path, char *const *argv, const char *variable,
               const char *value, const char **error);

/* Runs argv (NULL-ended, argv[0] a path) without a shell and with no standard input, and waits.
 * output: of standard output and error. status: the exit status, 128 + n for signal n. */
bool os_run(arena *a, const char *const *argv, char **output, int *status, const char **error);

/* Calls work(context, i) for every i below count on up to jobs threads, and waits. */
void os_parallel(unsigned jobs, size_t count, void (*work)(void *context, size_t i), void *context);

/* Between these two a signal that would end the process (SIGHUP, SIGINT, SIGQUIT, SIGTERM) is
 * noted, and kills the children of os_run, so that the caller can remove its temporary files; a
 * failing write raises none. os_deliver_signals raises the one that came. Not nested. */
void os_defer_signals(void);
void os_deliver_signals(void);

bool os_interrupted(void); /* a deferred signal came: os_parallel starts no further work */

/* Calls work(context). Returns false, in the middle of it, if a mapped file has become shorter. For
 * one thread of the process. */
bool os_try_mapped(void (*work)(void *context), void *context);

unsigned os_cpu_count(void);   /* cores that this process may use */
uint64_t os_nanoseconds(void); /* of a clock that never goes back */

#endif
