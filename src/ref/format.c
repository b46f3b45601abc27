#include "ref/format.h"

const format_info formats[FORMAT_COUNT] = {
    [FORMAT_NONE] = { "none", 1, 0, 1 },      [FORMAT_F32] = { "f32", 1, 4, 4 },
    [FORMAT_F16] = { "f16", 1, 2, 2 },        [FORMAT_BF16] = { "bf16", 1, 2, 2 },
    [FORMAT_U32] = { "u32", 1, 4, 4 },        [FORMAT_ADDRESS] = { "address", 1, 8, 8 },
    [FORMAT_Q4_0] = { "q4_0", 32, 18, 2 },    [FORMAT_Q5_0] = { "q5_0", 32, 22, 2 },
    [FORMAT_Q8_0] = { "q8_0", 32, 34, 2 },    [FORMAT_Q8_1] = { "q8_1", 32, 36, 4 },
    [FORMAT_Q4_K] = { "q4_k", 256, 144, 16 }, [FORMAT_Q6_K] = { "q6_k", 256, 210, 2 },
};

uint64_t format_bytes(format f, uint64_t values)
{
    return values / formats[f].block_values * formats[f].block_bytes;
}
