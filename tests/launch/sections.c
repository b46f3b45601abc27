/* A program that loads one kernel. USE_PIPELINE adds a pipeline's kernels, USE_ALL all kernels, and
 * USE_ALIAS uses the alias of variant = auto instead. Without a driver every call must fail. */
#include "fake_cuda.h"

#define ENGINE_KERNELS_IMPLEMENTATION
#define ENGINE_WITH_CUDA
#include "engine_kernels.h"

engine_cuda cuda; /* not static, so that compilers must assume it is not empty */

int main(void)
{
#ifdef USE_ALIAS
    return engine_q4k_gemv_k4096_n2048_auto_load(&cuda, NULL) != CUDA_ERROR_NOT_INITIALIZED ||
           engine_q4k_gemv_k4096_n2048_auto_launch(&cuda, NULL, 4, 16, 32) !=
               CUDA_ERROR_INVALID_HANDLE;
#else
    if (engine_mwv_q4k_gemv_k512_n7_w4_load(&cuda, NULL) != CUDA_ERROR_NOT_INITIALIZED ||
        engine_mwv_q4k_gemv_k512_n7_w4_launch(&cuda, NULL, 4, 16, 32) != CUDA_ERROR_INVALID_HANDLE)
        return 1;
#ifdef USE_PIPELINE
    if (engine_qkv_k512_n256_kv64_load(&cuda, NULL) != CUDA_ERROR_NOT_INITIALIZED ||
        engine_qkv_k512_n256_kv64_launch(&cuda, NULL, 16, 16, 16, 16, 16, 16, 16, 16,
                                         ENGINE_QKV_K512_N256_KV64_WORKSPACE) !=
            CUDA_ERROR_INVALID_HANDLE)
        return 2;
#endif
#ifdef USE_ALL
    if (engine_load_all(&cuda, NULL) != CUDA_ERROR_NOT_INITIALIZED)
        return 3;
#endif
    return 0;
#endif
}
