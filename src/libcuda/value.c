#include "libcuda/value.h"

#include <string.h>

#include "libcuda/memory.h"

enum { MOST_OPERATIONS = 256 };

static bool is_wide(const CUstreamBatchMemOpParams *p)
{
    return p->operation == CU_STREAM_MEM_OP_WAIT_VALUE_64 ||
           p->operation == CU_STREAM_MEM_OP_WRITE_VALUE_64;
}

/* Both kinds of operation lie alike. */
static size_t size_of(const CUstreamBatchMemOpParams *p)
{
    return is_wide(p) ? sizeof p->waitValue.value64 : sizeof p->waitValue.value;
}

static bool is_wait(const CUstreamBatchMemOpParams *p)
{
    return p->operation == CU_STREAM_MEM_OP_WAIT_VALUE_32 ||
           p->operation == CU_STREAM_MEM_OP_WAIT_VALUE_64;
}

static bool is_write(const CUstreamBatchMemOpParams *p)
{
    return p->operation == CU_STREAM_MEM_OP_WRITE_VALUE_32 ||
           p->operation == CU_STREAM_MEM_OP_WRITE_VALUE_64;
}

static CUresult check(const CUstreamBatchMemOpParams *p)
{
    unsigned flags = is_wait(p)    ? CU_STREAM_WAIT_VALUE_NOR
                     : is_write(p) ? CU_STREAM_WRITE_VALUE_NO_MEMORY_BARRIER
                                   : 0;
    if (p->operation == CU_STREAM_MEM_OP_BARRIER)
        return CUDA_SUCCESS;
    if (!is_wait(p) && !is_write(p))
        return CUDA_ERROR_NOT_SUPPORTED;
    return p->waitValue.address && p->waitValue.address % size_of(p) == 0 &&
                   !(p->waitValue.flags & ~flags)
               ? CUDA_SUCCESS
               : CUDA_ERROR_INVALID_VALUE;
}

CUresult values_check(const CUDA_BATCH_MEM_OP_NODE_PARAMS *b)
{
    CUresult r = CUDA_SUCCESS;
    if (b->flags || b->count > MOST_OPERATIONS || (b->count && !b->paramArray))
        return CUDA_ERROR_INVALID_VALUE;
    for (unsigned i = 0; !r && i < b->count; i++)
        r = check(&b->paramArray[i]);
    return r;
}

/* wide: of 64 bits, which decides what is taken for negative. */
static bool holds(uint64_t there, uint64_t value, unsigned flags, bool wide)
{
    uint64_t difference = there - value;
    uint64_t all = wide ? UINT64_MAX : UINT32_MAX;
    switch (flags) {
    case CU_STREAM_WAIT_VALUE_EQ:
        return there == value;
    case CU_STREAM_WAIT_VALUE_AND:
        return there & value;
    case CU_STREAM_WAIT_VALUE_NOR:
        return ~(there | value) & all;
    default:
        return !(difference >> (wide ? 63 : 31) & 1);
    }
}

static CUresult wait(const CUstreamBatchMemOpParams *p)
{
    uint64_t there = 0, value = is_wide(p) ? p->waitValue.value64 : p->waitValue.value;
    if (!emu_read(device_memory(), p->waitValue.address, &there, size_of(p))) {
        say_where("wait for a value", p->waitValue.address, size_of(p));
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (holds(there, value, p->waitValue.flags, is_wide(p)))
        return CUDA_SUCCESS;
    say("a stream waits for a value at 0x%llx, where 0x%llx is and nothing that was submitted "
        "before will change it: work is done here in the order of the calls",
        p->waitValue.address, (unsigned long long)there);
    return CUDA_ERROR_NOT_SUPPORTED;
}

static CUresult run(const CUstreamBatchMemOpParams *p)
{
    if (is_wait(p))
        return wait(p);
    if (!is_write(p) ||
        emu_write(device_memory(), p->writeValue.address, &p->writeValue.value64, size_of(p)))
        return CUDA_SUCCESS;
    say_where("write of a value", p->writeValue.address, size_of(p));
    return CUDA_ERROR_INVALID_VALUE;
}

CUresult values_run(const CUDA_BATCH_MEM_OP_NODE_PARAMS *b)
{
    CUresult r = CUDA_SUCCESS;
    for (unsigned i = 0; !r && i < b->count; i++)
        r = run(&b->paramArray[i]);
    return r;
}

bool values_keep(arena *a, const CUDA_BATCH_MEM_OP_NODE_PARAMS *b,
                 CUDA_BATCH_MEM_OP_NODE_PARAMS *kept)
{
    size_t size = b->count * sizeof *b->paramArray;
    CUstreamBatchMemOpParams *copy = arena_try_alloc(a, size + 1);
    if (copy && size)
        memcpy(copy, b->paramArray, size);
    *kept = *b;
    kept->paramArray = copy;
    return copy;
}
