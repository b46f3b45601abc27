#if defined(HAVE_PIPE2) || defined(HAVE_AFFINITY)
#define _GNU_SOURCE
#else
#define _XOPEN_SOURCE 700
#endif

#include "base/os_process.h"
#include "base/strbuf.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <spawn.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { MAX_THREADS = 256, READ_STEP = 64 * 1024 };

extern char **environ;

bool os_fail(arena *a, const char **error)
{
    *error = arena_strdup(a, strerror(errno));
    return false;
}

bool os_read_all(arena *a, int descriptor, size_t expected, size_t most, char **bytes, size_t *size,
                 const char **error)
{
    strbuf content = strbuf_new(a);
    strbuf_reserve(&content, expected + 1);
    for (;;) {
        if (content.capacity - content.length < 2)
            strbuf_grow(&content, READ_STEP);
        ssize_t got =
            read(descriptor, content.text + content.length, content.capacity - content.length - 1);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return os_fail(a, error);
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

/* State shared with the signal handlers. */
static atomic_int interrupted; /* number of the received signal, or 0 */
static atomic_bool deferring;
static _Atomic(pid_t) children[MAX_THREADS + 1]; /* running children of os_run; 0 = free slot */

static void note_signal(int number)
{
    atomic_store(&interrupted, number);
    for (size_t i = 0; i < sizeof children / sizeof *children; i++) {
        pid_t child = atomic_load(&children[i]);
        if (child)
            kill(-child, SIGKILL);
    }
}

/* Signals to defer: those that end a process, and those that a failing write() raises. */
static const struct {
    int number;
    void (*handler)(int);
} deferred[] = { { SIGHUP, note_signal },  { SIGINT, note_signal }, { SIGQUIT, note_signal },
                 { SIGTERM, note_signal }, { SIGPIPE, SIG_IGN },    { SIGXFSZ, SIG_IGN } };
enum { DEFERRED = sizeof deferred / sizeof *deferred };
static struct sigaction actions_before[DEFERRED];

void os_defer_signals(void)
{
    atomic_store(&interrupted, 0);
    atomic_store(&deferring, true);
    for (size_t i = 0; i < DEFERRED; i++) {
        struct sigaction action = { .sa_handler = deferred[i].handler };
        sigemptyset(&action.sa_mask);
        sigaction(deferred[i].number, NULL, &actions_before[i]);
        if (actions_before[i].sa_handler != SIG_IGN) /* keeps the ignored SIGHUP of nohup */
            sigaction(deferred[i].number, &action, NULL);
    }
}

bool os_interrupted(void)
{
    return atomic_load(&interrupted) != 0;
}

void os_deliver_signals(void)
{
    for (size_t i = 0; i < DEFERRED; i++)
        sigaction(deferred[i].number, &actions_before[i], NULL);
    atomic_store(&deferring, false);
    int number = atomic_exchange(&interrupted, 0);
    if (number)
        raise(number);
}

/* Replaces a child's id, or fills a free slot (before = 0) if there is one. */
static void replace_child(pid_t before, pid_t after)
{
    for (size_t i = 0; i < sizeof children / sizeof *children; i++) {
        pid_t expected = before;
        if (atomic_compare_exchange_strong(&children[i], &expected, after))
            return;
    }
}

/* Jump target of the SIGBUS handler, in os_try_mapped. */
static sigjmp_buf page_is_missing;

static void leave_work(int number)
{
    (void)number;
    siglongjmp(page_is_missing, 1);
}

bool os_try_mapped(void (*work)(void *context), void *context)
{
    struct sigaction action = { .sa_handler = leave_work }, kept;
    sigemptyset(&action.sa_mask);
    sigaction(SIGBUS, &action, &kept);
    bool whole = false;
    if (sigsetjmp(page_is_missing, 1) == 0) {
        work(context);
        whole = true;
    }
    sigaction(SIGBUS, &kept, NULL);
    return whole;
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
    os_fail(a, error);
}

/* Children of other threads must not inherit a pipe: an open writing end would block the reader
 * until that child ends. Without pipe2, setting close-on-exec takes two steps, and this lock keeps
 * other threads from starting a child between them. */
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
    posix_spawnattr_t attributes;
    posix_spawnattr_init(&attributes);
    if (atomic_load(&deferring)) /* own process group, which note_signal kills */
        posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
    int failure = posix_spawn(child, argv[0], actions, &attributes, argv, environ);
    posix_spawnattr_destroy(&attributes);
#ifndef HAVE_PIPE2
    pthread_mutex_unlock(&between_steps);
#endif
    return failure;
}

bool os_run(arena *a, const char *const *argv, char **output, int *status, const char **error)
{
    int ends[2];
    if (!open_pipe(ends))
        return os_fail(a, error);

    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
    posix_spawn_file_actions_adddup2(&actions, ends[1], STDERR_FILENO);
    pid_t child;
    int failure = start(&child, &actions, (char *const *)argv);
    posix_spawn_file_actions_destroy(&actions);
    if (!failure && atomic_load(&deferring)) {
        replace_child(0, child);
        if (os_interrupted()) /* the signal came before the handler knew the child */
            kill(-child, SIGKILL);
    }
    close(ends[1]);
    if (failure) {
        close(ends[0]);
        errno = failure;
        return os_fail(a, error);
    }

    size_t size;
    bool ok = os_read_all(a, ends[0], 0, SIZE_MAX, output, &size, error);
    close(ends[0]);
    replace_child(child, 0); /* before waitpid, after which the system may reuse the id */
    int how;
    while (waitpid(child, &how, 0) < 0)
        if (errno != EINTR)
            return os_fail(a, error);
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
    for (size_t i; !os_interrupted() && (i = atomic_fetch_add(&b->next, 1)) < b->count;)
        b->work(b->context, i);
    return NULL;
}

void os_parallel(unsigned jobs, size_t count, void (*work)(void *context, size_t i), void *context)
{
    batch b = { .count = count, .work = work, .context = context };
    pthread_t threads[MAX_THREADS];
    unsigned started = 0;
    sigset_t all, before; /* worker threads block all signals */
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
