/* Caches in pages: kernels of each family that has the key `page`.
 *
 * A page changes only where a row of a cache lies. So the results must have the same bits with pages
 * of any size and without pages, and with sequences that share pages. */
#include <string.h>

#include "test.h"
#include "kernel/suite.h"

enum { LONGEST = 300, BATCH = 5, PROMPT = 64, SHARED_PAGE = 64 };

/* Tiles have 16 to 128 positions, so that pages end inside tiles. Windows and chunks start within
 * pages. */
static const char *const options[] = {
    "kv_type=f16 window=100 chunk_size=96 state=settled",
    "kv_type=q8_0 sinks=add gate=sigmoid rope=neox",
    "kv_type=f32 chunk_size=32 window=70 q_rank=64",
    "kv_type=f16 products=f16 chunking=fixed chunk_size=128 k_norm=rms",
    "kv_type=bf16 head_dim=128 inputs=apart",
    "kv_type=f16 head_dim=256 num_heads=16 num_kv_heads=1 state=settled window=130",
};

static instance make(arena *a, const subject *s, int max_seq_len, const char *option,
                     const char *page)
{
    const char *head = strstr(option, "head_dim") ? "" : "head_dim=64";
    const char *heads = strstr(option, "num_heads") ? "" : "num_heads=6 num_kv_heads=2";
    const char *text = arena_format(
        a, "%s %s %s latent=64 n_rope=32 nope=64 max_seq_len=%d m=%d %s %s", s->weights, head,
        heads, max_seq_len, s->family->by_runs ? PROMPT : BATCH, option, page);
    return suite_made(a, s->family, "%s", suite_known_keys(a, s->family, text));
}

/* Copies the inputs and the valid positions of all rows' sequences. */
static void take_inputs(trial *to, const trial *from)
{
    for (size_t i = 0; i < from->param_count; i++) {
        const trial_param *p = &from->params[i];
        trial_param *own = suite_param(to, p->param.name);
        if (p->param.kind == PARAM_IN && !trial_is_read_cache(p) && p->param.data != DATA_PAGES)
            memcpy(own->content.bytes, p->content.bytes, p->size);
        for (size_t row = 0; trial_is_read_cache(p) && row < from->row_count; row++)
            for (int64_t head = 0; head < problem_cache_heads(&from->setup.shape); head++)
                suite_copy_cache((cache_part){ to, own, to->sequences[row], head, 0 },
                                 (cache_part){ from, p, from->sequences[row], head, 0 },
                                 trial_valid_positions(from, from->sequences[row]));
    }
}

/* Compares the outputs of two trials: those in pools by position. */
static void expect_same(arena *a, const trial *t, const void *const *got, const trial *of,
                        const void *const *expected)
{
    for (size_t i = 0; i < of->param_count && of->params[i].param.kind == PARAM_OUT; i++) {
        trial_param was = of->params[i], is = t->params[i];
        if (was.param.data != DATA_CACHE) {
            expect_same_bits(t->instance->name, was.param.name, got[i], expected[i], was.size);
            continue;
        }
        int64_t heads = problem_cache_heads(&of->setup.shape), most = of->setup.shape.max_seq_len;
        size_t bytes = was.size;
        was.content.bytes = memcpy(arena_alloc(a, bytes), expected[i], bytes);
        is.content.bytes = memcpy(arena_alloc(a, bytes), expected[i], bytes);
        trial_param paged = t->params[i];
        paged.content.bytes = memcpy(arena_alloc(a, paged.size), got[i], paged.size);
        for (size_t row = 0; row < of->row_count; row++)
            for (int64_t head = 0; head < heads; head++)
                suite_copy_cache((cache_part){ of, &is, of->sequences[row], head, 0 },
                                 (cache_part){ t, &paged, t->sequences[row], head, 0 }, most);
        expect_same_bits(t->instance->name, was.param.name, is.content.bytes, was.content.bytes,
                         bytes);
    }
}

static void launch_all(arena *a, const subject *s, const instance *in, const trial *t,
                       const void **outputs)
{
    kernel k = suite_kernel(a, in);
    expect_right(suite_launch_all(a, s->device, &k, t, outputs));
}

/* Checks pages of several sizes at two lengths. max_seq_len may be below or no multiple of a page. */
static void check(arena *a, const subject *s, const char *option, int max_seq_len)
{
    static const char *const pages[] = { "page=16", "page=64", "page=256" };
    instance in = make(a, s, max_seq_len, option, "");
    trial plain = suite_trial(a, &in, s->device);
    for (int64_t length = max_seq_len; length > 0; length -= 7 * max_seq_len / 12) {
        const void *expected[MAX_PARAMS], *got[MAX_PARAMS];
        trial_shorten(&plain, length);
        launch_all(a, s, &in, &plain, expected);
        for (size_t i = 0; i < sizeof pages / sizeof *pages; i++) {
            instance paged = make(a, s, max_seq_len, option, pages[i]);
            trial t = suite_trial(a, &paged, s->device);
            trial_shorten(&t, length);
            take_inputs(&t, &plain);
            expect_trial_right(a, s->device, &paged, &t);
            launch_all(a, s, &paged, &t, got);
            expect_same(a, &t, got, &plain, expected);
        }
    }
}

static void pages_do_not_change_a_bit(arena *a, const subject *s)
{
    for (size_t i = 0; i < sizeof options / sizeof *options; i++) {
        arena *each = arena_new();
        check(each, s, options[i], i % 2 ? LONGEST : LONGEST / 2 + 50);
        arena_free(each);
    }
    (void)a;
}

/* A sequence may have the first pages of another one: all of its positions, or some. */
static void sequences_may_share_pages(arena *a, const subject *s)
{
    enum { PREFIX = 2 * SHARED_PAGE };
    static const uint32_t lengths[BATCH] = { LONGEST, 1, PREFIX + 30, PREFIX - 20, 77 };
    for (size_t i = 0; i < sizeof options / sizeof *options; i++) {
        arena *each = arena_new();
        instance in =
            make(each, s, LONGEST, options[i], arena_format(each, "page=%d", SHARED_PAGE));
        trial t = suite_trial(each, &in, s->device);
        const void *expected[MAX_PARAMS], *got[MAX_PARAMS];
        uint32_t *pages = suite_param(&t, "pages")->content.bytes;
        size_t of_sequence = (size_t)kv_pages(&in);
        memcpy(t.seq_lens, lengths, sizeof lengths);
        trial_shorten_each(&t, lengths);
        for (size_t j = 0; j < t.param_count; j++) {
            const trial_param *p = &t.params[j];
            for (int64_t head = 0; head < problem_cache_heads(&in.shape); head++)
                for (size_t row = 2; trial_is_read_cache(p) && row < 4; row++)
                    suite_copy_cache((cache_part){ &t, p, t.sequences[row], head, 0 },
                                     (cache_part){ &t, p, t.sequences[0], head, 0 }, PREFIX);
        }
        launch_all(each, s, &in, &t, expected);
        for (size_t row = 2; row < 4; row++)
            memcpy(pages + t.sequences[row] * of_sequence, pages + t.sequences[0] * of_sequence,
                   PREFIX / SHARED_PAGE * sizeof *pages);
        expect_trial_right(each, s->device, &in, &t);
        launch_all(each, s, &in, &t, got);
        expect_same(each, &t, got, &t, expected);
        arena_free(each);
    }
    (void)a;
}

static bool has_pages(const family *f)
{
    return f->build && family_key(f, "page");
}

/* Returns true if a kernel reads caches of several sequences. */
static bool reads_sequences(const family *f)
{
    return has_pages(f) && !f->by_runs && (suite_is_attention(f) || f->op == OP_MLA_ATTENTION);
}

/* Returns only the first format: pages do not concern weights. */
static const char *first_weights(arena *a, const family *f, size_t i)
{
    return i ? NULL : suite_weights(a, f, i);
}

LIST_TESTS
{
    static const suite_check each[] = { CHECK(pages_do_not_change_a_bit) },
                             sharing[] = { CHECK(sequences_may_share_pages) };
    suite_list(__FILE__, first_weights, 1, has_pages, each, 1);
    suite_list(__FILE__, first_weights, 1, reads_sequences, sharing, 1);
}
