/* Random schedules of sequences on the emulated driver: opening, forking, trimming, closing, pieces of
 * prompts and single tokens, mixed in batches. Each sequence has a twin in a second model, which runs
 * alone, from its first token on after each fork and trim. The logits of both must have the same bits.
 *
 * Pages without users, and rows behind a sequence's end, are NaN before each step, so that a read of
 * them shows in the logits. SCHEDULES=N sets the number of schedules, SEED=N the first one's seed. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "libcuda/api.h"

#include HEADER
#include "launch/emulated.h"

#define PASTE(prefix, name) prefix##_##name
#define JOIN(prefix, name)  PASTE(prefix, name)
#define NAME(name)          JOIN(PREFIX, name)

enum {
    MOST_SEQUENCES = 12,
    MOST_POSITIONS = 300,
    MOST_VOCAB = 96,
    Q8_0_BYTES = 34,
    USUAL_SEED = 9, /* 11 sequences */
    NONE = -1
};

static NAME(cuda) cuda;
static ptxgen_model model, alone;
static uint64_t seed;

static uint32_t below(uint32_t limit)
{
    seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)(seed >> 33) % limit;
}

/* Fills a tensor: gains close to 1, other floats small, quants of some hundredths. */
static void fill(const ptxgen_tensor *t, unsigned char *bytes)
{
    for (uint64_t i = 0; t->format == PTXGEN_F32 && i < t->bytes; i += sizeof(float)) {
        float value = (float)below(512) / 1024 - 0.25f;
        value = strstr(t->name, "norm") ? 1 + value : strstr(t->name, "ssm_a") ? value - 1 : value;
        memcpy(bytes + i, &value, sizeof value);
    }
    for (uint64_t i = 0; t->format == PTXGEN_Q8_0 && i < t->bytes; i++)
        bytes[i] = i % Q8_0_BYTES == 1 ? 0x18 : (unsigned char)below(256);
}

static void make_model(ptxgen_model *made, uint32_t pages)
{
    const ptxgen_memory memory = { .pages = pages };
    assert_success(NAME(create)(made, &cuda, &memory));
    seed = 1;
    for (size_t i = 0; i < NAME(tensor_count); i++) {
        const ptxgen_tensor *t = &NAME(tensors)[i];
        unsigned char *bytes = malloc(t->bytes);
        fill(t, bytes);
        assert_success(NAME(load_tensor)(made, t, bytes, t->bytes));
        free(bytes);
    }
}

/* A sequence: its tokens, and its twin, which has `fed` of them. */
typedef struct history {
    int number, twin;
    uint32_t tokens[MOST_POSITIONS], count, fed;
} history;
static history all[MOST_SEQUENCES];

/* Samples at random, with penalties and biases if the decoder has them, the same in any place. */
static void set_sampling(ptxgen_model *of, int sequence)
{
    static const uint32_t tokens[] = { 5, 17, 40 };
    static const float biases[] = { 0.5f, -INFINITY, -0.5f };
    unsigned number = (unsigned)sequence;
    assert_success(NAME(sampling_of)(of, stream, number, 0.9f, 30, 0.95f, 0.01f, 1234));
    if (NAME(plan).most_penalized)
        assert_success(NAME(penalties)(of, stream, number, 1.2f, 0.05f, 0.1f, 33));
    if (NAME(plan).most_biases)
        assert_success(NAME(biases)(of, stream, number, tokens, biases, 3));
}

static void read_logits(const NAME(batch) * batch, unsigned i, float *logits)
{
    assert_success(cuStreamSynchronize(stream));
    assert_success(cuMemcpyDtoH_v2(logits, NAME(logits_of)(batch, i),
                                   (size_t)NAME(plan).vocab * sizeof *logits));
}

/* Feeds the twin what it lacks, in steps of its own. */
static void feed_twin(history *h, float *logits, uint32_t *token)
{
    NAME(batch) batch;
    if (h->twin == NONE) {
        h->twin = NAME(open)(&alone);
        h->fed = 0;
        set_sampling(&alone, h->twin);
    }
    assert_int_not_equal(h->twin, NONE);
    while (h->fed < h->count) {
        unsigned count = PTXGEN_MIN(h->count - h->fed, NAME(plan).rows);
        assert_success(NAME(batch_begin)(&alone, &batch));
        assert_success(
            NAME(run)(&batch, (unsigned)h->twin, h->tokens + h->fed, count, PTXGEN_LOGITS_LAST));
        assert_success(NAME(launch)(&alone, stream, &batch));
        h->fed += count;
    }
    read_logits(&batch, 0, logits);
    assert_success(NAME(sampled)(&batch, stream, token));
}

static void forget_twin(history *h)
{
    if (h->twin != NONE)
        assert_success(NAME(close)(&alone, (unsigned)h->twin));
    h->twin = NONE;
}

/* Each page has as many users as sequences list it, and is unused if there are none. */
static void check_pages(void)
{
    const ptxgen_book *book = &model.book;
    uint32_t *users = calloc(model.memory.pages + 1, sizeof *users);
    for (unsigned s = 0; s < NAME(plan).sequences; s++) {
        const ptxgen_sequence *q = &book->sequences[s];
        for (uint32_t i = 0; i < q->pages; i++)
            users[ptxgen_pages_of(&model, s)[i]]++;
        if (q->is_open && NAME(plan).page)
            assert_true(q->pages * (uint64_t)NAME(plan).page >= q->length);
    }
    for (uint32_t i = 0; i < book->unused_count; i++) {
        assert_int_equal(users[book->unused[i]], 0);
        users[book->unused[i]] = UINT32_MAX;
    }
    for (uint32_t page = 0; page < model.memory.pages; page++)
        assert_int_equal(users[page] == UINT32_MAX ? 0 : users[page], book->users[page]);
    for (uint32_t page = 0; page < model.memory.pages; page++)
        assert_int_not_equal(users[page], 0);
    free(users);
}

static void make_nan(ptxgen_deviceptr at, uint64_t bytes)
{
    if (bytes)
        assert_success(cuMemsetD8Async(at, 0xff, (size_t)bytes, stream));
}

/* Makes unused pages NaN, and the rows of a sequence's last page that it does not have. */
static void spoil(void)
{
    const ptxgen_decoder_plan *plan = &NAME(plan);
    for (size_t part = 0; part < 2 * plan->cache_count; part++) {
        const ptxgen_cache *c = &plan->layer_caches[part / 2][part % 2];
        if (c->start.piece != PTXGEN_IN_PAGES || !c->bytes)
            continue;
        ptxgen_deviceptr start = model.pages + ptxgen_offset_of(&model, &c->start);
        for (uint32_t i = 0; i < model.book.unused_count; i++)
            make_nan(start + model.book.unused[i] * c->bytes, c->bytes);
    }
}

static history *random_open(void)
{
    unsigned count = 0, chosen;
    for (unsigned i = 0; i < MOST_SEQUENCES; i++)
        count += all[i].number != NONE;
    if (!count)
        return NULL;
    chosen = below(count);
    for (unsigned i = 0;; i++)
        if (all[i].number != NONE && !chosen--)
            return &all[i];
}

static void close_one(history *h)
{
    assert_success(NAME(close)(&model, (unsigned)h->number));
    forget_twin(h);
    h->number = NONE;
}

static void open_one(int parent)
{
    int number = parent == NONE ? NAME(open)(&model) : NAME(fork)(&model, (unsigned)parent);
    if (number == NONE)
        return;
    for (unsigned i = 0; i < MOST_SEQUENCES; i++)
        if (all[i].number == parent && parent != NONE) {
            all[number].count = all[i].count;
            memcpy(all[number].tokens, all[i].tokens, sizeof all[i].tokens);
        }
    if (parent == NONE)
        all[number].count = 0;
    set_sampling(&model, number);
    all[number].number = number;
    all[number].twin = NONE;
}

static void trim_one(history *h)
{
    const ptxgen_decoder_plan *plan = &NAME(plan);
    uint32_t to =
        below(3) ? h->count - below(PTXGEN_MIN(h->count, plan->rows) + 1) : below(h->count + 1);
    ptxgen_result result = NAME(trim)(&model, (unsigned)h->number, to);
    int lost =
        to && to < h->count &&
        (plan->recurrent || (plan->ring && h->count > plan->ring && h->count - to >= plan->rows));
    assert_int_equal(result, lost ? CUDA_ERROR_NOT_SUPPORTED : CUDA_SUCCESS);
    if (lost)
        return;
    if (to < h->count)
        forget_twin(h);
    h->count = to;
    assert_int_equal(NAME(length)(&model, (unsigned)h->number), to);
}

/* Runs some sequences in a batch and compares the last rows of all runs with their twins. */
static void run_batch(void)
{
    const ptxgen_decoder_plan *plan = &NAME(plan);
    history *ran[MOST_SEQUENCES];
    NAME(batch) batch;
    float logits[MOST_VOCAB], expected[MOST_VOCAB];
    uint32_t sampled[MOST_SEQUENCES], token;
    unsigned runs = 0;
    assert_success(NAME(batch_begin)(&model, &batch));
    for (unsigned i = 0; i < MOST_SEQUENCES; i++) {
        history *h = &all[(i * 5 + runs) % MOST_SEQUENCES];
        unsigned most = PTXGEN_MIN(plan->rows - batch.rows, MOST_POSITIONS - h->count), count;
        uint32_t unused = NAME(unused_pages)(&model);
        ptxgen_result result;
        if (h->number == NONE || !most || below(4) == 0 ||
            runs == plan->steps[plan->step_count - 1].logits_rows)
            continue;
        for (unsigned j = 0; j < runs; j++)
            if (ran[j] == h)
                most = 0;
        if (!most)
            continue;
        count = below(3) ? 1 : 1 + below(most);
        for (unsigned j = 0; j < count; j++)
            h->tokens[h->count + j] = below((uint32_t)plan->vocab);
        result =
            NAME(run)(&batch, (unsigned)h->number, h->tokens + h->count, count, PTXGEN_LOGITS_LAST);
        if (result == CUDA_ERROR_OUT_OF_MEMORY) {
            assert_int_equal(unused, NAME(unused_pages)(&model));
            continue;
        }
        assert_success(result);
        ran[runs++] = h;
        h->count += count;
    }
    if (!runs)
        return;
    check_pages();
    spoil();
    assert_success(NAME(launch)(&model, stream, &batch));
    assert_success(NAME(sampled)(&batch, stream, sampled));
    for (unsigned i = 0; i < runs; i++) {
        read_logits(&batch, i, logits);
        feed_twin(ran[i], expected, &token);
        assert_int_equal(sampled[i], token);
        assert_true(token < (uint32_t)plan->vocab);
        for (int64_t j = 0; j < plan->vocab; j++) {
            assert_true(isfinite(expected[j]));
            if (memcmp(&logits[j], &expected[j], sizeof *logits) != 0)
                fail_msg("%s: logit %lld of sequence %d at %u positions is %.9g, alone %.9g",
                         plan->name, (long long)j, ran[i]->number, ran[i]->count, (double)logits[j],
                         (double)expected[j]);
        }
    }
}

static void run_schedule(uint64_t number)
{
    enum { TURNS = 14, LEAST = 2 };
    unsigned wanted = LEAST + (unsigned)(number % (MOST_SEQUENCES - LEAST + 1));
    seed = number * 77 + 5;
    for (unsigned i = 0; i < MOST_SEQUENCES; i++)
        all[i].number = all[i].twin = NONE;
    for (unsigned turn = 0; turn < TURNS; turn++) {
        history *h = random_open();
        unsigned count = 0;
        for (unsigned i = 0; i < MOST_SEQUENCES; i++)
            count += all[i].number != NONE;
        if (count < wanted && below(2))
            open_one(h && h->count && below(2) ? h->number : NONE);
        else if (h && below(6) == 0)
            trim_one(h);
        else if (h && below(9) == 0)
            close_one(h);
        run_batch();
    }
    for (unsigned i = 0; i < MOST_SEQUENCES; i++)
        if (all[i].number != NONE)
            close_one(&all[i]);
    check_pages();
    if (NAME(plan).page)
        assert_int_equal(NAME(unused_pages)(&model), model.memory.pages);
}

/* Forks and closes in a row, without a step between them: copies are pending whose source is another
 * pending copy's target, of a sequence that is closed. Runs that were not launched make such copies of
 * pages. */
static void run_chain(void)
{
    enum { FORKS = 4, BATCHES = 4 };
    int parent = 0;
    seed = 3;
    for (unsigned i = 0; i < MOST_SEQUENCES; i++)
        all[i].number = all[i].twin = NONE;
    open_one(NONE);
    while (!all[parent].count)
        run_batch();
    for (unsigned fork = 0; fork < FORKS; fork++) {
        const uint32_t token = 1;
        NAME(batch) batch;
        int child = !parent;
        open_one(parent);
        assert_int_equal(all[child].number, child);
        assert_success(NAME(batch_begin)(&model, &batch));
        assert_success(NAME(run)(&batch, (unsigned)child, &token, 1, PTXGEN_NO_LOGITS));
        assert_success(NAME(batch_begin)(&model, &batch));
        close_one(&all[parent]);
        check_pages();
        parent = child;
    }
    for (unsigned i = 0; i < BATCHES; i++)
        run_batch();
    close_one(&all[parent]);
}

/* Copies to the device since the last reset, and the bytes of the largest. */
static struct {
    unsigned copies;
    size_t largest;
} uploads;

static void count_upload(size_t bytes)
{
    uploads.copies++;
    uploads.largest = PTXGEN_MAX(uploads.largest, bytes);
}

static CUresult count_copy(CUdeviceptr to, const void *from, size_t bytes, CUstream on)
{
    count_upload(bytes);
    return cuMemcpyHtoDAsync_v2(to, from, bytes, on);
}

static CUresult count_copy_2d(const ptxgen_copy_2d *copy, CUstream on)
{
    count_upload(copy->WidthInBytes * copy->Height);
    return cuMemcpy2DAsync_v2((const void *)copy, on);
}

static int make(void **state)
{
    (void)state;
    if (open_driver() || NAME(cuda_init)(&cuda, dlsym, dlopen(NULL, RTLD_NOW)))
        return -1;
    cuda.driver.report = keep;
    cuda.driver.copy_to_device = count_copy;
    cuda.driver.copy_2d = count_copy_2d;
    /* too few pages for all sequences, so that some runs find none */
    make_model(&model, NAME(plan).sequence_pages * NAME(plan).sequences / 4);
    make_model(&alone, 0);
    make_nan(model.cache, NAME(plan).bytes[PTXGEN_IN_CACHE]);
    make_nan(alone.cache, NAME(plan).bytes[PTXGEN_IN_CACHE]);
    make_nan(alone.pages, NAME(plan).bytes[PTXGEN_IN_PAGES] * alone.memory.pages);
    return 0;
}

static int drop(void **state)
{
    (void)state;
    return NAME(destroy)(&model) || NAME(destroy)(&alone) || NAME(unload)(&cuda) ||
           cuCtxDestroy_v2(context);
}

/* Launches a token of each sequence. */
static void run_all(const int *sequences, unsigned count)
{
    NAME(batch) batch;
    const uint32_t token = 3;
    assert_success(NAME(batch_begin)(&model, &batch));
    for (unsigned i = 0; i < count; i++)
        assert_success(NAME(run)(&batch, (unsigned)sequences[i], &token, 1, PTXGEN_LOGITS_LAST));
    memset(&uploads, 0, sizeof uploads);
    assert_success(NAME(launch)(&model, stream, &batch));
    assert_success(cuStreamSynchronize(stream));
}

/* A step of known sequences is one copy. A sequence that starts, or that a fork made, adds one of its
 * new pages; one that ends adds none. */
TEST_WITH(a_sequence_costs_at_most_one_small_copy, make, drop)
{
    enum { SMALL = 4096 };
    int sequences[3] = { NAME(open)(&model) };
    const unsigned paged = NAME(plan).page > 0;
    run_all(sequences, 1);
    assert_int_equal(uploads.copies, 1 + paged);
    run_all(sequences, 1);
    assert_int_equal(uploads.copies, 1);
    sequences[1] = NAME(open)(&model);
    assert_int_equal(uploads.copies, 1);
    run_all(sequences, 2);
    assert_int_equal(uploads.copies, 1 + paged);
    assert_true(uploads.largest <= SMALL);
    sequences[2] = NAME(fork)(&model, (unsigned)sequences[0]);
    run_all(sequences, 3);
    assert_in_range(uploads.copies, 1, 1 + 2 * paged); /* both get a page of their own */
    assert_true(uploads.largest <= SMALL);
    assert_success(NAME(close)(&model, (unsigned)sequences[2]));
    run_all(sequences, 2);
    assert_int_equal(uploads.copies, 1);
}

/* Masks with one token, none and all; the log-probabilities of the chosen and the best tokens. */
TEST_WITH(rows_obey_masks_and_have_logprobs, make, drop)
{
    enum { WORDS = (MOST_VOCAB + 31) / 32, ONE = 37 };
    const ptxgen_decoder_plan *plan = &NAME(plan);
    const uint32_t none[WORDS] = { 0 }, token = 3;
    uint32_t one[WORDS] = { 0 }, sampled, best[20];
    float logits[MOST_VOCAB], logprobs[21];
    double sum = 0;
    NAME(batch) batch;
    unsigned sequence = (unsigned)NAME(open)(&model);
    one[ONE / 32] = UINT32_C(1) << ONE % 32;
    for (int i = 0; plan->mask_words && i < 4; i++) {
        const uint32_t *masks[] = { one, none, NULL, one };
        assert_success(NAME(batch_begin)(&model, &batch));
        assert_success(NAME(run)(&batch, sequence, &token, 1, PTXGEN_LOGITS_LAST));
        assert_success(NAME(mask)(&batch, stream, 0, masks[i]));
        assert_success(NAME(launch)(&model, stream, &batch));
        assert_success(NAME(sampled)(&batch, stream, &sampled));
        assert_int_equal(sampled == ONE, i % 3 == 0);
        assert_int_equal(sampled == UINT32_MAX, i == 1);
    }
    if (!plan->mask_words || !plan->best_tokens)
        return;
    read_logits(&batch, 0, logits);
    assert_success(NAME(logprobs)(&batch, stream, 0, logprobs, best));
    for (int64_t i = 0; i < plan->vocab; i++)
        sum += exp((double)logits[i]);
    assert_true(fabs((double)logprobs[0] - ((double)logits[ONE] - log(sum))) < 1e-4);
    for (unsigned i = 0; i < plan->best_tokens; i++)
        assert_true(fabs((double)logprobs[1 + i] - ((double)logits[best[i]] - log(sum))) < 1e-4);
    for (int64_t i = 0; i < plan->vocab; i++)
        assert_true(logits[i] <= logits[best[0]]);
}

TEST_WITH(a_fork_keeps_its_content_if_its_parent_closes, make, drop)
{
    run_chain();
}

TEST_WITH(sequences_have_the_bits_that_they_have_alone, make, drop)
{
    const char *schedules = getenv("SCHEDULES"), *first = getenv("SEED");
    uint64_t count = schedules ? strtoull(schedules, NULL, 10) : 1;
    uint64_t from = first ? strtoull(first, NULL, 10) : USUAL_SEED;
    for (uint64_t i = 0; i < count; i++) {
        printf("%s: schedule %llu\n", NAME(plan).name, (unsigned long long)(from + i));
        run_schedule(from + i);
    }
}
