/* Tests the counts of machine code, on instructions made here and on kernels that ptxas assembles.
 */
#include <math.h>
#include <string.h>

#include "test_arena.h"
#include "bench/machine_code.h"
#include "check/ptxas.h"

enum { NO_SCOREBOARD = 7, SIZE_128 = 6 };

typedef struct instruction {
    uint64_t low, high;
} instruction;

static instruction load(uint64_t scoreboard)
{
    return (instruction){ 0x981, (uint64_t)SIZE_128 << 9 | scoreboard << 46 };
}

static instruction use(uint64_t waits)
{
    return (instruction){ 0x223, (uint64_t)NO_SCOREBOARD << 46 | waits << 52 };
}

static memory_use run(const instruction *code, size_t count, bool is_loop)
{
    machine_code m = { .bytes = (const unsigned char *)code, .instructions = count };
    return machine_code_memory(&m, (code_range){ 0, count - 1 }, is_loop);
}

static void expect_trips(memory_use got, double trips)
{
    if (fabs(got.round_trips - trips) > 0)
        fail_msg("%g round trips, expected %g", got.round_trips, trips);
}

TEST(loads_before_the_first_use_are_one_round_trip)
{
    const instruction code[] = { load(0), load(1), load(2), use(1), use(2), use(4) };
    memory_use got = run(code, 6, true);
    assert_int_equal(got.loads, 3);
    assert_int_equal(got.bytes, 48);
    expect_trips(got, 1);
    expect_trips(run(code, 6, false), 1);
}

TEST(a_load_after_a_use_is_another_round_trip)
{
    const instruction code[] = { load(0), use(1), load(0), use(1) };
    expect_trips(run(code, 4, true), 2);
}

TEST(loads_that_share_a_scoreboard_are_waited_for_together)
{
    const instruction code[] = { load(0), use(1), load(0), load(1), use(1), load(1), use(2) };
    expect_trips(run(code, 7, true), 3);
}

TEST(a_load_for_the_next_iteration_adds_no_round_trip)
{
    const instruction code[] = { load(1), use(1), load(0), use(2) };
    expect_trips(run(code, 4, true), 1);
}

/* Returns the machine code of a PTX text. Skips the test if there is no ptxas. */
static machine_code assembled(arena *a, const char *ptx, const char *target_name)
{
    const target *t = target_find(target_name);
    ptxas assembler;
    ptxas_result result;
    machine_code m;
    const char *error;
    if (!ptxas_find(a, NULL, &assembler, &error)) {
        arena_free(a);
        skip();
    }
    assert_true(ptxas_run(a, &assembler, ptx, strlen(ptx), t, &result, &error));
    assert_true(result.accepted);
    assert_true(machine_code_read(result.cubin, result.cubin_size, t, &m));
    return m;
}

ARENA_TEST(a_loop_of_a_cubin_is_found)
{
    static const char ptx[] = ".version 7.0\n.target sm_75\n.address_size 64\n"
                              ".visible .entry sum(.param .u64 y, .param .u64 x, .param .u32 n)\n"
                              "{\n"
                              "    .reg .pred %p;\n    .reg .b32 %r<3>;\n"
                              "    .reg .f32 %f<6>;\n    .reg .b64 %rd<3>;\n"
                              "    ld.param.u64 %rd1, [y];\n    ld.param.u64 %rd2, [x];\n"
                              "    ld.param.u32 %r1, [n];\n    mov.f32 %f5, 0f00000000;\n"
                              "$loop:\n    .pragma \"nounroll\";\n"
                              "    ld.global.v4.f32 {%f1, %f2, %f3, %f4}, [%rd2];\n"
                              "    add.f32 %f1, %f1, %f2;\n    add.f32 %f3, %f3, %f4;\n"
                              "    add.f32 %f5, %f5, %f1;\n    add.f32 %f5, %f5, %f3;\n"
                              "    add.u64 %rd2, %rd2, 16;\n    sub.u32 %r1, %r1, 1;\n"
                              "    setp.ne.u32 %p, %r1, 0;\n    @%p bra $loop;\n"
                              "    st.global.f32 [%rd1], %f5;\n    ret;\n}\n";
    static const char *const names[] = { "sm_75", "sm_80", "sm_90", "sm_100", "sm_120" };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        machine_code m = assembled(a, ptx, names[i]);
        assert_int_equal(m.loop_count, 1);
        assert_int_equal(m.nest, 0);
        memory_use got = machine_code_memory(&m, m.loops[0], true);
        assert_int_equal(got.loads, 1);
        assert_int_equal(got.bytes, 16);
        expect_trips(got, 1);
    }
}

ARENA_TEST(the_longest_loop_that_holds_others_is_found)
{
    static const char ptx[] = ".version 7.0\n.target sm_75\n.address_size 64\n"
                              ".visible .entry sum(.param .u64 y, .param .u32 n)\n"
                              "{\n"
                              "    .reg .pred %p;\n    .reg .b32 %r<5>;\n    .reg .b64 %rd<2>;\n"
                              "    ld.param.u64 %rd1, [y];\n    ld.param.u32 %r1, [n];\n"
                              "    mov.u32 %r2, 0;\n"
                              "$outer:\n    .pragma \"nounroll\";\n    mov.u32 %r3, 0;\n"
                              "$inner:\n    .pragma \"nounroll\";\n"
                              "    ld.global.u32 %r4, [%rd1];\n    st.global.u32 [%rd1+4], %r4;\n"
                              "    add.u32 %r3, %r3, 1;\n    setp.ne.u32 %p, %r3, %r1;\n"
                              "    @%p bra $inner;\n"
                              "    st.global.u32 [%rd1+8], %r3;\n    add.u32 %r2, %r2, 1;\n"
                              "    setp.ne.u32 %p, %r2, %r1;\n    @%p bra $outer;\n"
                              "    ret;\n}\n";
    machine_code m = assembled(a, ptx, "sm_90");
    assert_int_equal(m.loop_count, 1);
    size_t inner = m.loops[0].last - m.loops[0].first + 1;
    assert_true(m.nest >= inner + 4 && m.nest < m.instructions);
}

TEST(bytes_that_are_no_cubin_are_refused)
{
    machine_code m;
    const char bytes[128] = "not an ELF file";
    assert_false(machine_code_read(bytes, sizeof bytes, target_find("sm_80"), &m));
    assert_false(machine_code_read(bytes, 3, target_find("sm_80"), &m));
}
