/* llama_kernels.h - CUDA kernels as PTX, written by ptxgen 0.1.0. Change the spec, not this file.
 *
 * 28 kernels for sm_75, sm_80, sm_90:
 *     2  f32_gemv                 f32 GEMV, one warp a row
 *     1  q4k_gemv                 Q4_K x f32 GEMV, one warp a row, byte loads: the plain one
 *     9  mwv_q4k_gemv             Q4_K x f32 GEMV, several warps a row, 32-bit weight loads
 *     1  mwv_q6k_gemv             Q6_K x f32 GEMV, several warps a row
 *     4  stream_gemv              streaming GEMV of f32 x, which is rounded to 8 bits for quantized weights
 *     2  q8_1_quantize            f32 activations to q8_1 blocks, one warp a block
 *     4  mwv_dp4a_q4k_gemv        Q4_K x q8_1 GEMV with dp4a, several warps a row, rows by grid stride
 *     2  incremental_attention    decode attention, one warp a head, online softmax, GQA
 *     1  multi_warp_attention     decode attention, several warps a head, merged in shared memory, GQA
 *     1  flash_decoding_chunk     decode attention of m sequences by chunks: partial results, GQA
 *     1  flash_decoding_reduce    decode attention of m sequences by chunks: the partial results merged
 *        mwv_q6k_gemv_k4096_n4096_w4 chosen by gemv auto, precision q8, for sm_75
 *        stream_gemv_q6k_k4096_n4096_m1_w8_r2 chosen by gemv auto, precision q8, for sm_80
 *        stream_gemv_q6k_k4096_n4096_m1_w16_r2 chosen by gemv auto, precision q8, for sm_90
 *        stream_gemv_q8_0_k4096_n4096_m1_w12_r2 chosen by gemv auto, precision q8, for sm_75 to sm_80
 *        stream_gemv_q8_0_k4096_n4096_m1_w16_r2 chosen by gemv auto, precision q8, for sm_90
 *
 * Nothing here needs a CUDA header. In one C or C++ file of the program, and in one only, write
 *
 *     #define LLAMA_KERNELS_IMPLEMENTATION
 *     #include "llama_kernels.h"
 *
 * which puts the PTX and the tables into that file; everywhere else include it as it is. Then
 *
 *     ptxgen_query query = { .op = PTXGEN_GEMV, .weights = PTXGEN_Q4_K,
 *                            .k = 4096, .n = 14336, .sm = 90 };
 *     const ptxgen_kernel *kernel = llama_find(&query);
 *     if (!kernel)                                       that was not generated:
 *         llama_explain_miss(&query, text, sizeof text);
 *
 * (C++ before C++20 has no .op = in braces: write query = {}, then query.op = PTXGEN_GEMV.)
 *
 * To launch through the CUDA driver API, with arguments that the compiler checks, also define
 * LLAMA_WITH_CUDA before including:
 *
 *     llama_cuda cuda;                                one a context, which is current
 *     void *library = dlopen("libcuda.so.1", RTLD_NOW);
 *     ptxgen_result r = llama_cuda_init(&cuda, dlsym, library);      a CUresult
 *     r = llama_f32_gemv_k4096_n256_load(&cuda, NULL);
 *     r = llama_f32_gemv_k4096_n256_launch(&cuda, stream, y, w, x);
 *
 * A launch is one call of the driver, or one for each step of a pipeline, so that a stream which is
 * being captured (cuStreamBeginCapture) records it into a CUDA graph.
 *
 * A program that names its kernels, by their _load and _launch functions, and looks none up can
 * leave out all others: compile with -ffunction-sections -fdata-sections, link with
 * -Wl,--gc-sections.
 *
 * Or do it by hand: kernel->ptx is for cuModuleLoadData, kernel->entry for cuModuleGetFunction, and
 *
 *     unsigned grid[3];
 *     ptxgen_run run = { 0, 0, 0, 132 };
 *     if (!ptxgen_grid(kernel, &run, grid))
 *         ...                                            run lacks a value, sm_count say, or has
 *                                                        one that makes more blocks than CUDA takes
 *     cuLaunchKernel(function, grid[0], grid[1], grid[2],
 *                    kernel->block[0], kernel->block[1], kernel->block[2],
 *                    ptxgen_shared(kernel, &run), stream, arguments, NULL);
 *
 * arguments are one pointer to each of kernel->params. Where kernel->shared_static and what
 * ptxgen_shared gives are above 48 KiB together, first raise
 * CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES to the latter. ptxgen_bytes(kernel, &kernel->params[i],
 * &run) says how many bytes are behind argument i. Where the spec says embed = c23 or
 * incbin, ptxgen_is_intact(kernel) says whether the .ptx file is still as ptxgen saw it.
 */
/* Guards have the prefix as it is: another header's may differ in capitals alone. */
#ifndef llama_KERNELS_H
#define llama_KERNELS_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* What describes a kernel, the same in every header that ptxgen writes. */
#ifdef PTXGEN_ABI
#if PTXGEN_ABI != 9
#error "llama_kernels.h and an earlier ptxgen header differ in PTXGEN_ABI: write both with one ptxgen"
#endif
#else
#define PTXGEN_ABI 9

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
} ptxgen_operation;

/* How the values of a buffer are stored; the quantized ones in blocks as ggml stores them. In a
 * query PTXGEN_NONE is any. */
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
} ptxgen_format;

typedef enum ptxgen_param_kind { PTXGEN_PARAM_POINTER, PTXGEN_PARAM_U32 } ptxgen_param_kind;

/* Of an array of addresses IN, OUT and INOUT are said of what these point to: INOUT is brought up to
 * date. Scratch memory belongs to one launch at a time, and what it holds is of no account; ZEROED memory
 * has to be 0 before the first launch, and every launch that ends leaves it so. */
typedef enum ptxgen_direction {
    PTXGEN_PARAM_IN,
    PTXGEN_PARAM_OUT,
    PTXGEN_PARAM_SCRATCH,
    PTXGEN_PARAM_ZEROED,
    PTXGEN_PARAM_INOUT
} ptxgen_direction;

/* A parameter, in the order of the entry's: a device pointer, or a 32-bit number. */
typedef struct ptxgen_param {
    const char *name;
    ptxgen_param_kind kind;
    ptxgen_direction direction;
    ptxgen_format format;
    int64_t bytes;      /* of the buffer, or of the number; 0 where the launch decides */
    const char *size;   /* pointers: bytes as a formula over the numbers of config and ptxgen_run,
                           "n*k/256*144", see ptxgen_bytes; numbers: what they hold */
    unsigned alignment; /* bytes that the address must be a multiple of */
} ptxgen_param;

/* One key of the configuration, as the spec says it. */
typedef struct ptxgen_config {
    const char *name;
    int64_t value;
    double real;          /* of keys that take real numbers (epsilon), else 0 */
    const char *word;     /* of keys that take words ("static", "indirect"), else NULL */
    int at_run_time;      /* 1: a parameter says it, and these sizes will do: */
    int64_t min, max, multiple_of;
} ptxgen_config;

/* What the host knows at launch. A kernel needs some or none: 0 stands for not known. */
typedef struct ptxgen_run {
    int64_t k, n, m;  /* sizes, of kernels with dynamic dims; m also of those with rows at run time */
    int64_t sm_count; /* CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT */
} ptxgen_run;

typedef struct ptxgen_kernel {
    const char *name;
    const char *entry;
    const char *ptx; /* NUL-terminated */
    size_t ptx_length;
    uint64_t checksum; /* of the PTX that ptxgen made or verified: see ptxgen_is_intact */

    const char *family;
    ptxgen_operation operation;
    ptxgen_format weights, activations; /* weights: of W; for attention, of K and V */
    ptxgen_format precision; /* of x in products: PTXGEN_Q8_1 or _F16 where rounded */
    unsigned sm;  /* runs on this compute capability, times ten, and on newer ones that have the shared
                     memory: see specific and ptxgen_can_launch */
    unsigned isa; /* PTX ISA version, times ten: what the driver must know */
    int overlaps; /* 1: it may be launched so that it starts before the kernel ahead of it in its stream
                     has finished (programmatic stream serialization), and waits for that itself;
                     where its state is settled, with positions, lengths and addresses read before */
    int specific; /* 1: made for sm_90a or the like, whose instructions newer ones do not have */

    const ptxgen_param *params;
    size_t param_count;

    unsigned block[3];
    unsigned grid[3]; /* zeros where grid_at says it */
    void (*grid_at)(const ptxgen_run *run, unsigned grid[3]); /* NULL where grid is fixed */
    unsigned shared_static, shared_dynamic; /* bytes a block; dynamic: 0 where shared_at says it */
    unsigned (*shared_at)(const ptxgen_run *run); /* NULL where shared_dynamic is fixed */
    size_t workspace;                       /* bytes of device memory beside the parameters */

    /* The configuration; 0 where the family has no such key (m is 1 then). With rows = run_time m is
     * how many rows of X a block takes at once. */
    int64_t k, n, m;
    int64_t num_warps, head_dim, num_heads, num_kv_heads, max_seq_len;
    int dynamic_dims;     /* 1: those of k, n and m whose config says at_run_time are parameters, and
                             other sizes than these run as well */
    int seq_len_indirect; /* 1: the sequence length is read from device memory */
    const ptxgen_config *config; /* all keys of the family */
    size_t config_count;

    unsigned registers;     /* a thread's, by ptxas; 0 where it was not run */
    unsigned blocks_per_sm; /* resident on an SM of this sm; 0 where ptxas was not run */
    int preference;         /* among kernels that fit a query the highest is found */
    const char *chosen_by;  /* the family whose variant = auto chose it for its GPUs, or NULL; */
    int chosen_f32, chosen_q8; /* 1: where the spec says precision = f32, precision = q8 */
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

/* What a caller needs. A member that is 0 or NULL does not matter, but for activations and those of
 * the last group: they say what is computed, and of what. A size that a family does not have counts
 * as 1: m = 1 finds kernels without m. */
typedef struct ptxgen_query {
    ptxgen_operation op;
    ptxgen_format weights;     /* of attention: the caches' */
    ptxgen_format activations; /* 0: f32, or what the family takes where one is named */
    ptxgen_format precision; /* PTXGEN_F32: no kernel that rounds f32 activations to 8 bits */
    unsigned sm; /* of the device, times ten: 90 */
    const char *family;
    double epsilon; /* of an RMS norm */
    int64_t k;
    int64_t n;
    int64_t m;
    int64_t n_kv; /* of pipelines: rows of Wk and of Wv */
    int64_t experts; /* of a mixture: that there are */
    int64_t experts_used; /* by each row */
    int64_t n_shared; /* rows of the expert that all rows use; 0: any */
    int64_t plane_rows; /* from an expert's matrix to the next */
    int64_t head_dim;
    int64_t num_heads;
    int64_t num_kv_heads;
    int64_t max_seq_len;
    int64_t chunk_size;
    int64_t latent; /* of latent attention, as the four below: values of a cache row that do not turn */
    int64_t n_rope; /* values that turn, of a cache row and of a head of q */
    int64_t nope; /* values of a head of q that do not */
    int64_t value_dim; /* values of a head's result */
    int64_t q_rank; /* columns of the matrix that makes q; 0: there is none */
    int64_t num_warps; /* a block's, where the family has the key */
    ptxgen_kv kv; /* of the pipeline qkv: K and V by one kernel, or by one each; 0: any */
    int64_t n_v; /* rows of Wv, where they are not n_kv */
    ptxgen_format weights_q; /* of Wq; 0: as weights. Of matrices that a kernel does not have: 0 */
    ptxgen_format weights_k;
    ptxgen_format weights_v;
    ptxgen_format weights_g; /* of gate and up */
    ptxgen_format weights_u;
    ptxgen_format weights_d; /* of down */
    ptxgen_format weights_s; /* of the expert that all rows use: down, gate, up */
    ptxgen_format weights_sg;
    ptxgen_format weights_su;

    int bias; /* of a GEMV: 1 where it is added to the product */
    int residual; /* as bias */
    ptxgen_norm norm; /* of x, ahead of a product */
    ptxgen_activation activation; /* of a gate */
    int seq_len_indirect; /* of attention to one sequence: 1 where seq_len is read from device memory */
    int64_t window; /* of attention: the last positions that count; 0: all */
    int sinks; /* of attention: 1 where heads have them */
    int gate; /* of attention: 1 where its result is multiplied by sigmoid(gate) */
    int64_t ring; /* rows of a cache that is used again; 0: max_seq_len of them */
    int gated; /* of rope_kv_write: 1 where q comes with gates */
    double scale; /* of q.k; 0: 1 / sqrt(head_dim). Of a product; 0: 1 */
    double softcap; /* 0: none */
    ptxgen_layout layout; /* of delta_net: the value heads */
    int apart; /* of mla_query: 1 where the latents do not stand behind q */
    ptxgen_state state; /* of rope_kv_write and attention: settled where a program promises it */
    int64_t next; /* bytes that it has fetched for the launch behind it; 0: none */
    ptxgen_out out; /* the type of what is written */
    ptxgen_approximation approximation; /* of gelu */
    ptxgen_broadcast broadcast; /* of add and multiply: what b is repeated over */
    int scaled; /* of a product: 1 where a tensor has the factor of each matrix */
    int scratch; /* 1: also kernels with parameters that are scratch memory */
} ptxgen_query;

/* Kernels that belong together, in the order to launch them. */
#define PTXGEN_WORKSPACE (-1)
enum { PTXGEN_MOST_ARGUMENTS = 16, PTXGEN_MOST_STEPS = 8 };
typedef struct ptxgen_argument {
    int buffer;    /* of the pipeline, or PTXGEN_WORKSPACE */
    size_t offset; /* bytes from its start; with rows_at_run_time for each row */
} ptxgen_argument;

typedef struct ptxgen_pipeline_step {
    const char *kernel;               /* its name: see PREFIX_named */
    size_t place;                     /* in PREFIX_kernels, of the first of that name */
    const ptxgen_argument *arguments; /* one for each of the kernel's parameters */
    size_t argument_count;
} ptxgen_pipeline_step;

typedef struct ptxgen_pipeline {
    const char *name;
    const char *pipeline; /* "qkv" */
    const ptxgen_param *buffers; /* that the caller gives: outputs, weights, inputs, numbers */
    size_t buffer_count;
    const ptxgen_pipeline_step *steps;
    size_t step_count;
    size_t workspace; /* bytes of device memory that the steps hand on, aligned to 16; with */
    int rows_at_run_time; /* 1 for each row: see ptxgen_workspace */
    int64_t k, n, n_kv, m;
    const ptxgen_config *config; /* all keys of the pipeline */
    size_t config_count;
    ptxgen_operation operation;
    ptxgen_format weights;     /* as of a kernel */
    ptxgen_format activations; /* PTXGEN_Q8_1: the caller gives x as such blocks */
    ptxgen_format precision;   /* PTXGEN_Q8_1 where a step multiplies x as 8 bits */
} ptxgen_pipeline;

#define PTXGEN_MIN(a, b)      ((a) < (b) ? (a) : (b))
#define PTXGEN_MAX(a, b)      ((a) > (b) ? (a) : (b))
#define PTXGEN_CEIL_DIV(a, b) (((a) + (b) - 1) / (b))

/* Whether the PTX is what ptxgen made or verified. Where the compiler took it from a .ptx file, that
 * may have been changed since. The checksum is 64-bit FNV-1a. */
static inline int ptxgen_is_intact(const ptxgen_kernel *kernel)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    size_t i;
    for (i = 0; kernel->ptx[i]; i++)
        hash = (hash ^ (unsigned char)kernel->ptx[i]) * UINT64_C(0x100000001b3);
    return i == kernel->ptx_length && hash == kernel->checksum;
}

/* A grid's blocks in one direction; 0 where CUDA does not allow so many. */
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

/* Whether a launch says how many rows X and Y have, and m is how many of them a block takes. */
static inline int ptxgen_rows_at_run_time(const ptxgen_kernel *kernel)
{
    const ptxgen_config *rows = ptxgen_key(kernel->config, kernel->config_count, "rows");
    return rows && rows->value != 0;
}

/* The run-time values of a kernel: its own sizes where they are built in, else the caller's. */
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

/* Returns 1 if a key takes a size. key is NULL where the configuration has no such key. Words count
 * from 1. */
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

/* Returns 1 if a configuration takes the run-time values, as far as they are known. */
static inline int ptxgen_fits_run(const ptxgen_config *config, size_t count, ptxgen_run *run)
{
    size_t i;
    for (i = 0; i < count; i++)
        if (config[i].at_run_time &&
            !ptxgen_takes(&config[i], *ptxgen_run_size(run, config[i].name)))
            return 0;
    return run->sm_count <= 65536;
}

/* The grid to launch. run may be NULL where the kernel's grid is fixed. 0, and no grid that can be
 * launched: run is NULL or lacks a value that the grid depends on, a size is none that the kernel
 * takes, or there would be more blocks than CUDA allows (2^31-1 in x, 65535 in y and z). */
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

/* The dynamic shared memory to launch with. run may be NULL where it is fixed. */
static inline unsigned ptxgen_shared(const ptxgen_kernel *kernel, const ptxgen_run *run)
{
    ptxgen_run values;
    if (!kernel->shared_at || !run)
        return kernel->shared_dynamic;
    values = ptxgen_run_of(kernel, run);
    return kernel->shared_at(&values);
}

/* A formula as it is read: whole numbers, names, + - * / ( ), min(a, b), max(a, b), ceil_div(a, b).
 * Names are keys of a configuration, or members of ptxgen_run. */
typedef struct ptxgen_formula {
    const char *at;
    const ptxgen_config *config;
    size_t config_count;
    ptxgen_run run;
    int failed; /* 1: a value is not known, or above INT64_MAX */
} ptxgen_formula;

static inline int64_t ptxgen_formula_sum(ptxgen_formula *f);

static inline int64_t ptxgen_formula_fail(ptxgen_formula *f)
{
    f->failed = 1;
    return 1; /* what may be divided by */
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

/* Reads "(a, b)" behind the name of a function. */
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

/* Reads a name: a key's value, or what the run says of it. */
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

/* Evaluates the size of a parameter; -1 where it is not known. */
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

/* Returns the bytes of the buffer behind a kernel's parameter, or of the number that the parameter is.
 * run may be NULL where param->bytes says it. -1: run lacks a value that the size depends on, or has
 * one that the kernel does not take. */
static inline int64_t ptxgen_bytes(const ptxgen_kernel *kernel, const ptxgen_param *param,
                                   const ptxgen_run *run)
{
    const ptxgen_run none = { 0, 0, 0, 0 };
    ptxgen_run values = ptxgen_run_of(kernel, run ? run : &none);
    return ptxgen_evaluate(param, kernel->config, kernel->config_count, &values);
}

/* Returns the same of a buffer of a pipeline. */
static inline int64_t ptxgen_pipeline_bytes(const ptxgen_pipeline *pipeline,
                                            const ptxgen_param *buffer, const ptxgen_run *run)
{
    const ptxgen_run none = { 0, 0, 0, 0 };
    return ptxgen_evaluate(buffer, pipeline->config, pipeline->config_count, run ? run : &none);
}

/* Returns the bytes of workspace that a pipeline needs. rows is how many there are, where the launch
 * says it. */
static inline size_t ptxgen_workspace(const ptxgen_pipeline *pipeline, size_t rows)
{
    return pipeline->rows_at_run_time ? pipeline->workspace * rows : pipeline->workspace;
}

/* Text that is cut where its buffer ends, and counted on. */
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

/* Whether a key, NULL where there is none, has a value, real ones as the f32 that is built in. */
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

/* The sizes that a query asks for, by the names of their keys. */
enum { PTXGEN_QUERY_SIZES = 21 };
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
    };
    return sizes[index];
}

/* The formats that a query asks for, by the names of the matrices' parameters. */
enum { PTXGEN_QUERY_MATRICES = 9 };
typedef struct ptxgen_matrix {
    const char *name;
    ptxgen_format wanted; /* PTXGEN_NONE: as weights */
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

/* What a query says of the product itself, by the names of the keys; words count from 0. */
enum { PTXGEN_QUERY_OPTIONS = 20 };
typedef struct ptxgen_option {
    const char *name;
    double wanted; /* 0: without it */
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
    };
    return options[index];
}

/* Whether a scale of q.k is 1 / sqrt(head_dim), said or not, but for the rounding of an f32. */
static inline int ptxgen_is_usual_scale(double scale, const ptxgen_config *head_dim)
{
    double square = scale * scale * (double)(head_dim ? head_dim->value : 0);
    return !(scale > 0) || (square > 1 - 1e-6 && square < 1 + 1e-6);
}

/* Attention to several sequences has no key for seq_len: it always reads them from device memory. */
static inline int ptxgen_fits_option(const ptxgen_config *config, size_t count,
                                     ptxgen_option option)
{
    const ptxgen_config *key = ptxgen_key(config, count, option.name);
    const ptxgen_config *head_dim = ptxgen_key(config, count, "head_dim");
    if (strcmp(option.name, "seq_len") == 0 && !key)
        return 1;
    if (strcmp(option.name, "scale") == 0 && ptxgen_is_usual_scale(option.wanted, head_dim))
        return !key || ptxgen_is_usual_scale(key->real, head_dim);
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

/* Returns 1 if a matrix has the format that a query asks for. param is NULL where there is no such
 * matrix. */
static inline int ptxgen_fits_matrix(const ptxgen_param *param, ptxgen_format wanted,
                                     const ptxgen_query *query)
{
    if (!param)
        return !wanted;
    wanted = wanted ? wanted : query->weights;
    return !wanted || wanted == param->format;
}

/* Returns 1 if weights, the format of what is no matrix of several, and all matrices are as a query
 * asks for. */
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
           kernel->activations == PTXGEN_NONE; /* it has no x */
}

/* A caller that knows nothing of scratch memory gets no kernel that wants some, unless by its name. */
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

/* Returns true if a compute capability, times ten, has the instructions of a kernel. */
static inline int ptxgen_runs_on(const ptxgen_kernel *kernel, unsigned sm)
{
    return kernel->specific ? sm == kernel->sm : sm >= kernel->sm;
}

/* Returns the bytes of shared memory that a block may have on a compute capability, times ten: a
 * newer GPU may have less than an older one. What a device itself says is in ptxgen_driver. */
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

/* Returns the bytes of shared memory that a block needs, static and dynamic. */
static inline unsigned ptxgen_shared_need(const ptxgen_kernel *kernel, const ptxgen_run *run)
{
    return kernel->shared_static + ptxgen_shared(kernel, run);
}

/* Returns true if a device has the instructions of a kernel and the shared memory of its blocks. What
 * run-time values decide counts if run gives them; run may be NULL. */
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

/* Whether two kernels stand for one, as made or as chosen for different GPUs. */
static inline int ptxgen_are_one(const ptxgen_kernel *a, const ptxgen_kernel *b)
{
    return strcmp(a->name, b->name) == 0 ||
           (a->chosen_by && b->chosen_by && strcmp(a->chosen_by, b->chosen_by) == 0 &&
            a->k == b->k && a->n == b->n);
}

/* 2: variant = auto chose the kernel, where x may be rounded if the query allows it; 1: chose it, but
 * with another precision; 0: the spec names it. */
static inline int ptxgen_choice(const ptxgen_kernel *kernel, const ptxgen_query *query)
{
    int as_wanted = query->precision == PTXGEN_F32 ? kernel->chosen_f32 : kernel->chosen_q8;
    return !kernel->chosen_by ? 0 : as_wanted ? 2 : 1;
}

/* Whether two kernels are of one family, or chosen by one. */
static inline int ptxgen_have_one_origin(const ptxgen_kernel *a, const ptxgen_kernel *b)
{
    return strcmp(a->chosen_by ? a->chosen_by : a->family,
                  b->chosen_by ? b->chosen_by : b->family) == 0;
}

/* How often weights are read for so many rows. */
static inline int64_t ptxgen_passes(const ptxgen_kernel *kernel, int64_t rows)
{
    return kernel->m > 0 ? PTXGEN_CEIL_DIV(rows, kernel->m) : rows;
}

/* Whether a kernel is to be taken in place of one that stands before it in the table. */
static inline int ptxgen_is_better(const ptxgen_kernel *later, const ptxgen_kernel *earlier,
                                   const ptxgen_query *query)
{
    if (later->dynamic_dims != earlier->dynamic_dims)
        return earlier->dynamic_dims;
    if (ptxgen_rows_at_run_time(later) != ptxgen_rows_at_run_time(earlier))
        return ptxgen_rows_at_run_time(earlier);
    if (ptxgen_rows_at_run_time(later) && query->m && later->m != earlier->m &&
        ptxgen_have_one_origin(later, earlier))
        return ptxgen_passes(later, query->m) != ptxgen_passes(earlier, query->m)
                   ? ptxgen_passes(later, query->m) < ptxgen_passes(earlier, query->m)
                   : later->m < earlier->m;
    if (ptxgen_choice(later, query) != ptxgen_choice(earlier, query))
        return ptxgen_choice(later, query) > ptxgen_choice(earlier, query);
    if (ptxgen_are_one(later, earlier))
        return query->sm ? later->sm > earlier->sm || later->specific : later->sm < earlier->sm;
    return later->preference > earlier->preference;
}

/* The kernel for a query, or NULL: sizes that are built in before those given at run time (of one
 * family's kernels with rows = run_time that which reads the weights least often for the m wanted),
 * then what variant = auto chose, then the family's preference, by which kernels that round x come
 * first (say .precision = PTXGEN_F32 for one that does not), then the order of the spec; of a kernel
 * made or chosen for several targets the newest that the device runs and has the shared memory for,
 * or, with sm 0, the oldest. */
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

/* Returns the kernel of a name; of one made for several targets the newest that a device runs and has
 * the shared memory for, or, with sm 0, the oldest. NULL if there is none. */
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

/* Returns 1 if a device of a compute capability, times ten, runs all steps; 0: of any. */
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

/* Describes a pipeline as a kernel, so that a query is compared with either in one way. */
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

/* Returns a query as pipelines take it: a pipeline's family takes x in several formats, so that
 * activations 0 is f32 also where a family is named. The steps' kernels decide on the device. */
static inline ptxgen_query ptxgen_pipeline_query(const ptxgen_query *query)
{
    ptxgen_query as = *query;
    as.activations = query->activations ? query->activations : PTXGEN_F32;
    as.sm = 0;
    return as;
}

/* Returns 1 if a pipeline is as a query asks for. */
static inline int ptxgen_pipeline_fits(const ptxgen_pipeline *pipeline,
                                       const ptxgen_kernel *const *kernels, size_t count,
                                       const ptxgen_query *query)
{
    const ptxgen_kernel as_kernel = ptxgen_pipeline_as_kernel(pipeline);
    const ptxgen_query wanted = ptxgen_pipeline_query(query);
    return ptxgen_fits(&as_kernel, &wanted) &&
           ptxgen_pipeline_runs_on(pipeline, kernels, count, query->sm);
}

/* Returns 1 if a pipeline is to be taken in place of one ahead of it in the table: rows that are baked
 * in come first, then what reads weights least often. */
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

/* The pipeline that is as a query asks for: of several as for kernels the one with rows that are baked
 * in, then the first in the order of the spec. kernels are those of its header. */
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

/* The kernel that fits, or NULL where none was generated; see ptxgen_find_in for which of several. */
const ptxgen_kernel *llama_find(const ptxgen_query *query);

/* Why llama_find gave NULL, as a sentence for a log: "no gemv with k 4096, n 11008 for sm_80 was
 * generated; nearest: q4k_gemv_k4096_n14336 (n is 14336)". Where the query fits, the kernel that it
 * finds. Like snprintf: writes size bytes at most, the last of them NUL, and returns the length of
 * the whole text. */
size_t llama_explain_miss(const ptxgen_query *query, char *text, size_t size);

/* Writes why llama_find_pipeline finds nothing, as llama_explain_miss does. */
size_t llama_explain_pipeline_miss(const ptxgen_query *query, char *text, size_t size);

/* The kernel of a name, such as a pipeline's step has; see ptxgen_named_in. */
const ptxgen_kernel *llama_named(const char *name, unsigned sm);

/* The pipeline that fits, or NULL where none was generated: every member of the query counts as for
 * llama_find. family is the pipeline's ("qkv"); activations 0 is f32 also where it is given. */
const ptxgen_pipeline *llama_find_pipeline(const ptxgen_query *query);

/* All kernels, in the order of the spec. */
extern const ptxgen_kernel *const llama_kernels[];
extern const size_t llama_kernel_count;

/* All pipelines, in the order of the spec, and a NULL behind them. */
extern const ptxgen_pipeline *const llama_pipelines[];
extern const size_t llama_pipeline_count;

/* y[256] = W[256,4096] x[4096], weights f32, activations f32.  sm_75, block 32, grid 256. */
extern const ptxgen_kernel llama_f32_gemv_k4096_n256;

/* y[n] = W[n,k] x[k], weights f32, activations f32, dynamic dims.  sm_75, block 32, grid n. */
extern const ptxgen_kernel llama_f32_gemv_dynamic;

/* y[1024] = W[1024,4096] x[4096], weights q4_k, activations f32.  sm_75, block 32, grid 1024. */
extern const ptxgen_kernel llama_q4k_gemv_k4096_n1024;

/* y[4096] = W[4096,4096] x[4096], weights q4_k, activations f32, num_warps 2.  sm_75, block 64, grid 4096, 8 bytes shared. */
extern const ptxgen_kernel llama_mwv_q4k_gemv_k4096_n4096_w2;

/* y[4096] = W[4096,4096] x[4096], weights q4_k, activations f32, num_warps 4.  sm_75, block 128, grid 4096, 16 bytes shared. */
extern const ptxgen_kernel llama_mwv_q4k_gemv_k4096_n4096_w4;

/* y[1024] = W[1024,4096] x[4096], weights q4_k, activations f32, num_warps 2.  sm_75, block 64, grid 1024, 8 bytes shared. */
extern const ptxgen_kernel llama_mwv_q4k_gemv_k4096_n1024_w2;

/* y[1024] = W[1024,4096] x[4096], weights q4_k, activations f32, num_warps 4.  sm_75, block 128, grid 1024, 16 bytes shared. */
extern const ptxgen_kernel llama_mwv_q4k_gemv_k4096_n1024_w4;

/* y[14336] = W[14336,4096] x[4096], weights q4_k, activations f32, num_warps 2.  sm_75, block 64, grid 14336, 8 bytes shared. */
extern const ptxgen_kernel llama_mwv_q4k_gemv_k4096_n14336_w2;

/* y[14336] = W[14336,4096] x[4096], weights q4_k, activations f32, num_warps 4.  sm_75, block 128, grid 14336, 16 bytes shared. */
extern const ptxgen_kernel llama_mwv_q4k_gemv_k4096_n14336_w4;

/* y[4096] = W[4096,14336] x[14336], weights q4_k, activations f32, num_warps 2.  sm_75, block 64, grid 4096, 8 bytes shared. */
extern const ptxgen_kernel llama_mwv_q4k_gemv_k14336_n4096_w2;

/* y[4096] = W[4096,14336] x[14336], weights q4_k, activations f32, num_warps 4.  sm_75, block 128, grid 4096, 16 bytes shared. */
extern const ptxgen_kernel llama_mwv_q4k_gemv_k14336_n4096_w4;

/* y[128256] = W[128256,4096] x[4096], weights q4_k, activations f32, num_warps 4.  sm_75, block 128, grid 128256, 16 bytes shared. */
extern const ptxgen_kernel llama_mwv_q4k_gemv_k4096_n128256_w4;

/* y[4096] = W[4096,4096] x[4096], weights q6_k, activations f32, num_warps 4.  sm_75, block 128, grid 4096, 16 bytes shared; chosen by gemv auto, precision q8, for sm_75. */
extern const ptxgen_kernel llama_mwv_q6k_gemv_k4096_n4096_w4;

/* y[1,4096] = x[1,4096] W[4096,4096]^T, weights q6_k, activations f32 rounded to 8 bits, q6_k weights, num_warps 8, rows_per_warp 2.  sm_80, block 256, grid min(256, sm_count*2) x 1, 6144 bytes dynamic shared; chosen by gemv auto, precision q8, for sm_80. */
extern const ptxgen_kernel llama_stream_gemv_q6k_k4096_n4096_m1_w8_r2;

/* y[1,4096] = x[1,4096] W[4096,4096]^T, weights q6_k, activations f32 rounded to 8 bits, q6_k weights, num_warps 16, rows_per_warp 2.  sm_90, block 512, grid min(128, sm_count*1) x 1, 6144 bytes dynamic shared; chosen by gemv auto, precision q8, for sm_90. */
extern const ptxgen_kernel llama_stream_gemv_q6k_k4096_n4096_m1_w16_r2;

/* y[1,4096] = x[1,4096] W[4096,4096]^T, weights q8_0, activations f32 rounded to 8 bits, q8_0 weights, num_warps 12, rows_per_warp 2.  sm_75, block 384, grid min(171, sm_count*2) x 1, 5120 bytes dynamic shared; chosen by gemv auto, precision q8, for sm_75 to sm_80. */
extern const ptxgen_kernel llama_stream_gemv_q8_0_k4096_n4096_m1_w12_r2;

/* y[1,4096] = x[1,4096] W[4096,4096]^T, weights q8_0, activations f32 rounded to 8 bits, q8_0 weights, num_warps 16, rows_per_warp 2.  sm_90, block 512, grid min(128, sm_count*1) x 1, 5120 bytes dynamic shared; chosen by gemv auto, precision q8, for sm_90. */
extern const ptxgen_kernel llama_stream_gemv_q8_0_k4096_n4096_m1_w16_r2;

/* q8[1,4096] = q8_1(x[1,4096]), activations f32, num_warps 4.  sm_75, block 128, grid 32. */
extern const ptxgen_kernel llama_q8_1_quantize_k4096_m1_w4;

/* q8[1,14336] = q8_1(x[1,14336]), activations f32, num_warps 4.  sm_75, block 128, grid 112. */
extern const ptxgen_kernel llama_q8_1_quantize_k14336_m1_w4;

/* y[4096] = W[4096,4096] x[4096], weights q4_k, activations q8_1, num_warps 3.  sm_75, block 96, grid min(4096, sm_count*16), 24 bytes shared. */
extern const ptxgen_kernel llama_mwv_dp4a_q4k_gemv_k4096_n4096_w3;

/* y[1024] = W[1024,4096] x[4096], weights q4_k, activations q8_1, num_warps 3.  sm_75, block 96, grid min(1024, sm_count*16), 24 bytes shared. */
extern const ptxgen_kernel llama_mwv_dp4a_q4k_gemv_k4096_n1024_w3;

/* y[14336] = W[14336,4096] x[4096], weights q4_k, activations q8_1, num_warps 3.  sm_75, block 96, grid min(14336, sm_count*16), 24 bytes shared. */
extern const ptxgen_kernel llama_mwv_dp4a_q4k_gemv_k4096_n14336_w3;

/* y[4096] = W[4096,14336] x[14336], weights q4_k, activations q8_1, num_warps 3.  sm_75, block 96, grid min(4096, sm_count*16), 24 bytes shared. */
extern const ptxgen_kernel llama_mwv_dp4a_q4k_gemv_k14336_n4096_w3;

/* o[h] = softmax(q[h] K' scale) V, activations f32, head_dim 128, num_heads 32, num_kv_heads 8, max_seq_len 8192.  sm_75, block 32, grid 32. */
extern const ptxgen_kernel llama_incremental_attention_d128_h32_kv8_s8192;

/* o[h] = softmax(q[h] K' scale) V, activations f32, head_dim 128, num_heads 32, num_kv_heads 8, max_seq_len 8192, indirect seq_len.  sm_75, block 32, grid 32. */
extern const ptxgen_kernel llama_incremental_attention_d128_h32_kv8_s8192_indirect;

/* o[h] = softmax(q[h] K' scale) V, activations f32, head_dim 128, num_heads 32, num_kv_heads 8, max_seq_len 8192, num_warps 4, f16 kv_type.  sm_75, block 128, grid 32, 2112 bytes shared. */
extern const ptxgen_kernel llama_multi_warp_attention_d128_h32_kv8_s8192_w4_f16;

/* partials[4,h,c] = sum over chunk c of exp(s-max) V[4], max, sum of exp(s-max), activations f32, head_dim 128, num_heads 32, num_kv_heads 8, max_seq_len 32768, chunk_size 128, f16 kv_type.  sm_75, block 32, grid 32 x 4 x 256. */
extern const ptxgen_kernel llama_flash_decoding_chunk_d128_h32_kv8_s32768_m4_c128_f16;

/* o[4,h] = sum over c of partials[4,h,c], activations f32, head_dim 128, num_heads 32, num_kv_heads 8, max_seq_len 32768, chunk_size 128.  sm_75, block 32, grid 32 x 4. */
extern const ptxgen_kernel llama_flash_decoding_reduce_d128_h32_kv8_s32768_m4_c128;

/* o[m,h] = softmax(q[m,h] K[m]' scale) V[m]. Steps: flash_decoding_chunk_d128_h32_kv8_s32768_m4_c128_f16, flash_decoding_reduce_d128_h32_kv8_s32768_m4_c128. Workspace 17301504 bytes. */
extern const ptxgen_pipeline llama_flash_decoding_d128_h32_kv8_s32768_m4_c128_f16;
#define LLAMA_FLASH_DECODING_D128_H32_KV8_S32768_M4_C128_F16_WORKSPACE ((size_t)17301504)


#ifdef __cplusplus
}
#endif
#endif /* llama_KERNELS_H */

#if defined(LLAMA_WITH_CUDA) && !defined(llama_KERNELS_CUDA)
#define llama_KERNELS_CUDA

/* What loads and launches kernels, the same in every header that ptxgen writes. Nothing here calls
 * the driver by name, so that the program needs no libcuda to link or to start. */
#ifndef PTXGEN_DRIVER
#define PTXGEN_DRIVER

/* The types of the CUDA driver API: those of <cuda.h>, or of a stand-in for it that defines
 * CUDA_VERSION, where you have included it or the compiler finds it. Else types of the same size
 * under names of our own, which no <cuda.h> that comes later knows. */
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
typedef unsigned ptxgen_result; /* as C enumerations are */
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

/* What cuLaunchKernelEx takes, CUlaunchConfig with a CUlaunchAttribute, of which not every cuda.h
 * knows: types of our own that are the same. */
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

/* The argument of cuMemcpy2DAsync, CUDA_MEMCPY2D. */
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

/* The driver's own numbers: PTXGEN_CUDA_ERROR_NOT_FOUND is CUDA_ERROR_NOT_FOUND. */
#define PTXGEN_CUDA_SUCCESS                    ((ptxgen_result)0)
#define PTXGEN_CUDA_ERROR_INVALID_VALUE        ((ptxgen_result)1)
#define PTXGEN_CUDA_ERROR_OUT_OF_MEMORY        ((ptxgen_result)2)
#define PTXGEN_CUDA_ERROR_NOT_INITIALIZED      ((ptxgen_result)3)
#define PTXGEN_CUDA_ERROR_INVALID_IMAGE        ((ptxgen_result)200)
#define PTXGEN_CUDA_ERROR_NO_BINARY_FOR_GPU    ((ptxgen_result)209)
#define PTXGEN_CUDA_ERROR_INVALID_HANDLE       ((ptxgen_result)400)
#define PTXGEN_CUDA_ERROR_NOT_FOUND            ((ptxgen_result)500)
#define PTXGEN_CUDA_ERROR_CAPTURE_UNSUPPORTED  ((ptxgen_result)900)
#define PTXGEN_CU_MULTIPROCESSOR_COUNT         ((ptxgen_device_attribute)16)
#define PTXGEN_CU_COMPUTE_CAPABILITY_MAJOR     ((ptxgen_device_attribute)75)
#define PTXGEN_CU_COMPUTE_CAPABILITY_MINOR     ((ptxgen_device_attribute)76)
#define PTXGEN_CU_SHARED_MEMORY_A_BLOCK_OPTIN  ((ptxgen_device_attribute)97)
#define PTXGEN_CU_MAX_DYNAMIC_SHARED           ((ptxgen_function_attribute)8)
#define PTXGEN_CU_JIT_ERROR_LOG                ((ptxgen_jit_option)5)
#define PTXGEN_CU_JIT_ERROR_LOG_SIZE           ((ptxgen_jit_option)6)

/* Define it as assert, before including, to be stopped in a debugger where a kernel is launched
 * that was not loaded. Left alone, nothing stops the program: what is wrong comes back as a
 * ptxgen_result, a CUresult. */
#ifndef PTXGEN_ASSERT
#define PTXGEN_ASSERT(condition) ((void)0)
#endif

/* cuda.h renames what it has per-thread default streams for; look up what a call would reach. */
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

/* The address of device memory that a kernel only reads. A ptxgen_deviceptr is a number, of which the
 * compiler can't watch what it points to; the parameters of launch functions say it in their types:
 * ptxgen_deviceptr, which is CUdeviceptr, is written, ptxgen_const_deviceptr is not. */
typedef ptxgen_deviceptr ptxgen_const_deviceptr;

/* The address of a driver's entry point, or NULL: dlsym itself, library being what
 * dlopen("libcuda.so.1", RTLD_NOW) gave, or a function of yours over GetProcAddress. */
typedef void *(*ptxgen_lookup)(void *library, const char *name);

/* Entry points of the driver, and what of a device decides how kernels are loaded and launched. */
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

    /* What a decoder takes beside these, and kernels alone do not. */
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

    /* And what launches take that overlap; without these none does. */
    ptxgen_result(PTXGEN_CUDAAPI *get_version)(int *version);
    ptxgen_result(PTXGEN_CUDAAPI *launch_kernel_ex)(const ptxgen_launch_config *config,
                                                    ptxgen_function function, void **arguments,
                                                    void **extra);

    unsigned sm;           /* compute capability, times ten; 0: not initialised */
    unsigned sm_count;     /* multiprocessors */
    unsigned shared_block; /* bytes of shared memory a block may opt into */
    int overlaps;          /* 1: launches may start before the one ahead of them has finished */

    /* Set it to be told in words, such as "q4k_gemv_k4096_n4096: w is misaligned: 16 bytes are
     * needed", why a launch comes back with CUDA_ERROR_INVALID_VALUE or _HANDLE before the driver
     * sees it, and what a decoder refuses. NULL: nobody is. */
    void (*report)(void *context, const char *why);
    void *report_context;
} ptxgen_driver;

/* A kernel in a context; all 0 before it is loaded. */
typedef struct ptxgen_loaded_kernel {
    const ptxgen_kernel *kernel; /* of those of its name the newest that the device can launch */
    ptxgen_module module;
    ptxgen_function function;
    int is_new; /* while all are loaded: this one was not before */
} ptxgen_loaded_kernel;

/* Where loading failed: the kernel, and what the driver's JIT compiler said of its PTX, or why the
 * driver was not given it; "" where the failure is of another kind. */
typedef struct ptxgen_load_error {
    const ptxgen_kernel *kernel;
    char log[4096];
} ptxgen_load_error;

static inline void ptxgen_look_up(ptxgen_lookup lookup, void *library, const char *name,
                                  void *entry)
{
    void *found = lookup(library, name);
    memcpy(entry, &found, sizeof found); /* C has no conversion to a pointer to a function */
}

static inline ptxgen_result ptxgen_ask_device(const ptxgen_driver *driver, ptxgen_device device,
                                         ptxgen_device_attribute attribute, unsigned *value)
{
    int answer = 0;
    ptxgen_result result = driver->device_get_attribute(&answer, attribute, device);
    *value = (unsigned)answer;
    return result;
}

/* Finds the entry points. One that the driver lacks is NULL. */
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
    ptxgen_look_up(lookup, library, "cuDriverGetVersion", &driver->get_version);
    ptxgen_look_up(lookup, library, PTXGEN_LAUNCH_KERNEL_EX, &driver->launch_kernel_ex);
}

/* Whether launches may overlap: the device is of compute capability 9.0 or newer, and the driver one
 * of CUDA 12.3 or newer, with which graphs have such launches too. */
static inline int ptxgen_driver_overlaps(const ptxgen_driver *driver)
{
    const int first_with_graphs = 12030;
    int version = 0;
    return driver->sm >= 90 && driver->launch_kernel_ex && driver->get_version &&
           driver->get_version(&version) == PTXGEN_CUDA_SUCCESS && version >= first_with_graphs;
}

/* Asks for the device of the current context. CUDA_ERROR_NOT_FOUND where an entry point is missing
 * that kernels take, else what the driver says. */
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
        result = ptxgen_ask_device(driver, device, PTXGEN_CU_MULTIPROCESSOR_COUNT,
                                   &driver->sm_count);
    if (result == PTXGEN_CUDA_SUCCESS)
        result =
            ptxgen_ask_device(driver, device, PTXGEN_CU_SHARED_MEMORY_A_BLOCK_OPTIN,
                              &driver->shared_block);
    if (result == PTXGEN_CUDA_SUCCESS)
        result =
            ptxgen_ask_device(driver, device, PTXGEN_CU_COMPUTE_CAPABILITY_MAJOR, &major);
    if (result == PTXGEN_CUDA_SUCCESS)
        result =
            ptxgen_ask_device(driver, device, PTXGEN_CU_COMPUTE_CAPABILITY_MINOR, &minor);
    if (result == PTXGEN_CUDA_SUCCESS)
        driver->sm = major * 10 + minor;
    driver->overlaps = ptxgen_driver_overlaps(driver);
    return result;
}

/* Bytes of dynamic shared memory that a block of the kernel can have. */
static inline unsigned ptxgen_most_dynamic_shared(const ptxgen_driver *driver,
                                                  const ptxgen_kernel *kernel)
{
    return driver->shared_block - PTXGEN_MIN(driver->shared_block, kernel->shared_static);
}

/* Above 48 KiB a kernel has to opt into its shared memory. Where run-time values decide how much,
 * it may have all that a block can. */
static inline ptxgen_result ptxgen_allow_shared(const ptxgen_driver *driver, const ptxgen_kernel *kernel,
                                           ptxgen_function function)
{
    const unsigned without_asking = 48 * 1024;
    unsigned dynamic =
        kernel->shared_at ? ptxgen_most_dynamic_shared(driver, kernel) : kernel->shared_dynamic;
    if (kernel->shared_static + dynamic <= without_asking)
        return PTXGEN_CUDA_SUCCESS;
    return driver->func_set_attribute(function, PTXGEN_CU_MAX_DYNAMIC_SHARED,
                                      (int)dynamic);
}

/* Loads one kernel into an empty *loaded, which stays empty on failure. CUDA_ERROR_INVALID_IMAGE
 * where its PTX is not what ptxgen made or verified. */
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

/* Writes why the device launches no kernel of a name into the log. */
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
        ptxgen_say_number(&text, " bytes of shared memory a block, the device allows ",
                          (int64_t)driver->shared_block);
    } else {
        ptxgen_say_number(&text, "the kernel needs sm_", (int64_t)kernels[0]->sm);
        ptxgen_say(&text, kernels[0]->specific ? "a" : " or newer");
        ptxgen_say_number(&text, ", the device is sm_", (int64_t)driver->sm);
    }
}

/* Loads, of kernels of one name, the newest that the device runs and has the shared memory for;
 * nothing where one is loaded. If there is none, CUDA_ERROR_NO_BINARY_FOR_GPU, and error->log says why. */
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

/* How many kernels have the name of the first: one for each target that it differs for. */
static inline size_t ptxgen_same_name(const ptxgen_kernel *const *kernels, size_t count)
{
    size_t same = 1;
    while (same < count && strcmp(kernels[same]->name, kernels[0]->name) == 0)
        same++;
    return same;
}

/* A kernel's place among the loaded ones: that of the first of its name in the table; count where it
 * is NULL or has none. */
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

/* Unloads the new ones, or all. */
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

/* Reports "NAME: WHAT" and a number in the middle of that, if not 0, and returns the result. */
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

/* Checks an argument of a kernel or a pipeline: a pointer is not 0, and aligned as loads rely on; a
 * number is one that the configuration takes. */
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

/* Checks the arguments of a kernel. The sizes among them go to *run. */
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

/* What cuLaunchKernel or a node of a graph wants for a launch; see ptxgen_launch for what is
 * refused. params keeps pointers to the arguments. */
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
        return ptxgen_refuse(driver, PTXGEN_CUDA_ERROR_INVALID_HANDLE, "a kernel", "not loaded", "",
                             0, "");
    run.sm_count = driver->sm_count;
    if (argument_count != kernel->param_count)
        return ptxgen_refuse(driver, PTXGEN_CUDA_ERROR_INVALID_VALUE, kernel->name,
                             "as many arguments are needed as it has parameters, ",
                             "", (int64_t)kernel->param_count, "");
    result = ptxgen_read_arguments(driver, kernel, arguments, &run);
    if (result != PTXGEN_CUDA_SUCCESS)
        return result;
    if (!ptxgen_grid(kernel, &run, grid))
        return ptxgen_refuse(driver, PTXGEN_CUDA_ERROR_INVALID_VALUE, kernel->name,
                             "there would be more blocks than a grid can have", "", 0, "");
    shared = ptxgen_shared(kernel, &run);
    if (shared > ptxgen_most_dynamic_shared(driver, kernel))
        return ptxgen_refuse(driver, PTXGEN_CUDA_ERROR_INVALID_VALUE, kernel->name,
                             "a block has no room for ", "", (int64_t)shared,
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

/* Has a launch start before the kernel ahead of it in its stream has finished, for which it waits
 * itself. */
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

/* The same as ptxgen_launch, but where early is not 0 device, driver and kernel may overlap the
 * launch with the one ahead of it in its stream. Each launch ahead, from the last one on that is not
 * early, has to wait for those ahead of it, as kernels do that overlap. */
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

/* Launches a loaded kernel, whichever it is. arguments are one pointer to each of its parameters,
 * of which kernels that one query may find have different ones: see kernel->params. Grid and shared
 * memory follow from them and the device. CUDA_ERROR_INVALID_HANDLE where it is not loaded,
 * CUDA_ERROR_INVALID_VALUE where there are more or fewer arguments than it has parameters, one is
 * none that it takes, or sizes make more blocks or shared memory than the device can have, else what
 * the driver says. driver->report is told which. */
static inline ptxgen_result ptxgen_launch(const ptxgen_driver *driver,
                                     const ptxgen_loaded_kernel *loaded, ptxgen_stream stream,
                                     void **arguments, size_t argument_count)
{
    return ptxgen_launch_in_turn(driver, loaded, stream, arguments, argument_count, 0);
}

/* A launch as a node of a graph: cuGraphAddKernelNode takes &node->params, and
 * cuGraphExecKernelNodeSetParams to change an instance of the graph. It holds the arguments; params
 * points to them, so that a copy of it does not serve. */
typedef struct ptxgen_node {
    ptxgen_node_params params;
    void *arguments[PTXGEN_MOST_ARGUMENTS];
    uint64_t values[PTXGEN_MOST_ARGUMENTS];
} ptxgen_node;

/* Fills a node for a launch that ptxgen_launch would do with these arguments; refused as there. */
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

/* Returns how many rows a launch of a pipeline has, where its arguments say it; else 1. */
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

/* Checks what the caller of a pipeline gives, by the pipeline's own names: all steps are loaded, there
 * are as many arguments as buffers, no pointer is 0 or misaligned, no number is one that the pipeline
 * does not take, and the workspace is large enough. */
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
                             "as many arguments are needed as it has buffers, ",
                             "", (int64_t)pipeline->buffer_count, "");
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

/* Fills a node for each step of a pipeline, pipeline->step_count of them: a graph adds them one
 * after the other, each with the one ahead of it as its dependency. Arguments, workspace and what is
 * refused are as for ptxgen_launch_pipeline_in. */
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

/* Launches the steps of a pipeline in their order, on one stream. loaded are all kernels of its
 * header; arguments are one pointer to each of the pipeline's buffers; workspace is device memory of
 * workspace_bytes, at least ptxgen_workspace, aligned to 16, that nothing else uses until the
 * last step is done. Everything is checked before the first launch: CUDA_ERROR_INVALID_HANDLE where
 * a step is not loaded, CUDA_ERROR_INVALID_VALUE for what else is wrong. */
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

/* The kernels of this header in one context. It is yours: keep one for each context, initialise and
 * load it in one thread, then launch from as many as you like. Calls want its context to be
 * current; they print nothing, and keep nothing elsewhere. */
typedef struct llama_cuda {
    ptxgen_driver driver;
    ptxgen_loaded_kernel kernels[28];
} llama_cuda;

/* Finds the entry points and asks for the device; loads nothing. CUDA_ERROR_NOT_FOUND where the
 * driver lacks an entry point, else what the driver says. A program that has the entry points
 * already zeroes *cuda, puts them into cuda->driver and calls ptxgen_driver_ask(&cuda->driver). */
static inline ptxgen_result llama_cuda_init(llama_cuda *cuda, ptxgen_lookup lookup, void *library)
{
    memset(cuda, 0, sizeof *cuda);
    ptxgen_driver_look_up(&cuda->driver, lookup, library);
    return ptxgen_driver_ask(&cuda->driver);
}

/* Loads a kernel, for the device the best of those of its name; does nothing where it is loaded.
 * error may be NULL. CUDA_ERROR_NOT_FOUND where kernel is NULL, as llama_find gives it for what
 * was not generated, or of another header; CUDA_ERROR_NO_BINARY_FOR_GPU where the device is too
 * old or has less shared memory than each of its name needs: error->log says which. */
static inline ptxgen_result llama_load(llama_cuda *cuda, const ptxgen_kernel *kernel,
                                     ptxgen_load_error *error)
{
    return ptxgen_load_in(&cuda->driver, cuda->kernels, llama_kernels, 28,
                          kernel, error);
}

/* Loads all kernels that the device can launch, or none: of one that fails, error has the
 * kernel and the log, and what this call had loaded before it is unloaded. */
static inline ptxgen_result llama_load_all(llama_cuda *cuda, ptxgen_load_error *error)
{
    return ptxgen_load_all_in(&cuda->driver, cuda->kernels, llama_kernels, 28,
                              error);
}

/* What ptxgen_launch needs of a kernel that llama_find gave, loaded or not; NULL for NULL. */
static inline const ptxgen_loaded_kernel *llama_loaded(const llama_cuda *cuda,
                                                          const ptxgen_kernel *kernel)
{
    size_t place = ptxgen_place_in(llama_kernels, 28, kernel);
    return place < 28 ? &cuda->kernels[place] : NULL;
}

/* Unloads all kernels that are loaded. */
static inline ptxgen_result llama_unload(llama_cuda *cuda)
{
    return ptxgen_unload_in(&cuda->driver, cuda->kernels, 28, 0);
}

/* Launches a pipeline that llama_find_pipeline gave; see ptxgen_launch_pipeline_in. */
static inline ptxgen_result llama_launch_pipeline(const llama_cuda *cuda,
                                                const ptxgen_pipeline *pipeline, ptxgen_stream stream,
                                                void **arguments, size_t argument_count,
                                                ptxgen_deviceptr workspace, size_t workspace_bytes)
{
    return ptxgen_launch_pipeline_in(&cuda->driver, cuda->kernels, pipeline, stream, arguments,
                                     argument_count, workspace, workspace_bytes);
}

/* Fills the nodes of a graph for the steps of a pipeline; see ptxgen_fill_pipeline_nodes. */
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

/* For each kernel a function that loads it, as llama_load does but without a look-up, one that
 * launches it, with its parameters, and one that fills the node of a graph with that; see
 * ptxgen_launch for what they refuse. Launches of a kernel made for several targets take the one
 * that was loaded. */

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

static inline ptxgen_result llama_f32_gemv_dynamic_load(llama_cuda *cuda, ptxgen_load_error *error)
{
    static const ptxgen_kernel *const kernels[] = { &llama_f32_gemv_dynamic };
    return ptxgen_load_newest(&cuda->driver, &cuda->kernels[1], kernels, 1, error);
}

/* y out f32[n], w in f32[n*k], x in f32[k], k_dim in u32, n_dim in u32 */
static inline ptxgen_result llama_f32_gemv_dynamic_launch(
    const llama_cuda *cuda, ptxgen_stream stream,
    ptxgen_deviceptr y, ptxgen_const_deviceptr w, ptxgen_const_deviceptr x, uint32_t k_dim, uint32_t n_dim)
{
    void *arguments[] = { &y, &w, &x, &k_dim, &n_dim };
    return ptxgen_launch(&cuda->driver, &cuda->kernels[1], stream, arguments, 5);
}

static inline ptxgen_result llama_f32_gemv_dynamic_node(
    const llama_cuda *cuda, ptxgen_node *node,
    ptxgen_deviceptr y, ptxgen_const_deviceptr w, ptxgen_const_deviceptr x, uint32_t k_dim, uint32_t n_dim)
{
    void *arguments[] = { &y, &w, &x, &k_dim, &n_dim };
    return ptxgen_fill_node(&cuda->driver, &cuda->kernels[1], node, arguments, 5);
}

static inline ptxgen_result llama_q4k_gemv_k4096_n1024_load(llama_cuda *cuda, ptxgen_load_error *error)
{
    static const ptxgen_kernel *const kernels[] = { &llama_q4k_gemv_k4096_n1024 };
    return ptxgen_load_newest(&cuda->driver, &cuda->kernels[2], kernels, 1, error);
}

/* y out f32[1024], w in q4_k[4194304], x in f32[4096] */
static inline ptxgen_result llama_q4k_gemv_k4096_n1024_launch(
    const llama_cuda *cuda, ptxgen_stream stream,
    ptxgen_deviceptr y, ptxgen_const_deviceptr w, ptxgen_const_deviceptr x)
{
    void *arguments[] = { &y, &w, &x };
    return ptxgen_launch(&cuda->driver, &cuda->kernels[2], stream, arguments, 3);
}

static inline ptxgen_result llama_q4k_gemv_k4096_n1024_node(
    const llama_cuda *cuda, ptxgen_node *node,
    ptxgen_deviceptr y, ptxgen_const_deviceptr w, ptxgen_const_deviceptr x)
{
    void *arguments[] = { &y, &w, &x };
    return ptxgen_fill_node(&cuda->driver, &cuda->kernels[2], node, arguments, 3);
}

static inline ptxgen_result llama_mwv_q4k_gemv_k4096_n4096_w2_load(llama_cuda *cuda, ptxgen_load_error *error)
{
    static const ptxgen_kernel *const kernels[] = { &llama_mwv_q4k_gemv_k4096_n4096_w2 };
    return ptxgen_load_newest(&cuda->driver, &cuda->kernels[3], kernels, 1, error);
}

/* y out f32[4096], w in q4_k[16777216], x in f32[4096] */
static inline ptxgen_result llama_mwv_q4k_gemv_k4096_n4096_w2_launch(
    const llama_cuda *cuda, ptxgen_stream stream,
    ptxgen_deviceptr y, ptxgen_const_deviceptr w, ptxgen_const_deviceptr x)
{
    void *arguments[] = { &y, &w, &x };
    return ptxgen_launch(&cuda->driver, &cuda->kernels[3], stream, arguments, 3);
}

static inline ptxgen_result llama_mwv_q4k_gemv_k4096_n4096_w2_node(
    const llama_cuda *cuda, ptxgen_node *node,
    ptxgen_deviceptr y, ptxgen_const_deviceptr w, ptxgen_const_deviceptr x)
{
    void *arguments[] = { &y, &w, &x };
    return ptxgen_fill_node(&cuda->driver, &cuda->kernels[3], node, arguments, 3);
}

static inline ptxgen_result llama_mwv_q4k_gemv_k4096_n4096_w4_load(llama_cuda *cuda, ptxgen_load_error *error)
{
    static const ptxgen_kernel *const kernels[] = { &llama_mwv_q4k_gemv_k4096_n4096_w4 };
    return ptxgen_load_newest(&cuda->driver, &cuda->kernels[4], kernels, 1, error);
}

/* y out f32[4096], w in q4_k[16777216], x in f32[4096] */
static inline ptxgen_result llama_mwv_q4k_gemv_k4096_n4096_w4_launch(
    const llama_cuda *cuda, ptxgen_stream stream,
    ptxgen_deviceptr y, ptxgen_const_deviceptr w, ptxgen_const_deviceptr x)
{
    void *arguments[] = { &y, &w, &x };
    return ptxgen_launch(&cuda->driver, &cuda->kernels[4], stream, arguments, 3);
}

static inline ptxgen_result llama_mwv_q4k_gemv_k4096_n4096_w4_node(
    const llama_cuda *cuda, ptxgen_node *node,
    ptxgen_deviceptr y, ptxgen_const_deviceptr w, ptxgen_const_deviceptr x)
{
    void *arguments[] = { &y, &w, &x };
    return ptxgen_fill_node(&cuda->driver, &cuda->kernels[4], node, arguments, 3);
}

static inline ptxgen_result llama_mwv_q4k_gemv_k4096_n1024_w2_load(llama_cuda *cuda, ptxgen_load_error *error)
{
    static const ptxgen_kernel *const kernels[] = { &llama_mwv_q4k_gemv_k4096_n1024_w2 };
    return ptxgen_load_newest(&cuda->driver, &cuda->kernels[5], kernels, 1, error);
}

/* y out f32[1024], w in q4_k[4194304], x in f32[4096] */
static inline ptxgen_result llama_mwv_q4k_gemv_k4096_n1024_w2_launch(
    const llama_cuda *cuda, ptxgen_stream stream,
    ptxgen_deviceptr y, ptxgen_const_deviceptr w, ptxgen_const_deviceptr x)
{
    void *arguments[] = { &y, &w, &x };
    return ptxgen_launch(&cuda->driver, &cuda->kernels[5], stream, arguments, 3);
}

static inline ptxgen_result llama_mwv_q4k_gemv_k4096_n1024_w2_node(
    const llama_cuda *cuda, ptxgen_node *node,
    ptxgen_deviceptr y, ptxgen_const_deviceptr w, ptxgen_const_deviceptr x)
{
    void *arguments[] = { &y, &w, &x };
    return ptxgen_fill_node(&cuda->driver, &cuda->kernels[5], node, arguments, 3);
}

static inline ptxgen_result llama_mwv_q4k_gemv_k4096_n1024_w4_load(llama_cuda *cuda, ptxgen_load_error *error)
{
    static const ptxgen_kernel *const kernels[] = { &llama_mwv_q4k_gemv_k4096_n1024_w4 };
    return ptxgen_load_newest(&cuda->driver, &cuda->kernels[6], kernels, 1, error);
}

/* y out f32[1024], w in q4_k[4194304], x in f32[4096] */
static inline ptxgen_result llama_mwv_q4k_gemv_k4096_n1024_w4_launch(
    const llama_cuda *cuda, ptxgen_stream stream,
    ptxgen_deviceptr y, ptxgen_const_deviceptr w, ptxgen_const_deviceptr x)
{
    void *arguments[] = { &y, &w, &x };
    return ptxgen_launch(&cuda->driver, &cuda->kernels[6], stream, arguments, 3);
}

static inline ptxgen_result llama_mwv_q4k_gemv_k4096_n1024_w4_node(
    const llama_cuda *cuda, ptxgen_node *node,
    ptxgen_deviceptr y, ptxgen_const_deviceptr w, ptxgen_const_deviceptr x)
{
    void *arguments[] = { &y, &w, &x };
    return ptxgen_fill_node(&cuda->driver, &cuda->kernels[6], node, arguments, 3);
}

static inline ptxgen_result llama_mwv_q4k_gemv_k4096_n14336_w2_load(llama_cuda *cuda, ptxgen_load_error *error)
{
    static const ptxgen_kernel *const kernels[] = { &llama_mwv_q4k_gemv_k4096_n14336_w2 };
    return ptxgen_load_newest(&cuda->driver, &cuda->kernels[7], kernels, 1, error);
}

/* y out f32[14336], w in q4_k[58720256], x in f32[4096] */
static inline ptxgen_result llama_mwv_q4k_gemv_k4096_n14336_w2_launch(
    const llama_cuda *cuda, ptxgen_stream stream,
    ptxgen_deviceptr y, ptxgen_const_deviceptr w, ptxgen_const_deviceptr x)
{
    void *arguments[] = { &y, &w, &x };
    return ptxgen_launch(&cuda->driver, &cuda->kernels[7], stream, arguments, 3);
}

static inline ptxgen_result llama_mwv_q4k_gemv_k4096_n14336_w2_node(
    const llama_cuda *cuda, ptxgen_node *node,
    ptxgen_deviceptr y, ptxgen_const_deviceptr w, ptxgen_const_deviceptr x)
{
    void *arguments[] = { &y, &w, &x };
    return ptxgen_fill_node(&cuda->driver, &cuda->kernels[7], node, arguments, 3);
}

static inline ptxgen_result llama_mwv_q4k_gemv_k4096_n14336_w4_load(llama_cuda *cuda, ptxgen_load_error *error)
{
    static const ptxgen_kernel *const kernels[] = { &llama_mwv_q4k_gemv_k4096_n14336_w4 };
    return ptxgen_load_newest(&cuda->driver, &cuda->kernels[8], kernels, 1, error);
}

/* y out f32[14336], w in q4_k[58720256], x in f32[4096] */
static inline ptxgen_result llama_mwv_q4k_gemv_k4096_n14336_w4_launch(
    const llama_cuda *cuda, ptxgen_stream stream,
    ptxgen_deviceptr y, ptxgen_const_deviceptr w, ptxgen_const_deviceptr x)
{
    void *arguments[] = { &y, &w, &x };
    return ptxgen_launch(&cuda->driver, &cuda->kernels[8], stream, arguments, 3);
}

static inline ptxgen_result llama_mwv_q4k_gemv_k4096_n14336_w4_node(
    const llama_cuda *cuda, ptxgen_node *node,
    ptxgen_deviceptr y, ptxgen_const_deviceptr w, ptxgen_const_deviceptr x)
{
    void *arguments[] = { &y, &w, &x };
    return ptxgen_fill_node(&cuda->driver, &cuda->kernels[8], node, arguments, 3);
}

static inline ptxgen_result llama_mwv_q4k_gemv_k14336_n4096_w2_load(llama_cuda *cuda, ptxgen_load_error *error)
{
    static const ptxgen_kernel *const kernels[] = { &llama_mwv_q4k_gemv_k14336_n4096_w2 };
    return ptxgen_load_newest(&cuda->driver, &cuda->kernels[9], kernels, 1, error);
}

/* y out f32[4096], w in q4_k[58720256], x in f32[14336] */
static inline ptxgen_result llama_mwv_q4k_gemv_k14336_n4096_w2_launch(
    const llama_cuda *cuda, ptxgen_stream stream,
    ptxgen_deviceptr y, ptxgen_const_deviceptr w, ptxgen_const_deviceptr x)
{
    void *arguments[] = { &y, &w, &x };
    return ptxgen_launch(&cuda->driver, &cuda->kernels[9], stream, arguments, 3);
}

static inline ptxgen_result llama_mwv_q4k_gemv_k14336_n4096_w2_node(
    const llama_cuda *cuda, ptxgen_node *node,
    ptxgen_deviceptr y, ptxgen_const_deviceptr w, ptxgen_const_deviceptr x)
{
    void *arguments[] = { &y, &w, &x };
    return ptxgen_fill_node(&cuda->driver, &cuda->kernels[9], node, arguments, 3);
}

static inline ptxgen_result llama_mwv_q4k_gemv_k14336_n4096_w4_load(llama_cuda *cuda, ptxgen_load_error *error)
{
    static const ptxgen_kernel *const kernels[] = { &llama_mwv_q4k_gemv_k14336_n4096_w4 };
    return ptxgen_load_newest(&cuda->driver, &cuda->kernels[10], kernels, 1, error);
}

/* y out f32[4096], w in q4_k[58720256], x in f32[14336] */
static inline ptxgen_result llama_mwv_q4k_gemv_k14336_n4096_w4_launch(
    const llama_cuda *cuda, ptxgen_stream stream,
    ptxgen_deviceptr y, ptxgen_const_deviceptr w, ptxgen_const_deviceptr x)
{
    void *arguments[] = { &y, &w, &x };
    return ptxgen_launch(&cuda->driver, &cuda->kernels[10], stream, arguments, 3);
}

static inline ptxgen_result llama_mwv_q4k_gemv_k14336_n4096_w4_node(
    const llama_cuda *cuda, ptxgen_node *node,
    ptxgen_deviceptr y, ptxgen_const_deviceptr w, ptxgen_const_deviceptr x)
{
    void *arguments[] = { &y, &w, &x };
    return ptxgen_fill_node(&cuda->driver, &cuda->kernels[10], node, arguments, 3);
}

static inline ptxgen_result llama_mwv_q4k_gemv_k4096_n128256_w4_load(llama_cuda *cuda, ptxgen_load_error *error)
{
    static const ptxgen_kernel *const kernels[] = { &llama_mwv_q4k_gemv_k4096_n128256_w4 };
    return ptxgen_load_newest(&cuda->driver, &cuda->kernels[11], kernels, 1, error);
}

/* y out f32[128256], w in q4_k[525336576], x in f32[4096] */
static inline ptxgen_result llama_mwv_q4k_gemv_k4096_n128256_w4_launch(
    const llama_cuda *cuda, ptxgen_stream stream,
    ptxgen_deviceptr y, ptxgen_const_deviceptr w, ptxgen_const_deviceptr x)
{
    void *arguments[] = { &y, &w, &x };
    return ptxgen_launch(&cuda->driver, &cuda->kernels[11], stream, arguments, 3);
}

static inline ptxgen_result llama_mwv_q4k_gemv_k4096_n128256_w4_node(
    const llama_cuda *cuda, ptxgen_node *node,
    ptxgen_deviceptr y, ptxgen_const_deviceptr w, ptxgen_const_deviceptr x)
{
    void *arguments[] = { &y, &w, &x };
    return ptxgen_fill_node(&cuda->driver, &cuda->kernels[11], node, arguments, 3);
}

static inline ptxgen_result llama_mwv_q6k_gemv_k4096_n4096_w4_load(llama_cuda *cuda, ptxgen_load_error *error)
{
    static const ptxgen_kernel *const kernels[] = { &llama_mwv_q6k_gemv_k4096_n4096_w4 };
    return ptxgen_load_newest(&cuda->driver, &cuda->kernels[12], kernels, 1, error);
}

/* y out f32[4096], w in q6_k[16777216], x in f32[4096] */
static inline ptxgen_result llama_mwv_q6k_gemv_k4096_n4096_w4_launch(
    const llama_cuda *cuda, ptxgen_stream stream,
    ptxgen_deviceptr y, ptxgen_const_deviceptr w, ptxgen_const_deviceptr x)
{
    void *arguments[] = { &y, &w, &x };
    return ptxgen_launch(&cuda->driver, &cuda->kernels[12], stream, arguments, 3);
}

static inline ptxgen_result llama_mwv_q6k_gemv_k4096_n4096_w4_node(
    const llama_cuda *cuda, ptxgen_node *node,
    ptxgen_deviceptr y, ptxgen_const_deviceptr w, ptxgen_const_deviceptr x)
{
    void *arguments[] = { &y, &w, &x };
    return ptxgen_fill_node(&cuda->driver, &cuda->kernels[12], node, arguments, 3);
}

static inline ptxgen_result llama_stream_gemv_q6k_k4096_n4096_m1_w8_r2_load(llama_cuda *cuda, ptxgen_load_error *error)
{
    static const ptxgen_kernel *const kernels[] = { &llama_stream_gemv_q6k_k4096_n4096_m1_w8_r2 };
    return ptxgen_load_newest(&cuda->driver, &cuda->kernels[13], kernels, 1, error);
}

/* y out f32[4096], w in q6_k[16777216], x in f32[4096] */
static inline ptxgen_result llama_stream_gemv_q6k_k4096_n4096_m1_w8_r2_launch(
    const llama_cuda *cuda, ptxgen_stream stream,
    ptxgen_deviceptr y, ptxgen_const_deviceptr w, ptxgen_const_deviceptr x)
{
    void *arguments[] = { &y, &w, &x };
    return ptxgen_launch(&cuda->driver, &cuda->kernels[13], stream, arguments, 3);
}

static inline ptxgen_result llama_stream_gemv_q6k_k4096_n4096_m1_w8_r2_node(
    const llama_cuda *cuda, ptxgen_node *node,
    ptxgen_deviceptr y, ptxgen_const_deviceptr w, ptxgen_const_deviceptr x)
{
    void *arguments[] = { &y, &w, &x };
    return ptxgen_fill_node(&cuda->driver, &cuda->kernels[13], node, arguments, 3);
}

static inline ptxgen_result llama_stream_gemv_q6k_k4096_n4096_m1_w16_r2_load(llama_cuda *cuda, ptxgen_load_error *error)
{
    static const ptxgen_kernel *const kernels[] = { &llama_stream_gemv_q6k_k4096_n4096_m1_w16_r2 };
    return ptxgen_load_newest(&cuda->driver, &cuda->kernels[14], kernels, 1, error);
}

/* y out f32[4096], w in q6_k[16777216], x in f32[4096] */
static inline ptxgen_result llama_stream_gemv_q6k_k4096_n4096_m1_w16_r2_launch(
    const llama_cuda *cuda, ptxgen_stream stream,
    ptxgen_deviceptr y, ptxgen_const_deviceptr w, ptxgen_const_deviceptr x)
{
    void *arguments[] = { &y, &w, &x };
    return ptxgen_launch(&cuda->driver, &cuda->kernels[14], stream, arguments, 3);
}

static inline ptxgen_result llama_stream_gemv_q6k_k4096_n4096_m1_w16_r2_node(
    const llama_cuda *cuda, ptxgen_node *node,
    ptxgen_deviceptr y, ptxgen_const_deviceptr w, ptxgen_const_deviceptr x)
{
    void *arguments[] = { &y, &w, &x };
    return ptxgen_fill_node(&cuda->driver, &cuda->kernels[14], node, arguments, 3);
}

static inline ptxgen_result llama_stream_gemv_q8_0_k4096_n4096_m1_w12_r2_load(llama_cuda *cuda, ptxgen_load_error *error)
{
    static const ptxgen_kernel *const kernels[] = { &llama_stream_gemv_q8_0_k4096_n4096_m1_w12_r2 };
    return ptxgen_load_newest(&cuda->driver, &cuda->kernels[15], kernels, 1, error);
}

/* y out f32[4096], w in q8_0[16777216], x in f32[4096] */
static inline ptxgen_result llama_stream_gemv_q8_0_k4096_n4096_m1_w12_r2_launch(
    const llama_cuda *cuda, ptxgen_stream stream,
    ptxgen_deviceptr y, ptxgen_const_deviceptr w, ptxgen_const_deviceptr x)
{
    void *arguments[] = { &y, &w, &x };
    return ptxgen_launch(&cuda->driver, &cuda->kernels[15], stream, arguments, 3);
}

static inline ptxgen_result llama_stream_gemv_q8_0_k4096_n4096_m1_w12_r2_node(
    const llama_cuda *cuda, ptxgen_node *node,
    ptxgen_deviceptr y, ptxgen_const_deviceptr w, ptxgen_const_deviceptr x)
{
    void *arguments[] = { &y, &w, &x };
    return ptxgen_fill_node(&cuda->driver, &cuda->kernels[15], node, arguments, 3);
}

static inline ptxgen_result llama_stream_gemv_q8_0_k4096_n4096_m1_w16_r2_load(llama_cuda *cuda, ptxgen_load_error *error)
{
    static const ptxgen_kernel *const kernels[] = { &llama_stream_gemv_q8_0_k4096_n4096_m1_w16_r2 };
    return ptxgen_load_newest(&cuda->driver, &cuda->kernels[16], kernels, 1, error);
}

/* y out f32[4096], w in q8_0[16777216], x in f32[4096] */
static inline ptxgen_result llama_stream_gemv_q8_0_k4096_n4096_m1_w16_r2_launch(
    const llama_cuda *cuda, ptxgen_stream stream,
    ptxgen_deviceptr y, ptxgen_const_deviceptr w, ptxgen_const_deviceptr x)
{
    void *arguments[] = { &y, &w, &x };
    return ptxgen_launch(&cuda->driver, &cuda->kernels[16], stream, arguments, 3);
}

static inline ptxgen_result llama_stream_gemv_q8_0_k4096_n4096_m1_w16_r2_node(
    const llama_cuda *cuda, ptxgen_node *node,
    ptxgen_deviceptr y, ptxgen_const_deviceptr w, ptxgen_const_deviceptr x)
{
    void *arguments[] = { &y, &w, &x };
    return ptxgen_fill_node(&cuda->driver, &cuda->kernels[16], node, arguments, 3);
}

static inline ptxgen_result llama_q8_1_quantize_k4096_m1_w4_load(llama_cuda *cuda, ptxgen_load_error *error)
{
    static const ptxgen_kernel *const kernels[] = { &llama_q8_1_quantize_k4096_m1_w4 };
    return ptxgen_load_newest(&cuda->driver, &cuda->kernels[17], kernels, 1, error);
}

/* q8 out q8_1[4096], x in f32[4096] */
static inline ptxgen_result llama_q8_1_quantize_k4096_m1_w4_launch(
    const llama_cuda *cuda, ptxgen_stream stream,
    ptxgen_deviceptr q8, ptxgen_const_deviceptr x)
{
    void *arguments[] = { &q8, &x };
    return ptxgen_launch(&cuda->driver, &cuda->kernels[17], stream, arguments, 2);
}

static inline ptxgen_result llama_q8_1_quantize_k4096_m1_w4_node(
    const llama_cuda *cuda, ptxgen_node *node,
    ptxgen_deviceptr q8, ptxgen_const_deviceptr x)
{
    void *arguments[] = { &q8, &x };
    return ptxgen_fill_node(&cuda->driver, &cuda->kernels[17], node, arguments, 2);
}

static inline ptxgen_result llama_q8_1_quantize_k14336_m1_w4_load(llama_cuda *cuda, ptxgen_load_error *error)
{
    static const ptxgen_kernel *const kernels[] = { &llama_q8_1_quantize_k14336_m1_w4 };
    return ptxgen_load_newest(&cuda->driver, &cuda->kernels[18], kernels, 1, error);
}

/* q8 out q8_1[14336], x in f32[14336] */
static inline ptxgen_result llama_q8_1_quantize_k14336_m1_w4_launch(
    const llama_cuda *cuda, ptxgen_stream stream,
    ptxgen_deviceptr q8, ptxgen_const_deviceptr x)
{
    void *arguments[] = { &q8, &x };
    return ptxgen_launch(&cuda->driver, &cuda->kernels[18], stream, arguments, 2);
}

static inline ptxgen_result llama_q8_1_quantize_k14336_m1_w4_node(
    const llama_cuda *cuda, ptxgen_node *node,
    ptxgen_deviceptr q8, ptxgen_const_deviceptr x)
{
    void *arguments[] = { &q8, &x };
    return ptxgen_fill_node(&cuda->driver, &cuda->kernels[18], node, arguments, 2);
}

static inline ptxgen_result llama_mwv_dp4a_q4k_gemv_k4096_n4096_w3_load(llama_cuda *cuda, ptxgen_load_error *error)
{
    static const ptxgen_kernel *const kernels[] = { &llama_mwv_dp4a_q4k_gemv_k4096_n4096_w3 };
    return ptxgen_load_newest(&cuda->driver, &cuda->kernels[19], kernels, 1, error);
}

/* y out f32[4096], w in q4_k[16777216], x in q8_1[4096] */
static inline ptxgen_result llama_mwv_dp4a_q4k_gemv_k4096_n4096_w3_launch(
    const llama_cuda *cuda, ptxgen_stream stream,
    ptxgen_deviceptr y, ptxgen_const_deviceptr w, ptxgen_const_deviceptr x)
{
    void *arguments[] = { &y, &w, &x };
    return ptxgen_launch(&cuda->driver, &cuda->kernels[19], stream, arguments, 3);
}

static inline ptxgen_result llama_mwv_dp4a_q4k_gemv_k4096_n4096_w3_node(
    const llama_cuda *cuda, ptxgen_node *node,
    ptxgen_deviceptr y, ptxgen_const_deviceptr w, ptxgen_const_deviceptr x)
{
    void *arguments[] = { &y, &w, &x };
    return ptxgen_fill_node(&cuda->driver, &cuda->kernels[19], node, arguments, 3);
}

static inline ptxgen_result llama_mwv_dp4a_q4k_gemv_k4096_n1024_w3_load(llama_cuda *cuda, ptxgen_load_error *error)
{
    static const ptxgen_kernel *const kernels[] = { &llama_mwv_dp4a_q4k_gemv_k4096_n1024_w3 };
    return ptxgen_load_newest(&cuda->driver, &cuda->kernels[20], kernels, 1, error);
}

/* y out f32[1024], w in q4_k[4194304], x in q8_1[4096] */
static inline ptxgen_result llama_mwv_dp4a_q4k_gemv_k4096_n1024_w3_launch(
    const llama_cuda *cuda, ptxgen_stream stream,
    ptxgen_deviceptr y, ptxgen_const_deviceptr w, ptxgen_const_deviceptr x)
{
    void *arguments[] = { &y, &w, &x };
    return ptxgen_launch(&cuda->driver, &cuda->kernels[20], stream, arguments, 3);
}

static inline ptxgen_result llama_mwv_dp4a_q4k_gemv_k4096_n1024_w3_node(
    const llama_cuda *cuda, ptxgen_node *node,
    ptxgen_deviceptr y, ptxgen_const_deviceptr w, ptxgen_const_deviceptr x)
{
    void *arguments[] = { &y, &w, &x };
    return ptxgen_fill_node(&cuda->driver, &cuda->kernels[20], node, arguments, 3);
}

static inline ptxgen_result llama_mwv_dp4a_q4k_gemv_k4096_n14336_w3_load(llama_cuda *cuda, ptxgen_load_error *error)
{
    static const ptxgen_kernel *const kernels[] = { &llama_mwv_dp4a_q4k_gemv_k4096_n14336_w3 };
    return ptxgen_load_newest(&cuda->driver, &cuda->kernels[21], kernels, 1, error);
}

/* y out f32[14336], w in q4_k[58720256], x in q8_1[4096] */
static inline ptxgen_result llama_mwv_dp4a_q4k_gemv_k4096_n14336_w3_launch(
    const llama_cuda *cuda, ptxgen_stream stream,
    ptxgen_deviceptr y, ptxgen_const_deviceptr w, ptxgen_const_deviceptr x)
{
    void *arguments[] = { &y, &w, &x };
    return ptxgen_launch(&cuda->driver, &cuda->kernels[21], stream, arguments, 3);
}

static inline ptxgen_result llama_mwv_dp4a_q4k_gemv_k4096_n14336_w3_node(
    const llama_cuda *cuda, ptxgen_node *node,
    ptxgen_deviceptr y, ptxgen_const_deviceptr w, ptxgen_const_deviceptr x)
{
    void *arguments[] = { &y, &w, &x };
    return ptxgen_fill_node(&cuda->driver, &cuda->kernels[21], node, arguments, 3);
}

static inline ptxgen_result llama_mwv_dp4a_q4k_gemv_k14336_n4096_w3_load(llama_cuda *cuda, ptxgen_load_error *error)
{
    static const ptxgen_kernel *const kernels[] = { &llama_mwv_dp4a_q4k_gemv_k14336_n4096_w3 };
    return ptxgen_load_newest(&cuda->driver, &cuda->kernels[22], kernels, 1, error);
}

/* y out f32[4096], w in q4_k[58720256], x in q8_1[14336] */
static inline ptxgen_result llama_mwv_dp4a_q4k_gemv_k14336_n4096_w3_launch(
    const llama_cuda *cuda, ptxgen_stream stream,
    ptxgen_deviceptr y, ptxgen_const_deviceptr w, ptxgen_const_deviceptr x)
{
    void *arguments[] = { &y, &w, &x };
    return ptxgen_launch(&cuda->driver, &cuda->kernels[22], stream, arguments, 3);
}

static inline ptxgen_result llama_mwv_dp4a_q4k_gemv_k14336_n4096_w3_node(
    const llama_cuda *cuda, ptxgen_node *node,
    ptxgen_deviceptr y, ptxgen_const_deviceptr w, ptxgen_const_deviceptr x)
{
    void *arguments[] = { &y, &w, &x };
    return ptxgen_fill_node(&cuda->driver, &cuda->kernels[22], node, arguments, 3);
}

static inline ptxgen_result llama_incremental_attention_d128_h32_kv8_s8192_load(llama_cuda *cuda, ptxgen_load_error *error)
{
    static const ptxgen_kernel *const kernels[] = { &llama_incremental_attention_d128_h32_kv8_s8192 };
    return ptxgen_load_newest(&cuda->driver, &cuda->kernels[23], kernels, 1, error);
}

/* o out f32[4096], q in f32[4096], k in f32[8388608], v in f32[8388608],
    seq_len in u32 */
static inline ptxgen_result llama_incremental_attention_d128_h32_kv8_s8192_launch(
    const llama_cuda *cuda, ptxgen_stream stream,
    ptxgen_deviceptr o, ptxgen_const_deviceptr q, ptxgen_const_deviceptr k,
    ptxgen_const_deviceptr v, uint32_t seq_len)
{
    void *arguments[] = { &o, &q, &k, &v, &seq_len };
    return ptxgen_launch(&cuda->driver, &cuda->kernels[23], stream, arguments, 5);
}

static inline ptxgen_result llama_incremental_attention_d128_h32_kv8_s8192_node(
    const llama_cuda *cuda, ptxgen_node *node,
    ptxgen_deviceptr o, ptxgen_const_deviceptr q, ptxgen_const_deviceptr k,
    ptxgen_const_deviceptr v, uint32_t seq_len)
{
    void *arguments[] = { &o, &q, &k, &v, &seq_len };
    return ptxgen_fill_node(&cuda->driver, &cuda->kernels[23], node, arguments, 5);
}

static inline ptxgen_result llama_incremental_attention_d128_h32_kv8_s8192_indirect_load(llama_cuda *cuda, ptxgen_load_error *error)
{
    static const ptxgen_kernel *const kernels[] = { &llama_incremental_attention_d128_h32_kv8_s8192_indirect };
    return ptxgen_load_newest(&cuda->driver, &cuda->kernels[24], kernels, 1, error);
}

/* o out f32[4096], q in f32[4096], k in f32[8388608], v in f32[8388608],
    seq_len in u32[1] */
static inline ptxgen_result llama_incremental_attention_d128_h32_kv8_s8192_indirect_launch(
    const llama_cuda *cuda, ptxgen_stream stream,
    ptxgen_deviceptr o, ptxgen_const_deviceptr q, ptxgen_const_deviceptr k,
    ptxgen_const_deviceptr v, ptxgen_const_deviceptr seq_len)
{
    void *arguments[] = { &o, &q, &k, &v, &seq_len };
    return ptxgen_launch(&cuda->driver, &cuda->kernels[24], stream, arguments, 5);
}

static inline ptxgen_result llama_incremental_attention_d128_h32_kv8_s8192_indirect_node(
    const llama_cuda *cuda, ptxgen_node *node,
    ptxgen_deviceptr o, ptxgen_const_deviceptr q, ptxgen_const_deviceptr k,
    ptxgen_const_deviceptr v, ptxgen_const_deviceptr seq_len)
{
    void *arguments[] = { &o, &q, &k, &v, &seq_len };
    return ptxgen_fill_node(&cuda->driver, &cuda->kernels[24], node, arguments, 5);
}

static inline ptxgen_result llama_multi_warp_attention_d128_h32_kv8_s8192_w4_f16_load(llama_cuda *cuda, ptxgen_load_error *error)
{
    static const ptxgen_kernel *const kernels[] = { &llama_multi_warp_attention_d128_h32_kv8_s8192_w4_f16 };
    return ptxgen_load_newest(&cuda->driver, &cuda->kernels[25], kernels, 1, error);
}

/* o out f32[4096], q in f32[4096], k in f16[8388608], v in f16[8388608],
    seq_len in u32 */
static inline ptxgen_result llama_multi_warp_attention_d128_h32_kv8_s8192_w4_f16_launch(
    const llama_cuda *cuda, ptxgen_stream stream,
    ptxgen_deviceptr o, ptxgen_const_deviceptr q, ptxgen_const_deviceptr k,
    ptxgen_const_deviceptr v, uint32_t seq_len)
{
    void *arguments[] = { &o, &q, &k, &v, &seq_len };
    return ptxgen_launch(&cuda->driver, &cuda->kernels[25], stream, arguments, 5);
}

static inline ptxgen_result llama_multi_warp_attention_d128_h32_kv8_s8192_w4_f16_node(
    const llama_cuda *cuda, ptxgen_node *node,
    ptxgen_deviceptr o, ptxgen_const_deviceptr q, ptxgen_const_deviceptr k,
    ptxgen_const_deviceptr v, uint32_t seq_len)
{
    void *arguments[] = { &o, &q, &k, &v, &seq_len };
    return ptxgen_fill_node(&cuda->driver, &cuda->kernels[25], node, arguments, 5);
}

static inline ptxgen_result llama_flash_decoding_chunk_d128_h32_kv8_s32768_m4_c128_f16_load(llama_cuda *cuda, ptxgen_load_error *error)
{
    static const ptxgen_kernel *const kernels[] = { &llama_flash_decoding_chunk_d128_h32_kv8_s32768_m4_c128_f16 };
    return ptxgen_load_newest(&cuda->driver, &cuda->kernels[26], kernels, 1, error);
}

/* partials out f32[4325376], q in f32[16384], k in address[4], v in address[4],
    seq_lens in u32[4] */
static inline ptxgen_result llama_flash_decoding_chunk_d128_h32_kv8_s32768_m4_c128_f16_launch(
    const llama_cuda *cuda, ptxgen_stream stream,
    ptxgen_deviceptr partials, ptxgen_const_deviceptr q, ptxgen_const_deviceptr k,
    ptxgen_const_deviceptr v, ptxgen_const_deviceptr seq_lens)
{
    void *arguments[] = { &partials, &q, &k, &v, &seq_lens };
    return ptxgen_launch(&cuda->driver, &cuda->kernels[26], stream, arguments, 5);
}

static inline ptxgen_result llama_flash_decoding_chunk_d128_h32_kv8_s32768_m4_c128_f16_node(
    const llama_cuda *cuda, ptxgen_node *node,
    ptxgen_deviceptr partials, ptxgen_const_deviceptr q, ptxgen_const_deviceptr k,
    ptxgen_const_deviceptr v, ptxgen_const_deviceptr seq_lens)
{
    void *arguments[] = { &partials, &q, &k, &v, &seq_lens };
    return ptxgen_fill_node(&cuda->driver, &cuda->kernels[26], node, arguments, 5);
}

static inline ptxgen_result llama_flash_decoding_reduce_d128_h32_kv8_s32768_m4_c128_load(llama_cuda *cuda, ptxgen_load_error *error)
{
    static const ptxgen_kernel *const kernels[] = { &llama_flash_decoding_reduce_d128_h32_kv8_s32768_m4_c128 };
    return ptxgen_load_newest(&cuda->driver, &cuda->kernels[27], kernels, 1, error);
}

/* o out f32[16384], partials in f32[4325376], seq_lens in u32[4] */
static inline ptxgen_result llama_flash_decoding_reduce_d128_h32_kv8_s32768_m4_c128_launch(
    const llama_cuda *cuda, ptxgen_stream stream,
    ptxgen_deviceptr o, ptxgen_const_deviceptr partials, ptxgen_const_deviceptr seq_lens)
{
    void *arguments[] = { &o, &partials, &seq_lens };
    return ptxgen_launch(&cuda->driver, &cuda->kernels[27], stream, arguments, 3);
}

static inline ptxgen_result llama_flash_decoding_reduce_d128_h32_kv8_s32768_m4_c128_node(
    const llama_cuda *cuda, ptxgen_node *node,
    ptxgen_deviceptr o, ptxgen_const_deviceptr partials, ptxgen_const_deviceptr seq_lens)
{
    void *arguments[] = { &o, &partials, &seq_lens };
    return ptxgen_fill_node(&cuda->driver, &cuda->kernels[27], node, arguments, 3);
}

/* For each pipeline a function that loads the kernels of its steps, one that launches them in
 * their order, see ptxgen_launch_pipeline_in, and one that fills a node of a graph for each of
 * them, see ptxgen_fill_pipeline_nodes. */

static inline ptxgen_result llama_flash_decoding_d128_h32_kv8_s32768_m4_c128_f16_load(llama_cuda *cuda, ptxgen_load_error *error)
{
    ptxgen_result result = PTXGEN_CUDA_SUCCESS;
    if (result == PTXGEN_CUDA_SUCCESS)
        result = llama_flash_decoding_chunk_d128_h32_kv8_s32768_m4_c128_f16_load(cuda, error);
    if (result == PTXGEN_CUDA_SUCCESS)
        result = llama_flash_decoding_reduce_d128_h32_kv8_s32768_m4_c128_load(cuda, error);
    return result;
}

/* o out f32 (65536 bytes), q in f32 (65536 bytes), k in address (32 bytes),
    v in address (32 bytes), seq_lens in u32 (16 bytes), workspace (17301504 bytes) */
static inline ptxgen_result llama_flash_decoding_d128_h32_kv8_s32768_m4_c128_f16_launch(
    const llama_cuda *cuda, ptxgen_stream stream,
    ptxgen_deviceptr o, ptxgen_const_deviceptr q, ptxgen_const_deviceptr k,
    ptxgen_const_deviceptr v, ptxgen_const_deviceptr seq_lens,
    ptxgen_deviceptr workspace, size_t workspace_bytes)
{
    void *arguments[] = { &o, &q, &k, &v, &seq_lens };
    return ptxgen_launch_pipeline_in(&cuda->driver, cuda->kernels, &llama_flash_decoding_d128_h32_kv8_s32768_m4_c128_f16,
                                     stream, arguments, 5, workspace, workspace_bytes);
}

static inline ptxgen_result llama_flash_decoding_d128_h32_kv8_s32768_m4_c128_f16_node(
    const llama_cuda *cuda, ptxgen_node *nodes,
    ptxgen_deviceptr o, ptxgen_const_deviceptr q, ptxgen_const_deviceptr k,
    ptxgen_const_deviceptr v, ptxgen_const_deviceptr seq_lens,
    ptxgen_deviceptr workspace, size_t workspace_bytes)
{
    void *arguments[] = { &o, &q, &k, &v, &seq_lens };
    return ptxgen_fill_pipeline_nodes(&cuda->driver, cuda->kernels, &llama_flash_decoding_d128_h32_kv8_s32768_m4_c128_f16,
                                      nodes, arguments, 5, workspace, workspace_bytes);
}

/* For what variant = auto chose, functions whose names don't depend on the choice: they load and
 * launch the kernel that was chosen for the device. */

static inline ptxgen_result llama_gemv_q6k_k4096_n4096_m1_auto_load(llama_cuda *cuda, ptxgen_load_error *error)
{
    if (cuda->driver.sm >= 90)
        return llama_stream_gemv_q6k_k4096_n4096_m1_w16_r2_load(cuda, error);
    if (cuda->driver.sm >= 80)
        return llama_stream_gemv_q6k_k4096_n4096_m1_w8_r2_load(cuda, error);
    return llama_mwv_q6k_gemv_k4096_n4096_w4_load(cuda, error);
}

/* y out f32[4096], w in q6_k[16777216], x in f32[4096] */
static inline ptxgen_result llama_gemv_q6k_k4096_n4096_m1_auto_launch(
    const llama_cuda *cuda, ptxgen_stream stream,
    ptxgen_deviceptr y, ptxgen_const_deviceptr w, ptxgen_const_deviceptr x)
{
    if (cuda->driver.sm >= 90)
        return llama_stream_gemv_q6k_k4096_n4096_m1_w16_r2_launch(cuda, stream, y, w, x);
    if (cuda->driver.sm >= 80)
        return llama_stream_gemv_q6k_k4096_n4096_m1_w8_r2_launch(cuda, stream, y, w, x);
    return llama_mwv_q6k_gemv_k4096_n4096_w4_launch(cuda, stream, y, w, x);
}

static inline ptxgen_result llama_gemv_q6k_k4096_n4096_m1_auto_node(
    const llama_cuda *cuda, ptxgen_node *node,
    ptxgen_deviceptr y, ptxgen_const_deviceptr w, ptxgen_const_deviceptr x)
{
    if (cuda->driver.sm >= 90)
        return llama_stream_gemv_q6k_k4096_n4096_m1_w16_r2_node(cuda, node, y, w, x);
    if (cuda->driver.sm >= 80)
        return llama_stream_gemv_q6k_k4096_n4096_m1_w8_r2_node(cuda, node, y, w, x);
    return llama_mwv_q6k_gemv_k4096_n4096_w4_node(cuda, node, y, w, x);
}

static inline ptxgen_result llama_gemv_q8_0_k4096_n4096_m1_auto_load(llama_cuda *cuda, ptxgen_load_error *error)
{
    if (cuda->driver.sm >= 90)
        return llama_stream_gemv_q8_0_k4096_n4096_m1_w16_r2_load(cuda, error);
    return llama_stream_gemv_q8_0_k4096_n4096_m1_w12_r2_load(cuda, error);
}

/* y out f32[4096], w in q8_0[16777216], x in f32[4096] */
static inline ptxgen_result llama_gemv_q8_0_k4096_n4096_m1_auto_launch(
    const llama_cuda *cuda, ptxgen_stream stream,
    ptxgen_deviceptr y, ptxgen_const_deviceptr w, ptxgen_const_deviceptr x)
{
    if (cuda->driver.sm >= 90)
        return llama_stream_gemv_q8_0_k4096_n4096_m1_w16_r2_launch(cuda, stream, y, w, x);
    return llama_stream_gemv_q8_0_k4096_n4096_m1_w12_r2_launch(cuda, stream, y, w, x);
}

static inline ptxgen_result llama_gemv_q8_0_k4096_n4096_m1_auto_node(
    const llama_cuda *cuda, ptxgen_node *node,
    ptxgen_deviceptr y, ptxgen_const_deviceptr w, ptxgen_const_deviceptr x)
{
    if (cuda->driver.sm >= 90)
        return llama_stream_gemv_q8_0_k4096_n4096_m1_w16_r2_node(cuda, node, y, w, x);
    return llama_stream_gemv_q8_0_k4096_n4096_m1_w12_r2_node(cuda, node, y, w, x);
}

#ifdef __cplusplus
}
#endif
#endif /* LLAMA_WITH_CUDA */

#if defined(LLAMA_KERNELS_IMPLEMENTATION) && !defined(llama_KERNELS_IMPLEMENTED)
#define llama_KERNELS_IMPLEMENTED

/* Why a query finds nothing, in words; the same in every header that ptxgen writes. */
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
    };
    size_t index = (size_t)format;
    return index < sizeof names / sizeof *names ? names[index] : "of an unknown format";
}

/* How far a kernel's size is from the one wanted: 0 where it fits, else 1 to 10, by their ratio
 * where it is built in. */
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

/* How little a kernel has to do with a query; 0 where it fits. What a kernel computes weighs more
 * than its formats, these more than family and device, all of them more than options and these more
 * than sizes. */
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

/* "no gemv of family q4k_gemv with weights q4_k, k 4096, n 11008 for sm_80 was generated" */
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

/* "n is 14336", or what the kernel takes at run time. */
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

/* "window is 1024", "bias is not set", "scale is another". */
static inline void ptxgen_say_option(ptxgen_text *text, const ptxgen_config *key, const char *name)
{
    ptxgen_say(text, name);
    if (ptxgen_is_set_to(key, 0)) {
        ptxgen_say(text, " is not set");
    } else if (key->word) {
        ptxgen_say(text, " is ");
        ptxgen_say(text, key->word);
    } else if (key->real > 0) {
        ptxgen_say(text, " is another");
    } else {
        ptxgen_say_number(text, " is ", key->value);
    }
}

/* The first of a list stands in a parenthesis that it opens, the others behind a comma. */
static inline const char *ptxgen_say_next(ptxgen_text *text, const char *before, const char *what,
                                          const char *value)
{
    ptxgen_say(text, before);
    ptxgen_say(text, what);
    ptxgen_say(text, value);
    return ", ";
}

/* "weights are q4_k", or the format of a matrix of several that is not as wanted: "wv is q6_k". */
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

/* "q4k_gemv_k4096_n14336 (n is 14336)": a kernel and what of it is not as wanted. */
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
        before = ptxgen_say_next(text, before, "wants scratch memory", "");
    if (!ptxgen_fits_epsilon(kernel->config, kernel->config_count, query->epsilon))
        before = ptxgen_say_next(text, before, "epsilon is another", "");
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
        ptxgen_say_number(text, " bytes of shared memory a block, sm_", (int64_t)query->sm);
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
            ptxgen_say(&text, " (its kernels do not run there)");
    }
    return text.length;
}
#endif /* PTXGEN_EXPLAIN */

#ifdef __cplusplus
extern "C" {
#endif

/* PTX is longer than the 4095 characters that C99 promises to take. */
#ifdef __GNUC__
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Woverlength-strings"
#endif

static void llama_grid_0(const ptxgen_run *run, unsigned grid[3])
{
    if (run->n <= 0)
        return;
    grid[0] = ptxgen_extent(run->n, 2147483647);
    grid[1] = ptxgen_extent(1, 65535);
    grid[2] = ptxgen_extent(1, 65535);
}

static void llama_grid_1(const ptxgen_run *run, unsigned grid[3])
{
    if (run->n <= 0)
        return;
    if (run->sm_count <= 0)
        return;
    grid[0] = ptxgen_extent(PTXGEN_MIN(PTXGEN_CEIL_DIV(run->n, 16), run->sm_count * 2), 2147483647);
    grid[1] = ptxgen_extent(1, 65535);
    grid[2] = ptxgen_extent(1, 65535);
}

static void llama_grid_2(const ptxgen_run *run, unsigned grid[3])
{
    if (run->n <= 0)
        return;
    if (run->sm_count <= 0)
        return;
    grid[0] = ptxgen_extent(PTXGEN_MIN(PTXGEN_CEIL_DIV(run->n, 32), run->sm_count * 1), 2147483647);
    grid[1] = ptxgen_extent(1, 65535);
    grid[2] = ptxgen_extent(1, 65535);
}

static void llama_grid_3(const ptxgen_run *run, unsigned grid[3])
{
    if (run->n <= 0)
        return;
    if (run->sm_count <= 0)
        return;
    grid[0] = ptxgen_extent(PTXGEN_MIN(PTXGEN_CEIL_DIV(run->n, 24), run->sm_count * 2), 2147483647);
    grid[1] = ptxgen_extent(1, 65535);
    grid[2] = ptxgen_extent(1, 65535);
}

static void llama_grid_4(const ptxgen_run *run, unsigned grid[3])
{
    if (run->n <= 0)
        return;
    if (run->sm_count <= 0)
        return;
    grid[0] = ptxgen_extent(PTXGEN_MIN(run->n, run->sm_count * 16), 2147483647);
    grid[1] = ptxgen_extent(1, 65535);
    grid[2] = ptxgen_extent(1, 65535);
}

static const char llama_f32_gemv_k4096_n256_ptx[] = "\
// f32_gemv  k=4096 n=256  y[n] = W[n,k] x[k]\n\
// ptxgen 0.1.0  block 32  grid 256\n\
.version 6.3\n\
.target sm_75\n\
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
    add.f32             %f35, %f1, %f34;\n\
    shfl.sync.bfly.b32  %f36, %f35, 8, 31, 0xFFFFFFFF;\n\
    add.f32             %f37, %f35, %f36;\n\
    shfl.sync.bfly.b32  %f38, %f37, 4, 31, 0xFFFFFFFF;\n\
    add.f32             %f39, %f37, %f38;\n\
    shfl.sync.bfly.b32  %f40, %f39, 2, 31, 0xFFFFFFFF;\n\
    add.f32             %f41, %f39, %f40;\n\
    shfl.sync.bfly.b32  %f42, %f41, 1, 31, 0xFFFFFFFF;\n\
    add.f32             %f43, %f41, %f42;\n\
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
    llama_f32_gemv_k4096_n256_ptx, 3080, UINT64_C(0xfb7f54beb6b51136),
    "f32_gemv", PTXGEN_GEMV, PTXGEN_F32, PTXGEN_F32, PTXGEN_F32,
    75, 63, 0, 0, /* sm, isa, overlaps, specific */
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

static const char llama_f32_gemv_dynamic_ptx[] = "\
// f32_gemv  dims=dynamic  y[n] = W[n,k] x[k]\n\
// ptxgen 0.1.0  block 32  grid n\n\
.version 6.3\n\
.target sm_75\n\
.address_size 64\n\
\n\
.visible .entry f32_gemv_dynamic(\n\
    .param .u64 y,\n\
    .param .u64 w,\n\
    .param .u64 x,\n\
    .param .u32 k_dim,\n\
    .param .u32 n_dim)\n\
.reqntid 32, 1, 1\n\
.maxnreg 64\n\
{\n\
    .reg .pred  %p<6>;\n\
    .reg .b32   %r<10>;\n\
    .reg .f32   %f<52>;\n\
    .reg .b64   %rd<8>;\n\
\n\
    ld.param.u64        %rd1, [y];\n\
    ld.param.u64        %rd2, [w];\n\
    ld.param.u64        %rd3, [x];\n\
    ld.param.u32        %r1, [k_dim];                           // k_dim\n\
    mov.u32             %r2, %tid.x;\n\
    mov.u32             %r3, %ctaid.x;                          // row\n\
    mul.lo.u32          %r4, %r2, 4;                            // column\n\
    mad.wide.u32        %rd4, %r4, 4, %rd3;\n\
    mul.lo.u32          %r5, %r1, 4;\n\
    mad.wide.u32        %rd5, %r3, %r5, %rd2;                   // &w[row]\n\
    mad.wide.u32        %rd6, %r4, 4, %rd5;\n\
    mov.f32             %f1, 0f00000000;\n\
    shr.u32             %r6, %r1, 9;\n\
    mov.u32             %r7, 0;                                 // turn\n\
    setp.lt.u32         %p1, %r7, %r6;\n\
    @!%p1 bra           $turn_done;\n\
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
    add.u32             %r7, %r7, 1;\n\
    setp.lt.u32         %p2, %r7, %r6;\n\
    @%p2 bra            $turn_loop;\n\
\n\
$turn_done:\n\
    mul.lo.u32          %r8, %r6, 512;\n\
    add.u32             %r9, %r4, %r8;\n\
    setp.lt.u32         %p3, %r9, %r1;\n\
    @!%p3 bra           $rest_done;\n\
\n\
$rest_loop:                                                     // 4 weights a lane\n\
    .pragma \"nounroll\";\n\
    ld.global.nc.v4.f32 {%f34, %f35, %f36, %f37}, [%rd6];\n\
    ld.global.nc.v4.f32 {%f38, %f39, %f40, %f41}, [%rd4];\n\
    fma.rn.f32          %f1, %f34, %f38, %f1;\n\
    fma.rn.f32          %f1, %f35, %f39, %f1;\n\
    fma.rn.f32          %f1, %f36, %f40, %f1;\n\
    fma.rn.f32          %f1, %f37, %f41, %f1;\n\
    add.u64             %rd6, %rd6, 512;\n\
    add.u64             %rd4, %rd4, 512;\n\
    add.u32             %r9, %r9, 128;\n\
    setp.lt.u32         %p4, %r9, %r1;\n\
    @%p4 bra            $rest_loop;\n\
\n\
$rest_done:\n\
    shfl.sync.bfly.b32  %f42, %f1, 16, 31, 0xFFFFFFFF;\n\
    add.f32             %f43, %f1, %f42;\n\
    shfl.sync.bfly.b32  %f44, %f43, 8, 31, 0xFFFFFFFF;\n\
    add.f32             %f45, %f43, %f44;\n\
    shfl.sync.bfly.b32  %f46, %f45, 4, 31, 0xFFFFFFFF;\n\
    add.f32             %f47, %f45, %f46;\n\
    shfl.sync.bfly.b32  %f48, %f47, 2, 31, 0xFFFFFFFF;\n\
    add.f32             %f49, %f47, %f48;\n\
    shfl.sync.bfly.b32  %f50, %f49, 1, 31, 0xFFFFFFFF;\n\
    add.f32             %f51, %f49, %f50;\n\
    setp.eq.u32         %p5, %r2, 0;\n\
    @!%p5 bra           $skip;\n\
    mad.wide.u32        %rd7, %r3, 4, %rd1;\n\
    st.global.f32       [%rd7], %f51;\n\
\n\
$skip:\n\
    ret;\n\
}\n\
";
static const ptxgen_param llama_f32_gemv_dynamic_params[] = {
    { "y", PTXGEN_PARAM_POINTER, PTXGEN_PARAM_OUT, PTXGEN_F32, 0, "n*4", 4 },
    { "w", PTXGEN_PARAM_POINTER, PTXGEN_PARAM_IN, PTXGEN_F32, 0, "n*k*4", 16 },
    { "x", PTXGEN_PARAM_POINTER, PTXGEN_PARAM_IN, PTXGEN_F32, 0, "k*4", 16 },
    { "k_dim", PTXGEN_PARAM_U32, PTXGEN_PARAM_IN, PTXGEN_U32, 4, "k", 4 },
    { "n_dim", PTXGEN_PARAM_U32, PTXGEN_PARAM_IN, PTXGEN_U32, 4, "n", 4 },
};
static const ptxgen_config llama_f32_gemv_dynamic_config[] = {
    { "k", 0, 0, NULL, 1, 32, 2147483647, 32 },
    { "n", 0, 0, NULL, 1, 1, 2147483647, 1 },
    { "dims", 1, 0, "dynamic", 0, 0, 0, 1 },
};
const ptxgen_kernel llama_f32_gemv_dynamic = {
    "f32_gemv_dynamic", "f32_gemv_dynamic",
    llama_f32_gemv_dynamic_ptx, 4130, UINT64_C(0x62c23647a176648d),
    "f32_gemv", PTXGEN_GEMV, PTXGEN_F32, PTXGEN_F32, PTXGEN_F32,
    75, 63, 0, 0, /* sm, isa, overlaps, specific */
    llama_f32_gemv_dynamic_params, 5,
    { 32, 1, 1 }, { 0, 0, 0 }, llama_grid_0, /* block, grid, grid_at */
    0, 0, NULL, 0, /* shared_static, shared_dynamic, shared_at, workspace */
    0, 0, 1, /* k, n, m */
    1, 0, 0, 0, 0, /* num_warps, head_dim, num_heads, num_kv_heads, max_seq_len */
    1, 0, /* dynamic_dims, seq_len_indirect */
    llama_f32_gemv_dynamic_config, 3,
    0, 0, /* registers, blocks_per_sm */
    0, /* preference */
    NULL, 0, 0, /* chosen_by, chosen_f32, chosen_q8 */
};

static const char llama_q4k_gemv_k4096_n1024_ptx[] = "\
// q4k_gemv  k=4096 n=1024  y[n] = W[n,k] x[k]\n\
// ptxgen 0.1.0  block 32  grid 1024\n\
.version 6.3\n\
.target sm_75\n\
.address_size 64\n\
\n\
.visible .entry q4k_gemv_k4096_n1024(\n\
    .param .u64 y,\n\
    .param .u64 w,\n\
    .param .u64 x)\n\
.reqntid 32, 1, 1\n\
.maxnreg 64\n\
{\n\
    .reg .pred  %p<5>;\n\
    .reg .b16   %h<3>;\n\
    .reg .b32   %r<40>;\n\
    .reg .f32   %f<55>;\n\
    .reg .b64   %rd<10>;\n\
\n\
    ld.param.u64        %rd1, [y];\n\
    ld.param.u64        %rd2, [w];\n\
    ld.param.u64        %rd3, [x];\n\
    mov.u32             %r1, %ctaid.x;                          // row\n\
    mov.u32             %r2, %tid.x;\n\
    mad.wide.u32        %rd4, %r1, 2304, %rd2;                  // &w[row]\n\
    mad.lo.u32          %r3, %r2, 4, 16;\n\
    cvt.u64.u32         %rd5, %r3;\n\
    add.u64             %rd6, %rd4, %rd5;\n\
    shr.u32             %r4, %r2, 3;                            // chunk\n\
    and.b32             %r5, %r2, 7;\n\
    mul.lo.u32          %r6, %r5, 4;\n\
    mad.lo.u32          %r7, %r4, 64, %r6;\n\
    mad.wide.u32        %rd7, %r7, 4, %rd3;\n\
    and.b32             %r8, %r4, 1;\n\
    setp.ne.u32         %p1, %r8, 0;\n\
    selp.u32            %r9, 0x7632, 0x5410, %p1;\n\
    setp.ge.u32         %p2, %r4, 2;\n\
    selp.u32            %r10, 2, 0, %p2;\n\
    selp.u32            %r11, 0x30303030, 0x3F3F3F3F, %p2;\n\
    selp.u32            %r12, 0x0F0F0F0F, 0, %p2;\n\
    mov.u64             %rd8, %rd4;\n\
    mov.f32             %f1, 0f00000000;\n\
    mov.u32             %r13, 0;                                // turn\n\
\n\
$turn_loop:                                                     // 8 weights a lane\n\
    .pragma \"nounroll\";\n\
    ld.global.nc.v4.u32 {%r14, %r15, %r16, %r17}, [%rd8];\n\
    mov.b32             {%h1, %h2}, %r14;\n\
    cvt.f32.f16         %f2, %h1;\n\
    shr.u32             %r18, %r17, 4;\n\
    prmt.b32            %r19, %r17, %r18, %r9;\n\
    prmt.b32            %r20, %r15, %r16, %r9;\n\
    shr.u32             %r21, %r20, %r10;\n\
    and.b32             %r22, %r21, %r11;\n\
    lop3.b32            %r23, %r19, %r12, %r22, 0xEA;\n\
    bfe.u32             %r24, %r23, 8, 8;\n\
    cvt.rn.f32.u32      %f3, %r24;\n\
    mul.f32             %f4, %f2, %f3;\n\
    ld.global.nc.u8     %r25, [%rd6+3];\n\
    shr.u32             %r26, %r25, 4;\n\
    cvt.rn.f32.u32      %f5, %r26;\n\
    cvt.f32.f16         %f6, %h2;\n\
    neg.f32             %f7, %f6;\n\
    shr.u32             %r27, %r23, 24;\n\
    cvt.rn.f32.u32      %f8, %r27;\n\
    mul.f32             %f9, %f7, %f8;\n\
    fma.rn.f32          %f10, %f4, %f5, %f9;\n\
    ld.global.nc.v4.f32 {%f11, %f12, %f13, %f14}, [%rd7+128];\n\
    ld.global.nc.u8     %r28, [%rd6+2];\n\
    shr.u32             %r29, %r28, 4;\n\
    cvt.rn.f32.u32      %f15, %r29;\n\
    fma.rn.f32          %f16, %f4, %f15, %f9;\n\
    ld.global.nc.u8     %r30, [%rd6+1];\n\
    shr.u32             %r31, %r30, 4;\n\
    cvt.rn.f32.u32      %f17, %r31;\n\
    fma.rn.f32          %f18, %f4, %f17, %f9;\n\
    ld.global.nc.u8     %r32, [%rd6];\n\
    shr.u32             %r33, %r32, 4;\n\
    cvt.rn.f32.u32      %f19, %r33;\n\
    fma.rn.f32          %f20, %f4, %f19, %f9;\n\
    and.b32             %r34, %r23, 0xFF;\n\
    cvt.rn.f32.u32      %f21, %r34;\n\
    mul.f32             %f22, %f2, %f21;\n\
    and.b32             %r35, %r25, 15;\n\
    cvt.rn.f32.u32      %f23, %r35;\n\
    neg.f32             %f24, %f6;\n\
    bfe.u32             %r36, %r23, 16, 8;\n\
    cvt.rn.f32.u32      %f25, %r36;\n\
    mul.f32             %f26, %f24, %f25;\n\
    fma.rn.f32          %f27, %f22, %f23, %f26;\n\
    ld.global.nc.v4.f32 {%f28, %f29, %f30, %f31}, [%rd7];\n\
    and.b32             %r37, %r28, 15;\n\
    cvt.rn.f32.u32      %f32, %r37;\n\
    fma.rn.f32          %f33, %f22, %f32, %f26;\n\
    and.b32             %r38, %r30, 15;\n\
    cvt.rn.f32.u32      %f34, %r38;\n\
    fma.rn.f32          %f35, %f22, %f34, %f26;\n\
    and.b32             %r39, %r32, 15;\n\
    cvt.rn.f32.u32      %f36, %r39;\n\
    fma.rn.f32          %f37, %f22, %f36, %f26;\n\
    fma.rn.f32          %f38, %f37, %f28, %f1;\n\
    fma.rn.f32          %f39, %f35, %f29, %f38;\n\
    fma.rn.f32          %f40, %f33, %f30, %f39;\n\
    fma.rn.f32          %f41, %f27, %f31, %f40;\n\
    fma.rn.f32          %f42, %f20, %f11, %f41;\n\
    fma.rn.f32          %f43, %f18, %f12, %f42;\n\
    fma.rn.f32          %f44, %f16, %f13, %f43;\n\
    fma.rn.f32          %f1, %f10, %f14, %f44;\n\
    add.u64             %rd8, %rd8, 144;\n\
    add.u64             %rd6, %rd6, 144;\n\
    add.u64             %rd7, %rd7, 1024;\n\
    add.u32             %r13, %r13, 1;\n\
    setp.lt.u32         %p3, %r13, 16;\n\
    @%p3 bra            $turn_loop;\n\
    shfl.sync.bfly.b32  %f45, %f1, 16, 31, 0xFFFFFFFF;\n\
    add.f32             %f46, %f1, %f45;\n\
    shfl.sync.bfly.b32  %f47, %f46, 8, 31, 0xFFFFFFFF;\n\
    add.f32             %f48, %f46, %f47;\n\
    shfl.sync.bfly.b32  %f49, %f48, 4, 31, 0xFFFFFFFF;\n\
    add.f32             %f50, %f48, %f49;\n\
    shfl.sync.bfly.b32  %f51, %f50, 2, 31, 0xFFFFFFFF;\n\
    add.f32             %f52, %f50, %f51;\n\
    shfl.sync.bfly.b32  %f53, %f52, 1, 31, 0xFFFFFFFF;\n\
    add.f32             %f54, %f52, %f53;\n\
    setp.eq.u32         %p4, %r2, 0;\n\
    @!%p4 bra           $skip;\n\
    mad.wide.u32        %rd9, %r1, 4, %rd1;\n\
    st.global.f32       [%rd9], %f54;\n\
\n\
$skip:\n\
    ret;\n\
}\n\
";
static const ptxgen_param llama_q4k_gemv_k4096_n1024_params[] = {
    { "y", PTXGEN_PARAM_POINTER, PTXGEN_PARAM_OUT, PTXGEN_F32, 4096, "n*4", 4 },
    { "w", PTXGEN_PARAM_POINTER, PTXGEN_PARAM_IN, PTXGEN_Q4_K, 2359296, "n*k/256*144", 16 },
    { "x", PTXGEN_PARAM_POINTER, PTXGEN_PARAM_IN, PTXGEN_F32, 16384, "k*4", 16 },
};
static const ptxgen_config llama_q4k_gemv_k4096_n1024_config[] = {
    { "k", 4096, 0, NULL, 0, 0, 0, 1 },
    { "n", 1024, 0, NULL, 0, 0, 0, 1 },
    { "variant", 0, 0, "plain", 0, 0, 0, 1 },
    { "precision", 0, 0, "f32", 0, 0, 0, 1 },
    { "dims", 0, 0, "static", 0, 0, 0, 1 },
};
const ptxgen_kernel llama_q4k_gemv_k4096_n1024 = {
    "q4k_gemv_k4096_n1024", "q4k_gemv_k4096_n1024",
    llama_q4k_gemv_k4096_n1024_ptx, 5092, UINT64_C(0xef77532b2b830618),
    "q4k_gemv", PTXGEN_GEMV, PTXGEN_Q4_K, PTXGEN_F32, PTXGEN_F32,
    75, 63, 0, 0, /* sm, isa, overlaps, specific */
    llama_q4k_gemv_k4096_n1024_params, 3,
    { 32, 1, 1 }, { 1024, 1, 1 }, NULL, /* block, grid, grid_at */
    0, 0, NULL, 0, /* shared_static, shared_dynamic, shared_at, workspace */
    4096, 1024, 1, /* k, n, m */
    1, 0, 0, 0, 0, /* num_warps, head_dim, num_heads, num_kv_heads, max_seq_len */
    0, 0, /* dynamic_dims, seq_len_indirect */
    llama_q4k_gemv_k4096_n1024_config, 5,
    0, 0, /* registers, blocks_per_sm */
    0, /* preference */
    NULL, 0, 0, /* chosen_by, chosen_f32, chosen_q8 */
};

static const char llama_mwv_q4k_gemv_k4096_n4096_w2_ptx[] = "\
// mwv_q4k_gemv  k=4096 n=4096 num_warps=2  y[n] = W[n,k] x[k]\n\
// ptxgen 0.1.0  block 64  grid 4096\n\
.version 6.3\n\
.target sm_75\n\
.address_size 64\n\
\n\
.visible .entry mwv_q4k_gemv_k4096_n4096_w2(\n\
    .param .u64 y,\n\
    .param .u64 w,\n\
    .param .u64 x)\n\
.reqntid 64, 1, 1\n\
.maxnreg 64\n\
{\n\
    .reg .pred  %p<8>;\n\
    .reg .b16   %h<5>;\n\
    .reg .b32   %r<75>;\n\
    .reg .f32   %f<105>;\n\
    .reg .b64   %rd<11>;\n\
    .shared .align 16 .b32 partial[2];\n\
\n\
    ld.param.u64        %rd1, [y];\n\
    ld.param.u64        %rd2, [w];\n\
    ld.param.u64        %rd3, [x];\n\
    mov.u32             %r1, %ctaid.x;                          // row\n\
    mov.u32             %r2, %tid.x;\n\
    shr.u32             %r3, %r2, 5;                            // warp\n\
    and.b32             %r4, %r2, 31;                           // lane\n\
    mad.wide.u32        %rd4, %r1, 2304, %rd2;                  // &w[row]\n\
    mad.wide.u32        %rd5, %r3, 144, %rd4;\n\
    mad.lo.u32          %r5, %r4, 4, 16;\n\
    cvt.u64.u32         %rd6, %r5;\n\
    add.u64             %rd7, %rd5, %rd6;\n\
    shr.u32             %r6, %r4, 3;                            // chunk\n\
    and.b32             %r7, %r4, 7;\n\
    mul.lo.u32          %r8, %r7, 4;\n\
    mad.lo.u32          %r9, %r6, 64, %r8;\n\
    mad.lo.u32          %r10, %r3, 256, %r9;\n\
    mad.wide.u32        %rd8, %r10, 4, %rd3;\n\
    and.b32             %r11, %r6, 1;\n\
    setp.ne.u32         %p1, %r11, 0;\n\
    selp.u32            %r12, 0x7632, 0x5410, %p1;\n\
    setp.ge.u32         %p2, %r6, 2;\n\
    selp.u32            %r13, 2, 0, %p2;\n\
    selp.u32            %r14, 0x30303030, 0x3F3F3F3F, %p2;\n\
    selp.u32            %r15, 0x0F0F0F0F, 0, %p2;\n\
    mov.u64             %rd9, %rd5;\n\
    mov.f32             %f1, 0f00000000;\n\
    mov.u32             %r16, 0;                                // turn\n\
\n\
$turn_loop:                                                     // 16 weights a lane\n\
    .pragma \"nounroll\";\n\
    ld.global.nc.v4.u32 {%r17, %r18, %r19, %r20}, [%rd9];\n\
    mov.b32             {%h1, %h2}, %r17;\n\
    cvt.f32.f16         %f2, %h1;\n\
    mul.f32             %f3, %f2, 0f41800000;\n\
    shr.u32             %r21, %r20, 4;\n\
    prmt.b32            %r22, %r20, %r21, %r12;\n\
    prmt.b32            %r23, %r18, %r19, %r12;\n\
    shr.u32             %r24, %r23, %r13;\n\
    and.b32             %r25, %r24, %r14;\n\
    lop3.b32            %r26, %r22, %r15, %r25, 0xEA;\n\
    bfe.u32             %r27, %r26, 8, 8;\n\
    cvt.rn.f32.u32      %f4, %r27;\n\
    mul.f32             %f5, %f3, %f4;\n\
    ld.global.nc.u32    %r28, [%rd7];\n\
    shr.u32             %r29, %r28, 1;\n\
    lop3.b32            %r30, %r29, 0x78787878, 0x80808080, 0xEA;\n\
    prmt.b32            %r31, %r30, 0x3F000000, 0x7344;\n\
    mov.b32             %f6, %r31;\n\
    cvt.f32.f16         %f7, %h2;\n\
    neg.f32             %f8, %f7;\n\
    shr.u32             %r32, %r26, 24;\n\
    cvt.rn.f32.u32      %f9, %r32;\n\
    neg.f32             %f10, %f5;\n\
    fma.rn.f32          %f11, %f8, %f9, %f10;\n\
    fma.rn.f32          %f12, %f5, %f6, %f11;\n\
    ld.global.nc.v4.f32 {%f13, %f14, %f15, %f16}, [%rd8+128];\n\
    prmt.b32            %r33, %r30, 0x3F000000, 0x7244;\n\
    mov.b32             %f17, %r33;\n\
    fma.rn.f32          %f18, %f5, %f17, %f11;\n\
    prmt.b32            %r34, %r30, 0x3F000000, 0x7144;\n\
    mov.b32             %f19, %r34;\n\
    fma.rn.f32          %f20, %f5, %f19, %f11;\n\
    prmt.b32            %r35, %r30, 0x3F000000, 0x7044;\n\
    mov.b32             %f21, %r35;\n\
    fma.rn.f32          %f22, %f5, %f21, %f11;\n\
    and.b32             %r36, %r26, 0xFF;\n\
    cvt.rn.f32.u32      %f23, %r36;\n\
    mul.f32             %f24, %f3, %f23;\n\
    shl.b32             %r37, %r28, 3;\n\
    lop3.b32            %r38, %r37, 0x78787878, 0x80808080, 0xEA;\n\
    prmt.b32            %r39, %r38, 0x3F000000, 0x7344;\n\
    mov.b32             %f25, %r39;\n\
    bfe.u32             %r40, %r26, 16, 8;\n\
    cvt.rn.f32.u32      %f26, %r40;\n\
    neg.f32             %f27, %f24;\n\
    fma.rn.f32          %f28, %f8, %f26, %f27;\n\
    fma.rn.f32          %f29, %f24, %f25, %f28;\n\
    ld.global.nc.v4.f32 {%f30, %f31, %f32, %f33}, [%rd8];\n\
    prmt.b32            %r41, %r38, 0x3F000000, 0x7244;\n\
    mov.b32             %f34, %r41;\n\
    fma.rn.f32          %f35, %f24, %f34, %f28;\n\
    prmt.b32            %r42, %r38, 0x3F000000, 0x7144;\n\
    mov.b32             %f36, %r42;\n\
    fma.rn.f32          %f37, %f24, %f36, %f28;\n\
    prmt.b32            %r43, %r38, 0x3F000000, 0x7044;\n\
    mov.b32             %f38, %r43;\n\
    fma.rn.f32          %f39, %f24, %f38, %f28;\n\
    fma.rn.f32          %f40, %f39, %f30, %f1;\n\
    fma.rn.f32          %f41, %f37, %f31, %f40;\n\
    fma.rn.f32          %f42, %f35, %f32, %f41;\n\
    fma.rn.f32          %f43, %f29, %f33, %f42;\n\
    fma.rn.f32          %f44, %f22, %f13, %f43;\n\
    fma.rn.f32          %f45, %f20, %f14, %f44;\n\
    fma.rn.f32          %f46, %f18, %f15, %f45;\n\
    fma.rn.f32          %f1, %f12, %f16, %f46;\n\
    ld.global.nc.v4.u32 {%r44, %r45, %r46, %r47}, [%rd9+288];\n\
    mov.b32             {%h3, %h4}, %r44;\n\
    cvt.f32.f16         %f47, %h3;\n\
    mul.f32             %f48, %f47, 0f41800000;\n\
    shr.u32             %r48, %r47, 4;\n\
    prmt.b32            %r49, %r47, %r48, %r12;\n\
    prmt.b32            %r50, %r45, %r46, %r12;\n\
    shr.u32             %r51, %r50, %r13;\n\
    and.b32             %r52, %r51, %r14;\n\
    lop3.b32            %r53, %r49, %r15, %r52, 0xEA;\n\
    bfe.u32             %r54, %r53, 8, 8;\n\
    cvt.rn.f32.u32      %f49, %r54;\n\
    mul.f32             %f50, %f48, %f49;\n\
    ld.global.nc.u32    %r55, [%rd7+288];\n\
    shr.u32             %r56, %r55, 1;\n\
    lop3.b32            %r57, %r56, 0x78787878, 0x80808080, 0xEA;\n\
    prmt.b32            %r58, %r57, 0x3F000000, 0x7344;\n\
    mov.b32             %f51, %r58;\n\
    cvt.f32.f16         %f52, %h4;\n\
    neg.f32             %f53, %f52;\n\
    shr.u32             %r59, %r53, 24;\n\
    cvt.rn.f32.u32      %f54, %r59;\n\
    neg.f32             %f55, %f50;\n\
    fma.rn.f32          %f56, %f53, %f54, %f55;\n\
    fma.rn.f32          %f57, %f50, %f51, %f56;\n\
    ld.global.nc.v4.f32 {%f58, %f59, %f60, %f61}, [%rd8+2176];\n\
    prmt.b32            %r60, %r57, 0x3F000000, 0x7244;\n\
    mov.b32             %f62, %r60;\n\
    fma.rn.f32          %f63, %f50, %f62, %f56;\n\
    prmt.b32            %r61, %r57, 0x3F000000, 0x7144;\n\
    mov.b32             %f64, %r61;\n\
    fma.rn.f32          %f65, %f50, %f64, %f56;\n\
    prmt.b32            %r62, %r57, 0x3F000000, 0x7044;\n\
    mov.b32             %f66, %r62;\n\
    fma.rn.f32          %f67, %f50, %f66, %f56;\n\
    and.b32             %r63, %r53, 0xFF;\n\
    cvt.rn.f32.u32      %f68, %r63;\n\
    mul.f32             %f69, %f48, %f68;\n\
    shl.b32             %r64, %r55, 3;\n\
    lop3.b32            %r65, %r64, 0x78787878, 0x80808080, 0xEA;\n\
    prmt.b32            %r66, %r65, 0x3F000000, 0x7344;\n\
    mov.b32             %f70, %r66;\n\
    bfe.u32             %r67, %r53, 16, 8;\n\
    cvt.rn.f32.u32      %f71, %r67;\n\
    neg.f32             %f72, %f69;\n\
    fma.rn.f32          %f73, %f53, %f71, %f72;\n\
    fma.rn.f32          %f74, %f69, %f70, %f73;\n\
    ld.global.nc.v4.f32 {%f75, %f76, %f77, %f78}, [%rd8+2048];\n\
    prmt.b32            %r68, %r65, 0x3F000000, 0x7244;\n\
    mov.b32             %f79, %r68;\n\
    fma.rn.f32          %f80, %f69, %f79, %f73;\n\
    prmt.b32            %r69, %r65, 0x3F000000, 0x7144;\n\
    mov.b32             %f81, %r69;\n\
    fma.rn.f32          %f82, %f69, %f81, %f73;\n\
    prmt.b32            %r70, %r65, 0x3F000000, 0x7044;\n\
    mov.b32             %f83, %r70;\n\
    fma.rn.f32          %f84, %f69, %f83, %f73;\n\
    fma.rn.f32          %f85, %f84, %f75, %f1;\n\
    fma.rn.f32          %f86, %f82, %f76, %f85;\n\
    fma.rn.f32          %f87, %f80, %f77, %f86;\n\
    fma.rn.f32          %f88, %f74, %f78, %f87;\n\
    fma.rn.f32          %f89, %f67, %f58, %f88;\n\
    fma.rn.f32          %f90, %f65, %f59, %f89;\n\
    fma.rn.f32          %f91, %f63, %f60, %f90;\n\
    fma.rn.f32          %f1, %f57, %f61, %f91;\n\
    add.u64             %rd9, %rd9, 576;\n\
    add.u64             %rd7, %rd7, 576;\n\
    add.u64             %rd8, %rd8, 4096;\n\
    add.u32             %r16, %r16, 1;\n\
"
"\
    setp.lt.u32         %p3, %r16, 4;\n\
    @%p3 bra            $turn_loop;\n\
    shfl.sync.bfly.b32  %f92, %f1, 16, 31, 0xFFFFFFFF;\n\
    add.f32             %f93, %f1, %f92;\n\
    shfl.sync.bfly.b32  %f94, %f93, 8, 31, 0xFFFFFFFF;\n\
    add.f32             %f95, %f93, %f94;\n\
    shfl.sync.bfly.b32  %f96, %f95, 4, 31, 0xFFFFFFFF;\n\
    add.f32             %f97, %f95, %f96;\n\
    shfl.sync.bfly.b32  %f98, %f97, 2, 31, 0xFFFFFFFF;\n\
    add.f32             %f99, %f97, %f98;\n\
    shfl.sync.bfly.b32  %f100, %f99, 1, 31, 0xFFFFFFFF;\n\
    add.f32             %f101, %f99, %f100;\n\
    setp.eq.u32         %p4, %r4, 0;\n\
    @!%p4 bra           $skip;\n\
    mov.u32             %r71, partial;                          // partial\n\
    mad.lo.u32          %r72, %r3, 4, %r71;\n\
    st.shared.f32       [%r72], %f101;\n\
\n\
$skip:\n\
    bar.sync            0;\n\
    mov.f32             %f102, 0f00000000;\n\
    setp.eq.u32         %p5, %r3, 0;\n\
    @!%p5 bra           $skip_3;\n\
    setp.lt.u32         %p6, %r4, 2;\n\
    @!%p6 bra           $skip_2;\n\
    mov.u32             %r73, partial;                          // partial\n\
    mad.lo.u32          %r74, %r4, 4, %r73;\n\
    ld.shared.f32       %f102, [%r74];\n\
\n\
$skip_2:\n\
    shfl.sync.bfly.b32  %f103, %f102, 1, 31, 0xFFFFFFFF;\n\
    add.f32             %f102, %f102, %f103;\n\
\n\
$skip_3:\n\
    mov.f32             %f104, %f102;\n\
    setp.eq.u32         %p7, %r2, 0;\n\
    @!%p7 bra           $skip_4;\n\
    mad.wide.u32        %rd10, %r1, 4, %rd1;\n\
    st.global.f32       [%rd10], %f104;\n\
\n\
$skip_4:\n\
    ret;\n\
}\n\
";
static const ptxgen_param llama_mwv_q4k_gemv_k4096_n4096_w2_params[] = {
    { "y", PTXGEN_PARAM_POINTER, PTXGEN_PARAM_OUT, PTXGEN_F32, 16384, "n*4", 4 },
    { "w", PTXGEN_PARAM_POINTER, PTXGEN_PARAM_IN, PTXGEN_Q4_K, 9437184, "n*k/256*144", 16 },
    { "x", PTXGEN_PARAM_POINTER, PTXGEN_PARAM_IN, PTXGEN_F32, 16384, "k*4", 16 },
};
static const ptxgen_config llama_mwv_q4k_gemv_k4096_n4096_w2_config[] = {
    { "k", 4096, 0, NULL, 0, 0, 0, 1 },
    { "n", 4096, 0, NULL, 0, 0, 0, 1 },
    { "num_warps", 2, 0, NULL, 0, 0, 0, 1 },
    { "dims", 0, 0, "static", 0, 0, 0, 1 },
};
const ptxgen_kernel llama_mwv_q4k_gemv_k4096_n4096_w2 = {
    "mwv_q4k_gemv_k4096_n4096_w2", "mwv_q4k_gemv_k4096_n4096_w2",
    llama_mwv_q4k_gemv_k4096_n4096_w2_ptx, 9462, UINT64_C(0xc79d87939cadc8ab),
    "mwv_q4k_gemv", PTXGEN_GEMV, PTXGEN_Q4_K, PTXGEN_F32, PTXGEN_F32,
    75, 63, 0, 0, /* sm, isa, overlaps, specific */
    llama_mwv_q4k_gemv_k4096_n4096_w2_params, 3,
    { 64, 1, 1 }, { 4096, 1, 1 }, NULL, /* block, grid, grid_at */
    8, 0, NULL, 0, /* shared_static, shared_dynamic, shared_at, workspace */
    4096, 4096, 1, /* k, n, m */
    2, 0, 0, 0, 0, /* num_warps, head_dim, num_heads, num_kv_heads, max_seq_len */
    0, 0, /* dynamic_dims, seq_len_indirect */
    llama_mwv_q4k_gemv_k4096_n4096_w2_config, 4,
    0, 0, /* registers, blocks_per_sm */
    10, /* preference */
    NULL, 0, 0, /* chosen_by, chosen_f32, chosen_q8 */
};

static const char llama_mwv_q4k_gemv_k4096_n4096_w4_ptx[] = "\
// mwv_q4k_gemv  k=4096 n=4096 num_warps=4  y[n] = W[n,k] x[k]\n\
// ptxgen 0.1.0  block 128  grid 4096\n\
.version 6.3\n\
.target sm_75\n\
.address_size 64\n\
\n\
.visible .entry mwv_q4k_gemv_k4096_n4096_w4(\n\
    .param .u64 y,\n\
    .param .u64 w,\n\
    .param .u64 x)\n\
.reqntid 128, 1, 1\n\
.maxnreg 64\n\
{\n\
    .reg .pred  %p<8>;\n\
    .reg .b16   %h<5>;\n\
    .reg .b32   %r<75>;\n\
    .reg .f32   %f<107>;\n\
    .reg .b64   %rd<11>;\n\
    .shared .align 16 .b32 partial[4];\n\
\n\
    ld.param.u64        %rd1, [y];\n\
    ld.param.u64        %rd2, [w];\n\
    ld.param.u64        %rd3, [x];\n\
    mov.u32             %r1, %ctaid.x;                          // row\n\
    mov.u32             %r2, %tid.x;\n\
    shr.u32             %r3, %r2, 5;                            // warp\n\
    and.b32             %r4, %r2, 31;                           // lane\n\
    mad.wide.u32        %rd4, %r1, 2304, %rd2;                  // &w[row]\n\
    mad.wide.u32        %rd5, %r3, 144, %rd4;\n\
    mad.lo.u32          %r5, %r4, 4, 16;\n\
    cvt.u64.u32         %rd6, %r5;\n\
    add.u64             %rd7, %rd5, %rd6;\n\
    shr.u32             %r6, %r4, 3;                            // chunk\n\
    and.b32             %r7, %r4, 7;\n\
    mul.lo.u32          %r8, %r7, 4;\n\
    mad.lo.u32          %r9, %r6, 64, %r8;\n\
    mad.lo.u32          %r10, %r3, 256, %r9;\n\
    mad.wide.u32        %rd8, %r10, 4, %rd3;\n\
    and.b32             %r11, %r6, 1;\n\
    setp.ne.u32         %p1, %r11, 0;\n\
    selp.u32            %r12, 0x7632, 0x5410, %p1;\n\
    setp.ge.u32         %p2, %r6, 2;\n\
    selp.u32            %r13, 2, 0, %p2;\n\
    selp.u32            %r14, 0x30303030, 0x3F3F3F3F, %p2;\n\
    selp.u32            %r15, 0x0F0F0F0F, 0, %p2;\n\
    mov.u64             %rd9, %rd5;\n\
    mov.f32             %f1, 0f00000000;\n\
    mov.u32             %r16, 0;                                // turn\n\
\n\
$turn_loop:                                                     // 16 weights a lane\n\
    .pragma \"nounroll\";\n\
    ld.global.nc.v4.u32 {%r17, %r18, %r19, %r20}, [%rd9];\n\
    mov.b32             {%h1, %h2}, %r17;\n\
    cvt.f32.f16         %f2, %h1;\n\
    mul.f32             %f3, %f2, 0f41800000;\n\
    shr.u32             %r21, %r20, 4;\n\
    prmt.b32            %r22, %r20, %r21, %r12;\n\
    prmt.b32            %r23, %r18, %r19, %r12;\n\
    shr.u32             %r24, %r23, %r13;\n\
    and.b32             %r25, %r24, %r14;\n\
    lop3.b32            %r26, %r22, %r15, %r25, 0xEA;\n\
    bfe.u32             %r27, %r26, 8, 8;\n\
    cvt.rn.f32.u32      %f4, %r27;\n\
    mul.f32             %f5, %f3, %f4;\n\
    ld.global.nc.u32    %r28, [%rd7];\n\
    shr.u32             %r29, %r28, 1;\n\
    lop3.b32            %r30, %r29, 0x78787878, 0x80808080, 0xEA;\n\
    prmt.b32            %r31, %r30, 0x3F000000, 0x7344;\n\
    mov.b32             %f6, %r31;\n\
    cvt.f32.f16         %f7, %h2;\n\
    neg.f32             %f8, %f7;\n\
    shr.u32             %r32, %r26, 24;\n\
    cvt.rn.f32.u32      %f9, %r32;\n\
    neg.f32             %f10, %f5;\n\
    fma.rn.f32          %f11, %f8, %f9, %f10;\n\
    fma.rn.f32          %f12, %f5, %f6, %f11;\n\
    ld.global.nc.v4.f32 {%f13, %f14, %f15, %f16}, [%rd8+128];\n\
    prmt.b32            %r33, %r30, 0x3F000000, 0x7244;\n\
    mov.b32             %f17, %r33;\n\
    fma.rn.f32          %f18, %f5, %f17, %f11;\n\
    prmt.b32            %r34, %r30, 0x3F000000, 0x7144;\n\
    mov.b32             %f19, %r34;\n\
    fma.rn.f32          %f20, %f5, %f19, %f11;\n\
    prmt.b32            %r35, %r30, 0x3F000000, 0x7044;\n\
    mov.b32             %f21, %r35;\n\
    fma.rn.f32          %f22, %f5, %f21, %f11;\n\
    and.b32             %r36, %r26, 0xFF;\n\
    cvt.rn.f32.u32      %f23, %r36;\n\
    mul.f32             %f24, %f3, %f23;\n\
    shl.b32             %r37, %r28, 3;\n\
    lop3.b32            %r38, %r37, 0x78787878, 0x80808080, 0xEA;\n\
    prmt.b32            %r39, %r38, 0x3F000000, 0x7344;\n\
    mov.b32             %f25, %r39;\n\
    bfe.u32             %r40, %r26, 16, 8;\n\
    cvt.rn.f32.u32      %f26, %r40;\n\
    neg.f32             %f27, %f24;\n\
    fma.rn.f32          %f28, %f8, %f26, %f27;\n\
    fma.rn.f32          %f29, %f24, %f25, %f28;\n\
    ld.global.nc.v4.f32 {%f30, %f31, %f32, %f33}, [%rd8];\n\
    prmt.b32            %r41, %r38, 0x3F000000, 0x7244;\n\
    mov.b32             %f34, %r41;\n\
    fma.rn.f32          %f35, %f24, %f34, %f28;\n\
    prmt.b32            %r42, %r38, 0x3F000000, 0x7144;\n\
    mov.b32             %f36, %r42;\n\
    fma.rn.f32          %f37, %f24, %f36, %f28;\n\
    prmt.b32            %r43, %r38, 0x3F000000, 0x7044;\n\
    mov.b32             %f38, %r43;\n\
    fma.rn.f32          %f39, %f24, %f38, %f28;\n\
    fma.rn.f32          %f40, %f39, %f30, %f1;\n\
    fma.rn.f32          %f41, %f37, %f31, %f40;\n\
    fma.rn.f32          %f42, %f35, %f32, %f41;\n\
    fma.rn.f32          %f43, %f29, %f33, %f42;\n\
    fma.rn.f32          %f44, %f22, %f13, %f43;\n\
    fma.rn.f32          %f45, %f20, %f14, %f44;\n\
    fma.rn.f32          %f46, %f18, %f15, %f45;\n\
    fma.rn.f32          %f1, %f12, %f16, %f46;\n\
    ld.global.nc.v4.u32 {%r44, %r45, %r46, %r47}, [%rd9+576];\n\
    mov.b32             {%h3, %h4}, %r44;\n\
    cvt.f32.f16         %f47, %h3;\n\
    mul.f32             %f48, %f47, 0f41800000;\n\
    shr.u32             %r48, %r47, 4;\n\
    prmt.b32            %r49, %r47, %r48, %r12;\n\
    prmt.b32            %r50, %r45, %r46, %r12;\n\
    shr.u32             %r51, %r50, %r13;\n\
    and.b32             %r52, %r51, %r14;\n\
    lop3.b32            %r53, %r49, %r15, %r52, 0xEA;\n\
    bfe.u32             %r54, %r53, 8, 8;\n\
    cvt.rn.f32.u32      %f49, %r54;\n\
    mul.f32             %f50, %f48, %f49;\n\
    ld.global.nc.u32    %r55, [%rd7+576];\n\
    shr.u32             %r56, %r55, 1;\n\
    lop3.b32            %r57, %r56, 0x78787878, 0x80808080, 0xEA;\n\
    prmt.b32            %r58, %r57, 0x3F000000, 0x7344;\n\
    mov.b32             %f51, %r58;\n\
    cvt.f32.f16         %f52, %h4;\n\
    neg.f32             %f53, %f52;\n\
    shr.u32             %r59, %r53, 24;\n\
    cvt.rn.f32.u32      %f54, %r59;\n\
    neg.f32             %f55, %f50;\n\
    fma.rn.f32          %f56, %f53, %f54, %f55;\n\
    fma.rn.f32          %f57, %f50, %f51, %f56;\n\
    ld.global.nc.v4.f32 {%f58, %f59, %f60, %f61}, [%rd8+4224];\n\
    prmt.b32            %r60, %r57, 0x3F000000, 0x7244;\n\
    mov.b32             %f62, %r60;\n\
    fma.rn.f32          %f63, %f50, %f62, %f56;\n\
    prmt.b32            %r61, %r57, 0x3F000000, 0x7144;\n\
    mov.b32             %f64, %r61;\n\
    fma.rn.f32          %f65, %f50, %f64, %f56;\n\
    prmt.b32            %r62, %r57, 0x3F000000, 0x7044;\n\
    mov.b32             %f66, %r62;\n\
    fma.rn.f32          %f67, %f50, %f66, %f56;\n\
    and.b32             %r63, %r53, 0xFF;\n\
    cvt.rn.f32.u32      %f68, %r63;\n\
    mul.f32             %f69, %f48, %f68;\n\
    shl.b32             %r64, %r55, 3;\n\
    lop3.b32            %r65, %r64, 0x78787878, 0x80808080, 0xEA;\n\
    prmt.b32            %r66, %r65, 0x3F000000, 0x7344;\n\
    mov.b32             %f70, %r66;\n\
    bfe.u32             %r67, %r53, 16, 8;\n\
    cvt.rn.f32.u32      %f71, %r67;\n\
    neg.f32             %f72, %f69;\n\
    fma.rn.f32          %f73, %f53, %f71, %f72;\n\
    fma.rn.f32          %f74, %f69, %f70, %f73;\n\
    ld.global.nc.v4.f32 {%f75, %f76, %f77, %f78}, [%rd8+4096];\n\
    prmt.b32            %r68, %r65, 0x3F000000, 0x7244;\n\
    mov.b32             %f79, %r68;\n\
    fma.rn.f32          %f80, %f69, %f79, %f73;\n\
    prmt.b32            %r69, %r65, 0x3F000000, 0x7144;\n\
    mov.b32             %f81, %r69;\n\
    fma.rn.f32          %f82, %f69, %f81, %f73;\n\
    prmt.b32            %r70, %r65, 0x3F000000, 0x7044;\n\
    mov.b32             %f83, %r70;\n\
    fma.rn.f32          %f84, %f69, %f83, %f73;\n\
    fma.rn.f32          %f85, %f84, %f75, %f1;\n\
    fma.rn.f32          %f86, %f82, %f76, %f85;\n\
    fma.rn.f32          %f87, %f80, %f77, %f86;\n\
    fma.rn.f32          %f88, %f74, %f78, %f87;\n\
    fma.rn.f32          %f89, %f67, %f58, %f88;\n\
    fma.rn.f32          %f90, %f65, %f59, %f89;\n\
    fma.rn.f32          %f91, %f63, %f60, %f90;\n\
    fma.rn.f32          %f1, %f57, %f61, %f91;\n\
    add.u64             %rd9, %rd9, 1152;\n\
    add.u64             %rd7, %rd7, 1152;\n\
    add.u64             %rd8, %rd8, 8192;\n\
    add.u32             %r16, %r16, 1;\n\
"
"\
    setp.lt.u32         %p3, %r16, 2;\n\
    @%p3 bra            $turn_loop;\n\
    shfl.sync.bfly.b32  %f92, %f1, 16, 31, 0xFFFFFFFF;\n\
    add.f32             %f93, %f1, %f92;\n\
    shfl.sync.bfly.b32  %f94, %f93, 8, 31, 0xFFFFFFFF;\n\
    add.f32             %f95, %f93, %f94;\n\
    shfl.sync.bfly.b32  %f96, %f95, 4, 31, 0xFFFFFFFF;\n\
    add.f32             %f97, %f95, %f96;\n\
    shfl.sync.bfly.b32  %f98, %f97, 2, 31, 0xFFFFFFFF;\n\
    add.f32             %f99, %f97, %f98;\n\
    shfl.sync.bfly.b32  %f100, %f99, 1, 31, 0xFFFFFFFF;\n\
    add.f32             %f101, %f99, %f100;\n\
    setp.eq.u32         %p4, %r4, 0;\n\
    @!%p4 bra           $skip;\n\
    mov.u32             %r71, partial;                          // partial\n\
    mad.lo.u32          %r72, %r3, 4, %r71;\n\
    st.shared.f32       [%r72], %f101;\n\
\n\
$skip:\n\
    bar.sync            0;\n\
    mov.f32             %f102, 0f00000000;\n\
    setp.eq.u32         %p5, %r3, 0;\n\
    @!%p5 bra           $skip_3;\n\
    setp.lt.u32         %p6, %r4, 4;\n\
    @!%p6 bra           $skip_2;\n\
    mov.u32             %r73, partial;                          // partial\n\
    mad.lo.u32          %r74, %r4, 4, %r73;\n\
    ld.shared.f32       %f102, [%r74];\n\
\n\
$skip_2:\n\
    shfl.sync.bfly.b32  %f103, %f102, 2, 31, 0xFFFFFFFF;\n\
    add.f32             %f104, %f102, %f103;\n\
    shfl.sync.bfly.b32  %f105, %f104, 1, 31, 0xFFFFFFFF;\n\
    add.f32             %f102, %f104, %f105;\n\
\n\
$skip_3:\n\
    mov.f32             %f106, %f102;\n\
    setp.eq.u32         %p7, %r2, 0;\n\
    @!%p7 bra           $skip_4;\n\
    mad.wide.u32        %rd10, %r1, 4, %rd1;\n\
    st.global.f32       [%rd10], %f106;\n\
\n\
$skip_4:\n\
    ret;\n\
}\n\
";
static const ptxgen_param llama_mwv_q4k_gemv_k4096_n4096_w4_params[] = {
    { "y", PTXGEN_PARAM_POINTER, PTXGEN_PARAM_OUT, PTXGEN_F32, 16384, "n*4", 4 },
    { "w", PTXGEN_PARAM_POINTER, PTXGEN_PARAM_IN, PTXGEN_Q4_K, 9437184, "n*k/256*144", 16 },
    { "x", PTXGEN_PARAM_POINTER, PTXGEN_PARAM_IN, PTXGEN_F32, 16384, "k*4", 16 },
};
static const ptxgen_config llama_mwv_q4k_gemv_k4096_n4096_w4_config[] = {
    { "k", 4096, 0, NULL, 0, 0, 0, 1 },
    { "n", 4096, 0, NULL, 0, 0, 0, 1 },
    { "num_warps", 4, 0, NULL, 0, 0, 0, 1 },
    { "dims", 0, 0, "static", 0, 0, 0, 1 },
};
const ptxgen_kernel llama_mwv_q4k_gemv_k4096_n4096_w4 = {
    "mwv_q4k_gemv_k4096_n4096_w4", "mwv_q4k_gemv_k4096_n4096_w4",
    llama_mwv_q4k_gemv_k4096_n4096_w4_ptx, 9568, UINT64_C(0xbcd13f3825969747),
    "mwv_q4k_gemv", PTXGEN_GEMV, PTXGEN_Q4_K, PTXGEN_F32, PTXGEN_F32,
    75, 63, 0, 0, /* sm, isa, overlaps, specific */
    llama_mwv_q4k_gemv_k4096_n4096_w4_params, 3,
    { 128, 1, 1 }, { 4096, 1, 1 }, NULL, /* block, grid, grid_at */
    16, 0, NULL, 0, /* shared_static, shared_dynamic, shared_at, workspace */
    4096, 4096, 1, /* k, n, m */
    4, 0, 0, 0, 0, /* num_warps, head_dim, num_heads, num_kv_heads, max_seq_len */
    0, 0, /* dynamic_dims, seq_len_indirect */
    llama_mwv_q4k_gemv_k4096_n4096_w4_config, 4,
    0, 0, /* registers, blocks_per_sm */
    10, /* preference */
    NULL, 0, 0, /* chosen_by, chosen_f32, chosen_q8 */
};

static const char llama_mwv_q4k_gemv_k4096_n1024_w2_ptx[] = "\
// mwv_q4k_gemv  k=4096 n=1024 num_warps=2  y[n] = W[n,k] x[k]\n\
// ptxgen 0.1.0  block 64  grid 1024\n\
.version 6.3\n\
.target sm_75\n\
.address_size 64\n\
\n\
.visible .entry mwv_q4k_gemv_k4096_n1024_w2(\n\
    .param .u64 y,\n\
    .param .u64 w,\n\
    .param .u64 x)\n\
.reqntid 64, 1, 1\n\
.maxnreg 64\n\
{\n\
    .reg .pred  %p<8>;\n\
    .reg .b16   %h<5>;\n\
    .reg .b32   %r<75>;\n\
    .reg .f32   %f<105>;\n\
    .reg .b64   %rd<11>;\n\
    .shared .align 16 .b32 partial[2];\n\
\n\
    ld.param.u64        %rd1, [y];\n\
    ld.param.u64        %rd2, [w];\n\
    ld.param.u64        %rd3, [x];\n\
    mov.u32             %r1, %ctaid.x;                          // row\n\
    mov.u32             %r2, %tid.x;\n\
    shr.u32             %r3, %r2, 5;                            // warp\n\
    and.b32             %r4, %r2, 31;                           // lane\n\
    mad.wide.u32        %rd4, %r1, 2304, %rd2;                  // &w[row]\n\
    mad.wide.u32        %rd5, %r3, 144, %rd4;\n\
    mad.lo.u32          %r5, %r4, 4, 16;\n\
    cvt.u64.u32         %rd6, %r5;\n\
    add.u64             %rd7, %rd5, %rd6;\n\
    shr.u32             %r6, %r4, 3;                            // chunk\n\
    and.b32             %r7, %r4, 7;\n\
    mul.lo.u32          %r8, %r7, 4;\n\
    mad.lo.u32          %r9, %r6, 64, %r8;\n\
    mad.lo.u32          %r10, %r3, 256, %r9;\n\
    mad.wide.u32        %rd8, %r10, 4, %rd3;\n\
    and.b32             %r11, %r6, 1;\n\
    setp.ne.u32         %p1, %r11, 0;\n\
    selp.u32            %r12, 0x7632, 0x5410, %p1;\n\
    setp.ge.u32         %p2, %r6, 2;\n\
    selp.u32            %r13, 2, 0, %p2;\n\
    selp.u32            %r14, 0x30303030, 0x3F3F3F3F, %p2;\n\
    selp.u32            %r15, 0x0F0F0F0F, 0, %p2;\n\
    mov.u64             %rd9, %rd5;\n\
    mov.f32             %f1, 0f00000000;\n\
    mov.u32             %r16, 0;                                // turn\n\
\n\
$turn_loop:                                                     // 16 weights a lane\n\
    .pragma \"nounroll\";\n\
    ld.global.nc.v4.u32 {%r17, %r18, %r19, %r20}, [%rd9];\n\
    mov.b32             {%h1, %h2}, %r17;\n\
    cvt.f32.f16         %f2, %h1;\n\
    mul.f32             %f3, %f2, 0f41800000;\n\
    shr.u32             %r21, %r20, 4;\n\
    prmt.b32            %r22, %r20, %r21, %r12;\n\
    prmt.b32            %r23, %r18, %r19, %r12;\n\
    shr.u32             %r24, %r23, %r13;\n\
    and.b32             %r25, %r24, %r14;\n\
    lop3.b32            %r26, %r22, %r15, %r25, 0xEA;\n\
    bfe.u32             %r27, %r26, 8, 8;\n\
    cvt.rn.f32.u32      %f4, %r27;\n\
    mul.f32             %f5, %f3, %f4;\n\
    ld.global.nc.u32    %r28, [%rd7];\n\
    shr.u32             %r29, %r28, 1;\n\
    lop3.b32            %r30, %r29, 0x78787878, 0x80808080, 0xEA;\n\
    prmt.b32            %r31, %r30, 0x3F000000, 0x7344;\n\
    mov.b32             %f6, %r31;\n\
    cvt.f32.f16         %f7, %h2;\n\
    neg.f32             %f8, %f7;\n\
    shr.u32             %r32, %r26, 24;\n\
    cvt.rn.f32.u32      %f9, %r32;\n\
    neg.f32             %f10, %f5;\n\
    fma.rn.f32          %f11, %f8, %f9, %f10;\n\
    fma.rn.f32          %f12, %f5, %f6, %f11;\n\
    ld.global.nc.v4.f32 {%f13, %f14, %f15, %f16}, [%rd8+128];\n\
    prmt.b32            %r33, %r30, 0x3F000000, 0x7244;\n\
    mov.b32             %f17, %r33;\n\
    fma.rn.f32          %f18, %f5, %f17, %f11;\n\
    prmt.b32            %r34, %r30, 0x3F000000, 0x7144;\n\
    mov.b32             %f19, %r34;\n\
    fma.rn.f32          %f20, %f5, %f19, %f11;\n\
    prmt.b32            %r35, %r30, 0x3F000000, 0x7044;\n\
    mov.b32             %f21, %r35;\n\
    fma.rn.f32          %f22, %f5, %f21, %f11;\n\
    and.b32             %r36, %r26, 0xFF;\n\
    cvt.rn.f32.u32      %f23, %r36;\n\
    mul.f32             %f24, %f3, %f23;\n\
    shl.b32             %r37, %r28, 3;\n\
    lop3.b32            %r38, %r37, 0x78787878, 0x80808080, 0xEA;\n\
    prmt.b32            %r39, %r38, 0x3F000000, 0x7344;\n\
    mov.b32             %f25, %r39;\n\
    bfe.u32             %r40, %r26, 16, 8;\n\
    cvt.rn.f32.u32      %f26, %r40;\n\
    neg.f32             %f27, %f24;\n\
    fma.rn.f32          %f28, %f8, %f26, %f27;\n\
    fma.rn.f32          %f29, %f24, %f25, %f28;\n\
    ld.global.nc.v4.f32 {%f30, %f31, %f32, %f33}, [%rd8];\n\
    prmt.b32            %r41, %r38, 0x3F000000, 0x7244;\n\
    mov.b32             %f34, %r41;\n\
    fma.rn.f32          %f35, %f24, %f34, %f28;\n\
    prmt.b32            %r42, %r38, 0x3F000000, 0x7144;\n\
    mov.b32             %f36, %r42;\n\
    fma.rn.f32          %f37, %f24, %f36, %f28;\n\
    prmt.b32            %r43, %r38, 0x3F000000, 0x7044;\n\
    mov.b32             %f38, %r43;\n\
    fma.rn.f32          %f39, %f24, %f38, %f28;\n\
    fma.rn.f32          %f40, %f39, %f30, %f1;\n\
    fma.rn.f32          %f41, %f37, %f31, %f40;\n\
    fma.rn.f32          %f42, %f35, %f32, %f41;\n\
    fma.rn.f32          %f43, %f29, %f33, %f42;\n\
    fma.rn.f32          %f44, %f22, %f13, %f43;\n\
    fma.rn.f32          %f45, %f20, %f14, %f44;\n\
    fma.rn.f32          %f46, %f18, %f15, %f45;\n\
    fma.rn.f32          %f1, %f12, %f16, %f46;\n\
    ld.global.nc.v4.u32 {%r44, %r45, %r46, %r47}, [%rd9+288];\n\
    mov.b32             {%h3, %h4}, %r44;\n\
    cvt.f32.f16         %f47, %h3;\n\
    mul.f32             %f48, %f47, 0f41800000;\n\
    shr.u32             %r48, %r47, 4;\n\
    prmt.b32            %r49, %r47, %r48, %r12;\n\
    prmt.b32            %r50, %r45, %r46, %r12;\n\
    shr.u32             %r51, %r50, %r13;\n\
    and.b32             %r52, %r51, %r14;\n\
    lop3.b32            %r53, %r49, %r15, %r52, 0xEA;\n\
    bfe.u32             %r54, %r53, 8, 8;\n\
    cvt.rn.f32.u32      %f49, %r54;\n\
    mul.f32             %f50, %f48, %f49;\n\
    ld.global.nc.u32    %r55, [%rd7+288];\n\
    shr.u32             %r56, %r55, 1;\n\
    lop3.b32            %r57, %r56, 0x78787878, 0x80808080, 0xEA;\n\
    prmt.b32            %r58, %r57, 0x3F000000, 0x7344;\n\
    mov.b32             %f51, %r58;\n\
    cvt.f32.f16         %f52, %h4;\n\
    neg.f32             %f53, %f52;\n\
    shr.u32             %r59, %r53, 24;\n\
    cvt.rn.f32.u32      %f54, %r59;\n\
    neg.f32             %f55, %f50;\n\
    fma.rn.f32          %f56, %f53, %f54, %f55;\n\
    fma.rn.f32          %f57, %f50, %f51, %f56;\n\
    ld.global.nc.v4.f32 {%f58, %f59, %f60, %f61}, [%rd8+2176];\n\
    prmt.b32            %r60, %r57, 0x3F000000, 0x7244;\n\
    mov.b32             %f62, %r60;\n\
    fma.rn.f32          %f63, %f50, %f62, %f56;\n\
    prmt.b32            %r61, %r57, 0x3F000000, 0x7144;\n\
    mov.b32             %f64, %r61;\n\
    fma.rn.f32          %f65, %f50, %f64, %f56;\n\
    prmt.b32            %r62, %r57, 0x3F000000, 0x7044;\n\
    mov.b32             %f66, %r62;\n\
    fma.rn.f32          %f67, %f50, %f66, %f56;\n\
    and.b32             %r63, %r53, 0xFF;\n\
    cvt.rn.f32.u32      %f68, %r63;\n\
    mul.f32             %f69, %f48, %f68;\n\
    shl.b32             %r64, %r55, 3;\n\
    lop3.b32            %r65, %r64, 0x78787878, 0x80808080, 0xEA;\n\
    prmt.b32            %r66, %r65, 0x3F000000, 0x7344;\n\
    mov.b32             %f70, %r66;\n\
    bfe.u32             %r67, %r53, 16, 8;\n\
    cvt.rn.f32.u32      %f71, %r67;\n\
    neg.f32             %f72, %f69;\n\
    fma.rn.f32          %f73, %f53, %f71, %f72;\n\
    fma.rn.f32          %f74, %f69, %f70, %f73;\n\
    ld.global.nc.v4.f32 {%f75, %f76, %f77, %f78}, [%rd8+2048];\n\
    prmt.b32            %r68, %r65, 0x3F000000, 0x7244;\n\
    mov.b32             %f79, %r68;\n\
    fma.rn.f32          %f80, %f69, %f79, %f73;\n\
    prmt.b32            %r69, %r65, 0x3F000000, 0x7144;\n\
    mov.b32             %f81, %r69;\n\
    fma.rn.f32          %f82, %f69, %f81, %f73;\n\
    prmt.b32            %r70, %r65, 0x3F000000, 0x7044;\n\
    mov.b32             %f83, %r70;\n\
    fma.rn.f32          %f84, %f69, %f83, %f73;\n\
    fma.rn.f32          %f85, %f84, %f75, %f1;\n\
    fma.rn.f32          %f86, %f82, %f76, %f85;\n\
    fma.rn.f32          %f87, %f80, %f77, %f86;\n\
    fma.rn.f32          %f88, %f74, %f78, %f87;\n\
    fma.rn.f32          %f89, %f67, %f58, %f88;\n\
    fma.rn.f32          %f90, %f65, %f59, %f89;\n\
    fma.rn.f32          %f91, %f63, %f60, %f90;\n\
    fma.rn.f32          %f1, %f57, %f61, %f91;\n\
    add.u64             %rd9, %rd9, 576;\n\
    add.u64             %rd7, %rd7, 576;\n\
    add.u64             %rd8, %rd8, 4096;\n\
    add.u32             %r16, %r16, 1;\n\
"
"\
    setp.lt.u32         %p3, %r16, 4;\n\
    @%p3 bra            $turn_loop;\n\
    shfl.sync.bfly.b32  %f92, %f1, 16, 31, 0xFFFFFFFF;\n\
    add.f32             %f93, %f1, %f92;\n\
    shfl.sync.bfly.b32  %f94, %f93, 8, 31, 0xFFFFFFFF;\n\
    add.f32             %f95, %f93, %f94;\n\
    shfl.sync.bfly.b32  %f96, %f95, 4, 31, 0xFFFFFFFF;\n\
    add.f32             %f97, %f95, %f96;\n\
    shfl.sync.bfly.b32  %f98, %f97, 2, 31, 0xFFFFFFFF;\n\
    add.f32             %f99, %f97, %f98;\n\
    shfl.sync.bfly.b32  %f100, %f99, 1, 31, 0xFFFFFFFF;\n\
    add.f32             %f101, %f99, %f100;\n\
    setp.eq.u32         %p4, %r4, 0;\n\
    @!%p4 bra           $skip;\n\
    mov.u32             %r71, partial;                          // partial\n\
    mad.lo.u32          %r72, %r3, 4, %r71;\n\
    st.shared.f32       [%r72], %f101;\n\
\n\
$skip:\n\
    bar.sync            0;\n\
    mov.f32             %f102, 0f00000000;\n\
    setp.eq.u32         %p5, %r3, 0;\n\
    @!%p5 bra           $skip_3;\n\
    setp.lt.u32         %p6, %r4, 2;\n\
    @!%p6 bra           $skip_2;\n\
    mov.u32             %r73, partial;                          // partial\n\
    mad.lo.u32          %r74, %r4, 4, %r73;\n\
    ld.shared.f32       %f102, [%r74];\n\
\n\
$skip_2:\n\
    shfl.sync.bfly.b32  %f103, %f102, 1, 31, 0xFFFFFFFF;\n\
    add.f32             %f102, %f102, %f103;\n\
\n\
$skip_3:\n\
    mov.f32             %f104, %f102;\n\
    setp.eq.u32         %p7, %r2, 0;\n\
    @!%p7 bra           $skip_4;\n\
    mad.wide.u32        %rd10, %r1, 4, %rd1;\n\
    st.global.f32       [%rd10], %f104;\n\
\n\
$skip_4:\n\
    ret;\n\
}\n\
";
static const ptxgen_param llama_mwv_q4k_gemv_k4096_n1024_w2_params[] = {
    { "y", PTXGEN_PARAM_POINTER, PTXGEN_PARAM_OUT, PTXGEN_F32, 4096, "n*4", 4 },
    { "w", PTXGEN_PARAM_POINTER, PTXGEN_PARAM_IN, PTXGEN_Q4_K, 2359296, "n*k/256*144", 16 },
    { "x", PTXGEN_PARAM_POINTER, PTXGEN_PARAM_IN, PTXGEN_F32, 16384, "k*4", 16 },
};
static const ptxgen_config llama_mwv_q4k_gemv_k4096_n1024_w2_config[] = {
    { "k", 4096, 0, NULL, 0, 0, 0, 1 },
    { "n", 1024, 0, NULL, 0, 0, 0, 1 },
    { "num_warps", 2, 0, NULL, 0, 0, 0, 1 },
    { "dims", 0, 0, "static", 0, 0, 0, 1 },
};
const ptxgen_kernel llama_mwv_q4k_gemv_k4096_n1024_w2 = {
    "mwv_q4k_gemv_k4096_n1024_w2", "mwv_q4k_gemv_k4096_n1024_w2",
    llama_mwv_q4k_gemv_k4096_n1024_w2_ptx, 9462, UINT64_C(0x6ccac38ce6e0fb1b),
    "mwv_q4k_gemv", PTXGEN_GEMV, PTXGEN_Q4_K, PTXGEN_F32, PTXGEN_F32,
    75, 63, 0, 0, /* sm, isa, overlaps, specific */
    llama_mwv_q4k_gemv_k4096_n1024_w2_params, 3,
    { 64, 1, 1 }, { 1024, 1, 1 }, NULL, /* block, grid, grid_at */
    8, 0, NULL, 0, /* shared_static, shared_dynamic, shared_at, workspace */
    4096, 1024, 1, /* k, n, m */
    2, 0, 0, 0, 0, /* num_warps, head_dim, num_heads, num_kv_heads, max_seq_len */
    0, 0, /* dynamic_dims, seq_len_indirect */
    llama_mwv_q4k_gemv_k4096_n1024_w2_config, 4,
    0, 0, /* registers, blocks_per_sm */
    10, /* preference */
    NULL, 0, 0, /* chosen_by, chosen_f32, chosen_q8 */
};

static const char llama_mwv_q4k_gemv_k4096_n1024_w4_ptx[] = "\
// mwv_q4k_gemv  k=4096 n=1024 num_warps=4  y[n] = W[n,k] x[k]\n\
// ptxgen 0.1.0  block 128  grid 1024\n\
.version 6.3\n\
.target sm_75\n\
.address_size 64\n\
\n\
.visible .entry mwv_q4k_gemv_k4096_n1024_w4(\n\
    .param .u64 y,\n\
    .param .u64 w,\n\
    .param .u64 x)\n\
.reqntid 128, 1, 1\n\
.maxnreg 64\n\
{\n\
    .reg .pred  %p<8>;\n\
    .reg .b16   %h<5>;\n\
    .reg .b32   %r<75>;\n\
    .reg .f32   %f<107>;\n\
    .reg .b64   %rd<11>;\n\
    .shared .align 16 .b32 partial[4];\n\
\n\
    ld.param.u64        %rd1, [y];\n\
    ld.param.u64        %rd2, [w];\n\
    ld.param.u64        %rd3, [x];\n\
    mov.u32             %r1, %ctaid.x;                          // row\n\
    mov.u32             %r2, %tid.x;\n\
    shr.u32             %r3, %r2, 5;                            // warp\n\
    and.b32             %r4, %r2, 31;                           // lane\n\
    mad.wide.u32        %rd4, %r1, 2304, %rd2;                  // &w[row]\n\
    mad.wide.u32        %rd5, %r3, 144, %rd4;\n\
    mad.lo.u32          %r5, %r4, 4, 16;\n\
    cvt.u64.u32         %rd6, %r5;\n\
    add.u64             %rd7, %rd5, %rd6;\n\
    shr.u32             %r6, %r4, 3;                            // chunk\n\
    and.b32             %r7, %r4, 7;\n\
    mul.lo.u32          %r8, %r7, 4;\n\
    mad.lo.u32          %r9, %r6, 64, %r8;\n\
    mad.lo.u32          %r10, %r3, 256, %r9;\n\
    mad.wide.u32        %rd8, %r10, 4, %rd3;\n\
    and.b32             %r11, %r6, 1;\n\
    setp.ne.u32         %p1, %r11, 0;\n\
    selp.u32            %r12, 0x7632, 0x5410, %p1;\n\
    setp.ge.u32         %p2, %r6, 2;\n\
    selp.u32            %r13, 2, 0, %p2;\n\
    selp.u32            %r14, 0x30303030, 0x3F3F3F3F, %p2;\n\
    selp.u32            %r15, 0x0F0F0F0F, 0, %p2;\n\
    mov.u64             %rd9, %rd5;\n\
    mov.f32             %f1, 0f00000000;\n\
    mov.u32             %r16, 0;                                // turn\n\
\n\
$turn_loop:                                                     // 16 weights a lane\n\
    .pragma \"nounroll\";\n\
    ld.global.nc.v4.u32 {%r17, %r18, %r19, %r20}, [%rd9];\n\
    mov.b32             {%h1, %h2}, %r17;\n\
    cvt.f32.f16         %f2, %h1;\n\
    mul.f32             %f3, %f2, 0f41800000;\n\
    shr.u32             %r21, %r20, 4;\n\
    prmt.b32            %r22, %r20, %r21, %r12;\n\
    prmt.b32            %r23, %r18, %r19, %r12;\n\
    shr.u32             %r24, %r23, %r13;\n\
    and.b32             %r25, %r24, %r14;\n\
    lop3.b32            %r26, %r22, %r15, %r25, 0xEA;\n\
    bfe.u32             %r27, %r26, 8, 8;\n\
    cvt.rn.f32.u32      %f4, %r27;\n\
    mul.f32             %f5, %f3, %f4;\n\
    ld.global.nc.u32    %r28, [%rd7];\n\
    shr.u32             %r29, %r28, 1;\n\
    lop3.b32            %r30, %r29, 0x78787878, 0x80808080, 0xEA;\n\
    prmt.b32            %r31, %r30, 0x3F000000, 0x7344;\n\
    mov.b32             %f6, %r31;\n\
    cvt.f32.f16         %f7, %h2;\n\
    neg.f32             %f8, %f7;\n\
    shr.u32             %r32, %r26, 24;\n\
    cvt.rn.f32.u32      %f9, %r32;\n\
    neg.f32             %f10, %f5;\n\
    fma.rn.f32          %f11, %f8, %f9, %f10;\n\
    fma.rn.f32          %f12, %f5, %f6, %f11;\n\
    ld.global.nc.v4.f32 {%f13, %f14, %f15, %f16}, [%rd8+128];\n\
    prmt.b32            %r33, %r30, 0x3F000000, 0x7244;\n\
    mov.b32             %f17, %r33;\n\
    fma.rn.f32          %f18, %f5, %f17, %f11;\n\
    prmt.b32            %r34, %r30, 0x3F000000, 0x7144;\n\
    mov.b32             %f19, %r34;\n\
    fma.rn.f32          %f20, %f5, %f19, %f11;\n\
    prmt.b32            %r35, %r30, 0x3F000000, 0x7044;\n\
    mov.b32             %f21, %r35;\n\
    fma.rn.f32          %f22, %f5, %f21, %f11;\n\
    and.b32             %r36, %r26, 0xFF;\n\
    cvt.rn.f32.u32      %f23, %r36;\n\
    mul.f32             %f24, %f3, %f23;\n\
    shl.b32             %r37, %r28, 3;\n\
    lop3.b32            %r38, %r37, 0x78787878, 0x80808080, 0xEA;\n\
    prmt.b32            %r39, %r38, 0x3F000000, 0x7344;\n\
    mov.b32             %f25, %r39;\n\
    bfe.u32             %r40, %r26, 16, 8;\n\
    cvt.rn.f32.u32      %f26, %r40;\n\
    neg.f32             %f27, %f24;\n\
    fma.rn.f32          %f28, %f8, %f26, %f27;\n\
    fma.rn.f32          %f29, %f24, %f25, %f28;\n\
    ld.global.nc.v4.f32 {%f30, %f31, %f32, %f33}, [%rd8];\n\
    prmt.b32            %r41, %r38, 0x3F000000, 0x7244;\n\
    mov.b32             %f34, %r41;\n\
    fma.rn.f32          %f35, %f24, %f34, %f28;\n\
    prmt.b32            %r42, %r38, 0x3F000000, 0x7144;\n\
    mov.b32             %f36, %r42;\n\
    fma.rn.f32          %f37, %f24, %f36, %f28;\n\
    prmt.b32            %r43, %r38, 0x3F000000, 0x7044;\n\
    mov.b32             %f38, %r43;\n\
    fma.rn.f32          %f39, %f24, %f38, %f28;\n\
    fma.rn.f32          %f40, %f39, %f30, %f1;\n\
    fma.rn.f32          %f41, %f37, %f31, %f40;\n\
    fma.rn.f32          %f42, %f35, %f32, %f41;\n\
    fma.rn.f32          %f43, %f29, %f33, %f42;\n\
    fma.rn.f32          %f44, %f22, %f13, %f43;\n\
    fma.rn.f32          %f45, %f20, %f14, %f44;\n\
    fma.rn.f32          %f46, %f18, %f15, %f45;\n\
    fma.rn.f32          %f1, %f12, %f16, %f46;\n\
    ld.global.nc.v4.u32 {%r44, %r45, %r46, %r47}, [%rd9+576];\n\
    mov.b32             {%h3, %h4}, %r44;\n\
    cvt.f32.f16         %f47, %h3;\n\
    mul.f32             %f48, %f47, 0f41800000;\n\
    shr.u32             %r48, %r47, 4;\n\
    prmt.b32            %r49, %r47, %r48, %r12;\n\
    prmt.b32            %r50, %r45, %r46, %r12;\n\
    shr.u32             %r51, %r50, %r13;\n\
    and.b32             %r52, %r51, %r14;\n\
    lop3.b32            %r53, %r49, %r15, %r52, 0xEA;\n\
    bfe.u32             %r54, %r53, 8, 8;\n\
    cvt.rn.f32.u32      %f49, %r54;\n\
    mul.f32             %f50, %f48, %f49;\n\
    ld.global.nc.u32    %r55, [%rd7+576];\n\
    shr.u32             %r56, %r55, 1;\n\
    lop3.b32            %r57, %r56, 0x78787878, 0x80808080, 0xEA;\n\
    prmt.b32            %r58, %r57, 0x3F000000, 0x7344;\n\
    mov.b32             %f51, %r58;\n\
    cvt.f32.f16         %f52, %h4;\n\
    neg.f32             %f53, %f52;\n\
    shr.u32             %r59, %r53, 24;\n\
    cvt.rn.f32.u32      %f54, %r59;\n\
    neg.f32             %f55, %f50;\n\
    fma.rn.f32          %f56, %f53, %f54, %f55;\n\
    fma.rn.f32          %f57, %f50, %f51, %f56;\n\
    ld.global.nc.v4.f32 {%f58, %f59, %f60, %f61}, [%rd8+4224];\n\
    prmt.b32            %r60, %r57, 0x3F000000, 0x7244;\n\
    mov.b32             %f62, %r60;\n\
    fma.rn.f32          %f63, %f50, %f62, %f56;\n\
    prmt.b32            %r61, %r57, 0x3F000000, 0x7144;\n\
    mov.b32             %f64, %r61;\n\
    fma.rn.f32          %f65, %f50, %f64, %f56;\n\
    prmt.b32            %r62, %r57, 0x3F000000, 0x7044;\n\
    mov.b32             %f66, %r62;\n\
    fma.rn.f32          %f67, %f50, %f66, %f56;\n\
    and.b32             %r63, %r53, 0xFF;\n\
    cvt.rn.f32.u32      %f68, %r63;\n\
    mul.f32             %f69, %f48, %f68;\n\
    shl.b32             %r64, %r55, 3;\n\
    lop3.b32            %r65, %r64, 0x78787878, 0x80808080, 0xEA;\n\
    prmt.b32            %r66, %r65, 0x3F000000, 0x7344;\n\
    mov.b32             %f70, %r66;\n\
    bfe.u32             %r67, %r53, 16, 8;\n\
    cvt.rn.f32.u32      %f71, %r67;\n\
    neg.f32             %f72, %f69;\n\
    fma.rn.f32          %f73, %f53, %f71, %f72;\n\
    fma.rn.f32          %f74, %f69, %f70, %f73;\n\
    ld.global.nc.v4.f32 {%f75, %f76, %f77, %f78}, [%rd8+4096];\n\
    prmt.b32            %r68, %r65, 0x3F000000, 0x7244;\n\
    mov.b32             %f79, %r68;\n\
    fma.rn.f32          %f80, %f69, %f79, %f73;\n\
    prmt.b32            %r69, %r65, 0x3F000000, 0x7144;\n\
    mov.b32             %f81, %r69;\n\
    fma.rn.f32          %f82, %f69, %f81, %f73;\n\
    prmt.b32            %r70, %r65, 0x3F000000, 0x7044;\n\
    mov.b32             %f83, %r70;\n\
    fma.rn.f32          %f84, %f69, %f83, %f73;\n\
    fma.rn.f32          %f85, %f84, %f75, %f1;\n\
    fma.rn.f32          %f86, %f82, %f76, %f85;\n\
    fma.rn.f32          %f87, %f80, %f77, %f86;\n\
    fma.rn.f32          %f88, %f74, %f78, %f87;\n\
    fma.rn.f32          %f89, %f67, %f58, %f88;\n\
    fma.rn.f32          %f90, %f65, %f59, %f89;\n\
    fma.rn.f32          %f91, %f63, %f60, %f90;\n\
    fma.rn.f32          %f1, %f57, %f61, %f91;\n\
    add.u64             %rd9, %rd9, 1152;\n\
    add.u64             %rd7, %rd7, 1152;\n\
    add.u64             %rd8, %rd8, 8192;\n\
    add.u32             %r16, %r16, 1;\n\
"
"\
    setp.lt.u32         %p3, %r16, 2;\n\
    @%p3 bra            $turn_loop;\n\
    shfl.sync.bfly.b32  %f92, %f1, 16, 31, 0xFFFFFFFF;\n\
    add.f32             %f93, %f1, %f92;\n\
    shfl.sync.bfly.b32  %f94, %f93, 8, 31, 0xFFFFFFFF;\n\
    add.f32             %f95, %f93, %f94;\n\
    shfl.sync.bfly.b32  %f96, %f95, 4, 31, 0xFFFFFFFF;\n\
    add.f32             %f97, %f95, %f96;\n\
    shfl.sync.bfly.b32  %f98, %f97, 2, 31, 0xFFFFFFFF;\n\
    add.f32             %f99, %f97, %f98;\n\
    shfl.sync.bfly.b32  %f100, %f99, 1, 31, 0xFFFFFFFF;\n\
    add.f32             %f101, %f99, %f100;\n\
    setp.eq.u32         %p4, %r4, 0;\n\
    @!%p4 bra           $skip;\n\
    mov.u32             %r71, partial;                          // partial\n\
    mad.lo.u32          %r72, %r3, 4, %r71;\n\
    st.shared.f32       [%r72], %f101;\n\
\n\
$skip:\n\
    bar.sync            0;\n\
    mov.f32             %f102, 0f00000000;\n\
    setp.eq.u32         %p5, %r3, 0;\n\
    @!%p5 bra           $skip_3;\n\
    setp.lt.u32         %p6, %r4, 4;\n\
    @!%p6 bra           $skip_2;\n\
    mov.u32             %r73, partial;                          // partial\n\
    mad.lo.u32          %r74, %r4, 4, %r73;\n\
    ld.shared.f32       %f102, [%r74];\n\
\n\
$skip_2:\n\
    shfl.sync.bfly.b32  %f103, %f102, 2, 31, 0xFFFFFFFF;\n\
    add.f32             %f104, %f102, %f103;\n\
    shfl.sync.bfly.b32  %f105, %f104, 1, 31, 0xFFFFFFFF;\n\
    add.f32             %f102, %f104, %f105;\n\
\n\
$skip_3:\n\
    mov.f32             %f106, %f102;\n\
    setp.eq.u32         %p7, %r2, 0;\n\
    @!%p7 bra           $skip_4;\n\
    mad.wide.u32        %rd10, %r1, 4, %rd1;\n\
    st.global.f32       [%rd10], %f106;\n\
\n\
$skip_4:\n\
    ret;\n\
}\n\
";
static const ptxgen_param llama_mwv_q4k_gemv_k4096_n1024_w4_params[] = {
    { "y", PTXGEN_PARAM_POINTER, PTXGEN_PARAM_OUT, PTXGEN_F32, 4096, "n*4", 4 },
    { "w", PTXGEN_PARAM_POINTER, PTXGEN_PARAM_IN, PTXGEN_Q4_K, 2359296, "n*k/256*144", 16 },
    { "x", PTXGEN_PARAM_POINTER, PTXGEN_PARAM_IN, PTXGEN_F32, 16384, "k*4", 16 },
};
static const ptxgen_config llama_mwv_q4k_gemv_k4096_n1024_w4_config[] = {
    { "k", 4096, 0, NULL, 0, 0, 0, 1 },
    { "n", 1024, 0, NULL, 0, 0, 0, 1 },
    { "num_warps", 4, 0, NULL, 0, 0, 0, 1 },
    { "dims", 0, 0, "static", 0, 0, 0, 1 },
};
const ptxgen_kernel llama_mwv_q4k_gemv_k4096_n1024_w4 = {
    "mwv_q4k_gemv_k4096_n1024_w4", "mwv_q4k_gemv_k4096_n1024_w4",
    llama_mwv_q4k_gemv_k4096_n1024_w4_ptx, 9568, UINT64_C(0x4f61a33fd8a87f37),
    "mwv_q4k_gemv", PTXGEN_GEMV, PTXGEN_Q4_K, PTXGEN_F32, PTXGEN_F32,
    75, 63, 0, 0, /* sm, isa, overlaps, specific */
    llama_mwv_q4k_gemv_k4096_n1024_w4_params, 3,
    { 128, 1, 1 }, { 1024, 1, 1 }, NULL, /* block, grid, grid_at */
    16, 0, NULL, 0, /* shared_static, shared_dynamic, shared_at, workspace */
    4096, 1024, 1, /* k, n, m */
    4, 0, 0, 0, 0, /* num_warps, head_dim, num_heads, num_kv_heads, max_seq_len */
    0, 0, /* dynamic_dims, seq_len_indirect */
    llama_mwv_q4k_gemv_k4096_n1024_w4_config, 4,
    0, 0, /* registers, blocks_per_sm */
    10, /* preference */
    NULL, 0, 0, /* chosen_by, chosen_f32, chosen_q8 */
};

static const char llama_mwv_q4k_gemv_k4096_n14336_w2_ptx[] = "\
// mwv_q4k_gemv  k=4096 n=14336 num_warps=2  y[n] = W[n,k] x[k]\n\
// ptxgen 0.1.0  block 64  grid 14336\n\
.version 6.3\n\
.target sm_75\n\
.address_size 64\n\
\n\
.visible .entry mwv_q4k_gemv_k4096_n14336_w2(\n\
    .param .u64 y,\n\
    .param .u64 w,\n\
    .param .u64 x)\n\
.reqntid 64, 1, 1\n\
.maxnreg 64\n\
{\n\
    .reg .pred  %p<8>;\n\
    .reg .b16   %h<5>;\n\
    .reg .b32   %r<75>;\n\
    .reg .f32   %f<105>;\n\
    .reg .b64   %rd<11>;\n\
    .shared .align 16 .b32 partial[2];\n\
\n\
    ld.param.u64        %rd1, [y];\n\
    ld.param.u64        %rd2, [w];\n\
    ld.param.u64        %rd3, [x];\n\
    mov.u32             %r1, %ctaid.x;                          // row\n\
    mov.u32             %r2, %tid.x;\n\
    shr.u32             %r3, %r2, 5;                            // warp\n\
    and.b32             %r4, %r2, 31;                           // lane\n\
    mad.wide.u32        %rd4, %r1, 2304, %rd2;                  // &w[row]\n\
    mad.wide.u32        %rd5, %r3, 144, %rd4;\n\
    mad.lo.u32          %r5, %r4, 4, 16;\n\
    cvt.u64.u32         %rd6, %r5;\n\
    add.u64             %rd7, %rd5, %rd6;\n\
    shr.u32             %r6, %r4, 3;                            // chunk\n\
    and.b32             %r7, %r4, 7;\n\
    mul.lo.u32          %r8, %r7, 4;\n\
    mad.lo.u32          %r9, %r6, 64, %r8;\n\
    mad.lo.u32          %r10, %r3, 256, %r9;\n\
    mad.wide.u32        %rd8, %r10, 4, %rd3;\n\
    and.b32             %r11, %r6, 1;\n\
    setp.ne.u32         %p1, %r11, 0;\n\
    selp.u32            %r12, 0x7632, 0x5410, %p1;\n\
    setp.ge.u32         %p2, %r6, 2;\n\
    selp.u32            %r13, 2, 0, %p2;\n\
    selp.u32            %r14, 0x30303030, 0x3F3F3F3F, %p2;\n\
    selp.u32            %r15, 0x0F0F0F0F, 0, %p2;\n\
    mov.u64             %rd9, %rd5;\n\
    mov.f32             %f1, 0f00000000;\n\
    mov.u32             %r16, 0;                                // turn\n\
\n\
$turn_loop:                                                     // 16 weights a lane\n\
    .pragma \"nounroll\";\n\
    ld.global.nc.v4.u32 {%r17, %r18, %r19, %r20}, [%rd9];\n\
    mov.b32             {%h1, %h2}, %r17;\n\
    cvt.f32.f16         %f2, %h1;\n\
    mul.f32             %f3, %f2, 0f41800000;\n\
    shr.u32             %r21, %r20, 4;\n\
    prmt.b32            %r22, %r20, %r21, %r12;\n\
    prmt.b32            %r23, %r18, %r19, %r12;\n\
    shr.u32             %r24, %r23, %r13;\n\
    and.b32             %r25, %r24, %r14;\n\
    lop3.b32            %r26, %r22, %r15, %r25, 0xEA;\n\
    bfe.u32             %r27, %r26, 8, 8;\n\
    cvt.rn.f32.u32      %f4, %r27;\n\
    mul.f32             %f5, %f3, %f4;\n\
    ld.global.nc.u32    %r28, [%rd7];\n\
    shr.u32             %r29, %r28, 1;\n\
    lop3.b32            %r30, %r29, 0x78787878, 0x80808080, 0xEA;\n\
    prmt.b32            %r31, %r30, 0x3F000000, 0x7344;\n\
    mov.b32             %f6, %r31;\n\
    cvt.f32.f16         %f7, %h2;\n\
    neg.f32             %f8, %f7;\n\
    shr.u32             %r32, %r26, 24;\n\
    cvt.rn.f32.u32      %f9, %r32;\n\
    neg.f32             %f10, %f5;\n\
    fma.rn.f32          %f11, %f8, %f9, %f10;\n\
    fma.rn.f32          %f12, %f5, %f6, %f11;\n\
    ld.global.nc.v4.f32 {%f13, %f14, %f15, %f16}, [%rd8+128];\n\
    prmt.b32            %r33, %r30, 0x3F000000, 0x7244;\n\
    mov.b32             %f17, %r33;\n\
    fma.rn.f32          %f18, %f5, %f17, %f11;\n\
    prmt.b32            %r34, %r30, 0x3F000000, 0x7144;\n\
    mov.b32             %f19, %r34;\n\
    fma.rn.f32          %f20, %f5, %f19, %f11;\n\
    prmt.b32            %r35, %r30, 0x3F000000, 0x7044;\n\
    mov.b32             %f21, %r35;\n\
    fma.rn.f32          %f22, %f5, %f21, %f11;\n\
    and.b32             %r36, %r26, 0xFF;\n\
    cvt.rn.f32.u32      %f23, %r36;\n\
    mul.f32             %f24, %f3, %f23;\n\
    shl.b32             %r37, %r28, 3;\n\
    lop3.b32            %r38, %r37, 0x78787878, 0x80808080, 0xEA;\n\
    prmt.b32            %r39, %r38, 0x3F000000, 0x7344;\n\
    mov.b32             %f25, %r39;\n\
    bfe.u32             %r40, %r26, 16, 8;\n\
    cvt.rn.f32.u32      %f26, %r40;\n\
    neg.f32             %f27, %f24;\n\
    fma.rn.f32          %f28, %f8, %f26, %f27;\n\
    fma.rn.f32          %f29, %f24, %f25, %f28;\n\
    ld.global.nc.v4.f32 {%f30, %f31, %f32, %f33}, [%rd8];\n\
    prmt.b32            %r41, %r38, 0x3F000000, 0x7244;\n\
    mov.b32             %f34, %r41;\n\
    fma.rn.f32          %f35, %f24, %f34, %f28;\n\
    prmt.b32            %r42, %r38, 0x3F000000, 0x7144;\n\
    mov.b32             %f36, %r42;\n\
    fma.rn.f32          %f37, %f24, %f36, %f28;\n\
    prmt.b32            %r43, %r38, 0x3F000000, 0x7044;\n\
    mov.b32             %f38, %r43;\n\
    fma.rn.f32          %f39, %f24, %f38, %f28;\n\
    fma.rn.f32          %f40, %f39, %f30, %f1;\n\
    fma.rn.f32          %f41, %f37, %f31, %f40;\n\
    fma.rn.f32          %f42, %f35, %f32, %f41;\n\
    fma.rn.f32          %f43, %f29, %f33, %f42;\n\
    fma.rn.f32          %f44, %f22, %f13, %f43;\n\
    fma.rn.f32          %f45, %f20, %f14, %f44;\n\
    fma.rn.f32          %f46, %f18, %f15, %f45;\n\
    fma.rn.f32          %f1, %f12, %f16, %f46;\n\
    ld.global.nc.v4.u32 {%r44, %r45, %r46, %r47}, [%rd9+288];\n\
    mov.b32             {%h3, %h4}, %r44;\n\
    cvt.f32.f16         %f47, %h3;\n\
    mul.f32             %f48, %f47, 0f41800000;\n\
    shr.u32             %r48, %r47, 4;\n\
    prmt.b32            %r49, %r47, %r48, %r12;\n\
    prmt.b32            %r50, %r45, %r46, %r12;\n\
    shr.u32             %r51, %r50, %r13;\n\
    and.b32             %r52, %r51, %r14;\n\
    lop3.b32            %r53, %r49, %r15, %r52, 0xEA;\n\
    bfe.u32             %r54, %r53, 8, 8;\n\
    cvt.rn.f32.u32      %f49, %r54;\n\
    mul.f32             %f50, %f48, %f49;\n\
    ld.global.nc.u32    %r55, [%rd7+288];\n\
    shr.u32             %r56, %r55, 1;\n\
    lop3.b32            %r57, %r56, 0x78787878, 0x80808080, 0xEA;\n\
    prmt.b32            %r58, %r57, 0x3F000000, 0x7344;\n\
    mov.b32             %f51, %r58;\n\
    cvt.f32.f16         %f52, %h4;\n\
    neg.f32             %f53, %f52;\n\
    shr.u32             %r59, %r53, 24;\n\
    cvt.rn.f32.u32      %f54, %r59;\n\
    neg.f32             %f55, %f50;\n\
    fma.rn.f32          %f56, %f53, %f54, %f55;\n\
    fma.rn.f32          %f57, %f50, %f51, %f56;\n\
    ld.global.nc.v4.f32 {%f58, %f59, %f60, %f61}, [%rd8+2176];\n\
    prmt.b32            %r60, %r57, 0x3F000000, 0x7244;\n\
    mov.b32             %f62, %r60;\n\
    fma.rn.f32          %f63, %f50, %f62, %f56;\n\
    prmt.b32            %r61, %r57, 0x3F000000, 0x7144;\n\
    mov.b32             %f64, %r61;\n\
    fma.rn.f32          %f65, %f50, %f64, %f56;\n\
    prmt.b32            %r62, %r57, 0x3F000000, 0x7044;\n\
    mov.b32             %f66, %r62;\n\
    fma.rn.f32          %f67, %f50, %f66, %f56;\n\
    and.b32             %r63, %r53, 0xFF;\n\
    cvt.rn.f32.u32      %f68, %r63;\n\
    mul.f32             %f69, %f48, %f68;\n\
    shl.b32             %r64, %r55, 3;\n\
    lop3.b32            %r65, %r64, 0x78787878, 0x80808080, 0xEA;\n\
    prmt.b32            %r66, %r65, 0x3F000000, 0x7344;\n\
    mov.b32             %f70, %r66;\n\
    bfe.u32             %r67, %r53, 16, 8;\n\
    cvt.rn.f32.u32      %f71, %r67;\n\
    neg.f32             %f72, %f69;\n\
    fma.rn.f32          %f73, %f53, %f71, %f72;\n\
    fma.rn.f32          %f74, %f69, %f70, %f73;\n\
    ld.global.nc.v4.f32 {%f75, %f76, %f77, %f78}, [%rd8+2048];\n\
    prmt.b32            %r68, %r65, 0x3F000000, 0x7244;\n\
    mov.b32             %f79, %r68;\n\
    fma.rn.f32          %f80, %f69, %f79, %f73;\n\
    prmt.b32            %r69, %r65, 0x3F000000, 0x7144;\n\
    mov.b32             %f81, %r69;\n\
    fma.rn.f32          %f82, %f69, %f81, %f73;\n\
    prmt.b32            %r70, %r65, 0x3F000000, 0x7044;\n\
    mov.b32             %f83, %r70;\n\
    fma.rn.f32          %f84, %f69, %f83, %f73;\n\
    fma.rn.f32          %f85, %f84, %f75, %f1;\n\
    fma.rn.f32          %f86, %f82, %f76, %f85;\n\
    fma.rn.f32          %f87, %f80, %f77, %f86;\n\
    fma.rn.f32          %f88, %f74, %f78, %f87;\n\
    fma.rn.f32          %f89, %f67, %f58, %f88;\n\
    fma.rn.f32          %f90, %f65, %f59, %f89;\n\
    fma.rn.f32          %f91, %f63, %f60, %f90;\n\
    fma.rn.f32          %f1, %f57, %f61, %f91;\n\
    add.u64             %rd9, %rd9, 576;\n\
    add.u64             %rd7, %rd7, 576;\n\
    add.u64             %rd8, %rd8, 4096;\n\
    add.u32             %r16, %r16, 1;\n\
"
"\
    setp.lt.u32         %p3, %r16, 4;\n\
    @%p3 bra            $turn_loop;\n\
    shfl.sync.bfly.b32  %f92, %f1, 16, 31, 0xFFFFFFFF;\n\
    add.f32             %f93, %f1, %f92;\n\
    shfl.sync.bfly.b32  %f94, %f93, 8, 31, 0xFFFFFFFF;\n\
    add.f32             %f95, %f93, %f94;\n\
    shfl.sync.bfly.b32  %f96, %f95, 4, 31, 0xFFFFFFFF;\n\
    add.f32             %f97, %f95, %f96;\n\
    shfl.sync.bfly.b32  %f98, %f97, 2, 31, 0xFFFFFFFF;\n\
    add.f32             %f99, %f97, %f98;\n\
    shfl.sync.bfly.b32  %f100, %f99, 1, 31, 0xFFFFFFFF;\n\
    add.f32             %f101, %f99, %f100;\n\
    setp.eq.u32         %p4, %r4, 0;\n\
    @!%p4 bra           $skip;\n\
    mov.u32             %r71, partial;                          // partial\n\
    mad.lo.u32          %r72, %r3, 4, %r71;\n\
    st.shared.f32       [%r72], %f101;\n\
\n\
$skip:\n\
    bar.sync            0;\n\
    mov.f32             %f102, 0f00000000;\n\
    setp.eq.u32         %p5, %r3, 0;\n\
    @!%p5 bra           $skip_3;\n\
    setp.lt.u32         %p6, %r4, 2;\n\
    @!%p6 bra           $skip_2;\n\
    mov.u32             %r73, partial;                          // partial\n\
    mad.lo.u32          %r74, %r4, 4, %r73;\n\
    ld.shared.f32       %f102, [%r74];\n\
\n\
$skip_2:\n\
    shfl.sync.bfly.b32  %f103, %f102, 1, 31, 0xFFFFFFFF;\n\
    add.f32             %f102, %f102, %f103;\n\
\n\
$skip_3:\n\
    mov.f32             %f104, %f102;\n\
    setp.eq.u32         %p7, %r2, 0;\n\
    @!%p7 bra           $skip_4;\n\
    mad.wide.u32        %rd10, %r1, 4, %rd1;\n\
    st.global.f32       [%rd10], %f104;\n\
\n\
$skip_4:\n\
    ret;\n\
}\n\
";
static const ptxgen_param llama_mwv_q4k_gemv_k4096_n14336_w2_params[] = {
    { "y", PTXGEN_PARAM_POINTER, PTXGEN_PARAM_OUT, PTXGEN_F32, 57344, "n*4", 4 },
    { "w", PTXGEN_PARAM_POINTER, PTXGEN_PARAM_IN, PTXGEN_Q4_K, 33030144, "n*k/256*144", 16 },
    { "x", PTXGEN_PARAM_POINTER, PTXGEN_PARAM_IN, PTXGEN_F32, 16384, "k*4", 16 },
};
static const ptxgen_config llama_mwv_q4k_gemv_k4096_n14336_w2_config[] = {
    { "k", 4096, 0, NULL, 0, 0, 0, 1 },
    { "n", 14336, 0, NULL, 0, 0, 0, 1 },
    { "num_warps", 2, 0, NULL, 0, 0, 0, 1 },
    { "dims", 0, 0, "static", 0, 0, 0, 1 },
};
const ptxgen_kernel llama_mwv_q4k_gemv_k4096_n14336_w2 = {
    "mwv_q4k_gemv_k4096_n14336_w2", "mwv_q4k_gemv_k4096_n14336_w2",
    llama_mwv_q4k_gemv_k4096_n14336_w2_ptx, 9465, UINT64_C(0x6e8612c73b69c72d),
    "mwv_q4k_gemv", PTXGEN_GEMV, PTXGEN_Q4_K, PTXGEN_F32, PTXGEN_F32,
    75, 63, 0, 0, /* sm, isa, overlaps, specific */
    llama_mwv_q4k_gemv_k4096_n14336_w2_params, 3,
    { 64, 1, 1 }, { 14336, 1, 1 }, NULL, /* block, grid, grid_at */
    8, 0, NULL, 0, /* shared_static, shared_dynamic, shared_at, workspace */
    4096, 14336, 1, /* k, n, m */
    2, 0, 0, 0, 0, /* num_warps, head_dim, num_heads, num_kv_heads, max_seq_len */
    0, 0, /* dynamic_dims, seq_len_indirect */
    llama_mwv_q4k_gemv_k4096_n14336_w2_config, 4,
    0, 0, /* registers, blocks_per_sm */
    10, /* preference */
    NULL, 0, 0, /* chosen_by, chosen_f32, chosen_q8 */
};

static const char llama_mwv_q4k_gemv_k4096_n14336_w4_ptx[] = "\
// mwv_q4k_gemv  k=4096 n=14336 num_warps=4  y[n] = W[n,k] x[k]\n\
// ptxgen 0.1.0  block 128  grid 14336\n\
.version 6.3\n\
.target sm_75\n\
.address_size 64\n\
\n\
.visible .entry mwv_q4k_gemv_k4096_n14336_w4(\n\
    .param .u64 y,\n\
    .param .u64 w,\n\
    .param .u64 x)\n\
.reqntid 128, 1, 1\n\
.maxnreg 64\n\
{\n\
    .reg .pred  %p<8>;\n\
    .reg .b16   %h<5>;\n\
    .reg .b32   %r<75>;\n\
    .reg .f32   %f<107>;\n\
    .reg .b64   %rd<11>;\n\
    .shared .align 16 .b32 partial[4];\n\
\n\
    ld.param.u64        %rd1, [y];\n\
    ld.param.u64        %rd2, [w];\n\
    ld.param.u64        %rd3, [x];\n\
    mov.u32             %r1, %ctaid.x;                          // row\n\
    mov.u32             %r2, %tid.x;\n\
    shr.u32             %r3, %r2, 5;                            // warp\n\
    and.b32             %r4, %r2, 31;                           // lane\n\
    mad.wide.u32        %rd4, %r1, 2304, %rd2;                  // &w[row]\n\
    mad.wide.u32        %rd5, %r3, 144, %rd4;\n\
    mad.lo.u32          %r5, %r4, 4, 16;\n\
    cvt.u64.u32         %rd6, %r5;\n\
    add.u64             %rd7, %rd5, %rd6;\n\
    shr.u32             %r6, %r4, 3;                            // chunk\n\
    and.b32             %r7, %r4, 7;\n\
    mul.lo.u32          %r8, %r7, 4;\n\
    mad.lo.u32          %r9, %r6, 64, %r8;\n\
    mad.lo.u32          %r10, %r3, 256, %r9;\n\
    mad.wide.u32        %rd8, %r10, 4, %rd3;\n\
    and.b32             %r11, %r6, 1;\n\
    setp.ne.u32         %p1, %r11, 0;\n\
    selp.u32            %r12, 0x7632, 0x5410, %p1;\n\
    setp.ge.u32         %p2, %r6, 2;\n\
    selp.u32            %r13, 2, 0, %p2;\n\
    selp.u32            %r14, 0x30303030, 0x3F3F3F3F, %p2;\n\
    selp.u32            %r15, 0x0F0F0F0F, 0, %p2;\n\
    mov.u64             %rd9, %rd5;\n\
    mov.f32             %f1, 0f00000000;\n\
    mov.u32             %r16, 0;                                // turn\n\
\n\
$turn_loop:                                                     // 16 weights a lane\n\
    .pragma \"nounroll\";\n\
    ld.global.nc.v4.u32 {%r17, %r18, %r19, %r20}, [%rd9];\n\
    mov.b32             {%h1, %h2}, %r17;\n\
    cvt.f32.f16         %f2, %h1;\n\
    mul.f32             %f3, %f2, 0f41800000;\n\
    shr.u32             %r21, %r20, 4;\n\
    prmt.b32            %r22, %r20, %r21, %r12;\n\
    prmt.b32            %r23, %r18, %r19, %r12;\n\
    shr.u32             %r24, %r23, %r13;\n\
    and.b32             %r25, %r24, %r14;\n\
    lop3.b32            %r26, %r22, %r15, %r25, 0xEA;\n\
    bfe.u32             %r27, %r26, 8, 8;\n\
    cvt.rn.f32.u32      %f4, %r27;\n\
    mul.f32             %f5, %f3, %f4;\n\
    ld.global.nc.u32    %r28, [%rd7];\n\
    shr.u32             %r29, %r28, 1;\n\
    lop3.b32            %r30, %r29, 0x78787878, 0x80808080, 0xEA;\n\
    prmt.b32            %r31, %r30, 0x3F000000, 0x7344;\n\
    mov.b32             %f6, %r31;\n\
    cvt.f32.f16         %f7, %h2;\n\
    neg.f32             %f8, %f7;\n\
    shr.u32             %r32, %r26, 24;\n\
    cvt.rn.f32.u32      %f9, %r32;\n\
    neg.f32             %f10, %f5;\n\
    fma.rn.f32          %f11, %f8, %f9, %f10;\n\
    fma.rn.f32          %f12, %f5, %f6, %f11;\n\
    ld.global.nc.v4.f32 {%f13, %f14, %f15, %f16}, [%rd8+128];\n\
    prmt.b32            %r33, %r30, 0x3F000000, 0x7244;\n\
    mov.b32             %f17, %r33;\n\
    fma.rn.f32          %f18, %f5, %f17, %f11;\n\
    prmt.b32            %r34, %r30, 0x3F000000, 0x7144;\n\
    mov.b32             %f19, %r34;\n\
    fma.rn.f32          %f20, %f5, %f19, %f11;\n\
    prmt.b32            %r35, %r30, 0x3F000000, 0x7044;\n\
    mov.b32             %f21, %r35;\n\
    fma.rn.f32          %f22, %f5, %f21, %f11;\n\
    and.b32             %r36, %r26, 0xFF;\n\
    cvt.rn.f32.u32      %f23, %r36;\n\
    mul.f32             %f24, %f3, %f23;\n\
    shl.b32             %r37, %r28, 3;\n\
    lop3.b32            %r38, %r37, 0x78787878, 0x80808080, 0xEA;\n\
    prmt.b32            %r39, %r38, 0x3F000000, 0x7344;\n\
    mov.b32             %f25, %r39;\n\
    bfe.u32             %r40, %r26, 16, 8;\n\
    cvt.rn.f32.u32      %f26, %r40;\n\
    neg.f32             %f27, %f24;\n\
    fma.rn.f32          %f28, %f8, %f26, %f27;\n\
    fma.rn.f32          %f29, %f24, %f25, %f28;\n\
    ld.global.nc.v4.f32 {%f30, %f31, %f32, %f33}, [%rd8];\n\
    prmt.b32            %r41, %r38, 0x3F000000, 0x7244;\n\
    mov.b32             %f34, %r41;\n\
    fma.rn.f32          %f35, %f24, %f34, %f28;\n\
    prmt.b32            %r42, %r38, 0x3F000000, 0x7144;\n\
    mov.b32             %f36, %r42;\n\
    fma.rn.f32          %f37, %f24, %f36, %f28;\n\
    prmt.b32            %r43, %r38, 0x3F000000, 0x7044;\n\
    mov.b32             %f38, %r43;\n\
    fma.rn.f32          %f39, %f24, %f38, %f28;\n\
    fma.rn.f32          %f40, %f39, %f30, %f1;\n\
    fma.rn.f32          %f41, %f37, %f31, %f40;\n\
    fma.rn.f32          %f42, %f35, %f32, %f41;\n\
    fma.rn.f32          %f43, %f29, %f33, %f42;\n\
    fma.rn.f32          %f44, %f22, %f13, %f43;\n\
    fma.rn.f32          %f45, %f20, %f14, %f44;\n\
    fma.rn.f32          %f46, %f18, %f15, %f45;\n\
    fma.rn.f32          %f1, %f12, %f16, %f46;\n\
    ld.global.nc.v4.u32 {%r44, %r45, %r46, %r47}, [%rd9+576];\n\
    mov.b32             {%h3, %h4}, %r44;\n\
    cvt.f32.f16         %f47, %h3;\n\
    mul.f32             %f48, %f47, 0f41800000;\n\
    shr.u32             %r48, %r47, 4;\n\
    prmt.b32            %r49, %r47, %r48, %r12;\n\
    prmt.b32            %r50, %r45, %r46, %r12;\n\
    shr.u32             %r51, %r50, %r13;\n\
    and.b32             %r52, %r51, %r14;\n\
    lop3.b32            %r53, %r49, %r15, %r52, 0xEA;\n\
    bfe.u32             %r54, %r53, 8, 8;\n\
    cvt.rn.f32.u32      %f49, %r54;\n\
    mul.f32             %f50, %f48, %f49;\n\
    ld.global.nc.u32    %r55, [%rd7+576];\n\
    shr.u32             %r56, %r55, 1;\n\
    lop3.b32            %r57, %r56, 0x78787878, 0x80808080, 0xEA;\n\
    prmt.b32            %r58, %r57, 0x3F000000, 0x7344;\n\
    mov.b32             %f51, %r58;\n\
    cvt.f32.f16         %f52, %h4;\n\
    neg.f32             %f53, %f52;\n\
    shr.u32             %r59, %r53, 24;\n\
    cvt.rn.f32.u32      %f54, %r59;\n\
    neg.f32             %f55, %f50;\n\
    fma.rn.f32          %f56, %f53, %f54, %f55;\n\
    fma.rn.f32          %f57, %f50, %f51, %f56;\n\
    ld.global.nc.v4.f32 {%f58, %f59, %f60, %f61}, [%rd8+4224];\n\
    prmt.b32            %r60, %r57, 0x3F000000, 0x7244;\n\
    mov.b32             %f62, %r60;\n\
    fma.rn.f32          %f63, %f50, %f62, %f56;\n\
    prmt.b32            %r61, %r57, 0x3F000000, 0x7144;\n\
    mov.b32             %f64, %r61;\n\
    fma.rn.f32          %f65, %f50, %f64, %f56;\n\
    prmt.b32            %r62, %r57, 0x3F000000, 0x7044;\n\
    mov.b32             %f66, %r62;\n\
    fma.rn.f32          %f67, %f50, %f66, %f56;\n\
    and.b32             %r63, %r53, 0xFF;\n\
    cvt.rn.f32.u32      %f68, %r63;\n\
    mul.f32             %f69, %f48, %f68;\n\
    shl.b32             %r64, %r55, 3;\n\
    lop3.b32            %r65, %r64, 0x78787878, 0x80808080, 0xEA;\n\
    prmt.b32            %r66, %r65, 0x3F000000, 0x7344;\n\
    mov.b32             %f70, %r66;\n\
    bfe.u32             %r67, %r53, 16, 8;\n\
    cvt.rn.f32.u32      %f71, %r67;\n\
    neg.f32             %f72, %f69;\n\
    fma.rn.f32          %f73, %f53, %f71, %f72;\n\
    fma.rn.f32          %f74, %f69, %f70, %f73;\n\
    ld.global.nc.v4.f32 {%f75, %f76, %f77, %f78}, [%rd8+4096];\n\
    prmt.b32            %r68, %r65, 0x3F000000, 0x7244;\n\
    mov.b32             %f79, %r68;\n\
    fma.rn.f32          %f80, %f69, %f79, %f73;\n\
    prmt.b32            %r69, %r65, 0x3F000000, 0x7144;\n\
    mov.b32             %f81, %r69;\n\
    fma.rn.f32          %f82, %f69, %f81, %f73;\n\
    prmt.b32            %r70, %r65, 0x3F000000, 0x7044;\n\
    mov.b32             %f83, %r70;\n\
    fma.rn.f32          %f84, %f69, %f83, %f73;\n\
    fma.rn.f32          %f85, %f84, %f75, %f1;\n\
    fma.rn.f32          %f86, %f82, %f76, %f85;\n\
    fma.rn.f32          %f87, %f80, %f77, %f86;\n\
    fma.rn.f32          %f88, %f74, %f78, %f87;\n\
    fma.rn.f32          %f89, %f67, %f58, %f88;\n\
    fma.rn.f32          %f90, %f65, %f59, %f89;\n\
    fma.rn.f32          %f91, %f63, %f60, %f90;\n\
    fma.rn.f32          %f1, %f57, %f61, %f91;\n\
    add.u64             %rd9, %rd9, 1152;\n\
    add.u64             %rd7, %rd7, 1152;\n\
    add.u64             %rd8, %rd8, 8192;\n\
    add.u32             %r16, %r16, 1;\n\
"
"\
    setp.lt.u32         %p3, %r16, 2;\n\
    @%p3 bra            $turn_loop;\n\
    shfl.sync.bfly.b32  %f92, %f1, 16, 31, 0xFFFFFFFF;\n\
    add.f32             %f93, %f1, %f92;\n\
    shfl.sync.bfly.b32  %f94, %f93, 8, 31, 0xFFFFFFFF;\n\
    add.f32             %f95, %f93, %f94;\n\
    shfl.sync.bfly.b32  %f96, %f95, 4, 31, 0xFFFFFFFF;\n\
    add.f32             %f97, %f95, %f96;\n\
    shfl.sync.bfly.b32  %f98, %f97, 2, 31, 0xFFFFFFFF;\n\
    add.f32             %f99, %f97, %f98;\n\
    shfl.sync.bfly.b32  %f100, %f99, 1, 31, 0xFFFFFFFF;\n\
    add.f32             %f101, %f99, %f100;\n\
    setp.eq.u32         %p4, %r4, 0;\n\
    @!%p4 bra           $skip;\n\
    mov.u32             %r71, partial;                          // partial\n\
    mad.lo.u32          %r72, %r3, 4, %r71;\n\
    st.shared.f32       [%r72], %f101;\n\
\n\
$skip:\n\
    bar.sync            0;\n\
    mov.f32             %f102, 0f00000000;\n\
    setp.eq.u32         %p5, %r3, 0;\n\
    @!%p5 bra           $skip_3;\n\
    setp.lt.u32         %p6, %r4, 4;\n\
    @!%p6 bra           $skip_2;\n\
    mov.u32             %r73, partial;                          // partial\n\
    mad.lo.u32          %r74, %r4, 4, %r73;\n\
    ld.shared.f32       %f102, [%r74];\n\
\n\
$skip_2:\n\
    shfl.sync.bfly.b32  %f103, %f102, 2, 31, 0xFFFFFFFF;\n\
    add.f32             %f104, %f102, %f103;\n\
    shfl.sync.bfly.b32  %f105, %f104, 1, 31, 0xFFFFFFFF;\n\
    add.f32             %f102, %f104, %f105;\n\
\n\
$skip_3:\n\
    mov.f32             %f106, %f102;\n\
    setp.eq.u32         %p7, %r2, 0;\n\
    @!%p7 bra           $skip_4;\n\
    mad.wide.u32        %rd10, %r1, 4, %rd1;\n\
    st.global.f32       [%rd10], %f106;\n\
\n\
$skip_4:\n\
    ret;\n\
}\n\
";
static const ptxgen_param llama_mwv_q4k_gemv_k4096_n14336_w4_params[] = {
    { "y", PTXGEN_PARAM_POINTER, PTXGEN_PARAM_OUT, PTXGEN_F32, 57344, "n*4", 4 },
    { "w", PTXGEN_PARAM_POINTER, PTXGEN_PARAM_IN, PTXGEN_Q4_K, 33030144, "n*k/256*144", 16 },
    { "x", PTXGEN_PARAM_POINTER, PTXGEN_PARAM_IN, PTXGEN_F32, 16384, "k*4", 16 },
};
static const ptxgen_config llama_mwv_q4k_gemv_k4096_n14336_w4_config[] = {
    { "k", 4096, 0, NULL, 0, 0, 0, 1 },
    { "n", 14336, 0, NULL, 0, 0, 0, 1 },
    { "num_warps", 4, 0, NULL, 0, 0, 0, 1 },
    { "dims", 0, 0, "static", 0, 0, 0, 1 },
};
const ptxgen_kernel llama_mwv_q4k_gemv_k4096_n14336_w4 = {
    "mwv_q4k_gemv_k4096_n14336_w4", "mwv_q4k_gemv_k4096_n14336_w4",
    llama_mwv_q4k_gemv_k4096_n14336_w4_ptx, 9571, UINT64_C(0x51196a08e45d4b39),
    "mwv_q4k_gemv", PTXGEN_GEMV, PTXGEN_Q4_K, PTXGEN_F32, PTXGEN_F32,
    75, 63, 0, 0, /* sm, isa, overlaps, specific */
    llama_mwv_q4k_gemv_k4096_n14336_w4_params, 3,
    { 128, 1, 1 }, { 14336, 1, 1 }, NULL, /* block, grid, grid_at */
    16, 0, NULL, 0, /* shared_static, shared_dynamic, shared_at, workspace */
    4096, 14336, 1, /* k, n, m */
    4, 0, 0, 0, 0, /* num_warps, head_dim, num_heads, num_kv_heads, max_seq_len */
    0, 0, /* dynamic_dims, seq_len_indirect */
    llama_mwv_q4k_gemv_k4096_n14336_w4_config, 4,
    0, 0, /* registers, blocks_per_sm */
    10, /* preference */
    NULL, 0, 0, /* chosen_by, chosen_f32, chosen_q8 */
};

static const char llama_mwv_q4k_gemv_k14336_n4096_w2_ptx[] = "\
// mwv_q4k_gemv  k=14336 n=4096 num_warps=2  y[n] = W[n,k] x[k]\n\
// ptxgen 0.1.0  block 64  grid 4096\n\
.version 6.3\n\
.target sm_75\n\
.address_size 64\n\
\n\
.visible .entry mwv_q4k_gemv_k14336_n4096_w2(\n\
    .param .u64 y,\n\
    .param .u64 w,\n\
    .param .u64 x)\n\
.reqntid 64, 1, 1\n\
.maxnreg 64\n\
{\n\
    .reg .pred  %p<8>;\n\
    .reg .b16   %h<5>;\n\
    .reg .b32   %r<75>;\n\
    .reg .f32   %f<105>;\n\
    .reg .b64   %rd<11>;\n\
    .shared .align 16 .b32 partial[2];\n\
\n\
    ld.param.u64        %rd1, [y];\n\
    ld.param.u64        %rd2, [w];\n\
    ld.param.u64        %rd3, [x];\n\
    mov.u32             %r1, %ctaid.x;                          // row\n\
    mov.u32             %r2, %tid.x;\n\
    shr.u32             %r3, %r2, 5;                            // warp\n\
    and.b32             %r4, %r2, 31;                           // lane\n\
    mad.wide.u32        %rd4, %r1, 8064, %rd2;                  // &w[row]\n\
    mad.wide.u32        %rd5, %r3, 144, %rd4;\n\
    mad.lo.u32          %r5, %r4, 4, 16;\n\
    cvt.u64.u32         %rd6, %r5;\n\
    add.u64             %rd7, %rd5, %rd6;\n\
    shr.u32             %r6, %r4, 3;                            // chunk\n\
    and.b32             %r7, %r4, 7;\n\
    mul.lo.u32          %r8, %r7, 4;\n\
    mad.lo.u32          %r9, %r6, 64, %r8;\n\
    mad.lo.u32          %r10, %r3, 256, %r9;\n\
    mad.wide.u32        %rd8, %r10, 4, %rd3;\n\
    and.b32             %r11, %r6, 1;\n\
    setp.ne.u32         %p1, %r11, 0;\n\
    selp.u32            %r12, 0x7632, 0x5410, %p1;\n\
    setp.ge.u32         %p2, %r6, 2;\n\
    selp.u32            %r13, 2, 0, %p2;\n\
    selp.u32            %r14, 0x30303030, 0x3F3F3F3F, %p2;\n\
    selp.u32            %r15, 0x0F0F0F0F, 0, %p2;\n\
    mov.u64             %rd9, %rd5;\n\
    mov.f32             %f1, 0f00000000;\n\
    mov.u32             %r16, 0;                                // turn\n\
\n\
$turn_loop:                                                     // 16 weights a lane\n\
    .pragma \"nounroll\";\n\
    ld.global.nc.v4.u32 {%r17, %r18, %r19, %r20}, [%rd9];\n\
    mov.b32             {%h1, %h2}, %r17;\n\
    cvt.f32.f16         %f2, %h1;\n\
    mul.f32             %f3, %f2, 0f41800000;\n\
    shr.u32             %r21, %r20, 4;\n\
    prmt.b32            %r22, %r20, %r21, %r12;\n\
    prmt.b32            %r23, %r18, %r19, %r12;\n\
    shr.u32             %r24, %r23, %r13;\n\
    and.b32             %r25, %r24, %r14;\n\
    lop3.b32            %r26, %r22, %r15, %r25, 0xEA;\n\
    bfe.u32             %r27, %r26, 8, 8;\n\
    cvt.rn.f32.u32      %f4, %r27;\n\
    mul.f32             %f5, %f3, %f4;\n\
    ld.global.nc.u32    %r28, [%rd7];\n\
    shr.u32             %r29, %r28, 1;\n\
    lop3.b32            %r30, %r29, 0x78787878, 0x80808080, 0xEA;\n\
    prmt.b32            %r31, %r30, 0x3F000000, 0x7344;\n\
    mov.b32             %f6, %r31;\n\
    cvt.f32.f16         %f7, %h2;\n\
    neg.f32             %f8, %f7;\n\
    shr.u32             %r32, %r26, 24;\n\
    cvt.rn.f32.u32      %f9, %r32;\n\
    neg.f32             %f10, %f5;\n\
    fma.rn.f32          %f11, %f8, %f9, %f10;\n\
    fma.rn.f32          %f12, %f5, %f6, %f11;\n\
    ld.global.nc.v4.f32 {%f13, %f14, %f15, %f16}, [%rd8+128];\n\
    prmt.b32            %r33, %r30, 0x3F000000, 0x7244;\n\
    mov.b32             %f17, %r33;\n\
    fma.rn.f32          %f18, %f5, %f17, %f11;\n\
    prmt.b32            %r34, %r30, 0x3F000000, 0x7144;\n\
    mov.b32             %f19, %r34;\n\
    fma.rn.f32          %f20, %f5, %f19, %f11;\n\
    prmt.b32            %r35, %r30, 0x3F000000, 0x7044;\n\
    mov.b32             %f21, %r35;\n\
    fma.rn.f32          %f22, %f5, %f21, %f11;\n\
    and.b32             %r36, %r26, 0xFF;\n\
    cvt.rn.f32.u32      %f23, %r36;\n\
    mul.f32             %f24, %f3, %f23;\n\
    shl.b32             %r37, %r28, 3;\n\
    lop3.b32            %r38, %r37, 0x78787878, 0x80808080, 0xEA;\n\
    prmt.b32            %r39, %r38, 0x3F000000, 0x7344;\n\
    mov.b32             %f25, %r39;\n\
    bfe.u32             %r40, %r26, 16, 8;\n\
    cvt.rn.f32.u32      %f26, %r40;\n\
    neg.f32             %f27, %f24;\n\
    fma.rn.f32          %f28, %f8, %f26, %f27;\n\
    fma.rn.f32          %f29, %f24, %f25, %f28;\n\
    ld.global.nc.v4.f32 {%f30, %f31, %f32, %f33}, [%rd8];\n\
    prmt.b32            %r41, %r38, 0x3F000000, 0x7244;\n\
    mov.b32             %f34, %r41;\n\
    fma.rn.f32          %f35, %f24, %f34, %f28;\n\
    prmt.b32            %r42, %r38, 0x3F000000, 0x7144;\n\
    mov.b32             %f36, %r42;\n\
    fma.rn.f32          %f37, %f24, %f36, %f28;\n\
    prmt.b32            %r43, %r38, 0x3F000000, 0x7044;\n\
    mov.b32             %f38, %r43;\n\
    fma.rn.f32          %f39, %f24, %f38, %f28;\n\
    fma.rn.f32          %f40, %f39, %f30, %f1;\n\
    fma.rn.f32          %f41, %f37, %f31, %f40;\n\
    fma.rn.f32          %f42, %f35, %f32, %f41;\n\
    fma.rn.f32          %f43, %f29, %f33, %f42;\n\
    fma.rn.f32          %f44, %f22, %f13, %f43;\n\
    fma.rn.f32          %f45, %f20, %f14, %f44;\n\
    fma.rn.f32          %f46, %f18, %f15, %f45;\n\
    fma.rn.f32          %f1, %f12, %f16, %f46;\n\
    ld.global.nc.v4.u32 {%r44, %r45, %r46, %r47}, [%rd9+288];\n\
    mov.b32             {%h3, %h4}, %r44;\n\
    cvt.f32.f16         %f47, %h3;\n\
    mul.f32             %f48, %f47, 0f41800000;\n\
    shr.u32             %r48, %r47, 4;\n\
    prmt.b32            %r49, %r47, %r48, %r12;\n\
    prmt.b32            %r50, %r45, %r46, %r12;\n\
    shr.u32             %r51, %r50, %r13;\n\
    and.b32             %r52, %r51, %r14;\n\
    lop3.b32            %r53, %r49, %r15, %r52, 0xEA;\n\
    bfe.u32             %r54, %r53, 8, 8;\n\
    cvt.rn.f32.u32      %f49, %r54;\n\
    mul.f32             %f50, %f48, %f49;\n\
    ld.global.nc.u32    %r55, [%rd7+288];\n\
    shr.u32             %r56, %r55, 1;\n\
    lop3.b32            %r57, %r56, 0x78787878, 0x80808080, 0xEA;\n\
    prmt.b32            %r58, %r57, 0x3F000000, 0x7344;\n\
    mov.b32             %f51, %r58;\n\
    cvt.f32.f16         %f52, %h4;\n\
    neg.f32             %f53, %f52;\n\
    shr.u32             %r59, %r53, 24;\n\
    cvt.rn.f32.u32      %f54, %r59;\n\
    neg.f32             %f55, %f50;\n\
    fma.rn.f32          %f56, %f53, %f54, %f55;\n\
    fma.rn.f32          %f57, %f50, %f51, %f56;\n\
    ld.global.nc.v4.f32 {%f58, %f59, %f60, %f61}, [%rd8+2176];\n\
    prmt.b32            %r60, %r57, 0x3F000000, 0x7244;\n\
    mov.b32             %f62, %r60;\n\
    fma.rn.f32          %f63, %f50, %f62, %f56;\n\
    prmt.b32            %r61, %r57, 0x3F000000, 0x7144;\n\
    mov.b32             %f64, %r61;\n\
    fma.rn.f32          %f65, %f50, %f64, %f56;\n\
    prmt.b32            %r62, %r57, 0x3F000000, 0x7044;\n\
    mov.b32             %f66, %r62;\n\
    fma.rn.f32          %f67, %f50, %f66, %f56;\n\
    and.b32             %r63, %r53, 0xFF;\n\
    cvt.rn.f32.u32      %f68, %r63;\n\
    mul.f32             %f69, %f48, %f68;\n\
    shl.b32             %r64, %r55, 3;\n\
    lop3.b32            %r65, %r64, 0x78787878, 0x80808080, 0xEA;\n\
    prmt.b32            %r66, %r65, 0x3F000000, 0x7344;\n\
    mov.b32             %f70, %r66;\n\
    bfe.u32             %r67, %r53, 16, 8;\n\
    cvt.rn.f32.u32      %f71, %r67;\n\
    neg.f32             %f72, %f69;\n\
    fma.rn.f32          %f73, %f53, %f71, %f72;\n\
    fma.rn.f32          %f74, %f69, %f70, %f73;\n\
    ld.global.nc.v4.f32 {%f75, %f76, %f77, %f78}, [%rd8+2048];\n\
    prmt.b32            %r68, %r65, 0x3F000000, 0x7244;\n\
    mov.b32             %f79, %r68;\n\
    fma.rn.f32          %f80, %f69, %f79, %f73;\n\
    prmt.b32            %r69, %r65, 0x3F000000, 0x7144;\n\
    mov.b32             %f81, %r69;\n\
    fma.rn.f32          %f82, %f69, %f81, %f73;\n\
    prmt.b32            %r70, %r65, 0x3F000000, 0x7044;\n\
    mov.b32             %f83, %r70;\n\
    fma.rn.f32          %f84, %f69, %f83, %f73;\n\
    fma.rn.f32          %f85, %f84, %f75, %f1;\n\
    fma.rn.f32          %f86, %f82, %f76, %f85;\n\
    fma.rn.f32          %f87, %f80, %f77, %f86;\n\
    fma.rn.f32          %f88, %f74, %f78, %f87;\n\
    fma.rn.f32          %f89, %f67, %f58, %f88;\n\
    fma.rn.f32          %f90, %f65, %f59, %f89;\n\
    fma.rn.f32          %f91, %f63, %f60, %f90;\n\
    fma.rn.f32          %f1, %f57, %f61, %f91;\n\
    add.u64             %rd9, %rd9, 576;\n\
    add.u64             %rd7, %rd7, 576;\n\
    add.u64             %rd8, %rd8, 4096;\n\
    add.u32             %r16, %r16, 1;\n\
"
"\
    setp.lt.u32         %p3, %r16, 14;\n\
    @%p3 bra            $turn_loop;\n\
    shfl.sync.bfly.b32  %f92, %f1, 16, 31, 0xFFFFFFFF;\n\
    add.f32             %f93, %f1, %f92;\n\
    shfl.sync.bfly.b32  %f94, %f93, 8, 31, 0xFFFFFFFF;\n\
    add.f32             %f95, %f93, %f94;\n\
    shfl.sync.bfly.b32  %f96, %f95, 4, 31, 0xFFFFFFFF;\n\
    add.f32             %f97, %f95, %f96;\n\
    shfl.sync.bfly.b32  %f98, %f97, 2, 31, 0xFFFFFFFF;\n\
    add.f32             %f99, %f97, %f98;\n\
    shfl.sync.bfly.b32  %f100, %f99, 1, 31, 0xFFFFFFFF;\n\
    add.f32             %f101, %f99, %f100;\n\
    setp.eq.u32         %p4, %r4, 0;\n\
    @!%p4 bra           $skip;\n\
    mov.u32             %r71, partial;                          // partial\n\
    mad.lo.u32          %r72, %r3, 4, %r71;\n\
    st.shared.f32       [%r72], %f101;\n\
\n\
$skip:\n\
    bar.sync            0;\n\
    mov.f32             %f102, 0f00000000;\n\
    setp.eq.u32         %p5, %r3, 0;\n\
    @!%p5 bra           $skip_3;\n\
    setp.lt.u32         %p6, %r4, 2;\n\
    @!%p6 bra           $skip_2;\n\
    mov.u32             %r73, partial;                          // partial\n\
    mad.lo.u32          %r74, %r4, 4, %r73;\n\
    ld.shared.f32       %f102, [%r74];\n\
\n\
$skip_2:\n\
    shfl.sync.bfly.b32  %f103, %f102, 1, 31, 0xFFFFFFFF;\n\
    add.f32             %f102, %f102, %f103;\n\
\n\
$skip_3:\n\
    mov.f32             %f104, %f102;\n\
    setp.eq.u32         %p7, %r2, 0;\n\
    @!%p7 bra           $skip_4;\n\
    mad.wide.u32        %rd10, %r1, 4, %rd1;\n\
    st.global.f32       [%rd10], %f104;\n\
\n\
$skip_4:\n\
    ret;\n\
}\n\
";
static const ptxgen_param llama_mwv_q4k_gemv_k14336_n4096_w2_params[] = {
    { "y", PTXGEN_PARAM_POINTER, PTXGEN_PARAM_OUT, PTXGEN_F32, 16384, "n*4", 4 },
    { "w", PTXGEN_PARAM_POINTER, PTXGEN_PARAM_IN, PTXGEN_Q4_K, 33030144, "n*k/256*144", 16 },
    { "x", PTXGEN_PARAM_POINTER, PTXGEN_PARAM_IN, PTXGEN_F32, 57344, "k*4", 16 },
};
static const ptxgen_config llama_mwv_q4k_gemv_k14336_n4096_w2_config[] = {
    { "k", 14336, 0, NULL, 0, 0, 0, 1 },
    { "n", 4096, 0, NULL, 0, 0, 0, 1 },
    { "num_warps", 2, 0, NULL, 0, 0, 0, 1 },
    { "dims", 0, 0, "static", 0, 0, 0, 1 },
};
const ptxgen_kernel llama_mwv_q4k_gemv_k14336_n4096_w2 = {
    "mwv_q4k_gemv_k14336_n4096_w2", "mwv_q4k_gemv_k14336_n4096_w2",
    llama_mwv_q4k_gemv_k14336_n4096_w2_ptx, 9465, UINT64_C(0x71f07f43e63a74e5),
    "mwv_q4k_gemv", PTXGEN_GEMV, PTXGEN_Q4_K, PTXGEN_F32, PTXGEN_F32,
    75, 63, 0, 0, /* sm, isa, overlaps, specific */
    llama_mwv_q4k_gemv_k14336_n4096_w2_params, 3,
    { 64, 1, 1 }, { 4096, 1, 1 }, NULL, /* block, grid, grid_at */
    8, 0, NULL, 0, /* shared_static, shared_dynamic, shared_at, workspace */
    14336, 4096, 1, /* k, n, m */
    2, 0, 0, 0, 0, /* num_warps, head_dim, num_heads, num_kv_heads, max_seq_len */
    0, 0, /* dynamic_dims, seq_len_indirect */
    llama_mwv_q4k_gemv_k14336_n4096_w2_config, 4,
    0, 0, /* registers, blocks_per_sm */
    10, /* preference */
    NULL, 0, 0, /* chosen_by, chosen_f32, chosen_q8 */
};

static const char llama_mwv_q4k_gemv_k14336_n4096_w4_ptx[] = "\
// mwv_q4k_gemv  k=14336 n=4096 num_warps=4  y[n] = W[n,k] x[k]\n\
// ptxgen 0.1.0  block 128  grid 4096\n\
.version 6.3\n\
.target sm_75\n\
.address_size 64\n\
\n\
.visible .entry mwv_q4k_gemv_k14336_n4096_w4(\n\
    .param .u64 y,\n\
    .param .u64 w,\n\
    .param .u64 x)\n\
.reqntid 128, 1, 1\n\
.maxnreg 64\n\
{\n\
    .reg .pred  %p<8>;\n\
    .reg .b16   %h<5>;\n\
    .reg .b32   %r<75>;\n\
    .reg .f32   %f<107>;\n\
    .reg .b64   %rd<11>;\n\
    .shared .align 16 .b32 partial[4];\n\
\n\
    ld.param.u64        %rd1, [y];\n\
    ld.param.u64        %rd2, [w];\n\
    ld.param.u64        %rd3, [x];\n\
    mov.u32             %r1, %ctaid.x;                          // row\n\
    mov.u32             %r2, %tid.x;\n\
    shr.u32             %r3, %r2, 5;                            // warp\n\
    and.b32             %r4, %r2, 31;                           // lane\n\
    mad.wide.u32        %rd4, %r1, 8064, %rd2;                  // &w[row]\n\
    mad.wide.u32        %rd5, %r3, 144, %rd4;\n\
    mad.lo.u32          %r5, %r4, 4, 16;\n\
    cvt.u64.u32         %rd6, %r5;\n\
    add.u64             %rd7, %rd5, %rd6;\n\
    shr.u32             %r6, %r4, 3;                            // chunk\n\
    and.b32             %r7, %r4, 7;\n\
    mul.lo.u32          %r8, %r7, 4;\n\
    mad.lo.u32          %r9, %r6, 64, %r8;\n\
    mad.lo.u32          %r10, %r3, 256, %r9;\n\
    mad.wide.u32        %rd8, %r10, 4, %rd3;\n\
    and.b32             %r11, %r6, 1;\n\
    setp.ne.u32         %p1, %r11, 0;\n\
    selp.u32            %r12, 0x7632, 0x5410, %p1;\n\
    setp.ge.u32         %p2, %r6, 2;\n\
    selp.u32            %r13, 2, 0, %p2;\n\
    selp.u32            %r14, 0x30303030, 0x3F3F3F3F, %p2;\n\
    selp.u32            %r15, 0x0F0F0F0F, 0, %p2;\n\
    mov.u64             %rd9, %rd5;\n\
    mov.f32             %f1, 0f00000000;\n\
    mov.u32             %r16, 0;                                // turn\n\
\n\
$turn_loop:                                                     // 16 weights a lane\n\
    .pragma \"nounroll\";\n\
    ld.global.nc.v4.u32 {%r17, %r18, %r19, %r20}, [%rd9];\n\
    mov.b32             {%h1, %h2}, %r17;\n\
    cvt.f32.f16         %f2, %h1;\n\
    mul.f32             %f3, %f2, 0f41800000;\n\
    shr.u32             %r21, %r20, 4;\n\
    prmt.b32            %r22, %r20, %r21, %r12;\n\
    prmt.b32            %r23, %r18, %r19, %r12;\n\
    shr.u32             %r24, %r23, %r13;\n\
    and.b32             %r25, %r24, %r14;\n\
    lop3.b32            %r26, %r22, %r15, %r25, 0xEA;\n\
    bfe.u32             %r27, %r26, 8, 8;\n\
    cvt.rn.f32.u32      %f4, %r27;\n\
    mul.f32             %f5, %f3, %f4;\n\
    ld.global.nc.u32    %r28, [%rd7];\n\
    shr.u32             %r29, %r28, 1;\n\
    lop3.b32            %r30, %r29, 0x78787878, 0x80808080, 0xEA;\n\
    prmt.b32            %r31, %r30, 0x3F000000, 0x7344;\n\
    mov.b32             %f6, %r31;\n\
    cvt.f32.f16         %f7, %h2;\n\
    neg.f32             %f8, %f7;\n\
    shr.u32             %r32, %r26, 24;\n\
    cvt.rn.f32.u32      %f9, %r32;\n\
    neg.f32             %f10, %f5;\n\
    fma.rn.f32          %f11, %f8, %f9, %f10;\n\
    fma.rn.f32          %f12, %f5, %f6, %f11;\n\
    ld.global.nc.v4.f32 {%f13, %f14, %f15, %f16}, [%rd8+128];\n\
    prmt.b32            %r33, %r30, 0x3F000000, 0x7244;\n\
    mov.b32             %f17, %r33;\n\
    fma.rn.f32          %f18, %f5, %f17, %f11;\n\
    prmt.b32            %r34, %r30, 0x3F000000, 0x7144;\n\
    mov.b32             %f19, %r34;\n\
    fma.rn.f32          %f20, %f5, %f19, %f11;\n\
    prmt.b32            %r35, %r30, 0x3F000000, 0x7044;\n\
    mov.b32             %f21, %r35;\n\
    fma.rn.f32          %f22, %f5, %f21, %f11;\n\
    and.b32             %r36, %r26, 0xFF;\n\
    cvt.rn.f32.u32      %f23, %r36;\n\
    mul.f32             %f24, %f3, %f23;\n\
    shl.b32             %r37, %r28, 3;\n\
    lop3.b32            %r38, %r37, 0x78787878, 0x80808080, 0xEA;\n\
    prmt.b32            %r39, %r38, 0x3F000000, 0x7344;\n\
    mov.b32             %f25, %r39;\n\
    bfe.u32             %r40, %r26, 16, 8;\n\
    cvt.rn.f32.u32      %f26, %r40;\n\
    neg.f32             %f27, %f24;\n\
    fma.rn.f32          %f28, %f8, %f26, %f27;\n\
    fma.rn.f32          %f29, %f24, %f25, %f28;\n\
    ld.global.nc.v4.f32 {%f30, %f31, %f32, %f33}, [%rd8];\n\
    prmt.b32            %r41, %r38, 0x3F000000, 0x7244;\n\
    mov.b32             %f34, %r41;\n\
    fma.rn.f32          %f35, %f24, %f34, %f28;\n\
    prmt.b32            %r42, %r38, 0x3F000000, 0x7144;\n\
    mov.b32             %f36, %r42;\n\
    fma.rn.f32          %f37, %f24, %f36, %f28;\n\
    prmt.b32            %r43, %r38, 0x3F000000, 0x7044;\n\
    mov.b32             %f38, %r43;\n\
    fma.rn.f32          %f39, %f24, %f38, %f28;\n\
    fma.rn.f32          %f40, %f39, %f30, %f1;\n\
    fma.rn.f32          %f41, %f37, %f31, %f40;\n\
    fma.rn.f32          %f42, %f35, %f32, %f41;\n\
    fma.rn.f32          %f43, %f29, %f33, %f42;\n\
    fma.rn.f32          %f44, %f22, %f13, %f43;\n\
    fma.rn.f32          %f45, %f20, %f14, %f44;\n\
    fma.rn.f32          %f46, %f18, %f15, %f45;\n\
    fma.rn.f32          %f1, %f12, %f16, %f46;\n\
    ld.global.nc.v4.u32 {%r44, %r45, %r46, %r47}, [%rd9+576];\n\
    mov.b32             {%h3, %h4}, %r44;\n\
    cvt.f32.f16         %f47, %h3;\n\
    mul.f32             %f48, %f47, 0f41800000;\n\
    shr.u32             %r48, %r47, 4;\n\
    prmt.b32            %r49, %r47, %r48, %r12;\n\
    prmt.b32            %r50, %r45, %r46, %r12;\n\
    shr.u32             %r51, %r50, %r13;\n\
    and.b32             %r52, %r51, %r14;\n\
    lop3.b32            %r53, %r49, %r15, %r52, 0xEA;\n\
    bfe.u32             %r54, %r53, 8, 8;\n\
    cvt.rn.f32.u32      %f49, %r54;\n\
    mul.f32             %f50, %f48, %f49;\n\
    ld.global.nc.u32    %r55, [%rd7+576];\n\
    shr.u32             %r56, %r55, 1;\n\
    lop3.b32            %r57, %r56, 0x78787878, 0x80808080, 0xEA;\n\
    prmt.b32            %r58, %r57, 0x3F000000, 0x7344;\n\
    mov.b32             %f51, %r58;\n\
    cvt.f32.f16         %f52, %h4;\n\
    neg.f32             %f53, %f52;\n\
    shr.u32             %r59, %r53, 24;\n\
    cvt.rn.f32.u32      %f54, %r59;\n\
    neg.f32             %f55, %f50;\n\
    fma.rn.f32          %f56, %f53, %f54, %f55;\n\
    fma.rn.f32          %f57, %f50, %f51, %f56;\n\
    ld.global.nc.v4.f32 {%f58, %f59, %f60, %f61}, [%rd8+4224];\n\
    prmt.b32            %r60, %r57, 0x3F000000, 0x7244;\n\
    mov.b32             %f62, %r60;\n\
    fma.rn.f32          %f63, %f50, %f62, %f56;\n\
    prmt.b32            %r61, %r57, 0x3F000000, 0x7144;\n\
    mov.b32             %f64, %r61;\n\
    fma.rn.f32          %f65, %f50, %f64, %f56;\n\
    prmt.b32            %r62, %r57, 0x3F000000, 0x7044;\n\
    mov.b32             %f66, %r62;\n\
    fma.rn.f32          %f67, %f50, %f66, %f56;\n\
    and.b32             %r63, %r53, 0xFF;\n\
    cvt.rn.f32.u32      %f68, %r63;\n\
    mul.f32             %f69, %f48, %f68;\n\
    shl.b32             %r64, %r55, 3;\n\
    lop3.b32            %r65, %r64, 0x78787878, 0x80808080, 0xEA;\n\
    prmt.b32            %r66, %r65, 0x3F000000, 0x7344;\n\
    mov.b32             %f70, %r66;\n\
    bfe.u32             %r67, %r53, 16, 8;\n\
    cvt.rn.f32.u32      %f71, %r67;\n\
    neg.f32             %f72, %f69;\n\
    fma.rn.f32          %f73, %f53, %f71, %f72;\n\
    fma.rn.f32          %f74, %f69, %f70, %f73;\n\
    ld.global.nc.v4.f32 {%f75, %f76, %f77, %f78}, [%rd8+4096];\n\
    prmt.b32            %r68, %r65, 0x3F000000, 0x7244;\n\
    mov.b32             %f79, %r68;\n\
    fma.rn.f32          %f80, %f69, %f79, %f73;\n\
    prmt.b32            %r69, %r65, 0x3F000000, 0x7144;\n\
    mov.b32             %f81, %r69;\n\
    fma.rn.f32          %f82, %f69, %f81, %f73;\n\
    prmt.b32            %r70, %r65, 0x3F000000, 0x7044;\n\
    mov.b32             %f83, %r70;\n\
    fma.rn.f32          %f84, %f69, %f83, %f73;\n\
    fma.rn.f32          %f85, %f84, %f75, %f1;\n\
    fma.rn.f32          %f86, %f82, %f76, %f85;\n\
    fma.rn.f32          %f87, %f80, %f77, %f86;\n\
    fma.rn.f32          %f88, %f74, %f78, %f87;\n\
    fma.rn.f32          %f89, %f67, %f58, %f88;\n\
    fma.rn.f32          %f90, %f65, %f59, %f89;\n\
    fma.rn.f32          %f91, %f63, %f60, %f90;\n\
    fma.rn.f32          %f1, %f57, %f61, %f91;\n\
    add.u64             %rd9, %rd9, 1152;\n\
    add.u64             %rd7, %rd7, 1152;\n\
    add.u64             %rd8, %rd8, 8192;\n\
    add.u32             %r16, %r16, 1;\n\
"
"\
    setp.lt.u32         %p3, %r16, 7;\n\
    @%p3 bra            $turn_loop;\n\
    shfl.sync.bfly.b32  %f92, %f1, 16, 31, 0xFFFFFFFF;\n\
    add.f32             %f93, %f1, %f92;\n\
    shfl.sync.bfly.b32  %f94, %f93, 8, 31, 0xFFFFFFFF;\n\
    add.f32             %f95, %f93, %f94;\n\
    shfl.sync.bfly.b32  %f96, %f95, 4, 31, 0xFFFFFFFF;\n\
    add.f32             %f97, %f95, %f96;\n\
    shfl.sync.bfly.b32  %f98, %f97, 2, 31, 0xFFFFFFFF;\n\
    add.f32             %f99, %f97, %f98;\n\
    shfl.sync.bfly.b32  %f100, %f99, 1, 31, 0xFFFFFFFF;\n\
    add.f32             %f101, %f99, %f100;\n\
    setp.eq.u32         %p4, %r4, 0;\n\
    @!%p4 bra           $skip;\n\
    mov.u32             %r71, partial;                          // partial\n\
    mad.lo.u32          %r72, %r3, 4, %r71;\n\
    st.shared.f32       [%r72], %f101;\n\
\n\
$skip:\n\
    bar.sync            0;\n\
    mov.f32             %f102, 0f00000000;\n\
    setp.eq.u32         %p5, %r3, 0;\n\
    @!%p5 bra           $skip_3;\n\
    setp.lt.u32         %p6, %r4, 4;\n\
    @!%p6 bra           $skip_2;\n\
    mov.u32             %r73, partial;                          // partial\n\
    mad.lo.u32          %r74, %r4, 4, %r73;\n\
    ld.shared.f32       %f102, [%r74];\n\
\n\
$skip_2:\n\
    shfl.sync.bfly.b32  %f103, %f102, 2, 31, 0xFFFFFFFF;\n\
    add.f32             %f104, %f102, %f103;\n\
    shfl.sync.bfly.b32  %f105, %f104, 1, 31, 0xFFFFFFFF;\n\
    add.f32             %f102, %f104, %f105;\n\
\n\
$skip_3:\n\
    mov.f32             %f106, %f102;\n\
    setp.eq.u32         %p7, %r2, 0;\n\
    @!%p7 bra           $skip_4;\n\
    mad.wide.u32        %rd10, %r1, 4, %rd1;\n\
    st.global.f32       [%rd10], %f106;\n\
\n\
$skip_4:\n\
    ret;\n\
}\n\
";
static const ptxgen_param llama_mwv_q4k_gemv_k14336_n4096_w4_params[] = {
    { "y", PTXGEN_PARAM_POINTER, PTXGEN_PARAM_OUT, PTXGEN_F32, 16384, "n*4", 4 },
    { "w", PTXGEN_PARAM_POINTER, PTXGEN_PARAM_IN, PTXGEN_Q4_K, 33030144, "n*k/256*144", 16 },
    { "x", PTXGEN_PARAM_POINTER, PTXGEN_PARAM_IN, PTXGEN_F32, 57344, "k*4", 16 },
};
static const ptxgen_config llama_mwv_q4k_gemv_k14336_n4096_w4_config[] = {
    { "k", 14336, 0, NULL, 0, 0, 0, 1 },
    { "n", 4096, 0, NULL, 0, 0, 0, 1 },
    { "num_warps", 4, 0, NULL, 0, 0, 0, 1 },
    { "dims", 0, 0, "static", 0, 0, 0, 1 },
};
const ptxgen_kernel llama_mwv_q4k_gemv_k14336_n4096_w4 = {
    "mwv_q4k_gemv_k14336_n4096_w4", "mwv_q4k_gemv_k14336_n4096_w4",
    llama_mwv_q4k_gemv_k14336_n4096_w4_ptx, 9570, UINT64_C(0x17994f2f89cdfef3),
    "mwv_q4k_gemv", PTXGEN_GEMV, PTXGEN_Q4_K, PTXGEN_F32, PTXGEN_F32,
    75, 63, 0, 0, /* sm, isa, overlaps, specific */
    llama_mwv_q4k_gemv_k14336_n4096_w4_params, 3,
    { 128, 1, 1 }, { 4096, 1, 1 }, NULL, /* block, grid, grid_at */
    16, 0, NULL, 0, /* shared_static, shared_dynamic, shared_at, workspace */
    14336, 4096, 1, /* k, n, m */
    4, 0, 0, 0, 0, /* num_warps, head_dim, num_heads, num_kv_heads, max_seq_len */
    0, 0, /* dynamic_dims, seq_len_indirect */
    llama_mwv_q4k_gemv_k14336_n4096_w4_config, 4,
    0, 0, /* registers, blocks_per_sm */
    10, /* preference */
    NULL, 0, 0, /* chosen_by, chosen_f32, chosen_q8 */
};

static const char llama_mwv_q4k_gemv_k4096_n128256_w4_ptx[] = "\
// mwv_q4k_gemv  k=4096 n=128256 num_warps=4  y[n] = W[n,k] x[k]\n\
// ptxgen 0.1.0  block 128  grid 128256\n\
.version 6.3\n\
.target sm_75\n\
.address_size 64\n\
\n\
.visible .entry mwv_q4k_gemv_k4096_n128256_w4(\n\
    .param .u64 y,\n\
    .param .u64 w,\n\
    .param .u64 x)\n\
.reqntid 128, 1, 1\n\
.maxnreg 64\n\
{\n\
    .reg .pred  %p<8>;\n\
    .reg .b16   %h<5>;\n\
    .reg .b32   %r<75>;\n\
    .reg .f32   %f<107>;\n\
    .reg .b64   %rd<11>;\n\
    .shared .align 16 .b32 partial[4];\n\
\n\
    ld.param.u64        %rd1, [y];\n\
    ld.param.u64        %rd2, [w];\n\
    ld.param.u64        %rd3, [x];\n\
    mov.u32             %r1, %ctaid.x;                          // row\n\
    mov.u32             %r2, %tid.x;\n\
    shr.u32             %r3, %r2, 5;                            // warp\n\
    and.b32             %r4, %r2, 31;                           // lane\n\
    mad.wide.u32        %rd4, %r1, 2304, %rd2;                  // &w[row]\n\
    mad.wide.u32        %rd5, %r3, 144, %rd4;\n\
    mad.lo.u32          %r5, %r4, 4, 16;\n\
    cvt.u64.u32         %rd6, %r5;\n\
    add.u64             %rd7, %rd5, %rd6;\n\
    shr.u32             %r6, %r4, 3;                            // chunk\n\
    and.b32             %r7, %r4, 7;\n\
    mul.lo.u32          %r8, %r7, 4;\n\
    mad.lo.u32          %r9, %r6, 64, %r8;\n\
    mad.lo.u32          %r10, %r3, 256, %r9;\n\
    mad.wide.u32        %rd8, %r10, 4, %rd3;\n\
    and.b32             %r11, %r6, 1;\n\
    setp.ne.u32         %p1, %r11, 0;\n\
    selp.u32            %r12, 0x7632, 0x5410, %p1;\n\
    setp.ge.u32         %p2, %r6, 2;\n\
    selp.u32            %r13, 2, 0, %p2;\n\
    selp.u32            %r14, 0x30303030, 0x3F3F3F3F, %p2;\n\
    selp.u32            %r15, 0x0F0F0F0F, 0, %p2;\n\
    mov.u64             %rd9, %rd5;\n\
    mov.f32             %f1, 0f00000000;\n\
    mov.u32             %r16, 0;                                // turn\n\
\n\
$turn_loop:                                                     // 16 weights a lane\n\
    .pragma \"nounroll\";\n\
    ld.global.nc.v4.u32 {%r17, %r18, %r19, %r20}, [%rd9];\n\
    mov.b32             {%h1, %h2}, %r17;\n\
    cvt.f32.f16         %f2, %h1;\n\
    mul.f32             %f3, %f2, 0f41800000;\n\
    shr.u32             %r21, %r20, 4;\n\
    prmt.b32            %r22, %r20, %r21, %r12;\n\
    prmt.b32            %r23, %r18, %r19, %r12;\n\
    shr.u32             %r24, %r23, %r13;\n\
    and.b32             %r25, %r24, %r14;\n\
    lop3.b32            %r26, %r22, %r15, %r25, 0xEA;\n\
    bfe.u32             %r27, %r26, 8, 8;\n\
    cvt.rn.f32.u32      %f4, %r27;\n\
    mul.f32             %f5, %f3, %f4;\n\
    ld.global.nc.u32    %r28, [%rd7];\n\
    shr.u32             %r29, %r28, 1;\n\
    lop3.b32            %r30, %r29, 0x78787878, 0x80808080, 0xEA;\n\
    prmt.b32            %r31, %r30, 0x3F000000, 0x7344;\n\
    mov.b32             %f6, %r31;\n\
    cvt.f32.f16         %f7, %h2;\n\
    neg.f32             %f8, %f7;\n\
    shr.u32             %r32, %r26, 24;\n\
    cvt.rn.f32.u32      %f9, %r32;\n\
    neg.f32             %f10, %f5;\n\
    fma.rn.f32          %f11, %f8, %f9, %f10;\n\
    fma.rn.f32          %f12, %f5, %f6, %f11;\n\
    ld.global.nc.v4.f32 {%f13, %f14, %f15, %f16}, [%rd8+128];\n\
    prmt.b32            %r33, %r30, 0x3F000000, 0x7244;\n\
    mov.b32             %f17, %r33;\n\
    fma.rn.f32          %f18, %f5, %f17, %f11;\n\
    prmt.b32            %r34, %r30, 0x3F000000, 0x7144;\n\
    mov.b32             %f19, %r34;\n\
    fma.rn.f32          %f20, %f5, %f19, %f11;\n\
    prmt.b32            %r35, %r30, 0x3F000000, 0x7044;\n\
    mov.b32             %f21, %r35;\n\
    fma.rn.f32          %f22, %f5, %f21, %f11;\n\
    and.b32             %r36, %r26, 0xFF;\n\
    cvt.rn.f32.u32      %f23, %r36;\n\
    mul.f32             %f24, %f3, %f23;\n\
    shl.b32             %r37, %r28, 3;\n\
    lop3.b32            %r38, %r37, 0x78787878, 0x80808080, 0xEA;\n\
    prmt.b32            %r39, %r38, 0x3F000000, 0x7344;\n\
    mov.b32             %f25, %r39;\n\
    bfe.u32             %r40, %r26, 16, 8;\n\
    cvt.rn.f32.u32      %f26, %r40;\n\
    neg.f32             %f27, %f24;\n\
    fma.rn.f32          %f28, %f8, %f26, %f27;\n\
    fma.rn.f32          %f29, %f24, %f25, %f28;\n\
    ld.global.nc.v4.f32 {%f30, %f31, %f32, %f33}, [%rd8];\n\
    prmt.b32            %r41, %r38, 0x3F000000, 0x7244;\n\
    mov.b32             %f34, %r41;\n\
    fma.rn.f32          %f35, %f24, %f34, %f28;\n\
    prmt.b32            %r42, %r38, 0x3F000000, 0x7144;\n\
    mov.b32             %f36, %r42;\n\
    fma.rn.f32          %f37, %f24, %f36, %f28;\n\
    prmt.b32            %r43, %r38, 0x3F000000, 0x7044;\n\
    mov.b32             %f38, %r43;\n\
    fma.rn.f32          %f39, %f24, %f38, %f28;\n\
    fma.rn.f32          %f40, %f39, %f30, %f1;\n\
    fma.rn.f32          %f41, %f37, %f31, %f40;\n\
    fma.rn.f32          %f42, %f35, %f32, %f41;\n\
    fma.rn.f32          %f43, %f29, %f33, %f42;\n\
    fma.rn.f32          %f44, %f22, %f13, %f43;\n\
    fma.rn.f32          %f45, %f20, %f14, %f44;\n\
    fma.rn.f32          %f46, %f18, %f15, %f45;\n\
    fma.rn.f32          %f1, %f12, %f16, %f46;\n\
    ld.global.nc.v4.u32 {%r44, %r45, %r46, %r47}, [%rd9+576];\n\
    mov.b32             {%h3, %h4}, %r44;\n\
    cvt.f32.f16         %f47, %h3;\n\
    mul.f32             %f48, %f47, 0f41800000;\n\
    shr.u32             %r48, %r47, 4;\n\
    prmt.b32            %r49, %r47, %r48, %r12;\n\
    prmt.b32            %r50, %r45, %r46, %r12;\n\
    shr.u32             %r51, %r50, %r13;\n\
    and.b32             %r52, %r51, %r14;\n\
    lop3.b32            %r53, %r49, %r15, %r52, 0xEA;\n\
    bfe.u32             %r54, %r53, 8, 8;\n\
    cvt.rn.f32.u32      %f49, %r54;\n\
    mul.f32             %f50, %f48, %f49;\n\
    ld.global.nc.u32    %r55, [%rd7+576];\n\
    shr.u32             %r56, %r55, 1;\n\
    lop3.b32            %r57, %r56, 0x78787878, 0x80808080, 0xEA;\n\
    prmt.b32            %r58, %r57, 0x3F000000, 0x7344;\n\
    mov.b32             %f51, %r58;\n\
    cvt.f32.f16         %f52, %h4;\n\
    neg.f32             %f53, %f52;\n\
    shr.u32             %r59, %r53, 24;\n\
    cvt.rn.f32.u32      %f54, %r59;\n\
    neg.f32             %f55, %f50;\n\
    fma.rn.f32          %f56, %f53, %f54, %f55;\n\
    fma.rn.f32          %f57, %f50, %f51, %f56;\n\
    ld.global.nc.v4.f32 {%f58, %f59, %f60, %f61}, [%rd8+4224];\n\
    prmt.b32            %r60, %r57, 0x3F000000, 0x7244;\n\
    mov.b32             %f62, %r60;\n\
    fma.rn.f32          %f63, %f50, %f62, %f56;\n\
    prmt.b32            %r61, %r57, 0x3F000000, 0x7144;\n\
    mov.b32             %f64, %r61;\n\
    fma.rn.f32          %f65, %f50, %f64, %f56;\n\
    prmt.b32            %r62, %r57, 0x3F000000, 0x7044;\n\
    mov.b32             %f66, %r62;\n\
    fma.rn.f32          %f67, %f50, %f66, %f56;\n\
    and.b32             %r63, %r53, 0xFF;\n\
    cvt.rn.f32.u32      %f68, %r63;\n\
    mul.f32             %f69, %f48, %f68;\n\
    shl.b32             %r64, %r55, 3;\n\
    lop3.b32            %r65, %r64, 0x78787878, 0x80808080, 0xEA;\n\
    prmt.b32            %r66, %r65, 0x3F000000, 0x7344;\n\
    mov.b32             %f70, %r66;\n\
    bfe.u32             %r67, %r53, 16, 8;\n\
    cvt.rn.f32.u32      %f71, %r67;\n\
    neg.f32             %f72, %f69;\n\
    fma.rn.f32          %f73, %f53, %f71, %f72;\n\
    fma.rn.f32          %f74, %f69, %f70, %f73;\n\
    ld.global.nc.v4.f32 {%f75, %f76, %f77, %f78}, [%rd8+4096];\n\
    prmt.b32            %r68, %r65, 0x3F000000, 0x7244;\n\
    mov.b32             %f79, %r68;\n\
    fma.rn.f32          %f80, %f69, %f79, %f73;\n\
    prmt.b32            %r69, %r65, 0x3F000000, 0x7144;\n\
    mov.b32             %f81, %r69;\n\
    fma.rn.f32          %f82, %f69, %f81, %f73;\n\
    prmt.b32            %r70, %r65, 0x3F000000, 0x7044;\n\
    mov.b32             %f83, %r70;\n\
    fma.rn.f32          %f84, %f69, %f83, %f73;\n\
    fma.rn.f32          %f85, %f84, %f75, %f1;\n\
    fma.rn.f32          %f86, %f82, %f76, %f85;\n\
    fma.rn.f32          %f87, %f80, %f77, %f86;\n\
    fma.rn.f32          %f88, %f74, %f78, %f87;\n\
    fma.rn.f32          %f89, %f67, %f58, %f88;\n\
    fma.rn.f32          %f90, %f65, %f59, %f89;\n\
    fma.rn.f32          %f91, %f63, %f60, %f90;\n\
    fma.rn.f32          %f1, %f57, %f61, %f91;\n\
    add.u64             %rd9, %rd9, 1152;\n\
    add.u64             %rd7, %rd7, 1152;\n\
    add.u64             %rd8, %rd8, 8192;\n\
    add.u32             %r16, %r16, 1;\n\
"
"\
    setp.lt.u32         %p3, %r16, 2;\n\
    @%p3 bra            $turn_loop;\n\
    shfl.sync.bfly.b32  %f92, %f1, 16, 31, 0xFFFFFFFF;\n\
    add.f32             %f93, %f1, %f92;\n\
    shfl.sync.bfly.b32  %f94, %f93, 8, 31, 0xFFFFFFFF;\n\
    add.f32             %f95, %f93, %f94;\n\
    shfl.sync.bfly.b32  %f96, %f95, 4, 31, 0xFFFFFFFF;\n\
    add.f32             %f97, %f95, %f96;\n\
    shfl.sync.bfly.b32  %f98, %f97, 2, 31, 0xFFFFFFFF;\n\
    add.f32             %f99, %f97, %f98;\n\
    shfl.sync.bfly.b32  %f100, %f99, 1, 31, 0xFFFFFFFF;\n\
    add.f32             %f101, %f99, %f100;\n\
    setp.eq.u32         %p4, %r4, 0;\n\
    @!%p4 bra           $skip;\n\
    mov.u32             %r71, partial;                          // partial\n\
    mad.lo.u32          %r72, %r3, 4, %r71;\n\
    st.shared.f32       [%r72], %f101;\n\
\n\
$skip:\n\
    bar.sync            0;\n\
    mov.f32             %f102, 0f00000000;\n\
    setp.eq.u32         %p5, %r3, 0;\n\
    @!%p5 bra           $skip_3;\n\
    setp.lt.u32         %p6, %r4, 4;\n\
    @!%p6 bra           $skip_2;\n\
    mov.u32             %r73, partial;                          // partial\n\
    mad.lo.u32          %r74, %r4, 4, %r73;\n\
    ld.shared.f32       %f102, [%r74];\n\
\n\
$skip_2:\n\
    shfl.sync.bfly.b32  %f103, %f102, 2, 31, 0xFFFFFFFF;\n\
    add.f32             %f104, %f102, %f103;\n\
    shfl.sync.bfly.b32  %f105, %f104, 1, 31, 0xFFFFFFFF;\n\
    add.f32             %f102, %f104, %f105;\n\
\n\
$skip_3:\n\
    mov.f32             %f106, %f102;\n\
    setp.eq.u32         %p7, %r2, 0;\n\
    @!%p7 bra           $skip_4;\n\
    mad.wide.u32        %rd10, %r1, 4, %rd1;\n\
    st.global.f32       [%rd10], %f106;\n\
\n\
$skip_4:\n\
    ret;\n\
}\n\
";
static const ptxgen_param llama_mwv_q4k_gemv_k4096_n128256_w4_params[] = {
    { "y", PTXGEN_PARAM_POINTER, PTXGEN_PARAM_OUT, PTXGEN_F32, 513024, "n*4", 4 },
    { "w", PTXGEN_PARAM_POINTER, PTXGEN_PARAM_IN, PTXGEN_Q4_K, 295501824, "n*k/256*144", 16 },
    { "x", PTXGEN_PARAM_POINTER, PTXGEN_PARAM_IN, PTXGEN_F32, 16384, "k*4", 16 },
};
static const ptxgen_config llama_mwv_q4k_gemv_k4096_n128256_w4_config[] = {
    { "k", 4096, 0, NULL, 0, 0, 0, 1 },
    { "n", 128256, 0, NULL, 0, 0, 0, 1 },
    { "num_warps", 4, 0, NULL, 0, 0, 0, 1 },
    { "dims", 0, 0, "static", 0, 0, 0, 1 },
};
const ptxgen_kernel llama_mwv_q4k_gemv_k4096_n128256_w4 = {
    "mwv_q4k_gemv_k4096_n128256_w4", "mwv_q4k_gemv_k4096_n128256_w4",
    llama_mwv_q4k_gemv_k4096_n128256_w4_ptx, 9574, UINT64_C(0x5f30c6404eb912ce),
    "mwv_q4k_gemv", PTXGEN_GEMV, PTXGEN_Q4_K, PTXGEN_F32, PTXGEN_F32,
    75, 63, 0, 0, /* sm, isa, overlaps, specific */
    llama_mwv_q4k_gemv_k4096_n128256_w4_params, 3,
    { 128, 1, 1 }, { 128256, 1, 1 }, NULL, /* block, grid, grid_at */
    16, 0, NULL, 0, /* shared_static, shared_dynamic, shared_at, workspace */
    4096, 128256, 1, /* k, n, m */
    4, 0, 0, 0, 0, /* num_warps, head_dim, num_heads, num_kv_heads, max_seq_len */
    0, 0, /* dynamic_dims, seq_len_indirect */
    llama_mwv_q4k_gemv_k4096_n128256_w4_config, 4,
    0, 0, /* registers, blocks_per_sm */
    10, /* preference */
    NULL, 0, 0, /* chosen_by, chosen_f32, chosen_q8 */
};

static const char llama_mwv_q6k_gemv_k4096_n4096_w4_ptx[] = "\
// mwv_q6k_gemv  k=4096 n=4096 num_warps=4  y[n] = W[n,k] x[k]\n\
// ptxgen 0.1.0  block 128  grid 4096\n\
.version 6.3\n\
.target sm_75\n\
.address_size 64\n\
\n\
.visible .entry mwv_q6k_gemv_k4096_n4096_w4(\n\
    .param .u64 y,\n\
    .param .u64 w,\n\
    .param .u64 x)\n\
.reqntid 128, 1, 1\n\
.maxnreg 64\n\
{\n\
    .reg .pred  %p<5>;\n\
    .reg .b16   %h<3>;\n\
    .reg .b32   %r<119>;\n\
    .reg .f32   %f<164>;\n\
    .reg .b64   %rd<17>;\n\
    .shared .align 16 .b32 partial[4];\n\
\n\
    ld.param.u64        %rd1, [y];\n\
    ld.param.u64        %rd2, [w];\n\
    ld.param.u64        %rd3, [x];\n\
    mov.u32             %r1, %tid.x;\n\
    and.b32             %r2, %r1, 31;                           // lane\n\
    shr.u32             %r3, %r1, 5;                            // warp\n\
    mov.u32             %r4, %ctaid.x;                          // row\n\
    and.b32             %r5, %r2, 15;\n\
    shr.u32             %r6, %r5, 3;                            // half\n\
    and.b32             %r7, %r5, 7;\n\
    mul.lo.u32          %r8, %r7, 4;                            // l\n\
    mad.lo.u32          %r9, %r6, 32, %r8;\n\
    add.u32             %r10, %r9, 128;\n\
    shr.u32             %r11, %r2, 4;\n\
    mad.lo.u32          %r12, %r3, 2, %r11;\n\
    mad.wide.u32        %rd4, %r4, 3360, %rd2;                  // &w[row]\n\
    mad.wide.u32        %rd5, %r12, 210, %rd4;\n\
    mul.lo.u32          %r13, %r6, 4;\n\
    shr.u32             %r14, %r8, 4;\n\
    mad.lo.u32          %r15, %r13, 2, %r14;\n\
    add.u32             %r16, %r15, 192;\n\
    mad.lo.u32          %r17, %r13, 32, %r8;\n\
    mad.lo.u32          %r18, %r12, 256, %r17;\n\
    mad.lo.u32          %r19, %r6, 64, %r8;\n\
    cvt.u64.u32         %rd6, %r19;\n\
    add.u64             %rd7, %rd5, %rd6;\n\
    cvt.u64.u32         %rd8, %r10;\n\
    add.u64             %rd9, %rd5, %rd8;\n\
    cvt.u64.u32         %rd10, %r16;\n\
    add.u64             %rd11, %rd5, %rd10;\n\
    mov.u64             %rd12, %rd5;\n\
    mad.wide.u32        %rd13, %r18, 4, %rd3;\n\
    mov.f32             %f1, 0f00000000;\n\
    ld.global.nc.b16    %h1, [%rd12+208];\n\
    cvt.f32.f16         %f2, %h1;\n\
    ld.global.nc.s8     %r20, [%rd11+6];\n\
    cvt.rn.f32.s32      %f3, %r20;\n\
    ld.global.nc.u16    %r21, [%rd9];\n\
    ld.global.nc.u16    %r22, [%rd9+2];\n\
    prmt.b32            %r23, %r21, %r22, 0x5410;\n\
    shr.u32             %r24, %r23, 1;\n\
    ld.global.nc.u16    %r25, [%rd7+32];\n\
    ld.global.nc.u16    %r26, [%rd7+34];\n\
    prmt.b32            %r27, %r25, %r26, 0x5410;\n\
    shr.u32             %r28, %r27, 3;\n\
    lop3.b32            %r29, %r28, 0x1E1E1E1E, 0x80808080, 0x6A;\n\
    lop3.b32            %r30, %r24, 0x60606060, %r29, 0x6A;\n\
    prmt.b32            %r31, %r30, 0x3F000000, 0x7344;\n\
    mov.b32             %f4, %r31;\n\
    sub.f32             %f5, %f4, 0f3FC00000;\n\
    ld.global.nc.v4.f32 {%f6, %f7, %f8, %f9}, [%rd13+384];\n\
    prmt.b32            %r32, %r30, 0x3F000000, 0x7244;\n\
    mov.b32             %f10, %r32;\n\
    sub.f32             %f11, %f10, 0f3FC00000;\n\
    prmt.b32            %r33, %r30, 0x3F000000, 0x7144;\n\
    mov.b32             %f12, %r33;\n\
    sub.f32             %f13, %f12, 0f3FC00000;\n\
    prmt.b32            %r34, %r30, 0x3F000000, 0x7044;\n\
    mov.b32             %f14, %r34;\n\
    sub.f32             %f15, %f14, 0f3FC00000;\n\
    mul.f32             %f16, %f15, %f6;\n\
    fma.rn.f32          %f17, %f13, %f7, %f16;\n\
    fma.rn.f32          %f18, %f11, %f8, %f17;\n\
    fma.rn.f32          %f19, %f5, %f9, %f18;\n\
    ld.global.nc.s8     %r35, [%rd11+4];\n\
    cvt.rn.f32.s32      %f20, %r35;\n\
    shl.b32             %r36, %r23, 1;\n\
    ld.global.nc.u16    %r37, [%rd7];\n\
    ld.global.nc.u16    %r38, [%rd7+2];\n\
    prmt.b32            %r39, %r37, %r38, 0x5410;\n\
    shr.u32             %r40, %r39, 3;\n\
    lop3.b32            %r41, %r40, 0x1E1E1E1E, 0x80808080, 0x6A;\n\
    lop3.b32            %r42, %r36, 0x60606060, %r41, 0x6A;\n\
    prmt.b32            %r43, %r42, 0x3F000000, 0x7344;\n\
    mov.b32             %f21, %r43;\n\
    sub.f32             %f22, %f21, 0f3FC00000;\n\
    ld.global.nc.v4.f32 {%f23, %f24, %f25, %f26}, [%rd13+256];\n\
    prmt.b32            %r44, %r42, 0x3F000000, 0x7244;\n\
    mov.b32             %f27, %r44;\n\
    sub.f32             %f28, %f27, 0f3FC00000;\n\
    prmt.b32            %r45, %r42, 0x3F000000, 0x7144;\n\
    mov.b32             %f29, %r45;\n\
    sub.f32             %f30, %f29, 0f3FC00000;\n\
    prmt.b32            %r46, %r42, 0x3F000000, 0x7044;\n\
    mov.b32             %f31, %r46;\n\
    sub.f32             %f32, %f31, 0f3FC00000;\n\
    mul.f32             %f33, %f32, %f23;\n\
    fma.rn.f32          %f34, %f30, %f24, %f33;\n\
    fma.rn.f32          %f35, %f28, %f25, %f34;\n\
    fma.rn.f32          %f36, %f22, %f26, %f35;\n\
    ld.global.nc.s8     %r47, [%rd11+2];\n\
    cvt.rn.f32.s32      %f37, %r47;\n\
    shl.b32             %r48, %r23, 3;\n\
    shl.b32             %r49, %r27, 1;\n\
    lop3.b32            %r50, %r49, 0x1E1E1E1E, 0x80808080, 0x6A;\n\
    lop3.b32            %r51, %r48, 0x60606060, %r50, 0x6A;\n\
    prmt.b32            %r52, %r51, 0x3F000000, 0x7344;\n\
    mov.b32             %f38, %r52;\n\
    sub.f32             %f39, %f38, 0f3FC00000;\n\
    ld.global.nc.v4.f32 {%f40, %f41, %f42, %f43}, [%rd13+128];\n\
    prmt.b32            %r53, %r51, 0x3F000000, 0x7244;\n\
    mov.b32             %f44, %r53;\n\
    sub.f32             %f45, %f44, 0f3FC00000;\n\
    prmt.b32            %r54, %r51, 0x3F000000, 0x7144;\n\
    mov.b32             %f46, %r54;\n\
    sub.f32             %f47, %f46, 0f3FC00000;\n\
    prmt.b32            %r55, %r51, 0x3F000000, 0x7044;\n\
    mov.b32             %f48, %r55;\n\
    sub.f32             %f49, %f48, 0f3FC00000;\n\
    mul.f32             %f50, %f49, %f40;\n\
    fma.rn.f32          %f51, %f47, %f41, %f50;\n\
    fma.rn.f32          %f52, %f45, %f42, %f51;\n\
    fma.rn.f32          %f53, %f39, %f43, %f52;\n\
    ld.global.nc.s8     %r56, [%rd11];\n\
    cvt.rn.f32.s32      %f54, %r56;\n\
    shl.b32             %r57, %r23, 5;\n\
    shl.b32             %r58, %r39, 1;\n\
    lop3.b32            %r59, %r58, 0x1E1E1E1E, 0x80808080, 0x6A;\n\
    lop3.b32            %r60, %r57, 0x60606060, %r59, 0x6A;\n\
    prmt.b32            %r61, %r60, 0x3F000000, 0x7344;\n\
    mov.b32             %f55, %r61;\n\
    sub.f32             %f56, %f55, 0f3FC00000;\n\
    ld.global.nc.v4.f32 {%f57, %f58, %f59, %f60}, [%rd13];\n\
    prmt.b32            %r62, %r60, 0x3F000000, 0x7244;\n\
    mov.b32             %f61, %r62;\n\
    sub.f32             %f62, %f61, 0f3FC00000;\n\
    prmt.b32            %r63, %r60, 0x3F000000, 0x7144;\n\
    mov.b32             %f63, %r63;\n\
    sub.f32             %f64, %f63, 0f3FC00000;\n\
    prmt.b32            %r64, %r60, 0x3F000000, 0x7044;\n\
    mov.b32             %f65, %r64;\n\
    sub.f32             %f66, %f65, 0f3FC00000;\n\
    mul.f32             %f67, %f66, %f57;\n\
    fma.rn.f32          %f68, %f64, %f58, %f67;\n\
    fma.rn.f32          %f69, %f62, %f59, %f68;\n\
    fma.rn.f32          %f70, %f56, %f60, %f69;\n\
    fma.rn.f32          %f71, %f54, %f70, 0f00000000;\n\
    fma.rn.f32          %f72, %f37, %f53, %f71;\n\
    fma.rn.f32          %f73, %f20, %f36, %f72;\n\
    fma.rn.f32          %f74, %f3, %f19, %f73;\n\
    fma.rn.f32          %f1, %f2, %f74, %f1;\n\
    ld.global.nc.b16    %h2, [%rd12+1888];\n\
    cvt.f32.f16         %f75, %h2;\n\
    ld.global.nc.s8     %r65, [%rd11+1686];\n\
    cvt.rn.f32.s32      %f76, %r65;\n\
    ld.global.nc.u16    %r66, [%rd9+1680];\n\
    ld.global.nc.u16    %r67, [%rd9+1682];\n\
    prmt.b32            %r68, %r66, %r67, 0x5410;\n\
    shr.u32             %r69, %r68, 1;\n\
    ld.global.nc.u16    %r70, [%rd7+1712];\n\
    ld.global.nc.u16    %r71, [%rd7+1714];\n\
    prmt.b32            %r72, %r70, %r71, 0x5410;\n\
    shr.u32             %r73, %r72, 3;\n\
    lop3.b32            %r74, %r73, 0x1E1E1E1E, 0x80808080, 0x6A;\n\
    lop3.b32            %r75, %r69, 0x60606060, %r74, 0x6A;\n\
    prmt.b32            %r76, %r75, 0x3F000000, 0x7344;\n\
    mov.b32             %f77, %r76;\n\
    sub.f32             %f78, %f77, 0f3FC00000;\n\
    ld.global.nc.v4.f32 {%f79, %f80, %f81, %f82}, [%rd13+8576];\n\
    prmt.b32            %r77, %r75, 0x3F000000, 0x7244;\n\
    mov.b32             %f83, %r77;\n\
    sub.f32             %f84, %f83, 0f3FC00000;\n\
"
"\
    prmt.b32            %r78, %r75, 0x3F000000, 0x7144;\n\
    mov.b32             %f85, %r78;\n\
    sub.f32             %f86, %f85, 0f3FC00000;\n\
    prmt.b32            %r79, %r75, 0x3F000000, 0x7044;\n\
    mov.b32             %f87, %r79;\n\
    sub.f32             %f88, %f87, 0f3FC00000;\n\
    mul.f32             %f89, %f88, %f79;\n\
    fma.rn.f32          %f90, %f86, %f80, %f89;\n\
    fma.rn.f32          %f91, %f84, %f81, %f90;\n\
    fma.rn.f32          %f92, %f78, %f82, %f91;\n\
    ld.global.nc.s8     %r80, [%rd11+1684];\n\
    cvt.rn.f32.s32      %f93, %r80;\n\
    shl.b32             %r81, %r68, 1;\n\
    ld.global.nc.u16    %r82, [%rd7+1680];\n\
    ld.global.nc.u16    %r83, [%rd7+1682];\n\
    prmt.b32            %r84, %r82, %r83, 0x5410;\n\
    shr.u32             %r85, %r84, 3;\n\
    lop3.b32            %r86, %r85, 0x1E1E1E1E, 0x80808080, 0x6A;\n\
    lop3.b32            %r87, %r81, 0x60606060, %r86, 0x6A;\n\
    prmt.b32            %r88, %r87, 0x3F000000, 0x7344;\n\
    mov.b32             %f94, %r88;\n\
    sub.f32             %f95, %f94, 0f3FC00000;\n\
    ld.global.nc.v4.f32 {%f96, %f97, %f98, %f99}, [%rd13+8448];\n\
    prmt.b32            %r89, %r87, 0x3F000000, 0x7244;\n\
    mov.b32             %f100, %r89;\n\
    sub.f32             %f101, %f100, 0f3FC00000;\n\
    prmt.b32            %r90, %r87, 0x3F000000, 0x7144;\n\
    mov.b32             %f102, %r90;\n\
    sub.f32             %f103, %f102, 0f3FC00000;\n\
    prmt.b32            %r91, %r87, 0x3F000000, 0x7044;\n\
    mov.b32             %f104, %r91;\n\
    sub.f32             %f105, %f104, 0f3FC00000;\n\
    mul.f32             %f106, %f105, %f96;\n\
    fma.rn.f32          %f107, %f103, %f97, %f106;\n\
    fma.rn.f32          %f108, %f101, %f98, %f107;\n\
    fma.rn.f32          %f109, %f95, %f99, %f108;\n\
    ld.global.nc.s8     %r92, [%rd11+1682];\n\
    cvt.rn.f32.s32      %f110, %r92;\n\
    shl.b32             %r93, %r68, 3;\n\
    shl.b32             %r94, %r72, 1;\n\
    lop3.b32            %r95, %r94, 0x1E1E1E1E, 0x80808080, 0x6A;\n\
    lop3.b32            %r96, %r93, 0x60606060, %r95, 0x6A;\n\
    prmt.b32            %r97, %r96, 0x3F000000, 0x7344;\n\
    mov.b32             %f111, %r97;\n\
    sub.f32             %f112, %f111, 0f3FC00000;\n\
    ld.global.nc.v4.f32 {%f113, %f114, %f115, %f116}, [%rd13+8320];\n\
    prmt.b32            %r98, %r96, 0x3F000000, 0x7244;\n\
    mov.b32             %f117, %r98;\n\
    sub.f32             %f118, %f117, 0f3FC00000;\n\
    prmt.b32            %r99, %r96, 0x3F000000, 0x7144;\n\
    mov.b32             %f119, %r99;\n\
    sub.f32             %f120, %f119, 0f3FC00000;\n\
    prmt.b32            %r100, %r96, 0x3F000000, 0x7044;\n\
    mov.b32             %f121, %r100;\n\
    sub.f32             %f122, %f121, 0f3FC00000;\n\
    mul.f32             %f123, %f122, %f113;\n\
    fma.rn.f32          %f124, %f120, %f114, %f123;\n\
    fma.rn.f32          %f125, %f118, %f115, %f124;\n\
    fma.rn.f32          %f126, %f112, %f116, %f125;\n\
    ld.global.nc.s8     %r101, [%rd11+1680];\n\
    cvt.rn.f32.s32      %f127, %r101;\n\
    shl.b32             %r102, %r68, 5;\n\
    shl.b32             %r103, %r84, 1;\n\
    lop3.b32            %r104, %r103, 0x1E1E1E1E, 0x80808080, 0x6A;\n\
    lop3.b32            %r105, %r102, 0x60606060, %r104, 0x6A;\n\
    prmt.b32            %r106, %r105, 0x3F000000, 0x7344;\n\
    mov.b32             %f128, %r106;\n\
    sub.f32             %f129, %f128, 0f3FC00000;\n\
    ld.global.nc.v4.f32 {%f130, %f131, %f132, %f133}, [%rd13+8192];\n\
    prmt.b32            %r107, %r105, 0x3F000000, 0x7244;\n\
    mov.b32             %f134, %r107;\n\
    sub.f32             %f135, %f134, 0f3FC00000;\n\
    prmt.b32            %r108, %r105, 0x3F000000, 0x7144;\n\
    mov.b32             %f136, %r108;\n\
    sub.f32             %f137, %f136, 0f3FC00000;\n\
    prmt.b32            %r109, %r105, 0x3F000000, 0x7044;\n\
    mov.b32             %f138, %r109;\n\
    sub.f32             %f139, %f138, 0f3FC00000;\n\
    mul.f32             %f140, %f139, %f130;\n\
    fma.rn.f32          %f141, %f137, %f131, %f140;\n\
    fma.rn.f32          %f142, %f135, %f132, %f141;\n\
    fma.rn.f32          %f143, %f129, %f133, %f142;\n\
    fma.rn.f32          %f144, %f127, %f143, 0f00000000;\n\
    fma.rn.f32          %f145, %f110, %f126, %f144;\n\
    fma.rn.f32          %f146, %f93, %f109, %f145;\n\
    fma.rn.f32          %f147, %f76, %f92, %f146;\n\
    fma.rn.f32          %f1, %f75, %f147, %f1;\n\
    add.u64             %rd7, %rd7, 3360;\n\
    add.u64             %rd9, %rd9, 3360;\n\
    add.u64             %rd11, %rd11, 3360;\n\
    add.u64             %rd12, %rd12, 3360;\n\
    add.u64             %rd13, %rd13, 16384;\n\
    shr.u32             %r110, %r2, 5;\n\
    and.b32             %r111, %r2, 31;\n\
    setp.eq.u32         %p1, %r111, 0;\n\
    selp.u32            %r112, %r110, 1, %p1;\n\
    shfl.sync.bfly.b32  %f148, %f1, 16, 31, 0xFFFFFFFF;\n\
    add.f32             %f149, %f1, %f148;\n\
    shfl.sync.bfly.b32  %f150, %f149, 8, 31, 0xFFFFFFFF;\n\
    add.f32             %f151, %f149, %f150;\n\
    shfl.sync.bfly.b32  %f152, %f151, 4, 31, 0xFFFFFFFF;\n\
    add.f32             %f153, %f151, %f152;\n\
    shfl.sync.bfly.b32  %f154, %f153, 2, 31, 0xFFFFFFFF;\n\
    add.f32             %f155, %f153, %f154;\n\
    shfl.sync.bfly.b32  %f156, %f155, 1, 31, 0xFFFFFFFF;\n\
    add.f32             %f157, %f155, %f156;\n\
    setp.lt.u32         %p2, %r112, 1;\n\
    @!%p2 bra           $skip;\n\
    mad.lo.u32          %r113, %r3, 1, %r112;\n\
    mov.u32             %r114, partial;                         // partial\n\
    mad.lo.u32          %r115, %r113, 4, %r114;\n\
    st.shared.f32       [%r115], %f157;\n\
\n\
$skip:\n\
    bar.sync            0;\n\
    mov.f32             %f158, 0f00000000;\n\
    setp.lt.u32         %p3, %r1, 1;\n\
    @!%p3 bra           $skip_2;\n\
    mov.u32             %r116, partial;                         // partial\n\
    mad.lo.u32          %r117, %r1, 4, %r116;\n\
    ld.shared.f32       %f159, [%r117];\n\
    add.f32             %f158, %f158, %f159;\n\
    ld.shared.f32       %f160, [%r117+4];\n\
    add.f32             %f158, %f158, %f160;\n\
    ld.shared.f32       %f161, [%r117+8];\n\
    add.f32             %f158, %f158, %f161;\n\
    ld.shared.f32       %f162, [%r117+12];\n\
    add.f32             %f158, %f158, %f162;\n\
\n\
$skip_2:\n\
    mul.f32             %f163, %f158, 0f42800000;\n\
    setp.lt.u32         %p4, %r1, 1;\n\
    @!%p4 bra           $skip_3;\n\
    add.u32             %r118, %r4, %r1;\n\
    cvt.u64.u32         %rd14, %r118;\n\
    shl.b64             %rd15, %rd14, 2;\n\
    add.u64             %rd16, %rd1, %rd15;\n\
    st.global.f32       [%rd16], %f163;\n\
\n\
$skip_3:\n\
    ret;\n\
}\n\
";
static const ptxgen_param llama_mwv_q6k_gemv_k4096_n4096_w4_params[] = {
    { "y", PTXGEN_PARAM_POINTER, PTXGEN_PARAM_OUT, PTXGEN_F32, 16384, "n*4", 4 },
    { "w", PTXGEN_PARAM_POINTER, PTXGEN_PARAM_IN, PTXGEN_Q6_K, 13762560, "n*k/256*210", 2 },
    { "x", PTXGEN_PARAM_POINTER, PTXGEN_PARAM_IN, PTXGEN_F32, 16384, "k*4", 16 },
};
static const ptxgen_config llama_mwv_q6k_gemv_k4096_n4096_w4_config[] = {
    { "k", 4096, 0, NULL, 0, 0, 0, 1 },
    { "n", 4096, 0, NULL, 0, 0, 0, 1 },
    { "num_warps", 4, 0, NULL, 0, 0, 0, 1 },
    { "dims", 0, 0, "static", 0, 0, 0, 1 },
};
const ptxgen_kernel llama_mwv_q6k_gemv_k4096_n4096_w4 = {
    "mwv_q6k_gemv_k4096_n4096_w4", "mwv_q6k_gemv_k4096_n4096_w4",
    llama_mwv_q6k_gemv_k4096_n4096_w4_ptx, 14371, UINT64_C(0xed75884cfb0f9663),
    "mwv_q6k_gemv", PTXGEN_GEMV, PTXGEN_Q6_K, PTXGEN_F32, PTXGEN_F32,
    75, 63, 0, 0, /* sm, isa, overlaps, specific */
    llama_mwv_q6k_gemv_k4096_n4096_w4_params, 3,
    { 128, 1, 1 }, { 4096, 1, 1 }, NULL, /* block, grid, grid_at */
    16, 0, NULL, 0, /* shared_static, shared_dynamic, shared_at, workspace */
    4096, 4096, 1, /* k, n, m */
    4, 0, 0, 0, 0, /* num_warps, head_dim, num_heads, num_kv_heads, max_seq_len */
    0, 0, /* dynamic_dims, seq_len_indirect */
    llama_mwv_q6k_gemv_k4096_n4096_w4_config, 4,
    0, 0, /* registers, blocks_per_sm */
    3, /* preference */
    "gemv", 0, 1, /* chosen_by, chosen_f32, chosen_q8 */
};

static const char llama_stream_gemv_q6k_k4096_n4096_m1_w8_r2_ptx[] = "\
// stream_gemv  weights=q6_k k=4096 n=4096 m=1 num_warps=8 rows_per_warp=2  y[m,n] = x[m,k] W[n,k]^T\n\
// ptxgen 0.1.0  block 256  grid min(256, sm_count*2)\n\
.version 7.0\n\
.target sm_80\n\
.address_size 64\n\
\n\
.extern .shared .align 16 .b32 activations[];\n\
\n\
.visible .entry stream_gemv_q6k_k4096_n4096_m1_w8_r2(\n\
    .param .u64 y,\n\
    .param .u64 w,\n\
    .param .u64 x)\n\
.reqntid 256, 1, 1\n\
.maxnreg 96\n\
{\n\
    .reg .pred  %p<14>;\n\
    .reg .b16   %h<3>;\n\
    .reg .b32   %r<422>;\n\
    .reg .f32   %f<110>;\n\
    .reg .b64   %rd<34>;\n\
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
    // fetch the first weights\n\
    mad.lo.u32          %r6, %r1, 8, %r3;\n\
    mul.lo.u32          %r7, %r6, 2;\n\
    mul.lo.u32          %r8, %r4, 8;\n\
    mul.lo.u32          %r9, %r8, 2;\n\
    setp.lt.u32         %p1, %r7, 4096;\n\
    @!%p1 bra           $skip;\n\
    mad.wide.u32        %rd4, %r7, 3360, %rd2;                  // &w[row]\n\
    mad.wide.u32        %rd5, %r5, 128, %rd4;\n\
    prefetch.global.L2  [%rd5];\n\
    min.u32             %r10, %r5, 20;\n\
    mad.wide.u32        %rd6, %r10, 128, %rd4;\n\
    prefetch.global.L2  [%rd6+4096];\n\
\n\
$skip:\n\
\n\
    // stage x\n\
    mov.u32             %r11, %r3;                              // first\n\
    setp.lt.u32         %p2, %r11, 8;\n\
    @!%p2 bra           $first_done;\n\
\n\
$first_loop:\n\
    .pragma \"nounroll\";\n\
    mad.lo.u32          %r12, %r11, 32, %r5;\n\
    and.b32             %r13, %r12, 0x7F;\n\
    shr.u32             %r14, %r13, 1;\n\
    and.b32             %r15, %r14, 3;\n\
    shr.u32             %r16, %r12, 7;\n\
    mov.u32             %r17, activations;                      // activations\n\
    mad.lo.u32          %r18, %r16, 3072, %r17;\n\
    shr.u32             %r19, %r13, 2;\n\
    shr.u32             %r20, %r19, 1;\n\
    mul.lo.u32          %r21, %r20, 2;\n\
    and.b32             %r22, %r13, 1;\n\
    add.u32             %r23, %r21, %r22;\n\
    mad.lo.u32          %r24, %r11, 32, %r5;\n\
    mad.wide.u32        %rd7, %r24, 64, %rd3;\n\
    ld.global.nc.v4.f32 {%f1, %f2, %f3, %f4}, [%rd7];\n\
    mov.b32             %r25, %f1;\n\
    and.b32             %r26, %r25, 0x7FFFFFFF;\n\
    max.u32             %r27, %r26, 228737632;\n\
    mov.b32             %r28, %f2;\n\
    and.b32             %r29, %r28, 0x7FFFFFFF;\n\
    max.u32             %r30, %r27, %r29;\n\
    mov.b32             %r31, %f3;\n\
    and.b32             %r32, %r31, 0x7FFFFFFF;\n\
    max.u32             %r33, %r30, %r32;\n\
    mov.b32             %r34, %f4;\n\
    and.b32             %r35, %r34, 0x7FFFFFFF;\n\
    max.u32             %r36, %r33, %r35;\n\
    ld.global.nc.v4.f32 {%f5, %f6, %f7, %f8}, [%rd7+16];\n\
    mov.b32             %r37, %f5;\n\
    and.b32             %r38, %r37, 0x7FFFFFFF;\n\
    max.u32             %r39, %r36, %r38;\n\
    mov.b32             %r40, %f6;\n\
    and.b32             %r41, %r40, 0x7FFFFFFF;\n\
    max.u32             %r42, %r39, %r41;\n\
    mov.b32             %r43, %f7;\n\
    and.b32             %r44, %r43, 0x7FFFFFFF;\n\
    max.u32             %r45, %r42, %r44;\n\
    mov.b32             %r46, %f8;\n\
    and.b32             %r47, %r46, 0x7FFFFFFF;\n\
    max.u32             %r48, %r45, %r47;\n\
    ld.global.nc.v4.f32 {%f9, %f10, %f11, %f12}, [%rd7+32];\n\
    mov.b32             %r49, %f9;\n\
    and.b32             %r50, %r49, 0x7FFFFFFF;\n\
    max.u32             %r51, %r48, %r50;\n\
    mov.b32             %r52, %f10;\n\
    and.b32             %r53, %r52, 0x7FFFFFFF;\n\
    max.u32             %r54, %r51, %r53;\n\
    mov.b32             %r55, %f11;\n\
    and.b32             %r56, %r55, 0x7FFFFFFF;\n\
    max.u32             %r57, %r54, %r56;\n\
    mov.b32             %r58, %f12;\n\
    and.b32             %r59, %r58, 0x7FFFFFFF;\n\
    max.u32             %r60, %r57, %r59;\n\
    ld.global.nc.v4.f32 {%f13, %f14, %f15, %f16}, [%rd7+48];\n\
    mov.b32             %r61, %f13;\n\
    and.b32             %r62, %r61, 0x7FFFFFFF;\n\
    max.u32             %r63, %r60, %r62;\n\
    mov.b32             %r64, %f14;\n\
    and.b32             %r65, %r64, 0x7FFFFFFF;\n\
    max.u32             %r66, %r63, %r65;\n\
    mov.b32             %r67, %f15;\n\
    and.b32             %r68, %r67, 0x7FFFFFFF;\n\
    max.u32             %r69, %r66, %r68;\n\
    mov.b32             %r70, %f16;\n\
    and.b32             %r71, %r70, 0x7FFFFFFF;\n\
    max.u32             %r72, %r69, %r71;\n\
    shfl.sync.bfly.b32  %r73, %r72, 1, 31, 0xFFFFFFFF;\n\
    max.u32             %r74, %r72, %r73;\n\
    mov.b32             %f17, %r74;\n\
    mul.f32             %f18, %f17, 0f3C010204;\n\
    rcp.approx.ftz.f32  %f19, %f18;\n\
    fma.rn.f32          %f20, %f13, %f19, 0f4B400000;\n\
    mov.b32             %r75, %f20;\n\
    fma.rn.f32          %f21, %f14, %f19, 0f4B400000;\n\
    mov.b32             %r76, %f21;\n\
    prmt.b32            %r77, %r75, %r76, 64;\n\
    fma.rn.f32          %f22, %f15, %f19, 0f4B400000;\n\
    mov.b32             %r78, %f22;\n\
    fma.rn.f32          %f23, %f16, %f19, 0f4B400000;\n\
    mov.b32             %r79, %f23;\n\
    prmt.b32            %r80, %r78, %r79, 64;\n\
    prmt.b32            %r81, %r77, %r80, 0x5410;\n\
    fma.rn.f32          %f24, %f9, %f19, 0f4B400000;\n\
    mov.b32             %r82, %f24;\n\
    fma.rn.f32          %f25, %f10, %f19, 0f4B400000;\n\
    mov.b32             %r83, %f25;\n\
    prmt.b32            %r84, %r82, %r83, 64;\n\
    fma.rn.f32          %f26, %f11, %f19, 0f4B400000;\n\
    mov.b32             %r85, %f26;\n\
    fma.rn.f32          %f27, %f12, %f19, 0f4B400000;\n\
    mov.b32             %r86, %f27;\n\
    prmt.b32            %r87, %r85, %r86, 64;\n\
    prmt.b32            %r88, %r84, %r87, 0x5410;\n\
    fma.rn.f32          %f28, %f5, %f19, 0f4B400000;\n\
    mov.b32             %r89, %f28;\n\
    fma.rn.f32          %f29, %f6, %f19, 0f4B400000;\n\
    mov.b32             %r90, %f29;\n\
    prmt.b32            %r91, %r89, %r90, 64;\n\
    fma.rn.f32          %f30, %f7, %f19, 0f4B400000;\n\
    mov.b32             %r92, %f30;\n\
    fma.rn.f32          %f31, %f8, %f19, 0f4B400000;\n\
    mov.b32             %r93, %f31;\n\
    prmt.b32            %r94, %r92, %r93, 64;\n\
    prmt.b32            %r95, %r91, %r94, 0x5410;\n\
    fma.rn.f32          %f32, %f1, %f19, 0f4B400000;\n\
    mov.b32             %r96, %f32;\n\
    fma.rn.f32          %f33, %f2, %f19, 0f4B400000;\n\
    mov.b32             %r97, %f33;\n\
    prmt.b32            %r98, %r96, %r97, 64;\n\
    fma.rn.f32          %f34, %f3, %f19, 0f4B400000;\n\
    mov.b32             %r99, %f34;\n\
    fma.rn.f32          %f35, %f4, %f19, 0f4B400000;\n\
    mov.b32             %r100, %f35;\n\
    prmt.b32            %r101, %r99, %r100, 64;\n\
    prmt.b32            %r102, %r98, %r101, 0x5410;\n\
    dp4a.u32.s32        %r103, 0x01010101, %r102, 0;\n\
    dp4a.u32.s32        %r104, 0x01010101, %r95, %r103;\n\
    dp4a.u32.s32        %r105, 0x01010101, %r88, %r104;\n\
    dp4a.u32.s32        %r106, 0x01010101, %r81, %r105;\n\
    setp.eq.u32         %p3, %r15, 3;\n\
    selp.s32            %r107, -128, -32, %p3;\n\
    mad.lo.s32          %r108, %r106, %r107, 1262485504;\n\
    shr.u32             %r109, %r23, 2;\n\
    mul.lo.u32          %r110, %r109, 210;\n\
    and.b32             %r111, %r23, 3;\n\
    shr.u32             %r112, %r111, 1;\n\
    and.b32             %r113, %r111, 1;\n\
    mul.lo.u32          %r114, %r113, 16;\n\
    mad.lo.u32          %r115, %r112, 64, %r114;\n\
    add.u32             %r116, %r110, %r115;\n\
    and.b32             %r117, %r116, 15;\n\
    sub.u32             %r118, 16, %r117;\n\
    and.b32             %r119, %r118, 15;\n\
    and.b32             %r120, %r119, 8;\n\
    setp.ne.u32         %p4, %r120, 0;\n\
    selp.s32            %r121, %r81, %r95, %p4;\n\
    selp.s32            %r122, %r88, %r102, %p4;\n\
    and.b32             %r123, %r119, 4;\n\
    setp.ne.u32         %p5, %r123, 0;\n\
    selp.s32            %r124, %r121, %r122, %p5;\n\
    selp.s32            %r125, %r102, %r88, %p4;\n\
    selp.s32            %r126, %r125, %r121, %p5;\n\
    and.b32             %r127, %r119, 3;\n\
"
"\
    mad.lo.u32          %r128, %r127, 4369, 12816;\n\
    prmt.b32            %r129, %r124, %r126, %r128;\n\
    selp.s32            %r130, %r95, %r81, %p4;\n\
    selp.s32            %r131, %r130, %r125, %p5;\n\
    prmt.b32            %r132, %r126, %r131, %r128;\n\
    selp.s32            %r133, %r122, %r130, %p5;\n\
    prmt.b32            %r134, %r131, %r133, %r128;\n\
    prmt.b32            %r135, %r133, %r124, %r128;\n\
    mad.lo.u32          %r136, %r15, 512, %r18;\n\
    mad.lo.u32          %r137, %r23, 16, %r136;\n\
    st.shared.v4.s32    [%r137], {%r129, %r132, %r134, %r135};\n\
    mad.lo.u32          %r138, %r15, 4, %r18;\n\
    mad.lo.u32          %r139, %r23, 16, %r138;\n\
    setp.eq.u32         %p6, %r15, 3;\n\
    selp.f32            %f36, 0f3E800000, 0f3F800000, %p6;\n\
    mul.f32             %f37, %f18, %f36;\n\
    mov.b32             %r140, %f37;\n\
    st.shared.u32       [%r139+2048], %r140;\n\
    st.shared.u32       [%r139+2560], %r108;\n\
    add.u32             %r11, %r11, 8;\n\
    setp.lt.u32         %p7, %r11, 8;\n\
    @%p7 bra            $first_loop;\n\
\n\
$first_done:\n\
    bar.sync            0;\n\
\n\
    // stream weights\n\
    shr.u32             %r141, %r5, 2;\n\
    and.b32             %r142, %r5, 3;\n\
    shr.u32             %r143, %r142, 1;\n\
    and.b32             %r144, %r142, 1;\n\
    mul.lo.u32          %r145, %r144, 16;\n\
    mad.lo.u32          %r146, %r143, 64, %r145;\n\
    mov.u32             %r147, activations;                     // activations\n\
    mad.lo.u32          %r148, %r5, 16, %r147;\n\
    mul.lo.u32          %r149, %r141, 210;\n\
    add.u32             %r150, %r149, %r146;\n\
    and.b32             %r151, %r150, 15;\n\
    mul.lo.u32          %r152, %r151, 4;\n\
    shl.b64             %rd8, 1, %r152;\n\
    sub.u64             %rd9, %rd8, 1;\n\
    shr.u64             %rd10, %rd9, 48;\n\
    cvt.u32.u64         %r153, %rd10;\n\
    lop3.b32            %r154, %r153, 0x4444, 0x3210, 0xEA;\n\
    shr.u64             %rd11, %rd9, 32;\n\
    cvt.u32.u64         %r155, %rd11;\n\
    lop3.b32            %r156, %r155, 0x4444, 0x3210, 0xEA;\n\
    shr.u64             %rd12, %rd9, 16;\n\
    cvt.u32.u64         %r157, %rd12;\n\
    lop3.b32            %r158, %r157, 0x4444, 0x3210, 0xEA;\n\
    cvt.u32.u64         %r159, %rd9;\n\
    lop3.b32            %r160, %r159, 0x4444, 0x3210, 0xEA;\n\
    mov.u32             %r161, %r7;                             // row\n\
    setp.lt.u32         %p8, %r161, 4096;\n\
    @!%p8 bra           $row_done;\n\
\n\
$row_loop:\n\
    .pragma \"nounroll\";\n\
    mad.wide.u32        %rd13, %r161, 3360, %rd2;               // &w[row]\n\
    mov.f32             %f38, 0f00000000;\n\
    mov.f32             %f39, 0f00000000;\n\
    mad.wide.u32        %rd14, %r141, 210, %rd13;\n\
    shr.u32             %r162, %r142, 1;\n\
    and.b32             %r163, %r142, 1;\n\
    mad.lo.u32          %r164, %r162, 8, %r163;\n\
    cvt.u64.u32         %rd15, %r164;\n\
    add.u64             %rd16, %rd14, %rd15;\n\
    cvt.u64.u32         %rd17, %r146;\n\
    add.u64             %rd18, %rd14, %rd17;\n\
    and.b64             %rd19, %rd18, 0xFFFFFFFFFFFFFFF0;\n\
    mul.lo.u32          %r165, %r162, 32;\n\
    sub.u32             %r166, 128, %r165;\n\
    cvt.u64.u32         %rd20, %r166;\n\
    add.u64             %rd21, %rd19, %rd20;\n\
    mov.u32             %r167, 0;                               // turn\n\
\n\
$turn_loop:                                                     // 128 weights a lane\n\
    .pragma \"nounroll\";\n\
    mul.wide.u32        %rd22, %r167, 1680;\n\
    add.u64             %rd23, %rd14, %rd22;\n\
    add.u64             %rd24, %rd16, %rd22;\n\
    mad.lo.u32          %r168, %r167, 3072, %r148;\n\
    add.u64             %rd25, %rd19, %rd22;\n\
    add.u64             %rd26, %rd21, %rd22;\n\
    add.u64             %rd27, %rd14, %rd22;\n\
    ld.global.nc.b16    %h1, [%rd27+208];\n\
    cvt.f32.f16         %f40, %h1;\n\
    add.u64             %rd28, %rd16, %rd22;\n\
    ld.global.nc.s8     %r169, [%rd28+198];\n\
    cvt.rn.f32.s32      %f41, %r169;\n\
    ld.shared.v4.f32    {%f42, %f43, %f44, %f45}, [%r168+2048];\n\
    mul.f32             %f46, %f41, %f45;\n\
    add.u64             %rd29, %rd19, %rd22;\n\
    ld.global.nc.v4.u32 {%r170, %r171, %r172, %r173}, [%rd29+32];\n\
    ld.global.nc.v4.u32 {%r174, %r175, %r176, %r177}, [%rd29+48];\n\
    prmt.b32            %r178, %r173, %r177, %r154;\n\
    shr.u32             %r179, %r178, 2;\n\
    add.u64             %rd30, %rd21, %rd22;\n\
    ld.global.nc.v4.u32 {%r180, %r181, %r182, %r183}, [%rd30];\n\
    ld.global.nc.v4.u32 {%r184, %r185, %r186, %r187}, [%rd30+16];\n\
    prmt.b32            %r188, %r183, %r187, %r154;\n\
    and.b32             %r189, %r188, 0xC0C0C0C0;\n\
    lop3.b32            %r190, %r179, 0x3C3C3C3C, %r189, 0xEA;\n\
    ld.shared.v4.s32    {%r191, %r192, %r193, %r194}, [%r168+1536];\n\
    prmt.b32            %r195, %r172, %r176, %r156;\n\
    shr.u32             %r196, %r195, 2;\n\
    prmt.b32            %r197, %r182, %r186, %r156;\n\
    and.b32             %r198, %r197, 0xC0C0C0C0;\n\
    lop3.b32            %r199, %r196, 0x3C3C3C3C, %r198, 0xEA;\n\
    prmt.b32            %r200, %r171, %r175, %r158;\n\
    shr.u32             %r201, %r200, 2;\n\
    prmt.b32            %r202, %r181, %r185, %r158;\n\
    and.b32             %r203, %r202, 0xC0C0C0C0;\n\
    lop3.b32            %r204, %r201, 0x3C3C3C3C, %r203, 0xEA;\n\
    prmt.b32            %r205, %r170, %r174, %r160;\n\
    shr.u32             %r206, %r205, 2;\n\
    prmt.b32            %r207, %r180, %r184, %r160;\n\
    and.b32             %r208, %r207, 0xC0C0C0C0;\n\
    lop3.b32            %r209, %r206, 0x3C3C3C3C, %r208, 0xEA;\n\
    ld.shared.v4.f32    {%f47, %f48, %f49, %f50}, [%r168+2560];\n\
    mov.b32             %r210, %f50;\n\
    dp4a.u32.s32        %r211, %r209, %r191, %r210;\n\
    dp4a.u32.s32        %r212, %r204, %r192, %r211;\n\
    dp4a.u32.s32        %r213, %r199, %r193, %r212;\n\
    dp4a.u32.s32        %r214, %r190, %r194, %r213;\n\
    mov.b32             %f51, %r214;\n\
    sub.f32             %f52, %f51, 0f4B400000;\n\
    ld.global.nc.s8     %r215, [%rd28+196];\n\
    cvt.rn.f32.s32      %f53, %r215;\n\
    mul.f32             %f54, %f53, %f44;\n\
    ld.global.nc.v4.u32 {%r216, %r217, %r218, %r219}, [%rd29];\n\
    ld.global.nc.v4.u32 {%r220, %r221, %r222, %r223}, [%rd29+16];\n\
    prmt.b32            %r224, %r219, %r223, %r154;\n\
    shr.u32             %r225, %r224, 4;\n\
    and.b32             %r226, %r188, 0x30303030;\n\
    lop3.b32            %r227, %r225, 0x0F0F0F0F, %r226, 0xEA;\n\
    ld.shared.v4.s32    {%r228, %r229, %r230, %r231}, [%r168+1024];\n\
    prmt.b32            %r232, %r218, %r222, %r156;\n\
    shr.u32             %r233, %r232, 4;\n\
    and.b32             %r234, %r197, 0x30303030;\n\
    lop3.b32            %r235, %r233, 0x0F0F0F0F, %r234, 0xEA;\n\
    prmt.b32            %r236, %r217, %r221, %r158;\n\
    shr.u32             %r237, %r236, 4;\n\
    and.b32             %r238, %r202, 0x30303030;\n\
    lop3.b32            %r239, %r237, 0x0F0F0F0F, %r238, 0xEA;\n\
    prmt.b32            %r240, %r216, %r220, %r160;\n\
    shr.u32             %r241, %r240, 4;\n\
    and.b32             %r242, %r207, 0x30303030;\n\
    lop3.b32            %r243, %r241, 0x0F0F0F0F, %r242, 0xEA;\n\
    mov.b32             %r244, %f49;\n\
    dp4a.u32.s32        %r245, %r243, %r228, %r244;\n\
    dp4a.u32.s32        %r246, %r239, %r229, %r245;\n\
    dp4a.u32.s32        %r247, %r235, %r230, %r246;\n\
    dp4a.u32.s32        %r248, %r227, %r231, %r247;\n\
    mov.b32             %f55, %r248;\n\
    sub.f32             %f56, %f55, 0f4B400000;\n\
    ld.global.nc.s8     %r249, [%rd28+194];\n\
    cvt.rn.f32.s32      %f57, %r249;\n\
    mul.f32             %f58, %f57, %f43;\n\
    shl.b32             %r250, %r188, 2;\n\
    and.b32             %r251, %r250, 0x30303030;\n\
    lop3.b32            %r252, %r178, 0x0F0F0F0F, %r251, 0xEA;\n\
    ld.shared.v4.s32    {%r253, %r254, %r255, %r256}, [%r168+512];\n\
    shl.b32             %r257, %r197, 2;\n\
    and.b32             %r258, %r257, 0x30303030;\n\
    lop3.b32            %r259, %r195, 0x0F0F0F0F, %r258, 0xEA;\n\
    shl.b32             %r260, %r202, 2;\n\
    and.b32             %r261, %r260, 0x30303030;\n\
    lop3.b32            %r262, %r200, 0x0F0F0F0F, %r261, 0xEA;\n\
    shl.b32             %r263, %r207, 2;\n\
"
"\
    and.b32             %r264, %r263, 0x30303030;\n\
    lop3.b32            %r265, %r205, 0x0F0F0F0F, %r264, 0xEA;\n\
    mov.b32             %r266, %f48;\n\
    dp4a.u32.s32        %r267, %r265, %r253, %r266;\n\
    dp4a.u32.s32        %r268, %r262, %r254, %r267;\n\
    dp4a.u32.s32        %r269, %r259, %r255, %r268;\n\
    dp4a.u32.s32        %r270, %r252, %r256, %r269;\n\
    mov.b32             %f59, %r270;\n\
    sub.f32             %f60, %f59, 0f4B400000;\n\
    ld.global.nc.s8     %r271, [%rd28+192];\n\
    cvt.rn.f32.s32      %f61, %r271;\n\
    mul.f32             %f62, %f61, %f42;\n\
    shl.b32             %r272, %r188, 4;\n\
    and.b32             %r273, %r272, 0x30303030;\n\
    lop3.b32            %r274, %r224, 0x0F0F0F0F, %r273, 0xEA;\n\
    ld.shared.v4.s32    {%r275, %r276, %r277, %r278}, [%r168];\n\
    shl.b32             %r279, %r197, 4;\n\
    and.b32             %r280, %r279, 0x30303030;\n\
    lop3.b32            %r281, %r232, 0x0F0F0F0F, %r280, 0xEA;\n\
    shl.b32             %r282, %r202, 4;\n\
    and.b32             %r283, %r282, 0x30303030;\n\
    lop3.b32            %r284, %r236, 0x0F0F0F0F, %r283, 0xEA;\n\
    shl.b32             %r285, %r207, 4;\n\
    and.b32             %r286, %r285, 0x30303030;\n\
    lop3.b32            %r287, %r240, 0x0F0F0F0F, %r286, 0xEA;\n\
    mov.b32             %r288, %f47;\n\
    dp4a.u32.s32        %r289, %r287, %r275, %r288;\n\
    dp4a.u32.s32        %r290, %r284, %r276, %r289;\n\
    dp4a.u32.s32        %r291, %r281, %r277, %r290;\n\
    dp4a.u32.s32        %r292, %r274, %r278, %r291;\n\
    mov.b32             %f63, %r292;\n\
    sub.f32             %f64, %f63, 0f4B400000;\n\
    mul.f32             %f65, %f62, %f64;\n\
    fma.rn.f32          %f66, %f58, %f60, %f65;\n\
    fma.rn.f32          %f67, %f54, %f56, %f66;\n\
    fma.rn.f32          %f68, %f46, %f52, %f67;\n\
    fma.rn.f32          %f38, %f40, %f68, %f38;\n\
    ld.global.nc.b16    %h2, [%rd23+3568];\n\
    cvt.f32.f16         %f69, %h2;\n\
    ld.global.nc.s8     %r293, [%rd24+3558];\n\
    cvt.rn.f32.s32      %f70, %r293;\n\
    ld.shared.v4.f32    {%f71, %f72, %f73, %f74}, [%r168+2048];\n\
    mul.f32             %f75, %f70, %f74;\n\
    ld.global.nc.v4.u32 {%r294, %r295, %r296, %r297}, [%rd25+3392];\n\
    ld.global.nc.v4.u32 {%r298, %r299, %r300, %r301}, [%rd25+3408];\n\
    prmt.b32            %r302, %r297, %r301, %r154;\n\
    shr.u32             %r303, %r302, 2;\n\
    ld.global.nc.v4.u32 {%r304, %r305, %r306, %r307}, [%rd26+3360];\n\
    ld.global.nc.v4.u32 {%r308, %r309, %r310, %r311}, [%rd26+3376];\n\
    prmt.b32            %r312, %r307, %r311, %r154;\n\
    and.b32             %r313, %r312, 0xC0C0C0C0;\n\
    lop3.b32            %r314, %r303, 0x3C3C3C3C, %r313, 0xEA;\n\
    ld.shared.v4.s32    {%r315, %r316, %r317, %r318}, [%r168+1536];\n\
    prmt.b32            %r319, %r296, %r300, %r156;\n\
    shr.u32             %r320, %r319, 2;\n\
    prmt.b32            %r321, %r306, %r310, %r156;\n\
    and.b32             %r322, %r321, 0xC0C0C0C0;\n\
    lop3.b32            %r323, %r320, 0x3C3C3C3C, %r322, 0xEA;\n\
    prmt.b32            %r324, %r295, %r299, %r158;\n\
    shr.u32             %r325, %r324, 2;\n\
    prmt.b32            %r326, %r305, %r309, %r158;\n\
    and.b32             %r327, %r326, 0xC0C0C0C0;\n\
    lop3.b32            %r328, %r325, 0x3C3C3C3C, %r327, 0xEA;\n\
    prmt.b32            %r329, %r294, %r298, %r160;\n\
    shr.u32             %r330, %r329, 2;\n\
    prmt.b32            %r331, %r304, %r308, %r160;\n\
    and.b32             %r332, %r331, 0xC0C0C0C0;\n\
    lop3.b32            %r333, %r330, 0x3C3C3C3C, %r332, 0xEA;\n\
    ld.shared.v4.f32    {%f76, %f77, %f78, %f79}, [%r168+2560];\n\
    mov.b32             %r334, %f79;\n\
    dp4a.u32.s32        %r335, %r333, %r315, %r334;\n\
    dp4a.u32.s32        %r336, %r328, %r316, %r335;\n\
    dp4a.u32.s32        %r337, %r323, %r317, %r336;\n\
    dp4a.u32.s32        %r338, %r314, %r318, %r337;\n\
    mov.b32             %f80, %r338;\n\
    sub.f32             %f81, %f80, 0f4B400000;\n\
    ld.global.nc.s8     %r339, [%rd24+3556];\n\
    cvt.rn.f32.s32      %f82, %r339;\n\
    mul.f32             %f83, %f82, %f73;\n\
    ld.global.nc.v4.u32 {%r340, %r341, %r342, %r343}, [%rd25+3360];\n\
    ld.global.nc.v4.u32 {%r344, %r345, %r346, %r347}, [%rd25+3376];\n\
    prmt.b32            %r348, %r343, %r347, %r154;\n\
    shr.u32             %r349, %r348, 4;\n\
    and.b32             %r350, %r312, 0x30303030;\n\
    lop3.b32            %r351, %r349, 0x0F0F0F0F, %r350, 0xEA;\n\
    ld.shared.v4.s32    {%r352, %r353, %r354, %r355}, [%r168+1024];\n\
    prmt.b32            %r356, %r342, %r346, %r156;\n\
    shr.u32             %r357, %r356, 4;\n\
    and.b32             %r358, %r321, 0x30303030;\n\
    lop3.b32            %r359, %r357, 0x0F0F0F0F, %r358, 0xEA;\n\
    prmt.b32            %r360, %r341, %r345, %r158;\n\
    shr.u32             %r361, %r360, 4;\n\
    and.b32             %r362, %r326, 0x30303030;\n\
    lop3.b32            %r363, %r361, 0x0F0F0F0F, %r362, 0xEA;\n\
    prmt.b32            %r364, %r340, %r344, %r160;\n\
    shr.u32             %r365, %r364, 4;\n\
    and.b32             %r366, %r331, 0x30303030;\n\
    lop3.b32            %r367, %r365, 0x0F0F0F0F, %r366, 0xEA;\n\
    mov.b32             %r368, %f78;\n\
    dp4a.u32.s32        %r369, %r367, %r352, %r368;\n\
    dp4a.u32.s32        %r370, %r363, %r353, %r369;\n\
    dp4a.u32.s32        %r371, %r359, %r354, %r370;\n\
    dp4a.u32.s32        %r372, %r351, %r355, %r371;\n\
    mov.b32             %f84, %r372;\n\
    sub.f32             %f85, %f84, 0f4B400000;\n\
    ld.global.nc.s8     %r373, [%rd24+3554];\n\
    cvt.rn.f32.s32      %f86, %r373;\n\
    mul.f32             %f87, %f86, %f72;\n\
    shl.b32             %r374, %r312, 2;\n\
    and.b32             %r375, %r374, 0x30303030;\n\
    lop3.b32            %r376, %r302, 0x0F0F0F0F, %r375, 0xEA;\n\
    ld.shared.v4.s32    {%r377, %r378, %r379, %r380}, [%r168+512];\n\
    shl.b32             %r381, %r321, 2;\n\
    and.b32             %r382, %r381, 0x30303030;\n\
    lop3.b32            %r383, %r319, 0x0F0F0F0F, %r382, 0xEA;\n\
    shl.b32             %r384, %r326, 2;\n\
    and.b32             %r385, %r384, 0x30303030;\n\
    lop3.b32            %r386, %r324, 0x0F0F0F0F, %r385, 0xEA;\n\
    shl.b32             %r387, %r331, 2;\n\
    and.b32             %r388, %r387, 0x30303030;\n\
    lop3.b32            %r389, %r329, 0x0F0F0F0F, %r388, 0xEA;\n\
    mov.b32             %r390, %f77;\n\
    dp4a.u32.s32        %r391, %r389, %r377, %r390;\n\
    dp4a.u32.s32        %r392, %r386, %r378, %r391;\n\
    dp4a.u32.s32        %r393, %r383, %r379, %r392;\n\
    dp4a.u32.s32        %r394, %r376, %r380, %r393;\n\
    mov.b32             %f88, %r394;\n\
    sub.f32             %f89, %f88, 0f4B400000;\n\
    ld.global.nc.s8     %r395, [%rd24+3552];\n\
    cvt.rn.f32.s32      %f90, %r395;\n\
    mul.f32             %f91, %f90, %f71;\n\
    shl.b32             %r396, %r312, 4;\n\
    and.b32             %r397, %r396, 0x30303030;\n\
    lop3.b32            %r398, %r348, 0x0F0F0F0F, %r397, 0xEA;\n\
    ld.shared.v4.s32    {%r399, %r400, %r401, %r402}, [%r168];\n\
    shl.b32             %r403, %r321, 4;\n\
    and.b32             %r404, %r403, 0x30303030;\n\
    lop3.b32            %r405, %r356, 0x0F0F0F0F, %r404, 0xEA;\n\
    shl.b32             %r406, %r326, 4;\n\
    and.b32             %r407, %r406, 0x30303030;\n\
    lop3.b32            %r408, %r360, 0x0F0F0F0F, %r407, 0xEA;\n\
    shl.b32             %r409, %r331, 4;\n\
    and.b32             %r410, %r409, 0x30303030;\n\
    lop3.b32            %r411, %r364, 0x0F0F0F0F, %r410, 0xEA;\n\
    mov.b32             %r412, %f76;\n\
    dp4a.u32.s32        %r413, %r411, %r399, %r412;\n\
    dp4a.u32.s32        %r414, %r408, %r400, %r413;\n\
    dp4a.u32.s32        %r415, %r405, %r401, %r414;\n\
    dp4a.u32.s32        %r416, %r398, %r402, %r415;\n\
    mov.b32             %f92, %r416;\n\
    sub.f32             %f93, %f92, 0f4B400000;\n\
    mul.f32             %f94, %f91, %f93;\n\
    fma.rn.f32          %f95, %f87, %f89, %f94;\n\
    fma.rn.f32          %f96, %f83, %f85, %f95;\n\
    fma.rn.f32          %f97, %f75, %f81, %f96;\n\
    fma.rn.f32          %f39, %f69, %f97, %f39;\n\
    add.u32             %r167, %r167, 1;\n\
    setp.lt.u32         %p9, %r167, 2;\n\
    @%p9 bra            $turn_loop;\n\
\n\
    // reduce and store\n\
"
"\
    shr.u32             %r417, %r5, 4;\n\
    and.b32             %r418, %r5, 15;\n\
    setp.eq.u32         %p10, %r418, 0;\n\
    selp.u32            %r419, %r417, 2, %p10;\n\
    and.b32             %r420, %r5, 16;\n\
    setp.ne.u32         %p11, %r420, 0;\n\
    selp.f32            %f98, %f39, %f38, %p11;\n\
    selp.f32            %f99, %f38, %f39, %p11;\n\
    shfl.sync.bfly.b32  %f100, %f99, 16, 31, 0xFFFFFFFF;\n\
    add.f32             %f101, %f98, %f100;\n\
    shfl.sync.bfly.b32  %f102, %f101, 8, 31, 0xFFFFFFFF;\n\
    add.f32             %f103, %f101, %f102;\n\
    shfl.sync.bfly.b32  %f104, %f103, 4, 31, 0xFFFFFFFF;\n\
    add.f32             %f105, %f103, %f104;\n\
    shfl.sync.bfly.b32  %f106, %f105, 2, 31, 0xFFFFFFFF;\n\
    add.f32             %f107, %f105, %f106;\n\
    shfl.sync.bfly.b32  %f108, %f107, 1, 31, 0xFFFFFFFF;\n\
    add.f32             %f109, %f107, %f108;\n\
    setp.lt.u32         %p12, %r419, 2;\n\
    @!%p12 bra          $skip_2;\n\
    add.u32             %r421, %r161, %r419;\n\
    cvt.u64.u32         %rd31, %r421;\n\
    shl.b64             %rd32, %rd31, 2;\n\
    add.u64             %rd33, %rd1, %rd32;\n\
    st.global.f32       [%rd33], %f109;\n\
\n\
$skip_2:\n\
    add.u32             %r161, %r161, %r9;\n\
    setp.lt.u32         %p13, %r161, 4096;\n\
    @%p13 bra           $row_loop;\n\
\n\
$row_done:\n\
    ret;\n\
}\n\
";
static const ptxgen_param llama_stream_gemv_q6k_k4096_n4096_m1_w8_r2_params[] = {
    { "y", PTXGEN_PARAM_POINTER, PTXGEN_PARAM_OUT, PTXGEN_F32, 16384, "m*n*4", 4 },
    { "w", PTXGEN_PARAM_POINTER, PTXGEN_PARAM_IN, PTXGEN_Q6_K, 13762560, "ceil_div(n*k/256*210, 16)*16", 16 },
    { "x", PTXGEN_PARAM_POINTER, PTXGEN_PARAM_IN, PTXGEN_F32, 16384, "m*k*4", 16 },
};
static const ptxgen_config llama_stream_gemv_q6k_k4096_n4096_m1_w8_r2_config[] = {
    { "weights", 7, 0, "q6_k", 0, 0, 0, 1 },
    { "k", 4096, 0, NULL, 0, 0, 0, 1 },
    { "n", 4096, 0, NULL, 0, 0, 0, 1 },
    { "m", 1, 0, NULL, 0, 0, 0, 1 },
    { "rows", 0, 0, "fixed", 0, 0, 0, 1 },
    { "num_warps", 8, 0, NULL, 0, 0, 0, 1 },
    { "rows_per_warp", 2, 0, NULL, 0, 0, 0, 1 },
    { "passes", 0, 0, NULL, 0, 0, 0, 1 },
    { "scaled", 0, 0, "none", 0, 0, 0, 1 },
    { "bias", 0, 0, "none", 0, 0, 0, 1 },
    { "scale", 0, 0, NULL, 0, 0, 0, 1 },
    { "residual", 0, 0, "none", 0, 0, 0, 1 },
    { "norm", 0, 0, "none", 0, 0, 0, 1 },
    { "epsilon", 0, 1e-5, NULL, 0, 0, 0, 1 },
    { "softcap", 0, 0, NULL, 0, 0, 0, 1 },
    { "next", 0, 0, NULL, 0, 0, 0, 1 },
};
const ptxgen_kernel llama_stream_gemv_q6k_k4096_n4096_m1_w8_r2 = {
    "stream_gemv_q6k_k4096_n4096_m1_w8_r2", "stream_gemv_q6k_k4096_n4096_m1_w8_r2",
    llama_stream_gemv_q6k_k4096_n4096_m1_w8_r2_ptx, 25221, UINT64_C(0x6d34d76f86e6c47c),
    "stream_gemv", PTXGEN_GEMV, PTXGEN_Q6_K, PTXGEN_F32, PTXGEN_Q8_1,
    80, 70, 0, 0, /* sm, isa, overlaps, specific */
    llama_stream_gemv_q6k_k4096_n4096_m1_w8_r2_params, 3,
    { 256, 1, 1 }, { 0, 0, 0 }, llama_grid_1, /* block, grid, grid_at */
    0, 6144, NULL, 0, /* shared_static, shared_dynamic, shared_at, workspace */
    4096, 4096, 1, /* k, n, m */
    8, 0, 0, 0, 0, /* num_warps, head_dim, num_heads, num_kv_heads, max_seq_len */
    0, 0, /* dynamic_dims, seq_len_indirect */
    llama_stream_gemv_q6k_k4096_n4096_m1_w8_r2_config, 16,
    0, 0, /* registers, blocks_per_sm */
    20, /* preference */
    "gemv", 0, 1, /* chosen_by, chosen_f32, chosen_q8 */
};

static const char llama_stream_gemv_q6k_k4096_n4096_m1_w16_r2_ptx[] = "\
// stream_gemv  weights=q6_k k=4096 n=4096 m=1 num_warps=16 rows_per_warp=2  y[m,n] = x[m,k] W[n,k]^T\n\
// ptxgen 0.1.0  block 512  grid min(128, sm_count*1)\n\
.version 7.8\n\
.target sm_90\n\
.address_size 64\n\
\n\
.extern .shared .align 16 .b32 activations[];\n\
\n\
.visible .entry stream_gemv_q6k_k4096_n4096_m1_w16_r2(\n\
    .param .u64 y,\n\
    .param .u64 w,\n\
    .param .u64 x)\n\
.reqntid 512, 1, 1\n\
.maxnreg 96\n\
{\n\
    .reg .pred  %p<14>;\n\
    .reg .b16   %h<3>;\n\
    .reg .b32   %r<422>;\n\
    .reg .f32   %f<110>;\n\
    .reg .b64   %rd<34>;\n\
\n\
    ld.param.u64        %rd1, [y];\n\
    ld.param.u64        %rd2, [w];\n\
    ld.param.u64        %rd3, [x];\n\
    mov.u32             %r1, %ctaid.x;\n\
    mov.u32             %r2, %tid.x;\n\
    shr.u32             %r3, %r2, 5;                            // warp\n\
    mov.u32             %r4, %nctaid.x;\n\
    and.b32             %r5, %r2, 31;                           // lane\n\
    griddepcontrol.launch_dependents;                           // the next launch may start\n\
\n\
    // fetch the first weights\n\
    mad.lo.u32          %r6, %r1, 16, %r3;\n\
    mul.lo.u32          %r7, %r6, 2;\n\
    mul.lo.u32          %r8, %r4, 16;\n\
    mul.lo.u32          %r9, %r8, 2;\n\
    setp.lt.u32         %p1, %r7, 4096;\n\
    @!%p1 bra           $skip;\n\
    mad.wide.u32        %rd4, %r7, 3360, %rd2;                  // &w[row]\n\
    mad.wide.u32        %rd5, %r5, 128, %rd4;\n\
    prefetch.global.L2  [%rd5];\n\
    min.u32             %r10, %r5, 20;\n\
    mad.wide.u32        %rd6, %r10, 128, %rd4;\n\
    prefetch.global.L2  [%rd6+4096];\n\
\n\
$skip:\n\
    griddepcontrol.wait;                                        // those ahead are done\n\
\n\
    // stage x\n\
    mov.u32             %r11, %r3;                              // first\n\
    setp.lt.u32         %p2, %r11, 8;\n\
    @!%p2 bra           $first_done;\n\
\n\
$first_loop:\n\
    .pragma \"nounroll\";\n\
    mad.lo.u32          %r12, %r11, 32, %r5;\n\
    and.b32             %r13, %r12, 0x7F;\n\
    shr.u32             %r14, %r13, 1;\n\
    and.b32             %r15, %r14, 3;\n\
    shr.u32             %r16, %r12, 7;\n\
    mov.u32             %r17, activations;                      // activations\n\
    mad.lo.u32          %r18, %r16, 3072, %r17;\n\
    shr.u32             %r19, %r13, 2;\n\
    shr.u32             %r20, %r19, 1;\n\
    mul.lo.u32          %r21, %r20, 2;\n\
    and.b32             %r22, %r13, 1;\n\
    add.u32             %r23, %r21, %r22;\n\
    mad.lo.u32          %r24, %r11, 32, %r5;\n\
    mad.wide.u32        %rd7, %r24, 64, %rd3;\n\
    ld.global.v4.f32    {%f1, %f2, %f3, %f4}, [%rd7];\n\
    mov.b32             %r25, %f1;\n\
    and.b32             %r26, %r25, 0x7FFFFFFF;\n\
    max.u32             %r27, %r26, 228737632;\n\
    mov.b32             %r28, %f2;\n\
    and.b32             %r29, %r28, 0x7FFFFFFF;\n\
    max.u32             %r30, %r27, %r29;\n\
    mov.b32             %r31, %f3;\n\
    and.b32             %r32, %r31, 0x7FFFFFFF;\n\
    max.u32             %r33, %r30, %r32;\n\
    mov.b32             %r34, %f4;\n\
    and.b32             %r35, %r34, 0x7FFFFFFF;\n\
    max.u32             %r36, %r33, %r35;\n\
    ld.global.v4.f32    {%f5, %f6, %f7, %f8}, [%rd7+16];\n\
    mov.b32             %r37, %f5;\n\
    and.b32             %r38, %r37, 0x7FFFFFFF;\n\
    max.u32             %r39, %r36, %r38;\n\
    mov.b32             %r40, %f6;\n\
    and.b32             %r41, %r40, 0x7FFFFFFF;\n\
    max.u32             %r42, %r39, %r41;\n\
    mov.b32             %r43, %f7;\n\
    and.b32             %r44, %r43, 0x7FFFFFFF;\n\
    max.u32             %r45, %r42, %r44;\n\
    mov.b32             %r46, %f8;\n\
    and.b32             %r47, %r46, 0x7FFFFFFF;\n\
    max.u32             %r48, %r45, %r47;\n\
    ld.global.v4.f32    {%f9, %f10, %f11, %f12}, [%rd7+32];\n\
    mov.b32             %r49, %f9;\n\
    and.b32             %r50, %r49, 0x7FFFFFFF;\n\
    max.u32             %r51, %r48, %r50;\n\
    mov.b32             %r52, %f10;\n\
    and.b32             %r53, %r52, 0x7FFFFFFF;\n\
    max.u32             %r54, %r51, %r53;\n\
    mov.b32             %r55, %f11;\n\
    and.b32             %r56, %r55, 0x7FFFFFFF;\n\
    max.u32             %r57, %r54, %r56;\n\
    mov.b32             %r58, %f12;\n\
    and.b32             %r59, %r58, 0x7FFFFFFF;\n\
    max.u32             %r60, %r57, %r59;\n\
    ld.global.v4.f32    {%f13, %f14, %f15, %f16}, [%rd7+48];\n\
    mov.b32             %r61, %f13;\n\
    and.b32             %r62, %r61, 0x7FFFFFFF;\n\
    max.u32             %r63, %r60, %r62;\n\
    mov.b32             %r64, %f14;\n\
    and.b32             %r65, %r64, 0x7FFFFFFF;\n\
    max.u32             %r66, %r63, %r65;\n\
    mov.b32             %r67, %f15;\n\
    and.b32             %r68, %r67, 0x7FFFFFFF;\n\
    max.u32             %r69, %r66, %r68;\n\
    mov.b32             %r70, %f16;\n\
    and.b32             %r71, %r70, 0x7FFFFFFF;\n\
    max.u32             %r72, %r69, %r71;\n\
    shfl.sync.bfly.b32  %r73, %r72, 1, 31, 0xFFFFFFFF;\n\
    max.u32             %r74, %r72, %r73;\n\
    mov.b32             %f17, %r74;\n\
    mul.f32             %f18, %f17, 0f3C010204;\n\
    rcp.approx.ftz.f32  %f19, %f18;\n\
    fma.rn.f32          %f20, %f13, %f19, 0f4B400000;\n\
    mov.b32             %r75, %f20;\n\
    fma.rn.f32          %f21, %f14, %f19, 0f4B400000;\n\
    mov.b32             %r76, %f21;\n\
    prmt.b32            %r77, %r75, %r76, 64;\n\
    fma.rn.f32          %f22, %f15, %f19, 0f4B400000;\n\
    mov.b32             %r78, %f22;\n\
    fma.rn.f32          %f23, %f16, %f19, 0f4B400000;\n\
    mov.b32             %r79, %f23;\n\
    prmt.b32            %r80, %r78, %r79, 64;\n\
    prmt.b32            %r81, %r77, %r80, 0x5410;\n\
    fma.rn.f32          %f24, %f9, %f19, 0f4B400000;\n\
    mov.b32             %r82, %f24;\n\
    fma.rn.f32          %f25, %f10, %f19, 0f4B400000;\n\
    mov.b32             %r83, %f25;\n\
    prmt.b32            %r84, %r82, %r83, 64;\n\
    fma.rn.f32          %f26, %f11, %f19, 0f4B400000;\n\
    mov.b32             %r85, %f26;\n\
    fma.rn.f32          %f27, %f12, %f19, 0f4B400000;\n\
    mov.b32             %r86, %f27;\n\
    prmt.b32            %r87, %r85, %r86, 64;\n\
    prmt.b32            %r88, %r84, %r87, 0x5410;\n\
    fma.rn.f32          %f28, %f5, %f19, 0f4B400000;\n\
    mov.b32             %r89, %f28;\n\
    fma.rn.f32          %f29, %f6, %f19, 0f4B400000;\n\
    mov.b32             %r90, %f29;\n\
    prmt.b32            %r91, %r89, %r90, 64;\n\
    fma.rn.f32          %f30, %f7, %f19, 0f4B400000;\n\
    mov.b32             %r92, %f30;\n\
    fma.rn.f32          %f31, %f8, %f19, 0f4B400000;\n\
    mov.b32             %r93, %f31;\n\
    prmt.b32            %r94, %r92, %r93, 64;\n\
    prmt.b32            %r95, %r91, %r94, 0x5410;\n\
    fma.rn.f32          %f32, %f1, %f19, 0f4B400000;\n\
    mov.b32             %r96, %f32;\n\
    fma.rn.f32          %f33, %f2, %f19, 0f4B400000;\n\
    mov.b32             %r97, %f33;\n\
    prmt.b32            %r98, %r96, %r97, 64;\n\
    fma.rn.f32          %f34, %f3, %f19, 0f4B400000;\n\
    mov.b32             %r99, %f34;\n\
    fma.rn.f32          %f35, %f4, %f19, 0f4B400000;\n\
    mov.b32             %r100, %f35;\n\
    prmt.b32            %r101, %r99, %r100, 64;\n\
    prmt.b32            %r102, %r98, %r101, 0x5410;\n\
    dp4a.u32.s32        %r103, 0x01010101, %r102, 0;\n\
    dp4a.u32.s32        %r104, 0x01010101, %r95, %r103;\n\
    dp4a.u32.s32        %r105, 0x01010101, %r88, %r104;\n\
    dp4a.u32.s32        %r106, 0x01010101, %r81, %r105;\n\
    setp.eq.u32         %p3, %r15, 3;\n\
    selp.s32            %r107, -128, -32, %p3;\n\
    mad.lo.s32          %r108, %r106, %r107, 1262485504;\n\
    shr.u32             %r109, %r23, 2;\n\
    mul.lo.u32          %r110, %r109, 210;\n\
    and.b32             %r111, %r23, 3;\n\
    shr.u32             %r112, %r111, 1;\n\
    and.b32             %r113, %r111, 1;\n\
    mul.lo.u32          %r114, %r113, 16;\n\
    mad.lo.u32          %r115, %r112, 64, %r114;\n\
    add.u32             %r116, %r110, %r115;\n\
    and.b32             %r117, %r116, 15;\n\
    sub.u32             %r118, 16, %r117;\n\
    and.b32             %r119, %r118, 15;\n\
    and.b32             %r120, %r119, 8;\n\
    setp.ne.u32         %p4, %r120, 0;\n\
    selp.s32            %r121, %r81, %r95, %p4;\n\
    selp.s32            %r122, %r88, %r102, %p4;\n\
    and.b32             %r123, %r119, 4;\n\
    setp.ne.u32         %p5, %r123, 0;\n\
"
"\
    selp.s32            %r124, %r121, %r122, %p5;\n\
    selp.s32            %r125, %r102, %r88, %p4;\n\
    selp.s32            %r126, %r125, %r121, %p5;\n\
    and.b32             %r127, %r119, 3;\n\
    mad.lo.u32          %r128, %r127, 4369, 12816;\n\
    prmt.b32            %r129, %r124, %r126, %r128;\n\
    selp.s32            %r130, %r95, %r81, %p4;\n\
    selp.s32            %r131, %r130, %r125, %p5;\n\
    prmt.b32            %r132, %r126, %r131, %r128;\n\
    selp.s32            %r133, %r122, %r130, %p5;\n\
    prmt.b32            %r134, %r131, %r133, %r128;\n\
    prmt.b32            %r135, %r133, %r124, %r128;\n\
    mad.lo.u32          %r136, %r15, 512, %r18;\n\
    mad.lo.u32          %r137, %r23, 16, %r136;\n\
    st.shared.v4.s32    [%r137], {%r129, %r132, %r134, %r135};\n\
    mad.lo.u32          %r138, %r15, 4, %r18;\n\
    mad.lo.u32          %r139, %r23, 16, %r138;\n\
    setp.eq.u32         %p6, %r15, 3;\n\
    selp.f32            %f36, 0f3E800000, 0f3F800000, %p6;\n\
    mul.f32             %f37, %f18, %f36;\n\
    mov.b32             %r140, %f37;\n\
    st.shared.u32       [%r139+2048], %r140;\n\
    st.shared.u32       [%r139+2560], %r108;\n\
    add.u32             %r11, %r11, 16;\n\
    setp.lt.u32         %p7, %r11, 8;\n\
    @%p7 bra            $first_loop;\n\
\n\
$first_done:\n\
    bar.sync            0;\n\
\n\
    // stream weights\n\
    shr.u32             %r141, %r5, 2;\n\
    and.b32             %r142, %r5, 3;\n\
    shr.u32             %r143, %r142, 1;\n\
    and.b32             %r144, %r142, 1;\n\
    mul.lo.u32          %r145, %r144, 16;\n\
    mad.lo.u32          %r146, %r143, 64, %r145;\n\
    mov.u32             %r147, activations;                     // activations\n\
    mad.lo.u32          %r148, %r5, 16, %r147;\n\
    mul.lo.u32          %r149, %r141, 210;\n\
    add.u32             %r150, %r149, %r146;\n\
    and.b32             %r151, %r150, 15;\n\
    mul.lo.u32          %r152, %r151, 4;\n\
    shl.b64             %rd8, 1, %r152;\n\
    sub.u64             %rd9, %rd8, 1;\n\
    shr.u64             %rd10, %rd9, 48;\n\
    cvt.u32.u64         %r153, %rd10;\n\
    lop3.b32            %r154, %r153, 0x4444, 0x3210, 0xEA;\n\
    shr.u64             %rd11, %rd9, 32;\n\
    cvt.u32.u64         %r155, %rd11;\n\
    lop3.b32            %r156, %r155, 0x4444, 0x3210, 0xEA;\n\
    shr.u64             %rd12, %rd9, 16;\n\
    cvt.u32.u64         %r157, %rd12;\n\
    lop3.b32            %r158, %r157, 0x4444, 0x3210, 0xEA;\n\
    cvt.u32.u64         %r159, %rd9;\n\
    lop3.b32            %r160, %r159, 0x4444, 0x3210, 0xEA;\n\
    mov.u32             %r161, %r7;                             // row\n\
    setp.lt.u32         %p8, %r161, 4096;\n\
    @!%p8 bra           $row_done;\n\
\n\
$row_loop:\n\
    .pragma \"nounroll\";\n\
    mad.wide.u32        %rd13, %r161, 3360, %rd2;               // &w[row]\n\
    mov.f32             %f38, 0f00000000;\n\
    mov.f32             %f39, 0f00000000;\n\
    mad.wide.u32        %rd14, %r141, 210, %rd13;\n\
    shr.u32             %r162, %r142, 1;\n\
    and.b32             %r163, %r142, 1;\n\
    mad.lo.u32          %r164, %r162, 8, %r163;\n\
    cvt.u64.u32         %rd15, %r164;\n\
    add.u64             %rd16, %rd14, %rd15;\n\
    cvt.u64.u32         %rd17, %r146;\n\
    add.u64             %rd18, %rd14, %rd17;\n\
    and.b64             %rd19, %rd18, 0xFFFFFFFFFFFFFFF0;\n\
    mul.lo.u32          %r165, %r162, 32;\n\
    sub.u32             %r166, 128, %r165;\n\
    cvt.u64.u32         %rd20, %r166;\n\
    add.u64             %rd21, %rd19, %rd20;\n\
    mov.u32             %r167, 0;                               // turn\n\
\n\
$turn_loop:                                                     // 128 weights a lane\n\
    .pragma \"nounroll\";\n\
    mul.wide.u32        %rd22, %r167, 1680;\n\
    add.u64             %rd23, %rd14, %rd22;\n\
    add.u64             %rd24, %rd16, %rd22;\n\
    mad.lo.u32          %r168, %r167, 3072, %r148;\n\
    add.u64             %rd25, %rd19, %rd22;\n\
    add.u64             %rd26, %rd21, %rd22;\n\
    add.u64             %rd27, %rd14, %rd22;\n\
    ld.global.nc.b16    %h1, [%rd27+208];\n\
    cvt.f32.f16         %f40, %h1;\n\
    add.u64             %rd28, %rd16, %rd22;\n\
    ld.global.nc.s8     %r169, [%rd28+198];\n\
    cvt.rn.f32.s32      %f41, %r169;\n\
    ld.shared.v4.f32    {%f42, %f43, %f44, %f45}, [%r168+2048];\n\
    mul.f32             %f46, %f41, %f45;\n\
    add.u64             %rd29, %rd19, %rd22;\n\
    ld.global.nc.v4.u32 {%r170, %r171, %r172, %r173}, [%rd29+32];\n\
    ld.global.nc.v4.u32 {%r174, %r175, %r176, %r177}, [%rd29+48];\n\
    prmt.b32            %r178, %r173, %r177, %r154;\n\
    shr.u32             %r179, %r178, 2;\n\
    add.u64             %rd30, %rd21, %rd22;\n\
    ld.global.nc.v4.u32 {%r180, %r181, %r182, %r183}, [%rd30];\n\
    ld.global.nc.v4.u32 {%r184, %r185, %r186, %r187}, [%rd30+16];\n\
    prmt.b32            %r188, %r183, %r187, %r154;\n\
    and.b32             %r189, %r188, 0xC0C0C0C0;\n\
    lop3.b32            %r190, %r179, 0x3C3C3C3C, %r189, 0xEA;\n\
    ld.shared.v4.s32    {%r191, %r192, %r193, %r194}, [%r168+1536];\n\
    prmt.b32            %r195, %r172, %r176, %r156;\n\
    shr.u32             %r196, %r195, 2;\n\
    prmt.b32            %r197, %r182, %r186, %r156;\n\
    and.b32             %r198, %r197, 0xC0C0C0C0;\n\
    lop3.b32            %r199, %r196, 0x3C3C3C3C, %r198, 0xEA;\n\
    prmt.b32            %r200, %r171, %r175, %r158;\n\
    shr.u32             %r201, %r200, 2;\n\
    prmt.b32            %r202, %r181, %r185, %r158;\n\
    and.b32             %r203, %r202, 0xC0C0C0C0;\n\
    lop3.b32            %r204, %r201, 0x3C3C3C3C, %r203, 0xEA;\n\
    prmt.b32            %r205, %r170, %r174, %r160;\n\
    shr.u32             %r206, %r205, 2;\n\
    prmt.b32            %r207, %r180, %r184, %r160;\n\
    and.b32             %r208, %r207, 0xC0C0C0C0;\n\
    lop3.b32            %r209, %r206, 0x3C3C3C3C, %r208, 0xEA;\n\
    ld.shared.v4.f32    {%f47, %f48, %f49, %f50}, [%r168+2560];\n\
    mov.b32             %r210, %f50;\n\
    dp4a.u32.s32        %r211, %r209, %r191, %r210;\n\
    dp4a.u32.s32        %r212, %r204, %r192, %r211;\n\
    dp4a.u32.s32        %r213, %r199, %r193, %r212;\n\
    dp4a.u32.s32        %r214, %r190, %r194, %r213;\n\
    mov.b32             %f51, %r214;\n\
    sub.f32             %f52, %f51, 0f4B400000;\n\
    ld.global.nc.s8     %r215, [%rd28+196];\n\
    cvt.rn.f32.s32      %f53, %r215;\n\
    mul.f32             %f54, %f53, %f44;\n\
    ld.global.nc.v4.u32 {%r216, %r217, %r218, %r219}, [%rd29];\n\
    ld.global.nc.v4.u32 {%r220, %r221, %r222, %r223}, [%rd29+16];\n\
    prmt.b32            %r224, %r219, %r223, %r154;\n\
    shr.u32             %r225, %r224, 4;\n\
    and.b32             %r226, %r188, 0x30303030;\n\
    lop3.b32            %r227, %r225, 0x0F0F0F0F, %r226, 0xEA;\n\
    ld.shared.v4.s32    {%r228, %r229, %r230, %r231}, [%r168+1024];\n\
    prmt.b32            %r232, %r218, %r222, %r156;\n\
    shr.u32             %r233, %r232, 4;\n\
    and.b32             %r234, %r197, 0x30303030;\n\
    lop3.b32            %r235, %r233, 0x0F0F0F0F, %r234, 0xEA;\n\
    prmt.b32            %r236, %r217, %r221, %r158;\n\
    shr.u32             %r237, %r236, 4;\n\
    and.b32             %r238, %r202, 0x30303030;\n\
    lop3.b32            %r239, %r237, 0x0F0F0F0F, %r238, 0xEA;\n\
    prmt.b32            %r240, %r216, %r220, %r160;\n\
    shr.u32             %r241, %r240, 4;\n\
    and.b32             %r242, %r207, 0x30303030;\n\
    lop3.b32            %r243, %r241, 0x0F0F0F0F, %r242, 0xEA;\n\
    mov.b32             %r244, %f49;\n\
    dp4a.u32.s32        %r245, %r243, %r228, %r244;\n\
    dp4a.u32.s32        %r246, %r239, %r229, %r245;\n\
    dp4a.u32.s32        %r247, %r235, %r230, %r246;\n\
    dp4a.u32.s32        %r248, %r227, %r231, %r247;\n\
    mov.b32             %f55, %r248;\n\
    sub.f32             %f56, %f55, 0f4B400000;\n\
    ld.global.nc.s8     %r249, [%rd28+194];\n\
    cvt.rn.f32.s32      %f57, %r249;\n\
    mul.f32             %f58, %f57, %f43;\n\
    shl.b32             %r250, %r188, 2;\n\
    and.b32             %r251, %r250, 0x30303030;\n\
    lop3.b32            %r252, %r178, 0x0F0F0F0F, %r251, 0xEA;\n\
    ld.shared.v4.s32    {%r253, %r254, %r255, %r256}, [%r168+512];\n\
    shl.b32             %r257, %r197, 2;\n\
    and.b32             %r258, %r257, 0x30303030;\n\
    lop3.b32            %r259, %r195, 0x0F0F0F0F, %r258, 0xEA;\n\
"
"\
    shl.b32             %r260, %r202, 2;\n\
    and.b32             %r261, %r260, 0x30303030;\n\
    lop3.b32            %r262, %r200, 0x0F0F0F0F, %r261, 0xEA;\n\
    shl.b32             %r263, %r207, 2;\n\
    and.b32             %r264, %r263, 0x30303030;\n\
    lop3.b32            %r265, %r205, 0x0F0F0F0F, %r264, 0xEA;\n\
    mov.b32             %r266, %f48;\n\
    dp4a.u32.s32        %r267, %r265, %r253, %r266;\n\
    dp4a.u32.s32        %r268, %r262, %r254, %r267;\n\
    dp4a.u32.s32        %r269, %r259, %r255, %r268;\n\
    dp4a.u32.s32        %r270, %r252, %r256, %r269;\n\
    mov.b32             %f59, %r270;\n\
    sub.f32             %f60, %f59, 0f4B400000;\n\
    ld.global.nc.s8     %r271, [%rd28+192];\n\
    cvt.rn.f32.s32      %f61, %r271;\n\
    mul.f32             %f62, %f61, %f42;\n\
    shl.b32             %r272, %r188, 4;\n\
    and.b32             %r273, %r272, 0x30303030;\n\
    lop3.b32            %r274, %r224, 0x0F0F0F0F, %r273, 0xEA;\n\
    ld.shared.v4.s32    {%r275, %r276, %r277, %r278}, [%r168];\n\
    shl.b32             %r279, %r197, 4;\n\
    and.b32             %r280, %r279, 0x30303030;\n\
    lop3.b32            %r281, %r232, 0x0F0F0F0F, %r280, 0xEA;\n\
    shl.b32             %r282, %r202, 4;\n\
    and.b32             %r283, %r282, 0x30303030;\n\
    lop3.b32            %r284, %r236, 0x0F0F0F0F, %r283, 0xEA;\n\
    shl.b32             %r285, %r207, 4;\n\
    and.b32             %r286, %r285, 0x30303030;\n\
    lop3.b32            %r287, %r240, 0x0F0F0F0F, %r286, 0xEA;\n\
    mov.b32             %r288, %f47;\n\
    dp4a.u32.s32        %r289, %r287, %r275, %r288;\n\
    dp4a.u32.s32        %r290, %r284, %r276, %r289;\n\
    dp4a.u32.s32        %r291, %r281, %r277, %r290;\n\
    dp4a.u32.s32        %r292, %r274, %r278, %r291;\n\
    mov.b32             %f63, %r292;\n\
    sub.f32             %f64, %f63, 0f4B400000;\n\
    mul.f32             %f65, %f62, %f64;\n\
    fma.rn.f32          %f66, %f58, %f60, %f65;\n\
    fma.rn.f32          %f67, %f54, %f56, %f66;\n\
    fma.rn.f32          %f68, %f46, %f52, %f67;\n\
    fma.rn.f32          %f38, %f40, %f68, %f38;\n\
    ld.global.nc.b16    %h2, [%rd23+3568];\n\
    cvt.f32.f16         %f69, %h2;\n\
    ld.global.nc.s8     %r293, [%rd24+3558];\n\
    cvt.rn.f32.s32      %f70, %r293;\n\
    ld.shared.v4.f32    {%f71, %f72, %f73, %f74}, [%r168+2048];\n\
    mul.f32             %f75, %f70, %f74;\n\
    ld.global.nc.v4.u32 {%r294, %r295, %r296, %r297}, [%rd25+3392];\n\
    ld.global.nc.v4.u32 {%r298, %r299, %r300, %r301}, [%rd25+3408];\n\
    prmt.b32            %r302, %r297, %r301, %r154;\n\
    shr.u32             %r303, %r302, 2;\n\
    ld.global.nc.v4.u32 {%r304, %r305, %r306, %r307}, [%rd26+3360];\n\
    ld.global.nc.v4.u32 {%r308, %r309, %r310, %r311}, [%rd26+3376];\n\
    prmt.b32            %r312, %r307, %r311, %r154;\n\
    and.b32             %r313, %r312, 0xC0C0C0C0;\n\
    lop3.b32            %r314, %r303, 0x3C3C3C3C, %r313, 0xEA;\n\
    ld.shared.v4.s32    {%r315, %r316, %r317, %r318}, [%r168+1536];\n\
    prmt.b32            %r319, %r296, %r300, %r156;\n\
    shr.u32             %r320, %r319, 2;\n\
    prmt.b32            %r321, %r306, %r310, %r156;\n\
    and.b32             %r322, %r321, 0xC0C0C0C0;\n\
    lop3.b32            %r323, %r320, 0x3C3C3C3C, %r322, 0xEA;\n\
    prmt.b32            %r324, %r295, %r299, %r158;\n\
    shr.u32             %r325, %r324, 2;\n\
    prmt.b32            %r326, %r305, %r309, %r158;\n\
    and.b32             %r327, %r326, 0xC0C0C0C0;\n\
    lop3.b32            %r328, %r325, 0x3C3C3C3C, %r327, 0xEA;\n\
    prmt.b32            %r329, %r294, %r298, %r160;\n\
    shr.u32             %r330, %r329, 2;\n\
    prmt.b32            %r331, %r304, %r308, %r160;\n\
    and.b32             %r332, %r331, 0xC0C0C0C0;\n\
    lop3.b32            %r333, %r330, 0x3C3C3C3C, %r332, 0xEA;\n\
    ld.shared.v4.f32    {%f76, %f77, %f78, %f79}, [%r168+2560];\n\
    mov.b32             %r334, %f79;\n\
    dp4a.u32.s32        %r335, %r333, %r315, %r334;\n\
    dp4a.u32.s32        %r336, %r328, %r316, %r335;\n\
    dp4a.u32.s32        %r337, %r323, %r317, %r336;\n\
    dp4a.u32.s32        %r338, %r314, %r318, %r337;\n\
    mov.b32             %f80, %r338;\n\
    sub.f32             %f81, %f80, 0f4B400000;\n\
    ld.global.nc.s8     %r339, [%rd24+3556];\n\
    cvt.rn.f32.s32      %f82, %r339;\n\
    mul.f32             %f83, %f82, %f73;\n\
    ld.global.nc.v4.u32 {%r340, %r341, %r342, %r343}, [%rd25+3360];\n\
    ld.global.nc.v4.u32 {%r344, %r345, %r346, %r347}, [%rd25+3376];\n\
    prmt.b32            %r348, %r343, %r347, %r154;\n\
    shr.u32             %r349, %r348, 4;\n\
    and.b32             %r350, %r312, 0x30303030;\n\
    lop3.b32            %r351, %r349, 0x0F0F0F0F, %r350, 0xEA;\n\
    ld.shared.v4.s32    {%r352, %r353, %r354, %r355}, [%r168+1024];\n\
    prmt.b32            %r356, %r342, %r346, %r156;\n\
    shr.u32             %r357, %r356, 4;\n\
    and.b32             %r358, %r321, 0x30303030;\n\
    lop3.b32            %r359, %r357, 0x0F0F0F0F, %r358, 0xEA;\n\
    prmt.b32            %r360, %r341, %r345, %r158;\n\
    shr.u32             %r361, %r360, 4;\n\
    and.b32             %r362, %r326, 0x30303030;\n\
    lop3.b32            %r363, %r361, 0x0F0F0F0F, %r362, 0xEA;\n\
    prmt.b32            %r364, %r340, %r344, %r160;\n\
    shr.u32             %r365, %r364, 4;\n\
    and.b32             %r366, %r331, 0x30303030;\n\
    lop3.b32            %r367, %r365, 0x0F0F0F0F, %r366, 0xEA;\n\
    mov.b32             %r368, %f78;\n\
    dp4a.u32.s32        %r369, %r367, %r352, %r368;\n\
    dp4a.u32.s32        %r370, %r363, %r353, %r369;\n\
    dp4a.u32.s32        %r371, %r359, %r354, %r370;\n\
    dp4a.u32.s32        %r372, %r351, %r355, %r371;\n\
    mov.b32             %f84, %r372;\n\
    sub.f32             %f85, %f84, 0f4B400000;\n\
    ld.global.nc.s8     %r373, [%rd24+3554];\n\
    cvt.rn.f32.s32      %f86, %r373;\n\
    mul.f32             %f87, %f86, %f72;\n\
    shl.b32             %r374, %r312, 2;\n\
    and.b32             %r375, %r374, 0x30303030;\n\
    lop3.b32            %r376, %r302, 0x0F0F0F0F, %r375, 0xEA;\n\
    ld.shared.v4.s32    {%r377, %r378, %r379, %r380}, [%r168+512];\n\
    shl.b32             %r381, %r321, 2;\n\
    and.b32             %r382, %r381, 0x30303030;\n\
    lop3.b32            %r383, %r319, 0x0F0F0F0F, %r382, 0xEA;\n\
    shl.b32             %r384, %r326, 2;\n\
    and.b32             %r385, %r384, 0x30303030;\n\
    lop3.b32            %r386, %r324, 0x0F0F0F0F, %r385, 0xEA;\n\
    shl.b32             %r387, %r331, 2;\n\
    and.b32             %r388, %r387, 0x30303030;\n\
    lop3.b32            %r389, %r329, 0x0F0F0F0F, %r388, 0xEA;\n\
    mov.b32             %r390, %f77;\n\
    dp4a.u32.s32        %r391, %r389, %r377, %r390;\n\
    dp4a.u32.s32        %r392, %r386, %r378, %r391;\n\
    dp4a.u32.s32        %r393, %r383, %r379, %r392;\n\
    dp4a.u32.s32        %r394, %r376, %r380, %r393;\n\
    mov.b32             %f88, %r394;\n\
    sub.f32             %f89, %f88, 0f4B400000;\n\
    ld.global.nc.s8     %r395, [%rd24+3552];\n\
    cvt.rn.f32.s32      %f90, %r395;\n\
    mul.f32             %f91, %f90, %f71;\n\
    shl.b32             %r396, %r312, 4;\n\
    and.b32             %r397, %r396, 0x30303030;\n\
    lop3.b32            %r398, %r348, 0x0F0F0F0F, %r397, 0xEA;\n\
    ld.shared.v4.s32    {%r399, %r400, %r401, %r402}, [%r168];\n\
    shl.b32             %r403, %r321, 4;\n\
    and.b32             %r404, %r403, 0x30303030;\n\
    lop3.b32            %r405, %r356, 0x0F0F0F0F, %r404, 0xEA;\n\
    shl.b32             %r406, %r326, 4;\n\
    and.b32             %r407, %r406, 0x30303030;\n\
    lop3.b32            %r408, %r360, 0x0F0F0F0F, %r407, 0xEA;\n\
    shl.b32             %r409, %r331, 4;\n\
    and.b32             %r410, %r409, 0x30303030;\n\
    lop3.b32            %r411, %r364, 0x0F0F0F0F, %r410, 0xEA;\n\
    mov.b32             %r412, %f76;\n\
    dp4a.u32.s32        %r413, %r411, %r399, %r412;\n\
    dp4a.u32.s32        %r414, %r408, %r400, %r413;\n\
    dp4a.u32.s32        %r415, %r405, %r401, %r414;\n\
    dp4a.u32.s32        %r416, %r398, %r402, %r415;\n\
    mov.b32             %f92, %r416;\n\
    sub.f32             %f93, %f92, 0f4B400000;\n\
    mul.f32             %f94, %f91, %f93;\n\
    fma.rn.f32          %f95, %f87, %f89, %f94;\n\
    fma.rn.f32          %f96, %f83, %f85, %f95;\n\
    fma.rn.f32          %f97, %f75, %f81, %f96;\n\
"
"\
    fma.rn.f32          %f39, %f69, %f97, %f39;\n\
    add.u32             %r167, %r167, 1;\n\
    setp.lt.u32         %p9, %r167, 2;\n\
    @%p9 bra            $turn_loop;\n\
\n\
    // reduce and store\n\
    shr.u32             %r417, %r5, 4;\n\
    and.b32             %r418, %r5, 15;\n\
    setp.eq.u32         %p10, %r418, 0;\n\
    selp.u32            %r419, %r417, 2, %p10;\n\
    and.b32             %r420, %r5, 16;\n\
    setp.ne.u32         %p11, %r420, 0;\n\
    selp.f32            %f98, %f39, %f38, %p11;\n\
    selp.f32            %f99, %f38, %f39, %p11;\n\
    shfl.sync.bfly.b32  %f100, %f99, 16, 31, 0xFFFFFFFF;\n\
    add.f32             %f101, %f98, %f100;\n\
    shfl.sync.bfly.b32  %f102, %f101, 8, 31, 0xFFFFFFFF;\n\
    add.f32             %f103, %f101, %f102;\n\
    shfl.sync.bfly.b32  %f104, %f103, 4, 31, 0xFFFFFFFF;\n\
    add.f32             %f105, %f103, %f104;\n\
    shfl.sync.bfly.b32  %f106, %f105, 2, 31, 0xFFFFFFFF;\n\
    add.f32             %f107, %f105, %f106;\n\
    shfl.sync.bfly.b32  %f108, %f107, 1, 31, 0xFFFFFFFF;\n\
    add.f32             %f109, %f107, %f108;\n\
    setp.lt.u32         %p12, %r419, 2;\n\
    @!%p12 bra          $skip_2;\n\
    add.u32             %r421, %r161, %r419;\n\
    cvt.u64.u32         %rd31, %r421;\n\
    shl.b64             %rd32, %rd31, 2;\n\
    add.u64             %rd33, %rd1, %rd32;\n\
    st.global.f32       [%rd33], %f109;\n\
\n\
$skip_2:\n\
    add.u32             %r161, %r161, %r9;\n\
    setp.lt.u32         %p13, %r161, 4096;\n\
    @%p13 bra           $row_loop;\n\
\n\
$row_done:\n\
    ret;\n\
}\n\
";
static const ptxgen_param llama_stream_gemv_q6k_k4096_n4096_m1_w16_r2_params[] = {
    { "y", PTXGEN_PARAM_POINTER, PTXGEN_PARAM_OUT, PTXGEN_F32, 16384, "m*n*4", 4 },
    { "w", PTXGEN_PARAM_POINTER, PTXGEN_PARAM_IN, PTXGEN_Q6_K, 13762560, "ceil_div(n*k/256*210, 16)*16", 16 },
    { "x", PTXGEN_PARAM_POINTER, PTXGEN_PARAM_IN, PTXGEN_F32, 16384, "m*k*4", 16 },
};
static const ptxgen_config llama_stream_gemv_q6k_k4096_n4096_m1_w16_r2_config[] = {
    { "weights", 7, 0, "q6_k", 0, 0, 0, 1 },
    { "k", 4096, 0, NULL, 0, 0, 0, 1 },
    { "n", 4096, 0, NULL, 0, 0, 0, 1 },
    { "m", 1, 0, NULL, 0, 0, 0, 1 },
    { "rows", 0, 0, "fixed", 0, 0, 0, 1 },
    { "num_warps", 16, 0, NULL, 0, 0, 0, 1 },
    { "rows_per_warp", 2, 0, NULL, 0, 0, 0, 1 },
    { "passes", 0, 0, NULL, 0, 0, 0, 1 },
    { "scaled", 0, 0, "none", 0, 0, 0, 1 },
    { "bias", 0, 0, "none", 0, 0, 0, 1 },
    { "scale", 0, 0, NULL, 0, 0, 0, 1 },
    { "residual", 0, 0, "none", 0, 0, 0, 1 },
    { "norm", 0, 0, "none", 0, 0, 0, 1 },
    { "epsilon", 0, 1e-5, NULL, 0, 0, 0, 1 },
    { "softcap", 0, 0, NULL, 0, 0, 0, 1 },
    { "next", 0, 0, NULL, 0, 0, 0, 1 },
};
const ptxgen_kernel llama_stream_gemv_q6k_k4096_n4096_m1_w16_r2 = {
    "stream_gemv_q6k_k4096_n4096_m1_w16_r2", "stream_gemv_q6k_k4096_n4096_m1_w16_r2",
    llama_stream_gemv_q6k_k4096_n4096_m1_w16_r2_ptx, 25407, UINT64_C(0x244a1ed19d099e14),
    "stream_gemv", PTXGEN_GEMV, PTXGEN_Q6_K, PTXGEN_F32, PTXGEN_Q8_1,
    90, 78, 1, 0, /* sm, isa, overlaps, specific */
    llama_stream_gemv_q6k_k4096_n4096_m1_w16_r2_params, 3,
    { 512, 1, 1 }, { 0, 0, 0 }, llama_grid_2, /* block, grid, grid_at */
    0, 6144, NULL, 0, /* shared_static, shared_dynamic, shared_at, workspace */
    4096, 4096, 1, /* k, n, m */
    16, 0, 0, 0, 0, /* num_warps, head_dim, num_heads, num_kv_heads, max_seq_len */
    0, 0, /* dynamic_dims, seq_len_indirect */
    llama_stream_gemv_q6k_k4096_n4096_m1_w16_r2_config, 16,
    0, 0, /* registers, blocks_per_sm */
    20, /* preference */
    "gemv", 0, 1, /* chosen_by, chosen_f32, chosen_q8 */
};

static const char llama_stream_gemv_q8_0_k4096_n4096_m1_w12_r2_ptx[] = "\
// stream_gemv  weights=q8_0 k=4096 n=4096 m=1 num_warps=12 rows_per_warp=2  y[m,n] = x[m,k] W[n,k]^T\n\
// ptxgen 0.1.0  block 384  grid min(171, sm_count*2)\n\
.version 6.3\n\
.target sm_75\n\
.address_size 64\n\
\n\
.extern .shared .align 16 .b32 activations[];\n\
\n\
.visible .entry stream_gemv_q8_0_k4096_n4096_m1_w12_r2(\n\
    .param .u64 y,\n\
    .param .u64 w,\n\
    .param .u64 x)\n\
.reqntid 384, 1, 1\n\
.maxnreg 80\n\
{\n\
    .reg .pred  %p<13>;\n\
    .reg .b16   %h<3>;\n\
    .reg .b32   %r<228>;\n\
    .reg .f32   %f<62>;\n\
    .reg .b64   %rd<28>;\n\
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
    // fetch the first weights\n\
    mad.lo.u32          %r6, %r1, 12, %r3;\n\
    mul.lo.u32          %r7, %r6, 2;\n\
    mul.lo.u32          %r8, %r4, 12;\n\
    mul.lo.u32          %r9, %r8, 2;\n\
    setp.lt.u32         %p1, %r7, 4096;\n\
    @!%p1 bra           $skip;\n\
    min.u32             %r10, %r5, 6;\n\
    mad.wide.u32        %rd4, %r7, 4352, %rd2;                  // &w[row]\n\
    mad.wide.u32        %rd5, %r10, 128, %rd4;\n\
    prefetch.global.L2  [%rd5];\n\
    min.u32             %r11, %r5, 6;\n\
    add.u32             %r12, %r7, 1;\n\
    mad.wide.u32        %rd6, %r12, 4352, %rd2;                 // &w[row]\n\
    mad.wide.u32        %rd7, %r11, 128, %rd6;\n\
    prefetch.global.L2  [%rd7];\n\
\n\
$skip:\n\
\n\
    // stage x\n\
    mov.u32             %r13, %r3;                              // first\n\
    setp.lt.u32         %p2, %r13, 8;\n\
    @!%p2 bra           $first_done;\n\
\n\
$first_loop:\n\
    .pragma \"nounroll\";\n\
    mad.lo.u32          %r14, %r13, 32, %r5;\n\
    mad.wide.u32        %rd8, %r14, 64, %rd3;\n\
    ld.global.nc.v4.f32 {%f1, %f2, %f3, %f4}, [%rd8];\n\
    mov.b32             %r15, %f1;\n\
    and.b32             %r16, %r15, 0x7FFFFFFF;\n\
    max.u32             %r17, %r16, 228737632;\n\
    mov.b32             %r18, %f2;\n\
    and.b32             %r19, %r18, 0x7FFFFFFF;\n\
    max.u32             %r20, %r17, %r19;\n\
    mov.b32             %r21, %f3;\n\
    and.b32             %r22, %r21, 0x7FFFFFFF;\n\
    max.u32             %r23, %r20, %r22;\n\
    mov.b32             %r24, %f4;\n\
    and.b32             %r25, %r24, 0x7FFFFFFF;\n\
    max.u32             %r26, %r23, %r25;\n\
    ld.global.nc.v4.f32 {%f5, %f6, %f7, %f8}, [%rd8+16];\n\
    mov.b32             %r27, %f5;\n\
    and.b32             %r28, %r27, 0x7FFFFFFF;\n\
    max.u32             %r29, %r26, %r28;\n\
    mov.b32             %r30, %f6;\n\
    and.b32             %r31, %r30, 0x7FFFFFFF;\n\
    max.u32             %r32, %r29, %r31;\n\
    mov.b32             %r33, %f7;\n\
    and.b32             %r34, %r33, 0x7FFFFFFF;\n\
    max.u32             %r35, %r32, %r34;\n\
    mov.b32             %r36, %f8;\n\
    and.b32             %r37, %r36, 0x7FFFFFFF;\n\
    max.u32             %r38, %r35, %r37;\n\
    ld.global.nc.v4.f32 {%f9, %f10, %f11, %f12}, [%rd8+32];\n\
    mov.b32             %r39, %f9;\n\
    and.b32             %r40, %r39, 0x7FFFFFFF;\n\
    max.u32             %r41, %r38, %r40;\n\
    mov.b32             %r42, %f10;\n\
    and.b32             %r43, %r42, 0x7FFFFFFF;\n\
    max.u32             %r44, %r41, %r43;\n\
    mov.b32             %r45, %f11;\n\
    and.b32             %r46, %r45, 0x7FFFFFFF;\n\
    max.u32             %r47, %r44, %r46;\n\
    mov.b32             %r48, %f12;\n\
    and.b32             %r49, %r48, 0x7FFFFFFF;\n\
    max.u32             %r50, %r47, %r49;\n\
    ld.global.nc.v4.f32 {%f13, %f14, %f15, %f16}, [%rd8+48];\n\
    mov.b32             %r51, %f13;\n\
    and.b32             %r52, %r51, 0x7FFFFFFF;\n\
    max.u32             %r53, %r50, %r52;\n\
    mov.b32             %r54, %f14;\n\
    and.b32             %r55, %r54, 0x7FFFFFFF;\n\
    max.u32             %r56, %r53, %r55;\n\
    mov.b32             %r57, %f15;\n\
    and.b32             %r58, %r57, 0x7FFFFFFF;\n\
    max.u32             %r59, %r56, %r58;\n\
    mov.b32             %r60, %f16;\n\
    and.b32             %r61, %r60, 0x7FFFFFFF;\n\
    max.u32             %r62, %r59, %r61;\n\
    shfl.sync.bfly.b32  %r63, %r62, 1, 31, 0xFFFFFFFF;\n\
    max.u32             %r64, %r62, %r63;\n\
    mov.b32             %f17, %r64;\n\
    mul.f32             %f18, %f17, 0f3C010204;\n\
    mad.lo.u32          %r65, %r13, 32, %r5;\n\
    and.b32             %r66, %r65, 63;\n\
    and.b32             %r67, %r66, 1;\n\
    mov.b32             %r68, %f18;\n\
    shr.u32             %r69, %r65, 6;\n\
    mov.u32             %r70, activations;                      // activations\n\
    mad.lo.u32          %r71, %r69, 1280, %r70;\n\
    shr.u32             %r72, %r66, 1;\n\
    rcp.approx.ftz.f32  %f19, %f18;\n\
    fma.rn.f32          %f20, %f13, %f19, 0f4B400000;\n\
    mov.b32             %r73, %f20;\n\
    fma.rn.f32          %f21, %f14, %f19, 0f4B400000;\n\
    mov.b32             %r74, %f21;\n\
    prmt.b32            %r75, %r73, %r74, 64;\n\
    fma.rn.f32          %f22, %f15, %f19, 0f4B400000;\n\
    mov.b32             %r76, %f22;\n\
    fma.rn.f32          %f23, %f16, %f19, 0f4B400000;\n\
    mov.b32             %r77, %f23;\n\
    prmt.b32            %r78, %r76, %r77, 64;\n\
    prmt.b32            %r79, %r75, %r78, 0x5410;\n\
    fma.rn.f32          %f24, %f5, %f19, 0f4B400000;\n\
    mov.b32             %r80, %f24;\n\
    fma.rn.f32          %f25, %f6, %f19, 0f4B400000;\n\
    mov.b32             %r81, %f25;\n\
    prmt.b32            %r82, %r80, %r81, 64;\n\
    fma.rn.f32          %f26, %f7, %f19, 0f4B400000;\n\
    mov.b32             %r83, %f26;\n\
    fma.rn.f32          %f27, %f8, %f19, 0f4B400000;\n\
    mov.b32             %r84, %f27;\n\
    prmt.b32            %r85, %r83, %r84, 64;\n\
    prmt.b32            %r86, %r82, %r85, 0x5410;\n\
    mul.lo.u32          %r87, %r72, 34;\n\
    add.u32             %r88, %r87, 2;\n\
    and.b32             %r89, %r88, 15;\n\
    sub.u32             %r90, 16, %r89;\n\
    and.b32             %r91, %r90, 15;\n\
    and.b32             %r92, %r91, 8;\n\
    setp.ne.u32         %p3, %r92, 0;\n\
    selp.s32            %r93, %r79, %r86, %p3;\n\
    fma.rn.f32          %f28, %f9, %f19, 0f4B400000;\n\
    mov.b32             %r94, %f28;\n\
    fma.rn.f32          %f29, %f10, %f19, 0f4B400000;\n\
    mov.b32             %r95, %f29;\n\
    prmt.b32            %r96, %r94, %r95, 64;\n\
    fma.rn.f32          %f30, %f11, %f19, 0f4B400000;\n\
    mov.b32             %r97, %f30;\n\
    fma.rn.f32          %f31, %f12, %f19, 0f4B400000;\n\
    mov.b32             %r98, %f31;\n\
    prmt.b32            %r99, %r97, %r98, 64;\n\
    prmt.b32            %r100, %r96, %r99, 0x5410;\n\
    fma.rn.f32          %f32, %f1, %f19, 0f4B400000;\n\
    mov.b32             %r101, %f32;\n\
    fma.rn.f32          %f33, %f2, %f19, 0f4B400000;\n\
    mov.b32             %r102, %f33;\n\
    prmt.b32            %r103, %r101, %r102, 64;\n\
    fma.rn.f32          %f34, %f3, %f19, 0f4B400000;\n\
    mov.b32             %r104, %f34;\n\
    fma.rn.f32          %f35, %f4, %f19, 0f4B400000;\n\
    mov.b32             %r105, %f35;\n\
    prmt.b32            %r106, %r104, %r105, 64;\n\
    prmt.b32            %r107, %r103, %r106, 0x5410;\n\
    selp.s32            %r108, %r100, %r107, %p3;\n\
    and.b32             %r109, %r91, 4;\n\
    setp.ne.u32         %p4, %r109, 0;\n\
    selp.s32            %r110, %r93, %r108, %p4;\n\
    selp.s32            %r111, %r107, %r100, %p3;\n\
    selp.s32            %r112, %r111, %r93, %p4;\n\
    and.b32             %r113, %r91, 3;\n\
    mad.lo.u32          %r114, %r113, 4369, 12816;\n\
    prmt.b32            %r115, %r110, %r112, %r114;\n\
    selp.s32            %r116, %r86, %r79, %p3;\n\
    selp.s32            %r117, %r116, %r111, %p4;\n\
    prmt.b32            %r118, %r112, %r117, %r114;\n\
    selp.s32            %r119, %r108, %r116, %p4;\n\
    prmt.b32            %r120, %r117, %r119, %r114;\n\
    prmt.b32            %r121, %r119, %r110, %r114;\n\
    mad.lo.u32          %r122, %r67, 512, %r71;\n\
    mad.lo.u32          %r123, %r72, 16, %r122;\n\
    st.shared.v4.s32    [%r123], {%r115, %r118, %r120, %r121};\n\
    mov.b32             %r124, %f18;\n\
    setp.eq.u32         %p5, %r67, 0;\n\
"
"\
    selp.u32            %r125, %r124, %r68, %p5;\n\
    mad.lo.u32          %r126, %r67, 4, %r71;\n\
    mad.lo.u32          %r127, %r72, 8, %r126;\n\
    st.shared.u32       [%r127+1024], %r125;\n\
    add.u32             %r13, %r13, 12;\n\
    setp.lt.u32         %p6, %r13, 8;\n\
    @%p6 bra            $first_loop;\n\
\n\
$first_done:\n\
    bar.sync            0;\n\
\n\
    // stream weights\n\
    mov.u32             %r128, activations;                     // activations\n\
    mad.lo.u32          %r129, %r5, 8, %r128;\n\
    mov.u32             %r130, activations;                     // activations\n\
    mad.lo.u32          %r131, %r5, 16, %r130;\n\
    mul.lo.u32          %r132, %r5, 34;\n\
    add.u32             %r133, %r132, 2;\n\
    and.b32             %r134, %r133, 15;\n\
    sub.u32             %r135, %r134, 1;\n\
    and.b32             %r136, %r135, 15;\n\
    add.u32             %r137, %r136, 1;\n\
    mul.lo.u32          %r138, %r137, 4;\n\
    shl.b64             %rd9, 1, %r138;\n\
    sub.u64             %rd10, %rd9, 1;\n\
    shr.u64             %rd11, %rd10, 48;\n\
    cvt.u32.u64         %r139, %rd11;\n\
    lop3.b32            %r140, %r139, 0x4444, 0x3210, 0xEA;\n\
    shr.u64             %rd12, %rd10, 32;\n\
    cvt.u32.u64         %r141, %rd12;\n\
    lop3.b32            %r142, %r141, 0x4444, 0x3210, 0xEA;\n\
    shr.u64             %rd13, %rd10, 16;\n\
    cvt.u32.u64         %r143, %rd13;\n\
    lop3.b32            %r144, %r143, 0x4444, 0x3210, 0xEA;\n\
    cvt.u32.u64         %r145, %rd10;\n\
    lop3.b32            %r146, %r145, 0x4444, 0x3210, 0xEA;\n\
    mov.u32             %r147, %r7;                             // row\n\
    setp.lt.u32         %p7, %r147, 4096;\n\
    @!%p7 bra           $row_done;\n\
\n\
$row_loop:\n\
    .pragma \"nounroll\";\n\
    mad.wide.u32        %rd14, %r147, 4352, %rd2;               // &w[row]\n\
    mov.f32             %f36, 0f00000000;\n\
    mov.f32             %f37, 0f00000000;\n\
    mad.wide.u32        %rd15, %r5, 34, %rd14;\n\
    cvt.u64.u32         %rd16, 2;\n\
    add.u64             %rd17, %rd15, %rd16;\n\
    sub.u64             %rd18, %rd17, 1;\n\
    and.b64             %rd19, %rd18, 0xFFFFFFFFFFFFFFF0;\n\
    mov.u32             %r148, 0;                               // turn\n\
\n\
$turn_loop:                                                     // 64 weights a lane\n\
    .pragma \"nounroll\";\n\
    mul.wide.u32        %rd20, %r148, 1088;\n\
    add.u64             %rd21, %rd15, %rd20;\n\
    mad.lo.u32          %r149, %r148, 1280, %r129;\n\
    add.u64             %rd22, %rd19, %rd20;\n\
    mad.lo.u32          %r150, %r148, 1280, %r131;\n\
    add.u64             %rd23, %rd15, %rd20;\n\
    ld.global.nc.b16    %h1, [%rd23];\n\
    cvt.f32.f16         %f38, %h1;\n\
    ld.shared.v2.f32    {%f39, %f40}, [%r149+1024];\n\
    add.u64             %rd24, %rd19, %rd20;\n\
    ld.global.nc.v4.u32 {%r151, %r152, %r153, %r154}, [%rd24+16];\n\
    ld.global.nc.v4.u32 {%r155, %r156, %r157, %r158}, [%rd24+32];\n\
    prmt.b32            %r159, %r154, %r158, %r140;\n\
    ld.shared.v4.s32    {%r160, %r161, %r162, %r163}, [%r150+512];\n\
    prmt.b32            %r164, %r153, %r157, %r142;\n\
    prmt.b32            %r165, %r152, %r156, %r144;\n\
    prmt.b32            %r166, %r151, %r155, %r146;\n\
    ld.global.nc.v4.u32 {%r167, %r168, %r169, %r170}, [%rd24];\n\
    prmt.b32            %r171, %r170, %r154, %r140;\n\
    ld.shared.v4.s32    {%r172, %r173, %r174, %r175}, [%r150];\n\
    prmt.b32            %r176, %r169, %r153, %r142;\n\
    prmt.b32            %r177, %r168, %r152, %r144;\n\
    prmt.b32            %r178, %r167, %r151, %r146;\n\
    dp4a.s32.s32        %r179, %r178, %r172, 1262485504;\n\
    dp4a.s32.s32        %r180, %r177, %r173, %r179;\n\
    dp4a.s32.s32        %r181, %r176, %r174, %r180;\n\
    dp4a.s32.s32        %r182, %r171, %r175, %r181;\n\
    dp4a.s32.s32        %r183, %r166, %r160, %r182;\n\
    dp4a.s32.s32        %r184, %r165, %r161, %r183;\n\
    dp4a.s32.s32        %r185, %r164, %r162, %r184;\n\
    dp4a.s32.s32        %r186, %r159, %r163, %r185;\n\
    mov.b32             %f41, %r186;\n\
    sub.f32             %f42, %f41, 0f4B400000;\n\
    mul.f32             %f43, %f39, %f42;\n\
    fma.rn.f32          %f36, %f38, %f43, %f36;\n\
    ld.global.nc.b16    %h2, [%rd21+4352];\n\
    cvt.f32.f16         %f44, %h2;\n\
    ld.shared.v2.f32    {%f45, %f46}, [%r149+1024];\n\
    ld.global.nc.v4.u32 {%r187, %r188, %r189, %r190}, [%rd22+4368];\n\
    ld.global.nc.v4.u32 {%r191, %r192, %r193, %r194}, [%rd22+4384];\n\
    prmt.b32            %r195, %r190, %r194, %r140;\n\
    ld.shared.v4.s32    {%r196, %r197, %r198, %r199}, [%r150+512];\n\
    prmt.b32            %r200, %r189, %r193, %r142;\n\
    prmt.b32            %r201, %r188, %r192, %r144;\n\
    prmt.b32            %r202, %r187, %r191, %r146;\n\
    ld.global.nc.v4.u32 {%r203, %r204, %r205, %r206}, [%rd22+4352];\n\
    prmt.b32            %r207, %r206, %r190, %r140;\n\
    ld.shared.v4.s32    {%r208, %r209, %r210, %r211}, [%r150];\n\
    prmt.b32            %r212, %r205, %r189, %r142;\n\
    prmt.b32            %r213, %r204, %r188, %r144;\n\
    prmt.b32            %r214, %r203, %r187, %r146;\n\
    dp4a.s32.s32        %r215, %r214, %r208, 1262485504;\n\
    dp4a.s32.s32        %r216, %r213, %r209, %r215;\n\
    dp4a.s32.s32        %r217, %r212, %r210, %r216;\n\
    dp4a.s32.s32        %r218, %r207, %r211, %r217;\n\
    dp4a.s32.s32        %r219, %r202, %r196, %r218;\n\
    dp4a.s32.s32        %r220, %r201, %r197, %r219;\n\
    dp4a.s32.s32        %r221, %r200, %r198, %r220;\n\
    dp4a.s32.s32        %r222, %r195, %r199, %r221;\n\
    mov.b32             %f47, %r222;\n\
    sub.f32             %f48, %f47, 0f4B400000;\n\
    mul.f32             %f49, %f45, %f48;\n\
    fma.rn.f32          %f37, %f44, %f49, %f37;\n\
    add.u32             %r148, %r148, 1;\n\
    setp.lt.u32         %p8, %r148, 4;\n\
    @%p8 bra            $turn_loop;\n\
\n\
    // reduce and store\n\
    shr.u32             %r223, %r5, 4;\n\
    and.b32             %r224, %r5, 15;\n\
    setp.eq.u32         %p9, %r224, 0;\n\
    selp.u32            %r225, %r223, 2, %p9;\n\
    and.b32             %r226, %r5, 16;\n\
    setp.ne.u32         %p10, %r226, 0;\n\
    selp.f32            %f50, %f37, %f36, %p10;\n\
    selp.f32            %f51, %f36, %f37, %p10;\n\
    shfl.sync.bfly.b32  %f52, %f51, 16, 31, 0xFFFFFFFF;\n\
    add.f32             %f53, %f50, %f52;\n\
    shfl.sync.bfly.b32  %f54, %f53, 8, 31, 0xFFFFFFFF;\n\
    add.f32             %f55, %f53, %f54;\n\
    shfl.sync.bfly.b32  %f56, %f55, 4, 31, 0xFFFFFFFF;\n\
    add.f32             %f57, %f55, %f56;\n\
    shfl.sync.bfly.b32  %f58, %f57, 2, 31, 0xFFFFFFFF;\n\
    add.f32             %f59, %f57, %f58;\n\
    shfl.sync.bfly.b32  %f60, %f59, 1, 31, 0xFFFFFFFF;\n\
    add.f32             %f61, %f59, %f60;\n\
    setp.lt.u32         %p11, %r225, 2;\n\
    @!%p11 bra          $skip_2;\n\
    add.u32             %r227, %r147, %r225;\n\
    cvt.u64.u32         %rd25, %r227;\n\
    shl.b64             %rd26, %rd25, 2;\n\
    add.u64             %rd27, %rd1, %rd26;\n\
    st.global.f32       [%rd27], %f61;\n\
\n\
$skip_2:\n\
    add.u32             %r147, %r147, %r9;\n\
    setp.lt.u32         %p12, %r147, 4096;\n\
    @%p12 bra           $row_loop;\n\
\n\
$row_done:\n\
    ret;\n\
}\n\
";
static const ptxgen_param llama_stream_gemv_q8_0_k4096_n4096_m1_w12_r2_params[] = {
    { "y", PTXGEN_PARAM_POINTER, PTXGEN_PARAM_OUT, PTXGEN_F32, 16384, "m*n*4", 4 },
    { "w", PTXGEN_PARAM_POINTER, PTXGEN_PARAM_IN, PTXGEN_Q8_0, 17825792, "ceil_div(n*k/32*34, 16)*16", 16 },
    { "x", PTXGEN_PARAM_POINTER, PTXGEN_PARAM_IN, PTXGEN_F32, 16384, "m*k*4", 16 },
};
static const ptxgen_config llama_stream_gemv_q8_0_k4096_n4096_m1_w12_r2_config[] = {
    { "weights", 5, 0, "q8_0", 0, 0, 0, 1 },
    { "k", 4096, 0, NULL, 0, 0, 0, 1 },
    { "n", 4096, 0, NULL, 0, 0, 0, 1 },
    { "m", 1, 0, NULL, 0, 0, 0, 1 },
    { "rows", 0, 0, "fixed", 0, 0, 0, 1 },
    { "num_warps", 12, 0, NULL, 0, 0, 0, 1 },
    { "rows_per_warp", 2, 0, NULL, 0, 0, 0, 1 },
    { "passes", 0, 0, NULL, 0, 0, 0, 1 },
    { "scaled", 0, 0, "none", 0, 0, 0, 1 },
    { "bias", 0, 0, "none", 0, 0, 0, 1 },
    { "scale", 0, 0, NULL, 0, 0, 0, 1 },
    { "residual", 0, 0, "none", 0, 0, 0, 1 },
    { "norm", 0, 0, "none", 0, 0, 0, 1 },
    { "epsilon", 0, 1e-5, NULL, 0, 0, 0, 1 },
    { "softcap", 0, 0, NULL, 0, 0, 0, 1 },
    { "next", 0, 0, NULL, 0, 0, 0, 1 },
};
const ptxgen_kernel llama_stream_gemv_q8_0_k4096_n4096_m1_w12_r2 = {
    "stream_gemv_q8_0_k4096_n4096_m1_w12_r2", "stream_gemv_q8_0_k4096_n4096_m1_w12_r2",
    llama_stream_gemv_q8_0_k4096_n4096_m1_w12_r2_ptx, 14900, UINT64_C(0x694d28105639847f),
    "stream_gemv", PTXGEN_GEMV, PTXGEN_Q8_0, PTXGEN_F32, PTXGEN_Q8_1,
    75, 63, 0, 0, /* sm, isa, overlaps, specific */
    llama_stream_gemv_q8_0_k4096_n4096_m1_w12_r2_params, 3,
    { 384, 1, 1 }, { 0, 0, 0 }, llama_grid_3, /* block, grid, grid_at */
    0, 5120, NULL, 0, /* shared_static, shared_dynamic, shared_at, workspace */
    4096, 4096, 1, /* k, n, m */
    12, 0, 0, 0, 0, /* num_warps, head_dim, num_heads, num_kv_heads, max_seq_len */
    0, 0, /* dynamic_dims, seq_len_indirect */
    llama_stream_gemv_q8_0_k4096_n4096_m1_w12_r2_config, 16,
    0, 0, /* registers, blocks_per_sm */
    20, /* preference */
    "gemv", 0, 1, /* chosen_by, chosen_f32, chosen_q8 */
};

static const char llama_stream_gemv_q8_0_k4096_n4096_m1_w16_r2_ptx[] = "\
// stream_gemv  weights=q8_0 k=4096 n=4096 m=1 num_warps=16 rows_per_warp=2  y[m,n] = x[m,k] W[n,k]^T\n\
// ptxgen 0.1.0  block 512  grid min(128, sm_count*1)\n\
.version 7.8\n\
.target sm_90\n\
.address_size 64\n\
\n\
.extern .shared .align 16 .b32 activations[];\n\
\n\
.visible .entry stream_gemv_q8_0_k4096_n4096_m1_w16_r2(\n\
    .param .u64 y,\n\
    .param .u64 w,\n\
    .param .u64 x)\n\
.reqntid 512, 1, 1\n\
.maxnreg 80\n\
{\n\
    .reg .pred  %p<13>;\n\
    .reg .b16   %h<3>;\n\
    .reg .b32   %r<226>;\n\
    .reg .f32   %f<62>;\n\
    .reg .b64   %rd<28>;\n\
\n\
    ld.param.u64        %rd1, [y];\n\
    ld.param.u64        %rd2, [w];\n\
    ld.param.u64        %rd3, [x];\n\
    mov.u32             %r1, %ctaid.x;\n\
    mov.u32             %r2, %tid.x;\n\
    shr.u32             %r3, %r2, 5;                            // warp\n\
    mov.u32             %r4, %nctaid.x;\n\
    and.b32             %r5, %r2, 31;                           // lane\n\
    griddepcontrol.launch_dependents;                           // the next launch may start\n\
\n\
    // fetch the first weights\n\
    mad.lo.u32          %r6, %r1, 16, %r3;\n\
    mul.lo.u32          %r7, %r6, 2;\n\
    mul.lo.u32          %r8, %r4, 16;\n\
    mul.lo.u32          %r9, %r8, 2;\n\
    setp.lt.u32         %p1, %r7, 4096;\n\
    @!%p1 bra           $skip;\n\
    mad.wide.u32        %rd4, %r7, 4352, %rd2;                  // &w[row]\n\
    mad.wide.u32        %rd5, %r5, 128, %rd4;\n\
    prefetch.global.L2  [%rd5];\n\
    add.u32             %r10, %r7, 1;\n\
    mad.wide.u32        %rd6, %r10, 4352, %rd2;                 // &w[row]\n\
    mad.wide.u32        %rd7, %r5, 128, %rd6;\n\
    prefetch.global.L2  [%rd7];\n\
\n\
$skip:\n\
    griddepcontrol.wait;                                        // those ahead are done\n\
\n\
    // stage x\n\
    mov.u32             %r11, %r3;                              // first\n\
    setp.lt.u32         %p2, %r11, 8;\n\
    @!%p2 bra           $first_done;\n\
\n\
$first_loop:\n\
    .pragma \"nounroll\";\n\
    mad.lo.u32          %r12, %r11, 32, %r5;\n\
    mad.wide.u32        %rd8, %r12, 64, %rd3;\n\
    ld.global.v4.f32    {%f1, %f2, %f3, %f4}, [%rd8];\n\
    mov.b32             %r13, %f1;\n\
    and.b32             %r14, %r13, 0x7FFFFFFF;\n\
    max.u32             %r15, %r14, 228737632;\n\
    mov.b32             %r16, %f2;\n\
    and.b32             %r17, %r16, 0x7FFFFFFF;\n\
    max.u32             %r18, %r15, %r17;\n\
    mov.b32             %r19, %f3;\n\
    and.b32             %r20, %r19, 0x7FFFFFFF;\n\
    max.u32             %r21, %r18, %r20;\n\
    mov.b32             %r22, %f4;\n\
    and.b32             %r23, %r22, 0x7FFFFFFF;\n\
    max.u32             %r24, %r21, %r23;\n\
    ld.global.v4.f32    {%f5, %f6, %f7, %f8}, [%rd8+16];\n\
    mov.b32             %r25, %f5;\n\
    and.b32             %r26, %r25, 0x7FFFFFFF;\n\
    max.u32             %r27, %r24, %r26;\n\
    mov.b32             %r28, %f6;\n\
    and.b32             %r29, %r28, 0x7FFFFFFF;\n\
    max.u32             %r30, %r27, %r29;\n\
    mov.b32             %r31, %f7;\n\
    and.b32             %r32, %r31, 0x7FFFFFFF;\n\
    max.u32             %r33, %r30, %r32;\n\
    mov.b32             %r34, %f8;\n\
    and.b32             %r35, %r34, 0x7FFFFFFF;\n\
    max.u32             %r36, %r33, %r35;\n\
    ld.global.v4.f32    {%f9, %f10, %f11, %f12}, [%rd8+32];\n\
    mov.b32             %r37, %f9;\n\
    and.b32             %r38, %r37, 0x7FFFFFFF;\n\
    max.u32             %r39, %r36, %r38;\n\
    mov.b32             %r40, %f10;\n\
    and.b32             %r41, %r40, 0x7FFFFFFF;\n\
    max.u32             %r42, %r39, %r41;\n\
    mov.b32             %r43, %f11;\n\
    and.b32             %r44, %r43, 0x7FFFFFFF;\n\
    max.u32             %r45, %r42, %r44;\n\
    mov.b32             %r46, %f12;\n\
    and.b32             %r47, %r46, 0x7FFFFFFF;\n\
    max.u32             %r48, %r45, %r47;\n\
    ld.global.v4.f32    {%f13, %f14, %f15, %f16}, [%rd8+48];\n\
    mov.b32             %r49, %f13;\n\
    and.b32             %r50, %r49, 0x7FFFFFFF;\n\
    max.u32             %r51, %r48, %r50;\n\
    mov.b32             %r52, %f14;\n\
    and.b32             %r53, %r52, 0x7FFFFFFF;\n\
    max.u32             %r54, %r51, %r53;\n\
    mov.b32             %r55, %f15;\n\
    and.b32             %r56, %r55, 0x7FFFFFFF;\n\
    max.u32             %r57, %r54, %r56;\n\
    mov.b32             %r58, %f16;\n\
    and.b32             %r59, %r58, 0x7FFFFFFF;\n\
    max.u32             %r60, %r57, %r59;\n\
    shfl.sync.bfly.b32  %r61, %r60, 1, 31, 0xFFFFFFFF;\n\
    max.u32             %r62, %r60, %r61;\n\
    mov.b32             %f17, %r62;\n\
    mul.f32             %f18, %f17, 0f3C010204;\n\
    mad.lo.u32          %r63, %r11, 32, %r5;\n\
    and.b32             %r64, %r63, 63;\n\
    and.b32             %r65, %r64, 1;\n\
    mov.b32             %r66, %f18;\n\
    shr.u32             %r67, %r63, 6;\n\
    mov.u32             %r68, activations;                      // activations\n\
    mad.lo.u32          %r69, %r67, 1280, %r68;\n\
    shr.u32             %r70, %r64, 1;\n\
    rcp.approx.ftz.f32  %f19, %f18;\n\
    fma.rn.f32          %f20, %f13, %f19, 0f4B400000;\n\
    mov.b32             %r71, %f20;\n\
    fma.rn.f32          %f21, %f14, %f19, 0f4B400000;\n\
    mov.b32             %r72, %f21;\n\
    prmt.b32            %r73, %r71, %r72, 64;\n\
    fma.rn.f32          %f22, %f15, %f19, 0f4B400000;\n\
    mov.b32             %r74, %f22;\n\
    fma.rn.f32          %f23, %f16, %f19, 0f4B400000;\n\
    mov.b32             %r75, %f23;\n\
    prmt.b32            %r76, %r74, %r75, 64;\n\
    prmt.b32            %r77, %r73, %r76, 0x5410;\n\
    fma.rn.f32          %f24, %f5, %f19, 0f4B400000;\n\
    mov.b32             %r78, %f24;\n\
    fma.rn.f32          %f25, %f6, %f19, 0f4B400000;\n\
    mov.b32             %r79, %f25;\n\
    prmt.b32            %r80, %r78, %r79, 64;\n\
    fma.rn.f32          %f26, %f7, %f19, 0f4B400000;\n\
    mov.b32             %r81, %f26;\n\
    fma.rn.f32          %f27, %f8, %f19, 0f4B400000;\n\
    mov.b32             %r82, %f27;\n\
    prmt.b32            %r83, %r81, %r82, 64;\n\
    prmt.b32            %r84, %r80, %r83, 0x5410;\n\
    mul.lo.u32          %r85, %r70, 34;\n\
    add.u32             %r86, %r85, 2;\n\
    and.b32             %r87, %r86, 15;\n\
    sub.u32             %r88, 16, %r87;\n\
    and.b32             %r89, %r88, 15;\n\
    and.b32             %r90, %r89, 8;\n\
    setp.ne.u32         %p3, %r90, 0;\n\
    selp.s32            %r91, %r77, %r84, %p3;\n\
    fma.rn.f32          %f28, %f9, %f19, 0f4B400000;\n\
    mov.b32             %r92, %f28;\n\
    fma.rn.f32          %f29, %f10, %f19, 0f4B400000;\n\
    mov.b32             %r93, %f29;\n\
    prmt.b32            %r94, %r92, %r93, 64;\n\
    fma.rn.f32          %f30, %f11, %f19, 0f4B400000;\n\
    mov.b32             %r95, %f30;\n\
    fma.rn.f32          %f31, %f12, %f19, 0f4B400000;\n\
    mov.b32             %r96, %f31;\n\
    prmt.b32            %r97, %r95, %r96, 64;\n\
    prmt.b32            %r98, %r94, %r97, 0x5410;\n\
    fma.rn.f32          %f32, %f1, %f19, 0f4B400000;\n\
    mov.b32             %r99, %f32;\n\
    fma.rn.f32          %f33, %f2, %f19, 0f4B400000;\n\
    mov.b32             %r100, %f33;\n\
    prmt.b32            %r101, %r99, %r100, 64;\n\
    fma.rn.f32          %f34, %f3, %f19, 0f4B400000;\n\
    mov.b32             %r102, %f34;\n\
    fma.rn.f32          %f35, %f4, %f19, 0f4B400000;\n\
    mov.b32             %r103, %f35;\n\
    prmt.b32            %r104, %r102, %r103, 64;\n\
    prmt.b32            %r105, %r101, %r104, 0x5410;\n\
    selp.s32            %r106, %r98, %r105, %p3;\n\
    and.b32             %r107, %r89, 4;\n\
    setp.ne.u32         %p4, %r107, 0;\n\
    selp.s32            %r108, %r91, %r106, %p4;\n\
    selp.s32            %r109, %r105, %r98, %p3;\n\
    selp.s32            %r110, %r109, %r91, %p4;\n\
    and.b32             %r111, %r89, 3;\n\
    mad.lo.u32          %r112, %r111, 4369, 12816;\n\
    prmt.b32            %r113, %r108, %r110, %r112;\n\
    selp.s32            %r114, %r84, %r77, %p3;\n\
    selp.s32            %r115, %r114, %r109, %p4;\n\
    prmt.b32            %r116, %r110, %r115, %r112;\n\
    selp.s32            %r117, %r106, %r114, %p4;\n\
    prmt.b32            %r118, %r115, %r117, %r112;\n\
    prmt.b32            %r119, %r117, %r108, %r112;\n\
    mad.lo.u32          %r120, %r65, 512, %r69;\n\
    mad.lo.u32          %r121, %r70, 16, %r120;\n\
"
"\
    st.shared.v4.s32    [%r121], {%r113, %r116, %r118, %r119};\n\
    mov.b32             %r122, %f18;\n\
    setp.eq.u32         %p5, %r65, 0;\n\
    selp.u32            %r123, %r122, %r66, %p5;\n\
    mad.lo.u32          %r124, %r65, 4, %r69;\n\
    mad.lo.u32          %r125, %r70, 8, %r124;\n\
    st.shared.u32       [%r125+1024], %r123;\n\
    add.u32             %r11, %r11, 16;\n\
    setp.lt.u32         %p6, %r11, 8;\n\
    @%p6 bra            $first_loop;\n\
\n\
$first_done:\n\
    bar.sync            0;\n\
\n\
    // stream weights\n\
    mov.u32             %r126, activations;                     // activations\n\
    mad.lo.u32          %r127, %r5, 8, %r126;\n\
    mov.u32             %r128, activations;                     // activations\n\
    mad.lo.u32          %r129, %r5, 16, %r128;\n\
    mul.lo.u32          %r130, %r5, 34;\n\
    add.u32             %r131, %r130, 2;\n\
    and.b32             %r132, %r131, 15;\n\
    sub.u32             %r133, %r132, 1;\n\
    and.b32             %r134, %r133, 15;\n\
    add.u32             %r135, %r134, 1;\n\
    mul.lo.u32          %r136, %r135, 4;\n\
    shl.b64             %rd9, 1, %r136;\n\
    sub.u64             %rd10, %rd9, 1;\n\
    shr.u64             %rd11, %rd10, 48;\n\
    cvt.u32.u64         %r137, %rd11;\n\
    lop3.b32            %r138, %r137, 0x4444, 0x3210, 0xEA;\n\
    shr.u64             %rd12, %rd10, 32;\n\
    cvt.u32.u64         %r139, %rd12;\n\
    lop3.b32            %r140, %r139, 0x4444, 0x3210, 0xEA;\n\
    shr.u64             %rd13, %rd10, 16;\n\
    cvt.u32.u64         %r141, %rd13;\n\
    lop3.b32            %r142, %r141, 0x4444, 0x3210, 0xEA;\n\
    cvt.u32.u64         %r143, %rd10;\n\
    lop3.b32            %r144, %r143, 0x4444, 0x3210, 0xEA;\n\
    mov.u32             %r145, %r7;                             // row\n\
    setp.lt.u32         %p7, %r145, 4096;\n\
    @!%p7 bra           $row_done;\n\
\n\
$row_loop:\n\
    .pragma \"nounroll\";\n\
    mad.wide.u32        %rd14, %r145, 4352, %rd2;               // &w[row]\n\
    mov.f32             %f36, 0f00000000;\n\
    mov.f32             %f37, 0f00000000;\n\
    mad.wide.u32        %rd15, %r5, 34, %rd14;\n\
    cvt.u64.u32         %rd16, 2;\n\
    add.u64             %rd17, %rd15, %rd16;\n\
    sub.u64             %rd18, %rd17, 1;\n\
    and.b64             %rd19, %rd18, 0xFFFFFFFFFFFFFFF0;\n\
    mov.u32             %r146, 0;                               // turn\n\
\n\
$turn_loop:                                                     // 64 weights a lane\n\
    .pragma \"nounroll\";\n\
    mul.wide.u32        %rd20, %r146, 1088;\n\
    add.u64             %rd21, %rd15, %rd20;\n\
    mad.lo.u32          %r147, %r146, 1280, %r127;\n\
    add.u64             %rd22, %rd19, %rd20;\n\
    mad.lo.u32          %r148, %r146, 1280, %r129;\n\
    add.u64             %rd23, %rd15, %rd20;\n\
    ld.global.nc.b16    %h1, [%rd23];\n\
    cvt.f32.f16         %f38, %h1;\n\
    ld.shared.v2.f32    {%f39, %f40}, [%r147+1024];\n\
    add.u64             %rd24, %rd19, %rd20;\n\
    ld.global.nc.v4.u32 {%r149, %r150, %r151, %r152}, [%rd24+16];\n\
    ld.global.nc.v4.u32 {%r153, %r154, %r155, %r156}, [%rd24+32];\n\
    prmt.b32            %r157, %r152, %r156, %r138;\n\
    ld.shared.v4.s32    {%r158, %r159, %r160, %r161}, [%r148+512];\n\
    prmt.b32            %r162, %r151, %r155, %r140;\n\
    prmt.b32            %r163, %r150, %r154, %r142;\n\
    prmt.b32            %r164, %r149, %r153, %r144;\n\
    ld.global.nc.v4.u32 {%r165, %r166, %r167, %r168}, [%rd24];\n\
    prmt.b32            %r169, %r168, %r152, %r138;\n\
    ld.shared.v4.s32    {%r170, %r171, %r172, %r173}, [%r148];\n\
    prmt.b32            %r174, %r167, %r151, %r140;\n\
    prmt.b32            %r175, %r166, %r150, %r142;\n\
    prmt.b32            %r176, %r165, %r149, %r144;\n\
    dp4a.s32.s32        %r177, %r176, %r170, 1262485504;\n\
    dp4a.s32.s32        %r178, %r175, %r171, %r177;\n\
    dp4a.s32.s32        %r179, %r174, %r172, %r178;\n\
    dp4a.s32.s32        %r180, %r169, %r173, %r179;\n\
    dp4a.s32.s32        %r181, %r164, %r158, %r180;\n\
    dp4a.s32.s32        %r182, %r163, %r159, %r181;\n\
    dp4a.s32.s32        %r183, %r162, %r160, %r182;\n\
    dp4a.s32.s32        %r184, %r157, %r161, %r183;\n\
    mov.b32             %f41, %r184;\n\
    sub.f32             %f42, %f41, 0f4B400000;\n\
    mul.f32             %f43, %f39, %f42;\n\
    fma.rn.f32          %f36, %f38, %f43, %f36;\n\
    ld.global.nc.b16    %h2, [%rd21+4352];\n\
    cvt.f32.f16         %f44, %h2;\n\
    ld.shared.v2.f32    {%f45, %f46}, [%r147+1024];\n\
    ld.global.nc.v4.u32 {%r185, %r186, %r187, %r188}, [%rd22+4368];\n\
    ld.global.nc.v4.u32 {%r189, %r190, %r191, %r192}, [%rd22+4384];\n\
    prmt.b32            %r193, %r188, %r192, %r138;\n\
    ld.shared.v4.s32    {%r194, %r195, %r196, %r197}, [%r148+512];\n\
    prmt.b32            %r198, %r187, %r191, %r140;\n\
    prmt.b32            %r199, %r186, %r190, %r142;\n\
    prmt.b32            %r200, %r185, %r189, %r144;\n\
    ld.global.nc.v4.u32 {%r201, %r202, %r203, %r204}, [%rd22+4352];\n\
    prmt.b32            %r205, %r204, %r188, %r138;\n\
    ld.shared.v4.s32    {%r206, %r207, %r208, %r209}, [%r148];\n\
    prmt.b32            %r210, %r203, %r187, %r140;\n\
    prmt.b32            %r211, %r202, %r186, %r142;\n\
    prmt.b32            %r212, %r201, %r185, %r144;\n\
    dp4a.s32.s32        %r213, %r212, %r206, 1262485504;\n\
    dp4a.s32.s32        %r214, %r211, %r207, %r213;\n\
    dp4a.s32.s32        %r215, %r210, %r208, %r214;\n\
    dp4a.s32.s32        %r216, %r205, %r209, %r215;\n\
    dp4a.s32.s32        %r217, %r200, %r194, %r216;\n\
    dp4a.s32.s32        %r218, %r199, %r195, %r217;\n\
    dp4a.s32.s32        %r219, %r198, %r196, %r218;\n\
    dp4a.s32.s32        %r220, %r193, %r197, %r219;\n\
    mov.b32             %f47, %r220;\n\
    sub.f32             %f48, %f47, 0f4B400000;\n\
    mul.f32             %f49, %f45, %f48;\n\
    fma.rn.f32          %f37, %f44, %f49, %f37;\n\
    add.u32             %r146, %r146, 1;\n\
    setp.lt.u32         %p8, %r146, 4;\n\
    @%p8 bra            $turn_loop;\n\
\n\
    // reduce and store\n\
    shr.u32             %r221, %r5, 4;\n\
    and.b32             %r222, %r5, 15;\n\
    setp.eq.u32         %p9, %r222, 0;\n\
    selp.u32            %r223, %r221, 2, %p9;\n\
    and.b32             %r224, %r5, 16;\n\
    setp.ne.u32         %p10, %r224, 0;\n\
    selp.f32            %f50, %f37, %f36, %p10;\n\
    selp.f32            %f51, %f36, %f37, %p10;\n\
    shfl.sync.bfly.b32  %f52, %f51, 16, 31, 0xFFFFFFFF;\n\
    add.f32             %f53, %f50, %f52;\n\
    shfl.sync.bfly.b32  %f54, %f53, 8, 31, 0xFFFFFFFF;\n\
    add.f32             %f55, %f53, %f54;\n\
    shfl.sync.bfly.b32  %f56, %f55, 4, 31, 0xFFFFFFFF;\n\
    add.f32             %f57, %f55, %f56;\n\
    shfl.sync.bfly.b32  %f58, %f57, 2, 31, 0xFFFFFFFF;\n\
    add.f32             %f59, %f57, %f58;\n\
    shfl.sync.bfly.b32  %f60, %f59, 1, 31, 0xFFFFFFFF;\n\
    add.f32             %f61, %f59, %f60;\n\
    setp.lt.u32         %p11, %r223, 2;\n\
    @!%p11 bra          $skip_2;\n\
    add.u32             %r225, %r145, %r223;\n\
    cvt.u64.u32         %rd25, %r225;\n\
    shl.b64             %rd26, %rd25, 2;\n\
    add.u64             %rd27, %rd1, %rd26;\n\
    st.global.f32       [%rd27], %f61;\n\
\n\
$skip_2:\n\
    add.u32             %r145, %r145, %r9;\n\
    setp.lt.u32         %p12, %r145, 4096;\n\
    @%p12 bra           $row_loop;\n\
\n\
$row_done:\n\
    ret;\n\
}\n\
";
static const ptxgen_param llama_stream_gemv_q8_0_k4096_n4096_m1_w16_r2_params[] = {
    { "y", PTXGEN_PARAM_POINTER, PTXGEN_PARAM_OUT, PTXGEN_F32, 16384, "m*n*4", 4 },
    { "w", PTXGEN_PARAM_POINTER, PTXGEN_PARAM_IN, PTXGEN_Q8_0, 17825792, "ceil_div(n*k/32*34, 16)*16", 16 },
    { "x", PTXGEN_PARAM_POINTER, PTXGEN_PARAM_IN, PTXGEN_F32, 16384, "m*k*4", 16 },
};
static const ptxgen_config llama_stream_gemv_q8_0_k4096_n4096_m1_w16_r2_config[] = {
    { "weights", 5, 0, "q8_0", 0, 0, 0, 1 },
    { "k", 4096, 0, NULL, 0, 0, 0, 1 },
    { "n", 4096, 0, NULL, 0, 0, 0, 1 },
    { "m", 1, 0, NULL, 0, 0, 0, 1 },
    { "rows", 0, 0, "fixed", 0, 0, 0, 1 },
    { "num_warps", 16, 0, NULL, 0, 0, 0, 1 },
    { "rows_per_warp", 2, 0, NULL, 0, 0, 0, 1 },
    { "passes", 0, 0, NULL, 0, 0, 0, 1 },
    { "scaled", 0, 0, "none", 0, 0, 0, 1 },
    { "bias", 0, 0, "none", 0, 0, 0, 1 },
    { "scale", 0, 0, NULL, 0, 0, 0, 1 },
    { "residual", 0, 0, "none", 0, 0, 0, 1 },
    { "norm", 0, 0, "none", 0, 0, 0, 1 },
    { "epsilon", 0, 1e-5, NULL, 0, 0, 0, 1 },
    { "softcap", 0, 0, NULL, 0, 0, 0, 1 },
    { "next", 0, 0, NULL, 0, 0, 0, 1 },
};
const ptxgen_kernel llama_stream_gemv_q8_0_k4096_n4096_m1_w16_r2 = {
    "stream_gemv_q8_0_k4096_n4096_m1_w16_r2", "stream_gemv_q8_0_k4096_n4096_m1_w16_r2",
    llama_stream_gemv_q8_0_k4096_n4096_m1_w16_r2_ptx, 14998, UINT64_C(0x1d27b8ee3da130ed),
    "stream_gemv", PTXGEN_GEMV, PTXGEN_Q8_0, PTXGEN_F32, PTXGEN_Q8_1,
    90, 78, 1, 0, /* sm, isa, overlaps, specific */
    llama_stream_gemv_q8_0_k4096_n4096_m1_w16_r2_params, 3,
    { 512, 1, 1 }, { 0, 0, 0 }, llama_grid_2, /* block, grid, grid_at */
    0, 5120, NULL, 0, /* shared_static, shared_dynamic, shared_at, workspace */
    4096, 4096, 1, /* k, n, m */
    16, 0, 0, 0, 0, /* num_warps, head_dim, num_heads, num_kv_heads, max_seq_len */
    0, 0, /* dynamic_dims, seq_len_indirect */
    llama_stream_gemv_q8_0_k4096_n4096_m1_w16_r2_config, 16,
    0, 0, /* registers, blocks_per_sm */
    20, /* preference */
    "gemv", 0, 1, /* chosen_by, chosen_f32, chosen_q8 */
};

static const char llama_q8_1_quantize_k4096_m1_w4_ptx[] = "\
// q8_1_quantize  k=4096 m=1 num_warps=4  q8[m,k] = q8_1(x[m,k])\n\
// ptxgen 0.1.0  block 128  grid 32\n\
.version 6.3\n\
.target sm_75\n\
.address_size 64\n\
\n\
.visible .entry q8_1_quantize_k4096_m1_w4(\n\
    .param .u64 q8,\n\
    .param .u64 x)\n\
.reqntid 128, 1, 1\n\
.maxnreg 32\n\
{\n\
    .reg .pred  %p<6>;\n\
    .reg .b16   %h<3>;\n\
    .reg .b32   %r<33>;\n\
    .reg .f32   %f<11>;\n\
    .reg .b64   %rd<11>;\n\
\n\
    ld.param.u64        %rd1, [q8];\n\
    ld.param.u64        %rd2, [x];\n\
    mov.u32             %r1, %ctaid.x;\n\
    mov.u32             %r2, %tid.x;\n\
    shr.u32             %r3, %r2, 5;                            // warp\n\
    and.b32             %r4, %r2, 31;                           // lane\n\
    mad.lo.u32          %r5, %r1, 4, %r3;                       // block\n\
    setp.ge.u32         %p1, %r5, 128;\n\
    @%p1 ret;\n\
    mul.wide.u32        %rd3, %r5, 32;\n\
    cvt.u64.u32         %rd4, %r4;\n\
    add.u64             %rd5, %rd3, %rd4;\n\
    shl.b64             %rd6, %rd5, 2;\n\
    add.u64             %rd7, %rd2, %rd6;\n\
    ld.global.nc.f32    %f1, [%rd7];\n\
    mov.b32             %r6, %f1;\n\
    and.b32             %r7, %r6, 0x7FFFFFFF;\n\
    shfl.sync.bfly.b32  %r8, %r7, 16, 31, 0xFFFFFFFF;\n\
    max.u32             %r9, %r7, %r8;\n\
    shfl.sync.bfly.b32  %r10, %r9, 8, 31, 0xFFFFFFFF;\n\
    max.u32             %r11, %r9, %r10;\n\
    shfl.sync.bfly.b32  %r12, %r11, 4, 31, 0xFFFFFFFF;\n\
    max.u32             %r13, %r11, %r12;\n\
    shfl.sync.bfly.b32  %r14, %r13, 2, 31, 0xFFFFFFFF;\n\
    max.u32             %r15, %r13, %r14;\n\
    shfl.sync.bfly.b32  %r16, %r15, 1, 31, 0xFFFFFFFF;\n\
    max.u32             %r17, %r15, %r16;\n\
    mov.b32             %f2, %r17;\n\
    div.rn.f32          %f3, %f2, 0f42FE0000;\n\
    mad.wide.u32        %rd8, %r5, 36, %rd1;\n\
    rcp.rn.f32          %f4, %f3;\n\
    setp.eq.f32         %p2, %f3, 0f00000000;\n\
    selp.f32            %f5, 0f00000000, %f4, %p2;\n\
    mul.f32             %f6, %f1, %f5;\n\
    cvt.rzi.s32.f32     %r18, %f6;\n\
    cvt.rn.f32.s32      %f7, %r18;\n\
    sub.f32             %f8, %f6, %f7;\n\
    setp.ge.f32         %p3, %f8, 0f3F000000;\n\
    selp.s32            %r19, 1, 0, %p3;\n\
    add.s32             %r20, %r18, %r19;\n\
    setp.le.f32         %p4, %f8, 0fBF000000;\n\
    selp.s32            %r21, -1, 0, %p4;\n\
    add.s32             %r22, %r20, %r21;\n\
    shfl.sync.bfly.b32  %r23, %r22, 16, 31, 0xFFFFFFFF;\n\
    add.s32             %r24, %r22, %r23;\n\
    shfl.sync.bfly.b32  %r25, %r24, 8, 31, 0xFFFFFFFF;\n\
    add.s32             %r26, %r24, %r25;\n\
    shfl.sync.bfly.b32  %r27, %r26, 4, 31, 0xFFFFFFFF;\n\
    add.s32             %r28, %r26, %r27;\n\
    shfl.sync.bfly.b32  %r29, %r28, 2, 31, 0xFFFFFFFF;\n\
    add.s32             %r30, %r28, %r29;\n\
    shfl.sync.bfly.b32  %r31, %r30, 1, 31, 0xFFFFFFFF;\n\
    add.s32             %r32, %r30, %r31;\n\
    cvt.rn.f32.s32      %f9, %r32;\n\
    mul.f32             %f10, %f9, %f3;\n\
    cvt.u64.u32         %rd9, %r4;\n\
    add.u64             %rd10, %rd8, %rd9;\n\
    st.global.s8        [%rd10+4], %r22;\n\
    setp.eq.u32         %p5, %r4, 0;\n\
    @!%p5 bra           $skip;\n\
    cvt.rn.f16.f32      %h1, %f3;\n\
    st.global.b16       [%rd8], %h1;\n\
    cvt.rn.f16.f32      %h2, %f10;\n\
    st.global.b16       [%rd8+2], %h2;\n\
\n\
$skip:\n\
    ret;\n\
}\n\
";
static const ptxgen_param llama_q8_1_quantize_k4096_m1_w4_params[] = {
    { "q8", PTXGEN_PARAM_POINTER, PTXGEN_PARAM_OUT, PTXGEN_Q8_1, 4608, "m*k/32*36", 4 },
    { "x", PTXGEN_PARAM_POINTER, PTXGEN_PARAM_IN, PTXGEN_F32, 16384, "m*k*4", 4 },
};
static const ptxgen_config llama_q8_1_quantize_k4096_m1_w4_config[] = {
    { "k", 4096, 0, NULL, 0, 0, 0, 1 },
    { "m", 1, 0, NULL, 0, 0, 0, 1 },
    { "rows", 0, 0, "fixed", 0, 0, 0, 1 },
    { "num_warps", 4, 0, NULL, 0, 0, 0, 1 },
    { "dims", 0, 0, "static", 0, 0, 0, 1 },
};
const ptxgen_kernel llama_q8_1_quantize_k4096_m1_w4 = {
    "q8_1_quantize_k4096_m1_w4", "q8_1_quantize_k4096_m1_w4",
    llama_q8_1_quantize_k4096_m1_w4_ptx, 3167, UINT64_C(0x5179cab699deeea6),
    "q8_1_quantize", PTXGEN_QUANTIZE, PTXGEN_NONE, PTXGEN_F32, PTXGEN_F32,
    75, 63, 0, 0, /* sm, isa, overlaps, specific */
    llama_q8_1_quantize_k4096_m1_w4_params, 2,
    { 128, 1, 1 }, { 32, 1, 1 }, NULL, /* block, grid, grid_at */
    0, 0, NULL, 0, /* shared_static, shared_dynamic, shared_at, workspace */
    4096, 0, 1, /* k, n, m */
    4, 0, 0, 0, 0, /* num_warps, head_dim, num_heads, num_kv_heads, max_seq_len */
    0, 0, /* dynamic_dims, seq_len_indirect */
    llama_q8_1_quantize_k4096_m1_w4_config, 5,
    0, 0, /* registers, blocks_per_sm */
    0, /* preference */
    NULL, 0, 0, /* chosen_by, chosen_f32, chosen_q8 */
};

static const char llama_q8_1_quantize_k14336_m1_w4_ptx[] = "\
// q8_1_quantize  k=14336 m=1 num_warps=4  q8[m,k] = q8_1(x[m,k])\n\
// ptxgen 0.1.0  block 128  grid 112\n\
.version 6.3\n\
.target sm_75\n\
.address_size 64\n\
\n\
.visible .entry q8_1_quantize_k14336_m1_w4(\n\
    .param .u64 q8,\n\
    .param .u64 x)\n\
.reqntid 128, 1, 1\n\
.maxnreg 32\n\
{\n\
    .reg .pred  %p<6>;\n\
    .reg .b16   %h<3>;\n\
    .reg .b32   %r<33>;\n\
    .reg .f32   %f<11>;\n\
    .reg .b64   %rd<11>;\n\
\n\
    ld.param.u64        %rd1, [q8];\n\
    ld.param.u64        %rd2, [x];\n\
    mov.u32             %r1, %ctaid.x;\n\
    mov.u32             %r2, %tid.x;\n\
    shr.u32             %r3, %r2, 5;                            // warp\n\
    and.b32             %r4, %r2, 31;                           // lane\n\
    mad.lo.u32          %r5, %r1, 4, %r3;                       // block\n\
    setp.ge.u32         %p1, %r5, 448;\n\
    @%p1 ret;\n\
    mul.wide.u32        %rd3, %r5, 32;\n\
    cvt.u64.u32         %rd4, %r4;\n\
    add.u64             %rd5, %rd3, %rd4;\n\
    shl.b64             %rd6, %rd5, 2;\n\
    add.u64             %rd7, %rd2, %rd6;\n\
    ld.global.nc.f32    %f1, [%rd7];\n\
    mov.b32             %r6, %f1;\n\
    and.b32             %r7, %r6, 0x7FFFFFFF;\n\
    shfl.sync.bfly.b32  %r8, %r7, 16, 31, 0xFFFFFFFF;\n\
    max.u32             %r9, %r7, %r8;\n\
    shfl.sync.bfly.b32  %r10, %r9, 8, 31, 0xFFFFFFFF;\n\
    max.u32             %r11, %r9, %r10;\n\
    shfl.sync.bfly.b32  %r12, %r11, 4, 31, 0xFFFFFFFF;\n\
    max.u32             %r13, %r11, %r12;\n\
    shfl.sync.bfly.b32  %r14, %r13, 2, 31, 0xFFFFFFFF;\n\
    max.u32             %r15, %r13, %r14;\n\
    shfl.sync.bfly.b32  %r16, %r15, 1, 31, 0xFFFFFFFF;\n\
    max.u32             %r17, %r15, %r16;\n\
    mov.b32             %f2, %r17;\n\
    div.rn.f32          %f3, %f2, 0f42FE0000;\n\
    mad.wide.u32        %rd8, %r5, 36, %rd1;\n\
    rcp.rn.f32          %f4, %f3;\n\
    setp.eq.f32         %p2, %f3, 0f00000000;\n\
    selp.f32            %f5, 0f00000000, %f4, %p2;\n\
    mul.f32             %f6, %f1, %f5;\n\
    cvt.rzi.s32.f32     %r18, %f6;\n\
    cvt.rn.f32.s32      %f7, %r18;\n\
    sub.f32             %f8, %f6, %f7;\n\
    setp.ge.f32         %p3, %f8, 0f3F000000;\n\
    selp.s32            %r19, 1, 0, %p3;\n\
    add.s32             %r20, %r18, %r19;\n\
    setp.le.f32         %p4, %f8, 0fBF000000;\n\
    selp.s32            %r21, -1, 0, %p4;\n\
    add.s32             %r22, %r20, %r21;\n\
    shfl.sync.bfly.b32  %r23, %r22, 16, 31, 0xFFFFFFFF;\n\
    add.s32             %r24, %r22, %r23;\n\
    shfl.sync.bfly.b32  %r25, %r24, 8, 31, 0xFFFFFFFF;\n\
    add.s32             %r26, %r24, %r25;\n\
    shfl.sync.bfly.b32  %r27, %r26, 4, 31, 0xFFFFFFFF;\n\
    add.s32             %r28, %r26, %r27;\n\
    shfl.sync.bfly.b32  %r29, %r28, 2, 31, 0xFFFFFFFF;\n\
    add.s32             %r30, %r28, %r29;\n\
    shfl.sync.bfly.b32  %r31, %r30, 1, 31, 0xFFFFFFFF;\n\
    add.s32             %r32, %r30, %r31;\n\
    cvt.rn.f32.s32      %f9, %r32;\n\
    mul.f32             %f10, %f9, %f3;\n\
    cvt.u64.u32         %rd9, %r4;\n\
    add.u64             %rd10, %rd8, %rd9;\n\
    st.global.s8        [%rd10+4], %r22;\n\
    setp.eq.u32         %p5, %r4, 0;\n\
    @!%p5 bra           $skip;\n\
    cvt.rn.f16.f32      %h1, %f3;\n\
    st.global.b16       [%rd8], %h1;\n\
    cvt.rn.f16.f32      %h2, %f10;\n\
    st.global.b16       [%rd8+2], %h2;\n\
\n\
$skip:\n\
    ret;\n\
}\n\
";
static const ptxgen_param llama_q8_1_quantize_k14336_m1_w4_params[] = {
    { "q8", PTXGEN_PARAM_POINTER, PTXGEN_PARAM_OUT, PTXGEN_Q8_1, 16128, "m*k/32*36", 4 },
    { "x", PTXGEN_PARAM_POINTER, PTXGEN_PARAM_IN, PTXGEN_F32, 57344, "m*k*4", 4 },
};
static const ptxgen_config llama_q8_1_quantize_k14336_m1_w4_config[] = {
    { "k", 14336, 0, NULL, 0, 0, 0, 1 },
    { "m", 1, 0, NULL, 0, 0, 0, 1 },
    { "rows", 0, 0, "fixed", 0, 0, 0, 1 },
    { "num_warps", 4, 0, NULL, 0, 0, 0, 1 },
    { "dims", 0, 0, "static", 0, 0, 0, 1 },
};
const ptxgen_kernel llama_q8_1_quantize_k14336_m1_w4 = {
    "q8_1_quantize_k14336_m1_w4", "q8_1_quantize_k14336_m1_w4",
    llama_q8_1_quantize_k14336_m1_w4_ptx, 3170, UINT64_C(0x2a4f61eee9224e2a),
    "q8_1_quantize", PTXGEN_QUANTIZE, PTXGEN_NONE, PTXGEN_F32, PTXGEN_F32,
    75, 63, 0, 0, /* sm, isa, overlaps, specific */
    llama_q8_1_quantize_k14336_m1_w4_params, 2,
    { 128, 1, 1 }, { 112, 1, 1 }, NULL, /* block, grid, grid_at */
    0, 0, NULL, 0, /* shared_static, shared_dynamic, shared_at, workspace */
    14336, 0, 1, /* k, n, m */
    4, 0, 0, 0, 0, /* num_warps, head_dim, num_heads, num_kv_heads, max_seq_len */
    0, 0, /* dynamic_dims, seq_len_indirect */
    llama_q8_1_quantize_k14336_m1_w4_config, 5,
    0, 0, /* registers, blocks_per_sm */
    0, /* preference */
    NULL, 0, 0, /* chosen_by, chosen_f32, chosen_q8 */
};

static const char llama_mwv_dp4a_q4k_gemv_k4096_n4096_w3_ptx[] = "\
// mwv_dp4a_q4k_gemv  k=4096 n=4096 num_warps=3  y[n] = W[n,k] x[k]\n\
// ptxgen 0.1.0  block 96  grid min(4096, sm_count*16)\n\
.version 6.3\n\
.target sm_75\n\
.address_size 64\n\
\n\
.visible .entry mwv_dp4a_q4k_gemv_k4096_n4096_w3(\n\
    .param .u64 y,\n\
    .param .u64 w,\n\
    .param .u64 x)\n\
.reqntid 96, 1, 1\n\
.maxnreg 64\n\
{\n\
    .reg .pred  %p<11>;\n\
    .reg .b16   %h<13>;\n\
    .reg .b32   %r<128>;\n\
    .reg .f32   %f<101>;\n\
    .reg .b64   %rd<17>;\n\
    .shared .align 16 .b32 partial[6];\n\
\n\
    ld.param.u64        %rd1, [y];\n\
    ld.param.u64        %rd2, [w];\n\
    ld.param.u64        %rd3, [x];\n\
    mov.u32             %r1, %tid.x;\n\
    and.b32             %r2, %r1, 31;                           // lane\n\
    mov.u32             %r3, %ctaid.x;\n\
    shr.u32             %r4, %r1, 5;                            // warp\n\
    mov.u32             %r5, %nctaid.x;\n\
    shr.u32             %r6, %r2, 4;\n\
    and.b32             %r7, %r2, 15;\n\
    shr.u32             %r8, %r7, 2;                            // chunk\n\
    mul.lo.u32          %r9, %r8, 2;\n\
    and.b32             %r10, %r2, 3;\n\
    mul.lo.u32          %r11, %r10, 8;\n\
    mad.lo.u32          %r12, %r7, 8, 16;\n\
    and.b32             %r13, %r8, 1;\n\
    setp.ne.u32         %p1, %r13, 0;\n\
    selp.u32            %r14, 0x7632, 0x5410, %p1;\n\
    setp.ge.u32         %p2, %r8, 2;\n\
    selp.u32            %r15, 2, 0, %p2;\n\
    selp.u32            %r16, 0x30303030, 0x3F3F3F3F, %p2;\n\
    selp.u32            %r17, 0x0F0F0F0F, 0, %p2;\n\
    mov.u32             %r18, 0;\n\
    setp.lt.u32         %p3, %r3, 4096;\n\
    @!%p3 bra           $row_done;\n\
\n\
$row_loop:\n\
    .pragma \"nounroll\";\n\
    mad.wide.u32        %rd4, %r3, 2304, %rd2;                  // &w[row]\n\
    mov.f32             %f1, 0f00000000;\n\
    mad.lo.u32          %r19, %r4, 2, %r6;\n\
    mul.lo.u32          %r20, %r9, 36;\n\
    mad.lo.u32          %r21, %r19, 288, %r20;\n\
    cvt.u64.u32         %rd5, %r21;\n\
    add.u64             %rd6, %rd3, %rd5;\n\
    cvt.u64.u32         %rd7, %r11;\n\
    add.u64             %rd8, %rd6, %rd7;\n\
    mov.u64             %rd9, %rd6;\n\
    mad.wide.u32        %rd10, %r19, 144, %rd4;\n\
    cvt.u64.u32         %rd11, %r12;\n\
    add.u64             %rd12, %rd10, %rd11;\n\
    mov.u64             %rd13, %rd10;\n\
    ld.global.nc.b16    %h1, [%rd9+36];\n\
    cvt.f32.f16         %f2, %h1;\n\
    ld.global.nc.v4.u32 {%r22, %r23, %r24, %r25}, [%rd13];\n\
    mov.b32             {%h2, %h3}, %r22;\n\
    cvt.f32.f16         %f3, %h3;\n\
    neg.f32             %f4, %f3;\n\
    shr.u32             %r26, %r25, 4;\n\
    prmt.b32            %r27, %r25, %r26, %r14;\n\
    prmt.b32            %r28, %r23, %r24, %r14;\n\
    shr.u32             %r29, %r28, %r15;\n\
    and.b32             %r30, %r29, %r16;\n\
    lop3.b32            %r31, %r27, %r17, %r30, 0xEA;\n\
    shr.u32             %r32, %r31, 24;\n\
    cvt.rn.f32.u32      %f5, %r32;\n\
    mul.f32             %f6, %f4, %f5;\n\
    ld.global.nc.s32    %r33, [%rd8+44];\n\
    ld.global.nc.s32    %r34, [%rd8+40];\n\
    dp4a.u32.s32        %r35, 0x01010101, %r34, 1262485504;\n\
    dp4a.u32.s32        %r36, 0x01010101, %r33, %r35;\n\
    mov.b32             %f7, %r36;\n\
    sub.f32             %f8, %f7, 0f4B400000;\n\
    cvt.f32.f16         %f9, %h2;\n\
    mul.f32             %f10, %f9, 0f3D800000;\n\
    bfe.u32             %r37, %r31, 8, 8;\n\
    cvt.rn.f32.u32      %f11, %r37;\n\
    mul.f32             %f12, %f10, %f11;\n\
    ld.global.nc.v2.u32 {%r38, %r39}, [%rd12];\n\
    and.b32             %r40, %r39, 0xF0F0F0F0;\n\
    and.b32             %r41, %r38, 0xF0F0F0F0;\n\
    dp4a.u32.s32        %r42, %r41, %r34, 1262485504;\n\
    dp4a.u32.s32        %r43, %r40, %r33, %r42;\n\
    mov.b32             %f13, %r43;\n\
    sub.f32             %f14, %f13, 0f4B400000;\n\
    mul.f32             %f15, %f12, %f14;\n\
    fma.rn.f32          %f16, %f6, %f8, %f15;\n\
    ld.global.nc.b16    %h4, [%rd9];\n\
    cvt.f32.f16         %f17, %h4;\n\
    neg.f32             %f18, %f3;\n\
    bfe.u32             %r44, %r31, 16, 8;\n\
    cvt.rn.f32.u32      %f19, %r44;\n\
    mul.f32             %f20, %f18, %f19;\n\
    ld.global.nc.s32    %r45, [%rd8+8];\n\
    ld.global.nc.s32    %r46, [%rd8+4];\n\
    dp4a.u32.s32        %r47, 0x01010101, %r46, 1262485504;\n\
    dp4a.u32.s32        %r48, 0x01010101, %r45, %r47;\n\
    mov.b32             %f21, %r48;\n\
    sub.f32             %f22, %f21, 0f4B400000;\n\
    and.b32             %r49, %r31, 0xFF;\n\
    cvt.rn.f32.u32      %f23, %r49;\n\
    mul.f32             %f24, %f9, %f23;\n\
    and.b32             %r50, %r39, 0x0F0F0F0F;\n\
    and.b32             %r51, %r38, 0x0F0F0F0F;\n\
    dp4a.u32.s32        %r52, %r51, %r46, 1262485504;\n\
    dp4a.u32.s32        %r53, %r50, %r45, %r52;\n\
    mov.b32             %f25, %r53;\n\
    sub.f32             %f26, %f25, 0f4B400000;\n\
    mul.f32             %f27, %f24, %f26;\n\
    fma.rn.f32          %f28, %f20, %f22, %f27;\n\
    fma.rn.f32          %f29, %f17, %f28, %f1;\n\
    fma.rn.f32          %f1, %f2, %f16, %f29;\n\
    ld.global.nc.b16    %h5, [%rd9+1764];\n\
    cvt.f32.f16         %f30, %h5;\n\
    ld.global.nc.v4.u32 {%r54, %r55, %r56, %r57}, [%rd13+864];\n\
    mov.b32             {%h6, %h7}, %r54;\n\
    cvt.f32.f16         %f31, %h7;\n\
    neg.f32             %f32, %f31;\n\
    shr.u32             %r58, %r57, 4;\n\
    prmt.b32            %r59, %r57, %r58, %r14;\n\
    prmt.b32            %r60, %r55, %r56, %r14;\n\
    shr.u32             %r61, %r60, %r15;\n\
    and.b32             %r62, %r61, %r16;\n\
    lop3.b32            %r63, %r59, %r17, %r62, 0xEA;\n\
    shr.u32             %r64, %r63, 24;\n\
    cvt.rn.f32.u32      %f33, %r64;\n\
    mul.f32             %f34, %f32, %f33;\n\
    ld.global.nc.s32    %r65, [%rd8+1772];\n\
    ld.global.nc.s32    %r66, [%rd8+1768];\n\
    dp4a.u32.s32        %r67, 0x01010101, %r66, 1262485504;\n\
    dp4a.u32.s32        %r68, 0x01010101, %r65, %r67;\n\
    mov.b32             %f35, %r68;\n\
    sub.f32             %f36, %f35, 0f4B400000;\n\
    cvt.f32.f16         %f37, %h6;\n\
    mul.f32             %f38, %f37, 0f3D800000;\n\
    bfe.u32             %r69, %r63, 8, 8;\n\
    cvt.rn.f32.u32      %f39, %r69;\n\
    mul.f32             %f40, %f38, %f39;\n\
    ld.global.nc.v2.u32 {%r70, %r71}, [%rd12+864];\n\
    and.b32             %r72, %r71, 0xF0F0F0F0;\n\
    and.b32             %r73, %r70, 0xF0F0F0F0;\n\
    dp4a.u32.s32        %r74, %r73, %r66, 1262485504;\n\
    dp4a.u32.s32        %r75, %r72, %r65, %r74;\n\
    mov.b32             %f41, %r75;\n\
    sub.f32             %f42, %f41, 0f4B400000;\n\
    mul.f32             %f43, %f40, %f42;\n\
    fma.rn.f32          %f44, %f34, %f36, %f43;\n\
    ld.global.nc.b16    %h8, [%rd9+1728];\n\
    cvt.f32.f16         %f45, %h8;\n\
    neg.f32             %f46, %f31;\n\
    bfe.u32             %r76, %r63, 16, 8;\n\
    cvt.rn.f32.u32      %f47, %r76;\n\
    mul.f32             %f48, %f46, %f47;\n\
    ld.global.nc.s32    %r77, [%rd8+1736];\n\
    ld.global.nc.s32    %r78, [%rd8+1732];\n\
    dp4a.u32.s32        %r79, 0x01010101, %r78, 1262485504;\n\
    dp4a.u32.s32        %r80, 0x01010101, %r77, %r79;\n\
    mov.b32             %f49, %r80;\n\
    sub.f32             %f50, %f49, 0f4B400000;\n\
    and.b32             %r81, %r63, 0xFF;\n\
    cvt.rn.f32.u32      %f51, %r81;\n\
    mul.f32             %f52, %f37, %f51;\n\
    and.b32             %r82, %r71, 0x0F0F0F0F;\n\
    and.b32             %r83, %r70, 0x0F0F0F0F;\n\
    dp4a.u32.s32        %r84, %r83, %r78, 1262485504;\n\
    dp4a.u32.s32        %r85, %r82, %r77, %r84;\n\
    mov.b32             %f53, %r85;\n\
    sub.f32             %f54, %f53, 0f4B400000;\n\
    mul.f32             %f55, %f52, %f54;\n\
    fma.rn.f32          %f56, %f48, %f50, %f55;\n\
    fma.rn.f32          %f57, %f45, %f56, %f1;\n\
    fma.rn.f32          %f1, %f30, %f44, %f57;\n\
    add.u64             %rd9, %rd9, 3456;\n\
    add.u64             %rd8, %rd8, 3456;\n\
    add.u64             %rd13, %rd13, 1728;\n\
    add.u64             %rd12, %rd12, 1728;\n\
    add.u32             %r86, %r19, 12;\n\
    setp.lt.u32         %p4, %r86, 16;\n\
    @!%p4 bra           $rest_done;\n\
\n\
$rest_loop:                                                     // 16 weights a lane\n\
    .pragma \"nounroll\";\n\
    ld.global.nc.b16    %h9, [%rd9+36];\n\
    cvt.f32.f16         %f58, %h9;\n\
"
"\
    ld.global.nc.v4.u32 {%r87, %r88, %r89, %r90}, [%rd13];\n\
    mov.b32             {%h10, %h11}, %r87;\n\
    cvt.f32.f16         %f59, %h11;\n\
    neg.f32             %f60, %f59;\n\
    shr.u32             %r91, %r90, 4;\n\
    prmt.b32            %r92, %r90, %r91, %r14;\n\
    prmt.b32            %r93, %r88, %r89, %r14;\n\
    shr.u32             %r94, %r93, %r15;\n\
    and.b32             %r95, %r94, %r16;\n\
    lop3.b32            %r96, %r92, %r17, %r95, 0xEA;\n\
    shr.u32             %r97, %r96, 24;\n\
    cvt.rn.f32.u32      %f61, %r97;\n\
    mul.f32             %f62, %f60, %f61;\n\
    ld.global.nc.s32    %r98, [%rd8+44];\n\
    ld.global.nc.s32    %r99, [%rd8+40];\n\
    dp4a.u32.s32        %r100, 0x01010101, %r99, 1262485504;\n\
    dp4a.u32.s32        %r101, 0x01010101, %r98, %r100;\n\
    mov.b32             %f63, %r101;\n\
    sub.f32             %f64, %f63, 0f4B400000;\n\
    cvt.f32.f16         %f65, %h10;\n\
    mul.f32             %f66, %f65, 0f3D800000;\n\
    bfe.u32             %r102, %r96, 8, 8;\n\
    cvt.rn.f32.u32      %f67, %r102;\n\
    mul.f32             %f68, %f66, %f67;\n\
    ld.global.nc.v2.u32 {%r103, %r104}, [%rd12];\n\
    and.b32             %r105, %r104, 0xF0F0F0F0;\n\
    and.b32             %r106, %r103, 0xF0F0F0F0;\n\
    dp4a.u32.s32        %r107, %r106, %r99, 1262485504;\n\
    dp4a.u32.s32        %r108, %r105, %r98, %r107;\n\
    mov.b32             %f69, %r108;\n\
    sub.f32             %f70, %f69, 0f4B400000;\n\
    mul.f32             %f71, %f68, %f70;\n\
    fma.rn.f32          %f72, %f62, %f64, %f71;\n\
    ld.global.nc.b16    %h12, [%rd9];\n\
    cvt.f32.f16         %f73, %h12;\n\
    neg.f32             %f74, %f59;\n\
    bfe.u32             %r109, %r96, 16, 8;\n\
    cvt.rn.f32.u32      %f75, %r109;\n\
    mul.f32             %f76, %f74, %f75;\n\
    ld.global.nc.s32    %r110, [%rd8+8];\n\
    ld.global.nc.s32    %r111, [%rd8+4];\n\
    dp4a.u32.s32        %r112, 0x01010101, %r111, 1262485504;\n\
    dp4a.u32.s32        %r113, 0x01010101, %r110, %r112;\n\
    mov.b32             %f77, %r113;\n\
    sub.f32             %f78, %f77, 0f4B400000;\n\
    and.b32             %r114, %r96, 0xFF;\n\
    cvt.rn.f32.u32      %f79, %r114;\n\
    mul.f32             %f80, %f65, %f79;\n\
    and.b32             %r115, %r104, 0x0F0F0F0F;\n\
    and.b32             %r116, %r103, 0x0F0F0F0F;\n\
    dp4a.u32.s32        %r117, %r116, %r111, 1262485504;\n\
    dp4a.u32.s32        %r118, %r115, %r110, %r117;\n\
    mov.b32             %f81, %r118;\n\
    sub.f32             %f82, %f81, 0f4B400000;\n\
    mul.f32             %f83, %f80, %f82;\n\
    fma.rn.f32          %f84, %f76, %f78, %f83;\n\
    fma.rn.f32          %f85, %f73, %f84, %f1;\n\
    fma.rn.f32          %f1, %f58, %f72, %f85;\n\
    add.u64             %rd9, %rd9, 1728;\n\
    add.u64             %rd8, %rd8, 1728;\n\
    add.u64             %rd13, %rd13, 864;\n\
    add.u64             %rd12, %rd12, 864;\n\
    add.u32             %r86, %r86, 6;\n\
    setp.lt.u32         %p5, %r86, 16;\n\
    @%p5 bra            $rest_loop;\n\
\n\
$rest_done:\n\
    shr.u32             %r119, %r2, 5;\n\
    and.b32             %r120, %r2, 31;\n\
    setp.eq.u32         %p6, %r120, 0;\n\
    selp.u32            %r121, %r119, 1, %p6;\n\
    mov.u32             %r122, partial;                         // partial\n\
    add.u32             %r123, %r122, %r18;\n\
    shfl.sync.bfly.b32  %f86, %f1, 16, 31, 0xFFFFFFFF;\n\
    add.f32             %f87, %f1, %f86;\n\
    shfl.sync.bfly.b32  %f88, %f87, 8, 31, 0xFFFFFFFF;\n\
    add.f32             %f89, %f87, %f88;\n\
    shfl.sync.bfly.b32  %f90, %f89, 4, 31, 0xFFFFFFFF;\n\
    add.f32             %f91, %f89, %f90;\n\
    shfl.sync.bfly.b32  %f92, %f91, 2, 31, 0xFFFFFFFF;\n\
    add.f32             %f93, %f91, %f92;\n\
    shfl.sync.bfly.b32  %f94, %f93, 1, 31, 0xFFFFFFFF;\n\
    add.f32             %f95, %f93, %f94;\n\
    setp.lt.u32         %p7, %r121, 1;\n\
    @!%p7 bra           $skip;\n\
    mad.lo.u32          %r124, %r4, 1, %r121;\n\
    mad.lo.u32          %r125, %r124, 4, %r123;\n\
    st.shared.f32       [%r125], %f95;\n\
\n\
$skip:\n\
    bar.sync            0;\n\
    mov.f32             %f96, 0f00000000;\n\
    setp.lt.u32         %p8, %r1, 1;\n\
    @!%p8 bra           $skip_2;\n\
    mad.lo.u32          %r126, %r1, 4, %r123;\n\
    ld.shared.f32       %f97, [%r126];\n\
    add.f32             %f96, %f96, %f97;\n\
    ld.shared.f32       %f98, [%r126+4];\n\
    add.f32             %f96, %f96, %f98;\n\
    ld.shared.f32       %f99, [%r126+8];\n\
    add.f32             %f96, %f96, %f99;\n\
\n\
$skip_2:\n\
    mov.f32             %f100, %f96;\n\
    xor.b32             %r18, %r18, 12;\n\
    setp.lt.u32         %p9, %r1, 1;\n\
    @!%p9 bra           $skip_3;\n\
    add.u32             %r127, %r3, %r1;\n\
    cvt.u64.u32         %rd14, %r127;\n\
    shl.b64             %rd15, %rd14, 2;\n\
    add.u64             %rd16, %rd1, %rd15;\n\
    st.global.f32       [%rd16], %f100;\n\
\n\
$skip_3:\n\
    add.u32             %r3, %r3, %r5;\n\
    setp.lt.u32         %p10, %r3, 4096;\n\
    @%p10 bra           $row_loop;\n\
\n\
$row_done:\n\
    ret;\n\
}\n\
";
static const ptxgen_param llama_mwv_dp4a_q4k_gemv_k4096_n4096_w3_params[] = {
    { "y", PTXGEN_PARAM_POINTER, PTXGEN_PARAM_OUT, PTXGEN_F32, 16384, "n*4", 4 },
    { "w", PTXGEN_PARAM_POINTER, PTXGEN_PARAM_IN, PTXGEN_Q4_K, 9437184, "n*k/256*144", 16 },
    { "x", PTXGEN_PARAM_POINTER, PTXGEN_PARAM_IN, PTXGEN_Q8_1, 4608, "k/32*36", 4 },
};
static const ptxgen_config llama_mwv_dp4a_q4k_gemv_k4096_n4096_w3_config[] = {
    { "k", 4096, 0, NULL, 0, 0, 0, 1 },
    { "n", 4096, 0, NULL, 0, 0, 0, 1 },
    { "num_warps", 3, 0, NULL, 0, 0, 0, 1 },
    { "dims", 0, 0, "static", 0, 0, 0, 1 },
};
const ptxgen_kernel llama_mwv_dp4a_q4k_gemv_k4096_n4096_w3 = {
    "mwv_dp4a_q4k_gemv_k4096_n4096_w3", "mwv_dp4a_q4k_gemv_k4096_n4096_w3",
    llama_mwv_dp4a_q4k_gemv_k4096_n4096_w3_ptx, 12769, UINT64_C(0x712ce9c0cc9f4ab3),
    "mwv_dp4a_q4k_gemv", PTXGEN_GEMV, PTXGEN_Q4_K, PTXGEN_Q8_1, PTXGEN_Q8_1,
    75, 63, 0, 0, /* sm, isa, overlaps, specific */
    llama_mwv_dp4a_q4k_gemv_k4096_n4096_w3_params, 3,
    { 96, 1, 1 }, { 0, 0, 0 }, llama_grid_4, /* block, grid, grid_at */
    24, 0, NULL, 0, /* shared_static, shared_dynamic, shared_at, workspace */
    4096, 4096, 1, /* k, n, m */
    3, 0, 0, 0, 0, /* num_warps, head_dim, num_heads, num_kv_heads, max_seq_len */
    0, 0, /* dynamic_dims, seq_len_indirect */
    llama_mwv_dp4a_q4k_gemv_k4096_n4096_w3_config, 4,
    0, 0, /* registers, blocks_per_sm */
    0, /* preference */
    NULL, 0, 0, /* chosen_by, chosen_f32, chosen_q8 */
};

static const char llama_mwv_dp4a_q4k_gemv_k4096_n1024_w3_ptx[] = "\
// mwv_dp4a_q4k_gemv  k=4096 n=1024 num_warps=3  y[n] = W[n,k] x[k]\n\
// ptxgen 0.1.0  block 96  grid min(1024, sm_count*16)\n\
.version 6.3\n\
.target sm_75\n\
.address_size 64\n\
\n\
.visible .entry mwv_dp4a_q4k_gemv_k4096_n1024_w3(\n\
    .param .u64 y,\n\
    .param .u64 w,\n\
    .param .u64 x)\n\
.reqntid 96, 1, 1\n\
.maxnreg 64\n\
{\n\
    .reg .pred  %p<11>;\n\
    .reg .b16   %h<13>;\n\
    .reg .b32   %r<128>;\n\
    .reg .f32   %f<101>;\n\
    .reg .b64   %rd<17>;\n\
    .shared .align 16 .b32 partial[6];\n\
\n\
    ld.param.u64        %rd1, [y];\n\
    ld.param.u64        %rd2, [w];\n\
    ld.param.u64        %rd3, [x];\n\
    mov.u32             %r1, %tid.x;\n\
    and.b32             %r2, %r1, 31;                           // lane\n\
    mov.u32             %r3, %ctaid.x;\n\
    shr.u32             %r4, %r1, 5;                            // warp\n\
    mov.u32             %r5, %nctaid.x;\n\
    shr.u32             %r6, %r2, 4;\n\
    and.b32             %r7, %r2, 15;\n\
    shr.u32             %r8, %r7, 2;                            // chunk\n\
    mul.lo.u32          %r9, %r8, 2;\n\
    and.b32             %r10, %r2, 3;\n\
    mul.lo.u32          %r11, %r10, 8;\n\
    mad.lo.u32          %r12, %r7, 8, 16;\n\
    and.b32             %r13, %r8, 1;\n\
    setp.ne.u32         %p1, %r13, 0;\n\
    selp.u32            %r14, 0x7632, 0x5410, %p1;\n\
    setp.ge.u32         %p2, %r8, 2;\n\
    selp.u32            %r15, 2, 0, %p2;\n\
    selp.u32            %r16, 0x30303030, 0x3F3F3F3F, %p2;\n\
    selp.u32            %r17, 0x0F0F0F0F, 0, %p2;\n\
    mov.u32             %r18, 0;\n\
    setp.lt.u32         %p3, %r3, 1024;\n\
    @!%p3 bra           $row_done;\n\
\n\
$row_loop:\n\
    .pragma \"nounroll\";\n\
    mad.wide.u32        %rd4, %r3, 2304, %rd2;                  // &w[row]\n\
    mov.f32             %f1, 0f00000000;\n\
    mad.lo.u32          %r19, %r4, 2, %r6;\n\
    mul.lo.u32          %r20, %r9, 36;\n\
    mad.lo.u32          %r21, %r19, 288, %r20;\n\
    cvt.u64.u32         %rd5, %r21;\n\
    add.u64             %rd6, %rd3, %rd5;\n\
    cvt.u64.u32         %rd7, %r11;\n\
    add.u64             %rd8, %rd6, %rd7;\n\
    mov.u64             %rd9, %rd6;\n\
    mad.wide.u32        %rd10, %r19, 144, %rd4;\n\
    cvt.u64.u32         %rd11, %r12;\n\
    add.u64             %rd12, %rd10, %rd11;\n\
    mov.u64             %rd13, %rd10;\n\
    ld.global.nc.b16    %h1, [%rd9+36];\n\
    cvt.f32.f16         %f2, %h1;\n\
    ld.global.nc.v4.u32 {%r22, %r23, %r24, %r25}, [%rd13];\n\
    mov.b32             {%h2, %h3}, %r22;\n\
    cvt.f32.f16         %f3, %h3;\n\
    neg.f32             %f4, %f3;\n\
    shr.u32             %r26, %r25, 4;\n\
    prmt.b32            %r27, %r25, %r26, %r14;\n\
    prmt.b32            %r28, %r23, %r24, %r14;\n\
    shr.u32             %r29, %r28, %r15;\n\
    and.b32             %r30, %r29, %r16;\n\
    lop3.b32            %r31, %r27, %r17, %r30, 0xEA;\n\
    shr.u32             %r32, %r31, 24;\n\
    cvt.rn.f32.u32      %f5, %r32;\n\
    mul.f32             %f6, %f4, %f5;\n\
    ld.global.nc.s32    %r33, [%rd8+44];\n\
    ld.global.nc.s32    %r34, [%rd8+40];\n\
    dp4a.u32.s32        %r35, 0x01010101, %r34, 1262485504;\n\
    dp4a.u32.s32        %r36, 0x01010101, %r33, %r35;\n\
    mov.b32             %f7, %r36;\n\
    sub.f32             %f8, %f7, 0f4B400000;\n\
    cvt.f32.f16         %f9, %h2;\n\
    mul.f32             %f10, %f9, 0f3D800000;\n\
    bfe.u32             %r37, %r31, 8, 8;\n\
    cvt.rn.f32.u32      %f11, %r37;\n\
    mul.f32             %f12, %f10, %f11;\n\
    ld.global.nc.v2.u32 {%r38, %r39}, [%rd12];\n\
    and.b32             %r40, %r39, 0xF0F0F0F0;\n\
    and.b32             %r41, %r38, 0xF0F0F0F0;\n\
    dp4a.u32.s32        %r42, %r41, %r34, 1262485504;\n\
    dp4a.u32.s32        %r43, %r40, %r33, %r42;\n\
    mov.b32             %f13, %r43;\n\
    sub.f32             %f14, %f13, 0f4B400000;\n\
    mul.f32             %f15, %f12, %f14;\n\
    fma.rn.f32          %f16, %f6, %f8, %f15;\n\
    ld.global.nc.b16    %h4, [%rd9];\n\
    cvt.f32.f16         %f17, %h4;\n\
    neg.f32             %f18, %f3;\n\
    bfe.u32             %r44, %r31, 16, 8;\n\
    cvt.rn.f32.u32      %f19, %r44;\n\
    mul.f32             %f20, %f18, %f19;\n\
    ld.global.nc.s32    %r45, [%rd8+8];\n\
    ld.global.nc.s32    %r46, [%rd8+4];\n\
    dp4a.u32.s32        %r47, 0x01010101, %r46, 1262485504;\n\
    dp4a.u32.s32        %r48, 0x01010101, %r45, %r47;\n\
    mov.b32             %f21, %r48;\n\
    sub.f32             %f22, %f21, 0f4B400000;\n\
    and.b32             %r49, %r31, 0xFF;\n\
    cvt.rn.f32.u32      %f23, %r49;\n\
    mul.f32             %f24, %f9, %f23;\n\
    and.b32             %r50, %r39, 0x0F0F0F0F;\n\
    and.b32             %r51, %r38, 0x0F0F0F0F;\n\
    dp4a.u32.s32        %r52, %r51, %r46, 1262485504;\n\
    dp4a.u32.s32        %r53, %r50, %r45, %r52;\n\
    mov.b32             %f25, %r53;\n\
    sub.f32             %f26, %f25, 0f4B400000;\n\
    mul.f32             %f27, %f24, %f26;\n\
    fma.rn.f32          %f28, %f20, %f22, %f27;\n\
    fma.rn.f32          %f29, %f17, %f28, %f1;\n\
    fma.rn.f32          %f1, %f2, %f16, %f29;\n\
    ld.global.nc.b16    %h5, [%rd9+1764];\n\
    cvt.f32.f16         %f30, %h5;\n\
    ld.global.nc.v4.u32 {%r54, %r55, %r56, %r57}, [%rd13+864];\n\
    mov.b32             {%h6, %h7}, %r54;\n\
    cvt.f32.f16         %f31, %h7;\n\
    neg.f32             %f32, %f31;\n\
    shr.u32             %r58, %r57, 4;\n\
    prmt.b32            %r59, %r57, %r58, %r14;\n\
    prmt.b32            %r60, %r55, %r56, %r14;\n\
    shr.u32             %r61, %r60, %r15;\n\
    and.b32             %r62, %r61, %r16;\n\
    lop3.b32            %r63, %r59, %r17, %r62, 0xEA;\n\
    shr.u32             %r64, %r63, 24;\n\
    cvt.rn.f32.u32      %f33, %r64;\n\
    mul.f32             %f34, %f32, %f33;\n\
    ld.global.nc.s32    %r65, [%rd8+1772];\n\
    ld.global.nc.s32    %r66, [%rd8+1768];\n\
    dp4a.u32.s32        %r67, 0x01010101, %r66, 1262485504;\n\
    dp4a.u32.s32        %r68, 0x01010101, %r65, %r67;\n\
    mov.b32             %f35, %r68;\n\
    sub.f32             %f36, %f35, 0f4B400000;\n\
    cvt.f32.f16         %f37, %h6;\n\
    mul.f32             %f38, %f37, 0f3D800000;\n\
    bfe.u32             %r69, %r63, 8, 8;\n\
    cvt.rn.f32.u32      %f39, %r69;\n\
    mul.f32             %f40, %f38, %f39;\n\
    ld.global.nc.v2.u32 {%r70, %r71}, [%rd12+864];\n\
    and.b32             %r72, %r71, 0xF0F0F0F0;\n\
    and.b32             %r73, %r70, 0xF0F0F0F0;\n\
    dp4a.u32.s32        %r74, %r73, %r66, 1262485504;\n\
    dp4a.u32.s32        %r75, %r72, %r65, %r74;\n\
    mov.b32             %f41, %r75;\n\
    sub.f32             %f42, %f41, 0f4B400000;\n\
    mul.f32             %f43, %f40, %f42;\n\
    fma.rn.f32          %f44, %f34, %f36, %f43;\n\
    ld.global.nc.b16    %h8, [%rd9+1728];\n\
    cvt.f32.f16         %f45, %h8;\n\
    neg.f32             %f46, %f31;\n\
    bfe.u32             %r76, %r63, 16, 8;\n\
    cvt.rn.f32.u32      %f47, %r76;\n\
    mul.f32             %f48, %f46, %f47;\n\
    ld.global.nc.s32    %r77, [%rd8+1736];\n\
    ld.global.nc.s32    %r78, [%rd8+1732];\n\
    dp4a.u32.s32        %r79, 0x01010101, %r78, 1262485504;\n\
    dp4a.u32.s32        %r80, 0x01010101, %r77, %r79;\n\
    mov.b32             %f49, %r80;\n\
    sub.f32             %f50, %f49, 0f4B400000;\n\
    and.b32             %r81, %r63, 0xFF;\n\
    cvt.rn.f32.u32      %f51, %r81;\n\
    mul.f32             %f52, %f37, %f51;\n\
    and.b32             %r82, %r71, 0x0F0F0F0F;\n\
    and.b32             %r83, %r70, 0x0F0F0F0F;\n\
    dp4a.u32.s32        %r84, %r83, %r78, 1262485504;\n\
    dp4a.u32.s32        %r85, %r82, %r77, %r84;\n\
    mov.b32             %f53, %r85;\n\
    sub.f32             %f54, %f53, 0f4B400000;\n\
    mul.f32             %f55, %f52, %f54;\n\
    fma.rn.f32          %f56, %f48, %f50, %f55;\n\
    fma.rn.f32          %f57, %f45, %f56, %f1;\n\
    fma.rn.f32          %f1, %f30, %f44, %f57;\n\
    add.u64             %rd9, %rd9, 3456;\n\
    add.u64             %rd8, %rd8, 3456;\n\
    add.u64             %rd13, %rd13, 1728;\n\
    add.u64             %rd12, %rd12, 1728;\n\
    add.u32             %r86, %r19, 12;\n\
    setp.lt.u32         %p4, %r86, 16;\n\
    @!%p4 bra           $rest_done;\n\
\n\
$rest_loop:                                                     // 16 weights a lane\n\
    .pragma \"nounroll\";\n\
    ld.global.nc.b16    %h9, [%rd9+36];\n\
    cvt.f32.f16         %f58, %h9;\n\
"
"\
    ld.global.nc.v4.u32 {%r87, %r88, %r89, %r90}, [%rd13];\n\
    mov.b32             {%h10, %h11}, %r87;\n\
    cvt.f32.f16         %f59, %h11;\n\
    neg.f32             %f60, %f59;\n\
    shr.u32             %r91, %r90, 4;\n\
    prmt.b32            %r92, %r90, %r91, %r14;\n\
    prmt.b32            %r93, %r88, %r89, %r14;\n\
    shr.u32             %r94, %r93, %r15;\n\
    and.b32             %r95, %r94, %r16;\n\
    lop3.b32            %r96, %r92, %r17, %r95, 0xEA;\n\
    shr.u32             %r97, %r96, 24;\n\
    cvt.rn.f32.u32      %f61, %r97;\n\
    mul.f32             %f62, %f60, %f61;\n\
    ld.global.nc.s32    %r98, [%rd8+44];\n\
    ld.global.nc.s32    %r99, [%rd8+40];\n\
    dp4a.u32.s32        %r100, 0x01010101, %r99, 1262485504;\n\
    dp4a.u32.s32        %r101, 0x01010101, %r98, %r100;\n\
    mov.b32             %f63, %r101;\n\
    sub.f32             %f64, %f63, 0f4B400000;\n\
    cvt.f32.f16         %f65, %h10;\n\
    mul.f32             %f66, %f65, 0f3D800000;\n\
    bfe.u32             %r102, %r96, 8, 8;\n\
    cvt.rn.f32.u32      %f67, %r102;\n\
    mul.f32             %f68, %f66, %f67;\n\
    ld.global.nc.v2.u32 {%r103, %r104}, [%rd12];\n\
    and.b32             %r105, %r104, 0xF0F0F0F0;\n\
    and.b32             %r106, %r103, 0xF0F0F0F0;\n\
    dp4a.u32.s32        %r107, %r106, %r99, 1262485504;\n\
    dp4a.u32.s32        %r108, %r105, %r98, %r107;\n\
    mov.b32             %f69, %r108;\n\
    sub.f32             %f70, %f69, 0f4B400000;\n\
    mul.f32             %f71, %f68, %f70;\n\
    fma.rn.f32          %f72, %f62, %f64, %f71;\n\
    ld.global.nc.b16    %h12, [%rd9];\n\
    cvt.f32.f16         %f73, %h12;\n\
    neg.f32             %f74, %f59;\n\
    bfe.u32             %r109, %r96, 16, 8;\n\
    cvt.rn.f32.u32      %f75, %r109;\n\
    mul.f32             %f76, %f74, %f75;\n\
    ld.global.nc.s32    %r110, [%rd8+8];\n\
    ld.global.nc.s32    %r111, [%rd8+4];\n\
    dp4a.u32.s32        %r112, 0x01010101, %r111, 1262485504;\n\
    dp4a.u32.s32        %r113, 0x01010101, %r110, %r112;\n\
    mov.b32             %f77, %r113;\n\
    sub.f32             %f78, %f77, 0f4B400000;\n\
    and.b32             %r114, %r96, 0xFF;\n\
    cvt.rn.f32.u32      %f79, %r114;\n\
    mul.f32             %f80, %f65, %f79;\n\
    and.b32             %r115, %r104, 0x0F0F0F0F;\n\
    and.b32             %r116, %r103, 0x0F0F0F0F;\n\
    dp4a.u32.s32        %r117, %r116, %r111, 1262485504;\n\
    dp4a.u32.s32        %r118, %r115, %r110, %r117;\n\
    mov.b32             %f81, %r118;\n\
    sub.f32             %f82, %f81, 0f4B400000;\n\
    mul.f32             %f83, %f80, %f82;\n\
    fma.rn.f32          %f84, %f76, %f78, %f83;\n\
    fma.rn.f32          %f85, %f73, %f84, %f1;\n\
    fma.rn.f32          %f1, %f58, %f72, %f85;\n\
    add.u64             %rd9, %rd9, 1728;\n\
    add.u64             %rd8, %rd8, 1728;\n\
    add.u64             %rd13, %rd13, 864;\n\
    add.u64             %rd12, %rd12, 864;\n\
    add.u32             %r86, %r86, 6;\n\
    setp.lt.u32         %p5, %r86, 16;\n\
    @%p5 bra            $rest_loop;\n\
\n\
$rest_done:\n\
    shr.u32             %r119, %r2, 5;\n\
    and.b32             %r120, %r2, 31;\n\
    setp.eq.u32         %p6, %r120, 0;\n\
    selp.u32            %r121, %r119, 1, %p6;\n\
    mov.u32             %r122, partial;                         // partial\n\
    add.u32             %r123, %r122, %r18;\n\
    shfl.sync.bfly.b32  %f86, %f1, 16, 31, 0xFFFFFFFF;\n\
    add.f32             %f87, %f1, %f86;\n\
    shfl.sync.bfly.b32  %f88, %f87, 8, 31, 0xFFFFFFFF;\n\
    add.f32             %f89, %f87, %f88;\n\
    shfl.sync.bfly.b32  %f90, %f89, 4, 31, 0xFFFFFFFF;\n\
    add.f32             %f91, %f89, %f90;\n\
    shfl.sync.bfly.b32  %f92, %f91, 2, 31, 0xFFFFFFFF;\n\
    add.f32             %f93, %f91, %f92;\n\
    shfl.sync.bfly.b32  %f94, %f93, 1, 31, 0xFFFFFFFF;\n\
    add.f32             %f95, %f93, %f94;\n\
    setp.lt.u32         %p7, %r121, 1;\n\
    @!%p7 bra           $skip;\n\
    mad.lo.u32          %r124, %r4, 1, %r121;\n\
    mad.lo.u32          %r125, %r124, 4, %r123;\n\
    st.shared.f32       [%r125], %f95;\n\
\n\
$skip:\n\
    bar.sync            0;\n\
    mov.f32             %f96, 0f00000000;\n\
    setp.lt.u32         %p8, %r1, 1;\n\
    @!%p8 bra           $skip_2;\n\
    mad.lo.u32          %r126, %r1, 4, %r123;\n\
    ld.shared.f32       %f97, [%r126];\n\
    add.f32             %f96, %f96, %f97;\n\
    ld.shared.f32       %f98, [%r126+4];\n\
    add.f32             %f96, %f96, %f98;\n\
    ld.shared.f32       %f99, [%r126+8];\n\
    add.f32             %f96, %f96, %f99;\n\
\n\
$skip_2:\n\
    mov.f32             %f100, %f96;\n\
    xor.b32             %r18, %r18, 12;\n\
    setp.lt.u32         %p9, %r1, 1;\n\
    @!%p9 bra           $skip_3;\n\
    add.u32             %r127, %r3, %r1;\n\
    cvt.u64.u32         %rd14, %r127;\n\
    shl.b64             %rd15, %rd14, 2;\n\
    add.u64             %rd16, %rd1, %rd15;\n\
    st.global.f32       [%rd16], %f100;\n\
\n\
$skip_3:\n\
    add.u32             %r3, %r3, %r5;\n\
    setp.lt.u32         %p10, %r3, 1024;\n\
    @%p10 bra           $row_loop;\n\
\n\
$row_done:\n\
    ret;\n\
}\n\
";
static const ptxgen_param llama_mwv_dp4a_q4k_gemv_k4096_n1024_w3_params[] = {
    { "y", PTXGEN_PARAM_POINTER, PTXGEN_PARAM_OUT, PTXGEN_F32, 4096, "n*4", 4 },
    { "w", PTXGEN_PARAM_POINTER, PTXGEN_PARAM_IN, PTXGEN_Q4_K, 2359296, "n*k/256*144", 16 },
    { "x", PTXGEN_PARAM_POINTER, PTXGEN_PARAM_IN, PTXGEN_Q8_1, 4608, "k/32*36", 4 },
};
static const ptxgen_config llama_mwv_dp4a_q4k_gemv_k4096_n1024_w3_config[] = {
    { "k", 4096, 0, NULL, 0, 0, 0, 1 },
    { "n", 1024, 0, NULL, 0, 0, 0, 1 },
    { "num_warps", 3, 0, NULL, 0, 0, 0, 1 },
    { "dims", 0, 0, "static", 0, 0, 0, 1 },
};
const ptxgen_kernel llama_mwv_dp4a_q4k_gemv_k4096_n1024_w3 = {
    "mwv_dp4a_q4k_gemv_k4096_n1024_w3", "mwv_dp4a_q4k_gemv_k4096_n1024_w3",
    llama_mwv_dp4a_q4k_gemv_k4096_n1024_w3_ptx, 12769, UINT64_C(0xfd1d79a267d6296b),
    "mwv_dp4a_q4k_gemv", PTXGEN_GEMV, PTXGEN_Q4_K, PTXGEN_Q8_1, PTXGEN_Q8_1,
    75, 63, 0, 0, /* sm, isa, overlaps, specific */
    llama_mwv_dp4a_q4k_gemv_k4096_n1024_w3_params, 3,
    { 96, 1, 1 }, { 0, 0, 0 }, llama_grid_4, /* block, grid, grid_at */
    24, 0, NULL, 0, /* shared_static, shared_dynamic, shared_at, workspace */
    4096, 1024, 1, /* k, n, m */
    3, 0, 0, 0, 0, /* num_warps, head_dim, num_heads, num_kv_heads, max_seq_len */
    0, 0, /* dynamic_dims, seq_len_indirect */
    llama_mwv_dp4a_q4k_gemv_k4096_n1024_w3_config, 4,
    0, 0, /* registers, blocks_per_sm */
    0, /* preference */
    NULL, 0, 0, /* chosen_by, chosen_f32, chosen_q8 */
};

static const char llama_mwv_dp4a_q4k_gemv_k4096_n14336_w3_ptx[] = "\
// mwv_dp4a_q4k_gemv  k=4096 n=14336 num_warps=3  y[n] = W[n,k] x[k]\n\
// ptxgen 0.1.0  block 96  grid min(14336, sm_count*16)\n\
.version 6.3\n\
.target sm_75\n\
.address_size 64\n\
\n\
.visible .entry mwv_dp4a_q4k_gemv_k4096_n14336_w3(\n\
    .param .u64 y,\n\
    .param .u64 w,\n\
    .param .u64 x)\n\
.reqntid 96, 1, 1\n\
.maxnreg 64\n\
{\n\
    .reg .pred  %p<11>;\n\
    .reg .b16   %h<13>;\n\
    .reg .b32   %r<128>;\n\
    .reg .f32   %f<101>;\n\
    .reg .b64   %rd<17>;\n\
    .shared .align 16 .b32 partial[6];\n\
\n\
    ld.param.u64        %rd1, [y];\n\
    ld.param.u64        %rd2, [w];\n\
    ld.param.u64        %rd3, [x];\n\
    mov.u32             %r1, %tid.x;\n\
    and.b32             %r2, %r1, 31;                           // lane\n\
    mov.u32             %r3, %ctaid.x;\n\
    shr.u32             %r4, %r1, 5;                            // warp\n\
    mov.u32             %r5, %nctaid.x;\n\
    shr.u32             %r6, %r2, 4;\n\
    and.b32             %r7, %r2, 15;\n\
    shr.u32             %r8, %r7, 2;                            // chunk\n\
    mul.lo.u32          %r9, %r8, 2;\n\
    and.b32             %r10, %r2, 3;\n\
    mul.lo.u32          %r11, %r10, 8;\n\
    mad.lo.u32          %r12, %r7, 8, 16;\n\
    and.b32             %r13, %r8, 1;\n\
    setp.ne.u32         %p1, %r13, 0;\n\
    selp.u32            %r14, 0x7632, 0x5410, %p1;\n\
    setp.ge.u32         %p2, %r8, 2;\n\
    selp.u32            %r15, 2, 0, %p2;\n\
    selp.u32            %r16, 0x30303030, 0x3F3F3F3F, %p2;\n\
    selp.u32            %r17, 0x0F0F0F0F, 0, %p2;\n\
    mov.u32             %r18, 0;\n\
    setp.lt.u32         %p3, %r3, 14336;\n\
    @!%p3 bra           $row_done;\n\
\n\
$row_loop:\n\
    .pragma \"nounroll\";\n\
    mad.wide.u32        %rd4, %r3, 2304, %rd2;                  // &w[row]\n\
    mov.f32             %f1, 0f00000000;\n\
    mad.lo.u32          %r19, %r4, 2, %r6;\n\
    mul.lo.u32          %r20, %r9, 36;\n\
    mad.lo.u32          %r21, %r19, 288, %r20;\n\
    cvt.u64.u32         %rd5, %r21;\n\
    add.u64             %rd6, %rd3, %rd5;\n\
    cvt.u64.u32         %rd7, %r11;\n\
    add.u64             %rd8, %rd6, %rd7;\n\
    mov.u64             %rd9, %rd6;\n\
    mad.wide.u32        %rd10, %r19, 144, %rd4;\n\
    cvt.u64.u32         %rd11, %r12;\n\
    add.u64             %rd12, %rd10, %rd11;\n\
    mov.u64             %rd13, %rd10;\n\
    ld.global.nc.b16    %h1, [%rd9+36];\n\
    cvt.f32.f16         %f2, %h1;\n\
    ld.global.nc.v4.u32 {%r22, %r23, %r24, %r25}, [%rd13];\n\
    mov.b32             {%h2, %h3}, %r22;\n\
    cvt.f32.f16         %f3, %h3;\n\
    neg.f32             %f4, %f3;\n\
    shr.u32             %r26, %r25, 4;\n\
    prmt.b32            %r27, %r25, %r26, %r14;\n\
    prmt.b32            %r28, %r23, %r24, %r14;\n\
    shr.u32             %r29, %r28, %r15;\n\
    and.b32             %r30, %r29, %r16;\n\
    lop3.b32            %r31, %r27, %r17, %r30, 0xEA;\n\
    shr.u32             %r32, %r31, 24;\n\
    cvt.rn.f32.u32      %f5, %r32;\n\
    mul.f32             %f6, %f4, %f5;\n\
    ld.global.nc.s32    %r33, [%rd8+44];\n\
    ld.global.nc.s32    %r34, [%rd8+40];\n\
    dp4a.u32.s32        %r35, 0x01010101, %r34, 1262485504;\n\
    dp4a.u32.s32        %r36, 0x01010101, %r33, %r35;\n\
    mov.b32             %f7, %r36;\n\
    sub.f32             %f8, %f7, 0f4B400000;\n\
    cvt.f32.f16         %f9, %h2;\n\
    mul.f32             %f10, %f9, 0f3D800000;\n\
    bfe.u32             %r37, %r31, 8, 8;\n\
    cvt.rn.f32.u32      %f11, %r37;\n\
    mul.f32             %f12, %f10, %f11;\n\
    ld.global.nc.v2.u32 {%r38, %r39}, [%rd12];\n\
    and.b32             %r40, %r39, 0xF0F0F0F0;\n\
    and.b32             %r41, %r38, 0xF0F0F0F0;\n\
    dp4a.u32.s32        %r42, %r41, %r34, 1262485504;\n\
    dp4a.u32.s32        %r43, %r40, %r33, %r42;\n\
    mov.b32             %f13, %r43;\n\
    sub.f32             %f14, %f13, 0f4B400000;\n\
    mul.f32             %f15, %f12, %f14;\n\
    fma.rn.f32          %f16, %f6, %f8, %f15;\n\
    ld.global.nc.b16    %h4, [%rd9];\n\
    cvt.f32.f16         %f17, %h4;\n\
    neg.f32             %f18, %f3;\n\
    bfe.u32             %r44, %r31, 16, 8;\n\
    cvt.rn.f32.u32      %f19, %r44;\n\
    mul.f32             %f20, %f18, %f19;\n\
    ld.global.nc.s32    %r45, [%rd8+8];\n\
    ld.global.nc.s32    %r46, [%rd8+4];\n\
    dp4a.u32.s32        %r47, 0x01010101, %r46, 1262485504;\n\
    dp4a.u32.s32        %r48, 0x01010101, %r45, %r47;\n\
    mov.b32             %f21, %r48;\n\
    sub.f32             %f22, %f21, 0f4B400000;\n\
    and.b32             %r49, %r31, 0xFF;\n\
    cvt.rn.f32.u32      %f23, %r49;\n\
    mul.f32             %f24, %f9, %f23;\n\
    and.b32             %r50, %r39, 0x0F0F0F0F;\n\
    and.b32             %r51, %r38, 0x0F0F0F0F;\n\
    dp4a.u32.s32        %r52, %r51, %r46, 1262485504;\n\
    dp4a.u32.s32        %r53, %r50, %r45, %r52;\n\
    mov.b32             %f25, %r53;\n\
    sub.f32             %f26, %f25, 0f4B400000;\n\
    mul.f32             %f27, %f24, %f26;\n\
    fma.rn.f32          %f28, %f20, %f22, %f27;\n\
    fma.rn.f32          %f29, %f17, %f28, %f1;\n\
    fma.rn.f32          %f1, %f2, %f16, %f29;\n\
    ld.global.nc.b16    %h5, [%rd9+1764];\n\
    cvt.f32.f16         %f30, %h5;\n\
    ld.global.nc.v4.u32 {%r54, %r55, %r56, %r57}, [%rd13+864];\n\
    mov.b32             {%h6, %h7}, %r54;\n\
    cvt.f32.f16         %f31, %h7;\n\
    neg.f32             %f32, %f31;\n\
    shr.u32             %r58, %r57, 4;\n\
    prmt.b32            %r59, %r57, %r58, %r14;\n\
    prmt.b32            %r60, %r55, %r56, %r14;\n\
    shr.u32             %r61, %r60, %r15;\n\
    and.b32             %r62, %r61, %r16;\n\
    lop3.b32            %r63, %r59, %r17, %r62, 0xEA;\n\
    shr.u32             %r64, %r63, 24;\n\
    cvt.rn.f32.u32      %f33, %r64;\n\
    mul.f32             %f34, %f32, %f33;\n\
    ld.global.nc.s32    %r65, [%rd8+1772];\n\
    ld.global.nc.s32    %r66, [%rd8+1768];\n\
    dp4a.u32.s32        %r67, 0x01010101, %r66, 1262485504;\n\
    dp4a.u32.s32        %r68, 0x01010101, %r65, %r67;\n\
    mov.b32             %f35, %r68;\n\
    sub.f32             %f36, %f35, 0f4B400000;\n\
    cvt.f32.f16         %f37, %h6;\n\
    mul.f32             %f38, %f37, 0f3D800000;\n\
    bfe.u32             %r69, %r63, 8, 8;\n\
    cvt.rn.f32.u32      %f39, %r69;\n\
    mul.f32             %f40, %f38, %f39;\n\
    ld.global.nc.v2.u32 {%r70, %r71}, [%rd12+864];\n\
    and.b32             %r72, %r71, 0xF0F0F0F0;\n\
    and.b32             %r73, %r70, 0xF0F0F0F0;\n\
    dp4a.u32.s32        %r74, %r73, %r66, 1262485504;\n\
    dp4a.u32.s32        %r75, %r72, %r65, %r74;\n\
    mov.b32             %f41, %r75;\n\
    sub.f32             %f42, %f41, 0f4B400000;\n\
    mul.f32             %f43, %f40, %f42;\n\
    fma.rn.f32          %f44, %f34, %f36, %f43;\n\
    ld.global.nc.b16    %h8, [%rd9+1728];\n\
    cvt.f32.f16         %f45, %h8;\n\
    neg.f32             %f46, %f31;\n\
    bfe.u32             %r76, %r63, 16, 8;\n\
    cvt.rn.f32.u32      %f47, %r76;\n\
    mul.f32             %f48, %f46, %f47;\n\
    ld.global.nc.s32    %r77, [%rd8+1736];\n\
    ld.global.nc.s32    %r78, [%rd8+1732];\n\
    dp4a.u32.s32        %r79, 0x01010101, %r78, 1262485504;\n\
    dp4a.u32.s32        %r80, 0x01010101, %r77, %r79;\n\
    mov.b32             %f49, %r80;\n\
    sub.f32             %f50, %f49, 0f4B400000;\n\
    and.b32             %r81, %r63, 0xFF;\n\
    cvt.rn.f32.u32      %f51, %r81;\n\
    mul.f32             %f52, %f37, %f51;\n\
    and.b32             %r82, %r71, 0x0F0F0F0F;\n\
    and.b32             %r83, %r70, 0x0F0F0F0F;\n\
    dp4a.u32.s32        %r84, %r83, %r78, 1262485504;\n\
    dp4a.u32.s32        %r85, %r82, %r77, %r84;\n\
    mov.b32             %f53, %r85;\n\
    sub.f32             %f54, %f53, 0f4B400000;\n\
    mul.f32             %f55, %f52, %f54;\n\
    fma.rn.f32          %f56, %f48, %f50, %f55;\n\
    fma.rn.f32          %f57, %f45, %f56, %f1;\n\
    fma.rn.f32          %f1, %f30, %f44, %f57;\n\
    add.u64             %rd9, %rd9, 3456;\n\
    add.u64             %rd8, %rd8, 3456;\n\
    add.u64             %rd13, %rd13, 1728;\n\
    add.u64             %rd12, %rd12, 1728;\n\
    add.u32             %r86, %r19, 12;\n\
    setp.lt.u32         %p4, %r86, 16;\n\
    @!%p4 bra           $rest_done;\n\
\n\
$rest_loop:                                                     // 16 weights a lane\n\
    .pragma \"nounroll\";\n\
    ld.global.nc.b16    %h9, [%rd9+36];\n\
    cvt.f32.f16         %f58, %h9;\n\
"
"\
    ld.global.nc.v4.u32 {%r87, %r88, %r89, %r90}, [%rd13];\n\
    mov.b32             {%h10, %h11}, %r87;\n\
    cvt.f32.f16         %f59, %h11;\n\
    neg.f32             %f60, %f59;\n\
    shr.u32             %r91, %r90, 4;\n\
    prmt.b32            %r92, %r90, %r91, %r14;\n\
    prmt.b32            %r93, %r88, %r89, %r14;\n\
    shr.u32             %r94, %r93, %r15;\n\
    and.b32             %r95, %r94, %r16;\n\
    lop3.b32            %r96, %r92, %r17, %r95, 0xEA;\n\
    shr.u32             %r97, %r96, 24;\n\
    cvt.rn.f32.u32      %f61, %r97;\n\
    mul.f32             %f62, %f60, %f61;\n\
    ld.global.nc.s32    %r98, [%rd8+44];\n\
    ld.global.nc.s32    %r99, [%rd8+40];\n\
    dp4a.u32.s32        %r100, 0x01010101, %r99, 1262485504;\n\
    dp4a.u32.s32        %r101, 0x01010101, %r98, %r100;\n\
    mov.b32             %f63, %r101;\n\
    sub.f32             %f64, %f63, 0f4B400000;\n\
    cvt.f32.f16         %f65, %h10;\n\
    mul.f32             %f66, %f65, 0f3D800000;\n\
    bfe.u32             %r102, %r96, 8, 8;\n\
    cvt.rn.f32.u32      %f67, %r102;\n\
    mul.f32             %f68, %f66, %f67;\n\
    ld.global.nc.v2.u32 {%r103, %r104}, [%rd12];\n\
    and.b32             %r105, %r104, 0xF0F0F0F0;\n\
    and.b32             %r106, %r103, 0xF0F0F0F0;\n\
    dp4a.u32.s32        %r107, %r106, %r99, 1262485504;\n\
    dp4a.u32.s32        %r108, %r105, %r98, %r107;\n\
    mov.b32             %f69, %r108;\n\
    sub.f32             %f70, %f69, 0f4B400000;\n\
    mul.f32             %f71, %f68, %f70;\n\
    fma.rn.f32          %f72, %f62, %f64, %f71;\n\
    ld.global.nc.b16    %h12, [%rd9];\n\
    cvt.f32.f16         %f73, %h12;\n\
    neg.f32             %f74, %f59;\n\
    bfe.u32             %r109, %r96, 16, 8;\n\
    cvt.rn.f32.u32      %f75, %r109;\n\
    mul.f32             %f76, %f74, %f75;\n\
    ld.global.nc.s32    %r110, [%rd8+8];\n\
    ld.global.nc.s32    %r111, [%rd8+4];\n\
    dp4a.u32.s32        %r112, 0x01010101, %r111, 1262485504;\n\
    dp4a.u32.s32        %r113, 0x01010101, %r110, %r112;\n\
    mov.b32             %f77, %r113;\n\
    sub.f32             %f78, %f77, 0f4B400000;\n\
    and.b32             %r114, %r96, 0xFF;\n\
    cvt.rn.f32.u32      %f79, %r114;\n\
    mul.f32             %f80, %f65, %f79;\n\
    and.b32             %r115, %r104, 0x0F0F0F0F;\n\
    and.b32             %r116, %r103, 0x0F0F0F0F;\n\
    dp4a.u32.s32        %r117, %r116, %r111, 1262485504;\n\
    dp4a.u32.s32        %r118, %r115, %r110, %r117;\n\
    mov.b32             %f81, %r118;\n\
    sub.f32             %f82, %f81, 0f4B400000;\n\
    mul.f32             %f83, %f80, %f82;\n\
    fma.rn.f32          %f84, %f76, %f78, %f83;\n\
    fma.rn.f32          %f85, %f73, %f84, %f1;\n\
    fma.rn.f32          %f1, %f58, %f72, %f85;\n\
    add.u64             %rd9, %rd9, 1728;\n\
    add.u64             %rd8, %rd8, 1728;\n\
    add.u64             %rd13, %rd13, 864;\n\
    add.u64             %rd12, %rd12, 864;\n\
    add.u32             %r86, %r86, 6;\n\
    setp.lt.u32         %p5, %r86, 16;\n\
    @%p5 bra            $rest_loop;\n\
\n\
$rest_done:\n\
    shr.u32             %r119, %r2, 5;\n\
    and.b32             %r120, %r2, 31;\n\
    setp.eq.u32         %p6, %r120, 0;\n\
    selp.u32            %r121, %r119, 1, %p6;\n\
    mov.u32             %r122, partial;                         // partial\n\
    add.u32             %r123, %r122, %r18;\n\
    shfl.sync.bfly.b32  %f86, %f1, 16, 31, 0xFFFFFFFF;\n\
    add.f32             %f87, %f1, %f86;\n\
    shfl.sync.bfly.b32  %f88, %f87, 8, 31, 0xFFFFFFFF;\n\
    add.f32             %f89, %f87, %f88;\n\
    shfl.sync.bfly.b32  %f90, %f89, 4, 31, 0xFFFFFFFF;\n\
    add.f32             %f91, %f89, %f90;\n\
    shfl.sync.bfly.b32  %f92, %f91, 2, 31, 0xFFFFFFFF;\n\
    add.f32             %f93, %f91, %f92;\n\
    shfl.sync.bfly.b32  %f94, %f93, 1, 31, 0xFFFFFFFF;\n\
    add.f32             %f95, %f93, %f94;\n\
    setp.lt.u32         %p7, %r121, 1;\n\
    @!%p7 bra           $skip;\n\
    mad.lo.u32          %r124, %r4, 1, %r121;\n\
    mad.lo.u32          %r125, %r124, 4, %r123;\n\
    st.shared.f32       [%r125], %f95;\n\
\n\
$skip:\n\
    bar.sync            0;\n\
    mov.f32             %f96, 0f00000000;\n\
    setp.lt.u32         %p8, %r1, 1;\n\
    @!%p8 bra           $skip_2;\n\
    mad.lo.u32          %r126, %r1, 4, %r123;\n\
    ld.shared.f32       %f97, [%r126];\n\
    add.f32             %f96, %f96, %f97;\n\
    ld.shared.f32       %f98, [%r126+4];\n\
    add.f32             %f96, %f96, %f98;\n\
    ld.shared.f32       %f99, [%r126+8];\n\
    add.f32             %f96, %f96, %f99;\n\
\n\
$skip_2:\n\
    mov.f32             %f100, %f96;\n\
    xor.b32             %r18, %r18, 12;\n\
    setp.lt.u32         %p9, %r1, 1;\n\
    @!%p9 bra           $skip_3;\n\
    add.u32             %r127, %r3, %r1;\n\
    cvt.u64.u32         %rd14, %r127;\n\
    shl.b64             %rd15, %rd14, 2;\n\
    add.u64             %rd16, %rd1, %rd15;\n\
    st.global.f32       [%rd16], %f100;\n\
\n\
$skip_3:\n\
    add.u32             %r3, %r3, %r5;\n\
    setp.lt.u32         %p10, %r3, 14336;\n\
    @%p10 bra           $row_loop;\n\
\n\
$row_done:\n\
    ret;\n\
}\n\
";
static const ptxgen_param llama_mwv_dp4a_q4k_gemv_k4096_n14336_w3_params[] = {
    { "y", PTXGEN_PARAM_POINTER, PTXGEN_PARAM_OUT, PTXGEN_F32, 57344, "n*4", 4 },
    { "w", PTXGEN_PARAM_POINTER, PTXGEN_PARAM_IN, PTXGEN_Q4_K, 33030144, "n*k/256*144", 16 },
    { "x", PTXGEN_PARAM_POINTER, PTXGEN_PARAM_IN, PTXGEN_Q8_1, 4608, "k/32*36", 4 },
};
static const ptxgen_config llama_mwv_dp4a_q4k_gemv_k4096_n14336_w3_config[] = {
    { "k", 4096, 0, NULL, 0, 0, 0, 1 },
    { "n", 14336, 0, NULL, 0, 0, 0, 1 },
    { "num_warps", 3, 0, NULL, 0, 0, 0, 1 },
    { "dims", 0, 0, "static", 0, 0, 0, 1 },
};
const ptxgen_kernel llama_mwv_dp4a_q4k_gemv_k4096_n14336_w3 = {
    "mwv_dp4a_q4k_gemv_k4096_n14336_w3", "mwv_dp4a_q4k_gemv_k4096_n14336_w3",
    llama_mwv_dp4a_q4k_gemv_k4096_n14336_w3_ptx, 12774, UINT64_C(0x9f598c402a006419),
    "mwv_dp4a_q4k_gemv", PTXGEN_GEMV, PTXGEN_Q4_K, PTXGEN_Q8_1, PTXGEN_Q8_1,
    75, 63, 0, 0, /* sm, isa, overlaps, specific */
    llama_mwv_dp4a_q4k_gemv_k4096_n14336_w3_params, 3,
    { 96, 1, 1 }, { 0, 0, 0 }, llama_grid_4, /* block, grid, grid_at */
    24, 0, NULL, 0, /* shared_static, shared_dynamic, shared_at, workspace */
    4096, 14336, 1, /* k, n, m */
    3, 0, 0, 0, 0, /* num_warps, head_dim, num_heads, num_kv_heads, max_seq_len */
    0, 0, /* dynamic_dims, seq_len_indirect */
    llama_mwv_dp4a_q4k_gemv_k4096_n14336_w3_config, 4,
    0, 0, /* registers, blocks_per_sm */
    0, /* preference */
    NULL, 0, 0, /* chosen_by, chosen_f32, chosen_q8 */
};

static const char llama_mwv_dp4a_q4k_gemv_k14336_n4096_w3_ptx[] = "\
// mwv_dp4a_q4k_gemv  k=14336 n=4096 num_warps=3  y[n] = W[n,k] x[k]\n\
// ptxgen 0.1.0  block 96  grid min(4096, sm_count*16)\n\
.version 6.3\n\
.target sm_75\n\
.address_size 64\n\
\n\
.visible .entry mwv_dp4a_q4k_gemv_k14336_n4096_w3(\n\
    .param .u64 y,\n\
    .param .u64 w,\n\
    .param .u64 x)\n\
.reqntid 96, 1, 1\n\
.maxnreg 64\n\
{\n\
    .reg .pred  %p<12>;\n\
    .reg .b16   %h<13>;\n\
    .reg .b32   %r<129>;\n\
    .reg .f32   %f<101>;\n\
    .reg .b64   %rd<17>;\n\
    .shared .align 16 .b32 partial[6];\n\
\n\
    ld.param.u64        %rd1, [y];\n\
    ld.param.u64        %rd2, [w];\n\
    ld.param.u64        %rd3, [x];\n\
    mov.u32             %r1, %tid.x;\n\
    and.b32             %r2, %r1, 31;                           // lane\n\
    mov.u32             %r3, %ctaid.x;\n\
    shr.u32             %r4, %r1, 5;                            // warp\n\
    mov.u32             %r5, %nctaid.x;\n\
    shr.u32             %r6, %r2, 4;\n\
    and.b32             %r7, %r2, 15;\n\
    shr.u32             %r8, %r7, 2;                            // chunk\n\
    mul.lo.u32          %r9, %r8, 2;\n\
    and.b32             %r10, %r2, 3;\n\
    mul.lo.u32          %r11, %r10, 8;\n\
    mad.lo.u32          %r12, %r7, 8, 16;\n\
    and.b32             %r13, %r8, 1;\n\
    setp.ne.u32         %p1, %r13, 0;\n\
    selp.u32            %r14, 0x7632, 0x5410, %p1;\n\
    setp.ge.u32         %p2, %r8, 2;\n\
    selp.u32            %r15, 2, 0, %p2;\n\
    selp.u32            %r16, 0x30303030, 0x3F3F3F3F, %p2;\n\
    selp.u32            %r17, 0x0F0F0F0F, 0, %p2;\n\
    mov.u32             %r18, 0;\n\
    setp.lt.u32         %p3, %r3, 4096;\n\
    @!%p3 bra           $row_done;\n\
\n\
$row_loop:\n\
    .pragma \"nounroll\";\n\
    mad.wide.u32        %rd4, %r3, 8064, %rd2;                  // &w[row]\n\
    mov.f32             %f1, 0f00000000;\n\
    mad.lo.u32          %r19, %r4, 2, %r6;\n\
    mul.lo.u32          %r20, %r9, 36;\n\
    mad.lo.u32          %r21, %r19, 288, %r20;\n\
    cvt.u64.u32         %rd5, %r21;\n\
    add.u64             %rd6, %rd3, %rd5;\n\
    cvt.u64.u32         %rd7, %r11;\n\
    add.u64             %rd8, %rd6, %rd7;\n\
    mov.u64             %rd9, %rd6;\n\
    mad.wide.u32        %rd10, %r19, 144, %rd4;\n\
    cvt.u64.u32         %rd11, %r12;\n\
    add.u64             %rd12, %rd10, %rd11;\n\
    mov.u64             %rd13, %rd10;\n\
    mov.u32             %r22, 0;                                // turn\n\
\n\
$turn_loop:                                                     // 32 weights a lane\n\
    .pragma \"nounroll\";\n\
    ld.global.nc.b16    %h1, [%rd9+36];\n\
    cvt.f32.f16         %f2, %h1;\n\
    ld.global.nc.v4.u32 {%r23, %r24, %r25, %r26}, [%rd13];\n\
    mov.b32             {%h2, %h3}, %r23;\n\
    cvt.f32.f16         %f3, %h3;\n\
    neg.f32             %f4, %f3;\n\
    shr.u32             %r27, %r26, 4;\n\
    prmt.b32            %r28, %r26, %r27, %r14;\n\
    prmt.b32            %r29, %r24, %r25, %r14;\n\
    shr.u32             %r30, %r29, %r15;\n\
    and.b32             %r31, %r30, %r16;\n\
    lop3.b32            %r32, %r28, %r17, %r31, 0xEA;\n\
    shr.u32             %r33, %r32, 24;\n\
    cvt.rn.f32.u32      %f5, %r33;\n\
    mul.f32             %f6, %f4, %f5;\n\
    ld.global.nc.s32    %r34, [%rd8+44];\n\
    ld.global.nc.s32    %r35, [%rd8+40];\n\
    dp4a.u32.s32        %r36, 0x01010101, %r35, 1262485504;\n\
    dp4a.u32.s32        %r37, 0x01010101, %r34, %r36;\n\
    mov.b32             %f7, %r37;\n\
    sub.f32             %f8, %f7, 0f4B400000;\n\
    cvt.f32.f16         %f9, %h2;\n\
    mul.f32             %f10, %f9, 0f3D800000;\n\
    bfe.u32             %r38, %r32, 8, 8;\n\
    cvt.rn.f32.u32      %f11, %r38;\n\
    mul.f32             %f12, %f10, %f11;\n\
    ld.global.nc.v2.u32 {%r39, %r40}, [%rd12];\n\
    and.b32             %r41, %r40, 0xF0F0F0F0;\n\
    and.b32             %r42, %r39, 0xF0F0F0F0;\n\
    dp4a.u32.s32        %r43, %r42, %r35, 1262485504;\n\
    dp4a.u32.s32        %r44, %r41, %r34, %r43;\n\
    mov.b32             %f13, %r44;\n\
    sub.f32             %f14, %f13, 0f4B400000;\n\
    mul.f32             %f15, %f12, %f14;\n\
    fma.rn.f32          %f16, %f6, %f8, %f15;\n\
    ld.global.nc.b16    %h4, [%rd9];\n\
    cvt.f32.f16         %f17, %h4;\n\
    neg.f32             %f18, %f3;\n\
    bfe.u32             %r45, %r32, 16, 8;\n\
    cvt.rn.f32.u32      %f19, %r45;\n\
    mul.f32             %f20, %f18, %f19;\n\
    ld.global.nc.s32    %r46, [%rd8+8];\n\
    ld.global.nc.s32    %r47, [%rd8+4];\n\
    dp4a.u32.s32        %r48, 0x01010101, %r47, 1262485504;\n\
    dp4a.u32.s32        %r49, 0x01010101, %r46, %r48;\n\
    mov.b32             %f21, %r49;\n\
    sub.f32             %f22, %f21, 0f4B400000;\n\
    and.b32             %r50, %r32, 0xFF;\n\
    cvt.rn.f32.u32      %f23, %r50;\n\
    mul.f32             %f24, %f9, %f23;\n\
    and.b32             %r51, %r40, 0x0F0F0F0F;\n\
    and.b32             %r52, %r39, 0x0F0F0F0F;\n\
    dp4a.u32.s32        %r53, %r52, %r47, 1262485504;\n\
    dp4a.u32.s32        %r54, %r51, %r46, %r53;\n\
    mov.b32             %f25, %r54;\n\
    sub.f32             %f26, %f25, 0f4B400000;\n\
    mul.f32             %f27, %f24, %f26;\n\
    fma.rn.f32          %f28, %f20, %f22, %f27;\n\
    fma.rn.f32          %f29, %f17, %f28, %f1;\n\
    fma.rn.f32          %f1, %f2, %f16, %f29;\n\
    ld.global.nc.b16    %h5, [%rd9+1764];\n\
    cvt.f32.f16         %f30, %h5;\n\
    ld.global.nc.v4.u32 {%r55, %r56, %r57, %r58}, [%rd13+864];\n\
    mov.b32             {%h6, %h7}, %r55;\n\
    cvt.f32.f16         %f31, %h7;\n\
    neg.f32             %f32, %f31;\n\
    shr.u32             %r59, %r58, 4;\n\
    prmt.b32            %r60, %r58, %r59, %r14;\n\
    prmt.b32            %r61, %r56, %r57, %r14;\n\
    shr.u32             %r62, %r61, %r15;\n\
    and.b32             %r63, %r62, %r16;\n\
    lop3.b32            %r64, %r60, %r17, %r63, 0xEA;\n\
    shr.u32             %r65, %r64, 24;\n\
    cvt.rn.f32.u32      %f33, %r65;\n\
    mul.f32             %f34, %f32, %f33;\n\
    ld.global.nc.s32    %r66, [%rd8+1772];\n\
    ld.global.nc.s32    %r67, [%rd8+1768];\n\
    dp4a.u32.s32        %r68, 0x01010101, %r67, 1262485504;\n\
    dp4a.u32.s32        %r69, 0x01010101, %r66, %r68;\n\
    mov.b32             %f35, %r69;\n\
    sub.f32             %f36, %f35, 0f4B400000;\n\
    cvt.f32.f16         %f37, %h6;\n\
    mul.f32             %f38, %f37, 0f3D800000;\n\
    bfe.u32             %r70, %r64, 8, 8;\n\
    cvt.rn.f32.u32      %f39, %r70;\n\
    mul.f32             %f40, %f38, %f39;\n\
    ld.global.nc.v2.u32 {%r71, %r72}, [%rd12+864];\n\
    and.b32             %r73, %r72, 0xF0F0F0F0;\n\
    and.b32             %r74, %r71, 0xF0F0F0F0;\n\
    dp4a.u32.s32        %r75, %r74, %r67, 1262485504;\n\
    dp4a.u32.s32        %r76, %r73, %r66, %r75;\n\
    mov.b32             %f41, %r76;\n\
    sub.f32             %f42, %f41, 0f4B400000;\n\
    mul.f32             %f43, %f40, %f42;\n\
    fma.rn.f32          %f44, %f34, %f36, %f43;\n\
    ld.global.nc.b16    %h8, [%rd9+1728];\n\
    cvt.f32.f16         %f45, %h8;\n\
    neg.f32             %f46, %f31;\n\
    bfe.u32             %r77, %r64, 16, 8;\n\
    cvt.rn.f32.u32      %f47, %r77;\n\
    mul.f32             %f48, %f46, %f47;\n\
    ld.global.nc.s32    %r78, [%rd8+1736];\n\
    ld.global.nc.s32    %r79, [%rd8+1732];\n\
    dp4a.u32.s32        %r80, 0x01010101, %r79, 1262485504;\n\
    dp4a.u32.s32        %r81, 0x01010101, %r78, %r80;\n\
    mov.b32             %f49, %r81;\n\
    sub.f32             %f50, %f49, 0f4B400000;\n\
    and.b32             %r82, %r64, 0xFF;\n\
    cvt.rn.f32.u32      %f51, %r82;\n\
    mul.f32             %f52, %f37, %f51;\n\
    and.b32             %r83, %r72, 0x0F0F0F0F;\n\
    and.b32             %r84, %r71, 0x0F0F0F0F;\n\
    dp4a.u32.s32        %r85, %r84, %r79, 1262485504;\n\
    dp4a.u32.s32        %r86, %r83, %r78, %r85;\n\
    mov.b32             %f53, %r86;\n\
    sub.f32             %f54, %f53, 0f4B400000;\n\
    mul.f32             %f55, %f52, %f54;\n\
    fma.rn.f32          %f56, %f48, %f50, %f55;\n\
    fma.rn.f32          %f57, %f45, %f56, %f1;\n\
    fma.rn.f32          %f1, %f30, %f44, %f57;\n\
    add.u64             %rd9, %rd9, 3456;\n\
    add.u64             %rd8, %rd8, 3456;\n\
    add.u64             %rd13, %rd13, 1728;\n\
    add.u64             %rd12, %rd12, 1728;\n\
    add.u32             %r22, %r22, 1;\n\
    setp.lt.u32         %p4, %r22, 4;\n\
    @%p4 bra            $turn_loop;\n\
    add.u32             %r87, %r19, 48;\n\
"
"\
    setp.lt.u32         %p5, %r87, 56;\n\
    @!%p5 bra           $rest_done;\n\
\n\
$rest_loop:                                                     // 16 weights a lane\n\
    .pragma \"nounroll\";\n\
    ld.global.nc.b16    %h9, [%rd9+36];\n\
    cvt.f32.f16         %f58, %h9;\n\
    ld.global.nc.v4.u32 {%r88, %r89, %r90, %r91}, [%rd13];\n\
    mov.b32             {%h10, %h11}, %r88;\n\
    cvt.f32.f16         %f59, %h11;\n\
    neg.f32             %f60, %f59;\n\
    shr.u32             %r92, %r91, 4;\n\
    prmt.b32            %r93, %r91, %r92, %r14;\n\
    prmt.b32            %r94, %r89, %r90, %r14;\n\
    shr.u32             %r95, %r94, %r15;\n\
    and.b32             %r96, %r95, %r16;\n\
    lop3.b32            %r97, %r93, %r17, %r96, 0xEA;\n\
    shr.u32             %r98, %r97, 24;\n\
    cvt.rn.f32.u32      %f61, %r98;\n\
    mul.f32             %f62, %f60, %f61;\n\
    ld.global.nc.s32    %r99, [%rd8+44];\n\
    ld.global.nc.s32    %r100, [%rd8+40];\n\
    dp4a.u32.s32        %r101, 0x01010101, %r100, 1262485504;\n\
    dp4a.u32.s32        %r102, 0x01010101, %r99, %r101;\n\
    mov.b32             %f63, %r102;\n\
    sub.f32             %f64, %f63, 0f4B400000;\n\
    cvt.f32.f16         %f65, %h10;\n\
    mul.f32             %f66, %f65, 0f3D800000;\n\
    bfe.u32             %r103, %r97, 8, 8;\n\
    cvt.rn.f32.u32      %f67, %r103;\n\
    mul.f32             %f68, %f66, %f67;\n\
    ld.global.nc.v2.u32 {%r104, %r105}, [%rd12];\n\
    and.b32             %r106, %r105, 0xF0F0F0F0;\n\
    and.b32             %r107, %r104, 0xF0F0F0F0;\n\
    dp4a.u32.s32        %r108, %r107, %r100, 1262485504;\n\
    dp4a.u32.s32        %r109, %r106, %r99, %r108;\n\
    mov.b32             %f69, %r109;\n\
    sub.f32             %f70, %f69, 0f4B400000;\n\
    mul.f32             %f71, %f68, %f70;\n\
    fma.rn.f32          %f72, %f62, %f64, %f71;\n\
    ld.global.nc.b16    %h12, [%rd9];\n\
    cvt.f32.f16         %f73, %h12;\n\
    neg.f32             %f74, %f59;\n\
    bfe.u32             %r110, %r97, 16, 8;\n\
    cvt.rn.f32.u32      %f75, %r110;\n\
    mul.f32             %f76, %f74, %f75;\n\
    ld.global.nc.s32    %r111, [%rd8+8];\n\
    ld.global.nc.s32    %r112, [%rd8+4];\n\
    dp4a.u32.s32        %r113, 0x01010101, %r112, 1262485504;\n\
    dp4a.u32.s32        %r114, 0x01010101, %r111, %r113;\n\
    mov.b32             %f77, %r114;\n\
    sub.f32             %f78, %f77, 0f4B400000;\n\
    and.b32             %r115, %r97, 0xFF;\n\
    cvt.rn.f32.u32      %f79, %r115;\n\
    mul.f32             %f80, %f65, %f79;\n\
    and.b32             %r116, %r105, 0x0F0F0F0F;\n\
    and.b32             %r117, %r104, 0x0F0F0F0F;\n\
    dp4a.u32.s32        %r118, %r117, %r112, 1262485504;\n\
    dp4a.u32.s32        %r119, %r116, %r111, %r118;\n\
    mov.b32             %f81, %r119;\n\
    sub.f32             %f82, %f81, 0f4B400000;\n\
    mul.f32             %f83, %f80, %f82;\n\
    fma.rn.f32          %f84, %f76, %f78, %f83;\n\
    fma.rn.f32          %f85, %f73, %f84, %f1;\n\
    fma.rn.f32          %f1, %f58, %f72, %f85;\n\
    add.u64             %rd9, %rd9, 1728;\n\
    add.u64             %rd8, %rd8, 1728;\n\
    add.u64             %rd13, %rd13, 864;\n\
    add.u64             %rd12, %rd12, 864;\n\
    add.u32             %r87, %r87, 6;\n\
    setp.lt.u32         %p6, %r87, 56;\n\
    @%p6 bra            $rest_loop;\n\
\n\
$rest_done:\n\
    shr.u32             %r120, %r2, 5;\n\
    and.b32             %r121, %r2, 31;\n\
    setp.eq.u32         %p7, %r121, 0;\n\
    selp.u32            %r122, %r120, 1, %p7;\n\
    mov.u32             %r123, partial;                         // partial\n\
    add.u32             %r124, %r123, %r18;\n\
    shfl.sync.bfly.b32  %f86, %f1, 16, 31, 0xFFFFFFFF;\n\
    add.f32             %f87, %f1, %f86;\n\
    shfl.sync.bfly.b32  %f88, %f87, 8, 31, 0xFFFFFFFF;\n\
    add.f32             %f89, %f87, %f88;\n\
    shfl.sync.bfly.b32  %f90, %f89, 4, 31, 0xFFFFFFFF;\n\
    add.f32             %f91, %f89, %f90;\n\
    shfl.sync.bfly.b32  %f92, %f91, 2, 31, 0xFFFFFFFF;\n\
    add.f32             %f93, %f91, %f92;\n\
    shfl.sync.bfly.b32  %f94, %f93, 1, 31, 0xFFFFFFFF;\n\
    add.f32             %f95, %f93, %f94;\n\
    setp.lt.u32         %p8, %r122, 1;\n\
    @!%p8 bra           $skip;\n\
    mad.lo.u32          %r125, %r4, 1, %r122;\n\
    mad.lo.u32          %r126, %r125, 4, %r124;\n\
    st.shared.f32       [%r126], %f95;\n\
\n\
$skip:\n\
    bar.sync            0;\n\
    mov.f32             %f96, 0f00000000;\n\
    setp.lt.u32         %p9, %r1, 1;\n\
    @!%p9 bra           $skip_2;\n\
    mad.lo.u32          %r127, %r1, 4, %r124;\n\
    ld.shared.f32       %f97, [%r127];\n\
    add.f32             %f96, %f96, %f97;\n\
    ld.shared.f32       %f98, [%r127+4];\n\
    add.f32             %f96, %f96, %f98;\n\
    ld.shared.f32       %f99, [%r127+8];\n\
    add.f32             %f96, %f96, %f99;\n\
\n\
$skip_2:\n\
    mov.f32             %f100, %f96;\n\
    xor.b32             %r18, %r18, 12;\n\
    setp.lt.u32         %p10, %r1, 1;\n\
    @!%p10 bra          $skip_3;\n\
    add.u32             %r128, %r3, %r1;\n\
    cvt.u64.u32         %rd14, %r128;\n\
    shl.b64             %rd15, %rd14, 2;\n\
    add.u64             %rd16, %rd1, %rd15;\n\
    st.global.f32       [%rd16], %f100;\n\
\n\
$skip_3:\n\
    add.u32             %r3, %r3, %r5;\n\
    setp.lt.u32         %p11, %r3, 4096;\n\
    @%p11 bra           $row_loop;\n\
\n\
$row_done:\n\
    ret;\n\
}\n\
";
static const ptxgen_param llama_mwv_dp4a_q4k_gemv_k14336_n4096_w3_params[] = {
    { "y", PTXGEN_PARAM_POINTER, PTXGEN_PARAM_OUT, PTXGEN_F32, 16384, "n*4", 4 },
    { "w", PTXGEN_PARAM_POINTER, PTXGEN_PARAM_IN, PTXGEN_Q4_K, 33030144, "n*k/256*144", 16 },
    { "x", PTXGEN_PARAM_POINTER, PTXGEN_PARAM_IN, PTXGEN_Q8_1, 16128, "k/32*36", 4 },
};
static const ptxgen_config llama_mwv_dp4a_q4k_gemv_k14336_n4096_w3_config[] = {
    { "k", 14336, 0, NULL, 0, 0, 0, 1 },
    { "n", 4096, 0, NULL, 0, 0, 0, 1 },
    { "num_warps", 3, 0, NULL, 0, 0, 0, 1 },
    { "dims", 0, 0, "static", 0, 0, 0, 1 },
};
const ptxgen_kernel llama_mwv_dp4a_q4k_gemv_k14336_n4096_w3 = {
    "mwv_dp4a_q4k_gemv_k14336_n4096_w3", "mwv_dp4a_q4k_gemv_k14336_n4096_w3",
    llama_mwv_dp4a_q4k_gemv_k14336_n4096_w3_ptx, 13070, UINT64_C(0x72a3a4fdca696ae8),
    "mwv_dp4a_q4k_gemv", PTXGEN_GEMV, PTXGEN_Q4_K, PTXGEN_Q8_1, PTXGEN_Q8_1,
    75, 63, 0, 0, /* sm, isa, overlaps, specific */
    llama_mwv_dp4a_q4k_gemv_k14336_n4096_w3_params, 3,
    { 96, 1, 1 }, { 0, 0, 0 }, llama_grid_4, /* block, grid, grid_at */
    24, 0, NULL, 0, /* shared_static, shared_dynamic, shared_at, workspace */
    14336, 4096, 1, /* k, n, m */
    3, 0, 0, 0, 0, /* num_warps, head_dim, num_heads, num_kv_heads, max_seq_len */
    0, 0, /* dynamic_dims, seq_len_indirect */
    llama_mwv_dp4a_q4k_gemv_k14336_n4096_w3_config, 4,
    0, 0, /* registers, blocks_per_sm */
    0, /* preference */
    NULL, 0, 0, /* chosen_by, chosen_f32, chosen_q8 */
};

static const char llama_incremental_attention_d128_h32_kv8_s8192_ptx[] = "\
// incremental_attention  head_dim=128 num_heads=32 num_kv_heads=8 max_seq_len=8192  o[h] = softmax(q[h] K' scale) V\n\
// ptxgen 0.1.0  block 32  grid 32\n\
.version 6.3\n\
.target sm_75\n\
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
    mul.f32             %f5, %f1, 0f3E0293EE;\n\
    mul.f32             %f6, %f2, 0f3E0293EE;\n\
    mul.f32             %f7, %f3, 0f3E0293EE;\n\
    mul.f32             %f8, %f4, 0f3E0293EE;\n\
    ld.global.nc.v4.f32 {%f9, %f10, %f11, %f12}, [%rd6+128];\n\
    mul.f32             %f13, %f9, 0f3E0293EE;\n\
    mul.f32             %f14, %f10, 0f3E0293EE;\n\
    mul.f32             %f15, %f11, 0f3E0293EE;\n\
    mul.f32             %f16, %f12, 0f3E0293EE;\n\
    ld.global.nc.v4.f32 {%f17, %f18, %f19, %f20}, [%rd6+256];\n\
    mul.f32             %f21, %f17, 0f3E0293EE;\n\
    mul.f32             %f22, %f18, 0f3E0293EE;\n\
    mul.f32             %f23, %f19, 0f3E0293EE;\n\
    mul.f32             %f24, %f20, 0f3E0293EE;\n\
    ld.global.nc.v4.f32 {%f25, %f26, %f27, %f28}, [%rd6+384];\n\
    mul.f32             %f29, %f25, 0f3E0293EE;\n\
    mul.f32             %f30, %f26, 0f3E0293EE;\n\
    mul.f32             %f31, %f27, 0f3E0293EE;\n\
    mul.f32             %f32, %f28, 0f3E0293EE;\n\
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
    mul.lo.u64          %rd8, %rd7, 512;\n\
    add.u64             %rd9, %rd4, %rd8;\n\
    mul.wide.u32        %rd10, %r4, 16;\n\
    add.u64             %rd11, %rd3, %rd8;\n\
    min.u32             %r7, %r1, 8192;                         // seq_len\n\
    shr.u32             %r8, %r7, 3;\n\
    mov.u64             %rd12, 0;\n\
    mov.u64             %rd13, 0;\n\
    add.u64             %rd14, %rd9, %rd10;\n\
    mul.wide.u32        %rd15, %r5, 512;\n\
    add.u64             %rd16, %rd11, %rd10;\n\
    add.u64             %rd12, %rd16, %rd15;\n\
    add.u64             %rd13, %rd14, %rd15;\n\
\n\
    // attend: several positions of each group of lanes at once\n\
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
    mul.f32             %f68, %f5, %f64;\n\
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
    add.f32             %f85, %f83, %f84;\n\
    shfl.sync.bfly.b32  %f86, %f85, 2, 31, 0xFFFFFFFF;\n\
    add.f32             %f87, %f85, %f86;\n\
    shfl.sync.bfly.b32  %f88, %f87, 1, 31, 0xFFFFFFFF;\n\
    add.f32             %f89, %f87, %f88;\n\
    max.f32             %f90, %f51, %f89;\n\
    ld.global.nc.v4.f32 {%f91, %f92, %f93, %f94}, [%rd12+2432];\n\
    ld.global.nc.v4.f32 {%f95, %f96, %f97, %f98}, [%rd12+2304];\n\
    ld.global.nc.v4.f32 {%f99, %f100, %f101, %f102}, [%rd12+2176];\n\
    ld.global.nc.v4.f32 {%f103, %f104, %f105, %f106}, [%rd12+2048];\n\
    mul.f32             %f107, %f5, %f103;\n\
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
    add.f32             %f124, %f122, %f123;\n\
    shfl.sync.bfly.b32  %f125, %f124, 2, 31, 0xFFFFFFFF;\n\
    add.f32             %f126, %f124, %f125;\n\
    shfl.sync.bfly.b32  %f127, %f126, 1, 31, 0xFFFFFFFF;\n\
    add.f32             %f128, %f126, %f127;\n\
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
    sub.f32             %f162, %f51, %f129;\n\
    ex2.approx.ftz.f32  %f163, %f162;\n\
    mul.f32             %f34, %f34, %f163;\n\
    mul.f32             %f35, %f35, %f163;\n\
    mul.f32             %f36, %f36, %f163;\n\
    mul.f32             %f37, %f37, %f163;\n\
    mul.f32             %f38, %f38, %f163;\n\
    mul.f32             %f39, %f39, %f163;\n\
    mul.f32             %f40, %f40, %f163;\n\
    mul.f32             %f41, %f41, %f163;\n\
    mul.f32             %f42, %f42, %f163;\n\
    mul.f32             %f43, %f43, %f163;\n\
    mul.f32             %f44, %f44, %f163;\n\
    mul.f32             %f45, %f45, %f163;\n\
    mul.f32             %f46, %f46, %f163;\n\
    mul.f32             %f47, %f47, %f163;\n\
    mul.f32             %f48, %f48, %f163;\n\
    mul.f32             %f49, %f49, %f163;\n\
    mul.f32             %f50, %f50, %f163;\n\
    sub.f32             %f164, %f89, %f33;\n\
"
"\
    ex2.approx.ftz.f32  %f165, %f164;\n\
    add.f32             %f34, %f34, %f165;\n\
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
    sub.f32             %f166, %f128, %f33;\n\
    ex2.approx.ftz.f32  %f167, %f166;\n\
    add.f32             %f34, %f34, %f167;\n\
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
    // attend: the positions left over, one a group\n\
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
    mul.f32             %f185, %f5, %f181;\n\
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
    add.f32             %f202, %f200, %f201;\n\
    shfl.sync.bfly.b32  %f203, %f202, 2, 31, 0xFFFFFFFF;\n\
    add.f32             %f204, %f202, %f203;\n\
    shfl.sync.bfly.b32  %f205, %f204, 1, 31, 0xFFFFFFFF;\n\
    add.f32             %f206, %f204, %f205;\n\
    selp.f32            %f207, %f206, 0fFF800000, %p4;\n\
    max.f32             %f208, %f168, %f207;\n\
    ld.global.nc.v4.f32 {%f209, %f210, %f211, %f212}, [%rd13];\n\
    ld.global.nc.v4.f32 {%f213, %f214, %f215, %f216}, [%rd13+128];\n\
    ld.global.nc.v4.f32 {%f217, %f218, %f219, %f220}, [%rd13+256];\n\
    ld.global.nc.v4.f32 {%f221, %f222, %f223, %f224}, [%rd13+384];\n\
    mov.f32             %f33, %f208;\n\
    sub.f32             %f225, %f168, %f208;\n\
    ex2.approx.ftz.f32  %f226, %f225;\n\
    mul.f32             %f34, %f34, %f226;\n\
    mul.f32             %f35, %f35, %f226;\n\
    mul.f32             %f36, %f36, %f226;\n\
    mul.f32             %f37, %f37, %f226;\n\
    mul.f32             %f38, %f38, %f226;\n\
    mul.f32             %f39, %f39, %f226;\n\
    mul.f32             %f40, %f40, %f226;\n\
    mul.f32             %f41, %f41, %f226;\n\
    mul.f32             %f42, %f42, %f226;\n\
    mul.f32             %f43, %f43, %f226;\n\
    mul.f32             %f44, %f44, %f226;\n\
    mul.f32             %f45, %f45, %f226;\n\
    mul.f32             %f46, %f46, %f226;\n\
    mul.f32             %f47, %f47, %f226;\n\
    mul.f32             %f48, %f48, %f226;\n\
    mul.f32             %f49, %f49, %f226;\n\
    mul.f32             %f50, %f50, %f226;\n\
    sub.f32             %f227, %f207, %f33;\n\
    ex2.approx.ftz.f32  %f228, %f227;\n\
    add.f32             %f34, %f34, %f228;\n\
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
    sub.f32             %f231, %f33, %f230;\n\
    ex2.approx.ftz.f32  %f232, %f231;\n\
    mul.f32             %f34, %f34, %f232;\n\
    mul.f32             %f35, %f35, %f232;\n\
    mul.f32             %f36, %f36, %f232;\n\
    mul.f32             %f37, %f37, %f232;\n\
    mul.f32             %f38, %f38, %f232;\n\
    mul.f32             %f39, %f39, %f232;\n\
    mul.f32             %f40, %f40, %f232;\n\
    mul.f32             %f41, %f41, %f232;\n\
    mul.f32             %f42, %f42, %f232;\n\
    mul.f32             %f43, %f43, %f232;\n\
    mul.f32             %f44, %f44, %f232;\n\
    mul.f32             %f45, %f45, %f232;\n\
    mul.f32             %f46, %f46, %f232;\n\
    mul.f32             %f47, %f47, %f232;\n\
    mul.f32             %f48, %f48, %f232;\n\
    mul.f32             %f49, %f49, %f232;\n\
    mul.f32             %f50, %f50, %f232;\n\
    mov.f32             %f33, %f230;\n\
    shfl.sync.bfly.b32  %f233, %f34, 8, 31, 0xFFFFFFFF;\n\
    add.f32             %f34, %f34, %f233;\n\
    shfl.sync.bfly.b32  %f234, %f35, 8, 31, 0xFFFFFFFF;\n\
    add.f32             %f35, %f35, %f234;\n\
    shfl.sync.bfly.b32  %f235, %f36, 8, 31, 0xFFFFFFFF;\n\
    add.f32             %f36, %f36, %f235;\n\
    shfl.sync.bfly.b32  %f236, %f37, 8, 31, 0xFFFFFFFF;\n\
    add.f32             %f37, %f37, %f236;\n\
    shfl.sync.bfly.b32  %f237, %f38, 8, 31, 0xFFFFFFFF;\n\
    add.f32             %f38, %f38, %f237;\n\
    shfl.sync.bfly.b32  %f238, %f39, 8, 31, 0xFFFFFFFF;\n\
    add.f32             %f39, %f39, %f238;\n\
    shfl.sync.bfly.b32  %f239, %f40, 8, 31, 0xFFFFFFFF;\n\
    add.f32             %f40, %f40, %f239;\n\
    shfl.sync.bfly.b32  %f240, %f41, 8, 31, 0xFFFFFFFF;\n\
    add.f32             %f41, %f41, %f240;\n\
"
"\
    shfl.sync.bfly.b32  %f241, %f42, 8, 31, 0xFFFFFFFF;\n\
    add.f32             %f42, %f42, %f241;\n\
    shfl.sync.bfly.b32  %f242, %f43, 8, 31, 0xFFFFFFFF;\n\
    add.f32             %f43, %f43, %f242;\n\
    shfl.sync.bfly.b32  %f243, %f44, 8, 31, 0xFFFFFFFF;\n\
    add.f32             %f44, %f44, %f243;\n\
    shfl.sync.bfly.b32  %f244, %f45, 8, 31, 0xFFFFFFFF;\n\
    add.f32             %f45, %f45, %f244;\n\
    shfl.sync.bfly.b32  %f245, %f46, 8, 31, 0xFFFFFFFF;\n\
    add.f32             %f46, %f46, %f245;\n\
    shfl.sync.bfly.b32  %f246, %f47, 8, 31, 0xFFFFFFFF;\n\
    add.f32             %f47, %f47, %f246;\n\
    shfl.sync.bfly.b32  %f247, %f48, 8, 31, 0xFFFFFFFF;\n\
    add.f32             %f48, %f48, %f247;\n\
    shfl.sync.bfly.b32  %f248, %f49, 8, 31, 0xFFFFFFFF;\n\
    add.f32             %f49, %f49, %f248;\n\
    shfl.sync.bfly.b32  %f249, %f50, 8, 31, 0xFFFFFFFF;\n\
    add.f32             %f50, %f50, %f249;\n\
    shfl.sync.bfly.b32  %f250, %f33, 16, 31, 0xFFFFFFFF;\n\
    max.f32             %f251, %f33, %f250;\n\
    sub.f32             %f252, %f33, %f251;\n\
    ex2.approx.ftz.f32  %f253, %f252;\n\
    mul.f32             %f34, %f34, %f253;\n\
    mul.f32             %f35, %f35, %f253;\n\
    mul.f32             %f36, %f36, %f253;\n\
    mul.f32             %f37, %f37, %f253;\n\
    mul.f32             %f38, %f38, %f253;\n\
    mul.f32             %f39, %f39, %f253;\n\
    mul.f32             %f40, %f40, %f253;\n\
    mul.f32             %f41, %f41, %f253;\n\
    mul.f32             %f42, %f42, %f253;\n\
    mul.f32             %f43, %f43, %f253;\n\
    mul.f32             %f44, %f44, %f253;\n\
    mul.f32             %f45, %f45, %f253;\n\
    mul.f32             %f46, %f46, %f253;\n\
    mul.f32             %f47, %f47, %f253;\n\
    mul.f32             %f48, %f48, %f253;\n\
    mul.f32             %f49, %f49, %f253;\n\
    mul.f32             %f50, %f50, %f253;\n\
    mov.f32             %f33, %f251;\n\
    shfl.sync.bfly.b32  %f254, %f34, 16, 31, 0xFFFFFFFF;\n\
    add.f32             %f34, %f34, %f254;\n\
    shfl.sync.bfly.b32  %f255, %f35, 16, 31, 0xFFFFFFFF;\n\
    add.f32             %f35, %f35, %f255;\n\
    shfl.sync.bfly.b32  %f256, %f36, 16, 31, 0xFFFFFFFF;\n\
    add.f32             %f36, %f36, %f256;\n\
    shfl.sync.bfly.b32  %f257, %f37, 16, 31, 0xFFFFFFFF;\n\
    add.f32             %f37, %f37, %f257;\n\
    shfl.sync.bfly.b32  %f258, %f38, 16, 31, 0xFFFFFFFF;\n\
    add.f32             %f38, %f38, %f258;\n\
    shfl.sync.bfly.b32  %f259, %f39, 16, 31, 0xFFFFFFFF;\n\
    add.f32             %f39, %f39, %f259;\n\
    shfl.sync.bfly.b32  %f260, %f40, 16, 31, 0xFFFFFFFF;\n\
    add.f32             %f40, %f40, %f260;\n\
    shfl.sync.bfly.b32  %f261, %f41, 16, 31, 0xFFFFFFFF;\n\
    add.f32             %f41, %f41, %f261;\n\
    shfl.sync.bfly.b32  %f262, %f42, 16, 31, 0xFFFFFFFF;\n\
    add.f32             %f42, %f42, %f262;\n\
    shfl.sync.bfly.b32  %f263, %f43, 16, 31, 0xFFFFFFFF;\n\
    add.f32             %f43, %f43, %f263;\n\
    shfl.sync.bfly.b32  %f264, %f44, 16, 31, 0xFFFFFFFF;\n\
    add.f32             %f44, %f44, %f264;\n\
    shfl.sync.bfly.b32  %f265, %f45, 16, 31, 0xFFFFFFFF;\n\
    add.f32             %f45, %f45, %f265;\n\
    shfl.sync.bfly.b32  %f266, %f46, 16, 31, 0xFFFFFFFF;\n\
    add.f32             %f46, %f46, %f266;\n\
    shfl.sync.bfly.b32  %f267, %f47, 16, 31, 0xFFFFFFFF;\n\
    add.f32             %f47, %f47, %f267;\n\
    shfl.sync.bfly.b32  %f268, %f48, 16, 31, 0xFFFFFFFF;\n\
    add.f32             %f48, %f48, %f268;\n\
    shfl.sync.bfly.b32  %f269, %f49, 16, 31, 0xFFFFFFFF;\n\
    add.f32             %f49, %f49, %f269;\n\
    shfl.sync.bfly.b32  %f270, %f50, 16, 31, 0xFFFFFFFF;\n\
    add.f32             %f50, %f50, %f270;\n\
\n\
    // store\n\
    rcp.rn.f32          %f271, %f34;\n\
    setp.gt.f32         %p6, %f34, 0f00000000;\n\
    selp.f32            %f272, %f271, 0f00000000, %p6;\n\
    mad.wide.u32        %rd18, %r3, 512, %rd1;\n\
    mad.wide.u32        %rd19, %r4, 16, %rd18;\n\
    setp.eq.u32         %p7, %r5, 0;\n\
    @!%p7 bra           $skip;\n\
    mul.f32             %f273, %f35, %f272;\n\
    mul.f32             %f274, %f36, %f272;\n\
    mul.f32             %f275, %f37, %f272;\n\
    mul.f32             %f276, %f38, %f272;\n\
    st.global.v4.f32    [%rd19], {%f273, %f274, %f275, %f276};\n\
    mul.f32             %f277, %f39, %f272;\n\
    mul.f32             %f278, %f40, %f272;\n\
    mul.f32             %f279, %f41, %f272;\n\
    mul.f32             %f280, %f42, %f272;\n\
    st.global.v4.f32    [%rd19+128], {%f277, %f278, %f279, %f280};\n\
    mul.f32             %f281, %f43, %f272;\n\
    mul.f32             %f282, %f44, %f272;\n\
    mul.f32             %f283, %f45, %f272;\n\
    mul.f32             %f284, %f46, %f272;\n\
    st.global.v4.f32    [%rd19+256], {%f281, %f282, %f283, %f284};\n\
    mul.f32             %f285, %f47, %f272;\n\
    mul.f32             %f286, %f48, %f272;\n\
    mul.f32             %f287, %f49, %f272;\n\
    mul.f32             %f288, %f50, %f272;\n\
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
    llama_incremental_attention_d128_h32_kv8_s8192_ptx, 20816, UINT64_C(0x020ef0e1ce31a40b),
    "incremental_attention", PTXGEN_ATTENTION, PTXGEN_F32, PTXGEN_F32, PTXGEN_F32,
    75, 63, 0, 0, /* sm, isa, overlaps, specific */
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

static const char llama_incremental_attention_d128_h32_kv8_s8192_indirect_ptx[] = "\
// incremental_attention  head_dim=128 num_heads=32 num_kv_heads=8 max_seq_len=8192 seq_len=indirect  o[h] = softmax(q[h] K' scale) V\n\
// ptxgen 0.1.0  block 32  grid 32\n\
.version 6.3\n\
.target sm_75\n\
.address_size 64\n\
\n\
.visible .entry incremental_attention_d128_h32_kv8_s8192_indirect(\n\
    .param .u64 o,\n\
    .param .u64 q,\n\
    .param .u64 k,\n\
    .param .u64 v,\n\
    .param .u64 seq_len)\n\
.reqntid 32, 1, 1\n\
.maxnreg 96\n\
{\n\
    .reg .pred  %p<8>;\n\
    .reg .b32   %r<14>;\n\
    .reg .f32   %f<289>;\n\
    .reg .b64   %rd<21>;\n\
\n\
    ld.param.u64        %rd1, [o];\n\
    ld.param.u64        %rd2, [q];\n\
    ld.param.u64        %rd3, [k];\n\
    ld.param.u64        %rd4, [v];\n\
    ld.param.u64        %rd5, [seq_len];\n\
    mov.u32             %r1, %tid.x;\n\
    mov.u32             %r2, %ctaid.x;                          // head\n\
\n\
    // load q\n\
    and.b32             %r3, %r1, 7;                            // piece\n\
    shr.u32             %r4, %r1, 3;                            // group\n\
    mad.wide.u32        %rd6, %r2, 512, %rd2;\n\
    mad.wide.u32        %rd7, %r3, 16, %rd6;\n\
    ld.global.nc.v4.f32 {%f1, %f2, %f3, %f4}, [%rd7];\n\
    mul.f32             %f5, %f1, 0f3E0293EE;\n\
    mul.f32             %f6, %f2, 0f3E0293EE;\n\
    mul.f32             %f7, %f3, 0f3E0293EE;\n\
    mul.f32             %f8, %f4, 0f3E0293EE;\n\
    ld.global.nc.v4.f32 {%f9, %f10, %f11, %f12}, [%rd7+128];\n\
    mul.f32             %f13, %f9, 0f3E0293EE;\n\
    mul.f32             %f14, %f10, 0f3E0293EE;\n\
    mul.f32             %f15, %f11, 0f3E0293EE;\n\
    mul.f32             %f16, %f12, 0f3E0293EE;\n\
    ld.global.nc.v4.f32 {%f17, %f18, %f19, %f20}, [%rd7+256];\n\
    mul.f32             %f21, %f17, 0f3E0293EE;\n\
    mul.f32             %f22, %f18, 0f3E0293EE;\n\
    mul.f32             %f23, %f19, 0f3E0293EE;\n\
    mul.f32             %f24, %f20, 0f3E0293EE;\n\
    ld.global.nc.v4.f32 {%f25, %f26, %f27, %f28}, [%rd7+384];\n\
    mul.f32             %f29, %f25, 0f3E0293EE;\n\
    mul.f32             %f30, %f26, 0f3E0293EE;\n\
    mul.f32             %f31, %f27, 0f3E0293EE;\n\
    mul.f32             %f32, %f28, 0f3E0293EE;\n\
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
    shr.u32             %r5, %r2, 2;                            // kv_head\n\
    mul.wide.u32        %rd8, %r5, 8192;\n\
    mul.lo.u64          %rd9, %rd8, 512;\n\
    add.u64             %rd10, %rd4, %rd9;\n\
    mul.wide.u32        %rd11, %r3, 16;\n\
    add.u64             %rd12, %rd3, %rd9;\n\
    ld.global.u32       %r6, [%rd5];\n\
    min.u32             %r7, %r6, 8192;                         // seq_len\n\
    shr.u32             %r8, %r7, 3;\n\
    mov.u64             %rd13, 0;\n\
    mov.u64             %rd14, 0;\n\
    add.u64             %rd15, %rd10, %rd11;\n\
    mul.wide.u32        %rd16, %r4, 512;\n\
    add.u64             %rd17, %rd12, %rd11;\n\
    add.u64             %rd13, %rd17, %rd16;\n\
    add.u64             %rd14, %rd15, %rd16;\n\
\n\
    // attend: several positions of each group of lanes at once\n\
    mov.u32             %r9, 0;                                 // turn\n\
    setp.lt.u32         %p1, %r9, %r8;\n\
    @!%p1 bra           $turn_done;\n\
\n\
$turn_loop:                                                     // 64 elements a lane\n\
    .pragma \"nounroll\";\n\
    mov.f32             %f51, %f33;\n\
    ld.global.nc.v4.f32 {%f52, %f53, %f54, %f55}, [%rd13+384];\n\
    ld.global.nc.v4.f32 {%f56, %f57, %f58, %f59}, [%rd13+256];\n\
    ld.global.nc.v4.f32 {%f60, %f61, %f62, %f63}, [%rd13+128];\n\
    ld.global.nc.v4.f32 {%f64, %f65, %f66, %f67}, [%rd13];\n\
    mul.f32             %f68, %f5, %f64;\n\
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
    add.f32             %f85, %f83, %f84;\n\
    shfl.sync.bfly.b32  %f86, %f85, 2, 31, 0xFFFFFFFF;\n\
    add.f32             %f87, %f85, %f86;\n\
    shfl.sync.bfly.b32  %f88, %f87, 1, 31, 0xFFFFFFFF;\n\
    add.f32             %f89, %f87, %f88;\n\
    max.f32             %f90, %f51, %f89;\n\
    ld.global.nc.v4.f32 {%f91, %f92, %f93, %f94}, [%rd13+2432];\n\
    ld.global.nc.v4.f32 {%f95, %f96, %f97, %f98}, [%rd13+2304];\n\
    ld.global.nc.v4.f32 {%f99, %f100, %f101, %f102}, [%rd13+2176];\n\
    ld.global.nc.v4.f32 {%f103, %f104, %f105, %f106}, [%rd13+2048];\n\
    mul.f32             %f107, %f5, %f103;\n\
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
    add.f32             %f124, %f122, %f123;\n\
    shfl.sync.bfly.b32  %f125, %f124, 2, 31, 0xFFFFFFFF;\n\
    add.f32             %f126, %f124, %f125;\n\
    shfl.sync.bfly.b32  %f127, %f126, 1, 31, 0xFFFFFFFF;\n\
    add.f32             %f128, %f126, %f127;\n\
    max.f32             %f129, %f90, %f128;\n\
    ld.global.nc.v4.f32 {%f130, %f131, %f132, %f133}, [%rd14];\n\
    ld.global.nc.v4.f32 {%f134, %f135, %f136, %f137}, [%rd14+128];\n\
    ld.global.nc.v4.f32 {%f138, %f139, %f140, %f141}, [%rd14+256];\n\
    ld.global.nc.v4.f32 {%f142, %f143, %f144, %f145}, [%rd14+384];\n\
    ld.global.nc.v4.f32 {%f146, %f147, %f148, %f149}, [%rd14+2048];\n\
    ld.global.nc.v4.f32 {%f150, %f151, %f152, %f153}, [%rd14+2176];\n\
    ld.global.nc.v4.f32 {%f154, %f155, %f156, %f157}, [%rd14+2304];\n\
    ld.global.nc.v4.f32 {%f158, %f159, %f160, %f161}, [%rd14+2432];\n\
    mov.f32             %f33, %f129;\n\
    sub.f32             %f162, %f51, %f129;\n\
    ex2.approx.ftz.f32  %f163, %f162;\n\
    mul.f32             %f34, %f34, %f163;\n\
    mul.f32             %f35, %f35, %f163;\n\
    mul.f32             %f36, %f36, %f163;\n\
    mul.f32             %f37, %f37, %f163;\n\
    mul.f32             %f38, %f38, %f163;\n\
    mul.f32             %f39, %f39, %f163;\n\
    mul.f32             %f40, %f40, %f163;\n\
    mul.f32             %f41, %f41, %f163;\n\
    mul.f32             %f42, %f42, %f163;\n\
    mul.f32             %f43, %f43, %f163;\n\
    mul.f32             %f44, %f44, %f163;\n\
    mul.f32             %f45, %f45, %f163;\n\
    mul.f32             %f46, %f46, %f163;\n\
    mul.f32             %f47, %f47, %f163;\n\
    mul.f32             %f48, %f48, %f163;\n\
    mul.f32             %f49, %f49, %f163;\n\
"
"\
    mul.f32             %f50, %f50, %f163;\n\
    sub.f32             %f164, %f89, %f33;\n\
    ex2.approx.ftz.f32  %f165, %f164;\n\
    add.f32             %f34, %f34, %f165;\n\
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
    sub.f32             %f166, %f128, %f33;\n\
    ex2.approx.ftz.f32  %f167, %f166;\n\
    add.f32             %f34, %f34, %f167;\n\
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
    add.u64             %rd13, %rd13, 4096;\n\
    add.u64             %rd14, %rd14, 4096;\n\
    add.u32             %r9, %r9, 1;\n\
    setp.lt.u32         %p2, %r9, %r8;\n\
    @%p2 bra            $turn_loop;\n\
\n\
$turn_done:\n\
\n\
    // attend: the positions left over, one a group\n\
    mul.lo.u32          %r10, %r8, 8;\n\
    setp.lt.u32         %p3, %r10, %r7;\n\
    @!%p3 bra           $rest_done;\n\
\n\
$rest_loop:\n\
    .pragma \"nounroll\";\n\
    add.u32             %r11, %r10, %r4;\n\
    sub.u32             %r12, %r7, 1;\n\
    min.u32             %r13, %r11, %r12;\n\
    mul.wide.u32        %rd18, %r13, 512;\n\
    setp.le.u32         %p4, %r11, %r12;\n\
    add.u64             %rd13, %rd17, %rd18;\n\
    add.u64             %rd14, %rd15, %rd18;\n\
    mov.f32             %f168, %f33;\n\
    ld.global.nc.v4.f32 {%f169, %f170, %f171, %f172}, [%rd13+384];\n\
    ld.global.nc.v4.f32 {%f173, %f174, %f175, %f176}, [%rd13+256];\n\
    ld.global.nc.v4.f32 {%f177, %f178, %f179, %f180}, [%rd13+128];\n\
    ld.global.nc.v4.f32 {%f181, %f182, %f183, %f184}, [%rd13];\n\
    mul.f32             %f185, %f5, %f181;\n\
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
    add.f32             %f202, %f200, %f201;\n\
    shfl.sync.bfly.b32  %f203, %f202, 2, 31, 0xFFFFFFFF;\n\
    add.f32             %f204, %f202, %f203;\n\
    shfl.sync.bfly.b32  %f205, %f204, 1, 31, 0xFFFFFFFF;\n\
    add.f32             %f206, %f204, %f205;\n\
    selp.f32            %f207, %f206, 0fFF800000, %p4;\n\
    max.f32             %f208, %f168, %f207;\n\
    ld.global.nc.v4.f32 {%f209, %f210, %f211, %f212}, [%rd14];\n\
    ld.global.nc.v4.f32 {%f213, %f214, %f215, %f216}, [%rd14+128];\n\
    ld.global.nc.v4.f32 {%f217, %f218, %f219, %f220}, [%rd14+256];\n\
    ld.global.nc.v4.f32 {%f221, %f222, %f223, %f224}, [%rd14+384];\n\
    mov.f32             %f33, %f208;\n\
    sub.f32             %f225, %f168, %f208;\n\
    ex2.approx.ftz.f32  %f226, %f225;\n\
    mul.f32             %f34, %f34, %f226;\n\
    mul.f32             %f35, %f35, %f226;\n\
    mul.f32             %f36, %f36, %f226;\n\
    mul.f32             %f37, %f37, %f226;\n\
    mul.f32             %f38, %f38, %f226;\n\
    mul.f32             %f39, %f39, %f226;\n\
    mul.f32             %f40, %f40, %f226;\n\
    mul.f32             %f41, %f41, %f226;\n\
    mul.f32             %f42, %f42, %f226;\n\
    mul.f32             %f43, %f43, %f226;\n\
    mul.f32             %f44, %f44, %f226;\n\
    mul.f32             %f45, %f45, %f226;\n\
    mul.f32             %f46, %f46, %f226;\n\
    mul.f32             %f47, %f47, %f226;\n\
    mul.f32             %f48, %f48, %f226;\n\
    mul.f32             %f49, %f49, %f226;\n\
    mul.f32             %f50, %f50, %f226;\n\
    sub.f32             %f227, %f207, %f33;\n\
    ex2.approx.ftz.f32  %f228, %f227;\n\
    add.f32             %f34, %f34, %f228;\n\
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
    sub.f32             %f231, %f33, %f230;\n\
    ex2.approx.ftz.f32  %f232, %f231;\n\
    mul.f32             %f34, %f34, %f232;\n\
    mul.f32             %f35, %f35, %f232;\n\
    mul.f32             %f36, %f36, %f232;\n\
    mul.f32             %f37, %f37, %f232;\n\
    mul.f32             %f38, %f38, %f232;\n\
    mul.f32             %f39, %f39, %f232;\n\
    mul.f32             %f40, %f40, %f232;\n\
    mul.f32             %f41, %f41, %f232;\n\
    mul.f32             %f42, %f42, %f232;\n\
    mul.f32             %f43, %f43, %f232;\n\
    mul.f32             %f44, %f44, %f232;\n\
    mul.f32             %f45, %f45, %f232;\n\
    mul.f32             %f46, %f46, %f232;\n\
    mul.f32             %f47, %f47, %f232;\n\
    mul.f32             %f48, %f48, %f232;\n\
    mul.f32             %f49, %f49, %f232;\n\
    mul.f32             %f50, %f50, %f232;\n\
    mov.f32             %f33, %f230;\n\
    shfl.sync.bfly.b32  %f233, %f34, 8, 31, 0xFFFFFFFF;\n\
    add.f32             %f34, %f34, %f233;\n\
    shfl.sync.bfly.b32  %f234, %f35, 8, 31, 0xFFFFFFFF;\n\
    add.f32             %f35, %f35, %f234;\n\
    shfl.sync.bfly.b32  %f235, %f36, 8, 31, 0xFFFFFFFF;\n\
    add.f32             %f36, %f36, %f235;\n\
    shfl.sync.bfly.b32  %f236, %f37, 8, 31, 0xFFFFFFFF;\n\
    add.f32             %f37, %f37, %f236;\n\
    shfl.sync.bfly.b32  %f237, %f38, 8, 31, 0xFFFFFFFF;\n\
    add.f32             %f38, %f38, %f237;\n\
    shfl.sync.bfly.b32  %f238, %f39, 8, 31, 0xFFFFFFFF;\n\
    add.f32             %f39, %f39, %f238;\n\
    shfl.sync.bfly.b32  %f239, %f40, 8, 31, 0xFFFFFFFF;\n\
    add.f32             %f40, %f40, %f239;\n\
"
"\
    shfl.sync.bfly.b32  %f240, %f41, 8, 31, 0xFFFFFFFF;\n\
    add.f32             %f41, %f41, %f240;\n\
    shfl.sync.bfly.b32  %f241, %f42, 8, 31, 0xFFFFFFFF;\n\
    add.f32             %f42, %f42, %f241;\n\
    shfl.sync.bfly.b32  %f242, %f43, 8, 31, 0xFFFFFFFF;\n\
    add.f32             %f43, %f43, %f242;\n\
    shfl.sync.bfly.b32  %f243, %f44, 8, 31, 0xFFFFFFFF;\n\
    add.f32             %f44, %f44, %f243;\n\
    shfl.sync.bfly.b32  %f244, %f45, 8, 31, 0xFFFFFFFF;\n\
    add.f32             %f45, %f45, %f244;\n\
    shfl.sync.bfly.b32  %f245, %f46, 8, 31, 0xFFFFFFFF;\n\
    add.f32             %f46, %f46, %f245;\n\
    shfl.sync.bfly.b32  %f246, %f47, 8, 31, 0xFFFFFFFF;\n\
    add.f32             %f47, %f47, %f246;\n\
    shfl.sync.bfly.b32  %f247, %f48, 8, 31, 0xFFFFFFFF;\n\
    add.f32             %f48, %f48, %f247;\n\
    shfl.sync.bfly.b32  %f248, %f49, 8, 31, 0xFFFFFFFF;\n\
    add.f32             %f49, %f49, %f248;\n\
    shfl.sync.bfly.b32  %f249, %f50, 8, 31, 0xFFFFFFFF;\n\
    add.f32             %f50, %f50, %f249;\n\
    shfl.sync.bfly.b32  %f250, %f33, 16, 31, 0xFFFFFFFF;\n\
    max.f32             %f251, %f33, %f250;\n\
    sub.f32             %f252, %f33, %f251;\n\
    ex2.approx.ftz.f32  %f253, %f252;\n\
    mul.f32             %f34, %f34, %f253;\n\
    mul.f32             %f35, %f35, %f253;\n\
    mul.f32             %f36, %f36, %f253;\n\
    mul.f32             %f37, %f37, %f253;\n\
    mul.f32             %f38, %f38, %f253;\n\
    mul.f32             %f39, %f39, %f253;\n\
    mul.f32             %f40, %f40, %f253;\n\
    mul.f32             %f41, %f41, %f253;\n\
    mul.f32             %f42, %f42, %f253;\n\
    mul.f32             %f43, %f43, %f253;\n\
    mul.f32             %f44, %f44, %f253;\n\
    mul.f32             %f45, %f45, %f253;\n\
    mul.f32             %f46, %f46, %f253;\n\
    mul.f32             %f47, %f47, %f253;\n\
    mul.f32             %f48, %f48, %f253;\n\
    mul.f32             %f49, %f49, %f253;\n\
    mul.f32             %f50, %f50, %f253;\n\
    mov.f32             %f33, %f251;\n\
    shfl.sync.bfly.b32  %f254, %f34, 16, 31, 0xFFFFFFFF;\n\
    add.f32             %f34, %f34, %f254;\n\
    shfl.sync.bfly.b32  %f255, %f35, 16, 31, 0xFFFFFFFF;\n\
    add.f32             %f35, %f35, %f255;\n\
    shfl.sync.bfly.b32  %f256, %f36, 16, 31, 0xFFFFFFFF;\n\
    add.f32             %f36, %f36, %f256;\n\
    shfl.sync.bfly.b32  %f257, %f37, 16, 31, 0xFFFFFFFF;\n\
    add.f32             %f37, %f37, %f257;\n\
    shfl.sync.bfly.b32  %f258, %f38, 16, 31, 0xFFFFFFFF;\n\
    add.f32             %f38, %f38, %f258;\n\
    shfl.sync.bfly.b32  %f259, %f39, 16, 31, 0xFFFFFFFF;\n\
    add.f32             %f39, %f39, %f259;\n\
    shfl.sync.bfly.b32  %f260, %f40, 16, 31, 0xFFFFFFFF;\n\
    add.f32             %f40, %f40, %f260;\n\
    shfl.sync.bfly.b32  %f261, %f41, 16, 31, 0xFFFFFFFF;\n\
    add.f32             %f41, %f41, %f261;\n\
    shfl.sync.bfly.b32  %f262, %f42, 16, 31, 0xFFFFFFFF;\n\
    add.f32             %f42, %f42, %f262;\n\
    shfl.sync.bfly.b32  %f263, %f43, 16, 31, 0xFFFFFFFF;\n\
    add.f32             %f43, %f43, %f263;\n\
    shfl.sync.bfly.b32  %f264, %f44, 16, 31, 0xFFFFFFFF;\n\
    add.f32             %f44, %f44, %f264;\n\
    shfl.sync.bfly.b32  %f265, %f45, 16, 31, 0xFFFFFFFF;\n\
    add.f32             %f45, %f45, %f265;\n\
    shfl.sync.bfly.b32  %f266, %f46, 16, 31, 0xFFFFFFFF;\n\
    add.f32             %f46, %f46, %f266;\n\
    shfl.sync.bfly.b32  %f267, %f47, 16, 31, 0xFFFFFFFF;\n\
    add.f32             %f47, %f47, %f267;\n\
    shfl.sync.bfly.b32  %f268, %f48, 16, 31, 0xFFFFFFFF;\n\
    add.f32             %f48, %f48, %f268;\n\
    shfl.sync.bfly.b32  %f269, %f49, 16, 31, 0xFFFFFFFF;\n\
    add.f32             %f49, %f49, %f269;\n\
    shfl.sync.bfly.b32  %f270, %f50, 16, 31, 0xFFFFFFFF;\n\
    add.f32             %f50, %f50, %f270;\n\
\n\
    // store\n\
    rcp.rn.f32          %f271, %f34;\n\
    setp.gt.f32         %p6, %f34, 0f00000000;\n\
    selp.f32            %f272, %f271, 0f00000000, %p6;\n\
    mad.wide.u32        %rd19, %r2, 512, %rd1;\n\
    mad.wide.u32        %rd20, %r3, 16, %rd19;\n\
    setp.eq.u32         %p7, %r4, 0;\n\
    @!%p7 bra           $skip;\n\
    mul.f32             %f273, %f35, %f272;\n\
    mul.f32             %f274, %f36, %f272;\n\
    mul.f32             %f275, %f37, %f272;\n\
    mul.f32             %f276, %f38, %f272;\n\
    st.global.v4.f32    [%rd20], {%f273, %f274, %f275, %f276};\n\
    mul.f32             %f277, %f39, %f272;\n\
    mul.f32             %f278, %f40, %f272;\n\
    mul.f32             %f279, %f41, %f272;\n\
    mul.f32             %f280, %f42, %f272;\n\
    st.global.v4.f32    [%rd20+128], {%f277, %f278, %f279, %f280};\n\
    mul.f32             %f281, %f43, %f272;\n\
    mul.f32             %f282, %f44, %f272;\n\
    mul.f32             %f283, %f45, %f272;\n\
    mul.f32             %f284, %f46, %f272;\n\
    st.global.v4.f32    [%rd20+256], {%f281, %f282, %f283, %f284};\n\
    mul.f32             %f285, %f47, %f272;\n\
    mul.f32             %f286, %f48, %f272;\n\
    mul.f32             %f287, %f49, %f272;\n\
    mul.f32             %f288, %f50, %f272;\n\
    st.global.v4.f32    [%rd20+384], {%f285, %f286, %f287, %f288};\n\
\n\
$skip:\n\
    ret;\n\
}\n\
";
static const ptxgen_param llama_incremental_attention_d128_h32_kv8_s8192_indirect_params[] = {
    { "o", PTXGEN_PARAM_POINTER, PTXGEN_PARAM_OUT, PTXGEN_F32, 16384, "num_heads*head_dim*4", 16 },
    { "q", PTXGEN_PARAM_POINTER, PTXGEN_PARAM_IN, PTXGEN_F32, 16384, "num_heads*head_dim*4", 16 },
    { "k", PTXGEN_PARAM_POINTER, PTXGEN_PARAM_IN, PTXGEN_F32, 33554432, "num_kv_heads*max_seq_len*head_dim*4", 16 },
    { "v", PTXGEN_PARAM_POINTER, PTXGEN_PARAM_IN, PTXGEN_F32, 33554432, "num_kv_heads*max_seq_len*head_dim*4", 16 },
    { "seq_len", PTXGEN_PARAM_POINTER, PTXGEN_PARAM_IN, PTXGEN_U32, 4, "4", 4 },
};
static const ptxgen_config llama_incremental_attention_d128_h32_kv8_s8192_indirect_config[] = {
    { "head_dim", 128, 0, NULL, 0, 0, 0, 1 },
    { "num_heads", 32, 0, NULL, 0, 0, 0, 1 },
    { "num_kv_heads", 8, 0, NULL, 0, 0, 0, 1 },
    { "max_seq_len", 8192, 0, NULL, 0, 0, 0, 1 },
    { "seq_len", 1, 0, "indirect", 0, 0, 0, 1 },
    { "kv_type", 0, 0, "f32", 0, 0, 0, 1 },
    { "scale", 0, 0, NULL, 0, 0, 0, 1 },
    { "softcap", 0, 0, NULL, 0, 0, 0, 1 },
    { "window", 0, 0, NULL, 0, 0, 0, 1 },
    { "sinks", 0, 0, "none", 0, 0, 0, 1 },
};
const ptxgen_kernel llama_incremental_attention_d128_h32_kv8_s8192_indirect = {
    "incremental_attention_d128_h32_kv8_s8192_indirect", "incremental_attention_d128_h32_kv8_s8192_indirect",
    llama_incremental_attention_d128_h32_kv8_s8192_indirect_ptx, 20882, UINT64_C(0x1fb2d7bacf7752db),
    "incremental_attention", PTXGEN_ATTENTION, PTXGEN_F32, PTXGEN_F32, PTXGEN_F32,
    75, 63, 0, 0, /* sm, isa, overlaps, specific */
    llama_incremental_attention_d128_h32_kv8_s8192_indirect_params, 5,
    { 32, 1, 1 }, { 32, 1, 1 }, NULL, /* block, grid, grid_at */
    0, 0, NULL, 0, /* shared_static, shared_dynamic, shared_at, workspace */
    0, 0, 1, /* k, n, m */
    1, 128, 32, 8, 8192, /* num_warps, head_dim, num_heads, num_kv_heads, max_seq_len */
    0, 1, /* dynamic_dims, seq_len_indirect */
    llama_incremental_attention_d128_h32_kv8_s8192_indirect_config, 10,
    0, 0, /* registers, blocks_per_sm */
    1, /* preference */
    NULL, 0, 0, /* chosen_by, chosen_f32, chosen_q8 */
};

static const char llama_multi_warp_attention_d128_h32_kv8_s8192_w4_f16_ptx[] = "\
// multi_warp_attention  head_dim=128 num_heads=32 num_kv_heads=8 max_seq_len=8192 num_warps=4 kv_type=f16  o[h] = softmax(q[h] K' scale) V\n\
// ptxgen 0.1.0  block 128  grid 32\n\
.version 6.3\n\
.target sm_75\n\
.address_size 64\n\
\n\
.visible .entry multi_warp_attention_d128_h32_kv8_s8192_w4_f16(\n\
    .param .u64 o,\n\
    .param .u64 q,\n\
    .param .u64 k,\n\
    .param .u64 v,\n\
    .param .u32 seq_len)\n\
.reqntid 128, 1, 1\n\
.maxnreg 96\n\
{\n\
    .reg .pred  %p<12>;\n\
    .reg .b16   %h<321>;\n\
    .reg .b32   %r<119>;\n\
    .reg .f32   %f<436>;\n\
    .reg .b64   %rd<20>;\n\
    .shared .align 16 .b32 partials[528];\n\
\n\
    ld.param.u64        %rd1, [o];\n\
    ld.param.u64        %rd2, [q];\n\
    ld.param.u64        %rd3, [k];\n\
    ld.param.u64        %rd4, [v];\n\
    ld.param.u32        %r1, [seq_len];\n\
    mov.u32             %r2, %tid.x;\n\
    and.b32             %r3, %r2, 31;                           // lane\n\
    mov.u32             %r4, %ctaid.x;                          // head\n\
    shr.u32             %r5, %r2, 5;                            // warp\n\
\n\
    // load q\n\
    and.b32             %r6, %r3, 7;                            // piece\n\
    shr.u32             %r7, %r3, 3;                            // group\n\
    mad.wide.u32        %rd5, %r4, 512, %rd2;\n\
    mad.wide.u32        %rd6, %r6, 32, %rd5;\n\
    ld.global.nc.v4.f32 {%f1, %f2, %f3, %f4}, [%rd6];\n\
    mul.f32             %f5, %f1, 0f3E0293EE;\n\
    mul.f32             %f6, %f2, 0f3E0293EE;\n\
    mul.f32             %f7, %f3, 0f3E0293EE;\n\
    mul.f32             %f8, %f4, 0f3E0293EE;\n\
    ld.global.nc.v4.f32 {%f9, %f10, %f11, %f12}, [%rd6+16];\n\
    mul.f32             %f13, %f9, 0f3E0293EE;\n\
    mul.f32             %f14, %f10, 0f3E0293EE;\n\
    mul.f32             %f15, %f11, 0f3E0293EE;\n\
    mul.f32             %f16, %f12, 0f3E0293EE;\n\
    ld.global.nc.v4.f32 {%f17, %f18, %f19, %f20}, [%rd6+256];\n\
    mul.f32             %f21, %f17, 0f3E0293EE;\n\
    mul.f32             %f22, %f18, 0f3E0293EE;\n\
    mul.f32             %f23, %f19, 0f3E0293EE;\n\
    mul.f32             %f24, %f20, 0f3E0293EE;\n\
    ld.global.nc.v4.f32 {%f25, %f26, %f27, %f28}, [%rd6+272];\n\
    mul.f32             %f29, %f25, 0f3E0293EE;\n\
    mul.f32             %f30, %f26, 0f3E0293EE;\n\
    mul.f32             %f31, %f27, 0f3E0293EE;\n\
    mul.f32             %f32, %f28, 0f3E0293EE;\n\
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
    shr.u32             %r8, %r4, 2;                            // kv_head\n\
    mul.wide.u32        %rd7, %r8, 8192;\n\
    mul.lo.u64          %rd8, %rd7, 256;\n\
    add.u64             %rd9, %rd4, %rd8;\n\
    mul.wide.u32        %rd10, %r6, 16;\n\
    min.u32             %r9, %r1, 8192;                         // seq_len\n\
    add.u32             %r10, %r9, 255;\n\
    shr.u32             %r11, %r10, 8;\n\
    mul.lo.u32          %r12, %r11, 64;\n\
    mul.lo.u32          %r13, %r5, %r12;\n\
    min.u32             %r14, %r13, %r9;\n\
    add.u64             %rd11, %rd3, %rd8;\n\
    add.u32             %r15, %r14, %r12;\n\
    min.u32             %r16, %r15, %r9;\n\
    sub.u32             %r17, %r16, %r14;\n\
    shr.u32             %r18, %r17, 4;\n\
    mov.u64             %rd12, 0;\n\
    mov.u64             %rd13, 0;\n\
    add.u64             %rd14, %rd9, %rd10;\n\
    add.u32             %r19, %r14, %r7;\n\
    mul.wide.u32        %rd15, %r19, 256;\n\
    add.u64             %rd16, %rd11, %rd10;\n\
    add.u64             %rd12, %rd16, %rd15;\n\
    add.u64             %rd13, %rd14, %rd15;\n\
\n\
    // attend: several positions of each group of lanes at once\n\
    mov.u32             %r20, 0;                                // turn\n\
    setp.lt.u32         %p1, %r20, %r18;\n\
    @!%p1 bra           $turn_done;\n\
\n\
$turn_loop:                                                     // 128 elements a lane\n\
    .pragma \"nounroll\";\n\
    mov.f32             %f51, %f33;\n\
    ld.global.nc.v4.u32 {%r21, %r22, %r23, %r24}, [%rd12+128];\n\
    mov.b32             {%h1, %h2}, %r24;\n\
    cvt.f32.f16         %f52, %h2;\n\
    mov.b32             {%h3, %h4}, %r24;\n\
    cvt.f32.f16         %f53, %h3;\n\
    mov.b32             {%h5, %h6}, %r23;\n\
    cvt.f32.f16         %f54, %h6;\n\
    mov.b32             {%h7, %h8}, %r23;\n\
    cvt.f32.f16         %f55, %h7;\n\
    mov.b32             {%h9, %h10}, %r22;\n\
    cvt.f32.f16         %f56, %h10;\n\
    mov.b32             {%h11, %h12}, %r22;\n\
    cvt.f32.f16         %f57, %h11;\n\
    mov.b32             {%h13, %h14}, %r21;\n\
    cvt.f32.f16         %f58, %h14;\n\
    mov.b32             {%h15, %h16}, %r21;\n\
    cvt.f32.f16         %f59, %h15;\n\
    ld.global.nc.v4.u32 {%r25, %r26, %r27, %r28}, [%rd12];\n\
    mov.b32             {%h17, %h18}, %r28;\n\
    cvt.f32.f16         %f60, %h18;\n\
    mov.b32             {%h19, %h20}, %r28;\n\
    cvt.f32.f16         %f61, %h19;\n\
    mov.b32             {%h21, %h22}, %r27;\n\
    cvt.f32.f16         %f62, %h22;\n\
    mov.b32             {%h23, %h24}, %r27;\n\
    cvt.f32.f16         %f63, %h23;\n\
    mov.b32             {%h25, %h26}, %r26;\n\
    cvt.f32.f16         %f64, %h26;\n\
    mov.b32             {%h27, %h28}, %r26;\n\
    cvt.f32.f16         %f65, %h27;\n\
    mov.b32             {%h29, %h30}, %r25;\n\
    cvt.f32.f16         %f66, %h30;\n\
    mov.b32             {%h31, %h32}, %r25;\n\
    cvt.f32.f16         %f67, %h31;\n\
    mul.f32             %f68, %f5, %f67;\n\
    fma.rn.f32          %f69, %f6, %f66, %f68;\n\
    fma.rn.f32          %f70, %f7, %f65, %f69;\n\
    fma.rn.f32          %f71, %f8, %f64, %f70;\n\
    fma.rn.f32          %f72, %f13, %f63, %f71;\n\
    fma.rn.f32          %f73, %f14, %f62, %f72;\n\
    fma.rn.f32          %f74, %f15, %f61, %f73;\n\
    fma.rn.f32          %f75, %f16, %f60, %f74;\n\
    fma.rn.f32          %f76, %f21, %f59, %f75;\n\
    fma.rn.f32          %f77, %f22, %f58, %f76;\n\
    fma.rn.f32          %f78, %f23, %f57, %f77;\n\
    fma.rn.f32          %f79, %f24, %f56, %f78;\n\
    fma.rn.f32          %f80, %f29, %f55, %f79;\n\
    fma.rn.f32          %f81, %f30, %f54, %f80;\n\
    fma.rn.f32          %f82, %f31, %f53, %f81;\n\
    fma.rn.f32          %f83, %f32, %f52, %f82;\n\
    shfl.sync.bfly.b32  %f84, %f83, 4, 31, 0xFFFFFFFF;\n\
    add.f32             %f85, %f83, %f84;\n\
    shfl.sync.bfly.b32  %f86, %f85, 2, 31, 0xFFFFFFFF;\n\
    add.f32             %f87, %f85, %f86;\n\
    shfl.sync.bfly.b32  %f88, %f87, 1, 31, 0xFFFFFFFF;\n\
    add.f32             %f89, %f87, %f88;\n\
    max.f32             %f90, %f51, %f89;\n\
    ld.global.nc.v4.u32 {%r29, %r30, %r31, %r32}, [%rd12+1152];\n\
    mov.b32             {%h33, %h34}, %r32;\n\
    cvt.f32.f16         %f91, %h34;\n\
    mov.b32             {%h35, %h36}, %r32;\n\
    cvt.f32.f16         %f92, %h35;\n\
    mov.b32             {%h37, %h38}, %r31;\n\
    cvt.f32.f16         %f93, %h38;\n\
    mov.b32             {%h39, %h40}, %r31;\n\
    cvt.f32.f16         %f94, %h39;\n\
    mov.b32             {%h41, %h42}, %r30;\n\
    cvt.f32.f16         %f95, %h42;\n\
    mov.b32             {%h43, %h44}, %r30;\n\
    cvt.f32.f16         %f96, %h43;\n\
    mov.b32             {%h45, %h46}, %r29;\n\
    cvt.f32.f16         %f97, %h46;\n\
    mov.b32             {%h47, %h48}, %r29;\n\
    cvt.f32.f16         %f98, %h47;\n\
    ld.global.nc.v4.u32 {%r33, %r34, %r35, %r36}, [%rd12+1024];\n\
    mov.b32             {%h49, %h50}, %r36;\n\
    cvt.f32.f16         %f99, %h50;\n\
    mov.b32             {%h51, %h52}, %r36;\n\
    cvt.f32.f16         %f100, %h51;\n\
    mov.b32             {%h53, %h54}, %r35;\n\
    cvt.f32.f16         %f101, %h54;\n\
    mov.b32             {%h55, %h56}, %r35;\n\
"
"\
    cvt.f32.f16         %f102, %h55;\n\
    mov.b32             {%h57, %h58}, %r34;\n\
    cvt.f32.f16         %f103, %h58;\n\
    mov.b32             {%h59, %h60}, %r34;\n\
    cvt.f32.f16         %f104, %h59;\n\
    mov.b32             {%h61, %h62}, %r33;\n\
    cvt.f32.f16         %f105, %h62;\n\
    mov.b32             {%h63, %h64}, %r33;\n\
    cvt.f32.f16         %f106, %h63;\n\
    mul.f32             %f107, %f5, %f106;\n\
    fma.rn.f32          %f108, %f6, %f105, %f107;\n\
    fma.rn.f32          %f109, %f7, %f104, %f108;\n\
    fma.rn.f32          %f110, %f8, %f103, %f109;\n\
    fma.rn.f32          %f111, %f13, %f102, %f110;\n\
    fma.rn.f32          %f112, %f14, %f101, %f111;\n\
    fma.rn.f32          %f113, %f15, %f100, %f112;\n\
    fma.rn.f32          %f114, %f16, %f99, %f113;\n\
    fma.rn.f32          %f115, %f21, %f98, %f114;\n\
    fma.rn.f32          %f116, %f22, %f97, %f115;\n\
    fma.rn.f32          %f117, %f23, %f96, %f116;\n\
    fma.rn.f32          %f118, %f24, %f95, %f117;\n\
    fma.rn.f32          %f119, %f29, %f94, %f118;\n\
    fma.rn.f32          %f120, %f30, %f93, %f119;\n\
    fma.rn.f32          %f121, %f31, %f92, %f120;\n\
    fma.rn.f32          %f122, %f32, %f91, %f121;\n\
    shfl.sync.bfly.b32  %f123, %f122, 4, 31, 0xFFFFFFFF;\n\
    add.f32             %f124, %f122, %f123;\n\
    shfl.sync.bfly.b32  %f125, %f124, 2, 31, 0xFFFFFFFF;\n\
    add.f32             %f126, %f124, %f125;\n\
    shfl.sync.bfly.b32  %f127, %f126, 1, 31, 0xFFFFFFFF;\n\
    add.f32             %f128, %f126, %f127;\n\
    max.f32             %f129, %f90, %f128;\n\
    ld.global.nc.v4.u32 {%r37, %r38, %r39, %r40}, [%rd12+2176];\n\
    mov.b32             {%h65, %h66}, %r40;\n\
    cvt.f32.f16         %f130, %h66;\n\
    mov.b32             {%h67, %h68}, %r40;\n\
    cvt.f32.f16         %f131, %h67;\n\
    mov.b32             {%h69, %h70}, %r39;\n\
    cvt.f32.f16         %f132, %h70;\n\
    mov.b32             {%h71, %h72}, %r39;\n\
    cvt.f32.f16         %f133, %h71;\n\
    mov.b32             {%h73, %h74}, %r38;\n\
    cvt.f32.f16         %f134, %h74;\n\
    mov.b32             {%h75, %h76}, %r38;\n\
    cvt.f32.f16         %f135, %h75;\n\
    mov.b32             {%h77, %h78}, %r37;\n\
    cvt.f32.f16         %f136, %h78;\n\
    mov.b32             {%h79, %h80}, %r37;\n\
    cvt.f32.f16         %f137, %h79;\n\
    ld.global.nc.v4.u32 {%r41, %r42, %r43, %r44}, [%rd12+2048];\n\
    mov.b32             {%h81, %h82}, %r44;\n\
    cvt.f32.f16         %f138, %h82;\n\
    mov.b32             {%h83, %h84}, %r44;\n\
    cvt.f32.f16         %f139, %h83;\n\
    mov.b32             {%h85, %h86}, %r43;\n\
    cvt.f32.f16         %f140, %h86;\n\
    mov.b32             {%h87, %h88}, %r43;\n\
    cvt.f32.f16         %f141, %h87;\n\
    mov.b32             {%h89, %h90}, %r42;\n\
    cvt.f32.f16         %f142, %h90;\n\
    mov.b32             {%h91, %h92}, %r42;\n\
    cvt.f32.f16         %f143, %h91;\n\
    mov.b32             {%h93, %h94}, %r41;\n\
    cvt.f32.f16         %f144, %h94;\n\
    mov.b32             {%h95, %h96}, %r41;\n\
    cvt.f32.f16         %f145, %h95;\n\
    mul.f32             %f146, %f5, %f145;\n\
    fma.rn.f32          %f147, %f6, %f144, %f146;\n\
    fma.rn.f32          %f148, %f7, %f143, %f147;\n\
    fma.rn.f32          %f149, %f8, %f142, %f148;\n\
    fma.rn.f32          %f150, %f13, %f141, %f149;\n\
    fma.rn.f32          %f151, %f14, %f140, %f150;\n\
    fma.rn.f32          %f152, %f15, %f139, %f151;\n\
    fma.rn.f32          %f153, %f16, %f138, %f152;\n\
    fma.rn.f32          %f154, %f21, %f137, %f153;\n\
    fma.rn.f32          %f155, %f22, %f136, %f154;\n\
    fma.rn.f32          %f156, %f23, %f135, %f155;\n\
    fma.rn.f32          %f157, %f24, %f134, %f156;\n\
    fma.rn.f32          %f158, %f29, %f133, %f157;\n\
    fma.rn.f32          %f159, %f30, %f132, %f158;\n\
    fma.rn.f32          %f160, %f31, %f131, %f159;\n\
    fma.rn.f32          %f161, %f32, %f130, %f160;\n\
    shfl.sync.bfly.b32  %f162, %f161, 4, 31, 0xFFFFFFFF;\n\
    add.f32             %f163, %f161, %f162;\n\
    shfl.sync.bfly.b32  %f164, %f163, 2, 31, 0xFFFFFFFF;\n\
    add.f32             %f165, %f163, %f164;\n\
    shfl.sync.bfly.b32  %f166, %f165, 1, 31, 0xFFFFFFFF;\n\
    add.f32             %f167, %f165, %f166;\n\
    max.f32             %f168, %f129, %f167;\n\
    ld.global.nc.v4.u32 {%r45, %r46, %r47, %r48}, [%rd12+3200];\n\
    mov.b32             {%h97, %h98}, %r48;\n\
    cvt.f32.f16         %f169, %h98;\n\
    mov.b32             {%h99, %h100}, %r48;\n\
    cvt.f32.f16         %f170, %h99;\n\
    mov.b32             {%h101, %h102}, %r47;\n\
    cvt.f32.f16         %f171, %h102;\n\
    mov.b32             {%h103, %h104}, %r47;\n\
    cvt.f32.f16         %f172, %h103;\n\
    mov.b32             {%h105, %h106}, %r46;\n\
    cvt.f32.f16         %f173, %h106;\n\
    mov.b32             {%h107, %h108}, %r46;\n\
    cvt.f32.f16         %f174, %h107;\n\
    mov.b32             {%h109, %h110}, %r45;\n\
    cvt.f32.f16         %f175, %h110;\n\
    mov.b32             {%h111, %h112}, %r45;\n\
    cvt.f32.f16         %f176, %h111;\n\
    ld.global.nc.v4.u32 {%r49, %r50, %r51, %r52}, [%rd12+3072];\n\
    mov.b32             {%h113, %h114}, %r52;\n\
    cvt.f32.f16         %f177, %h114;\n\
    mov.b32             {%h115, %h116}, %r52;\n\
    cvt.f32.f16         %f178, %h115;\n\
    mov.b32             {%h117, %h118}, %r51;\n\
    cvt.f32.f16         %f179, %h118;\n\
    mov.b32             {%h119, %h120}, %r51;\n\
    cvt.f32.f16         %f180, %h119;\n\
    mov.b32             {%h121, %h122}, %r50;\n\
    cvt.f32.f16         %f181, %h122;\n\
    mov.b32             {%h123, %h124}, %r50;\n\
    cvt.f32.f16         %f182, %h123;\n\
    mov.b32             {%h125, %h126}, %r49;\n\
    cvt.f32.f16         %f183, %h126;\n\
    mov.b32             {%h127, %h128}, %r49;\n\
    cvt.f32.f16         %f184, %h127;\n\
    mul.f32             %f185, %f5, %f184;\n\
    fma.rn.f32          %f186, %f6, %f183, %f185;\n\
    fma.rn.f32          %f187, %f7, %f182, %f186;\n\
    fma.rn.f32          %f188, %f8, %f181, %f187;\n\
    fma.rn.f32          %f189, %f13, %f180, %f188;\n\
    fma.rn.f32          %f190, %f14, %f179, %f189;\n\
    fma.rn.f32          %f191, %f15, %f178, %f190;\n\
    fma.rn.f32          %f192, %f16, %f177, %f191;\n\
    fma.rn.f32          %f193, %f21, %f176, %f192;\n\
    fma.rn.f32          %f194, %f22, %f175, %f193;\n\
    fma.rn.f32          %f195, %f23, %f174, %f194;\n\
    fma.rn.f32          %f196, %f24, %f173, %f195;\n\
    fma.rn.f32          %f197, %f29, %f172, %f196;\n\
    fma.rn.f32          %f198, %f30, %f171, %f197;\n\
    fma.rn.f32          %f199, %f31, %f170, %f198;\n\
    fma.rn.f32          %f200, %f32, %f169, %f199;\n\
    shfl.sync.bfly.b32  %f201, %f200, 4, 31, 0xFFFFFFFF;\n\
    add.f32             %f202, %f200, %f201;\n\
    shfl.sync.bfly.b32  %f203, %f202, 2, 31, 0xFFFFFFFF;\n\
    add.f32             %f204, %f202, %f203;\n\
    shfl.sync.bfly.b32  %f205, %f204, 1, 31, 0xFFFFFFFF;\n\
    add.f32             %f206, %f204, %f205;\n\
    max.f32             %f207, %f168, %f206;\n\
    ld.global.nc.v4.u32 {%r53, %r54, %r55, %r56}, [%rd13];\n\
    ld.global.nc.v4.u32 {%r57, %r58, %r59, %r60}, [%rd13+128];\n\
    ld.global.nc.v4.u32 {%r61, %r62, %r63, %r64}, [%rd13+1024];\n\
    ld.global.nc.v4.u32 {%r65, %r66, %r67, %r68}, [%rd13+1152];\n\
    ld.global.nc.v4.u32 {%r69, %r70, %r71, %r72}, [%rd13+2048];\n\
    ld.global.nc.v4.u32 {%r73, %r74, %r75, %r76}, [%rd13+2176];\n\
    ld.global.nc.v4.u32 {%r77, %r78, %r79, %r80}, [%rd13+3072];\n\
    ld.global.nc.v4.u32 {%r81, %r82, %r83, %r84}, [%rd13+3200];\n\
    mov.f32             %f33, %f207;\n\
    sub.f32             %f208, %f51, %f207;\n\
    ex2.approx.ftz.f32  %f209, %f208;\n\
    mul.f32             %f34, %f34, %f209;\n\
    mul.f32             %f35, %f35, %f209;\n\
    mul.f32             %f36, %f36, %f209;\n\
    mul.f32             %f37, %f37, %f209;\n\
    mul.f32             %f38, %f38, %f209;\n\
    mul.f32             %f39, %f39, %f209;\n\
    mul.f32             %f40, %f40, %f209;\n\
    mul.f32             %f41, %f41, %f209;\n\
    mul.f32             %f42, %f42, %f209;\n\
    mul.f32             %f43, %f43, %f209;\n\
    mul.f32             %f44, %f44, %f209;\n\
    mul.f32             %f45, %f45, %f209;\n\
    mul.f32             %f46, %f46, %f209;\n\
    mul.f32             %f47, %f47, %f209;\n\
    mul.f32             %f48, %f48, %f209;\n\
"
"\
    mul.f32             %f49, %f49, %f209;\n\
    mul.f32             %f50, %f50, %f209;\n\
    sub.f32             %f210, %f89, %f33;\n\
    ex2.approx.ftz.f32  %f211, %f210;\n\
    add.f32             %f34, %f34, %f211;\n\
    mov.b32             {%h129, %h130}, %r53;\n\
    cvt.f32.f16         %f212, %h130;\n\
    mov.b32             {%h131, %h132}, %r54;\n\
    cvt.f32.f16         %f213, %h131;\n\
    mov.b32             {%h133, %h134}, %r54;\n\
    cvt.f32.f16         %f214, %h134;\n\
    mov.b32             {%h135, %h136}, %r55;\n\
    cvt.f32.f16         %f215, %h135;\n\
    mov.b32             {%h137, %h138}, %r55;\n\
    cvt.f32.f16         %f216, %h138;\n\
    mov.b32             {%h139, %h140}, %r56;\n\
    cvt.f32.f16         %f217, %h139;\n\
    mov.b32             {%h141, %h142}, %r56;\n\
    cvt.f32.f16         %f218, %h142;\n\
    mov.b32             {%h143, %h144}, %r57;\n\
    cvt.f32.f16         %f219, %h143;\n\
    mov.b32             {%h145, %h146}, %r57;\n\
    cvt.f32.f16         %f220, %h146;\n\
    mov.b32             {%h147, %h148}, %r58;\n\
    cvt.f32.f16         %f221, %h147;\n\
    mov.b32             {%h149, %h150}, %r58;\n\
    cvt.f32.f16         %f222, %h150;\n\
    mov.b32             {%h151, %h152}, %r59;\n\
    cvt.f32.f16         %f223, %h151;\n\
    mov.b32             {%h153, %h154}, %r59;\n\
    cvt.f32.f16         %f224, %h154;\n\
    mov.b32             {%h155, %h156}, %r60;\n\
    cvt.f32.f16         %f225, %h155;\n\
    mov.b32             {%h157, %h158}, %r60;\n\
    cvt.f32.f16         %f226, %h158;\n\
    mov.b32             {%h159, %h160}, %r53;\n\
    cvt.f32.f16         %f227, %h159;\n\
    fma.rn.f32          %f35, %f211, %f227, %f35;\n\
    fma.rn.f32          %f36, %f211, %f212, %f36;\n\
    fma.rn.f32          %f37, %f211, %f213, %f37;\n\
    fma.rn.f32          %f38, %f211, %f214, %f38;\n\
    fma.rn.f32          %f39, %f211, %f215, %f39;\n\
    fma.rn.f32          %f40, %f211, %f216, %f40;\n\
    fma.rn.f32          %f41, %f211, %f217, %f41;\n\
    fma.rn.f32          %f42, %f211, %f218, %f42;\n\
    fma.rn.f32          %f43, %f211, %f219, %f43;\n\
    fma.rn.f32          %f44, %f211, %f220, %f44;\n\
    fma.rn.f32          %f45, %f211, %f221, %f45;\n\
    fma.rn.f32          %f46, %f211, %f222, %f46;\n\
    fma.rn.f32          %f47, %f211, %f223, %f47;\n\
    fma.rn.f32          %f48, %f211, %f224, %f48;\n\
    fma.rn.f32          %f49, %f211, %f225, %f49;\n\
    fma.rn.f32          %f50, %f211, %f226, %f50;\n\
    sub.f32             %f228, %f128, %f33;\n\
    ex2.approx.ftz.f32  %f229, %f228;\n\
    add.f32             %f34, %f34, %f229;\n\
    mov.b32             {%h161, %h162}, %r61;\n\
    cvt.f32.f16         %f230, %h162;\n\
    mov.b32             {%h163, %h164}, %r62;\n\
    cvt.f32.f16         %f231, %h163;\n\
    mov.b32             {%h165, %h166}, %r62;\n\
    cvt.f32.f16         %f232, %h166;\n\
    mov.b32             {%h167, %h168}, %r63;\n\
    cvt.f32.f16         %f233, %h167;\n\
    mov.b32             {%h169, %h170}, %r63;\n\
    cvt.f32.f16         %f234, %h170;\n\
    mov.b32             {%h171, %h172}, %r64;\n\
    cvt.f32.f16         %f235, %h171;\n\
    mov.b32             {%h173, %h174}, %r64;\n\
    cvt.f32.f16         %f236, %h174;\n\
    mov.b32             {%h175, %h176}, %r65;\n\
    cvt.f32.f16         %f237, %h175;\n\
    mov.b32             {%h177, %h178}, %r65;\n\
    cvt.f32.f16         %f238, %h178;\n\
    mov.b32             {%h179, %h180}, %r66;\n\
    cvt.f32.f16         %f239, %h179;\n\
    mov.b32             {%h181, %h182}, %r66;\n\
    cvt.f32.f16         %f240, %h182;\n\
    mov.b32             {%h183, %h184}, %r67;\n\
    cvt.f32.f16         %f241, %h183;\n\
    mov.b32             {%h185, %h186}, %r67;\n\
    cvt.f32.f16         %f242, %h186;\n\
    mov.b32             {%h187, %h188}, %r68;\n\
    cvt.f32.f16         %f243, %h187;\n\
    mov.b32             {%h189, %h190}, %r68;\n\
    cvt.f32.f16         %f244, %h190;\n\
    mov.b32             {%h191, %h192}, %r61;\n\
    cvt.f32.f16         %f245, %h191;\n\
    fma.rn.f32          %f35, %f229, %f245, %f35;\n\
    fma.rn.f32          %f36, %f229, %f230, %f36;\n\
    fma.rn.f32          %f37, %f229, %f231, %f37;\n\
    fma.rn.f32          %f38, %f229, %f232, %f38;\n\
    fma.rn.f32          %f39, %f229, %f233, %f39;\n\
    fma.rn.f32          %f40, %f229, %f234, %f40;\n\
    fma.rn.f32          %f41, %f229, %f235, %f41;\n\
    fma.rn.f32          %f42, %f229, %f236, %f42;\n\
    fma.rn.f32          %f43, %f229, %f237, %f43;\n\
    fma.rn.f32          %f44, %f229, %f238, %f44;\n\
    fma.rn.f32          %f45, %f229, %f239, %f45;\n\
    fma.rn.f32          %f46, %f229, %f240, %f46;\n\
    fma.rn.f32          %f47, %f229, %f241, %f47;\n\
    fma.rn.f32          %f48, %f229, %f242, %f48;\n\
    fma.rn.f32          %f49, %f229, %f243, %f49;\n\
    fma.rn.f32          %f50, %f229, %f244, %f50;\n\
    sub.f32             %f246, %f167, %f33;\n\
    ex2.approx.ftz.f32  %f247, %f246;\n\
    add.f32             %f34, %f34, %f247;\n\
    mov.b32             {%h193, %h194}, %r69;\n\
    cvt.f32.f16         %f248, %h194;\n\
    mov.b32             {%h195, %h196}, %r70;\n\
    cvt.f32.f16         %f249, %h195;\n\
    mov.b32             {%h197, %h198}, %r70;\n\
    cvt.f32.f16         %f250, %h198;\n\
    mov.b32             {%h199, %h200}, %r71;\n\
    cvt.f32.f16         %f251, %h199;\n\
    mov.b32             {%h201, %h202}, %r71;\n\
    cvt.f32.f16         %f252, %h202;\n\
    mov.b32             {%h203, %h204}, %r72;\n\
    cvt.f32.f16         %f253, %h203;\n\
    mov.b32             {%h205, %h206}, %r72;\n\
    cvt.f32.f16         %f254, %h206;\n\
    mov.b32             {%h207, %h208}, %r73;\n\
    cvt.f32.f16         %f255, %h207;\n\
    mov.b32             {%h209, %h210}, %r73;\n\
    cvt.f32.f16         %f256, %h210;\n\
    mov.b32             {%h211, %h212}, %r74;\n\
    cvt.f32.f16         %f257, %h211;\n\
    mov.b32             {%h213, %h214}, %r74;\n\
    cvt.f32.f16         %f258, %h214;\n\
    mov.b32             {%h215, %h216}, %r75;\n\
    cvt.f32.f16         %f259, %h215;\n\
    mov.b32             {%h217, %h218}, %r75;\n\
    cvt.f32.f16         %f260, %h218;\n\
    mov.b32             {%h219, %h220}, %r76;\n\
    cvt.f32.f16         %f261, %h219;\n\
    mov.b32             {%h221, %h222}, %r76;\n\
    cvt.f32.f16         %f262, %h222;\n\
    mov.b32             {%h223, %h224}, %r69;\n\
    cvt.f32.f16         %f263, %h223;\n\
    fma.rn.f32          %f35, %f247, %f263, %f35;\n\
    fma.rn.f32          %f36, %f247, %f248, %f36;\n\
    fma.rn.f32          %f37, %f247, %f249, %f37;\n\
    fma.rn.f32          %f38, %f247, %f250, %f38;\n\
    fma.rn.f32          %f39, %f247, %f251, %f39;\n\
    fma.rn.f32          %f40, %f247, %f252, %f40;\n\
    fma.rn.f32          %f41, %f247, %f253, %f41;\n\
    fma.rn.f32          %f42, %f247, %f254, %f42;\n\
    fma.rn.f32          %f43, %f247, %f255, %f43;\n\
    fma.rn.f32          %f44, %f247, %f256, %f44;\n\
    fma.rn.f32          %f45, %f247, %f257, %f45;\n\
    fma.rn.f32          %f46, %f247, %f258, %f46;\n\
    fma.rn.f32          %f47, %f247, %f259, %f47;\n\
    fma.rn.f32          %f48, %f247, %f260, %f48;\n\
    fma.rn.f32          %f49, %f247, %f261, %f49;\n\
    fma.rn.f32          %f50, %f247, %f262, %f50;\n\
    sub.f32             %f264, %f206, %f33;\n\
    ex2.approx.ftz.f32  %f265, %f264;\n\
    add.f32             %f34, %f34, %f265;\n\
    mov.b32             {%h225, %h226}, %r77;\n\
    cvt.f32.f16         %f266, %h226;\n\
    mov.b32             {%h227, %h228}, %r78;\n\
    cvt.f32.f16         %f267, %h227;\n\
    mov.b32             {%h229, %h230}, %r78;\n\
    cvt.f32.f16         %f268, %h230;\n\
    mov.b32             {%h231, %h232}, %r79;\n\
    cvt.f32.f16         %f269, %h231;\n\
    mov.b32             {%h233, %h234}, %r79;\n\
    cvt.f32.f16         %f270, %h234;\n\
    mov.b32             {%h235, %h236}, %r80;\n\
    cvt.f32.f16         %f271, %h235;\n\
    mov.b32             {%h237, %h238}, %r80;\n\
    cvt.f32.f16         %f272, %h238;\n\
    mov.b32             {%h239, %h240}, %r81;\n\
    cvt.f32.f16         %f273, %h239;\n\
    mov.b32             {%h241, %h242}, %r81;\n\
    cvt.f32.f16         %f274, %h242;\n\
    mov.b32             {%h243, %h244}, %r82;\n\
    cvt.f32.f16         %f275, %h243;\n\
    mov.b32             {%h245, %h246}, %r82;\n\
    cvt.f32.f16         %f276, %h246;\n\
    mov.b32             {%h247, %h248}, %r83;\n\
"
"\
    cvt.f32.f16         %f277, %h247;\n\
    mov.b32             {%h249, %h250}, %r83;\n\
    cvt.f32.f16         %f278, %h250;\n\
    mov.b32             {%h251, %h252}, %r84;\n\
    cvt.f32.f16         %f279, %h251;\n\
    mov.b32             {%h253, %h254}, %r84;\n\
    cvt.f32.f16         %f280, %h254;\n\
    mov.b32             {%h255, %h256}, %r77;\n\
    cvt.f32.f16         %f281, %h255;\n\
    fma.rn.f32          %f35, %f265, %f281, %f35;\n\
    fma.rn.f32          %f36, %f265, %f266, %f36;\n\
    fma.rn.f32          %f37, %f265, %f267, %f37;\n\
    fma.rn.f32          %f38, %f265, %f268, %f38;\n\
    fma.rn.f32          %f39, %f265, %f269, %f39;\n\
    fma.rn.f32          %f40, %f265, %f270, %f40;\n\
    fma.rn.f32          %f41, %f265, %f271, %f41;\n\
    fma.rn.f32          %f42, %f265, %f272, %f42;\n\
    fma.rn.f32          %f43, %f265, %f273, %f43;\n\
    fma.rn.f32          %f44, %f265, %f274, %f44;\n\
    fma.rn.f32          %f45, %f265, %f275, %f45;\n\
    fma.rn.f32          %f46, %f265, %f276, %f46;\n\
    fma.rn.f32          %f47, %f265, %f277, %f47;\n\
    fma.rn.f32          %f48, %f265, %f278, %f48;\n\
    fma.rn.f32          %f49, %f265, %f279, %f49;\n\
    fma.rn.f32          %f50, %f265, %f280, %f50;\n\
    add.u64             %rd12, %rd12, 4096;\n\
    add.u64             %rd13, %rd13, 4096;\n\
    add.u32             %r20, %r20, 1;\n\
    setp.lt.u32         %p2, %r20, %r18;\n\
    @%p2 bra            $turn_loop;\n\
\n\
$turn_done:\n\
\n\
    // attend: the positions left over, one a group\n\
    mad.lo.u32          %r85, %r18, 16, %r14;\n\
    setp.lt.u32         %p3, %r85, %r16;\n\
    @!%p3 bra           $rest_done;\n\
\n\
$rest_loop:\n\
    .pragma \"nounroll\";\n\
    add.u32             %r86, %r85, %r7;\n\
    sub.u32             %r87, %r16, 1;\n\
    min.u32             %r88, %r86, %r87;\n\
    mul.wide.u32        %rd17, %r88, 256;\n\
    setp.le.u32         %p4, %r86, %r87;\n\
    add.u64             %rd12, %rd16, %rd17;\n\
    add.u64             %rd13, %rd14, %rd17;\n\
    mov.f32             %f282, %f33;\n\
    ld.global.nc.v4.u32 {%r89, %r90, %r91, %r92}, [%rd12+128];\n\
    mov.b32             {%h257, %h258}, %r92;\n\
    cvt.f32.f16         %f283, %h258;\n\
    mov.b32             {%h259, %h260}, %r92;\n\
    cvt.f32.f16         %f284, %h259;\n\
    mov.b32             {%h261, %h262}, %r91;\n\
    cvt.f32.f16         %f285, %h262;\n\
    mov.b32             {%h263, %h264}, %r91;\n\
    cvt.f32.f16         %f286, %h263;\n\
    mov.b32             {%h265, %h266}, %r90;\n\
    cvt.f32.f16         %f287, %h266;\n\
    mov.b32             {%h267, %h268}, %r90;\n\
    cvt.f32.f16         %f288, %h267;\n\
    mov.b32             {%h269, %h270}, %r89;\n\
    cvt.f32.f16         %f289, %h270;\n\
    mov.b32             {%h271, %h272}, %r89;\n\
    cvt.f32.f16         %f290, %h271;\n\
    ld.global.nc.v4.u32 {%r93, %r94, %r95, %r96}, [%rd12];\n\
    mov.b32             {%h273, %h274}, %r96;\n\
    cvt.f32.f16         %f291, %h274;\n\
    mov.b32             {%h275, %h276}, %r96;\n\
    cvt.f32.f16         %f292, %h275;\n\
    mov.b32             {%h277, %h278}, %r95;\n\
    cvt.f32.f16         %f293, %h278;\n\
    mov.b32             {%h279, %h280}, %r95;\n\
    cvt.f32.f16         %f294, %h279;\n\
    mov.b32             {%h281, %h282}, %r94;\n\
    cvt.f32.f16         %f295, %h282;\n\
    mov.b32             {%h283, %h284}, %r94;\n\
    cvt.f32.f16         %f296, %h283;\n\
    mov.b32             {%h285, %h286}, %r93;\n\
    cvt.f32.f16         %f297, %h286;\n\
    mov.b32             {%h287, %h288}, %r93;\n\
    cvt.f32.f16         %f298, %h287;\n\
    mul.f32             %f299, %f5, %f298;\n\
    fma.rn.f32          %f300, %f6, %f297, %f299;\n\
    fma.rn.f32          %f301, %f7, %f296, %f300;\n\
    fma.rn.f32          %f302, %f8, %f295, %f301;\n\
    fma.rn.f32          %f303, %f13, %f294, %f302;\n\
    fma.rn.f32          %f304, %f14, %f293, %f303;\n\
    fma.rn.f32          %f305, %f15, %f292, %f304;\n\
    fma.rn.f32          %f306, %f16, %f291, %f305;\n\
    fma.rn.f32          %f307, %f21, %f290, %f306;\n\
    fma.rn.f32          %f308, %f22, %f289, %f307;\n\
    fma.rn.f32          %f309, %f23, %f288, %f308;\n\
    fma.rn.f32          %f310, %f24, %f287, %f309;\n\
    fma.rn.f32          %f311, %f29, %f286, %f310;\n\
    fma.rn.f32          %f312, %f30, %f285, %f311;\n\
    fma.rn.f32          %f313, %f31, %f284, %f312;\n\
    fma.rn.f32          %f314, %f32, %f283, %f313;\n\
    shfl.sync.bfly.b32  %f315, %f314, 4, 31, 0xFFFFFFFF;\n\
    add.f32             %f316, %f314, %f315;\n\
    shfl.sync.bfly.b32  %f317, %f316, 2, 31, 0xFFFFFFFF;\n\
    add.f32             %f318, %f316, %f317;\n\
    shfl.sync.bfly.b32  %f319, %f318, 1, 31, 0xFFFFFFFF;\n\
    add.f32             %f320, %f318, %f319;\n\
    selp.f32            %f321, %f320, 0fFF800000, %p4;\n\
    max.f32             %f322, %f282, %f321;\n\
    ld.global.nc.v4.u32 {%r97, %r98, %r99, %r100}, [%rd13];\n\
    ld.global.nc.v4.u32 {%r101, %r102, %r103, %r104}, [%rd13+128];\n\
    mov.f32             %f33, %f322;\n\
    sub.f32             %f323, %f282, %f322;\n\
    ex2.approx.ftz.f32  %f324, %f323;\n\
    mul.f32             %f34, %f34, %f324;\n\
    mul.f32             %f35, %f35, %f324;\n\
    mul.f32             %f36, %f36, %f324;\n\
    mul.f32             %f37, %f37, %f324;\n\
    mul.f32             %f38, %f38, %f324;\n\
    mul.f32             %f39, %f39, %f324;\n\
    mul.f32             %f40, %f40, %f324;\n\
    mul.f32             %f41, %f41, %f324;\n\
    mul.f32             %f42, %f42, %f324;\n\
    mul.f32             %f43, %f43, %f324;\n\
    mul.f32             %f44, %f44, %f324;\n\
    mul.f32             %f45, %f45, %f324;\n\
    mul.f32             %f46, %f46, %f324;\n\
    mul.f32             %f47, %f47, %f324;\n\
    mul.f32             %f48, %f48, %f324;\n\
    mul.f32             %f49, %f49, %f324;\n\
    mul.f32             %f50, %f50, %f324;\n\
    sub.f32             %f325, %f321, %f33;\n\
    ex2.approx.ftz.f32  %f326, %f325;\n\
    add.f32             %f34, %f34, %f326;\n\
    mov.b32             {%h289, %h290}, %r97;\n\
    cvt.f32.f16         %f327, %h290;\n\
    mov.b32             {%h291, %h292}, %r98;\n\
    cvt.f32.f16         %f328, %h291;\n\
    mov.b32             {%h293, %h294}, %r98;\n\
    cvt.f32.f16         %f329, %h294;\n\
    mov.b32             {%h295, %h296}, %r99;\n\
    cvt.f32.f16         %f330, %h295;\n\
    mov.b32             {%h297, %h298}, %r99;\n\
    cvt.f32.f16         %f331, %h298;\n\
    mov.b32             {%h299, %h300}, %r100;\n\
    cvt.f32.f16         %f332, %h299;\n\
    mov.b32             {%h301, %h302}, %r100;\n\
    cvt.f32.f16         %f333, %h302;\n\
    mov.b32             {%h303, %h304}, %r101;\n\
    cvt.f32.f16         %f334, %h303;\n\
    mov.b32             {%h305, %h306}, %r101;\n\
    cvt.f32.f16         %f335, %h306;\n\
    mov.b32             {%h307, %h308}, %r102;\n\
    cvt.f32.f16         %f336, %h307;\n\
    mov.b32             {%h309, %h310}, %r102;\n\
    cvt.f32.f16         %f337, %h310;\n\
    mov.b32             {%h311, %h312}, %r103;\n\
    cvt.f32.f16         %f338, %h311;\n\
    mov.b32             {%h313, %h314}, %r103;\n\
    cvt.f32.f16         %f339, %h314;\n\
    mov.b32             {%h315, %h316}, %r104;\n\
    cvt.f32.f16         %f340, %h315;\n\
    mov.b32             {%h317, %h318}, %r104;\n\
    cvt.f32.f16         %f341, %h318;\n\
    mov.b32             {%h319, %h320}, %r97;\n\
    cvt.f32.f16         %f342, %h319;\n\
    fma.rn.f32          %f35, %f326, %f342, %f35;\n\
    fma.rn.f32          %f36, %f326, %f327, %f36;\n\
    fma.rn.f32          %f37, %f326, %f328, %f37;\n\
    fma.rn.f32          %f38, %f326, %f329, %f38;\n\
    fma.rn.f32          %f39, %f326, %f330, %f39;\n\
    fma.rn.f32          %f40, %f326, %f331, %f40;\n\
    fma.rn.f32          %f41, %f326, %f332, %f41;\n\
    fma.rn.f32          %f42, %f326, %f333, %f42;\n\
    fma.rn.f32          %f43, %f326, %f334, %f43;\n\
    fma.rn.f32          %f44, %f326, %f335, %f44;\n\
    fma.rn.f32          %f45, %f326, %f336, %f45;\n\
    fma.rn.f32          %f46, %f326, %f337, %f46;\n\
    fma.rn.f32          %f47, %f326, %f338, %f47;\n\
    fma.rn.f32          %f48, %f326, %f339, %f48;\n\
    fma.rn.f32          %f49, %f326, %f340, %f49;\n\
    fma.rn.f32          %f50, %f326, %f341, %f50;\n\
    add.u32             %r85, %r85, 4;\n\
    setp.lt.u32         %p5, %r85, %r16;\n\
    @%p5 bra            $rest_loop;\n\
\n\
$rest_done:\n\
\n\
"
"\
    // merge the groups of lanes\n\
    shfl.sync.bfly.b32  %f343, %f33, 8, 31, 0xFFFFFFFF;\n\
    max.f32             %f344, %f33, %f343;\n\
    sub.f32             %f345, %f33, %f344;\n\
    ex2.approx.ftz.f32  %f346, %f345;\n\
    mul.f32             %f34, %f34, %f346;\n\
    mul.f32             %f35, %f35, %f346;\n\
    mul.f32             %f36, %f36, %f346;\n\
    mul.f32             %f37, %f37, %f346;\n\
    mul.f32             %f38, %f38, %f346;\n\
    mul.f32             %f39, %f39, %f346;\n\
    mul.f32             %f40, %f40, %f346;\n\
    mul.f32             %f41, %f41, %f346;\n\
    mul.f32             %f42, %f42, %f346;\n\
    mul.f32             %f43, %f43, %f346;\n\
    mul.f32             %f44, %f44, %f346;\n\
    mul.f32             %f45, %f45, %f346;\n\
    mul.f32             %f46, %f46, %f346;\n\
    mul.f32             %f47, %f47, %f346;\n\
    mul.f32             %f48, %f48, %f346;\n\
    mul.f32             %f49, %f49, %f346;\n\
    mul.f32             %f50, %f50, %f346;\n\
    mov.f32             %f33, %f344;\n\
    shfl.sync.bfly.b32  %f347, %f34, 8, 31, 0xFFFFFFFF;\n\
    add.f32             %f34, %f34, %f347;\n\
    shfl.sync.bfly.b32  %f348, %f35, 8, 31, 0xFFFFFFFF;\n\
    add.f32             %f35, %f35, %f348;\n\
    shfl.sync.bfly.b32  %f349, %f36, 8, 31, 0xFFFFFFFF;\n\
    add.f32             %f36, %f36, %f349;\n\
    shfl.sync.bfly.b32  %f350, %f37, 8, 31, 0xFFFFFFFF;\n\
    add.f32             %f37, %f37, %f350;\n\
    shfl.sync.bfly.b32  %f351, %f38, 8, 31, 0xFFFFFFFF;\n\
    add.f32             %f38, %f38, %f351;\n\
    shfl.sync.bfly.b32  %f352, %f39, 8, 31, 0xFFFFFFFF;\n\
    add.f32             %f39, %f39, %f352;\n\
    shfl.sync.bfly.b32  %f353, %f40, 8, 31, 0xFFFFFFFF;\n\
    add.f32             %f40, %f40, %f353;\n\
    shfl.sync.bfly.b32  %f354, %f41, 8, 31, 0xFFFFFFFF;\n\
    add.f32             %f41, %f41, %f354;\n\
    shfl.sync.bfly.b32  %f355, %f42, 8, 31, 0xFFFFFFFF;\n\
    add.f32             %f42, %f42, %f355;\n\
    shfl.sync.bfly.b32  %f356, %f43, 8, 31, 0xFFFFFFFF;\n\
    add.f32             %f43, %f43, %f356;\n\
    shfl.sync.bfly.b32  %f357, %f44, 8, 31, 0xFFFFFFFF;\n\
    add.f32             %f44, %f44, %f357;\n\
    shfl.sync.bfly.b32  %f358, %f45, 8, 31, 0xFFFFFFFF;\n\
    add.f32             %f45, %f45, %f358;\n\
    shfl.sync.bfly.b32  %f359, %f46, 8, 31, 0xFFFFFFFF;\n\
    add.f32             %f46, %f46, %f359;\n\
    shfl.sync.bfly.b32  %f360, %f47, 8, 31, 0xFFFFFFFF;\n\
    add.f32             %f47, %f47, %f360;\n\
    shfl.sync.bfly.b32  %f361, %f48, 8, 31, 0xFFFFFFFF;\n\
    add.f32             %f48, %f48, %f361;\n\
    shfl.sync.bfly.b32  %f362, %f49, 8, 31, 0xFFFFFFFF;\n\
    add.f32             %f49, %f49, %f362;\n\
    shfl.sync.bfly.b32  %f363, %f50, 8, 31, 0xFFFFFFFF;\n\
    add.f32             %f50, %f50, %f363;\n\
    shfl.sync.bfly.b32  %f364, %f33, 16, 31, 0xFFFFFFFF;\n\
    max.f32             %f365, %f33, %f364;\n\
    sub.f32             %f366, %f33, %f365;\n\
    ex2.approx.ftz.f32  %f367, %f366;\n\
    mul.f32             %f34, %f34, %f367;\n\
    mul.f32             %f35, %f35, %f367;\n\
    mul.f32             %f36, %f36, %f367;\n\
    mul.f32             %f37, %f37, %f367;\n\
    mul.f32             %f38, %f38, %f367;\n\
    mul.f32             %f39, %f39, %f367;\n\
    mul.f32             %f40, %f40, %f367;\n\
    mul.f32             %f41, %f41, %f367;\n\
    mul.f32             %f42, %f42, %f367;\n\
    mul.f32             %f43, %f43, %f367;\n\
    mul.f32             %f44, %f44, %f367;\n\
    mul.f32             %f45, %f45, %f367;\n\
    mul.f32             %f46, %f46, %f367;\n\
    mul.f32             %f47, %f47, %f367;\n\
    mul.f32             %f48, %f48, %f367;\n\
    mul.f32             %f49, %f49, %f367;\n\
    mul.f32             %f50, %f50, %f367;\n\
    mov.f32             %f33, %f365;\n\
    shfl.sync.bfly.b32  %f368, %f34, 16, 31, 0xFFFFFFFF;\n\
    add.f32             %f34, %f34, %f368;\n\
    shfl.sync.bfly.b32  %f369, %f35, 16, 31, 0xFFFFFFFF;\n\
    add.f32             %f35, %f35, %f369;\n\
    shfl.sync.bfly.b32  %f370, %f36, 16, 31, 0xFFFFFFFF;\n\
    add.f32             %f36, %f36, %f370;\n\
    shfl.sync.bfly.b32  %f371, %f37, 16, 31, 0xFFFFFFFF;\n\
    add.f32             %f37, %f37, %f371;\n\
    shfl.sync.bfly.b32  %f372, %f38, 16, 31, 0xFFFFFFFF;\n\
    add.f32             %f38, %f38, %f372;\n\
    shfl.sync.bfly.b32  %f373, %f39, 16, 31, 0xFFFFFFFF;\n\
    add.f32             %f39, %f39, %f373;\n\
    shfl.sync.bfly.b32  %f374, %f40, 16, 31, 0xFFFFFFFF;\n\
    add.f32             %f40, %f40, %f374;\n\
    shfl.sync.bfly.b32  %f375, %f41, 16, 31, 0xFFFFFFFF;\n\
    add.f32             %f41, %f41, %f375;\n\
    shfl.sync.bfly.b32  %f376, %f42, 16, 31, 0xFFFFFFFF;\n\
    add.f32             %f42, %f42, %f376;\n\
    shfl.sync.bfly.b32  %f377, %f43, 16, 31, 0xFFFFFFFF;\n\
    add.f32             %f43, %f43, %f377;\n\
    shfl.sync.bfly.b32  %f378, %f44, 16, 31, 0xFFFFFFFF;\n\
    add.f32             %f44, %f44, %f378;\n\
    shfl.sync.bfly.b32  %f379, %f45, 16, 31, 0xFFFFFFFF;\n\
    add.f32             %f45, %f45, %f379;\n\
    shfl.sync.bfly.b32  %f380, %f46, 16, 31, 0xFFFFFFFF;\n\
    add.f32             %f46, %f46, %f380;\n\
    shfl.sync.bfly.b32  %f381, %f47, 16, 31, 0xFFFFFFFF;\n\
    add.f32             %f47, %f47, %f381;\n\
    shfl.sync.bfly.b32  %f382, %f48, 16, 31, 0xFFFFFFFF;\n\
    add.f32             %f48, %f48, %f382;\n\
    shfl.sync.bfly.b32  %f383, %f49, 16, 31, 0xFFFFFFFF;\n\
    add.f32             %f49, %f49, %f383;\n\
    shfl.sync.bfly.b32  %f384, %f50, 16, 31, 0xFFFFFFFF;\n\
    add.f32             %f50, %f50, %f384;\n\
    mov.u32             %r105, partials;                        // partials\n\
    mad.lo.u32          %r106, %r5, 528, %r105;\n\
    mul.lo.u32          %r107, %r6, 32;\n\
    add.u32             %r108, %r106, %r107;\n\
    setp.eq.u32         %p6, %r7, 0;\n\
    @!%p6 bra           $skip_2;\n\
    st.shared.v4.f32    [%r108], {%f35, %f36, %f37, %f38};\n\
    st.shared.v4.f32    [%r108+16], {%f39, %f40, %f41, %f42};\n\
    st.shared.v4.f32    [%r108+256], {%f43, %f44, %f45, %f46};\n\
    st.shared.v4.f32    [%r108+272], {%f47, %f48, %f49, %f50};\n\
    setp.eq.u32         %p7, %r6, 0;\n\
    @!%p7 bra           $skip;\n\
    st.shared.v4.f32    [%r106+512], {%f33, %f34, 0f00000000, 0f00000000};\n\
\n\
$skip:\n\
\n\
$skip_2:\n\
    bar.sync            0;\n\
\n\
    // merge the warps\n\
    setp.eq.u32         %p8, %r5, 0;\n\
    @!%p8 bra           $skip_3;\n\
    mov.u32             %r109, %r3;                             // piece\n\
    setp.lt.u32         %p9, %r109, 32;\n\
    @!%p9 bra           $piece_done;\n\
\n\
$piece_loop:\n\
    .pragma \"nounroll\";\n\
    mov.f32             %f385, 0fFF7FFFFF;\n\
    mov.f32             %f386, 0f00000000;\n\
    mov.f32             %f387, 0f00000000;\n\
    mov.f32             %f388, 0f00000000;\n\
    mov.f32             %f389, 0f00000000;\n\
    mov.f32             %f390, 0f00000000;\n\
    mov.f32             %f391, %f385;\n\
    mov.u32             %r110, partials;                        // partials\n\
    ld.shared.v2.f32    {%f392, %f393}, [%r110+512];\n\
    max.f32             %f394, %f391, %f392;\n\
    mov.u32             %r111, partials;                        // partials\n\
    add.u32             %r112, %r111, 528;\n\
    ld.shared.v2.f32    {%f395, %f396}, [%r112+512];\n\
    max.f32             %f397, %f394, %f395;\n\
    mov.u32             %r113, partials;                        // partials\n\
    add.u32             %r114, %r113, 1056;\n\
    ld.shared.v2.f32    {%f398, %f399}, [%r114+512];\n\
    max.f32             %f400, %f397, %f398;\n\
    mov.u32             %r115, partials;                        // partials\n\
    add.u32             %r116, %r115, 1584;\n\
    ld.shared.v2.f32    {%f401, %f402}, [%r116+512];\n\
    max.f32             %f403, %f400, %f401;\n\
    mov.u32             %r117, partials;                        // partials\n\
    mad.lo.u32          %r118, %r109, 16, %r117;\n\
    ld.shared.v4.f32    {%f404, %f405, %f406, %f407}, [%r118];\n\
    ld.shared.v4.f32    {%f408, %f409, %f410, %f411}, [%r118+528];\n\
    ld.shared.v4.f32    {%f412, %f413, %f414, %f415}, [%r118+1056];\n\
    ld.shared.v4.f32    {%f416, %f417, %f418, %f419}, [%r118+1584];\n\
    mov.f32             %f385, %f403;\n\
    sub.f32             %f420, %f391, %f403;\n\
    ex2.approx.ftz.f32  %f421, %f420;\n\
    mul.f32             %f386, %f386, %f421;\n\
"
"\
    mul.f32             %f387, %f387, %f421;\n\
    mul.f32             %f388, %f388, %f421;\n\
    mul.f32             %f389, %f389, %f421;\n\
    mul.f32             %f390, %f390, %f421;\n\
    sub.f32             %f422, %f392, %f385;\n\
    ex2.approx.ftz.f32  %f423, %f422;\n\
    fma.rn.f32          %f386, %f423, %f393, %f386;\n\
    fma.rn.f32          %f387, %f423, %f404, %f387;\n\
    fma.rn.f32          %f388, %f423, %f405, %f388;\n\
    fma.rn.f32          %f389, %f423, %f406, %f389;\n\
    fma.rn.f32          %f390, %f423, %f407, %f390;\n\
    sub.f32             %f424, %f395, %f385;\n\
    ex2.approx.ftz.f32  %f425, %f424;\n\
    fma.rn.f32          %f386, %f425, %f396, %f386;\n\
    fma.rn.f32          %f387, %f425, %f408, %f387;\n\
    fma.rn.f32          %f388, %f425, %f409, %f388;\n\
    fma.rn.f32          %f389, %f425, %f410, %f389;\n\
    fma.rn.f32          %f390, %f425, %f411, %f390;\n\
    sub.f32             %f426, %f398, %f385;\n\
    ex2.approx.ftz.f32  %f427, %f426;\n\
    fma.rn.f32          %f386, %f427, %f399, %f386;\n\
    fma.rn.f32          %f387, %f427, %f412, %f387;\n\
    fma.rn.f32          %f388, %f427, %f413, %f388;\n\
    fma.rn.f32          %f389, %f427, %f414, %f389;\n\
    fma.rn.f32          %f390, %f427, %f415, %f390;\n\
    sub.f32             %f428, %f401, %f385;\n\
    ex2.approx.ftz.f32  %f429, %f428;\n\
    fma.rn.f32          %f386, %f429, %f402, %f386;\n\
    fma.rn.f32          %f387, %f429, %f416, %f387;\n\
    fma.rn.f32          %f388, %f429, %f417, %f388;\n\
    fma.rn.f32          %f389, %f429, %f418, %f389;\n\
    fma.rn.f32          %f390, %f429, %f419, %f390;\n\
    rcp.rn.f32          %f430, %f386;\n\
    setp.gt.f32         %p10, %f386, 0f00000000;\n\
    selp.f32            %f431, %f430, 0f00000000, %p10;\n\
    mul.f32             %f432, %f387, %f431;\n\
    mul.f32             %f433, %f388, %f431;\n\
    mul.f32             %f434, %f389, %f431;\n\
    mul.f32             %f435, %f390, %f431;\n\
    mad.wide.u32        %rd18, %r4, 512, %rd1;\n\
    mad.wide.u32        %rd19, %r109, 16, %rd18;\n\
    st.global.v4.f32    [%rd19], {%f432, %f433, %f434, %f435};\n\
    add.u32             %r109, %r109, 32;\n\
    setp.lt.u32         %p11, %r109, 32;\n\
    @%p11 bra           $piece_loop;\n\
\n\
$piece_done:\n\
\n\
$skip_3:\n\
    ret;\n\
}\n\
";
static const ptxgen_param llama_multi_warp_attention_d128_h32_kv8_s8192_w4_f16_params[] = {
    { "o", PTXGEN_PARAM_POINTER, PTXGEN_PARAM_OUT, PTXGEN_F32, 16384, "num_heads*head_dim*4", 16 },
    { "q", PTXGEN_PARAM_POINTER, PTXGEN_PARAM_IN, PTXGEN_F32, 16384, "num_heads*head_dim*4", 16 },
    { "k", PTXGEN_PARAM_POINTER, PTXGEN_PARAM_IN, PTXGEN_F16, 16777216, "num_kv_heads*max_seq_len*head_dim*2", 16 },
    { "v", PTXGEN_PARAM_POINTER, PTXGEN_PARAM_IN, PTXGEN_F16, 16777216, "num_kv_heads*max_seq_len*head_dim*2", 16 },
    { "seq_len", PTXGEN_PARAM_U32, PTXGEN_PARAM_IN, PTXGEN_U32, 4, "seq_len", 4 },
};
static const ptxgen_config llama_multi_warp_attention_d128_h32_kv8_s8192_w4_f16_config[] = {
    { "head_dim", 128, 0, NULL, 0, 0, 0, 1 },
    { "num_heads", 32, 0, NULL, 0, 0, 0, 1 },
    { "num_kv_heads", 8, 0, NULL, 0, 0, 0, 1 },
    { "max_seq_len", 8192, 0, NULL, 0, 0, 0, 1 },
    { "num_warps", 4, 0, NULL, 0, 0, 0, 1 },
    { "seq_len", 0, 0, "direct", 0, 0, 0, 1 },
    { "kv_type", 1, 0, "f16", 0, 0, 0, 1 },
    { "scale", 0, 0, NULL, 0, 0, 0, 1 },
    { "softcap", 0, 0, NULL, 0, 0, 0, 1 },
    { "window", 0, 0, NULL, 0, 0, 0, 1 },
    { "sinks", 0, 0, "none", 0, 0, 0, 1 },
};
const ptxgen_kernel llama_multi_warp_attention_d128_h32_kv8_s8192_w4_f16 = {
    "multi_warp_attention_d128_h32_kv8_s8192_w4_f16", "multi_warp_attention_d128_h32_kv8_s8192_w4_f16",
    llama_multi_warp_attention_d128_h32_kv8_s8192_w4_f16_ptx, 42121, UINT64_C(0x2ce867c62fa22b5d),
    "multi_warp_attention", PTXGEN_ATTENTION, PTXGEN_F16, PTXGEN_F32, PTXGEN_F32,
    75, 63, 0, 0, /* sm, isa, overlaps, specific */
    llama_multi_warp_attention_d128_h32_kv8_s8192_w4_f16_params, 5,
    { 128, 1, 1 }, { 32, 1, 1 }, NULL, /* block, grid, grid_at */
    2112, 0, NULL, 0, /* shared_static, shared_dynamic, shared_at, workspace */
    0, 0, 1, /* k, n, m */
    4, 128, 32, 8, 8192, /* num_warps, head_dim, num_heads, num_kv_heads, max_seq_len */
    0, 0, /* dynamic_dims, seq_len_indirect */
    llama_multi_warp_attention_d128_h32_kv8_s8192_w4_f16_config, 11,
    0, 0, /* registers, blocks_per_sm */
    2, /* preference */
    NULL, 0, 0, /* chosen_by, chosen_f32, chosen_q8 */
};

static const char llama_flash_decoding_chunk_d128_h32_kv8_s32768_m4_c128_f16_ptx[] = "\
// flash_decoding_chunk  head_dim=128 num_heads=32 num_kv_heads=8 max_seq_len=32768 m=4 chunk_size=128 kv_type=f16  partials[m,h,c] = sum over chunk c of exp(s-max) V[m], max, sum of exp(s-max)\n\
// ptxgen 0.1.0  block 32  grid 32, 4, 256\n\
.version 6.3\n\
.target sm_75\n\
.address_size 64\n\
\n\
.visible .entry flash_decoding_chunk_d128_h32_kv8_s32768_m4_c128_f16(\n\
    .param .u64 partials,\n\
    .param .u64 q,\n\
    .param .u64 k,\n\
    .param .u64 v,\n\
    .param .u64 seq_lens)\n\
.reqntid 32, 1, 1\n\
.maxnreg 96\n\
{\n\
    .reg .pred  %p<9>;\n\
    .reg .b16   %h<321>;\n\
    .reg .b32   %r<102>;\n\
    .reg .f32   %f<385>;\n\
    .reg .b64   %rd<28>;\n\
\n\
    ld.param.u64        %rd1, [partials];\n\
    ld.param.u64        %rd2, [q];\n\
    ld.param.u64        %rd3, [k];\n\
    ld.param.u64        %rd4, [v];\n\
    ld.param.u64        %rd5, [seq_lens];\n\
    mov.u32             %r1, %ctaid.y;                          // sequence\n\
    mov.u32             %r2, %ctaid.x;                          // head\n\
    mov.u32             %r3, %ctaid.z;                          // chunk\n\
    mov.u32             %r4, %tid.x;\n\
    mad.lo.u32          %r5, %r1, 32, %r2;\n\
    mad.wide.u32        %rd6, %r1, 4, %rd5;\n\
    ld.global.nc.u32    %r6, [%rd6];\n\
    min.u32             %r7, %r6, 32768;                        // seq_len\n\
    mul.lo.u32          %r8, %r3, 128;\n\
    add.u32             %r9, %r8, 128;\n\
    min.u32             %r10, %r7, %r9;\n\
    mul.wide.u32        %rd7, %r5, 256;\n\
    mad.lo.u64          %rd8, %rd7, 528, %rd1;\n\
    setp.ge.u32         %p1, %r8, %r10;\n\
    @%p1 ret;\n\
\n\
    // load q\n\
    and.b32             %r11, %r4, 7;                           // piece\n\
    shr.u32             %r12, %r4, 3;                           // group\n\
    mad.wide.u32        %rd9, %r5, 512, %rd2;\n\
    mad.wide.u32        %rd10, %r11, 32, %rd9;\n\
    ld.global.nc.v4.f32 {%f1, %f2, %f3, %f4}, [%rd10];\n\
    mul.f32             %f5, %f1, 0f3E0293EE;\n\
    mul.f32             %f6, %f2, 0f3E0293EE;\n\
    mul.f32             %f7, %f3, 0f3E0293EE;\n\
    mul.f32             %f8, %f4, 0f3E0293EE;\n\
    ld.global.nc.v4.f32 {%f9, %f10, %f11, %f12}, [%rd10+16];\n\
    mul.f32             %f13, %f9, 0f3E0293EE;\n\
    mul.f32             %f14, %f10, 0f3E0293EE;\n\
    mul.f32             %f15, %f11, 0f3E0293EE;\n\
    mul.f32             %f16, %f12, 0f3E0293EE;\n\
    ld.global.nc.v4.f32 {%f17, %f18, %f19, %f20}, [%rd10+256];\n\
    mul.f32             %f21, %f17, 0f3E0293EE;\n\
    mul.f32             %f22, %f18, 0f3E0293EE;\n\
    mul.f32             %f23, %f19, 0f3E0293EE;\n\
    mul.f32             %f24, %f20, 0f3E0293EE;\n\
    ld.global.nc.v4.f32 {%f25, %f26, %f27, %f28}, [%rd10+272];\n\
    mul.f32             %f29, %f25, 0f3E0293EE;\n\
    mul.f32             %f30, %f26, 0f3E0293EE;\n\
    mul.f32             %f31, %f27, 0f3E0293EE;\n\
    mul.f32             %f32, %f28, 0f3E0293EE;\n\
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
    mad.wide.u32        %rd11, %r1, 8, %rd4;\n\
    ld.global.nc.u64    %rd12, [%rd11];\n\
    shr.u32             %r13, %r2, 2;                           // kv_head\n\
    mul.wide.u32        %rd13, %r13, 32768;\n\
    mul.lo.u64          %rd14, %rd13, 256;\n\
    add.u64             %rd15, %rd12, %rd14;\n\
    mul.wide.u32        %rd16, %r11, 16;\n\
    mad.wide.u32        %rd17, %r1, 8, %rd3;\n\
    ld.global.nc.u64    %rd18, [%rd17];\n\
    add.u64             %rd19, %rd18, %rd14;\n\
    sub.u32             %r14, %r10, %r8;\n\
    shr.u32             %r15, %r14, 4;\n\
    mov.u64             %rd20, 0;\n\
    mov.u64             %rd21, 0;\n\
    add.u64             %rd22, %rd15, %rd16;\n\
    add.u32             %r16, %r8, %r12;\n\
    mul.wide.u32        %rd23, %r16, 256;\n\
    add.u64             %rd24, %rd19, %rd16;\n\
    add.u64             %rd20, %rd24, %rd23;\n\
    add.u64             %rd21, %rd22, %rd23;\n\
\n\
    // attend: several positions of each group of lanes at once\n\
    mov.u32             %r17, 0;                                // turn\n\
    setp.lt.u32         %p2, %r17, %r15;\n\
    @!%p2 bra           $turn_done;\n\
\n\
$turn_loop:                                                     // 128 elements a lane\n\
    .pragma \"nounroll\";\n\
    mov.f32             %f51, %f33;\n\
    ld.global.nc.v4.u32 {%r18, %r19, %r20, %r21}, [%rd20+128];\n\
    mov.b32             {%h1, %h2}, %r21;\n\
    cvt.f32.f16         %f52, %h2;\n\
    mov.b32             {%h3, %h4}, %r21;\n\
    cvt.f32.f16         %f53, %h3;\n\
    mov.b32             {%h5, %h6}, %r20;\n\
    cvt.f32.f16         %f54, %h6;\n\
    mov.b32             {%h7, %h8}, %r20;\n\
    cvt.f32.f16         %f55, %h7;\n\
    mov.b32             {%h9, %h10}, %r19;\n\
    cvt.f32.f16         %f56, %h10;\n\
    mov.b32             {%h11, %h12}, %r19;\n\
    cvt.f32.f16         %f57, %h11;\n\
    mov.b32             {%h13, %h14}, %r18;\n\
    cvt.f32.f16         %f58, %h14;\n\
    mov.b32             {%h15, %h16}, %r18;\n\
    cvt.f32.f16         %f59, %h15;\n\
    ld.global.nc.v4.u32 {%r22, %r23, %r24, %r25}, [%rd20];\n\
    mov.b32             {%h17, %h18}, %r25;\n\
    cvt.f32.f16         %f60, %h18;\n\
    mov.b32             {%h19, %h20}, %r25;\n\
    cvt.f32.f16         %f61, %h19;\n\
    mov.b32             {%h21, %h22}, %r24;\n\
    cvt.f32.f16         %f62, %h22;\n\
    mov.b32             {%h23, %h24}, %r24;\n\
    cvt.f32.f16         %f63, %h23;\n\
    mov.b32             {%h25, %h26}, %r23;\n\
    cvt.f32.f16         %f64, %h26;\n\
    mov.b32             {%h27, %h28}, %r23;\n\
    cvt.f32.f16         %f65, %h27;\n\
    mov.b32             {%h29, %h30}, %r22;\n\
    cvt.f32.f16         %f66, %h30;\n\
    mov.b32             {%h31, %h32}, %r22;\n\
    cvt.f32.f16         %f67, %h31;\n\
    mul.f32             %f68, %f5, %f67;\n\
    fma.rn.f32          %f69, %f6, %f66, %f68;\n\
    fma.rn.f32          %f70, %f7, %f65, %f69;\n\
    fma.rn.f32          %f71, %f8, %f64, %f70;\n\
    fma.rn.f32          %f72, %f13, %f63, %f71;\n\
    fma.rn.f32          %f73, %f14, %f62, %f72;\n\
    fma.rn.f32          %f74, %f15, %f61, %f73;\n\
    fma.rn.f32          %f75, %f16, %f60, %f74;\n\
    fma.rn.f32          %f76, %f21, %f59, %f75;\n\
    fma.rn.f32          %f77, %f22, %f58, %f76;\n\
    fma.rn.f32          %f78, %f23, %f57, %f77;\n\
    fma.rn.f32          %f79, %f24, %f56, %f78;\n\
    fma.rn.f32          %f80, %f29, %f55, %f79;\n\
    fma.rn.f32          %f81, %f30, %f54, %f80;\n\
    fma.rn.f32          %f82, %f31, %f53, %f81;\n\
    fma.rn.f32          %f83, %f32, %f52, %f82;\n\
    shfl.sync.bfly.b32  %f84, %f83, 4, 31, 0xFFFFFFFF;\n\
    add.f32             %f85, %f83, %f84;\n\
    shfl.sync.bfly.b32  %f86, %f85, 2, 31, 0xFFFFFFFF;\n\
    add.f32             %f87, %f85, %f86;\n\
    shfl.sync.bfly.b32  %f88, %f87, 1, 31, 0xFFFFFFFF;\n\
    add.f32             %f89, %f87, %f88;\n\
    max.f32             %f90, %f51, %f89;\n\
    ld.global.nc.v4.u32 {%r26, %r27, %r28, %r29}, [%rd20+1152];\n\
    mov.b32             {%h33, %h34}, %r29;\n\
    cvt.f32.f16         %f91, %h34;\n\
    mov.b32             {%h35, %h36}, %r29;\n\
    cvt.f32.f16         %f92, %h35;\n\
    mov.b32             {%h37, %h38}, %r28;\n\
    cvt.f32.f16         %f93, %h38;\n\
    mov.b32             {%h39, %h40}, %r28;\n\
    cvt.f32.f16         %f94, %h39;\n\
    mov.b32             {%h41, %h42}, %r27;\n\
    cvt.f32.f16         %f95, %h42;\n\
    mov.b32             {%h43, %h44}, %r27;\n\
    cvt.f32.f16         %f96, %h43;\n\
    mov.b32             {%h45, %h46}, %r26;\n\
    cvt.f32.f16         %f97, %h46;\n\
    mov.b32             {%h47, %h48}, %r26;\n\
    cvt.f32.f16         %f98, %h47;\n\
"
"\
    ld.global.nc.v4.u32 {%r30, %r31, %r32, %r33}, [%rd20+1024];\n\
    mov.b32             {%h49, %h50}, %r33;\n\
    cvt.f32.f16         %f99, %h50;\n\
    mov.b32             {%h51, %h52}, %r33;\n\
    cvt.f32.f16         %f100, %h51;\n\
    mov.b32             {%h53, %h54}, %r32;\n\
    cvt.f32.f16         %f101, %h54;\n\
    mov.b32             {%h55, %h56}, %r32;\n\
    cvt.f32.f16         %f102, %h55;\n\
    mov.b32             {%h57, %h58}, %r31;\n\
    cvt.f32.f16         %f103, %h58;\n\
    mov.b32             {%h59, %h60}, %r31;\n\
    cvt.f32.f16         %f104, %h59;\n\
    mov.b32             {%h61, %h62}, %r30;\n\
    cvt.f32.f16         %f105, %h62;\n\
    mov.b32             {%h63, %h64}, %r30;\n\
    cvt.f32.f16         %f106, %h63;\n\
    mul.f32             %f107, %f5, %f106;\n\
    fma.rn.f32          %f108, %f6, %f105, %f107;\n\
    fma.rn.f32          %f109, %f7, %f104, %f108;\n\
    fma.rn.f32          %f110, %f8, %f103, %f109;\n\
    fma.rn.f32          %f111, %f13, %f102, %f110;\n\
    fma.rn.f32          %f112, %f14, %f101, %f111;\n\
    fma.rn.f32          %f113, %f15, %f100, %f112;\n\
    fma.rn.f32          %f114, %f16, %f99, %f113;\n\
    fma.rn.f32          %f115, %f21, %f98, %f114;\n\
    fma.rn.f32          %f116, %f22, %f97, %f115;\n\
    fma.rn.f32          %f117, %f23, %f96, %f116;\n\
    fma.rn.f32          %f118, %f24, %f95, %f117;\n\
    fma.rn.f32          %f119, %f29, %f94, %f118;\n\
    fma.rn.f32          %f120, %f30, %f93, %f119;\n\
    fma.rn.f32          %f121, %f31, %f92, %f120;\n\
    fma.rn.f32          %f122, %f32, %f91, %f121;\n\
    shfl.sync.bfly.b32  %f123, %f122, 4, 31, 0xFFFFFFFF;\n\
    add.f32             %f124, %f122, %f123;\n\
    shfl.sync.bfly.b32  %f125, %f124, 2, 31, 0xFFFFFFFF;\n\
    add.f32             %f126, %f124, %f125;\n\
    shfl.sync.bfly.b32  %f127, %f126, 1, 31, 0xFFFFFFFF;\n\
    add.f32             %f128, %f126, %f127;\n\
    max.f32             %f129, %f90, %f128;\n\
    ld.global.nc.v4.u32 {%r34, %r35, %r36, %r37}, [%rd20+2176];\n\
    mov.b32             {%h65, %h66}, %r37;\n\
    cvt.f32.f16         %f130, %h66;\n\
    mov.b32             {%h67, %h68}, %r37;\n\
    cvt.f32.f16         %f131, %h67;\n\
    mov.b32             {%h69, %h70}, %r36;\n\
    cvt.f32.f16         %f132, %h70;\n\
    mov.b32             {%h71, %h72}, %r36;\n\
    cvt.f32.f16         %f133, %h71;\n\
    mov.b32             {%h73, %h74}, %r35;\n\
    cvt.f32.f16         %f134, %h74;\n\
    mov.b32             {%h75, %h76}, %r35;\n\
    cvt.f32.f16         %f135, %h75;\n\
    mov.b32             {%h77, %h78}, %r34;\n\
    cvt.f32.f16         %f136, %h78;\n\
    mov.b32             {%h79, %h80}, %r34;\n\
    cvt.f32.f16         %f137, %h79;\n\
    ld.global.nc.v4.u32 {%r38, %r39, %r40, %r41}, [%rd20+2048];\n\
    mov.b32             {%h81, %h82}, %r41;\n\
    cvt.f32.f16         %f138, %h82;\n\
    mov.b32             {%h83, %h84}, %r41;\n\
    cvt.f32.f16         %f139, %h83;\n\
    mov.b32             {%h85, %h86}, %r40;\n\
    cvt.f32.f16         %f140, %h86;\n\
    mov.b32             {%h87, %h88}, %r40;\n\
    cvt.f32.f16         %f141, %h87;\n\
    mov.b32             {%h89, %h90}, %r39;\n\
    cvt.f32.f16         %f142, %h90;\n\
    mov.b32             {%h91, %h92}, %r39;\n\
    cvt.f32.f16         %f143, %h91;\n\
    mov.b32             {%h93, %h94}, %r38;\n\
    cvt.f32.f16         %f144, %h94;\n\
    mov.b32             {%h95, %h96}, %r38;\n\
    cvt.f32.f16         %f145, %h95;\n\
    mul.f32             %f146, %f5, %f145;\n\
    fma.rn.f32          %f147, %f6, %f144, %f146;\n\
    fma.rn.f32          %f148, %f7, %f143, %f147;\n\
    fma.rn.f32          %f149, %f8, %f142, %f148;\n\
    fma.rn.f32          %f150, %f13, %f141, %f149;\n\
    fma.rn.f32          %f151, %f14, %f140, %f150;\n\
    fma.rn.f32          %f152, %f15, %f139, %f151;\n\
    fma.rn.f32          %f153, %f16, %f138, %f152;\n\
    fma.rn.f32          %f154, %f21, %f137, %f153;\n\
    fma.rn.f32          %f155, %f22, %f136, %f154;\n\
    fma.rn.f32          %f156, %f23, %f135, %f155;\n\
    fma.rn.f32          %f157, %f24, %f134, %f156;\n\
    fma.rn.f32          %f158, %f29, %f133, %f157;\n\
    fma.rn.f32          %f159, %f30, %f132, %f158;\n\
    fma.rn.f32          %f160, %f31, %f131, %f159;\n\
    fma.rn.f32          %f161, %f32, %f130, %f160;\n\
    shfl.sync.bfly.b32  %f162, %f161, 4, 31, 0xFFFFFFFF;\n\
    add.f32             %f163, %f161, %f162;\n\
    shfl.sync.bfly.b32  %f164, %f163, 2, 31, 0xFFFFFFFF;\n\
    add.f32             %f165, %f163, %f164;\n\
    shfl.sync.bfly.b32  %f166, %f165, 1, 31, 0xFFFFFFFF;\n\
    add.f32             %f167, %f165, %f166;\n\
    max.f32             %f168, %f129, %f167;\n\
    ld.global.nc.v4.u32 {%r42, %r43, %r44, %r45}, [%rd20+3200];\n\
    mov.b32             {%h97, %h98}, %r45;\n\
    cvt.f32.f16         %f169, %h98;\n\
    mov.b32             {%h99, %h100}, %r45;\n\
    cvt.f32.f16         %f170, %h99;\n\
    mov.b32             {%h101, %h102}, %r44;\n\
    cvt.f32.f16         %f171, %h102;\n\
    mov.b32             {%h103, %h104}, %r44;\n\
    cvt.f32.f16         %f172, %h103;\n\
    mov.b32             {%h105, %h106}, %r43;\n\
    cvt.f32.f16         %f173, %h106;\n\
    mov.b32             {%h107, %h108}, %r43;\n\
    cvt.f32.f16         %f174, %h107;\n\
    mov.b32             {%h109, %h110}, %r42;\n\
    cvt.f32.f16         %f175, %h110;\n\
    mov.b32             {%h111, %h112}, %r42;\n\
    cvt.f32.f16         %f176, %h111;\n\
    ld.global.nc.v4.u32 {%r46, %r47, %r48, %r49}, [%rd20+3072];\n\
    mov.b32             {%h113, %h114}, %r49;\n\
    cvt.f32.f16         %f177, %h114;\n\
    mov.b32             {%h115, %h116}, %r49;\n\
    cvt.f32.f16         %f178, %h115;\n\
    mov.b32             {%h117, %h118}, %r48;\n\
    cvt.f32.f16         %f179, %h118;\n\
    mov.b32             {%h119, %h120}, %r48;\n\
    cvt.f32.f16         %f180, %h119;\n\
    mov.b32             {%h121, %h122}, %r47;\n\
    cvt.f32.f16         %f181, %h122;\n\
    mov.b32             {%h123, %h124}, %r47;\n\
    cvt.f32.f16         %f182, %h123;\n\
    mov.b32             {%h125, %h126}, %r46;\n\
    cvt.f32.f16         %f183, %h126;\n\
    mov.b32             {%h127, %h128}, %r46;\n\
    cvt.f32.f16         %f184, %h127;\n\
    mul.f32             %f185, %f5, %f184;\n\
    fma.rn.f32          %f186, %f6, %f183, %f185;\n\
    fma.rn.f32          %f187, %f7, %f182, %f186;\n\
    fma.rn.f32          %f188, %f8, %f181, %f187;\n\
    fma.rn.f32          %f189, %f13, %f180, %f188;\n\
    fma.rn.f32          %f190, %f14, %f179, %f189;\n\
    fma.rn.f32          %f191, %f15, %f178, %f190;\n\
    fma.rn.f32          %f192, %f16, %f177, %f191;\n\
    fma.rn.f32          %f193, %f21, %f176, %f192;\n\
    fma.rn.f32          %f194, %f22, %f175, %f193;\n\
    fma.rn.f32          %f195, %f23, %f174, %f194;\n\
    fma.rn.f32          %f196, %f24, %f173, %f195;\n\
    fma.rn.f32          %f197, %f29, %f172, %f196;\n\
    fma.rn.f32          %f198, %f30, %f171, %f197;\n\
    fma.rn.f32          %f199, %f31, %f170, %f198;\n\
    fma.rn.f32          %f200, %f32, %f169, %f199;\n\
    shfl.sync.bfly.b32  %f201, %f200, 4, 31, 0xFFFFFFFF;\n\
    add.f32             %f202, %f200, %f201;\n\
    shfl.sync.bfly.b32  %f203, %f202, 2, 31, 0xFFFFFFFF;\n\
    add.f32             %f204, %f202, %f203;\n\
    shfl.sync.bfly.b32  %f205, %f204, 1, 31, 0xFFFFFFFF;\n\
    add.f32             %f206, %f204, %f205;\n\
    max.f32             %f207, %f168, %f206;\n\
    ld.global.nc.v4.u32 {%r50, %r51, %r52, %r53}, [%rd21];\n\
    ld.global.nc.v4.u32 {%r54, %r55, %r56, %r57}, [%rd21+128];\n\
    ld.global.nc.v4.u32 {%r58, %r59, %r60, %r61}, [%rd21+1024];\n\
    ld.global.nc.v4.u32 {%r62, %r63, %r64, %r65}, [%rd21+1152];\n\
    ld.global.nc.v4.u32 {%r66, %r67, %r68, %r69}, [%rd21+2048];\n\
    ld.global.nc.v4.u32 {%r70, %r71, %r72, %r73}, [%rd21+2176];\n\
    ld.global.nc.v4.u32 {%r74, %r75, %r76, %r77}, [%rd21+3072];\n\
    ld.global.nc.v4.u32 {%r78, %r79, %r80, %r81}, [%rd21+3200];\n\
    mov.f32             %f33, %f207;\n\
    sub.f32             %f208, %f51, %f207;\n\
    ex2.approx.ftz.f32  %f209, %f208;\n\
    mul.f32             %f34, %f34, %f209;\n\
    mul.f32             %f35, %f35, %f209;\n\
    mul.f32             %f36, %f36, %f209;\n\
    mul.f32             %f37, %f37, %f209;\n\
    mul.f32             %f38, %f38, %f209;\n\
    mul.f32             %f39, %f39, %f209;\n\
    mul.f32             %f40, %f40, %f209;\n\
"
"\
    mul.f32             %f41, %f41, %f209;\n\
    mul.f32             %f42, %f42, %f209;\n\
    mul.f32             %f43, %f43, %f209;\n\
    mul.f32             %f44, %f44, %f209;\n\
    mul.f32             %f45, %f45, %f209;\n\
    mul.f32             %f46, %f46, %f209;\n\
    mul.f32             %f47, %f47, %f209;\n\
    mul.f32             %f48, %f48, %f209;\n\
    mul.f32             %f49, %f49, %f209;\n\
    mul.f32             %f50, %f50, %f209;\n\
    sub.f32             %f210, %f89, %f33;\n\
    ex2.approx.ftz.f32  %f211, %f210;\n\
    add.f32             %f34, %f34, %f211;\n\
    mov.b32             {%h129, %h130}, %r50;\n\
    cvt.f32.f16         %f212, %h130;\n\
    mov.b32             {%h131, %h132}, %r51;\n\
    cvt.f32.f16         %f213, %h131;\n\
    mov.b32             {%h133, %h134}, %r51;\n\
    cvt.f32.f16         %f214, %h134;\n\
    mov.b32             {%h135, %h136}, %r52;\n\
    cvt.f32.f16         %f215, %h135;\n\
    mov.b32             {%h137, %h138}, %r52;\n\
    cvt.f32.f16         %f216, %h138;\n\
    mov.b32             {%h139, %h140}, %r53;\n\
    cvt.f32.f16         %f217, %h139;\n\
    mov.b32             {%h141, %h142}, %r53;\n\
    cvt.f32.f16         %f218, %h142;\n\
    mov.b32             {%h143, %h144}, %r54;\n\
    cvt.f32.f16         %f219, %h143;\n\
    mov.b32             {%h145, %h146}, %r54;\n\
    cvt.f32.f16         %f220, %h146;\n\
    mov.b32             {%h147, %h148}, %r55;\n\
    cvt.f32.f16         %f221, %h147;\n\
    mov.b32             {%h149, %h150}, %r55;\n\
    cvt.f32.f16         %f222, %h150;\n\
    mov.b32             {%h151, %h152}, %r56;\n\
    cvt.f32.f16         %f223, %h151;\n\
    mov.b32             {%h153, %h154}, %r56;\n\
    cvt.f32.f16         %f224, %h154;\n\
    mov.b32             {%h155, %h156}, %r57;\n\
    cvt.f32.f16         %f225, %h155;\n\
    mov.b32             {%h157, %h158}, %r57;\n\
    cvt.f32.f16         %f226, %h158;\n\
    mov.b32             {%h159, %h160}, %r50;\n\
    cvt.f32.f16         %f227, %h159;\n\
    fma.rn.f32          %f35, %f211, %f227, %f35;\n\
    fma.rn.f32          %f36, %f211, %f212, %f36;\n\
    fma.rn.f32          %f37, %f211, %f213, %f37;\n\
    fma.rn.f32          %f38, %f211, %f214, %f38;\n\
    fma.rn.f32          %f39, %f211, %f215, %f39;\n\
    fma.rn.f32          %f40, %f211, %f216, %f40;\n\
    fma.rn.f32          %f41, %f211, %f217, %f41;\n\
    fma.rn.f32          %f42, %f211, %f218, %f42;\n\
    fma.rn.f32          %f43, %f211, %f219, %f43;\n\
    fma.rn.f32          %f44, %f211, %f220, %f44;\n\
    fma.rn.f32          %f45, %f211, %f221, %f45;\n\
    fma.rn.f32          %f46, %f211, %f222, %f46;\n\
    fma.rn.f32          %f47, %f211, %f223, %f47;\n\
    fma.rn.f32          %f48, %f211, %f224, %f48;\n\
    fma.rn.f32          %f49, %f211, %f225, %f49;\n\
    fma.rn.f32          %f50, %f211, %f226, %f50;\n\
    sub.f32             %f228, %f128, %f33;\n\
    ex2.approx.ftz.f32  %f229, %f228;\n\
    add.f32             %f34, %f34, %f229;\n\
    mov.b32             {%h161, %h162}, %r58;\n\
    cvt.f32.f16         %f230, %h162;\n\
    mov.b32             {%h163, %h164}, %r59;\n\
    cvt.f32.f16         %f231, %h163;\n\
    mov.b32             {%h165, %h166}, %r59;\n\
    cvt.f32.f16         %f232, %h166;\n\
    mov.b32             {%h167, %h168}, %r60;\n\
    cvt.f32.f16         %f233, %h167;\n\
    mov.b32             {%h169, %h170}, %r60;\n\
    cvt.f32.f16         %f234, %h170;\n\
    mov.b32             {%h171, %h172}, %r61;\n\
    cvt.f32.f16         %f235, %h171;\n\
    mov.b32             {%h173, %h174}, %r61;\n\
    cvt.f32.f16         %f236, %h174;\n\
    mov.b32             {%h175, %h176}, %r62;\n\
    cvt.f32.f16         %f237, %h175;\n\
    mov.b32             {%h177, %h178}, %r62;\n\
    cvt.f32.f16         %f238, %h178;\n\
    mov.b32             {%h179, %h180}, %r63;\n\
    cvt.f32.f16         %f239, %h179;\n\
    mov.b32             {%h181, %h182}, %r63;\n\
    cvt.f32.f16         %f240, %h182;\n\
    mov.b32             {%h183, %h184}, %r64;\n\
    cvt.f32.f16         %f241, %h183;\n\
    mov.b32             {%h185, %h186}, %r64;\n\
    cvt.f32.f16         %f242, %h186;\n\
    mov.b32             {%h187, %h188}, %r65;\n\
    cvt.f32.f16         %f243, %h187;\n\
    mov.b32             {%h189, %h190}, %r65;\n\
    cvt.f32.f16         %f244, %h190;\n\
    mov.b32             {%h191, %h192}, %r58;\n\
    cvt.f32.f16         %f245, %h191;\n\
    fma.rn.f32          %f35, %f229, %f245, %f35;\n\
    fma.rn.f32          %f36, %f229, %f230, %f36;\n\
    fma.rn.f32          %f37, %f229, %f231, %f37;\n\
    fma.rn.f32          %f38, %f229, %f232, %f38;\n\
    fma.rn.f32          %f39, %f229, %f233, %f39;\n\
    fma.rn.f32          %f40, %f229, %f234, %f40;\n\
    fma.rn.f32          %f41, %f229, %f235, %f41;\n\
    fma.rn.f32          %f42, %f229, %f236, %f42;\n\
    fma.rn.f32          %f43, %f229, %f237, %f43;\n\
    fma.rn.f32          %f44, %f229, %f238, %f44;\n\
    fma.rn.f32          %f45, %f229, %f239, %f45;\n\
    fma.rn.f32          %f46, %f229, %f240, %f46;\n\
    fma.rn.f32          %f47, %f229, %f241, %f47;\n\
    fma.rn.f32          %f48, %f229, %f242, %f48;\n\
    fma.rn.f32          %f49, %f229, %f243, %f49;\n\
    fma.rn.f32          %f50, %f229, %f244, %f50;\n\
    sub.f32             %f246, %f167, %f33;\n\
    ex2.approx.ftz.f32  %f247, %f246;\n\
    add.f32             %f34, %f34, %f247;\n\
    mov.b32             {%h193, %h194}, %r66;\n\
    cvt.f32.f16         %f248, %h194;\n\
    mov.b32             {%h195, %h196}, %r67;\n\
    cvt.f32.f16         %f249, %h195;\n\
    mov.b32             {%h197, %h198}, %r67;\n\
    cvt.f32.f16         %f250, %h198;\n\
    mov.b32             {%h199, %h200}, %r68;\n\
    cvt.f32.f16         %f251, %h199;\n\
    mov.b32             {%h201, %h202}, %r68;\n\
    cvt.f32.f16         %f252, %h202;\n\
    mov.b32             {%h203, %h204}, %r69;\n\
    cvt.f32.f16         %f253, %h203;\n\
    mov.b32             {%h205, %h206}, %r69;\n\
    cvt.f32.f16         %f254, %h206;\n\
    mov.b32             {%h207, %h208}, %r70;\n\
    cvt.f32.f16         %f255, %h207;\n\
    mov.b32             {%h209, %h210}, %r70;\n\
    cvt.f32.f16         %f256, %h210;\n\
    mov.b32             {%h211, %h212}, %r71;\n\
    cvt.f32.f16         %f257, %h211;\n\
    mov.b32             {%h213, %h214}, %r71;\n\
    cvt.f32.f16         %f258, %h214;\n\
    mov.b32             {%h215, %h216}, %r72;\n\
    cvt.f32.f16         %f259, %h215;\n\
    mov.b32             {%h217, %h218}, %r72;\n\
    cvt.f32.f16         %f260, %h218;\n\
    mov.b32             {%h219, %h220}, %r73;\n\
    cvt.f32.f16         %f261, %h219;\n\
    mov.b32             {%h221, %h222}, %r73;\n\
    cvt.f32.f16         %f262, %h222;\n\
    mov.b32             {%h223, %h224}, %r66;\n\
    cvt.f32.f16         %f263, %h223;\n\
    fma.rn.f32          %f35, %f247, %f263, %f35;\n\
    fma.rn.f32          %f36, %f247, %f248, %f36;\n\
    fma.rn.f32          %f37, %f247, %f249, %f37;\n\
    fma.rn.f32          %f38, %f247, %f250, %f38;\n\
    fma.rn.f32          %f39, %f247, %f251, %f39;\n\
    fma.rn.f32          %f40, %f247, %f252, %f40;\n\
    fma.rn.f32          %f41, %f247, %f253, %f41;\n\
    fma.rn.f32          %f42, %f247, %f254, %f42;\n\
    fma.rn.f32          %f43, %f247, %f255, %f43;\n\
    fma.rn.f32          %f44, %f247, %f256, %f44;\n\
    fma.rn.f32          %f45, %f247, %f257, %f45;\n\
    fma.rn.f32          %f46, %f247, %f258, %f46;\n\
    fma.rn.f32          %f47, %f247, %f259, %f47;\n\
    fma.rn.f32          %f48, %f247, %f260, %f48;\n\
    fma.rn.f32          %f49, %f247, %f261, %f49;\n\
    fma.rn.f32          %f50, %f247, %f262, %f50;\n\
    sub.f32             %f264, %f206, %f33;\n\
    ex2.approx.ftz.f32  %f265, %f264;\n\
    add.f32             %f34, %f34, %f265;\n\
    mov.b32             {%h225, %h226}, %r74;\n\
    cvt.f32.f16         %f266, %h226;\n\
    mov.b32             {%h227, %h228}, %r75;\n\
    cvt.f32.f16         %f267, %h227;\n\
    mov.b32             {%h229, %h230}, %r75;\n\
    cvt.f32.f16         %f268, %h230;\n\
    mov.b32             {%h231, %h232}, %r76;\n\
    cvt.f32.f16         %f269, %h231;\n\
    mov.b32             {%h233, %h234}, %r76;\n\
    cvt.f32.f16         %f270, %h234;\n\
    mov.b32             {%h235, %h236}, %r77;\n\
    cvt.f32.f16         %f271, %h235;\n\
    mov.b32             {%h237, %h238}, %r77;\n\
    cvt.f32.f16         %f272, %h238;\n\
    mov.b32             {%h239, %h240}, %r78;\n\
"
"\
    cvt.f32.f16         %f273, %h239;\n\
    mov.b32             {%h241, %h242}, %r78;\n\
    cvt.f32.f16         %f274, %h242;\n\
    mov.b32             {%h243, %h244}, %r79;\n\
    cvt.f32.f16         %f275, %h243;\n\
    mov.b32             {%h245, %h246}, %r79;\n\
    cvt.f32.f16         %f276, %h246;\n\
    mov.b32             {%h247, %h248}, %r80;\n\
    cvt.f32.f16         %f277, %h247;\n\
    mov.b32             {%h249, %h250}, %r80;\n\
    cvt.f32.f16         %f278, %h250;\n\
    mov.b32             {%h251, %h252}, %r81;\n\
    cvt.f32.f16         %f279, %h251;\n\
    mov.b32             {%h253, %h254}, %r81;\n\
    cvt.f32.f16         %f280, %h254;\n\
    mov.b32             {%h255, %h256}, %r74;\n\
    cvt.f32.f16         %f281, %h255;\n\
    fma.rn.f32          %f35, %f265, %f281, %f35;\n\
    fma.rn.f32          %f36, %f265, %f266, %f36;\n\
    fma.rn.f32          %f37, %f265, %f267, %f37;\n\
    fma.rn.f32          %f38, %f265, %f268, %f38;\n\
    fma.rn.f32          %f39, %f265, %f269, %f39;\n\
    fma.rn.f32          %f40, %f265, %f270, %f40;\n\
    fma.rn.f32          %f41, %f265, %f271, %f41;\n\
    fma.rn.f32          %f42, %f265, %f272, %f42;\n\
    fma.rn.f32          %f43, %f265, %f273, %f43;\n\
    fma.rn.f32          %f44, %f265, %f274, %f44;\n\
    fma.rn.f32          %f45, %f265, %f275, %f45;\n\
    fma.rn.f32          %f46, %f265, %f276, %f46;\n\
    fma.rn.f32          %f47, %f265, %f277, %f47;\n\
    fma.rn.f32          %f48, %f265, %f278, %f48;\n\
    fma.rn.f32          %f49, %f265, %f279, %f49;\n\
    fma.rn.f32          %f50, %f265, %f280, %f50;\n\
    add.u64             %rd20, %rd20, 4096;\n\
    add.u64             %rd21, %rd21, 4096;\n\
    add.u32             %r17, %r17, 1;\n\
    setp.lt.u32         %p3, %r17, %r15;\n\
    @%p3 bra            $turn_loop;\n\
\n\
$turn_done:\n\
\n\
    // attend: the positions left over, one a group\n\
    mad.lo.u32          %r82, %r15, 16, %r8;\n\
    setp.lt.u32         %p4, %r82, %r10;\n\
    @!%p4 bra           $rest_done;\n\
\n\
$rest_loop:\n\
    .pragma \"nounroll\";\n\
    add.u32             %r83, %r82, %r12;\n\
    sub.u32             %r84, %r10, 1;\n\
    min.u32             %r85, %r83, %r84;\n\
    mul.wide.u32        %rd25, %r85, 256;\n\
    setp.le.u32         %p5, %r83, %r84;\n\
    add.u64             %rd20, %rd24, %rd25;\n\
    add.u64             %rd21, %rd22, %rd25;\n\
    mov.f32             %f282, %f33;\n\
    ld.global.nc.v4.u32 {%r86, %r87, %r88, %r89}, [%rd20+128];\n\
    mov.b32             {%h257, %h258}, %r89;\n\
    cvt.f32.f16         %f283, %h258;\n\
    mov.b32             {%h259, %h260}, %r89;\n\
    cvt.f32.f16         %f284, %h259;\n\
    mov.b32             {%h261, %h262}, %r88;\n\
    cvt.f32.f16         %f285, %h262;\n\
    mov.b32             {%h263, %h264}, %r88;\n\
    cvt.f32.f16         %f286, %h263;\n\
    mov.b32             {%h265, %h266}, %r87;\n\
    cvt.f32.f16         %f287, %h266;\n\
    mov.b32             {%h267, %h268}, %r87;\n\
    cvt.f32.f16         %f288, %h267;\n\
    mov.b32             {%h269, %h270}, %r86;\n\
    cvt.f32.f16         %f289, %h270;\n\
    mov.b32             {%h271, %h272}, %r86;\n\
    cvt.f32.f16         %f290, %h271;\n\
    ld.global.nc.v4.u32 {%r90, %r91, %r92, %r93}, [%rd20];\n\
    mov.b32             {%h273, %h274}, %r93;\n\
    cvt.f32.f16         %f291, %h274;\n\
    mov.b32             {%h275, %h276}, %r93;\n\
    cvt.f32.f16         %f292, %h275;\n\
    mov.b32             {%h277, %h278}, %r92;\n\
    cvt.f32.f16         %f293, %h278;\n\
    mov.b32             {%h279, %h280}, %r92;\n\
    cvt.f32.f16         %f294, %h279;\n\
    mov.b32             {%h281, %h282}, %r91;\n\
    cvt.f32.f16         %f295, %h282;\n\
    mov.b32             {%h283, %h284}, %r91;\n\
    cvt.f32.f16         %f296, %h283;\n\
    mov.b32             {%h285, %h286}, %r90;\n\
    cvt.f32.f16         %f297, %h286;\n\
    mov.b32             {%h287, %h288}, %r90;\n\
    cvt.f32.f16         %f298, %h287;\n\
    mul.f32             %f299, %f5, %f298;\n\
    fma.rn.f32          %f300, %f6, %f297, %f299;\n\
    fma.rn.f32          %f301, %f7, %f296, %f300;\n\
    fma.rn.f32          %f302, %f8, %f295, %f301;\n\
    fma.rn.f32          %f303, %f13, %f294, %f302;\n\
    fma.rn.f32          %f304, %f14, %f293, %f303;\n\
    fma.rn.f32          %f305, %f15, %f292, %f304;\n\
    fma.rn.f32          %f306, %f16, %f291, %f305;\n\
    fma.rn.f32          %f307, %f21, %f290, %f306;\n\
    fma.rn.f32          %f308, %f22, %f289, %f307;\n\
    fma.rn.f32          %f309, %f23, %f288, %f308;\n\
    fma.rn.f32          %f310, %f24, %f287, %f309;\n\
    fma.rn.f32          %f311, %f29, %f286, %f310;\n\
    fma.rn.f32          %f312, %f30, %f285, %f311;\n\
    fma.rn.f32          %f313, %f31, %f284, %f312;\n\
    fma.rn.f32          %f314, %f32, %f283, %f313;\n\
    shfl.sync.bfly.b32  %f315, %f314, 4, 31, 0xFFFFFFFF;\n\
    add.f32             %f316, %f314, %f315;\n\
    shfl.sync.bfly.b32  %f317, %f316, 2, 31, 0xFFFFFFFF;\n\
    add.f32             %f318, %f316, %f317;\n\
    shfl.sync.bfly.b32  %f319, %f318, 1, 31, 0xFFFFFFFF;\n\
    add.f32             %f320, %f318, %f319;\n\
    selp.f32            %f321, %f320, 0fFF800000, %p5;\n\
    max.f32             %f322, %f282, %f321;\n\
    ld.global.nc.v4.u32 {%r94, %r95, %r96, %r97}, [%rd21];\n\
    ld.global.nc.v4.u32 {%r98, %r99, %r100, %r101}, [%rd21+128];\n\
    mov.f32             %f33, %f322;\n\
    sub.f32             %f323, %f282, %f322;\n\
    ex2.approx.ftz.f32  %f324, %f323;\n\
    mul.f32             %f34, %f34, %f324;\n\
    mul.f32             %f35, %f35, %f324;\n\
    mul.f32             %f36, %f36, %f324;\n\
    mul.f32             %f37, %f37, %f324;\n\
    mul.f32             %f38, %f38, %f324;\n\
    mul.f32             %f39, %f39, %f324;\n\
    mul.f32             %f40, %f40, %f324;\n\
    mul.f32             %f41, %f41, %f324;\n\
    mul.f32             %f42, %f42, %f324;\n\
    mul.f32             %f43, %f43, %f324;\n\
    mul.f32             %f44, %f44, %f324;\n\
    mul.f32             %f45, %f45, %f324;\n\
    mul.f32             %f46, %f46, %f324;\n\
    mul.f32             %f47, %f47, %f324;\n\
    mul.f32             %f48, %f48, %f324;\n\
    mul.f32             %f49, %f49, %f324;\n\
    mul.f32             %f50, %f50, %f324;\n\
    sub.f32             %f325, %f321, %f33;\n\
    ex2.approx.ftz.f32  %f326, %f325;\n\
    add.f32             %f34, %f34, %f326;\n\
    mov.b32             {%h289, %h290}, %r94;\n\
    cvt.f32.f16         %f327, %h290;\n\
    mov.b32             {%h291, %h292}, %r95;\n\
    cvt.f32.f16         %f328, %h291;\n\
    mov.b32             {%h293, %h294}, %r95;\n\
    cvt.f32.f16         %f329, %h294;\n\
    mov.b32             {%h295, %h296}, %r96;\n\
    cvt.f32.f16         %f330, %h295;\n\
    mov.b32             {%h297, %h298}, %r96;\n\
    cvt.f32.f16         %f331, %h298;\n\
    mov.b32             {%h299, %h300}, %r97;\n\
    cvt.f32.f16         %f332, %h299;\n\
    mov.b32             {%h301, %h302}, %r97;\n\
    cvt.f32.f16         %f333, %h302;\n\
    mov.b32             {%h303, %h304}, %r98;\n\
    cvt.f32.f16         %f334, %h303;\n\
    mov.b32             {%h305, %h306}, %r98;\n\
    cvt.f32.f16         %f335, %h306;\n\
    mov.b32             {%h307, %h308}, %r99;\n\
    cvt.f32.f16         %f336, %h307;\n\
    mov.b32             {%h309, %h310}, %r99;\n\
    cvt.f32.f16         %f337, %h310;\n\
    mov.b32             {%h311, %h312}, %r100;\n\
    cvt.f32.f16         %f338, %h311;\n\
    mov.b32             {%h313, %h314}, %r100;\n\
    cvt.f32.f16         %f339, %h314;\n\
    mov.b32             {%h315, %h316}, %r101;\n\
    cvt.f32.f16         %f340, %h315;\n\
    mov.b32             {%h317, %h318}, %r101;\n\
    cvt.f32.f16         %f341, %h318;\n\
    mov.b32             {%h319, %h320}, %r94;\n\
    cvt.f32.f16         %f342, %h319;\n\
    fma.rn.f32          %f35, %f326, %f342, %f35;\n\
    fma.rn.f32          %f36, %f326, %f327, %f36;\n\
    fma.rn.f32          %f37, %f326, %f328, %f37;\n\
    fma.rn.f32          %f38, %f326, %f329, %f38;\n\
    fma.rn.f32          %f39, %f326, %f330, %f39;\n\
    fma.rn.f32          %f40, %f326, %f331, %f40;\n\
    fma.rn.f32          %f41, %f326, %f332, %f41;\n\
    fma.rn.f32          %f42, %f326, %f333, %f42;\n\
    fma.rn.f32          %f43, %f326, %f334, %f43;\n\
    fma.rn.f32          %f44, %f326, %f335, %f44;\n\
    fma.rn.f32          %f45, %f326, %f336, %f45;\n\
    fma.rn.f32          %f46, %f326, %f337, %f46;\n\
"
"\
    fma.rn.f32          %f47, %f326, %f338, %f47;\n\
    fma.rn.f32          %f48, %f326, %f339, %f48;\n\
    fma.rn.f32          %f49, %f326, %f340, %f49;\n\
    fma.rn.f32          %f50, %f326, %f341, %f50;\n\
    add.u32             %r82, %r82, 4;\n\
    setp.lt.u32         %p6, %r82, %r10;\n\
    @%p6 bra            $rest_loop;\n\
\n\
$rest_done:\n\
\n\
    // merge the groups of lanes\n\
    shfl.sync.bfly.b32  %f343, %f33, 8, 31, 0xFFFFFFFF;\n\
    max.f32             %f344, %f33, %f343;\n\
    sub.f32             %f345, %f33, %f344;\n\
    ex2.approx.ftz.f32  %f346, %f345;\n\
    mul.f32             %f34, %f34, %f346;\n\
    mul.f32             %f35, %f35, %f346;\n\
    mul.f32             %f36, %f36, %f346;\n\
    mul.f32             %f37, %f37, %f346;\n\
    mul.f32             %f38, %f38, %f346;\n\
    mul.f32             %f39, %f39, %f346;\n\
    mul.f32             %f40, %f40, %f346;\n\
    mul.f32             %f41, %f41, %f346;\n\
    mul.f32             %f42, %f42, %f346;\n\
    mul.f32             %f43, %f43, %f346;\n\
    mul.f32             %f44, %f44, %f346;\n\
    mul.f32             %f45, %f45, %f346;\n\
    mul.f32             %f46, %f46, %f346;\n\
    mul.f32             %f47, %f47, %f346;\n\
    mul.f32             %f48, %f48, %f346;\n\
    mul.f32             %f49, %f49, %f346;\n\
    mul.f32             %f50, %f50, %f346;\n\
    mov.f32             %f33, %f344;\n\
    shfl.sync.bfly.b32  %f347, %f34, 8, 31, 0xFFFFFFFF;\n\
    add.f32             %f34, %f34, %f347;\n\
    shfl.sync.bfly.b32  %f348, %f35, 8, 31, 0xFFFFFFFF;\n\
    add.f32             %f35, %f35, %f348;\n\
    shfl.sync.bfly.b32  %f349, %f36, 8, 31, 0xFFFFFFFF;\n\
    add.f32             %f36, %f36, %f349;\n\
    shfl.sync.bfly.b32  %f350, %f37, 8, 31, 0xFFFFFFFF;\n\
    add.f32             %f37, %f37, %f350;\n\
    shfl.sync.bfly.b32  %f351, %f38, 8, 31, 0xFFFFFFFF;\n\
    add.f32             %f38, %f38, %f351;\n\
    shfl.sync.bfly.b32  %f352, %f39, 8, 31, 0xFFFFFFFF;\n\
    add.f32             %f39, %f39, %f352;\n\
    shfl.sync.bfly.b32  %f353, %f40, 8, 31, 0xFFFFFFFF;\n\
    add.f32             %f40, %f40, %f353;\n\
    shfl.sync.bfly.b32  %f354, %f41, 8, 31, 0xFFFFFFFF;\n\
    add.f32             %f41, %f41, %f354;\n\
    shfl.sync.bfly.b32  %f355, %f42, 8, 31, 0xFFFFFFFF;\n\
    add.f32             %f42, %f42, %f355;\n\
    shfl.sync.bfly.b32  %f356, %f43, 8, 31, 0xFFFFFFFF;\n\
    add.f32             %f43, %f43, %f356;\n\
    shfl.sync.bfly.b32  %f357, %f44, 8, 31, 0xFFFFFFFF;\n\
    add.f32             %f44, %f44, %f357;\n\
    shfl.sync.bfly.b32  %f358, %f45, 8, 31, 0xFFFFFFFF;\n\
    add.f32             %f45, %f45, %f358;\n\
    shfl.sync.bfly.b32  %f359, %f46, 8, 31, 0xFFFFFFFF;\n\
    add.f32             %f46, %f46, %f359;\n\
    shfl.sync.bfly.b32  %f360, %f47, 8, 31, 0xFFFFFFFF;\n\
    add.f32             %f47, %f47, %f360;\n\
    shfl.sync.bfly.b32  %f361, %f48, 8, 31, 0xFFFFFFFF;\n\
    add.f32             %f48, %f48, %f361;\n\
    shfl.sync.bfly.b32  %f362, %f49, 8, 31, 0xFFFFFFFF;\n\
    add.f32             %f49, %f49, %f362;\n\
    shfl.sync.bfly.b32  %f363, %f50, 8, 31, 0xFFFFFFFF;\n\
    add.f32             %f50, %f50, %f363;\n\
    shfl.sync.bfly.b32  %f364, %f33, 16, 31, 0xFFFFFFFF;\n\
    max.f32             %f365, %f33, %f364;\n\
    sub.f32             %f366, %f33, %f365;\n\
    ex2.approx.ftz.f32  %f367, %f366;\n\
    mul.f32             %f34, %f34, %f367;\n\
    mul.f32             %f35, %f35, %f367;\n\
    mul.f32             %f36, %f36, %f367;\n\
    mul.f32             %f37, %f37, %f367;\n\
    mul.f32             %f38, %f38, %f367;\n\
    mul.f32             %f39, %f39, %f367;\n\
    mul.f32             %f40, %f40, %f367;\n\
    mul.f32             %f41, %f41, %f367;\n\
    mul.f32             %f42, %f42, %f367;\n\
    mul.f32             %f43, %f43, %f367;\n\
    mul.f32             %f44, %f44, %f367;\n\
    mul.f32             %f45, %f45, %f367;\n\
    mul.f32             %f46, %f46, %f367;\n\
    mul.f32             %f47, %f47, %f367;\n\
    mul.f32             %f48, %f48, %f367;\n\
    mul.f32             %f49, %f49, %f367;\n\
    mul.f32             %f50, %f50, %f367;\n\
    mov.f32             %f33, %f365;\n\
    shfl.sync.bfly.b32  %f368, %f34, 16, 31, 0xFFFFFFFF;\n\
    add.f32             %f34, %f34, %f368;\n\
    shfl.sync.bfly.b32  %f369, %f35, 16, 31, 0xFFFFFFFF;\n\
    add.f32             %f35, %f35, %f369;\n\
    shfl.sync.bfly.b32  %f370, %f36, 16, 31, 0xFFFFFFFF;\n\
    add.f32             %f36, %f36, %f370;\n\
    shfl.sync.bfly.b32  %f371, %f37, 16, 31, 0xFFFFFFFF;\n\
    add.f32             %f37, %f37, %f371;\n\
    shfl.sync.bfly.b32  %f372, %f38, 16, 31, 0xFFFFFFFF;\n\
    add.f32             %f38, %f38, %f372;\n\
    shfl.sync.bfly.b32  %f373, %f39, 16, 31, 0xFFFFFFFF;\n\
    add.f32             %f39, %f39, %f373;\n\
    shfl.sync.bfly.b32  %f374, %f40, 16, 31, 0xFFFFFFFF;\n\
    add.f32             %f40, %f40, %f374;\n\
    shfl.sync.bfly.b32  %f375, %f41, 16, 31, 0xFFFFFFFF;\n\
    add.f32             %f41, %f41, %f375;\n\
    shfl.sync.bfly.b32  %f376, %f42, 16, 31, 0xFFFFFFFF;\n\
    add.f32             %f42, %f42, %f376;\n\
    shfl.sync.bfly.b32  %f377, %f43, 16, 31, 0xFFFFFFFF;\n\
    add.f32             %f43, %f43, %f377;\n\
    shfl.sync.bfly.b32  %f378, %f44, 16, 31, 0xFFFFFFFF;\n\
    add.f32             %f44, %f44, %f378;\n\
    shfl.sync.bfly.b32  %f379, %f45, 16, 31, 0xFFFFFFFF;\n\
    add.f32             %f45, %f45, %f379;\n\
    shfl.sync.bfly.b32  %f380, %f46, 16, 31, 0xFFFFFFFF;\n\
    add.f32             %f46, %f46, %f380;\n\
    shfl.sync.bfly.b32  %f381, %f47, 16, 31, 0xFFFFFFFF;\n\
    add.f32             %f47, %f47, %f381;\n\
    shfl.sync.bfly.b32  %f382, %f48, 16, 31, 0xFFFFFFFF;\n\
    add.f32             %f48, %f48, %f382;\n\
    shfl.sync.bfly.b32  %f383, %f49, 16, 31, 0xFFFFFFFF;\n\
    add.f32             %f49, %f49, %f383;\n\
    shfl.sync.bfly.b32  %f384, %f50, 16, 31, 0xFFFFFFFF;\n\
    add.f32             %f50, %f50, %f384;\n\
\n\
    // store the partial row\n\
    mad.wide.u32        %rd26, %r3, 528, %rd8;\n\
    mad.wide.u32        %rd27, %r11, 32, %rd26;\n\
    setp.eq.u32         %p7, %r12, 0;\n\
    @!%p7 bra           $skip_2;\n\
    st.global.v4.f32    [%rd27], {%f35, %f36, %f37, %f38};\n\
    st.global.v4.f32    [%rd27+16], {%f39, %f40, %f41, %f42};\n\
    st.global.v4.f32    [%rd27+256], {%f43, %f44, %f45, %f46};\n\
    st.global.v4.f32    [%rd27+272], {%f47, %f48, %f49, %f50};\n\
    setp.eq.u32         %p8, %r11, 0;\n\
    @!%p8 bra           $skip;\n\
    st.global.v4.f32    [%rd26+512], {%f33, %f34, 0f00000000, 0f00000000};\n\
\n\
$skip:\n\
\n\
$skip_2:\n\
    ret;\n\
}\n\
";
static const ptxgen_param llama_flash_decoding_chunk_d128_h32_kv8_s32768_m4_c128_f16_params[] = {
    { "partials", PTXGEN_PARAM_POINTER, PTXGEN_PARAM_OUT, PTXGEN_F32, 17301504, "(m*num_heads*ceil_div(max_seq_len, chunk_size)*(head_dim + 4))*4", 16 },
    { "q", PTXGEN_PARAM_POINTER, PTXGEN_PARAM_IN, PTXGEN_F32, 65536, "m*num_heads*head_dim*4", 16 },
    { "k", PTXGEN_PARAM_POINTER, PTXGEN_PARAM_IN, PTXGEN_ADDRESS, 32, "m*8", 8 },
    { "v", PTXGEN_PARAM_POINTER, PTXGEN_PARAM_IN, PTXGEN_ADDRESS, 32, "m*8", 8 },
    { "seq_lens", PTXGEN_PARAM_POINTER, PTXGEN_PARAM_IN, PTXGEN_U32, 16, "m*4", 4 },
};
static const ptxgen_config llama_flash_decoding_chunk_d128_h32_kv8_s32768_m4_c128_f16_config[] = {
    { "head_dim", 128, 0, NULL, 0, 0, 0, 1 },
    { "num_heads", 32, 0, NULL, 0, 0, 0, 1 },
    { "num_kv_heads", 8, 0, NULL, 0, 0, 0, 1 },
    { "max_seq_len", 32768, 0, NULL, 0, 0, 0, 1 },
    { "m", 4, 0, NULL, 0, 0, 0, 1 },
    { "chunk_size", 128, 0, NULL, 0, 0, 0, 1 },
    { "kv_type", 1, 0, "f16", 0, 0, 0, 1 },
    { "scale", 0, 0, NULL, 0, 0, 0, 1 },
    { "softcap", 0, 0, NULL, 0, 0, 0, 1 },
    { "window", 0, 0, NULL, 0, 0, 0, 1 },
    { "dims", 0, 0, "static", 0, 0, 0, 1 },
};
const ptxgen_kernel llama_flash_decoding_chunk_d128_h32_kv8_s32768_m4_c128_f16 = {
    "flash_decoding_chunk_d128_h32_kv8_s32768_m4_c128_f16", "flash_decoding_chunk_d128_h32_kv8_s32768_m4_c128_f16",
    llama_flash_decoding_chunk_d128_h32_kv8_s32768_m4_c128_f16_ptx, 38194, UINT64_C(0x83165f5b4b6c10cb),
    "flash_decoding_chunk", PTXGEN_ATTENTION_CHUNKS, PTXGEN_F16, PTXGEN_F32, PTXGEN_F32,
    75, 63, 0, 0, /* sm, isa, overlaps, specific */
    llama_flash_decoding_chunk_d128_h32_kv8_s32768_m4_c128_f16_params, 5,
    { 32, 1, 1 }, { 32, 4, 256 }, NULL, /* block, grid, grid_at */
    0, 0, NULL, 0, /* shared_static, shared_dynamic, shared_at, workspace */
    0, 0, 4, /* k, n, m */
    1, 128, 32, 8, 32768, /* num_warps, head_dim, num_heads, num_kv_heads, max_seq_len */
    0, 0, /* dynamic_dims, seq_len_indirect */
    llama_flash_decoding_chunk_d128_h32_kv8_s32768_m4_c128_f16_config, 11,
    0, 0, /* registers, blocks_per_sm */
    0, /* preference */
    NULL, 0, 0, /* chosen_by, chosen_f32, chosen_q8 */
};

static const char llama_flash_decoding_reduce_d128_h32_kv8_s32768_m4_c128_ptx[] = "\
// flash_decoding_reduce  head_dim=128 num_heads=32 num_kv_heads=8 max_seq_len=32768 m=4 chunk_size=128  o[m,h] = sum over c of partials[m,h,c]\n\
// ptxgen 0.1.0  block 32  grid 32, 4\n\
.version 6.3\n\
.target sm_75\n\
.address_size 64\n\
\n\
.visible .entry flash_decoding_reduce_d128_h32_kv8_s32768_m4_c128(\n\
    .param .u64 o,\n\
    .param .u64 partials,\n\
    .param .u64 seq_lens)\n\
.reqntid 32, 1, 1\n\
.maxnreg 96\n\
{\n\
    .reg .pred  %p<13>;\n\
    .reg .b32   %r<26>;\n\
    .reg .f32   %f<95>;\n\
    .reg .b64   %rd<25>;\n\
\n\
    ld.param.u64        %rd1, [o];\n\
    ld.param.u64        %rd2, [partials];\n\
    ld.param.u64        %rd3, [seq_lens];\n\
    mov.u32             %r1, %ctaid.y;                          // sequence\n\
    mov.u32             %r2, %ctaid.x;                          // head\n\
    mov.u32             %r3, %tid.x;\n\
    mad.wide.u32        %rd4, %r1, 4, %rd3;\n\
    ld.global.nc.u32    %r4, [%rd4];\n\
    min.u32             %r5, %r4, 32768;                        // seq_len\n\
    add.u32             %r6, %r5, 127;\n\
    shr.u32             %r7, %r6, 7;\n\
    mad.lo.u32          %r8, %r1, 32, %r2;\n\
    mul.wide.u32        %rd5, %r8, 256;\n\
    mad.lo.u64          %rd6, %rd5, 528, %rd2;\n\
    setp.lt.u32         %p1, %r3, 32;\n\
    @!%p1 bra           $piece_done;\n\
\n\
$piece_loop:\n\
    .pragma \"nounroll\";\n\
    mov.f32             %f1, 0fFF7FFFFF;\n\
    mov.f32             %f2, 0f00000000;\n\
    mov.f32             %f3, 0f00000000;\n\
    mov.f32             %f4, 0f00000000;\n\
    mov.f32             %f5, 0f00000000;\n\
    mov.f32             %f6, 0f00000000;\n\
    sub.u32             %r9, %r7, 1;\n\
    mov.u32             %r10, 0;                                // row\n\
    setp.lt.u32         %p2, %r10, %r7;\n\
    @!%p2 bra           $row_done;\n\
\n\
$row_loop:                                                      // 32 elements a lane\n\
    .pragma \"nounroll\";\n\
    mov.f32             %f7, %f1;\n\
    min.u32             %r11, %r10, %r9;\n\
    mad.wide.u32        %rd7, %r11, 528, %rd6;\n\
    ld.global.nc.v2.f32 {%f8, %f9}, [%rd7+512];\n\
    max.f32             %f10, %f7, %f8;\n\
    add.u32             %r12, %r10, 1;\n\
    min.u32             %r13, %r12, %r9;\n\
    mad.wide.u32        %rd8, %r13, 528, %rd6;\n\
    ld.global.nc.v2.f32 {%f11, %f12}, [%rd8+512];\n\
    setp.le.u32         %p3, %r12, %r9;\n\
    selp.f32            %f13, %f11, 0fFF7FFFFF, %p3;\n\
    max.f32             %f14, %f10, %f13;\n\
    add.u32             %r14, %r10, 2;\n\
    min.u32             %r15, %r14, %r9;\n\
    mad.wide.u32        %rd9, %r15, 528, %rd6;\n\
    ld.global.nc.v2.f32 {%f15, %f16}, [%rd9+512];\n\
    setp.le.u32         %p4, %r14, %r9;\n\
    selp.f32            %f17, %f15, 0fFF7FFFFF, %p4;\n\
    max.f32             %f18, %f14, %f17;\n\
    add.u32             %r16, %r10, 3;\n\
    min.u32             %r17, %r16, %r9;\n\
    mad.wide.u32        %rd10, %r17, 528, %rd6;\n\
    ld.global.nc.v2.f32 {%f19, %f20}, [%rd10+512];\n\
    setp.le.u32         %p5, %r16, %r9;\n\
    selp.f32            %f21, %f19, 0fFF7FFFFF, %p5;\n\
    max.f32             %f22, %f18, %f21;\n\
    add.u32             %r18, %r10, 4;\n\
    min.u32             %r19, %r18, %r9;\n\
    mad.wide.u32        %rd11, %r19, 528, %rd6;\n\
    ld.global.nc.v2.f32 {%f23, %f24}, [%rd11+512];\n\
    setp.le.u32         %p6, %r18, %r9;\n\
    selp.f32            %f25, %f23, 0fFF7FFFFF, %p6;\n\
    max.f32             %f26, %f22, %f25;\n\
    add.u32             %r20, %r10, 5;\n\
    min.u32             %r21, %r20, %r9;\n\
    mad.wide.u32        %rd12, %r21, 528, %rd6;\n\
    ld.global.nc.v2.f32 {%f27, %f28}, [%rd12+512];\n\
    setp.le.u32         %p7, %r20, %r9;\n\
    selp.f32            %f29, %f27, 0fFF7FFFFF, %p7;\n\
    max.f32             %f30, %f26, %f29;\n\
    add.u32             %r22, %r10, 6;\n\
    min.u32             %r23, %r22, %r9;\n\
    mad.wide.u32        %rd13, %r23, 528, %rd6;\n\
    ld.global.nc.v2.f32 {%f31, %f32}, [%rd13+512];\n\
    setp.le.u32         %p8, %r22, %r9;\n\
    selp.f32            %f33, %f31, 0fFF7FFFFF, %p8;\n\
    max.f32             %f34, %f30, %f33;\n\
    add.u32             %r24, %r10, 7;\n\
    min.u32             %r25, %r24, %r9;\n\
    mad.wide.u32        %rd14, %r25, 528, %rd6;\n\
    ld.global.nc.v2.f32 {%f35, %f36}, [%rd14+512];\n\
    setp.le.u32         %p9, %r24, %r9;\n\
    selp.f32            %f37, %f35, 0fFF7FFFFF, %p9;\n\
    max.f32             %f38, %f34, %f37;\n\
    mad.wide.u32        %rd15, %r3, 16, %rd7;\n\
    ld.global.nc.v4.f32 {%f39, %f40, %f41, %f42}, [%rd15];\n\
    mad.wide.u32        %rd16, %r3, 16, %rd8;\n\
    ld.global.nc.v4.f32 {%f43, %f44, %f45, %f46}, [%rd16];\n\
    mad.wide.u32        %rd17, %r3, 16, %rd9;\n\
    ld.global.nc.v4.f32 {%f47, %f48, %f49, %f50}, [%rd17];\n\
    mad.wide.u32        %rd18, %r3, 16, %rd10;\n\
    ld.global.nc.v4.f32 {%f51, %f52, %f53, %f54}, [%rd18];\n\
    mad.wide.u32        %rd19, %r3, 16, %rd11;\n\
    ld.global.nc.v4.f32 {%f55, %f56, %f57, %f58}, [%rd19];\n\
    mad.wide.u32        %rd20, %r3, 16, %rd12;\n\
    ld.global.nc.v4.f32 {%f59, %f60, %f61, %f62}, [%rd20];\n\
    mad.wide.u32        %rd21, %r3, 16, %rd13;\n\
    ld.global.nc.v4.f32 {%f63, %f64, %f65, %f66}, [%rd21];\n\
    mad.wide.u32        %rd22, %r3, 16, %rd14;\n\
    ld.global.nc.v4.f32 {%f67, %f68, %f69, %f70}, [%rd22];\n\
    mov.f32             %f1, %f38;\n\
    sub.f32             %f71, %f7, %f38;\n\
    ex2.approx.ftz.f32  %f72, %f71;\n\
    mul.f32             %f2, %f2, %f72;\n\
    mul.f32             %f3, %f3, %f72;\n\
    mul.f32             %f4, %f4, %f72;\n\
    mul.f32             %f5, %f5, %f72;\n\
    mul.f32             %f6, %f6, %f72;\n\
    sub.f32             %f73, %f8, %f1;\n\
    ex2.approx.ftz.f32  %f74, %f73;\n\
    fma.rn.f32          %f2, %f74, %f9, %f2;\n\
    fma.rn.f32          %f3, %f74, %f39, %f3;\n\
    fma.rn.f32          %f4, %f74, %f40, %f4;\n\
    fma.rn.f32          %f5, %f74, %f41, %f5;\n\
    fma.rn.f32          %f6, %f74, %f42, %f6;\n\
    sub.f32             %f75, %f13, %f1;\n\
    ex2.approx.ftz.f32  %f76, %f75;\n\
    fma.rn.f32          %f2, %f76, %f12, %f2;\n\
    fma.rn.f32          %f3, %f76, %f43, %f3;\n\
    fma.rn.f32          %f4, %f76, %f44, %f4;\n\
    fma.rn.f32          %f5, %f76, %f45, %f5;\n\
    fma.rn.f32          %f6, %f76, %f46, %f6;\n\
    sub.f32             %f77, %f17, %f1;\n\
    ex2.approx.ftz.f32  %f78, %f77;\n\
    fma.rn.f32          %f2, %f78, %f16, %f2;\n\
    fma.rn.f32          %f3, %f78, %f47, %f3;\n\
    fma.rn.f32          %f4, %f78, %f48, %f4;\n\
    fma.rn.f32          %f5, %f78, %f49, %f5;\n\
    fma.rn.f32          %f6, %f78, %f50, %f6;\n\
    sub.f32             %f79, %f21, %f1;\n\
    ex2.approx.ftz.f32  %f80, %f79;\n\
    fma.rn.f32          %f2, %f80, %f20, %f2;\n\
    fma.rn.f32          %f3, %f80, %f51, %f3;\n\
    fma.rn.f32          %f4, %f80, %f52, %f4;\n\
    fma.rn.f32          %f5, %f80, %f53, %f5;\n\
    fma.rn.f32          %f6, %f80, %f54, %f6;\n\
    sub.f32             %f81, %f25, %f1;\n\
    ex2.approx.ftz.f32  %f82, %f81;\n\
    fma.rn.f32          %f2, %f82, %f24, %f2;\n\
    fma.rn.f32          %f3, %f82, %f55, %f3;\n\
    fma.rn.f32          %f4, %f82, %f56, %f4;\n\
    fma.rn.f32          %f5, %f82, %f57, %f5;\n\
    fma.rn.f32          %f6, %f82, %f58, %f6;\n\
    sub.f32             %f83, %f29, %f1;\n\
    ex2.approx.ftz.f32  %f84, %f83;\n\
    fma.rn.f32          %f2, %f84, %f28, %f2;\n\
    fma.rn.f32          %f3, %f84, %f59, %f3;\n\
    fma.rn.f32          %f4, %f84, %f60, %f4;\n\
    fma.rn.f32          %f5, %f84, %f61, %f5;\n\
    fma.rn.f32          %f6, %f84, %f62, %f6;\n\
    sub.f32             %f85, %f33, %f1;\n\
    ex2.approx.ftz.f32  %f86, %f85;\n\
    fma.rn.f32          %f2, %f86, %f32, %f2;\n\
    fma.rn.f32          %f3, %f86, %f63, %f3;\n\
    fma.rn.f32          %f4, %f86, %f64, %f4;\n\
    fma.rn.f32          %f5, %f86, %f65, %f5;\n\
    fma.rn.f32          %f6, %f86, %f66, %f6;\n\
    sub.f32             %f87, %f37, %f1;\n\
    ex2.approx.ftz.f32  %f88, %f87;\n\
    fma.rn.f32          %f2, %f88, %f36, %f2;\n\
    fma.rn.f32          %f3, %f88, %f67, %f3;\n\
    fma.rn.f32          %f4, %f88, %f68, %f4;\n\
    fma.rn.f32          %f5, %f88, %f69, %f5;\n\
    fma.rn.f32          %f6, %f88, %f70, %f6;\n\
    add.u32             %r10, %r10, 8;\n\
    setp.lt.u32         %p10, %r10, %r7;\n\
    @%p10 bra           $row_loop;\n\
\n\
$row_done:\n\
    rcp.rn.f32          %f89, %f2;\n\
"
"\
    setp.gt.f32         %p11, %f2, 0f00000000;\n\
    selp.f32            %f90, %f89, 0f00000000, %p11;\n\
    mul.f32             %f91, %f3, %f90;\n\
    mul.f32             %f92, %f4, %f90;\n\
    mul.f32             %f93, %f5, %f90;\n\
    mul.f32             %f94, %f6, %f90;\n\
    mad.wide.u32        %rd23, %r8, 512, %rd1;\n\
    mad.wide.u32        %rd24, %r3, 16, %rd23;\n\
    st.global.v4.f32    [%rd24], {%f91, %f92, %f93, %f94};\n\
    add.u32             %r3, %r3, 32;\n\
    setp.lt.u32         %p12, %r3, 32;\n\
    @%p12 bra           $piece_loop;\n\
\n\
$piece_done:\n\
    ret;\n\
}\n\
";
static const ptxgen_param llama_flash_decoding_reduce_d128_h32_kv8_s32768_m4_c128_params[] = {
    { "o", PTXGEN_PARAM_POINTER, PTXGEN_PARAM_OUT, PTXGEN_F32, 65536, "m*num_heads*head_dim*4", 16 },
    { "partials", PTXGEN_PARAM_POINTER, PTXGEN_PARAM_IN, PTXGEN_F32, 17301504, "(m*num_heads*ceil_div(max_seq_len, chunk_size)*(head_dim + 4))*4", 16 },
    { "seq_lens", PTXGEN_PARAM_POINTER, PTXGEN_PARAM_IN, PTXGEN_U32, 16, "m*4", 4 },
};
static const ptxgen_config llama_flash_decoding_reduce_d128_h32_kv8_s32768_m4_c128_config[] = {
    { "head_dim", 128, 0, NULL, 0, 0, 0, 1 },
    { "num_heads", 32, 0, NULL, 0, 0, 0, 1 },
    { "num_kv_heads", 8, 0, NULL, 0, 0, 0, 1 },
    { "max_seq_len", 32768, 0, NULL, 0, 0, 0, 1 },
    { "m", 4, 0, NULL, 0, 0, 0, 1 },
    { "chunk_size", 128, 0, NULL, 0, 0, 0, 1 },
    { "window", 0, 0, NULL, 0, 0, 0, 1 },
    { "sinks", 0, 0, "none", 0, 0, 0, 1 },
    { "dims", 0, 0, "static", 0, 0, 0, 1 },
};
const ptxgen_kernel llama_flash_decoding_reduce_d128_h32_kv8_s32768_m4_c128 = {
    "flash_decoding_reduce_d128_h32_kv8_s32768_m4_c128", "flash_decoding_reduce_d128_h32_kv8_s32768_m4_c128",
    llama_flash_decoding_reduce_d128_h32_kv8_s32768_m4_c128_ptx, 8548, UINT64_C(0xa9471f833dfe64a0),
    "flash_decoding_reduce", PTXGEN_MERGE_CHUNKS, PTXGEN_NONE, PTXGEN_F32, PTXGEN_F32,
    75, 63, 0, 0, /* sm, isa, overlaps, specific */
    llama_flash_decoding_reduce_d128_h32_kv8_s32768_m4_c128_params, 3,
    { 32, 1, 1 }, { 32, 4, 1 }, NULL, /* block, grid, grid_at */
    0, 0, NULL, 0, /* shared_static, shared_dynamic, shared_at, workspace */
    0, 0, 4, /* k, n, m */
    1, 128, 32, 8, 32768, /* num_warps, head_dim, num_heads, num_kv_heads, max_seq_len */
    0, 0, /* dynamic_dims, seq_len_indirect */
    llama_flash_decoding_reduce_d128_h32_kv8_s32768_m4_c128_config, 9,
    0, 0, /* registers, blocks_per_sm */
    0, /* preference */
    NULL, 0, 0, /* chosen_by, chosen_f32, chosen_q8 */
};

static const ptxgen_param llama_flash_decoding_d128_h32_kv8_s32768_m4_c128_f16_buffers[] = {
    { "o", PTXGEN_PARAM_POINTER, PTXGEN_PARAM_OUT, PTXGEN_F32, 65536, "65536", 16 },
    { "q", PTXGEN_PARAM_POINTER, PTXGEN_PARAM_IN, PTXGEN_F32, 65536, "65536", 16 },
    { "k", PTXGEN_PARAM_POINTER, PTXGEN_PARAM_IN, PTXGEN_ADDRESS, 32, "32", 8 },
    { "v", PTXGEN_PARAM_POINTER, PTXGEN_PARAM_IN, PTXGEN_ADDRESS, 32, "32", 8 },
    { "seq_lens", PTXGEN_PARAM_POINTER, PTXGEN_PARAM_IN, PTXGEN_U32, 16, "16", 4 },
};
static const ptxgen_argument llama_flash_decoding_d128_h32_kv8_s32768_m4_c128_f16_step_0[] = { { PTXGEN_WORKSPACE, 0 }, { 1, 0 }, { 2, 0 }, { 3, 0 }, { 4, 0 } };
static const ptxgen_argument llama_flash_decoding_d128_h32_kv8_s32768_m4_c128_f16_step_1[] = { { 0, 0 }, { PTXGEN_WORKSPACE, 0 }, { 4, 0 } };
static const ptxgen_pipeline_step llama_flash_decoding_d128_h32_kv8_s32768_m4_c128_f16_steps[] = {
    { "flash_decoding_chunk_d128_h32_kv8_s32768_m4_c128_f16", 26, llama_flash_decoding_d128_h32_kv8_s32768_m4_c128_f16_step_0, 5 },
    { "flash_decoding_reduce_d128_h32_kv8_s32768_m4_c128", 27, llama_flash_decoding_d128_h32_kv8_s32768_m4_c128_f16_step_1, 3 },
};
static const ptxgen_config llama_flash_decoding_d128_h32_kv8_s32768_m4_c128_f16_config[] = {
    { "head_dim", 128, 0, NULL, 0, 0, 0, 1 },
    { "num_heads", 32, 0, NULL, 0, 0, 0, 1 },
    { "num_kv_heads", 8, 0, NULL, 0, 0, 0, 1 },
    { "max_seq_len", 32768, 0, NULL, 0, 0, 0, 1 },
    { "m", 4, 0, NULL, 0, 0, 0, 1 },
    { "chunk_size", 128, 0, NULL, 0, 0, 0, 1 },
    { "kv_type", 1, 0, "f16", 0, 0, 0, 1 },
    { "scale", 0, 0, NULL, 0, 0, 0, 1 },
    { "softcap", 0, 0, NULL, 0, 0, 0, 1 },
    { "window", 0, 0, NULL, 0, 0, 0, 1 },
    { "sinks", 0, 0, "none", 0, 0, 0, 1 },
};
const ptxgen_pipeline llama_flash_decoding_d128_h32_kv8_s32768_m4_c128_f16 = {
    "flash_decoding_d128_h32_kv8_s32768_m4_c128_f16", "flash_decoding", llama_flash_decoding_d128_h32_kv8_s32768_m4_c128_f16_buffers, 5, llama_flash_decoding_d128_h32_kv8_s32768_m4_c128_f16_steps, 2,
    17301504, 0, /* workspace, rows_at_run_time */
    0, 0, 0, 4, /* k, n, n_kv, m */
    llama_flash_decoding_d128_h32_kv8_s32768_m4_c128_f16_config, 11,
    PTXGEN_BATCHED_ATTENTION, PTXGEN_F16, PTXGEN_F32, PTXGEN_F32, /* operation, weights, activations, precision */
};


#ifdef __GNUC__
#pragma GCC diagnostic pop
#endif

const ptxgen_kernel *const llama_kernels[] = {
    &llama_f32_gemv_k4096_n256,
    &llama_f32_gemv_dynamic,
    &llama_q4k_gemv_k4096_n1024,
    &llama_mwv_q4k_gemv_k4096_n4096_w2,
    &llama_mwv_q4k_gemv_k4096_n4096_w4,
    &llama_mwv_q4k_gemv_k4096_n1024_w2,
    &llama_mwv_q4k_gemv_k4096_n1024_w4,
    &llama_mwv_q4k_gemv_k4096_n14336_w2,
    &llama_mwv_q4k_gemv_k4096_n14336_w4,
    &llama_mwv_q4k_gemv_k14336_n4096_w2,
    &llama_mwv_q4k_gemv_k14336_n4096_w4,
    &llama_mwv_q4k_gemv_k4096_n128256_w4,
    &llama_mwv_q6k_gemv_k4096_n4096_w4,
    &llama_stream_gemv_q6k_k4096_n4096_m1_w8_r2,
    &llama_stream_gemv_q6k_k4096_n4096_m1_w16_r2,
    &llama_stream_gemv_q8_0_k4096_n4096_m1_w12_r2,
    &llama_stream_gemv_q8_0_k4096_n4096_m1_w16_r2,
    &llama_q8_1_quantize_k4096_m1_w4,
    &llama_q8_1_quantize_k14336_m1_w4,
    &llama_mwv_dp4a_q4k_gemv_k4096_n4096_w3,
    &llama_mwv_dp4a_q4k_gemv_k4096_n1024_w3,
    &llama_mwv_dp4a_q4k_gemv_k4096_n14336_w3,
    &llama_mwv_dp4a_q4k_gemv_k14336_n4096_w3,
    &llama_incremental_attention_d128_h32_kv8_s8192,
    &llama_incremental_attention_d128_h32_kv8_s8192_indirect,
    &llama_multi_warp_attention_d128_h32_kv8_s8192_w4_f16,
    &llama_flash_decoding_chunk_d128_h32_kv8_s32768_m4_c128_f16,
    &llama_flash_decoding_reduce_d128_h32_kv8_s32768_m4_c128,
};
const size_t llama_kernel_count = sizeof llama_kernels / sizeof *llama_kernels;

const ptxgen_pipeline *const llama_pipelines[] = {
    &llama_flash_decoding_d128_h32_kv8_s32768_m4_c128_f16,
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
