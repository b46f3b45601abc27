/* What the operating system decides: files, processes, threads, time.
 *
 * os.c and os_process.c alone know POSIX; another system has others. Functions that can fail return
 * false and set *error to a sentence without the path ("No space left on device"), kept in the
 * arena given.
 */
#ifndef PTXGEN_BASE_OS_H
#define PTXGEN_BASE_OS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"

/* Reads the regular file at path; a NUL that is not counted follows the bytes. A folder, a device
 * and a FIFO are errors: they may have no end. */
bool os_read_file(arena *a, const char *path, char **bytes, size_t *size, const char **error);

/* Reads a file that is an error if it has more than `most` bytes. */
bool os_read_short_file(arena *a, const char *path, size_t most, char **bytes, size_t *size,
                        const char **error);

/* Reads a file that the command line names, which may also be a stream. */
bool os_read_input(arena *a, const char *path, size_t most, char **bytes, size_t *size,
                   const char **error);

/* Returns true if path names an open descriptor: "-", /dev/stdin, or /dev/fd/N, as the shell's
 * process substitution does. */
bool os_is_stream(const char *path);

/* Reads a descriptor up to its end; expected is a first guess of the size. */
bool os_read_all(arena *a, int descriptor, size_t expected, size_t most, char **bytes, size_t *size,
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

/* Removes the temporary files that ended processes left in a folder: call it with the folder's
 * lock.
 */
void os_remove_temporaries(arena *a, const char *folder);

/* Returns the absolute path of the folder that a file is put into: of what its link leads to, if it
 * is one. */
const char *os_folder_of(arena *a, const char *path);

/* A lock that one process has at a time, and that ends with the process. */
typedef struct os_lock {
    const char *folder;
    int descriptor;
} os_lock;
typedef VEC(os_lock) os_locks;

/* Locks folders, each once, waiting up to 30 seconds for each. Leaves out those that cannot be
 * locked: the file system has no locks, or the folder may not be read. On failure nothing is locked
 * and failed names the folder. */
bool os_lock_folders(arena *a, const char *const *folders, size_t count, os_locks *out,
                     const char **failed, const char **error);
void os_unlock(os_locks *locks);

/* Makes a directory and those above it. */
bool os_make_directories(arena *a, const char *path, const char **error);
bool os_exists(const char *path);

/* Returns a text that is the same for all names of one file, or NULL if there is no file. */
const char *os_file_identity(arena *a, const char *path);

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

/* Returns the folder for temporary files: $TMPDIR, or /tmp. */
const char *os_scratch_parent(void);

/* Makes an empty folder for temporary files, locked, and removes it with the plain files in it. The
 * first call removes the folders of processes that were killed. */
bool os_open_scratch(arena *a, os_lock *out, const char **error);
void os_close_scratch(arena *a, const os_lock *scratch);

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
bool os_is_terminal(int descriptor);

#endif
