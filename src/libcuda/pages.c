#define _GNU_SOURCE
#include "libcuda/pages.h"

#include <sys/mman.h>
#include <sys/types.h>
#include <unistd.h>

static void *map(void *at, size_t size, int access, int flags)
{
    void *pages =
        mmap(at, size, access, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | flags, -1, 0);
    return pages == MAP_FAILED ? NULL : pages;
}

void *pages_reserve(size_t size)
{
    return map(NULL, size, PROT_NONE, 0);
}

void *pages_new(size_t size)
{
    return map(NULL, size, PROT_READ | PROT_WRITE, 0);
}

void pages_free(void *pages, size_t size)
{
    if (pages)
        munmap(pages, size);
}

int pages_share(size_t size)
{
    int shared = memfd_create("device memory", MFD_CLOEXEC);
    if (shared >= 0 && ftruncate(shared, (off_t)size) != 0) {
        close(shared);
        return -1;
    }
    return shared;
}

void pages_unshare(int shared)
{
    close(shared);
}

bool pages_put(void *at, size_t size, int shared, size_t offset)
{
    return mmap(at, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, shared, (off_t)offset) !=
           MAP_FAILED;
}

void pages_take(void *at, size_t size)
{
    map(at, size, PROT_NONE, MAP_FIXED);
}
