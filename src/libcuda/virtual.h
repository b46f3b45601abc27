/* Virtual memory management: ranges of addresses that are reserved, memory that has none, and what
 * of that is mapped where. None of it belongs to a context. */
#ifndef PTXGEN_LIBCUDA_VIRTUAL_H
#define PTXGEN_LIBCUDA_VIRTUAL_H

#include "libcuda/driver.h"

/* Addresses. */
typedef struct reservation {
    handle handle;
    uint64_t address;
    size_t size;
    void *pages; /* the host's addresses of the same */
} reservation;

/* Memory. Programs name it by a number that is its address here. */
typedef struct physical {
    handle handle;
    CUmemAllocationProp properties;
    size_t size;
    int shared;      /* see pages.h */
    unsigned uses;   /* by the program, which cuMemRelease ends one of */
    unsigned places; /* where it is mapped */
} physical;

/* All or a part of some memory at some addresses. */
typedef struct mapping {
    handle handle;
    reservation *in;
    physical *of;
    uint64_t address;
    size_t size;
    CUmemAccess_flags access;
} mapping;

/* size and alignment were checked. CUDA_ERROR_OUT_OF_MEMORY where there is none. */
CUresult reservation_new(size_t size, reservation **made);
CUresult physical_new(const CUmemAllocationProp *properties, size_t size, physical **made);
CUresult mapping_new(reservation *in, uint64_t address, size_t size, physical *of, size_t offset);

void reservation_free(reservation *r);
void mapping_free(mapping *m);

/* Frees memory that nobody uses any more. */
void physical_settle(physical *p);

/* What an address is inside of, or NULL. */
reservation *reservation_of(uint64_t address);
mapping *mapping_of(uint64_t address);

/* Whether some mapping has any of these addresses; whether mappings, whole ones, have all. */
bool is_mapped_anywhere(uint64_t address, size_t size);
bool is_mapped_whole(uint64_t address, size_t size);

/* Has kernels and copies reach what is mapped, to load from it or to store to it as well. */
void mapping_permit(mapping *m, CUmemAccess_flags access);

/* Bytes of all memory that there is. */
size_t physical_used(void);

#endif
