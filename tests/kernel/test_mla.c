/* Latent attention on every device: its query, attention and values.
 *
 * One cache row is the key and value of all heads. Results must not depend on how heads are divided
 * among blocks and a row among lanes. Some numbers of heads and widths therefore leave lanes,
 * groups of heads and blocks without work. */
#include <math.h>
#include <string.h>

#include "test.h"
#include "kernel/suite.h"

enum { LONGEST = 40, ROWS = 4, KV_TYPES = 4, CHUNK = 32 };

static const char *const kv_types[] = { "f32", "f16", "bf16", "q8_0" };

/* Makes a small instance from the keys that the family has. */
static instance make(arena *a, const subject *s, int rows, const char *options)
{
    const char *sizes = arena_format(a, "%s latent=256 n_rope=32 nope=256 value_dim=5 m=%d %s",
                                     s->weights, rows, options);
    const char *heads = strstr(options, "num_heads") ? "" : "num_heads=3";
    const char *longest = strstr(options, "max_seq_len") ? "" : "max_seq_len=40";
    const char *chunk = strstr(options, "chunk_size") ? "" : "chunk_size=32";
    const char *text = arena_format(a, "%s %s %s %s", heads, longest, chunk, sizes);
    return suite_made(a, s->family, "%s", suite_known_keys(a, s->family, text));
}

static void run_at(const subject *s, int rows, const char *options, const int64_t *lengths,
                   size_t count)
{
    arena *a = arena_new();
    instance in = make(a, s, rows, options);
    trial t = suite_trial(a, &in, s->device);
    for (size_t i = 0; i < count; i++) {
        trial_shorten(&t, lengths[i]);
        expect_trial_right(a, s->device, &in, &t);
    }
    arena_free(a);
}

static bool is(const subject *s, operation op)
{
    return s->family->op == op;
}

/* Options for the type of products. */
static const char *const products[] = { "", "products=f16" };

static size_t product_kinds(const subject *s)
{
    return is(s, OP_MLA_ATTENTION) ? sizeof products / sizeof *products : 1;
}

/* Returns true for the first weight format and for families without weights. Checks of code that
 * all formats share run only then. */
static bool is_first_format(const subject *s)
{
    return !*s->weights || strstr(s->weights, "q4_0");
}

static void is_right_for_every_format(arena *a, const subject *s)
{
    static const int64_t lengths[] = { LONGEST, 1 };
    const char *rank =
        arena_format(a, "q_rank=256 weights_q=%s", *s->weights ? strchr(s->weights, '=') + 1 : "");
    run_at(s, 1, "", lengths, 1);
    if (is(s, OP_MLA_QUERY))
        run_at(s, 3, rank, lengths, 2);
    else
        run_at(s, 3, "", lengths, 2);
    if (!is(s, OP_MLA_ATTENTION))
        run_at(s, 3, "plane_rows=261", lengths, 1);
}

/* Tiles of 128 latents that are full and partial, rows that leave some half warps without one. */
static void is_right_for_widths_of_attn_kv_b(arena *a, const subject *s)
{
    static const int latents[] = { 32, 96, 128, 160, 288, 512 };
    static const int nopes[] = { 8, 16, 24, 40 };
    static const int64_t lengths[] = { LONGEST };
    if (is(s, OP_MLA_ATTENTION) || !is_first_format(s))
        return;
    for (size_t i = 0; i < 2 * sizeof latents / sizeof *latents; i++)
        run_at(s, (int)(i % MAX_VECTORS) + 1,
               arena_format(a, "latent=%d nope=%d plane_rows=%d q_rank=%d", latents[i / 2],
                            nopes[i % 4], nopes[i % 4] + 7, i % 2 ? 64 : 0),
               lengths, 1);
}

/* Several groups of 8 rows, the last full or partial. Rows have their own caches, or share one in
 * which each row sees its own and all earlier positions. */
static void is_right_for_many_rows(arena *a, const subject *s)
{
    static const struct {
        int rows;
        const char *options;
    } cases[] = { { 9, "q_rank=64 kv_type=f16 products=f16" },
                  { 17, "inputs=apart kv_type=q8_0" },
                  { 19, "inputs=apart kv_type=f16 plane_rows=48" },
                  { 11, "q_rank=64 kv_type=f32 plane_rows=37 temperature_length=8" },
                  { 64, "q_rank=64 kv_type=bf16 temperature_length=8 temperature_scale=0.1" },
                  { 130, "inputs=apart kv_type=f16 products=f16" } };
    static const int64_t beyond[] = { 1, 0, -2 };
    if (!is_first_format(s))
        return;
    for (size_t i = 0; i < 2 * sizeof cases / sizeof *cases; i++) {
        int rows = cases[i / 2].rows;
        int64_t longest = rows + LONGEST;
        instance in = make(a, s, rows,
                           arena_format(a, "latent=64 nope=32 max_seq_len=%d %s", (int)longest,
                                        cases[i / 2].options));
        trial_setup setup = suite_setup(&in, s->device);
        setup.one_cache = i % 2;
        trial t = trial_prepare(a, &in, &setup);
        for (size_t j = 0; j < sizeof beyond / sizeof *beyond; j++) {
            trial_shorten(&t, longest + beyond[j]);
            expect_trial_right(a, s->device, &in, &t);
        }
        trial_shorten(&t, rows / 2);
        expect_trial_right(a, s->device, &in, &t);
    }
}

/* Positions at the end of the cache and after it, with separate caches and with one. */
static void leaves_other_positions_unwritten(arena *a, const subject *s)
{
    static const int64_t lengths[] = { LONGEST + 1, LONGEST, 2, 1, 0 };
    if (!is(s, OP_MLA_QUERY) || !is_first_format(s))
        return;
    for (int i = 0; i < 2 * KV_TYPES; i++) {
        instance in = make(a, s, ROWS, arena_format(a, "kv_type=%s", kv_types[i / 2]));
        trial_setup setup = suite_setup(&in, s->device);
        setup.one_cache = i % 2;
        trial t = trial_prepare(a, &in, &setup);
        for (size_t j = 0; j < sizeof lengths / sizeof *lengths; j++) {
            trial_shorten(&t, lengths[j]);
            expect_trial_right(a, s->device, &in, &t);
        }
    }
}

static void rotates_as_rope_kv_write_does(arena *a, const subject *s)
{
    static const char *const options[] = {
        "rope=neox",
        "rope=none",
        "n_rope=64 rope=norm rope_base=500000",
        "n_rope=128 rope=neox rope_factors=divide",
        "n_rope=64 rope_scaling=yarn rope_factor=40 rope_original_context=16 rope_magnitude=1.1",
        "rope=neox temperature_length=8 temperature_scale=0.1 q_rank=64",
    };
    static const int64_t lengths[] = { LONGEST, LONGEST / 2 };
    (void)a;
    if (!is(s, OP_MLA_QUERY) || !is_first_format(s))
        return;
    for (size_t i = 0; i < sizeof options / sizeof *options; i++)
        run_at(s, 3, options[i], lengths, 2);
}

/* Groups of 1 to 8 heads, one or two per block, and rows that leave some lanes without a value. */
static void is_right_for_heads_and_widths(arena *a, const subject *s)
{
    static const int heads[] = { 1, 2, 3, 4, 5, 8, 9, 16, 20 };
    static const int latents[] = { 32, 64, 96, 128, 160, 256, 288, 416, 512 };
    static const int64_t lengths[] = { LONGEST, 3 };
    if (!is(s, OP_MLA_ATTENTION))
        return;
    for (size_t i = 0; i < sizeof heads / sizeof *heads; i++)
        for (size_t j = 0; j < 2 * product_kinds(s); j++) {
            size_t k = (i + 4 * (j % 2)) % (sizeof latents / sizeof *latents);
            run_at(s, 2,
                   arena_format(a, "num_heads=%d latent=%d n_rope=%d kv_type=%s scale=0.2 %s",
                                heads[i], latents[k], j % 2 ? 32 : 64,
                                kv_types[(i + j % 2) % KV_TYPES], products[j / 2]),
                   lengths, 2);
        }
}

static void is_right_at_the_borders_of_chunks(arena *a, const subject *s)
{
    static const int64_t lengths[] = { 2 * CHUNK + 17,
                                       2 * CHUNK + 1,
                                       2 * CHUNK,
                                       2 * CHUNK - 1,
                                       CHUNK + 16,
                                       CHUNK + 1,
                                       CHUNK,
                                       CHUNK - 1,
                                       17,
                                       16,
                                       15,
                                       0 };
    for (size_t i = 0; is(s, OP_MLA_ATTENTION) && i < product_kinds(s); i++)
        run_at(s, 4, arena_format(a, "latent=64 max_seq_len=81 kv_type=f16 %s", products[i]),
               lengths, sizeof lengths / sizeof *lengths);
}

/* Chunks have several tiles, of which some raise the maximum of some heads. */
static void is_right_for_chunks_of_several_tiles(arena *a, const subject *s)
{
    static const int64_t lengths[] = { 200, 133, 80, 49 };
    for (size_t i = 0; is(s, OP_MLA_ATTENTION) && i < product_kinds(s); i++)
        for (int type = 0; type < 2; type++)
            run_at(s, 2,
                   arena_format(a,
                                "num_heads=16 latent=64 max_seq_len=200 chunk_size=%d "
                                "kv_type=%s %s",
                                type ? 112 : 80, kv_types[type], products[i]),
                   lengths, sizeof lengths / sizeof *lengths);
}

enum { HUGE_WIDTH = 96, HUGE_BY = 100 }; /* values per row, and an exponent */

/* Scales each row of a cache by a large power of two, different from row to row. Rows of q8_0 get
 * the largest scale. */
static void make_rows_huge(const device_buffer *cache, int64_t kv_type)
{
    enum { APART = 3, DIFFERENT = 8, LARGEST_SCALE = 0x7bff, BFLOAT_EXPONENT = 7 };
    float *floats = cache->bytes;
    uint16_t *halves = cache->bytes;
    uint64_t blocks = cache->size / formats[FORMAT_Q8_0].block_bytes;
    uint64_t rows = cache->size / (uint64_t)format_bytes(kv_formats[kv_type], HUGE_WIDTH);
    for (uint64_t i = 0; kv_type == KV_Q8_0 && i < blocks; i++)
        halves[i * formats[FORMAT_Q8_0].block_bytes / sizeof *halves] = LARGEST_SCALE;
    for (uint64_t i = 0; kv_type != KV_Q8_0 && i < rows * HUGE_WIDTH; i++) {
        int by = HUGE_BY - APART * (int)(i / HUGE_WIDTH % DIFFERENT);
        if (kv_type == KV_F32)
            floats[i] = ldexpf(floats[i], by);
        else if (halves[i] & INT16_MAX)
            halves[i] = (uint16_t)(halves[i] + (by << BFLOAT_EXPONENT));
    }
}

/* q is so small that scores have ordinary sizes. */
static void finite_values_do_not_overflow(arena *a, const subject *s)
{
    static const int64_t types[] = { KV_F32, KV_BF16, KV_Q8_0 };
    for (size_t i = 0; is(s, OP_MLA_ATTENTION) && i < sizeof types / sizeof *types; i++) {
        instance in =
            make(a, s, 2, arena_format(a, "latent=64 products=f16 kv_type=%s", kv_types[types[i]]));
        trial t = suite_trial(a, &in, s->device);
        for (size_t j = 0; j < t.param_count; j++) {
            const trial_param *p = &t.params[j];
            float *q = p->content.bytes;
            if (p->param.data == DATA_CACHE)
                make_rows_huge(&p->content, types[i]);
            for (uint64_t k = 0; strcmp(p->param.name, "q") == 0 && k < p->values; k++)
                q[k] = ldexpf(q[k], types[i] == KV_Q8_0 ? -25 : -HUGE_BY);
        }
        expect_trial_right(a, s->device, &in, &t);
    }
}

static void is_right_for_inputs_of_every_kind(arena *a, const subject *s)
{
    if (!is_first_format(s))
        return;
    for (unsigned i = 0; i < FILL_KINDS * product_kinds(s); i++) {
        fill_kind kind = i % FILL_KINDS;
        instance in = make(a, s, 2,
                           arena_format(a, "latent=64 kv_type=%s %s", kv_types[i % KV_TYPES],
                                        products[i / FILL_KINDS]));
        expect_filled_right(a, s->device, &in, kind);
    }
}

/* A NaN or infinity in an input must reach all dependent outputs, and no others. */
static void nan_and_infinity_reach_dependent_outputs(arena *a, const subject *s)
{
    static const char *const inputs[] = { "q_rank=64", "inputs=apart", "plane_rows=261" };
    if (!is_first_format(s))
        return;
    for (size_t j = 0; j < KV_TYPES * product_kinds(s); j++) {
        instance in = make(a, s, 2,
                           arena_format(a, "kv_type=%s %s %s", kv_types[j % KV_TYPES],
                                        inputs[j % 3], products[j / KV_TYPES]));
        for (unsigned i = 0; i < 2 * trial_input_count(a, &in); i++) {
            trial_setup setup = suite_setup(&in, s->device);
            setup.spoiled = i % 2 ? WITH_NAN : WITH_INFINITY;
            setup.spoiled_input = i / 2;
            trial t = trial_prepare(a, &in, &setup);
            expect_trial_right(a, s->device, &in, &t);
        }
    }
}

/* Copies a row of one trial, with its cache, to the only row of another. */
static void take_row(trial *one, const trial *all, uint64_t row)
{
    uint64_t rows = (uint64_t)all->setup.shape.m;
    trial_shorten_each(one, all->seq_lens + row);
    for (size_t i = 0; i < one->param_count; i++) {
        trial_param *to = &one->params[i];
        const trial_param *from = &all->params[i];
        if (to->param.kind != PARAM_IN)
            continue;
        bool has_rows =
            from->size == rows * to->size && strstr(to->param.values, "m*") == to->param.values;
        if (to->param.data == DATA_SEQUENCES)
            continue;
        if (to->param.data == DATA_CACHE)
            suite_copy_cache((cache_part){ one, to, 0, 0, 0 },
                             (cache_part){ all, from, all->sequences[row], 0, 0 },
                             one->setup.shape.max_seq_len);
        else
            memcpy(to->content.bytes,
                   (const char *)from->content.bytes +
                       (has_rows || to->param.format == FORMAT_U32 ? row * to->size : 0),
                   to->size);
    }
}

static void rows_depend_neither_on_others_nor_on_the_grid(arena *a, const subject *s)
{
    static const int64_t sm_counts[] = { 1, 2, 132 };
    static const char *const options[] = { "kv_type=f16", "kv_type=q8_0 q_rank=64",
                                           "kv_type=f32 plane_rows=261" };
    static const int row_counts[] = { ROWS, 2 * MAX_VECTORS + 1 };
    if (!is_first_format(s))
        return;
    for (size_t i = 0; i < 6 * product_kinds(s); i++) {
        const char *text = arena_format(a, "max_seq_len=90 %s %s", options[i % 3], products[i / 6]);
        int rows = row_counts[i / 3 % 2];
        const void *all[MAX_PARAMS], *alone[MAX_PARAMS];
        instance many = make(a, s, rows, text), single = make(a, s, 1, text);
        kernel many_kernel = suite_kernel(a, &many), single_kernel = suite_kernel(a, &single);
        trial t = suite_trial(a, &many, s->device);
        expect_right(suite_launch_all(a, s->device, &many_kernel, &t, all));
        for (uint64_t row = 0; row < (uint64_t)rows; row++) {
            trial_setup one = suite_setup(&single, s->device);
            one.sm_count = sm_counts[row % 3];
            trial u = trial_prepare(a, &single, &one);
            take_row(&u, &t, row);
            expect_right(suite_launch_all(a, s->device, &single_kernel, &u, alone));
            for (size_t p = 0; p < u.param_count && u.params[p].param.kind == PARAM_OUT; p++) {
                uint64_t bytes = u.params[p].size;
                uint64_t at = u.params[p].param.data == DATA_CACHE ? t.sequences[row] : row;
                expect_same_bits(many.name,
                                 arena_format(a, "%s of row %llu", u.params[p].param.name,
                                              (unsigned long long)row),
                                 (const char *)all[p] + at * bytes, alone[p], bytes);
            }
        }
    }
}

static bool is_mla(const family *f)
{
    return f->op == OP_MLA_QUERY || f->op == OP_MLA_ATTENTION || f->op == OP_MLA_VALUES;
}

LIST_TESTS
{
    static const suite_check checks[] = {
        CHECK(is_right_for_every_format),
        CHECK(is_right_for_widths_of_attn_kv_b),
        CHECK(is_right_for_many_rows),
        CHECK(leaves_other_positions_unwritten),
        CHECK(rotates_as_rope_kv_write_does),
        CHECK(is_right_for_heads_and_widths),
        CHECK(is_right_at_the_borders_of_chunks),
        CHECK(is_right_for_chunks_of_several_tiles),
        CHECK(finite_values_do_not_overflow),
        CHECK(is_right_for_inputs_of_every_kind),
        CHECK(nan_and_infinity_reach_dependent_outputs),
        CHECK(rows_depend_neither_on_others_nor_on_the_grid),
    };
    suite_list(__FILE__, suite_weights, EACH, is_mla, checks, sizeof checks / sizeof *checks);
}
