/* A model's step on the emulated driver, of random weights: one by one, several at a time, and as a
 * graph, it has the same logits to the bit. */
#include <dlfcn.h>
#include <math.h>
#include <string.h>

#include "test.h"
#include "libcuda/api.h"

#define TINY_KERNELS_IMPLEMENTATION
#define TINY_WITH_CUDA
#include "tiny_kernels.h"

#define assert_success(call) assert_int_equal(call, CUDA_SUCCESS)

enum { VOCAB = 320, PROMPT = 13, STEPS = 3, Q8_0_BYTES = 34, MOST_BYTES = VOCAB * 256 * 2 };

static CUcontext context;
static CUstream stream;
static tiny_cuda cuda;
static tiny_decoder model;
static uint32_t prompt[PROMPT];
static char why[8192];

static void keep(void *to, const char *said)
{
    (void)to;
    strncpy(why, said, sizeof why - 1);
}

static uint32_t random_number(void)
{
    static uint64_t seed = 1;
    seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)(seed >> 33);
}

/* Gains near 1, weights of some hundredths. */
static void fill(const ptxgen_tensor *t, unsigned char *bytes)
{
    for (size_t i = 0; t->format == PTXGEN_F32 && i < t->bytes; i += sizeof(float)) {
        float gain = 0.75f + (float)(random_number() % 512) / 1024;
        memcpy(bytes + i, &gain, sizeof gain);
    }
    for (size_t i = 0; t->format == PTXGEN_Q8_0 && i < t->bytes; i++)
        bytes[i] = i % Q8_0_BYTES == 1 ? 0x10 : (unsigned char)random_number();
}

static int make(void **state)
{
    static unsigned char bytes[MOST_BYTES];
    (void)state;
    if (cuInit(0) || cuCtxCreate_v4(&context, NULL, 0, 0) ||
        cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING) ||
        tiny_cuda_init(&cuda, dlsym, dlopen(NULL, RTLD_NOW)))
        return -1;
    cuda.driver.report = keep;
    if (tiny_create(&model, &cuda, NULL))
        return -1;
    for (size_t i = 0; i < tiny_tensor_count; i++) {
        const ptxgen_tensor *t = &tiny_tensors[i];
        fill(t, bytes);
        if (t->bytes > sizeof bytes || tiny_load_tensor(&model, t, bytes, t->bytes))
            return -1;
    }
    for (size_t i = 0; i < PROMPT; i++)
        prompt[i] = random_number() % VOCAB;
    return 0;
}

static int drop(void **state)
{
    (void)state;
    return tiny_destroy(&model) || tiny_unload(&cuda) || cuCtxDestroy_v2(context);
}

/* What a step left, and the token that it sampled: the likeliest. */
typedef struct outcome {
    float logits[VOCAB];
    uint32_t token;
} outcome;

static outcome look(void)
{
    outcome o;
    uint32_t likeliest = 0;
    assert_success(tiny_token(&model, stream, &o.token));
    assert_success(cuMemcpyDtoH_v2(o.logits, tiny_logits(&model), sizeof o.logits));
    for (uint32_t i = 0; i < VOCAB; i++) {
        assert_true(isfinite(o.logits[i]));
        likeliest = o.logits[i] > o.logits[likeliest] ? i : likeliest;
    }
    assert_int_equal(o.token, likeliest);
    return o;
}

static void assert_same(const outcome *a, const outcome *b)
{
    assert_memory_equal(a, b, sizeof *a);
}

TEST_WITH(a_model_has_the_same_logits_one_by_one_at_once_and_as_a_graph, make, drop)
{
    outcome want[STEPS + 1], have;
    CUgraph graph;
    CUgraphExec exec;
    size_t nodes = 0;
    for (uint32_t i = 0; i < PROMPT; i++) {
        assert_success(tiny_rows(&model, stream, 1, &prompt[i], &i));
        assert_success(tiny_step(&model, stream));
    }
    want[0] = look();
    for (size_t i = 1; i <= STEPS; i++) {
        assert_success(tiny_step(&model, stream));
        want[i] = look();
    }

    assert_success(tiny_seek(&model, stream, 0));
    assert_success(tiny_prompt(&model, stream, prompt, PROMPT));
    have = look();
    assert_same(&have, &want[0]);

    assert_success(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
    assert_success(tiny_step(&model, stream));
    assert_success(cuStreamEndCapture(stream, &graph));
    assert_success(cuGraphGetNodes(graph, NULL, &nodes));
    assert_int_equal(nodes, tiny_plan.steps[0].launch_count);
    assert_success(cuGraphInstantiateWithFlags(&exec, graph, 0));
    for (size_t i = 1; i <= STEPS; i++) {
        assert_success(cuGraphLaunch(exec, stream));
        have = look();
        assert_same(&have, &want[i]);
    }
    assert_success(cuGraphExecDestroy(exec));
    assert_success(cuGraphDestroy(graph));
}

TEST(a_dense_layer_takes_six_launches)
{
    assert_int_equal(tiny_plan.layers, 2);
    assert_int_equal(tiny_plan.step_count, 2);
    for (size_t i = 0; i < tiny_plan.step_count; i++)
        assert_in_range(tiny_plan.steps[i].launch_count, 1, 6 * 2 + 3);
}
