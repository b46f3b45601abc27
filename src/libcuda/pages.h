/* Pages of the host: what device memory with addresses of its own, and memory that the device knows
 * under the host's addresses, is made of. */
#ifndef PTXGEN_LIBCUDA_PAGES_H
#define PTXGEN_LIBCUDA_PAGES_H

#include <stdbool.h>
#include <stddef.h>

/* Addresses with nothing there, and zeros; NULL where the host has none. */
void *pages_reserve(size_t size);
void *pages_new(size_t size);
void pages_free(void *pages, size_t size);

/* Zeros that can be at several addresses at a time: a number, or -1 where the host has no memory.
 */
int pages_share(size_t size);
void pages_unshare(int shared);

/* Puts a part of them at reserved addresses, and takes them off again. */
bool pages_put(void *at, size_t size, int shared, size_t offset);
void pages_take(void *at, size_t size);

#endif
