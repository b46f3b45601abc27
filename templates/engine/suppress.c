#include "suppress.h"

#include <stdlib.h>

ptxgen_result choose_other(const model_decoder *decoder, ptxgen_stream stream, const tokenizer *t,
                           uint32_t *token)
{
    const size_t count = (size_t)model_plan.vocab;
    float *logits = malloc(count * sizeof *logits), most = 0;
    ptxgen_result result = PTXGEN_CUDA_ERROR_OUT_OF_MEMORY;
    if (logits)
        result = decoder->driver->copy_to_host(logits, model_logits(decoder),
                                               count * sizeof *logits, stream);
    if (result == PTXGEN_CUDA_SUCCESS)
        result = decoder->driver->stream_synchronize(stream);
    *token = UINT32_MAX;
    for (uint32_t i = 0; result == PTXGEN_CUDA_SUCCESS && i < count; i++)
        if (!tokenizer_is_suppressed(t, i) && (*token == UINT32_MAX || logits[i] > most)) {
            most = logits[i];
            *token = i;
        }
    free(logits);
    return result;
}
