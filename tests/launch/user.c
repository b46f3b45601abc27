/* A program with two generated headers that knows CUDA's types from FAKE_CUDA or, where that is not
 * defined, lets the headers include <cuda.h>. It links no libcuda and starts where there is none.
 */
#include <dlfcn.h>

#ifdef FAKE_CUDA
#include "fake_cuda.h"
#endif

#include "engine_kernels.h" /* without launch functions */
#define ENGINE_KERNELS_IMPLEMENTATION
#define ENGINE_WITH_CUDA
#include "engine_kernels.h"
#define PTXGEN_KERNELS_IMPLEMENTATION
#define PTXGEN_WITH_CUDA
#include "ptxgen_kernels.h"

int main(void)
{
    static engine_cuda engine;
    static ptxgen_cuda other;
    void *program = dlopen(NULL, RTLD_NOW);
    CUdeviceptr y = 256, w = 512, x = 1024;
    ptxgen_query query;
    memset(&query, 0, sizeof query);
    query.k = 999;
    if (engine_cuda_init(&engine, dlsym, program) != CUDA_ERROR_NOT_FOUND ||
        ptxgen_cuda_init(&other, dlsym, program) != CUDA_ERROR_NOT_FOUND)
        return 1;
    if (engine_load_all(&engine, NULL) != CUDA_ERROR_NOT_INITIALIZED ||
        engine_mwv_q4k_gemv_w4_dynamic_launch(&engine, NULL, y, w, x, 256, 1) !=
            CUDA_ERROR_INVALID_HANDLE)
        return 2;
    if (engine_qkv_k512_n256_kv64_load(&engine, NULL) != CUDA_ERROR_NOT_INITIALIZED ||
        engine_qkv_k512_n256_kv64_launch(&engine, NULL, y, y, y, w, w, w, x, x) !=
            CUDA_ERROR_INVALID_HANDLE)
        return 3;
    if (engine_explain_miss(&query, NULL, 0) == 0 || engine_find_pipeline(&query))
        return 4;
    return ptxgen_unload(&other) != CUDA_SUCCESS;
}
