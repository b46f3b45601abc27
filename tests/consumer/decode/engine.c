#define DECODE_KERNELS_IMPLEMENTATION
#include "engine.h"

#include <dlfcn.h>
#include <stdio.h>

/* add(x, y): x[i] += y[i]. An engine may use its own kernels beside the generated ones. */
static const char ADD[] = ".version 6.3\n"
                          ".target sm_75\n"
                          ".address_size 64\n"
                          ".visible .entry add(.param .u64 x, .param .u64 y)\n"
                          "{\n"
                          "    .reg .b32 %r<2>; .reg .b64 %rd<5>; .reg .f32 %f<4>;\n"
                          "    ld.param.u64 %rd1, [x];\n"
                          "    ld.param.u64 %rd2, [y];\n"
                          "    mov.u32 %r1, %tid.x;\n"
                          "    mad.wide.u32 %rd3, %r1, 4, %rd1;\n"
                          "    mad.wide.u32 %rd4, %r1, 4, %rd2;\n"
                          "    ld.global.f32 %f1, [%rd3];\n"
                          "    ld.global.f32 %f2, [%rd4];\n"
                          "    add.f32 %f3, %f1, %f2;\n"
                          "    st.global.f32 [%rd3], %f3;\n"
                          "    ret;\n"
                          "}\n";

/* Large enough for both pipelines. */
#define WORKSPACE PTXGEN_MAX(DECODE_QKV_K256_N256_KV128_WORKSPACE, DECODE_DP4A_K512_N256_WORKSPACE)

static CUresult add(engine *e, CUdeviceptr x, CUdeviceptr y)
{
    void *arguments[] = { &x, &y };
    return e->cuda.cuLaunchKernel(e->add, 1, 1, 1, HIDDEN, 1, 1, 0, e->stream, arguments, NULL);
}

static CUresult enqueue_before_cache(engine *e)
{
    const CUdeviceptr *w = e->weights;
    return decode_qkv_k256_n256_kv128_launch(&e->kernels, e->stream, e->q, e->k, e->v, w[Q], w[K],
                                             w[V], e->x, e->workspace, WORKSPACE);
}

static CUresult enqueue_after_cache(engine *e)
{
    const decode_cuda *kernels = &e->kernels;
    const CUdeviceptr *w = e->weights;
    TRY(decode_incremental_attention_d64_h4_kv2_s64_indirect_launch(
        kernels, e->stream, e->mixed, e->q, e->keys, e->values, e->seq_len));
    TRY(decode_stream_gemv_q4k_k256_n256_m1_w12_r2_residual_launch(kernels, e->stream, e->attended,
                                                                   w[OUTPUT], e->mixed, e->x));

    TRY(decode_q8_1_quantize_k256_m1_w4_launch(kernels, e->stream, e->x8, e->attended));
    TRY(decode_fused_gate_up_swiglu_hw_dp4a_q4k_gemv_k256_n512_w4_launch(
        kernels, e->stream, e->gated, w[GATE], w[UP], e->x8));
    TRY(decode_dp4a_k512_n256_launch(kernels, e->stream, e->x, w[DOWN], e->gated, e->workspace,
                                     WORKSPACE));
    TRY(add(e, e->x, e->attended));

    void *arguments[] = { &e->logits, &e->weights[WORD], &e->x, &e->gamma };
    return ptxgen_launch(&e->kernels.driver, decode_loaded(&e->kernels, e->words), e->stream,
                         arguments, sizeof arguments / sizeof *arguments);
}

/* Copies rows to their position in a cache [kv_head][position][head_dim], one row per KV head. */
static CUresult cache(engine *e, CUdeviceptr rows, CUdeviceptr to, unsigned position)
{
    const CUDA_MEMCPY2D copy = {
        .srcMemoryType = CU_MEMORYTYPE_DEVICE,
        .srcDevice = rows,
        .srcPitch = HEAD_DIM * sizeof(float),
        .dstMemoryType = CU_MEMORYTYPE_DEVICE,
        .dstDevice = to + position * HEAD_DIM * sizeof(float),
        .dstPitch = MAX_SEQ_LEN * HEAD_DIM * sizeof(float),
        .WidthInBytes = HEAD_DIM * sizeof(float),
        .Height = KV_HEADS,
    };
    return e->cuda.cuMemcpy2DAsync_v2(&copy, e->stream);
}

CUresult engine_step(engine *e, unsigned position, float x[HIDDEN], float logits[WORDS])
{
    const driver_api *cuda = &e->cuda;
    uint32_t seq_len = position + 1;
    TRY(cuda->cuMemcpyHtoD_v2(e->x, x, HIDDEN * sizeof *x));
    TRY(cuda->cuMemcpyHtoD_v2(e->seq_len, &seq_len, sizeof seq_len));
    TRY(cuda->cuGraphLaunch(e->before_cache, e->stream));
    TRY(cache(e, e->k, e->keys, position));
    TRY(cache(e, e->v, e->values, position));
    TRY(cuda->cuGraphLaunch(e->after_cache, e->stream));
    TRY(cuda->cuStreamSynchronize(e->stream));
    TRY(cuda->cuMemcpyDtoH_v2(x, e->x, HIDDEN * sizeof *x));
    return cuda->cuMemcpyDtoH_v2(logits, e->logits, WORDS * sizeof *logits);
}

CUresult engine_capture(engine *e, CUresult (*enqueue)(engine *), CUgraphExec *exec)
{
    const driver_api *cuda = &e->cuda;
    CUgraph graph;
    TRY(cuda->cuStreamBeginCapture_v2(e->stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
    CUresult enqueued = enqueue(e), ended = cuda->cuStreamEndCapture(e->stream, &graph);
    TRY(enqueued);
    TRY(ended);
    CUresult result = cuda->cuGraphInstantiateWithFlags(exec, graph, 0);
    cuda->cuGraphDestroy(graph);
    return result;
}

CUresult engine_allocate(engine *e, CUdeviceptr *buffer, size_t bytes)
{
    if (e->buffer_count == MOST_BUFFERS)
        return CUDA_ERROR_OUT_OF_MEMORY;
    TRY(e->cuda.cuMemAlloc_v2(buffer, bytes));
    e->buffers[e->buffer_count++] = *buffer;
    return CUDA_SUCCESS;
}

static CUresult allocate_buffers(engine *e)
{
    const size_t cache_bytes = (size_t)KV_HEADS * MAX_SEQ_LEN * HEAD_DIM * sizeof(float);
    const size_t x8_bytes = (size_t)decode_q8_1_quantize_k256_m1_w4.params[0].bytes;
    const struct {
        CUdeviceptr *buffer;
        size_t bytes;
    } wanted[] = {
        { &e->x, HIDDEN * sizeof(float) },
        { &e->q, HIDDEN * sizeof(float) },
        { &e->k, KV * sizeof(float) },
        { &e->v, KV * sizeof(float) },
        { &e->keys, cache_bytes },
        { &e->values, cache_bytes },
        { &e->mixed, HIDDEN * sizeof(float) },
        { &e->attended, HIDDEN * sizeof(float) },
        { &e->x8, x8_bytes },
        { &e->gated, FEED_FORWARD * sizeof(float) },
        { &e->workspace, WORKSPACE },
        { &e->logits, WORDS * sizeof(float) },
        { &e->seq_len, sizeof(uint32_t) },
        { &e->gamma, HIDDEN * sizeof(float) },
    };
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++)
        TRY(engine_allocate(e, wanted[i].buffer, wanted[i].bytes));
    return CUDA_SUCCESS;
}

static CUresult upload(engine *e, const model *m)
{
    for (int i = 0; i < MATRICES; i++) {
        TRY(engine_allocate(e, &e->weights[i], m->bytes[i]));
        TRY(e->cuda.cuMemcpyHtoD_v2(e->weights[i], m->blocks[i], m->bytes[i]));
    }
    return e->cuda.cuMemcpyHtoD_v2(e->gamma, m->gamma, sizeof m->gamma);
}

/* Looks up the kernel of the logits, as an engine does if only the model file gives the shape. */
static CUresult find_words(engine *e)
{
    const ptxgen_query query = { .op = PTXGEN_RMSNORM_GEMV,
                                 .weights = PTXGEN_Q4_K,
                                 .k = HIDDEN,
                                 .n = WORDS,
                                 .sm = e->kernels.driver.sm };
    char text[256];
    e->words = decode_find(&query);
    if (e->words)
        return CUDA_SUCCESS;
    decode_explain_miss(&query, text, sizeof text);
    fprintf(stderr, "%s\n", text);
    return CUDA_ERROR_NOT_FOUND;
}

static CUresult load_generated(decode_cuda *kernels, const ptxgen_kernel *found,
                               ptxgen_load_error *error)
{
    TRY(decode_qkv_k256_n256_kv128_load(kernels, error));
    TRY(decode_incremental_attention_d64_h4_kv2_s64_indirect_load(kernels, error));
    TRY(decode_stream_gemv_q4k_k256_n256_m1_w12_r2_residual_load(kernels, error));
    TRY(decode_q8_1_quantize_k256_m1_w4_load(kernels, error));
    TRY(decode_fused_gate_up_swiglu_hw_dp4a_q4k_gemv_k256_n512_w4_load(kernels, error));
    TRY(decode_dp4a_k512_n256_load(kernels, error));
    TRY(decode_gqa_flash_decoding_d64_h4_kv2_s320_m4_c64_f16_load(kernels, error));
    return decode_load(kernels, found, error);
}

static CUresult load_kernels(engine *e)
{
    ptxgen_load_error error;
    TRY(e->cuda.cuModuleLoadData(&e->own, ADD));
    TRY(e->cuda.cuModuleGetFunction(&e->add, e->own, "add"));
    TRY(decode_cuda_init(&e->kernels, dlsym, e->cuda.library));
    TRY(find_words(e));
    CUresult result = load_generated(&e->kernels, e->words, &error);
    if (result != CUDA_SUCCESS)
        fprintf(stderr, "%s: %s\n", error.kernel->name, error.log);
    return result;
}

CUresult engine_open(engine *e, const model *m, char *name, int name_size)
{
    const driver_api *cuda = &e->cuda;
    CUcontext context;
    TRY(cuda->cuInit(0));
    TRY(cuda->cuDeviceGet(&e->device, 0));
    TRY(cuda->cuDeviceGetName(name, name_size, e->device));
    TRY(cuda->cuDevicePrimaryCtxRetain(&context, e->device));
    TRY(cuda->cuCtxSetCurrent(context));
    TRY(cuda->cuStreamCreate(&e->stream, CU_STREAM_NON_BLOCKING));
    TRY(load_kernels(e));
    TRY(allocate_buffers(e));
    TRY(upload(e, m));
    TRY(engine_capture(e, enqueue_before_cache, &e->before_cache));
    return engine_capture(e, enqueue_after_cache, &e->after_cache);
}

void engine_close(engine *e)
{
    const driver_api *cuda = &e->cuda;
    cuda->cuGraphExecDestroy(e->before_cache);
    cuda->cuGraphExecDestroy(e->after_cache);
    cuda->cuGraphExecDestroy(e->batch.attend);
    for (unsigned i = 0; i < e->buffer_count; i++)
        cuda->cuMemFree_v2(e->buffers[i]);
    decode_unload(&e->kernels);
    cuda->cuModuleUnload(e->own);
    cuda->cuStreamDestroy_v2(e->stream);
    cuda->cuDevicePrimaryCtxRelease_v2(e->device);
}
