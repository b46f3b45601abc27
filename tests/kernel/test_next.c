/* Prefetches for the next launch: each line is fetched once, none beyond the end, and results do
 * not change. */
#include <string.h>

#include "test_arena.h"
#include "emu/emu.h"
#include "kernel/suite.h"

enum { LINE = TARGET_LINE, WORD = 4 };

static const struct fetching {
    const char *family, *keys;
} kernels[] = {
    { "stream_gemv", "weights=q4_k k=512 n=100 rows_per_warp=1" },
    { "stream_gemv", "weights=q6_k k=2048 n=12000 num_warps=4" }, /* too large to prefetch early */
    { "stream_gemv", "weights=q4_0 k=4096 n=40 m=2 passes=2" },
    { "stream_gemv", "weights=q8_0 k=512 n=33 m=2 rows=run_time" },
    { "stream_gemv_q8", "weights=q5_k k=512 n=70 m=5" },
    { "stream_qkv", "weights=q4_k weights_v=q6_k k=512 n=96 n_kv=32" },
    { "stream_qkv_q8", "weights=q4_k k=512 n=96 n_kv=32 m=3" },
    { "stream_gate_up", "weights=q4_k k=512 n=60" },
    { "stream_gate_up_q8", "weights=q4_k k=512 n=60 m=2" },
    { "mma_q8", "weights=q4_k k=512 n=70 m=5" },
    { "mma_q8_qkv", "weights=q4_k weights_v=q6_k k=512 n=96 n_kv=32 m=3" },
    { "mma_q8_gate_up", "weights=q4_k k=512 n=60 m=2" },
    { "stream_expert_down", "weights=q4_k k=256 n=64 m=2" },
    { "gqa_flash_decoding", "head_dim=64 num_heads=8 num_kv_heads=2 max_seq_len=512 m=3" },
    { "gqa_flash_decoding", "head_dim=64 num_heads=8 num_kv_heads=2 max_seq_len=2048 m=2 "
                            "chunking=fixed chunk_size=64" },
    { "mma_flash_decoding", "head_dim=64 num_heads=8 num_kv_heads=2 max_seq_len=512 m=2 "
                            "chunking=fixed chunk_size=64 state=settled" },
    { "mla_attention", "num_heads=16 latent=64 n_rope=32 max_seq_len=512 m=2" },
    { "mla_attention", "num_heads=16 latent=64 n_rope=32 max_seq_len=512 m=1 products=f16" },
    { "mla_values", "weights=q8_0 num_heads=4 latent=64 value_dim=32 m=3" },
};

static kernel kernel_with(arena *a, const struct fetching *of, int64_t next, const char *on,
                          instance *in)
{
    *in =
        suite_made(a, family_find(families, of->family), "%s next=%lld", of->keys, (long long)next);
    return suite_kernel_for(a, in, target_find(on));
}

static trial trial_of(arena *a, const instance *in, int64_t seq_len)
{
    device d = device_emulator(a);
    trial_setup setup = suite_setup(in, &d);
    if (seq_len)
        setup.shape.seq_len = seq_len;
    d.close(&d);
    return trial_prepare(a, in, &setup);
}

/* Returns the largest number of lines that the warps of a grid fetch. */
static uint64_t most_lines(const trial *t, const char *on)
{
    uint64_t warps = (uint64_t)t->grid[0] * t->grid[1] * t->grid[2] * t->block / WARP;
    uint64_t of_warp = target_bytes_ahead(target_find(on)) / LINE;
    return warps * (of_warp > WARP ? 2 * WARP : of_warp);
}

static uint64_t prefetches(arena *a, const kernel *k, const trial *t, const void **output)
{
    return suite_count(a, k, t, output).global_prefetches;
}

/* Lines must also be fetched if sequences are so short that some blocks have no positions. */
ARENA_TEST(a_grid_fetches_as_many_lines_as_it_has_lanes)
{
    static const char *const on[] = { "sm_80", "sm_86", "sm_90" };
    static const int64_t lines[] = { 1, 37, 300, 20000 };
    for (size_t i = 0; i < sizeof kernels / sizeof *kernels; i++)
        for (size_t n = 0; n < sizeof lines / sizeof *lines; n++)
            for (size_t t = 0; t < sizeof on / sizeof *on; t++) {
                instance in, without;
                kernel k = kernel_with(a, &kernels[i], lines[n] * LINE, on[t], &in);
                kernel plain = kernel_with(a, &kernels[i], 0, on[t], &without);
                int64_t length = n % 2 && in.shape.max_seq_len ? 1 : 0;
                trial of = trial_of(a, &in, length), of_plain = trial_of(a, &without, length);
                uint64_t most = most_lines(&of, on[t]);
                uint64_t wanted = (uint64_t)lines[n] < most ? (uint64_t)lines[n] : most;
                const void *output, *expected;
                uint64_t fetched =
                    prefetches(a, &k, &of, &output) - prefetches(a, &plain, &of_plain, &expected);
                if (fetched != wanted)
                    fail_msg("%s on %s: %llu lines are fetched, expected %llu", in.name, on[t],
                             (unsigned long long)fetched, (unsigned long long)wanted);
                assert_memory_equal(output, expected, of.params[0].size);
            }
}

ARENA_TEST(kernels_with_prefetches_are_right)
{
    for (size_t i = 0; i < sizeof kernels / sizeof *kernels; i++) {
        instance in;
        kernel k = kernel_with(a, &kernels[i], 77 * LINE, "sm_90", &in);
        expect_kernel_right(a, &k);
    }
}

/* Returns the kernel's text with each prefetch of a line replaced by adding 1 to the line. Bulk
 * prefetches are replaced by storing their number of bytes. */
static const char *counting(arena *a, const char *of)
{
    const char *from = strstr(of, "// prefetch the next launch's weights");
    assert_non_null(from);
    strbuf text = strbuf_new(a);
    strbuf_bytes(&text, of, (size_t)(from - of));
    const line_edit add = { "prefetch.global.L2", "", 0, "    red.global.add.u32 $1, 1;" };
    const line_edit note = { "cp.async.bulk.prefetch.L2.global", "", 0,
                             "    st.global.u32 $1, $2;" };
    strbuf_put(&text, edit_lines(a, from, strstr(from, note.mnemonic) ? &note : &add));
    return text.text;
}

/* Runs a GEMV with such a text and returns the buffer of counts. With `nowhere` the buffer's
 * address is 0. */
static const uint32_t *count_lines(arena *a, const kernel *k, trial *t, bool nowhere)
{
    device d = device_emulator(a);
    const trial_param *next = suite_param(t, "next");
    size_t number = (size_t)(next - t->params), size = next->size;
    const char *text = counting(a, k->ptx);
    uint32_t *counted = arena_zalloc(a, size);
    trial_run r = { .device = &d, .trial = t, .in_place_of = "next" };
    assert_true(run_place(&r));
    if (nowhere)
        r.addresses[number] = 0;
    device_launch l = run_launch(&r, &(block_choice){ 0 });
    l.module = d.load(&d, text, strlen(text));
    if (!l.module || !d.launch(&d, &l) ||
        (!nowhere && !d.read(&d, r.addresses[number], counted, size, 1, NULL)))
        fail_msg("%s", d.error);
    d.close(&d);
    return counted;
}

/* Checks that the pieces cover the first `fetched` of `bytes` bytes, each once. */
static void expect_pieces(const uint32_t *noted, uint64_t bytes, uint64_t fetched)
{
    uint64_t at = 0;
    for (uint64_t i = 0; i < bytes / WORD; i++) {
        assert_true(!noted[i] || i * WORD == at);
        at += noted[i];
    }
    assert_int_equal(at, fetched);
}

ARENA_TEST(each_line_is_fetched_once)
{
    static const char *const on[] = { "sm_75", "sm_86", "sm_90" };
    for (size_t t = 0; t < sizeof on / sizeof *on; t++)
        for (int rows = 0; rows < 2; rows++) {
            const struct fetching of = { "stream_gemv", rows ? "weights=q4_k k=256 n=1000 m=2 "
                                                               "rows=run_time num_warps=3"
                                                             : "weights=q4_k k=256 n=1000" };
            instance in;
            kernel k = kernel_with(a, &of, 900 * LINE, on[t], &in);
            trial whole = rows ? suite_rows(a, &in, 7) : trial_of(a, &in, 0);
            uint64_t most = most_lines(&whole, on[t]), lines = most < 900 ? most : 900;
            const uint32_t *counted = count_lines(a, &k, &whole, false);
            count_lines(a, &k, &whole, true);
            if (target_find(on[t])->sm >= 90)
                expect_pieces(counted, 900 * LINE, lines * LINE);
            else
                for (uint64_t i = 0; i < 900 * LINE / WORD; i++)
                    assert_int_equal(counted[i],
                                     i % (LINE / WORD) == 0 && i / (LINE / WORD) < lines);
            assert_true(lines > 100);
        }
}

static size_t place_of(const char *text, const char *part)
{
    const char *found = strstr(text, part);
    assert_non_null(found);
    return (size_t)(found - text);
}

/* With few weights, a predecessor launch may have fetched them already, so that memory is idle
 * before the wait. With many weights, L2 would not keep lines that are fetched at the start. */
ARENA_TEST(kernels_of_few_weights_prefetch_before_their_wait)
{
    static const char fetch[] = "// prefetch the next", wait[] = "griddepcontrol.wait";
    instance few, many;
    kernel of_few = kernel_with(a, &kernels[0], LINE, "sm_90", &few);
    kernel of_many = kernel_with(a, &kernels[1], LINE, "sm_90", &many);
    assert_true(place_of(of_few.ptx, fetch) < place_of(of_few.ptx, wait));
    assert_true(place_of(of_few.ptx, fetch) > place_of(of_few.ptx, "prefetch.global.L2"));
    assert_true(place_of(of_many.ptx, fetch) > place_of(of_many.ptx, "st.global"));
}
