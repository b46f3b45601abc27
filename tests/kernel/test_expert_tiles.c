/* Experts of prompts on the tensor cores: faults in layouts, copies, barriers and row indices must
 * be found. */
#include "test_arena.h"
#include "kernel/planted.h"

static const char *const families_of_tiles[] = { "mma_expert_gate_up", "mma_expert_down" };
enum { FAMILIES = sizeof families_of_tiles / sizeof *families_of_tiles };

/* Builds a kernel with several tiles for experts that all rows use, of which a block runs more than
 * one. The ring of three stages wraps around, and n leaves a partial tile. */
static kernel right_tiles(arena *a, int number)
{
    return right_kernel(a, families_of_tiles[number],
                        "weights=q4_k k=1280 n=70 experts=5 experts_used=3 m=40 tile=16");
}

ARENA_TEST(registers_of_fragments_in_another_order_are_found)
{
    for (int i = 0; i < FAMILIES; i++) {
        kernel k = right_tiles(a, i);
        expect_exchanged_registers_found(a, &k, 0, 3);
    }
}

ARENA_TEST(fragments_loaded_transposed_are_found)
{
    for (int i = 0; i < FAMILIES; i++) {
        kernel k = right_tiles(a, i);
        expect_transposed_fragments_found(a, &k);
    }
}

ARENA_TEST(a_missing_wait_for_copies_is_found)
{
    for (int i = 0; i < FAMILIES; i++) {
        kernel k = right_tiles(a, i);
        expect_missing_waits_found(a, &k, 1, "cp.async.wait_group 2;");
    }
}

ARENA_TEST(a_stage_that_is_overwritten_while_it_is_read_is_found)
{
    for (int i = 0; i < FAMILIES; i++) {
        kernel k = right_tiles(a, i);
        expect_missing_meeting_found(a, &k);
    }
}

ARENA_TEST(a_tile_that_is_overwritten_while_it_is_read_is_found)
{
    enum { OF_STEP = 4 }; /* one of a chunk's eight barriers */
    for (int i = 0; i < FAMILIES; i++) {
        kernel k = right_tiles(a, i);
        expect_missing_barriers_found(a, &k, OF_STEP, 1);
    }
}

/* With three steps, the last one reads the buffer that the first step of the next rows writes. */
ARENA_TEST(a_missing_barrier_between_tiles_of_rows_is_found)
{
    enum { OF_ROWS = 4 };
    for (int i = 0; i < FAMILIES; i++) {
        kernel k = right_kernel(a, families_of_tiles[i],
                                "weights=q8_0 k=96 n=70 experts=5 experts_used=3 m=40 tile=16");
        expect_missing_barriers_found(a, &k, OF_ROWS, 1);
    }
}

/* Loads of the list, in order: the number of entries, an entry's expert, its number of rows, then
 * each row's input and its place in the result. */
ARENA_TEST(wrong_row_indices_are_found)
{
    enum { OF_VALUES = 4, OF_RESULT = 5 };
    const line_edit values = { "ld.global.nc.u32", "", OF_VALUES, "mov.u32 $1, 0;" };
    const line_edit result = { "ld.global.nc.u32", "", OF_RESULT, "mov.u32 $1, 0;" };
    for (int i = 0; i < FAMILIES; i++) {
        kernel k = right_tiles(a, i);
        expect_text_wrong(a, &k, edit_lines(a, k.ptx, &values), "of its bound");
        expect_text_wrong(a, &k, edit_lines(a, k.ptx, &result), "");
    }
}

ARENA_TEST(matrices_of_another_expert_are_found)
{
    const line_edit first = { "mul.lo.u32", ", 70;", 1, "mov.u32 $1, 0;" };
    const line_edit unasked = { "setp.lt.u32", ", 5;", 1, "setp.ge.u32 $1, $2, 0;" };
    for (int i = 0; i < FAMILIES; i++) {
        kernel k = right_tiles(a, i);
        expect_text_wrong(a, &k, edit_lines(a, k.ptx, &first), "of its bound");
        expect_text_wrong(a, &k, edit_lines(a, k.ptx, &unasked), "");
    }
}
