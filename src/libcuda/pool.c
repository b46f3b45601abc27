#include "libcuda/pool.h"

bool is_pool(CUmemoryPool pool)
{
    return handle_is(pool, POOL_HANDLE) && !pool->destroyed;
}

CUmemoryPool pool_new(uint64_t max_size)
{
    CUmemoryPool pool = handle_new(POOL_HANDLE, sizeof *pool, NULL);
    if (!pool)
        return NULL;
    for (size_t i = 0; i < sizeof pool->reuse / sizeof *pool->reuse; i++)
        pool->reuse[i] = 1;
    pool->max_size = max_size ? max_size : DEVICE_MEMORY_BYTES;
    return pool;
}

CUmemoryPool pool_default(void)
{
    CUmemoryPool pool = NULL;
    while ((pool = handle_next(POOL_HANDLE, pool)))
        if (pool->is_default)
            return pool;
    pool = pool_new(0);
    if (pool)
        pool->is_default = pool->is_current = true;
    return pool;
}

CUmemoryPool pool_current(void)
{
    CUmemoryPool pool = NULL;
    while ((pool = handle_next(POOL_HANDLE, pool)))
        if (pool->is_current)
            return pool;
    return pool_default();
}

void pool_make_current(CUmemoryPool pool)
{
    for (CUmemoryPool p = NULL; (p = handle_next(POOL_HANDLE, p));)
        p->is_current = p == pool;
}

static void free_unused(CUmemoryPool pool)
{
    if (pool->destroyed && !pool->used)
        handle_free(pool);
}

void pool_destroy(CUmemoryPool pool)
{
    if (pool->is_current)
        pool_make_current(pool_default());
    pool->destroyed = true;
    free_unused(pool);
}

bool pool_take(CUmemoryPool pool, uint64_t size)
{
    if (size > pool->max_size - pool->used)
        return false;
    pool->used += size;
    if (pool->used > pool->most_used)
        pool->most_used = pool->used;
    return true;
}

void pool_give_back(CUmemoryPool pool, uint64_t size)
{
    pool->used -= size;
    free_unused(pool);
}
