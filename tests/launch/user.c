/* A program with generated headers. It gets CUDA's types
 *
 *   from a stand-in for <cuda.h>, included before the headers     BEFORE
 *   from the <cuda.h> that the headers find                       if the compiler finds it
 *   from the headers                                              otherwise
 *
 * and in the last case may include a <cuda.h> after them (BEHIND). It does not link libcuda and
 * starts without it. */
#include <dlfcn.h>

#ifdef BEFORE
#include BEFORE
#endif

#include "engine_kernels.h" /* without launch functions */
#define ENGINE_KERNELS_IMPLEMENTATION
#define ENGINE_WITH_CUDA
#include "engine_kernels.h"
#define PTXGEN_KERNELS_IMPLEMENTATION
#define PTXGEN_WITH_CUDA
#include "ptxgen_kernels.h"
#ifdef DECODER
#include "toy_kernels.h"
#define TOY_KERNELS_IMPLEMENTATION
#define TOY_WITH_CUDA
#include "toy_kernels.h"
#endif

#ifdef BEHIND
#ifdef CUDA_VERSION
#error "the headers found a cuda.h: BEHIND is only for systems without one"
#endif
#include BEHIND
#endif

#include "Engine_kernels.h" /* has its own prefix */

#ifdef CUDA_VERSION
/* Numbers and sizes must be those of cuda.h. */
#define SAME(name, ours, theirs) typedef char name[(long)(ours) == (long)(theirs) ? 1 : -1]
SAME(success, PTXGEN_CUDA_SUCCESS, CUDA_SUCCESS);
SAME(invalid_value, PTXGEN_CUDA_ERROR_INVALID_VALUE, CUDA_ERROR_INVALID_VALUE);
SAME(out_of_memory, PTXGEN_CUDA_ERROR_OUT_OF_MEMORY, CUDA_ERROR_OUT_OF_MEMORY);
SAME(not_initialized, PTXGEN_CUDA_ERROR_NOT_INITIALIZED, CUDA_ERROR_NOT_INITIALIZED);
SAME(invalid_image, PTXGEN_CUDA_ERROR_INVALID_IMAGE, CUDA_ERROR_INVALID_IMAGE);
SAME(no_binary, PTXGEN_CUDA_ERROR_NO_BINARY_FOR_GPU, CUDA_ERROR_NO_BINARY_FOR_GPU);
SAME(invalid_handle, PTXGEN_CUDA_ERROR_INVALID_HANDLE, CUDA_ERROR_INVALID_HANDLE);
SAME(not_found, PTXGEN_CUDA_ERROR_NOT_FOUND, CUDA_ERROR_NOT_FOUND);
SAME(sms, PTXGEN_CU_MULTIPROCESSOR_COUNT, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
SAME(major, PTXGEN_CU_COMPUTE_CAPABILITY_MAJOR, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
SAME(minor, PTXGEN_CU_COMPUTE_CAPABILITY_MINOR, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
SAME(optin, PTXGEN_CU_SHARED_MEMORY_A_BLOCK_OPTIN,
     CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN);
SAME(dynamic_shared, PTXGEN_CU_MAX_DYNAMIC_SHARED, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES);
SAME(jit_log, PTXGEN_CU_JIT_ERROR_LOG, CU_JIT_ERROR_LOG_BUFFER);
SAME(jit_log_size, PTXGEN_CU_JIT_ERROR_LOG_SIZE, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES);
SAME(result_size, sizeof(ptxgen_result), sizeof(CUresult));
SAME(deviceptr_size, sizeof(ptxgen_deviceptr), sizeof(CUdeviceptr));
SAME(stream_size, sizeof(ptxgen_stream), sizeof(CUstream));
SAME(device_size, sizeof(ptxgen_device), sizeof(CUdevice));
SAME(attribute_size, sizeof(ptxgen_device_attribute), sizeof(CUdevice_attribute));
SAME(option_size, sizeof(ptxgen_jit_option), sizeof(CUjit_option));
#if defined(__cuda_cuda_h__) && CUDA_VERSION >= 11080 /* a real cuda.h that is new enough */
SAME(serialization, PTXGEN_CU_PROGRAMMATIC_STREAM_SERIALIZATION,
     CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION);
SAME(config_size, sizeof(ptxgen_launch_config), sizeof(CUlaunchConfig));
SAME(config_stream, offsetof(ptxgen_launch_config, hStream), offsetof(CUlaunchConfig, hStream));
SAME(config_attributes, offsetof(ptxgen_launch_config, attrs), offsetof(CUlaunchConfig, attrs));
SAME(config_count, offsetof(ptxgen_launch_config, numAttrs), offsetof(CUlaunchConfig, numAttrs));
SAME(launch_attribute_size, sizeof(ptxgen_launch_attribute), sizeof(CUlaunchAttribute));
SAME(launch_attribute_value, offsetof(ptxgen_launch_attribute, value),
     offsetof(CUlaunchAttribute, value));
#endif
#endif

#ifdef DECODER
static ptxgen_deviceptr no_memory(void *user, uint64_t bytes, ptxgen_piece piece)
{
    *(uint64_t *)user += bytes + piece;
    return 0;
}

/* Calls every function of a decoder. All must fail, since there is no driver. */
static int use_decoder(void *program)
{
    static toy_cuda cuda;
    static toy_decoder model;
    const ptxgen_tensor *tensor = toy_find_tensor("token_embd.weight");
    uint64_t asked = 0;
    uint32_t token = 0, position = 0;
    float logit = 0;
    toy_batch batch;
    ptxgen_memory memory;
    model.no_overlap = 1;
    ptxgen_stream stream = NULL;
    memset(&memory, 0, sizeof memory);
    memory.allocate = no_memory;
    memory.user = &asked;
    if (toy_cuda_init(&cuda, dlsym, program) != PTXGEN_CUDA_ERROR_NOT_FOUND ||
        toy_create(&model, &cuda, &memory) != PTXGEN_CUDA_ERROR_NOT_INITIALIZED || asked)
        return 1;
    if (toy_find_tensor(NULL) || !tensor || tensor != &toy_tensors[0] || tensor->bytes != 64 ||
        toy_tensor_count != 5 || toy_plan.bytes[PTXGEN_IN_HOST] != 256)
        return 2;
    if (toy_load_tensor(&model, tensor, &token, 4) == PTXGEN_CUDA_SUCCESS ||
        toy_prompt(&model, stream, &token, 1) == PTXGEN_CUDA_SUCCESS ||
        toy_step(&model, stream) == PTXGEN_CUDA_SUCCESS ||
        toy_step_of(&model, 4, stream) == PTXGEN_CUDA_SUCCESS ||
        toy_rows(&model, stream, 1, &token, &position) == PTXGEN_CUDA_SUCCESS ||
        toy_seek(&model, stream, 0) == PTXGEN_CUDA_SUCCESS ||
        toy_sampling(&model, stream, 0, 0, 1, 0, 1) == PTXGEN_CUDA_SUCCESS ||
        toy_sampling_of(&model, stream, 0, 0, 0, 1, 0, 1) == PTXGEN_CUDA_SUCCESS ||
        toy_token(&model, stream, &token) == PTXGEN_CUDA_SUCCESS ||
        toy_tokens(&model, stream, &token, 1) == PTXGEN_CUDA_SUCCESS ||
        toy_assign(&model, stream, 0, 0) == PTXGEN_CUDA_SUCCESS || toy_logits(&model) != 0)
        return 3;
    if (toy_open(&model) >= 0 || toy_fork(&model, 0) >= 0 || toy_length(&model, 0) ||
        toy_unused_pages(&model) || toy_trim(&model, 0, 0) == PTXGEN_CUDA_SUCCESS ||
        toy_close(&model, 0) == PTXGEN_CUDA_SUCCESS ||
        toy_reserve(&model, stream, 0, 1) == PTXGEN_CUDA_SUCCESS ||
        toy_penalties(&model, stream, 0, 1, 0, 0, 0) == PTXGEN_CUDA_SUCCESS ||
        toy_biases(&model, stream, 0, &token, &logit, 1) == PTXGEN_CUDA_SUCCESS ||
        toy_batch_begin(&model, &batch) == PTXGEN_CUDA_SUCCESS ||
        toy_run(&batch, 0, &token, 1, PTXGEN_LOGITS_LAST) == PTXGEN_CUDA_SUCCESS ||
        toy_launch(&model, stream, &batch) == PTXGEN_CUDA_SUCCESS || toy_logits_of(&batch, 0))
        return 4;
    if (batch.m && (toy_sampled(&batch, stream, &token) != PTXGEN_CUDA_SUCCESS ||
                    toy_mask(&batch, stream, 0, NULL) != PTXGEN_CUDA_SUCCESS ||
                    toy_logprobs(&batch, stream, 0, &logit, NULL) != PTXGEN_CUDA_SUCCESS))
        return 5;
    return toy_destroy(&model) != PTXGEN_CUDA_SUCCESS;
}
#endif

int main(void)
{
    static engine_cuda engine;
    static ptxgen_cuda other;
    void *program = dlopen(NULL, RTLD_NOW);
    ptxgen_deviceptr y = 256, w = 512, x = 1024;
    ptxgen_query query;
#if defined(CUDA_VERSION) && !defined(BEHIND)
    CUresult result = engine_cuda_init(&engine, dlsym, program); /* both types are the same */
    CUdeviceptr *address = &y;
    CUstream stream = NULL;
#else
    ptxgen_result result = engine_cuda_init(&engine, dlsym, program);
    ptxgen_deviceptr *address = &y;
    ptxgen_stream stream = NULL;
#endif
#ifdef DECODER
    if (use_decoder(program))
        return 10;
#endif
    memset(&query, 0, sizeof query);
    query.k = 999;
    if (result != PTXGEN_CUDA_ERROR_NOT_FOUND ||
        ptxgen_cuda_init(&other, dlsym, program) != PTXGEN_CUDA_ERROR_NOT_FOUND)
        return 1;
    if (engine_load_all(&engine, NULL) != PTXGEN_CUDA_ERROR_NOT_INITIALIZED ||
        engine_mwv_q4k_gemv_w4_dynamic_launch(&engine, stream, *address, w, x, 256, 1) !=
            PTXGEN_CUDA_ERROR_INVALID_HANDLE)
        return 2;
    if (engine_qkv_k512_n256_kv64_load(&engine, NULL) != PTXGEN_CUDA_ERROR_NOT_INITIALIZED ||
        engine_qkv_k512_n256_kv64_launch(&engine, stream, y, y, y, w, w, w, x, x,
                                         ENGINE_QKV_K512_N256_KV64_WORKSPACE) !=
            PTXGEN_CUDA_ERROR_INVALID_HANDLE)
        return 3;
    if (engine_explain_miss(&query, NULL, 0) == 0 || engine_find_pipeline(&query))
        return 4;
    if (strcmp(PTXGEN_LAUNCH_KERNEL, WANTED_LAUNCH) != 0 || Engine_kernels[0] == engine_kernels[0])
        return 5;
    if (!strstr(PTXGEN_LAUNCH_KERNEL_EX, "_ptsz") != !strstr(WANTED_LAUNCH, "_ptsz"))
        return 6;
    return ptxgen_unload(&other) != PTXGEN_CUDA_SUCCESS;
}
