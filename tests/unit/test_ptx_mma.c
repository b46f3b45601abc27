/* A product on the tensor cores as a kernel generator writes it, from the builder to a result: the
 * text is what ptxas takes, and on the emulator it computes what three loops do. */
#include "test_arena.h"
#include "check/ptxas.h"
#include "emu/emu.h"
#include "ptx/ptx.h"
#include "ref/half.h"
#include "ref/random.h"

enum { ROWS = 16, COLUMNS = 8, DEPTH = 64, STEP = 16 };

/* Of A, row-major [ROWS, DEPTH], and of B, column-major, words of two values: those at 2t of line g
 * and of eight lines further down, and of the eight values behind each. */
static val fragment(ptx *p, val matrix, val line, val depth, int lines_down, int behind)
{
    val at = mad_wide(p, mad(p, line, DEPTH, depth), sizeof(uint16_t), matrix);
    return ld_const(p, U32, at, (int64_t)(lines_down * DEPTH + behind) * (int64_t)sizeof(uint16_t));
}

/* d = A B; a warp. */
static void build(ptx *p)
{
    val a = parameter(p, "a"), b = parameter(p, "b"), g = div(p, lane_id(p), 4);
    val pair = mul(p, rem(p, lane_id(p), 4), 2);
    var sums[4];
    for (int i = 0; i < 4; i++)
        sums[i] = var_f32(p, 0.0f);
    PTX_FOR (p, step, 0, DEPTH, STEP) {
        val depth = add(p, pair, step);
        val4 of_a = { { fragment(p, a, g, depth, 0, 0), fragment(p, a, g, depth, 8, 0),
                        fragment(p, a, g, depth, 0, 8), fragment(p, a, g, depth, 8, 8) } };
        val2 of_b = { { fragment(p, b, g, depth, 0, 0), fragment(p, b, g, depth, 0, 8) } };
        val4 c = { { get(p, sums[0]), get(p, sums[1]), get(p, sums[2]), get(p, sums[3]) } };
        val4 d = mma_m16n8k16_f16(p, of_a, of_b, c);
        for (int i = 0; i < 4; i++)
            assign(p, sums[i], d.v[i]);
    }
    val at = mad_wide(p, mad(p, g, COLUMNS, pair), sizeof(float), parameter(p, "d"));
    for (int i = 0; i < 4; i++)
        st_global(p, F32, at, (int64_t)((i / 2 * 8 * COLUMNS + i % 2) * (int)sizeof(float)),
                  get(p, sums[i]));
}

static ptx_output built(arena *a)
{
    ptx *p = ptx_new(a, "product", target_find("sm_80"), 32);
    ptx_output out;
    const char *error;
    ptx_param(p, U64, "d");
    ptx_param(p, U64, "a");
    ptx_param(p, U64, "b");
    build(p);
    if (!ptx_finish(p, a, &out, &error))
        fail_msg("%s", error);
    return out;
}

/* Small integers: products and sums are exact in any order. */
static void fill(uint16_t *halves, float *values, size_t count, random_source *r)
{
    for (size_t i = 0; i < count; i++) {
        values[i] = (float)random_below(r, 17) - 8;
        halves[i] = half_from_float(values[i]);
    }
}

ARENA_TEST(the_emulator_computes_what_three_loops_do)
{
    static uint16_t left_halves[ROWS * DEPTH], right_halves[COLUMNS * DEPTH];
    static float left[ROWS * DEPTH], right[COLUMNS * DEPTH], d[ROWS * COLUMNS];
    random_source r = { 7 };
    fill(left_halves, left, ROWS * DEPTH, &r);
    fill(right_halves, right, COLUMNS * DEPTH, &r);
    ptx_output text = built(a);
    emu_report report;
    emu_memory *memory = emu_memory_new();
    uint64_t addresses[] = { emu_alloc(memory, sizeof d),
                             emu_map(memory, left_halves, sizeof left_halves, true),
                             emu_map(memory, right_halves, sizeof right_halves, true) };
    const void *params[] = { &addresses[0], &addresses[1], &addresses[2] };
    const emu_module *module = emu_load(a, text.text, text.length, &report);
    if (!module)
        fail_msg("line %u: %s", report.line, report.message);
    emu_launch_config config = { .module = module,
                                 .entry = "product",
                                 .grid = { 1, 1, 1 },
                                 .block = { 32, 1, 1 },
                                 .params = params,
                                 .param_count = 3 };
    if (!emu_launch(memory, &config, NULL, &report))
        fail_msg("line %u: %s", report.line, report.message);
    assert_true(emu_read(memory, addresses[0], d, sizeof d));
    for (int i = 0; i < ROWS; i++)
        for (int j = 0; j < COLUMNS; j++) {
            float sum = 0;
            for (int k = 0; k < DEPTH; k++)
                sum += left[i * DEPTH + k] * right[j * DEPTH + k];
            if (d[i * COLUMNS + j] != sum)
                fail_msg("d[%d][%d] is %g, expected %g", i, j, (double)d[i * COLUMNS + j],
                         (double)sum);
        }
    emu_memory_free(memory);
}

ARENA_TEST(ptxas_takes_it)
{
    ptxas assembler;
    ptxas_result result;
    const char *error;
    ptx_output text = built(a);
    if (!ptxas_find(a, NULL, &assembler, &error))
        skip();
    if (!ptxas_run(a, &assembler, text.text, text.length, target_find("sm_80"), &result, &error))
        fail_msg("%s", error);
    if (!result.accepted)
        fail_msg("%s", result.message);
    assert_int_equal(result.spill_bytes, 0);
}
