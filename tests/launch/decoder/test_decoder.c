/* The functions of a header with a decoder, on the emulated driver. The decoders are those of
 * toy.c, whose logits are integers that depend on all preceding tokens. */
#include "libcuda/api.h"

#define TOY_KERNELS_IMPLEMENTATION
#define TOY_WITH_CUDA
#include "toy_kernels.h"
#define PTXGEN_KERNELS_IMPLEMENTATION
#define PTXGEN_WITH_CUDA
#include "ptxgen_kernels.h"
#include "launch/emulated.h"

enum { VOCAB = 16, POSITIONS = 24, PROMPT = 11 };
static const uint32_t prompt[PROMPT] = { 3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 15 };

static toy_cuda cuda;
static toy_decoder model;

static uint32_t weight(size_t tensor, uint32_t index)
{
    return (uint32_t)(tensor + 1) * 2654435761u + index * 40503u;
}

static void load_weights(toy_decoder *of)
{
    for (size_t i = 0; i < toy_tensor_count; i++) {
        const ptxgen_tensor *t = &toy_tensors[i];
        uint32_t words[VOCAB];
        for (uint32_t w = 0; w < VOCAB; w++)
            words[w] = weight(i, w);
        assert_success(toy_load_tensor(of, t, words, t->bytes));
    }
}

static int make(void **state)
{
    (void)state;
    if (open_driver() || toy_cuda_init(&cuda, dlsym, dlopen(NULL, RTLD_NOW)))
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

/* The results of the last step. */
typedef struct outcome {
    uint32_t logits[VOCAB], token, position, length;
} outcome;

/* Computes a toy decoder's results on the host, token by token; see toy.c. */
static outcome reference(const uint32_t *tokens, uint32_t count)
{
    uint32_t k[2][POSITIONS], v[2][POSITIONS], h = 0;
    outcome o = { .position = count, .length = count + 1 };
    for (uint32_t i = 0; i < count; i++) {
        h = weight(0, tokens[i]);
        for (size_t layer = 0; layer < 2; layer++) {
            k[layer][i] = h;
            v[layer][i] = h ^ weight(1 + 2 * layer, 0);
            h = weight(2 + 2 * layer, (i + 1) % 4) * v[layer][0];
            for (uint32_t p = 0; p <= i; p++)
                h += (p + 1) * k[layer][p];
        }
    }
    for (uint32_t n = 0; n < VOCAB; n++)
        o.logits[n] = n * h;
    o.token = h % VOCAB;
    return o;
}

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

static void assert_left(const toy_decoder *of, const outcome *want)
{
    outcome have = look(of);
    assert_memory_equal(&have, want, sizeof have);
}

TEST_WITH(a_prompt_gives_the_results_of_single_steps, make, drop)
{
    for (size_t count = 1; count <= PROMPT; count++) {
        outcome want = reference(prompt, (uint32_t)count);
        assert_success(toy_seek(&model, stream, 0));
        assert_success(toy_prompt(&model, stream, prompt, count));
        assert_left(&model, &want);
        for (uint32_t i = 0; i < count; i++) {
            assert_success(toy_rows(&model, stream, 1, &prompt[i], &i));
            assert_success(toy_step(&model, stream));
        }
        assert_left(&model, &want);
    }
}

TEST_WITH(rows_before_the_last_tokens_of_a_prompt_are_unused, make, drop)
{
    uint32_t tokens[4], positions[4], lengths[4];
    assert_success(toy_prompt(&model, stream, prompt, 2));
    assert_success(toy_tokens(&model, stream, tokens, 4));
    assert_success(cuMemcpyDtoH_v2(positions, model.state + toy_plan.positions, 16));
    assert_success(cuMemcpyDtoH_v2(lengths, model.state + toy_plan.lengths, 16));
    assert_memory_equal(tokens + 1, ((uint32_t[]){ UINT32_MAX, prompt[0], prompt[1] }), 12);
    assert_memory_equal(positions + 1, ((uint32_t[]){ UINT32_MAX, 0, 1 }), 12);
    assert_memory_equal(lengths + 1, ((uint32_t[]){ 0, 1, 2 }), 12);
}

TEST_WITH(a_decoder_starts_with_token_0_of_an_empty_sequence, make, drop)
{
    outcome want = reference((uint32_t[]){ 0 }, 1);
    assert_success(toy_step(&model, stream));
    assert_left(&model, &want);
}

TEST_WITH(a_prompt_continues_where_the_last_one_ended, make, drop)
{
    outcome want = reference(prompt, PROMPT);
    for (size_t first = 1; first < PROMPT; first++) {
        assert_success(toy_seek(&model, stream, 0));
        assert_success(toy_prompt(&model, stream, prompt, first));
        assert_success(toy_prompt(&model, stream, prompt + first, PROMPT - first));
        assert_left(&model, &want);
    }
    assert_success(toy_seek(&model, stream, 4));
    assert_success(toy_prompt(&model, stream, prompt + 4, PROMPT - 4));
    assert_left(&model, &want);
}

TEST_WITH(a_step_continues_with_the_sampled_token, make, drop)
{
    uint32_t text[POSITIONS] = { 0 };
    outcome have;
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
    assert_left(&model, &have);
}

/* The graph is captured once, launched for each token, and never updated. */
TEST_WITH(a_captured_step_gives_every_token, make, drop)
{
    CUgraph graph;
    CUgraphExec exec;
    size_t nodes = 0;
    outcome want[4];
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
        assert_left(&model, &want[i]);
    }
    assert_success(cuGraphExecDestroy(exec));
    assert_success(cuGraphDestroy(graph));
}

/* Two sequences get their prompts one after the other, then continue in one batch. */
TEST_WITH(rows_use_the_caches_of_their_assigned_sequences, make, drop)
{
    static ptxgen_cuda of;
    ptxgen_decoder rows;
    uint32_t text[2][PROMPT + 2], next[2];
    assert_success(ptxgen_cuda_init(&of, dlsym, dlopen(NULL, RTLD_NOW)));
    assert_success(ptxgen_create(&rows, &of, NULL));
    load_weights(&rows);
    for (unsigned s = 0; s < 2; s++) {
        for (size_t i = 0; i < PROMPT; i++)
            text[s][i] = s ? VOCAB - 1 - prompt[i] : prompt[i];
        for (unsigned row = 0; row < ptxgen_plan.rows; row++)
            assert_success(ptxgen_assign(&rows, stream, row, s));
        assert_success(ptxgen_seek(&rows, stream, 0));
        assert_success(ptxgen_prompt(&rows, stream, text[s], PROMPT));
        assert_success(ptxgen_token(&rows, stream, &next[s]));
        text[s][PROMPT] = next[s];
    }
    for (unsigned row = 0; row < ptxgen_plan.rows; row++)
        assert_success(ptxgen_assign(&rows, stream, row, row % 2));
    assert_success(ptxgen_rows(&rows, stream, 4,
                               (uint32_t[]){ next[0], next[1], UINT32_MAX, UINT32_MAX },
                               (uint32_t[]){ PROMPT, PROMPT, UINT32_MAX, UINT32_MAX }));
    for (unsigned step = 1; step < 3; step++) {
        assert_success(ptxgen_step_of(&rows, 4, stream));
        assert_success(ptxgen_tokens(&rows, stream, next, 2));
        for (unsigned s = 0; s < 2; s++) {
            assert_int_equal(next[s], reference(text[s], PROMPT + step).token);
            if (step == 1)
                text[s][PROMPT + 1] = next[s];
        }
    }
    assert_success(ptxgen_destroy(&rows));
    assert_success(ptxgen_unload(&of));
}

TEST_WITH(the_state_has_the_sequences_of_all_rows, make, drop)
{
    uint32_t sequences[4];
    assert_success(toy_assign(&model, stream, 2, 1));
    assert_success(cuStreamSynchronize(stream));
    assert_success(
        cuMemcpyDtoH_v2(sequences, model.state + toy_plan.row_sequences, sizeof sequences));
    assert_memory_equal(sequences, ((uint32_t[]){ 0, 0, 1, 0 }), sizeof sequences);
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

/* Overwrites the stack below, which the header's functions have used. */
static void clobber_stack(void)
{
    volatile uint32_t words[8192];
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        words[i] = 0xdeadbeef;
}

/* A function whose captured graph must write the same bytes of the state as a plain call. */
typedef struct recorded {
    const char *said;
    CUresult (*call)(toy_decoder *of);
} recorded;

static CUresult set_four_rows(toy_decoder *of)
{
    uint32_t tokens[] = { 1, 2, UINT32_MAX, 3 }, positions[] = { 5, 0, UINT32_MAX, 6 };
    CUresult r = toy_rows(of, stream, 4, tokens, positions);
    memset(tokens, 0xee, sizeof tokens);
    memset(positions, 0xee, sizeof positions);
    return r;
}

static CUresult set_one_row(toy_decoder *of)
{
    uint32_t position = 9;
    return toy_rows(of, stream, 1, NULL, &position);
}

static CUresult seek_seven(toy_decoder *of)
{
    return toy_seek(of, stream, 7);
}

static CUresult sample_all(toy_decoder *of)
{
    return toy_sampling(of, stream, 0.5f, 40, 0.75f, 0.25f, UINT64_C(0x1234567800000009));
}

static CUresult sample_row(toy_decoder *of)
{
    return toy_sampling_of(of, stream, 0, 0.25f, 7, 0.5f, 0.125f, 11);
}

static CUresult assign_third(toy_decoder *of)
{
    return toy_assign(of, stream, 2, 1);
}

/* Reads the whole state. */
static void read_state(const toy_decoder *of, unsigned char *to)
{
    assert_success(cuStreamSynchronize(stream));
    assert_success(cuMemcpyDtoH_v2(to, of->state, toy_plan.bytes[PTXGEN_IN_STATE]));
}

TEST_WITH(a_graph_writes_the_arguments_of_the_captured_calls, make, drop)
{
    static const recorded functions[] = {
        { "rows", set_four_rows },  { "one row", set_one_row },    { "seek", seek_seven },
        { "sampling", sample_all }, { "sampling_of", sample_row }, { "assign", assign_third },
    };
    static unsigned char before[1 << 16], want[1 << 16], have[1 << 16];
    const size_t bytes = toy_plan.bytes[PTXGEN_IN_STATE];
    assert_in_range(bytes, 1, sizeof before);
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
        CUgraph graph;
        CUgraphExec exec;
        read_state(&model, before);
        assert_success(functions[i].call(&model));
        read_state(&model, want);
        assert_memory_not_equal(want, before, bytes);

        assert_success(cuMemcpyHtoD_v2(model.state, before, bytes));
        model.sequences[2] = 0;
        assert_success(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
        assert_success(functions[i].call(&model));
        assert_success(cuStreamEndCapture(stream, &graph));
        read_state(&model, have);
        assert_memory_equal(have, before, bytes);
        assert_success(cuGraphInstantiateWithFlags(&exec, graph, 0));
        for (int launch = 0; launch < 2; launch++) {
            assert_success(cuMemcpyHtoD_v2(model.state, before, bytes));
            clobber_stack();
            assert_success(cuGraphLaunch(exec, stream));
            read_state(&model, have);
            if (memcmp(have, want, bytes) != 0)
                fail_msg("the graph of %s writes other bytes than the call", functions[i].said);
        }
        assert_success(cuMemcpyHtoD_v2(model.state, before, bytes));
        assert_success(cuGraphExecDestroy(exec));
        assert_success(cuGraphDestroy(graph));
    }
}

/* The graph restarts the sequence and runs two steps. */
TEST_WITH(a_graph_of_rows_and_steps_gives_their_tokens, make, drop)
{
    CUgraph graph;
    CUgraphExec exec;
    outcome want = reference(prompt, 2);
    assert_success(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
    for (uint32_t i = 0; i < 2; i++) {
        uint32_t token = prompt[i];
        assert_success(toy_rows(&model, stream, 1, &token, &i));
        assert_success(toy_step(&model, stream));
    }
    assert_success(cuStreamEndCapture(stream, &graph));
    assert_success(cuGraphInstantiateWithFlags(&exec, graph, 0));
    for (int launch = 0; launch < 2; launch++) {
        clobber_stack();
        assert_success(cuGraphLaunch(exec, stream));
        assert_left(&model, &want);
    }
    assert_success(cuGraphExecDestroy(exec));
    assert_success(cuGraphDestroy(graph));
}

TEST_WITH(blocking_calls_are_refused_during_capture, make, drop)
{
    static const char said[] = "toy: the stream is being captured: read results after launching "
                               "the graph";
    CUgraph graph;
    uint32_t tokens[4];
    size_t nodes = 1;
    assert_success(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
    assert_int_equal(toy_prompt(&model, stream, prompt, PROMPT),
                     PTXGEN_CUDA_ERROR_CAPTURE_UNSUPPORTED);
    assert_string_equal(why, said);
    memset(why, 0, sizeof why);
    assert_int_equal(toy_token(&model, stream, tokens), PTXGEN_CUDA_ERROR_CAPTURE_UNSUPPORTED);
    assert_string_equal(why, said);
    assert_int_equal(toy_tokens(&model, stream, tokens, 4), PTXGEN_CUDA_ERROR_CAPTURE_UNSUPPORTED);
    assert_success(cuStreamEndCapture(stream, &graph));
    assert_success(cuGraphGetNodes(graph, NULL, &nodes));
    assert_int_equal(nodes, 0);
    assert_success(cuGraphDestroy(graph));
}

/* Counts of the copies that reach the driver. */
static struct {
    unsigned count;
    size_t bytes;
} copies;

static CUresult count_copy(CUdeviceptr to, const void *from, size_t bytes, CUstream on)
{
    copies.count++;
    copies.bytes += bytes;
    return cuMemcpyHtoDAsync_v2(to, from, bytes, on);
}

static CUresult count_copy_2d(const ptxgen_copy_2d *copy, CUstream on)
{
    copies.count++;
    copies.bytes += copy->WidthInBytes * copy->Height;
    return cuMemcpy2DAsync_v2((const void *)copy, on);
}

TEST_WITH(a_row_is_assigned_by_one_word, make, drop)
{
    toy_cuda counting = cuda;
    counting.driver.copy_to_device = count_copy;
    counting.driver.copy_2d = count_copy_2d;
    model.driver = &counting.driver;
    memset(&copies, 0, sizeof copies);
    assert_success(toy_assign(&model, stream, 3, 1));
    assert_int_equal(copies.count, 1);
    assert_int_equal(copies.bytes, sizeof(uint32_t));
    model.driver = &cuda.driver;
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
    const ptxgen_tensor *v = toy_find_tensor("blk.69.v.weight");
    assert_ptr_equal(v, &toy_tensors[3]);
    assert_refused(toy_load_tensor(&model, v, bytes, 15),
                   "toy: blk.69.v.weight: expected 16 bytes of f32, got 15");
    assert_refused(toy_load_tensor(&model, v, NULL, 16), "toy: blk.69.v.weight: data is NULL");
    assert_refused(toy_load_tensor(&model, toy_find_tensor("blk.70.v.weight"), bytes, 16),
                   "toy: the tensor is NULL: the model has no such tensor");
}

TEST_WITH(a_prompt_is_refused_before_it_changes_anything, make, drop)
{
    uint32_t text[POSITIONS + 1] = { 0 };
    outcome before;
    assert_success(toy_prompt(&model, stream, prompt, PROMPT));
    before = look(&model);
    assert_refused(toy_prompt(&model, stream, text, POSITIONS - PROMPT + 1),
                   "toy: 14 prompt tokens at position 11 exceed max_seq_len = 24");
    text[2] = VOCAB;
    assert_refused(toy_prompt(&model, stream, text, 3),
                   "toy: prompt token 16 is not in the vocabulary of 16 tokens");
    assert_refused(toy_prompt(&model, stream, NULL, 3), "toy: the prompt's tokens are NULL");
    assert_success(toy_assign(&model, stream, 3, 1));
    assert_refused(
        toy_prompt(&model, stream, prompt, 3),
        "toy: a prompt needs all rows in one sequence, but row 3 is assigned to sequence 1");
    assert_left(&model, &before);
    assert_success(toy_prompt(&model, stream, prompt, 1));
}

TEST_WITH(values_out_of_range_are_refused_with_a_message, make, drop)
{
    uint32_t rows[POSITIONS] = { 0 }, position = POSITIONS;
    toy_decoder none;
    memset(&none, 0, sizeof none);
    assert_refused(toy_step_of(&model, 3, stream), "toy: there is no step of m = 3; use 1, 4");
    assert_refused(toy_rows(&model, stream, 5, rows, rows), "toy: 5 rows requested, but it has 4");
    assert_refused(toy_tokens(&model, stream, rows, 5), "toy: 5 rows requested, but it has 4");
    assert_refused(toy_seek(&model, stream, position),
                   "toy: position 24 is out of range: max_seq_len is 24");
    rows[1] = 99;
    assert_refused(toy_rows(&model, stream, 2, rows, (uint32_t[]){ 0, 1 }),
                   "toy: token 99 is not in the vocabulary of 16 tokens");
    assert_refused(toy_sampling_of(&model, stream, 2, 1, 0, 1, 0, 4),
                   "toy: sequence 2 is out of range: there are 2 sequences");
    assert_refused(toy_sampling_of(&model, stream, UINT32_MAX, 1, 0, 1, 0, 4),
                   "toy: sequence 4294967295 is out of range: there are 2 sequences");
    assert_int_equal(toy_open(&model), 0);
    assert_refused(toy_penalties(&model, stream, 0, 1, 0, 0, 0),
                   "toy: penalties of 0 wanted: the decoder has room for 0");
    assert_refused(toy_biases(&model, stream, 0, NULL, NULL, 0),
                   "toy: biases: 0 wanted: the decoder has room for 0");
    assert_refused(toy_assign(&model, stream, 4, 0),
                   "toy: row 4 is out of range: there are 4 rows");
    assert_refused(toy_assign(&model, stream, 0, 2),
                   "toy: sequence 2 is out of range: there are 2 sequences");
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
    assert_non_null(strstr(why, "cache[0..length) -> h: the driver returned "));
    cuda.kernels[place] = loaded;
}

enum { USED_PIECES = PTXGEN_PIECES - 1 }; /* the toy has no pages */

/* The program's own allocator, with counts of allocations and releases. */
typedef struct own_memory {
    size_t given, released, most;
    CUdeviceptr addresses[PTXGEN_PIECES];
    size_t misaligned; /* bytes by which the last allocation is misaligned */
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

TEST_WITH(memory_may_come_from_the_program, make, drop)
{
    own_memory own = { .most = USED_PIECES };
    const ptxgen_memory memory = { .allocate = allocate, .release = release, .user = &own };
    toy_decoder other;
    outcome want;
    assert_success(toy_prompt(&model, stream, prompt, PROMPT));
    want = look(&model);
    assert_success(toy_create(&other, &cuda, &memory));
    assert_int_equal(own.given, USED_PIECES);
    load_weights(&other);
    assert_success(toy_prompt(&other, stream, prompt, PROMPT));
    assert_left(&other, &want);
    assert_success(toy_destroy(&other));
    assert_int_equal(own.released, USED_PIECES);
    assert_int_equal(other.weights, 0);
}

TEST_WITH(a_failed_create_releases_its_allocations, make, drop)
{
    toy_decoder other;
    for (size_t most = 0; most < USED_PIECES; most++) {
        own_memory own = { .most = most };
        const ptxgen_memory memory = { .allocate = allocate, .release = release, .user = &own };
        assert_int_equal(toy_create(&other, &cuda, &memory), CUDA_ERROR_OUT_OF_MEMORY);
        assert_int_equal(own.released, most);
        assert_null(other.plan);
    }
    assert_string_equal(why, "toy: the host memory: cannot allocate 256 bytes");
    own_memory own = { .most = 3, .misaligned = 16 };
    const ptxgen_memory memory = { .allocate = allocate, .release = release, .user = &own };
    assert_refused(toy_create(&other, &cuda, &memory),
                   "toy: the state is misaligned: 256 bytes are needed");
    assert_int_equal(own.released, 3);
}

static void *mapped, *unmapped;

static CUresult map_nothing(CUdeviceptr *address, void *host, unsigned flags)
{
    (void)address;
    mapped = flags ? NULL : host;
    return CUDA_ERROR_INVALID_VALUE;
}

static CUresult free_mapped(void *host)
{
    unmapped = host;
    return cuMemFreeHost(host);
}

/* Device address and host pointer differ on the emulated driver. */
TEST_WITH(host_memory_is_mapped_and_freed, make, drop)
{
    toy_decoder other;
    toy_cuda own = cuda;
    CUdeviceptr address;
    uint32_t word;
    unsigned flags;
    assert_success(cuMemHostGetDevicePointer_v2(&address, model.host_memory, 0));
    assert_int_equal(model.host, address);
    assert_success(cuMemHostGetFlags(&flags, model.host_memory));
    assert_int_equal(flags, CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP);
    memcpy(&word, (const char *)model.host_memory + 4 * 3, sizeof word);
    assert_int_equal(word, weight(0, 3));
    own.driver.mem_free_host = free_mapped;
    assert_success(toy_create(&other, &own, NULL));
    void *host = other.host_memory;
    assert_success(toy_destroy(&other));
    assert_ptr_equal(unmapped, host);
    assert_null(other.host_memory);

    own.driver.mem_host_get_device_pointer = map_nothing;
    assert_refused(toy_create(&other, &own, NULL),
                   "toy: the host memory: cannot allocate 256 bytes");
    assert_true(mapped && unmapped == mapped);
}

TEST_WITH(a_driver_that_cannot_copy_is_refused, make, drop)
{
    toy_decoder other;
    toy_cuda poor = cuda;
    poor.driver.stream_is_capturing = NULL;
    assert_int_equal(toy_create(&other, &poor, NULL), CUDA_ERROR_NOT_FOUND);
    assert_string_equal(why, "toy: the driver lacks an entry point for memory, copies or streams");
    poor = cuda;
    poor.driver.mem_free_host = NULL;
    assert_int_equal(toy_create(&other, &poor, NULL), CUDA_ERROR_NOT_FOUND);
    poor.driver.sm = 0;
    assert_int_equal(toy_create(&other, &poor, NULL), CUDA_ERROR_NOT_INITIALIZED);
}

/* If a step samples a token for every row, row 0 must continue with the token of the last row. */
TEST_WITH(steps_that_sample_all_rows_continue_with_the_last_row, make, drop)
{
    static ptxgen_cuda of;
    ptxgen_decoder rows;
    outcome want;
    uint32_t tokens[PTXGEN_MOST_ROWS];
    assert_success(toy_prompt(&model, stream, prompt, PROMPT));
    assert_success(toy_step(&model, stream));
    want = look(&model);
    assert_success(ptxgen_cuda_init(&of, dlsym, dlopen(NULL, RTLD_NOW)));
    assert_success(ptxgen_create(&rows, &of, NULL));
    load_weights(&rows);
    assert_success(ptxgen_prompt(&rows, stream, prompt, PROMPT));
    assert_success(ptxgen_step(&rows, stream));
    assert_left(&rows, &want);

    assert_success(ptxgen_rows(&rows, stream, 4, prompt, (uint32_t[]){ 0, 1, 2, 3 }));
    assert_success(ptxgen_step_of(&rows, 4, stream));
    assert_success(ptxgen_tokens(&rows, stream, tokens, 4));
    for (uint32_t i = 0; i < 4; i++) {
        outcome one = reference(prompt, i + 1);
        assert_int_equal(tokens[i], one.token);
    }
    assert_success(ptxgen_sampling(&rows, stream, 1, 0, 1, 0, 9));
    assert_success(ptxgen_sampling_of(&rows, stream, 1, 1, 0, 1, 0, 4));
    assert_success(ptxgen_assign(&rows, stream, 2, 1));
    assert_success(ptxgen_rows(&rows, stream, 4, prompt, (uint32_t[]){ 0, 1, 0, 2 }));
    assert_success(ptxgen_step_of(&rows, 4, stream));
    assert_success(ptxgen_tokens(&rows, stream, tokens, 4));
    for (uint32_t i = 0; i < 4; i++)
        assert_int_equal(tokens[i], i == 2 ? 4 : 9);
    assert_success(ptxgen_destroy(&rows));
    assert_success(ptxgen_unload(&of));
}

TEST(a_plan_describes_tensors_memory_and_steps)
{
    assert_int_equal(toy_tensor_count, 5);
    assert_int_equal(toy_plan.tensor_count, 5);
    assert_string_equal(toy_tensors[0].name, "token_embd.weight");
    assert_string_equal(toy_tensors[0].format_name, "f32");
    assert_int_equal(toy_tensors[0].gguf_type, 0);
    assert_int_equal(toy_tensors[0].bytes, 64);
    assert_int_equal(toy_tensors[0].piece, PTXGEN_IN_HOST);
    assert_int_equal(toy_tensors[4].piece, PTXGEN_IN_WEIGHTS);
    assert_int_equal(toy_tensors[4].offset, 768);
    assert_string_equal(toy_plan.architecture, "toy");
    assert_int_equal(toy_plan.max_seq_len, POSITIONS);
    assert_int_equal(toy_plan.bytes[PTXGEN_IN_WEIGHTS], 1024);
    assert_int_equal(toy_plan.bytes[PTXGEN_IN_HOST], 256);
    assert_int_equal(toy_plan.steps[1].m, 4);
    assert_int_equal(toy_plan.steps[1].launch_count, 6);
    assert_string_equal(toy_kernels[toy_plan.steps[1].launches[1].kernel]->name, "toy_write_m4");
    assert_null(toy_find_tensor("output.weight"));
}
