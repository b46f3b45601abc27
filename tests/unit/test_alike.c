/* Kernels of several targets that compute the same; only one of them is verified in full. */
#include <string.h>

#include "check/verify_set.h"
#include "test_arena.h"
#include "verify_sample.h"

#define LINES(a, b) ".version 7.0\n.target sm_80\n{\n    " a "\n    " b "\n}\n"
#define LOAD        "ld.global.nc.u32 %r1, [%rd1];"
#define STORE       "st.global.u32 [%rd2], %r1;"

static const instance named = { .name = "k" }, in_passes = { .name = "k", .passes = 2 },
                      other = { .name = "l" };

static bool are_alike(const char *x, const instance *y_instance, const char *y)
{
    const kernel a = { .instance = &named, .ptx = x, .ptx_length = strlen(x) };
    const kernel b = { .instance = y_instance, .ptx = y, .ptx_length = strlen(y) };
    return kernels_are_alike(&a, &b) && kernels_are_alike(&b, &a);
}

TEST(lines_without_effect_on_values_may_differ)
{
    static const char first[] = LINES(LOAD " // a load", STORE);
    static const struct {
        const char *text;
        bool alike;
    } others[] = {
        { first, true },
        { ".version 7.8\n.target sm_90\n{\n" LOAD "\n\n" STORE " // out\n}", true },
        { LINES("ld.global.u32 %r1, [%rd1];", STORE), true },
        { LINES("griddepcontrol.wait;\n" LOAD, "griddepcontrol.launch_dependents;\n" STORE), true },
        { LINES("ld.global.u32 %r1, [%rd1+4];", STORE), false },
        { LINES(LOAD, "st.global.u32 [%rd2],  %r2;"), false },
        { LINES(LOAD, ""), false },
        { LINES(LOAD, STORE "\n" STORE), false },
        { LINES(LOAD, "// " STORE), false },
        { LINES(LOAD, "griddepcontrol.wait; st.global.u32 [%rd3], %r1;\n" STORE), false },
        { LINES(LOAD, "@%p1 griddepcontrol.wait;\n" STORE), false },
        { LINES(LOAD, ".target sm_90; st.global.u32 [%rd3], %r1;\n" STORE), false },
        { LINES(LOAD, ".target sm_90/**/st.global.u32\n" STORE), false },
    };
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (are_alike(first, &named, others[i].text) != others[i].alike)
            fail_msg("text %zu is judged wrongly", i);
    assert_false(are_alike(first, &other, first));
    assert_false(are_alike(first, &in_passes, first));
}

TEST(kernels_with_strings_without_slashes_are_compared)
{
    static const char text[] = LINES(".pragma \"nounroll\"; // of a loop", STORE);
    assert_true(are_alike(text, &named, text));
}

TEST(kernels_with_hidden_slashes_are_not_alike)
{
    static const char hidden[] = LINES("/* // */ " LOAD, STORE), string[] = LINES("\"//\"", STORE);
    assert_false(are_alike(hidden, &named, hidden));
    assert_false(are_alike(string, &named, string));
}

static void make_kernels(arena *a, made *m)
{
    make(a,
         "[ptxgen]\nprefix = t\ntargets = sm_80, sm_90\n[decoder]\n" SMALL
         "layers = 1\nmax_seq_len = 32\nweights = q8_0\nm = 8\n",
         m);
    m->set.plan = NULL;
}

/* Returns the family's kernel for the second target, which is alike the kernel before it. */
static kernel *find_second(const made *m, const char *name)
{
    for (size_t i = 1; i < m->set.kernel_count; i++)
        if (strncmp(m->set.kernels[i].instance->name, name, strlen(name)) == 0 &&
            kernels_are_alike(&m->set.kernels[i - 1], &m->set.kernels[i]))
            return &m->set.kernels[i];
    fail_msg("%s has no alike kernels", name);
    return NULL;
}

/* Comments out the lines that begin with word. */
static void drop_lines(arena *a, kernel *k, const char *word)
{
    char *text = arena_copy(a, k->ptx, k->ptx_length), *at = text;
    while ((at = strstr(at, word)))
        memcpy(at, "//", 2);
    k->ptx = text;
}

static size_t count_right(arena *a, made *m, const char *message)
{
    verification v;
    diags d = diags_new(a);
    const progress quiet = { 0 };
    verify_set(a, &m->set, &(kernel_list){ 0 }, 1, 1, &quiet, &v, &d);
    if (message)
        assert_non_null(strstr(diags_text(a, &d), message));
    return v.right;
}

ARENA_TEST(a_missing_wait_is_found_in_an_alike_kernel)
{
    made m;
    make_kernels(a, &m);
    assert_int_equal(count_right(a, &m, NULL), m.set.kernel_count);
    kernel *k = find_second(&m, "embed_rows");
    assert_true(k->overlaps);
    drop_lines(a, k, "griddepcontrol.wait");
    assert_true(kernels_are_alike(k - 1, k));
    assert_int_equal(count_right(a, &m, "griddepcontrol.wait"), m.set.kernel_count - 1);
}

ARENA_TEST(kernels_alike_to_a_wrong_kernel_are_wrong)
{
    made m;
    make_kernels(a, &m);
    kernel *k = find_second(&m, "embed_rows");
    drop_lines(a, k - 1, "st.global");
    drop_lines(a, k, "st.global");
    assert_true(kernels_are_alike(k - 1, k));
    assert_int_equal(count_right(a, &m, "for sm_90"), m.set.kernel_count - 2);
}
