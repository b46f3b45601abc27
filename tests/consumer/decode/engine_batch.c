#include "engine.h"

static CUresult enqueue_attention(engine *e)
{
    return decode_gqa_flash_decoding_d64_h4_kv2_s320_m4_c64_f16_launch(
        &e->kernels, e->stream, e->batch.o, e->batch.partials, e->batch.counters, e->batch.q,
        e->batch.keys, e->batch.values, e->batch.seq_lens);
}

/* Allocates a scratch buffer of the kernel, given by its parameter's index. Zeroes it if needed. */
static CUresult allocate_scratch(engine *e, size_t index, CUdeviceptr *address)
{
    const ptxgen_param *p = &decode_gqa_flash_decoding_d64_h4_kv2_s320_m4_c64_f16.params[index];
    TRY(engine_allocate(e, address, (size_t)p->bytes));
    return p->direction == PTXGEN_PARAM_ZEROED
               ? e->cuda.cuMemsetD8_v2(*address, 0, (size_t)p->bytes)
               : CUDA_SUCCESS;
}

/* Uploads the caches into one allocation, and an array of their addresses. */
static CUresult upload_caches(engine *e, const uint16_t caches[SEQUENCES][CACHE],
                              CUdeviceptr *addresses)
{
    const size_t bytes = CACHE * sizeof(uint16_t);
    CUdeviceptr first, each[SEQUENCES];
    TRY(engine_allocate(e, &first, SEQUENCES * bytes));
    TRY(e->cuda.cuMemcpyHtoD_v2(first, caches, SEQUENCES * bytes));
    for (int s = 0; s < SEQUENCES; s++)
        each[s] = first + (size_t)s * bytes;
    TRY(engine_allocate(e, addresses, sizeof each));
    return e->cuda.cuMemcpyHtoD_v2(*addresses, each, sizeof each);
}

CUresult engine_open_batch(engine *e, const batch *b)
{
    enum { PARTIALS = 1, COUNTERS = 2 }; /* parameter indices */
    TRY(engine_allocate(e, &e->batch.o, sizeof b->q));
    TRY(engine_allocate(e, &e->batch.q, sizeof b->q));
    TRY(engine_allocate(e, &e->batch.seq_lens, sizeof b->seq_lens));
    TRY(allocate_scratch(e, PARTIALS, &e->batch.partials));
    TRY(allocate_scratch(e, COUNTERS, &e->batch.counters));
    TRY(e->cuda.cuMemcpyHtoD_v2(e->batch.q, b->q, sizeof b->q));
    TRY(upload_caches(e, b->keys, &e->batch.keys));
    TRY(upload_caches(e, b->values, &e->batch.values));
    return engine_capture(e, enqueue_attention, &e->batch.attend);
}

CUresult engine_attend(engine *e, const uint32_t seq_lens[SEQUENCES], float o[SEQUENCES][HIDDEN])
{
    const driver_api *cuda = &e->cuda;
    TRY(cuda->cuMemcpyHtoD_v2(e->batch.seq_lens, seq_lens, SEQUENCES * sizeof *seq_lens));
    TRY(cuda->cuGraphLaunch(e->batch.attend, e->stream));
    TRY(cuda->cuStreamSynchronize(e->stream));
    return cuda->cuMemcpyDtoH_v2(o, e->batch.o, SEQUENCES * sizeof *o);
}
