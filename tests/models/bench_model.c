/* Times a model through its generated header, on the file that llama.cpp is timed on.
 *
 *     bench_model [--quick] MODEL.gguf
 *
 * The program is compiled with the header of one model. Like llama_speed, it includes the host's
 * work in the time:
 *
 *     ours_tg128     generates 128 tokens one by one; the host reads each before the next step
 *     ours_rows8     decodes 8 tokens of one sequence per step, and waits for each step
 *     ours_pp512     decodes a prompt of 512 tokens
 *     ours_pp2048    decodes a prompt of 2,048 tokens
 *     ours_create    loads all kernels and allocates memory, in seconds
 *     ours_load      copies the weights, in seconds
 *
 * A figure is the median of three runs, after a run that is not timed. A line "# ours_tg128 tokens
 * ..." has the tokens, generated from token 1. --quick: few tokens, one timed run.
 *
 * Exit status: 0 success; 1 an error; 77 there is no GPU. */
#define _POSIX_C_SOURCE 200809L
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <time.h>

#define PROGRAM "bench_model"
#include "loaded_model.h"

enum { SKIPPED = 77, MOST = 2048, RUNS = 3, FIRST_TOKEN = 1, ROWS = 8, ROW_STEPS = 16 };

typedef struct bench {
    model_decoder model;
    CUstream stream;
    CUgraphExec step; /* graph of a step of one token */
    uint32_t tokens[MOST];
    bool quick;
} bench;

static double seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void say(const char *name, double value, const char *unit)
{
    printf("%s %.6g %s\n", name, value, unit);
    fflush(stdout);
}

/* Empties the sequence and runs a step with the first token. */
static void begin(bench *b)
{
    const uint32_t first = FIRST_TOKEN;
    check("seek", model_seek(&b->model, b->stream, 0));
    check("first token", model_prompt(&b->model, b->stream, &first, 1));
    check("wait", cuStreamSynchronize(b->stream));
}

/* Returns the seconds to generate tokens one by one. */
static double generate(bench *b, size_t count)
{
    begin(b);
    double start = seconds();
    for (size_t i = 0; i < count; i++) {
        check("token", model_token(&b->model, b->stream, &b->tokens[i]));
        check("launch", cuGraphLaunch(b->step, b->stream));
    }
    check("wait", cuStreamSynchronize(b->stream));
    return seconds() - start;
}

static double decode_rows(bench *b, size_t count)
{
    begin(b);
    double start = seconds();
    for (size_t i = 0; i < count; i += ROWS) {
        check("rows", model_prompt(&b->model, b->stream, b->tokens + i, ROWS));
        check("wait", cuStreamSynchronize(b->stream));
    }
    return seconds() - start;
}

static double decode_prompt(bench *b, size_t count)
{
    check("seek", model_seek(&b->model, b->stream, 0));
    check("wait", cuStreamSynchronize(b->stream));
    double start = seconds();
    check("prompt", model_prompt(&b->model, b->stream, b->tokens, count));
    check("wait", cuStreamSynchronize(b->stream));
    return seconds() - start;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void measure(bench *b, const char *name, double (*run)(bench *, size_t), size_t count)
{
    double times[RUNS];
    size_t runs = b->quick ? 1 : RUNS;
    run(b, count);
    for (size_t i = 0; i < runs; i++)
        times[i] = run(b, count);
    qsort(times, runs, sizeof *times, by_value);
    say(name, (double)count / times[runs / 2], "tokens/s");
}

static void measure_all(bench *b)
{
    size_t generated = b->quick ? 4 : 128;
    measure(b, "ours_tg128", generate, generated);
    printf("# ours_tg128 tokens %d", FIRST_TOKEN);
    for (size_t i = 0; i + 1 < generated; i++)
        printf(" %u", b->tokens[i]);
    printf("\n");
    for (uint32_t i = 0, random = 1; i < MOST; i++, random = random * 1664525 + 1013904223)
        b->tokens[i] = (random >> 8) % (uint32_t)model_plan.vocab;
    measure(b, "ours_rows8", decode_rows, b->quick ? ROWS : ROWS * ROW_STEPS);
    measure(b, "ours_pp512", decode_prompt, b->quick ? 24 : 512);
    if (!b->quick && model_plan.max_seq_len >= MOST)
        measure(b, "ours_pp2048", decode_prompt, MOST);
}

int main(int argc, char **argv)
{
    static bench b;
    static model_cuda cuda;
    b.quick = argc > 1 && strcmp(argv[1], "--quick") == 0;
    if (argc != 2 + b.quick) {
        fprintf(stderr, "usage: bench_model [--quick] MODEL.gguf\n");
        return 2;
    }
    if (!open_device(&cuda)) {
        fprintf(stderr, "bench_model: no GPU\n");
        return SKIPPED;
    }
    check("stream", cuStreamCreate(&b.stream, 0));
    double start = seconds();
    check("create", model_create(&b.model, &cuda, NULL));
    say("ours_create", seconds() - start, "s");
    start = seconds();
    load_weights(&b.model, argv[argc - 1]);
    say("ours_load", seconds() - start, "s");
    b.step = record_step(&b.model, b.stream);
    measure_all(&b);
    check("destroy", model_destroy(&b.model));
    return 0;
}
