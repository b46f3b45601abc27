/* What the blocks of one launch may expect of each other: no order, and nothing of what another has
 * stored but what was released and acquired. */
#include "test_emu_run.h"

enum { BLOCKS = 5, THREADS = 64 };

/* What a launch starts from and leaves behind. */
typedef struct grid_run {
    const char *text;
    const uint64_t *blocks; /* NULL: all */
    size_t block_count;
    bool descending;
    /* results */
    bool good;
    emu_report report;
    char message[512];
    uint32_t out[THREADS];
} grid_run;

/* Runs k(out, rows, counter): out and counter start as zeros, rows without content. */
static void run_grid(grid_run *r)
{
    arena *a = arena_new();
    emu_memory *m = emu_memory_new();
    uint32_t counter[4] = { 0 };
    memset(r->out, 0, sizeof r->out);
    uint64_t out = emu_map(m, r->out, sizeof r->out, false);
    uint64_t rows = emu_alloc(m, BLOCKS * THREADS * sizeof(uint32_t));
    uint64_t count = emu_map(m, counter, sizeof counter, false);
    const void *params[] = { &out, &rows, &count };
    emu_launch_config config = { .module = emu_load(a, r->text, strlen(r->text), &r->report),
                                 .entry = "k",
                                 .grid = { 1, BLOCKS, 1 },
                                 .block = { THREADS, 1, 1 },
                                 .params = params,
                                 .param_count = 3,
                                 .blocks = r->blocks,
                                 .block_count = r->block_count,
                                 .descending = r->descending };
    r->good = config.module && emu_launch(m, &config, NULL, &r->report);
    snprintf(r->message, sizeof r->message, "%s", r->report.message);
    emu_memory_free(m);
    arena_free(a);
}

/* %out, %rows and %counter hold the parameters, %t and %b the numbers of thread and block, %mine
 * the address of the thread's own word of rows. */
#define GRID_KERNEL(body)                                                                    \
    PTX_HEAD                                                                                 \
    ".visible .entry k(.param .u64 out, .param .u64 rows, .param .u64 counter)\n{\n"         \
    ".reg .pred %p<10>; .reg .b32 %r<20>, %t, %b; .reg .b64 %l<20>, %out, %rows, %counter, " \
    "%mine;\n"                                                                               \
    ".shared .align 4 .b8 number[4];\n"                                                      \
    "ld.param.u64 %out, [out];\nld.param.u64 %rows, [rows];\n"                               \
    "ld.param.u64 %counter, [counter];\nmov.u32 %t, %tid.x;\nmov.u32 %b, %ctaid.y;\n"        \
    "mad.lo.u32 %r0, %b, 64, %t;\nmad.wide.u32 %mine, %r0, 4, %rows;\n"                      \
    "setp.eq.u32 %p0, %t, 0;\n" body "\nret;\n}\n"

/* Where in the order of blocks each one came: word number b of out is that of block b. */
static const char take_turns[] =
    GRID_KERNEL("@!%p0 ret;\natom.global.add.u32 %r1, [%counter], 1;\n"
                "add.u32 %r1, %r1, 1;\nmad.wide.u32 %l1, %b, 4, %out;\nst.global.u32 [%l1], %r1;");

static void blocks_run_from_the_last_to_the_first_where_asked(void **state)
{
    static const uint64_t some[] = { 1, 4, 2 };
    static const struct {
        const uint64_t *blocks;
        size_t count;
        bool descending;
        uint32_t turns[BLOCKS];
    } rows[] = {
        { NULL, 0, false, { 1, 2, 3, 4, 5 } },
        { NULL, 0, true, { 5, 4, 3, 2, 1 } },
        { some, 3, false, { 0, 1, 3, 0, 2 } },
        { some, 3, true, { 0, 3, 1, 0, 2 } },
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        grid_run r = { .text = take_turns,
                       .blocks = rows[i].blocks,
                       .block_count = rows[i].count,
                       .descending = rows[i].descending };
        run_grid(&r);
        assert_string_equal(r.message, "");
        assert_memory_equal(r.out, rows[i].turns, sizeof rows[i].turns);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(blocks_run_from_the_last_to_the_first_where_asked),
    };
    return cmocka_run_group_tests_name("emu_grid", tests, NULL, NULL);
}
