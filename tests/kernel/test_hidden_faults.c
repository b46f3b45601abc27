/* Faults that ordinary inputs hide. They show only if logits are equal or at an end of a row, if
 * all scores are very negative, if a single value is NaN, if a row is unused, or if a predecessor
 * launch is still running. Each fault is planted in a correct kernel. */
#include <string.h>

#include "test_arena.h"
#include "kernel/formula.h"
#include "kernel/suite.h"

/* A fault that replaces each `from` by `to`. */
typedef struct hidden_fault {
    const char *family, *keys, *from, *to;
} hidden_fault;

#define HEADS  "head_dim=64 num_heads=4 num_kv_heads=2 "
#define SHORT  HEADS "max_seq_len=40"
#define LONG   HEADS "max_seq_len=1000 m=3"
#define HALVES LONG " kv_type=f16"
#define PROMPT HEADS "max_seq_len=300 m=37 kv_type=f16"
#define LATENT "num_heads=4 latent=128 n_rope=64 max_seq_len=400 m=3"
#define ROUTER "experts=64 experts_used=4 k=256 m=2 normed=1 weights=f32"

/* A masked score that is -30, -100 or -10000 instead of minus infinity. */
#define MASKED(family, keys, infinity)                                 \
    { #family, keys, ", 0f" infinity ", %p", ", 0fC1F00000, %p" },     \
        { #family, keys, ", 0f" infinity ", %p", ", 0fC2C80000, %p" }, \
    {                                                                  \
#family, keys, ", 0f" infinity ", %p", ", 0fC61C4000, %p"      \
    }

static const hidden_fault hidden_faults[] = {
    MASKED(incremental_attention, SHORT, "FF800000"),
    MASKED(multi_warp_attention, SHORT, "FF800000"),
    MASKED(batched_incremental_attention, SHORT " m=3", "FF800000"),
    MASKED(flash_decoding_chunk, LONG " chunk_size=32", "FF800000"),
    MASKED(flash_decoding_reduce, LONG " chunk_size=32", "FF7FFFFF"),
    MASKED(mla_attention, LATENT, "FF800000"),
    { "mma_flash_decoding", HALVES, ", 0fFF800000, %p", ", 0fC1F00000, %p" },
    { "mma_flash_decoding", HALVES, ", 0fFF800000, %p", ", 0fC2C80000, %p" },
    { "mma_attention", PROMPT, ", 0fFF800000, %p", ", 0fC1F00000, %p" },
    { "mma_attention", PROMPT, ", 0fFF800000, %p", ", 0fC2C80000, %p" },
    /* a running maximum that starts at -10000 */
    { "incremental_attention", SHORT, ", 0fFF7FFFFF;", ", 0fC61C4000;" },
    { "multi_warp_attention", SHORT, ", 0fFF7FFFFF;", ", 0fC61C4000;" },
    { "flash_decoding_chunk", LONG " chunk_size=32", ", 0fFF7FFFFF;", ", 0fC61C4000;" },
    { "flash_decoding_reduce", LONG " chunk_size=32", ", 0fFF7FFFFF;", ", 0fC61C4000;" },
    { "gqa_flash_decoding", LONG, ", 0fFF7FFFFF;", ", 0fC61C4000;" },
    { "gqa_flash_decoding", HEADS "max_seq_len=1000 m=1 kv_type=q8_0", ", 0fFF7FFFFF;",
      ", 0fC61C4000;" },
    { "mla_attention", LATENT, ", 0fFF7FFFFF;", ", 0fC61C4000;" },
    { "mma_flash_decoding", HALVES, ", 0fFF7FFFFF;", ", 0fC61C4000;" },
    { "mma_attention", PROMPT, ", 0fFF7FFFFF;", ", 0fC61C4000;" },
    { "moe_route", ROUTER, ", 0fFF800000;", ", 0fC61C4000;" },
    { "moe_route", ROUTER " groups=8 groups_used=4", ", 0fFF800000;", ", 0fC61C4000;" },
    { "moe_route", "experts=48 experts_used=4 k=256 m=1 weights=q8_0", ", 0fFF800000;",
      ", 0fC61C4000;" },
    { "moe_route", "experts=160 experts_used=4 k=256 m=1 weights=bf16", ", 0fFF800000;",
      ", 0fC61C4000;" },
    { "softmax", "k=300 m=3", ", 0fFF7FFFFF;", ", 0fC61C4000;" },
    { "softmax", "k=5000 m=1 type=f16", ", 0fFF7FFFFF;", ", 0fC61C4000;" },
    { "sample", "n=700", ", 0fFF800000;", ", 0fC61C4000;" },
    { "sample", "n=5000 m=2", ", 0fFF800000;", ", 0fC61C4000;" },
    /* the last tokens of the vocabulary, which is read four at a time */
    { "sample", "n=700 m=1", ", 175;", ", 174;" },
    { "sample", "n=5000 m=2", ", 1250;", ", 1249;" },
};

/* The maximum of some scores starts at -10000. */
#define LOW "mov.f32 $1, 0fC61C4000;"

#define E(mnemonic, ending, which, to) \
    {                                  \
        mnemonic, ending, which, to    \
    }

/* Instructions that flush subnormal floats to zero. */
#define FMA "fma.rn.ftz.f32 $1, $2, $3, $4;"
#define MUL "mul.ftz.f32 $1, $2, $3;"
#define ADD "add.ftz.f32 $1, $2, $3;"

/* The addend of a fused multiply-add, without the product. */
#define MOVED "mov.f32 $1, $4;"

/* An instruction that rounds toward zero. */
#define CUT "fma.rz.f32 $1, $2, $3, $4;"

/* Faults that are edits of single instructions. */
static const struct {
    const char *name, *family, *keys;
    line_edit edit;
} edited_faults[] = {
    { "an unused row", "sample", "n=700 m=1",
      E("setp.eq.u32", ", 0xFFFFFFFF;", 1, "setp.eq.u32 $1, $2, 0xFFFFFFFE;") },
    { "an unused row", "sample", "n=5000 m=2",
      E("setp.eq.u32", ", 0xFFFFFFFF;", 1, "setp.eq.u32 $1, $2, 0xFFFFFFFE;") },
    { "no maximum", "moe_route", ROUTER, E("sub.rn.f32", "", 1, "mov.f32 $1, $2;") },
    { "no maximum", "moe_route", ROUTER, E("sub.rn.f32", "", 2, "mov.f32 $1, $2;") },
    { "a maximum of few scores", "mma_flash_decoding", HALVES,
      E("mov.f32", ", 0fFF7FFFFF;", 3, LOW) },
    { "a maximum of few scores", "mma_flash_decoding", HALVES,
      E("mov.f32", ", 0fFF7FFFFF;", 4, LOW) },
    { "a maximum of few scores", "mma_flash_decoding", HALVES,
      E("mov.f32", ", 0fFF7FFFFF;", 6, LOW) },
    { "a maximum of few scores", "mma_flash_decoding", HALVES,
      E("mov.f32", ", 0fFF7FFFFF;", 8, LOW) },
    { "a maximum of few scores", "mma_attention", PROMPT, E("mov.f32", ", 0fFF7FFFFF;", 1, LOW) },
    { "a maximum of few scores", "mma_attention", PROMPT, E("mov.f32", ", 0fFF7FFFFF;", 2, LOW) },
    { "a maximum of a second chunk", "mla_attention",
      "num_heads=4 latent=128 n_rope=64 max_seq_len=2000 m=1",
      E("mov.f32", ", 0fFF7FFFFF;", 2, LOW) },
    { "more candidates than fit", "sample", "n=5000 m=2",
      E("setp.le.u32", ", 512;", 2, "setp.le.u32 $1, $2, 5000;") },
    { "a NaN dropped", "rms_norm", "k=1024 m=2",
      E("fma.rn.f32", "", 1, "$0\nmax.f32 $1, $1, 0f00000000;") },
    { "a NaN dropped", "rms_norm", "k=1024 m=2",
      E("fma.rn.f32", "", 4, "$0\nmax.f32 $1, $1, 0f00000000;") },
    { "a NaN dropped", "f16_rows", "k=1024 norm=rms",
      E("fma.rn.f32", "", 3, "$0\nmax.f32 $1, $1, 0f00000000;") },
    { "a NaN dropped", "expert_sum", "n=300 experts_used=3 m=2",
      E("fma.rn.f32", "", 2, "$0\nmax.f32 $1, $1, 0fC2C80000;") },
    { "a NaN dropped", "gemv", "weights=q4_k k=1024 n=5",
      E("fma.rn.f32", "", 3, "$0\nmax.f32 $1, $1, 0fC2C80000;") },
    { "a minimum weight not relative to the best token", "sample", "n=5000 m=1",
      E("sub.rn.f32", "", 5, "mov.f32 $1, $2;") },
    { "weights not relative to the best token", "sample", "n=20001 m=1",
      E("sub.rn.f32", "", 9, "mov.f32 $1, $2;") },
    { "weights not relative to the best token", "sample", "n=20001 m=1",
      E("sub.rn.f32", "", 11, "mov.f32 $1, $2;") },
    { "a NaN in one of 16 logits dropped", "sample", "n=5000 m=2",
      E("setp.eq.f32", "", 6, "setp.eq.u32 $1, 0, 0;") },
    { "a NaN in one of 16 logits dropped", "sample", "n=5000 m=2",
      E("setp.eq.f32", "", 9, "setp.eq.u32 $1, 0, 0;") },
    { "a NaN in one of 16 logits dropped", "sample", "n=20000 m=1",
      E("setp.eq.f32", "", 3, "setp.eq.u32 $1, 0, 0;") },
    { "a NaN in one of 16 logits dropped", "sample", "n=20000 m=1",
      E("setp.eq.f32", "", 15, "setp.eq.u32 $1, 0, 0;") },
    { "a NaN in a token's scale dropped", "embed_rows", "weights=q4_k k=512 n=5000 m=2",
      E("mul.rn.f32", "", 1, "$0\nmax.f32 $1, $1, 0fC61C4000;") },
    { "a NaN in a token's minimum dropped", "embed_rows", "weights=q4_k k=512 n=5000 m=2",
      E("mul.rn.f32", "", 3, "$0\nmax.f32 $1, $1, 0fC61C4000;") },
    { "a NaN in an expert's weights dropped", "stream_expert_gate_up",
      "weights=f32 k=512 n=64 experts=64 experts_used=2 m=2",
      E("fma.rn.f32", "", 3, "$0\nmax.f32 $1, $1, 0fF149F2CA;") },
    { "the last bits of a power lost", "silu", "k=1024 m=1", E("fma.rn.f32", "", 3, MOVED) },
    { "the last bits of a power lost", "silu", "k=1024 m=1", E("fma.rn.f32", "", 2, MOVED) },
    { "the last bits of a power lost", "gelu", "k=1024 m=1", E("fma.rn.f32", "", 14, MOVED) },
    { "the last bits of a power lost", "gelu", "k=1024 m=1", E("fma.rn.f32", "", 13, MOVED) },
    { "the last bits of a power lost", "gelu", "k=4096 m=1", E("fma.rn.f32", "", 12, MOVED) },
    { "the last bits of a power lost", "swiglu", "k=1024 m=2", E("fma.rn.f32", "", 6, MOVED) },
    { "subnormal floats lost", "f32_gemv", "k=512 n=20", E("fma.rn.f32", "", 1, FMA) },
    { "subnormal floats lost", "gemv", "weights=q4_k k=1024 n=5", E("fma.rn.f32", "", 3, FMA) },
    { "subnormal floats lost", "rms_norm", "k=1024 m=2", E("mul.rn.f32", "", 2, MUL) },
    { "subnormal floats lost", "expert_sum", "n=300 experts_used=3 m=2",
      E("fma.rn.f32", "", 2, FMA) },
    { "subnormal floats lost", "add", "k=300", E("add.rn.f32", "", 1, ADD) },
    { "subnormal floats lost", "multiply", "k=300", E("mul.rn.f32", "", 1, MUL) },
    { "subnormal floats lost", "f16_rows", "k=1024 m=2 norm=rms", E("mul.rn.f32", "", 1, MUL) },
    { "subnormal floats lost", "stream_gemv", "weights=q4_k k=1024 n=50",
      E("mul.rn.f32", "", 1, MUL) },
    { "subnormal floats lost", "embed_rows", "weights=q8_0 k=256 n=50 m=3",
      E("mul.rn.f32", "", 1, MUL) },
    { "subnormal floats lost", "flash_decoding_chunk", LONG " chunk_size=32",
      E("fma.rn.f32", "", 1, FMA) },
    { "rounded toward zero", "rms_norm", "k=1024 m=2", E("fma.rn.f32", "", 1, CUT) },
    { "rounded toward zero", "gemv", "weights=q4_k k=1024 n=5", E("fma.rn.f32", "", 3, CUT) },
    { "rounded toward zero", "stream_gemv", "weights=q4_k k=1024 n=50",
      E("fma.rn.f32", "", 1, CUT) },
    { "rounded toward zero", "expert_sum", "n=300 experts_used=3 m=2",
      E("fma.rn.f32", "", 1, CUT) },
    { "rounded toward zero", "gqa_flash_decoding", LONG, E("fma.rn.f32", "", 2, CUT) },
    { "rounded toward zero", "flash_decoding_chunk", LONG " chunk_size=32",
      E("fma.rn.f32", "", 1, CUT) },
    { "rounded toward zero", "rope_kv_write", SHORT " m=3 rope=neox kv_type=f16",
      E("fma.rn.f32", "", 1, CUT) },
    { "rounded toward zero", "delta_net", SHORT, E("fma.rn.f32", "", 1, CUT) },
};

/* Families whose kernels may start before their predecessor launches have ended. */
static const char *const overlapping[][2] = {
    { "rms_norm", "k=1024 m=2" },
    { "gemv", "weights=q4_k k=1024 n=5" },
    { "embed_rows", "weights=q8_0 k=256 n=50 m=3" },
    { "expert_sum", "n=300 experts_used=3 m=2" },
    { "q8_rows", "k=1024 m=2" },
    { "f16_rows", "k=1024 m=2 norm=rms" },
    { "stream_gemv", "weights=q4_k k=1024 n=50" },
    { "mma_gemm", "weights=q4_k k=512 n=50 m=20" },
    { "moe_route", ROUTER },
    { "sample", "n=700 m=2" },
    { "rope_kv_write", SHORT " m=3 rope=neox kv_type=f16" },
    { "delta_net", SHORT },
    { "gqa_flash_decoding", LONG },
    { "mma_flash_decoding", HALVES },
    { "mma_attention", PROMPT },
    { "mla_attention", LATENT },
};

static kernel kernel_of(arena *a, const char *family_name, const char *keys, const char *sm)
{
    instance *in = arena_alloc(a, sizeof *in);
    if (!suite_instance(a, family_find(families, family_name), keys, in))
        fail_msg("%s does not accept %s", family_name, keys);
    kernel k = sm ? suite_kernel_for(a, in, target_find(sm)) : suite_kernel(a, in);
    expect_kernel_right(a, &k);
    return k;
}

/* Fails the test if a faulty text passes verification, or fails for a reason other than `how`. */
static void expect_found(arena *a, const kernel *k, const char *text, const char *how,
                         const char *fault)
{
    print_message("%s, %s\n", k->instance->name, fault);
    expect_text_wrong(a, k, text, how);
}

ARENA_TEST(wrong_constants_for_infinity_or_an_end_are_found)
{
    for (size_t i = 0; i < sizeof hidden_faults / sizeof *hidden_faults; i++) {
        const hidden_fault *f = &hidden_faults[i];
        kernel k = kernel_of(a, f->family, f->keys, NULL);
        expect_found(a, &k, mutate(a, k.ptx, f->from, f->to), "", f->to);
    }
}

ARENA_TEST(faults_that_only_rare_inputs_show_are_found)
{
    for (size_t i = 0; i < sizeof edited_faults / sizeof *edited_faults; i++) {
        kernel k = kernel_of(a, edited_faults[i].family, edited_faults[i].keys, NULL);
        expect_found(a, &k, edit_lines(a, k.ptx, &edited_faults[i].edit), "",
                     edited_faults[i].name);
    }
}

/* Returns the text with the first comparison of two indices reversed. That is a setp.lt.u32 after a
 * setp.gt.u32 and a setp.eq.u32 of the same registers. */
static const char *with_other_ties(arena *a, const char *text)
{
    for (const char *line = strstr(text, "setp.gt.u32"); line;
         line = strstr(line + 1, "setp.gt.u32")) {
        const char *operands = strchr(line, ',') + 1, *next = strchr(line, '\n') + 1;
        const char *last = strchr(next, '\n') + 1, *lt = strstr(last, "setp.lt.u32");
        size_t length = strcspn(operands, ";");
        const char *others = strchr(next, ',') + 1;
        if (strncmp(next + strspn(next, " "), "setp.eq.u32", 11) == 0 &&
            strncmp(others, operands, length) == 0 && lt == last + strspn(last, " "))
            return arena_format(a, "%.*ssetp.gt.u32%s", (int)(lt - text), text, lt + 11);
    }
    fail_msg("no comparison of two indices in\n%s", text);
    return NULL;
}

ARENA_TEST(ties_that_a_higher_index_wins_are_found)
{
    static const char *const kernels[][2] = {
        { "sample", "n=700" },
        { "sample", "n=5000 m=2" },
        { "moe_route", ROUTER },
    };
    for (size_t i = 0; i < sizeof kernels / sizeof *kernels; i++) {
        kernel k = kernel_of(a, kernels[i][0], kernels[i][1], NULL);
        expect_found(a, &k, with_other_ties(a, k.ptx), "", "ties");
    }
}

/* Returns the first line from `at` on that contains `word` but not `other`, or NULL. */
static const char *line_with(const char *at, const char *word, const char *other)
{
    for (; *at; at = strchr(at, '\n') + 1) {
        size_t length = strcspn(at, "\n");
        const char *found = strstr(at, word), *not_wanted = strstr(at, other);
        if (found && found < at + length && !(not_wanted && not_wanted < at + length))
            return at;
    }
    return NULL;
}

ARENA_TEST(accesses_before_griddepcontrol_wait_are_found)
{
    static const char *const words[] = { "ld.global", "st.global" };
    for (size_t i = 0; i < sizeof overlapping / sizeof *overlapping; i++) {
        kernel k = kernel_of(a, overlapping[i][0], overlapping[i][1], "sm_90");
        const char *wait = line_with(k.ptx, "griddepcontrol.wait", "//#");
        const char *after = strchr(wait, '\n') + 1;
        for (size_t w = 0; w < sizeof words / sizeof *words; w++) {
            const char *line = line_with(after, words[w], ".nc");
            if (!line)
                continue;
            const char *end = strchr(line, '\n') + 1;
            expect_found(a, &k,
                         arena_format(a, "%.*s%.*s%.*s%s", (int)(wait - k.ptx), k.ptx,
                                      (int)(end - after), after, (int)(after - wait), wait, end),
                         "no griddepcontrol.wait precedes the access", words[w]);
        }
    }
}

ARENA_TEST(weights_are_readable_to_their_stated_size)
{
    static const char *const kernels[][2] = {
        { "stream_gemv", "k=96 n=5" },
        { "stream_gemv_q8", "k=96 n=5" },
        { "mma_q8", "k=96 n=5" },
        { "mma_q8_qkv", "k=96 n=5" },
        { "mma_q8_gate_up", "k=96 n=5" },
        { "mma_q8_expert_gate_up", "k=96 n=5 experts=3" },
        { "mma_q8_expert_down", "k=96 n=5 experts=3" },
        { "stream_qkv", "k=96 n=5" },
        { "stream_gate_up", "k=96 n=5" },
        { "stream_expert_gate_up", "k=96 n=5 experts=3" },
        { "stream_expert_down", "k=96 n=5 experts=3" },
        { "gemv", "k=96 n=5" },
        { "mma_gemm", "k=96 n=5 m=20" },
        { "mma_gate_up_f16", "k=96 n=5 m=20" },
    };
    static const char *const formats_of[] = { "q8_0", "q5_0", "q4_0", "mxfp4" };
    for (size_t i = 0; i < sizeof kernels / sizeof *kernels; i++)
        for (size_t f = 0; f < sizeof formats_of / sizeof *formats_of; f++) {
            const char *keys = arena_format(a, "weights=%s %s", formats_of[f], kernels[i][1]);
            kernel k = kernel_of(a, kernels[i][0], keys, NULL);
            trial t = suite_rows(a, k.instance, k.instance->shape.m);
            for (size_t p = 0; p < t.param_count; p++)
                if (t.params[p].param.weights)
                    assert_int_equal(t.params[p].content.readable,
                                     formula_value(t.params[p].param.bytes, k.instance, NULL));
        }
}

ARENA_TEST(verification_finds_the_last_rows_of_large_grids)
{
    kernel_of(a, "rope_kv_write",
              "head_dim=128 num_heads=64 num_kv_heads=4 max_seq_len=8192 m=256 kv_type=f16 "
              "rope=neox",
              NULL);
    kernel_of(a, "mwv_dp4a_q4k_gemv", "k=4096 n=4096 num_warps=3", NULL);
}
