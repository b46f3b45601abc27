#include "engine.h"

static CUresult enqueue_attention(engine *e)
{
    return decode_gqa_flash_decoding_d64_h4_kv2_s320_m4_c64_f16_launch(
        &e->kernels, e->stream, e->batch.o, e->batch.partials, e->batch.counters, e->batch.q,
        e->batch.keys, e->batch.values, e->batch.seq_lens, e->batch.sequences);
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

static CUresult upload(engine *e, const void *content, size_t bytes, CUdeviceptr *address)
{
    TRY(engine_allocate(e, address, bytes));
    return e->cuda.cuMemcpyHtoD_v2(*address, content, bytes);
}

CUresult engine_open_batch(engine *e, const batch *b)
{
    enum { PARTIALS = 1, COUNTERS = 2 }; /* parameter indices */
    uint32_t sequences[SEQUENCES];
    TRY(engine_allocate(e, &e->batch.o, sizeof b->q));
    TRY(engine_allocate(e, &e->batch.seq_lens, sizeof b->seq_lens));
    TRY(allocate_scratch(e, PARTIALS, &e->batch.partials));
    TRY(allocate_scratch(e, COUNTERS, &e->batch.counters));
    for (uint32_t s = 0; s < SEQUENCES; s++)
        sequences[s] = s;
    TRY(upload(e, b->q, sizeof b->q, &e->batch.q));
    TRY(upload(e, b->keys, sizeof b->keys, &e->batch.keys));
    TRY(upload(e, b->values, sizeof b->values, &e->batch.values));
    TRY(upload(e, sequences, sizeof sequences, &e->batch.sequences));
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
