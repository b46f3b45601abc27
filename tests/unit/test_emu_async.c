/* mbarriers and bulk copies: the phases of an mbarrier and the results of copies. Each way to touch
 * a copy in flight must be reported as a race. */
#include "expect_ptxas.h"
#include "test_emu_bad.h"

enum { LANES = 32 };

/* Two warps, an mbarrier at bar and a tile of 512 bytes; %r1 and %r2 hold their addresses. Thread 0
 * initializes the mbarrier for %r3 arrivals. Two kinds of fence and a barrier follow. */
#define SM90(body)                                                              \
    ".version 8.6\n.target sm_90\n.address_size 64\n"                           \
    ".visible .entry k(.param .u64 out, .param .u64 in)\n{\n"                   \
    ".reg .b32 %r<40>; .reg .b64 %l<9>; .reg .pred %p<9>;\n"                    \
    ".shared .align 128 .b8 tile[512];\n.shared .align 8 .b64 bar[2];\n"        \
    "ld.param.u64 %l0, [out];\nld.param.u64 %l1, [in];\nmov.u32 %r0, %tid.x;\n" \
    "mad.wide.u32 %l2, %r0, 8, %l0;\nmov.u32 %r1, bar;\nmov.u32 %r2, tile;\n"   \
    "mad.lo.u32 %r4, %r0, 4, %r2;\nsetp.eq.u32 %p0, %r0, 0;\n" body "\nret;\n}\n"
#define INIT(count) "@%p0 mbarrier.init.shared.b64 [%r1], " #count ";\n"
#define FENCE       "fence.mbarrier_init.release.cluster;\n"
#define MEET        "bar.sync 0;\n"
#define PROXY       "fence.proxy.async.shared::cta;\n"
#define LOAD                                                                                     \
    "@%p0 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r2], [%l1], 512, " \
    "[%r1];\n"
#define EXPECT "@%p0 mbarrier.arrive.expect_tx.shared.b64 _, [%r1], 512;\n"
#define WAIT(parity)                                                              \
    "$wait" #parity ":\nmbarrier.try_wait.parity.shared.b64 %p1, [%r1], " #parity \
    ";\n@!%p1 bra $wait" #parity ";\n"
#define STORE "cp.async.bulk.global.shared::cta.bulk_group [%l0], [%r2], 512;\n"
#define FILL  "st.shared.b32 [%r4], %r0; st.shared.b32 [%r4+256], %r0;\n"
#define GIVE  "ld.shared.b32 %r10, [%r4];\nst.global.b32 [%l2], %r10;\n"

static uint32_t in[128];

static void start(run *r, const char *text)
{
    for (uint32_t i = 0; i < 128; i++)
        in[i] = 1000 + i;
    expect_ptxas_to_take(text, "sm_90");
    *r = (run){ .text = text, .threads = 64, .in = in, .in_size = sizeof in };
}

static void expect_well(run *r, const char *text)
{
    start(r, text);
    if (!run_kernel(r))
        fail_msg("line %u, thread %u: %s\n%s", r->report.line, r->report.thread[0], r->message,
                 text);
}

static void expect_fault(const char *text, emu_fault fault, const char *message)
{
    static run r;
    start(&r, text);
    if (run_kernel(&r) || r.report.fault != fault || !strstr(r.message, message))
        fail_msg("%s: %s,, expected %s: %s\n%s", emu_fault_name(r.report.fault), r.message,
                 emu_fault_name(fault), message, text);
}

TEST(a_bulk_load_copies_global_memory)
{
    static run r;
    expect_well(&r, SM90(INIT(1) FENCE MEET LOAD EXPECT WAIT(0) GIVE));
    for (int i = 0; i < 64; i++)
        assert_int_equal((uint32_t)r.out[i], 1000 + i);
    assert_int_equal(r.stats.global_load_bytes, 512);
    assert_int_equal(r.stats.global_load_sectors, 16);
}

/* The tile is loaded twice. Between the loads, each thread arrives after it has read. */
TEST(phases_follow_each_other)
{
    static run r;
    expect_well(
        &r, SM90(INIT(1) "@%p0 mbarrier.init.shared.b64 [%r1+8], 64;\n" FENCE MEET LOAD EXPECT WAIT(
                0) "ld.shared.b32 %r11, [%r4];\n"
                   "mbarrier.arrive.shared.b64 %l3, [%r1+8];\n"
                   "$empty:\nmbarrier.test_wait.shared.b64 %p2, [%r1+8], %l3;\n"
                   "@!%p2 bra $empty;\nadd.u64 %l1, %l1, 0;\n" LOAD EXPECT WAIT(
                       1) "ld.shared.b32 %r10, [%r4+256];\nadd.u32 %r10, %r10, %r11;\n"
                          "st.global.b32 [%l2], %r10;\n"));
    for (int i = 0; i < 64; i++)
        assert_int_equal((uint32_t)r.out[i], 2000 + 64 + 2 * i);
}

TEST(a_bulk_store_copies_what_threads_have_stored)
{
    static run r;
    expect_well(&r,
                SM90(FILL PROXY MEET "@!%p0 ret;\n" STORE
                                     "cp.async.bulk.commit_group;\ncp.async.bulk.wait_group 0;\n"));
    for (int i = 0; i < 128; i++)
        assert_int_equal(((const uint32_t *)r.out)[i], i % 64);
    assert_int_equal(r.stats.global_store_bytes, 512);
}

/* cp.async of all threads, with .noinc arrivals or with arrivals that add to the expected count. */
TEST(an_mbarrier_waits_for_what_threads_copy)
{
    static const char *const texts[] = {
#define COPIES(count, arrives)                                                     \
    SM90(INIT(count) MEET "mad.wide.u32 %l3, %r0, 4, %l1;\nxor.b32 %r5, %r4, 4;\n" \
                          "cp.async.ca.shared.global [%r5], [%l3], 4;\n" arrives WAIT(0) GIVE)
        COPIES(64, "cp.async.mbarrier.arrive.noinc.shared.b64 [%r1];\n"),
        COPIES(64, "cp.async.mbarrier.arrive.shared.b64 [%r1];\n"
                   "mbarrier.arrive.shared.b64 %l4, [%r1];\n"),
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        static run r;
        expect_well(&r, texts[i]);
        for (int j = 0; j < 64; j++)
            assert_int_equal((uint32_t)r.out[j], 1000 + (j ^ 1));
    }
}

/* Accesses before an arrival must be ordered before accesses after the wait, by state and by
 * parity. */
TEST(an_mbarrier_orders_threads)
{
    static run r;
    expect_well(&r, SM90(INIT(64) MEET FILL
                         "mbarrier.arrive.shared.b64 %l3, [%r1];\n$wait:\n"
                         "mbarrier.try_wait.shared.b64 %p1, [%r1], %l3;\n@!%p1 bra $wait;\n"
                         "xor.b32 %r4, %r4, 252;\n" GIVE));
    for (int i = 0; i < 64; i++)
        assert_int_equal((uint32_t)r.out[i], i ^ 63);
    /* the states count down: of 64 pending arrivals, each thread takes one; two drop out */
    expect_well(&r,
                SM90(INIT(64) MEET "setp.lt.u32 %p3, %r0, 2;\n"
                                   "@%p3 mbarrier.arrive_drop.shared.b64 %l3, [%r1];\n"
                                   "@!%p3 mbarrier.arrive.shared.b64 %l3, [%r1];\n"
                                   "mbarrier.pending_count.b64 %r10, %l3;\n" WAIT(
                                       0) "@!%p3 mbarrier.arrive.shared.b64 %l3, [%r1];\n@%p3 bra "
                                          "$end;\n" WAIT(1) "$end:\nst.global.b32 [%l2], %r10;\n"));
    uint32_t sum = 0;
    for (int i = 0; i < 64; i++)
        sum += (uint32_t)r.out[i];
    assert_int_equal(sum, 64 * 65 / 2);
}

/* A lane may wait for another lane of its warp, since threads are scheduled independently. */
TEST(lanes_of_a_warp_wait_for_each_other)
{
    static const char *const texts[] = {
#define APART(which, first, second)                                               \
    SM90(INIT(1) MEET "setp." which ".u32 %p2, %r0, 5;\n@%p2 bra $other;\n" first \
                      "bra $end;\n$other:\n" second "$end:\nst.global.b32 [%l2], %r0;\n")
        APART("ne", "mbarrier.arrive.shared.b64 %l3, [%r1];\n", WAIT(0)),
        APART("eq", WAIT(0), "mbarrier.arrive.shared.b64 %l3, [%r1];\n"),
    };
    for (size_t n = 0; n < sizeof texts / sizeof *texts; n++) {
        static run r;
        expect_well(&r, texts[n]);
        for (int i = 0; i < 64; i++)
            assert_int_equal((uint32_t)r.out[i], i);
    }
}

TEST(accesses_to_copies_in_flight_are_found)
{
    expect_fault(SM90(INIT(1) FENCE MEET LOAD EXPECT MEET GIVE), EMU_RACE,
                 "to which a cp.async of thread 0 of the block is in flight");
    expect_fault(SM90(INIT(1) FENCE MEET LOAD EXPECT MEET "st.shared.b32 [%r4], %r0;\n"), EMU_RACE,
                 "is in flight");
    /* tries once and ignores the result */
    expect_fault(SM90(INIT(1) FENCE MEET LOAD EXPECT
                      "mbarrier.try_wait.parity.shared.b64 %p1, [%r1], 0;\n" GIVE),
                 EMU_RACE,
                 "an asynchronous copy wrote; this thread has not waited at its mbarrier");
    /* only warp 0 waits */
    expect_fault(SM90(INIT(1) FENCE MEET LOAD EXPECT MEET
                      "setp.gt.u32 %p2, %r0, 31;\n@%p2 bra $no;\n" WAIT(0) "$no:\n" GIVE),
                 EMU_RACE,
                 "an asynchronous copy wrote; this thread has not waited at its mbarrier");
    /* without expect_tx the phase completes before the copy */
    expect_fault(
        SM90(INIT(1) FENCE MEET LOAD "@%p0 mbarrier.arrive.shared.b64 _, [%r1];\n" WAIT(0) GIVE),
        EMU_RACE, "is in flight");
    /* the copy of the other mbarrier has arrived */
    expect_fault(
        SM90(INIT(1) "@%p0 mbarrier.init.shared.b64 [%r1+8], 1;\n" FENCE MEET
                     "@%p0 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes "
                     "[%r2], [%l1], 256, [%r1];\n"
                     "@%p0 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes "
                     "[%r2+256], [%l1], 256, "
                     "[%r1+8];\n@%p0 mbarrier.arrive.expect_tx.shared.b64 _, [%r1], 256;\n"
                     "@%p0 mbarrier.arrive.expect_tx.shared.b64 _, [%r1+8], 256;\n" WAIT(
                         0) "ld.shared.b32 %r10, [%r4];\nld.shared.b32 %r10, [%r4+256];\n"),
        EMU_RACE, "at byte 384 of 'tile', to which a cp.async of thread 0");
    expect_fault(SM90(FILL PROXY MEET "@!%p0 bra $no;\n" STORE
                                      "cp.async.bulk.commit_group;\n$no:\n" MEET FILL),
                 EMU_RACE,
                 "which an asynchronous copy or wgmma of thread 0 of the block may "
                 "still read");
    expect_fault(SM90("mad.wide.u32 %l3, %r0, 4, %l1;\n" INIT(64) MEET
                      "cp.async.ca.shared.global [%r4], [%l3], 4;\n"
                      "cp.async.mbarrier.arrive.noinc.shared.b64 [%r1];\n" GIVE),
                 EMU_RACE, "is in flight");
}

TEST(insufficient_ordering_is_found)
{
    expect_fault(SM90(FILL MEET "@!%p0 ret;\n" STORE), EMU_RACE, "no fence.proxy.async");
    /* the fence precedes the stores it should order */
    expect_fault(SM90(PROXY FILL MEET "@!%p0 ret;\n" STORE), EMU_RACE, "no fence.proxy.async");
    /* thread 0's fence before the barrier does not order warp 1's stores */
    expect_fault(SM90(FILL "@%p0 fence.proxy.async;\n" MEET "@!%p0 ret;\n" STORE), EMU_RACE,
                 "accesses bytes that thread 32 of the block");
    expect_fault(SM90(FILL PROXY "@!%p0 ret;\n" STORE), EMU_RACE, " of the block wrote");
    expect_fault(SM90(INIT(1) MEET LOAD EXPECT WAIT(0) GIVE), EMU_RACE, "no fence.mbarrier_init");
    expect_fault(SM90(INIT(64) FENCE "mbarrier.arrive.shared.b64 %l3, [%r1];\n"), EMU_RACE,
                 "initialised this mbarrier, with no barrier in between");
    expect_fault(
        SM90(INIT(64) MEET FILL "mbarrier.arrive.relaxed.cta.shared::cta.b64 %l3, [%r1];\n" WAIT(
            0) "xor.b32 %r4, %r4, 252;\n" GIVE),
        EMU_RACE, " of the block wrote");
    expect_fault(SM90(INIT(1) FENCE MEET FILL PROXY LOAD), EMU_RACE, " of the block wrote");
}

TEST(mistakes_with_mbarriers_are_found)
{
    expect_fault(SM90("mbarrier.arrive.shared.b64 %l3, [%r1];\n"), EMU_BARRIER,
                 "there is no initialised mbarrier at shared address");
    expect_fault(SM90(INIT(64) MEET "mbarrier.arrive.shared.b64 %l3, [%r1+4];\n"), EMU_MISALIGNED,
                 "not aligned to 8");
    expect_fault(SM90(INIT(63) MEET "mbarrier.arrive.shared::cta.b64 %l3, [%r1], 64;\n"),
                 EMU_BARRIER,
                 "64 arrivals at an mbarrier that expects only 63 more of 63 in this phase");
    expect_fault(SM90(INIT(65) MEET "mbarrier.arrive.shared.b64 %l3, [%r1];\n" WAIT(0)),
                 EMU_BARRIER,
                 "waits for 1 of 65 arrivals and for 0 bytes, but nothing makes progress");
    expect_fault(SM90(INIT(1) FENCE MEET EXPECT WAIT(0)), EMU_BARRIER,
                 "waits for 0 of 1 arrivals and for 512 bytes");
    expect_fault(SM90(INIT(0)), EMU_BARRIER, "an mbarrier expects 1 to 1048575 arrivals, not 0");
    expect_fault(SM90(INIT(1) INIT(1)), EMU_BARRIER, "mbarrier.inval must come first");
    expect_fault(
        SM90(INIT(1) "@%p0 mbarrier.inval.shared.b64 [%r1];\n" INIT(1) MEET
             "@%p0 mbarrier.inval.shared.b64 [%r1];\nmbarrier.arrive.shared.b64 %l3, [%r1];\n"),
        EMU_BARRIER, "there is no initialised mbarrier");
    expect_fault(SM90(INIT(1) MEET "ld.shared.b64 %l3, [%r1];\n"), EMU_RACE,
                 "accesses an mbarrier");
    expect_fault(SM90(INIT(1) MEET "@%p0 mbarrier.arrive.noComplete.shared.b64 %l3, [%r1], 1;\n"),
                 EMU_BARRIER, ".noComplete completes the phase");
    expect_fault(
        SM90(INIT(1) MEET "@%p0 mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%r1], 1048576;\n"),
        EMU_BARRIER, "the tx-count of an mbarrier has at most 1048575 bytes");
}

TEST(bulk_copies_are_aligned_and_whole)
{
#define COPY(to, from, size)                                                                    \
    SM90("mov.b32 %r5, 24;\n" INIT(1) FENCE MEET                                                \
         "@%p0 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes " to ", " from \
         ", " size ", [%r1];\n")
    expect_fault(COPY("[%r2+8]", "[%l1]", "16"), EMU_MISALIGNED, "is not aligned to 16 bytes");
    expect_fault(COPY("[%r2]", "[%l1+8]", "16"), EMU_MISALIGNED, "is not aligned to 16 bytes");
    expect_fault(COPY("[%r2]", "[%l1]", "%r5"), EMU_MISALIGNED,
                 "24 bytes; the size must be a multiple of 16");
    expect_fault(COPY("[%r2+256]", "[%l1]", "272"), EMU_OUT_OF_BOUNDS, "of 'tile'");
    expect_fault(COPY("[%r2]", "[%l1+256]", "272"), EMU_OUT_OF_BOUNDS, "of an allocation");
    expect_fault(SM90("cp.async.bulk.prefetch.L2.global [%l1+256], 272;\n"), EMU_OUT_OF_BOUNDS,
                 "of an allocation");
    expect_fault(
        SM90(FILL PROXY MEET
             "@!%p0 ret;\ncp.async.bulk.global.shared::cta.bulk_group [%l1], [%r2], 16;\n"),
        EMU_READ_ONLY, "read-only");
    expect_fault(SM90("@!%p0 ret;\n" STORE), EMU_UNINITIALISED, "never written");
    expect_fault(SM90(FILL PROXY MEET "@!%p0 ret;\n" STORE), EMU_RACE,
                 "wait with cp.async.bulk.wait_group");
}
