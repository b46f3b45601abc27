/* Kernels of rows of activations, through a generated header on the emulated driver. They are
 * looked up, launched for a given number of rows on buffers of exact size, and compared with
 * formulas in double. */
#include <dlfcn.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "test.h"
#include "libcuda/api.h"

#define ROWS_KERNELS_IMPLEMENTATION
#define ROWS_WITH_CUDA
#include "rows_kernels.h"

enum { K = 1001, M = 3, COUNT = K * M, MOST = 1 << 14, SM = 90 };

static rows_cuda cuda;
static CUcontext context;
static float x[MOST], z[MOST], y[MOST];
static uint16_t halves[MOST];

static int make(void **state)
{
    (void)state;
    srand(1);
    for (int i = 0; i < MOST; i++) {
        x[i] = (float)(rand() % 20001 - 10000) / 1000;
        z[i] = (float)(rand() % 20001 - 10000) / 3000;
    }
    return cuInit(0) || cuCtxCreate_v4(&context, NULL, 0, 0) ||
           rows_cuda_init(&cuda, dlsym, dlopen(NULL, RTLD_NOW)) || rows_load_all(&cuda, NULL);
}

static int destroy(void **state)
{
    (void)state;
    return cuCtxDestroy_v2(context) != CUDA_SUCCESS;
}

static CUdeviceptr upload(const void *from, size_t bytes)
{
    CUdeviceptr to;
    assert_int_equal(cuMemAlloc_v2(&to, bytes), CUDA_SUCCESS);
    assert_int_equal(cuMemcpyHtoD_v2(to, from, bytes), CUDA_SUCCESS);
    return to;
}

static CUdeviceptr make_room(size_t bytes)
{
    CUdeviceptr to;
    assert_int_equal(cuMemAlloc_v2(&to, bytes), CUDA_SUCCESS);
    return to;
}

static void download(ptxgen_result launched, void *to, CUdeviceptr from, size_t bytes)
{
    assert_int_equal(launched, CUDA_SUCCESS);
    assert_int_equal(cuCtxSynchronize(), CUDA_SUCCESS);
    assert_int_equal(cuMemcpyDtoH_v2(to, from, bytes), CUDA_SUCCESS);
}

static void expect_near(double got, double exact, double tolerance)
{
    if (!(fabs(got - exact) <= tolerance * fabs(exact) + 1e-30))
        fail_msg("%.9g is not %.9g", got, exact);
}

static float half_value(uint16_t half)
{
    int exponent = half >> 10 & 31;
    float fraction = (float)(half & 1023) / 1024;
    float value = exponent ? ldexpf(1 + fraction, exponent - 15) : ldexpf(fraction, -14);
    return half & 0x8000 ? -value : value;
}

static void expect_found(ptxgen_operation op, ptxgen_query query, const ptxgen_kernel *wanted)
{
    query.op = op;
    query.sm = SM;
    const ptxgen_kernel *found = rows_find(&query);
    assert_non_null(found);
    assert_string_equal(found->name, wanted->name);
}

/* Runs a kernel with one f32 input in place. */
static void run(ptxgen_result (*launch)(const rows_cuda *, ptxgen_stream, ptxgen_deviceptr,
                                        ptxgen_const_deviceptr, uint32_t))
{
    CUdeviceptr at = upload(x, COUNT * sizeof *x);
    download(launch(&cuda, NULL, at, at, M), y, at, COUNT * sizeof *y);
}

static void run_two(ptxgen_result (*launch)(const rows_cuda *, ptxgen_stream, ptxgen_deviceptr,
                                            ptxgen_const_deviceptr, ptxgen_const_deviceptr,
                                            uint32_t),
                    size_t of_second)
{
    CUdeviceptr a = upload(x, COUNT * sizeof *x), b = upload(z, of_second * sizeof *z);
    CUdeviceptr to = make_room(COUNT * sizeof *y);
    download(launch(&cuda, NULL, to, a, b, M), y, to, COUNT * sizeof *y);
}

TEST_WITH(softmax_of_rows_is_right, make, destroy)
{
    run(rows_softmax_k1001_m1_rows_scale0p5_launch);
    for (int row = 0; row < M; row++) {
        double sum = 0;
        for (int i = 0; i < K; i++)
            sum += exp(0.5 * (double)x[row * K + i]);
        for (int i = 0; i < K; i++)
            expect_near((double)y[row * K + i], exp(0.5 * (double)x[row * K + i]) / sum, 5e-6);
    }
    expect_found(PTXGEN_SOFTMAX, (ptxgen_query){ .k = K, .scale = 0.5 },
                 &rows_softmax_k1001_m1_rows_scale0p5);
}

TEST_WITH(silu_of_rows_is_right, make, destroy)
{
    run(rows_silu_k1001_m1_rows_launch);
    for (int i = 0; i < COUNT; i++)
        expect_near((double)y[i], (double)x[i] / (1 + exp(-(double)x[i])), 1e-6);
    expect_found(PTXGEN_SILU, (ptxgen_query){ .k = K }, &rows_silu_k1001_m1_rows);
}

TEST_WITH(gelu_of_rows_is_right, make, destroy)
{
    run(rows_gelu_k1001_m1_rows_launch);
    for (int i = 0; i < COUNT; i++)
        expect_near((double)y[i], (double)x[i] * erfc(-(double)x[i] / sqrt(2)) / 2, 1e-6);
    expect_found(PTXGEN_GELU, (ptxgen_query){ .k = K }, &rows_gelu_k1001_m1_rows);
    assert_null(rows_find(&(ptxgen_query){
        .op = PTXGEN_GELU, .k = K, .approximation = PTXGEN_APPROXIMATION_TANH, .sm = SM }));
}

TEST_WITH(relu_of_f16_rows_is_right, make, destroy)
{
    for (int i = 0; i < COUNT; i++)
        halves[i] = (uint16_t)(rand() % 2 << 15 | rand() % 0x7c00);
    CUdeviceptr at = upload(halves, COUNT * sizeof *halves);
    static uint16_t got[COUNT];
    download(rows_relu_k1001_m1_rows_f16_launch(&cuda, NULL, at, at, M), got, at, sizeof got);
    for (int i = 0; i < COUNT; i++)
        assert_true(half_value(got[i]) == fmaxf(half_value(halves[i]), 0));
    expect_found(PTXGEN_RELU,
                 (ptxgen_query){ .k = K, .activations = PTXGEN_F16, .out = PTXGEN_OUT_F16 },
                 &rows_relu_k1001_m1_rows_f16);
    assert_null(rows_find(&(ptxgen_query){ .op = PTXGEN_RELU, .k = K, .sm = SM }));
}

TEST_WITH(swiglu_of_two_arrays_is_right, make, destroy)
{
    run_two(rows_swiglu_k1001_m1_rows_launch, COUNT);
    for (int i = 0; i < COUNT; i++)
        expect_near((double)y[i], (double)x[i] / (1 + exp(-(double)x[i])) * (double)z[i], 1e-6);
    expect_found(PTXGEN_SWIGLU, (ptxgen_query){ .k = K }, &rows_swiglu_k1001_m1_rows);
}

TEST_WITH(sums_and_products_are_right, make, destroy)
{
    run_two(rows_add_k1001_m1_rows_launch, COUNT);
    for (int i = 0; i < COUNT; i++)
        assert_true(y[i] == x[i] + z[i]);
    run_two(rows_add_k1001_m1_rows_row_launch, K);
    for (int i = 0; i < COUNT; i++)
        assert_true(y[i] == x[i] + z[i % K]);
    run_two(rows_multiply_k1001_m1_rows_launch, COUNT);
    for (int i = 0; i < COUNT; i++)
        assert_true(y[i] == x[i] * z[i]);
    expect_found(PTXGEN_ADD, (ptxgen_query){ .k = K }, &rows_add_k1001_m1_rows);
    expect_found(PTXGEN_ADD, (ptxgen_query){ .k = K, .broadcast = PTXGEN_BROADCAST_ROW },
                 &rows_add_k1001_m1_rows_row);
    expect_found(PTXGEN_MULTIPLY, (ptxgen_query){ .k = K }, &rows_multiply_k1001_m1_rows);
}

TEST_WITH(rows_are_scaled, make, destroy)
{
    run(rows_scale_k1001_m1_rows_bym0p75_launch);
    for (int i = 0; i < COUNT; i++)
        assert_true(y[i] == x[i] * -0.75f);
}

/* Blocks have a scale and 32 signed bytes. */
TEST_WITH(a_matrix_is_converted_to_f16, make, destroy)
{
    enum { COLUMNS = 96, ROWS = 5, BLOCK = 34, BLOCKS = ROWS * COLUMNS / 32 };
    static uint8_t w[BLOCKS * BLOCK];
    for (int i = 0; i < BLOCKS * BLOCK; i++)
        w[i] = i % BLOCK == 0 ? 0 : i % BLOCK == 1 ? (uint8_t)(0x20 + i / BLOCK) : (uint8_t)rand();
    CUdeviceptr from = upload(w, sizeof w), to = make_room(ROWS * COLUMNS * sizeof *halves);
    download(rows_convert_q8_0_k96_n5_to_f16_launch(&cuda, NULL, to, from), halves, to,
             ROWS * COLUMNS * sizeof *halves);
    for (int i = 0; i < ROWS * COLUMNS; i++) {
        const uint8_t *block = w + i / 32 * BLOCK;
        double scale = (double)half_value((uint16_t)(block[1] << 8));
        expect_near((double)half_value(halves[i]), scale * (int8_t)block[2 + i % 32], 0x1p-11);
    }
    expect_found(PTXGEN_CONVERT,
                 (ptxgen_query){ .weights = PTXGEN_Q8_0, .k = COLUMNS, .out = PTXGEN_OUT_F16 },
                 &rows_convert_q8_0_k96_n5_to_f16);
}

/* RoPE rotates the pairs (i, i + 24) of the first 48 of 64 values. */
TEST_WITH(heads_are_rotated_in_place, make, destroy)
{
    enum { DIM = 64, ROT = 48, ROWS = 4, HEADS = 3, KV_HEADS = 2 };
    static const uint32_t positions[ROWS] = { 0, 7, 1000, 131071 };
    static float q[ROWS * HEADS * DIM], k[ROWS * KV_HEADS * DIM];
    CUdeviceptr at_q = upload(x, sizeof q), at_k = upload(z, sizeof k);
    CUdeviceptr at = upload(positions, sizeof positions);
    download(rows_rope_d64_h3_kv2_m4_neox_rot48_launch(&cuda, NULL, at_q, at_k, at_q, at_k, at), q,
             at_q, sizeof q);
    download(CUDA_SUCCESS, k, at_k, sizeof k);
    for (int i = 0; i < ROWS * (HEADS + KV_HEADS) * DIM; i++) {
        bool of_q = i < ROWS * HEADS * DIM;
        int element = of_q ? i : i - ROWS * HEADS * DIM, heads = of_q ? HEADS : KV_HEADS;
        const float *before = of_q ? x : z, *after = of_q ? q : k;
        int d = element % DIM, pair = d % (ROT / 2), first = element - d + pair;
        double angle = pow(1e4, -2.0 * pair / ROT) * positions[element / DIM / heads];
        double a = (double)before[first], b = (double)before[first + ROT / 2];
        double exact = d >= ROT      ? (double)before[element]
                       : d < ROT / 2 ? a * cos(angle) - b * sin(angle)
                                     : a * sin(angle) + b * cos(angle);
        assert_true(fabs((double)after[element] - exact) <= 1e-6 * (fabs(a) + fabs(b)));
    }
    expect_found(PTXGEN_ROPE, (ptxgen_query){ .head_dim = DIM, .num_heads = HEADS, .m = ROWS },
                 &rows_rope_d64_h3_kv2_m4_neox_rot48);
}

TEST_WITH(matrices_are_transposed, make, destroy)
{
    enum { COLUMNS = 37, ROWS = 70, MATRICES = 2, VALUES = COLUMNS * ROWS * MATRICES };
    CUdeviceptr from = upload(x, VALUES * sizeof *x), to = make_room(VALUES * sizeof *x);
    download(rows_transpose_dynamic_launch(&cuda, NULL, to, from, COLUMNS, ROWS, MATRICES), y, to,
             VALUES * sizeof *x);
    for (int matrix = 0; matrix < MATRICES; matrix++)
        for (int row = 0; row < ROWS; row++)
            for (int column = 0; column < COLUMNS; column++)
                assert_true(y[(matrix * COLUMNS + column) * ROWS + row] ==
                            x[(matrix * ROWS + row) * COLUMNS + column]);
}

/* Four rows: two of one sequence, an unused row, and a row of a full sequence. */
TEST_WITH(rows_of_k_and_v_are_written_to_caches, make, destroy)
{
    enum { DIM = 64, HEADS = 2, ROOM = 16, ROWS = 4, ROW = HEADS * DIM };
    static const uint32_t positions[ROWS] = { 5, 15, UINT32_MAX, ROOM };
    static const uint32_t sequences[ROWS] = { 0, 0, 0, 1 };
    static uint16_t caches[2][2][HEADS * ROOM * DIM]; /* K and V of two sequences */
    CUdeviceptr at[2];
    memset(caches, 0x11, sizeof caches);
    for (int kv = 0; kv < 2; kv++)
        at[kv] = upload(caches[kv], sizeof caches[kv]);
    download(rows_kv_write_d64_kv2_s16_m4_f16_launch(
                 &cuda, NULL, at[0], at[1], upload(x, ROWS * ROW * sizeof *x),
                 upload(z, ROWS * ROW * sizeof *z), upload(positions, sizeof positions),
                 upload(sequences, sizeof sequences)),
             caches[0], at[0], sizeof caches[0]);
    download(CUDA_SUCCESS, caches[1], at[1], sizeof caches[1]);
    for (int kv = 0; kv < 2; kv++)
        for (int i = 0; i < 2 * HEADS * ROOM * DIM; i++) {
            int s = i / (HEADS * ROOM * DIM), element = i % (HEADS * ROOM * DIM);
            int head = element / DIM / ROOM, position = element / DIM % ROOM, d = element % DIM;
            int row = s ? -1 : position == 5 ? 0 : position == 15 ? 1 : -1;
            uint16_t got = caches[kv][s][element];
            if (row < 0)
                assert_int_equal(got, 0x1111);
            else
                expect_near((double)half_value(got),
                            (double)(kv ? z : x)[row * ROW + head * DIM + d], 0x1p-11);
        }
    expect_found(PTXGEN_KV_WRITE,
                 (ptxgen_query){ .head_dim = DIM, .num_kv_heads = HEADS, .weights = PTXGEN_F16 },
                 &rows_kv_write_d64_kv2_s16_m4_f16);
}

TEST_WITH(kernels_of_rows_are_nodes_of_graphs, make, destroy)
{
    ptxgen_node node;
    CUdeviceptr at = upload(x, COUNT * sizeof *x);
    assert_int_equal(rows_silu_k1001_m1_rows_node(&cuda, &node, at, at, M), CUDA_SUCCESS);
    assert_int_equal(rows_silu_k1001_m1_rows_node(&cuda, &node, at, at, 0),
                     CUDA_ERROR_INVALID_VALUE);
}
