/* Launches that exceed CUDA's limits must be refused with a size that works. The tests use every
 * family at the largest values of its keys. */
#include <stdlib.h>
#include <string.h>

#include "test_arena.h"
#include "diags_text.h"
#include "kernel/formula.h"
#include "kernel/limits.h"
#include "input/spec.h"

static bool is_size(const key *k)
{
    return !k->choices && !k->real;
}

/* Returns an instance with the smallest sizes, except that the sizes in mask are the largest. */
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
        const char *said = k ? strstr(refusal, arena_format(a, "; use %s = ", blamed)) : NULL;
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
        { 65536, 1, 1, "wide needs 65536 blocks in y; CUDA allows 65535; use k = 65504", "k" },
        { 32, 1, 17, "wide needs 1088 threads per block; CUDA allows 1024; use num_warps = 16",
          "num_warps" },
        { 65536, 1, 17, "wide needs 65536 blocks in y; CUDA allows 65535", NULL },
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
        in.dims = DIMS_DYNAMIC; /* sizes are run-time values */
        if (cases[i].warps <= 16)
            assert_null(launch_problem(a, &in, &blamed));
    }
}

/* Returns a product of eight rows of 14336 8-bit values: 140 KB if staged in one pass. */
static instance eight_rows(int64_t passes)
{
    return (instance){ .family = family_find(families, "stream_gemv_q8"),
                       .name = "eight_rows",
                       .weights = instance_weights_index(FORMAT_Q4_K),
                       .shape = { .k = 14336, .n = 4096, .m = 8 },
                       .num_warps = 12,
                       .rows_per_warp = 2,
                       .passes = passes };
}

ARENA_TEST(each_gpu_launches_the_newest_kernel_that_fits)
{
    static const struct {
        const char *targets[4];
        bool in_passes[4];
        const char *taken[9]; /* GPU names */
    } cases[] = {
        { { "sm_80" },
          { true },
          { "none", "sm_80", "sm_80", "sm_80", "sm_80", "sm_80", "sm_80", "sm_80", "sm_80" } },
        { { "sm_90" },
          { true },
          { "none", "none", "none", "none", "none", "sm_90", "sm_90", "sm_90", "sm_90" } },
        { { "sm_80", "sm_86", "sm_90" },
          { false, true, false },
          { "none", "sm_80", "sm_86", "sm_86", "sm_86", "sm_90", "sm_90", "sm_86", "sm_86" } },
        { { "sm_80", "sm_90" },
          { true, false },
          { "none", "sm_80", "sm_80", "sm_80", "sm_80", "sm_90", "sm_90", "sm_80", "sm_80" } },
        { { "sm_75", "sm_80", "sm_90", "sm_120" },
          { true, false, false, true },
          { "sm_75", "sm_80", "sm_75", "sm_80", "sm_75", "sm_90", "sm_90", "sm_120", "sm_120" } },
        { { "sm_86", "sm_90a" },
          { true, false },
          { "none", "none", "sm_86", "sm_86", "sm_86", "sm_90a", "sm_86", "sm_86", "sm_86" } },
    };
    static const char *const gpus[] = { "sm_75", "sm_80",  "sm_86",  "sm_87", "sm_89",
                                        "sm_90", "sm_100", "sm_120", "sm_121" };
    const instance in = eight_rows(0);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const target *wanted[4];
        instance made[4];
        size_t count = 0;
        for (; count < 4 && cases[i].targets[count]; count++)
            wanted[count] = target_find(cases[i].targets[count]);
        assert_int_equal(launch_fit(&in, wanted, count, made), 0);
        for (size_t t = 0; t < count; t++)
            assert_int_equal(made[t].passes > 1, cases[i].in_passes[t]);
        for (size_t g = 0; g < sizeof gpus / sizeof *gpus; g++) {
            const instance *taken = launch_taken(made, wanted, count, target_find(gpus[g]));
            assert_string_equal(taken ? wanted[taken - made]->name : "none", cases[i].taken[g]);
        }
    }
}

ARENA_TEST(gpus_without_a_kernel_are_named_with_a_remedy)
{
    const target *const all[] = { target_find("sm_75"), target_find("sm_80") };
    const char *blamed = NULL;
    instance in = eight_rows(1), made[2];
    target_set lacking = launch_fit(&in, all, 2, made);
    assert_true(lacking & target_bit(target_find("sm_75")));
    assert_true(lacking & target_bit(target_find("sm_89")));
    assert_true(lacking & target_bit(target_find("sm_121")));
    assert_false(lacking & target_bit(target_find("sm_100")));
    assert_string_equal(
        launch_unfit(a, &in, all, 2, &blamed),
        "no kernel for sm_75, sm_86, sm_89, sm_120, sm_121: eight_rows needs 143392 bytes of "
        "shared memory per block; sm_75 has 65536; leave out passes: each target then uses as few "
        "as fit");
    assert_string_equal(blamed, "passes");
    in.passes = 0;
    assert_null(launch_unfit(a, &in, all, 2, &blamed));
}

/* A GPU that no target other than sm_90a serves. */
ARENA_TEST(a_target_with_a_letter_serves_only_its_own_gpu)
{
    const target *const own = target_find("sm_90a");
    instance in = eight_rows(1), made;
    assert_int_equal(launch_fit(&in, &own, 1, &made), 0);
    assert_int_equal(launch_gpus(&own, 1, 0), target_bit(own) | target_bit(target_find("sm_90")));
}

/* Parses a spec. Returns its messages, "" if there are none. */
static const char *read_spec(arena *a, const char *text)
{
    spec out;
    diags d = diags_new(a);
    spec_parse(a, "spec.ini", text, strlen(text), families, NULL, NULL, &out, &d);
    return diags_text(a, &d);
}

/* Returns the spec without the lines of a key, with one line appended. */
static const char *without(arena *a, const char *text, const char *key_name, const char *more)
{
    strbuf mended = strbuf_new(a);
    for (const char *line = text; *line; line += strcspn(line, "\n") + 1)
        if (strncmp(line, key_name, strlen(key_name)) != 0)
            strbuf_bytes(&mended, line, strcspn(line, "\n") + 1);
    strbuf_put(&mended, more);
    return mended.text;
}

ARENA_TEST(remedies_for_small_shared_memory_work)
{
    static const struct {
        const char *spec, *remedy, *key, *more;
    } cases[] = {
        { "[ptxgen]\ntargets = sm_80\n[stream_gemv_q8]\nweights = q4_k\nshape = 14336x64\nm = 8\n"
          "passes = 1\n",
          "leave out passes", "passes", "" },
        { "[ptxgen]\ntargets = sm_90\n[stream_gate_up]\nweights = q4_k\nshape = 16384x64\nm = 8\n",
          "set m = 4", "m = ", "m = 4\n" },
        { "[ptxgen]\ntargets = sm_90\n[stream_qkv]\nweights = q6_k\nk = 32768\nn = 64\nn_kv = 64\n"
          "m = 4\n",
          "set m = 2", "m = ", "m = 2\n" },
        { "[mma_gemm]\nweights = q4_k\nshape = 4096x64\nm = 128\nstages = 4\n", "set stages = 3",
          "stages", "" },
        { "[mma_qkv]\nweights = q6_k\nk = 4096\nn = 64\nn_kv = 64\nm = 128\nstages = 3\n",
          "set stages = 2", "stages", "stages = 2\n" },
        { "[ptxgen]\ntargets = sm_80\n[tiled_q4k_gemv]\nshape = 32768x64\n",
          "use chunked_tiled_q4k_gemv, which accepts any size", "shape",
          "[chunked_tiled_q4k_gemv]\nshape = 32768x64\n" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *said = read_spec(a, cases[i].spec);
        if (!strstr(said, cases[i].remedy) || !strstr(said, "no kernel for sm_"))
            fail_msg("%s: %s", cases[i].spec, said);
        const char *mended = without(a, cases[i].spec, cases[i].key, cases[i].more);
        if (strstr(read_spec(a, mended), "E023"))
            fail_msg("%s: %s", mended, read_spec(a, mended));
    }
}

ARENA_TEST(the_number_of_stages_fits_all_gpus)
{
    static const struct {
        const char *targets, *weights;
        int64_t stages;
    } cases[] = {
        { "sm_80", "q4_k", 3 },  { "sm_80", "q6_k", 2 },         { "sm_90", "q6_k", 2 },
        { "sm_90a", "q6_k", 3 }, { "sm_80, sm_90a", "q6_k", 2 },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *text = arena_format(a,
                                        "[ptxgen]\ntargets = %s\n[mma_gemm]\nweights = %s\n"
                                        "shape = 4096x64\nm = 64\n",
                                        cases[i].targets, cases[i].weights);
        diags d = diags_new(a);
        spec s;
        assert_true(spec_parse(a, "k.ini", text, strlen(text), families, NULL, NULL, &s, &d));
        assert_int_equal(s.instance_count, 1);
        assert_int_equal(s.instances->stages, cases[i].stages);
        assert_non_null(strstr(s.instances->name, cases[i].stages == 3 ? "_s3" : "_s2"));
    }
}
