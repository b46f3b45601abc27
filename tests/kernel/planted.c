#include "kernel/planted.h"

kernel right_kernel(arena *a, const char *name, const char *text)
{
    instance *in = arena_alloc(a, sizeof *in);
    kernel k = suite_kernel_of(a, name, text, in);
    expect_kernel_right(a, &k);
    return k;
}

void expect_exchanged_factors_found(arena *a, const kernel *k)
{
    enum { SUM, FACTOR };
    expect_text_wrong(a, k, exchange_registers(a, k->ptx, "mma.sync", FACTOR, 1, 2),
                      "of its bound");
    expect_text_wrong(a, k, exchange_registers(a, k->ptx, "mma.sync", SUM, 1, 2), "");
}

void expect_exchanged_registers_found(arena *a, const kernel *k, unsigned first, unsigned second)
{
    expect_exchanged_factors_found(a, k);
    expect_text_wrong(a, k, exchange_registers(a, k->ptx, "ldmatrix", 0, first, second),
                      "of its bound");
}

void expect_transposed_fragments_found(arena *a, const kernel *k)
{
    const line_edit transposed = { "ldmatrix.sync.aligned.m8n8.x4.shared.b16", "", 1,
                                   "ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 $1, $2;" };
    expect_text_wrong(a, k, edit_lines(a, k->ptx, &transposed), "of its bound");
}

void expect_missing_meeting_found(arena *a, const kernel *k)
{
    const line_edit removed = { "bar.warp.sync", "", 1, "" };
    expect_text_wrong(a, k, edit_lines(a, k->ptx, &removed), "race");
}

void expect_missing_waits_found(arena *a, const kernel *k, unsigned waits, const char *fewer)
{
    for (unsigned which = 1; which <= waits; which++) {
        const line_edit removed = { "cp.async.wait_group", "", which, "" };
        const line_edit fewer_done = { "cp.async.wait_group", "", which, fewer };
        expect_text_wrong(a, k, edit_lines(a, k->ptx, &removed), "race");
        if (*fewer)
            expect_text_wrong(a, k, edit_lines(a, k->ptx, &fewer_done), "race");
    }
}

void expect_missing_barriers_found(arena *a, const kernel *k, unsigned first, unsigned count)
{
    for (unsigned which = first; which < first + count; which++) {
        const line_edit removed = { "bar.sync", "", which, "" };
        expect_text_wrong(a, k, edit_lines(a, k->ptx, &removed), "race");
    }
}
