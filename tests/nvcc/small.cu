// Values narrower than 16 bits: bytes and halves of words, 8-bit floats, and bits.
#include <cuda_fp16.h>
#include <cuda_fp8.h>
#include <mma.h>

using namespace nvcuda;

extern "C" __global__ void parts_of_words(unsigned *to, const unsigned *from, int count)
{
    int i = threadIdx.x;
    unsigned a = from[i], b = from[i + 1], *own = to + i * count;
    own[0] = __vabsdiffu4(a, b);
    own[1] = __vsadu4(a, b);
    own[2] = __vsadu2(a, b);
    own[3] = __vmaxs2(a, b);
    own[4] = __vminu2(a, b);
    own[5] = __vimax_s16x2_relu(a, b);
    own[6] = __vaddus4(a, b);
    own[7] = __vcmpgts4(a, b);
    own[8] = __vavgu4(a, b);
    own[9] = __fns(a, i, 3);
    own[10] = __vimin_s32_relu(a, b);
}

extern "C" __global__ void eighths(float *to, const float *from)
{
    int i = threadIdx.x;
    float2 pair = make_float2(from[2 * i], from[2 * i + 1]);
    __nv_fp8x2_storage_t e4m3 = __nv_cvt_float2_to_fp8x2(pair, __NV_SATFINITE, __NV_E4M3);
    __nv_fp8x2_storage_t e5m2 = __nv_cvt_float2_to_fp8x2(pair, __NV_SATFINITE, __NV_E5M2);
    float2 first = __half22float2(__half2(__nv_cvt_fp8x2_to_halfraw2(e4m3, __NV_E4M3)));
    float2 second = __half22float2(__half2(__nv_cvt_fp8x2_to_halfraw2(e5m2, __NV_E5M2)));
    to[4 * i] = first.x;
    to[4 * i + 1] = first.y;
    to[4 * i + 2] = second.x;
    to[4 * i + 3] = second.y;
}

// C [8, 8] counts the common bits of rows of A and B, 128 bits each.
extern "C" __global__ void common_bits(int *c, const unsigned *a, const unsigned *b)
{
    using namespace wmma::experimental;
    wmma::fragment<wmma::matrix_a, 8, 8, 128, precision::b1, wmma::row_major> left;
    wmma::fragment<wmma::matrix_b, 8, 8, 128, precision::b1, wmma::col_major> right;
    wmma::fragment<wmma::accumulator, 8, 8, 128, int> sum;
    wmma::fill_fragment(sum, 0);
    wmma::load_matrix_sync(left, a, 128);
    wmma::load_matrix_sync(right, b, 128);
    wmma::bmma_sync(sum, left, right, sum, bmmaBitOpAND);
    wmma::store_matrix_sync(c, sum, 8, wmma::mem_row_major);
}
