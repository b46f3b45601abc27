#define _POSIX_C_SOURCE 200809L

#include <dirent.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "place_sample.h"
#include "base/hash.h"
#include "emit/tree.h"

static output_file text_file(place *p, const char *name, const char *text)
{
    return (output_file){ .path = path_of(p, name), .bytes = text, .size = strlen(text) };
}

static bool put(place *p, output_file *files, size_t count, size_t *changed)
{
    for (size_t i = 0; i < count; i++)
        files[i].changed = false;
    bool ok = emit_tree(p->arena, files, count, &p->problems);
    *changed = 0;
    for (size_t i = 0; i < count; i++)
        *changed += files[i].changed;
    return ok;
}

static void assert_content(place *p, const char *name, const char *expected)
{
    char *bytes;
    size_t size;
    const char *error;
    assert_true(os_read_file(p->arena, path_of(p, name), &bytes, &size, &error));
    assert_string_equal(bytes, expected);
}

static size_t entries(const char *folder)
{
    DIR *directory = opendir(folder);
    size_t count = 0;
    for (struct dirent *entry; (entry = readdir(directory));)
        count += entry->d_name[0] != '.';
    closedir(directory);
    return count;
}

static struct stat status_of(place *p, const char *name)
{
    struct stat status;
    assert_int_equal(stat(path_of(p, name), &status), 0);
    return status;
}

PLACE_TEST(missing_folders_are_made)
{
    output_file file = text_file(p, "x/y/a", "one");
    size_t changed;
    assert_true(put(p, &file, 1, &changed));
    assert_int_equal(changed, 1);
    assert_content(p, "x/y/a", "one");
    os_remove_directory(p->arena, path_of(p, "x/y"));
    os_remove_directory(p->arena, path_of(p, "x"));
}

PLACE_TEST(a_second_run_touches_nothing)
{
    output_file files[] = { text_file(p, "a", "one"), text_file(p, "b", "") };
    size_t changed;
    assert_true(put(p, files, 2, &changed));
    assert_int_equal(changed, 2);
    struct stat before = status_of(p, "a");
    assert_true(put(p, files, 2, &changed));
    assert_int_equal(changed, 0);
    struct stat after = status_of(p, "a");
    assert_true(before.st_ino == after.st_ino);
    assert_true(before.st_mtim.tv_nsec == after.st_mtim.tv_nsec);
}

PLACE_TEST(only_changed_files_are_replaced)
{
    output_file files[] = { text_file(p, "a", "one"), text_file(p, "b", "two") };
    size_t changed;
    assert_true(put(p, files, 2, &changed));
    struct stat before = status_of(p, "a");
    files[1] = text_file(p, "b", "twO");
    assert_true(put(p, files, 2, &changed));
    assert_int_equal(changed, 1);
    assert_content(p, "b", "twO");
    assert_true(before.st_ino == status_of(p, "a").st_ino);
    files[1] = text_file(p, "b", "twO!");
    assert_true(put(p, files, 2, &changed));
    assert_content(p, "b", "twO!");
}

PLACE_TEST(files_of_earlier_runs_are_left_alone)
{
    output_file files[] = { text_file(p, "a", "one"), text_file(p, "b", "two") };
    size_t changed;
    assert_true(put(p, files, 2, &changed));
    assert_true(put(p, files, 1, &changed));
    assert_content(p, "b", "two");
}

/* A killed run leaves temporary files, and output files that it had already renamed. */
PLACE_TEST(temporary_files_of_a_killed_run_are_removed)
{
    static const char *const kept[] = { "mine.tmp",     "ptxgen-1-.tmp", "ptxgen--1.tmp",
                                        "ptxgen-x.tmp", "edited",        "sub" };
    output_file file = text_file(p, "needed", "text");
    const char *sum = fnv1a64_text(p->arena, fnv1a64("text", 4)), *error;
    const char *outside = path_of(p, "sub/outside");
    size_t changed;
    for (size_t i = 0; i < sizeof kept / sizeof *kept - 1; i++)
        assert_true(os_write_file(p->arena, path_of(p, kept[i]), "other", 5, &error));
    assert_true(os_make_directories(p->arena, path_of(p, "sub"), &error));
    assert_true(os_write_file(p->arena, outside, "text", 4, &error));
    assert_true(os_write_file(p->arena, path_of(p, "added"), "text", 4, &error));
    assert_true(os_write_file(p->arena, path_of(p, "needed"), "text", 4, &error));
    assert_true(os_write_file(p->arena, path_of(p, "ptxgen-99-7.tmp"), "half", 4, &error));
    const char *journal = arena_format(p->arena,
                                       "%s added\n%s edited\n%s needed\n%s sub/outside\n"
                                       "%s absent\nno line\n\n%s",
                                       sum, sum, sum, sum, sum, sum);
    const char *path = path_of(p, "ptxgen-journal.tmp");
    assert_true(os_write_file(p->arena, path, journal, strlen(journal), &error));
    assert_true(put(p, &file, 1, &changed));
    assert_int_equal(changed, 0);
    for (size_t i = 0; i < sizeof kept / sizeof *kept; i++)
        assert_true(os_exists(path_of(p, kept[i])));
    assert_true(os_exists(outside));
    assert_int_equal(entries(p->folder), sizeof kept / sizeof *kept + 1);
    os_remove_directory(p->arena, path_of(p, "sub"));
}

PLACE_TEST(a_folder_at_an_output_path_stops_the_run)
{
    output_file files[] = { text_file(p, "a", "new"), text_file(p, "b", "new") };
    output_file old = text_file(p, "a", "old");
    size_t changed;
    const char *error;
    assert_true(put(p, &old, 1, &changed));
    assert_true(os_make_directories(p->arena, path_of(p, "b"), &error));
    assert_false(put(p, files, 2, &changed));
    assert_content(p, "a", "old");
    assert_int_equal(entries(p->folder), 2);
    assert_int_equal(p->problems.errors, 1);
    assert_int_equal(p->problems.list.items[0].code, DIAG_UNWRITABLE);
    assert_string_equal(p->problems.list.items[0].where.file, path_of(p, "b"));
    os_remove_directory(p->arena, path_of(p, "b"));
}

/* A limit on file size simulates a disk that is full at the second file. */
PLACE_TEST(a_failed_write_replaces_nothing_and_leaves_no_temporary)
{
    enum { LIMIT = 4096 };
    static const char large[LIMIT + 1];
    output_file old[] = { text_file(p, "a", "old"), text_file(p, "b", "old") };
    output_file files[] = { text_file(p, "a", "new"),
                            { .path = path_of(p, "b"), .bytes = large, .size = sizeof large } };
    size_t changed;
    struct rlimit before, small;
    assert_true(put(p, old, 2, &changed));

    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    small = before;
    small.rlim_cur = LIMIT;
    struct sigaction ignore = { .sa_handler = SIG_IGN }, kept;
    sigaction(SIGXFSZ, &ignore, &kept);
    setrlimit(RLIMIT_FSIZE, &small);
    bool ok = put(p, files, 2, &changed);
    setrlimit(RLIMIT_FSIZE, &before);
    sigaction(SIGXFSZ, &kept, NULL);

    assert_false(ok);
    assert_int_equal(changed, 0);
    assert_content(p, "a", "old");
    assert_content(p, "b", "old");
    assert_int_equal(entries(p->folder), 2);
    assert_non_null(strstr(p->problems.list.items[0].message, "File too large"));
}

PLACE_TEST(an_unwritable_folder_is_reported)
{
    output_file file = { .path = "/proc/self/a", .bytes = "one", .size = 3 };
    size_t changed;
    if (!os_exists("/proc/self")) /* not writable even for root */
        skip();
    assert_false(put(p, &file, 1, &changed));
    assert_int_equal(p->problems.errors, 1);
    assert_string_equal(p->problems.list.items[0].where.file, "/proc/self/a");
}

PLACE_TEST(a_folder_that_is_a_file_is_reported)
{
    output_file file = text_file(p, "a", "one");
    size_t changed;
    assert_true(put(p, &file, 1, &changed));
    output_file below = text_file(p, "a/b", "two");
    assert_false(put(p, &below, 1, &changed));
    assert_non_null(strstr(p->problems.list.items[0].message, "Not a directory"));
}
