/* What tests of the driver share: a context for each test, and small modules. */
#ifndef PTXGEN_TESTS_DRIVER_SAMPLE_H
#define PTXGEN_TESTS_DRIVER_SAMPLE_H

#include "test.h"
#include "libcuda/api.h"

#define assert_success(call) assert_int_equal(call, CUDA_SUCCESS)

#define PTX_HEAD             ".version 6.3\n.target sm_75\n.address_size 64\n"

/* add(p, value) adds value to the 32 numbers at p. */
static const char ADD[] = PTX_HEAD ".visible .entry add(.param .u64 p, .param .u32 value)\n"
                                   ".reqntid 32, 1, 1\n"
                                   "{\n"
                                   "    .reg .b32 %r<4>; .reg .b64 %rd<3>;\n"
                                   "    ld.param.u64 %rd1, [p];\n"
                                   "    ld.param.u32 %r1, [value];\n"
                                   "    mov.u32 %r2, %tid.x;\n"
                                   "    mad.wide.u32 %rd2, %r2, 4, %rd1;\n"
                                   "    ld.global.u32 %r3, [%rd2];\n"
                                   "    add.u32 %r3, %r3, %r1;\n"
                                   "    st.global.u32 [%rd2], %r3;\n"
                                   "    ret;\n"
                                   "}\n";

enum { NUMBERS = 32 };

static CUcontext context;

static inline int make_context(void **state)
{
    (void)state;
    return cuInit(0) || cuCtxCreate_v4(&context, NULL, 0, 0);
}

static inline int drop_context(void **state)
{
    (void)state;
    return (int)cuCtxDestroy_v2(context);
}

static inline CUfunction load(const char *ptx, const char *name)
{
    CUmodule module;
    CUfunction function;
    assert_success(cuModuleLoadData(&module, ptx));
    assert_success(cuModuleGetFunction(&function, module, name));
    return function;
}

/* NUMBERS zeros on the device. */
static inline CUdeviceptr zeros(void)
{
    CUdeviceptr p;
    assert_success(cuMemAlloc_v2(&p, NUMBERS * sizeof(uint32_t)));
    assert_success(cuMemsetD32_v2(p, 0, NUMBERS));
    return p;
}

static inline uint32_t number(CUdeviceptr p, size_t index)
{
    uint32_t value;
    assert_success(cuMemcpyDtoH_v2(&value, p + index * sizeof value, sizeof value));
    return value;
}

static inline CUresult add(CUfunction function, CUstream stream, CUdeviceptr p, uint32_t value)
{
    void *params[] = { &p, &value };
    return cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, stream, params, NULL);
}

#endif
