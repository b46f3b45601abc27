/* Any bytes as calls of the emulated driver: live, freed and foreign handles, addresses, sizes and
 * flags in any order. Each call must return a result code with a name. At the end nothing may be
 * left.
 *
 * The caller's duties are kept: pointers to the caller's own memory are valid. A byte selects a
 * call, and the following bytes its arguments. */
#include <assert.h>
#include <stdbool.h>
#include <string.h>

#include "libcuda/driver.h"
#include "tests/fuzz/fuzz.h"

enum {
    HOST_BYTES = 1 << 16,
    MOST_CALLS = 200,
    MOST_MADE = 2 * MOST_CALLS,
    NAMED = 6,
    MOST_INNER = 6,
    LISTED = 8
};

typedef enum kind {
    CONTEXT,
    MODULE,
    FUNCTION,
    STREAM,
    EVENT,
    GRAPH,
    NODE,
    EXEC,
    LIBRARY,
    LINKER,
    POOL,
    MEMORY,
    KINDS,
} kind;

/* All created handles, including destroyed handles. Calls use one of the last few. */
typedef struct handles {
    void *items[MOST_MADE];
    unsigned count;
} handles;

typedef struct input {
    const uint8_t *at, *end;
} input;

static handles known[KINDS];
static CUdeviceptr addresses[MOST_MADE];
static size_t extents[MOST_MADE]; /* sizes of reservations and mappings */
static unsigned address_count, extent_count;
static unsigned char host[HOST_BYTES];
static void *allocated_host;
static unsigned inner_graphs; /* number of child graphs; each may double a graph */

static const char ADD[] = ".version 6.3\n.target sm_75\n.address_size 64\n"
                          ".visible .global .align 4 .u32 table[3] = {7, 8, 9};\n"
                          ".visible .entry add(.param .u64 p, .param .u32 value)\n{\n"
                          "    .reg .b32 %r<4>; .reg .b64 %rd<3>;\n"
                          "    ld.param.u64 %rd1, [p];\n    ld.param.u32 %r1, [value];\n"
                          "    mov.u32 %r2, %tid.x;\n    mad.wide.u32 %rd2, %r2, 4, %rd1;\n"
                          "    ld.global.u32 %r3, [%rd2];\n    add.u32 %r3, %r3, %r1;\n"
                          "    st.global.u32 [%rd2], %r3;\n    ret;\n}\n";
static const char WIDE[] = ".version 6.3\n.target sm_75\n.address_size 64\n"
                           ".visible .entry add(.param .u64 a, .param .u64 b, .param .u64 c,\n"
                           "    .param .align 8 .b8 d[64])\n{\n    ret;\n}\n";
static const char *const names[] = { "add", "table", "none", "" };

static uint8_t take(input *in)
{
    return in->at < in->end ? *in->at++ : 0;
}

static uint64_t take_number(input *in)
{
    uint64_t value = 0;
    for (int i = 0; i < 8; i++)
        value = value << 8 | take(in);
    return value;
}

/* Returns mostly small numbers. */
static unsigned small(input *in)
{
    static const unsigned some[] = { 0, 1, 2, 3, 4, 32, 33, 1024 };
    uint8_t b = take(in);
    return b < 240 ? some[b % 8] : b < 250 ? b : UINT32_MAX - (255u - b);
}

static size_t bytes(input *in)
{
    static const size_t some[] = { 0, 1, 4, 128, 4096, 2 << 20, 4 << 20, SIZE_MAX };
    uint8_t b = take(in);
    return b < 250 ? some[b % 8] : (size_t)take_number(in);
}

static size_t host_bytes(input *in)
{
    size_t size = bytes(in);
    return size < HOST_BYTES ? size : HOST_BYTES;
}

static void *last_made(kind k, unsigned before)
{
    return known[k].count > before ? known[k].items[known[k].count - 1 - before] : NULL;
}

static void *pick(input *in, kind k)
{
    static int foreign;
    uint8_t b = take(in);
    if (b < 224)
        return last_made(k, b % NAMED);
    switch (b % 8) {
    case 0:
        return NULL;
    case 1:
        return &foreign;
    case 2:
    case 3:
        return (void *)(uintptr_t)(b % 8 - 1); /* special stream handles */
    default:
        return last_made(b % KINDS, 0);
    }
}

static void keep(kind k, void *made)
{
    assert(known[k].count < MOST_MADE);
    known[k].items[known[k].count++] = made;
}

static CUdeviceptr address(input *in)
{
    uint8_t b = take(in);
    if (b >= 248)
        return take_number(in);
    if (b >= 240)
        return (uintptr_t)host;
    unsigned before = b % NAMED;
    return before < address_count ? addresses[address_count - 1 - before] + (b & 64 ? b & 12 : 0)
                                  : 0;
}

/* Returns a device address, or a valid host pointer if the address could be a host pointer. */
static CUdeviceptr unified(input *in)
{
    CUdeviceptr p = address(in);
    return p >> 48 ? p : (uintptr_t)host;
}

static CUresult made_address(CUresult r, CUdeviceptr p)
{
    assert(address_count < MOST_MADE);
    if (!r)
        addresses[address_count++] = p;
    return r;
}

static CUresult made_extent(CUresult r, size_t size)
{
    assert(extent_count < MOST_MADE);
    if (!r)
        extents[extent_count++] = size;
    return r;
}

static CUresult made(CUresult r, kind k, void *object)
{
    if (!r)
        keep(k, object);
    return r;
}

/* Makes a call and records the object that it creates. */
static CUresult last;
#define MADE(k, object, call) (last = (call), made(last, k, object))
#define MADE_ADDRESS(p, call) (last = (call), made_address(last, p))

static void nothing(void *data)
{
    (void)data;
}

static size_t shared_of(int threads)
{
    return (size_t)threads * 4;
}

/* Arguments of `add` and of a wider kernel, which has more. */
typedef struct arguments {
    CUdeviceptr p;
    uint64_t value[11];
    void *pointers[4], *extra[5];
    size_t size;
} arguments;

static void fill_arguments(input *in, arguments *a)
{
    memset(a, 0, sizeof *a);
    a->p = address(in);
    a->value[0] = take(in);
    for (int i = 0; i < 4; i++)
        a->pointers[i] = i ? (void *)&a->value[i - 1] : (void *)&a->p;
    a->size = take(in) % 100;
    a->size = a->size > 96 ? 96 : a->size;
    a->extra[0] = CU_LAUNCH_PARAM_BUFFER_POINTER;
    a->extra[1] = &a->p;
    a->extra[2] = CU_LAUNCH_PARAM_BUFFER_SIZE;
    a->extra[3] = &a->size;
}

static CUDA_KERNEL_NODE_PARAMS kernel(input *in, arguments *a)
{
    fill_arguments(in, a);
    uint8_t how = take(in);
    return (CUDA_KERNEL_NODE_PARAMS){
        .func = pick(in, FUNCTION),
        .gridDimX = 1 + how % 3,
        .gridDimY = how & 64 ? small(in) : 1,
        .gridDimZ = 1,
        .blockDimX = how & 32 ? small(in) : 32,
        .blockDimY = 1,
        .blockDimZ = how & 16 ? small(in) : 1,
        .sharedMemBytes = how & 8 ? small(in) : 0,
        .kernelParams = how & 4 ? NULL : a->pointers,
        .extra = how & 4 ? a->extra : NULL,
    };
}

/* Returns true if the grid is small enough for a fuzzer. */
static bool is_small(const CUDA_KERNEL_NODE_PARAMS *k)
{
    return (uint64_t)k->gridDimX * k->gridDimY <= 100;
}

static CUDA_MEMCPY3D box(input *in)
{
    uint8_t how = take(in);
    bool rows = how & 1;
    return (CUDA_MEMCPY3D){
        .srcMemoryType = how & 2 ? CU_MEMORYTYPE_DEVICE : CU_MEMORYTYPE_HOST,
        .srcHost = host,
        .srcDevice = address(in),
        .srcPitch = rows ? 64 : 0,
        .dstMemoryType = how & 4 ? CU_MEMORYTYPE_DEVICE : CU_MEMORYTYPE_HOST,
        .dstHost = host,
        .dstDevice = address(in),
        .dstPitch = rows ? 128 : 0,
        .WidthInBytes = rows ? take(in) % 64 : host_bytes(in),
        .Height = rows ? take(in) % 8 : 1,
        .Depth = how & 8 ? 2 : 1,
        .srcHeight = 8,
        .dstHeight = how & 16 ? 8 : take(in),
    };
}

static CUDA_MEMSET_NODE_PARAMS set(input *in)
{
    return (CUDA_MEMSET_NODE_PARAMS){ .dst = address(in),
                                      .pitch = small(in),
                                      .value = small(in),
                                      .elementSize = small(in),
                                      .width = bytes(in),
                                      .height = small(in) % 9 };
}

static CUresult call_context(input *in, uint8_t which)
{
    CUcontext c;
    unsigned flags;
    int active;
    size_t size;
    switch (which % 14) {
    case 0:
        return MADE(CONTEXT, c, cuCtxCreate_v2(&c, small(in), (CUdevice)small(in) % 2));
    case 1:
        return cuCtxDestroy_v2(pick(in, CONTEXT));
    case 2:
        return cuCtxPushCurrent_v2(pick(in, CONTEXT));
    case 3:
        return cuCtxPopCurrent_v2(&c);
    case 4:
        return cuCtxSetCurrent(pick(in, CONTEXT));
    case 5:
        return MADE(CONTEXT, c, cuDevicePrimaryCtxRetain(&c, 0));
    case 6:
        return cuDevicePrimaryCtxRelease_v2(0);
    case 7:
        return cuDevicePrimaryCtxReset_v2(0);
    case 8:
        return cuDevicePrimaryCtxGetState((CUdevice)small(in), &flags, &active);
    case 9:
        return cuCtxSynchronize_v2(pick(in, CONTEXT));
    case 10:
        return cuCtxSetLimit(small(in), bytes(in));
    case 11:
        return cuCtxGetLimit(&size, small(in));
    case 12:
        return cuCtxDetach(pick(in, CONTEXT));
    default:
        return cuCtxGetDevice_v2(&active, pick(in, CONTEXT));
    }
}

static CUresult call_module(input *in, uint8_t which)
{
    const char *text = take(in) & 1 ? ADD : WIDE, *name = names[take(in) % 4];
    CUmodule m;
    CUfunction f;
    CUlibrary library;
    CUkernel k;
    CUlinkState l;
    CUdeviceptr p;
    void *image;
    size_t size, offset;
    int value, other;
    switch (which % 20) {
    case 0:
        return MADE(MODULE, m, cuModuleLoadData(&m, text));
    case 1:
        return cuModuleUnload(pick(in, MODULE));
    case 2:
    case 3:
        return MADE(FUNCTION, f, cuModuleGetFunction(&f, pick(in, MODULE), name));
    case 4:
        p = 0;
        return MADE_ADDRESS(p, cuModuleGetGlobal_v2(&p, &size, pick(in, MODULE), name));
    case 5:
        return MADE(LIBRARY, library,
                    cuLibraryLoadData(&library, text, NULL, NULL, 0, NULL, NULL, 0));
    case 6:
        return cuLibraryUnload(pick(in, LIBRARY));
    case 7:
        return MADE(FUNCTION, k, cuLibraryGetKernel(&k, pick(in, LIBRARY), name));
    case 8:
        return MADE(MODULE, m, cuLibraryGetModule(&m, pick(in, LIBRARY)));
    case 9:
        return cuKernelGetLibrary(&library, pick(in, FUNCTION));
    case 10:
        return cuFuncGetAttribute(&value, small(in), pick(in, FUNCTION));
    case 11:
        return cuFuncSetAttribute(pick(in, FUNCTION), small(in), (int)bytes(in));
    case 12:
        return cuFuncGetParamInfo(pick(in, FUNCTION), small(in), &offset, &size);
    case 13:
        return MADE(LINKER, l, cuLinkCreate_v2(0, NULL, NULL, &l));
    case 14:
        return cuLinkAddData_v2(pick(in, LINKER), small(in), (void *)(uintptr_t)text,
                                strlen(text) + 1, name, 0, NULL, NULL);
    case 15:
        return cuLinkComplete(pick(in, LINKER), &image, &size);
    case 16:
        return cuLinkDestroy(pick(in, LINKER));
    case 17:
        return cuOccupancyMaxPotentialBlockSize(&value, &other, pick(in, FUNCTION),
                                                take(in) & 1 ? shared_of : NULL, bytes(in),
                                                (int)small(in));
    case 18:
        return cuOccupancyMaxActiveBlocksPerMultiprocessor(&value, pick(in, FUNCTION),
                                                           (int)small(in), bytes(in));
    default:
        return cuOccupancyAvailableDynamicSMemPerBlock(&size, pick(in, FUNCTION), (int)small(in),
                                                       (int)small(in));
    }
}

static CUresult allocate_host(input *in)
{
    CUdeviceptr p;
    void *made_host;
    CUresult r = cuMemHostAlloc(&made_host, host_bytes(in), small(in));
    if (r)
        return r;
    allocated_host = made_host;
    r = cuMemHostGetDevicePointer_v2(&p, made_host, 0);
    return made_address(r, p);
}

static CUresult register_host(input *in)
{
    CUdeviceptr p;
    size_t offset = take(in), size = host_bytes(in);
    size = size < HOST_BYTES - offset ? size : HOST_BYTES - offset;
    CUresult r = cuMemHostRegister_v2(host + offset, size, small(in));
    r = r ? r : cuMemHostGetDevicePointer_v2(&p, host + offset, 0);
    return made_address(r, r ? 0 : p);
}

static CUresult ask_pointer(input *in)
{
    CUpointer_attribute which[2] = { small(in), take(in) % 24 };
    uint64_t answers[2];
    void *to[] = { &answers[0], &answers[1] };
    CUresult r = cuPointerGetAttribute(answers, which[1], address(in));
    return r ? r : cuPointerGetAttributes(2, which, to, address(in));
}

static CUresult call_memory(input *in, uint8_t which)
{
    CUdeviceptr p = 0;
    size_t size, pitch;
    uint64_t answer;
    CUmemLocation location = { take(in) % 6, take(in) & 1 };
    CUmemPoolProps properties = { take(in) % 3, 0, location, NULL, bytes(in), 0, { 0 } };
    CUmemoryPool pool;
    switch (which % 26) {
    case 0:
    case 1:
        size = bytes(in);
        return MADE_ADDRESS(p, cuMemAlloc_v2(&p, size < HOST_BYTES ? size : SIZE_MAX));
    case 2:
        return cuMemFree_v2(address(in));
    case 3:
        return MADE_ADDRESS(p,
                            cuMemAllocPitch_v2(&p, &pitch, host_bytes(in), small(in), small(in)));
    case 4:
        return allocate_host(in);
    case 5:
        return cuMemFreeHost(take(in) & 1 ? allocated_host : host);
    case 6:
        return register_host(in);
    case 7:
        return cuMemHostUnregister(host + (take(in) & 1 ? take(in) : 0));
    case 8:
        return MADE_ADDRESS(p, cuMemAllocManaged(&p, host_bytes(in), small(in)));
    case 9:
        return cuMemAdvise_v2(address(in), bytes(in), small(in), location);
    case 10:
        return cuMemPrefetchAsync_v2(address(in), bytes(in), location, small(in), pick(in, STREAM));
    case 11:
        return ask_pointer(in);
    case 12:
        return cuMemGetAddressRange_v2(&p, &size, address(in));
    case 13:
        return cuMemcpyHtoD_v2(address(in), host, host_bytes(in));
    case 14:
        return cuMemcpyDtoH_v2(host, address(in), host_bytes(in));
    case 15:
        return cuMemcpyDtoDAsync_v2(address(in), address(in), bytes(in), pick(in, STREAM));
    case 16:
        return cuMemcpy(unified(in), unified(in), host_bytes(in));
    case 17: {
        CUDA_MEMCPY3D copy = box(in);
        return cuMemcpy3DAsync_v2(&copy, pick(in, STREAM));
    }
    case 18:
        return cuMemsetD32Async(address(in), small(in), bytes(in), pick(in, STREAM));
    case 19:
        return cuMemsetD2D16_v2(address(in), bytes(in), 7, bytes(in), small(in) % 9);
    case 20:
        return MADE(POOL, pool, cuMemPoolCreate(&pool, &properties));
    case 21:
        return cuMemPoolDestroy(pick(in, POOL));
    case 22:
        return take(in) & 1 ? cuDeviceSetMemPool(0, pick(in, POOL))
                            : MADE(POOL, pool, cuDeviceGetMemPool(&pool, 0));
    case 23:
        size = host_bytes(in);
        return MADE_ADDRESS(p, cuMemAllocFromPoolAsync(&p, size, pick(in, POOL), pick(in, STREAM)));
    case 24:
        return cuMemFreeAsync(address(in), pick(in, STREAM));
    default:
        answer = take_number(in);
        return (take(in) & 1 ? cuMemPoolGetAttribute : cuMemPoolSetAttribute)(pick(in, POOL),
                                                                              small(in), &answer);
    }
}

static CUresult call_virtual(input *in, uint8_t which)
{
    CUmemLocation location = { take(in) % 3, 0 };
    CUmemAllocationProp properties = { .type = take(in) % 3, .location = location };
    CUmemAccessDesc access[2] = { { location, take(in) % 4 }, { location, take(in) % 4 } };
    CUmemGenericAllocationHandle memory = (uintptr_t)pick(in, MEMORY);
    CUdeviceptr p = 0;
    unsigned long long flags;
    size_t size;
    CUresult r;
    switch (which % 9) {
    case 0:
        size = bytes(in);
        return made_extent(
            MADE_ADDRESS(p, cuMemAddressReserve(&p, size, bytes(in), address(in), take(in) == 9)),
            size);
    case 1:
        return cuMemAddressFree(address(in), bytes(in));
    case 2:
        r = cuMemCreate(&memory, bytes(in), &properties, 0);
        return made(r, MEMORY, (void *)(uintptr_t)memory);
    case 3:
        return cuMemRelease(memory);
    case 4:
        size = bytes(in);
        return made_extent(cuMemMap(address(in), size, bytes(in) % HOST_BYTES, memory, 0), size);
    case 5:
        return cuMemUnmap(address(in), bytes(in));
    case 6:
        return cuMemSetAccess(address(in), bytes(in), access, take(in) % 3);
    case 7:
        return cuMemGetAccess(&flags, &location, address(in));
    default:
        r = cuMemRetainAllocationHandle(&memory, (void *)(uintptr_t)address(in));
        return made(r, MEMORY, (void *)(uintptr_t)memory);
    }
}

static CUresult launch(input *in)
{
    arguments a;
    CUDA_KERNEL_NODE_PARAMS k = kernel(in, &a);
    CUlaunchAttribute attributes[2];
    memset(attributes, 0, sizeof attributes);
    CUlaunchConfig config = { .gridDimX = k.gridDimX,
                              .gridDimY = k.gridDimY,
                              .gridDimZ = k.gridDimZ,
                              .blockDimX = k.blockDimX,
                              .blockDimY = k.blockDimY,
                              .blockDimZ = k.blockDimZ,
                              .sharedMemBytes = k.sharedMemBytes,
                              .hStream = pick(in, STREAM),
                              .attrs = attributes,
                              .numAttrs = take(in) % 3 };
    for (unsigned i = 0; i < config.numAttrs; i++) {
        attributes[i].id = small(in);
        if (attributes[i].id == CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT)
            attributes[i].value.programmaticEvent.event = pick(in, EVENT);
        else
            attributes[i].value.cooperative = (int)small(in);
    }
    return is_small(&k) ? cuLaunchKernelEx(&config, k.func, k.kernelParams, k.extra) : CUDA_SUCCESS;
}

/* Fills in up to two operations on words of memory. Returns their number. */
static unsigned values(input *in, CUstreamBatchMemOpParams *operations)
{
    unsigned count = take(in) % 3;
    for (unsigned i = 0; i < count; i++) {
        operations[i] = (CUstreamBatchMemOpParams){ .operation = take(in) % 8 };
        operations[i].waitValue.address = address(in);
        operations[i].waitValue.flags = take(in) % 5;
        operations[i].waitValue.value64 = take(in);
    }
    return count;
}

static CUresult host_or_values(input *in, CUstream stream)
{
    CUstreamBatchMemOpParams operations[2];
    uint8_t b = take(in);
    if (b != 10)
        return cuLaunchHostFunc(stream, b == 9 ? NULL : nothing, NULL);
    unsigned count = values(in, operations);
    return cuStreamBatchMemOp_v2(stream, count, operations, 0);
}

static CUresult call_stream(input *in, uint8_t which)
{
    CUstream s;
    CUevent e;
    CUgraph g = NULL;
    float milliseconds;
    CUstreamCaptureStatus status;
    const CUgraphNode *tail;
    CUgraphNode nodes[2];
    cuuint64_t id;
    size_t count;
    CUresult r;
    switch (which % 18) {
    case 0:
        return MADE(STREAM, s, cuStreamCreate(&s, small(in)));
    case 1:
        return cuStreamDestroy_v2(pick(in, STREAM));
    case 2:
        return cuStreamSynchronize(pick(in, STREAM));
    case 3:
        return MADE(EVENT, e, cuEventCreate(&e, small(in)));
    case 4:
        return cuEventDestroy_v2(pick(in, EVENT));
    case 5:
    case 6:
        return cuEventRecord(pick(in, EVENT), pick(in, STREAM));
    case 7:
    case 8:
        return cuStreamWaitEvent(pick(in, STREAM), pick(in, EVENT), take(in) == 9);
    case 9:
        return cuEventElapsedTime_v2(&milliseconds, pick(in, EVENT), pick(in, EVENT));
    case 10:
    case 11:
        return cuStreamBeginCapture_v2(pick(in, STREAM), take(in) % 4);
    case 12:
        r = cuStreamEndCapture(pick(in, STREAM), &g);
        return made(r, GRAPH, g);
    case 13:
        r = cuStreamGetCaptureInfo_v2(pick(in, STREAM), &status, &id, &g, &tail, &count);
        if (!r && g) {
            keep(GRAPH, g);
            if (count)
                keep(NODE, tail[count - 1]);
        }
        return r;
    case 14:
        nodes[0] = pick(in, NODE);
        nodes[1] = pick(in, NODE);
        return cuStreamUpdateCaptureDependencies(pick(in, STREAM), nodes, take(in) % 3,
                                                 take(in) % 3);
    case 15:
        return host_or_values(in, pick(in, STREAM));
    default:
        return launch(in);
    }
}

/* Adds a node whose only parameter is an event or a list of values, or that has none. */
static CUresult add_small_node(input *in, CUgraphNode *node, CUgraph g,
                               const CUgraphNode *dependencies, size_t count)
{
    CUstreamBatchMemOpParams operations[2];
    CUgraphNodeParams p = { .type = CU_GRAPH_NODE_TYPE_BATCH_MEM_OP };
    switch (take(in) % 4) {
    case 0:
        return cuGraphAddEventRecordNode(node, g, dependencies, count, pick(in, EVENT));
    case 1:
        return cuGraphAddEventWaitNode(node, g, dependencies, count, pick(in, EVENT));
    case 2:
        p.memOp.count = values(in, operations);
        p.memOp.paramArray = operations;
        return cuGraphAddNode(node, g, dependencies, count, &p);
    default:
        return cuGraphAddEmptyNode(node, g, dependencies, count);
    }
}

static CUresult set_small_node(input *in, CUgraphNode node, CUgraphExec exec, bool of_exec)
{
    CUstreamBatchMemOpParams operations[2];
    CUgraphNodeParams p = { .type = CU_GRAPH_NODE_TYPE_BATCH_MEM_OP };
    if (take(in) & 1) {
        p.type = CU_GRAPH_NODE_TYPE_EVENT_RECORD;
        p.eventRecord.event = pick(in, EVENT);
    } else {
        p.memOp.count = values(in, operations);
        p.memOp.paramArray = operations;
    }
    return of_exec ? cuGraphExecNodeSetParams(exec, node, &p) : cuGraphNodeSetParams(node, &p);
}

static CUresult add_node(input *in)
{
    arguments a;
    CUgraphNode dependencies[2] = { pick(in, NODE), pick(in, NODE) }, node = NULL;
    CUgraph g = pick(in, GRAPH);
    size_t count = take(in) % 3;
    CUresult r;
    switch (take(in) % 7) {
    case 6:
        if (inner_graphs++ >= MOST_INNER)
            return CUDA_SUCCESS;
        r = cuGraphAddChildGraphNode(&node, g, dependencies, count, pick(in, GRAPH));
        break;
    case 0:
    case 1: {
        CUDA_KERNEL_NODE_PARAMS k = kernel(in, &a);
        if (!is_small(&k))
            return CUDA_SUCCESS;
        r = cuGraphAddKernelNode_v2(&node, g, dependencies, count, &k);
        break;
    }
    case 2: {
        CUDA_MEMCPY3D copy = box(in);
        r = cuGraphAddMemcpyNode(&node, g, dependencies, count, &copy, NULL);
        break;
    }
    case 3: {
        CUDA_MEMSET_NODE_PARAMS s = set(in);
        r = cuGraphAddMemsetNode(&node, g, dependencies, count, &s, NULL);
        break;
    }
    case 4: {
        CUDA_HOST_NODE_PARAMS h = { nothing, NULL };
        r = cuGraphAddHostNode(&node, g, dependencies, count, &h);
        break;
    }
    default:
        r = add_small_node(in, &node, g, dependencies, count);
    }
    return made(r, NODE, node);
}

static CUresult set_node(input *in)
{
    arguments a;
    CUgraphNode node = pick(in, NODE);
    CUgraphExec exec = pick(in, EXEC);
    bool of_exec = take(in) & 1;
    switch (take(in) % 4) {
    case 0: {
        CUDA_KERNEL_NODE_PARAMS k = kernel(in, &a);
        return !is_small(&k) ? CUDA_SUCCESS
               : of_exec     ? cuGraphExecKernelNodeSetParams_v2(exec, node, &k)
                             : cuGraphKernelNodeSetParams_v2(node, &k);
    }
    case 1: {
        CUDA_MEMCPY3D copy = box(in);
        return of_exec ? cuGraphExecMemcpyNodeSetParams(exec, node, &copy, NULL)
                       : cuGraphMemcpyNodeSetParams(node, &copy);
    }
    case 2: {
        CUDA_MEMSET_NODE_PARAMS s = set(in);
        return of_exec ? cuGraphExecMemsetNodeSetParams(exec, node, &s, NULL)
                       : cuGraphMemsetNodeSetParams(node, &s);
    }
    default:
        return take(in) & 2 ? cuGraphNodeSetEnabled(exec, node, of_exec)
                            : set_small_node(in, node, exec, of_exec);
    }
}

static CUresult call_graph(input *in, uint8_t which)
{
    CUgraph g = NULL;
    CUgraphNode nodes[LISTED], others[LISTED];
    CUgraphExec e;
    CUgraphExecUpdateResultInfo info;
    CUDA_KERNEL_NODE_PARAMS k;
    CUgraphEdgeData edge = { take(in) % 4, 0, take(in) % 3, { 0 } };
    char log[LISTED];
    size_t count = take(in) % (LISTED + 1);
    CUresult r;
    switch (which % 20) {
    case 0:
        return MADE(GRAPH, g, cuGraphCreate(&g, 0));
    case 1:
        return cuGraphDestroy(pick(in, GRAPH));
    case 2:
    case 3:
    case 4:
        return add_node(in);
    case 5:
        return cuGraphDestroyNode(pick(in, NODE));
    case 6:
    case 7:
        nodes[0] = pick(in, NODE);
        others[0] = pick(in, NODE);
        return cuGraphAddDependencies_v2(pick(in, GRAPH), nodes, others,
                                         take(in) & 1 ? &edge : NULL, 1);
    case 8:
        nodes[0] = pick(in, NODE);
        others[0] = pick(in, NODE);
        return cuGraphRemoveDependencies(pick(in, GRAPH), nodes, others, 1);
    case 9:
        r = cuGraphGetNodes(pick(in, GRAPH), nodes, &count);
        return r || !count ? r : made(r, NODE, nodes[0]);
    case 10:
        return cuGraphGetEdges(pick(in, GRAPH), nodes, others, &count);
    case 11:
        return cuGraphNodeGetDependentNodes(pick(in, NODE), nodes, &count);
    case 12:
        return MADE(GRAPH, g, cuGraphClone(&g, pick(in, GRAPH)));
    case 13:
        return take(in) & 1 ? cuGraphKernelNodeGetParams_v2(pick(in, NODE), &k)
                            : MADE(GRAPH, g, cuGraphChildGraphNodeGetGraph(pick(in, NODE), &g));
    case 14:
        return set_node(in);
    case 15:
    case 16:
        return MADE(EXEC, e, cuGraphInstantiate(&e, pick(in, GRAPH), nodes, log, count));
    case 17:
        return cuGraphExecUpdate_v2(pick(in, EXEC), pick(in, GRAPH), &info);
    case 18:
        return cuGraphExecDestroy(pick(in, EXEC));
    default:
        return cuGraphLaunch(pick(in, EXEC), pick(in, STREAM));
    }
}

static void check(CUresult r)
{
    const char *name;
    assert(cuGetErrorName(r, &name) == CUDA_SUCCESS);
}

/* Creates a context with one object of most kinds. */
static void begin(void)
{
    static const uint8_t none[1];
    input zero = { none, none };
    CUcontext c;
    memset(known, 0, sizeof known);
    memset(addresses, 0, sizeof addresses);
    address_count = extent_count = inner_graphs = 0;
    allocated_host = NULL;
    check(cuInit(0));
    assert(cuCtxCreate_v2(&c, 0, 0) == CUDA_SUCCESS);
    keep(CONTEXT, c);
    CUmodule m;
    CUfunction f;
    CUdeviceptr p;
    CUstream s;
    CUgraph g;
    assert(!cuModuleLoadData(&m, ADD) && !cuModuleGetFunction(&f, m, "add"));
    assert(!cuMemAlloc_v2(&p, 4096) && !cuMemsetD8_v2(p, 0, 4096));
    assert(!cuStreamCreate(&s, CU_STREAM_NON_BLOCKING) && !cuGraphCreate(&g, 0));
    keep(MODULE, m);
    keep(FUNCTION, f);
    keep(STREAM, s);
    keep(GRAPH, g);
    made_address(CUDA_SUCCESS, p);
    check(call_stream(&zero, 3));
}

/* Destroys everything that is left. Calls refuse destroyed handles. */
static void end(void)
{
    CUcontext c;
    while (cuCtxPopCurrent_v2(&c) == CUDA_SUCCESS)
        ;
    for (unsigned i = 0; i < known[CONTEXT].count; i++)
        cuCtxDestroy_v2(known[CONTEXT].items[i]);
    while (cuDevicePrimaryCtxRelease_v2(0) == CUDA_SUCCESS)
        ;
    for (unsigned i = 0; i < known[EXEC].count; i++)
        cuGraphExecDestroy(known[EXEC].items[i]);
    for (unsigned i = 0; i < known[GRAPH].count; i++)
        cuGraphDestroy(known[GRAPH].items[i]);
    for (unsigned i = 0; i < known[LIBRARY].count; i++)
        cuLibraryUnload(known[LIBRARY].items[i]);
    for (unsigned i = 0; i < known[POOL].count; i++)
        cuMemPoolDestroy(known[POOL].items[i]);
    for (unsigned i = 0; i < address_count; i++)
        for (unsigned j = 0; j < extent_count; j++)
            cuMemUnmap(addresses[i], extents[j]);
    for (unsigned i = 0; i < address_count; i++)
        for (unsigned j = 0; j < extent_count; j++)
            cuMemAddressFree(addresses[i], extents[j]);
    for (unsigned i = 0; i < known[MEMORY].count; i++)
        while (cuMemRelease((uintptr_t)known[MEMORY].items[i]) == CUDA_SUCCESS)
            ;
}

/* Checks that only the primary context with its streams and the default pool remain. */
static void check_end(void)
{
    static const unsigned most[MAPPING_HANDLE + 1] = {
        [CONTEXT_HANDLE] = 1, [STREAM_HANDLE] = 2, [POOL_HANDLE] = 1
    };
    for (handle_kind k = CONTEXT_HANDLE; k <= MAPPING_HANDLE; k++) {
        unsigned count = 0;
        for (const void *h = NULL; (h = handle_next(k, h));)
            count++;
        assert(count <= most[k]);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static CUresult (*const calls[])(input *, uint8_t) = { call_context, call_module, call_memory,
                                                           call_virtual, call_stream, call_graph };
    input in = { data, data + size };
    begin();
    for (int i = 0; i < MOST_CALLS && in.at < in.end; i++) {
        uint8_t group = take(&in);
        check(calls[group % (sizeof calls / sizeof *calls)](&in, take(&in)));
    }
    end();
    check_end();
    return 0;
}
