#define _POSIX_C_SOURCE 200809L

#include <time.h>

#include "test_arena.h"
#include "check/verify_set.h"
#include "kernel/generate.h"
#include "input/spec.h"

enum { KERNELS = 12, JOBS = 4 };

static const char SPEC[] = "[f32_gemv]\nk = 256\nn = 1..12\n";

typedef struct shown {
    size_t calls, last;
} shown;

/* Sleeps for as long as all kernels take together. */
static void show(void *context, const char *what, size_t done, size_t total)
{
    shown *s = context;
    assert_string_equal(what, "verify");
    assert_int_equal(total, KERNELS);
    assert_in_range(done, s->last, total);
    s->last = done;
    s->calls++;
    nanosleep(&(struct timespec){ .tv_nsec = 50 * 1000 * 1000 }, NULL);
}

ARENA_TEST(the_last_step_is_shown_despite_a_slow_callback)
{
    diags d = diags_new(a);
    spec s;
    kernel_set set;
    kernel_list edited = { 0 };
    verification v;
    shown seen = { 0 };
    const progress slow = { .step = show, .context = &seen };
    assert_true(spec_parse(a, "spec.ini", SPEC, sizeof SPEC - 1, families, NULL, NULL, &s, &d));
    assert_true(generate_kernels(a, &s, &set, &d));
    assert_true(verify_set(a, &set, &edited, 1, JOBS, &slow, &v, &d));
    assert_int_equal(v.right, KERNELS);
    assert_int_equal(seen.last, KERNELS);
    assert_in_range(seen.calls, 1, KERNELS);
}
