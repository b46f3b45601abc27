/* PTXGEN_CUDA_THREADS runs launches on several host threads. Results and messages must be those of
 * one thread. */
#define _POSIX_C_SOURCE 200809L
#include "libcuda/driver_sample.h"

enum { BLOCKS = 96, THREADS = 64, COUNT = BLOCKS * THREADS, ROOM = COUNT + 4096 };

/* A kernel that first loops for a while. Its body may use %p0 to %p9, %r0 to %r9 and %l0 to %l9.
 * %mine is the address of the thread's number; %b and %t are its block and its index there. */
typedef struct busy_kernel {
    const char *name, *body;
} busy_kernel;

static const busy_kernel kernels[] = {
    { "adds", "ld.global.u32 %r1, [%mine];\n"
              "mad.lo.u32 %r1, %r1, 3, %g;\n"
              "st.global.u32 [%mine], %r1;" },
    { "races", "st.global.u32 [%mine], %g;\n"
               "rem.u32 %r1, %b, 7;\nsetp.ne.u32 %p1, %r1, 3;\n@%p1 ret;\n"
               "ld.global.u32 %r1, [%out+5120];\n"
               "st.global.u32 [%mine], %r1;\nst.global.u32 [%out+16], %r1;" },
    { "races_once", "st.global.u32 [%mine], %g;\n"
                    "setp.ne.u32 %p1, %b, 70;\n@%p1 ret;\n"
                    "ld.global.u32 %r1, [%out+5120];" },
    { "reads_unwritten", "ld.global.u32 %r1, [%mine];\n"
                         "add.u32 %r1, %r1, %r2;\n"
                         "st.global.u32 [%mine], %r1;" },
    { "reaches_too_far", "st.global.u32 [%mine], %g;\n"
                         "setp.ne.u32 %p1, %g, 4500;\n@%p1 ret;\n"
                         "st.global.u32 [%out+-4], %g;" },
    { "prints", "setp.ne.u32 %p1, %t, 0;\n@%p1 ret;\nst.local.u32 [a], %b;\n"
                "{ .param .b64 p; .param .b64 q; .param .b32 r; mov.u64 %l1, format;\n"
                "mov.u64 %l2, a; cvta.local.u64 %l2, %l2; st.param.b64 [p], %l1;\n"
                "st.param.b64 [q], %l2; call.uni (r), vprintf, (p, q); }" },
    { "takes_tickets", "atom.global.add.u32 %r1, [%out], 1;\n"
                       "add.u32 %r1, %r1, %r1;\n"
                       "st.global.u32 [%mine+4096], %r1;" },
};

static CUfunction load_kernel(const char *name)
{
    static char text[2000];
    const busy_kernel *k = kernels;
    while (strcmp(k->name, name) != 0)
        k++;
    snprintf(text, sizeof text,
             PTX_HEAD
             ".extern .func (.param .b32 r) vprintf (.param .b64 f, .param .b64 a);\n"
             ".global .align 1 .b8 format[10] = {98, 108, 111, 99, 107, 32, 37, 117, 10, 0};\n"
             ".visible .entry %s(.param .u64 p)\n{\n"
             ".reg .pred %%p<10>; .reg .b32 %%r<10>, %%b, %%t, %%g;\n"
             ".reg .b64 %%l<10>, %%out, %%mine;\n.local .align 4 .b32 a[1];\n"
             "ld.param.u64 %%out, [p];\nmov.u32 %%t, %%tid.x;\nmov.u32 %%b, %%ctaid.x;\n"
             "mad.lo.u32 %%g, %%b, 64, %%t;\nmad.wide.u32 %%mine, %%g, 4, %%out;\n"
             "mov.u32 %%r0, 0;\n$busy: add.u32 %%r0, %%r0, 1;\nsetp.lt.u32 %%p9, %%r0, 1000;\n"
             "@%%p9 bra $busy;\n%s\nret;\n}\n",
             k->name, k->body);
    return load(text, name);
}

/* Prints a checksum of the numbers that depends on their places. */
static void print_sum(CUdeviceptr p)
{
    static uint32_t numbers[ROOM];
    uint64_t sum = 0;
    CUresult r = cuMemcpyDtoH_v2(numbers, p, sizeof numbers);
    for (unsigned i = 0; i < ROOM; i++)
        sum = sum * 31 + numbers[i];
    fprintf(stderr, "code %d, sum %llu\n", (int)r, (unsigned long long)sum);
}

static void run(const char *name, bool zeroed)
{
    CUdeviceptr p = allocated(ROOM * sizeof(uint32_t));
    if (zeroed)
        assert_success(cuMemsetD32_v2(p, 0, ROOM));
    CUresult r = launch(load_kernel(name), BLOCKS, THREADS, (void *[]){ &p });
    fprintf(stderr, "%s: %d\n", name, (int)r);
    print_sum(p);
    fflush(stdout);
}

static void run_cooperatively(void)
{
    CUdeviceptr sums = filled(ROOM, 0), values = filled(ROOM, 0);
    CUfunction f = load_file("grid.ptx", "sum_twice");
    assert_success(cuLaunchCooperativeKernel(f, 8, 1, 1, THREADS, 1, 1, 0, NULL,
                                             (void *[]){ &sums, &values }));
    print_sum(sums);
}

/* Runs all kernels. The last one makes the context unusable. */
static void run_all(void)
{
    setenv("PTXGEN_CUDA_CHECKS", "all=warn", 1);
    dup2(STDERR_FILENO, STDOUT_FILENO);
    run("adds", true);
    run("races", true);
    run("reads_unwritten", false);
    run("prints", true);
    run("takes_tickets", true);
    run_cooperatively();
    run("reaches_too_far", true);
}

static void run_strictly(void)
{
    setenv("PTXGEN_CUDA_CHECKS", "all=fault", 1);
    run("races_once", true);
}

static const char *report_on(const char *threads, void (*work)(void))
{
    setenv("PTXGEN_CUDA_THREADS", threads, 1);
    const char *text = report_of(work);
    unsetenv("PTXGEN_CUDA_THREADS");
    return text;
}

static void check_same(void (*work)(void), const char *const *parts)
{
    static const char *const counts[] = { "2", "3", "8" };
    static char one[1 << 16];
    snprintf(one, sizeof one, "%s", report_on("1", work));
    for (; *parts; parts++)
        assert_says(one, *parts);
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++)
        assert_string_equal(report_on(counts[i], work), one);
}

TEST(results_do_not_depend_on_the_number_of_threads)
{
    check_same(run_all, (const char *const[]){
                            "adds: 0\n",
                            "warning: races: line",
                            "race: block (24, 0, 0) reads bytes that block (20, 0, 0) stored",
                            "warning: reads_unwritten: line",
                            "block 94\nblock 95\n",
                            "reaches_too_far: 700\n",
                            "block (70, 0, 0), thread (20, 0, 0): out of bounds",
                            NULL,
                        });
}

TEST(a_race_stops_the_same_block_on_any_number_of_threads)
{
    check_same(run_strictly,
               (const char *const[]){ "race: block (70, 0, 0) reads bytes that block (20", NULL });
}

static void launch_once(void)
{
    add(load(ADD, "add"), NULL, zeros(), 1);
}

TEST(a_wrong_number_of_threads_is_reported)
{
    static const char *const wrong[] = { "0", "-1", "65", "2x", "many" };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        char expected[120];
        snprintf(expected, sizeof expected,
                 "ptxgen libcuda: PTXGEN_CUDA_THREADS: '%s' is not a number from 1 to 64; using "
                 "one per CPU\n",
                 wrong[i]);
        assert_string_equal(report_on(wrong[i], launch_once), expected);
    }
    assert_string_equal(report_on("64", launch_once), "");
}
