/* ptxgen-test: runs unit and kernel tests, as test.h says, or all that concerns one family of
 * kernels: `ptxgen-test rms_norm`. */
#define _POSIX_C_SOURCE 200809L
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "test.h"
#include "base/os.h"
#include "base/os_process.h"
#include "kernel/family.h"

#define EVERY_FAMILY SOURCE_ROOT "/tests/every_family.ini"
#define COST_TABLE   SOURCE_ROOT "/src/cost/costs.tsv"

static char *read_text(arena *a, const char *path)
{
    const char *error;
    char *text;
    size_t size;
    if (os_read_file(a, path, &text, &size, &error))
        return text;
    fprintf(stderr, "%s: %s\n", path, error);
    exit(1);
}

/* Returns true if a text has a family's name as "NAME", [NAME] or [NAME:. */
static bool names_family(const char *text, const char *end, const char *name)
{
    size_t size = strlen(name);
    for (const char *at = text; (at = strstr(at, name)) && at < end; at++)
        if (at > text && ((at[-1] == '"' && at[size] == '"') ||
                          (at[-1] == '[' && (at[size] == ']' || at[size] == ':'))))
            return true;
    return false;
}

/* Returns the first test of a source from a place on, TEST(NAME) or ARENA_TEST(NAME) at the start
 * of a line; NULL: there is none. */
static const char *next_test(const char *from)
{
    const char *test = strstr(from, "\nTEST"), *other = strstr(from, "\nARENA_TEST(");
    return !test || (other && other < test) ? other : test;
}

typedef struct selection {
    const char *family;
    arena *arena;
    unsigned *count; /* of tests that were taken */
} selection;

/* Returns true for a test whose name begins with the family's, and for one whose source names the
 * family in its body, or in what its file has outside of tests. */
static bool concerns_family(const test_case *t, const void *context)
{
    const selection *s = context;
    size_t length = strlen(s->family);
    bool taken = strncmp(t->test.name, s->family, length) == 0 && t->test.name[length] == '_';
    if (!taken && !t->test.initial_state) { /* else it is of another family */
        const char *at = read_text(
            s->arena, arena_format(s->arena, "%s/%s", SOURCE_ROOT, strstr(t->file, "tests/")));
        const char *test = next_test(at);
        for (; test && !taken; test = next_test(at)) {
            const char *name = strchr(test, '(') + 1, *end = strstr(test, "\n}");
            end = end ? end : strchr(test, '\0');
            bool own = strncmp(name, t->test.name, strcspn(name, "),")) == 0;
            taken =
                names_family(at, test, s->family) || (own && names_family(test, end, s->family));
            at = end;
        }
        taken |= names_family(at, strchr(at, '\0'), s->family);
    }
    *s->count += taken;
    return taken;
}

/* Starts the tool's checks of a family's sections of every_family.ini: for sm_90, as tests run the
 * oldest target's kernels, or for all targets where the family is not made for that one. */
static FILE *start_checks(arena *a, const char *name)
{
    strbuf spec = strbuf_new(a);
    const char *text = read_text(a, EVERY_FAMILY), *next;
    bool wanted = false;
    for (const char *line = text; *line; line = next) {
        next = strchr(line, '\n');
        next = next ? next + 1 : strchr(line, '\0');
        if (*line == '[')
            wanted = strncmp(line, "[ptxgen]", 8) == 0 || names_family(line, next, name);
        if (wanted)
            strbuf_format(&spec, "%.*s", (int)(next - line), line);
    }
    const char *path = arena_format(a, "%s/%s.ini", getenv("PTXGEN_TEST_CACHE"), name), *error;
    if (!os_write_file(a, path, spec.text, spec.length, &error)) {
        fprintf(stderr, "%s: %s\n", path, error);
        exit(1);
    }
    const char *tool = arena_format(a, "'%s/ptxgen' --spec '%s'", BUILD_ROOT, path);
    fflush(stdout);
    return popen(
        arena_format(
            a,
            "t=sm_90; %s --print-outputs --target $t >/dev/null 2>&1 && t=\"--target $t\" || "
            "t=; v=; command -v ptxas >/dev/null || PATH=$PATH:/usr/local/cuda/bin; command -v "
            "ptxas >/dev/null && v=--validate || echo 'ptxas           skipped: not found'; "
            "exec %s $t $v --verify 2>&1",
            tool, tool),
        "r");
}

/* Prints instruction counts: of each row of the cost table that the kernels of now change both,
 * what was counted and what is. Without ptxas it says so. */
static void compare_counts(arena *a, const char *name)
{
    const char *copy = arena_format(a, "%s/costs.tsv", getenv("PTXGEN_TEST_CACHE")), *error;
    const char *old = read_text(a, COST_TABLE), *next;
    char *output;
    int status;
    const char *const count[] = { BUILD_ROOT "/tests/bench/cost",
                                  "count",
                                  SOURCE_ROOT "/tests/bench/cost.ini",
                                  copy,
                                  name,
                                  NULL };
    if (!os_write_file(a, copy, old, strlen(old), &error) ||
        !os_run(a, count, &output, &status, &error) || status) {
        printf("instructions    skipped: %s", status ? output : error);
        return;
    }
    const char *new = read_text(a, copy);
    unsigned rows = 0, changed = 0;
    for (const char *line = new; *line; line = next) {
        next = strchr(line, '\n');
        next = next ? next + 1 : strchr(line, '\0');
        size_t head = strcspn(line, "\t");
        if (head != strlen(name) || strncmp(line, name, head) != 0)
            continue;
        rows++;
        const char *same = strstr(old, arena_format(a, "%.*s", (int)(next - line), line));
        if (same)
            continue;
        changed++;
        int columns = (int)(strchr(strchr(line + head + 1, '\t') + 1, '\t') - line) + 1;
        const char *was = strstr(old, arena_format(a, "\n%.*s", columns, line));
        printf("was %.*s\nis  %.*s", was ? (int)strcspn(was + 1, "\n") : 0, was ? was + 1 : "",
               (int)(next - line), line);
    }
    printf("instructions    %u rows of src/cost/costs.tsv, %u of them changed\n", rows, changed);
}

static int test_family(const char *name)
{
    arena *a = arena_new();
    unsigned count = 0;
    char line[512];
    setenv("PTXGEN_TEST_DEVICE", "emulator", 1);
    setenv("PTXGEN_TEST_FAMILY", name, 1);
    FILE *checks = start_checks(a, name);
    int out = dup(STDOUT_FILENO), nothing = open("/dev/null", O_WRONLY);
    dup2(nothing, STDOUT_FILENO); /* failures go to standard error */
    test_list_all();
    int failures = test_run(concerns_family, &(selection){ name, a, &count });
    fflush(stdout);
    dup2(out, STDOUT_FILENO);
    printf("tests           %u of %u passed\n", count - (unsigned)failures, count);
    while (checks && fgets(line, sizeof line, checks))
        fputs(line, stdout);
    int status = checks ? pclose(checks) : 1;
    compare_counts(a, name);
    close(out);
    close(nothing);
    arena_free(a);
    return failures || status;
}

int main(int argc, char **argv)
{
    setenv("PTXGEN_GOLDEN", BUILD_ROOT "/tests/golden", 0);
    setenv("PTXGEN_MODELS", SOURCE_ROOT "/../shared/models", 0);
    setenv("PTXGEN_REAL_HEADERS", BUILD_ROOT "/tests", 0);
    setenv("PTXGEN_NVCC_DATA", BUILD_ROOT "/tests/nvcc", 0);
    setenv("PTXGEN_TEST_CACHE", BUILD_ROOT "/test-cache", 0);
    if (argc == 2 && family_find(families, argv[1]))
        return test_family(argv[1]);
    return test_main(argc, argv);
}
