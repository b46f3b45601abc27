/* Element formats: what a kernel's buffers hold, and how many bytes that takes. */
#ifndef PTXGEN_REF_FORMAT_H
#define PTXGEN_REF_FORMAT_H

#include <stdint.h>

typedef enum format {
    FORMAT_NONE,
    FORMAT_F32,
    FORMAT_F16,
    FORMAT_BF16, /* the upper half of an f32 */
    FORMAT_U32,
    FORMAT_ADDRESS, /* a pointer into device memory */
    FORMAT_Q4_0,
    FORMAT_Q5_0,
    FORMAT_Q8_0,
    FORMAT_Q8_1,
    FORMAT_Q4_K,
    FORMAT_Q6_K,
    FORMAT_COUNT
} format;

typedef struct format_info {
    const char *name; /* as in headers, manifests and messages: "q4_K" of ggml is "q4_k" here */
    unsigned block_values; /* values that are stored together */
    unsigned block_bytes;
    unsigned alignment; /* of a block in an array that starts aligned to 16 bytes or more */
} format_info;

/* Indexed by format. */
extern const format_info formats[FORMAT_COUNT];

/* Bytes of a number of values, a multiple of the block. */
uint64_t format_bytes(format f, uint64_t values);

#endif
