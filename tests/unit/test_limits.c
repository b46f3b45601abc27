/* What CUDA does not allow of a launch is refused, with a size that would do, for every family at
 * the largest sizes of its keys. */
#include <stdlib.h>
#include <string.h>

#include "test_arena.h"
#include "family/formula.h"
#include "family/limits.h"

static bool is_size(const key *k)
{
    return !k->choices && !k->real;
}

/* The instance of a family whose sizes are the smallest, but for those of a mask, which are the
 * largest. */
static instance with_largest(const family *f, unsigned mask)
{
    instance in = { .family = f, .name = f->name };
    unsigned size = 0;
    for (const key *k = f->keys; k->name; k++) {
        int64_t unit = k->multiple_of > 1 ? k->multiple_of : 1;
        bool largest = is_size(k) && mask >> size & 1;
        size += is_size(k);
        instance_set(&in, k,
                     !is_size(k) ? key_default(k)
                     : largest   ? k->max / unit * unit
                                 : k->min);
    }
    return in;
}

static bool within_limits(const instance *in)
{
    static const run_values run = { .sm_count = 1000 };
    static const int64_t most[] = { 2147483647, 65535, 65535 };
    const launch *l = &in->family->launch;
    for (int i = 0; i < 3; i++)
        if (formula_value(l->grid[i], in, &run) > most[i])
            return false;
    return formula_value(l->block, in, NULL) <= 1024;
}

static size_t try_family(arena *a, const family *f)
{
    size_t refused = 0, sizes = 0;
    for (const key *k = f->keys; k->name; k++)
        sizes += is_size(k);
    for (unsigned mask = 0; mask < 1u << sizes; mask++) {
        instance in = with_largest(f, mask);
        const char *blamed = NULL, *refusal;
        if (f->check && f->check(&in, a, &blamed))
            continue;
        blamed = NULL;
        refusal = launch_problem(a, &in, &blamed);
        assert_int_equal(refusal == NULL, within_limits(&in));
        if (!refusal)
            continue;
        refused++;
        const key *k = blamed ? family_key(f, blamed) : NULL;
        const char *said = k ? strstr(refusal, arena_format(a, "; %s = ", blamed)) : NULL;
        assert_non_null(said);
        int64_t fits = strtoll(strchr(said, '=') + 1, NULL, 10);
        instance_set(&in, k, fits);
        assert_true(within_limits(&in) && instance_takes(&in, k));
        assert_true(!f->check || !f->check(&in, a, &blamed));
        instance_set(&in, k, fits + key_multiple(&in, k));
        if (!f->check || !f->check(&in, a, &blamed))
            assert_false(within_limits(&in));
    }
    return refused;
}

ARENA_TEST(every_family_at_its_largest_sizes_is_within_limits_or_refused)
{
    size_t refused = 0;
    for (const family *const *f = families; *f; f++)
        refused += try_family(a, *f);
    assert_in_range(refused, 1, 10000);
}

static const key sizes[] = { KEY_K(32), KEY_N, KEY_NUM_WARPS(1), KEY_DIMS, KEY_END };
static const family wide = { .name = "wide",
                             .keys = sizes,
                             .launch = { .block = "64*num_warps", .grid = { "n", "k" } } };

ARENA_TEST(each_extent_has_its_limit)
{
    static const struct {
        int64_t k, n, warps;
        const char *problem, *blamed;
    } cases[] = {
        { 65504, 2147483647, 16, NULL, NULL },
        { 65536, 1, 1, "wide would have 65536 blocks in y; CUDA allows 65535; k = 65504 would do",
          "k" },
        { 32, 1, 17,
          "wide would have 1088 threads a block; CUDA allows 1024; num_warps = 16 would do",
          "num_warps" },
        { 65536, 1, 17, "wide would have 65536 blocks in y; CUDA allows 65535", NULL },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        instance in = { .family = &wide,
                        .name = "wide",
                        .shape = { .k = cases[i].k, .n = cases[i].n },
                        .num_warps = cases[i].warps };
        const char *blamed = NULL, *refusal = launch_problem(a, &in, &blamed);
        assert_int_equal(refusal == NULL, cases[i].problem == NULL);
        if (refusal)
            assert_string_equal(refusal, cases[i].problem);
        assert_int_equal(blamed == NULL, cases[i].blamed == NULL);
        if (blamed)
            assert_string_equal(blamed, cases[i].blamed);
        in.dims = DIMS_DYNAMIC; /* the run decides */
        if (cases[i].warps <= 16)
            assert_null(launch_problem(a, &in, &blamed));
    }
}

/* Eight vectors of 14336 values, rounded to 8 bits, are 140 KB: A GPU with 227 KB has room for
 * them, one with 99 KB for four, one with 64 KB for two. */
ARENA_TEST(targets_with_little_shared_memory_take_fewer_vectors)
{
    const target *const all[] = { target_find("sm_90"), target_find("sm_86"),
                                  target_find("sm_75") };
    static const int64_t most[] = { 8, 4, 2 };
    instance in = { .family = family_find(families, "stream_gemv"),
                    .weights = instance_weights_index(FORMAT_Q4_K),
                    .shape = { .k = 14336, .n = 4096, .m = 1 },
                    .rows_mode = ROWS_RUN_TIME,
                    .num_warps = 12,
                    .rows_per_warp = 2 };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        assert_int_equal(launch_most_vectors(&in, &all[i], 1), most[i]);
        assert_int_equal(launch_most_vectors(&in, all, i + 1), most[i]);
    }
    in.shape.k = 256 * 1024;
    assert_int_equal(launch_most_vectors(&in, all, 1), 0);
    in.family = family_find(families, "gemv");
    assert_int_equal(launch_most_vectors(&in, all, 3), 8);
}
