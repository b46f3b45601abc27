/* Pipelines of several rows on the emulated driver, compared with products in double. They run as
 * launches and as graph nodes. Buffers have exactly the size that the header states. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#define ROWS_KERNELS_IMPLEMENTATION
#define ROWS_WITH_CUDA
#include "libcuda/api.h"
#include "rows_kernels.h"
#include "launch/emulated.h"

#include "ref/quant.h"
#include "ref/random.h"
#include "ref/reference.h"

enum { MOST_BUFFERS = 12, MOST_COLUMNS = 1024 };

static rows_cuda cuda;

static int make(void **state)
{
    (void)state;
    if (open_driver() || rows_cuda_init(&cuda, dlsym, dlopen(NULL, RTLD_NOW)))
        return -1;
    cuda.driver.report = keep;
    return rows_load_all(&cuda, NULL) != CUDA_SUCCESS;
}

static int drop(void **state)
{
    (void)state;
    return rows_unload(&cuda) || cuCtxDestroy_v2(context);
}

/* A pipeline with a number of rows, and its buffers on host and device. */
typedef struct run {
    const ptxgen_pipeline *p;
    uint32_t rows;
    size_t bytes[MOST_BUFFERS];
    unsigned char *host[MOST_BUFFERS];
    float *matrix[MOST_BUFFERS]; /* decoded weights */
    CUdeviceptr device[MOST_BUFFERS], workspace;
    void *arguments[MOST_BUFFERS];
    size_t workspace_bytes;
} run;

/* Returns the library's format for a header's format. */
static format format_of(const ptxgen_param *b)
{
    return b->format == PTXGEN_Q4_K   ? FORMAT_Q4_K
           : b->format == PTXGEN_Q6_K ? FORMAT_Q6_K
           : b->format == PTXGEN_Q8_1 ? FORMAT_Q8_1
                                      : FORMAT_F32;
}

static uint64_t values_of(const run *r, size_t buffer)
{
    const format_info *f = &formats[format_of(&r->p->buffers[buffer])];
    return r->bytes[buffer] / f->block_bytes * f->block_values;
}

static size_t buffer_named(const run *r, const char *name)
{
    size_t i = 0;
    while (i < r->p->buffer_count && strcmp(r->p->buffers[i].name, name) != 0)
        i++;
    return i;
}

static bool has_buffer(const run *r, const char *name)
{
    return buffer_named(r, name) < r->p->buffer_count;
}

/* Fills inputs with random values and all other buffers with NaN. x_q8_1 is x, quantized. */
static run run_new(const ptxgen_pipeline *p, uint32_t rows, random_source *random)
{
    run r = { .p = p, .rows = rows };
    const ptxgen_run sizes = { .m = rows };
    assert_in_range(p->buffer_count, 1, MOST_BUFFERS);
    for (size_t i = 0; i < p->buffer_count; i++) {
        const ptxgen_param *b = &p->buffers[i];
        r.arguments[i] = b->kind == PTXGEN_PARAM_POINTER ? (void *)&r.device[i] : (void *)&r.rows;
        if (b->kind != PTXGEN_PARAM_POINTER)
            continue;
        int64_t bytes = ptxgen_pipeline_bytes(p, b, &sizes);
        assert_in_range(bytes, 1, 1 << 24);
        r.bytes[i] = (size_t)bytes;
        r.host[i] = malloc(r.bytes[i]);
        memset(r.host[i], 0xff, r.bytes[i]);
        if (b->direction == PTXGEN_PARAM_IN)
            ref_fill(format_of(b), r.host[i], values_of(&r, i), FILL_NORMAL, random);
        if (b->name[0] == 'w') {
            r.matrix[i] = malloc(values_of(&r, i) * sizeof *r.matrix[i]);
            ref_decode(format_of(b), r.host[i], values_of(&r, i), r.matrix[i]);
        }
        assert_success(cuMemAlloc_v2(&r.device[i], r.bytes[i]));
    }
    if (has_buffer(&r, "x_q8_1") && has_buffer(&r, "x")) {
        size_t x = buffer_named(&r, "x");
        ref_encode_q8_1((const float *)(void *)r.host[x], values_of(&r, x),
                        r.host[buffer_named(&r, "x_q8_1")]);
    }
    r.workspace_bytes = ptxgen_workspace(p, rows);
    if (r.workspace_bytes)
        assert_success(cuMemAlloc_v2(&r.workspace, r.workspace_bytes));
    return r;
}

/* Points the arguments of a copied run to its own fields and uploads the buffers. */
static void run_settle(run *r)
{
    for (size_t i = 0; i < r->p->buffer_count; i++)
        r->arguments[i] = r->p->buffers[i].kind == PTXGEN_PARAM_POINTER ? (void *)&r->device[i]
                                                                        : (void *)&r->rows;
    for (size_t i = 0; i < r->p->buffer_count; i++)
        if (r->device[i])
            assert_success(cuMemcpyHtoD_v2(r->device[i], r->host[i], r->bytes[i]));
}

static void run_free(run *r)
{
    for (size_t i = 0; i < r->p->buffer_count; i++) {
        free(r->host[i]);
        free(r->matrix[i]);
        if (r->device[i])
            assert_success(cuMemFree_v2(r->device[i]));
    }
    if (r->workspace)
        assert_success(cuMemFree_v2(r->workspace));
}

static CUresult run_launch(run *r)
{
    return rows_launch_pipeline(&cuda, r->p, stream, r->arguments, r->p->buffer_count, r->workspace,
                                r->workspace_bytes);
}

/* Runs the pipeline's nodes as a graph, in sequence. */
static void run_as_graph(run *r)
{
    ptxgen_node nodes[PTXGEN_MOST_STEPS];
    CUgraph graph;
    CUgraphExec exec;
    CUgraphNode last;
    assert_success(rows_pipeline_nodes(&cuda, r->p, nodes, r->arguments, r->p->buffer_count,
                                       r->workspace, r->workspace_bytes));
    assert_success(cuGraphCreate(&graph, 0));
    for (size_t s = 0; s < r->p->step_count; s++) {
        const ptxgen_node_params *p = &nodes[s].params;
        CUDA_KERNEL_NODE_PARAMS params = { .func = p->func,
                                           .gridDimX = p->gridDimX,
                                           .gridDimY = p->gridDimY,
                                           .gridDimZ = p->gridDimZ,
                                           .blockDimX = p->blockDimX,
                                           .blockDimY = p->blockDimY,
                                           .blockDimZ = p->blockDimZ,
                                           .sharedMemBytes = p->sharedMemBytes,
                                           .kernelParams = p->kernelParams };
        CUgraphNode node;
        assert_success(cuGraphAddKernelNode_v2(&node, graph, &last, s ? 1 : 0, &params));
        last = node;
    }
    memset(nodes, 0xee, sizeof nodes);
    assert_success(cuGraphInstantiateWithFlags(&exec, graph, 0));
    assert_success(cuGraphLaunch(exec, stream));
    assert_success(cuStreamSynchronize(stream));
    assert_success(cuGraphExecDestroy(exec));
    assert_success(cuGraphDestroy(graph));
}

/* Loads a row of x as a product with a format reads it. Q4_K rounds it to q8_1. */
static void load_row(const run *r, uint32_t row, ptxgen_format weights, double *to)
{
    uint64_t k = (uint64_t)r->p->k;
    float values[MOST_COLUMNS];
    unsigned char blocks[MOST_COLUMNS / Q8_1_VALUES * 36];
    bool rounded = weights == PTXGEN_Q4_K, given = rounded && has_buffer(r, "x_q8_1");
    if (!given)
        memcpy(values, r->host[buffer_named(r, "x")] + row * k * sizeof(float), k * sizeof(float));
    if (given)
        memcpy(blocks, r->host[buffer_named(r, "x_q8_1")] + row * k / Q8_1_VALUES * 36,
               k / Q8_1_VALUES * 36);
    else if (rounded)
        ref_encode_q8_1(values, k, blocks);
    for (uint64_t i = 0; i < k; i++)
        to[i] = (double)values[i];
    for (uint64_t b = 0; rounded && b < k / Q8_1_VALUES; b++) {
        q8_1_block block = q8_1_load(blocks + b * 36);
        for (size_t i = 0; i < Q8_1_VALUES; i++)
            to[b * Q8_1_VALUES + i] = (double)block.d * block.q[i];
    }
}

/* Multiplies a matrix by a row of x. sizes are sums of absolute values. */
static void multiply(const run *r, const char *w, const double *x, uint64_t columns, double *sums,
                     double *sizes)
{
    size_t at = buffer_named(r, w);
    for (uint64_t i = 0; i < values_of(r, at) / columns; i++) {
        sums[i] = sizes[i] = 0;
        for (uint64_t c = 0; c < columns; c++) {
            double product = (double)r->matrix[at][i * columns + c] * x[c];
            sums[i] += product;
            sizes[i] += fabs(product);
        }
    }
}

/* Compares Y[m,n] with X W^T. */
static void check_product(const run *r, const char *y, const char *w)
{
    const ptxgen_param *weights = &r->p->buffers[buffer_named(r, w)];
    uint64_t k = (uint64_t)r->p->k, n = values_of(r, buffer_named(r, w)) / k;
    const float *have = (const float *)(void *)r->host[buffer_named(r, y)];
    double x[MOST_COLUMNS], sums[MOST_COLUMNS], sizes[MOST_COLUMNS];
    assert_int_equal(values_of(r, buffer_named(r, y)), r->rows * n);
    for (uint32_t row = 0; row < r->rows; row++) {
        load_row(r, row, weights->format, x);
        multiply(r, w, x, k, sums, sizes);
        for (uint64_t i = 0; i < n; i++)
            if (!(fabs((double)have[row * n + i] - sums[i]) <= 1e-6 * sizes[i]))
                fail_msg("%s: %s[%u][%u] is %g, not %g", r->p->name, y, row, (unsigned)i,
                         (double)have[row * n + i], sums[i]);
    }
}

static void read_back(run *r)
{
    assert_success(cuStreamSynchronize(stream));
    for (size_t i = 0; i < r->p->buffer_count; i++)
        if (r->p->buffers[i].direction == PTXGEN_PARAM_OUT)
            assert_success(cuMemcpyDtoH_v2(r->host[i], r->device[i], r->bytes[i]));
}

/* Returns activation(g) u as the manual defines it. */
static double gated(int64_t activation, double g, double u)
{
    if (activation == 1)
        return g / (1 + exp(-2 * sqrt(2 / acos(-1)) * (g + 0.044715 * g * g * g))) * u;
    if (activation == 2) {
        g = fmin(g, 7);
        return g / (1 + exp(-1.702 * g)) * (fmax(fmin(u, 7), -7) + 1);
    }
    return g / (1 + exp(-g)) * u;
}

/* Checks a feed-forward layer. Rounding errors of the hidden values may change an 8-bit value by
 * one, which the bounds allow. */
static void check_ffn(run *r)
{
    const ptxgen_config *activation = ptxgen_key(r->p->config, r->p->config_count, "activation");
    ptxgen_format down = r->p->buffers[buffer_named(r, "wd")].format;
    ptxgen_format of_g = r->p->buffers[buffer_named(r, "wg")].format;
    ptxgen_format of_u = r->p->buffers[buffer_named(r, "wu")].format;
    uint64_t k = (uint64_t)r->p->k, n = (uint64_t)r->p->n;
    const float *have = (const float *)(void *)r->host[buffer_named(r, "y")];
    double x[MOST_COLUMNS], g[MOST_COLUMNS], u[MOST_COLUMNS], h[MOST_COLUMNS], y[MOST_COLUMNS],
        sizes[MOST_COLUMNS];
    read_back(r);
    assert_int_equal(values_of(r, buffer_named(r, "y")), r->rows * k);
    for (uint32_t row = 0; row < r->rows; row++) {
        float values[MOST_COLUMNS];
        unsigned char blocks[MOST_COLUMNS / Q8_1_VALUES * 36];
        load_row(r, row, of_g, x);
        multiply(r, "wg", x, k, g, sizes);
        load_row(r, row, of_u, x);
        multiply(r, "wu", x, k, u, sizes);
        for (uint64_t i = 0; i < n; i++)
            h[i] = gated(activation->value, g[i], u[i]);
        for (uint64_t i = 0; i < n; i++)
            values[i] = (float)h[i];
        ref_encode_q8_1(values, n, blocks);
        for (uint64_t b = 0; down == PTXGEN_Q4_K && b < n / Q8_1_VALUES; b++) {
            q8_1_block block = q8_1_load(blocks + b * 36);
            for (size_t i = 0; i < Q8_1_VALUES; i++)
                h[b * Q8_1_VALUES + i] = (double)block.d * block.q[i];
        }
        multiply(r, "wd", h, n, y, sizes);
        double most = down == PTXGEN_Q4_K ? 2e-4 : 1e-5;
        for (uint64_t i = 0; i < k; i++)
            if (!(fabs((double)have[row * k + i] - y[i]) <= most * sizes[i]))
                fail_msg("%s: y[%u][%u] is %g, not %g", r->p->name, row, (unsigned)i,
                         (double)have[row * k + i], y[i]);
    }
}

static void check_products(run *r)
{
    static const char *const products[][2] = {
        { "g", "wg" }, { "u", "wu" }, { "q", "wq" }, { "k", "wk" }, { "v", "wv" }
    };
    size_t checked = 0;
    read_back(r);
    for (size_t i = 0; i < sizeof products / sizeof *products; i++)
        if (has_buffer(r, products[i][0])) {
            check_product(r, products[i][0], products[i][1]);
            checked++;
        }
    assert_in_range(checked, 1, 3);
}

static void check_run(const ptxgen_pipeline *p, uint32_t rows, random_source *random)
{
    run r = run_new(p, rows, random);
    void (*check)(run * r) = strcmp(p->pipeline, "ffn") == 0 ? check_ffn : check_products;
    run_settle(&r);
    why[0] = '\0';
    if (run_launch(&r) != CUDA_SUCCESS)
        fail_msg("%s with %u rows: %s", p->name, rows, why);
    check(&r);
    for (size_t i = 0; i < p->buffer_count; i++)
        if (p->buffers[i].direction == PTXGEN_PARAM_OUT)
            memset(r.host[i], 0xff, r.bytes[i]);
    run_settle(&r);
    run_as_graph(&r);
    check(&r);
    run_free(&r);
}

TEST_WITH(every_pipeline_gives_the_products_of_its_rows, make, drop)
{
    static const uint32_t rows[] = { 1, 3, 8, 21 };
    random_source random = { 1 };
    for (size_t i = 0; i < rows_pipeline_count; i++) {
        const ptxgen_pipeline *p = rows_pipelines[i];
        for (size_t j = 0; j < sizeof rows / sizeof *rows && p->rows_at_run_time; j++)
            check_run(p, rows[j], &random);
        if (!p->rows_at_run_time)
            check_run(p, (uint32_t)p->m, &random);
    }
}

/* Wrong arguments must be reported by the pipeline's names, before the first launch. */
TEST_WITH(errors_use_the_names_of_the_pipeline, make, drop)
{
    const ptxgen_query query = { .family = "batched_gate_up", .weights_u = PTXGEN_Q6_K, .m = 5 };
    random_source random = { 2 };
    run r = run_new(rows_find_pipeline(&query), 5, &random);
    assert_true(r.p->rows_at_run_time);
    run_settle(&r);
    for (size_t i = 0; i < r.p->buffer_count; i++) {
        char expected[200];
        CUdeviceptr device = r.device[i];
        uint32_t none = 0;
        bool number = r.p->buffers[i].kind == PTXGEN_PARAM_U32;
        r.device[i] = 0;
        r.arguments[i] = number ? (void *)&none : (void *)&r.device[i];
        assert_int_equal(run_launch(&r), CUDA_ERROR_INVALID_VALUE);
        snprintf(expected, sizeof expected, "%s: %s is 0", r.p->name, r.p->buffers[i].name);
        assert_string_equal(why, expected);
        r.device[i] = device;
        r.arguments[i] = number ? (void *)&r.rows : (void *)&r.device[i];
        read_back(&r);
        for (size_t b = 0; b < r.bytes[0]; b++)
            assert_int_equal(r.host[0][b], 0xff);
    }
    r.workspace_bytes--;
    assert_int_equal(run_launch(&r), CUDA_ERROR_INVALID_VALUE);
    assert_non_null(strstr(why, ": the workspace is too small: 2880 bytes are needed"));
    r.workspace_bytes++;
    r.rows = 8 * 65535 + 1;
    assert_int_equal(run_launch(&r), CUDA_ERROR_INVALID_VALUE);
    assert_non_null(strstr(why, ": m_val is 524281; use a multiple of 1 from 1 to 524280"));
    r.rows = 5;
    run_free(&r);
}

TEST(exact_rows_are_preferred_to_rows_at_run_time)
{
    static const struct {
        int64_t m;
        const char *name;
    } cases[] = { { 1, "batched_gate_up_k512_n40_m1_rows_uq6k" },
                  { 2, "batched_gate_up_k512_n40_m4_rows_uq6k" },
                  { 8, "batched_gate_up_k512_n40_m8_rows_uq6k" },
                  { 524280, "batched_gate_up_k512_n40_m8_rows_uq6k" } };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const ptxgen_query query = { .family = "batched_gate_up",
                                     .weights = PTXGEN_Q4_K,
                                     .weights_u = PTXGEN_Q6_K,
                                     .m = cases[i].m };
        assert_non_null(rows_find_pipeline(&query));
        assert_string_equal(rows_find_pipeline(&query)->name, cases[i].name);
    }
    const ptxgen_query baked = { .family = "batched_gate_up", .weights = PTXGEN_Q4_K, .m = 19 };
    assert_string_equal(rows_find_pipeline(&baked)->name, "batched_gate_up_k512_n40_m19");
    const ptxgen_query more = { .family = "batched_qkv", .m = 524281 };
    assert_null(rows_find_pipeline(&more));
}
