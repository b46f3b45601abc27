/* llama_kernels.h - CUDA kernels as PTX, written by ptxgen 0.1.0. Change the spec, not this file.
 *
 * 5 kernels for sm_80:
 *     1  f32_gemv                 f32 GEMV, one warp per row
 *     1  stream_gemv              streaming GEMV of f32 x, quantized to 8 bits if W is quantized
 *     1  mma_gemm_f16             mma_gemm of f16 rows from f16_rows, rounded once for all products
 *     1  rms_norm                 RMS norm of rows, with an addition to h before or after it
 *     1  incremental_attention    decode attention, one warp per head
 *
 * This header needs no CUDA header. In exactly one C or C++ file of the program, write
 *
 *     #define LLAMA_KERNELS_IMPLEMENTATION
 *     #include "llama_kernels.h"
 *
 * which defines the PTX and the tables there. All other files include it without the define.
 *
 * To find a kernel:
 *
 *     ptxgen_query query = { .op = PTXGEN_GEMV, .weights = PTXGEN_Q4_K,
 *                            .k = 4096, .n = 14336, .sm = 90 };
 *     const ptxgen_kernel *kernel = llama_find(&query);
 *     if (!kernel)                                       no such kernel: text says why
 *         llama_explain_miss(&query, text, sizeof text);
 *
 * C++ before C++20 has no designated initializers: write query = {}, then query.op = PTXGEN_GEMV.
 *
 * To launch through the CUDA driver API with type-checked arguments, also define
 * LLAMA_WITH_CUDA before the #include:
 *
 *     llama_cuda cuda;                                one per context; the context is current
 *     void *library = dlopen("libcuda.so.1", RTLD_NOW);
 *     ptxgen_result r = llama_cuda_init(&cuda, dlsym, library);      a CUresult
 *     r = llama_f32_gemv_k4096_n256_load(&cuda, NULL);
 *     r = llama_f32_gemv_k4096_n256_launch(&cuda, stream, y, w, x);
 *
 * A kernel's launch function makes one driver call, a pipeline's one per step. Stream capture
 * (cuStreamBeginCapture) records them into a CUDA graph.
 *
 * A program that uses only _load and _launch functions of named kernels can drop all others:
 * compile with -ffunction-sections -fdata-sections and link with -Wl,--gc-sections.
 *
 * To launch without the functions above, load kernel->ptx with cuModuleLoadData, get the function
 * kernel->entry with cuModuleGetFunction, and launch:
 *
 *     unsigned grid[3];
 *     ptxgen_run run = { 0, 0, 0, 132 };                 k, n, m, sm_count
 *     if (!ptxgen_grid(kernel, &run, grid))
 *         ...                                            run lacks a value, e.g. sm_count, or a
 *                                                        value is out of range
 *     cuLaunchKernel(function, grid[0], grid[1], grid[2],
 *                    kernel->block[0], kernel->block[1], kernel->block[2],
 *                    ptxgen_shared(kernel, &run), stream, arguments, NULL);
 *
 *  - arguments has one pointer per element of kernel->params.
 *  - If kernel->shared_static + ptxgen_shared(kernel, &run) exceeds 48 KiB, first set
 *    CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES to ptxgen_shared(kernel, &run).
 *  - ptxgen_bytes(kernel, &kernel->params[i], &run) returns the bytes of buffer i.
 *  - With embed = c23 or incbin in the spec, ptxgen_is_intact(kernel) checks that the .ptx file has
 *    not changed since ptxgen wrote or verified it. */
/* Include guards keep the case of the prefix: two prefixes may differ only in case. */
#ifndef llama_KERNELS_H
#define llama_KERNELS_H

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* Types that describe a kernel, identical in every header that ptxgen writes. */
#ifdef PTXGEN_ABI
#if PTXGEN_ABI != 11
#error "llama_kernels.h and an earlier ptxgen header differ in PTXGEN_ABI: write both with one ptxgen"
#endif
#else
#define PTXGEN_ABI 11

#ifdef __cplusplus
extern "C" {
#endif

typedef enum ptxgen_operation {
    PTXGEN_ANY_OPERATION,
    PTXGEN_GEMV,
    PTXGEN_QUANTIZE,
    PTXGEN_ATTENTION,
    PTXGEN_BATCHED_ATTENTION,
    PTXGEN_ATTENTION_CHUNKS,
    PTXGEN_MERGE_CHUNKS,
    PTXGEN_GATE_UP,
    PTXGEN_GATE_UP_SWIGLU,
    PTXGEN_KV,
    PTXGEN_RMSNORM_GEMV,
    PTXGEN_EMBED_ROWS,
    PTXGEN_RMS_NORM,
    PTXGEN_ROPE_KV_WRITE,
    PTXGEN_QKV,
    PTXGEN_SAMPLE,
    PTXGEN_EXPERT_DOWN,
    PTXGEN_EXPERT_GATE_UP,
    PTXGEN_MOE_ROUTE,
    PTXGEN_MLA_QUERY,
    PTXGEN_MLA_ATTENTION,
    PTXGEN_MLA_VALUES,
    PTXGEN_DELTA_NET,
    PTXGEN_PROMPT_ATTENTION,
    PTXGEN_EXPERT_PRODUCT,
    PTXGEN_EXPERT_SUM,
    PTXGEN_F16_ROWS,
    PTXGEN_Q8_ROWS,
    PTXGEN_SILU,
    PTXGEN_GELU,
    PTXGEN_RELU,
    PTXGEN_SCALE,
    PTXGEN_ADD,
    PTXGEN_MULTIPLY,
    PTXGEN_SWIGLU,
    PTXGEN_CONVERT,
    PTXGEN_SOFTMAX,
    PTXGEN_ROPE,
    PTXGEN_TRANSPOSE,
    PTXGEN_KV_WRITE,
    PTXGEN_FFN,
    PTXGEN_LAYER_NORM,
    PTXGEN_MAMBA2,
    PTXGEN_SHORT_CONV,
    PTXGEN_MAMBA_SCAN,
    PTXGEN_PER_LAYER_ROWS,
} ptxgen_operation;

/* Storage format of a buffer's values. Quantized formats are blocks in ggml's layout. In a query,
 * PTXGEN_NONE matches any format. */
typedef enum ptxgen_format {
    PTXGEN_NONE,
    PTXGEN_F32,
    PTXGEN_F16,
    PTXGEN_BF16,
    PTXGEN_U32,
    PTXGEN_ADDRESS,
    PTXGEN_Q4_0,
    PTXGEN_Q5_0,
    PTXGEN_Q8_0,
    PTXGEN_Q8_1,
    PTXGEN_Q4_K,
    PTXGEN_Q6_K,
    PTXGEN_Q5_K,
    PTXGEN_Q4_1,
    PTXGEN_Q5_1,
    PTXGEN_Q3_K,
    PTXGEN_Q2_K,
    PTXGEN_IQ4_NL,
    PTXGEN_IQ4_XS,
    PTXGEN_MXFP4,
    PTXGEN_IQ2_XXS,
    PTXGEN_IQ2_XS,
    PTXGEN_IQ2_S,
    PTXGEN_IQ3_XXS,
    PTXGEN_IQ3_S,
    PTXGEN_IQ1_S,
    PTXGEN_IQ1_M,
    PTXGEN_TQ1_0,
    PTXGEN_TQ2_0,
    PTXGEN_NVFP4,
    PTXGEN_Q1_0,
    PTXGEN_Q2_0,
    PTXGEN_Q8_F32,
    PTXGEN_E4M3,
    PTXGEN_E5M2,
    PTXGEN_NF4,
    PTXGEN_NF4_H,
} ptxgen_format;

typedef enum ptxgen_param_kind { PTXGEN_PARAM_POINTER, PTXGEN_PARAM_U32 } ptxgen_param_kind;

/* Direction of a parameter. For an array of addresses, IN, OUT and INOUT describe the memory that
 * the addresses point to.
 *
 *  - INOUT: the kernel reads it and updates it.
 *  - SCRATCH: memory for one launch at a time; its contents are undefined before and after.
 *  - ZEROED: must be 0 before the first launch; every completed launch leaves it 0.
 */
typedef enum ptxgen_direction {
    PTXGEN_PARAM_IN,
    PTXGEN_PARAM_OUT,
    PTXGEN_PARAM_SCRATCH,
    PTXGEN_PARAM_ZEROED,
    PTXGEN_PARAM_INOUT
} ptxgen_direction;

/* A parameter of a kernel, in the order of the entry's parameters: a device pointer or a 32-bit
 * number. */
typedef struct ptxgen_param {
    const char *name;
    ptxgen_param_kind kind;
    ptxgen_direction direction;
    ptxgen_format format;
    int64_t bytes;      /* size of the buffer or number; 0 if it depends on the launch */
    const char *size;   /* pointers: formula for bytes over keys of config and members of
                           ptxgen_run, e.g. "n*k/256*144", see ptxgen_bytes; numbers: the size that
                           they pass, e.g. "m" */
    unsigned alignment; /* required alignment of the address in bytes */
} ptxgen_param;

/* A key of the configuration with its value from the spec. */
typedef struct ptxgen_config {
    const char *name;
    int64_t value;
    double real;          /* value of a real-valued key (epsilon), else 0 */
    const char *word;     /* value of a key with words ("static", "indirect"), else NULL */
    int at_run_time;      /* 1: passed as a parameter, within the limits below */
    int64_t min, max, multiple_of;
} ptxgen_config;

/* Values known only at launch. 0 means unknown; ptxgen_grid and ptxgen_bytes fail if they need it.
 */
typedef struct ptxgen_run {
    int64_t k, n, m;  /* sizes for dynamic_dims = 1; m also for rows = run_time */
    int64_t sm_count; /* CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT */
} ptxgen_run;

typedef struct ptxgen_kernel {
    const char *name;
    const char *entry;
    const char *ptx; /* NUL-terminated PTX text */
    size_t ptx_length;
    uint64_t checksum; /* 64-bit FNV-1a of the PTX that ptxgen wrote or verified, see
                          ptxgen_is_intact */

    const char *family;
    ptxgen_operation operation;
    ptxgen_format weights, activations; /* weights: format of W, or of K and V in attention */
    ptxgen_format precision; /* format of x inside the product: PTXGEN_Q8_1 or PTXGEN_F16 if x is
                                rounded */
    unsigned sm;  /* oldest compute capability, times ten, that runs it; newer devices run it, too,
                     if they have the shared memory: see specific and ptxgen_can_launch */
    unsigned isa; /* PTX ISA version, times ten, that the driver must support */
    int overlaps; /* 1: supports programmatic stream serialization: it may start before its
                     predecessor in the stream has finished and waits for it. With state = settled
                     it reads positions, lengths and addresses before that wait */
    int specific; /* 1: for an architecture-specific target such as sm_90a; runs only on that one */

    const ptxgen_param *params;
    size_t param_count;

    unsigned block[3];
    unsigned grid[3]; /* zeros if grid_at computes the grid */
    void (*grid_at)(const ptxgen_run *run, unsigned grid[3]); /* NULL if grid is fixed */
    unsigned shared_static, shared_dynamic; /* bytes per block; shared_dynamic is 0 if shared_at
                                               computes it */
    unsigned (*shared_at)(const ptxgen_run *run); /* NULL if shared_dynamic is fixed */
    size_t workspace;                       /* bytes of device memory in addition to the
                                               parameters */

    /* The configuration; 0 if the family has no such key (m is 1 then). With rows = run_time, m is
     * the number of rows of X that a block processes at once. */
    int64_t k, n, m;
    int64_t num_warps, head_dim, num_heads, num_kv_heads, max_seq_len;
    int dynamic_dims;     /* 1: k, n and m with at_run_time set in config are parameters, and other
                             sizes than these are accepted */
    int seq_len_indirect; /* 1: the sequence length is read from device memory */
    const ptxgen_config *config; /* all keys of the family */
    size_t config_count;

    unsigned registers;     /* registers per thread, by ptxas; 0 if ptxas was not run */
    unsigned blocks_per_sm; /* resident blocks per SM of this sm; 0 if ptxas was not run */
    int preference;         /* rank among kernels that fit a query; the highest is found */
    const char *chosen_by;  /* family whose variant = auto chose this kernel, or NULL */
    int chosen_f32, chosen_q8; /* 1: chosen for precision = f32, for precision = q8 */
} ptxgen_kernel;

typedef enum ptxgen_kv {
    PTXGEN_KV_FUSED = 1,
    PTXGEN_KV_SEPARATE,
} ptxgen_kv;
typedef enum ptxgen_norm {
    PTXGEN_NORM_NONE,
    PTXGEN_NORM_RMS,
} ptxgen_norm;
typedef enum ptxgen_activation {
    PTXGEN_ACTIVATION_SILU,
    PTXGEN_ACTIVATION_GELU,
    PTXGEN_ACTIVATION_SWIGLU_OAI,
    PTXGEN_ACTIVATION_GELU_ERF,
    PTXGEN_ACTIVATION_RELU,
    PTXGEN_ACTIVATION_RELU2,
    PTXGEN_ACTIVATION_XIELU,
} ptxgen_activation;
typedef enum ptxgen_layout {
    PTXGEN_LAYOUT_GROUPED,
    PTXGEN_LAYOUT_TILED,
} ptxgen_layout;
typedef enum ptxgen_state {
    PTXGEN_STATE_CHANGING,
    PTXGEN_STATE_SETTLED,
} ptxgen_state;
typedef enum ptxgen_out {
    PTXGEN_OUT_F32,
    PTXGEN_OUT_F16,
    PTXGEN_OUT_BF16,
    PTXGEN_OUT_Q8_1,
} ptxgen_out;
typedef enum ptxgen_approximation {
    PTXGEN_APPROXIMATION_ERF,
    PTXGEN_APPROXIMATION_TANH,
} ptxgen_approximation;
typedef enum ptxgen_broadcast {
    PTXGEN_BROADCAST_NONE,
    PTXGEN_BROADCAST_ROW,
} ptxgen_broadcast;
typedef enum ptxgen_gamma {
    PTXGEN_GAMMA_INPUT,
    PTXGEN_GAMMA_NONE,
} ptxgen_gamma;
typedef enum ptxgen_epilogue {
    PTXGEN_EPILOGUE_NONE,
    PTXGEN_EPILOGUE_SILU,
    PTXGEN_EPILOGUE_GELU,
    PTXGEN_EPILOGUE_SWIGLU_OAI,
    PTXGEN_EPILOGUE_GELU_ERF,
    PTXGEN_EPILOGUE_RELU,
    PTXGEN_EPILOGUE_RELU2,
    PTXGEN_EPILOGUE_XIELU,
} ptxgen_epilogue;

/* Describes the kernel that a caller needs. A member that is 0 or NULL matches any kernel.
 *
 * Exceptions are activations and the members from bias on: there 0 means "without".
 * A size whose key a family lacks counts as 1: m = 1 finds kernels without m. */
typedef struct ptxgen_query {
    ptxgen_operation op;
    ptxgen_format weights;     /* format of W, or of the KV cache in attention */
    ptxgen_format activations; /* 0: f32; with family set, any */
    ptxgen_format precision; /* PTXGEN_F32: excludes kernels that round f32 activations;
                                PTXGEN_NONE: any */
    unsigned sm; /* compute capability of the device, times ten, e.g. 90 */
    const char *family;
    double epsilon; /* epsilon of an RMS norm */
    int64_t k;
    int64_t n;
    int64_t m;
    int64_t n_kv; /* rows of Wk and of Wv, next to n rows of Wq */
    int64_t experts; /* mixtures: number of experts */
    int64_t experts_used; /* mixtures: experts per row */
    int64_t n_shared; /* mixtures: rows of the shared expert; 0: any */
    int64_t plane_rows; /* rows from an expert's or head's matrix to the next; 0: any */
    int64_t head_dim;
    int64_t num_heads;
    int64_t num_kv_heads;
    int64_t max_seq_len;
    int64_t chunk_size;
    int64_t latent; /* latent attention: values of a cache row without RoPE */
    int64_t n_rope; /* latent attention: values with RoPE, of a cache row and of a head of q */
    int64_t nope; /* latent attention: values of a head of q without RoPE */
    int64_t value_dim; /* latent attention: values of a head's result */
    int64_t q_rank; /* latent attention: columns of the matrix that makes q; 0: any */
    int64_t num_warps; /* warps per block, of families with this key */
    ptxgen_kv kv; /* pipeline qkv: K and V by one kernel or by two; 0: any */
    int64_t n_v; /* rows of Wv if not n_kv; 0: any */
    int64_t state_size; /* mamba2, mamba_scan: state values per channel */
    int64_t num_groups; /* mamba2: groups of heads; rms_norm: rows of gamma; 0: one */
    int64_t conv_kernel; /* mamba2, short_conv: positions of the convolution */
    int64_t dt_rank; /* mamba_scan: values before B in a row; 0: any */
    int64_t per_layer; /* per_layer_rows: values per layer */
    ptxgen_format weights_q; /* format of Wq; 0: as weights, or the kernel has no such matrix */
    ptxgen_format weights_k;
    ptxgen_format weights_v;
    ptxgen_format weights_g; /* gate and up */
    ptxgen_format weights_u;
    ptxgen_format weights_d; /* down */
    ptxgen_format weights_s; /* shared expert: down, gate, up */
    ptxgen_format weights_sg;
    ptxgen_format weights_su;

    int bias; /* 1 if a bias is added to the result */
    int residual; /* products: 1 if a residual is added; rms_norm: index of its word */
    ptxgen_norm norm; /* norm of x before the product */
    ptxgen_activation activation; /* activation function of the gate */
    int seq_len_indirect; /* attention to one sequence: 1 if seq_len is read from device memory */
    int64_t window; /* attention: last positions that it covers; 0: all */
    int sinks; /* attention: 1 if heads have sinks */
    int gate; /* attention: gate; 1, 2: sigmoid, of heads; 3, 4: softplus */
    int64_t ring; /* rows of a ring cache; 0: max_seq_len rows, no ring */
    int gated; /* rope_kv_write: 1 if q has gates */
    double scale; /* factor; 0: 1 / sqrt(head_dim) in attention, 1 in products */
    double softcap; /* soft cap; 0: none */
    ptxgen_layout layout; /* delta_net: order of the value heads */
    int apart; /* mla_query: 1 if the latents do not follow q in memory */
    ptxgen_state state; /* settled: positions, lengths and addresses do not change after the launch */
    int64_t next; /* bytes of the next launch's weights to prefetch into L2; 0: off */
    ptxgen_out out; /* type of the result */
    ptxgen_approximation approximation; /* gelu: its approximation */
    ptxgen_broadcast broadcast; /* add, multiply: what b is repeated over */
    int scaled; /* product: 1 if a tensor has the factor of each matrix */
    ptxgen_gamma gamma; /* rms_norm: none if it has no weights */
    int out_scale; /* rms_norm: 1 if an input is the factor of h_out */
    ptxgen_epilogue epilogue; /* product without a gate: activation of its result */
    int times; /* product: 1 if rows multiply the activated result */
    double limit; /* limit of gate and up after silu; 0: none */
    double factor; /* per_layer_rows: factor of the sum; 0: 1 */
    int conv_form; /* short_conv: 0 if gated, 1 if it ends with silu */
    int ungated; /* gate and up of experts: 1 without a gate */
    int64_t history; /* sample, embed_rows: token ids kept per row; 0: none */
    int64_t biases; /* sample: most biases of a row; 0: none */
    int mask; /* sample: 1 if an input has the allowed tokens */
    int logprobs; /* sample: best tokens with log-probabilities; 0: none */
    int scratch; /* 1: include kernels with scratch parameters */
} ptxgen_query;

/* ptxgen_argument.buffer of an argument in the pipeline's workspace. */
#define PTXGEN_WORKSPACE (-1)
enum { PTXGEN_MOST_ARGUMENTS = 20, PTXGEN_MOST_STEPS = 8 };
typedef struct ptxgen_argument {
    int buffer;    /* index into the pipeline's buffers, or PTXGEN_WORKSPACE */
    size_t offset; /* byte offset in the workspace; times the rows if rows_at_run_time */
} ptxgen_argument;

typedef struct ptxgen_pipeline_step {
    const char *kernel;               /* name of the kernel, see PREFIX_named */
    size_t place;                     /* index in PREFIX_kernels of the first kernel with that
                                         name */
    const ptxgen_argument *arguments; /* one per parameter of the kernel */
    size_t argument_count;
} ptxgen_pipeline_step;

typedef struct ptxgen_pipeline {
    const char *name;
    const char *pipeline; /* family of the pipeline, e.g. "qkv" */
    const ptxgen_param *buffers; /* the caller's buffers: outputs, weights, inputs, numbers */
    size_t buffer_count;
    const ptxgen_pipeline_step *steps;
    size_t step_count;
    size_t workspace; /* bytes of device memory between the steps, aligned to 16 */
    int rows_at_run_time; /* 1: workspace is bytes per row, see ptxgen_workspace */
    int64_t k, n, n_kv, m;
    const ptxgen_config *config; /* all keys of the pipeline */
    size_t config_count;
    ptxgen_operation operation;
    ptxgen_format weights;     /* as in ptxgen_kernel */
    ptxgen_format activations; /* PTXGEN_Q8_1: the caller passes x as q8_1 blocks */
    ptxgen_format precision;   /* PTXGEN_Q8_1 if a step multiplies x as 8-bit integers */
} ptxgen_pipeline;

#define PTXGEN_MIN(a, b)      ((a) < (b) ? (a) : (b))
#define PTXGEN_MAX(a, b)      ((a) > (b) ? (a) : (b))
#define PTXGEN_CEIL_DIV(a, b) (((a) + (b) - 1) / (b))

/* Returns 1 if the PTX is what ptxgen wrote or verified. With embed = c23 or incbin the compiler
 * reads it from the .ptx file, which may have changed since. The checksum is 64-bit FNV-1a. */
static inline int ptxgen_is_intact(const ptxgen_kernel *kernel)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    size_t i;
    for (i = 0; kernel->ptx[i]; i++)
        hash = (hash ^ (unsigned char)kernel->ptx[i]) * UINT64_C(0x100000001b3);
    return i == kernel->ptx_length && hash == kernel->checksum;
}

/* Returns the number of blocks of a grid in one dimension; 0 if it exceeds CUDA's limit, most. */
static inline unsigned ptxgen_extent(int64_t blocks, int64_t most)
{
    return blocks > 0 && blocks <= most ? (unsigned)blocks : 0;
}

static inline const ptxgen_config *ptxgen_key(const ptxgen_config *config, size_t count,
                                              const char *name)
{
    size_t i;
    for (i = 0; i < count; i++)
        if (strcmp(config[i].name, name) == 0)
            return &config[i];
    return NULL;
}

/* Returns 1 if the launch gives the number of rows of X and Y; m is then the rows per block. */
static inline int ptxgen_rows_at_run_time(const ptxgen_kernel *kernel)
{
    const ptxgen_config *rows = ptxgen_key(kernel->config, kernel->config_count, "rows");
    return rows && rows->value != 0;
}

/* Returns the run-time values of a kernel: its built-in sizes, and the caller's for all others. */
static inline ptxgen_run ptxgen_run_of(const ptxgen_kernel *kernel, const ptxgen_run *run)
{
    ptxgen_run values = *run;
    if (!kernel->dynamic_dims) {
        values.k = kernel->k;
        values.n = kernel->n;
    }
    if (!kernel->dynamic_dims && !ptxgen_rows_at_run_time(kernel))
        values.m = kernel->m;
    return values;
}

/* Returns 1 if a key accepts a size. key is NULL if the configuration has no such key. wanted 0
 * accepts any; words count from 1. */
static inline int ptxgen_takes(const ptxgen_config *key, int64_t wanted)
{
    if (wanted == 0)
        return 1;
    if (!key)
        return wanted == 1;
    if (key->word)
        return wanted == key->value + 1;
    if (!key->at_run_time)
        return wanted == key->value;
    return wanted >= key->min && wanted <= key->max && wanted % key->multiple_of == 0;
}

static inline int64_t *ptxgen_run_size(ptxgen_run *run, const char *name)
{
    return strcmp(name, "k") == 0   ? &run->k
           : strcmp(name, "n") == 0 ? &run->n
           : strcmp(name, "m") == 0 ? &run->m
                                    : NULL;
}

/* Returns 1 if a configuration accepts the run-time values. Values of 0 are not checked. */
static inline int ptxgen_fits_run(const ptxgen_config *config, size_t count, ptxgen_run *run)
{
    size_t i;
    for (i = 0; i < count; i++)
        if (config[i].at_run_time &&
            !ptxgen_takes(&config[i], *ptxgen_run_size(run, config[i].name)))
            return 0;
    return run->sm_count <= 65536;
}

/* Computes the grid to launch. run may be NULL if the kernel's grid is fixed.
 *
 * Returns 1 on success. Returns 0, and a grid with a zero, if
 *  - run is NULL or lacks a value that the grid depends on,
 *  - the kernel does not accept a size,
 *  - the grid exceeds CUDA's limits (2^31-1 blocks in x, 65535 in y and z).
 */
static inline int ptxgen_grid(const ptxgen_kernel *kernel, const ptxgen_run *run, unsigned grid[3])
{
    memcpy(grid, kernel->grid, sizeof kernel->grid);
    if (kernel->grid_at && run) {
        ptxgen_run values = ptxgen_run_of(kernel, run);
        if (ptxgen_fits_run(kernel->config, kernel->config_count, &values))
            kernel->grid_at(&values, grid);
    }
    return grid[0] && grid[1] && grid[2];
}

/* Returns the bytes of dynamic shared memory to launch with. run may be NULL if they are fixed. */
static inline unsigned ptxgen_shared(const ptxgen_kernel *kernel, const ptxgen_run *run)
{
    ptxgen_run values;
    if (!kernel->shared_at || !run)
        return kernel->shared_dynamic;
    values = ptxgen_run_of(kernel, run);
    return kernel->shared_at(&values);
}

/* Parser state of a formula: whole numbers, names, + - * / ( ), min(a, b), max(a, b), ceil_div(a,
 * b). Names are keys of a configuration or members of ptxgen_run. */
typedef struct ptxgen_formula {
    const char *at;
    const ptxgen_config *config;
    size_t config_count;
    ptxgen_run run;
    int failed; /* 1: a value is unknown, negative or above INT64_MAX */
} ptxgen_formula;

static inline int64_t ptxgen_formula_sum(ptxgen_formula *f);

static inline int64_t ptxgen_formula_fail(ptxgen_formula *f)
{
    f->failed = 1;
    return 1; /* a divisor other than 0 */
}

static inline int64_t ptxgen_formula_apply(ptxgen_formula *f, char sign, int64_t a, int64_t b)
{
    if (a < 0 || b < 0)
        return ptxgen_formula_fail(f);
    switch (sign) {
    case '+':
        return a > INT64_MAX - b ? ptxgen_formula_fail(f) : a + b;
    case '-':
        return a - b;
    case '*':
        return b && a > INT64_MAX / b ? ptxgen_formula_fail(f) : a * b;
    default:
        return b ? a / b : ptxgen_formula_fail(f);
    }
}

static inline void ptxgen_formula_skip(ptxgen_formula *f)
{
    while (*f->at == ' ')
        f->at++;
}

/* Parses "(a, b)" after the name of a function and evaluates the call. */
static inline int64_t ptxgen_formula_call(ptxgen_formula *f, char function)
{
    int64_t a, b;
    f->at++;
    a = ptxgen_formula_sum(f);
    f->at += *f->at == ',';
    b = ptxgen_formula_sum(f);
    f->at += *f->at == ')';
    if (function == 'c')
        return ptxgen_formula_apply(f, '/', ptxgen_formula_apply(f, '+', a, b - 1), b);
    return function == 'i' ? PTXGEN_MIN(a, b) : PTXGEN_MAX(a, b);
}

/* Parses a name and returns the key's value, or the member of run. */
static inline int64_t ptxgen_formula_name(ptxgen_formula *f)
{
    char name[32];
    size_t length = 0;
    const ptxgen_config *key;
    const int64_t *size;
    for (; (*f->at >= 'a' && *f->at <= 'z') || (*f->at >= '0' && *f->at <= '9') || *f->at == '_';
         f->at++)
        if (length + 1 < sizeof name)
            name[length++] = *f->at;
    name[length] = '\0';
    ptxgen_formula_skip(f);
    if (*f->at == '(')
        return ptxgen_formula_call(f, name[0] == 'c' ? 'c' : name[1]);
    key = ptxgen_key(f->config, f->config_count, name);
    if (key && !key->at_run_time)
        return key->value;
    size = strcmp(name, "sm_count") == 0 ? &f->run.sm_count : ptxgen_run_size(&f->run, name);
    return size && *size > 0 ? *size : ptxgen_formula_fail(f);
}

static inline int64_t ptxgen_formula_primary(ptxgen_formula *f)
{
    int64_t value = 0;
    ptxgen_formula_skip(f);
    if (*f->at == '(') {
        f->at++;
        value = ptxgen_formula_sum(f);
        f->at += *f->at == ')';
    } else if (*f->at >= 'a' && *f->at <= 'z') {
        value = ptxgen_formula_name(f);
    } else {
        for (; *f->at >= '0' && *f->at <= '9'; f->at++)
            value = ptxgen_formula_apply(f, '+', ptxgen_formula_apply(f, '*', value, 10),
                                         *f->at - '0');
    }
    ptxgen_formula_skip(f);
    return value;
}

static inline int64_t ptxgen_formula_product(ptxgen_formula *f)
{
    int64_t value = ptxgen_formula_primary(f);
    while (*f->at == '*' || *f->at == '/') {
        char sign = *f->at++;
        value = ptxgen_formula_apply(f, sign, value, ptxgen_formula_primary(f));
    }
    return value;
}

static inline int64_t ptxgen_formula_sum(ptxgen_formula *f)
{
    int64_t value = ptxgen_formula_product(f);
    while (*f->at == '+' || *f->at == '-') {
        char sign = *f->at++;
        value = ptxgen_formula_apply(f, sign, value, ptxgen_formula_product(f));
    }
    return value;
}

/* Returns the bytes of a parameter, or -1 if its formula cannot be evaluated. */
static inline int64_t ptxgen_evaluate(const ptxgen_param *param, const ptxgen_config *config,
                                      size_t config_count, const ptxgen_run *run)
{
    ptxgen_formula f;
    int64_t bytes;
    if (param->bytes || param->kind != PTXGEN_PARAM_POINTER)
        return param->bytes;
    memset(&f, 0, sizeof f);
    f.at = param->size;
    f.config = config;
    f.config_count = config_count;
    f.run = *run;
    if (!ptxgen_fits_run(config, config_count, &f.run))
        return -1;
    bytes = ptxgen_formula_sum(&f);
    return f.failed || *f.at ? -1 : bytes;
}

/* Returns the bytes of a kernel's buffer argument, or of a number. run may be NULL if param->bytes
 * is not 0. Returns -1 if run lacks a value that the size depends on, or has a value that the
 * kernel does not accept. */
static inline int64_t ptxgen_bytes(const ptxgen_kernel *kernel, const ptxgen_param *param,
                                   const ptxgen_run *run)
{
    const ptxgen_run none = { 0, 0, 0, 0 };
    ptxgen_run values = ptxgen_run_of(kernel, run ? run : &none);
    return ptxgen_evaluate(param, kernel->config, kernel->config_count, &values);
}

/* Returns the bytes of a pipeline's buffer; parameters and failure as for ptxgen_bytes. */
static inline int64_t ptxgen_pipeline_bytes(const ptxgen_pipeline *pipeline,
                                            const ptxgen_param *buffer, const ptxgen_run *run)
{
    const ptxgen_run none = { 0, 0, 0, 0 };
    return ptxgen_evaluate(buffer, pipeline->config, pipeline->config_count, run ? run : &none);
}

/* Returns the bytes of workspace that a pipeline needs for a number of rows. rows is ignored unless
 * rows_at_run_time is 1. */
static inline size_t ptxgen_workspace(const ptxgen_pipeline *pipeline, size_t rows)
{
    return pipeline->rows_at_run_time ? pipeline->workspace * rows : pipeline->workspace;
}

/* A text that is truncated at size bytes; length counts all of it, as snprintf does. */
typedef struct ptxgen_text {
    char *bytes;
    size_t size, length;
} ptxgen_text;

static inline void ptxgen_say(ptxgen_text *text, const char *words)
{
    for (; *words; words++, text->length++) {
        if (text->length + 1 >= text->size)
            continue;
        text->bytes[text->length] = *words;
        text->bytes[text->length + 1] = '\0';
    }
}

static inline void ptxgen_say_number(ptxgen_text *text, const char *before, int64_t number)
{
    char digits[21];
    size_t first = sizeof digits - 1;
    uint64_t rest = number < 0 ? 0 - (uint64_t)number : (uint64_t)number;
    digits[first] = '\0';
    do
        digits[--first] = (char)('0' + rest % 10);
    while (rest /= 10);
    ptxgen_say(text, before);
    ptxgen_say(text, number < 0 ? "-" : "");
    ptxgen_say(text, digits + first);
}

/* Returns 1 if a key has a value. Real values are compared as f32. key may be NULL: its value is 0.
 */
static inline int ptxgen_is_set_to(const ptxgen_config *key, double wanted)
{
    double value = key ? (double)key->value : 0;
    if (key && key->real > 0)
        return (float)key->real >= (float)wanted && (float)key->real <= (float)wanted;
    return value >= wanted && value <= wanted;
}

static inline int ptxgen_fits_epsilon(const ptxgen_config *config, size_t count, double wanted)
{
    return !(wanted > 0) || ptxgen_is_set_to(ptxgen_key(config, count, "epsilon"), wanted);
}

/* Sizes in a query, by the names of their keys. */
enum { PTXGEN_QUERY_SIZES = 26 };
typedef struct ptxgen_size {
    const char *name;
    int64_t wanted; /* 0: any */
} ptxgen_size;
static inline ptxgen_size ptxgen_query_size(const ptxgen_query *query, size_t index)
{
    const ptxgen_size sizes[PTXGEN_QUERY_SIZES] = {
        { "k", query->k },
        { "n", query->n },
        { "m", query->m },
        { "n_kv", query->n_kv },
        { "experts", query->experts },
        { "experts_used", query->experts_used },
        { "n_shared", query->n_shared },
        { "plane_rows", query->plane_rows },
        { "head_dim", query->head_dim },
        { "num_heads", query->num_heads },
        { "num_kv_heads", query->num_kv_heads },
        { "max_seq_len", query->max_seq_len },
        { "chunk_size", query->chunk_size },
        { "latent", query->latent },
        { "n_rope", query->n_rope },
        { "nope", query->nope },
        { "value_dim", query->value_dim },
        { "q_rank", query->q_rank },
        { "num_warps", query->num_warps },
        { "kv", query->kv },
        { "n_v", query->n_v },
        { "state_size", query->state_size },
        { "num_groups", query->num_groups },
        { "conv_kernel", query->conv_kernel },
        { "dt_rank", query->dt_rank },
        { "per_layer", query->per_layer },
    };
    return sizes[index];
}

/* Formats in a query, by the names of the matrices' parameters. */
enum { PTXGEN_QUERY_MATRICES = 9 };
typedef struct ptxgen_matrix {
    const char *name;
    ptxgen_format wanted; /* PTXGEN_NONE: query->weights */
} ptxgen_matrix;
static inline ptxgen_matrix ptxgen_query_matrix(const ptxgen_query *query, size_t index)
{
    const ptxgen_matrix matrices[PTXGEN_QUERY_MATRICES] = {
        { "wq", query->weights_q },
        { "wk", query->weights_k },
        { "wv", query->weights_v },
        { "wg", query->weights_g },
        { "wu", query->weights_u },
        { "wd", query->weights_d },
        { "ws", query->weights_s },
        { "wsg", query->weights_sg },
        { "wsu", query->weights_su },
    };
    return matrices[index];
}

/* Options in a query, by the names of their keys. Words count from 0. */
enum { PTXGEN_QUERY_OPTIONS = 32 };
typedef struct ptxgen_option {
    const char *name;
    double wanted; /* 0: without the option */
} ptxgen_option;
static inline ptxgen_option ptxgen_query_option(const ptxgen_query *query, size_t index)
{
    const ptxgen_option options[PTXGEN_QUERY_OPTIONS] = {
        { "bias", (double)query->bias },
        { "residual", (double)query->residual },
        { "norm", (double)query->norm },
        { "activation", (double)query->activation },
        { "seq_len", (double)query->seq_len_indirect },
        { "window", (double)query->window },
        { "sinks", (double)query->sinks },
        { "gate", (double)query->gate },
        { "ring", (double)query->ring },
        { "gated", (double)query->gated },
        { "scale", (double)query->scale },
        { "softcap", (double)query->softcap },
        { "layout", (double)query->layout },
        { "inputs", (double)query->apart },
        { "state", (double)query->state },
        { "next", (double)query->next },
        { "out", (double)query->out },
        { "approximation", (double)query->approximation },
        { "broadcast", (double)query->broadcast },
        { "scaled", (double)query->scaled },
        { "gamma", (double)query->gamma },
        { "out_scale", (double)query->out_scale },
        { "epilogue", (double)query->epilogue },
        { "times", (double)query->times },
        { "limit", (double)query->limit },
        { "factor", (double)query->factor },
        { "form", (double)query->conv_form },
        { "ungated", (double)query->ungated },
        { "history", (double)query->history },
        { "biases", (double)query->biases },
        { "mask", (double)query->mask },
        { "logprobs", (double)query->logprobs },
    };
    return options[index];
}

/* Returns 1 if a scale of q.k is 0 or equals 1 / sqrt(head_dim) up to f32 rounding. */
static inline int ptxgen_is_default_scale(double scale, const ptxgen_config *head_dim)
{
    double square = scale * scale * (double)(head_dim ? head_dim->value : 0);
    return !(scale > 0) || (square > 1 - 1e-6 && square < 1 + 1e-6);
}

/* Returns 1 if a configuration has the option that a query asks for. Attention to several sequences
 * has no key seq_len: it always reads the lengths from device memory. */
static inline int ptxgen_fits_option(const ptxgen_config *config, size_t count,
                                     ptxgen_option option)
{
    const ptxgen_config *key = ptxgen_key(config, count, option.name);
    const ptxgen_config *head_dim = ptxgen_key(config, count, "head_dim");
    if (strcmp(option.name, "seq_len") == 0 && !key)
        return 1;
    if (strcmp(option.name, "scale") == 0 && ptxgen_is_default_scale(option.wanted, head_dim))
        return !key || ptxgen_is_default_scale(key->real, head_dim);
    return ptxgen_is_set_to(key, option.wanted);
}

static inline int ptxgen_fits_options(const ptxgen_config *config, size_t count,
                                      const ptxgen_query *query)
{
    size_t i;
    for (i = 0; i < PTXGEN_QUERY_OPTIONS; i++)
        if (!ptxgen_fits_option(config, count, ptxgen_query_option(query, i)))
            return 0;
    return 1;
}

static inline int ptxgen_fits_sizes(const ptxgen_config *config, size_t count,
                                    const ptxgen_query *query)
{
    size_t i;
    for (i = 0; i < PTXGEN_QUERY_SIZES; i++) {
        ptxgen_size size = ptxgen_query_size(query, i);
        if (!ptxgen_takes(ptxgen_key(config, count, size.name), size.wanted))
            return 0;
    }
    return 1;
}

static inline const ptxgen_param *ptxgen_param_named(const ptxgen_param *params, size_t count,
                                                     const char *name)
{
    size_t i;
    for (i = 0; i < count; i++)
        if (strcmp(params[i].name, name) == 0)
            return &params[i];
    return NULL;
}

/* Returns 1 if a matrix has the format that a query asks for. param is NULL if the kernel has no
 * such matrix. */
static inline int ptxgen_fits_matrix(const ptxgen_param *param, ptxgen_format wanted,
                                     const ptxgen_query *query)
{
    if (!param)
        return !wanted;
    wanted = wanted ? wanted : query->weights;
    return !wanted || wanted == param->format;
}

/* Returns 1 if all matrices have the formats that a query asks for. weights is the format of the
 * kernel's single matrix. */
static inline int ptxgen_fits_weights(ptxgen_format weights, const ptxgen_param *params,
                                      size_t count, const ptxgen_query *query)
{
    int several = 0;
    size_t i;
    for (i = 0; i < PTXGEN_QUERY_MATRICES; i++) {
        ptxgen_matrix matrix = ptxgen_query_matrix(query, i);
        const ptxgen_param *param = ptxgen_param_named(params, count, matrix.name);
        if (!ptxgen_fits_matrix(param, matrix.wanted, query))
            return 0;
        several |= param != NULL;
    }
    return !query->weights || query->weights == weights ||
           (several && !ptxgen_param_named(params, count, "w"));
}

static inline int ptxgen_fits_activations(const ptxgen_kernel *kernel, const ptxgen_query *query)
{
    if (query->activations)
        return query->activations == kernel->activations;
    return query->family || kernel->activations == PTXGEN_F32 ||
           kernel->activations == PTXGEN_NONE; /* kernel without x */
}

/* Returns 1 if the caller accepts the kernel's scratch parameters: query->scratch or query->family
 * is set, or it has none. */
static inline int ptxgen_fits_scratch(const ptxgen_param *params, size_t count,
                                      const ptxgen_query *query)
{
    size_t i;
    for (i = 0; i < count && !query->scratch && !query->family; i++)
        if (params[i].direction == PTXGEN_PARAM_SCRATCH ||
            params[i].direction == PTXGEN_PARAM_ZEROED)
            return 0;
    return 1;
}

/* Returns 1 if a compute capability, times ten, has the instructions of a kernel. */
static inline int ptxgen_runs_on(const ptxgen_kernel *kernel, unsigned sm)
{
    return kernel->specific ? sm == kernel->sm : sm >= kernel->sm;
}

/* Returns the maximum bytes of shared memory per block for a compute capability, times ten. A newer
 * GPU may have less than an older one. The actual device's limit is ptxgen_driver.shared_block. */
static inline unsigned ptxgen_shared_limit(unsigned sm)
{
    static const unsigned limits[][2] = {
        { 75, 65536 },
        { 80, 166912 },
        { 86, 101376 },
        { 87, 166912 },
        { 89, 101376 },
        { 90, 232448 },
        { 120, 101376 },
    };
    unsigned limit = 0;
    size_t i;
    for (i = 0; i < sizeof limits / sizeof *limits && limits[i][0] <= sm; i++)
        limit = limits[i][1];
    return limit;
}

/* Returns the bytes of shared memory per block, static and dynamic. */
static inline unsigned ptxgen_shared_need(const ptxgen_kernel *kernel, const ptxgen_run *run)
{
    return kernel->shared_static + ptxgen_shared(kernel, run);
}

/* Returns 1 if a device has the instructions and the shared memory that a kernel needs. run may be
 * NULL: dynamic shared memory that depends on it is not counted then. */
static inline int ptxgen_can_launch(const ptxgen_kernel *kernel, const ptxgen_run *run, unsigned sm,
                                    unsigned shared_block)
{
    return ptxgen_runs_on(kernel, sm) && kernel->shared_static <= shared_block &&
           ptxgen_shared(kernel, run) <= shared_block - kernel->shared_static;
}

static inline int ptxgen_fits_device(const ptxgen_kernel *kernel, const ptxgen_query *query)
{
    ptxgen_run run = { 0, 0, 0, 0 };
    run.k = query->k;
    run.n = query->n;
    run.m = query->m;
    return !query->sm ||
           ptxgen_can_launch(kernel, &run, query->sm, ptxgen_shared_limit(query->sm));
}

static inline int ptxgen_fits(const ptxgen_kernel *kernel, const ptxgen_query *query)
{
    return (!query->op || query->op == kernel->operation) &&
           ptxgen_fits_weights(kernel->weights, kernel->params, kernel->param_count, query) &&
           ptxgen_fits_activations(kernel, query) &&
           ptxgen_fits_scratch(kernel->params, kernel->param_count, query) &&
           (!query->precision || query->precision == kernel->precision) &&
           ptxgen_fits_device(kernel, query) &&
           (!query->family || strcmp(query->family, kernel->family) == 0) &&
           ptxgen_fits_sizes(kernel->config, kernel->config_count, query) &&
           ptxgen_fits_options(kernel->config, kernel->config_count, query) &&
           ptxgen_fits_epsilon(kernel->config, kernel->config_count, query->epsilon);
}

/* Returns 1 if two kernels are one kernel for different targets, as written in the spec or as
 * chosen by variant = auto. */
static inline int ptxgen_is_same_kernel(const ptxgen_kernel *a, const ptxgen_kernel *b)
{
    return strcmp(a->name, b->name) == 0 ||
           (a->chosen_by && b->chosen_by && strcmp(a->chosen_by, b->chosen_by) == 0 &&
            a->k == b->k && a->n == b->n);
}

/* Returns the rank of a kernel by its origin:
 *  2: variant = auto chose it for the precision that the query allows
 *  1: variant = auto chose it for another precision
 *  0: the spec names it
 */
static inline int ptxgen_choice(const ptxgen_kernel *kernel, const ptxgen_query *query)
{
    int as_wanted = query->precision == PTXGEN_F32 ? kernel->chosen_f32 : kernel->chosen_q8;
    return !kernel->chosen_by ? 0 : as_wanted ? 2 : 1;
}

/* Returns 1 if two kernels are of one family, or were chosen by the same family. */
static inline int ptxgen_has_same_origin(const ptxgen_kernel *a, const ptxgen_kernel *b)
{
    return strcmp(a->chosen_by ? a->chosen_by : a->family,
                  b->chosen_by ? b->chosen_by : b->family) == 0;
}

/* Returns the number of passes over the weights for a number of rows. */
static inline int64_t ptxgen_passes(const ptxgen_kernel *kernel, int64_t rows)
{
    return kernel->m > 0 ? PTXGEN_CEIL_DIV(rows, kernel->m) : rows;
}

/* Returns 1 if a kernel fits a query better than an earlier one of the table: see ptxgen_find_in.
 */
static inline int ptxgen_is_better(const ptxgen_kernel *later, const ptxgen_kernel *earlier,
                                   const ptxgen_query *query)
{
    if (later->dynamic_dims != earlier->dynamic_dims)
        return earlier->dynamic_dims;
    if (ptxgen_rows_at_run_time(later) != ptxgen_rows_at_run_time(earlier))
        return ptxgen_rows_at_run_time(earlier);
    if (ptxgen_rows_at_run_time(later) && query->m && later->m != earlier->m &&
        ptxgen_has_same_origin(later, earlier))
        return ptxgen_passes(later, query->m) != ptxgen_passes(earlier, query->m)
                   ? ptxgen_passes(later, query->m) < ptxgen_passes(earlier, query->m)
                   : later->m < earlier->m;
    if (ptxgen_choice(later, query) != ptxgen_choice(earlier, query))
        return ptxgen_choice(later, query) > ptxgen_choice(earlier, query);
    if (ptxgen_is_same_kernel(later, earlier))
        return query->sm ? later->sm > earlier->sm || later->specific : later->sm < earlier->sm;
    return later->preference > earlier->preference;
}

/* Returns the best kernel for a query, or NULL if none fits. Preference, most important first:
 *
 *  1. built-in sizes before sizes given at run time
 *  2. of one family's kernels with rows = run_time: the fewest passes over the weights for query->m
 *  3. kernels that variant = auto chose
 *  4. the family's preference, by which kernels that round x come first; .precision = PTXGEN_F32
 *     excludes them
 *  5. the order of the spec
 *
 * If a kernel exists for several targets, returns the newest that the device can launch,
 * or the oldest if query->sm is 0. */
static inline const ptxgen_kernel *ptxgen_find_in(const ptxgen_kernel *const *kernels, size_t count,
                                                  const ptxgen_query *query)
{
    const ptxgen_kernel *found = NULL;
    size_t i;
    for (i = 0; i < count; i++)
        if (ptxgen_fits(kernels[i], query) &&
            (!found || ptxgen_is_better(kernels[i], found, query)))
            found = kernels[i];
    return found;
}

/* Returns the kernel with a name, or NULL. Of a kernel made for several targets it returns the
 * newest that the device can launch, or the oldest if sm is 0. shared_block is the device's limit
 * of shared memory per block in bytes. */
static inline const ptxgen_kernel *ptxgen_named_in(const ptxgen_kernel *const *kernels,
                                                   size_t count, const char *name, unsigned sm,
                                                   unsigned shared_block)
{
    const ptxgen_kernel *found = NULL;
    size_t i;
    for (i = 0; i < count; i++)
        if (name && strcmp(kernels[i]->name, name) == 0 && (!found || sm) &&
            (!sm || ptxgen_can_launch(kernels[i], NULL, sm, shared_block)))
            found = kernels[i];
    return found;
}

/* Returns 1 if a device runs all steps of a pipeline. sm is its compute capability, times ten; 0
 * matches any device. */
static inline int ptxgen_pipeline_runs_on(const ptxgen_pipeline *pipeline,
                                          const ptxgen_kernel *const *kernels, size_t count,
                                          unsigned sm)
{
    size_t i;
    for (i = 0; i < pipeline->step_count; i++)
        if (!ptxgen_named_in(kernels, count, pipeline->steps[i].kernel, sm,
                             ptxgen_shared_limit(sm)))
            return 0;
    return 1;
}

/* Describes a pipeline as a kernel, so that queries compare both alike. */
static inline ptxgen_kernel ptxgen_pipeline_as_kernel(const ptxgen_pipeline *pipeline)
{
    ptxgen_kernel as;
    memset(&as, 0, sizeof as);
    as.name = pipeline->name;
    as.family = pipeline->pipeline;
    as.operation = pipeline->operation;
    as.weights = pipeline->weights;
    as.activations = pipeline->activations;
    as.precision = pipeline->precision;
    as.params = pipeline->buffers;
    as.param_count = pipeline->buffer_count;
    as.config = pipeline->config;
    as.config_count = pipeline->config_count;
    return as;
}

/* Returns a query adapted to pipelines: activations 0 means f32 even if family is set, since a
 * pipeline's family accepts several formats. sm is 0, since the steps' kernels decide about the
 * device. */
static inline ptxgen_query ptxgen_pipeline_query(const ptxgen_query *query)
{
    ptxgen_query as = *query;
    as.activations = query->activations ? query->activations : PTXGEN_F32;
    as.sm = 0;
    return as;
}

/* Returns 1 if a pipeline fits a query. */
static inline int ptxgen_pipeline_fits(const ptxgen_pipeline *pipeline,
                                       const ptxgen_kernel *const *kernels, size_t count,
                                       const ptxgen_query *query)
{
    const ptxgen_kernel as_kernel = ptxgen_pipeline_as_kernel(pipeline);
    const ptxgen_query wanted = ptxgen_pipeline_query(query);
    return ptxgen_fits(&as_kernel, &wanted) &&
           ptxgen_pipeline_runs_on(pipeline, kernels, count, query->sm);
}

/* Returns 1 if a pipeline fits a query better than an earlier one of the table: built-in rows
 * first, then the fewest passes over the weights, then the smaller m. */
static inline int ptxgen_pipeline_is_better(const ptxgen_pipeline *later,
                                            const ptxgen_pipeline *earlier,
                                            const ptxgen_query *query)
{
    int64_t passes, others;
    if (later->rows_at_run_time != earlier->rows_at_run_time)
        return earlier->rows_at_run_time;
    if (!later->rows_at_run_time || !query->m || strcmp(later->pipeline, earlier->pipeline) != 0)
        return 0;
    passes = PTXGEN_CEIL_DIV(query->m, later->m);
    others = PTXGEN_CEIL_DIV(query->m, earlier->m);
    return passes != others ? passes < others : later->m < earlier->m;
}

/* Returns the best pipeline for a query, or NULL if none fits: built-in rows first, then the fewest
 * passes over the weights, then the order of the spec. kernels is the table of the same header. */
static inline const ptxgen_pipeline *ptxgen_find_pipeline_in(
    const ptxgen_pipeline *const *pipelines, size_t count, const ptxgen_kernel *const *kernels,
    size_t kernel_count, const ptxgen_query *query)
{
    const ptxgen_pipeline *found = NULL;
    size_t i;
    for (i = 0; i < count; i++)
        if (ptxgen_pipeline_fits(pipelines[i], kernels, kernel_count, query) &&
            (!found || ptxgen_pipeline_is_better(pipelines[i], found, query)))
            found = pipelines[i];
    return found;
}

#ifdef __cplusplus
}
#endif
#endif /* PTXGEN_ABI */

#ifdef __cplusplus
extern "C" {
#endif

/* Returns the best kernel for a query, or NULL if none fits. ptxgen_find_in lists the preferences.
 * The kernel lives in static memory. */
const ptxgen_kernel *llama_find(const ptxgen_query *query);

/* Explains as a sentence for a log why llama_find returned NULL: "no gemv with k 4096, n 11008
 * for sm_80 was generated; nearest: q4k_gemv_k4096_n14336 (n is 14336)". If a kernel fits, the text
 * names it.
 *
 * Like snprintf it writes at most size bytes with the NUL and returns the length of the whole text.
 */
size_t llama_explain_miss(const ptxgen_query *query, char *text, size_t size);

/* Explains why llama_find_pipeline returned NULL; otherwise like llama_explain_miss. */
size_t llama_explain_pipeline_miss(const ptxgen_query *query, char *text, size_t size);

/* Returns the kernel with a name, e.g. a pipeline step's, or NULL. sm is the compute capability of
 * the device, times ten, or 0 for the oldest target: see ptxgen_named_in. */
const ptxgen_kernel *llama_named(const char *name, unsigned sm);

/* Returns the best pipeline for a query, or NULL if none fits. All members of the query count as in
 * llama_find. family is the pipeline's, e.g. "qkv"; activations 0 means f32 even if family is
 * set. */
const ptxgen_pipeline *llama_find_pipeline(const ptxgen_query *query);

/* All kernels, in the order of the spec. */
extern const ptxgen_kernel *const llama_kernels[];
extern const size_t llama_kernel_count;

/* All pipelines, in the order of the spec; a NULL follows the last. */
extern const ptxgen_pipeline *const llama_pipelines[];
extern const size_t llama_pipeline_count;

/* y[256] = W[256,4096] x[4096], weights f32, activations f32.  sm_80, block 32, grid 256. */
extern const ptxgen_kernel llama_f32_gemv_k4096_n256;

/* y[1,14336] = x[1,4096] W[14336,4096]^T, weights q4_k, activations f32 rounded to 8 bits, num_warps 12, rows_per_warp 1.  sm_80, block 384, grid min(1195, sm_count*2) x 1, 5120 bytes dynamic shared. */
extern const ptxgen_kernel llama_stream_gemv_q4k_k4096_n14336_m1_w12_r1;

/* y[8,4096] = factors[8] x[8,4096] W[4096,4096]^T, weights f16, activations f16, stages 2.  sm_80, block 256, grid 32 x 1 x 1, 51200 bytes dynamic shared. */
extern const ptxgen_kernel llama_mma_gemm_f16_f16_k4096_n4096_m8_s2;

/* y[1,4096] = rmsnorm(x[1,4096]) * gamma[4096], with residual also h_out = h + ..., activations f32, epsilon 1e-5.  sm_80, block 1024, grid 1, 128 bytes shared. */
extern const ptxgen_kernel llama_rms_norm_k4096_m1;

/* o[h] = softmax(q[h] K' scale) V, activations f32, head_dim 128, num_heads 32, num_kv_heads 8, max_seq_len 8192.  sm_80, block 32, grid 32. */
extern const ptxgen_kernel llama_incremental_attention_d128_h32_kv8_s8192;


#ifdef __cplusplus
}
#endif
#endif /* llama_KERNELS_H */

#if defined(LLAMA_WITH_CUDA) && !defined(llama_KERNELS_CUDA)
#define llama_KERNELS_CUDA

/* Loading and launching, identical in every header that ptxgen writes. All driver calls go through
 * pointers in ptxgen_driver, so the program links and starts without libcuda. */
#ifndef PTXGEN_DRIVER
#define PTXGEN_DRIVER

/* CUDA driver types. They come from <cuda.h>, or from a replacement that defines CUDA_VERSION, if
 * it was included before or the compiler finds <cuda.h>. Otherwise types of the same size are
 * declared with names that do not clash with a later <cuda.h>. */
#if !defined(CUDA_VERSION) && defined(__has_include)
#if __has_include(<cuda.h>)
#include <cuda.h>
#endif
#endif

#ifdef CUDA_VERSION
#define PTXGEN_CUDAAPI CUDAAPI
typedef CUresult ptxgen_result;
typedef CUdeviceptr ptxgen_deviceptr;
typedef CUstream ptxgen_stream;
typedef CUmodule ptxgen_module;
typedef CUfunction ptxgen_function;
typedef CUdevice ptxgen_device;
typedef CUdevice_attribute ptxgen_device_attribute;
typedef CUfunction_attribute ptxgen_function_attribute;
typedef CUjit_option ptxgen_jit_option;
typedef CUDA_KERNEL_NODE_PARAMS ptxgen_node_params;
#else
#ifdef _WIN32
#define PTXGEN_CUDAAPI __stdcall
#else
#define PTXGEN_CUDAAPI
#endif
#ifdef CUDA_API_PER_THREAD_DEFAULT_STREAM
#define PTXGEN_LAUNCH_KERNEL "cuLaunchKernel_ptsz"
#else
#define PTXGEN_LAUNCH_KERNEL "cuLaunchKernel"
#endif
typedef unsigned ptxgen_result; /* as a C enumeration */
#if UINTPTR_MAX > UINT32_MAX
typedef unsigned long long ptxgen_deviceptr;
#else
typedef unsigned ptxgen_deviceptr;
#endif
typedef struct CUstream_st *ptxgen_stream;
typedef struct CUmod_st *ptxgen_module;
typedef struct CUfunc_st *ptxgen_function;
typedef int ptxgen_device;
typedef unsigned ptxgen_device_attribute, ptxgen_function_attribute, ptxgen_jit_option;
typedef struct ptxgen_node_params { /* CUDA_KERNEL_NODE_PARAMS */
    ptxgen_function func;
    unsigned gridDimX, gridDimY, gridDimZ, blockDimX, blockDimY, blockDimZ, sharedMemBytes;
    void **kernelParams, **extra;
    void *kern, *ctx;
} ptxgen_node_params;
#endif

/* CUlaunchConfig and CUlaunchAttribute for cuLaunchKernelEx, declared here because an older
 * <cuda.h> lacks them. */
typedef struct ptxgen_launch_attribute {
    unsigned id;
    char unused[8 - sizeof(unsigned)];
    union {
        char bytes[64];
        void *alignment;
        int allowed;
    } value;
} ptxgen_launch_attribute;
typedef struct ptxgen_launch_config {
    unsigned gridDimX, gridDimY, gridDimZ, blockDimX, blockDimY, blockDimZ, sharedMemBytes;
    ptxgen_stream hStream;
    ptxgen_launch_attribute *attrs;
    unsigned numAttrs;
} ptxgen_launch_config;
#define PTXGEN_CU_PROGRAMMATIC_STREAM_SERIALIZATION 6u

/* CUDA_MEMCPY2D, the argument of cuMemcpy2DAsync. */
typedef struct ptxgen_copy_2d {
    size_t srcXInBytes, srcY;
    unsigned srcMemoryType;
    const void *srcHost;
    ptxgen_deviceptr srcDevice;
    void *srcArray;
    size_t srcPitch, dstXInBytes, dstY;
    unsigned dstMemoryType;
    void *dstHost;
    ptxgen_deviceptr dstDevice;
    void *dstArray;
    size_t dstPitch, WidthInBytes, Height;
} ptxgen_copy_2d;
#define PTXGEN_CU_MEMORYTYPE_HOST   1u
#define PTXGEN_CU_MEMORYTYPE_DEVICE 2u

/* Constants with the driver's values: PTXGEN_CUDA_ERROR_NOT_FOUND is CUDA_ERROR_NOT_FOUND. */
#define PTXGEN_CUDA_SUCCESS                    ((ptxgen_result)0)
#define PTXGEN_CUDA_ERROR_INVALID_VALUE        ((ptxgen_result)1)
#define PTXGEN_CUDA_ERROR_OUT_OF_MEMORY        ((ptxgen_result)2)
#define PTXGEN_CUDA_ERROR_NOT_INITIALIZED      ((ptxgen_result)3)
#define PTXGEN_CUDA_ERROR_INVALID_IMAGE        ((ptxgen_result)200)
#define PTXGEN_CUDA_ERROR_NO_BINARY_FOR_GPU    ((ptxgen_result)209)
#define PTXGEN_CUDA_ERROR_INVALID_HANDLE       ((ptxgen_result)400)
#define PTXGEN_CUDA_ERROR_NOT_FOUND            ((ptxgen_result)500)
#define PTXGEN_CUDA_ERROR_NOT_SUPPORTED        ((ptxgen_result)801)
#define PTXGEN_CUDA_ERROR_CAPTURE_UNSUPPORTED  ((ptxgen_result)900)
#define PTXGEN_CU_MULTIPROCESSOR_COUNT         ((ptxgen_device_attribute)16)
#define PTXGEN_CU_COMPUTE_CAPABILITY_MAJOR     ((ptxgen_device_attribute)75)
#define PTXGEN_CU_COMPUTE_CAPABILITY_MINOR     ((ptxgen_device_attribute)76)
#define PTXGEN_CU_SHARED_MEMORY_A_BLOCK_OPTIN  ((ptxgen_device_attribute)97)
#define PTXGEN_CU_MAX_DYNAMIC_SHARED           ((ptxgen_function_attribute)8)
#define PTXGEN_CU_JIT_ERROR_LOG                ((ptxgen_jit_option)5)
#define PTXGEN_CU_JIT_ERROR_LOG_SIZE           ((ptxgen_jit_option)6)
#define PTXGEN_CU_MEMHOSTALLOC_PORTABLE        1u
#define PTXGEN_CU_MEMHOSTALLOC_DEVICEMAP       2u

/* Called before a launch of a kernel that was not loaded. Define it as assert before the #include
 * to stop in a debugger. By default it does nothing: all errors are returned as ptxgen_result,
 * which is CUresult. */
#ifndef PTXGEN_ASSERT
#define PTXGEN_ASSERT(condition) ((void)0)
#endif

/* cuda.h renames functions for per-thread default streams; look up the name that a call would use.
 */
#ifndef PTXGEN_LAUNCH_KERNEL
#define PTXGEN_TEXT_OF(name)    #name
#define PTXGEN_ENTRY_NAME(name) PTXGEN_TEXT_OF(name)
#define PTXGEN_LAUNCH_KERNEL    PTXGEN_ENTRY_NAME(cuLaunchKernel)
#endif

#ifdef CUDA_API_PER_THREAD_DEFAULT_STREAM
#define PTXGEN_LAUNCH_KERNEL_EX "cuLaunchKernelEx_ptsz"
#else
#define PTXGEN_LAUNCH_KERNEL_EX "cuLaunchKernelEx"
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* Address of device memory that a kernel only reads. It documents the parameters of launch
 * functions: memory behind a ptxgen_deviceptr (CUdeviceptr) is written. The compiler does not check
 * it, since both are integers. */
typedef ptxgen_deviceptr ptxgen_const_deviceptr;

/* Returns the address of a driver entry point, or NULL. dlsym fits, with the handle from
 * dlopen("libcuda.so.1", RTLD_NOW) as library; on Windows, wrap GetProcAddress. */
typedef void *(*ptxgen_lookup)(void *library, const char *name);

/* Driver entry points, and the device properties that decide loading and launching. */
typedef struct ptxgen_driver {
    ptxgen_result(PTXGEN_CUDAAPI *ctx_get_device)(ptxgen_device *device);
    ptxgen_result(PTXGEN_CUDAAPI *device_get_attribute)(int *value, ptxgen_device_attribute attribute,
                                            ptxgen_device device);
    ptxgen_result(PTXGEN_CUDAAPI *module_load_data_ex)(ptxgen_module *module, const void *image,
                                           unsigned option_count, ptxgen_jit_option *options,
                                           void **values);
    ptxgen_result(PTXGEN_CUDAAPI *module_get_function)(ptxgen_function *function, ptxgen_module module, const char *name);
    ptxgen_result(PTXGEN_CUDAAPI *module_unload)(ptxgen_module module);
    ptxgen_result(PTXGEN_CUDAAPI *func_set_attribute)(ptxgen_function function, ptxgen_function_attribute attribute,
                                          int value);
    ptxgen_result(PTXGEN_CUDAAPI *launch_kernel)(ptxgen_function function, unsigned grid_x, unsigned grid_y,
                                     unsigned grid_z, unsigned block_x, unsigned block_y,
                                     unsigned block_z, unsigned shared, ptxgen_stream stream,
                                     void **arguments, void **extra);

    /* Needed only by decoders. */
    ptxgen_result(PTXGEN_CUDAAPI *mem_alloc)(ptxgen_deviceptr *address, size_t bytes);
    ptxgen_result(PTXGEN_CUDAAPI *mem_free)(ptxgen_deviceptr address);
    ptxgen_result(PTXGEN_CUDAAPI *copy_to_device)(ptxgen_deviceptr to, const void *from, size_t bytes,
                                      ptxgen_stream stream);
    ptxgen_result(PTXGEN_CUDAAPI *copy_to_host)(void *to, ptxgen_deviceptr from, size_t bytes,
                                    ptxgen_stream stream);
    ptxgen_result(PTXGEN_CUDAAPI *copy_on_device)(ptxgen_deviceptr to, ptxgen_deviceptr from,
                                      size_t bytes, ptxgen_stream stream);
    ptxgen_result(PTXGEN_CUDAAPI *set_bytes)(ptxgen_deviceptr to, unsigned char value, size_t bytes,
                                 ptxgen_stream stream);
    ptxgen_result(PTXGEN_CUDAAPI *set_words)(ptxgen_deviceptr to, unsigned value, size_t count,
                                 ptxgen_stream stream);
    ptxgen_result(PTXGEN_CUDAAPI *copy_2d)(const ptxgen_copy_2d *copy, ptxgen_stream stream);
    ptxgen_result(PTXGEN_CUDAAPI *stream_is_capturing)(ptxgen_stream stream, unsigned *status);
    ptxgen_result(PTXGEN_CUDAAPI *stream_synchronize)(ptxgen_stream stream);

    /* Needed only by decoders with tensors in host memory. */
    ptxgen_result(PTXGEN_CUDAAPI *mem_host_alloc)(void **host, size_t bytes, unsigned flags);
    ptxgen_result(PTXGEN_CUDAAPI *mem_host_get_device_pointer)(ptxgen_deviceptr *address, void *host,
                                                               unsigned flags);
    ptxgen_result(PTXGEN_CUDAAPI *mem_free_host)(void *host);

    /* Needed for overlapping launches; NULL disables them. */
    ptxgen_result(PTXGEN_CUDAAPI *get_version)(int *version);
    ptxgen_result(PTXGEN_CUDAAPI *launch_kernel_ex)(const ptxgen_launch_config *config,
                                                    ptxgen_function function, void **arguments,
                                                    void **extra);

    unsigned sm;           /* compute capability, times ten; 0: not initialized */
    unsigned sm_count;     /* number of multiprocessors */
    unsigned shared_block; /* bytes of shared memory that a block can opt into */
    int overlaps;          /* 1: launches may start before their predecessor has finished */

    /* Set by the caller, or NULL. Called with a text such as "q4k_gemv_k4096_n4096: w is
     * misaligned: 16 bytes are needed" when a launch is refused before it reaches the driver
     * (CUDA_ERROR_INVALID_VALUE or CUDA_ERROR_INVALID_HANDLE) and when a decoder refuses a call.
     * The text lives until report returns. */
    void (*report)(void *context, const char *why);
    void *report_context;
} ptxgen_driver;

/* A kernel in a context; all zeros until it is loaded. */
typedef struct ptxgen_loaded_kernel {
    const ptxgen_kernel *kernel; /* the newest of its name that the device can launch */
    ptxgen_module module;
    ptxgen_function function;
    int is_new; /* 1: loaded since the last load_all began */
} ptxgen_loaded_kernel;

/* Details of a failed load: the kernel, and the error log of the driver's JIT compiler, or the
 * reason why the driver was not called. log is "" for all other failures. */
typedef struct ptxgen_load_error {
    const ptxgen_kernel *kernel;
    char log[4096];
} ptxgen_load_error;

static inline void ptxgen_look_up(ptxgen_lookup lookup, void *library, const char *name,
                                  void *entry)
{
    void *found = lookup(library, name);
    memcpy(entry, &found, sizeof found); /* C has no cast to a function pointer */
}

static inline ptxgen_result ptxgen_get_attribute(const ptxgen_driver *driver, ptxgen_device device,
                                         ptxgen_device_attribute attribute, unsigned *value)
{
    int answer = 0;
    ptxgen_result result = driver->device_get_attribute(&answer, attribute, device);
    *value = (unsigned)answer;
    return result;
}

/* Looks up all entry points. A missing one becomes NULL. */
static inline void ptxgen_driver_look_up(ptxgen_driver *driver, ptxgen_lookup lookup, void *library)
{
    ptxgen_look_up(lookup, library, "cuCtxGetDevice", &driver->ctx_get_device);
    ptxgen_look_up(lookup, library, "cuDeviceGetAttribute", &driver->device_get_attribute);
    ptxgen_look_up(lookup, library, "cuModuleLoadDataEx", &driver->module_load_data_ex);
    ptxgen_look_up(lookup, library, "cuModuleGetFunction", &driver->module_get_function);
    ptxgen_look_up(lookup, library, "cuModuleUnload", &driver->module_unload);
    ptxgen_look_up(lookup, library, "cuFuncSetAttribute", &driver->func_set_attribute);
    ptxgen_look_up(lookup, library, PTXGEN_LAUNCH_KERNEL, &driver->launch_kernel);
    ptxgen_look_up(lookup, library, "cuMemAlloc_v2", &driver->mem_alloc);
    ptxgen_look_up(lookup, library, "cuMemFree_v2", &driver->mem_free);
    ptxgen_look_up(lookup, library, "cuMemcpyHtoDAsync_v2", &driver->copy_to_device);
    ptxgen_look_up(lookup, library, "cuMemcpyDtoHAsync_v2", &driver->copy_to_host);
    ptxgen_look_up(lookup, library, "cuMemcpyDtoDAsync_v2", &driver->copy_on_device);
    ptxgen_look_up(lookup, library, "cuMemsetD8Async", &driver->set_bytes);
    ptxgen_look_up(lookup, library, "cuMemsetD32Async", &driver->set_words);
    ptxgen_look_up(lookup, library, "cuMemcpy2DAsync_v2", &driver->copy_2d);
    ptxgen_look_up(lookup, library, "cuStreamIsCapturing", &driver->stream_is_capturing);
    ptxgen_look_up(lookup, library, "cuStreamSynchronize", &driver->stream_synchronize);
    ptxgen_look_up(lookup, library, "cuMemHostAlloc", &driver->mem_host_alloc);
    ptxgen_look_up(lookup, library, "cuMemHostGetDevicePointer_v2",
                   &driver->mem_host_get_device_pointer);
    ptxgen_look_up(lookup, library, "cuMemFreeHost", &driver->mem_free_host);
    ptxgen_look_up(lookup, library, "cuDriverGetVersion", &driver->get_version);
    ptxgen_look_up(lookup, library, PTXGEN_LAUNCH_KERNEL_EX, &driver->launch_kernel_ex);
}

/* Returns 1 if launches may overlap: compute capability 9.0 or newer, and a driver of CUDA 12.3 or
 * newer, the first that can capture them into graphs. */
static inline int ptxgen_driver_overlaps(const ptxgen_driver *driver)
{
    const int first_with_graphs = 12030;
    int version = 0;
    return driver->sm >= 90 && driver->launch_kernel_ex && driver->get_version &&
           driver->get_version(&version) == PTXGEN_CUDA_SUCCESS && version >= first_with_graphs;
}

/* Reads the properties of the current context's device. Returns CUDA_ERROR_NOT_FOUND if an entry
 * point that kernels need is NULL, else the driver's result. */
static inline ptxgen_result ptxgen_driver_ask(ptxgen_driver *driver)
{
    ptxgen_device device;
    ptxgen_result result;
    unsigned major = 0, minor = 0;
    driver->sm = 0;
    if (!driver->ctx_get_device || !driver->device_get_attribute || !driver->module_load_data_ex ||
        !driver->module_get_function || !driver->module_unload || !driver->func_set_attribute ||
        !driver->launch_kernel)
        return PTXGEN_CUDA_ERROR_NOT_FOUND;
    result = driver->ctx_get_device(&device);
    if (result == PTXGEN_CUDA_SUCCESS)
        result = ptxgen_get_attribute(driver, device, PTXGEN_CU_MULTIPROCESSOR_COUNT,
                                   &driver->sm_count);
    if (result == PTXGEN_CUDA_SUCCESS)
        result =
            ptxgen_get_attribute(driver, device, PTXGEN_CU_SHARED_MEMORY_A_BLOCK_OPTIN,
                              &driver->shared_block);
    if (result == PTXGEN_CUDA_SUCCESS)
        result =
            ptxgen_get_attribute(driver, device, PTXGEN_CU_COMPUTE_CAPABILITY_MAJOR, &major);
    if (result == PTXGEN_CUDA_SUCCESS)
        result =
            ptxgen_get_attribute(driver, device, PTXGEN_CU_COMPUTE_CAPABILITY_MINOR, &minor);
    if (result == PTXGEN_CUDA_SUCCESS)
        driver->sm = major * 10 + minor;
    driver->overlaps = ptxgen_driver_overlaps(driver);
    return result;
}

/* Returns the maximum bytes of dynamic shared memory for a block of the kernel. */
static inline unsigned ptxgen_max_dynamic_shared(const ptxgen_driver *driver,
                                                  const ptxgen_kernel *kernel)
{
    return driver->shared_block - PTXGEN_MIN(driver->shared_block, kernel->shared_static);
}

/* Opts a kernel into more than 48 KiB of shared memory. If run-time values decide the bytes, allows
 * the device's maximum. */
static inline ptxgen_result ptxgen_allow_shared(const ptxgen_driver *driver, const ptxgen_kernel *kernel,
                                           ptxgen_function function)
{
    const unsigned without_asking = 48 * 1024;
    unsigned dynamic =
        kernel->shared_at ? ptxgen_max_dynamic_shared(driver, kernel) : kernel->shared_dynamic;
    if (kernel->shared_static + dynamic <= without_asking)
        return PTXGEN_CUDA_SUCCESS;
    return driver->func_set_attribute(function, PTXGEN_CU_MAX_DYNAMIC_SHARED,
                                      (int)dynamic);
}

/* Loads a kernel into an empty *loaded, which stays empty on failure. Returns
 * CUDA_ERROR_INVALID_IMAGE if ptxgen_is_intact fails, else the driver's result. */
static inline ptxgen_result ptxgen_load_kernel(const ptxgen_driver *driver, const ptxgen_kernel *kernel,
                                          ptxgen_loaded_kernel *loaded, ptxgen_load_error *error)
{
    ptxgen_jit_option options[] = { PTXGEN_CU_JIT_ERROR_LOG, PTXGEN_CU_JIT_ERROR_LOG_SIZE };
    void *values[2] = { NULL, NULL };
    ptxgen_module module;
    ptxgen_function function;
    ptxgen_result result;
    if (!ptxgen_is_intact(kernel)) {
        static const char changed[] = "the .ptx file was changed since ptxgen wrote the header: "
                                      "run it again, with --verify to keep the change";
        if (error)
            memcpy(error->log, changed, sizeof changed);
        return PTXGEN_CUDA_ERROR_INVALID_IMAGE;
    }
    if (error) {
        values[0] = error->log;
        values[1] = (void *)(uintptr_t)sizeof error->log;
    }
    result = driver->module_load_data_ex(&module, kernel->ptx, error ? 2 : 0, options, values);
    if (result != PTXGEN_CUDA_SUCCESS)
        return result;
    result = driver->module_get_function(&function, module, kernel->entry);
    if (result == PTXGEN_CUDA_SUCCESS)
        result = ptxgen_allow_shared(driver, kernel, function);
    if (result != PTXGEN_CUDA_SUCCESS) {
        driver->module_unload(module);
        return result;
    }
    loaded->kernel = kernel;
    loaded->module = module;
    loaded->function = function;
    loaded->is_new = 1;
    return PTXGEN_CUDA_SUCCESS;
}

static inline void ptxgen_clear_error(ptxgen_load_error *error, const ptxgen_kernel *kernel)
{
    if (!error)
        return;
    error->kernel = kernel;
    error->log[0] = '\0';
}

/* Writes to error->log why the device cannot launch any of count kernels with one name. */
static inline void ptxgen_explain_load(const ptxgen_driver *driver,
                                       const ptxgen_kernel *const *kernels, size_t count,
                                       ptxgen_load_error *error)
{
    const ptxgen_kernel *least = NULL;
    ptxgen_text text = { NULL, 0, 0 };
    size_t i;
    if (!error)
        return;
    text.bytes = error->log;
    text.size = sizeof error->log;
    for (i = 0; i < count; i++)
        if (ptxgen_runs_on(kernels[i], driver->sm) &&
            (!least || ptxgen_shared_need(kernels[i], NULL) < ptxgen_shared_need(least, NULL)))
            least = kernels[i];
    if (least) {
        ptxgen_say_number(&text, "the kernel needs ", (int64_t)ptxgen_shared_need(least, NULL));
        ptxgen_say_number(&text, " bytes of shared memory per block; the device allows ",
                          (int64_t)driver->shared_block);
    } else {
        ptxgen_say_number(&text, "the kernel needs sm_", (int64_t)kernels[0]->sm);
        ptxgen_say(&text, kernels[0]->specific ? "a" : " or newer");
        ptxgen_say_number(&text, "; the device is sm_", (int64_t)driver->sm);
    }
}

/* Loads the newest of count kernels with one name that the device can launch. Does nothing if one
 * is loaded. Returns CUDA_ERROR_NO_BINARY_FOR_GPU if the device can launch none; error->log says
 * why. */
static inline ptxgen_result ptxgen_load_newest(const ptxgen_driver *driver, ptxgen_loaded_kernel *loaded,
                                          const ptxgen_kernel *const *kernels, size_t count,
                                          ptxgen_load_error *error)
{
    const ptxgen_kernel *kernel;
    ptxgen_clear_error(error, kernels[0]);
    if (!driver->sm)
        return PTXGEN_CUDA_ERROR_NOT_INITIALIZED;
    if (loaded->kernel)
        return PTXGEN_CUDA_SUCCESS;
    kernel = ptxgen_named_in(kernels, count, kernels[0]->name, driver->sm,
                             driver->shared_block);
    if (!kernel) {
        ptxgen_explain_load(driver, kernels, count, error);
        return PTXGEN_CUDA_ERROR_NO_BINARY_FOR_GPU;
    }
    ptxgen_clear_error(error, kernel);
    return ptxgen_load_kernel(driver, kernel, loaded, error);
}

/* Returns the number of leading kernels with the name of the first: one per target. */
static inline size_t ptxgen_same_name(const ptxgen_kernel *const *kernels, size_t count)
{
    size_t same = 1;
    while (same < count && strcmp(kernels[same]->name, kernels[0]->name) == 0)
        same++;
    return same;
}

/* Returns a kernel's index among the loaded ones: that of the first kernel with its name in the
 * table. Returns count if kernel is NULL or not in the table. */
static inline size_t ptxgen_place_in(const ptxgen_kernel *const *kernels, size_t count,
                                     const ptxgen_kernel *kernel)
{
    size_t i;
    for (i = 0; kernel && i < count; i++)
        if (strcmp(kernels[i]->name, kernel->name) == 0)
            return i;
    return count;
}

static inline ptxgen_result ptxgen_load_in(const ptxgen_driver *driver, ptxgen_loaded_kernel *loaded,
                                      const ptxgen_kernel *const *kernels, size_t count,
                                      const ptxgen_kernel *kernel, ptxgen_load_error *error)
{
    size_t place = ptxgen_place_in(kernels, count, kernel);
    ptxgen_clear_error(error, kernel);
    if (!driver->sm)
        return PTXGEN_CUDA_ERROR_NOT_INITIALIZED;
    if (place == count)
        return PTXGEN_CUDA_ERROR_NOT_FOUND;
    return ptxgen_load_newest(driver, &loaded[place], kernels + place,
                              ptxgen_same_name(kernels + place, count - place), error);
}

/* Unloads all kernels, or only those with is_new set. Returns the first error. */
static inline ptxgen_result ptxgen_unload_in(const ptxgen_driver *driver, ptxgen_loaded_kernel *loaded,
                                        size_t count, int only_new)
{
    ptxgen_result first = PTXGEN_CUDA_SUCCESS;
    size_t i;
    for (i = 0; i < count; i++) {
        ptxgen_result result;
        if (!loaded[i].kernel || (only_new && !loaded[i].is_new))
            continue;
        result = driver->module_unload(loaded[i].module);
        memset(&loaded[i], 0, sizeof loaded[i]);
        if (first == PTXGEN_CUDA_SUCCESS)
            first = result;
    }
    return first;
}

static inline ptxgen_result ptxgen_load_all_in(const ptxgen_driver *driver, ptxgen_loaded_kernel *loaded,
                                          const ptxgen_kernel *const *kernels, size_t count,
                                          ptxgen_load_error *error)
{
    ptxgen_result result = driver->sm ? PTXGEN_CUDA_SUCCESS : PTXGEN_CUDA_ERROR_NOT_INITIALIZED;
    size_t i, same;
    ptxgen_clear_error(error, NULL);
    for (i = 0; i < count; i++)
        loaded[i].is_new = 0;
    for (i = 0; i < count && result == PTXGEN_CUDA_SUCCESS; i += same) {
        same = ptxgen_same_name(kernels + i, count - i);
        if (ptxgen_named_in(kernels + i, same, kernels[i]->name, driver->sm,
                            driver->shared_block))
            result = ptxgen_load_newest(driver, &loaded[i], kernels + i, same, error);
    }
    if (result != PTXGEN_CUDA_SUCCESS)
        ptxgen_unload_in(driver, loaded, count, 1);
    return result;
}

/* Returns the place of the first kernel of a part: a part begins with all kernels of a name. */
static inline size_t ptxgen_part_begin(const ptxgen_kernel *const *kernels, size_t count, size_t part,
                                       size_t parts)
{
    size_t i = count * part / parts;
    while (i && i < count && strcmp(kernels[i - 1]->name, kernels[i]->name) == 0)
        i++;
    return i;
}

static inline ptxgen_result ptxgen_load_part_in(const ptxgen_driver *driver, ptxgen_loaded_kernel *loaded,
                                           const ptxgen_kernel *const *kernels, size_t count,
                                           size_t part, size_t parts, ptxgen_load_error *error)
{
    size_t first, end;
    ptxgen_clear_error(error, NULL);
    if (part >= parts)
        return PTXGEN_CUDA_ERROR_INVALID_VALUE;
    first = ptxgen_part_begin(kernels, count, part, parts);
    end = ptxgen_part_begin(kernels, count, part + 1, parts);
    return ptxgen_load_all_in(driver, loaded + first, kernels + first, end - first, error);
}

/* Reports "NAME: WHAT THEN NUMBER END", without the number if it is 0, and returns result. */
static inline ptxgen_result ptxgen_refuse(const ptxgen_driver *driver, ptxgen_result result,
                                          const char *name, const char *what, const char *then,
                                          int64_t number, const char *end)
{
    char bytes[512];
    ptxgen_text text = { NULL, 0, 0 };
    if (!driver->report)
        return result;
    text.bytes = bytes;
    text.size = sizeof bytes;
    ptxgen_say(&text, name);
    ptxgen_say(&text, ": ");
    ptxgen_say(&text, what);
    if (number)
        ptxgen_say_number(&text, then, number);
    else
        ptxgen_say(&text, then);
    ptxgen_say(&text, end);
    driver->report(driver->report_context, bytes);
    return result;
}

static inline ptxgen_result ptxgen_check_address(const ptxgen_driver *driver, const char *name,
                                                 const char *param, ptxgen_deviceptr address,
                                                 unsigned alignment)
{
    if (address == 0)
        return ptxgen_refuse(driver, PTXGEN_CUDA_ERROR_INVALID_VALUE, name, param, " is 0", 0, "");
    if (address % alignment != 0)
        return ptxgen_refuse(driver, PTXGEN_CUDA_ERROR_INVALID_VALUE, name, param,
                             " is misaligned: ", alignment, " bytes are needed");
    return PTXGEN_CUDA_SUCCESS;
}

/* Checks an argument of a kernel or pipeline. A pointer must not be 0 and must be aligned. A number
 * that passes a size must be accepted by the configuration. */
static inline ptxgen_result ptxgen_check_argument(const ptxgen_driver *driver, const char *name,
                                                  const ptxgen_param *param,
                                                  const ptxgen_config *config, size_t config_count,
                                                  const void *argument)
{
    const ptxgen_config *key;
    ptxgen_run run;
    uint32_t number;
    if (param->kind == PTXGEN_PARAM_POINTER) {
        ptxgen_deviceptr address;
        memcpy(&address, argument, sizeof address);
        return ptxgen_check_address(driver, name, param->name, address, param->alignment);
    }
    memcpy(&number, argument, sizeof number);
    if (!ptxgen_run_size(&run, param->size))
        return PTXGEN_CUDA_SUCCESS;
    if (number == 0)
        return ptxgen_refuse(driver, PTXGEN_CUDA_ERROR_INVALID_VALUE, name, param->name, " is 0",
                             0, "");
    key = ptxgen_key(config, config_count, param->size);
    if (ptxgen_takes(key, number))
        return PTXGEN_CUDA_SUCCESS;
    if (driver->report) {
        char bytes[512];
        ptxgen_text text = { NULL, 0, 0 };
        text.bytes = bytes;
        text.size = sizeof bytes;
        ptxgen_say(&text, name);
        ptxgen_say(&text, ": ");
        ptxgen_say(&text, param->name);
        ptxgen_say_number(&text, " is ", number);
        ptxgen_say_number(&text, "; use a multiple of ", key ? key->multiple_of : 1);
        ptxgen_say_number(&text, " from ", key ? key->min : 1);
        ptxgen_say_number(&text, " to ", key ? key->max : 1);
        driver->report(driver->report_context, bytes);
    }
    return PTXGEN_CUDA_ERROR_INVALID_VALUE;
}

/* Checks the arguments of a kernel and stores the sizes among them in *run. */
static inline ptxgen_result ptxgen_read_arguments(const ptxgen_driver *driver,
                                                  const ptxgen_kernel *kernel,
                                                  void *const *arguments, ptxgen_run *run)
{
    ptxgen_result result = PTXGEN_CUDA_SUCCESS;
    size_t i;
    for (i = 0; i < kernel->param_count && result == PTXGEN_CUDA_SUCCESS; i++) {
        const ptxgen_param *param = &kernel->params[i];
        int64_t *size =
            param->kind == PTXGEN_PARAM_U32 ? ptxgen_run_size(run, param->size) : NULL;
        uint32_t number;
        result = ptxgen_check_argument(driver, kernel->name, param, kernel->config,
                                       kernel->config_count, arguments[i]);
        if (size) {
            memcpy(&number, arguments[i], sizeof number);
            *size = number;
        }
    }
    return result;
}

/* Fills the parameters of cuLaunchKernel or of a graph node. params keeps pointers to the
 * arguments. Fails as ptxgen_launch does. */
static inline ptxgen_result ptxgen_prepare(const ptxgen_driver *driver,
                                           const ptxgen_loaded_kernel *loaded, void **arguments,
                                           size_t argument_count, ptxgen_node_params *params)
{
    const ptxgen_kernel *kernel = loaded ? loaded->kernel : NULL;
    ptxgen_run run = { 0, 0, 0, 0 };
    ptxgen_result result;
    unsigned grid[3], shared;
    memset(params, 0, sizeof *params);
    PTXGEN_ASSERT(kernel && "not loaded: see PREFIX_load");
    if (!kernel)
        return ptxgen_refuse(driver, PTXGEN_CUDA_ERROR_INVALID_HANDLE, "launch", "the kernel is not loaded", "",
                             0, "");
    run.sm_count = driver->sm_count;
    if (argument_count != kernel->param_count)
        return ptxgen_refuse(driver, PTXGEN_CUDA_ERROR_INVALID_VALUE, kernel->name,
                             "wrong number of arguments: it has ", "",
                             (int64_t)kernel->param_count, " parameters");
    result = ptxgen_read_arguments(driver, kernel, arguments, &run);
    if (result != PTXGEN_CUDA_SUCCESS)
        return result;
    if (!ptxgen_grid(kernel, &run, grid))
        return ptxgen_refuse(driver, PTXGEN_CUDA_ERROR_INVALID_VALUE, kernel->name,
                             "the grid has more blocks than CUDA allows", "", 0, "");
    shared = ptxgen_shared(kernel, &run);
    if (shared > ptxgen_max_dynamic_shared(driver, kernel))
        return ptxgen_refuse(driver, PTXGEN_CUDA_ERROR_INVALID_VALUE, kernel->name,
                             "a block cannot have ", "", (int64_t)shared,
                             " bytes of dynamic shared memory");
    params->func = loaded->function;
    params->gridDimX = grid[0];
    params->gridDimY = grid[1];
    params->gridDimZ = grid[2];
    params->blockDimX = kernel->block[0];
    params->blockDimY = kernel->block[1];
    params->blockDimZ = kernel->block[2];
    params->sharedMemBytes = shared;
    params->kernelParams = arguments;
    return PTXGEN_CUDA_SUCCESS;
}

static inline ptxgen_result ptxgen_launch_node(const ptxgen_driver *driver,
                                               const ptxgen_node_params *to, ptxgen_stream stream)
{
    return driver->launch_kernel(to->func, to->gridDimX, to->gridDimY, to->gridDimZ, to->blockDimX,
                                 to->blockDimY, to->blockDimZ, to->sharedMemBytes, stream,
                                 to->kernelParams, NULL);
}

/* Launches a kernel with programmatic stream serialization: it may start before its predecessor in
 * the stream has finished, and waits for it on the device. */
static inline ptxgen_result ptxgen_launch_early(const ptxgen_driver *driver,
                                                const ptxgen_node_params *to, ptxgen_stream stream)
{
    ptxgen_launch_attribute attribute;
    ptxgen_launch_config config;
    memset(&attribute, 0, sizeof attribute);
    memset(&config, 0, sizeof config);
    attribute.id = PTXGEN_CU_PROGRAMMATIC_STREAM_SERIALIZATION;
    attribute.value.allowed = 1;
    config.gridDimX = to->gridDimX;
    config.gridDimY = to->gridDimY;
    config.gridDimZ = to->gridDimZ;
    config.blockDimX = to->blockDimX;
    config.blockDimY = to->blockDimY;
    config.blockDimZ = to->blockDimZ;
    config.sharedMemBytes = to->sharedMemBytes;
    config.hStream = stream;
    config.attrs = &attribute;
    config.numAttrs = 1;
    return driver->launch_kernel_ex(&config, to->func, to->kernelParams, NULL);
}

/* Launches like ptxgen_launch. If early is not 0, and device, driver and kernel support it, the
 * launch may overlap with its predecessor in the stream. All launches from the last one on that was
 * not early must wait for their predecessors; overlapping kernels do. */
static inline ptxgen_result ptxgen_launch_in_turn(const ptxgen_driver *driver,
                                                  const ptxgen_loaded_kernel *loaded,
                                                  ptxgen_stream stream, void **arguments,
                                                  size_t argument_count, int early)
{
    ptxgen_node_params to;
    ptxgen_result result = ptxgen_prepare(driver, loaded, arguments, argument_count, &to);
    if (result != PTXGEN_CUDA_SUCCESS)
        return result;
    if (early && driver->overlaps && loaded->kernel->overlaps)
        return ptxgen_launch_early(driver, &to, stream);
    return ptxgen_launch_node(driver, &to, stream);
}

/* Launches a loaded kernel. arguments has one pointer per parameter, in the order of
 * kernel->params; kernels that fit one query may differ in their parameters. Grid and shared memory
 * follow from the arguments and the device.
 *
 * Asynchronous; any thread may call it with the context current. Returns CUDA_ERROR_INVALID_HANDLE
 * if the kernel is not loaded, CUDA_ERROR_INVALID_VALUE if
 *  - argument_count is not kernel->param_count,
 *  - a pointer is 0 or misaligned, or a size is not accepted,
 *  - the grid or the shared memory exceeds the device's limit,
 *
 * else the driver's result. driver->report receives the reason. */
static inline ptxgen_result ptxgen_launch(const ptxgen_driver *driver,
                                     const ptxgen_loaded_kernel *loaded, ptxgen_stream stream,
                                     void **arguments, size_t argument_count)
{
    return ptxgen_launch_in_turn(driver, loaded, stream, arguments, argument_count, 0);
}

/* A launch as a graph node. Pass &node->params to cuGraphAddKernelNode, or to
 * cuGraphExecKernelNodeSetParams to change an instantiated graph. params points into the node: a
 * copy of the node is invalid. */
typedef struct ptxgen_node {
    ptxgen_node_params params;
    void *arguments[PTXGEN_MOST_ARGUMENTS];
    uint64_t values[PTXGEN_MOST_ARGUMENTS];
} ptxgen_node;

/* Fills a node with the launch that ptxgen_launch would make. Copies the arguments. Fails as
 * ptxgen_launch does. */
static inline ptxgen_result ptxgen_fill_node(const ptxgen_driver *driver,
                                             const ptxgen_loaded_kernel *loaded, ptxgen_node *node,
                                             void **arguments, size_t argument_count)
{
    size_t i;
    ptxgen_result result =
        ptxgen_prepare(driver, loaded, arguments, argument_count, &node->params);
    if (result != PTXGEN_CUDA_SUCCESS)
        return result;
    for (i = 0; i < argument_count; i++) {
        memcpy(&node->values[i], arguments[i],
               loaded->kernel->params[i].kind == PTXGEN_PARAM_POINTER ? sizeof(ptxgen_deviceptr)
                                                                      : sizeof(uint32_t));
        node->arguments[i] = &node->values[i];
    }
    node->params.kernelParams = node->arguments;
    return PTXGEN_CUDA_SUCCESS;
}

/* Returns the number of rows in the arguments of a pipeline, or 1 if none of them is m. */
static inline size_t ptxgen_pipeline_rows(const ptxgen_pipeline *pipeline, void *const *arguments)
{
    uint32_t rows = 1;
    size_t i;
    for (i = 0; i < pipeline->buffer_count; i++)
        if (pipeline->buffers[i].kind == PTXGEN_PARAM_U32 &&
            strcmp(pipeline->buffers[i].size, "m") == 0)
            memcpy(&rows, arguments[i], sizeof rows);
    return rows;
}

/* Checks the arguments of a pipeline and reports errors with the pipeline's names:
 *  - all steps are loaded,
 *  - argument_count is the number of buffers,
 *  - no pointer is 0 or misaligned, and all sizes are accepted,
 *  - the workspace is large enough and aligned.
 */
static inline ptxgen_result ptxgen_check_pipeline(const ptxgen_driver *driver,
                                                  const ptxgen_loaded_kernel *loaded,
                                                  const ptxgen_pipeline *pipeline,
                                                  void *const *arguments, size_t argument_count,
                                                  ptxgen_deviceptr workspace,
                                                  size_t workspace_bytes)
{
    ptxgen_result result = PTXGEN_CUDA_SUCCESS;
    size_t needed, i;
    for (i = 0; i < pipeline->step_count; i++) {
        PTXGEN_ASSERT(loaded[pipeline->steps[i].place].kernel && "not loaded: see PREFIX_load");
        if (!loaded[pipeline->steps[i].place].kernel)
            return ptxgen_refuse(driver, PTXGEN_CUDA_ERROR_INVALID_HANDLE, pipeline->name,
                                 pipeline->steps[i].kernel, " is not loaded", 0, "");
    }
    if (argument_count != pipeline->buffer_count)
        return ptxgen_refuse(driver, PTXGEN_CUDA_ERROR_INVALID_VALUE, pipeline->name,
                             "wrong number of arguments: it has ", "",
                             (int64_t)pipeline->buffer_count, " buffers");
    for (i = 0; i < argument_count && result == PTXGEN_CUDA_SUCCESS; i++)
        result = ptxgen_check_argument(driver, pipeline->name, &pipeline->buffers[i],
                                       pipeline->config, pipeline->config_count, arguments[i]);
    if (result != PTXGEN_CUDA_SUCCESS)
        return result;
    needed = ptxgen_workspace(pipeline, ptxgen_pipeline_rows(pipeline, arguments));
    if (workspace_bytes < needed)
        return ptxgen_refuse(driver, PTXGEN_CUDA_ERROR_INVALID_VALUE, pipeline->name,
                             "the workspace is too small: ", "", (int64_t)needed,
                             " bytes are needed");
    return pipeline->workspace ? ptxgen_check_address(driver, pipeline->name, "workspace",
                                                      workspace, 16)
                               : PTXGEN_CUDA_SUCCESS;
}

/* Fills pipeline->step_count nodes, one per step. In a graph, each node depends on the node before
 * it. Arguments, workspace and failures are as for ptxgen_launch_pipeline_in. */
static inline ptxgen_result ptxgen_fill_pipeline_nodes(const ptxgen_driver *driver,
                                                       const ptxgen_loaded_kernel *loaded,
                                                       const ptxgen_pipeline *pipeline,
                                                       ptxgen_node *nodes, void **arguments,
                                                       size_t argument_count,
                                                       ptxgen_deviceptr workspace,
                                                       size_t workspace_bytes)
{
    ptxgen_result result = ptxgen_check_pipeline(driver, loaded, pipeline, arguments,
                                                 argument_count, workspace, workspace_bytes);
    size_t rows, s, i;
    if (result != PTXGEN_CUDA_SUCCESS)
        return result;
    rows = pipeline->rows_at_run_time ? ptxgen_pipeline_rows(pipeline, arguments) : 1;
    for (s = 0; s < pipeline->step_count && result == PTXGEN_CUDA_SUCCESS; s++) {
        const ptxgen_pipeline_step *step = &pipeline->steps[s];
        ptxgen_deviceptr parts[PTXGEN_MOST_ARGUMENTS];
        void *of_step[PTXGEN_MOST_ARGUMENTS];
        for (i = 0; i < step->argument_count; i++) {
            const ptxgen_argument *argument = &step->arguments[i];
            parts[i] = workspace + (ptxgen_deviceptr)(argument->offset * rows);
            of_step[i] = argument->buffer == PTXGEN_WORKSPACE ? (void *)&parts[i]
                                                              : arguments[argument->buffer];
        }
        result = ptxgen_fill_node(driver, &loaded[step->place], &nodes[s], of_step,
                                  step->argument_count);
    }
    return result;
}

/* Launches the steps of a pipeline in order on one stream. loaded is the table of all kernels of
 * its header; arguments has one pointer per buffer of the pipeline.
 *
 * workspace is device memory of workspace_bytes, at least ptxgen_workspace, aligned to 16. Nothing
 * else may use it until the last step has finished.
 *
 * Everything is checked before the first launch. Returns CUDA_ERROR_INVALID_HANDLE if a step is not
 * loaded, CUDA_ERROR_INVALID_VALUE for other errors of the caller, else the driver's result. */
static inline ptxgen_result ptxgen_launch_pipeline_in(const ptxgen_driver *driver,
                                                 const ptxgen_loaded_kernel *loaded,
                                                 const ptxgen_pipeline *pipeline, ptxgen_stream stream,
                                                 void **arguments, size_t argument_count,
                                                 ptxgen_deviceptr workspace, size_t workspace_bytes)
{
    ptxgen_node nodes[PTXGEN_MOST_STEPS];
    ptxgen_result result = ptxgen_fill_pipeline_nodes(driver, loaded, pipeline, nodes, arguments,
                                                      argument_count, workspace, workspace_bytes);
    size_t s;
    for (s = 0; s < pipeline->step_count && result == PTXGEN_CUDA_SUCCESS; s++)
        result = ptxgen_launch_node(driver, &nodes[s].params, stream);
    return result;
}

#ifdef __cplusplus
}
#endif
#endif /* PTXGEN_DRIVER */

#ifdef __cplusplus
extern "C" {
#endif

/* The kernels of this header in one CUDA context, owned by the caller. Initialize and load it from
 * one thread, or its parts from several; then any number of threads may launch. Its context must be
 * current in all calls.
 * Functions print nothing and keep no global state. */
typedef struct llama_cuda {
    ptxgen_driver driver;
    ptxgen_loaded_kernel kernels[5];
} llama_cuda;

/* Looks up the entry points and reads the device's properties. Loads no kernel. Returns
 * CUDA_ERROR_NOT_FOUND if the driver lacks an entry point, else the driver's result.
 *
 * A program that has the entry points already zeroes *cuda, stores them in cuda->driver and calls
 * ptxgen_driver_ask(&cuda->driver). */
static inline ptxgen_result llama_cuda_init(llama_cuda *cuda, ptxgen_lookup lookup, void *library)
{
    memset(cuda, 0, sizeof *cuda);
    ptxgen_driver_look_up(&cuda->driver, lookup, library);
    return ptxgen_driver_ask(&cuda->driver);
}

/* Loads a kernel: of those with its name, the newest that the device can launch. Does nothing if it
 * is loaded. error may be NULL.
 *
 * Returns CUDA_ERROR_NOT_FOUND if kernel is NULL (llama_find found none) or belongs to another
 * header. Returns CUDA_ERROR_NO_BINARY_FOR_GPU if the device is too old or has too little shared
 * memory; error->log says which. */
static inline ptxgen_result llama_load(llama_cuda *cuda, const ptxgen_kernel *kernel,
                                     ptxgen_load_error *error)
{
    return ptxgen_load_in(&cuda->driver, cuda->kernels, llama_kernels, 5,
                          kernel, error);
}

/* Loads all kernels that the device can launch. error may be NULL. On failure error has the kernel
 * and the log, and the kernels that this call had loaded are unloaded. */
static inline ptxgen_result llama_load_all(llama_cuda *cuda, ptxgen_load_error *error)
{
    return ptxgen_load_all_in(&cuda->driver, cuda->kernels, llama_kernels, 5,
                              error);
}

/* Loads a part of the kernels as llama_load_all does: part 0 .. parts - 1. Several threads may load
 * different parts at once, so that the driver compiles on several cores. Kernels differ in size:
 * with some parts per thread, taken one after the other, all threads end at about the same time.
 * Returns CUDA_ERROR_INVALID_VALUE if there is no such part. */
static inline ptxgen_result llama_load_part(llama_cuda *cuda, size_t part, size_t parts,
                                          ptxgen_load_error *error)
{
    return ptxgen_load_part_in(&cuda->driver, cuda->kernels, llama_kernels, 5,
                               part, parts, error);
}

/* Returns the first argument of ptxgen_launch after driver for a kernel that llama_find
 * returned, loaded or not. Returns NULL for NULL. */
static inline const ptxgen_loaded_kernel *llama_loaded(const llama_cuda *cuda,
                                                          const ptxgen_kernel *kernel)
{
    size_t place = ptxgen_place_in(llama_kernels, 5, kernel);
    return place < 5 ? &cuda->kernels[place] : NULL;
}

/* Unloads all loaded kernels. Returns the first error. */
static inline ptxgen_result llama_unload(llama_cuda *cuda)
{
    return ptxgen_unload_in(&cuda->driver, cuda->kernels, 5, 0);
}

/* Launches a pipeline that llama_find_pipeline returned; see ptxgen_launch_pipeline_in. */
static inline ptxgen_result llama_launch_pipeline(const llama_cuda *cuda,
                                                const ptxgen_pipeline *pipeline, ptxgen_stream stream,
                                                void **arguments, size_t argument_count,
                                                ptxgen_deviceptr workspace, size_t workspace_bytes)
{
    return ptxgen_launch_pipeline_in(&cuda->driver, cuda->kernels, pipeline, stream, arguments,
                                     argument_count, workspace, workspace_bytes);
}

/* Fills graph nodes for the steps of a pipeline; see ptxgen_fill_pipeline_nodes. */
static inline ptxgen_result llama_pipeline_nodes(const llama_cuda *cuda,
                                                    const ptxgen_pipeline *pipeline,
                                                    ptxgen_node *nodes, void **arguments,
                                                    size_t argument_count,
                                                    ptxgen_deviceptr workspace,
                                                    size_t workspace_bytes)
{
    return ptxgen_fill_pipeline_nodes(&cuda->driver, cuda->kernels, pipeline, nodes, arguments,
                                      argument_count, workspace, workspace_bytes);
}

/* Functions of each kernel:
 *  - NAME_load loads it like llama_load, without a look-up.
 *  - NAME_launch launches it with typed parameters and fails as ptxgen_launch does. Of a kernel
 *    made for several targets it launches the one that was loaded.
 *  - NAME_node fills a graph node with the same launch.
 */

static inline ptxgen_result llama_f32_gemv_k4096_n256_load(llama_cuda *cuda, ptxgen_load_error *error)
{
    static const ptxgen_kernel *const kernels[] = { &llama_f32_gemv_k4096_n256 };
    return ptxgen_load_newest(&cuda->driver, &cuda->kernels[0], kernels, 1, error);
}

/* y out f32[256], w in f32[1048576], x in f32[4096] */
static inline ptxgen_result llama_f32_gemv_k4096_n256_launch(
    const llama_cuda *cuda, ptxgen_stream stream,
    ptxgen_deviceptr y, ptxgen_const_deviceptr w, ptxgen_const_deviceptr x)
{
    void *arguments[] = { &y, &w, &x };
    return ptxgen_launch(&cuda->driver, &cuda->kernels[0], stream, arguments, 3);
}

static inline ptxgen_result llama_f32_gemv_k4096_n256_node(
    const llama_cuda *cuda, ptxgen_node *node,
    ptxgen_deviceptr y, ptxgen_const_deviceptr w, ptxgen_const_deviceptr x)
{
    void *arguments[] = { &y, &w, &x };
    return ptxgen_fill_node(&cuda->driver, &cuda->kernels[0], node, arguments, 3);
}

static inline ptxgen_result llama_stream_gemv_q4k_k4096_n14336_m1_w12_r1_load(llama_cuda *cuda, ptxgen_load_error *error)
{
    static const ptxgen_kernel *const kernels[] = { &llama_stream_gemv_q4k_k4096_n14336_m1_w12_r1 };
    return ptxgen_load_newest(&cuda->driver, &cuda->kernels[1], kernels, 1, error);
}

/* y out f32[14336], w in q4_k[58720256], x in f32[4096] */
static inline ptxgen_result llama_stream_gemv_q4k_k4096_n14336_m1_w12_r1_launch(
    const llama_cuda *cuda, ptxgen_stream stream,
    ptxgen_deviceptr y, ptxgen_const_deviceptr w, ptxgen_const_deviceptr x)
{
    void *arguments[] = { &y, &w, &x };
    return ptxgen_launch(&cuda->driver, &cuda->kernels[1], stream, arguments, 3);
}

static inline ptxgen_result llama_stream_gemv_q4k_k4096_n14336_m1_w12_r1_node(
    const llama_cuda *cuda, ptxgen_node *node,
    ptxgen_deviceptr y, ptxgen_const_deviceptr w, ptxgen_const_deviceptr x)
{
    void *arguments[] = { &y, &w, &x };
    return ptxgen_fill_node(&cuda->driver, &cuda->kernels[1], node, arguments, 3);
}

static inline ptxgen_result llama_mma_gemm_f16_f16_k4096_n4096_m8_s2_load(llama_cuda *cuda, ptxgen_load_error *error)
{
    static const ptxgen_kernel *const kernels[] = { &llama_mma_gemm_f16_f16_k4096_n4096_m8_s2 };
    return ptxgen_load_newest(&cuda->driver, &cuda->kernels[2], kernels, 1, error);
}

/* y out f32[32768], w in f16[16777216], x in f16[32768], factors in f32[8] */
static inline ptxgen_result llama_mma_gemm_f16_f16_k4096_n4096_m8_s2_launch(
    const llama_cuda *cuda, ptxgen_stream stream,
    ptxgen_deviceptr y, ptxgen_const_deviceptr w, ptxgen_const_deviceptr x,
    ptxgen_const_deviceptr factors)
{
    void *arguments[] = { &y, &w, &x, &factors };
    return ptxgen_launch(&cuda->driver, &cuda->kernels[2], stream, arguments, 4);
}

static inline ptxgen_result llama_mma_gemm_f16_f16_k4096_n4096_m8_s2_node(
    const llama_cuda *cuda, ptxgen_node *node,
    ptxgen_deviceptr y, ptxgen_const_deviceptr w, ptxgen_const_deviceptr x,
    ptxgen_const_deviceptr factors)
{
    void *arguments[] = { &y, &w, &x, &factors };
    return ptxgen_fill_node(&cuda->driver, &cuda->kernels[2], node, arguments, 4);
}

static inline ptxgen_result llama_rms_norm_k4096_m1_load(llama_cuda *cuda, ptxgen_load_error *error)
{
    static const ptxgen_kernel *const kernels[] = { &llama_rms_norm_k4096_m1 };
    return ptxgen_load_newest(&cuda->driver, &cuda->kernels[3], kernels, 1, error);
}

/* y out f32[4096], gamma in f32[4096], x in f32[4096] */
static inline ptxgen_result llama_rms_norm_k4096_m1_launch(
    const llama_cuda *cuda, ptxgen_stream stream,
    ptxgen_deviceptr y, ptxgen_const_deviceptr gamma, ptxgen_const_deviceptr x)
{
    void *arguments[] = { &y, &gamma, &x };
    return ptxgen_launch(&cuda->driver, &cuda->kernels[3], stream, arguments, 3);
}

static inline ptxgen_result llama_rms_norm_k4096_m1_node(
    const llama_cuda *cuda, ptxgen_node *node,
    ptxgen_deviceptr y, ptxgen_const_deviceptr gamma, ptxgen_const_deviceptr x)
{
    void *arguments[] = { &y, &gamma, &x };
    return ptxgen_fill_node(&cuda->driver, &cuda->kernels[3], node, arguments, 3);
}

static inline ptxgen_result llama_incremental_attention_d128_h32_kv8_s8192_load(llama_cuda *cuda, ptxgen_load_error *error)
{
    static const ptxgen_kernel *const kernels[] = { &llama_incremental_attention_d128_h32_kv8_s8192 };
    return ptxgen_load_newest(&cuda->driver, &cuda->kernels[4], kernels, 1, error);
}

/* o out f32[4096], q in f32[4096], k in f32[8388608], v in f32[8388608],
    seq_len in u32 */
static inline ptxgen_result llama_incremental_attention_d128_h32_kv8_s8192_launch(
    const llama_cuda *cuda, ptxgen_stream stream,
    ptxgen_deviceptr o, ptxgen_const_deviceptr q, ptxgen_const_deviceptr k,
    ptxgen_const_deviceptr v, uint32_t seq_len)
{
    void *arguments[] = { &o, &q, &k, &v, &seq_len };
    return ptxgen_launch(&cuda->driver, &cuda->kernels[4], stream, arguments, 5);
}

static inline ptxgen_result llama_incremental_attention_d128_h32_kv8_s8192_node(
    const llama_cuda *cuda, ptxgen_node *node,
    ptxgen_deviceptr o, ptxgen_const_deviceptr q, ptxgen_const_deviceptr k,
    ptxgen_const_deviceptr v, uint32_t seq_len)
{
    void *arguments[] = { &o, &q, &k, &v, &seq_len };
    return ptxgen_fill_node(&cuda->driver, &cuda->kernels[4], node, arguments, 5);
}

#ifdef __cplusplus
}
#endif
#endif /* LLAMA_WITH_CUDA */

#if defined(LLAMA_KERNELS_IMPLEMENTATION) && !defined(llama_KERNELS_IMPLEMENTED)
#define llama_KERNELS_IMPLEMENTED

/* Explains why a query finds nothing; identical in every header that ptxgen writes. */
#ifndef PTXGEN_EXPLAIN
#define PTXGEN_EXPLAIN

static inline const char *ptxgen_operation_name(ptxgen_operation operation)
{
    static const char *const names[] = {
        "kernel",
        "gemv",
        "quantize",
        "attention",
        "batched_attention",
        "attention_chunks",
        "merge_chunks",
        "gate_up",
        "gate_up_swiglu",
        "kv",
        "rmsnorm_gemv",
        "embed_rows",
        "rms_norm",
        "rope_kv_write",
        "qkv",
        "sample",
        "expert_down",
        "expert_gate_up",
        "moe_route",
        "mla_query",
        "mla_attention",
        "mla_values",
        "delta_net",
        "prompt_attention",
        "expert_product",
        "expert_sum",
        "f16_rows",
        "q8_rows",
        "silu",
        "gelu",
        "relu",
        "scale",
        "add",
        "multiply",
        "swiglu",
        "convert",
        "softmax",
        "rope",
        "transpose",
        "kv_write",
        "ffn",
        "layer_norm",
        "mamba2",
        "short_conv",
        "mamba_scan",
        "per_layer_rows",
    };
    size_t index = (size_t)operation;
    return index < sizeof names / sizeof *names ? names[index] : "unknown operation";
}

static inline const char *ptxgen_format_name(ptxgen_format format)
{
    static const char *const names[] = {
        "none",
        "f32",
        "f16",
        "bf16",
        "u32",
        "address",
        "q4_0",
        "q5_0",
        "q8_0",
        "q8_1",
        "q4_k",
        "q6_k",
        "q5_k",
        "q4_1",
        "q5_1",
        "q3_k",
        "q2_k",
        "iq4_nl",
        "iq4_xs",
        "mxfp4",
        "iq2_xxs",
        "iq2_xs",
        "iq2_s",
        "iq3_xxs",
        "iq3_s",
        "iq1_s",
        "iq1_m",
        "tq1_0",
        "tq2_0",
        "nvfp4",
        "q1_0",
        "q2_0",
        "q8_f32",
        "e4m3",
        "e5m2",
        "nf4",
        "nf4_h",
    };
    size_t index = (size_t)format;
    return index < sizeof names / sizeof *names ? names[index] : "of an unknown format";
}

/* Returns the distance of a kernel's size from the wanted size: 0 if it fits, else 1 to 10. It is 1
 * for a size given at run time, and the ratio of the sizes for a built-in size. */
static inline double ptxgen_size_distance(const ptxgen_config *key, int64_t wanted)
{
    double a = (double)wanted, b = key ? (double)key->value : 1, ratio;
    if (ptxgen_takes(key, wanted))
        return 0;
    if (key && key->at_run_time)
        return 1;
    ratio = a > b ? a / PTXGEN_MAX(b, 1) : b / PTXGEN_MAX(a, 1);
    return PTXGEN_MIN(ratio, 10);
}

/* Returns the distance of a kernel from a query, 0 if it fits. The operation weighs most, then
 * weights, activations, precision, family, device, scratch memory, options, and sizes or epsilon.
 */
static inline double ptxgen_distance(const ptxgen_kernel *kernel, const ptxgen_query *query)
{
    double sum = 0;
    size_t i;
    sum += query->op && query->op != kernel->operation ? 10000 : 0;
    sum += !ptxgen_fits_weights(kernel->weights, kernel->params, kernel->param_count, query) ? 2000
                                                                                             : 0;
    sum += !ptxgen_fits_activations(kernel, query) ? 1000 : 0;
    sum += query->precision && query->precision != kernel->precision ? 500 : 0;
    sum += !ptxgen_fits_scratch(kernel->params, kernel->param_count, query) ? 50 : 0;
    sum += query->family && strcmp(query->family, kernel->family) != 0 ? 300 : 0;
    sum += !ptxgen_fits_device(kernel, query) ? 100 : 0;
    sum += !ptxgen_fits_epsilon(kernel->config, kernel->config_count, query->epsilon) ? 5 : 0;
    for (i = 0; i < PTXGEN_QUERY_OPTIONS; i++) {
        ptxgen_option option = ptxgen_query_option(query, i);
        sum += !ptxgen_fits_option(kernel->config, kernel->config_count, option) ? 20 : 0;
    }
    for (i = 0; i < PTXGEN_QUERY_SIZES; i++) {
        ptxgen_size size = ptxgen_query_size(query, i);
        sum += ptxgen_size_distance(ptxgen_key(kernel->config, kernel->config_count, size.name),
                                    size.wanted);
    }
    return sum;
}

/* Appends "no gemv of family q4k_gemv with weights q4_k, k 4096, n 11008 for sm_80 was generated".
 */
static inline void ptxgen_say_query(ptxgen_text *text, const ptxgen_query *query,
                                    const char *any_operation)
{
    const char *before = " with ";
    size_t i;
    ptxgen_say(text, "no ");
    ptxgen_say(text, query->op ? ptxgen_operation_name(query->op) : any_operation);
    if (query->family) {
        ptxgen_say(text, " of family ");
        ptxgen_say(text, query->family);
    }
    if (query->weights) {
        ptxgen_say(text, before);
        ptxgen_say(text, "weights ");
        ptxgen_say(text, ptxgen_format_name(query->weights));
        before = ", ";
    }
    for (i = 0; i < PTXGEN_QUERY_MATRICES; i++) {
        ptxgen_matrix matrix = ptxgen_query_matrix(query, i);
        if (!matrix.wanted)
            continue;
        ptxgen_say(text, before);
        ptxgen_say(text, matrix.name);
        ptxgen_say(text, " ");
        ptxgen_say(text, ptxgen_format_name(matrix.wanted));
        before = ", ";
    }
    if (query->activations) {
        ptxgen_say(text, before);
        ptxgen_say(text, "activations ");
        ptxgen_say(text, ptxgen_format_name(query->activations));
        before = ", ";
    }
    if (query->precision) {
        ptxgen_say(text, before);
        ptxgen_say(text, "precision ");
        ptxgen_say(text, ptxgen_format_name(query->precision));
        before = ", ";
    }
    for (i = 0; i < PTXGEN_QUERY_SIZES; i++) {
        ptxgen_size size = ptxgen_query_size(query, i);
        if (!size.wanted)
            continue;
        ptxgen_say(text, before);
        ptxgen_say(text, size.name);
        ptxgen_say_number(text, " ", size.wanted);
        before = ", ";
    }
    for (i = 0; i < PTXGEN_QUERY_OPTIONS; i++) {
        ptxgen_option option = ptxgen_query_option(query, i);
        if (!(option.wanted > 0))
            continue;
        ptxgen_say(text, before);
        ptxgen_say(text, "that ");
        ptxgen_say(text, option.name);
        before = ", ";
    }
    if (query->epsilon > 0) {
        ptxgen_say(text, before);
        ptxgen_say(text, "that epsilon");
    }
    if (query->sm)
        ptxgen_say_number(text, " for sm_", (int64_t)query->sm);
    ptxgen_say(text, " was generated");
}

/* Appends the size that a kernel has or accepts: "n is 14336", "n is a multiple of 8 from 8 to
 * 4096". */
static inline void ptxgen_say_size(ptxgen_text *text, const ptxgen_config *key, const char *name)
{
    ptxgen_say(text, name);
    if (!key) {
        ptxgen_say(text, " is 1");
    } else if (key->word) {
        ptxgen_say(text, " is ");
        ptxgen_say(text, key->word);
    } else if (!key->at_run_time) {
        ptxgen_say_number(text, " is ", key->value);
    } else {
        ptxgen_say_number(text, " is a multiple of ", key->multiple_of);
        ptxgen_say_number(text, " from ", key->min);
        ptxgen_say_number(text, " to ", key->max);
    }
}

/* Appends the option that a kernel has: "window is 1024", "bias is not set", "scale differs". */
static inline void ptxgen_say_option(ptxgen_text *text, const ptxgen_config *key, const char *name)
{
    ptxgen_say(text, name);
    if (ptxgen_is_set_to(key, 0)) {
        ptxgen_say(text, " is not set");
    } else if (key->word) {
        ptxgen_say(text, " is ");
        ptxgen_say(text, key->word);
    } else if (key->real > 0) {
        ptxgen_say(text, " differs");
    } else {
        ptxgen_say_number(text, " is ", key->value);
    }
}

/* Appends an item to a list: before is " (" for the first item. Returns the separator for the next.
 */
static inline const char *ptxgen_say_next(ptxgen_text *text, const char *before, const char *what,
                                          const char *value)
{
    ptxgen_say(text, before);
    ptxgen_say(text, what);
    ptxgen_say(text, value);
    return ", ";
}

/* Appends the weights that differ: "weights are q4_k", or "wv is q6_k" for one of several matrices.
 */
static inline const char *ptxgen_say_weights(ptxgen_text *text, const char *before,
                                             const ptxgen_kernel *kernel,
                                             const ptxgen_query *query)
{
    int said = ptxgen_fits_weights(kernel->weights, kernel->params, kernel->param_count, query);
    size_t i;
    for (i = 0; i < PTXGEN_QUERY_MATRICES; i++) {
        ptxgen_matrix matrix = ptxgen_query_matrix(query, i);
        const ptxgen_param *param =
            ptxgen_param_named(kernel->params, kernel->param_count, matrix.name);
        if (ptxgen_fits_matrix(param, matrix.wanted, query))
            continue;
        before = ptxgen_say_next(text, before, param ? "" : "has no ", matrix.name);
        ptxgen_say(text, param ? " is " : "");
        ptxgen_say(text, param ? ptxgen_format_name(param->format) : "");
        said = 1;
    }
    return said ? before
                : ptxgen_say_next(text, before, "weights are ", ptxgen_format_name(kernel->weights));
}

/* Appends a kernel and its differences from the query: "q4k_gemv_k4096_n14336 (n is 14336)". */
static inline void ptxgen_say_kernel(ptxgen_text *text, const ptxgen_kernel *kernel,
                                     const ptxgen_query *query)
{
    const char *before = " (";
    size_t i;
    ptxgen_say(text, kernel->name);
    if (query->op && query->op != kernel->operation)
        before = ptxgen_say_next(text, before, "computes ",
                                 ptxgen_operation_name(kernel->operation));
    if (query->family && strcmp(query->family, kernel->family) != 0)
        before = ptxgen_say_next(text, before, "family is ", kernel->family);
    before = ptxgen_say_weights(text, before, kernel, query);
    if (!ptxgen_fits_activations(kernel, query))
        before = ptxgen_say_next(text, before, "activations are ",
                                 ptxgen_format_name(kernel->activations));
    if (query->precision && query->precision != kernel->precision)
        before = ptxgen_say_next(text, before, "precision is ",
                                 ptxgen_format_name(kernel->precision));
    for (i = 0; i < PTXGEN_QUERY_SIZES; i++) {
        ptxgen_size size = ptxgen_query_size(query, i);
        const ptxgen_config *key = ptxgen_key(kernel->config, kernel->config_count, size.name);
        if (ptxgen_takes(key, size.wanted))
            continue;
        before = ptxgen_say_next(text, before, "", "");
        ptxgen_say_size(text, key, size.name);
    }
    for (i = 0; i < PTXGEN_QUERY_OPTIONS; i++) {
        ptxgen_option option = ptxgen_query_option(query, i);
        if (ptxgen_fits_option(kernel->config, kernel->config_count, option))
            continue;
        before = ptxgen_say_next(text, before, "", "");
        ptxgen_say_option(text, ptxgen_key(kernel->config, kernel->config_count, option.name),
                          option.name);
    }
    if (!ptxgen_fits_scratch(kernel->params, kernel->param_count, query))
        before = ptxgen_say_next(text, before, "needs scratch memory", "");
    if (!ptxgen_fits_epsilon(kernel->config, kernel->config_count, query->epsilon))
        before = ptxgen_say_next(text, before, "epsilon differs", "");
    if (query->sm && !ptxgen_runs_on(kernel, query->sm)) {
        before = ptxgen_say_next(text, before, "needs ", "sm_");
        ptxgen_say_number(text, "", (int64_t)kernel->sm);
        ptxgen_say(text, kernel->specific ? "a" : "");
    } else if (!ptxgen_fits_device(kernel, query)) {
        ptxgen_run run = { 0, 0, 0, 0 };
        run.k = query->k;
        run.n = query->n;
        run.m = query->m;
        before = ptxgen_say_next(text, before, "needs ", "");
        ptxgen_say_number(text, "", (int64_t)ptxgen_shared_need(kernel, &run));
        ptxgen_say_number(text, " bytes of shared memory per block, sm_", (int64_t)query->sm);
        ptxgen_say_number(text, " allows ", (int64_t)ptxgen_shared_limit(query->sm));
    }
    if (*before == ',')
        ptxgen_say(text, ")");
}

static inline size_t ptxgen_explain_in(const ptxgen_kernel *const *kernels, size_t count,
                                       const ptxgen_query *query, char *bytes, size_t size)
{
    const ptxgen_kernel *nearest = ptxgen_find_in(kernels, count, query);
    ptxgen_text text = { NULL, 0, 0 };
    double least = 0;
    size_t i;
    text.bytes = bytes;
    text.size = size;
    if (size)
        bytes[0] = '\0';
    if (nearest) {
        ptxgen_say(&text, nearest->name);
        ptxgen_say(&text, " fits");
        return text.length;
    }
    for (i = 0; i < count; i++) {
        double distance = ptxgen_distance(kernels[i], query);
        if (nearest && distance >= least)
            continue;
        nearest = kernels[i];
        least = distance;
    }
    ptxgen_say_query(&text, query, "kernel");
    if (nearest) {
        ptxgen_say(&text, "; nearest: ");
        ptxgen_say_kernel(&text, nearest, query);
    }
    return text.length;
}

static inline size_t ptxgen_explain_pipeline_in(const ptxgen_pipeline *const *pipelines,
                                                size_t count, const ptxgen_kernel *const *kernels,
                                                size_t kernel_count, const ptxgen_query *query,
                                                char *bytes, size_t size)
{
    const ptxgen_pipeline *nearest =
        ptxgen_find_pipeline_in(pipelines, count, kernels, kernel_count, query);
    ptxgen_query wanted = ptxgen_pipeline_query(query);
    ptxgen_text text = { NULL, 0, 0 };
    double least = 0;
    size_t i;
    text.bytes = bytes;
    text.size = size;
    if (size)
        bytes[0] = '\0';
    if (nearest) {
        ptxgen_say(&text, nearest->name);
        ptxgen_say(&text, " fits");
        return text.length;
    }
    for (i = 0; i < count; i++) {
        const ptxgen_kernel as_kernel = ptxgen_pipeline_as_kernel(pipelines[i]);
        double distance = ptxgen_distance(&as_kernel, &wanted);
        if (!ptxgen_pipeline_runs_on(pipelines[i], kernels, kernel_count, query->sm))
            distance += 100;
        if (nearest && distance >= least)
            continue;
        nearest = pipelines[i];
        least = distance;
    }
    wanted.sm = query->sm;
    ptxgen_say_query(&text, &wanted, "pipeline");
    if (nearest) {
        const ptxgen_kernel as_kernel = ptxgen_pipeline_as_kernel(nearest);
        wanted.sm = 0;
        ptxgen_say(&text, "; nearest: ");
        ptxgen_say_kernel(&text, &as_kernel, &wanted);
        if (ptxgen_fits(&as_kernel, &wanted))
            ptxgen_say(&text, " (its kernels do not run on that device)");
    }
    return text.length;
}
#endif /* PTXGEN_EXPLAIN */

#ifdef __cplusplus
extern "C" {
#endif

/* C99 guarantees only 4095 characters in a string literal; PTX is longer. */
#ifdef __GNUC__
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Woverlength-strings"
#endif

static void llama_grid_0(const ptxgen_run *run, unsigned grid[3])
{
    if (run->n <= 0)
        return;
    if (run->sm_count <= 0)
        return;
    grid[0] = ptxgen_extent(PTXGEN_MIN(PTXGEN_CEIL_DIV(run->n, 12), run->sm_count * 2), 2147483647);
    grid[1] = ptxgen_extent(1, 65535);
    grid[2] = ptxgen_extent(1, 65535);
}

static const char llama_f32_gemv_k4096_n256_ptx[] = "\
// f32_gemv  k=4096 n=256  y[n] = W[n,k] x[k]\n\
// ptxgen 0.1.0  block 32  grid 256\n\
// from kernels.ini:15 [f32_gemv]\n\
.version 7.0\n\
.target sm_80\n\
.address_size 64\n\
\n\
.visible .entry f32_gemv_k4096_n256(\n\
    .param .u64 y,\n\
    .param .u64 w,\n\
    .param .u64 x)\n\
.reqntid 32, 1, 1\n\
.maxnreg 64\n\
{\n\
    .reg .pred  %p<3>;\n\
    .reg .b32   %r<5>;\n\
    .reg .f32   %f<44>;\n\
    .reg .b64   %rd<8>;\n\
\n\
    ld.param.u64        %rd1, [y];\n\
    ld.param.u64        %rd2, [w];\n\
    ld.param.u64        %rd3, [x];\n\
    mov.u32             %r1, %tid.x;\n\
    mov.u32             %r2, %ctaid.x;                          // row\n\
    mul.lo.u32          %r3, %r1, 4;                            // column\n\
    mad.wide.u32        %rd4, %r3, 4, %rd3;\n\
    mad.wide.u32        %rd5, %r2, 16384, %rd2;                 // &w[row]\n\
    mad.wide.u32        %rd6, %r3, 4, %rd5;\n\
    mov.f32             %f1, 0f00000000;\n\
    mov.u32             %r4, 0;                                 // turn\n\
\n\
$turn_loop:                                                     // 16 weights a lane\n\
    .pragma \"nounroll\";\n\
    ld.global.nc.v4.f32 {%f2, %f3, %f4, %f5}, [%rd6];\n\
    ld.global.nc.v4.f32 {%f6, %f7, %f8, %f9}, [%rd4];\n\
    fma.rn.f32          %f1, %f2, %f6, %f1;\n\
    fma.rn.f32          %f1, %f3, %f7, %f1;\n\
    fma.rn.f32          %f1, %f4, %f8, %f1;\n\
    fma.rn.f32          %f1, %f5, %f9, %f1;\n\
    ld.global.nc.v4.f32 {%f10, %f11, %f12, %f13}, [%rd6+512];\n\
    ld.global.nc.v4.f32 {%f14, %f15, %f16, %f17}, [%rd4+512];\n\
    fma.rn.f32          %f1, %f10, %f14, %f1;\n\
    fma.rn.f32          %f1, %f11, %f15, %f1;\n\
    fma.rn.f32          %f1, %f12, %f16, %f1;\n\
    fma.rn.f32          %f1, %f13, %f17, %f1;\n\
    ld.global.nc.v4.f32 {%f18, %f19, %f20, %f21}, [%rd6+1024];\n\
    ld.global.nc.v4.f32 {%f22, %f23, %f24, %f25}, [%rd4+1024];\n\
    fma.rn.f32          %f1, %f18, %f22, %f1;\n\
    fma.rn.f32          %f1, %f19, %f23, %f1;\n\
    fma.rn.f32          %f1, %f20, %f24, %f1;\n\
    fma.rn.f32          %f1, %f21, %f25, %f1;\n\
    ld.global.nc.v4.f32 {%f26, %f27, %f28, %f29}, [%rd6+1536];\n\
    ld.global.nc.v4.f32 {%f30, %f31, %f32, %f33}, [%rd4+1536];\n\
    fma.rn.f32          %f1, %f26, %f30, %f1;\n\
    fma.rn.f32          %f1, %f27, %f31, %f1;\n\
    fma.rn.f32          %f1, %f28, %f32, %f1;\n\
    fma.rn.f32          %f1, %f29, %f33, %f1;\n\
    add.u64             %rd6, %rd6, 2048;\n\
    add.u64             %rd4, %rd4, 2048;\n\
    add.u32             %r4, %r4, 1;\n\
    setp.lt.u32         %p1, %r4, 8;\n\
    @%p1 bra            $turn_loop;\n\
    shfl.sync.bfly.b32  %f34, %f1, 16, 31, 0xFFFFFFFF;\n\
    add.rn.f32          %f35, %f1, %f34;\n\
    shfl.sync.bfly.b32  %f36, %f35, 8, 31, 0xFFFFFFFF;\n\
    add.rn.f32          %f37, %f35, %f36;\n\
    shfl.sync.bfly.b32  %f38, %f37, 4, 31, 0xFFFFFFFF;\n\
    add.rn.f32          %f39, %f37, %f38;\n\
    shfl.sync.bfly.b32  %f40, %f39, 2, 31, 0xFFFFFFFF;\n\
    add.rn.f32          %f41, %f39, %f40;\n\
    shfl.sync.bfly.b32  %f42, %f41, 1, 31, 0xFFFFFFFF;\n\
    add.rn.f32          %f43, %f41, %f42;\n\
    setp.eq.u32         %p2, %r1, 0;\n\
    @!%p2 bra           $skip;\n\
    mad.wide.u32        %rd7, %r2, 4, %rd1;\n\
    st.global.f32       [%rd7], %f43;\n\
\n\
$skip:\n\
    ret;\n\
}\n\
";
static const ptxgen_param llama_f32_gemv_k4096_n256_params[] = {
    { "y", PTXGEN_PARAM_POINTER, PTXGEN_PARAM_OUT, PTXGEN_F32, 1024, "n*4", 4 },
    { "w", PTXGEN_PARAM_POINTER, PTXGEN_PARAM_IN, PTXGEN_F32, 4194304, "n*k*4", 16 },
    { "x", PTXGEN_PARAM_POINTER, PTXGEN_PARAM_IN, PTXGEN_F32, 16384, "k*4", 16 },
};
static const ptxgen_config llama_f32_gemv_k4096_n256_config[] = {
    { "k", 4096, 0, NULL, 0, 0, 0, 1 },
    { "n", 256, 0, NULL, 0, 0, 0, 1 },
    { "dims", 0, 0, "static", 0, 0, 0, 1 },
};
const ptxgen_kernel llama_f32_gemv_k4096_n256 = {
    "f32_gemv_k4096_n256", "f32_gemv_k4096_n256",
    llama_f32_gemv_k4096_n256_ptx, 3114, UINT64_C(0xe69627528ca81c05),
    "f32_gemv", PTXGEN_GEMV, PTXGEN_F32, PTXGEN_F32, PTXGEN_F32,
    80, 70, 0, 0, /* sm, isa, overlaps, specific */
    llama_f32_gemv_k4096_n256_params, 3,
    { 32, 1, 1 }, { 256, 1, 1 }, NULL, /* block, grid, grid_at */
    0, 0, NULL, 0, /* shared_static, shared_dynamic, shared_at, workspace */
    4096, 256, 1, /* k, n, m */
    1, 0, 0, 0, 0, /* num_warps, head_dim, num_heads, num_kv_heads, max_seq_len */
    0, 0, /* dynamic_dims, seq_len_indirect */
    llama_f32_gemv_k4096_n256_config, 3,
    0, 0, /* registers, blocks_per_sm */
    0, /* preference */
    NULL, 0, 0, /* chosen_by, chosen_f32, chosen_q8 */
};

static const char llama_stream_gemv_q4k_k4096_n14336_m1_w12_r1_ptx[] = "\
// stream_gemv  weights=q4_k k=4096 n=14336 m=1 num_warps=12 rows_per_warp=1  y[m,n] = x[m,k] W[n,k]^T\n\
// ptxgen 0.1.0  block 384  grid min(1195, sm_count*2)\n\
// from kernels.ini:21 [stream_gemv]\n\
.version 7.0\n\
.target sm_80\n\
.address_size 64\n\
\n\
.extern .shared .align 16 .b32 activations[];\n\
\n\
.visible .entry stream_gemv_q4k_k4096_n14336_m1_w12_r1(\n\
    .param .u64 y,\n\
    .param .u64 w,\n\
    .param .u64 x)\n\
.reqntid 384, 1, 1\n\
.maxnreg 80\n\
{\n\
    .reg .pred  %p<15>;\n\
    .reg .b16   %h<5>;\n\
    .reg .b32   %r<269>;\n\
    .reg .f32   %f<128>;\n\
    .reg .b64   %rd<19>;\n\
\n\
    ld.param.u64        %rd1, [y];\n\
    ld.param.u64        %rd2, [w];\n\
    ld.param.u64        %rd3, [x];\n\
    mov.u32             %r1, %ctaid.x;\n\
    mov.u32             %r2, %tid.x;\n\
    shr.u32             %r3, %r2, 5;                            // warp\n\
    mov.u32             %r4, %nctaid.x;\n\
    and.b32             %r5, %r2, 31;                           // lane\n\
\n\
    // prefetch the first weights\n\
    mad.lo.u32          %r6, %r1, 12, %r3;\n\
    mul.lo.u32          %r7, %r4, 12;\n\
    setp.lt.u32         %p1, %r6, 14336;\n\
    @!%p1 bra           $skip;\n\
    min.u32             %r8, %r5, 17;\n\
    mad.wide.u32        %rd4, %r6, 2304, %rd2;                  // &w[row]\n\
    mad.wide.u32        %rd5, %r8, 128, %rd4;\n\
    prefetch.global.L2  [%rd5];\n\
\n\
$skip:\n\
\n\
    // stage x\n\
    mov.u32             %r9, %r3;                               // first\n\
    setp.lt.u32         %p2, %r9, 8;\n\
    @!%p2 bra           $first_done;\n\
\n\
$first_loop:\n\
    .pragma \"nounroll\";\n\
    bfe.u32             %r10, %r5, 0, 2;\n\
    bfe.u32             %r11, %r5, 2, 1;\n\
    bfe.u32             %r12, %r5, 4, 1;\n\
    mad.lo.u32          %r13, %r11, 8, %r12;\n\
    mad.lo.u32          %r14, %r10, 2, %r13;\n\
    bfe.u32             %r15, %r5, 3, 1;\n\
    mad.lo.u32          %r16, %r14, 2, %r15;\n\
    and.b32             %r17, %r16, 3;\n\
    bfe.u32             %r18, %r5, 2, 1;\n\
    bfe.u32             %r19, %r5, 4, 1;\n\
    mad.lo.u32          %r20, %r18, 8, %r19;\n\
    mad.lo.u32          %r21, %r9, 16, %r20;\n\
    bfe.u32             %r22, %r5, 3, 1;\n\
    bfe.u32             %r23, %r5, 0, 2;\n\
    mad.lo.u32          %r24, %r22, 4, %r23;\n\
    mad.wide.u32        %rd6, %r24, 16, %rd3;\n\
    mad.wide.u32        %rd7, %r21, 128, %rd6;\n\
    ld.global.nc.v4.f32 {%f1, %f2, %f3, %f4}, [%rd7+768];\n\
    abs.f32             %f5, %f1;\n\
    abs.f32             %f6, %f2;\n\
    max.NaN.f32         %f7, %f5, %f6;\n\
    abs.f32             %f8, %f3;\n\
    max.NaN.f32         %f9, %f7, %f8;\n\
    abs.f32             %f10, %f4;\n\
    max.NaN.f32         %f11, %f9, %f10;\n\
    mov.b32             %r25, %f11;\n\
    mad.wide.u32        %rd8, %r21, 128, %rd6;\n\
    ld.global.nc.v4.f32 {%f12, %f13, %f14, %f15}, [%rd8+256];\n\
    abs.f32             %f16, %f12;\n\
    abs.f32             %f17, %f13;\n\
    max.NaN.f32         %f18, %f16, %f17;\n\
    abs.f32             %f19, %f14;\n\
    max.NaN.f32         %f20, %f18, %f19;\n\
    abs.f32             %f21, %f15;\n\
    max.NaN.f32         %f22, %f20, %f21;\n\
    mov.b32             %r26, %f22;\n\
    and.b32             %r27, %r5, 2;\n\
    setp.ne.u32         %p3, %r27, 0;\n\
    selp.u32            %r28, %r25, %r26, %p3;\n\
    selp.u32            %r29, %r26, %r25, %p3;\n\
    shfl.sync.bfly.b32  %r30, %r29, 2, 31, 0xFFFFFFFF;\n\
    max.u32             %r31, %r28, %r30;\n\
    mad.wide.u32        %rd9, %r21, 128, %rd6;\n\
    ld.global.nc.v4.f32 {%f23, %f24, %f25, %f26}, [%rd9+512];\n\
    abs.f32             %f27, %f23;\n\
    abs.f32             %f28, %f24;\n\
    max.NaN.f32         %f29, %f27, %f28;\n\
    abs.f32             %f30, %f25;\n\
    max.NaN.f32         %f31, %f29, %f30;\n\
    abs.f32             %f32, %f26;\n\
    max.NaN.f32         %f33, %f31, %f32;\n\
    mov.b32             %r32, %f33;\n\
    mad.wide.u32        %rd10, %r21, 128, %rd6;\n\
    ld.global.nc.v4.f32 {%f34, %f35, %f36, %f37}, [%rd10];\n\
    abs.f32             %f38, %f34;\n\
    abs.f32             %f39, %f35;\n\
    max.NaN.f32         %f40, %f38, %f39;\n\
    abs.f32             %f41, %f36;\n\
    max.NaN.f32         %f42, %f40, %f41;\n\
    abs.f32             %f43, %f37;\n\
    max.NaN.f32         %f44, %f42, %f43;\n\
    mov.b32             %r33, %f44;\n\
    selp.u32            %r34, %r32, %r33, %p3;\n\
    selp.u32            %r35, %r33, %r32, %p3;\n\
    shfl.sync.bfly.b32  %r36, %r35, 2, 31, 0xFFFFFFFF;\n\
    max.u32             %r37, %r34, %r36;\n\
    and.b32             %r38, %r5, 1;\n\
    setp.ne.u32         %p4, %r38, 0;\n\
    selp.u32            %r39, %r31, %r37, %p4;\n\
    selp.u32            %r40, %r37, %r31, %p4;\n\
    shfl.sync.bfly.b32  %r41, %r40, 1, 31, 0xFFFFFFFF;\n\
    max.u32             %r42, %r39, %r41;\n\
    shfl.sync.bfly.b32  %r43, %r42, 8, 31, 0xFFFFFFFF;\n\
    max.u32             %r44, %r42, %r43;\n\
    max.u32             %r45, %r44, 228737632;\n\
    mov.b32             %f45, %r45;\n\
    mul.rn.f32          %f46, %f45, 0f3C010204;\n\
    rcp.approx.ftz.f32  %f47, %f46;\n\
    shfl.sync.idx.b32   %f48, %f47, 3, 7199, 0xFFFFFFFF;\n\
    fma.rn.f32          %f49, %f1, %f48, 0f4B400000;\n\
    mov.b32             %r46, %f49;\n\
    fma.rn.f32          %f50, %f2, %f48, 0f4B400000;\n\
    mov.b32             %r47, %f50;\n\
    prmt.b32            %r48, %r46, %r47, 64;\n\
    fma.rn.f32          %f51, %f3, %f48, 0f4B400000;\n\
    mov.b32             %r49, %f51;\n\
    fma.rn.f32          %f52, %f4, %f48, 0f4B400000;\n\
    mov.b32             %r50, %f52;\n\
    prmt.b32            %r51, %r49, %r50, 64;\n\
    prmt.b32            %r52, %r48, %r51, 0x5410;\n\
    shfl.sync.idx.b32   %f53, %f47, 2, 7199, 0xFFFFFFFF;\n\
    fma.rn.f32          %f54, %f23, %f53, 0f4B400000;\n\
    mov.b32             %r53, %f54;\n\
    fma.rn.f32          %f55, %f24, %f53, 0f4B400000;\n\
    mov.b32             %r54, %f55;\n\
    prmt.b32            %r55, %r53, %r54, 64;\n\
    fma.rn.f32          %f56, %f25, %f53, 0f4B400000;\n\
    mov.b32             %r56, %f56;\n\
    fma.rn.f32          %f57, %f26, %f53, 0f4B400000;\n\
    mov.b32             %r57, %f57;\n\
    prmt.b32            %r58, %r56, %r57, 64;\n\
    prmt.b32            %r59, %r55, %r58, 0x5410;\n\
    selp.s32            %r60, %r59, %r52, %p4;\n\
    shfl.sync.bfly.b32  %r61, %r60, 1, 31, 0xFFFFFFFF;\n\
    selp.s32            %r62, %r52, %r61, %p4;\n\
    shfl.sync.idx.b32   %f58, %f47, 1, 7199, 0xFFFFFFFF;\n\
    fma.rn.f32          %f59, %f12, %f58, 0f4B400000;\n\
    mov.b32             %r63, %f59;\n\
    fma.rn.f32          %f60, %f13, %f58, 0f4B400000;\n\
    mov.b32             %r64, %f60;\n\
    prmt.b32            %r65, %r63, %r64, 64;\n\
    fma.rn.f32          %f61, %f14, %f58, 0f4B400000;\n\
    mov.b32             %r66, %f61;\n\
    fma.rn.f32          %f62, %f15, %f58, 0f4B400000;\n\
    mov.b32             %r67, %f62;\n\
    prmt.b32            %r68, %r66, %r67, 64;\n\
    prmt.b32            %r69, %r65, %r68, 0x5410;\n\
    shfl.sync.idx.b32   %f63, %f47, 0, 7199, 0xFFFFFFFF;\n\
    fma.rn.f32          %f64, %f34, %f63, 0f4B400000;\n\
    mov.b32             %r70, %f64;\n\
    fma.rn.f32          %f65, %f35, %f63, 0f4B400000;\n\
    mov.b32             %r71, %f65;\n\
    prmt.b32            %r72, %r70, %r71, 64;\n\
    fma.rn.f32          %f66, %f36, %f63, 0f4B400000;\n\
    mov.b32             %r73, %f66;\n\
    fma.rn.f32          %f67, %f37, %f63, 0f4B400000;\n\
    mov.b32             %r74, %f67;\n\
    prmt.b32            %r75, %r73, %r74, 64;\n\
    prmt.b32            %r76, %r72, %r75, 0x5410;\n\
    selp.s32            %r77, %r76, %r69, %p4;\n\
    shfl.sync.bfly.b32  %r78, %r77, 1, 31, 0xFFFFFFFF;\n\
    selp.s32            %r79, %r69, %r78, %p4;\n\
    selp.s32            %r80, %r79, %r62, %p3;\n\
    shfl.sync.bfly.b32  %r81, %r80, 2, 31, 0xFFFFFFFF;\n\
    selp.s32            %r82, %r62, %r81, %p3;\n\
    selp.s32            %r83, %r61, %r59, %p4;\n\
    selp.s32            %r84, %r78, %r76, %p4;\n\
    selp.s32            %r85, %r84, %r83, %p3;\n\
    shfl.sync.bfly.b32  %r86, %r85, 2, 31, 0xFFFFFFFF;\n\
    selp.s32            %r87, %r83, %r86, %p3;\n\
    selp.s32            %r88, %r81, %r79, %p3;\n\
    selp.s32            %r89, %r86, %r84, %p3;\n\
    dp4a.u32.s32        %r90, 0x01010101, %r89, 0;\n\
    dp4a.u32.s32        %r91, 0x01010101, %r88, %r90;\n\
    dp4a.u32.s32        %r92, 0x01010101, %r87, %r91;\n\
"
"\
    dp4a.u32.s32        %r93, 0x01010101, %r82, %r92;\n\
    shfl.sync.bfly.b32  %r94, %r93, 8, 31, 0xFFFFFFFF;\n\
    add.s32             %r95, %r93, %r94;\n\
    cvt.rn.f32.s32      %f68, %r95;\n\
    mul.rn.f32          %f69, %f46, %f68;\n\
    mov.b32             %r96, %f69;\n\
    shr.u32             %r97, %r16, 2;\n\
    and.b32             %r98, %r9, 3;\n\
    mul.lo.u32          %r99, %r98, 8;\n\
    add.u32             %r100, %r97, %r99;\n\
    shr.u32             %r101, %r9, 2;\n\
    mov.u32             %r102, activations;                     // activations\n\
    mad.lo.u32          %r103, %r101, 2560, %r102;\n\
    mad.lo.u32          %r104, %r17, 512, %r103;\n\
    mad.lo.u32          %r105, %r100, 16, %r104;\n\
    st.shared.v4.s32    [%r105], {%r89, %r88, %r87, %r82};\n\
    setp.eq.u32         %p5, %r17, 2;\n\
    selp.f32            %f70, 0f3D800000, 0f3F800000, %p5;\n\
    setp.eq.u32         %p6, %r17, 3;\n\
    selp.f32            %f71, 0f3D800000, %f70, %p6;\n\
    mul.rn.f32          %f72, %f46, %f71;\n\
    mov.b32             %r106, %f72;\n\
    and.b32             %r107, %r17, 1;\n\
    setp.eq.u32         %p7, %r107, 0;\n\
    selp.u32            %r108, %r106, %r96, %p7;\n\
    shr.u32             %r109, %r17, 1;\n\
    mad.lo.u32          %r110, %r100, 16, %r103;\n\
    mad.lo.u32          %r111, %r109, 4, %r110;\n\
    mad.lo.u32          %r112, %r107, 8, %r111;\n\
    st.shared.u32       [%r112+2048], %r108;\n\
    add.u32             %r9, %r9, 12;\n\
    setp.lt.u32         %p8, %r9, 8;\n\
    @%p8 bra            $first_loop;\n\
\n\
$first_done:\n\
    bar.sync            0;\n\
\n\
    // stream weights\n\
    shr.u32             %r113, %r5, 2;\n\
    and.b32             %r114, %r5, 3;\n\
    mul.lo.u32          %r115, %r114, 32;\n\
    add.u32             %r116, %r115, 16;\n\
    and.b32             %r117, %r114, 1;\n\
    setp.ne.u32         %p9, %r117, 0;\n\
    selp.u32            %r118, 0x7632, 0x5410, %p9;\n\
    setp.ge.u32         %p10, %r114, 2;\n\
    selp.u32            %r119, 2, 0, %p10;\n\
    selp.u32            %r120, 0x30303030, 0x3F3F3F3F, %p10;\n\
    selp.u32            %r121, 0x0F0F0F0F, 0, %p10;\n\
    mov.u32             %r122, activations;                     // activations\n\
    mad.lo.u32          %r123, %r5, 16, %r122;\n\
    mov.u32             %r124, %r6;                             // row\n\
    setp.lt.u32         %p11, %r124, 14336;\n\
    @!%p11 bra          $row_done;\n\
\n\
$row_loop:                                                      // 128 weights a lane\n\
    .pragma \"nounroll\";\n\
    mad.wide.u32        %rd11, %r124, 2304, %rd2;               // &w[row]\n\
    mov.f32             %f73, 0f00000000;\n\
    mad.wide.u32        %rd12, %r113, 144, %rd11;\n\
    cvt.u64.u32         %rd13, %r116;\n\
    add.u64             %rd14, %rd12, %rd13;\n\
    and.b64             %rd15, %rd14, 0xFFFFFFFFFFFFFFF0;\n\
    ld.global.nc.v4.u32 {%r125, %r126, %r127, %r128}, [%rd12];\n\
    mov.b32             {%h1, %h2}, %r125;\n\
    cvt.f32.f16         %f74, %h2;\n\
    neg.f32             %f75, %f74;\n\
    shr.u32             %r129, %r128, 4;\n\
    prmt.b32            %r130, %r128, %r129, %r118;\n\
    prmt.b32            %r131, %r126, %r127, %r118;\n\
    shr.u32             %r132, %r131, %r119;\n\
    and.b32             %r133, %r132, %r120;\n\
    lop3.b32            %r134, %r130, %r121, %r133, 0xEA;\n\
    bfe.s32             %r135, %r134, 24, 8;\n\
    cvt.rn.f32.s32      %f76, %r135;\n\
    ld.shared.v4.f32    {%f77, %f78, %f79, %f80}, [%r123+2048];\n\
    bfe.s32             %r136, %r134, 16, 8;\n\
    cvt.rn.f32.s32      %f81, %r136;\n\
    mul.rn.f32          %f82, %f81, %f79;\n\
    fma.rn.f32          %f83, %f76, %f80, %f82;\n\
    cvt.f32.f16         %f84, %h1;\n\
    bfe.s32             %r137, %r134, 8, 8;\n\
    cvt.rn.f32.s32      %f85, %r137;\n\
    mul.rn.f32          %f86, %f85, %f78;\n\
    ld.global.nc.v4.u32 {%r138, %r139, %r140, %r141}, [%rd15+16];\n\
    and.b32             %r142, %r141, 0xF0F0F0F0;\n\
    ld.shared.v4.s32    {%r143, %r144, %r145, %r146}, [%r123+1536];\n\
    and.b32             %r147, %r140, 0xF0F0F0F0;\n\
    and.b32             %r148, %r139, 0xF0F0F0F0;\n\
    and.b32             %r149, %r138, 0xF0F0F0F0;\n\
    ld.global.nc.v4.u32 {%r150, %r151, %r152, %r153}, [%rd15];\n\
    and.b32             %r154, %r153, 0xF0F0F0F0;\n\
    ld.shared.v4.s32    {%r155, %r156, %r157, %r158}, [%r123+1024];\n\
    and.b32             %r159, %r152, 0xF0F0F0F0;\n\
    and.b32             %r160, %r151, 0xF0F0F0F0;\n\
    and.b32             %r161, %r150, 0xF0F0F0F0;\n\
    dp4a.u32.s32        %r162, %r161, %r155, 1262485504;\n\
    dp4a.u32.s32        %r163, %r160, %r156, %r162;\n\
    dp4a.u32.s32        %r164, %r159, %r157, %r163;\n\
    dp4a.u32.s32        %r165, %r154, %r158, %r164;\n\
    dp4a.u32.s32        %r166, %r149, %r143, %r165;\n\
    dp4a.u32.s32        %r167, %r148, %r144, %r166;\n\
    dp4a.u32.s32        %r168, %r147, %r145, %r167;\n\
    dp4a.u32.s32        %r169, %r142, %r146, %r168;\n\
    mov.b32             %f87, %r169;\n\
    sub.rn.f32          %f88, %f87, 0f4B400000;\n\
    bfe.s32             %r170, %r134, 0, 8;\n\
    cvt.rn.f32.s32      %f89, %r170;\n\
    mul.rn.f32          %f90, %f89, %f77;\n\
    and.b32             %r171, %r141, 0x0F0F0F0F;\n\
    ld.shared.v4.s32    {%r172, %r173, %r174, %r175}, [%r123+512];\n\
    and.b32             %r176, %r140, 0x0F0F0F0F;\n\
    and.b32             %r177, %r139, 0x0F0F0F0F;\n\
    and.b32             %r178, %r138, 0x0F0F0F0F;\n\
    and.b32             %r179, %r153, 0x0F0F0F0F;\n\
    ld.shared.v4.s32    {%r180, %r181, %r182, %r183}, [%r123];\n\
    and.b32             %r184, %r152, 0x0F0F0F0F;\n\
    and.b32             %r185, %r151, 0x0F0F0F0F;\n\
    and.b32             %r186, %r150, 0x0F0F0F0F;\n\
    dp4a.u32.s32        %r187, %r186, %r180, 1262485504;\n\
    dp4a.u32.s32        %r188, %r185, %r181, %r187;\n\
    dp4a.u32.s32        %r189, %r184, %r182, %r188;\n\
    dp4a.u32.s32        %r190, %r179, %r183, %r189;\n\
    dp4a.u32.s32        %r191, %r178, %r172, %r190;\n\
    dp4a.u32.s32        %r192, %r177, %r173, %r191;\n\
    dp4a.u32.s32        %r193, %r176, %r174, %r192;\n\
    dp4a.u32.s32        %r194, %r171, %r175, %r193;\n\
    mov.b32             %f91, %r194;\n\
    sub.rn.f32          %f92, %f91, 0f4B400000;\n\
    mul.rn.f32          %f93, %f90, %f92;\n\
    fma.rn.f32          %f94, %f86, %f88, %f93;\n\
    fma.rn.f32          %f95, %f84, %f94, %f73;\n\
    fma.rn.f32          %f73, %f75, %f83, %f95;\n\
    ld.global.nc.v4.u32 {%r195, %r196, %r197, %r198}, [%rd12+1152];\n\
    mov.b32             {%h3, %h4}, %r195;\n\
    cvt.f32.f16         %f96, %h4;\n\
    neg.f32             %f97, %f96;\n\
    shr.u32             %r199, %r198, 4;\n\
    prmt.b32            %r200, %r198, %r199, %r118;\n\
    prmt.b32            %r201, %r196, %r197, %r118;\n\
    shr.u32             %r202, %r201, %r119;\n\
    and.b32             %r203, %r202, %r120;\n\
    lop3.b32            %r204, %r200, %r121, %r203, 0xEA;\n\
    bfe.s32             %r205, %r204, 24, 8;\n\
    cvt.rn.f32.s32      %f98, %r205;\n\
    ld.shared.v4.f32    {%f99, %f100, %f101, %f102}, [%r123+4608];\n\
    bfe.s32             %r206, %r204, 16, 8;\n\
    cvt.rn.f32.s32      %f103, %r206;\n\
    mul.rn.f32          %f104, %f103, %f101;\n\
    fma.rn.f32          %f105, %f98, %f102, %f104;\n\
    cvt.f32.f16         %f106, %h3;\n\
    bfe.s32             %r207, %r204, 8, 8;\n\
    cvt.rn.f32.s32      %f107, %r207;\n\
    mul.rn.f32          %f108, %f107, %f100;\n\
    ld.global.nc.v4.u32 {%r208, %r209, %r210, %r211}, [%rd15+1168];\n\
    and.b32             %r212, %r211, 0xF0F0F0F0;\n\
    ld.shared.v4.s32    {%r213, %r214, %r215, %r216}, [%r123+4096];\n\
    and.b32             %r217, %r210, 0xF0F0F0F0;\n\
    and.b32             %r218, %r209, 0xF0F0F0F0;\n\
    and.b32             %r219, %r208, 0xF0F0F0F0;\n\
    ld.global.nc.v4.u32 {%r220, %r221, %r222, %r223}, [%rd15+1152];\n\
    and.b32             %r224, %r223, 0xF0F0F0F0;\n\
    ld.shared.v4.s32    {%r225, %r226, %r227, %r228}, [%r123+3584];\n\
    and.b32             %r229, %r222, 0xF0F0F0F0;\n\
    and.b32             %r230, %r221, 0xF0F0F0F0;\n\
    and.b32             %r231, %r220, 0xF0F0F0F0;\n\
    dp4a.u32.s32        %r232, %r231, %r225, 1262485504;\n\
    dp4a.u32.s32        %r233, %r230, %r226, %r232;\n\
    dp4a.u32.s32        %r234, %r229, %r227, %r233;\n\
"
"\
    dp4a.u32.s32        %r235, %r224, %r228, %r234;\n\
    dp4a.u32.s32        %r236, %r219, %r213, %r235;\n\
    dp4a.u32.s32        %r237, %r218, %r214, %r236;\n\
    dp4a.u32.s32        %r238, %r217, %r215, %r237;\n\
    dp4a.u32.s32        %r239, %r212, %r216, %r238;\n\
    mov.b32             %f109, %r239;\n\
    sub.rn.f32          %f110, %f109, 0f4B400000;\n\
    bfe.s32             %r240, %r204, 0, 8;\n\
    cvt.rn.f32.s32      %f111, %r240;\n\
    mul.rn.f32          %f112, %f111, %f99;\n\
    and.b32             %r241, %r211, 0x0F0F0F0F;\n\
    ld.shared.v4.s32    {%r242, %r243, %r244, %r245}, [%r123+3072];\n\
    and.b32             %r246, %r210, 0x0F0F0F0F;\n\
    and.b32             %r247, %r209, 0x0F0F0F0F;\n\
    and.b32             %r248, %r208, 0x0F0F0F0F;\n\
    and.b32             %r249, %r223, 0x0F0F0F0F;\n\
    ld.shared.v4.s32    {%r250, %r251, %r252, %r253}, [%r123+2560];\n\
    and.b32             %r254, %r222, 0x0F0F0F0F;\n\
    and.b32             %r255, %r221, 0x0F0F0F0F;\n\
    and.b32             %r256, %r220, 0x0F0F0F0F;\n\
    dp4a.u32.s32        %r257, %r256, %r250, 1262485504;\n\
    dp4a.u32.s32        %r258, %r255, %r251, %r257;\n\
    dp4a.u32.s32        %r259, %r254, %r252, %r258;\n\
    dp4a.u32.s32        %r260, %r249, %r253, %r259;\n\
    dp4a.u32.s32        %r261, %r248, %r242, %r260;\n\
    dp4a.u32.s32        %r262, %r247, %r243, %r261;\n\
    dp4a.u32.s32        %r263, %r246, %r244, %r262;\n\
    dp4a.u32.s32        %r264, %r241, %r245, %r263;\n\
    mov.b32             %f113, %r264;\n\
    sub.rn.f32          %f114, %f113, 0f4B400000;\n\
    mul.rn.f32          %f115, %f112, %f114;\n\
    fma.rn.f32          %f116, %f108, %f110, %f115;\n\
    fma.rn.f32          %f117, %f106, %f116, %f73;\n\
    fma.rn.f32          %f73, %f97, %f105, %f117;\n\
\n\
    // reduce and store\n\
    shr.u32             %r265, %r5, 5;\n\
    and.b32             %r266, %r5, 31;\n\
    setp.eq.u32         %p12, %r266, 0;\n\
    selp.u32            %r267, %r265, 1, %p12;\n\
    shfl.sync.bfly.b32  %f118, %f73, 16, 31, 0xFFFFFFFF;\n\
    add.rn.f32          %f119, %f73, %f118;\n\
    shfl.sync.bfly.b32  %f120, %f119, 8, 31, 0xFFFFFFFF;\n\
    add.rn.f32          %f121, %f119, %f120;\n\
    shfl.sync.bfly.b32  %f122, %f121, 4, 31, 0xFFFFFFFF;\n\
    add.rn.f32          %f123, %f121, %f122;\n\
    shfl.sync.bfly.b32  %f124, %f123, 2, 31, 0xFFFFFFFF;\n\
    add.rn.f32          %f125, %f123, %f124;\n\
    shfl.sync.bfly.b32  %f126, %f125, 1, 31, 0xFFFFFFFF;\n\
    add.rn.f32          %f127, %f125, %f126;\n\
    setp.lt.u32         %p13, %r267, 1;\n\
    @!%p13 bra          $skip_2;\n\
    add.u32             %r268, %r124, %r267;\n\
    cvt.u64.u32         %rd16, %r268;\n\
    shl.b64             %rd17, %rd16, 2;\n\
    add.u64             %rd18, %rd1, %rd17;\n\
    st.global.f32       [%rd18], %f127;\n\
\n\
$skip_2:\n\
    add.u32             %r124, %r124, %r7;\n\
    setp.lt.u32         %p14, %r124, 14336;\n\
    @%p14 bra           $row_loop;\n\
\n\
$row_done:\n\
    ret;\n\
}\n\
";
static const ptxgen_param llama_stream_gemv_q4k_k4096_n14336_m1_w12_r1_params[] = {
    { "y", PTXGEN_PARAM_POINTER, PTXGEN_PARAM_OUT, PTXGEN_F32, 57344, "m*n*4", 4 },
    { "w", PTXGEN_PARAM_POINTER, PTXGEN_PARAM_IN, PTXGEN_Q4_K, 33030144, "n*k/256*144", 16 },
    { "x", PTXGEN_PARAM_POINTER, PTXGEN_PARAM_IN, PTXGEN_F32, 16384, "m*k*4", 16 },
};
static const ptxgen_config llama_stream_gemv_q4k_k4096_n14336_m1_w12_r1_config[] = {
    { "weights", 6, 0, "q4_k", 0, 0, 0, 1 },
    { "k", 4096, 0, NULL, 0, 0, 0, 1 },
    { "n", 14336, 0, NULL, 0, 0, 0, 1 },
    { "m", 1, 0, NULL, 0, 0, 0, 1 },
    { "rows", 0, 0, "fixed", 0, 0, 0, 1 },
    { "num_warps", 12, 0, NULL, 0, 0, 0, 1 },
    { "rows_per_warp", 1, 0, NULL, 0, 0, 0, 1 },
    { "passes", 0, 0, NULL, 0, 0, 0, 1 },
    { "scaled", 0, 0, "none", 0, 0, 0, 1 },
    { "bias", 0, 0, "none", 0, 0, 0, 1 },
    { "scale", 0, 0, NULL, 0, 0, 0, 1 },
    { "residual", 0, 0, "none", 0, 0, 0, 1 },
    { "norm", 0, 0, "none", 0, 0, 0, 1 },
    { "epsilon", 0, 1e-5, NULL, 0, 0, 0, 1 },
    { "softcap", 0, 0, NULL, 0, 0, 0, 1 },
    { "epilogue", 0, 0, "none", 0, 0, 0, 1 },
    { "times", 0, 0, "none", 0, 0, 0, 1 },
    { "next", 0, 0, NULL, 0, 0, 0, 1 },
};
const ptxgen_kernel llama_stream_gemv_q4k_k4096_n14336_m1_w12_r1 = {
    "stream_gemv_q4k_k4096_n14336_m1_w12_r1", "stream_gemv_q4k_k4096_n14336_m1_w12_r1",
    llama_stream_gemv_q4k_k4096_n14336_m1_w12_r1_ptx, 18846, UINT64_C(0x97a2f2d26dfc07dc),
    "stream_gemv", PTXGEN_GEMV, PTXGEN_Q4_K, PTXGEN_F32, PTXGEN_Q8_1,
    80, 70, 0, 0, /* sm, isa, overlaps, specific */
    llama_stream_gemv_q4k_k4096_n14336_m1_w12_r1_params, 3,
    { 384, 1, 1 }, { 0, 0, 0 }, llama_grid_0, /* block, grid, grid_at */
    0, 5120, NULL, 0, /* shared_static, shared_dynamic, shared_at, workspace */
    4096, 14336, 1, /* k, n, m */
    12, 0, 0, 0, 0, /* num_warps, head_dim, num_heads, num_kv_heads, max_seq_len */
    0, 0, /* dynamic_dims, seq_len_indirect */
    llama_stream_gemv_q4k_k4096_n14336_m1_w12_r1_config, 18,
    0, 0, /* registers, blocks_per_sm */
    20, /* preference */
    NULL, 0, 0, /* chosen_by, chosen_f32, chosen_q8 */
};

static const char llama_mma_gemm_f16_f16_k4096_n4096_m8_s2_ptx[] = "\
// mma_gemm_f16  weights=f16 k=4096 n=4096 m=8 stages=2  y[m,n] = factors[m] x[m,k] W[n,k]^T\n\
// ptxgen 0.1.0  block 256  grid 32, 1\n\
// from kernels.ini:29 [mma_gemm_f16]\n\
.version 7.0\n\
.target sm_80\n\
.address_size 64\n\
\n\
.extern .shared .align 16 .b32 tiles[];\n\
\n\
.visible .entry mma_gemm_f16_f16_k4096_n4096_m8_s2(\n\
    .param .u64 y,\n\
    .param .u64 w,\n\
    .param .u64 x,\n\
    .param .u64 factors)\n\
.reqntid 256, 1, 1\n\
.maxnreg 255\n\
{\n\
    .reg .pred  %p<14>;\n\
    .reg .b32   %r<172>;\n\
    .reg .f32   %f<14>;\n\
    .reg .b64   %rd<30>;\n\
\n\
    ld.param.u64        %rd1, [y];\n\
    ld.param.u64        %rd2, [w];\n\
    ld.param.u64        %rd3, [x];\n\
    ld.param.u64        %rd4, [factors];\n\
    mov.u32             %r1, %ctaid.x;\n\
    mov.u32             %r2, %ctaid.y;\n\
    mov.u32             %r3, %tid.x;\n\
    shr.u32             %r4, %r3, 5;                            // warp\n\
    and.b32             %r5, %r3, 31;                           // lane\n\
    mul.lo.u32          %r6, %r1, 128;                          // first column\n\
    mul.lo.u32          %r7, %r2, 8;                            // first row\n\
\n\
    // multiply\n\
    shr.u32             %r8, %r3, 1;                            // row of the tile\n\
    mov.u32             %r9, tiles;                             // tiles\n\
    add.u32             %r10, %r9, 2048;\n\
    add.u32             %r11, %r10, 16384;\n\
    and.b32             %r12, %r3, 1;                           // half\n\
    shr.u32             %r13, %r3, 1;                           // row of the tile\n\
    add.u32             %r14, %r6, %r13;\n\
    min.u32             %r15, %r14, 4095;\n\
    mad.wide.u32        %rd5, %r15, 8192, %rd2;                 // &w[row]\n\
    mad.lo.u32          %r16, %r8, 128, %r11;\n\
    mul.lo.u32          %r17, %r12, 2;\n\
    shr.u32             %r18, %r8, 1;\n\
    and.b32             %r19, %r18, 3;\n\
    xor.b32             %r20, %r17, %r19;\n\
    mad.lo.u32          %r21, %r20, 16, %r10;\n\
    mad.lo.u32          %r22, %r8, 64, %r21;\n\
    mad.lo.u32          %r23, %r12, 2, 1;\n\
    shr.u32             %r24, %r8, 1;\n\
    and.b32             %r25, %r24, 3;\n\
    xor.b32             %r26, %r23, %r25;\n\
    mad.lo.u32          %r27, %r26, 16, %r10;\n\
    mad.lo.u32          %r28, %r8, 64, %r27;\n\
    mov.u32             %r29, 0;\n\
    setp.lt.u32         %p1, %r3, 64;\n\
    shr.u32             %r30, %r3, 2;\n\
    and.b32             %r31, %r3, 3;\n\
    shr.u32             %r32, %r30, 1;\n\
    and.b32             %r33, %r32, 3;\n\
    xor.b32             %r34, %r31, %r33;\n\
    mov.u32             %r35, tiles;                            // tiles\n\
    mad.lo.u32          %r36, %r34, 16, %r35;\n\
    mad.lo.u32          %r37, %r30, 64, %r36;\n\
    mul.lo.u32          %r38, %r31, 8;\n\
    min.u32             %r39, %r30, 15;\n\
    add.u32             %r40, %r7, %r39;\n\
    min.u32             %r41, %r40, 7;\n\
    mad.wide.u32        %rd6, %r41, 8192, %rd3;\n\
    mad.wide.u32        %rd7, %r38, 2, %rd6;\n\
    mov.u32             %r42, 0;\n\
    mov.u32             %r43, 0;\n\
    mov.u32             %r44, 0;\n\
    mov.u32             %r45, 0;\n\
    shr.u32             %r46, %r4, 3;\n\
    mul.lo.u32          %r47, %r46, 16;\n\
    and.b32             %r48, %r5, 15;\n\
    add.u32             %r49, %r47, %r48;\n\
    shr.u32             %r50, %r5, 3;\n\
    shr.u32             %r51, %r50, 1;\n\
    shr.u32             %r52, %r49, 1;\n\
    and.b32             %r53, %r52, 3;\n\
    xor.b32             %r54, %r51, %r53;\n\
    mov.u32             %r55, tiles;                            // tiles\n\
    mad.lo.u32          %r56, %r54, 16, %r55;\n\
    mad.lo.u32          %r57, %r49, 64, %r56;\n\
    and.b32             %r58, %r4, 7;\n\
    mul.lo.u32          %r59, %r58, 16;\n\
    shr.u32             %r60, %r50, 1;\n\
    and.b32             %r61, %r5, 7;\n\
    mad.lo.u32          %r62, %r60, 8, %r61;\n\
    add.u32             %r63, %r59, %r62;\n\
    and.b32             %r64, %r50, 1;\n\
    shr.u32             %r65, %r63, 1;\n\
    and.b32             %r66, %r65, 3;\n\
    xor.b32             %r67, %r64, %r66;\n\
    mad.lo.u32          %r68, %r67, 16, %r10;\n\
    mad.lo.u32          %r69, %r63, 64, %r68;\n\
    shr.u32             %r70, %r50, 1;\n\
    add.u32             %r71, %r70, 2;\n\
    shr.u32             %r72, %r49, 1;\n\
    and.b32             %r73, %r72, 3;\n\
    xor.b32             %r74, %r71, %r73;\n\
    mov.u32             %r75, tiles;                            // tiles\n\
    mad.lo.u32          %r76, %r74, 16, %r75;\n\
    mad.lo.u32          %r77, %r49, 64, %r76;\n\
    and.b32             %r78, %r50, 1;\n\
    add.u32             %r79, %r78, 2;\n\
    shr.u32             %r80, %r63, 1;\n\
    and.b32             %r81, %r80, 3;\n\
    xor.b32             %r82, %r79, %r81;\n\
    mad.lo.u32          %r83, %r82, 16, %r10;\n\
    mad.lo.u32          %r84, %r63, 64, %r83;\n\
    mov.f32             %f1, 0f00000000;\n\
    mov.f32             %f2, 0f00000000;\n\
    mov.f32             %f3, 0f00000000;\n\
    mov.f32             %f4, 0f00000000;\n\
    mov.f32             %f5, 0f00000000;\n\
    mov.f32             %f6, 0f00000000;\n\
    mov.f32             %f7, 0f00000000;\n\
    mov.f32             %f8, 0f00000000;\n\
    mul.lo.u32          %r85, %r12, 16;\n\
    cvt.u64.u32         %rd8, %r85;\n\
    add.u64             %rd9, %rd5, %rd8;\n\
    add.u32             %r86, %r16, %r29;\n\
    add.u32             %r87, %r86, %r85;\n\
    cp.async.cg.shared.global [%r87], [%rd9], 16;\n\
    cp.async.cg.shared.global [%r87+32], [%rd9+32], 16;\n\
    cp.async.cg.shared.global [%r87+64], [%rd9+64], 16;\n\
    cp.async.cg.shared.global [%r87+96], [%rd9+96], 16;\n\
    add.u64             %rd5, %rd5, 128;\n\
    add.u32             %r88, %r29, 16384;\n\
    setp.eq.u32         %p2, %r88, 32768;\n\
    selp.u32            %r29, 0, %r88, %p2;\n\
    cp.async.commit_group;\n\
    @!%p1 bra           $skip;\n\
    ld.global.nc.v4.u32 {%r89, %r90, %r91, %r92}, [%rd7];\n\
    mov.u32             %r42, %r89;\n\
    mov.u32             %r43, %r90;\n\
    mov.u32             %r44, %r91;\n\
    mov.u32             %r45, %r92;\n\
\n\
$skip:\n\
    mov.u32             %r93, 0;                                // chunk\n\
\n\
$chunk_loop:                                                    // 32 weights a lane\n\
    .pragma \"nounroll\";\n\
    cp.async.wait_group 0;\n\
    bar.warp.sync       0xFFFFFFFF;\n\
    add.u32             %r94, %r93, 1;\n\
    setp.lt.u32         %p3, %r94, 64;\n\
    @!%p3 bra           $skip_2;\n\
    mul.lo.u32          %r95, %r12, 16;\n\
    cvt.u64.u32         %rd10, %r95;\n\
    add.u64             %rd11, %rd5, %rd10;\n\
    add.u32             %r96, %r16, %r29;\n\
    add.u32             %r97, %r96, %r95;\n\
    cp.async.cg.shared.global [%r97], [%rd11], 16;\n\
    cp.async.cg.shared.global [%r97+32], [%rd11+32], 16;\n\
    cp.async.cg.shared.global [%r97+64], [%rd11+64], 16;\n\
    cp.async.cg.shared.global [%r97+96], [%rd11+96], 16;\n\
\n\
$skip_2:\n\
    add.u64             %rd5, %rd5, 128;\n\
    add.u32             %r98, %r29, 16384;\n\
    setp.eq.u32         %p4, %r98, 32768;\n\
    selp.u32            %r29, 0, %r98, %p4;\n\
    cp.async.commit_group;\n\
    add.u32             %r99, %r16, %r29;                       // the chunk's row\n\
    setp.eq.u32         %p5, %r93, 63;\n\
    selp.u64            %rd12, 0, 64, %p5;\n\
    @!%p1 bra           $skip_3;\n\
    st.shared.v4.u32    [%r37], {%r42, %r43, %r44, %r45};\n\
\n\
$skip_3:\n\
    mad.lo.u32          %r100, %r12, 32, %r99;\n\
    ld.shared.v4.u32    {%r101, %r102, %r103, %r104}, [%r100+16];\n\
    ld.shared.v4.u32    {%r105, %r106, %r107, %r108}, [%r100];\n\
    st.shared.v4.u32    [%r22], {%r105, %r106, %r107, %r108};\n\
    st.shared.v4.u32    [%r28], {%r101, %r102, %r103, %r104};\n\
    add.u64             %rd7, %rd7, 64;\n\
    @!%p1 bra           $skip_4;\n\
    ld.global.nc.v4.u32 {%r109, %r110, %r111, %r112}, [%rd7];\n\
    mov.u32             %r42, %r109;\n\
    mov.u32             %r43, %r110;\n\
    mov.u32             %r44, %r111;\n\
    mov.u32             %r45, %r112;\n\
\n\
$skip_4:\n\
    bar.sync            0;\n\
    ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r113, %r114, %r115, %r116}, [%r57];\
\n\
    ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r117, %r118, %r119, %r120}, [%r69];\
\n\
"
"\
    mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%f1, %f2, %f3, %f4}, {%r113, %r114, %r115, %r116}, {%r117, %r118}, {%f1, %f2, %f3, %f4};\
\n\
    mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%f5, %f6, %f7, %f8}, {%r113, %r114, %r115, %r116}, {%r119, %r120}, {%f5, %f6, %f7, %f8};\
\n\
    ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r121, %r122, %r123, %r124}, [%r77];\
\n\
    ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r125, %r126, %r127, %r128}, [%r84];\
\n\
    mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%f1, %f2, %f3, %f4}, {%r121, %r122, %r123, %r124}, {%r125, %r126}, {%f1, %f2, %f3, %f4};\
\n\
    mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%f5, %f6, %f7, %f8}, {%r121, %r122, %r123, %r124}, {%r127, %r128}, {%f5, %f6, %f7, %f8};\
\n\
    @!%p1 bra           $skip_5;\n\
    st.shared.v4.u32    [%r37+1024], {%r42, %r43, %r44, %r45};\n\
\n\
$skip_5:\n\
    mad.lo.u32          %r129, %r12, 32, %r99;\n\
    ld.shared.v4.u32    {%r130, %r131, %r132, %r133}, [%r129+80];\n\
    ld.shared.v4.u32    {%r134, %r135, %r136, %r137}, [%r129+64];\n\
    st.shared.v4.u32    [%r22+8192], {%r134, %r135, %r136, %r137};\n\
    st.shared.v4.u32    [%r28+8192], {%r130, %r131, %r132, %r133};\n\
    add.u64             %rd7, %rd7, %rd12;\n\
    @!%p1 bra           $skip_6;\n\
    ld.global.nc.v4.u32 {%r138, %r139, %r140, %r141}, [%rd7];\n\
    mov.u32             %r42, %r138;\n\
    mov.u32             %r43, %r139;\n\
    mov.u32             %r44, %r140;\n\
    mov.u32             %r45, %r141;\n\
\n\
$skip_6:\n\
    bar.sync            0;\n\
    ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r142, %r143, %r144, %r145}, [%r57+1024];\
\n\
    ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r146, %r147, %r148, %r149}, [%r69+8192];\
\n\
    mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%f1, %f2, %f3, %f4}, {%r142, %r143, %r144, %r145}, {%r146, %r147}, {%f1, %f2, %f3, %f4};\
\n\
    mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%f5, %f6, %f7, %f8}, {%r142, %r143, %r144, %r145}, {%r148, %r149}, {%f5, %f6, %f7, %f8};\
\n\
    ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r150, %r151, %r152, %r153}, [%r77+1024];\
\n\
    ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r154, %r155, %r156, %r157}, [%r84+8192];\
\n\
    mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%f1, %f2, %f3, %f4}, {%r150, %r151, %r152, %r153}, {%r154, %r155}, {%f1, %f2, %f3, %f4};\
\n\
    mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%f5, %f6, %f7, %f8}, {%r150, %r151, %r152, %r153}, {%r156, %r157}, {%f5, %f6, %f7, %f8};\
\n\
    add.u32             %r93, %r93, 1;\n\
    setp.lt.u32         %p6, %r93, 64;\n\
    @%p6 bra            $chunk_loop;\n\
\n\
    // store\n\
    shr.u32             %r158, %r4, 3;\n\
    mul.lo.u32          %r159, %r158, 16;\n\
    shr.u32             %r160, %r5, 2;\n\
    add.u32             %r161, %r159, %r160;\n\
    add.u32             %r162, %r7, %r161;\n\
    and.b32             %r163, %r4, 7;\n\
    mul.lo.u32          %r164, %r163, 16;\n\
    and.b32             %r165, %r5, 3;\n\
    mul.lo.u32          %r166, %r165, 2;\n\
    add.u32             %r167, %r164, %r166;\n\
    add.u32             %r168, %r6, %r167;\n\
    setp.lt.u32         %p7, %r161, 8;\n\
    setp.lt.u32         %p8, %r162, 8;\n\
    and.pred            %p9, %p7, %p8;\n\
    @!%p9 bra           $skip_11;\n\
    mad.wide.u32        %rd13, %r162, 4, %rd4;\n\
    ld.global.nc.f32    %f9, [%rd13];\n\
    setp.lt.u32         %p10, %r168, 4096;\n\
    @!%p10 bra          $skip_7;\n\
    mul.rn.f32          %f10, %f1, %f9;\n\
    cvt.u64.u32         %rd14, %r168;\n\
    mad.wide.u32        %rd15, %r162, 4096, %rd14;\n\
    shl.b64             %rd16, %rd15, 2;\n\
    add.u64             %rd17, %rd1, %rd16;\n\
    st.global.f32       [%rd17], %f10;\n\
\n\
$skip_7:\n\
    add.u32             %r169, %r168, 1;\n\
    setp.lt.u32         %p11, %r169, 4096;\n\
    @!%p11 bra          $skip_8;\n\
    mul.rn.f32          %f11, %f2, %f9;\n\
    cvt.u64.u32         %rd18, %r169;\n\
    mad.wide.u32        %rd19, %r162, 4096, %rd18;\n\
    shl.b64             %rd20, %rd19, 2;\n\
    add.u64             %rd21, %rd1, %rd20;\n\
    st.global.f32       [%rd21], %f11;\n\
\n\
$skip_8:\n\
    add.u32             %r170, %r168, 8;\n\
    setp.lt.u32         %p12, %r170, 4096;\n\
    @!%p12 bra          $skip_9;\n\
    mul.rn.f32          %f12, %f5, %f9;\n\
    cvt.u64.u32         %rd22, %r170;\n\
    mad.wide.u32        %rd23, %r162, 4096, %rd22;\n\
    shl.b64             %rd24, %rd23, 2;\n\
    add.u64             %rd25, %rd1, %rd24;\n\
    st.global.f32       [%rd25], %f12;\n\
\n\
$skip_9:\n\
    add.u32             %r171, %r168, 9;\n\
    setp.lt.u32         %p13, %r171, 4096;\n\
    @!%p13 bra          $skip_10;\n\
    mul.rn.f32          %f13, %f6, %f9;\n\
    cvt.u64.u32         %rd26, %r171;\n\
    mad.wide.u32        %rd27, %r162, 4096, %rd26;\n\
    shl.b64             %rd28, %rd27, 2;\n\
    add.u64             %rd29, %rd1, %rd28;\n\
    st.global.f32       [%rd29], %f13;\n\
\n\
$skip_10:\n\
\n\
$skip_11:\n\
    ret;\n\
}\n\
";
static const ptxgen_param llama_mma_gemm_f16_f16_k4096_n4096_m8_s2_params[] = {
    { "y", PTXGEN_PARAM_POINTER, PTXGEN_PARAM_OUT, PTXGEN_F32, 131072, "m*n*4", 4 },
    { "w", PTXGEN_PARAM_POINTER, PTXGEN_PARAM_IN, PTXGEN_F16, 33554432, "n*k*2", 16 },
    { "x", PTXGEN_PARAM_POINTER, PTXGEN_PARAM_IN, PTXGEN_F16, 65536, "m*k*2", 16 },
    { "factors", PTXGEN_PARAM_POINTER, PTXGEN_PARAM_IN, PTXGEN_F32, 32, "m*4", 4 },
};
static const ptxgen_config llama_mma_gemm_f16_f16_k4096_n4096_m8_s2_config[] = {
    { "weights", 1, 0, "f16", 0, 0, 0, 1 },
    { "k", 4096, 0, NULL, 0, 0, 0, 1 },
    { "n", 4096, 0, NULL, 0, 0, 0, 1 },
    { "m", 8, 0, NULL, 0, 0, 0, 1 },
    { "rows", 0, 0, "fixed", 0, 0, 0, 1 },
    { "stages", 2, 0, NULL, 0, 0, 0, 1 },
    { "splits", 0, 0, NULL, 0, 0, 0, 1 },
    { "scaled", 0, 0, "none", 0, 0, 0, 1 },
    { "bias", 0, 0, "none", 0, 0, 0, 1 },
    { "scale", 0, 0, NULL, 0, 0, 0, 1 },
    { "residual", 0, 0, "none", 0, 0, 0, 1 },
    { "softcap", 0, 0, NULL, 0, 0, 0, 1 },
    { "epilogue", 0, 0, "none", 0, 0, 0, 1 },
    { "times", 0, 0, "none", 0, 0, 0, 1 },
};
const ptxgen_kernel llama_mma_gemm_f16_f16_k4096_n4096_m8_s2 = {
    "mma_gemm_f16_f16_k4096_n4096_m8_s2", "mma_gemm_f16_f16_k4096_n4096_m8_s2",
    llama_mma_gemm_f16_f16_k4096_n4096_m8_s2_ptx, 12651, UINT64_C(0x76336749212945e2),
    "mma_gemm_f16", PTXGEN_GEMV, PTXGEN_F16, PTXGEN_F16, PTXGEN_F16,
    80, 70, 0, 0, /* sm, isa, overlaps, specific */
    llama_mma_gemm_f16_f16_k4096_n4096_m8_s2_params, 4,
    { 256, 1, 1 }, { 32, 1, 1 }, NULL, /* block, grid, grid_at */
    0, 51200, NULL, 0, /* shared_static, shared_dynamic, shared_at, workspace */
    4096, 4096, 8, /* k, n, m */
    8, 0, 0, 0, 0, /* num_warps, head_dim, num_heads, num_kv_heads, max_seq_len */
    0, 0, /* dynamic_dims, seq_len_indirect */
    llama_mma_gemm_f16_f16_k4096_n4096_m8_s2_config, 14,
    0, 0, /* registers, blocks_per_sm */
    0, /* preference */
    NULL, 0, 0, /* chosen_by, chosen_f32, chosen_q8 */
};

static const char llama_rms_norm_k4096_m1_ptx[] = "\
// rms_norm  k=4096 m=1 epsilon=1e-5  y[m,k] = rmsnorm(x[m,k]) * gamma[k], with residual also h_out = h + ...\n\
// ptxgen 0.1.0  block 1024  grid 1\n\
// from kernels.ini:36 [rms_norm]\n\
.version 7.0\n\
.target sm_80\n\
.address_size 64\n\
\n\
.visible .entry rms_norm_k4096_m1(\n\
    .param .u64 y,\n\
    .param .u64 gamma,\n\
    .param .u64 x)\n\
.reqntid 1024, 1, 1\n\
.maxnreg 64\n\
{\n\
    .reg .pred  %p<3>;\n\
    .reg .b32   %r<9>;\n\
    .reg .f32   %f<51>;\n\
    .reg .b64   %rd<10>;\n\
    .shared .align 16 .b32 sums[32];\n\
\n\
    ld.param.u64        %rd1, [y];\n\
    ld.param.u64        %rd2, [gamma];\n\
    ld.param.u64        %rd3, [x];\n\
    mov.u32             %r1, %tid.x;\n\
    mov.u32             %r2, %ctaid.x;\n\
    and.b32             %r3, %r1, 31;                           // lane\n\
    shr.u32             %r4, %r1, 5;                            // warp\n\
    mul.wide.u32        %rd4, %r1, 16;\n\
    add.u64             %rd5, %rd2, %rd4;\n\
    mul.wide.u32        %rd6, %r2, 16384;\n\
    add.u64             %rd7, %rd6, %rd4;\n\
    add.u64             %rd8, %rd3, %rd7;\n\
    add.u64             %rd9, %rd1, %rd7;\n\
    mov.f32             %f1, 0f00000000;\n\
    mov.f32             %f2, 0f00000000;\n\
    mov.f32             %f3, 0f00000000;\n\
    mov.f32             %f4, 0f00000000;\n\
    mov.f32             %f5, 0f00000000;\n\
    mov.f32             %f6, 0f00000000;\n\
    mov.f32             %f7, 0f00000000;\n\
    mov.f32             %f8, 0f00000000;\n\
    mov.f32             %f9, 0f00000000;\n\
\n\
    // load weights and h\n\
    ld.global.nc.v4.f32 {%f10, %f11, %f12, %f13}, [%rd5];\n\
    mov.f32             %f6, %f10;\n\
    mov.f32             %f7, %f11;\n\
    mov.f32             %f8, %f12;\n\
    mov.f32             %f9, %f13;\n\
\n\
    // sum of squares\n\
    ld.global.v4.f32    {%f14, %f15, %f16, %f17}, [%rd8];\n\
    fma.rn.f32          %f1, %f14, %f14, %f1;\n\
    fma.rn.f32          %f1, %f15, %f15, %f1;\n\
    fma.rn.f32          %f1, %f16, %f16, %f1;\n\
    fma.rn.f32          %f1, %f17, %f17, %f1;\n\
    mov.f32             %f2, %f14;\n\
    mov.f32             %f3, %f15;\n\
    mov.f32             %f4, %f16;\n\
    mov.f32             %f5, %f17;\n\
    shfl.sync.bfly.b32  %f18, %f1, 16, 31, 0xFFFFFFFF;\n\
    add.rn.f32          %f19, %f1, %f18;\n\
    shfl.sync.bfly.b32  %f20, %f19, 8, 31, 0xFFFFFFFF;\n\
    add.rn.f32          %f21, %f19, %f20;\n\
    shfl.sync.bfly.b32  %f22, %f21, 4, 31, 0xFFFFFFFF;\n\
    add.rn.f32          %f23, %f21, %f22;\n\
    shfl.sync.bfly.b32  %f24, %f23, 2, 31, 0xFFFFFFFF;\n\
    add.rn.f32          %f25, %f23, %f24;\n\
    shfl.sync.bfly.b32  %f26, %f25, 1, 31, 0xFFFFFFFF;\n\
    add.rn.f32          %f27, %f25, %f26;\n\
    mov.f32             %f28, 0f00000000;\n\
    setp.eq.u32         %p1, %r3, 0;\n\
    @!%p1 bra           $skip;\n\
    mov.u32             %r5, sums;                              // sums\n\
    mad.lo.u32          %r6, %r4, 4, %r5;\n\
    st.shared.f32       [%r6], %f27;\n\
\n\
$skip:\n\
    bar.sync            0;\n\
    setp.lt.u32         %p2, %r3, 32;\n\
    @!%p2 bra           $skip_2;\n\
    mov.u32             %r7, sums;                              // sums\n\
    mad.lo.u32          %r8, %r3, 4, %r7;\n\
    ld.shared.f32       %f28, [%r8];\n\
\n\
$skip_2:\n\
    shfl.sync.bfly.b32  %f29, %f28, 16, 31, 0xFFFFFFFF;\n\
    add.rn.f32          %f30, %f28, %f29;\n\
    shfl.sync.bfly.b32  %f31, %f30, 8, 31, 0xFFFFFFFF;\n\
    add.rn.f32          %f32, %f30, %f31;\n\
    shfl.sync.bfly.b32  %f33, %f32, 4, 31, 0xFFFFFFFF;\n\
    add.rn.f32          %f34, %f32, %f33;\n\
    shfl.sync.bfly.b32  %f35, %f34, 2, 31, 0xFFFFFFFF;\n\
    add.rn.f32          %f36, %f34, %f35;\n\
    shfl.sync.bfly.b32  %f37, %f36, 1, 31, 0xFFFFFFFF;\n\
    add.rn.f32          %f38, %f36, %f37;\n\
    div.rn.f32          %f39, %f38, 0f45800000;\n\
    add.rn.f32          %f40, %f39, 0f3727C5AC;\n\
    rsqrt.approx.f32    %f41, %f40;\n\
    fma.rn.f32          %f42, %f39, 0f00000000, %f41;           // factor\n\
    mov.f32             %f1, 0f00000000;\n\
\n\
    // store y\n\
    mul.rn.f32          %f43, %f2, %f42;\n\
    mul.rn.f32          %f44, %f43, %f6;\n\
    mul.rn.f32          %f45, %f3, %f42;\n\
    mul.rn.f32          %f46, %f45, %f7;\n\
    mul.rn.f32          %f47, %f4, %f42;\n\
    mul.rn.f32          %f48, %f47, %f8;\n\
    mul.rn.f32          %f49, %f5, %f42;\n\
    mul.rn.f32          %f50, %f49, %f9;\n\
    st.global.v4.f32    [%rd9], {%f44, %f46, %f48, %f50};\n\
    ret;\n\
}\n\
";
static const ptxgen_param llama_rms_norm_k4096_m1_params[] = {
    { "y", PTXGEN_PARAM_POINTER, PTXGEN_PARAM_OUT, PTXGEN_F32, 16384, "m*k*4", 16 },
    { "gamma", PTXGEN_PARAM_POINTER, PTXGEN_PARAM_IN, PTXGEN_F32, 16384, "k*max(1, num_groups)*4", 16 },
    { "x", PTXGEN_PARAM_POINTER, PTXGEN_PARAM_IN, PTXGEN_F32, 16384, "m*k*4", 16 },
};
static const ptxgen_config llama_rms_norm_k4096_m1_config[] = {
    { "k", 4096, 0, NULL, 0, 0, 0, 1 },
    { "m", 1, 0, NULL, 0, 0, 0, 1 },
    { "residual", 0, 0, "none", 0, 0, 0, 1 },
    { "epsilon", 0, 1e-5, NULL, 0, 0, 0, 1 },
    { "scale", 0, 0, NULL, 0, 0, 0, 1 },
    { "gamma", 0, 0, "input", 0, 0, 0, 1 },
    { "out_scale", 0, 0, "none", 0, 0, 0, 1 },
    { "num_groups", 0, 0, NULL, 0, 0, 0, 1 },
};
const ptxgen_kernel llama_rms_norm_k4096_m1 = {
    "rms_norm_k4096_m1", "rms_norm_k4096_m1",
    llama_rms_norm_k4096_m1_ptx, 4223, UINT64_C(0xba0b1401a8a6e591),
    "rms_norm", PTXGEN_RMS_NORM, PTXGEN_NONE, PTXGEN_F32, PTXGEN_F32,
    80, 70, 0, 0, /* sm, isa, overlaps, specific */
    llama_rms_norm_k4096_m1_params, 3,
    { 1024, 1, 1 }, { 1, 1, 1 }, NULL, /* block, grid, grid_at */
    128, 0, NULL, 0, /* shared_static, shared_dynamic, shared_at, workspace */
    4096, 0, 1, /* k, n, m */
    32, 0, 0, 0, 0, /* num_warps, head_dim, num_heads, num_kv_heads, max_seq_len */
    0, 0, /* dynamic_dims, seq_len_indirect */
    llama_rms_norm_k4096_m1_config, 8,
    0, 0, /* registers, blocks_per_sm */
    0, /* preference */
    NULL, 0, 0, /* chosen_by, chosen_f32, chosen_q8 */
};

static const char llama_incremental_attention_d128_h32_kv8_s8192_ptx[] = "\
// incremental_attention  head_dim=128 num_heads=32 num_kv_heads=8 max_seq_len=8192  o[h] = softmax(q[h] K' scale) V\n\
// ptxgen 0.1.0  block 32  grid 32\n\
// from kernels.ini:39 [incremental_attention]\n\
.version 7.0\n\
.target sm_80\n\
.address_size 64\n\
\n\
.visible .entry incremental_attention_d128_h32_kv8_s8192(\n\
    .param .u64 o,\n\
    .param .u64 q,\n\
    .param .u64 k,\n\
    .param .u64 v,\n\
    .param .u32 seq_len)\n\
.reqntid 32, 1, 1\n\
.maxnreg 96\n\
{\n\
    .reg .pred  %p<8>;\n\
    .reg .b32   %r<14>;\n\
    .reg .f32   %f<289>;\n\
    .reg .b64   %rd<20>;\n\
\n\
    ld.param.u64        %rd1, [o];\n\
    ld.param.u64        %rd2, [q];\n\
    ld.param.u64        %rd3, [k];\n\
    ld.param.u64        %rd4, [v];\n\
    ld.param.u32        %r1, [seq_len];\n\
    mov.u32             %r2, %tid.x;\n\
    mov.u32             %r3, %ctaid.x;                          // head\n\
\n\
    // load q\n\
    and.b32             %r4, %r2, 7;                            // piece\n\
    shr.u32             %r5, %r2, 3;                            // group\n\
    mad.wide.u32        %rd5, %r3, 512, %rd2;\n\
    mad.wide.u32        %rd6, %r4, 16, %rd5;\n\
    ld.global.nc.v4.f32 {%f1, %f2, %f3, %f4}, [%rd6];\n\
    mul.rn.f32          %f5, %f1, 0f3E0293EE;\n\
    mul.rn.f32          %f6, %f2, 0f3E0293EE;\n\
    mul.rn.f32          %f7, %f3, 0f3E0293EE;\n\
    mul.rn.f32          %f8, %f4, 0f3E0293EE;\n\
    ld.global.nc.v4.f32 {%f9, %f10, %f11, %f12}, [%rd6+128];\n\
    mul.rn.f32          %f13, %f9, 0f3E0293EE;\n\
    mul.rn.f32          %f14, %f10, 0f3E0293EE;\n\
    mul.rn.f32          %f15, %f11, 0f3E0293EE;\n\
    mul.rn.f32          %f16, %f12, 0f3E0293EE;\n\
    ld.global.nc.v4.f32 {%f17, %f18, %f19, %f20}, [%rd6+256];\n\
    mul.rn.f32          %f21, %f17, 0f3E0293EE;\n\
    mul.rn.f32          %f22, %f18, 0f3E0293EE;\n\
    mul.rn.f32          %f23, %f19, 0f3E0293EE;\n\
    mul.rn.f32          %f24, %f20, 0f3E0293EE;\n\
    ld.global.nc.v4.f32 {%f25, %f26, %f27, %f28}, [%rd6+384];\n\
    mul.rn.f32          %f29, %f25, 0f3E0293EE;\n\
    mul.rn.f32          %f30, %f26, 0f3E0293EE;\n\
    mul.rn.f32          %f31, %f27, 0f3E0293EE;\n\
    mul.rn.f32          %f32, %f28, 0f3E0293EE;\n\
    mov.f32             %f33, 0fFF7FFFFF;\n\
    mov.f32             %f34, 0f00000000;\n\
    mov.f32             %f35, 0f00000000;\n\
    mov.f32             %f36, 0f00000000;\n\
    mov.f32             %f37, 0f00000000;\n\
    mov.f32             %f38, 0f00000000;\n\
    mov.f32             %f39, 0f00000000;\n\
    mov.f32             %f40, 0f00000000;\n\
    mov.f32             %f41, 0f00000000;\n\
    mov.f32             %f42, 0f00000000;\n\
    mov.f32             %f43, 0f00000000;\n\
    mov.f32             %f44, 0f00000000;\n\
    mov.f32             %f45, 0f00000000;\n\
    mov.f32             %f46, 0f00000000;\n\
    mov.f32             %f47, 0f00000000;\n\
    mov.f32             %f48, 0f00000000;\n\
    mov.f32             %f49, 0f00000000;\n\
    mov.f32             %f50, 0f00000000;\n\
    shr.u32             %r6, %r3, 2;                            // kv_head\n\
    mul.wide.u32        %rd7, %r6, 8192;\n\
    mad.lo.u64          %rd8, %rd7, 512, %rd4;\n\
    mul.wide.u32        %rd9, %r4, 16;\n\
    mul.wide.u32        %rd10, %r6, 8192;\n\
    mad.lo.u64          %rd11, %rd10, 512, %rd3;\n\
    min.u32             %r7, %r1, 8192;                         // seq_len\n\
    shr.u32             %r8, %r7, 3;\n\
    mov.u64             %rd12, 0;\n\
    mov.u64             %rd13, 0;\n\
    add.u64             %rd14, %rd8, %rd9;\n\
    mul.wide.u32        %rd15, %r5, 512;\n\
    add.u64             %rd16, %rd11, %rd9;\n\
    add.u64             %rd12, %rd16, %rd15;\n\
    add.u64             %rd13, %rd14, %rd15;\n\
\n\
    // attend: several positions per group of lanes\n\
    mov.u32             %r9, 0;                                 // turn\n\
    setp.lt.u32         %p1, %r9, %r8;\n\
    @!%p1 bra           $turn_done;\n\
\n\
$turn_loop:                                                     // 64 elements a lane\n\
    .pragma \"nounroll\";\n\
    mov.f32             %f51, %f33;\n\
    ld.global.nc.v4.f32 {%f52, %f53, %f54, %f55}, [%rd12+384];\n\
    ld.global.nc.v4.f32 {%f56, %f57, %f58, %f59}, [%rd12+256];\n\
    ld.global.nc.v4.f32 {%f60, %f61, %f62, %f63}, [%rd12+128];\n\
    ld.global.nc.v4.f32 {%f64, %f65, %f66, %f67}, [%rd12];\n\
    mul.rn.f32          %f68, %f5, %f64;\n\
    fma.rn.f32          %f69, %f6, %f65, %f68;\n\
    fma.rn.f32          %f70, %f7, %f66, %f69;\n\
    fma.rn.f32          %f71, %f8, %f67, %f70;\n\
    fma.rn.f32          %f72, %f13, %f60, %f71;\n\
    fma.rn.f32          %f73, %f14, %f61, %f72;\n\
    fma.rn.f32          %f74, %f15, %f62, %f73;\n\
    fma.rn.f32          %f75, %f16, %f63, %f74;\n\
    fma.rn.f32          %f76, %f21, %f56, %f75;\n\
    fma.rn.f32          %f77, %f22, %f57, %f76;\n\
    fma.rn.f32          %f78, %f23, %f58, %f77;\n\
    fma.rn.f32          %f79, %f24, %f59, %f78;\n\
    fma.rn.f32          %f80, %f29, %f52, %f79;\n\
    fma.rn.f32          %f81, %f30, %f53, %f80;\n\
    fma.rn.f32          %f82, %f31, %f54, %f81;\n\
    fma.rn.f32          %f83, %f32, %f55, %f82;\n\
    shfl.sync.bfly.b32  %f84, %f83, 4, 31, 0xFFFFFFFF;\n\
    add.rn.f32          %f85, %f83, %f84;\n\
    shfl.sync.bfly.b32  %f86, %f85, 2, 31, 0xFFFFFFFF;\n\
    add.rn.f32          %f87, %f85, %f86;\n\
    shfl.sync.bfly.b32  %f88, %f87, 1, 31, 0xFFFFFFFF;\n\
    add.rn.f32          %f89, %f87, %f88;\n\
    max.f32             %f90, %f51, %f89;\n\
    ld.global.nc.v4.f32 {%f91, %f92, %f93, %f94}, [%rd12+2432];\n\
    ld.global.nc.v4.f32 {%f95, %f96, %f97, %f98}, [%rd12+2304];\n\
    ld.global.nc.v4.f32 {%f99, %f100, %f101, %f102}, [%rd12+2176];\n\
    ld.global.nc.v4.f32 {%f103, %f104, %f105, %f106}, [%rd12+2048];\n\
    mul.rn.f32          %f107, %f5, %f103;\n\
    fma.rn.f32          %f108, %f6, %f104, %f107;\n\
    fma.rn.f32          %f109, %f7, %f105, %f108;\n\
    fma.rn.f32          %f110, %f8, %f106, %f109;\n\
    fma.rn.f32          %f111, %f13, %f99, %f110;\n\
    fma.rn.f32          %f112, %f14, %f100, %f111;\n\
    fma.rn.f32          %f113, %f15, %f101, %f112;\n\
    fma.rn.f32          %f114, %f16, %f102, %f113;\n\
    fma.rn.f32          %f115, %f21, %f95, %f114;\n\
    fma.rn.f32          %f116, %f22, %f96, %f115;\n\
    fma.rn.f32          %f117, %f23, %f97, %f116;\n\
    fma.rn.f32          %f118, %f24, %f98, %f117;\n\
    fma.rn.f32          %f119, %f29, %f91, %f118;\n\
    fma.rn.f32          %f120, %f30, %f92, %f119;\n\
    fma.rn.f32          %f121, %f31, %f93, %f120;\n\
    fma.rn.f32          %f122, %f32, %f94, %f121;\n\
    shfl.sync.bfly.b32  %f123, %f122, 4, 31, 0xFFFFFFFF;\n\
    add.rn.f32          %f124, %f122, %f123;\n\
    shfl.sync.bfly.b32  %f125, %f124, 2, 31, 0xFFFFFFFF;\n\
    add.rn.f32          %f126, %f124, %f125;\n\
    shfl.sync.bfly.b32  %f127, %f126, 1, 31, 0xFFFFFFFF;\n\
    add.rn.f32          %f128, %f126, %f127;\n\
    max.f32             %f129, %f90, %f128;\n\
    ld.global.nc.v4.f32 {%f130, %f131, %f132, %f133}, [%rd13];\n\
    ld.global.nc.v4.f32 {%f134, %f135, %f136, %f137}, [%rd13+128];\n\
    ld.global.nc.v4.f32 {%f138, %f139, %f140, %f141}, [%rd13+256];\n\
    ld.global.nc.v4.f32 {%f142, %f143, %f144, %f145}, [%rd13+384];\n\
    ld.global.nc.v4.f32 {%f146, %f147, %f148, %f149}, [%rd13+2048];\n\
    ld.global.nc.v4.f32 {%f150, %f151, %f152, %f153}, [%rd13+2176];\n\
    ld.global.nc.v4.f32 {%f154, %f155, %f156, %f157}, [%rd13+2304];\n\
    ld.global.nc.v4.f32 {%f158, %f159, %f160, %f161}, [%rd13+2432];\n\
    mov.f32             %f33, %f129;\n\
    sub.rn.f32          %f162, %f51, %f129;\n\
    ex2.approx.ftz.f32  %f163, %f162;\n\
    mul.rn.f32          %f34, %f34, %f163;\n\
    mul.rn.f32          %f35, %f35, %f163;\n\
    mul.rn.f32          %f36, %f36, %f163;\n\
    mul.rn.f32          %f37, %f37, %f163;\n\
    mul.rn.f32          %f38, %f38, %f163;\n\
    mul.rn.f32          %f39, %f39, %f163;\n\
    mul.rn.f32          %f40, %f40, %f163;\n\
    mul.rn.f32          %f41, %f41, %f163;\n\
    mul.rn.f32          %f42, %f42, %f163;\n\
    mul.rn.f32          %f43, %f43, %f163;\n\
    mul.rn.f32          %f44, %f44, %f163;\n\
    mul.rn.f32          %f45, %f45, %f163;\n\
    mul.rn.f32          %f46, %f46, %f163;\n\
    mul.rn.f32          %f47, %f47, %f163;\n\
    mul.rn.f32          %f48, %f48, %f163;\n\
    mul.rn.f32          %f49, %f49, %f163;\n\
    mul.rn.f32          %f50, %f50, %f163;\n\
"
"\
    sub.rn.f32          %f164, %f89, %f33;\n\
    ex2.approx.ftz.f32  %f165, %f164;\n\
    add.rn.f32          %f34, %f34, %f165;\n\
    fma.rn.f32          %f35, %f165, %f130, %f35;\n\
    fma.rn.f32          %f36, %f165, %f131, %f36;\n\
    fma.rn.f32          %f37, %f165, %f132, %f37;\n\
    fma.rn.f32          %f38, %f165, %f133, %f38;\n\
    fma.rn.f32          %f39, %f165, %f134, %f39;\n\
    fma.rn.f32          %f40, %f165, %f135, %f40;\n\
    fma.rn.f32          %f41, %f165, %f136, %f41;\n\
    fma.rn.f32          %f42, %f165, %f137, %f42;\n\
    fma.rn.f32          %f43, %f165, %f138, %f43;\n\
    fma.rn.f32          %f44, %f165, %f139, %f44;\n\
    fma.rn.f32          %f45, %f165, %f140, %f45;\n\
    fma.rn.f32          %f46, %f165, %f141, %f46;\n\
    fma.rn.f32          %f47, %f165, %f142, %f47;\n\
    fma.rn.f32          %f48, %f165, %f143, %f48;\n\
    fma.rn.f32          %f49, %f165, %f144, %f49;\n\
    fma.rn.f32          %f50, %f165, %f145, %f50;\n\
    sub.rn.f32          %f166, %f128, %f33;\n\
    ex2.approx.ftz.f32  %f167, %f166;\n\
    add.rn.f32          %f34, %f34, %f167;\n\
    fma.rn.f32          %f35, %f167, %f146, %f35;\n\
    fma.rn.f32          %f36, %f167, %f147, %f36;\n\
    fma.rn.f32          %f37, %f167, %f148, %f37;\n\
    fma.rn.f32          %f38, %f167, %f149, %f38;\n\
    fma.rn.f32          %f39, %f167, %f150, %f39;\n\
    fma.rn.f32          %f40, %f167, %f151, %f40;\n\
    fma.rn.f32          %f41, %f167, %f152, %f41;\n\
    fma.rn.f32          %f42, %f167, %f153, %f42;\n\
    fma.rn.f32          %f43, %f167, %f154, %f43;\n\
    fma.rn.f32          %f44, %f167, %f155, %f44;\n\
    fma.rn.f32          %f45, %f167, %f156, %f45;\n\
    fma.rn.f32          %f46, %f167, %f157, %f46;\n\
    fma.rn.f32          %f47, %f167, %f158, %f47;\n\
    fma.rn.f32          %f48, %f167, %f159, %f48;\n\
    fma.rn.f32          %f49, %f167, %f160, %f49;\n\
    fma.rn.f32          %f50, %f167, %f161, %f50;\n\
    add.u64             %rd12, %rd12, 4096;\n\
    add.u64             %rd13, %rd13, 4096;\n\
    add.u32             %r9, %r9, 1;\n\
    setp.lt.u32         %p2, %r9, %r8;\n\
    @%p2 bra            $turn_loop;\n\
\n\
$turn_done:\n\
\n\
    // attend: the remaining positions, one per group\n\
    mul.lo.u32          %r10, %r8, 8;\n\
    setp.lt.u32         %p3, %r10, %r7;\n\
    @!%p3 bra           $rest_done;\n\
\n\
$rest_loop:\n\
    .pragma \"nounroll\";\n\
    add.u32             %r11, %r10, %r5;\n\
    sub.u32             %r12, %r7, 1;\n\
    min.u32             %r13, %r11, %r12;\n\
    mul.wide.u32        %rd17, %r13, 512;\n\
    setp.le.u32         %p4, %r11, %r12;\n\
    add.u64             %rd12, %rd16, %rd17;\n\
    add.u64             %rd13, %rd14, %rd17;\n\
    mov.f32             %f168, %f33;\n\
    ld.global.nc.v4.f32 {%f169, %f170, %f171, %f172}, [%rd12+384];\n\
    ld.global.nc.v4.f32 {%f173, %f174, %f175, %f176}, [%rd12+256];\n\
    ld.global.nc.v4.f32 {%f177, %f178, %f179, %f180}, [%rd12+128];\n\
    ld.global.nc.v4.f32 {%f181, %f182, %f183, %f184}, [%rd12];\n\
    mul.rn.f32          %f185, %f5, %f181;\n\
    fma.rn.f32          %f186, %f6, %f182, %f185;\n\
    fma.rn.f32          %f187, %f7, %f183, %f186;\n\
    fma.rn.f32          %f188, %f8, %f184, %f187;\n\
    fma.rn.f32          %f189, %f13, %f177, %f188;\n\
    fma.rn.f32          %f190, %f14, %f178, %f189;\n\
    fma.rn.f32          %f191, %f15, %f179, %f190;\n\
    fma.rn.f32          %f192, %f16, %f180, %f191;\n\
    fma.rn.f32          %f193, %f21, %f173, %f192;\n\
    fma.rn.f32          %f194, %f22, %f174, %f193;\n\
    fma.rn.f32          %f195, %f23, %f175, %f194;\n\
    fma.rn.f32          %f196, %f24, %f176, %f195;\n\
    fma.rn.f32          %f197, %f29, %f169, %f196;\n\
    fma.rn.f32          %f198, %f30, %f170, %f197;\n\
    fma.rn.f32          %f199, %f31, %f171, %f198;\n\
    fma.rn.f32          %f200, %f32, %f172, %f199;\n\
    shfl.sync.bfly.b32  %f201, %f200, 4, 31, 0xFFFFFFFF;\n\
    add.rn.f32          %f202, %f200, %f201;\n\
    shfl.sync.bfly.b32  %f203, %f202, 2, 31, 0xFFFFFFFF;\n\
    add.rn.f32          %f204, %f202, %f203;\n\
    shfl.sync.bfly.b32  %f205, %f204, 1, 31, 0xFFFFFFFF;\n\
    add.rn.f32          %f206, %f204, %f205;\n\
    selp.f32            %f207, %f206, 0fFF800000, %p4;\n\
    max.f32             %f208, %f168, %f207;\n\
    ld.global.nc.v4.f32 {%f209, %f210, %f211, %f212}, [%rd13];\n\
    ld.global.nc.v4.f32 {%f213, %f214, %f215, %f216}, [%rd13+128];\n\
    ld.global.nc.v4.f32 {%f217, %f218, %f219, %f220}, [%rd13+256];\n\
    ld.global.nc.v4.f32 {%f221, %f222, %f223, %f224}, [%rd13+384];\n\
    mov.f32             %f33, %f208;\n\
    sub.rn.f32          %f225, %f168, %f208;\n\
    ex2.approx.ftz.f32  %f226, %f225;\n\
    mul.rn.f32          %f34, %f34, %f226;\n\
    mul.rn.f32          %f35, %f35, %f226;\n\
    mul.rn.f32          %f36, %f36, %f226;\n\
    mul.rn.f32          %f37, %f37, %f226;\n\
    mul.rn.f32          %f38, %f38, %f226;\n\
    mul.rn.f32          %f39, %f39, %f226;\n\
    mul.rn.f32          %f40, %f40, %f226;\n\
    mul.rn.f32          %f41, %f41, %f226;\n\
    mul.rn.f32          %f42, %f42, %f226;\n\
    mul.rn.f32          %f43, %f43, %f226;\n\
    mul.rn.f32          %f44, %f44, %f226;\n\
    mul.rn.f32          %f45, %f45, %f226;\n\
    mul.rn.f32          %f46, %f46, %f226;\n\
    mul.rn.f32          %f47, %f47, %f226;\n\
    mul.rn.f32          %f48, %f48, %f226;\n\
    mul.rn.f32          %f49, %f49, %f226;\n\
    mul.rn.f32          %f50, %f50, %f226;\n\
    sub.rn.f32          %f227, %f207, %f33;\n\
    ex2.approx.ftz.f32  %f228, %f227;\n\
    add.rn.f32          %f34, %f34, %f228;\n\
    fma.rn.f32          %f35, %f228, %f209, %f35;\n\
    fma.rn.f32          %f36, %f228, %f210, %f36;\n\
    fma.rn.f32          %f37, %f228, %f211, %f37;\n\
    fma.rn.f32          %f38, %f228, %f212, %f38;\n\
    fma.rn.f32          %f39, %f228, %f213, %f39;\n\
    fma.rn.f32          %f40, %f228, %f214, %f40;\n\
    fma.rn.f32          %f41, %f228, %f215, %f41;\n\
    fma.rn.f32          %f42, %f228, %f216, %f42;\n\
    fma.rn.f32          %f43, %f228, %f217, %f43;\n\
    fma.rn.f32          %f44, %f228, %f218, %f44;\n\
    fma.rn.f32          %f45, %f228, %f219, %f45;\n\
    fma.rn.f32          %f46, %f228, %f220, %f46;\n\
    fma.rn.f32          %f47, %f228, %f221, %f47;\n\
    fma.rn.f32          %f48, %f228, %f222, %f48;\n\
    fma.rn.f32          %f49, %f228, %f223, %f49;\n\
    fma.rn.f32          %f50, %f228, %f224, %f50;\n\
    add.u32             %r10, %r10, 4;\n\
    setp.lt.u32         %p5, %r10, %r7;\n\
    @%p5 bra            $rest_loop;\n\
\n\
$rest_done:\n\
\n\
    // merge the groups of lanes\n\
    shfl.sync.bfly.b32  %f229, %f33, 8, 31, 0xFFFFFFFF;\n\
    max.f32             %f230, %f33, %f229;\n\
    sub.rn.f32          %f231, %f33, %f230;\n\
    ex2.approx.ftz.f32  %f232, %f231;\n\
    mul.rn.f32          %f34, %f34, %f232;\n\
    mul.rn.f32          %f35, %f35, %f232;\n\
    mul.rn.f32          %f36, %f36, %f232;\n\
    mul.rn.f32          %f37, %f37, %f232;\n\
    mul.rn.f32          %f38, %f38, %f232;\n\
    mul.rn.f32          %f39, %f39, %f232;\n\
    mul.rn.f32          %f40, %f40, %f232;\n\
    mul.rn.f32          %f41, %f41, %f232;\n\
    mul.rn.f32          %f42, %f42, %f232;\n\
    mul.rn.f32          %f43, %f43, %f232;\n\
    mul.rn.f32          %f44, %f44, %f232;\n\
    mul.rn.f32          %f45, %f45, %f232;\n\
    mul.rn.f32          %f46, %f46, %f232;\n\
    mul.rn.f32          %f47, %f47, %f232;\n\
    mul.rn.f32          %f48, %f48, %f232;\n\
    mul.rn.f32          %f49, %f49, %f232;\n\
    mul.rn.f32          %f50, %f50, %f232;\n\
    mov.f32             %f33, %f230;\n\
    shfl.sync.bfly.b32  %f233, %f34, 8, 31, 0xFFFFFFFF;\n\
    add.rn.f32          %f34, %f34, %f233;\n\
    shfl.sync.bfly.b32  %f234, %f35, 8, 31, 0xFFFFFFFF;\n\
    add.rn.f32          %f35, %f35, %f234;\n\
    shfl.sync.bfly.b32  %f235, %f36, 8, 31, 0xFFFFFFFF;\n\
    add.rn.f32          %f36, %f36, %f235;\n\
    shfl.sync.bfly.b32  %f236, %f37, 8, 31, 0xFFFFFFFF;\n\
    add.rn.f32          %f37, %f37, %f236;\n\
    shfl.sync.bfly.b32  %f237, %f38, 8, 31, 0xFFFFFFFF;\n\
    add.rn.f32          %f38, %f38, %f237;\n\
    shfl.sync.bfly.b32  %f238, %f39, 8, 31, 0xFFFFFFFF;\n\
    add.rn.f32          %f39, %f39, %f238;\n\
    shfl.sync.bfly.b32  %f239, %f40, 8, 31, 0xFFFFFFFF;\n\
    add.rn.f32          %f40, %f40, %f239;\n\
    shfl.sync.bfly.b32  %f240, %f41, 8, 31, 0xFFFFFFFF;\n\
"
"\
    add.rn.f32          %f41, %f41, %f240;\n\
    shfl.sync.bfly.b32  %f241, %f42, 8, 31, 0xFFFFFFFF;\n\
    add.rn.f32          %f42, %f42, %f241;\n\
    shfl.sync.bfly.b32  %f242, %f43, 8, 31, 0xFFFFFFFF;\n\
    add.rn.f32          %f43, %f43, %f242;\n\
    shfl.sync.bfly.b32  %f243, %f44, 8, 31, 0xFFFFFFFF;\n\
    add.rn.f32          %f44, %f44, %f243;\n\
    shfl.sync.bfly.b32  %f244, %f45, 8, 31, 0xFFFFFFFF;\n\
    add.rn.f32          %f45, %f45, %f244;\n\
    shfl.sync.bfly.b32  %f245, %f46, 8, 31, 0xFFFFFFFF;\n\
    add.rn.f32          %f46, %f46, %f245;\n\
    shfl.sync.bfly.b32  %f246, %f47, 8, 31, 0xFFFFFFFF;\n\
    add.rn.f32          %f47, %f47, %f246;\n\
    shfl.sync.bfly.b32  %f247, %f48, 8, 31, 0xFFFFFFFF;\n\
    add.rn.f32          %f48, %f48, %f247;\n\
    shfl.sync.bfly.b32  %f248, %f49, 8, 31, 0xFFFFFFFF;\n\
    add.rn.f32          %f49, %f49, %f248;\n\
    shfl.sync.bfly.b32  %f249, %f50, 8, 31, 0xFFFFFFFF;\n\
    add.rn.f32          %f50, %f50, %f249;\n\
    shfl.sync.bfly.b32  %f250, %f33, 16, 31, 0xFFFFFFFF;\n\
    max.f32             %f251, %f33, %f250;\n\
    sub.rn.f32          %f252, %f33, %f251;\n\
    ex2.approx.ftz.f32  %f253, %f252;\n\
    mul.rn.f32          %f34, %f34, %f253;\n\
    mul.rn.f32          %f35, %f35, %f253;\n\
    mul.rn.f32          %f36, %f36, %f253;\n\
    mul.rn.f32          %f37, %f37, %f253;\n\
    mul.rn.f32          %f38, %f38, %f253;\n\
    mul.rn.f32          %f39, %f39, %f253;\n\
    mul.rn.f32          %f40, %f40, %f253;\n\
    mul.rn.f32          %f41, %f41, %f253;\n\
    mul.rn.f32          %f42, %f42, %f253;\n\
    mul.rn.f32          %f43, %f43, %f253;\n\
    mul.rn.f32          %f44, %f44, %f253;\n\
    mul.rn.f32          %f45, %f45, %f253;\n\
    mul.rn.f32          %f46, %f46, %f253;\n\
    mul.rn.f32          %f47, %f47, %f253;\n\
    mul.rn.f32          %f48, %f48, %f253;\n\
    mul.rn.f32          %f49, %f49, %f253;\n\
    mul.rn.f32          %f50, %f50, %f253;\n\
    mov.f32             %f33, %f251;\n\
    shfl.sync.bfly.b32  %f254, %f34, 16, 31, 0xFFFFFFFF;\n\
    add.rn.f32          %f34, %f34, %f254;\n\
    shfl.sync.bfly.b32  %f255, %f35, 16, 31, 0xFFFFFFFF;\n\
    add.rn.f32          %f35, %f35, %f255;\n\
    shfl.sync.bfly.b32  %f256, %f36, 16, 31, 0xFFFFFFFF;\n\
    add.rn.f32          %f36, %f36, %f256;\n\
    shfl.sync.bfly.b32  %f257, %f37, 16, 31, 0xFFFFFFFF;\n\
    add.rn.f32          %f37, %f37, %f257;\n\
    shfl.sync.bfly.b32  %f258, %f38, 16, 31, 0xFFFFFFFF;\n\
    add.rn.f32          %f38, %f38, %f258;\n\
    shfl.sync.bfly.b32  %f259, %f39, 16, 31, 0xFFFFFFFF;\n\
    add.rn.f32          %f39, %f39, %f259;\n\
    shfl.sync.bfly.b32  %f260, %f40, 16, 31, 0xFFFFFFFF;\n\
    add.rn.f32          %f40, %f40, %f260;\n\
    shfl.sync.bfly.b32  %f261, %f41, 16, 31, 0xFFFFFFFF;\n\
    add.rn.f32          %f41, %f41, %f261;\n\
    shfl.sync.bfly.b32  %f262, %f42, 16, 31, 0xFFFFFFFF;\n\
    add.rn.f32          %f42, %f42, %f262;\n\
    shfl.sync.bfly.b32  %f263, %f43, 16, 31, 0xFFFFFFFF;\n\
    add.rn.f32          %f43, %f43, %f263;\n\
    shfl.sync.bfly.b32  %f264, %f44, 16, 31, 0xFFFFFFFF;\n\
    add.rn.f32          %f44, %f44, %f264;\n\
    shfl.sync.bfly.b32  %f265, %f45, 16, 31, 0xFFFFFFFF;\n\
    add.rn.f32          %f45, %f45, %f265;\n\
    shfl.sync.bfly.b32  %f266, %f46, 16, 31, 0xFFFFFFFF;\n\
    add.rn.f32          %f46, %f46, %f266;\n\
    shfl.sync.bfly.b32  %f267, %f47, 16, 31, 0xFFFFFFFF;\n\
    add.rn.f32          %f47, %f47, %f267;\n\
    shfl.sync.bfly.b32  %f268, %f48, 16, 31, 0xFFFFFFFF;\n\
    add.rn.f32          %f48, %f48, %f268;\n\
    shfl.sync.bfly.b32  %f269, %f49, 16, 31, 0xFFFFFFFF;\n\
    add.rn.f32          %f49, %f49, %f269;\n\
    shfl.sync.bfly.b32  %f270, %f50, 16, 31, 0xFFFFFFFF;\n\
    add.rn.f32          %f50, %f50, %f270;\n\
\n\
    // store\n\
    rcp.rn.f32          %f271, %f34;\n\
    setp.gt.f32         %p6, %f34, 0f00000000;\n\
    selp.f32            %f272, %f271, 0f00000000, %p6;\n\
    mad.wide.u32        %rd18, %r3, 512, %rd1;\n\
    mad.wide.u32        %rd19, %r4, 16, %rd18;\n\
    setp.eq.u32         %p7, %r5, 0;\n\
    @!%p7 bra           $skip;\n\
    mul.rn.f32          %f273, %f35, %f272;\n\
    mul.rn.f32          %f274, %f36, %f272;\n\
    mul.rn.f32          %f275, %f37, %f272;\n\
    mul.rn.f32          %f276, %f38, %f272;\n\
    st.global.v4.f32    [%rd19], {%f273, %f274, %f275, %f276};\n\
    mul.rn.f32          %f277, %f39, %f272;\n\
    mul.rn.f32          %f278, %f40, %f272;\n\
    mul.rn.f32          %f279, %f41, %f272;\n\
    mul.rn.f32          %f280, %f42, %f272;\n\
    st.global.v4.f32    [%rd19+128], {%f277, %f278, %f279, %f280};\n\
    mul.rn.f32          %f281, %f43, %f272;\n\
    mul.rn.f32          %f282, %f44, %f272;\n\
    mul.rn.f32          %f283, %f45, %f272;\n\
    mul.rn.f32          %f284, %f46, %f272;\n\
    st.global.v4.f32    [%rd19+256], {%f281, %f282, %f283, %f284};\n\
    mul.rn.f32          %f285, %f47, %f272;\n\
    mul.rn.f32          %f286, %f48, %f272;\n\
    mul.rn.f32          %f287, %f49, %f272;\n\
    mul.rn.f32          %f288, %f50, %f272;\n\
    st.global.v4.f32    [%rd19+384], {%f285, %f286, %f287, %f288};\n\
\n\
$skip:\n\
    ret;\n\
}\n\
";
static const ptxgen_param llama_incremental_attention_d128_h32_kv8_s8192_params[] = {
    { "o", PTXGEN_PARAM_POINTER, PTXGEN_PARAM_OUT, PTXGEN_F32, 16384, "num_heads*head_dim*4", 16 },
    { "q", PTXGEN_PARAM_POINTER, PTXGEN_PARAM_IN, PTXGEN_F32, 16384, "num_heads*head_dim*4", 16 },
    { "k", PTXGEN_PARAM_POINTER, PTXGEN_PARAM_IN, PTXGEN_F32, 33554432, "num_kv_heads*max_seq_len*head_dim*4", 16 },
    { "v", PTXGEN_PARAM_POINTER, PTXGEN_PARAM_IN, PTXGEN_F32, 33554432, "num_kv_heads*max_seq_len*head_dim*4", 16 },
    { "seq_len", PTXGEN_PARAM_U32, PTXGEN_PARAM_IN, PTXGEN_U32, 4, "seq_len", 4 },
};
static const ptxgen_config llama_incremental_attention_d128_h32_kv8_s8192_config[] = {
    { "head_dim", 128, 0, NULL, 0, 0, 0, 1 },
    { "num_heads", 32, 0, NULL, 0, 0, 0, 1 },
    { "num_kv_heads", 8, 0, NULL, 0, 0, 0, 1 },
    { "max_seq_len", 8192, 0, NULL, 0, 0, 0, 1 },
    { "seq_len", 0, 0, "direct", 0, 0, 0, 1 },
    { "kv_type", 0, 0, "f32", 0, 0, 0, 1 },
    { "scale", 0, 0, NULL, 0, 0, 0, 1 },
    { "softcap", 0, 0, NULL, 0, 0, 0, 1 },
    { "window", 0, 0, NULL, 0, 0, 0, 1 },
    { "sinks", 0, 0, "none", 0, 0, 0, 1 },
};
const ptxgen_kernel llama_incremental_attention_d128_h32_kv8_s8192 = {
    "incremental_attention_d128_h32_kv8_s8192", "incremental_attention_d128_h32_kv8_s8192",
    llama_incremental_attention_d128_h32_kv8_s8192_ptx, 20862, UINT64_C(0x2f1ac399b1788f27),
    "incremental_attention", PTXGEN_ATTENTION, PTXGEN_F32, PTXGEN_F32, PTXGEN_F32,
    80, 70, 0, 0, /* sm, isa, overlaps, specific */
    llama_incremental_attention_d128_h32_kv8_s8192_params, 5,
    { 32, 1, 1 }, { 32, 1, 1 }, NULL, /* block, grid, grid_at */
    0, 0, NULL, 0, /* shared_static, shared_dynamic, shared_at, workspace */
    0, 0, 1, /* k, n, m */
    1, 128, 32, 8, 8192, /* num_warps, head_dim, num_heads, num_kv_heads, max_seq_len */
    0, 0, /* dynamic_dims, seq_len_indirect */
    llama_incremental_attention_d128_h32_kv8_s8192_config, 10,
    0, 0, /* registers, blocks_per_sm */
    1, /* preference */
    NULL, 0, 0, /* chosen_by, chosen_f32, chosen_q8 */
};


#ifdef __GNUC__
#pragma GCC diagnostic pop
#endif

const ptxgen_kernel *const llama_kernels[] = {
    &llama_f32_gemv_k4096_n256,
    &llama_stream_gemv_q4k_k4096_n14336_m1_w12_r1,
    &llama_mma_gemm_f16_f16_k4096_n4096_m8_s2,
    &llama_rms_norm_k4096_m1,
    &llama_incremental_attention_d128_h32_kv8_s8192,
};
const size_t llama_kernel_count = sizeof llama_kernels / sizeof *llama_kernels;

const ptxgen_pipeline *const llama_pipelines[] = {
    NULL,
};
const size_t llama_pipeline_count = sizeof llama_pipelines / sizeof *llama_pipelines - 1;

const ptxgen_kernel *llama_named(const char *name, unsigned sm)
{
    return ptxgen_named_in(llama_kernels, llama_kernel_count, name, sm,
                           ptxgen_shared_limit(sm));
}

const ptxgen_pipeline *llama_find_pipeline(const ptxgen_query *query)
{
    return ptxgen_find_pipeline_in(llama_pipelines, llama_pipeline_count, llama_kernels,
                                   llama_kernel_count, query);
}

size_t llama_explain_miss(const ptxgen_query *query, char *text, size_t size)
{
    return ptxgen_explain_in(llama_kernels, llama_kernel_count, query, text, size);
}

size_t llama_explain_pipeline_miss(const ptxgen_query *query, char *text, size_t size)
{
    return ptxgen_explain_pipeline_in(llama_pipelines, llama_pipeline_count, llama_kernels,
                                      llama_kernel_count, query, text, size);
}

const ptxgen_kernel *llama_find(const ptxgen_query *query)
{
    return ptxgen_find_in(llama_kernels, llama_kernel_count, query);
}

#ifdef __cplusplus
}
#endif
#endif /* LLAMA_KERNELS_IMPLEMENTATION */
