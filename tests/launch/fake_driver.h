/* The header generated for launch.ini, and a fake driver. Its entry points record their arguments;
 * launches are recorded per thread. */
#ifndef PTXGEN_TESTS_FAKE_DRIVER_H
#define PTXGEN_TESTS_FAKE_DRIVER_H

#include <pthread.h>
#include <string.h>

#include "test.h"
#include "fake_cuda.h"

enum {
    DEVICE = 3,
    SM_COUNT = 20,
    SHARED_BLOCK = 65536,
    MOST_ARGUMENTS = 8,
    MOST_LOADS = 32,
    MOST_LAUNCHES = 4
};

#define assert_success(call)      assert_int_equal(call, CUDA_SUCCESS)
#define assert_error(error, call) assert_int_equal(call, CUDA_ERROR_##error)

static const CUstream STREAM = (CUstream)77;

static struct fake_driver {
    const char *missing;     /* name of an entry point that look-ups do not find */
    const char *wrong_ptx;   /* entry of a kernel whose PTX the JIT rejects */
    unsigned failing_launch; /* number of a thread's launch that fails, from 1; 0 = none */
    CUresult context;        /* result of cuCtxGetDevice */
    CUresult set_attribute;  /* result of cuFuncSetAttribute */
    int sm;

    _Atomic unsigned loads;
    unsigned unloads, attributes;
    unsigned stops;                  /* failed PTXGEN_ASSERTs */
    const char *entries[MOST_LOADS]; /* entry of each loaded module, by load */
    const char *allowed;             /* entry of the kernel that got allowed_shared */
    int allowed_shared;
    int shared_block; /* bytes that a block may opt into */
} fake;

#define ENGINE_KERNELS_IMPLEMENTATION
#define ENGINE_WITH_CUDA
#define PTXGEN_ASSERT(condition) ((condition) ? (void)0 : (void)fake.stops++)
#include "engine_kernels.h"

/* A recorded launch. */
typedef struct launched {
    const char *entry;
    unsigned grid[3], block[3], shared;
    CUstream stream;
    uint64_t arguments[MOST_ARGUMENTS];
} launched;

static _Thread_local struct fake_thread {
    CUdevice device; /* device of the thread's current context */
    unsigned launches;
    launched list[MOST_LAUNCHES]; /* the first MOST_LAUNCHES */
} thread;

static CUresult ctx_get_device(CUdevice *device)
{
    *device = thread.device;
    return fake.context;
}

static int sm_count(CUdevice device)
{
    return SM_COUNT + 10 * (device - DEVICE);
}

static CUresult device_get_attribute(int *value, CUdevice_attribute attribute, CUdevice device)
{
    *value = attribute == CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT       ? sm_count(device)
             : attribute == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR ? fake.sm / 10
             : attribute == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR ? fake.sm % 10
                                                                         : fake.shared_block;
    return CUDA_SUCCESS;
}

static CUresult module_load_data_ex(CUmodule *module, const void *image, unsigned option_count,
                                    CUjit_option *options, void **values)
{
    unsigned number = ++fake.loads;
    if (fake.wrong_ptx && strstr(image, fake.wrong_ptx)) {
        if (option_count == 2) {
            assert_int_equal(options[0], CU_JIT_ERROR_LOG_BUFFER);
            assert_int_equal(options[1], CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES);
            assert_true((uintptr_t)values[1] >= sizeof "line 7");
            memcpy(values[0], "line 7", sizeof "line 7");
        }
        return CUDA_ERROR_INVALID_PTX;
    }
    *module = (CUmodule)(uintptr_t)number;
    return CUDA_SUCCESS;
}

static CUresult module_get_function(CUfunction *function, CUmodule module, const char *name)
{
    assert_true((uintptr_t)module < MOST_LOADS);
    fake.entries[(uintptr_t)module] = name;
    *function = (CUfunction)(void *)module;
    return CUDA_SUCCESS;
}

static CUresult module_unload(CUmodule module)
{
    assert_non_null(module);
    fake.unloads++;
    return CUDA_SUCCESS;
}

static CUresult func_set_attribute(CUfunction function, CUfunction_attribute attribute, int value)
{
    assert_int_equal(attribute, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES);
    fake.attributes++;
    fake.allowed = fake.entries[(uintptr_t)function];
    fake.allowed_shared = value;
    return fake.set_attribute;
}

/* Copies a launch's arguments; their sizes are those of the kernel's parameters. */
static void record_arguments(launched *l, const ptxgen_kernel *kernel, void **arguments)
{
    memset(l->arguments, 0, sizeof l->arguments);
    for (size_t i = 0; i < kernel->param_count; i++)
        if (kernel->params[i].kind == PTXGEN_PARAM_POINTER)
            l->arguments[i] = *(CUdeviceptr *)arguments[i];
        else
            l->arguments[i] = *(uint32_t *)arguments[i];
}

static CUresult launch_kernel(CUfunction function, unsigned grid_x, unsigned grid_y,
                              unsigned grid_z, unsigned block_x, unsigned block_y, unsigned block_z,
                              unsigned shared, CUstream stream, void **arguments, void **extra)
{
    launched *l = &thread.list[PTXGEN_MIN(thread.launches, MOST_LAUNCHES - 1)];
    if (extra)
        return CUDA_ERROR_INVALID_VALUE;
    if (++thread.launches == fake.failing_launch)
        return CUDA_ERROR_INVALID_CONTEXT;
    *l = (launched){ .entry = fake.entries[(uintptr_t)function],
                     .grid = { grid_x, grid_y, grid_z },
                     .block = { block_x, block_y, block_z },
                     .shared = shared,
                     .stream = stream };
    record_arguments(l, engine_named(l->entry, 0), arguments);
    return CUDA_SUCCESS;
}

/* Looks up an entry point, like dlsym. */
static void *look_up(void *library, const char *name)
{
    static const struct {
        const char *name;
        void (*entry)(void);
    } entries[] = {
        { "cuCtxGetDevice", (void (*)(void))ctx_get_device },
        { "cuDeviceGetAttribute", (void (*)(void))device_get_attribute },
        { "cuModuleLoadDataEx", (void (*)(void))module_load_data_ex },
        { "cuModuleGetFunction", (void (*)(void))module_get_function },
        { "cuModuleUnload", (void (*)(void))module_unload },
        { "cuFuncSetAttribute", (void (*)(void))func_set_attribute },
        { "cuLaunchKernel", (void (*)(void))launch_kernel },
    };
    void *found = NULL;
    assert_ptr_equal(library, &fake);
    for (size_t i = 0; i < sizeof entries / sizeof *entries; i++)
        if (strcmp(name, entries[i].name) == 0 && (!fake.missing || strcmp(name, fake.missing)))
            memcpy(&found, &entries[i].entry, sizeof found);
    return found;
}

static CUresult init(engine_cuda *cuda)
{
    return engine_cuda_init(cuda, look_up, &fake);
}

static int set_up(void **state)
{
    static engine_cuda cuda;
    fake = (struct fake_driver){ .sm = 90, .shared_block = SHARED_BLOCK };
    thread = (struct fake_thread){ .device = DEVICE };
    *state = &cuda;
    return init(&cuda) != CUDA_SUCCESS;
}

static inline int set_up_loaded(void **state)
{
    return set_up(state) || engine_load_all(*state, NULL) != CUDA_SUCCESS;
}

static inline void assert_launch(unsigned index, const char *entry, unsigned grid, unsigned block,
                                 unsigned shared)
{
    const launched *l = &thread.list[index];
    assert_in_range(index, 0, MOST_LAUNCHES - 1);
    assert_in_range(thread.launches, index + 1, MOST_LAUNCHES);
    assert_string_equal(l->entry, entry);
    assert_memory_equal(l->grid, ((unsigned[]){ grid, 1, 1 }), sizeof l->grid);
    assert_memory_equal(l->block, ((unsigned[]){ block, 1, 1 }), sizeof l->block);
    assert_int_equal(l->shared, shared);
    assert_ptr_equal(l->stream, STREAM);
}

static inline void assert_arguments(unsigned index, uint64_t a, uint64_t b, uint64_t c, uint64_t d,
                                    uint64_t e)
{
    assert_memory_equal(thread.list[index].arguments, ((uint64_t[MOST_ARGUMENTS]){ a, b, c, d, e }),
                        sizeof thread.list[index].arguments);
}

#endif
