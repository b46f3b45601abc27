/* Faults of earlier implementations of these kernels. Each is planted in a correct kernel and must
 * be found. */
#include <string.h>

#include "test_arena.h"
#include "kernel/mutate.h"
#include "kernel/suite.h"
#include "input/spec.h"
#include "check/verify.h"

#include "emu/emu.h"
#include "ptx/ptx.h"

enum { MAX_EDITS = 3 };

/* A fault planted in a family's kernel of some configuration. */
typedef struct trap {
    const char *name, *family, *keys;
    line_edit edits[MAX_EDITS];
    const char *found; /* part of verify_kernel's message */
    const char *line;  /* start of the line that the message names; NULL = any */
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
static const char gemv_keys[] = "k=1024 n=50",
                  all_keys[] = "weights=q4_k k=1024 n=64 experts=9 experts_used=3";
static const char dynamic_keys[] = "k=1024 n=50 dims=dynamic";

static const char rows_keys[] = "k=1024 n=50 m=2 rows=run_time";
static const char rows_of_weights_keys[] = "weights=q4_k k=1024 n=50 m=2 rows=run_time";

static const char rope_keys[] =
    "head_dim=64 num_heads=2 num_kv_heads=2 max_seq_len=40 m=3 rope=neox kv_type=f16";
static const char long_rope_keys[] =
    "head_dim=64 num_heads=1 num_kv_heads=1 max_seq_len=1048576 kv_type=f16";

static const char batch_pages_keys[] =
    "head_dim=64 num_heads=4 num_kv_heads=2 max_seq_len=150 m=3 kv_type=f16 page=16";
static const char prompt_pages_keys[] =
    "head_dim=64 num_heads=4 num_kv_heads=2 max_seq_len=150 m=16 kv_type=f16 page=16";
static const char latent_pages_keys[] =
    "num_heads=4 latent=64 n_rope=32 max_seq_len=150 m=3 kv_type=f16 page=16";
static const char rope_pages_keys[] =
    "head_dim=64 num_heads=2 num_kv_heads=2 max_seq_len=40 m=3 rope=neox kv_type=f16 page=16";

/* Defines a trap. TRAP_AT also gives the start of the line that the message must name. */
#define TRAP(name, of, keys, says, ...) TRAP_AT(name, of, keys, says, NULL, __VA_ARGS__)
#define TRAP_AT(trap_name, of, its_keys, says, begins, ...)                          \
    {                                                                                \
        .name = trap_name, .family = of, .keys = its_keys, .edits = { __VA_ARGS__ }, \
        .found = says, .line = begins                                                \
    }

/* These macros are edits:
 * - WITHOUT removes an instruction.
 * - KEPT keeps a quotient where 0 is selected for a sequence without positions.
 * - WRAPS cuts a 64-bit product to 32 bits.
 */
#define WITHOUT(mnemonic, which) \
    {                            \
        mnemonic, "", which, ""  \
    }
#define KEPT(which)                                      \
    { "rcp.rn.f32", "", 1, "$0\nmov.f32 %kept, $1;" },   \
        { "selp.f32", "", which, "mov.f32 $1, %kept;" }, \
    {                                                    \
        ".reg .f32", "", 1, "$0\n.reg .f32 %kept;"       \
    }
#define WRAPS                                                                          \
    {                                                                                  \
        "mad.lo.u64", "", 0,                                                           \
            "mul.lo.u64 $1, $2, $3;\nand.b64 $1, $1, 0xFFFFFFFF;\nadd.u64 $1, $1, $4;" \
    }

/* Faults of kernels for any number of rows: ignoring the end of Y, the end of X, or the group. */
#define TRAPS_OF_ROWS(of, keys, clamp)                                                     \
    TRAP_AT("rows_of_y_stored_past_the_last_one_by_" #of, #of, keys, "out of bounds",      \
            "st.global.f32", { "setp.lt.u32", ", %r1;", 0, "setp.eq.u32 $1, $2, $2;" }),   \
        TRAP_AT("rows_of_x_read_past_the_last_one_by_" #of, #of, keys, "out of bounds",    \
                "ld.global.nc", { "min.u32", "", clamp, "mov.u32 $1, $2;" }),              \
        TRAP_AT("one_group_of_rows_taken_for_all_by_" #of, #of, keys, "", "st.global.f32", \
                { "mov.u32", ", %ctaid.y;", 1, "mov.u32 $1, 0;" })

/* Trap 35: faults of caches with pages of 16 positions:
 * - a tile of 64 positions is taken from the page of its first one;
 * - all rows use the pages of the first sequence;
 * - pages overlap: the row in the pool is the page's number plus the row in the page. */
#define TRAPS_OF_PAGES(of, keys, pages, rows)                                         \
    TRAP("trap_35_a_page_boundary_in_a_tile_ignored_by_" #of, #of, keys, "",          \
         { "shr.u32", ", 4;", 0, "and.b32 $1, $2, 0xFFFFFFC0;\nshr.u32 $1, $1, 4;" }, \
         { "and.b32", ", 15;", 0, "and.b32 $1, $2, 63;" }),                           \
        TRAP("trap_35_the_first_sequences_pages_taken_by_" #of, #of, keys, "",        \
             { "mul.lo.u32", ", " #pages ";", 1, "mov.u32 $1, 0;" }),                 \
        TRAP("trap_35_overlapping_pages_used_by_" #of, #of, keys, "",                 \
             { "mul.lo.u32", ", " #rows ";", 0, "mov.u32 $1, $2;" })

static const trap traps[] = {
    TRAPS_OF_PAGES(batched_incremental_attention, batch_pages_keys, 10, 32),
    TRAPS_OF_PAGES(flash_decoding_chunk, batch_pages_keys, 10, 32),
    TRAPS_OF_PAGES(gqa_flash_decoding, batch_pages_keys, 10, 32),
    TRAPS_OF_PAGES(mma_flash_decoding, batch_pages_keys, 10, 32),
    TRAPS_OF_PAGES(mma_attention, prompt_pages_keys, 10, 32),
    TRAPS_OF_PAGES(mla_attention, latent_pages_keys, 10, 16),
    TRAPS_OF_PAGES(rope_kv_write, rope_pages_keys, 3, 32),
    TRAP_AT("trap_35_a_page_looked_up_for_a_position_past_the_last", "rope_kv_write",
            rope_pages_keys, "out of bounds", "ld.global",
            { "min.u32", ", 39;", 1, "mov.u32 $1, $2;" }),
    TRAP_AT("a_full_cache_written_at_its_last_position", "rope_kv_write", rope_keys,
            "does not belong to this launch", "st.global.b16",
            { "ld.global.nc.u32", "", 1, "$0\nmin.u32 $1, $1, 39;" }),
    TRAP_AT("a_position_written_for_an_inactive_row", "rope_kv_write", rope_keys, "out of bounds",
            "st.global.b16", { "setp.lt.u32", ", 40;", 1, "setp.ne.u32 $1, $2, 40;" }),
    TRAP_AT("kv_heads_of_a_cache_too_close_together", "rope_kv_write", rope_keys,
            "is never written", "st.global.b16",
            { "mul.wide.u32", ", 40;", 1, "mul.wide.u32 $1, $2, 39;" }),
    TRAP_AT("k_and_v_truncated_instead_of_rounded", "rope_kv_write", rope_keys, "of its bound",
            "st.global.b16", { "cvt.rn.f16.f32", "", 0, "cvt.rz.f16.f32 $1, $2;" }),
    TRAP_AT("frequencies_of_24_bits", "rope_kv_write", long_rope_keys, "of its bound",
            "st.global.f32", { "mul.lo.u64", "", 1, "and.b64 $2, $2, 0xffffff0000000000;\n$0" }),
    TRAPS_OF_ROWS(gemv, rows_of_weights_keys, 2),
    TRAPS_OF_ROWS(stream_gemv, rows_of_weights_keys, 2),
    TRAPS_OF_ROWS(stream_gate_up, rows_of_weights_keys, 3),
    TRAPS_OF_ROWS(batched_hw_dp4a_q4k_gemv, rows_keys, 2),
    TRAPS_OF_ROWS(inline_q8_dp4a_q4k_gemv, rows_keys, 2),
    TRAPS_OF_ROWS(fused_fp32_q4k_gemv, rows_keys, 2),
    TRAPS_OF_ROWS(mma_gemm, rows_of_weights_keys, 1),
    TRAP_AT("trap_1_the_new_maximum_taken_for_the_old_one", "incremental_attention", attention_keys,
            " of its bound, stored by", "st.global.v4.f32",
            { "sub.rn.f32", "", 1, "sub.rn.f32 $1, $3, $3;" }),
    TRAP("trap_1_the_new_maximum_taken_for_the_old_one_in_a_chunk", "flash_decoding_chunk",
         batch_keys, " of its bound", { "sub.rn.f32", "", 1, "sub.rn.f32 $1, $3, $3;" }),
    TRAP("trap_1_the_new_maximum_taken_for_the_old_one_in_the_merge_of_chunks",
         "flash_decoding_reduce", many_chunks_keys, " of its bound",
         { "sub.rn.f32", "", 1, "sub.rn.f32 $1, $3, $3;" }),
    TRAP("trap_2_lane_0_s_score_used_by_all_lanes", "multi_warp_attention", attention_keys,
         " of its bound",
         { "shfl.sync.bfly.b32", "", 0, "shfl.sync.down.b32 $1, $2, $3, $4, $5;" }),
    TRAP("trap_5_partial_results_read_without_a_barrier", "multi_warp_attention", attention_keys,
         "race", WITHOUT("bar.sync", 1)),
    TRAP("trap_5_products_read_before_all_lanes_have_stored_them", "gqa_flash_decoding",
         wide_chunk_keys, "race", WITHOUT("bar.warp.sync", 1)),
    TRAP("trap_5_weights_used_before_all_lanes_have_made_them", "gqa_flash_decoding",
         wide_chunk_keys, "race", WITHOUT("bar.warp.sync", 2)),
    TRAP("trap_5_products_of_a_tile_stored_over_weights_in_use", "gqa_flash_decoding",
         one_chunk_keys, "race", WITHOUT("bar.warp.sync", 3)),
    TRAP("trap_5_addresses_and_q_used_before_all_warps_have_staged_them", "gqa_flash_decoding",
         batch_keys, "'caches'", WITHOUT("bar.sync", 1)),
    TRAP("trap_5_blocks_counted_before_all_warps_have_stored_their_rows", "gqa_flash_decoding",
         grid_chunks_keys, "the two are not ordered", WITHOUT("bar.sync", 3)),
    TRAP("trap_5_blocks_counted_without_a_release", "gqa_flash_decoding", grid_chunks_keys,
         "the two are not ordered",
         { "atom.acq_rel.gpu", "", 0, "atom.acquire.gpu.global.inc.u32 $1, $2, $3;" }),
    TRAP("trap_5_blocks_counted_without_an_acquire", "gqa_flash_decoding", grid_chunks_keys,
         "the two are not ordered",
         { "atom.acq_rel.gpu", "", 0, "atom.release.gpu.global.inc.u32 $1, $2, $3;" }),
    TRAP("trap_5_partial_results_of_other_blocks_read_through_the_read_only_cache",
         "gqa_flash_decoding", grid_chunks_keys, "ld.global.nc",
         { "ld.global.v4.f32", "", 1, "ld.global.nc.v4.f32 {$1, $2, $3, $4}, $5;" }),
    TRAP("trap_5_chunks_merged_by_the_block_of_the_last_chunk", "gqa_flash_decoding",
         grid_chunks_keys, "", { "ld.shared.u32", "[ticket];", 1, "mov.u32 $1, %ctaid.z;" }),
    TRAP("trap_5_a_head_s_partial_results_merged_without_a_barrier", "gqa_flash_decoding",
         batch_keys, "race", WITHOUT("bar.sync", 2)),
    TRAP("trap_5_the_number_of_finished_blocks_read_without_a_barrier", "gqa_flash_decoding",
         grid_chunks_keys, "'ticket'", WITHOUT("bar.sync", 4)),
    TRAP("trap_5_parts_of_the_chunks_merged_without_a_barrier", "gqa_flash_decoding",
         grid_chunks_keys, "race", WITHOUT("bar.sync", 5)),
    TRAP(
        "trap_3_a_counter_of_finished_blocks_left_as_it_is", "gqa_flash_decoding", grid_chunks_keys,
        "counters is not zero after the launch",
        { "atom.acq_rel.gpu.global.inc.u32", "", 0, "atom.acq_rel.gpu.global.add.u32 $1, $2, 1;" }),
    TRAP("trap_1_a_tile_s_results_added_without_the_factor_of_the_new_maximum",
         "gqa_flash_decoding", one_chunk_keys, " of its bound",
         { "shfl.sync.idx.b32", "", 0, "mov.f32 $1, 0f3F800000;" }),
    TRAP("trap_2_a_part_of_the_heads_products_exchanged_one_way", "gqa_flash_decoding", batch_keys,
         " of its bound",
         { "shfl.sync.bfly.b32", ", 1, 31, 0xFFFFFFFF;", 0,
           "shfl.sync.down.b32 $1, $2, $3, $4, $5;" }),
    TRAP_AT("trap_2_lane_0_s_maximum_used_by_all_lanes", "q8_1_quantize", "k=1024",
            " of its bound, stored by", "st.global.",
            { "shfl.sync.bfly.b32", "", 0, "shfl.sync.down.b32 $1, $2, $3, $4, $5;" }),
    TRAP_AT("trap_3_warps_without_work_leave_before_a_barrier", "mwv_q4k_gemv",
            "k=512 n=4 num_warps=4", "barrier", "bar.sync",
            { "bar.sync", "", 1,
              ".reg .pred %out;\n.reg .b32 %self;\n"
              "mov.u32 %self, %tid.x;\nsetp.ge.u32 %out, %self, 64;\n"
              "@%out ret;\n$0" }),
    TRAP("trap_3_warps_past_the_last_row_do_not_stage_their_share", "tiled_q4k_gemv",
         "k=512 n=5 outputs_per_block=4", "barrier",
         { "bar.sync", "", 1,
           ".reg .pred %out;\n.reg .b32 %self;\n"
           "mov.u32 %self, %tid.x;\nsetp.ge.u32 %out, %self, 32;\n"
           "@%out ret;\n$0" }),
    TRAP_AT("trap_4_a_part_of_x_is_not_staged", "tiled_q4k_gemv", "k=2048 n=4 outputs_per_block=4",
            "uninitialised", "ld.shared.v4.f32", WITHOUT("st.shared.v4.f32", 4)),
    TRAP_AT("trap_5_a_chunk_is_staged_over_one_in_use", "chunked_tiled_q4k_gemv", "k=8448 n=4",
            "race", "st.shared.v4.f32", WITHOUT("bar.sync", 1)),
    TRAP("trap_5_a_chunk_is_used_before_it_is_staged", "chunked_tiled_q4k_gemv", "k=8448 n=4",
         "shared", WITHOUT("bar.sync", 2)),
    TRAP("trap_6_two_rows_per_iteration_without_a_loop", "batched_hw_dp4a_q4k_gemv",
         "k=1024 n=50 m=2", "is never written", { "@%p", " $row_loop;", 1, "" }),
    TRAP("trap_16_the_end_of_a_wide_head_s_partial_result_is_not_stored", "flash_decoding_chunk",
         wide_batch_keys, "is never written", WITHOUT("st.global.v4.f32", 4)),
    TRAP("trap_16_the_end_of_a_wide_head_is_not_merged", "multi_warp_attention", wide_head_keys,
         "is never written", { "setp.lt.u32", ", 64;", 0, "setp.lt.u32 $1, $2, 32;" }),
    TRAP("trap_9_high_nibbles_with_the_scale_of_low_ones", "hw_dp4a_q4k_gemv", gemv_keys,
         " of its bound",
         { "and.b32", ", 0xF0F0F0F0;", 0, "shr.u32 $1, $2, 4;\nand.b32 $1, $1, $3;" }),
    TRAP("trap_12_x_staged_for_the_built_k_in_a_kernel_for_any_k", "tiled_q4k_gemv", dynamic_keys,
         "(k 256, n 1", { "ld.param.u32", "[k_dim];", 1, "mov.u32 $1, 1024;" }),
    TRAP("trap_5_a_fast_warp_refills_shared_memory_under_a_slow_one", "mwv_dp4a_q4k_gemv",
         gemv_keys, "race", WITHOUT("xor.b32", 1)),
    TRAP_AT("trap_6_a_grid_smaller_than_the_output_without_a_loop", "mwv_dp4a_q4k_gemv", gemv_keys,
            "y[16] is never written; the first element that is written is stored by",
            "st.global.f32", { "@%p", " $row_loop;", 1, "" }),
    TRAP_AT("trap_7_shared_memory_from_address_0", "mwv_q4k_gemv", gemv_keys, "out of bounds",
            "st.shared.f32", { "mov.u32", " partial;", 0, "mov.u32 $1, 0;" }),
    TRAP_AT("trap_8_zero_divided_by_zero", "incremental_attention", attention_keys, "nan",
            "st.global.v4.f32", KEPT(2)),
    TRAP("trap_8_an_empty_sequence_of_a_batch_divided_by_zero", "batched_incremental_attention",
         batch_keys, "nan", KEPT(2)),
    TRAP("trap_8_a_sequence_without_chunks_divided_by_zero", "flash_decoding_reduce", batch_keys,
         "nan", KEPT(8)),
    TRAP("trap_8_minus_infinity_minus_minus_infinity", "multi_warp_attention", attention_keys,
         "nan", { "mov.f32", ", 0fFF7FFFFF;", 0, "mov.f32 $1, 0fFF800000;" }),
    TRAP("a_length_that_is_not_clamped", "flash_decoding_chunk", batch_keys, "out of bounds",
         { "min.u32", "", 1, "mov.b32 $1, $2;" }),
    TRAP_AT("trap_9_high_nibbles_taken_for_low_ones", "mwv_q4k_gemv", gemv_keys,
            " of its bound, stored by", "st.global.f32",
            { "shl.b32", ", 3;", 0, "shr.u32 $1, $2, 1 ;" },
            { "shr.u32", ", 1;", 0, "shl.b32 $1, $2, 3;" }),
    TRAP("trap_9_high_nibbles_of_q4_0_taken_for_low_ones", "q4_0_gemv", gemv_keys, " of its bound",
         { "shl.b32", ", 3;", 0, "shr.u32 $1, $2, 1 ;" },
         { "shr.u32", ", 1;", 0, "shl.b32 $1, $2, 3;" }),
    TRAP("trap_9_upper_bits_of_q6_k_taken_for_another_group_s", "hw_dp4a_q6k_gemv", gemv_keys,
         " of its bound", { "shl.b32", ", 4;", 0, "shl.b32 $1, $2, 6;" }),
    TRAP("trap_20_fifth_bits_of_q5_k_taken_for_those_of_the_first_sub_blocks", "stream_gemv",
         "weights=q5_k k=1024 n=50", " of its bound", { "sub.u32", "", 0, "mov.u32 $1, 4;" }),
    TRAP("trap_22_subnormal_scales_of_mxfp4_lost", "stream_gemv", "weights=mxfp4 k=32 n=64",
         " of its bound", { "max.s32", "", 0, "max.s32 $1, $2, 0;" }),
    TRAP("trap_23_the_eighth_sign_of_iq2_xxs_taken_for_plus_by_gemv", "gemv",
         "weights=iq2_xxs k=256 n=64", " of its bound", { "shl.b32", ", 7;", 0, "mov.u32 $1, 0;" }),
    TRAP("trap_23_the_eighth_sign_of_iq3_xxs_taken_for_plus_by_gemv", "gemv",
         "weights=iq3_xxs k=256 n=64", " of its bound", { "shl.b32", ", 7;", 0, "mov.u32 $1, 0;" }),
    TRAP("trap_23_the_eighth_sign_of_iq2_xxs_taken_for_plus", "stream_gemv",
         "weights=iq2_xxs k=256 n=64", " of its bound", { "shl.b32", ", 7;", 0, "mov.u32 $1, 0;" }),
    TRAP("trap_23_the_eighth_sign_of_iq2_xs_taken_for_plus", "stream_gemv",
         "weights=iq2_xs k=256 n=64", " of its bound", { "shl.b32", ", 7;", 0, "mov.u32 $1, 0;" }),
    TRAP("trap_23_the_eighth_sign_of_iq3_xxs_taken_for_plus", "stream_gemv",
         "weights=iq3_xxs k=256 n=64", " of its bound", { "shl.b32", ", 7;", 0, "mov.u32 $1, 0;" }),
    TRAP("trap_24_nibbles_of_iq1_m_s_scale_in_another_order", "stream_gemv",
         "weights=iq1_m k=256 n=64", " of its bound",
         { "prmt.b32", ", 0x7531;", 0, "prmt.b32 $1, $2, $3, 0x7351;" }),
    TRAP("a_whole_word_loaded_from_a_block_that_is_2_byte_aligned", "q8_0_gemv", gemv_keys,
         "misaligned", { "ld.global.nc.u16", "", 2, "ld.global.nc.u32 $1, $2;" }),
    TRAP("a_whole_word_loaded_from_an_odd_super_block", "mwv_q6k_gemv", "k=768 n=3 num_warps=1",
         "misaligned", { "ld.global.nc.u16", "", 1, "ld.global.nc.u32 $1, $2;" }),
    TRAP("words_of_a_cache_block_loaded_where_its_quants_begin", "multi_warp_attention",
         blocks_keys, "misaligned", { "and.b32", ", 0xFFFFFFFC;", 1, "add.u32 $1, $2, 2;" }),
    TRAP("odd_blocks_of_a_cache_realigned_as_even_ones", "multi_warp_attention", blocks_keys,
         " of its bound", { "selp.u32", "", 2, "mov.b32 $1, $2;" }),
    TRAP("a_cache_row_s_first_scale_taken_for_all_its_blocks", "gqa_flash_decoding",
         blocks_batch_keys, " of its bound", { "sub.u64", "", 1, "neg.s64 $1, $3;" }),
    TRAP("the_quants_of_a_cache_taken_as_unsigned", "incremental_attention", blocks_keys,
         " of its bound", { "xor.b32", ", 0x80808080;", 0, "mov.b32 $1, $2;" }),
    TRAP_AT("trap_10_offsets_into_a_cache_wrap_at_2_to_the_32", "incremental_attention",
            "head_dim=256 num_heads=1024 num_kv_heads=1024 max_seq_len=4400",
            " of its bound, stored by", "st.global.v4.f32", WRAPS),
    TRAP_AT("trap_12_the_built_k_in_a_kernel_for_any_k", "q4k_gemv", dynamic_keys, "(k 256, n 1",
            "ld.global.nc.", { "ld.param.u32", "[k_dim];", 1, "mov.u32 $1, 1024;" }),
    TRAP("trap_12_the_built_n_in_a_kernel_for_any_n", "mwv_dp4a_q4k_gemv", dynamic_keys,
         "out of bounds", { "ld.param.u32", "[n_dim];", 1, "mov.u32 $1, 50;" }),
    TRAP_AT("trap_14_a_register_set_on_one_path_only", "mwv_q4k_gemv", gemv_keys,
            "undefined register", "mov.f32", { "mov.f32", "0f00000000;", 2, "" }),
    TRAP_AT("trap_16_the_end_of_a_wide_head_is_not_stored", "incremental_attention", wide_head_keys,
            "is never written", "st.global.v4.f32", WITHOUT("st.global.v4.f32", 4)),
    TRAP("trap_16_the_end_of_a_wide_head_is_not_multiplied", "incremental_attention",
         wide_head_keys, " of its bound", { "fma.rn.f32", "", 15, "mov.f32 $1, $4;" }),
};

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
        fail_msg("the kernel fails verification without the fault: %s", r->message);
}

static void expect_found(const verify_result *r, const char *part)
{
    if (r->right)
        fail_msg("the kernel passes verification with the fault");
    if (!strstr(r->message, part))
        fail_msg("the fault is reported as '%s', without '%s'", r->message, part);
}

static void is_found(void **state)
{
    const trap *t = *state;
    arena *a = arena_new();
    instance in;
    kernel k = suite_kernel_of(a, t->family, t->keys, &in);
    expect_kernel_right(a, &k);
    kernel faulty = edited(a, &k, t->edits);
    verify_result r = suite_verify(a, &faulty, false);
    expect_found(&r, t->found);
    const char *line = faulty.ptx;
    for (unsigned i = 1; i < r.line; i++)
        line = strchr(line, '\n') + 1;
    line += strspn(line, " ");
    if (t->line && strncmp(line, t->line, strlen(t->line)) != 0)
        fail_msg("the message names line %u, '%.*s', not a line '%s'", r.line,
                 (int)strcspn(line, "\n"), line, t->line);
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

/* A tile of 128 values copied through shared memory by 64 threads, with a stride of 64. */
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
    emu_memory *memory = emu_memory_new(NULL);
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
        { "incremental_attention", "", WRAPS },
        { "multi_warp_attention", "", WRAPS },
        { "gqa_flash_decoding", " max_seq_len=5000000 m=2 kv_type=q8_0", WRAPS },
        { "batched_incremental_attention", " m=2", WRAPS },
        { "flash_decoding_chunk", " m=1 chunk_size=1024", WRAPS },
        { "flash_decoding_reduce",
          " m=64 chunk_size=32",
          { "mad.lo.u64", "", 1,
            "mul.lo.u64 $1, $2, $3;\nand.b64 $1, $1, 0xFFFFFFFF;\nadd.u64 $1, $1, $4;" } },
    };
    for (size_t i = 0; i < sizeof kernels / sizeof *kernels; i++) {
        arena *a = arena_new();
        instance in;
        kernel k = suite_kernel_of(a, kernels[i].family,
                                   arena_format(a, "%s%s", cache_keys, kernels[i].keys), &in);
        trial_setup setup = { .shape = in.shape, .sm_count = 1, .seed = 1 };
        setup.shape.seq_len = 50; /* few positions: with many, a steep softmax may hide a wrong
                                     key */
        verify_result r = verify_kernel(a, &k, setup.seed, NULL, false, &setup);
        expect_verified(&r);
        const line_edit edits[MAX_EDITS] = { kernels[i].wrap };
        kernel faulty = edited(a, &k, edits);
        r = verify_kernel(a, &faulty, setup.seed, NULL, false, &setup);
        expect_found(&r, " of its bound");
        arena_free(a);
    }
}

/* The largest number of rows of a launch: more than 4 GiB of X, then of Y. */
TEST(trap_10_rows_are_right_beyond_4_gib_and_offsets_that_wrap_are_found)
{
    /* The product of a row of x and its bytes, without and with the pointer added. Two products of
     * prefetched rows of weights and two of their lines precede it. */
    static const line_edit offset = { "mul.wide.u32", "", 1, "$0\nand.b64 $1, $1, 0x3FFFFFF;" };
    static const line_edit address = {
        "mad.wide.u32", "", 5,
        "mul.wide.u32 $1, $2, $3;\nand.b64 $1, $1, 0x3FFFFFF;\nadd.u64 $1, $1, $4;"
    };
    static const struct {
        const char *family, *weights;
        const line_edit *wrap;
    } kernels[] = {
        { "gemv", "weights=q4_k ", &offset },
        { "stream_gemv", "weights=q4_k ", &address },
        { "stream_gemv", "weights=iq2_xs ", &address },
        { "stream_gate_up", "weights=q4_k ", &address },
        { "batched_hw_dp4a_q4k_gemv", "", &offset },
        { "inline_q8_dp4a_q4k_gemv", "", &offset },
        { "fused_fp32_q4k_gemv", "", &offset },
    };
    static const char *const large[] = { "k=8192 n=3", "k=256 n=4096" };
    for (size_t i = 0; i < sizeof kernels / sizeof *kernels; i++)
        for (size_t j = 0; j < sizeof large / sizeof *large; j++) {
            arena *a = arena_new();
            instance in;
            kernel k = suite_kernel_of(
                a, kernels[i].family,
                arena_format(a, "%sm=8 rows=run_time %s", kernels[i].weights, large[j]), &in);
            trial_setup setup = { .shape = in.shape, .sm_count = 132, .seed = 1 };
            setup.shape.m = 65535 * 8;
            verify_result r = verify_kernel(a, &k, setup.seed, NULL, false, &setup);
            expect_verified(&r);
            if (j == 0) {
                const line_edit edits[MAX_EDITS] = { *kernels[i].wrap };
                kernel faulty = edited(a, &k, edits);
                r = verify_kernel(a, &faulty, setup.seed, NULL, false, &setup);
                expect_found(&r, " of its bound");
            }
            arena_free(a);
        }
}

TEST(trap_11_a_k_that_is_not_whole_blocks_is_refused)
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
        assert_false(spec_parse(a, "t.ini", text, strlen(text), families, NULL, NULL, &s, &d));
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
    kernel k = suite_kernel_of(a, "mwv_q4k_gemv", "k=1024 n=3 num_warps=4", &in);
    in.num_warps = 2;
    verify_result r = verify_kernel(a, &k, 1, NULL, false, NULL);
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
        const char *keys = all_keys, *text[2];
        if (family_key(*f, "head_dim"))
            keys = family_key(*f, "m") ? batch_keys : attention_keys;
        arena *a[2];
        for (int i = 0; i < 2; i++) {
            instance in, other;
            a[i] = arena_new();
            arena_alloc(a[i], 1000 * (size_t)i);
            if (i)
                suite_kernel_of(a[i], "f32_gemv", "k=64 n=3", &other);
            const char *known = suite_known_keys(a[i], *f, keys);
            text[i] = suite_kernel_of(a[i], (*f)->name, known, &in).ptx;
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
    verify_result r = verify_kernel(a, k, setup.seed, NULL, false, &setup);
    expect_verified(&r);
    return (double)r.instructions / (double)(s->k * s->n);
}

ARENA_TEST(trap_17_work_for_one_lane_in_eight_raises_the_instruction_count)
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
        { "inline_q8_dp4a_q4k_gemv", 7.8 }, /* m = 1 */
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
        { "fused_gate_up_q4k_gemv", 18.4 }, /* two weights here and below */
        { "fused_kv_hw_dp4a_q4k_gemv", 7.9 },
        { "fused_gate_up_swiglu_hw_dp4a_q4k_gemv", 7.9 },
    };
    for (size_t i = 0; i < sizeof bounds / sizeof *bounds; i++) {
        instance in;
        kernel k = suite_kernel_of(a, bounds[i].family, "k=16384 n=8", &in);
        double number = instructions_a_weight(a, &k);
        if (number > bounds[i].most)
            fail_msg("%s runs %.2f instructions per weight", in.name, number);
        if (in.family->weights != FORMAT_Q4_K)
            continue;
        const char *eight_selects = "$0\n$0\n$0\n$0\n$0\n$0\n$0\n$0";
        const line_edit edits[MAX_EDITS] = { { "prmt.b32", "", 0, eight_selects } };
        kernel faulty = edited(a, &k, edits);
        assert_true(instructions_a_weight(a, &faulty) > bounds[i].most);
    }
}

LIST_TESTS
{
    for (size_t i = 0; i < sizeof traps / sizeof *traps; i++)
        test_add_next(__FILE__,
                      (struct CMUnitTest){ .name = traps[i].name,
                                           .test_func = is_found,
                                           .initial_state = (void *)(uintptr_t)&traps[i] });
}
