/* Files and folders. os_process.c has processes, threads and signals. */
#define _DEFAULT_SOURCE /* flock */

#include "base/os.h"
#include "base/os_process.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/strbuf.h"

enum {
    MAX_ATTEMPTS = 1000,
    DECIMAL = 10,
    LOCK_SECONDS = 30,
    LOCK_TURN = 10000000, /* nanoseconds between two attempts */
};

/* Opens a regular file, but no FIFO or device, which may have no end. Returns -1 on failure. */
static int open_regular(arena *a, const char *path, struct stat *status, const char **error)
{
    int descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (descriptor >= 0 && fstat(descriptor, status) == 0 && S_ISREG(status->st_mode))
        return descriptor;
    if (descriptor >= 0 && S_ISDIR(status->st_mode))
        errno = EISDIR;
    os_fail(a, error);
    if (descriptor >= 0 && !S_ISDIR(status->st_mode))
        *error = "not a regular file";
    if (descriptor >= 0)
        close(descriptor);
    return -1;
}

bool os_read_short_file(arena *a, const char *path, size_t most, char **bytes, size_t *size,
                        const char **error)
{
    struct stat status = { 0 };
    int descriptor = open_regular(a, path, &status, error);
    if (descriptor < 0)
        return false;
    bool ok = status.st_size <= 0 || (uintmax_t)status.st_size <= most;
    if (!ok)
        *error = arena_format(a, "more than %zu bytes", most);
    ok = ok && os_read_all(a, descriptor, (size_t)status.st_size, most, bytes, size, error);
    close(descriptor);
    return ok;
}

bool os_read_file(arena *a, const char *path, char **bytes, size_t *size, const char **error)
{
    return os_read_short_file(a, path, SIZE_MAX, bytes, size, error);
}

/* Returns the number of the open descriptor that a path names, or -1. */
static int stream_of(const char *path)
{
    static const char FOLDER[] = "/dev/fd/";
    if (strcmp(path, "-") == 0 || strcmp(path, "/dev/stdin") == 0)
        return STDIN_FILENO;
    const char *digits = path + strlen(FOLDER);
    if (strncmp(path, FOLDER, strlen(FOLDER)) != 0 || !*digits ||
        strspn(digits, "0123456789") > 4 || digits[strspn(digits, "0123456789")])
        return -1;
    return (int)strtol(digits, NULL, DECIMAL);
}

bool os_is_stream(const char *path)
{
    return stream_of(path) >= 0;
}

bool os_read_input(arena *a, const char *path, size_t most, char **bytes, size_t *size,
                   const char **error)
{
    int stream = stream_of(path);
    return stream >= 0 ? os_read_all(a, stream, 0, most, bytes, size, error)
                       : os_read_short_file(a, path, most, bytes, size, error);
}

bool os_is_device(const char *path)
{
    struct stat status;
    return stat(path, &status) == 0 && !S_ISREG(status.st_mode) && !S_ISDIR(status.st_mode);
}

bool os_file_holds(arena *a, const char *path, const void *bytes, size_t size, bool *holds,
                   const char **error)
{
    struct stat status = { 0 };
    *holds = false;
    if (os_is_device(path))
        return true;
    int descriptor = open_regular(a, path, &status, error);
    if (descriptor < 0)
        return false;
    arena *scratch = arena_new_in(a);
    char *there;
    size_t length;
    bool ok = os_read_all(scratch, descriptor, size, SIZE_MAX, &there, &length, error);
    *holds = ok && length == size && memcmp(there, bytes, size) == 0;
    if (!ok)
        *error = arena_strdup(a, *error);
    arena_free(scratch);
    close(descriptor);
    return ok;
}

static bool write_all(int descriptor, const void *bytes, size_t size)
{
    const char *next = bytes;
    while (size) {
        ssize_t put = write(descriptor, next, size);
        if (put >= 0) {
            next += put;
            size -= (size_t)put;
        } else if (errno != EINTR) {
            return false;
        }
        if (size && os_interrupted()) {
            errno = EINTR;
            return false;
        }
    }
    return true;
}

/* Returns the length of a path's folder with its slash, or 0 for a path without a folder. */
static size_t folder_length(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? (size_t)(slash + 1 - path) : 0;
}

void os_remove_temporaries(arena *a, const char *folder)
{
    DIR *directory = opendir(folder);
    for (struct dirent *entry; directory && (entry = readdir(directory));) {
        int end = 0;
        sscanf(entry->d_name, "ptxgen-%*[0-9]-%*[0-9]%n", &end);
        if (end && strcmp(entry->d_name + end, ".tmp") == 0)
            unlink(arena_format(a, "%s/%s", folder, entry->d_name));
    }
    if (directory)
        closedir(directory);
}

static bool write_and_close(arena *a, int descriptor, const os_pending *p, const char **error)
{
    bool ok = write_all(descriptor, p->bytes, p->size) || os_fail(a, error);
    return close(descriptor) == 0 || !ok ? ok : os_fail(a, error);
}

/* Returns the target of a chain of symbolic links, or the path itself if it does not exist. */
static const char *resolved(arena *a, const char *path)
{
    char *real = realpath(path, NULL);
    const char *kept = arena_strdup(a, real ? real : path);
    free(real);
    return kept;
}

bool os_write_pending(arena *a, const char *path, const void *bytes, size_t size,
                      os_pending *pending, const char **error)
{
    static atomic_uint next;
    *pending = (os_pending){ .path = resolved(a, path), .bytes = bytes, .size = size };
    if (os_is_device(path))
        return true;
    const char *temporary;
    int descriptor;
    unsigned attempts = 0;
    do { /* not mkstemp, which creates private files */
        temporary = arena_format(a, "%.*sptxgen-%ld-%u.tmp", (int)folder_length(pending->path),
                                 pending->path, (long)getpid(), atomic_fetch_add(&next, 1));
        descriptor = open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    } while (descriptor < 0 && errno == EEXIST && ++attempts < MAX_ATTEMPTS);
    if (descriptor < 0)
        return os_fail(a, error);
    if (!write_and_close(a, descriptor, pending, error)) {
        unlink(temporary);
        return false;
    }
    pending->temporary = temporary;
    return true;
}

bool os_commit(arena *a, const os_pending *pending, const char **error)
{
    if (!pending->temporary) {
        /* O_NONBLOCK, so that a FIFO without a reader is an error instead of blocking */
        int descriptor = open(pending->path, O_WRONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
        bool unread = descriptor < 0 && errno == ENXIO;
        if (descriptor < 0) {
            os_fail(a, error);
            *error = unread ? "no process reads this pipe" : *error;
            return false;
        }
        fcntl(descriptor, F_SETFL, fcntl(descriptor, F_GETFL) & ~O_NONBLOCK);
        return write_and_close(a, descriptor, pending, error);
    }
    if (rename(pending->temporary, pending->path) == 0)
        return true;
    os_fail(a, error);
    unlink(pending->temporary);
    return false;
}

void os_discard(const os_pending *pending)
{
    if (pending->temporary)
        unlink(pending->temporary);
}

bool os_write_file(arena *a, const char *path, const void *bytes, size_t size, const char **error)
{
    if (strcmp(path, "-") == 0)
        return write_all(STDOUT_FILENO, bytes, size) || os_fail(a, error);
    os_pending pending;
    return os_write_pending(a, path, bytes, size, &pending, error) && os_commit(a, &pending, error);
}

const char *os_name_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

const char *os_folder_of(arena *a, const char *path)
{
    const char *real = resolved(a, path);
    size_t length = folder_length(real);
    return os_absolute_path(a, length ? arena_copy(a, real, length) : ".");
}

/* A folder to lock. All processes lock in the same order, which prevents deadlocks. */
typedef struct folder_to_lock {
    os_lock lock;
    dev_t device;
    ino_t file;
} folder_to_lock;

static int by_file(const void *left, const void *right)
{
    const folder_to_lock *a = left, *b = right;
    if (a->device != b->device)
        return a->device < b->device ? -1 : 1;
    return a->file < b->file ? -1 : a->file > b->file;
}

/* Waits for a lock. Succeeds with *held = false if the file system does not support locks. */
static bool lock_descriptor(int descriptor, bool *held)
{
    static const struct timespec turn = { .tv_nsec = LOCK_TURN };
    for (long turns = 0; turns < LOCK_SECONDS * (1000000000L / LOCK_TURN); turns++) {
        *held = flock(descriptor, LOCK_EX | LOCK_NB) == 0;
        if (*held || (errno != EWOULDBLOCK && errno != EINTR))
            return true;
        nanosleep(&turn, NULL);
    }
    return false;
}

bool os_lock_folders(arena *a, const char *const *folders, size_t count, os_locks *out,
                     const char **failed, const char **error)
{
    folder_to_lock *all = arena_zalloc(a, (count + 1) * sizeof *all);
    size_t opened = 0;
    *out = (os_locks){ 0 };
    for (size_t i = 0; i < count; i++) {
        struct stat status;
        int descriptor = open(folders[i], O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (descriptor >= 0 && fstat(descriptor, &status) == 0)
            all[opened++] = (folder_to_lock){ .lock = { folders[i], descriptor },
                                              .device = status.st_dev,
                                              .file = status.st_ino };
    }
    qsort(all, opened, sizeof *all, by_file);
    bool ok = true;
    for (size_t i = 0; i < opened; i++) {
        const folder_to_lock *f = &all[i];
        bool held = false;
        if (ok && (!i || by_file(f - 1, f) != 0) && !lock_descriptor(f->lock.descriptor, &held)) {
            *failed = f->lock.folder;
            *error = arena_format(a,
                                  "another process has locked this folder for %d s; wait for it "
                                  "or end it",
                                  LOCK_SECONDS);
            ok = false;
        }
        if (held)
            *VEC_PUSH(a, out) = f->lock;
        else
            close(f->lock.descriptor);
    }
    if (!ok)
        os_unlock(out);
    return ok;
}

void os_unlock(os_locks *locks)
{
    for (size_t i = 0; i < locks->count; i++)
        close(locks->items[i].descriptor);
    locks->count = 0;
}

bool os_make_directories(arena *a, const char *path, const char **error)
{
    char *partial = arena_strdup(a, *path ? path : ".");
    for (char *slash = partial + 1;; slash++) {
        if (*slash != '/' && *slash != '\0')
            continue;
        char end = *slash;
        *slash = '\0';
        int failure = mkdir(partial, 0777) != 0 ? errno : 0;
        struct stat status;
        if (failure && !(stat(partial, &status) == 0 && S_ISDIR(status.st_mode))) {
            errno = failure == EEXIST ? ENOTDIR : failure;
            return os_fail(a, error);
        }
        *slash = end;
        if (end == '\0')
            return true;
    }
}

bool os_exists(const char *path)
{
    return access(path, F_OK) == 0;
}

const char *os_file_identity(arena *a, const char *path)
{
    struct stat status;
    return stat(path, &status) != 0
               ? NULL
               : arena_format(a, "%ju:%ju", (uintmax_t)status.st_dev, (uintmax_t)status.st_ino);
}

const char *os_absolute_path(arena *a, const char *path)
{
    char *real = realpath(*path ? path : ".", NULL);
    if (real) {
        const char *kept = arena_strdup(a, real);
        free(real);
        return kept;
    }
    const char *slash = strrchr(path, '/'), *name = os_name_of(path);
    if (!*path || (slash == path && !*name))
        return path;
    size_t length = slash == path ? 1 : slash ? (size_t)(slash - path) : 0;
    const char *folder = os_absolute_path(a, arena_copy(a, path, length));
    const char *last = strrchr(folder, '/');
    if (!*name || strcmp(name, ".") == 0)
        return folder;
    if (strcmp(name, "..") == 0)
        return last > folder ? arena_copy(a, folder, (size_t)(last - folder)) : "/";
    return arena_format(a, "%s%s%s", folder, last && !last[1] ? "" : "/", name);
}

static const char SCRATCH[] = "ptxgen.", IN_USE[] = "in_use";

const char *os_scratch_parent(void)
{
    const char *parent = getenv("TMPDIR");
    return parent && *parent ? parent : "/tmp";
}

bool os_temporary_directory(arena *a, const char **path, const char **error)
{
    char *name = arena_format(a, "%s/%sXXXXXX", os_scratch_parent(), SCRATCH);
    if (!mkdtemp(name))
        return os_fail(a, error);
    *path = name;
    return true;
}

void os_remove_directory(arena *a, const char *path)
{
    DIR *directory = opendir(path);
    for (struct dirent *entry; directory && (entry = readdir(directory));)
        unlink(arena_format(a, "%s/%s", path, entry->d_name));
    if (directory)
        closedir(directory);
    rmdir(path);
}

/* Removes scratch folders of this user whose "in_use" file no process has locked. */
static void remove_abandoned(arena *a)
{
    const char *parent = os_scratch_parent();
    DIR *directory = opendir(parent);
    for (struct dirent *entry; directory && (entry = readdir(directory));) {
        struct stat status;
        const char *path = arena_format(a, "%s/%s", parent, entry->d_name);
        if (strncmp(entry->d_name, SCRATCH, strlen(SCRATCH)) != 0 || lstat(path, &status) != 0 ||
            !S_ISDIR(status.st_mode) || status.st_uid != geteuid())
            continue;
        const char *mark = arena_format(a, "%s/%s", path, IN_USE);
        int lock = open(mark, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
        if (lock >= 0 && flock(lock, LOCK_EX | LOCK_NB) == 0)
            os_remove_directory(a, path);
        if (lock >= 0)
            close(lock);
    }
    if (directory)
        closedir(directory);
}

bool os_open_scratch(arena *a, os_lock *out, const char **error)
{
    static atomic_flag cleaned = ATOMIC_FLAG_INIT;
    if (!atomic_flag_test_and_set(&cleaned))
        remove_abandoned(a);
    for (unsigned attempt = 0; attempt < MAX_ATTEMPTS; attempt++) {
        struct stat status;
        if (!os_temporary_directory(a, &out->folder, error))
            return false;
        const char *mark = arena_format(a, "%s/%s", out->folder, IN_USE);
        out->descriptor = open(mark, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
        if (out->descriptor < 0) {
            os_fail(a, error);
            rmdir(out->folder);
            return false;
        }
        /* Another process may have removed the folder as abandoned before it was locked. */
        if ((flock(out->descriptor, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK) &&
            stat(mark, &status) == 0)
            return true;
        close(out->descriptor);
    }
    *error = "cannot create a folder for temporary files";
    return false;
}

void os_close_scratch(arena *a, const os_lock *scratch)
{
    os_remove_directory(a, scratch->folder);
    close(scratch->descriptor);
}

void os_remove_file(const char *path)
{
    unlink(path);
}

bool os_is_terminal(int descriptor)
{
    return isatty(descriptor) == 1;
}
