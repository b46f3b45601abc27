/* Measures properties of a GPU that the cost model does not know: bench_probes [--quick]
 *
 * Prints a line for each figure, "name value unit":
 *
 *   cold_latency, hot_latency  latency of a load that misses the L2 cache, and of one that hits it
 *   METHOD_sectors  number of a line's four 32-byte sectors that a method brings into the L2 if it
 *                   names only the line's first address; METHOD_sector_N: the share of sector N.
 *                   Methods: prefetch.global.L2, prefetch_last with evict_last, prefetch_bulk by
 *                   cp.async.bulk, load of a word, load_128 with the hint L2::128B
 *   METHOD_rate     bandwidth of the lines that a method requests, at 128 bytes each
 *   stage_VARIANT_K time of a launch that stages K values of x: VARIANT is none (nothing staged),
 *                   segments (as stream_gemv does), quads (from fewer lines and to all banks)
 *   q8_words, q8_lines  bandwidth of reading a Q8_0 cache by 4-byte loads, and by 16-byte loads
 *   nothing_BxT     time from a launch to the next, of B blocks of T threads that do nothing
 *   touch_BxT       the same, of threads that copy 16 bytes each
 *   rate_INSTR      lanes of an instruction that an SM executes per clock, or products per clock of
 *                   its tensor cores
 *
 * Every kernel's results are checked. The kernels are in probes.ptx and constants.ptx, in the
 * program's folder. A figure that fails is a line "FAILED name: reason"; "passed N" counts the
 * others.
 *
 * Exit status: 0 success; 1 an error; 77 there is no GPU, or it is older than sm_90. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/gpu/probe_rates.h"
#include "ref/random.h"

enum { LINE = 128, SECTOR = 32, SECTORS = 4, USAGE = 2 };

typedef struct probes {
    figures *figures;
    gpu *gpu;
    bool quick;
    gpu_address out; /* a few words for results */
    char **argv;
    size_t from; /* index of the first group of probes; if not 0, an earlier group broke the
                    context */
} probes;

#define NAME(...) arena_format(p->gpu->arena, __VA_ARGS__)

/* A region of lines with four chains of pointers, one in each sector. `other` is memory whose
 * writes evict the region from the L2. */
typedef struct lines {
    gpu_address region, other;
    size_t count, other_bytes;
    gpu_kernel chase;
    double cold, hot; /* seconds per step that misses the L2, and that hits it */
} lines;

enum { JUMP = 7919 };

static bool make_lines(probes *p, lines *l)
{
    const char *constants = read_beside(p->gpu, "constants.ptx");
    size_t quarter = p->quick ? (size_t)2 << 20 : p->gpu->l2_bytes / 4;
    l->count = quarter / LINE / JUMP * JUMP + 1;
    l->other_bytes = p->quick ? 1 << 20 : (size_t)256 << 20;
    char *memory = calloc(l->count, LINE);
    bool made = memory && constants && gpu_alloc(p->gpu, l->count * LINE, &l->region) &&
                gpu_alloc(p->gpu, l->other_bytes, &l->other);
    for (size_t i = 0; i < l->count && made; i++)
        for (size_t s = 0; s < SECTORS; s++) {
            gpu_address next = l->region + (i + JUMP) % l->count * LINE + s * SECTOR;
            memcpy(memory + i * LINE + s * SECTOR, &next, sizeof next);
        }
    made = made && gpu_copy_in(p->gpu, l->region, memory, l->count * LINE) &&
           gpu_keep(p->gpu, constants, "chase", 0, &l->chase);
    free(memory);
    return made;
}

static bool flush(probes *p, const lines *l)
{
    return gpu_fill(p->gpu, l->other, 1, l->other_bytes) && gpu_wait(p->gpu);
}

/* Measures the seconds of a step through one sector of the lines. */
static bool chase(probes *p, const lines *l, unsigned sector, double *seconds)
{
    uint32_t steps = p->quick ? 20 : 20000;
    const gpu_grid grid = { .blocks = { 1, 1, 1 }, .threads = 1 };
    gpu_address first = l->region + sector * SECTOR, out = p->out, last;
    gpu_address end = first + (size_t)steps * JUMP % l->count * LINE;
    void *params[] = { &out, &first, &steps };
    gpu_use(p->gpu, &l->chase);
    if (!gpu_start(p->gpu) || !gpu_launch(p->gpu, &grid, params) || !gpu_stop(p->gpu, seconds) ||
        !gpu_copy_out(p->gpu, &last, out, sizeof last))
        return false;
    *seconds /= steps;
    return last == end || figure_fail(p->figures, "the last pointer differs from the one written");
}

static bool measure_cold_and_hot(probes *p, lines *l)
{
    const double least = 1.2;
    /* The first launch of a kernel is not timed, because the driver may have to load it. */
    if (!chase(p, l, 0, &l->cold) || !flush(p, l) || !chase(p, l, 0, &l->cold) ||
        !chase(p, l, 0, &l->hot))
        return false;
    figure_print(p->figures, "cold_latency", l->cold * 1e9, "ns");
    figure_print(p->figures, "hot_latency", l->hot * 1e9, "ns");
    return p->quick || l->cold > least * l->hot ||
           figure_fail(p->figures, "loads after an L2 flush are as fast as L2 hits");
}

static bool launch_method(probes *p, const char *method, gpu_address from, uint32_t count)
{
    const gpu_grid grid = { .blocks = { 4 * p->gpu->sm_count, 1, 1 }, .threads = 256 };
    void *params[] = { &from, &count };
    return gpu_select(p->gpu, method, 0) && gpu_launch(p->gpu, &grid, params) && gpu_wait(p->gpu);
}

static bool measure_sectors(probes *p, lines *l, const char *method)
{
    double sum = 0;
    for (unsigned s = 0; s < SECTORS; s++) {
        double seconds;
        if (!flush(p, l) || !launch_method(p, method, l->region, (uint32_t)l->count) ||
            !chase(p, l, s, &seconds))
            return false;
        double share = l->cold != l->hot ? (l->cold - seconds) / (l->cold - l->hot) : 0;
        figure_print(p->figures, NAME("%s_sector_%u", method, s), share, "parts");
        sum += share;
    }
    figure_print(p->figures, NAME("%s_sectors", method), sum, "sectors");
    return true;
}

static bool measure_rate(probes *p, const char *method)
{
    size_t bytes = p->quick ? 1 << 20 : (size_t)1 << 30;
    uint32_t count = (uint32_t)(bytes / LINE);
    const gpu_grid grid = { .blocks = { 4 * p->gpu->sm_count, 1, 1 }, .threads = 256 };
    gpu_address from;
    void *params[] = { &from, &count };
    double seconds;
    if (!gpu_alloc(p->gpu, bytes, &from))
        return false;
    bool done = gpu_fill(p->gpu, from, 1, bytes) &&
                figure_record(p->figures, method, &grid, params, 1) &&
                figure_time(p->figures, &seconds);
    gpu_free(p->gpu, from);
    if (done)
        figure_print(p->figures, NAME("%s_rate", method), (double)bytes / seconds / 1e9, "GB/s");
    return done;
}

static void measure_fetches(probes *p)
{
    /* prefetch_last is the last method, because its lines may stay in the L2 through a flush. */
    static const char *const methods[] = { "prefetch", "prefetch_bulk", "load", "load_128",
                                           "prefetch_last" };
    lines l = { 0 };
    bool ready = make_lines(p, &l) && measure_cold_and_hot(p, &l);
    figure_check(p->figures, "cold_latency", ready);
    for (size_t i = 0; i < sizeof methods / sizeof *methods; i++) {
        if (ready)
            figure_check(p->figures, NAME("%s_sectors", methods[i]),
                         measure_sectors(p, &l, methods[i]));
        figure_check(p->figures, NAME("%s_rate", methods[i]), measure_rate(p, methods[i]));
    }
    gpu_drop(p->gpu, &l.chase);
    gpu_free(p->gpu, l.region);
    gpu_free(p->gpu, l.other);
}

enum {
    CHUNK = 512,       /* values of x that a warp stages */
    STEP_CHUNKS = 4,   /* chunks in a step of stream_gemv */
    STEP_BYTES = 2560, /* bytes of a step: four planes of 512 bytes, then scales and sums */
    STEP_QUANTS = 2048,
    MOST_CHUNKS = 14336 / CHUNK,
    MOST_STEPS = (MOST_CHUNKS + STEP_CHUNKS - 1) / STEP_CHUNKS,
};

/* Returns true if the staged bytes are x in 8 bits, off by at most one, multiplied by the staged
 * scales. */
static bool is_staged(const float *x, unsigned chunks, const unsigned char *staged)
{
    for (unsigned i = 0; i < chunks * CHUNK; i++) {
        unsigned segment = i / 16, within = segment % 128, index = within % 4, row = within / 4;
        const unsigned char *step = staged + segment / 128 * STEP_BYTES;
        signed char q;
        float d;
        memcpy(&q, step + index * CHUNK + row * 16 + i % 16, sizeof q);
        memcpy(&d, step + STEP_QUANTS + row * 16 + index / 2 * 4, sizeof d);
        d *= index >= 2 ? 16 : 1;
        if (!(fabs((double)x[i] - (double)d * q) <= (double)d))
            return false;
    }
    return true;
}

static bool stage_once(probes *p, const char *entry, const gpu_grid *grid, gpu_address x,
                       unsigned chunks, gpu_address to, unsigned char *staged)
{
    size_t bytes = (size_t)MOST_STEPS * STEP_BYTES;
    uint32_t count = chunks;
    void *params[] = { &to, &x, &count };
    return gpu_fill(p->gpu, to, 0xff, bytes) && gpu_select(p->gpu, entry, grid->dynamic_shared) &&
           gpu_launch(p->gpu, grid, params) && gpu_wait(p->gpu) &&
           gpu_copy_out(p->gpu, staged, to, bytes);
}

static bool time_staging(probes *p, const char *entry, const char *name, const gpu_grid *grid,
                         gpu_address x, unsigned chunks)
{
    unsigned launches = p->quick ? 2 : 500;
    gpu_address nowhere = 0;
    uint32_t count = chunks;
    void *params[] = { &nowhere, &x, &count };
    double seconds;
    if (!figure_record(p->figures, entry, grid, params, launches) ||
        !figure_time(p->figures, &seconds))
        return false;
    figure_print(p->figures, name, seconds / launches * 1e6, "us");
    return true;
}

static bool measure_staging(probes *p, unsigned chunks, gpu_address x, const float *values,
                            gpu_address to)
{
    static const char *const variants[] = { "segments", "quads" };
    static unsigned char staged[2][MOST_STEPS * STEP_BYTES];
    unsigned warps = chunks > 16 ? chunks : 16, k = chunks * CHUNK;
    const gpu_grid grid = { .blocks = { p->gpu->sm_count, 1, 1 },
                            .threads = 32 * warps,
                            .dynamic_shared = sizeof staged[0] };
    bool done = time_staging(p, "stage_segments", NAME("stage_%s_%u", "none", k), &grid, x, 0);
    for (unsigned v = 0; v < 2 && done; v++) {
        const char *entry = NAME("stage_%s", variants[v]);
        done = stage_once(p, entry, &grid, x, chunks, to, staged[v]);
        if (done && !is_staged(values, chunks, staged[v]))
            done = figure_fail(p->figures, "the staged bytes are not x in 8 bits");
        done =
            done && time_staging(p, entry, NAME("stage_%s_%u", variants[v], k), &grid, x, chunks);
    }
    return done && (memcmp(staged[0], staged[1], (size_t)chunks * STEP_BYTES / STEP_CHUNKS) == 0 ||
                    figure_fail(p->figures, "variants stage different bytes"));
}

static void measure_stagings(probes *p)
{
    enum { MOST = MOST_CHUNKS * CHUNK };
    static float values[MOST];
    random_source r = { 1 };
    gpu_address x = 0, to = 0;
    for (size_t i = 0; i < MOST; i++)
        values[i] = random_normal(&r);
    bool ready = gpu_alloc(p->gpu, sizeof values, &x) &&
                 gpu_copy_in(p->gpu, x, values, sizeof values) &&
                 gpu_alloc(p->gpu, (size_t)MOST_STEPS * STEP_BYTES, &to);
    figure_check(p->figures, "stage_4096", ready && measure_staging(p, 8, x, values, to));
    figure_check(p->figures, "stage_14336",
                 ready && measure_staging(p, MOST_CHUNKS, x, values, to));
    gpu_free(p->gpu, x);
    gpu_free(p->gpu, to);
}

enum {
    ROW_BYTES = 136, /* 128 values of a Q8_0 cache */
    BLOCK_BYTES = 34,
    PATTERN_ROWS = 64,
    COPIES = 4, /* copies of the rows, so that the L2 holds none of the next copy */
};

static bool read_rows(probes *p, const char *entry, const char *name, gpu_address from,
                      uint32_t rows, uint32_t expected)
{
    const gpu_grid grid = { .blocks = { 2 * p->gpu->sm_count, 1, 1 }, .threads = 448 };
    gpu_address out = p->out, at = from;
    void *params[] = { &out, &at, &rows };
    uint32_t sum;
    double seconds;
    if (!gpu_fill(p->gpu, out, 0, sizeof sum) || !gpu_select(p->gpu, entry, 0) ||
        !gpu_launch(p->gpu, &grid, params) || !gpu_wait(p->gpu) ||
        !gpu_copy_out(p->gpu, &sum, out, sizeof sum))
        return false;
    if (sum != expected)
        return figure_fail(p->figures,
                           arena_format(p->gpu->arena, "sum %u, expected %u", sum, expected));
    bool done = gpu_begin_graph(p->gpu);
    for (unsigned c = 0; c < COPIES && done; c++) {
        at = from + (gpu_address)c * rows * ROW_BYTES;
        done = gpu_launch(p->gpu, &grid, params);
    }
    if (!done || !gpu_end_graph(p->gpu) || !figure_time(p->figures, &seconds))
        return false;
    figure_print(p->figures, name, (double)rows * ROW_BYTES * COPIES / seconds / 1e9, "GB/s");
    return true;
}

/* Reads K and V of 8 heads and 32k positions. */
static void measure_caches(probes *p)
{
    enum { BEHIND = 32 }; /* bytes that an aligned load may read after the last row */
    uint32_t rows = p->quick ? 1024 : 2 * 8 * 32768, expected = 0;
    size_t bytes = (size_t)rows * ROW_BYTES * COPIES;
    unsigned char pattern[PATTERN_ROWS * ROW_BYTES];
    random_source r = { 2 };
    gpu_address from = 0;
    for (size_t i = 0; i < sizeof pattern; i++)
        pattern[i] = (unsigned char)random_next(&r);
    for (size_t i = 0; i < sizeof pattern; i++) {
        size_t within = i % BLOCK_BYTES;
        int32_t quant = pattern[i] < 128 ? pattern[i] : pattern[i] - 256;
        expected += within < 2 ? (uint32_t)pattern[i] << 8 * within : (uint32_t)quant;
    }
    expected *= rows / PATTERN_ROWS;
    bool ready = gpu_alloc(p->gpu, bytes + BEHIND, &from) &&
                 gpu_fill(p->gpu, from, 0, bytes + BEHIND) &&
                 gpu_copy_in_repeated(p->gpu, from, bytes, pattern, sizeof pattern);
    figure_check(p->figures, "q8_words",
                 ready && read_rows(p, "read_q8_words", "q8_words", from, rows, expected));
    figure_check(p->figures, "q8_lines",
                 ready && read_rows(p, "read_q8_lines", "q8_lines", from, rows, expected));
    gpu_free(p->gpu, from);
}

static bool measure_launch(probes *p, const char *name, const char *kind, unsigned blocks,
                           unsigned threads)
{
    enum { MOST_THREADS = 1 << 17, BYTES = 16 };
    static unsigned char written[MOST_THREADS * BYTES], read[MOST_THREADS * BYTES];
    unsigned launches = p->quick ? 3 : 1000;
    size_t bytes = (size_t)blocks * threads * BYTES;
    const gpu_grid grid = { .blocks = { blocks, 1, 1 }, .threads = threads };
    gpu_address from = 0, to = 0;
    void *params[] = { &from, &to };
    double seconds;
    for (size_t i = 0; i < bytes; i++)
        written[i] = (unsigned char)(i * 7 >> 3);
    bool done = gpu_alloc(p->gpu, bytes, &from) && gpu_alloc(p->gpu, bytes, &to) &&
                gpu_copy_in(p->gpu, from, written, bytes) && gpu_fill(p->gpu, to, 0, bytes) &&
                figure_record(p->figures, kind, &grid, params, launches) &&
                figure_time(p->figures, &seconds) && gpu_copy_out(p->gpu, read, to, bytes);
    gpu_free(p->gpu, from);
    gpu_free(p->gpu, to);
    if (!done)
        return false;
    if (strcmp(kind, "touch") == 0 && memcmp(read, written, bytes) != 0)
        return figure_fail(p->figures, "the copy differs from its source");
    figure_print(p->figures, name, seconds / launches * 1e6, "us");
    return true;
}

/* Times launches of different shapes: 48 warps, as rope_kv_write has for Llama-3.1-8B, and one
 * block per SM of an H200. */
static void measure_launches(probes *p)
{
    static const unsigned shapes[][2] = {
        { 48, 32 }, { 12, 128 }, { 6, 256 }, { 132, 32 }, { 132, 256 }
    };
    static const char *const kinds[] = { "nothing", "touch" };
    for (size_t k = 0; k < 2; k++)
        for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
            const char *name = NAME("%s_%ux%u", kinds[k], shapes[i][0], shapes[i][1]);
            figure_check(p->figures, name,
                         measure_launch(p, name, kinds[k], shapes[i][0], shapes[i][1]));
        }
}

static void measure_rates(probes *p)
{
    probe_rates(p->figures);
}

static void measure_all(figures *f, void *context)
{
    static void (*const groups[])(probes * p) = { measure_stagings, measure_caches,
                                                  measure_launches, measure_fetches,
                                                  measure_rates };
    probes *p = context;
    p->gpu = &f->gpu;
    p->quick = f->quick;
    const char *kernels = read_beside(p->gpu, "probes.ptx");
    bool ready = kernels && gpu_alloc(p->gpu, LINE, &p->out) && gpu_load(p->gpu, kernels);
    figure_check(f, "probes.ptx", ready);
    for (size_t i = p->from; i < sizeof groups / sizeof *groups && ready; i++) {
        groups[i](p);
        if (!gpu_wait(p->gpu)) { /* the process cannot use the GPU any more */
            printf("passed %zu\n", f->passed);
            restart(p->argv, i + 1);
        }
    }
}

int main(int argc, char **argv)
{
    figures f = { .least_sm = 90 };
    probes p = { .figures = &f, .argv = argv };
    for (int i = 1; i < argc; i++)
        if (strcmp(argv[i], "--quick") == 0) {
            f.quick = true;
        } else if (strcmp(argv[i], "--from") == 0 && i + 1 < argc) {
            p.from = strtoull(argv[++i], NULL, 10);
            f.failed = 1;
        } else {
            fprintf(stderr, "usage: bench_probes [--quick]\n");
            return USAGE;
        }
    return figures_main(&f, "bench_probes", measure_all, &p);
}
