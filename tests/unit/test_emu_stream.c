/* Overlapping launches of a stream: their results in any order, and the races between them. */
#include "test_arena.h"
#include "test_emu_run.h"

enum { BLOCKS = 3, THREADS = 64, VALUES = BLOCKS * THREADS, BUFFERS = 6, MOST_LAUNCHES = 8 };

/* Kernels NAME(to, from, weights, counter). %to and %weights hold the addresses of the thread's own
 * value. %from holds the address of the opposite value, which another block has stored. Line 1 of a
 * body is body_line lines after line 1 of the report. */
#define STREAM_HEAD ".version 8.0\n.target sm_90\n.address_size 64\n"
#define STREAM_KERNEL(name, body)                                                             \
    ".visible .entry " name "(.param .u64 to, .param .u64 from, .param .u64 weights, "        \
    ".param .u64 counter)\n{\n"                                                               \
    ".reg .pred %p<9>; .reg .b32 %r<20>, %t, %b, %i; .reg .b64 %l<9>, %to, %from, %weights, " \
    "%counter; .shared .align 4 .b8 number[4];\n"                                             \
    "ld.param.u64 %to, [to]; ld.param.u64 %from, [from]; ld.param.u64 %weights, [weights];\n" \
    "ld.param.u64 %counter, [counter]; mov.u32 %t, %tid.x; mov.u32 %b, %ctaid.x;\n"           \
    "mad.lo.u32 %i, %b, 64, %t; mad.wide.u32 %to, %i, 4, %to;\n"                              \
    "mad.wide.u32 %weights, %i, 4, %weights; sub.u32 %r0, 191, %i;\n"                         \
    "mad.wide.u32 %from, %r0, 4, %from; setp.eq.u32 %p0, %t, 0;\n" body "ret;\n}\n"

#define TRIGGER "griddepcontrol.launch_dependents;\n"
#define WAIT    "griddepcontrol.wait;\n"
#define WEIGHT  "ld.global.u32 %r1, [%weights]; //weight\n"
#define LOAD    "ld.global.u32 %r2, [%from]; //load\n"
#define ADD     "mad.lo.u32 %r2, %r2, 3, %r1;\n"
#define STORE   "st.global.u32 [%to], %r2; //store\n"
#define PARTS   TRIGGER WEIGHT WAIT LOAD ADD STORE

/* A launch and the indices of its buffers `to` and `from`. */
typedef struct step {
    const char *entry;
    unsigned to, from;
    bool ordinary; /* without programmatic serialization */
} step;

typedef struct stream_run {
    const char *text;
    step steps[MOST_LAUNCHES];
    uint64_t order;
    unsigned blocks;      /* 0 = BLOCKS */
    bool empty[BUFFERS];  /* the buffer is uninitialized */
    bool shares[BUFFERS]; /* the buffer begins at the middle of the previous buffer */
    /* results */
    bool good;
    emu_report report;
    char message[512];
    uint32_t counter[64];
    uint32_t values[BUFFERS][VALUES];
} stream_run;

static const char *const names[BUFFERS] = { "h", "q", "k", "v", "o", "y" };

static uint32_t first_value(unsigned buffer, unsigned i)
{
    return 1000 * buffer + i;
}

static size_t launch_all(stream_run *r, emu_memory *m, const emu_module *module,
                         const uint64_t *buffers, uint64_t weights, uint64_t counter)
{
    emu_range ranges[BUFFERS];
    for (unsigned i = 0; i < BUFFERS; i++)
        ranges[i] = (emu_range){ names[i], buffers[i], sizeof r->values[i] };
    emu_stream *s = emu_stream_new(
        m, &(emu_stream_config){ .order = r->order, .ranges = ranges, .range_count = BUFFERS });
    size_t count = 0;
    for (const step *p = r->steps; count < MOST_LAUNCHES && p->entry; p++, count++) {
        const void *params[] = { &buffers[p->to], &buffers[p->from], &weights, &counter };
        emu_launch_config config = { .module = module,
                                     .entry = p->entry,
                                     .grid = { r->blocks ? r->blocks : BLOCKS, 1, 1 },
                                     .block = { THREADS, 1, 1 },
                                     .params = params,
                                     .param_count = 4 };
        assert_true(emu_stream_launch(s, &config, !p->ordinary, NULL, &r->report));
    }
    r->good = emu_stream_finish(s, &r->report);
    emu_stream_free(s);
    return count;
}

static void run_stream(stream_run *r)
{
    arena *a = arena_new();
    emu_memory *m = emu_memory_new(NULL);
    uint32_t ones[VALUES];
    uint64_t buffers[BUFFERS];
    memset(r->counter, 0, sizeof r->counter);
    for (unsigned i = 0; i < VALUES; i++)
        ones[i] = 1;
    for (unsigned i = 0; i < BUFFERS; i++) {
        for (unsigned j = 0; j < VALUES; j++)
            r->values[i][j] = first_value(i, j);
        size_t size = sizeof r->values[i] * (i + 1 < BUFFERS && r->shares[i + 1] ? 2 : 1);
        buffers[i] = r->empty[i]    ? emu_alloc(m, size)
                     : r->shares[i] ? buffers[i - 1] + sizeof r->values[i] / 2
                                    : emu_map(m, r->values[i], size, false);
    }
    uint64_t weights = emu_map(m, ones, sizeof ones, true);
    uint64_t counter = emu_map(m, r->counter, sizeof r->counter, false);
    const emu_module *module = emu_load(a, r->text, strlen(r->text), &r->report);
    if (!module)
        fail_msg("line %u: %s", r->report.line, r->report.message);
    launch_all(r, m, module, buffers, weights, counter);
    snprintf(r->message, sizeof r->message, "%s", r->report.message);
    emu_memory_free(m);
    arena_free(a);
}

/* Returns the line, counted from 1 at the start of a kernel, that ends in a mark. */
static unsigned line_of(const char *text, const char *kernel, const char *mark)
{
    char start[64], end[64];
    unsigned line = 1;
    snprintf(start, sizeof start, ".entry %s(", kernel);
    snprintf(end, sizeof end, "//%s\n", mark);
    const char *at = strstr(strstr(text, start), end);
    for (const char *p = text; p < at; p++)
        line += *p == '\n';
    return line;
}

static const char chain[] =
    STREAM_HEAD STREAM_KERNEL("a", PARTS) STREAM_KERNEL("b", WEIGHT WAIT LOAD TRIGGER ADD STORE)
        STREAM_KERNEL("c", WAIT WEIGHT LOAD ADD STORE TRIGGER);

TEST(a_chain_computes_the_same_in_every_order)
{
    for (uint64_t order = 0; order < 60; order++) {
        stream_run r = { .text = chain,
                         .steps = { { "a", 1, 0, true },
                                    { "a", 2, 1, false },
                                    { "b", 3, 2, false },
                                    { "a", 0, 3, false },
                                    { "c", 1, 0, false },
                                    { "a", 4, 1, false },
                                    { "b", 5, 4, false } },
                         .order = order };
        run_stream(&r);
        if (!r.good)
            fail_msg("order %u: %s", (unsigned)order, r.message);
        for (unsigned i = 0; i < VALUES; i++) {
            uint32_t value = first_value(0, VALUES - 1 - i);
            for (int n = 0; n < 7; n++)
                value = 3 * value + 1;
            assert_int_equal(r.values[5][i], value);
        }
    }
}

/* Stores the time, counted in atomic operations, at which each block of a launch reaches one of two
 * places. The time goes to word (2 n + place) * 8 + block of the counters after the first 8 words.
 */
#define STAMP(launch, place)                                          \
    "mov.u32 %r9, 0;\n@%p0 atom.global.add.u32 %r9, [%counter], 1;\n" \
    "add.u32 %r9, %r9, 1;\nmad.wide.u32 %l1, %b, 4, %counter;\n"      \
    "@%p0 st.relaxed.gpu.global.u32 [%l1+" #launch "*64+" #place "*32+32], %r9;\n"
#define STAMPED(name, launch) STREAM_KERNEL(name, STAMP(launch, 0) TRIGGER WAIT STAMP(launch, 1))
static const char stamps[] = STREAM_HEAD STAMPED("a", 0) STAMPED("b", 1) STAMPED("c", 2)
    STREAM_KERNEL("late", STAMP(1, 0) WAIT TRIGGER STAMP(1, 1));

static uint32_t stamp(const stream_run *r, unsigned launch, unsigned place, bool last)
{
    const uint32_t *all = &r->counter[8 + 16 * launch + 8 * place];
    uint32_t found = all[0];
    for (unsigned i = 1; i < BLOCKS; i++)
        found = (all[i] > found) == last ? all[i] : found;
    return found;
}

TEST(launches_overlap_as_early_as_triggers_allow)
{
    stream_run r = { .text = stamps,
                     .steps = { { "a", 0, 0, true }, { "b", 0, 0, false }, { "c", 0, 0, false } } };
    run_stream(&r);
    assert_string_equal(r.message, "");
    assert_true(stamp(&r, 2, 0, true) < stamp(&r, 0, 1, false));
    assert_true(stamp(&r, 0, 1, true) < stamp(&r, 1, 1, false));
    assert_true(stamp(&r, 1, 1, true) < stamp(&r, 2, 1, false));

    r.steps[1].entry = "late"; /* keeps c from starting before a has ended */
    run_stream(&r);
    assert_true(stamp(&r, 1, 0, true) < stamp(&r, 0, 1, false));
    assert_true(stamp(&r, 0, 1, true) < stamp(&r, 2, 0, false));
    assert_true(stamp(&r, 2, 0, true) < stamp(&r, 1, 1, true));
}

TEST(launches_do_not_overlap_by_default)
{
    stream_run r = { .text = stamps,
                     .steps = { { "a", 0, 0, true }, { "b", 0, 0, true }, { "c", 0, 0, false } } };
    for (r.order = 0; r.order < 12; r.order++) {
        run_stream(&r);
        assert_string_equal(r.message, "");
        assert_true(stamp(&r, 0, 1, true) < stamp(&r, 1, 0, false));
        assert_true(r.order % 3 != 1 || stamp(&r, 1, 1, true) < stamp(&r, 2, 0, false));
    }
}

static void assert_right(stream_run *r)
{
    for (r->order = 0; r->order < 24; r->order++) {
        run_stream(r);
        assert_string_equal(r->message, "");
    }
}

/* A kernel and the mark of one of its lines. */
typedef struct doer {
    const char *kernel, *does;
} doer;

/* A stream with a race and the report it must get: both launches, both lines, the buffer and the
 * reason. */
typedef struct planted {
    const char *text;
    step steps[MOST_LAUNCHES];
    doer later, earlier;
    const char *buffer, *why;
    bool shares[BUFFERS], empty[BUFFERS];
} planted;

static void assert_found(const planted *p)
{
    for (uint64_t order = 0; order < 24; order++) {
        stream_run r = { .text = p->text, .order = order };
        char later[64], touches[64], earlier[96], does[64];
        memcpy(r.steps, p->steps, sizeof r.steps);
        memcpy(r.shares, p->shares, sizeof r.shares);
        memcpy(r.empty, p->empty, sizeof r.empty);
        run_stream(&r);
        unsigned line = line_of(p->text, p->later.kernel, p->later.does);
        unsigned other = line_of(p->text, p->earlier.kernel, p->earlier.does);
        snprintf(later, sizeof later, "race between launches: '%s' %ss byte ", p->later.kernel,
                 p->later.does);
        snprintf(touches, sizeof touches, " of '%s' at line %u; '", p->buffer, line);
        snprintf(earlier, sizeof earlier, "; '%s', ", p->earlier.kernel);
        snprintf(does, sizeof does,
                 " before it, %ss it at line %u and may not have finished: ", p->earlier.does,
                 other);
        const char *const parts[] = { later, touches, earlier, does, p->why };
        for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
            if (!strstr(r.message, parts[i]))
                fail_msg("order %u: '%s' is not in '%s'", (unsigned)order, parts[i], r.message);
        assert_int_equal(r.report.fault, EMU_RACE);
        bool at_later = r.report.line == line && r.report.other_line == other &&
                        r.report.launch > r.report.other_launch;
        assert_true(at_later || (r.report.line == other && r.report.other_line == line &&
                                 r.report.launch < r.report.other_launch));
    }
}

#define NO_WAIT "no griddepcontrol.wait precedes the access"

/* b loads what a, its predecessor, stores to q. */
#define A_THEN_B         \
    { "a", 1, 0, true }, \
    {                    \
        "b", 2, 1, false \
    }
#define B_LOADS_WHAT_A_STORES .later = { "b", "load" }, .buffer = "q", .earlier = { "a", "store" }

static const char no_wait[] =
    STREAM_HEAD STREAM_KERNEL("a", PARTS) STREAM_KERNEL("b", TRIGGER WEIGHT LOAD ADD STORE);

TEST(a_wait_that_is_missing_is_found)
{
    assert_found(&(planted){
        .text = no_wait, .steps = { A_THEN_B }, B_LOADS_WHAT_A_STORES, .why = NO_WAIT });
}

TEST(a_wait_that_comes_too_late_is_found)
{
    static const char text[] = STREAM_HEAD STREAM_KERNEL("a", PARTS)
        STREAM_KERNEL("b", TRIGGER WEIGHT LOAD WAIT ADD STORE);
    assert_found(
        &(planted){ .text = text, .steps = { A_THEN_B }, B_LOADS_WHAT_A_STORES, .why = NO_WAIT });
}

/* b may not rely on stores before the trigger, either: a trigger makes nothing visible. */
TEST(a_trigger_makes_no_store_visible)
{
    static const char text[] = STREAM_HEAD STREAM_KERNEL("a", WAIT WEIGHT LOAD ADD TRIGGER STORE)
        STREAM_KERNEL("b", LOAD "mov.u32 %r1, 0;\n" ADD STORE)
            STREAM_KERNEL("early", WAIT WEIGHT LOAD ADD STORE TRIGGER);
    planted p = { .text = text, .steps = { A_THEN_B }, B_LOADS_WHAT_A_STORES, .why = NO_WAIT };
    assert_found(&p);
    p.steps[0].entry = p.earlier.kernel = "early";
    assert_found(&p);
}

/* b stores to a buffer that a may still read: the buffer is the second half of another buffer. */
TEST(buffers_that_share_memory_while_both_live_are_found)
{
    static const char text[] = STREAM_HEAD STREAM_KERNEL("a", PARTS)
        STREAM_KERNEL("b", TRIGGER WEIGHT "mov.u32 %r2, 5;\n" STORE WAIT);
    assert_found(&(planted){ .text = text,
                             .steps = { { "a", 1, 4, true }, { "b", 5, 1, false } },
                             .shares = { false, false, false, false, false, true },
                             .later = { "b", "store" },
                             .buffer = "y",
                             .earlier = { "a", "load" },
                             .why = NO_WAIT });
}

TEST(two_stores_of_launches_that_overlap_are_found)
{
    assert_found(&(planted){ .text = no_wait,
                             .steps = { { "a", 1, 0, true }, { "b", 1, 2, false } },
                             .later = { "b", "store" },
                             .buffer = "q",
                             .earlier = { "a", "store" },
                             .why = NO_WAIT });
}

/* c waits for b, but b has ended without waiting for a. */
TEST(a_wait_for_a_launch_that_has_not_waited_is_found)
{
    static const char text[] = STREAM_HEAD STREAM_KERNEL("a", PARTS)
        STREAM_KERNEL("b", TRIGGER WEIGHT) STREAM_KERNEL("c", PARTS);
    planted p = { .text = text,
                  .steps = { { "a", 1, 0, true }, { "b", 2, 3, false }, { "c", 4, 1, false } },
                  .later = { "c", "load" },
                  .buffer = "q",
                  .earlier = { "a", "store" },
                  .why = "the griddepcontrol.wait before it covers launches up to 'b', which ends "
                         "without waiting" };
    assert_found(&p);
    p.steps[1].ordinary = true; /* b is an ordinary launch after a */
    stream_run r = { .text = text };
    memcpy(r.steps, p.steps, sizeof r.steps);
    assert_right(&r);
}

/* b triggers before it waits, so c overlaps with a. */
TEST(a_race_across_three_launches_is_found)
{
    static const char text[] = STREAM_HEAD STREAM_KERNEL("a", PARTS)
        STREAM_KERNEL("b", TRIGGER WEIGHT WAIT) STREAM_KERNEL("b_late", WEIGHT WAIT TRIGGER)
            STREAM_KERNEL("c", WEIGHT "mov.u32 %r2, 5;\n" STORE WAIT);
    planted p = { .text = text,
                  .steps = { { "a", 1, 0, true }, { "b", 2, 3, false }, { "c", 0, 4, false } },
                  .later = { "c", "store" },
                  .buffer = "h",
                  .earlier = { "a", "load" },
                  .why = NO_WAIT };
    assert_found(&p);
    p.steps[1].entry = "b_late"; /* has waited for a when c starts */
    stream_run r = { .text = text };
    memcpy(r.steps, p.steps, sizeof r.steps);
    assert_right(&r);
}

/* A load that precedes the first store to a buffer must be reported as a race only, not as
 * uninitialized memory. */
TEST(a_load_before_the_first_store_is_a_race)
{
    planted p = { .text = no_wait,
                  .steps = { A_THEN_B },
                  .empty = { false, true, true },
                  B_LOADS_WHAT_A_STORES,
                  .why = NO_WAIT };
    assert_found(&p);
    stream_run r = { .text = no_wait, .empty = { false, false, false, true } };
    memcpy(r.steps, p.steps, sizeof r.steps);
    r.steps[1].from = 3; /* a buffer without stores */
    for (r.order = 0; r.order < 6; r.order++) {
        run_stream(&r);
        assert_int_equal(r.report.fault, EMU_UNINITIALISED);
        assert_int_equal(r.report.line, line_of(no_wait, "b", "load"));
        assert_int_equal(r.report.launch, 1);
    }
}

/* One warp waits; the other warp inherits the wait through a barrier. */
#define FIRST_WARP_WAITS "setp.lt.u32 %p1, %t, 32;\n@%p1 griddepcontrol.wait;\n"
TEST(a_barrier_passes_a_wait_to_other_warps)
{
    static const char good[] = STREAM_HEAD STREAM_KERNEL("a", PARTS)
        STREAM_KERNEL("b", TRIGGER WEIGHT FIRST_WARP_WAITS "bar.sync 0;\n" LOAD ADD STORE);
    static const char bad[] = STREAM_HEAD STREAM_KERNEL("a", PARTS)
        STREAM_KERNEL("b", TRIGGER WEIGHT FIRST_WARP_WAITS LOAD ADD STORE);
    assert_right(&(stream_run){ .text = good, .steps = { A_THEN_B } });
    assert_found(
        &(planted){ .text = bad, .steps = { A_THEN_B }, B_LOADS_WHAT_A_STORES, .why = NO_WAIT });
}

/* b loads a buffer with .nc that is stored while b runs. If a had ended before b started, the load
 * would be valid: c starts after a launch that waits before it triggers. */
TEST(ld_nc_after_a_wait_is_found)
{
    static const char text[] = STREAM_HEAD STREAM_KERNEL("a", PARTS)
        STREAM_KERNEL("b", TRIGGER WEIGHT WAIT "ld.global.nc.u32 %r2, [%from]; //load\n" ADD STORE)
            STREAM_KERNEL("between", WAIT TRIGGER);
    planted p = { .text = text,
                  .steps = { A_THEN_B },
                  B_LOADS_WHAT_A_STORES,
                  .why = "a non-coherent load (.nc) need not see stores made since "
                         "its launch began" };
    assert_found(&p);
    stream_run r = { .text = text,
                     .steps = {
                         { "a", 1, 0, true }, { "between", 0, 0, false }, { "b", 2, 1, false } } };
    assert_right(&r);
}

/* A predecessor without a trigger also needs a wait: the end of its blocks does not make their
 * stores visible. */
TEST(a_programmatic_launch_waits_also_for_one_without_a_trigger)
{
    static const char text[] = STREAM_HEAD STREAM_KERNEL("a", WEIGHT LOAD ADD STORE)
        STREAM_KERNEL("b", WEIGHT LOAD ADD STORE);
    assert_found(
        &(planted){ .text = text, .steps = { A_THEN_B }, B_LOADS_WHAT_A_STORES, .why = NO_WAIT });
}

/* The blocks of a launch count themselves. The last block, wherever it was delayed, adds up all
 * stores and resets the counter for the next launch. */
#define MERGE                                                                                   \
    "membar.gl;\nbar.sync 0;\n@%p0 atom.global.inc.u32 %r3, [%counter], 2;\n"                   \
    "@%p0 st.shared.u32 [number], %r3;\nbar.sync 0;\nld.shared.u32 %r3, [number];\n"            \
    "setp.ne.u32 %p1, %r3, 2;\n@%p1 ret;\nmembar.gl;\nsub.u32 %r4, 0, %i;\nadd.u32 %r4, %r4, "  \
    "%t;\n"                                                                                     \
    "cvt.s64.s32 %l1, %r4;\nshl.b64 %l1, %l1, 2;\nadd.s64 %l1, %l1, %to;\n"                     \
    "ld.global.u32 %r5, [%l1];\nld.global.u32 %r6, [%l1+256];\nld.global.u32 %r7, [%l1+512];\n" \
    "add.u32 %r5, %r5, %r6;\nadd.u32 %r5, %r5, %r7;\nst.global.u32 [%l1], %r5;\n"

TEST(delayed_blocks_may_synchronize_by_atomics)
{
    static const char text[] = STREAM_HEAD STREAM_KERNEL("merge", PARTS MERGE);
    for (uint64_t order = 0; order < 60; order++) {
        stream_run r = { .text = text,
                         .steps = { { "merge", 1, 0, true },
                                    { "merge", 2, 1, false },
                                    { "merge", 3, 2, false } },
                         .order = order };
        static uint32_t first[THREADS];
        run_stream(&r);
        if (!r.good)
            fail_msg("order %u: line %u: %s", (unsigned)order, r.report.line, r.message);
        if (!order)
            memcpy(first, r.values[3], sizeof first);
        assert_memory_equal(r.values[3], first, sizeof first);
    }
}

TEST(a_race_between_blocks_is_found_among_launches_that_overlap)
{
    static const char text[] = STREAM_HEAD STREAM_KERNEL("a", PARTS)
        STREAM_KERNEL("b", PARTS "ld.global.u32 %r3, [%to]; mul.wide.u32 %l1, %t, 4;\n"
                                 "ld.param.u64 %l2, [to]; add.u64 %l2, %l2, %l1;\n"
                                 "st.global.u32 [%l2], %r3; //again\n");
    for (uint64_t order = 0; order < 6; order++) {
        stream_run r = { .text = text, .steps = { A_THEN_B }, .order = order };
        run_stream(&r);
        assert_int_equal(r.report.fault, EMU_RACE);
        assert_int_equal(r.report.launch, 1);
        assert_non_null(strstr(r.message, "overwrites bytes that block"));
    }
}

TEST(a_target_below_sm_90_has_no_dependent_launches)
{
    static const char *const bodies[] = { KERNEL(TRIGGER), KERNEL(WAIT) };
    for (size_t i = 0; i < sizeof bodies / sizeof *bodies; i++) {
        run r = { .text = bodies[i] };
        assert_false(run_kernel(&r));
        assert_int_equal(r.report.fault, EMU_SYNTAX);
        assert_int_equal(r.report.line, BODY_LINE);
        assert_non_null(strstr(r.message, "requires sm_90 or higher; .target is sm_80"));
    }
}

ARENA_TEST(an_entry_reports_if_it_triggers_and_waits)
{
    static const char text[] = STREAM_HEAD STREAM_KERNEL("none", "") STREAM_KERNEL("both", PARTS)
        STREAM_KERNEL("waits", WAIT);
    static const struct {
        const char *name;
        bool triggers, waits;
    } rows[] = { { "none", false, false }, { "both", true, true }, { "waits", false, true } };
    emu_report report;
    const emu_module *m = emu_load(a, text, strlen(text), &report);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        emu_entry_info info;
        assert_true(emu_entry(m, rows[i].name, &info));
        assert_int_equal(info.triggers, rows[i].triggers);
        assert_int_equal(info.waits, rows[i].waits);
    }
}
