/* Attention of prompts on the tensor cores. Results must be right for every number of rows, ratio
 * of heads, head_dim and cache type. They must not depend on the tile. Loops must have no bank
 * conflicts, and faults must be found. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "test_arena.h"
#include "kernel/planted.h"

static trial trial_of(arena *a, const instance *in, int64_t m, int64_t seq_len)
{
    trial_setup setup = { .shape = in->shape, .sm_count = 1, .seed = 3 };
    setup.shape.m = m;
    setup.shape.seq_len = seq_len;
    return trial_prepare(a, in, &setup);
}

/* Returns the cache of the rows' sequence, which has one KV head. */
static device_buffer cache_of(trial *t, const char *name)
{
    const trial_param *p = suite_param(t, name);
    device_buffer cache = p->content;
    cache.bytes = (char *)cache.bytes + suite_cache_offset(t, p, t->sequences[0], 0, 0);
    return cache;
}

/* Runs a kernel on a trial and returns its results. Fails the test if one is wrong. */
static const float *run(arena *a, device *d, const kernel *k, const trial *t)
{
    const void *o;
    expect_right(suite_run(a, d, k, t, NULL, &o));
    return o;
}

/* Returns the root mean square of the errors, relative to their bounds. */
static double mean_error(arena *a, const trial *t, const float *o)
{
    const family *f = t->instance->family;
    uint64_t count = t->params[0].values;
    ref_value *expected = arena_alloc(a, count * sizeof *expected);
    double squares = 0;
    f->reference(&t->problem, 0, 0, count, expected);
    for (uint64_t i = 0; i < count; i++) {
        double bound = expected[i].magnitude * f->tolerance;
        double error = bound > 0 ? ((double)o[i] - expected[i].value) / bound : 0;
        squares += error * error;
    }
    return sqrt(squares / (double)count);
}

/* Checks that errors are far below their bounds. The bound is 2^-9, rounding errors are about
 * 2^-12, and they average out over many positions. With a single position the bound has no
 * allowance for errors of a score, so that the ratio is larger. */
static void check_errors(arena *a, device *d, const char *text, int64_t m, int64_t seq_len)
{
    instance in;
    kernel k = suite_kernel_of(a, "mma_attention", text, &in);
    trial t = trial_of(a, &in, m, seq_len);
    double error = mean_error(a, &t, run(a, d, &k, &t));
    if (getenv("PTXGEN_TEST_FIGURES"))
        print_message("%s, m %lld, seq_len %lld: %.4f\n", in.name, (long long)m, (long long)seq_len,
                      error);
    if (error > (seq_len == 1 ? 0.15 : 0.1))
        fail_msg("%s, m %lld: errors are %.3f of their bounds", in.name, (long long)m, error);
}

EMULATOR_TEST(every_number_of_rows_is_right)
{
    enum { LONGEST = 400 };
    static const int64_t rows[] = { 1, 9, 16, 17, 63, 64, 128, 200 };
    static const char *const texts[] = { "head_dim=64 num_heads=1 num_kv_heads=1 m=64 kv_type=f16",
                                         "head_dim=32 num_heads=8 num_kv_heads=2 m=128 kv_type=f16",
                                         "head_dim=16 num_heads=8 num_kv_heads=1 m=32 kv_type=q8_0",
                                         "head_dim=16 num_heads=16 num_kv_heads=1 m=16" };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        for (size_t r = 0; r < sizeof rows / sizeof *rows; r++) {
            if (!test_takes_row(i + r, THIRD))
                continue;
            arena *each = arena_new();
            const char *text = arena_format(each, "%s max_seq_len=%d", texts[i], LONGEST);
            if (strstr(text, "q8_0"))
                text = mutate(each, text, "head_dim=16", "head_dim=32");
            check_errors(each, d, text, rows[r], rows[r]);
            check_errors(each, d, text, rows[r], LONGEST);
            arena_free(each);
        }
}

EMULATOR_TEST(every_head_and_kind_of_cache_is_right)
{
    static const int head_dims[] = { 64, 80, 96, 128, 192, 256, 384, 512 };
    static const char *const kv_types[] = { "f32", "f16", "bf16", "q8_0" };
    for (size_t h = 0; h < sizeof head_dims / sizeof *head_dims; h++)
        for (size_t t = 0; t < sizeof kv_types / sizeof *kv_types; t++) {
            if (head_dims[h] % Q8_0_VALUES && strcmp(kv_types[t], "q8_0") == 0)
                continue;
            arena *each = arena_new();
            check_errors(each, d,
                         arena_format(each,
                                      "head_dim=%d num_heads=2 num_kv_heads=1 max_seq_len=150 "
                                      "kv_type=%s m=%d",
                                      head_dims[h], kv_types[t], h % 2 ? 128 : 16),
                         20, 150);
            arena_free(each);
        }
}

EMULATOR_TEST(windows_smaller_than_a_tile_are_right)
{
    static const char *const options[] = { "window=1",
                                           "window=5",
                                           "window=40",
                                           "window=64",
                                           "window=40 ring=140",
                                           "window=100 ring=250",
                                           "window=200 chunk_size=128" };
    for (size_t i = 0; i < sizeof options / sizeof *options; i++)
        for (int type = 0; type < 2; type++) {
            const char *text = arena_format(a,
                                            "head_dim=32 num_heads=4 num_kv_heads=2 "
                                            "max_seq_len=300 m=64 kv_type=%s %s",
                                            type ? "bf16" : "f16", options[i]);
            instance in;
            kernel k = suite_kernel_of(a, "mma_attention", text, &in);
            trial t = trial_of(a, &in, 70, 300);
            run(a, d, &k, &t);
            trial_shorten(&t, 90);
            run(a, d, &k, &t);
        }
}

/* The f32 cache has K far beyond the range of f16, with q small in proportion, and rows of V of
 * very different sizes. */
EMULATOR_TEST(values_beyond_the_range_of_f16_are_scaled_by_powers_of_two)
{
    enum { HEAD = 64, LONGEST = 100, ROWS = 20 };
    static const float sizes[] = { 1, 1e8f, 1e-8f, 3e4f, 1e-4f };
    instance in;
    kernel k = suite_kernel_of(a, "mma_attention",
                               "head_dim=64 num_heads=1 num_kv_heads=1 max_seq_len=100 m=16", &in);
    trial t = trial_of(a, &in, ROWS, LONGEST);
    float *q = t.params[1].content.bytes, *keys = cache_of(&t, "k").bytes,
          *values = cache_of(&t, "v").bytes;
    for (size_t i = 0; i < (size_t)ROWS * HEAD; i++)
        q[i] *= 1e-8f;
    for (size_t i = 0; i < (size_t)LONGEST * HEAD; i++) {
        keys[i] *= 1e8f;
        values[i] *= sizes[i / HEAD % (sizeof sizes / sizeof *sizes)];
    }
    assert_true(mean_error(a, &t, run(a, d, &k, &t)) < 0.1);
}

/* Sets element i of an f16 or f32 cache to NaN or minus infinity. */
static void put_nonfinite(device_buffer cache, bool halves, size_t i, bool infinite)
{
    uint16_t half = infinite ? 0xfc00 : 0x7e00;
    float number = infinite ? -INFINITY : NAN;
    if (halves)
        memcpy((char *)cache.bytes + i * sizeof half, &half, sizeof half);
    else
        memcpy((char *)cache.bytes + i * sizeof number, &number, sizeof number);
}

/* Rows before the non-finite position must keep their bits. From it on, rows must be NaN or
 * infinite in its column. */
EMULATOR_TEST(nan_and_infinity_reach_only_rows_that_see_their_position)
{
    enum { HEAD = 64, ROWS = 40, LONGEST = 130, NONFINITE = LONGEST - 11, COLUMN = 17 };
    for (int i = 0; i < 16; i++) {
        bool halves = i % 2, infinite = i / 2 % 2, of_k = i / 4 % 2, chunks = i / 8;
        instance in;
        kernel k =
            suite_kernel_of(a, "mma_attention",
                            arena_format(a,
                                         "head_dim=64 num_heads=1 num_kv_heads=1 max_seq_len=130 "
                                         "m=64 kv_type=%s chunk_size=%d",
                                         halves ? "f16" : "f32", chunks ? 128 : 0),
                            &in);
        trial t = trial_of(a, &in, ROWS, LONGEST);
        const float *o = run(a, d, &k, &t);
        size_t bytes = t.params[0].size;
        const float *before = memcpy(arena_alloc(a, bytes), o, bytes);
        put_nonfinite(cache_of(&t, of_k ? "k" : "v"), halves, (size_t)NONFINITE * HEAD + COLUMN,
                      infinite);
        o = run(a, d, &k, &t);
        for (size_t row = 0; row < ROWS; row++)
            for (size_t column = 0; column < HEAD; column++) {
                size_t at = row * HEAD + column, length = row + LONGEST - ROWS + 1;
                bool counts = length > NONFINITE && (of_k || column == COLUMN);
                if (!counts)
                    assert_true(memcmp(o + at, before + at, sizeof *o) == 0);
                else if (!of_k || !infinite) /* a score of -infinity has no weight */
                    assert_true(!isfinite(o[at]));
            }
    }
}

/* Whole rows of V are NaN and infinite, at each place of a tile. */
EMULATOR_TEST(nan_rows_reach_only_rows_that_see_their_position)
{
    enum { HEAD = 64, ROWS = 64, LONGEST = 128, FIRST = LONGEST - ROWS };
    instance in;
    kernel k = suite_kernel_of(a, "mma_attention",
                               "head_dim=64 num_heads=1 num_kv_heads=1 max_seq_len=128 m=64 "
                               "kv_type=f16",
                               &in);
    trial t = trial_of(a, &in, ROWS, LONGEST);
    device_buffer values = cache_of(&t, "v");
    size_t bytes = t.params[0].size, row_bytes = HEAD * sizeof(uint16_t);
    const float *before = memcpy(arena_alloc(a, bytes), run(a, d, &k, &t), bytes);
    for (size_t position = FIRST; position < LONGEST; position++) {
        arena *each = arena_new();
        char *row = (char *)values.bytes + position * row_bytes;
        void *kept = memcpy(arena_alloc(each, row_bytes), row, row_bytes);
        for (size_t i = 0; i < HEAD; i++)
            put_nonfinite(values, true, position * HEAD + i, i % 3 == 0);
        const float *o = run(each, d, &k, &t);
        size_t ahead = (position - FIRST) * HEAD; /* row i reads FIRST + i + 1 positions */
        assert_true(memcmp(o, before, ahead * sizeof *o) == 0);
        for (size_t i = ahead; i < (size_t)ROWS * HEAD; i++)
            assert_true(!isfinite(o[i]));
        memcpy(row, kept, row_bytes);
        arena_free(each);
    }
}

EMULATOR_TEST(bits_do_not_depend_on_tile_and_rows)
{
    enum { LONGEST = 300, ROWS = 150 };
    static const int tiles[] = { 16, 32, 64, 128 };
    static const char *const kv_types[] = { "f16", "q8_0", "f16 chunk_size=128" };
    for (size_t type = 0; type < 3; type++) {
        const float *first = NULL;
        for (size_t i = 0; i < sizeof tiles / sizeof *tiles; i++) {
            instance in;
            kernel k =
                suite_kernel_of(a, "mma_attention",
                                arena_format(a,
                                             "head_dim=64 num_heads=3 num_kv_heads=1 m=%d "
                                             "max_seq_len=%d kv_type=%s window=200 sinks=add",
                                             tiles[i], LONGEST, kv_types[type]),
                                &in);
            trial t = trial_of(a, &in, ROWS, LONGEST);
            const float *o = run(a, d, &k, &t);
            if (first)
                assert_memory_equal(o, first, t.params[0].size);
            first = first ? first : memcpy(arena_alloc(a, t.params[0].size), o, t.params[0].size);
        }
    }
}

/* Both runs have equal numbers of rows and equally aligned tiles; one has three more tiles. */
ARENA_TEST(the_loop_has_no_bank_conflicts)
{
    enum { ROWS = 64, SHORT = 230, LONGER = SHORT + 3 * 64 };
    static const int head_dims[] = { 64, 80, 96, 112, 128, 192, 240, 256 };
    for (size_t i = 0; i < sizeof head_dims / sizeof *head_dims; i++)
        for (int tile = 16; tile <= 128; tile *= 2) {
            arena *each = arena_new();
            instance in;
            kernel k = suite_kernel_of(each, "mma_attention",
                                       arena_format(each,
                                                    "head_dim=%d num_heads=1 num_kv_heads=1 m=%d "
                                                    "max_seq_len=%d kv_type=f16",
                                                    head_dims[i], tile, LONGER),
                                       &in);
            trial few = trial_of(each, &in, ROWS, SHORT), many = trial_of(each, &in, ROWS, LONGER);
            assert_int_equal(suite_count(each, &k, &few, NULL).shared_bank_conflicts,
                             suite_count(each, &k, &many, NULL).shared_bank_conflicts);
            arena_free(each);
        }
    (void)a;
}

static kernel right_attention(arena *a)
{
    return right_kernel(a, "mma_attention",
                        "head_dim=32 num_heads=4 num_kv_heads=2 max_seq_len=330 m=32 kv_type=f16 "
                        "window=200");
}

ARENA_TEST(registers_of_fragments_in_another_order_are_found)
{
    kernel k = right_attention(a);
    expect_exchanged_registers_found(a, &k, 1, 2);
}

ARENA_TEST(fragments_of_values_that_are_not_transposed_are_found)
{
    kernel k = right_attention(a);
    expect_text_wrong(a, &k, mutate(a, k.ptx, "x4.trans.shared", "x4.shared"), "of its bound");
}

/* Waits 3 and 4 belong to the loop over tiles that all rows read. The preceding ones belong to
 * tiles at the window's start. */
ARENA_TEST(a_missing_wait_for_copies_is_found)
{
    kernel k = right_attention(a);
    expect_missing_waits_found(a, &k, 6, "");
}

/* After the barrier for the staged rows, each tile has two barriers: before K and before V. */
ARENA_TEST(a_tile_that_is_overwritten_while_it_is_read_is_found)
{
    kernel k = right_attention(a);
    enum {
        OF_WHOLE_TILES = 6
    }; /* follows one barrier of rows and four of tiles at the window's
                                    start */
    expect_missing_barriers_found(a, &k, OF_WHOLE_TILES, 2);
}

ARENA_TEST(masks_that_are_off_by_one_are_found)
{
    kernel k = right_attention(a);
    const line_edit end = { "setp.gt.s32", "", 0, "setp.ge.s32 $1, $2, $3;" };
    const line_edit first = { "setp.le.s32", "", 0, "setp.lt.s32 $1, $2, $3;" };
    expect_text_wrong(a, &k, edit_lines(a, k.ptx, &end), "");
    expect_text_wrong(a, &k, edit_lines(a, k.ptx, &first), "of its bound");
}

ARENA_TEST(results_that_are_not_scaled_down_are_found)
{
    kernel k = right_attention(a);
    const line_edit never = { "setp.ne.f32", "", 0, "setp.ne.f32 $1, 0f3F800000, 0f3F800000;" };
    const line_edit updated = { "sub.rn.f32", "", 0, "sub.rn.f32 $1, $3, $3;" };
    expect_text_wrong(a, &k, edit_lines(a, k.ptx, &never), "of its bound");
    expect_text_wrong(a, &k, edit_lines(a, k.ptx, &updated), "of its bound");
}

static kernel right_chunks(arena *a)
{
    return right_kernel(a, "mma_attention",
                        "head_dim=32 num_heads=4 num_kv_heads=2 max_seq_len=1400 m=20 kv_type=f16 "
                        "chunk_size=128 window=700");
}

ARENA_TEST(chunks_of_other_positions_are_found)
{
    kernel k = right_chunks(a);
    const line_edit number = { "sub.u32", "512;", 0, "sub.u32 $1, $2, 511;" };
    const line_edit size = { "shr.u32", "21;", 0, "shr.u32 $1, $2, 22;" };
    const line_edit first = { "or.b32", "4;", 0, "or.b32 $1, $2, 12;" };
    expect_text_wrong(a, &k, edit_lines(a, k.ptx, &number), "");
    expect_text_wrong(a, &k, edit_lines(a, k.ptx, &size), "");
    expect_text_wrong(a, &k, edit_lines(a, k.ptx, &first), "");
}

/* A block that merges too early, or without order, reads rows that others have not stored. */
ARENA_TEST(chunks_merged_before_the_last_block_are_found)
{
    kernel k = right_chunks(a);
    const line_edit early = { "atom.acq_rel.gpu.global.inc.u32", "", 0, "mov.u32 $1, $3;" };
    const line_edit unordered = { "atom.acq_rel.gpu.global.inc.u32", "", 0,
                                  "atom.relaxed.gpu.global.inc.u32 $1, $2, $3;" };
    expect_text_wrong(a, &k, edit_lines(a, k.ptx, &early), "");
    expect_text_wrong(a, &k, edit_lines(a, k.ptx, &unordered), "");
}
