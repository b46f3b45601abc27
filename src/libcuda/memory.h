/* Device memory and host memory that kernels may access: allocations, memory pools, and virtual
 * memory management, which maps memory at reserved addresses.
 *
 * Work is complete when it is submitted, so a pool caches no memory. It only counts the bytes that
 * are allocated from it. Pools and virtual memory belong to no context. */
#pragma once

#include "libcuda/driver.h"

enum { POOL_REUSES = 3 };

struct CUmemPoolHandle_st {
    handle handle;
    bool is_default;        /* the device's default pool */
    bool is_current;        /* the pool that cuMemAllocAsync uses */
    bool destroyed;         /* but still has allocations */
    int reuse[POOL_REUSES]; /* by attribute; initially on */
    uint64_t threshold, max_size;
    uint64_t used, most_used;
};

/* A range of device addresses: the first member of a buffer, a reservation and a mapping. */
typedef struct span {
    handle handle;
    uint64_t address;
    size_t size;
} span;

/* Returns the live object of this kind that contains an address, or NULL. */
void *span_at(handle_kind kind, uint64_t address);

typedef struct buffer {
    span span;
    void *host;        /* NULL: device memory */
    bool registered;   /* host memory that the program allocated */
    bool managed;      /* the device address equals host */
    CUmemoryPool pool; /* pool it was allocated from, or NULL */
    unsigned flags;
} buffer;

/* Allocates size bytes of device memory or, if host is not NULL, maps host memory on the device.
 * Managed memory keeps its host address. Returns NULL if memory runs out. */
buffer *buffer_new(CUcontext c, void *host, size_t size, bool managed);
void buffer_destroy(buffer *b);

/* Frees a pool that is destroyed and has no allocations. */
void pool_free_unused(CUmemoryPool pool);

/* Returns the live buffer that contains a host pointer, or NULL. */
buffer *buffer_of_host(const void *p);

typedef struct reservation {
    span span;
    void *pages; /* the host pages behind it */
} reservation;

/* Physical memory without an address. Its handle, a number, is the address of this struct. */
typedef struct physical {
    handle handle;
    CUmemAllocationProp properties;
    size_t size;
    int file;        /* memfd with the contents */
    unsigned uses;   /* references held by the program; cuMemRelease drops one */
    unsigned places; /* number of mappings */
} physical;

/* Physical memory, or a part of it, mapped in a reservation. */
typedef struct mapping {
    span span;
    reservation *in;
    physical *of;
    CUmemAccess_flags access;
} mapping;

/* Maps host pages: zeroed, or inaccessible if usable is false. Returns NULL on failure. */
void *pages_new(size_t size, bool usable);
void pages_free(void *pages, size_t size);

/* Accepts only device memory that is not shared with other processes. */
CUresult memory_check(CUmemAllocationType type, CUmemAllocationHandleType handle_types,
                      CUmemLocation location);

size_t memory_used(void); /* bytes of device memory in use */

/* Reports on standard error why size bytes at a device address are not all accessible. */
void say_where(const char *what, uint64_t address, size_t size);
