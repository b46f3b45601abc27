/* A cached result must be found again by its key, and a changed run must have another key. */
#define _POSIX_C_SOURCE 200809L
#include <stdlib.h>
#include <string.h>

#include "kernel/cache.h"
#include "kernel/suite.h"

/* Sets the cache folder ("" = none) and returns the previous one. */
static const char *use_folder(arena *a, const char *folder)
{
    const char *before = getenv("PTXGEN_TEST_CACHE");
    before = before ? arena_strdup(a, before) : "";
    setenv("PTXGEN_TEST_CACHE", folder, 1);
    return before;
}

ARENA_TEST(a_cached_result_is_found_only_with_its_size)
{
    char folder[] = "/tmp/ptxgen-cache-XXXXXX";
    assert_non_null(mkdtemp(folder));
    const char *before = use_folder(a, folder);
    cache_keep(7, "right", 5);
    assert_memory_equal(cache_find(a, 7, 5), "right", 5);
    assert_null(cache_find(a, 7, 4));
    assert_null(cache_find(a, 8, 5));
    cache_keep(9, "", 0);
    assert_non_null(cache_find(a, 9, 0));
    use_folder(a, "");
    assert_null(cache_find(a, 7, 5));
    cache_keep(10, "", 0);
    use_folder(a, before);
    assert_int_equal(
        system(arena_format(a, "test $(ls %s | wc -l) = 2 && rm -r %s", folder, folder)), 0);
}

ARENA_TEST(the_key_depends_on_ptx_inputs_launch_and_use)
{
    instance in;
    kernel k = suite_kernel_of(a, "rms_norm", "k=128 m=2", &in), other = k;
    device d = { .sm_count = 1 };
    trial t = suite_trial(a, &in, &d);
    uint64_t id = cache_key("run", &k, &t);
    trial same = suite_trial(a, &in, &d);
    assert_true(cache_key("run", &k, &same) == id);
    assert_true(cache_key("launch", &k, &t) != id);
    char *text = arena_strdup(a, k.ptx);
    memcpy(strstr(text, "add.rn.f32"), "sub.rn.f32", strlen("sub.rn.f32"));
    other.ptx = text;
    assert_true(cache_key("run", &other, &t) != id);
    t.grid[0]++;
    assert_true(cache_key("run", &k, &t) != id);
    t.grid[0]--;
    ((float *)suite_param(&t, "x")->content.bytes)[3] += 1;
    assert_true(cache_key("run", &k, &t) != id);
}

static void wrong_norm(const problem *p, unsigned output, uint64_t first, uint64_t count,
                       ref_value *values)
{
    family_find(families, "rms_norm")->reference(p, output, first, count, values);
    for (uint64_t i = 0; i < count; i++)
        values[i].value *= 2;
}

ARENA_TEST(the_key_depends_on_reference_and_tolerance)
{
    instance in;
    kernel k = suite_kernel_of(a, "rms_norm", "k=128 m=2", &in);
    family f = *in.family;
    trial t = suite_trial(a, &in, &(device){ .sm_count = 1 });
    uint64_t id = cache_key("run", &k, &t);
    in.family = &f;
    assert_true(cache_key("run", &k, &t) == id);
    f.tolerance *= 2;
    assert_true(cache_key("run", &k, &t) != id);
    f = *family_find(families, "rms_norm");
    f.reference = wrong_norm;
    assert_true(cache_key("run", &k, &t) != id);
}
