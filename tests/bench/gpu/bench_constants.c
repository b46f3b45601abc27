/* Measures what the cost model rests on: bench_constants [--quick]
 *
 * Prints a line each, "name value unit": the bandwidth of a copy (bytes read and written) and of
 * reading alone, from device memory and from the L2 cache; the latency of a load from both, one
 * thread chasing pointers; the time from a launch to the next one in a graph of empty kernels, with
 * and without programmatic overlap.
 *
 * Exit status: 0 all right; 1 an error; 77 there is no GPU.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/gpu/device.h"

enum { FAILED = 1, SKIPPED = 77 };

static const char text[] =
    ".version 6.3\n.target sm_75\n.address_size 64\n"
    ".visible .entry empty()\n{\n    ret;\n}\n"
    /* Follows pointers, each at the address that the one before it holds. */
    ".visible .entry chase(.param .u64 out, .param .u64 first, .param .u32 steps)\n{\n"
    "    .reg .b64 %rd<3>;\n    .reg .b32 %r<2>;\n    .reg .pred %p<2>;\n"
    "    ld.param.u64 %rd1, [out];\n    ld.param.u64 %rd2, [first];\n"
    "    ld.param.u32 %r1, [steps];\n"
    "$next:\n    ld.global.cg.u64 %rd2, [%rd2];\n    sub.u32 %r1, %r1, 1;\n"
    "    setp.ne.u32 %p1, %r1, 0;\n    @%p1 bra $next;\n"
    "    st.global.u64 [%rd1], %rd2;\n    ret;\n}\n"
    /* Reads a buffer `times` times. A thread reads 64 bytes in each turn of its loop. */
    ".visible .entry sweep(.param .u64 out, .param .u64 from, .param .u64 bytes, .param .u32 "
    "times)\n"
    "{\n    .reg .b64 %rd<8>;\n    .reg .b32 %r<24>;\n    .reg .pred %p<3>;\n"
    "    ld.param.u64 %rd1, [out];\n    ld.param.u64 %rd2, [from];\n"
    "    ld.param.u64 %rd3, [bytes];\n    ld.param.u32 %r1, [times];\n"
    "    mov.u32 %r2, %tid.x;\n    mov.u32 %r3, %ctaid.x;\n    mov.u32 %r4, %ntid.x;\n"
    "    mov.u32 %r5, %nctaid.x;\n    mad.lo.u32 %r6, %r3, %r4, %r2;\n"
    "    mul.lo.u32 %r7, %r4, %r5;\n    mul.wide.u32 %rd7, %r7, 16;\n    mov.u32 %r23, 0;\n"
    "$again:\n    mul.wide.u32 %rd4, %r6, 16;\n"
    "$turn:\n    add.u64 %rd5, %rd2, %rd4;\n"
    "    ld.global.v4.u32 {%r8, %r9, %r10, %r11}, [%rd5];\n    add.u64 %rd6, %rd5, %rd7;\n"
    "    ld.global.v4.u32 {%r12, %r13, %r14, %r15}, [%rd6];\n    add.u64 %rd6, %rd6, %rd7;\n"
    "    ld.global.v4.u32 {%r16, %r17, %r18, %r19}, [%rd6];\n    add.u64 %rd6, %rd6, %rd7;\n"
    "    ld.global.v4.u32 {%r20, %r21, %r22, %r7}, [%rd6];\n"
    "    xor.b32 %r8, %r8, %r12;\n    xor.b32 %r16, %r16, %r20;\n    xor.b32 %r8, %r8, %r16;\n"
    "    xor.b32 %r23, %r23, %r8;\n    shl.b64 %rd5, %rd7, 2;\n    add.u64 %rd4, %rd4, %rd5;\n"
    "    setp.lt.u64 %p1, %rd4, %rd3;\n    @%p1 bra $turn;\n"
    "    sub.u32 %r1, %r1, 1;\n    setp.ne.u32 %p2, %r1, 0;\n    @%p2 bra $again;\n"
    "    setp.eq.u32 %p1, %r23, 0x12345678;\n    @%p1 st.global.u32 [%rd1], %r23;\n    ret;\n}\n";

static const char overlapping[] =
    ".version 7.8\n.target sm_90\n.address_size 64\n"
    ".visible .entry overlapping()\n"
    "{\n    griddepcontrol.launch_dependents;\n    griddepcontrol.wait;\n    ret;\n}\n";

enum { RUNS = 7 };

typedef struct bench {
    gpu gpu;
    bool quick;
    gpu_address out, buffer;
    size_t bytes; /* of the buffer */
} bench;

static void print(const char *name, double value, const char *unit)
{
    printf("%s %.4g %s\n", name, value, unit);
    fflush(stdout);
}

/* The best of some runs of what a graph has, behind one that is not timed. */
static bool time_graph(bench *b, int runs, double *seconds)
{
    *seconds = 1e9;
    for (int i = 0; i < (b->quick ? 1 : runs); i++) {
        double one;
        if (!gpu_replay(&b->gpu) || !gpu_start(&b->gpu) || !gpu_replay(&b->gpu) ||
            !gpu_stop(&b->gpu, &one))
            return false;
        *seconds = one < *seconds ? one : *seconds;
    }
    return true;
}

static bool measure_launches(bench *b, const char *name, const char *entry, bool early,
                             unsigned blocks)
{
    unsigned launches = b->quick ? 10 : 1000;
    const gpu_grid grid = { .blocks = { blocks, 1, 1 }, .threads = 256, .early = early };
    double seconds;
    if (!gpu_select(&b->gpu, entry, 0) || !gpu_begin_graph(&b->gpu))
        return false;
    for (unsigned i = 0; i < launches; i++)
        if (!gpu_launch(&b->gpu, &grid, NULL))
            return false;
    if (!gpu_end_graph(&b->gpu) || !time_graph(b, RUNS, &seconds))
        return false;
    print(name, seconds / launches * 1e6, "us");
    return true;
}

/* Pointers at every 1,152th byte, each in another line, in one circle through all. */
static bool measure_latency(bench *b, const char *name, size_t bytes)
{
    enum { STRIDE = 1152, PRIME = 7919 };
    size_t count = bytes / STRIDE / PRIME * PRIME + 1;
    uint32_t steps = b->quick ? 10 : (uint32_t)count;
    char *memory = calloc(count, STRIDE);
    const gpu_grid grid = { .blocks = { 1, 1, 1 }, .threads = 1 };
    gpu_address first = b->buffer, out = b->out;
    void *params[] = { &out, &first, &steps };
    double seconds;
    if (!memory)
        return false;
    for (size_t i = 0, at = 0; i < count; i++) {
        size_t next = (at + PRIME) % count;
        gpu_address address = b->buffer + next * STRIDE;
        memcpy(memory + at * STRIDE, &address, sizeof address);
        at = next;
    }
    bool done = gpu_copy_in(&b->gpu, b->buffer, memory, count * STRIDE) &&
                gpu_select(&b->gpu, "chase", 0) && gpu_begin_graph(&b->gpu) &&
                gpu_launch(&b->gpu, &grid, params) && gpu_end_graph(&b->gpu) &&
                time_graph(b, 1, &seconds);
    free(memory);
    if (done)
        print(name, seconds / steps * 1e9, "ns");
    return done;
}

static bool measure_reading(bench *b, const char *name, size_t bytes, uint32_t times)
{
    enum { THREADS = 512, SM_BLOCKS = 4, TURN = 64 };
    const gpu_grid grid = { .blocks = { SM_BLOCKS * b->gpu.sm_count, 1, 1 }, .threads = THREADS };
    uint64_t turn = (uint64_t)grid.blocks[0] * THREADS * TURN, whole = bytes / turn * turn;
    gpu_address from = b->buffer, out = b->out;
    void *params[] = { &out, &from, &whole, &times };
    double seconds;
    if (!whole)
        return true;
    if (!gpu_select(&b->gpu, "sweep", 0) || !gpu_begin_graph(&b->gpu) ||
        !gpu_launch(&b->gpu, &grid, params) || !gpu_end_graph(&b->gpu) ||
        !time_graph(b, RUNS, &seconds))
        return false;
    print(name, (double)whole * times / seconds / 1e9, "GB/s");
    return true;
}

static bool measure_all(bench *b)
{
    enum { SMALL = 1 << 21 };
    const effort *e = b->quick ? &quick_effort : &thorough_effort;
    double copy;
    b->bytes = b->quick ? 8 * SMALL : (size_t)1 << 30;
    if (!time_copy(&b->gpu, e, &copy))
        return false;
    print("copy", copy / 1e9, "GB/s");
    if (!gpu_alloc(&b->gpu, sizeof(uint64_t), &b->out) ||
        !gpu_alloc(&b->gpu, b->bytes, &b->buffer) || !gpu_fill(&b->gpu, b->buffer, 1, b->bytes) ||
        !gpu_load(&b->gpu, text))
        return false;
    size_t in_l2 = b->gpu.l2_bytes / 2;
    return measure_reading(b, "read", b->bytes, 1) &&
           measure_reading(b, "read_l2", b->quick ? SMALL : in_l2, b->quick ? 2 : 50) &&
           measure_launches(b, "launch_gap_1", "empty", false, 1) &&
           measure_launches(b, "launch_gap", "empty", false, b->gpu.sm_count) &&
           measure_latency(b, "latency", b->bytes) &&
           measure_latency(b, "latency_l2", b->quick ? 8 * SMALL : in_l2) &&
           (!gpu_overlaps(&b->gpu) ||
            (gpu_load(&b->gpu, overlapping) &&
             measure_launches(b, "launch_gap_overlapping_1", "overlapping", true, 1) &&
             measure_launches(b, "launch_gap_overlapping", "overlapping", true, b->gpu.sm_count)));
}

int main(int argc, char **argv)
{
    bench b = { .quick = argc > 1 && strcmp(argv[1], "--quick") == 0 };
    arena *a = arena_new();
    int status = SKIPPED;
    if (gpu_open(a, &b.gpu)) {
        printf("# %s, driver for CUDA %d.%d, %u SMs, %.0f MHz, L2 %.0f MB\n", b.gpu.name,
               b.gpu.driver_version / 1000, b.gpu.driver_version % 1000 / 10, b.gpu.sm_count,
               b.gpu.clock / 1e6, (double)b.gpu.l2_bytes / 1e6);
        status = measure_all(&b) ? 0 : FAILED;
        if (status)
            fprintf(stderr, "bench_constants: %s\n", b.gpu.error);
        gpu_close(&b.gpu);
    } else {
        fprintf(stderr, "bench_constants: %s\n", b.gpu.error);
    }
    arena_free(a);
    return status;
}
