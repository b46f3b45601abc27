/* The functions of a header with a decoder, on the emulated driver: the toys of toy.c, whose logits
 * are whole numbers and depend on all tokens before them. */
#include <dlfcn.h>
#include <string.h>

#include "test.h"
#include "libcuda/api.h"

#define TOY_KERNELS_IMPLEMENTATION
#define TOY_WITH_CUDA
#include "toy_kernels.h"
#define PTXGEN_KERNELS_IMPLEMENTATION
#define PTXGEN_WITH_CUDA
#include "ptxgen_kernels.h"

#define assert_success(call) assert_int_equal(call, CUDA_SUCCESS)

enum { VOCAB = 16, POSITIONS = 24, PROMPT = 11 };
static const uint32_t prompt[PROMPT] = { 3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 15 };

static CUcontext context;
static CUstream stream;
static toy_cuda cuda;
static toy_decoder model;
static char why[1024];

static void keep(void *to, const char *said)
{
    (void)to;
    strncpy(why, said, sizeof why - 1);
}

static void load_weights(toy_decoder *of)
{
    for (size_t i = 0; i < toy_tensor_count; i++) {
        const ptxgen_tensor *t = &toy_tensors[i];
        uint32_t words[VOCAB];
        for (uint32_t w = 0; w < VOCAB; w++)
            words[w] = (uint32_t)(i + 1) * 2654435761u + w * 40503u;
        assert_success(toy_load_tensor(of, t, words, t->bytes));
    }
}

static int make(void **state)
{
    (void)state;
    memset(why, 0, sizeof why);
    if (cuInit(0) || cuCtxCreate_v4(&context, NULL, 0, 0) ||
        cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING) ||
        toy_cuda_init(&cuda, dlsym, dlopen(NULL, RTLD_NOW)))
        return -1;
    cuda.driver.report = keep;
    if (toy_create(&model, &cuda, NULL))
        return -1;
    load_weights(&model);
    return 0;
}

static int drop(void **state)
{
    (void)state;
    return toy_destroy(&model) || toy_unload(&cuda) || cuCtxDestroy_v2(context);
}

/* What the last step left. */
typedef struct outcome {
    uint32_t logits[VOCAB], token, position, length;
} outcome;

static outcome look(const toy_decoder *of)
{
    outcome o;
    assert_success(cuStreamSynchronize(stream));
    assert_success(cuMemcpyDtoH_v2(o.logits, toy_logits(of), sizeof o.logits));
    assert_success(cuMemcpyDtoH_v2(&o.position, of->state + toy_plan.positions, 4));
    assert_success(cuMemcpyDtoH_v2(&o.length, of->state + toy_plan.lengths, 4));
    assert_success(toy_token(of, stream, &o.token));
    return o;
}

static void assert_same(const outcome *a, const outcome *b)
{
    assert_memory_equal(a, b, sizeof *a);
}

/* Token by token, by hand. */
static outcome step_by_step(size_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        assert_success(toy_rows(&model, stream, 1, &prompt[i], &i));
        assert_success(toy_step(&model, stream));
    }
    return look(&model);
}

TEST_WITH(a_prompt_gives_what_its_tokens_give_one_by_one, make, drop)
{
    for (size_t count = 1; count <= PROMPT; count++) {
        outcome want = step_by_step(count), have;
        assert_int_equal(want.position, count);
        assert_int_equal(want.length, count + 1);
        assert_success(toy_seek(&model, stream, 0));
        assert_success(toy_prompt(&model, stream, prompt, count));
        have = look(&model);
        assert_same(&have, &want);
    }
}

TEST_WITH(a_prompt_goes_on_where_the_last_one_ended, make, drop)
{
    outcome want = step_by_step(PROMPT), have;
    for (size_t first = 1; first < PROMPT; first++) {
        assert_success(toy_seek(&model, stream, 0));
        assert_success(toy_prompt(&model, stream, prompt, first));
        assert_success(toy_prompt(&model, stream, prompt + first, PROMPT - first));
        have = look(&model);
        assert_same(&have, &want);
    }
    assert_success(toy_seek(&model, stream, 4));
    assert_success(toy_prompt(&model, stream, prompt + 4, PROMPT - 4));
    have = look(&model);
    assert_same(&have, &want);
}

TEST_WITH(a_step_goes_on_with_the_token_that_was_sampled, make, drop)
{
    uint32_t text[POSITIONS] = { 0 };
    outcome have, want;
    memcpy(text, prompt, sizeof prompt);
    assert_success(toy_prompt(&model, stream, prompt, PROMPT));
    for (size_t i = PROMPT; i < POSITIONS; i++) {
        assert_success(toy_token(&model, stream, &text[i]));
        assert_in_range(text[i], 0, VOCAB - 1);
        assert_success(toy_step(&model, stream));
    }
    have = look(&model);
    assert_success(toy_seek(&model, stream, 0));
    assert_success(toy_prompt(&model, stream, text, POSITIONS));
    want = look(&model);
    assert_same(&have, &want);
}

/* A graph is made once; it is launched for each token, and never updated. */
TEST_WITH(a_captured_step_gives_every_token, make, drop)
{
    CUgraph graph;
    CUgraphExec exec;
    size_t nodes = 0;
    outcome want[4], have;
    assert_success(toy_prompt(&model, stream, prompt, PROMPT));
    for (size_t i = 0; i < 4; i++) {
        assert_success(toy_step(&model, stream));
        want[i] = look(&model);
    }
    assert_success(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
    assert_success(toy_step(&model, stream));
    assert_success(cuStreamEndCapture(stream, &graph));
    assert_success(cuGraphGetNodes(graph, NULL, &nodes));
    assert_int_equal(nodes, toy_plan.steps[0].launch_count);
    assert_success(cuGraphInstantiateWithFlags(&exec, graph, 0));
    assert_success(toy_seek(&model, stream, 0));
    assert_success(toy_prompt(&model, stream, prompt, PROMPT));
    for (size_t i = 0; i < 4; i++) {
        assert_success(cuGraphLaunch(exec, stream));
        have = look(&model);
        assert_same(&have, &want[i]);
    }
    assert_success(cuGraphExecDestroy(exec));
    assert_success(cuGraphDestroy(graph));
}

TEST_WITH(rows_have_the_caches_of_the_sequences_that_they_were_assigned, make, drop)
{
    uint32_t other[PROMPT];
    outcome first, second, have;
    for (size_t i = 0; i < PROMPT; i++)
        other[i] = VOCAB - 1 - prompt[i];
    assert_success(toy_prompt(&model, stream, prompt, PROMPT));
    for (unsigned row = 0; row < toy_plan.rows; row++)
        assert_success(toy_assign(&model, stream, row, 1));
    assert_success(toy_seek(&model, stream, 0));
    assert_success(toy_prompt(&model, stream, other, PROMPT));
    assert_success(toy_step(&model, stream));
    second = look(&model);
    for (unsigned row = 0; row < toy_plan.rows; row++)
        assert_success(toy_assign(&model, stream, row, 0));
    assert_success(toy_seek(&model, stream, PROMPT - 1));
    assert_success(toy_prompt(&model, stream, prompt + PROMPT - 1, 1));
    first = look(&model);
    assert_memory_not_equal(first.logits, second.logits, sizeof first.logits);
    assert_success(toy_seek(&model, stream, 0));
    assert_success(toy_prompt(&model, stream, prompt, PROMPT));
    have = look(&model);
    assert_same(&have, &first);
}

TEST_WITH(sampling_is_set_on_the_stream, make, drop)
{
    uint32_t token, words[PTXGEN_SAMPLING_WORDS];
    float numbers[PTXGEN_SAMPLING_WORDS];
    assert_success(toy_sampling(&model, stream, 0.5f, 40, 0.75f, 0.25f, UINT64_C(0x100000005)));
    assert_success(toy_prompt(&model, stream, prompt, PROMPT));
    assert_success(toy_token(&model, stream, &token));
    assert_int_equal(token, 5);
    assert_success(cuMemcpyDtoH_v2(words, model.state + toy_plan.sampling, sizeof words));
    memcpy(numbers, words, sizeof words);
    assert_true(numbers[PTXGEN_TEMPERATURE] == 0.5f && numbers[PTXGEN_TOP_P] == 0.75f &&
                numbers[PTXGEN_MIN_P] == 0.25f);
    assert_int_equal(words[PTXGEN_TOP_K], 40);
    assert_int_equal(words[PTXGEN_SEED], 5);
    assert_int_equal(words[PTXGEN_SEED + 1], 1);
}

static void assert_refused(CUresult result, const char *said)
{
    assert_int_equal(result, CUDA_ERROR_INVALID_VALUE);
    assert_string_equal(why, said);
    memset(why, 0, sizeof why);
}

TEST_WITH(a_tensor_is_refused_with_its_name_and_bytes, make, drop)
{
    static const char bytes[64];
    const ptxgen_tensor *v = toy_find_tensor("blk.1.v.weight");
    assert_ptr_equal(v, &toy_tensors[3]);
    assert_refused(toy_load_tensor(&model, v, bytes, 15),
                   "toy: blk.1.v.weight: 16 bytes of f32 are wanted, and 15 given");
    assert_refused(toy_load_tensor(&model, v, NULL, 16), "toy: blk.1.v.weight is given no bytes");
    assert_refused(toy_load_tensor(&model, toy_find_tensor("blk.2.v.weight"), bytes, 16),
                   "toy: a tensor that it does not have");
}

TEST_WITH(a_prompt_is_refused_before_it_changes_anything, make, drop)
{
    uint32_t text[POSITIONS + 1] = { 0 };
    outcome before, after;
    assert_success(toy_prompt(&model, stream, prompt, PROMPT));
    before = look(&model);
    assert_refused(toy_prompt(&model, stream, text, POSITIONS - PROMPT + 1),
                   "toy: a prompt of 14 tokens behind 11 is longer than max_seq_len, 24");
    text[2] = VOCAB;
    assert_refused(toy_prompt(&model, stream, text, 3),
                   "toy: token 16 of the prompt is none: the vocabulary has 16");
    assert_refused(toy_prompt(&model, stream, NULL, 3), "toy: a prompt without tokens");
    assert_success(toy_assign(&model, stream, 2, 1));
    assert_refused(toy_prompt(&model, stream, prompt, 3),
                   "toy: a prompt takes rows of one sequence, and row 2 has that of sequence 1");
    after = look(&model);
    assert_same(&after, &before);
    assert_success(toy_prompt(&model, stream, prompt, 1));
}

TEST_WITH(what_there_is_not_is_refused_in_words, make, drop)
{
    uint32_t rows[POSITIONS] = { 0 }, position = POSITIONS;
    toy_decoder none;
    memset(&none, 0, sizeof none);
    assert_refused(toy_step_of(&model, 3, stream), "toy: there is no step of m = 3, only of 1, 4");
    assert_refused(toy_rows(&model, stream, 5, rows, rows), "toy: 5 rows are wanted, and it has 4");
    assert_refused(toy_tokens(&model, stream, rows, 5), "toy: 5 rows are wanted, and it has 4");
    assert_refused(toy_seek(&model, stream, position),
                   "toy: position 24 is none: max_seq_len is 24");
    rows[1] = 99;
    assert_refused(toy_rows(&model, stream, 2, rows, (uint32_t[]){ 0, 1 }),
                   "toy: token 99 is none: the vocabulary has 16");
    assert_refused(toy_sampling_of(&model, stream, 1, 1, 0, 1, 0, 4),
                   "toy: row 1 has no token sampled: there are 1 that have");
    assert_refused(toy_assign(&model, stream, 4, 0), "toy: row 4 is none: there are 4");
    assert_refused(toy_assign(&model, stream, 0, 2),
                   "toy: sequence 2 is none: there are caches for 2");
    assert_int_equal(toy_step(&none, stream), CUDA_ERROR_INVALID_HANDLE);
    assert_int_equal(toy_prompt(&none, stream, prompt, 1), CUDA_ERROR_INVALID_HANDLE);
    assert_int_equal(toy_logits(&none), 0);
    assert_success(toy_destroy(&none));
}

TEST_WITH(a_launch_that_fails_is_named, make, drop)
{
    size_t place = toy_plan.steps[0].launches[2].kernel;
    ptxgen_loaded_kernel loaded = cuda.kernels[place];
    cuda.kernels[place].function = NULL;
    assert_int_not_equal(toy_step(&model, stream), CUDA_SUCCESS);
    assert_non_null(strstr(why, "toy: launch 3 of the step of m = 1, layer 0, "));
    assert_non_null(strstr(why, "cache[0..length) -> h: the driver says "));
    cuda.kernels[place] = loaded;
}

/* Memory of the program's own: what it gave, and what came back. */
typedef struct own_memory {
    size_t given, released, most;
    CUdeviceptr addresses[PTXGEN_PIECES];
    size_t misaligned; /* bytes by which the last one is */
} own_memory;

static ptxgen_deviceptr allocate(void *user, uint64_t bytes, ptxgen_piece piece)
{
    own_memory *own = user;
    assert_int_equal(bytes, toy_plan.bytes[piece]);
    if (own->given == own->most)
        return 0;
    assert_success(cuMemAlloc_v2(&own->addresses[piece], bytes + 256));
    own->given++;
    return own->addresses[piece] + (own->given == own->most ? own->misaligned : 0);
}

static void release(void *user, ptxgen_deviceptr address, ptxgen_piece piece)
{
    own_memory *own = user;
    assert_in_range(address - own->addresses[piece], 0, 255);
    assert_success(cuMemFree_v2(own->addresses[piece]));
    own->released++;
}

TEST_WITH(memory_may_be_the_programs, make, drop)
{
    own_memory own = { .most = PTXGEN_PIECES };
    const ptxgen_memory memory = { .allocate = allocate, .release = release, .user = &own };
    toy_decoder other;
    outcome want, have;
    assert_success(toy_prompt(&model, stream, prompt, PROMPT));
    want = look(&model);
    assert_success(toy_create(&other, &cuda, &memory));
    assert_int_equal(own.given, PTXGEN_PIECES);
    load_weights(&other);
    assert_success(toy_prompt(&other, stream, prompt, PROMPT));
    have = look(&other);
    assert_same(&have, &want);
    assert_success(toy_destroy(&other));
    assert_int_equal(own.released, PTXGEN_PIECES);
    assert_int_equal(other.weights, 0);
}

TEST_WITH(what_was_allocated_is_released_where_there_is_no_more, make, drop)
{
    toy_decoder other;
    for (size_t most = 0; most < PTXGEN_PIECES; most++) {
        own_memory own = { .most = most };
        const ptxgen_memory memory = { .allocate = allocate, .release = release, .user = &own };
        assert_int_equal(toy_create(&other, &cuda, &memory), CUDA_ERROR_OUT_OF_MEMORY);
        assert_int_equal(own.released, most);
        assert_null(other.plan);
    }
    assert_string_equal(why, "toy: the workspace: no memory for 512 bytes");
    own_memory own = { .most = 3, .misaligned = 16 };
    const ptxgen_memory memory = { .allocate = allocate, .release = release, .user = &own };
    assert_refused(toy_create(&other, &cuda, &memory),
                   "toy: the state is misaligned: 256 bytes are needed");
    assert_int_equal(own.released, 3);
}

TEST_WITH(a_driver_that_cannot_copy_is_refused, make, drop)
{
    toy_decoder other;
    toy_cuda poor = cuda;
    poor.driver.copy_on_device = NULL;
    assert_int_equal(toy_create(&other, &poor, NULL), CUDA_ERROR_NOT_FOUND);
    assert_string_equal(why,
                        "toy: the driver lacks an entry point that allocates, copies or waits");
    poor.driver.sm = 0;
    assert_int_equal(toy_create(&other, &poor, NULL), CUDA_ERROR_NOT_INITIALIZED);
}

/* Where each row has a token sampled, the last one of a prompt is what row 0 goes on with. */
TEST_WITH(steps_that_sample_all_rows_go_on_with_a_prompts_last, make, drop)
{
    static ptxgen_cuda of;
    ptxgen_decoder rows;
    outcome want, have;
    uint32_t tokens[PTXGEN_MOST_ROWS];
    assert_success(toy_prompt(&model, stream, prompt, PROMPT));
    assert_success(toy_step(&model, stream));
    want = look(&model);
    assert_success(ptxgen_cuda_init(&of, dlsym, dlopen(NULL, RTLD_NOW)));
    assert_success(ptxgen_create(&rows, &of, NULL));
    load_weights(&rows);
    assert_success(ptxgen_prompt(&rows, stream, prompt, PROMPT));
    assert_success(ptxgen_step(&rows, stream));
    have = look(&rows);
    assert_same(&have, &want);

    assert_success(ptxgen_rows(&rows, stream, 4, prompt, (uint32_t[]){ 0, 1, 2, 3 }));
    assert_success(ptxgen_step_of(&rows, 4, stream));
    assert_success(ptxgen_tokens(&rows, stream, tokens, 4));
    for (uint32_t i = 0; i < 4; i++) {
        outcome one = step_by_step(i + 1);
        assert_int_equal(tokens[i], one.token);
    }
    assert_success(ptxgen_sampling(&rows, stream, 1, 0, 1, 0, 9));
    assert_success(ptxgen_sampling_of(&rows, stream, 2, 1, 0, 1, 0, 4));
    assert_success(ptxgen_rows(&rows, stream, 4, prompt, (uint32_t[]){ 0, 1, 2, 3 }));
    assert_success(ptxgen_step_of(&rows, 4, stream));
    assert_success(ptxgen_tokens(&rows, stream, tokens, 4));
    for (uint32_t i = 0; i < 4; i++)
        assert_int_equal(tokens[i], i == 2 ? 4 : 9);
    assert_int_equal(ptxgen_sampling_of(&rows, stream, 4, 1, 0, 1, 0, 4), CUDA_ERROR_INVALID_VALUE);
    assert_success(ptxgen_destroy(&rows));
    assert_success(ptxgen_unload(&of));
}

TEST(a_plan_says_what_there_is)
{
    assert_int_equal(toy_tensor_count, 5);
    assert_int_equal(toy_plan.tensor_count, 5);
    assert_string_equal(toy_tensors[0].name, "token_embd.weight");
    assert_string_equal(toy_tensors[0].format_name, "f32");
    assert_int_equal(toy_tensors[0].gguf_type, 0);
    assert_int_equal(toy_tensors[0].bytes, 64);
    assert_int_equal(toy_tensors[4].offset, 1024);
    assert_string_equal(toy_plan.architecture, "toy");
    assert_int_equal(toy_plan.max_seq_len, POSITIONS);
    assert_int_equal(toy_plan.bytes[PTXGEN_IN_WEIGHTS], 1280);
    assert_int_equal(toy_plan.steps[1].m, 4);
    assert_int_equal(toy_plan.steps[1].launch_count, 6);
    assert_string_equal(toy_kernels[toy_plan.steps[1].launches[1].kernel]->name, "toy_write_m4");
    assert_null(toy_find_tensor("output.weight"));
}
