#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <mma.h>

using namespace nvcuda;

// Computes C += A B in one warp, in steps of K along the depth: A by rows, B by columns, C by rows.
template <int M, int N, int K, typename In, typename Out>
__device__ void multiply(Out *c, const In *a, const In *b, int depth)
{
    wmma::fragment<wmma::matrix_a, M, N, K, In, wmma::row_major> left;
    wmma::fragment<wmma::matrix_b, M, N, K, In, wmma::col_major> right;
    wmma::fragment<wmma::accumulator, M, N, K, Out> sum;
    wmma::load_matrix_sync(sum, c, N, wmma::mem_row_major);
    for (int k = 0; k < depth; k += K) {
        wmma::load_matrix_sync(left, a + k, depth);
        wmma::load_matrix_sync(right, b + k, depth);
        wmma::mma_sync(sum, left, right, sum);
    }
    for (int i = 0; i < sum.num_elements; i++)
        sum.x[i] = sum.x[i] + sum.x[i];
    wmma::store_matrix_sync(c, sum, N, wmma::mem_row_major);
}

extern "C" __global__ void wmma_halves(float *c, const half *a, const half *b, int depth)
{
    multiply<16, 16, 16>(c, a, b, depth);
}

extern "C" __global__ void wmma_bfloats(float *c, const __nv_bfloat16 *a, const __nv_bfloat16 *b, int depth)
{
    multiply<32, 8, 16>(c, a, b, depth);
}

extern "C" __global__ void wmma_bytes(int *c, const signed char *a, const signed char *b, int depth)
{
    multiply<8, 32, 16>(c, a, b, depth);
}

// A tile of A in shared memory with padded rows, which avoids bank conflicts.
extern "C" __global__ void wmma_from_shared(float *c, const half *a, const half *b)
{
    enum { PADDED = 24 };
    __shared__ __align__(32) half tile[16 * PADDED];
    for (int i = threadIdx.x; i < 256; i += 32)
        tile[i / 16 * PADDED + i % 16] = a[i];
    __syncwarp();
    wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::row_major> left;
    wmma::fragment<wmma::matrix_b, 16, 16, 16, half, wmma::row_major> right;
    wmma::fragment<wmma::accumulator, 16, 16, 16, float> sum;
    wmma::fill_fragment(sum, 1.0f);
    wmma::load_matrix_sync(left, tile, PADDED);
    wmma::load_matrix_sync(right, b, 16);
    wmma::mma_sync(sum, left, right, sum);
    wmma::store_matrix_sync(c, sum, 16, wmma::mem_col_major);
}

// Transposes 8 x 8 halves of a warp in registers, and 16 x 16 halves by ldmatrix.
extern "C" __global__ void turn_matrices(unsigned *to, const unsigned *from, half *square, const half *matrix)
{
    unsigned word = from[threadIdx.x], turned;
    asm volatile("movmatrix.sync.aligned.m8n8.trans.b16 %0, %1;" : "=r"(turned) : "r"(word));
    to[threadIdx.x] = turned;
    __shared__ __align__(16) half tile[16][24];
    for (int i = threadIdx.x; i < 256; i += 32)
        tile[i / 16][i % 16] = matrix[i];
    __syncwarp();
    unsigned parts[4];
    unsigned row = (unsigned)__cvta_generic_to_shared(&tile[threadIdx.x % 16][threadIdx.x / 16 * 8]);
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(parts[0]), "=r"(parts[1]), "=r"(parts[2]), "=r"(parts[3])
                 : "r"(row));
    for (int i = 0; i < 4; i++) {
        int y = i / 2 * 8 + threadIdx.x / 4, x = i % 2 * 8 + threadIdx.x % 4 * 2;
        *(unsigned *)&square[y * 16 + x] = parts[i];
    }
}

// A step of a dot product of signed bytes, for a program that uses the fragments' layout.
extern "C" __global__ void mma_bytes(int *c, const int *a, const int *b)
{
    int g = threadIdx.x / 4, t = threadIdx.x % 4, d[4] = { 0 };
    asm volatile("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
                 "{%0, %1, %2, %3};"
                 : "+r"(d[0]), "+r"(d[1]), "+r"(d[2]), "+r"(d[3])
                 : "r"(a[g * 8 + t]), "r"(a[(g + 8) * 8 + t]), "r"(a[g * 8 + t + 4]), "r"(a[(g + 8) * 8 + t + 4]),
                   "r"(b[g * 8 + t]), "r"(b[g * 8 + t + 4]));
    for (int i = 0; i < 4; i++)
        c[(g + i / 2 * 8) * 8 + t * 2 + i % 2] = d[i];
}

// Also unsigned bytes of A, and products of 16 bytes of each row: signed bytes, then unsigned ones.
extern "C" __global__ void mma_kinds_of_bytes(int *c, const int *a, const int *b)
{
    int g = threadIdx.x / 4, t = threadIdx.x % 4, d[3][4] = { { 1, 2, 3, 4 }, { 0 }, { 0 } };
    int left[4] = { a[g * 8 + t], a[(g + 8) * 8 + t], a[g * 8 + t + 4], a[(g + 8) * 8 + t + 4] };
    int right[2] = { b[g * 8 + t], b[g * 8 + t + 4] };
    asm volatile("mma.sync.aligned.m16n8k32.row.col.s32.u8.s8.s32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
                 "{%0, %1, %2, %3};"
                 : "+r"(d[0][0]), "+r"(d[0][1]), "+r"(d[0][2]), "+r"(d[0][3])
                 : "r"(left[0]), "r"(left[1]), "r"(left[2]), "r"(left[3]), "r"(right[0]), "r"(right[1]));
    asm volatile("mma.sync.aligned.m16n8k16.row.col.s32.s8.s8.s32 {%0, %1, %2, %3}, {%4, %5}, {%6}, {%0, %1, %2, %3};"
                 : "+r"(d[1][0]), "+r"(d[1][1]), "+r"(d[1][2]), "+r"(d[1][3])
                 : "r"(left[0]), "r"(left[1]), "r"(right[0]));
    asm volatile("mma.sync.aligned.m16n8k16.row.col.s32.u8.s8.s32 {%0, %1, %2, %3}, {%4, %5}, {%6}, {%0, %1, %2, %3};"
                 : "+r"(d[2][0]), "+r"(d[2][1]), "+r"(d[2][2]), "+r"(d[2][3])
                 : "r"(left[2]), "r"(left[3]), "r"(right[1]));
    for (int i = 0; i < 12; i++)
        c[i / 4 * 128 + (g + i % 4 / 2 * 8) * 8 + t * 2 + i % 2] = d[i / 4][i % 4];
}

// A step of a product of tf32: 16 x 8 and 8 x 8, whose lowest 13 bits are rounded off.
extern "C" __global__ void mma_singles(float *c, const float *a, const float *b)
{
    int g = threadIdx.x / 4, t = threadIdx.x % 4;
    unsigned in[6];
    float d[4] = { 0 }, from[6] = { a[g * 8 + t], a[(g + 8) * 8 + t], a[g * 8 + t + 4], a[(g + 8) * 8 + t + 4],
                                    b[g * 8 + t], b[g * 8 + t + 4] };
    for (int i = 0; i < 6; i++)
        asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(in[i]) : "f"(from[i]));
    asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
                 "{%0, %1, %2, %3};"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                 : "r"(in[0]), "r"(in[1]), "r"(in[2]), "r"(in[3]), "r"(in[4]), "r"(in[5]));
    for (int i = 0; i < 4; i++)
        c[(g + i / 2 * 8) * 8 + t * 2 + i % 2] = d[i];
}
