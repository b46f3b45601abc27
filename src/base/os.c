#if defined(HAVE_PIPE2) || defined(HAVE_AFFINITY)
#define _GNU_SOURCE
#else
#define _XOPEN_SOURCE 700
#endif

#include "base/os.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/strbuf.h"

enum { READ_STEP = 64 * 1024, MAX_THREADS = 256, MAX_ATTEMPTS = 1000 };

extern char **environ;

static bool fail(arena *a, const char **error)
{
    *error = arena_strdup(a, strerror(errno));
    return false;
}

static bool read_all(arena *a, int descriptor, size_t most, char **bytes, size_t *size,
                     const char **error)
{
    strbuf content = strbuf_new(a);
    for (;;) {
        char *end = strbuf_reserve(&content, READ_STEP);
        ssize_t got = read(descriptor, end, READ_STEP);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return fail(a, error);
        if (got == 0)
            break;
        content.length += (size_t)got;
        if (content.length > most) {
            *error = arena_format(a, "more than %zu bytes", most);
            return false;
        }
    }
    content.text[content.length] = '\0';
    *bytes = content.text;
    *size = content.length;
    return true;
}

bool os_read_short_file(arena *a, const char *path, size_t most, char **bytes, size_t *size,
                        const char **error)
{
    if (strcmp(path, "-") == 0)
        return read_all(a, STDIN_FILENO, most, bytes, size, error);
    int descriptor = open(path, O_RDONLY | O_CLOEXEC);
    if (descriptor < 0)
        return fail(a, error);
    bool ok = read_all(a, descriptor, most, bytes, size, error);
    close(descriptor);
    return ok;
}

bool os_read_file(arena *a, const char *path, char **bytes, size_t *size, const char **error)
{
    return os_read_short_file(a, path, SIZE_MAX, bytes, size, error);
}

bool os_is_device(const char *path)
{
    struct stat status;
    return stat(path, &status) == 0 && !S_ISREG(status.st_mode) && !S_ISDIR(status.st_mode);
}

bool os_file_holds(arena *a, const char *path, const void *bytes, size_t size, bool *holds,
                   const char **error)
{
    char part[READ_STEP];
    const char *expected = bytes;
    size_t left = size;
    ssize_t got = 1;
    *holds = false;
    if (os_is_device(path))
        return true;
    int descriptor = open(path, O_RDONLY | O_CLOEXEC);
    if (descriptor < 0)
        return fail(a, error);
    for (*holds = true; *holds && got != 0;) {
        got = read(descriptor, part, sizeof part);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            break;
        *holds = (size_t)got <= left && memcmp(part, expected, (size_t)got) == 0;
        if (*holds) {
            expected += got;
            left -= (size_t)got;
        }
    }
    *holds = *holds && left == 0;
    bool ok = got >= 0 || fail(a, error);
    close(descriptor);
    return ok;
}

static bool write_all(int descriptor, const void *bytes, size_t size)
{
    const char *next = bytes;
    while (size) {
        ssize_t put = write(descriptor, next, size);
        if (put < 0 && errno == EINTR)
            continue;
        if (put < 0)
            return false;
        next += put;
        size -= (size_t)put;
    }
    return true;
}

/* Not mkstemp: it makes a private file, and the permissions that a new file of the user's gets are
 * known only by changing the umask of all threads. */
static int open_temporary(arena *a, const char *path, const char **temporary)
{
    for (unsigned attempt = 0; attempt < MAX_ATTEMPTS; attempt++) {
        *temporary = arena_format(a, "%s.%ld-%u.tmp", path, (long)getpid(), attempt);
        int descriptor = open(*temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (descriptor >= 0 || errno != EEXIST)
            return descriptor;
    }
    return -1;
}

static bool write_and_close(arena *a, int descriptor, const os_pending *p, const char **error)
{
    bool ok = write_all(descriptor, p->bytes, p->size) || fail(a, error);
    return close(descriptor) == 0 || !ok ? ok : fail(a, error);
}

/* Where a chain of symbolic links leads; the path itself where that is nowhere yet. */
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
    *pending = (os_pending){ .path = resolved(a, path), .bytes = bytes, .size = size };
    if (os_is_device(path))
        return true;
    const char *temporary;
    int descriptor = open_temporary(a, pending->path, &temporary);
    if (descriptor < 0)
        return fail(a, error);
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
        int descriptor = open(pending->path, O_WRONLY | O_CLOEXEC);
        return descriptor < 0 ? fail(a, error) : write_and_close(a, descriptor, pending, error);
    }
    if (rename(pending->temporary, pending->path) == 0)
        return true;
    fail(a, error);
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
        return write_all(STDOUT_FILENO, bytes, size) || fail(a, error);
    os_pending pending;
    return os_write_pending(a, path, bytes, size, &pending, error) && os_commit(a, &pending, error);
}

/* Leaves errno alone. */
static bool is_directory(const char *path)
{
    int kept = errno;
    struct stat status;
    bool is = stat(path, &status) == 0 && S_ISDIR(status.st_mode);
    errno = kept;
    return is;
}

bool os_make_directories(arena *a, const char *path, const char **error)
{
    char *partial = arena_strdup(a, *path ? path : ".");
    for (char *slash = partial + 1;; slash++) {
        if (*slash != '/' && *slash != '\0')
            continue;
        char end = *slash;
        *slash = '\0';
        if (mkdir(partial, 0777) != 0 && !is_directory(partial)) {
            if (errno == EEXIST)
                errno = ENOTDIR;
            return fail(a, error);
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

bool os_same_file(const char *a, const char *b)
{
    struct stat first, second;
    return stat(a, &first) == 0 && stat(b, &second) == 0 && first.st_dev == second.st_dev &&
           first.st_ino == second.st_ino;
}

const char *os_absolute_path(arena *a, const char *path)
{
    char *real = realpath(*path ? path : ".", NULL);
    if (real) {
        const char *kept = arena_strdup(a, real);
        free(real);
        return kept;
    }
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
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

bool os_temporary_directory(arena *a, const char **path, const char **error)
{
    const char *parent = getenv("TMPDIR");
    char *name = arena_format(a, "%s/ptxgen.XXXXXX", parent && *parent ? parent : "/tmp");
    if (!mkdtemp(name))
        return fail(a, error);
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

void os_remove_file(const char *path)
{
    unlink(path);
}

static bool is_program(const char *path)
{
    struct stat status;
    return stat(path, &status) == 0 && S_ISREG(status.st_mode) && access(path, X_OK) == 0;
}

const char *os_find_program(arena *a, const char *name)
{
    if (strchr(name, '/'))
        return is_program(name) ? name : NULL;
    const char *path = getenv("PATH");
    while (path && *path) {
        size_t length = strcspn(path, ":");
        const char *candidate = length ? arena_format(a, "%.*s/%s", (int)length, path, name)
                                       : arena_format(a, "./%s", name);
        if (is_program(candidate))
            return candidate;
        path += length + (path[length] == ':');
    }
    return NULL;
}

const char *os_program_folder(arena *a)
{
    char *path = realpath("/proc/self/exe", NULL);
    const char *slash = path ? strrchr(path, '/') : NULL;
    const char *folder = slash ? arena_copy(a, path, (size_t)(slash - path)) : NULL;
    free(path);
    return folder;
}

void os_become(arena *a, const char *path, char *const *argv, const char *variable,
               const char *value, const char **error)
{
    if (setenv(variable, value, 1) == 0)
        execv(path, argv);
    fail(a, error);
}

/* Pipes are not for children that another thread starts: one that kept the writing end open would
 * let reading go on until it ends. Where they are made and closed to children in two steps, no
 * child starts between these. */
#ifndef HAVE_PIPE2
static pthread_mutex_t between_steps = PTHREAD_MUTEX_INITIALIZER;
#endif

static bool open_pipe(int ends[2])
{
#ifdef HAVE_PIPE2
    return pipe2(ends, O_CLOEXEC) == 0;
#else
    pthread_mutex_lock(&between_steps);
    bool ok = pipe(ends) == 0 && fcntl(ends[0], F_SETFD, FD_CLOEXEC) == 0 &&
              fcntl(ends[1], F_SETFD, FD_CLOEXEC) == 0;
    pthread_mutex_unlock(&between_steps);
    return ok;
#endif
}

static int start(pid_t *child, const posix_spawn_file_actions_t *actions, char *const *argv)
{
#ifndef HAVE_PIPE2
    pthread_mutex_lock(&between_steps);
#endif
    int failure = posix_spawn(child, argv[0], actions, NULL, argv, environ);
#ifndef HAVE_PIPE2
    pthread_mutex_unlock(&between_steps);
#endif
    return failure;
}

bool os_run(arena *a, const char *const *argv, char **output, int *status, const char **error)
{
    int ends[2];
    if (!open_pipe(ends))
        return fail(a, error);

    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
    posix_spawn_file_actions_adddup2(&actions, ends[1], STDERR_FILENO);
    pid_t child;
    int failure = start(&child, &actions, (char *const *)argv);
    posix_spawn_file_actions_destroy(&actions);
    close(ends[1]);
    if (failure) {
        close(ends[0]);
        errno = failure;
        return fail(a, error);
    }

    size_t size;
    bool ok = read_all(a, ends[0], SIZE_MAX, output, &size, error);
    close(ends[0]);
    int how;
    while (waitpid(child, &how, 0) < 0)
        if (errno != EINTR)
            return fail(a, error);
    *status = WIFEXITED(how) ? WEXITSTATUS(how) : 128 + WTERMSIG(how);
    return ok;
}

typedef struct batch {
    atomic_size_t next;
    size_t count;
    void (*work)(void *context, size_t i);
    void *context;
} batch;

static void *run_batch(void *argument)
{
    batch *b = argument;
    for (size_t i; (i = atomic_fetch_add(&b->next, 1)) < b->count;)
        b->work(b->context, i);
    return NULL;
}

void os_parallel(unsigned jobs, size_t count, void (*work)(void *context, size_t i), void *context)
{
    batch b = { .count = count, .work = work, .context = context };
    pthread_t threads[MAX_THREADS];
    unsigned started = 0;
    sigset_t all, before; /* signals are for the threads that the program knows of */
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &before);
    while (started + 1 < jobs && started + 1 < count && started < MAX_THREADS &&
           pthread_create(&threads[started], NULL, run_batch, &b) == 0)
        started++;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    run_batch(&b);
    while (started > 0)
        pthread_join(threads[--started], NULL);
}

unsigned os_cpu_count(void)
{
    long count = sysconf(_SC_NPROCESSORS_ONLN);
#ifdef HAVE_AFFINITY
    cpu_set_t usable;
    if (sched_getaffinity(0, sizeof usable, &usable) == 0)
        count = CPU_COUNT(&usable);
#endif
    return count > 0 ? (unsigned)count : 1;
}

uint64_t os_nanoseconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

bool os_is_terminal(int descriptor)
{
    return isatty(descriptor) == 1;
}
