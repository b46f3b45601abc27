#define _POSIX_C_SOURCE 200809L
#include "bench/gpu/device.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/hash.h"
#include "base/os.h"
#include "cost/measured.h"
#include "kernel/generate.h"
#include "model/storey.h"
#include "input/spec.h"

const effort thorough_effort = {
    .batches = 31,
    .most_copies = 512,
    .most_launches = 1024,
    .batch_seconds = 1e-3,
    .copy_bytes = (size_t)1 << 30,
};
const effort brief_effort = {
    .batches = 9,
    .most_copies = 512,
    .most_launches = 1024,
    .batch_seconds = 5e-4,
    .copy_bytes = (size_t)1 << 30,
};
const effort quick_effort = {
    .batches = 1,
    .most_copies = 2,
    .most_launches = 1,
    .batch_seconds = 0,
    .copy_bytes = (size_t)1 << 20,
};

/* Returns the newest target that the device runs, or NULL. */
static const target *target_of(unsigned sm)
{
    const target *found = NULL;
    for (size_t i = 0; i < target_count; i++)
        if (targets[i].sm <= sm)
            found = &targets[i];
    return found;
}

bool measure_device(gpu *g, const effort *e, cost_gpu *measured)
{
    const target *t = target_of(g->sm);
    double copy = 0;
    *measured = t ? cost_gpu_of(t) : (cost_gpu){ 0 };
    measured->sm_count = g->sm_count;
    measured->clock = g->clock;
    if (!t)
        fprintf(stderr, "bench: no target is as old as sm_%u\n", g->sm);
    else if (!time_copy(g, e, &copy))
        fprintf(stderr, "bench: copy: %s\n", g->error);
    else
        measured->bandwidth = copy * COST_READ_OF_COPY;
    return copy > 0;
}

double device_copy(const cost_gpu *measured)
{
    return measured->bandwidth / COST_READ_OF_COPY;
}

static void print_problems(arena *a, const diags *d)
{
    strbuf message = strbuf_new(a);
    diags_render(d, &message, false);
    fputs(message.text, stderr);
}

bool read_spec(arena *a, const char *path, const char *for_targets, spec *s)
{
    diags d = diags_new(a);
    char *text;
    size_t size;
    const char *error;
    spec_overrides overrides = { .targets = for_targets };
    if (!os_read_file(a, path, &text, &size, &error)) {
        fprintf(stderr, "bench: %s: %s\n", path, error);
        return false;
    }
    if (spec_parse(a, path, text, size, families_and_pipelines(a), &model_storey, &overrides, s,
                   &d))
        return true;
    print_problems(a, &d);
    return false;
}

bool generate_set(arena *a, const spec *s, kernel_set *set)
{
    diags d = diags_new(a);
    if (generate_kernels(a, s, set, &d))
        return true;
    print_problems(a, &d);
    return false;
}

const char *read_beside(gpu *g, const char *name)
{
    char program[4096], *text;
    const char *error;
    size_t size;
    ssize_t length = readlink("/proc/self/exe", program, sizeof program);
    int folder = (int)(length > 0 ? length : 0);
    while (folder && program[folder - 1] != '/')
        folder--;
    const char *path = arena_format(g->arena, "%.*s%s", folder, program, name);
    if (os_read_file(g->arena, path, &text, &size, &error))
        return text;
    g->error = arena_format(g->arena, "%s: %s", path, error);
    return NULL;
}

void print_device(const gpu *g, const cost_gpu *c)
{
    printf("# DEVICE: %s, driver for CUDA %d.%d, %u SMs, %.0f MHz, L2 %.0f MB\n", g->name,
           g->driver_version / 1000, g->driver_version % 1000 / 10, g->sm_count, g->clock / 1e6,
           (double)g->l2_bytes / 1e6);
    if (strstr(g->name, "emulator"))
        printf("# The device is an emulator: results are checked, times mean nothing.\n");
    if (c)
        printf("# A copy on the device reads and writes %.1f GB/s.\n", device_copy(c) / 1e9);
    fflush(stdout);
}

struct compiling {
    gpu gpu;
    arena *arena;
    name_map seen; /* checksums of kernels */
    unsigned job, jobs;
};

void compile_kernel(compiling *c, const kernel *k)
{
    gpu_kernel kept = { 0 };
    const char *text = fnv1a64_text(c->arena, fnv1a64(k->ptx, k->ptx_length));
    size_t number = c->seen.count;
    bool is_new = name_map_find_or_add(c->arena, &c->seen, text, number) == number;
    if (is_new && number % c->jobs == c->job &&
        gpu_keep(&c->gpu, k->ptx, k->instance->name, 0, &kept))
        gpu_drop(&c->gpu, &kept);
}

void compile_in_parallel(unsigned jobs, compile_offer *offer, void *context)
{
    enum { MOST = 64 };
    jobs = jobs < MOST ? jobs : MOST;
    fflush(NULL);
    for (unsigned i = 0; i < jobs && jobs > 1; i++) {
        pid_t child = fork();
        if (child == 0) {
            int nowhere = open("/dev/null", O_WRONLY);
            dup2(nowhere, STDOUT_FILENO);
            dup2(nowhere, STDERR_FILENO);
            compiling c = { .arena = arena_new(), .job = i, .jobs = jobs };
            if (gpu_open(c.arena, &c.gpu) && target_of(c.gpu.sm)) {
                offer(&c, target_of(c.gpu.sm), context);
                gpu_close(&c.gpu);
            }
            _exit(0);
        }
    }
    while (wait(NULL) > 0)
        ;
}

void restart(char **argv, size_t from)
{
    size_t count = 0, kept = 3;
    while (argv[count])
        count++;
    char number[24], **again = calloc(count + kept, sizeof *again);
    if (!again)
        return;
    snprintf(number, sizeof number, "%zu", from);
    again[0] = argv[0];
    again[1] = (char *)"--from";
    again[2] = number;
    for (size_t i = 1; i < count; i++)
        if (strcmp(argv[i], "--from") == 0)
            i++; /* added by an earlier restart */
        else
            again[kept++] = argv[i];
    fflush(NULL);
    execv("/proc/self/exe", again);
    perror("bench: /proc/self/exe");
    free(again);
}

const char *cell_text(arena *a, const char *text)
{
    char *cell = arena_strdup(a, text);
    for (char *c = cell; *c; c++)
        *c = *c == '\n' ? ' ' : *c == '|' ? '/' : *c;
    return cell;
}

const char *model_name(arena *a, const char *path)
{
    const char *slash = strrchr(path, '/');
    char *name = arena_strdup(a, slash ? slash + 1 : path), *end = strrchr(name, '.');
    if (end)
        *end = '\0';
    return name;
}
