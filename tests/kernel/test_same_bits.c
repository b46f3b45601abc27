/* Families with same_bits = true guarantee a row's bits. They must not depend on the grid, the
 * number of SMs, num_warps, rows_per_warp, passes or the other rows of X. Q, K and V of one launch
 * must have the bits of three launches. */
#include <string.h>

#include "test.h"
#include "kernel/suite.h"

enum { ROWS = 8, SM_COUNT = 3 };

/* Returns true for products with this guarantee that have no tests of it elsewhere. */
static bool promises_same_bits(const family *f)
{
    return f->same_bits && family_key(f, "weights") && family_key(f, "k") &&
           f->activations == FORMAT_F32 && !family_key(f, "experts");
}

/* The reference for comparisons: one launch of all rows of X. */
typedef struct whole {
    trial trial;
    const char *y;
    size_t row; /* bytes per row of Y */
} whole;

static kernel kernel_of(arena *a, const family *f, const char *text, instance *in)
{
    if (!suite_instance(a, f, text, in))
        fail_msg("%s: no instance '%s'", f->name, text);
    return suite_kernel(a, in);
}

static size_t param_named(const trial *t, const char *name)
{
    size_t i = 0;
    while (i < t->param_count && strcmp(t->params[i].param.name, name) != 0)
        i++;
    return i;
}

static whole run_whole(arena *a, const subject *s, const char *text, instance *in)
{
    kernel k = kernel_of(a, s->family, arena_format(a, "%s m=%d", text, ROWS), in);
    trial_setup setup = { .shape = in->shape, .sm_count = SM_COUNT, .seed = 5 };
    whole w = { .trial = trial_prepare(a, in, &setup) };
    const void *y;
    expect_right(suite_run(a, s->device, &k, &w.trial, NULL, &y));
    w.y = memcpy(arena_alloc(a, w.trial.params[0].size), y, w.trial.params[0].size);
    w.row = w.trial.params[0].size / ROWS;
    return w;
}

/* Copies all inputs; of X, the rows from `first` on. */
static void take_inputs(trial *t, const whole *w, int64_t first)
{
    size_t x = param_named(t, "x");
    for (size_t i = 0; i < t->param_count; i++)
        if (t->params[i].param.kind == PARAM_IN)
            memcpy(t->params[i].content.bytes,
                   (const char *)w->trial.params[i].content.bytes +
                       (i == x ? (uint64_t)first * w->trial.params[i].size / ROWS : 0),
                   t->params[i].size);
}

/* Runs some rows with a kernel of other keys and compares their bits. */
static void compare(arena *a, const subject *s, const whole *w, const char *keys, int64_t first,
                    int64_t rows, int64_t sm_count)
{
    instance in;
    kernel k = kernel_of(a, s->family, keys, &in);
    trial_setup setup = { .shape = in.shape, .sm_count = sm_count, .seed = 6 };
    setup.shape.m = rows;
    trial t = trial_prepare(a, &in, &setup);
    const void *y;
    const uint8_t *written;
    take_inputs(&t, w, first);
    expect_right(suite_launch(a, s->device, &k, &t, &y, &written));
    expect_same_bits(in.name,
                     arena_format(a, "%lld rows from %lld on, %lld SMs", (long long)rows,
                                  (long long)first, (long long)sm_count),
                     y, w->y + (size_t)first * w->row, (size_t)rows * w->row);
}

static void rows_have_the_same_bits(arena *a, const subject *s)
{
    const char *text = arena_format(a, "%sk=2304 n=29 norm=rms bias=add", s->weights);
    instance in;
    whole w = run_whole(a, s, text, &in);
    for (int64_t m = 1; m <= ROWS; m++) {
        const char *of_m = arena_format(a, "%s m=%d", text, (int)m);
        compare(a, s, &w, of_m, ROWS - m, m, 1);
        if (m % 3)
            compare(a, s, &w, arena_format(a, "%s rows=run_time", of_m), 1, ROWS - 1, 1);
    }
    if (!family_key(s->family, "num_warps"))
        return;
    for (int64_t warps = 1; warps <= 12; warps += warps == 1 ? 4 : 2)
        compare(a, s, &w, arena_format(a, "%s m=2 num_warps=%d", text, (int)warps), 3, 2, SM_COUNT);
    if (family_key(s->family, "rows_per_warp"))
        compare(a, s, &w, arena_format(a, "%s m=1 rows_per_warp=1", text), 4, 1, SM_COUNT);
}

/* Twelve passes exceed the number of steps, which limits the passes. Some blocks have no rows left
 * and repeat the last rows. */
static void passes_give_the_same_bits(arena *a, const subject *s)
{
    static const char *const shapes[] = { "k=2304 n=29 norm=rms", "k=6144 n=34 residual=add" };
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        const char *text = arena_format(a, "%s%s", s->weights, shapes[i]);
        instance in;
        whole w = run_whole(a, s, text, &in);
        for (int64_t passes = 2; passes <= 12; passes += passes == 3 ? 9 : 1) {
            const char *of_passes = arena_format(a, "%s passes=%d", text, (int)passes);
            compare(a, s, &w, arena_format(a, "%s m=%d", of_passes, ROWS), 0, ROWS, 1);
            if (i)
                continue;
            compare(a, s, &w, arena_format(a, "%s m=3 rows=run_time", of_passes), 1, ROWS - 1,
                    SM_COUNT);
            compare(a, s, &w, arena_format(a, "%s m=1 num_warps=2 rows_per_warp=1", of_passes), 5,
                    1, 1);
        }
    }
}

/* Runs each matrix in a launch of the family with one matrix. */
static void separate_launches_give_the_same_bits(arena *a, const subject *s)
{
    static const char *const weights[] = { "wq", "wk", "wv" }, *const biases[] = { "bq", "bk",
                                                                                   "bv" };
    const char *sizes = arena_format(a, "%sk=2304 norm=rms bias=add", s->weights);
    instance in, one;
    whole w = run_whole(a, s, arena_format(a, "%s n=29 n_kv=7", sizes), &in);
    size_t before = 0;
    for (size_t i = 0; i < sizeof weights / sizeof *weights; i++) {
        int n = i ? 7 : 29;
        kernel k = kernel_of(a, family_find(families, s->family->each_matrix),
                             arena_format(a, "%s n=%d m=%d", sizes, n, ROWS), &one);
        trial_setup setup = { .shape = one.shape, .sm_count = SM_COUNT, .seed = 7 };
        trial t = trial_prepare(a, &one, &setup);
        const char *const names[] = { weights[i], "x", "gamma", biases[i] };
        for (size_t input = 0; input < sizeof names / sizeof *names; input++)
            put_input(&t, input, w.trial.params[param_named(&w.trial, names[input])].content.bytes);
        const void *y;
        const uint8_t *written;
        expect_right(suite_launch(a, s->device, &k, &t, &y, &written));
        size_t bytes = (size_t)n * F32_BYTES;
        for (size_t v = 0; v < ROWS; v++)
            expect_same_bits(in.name, arena_format(a, "row %zu of %s", v, weights[i]),
                             w.y + v * w.row + before, (const char *)y + v * bytes, bytes);
        before += bytes;
    }
}

LIST_TESTS
{
    static const suite_check checks[] = {
        CHECK(rows_have_the_same_bits),
        CHECK_WITH(passes_give_the_same_bits, .key = "passes"),
        CHECK_WITH(separate_launches_give_the_same_bits, .key = "n_kv"),
    };
    enum { ONE_FORMAT_IN = 9 }; /* formats share the code under test */
    suite_list(__FILE__, suite_weights, ONE_FORMAT_IN, promises_same_bits, checks,
               sizeof checks / sizeof *checks);
}
