/* Measures how many lanes per clock an SM executes of instructions that unpack and multiply
 * weights.
 *
 * There is a kernel per instruction, with one block of 32 warps per SM. Each lane has four
 * dependent chains of the instruction, and an iteration of the loop has 64. One thread reads the
 * clock before and after. Two checks: twice as many iterations take twice the clocks, and an SM
 * starts no more instructions than its four schedulers can. */
#include "bench/gpu/probe_rates.h"

#include <string.h>

enum { CHAINS = 4, UNROLLED = 16, THREADS = 1024, MOST_LANES = 4 * WARP + 1 };

/* An instruction as PTX. '#' stands for the number of the chain. */
typedef struct instruction {
    const char *name, *text;
    unsigned products; /* products of one instruction of a warp, for tensor cores; else 0 */
} instruction;

static const instruction instructions[] = {
    { "fma_f32", "fma.rn.f32 %f#, %f#, %g, %f#;", 0 },
    { "fma_f16x2", "fma.rn.f16x2 %r#, %r#, %a, %r#;", 0 },
    { "dp4a", "dp4a.u32.s32 %r#, %r#, %a, %r#;", 0 },
    { "prmt", "prmt.b32 %r#, %r#, %a, %b;", 0 },
    { "lop3", "lop3.b32 %r#, %r#, %a, %b, 0xE8;", 0 },
    { "shf", "shf.l.wrap.b32 %r#, %r#, %a, 5;", 0 },
    { "mad_u32", "mad.lo.u32 %r#, %r#, %a, %b;", 0 },
    { "f32_of_s32", "cvt.rn.f32.s32 %f#, %r#;\n    mov.b32 %r#, %f#;", 0 },
    { "f32_of_f16", "mov.b32 {%h#, %k#}, %r#;\n    cvt.f32.f16 %f#, %h#;\n    mov.b32 %r#, %f#;",
      0 },
    { "shfl", "shfl.sync.bfly.b32 %r#, %r#, 1, 31, 0xFFFFFFFF;", 0 },
    { "mma_f16",
      "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%w#, %x#, %y#, %z#}, {%a, %b, %a, %b}, "
      "{%a, %b}, {%w#, %x#, %y#, %z#};",
      16 * 8 * 16 },
    { "mma_s8",
      "mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%s#, %t#, %u#, %v#}, {%a, %b, %a, %b}, "
      "{%a, %b}, {%s#, %t#, %u#, %v#};",
      16 * 8 * 32 },
};

static const char head[] =
    ".version 7.8\n.target sm_80\n.address_size 64\n"
    ".visible .entry rate(.param .u64 out, .param .u32 turns)\n{\n"
    "    .reg .b64 %out, %start, %end;\n    .reg .b32 %left, %thread, %block, %a, %b, %sum;\n"
    "    .reg .b32 %r<4>, %s<4>, %t<4>, %u<4>, %v<4>;\n    .reg .b16 %h<4>, %k<4>;\n"
    "    .reg .f32 %g, %f<4>, %w<4>, %x<4>, %y<4>, %z<4>;\n    .reg .pred %more;\n"
    "    ld.param.u64 %out, [out];\n    ld.param.u32 %left, [turns];\n"
    "    mov.u32 %thread, %tid.x;\n    mov.u32 %block, %ctaid.x;\n"
    "    mad.lo.u32 %a, %thread, 77, 3;\n    mad.lo.u32 %b, %thread, 5, 1;\n"
    "    cvt.rn.f32.u32 %g, %thread;\n";

static const char start_of_chain[] =
    "    add.u32 %r#, %thread, #;\n    mov.u32 %s#, #;\n    mov.u32 %t#, #;\n"
    "    mov.u32 %u#, #;\n    mov.u32 %v#, #;\n    cvt.rn.f32.u32 %f#, %r#;\n"
    "    mov.f32 %w#, %f#;\n    mov.f32 %x#, %f#;\n    mov.f32 %y#, %f#;\n    mov.f32 %z#, %f#;\n";

/* Combines all registers of a chain into the stored sum, so that nothing is optimized away. */
static const char end_of_chain[] =
    "    xor.b32 %sum, %sum, %r#;\n    xor.b32 %sum, %sum, %s#;\n    xor.b32 %sum, %sum, %t#;\n"
    "    xor.b32 %sum, %sum, %u#;\n    xor.b32 %sum, %sum, %v#;\n    add.f32 %w#, %w#, %x#;\n"
    "    add.f32 %y#, %y#, %z#;\n    add.f32 %w#, %w#, %y#;\n    add.f32 %f#, %f#, %w#;\n"
    "    mov.b32 %r#, %f#;\n    xor.b32 %sum, %sum, %r#;\n";

static void add_chains(strbuf *out, const char *text)
{
    for (char chain = '0'; chain < '0' + CHAINS; chain++)
        for (const char *c = text; *c; c++)
            strbuf_format(out, "%c", *c == '#' ? chain : *c);
}

static const char *kernel_text(arena *a, const instruction *i)
{
    strbuf out = strbuf_new(a);
    const char *line = arena_format(a, "    %s\n", i->text);
    strbuf_format(&out, "%s", head);
    add_chains(&out, start_of_chain);
    strbuf_format(&out, "    bar.sync 0;\n    mov.u64 %%start, %%clock64;\n"
                        "$turn:\n    .pragma \"nounroll\";\n");
    for (int n = 0; n < UNROLLED; n++)
        add_chains(&out, line);
    strbuf_format(&out, "    sub.u32 %%left, %%left, 1;\n    setp.ne.u32 %%more, %%left, 0;\n"
                        "    @%%more bra $turn;\n    bar.sync 0;\n    mov.u64 %%end, %%clock64;\n"
                        "    sub.u64 %%start, %%end, %%start;\n    mov.u32 %%sum, 0;\n");
    add_chains(&out, end_of_chain);
    strbuf_format(&out, "    or.b32 %%block, %%block, %%thread;\n"
                        "    setp.eq.u32 %%more, %%block, 0;\n"
                        "    @%%more st.global.u64 [%%out], %%start;\n"
                        "    mad.wide.u32 %%out, %%thread, 4, %%out;\n"
                        "    st.global.u32 [%%out+8], %%sum;\n    ret;\n}\n");
    return out.text;
}

static bool clocks_of(figures *f, unsigned threads, gpu_address out, uint32_t turns,
                      uint64_t *clocks)
{
    const gpu_grid grid = { .blocks = { f->gpu.sm_count, 1, 1 }, .threads = threads };
    void *params[] = { &out, &turns };
    *clocks = 0;
    return gpu_copy_in(&f->gpu, out, clocks, sizeof *clocks) &&
           gpu_launch(&f->gpu, &grid, params) && gpu_wait(&f->gpu) &&
           gpu_copy_out(&f->gpu, clocks, out, sizeof *clocks);
}

/* Measures the clocks of `turns` iterations. Returns false if twice as many do not take about twice
 * the clocks. */
static bool measure_clocks(figures *f, const char *text, unsigned threads, gpu_address out,
                           uint32_t turns, double *clocks)
{
    uint64_t warm, once, twice;
    if (!gpu_load(&f->gpu, text) || !gpu_select(&f->gpu, "rate", 0) ||
        !clocks_of(f, threads, out, turns, &warm) || !clocks_of(f, threads, out, turns, &once) ||
        !clocks_of(f, threads, out, 2 * turns, &twice))
        return false;
    if (once == 0 || twice < once + once / 2 || twice > 3 * once)
        return figure_fail(f, "twice the iterations do not take twice the time");
    *clocks = (double)(twice - once);
    return true;
}

static bool measure(figures *f, const instruction *i, const char *name, gpu_address out)
{
    uint32_t turns = f->quick ? 2 : 1000;
    double clocks;
    if (!measure_clocks(f, kernel_text(f->gpu.arena, i), THREADS, out, turns, &clocks))
        return false;
    double rate = (double)THREADS * CHAINS * UNROLLED * turns / clocks;
    if (rate > MOST_LANES)
        return figure_fail(f, "above an SM's issue limit: instructions were optimized away");
    if (i->products)
        figure_print(f, name, rate * i->products / WARP, "products/clock");
    else
        figure_print(f, name, rate, "lanes/clock");
    return true;
}

/* wgmma: two groups of four warps multiply matrices of ones in shared memory, 64 x 16 by 16 x 256.
 * Core matrices have 128 bytes, two of them beside each other in k. */
enum { GROUPS = 2, GROUP = 128, SUMS = 128, IN_A_ROW = 16, K = 16, WGMMA_PRODUCTS = 64 * 256 * K };

static const char wgmma_head[] =
    ".version 8.0\n.target sm_90a\n.address_size 64\n"
    ".visible .entry rate(.param .u64 out, .param .u32 turns)\n{\n"
    "    .shared .align 128 .b32 ones[2560];\n"
    "    .reg .b64 %out, %start, %end, %a, %b, %at;\n    .reg .b32 %left, %thread, %block, %word;\n"
    "    .reg .f32 %d<128>;\n    .reg .pred %more;\n"
    "    ld.param.u64 %out, [out];\n    ld.param.u32 %left, [turns];\n"
    "    mov.u32 %thread, %tid.x;\n    mov.u32 %block, %ctaid.x;\n    mov.u32 %word, ones;\n"
    "    cvt.u64.u32 %at, %word;\n    shr.u64 %a, %at, 4;\n    and.b64 %a, %a, 0x3FFF;\n"
    "    or.b64 %a, %a, 0x1000080000;\n    add.u64 %b, %a, 128;\n"
    "    mad.lo.u32 %word, %thread, 4, %word;\n";

static const char *wgmma_text(arena *a)
{
    strbuf out = strbuf_new(a);
    strbuf_format(&out, "%s", wgmma_head);
    for (int i = 0; i < 2560 / (GROUPS * GROUP); i++)
        strbuf_format(&out, "    st.shared.u32 [%%word+%d], 0x3C003C00;\n", i * GROUPS * GROUP * 4);
    for (int i = 0; i < SUMS; i++)
        strbuf_format(&out, "    mov.f32 %%d%d, 0f00000000;\n", i);
    strbuf_format(&out, "    fence.proxy.async;\n    bar.sync 0;\n"
                        "    mov.u64 %%start, %%clock64;\n"
                        "$turn:\n    .pragma \"nounroll\";\n    wgmma.fence.sync.aligned;\n");
    for (int n = 0; n < IN_A_ROW; n++) {
        strbuf_format(&out, "    wgmma.mma_async.sync.aligned.m64n256k16.f32.f16.f16 {");
        for (int i = 0; i < SUMS; i++)
            strbuf_format(&out, "%s%%d%d", i ? ", " : "", i);
        strbuf_format(&out, "}, %%a, %%b, 1, 1, 1, 0, 0;\n");
    }
    strbuf_format(&out, "    wgmma.commit_group.sync.aligned;\n"
                        "    wgmma.wait_group.sync.aligned 0;\n"
                        "    sub.u32 %%left, %%left, 1;\n    setp.ne.u32 %%more, %%left, 0;\n"
                        "    @%%more bra $turn;\n"
                        "    bar.sync 0;\n    mov.u64 %%end, %%clock64;\n"
                        "    sub.u64 %%start, %%end, %%start;\n");
    for (int i = 1; i < SUMS; i++)
        strbuf_format(&out, "    add.f32 %%d0, %%d0, %%d%d;\n", i);
    strbuf_format(&out, "    or.b32 %%block, %%block, %%thread;\n"
                        "    setp.eq.u32 %%more, %%block, 0;\n"
                        "    @%%more st.global.u64 [%%out], %%start;\n"
                        "    mad.wide.u32 %%out, %%thread, 4, %%out;\n"
                        "    st.global.f32 [%%out+8], %%d0;\n    ret;\n}\n");
    return out.text;
}

static bool measure_wgmma(figures *f, const char *name, gpu_address out)
{
    uint32_t turns = f->quick ? 2 : 100;
    float sums[GROUPS * GROUP];
    double clocks, expected = 2.0 * turns * IN_A_ROW * K * SUMS;
    if (!measure_clocks(f, wgmma_text(f->gpu.arena), GROUPS * GROUP, out, turns, &clocks) ||
        !gpu_copy_out(&f->gpu, sums, out + sizeof(uint64_t), sizeof sums))
        return false;
    for (size_t i = 0; i < GROUPS * GROUP; i++)
        if ((double)sums[i] != expected)
            return figure_fail(f, arena_format(f->gpu.arena, "a thread's sum is %g, expected %g",
                                               (double)sums[i], expected));
    figure_print(f, name, (double)GROUPS * IN_A_ROW * turns * WGMMA_PRODUCTS / clocks,
                 "products/clock");
    return true;
}

void probe_rates(figures *f)
{
    gpu_address out = 0;
    bool ready = gpu_alloc(&f->gpu, sizeof(uint64_t) + THREADS * sizeof(uint32_t), &out);
    for (size_t i = 0; i < sizeof instructions / sizeof *instructions; i++) {
        const char *name = arena_format(f->gpu.arena, "rate_%s", instructions[i].name);
        figure_check(f, name, ready && measure(f, &instructions[i], name, out));
    }
    if (f->gpu.sm == 90)
        figure_check(f, "rate_wgmma_f16", ready && measure_wgmma(f, "rate_wgmma_f16", out));
    gpu_free(&f->gpu, out);
}
