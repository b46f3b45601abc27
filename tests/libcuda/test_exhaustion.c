/* When the host is out of memory, calls of the emulated driver must return
 * CUDA_ERROR_OUT_OF_MEMORY, and the process and its objects must remain usable. This program's
 * allocator fails on request. A program with all kinds of calls runs once for each of its
 * allocations, which then fails; afterwards it must run successfully. The driver is opened with
 * dlopen, so that its thread-local data is allocated late. */
#define _DEFAULT_SOURCE
#include <dlfcn.h>
#include <malloc.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <threads.h>
#include <unistd.h>

#include "test.h"
#include "libcuda/api.h"
/* Replaces the allocator of all libraries in this process. */
void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *old, size_t size);
void __libc_free(void *block);

static struct {
    size_t calls, failing; /* number of the call that fails, from 1; 0 = none */
    bool from_there_on;    /* all later calls fail, too */
    size_t blocks;         /* blocks that are allocated now */
} allocator;

static bool fails(void)
{
    allocator.calls++;
    return allocator.failing && (allocator.from_there_on ? allocator.calls >= allocator.failing
                                                         : allocator.calls == allocator.failing);
}

static void *counted(void *block)
{
    allocator.blocks += block != NULL;
    return block;
}

void *malloc(size_t size)
{
    return fails() ? NULL : counted(__libc_malloc(size));
}

void *calloc(size_t count, size_t size)
{
    return fails() ? NULL : counted(__libc_calloc(count, size));
}

void *realloc(void *old, size_t size)
{
    void *block = fails() ? NULL : __libc_realloc(old, size);
    return old ? block : counted(block);
}

/* Overwrites freed blocks, so that reading them gives wrong results. */
void free(void *block)
{
    enum { MOST_SPOILED = 1 << 20 };
    size_t size = block ? malloc_usable_size(block) : 0;
    if (!block)
        return;
    allocator.blocks--;
    memset(block, 0xdd, size < MOST_SPOILED ? size : MOST_SPOILED);
    __libc_free(block);
}

/* Two kernels: add(p, value) adds value and step to the 32 numbers at p, through shared memory;
 * twice(p) doubles them. */
static const char TEXT[] = ".version 7.0\n.target sm_75\n.address_size 64\n"
                           ".visible .global .align 4 .u32 step[2] = {0, 0};\n"
                           ".visible .const .align 4 .u32 zero = 0;\n"
                           ".visible .entry add(.param .u64 p, .param .u32 value)\n"
                           ".reqntid 32, 1, 1\n"
                           "{\n"
                           "    .reg .b32 %r<7>; .reg .b64 %rd<3>;\n"
                           "    .shared .align 4 .b8 room[128];\n"
                           "    ld.param.u64 %rd1, [p];\n"
                           "    ld.param.u32 %r1, [value];\n"
                           "    mov.u32 %r2, %tid.x;\n"
                           "    mad.wide.u32 %rd2, %r2, 4, %rd1;\n"
                           "    ld.global.u32 %r3, [%rd2];\n"
                           "    add.u32 %r3, %r3, %r1;\n"
                           "    ld.global.u32 %r4, [step];\n"
                           "    add.u32 %r3, %r3, %r4;\n"
                           "    shl.b32 %r5, %r2, 2;\n"
                           "    mov.u32 %r6, room;\n"
                           "    add.u32 %r6, %r6, %r5;\n"
                           "    st.shared.u32 [%r6], %r3;\n"
                           "    bar.sync 0;\n"
                           "    ld.shared.u32 %r3, [%r6];\n"
                           "    st.global.u32 [%rd2], %r3;\n"
                           "    fence.acq_rel.gpu;\n"
                           "    ret;\n"
                           "}\n"
                           ".visible .entry twice(.param .u64 p)\n"
                           ".reqntid 32, 1, 1\n"
                           "{\n"
                           "    .reg .b32 %r<4>; .reg .b64 %rd<3>;\n"
                           "    ld.param.u64 %rd1, [p];\n"
                           "    mov.u32 %r1, %tid.x;\n"
                           "    mad.wide.u32 %rd2, %r1, 4, %rd1;\n"
                           "    ld.global.u32 %r2, [%rd2];\n"
                           "    add.u32 %r2, %r2, %r2;\n"
                           "    st.global.u32 [%rd2], %r2;\n"
                           "    ret;\n"
                           "}\n";

/* count(p) adds 1 to the 32 numbers at p after its predecessor launch has ended. */
static const char DEPENDENT[] = ".version 7.8\n.target sm_90\n.address_size 64\n"
                                ".visible .entry count(.param .u64 p)\n"
                                ".reqntid 32, 1, 1\n"
                                "{\n"
                                "    .reg .b32 %r<4>; .reg .b64 %rd<3>;\n"
                                "    griddepcontrol.launch_dependents;\n"
                                "    ld.param.u64 %rd1, [p];\n"
                                "    mov.u32 %r1, %tid.x;\n"
                                "    mad.wide.u32 %rd2, %r1, 4, %rd1;\n"
                                "    griddepcontrol.wait;\n"
                                "    ld.global.u32 %r2, [%rd2];\n"
                                "    add.u32 %r2, %r2, 1;\n"
                                "    st.global.u32 [%rd2], %r2;\n"
                                "    ret;\n"
                                "}\n";

enum { NUMBERS = 32, BYTES = 4 * NUMBERS, GRANULE = 2 << 20 };

/* The driver's functions. */
static struct {
#define ENTRY(name, version, since, enters, parameters, ...) \
    __typeof__(name##version) *name##version;
#include "libcuda/entry_points.def"
} cuda;

static bool open_functions(void)
{
    void *library = dlopen("libcuda.so.1", RTLD_NOW), *address;
    if (!library)
        return false;
#define ENTRY(name, version, since, enters, parameters, ...) \
    if (!(address = dlsym(library, #name #version)))         \
        return false;                                        \
    memcpy(&cuda.name##version, &address, sizeof address);
#include "libcuda/entry_points.def"
    return true;
}

static const char *file; /* contains TEXT */

/* Returns the call's error from the enclosing function, unless it is success. */
#define TRY(call)                  \
    do {                           \
        CUresult tried = (call);   \
        if (tried != CUDA_SUCCESS) \
            return tried;          \
    } while (0)

/* The objects of the program. */
typedef struct program {
    CUcontext context;
    CUmodule module;
    CUfunction add, twice;
    CUdeviceptr p;
    CUstream stream, other;
    CUevent event;
    CUgraph graph, built, updating;
    CUgraphExec exec;
    uint32_t host, expected;
    uint32_t registered[NUMBERS];
    void *page_locked;
    bool retained;
    CUlibrary library;
    CUlinkState linker;
    CUmemoryPool pool;
    CUmemGenericAllocationHandle memory;
    CUdeviceptr reserved;
    bool mapped;
} program;

static CUresult add(program *p, CUdeviceptr to, uint32_t value, CUstream stream)
{
    void *params[] = { &to, &value };
    return cuda.cuLaunchKernel(p->add, 1, 1, 1, NUMBERS, 1, 1, 0, stream, params, NULL);
}

static CUresult start(program *p)
{
    CUcontext primary;
    CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
    TRY(cuda.cuInit(0));
    TRY(cuda.cuCtxCreate_v4(&p->context, NULL, 0, 0));
    TRY(cuda.cuDevicePrimaryCtxRetain(&primary, 0));
    p->retained = true;
    TRY(cuda.cuThreadExchangeStreamCaptureMode(&mode));
    TRY(cuda.cuStreamCreate(&p->stream, CU_STREAM_NON_BLOCKING));
    TRY(cuda.cuStreamCreate(&p->other, CU_STREAM_NON_BLOCKING));
    return cuda.cuEventCreate(&p->event, 0);
}

static CUresult load(program *p)
{
    CUmodule from_file;
    CUfunction all[2];
    CUkernel kernel;
    CUdeviceptr step;
    TRY(cuda.cuModuleLoadData(&p->module, TEXT));
    TRY(cuda.cuModuleGetFunction(&p->add, p->module, "add"));
    TRY(cuda.cuModuleGetFunction(&p->twice, p->module, "twice"));
    TRY(cuda.cuModuleGetGlobal_v2(&step, NULL, p->module, "step"));
    TRY(cuda.cuMemsetD32_v2(step, 1, 1));
    TRY(cuda.cuModuleLoad(&from_file, file));
    TRY(cuda.cuModuleEnumerateFunctions(all, 2, from_file));
    TRY(cuda.cuModuleUnload(from_file));
    TRY(cuda.cuLibraryLoadData(&p->library, TEXT, NULL, NULL, 0, NULL, NULL, 0));
    return cuda.cuLibraryGetKernel(&kernel, p->library, "add");
}

static CUresult use_memory(program *p)
{
    CUdeviceptr pitched, mapped, half;
    size_t pitch;
    TRY(cuda.cuMemAlloc_v2(&p->p, BYTES));
    TRY(cuda.cuMemsetD32_v2(p->p, 0, NUMBERS));
    TRY(add(p, p->p, 4, NULL)); /* plus step */
    p->expected = 5;
    TRY(cuda.cuMemAllocPitch_v2(&pitched, &pitch, 8, 4, 4));
    TRY(cuda.cuMemFree_v2(pitched));
    TRY(cuda.cuMemAlloc_v2(&half, 2 * BYTES));
    TRY(cuda.cuMemcpyHtoD_v2(half, p->registered, BYTES));
    TRY(cuda.cuMemcpyDtoD_v2(half + BYTES / 2, half + BYTES, BYTES / 2)); /* uninitialized bytes */
    TRY(cuda.cuMemHostAlloc(&p->page_locked, BYTES, 0));
    TRY(cuda.cuMemHostGetDevicePointer_v2(&mapped, p->page_locked, 0));
    TRY(add(p, mapped, 1, NULL));
    TRY(cuda.cuMemHostRegister_v2(p->registered, BYTES, 0));
    TRY(cuda.cuMemHostGetDevicePointer_v2(&mapped, p->registered, 0));
    return add(p, mapped, 1, p->stream);
}

/* Links two images and loads the result. */
static CUresult link_images(program *p)
{
    static const char function[] = ".version 7.0\n.target sm_75\n.address_size 64\n"
                                   ".visible .func nothing()\n{\n    ret;\n}\n";
    CUmodule module;
    void *image;
    size_t size;
    TRY(cuda.cuLinkCreate_v2(0, NULL, NULL, &p->linker));
    TRY(cuda.cuLinkAddData_v2(p->linker, CU_JIT_INPUT_PTX, (void *)(uintptr_t)TEXT, sizeof TEXT,
                              "add", 0, NULL, NULL));
    TRY(cuda.cuLinkAddData_v2(p->linker, CU_JIT_INPUT_PTX, (void *)(uintptr_t)function,
                              sizeof function, "nothing", 0, NULL, NULL));
    TRY(cuda.cuLinkComplete(p->linker, &image, &size));
    TRY(cuda.cuModuleLoadData(&module, image));
    return cuda.cuModuleUnload(module);
}

static CUresult use_other_memory(program *p)
{
    static const CUmemPoolProps pool = { .allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                                         .location = { CU_MEM_LOCATION_TYPE_DEVICE, 0 } };
    static const CUmemAllocationProp on_device = { .type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                                   .location = { CU_MEM_LOCATION_TYPE_DEVICE, 0 } };
    static const CUmemAccessDesc access = { { CU_MEM_LOCATION_TYPE_DEVICE, 0 },
                                            CU_MEM_ACCESS_FLAGS_PROT_READWRITE };
    CUdeviceptr managed, pooled;
    uint32_t value = 1;
    TRY(cuda.cuMemAllocManaged(&managed, BYTES, CU_MEM_ATTACH_GLOBAL));
    TRY(add(p, managed, 1, NULL));
    TRY(cuda.cuMemPoolCreate(&p->pool, &pool));
    TRY(cuda.cuMemAllocFromPoolAsync(&pooled, BYTES, p->pool, p->stream));
    TRY(cuda.cuMemAddressReserve(&p->reserved, GRANULE, 0, 0, 0));
    TRY(cuda.cuMemCreate(&p->memory, GRANULE, &on_device, 0));
    TRY(cuda.cuMemMap(p->reserved, GRANULE, 0, p->memory, 0));
    p->mapped = true;
    TRY(cuda.cuMemSetAccess(p->reserved, GRANULE, &access, 1));
    return cuda.cuLaunchCooperativeKernel(p->add, 1, 1, 1, NUMBERS, 1, 1, 0, p->stream,
                                          (void *[]){ &p->reserved, &value });
}

static CUresult launch_with_buffer(program *p)
{
    struct {
        CUdeviceptr p;
        uint32_t value;
    } params = { p->p, 1 };
    size_t size = 12;
    void *extra[] = { CU_LAUNCH_PARAM_BUFFER_POINTER, &params, CU_LAUNCH_PARAM_BUFFER_SIZE, &size,
                      CU_LAUNCH_PARAM_END };
    TRY(cuda.cuLaunchKernel(p->add, 1, 1, 1, NUMBERS, 1, 1, 0, p->stream, NULL, extra));
    p->expected += 2;
    return CUDA_SUCCESS;
}

/* Runs overlapping launches in a stream and in a graph. */
static CUresult overlap(program *p)
{
    CUmodule module;
    CUfunction count;
    void *params[] = { &p->p };
    CUlaunchAttribute attribute = { .id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION,
                                    .value.programmaticStreamSerializationAllowed = 1 };
    CUlaunchConfig config = { .gridDimX = 1,
                              .gridDimY = 1,
                              .gridDimZ = 1,
                              .blockDimX = NUMBERS,
                              .blockDimY = 1,
                              .blockDimZ = 1,
                              .hStream = p->stream,
                              .attrs = &attribute,
                              .numAttrs = 1 };
    TRY(cuda.cuModuleLoadData(&module, DEPENDENT));
    TRY(cuda.cuModuleGetFunction(&count, module, "count"));
    for (int i = 0; i < 3; i++)
        TRY(cuda.cuLaunchKernelEx(&config, count, params, NULL));
    p->expected += 3;
    TRY(cuda.cuStreamBeginCapture_v2(p->stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
    CUresult first = cuda.cuLaunchKernelEx(&config, count, params, NULL);
    CUresult second = first ? first : cuda.cuLaunchKernelEx(&config, count, params, NULL);
    CUresult ended = cuda.cuStreamEndCapture(p->stream, &p->graph);
    TRY(second);
    TRY(ended);
    TRY(cuda.cuGraphInstantiateWithFlags(&p->exec, p->graph, 0));
    TRY(cuda.cuGraphLaunch(p->exec, p->stream));
    p->expected += 2;
    CUgraphExec exec = p->exec;
    CUgraph graph = p->graph;
    p->exec = NULL;
    p->graph = NULL;
    TRY(cuda.cuGraphExecDestroy(exec));
    return cuda.cuGraphDestroy(graph);
}

/* Enqueues work on two streams that fork and join. The caller ends the capture in any case. */
static CUresult enqueue(program *p)
{
    TRY(add(p, p->p, 1, p->stream));
    TRY(cuda.cuEventRecord(p->event, p->stream));
    TRY(cuda.cuStreamWaitEvent(p->other, p->event, 0));
    TRY(add(p, p->p, 2, p->other));
    TRY(cuda.cuEventRecord(p->event, p->other));
    TRY(add(p, p->p, 3, p->stream));
    return cuda.cuStreamWaitEvent(p->stream, p->event, 0);
}

static CUresult capture(program *p)
{
    TRY(cuda.cuStreamBeginCapture_v2(p->stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
    CUresult enqueued = enqueue(p), ended = cuda.cuStreamEndCapture(p->stream, &p->graph);
    TRY(enqueued);
    TRY(ended);
    TRY(cuda.cuGraphInstantiateWithFlags(&p->exec, p->graph, 0));
    TRY(cuda.cuGraphLaunch(p->exec, p->stream));
    p->expected += 1 + 2 + 3 + 3;
    return CUDA_SUCCESS;
}

static void count_call(void *data)
{
    ++*(uint32_t *)data;
}

/* Builds a graph by hand and updates its executable graph. */
static CUresult build(program *p)
{
    uint32_t value = 5;
    void *params[] = { &p->p, &value };
    CUDA_KERNEL_NODE_PARAMS node = { .func = p->add,
                                     .gridDimX = 1,
                                     .gridDimY = 1,
                                     .gridDimZ = 1,
                                     .blockDimX = NUMBERS,
                                     .blockDimY = 1,
                                     .blockDimZ = 1,
                                     .kernelParams = params };
    CUDA_MEMCPY3D copy = { .srcMemoryType = CU_MEMORYTYPE_DEVICE,
                           .srcDevice = p->p,
                           .dstMemoryType = CU_MEMORYTYPE_HOST,
                           .dstHost = p->registered,
                           .WidthInBytes = BYTES,
                           .Height = 1,
                           .Depth = 1 };
    CUDA_MEMSET_NODE_PARAMS set = {
        .dst = p->p, .value = 7, .elementSize = 4, .width = NUMBERS, .height = 1
    };
    CUDA_HOST_NODE_PARAMS call = { count_call, &p->host };
    CUgraphNode nodes[5];
    CUgraphExecUpdateResultInfo info;
    CUgraph second;
    TRY(cuda.cuGraphCreate(&p->built, 0));
    TRY(cuda.cuGraphAddMemsetNode(&nodes[0], p->built, NULL, 0, &set, p->context));
    TRY(cuda.cuGraphAddKernelNode_v2(&nodes[1], p->built, nodes, 1, &node));
    TRY(cuda.cuGraphAddMemcpyNode(&nodes[2], p->built, nodes, 2, &copy, p->context));
    TRY(cuda.cuGraphAddHostNode(&nodes[3], p->built, nodes, 1, &call));
    TRY(cuda.cuGraphAddEmptyNode(&nodes[4], p->built, NULL, 0));
    TRY(cuda.cuGraphAddDependencies(p->built, nodes, nodes + 4, 1));
    TRY(cuda.cuGraphKernelNodeSetParams_v2(nodes[1], &node));
    TRY(cuda.cuGraphClone(&second, p->built));
    TRY(cuda.cuGraphDestroy(second));
    cuda.cuGraphExecDestroy(p->exec);
    p->exec = NULL;
    TRY(cuda.cuGraphInstantiateWithFlags(&p->exec, p->built, 0));
    node.func = p->twice;
    TRY(cuda.cuGraphExecKernelNodeSetParams_v2(p->exec, nodes[1], &node));
    TRY(cuda.cuGraphLaunch(p->exec, NULL));
    p->expected = 14;
    TRY(cuda.cuGraphExecUpdate_v2(p->exec, p->built, &info));
    TRY(cuda.cuGraphLaunch(p->exec, NULL));
    p->expected = 13;
    return CUDA_SUCCESS;
}

static CUresult run(program *p)
{
    TRY(start(p));
    TRY(load(p));
    TRY(use_memory(p));
    TRY(link_images(p));
    TRY(use_other_memory(p));
    TRY(launch_with_buffer(p));
    TRY(overlap(p));
    TRY(capture(p));
    return build(p);
}

/* Returns true if the program's objects are usable after a failure. */
static bool works_on(program *p)
{
    if (!p->p || cuda.cuMemsetD32_v2(p->p, 0, NUMBERS) || cuda.cuMemcpyDtoD_v2(p->p, p->p, BYTES))
        return !p->p;
    return !p->add || add(p, p->p, 1, NULL) == CUDA_SUCCESS;
}

/* Destroys all of the program's objects. Returns true if each call succeeds and no device memory is
 * left. */
static bool end(program *p)
{
    size_t available, total;
    bool fine = !p->retained || cuda.cuDevicePrimaryCtxRelease_v2(0) == CUDA_SUCCESS;
    fine &= !p->exec || cuda.cuGraphExecDestroy(p->exec) == CUDA_SUCCESS;
    fine &= !p->graph || cuda.cuGraphDestroy(p->graph) == CUDA_SUCCESS;
    fine &= !p->built || cuda.cuGraphDestroy(p->built) == CUDA_SUCCESS;
    fine &= !p->linker || cuda.cuLinkDestroy(p->linker) == CUDA_SUCCESS;
    fine &= !p->context || cuda.cuCtxDestroy_v2(p->context) == CUDA_SUCCESS;
    fine &= !p->library || cuda.cuLibraryUnload(p->library) == CUDA_SUCCESS;
    fine &= !p->pool || cuda.cuMemPoolDestroy(p->pool) == CUDA_SUCCESS;
    fine &= !p->mapped || cuda.cuMemUnmap(p->reserved, GRANULE) == CUDA_SUCCESS;
    fine &= !p->memory || cuda.cuMemRelease(p->memory) == CUDA_SUCCESS;
    fine &= !p->reserved || cuda.cuMemAddressFree(p->reserved, GRANULE) == CUDA_SUCCESS;
    *p = (program){ 0 };
    fine &= cuda.cuInit(0) == CUDA_SUCCESS &&
            cuda.cuCtxCreate_v4(&p->context, NULL, 0, 0) == CUDA_SUCCESS &&
            cuda.cuMemGetInfo_v2(&available, &total) == CUDA_SUCCESS && available == total &&
            cuda.cuCtxDestroy_v2(p->context) == CUDA_SUCCESS;
    return fine;
}

static bool runs_to_the_end(void)
{
    program p = { 0 };
    uint32_t numbers[NUMBERS] = { 0 };
    bool right = run(&p) == CUDA_SUCCESS && p.host == 2 &&
                 cuda.cuMemcpyDtoH_v2(numbers, p.p, BYTES) == CUDA_SUCCESS;
    for (int i = 0; i < NUMBERS; i++)
        right &= numbers[i] == p.expected && p.registered[i] == p.expected;
    return end(&p) && right;
}

/* Exit statuses that have no other meaning. */
enum { FAILED_WELL = 50, HAS_ENDED, WENT_ON, SAYS_ELSE, CANNOT_END, KEEPS_MEMORY, CANNOT_GO_ON };

/* Runs the program with its n-th allocation failing, then once more without failures. */
static int try_at(size_t n, bool from_there_on)
{
    program p = { 0 };
    allocator.calls = 0;
    allocator.failing = n;
    allocator.from_there_on = from_there_on;
    CUresult result = run(&p);
    allocator.failing = 0;
    if (allocator.calls < n)
        return HAS_ENDED;
    return result == CUDA_SUCCESS               ? WENT_ON
           : result != CUDA_ERROR_OUT_OF_MEMORY ? SAYS_ELSE
           : !works_on(&p)                      ? CANNOT_GO_ON
           : !end(&p)                           ? CANNOT_END
           : !runs_to_the_end()                 ? CANNOT_GO_ON
                                                : FAILED_WELL;
}

/* Checks that a failed run leaves no more host memory allocated than a successful run. A successful
 * run leaves some, since the driver remembers each address and never reuses it. */
static int try_after_a_run(size_t n, bool from_there_on)
{
    bool ran = runs_to_the_end();
    size_t first = allocator.blocks;
    ran &= runs_to_the_end();
    size_t second = allocator.blocks;
    int status = ran ? try_at(n, from_there_on) : CANNOT_GO_ON;
    size_t of_a_run = second - first;
    return status == FAILED_WELL && allocator.blocks > second + 2 * of_a_run ? KEEPS_MEMORY
                                                                             : status;
}

static int status_of(int (*work)(size_t n, bool from_there_on), size_t n, bool from_there_on)
{
    int how;
    pid_t child = fork();
    if (child == 0)
        _exit(work(n, from_there_on));
    assert_int_equal(waitpid(child, &how, 0), child);
    if (!WIFEXITED(how))
        fail_msg("allocation %zu fails: the process is killed by signal %d", n, WTERMSIG(how));
    return WEXITSTATUS(how);
}

static const char *description_of(int status)
{
    static const char *const words[] = {
        [WENT_ON - FAILED_WELL] = "no call fails",
        [SAYS_ELSE - FAILED_WELL] = "a call returns another error",
        [CANNOT_END - FAILED_WELL] = "an object cannot be destroyed",
        [KEEPS_MEMORY - FAILED_WELL] = "host memory leaks",
        [CANNOT_GO_ON - FAILED_WELL] = "the driver is unusable",
    };
    return status >= WENT_ON && status <= CANNOT_GO_ON ? words[status - FAILED_WELL]
                                                       : "the process ends";
}

/* Runs `work` in a child process for each failing allocation: the first 20, then every step-th.
 * Outside the tier full, only a third of the latter run. */
static void fail_allocations(int (*work)(size_t n, bool from_there_on), size_t step,
                             bool from_there_on)
{
    enum { FIRST = 20, LEAST = 1000 };
    size_t n = 1;
    for (int status = FAILED_WELL; status != HAS_ENDED; n += n < FIRST ? 1 : step) {
        if (n > FIRST && !test_takes_row(n / step, THIRD))
            continue;
        status = status_of(work, n, from_there_on);
        if (status != FAILED_WELL && status != HAS_ENDED)
            fail_msg("allocation %zu fails: %s", n, description_of(status));
    }
    assert_in_range(n, LEAST, 100 * LEAST);
}

TEST(a_failed_allocation_fails_one_call)
{
    fail_allocations(try_after_a_run, 1, false);
}

TEST(without_memory_calls_fail_until_some_is_free)
{
    fail_allocations(try_at, 7, true);
}

static int try_in_a_thread(void *result)
{
    CUcontext context;
    allocator.calls = 0;
    allocator.failing = 1;
    allocator.from_there_on = true;
    *(CUresult *)result = cuda.cuCtxCreate_v4(&context, NULL, 0, 0);
    allocator.failing = 0;
    return 0;
}

TEST(a_thread_survives_a_first_call_without_memory)
{
    thrd_t thread;
    CUresult result = CUDA_SUCCESS;
    assert_int_equal(cuda.cuInit(0), CUDA_SUCCESS);
    assert_int_equal(thrd_create(&thread, try_in_a_thread, &result), thrd_success);
    thrd_join(thread, NULL);
    assert_int_equal(result, CUDA_ERROR_OUT_OF_MEMORY);
}

/* Limits the address space. First 8 GiB would fit, but not the driver's records of them; then
 * allocations continue until nothing fits. */
static int fill_address_space(size_t unused, bool unused_too)
{
    enum { MOST = 4096, PIECE = 4 << 20 };
    static CUdeviceptr pieces[MOST];
    const struct rlimit limit = { (rlim_t)17 << 29, (rlim_t)17 << 29 };
    program p = { 0 };
    CUdeviceptr large;
    size_t count = 0;
    (void)unused, (void)unused_too;
    if (start(&p) || load(&p) || setrlimit(RLIMIT_AS, &limit))
        return 1;
    if (cuda.cuMemAlloc_v2(&large, (size_t)8 << 30) != CUDA_ERROR_OUT_OF_MEMORY)
        return 2;
    if (use_memory(&p))
        return 4;
    while (count < MOST && cuda.cuMemAlloc_v2(&pieces[count], PIECE) == CUDA_SUCCESS)
        count++;
    if (count == MOST || count == 0)
        return 5;
    CUresult result = capture(&p);
    if (result && result != CUDA_ERROR_OUT_OF_MEMORY)
        return 6;
    while (count)
        if (cuda.cuMemFree_v2(pieces[--count]))
            return 7;
    return launch_with_buffer(&p) || !end(&p) || !runs_to_the_end() ? 8 : 0;
}

TEST(a_full_address_space_is_survived)
{
    assert_int_equal(status_of(fill_address_space, 0, false), 0);
}

static int open_driver(void **state)
{
    static char name[] = "/tmp/ptxgen.XXXXXX";
    int descriptor = mkstemp(name);
    (void)state;
    file = name;
    bool wrote = write(descriptor, TEXT, sizeof TEXT - 1) == sizeof TEXT - 1;
    return !wrote || close(descriptor) || !open_functions();
}

static int remove_file(void **state)
{
    (void)state;
    return unlink(file);
}

TEST(the_program_runs_with_memory)
{
    assert_int_equal(status_of(try_at, 0, false), WENT_ON);
    assert_true(runs_to_the_end());
}

TEST_FIXTURE(open_driver, remove_file)
