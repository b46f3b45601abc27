/* Helpers for tests of the emulated driver: a context for each test, a module, memory, launches,
 * graphs, and the driver's messages, read from a child process. Needs POSIX.1-2008. */
#ifndef PTXGEN_TESTS_DRIVER_SAMPLE_H
#define PTXGEN_TESTS_DRIVER_SAMPLE_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "test.h"
#include "libcuda/api.h"

#define assert_success(call)      assert_int_equal(call, CUDA_SUCCESS)
#define assert_error(error, call) assert_int_equal(call, CUDA_ERROR_##error)

/* Defines a test with its own context. */
#define TEST_IN_CONTEXT(name) TEST_WITH(name, make_context, drop_context)

#define PTX_HEAD              ".version 6.3\n.target sm_75\n.address_size 64\n"

/* add(p, value) adds value to the 32 numbers at p. */
static const char ADD[] = PTX_HEAD ".visible .entry add(.param .u64 p, .param .u32 value)\n"
                                   ".reqntid 32, 1, 1\n"
                                   "{\n"
                                   "    .reg .b32 %r<4>; .reg .b64 %rd<3>;\n"
                                   "    ld.param.u64 %rd1, [p];\n"
                                   "    ld.param.u32 %r1, [value];\n"
                                   "    mov.u32 %r2, %tid.x;\n"
                                   "    mad.wide.u32 %rd2, %r2, 4, %rd1;\n"
                                   "    ld.global.u32 %r3, [%rd2];\n"
                                   "    add.u32 %r3, %r3, %r1;\n"
                                   "    st.global.u32 [%rd2], %r3;\n"
                                   "    ret;\n"
                                   "}\n";

enum { NUMBERS = 32 };

static CUcontext context;

static inline int make_context(void **state)
{
    (void)state;
    return cuInit(0) || cuCtxCreate_v4(&context, NULL, 0, 0);
}

static inline int drop_context(void **state)
{
    (void)state;
    return (int)cuCtxDestroy_v2(context);
}

static inline CUfunction load(const char *ptx, const char *name)
{
    CUmodule module;
    CUfunction function;
    assert_success(cuModuleLoadData(&module, ptx));
    assert_success(cuModuleGetFunction(&function, module, name));
    return function;
}

/* Returns the path of a file made by nvcc. It is valid until the next call. */
static inline const char *nvcc_path(const char *file)
{
    static char path[4096];
    assert_non_null(getenv("PTXGEN_NVCC_DATA"));
    snprintf(path, sizeof path, "%s/%s", getenv("PTXGEN_NVCC_DATA"), file);
    return path;
}

static inline CUfunction load_file(const char *file, const char *name)
{
    CUmodule module;
    CUfunction function;
    assert_success(cuModuleLoad(&module, nvcc_path(file)));
    assert_success(cuModuleGetFunction(&function, module, name));
    return function;
}

static inline CUdeviceptr allocated(size_t bytes)
{
    CUdeviceptr p;
    assert_success(cuMemAlloc_v2(&p, bytes));
    return p;
}

/* Returns device memory with count copies of a value. */
static inline CUdeviceptr filled(size_t count, uint32_t value)
{
    CUdeviceptr p = allocated(count * sizeof value);
    assert_success(cuMemsetD32_v2(p, value, count));
    return p;
}

static inline CUdeviceptr zeros(void)
{
    return filled(NUMBERS, 0);
}

static inline uint32_t number(CUdeviceptr p, size_t index)
{
    uint32_t value;
    assert_success(cuMemcpyDtoH_v2(&value, p + index * sizeof value, sizeof value));
    return value;
}

/* Returns the bytes of device memory that are free. */
static inline size_t available(void)
{
    size_t bytes, total;
    assert_success(cuMemGetInfo_v2(&bytes, &total));
    return bytes;
}

static inline int function_attribute(CUfunction f, CUfunction_attribute which)
{
    int value = -1;
    assert_success(cuFuncGetAttribute(&value, which, f));
    return value;
}

static inline CUresult launch(CUfunction function, unsigned blocks, unsigned threads, void **params)
{
    return cuLaunchKernel(function, blocks, 1, 1, threads, 1, 1, 0, NULL, params, NULL);
}

static inline CUresult add(CUfunction function, CUstream stream, CUdeviceptr p, uint32_t value)
{
    void *params[] = { &p, &value };
    return cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, stream, params, NULL);
}

/* Launches with cuLaunchKernelEx and one attribute, or none if it is NULL. */
static inline CUresult launch_with(CUlaunchAttribute *attribute, CUfunction function,
                                   unsigned blocks, unsigned threads, CUstream stream,
                                   void **params)
{
    return cuLaunchKernelEx(&(CUlaunchConfig){ .gridDimX = blocks,
                                               .gridDimY = 1,
                                               .gridDimZ = 1,
                                               .blockDimX = threads,
                                               .blockDimY = 1,
                                               .blockDimZ = 1,
                                               .hStream = stream,
                                               .attrs = attribute,
                                               .numAttrs = attribute != NULL },
                            function, params, NULL);
}

static inline CUDA_KERNEL_NODE_PARAMS node_params(CUfunction function, unsigned blocks,
                                                  unsigned threads, void **params)
{
    return (CUDA_KERNEL_NODE_PARAMS){ .func = function,
                                      .gridDimX = blocks,
                                      .gridDimY = 1,
                                      .gridDimZ = 1,
                                      .blockDimX = threads,
                                      .blockDimY = 1,
                                      .blockDimZ = 1,
                                      .kernelParams = params };
}

static inline CUstream new_stream(void)
{
    CUstream stream;
    assert_success(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    return stream;
}

static inline CUevent new_event(unsigned flags)
{
    CUevent event;
    assert_success(cuEventCreate(&event, flags));
    return event;
}

static inline CUgraph new_graph(void)
{
    CUgraph graph;
    assert_success(cuGraphCreate(&graph, 0));
    return graph;
}

static inline void begin_capture(CUstream stream)
{
    assert_success(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
}

static inline CUgraph end_capture(CUstream stream)
{
    CUgraph graph;
    assert_success(cuStreamEndCapture(stream, &graph));
    return graph;
}

static inline CUgraphExec instantiate(CUgraph graph)
{
    CUgraphExec exec;
    assert_success(cuGraphInstantiateWithFlags(&exec, graph, 0));
    return exec;
}

/* The objects of a test of graphs: a kernel node that adds value to zeros at p, two streams, and a
 * graph. */
typedef struct graph_sample {
    CUfunction add;
    CUdeviceptr p;
    uint32_t value;
    void *params[2];
    CUDA_KERNEL_NODE_PARAMS kernel;
    CUstream stream, other;
    CUgraph graph;
} graph_sample;
static graph_sample sample;

static inline int make_graph_sample(void **state)
{
    if (make_context(state))
        return 1;
    sample = (graph_sample){ .add = load(ADD, "add"),
                             .p = zeros(),
                             .value = 5,
                             .params = { &sample.p, &sample.value },
                             .stream = new_stream(),
                             .other = new_stream(),
                             .graph = new_graph() };
    sample.kernel = node_params(sample.add, 1, NUMBERS, sample.params);
    return 0;
}

#define TEST_OF_GRAPHS(name) TEST_WITH(name, make_graph_sample, drop_context)

/* Runs work in a child process that has not used the driver. Returns its standard error. */
static inline const char *fresh_report_of(void (*work)(void))
{
    static char text[1 << 16];
    int ends[2];
    size_t length = 0;
    ssize_t got;
    assert_int_equal(pipe(ends), 0);
    pid_t child = fork();
    if (child == 0) {
        dup2(ends[1], STDERR_FILENO);
        close(ends[0]);
        close(ends[1]);
        work();
        exit(0);
    }
    close(ends[1]);
    while ((got = read(ends[0], text + length, sizeof text - 1 - length)) > 0)
        length += (size_t)got;
    text[length] = '\0';
    close(ends[0]);
    waitpid(child, NULL, 0);
    return text;
}

static void (*work_in_context)(void);

static inline void do_in_context(void)
{
    make_context(NULL);
    work_in_context();
}

/* Runs work in a child process with a context. Returns its standard error. */
static inline const char *report_of(void (*work)(void))
{
    work_in_context = work;
    return fresh_report_of(do_in_context);
}

/* Returns the number of occurrences of a part in a text. */
static inline size_t occurrences(const char *text, const char *part)
{
    size_t found = 0;
    for (; (text = strstr(text, part)); text++)
        found++;
    return found;
}

static inline void assert_says(const char *text, const char *part)
{
    if (!strstr(text, part))
        fail_msg("'%s' is not in: %s", part, text);
}

#endif
