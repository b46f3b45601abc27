/* Decode attention on the tensor cores: faults in fragment layouts, masks and softmax must be
 * found. Results are tested in test_attention.c. */
#include "test_arena.h"
#include "kernel/planted.h"

/* Builds a kernel with two groups of heads per KV head and with q in shared memory. */
static kernel right_attention(arena *a)
{
    return right_kernel(a, "mma_flash_decoding",
                        "head_dim=64 num_heads=24 num_kv_heads=2 max_seq_len=600 m=2 kv_type=f16 "
                        "chunking=fixed chunk_size=512");
}

static void expect_found(arena *a, const line_edit *fault, const char *how)
{
    kernel k = right_attention(a);
    expect_text_wrong(a, &k, edit_lines(a, k.ptx, fault), how);
}

ARENA_TEST(registers_of_fragments_in_another_order_are_found)
{
    kernel k = right_attention(a);
    expect_exchanged_factors_found(a, &k);
}

ARENA_TEST(weights_that_are_not_transposed_are_found)
{
    const line_edit as_they_were = { "movmatrix", "", 0, "mov.b32 $1, $2;" };
    expect_found(a, &as_they_were, "of its bound");
}

ARENA_TEST(values_of_other_rows_in_a_fragment_are_found)
{
    const line_edit other_half = { "prmt.b32", ", 0x5410;", 1, "prmt.b32 $1, $2, $3, 0x7632;" };
    const line_edit one_row = { "prmt.b32", ", 0x7632;", 3, "prmt.b32 $1, $2, $2, 0x7632;" };
    expect_found(a, &other_half, "of its bound");
    expect_found(a, &one_row, "of its bound");
}

ARENA_TEST(factors_of_other_heads_are_found)
{
    const line_edit own = { "shfl.sync.idx.b32", "", 1, "mov.b32 $1, $2;" };
    expect_found(a, &own, "of its bound");
}

ARENA_TEST(positions_after_the_last_are_found)
{
    const line_edit counted = { "selp.f32", "", 4, "mov.f32 $1, $2;" };
    expect_found(a, &counted, "of its bound");
}

ARENA_TEST(loads_after_the_last_position_are_found)
{
    enum { AFTER = 16 }; /* 15 preceding minima bound lengths, stretches and the first tile */
    const line_edit unbounded = { "min.u32", "", AFTER, "mov.u32 $1, $2;" };
    expect_found(a, &unbounded, "");
}

ARENA_TEST(a_maximum_of_only_some_lanes_is_found)
{
    const line_edit alone = { "shfl.sync.bfly.b32", ", 16, 31, 0xFFFFFFFF;", 0, "mov.b32 $1, $2;" };
    expect_found(a, &alone, "of its bound");
}

ARENA_TEST(results_that_are_not_scaled_down_are_found)
{
    const line_edit never = { "setp.ne.f32", "", 0, "setp.ne.f32 $1, 0f3F800000, 0f3F800000;" };
    expect_found(a, &never, "of its bound");
}

ARENA_TEST(staged_values_used_before_the_barrier_are_found)
{
    const line_edit removed = { "bar.sync", "", 1, "" };
    expect_found(a, &removed, "race");
}
