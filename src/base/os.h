/* What the operating system decides: files, processes, threads, time.
 *
 * The only file that knows POSIX; another system is another os.c. Functions that can fail return
 * false and set *error to a sentence without the path ("No space left on device"), kept in the
 * arena given.
 */
#ifndef PTXGEN_BASE_OS_H
#define PTXGEN_BASE_OS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"

/* The whole file at path, "-" being standard input; a NUL that is not counted follows the bytes.
 * A directory is an error. */
bool os_read_file(arena *a, const char *path, char **bytes, size_t *size, const char **error);

/* The same of a file of at most so many bytes; a longer one, or one without end, is an error. */
bool os_read_short_file(arena *a, const char *path, size_t most, char **bytes, size_t *size,
                        const char **error);

/* Whether the file at path holds these bytes and no others; devices and pipes hold nothing. A
 * directory is an error. */
bool os_file_holds(arena *a, const char *path, const void *bytes, size_t size, bool *holds,
                   const char **error);

/* Writes standard output for "-" or, given a path, puts a file there: under a temporary name in the
 * same folder, then renamed, so that a reader, or whoever comes after a killed run, sees the old
 * file or the new one, never a part. A device or a pipe is written to, not replaced, and so is what
 * a symbolic link leads to. */
bool os_write_file(arena *a, const char *path, const void *bytes, size_t size, const char **error);

/* A file written under a temporary name beside path that waits to be renamed (commit) or removed
 * (discard), so that several files can be made to appear together or not at all. What is not
 * replaced is written when it is committed: the bytes have to stay until then. */
typedef struct os_pending {
    const char *path;
    const char *temporary; /* NULL: a device or a pipe */
    const void *bytes;
    size_t size;
} os_pending;
bool os_write_pending(arena *a, const char *path, const void *bytes, size_t size,
                      os_pending *pending, const char **error);
bool os_commit(arena *a, const os_pending *pending, const char **error);
void os_discard(const os_pending *pending);

/* Makes a directory and those above it. */
bool os_make_directories(arena *a, const char *path, const char **error);
bool os_exists(const char *path);
bool os_same_file(const char *a, const char *b);

/* Whether there is something at path that is written to and not replaced: a device, a pipe. */
bool os_is_device(const char *path);

/* One name for all that a file can have, there or not yet: absolute, and without links as far as
 * there are files. */
const char *os_absolute_path(arena *a, const char *path);

/* An empty directory of our own under the system's folder for temporary files, and its removal with
 * the plain files in it. */
bool os_temporary_directory(arena *a, const char **path, const char **error);
void os_remove_directory(arena *a, const char *path);
void os_remove_file(const char *path);

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

/* How many cores this process may use. */
unsigned os_cpu_count(void);

uint64_t os_nanoseconds(void); /* of a clock that never goes back */
bool os_is_terminal(int descriptor);

#endif
