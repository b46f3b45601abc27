/* Plans: that what they launch can be launched, or is refused. */
#include "test_arena.h"
#include "cost/choose.h"
#include "decoder_sample.h"
#include "family/limits.h"
#include "family/plan_make.h"

static plan *plan_of(arena *a, const char *text, const char *target_name, plan_tuner *tune,
                     diags *d)
{
    const target *wanted = target_find(target_name);
    decoder *of = arena_zalloc(a, sizeof *of);
    plan *made =
        parse_decoder(a, text, of, d)
            ? plan_make(a, of, (location){ .file = "spec.ini", .line = 1 }, &wanted, 1, tune, d)
            : NULL;
    return made;
}

static const char *messages(arena *a, const diags *d)
{
    strbuf text = strbuf_new(a);
    diags_render(d, &text, false);
    return text.text;
}

#define HEAD "[decoder]\nlayers = 1\nnum_heads = 4\nhead_dim = 64\nvocab = 8k\nm = 1, 8\n"

/* Rows of eight tokens that no block has room for at once. */
ARENA_TEST(wide_rows_come_in_passes_where_shared_memory_is_small)
{
    static const char *const sections[] = {
        HEAD "hidden = 512\nff = 28672\nweights = q4_k\n",
        HEAD "hidden = 16384\nff = 512\nweights = q6_k\n",
        HEAD "hidden = 512\nweights = q4_k\nexperts = 8\nexperts_used = 2\nexpert_ff = 14336\n",
        HEAD "hidden = 512\nweights = f32\nexperts = 8\nexperts_used = 2\nexpert_ff = 14336\n",
        HEAD "hidden = 512\nweights = q5_0\nexperts = 8\nexperts_used = 2\nexpert_ff = 512\n"
             "shared_ff = 14336\n",
    };
    static const char *const of[] = { "sm_75", "sm_86", "sm_90" };
    for (size_t i = 0; i < sizeof sections / sizeof *sections; i++)
        for (size_t t = 0; t < sizeof of / sizeof *of; t++) {
            diags d = diags_new(a);
            const plan *p = plan_of(a, sections[i], of[t], cost_tune, &d);
            if (!p)
                fail_msg("%s", messages(a, &d));
            for (size_t k = 0; k < p->kernel_count; k++) {
                shared_need need = launch_shared_need(&p->kernels[k], target_find(of[t]));
                if (need.bytes > need.limit)
                    fail_msg("%s needs %lld bytes", p->kernels[k].name, (long long)need.bytes);
            }
        }
}

ARENA_TEST(a_kernel_that_no_block_has_room_for_is_an_error)
{
    diags d = diags_new(a);
    static const char text[] = HEAD "hidden = 1048576\nweights = q4_k\nexperts = 8\n"
                                    "experts_used = 2\nexpert_ff = 512\n";
    assert_null(plan_of(a, text, "sm_75", cost_tune, &d));
    if (!strstr(messages(a, &d), "bytes of shared memory a block; sm_75 has "))
        fail_msg("%s", messages(a, &d));
}

static void take_three_warps(instance *in, const target *const *wanted, size_t count)
{
    assert_true(count == 1 && wanted[0] == target_find("sm_90"));
    if (family_key(in->family, "num_warps"))
        in->num_warps = 3;
}

ARENA_TEST(a_tuner_has_the_last_word_on_kernels)
{
    diags d = diags_new(a);
    const plan *p =
        plan_of(a, HEAD "hidden = 512\nff = 2048\nweights = q4_k\n", "sm_90", take_three_warps, &d);
    size_t found = 0;
    assert_non_null(p);
    assert_true(p->tune == take_three_warps);
    for (size_t k = 0; k < p->kernel_count; k++)
        if (family_key(p->kernels[k].family, "num_warps")) {
            assert_int_equal(p->kernels[k].num_warps, 3);
            assert_non_null(strstr(p->kernels[k].name, "_w3"));
            found++;
        }
    assert_true(found > 4);
}
