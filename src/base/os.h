/* What the operating system decides: files, processes, threads, time. os.c and os_process.c alone
 * know POSIX. Functions that can fail return false and set *error to a sentence without the path
 * ("No space left on device"), kept in the arena given. */
#ifndef PTXGEN_BASE_OS_H
#define PTXGEN_BASE_OS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"

/* Read a file of at most `most` bytes, and put a NUL behind them. A folder, a device and a FIFO are
 * errors: they may have no end. os_read_input takes streams as well. */
bool os_read_file(arena *a, const char *path, char **bytes, size_t *size, const char **error);
bool os_read_short_file(arena *a, const char *path, size_t most, char **bytes, size_t *size,
                        const char **error);
bool os_read_input(arena *a, const char *path, size_t most, char **bytes, size_t *size,
                   const char **error);

/* Returns true if path names an open descriptor: "-", /dev/stdin, or /dev/fd/N, as the shell's
 * process substitution does. */
bool os_is_stream(const char *path);

/* Checks if a file holds these bytes and no others. Devices and pipes hold nothing; a folder is an
 * error. */
bool os_file_holds(arena *a, const char *path, const void *bytes, size_t size, bool *holds,
                   const char **error);

/* Writes standard output for "-", or a file: under a temporary name in the same folder, then
 * renamed, so that a reader sees the old file or the new one, never a part. A device or a pipe is
 * written to, not replaced, and so is what a symbolic link leads to. */
bool os_write_file(arena *a, const char *path, const void *bytes, size_t size, const char **error);

/* A file under a temporary name beside path, to be renamed (commit) or removed (discard), so that
 * several files appear together or not at all. What is not replaced is written by the commit: the
 * bytes have to stay until then. */
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

/* Removes the temporary files that ended processes left in a folder whose lock is held. */
void os_remove_temporaries(arena *a, const char *folder);

/* Returns the absolute path of the folder that a file is put into, behind symbolic links. */
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

bool os_make_directories(arena *a, const char *path, const char **error);
bool os_exists(const char *path);

/* Returns a text that is the same for all names of one file, or NULL if there is no file. */
const char *os_file_identity(arena *a, const char *path);

/* Returns true for what is written to and not replaced: a device, a pipe. */
bool os_is_device(const char *path);

/* Returns one name for all that a file can have: absolute, and without links where files exist. */
const char *os_absolute_path(arena *a, const char *path);

/* Makes an empty folder under the system's one for temporary files, and removes one with the plain
 * files in it. */
bool os_temporary_directory(arena *a, const char **path, const char **error);
void os_remove_directory(arena *a, const char *path);
void os_remove_file(const char *path);

const char *os_scratch_parent(void); /* $TMPDIR, or /tmp */

/* Makes and removes such a folder that is locked. The first call removes those of processes that
 * were killed. */
bool os_open_scratch(arena *a, os_lock *out, const char **error);
void os_close_scratch(arena *a, const os_lock *scratch);

bool os_is_terminal(int descriptor);

#endif
