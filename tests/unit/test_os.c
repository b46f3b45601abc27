#define _GNU_SOURCE

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "place_sample.h"
#include "base/os_process.h"

static void put(place *p, const char *path, const char *text)
{
    const char *error;
    assert_true(os_write_file(p->arena, path, text, strlen(text), &error));
}

static void assert_content(place *p, const char *path, const char *expected)
{
    char *bytes;
    size_t size;
    const char *error;
    assert_true(os_read_file(p->arena, path, &bytes, &size, &error));
    assert_int_equal(size, strlen(expected));
    assert_string_equal(bytes, expected);
}

PLACE_TEST(written_files_are_read_back)
{
    enum { SIZE = 300000 };
    char *large = arena_alloc(p->arena, SIZE), *bytes;
    size_t size;
    const char *error;
    for (size_t i = 0; i < SIZE; i++)
        large[i] = (char)(i * 7 >> 3);
    assert_true(os_write_file(p->arena, path_of(p, "a"), large, SIZE, &error));
    assert_true(os_read_file(p->arena, path_of(p, "a"), &bytes, &size, &error));
    assert_int_equal(size, SIZE);
    assert_memory_equal(bytes, large, SIZE);
    assert_int_equal(bytes[size], 0);
}

PLACE_TEST(a_file_that_is_missing_or_a_folder_is_not_read)
{
    char *bytes;
    size_t size;
    const char *error;
    assert_false(os_read_file(p->arena, path_of(p, "a"), &bytes, &size, &error));
    assert_string_equal(error, "No such file or directory");
    assert_false(os_read_file(p->arena, p->folder, &bytes, &size, &error));
    assert_string_equal(error, "Is a directory");
}

PLACE_TEST(a_pending_file_appears_only_when_committed)
{
    const char *path = path_of(p, "a"), *error;
    os_pending first, second;
    put(p, path, "old");
    assert_true(os_write_pending(p->arena, path, "new", 3, &first, &error));
    assert_true(os_write_pending(p->arena, path, "other", 5, &second, &error));
    assert_string_not_equal(first.temporary, second.temporary);
    assert_content(p, path, "old");
    os_discard(&second);
    assert_true(os_commit(p->arena, &first, &error));
    assert_content(p, path, "new");
    assert_false(os_exists(first.temporary));
    assert_false(os_exists(second.temporary));
}

PLACE_TEST(a_new_file_has_the_permissions_the_user_wants)
{
    struct stat status;
    mode_t mask = umask(027);
    put(p, path_of(p, "a"), "text");
    umask(mask);
    assert_int_equal(stat(path_of(p, "a"), &status), 0);
    assert_int_equal(status.st_mode & 0777, 0640);
}

PLACE_TEST(a_commit_onto_a_folder_fails_and_removes_the_temporary)
{
    const char *path = path_of(p, "a"), *error;
    os_pending pending;
    assert_true(os_write_pending(p->arena, path, "new", 3, &pending, &error));
    assert_true(os_make_directories(p->arena, path, &error));
    assert_false(os_commit(p->arena, &pending, &error));
    assert_string_equal(error, "Is a directory");
    assert_false(os_exists(pending.temporary));
    os_remove_directory(p->arena, path);
}

PLACE_TEST(a_device_is_written_to_and_not_replaced)
{
    struct stat status;
    const char *error;
    put(p, "/dev/null", "text");
    assert_int_equal(stat("/dev/null", &status), 0);
    assert_true(S_ISCHR(status.st_mode));
    if (!os_exists("/dev/full"))
        skip();
    assert_false(os_write_file(p->arena, "/dev/full", "text", 4, &error));
    assert_string_equal(error, "No space left on device");
}

PLACE_TEST(only_regular_files_are_read)
{
    char *bytes;
    size_t size;
    bool same;
    const char *error, *pipe = path_of(p, "pipe");
    assert_int_equal(mkfifo(pipe, 0600), 0);
    assert_false(os_read_file(p->arena, pipe, &bytes, &size, &error));
    assert_string_equal(error, "not a regular file");
    assert_false(os_read_input(p->arena, "/dev/zero", 100, &bytes, &size, &error));
    assert_string_equal(error, "not a regular file");
    assert_true(os_file_holds(p->arena, pipe, "", 0, &same, &error));
    assert_false(same);
    put(p, path_of(p, "a"), "text");
    assert_false(os_read_short_file(p->arena, path_of(p, "a"), 3, &bytes, &size, &error));
    assert_string_equal(error, "more than 3 bytes");
}

PLACE_TEST(a_pipe_named_by_its_descriptor_is_read)
{
    static const char *const streams[] = { "-", "/dev/stdin", "/dev/fd/0", "/dev/fd/63" };
    static const char *const others[] = {
        "", "./-", "/dev/fd/", "/dev/fd/1x", "/dev/fd/99999", "a"
    };
    char *bytes;
    size_t size;
    const char *error;
    int ends[2];
    for (size_t i = 0; i < sizeof streams / sizeof *streams; i++)
        assert_true(os_is_stream(streams[i]));
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        assert_false(os_is_stream(others[i]));
    assert_int_equal(pipe(ends), 0);
    assert_int_equal(write(ends[1], "text", 4), 4);
    close(ends[1]);
    const char *path = arena_format(p->arena, "/dev/fd/%d", ends[0]);
    assert_true(os_read_input(p->arena, path, 100, &bytes, &size, &error));
    assert_string_equal(bytes, "text");
    close(ends[0]);
}

PLACE_TEST(a_pipe_that_no_process_reads_is_not_waited_for)
{
    const char *error, *pipe = path_of(p, "pipe");
    assert_int_equal(mkfifo(pipe, 0600), 0);
    assert_false(os_write_file(p->arena, pipe, "text", 4, &error));
    assert_string_equal(error, "no process reads this pipe");
}

/* Simulates another process by a thread: a lock belongs to the open file description. */
static void *lock_folder(void *context)
{
    place *p = context;
    arena *a = arena_new();
    os_locks locks;
    const char *failed, *error;
    bool locked =
        os_lock_folders(a, (const char *const[]){ p->folder }, 1, &locks, &failed, &error);
    os_unlock(&locks);
    arena_free(a);
    return locked ? p : NULL;
}

PLACE_TEST(a_folder_is_locked_once_at_a_time)
{
    static const struct timespec enough = { .tv_nsec = 100000000 };
    const char *const twice[] = { p->folder, path_of(p, "."), "/proc/self" };
    os_locks locks;
    const char *failed, *error;
    pthread_t other;
    void *got;
    assert_true(os_lock_folders(p->arena, twice, 3, &locks, &failed, &error));
    assert_true(locks.count >= 1 && locks.count <= 2); /* some /proc entries may be locked */
    assert_int_equal(pthread_create(&other, NULL, lock_folder, p), 0);
    nanosleep(&enough, NULL);
    assert_int_equal(pthread_tryjoin_np(other, &got), EBUSY);
    os_unlock(&locks);
    pthread_join(other, &got);
    assert_ptr_equal(got, p);
}

/* Reads past the end of a mapped file. */
static void touch_page(void *context)
{
    volatile const char *page = context;
    (void)*page;
}

PLACE_TEST(a_truncated_mapped_file_is_detected)
{
    put(p, path_of(p, "a"), "text");
    int descriptor = open(path_of(p, "a"), O_RDWR);
    void *page = mmap(NULL, 4, PROT_READ, MAP_PRIVATE, descriptor, 0);
    assert_ptr_not_equal(page, MAP_FAILED);
    assert_true(os_try_mapped(touch_page, page));
    assert_int_equal(ftruncate(descriptor, 0), 0);
    assert_false(os_try_mapped(touch_page, page));
    assert_false(os_try_mapped(touch_page, page));
    munmap(page, 4);
    close(descriptor);
}

PLACE_TEST(a_pipe_is_written_to_only_when_committed)
{
    const char *path = path_of(p, "a"), *error;
    os_pending pending;
    bool same;
    char got[4] = "";
    assert_int_equal(mkfifo(path, 0600), 0);
    int reader = open(path, O_RDONLY | O_NONBLOCK);
    assert_true(os_file_holds(p->arena, path, "", 0, &same, &error));
    assert_false(same);
    assert_true(os_write_pending(p->arena, path, "new", 3, &pending, &error));
    assert_int_equal(read(reader, got, sizeof got), 0);
    assert_true(os_commit(p->arena, &pending, &error));
    assert_int_equal(read(reader, got, sizeof got), 3);
    assert_string_equal(got, "new");
    assert_true(os_write_pending(p->arena, path, "never", 5, &pending, &error));
    os_discard(&pending);
    assert_int_equal(read(reader, got, sizeof got), 0);
    close(reader);
}

PLACE_TEST(the_target_of_a_link_is_replaced_and_not_the_link)
{
    char target[8];
    put(p, path_of(p, "b"), "old");
    assert_int_equal(symlink("b", path_of(p, "a")), 0);
    put(p, path_of(p, "a"), "new");
    assert_int_equal(readlink(path_of(p, "a"), target, sizeof target), 1);
    assert_content(p, path_of(p, "b"), "new");
    unlink(path_of(p, "b"));
}

PLACE_TEST(folders_are_made_with_those_above_them)
{
    const char *error;
    assert_true(os_make_directories(p->arena, path_of(p, "x//y/"), &error));
    assert_true(os_exists(path_of(p, "x/y")));
    assert_true(os_make_directories(p->arena, path_of(p, "x/y"), &error));
    assert_true(os_make_directories(p->arena, "/", &error));
    assert_true(os_make_directories(p->arena, "", &error));
    os_remove_directory(p->arena, path_of(p, "x/y"));
    os_remove_directory(p->arena, path_of(p, "x"));
}

PLACE_TEST(a_file_in_the_way_of_a_folder_is_an_error)
{
    const char *error;
    put(p, path_of(p, "a"), "text");
    assert_false(os_make_directories(p->arena, path_of(p, "a"), &error));
    assert_string_equal(error, "Not a directory");
    assert_false(os_make_directories(p->arena, path_of(p, "a/b"), &error));
    assert_string_equal(error, "Not a directory");
}

PLACE_TEST(two_names_of_one_file_are_the_same)
{
    arena *a = p->arena;
    put(p, path_of(p, "a"), "text");
    put(p, path_of(p, "b"), "text");
    const char *identity = os_file_identity(a, path_of(p, "a"));
    assert_string_equal(identity, os_file_identity(a, path_of(p, "./a")));
    assert_string_not_equal(identity, os_file_identity(a, path_of(p, "b")));
    assert_null(os_file_identity(a, path_of(p, "c")));
    unlink(path_of(p, "b"));
    assert_false(os_exists(path_of(p, "b")));
}

PLACE_TEST(a_file_has_one_absolute_path_before_it_is_there_and_after)
{
    static const char *const names[] = { "x/y",   "./x/y",       "x//y",     "x/z/../y",
                                         "x/./y", "none/../x/y", "linked/y", "x/../../%s/x/y" };
    const char *error, *real = os_absolute_path(p->arena, p->folder);
    const char *expected = arena_format(p->arena, "%s/x/y", real);
    const char *last = strrchr(p->folder, '/') + 1;
    for (int there = 0; there < 3; there++) {
        if (there == 1) {
            assert_true(os_make_directories(p->arena, path_of(p, "x/z"), &error));
            assert_int_equal(symlink("x", path_of(p, "linked")), 0);
        } else if (there == 2) {
            put(p, path_of(p, "x/y"), "");
        }
        for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
            if (!there && strstr(names[i], "linked"))
                continue;
            const char *name =
                strstr(names[i], "%s") ? arena_format(p->arena, "x/../../%s/x/y", last) : names[i];
            assert_string_equal(os_absolute_path(p->arena, path_of(p, name)), expected);
        }
    }
    assert_string_equal(os_absolute_path(p->arena, "/none/../../there"), "/there");
    assert_string_equal(os_absolute_path(p->arena, "/"), "/");
    assert_true(os_is_device("/dev/null"));
    assert_false(os_is_device(path_of(p, "x/y")));
    assert_false(os_is_device(path_of(p, "x")));
    os_remove_directory(p->arena, path_of(p, "x/z"));
    os_remove_directory(p->arena, path_of(p, "x"));
}

PLACE_TEST(programs_are_found_on_path_only_when_they_can_be_run)
{
    put(p, path_of(p, "tool"), "#!/bin/sh\n");
    const char *kept = arena_strdup(p->arena, getenv("PATH"));
    setenv("PATH", arena_format(p->arena, "/nowhere:%s", p->folder), 1);
    const char *before = os_find_program(p->arena, "tool");
    chmod(path_of(p, "tool"), 0700);
    const char *after = os_find_program(p->arena, "tool");
    const char *absent = os_find_program(p->arena, "no such tool");
    setenv("PATH", kept, 1);
    assert_null(before);
    assert_string_equal(after, path_of(p, "tool"));
    assert_null(absent);
    assert_null(os_find_program(p->arena, p->folder));
}

static bool shell(place *p, const char *script, char **output, int *status, const char **error)
{
    return os_run(p->arena, (const char *const[]){ "/bin/sh", "-c", script, NULL }, output, status,
                  error);
}

PLACE_TEST(a_run_gives_output_of_both_streams_and_the_status)
{
    char *output;
    int status;
    const char *error;
    assert_true(shell(p, "echo one; echo two >&2; cat; exit 3", &output, &status, &error));
    assert_string_equal(output, "one\ntwo\n");
    assert_int_equal(status, 3);
    assert_true(shell(p, "kill -9 $$", &output, &status, &error));
    assert_int_equal(status, 128 + 9);
}

PLACE_TEST(running_a_file_that_is_not_a_program_fails)
{
    char *output;
    int status;
    const char *error;
    assert_false(
        os_run(p->arena, (const char *const[]){ "/nowhere/tool", NULL }, &output, &status, &error));
    assert_string_equal(error, "No such file or directory");
}

#ifdef __linux__
/* Replaces the pipe call of os_run with one that lets another thread start a child at that moment.
 */
static void (*when_made)(void);

static int make_pipe(int ends[2], int flags)
{
    int status = (int)syscall(SYS_pipe2, ends, flags);
    void (*act)(void) = when_made;
    when_made = NULL;
    if (act)
        act();
    return status;
}

int pipe(int ends[2])
{
    return make_pipe(ends, 0);
}

int pipe2(int ends[2], int flags)
{
    return make_pipe(ends, flags);
}

static char *inherited; /* descriptor list of the other thread's child */
static pthread_t other_thread;

static void *list_descriptors(void *unused)
{
    arena *a = arena_new();
    char *output;
    int status;
    const char *error;
    const char *const argv[] = { "/bin/sh", "-c", "ls -l /proc/self/fd", NULL };
    (void)unused;
    inherited = os_run(a, argv, &output, &status, &error) ? strdup(output) : NULL;
    arena_free(a);
    return NULL;
}

static void start_a_child(void)
{
    static const struct timespec enough = { .tv_nsec = 50000000 };
    assert_int_equal(pthread_create(&other_thread, NULL, list_descriptors, NULL), 0);
    nanosleep(&enough, NULL);
}

PLACE_TEST(no_child_inherits_the_pipe_of_another)
{
    char *output;
    int status, pipes = 0;
    const char *error;
    when_made = start_a_child;
    assert_true(shell(p, "echo done", &output, &status, &error));
    assert_string_equal(output, "done\n");
    pthread_join(other_thread, NULL);
    assert_non_null(inherited);
    for (const char *at = inherited; (at = strstr(at, "pipe:")); at++)
        pipes++;
    if (pipes != 2) /* its own stdout and stderr */
        fail_msg("the child has %d pipe ends, expected 2:\n%s", pipes, inherited);
    free(inherited);
}
#endif

static void count_call(void *context, size_t i)
{
    atomic_fetch_add(&((atomic_uint *)context)[i], 1);
}

PLACE_TEST(every_piece_of_parallel_work_is_done_once)
{
    enum { PIECES = 1000 };
    static const unsigned jobs[] = { 0, 1, 3, 5000 };
    for (size_t j = 0; j < sizeof jobs / sizeof *jobs; j++) {
        static atomic_uint calls[PIECES];
        memset(calls, 0, sizeof calls);
        os_parallel(jobs[j], PIECES, count_call, calls);
        for (size_t i = 0; i < PIECES; i++)
            assert_int_equal(calls[i], 1);
    }
    os_parallel(4, 0, count_call, NULL);
}

PLACE_TEST(time_goes_forward_and_there_is_a_processor)
{
    uint64_t before = os_nanoseconds();
    assert_true(os_nanoseconds() >= before);
    assert_true(os_cpu_count() >= 1);
}

PLACE_TEST(a_file_is_no_terminal)
{
    int descriptor = open("/dev/null", O_RDONLY);
    assert_false(os_is_terminal(descriptor));
    close(descriptor);
}
