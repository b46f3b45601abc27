/* Loads all kernels of a model's steps and creates a model without weights, on an emulated GPU.
 *
 * Prints the target of the emulated device, e.g. sm_90. */
#include <stdbool.h>
#include <stdint.h>

#define PROGRAM "create_model"
#include "loaded_model.h"

/* Allocates a piece of the model's memory. The weights of a real model do not fit, and nothing
 * reads them, so they get an address without memory. */
static CUdeviceptr allocate(void *user, uint64_t bytes, ptxgen_piece piece)
{
    CUdeviceptr address = 0;
    (void)user;
    if (piece == PTXGEN_IN_WEIGHTS || piece == PTXGEN_IN_HOST)
        return PTXGEN_PIECE_ALIGNMENT;
    return cuMemAlloc_v2(&address, bytes) == CUDA_SUCCESS ? address : 0;
}

int main(void)
{
    const ptxgen_memory memory = { .allocate = allocate };
    static model_cuda cuda;
    static model_decoder model;
    if (!open_device(&cuda))
        return 2;
    if (model_create(&model, &cuda, &memory) != CUDA_SUCCESS)
        return 1;
    printf("sm_%u\n", cuda.driver.sm);
    return model_destroy(&model) != CUDA_SUCCESS;
}
