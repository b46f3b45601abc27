/* Loads all kernels of a model's steps, and makes a model without weights, as one GPU or another.
 *
 * Prints the compute capability of the emulated device, times ten.
 */
#include <stdbool.h>
#include <stdint.h>

#define PROGRAM "create_model"
#include "loaded_model.h"

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
    static model_cuda cuda;
    static model_decoder model;
    if (!open_device(&cuda))
        return 2;
    if (model_create(&model, &cuda, &memory) != CUDA_SUCCESS)
        return 1;
    printf("sm_%u\n", cuda.driver.sm);
    return model_destroy(&model) != CUDA_SUCCESS;
}
