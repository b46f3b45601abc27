/* Times the emulator on two kernels:
 * - a GEMV in the style of Q4_K: byte loads, conversions, fused multiply-adds and a butterfly
 *   reduction, in the proportions of a plain kernel
 * - an axpy, which mostly loads and stores
 *
 * Each kernel runs on one thread, on two threads, and as two independent copies. The copies show
 * the most that the machine's second core can add. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/os_process.h"
#include "emu/emu.h"

enum {
    K = 4096,
    ROWS = 1024,
    BLOCK_BYTES = 144,
    ROW_BYTES = K / 256 * BLOCK_BYTES,
    VALUES = 1 << 22,
    ROUNDS = 15,
};

static const char gemv[] = ".version 7.0\n.target sm_75\n.address_size 64\n"
                           ".visible .entry gemv(.param .u64 y, .param .u64 w, .param .u64 x)\n"
                           ".reqntid 32, 1, 1\n"
                           "{\n"
                           "    .reg .pred %p<4>;\n"
                           "    .reg .b16 %h<4>;\n"
                           "    .reg .b32 %r<20>;\n"
                           "    .reg .f32 %f<20>;\n"
                           "    .reg .b64 %rd<12>;\n"
                           "    ld.param.u64 %rd1, [y];\n"
                           "    ld.param.u64 %rd2, [w];\n"
                           "    ld.param.u64 %rd3, [x];\n"
                           "    mov.u32 %r1, %ctaid.x;\n"
                           "    mov.u32 %r2, %tid.x;\n"
                           "    mad.wide.u32 %rd4, %r1, 2304, %rd2;\n"
                           "    mul.wide.u32 %rd5, %r2, 4;\n"
                           "    add.u64 %rd5, %rd5, %rd3;\n"
                           "    mov.f32 %f1, 0f00000000;\n"
                           "    mov.u32 %r3, 0;\n"
                           "$super_block:\n"
                           "    ld.global.nc.b16 %h1, [%rd4];\n"
                           "    ld.global.nc.b16 %h2, [%rd4+2];\n"
                           "    cvt.f32.f16 %f2, %h1;\n"
                           "    cvt.f32.f16 %f3, %h2;\n"
                           "    cvt.u64.u32 %rd6, %r2;\n"
                           "    add.u64 %rd6, %rd6, %rd4;\n"
                           "    mov.u32 %r4, 0;\n"
                           "    mov.u64 %rd7, %rd5;\n"
                           "$chunk:\n"
                           "    cvt.u64.u32 %rd8, %r4;\n"
                           "    add.u64 %rd8, %rd8, %rd4;\n"
                           "    ld.global.nc.u8 %r5, [%rd8+4];\n"
                           "    ld.global.nc.u8 %r6, [%rd8+8];\n"
                           "    and.b32 %r5, %r5, 63;\n"
                           "    and.b32 %r6, %r6, 63;\n"
                           "    cvt.rn.f32.u32 %f4, %r5;\n"
                           "    cvt.rn.f32.u32 %f5, %r6;\n"
                           "    mul.f32 %f4, %f4, %f2;\n"
                           "    mul.f32 %f5, %f5, %f3;\n"
                           "    ld.global.nc.u8 %r7, [%rd6+16];\n"
                           "    and.b32 %r8, %r7, 15;\n"
                           "    shr.u32 %r9, %r7, 4;\n"
                           "    cvt.rn.f32.u32 %f6, %r8;\n"
                           "    cvt.rn.f32.u32 %f7, %r9;\n"
                           "    neg.f32 %f5, %f5;\n"
                           "    fma.rn.f32 %f6, %f6, %f4, %f5;\n"
                           "    fma.rn.f32 %f7, %f7, %f4, %f5;\n"
                           "    ld.global.nc.f32 %f8, [%rd7];\n"
                           "    ld.global.nc.f32 %f9, [%rd7+128];\n"
                           "    fma.rn.f32 %f1, %f6, %f8, %f1;\n"
                           "    fma.rn.f32 %f1, %f7, %f9, %f1;\n"
                           "    add.u64 %rd6, %rd6, 32;\n"
                           "    add.u64 %rd7, %rd7, 256;\n"
                           "    add.u32 %r4, %r4, 1;\n"
                           "    setp.lt.u32 %p1, %r4, 4;\n"
                           "    @%p1 bra $chunk;\n"
                           "    add.u64 %rd4, %rd4, 144;\n"
                           "    add.u64 %rd5, %rd5, 1024;\n"
                           "    add.u32 %r3, %r3, 1;\n"
                           "    setp.lt.u32 %p2, %r3, 16;\n"
                           "    @%p2 bra $super_block;\n"
                           "    shfl.sync.bfly.b32 %f10, %f1, 16, 31, 0xffffffff;\n"
                           "    add.f32 %f1, %f1, %f10;\n"
                           "    shfl.sync.bfly.b32 %f10, %f1, 8, 31, 0xffffffff;\n"
                           "    add.f32 %f1, %f1, %f10;\n"
                           "    shfl.sync.bfly.b32 %f10, %f1, 4, 31, 0xffffffff;\n"
                           "    add.f32 %f1, %f1, %f10;\n"
                           "    shfl.sync.bfly.b32 %f10, %f1, 2, 31, 0xffffffff;\n"
                           "    add.f32 %f1, %f1, %f10;\n"
                           "    shfl.sync.bfly.b32 %f10, %f1, 1, 31, 0xffffffff;\n"
                           "    add.f32 %f1, %f1, %f10;\n"
                           "    setp.ne.u32 %p3, %r2, 0;\n"
                           "    @%p3 bra $done;\n"
                           "    mad.wide.u32 %rd9, %r1, 4, %rd1;\n"
                           "    st.global.f32 [%rd9], %f1;\n"
                           "$done:\n"
                           "    ret;\n"
                           "}\n";

static uint8_t *random_bytes(arena *a, size_t size)
{
    uint8_t *bytes = arena_alloc(a, size);
    uint32_t state = 1;
    for (size_t i = 0; i < size; i++) {
        state = state * 1664525u + 1013904223u;
        bytes[i] = (uint8_t)(state >> 24) & 0x3f; /* bytes below 64, so that each float and each
                                                     half is finite */
    }
    return bytes;
}

static const char axpy[] = ".version 7.0\n.target sm_75\n.address_size 64\n"
                           ".visible .entry axpy(.param .u64 y, .param .u64 x, .param .f32 a)\n"
                           "{\n"
                           "    .reg .b32 %r<5>;\n"
                           "    .reg .f32 %f<4>;\n"
                           "    .reg .b64 %rd<5>;\n"
                           "    ld.param.u64 %rd1, [y];\n"
                           "    ld.param.u64 %rd2, [x];\n"
                           "    ld.param.f32 %f1, [a];\n"
                           "    mov.u32 %r1, %ctaid.x;\n"
                           "    mov.u32 %r2, %ntid.x;\n"
                           "    mov.u32 %r3, %tid.x;\n"
                           "    mad.lo.u32 %r4, %r1, %r2, %r3;\n"
                           "    mad.wide.u32 %rd3, %r4, 4, %rd1;\n"
                           "    mad.wide.u32 %rd4, %r4, 4, %rd2;\n"
                           "    ld.global.f32 %f2, [%rd4];\n"
                           "    ld.global.f32 %f3, [%rd3];\n"
                           "    fma.rn.f32 %f3, %f1, %f2, %f3;\n"
                           "    st.global.f32 [%rd3], %f3;\n"
                           "    ret;\n"
                           "}\n";

typedef struct timing {
    double wall, cpu; /* seconds of one measurement, the shortest of all rounds */
} timing;

/* A launch and its own memory. */
typedef struct subject {
    emu_memory *memory;
    emu_launch_config config;
    emu_stats stats;
} subject;

typedef subject make_subject(arena *a);

static double cpu_seconds(void)
{
    return (double)clock() / CLOCKS_PER_SEC;
}

static void launch(void *context, size_t i)
{
    subject *s = (subject *)context + i;
    s->stats = (emu_stats){ 0 };
    emu_report report;
    if (!emu_launch(s->memory, &s->config, &s->stats, &report)) {
        fprintf(stderr, "line %u: %s\n", report.line, report.message);
        exit(1);
    }
}

/* Launches the first `count` subjects at the same time. Keeps the shortest times in *best. */
static void time_launches(subject *subjects, unsigned count, unsigned threads, timing *best)
{
    for (unsigned i = 0; i < count; i++)
        subjects[i].config.threads = threads;
    double cpu = cpu_seconds();
    uint64_t start = os_nanoseconds();
    os_parallel(count, count, launch, subjects);
    double wall = (double)(os_nanoseconds() - start) * 1e-9;
    cpu = cpu_seconds() - cpu;
    best->wall = best->wall == 0 || wall < best->wall ? wall : best->wall;
    best->cpu = best->cpu == 0 || cpu < best->cpu ? cpu : best->cpu;
}

/* Prints the shortest times of ROUNDS rounds. Each round runs the kernel in all three ways, so that
 * a busy machine slows all of them alike. */
static void measure(arena *a, make_subject *make)
{
    subject copies[2] = { make(a), make(a) };
    timing one = { 0 }, two = { 0 }, apart = { 0 };
    for (int round = 0; round < ROUNDS; round++) {
        time_launches(copies, 1, 1, &one);
        time_launches(copies, 1, 2, &two);
        time_launches(copies, 2, 1, &apart);
    }
    printf("%s, %" PRIu64 " thread instructions: %.0f million per second on one core; two "
           "threads: %.2f x the speed, %.2f x the CPU time; two independent copies: %.2f x the "
           "speed\n",
           copies[0].config.entry, copies[0].stats.thread_instructions,
           (double)copies[0].stats.thread_instructions / one.wall * 1e-6, one.wall / two.wall,
           two.cpu / one.cpu, 2 * one.wall / apart.wall);
    for (int i = 0; i < 2; i++)
        emu_memory_free(copies[i].memory);
}

static emu_module *load(arena *a, const char *text)
{
    emu_report report;
    emu_module *module = emu_load(a, text, strlen(text), &report);
    if (!module) {
        fprintf(stderr, "line %u: %s\n", report.line, report.message);
        exit(1);
    }
    return module;
}

static uint64_t *keep_address(arena *a, uint64_t address)
{
    uint64_t *kept = arena_alloc(a, sizeof *kept);
    *kept = address;
    return kept;
}

static uint64_t *map_random(arena *a, emu_memory *m, size_t bytes)
{
    return keep_address(a, emu_map(m, random_bytes(a, bytes), bytes, false));
}

static subject make_gemv(arena *a)
{
    emu_memory *m = emu_memory_new(NULL);
    const void **params = arena_alloc(a, 3 * sizeof *params);
    params[0] = keep_address(a, emu_alloc(m, ROWS * sizeof(float)));
    params[1] = map_random(a, m, (size_t)ROWS * ROW_BYTES);
    params[2] = map_random(a, m, K * sizeof(float));
    return (subject){ .memory = m,
                      .config = { .module = load(a, gemv),
                                  .entry = "gemv",
                                  .grid = { ROWS, 1, 1 },
                                  .block = { 32, 1, 1 },
                                  .params = params,
                                  .param_count = 3 } };
}

static subject make_axpy(arena *a)
{
    static const float factor = 0.5f;
    emu_memory *m = emu_memory_new(NULL);
    const void **params = arena_alloc(a, 3 * sizeof *params);
    params[0] = map_random(a, m, VALUES * sizeof(float));
    params[1] = map_random(a, m, VALUES * sizeof(float));
    params[2] = &factor;
    return (subject){ .memory = m,
                      .config = { .module = load(a, axpy),
                                  .entry = "axpy",
                                  .grid = { VALUES / 256, 1, 1 },
                                  .block = { 256, 1, 1 },
                                  .params = params,
                                  .param_count = 3 } };
}

int main(void)
{
    arena *a = arena_new();
    measure(a, make_gemv);
    measure(a, make_axpy);
    arena_free(a);
    return 0;
}
