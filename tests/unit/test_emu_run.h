/* Runs small PTX kernels on the emulator. */
#ifndef PTXGEN_TEST_EMU_RUN_H
#define PTXGEN_TEST_EMU_RUN_H

#include <stdio.h>
#include <string.h>

#include "test.h"
#include "emu/emu.h"

#define PTX_HEAD ".version 8.0\n.target sm_80\n.address_size 64\n"

/* A kernel k(out, in) around a body, which starts on line 14. %out and %in hold the addresses,
 * %slot the address of the thread's own 8 bytes of out, %t the thread's index. */
#define KERNEL(body)                                                                               \
    PTX_HEAD                                                                                       \
    ".visible .entry k(.param .u64 out, .param .u64 in)\n"                                         \
    "{\n"                                                                                          \
    ".reg .pred %p<10>; .reg .b16 %h<20>; .reg .b32 %r<40>; .reg .b64 %l<20>; .reg .f32 %f<20>;\n" \
    ".reg .f64 %d<10>; .reg .b64 %out, %in, %slot; .reg .b32 %t;\n"                                \
    "ld.param.u64 %out, [out];\n"                                                                  \
    "ld.param.u64 %in, [in];\n"                                                                    \
    "mov.u32 %t, %tid.x;\n"                                                                        \
    "mul.wide.u32 %slot, %t, 8;\n"                                                                 \
    "add.u64 %slot, %slot, %out;\n"                                                                \
    "\n" body "\nret;\n}\n"
enum { BODY_LINE = 14 };

/* Returns the text of a kernel around body. The text is valid until the next call. */
static inline const char *kernel_of(const char *body)
{
    static const char kernel[] = KERNEL("@@");
    static char text[4096];
    size_t head = (size_t)(strstr(kernel, "@@") - kernel);
    snprintf(text, sizeof text, "%.*s%s%s", (int)head, kernel, body, kernel + head + 2);
    return text;
}

enum { MAX_THREADS = 1024, SLOT_BYTES = MAX_THREADS * 8 };

typedef struct run {
    const char *text;
    unsigned threads; /* threads per block; 0 = 32 */
    unsigned blocks;  /* blocks; 0 = 1 */
    const void *in;
    size_t in_size;
    uint64_t limit;
    size_t dynamic_shared, stack_size;
    const emu_checks *checks;
    /* results */
    emu_report report;
    emu_stats stats;
    char message[256];
    uint64_t out[MAX_THREADS];
} run;

/* Runs a kernel made by KERNEL. All bits of out are set beforehand. */
static inline bool run_kernel(run *r)
{
    arena *a = arena_new();
    emu_memory *m = emu_memory_new(NULL);
    unsigned threads = r->threads ? r->threads : 32;
    memset(r->out, 0xff, sizeof r->out);
    uint64_t out = emu_map(m, r->out, SLOT_BYTES, false);
    uint64_t in = emu_map(m, (void *)(uintptr_t)r->in, r->in_size, true);
    const void *params[] = { &out, &in };
    emu_module *module = emu_load(a, r->text, strlen(r->text), &r->report);
    bool good = module != NULL;
    if (good) {
        emu_launch_config config = { .checks = r->checks,
                                     .module = module,
                                     .entry = "k",
                                     .grid = { r->blocks ? r->blocks : 1, 1, 1 },
                                     .block = { threads, 1, 1 },
                                     .dynamic_shared = r->dynamic_shared,
                                     .stack_size = r->stack_size,
                                     .params = params,
                                     .param_count = 2,
                                     .instruction_limit = r->limit };
        good = emu_launch(m, &config, &r->stats, &r->report);
    }
    snprintf(r->message, sizeof r->message, "%s", r->report.message);
    r->report.message = r->message;
    emu_memory_free(m);
    arena_free(a);
    return good;
}

static inline void expect_thread(const run *r, unsigned thread, uint64_t value)
{
    if (r->out[thread] != value)
        fail_msg("thread %u has %llu, expected %llu", thread, (unsigned long long)r->out[thread],
                 (unsigned long long)value);
}

/* Checks out of each thread t against value, an expression of t. */
#define expect_each(r, threads, value)       \
    for (unsigned t = 0; t < (threads); t++) \
    expect_thread(r, t, value)

/* Runs a kernel made by KERNEL and fails the test if it faults. */
static inline void run_well(run *r)
{
    if (!run_kernel(r))
        fail_msg("line %u, thread %u: %s", r->report.line, r->report.thread[0], r->message);
}

#endif
