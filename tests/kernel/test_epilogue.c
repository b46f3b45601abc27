/* Activations of products without a gate, and the limit of gated ones: what is refused, what faults
 * are found, and the precision of xielu. Its formula is in problem.h. */
#include <math.h>
#include <string.h>

#include "test_arena.h"
#include "kernel/suite.h"

/* Sets keys by text to a valid instance, then sets an option, and compares the refusal. */
static void expect_refused(arena *a, const char *family_name, const char *text,
                           const char *key_name, double value, const char *how)
{
    const char *blamed = NULL;
    instance in = suite_made(a, family_find(families, family_name), "%s", text);
    const key *k = family_key(in.family, key_name);
    instance_set(&in, k, k->real ? real_bits(value) : (int64_t)value);
    const char *wrong = in.family->check(&in, a, &blamed);
    if (!wrong || strcmp(wrong, how) != 0)
        fail_msg("%s %s with %s: %s", family_name, text, key_name,
                 wrong ? wrong : "is not refused");
}

ARENA_TEST(an_epilogue_excludes_scale_residual_and_softcap)
{
    expect_refused(a, "gemv", "weights=q8_0 k=64 n=70 epilogue=relu", "residual", 1,
                   "epilogue = relu does not combine with residual; use one of the two");
    expect_refused(a, "stream_gemv", "weights=q8_0 k=1024 n=5 epilogue=gelu", "scale", 2,
                   "epilogue = gelu does not combine with scale; use one of the two");
    expect_refused(a, "mma_gemm_f16", "weights=q8_0 k=64 n=5 m=16 epilogue=xielu", "softcap", 30,
                   "epilogue = xielu does not combine with softcap; use one of the two");
    expect_refused(
        a, "stream_gemv_q8", "weights=q8_0 k=1024 n=5", "times", 1,
        "times = rows multiplies an activated product; add epilogue = gelu, or use none");
    expect_refused(a, "exact_gate_up", "weights=q8_0 k=64 n=5 activation=gelu", "limit", 7,
                   "limit = 7 needs activation = silu, not gelu; use 0 for none");
}

/* With positive = negative = 1 and beta = 0 the result plus x is expm1(x) below 0. */
ARENA_TEST(expm1_of_xielu_is_precise)
{
    enum { K = 4, COUNT = 60 };
    static const float numbers[XIELU_NUMBERS] = { 1, 1, 0, 0 };
    static const char *const names[] = { "xielu_p", "xielu_n", "xielu_beta", "xielu_eps" };
    launched *l = suite_launched(a, "gemv", "weights=f32 k=4 n=60 epilogue=xielu");
    float w[COUNT][K] = { 0 }, x[K] = { 1 };
    for (int i = 0; i < COUNT; i++)
        w[i][0] = -ldexpf(1.37f, i / 2 - 23);
    put_input(&l->trial, 0, w);
    put_input(&l->trial, 1, x);
    for (int i = 0; i < XIELU_NUMBERS; i++)
        memcpy(&suite_param(&l->trial, names[i])->number, &numbers[i], sizeof *numbers);
    const float *y = suite_output(a, l);
    for (int i = 0; i < COUNT; i++) {
        double of = (double)w[i][0], exact = expm1(of) - of;
        if (!(fabs((double)y[i] - exact) <= 1e-6 * fabs(expm1(of)) + 6e-8 * fabs(exact)))
            fail_msg("xielu of %g is %g, not %g", of, (double)y[i], exact);
    }
}

ARENA_TEST(faults_in_epilogues_are_found)
{
    static const planted_fault faults[] = {
        FAULT("gemv", "weights=q8_0 k=64 n=70 epilogue=relu", "max.f32", "", 0, "mov.f32 $1, $2;"),
        FAULT("gemv", "weights=q8_0 k=64 n=70 m=2 epilogue=xielu", "min.f32", "", 0,
              "mov.f32 $1, $2;"),
        FAULT("gemv", "weights=q8_0 k=64 n=70 epilogue=xielu", "setp.gt.f32", "", 0,
              "setp.lt.f32 $1, $2, $3;"),
        FAULT("exact_gate_up", "weights=q8_0 k=64 n=5 limit=0.25", "max.f32", "0fBE800000;", 0,
              "mov.f32 $1, $2;"),
    };
    expect_faults_found(a, faults, sizeof faults / sizeof *faults);
}
