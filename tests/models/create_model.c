/* Loads all kernels of a model's steps, and makes a model without weights, as one GPU or another.
 *
 * Prints the compute capability of the emulated device, times ten.
 */
#include <dlfcn.h>
#include <stdio.h>

#include "libcuda/api.h"

#define MODEL_WITH_CUDA
#define MODEL_KERNELS_IMPLEMENTATION
#include "model_kernels.h"

static void report(void *context, const char *why)
{
    (void)context;
    fprintf(stderr, "create_model: %s\n", why);
}

/* Weights of a real model have no room here, and nothing is done with them: an address that nobody
 * has. */
static CUdeviceptr allocate(void *user, uint64_t bytes, ptxgen_piece piece)
{
    CUdeviceptr address = 0;
    (void)user;
    if (piece == PTXGEN_IN_WEIGHTS)
        return PTXGEN_PIECE_ALIGNMENT;
    return cuMemAlloc_v2(&address, bytes) == CUDA_SUCCESS ? address : 0;
}

int main(void)
{
    const ptxgen_memory memory = { allocate, NULL, NULL };
    CUdevice device;
    CUcontext context;
    static model_cuda cuda;
    static model_decoder model;
    if (cuInit(0) || cuDeviceGet(&device, 0) || cuDevicePrimaryCtxRetain(&context, device) ||
        cuCtxSetCurrent(context) || model_cuda_init(&cuda, dlsym, dlopen("libcuda.so.1", RTLD_NOW)))
        return 2;
    cuda.driver.report = report;
    if (model_create(&model, &cuda, &memory) != CUDA_SUCCESS)
        return 1;
    printf("sm_%u\n", cuda.driver.sm);
    return model_destroy(&model) != CUDA_SUCCESS;
}
