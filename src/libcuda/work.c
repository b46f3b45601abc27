#include "libcuda/work.h"

#include <string.h>

#include "libcuda/launch.h"
#include "libcuda/memory.h"

enum { HOST_ADDRESS_BITS = 48 }; /* larger addresses are never host addresses */

/* One side of a copy: the start of a row. */
typedef struct place {
    bool on_device;
    uint64_t address;
} place;

static place find_place(CUmemorytype type, const void *host, CUdeviceptr device)
{
    emu_allocation a;
    if (type == CU_MEMORYTYPE_HOST)
        return (place){ false, (uintptr_t)host };
    bool on_device = type == CU_MEMORYTYPE_DEVICE || device >> HOST_ADDRESS_BITS ||
                     (emu_find(driver.memory, device, &a) && device - a.address < a.size);
    return (place){ on_device, device };
}

static bool has_memory(CUmemorytype type, const void *host, CUdeviceptr device)
{
    return type == CU_MEMORYTYPE_HOST
               ? host != NULL
               : (type == CU_MEMORYTYPE_DEVICE || type == CU_MEMORYTYPE_UNIFIED) && device;
}

static CUresult check_copy(const CUDA_MEMCPY3D *c)
{
    bool rows = c->Height > 1 || c->Depth > 1, slices = c->Depth > 1;
    if (c->srcMemoryType == CU_MEMORYTYPE_ARRAY || c->dstMemoryType == CU_MEMORYTYPE_ARRAY)
        return CUDA_ERROR_NOT_SUPPORTED;
    if (!c->WidthInBytes || !c->Height || !c->Depth)
        return CUDA_SUCCESS;
    return check_value(
        has_memory(c->srcMemoryType, c->srcHost, c->srcDevice) &&
        has_memory(c->dstMemoryType, c->dstHost, c->dstDevice) &&
        (!rows || (c->srcPitch >= c->srcXInBytes + c->WidthInBytes &&
                   c->dstPitch >= c->dstXInBytes + c->WidthInBytes)) &&
        (!slices || (c->srcHeight >= c->srcY + c->Height && c->dstHeight >= c->dstY + c->Height)));
}

/* Copies size bytes. Reports a device range beyond its allocation and returns false. */
static bool copy_row(place to, place from, size_t size)
{
    emu_memory *m = driver.memory;
    void *to_host = (void *)(uintptr_t)to.address;
    const void *from_host = (const void *)(uintptr_t)from.address;
    if (!to.on_device && !from.on_device) {
        memmove(to_host, from_host, size);
        return true;
    }
    if (to.on_device && from.on_device ? emu_copy(m, to.address, from.address, size)
        : to.on_device                 ? emu_write(m, to.address, from_host, size)
                                       : emu_read(m, from.address, to_host, size))
        return true;
    if (from.on_device)
        say_where("copy from", from.address, size);
    if (to.on_device)
        say_where("copy to", to.address, size);
    return false;
}

static CUresult run_copy(const CUDA_MEMCPY3D *c)
{
    place to = find_place(c->dstMemoryType, c->dstHost, c->dstDevice);
    place from = find_place(c->srcMemoryType, c->srcHost, c->srcDevice);
    uint64_t to_start = to.address, from_start = from.address;
    for (size_t z = 0; c->WidthInBytes && z < c->Depth; z++)
        for (size_t y = 0; y < c->Height; y++) {
            to.address = to_start + c->dstXInBytes +
                         (c->dstY + y + (c->dstZ + z) * c->dstHeight) * c->dstPitch;
            from.address = from_start + c->srcXInBytes +
                           (c->srcY + y + (c->srcZ + z) * c->srcHeight) * c->srcPitch;
            if (!copy_row(to, from, c->WidthInBytes))
                return CUDA_ERROR_INVALID_VALUE;
        }
    return CUDA_SUCCESS;
}

static CUresult check_set(const CUDA_MEMSET_NODE_PARAMS *s)
{
    unsigned size = s->elementSize;
    bool known = size == 1 || size == 2 || size == 4;
    return check_value(known && s->dst && s->dst % size == 0 &&
                       (s->height <= 1 || (s->pitch >= s->width * size && s->pitch % size == 0)));
}

static CUresult run_set(const CUDA_MEMSET_NODE_PARAMS *s)
{
    unsigned char element[4];
    for (unsigned i = 0; i < sizeof element; i++)
        element[i] = (unsigned char)(s->value >> 8 * i);
    for (size_t y = 0; s->width && y < s->height; y++) {
        uint64_t row = s->dst + y * s->pitch;
        if (!emu_fill(driver.memory, row, element, s->elementSize, s->width)) {
            say_where("memset", row, s->width * s->elementSize);
            return CUDA_ERROR_INVALID_VALUE;
        }
    }
    return CUDA_SUCCESS;
}

/* An operation on a word of size bytes (0: another). Waits and writes have equal fields. */
typedef struct word_kind {
    bool waits;
    size_t size;
} word_kind;

static word_kind kind_of(const CUstreamBatchMemOpParams *p)
{
    static const word_kind kinds[] = {
        [CU_STREAM_MEM_OP_WAIT_VALUE_32] = { .waits = true, .size = 4 },
        [CU_STREAM_MEM_OP_WAIT_VALUE_64] = { .waits = true, .size = 8 },
        [CU_STREAM_MEM_OP_WRITE_VALUE_32] = { .size = 4 },
        [CU_STREAM_MEM_OP_WRITE_VALUE_64] = { .size = 8 },
    };
    return p->operation < sizeof kinds / sizeof *kinds ? kinds[p->operation] : (word_kind){ 0 };
}

static CUresult check_words(const CUDA_BATCH_MEM_OP_NODE_PARAMS *b)
{
    enum { MOST_OPERATIONS = 256 };
    if (b->flags || b->count > MOST_OPERATIONS || (b->count && !b->paramArray))
        return CUDA_ERROR_INVALID_VALUE;
    for (unsigned i = 0; i < b->count; i++) {
        const CUstreamBatchMemOpParams *p = &b->paramArray[i];
        word_kind kind = kind_of(p);
        unsigned known =
            kind.waits ? CU_STREAM_WAIT_VALUE_NOR : CU_STREAM_WRITE_VALUE_NO_MEMORY_BARRIER;
        if (p->operation == CU_STREAM_MEM_OP_BARRIER)
            continue;
        if (!kind.size)
            return CUDA_ERROR_NOT_SUPPORTED;
        if (!p->waitValue.address || p->waitValue.address % kind.size ||
            p->waitValue.flags & ~known)
            return CUDA_ERROR_INVALID_VALUE;
    }
    return CUDA_SUCCESS;
}

/* Returns true if the value in memory satisfies a wait. */
static bool is_satisfied(uint64_t there, uint64_t value, unsigned flags, size_t size)
{
    uint64_t all = size == 8 ? UINT64_MAX : UINT32_MAX;
    switch (flags) {
    case CU_STREAM_WAIT_VALUE_EQ:
        return there == value;
    case CU_STREAM_WAIT_VALUE_AND:
        return there & value;
    case CU_STREAM_WAIT_VALUE_NOR:
        return ~(there | value) & all;
    default: /* CU_STREAM_WAIT_VALUE_GEQ: signed difference is not negative */
        return !((there - value) >> (8 * size - 1) & 1);
    }
}

/* Runs an operation. Refuses an unsatisfied wait, which would never end. */
static CUresult run_word(const CUstreamBatchMemOpParams *p)
{
    word_kind kind = kind_of(p);
    CUdeviceptr at = p->waitValue.address;
    uint64_t there = 0, value = kind.size == 8 ? p->waitValue.value64 : p->waitValue.value;
    if (!kind.size)
        return CUDA_SUCCESS;
    if (!(kind.waits ? emu_read(driver.memory, at, &there, kind.size)
                     : emu_write(driver.memory, at, &value, kind.size))) {
        say_where(kind.waits ? "wait for a value" : "write of a value", at, kind.size);
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (!kind.waits || is_satisfied(there, value, p->waitValue.flags, kind.size))
        return CUDA_SUCCESS;
    say("a stream waits for a value at 0x%llx, which is 0x%llx and is not changed by earlier work; "
        "submit the write first, since work runs in the order of the calls",
        at, (unsigned long long)there);
    return CUDA_ERROR_NOT_SUPPORTED;
}

/* The members of CUgraphNodeParams start with the same fields as the older structures in work. */
CUresult work_of_params(const CUgraphNodeParams *p, bool changes, work *w)
{
    bool zero = p && !p->reserved2;
    for (size_t i = 0; zero && i < sizeof p->reserved0 / sizeof *p->reserved0; i++)
        zero = !p->reserved0[i];
    if (!zero || (p->type == CU_GRAPH_NODE_TYPE_MEMCPY && p->memcpy.flags))
        return CUDA_ERROR_INVALID_VALUE;
    *w = (work){ .type = p->type };
    memcpy(&w->as, &p->reserved1, sizeof w->as);
    switch (p->type) {
    case CU_GRAPH_NODE_TYPE_MEMCPY:
        w->as.copy = p->memcpy.copyParams;
        return CUDA_SUCCESS;
    case CU_GRAPH_NODE_TYPE_KERNEL:
    case CU_GRAPH_NODE_TYPE_MEMSET:
    case CU_GRAPH_NODE_TYPE_HOST:
    case CU_GRAPH_NODE_TYPE_WAIT_EVENT:
    case CU_GRAPH_NODE_TYPE_EVENT_RECORD:
    case CU_GRAPH_NODE_TYPE_BATCH_MEM_OP:
        return CUDA_SUCCESS;
    case CU_GRAPH_NODE_TYPE_EMPTY:
        return changes ? CUDA_ERROR_NOT_SUPPORTED : CUDA_SUCCESS;
    case CU_GRAPH_NODE_TYPE_GRAPH:
        return changes || p->graph.ownership != CU_GRAPH_CHILD_GRAPH_OWNERSHIP_CLONE
                   ? CUDA_ERROR_NOT_SUPPORTED
                   : CUDA_SUCCESS;
    default:
        return CUDA_ERROR_NOT_SUPPORTED;
    }
}

CUresult work_check(const work *w)
{
    switch (w->type) {
    case CU_GRAPH_NODE_TYPE_KERNEL:
        return launch_check(&w->as.launch, w->cooperative);
    case CU_GRAPH_NODE_TYPE_MEMCPY:
        return check_copy(&w->as.copy);
    case CU_GRAPH_NODE_TYPE_MEMSET:
        return check_set(&w->as.set);
    case CU_GRAPH_NODE_TYPE_HOST:
        return check_value(w->as.host.fn);
    case CU_GRAPH_NODE_TYPE_EVENT_RECORD:
    case CU_GRAPH_NODE_TYPE_WAIT_EVENT:
        return check_handle(w->as.event, EVENT_HANDLE);
    case CU_GRAPH_NODE_TYPE_BATCH_MEM_OP:
        return check_words(&w->as.words);
    default:
        return CUDA_SUCCESS;
    }
}

typedef struct run {
    CUcontext context;
    const work *work;
} run;

static CUresult run_on_device(void *context)
{
    const run *r = context;
    const work *w = r->work;
    CUresult done = CUDA_SUCCESS;
    switch (w->type) {
    case CU_GRAPH_NODE_TYPE_KERNEL:
        return launch_run(r->context, &w->as.launch);
    case CU_GRAPH_NODE_TYPE_MEMCPY:
        return run_copy(&w->as.copy);
    case CU_GRAPH_NODE_TYPE_MEMSET:
        return run_set(&w->as.set);
    case CU_GRAPH_NODE_TYPE_BATCH_MEM_OP:
        for (unsigned i = 0; !done && i < w->as.words.count; i++)
            done = run_word(&w->as.words.paramArray[i]);
        return done;
    case CU_GRAPH_NODE_TYPE_EVENT_RECORD:
        event_stamp(w->as.event);
        return CUDA_SUCCESS;
    default:
        return CUDA_SUCCESS;
    }
}

bool work_is_valid(const work *w)
{
    if (w->type == CU_GRAPH_NODE_TYPE_EVENT_RECORD || w->type == CU_GRAPH_NODE_TYPE_WAIT_EVENT)
        return handle_is(w->as.event, EVENT_HANDLE);
    CUfunction f = w->type == CU_GRAPH_NODE_TYPE_KERNEL ? launch_function(&w->as.launch) : NULL;
    return !f || (handle_is(f, FUNCTION_HANDLE) && (!w->function || f->id == w->function));
}

CUresult work_run(CUcontext c, const void *of, bool overlaps, const work *w)
{
    bool is_launch = w->type == CU_GRAPH_NODE_TYPE_KERNEL;
    if (!work_is_valid(w))
        return CUDA_ERROR_INVALID_HANDLE;
    if (is_launch && (overlaps || w->cooperative))
        return queue_launch(c, of,
                            (queued_launch){ &w->as.launch, w->programmatic, w->cooperative });
    CUresult r = queue_finish();
    r = r ? r : c->failure;
    if (r || w->type != CU_GRAPH_NODE_TYPE_HOST)
        return r ? r : driver_try(run_on_device, &(run){ c, w });
    w->as.host.fn(w->as.host.userData); /* the function may not return, e.g. longjmp */
    return CUDA_SUCCESS;
}

bool work_keep(arena *a, const work *w, work *kept)
{
    *kept = *w;
    if (w->type == CU_GRAPH_NODE_TYPE_KERNEL) {
        kept->function = launch_function(&w->as.launch)->id;
        return launch_keep(a, &w->as.launch, &kept->as.launch);
    }
    if (w->type != CU_GRAPH_NODE_TYPE_BATCH_MEM_OP)
        return true;
    size_t size = w->as.words.count * sizeof *w->as.words.paramArray;
    kept->as.words.paramArray = arena_try_alloc(a, size + 1);
    if (kept->as.words.paramArray && size)
        memcpy(kept->as.words.paramArray, w->as.words.paramArray, size);
    return kept->as.words.paramArray;
}
