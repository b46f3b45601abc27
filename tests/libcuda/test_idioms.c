/* Idioms of GPU programs must run on the emulated driver. nvcc compiled them from
 * tests/nvcc/idioms.cu. Each kernel runs in a child process, which prints failures to standard
 * error. */
#define _POSIX_C_SOURCE 200809L

#include "libcuda/driver_sample.h"

/* Runs a kernel and prints the error code, if any, to standard error. */
static void run_kernel(const char *name, unsigned blocks, unsigned threads, void **params)
{
    CUresult r = launch(load_file("idioms.ptx", name), blocks, threads, params);
    r = r ? r : cuCtxSynchronize();
    if (r)
        fprintf(stderr, "ends with %d\n", (int)r);
}

static CUdeviceptr copy_of(const void *bytes, size_t size)
{
    CUdeviceptr p = allocated(size);
    assert_success(cuMemcpyHtoD_v2(p, bytes, size));
    return p;
}

static CUdeviceptr uninitialized(size_t size)
{
    CUdeviceptr p = allocated(size);
    return p;
}

static void expect(bool right)
{
    if (!right)
        fprintf(stderr, "a result is wrong\n");
}

static void keep_one(void)
{
    float from[8] = { 1, 2, 3, 4, 5, 6, 7, 8 }, to[32];
    CUdeviceptr p = copy_of(from, sizeof from), q = uninitialized(sizeof to);
    run_kernel("keep_one", 1, 32, (void *[]){ &q, &p });
    assert_success(cuMemcpyDtoH_v2(to, q, sizeof to));
    for (int i = 0; i < 32; i++)
        expect(to[i] == 32 * from[i % 8]);
}

static void sum_up_to(void)
{
    int values[70], total = 0, n = 70, sum = 0;
    for (int i = 0; i < n; i++)
        sum += values[i] = i;
    CUdeviceptr p = copy_of(values, sizeof values), q = copy_of(&total, sizeof total);
    run_kernel("sum_up_to", 2, 52, (void *[]){ &q, &p, &n });
    assert_success(cuMemcpyDtoH_v2(&total, q, sizeof total));
    expect(total == sum + 3); /* 3 warps have threads below n; all their values exceed 5 */
}

static void meet(void)
{
    int to[32];
    CUdeviceptr q = uninitialized(sizeof to);
    run_kernel("meet", 1, 32, (void *[]){ &q });
    assert_success(cuMemcpyDtoH_v2(to, q, sizeof to));
    for (int i = 0; i < 32; i++)
        expect(to[i] == (31 - i < 16 ? 31 - i : 2 * (31 - i)));
}

static void structs(void)
{
    double to[32];
    CUdeviceptr q = uninitialized(sizeof to);
    run_kernel("structs", 1, 32, (void *[]){ &q });
    assert_success(cuMemcpyDtoH_v2(to, q, sizeof to));
    for (int i = 0; i < 32; i++)
        expect(to[i] == (i % 2 ? i : -1));
}

static void pointers(void)
{
    float areas[32];
    int to[32];
    CUdeviceptr p = uninitialized(sizeof areas), q = uninitialized(sizeof to);
    size_t before = available();
    run_kernel("pointers", 1, 32, (void *[]){ &p, &q });
    assert_success(cuMemcpyDtoH_v2(areas, p, sizeof areas));
    assert_success(cuMemcpyDtoH_v2(to, q, sizeof to));
    for (int i = 0; i < 32; i++) {
        expect(areas[i] == (i % 2 ? (float)(i * i) : (float)(i * i) / 2));
        expect(to[i] == (i % 2 ? -i + 'y' : i + 1 + 'b'));
    }
    expect(available() == before);
}

static void (*quiet)(void);

static void be_strict(void)
{
    setenv("PTXGEN_CUDA_CHECKS", "all=fault", 1);
    make_context(NULL);
    quiet();
}

static void be_lenient(void)
{
    unsetenv("PTXGEN_CUDA_CHECKS");
    make_context(NULL);
    quiet();
}

static const char *report_with(void (*how)(void), void (*work)(void))
{
    quiet = work;
    return fresh_report_of(how);
}

TEST(correct_programs_run_with_all_checks)
{
    void (*const programs[])(void) = { keep_one, sum_up_to, meet, structs, pointers };
    for (size_t i = 0; i < sizeof programs / sizeof *programs; i++) {
        assert_string_equal(report_with(be_strict, programs[i]), "");
        assert_string_equal(report_with(be_lenient, programs[i]), "");
    }
}

static void reverse_up_to(void)
{
    int from[40], to[40] = { 0 }, n = 40;
    for (int i = 0; i < n; i++)
        from[i] = i;
    CUdeviceptr p = copy_of(from, sizeof from), q = uninitialized(sizeof to);
    run_kernel("reverse_up_to", 1, 64, (void *[]){ &q, &p, &n });
    if (cuMemcpyDtoH_v2(to, q, sizeof to) == CUDA_SUCCESS)
        for (int i = 0; i < n; i++)
            expect(to[i] == n - 1 - i);
}

TEST(a_barrier_after_a_return_is_a_warning)
{
    const char *text = report_with(be_lenient, reverse_up_to);
    assert_says(text, "warning: reverse_up_to: line ");
    assert_says(text, "this thread has ended and never reaches barrier 0");
    assert_null(strstr(text, "wrong"));
    assert_null(strstr(text, "ends with"));
    assert_says(report_with(be_strict, reverse_up_to), "ends with 719\n");
}

static void print(void)
{
    const char name[] = "a name";
    float x = 3.14159f;
    CUdeviceptr p = copy_of(name, sizeof name);
    dup2(STDERR_FILENO, STDOUT_FILENO);
    launch(load_file("idioms.ptx", "print"), 2, 32, (void *[]){ &p, &x });
    printf("launched\n");
    fflush(stdout);
    cuCtxSynchronize();
    printf("done\n");
}

TEST(kernel_output_appears_at_synchronization)
{
#define LINE(thread, block) \
#thread " of a name:  3.14|" #block "     |-5000000000|0xff|q|%|text|1.234e+03|0.1\n"
    assert_string_equal(report_with(be_lenient, print),
                        "launched\n" LINE(0, 0) LINE(1, 0) LINE(0, 1) LINE(1, 1) "done\n");
}

static void check(void)
{
    int limit = 46;
    run_kernel("check", 2, 16, (void *[]){ &limit });
    fprintf(stderr, "goes on with %d\n", (int)cuCtxSynchronize());
}

TEST(a_failed_assertion_is_reported_in_the_format_of_a_device)
{
    const char *text = report_with(be_lenient, check);
    assert_says(text, "idioms.cu:");
    assert_says(text,
                ": void check(int): block: [1,0,0], thread: [14,0,0] Assertion `(int)threadIdx.x "
                "+ 32 * (int)blockIdx.x < limit` failed.\n");
    assert_says(text, ": void check(int): block: [1,0,0], thread: [15,0,0] Assertion ");
    assert_null(strstr(text, "thread: [13,0,0]"));
    assert_says(text, "ends with 710\ngoes on with 710\n");
}

static void come_or_not(bool come)
{
    int value = 0;
    CUdeviceptr p = copy_of(&value, sizeof value);
    run_kernel("unusual", 1, 1, (void *[]){ &p, &come });
    if (!come)
        cuMemcpyDtoH_v2(&value, p, sizeof value);
    expect(value == !come);
}

static void stay_away(void)
{
    come_or_not(false);
}

static void come(void)
{
    come_or_not(true);
}

TEST(an_unknown_instruction_is_a_fault_when_it_is_reached)
{
    assert_string_equal(report_with(be_lenient, stay_away), "");
    const char *text = report_with(be_lenient, come);
    assert_says(text,
                "thread (0, 0, 0): unknown instruction 'tcgen05.fence::before_thread_sync'\n");
    assert_says(text, "tcgen05.fence::before_thread_sync;\n");
    assert_says(text, "ends with 715\n");
}
