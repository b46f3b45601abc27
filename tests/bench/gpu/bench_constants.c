/* Measures what the cost model rests on: bench_constants [--quick]
 *
 * Prints a line for each figure, "name value unit":
 *
 *   clock, clock_reading   SM clock while all SMs multiply, and while they read device memory
 *   copy                   bandwidth of a copy, bytes read and written
 *   read, read_l2, read_l1 bandwidth of reading device memory, the L2 cache, the L1 caches
 *   launch_gap             from a launch to the next in a graph of empty kernels, a block an SM;
 *                          _1: of one block; _overlapping: with programmatic dependent launch;
 *                          _stream: launched one by one, without a graph
 *   launch_host, graph_host  time of the host for one launch, and for one launch of a graph of
 * 1,000 latency                of a load from device memory, one thread that follows pointers, each
 * to another page; _near: within a page; _l2: from the L2 cache
 *
 * Its kernels are in constants.ptx, beside the program. A figure that fails is a line "FAILED name:
 * reason"; "passed N" counts the others. Exit status: 0 all right; 1 an error; 77 there is no GPU.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "bench/gpu/device.h"

enum { FAILED = 1, SKIPPED = 77 };

static const char overlapping[] =
    ".version 7.8\n.target sm_90\n.address_size 64\n"
    ".visible .entry overlapping()\n"
    "{\n    griddepcontrol.launch_dependents;\n    griddepcontrol.wait;\n    ret;\n}\n";

enum { RUNS = 7, FILLED = 1 };

/* What the kernels write to out: see constants.ptx. */
typedef struct result {
    uint64_t clocks, nanoseconds;
    uint32_t wrong, unused;
} result;

typedef struct bench {
    gpu gpu;
    bool quick;
    gpu_address out, buffer;
    size_t bytes; /* of the buffer, each of them FILLED */
    size_t passed, failed;
} bench;

static void print(bench *b, const char *name, double value, const char *unit)
{
    printf("%s %.4g %s\n", name, value, unit);
    fflush(stdout);
    b->passed++;
}

/* Counts a figure that was not printed, and says why. */
static void check(bench *b, const char *name, bool done)
{
    if (done)
        return;
    printf("FAILED %s: %s\n", name, b->gpu.error);
    fflush(stdout);
    b->failed++;
}

static bool fail(bench *b, const char *reason)
{
    b->gpu.error = reason;
    return false;
}

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* Returns the best time of some replays of the graph, after one that is not timed. */
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

static bool record(bench *b, const char *entry, const gpu_grid *grid, void **params, unsigned times)
{
    bool done = gpu_select(&b->gpu, entry, 0) && gpu_begin_graph(&b->gpu);
    for (unsigned i = 0; i < times && done; i++)
        done = gpu_launch(&b->gpu, grid, params);
    return done && gpu_end_graph(&b->gpu);
}

static bool clear_result(bench *b)
{
    return gpu_fill(&b->gpu, b->out, 0, sizeof(result));
}

static bool take_result(bench *b, result *r)
{
    return gpu_copy_out(&b->gpu, r, b->out, sizeof *r) &&
           (!r->wrong || fail(b, "the bytes read are not those in memory"));
}

static bool print_clock(bench *b, const char *name)
{
    result r;
    if (!take_result(b, &r))
        return false;
    if (!r.nanoseconds)
        return fail(b, "the timer of the device stood still");
    print(b, name, 1e3 * (double)r.clocks / (double)r.nanoseconds, "MHz");
    return true;
}

static bool measure_clock(bench *b, const char *name)
{
    const gpu_grid grid = { .blocks = { 2 * b->gpu.sm_count, 1, 1 }, .threads = 512 };
    uint32_t turns = b->quick ? 100 : 1000000; /* 24 ms on an H100 */
    gpu_address out = b->out;
    void *params[] = { &out, &turns };
    return clear_result(b) && gpu_select(&b->gpu, "multiply", 0) &&
           gpu_launch(&b->gpu, &grid, params) && gpu_wait(&b->gpu) && print_clock(b, name);
}

static bool measure_launches(bench *b, const char *name, const char *entry, bool early,
                             unsigned blocks)
{
    unsigned launches = b->quick ? 10 : 1000;
    const gpu_grid grid = { .blocks = { blocks, 1, 1 }, .threads = 256, .early = early };
    double seconds;
    if (!record(b, entry, &grid, NULL, launches) || !time_graph(b, RUNS, &seconds))
        return false;
    print(b, name, seconds / launches * 1e6, "us");
    return true;
}

/* Launches one by one, fewer than the driver queues. */
static bool measure_stream(bench *b, const char *host_name, const char *gap_name)
{
    unsigned launches = b->quick ? 10 : 500;
    const gpu_grid grid = { .blocks = { b->gpu.sm_count, 1, 1 }, .threads = 256 };
    double host = 1e9, device = 1e9;
    if (!gpu_select(&b->gpu, "empty", 0))
        return false;
    for (int run = 0; run < RUNS; run++) {
        double start = now(), seconds;
        bool done = gpu_start(&b->gpu);
        for (unsigned i = 0; i < launches && done; i++)
            done = gpu_launch(&b->gpu, &grid, NULL);
        double took = now() - start;
        if (!done || !gpu_stop(&b->gpu, &seconds))
            return false;
        host = took < host ? took : host;
        device = seconds < device ? seconds : device;
    }
    print(b, host_name, host / launches * 1e6, "us");
    print(b, gap_name, device / launches * 1e6, "us");
    return true;
}

static bool measure_graph_host(bench *b, const char *name)
{
    const gpu_grid grid = { .blocks = { b->gpu.sm_count, 1, 1 }, .threads = 256 };
    double best = 1e9;
    if (!record(b, "empty", &grid, NULL, b->quick ? 10 : 1000))
        return false;
    for (int run = 0; run < RUNS; run++) {
        double start = now();
        if (!gpu_replay(&b->gpu))
            return false;
        double took = now() - start;
        best = took < best ? took : best;
        if (!gpu_wait(&b->gpu))
            return false;
    }
    print(b, name, best * 1e6, "us");
    return true;
}

/* Loads are timed that miss the L2 cache, since something else was written to all of it just
 * before; or, with warm, loads that hit it. Nodes are 1,152 bytes apart, each in a line of its own,
 * and a step goes `jump` nodes on: in one circle through all, of which some steps are timed. */
static bool measure_latency(bench *b, const char *name, size_t bytes, size_t jump, bool warm)
{
    enum { STRIDE = 1152, MOST_STEPS = 200000 };
    size_t count = bytes / STRIDE / jump * jump + 1;
    uint32_t steps = b->quick ? 10 : count < MOST_STEPS ? (uint32_t)count : MOST_STEPS;
    char *memory = calloc(count, STRIDE);
    const gpu_grid grid = { .blocks = { 1, 1, 1 }, .threads = 1 };
    gpu_address first = b->buffer, out = b->out, end = first + steps * jump % count * STRIDE, last;
    gpu_address rest = first + b->bytes / 2;
    void *params[] = { &out, &first, &steps };
    double seconds;
    if (!memory)
        return fail(b, "the host has no memory");
    for (size_t i = 0, at = 0; i < count; i++) {
        size_t next = (at + jump) % count;
        gpu_address address = b->buffer + next * STRIDE;
        memcpy(memory + at * STRIDE, &address, sizeof address);
        at = next;
    }
    bool done = gpu_copy_in(&b->gpu, b->buffer, memory, count * STRIDE) &&
                record(b, "chase", &grid, params, 1) && (!warm || gpu_replay(&b->gpu)) &&
                (warm || gpu_fill(&b->gpu, rest, FILLED, b->bytes / 2)) && gpu_wait(&b->gpu) &&
                gpu_start(&b->gpu) && gpu_replay(&b->gpu) && gpu_stop(&b->gpu, &seconds) &&
                gpu_copy_out(&b->gpu, &last, b->out, sizeof last);
    free(memory);
    if (!done)
        return false;
    if (last != end)
        return fail(b, "the last pointer is not the one that was put there");
    print(b, name, seconds / steps * 1e9, "ns");
    return true;
}

static bool measure_reading(bench *b, const char *name, const char *entry, size_t bytes,
                            uint32_t times)
{
    enum { THREADS = 512, SM_BLOCKS = 4, TURN = 64, TURN_WORDS = TURN / 4 };
    const gpu_grid grid = { .blocks = { SM_BLOCKS * b->gpu.sm_count, 1, 1 }, .threads = THREADS };
    uint64_t turn = (uint64_t)grid.blocks[0] * THREADS * TURN;
    uint64_t turns = bytes / turn ? bytes / turn : 1, whole = turns * turn;
    uint32_t expected = (uint32_t)(turns * times * TURN_WORDS) * (FILLED * 0x01010101u);
    gpu_address from = b->buffer, out = b->out;
    void *params[] = { &out, &from, &whole, &times, &expected };
    result r;
    double seconds;
    if (whole > b->bytes)
        return fail(b, "the buffer is smaller than what one turn reads");
    if (!clear_result(b) || !gpu_fill(&b->gpu, b->buffer, FILLED, whole) ||
        !record(b, entry, &grid, params, 1) || !time_graph(b, RUNS, &seconds) ||
        !take_result(b, &r))
        return false;
    print(b, name, (double)whole * times / seconds / 1e9, "GB/s");
    return true;
}

static bool prepare(bench *b)
{
    enum { SMALL = 16 << 20 };
    b->bytes = b->quick ? SMALL : (size_t)1 << 30;
    return gpu_alloc(&b->gpu, sizeof(result), &b->out) &&
           gpu_alloc(&b->gpu, b->bytes, &b->buffer) &&
           gpu_fill(&b->gpu, b->buffer, FILLED, b->bytes) && load_beside(&b->gpu, "constants.ptx");
}

static void measure_all(bench *b)
{
    enum { SMALL = 1 << 21, FAR = 3571, NEAR = 7 }; /* nodes of a jump: 4 MB, 8 KB */
    const effort *e = b->quick ? &quick_effort : &thorough_effort;
    unsigned sms = b->gpu.sm_count;
    double copy;
    bool copied = time_copy(&b->gpu, e, &copy);
    check(b, "copy", copied);
    if (copied)
        print(b, "copy", copy / 1e9, "GB/s");
    if (!prepare(b)) {
        check(b, "buffers", false);
        return;
    }
    size_t in_l2 = b->quick ? SMALL : b->gpu.l2_bytes / 2, half = b->bytes / 2;
    check(b, "read", measure_reading(b, "read", "read_l2", b->bytes, b->quick ? 1 : 4));
    check(b, "clock_reading", print_clock(b, "clock_reading"));
    check(b, "read_l2", measure_reading(b, "read_l2", "read_l2", in_l2, b->quick ? 2 : 50));
    check(b, "read_l1", measure_reading(b, "read_l1", "read_l1", 1, b->quick ? 2 : 1000));
    check(b, "clock", measure_clock(b, "clock"));
    check(b, "launch_gap_1", measure_launches(b, "launch_gap_1", "empty", false, 1));
    check(b, "launch_gap", measure_launches(b, "launch_gap", "empty", false, sms));
    check(b, "launch_host", measure_stream(b, "launch_host", "launch_gap_stream"));
    check(b, "graph_host", measure_graph_host(b, "graph_host"));
    check(b, "latency", measure_latency(b, "latency", half, FAR, false));
    check(b, "latency_near", measure_latency(b, "latency_near", half, NEAR, false));
    check(b, "latency_l2", measure_latency(b, "latency_l2", in_l2, NEAR, true));
    if (!gpu_overlaps(&b->gpu))
        return;
    check(b, "overlapping", gpu_load(&b->gpu, overlapping));
    const char *of_one = "launch_gap_overlapping_1", *of_all = "launch_gap_overlapping";
    check(b, of_one, measure_launches(b, of_one, "overlapping", true, 1));
    check(b, of_all, measure_launches(b, of_all, "overlapping", true, sms));
}

int main(int argc, char **argv)
{
    bench b = { .quick = argc > 1 && strcmp(argv[1], "--quick") == 0 };
    arena *a = arena_new();
    int status = SKIPPED;
    if (gpu_open(a, &b.gpu)) {
        print_device(&b.gpu, NULL);
        measure_all(&b);
        printf("passed %zu\n", b.passed);
        status = b.failed ? FAILED : 0;
        gpu_close(&b.gpu);
    } else {
        fprintf(stderr, "bench_constants: %s\n", b.gpu.error);
    }
    arena_free(a);
    return status;
}
