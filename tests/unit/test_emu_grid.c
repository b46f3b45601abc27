/* Ordering between blocks of one launch: blocks run in any order, and a block sees another block's
 * stores only by release and acquire. */
#include <sys/resource.h>
#include <time.h>

#include "test_emu_run.h"

enum { BLOCKS = 5, THREADS = 64, ROWS_BYTES = 1 << 16 };

/* The inputs and results of a launch. */
typedef struct grid_run {
    const char *text;
    unsigned grid, threads; /* 0 = BLOCKS, THREADS */
    const uint64_t *blocks; /* NULL = all blocks */
    size_t block_count;
    bool descending;
    /* results */
    bool good;
    emu_report report;
    char message[512];
    uint32_t out[THREADS];
} grid_run;

/* Runs k(out, rows, counter). out and counter are zeroed; rows are uninitialized. */
static void run_grid(grid_run *r)
{
    arena *a = arena_new();
    emu_memory *m = emu_memory_new(NULL);
    uint32_t counter[4] = { 0 };
    memset(r->out, 0, sizeof r->out);
    uint64_t out = emu_map(m, r->out, sizeof r->out, false);
    uint64_t rows = emu_alloc(m, ROWS_BYTES);
    uint64_t count = emu_map(m, counter, sizeof counter, false);
    const void *params[] = { &out, &rows, &count };
    emu_launch_config config = { .module = emu_load(a, r->text, strlen(r->text), &r->report),
                                 .entry = "k",
                                 .grid = { 1, r->grid ? r->grid : BLOCKS, 1 },
                                 .block = { r->threads ? r->threads : THREADS, 1, 1 },
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

/* Registers of a kernel:
 * - %out, %rows, %counter: the parameters
 * - %t, %b: the indices of thread and block
 * - %mine: the address of the thread's own word of rows
 */
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

/* Stores the rank of block b in execution order to word b of out. */
static const char take_turns[] =
    GRID_KERNEL("@!%p0 ret;\natom.global.add.u32 %r1, [%counter], 1;\n"
                "add.u32 %r1, %r1, 1;\nmad.wide.u32 %l1, %b, 4, %out;\nst.global.u32 [%l1], %r1;");

TEST(blocks_run_in_descending_order_on_request)
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

/* Every block stores a row of 64 words and increments the counter. The last block adds up the rows
 * into out; each thread reads words that threads at the opposite end have stored. Lines that tests
 * replace end in a mark. */
#define STORE   "st.global.u32 [%mine], %b; //store\n"
#define STORED  "bar.sync 0; //stored\n"
#define COUNT   "@%p0 atom.acq_rel.gpu.global.inc.u32 %r1, [%counter], 4; //count\n"
#define COUNTED "@%p0 st.shared.u32 [number], %r1; //number\nbar.sync 0; //counted\n"
#define IS_LAST "ld.shared.u32 %r1, [number]; setp.ne.u32 %p1, %r1, 4; //last\n@%p1 ret;\n"
#define ADD_ROWS                                                                         \
    "sub.u32 %r2, 63, %t;\nmad.wide.u32 %l1, %r2, 4, %rows;\nmov.u32 %r3, 0;\n"          \
    "mov.u32 %r4, 0;\n$row:\nld.global.u32 %r5, [%l1]; //load\nadd.u32 %r4, %r4, %r5;\n" \
    "add.u64 %l1, %l1, 256;\nadd.u32 %r3, %r3, 1;\nsetp.lt.u32 %p2, %r3, 5;\n@%p2 bra $row;\n"
#define STORE_SUM "mad.wide.u32 %l2, %t, 4, %out;\nst.global.u32 [%l2], %r4;"
static const char merge[] = GRID_KERNEL(STORE STORED COUNT COUNTED IS_LAST ADD_ROWS STORE_SUM);
enum { SUM = 0 + 1 + 2 + 3 + 4 };

/* A replacement of the line that ends in mark. */
typedef struct edit {
    const char *mark, *line;
} edit;

enum { MAX_EDITS = 4, MAX_TEXT = 4096 };

static void change_line(char text[MAX_TEXT], const edit *e)
{
    char mark[32], changed[MAX_TEXT];
    snprintf(mark, sizeof mark, "//%s\n", e->mark);
    char *end = strstr(text, mark), *start = end;
    if (!end)
        fail_msg("no line has the mark %s", e->mark);
    while (start > text && start[-1] != '\n')
        start--;
    snprintf(changed, sizeof changed, "%.*s%s%s", (int)(start - text), text, e->line,
             end + strlen(mark) - 1);
    memcpy(text, changed, sizeof changed);
}

static void run_changed(grid_run *r, char text[MAX_TEXT], const edit edits[MAX_EDITS])
{
    snprintf(text, MAX_TEXT, "%s", r->text);
    for (int i = 0; i < MAX_EDITS && edits[i].mark; i++)
        change_line(text, &edits[i]);
    r->text = text;
    run_grid(r);
}

#define RELAXED "@%p0 atom.global.inc.u32 %r1, [%counter], 4;\n"

TEST(released_and_acquired_stores_are_not_a_race)
{
    static const edit rows[][MAX_EDITS] = {
        { { 0 } },
        /* as before PTX 6.0: each storing thread fences, and a fence follows the count */
        { { "stored", "membar.gl;\nbar.sync 0;" },
          { "count", RELAXED },
          { "counted", "bar.sync 0;\nmembar.gl;" } },
        { { "stored", "membar.gl;\nbar.sync 0;" }, { "count", RELAXED "membar.sys;" } },
        /* without the second fence, as in the CUDA samples */
        { { "stored", "membar.gl;\nbar.sync 0;" }, { "count", RELAXED } },
        /* a barrier, then a fence by the counting thread only */
        { { "count", "@%p0 fence.acq_rel.gpu;\n" RELAXED "@%p0 fence.acq_rel.gpu;" } },
        { { "count", "@%p0 fence.sc.sys;\n" RELAXED } },
        /* modifiers in nvcc's orders */
        { { "count", "@%p0 atom.inc.acq_rel.gpu.u32 %r1, [%counter], 4;" } },
        { { "count", "@%p0 membar.sys;\n@%p0 atom.global.sys.inc.u32 %r1, [%counter], 4;" } },
        { { "count", "@%p0 red.add.release.global.gpu.u32 [%counter+8], 1;\n"
                     "@%p0 atom.inc.relaxed.gpu.global.u32 %r1, [%counter], 4;\n"
                     "@%p0 ld.global.acquire.gpu.b32 %r6, [%counter+8];" } },
        /* release and acquire by two operations on the counter */
        { { "count", "@%p0 atom.release.gpu.global.inc.u32 %r1, [%counter], 4;\n"
                     "@%p0 ld.acquire.gpu.global.u32 %r6, [%counter];" } },
        { { "count", "@%p0 atom.release.sys.global.inc.u32 %r1, [%counter], 4;\n"
                     "@%p0 ld.relaxed.gpu.global.u32 %r6, [%counter];" },
          { "counted", "bar.sync 0;\nfence.acq_rel.gpu;" } },
        /* strong accesses on both sides need no order */
        { { "store", "st.relaxed.gpu.global.u32 [%mine], %b;" },
          { "count", RELAXED },
          { "load", "ld.relaxed.gpu.global.u32 %r5, [%l1];" } },
        { { "store", "st.volatile.global.u32 [%mine], %b;" },
          { "count", RELAXED },
          { "load", "ld.volatile.global.u32 %r5, [%l1];" } },
        /* each thread releases its own store */
        { { "stored", "red.release.gpu.global.add.u32 [%counter+8], 1;\nbar.sync 0;" },
          { "count", RELAXED "@%p0 ld.acquire.gpu.global.u32 %r6, [%counter+8];" } },
        /* the last block resets the counter */
        { { "last", "ld.shared.u32 %r1, [number]; setp.ne.u32 %p1, %r1, 4;\n@%p1 ret;\n"
                    "st.global.u32 [%counter], 0;" } },
    };
    for (size_t i = 0; i < 2 * (sizeof rows / sizeof *rows); i++) {
        char text[MAX_TEXT];
        grid_run r = { .text = merge, .descending = i % 2 };
        run_changed(&r, text, rows[i / 2]);
        if (!r.good)
            fail_msg("row %zu, line %u: %s", i / 2, r.report.line, r.message);
        for (int t = 0; t < THREADS; t++)
            assert_int_equal(r.out[t], SUM);
    }
}

TEST(stores_without_release_and_acquire_are_a_race)
{
    static const struct {
        edit edits[MAX_EDITS];
        const char *message; /* a substring of the message */
    } rows[] = {
        /* no barrier between the stores and the count */
        { { { "stored", "" } }, "acquired no release that follows the store" },
        { { { "stored", "membar.gl;" }, { "count", RELAXED } },
          "acquired no release that follows the store" },
        /* no barrier between the count and the loads */
        { { { "counted", "" }, { "last", "setp.ne.u32 %p1, %b, 4;" } },
          "this block has acquired no release" },
        { { { "store", "st.global.u32 [%mine], %b;\nsetp.eq.u32 %p0, %t, 32;" },
            { "counted", "" },
            { "last", "setp.ne.u32 %p1, %b, 4;" } },
          "there is no barrier between this block's acquire and this thread" },
        /* no count */
        { { { "count", "" }, { "number", "" }, { "last", "setp.ne.u32 %p1, %b, 4;" } },
          "this block has acquired no release" },
        /* an atomic operation without release, without acquire, or without both */
        { { { "count", RELAXED } }, "this block has acquired no release" },
        { { { "count", "@%p0 atom.acquire.gpu.global.inc.u32 %r1, [%counter], 4;" } },
          "this block has acquired no release" },
        { { { "count", "@%p0 atom.release.gpu.global.inc.u32 %r1, [%counter], 4;" } },
          "read the release with a strong access, but without .acquire" },
        /* scope .cta */
        { { { "count", "@%p0 atom.acq_rel.cta.global.inc.u32 %r1, [%counter], 4;" } },
          "updates bytes that block (0, 0, 0) stored" },
        { { { "stored", "membar.cta;\nbar.sync 0;" }, { "count", RELAXED } },
          "this block has acquired no release" },
        /* a fence before the stores, or by threads that did not store */
        { { { "store", "membar.gl;\nst.global.u32 [%mine], %b;" }, { "count", RELAXED } },
          "acquired no release that follows the store" },
        /* a store after the release */
        { { { "counted", "bar.sync 0;\nst.global.u32 [%mine], %t;" } },
          "acquired no release that follows the store" },
        /* a store after the release, by the releasing thread */
        { { { "number", "@%p0 st.shared.u32 [number], %r1;\n@%p0 st.global.u32 [%mine], %t;" } },
          "acquired no release that follows the store" },
        /* strong stores, weak loads */
        { { { "store", "st.relaxed.gpu.global.u32 [%mine], %b;" }, { "count", RELAXED } },
          "stored atomically at line" },
        /* release and acquire on different counters */
        { { { "count", "@%p0 atom.release.gpu.global.inc.u32 %r6, [%counter+8], 4;\n"
                       "@%p0 atom.acquire.gpu.global.inc.u32 %r1, [%counter], 4;" } },
          "read the release with a strong access, but without .acquire" },
        /* a block overwrites the counter */
        { { { "store", "st.global.u32 [%mine], %b;\nsetp.eq.and.u32 %p3, %b, 3, %p0;\n"
                       "@%p3 st.relaxed.gpu.global.u32 [%counter], 3;" } },
          "acquired no release that follows the store" },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char text[MAX_TEXT];
        grid_run r = { .text = merge };
        run_changed(&r, text, rows[i].edits);
        if (r.good || r.report.fault != EMU_RACE || !strstr(r.message, rows[i].message))
            fail_msg("row %zu gives %s: %s\n  expected: %s", i, emu_fault_name(r.report.fault),
                     r.message, rows[i].message);
    }
}

TEST(a_race_of_blocks_names_both_and_their_lines)
{
    char text[MAX_TEXT];
    grid_run r = { .text = merge, .descending = true };
    run_changed(&r, text, (const edit[MAX_EDITS]){ { "count", RELAXED } });
    assert_false(r.good);
    assert_int_equal(r.report.line, 29);
    assert_int_equal(r.report.block[1], 0);
    assert_int_equal(r.report.thread[0], 0);
    assert_string_equal(r.message,
                        "race: block (0, 0, 0) reads bytes that block (0, 1, 0) stored at line 16; "
                        "the two are not ordered: this block has acquired no release");
}

TEST(the_last_block_of_a_grid_need_not_be_the_last_to_run)
{
    static const edit edits[MAX_EDITS] = { { "last", "setp.ne.u32 %p1, %b, 4;" } };
    char text[MAX_TEXT];
    grid_run r = { .text = merge };
    run_changed(&r, text, edits);
    assert_true(r.good);
    r = (grid_run){ .text = merge, .descending = true };
    run_changed(&r, text, edits);
    assert_int_equal(r.report.fault, EMU_UNINITIALISED);
}

TEST(ld_nc_of_a_store_in_its_launch_is_a_fault)
{
    static const struct {
        edit edits[MAX_EDITS];
        const char *message;
    } rows[] = {
        { { { "load", "ld.global.nc.u32 %r5, [%l1];" } },
          "(.nc) reads bytes that block (0, 0, 0) stored in this launch at line 16" },
        { { { "load", "ldu.global.u32 %r5, [%l1];" } }, "block (0, 0, 0)" },
        { { { "stored", "bar.sync 0;\nld.global.nc.u32 %r5, [%mine];" } },
          "bytes that this block" },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char text[MAX_TEXT];
        grid_run r = { .text = merge };
        run_changed(&r, text, rows[i].edits);
        assert_int_equal(r.report.fault, EMU_RACE);
        if (!strstr(r.message, rows[i].message))
            fail_msg("'%s' does not contain '%s'", r.message, rows[i].message);
    }
}

#define HALF_WARP                                            \
    "st.global.u32 [%mine], %b;\nsetp.lt.u32 %p1, %t, 16;\n" \
    "@%p1 bar.warp.sync 0xffff;\n"                           \
    "@%p0 atom.acq_rel.gpu.global.inc.u32 %r1, [%counter], 4;\n"

/* Block 0 stores the first row; blocks 1 and 2 follow with one thread each. */
#define BLOCKS_0_TO_2                                                \
    "@!%p0 ret;\nsetp.eq.u32 %p1, %b, 0;\nsetp.eq.u32 %p2, %b, 1;\n" \
    "setp.eq.u32 %p3, %b, 2;\n@%p1 st.global.u32 [%rows], 5;\n"

/* Kernels of 5 blocks with 64 threads; line is the line of the fault, 0 = no fault. */
TEST(plain_stores_to_shared_words_race)
{
    static const struct {
        const char *text;
        unsigned line;
        const char *message;
    } rows[] = {
        /* stores to one address: different values, and equal values */
        { GRID_KERNEL("@%p0 st.global.u32 [%out], %b;"), 16,
          "overwrites bytes that block (0, 0, 0)" },
        { GRID_KERNEL("@%p0 st.global.u32 [%out], 7;"), 0, "" },
        /* threads of one block store to one address: in one warp at once, in two warps, after a
         * barrier */
        { GRID_KERNEL("st.global.u32 [%out], 7;"), 0, "" },
        { GRID_KERNEL(
              "and.b32 %r1, %t, 32;\nadd.u32 %r1, %r1, %b;\nmad.wide.u32 %l1, %b, 4, %out;\n"
              "st.global.u32 [%l1], %r1;"),
          19, "overwrites a different value that thread 31 of the block stored at line 19" },
        { GRID_KERNEL("setp.eq.u32 %p1, %t, 9;\nmad.wide.u32 %l1, %b, 4, %out;\n"
                      "@%p0 st.global.u32 [%l1], 1;\n@%p1 st.global.u32 [%l1], 2;"),
          19, "overwrites a different value that thread 0 of the block stored at line 18" },
        { GRID_KERNEL("setp.eq.u32 %p1, %t, 9;\nmad.wide.u32 %l1, %b, 4, %out;\n"
                      "@%p0 st.global.u32 [%l1], 1;\nbar.warp.sync 0xffffffff;\n"
                      "@%p1 st.global.u32 [%l1], 2;"),
          0, "" },
        { GRID_KERNEL("setp.eq.u32 %p1, %t, 40;\nmad.wide.u32 %l1, %b, 4, %out;\n"
                      "@%p0 st.global.u32 [%l1], 1;\nbar.sync 0;\n@%p1 st.global.u32 [%l1], 2;"),
          0, "" },
        { GRID_KERNEL("@%p0 st.relaxed.gpu.global.u32 [%out], %b;"), 0, "" },
        { GRID_KERNEL("@%p0 st.relaxed.cta.global.u32 [%out], %b;"), 16, "overwrites" },
        /* bytes and halves of one word by different blocks */
        { GRID_KERNEL("cvt.u64.u32 %l1, %b;\nadd.u64 %l1, %l1, %out;\n"
                      "@%p0 st.global.u8 [%l1], %b;\nld.global.u8 %r1, [%l1];"),
          0, "" },
        { GRID_KERNEL("mad.wide.u32 %l1, %b, 2, %out;\n@%p0 st.global.u16 [%l1], %b;\n"
                      "bar.sync 0;\nld.global.u8 %r1, [%l1+1];"),
          0, "" },
        { GRID_KERNEL("cvt.u64.u32 %l1, %b;\nadd.u64 %l1, %l1, %out;\n"
                      "@%p0 st.global.u8 [%l1], %b;\nld.global.u32 %r1, [%out];"),
          19, "reads bytes that block (0, 0, 0) stored at line 18" },
        { GRID_KERNEL("@%p0 st.global.u32 [%mine], %b;\n@%p0 st.global.u8 [%mine+4], %b;\n"
                      "ld.global.u32 %r1, [%rows];"),
          18, "reads bytes that block (0, 0, 0) stored at line 16" },
        /* stores that are far apart */
        { GRID_KERNEL("mad.wide.u32 %l1, %b, 2048, %rows;\n@%p0 st.global.u32 [%l1], %b;"), 0, "" },
        /* one wide store over several narrow stores */
        { GRID_KERNEL("mad.wide.u32 %l1, %b, 4, %out;\n@%p0 st.global.u32 [%l1], %b;\n"
                      "setp.eq.and.u32 %p1, %b, 4, %p0;\n"
                      "@%p1 st.global.v4.u32 [%out], {%b, %b, %b, %b};"),
          19, "overwrites bytes that block (0, 0, 0)" },
        /* atomic operations and plain accesses */
        { GRID_KERNEL("red.global.add.u32 [%out], 1;"), 0, "" },
        { GRID_KERNEL("@%p0 red.global.add.u32 [%out], 1;\nld.global.u32 %r1, [%out];"), 0, "" },
        { GRID_KERNEL("setp.eq.u32 %p1, %b, 4;\n@%p1 ld.global.u32 %r1, [%out];\n"
                      "red.global.add.u32 [%out], 1;"),
          17, "reads bytes that block (0, 3, 0) stored atomically at line 18" },
        /* the first load of an atom.cas loop, plain and strong */
        { GRID_KERNEL("ld.global.u32 %r1, [%out];\n$try:\nadd.u32 %r2, %r1, 1;\nmov.u32 %r3, %r1;\n"
                      "atom.global.cas.b32 %r1, [%out], %r3, %r2;\nsetp.ne.u32 %p1, %r1, %r3;\n"
                      "@%p1 bra $try;"),
          16, "reads bytes that block (0, 0, 0) stored atomically at line 20" },
        { GRID_KERNEL("ld.relaxed.gpu.global.u32 %r1, [%out];\n$try:\nadd.u32 %r2, %r1, 1;\n"
                      "mov.u32 %r3, %r1;\natom.global.cas.b32 %r1, [%out], %r3, %r2;\n"
                      "setp.ne.u32 %p1, %r1, %r3;\n@%p1 bra $try;"),
          0, "" },
        { GRID_KERNEL("setp.eq.and.u32 %p0, %b, 0, %p0;\n@%p0 st.global.u32 [%out], 0;\n"
                      "red.global.add.u32 [%out], 1;"),
          18, "updates bytes that block (0, 0, 0) stored at line 17" },
        { GRID_KERNEL("red.relaxed.cta.global.add.u32 [%out], 1;"), 16, "updates" },
        /* a lock, released by a store */
        { GRID_KERNEL("@!%p0 ret;\natom.acquire.gpu.global.cas.b32 %r1, [%counter], 0, 1;\n"
                      "ld.global.u32 %r2, [%out];\nst.global.u32 [%out], %b;\n"
                      "st.release.gpu.global.u32 [%counter], 0;"),
          0, "" },
        { GRID_KERNEL("@!%p0 ret;\natom.relaxed.gpu.global.cas.b32 %r1, [%counter], 0, 1;\n"
                      "ld.global.u32 %r2, [%out];\nst.global.u32 [%out], %b;\n"
                      "st.release.gpu.global.u32 [%counter], 0;"),
          18, "without .acquire" },
        { GRID_KERNEL("@!%p0 ret;\natom.acquire.gpu.global.cas.b32 %r1, [%counter], 0, 1;\n"
                      "ld.global.u32 %r2, [%out];\nst.global.u32 [%out], %b;\n"
                      "st.relaxed.gpu.global.u32 [%counter], 0;"),
          18, "acquired no release" },
        /* release is transitive: each block acquires from its predecessor and releases to its
         * successor */
        { GRID_KERNEL("@!%p0 ret;\nst.global.u32 [%mine], %b;\n"
                      "mad.wide.u32 %l1, %b, 4, %out;\nsetp.gt.u32 %p1, %b, 0;\n"
                      "@%p1 ld.acquire.gpu.global.u32 %r1, [%l1+-4];\n"
                      "st.release.gpu.global.u32 [%l1], 1;\n@%p1 ld.global.u32 %r2, [%rows];"),
          0, "" },
        { GRID_KERNEL("@!%p0 ret;\nst.global.u32 [%mine], %b;\n"
                      "mad.wide.u32 %l1, %b, 4, %out;\nsetp.gt.u32 %p1, %b, 0;\n"
                      "@%p1 ld.acquire.gpu.global.u32 %r1, [%l1+-4];\n"
                      "st.relaxed.gpu.global.u32 [%l1], 1;\n@%p1 ld.global.u32 %r2, [%rows];"),
          22, "acquired no release" },
        /* a store ends a release sequence, even by a thread that has acquired it */
        { GRID_KERNEL(BLOCKS_0_TO_2 "@%p1 st.release.gpu.global.u32 [%counter], 1;\n"
                                    "@%p2 ld.acquire.gpu.global.u32 %r1, [%counter];\n"
                                    "@%p2 st.relaxed.gpu.global.u32 [%counter], 2;\n"
                                    "@%p3 ld.acquire.gpu.global.u32 %r1, [%counter];\n"
                                    "@%p3 ld.global.u32 %r2, [%rows];"),
          25, "acquired no release" },
        { GRID_KERNEL(BLOCKS_0_TO_2 "@%p1 st.release.gpu.global.u32 [%counter], 1;\n"
                                    "@%p2 atom.relaxed.gpu.global.add.u32 %r1, [%counter], 2;\n"
                                    "@%p3 ld.acquire.gpu.global.u32 %r1, [%counter];\n"
                                    "@%p3 ld.global.u32 %r2, [%rows];"),
          0, "" },
        /* a fence passes on acquires before it, and no acquires after it */
        { GRID_KERNEL(BLOCKS_0_TO_2 "@%p1 st.release.gpu.global.u32 [%counter], 1;\n"
                                    "@%p2 ld.acquire.gpu.global.u32 %r1, [%counter];\n"
                                    "@%p2 membar.gl;\n"
                                    "@%p2 st.relaxed.gpu.global.u32 [%counter+8], 1;\n"
                                    "@%p3 ld.acquire.gpu.global.u32 %r1, [%counter+8];\n"
                                    "@%p3 ld.global.u32 %r2, [%rows];"),
          0, "" },
        { GRID_KERNEL(BLOCKS_0_TO_2 "@%p1 st.release.gpu.global.u32 [%counter], 1;\n"
                                    "@%p2 membar.gl;\n"
                                    "@%p2 ld.acquire.gpu.global.u32 %r1, [%counter];\n"
                                    "@%p2 st.relaxed.gpu.global.u32 [%counter+8], 1;\n"
                                    "@%p3 ld.acquire.gpu.global.u32 %r1, [%counter+8];\n"
                                    "@%p3 ld.global.u32 %r2, [%rows];"),
          26, "acquired no release that follows the store" },
        { GRID_KERNEL(BLOCKS_0_TO_2 "@%p1 st.release.gpu.global.u32 [%counter], 1;\n"
                                    "@%p2 membar.gl;\n"
                                    "@%p2 ld.acquire.gpu.global.u32 %r1, [%counter];\n"
                                    "@%p2 membar.gl;\n"
                                    "@%p2 st.relaxed.gpu.global.u32 [%counter+8], 1;\n"
                                    "@%p3 ld.acquire.gpu.global.u32 %r1, [%counter+8];\n"
                                    "@%p3 ld.global.u32 %r2, [%rows];"),
          0, "" },
        /* acquires of another thread of the block, without a barrier and after a barrier */
        { GRID_KERNEL("setp.eq.and.u32 %p1, %b, 0, %p0;\n@%p1 st.global.u32 [%rows], 5;\n"
                      "@%p1 st.release.gpu.global.u32 [%counter], 1;\n"
                      "setp.eq.and.u32 %p2, %b, 1, %p0;\n"
                      "@%p2 ld.acquire.gpu.global.u32 %r1, [%counter];\n"
                      "setp.eq.u32 %p3, %t, 32;\nsetp.eq.and.u32 %p4, %b, 1, %p3;\n"
                      "@%p4 st.release.gpu.global.u32 [%counter+8], 1;\n"
                      "setp.eq.and.u32 %p5, %b, 2, %p0;\n"
                      "@%p5 ld.acquire.gpu.global.u32 %r1, [%counter+8];\n"
                      "@%p5 ld.global.u32 %r2, [%rows];"),
          26, "acquired no release that follows the store" },
        { GRID_KERNEL("setp.eq.and.u32 %p1, %b, 0, %p0;\n@%p1 st.global.u32 [%rows], 5;\n"
                      "@%p1 st.release.gpu.global.u32 [%counter], 1;\n"
                      "setp.eq.and.u32 %p2, %b, 1, %p0;\n"
                      "@%p2 ld.acquire.gpu.global.u32 %r1, [%counter];\n"
                      "setp.eq.u32 %p3, %t, 32;\nsetp.eq.and.u32 %p4, %b, 1, %p3;\nbar.sync 0;\n"
                      "@%p4 st.release.gpu.global.u32 [%counter+8], 1;\n"
                      "setp.eq.and.u32 %p5, %b, 2, %p0;\n"
                      "@%p5 ld.acquire.gpu.global.u32 %r1, [%counter+8];\n"
                      "@%p5 ld.global.u32 %r2, [%rows];"),
          0, "" },
        /* a release to the counter after its acquire is not passed on by the acquiring thread */
        { GRID_KERNEL("setp.eq.u32 %p1, %t, 0;\nsetp.eq.u32 %p2, %t, 32;\n"
                      "setp.eq.and.u32 %p3, %b, 1, %p1;\nsetp.eq.and.u32 %p4, %b, 1, %p2;\n"
                      "setp.eq.and.u32 %p5, %b, 2, %p1;\n"
                      "@%p3 atom.acq_rel.gpu.global.add.u32 %r1, [%counter], 1;\n"
                      "@%p3 st.release.gpu.global.u32 [%counter+8], 1;\n"
                      "bar.sync 0;\n@%p4 st.global.u32 [%rows], 5;\n"
                      "@%p4 atom.acq_rel.gpu.global.add.u32 %r1, [%counter], 1;\n"
                      "@%p5 ld.acquire.gpu.global.u32 %r1, [%counter+8];\n"
                      "@%p5 ld.global.u32 %r2, [%rows];"),
          27, "acquired no release that follows the store" },
        /* flags of one byte in one word, and of half a word */
        { GRID_KERNEL("@!%p0 ret;\nst.global.u32 [%mine], %b;\ncvt.u64.u32 %l1, %b;\n"
                      "add.u64 %l1, %l1, %counter;\nst.release.gpu.global.u8 [%l1], 1;\n"
                      "setp.ne.u32 %p1, %b, 4;\n@%p1 ret;\n"
                      "ld.acquire.gpu.global.u8 %r1, [%counter+1];\n"
                      "ld.acquire.gpu.global.u8 %r1, [%counter+3];\n"
                      "ld.global.u32 %r2, [%rows+256];\nld.global.u32 %r2, [%rows+768];"),
          0, "" },
        { GRID_KERNEL("@!%p0 ret;\nst.global.u32 [%mine], %b;\nmembar.gl;\n"
                      "mad.wide.u32 %l1, %b, 2, %counter;\nst.volatile.global.u16 [%l1], 1;\n"
                      "setp.ne.u32 %p1, %b, 4;\n@%p1 ret;\n"
                      "ld.volatile.global.v2.u16 {%r1, %r2}, [%counter];\nmembar.gl;\n"
                      "ld.global.u32 %r2, [%rows];\nld.global.u32 %r2, [%rows+256];"),
          0, "" },
        { GRID_KERNEL(BLOCKS_0_TO_2 "@%p1 st.release.gpu.global.u8 [%counter], 1;\n"
                                    "@%p2 ld.acquire.gpu.global.u8 %r1, [%counter+1];\n"
                                    "@%p2 ld.global.u32 %r2, [%rows];"),
          23, "acquired no release" },
        /* a byte of a released word was overwritten */
        { GRID_KERNEL(BLOCKS_0_TO_2 "@%p1 st.release.gpu.global.u32 [%counter], 1;\n"
                                    "@%p2 st.relaxed.gpu.global.u8 [%counter+1], 1;\n"
                                    "@%p3 ld.acquire.gpu.global.u8 %r1, [%counter+1];\n"
                                    "@%p3 ld.global.u32 %r2, [%rows];"),
          24, "acquired no release" },
        { GRID_KERNEL(BLOCKS_0_TO_2 "@%p1 st.release.gpu.global.u32 [%counter], 1;\n"
                                    "@%p2 st.relaxed.gpu.global.u8 [%counter+1], 1;\n"
                                    "@%p3 ld.acquire.gpu.global.u32 %r1, [%counter];\n"
                                    "@%p3 ld.global.u32 %r2, [%rows];"),
          0, "" },
        /* the upper word of a released double word */
        { GRID_KERNEL(BLOCKS_0_TO_2 "mov.u64 %l1, 1;\n"
                                    "@%p1 st.release.gpu.global.u64 [%counter], %l1;\n"
                                    "@%p2 ld.acquire.gpu.global.u32 %r1, [%counter+4];\n"
                                    "@%p2 ld.global.u32 %r2, [%rows];"),
          0, "" },
        /* fences of lanes that have not synchronized with the counting lane; and its own, twice */
        { GRID_KERNEL("st.global.u32 [%mine], %b;\nmembar.gl;\n"
                      "@%p0 atom.global.add.u32 %r1, [%counter], 1;\n"
                      "@%p0 ld.global.u32 %r1, [%rows];"),
          0, "" },
        { GRID_KERNEL("st.global.u32 [%mine], %b;\nmembar.gl;\n"
                      "@%p0 atom.global.add.u32 %r1, [%counter], 1;\n"
                      "@%p0 ld.global.u32 %r1, [%rows+4];"),
          19, "reads bytes that block (0, 0, 0) stored at line 16" },
        { GRID_KERNEL("@!%p0 ret;\nmembar.gl;\nred.global.add.u32 [%counter], 1;\n"
                      "st.global.u32 [%mine], %b;\nmembar.gl;\n"
                      "atom.global.add.u32 %r1, [%counter], 1;\nld.global.u32 %r2, [%rows];"),
          0, "" },
        /* lanes that have synchronized with the releasing lane, and lanes that have not */
        { GRID_KERNEL(HALF_WARP "@%p0 ld.global.u32 %r1, [%rows+60];"), 0, "" },
        { GRID_KERNEL(HALF_WARP "@%p0 ld.global.u32 %r1, [%rows+64];"), 20,
          "reads bytes that block (0, 0, 0) stored at line 16" },
        /* a copy to shared memory is a load */
        { GRID_KERNEL("@%p0 st.global.u32 [%mine], %b;\n"
                      "@%p0 cp.async.ca.shared.global [number], [%rows], 4;"),
          17, "reads bytes that block (0, 0, 0) stored" },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        grid_run r = { .text = rows[i].text };
        run_grid(&r);
        if (r.good != !rows[i].line || r.report.line != rows[i].line ||
            !strstr(r.message, rows[i].message))
            fail_msg("row %zu gives %s, line %u: %s", i, emu_fault_name(r.report.fault),
                     r.report.line, r.message);
    }
}

/* Block b waits for the flag of block b - 1 and sets its own. The flags are rows b and 8192 + b. */
TEST(memory_grows_linearly_with_a_chain_of_blocks)
{
    enum { CHAIN = 4000, MAX_KIB = 256 << 10 };
    struct rusage usage;
    grid_run r = {
        .text = GRID_KERNEL("mad.wide.u32 %l1, %b, 4, %rows;\nst.global.u32 [%l1], %b;\n"
                            "setp.gt.u32 %p1, %b, 0;\n"
                            "@%p1 ld.acquire.gpu.global.u32 %r1, [%l1+32764];\n"
                            "st.release.gpu.global.u32 [%l1+32768], 1;\n"
                            "@%p1 ld.global.u32 %r2, [%rows];\n"
                            "@%p1 ld.global.u32 %r2, [%l1+-4];"),
        .grid = CHAIN,
        .threads = 1,
    };
    run_grid(&r);
    assert_string_equal(r.message, "");
    assert_int_equal(getrusage(RUSAGE_SELF, &usage), 0);
#ifdef __linux__
    assert_true(usage.ru_maxrss < MAX_KIB);
#endif
}

TEST(time_grows_linearly_with_fences_and_atomics)
{
    enum { MAX_SECONDS = 10 };
    clock_t start = clock();
    grid_run r = {
        .text = GRID_KERNEL("mov.u32 %r1, 0;\n$turn:\nmembar.gl;\n"
                            "red.global.add.u32 [%counter], 1;\nred.global.add.u32 [%out], 1;\n"
                            "add.u32 %r1, %r1, 1;\nsetp.lt.u32 %p1, %r1, 200;\n@%p1 bra $turn;"),
        .grid = 2,
        .threads = 1024,
    };
    run_grid(&r);
    assert_string_equal(r.message, "");
    assert_int_equal(r.out[0], 2 * 1024 * 200);
    assert_true((clock() - start) / CLOCKS_PER_SEC < MAX_SECONDS);
}
