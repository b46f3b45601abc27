/* Matrix products by wgmma, for sm_90a. They must have the bits of mma.sync, which other targets
 * use, in all formats and with all options. Tiles of 256 rows exist only here. Faults in the
 * synchronization of multiplying warps with the making of tiles must be found. */
#include <string.h>

#include "test_arena.h"
#include "kernel/suite.h"

/* Builds a kernel for sm_90a, runs it and fails the test if a result is wrong. */
static kernel right_kernel_of(arena *a, device *d, const instance *in, const trial *t,
                              const void **y)
{
    kernel k = suite_kernel_for(a, in, target_find("sm_90a"));
    assert_true(k.specific && strstr(k.ptx, "wgmma.mma_async"));
    const char *wrong = suite_run(a, d, &k, t, NULL, y);
    if (wrong)
        fail_msg("%s: %s", in->name, wrong);
    return k;
}

static void check_bits(arena *a, device *d, const char *family_name, const char *text, int64_t m)
{
    instance in;
    const void *expected, *got;
    kernel other = suite_kernel_of(a, family_name, text, &in);
    assert_false(other.specific);
    trial t = suite_rows(a, &in, m);
    right_kernel_of(a, d, &in, &t, &got);
    expect_right(suite_run(a, d, &other, &t, NULL, &expected));
    size_t size = suite_param(&t, "y")->size;
    if (memcmp(got, expected, size) != 0)
        fail_msg("%s: bits differ from those of mma.sync", in.name);
}

EMULATOR_TEST(every_format_has_the_same_bits)
{
    const family *f = family_find(families, "mma_gemm_f16");
    const char *weights;
    for (size_t i = 0; (weights = suite_weights(a, f, i)); i++) {
        int64_t step = suite_multiple(a, f, weights, family_key(f, "k"));
        const char *text = arena_format(a, "%sk=%lld n=131 m=%d", weights,
                                        (long long)(step * (step < 64 ? 5 : 1)), 16 << i % 4);
        check_bits(a, d, f->name, text, 17);
    }
}

EMULATOR_TEST(prologues_and_epilogues_have_the_same_bits)
{
    static const struct {
        const char *family, *text;
        int64_t m;
    } products[] = {
        { "mma_gemm", "weights=q4_k k=512 n=130 m=64 norm=rms bias=add residual=add", 70 },
        { "mma_gemm", "weights=bf16 k=96 n=5 m=32", 33 },
        { "mma_gemm_f16", "weights=q4_k k=1024 n=130 m=128 splits=4", 129 },
        { "mma_gate_up", "weights=q8_0 k=96 n=70 m=32 bias=add", 40 },
        { "mma_gate_up_f16", "weights=q4_k k=256 n=130 m=128", 100 },
        { "mma_qkv", "weights=q4_k weights_v=q6_k k=512 n=130 n_kv=66 m=64 bias=add", 65 },
        { "mma_expert_gate_up", "weights=q4_k k=256 n=70 experts=5 experts_used=3 m=40 tile=32",
          40 },
        { "mma_expert_down", "weights=mxfp4 k=96 n=130 experts=5 experts_used=3 m=40 tile=16", 40 },
    };
    for (size_t i = 0; i < sizeof products / sizeof *products; i++)
        check_bits(a, d, products[i].family, products[i].text, products[i].m);
}

EMULATOR_TEST(tiles_of_256_rows_are_right)
{
    static const struct {
        const char *family, *text;
        int64_t m;
    } products[] = {
        { "mma_gemm_f16", "weights=q4_k k=512 n=131 m=256", 300 },
        { "mma_gemm_f16", "weights=q6_k k=256 n=5 m=200 bias=add residual=add", 512 },
        { "mma_gate_up_f16", "weights=q4_k k=256 n=70 m=256", 255 },
        { "mma_gemm", "weights=q5_0 k=96 n=131 m=256 norm=rms", 257 },
    };
    for (size_t i = 0; i < sizeof products / sizeof *products; i++) {
        instance in =
            suite_made(a, family_find(families, products[i].family), "%s", products[i].text);
        assert_ptr_equal(instance_oldest_target(&in), target_find("sm_90a"));
        trial t = suite_rows(a, &in, products[i].m);
        right_kernel_of(a, d, &in, &t, NULL);
    }
}

ARENA_TEST(the_loop_has_no_bank_conflicts)
{
    for (int m = 16; m <= 256; m *= 4) {
        uint64_t conflicts[2];
        for (int k = 0; k < 2; k++) {
            instance in = suite_made(a, family_find(families, "mma_gemm_f16"),
                                     "weights=q4_k k=%d n=128 m=%d", 512 << k, m);
            kernel made = suite_kernel_for(a, &in, target_find("sm_90a"));
            trial t = suite_rows(a, &in, m);
            conflicts[k] = suite_count(a, &made, &t, NULL).shared_bank_conflicts;
        }
        assert_int_equal(conflicts[0], conflicts[1]);
    }
}

/* k has several chunks, whose copies use a ring of three stages. */
EMULATOR_TEST(faults_are_found)
{
    static const struct {
        line_edit edit;
        const char *how;
    } faults[] = {
        { { "fence.proxy.async", "", 1, "" }, "no fence.proxy.async in between" },
        { { "fence.proxy.async", "", 2, "" }, "no fence.proxy.async in between" },
        { { "wgmma.fence", "", 0, "" }, "no wgmma.fence before it" },
        { { "wgmma.wait_group", "", 3, "wgmma.wait_group.sync.aligned 1;" }, "may still read" },
        { { "wgmma.wait_group", "", 0, "" }, "may still read" },
        { { "bar.sync", "", 2, "" }, "race" },
        { { "wgmma.commit_group", "", 2, "" }, "may still read" },
        { { "cp.async.wait_group", "", 1, "" }, "race" },
        { { "or.b64", "0x8000002000010000;", 1, "or.b64 $1, $2, 0x4000002000010000;" }, "" },
        { { "or.b64", "0x8000002000010000;", 4, "or.b64 $1, $2, 0x8000001000010000;" }, "" },
        { { "xor.b32", "", 1, "mov.b32 $1, $2;" }, "" },
    };
    instance in =
        suite_made(a, family_find(families, "mma_gemm_f16"), "weights=q4_k k=1280 n=130 m=32");
    trial t = suite_rows(a, &in, 33);
    kernel k = right_kernel_of(a, d, &in, &t, NULL);
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++)
        expect_text_wrong(a, &k, edit_lines(a, k.ptx, &faults[i].edit), faults[i].how);
}
