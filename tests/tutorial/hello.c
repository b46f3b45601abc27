/* The tutorial's program: multiplies a matrix and a vector by a generated kernel, and compares the
 * result with plain C. It links libcuda, which is the emulated one or a GPU's. */
#include <dlfcn.h>
#include <math.h>
#include <stdio.h>

#ifdef __has_include
#if __has_include(<cuda.h>)
#include <cuda.h>
#endif
#endif
#ifndef CUDA_VERSION /* CUDA is not installed: declares the part of its driver API that is used */
typedef unsigned CUresult;
typedef int CUdevice;
typedef struct CUctx_st *CUcontext;
typedef unsigned long long CUdeviceptr;
enum { CUDA_SUCCESS };
CUresult cuInit(unsigned flags);
CUresult cuDeviceGet(CUdevice *device, int ordinal);
CUresult cuDeviceGetName(char *name, int size, CUdevice device);
CUresult cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device);
CUresult cuCtxSetCurrent(CUcontext context);
CUresult cuMemAlloc_v2(CUdeviceptr *address, size_t size);
CUresult cuMemcpyHtoD_v2(CUdeviceptr to, const void *from, size_t size);
CUresult cuMemcpyDtoH_v2(void *to, CUdeviceptr from, size_t size);
#endif

#define LLAMA_WITH_CUDA
#define LLAMA_KERNELS_IMPLEMENTATION
#include "llama_kernels.h"

enum { K = 4096, N = 256 };
static float w[N][K], x[K], y[N];

static int failed(const char *what, CUresult result)
{
    if (result != CUDA_SUCCESS)
        fprintf(stderr, "%s: error %d\n", what, (int)result);
    return result != CUDA_SUCCESS;
}

static int multiply(llama_cuda *cuda, const ptxgen_kernel *kernel)
{
    CUdeviceptr device_w, device_x, device_y;
    ptxgen_load_error error;
    if (failed("memory", cuMemAlloc_v2(&device_w, sizeof w)) ||
        failed("memory", cuMemAlloc_v2(&device_x, sizeof x)) ||
        failed("memory", cuMemAlloc_v2(&device_y, sizeof y)) ||
        failed("copy", cuMemcpyHtoD_v2(device_w, w, sizeof w)) ||
        failed("copy", cuMemcpyHtoD_v2(device_x, x, sizeof x)))
        return 0;
    if (failed("load", llama_load(cuda, kernel, &error))) {
        fputs(error.log, stderr);
        return 0;
    }
    return !failed("launch",
                   llama_f32_gemv_k4096_n256_launch(cuda, NULL, device_y, device_w, device_x)) &&
           !failed("copy", cuMemcpyDtoH_v2(y, device_y, sizeof y));
}

static double worst_error(void)
{
    double worst = 0;
    for (int n = 0; n < N; n++) {
        double sum = 0;
        for (int k = 0; k < K; k++)
            sum += (double)w[n][k] * x[k];
        worst = fmax(worst, fabs(y[n] - sum));
    }
    return worst;
}

int main(void)
{
    for (int k = 0; k < K; k++) {
        x[k] = (float)(k % 17 - 8) / 7;
        for (int n = 0; n < N; n++)
            w[n][k] = (float)((k + 3 * n) % 29 - 14) / 11;
    }

    CUdevice device;
    CUcontext context;
    char name[64];
    llama_cuda cuda;
    if (failed("init", cuInit(0)) || failed("device", cuDeviceGet(&device, 0)) ||
        failed("name", cuDeviceGetName(name, sizeof name, device)) ||
        failed("context", cuDevicePrimaryCtxRetain(&context, device)) ||
        failed("context", cuCtxSetCurrent(context)) ||
        failed("entry points", llama_cuda_init(&cuda, dlsym, dlopen("libcuda.so.1", RTLD_NOW))))
        return 1;

    ptxgen_query query = {
        .op = PTXGEN_GEMV, .weights = PTXGEN_F32, .k = K, .n = N, .sm = cuda.driver.sm
    };
    const ptxgen_kernel *kernel = llama_find(&query);
    if (!kernel || !multiply(&cuda, kernel))
        return 1;
    printf("%s: %s, %d rows, worst error %.0e\n", name, kernel->name, N, worst_error());
    return worst_error() > 1e-3;
}
