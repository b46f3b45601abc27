/* Device memory, and host memory that kernels may use: allocations, the pools that some come from,
 * and virtual memory management, which maps memory at reserved addresses.
 *
 * Work is done when it is submitted, so that a pool keeps no memory: it counts what is allocated
 * from it. Pools and virtual memory belong to no context. */
#ifndef PTXGEN_LIBCUDA_MEMORY_H
#define PTXGEN_LIBCUDA_MEMORY_H

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

typedef struct buffer {
    handle handle;
    uint64_t address; /* on the device */
    size_t size;
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

/* Return the live buffer that contains a device address or a host pointer, or NULL. */
buffer *buffer_of_address(uint64_t address);
buffer *buffer_of_host(const void *p);

/* Reserved addresses. */
typedef struct reservation {
    handle handle;
    uint64_t address;
    size_t size;
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
    handle handle;
    reservation *in;
    physical *of;
    uint64_t address;
    size_t size;
    CUmemAccess_flags access;
} mapping;

/* Returns the mapping that contains an address, or NULL. */
mapping *mapping_of(uint64_t address);

/* Maps pages of the host: zeros, or only addresses. Returns NULL if the host has none. */
void *pages_new(size_t size, bool usable);
void pages_free(void *pages, size_t size);

/* Accepts only device memory that other processes do not see. */
CUresult memory_check(CUmemAllocationType type, CUmemAllocationHandleType handle_types,
                      CUmemLocation location);

/* Returns the bytes of device memory that are allocated. */
size_t memory_used(void);

/* Says on standard error why size bytes at a device address are not all there. */
void say_where(const char *what, uint64_t address, size_t size);

#endif
