/* Faults that earlier implementations of these kernels had: each is planted in a kernel that is
 * right, and must be found.
 */
#include <string.h>

#include "test_arena.h"
#include "kernel/mutate.h"
#include "kernel/suite.h"
#include "spec/spec.h"
#include "check/verify.h"

#include "emu/emu.h"
#include "ptx/ptx.h"

enum { MAX_EDITS = 3 };

/* A fault planted in a family's kernel of some configuration. */
typedef struct trap {
    const char *name, *family, *keys;
    line_edit edits[MAX_EDITS];
    const char *found; /* a part of what verify_kernel says */
    const char *line;  /* how the line begins that it names; NULL: any */
} trap;

static const char attention_keys[] = "head_dim=64 num_heads=4 num_kv_heads=2 max_seq_len=40";
static const char batch_keys[] = "head_dim=64 num_heads=4 num_kv_heads=2 max_seq_len=40 m=3";
static const char blocks_keys[] =
    "head_dim=128 num_heads=4 num_kv_heads=2 max_seq_len=40 kv_type=q8_0";
static const char blocks_batch_keys[] =
    "head_dim=128 num_heads=4 num_kv_heads=2 max_seq_len=40 kv_type=q8_0 m=3";
static const char many_chunks_keys[] =
    "head_dim=64 num_heads=4 num_kv_heads=2 max_seq_len=1000 m=3 chunk_size=32";
static const char one_chunk_keys[] =
    "head_dim=64 num_heads=2 num_kv_heads=1 max_seq_len=1100 m=1 chunks=1";
static const char grid_chunks_keys[] =
    "head_dim=64 num_heads=4 num_kv_heads=2 max_seq_len=1000 m=3";
static const char wide_batch_keys[] = "head_dim=256 num_heads=2 num_kv_heads=1 max_seq_len=20 m=2";
static const char wide_chunk_keys[] =
    "head_dim=256 num_heads=2 num_kv_heads=1 max_seq_len=200 m=2 chunks=1";
static const char wide_head_keys[] = "head_dim=256 num_heads=2 num_kv_heads=1 max_seq_len=20";
static const char gemv_keys[] = "k=1024 n=50";
static const char dynamic_keys[] = "k=1024 n=50 dims=dynamic";

#define NAMED(number, what) .name = "trap_" #number "_" what

static const trap traps[] = {
    {
        NAMED(1, "the_new_maximum_taken_for_the_old_one"),
        .family = "incremental_attention",
        .keys = attention_keys,
        .edits = { { "sub.f32", "", 1, "sub.f32 $1, $3, $3;" } },
        .found = " of its bound, stored by",
        .line = "st.global.v4.f32",
    },
    {
        NAMED(1, "the_new_maximum_taken_for_the_old_one_in_a_chunk"),
        .family = "flash_decoding_chunk",
        .keys = batch_keys,
        .edits = { { "sub.f32", "", 1, "sub.f32 $1, $3, $3;" } },
        .found = " of its bound",
    },
    {
        NAMED(1, "the_new_maximum_taken_for_the_old_one_in_the_merge_of_chunks"),
        .family = "flash_decoding_reduce",
        .keys = many_chunks_keys,
        .edits = { { "sub.f32", "", 1, "sub.f32 $1, $3, $3;" } },
        .found = " of its bound",
    },
    {
        NAMED(2, "lane_0_s_score_used_by_all_lanes"),
        .family = "multi_warp_attention",
        .keys = attention_keys,
        .edits = { { "shfl.sync.bfly.b32", "", 0, "shfl.sync.down.b32 $1, $2, $3, $4, $5;" } },
        .found = " of its bound",
    },
    {
        NAMED(5, "partial_results_read_without_a_barrier"),
        .family = "multi_warp_attention",
        .keys = attention_keys,
        .edits = { { "bar.sync", "", 1, "" } },
        .found = "race",
    },
    {
        NAMED(5, "products_weighed_before_all_lanes_have_stored_them"),
        .family = "gqa_flash_decoding",
        .keys = wide_chunk_keys,
        .edits = { { "bar.warp.sync", "", 1, "" } },
        .found = "race",
    },
    {
        NAMED(5, "weights_used_before_all_lanes_have_made_them"),
        .family = "gqa_flash_decoding",
        .keys = wide_chunk_keys,
        .edits = { { "bar.warp.sync", "", 2, "" } },
        .found = "race",
    },
    {
        NAMED(5, "products_of_a_tile_stored_over_weights_in_use"),
        .family = "gqa_flash_decoding",
        .keys = one_chunk_keys,
        .edits = { { "bar.warp.sync", "", 3, "" } },
        .found = "race",
    },
    {
        NAMED(5, "q_used_before_all_warps_have_staged_it"),
        .family = "gqa_flash_decoding",
        .keys = batch_keys,
        .edits = { { "bar.sync", "", 1, "" } },
        .found = "'queries'",
    },
    {
        NAMED(5, "blocks_counted_before_all_warps_have_stored_their_rows"),
        .family = "gqa_flash_decoding",
        .keys = grid_chunks_keys,
        .edits = { { "bar.sync", "", 3, "" } },
        .found = "nothing orders the two",
    },
    {
        NAMED(5, "blocks_counted_without_a_release"),
        .family = "gqa_flash_decoding",
        .keys = grid_chunks_keys,
        .edits = { { "atom.acq_rel.gpu", "", 0, "atom.acquire.gpu.global.inc.u32 $1, $2, $3;" } },
        .found = "nothing orders the two",
    },
    {
        NAMED(5, "blocks_counted_without_an_acquire"),
        .family = "gqa_flash_decoding",
        .keys = grid_chunks_keys,
        .edits = { { "atom.acq_rel.gpu", "", 0, "atom.release.gpu.global.inc.u32 $1, $2, $3;" } },
        .found = "nothing orders the two",
    },
    {
        NAMED(5, "partial_results_of_other_blocks_read_through_the_read_only_cache"),
        .family = "gqa_flash_decoding",
        .keys = grid_chunks_keys,
        .edits = { { "ld.global.v4.f32", "", 1, "ld.global.nc.v4.f32 {$1, $2, $3, $4}, $5;" } },
        .found = "ld.global.nc",
    },
    {
        NAMED(5, "chunks_merged_by_the_block_of_the_last_one"),
        .family = "gqa_flash_decoding",
        .keys = grid_chunks_keys,
        .edits = { { "ld.shared.u32", "[ticket];", 1, "mov.u32 $1, %ctaid.z;" } },
        .found = "",
    },
    {
        NAMED(5, "a_head_s_partial_results_merged_without_a_barrier"),
        .family = "gqa_flash_decoding",
        .keys = batch_keys,
        .edits = { { "bar.sync", "", 2, "" } },
        .found = "race",
    },
    {
        NAMED(5, "the_number_of_finished_blocks_read_without_a_barrier"),
        .family = "gqa_flash_decoding",
        .keys = grid_chunks_keys,
        .edits = { { "bar.sync", "", 4, "" } },
        .found = "'ticket'",
    },
    {
        NAMED(5, "parts_of_the_chunks_merged_without_a_barrier"),
        .family = "gqa_flash_decoding",
        .keys = grid_chunks_keys,
        .edits = { { "bar.sync", "", 5, "" } },
        .found = "race",
    },
    {
        NAMED(3, "a_counter_of_finished_blocks_left_as_it_is"),
        .family = "gqa_flash_decoding",
        .keys = grid_chunks_keys,
        .edits = { { "atom.acq_rel.gpu.global.inc.u32", "", 0,
                     "atom.acq_rel.gpu.global.add.u32 $1, $2, 1;" } },
        .found = "counters is not zero behind the launch",
    },
    {
        NAMED(1, "a_tile_s_results_added_without_the_factor_of_the_new_maximum"),
        .family = "gqa_flash_decoding",
        .keys = one_chunk_keys,
        .edits = { { "shfl.sync.idx.b32", "", 0, "mov.f32 $1, 0f3F800000;" } },
        .found = " of its bound",
    },
    {
        NAMED(2, "a_part_of_the_heads_products_exchanged_one_way"),
        .family = "gqa_flash_decoding",
        .keys = batch_keys,
        .edits = { { "shfl.sync.bfly.b32", ", 1, 31, 0xFFFFFFFF;", 0,
                     "shfl.sync.down.b32 $1, $2, $3, $4, $5;" } },
        .found = " of its bound",
    },
    {
        NAMED(2, "lane_0_s_maximum_used_by_all_lanes"),
        .family = "q8_1_quantize",
        .keys = "k=1024",
        .edits = { { "shfl.sync.bfly.b32", "", 0, "shfl.sync.down.b32 $1, $2, $3, $4, $5;" } },
        .found = " of its bound, stored by",
        .line = "st.global.",
    },
    {
        NAMED(3, "warps_without_work_leave_before_a_barrier"),
        .family = "mwv_q4k_gemv",
        .keys = "k=512 n=4 num_warps=4",
        .edits = { { "bar.sync", "", 1,
                     ".reg .pred %out;\n.reg .b32 %self;\n"
                     "mov.u32 %self, %tid.x;\nsetp.ge.u32 %out, %self, 64;\n"
                     "@%out ret;\n$0" } },
        .found = "barrier",
        .line = "bar.sync",
    },
    {
        NAMED(3, "warps_past_the_last_row_do_not_stage_their_share"),
        .family = "tiled_q4k_gemv",
        .keys = "k=512 n=5 outputs_per_block=4",
        .edits = { { "bar.sync", "", 1,
                     ".reg .pred %out;\n.reg .b32 %self;\n"
                     "mov.u32 %self, %tid.x;\nsetp.ge.u32 %out, %self, 32;\n"
                     "@%out ret;\n$0" } },
        .found = "barrier",
    },
    {
        NAMED(4, "a_part_of_x_is_not_staged"),
        .family = "tiled_q4k_gemv",
        .keys = "k=2048 n=4 outputs_per_block=4",
        .edits = { { "st.shared.v4.f32", "", 4, "" } },
        .found = "uninitialised",
        .line = "ld.shared.v4.f32",
    },
    {
        NAMED(5, "a_chunk_is_staged_over_one_in_use"),
        .family = "chunked_tiled_q4k_gemv",
        .keys = "k=8448 n=4",
        .edits = { { "bar.sync", "", 1, "" } },
        .found = "race",
        .line = "st.shared.v4.f32",
    },
    {
        NAMED(5, "a_chunk_is_used_before_it_is_staged"),
        .family = "chunked_tiled_q4k_gemv",
        .keys = "k=8448 n=4",
        .edits = { { "bar.sync", "", 2, "" } },
        .found = "shared",
    },
    {
        NAMED(6, "two_rows_a_turn_without_a_loop"),
        .family = "batched_hw_dp4a_q4k_gemv",
        .keys = "k=1024 n=50 m=2",
        .edits = { { "@%p", " $row_loop;", 1, "" } },
        .found = "is never written",
    },
    {
        NAMED(16, "the_end_of_a_wide_head_s_partial_result_is_not_stored"),
        .family = "flash_decoding_chunk",
        .keys = wide_batch_keys,
        .edits = { { "st.global.v4.f32", "", 4, "" } },
        .found = "is never written",
    },
    {
        NAMED(16, "the_end_of_a_wide_head_is_not_merged"),
        .family = "multi_warp_attention",
        .keys = wide_head_keys,
        .edits = { { "setp.lt.u32", ", 64;", 0, "setp.lt.u32 $1, $2, 32;" } },
        .found = "is never written",
    },
    {
        NAMED(9, "high_nibbles_with_the_scale_of_low_ones"),
        .family = "hw_dp4a_q4k_gemv",
        .keys = gemv_keys,
        .edits = { { "and.b32", ", 0xF0F0F0F0;", 0, "shr.u32 $1, $2, 4;\nand.b32 $1, $1, $3;" } },
        .found = " of its bound",
    },
    {
        NAMED(12, "x_staged_for_the_built_k_in_a_kernel_for_any_k"),
        .family = "tiled_q4k_gemv",
        .keys = dynamic_keys,
        .edits = { { "ld.param.u32", "[k_dim];", 1, "mov.u32 $1, 1024;" } },
        .found = "(k 256, n 1",
    },
    {
        NAMED(5, "a_fast_warp_refills_shared_memory_under_a_slow_one"),
        .family = "mwv_dp4a_q4k_gemv",
        .keys = gemv_keys,
        .edits = { { "xor.b32", "", 1, "" } },
        .found = "race",
    },
    {
        NAMED(6, "a_grid_smaller_than_the_output_without_a_loop"),
        .family = "mwv_dp4a_q4k_gemv",
        .keys = gemv_keys,
        .edits = { { "@%p", " $row_loop;", 1, "" } },
        .found = "y[16] is never written; what is, is stored by",
        .line = "st.global.f32",
    },
    {
        NAMED(7, "shared_memory_from_address_0"),
        .family = "mwv_q4k_gemv",
        .keys = gemv_keys,
        .edits = { { "mov.u32", " partial;", 0, "mov.u32 $1, 0;" } },
        .found = "out of bounds",
        .line = "st.shared.f32",
    },
    {
        NAMED(8, "nothing_divided_by_nothing"),
        .family = "incremental_attention",
        .keys = attention_keys,
        .edits = { { "rcp.rn.f32", "", 1, "$0\nmov.f32 %kept, $1;" },
                   { "selp.f32", "", 2, "mov.f32 $1, %kept;" },
                   { ".reg .f32", "", 1, "$0\n.reg .f32 %kept;" } },
        .found = "nan",
        .line = "st.global.v4.f32",
    },
    {
        NAMED(8, "a_sequence_of_a_batch_divided_by_nothing"),
        .family = "batched_incremental_attention",
        .keys = batch_keys,
        .edits = { { "rcp.rn.f32", "", 1, "$0\nmov.f32 %kept, $1;" },
                   { "selp.f32", "", 2, "mov.f32 $1, %kept;" },
                   { ".reg .f32", "", 1, "$0\n.reg .f32 %kept;" } },
        .found = "nan",
    },
    {
        NAMED(8, "no_chunks_divided_by_nothing"),
        .family = "flash_decoding_reduce",
        .keys = batch_keys,
        .edits = { { "rcp.rn.f32", "", 1, "$0\nmov.f32 %kept, $1;" },
                   { "selp.f32", "", 8, "mov.f32 $1, %kept;" },
                   { ".reg .f32", "", 1, "$0\n.reg .f32 %kept;" } },
        .found = "nan",
    },
    {
        NAMED(8, "minus_infinity_minus_minus_infinity"),
        .family = "multi_warp_attention",
        .keys = attention_keys,
        .edits = { { "mov.f32", ", 0fFF7FFFFF;", 0, "mov.f32 $1, 0fFF800000;" } },
        .found = "nan",
    },
    {
        .name = "a_length_that_is_not_clamped",
        .family = "flash_decoding_chunk",
        .keys = batch_keys,
        .edits = { { "min.u32", "", 1, "mov.b32 $1, $2;" } },
        .found = "out of bounds",
    },
    {
        NAMED(9, "high_nibbles_taken_for_low_ones"),
        .family = "mwv_q4k_gemv",
        .keys = gemv_keys,
        .edits = { { "shl.b32", ", 3;", 0, "shr.u32 $1, $2, 1 ;" },
                   { "shr.u32", ", 1;", 0, "shl.b32 $1, $2, 3;" } },
        .found = " of its bound, stored by",
        .line = "st.global.f32",
    },
    {
        NAMED(9, "high_nibbles_of_q4_0_taken_for_low_ones"),
        .family = "q4_0_gemv",
        .keys = gemv_keys,
        .edits = { { "shl.b32", ", 3;", 0, "shr.u32 $1, $2, 1 ;" },
                   { "shr.u32", ", 1;", 0, "shl.b32 $1, $2, 3;" } },
        .found = " of its bound",
    },
    {
        NAMED(9, "upper_bits_of_q6_k_taken_for_another_group_s"),
        .family = "hw_dp4a_q6k_gemv",
        .keys = gemv_keys,
        .edits = { { "shl.b32", ", 4;", 0, "shl.b32 $1, $2, 6;" } },
        .found = " of its bound",
    },
    {
        .name = "a_word_loaded_at_once_from_a_block_that_is_2_byte_aligned",
        .family = "q8_0_gemv",
        .keys = gemv_keys,
        .edits = { { "ld.global.nc.u16", "", 2, "ld.global.nc.u32 $1, $2;" } },
        .found = "misaligned",
    },
    {
        .name = "a_word_loaded_at_once_from_an_odd_super_block",
        .family = "mwv_q6k_gemv",
        .keys = "k=768 n=3 num_warps=1",
        .edits = { { "ld.global.nc.u16", "", 1, "ld.global.nc.u32 $1, $2;" } },
        .found = "misaligned",
    },
    {
        .name = "words_of_a_cache_block_loaded_where_its_quants_begin",
        .family = "multi_warp_attention",
        .keys = blocks_keys,
        .edits = { { "and.b32", ", 0xFFFFFFFC;", 1, "add.u32 $1, $2, 2;" } },
        .found = "misaligned",
    },
    {
        .name = "odd_blocks_of_a_cache_realigned_as_even_ones",
        .family = "multi_warp_attention",
        .keys = blocks_keys,
        .edits = { { "selp.u32", "", 2, "mov.b32 $1, $2;" } },
        .found = " of its bound",
    },
    {
        .name = "a_cache_row_s_first_scale_taken_for_all_its_blocks",
        .family = "gqa_flash_decoding",
        .keys = blocks_batch_keys,
        .edits = { { "sub.u64", "", 1, "neg.s64 $1, $3;" } },
        .found = " of its bound",
    },
    {
        .name = "the_quants_of_a_cache_taken_as_unsigned",
        .family = "incremental_attention",
        .keys = blocks_keys,
        .edits = { { "xor.b32", ", 0x80808080;", 0, "mov.b32 $1, $2;" } },
        .found = " of its bound",
    },
    {
        NAMED(10, "offsets_into_a_cache_wrap_at_2_to_the_32"),
        .family = "incremental_attention",
        .keys = "head_dim=256 num_heads=1024 num_kv_heads=1024 max_seq_len=4400",
        .edits = { { "mul.lo.u64", "", 1, "$0\nand.b64 $1, $1, 0xFFFFFFFF;" } },
        .found = " of its bound, stored by",
        .line = "st.global.v4.f32",
    },
    {
        NAMED(12, "the_built_k_in_a_kernel_for_any_k"),
        .family = "q4k_gemv",
        .keys = dynamic_keys,
        .edits = { { "ld.param.u32", "[k_dim];", 1, "mov.u32 $1, 1024;" } },
        .found = "(k 256, n 1",
        .line = "ld.global.nc.",
    },
    {
        NAMED(12, "the_built_n_in_a_kernel_for_any_n"),
        .family = "mwv_dp4a_q4k_gemv",
        .keys = dynamic_keys,
        .edits = { { "ld.param.u32", "[n_dim];", 1, "mov.u32 $1, 50;" } },
        .found = "out of bounds",
    },
    {
        NAMED(14, "a_register_set_on_one_path_only"),
        .family = "mwv_q4k_gemv",
        .keys = gemv_keys,
        .edits = { { "mov.f32", "0f00000000;", 2, "" } },
        .found = "undefined register",
        .line = "mov.f32",
    },
    {
        NAMED(16, "the_end_of_a_wide_head_is_not_stored"),
        .family = "incremental_attention",
        .keys = wide_head_keys,
        .edits = { { "st.global.v4.f32", "", 4, "" } },
        .found = "is never written",
        .line = "st.global.v4.f32",
    },
    {
        NAMED(16, "the_end_of_a_wide_head_is_not_multiplied"),
        .family = "incremental_attention",
        .keys = wide_head_keys,
        .edits = { { "fma.rn.f32", "", 15, "mov.f32 $1, $4;" } },
        .found = " of its bound",
    },
};

static kernel trap_kernel(arena *a, const char *family_name, const char *keys, instance *in)
{
    const family *f = family_find(families, family_name);
    if (!f || !suite_instance(a, f, keys, in))
        fail_msg("no family %s of %s", family_name, keys);
    return suite_kernel(a, in);
}

static kernel edited(arena *a, const kernel *k, const line_edit *edits)
{
    kernel faulty = *k;
    for (unsigned i = 0; i < MAX_EDITS && edits[i].mnemonic; i++)
        faulty.ptx = edit_lines(a, faulty.ptx, &edits[i]);
    faulty.ptx_length = strlen(faulty.ptx);
    return faulty;
}

static void expect_verified(const verify_result *r)
{
    if (!r->right)
        fail_msg("the kernel is wrong without the fault: %s", r->message);
}

static void expect_found(const verify_result *r, const char *part)
{
    if (r->right)
        fail_msg("the fault is not found");
    if (!strstr(r->message, part))
        fail_msg("the fault is found as '%s', not as '%s'", r->message, part);
}

static void is_found(void **state)
{
    const trap *t = *state;
    arena *a = arena_new();
    instance in;
    kernel k = trap_kernel(a, t->family, t->keys, &in);
    verify_result r = verify_kernel(a, &k, 1);
    expect_verified(&r);
    kernel faulty = edited(a, &k, t->edits);
    r = verify_kernel(a, &faulty, 1);
    expect_found(&r, t->found);
    const char *line = faulty.ptx;
    for (unsigned i = 1; i < r.line; i++)
        line = strchr(line, '\n') + 1;
    line += strspn(line, " ");
    if (t->line && strncmp(line, t->line, strlen(t->line)) != 0)
        fail_msg("line %u is named, '%.*s', not a line '%s'", r.line, (int)strcspn(line, "\n"),
                 line, t->line);
    arena_free(a);
}

ARENA_TEST(trap_3_a_divergent_return_before_a_barrier_is_not_built)
{
    ptx *p = ptx_new(a, "leaves_early", target_find("sm_75"), 64);
    ptx_output out;
    const char *error = "";
    ret_if(p, ge(p, tid_x(p), 32));
    barrier(p);
    assert_false(ptx_finish(p, a, &out, &error));
    if (!strstr(error, "barrier") && !strstr(error, "bar.sync"))
        fail_msg("'%s'", error);
}

/* A tile of 128 values copied through shared memory by 64 threads, each taking every step-th. */
static const char tile_ptx[] = ".version 7.0\n.target sm_75\n.address_size 64\n"
                               ".visible .entry tile(.param .u64 y, .param .u64 x)\n"
                               ".reqntid 64, 1, 1\n{\n"
                               ".reg .pred %p;\n.reg .b32 %r<8>;\n.reg .f32 %f;\n"
                               ".reg .b64 %rd<4>;\n"
                               ".shared .align 4 .b32 tile[128];\n"
                               "ld.param.u64 %rd1, [y];\nld.param.u64 %rd2, [x];\n"
                               "mov.u32 %r1, %tid.x;\nmov.u32 %r2, tile;\n"
                               "mov.u32 %r3, %r1;\n"
                               "$fill:\n"
                               "mad.wide.u32 %rd3, %r3, 4, %rd2;\n"
                               "mad.lo.u32 %r4, %r3, 4, %r2;\n"
                               "ld.global.f32 %f, [%rd3];\nst.shared.f32 [%r4], %f;\n"
                               "add.u32 %r3, %r3, 64;\n"
                               "setp.lt.u32 %p, %r3, 128;\n@%p bra $fill;\n"
                               "bar.sync 0;\n"
                               "xor.b32 %r5, %r1, 127;\nmad.lo.u32 %r6, %r5, 4, %r2;\n"
                               "ld.shared.f32 %f, [%r6];\n"
                               "mad.wide.u32 %rd3, %r1, 4, %rd1;\nst.global.f32 [%rd3], %f;\n"
                               "ret;\n}\n";

static emu_fault run_tile(arena *a, const char *text)
{
    float x[128] = { 0 };
    emu_report report = { 0 };
    emu_memory *memory = emu_memory_new();
    uint64_t in = emu_map(memory, x, sizeof x, true), out = emu_alloc(memory, 64 * sizeof *x);
    const void *params[] = { &out, &in };
    emu_launch_config config = {
        .module = emu_load(a, text, strlen(text), &report),
        .entry = "tile",
        .grid = { 1, 1, 1 },
        .block = { 64, 1, 1 },
        .params = params,
        .param_count = 2,
    };
    bool right = config.module && emu_launch(memory, &config, NULL, &report);
    emu_memory_free(memory);
    return right ? EMU_OK : report.fault;
}

ARENA_TEST(trap_4_a_cooperative_load_with_another_stride_is_found)
{
    assert_int_equal(run_tile(a, tile_ptx), EMU_OK);
    assert_int_equal(run_tile(a, mutate(a, tile_ptx, "%r3, %r3, 64", "%r3, %r3, 128")),
                     EMU_UNINITIALISED);
    assert_int_equal(run_tile(a, mutate(a, tile_ptx, "%r3, %r3, 64", "%r3, %r3, 96")),
                     EMU_UNINITIALISED);
}

TEST(trap_10_offsets_into_a_cache_that_wrap_at_2_to_the_32_are_found)
{
    static const char cache_keys[] = "head_dim=128 num_heads=8 num_kv_heads=8 max_seq_len=2000000";
    static const struct {
        const char *family, *keys;
        line_edit wrap;
    } kernels[] = {
        { "incremental_attention", "", { "mul.lo.u64", "", 1, "$0\nand.b64 $1, $1, 0xFFFFFFFF;" } },
        { "multi_warp_attention", "", { "mul.lo.u64", "", 1, "$0\nand.b64 $1, $1, 0xFFFFFFFF;" } },
        { "gqa_flash_decoding",
          " max_seq_len=5000000 m=2 kv_type=q8_0",
          { "mul.lo.u64", "", 1, "$0\nand.b64 $1, $1, 0xFFFFFFFF;" } },
        { "batched_incremental_attention",
          " m=2",
          { "mul.lo.u64", "", 1, "$0\nand.b64 $1, $1, 0xFFFFFFFF;" } },
        { "flash_decoding_chunk",
          " m=1 chunk_size=1024",
          { "mul.lo.u64", "", 1, "$0\nand.b64 $1, $1, 0xFFFFFFFF;" } },
        { "flash_decoding_reduce",
          " m=64 chunk_size=32",
          { "mad.lo.u64", "", 1,
            "mul.lo.u64 $1, $2, $3;\nand.b64 $1, $1, 0xFFFFFFFF;\nadd.u64 $1, $1, $4;" } },
    };
    for (size_t i = 0; i < sizeof kernels / sizeof *kernels; i++) {
        arena *a = arena_new();
        instance in;
        kernel k = trap_kernel(a, kernels[i].family,
                               arena_format(a, "%s%s", cache_keys, kernels[i].keys), &in);
        trial_setup setup = { .shape = in.shape, .sm_count = 1, .seed = 1 };
        setup.shape.seq_len = 5;
        verify_result r = verify_setup(a, &k, &setup);
        expect_verified(&r);
        const line_edit edits[MAX_EDITS] = { kernels[i].wrap };
        kernel faulty = edited(a, &k, edits);
        r = verify_setup(a, &faulty, &setup);
        expect_found(&r, " of its bound");
        arena_free(a);
    }
}

TEST(trap_11_a_k_that_is_not_whole_blocks_is_no_spec)
{
    static const char *const quantized[] = { "q4k_gemv",
                                             "mwv_q4k_gemv",
                                             "mwv_dp4a_q4k_gemv",
                                             "q6k_gemv",
                                             "mwv_q6k_gemv",
                                             "hw_dp4a_q6k_gemv",
                                             "fused_gate_up_q4k_gemv",
                                             "fused_rmsnorm_q4k_gemv",
                                             "fused_kv_hw_dp4a_q4k_gemv" };
    for (size_t i = 0; i < sizeof quantized / sizeof *quantized; i++) {
        arena *a = arena_new();
        diags d = diags_new(a);
        spec s;
        const char *text = arena_format(a, "[%s]\nk = 1000\nn = 4\n", quantized[i]);
        assert_false(spec_parse(a, "t.ini", text, strlen(text), families, NULL, &s, &d));
        assert_int_equal(d.errors, 1);
        if (!strstr(d.list.items[0].message, "not a multiple of 256"))
            fail_msg("'%s'", d.list.items[0].message);
        assert_int_equal(d.list.items[0].where.line, 2);
        arena_free(a);
    }
}

ARENA_TEST(trap_13_a_launch_with_another_block_size_is_refused)
{
    instance in;
    kernel k = trap_kernel(a, "mwv_q4k_gemv", "k=1024 n=3 num_warps=4", &in);
    in.num_warps = 2;
    verify_result r = verify_kernel(a, &k, 1);
    expect_found(&r, "requires 128");
}

ARENA_TEST(trap_14_a_value_of_one_path_used_on_another_is_not_built)
{
    ptx *p = ptx_new(a, "one_path", target_find("sm_75"), 32);
    ptx_param(p, U64, "y");
    ptx_output out;
    const char *error = "";
    val y = parameter(p, "y"), lane = lane_id(p), sum = { 0 };
    PTX_IF (p, lt(p, lane, 5))
        sum = add(p, ld_global(p, U32, y, 0), 1);
    st_global(p, U32, y, 4, sum);
    assert_false(ptx_finish(p, a, &out, &error));
    assert_true(strlen(error) > 0);
}

TEST(trap_15_the_text_does_not_depend_on_what_was_built_before)
{
    for (const family *const *f = families; *f; f++) {
        const char *keys = family_key(*f, "n") ? gemv_keys : "k=1024";
        if (family_key(*f, "head_dim"))
            keys = family_key(*f, "m") ? batch_keys : attention_keys;
        const char *text[2];
        arena *a[2];
        for (int i = 0; i < 2; i++) {
            instance in, other;
            a[i] = arena_new();
            arena_alloc(a[i], 1000 * (size_t)i);
            if (i)
                trap_kernel(a[i], "f32_gemv", "k=64 n=3", &other);
            text[i] = trap_kernel(a[i], (*f)->name, keys, &in).ptx;
        }
        assert_string_equal(text[0], text[1]);
        arena_free(a[0]);
        arena_free(a[1]);
    }
}

static double instructions_a_weight(arena *a, const kernel *k)
{
    const problem_shape *s = &k->instance->shape;
    trial_setup setup = { .shape = *s, .sm_count = 1, .seed = 1 };
    verify_result r = verify_setup(a, k, &setup);
    expect_verified(&r);
    return (double)r.instructions / (double)(s->k * s->n);
}

ARENA_TEST(trap_17_work_that_one_lane_in_eight_needs_shows_in_the_count)
{
    static const struct {
        const char *family;
        double most;
    } bounds[] = {
        { "f32_gemv", 2.1 },
        { "q4k_gemv", 9.5 },
        { "coalesced_q4k_gemv", 9.4 },
        { "vectorized_q4k_gemv", 8.7 },
        { "wide_q4k_gemv", 9.6 },
        { "mwv_q4k_gemv", 9.5 },
        { "tiled_q4k_gemv", 9.0 },
        { "chunked_tiled_q4k_gemv", 9.1 },
        { "dp4a_q4k_gemv", 10.7 },
        { "mwv_dp4a_q4k_gemv", 4.6 },
        { "hw_dp4a_q4k_gemv", 4.0 },
        { "inline_q8_dp4a_q4k_gemv", 7.8 }, /* of m = 1 */
        { "fused_fp32_q4k_gemv", 9.0 },
        { "q4_0_gemv", 6.0 },
        { "q5_0_gemv", 7.5 },
        { "q8_0_gemv", 4.9 },
        { "q6k_gemv", 7.9 },
        { "coalesced_q6k_gemv", 8.0 },
        { "mwv_q6k_gemv", 7.7 },
        { "batched_q6k_gemv", 7.6 },
        { "dp4a_q6k_gemv", 5.3 },
        { "hw_dp4a_q6k_gemv", 4.7 },
        { "fused_rmsnorm_q4k_gemv", 13.6 }, /* 3.8 of them stage x */
        { "fused_gate_up_q4k_gemv", 18.4 }, /* of two weights, as what follows */
        { "fused_kv_hw_dp4a_q4k_gemv", 7.9 },
        { "fused_gate_up_swiglu_hw_dp4a_q4k_gemv", 7.9 },
    };
    for (size_t i = 0; i < sizeof bounds / sizeof *bounds; i++) {
        instance in;
        kernel k = trap_kernel(a, bounds[i].family, "k=16384 n=8", &in);
        double number = instructions_a_weight(a, &k);
        if (number > bounds[i].most)
            fail_msg("%s takes %.2f instructions a weight", in.name, number);
        if (in.family->weights != FORMAT_Q4_K)
            continue;
        const char *eight_selects = "$0\n$0\n$0\n$0\n$0\n$0\n$0\n$0";
        const line_edit edits[MAX_EDITS] = { { "prmt.b32", "", 0, eight_selects } };
        kernel faulty = edited(a, &k, edits);
        assert_true(instructions_a_weight(a, &faulty) > bounds[i].most);
    }
}

int main(void)
{
    for (size_t i = 0; i < sizeof traps / sizeof *traps; i++)
        test_add((struct CMUnitTest){ .name = traps[i].name,
                                      .test_func = is_found,
                                      .initial_state = (void *)(uintptr_t)&traps[i] });
    return test_run(NULL, NULL);
}
