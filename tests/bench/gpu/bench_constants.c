/* Measures the constants of the cost model: bench_constants [--quick]
 *
 * Prints a line for each figure, "name value unit":
 *
 *   clock, clock_reading    SM clock while all SMs multiply, and while they read device memory
 *   copy                    bandwidth of a copy, bytes read plus bytes written
 *   read, read_l2, read_l1  bandwidth of reading device memory, the L2 cache, the L1 caches
 *   launch_gap              time from a launch to the next in a graph of empty kernels, one block
 *                           per SM
 *   launch_gap_1            the same with one block
 *   launch_gap_overlapping  the same with programmatic dependent launch
 *   launch_gap_stream       the same without a graph, launched one by one
 *   launch_host             host time of a launch without a graph
 *   graph_host              host time to launch a graph of many launches
 *   latency                 latency of a load from device memory: one thread follows pointers, each
 *                           to another page
 *   latency_near            the same within a page
 *   latency_l2              the same from the L2 cache
 *   model_ramp              COST_RAMP of the model that predicts in the same run
 *   model_overlapped_ramp   its COST_OVERLAPPED_RAMP
 *
 * The kernels are in constants.ptx, in the program's folder. A figure that fails is a line "FAILED
 * name: reason"; "passed N" counts the others.
 *
 * Exit status: 0 success; 1 an error; 77 there is no GPU. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "bench/gpu/figures.h"
#include "cost/measured.h"

static const char overlapping[] =
    ".version 7.8\n.target sm_90\n.address_size 64\n"
    ".visible .entry overlapping()\n"
    "{\n    griddepcontrol.launch_dependents;\n    griddepcontrol.wait;\n    ret;\n}\n";

enum { RUNS = 7, FILLED = 1 };

/* The record that a kernel writes to out; see constants.ptx. */
typedef struct result {
    uint64_t clocks, nanoseconds;
    uint32_t wrong, unused;
} result;

typedef struct bench {
    figures *figures;
    gpu *gpu;
    bool quick;
    gpu_address out, buffer;
    size_t bytes; /* size of the buffer; every byte is FILLED */
} bench;

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static bool clear_result(bench *b)
{
    return gpu_fill(b->gpu, b->out, 0, sizeof(result));
}

static bool take_result(bench *b, result *r)
{
    return gpu_copy_out(b->gpu, r, b->out, sizeof *r) &&
           (!r->wrong || figure_fail(b->figures, "the bytes read differ from memory"));
}

static bool print_clock(bench *b, const char *name)
{
    result r;
    if (!take_result(b, &r))
        return false;
    if (!r.nanoseconds)
        return figure_fail(b->figures, "the device's timer did not advance");
    double hertz = 1e9 * (double)r.clocks / (double)r.nanoseconds;
    if (!b->figures->quick && hertz > 1.1 * b->gpu->clock)
        return figure_fail(b->figures, "the measured clock is faster than the device's maximum");
    figure_print(b->figures, name, hertz / 1e6, "MHz");
    return true;
}

static bool measure_clock(bench *b, const char *name)
{
    const gpu_grid grid = { .blocks = { 2 * b->gpu->sm_count, 1, 1 }, .threads = 512 };
    uint32_t turns = b->quick ? 100 : 1000000; /* 24 ms on an H100 */
    gpu_address out = b->out;
    void *params[] = { &out, &turns };
    return clear_result(b) && gpu_select(b->gpu, "multiply", 0) &&
           gpu_launch(b->gpu, &grid, params) && gpu_wait(b->gpu) && print_clock(b, name);
}

static bool measure_launches(bench *b, const char *name, const char *entry, bool early,
                             unsigned blocks)
{
    unsigned launches = b->quick ? 10 : 1000;
    const gpu_grid grid = { .blocks = { blocks, 1, 1 }, .threads = 256, .early = early };
    double seconds;
    if (!figure_record(b->figures, entry, &grid, NULL, launches) ||
        !figure_time(b->figures, &seconds))
        return false;
    figure_print(b->figures, name, seconds / launches * 1e6, "us");
    return true;
}

/* Times launches without a graph, fewer than the driver can queue. */
static bool measure_stream(bench *b, const char *host_name, const char *gap_name)
{
    unsigned launches = b->quick ? 10 : 500;
    const gpu_grid grid = { .blocks = { b->gpu->sm_count, 1, 1 }, .threads = 256 };
    double host = 1e9, on_device = 1e9;
    if (!gpu_select(b->gpu, "empty", 0))
        return false;
    for (int run = 0; run < RUNS; run++) {
        double start = now(), seconds;
        bool done = gpu_start(b->gpu);
        for (unsigned i = 0; i < launches && done; i++)
            done = gpu_launch(b->gpu, &grid, NULL);
        double took = now() - start;
        if (!done || !gpu_stop(b->gpu, &seconds))
            return false;
        host = took < host ? took : host;
        on_device = seconds < on_device ? seconds : on_device;
    }
    figure_print(b->figures, host_name, host / launches * 1e6, "us");
    figure_print(b->figures, gap_name, on_device / launches * 1e6, "us");
    return true;
}

static bool measure_graph_host(bench *b, const char *name)
{
    const gpu_grid grid = { .blocks = { b->gpu->sm_count, 1, 1 }, .threads = 256 };
    double best = 1e9;
    if (!figure_record(b->figures, "empty", &grid, NULL, b->quick ? 10 : 1000))
        return false;
    for (int run = 0; run < RUNS; run++) {
        double start = now();
        if (!gpu_replay(b->gpu))
            return false;
        double took = now() - start;
        best = took < best ? took : best;
        if (!gpu_wait(b->gpu))
            return false;
    }
    figure_print(b->figures, name, best * 1e6, "us");
    return true;
}

/* Times dependent loads of one thread. Unless `warm` is set, they miss the L2 cache, because other
 * memory was just written through all of it. Nodes are 1,152 bytes apart, each in its own line. A
 * step moves `jump` nodes on. The nodes form one circle, of which at most MOST_STEPS steps are
 * timed. */
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
        return figure_fail(b->figures, "out of host memory");
    for (size_t i = 0, at = 0; i < count; i++) {
        size_t next = (at + jump) % count;
        gpu_address address = b->buffer + next * STRIDE;
        memcpy(memory + at * STRIDE, &address, sizeof address);
        at = next;
    }
    bool done = gpu_copy_in(b->gpu, b->buffer, memory, count * STRIDE) &&
                figure_record(b->figures, "chase", &grid, params, 1) &&
                (!warm || gpu_replay(b->gpu)) &&
                (warm || gpu_fill(b->gpu, rest, FILLED, b->bytes / 2)) && gpu_wait(b->gpu) &&
                gpu_start(b->gpu) && gpu_replay(b->gpu) && gpu_stop(b->gpu, &seconds) &&
                gpu_copy_out(b->gpu, &last, b->out, sizeof last);
    free(memory);
    if (!done)
        return false;
    if (last != end)
        return figure_fail(b->figures, "the last pointer differs from the one written");
    figure_print(b->figures, name, seconds / steps * 1e9, "ns");
    return true;
}

static bool measure_reading(bench *b, const char *name, const char *entry, size_t bytes,
                            uint32_t times)
{
    enum { THREADS = 512, SM_BLOCKS = 4, TURN = 64, TURN_WORDS = TURN / 4 };
    const gpu_grid grid = { .blocks = { SM_BLOCKS * b->gpu->sm_count, 1, 1 }, .threads = THREADS };
    uint64_t turn = (uint64_t)grid.blocks[0] * THREADS * TURN;
    uint64_t turns = bytes / turn ? bytes / turn : 1, whole = turns * turn;
    uint32_t expected = (uint32_t)(turns * times * TURN_WORDS) * (FILLED * 0x01010101u);
    gpu_address from = b->buffer, out = b->out;
    void *params[] = { &out, &from, &whole, &times, &expected };
    result r;
    double seconds;
    if (whole > b->bytes)
        return figure_fail(b->figures, "one iteration reads more than the buffer has");
    if (!clear_result(b) || !gpu_fill(b->gpu, b->buffer, FILLED, whole) ||
        !figure_record(b->figures, entry, &grid, params, 1) || !figure_time(b->figures, &seconds) ||
        !take_result(b, &r))
        return false;
    figure_print(b->figures, name, (double)whole * times / seconds / 1e9, "GB/s");
    return true;
}

static bool prepare(bench *b)
{
    enum { SMALL = 16 << 20 };
    const char *kernels = read_beside(b->gpu, "constants.ptx");
    b->bytes = b->quick ? SMALL : (size_t)1 << 30;
    return gpu_alloc(b->gpu, sizeof(result), &b->out) && gpu_alloc(b->gpu, b->bytes, &b->buffer) &&
           gpu_fill(b->gpu, b->buffer, FILLED, b->bytes) && kernels && gpu_load(b->gpu, kernels);
}

static void measure_all(figures *f, void *context)
{
    bench *b = context;
    b->gpu = &f->gpu;
    b->quick = f->quick;
    enum {
        SMALL = 1 << 21,
        FAR = 3571,
        NEAR = 7
    }; /* FAR and NEAR: nodes per jump, 4 MB and 8
                                                       KB */
    const effort *e = b->quick ? &quick_effort : &thorough_effort;
    unsigned sms = b->gpu->sm_count;
    double copy;
    bool copied = time_copy(b->gpu, e, &copy);
    figure_check(b->figures, "copy", copied);
    if (copied)
        figure_print(b->figures, "copy", copy / 1e9, "GB/s");
    printf("model_ramp %.4g us\nmodel_overlapped_ramp %.4g us\n", COST_RAMP * 1e6,
           COST_OVERLAPPED_RAMP * 1e6);
    if (!prepare(b)) {
        figure_check(b->figures, "buffers", false);
        return;
    }
    size_t in_l2 = b->quick ? SMALL : b->gpu->l2_bytes / 2, half = b->bytes / 2;
    figure_check(b->figures, "read",
                 measure_reading(b, "read", "read_l2", b->bytes, b->quick ? 1 : 4));
    figure_check(b->figures, "clock_reading", print_clock(b, "clock_reading"));
    figure_check(b->figures, "read_l2",
                 measure_reading(b, "read_l2", "read_l2", in_l2, b->quick ? 2 : 50));
    figure_check(b->figures, "read_l1",
                 measure_reading(b, "read_l1", "read_l1", 1, b->quick ? 2 : 1000));
    figure_check(b->figures, "clock", measure_clock(b, "clock"));
    figure_check(b->figures, "launch_gap_1",
                 measure_launches(b, "launch_gap_1", "empty", false, 1));
    figure_check(b->figures, "launch_gap", measure_launches(b, "launch_gap", "empty", false, sms));
    figure_check(b->figures, "launch_host", measure_stream(b, "launch_host", "launch_gap_stream"));
    figure_check(b->figures, "graph_host", measure_graph_host(b, "graph_host"));
    figure_check(b->figures, "latency", measure_latency(b, "latency", half, FAR, false));
    figure_check(b->figures, "latency_near", measure_latency(b, "latency_near", half, NEAR, false));
    figure_check(b->figures, "latency_l2", measure_latency(b, "latency_l2", in_l2, NEAR, true));
    if (!gpu_overlaps(b->gpu))
        return;
    figure_check(b->figures, "overlapping", gpu_load(b->gpu, overlapping));
    const char *of_one = "launch_gap_overlapping_1", *of_all = "launch_gap_overlapping";
    figure_check(b->figures, of_one, measure_launches(b, of_one, "overlapping", true, 1));
    figure_check(b->figures, of_all, measure_launches(b, of_all, "overlapping", true, sms));
}

int main(int argc, char **argv)
{
    figures f = { .quick = argc > 1 && strcmp(argv[1], "--quick") == 0 };
    bench b = { .figures = &f };
    return figures_main(&f, "bench_constants", measure_all, &b);
}
