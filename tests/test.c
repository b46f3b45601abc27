#define _POSIX_C_SOURCE 200809L
#include "test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char usage[] =
    "usage: %s [FILTER... | FAMILY] [--list] [--tier quick|normal|full] [--seed N] [--no-cache]\n"
    "\n"
    "Runs all tests, or the tests that a FILTER names: a folder (unit), a file (unit/spec, spec),\n"
    "or a part of a test's name. With a FAMILY, runs all tests of that kernel family, --verify,\n"
    "ptxas and instruction counts.\n"
    "\n"
    "  --list      print the tests without running them\n"
    "  --tier T    quick: a selection for one minute; normal (default): every case, but not\n"
    "              every pair of two lists' items; full: everything, for hours\n"
    "  --seed N    seed of random inputs\n"
    "  --no-cache  verify kernels again that have passed unchanged\n";

/* The tests of a file, or the function that lists them. */
typedef struct group {
    const char *file, *name;
    CMFixtureFunction set_up, tear_down;
    void (*list)(void);
    size_t listed; /* number of tests listed by test_add_next */
} group;

static group *groups;
static test_case *cases;
static size_t group_count, case_count;

static void *grown(void *array, size_t count, size_t size)
{
    array = realloc(array, (count + 1) * size);
    if (!array)
        abort();
    return array;
}

/* Returns "unit/spec" for "../tests/unit/test_spec.c". */
static char *group_name(const char *file)
{
    const char *base = strrchr(file, '/'), *folder = base;
    while (folder && folder > file && folder[-1] != '/')
        folder--;
    base = base ? base + 1 : file;
    int length = folder ? (int)(base - folder) : 0;
    base += strncmp(base, "test_", strlen("test_")) == 0 ? strlen("test_") : 0;
    char *name = malloc(strlen(file) + 1);
    if (!name)
        abort();
    sprintf(name, "%.*s%.*s", length, folder ? folder : "", (int)strcspn(base, "."), base);
    return name;
}

static group *group_of(const char *file)
{
    for (size_t i = 0; i < group_count; i++)
        if (strcmp(groups[i].file, file) == 0)
            return &groups[i];
    groups = grown(groups, group_count, sizeof *groups);
    groups[group_count] = (group){ .file = file, .name = group_name(file) };
    return &groups[group_count++];
}

static size_t number_of(const char *variable, size_t otherwise)
{
    const char *value = getenv(variable);
    return value ? strtoul(value, NULL, 10) : otherwise;
}

void test_add(const char *file, struct CMUnitTest test, size_t number)
{
    if (number % number_of("PTXGEN_TEST_SHARE", 1) != number_of("PTXGEN_TEST_PART", 0))
        return;
    const char *name = group_of(file)->name;
    cases = grown(cases, case_count, sizeof *cases);
    cases[case_count++] = (test_case){ file, name, test, number };
}

void test_add_next(const char *file, struct CMUnitTest test)
{
    test_add(file, test, group_of(file)->listed++);
}

void test_add_later(const char *file, void (*list)(void))
{
    group_of(file)->list = list;
}

void test_add_fixture(const char *file, CMFixtureFunction set_up, CMFixtureFunction tear_down)
{
    group *g = group_of(file);
    g->set_up = set_up;
    g->tear_down = tear_down;
}

test_tier test_tier_asked(void)
{
    const char *tier = getenv("PTXGEN_TEST_TIER");
    return !tier                        ? TIER_NORMAL
           : strcmp(tier, "quick") == 0 ? TIER_QUICK
           : strcmp(tier, "full") == 0  ? TIER_FULL
                                        : TIER_NORMAL;
}

bool test_takes_row(size_t row, size_t step)
{
    step = test_tier_asked() == TIER_FULL ? 1 : step;
    return row % number_of("PTXGEN_TEST_ROWS", step) == 0;
}

void test_list_all(void)
{
    for (size_t i = 0; i < group_count; i++)
        if (groups[i].list)
            groups[i].list();
}

int test_run(bool (*takes)(const test_case *t, const void *context), const void *context)
{
    int failures = 0;
    for (const group *g = groups; g < groups + group_count; g++) {
        struct CMUnitTest *tests = grown(NULL, case_count, sizeof *tests);
        size_t count = 0;
        for (const test_case *t = cases; t < cases + case_count; t++)
            if (strcmp(t->file, g->file) == 0 && takes(t, context))
                tests[count++] = t->test;
        if (count)
            failures += _cmocka_run_group_tests(g->name, tests, count, g->set_up, g->tear_down);
        free(tests);
    }
    return failures;
}

bool test_is_slow(const char *name)
{
    static const char *const slow[] = { "unit/alike",        "unit/emu_matrix",
                                        "unit/emu_threads",  "unit/overlap",
                                        "unit/spec_decoder", "unit/verify_overlap",
                                        "unit/verify_parts", "unit/verify_prompt",
                                        "unit/verify_step" };
    for (size_t i = 0; i < sizeof slow / sizeof *slow; i++)
        if (strcmp(name, slow[i]) == 0)
            return true;
    return strncmp(name, "kernel/", strlen("kernel/")) == 0 &&
           strcmp(name, "kernel/every_family") != 0;
}

typedef struct filters {
    char **words; /* ends with NULL; empty = all tests */
    bool prints;
    size_t *count; /* number of selected tests */
} filters;

/* Returns true if word is the group's name, its folder, or its name without the folder. */
static bool names_group(const char *word, const char *name)
{
    size_t length = strlen(word);
    const char *base = strchr(name, '/');
    return (strncmp(word, name, length) == 0 && (!name[length] || name[length] == '/')) ||
           (base && strcmp(word, base + 1) == 0);
}

static bool word_takes(const char *word, const test_case *t)
{
    for (const group *g = groups; g < groups + group_count; g++)
        if (names_group(word, g->name))
            return names_group(word, t->group);
    return strstr(t->test.name, word);
}

static bool filters_take(const test_case *t, const void *context)
{
    const filters *f = context;
    bool taken = !*f->words && (test_tier_asked() != TIER_QUICK || !test_is_slow(t->group));
    for (char **word = f->words; *word && !taken; word++)
        taken = word_takes(*word, t);
    if (taken && f->prints)
        printf("%s/%s\n", t->group, t->test.name);
    *f->count += taken;
    return taken && !f->prints;
}

/* Lists the tests of files that postpone this. Lists only files that a word names, all without
 * words. */
static void list_late(char **words)
{
    bool others = !*words;
    for (char **word = words; *word; word++) {
        bool found = false;
        for (size_t i = 0; i < group_count; i++)
            found |= names_group(*word, groups[i].name);
        others |= !found;
    }
    for (size_t i = 0; i < group_count; i++) {
        bool named = others;
        for (char **word = words; *word; word++)
            named |= names_group(*word, groups[i].name);
        if (named && groups[i].list)
            groups[i].list();
    }
}

/* Moves options from the arguments to environment variables that tests read. Returns false if an
 * option is invalid. */
static bool read_options(int argc, char **argv, filters *f)
{
    static const struct {
        const char *name, *variable, *value; /* value = NULL: the next argument */
    } options[] = { { "--tier", "PTXGEN_TEST_TIER", NULL },
                    { "--seed", "PTXGEN_TEST_SEED", NULL },
                    { "--no-cache", "PTXGEN_TEST_CACHE", "" } };
    enum { OPTIONS = sizeof options / sizeof *options };
    int words = 0;
    f->words = argv + 1;
    for (int i = 1; i < argc; i++) {
        int o = 0;
        while (o < OPTIONS && strcmp(argv[i], options[o].name) != 0)
            o++;
        if (strcmp(argv[i], "--list") == 0)
            f->prints = true;
        else if (o < OPTIONS && (options[o].value || i + 1 < argc))
            setenv(options[o].variable, options[o].value ? options[o].value : argv[++i], 1);
        else if (argv[i][0] == '-')
            return false;
        else
            f->words[words++] = argv[i];
    }
    f->words[words] = NULL;
    const char *tier = getenv("PTXGEN_TEST_TIER");
    return !tier || strcmp(tier, "normal") == 0 || test_tier_asked() != TIER_NORMAL;
}

int test_main(int argc, char **argv)
{
    size_t count = 0;
    filters f = { .count = &count };
    if (!read_options(argc, argv, &f)) {
        fprintf(stderr, usage, argv[0]);
        return 2;
    }
    list_late(f.words);
    int failures = test_run(filters_take, &f);
    if (!count && !getenv("PTXGEN_TEST_SHARE")) {
        fprintf(stderr, "%s: no test has this name; --list prints all\n", argv[0]);
        return 2;
    }
    if (!count)
        puts("[  PASSED  ] 0 test(s)."); /* none in this part */
    return failures ? 1 : 0;
}

__attribute__((weak)) int main(int argc, char **argv)
{
    return test_main(argc, argv);
}
