/* Device memory, and host memory that kernels may use: allocations, the pools that some come from,
 * and virtual memory management, which maps memory at reserved addresses.
 *
 * Work is done when it is submitted, so that a pool keeps no memory: it counts what is allocated
 * from it. Pools and virtual memory belong to no context. */
#ifndef PTXGEN_LIBCUDA_MEMORY_H
#define PTXGEN_LIBCUDA_MEMORY_H

#include "libcuda/driver.h"

enum { POOL_REUSES = 3 };

struct CUmemPoolHandle_st {
    handle handle;
    bool is_default;        /* the one that the device has from the start */
    bool is_current;        /* that cuMemAllocAsync takes */
    bool destroyed;         /* and there while something is allocated from it */
    int reuse[POOL_REUSES]; /* by attribute: on at first */
    uint64_t threshold, max_size;
    uint64_t used, most_used;
};

/* Addresses of the device: the first member of a buffer, a reservation and a mapping. */
typedef struct span {
    handle handle;
    uint64_t address;
    size_t size;
} span;

/* Returns the live object of one of these kinds that contains an address, or NULL. */
void *span_at(handle_kind kind, uint64_t address);

typedef struct buffer {
    span span;
    void *host;        /* NULL: device memory */
    bool registered;   /* host memory of the program's own */
    bool managed;      /* host is the address on the device as well */
    CUmemoryPool pool; /* that it was allocated from, or NULL */
    unsigned flags;
} buffer;

/* Makes size bytes of device memory or, if host is not NULL, has the device know those: at their
 * own address, if they are managed. Returns NULL if there is no memory. */
buffer *buffer_new(CUcontext c, void *host, size_t size, bool managed);
void buffer_destroy(buffer *b);

/* Frees a pool that is destroyed and that nothing is allocated from. */
void pool_settle(CUmemoryPool pool);

/* Returns the live buffer that contains a host pointer, or NULL. */
buffer *buffer_of_host(const void *p);

/* Reserved addresses. */
typedef struct reservation {
    span span;
    void *pages; /* the host's addresses of the same */
} reservation;

/* Memory without an address. Programs name it by a number, which is its address here. */
typedef struct physical {
    handle handle;
    CUmemAllocationProp properties;
    size_t size;
    int file;        /* its bytes, in the host's memory */
    unsigned uses;   /* by the program, which cuMemRelease ends one of */
    unsigned places; /* where it is mapped */
} physical;

/* Memory, or a part of it, at some addresses. */
typedef struct mapping {
    span span;
    reservation *in;
    physical *of;
    CUmemAccess_flags access;
} mapping;

/* Maps pages of the host: zeros, or only addresses. Returns NULL if the host has none. */
void *pages_new(size_t size, bool usable);
void pages_free(void *pages, size_t size);

/* Accepts only device memory that other processes do not see. */
CUresult memory_check(CUmemAllocationType type, CUmemAllocationHandleType handle_types,
                      CUmemLocation location);

size_t memory_used(void); /* bytes of device memory */

/* Says on standard error why size bytes at a device address are not all there. */
void say_where(const char *what, uint64_t address, size_t size);

#endif
