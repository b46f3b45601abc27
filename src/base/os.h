/* Interface to the operating system: files, processes, threads, time. Only os.c and os_process.c
 * use POSIX. Functions that can fail return false and set *error to a text without the path ("No
 * space left on device"), allocated in the given arena. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"

/* Read a file of at most `most` bytes and append a NUL. Folders, devices and FIFOs are errors,
 * since they may have no end. os_read_input also accepts streams. */
bool os_read_file(arena *a, const char *path, char **bytes, size_t *size, const char **error);
bool os_read_short_file(arena *a, const char *path, size_t most, char **bytes, size_t *size,
                        const char **error);
bool os_read_input(arena *a, const char *path, size_t most, char **bytes, size_t *size,
                   const char **error);

/* Returns true if path names an open descriptor: "-", /dev/stdin, or /dev/fd/N. */
bool os_is_stream(const char *path);

/* Checks if a file has exactly these bytes. A device or pipe has none; a folder is an error. */
bool os_file_holds(arena *a, const char *path, const void *bytes, size_t size, bool *holds,
                   const char **error);

/* Writes standard output for "-", devices and pipes directly, or a file, after symbolic links,
 * under a temporary name and renames it, so that a reader sees the old or the new content. */
bool os_write_file(arena *a, const char *path, const void *bytes, size_t size, const char **error);

/* A file under a temporary name next to path, to rename (commit) or remove (discard) together with
 * others. The commit writes devices and pipes, so bytes must live until then. */
typedef struct os_pending {
    const char *path;
    const char *temporary; /* NULL for a device or a pipe */
    const void *bytes;
    size_t size;
} os_pending;
bool os_write_pending(arena *a, const char *path, const void *bytes, size_t size,
                      os_pending *pending, const char **error);
bool os_commit(arena *a, const os_pending *pending, const char **error);
void os_discard(const os_pending *pending);

/* Removes temporary files of ended processes from a folder that the caller has locked. */
void os_remove_temporaries(arena *a, const char *folder);

/* Returns the absolute path of the folder of a file, after symbolic links. */
const char *os_folder_of(arena *a, const char *path);
const char *os_name_of(const char *path); /* the part of a path after its last slash */

/* An exclusive lock of a folder. The system releases it when the process ends. */
typedef struct os_lock {
    const char *folder;
    int descriptor;
} os_lock;
typedef VEC(os_lock) os_locks;

/* Locks folders, each once, and waits up to 30 s for each. Skips folders without locks or not
 * readable. On failure, no folder is locked and *failed names the folder. */
bool os_lock_folders(arena *a, const char *const *folders, size_t count, os_locks *out,
                     const char **failed, const char **error);
void os_unlock(os_locks *locks);

bool os_make_directories(arena *a, const char *path, const char **error);
bool os_exists(const char *path);

/* Returns a text that is equal for all names of the same file, or NULL if there is no file. */
const char *os_file_identity(arena *a, const char *path);

/* Returns true for a device or a pipe, which is written directly instead of replaced. */
bool os_is_device(const char *path);

/* Returns the canonical path of a file: absolute, without links where files exist. */
const char *os_absolute_path(arena *a, const char *path);

/* Create an empty temporary folder, and remove one with its plain files. */
bool os_temporary_directory(arena *a, const char **path, const char **error);
void os_remove_directory(arena *a, const char *path);
void os_remove_file(const char *path);

const char *os_scratch_parent(void); /* $TMPDIR, or /tmp */

/* Create and remove a locked temporary folder. The first call also removes abandoned ones. */
bool os_open_scratch(arena *a, os_lock *out, const char **error);
void os_close_scratch(arena *a, const os_lock *scratch);

bool os_is_terminal(int descriptor);
