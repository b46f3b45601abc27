#include "engine.h"

static CUresult enqueue_attention(engine *e)
{
    return decode_flash_decoding_d64_h4_kv2_s320_m4_c128_f16_launch(
        &e->kernels, e->stream, e->batch.o, e->batch.q, e->batch.keys, e->batch.values,
        e->batch.seq_lens, e->batch.workspace);
}

/* The caches, one behind the other here, and an array of their addresses. */
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
    const size_t workspace = DECODE_FLASH_DECODING_D64_H4_KV2_S320_M4_C128_F16_WORKSPACE;
    TRY(engine_allocate(e, &e->batch.o, sizeof b->q));
    TRY(engine_allocate(e, &e->batch.q, sizeof b->q));
    TRY(engine_allocate(e, &e->batch.seq_lens, sizeof b->seq_lens));
    TRY(engine_allocate(e, &e->batch.workspace, workspace));
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
