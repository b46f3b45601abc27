/* Allocations of device memory, and host memory that kernels may use. */
#ifndef PTXGEN_LIBCUDA_MEMORY_H
#define PTXGEN_LIBCUDA_MEMORY_H

#include "libcuda/context.h"
#include "libcuda/pool.h"

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

/* size bytes of device memory or, where host is not NULL, of that; NULL when there is no memory. */
buffer *buffer_new(CUcontext c, void *host, size_t size);
buffer *buffer_new_managed(CUcontext c, size_t size);
void buffer_destroy(buffer *b);

/* Bytes of device memory that are allocated. */
size_t memory_used(void);

/* The live buffer that a device address, or a host pointer, is inside of; NULL for none. */
buffer *buffer_of_address(uint64_t address);
buffer *buffer_of_host(const void *p);

/* Says on standard error why size bytes at a device address are not all there. */
void say_where(const char *what, uint64_t address, size_t size);

#endif
