/* Pools of memory for allocations in the order of a stream. Work is done when it is submitted, so
 * that a pool keeps no memory: it counts what is allocated from it. */
#ifndef PTXGEN_LIBCUDA_POOL_H
#define PTXGEN_LIBCUDA_POOL_H

#include "libcuda/driver.h"

struct CUmemPoolHandle_st {
    handle handle;
    bool is_default; /* the one that the device has from the start */
    bool is_current; /* that cuMemAllocAsync takes */
    bool destroyed;  /* and there while something is allocated from it */
    int reuse[3];    /* by attribute: on at first */
    uint64_t threshold, max_size;
    uint64_t used, most_used;
};

/* A live pool that is not destroyed. */
bool is_pool(CUmemoryPool pool);

/* The default one and the current one; NULL where there is no memory for the first. */
CUmemoryPool pool_default(void);
CUmemoryPool pool_current(void);
void pool_make_current(CUmemoryPool pool);

CUmemoryPool pool_new(uint64_t max_size);
void pool_destroy(CUmemoryPool pool);

/* Counts an allocation of a pool, false where that has no room for it, and its end. */
bool pool_take(CUmemoryPool pool, uint64_t size);
void pool_give_back(CUmemoryPool pool, uint64_t size);

#endif
