/* Attention over rows that are tokens of one sequence must not depend on the batch.
 *
 * A prompt is read several tokens at a time: row i of a batch is a token with its own length, and
 * all rows share one cache. The bits of a token's attention must not depend on the other tokens of
 * the batch, nor on the grid, which differs between GPUs. Otherwise a model's text would depend on
 * how its prompt was split. All families here guarantee this; gqa_flash_decoding does with chunking
 * = fixed. */
#include <math.h>
#include <string.h>

#include "test.h"
#include "kernel/suite.h"

enum { ROWS = 8, PADDING = 2, LONGEST = 600, ROOM = 700, KV_TYPES = 4 };

static const char *const kv_types[] = { "f32", "f16", "bf16", "q8_0" };

static bool is_attention(const family *f)
{
    return f->build && family_key(f, "max_seq_len") && suite_is_attention(f);
}

static bool is_whole(const family *f)
{
    return f->op == OP_ATTENTION || f->op == OP_BATCHED_ATTENTION || f->op == OP_PROMPT_ATTENTION;
}

/* Makes an instance with one KV head, so that caches of different capacity begin with the same
 * bytes. */
static instance make(arena *a, const family *f, int rows, int max_seq_len, const char *options)
{
    const char *text = arena_format(a, "num_kv_heads=1 max_seq_len=%d m=%d chunk_size=64 %s",
                                    max_seq_len, rows, options);
    return suite_made(a, f, "%s", suite_known_keys(a, f, text));
}

static trial prepare(arena *a, const subject *s, const instance *in, int64_t sm_count,
                     const uint32_t *lengths)
{
    trial_setup setup = suite_setup(in, s->device);
    setup.sm_count = sm_count;
    trial t = trial_prepare(a, in, &setup);
    if (t.row_count == 1)
        trial_shorten(&t, lengths[0]);
    else
        memcpy(t.seq_lens, lengths, t.row_count * sizeof *lengths);
    trial_shorten_each(&t, lengths);
    return t;
}

/* Gives all rows the first row's sequence. Its cache has the longest length at first. */
static void share_caches(arena *a, trial *t)
{
    uint32_t *sequences = arena_alloc(a, t->row_count * sizeof *sequences);
    for (size_t i = 0; i < t->row_count; i++)
        sequences[i] = t->sequences[0];
    suite_put_sequences(t, sequences);
}

static trial prompt(arena *a, const subject *s, const instance *in, int64_t sm_count,
                    const uint32_t *lengths)
{
    trial t = prepare(a, s, in, sm_count, lengths);
    share_caches(a, &t);
    return t;
}

/* Copies a row of one trial to the only row of another, whose capacity may be smaller. */
static void take_row(trial *one, const trial *all, uint64_t row)
{
    for (size_t i = 0; i < one->param_count; i++) {
        trial_param *to = &one->params[i];
        const trial_param *from = &all->params[i];
        size_t sequence = one->sequences[0];
        if (to->param.data == DATA_CACHE)
            suite_copy_cache((cache_part){ one, to, sequence, 0, 0 },
                             (cache_part){ all, from, all->sequences[row], 0, 0 },
                             trial_valid_rows(one, sequence));
        else if (to->param.kind == PARAM_IN && to->param.format == FORMAT_F32)
            memcpy(to->content.bytes,
                   (const char *)from->content.bytes +
                       (from->values == to->values ? 0 : row) * to->size,
                   to->size);
    }
}

static const void *output_of(arena *a, const subject *s, const instance *in, const trial *t)
{
    kernel k = suite_kernel(a, in);
    const void *output;
    expect_right(suite_run(a, s->device, &k, t, NULL, &output));
    return output;
}

static void expect_same(arena *a, const instance *in, const char *what, uint32_t length,
                        const void *got, const void *expected, size_t size)
{
    expect_same_bits(in->name, arena_format(a, "%s, at length %u", what, length), got, expected,
                     size);
}

/* Sets consecutive lengths after PADDING rows of length 0. */
static void lengths_from(uint32_t first, uint32_t lengths[ROWS])
{
    for (uint32_t i = 0; i < ROWS; i++)
        lengths[i] = i < PADDING ? 0 : first + i - PADDING;
}

/* The shared cache has valid values after a row's length, not NaN. Kernels must ignore them. */
static void is_right_for_tokens_of_one_sequence(arena *a, const subject *s)
{
    static const uint32_t firsts[] = { 1, 60, 595 };
    for (size_t i = 0; i < sizeof firsts / sizeof *firsts * KV_TYPES * 2; i++) {
        arena *run = arena_new();
        const char *options =
            arena_format(run, "head_dim=64 num_heads=3 kv_type=%s %s", kv_types[i / 2 % KV_TYPES],
                         i % 2 ? "window=100 chunking=fixed sinks=add gate=sigmoid" : "");
        instance in = make(run, s->family, ROWS, LONGEST, options);
        uint32_t lengths[ROWS];
        lengths_from(firsts[i / 2 / KV_TYPES], lengths);
        trial t = prompt(run, s, &in, 132, lengths);
        output_of(run, s, &in, &t);
        arena_free(run);
    }
    (void)a;
}

/* Checks that a batch has the same bits on GPUs of several sizes, and each row also alone with more
 * capacity. */
static void check_batch(arena *a, const subject *s, const char *options, uint32_t first)
{
    static const int64_t sm_counts[] = { 1, 7, 20, 132 };
    instance in = make(a, s->family, ROWS, LONGEST, options);
    instance alone = make(a, s->family, 1, is_whole(s->family) ? ROOM : LONGEST, options);
    uint32_t lengths[ROWS];
    lengths_from(first, lengths);
    const char *rows = NULL;
    trial t = { 0 };
    size_t size = 0;
    for (size_t i = 0; i < sizeof sm_counts / sizeof *sm_counts; i++) {
        t = prompt(a, s, &in, sm_counts[i], lengths);
        size = t.params[0].size;
        const void *output = output_of(a, s, &in, &t);
        if (rows)
            expect_same(a, &in, "on another GPU", first, output, rows, size);
        rows = output;
    }
    for (uint64_t i = 0; i < ROWS; i++) {
        trial one = prepare(a, s, &alone, 1, &lengths[i]);
        take_row(&one, &t, i);
        expect_same(a, &in, "alone", lengths[i], output_of(a, s, &alone, &one),
                    rows + i * (size / ROWS), size / ROWS);
    }
}

/* Checks that a family without batches has the same bits with more capacity. */
static void check_room(arena *a, const subject *s, const char *options, uint32_t first)
{
    instance in = make(a, s->family, 1, LONGEST, options);
    instance roomy = make(a, s->family, 1, ROOM, options);
    for (uint32_t length = first; length < first + ROWS - PADDING; length++) {
        trial t = prepare(a, s, &in, 132, &length), more = prepare(a, s, &roomy, 1, &length);
        take_row(&more, &t, 0);
        expect_same(a, &in, "with more capacity", length, output_of(a, s, &roomy, &more),
                    output_of(a, s, &in, &t), t.params[0].size);
    }
}

static void bits_depend_only_on_the_length(arena *a, const subject *s)
{
    static const char *const options[] = { "head_dim=64 num_heads=3",
                                           "num_heads=8 window=200 softcap=20",
                                           "head_dim=128 num_heads=7 chunk_size=128 window=131",
                                           ("head_dim=64 num_heads=5 window=150 ring=157 sinks=add "
                                            "gate=sigmoid") };
    static const uint32_t firsts[] = { 1, 60, 125, 189, 595 };
    const char *long_head =
        family_key(s->family, "head_dim")->multiple_of > 32 ? "head_dim=192 " : "head_dim=96 ";
    for (size_t i = 0; i < sizeof options / sizeof *options; i++)
        for (size_t j = 0; j < sizeof firsts / sizeof *firsts; j++) {
            if (!test_takes_row(i + j, THIRD))
                continue;
            arena *run = arena_new();
            const char *kv_type = kv_types[(i + j) % KV_TYPES];
            const char *text = strcmp(kv_type, "q8_0") == 0 && i == 1
                                   ? arena_format(run, "head_dim=64 num_heads=8 kv_type=q8_0")
                                   : arena_format(run, "%s kv_type=%s", options[i], kv_type);
            text = arena_format(run, "%s%s chunking=fixed",
                                strstr(text, "head_dim") ? "" : long_head, text);
            (family_key(s->family, "m") ? check_batch : check_room)(run, s, text, firsts[j]);
            arena_free(run);
        }
    (void)a;
}

enum { WINDOW = 33, FOUR_WINDOWS = 4 * WINDOW, RING_HEADS = 2 };

/* Returns a trial whose rows are positions of one sequence; the test writes the caches. */
static trial ring_trial(arena *a, const subject *s, const instance *in)
{
    return suite_trial(a, in, s->device);
}

/* Fills the caches of all rows with NaN, then writes positions first to end - 1. content holds the
 * K and V rows of all positions. */
static void put_positions(trial *t, const char *const content[2], uint32_t first, uint32_t end)
{
    uint64_t bytes = format_bytes(kv_format(t->instance), (uint64_t)t->instance->shape.head_dim);
    uint64_t caches = 0;
    for (size_t i = 0; i < t->param_count; i++) {
        const trial_param *p = &t->params[i];
        if (!trial_is_read_cache(p))
            continue;
        memset(p->content.bytes, 0xff, p->size);
        for (size_t row = 0; row < t->row_count; row++)
            for (uint32_t at = 0; at < RING_HEADS * (end - first); at++) {
                uint32_t head = at % RING_HEADS, position = first + at / RING_HEADS;
                memcpy((char *)p->content.bytes +
                           suite_cache_offset(t, p, t->sequences[row], head, position),
                       content[caches] + (head * FOUR_WINDOWS + position) * bytes, bytes);
            }
        caches++;
    }
}

/* Copies all inputs but the caches to another trial. */
static void take_inputs(trial *to, const trial *from)
{
    for (size_t i = 0; i < to->param_count; i++)
        if (to->params[i].param.kind == PARAM_IN && to->params[i].param.data != DATA_CACHE)
            memcpy(to->params[i].content.bytes, from->params[i].content.bytes, to->params[i].size);
}

/* Checks that a ring cache and a cache of all positions give the same bits. `others` selects the
 * even or odd steps of lengths in a sequence of four windows. */
static void check_ring(arena *a, const subject *s, const char *options, uint32_t rows, int ring,
                       bool others)
{
    const char *text = arena_format(a,
                                    "num_heads=2 num_kv_heads=%d max_seq_len=%d m=%u window=%d "
                                    "chunk_size=32 %s",
                                    RING_HEADS, FOUR_WINDOWS, rows, WINDOW, options);
    text = suite_known_keys(a, s->family, text);
    instance all = suite_made(a, s->family, "%s", text);
    instance in = suite_made(a, s->family, "%s ring=%d", text, ring);
    kernel all_kernel = suite_kernel(a, &all), ring_kernel = suite_kernel(a, &in);
    trial full = ring_trial(a, s, &all), wrapped = ring_trial(a, s, &in);
    take_inputs(&wrapped, &full);
    const char *content[2];
    size_t caches = 0;
    for (size_t i = 0; i < full.param_count; i++)
        if (trial_is_read_cache(&full.params[i])) {
            const trial_param *p = &full.params[i];
            size_t first = suite_cache_offset(&full, p, full.sequences[0], 0, 0),
                   bytes = p->size / full.row_count;
            content[caches++] =
                memcpy(arena_alloc(a, bytes), (const char *)p->content.bytes + first, bytes);
        }
    const uint32_t step = (rows + 1) / 2;
    for (uint32_t end = rows + others * step; end <= FOUR_WINDOWS; end += 2 * step) {
        arena *run = arena_new();
        uint32_t lengths[ROWS], first = end - rows + 1;
        for (uint32_t i = 0; i < rows; i++)
            lengths[i] = first + i;
        first = first < WINDOW ? 0 : first - WINDOW;
        const void *expected, *got;
        const uint8_t *written;
        trial_shorten_each(&full, lengths);
        trial_shorten_each(&wrapped, lengths);
        put_positions(&full, content, first, end);
        put_positions(&wrapped, content, first, end);
        expect_right(suite_launch(run, s->device, &all_kernel, &full, &expected, &written));
        expect_right(suite_launch(run, s->device, &ring_kernel, &wrapped, &got, &written));
        for (uint64_t i = 0; i < full.params[0].values; i++)
            assert_true(!isnan(((const float *)expected)[i]));
        expect_same(run, &in, "ring cache", end, got, expected, full.params[0].size);
        arena_free(run);
    }
}

/* The rings have the window's number of rows, two chunks, and a size that is not a multiple of a
 * chunk. */
static void a_ring_cache_gives_the_bits_of_a_full_cache(arena *a, const subject *s)
{
    int step = (int)family_key(s->family, "head_dim")->multiple_of,
        odd = step * (step < 64 ? 5 : 3);
    for (int i = 0; i < KV_TYPES; i++) {
        const char *options = arena_format(a, "head_dim=%d chunking=fixed kv_type=%s",
                                           step < 32 ? 32 : step, kv_types[i]);
        check_ring(a, s, options, 1, i % 2 ? WINDOW : 64, i / 2 % 2);
        check_ring(a, s, options, ROWS, i % 2 ? 64 : WINDOW + ROWS - 1, i / 2 % 2);
    }
    check_ring(a, s, arena_format(a, "head_dim=%d kv_type=f16", odd), 1, 47, false);
    check_ring(a, s, "head_dim=64 kv_type=q8_0 sinks=add gate=sigmoid softcap=3", ROWS, 96, true);
}

LIST_TESTS
{
    static const suite_check checks[] = {
        CHECK_WITH(is_right_for_tokens_of_one_sequence, .key = "m"),
        CHECK(bits_depend_only_on_the_length),
        CHECK_WITH(a_ring_cache_gives_the_bits_of_a_full_cache, .key = "ring"),
    };
    suite_list(__FILE__, suite_weights, EACH, is_attention, checks, sizeof checks / sizeof *checks);
}
