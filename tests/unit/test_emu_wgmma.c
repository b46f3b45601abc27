/* wgmma against three nested loops: matrices in each layout of a descriptor, and A in registers.
 * Each way to touch a product in flight must be reported. The layouts are written here as the PTX
 * ISA draws them, by rows of units, independently of the emulator's address computation. */
#include <stdio.h>

#include "expect_ptxas.h"
#include "test_arena.h"
#include "base/strbuf.h"
#include "emu/emu.h"
#include "ref/half.h"
#include "ref/random.h"

enum {
    THREADS = 128,
    ROWS = 64,
    MOST_COLUMNS = 256,
    DEPTH = 16,
    UNIT = 8,          /* values per 16 bytes */
    TILE_A = 64 * 128, /* bytes; room for rows of 128 bytes */
    TILE_B = 256 * 128,
    TILES = TILE_A + TILE_B,
};

typedef enum way { APART, BY_128, BY_64, BY_32 } way;

typedef struct product {
    unsigned columns;
    way a, b;
    bool registers; /* A is in registers */
    bool bfloat, negative, adds;
} product;

static unsigned row_bytes(way w)
{
    static const unsigned bytes[] = { [APART] = 16, [BY_128] = 128, [BY_64] = 64, [BY_32] = 32 };
    return bytes[w];
}

/* Returns the offset of a unit in a tile. Without swizzling, a matrix has 8 rows of one unit, and
 * the matrices of a unit are adjacent. */
static unsigned place(way w, unsigned row, unsigned unit, unsigned rows)
{
    unsigned line = row * row_bytes(w);
    switch (w) {
    case BY_128:
        return line + (unit ^ row % 8) * 16;
    case BY_64:
        return line + (unit ^ row / 2 % 4) * 16;
    case BY_32:
        return line + (unit ^ row / 4 % 2) * 16;
    default:
        return unit * rows * 16 + row * 16;
    }
}

static uint64_t descriptor(way w, unsigned rows)
{
    uint64_t apart = rows, eight = row_bytes(w) * 8u / 16; /* in units of 16 bytes */
    return (uint64_t)w << 62 | eight << 32 | apart << 16;
}

typedef struct matrices {
    int a[ROWS][DEPTH], b[MOST_COLUMNS][DEPTH], c[ROWS][MOST_COLUMNS];
} matrices;

static uint16_t bits_of(int value, bool bfloat)
{
    float number = (float)value;
    uint32_t bits;
    memcpy(&bits, &number, sizeof bits);
    return bfloat ? (uint16_t)(bits >> 16) : half_from_float(number);
}

static void fill(matrices *m, uint8_t tiles[TILES], const product *p)
{
    random_source r = { 11 };
    memset(tiles, 0, TILES);
    for (unsigned k = 0; k < DEPTH; k++) {
        unsigned unit = k / UNIT, behind = k % UNIT * 2;
        for (unsigned i = 0; i < ROWS; i++) {
            m->a[i][k] = (int)random_below(&r, 17) - 8;
            uint16_t bits = bits_of(m->a[i][k], p->bfloat);
            memcpy(tiles + place(p->a, i, unit, ROWS) + behind, &bits, sizeof bits);
        }
        for (unsigned j = 0; j < p->columns; j++) {
            m->b[j][k] = (int)random_below(&r, 17) - 8;
            uint16_t bits = bits_of(m->b[j][k], p->bfloat);
            memcpy(tiles + TILE_A + place(p->b, j, unit, p->columns) + behind, &bits, sizeof bits);
        }
    }
}

/* Returns the initial sum of a register of a thread. */
static int first_sum(unsigned reg, unsigned thread)
{
    return (int)(reg * 3 + thread);
}

static void put_sums(strbuf *out, unsigned columns)
{
    for (unsigned i = 0; i < columns / 2; i++)
        strbuf_format(out, "%s%%f%u", i ? ", " : "{", i);
    strbuf_put(out, "}");
}

/* Variants of the kernel text. */
typedef struct parts {
    bool no_fence, no_proxy, no_wait; /* leave out the instruction */
    const char *behind;               /* text between commit and wait */
    const char *ahead;                /* text between the fence and the product */
    const char *target;
} parts;

/* Returns a kernel that copies the tiles unchanged and stores each thread's registers as
 * [register][thread]. */
static const char *text_of(arena *a, const product *p, const parts *with)
{
    strbuf t = strbuf_new(a);
    strbuf_format(&t,
                  ".version 8.0\n.target %s\n.address_size 64\n"
                  ".extern .shared .align 1024 .b8 tiles[];\n"
                  ".visible .entry k(.param .u64 out, .param .u64 in)\n{\n"
                  ".reg .f32 %%f<160>; .reg .b32 %%r<20>; .reg .b64 %%l<9>; .reg .pred %%p<4>;\n"
                  "ld.param.u64 %%l0, [out];\nld.param.u64 %%l1, [in];\nmov.u32 %%r0, %%tid.x;\n"
                  "mov.u32 %%r1, tiles;\nmov.u32 %%r2, %%r0;\n"
                  "$copy:\nmad.wide.u32 %%l2, %%r2, 16, %%l1;\n"
                  "ld.global.v4.b32 {%%r4, %%r5, %%r6, %%r7}, [%%l2];\n"
                  "mad.lo.u32 %%r3, %%r2, 16, %%r1;\n"
                  "st.shared.v4.b32 [%%r3], {%%r4, %%r5, %%r6, %%r7};\n"
                  "add.u32 %%r2, %%r2, %u;\nsetp.lt.u32 %%p0, %%r2, %u;\n@%%p0 bra $copy;\n",
                  with->target ? with->target : "sm_90a", THREADS, TILES / 16);
    for (unsigned i = 0; i < p->columns / 2; i++)
        strbuf_format(&t, "add.u32 %%r8, %%r0, %u;\ncvt.rn.f32.u32 %%f%u, %%r8;\n", i * 3, i);
    strbuf_format(&t,
                  "%sbar.sync 0;\n"
                  "shr.u32 %%r8, %%r1, 4;\nand.b32 %%r8, %%r8, 0x3fff;\ncvt.u64.u32 %%l3, %%r8;\n"
                  "or.b64 %%l3, %%l3, 0x%llx;\n"
                  "add.u32 %%r9, %%r1, %u;\nshr.u32 %%r9, %%r9, 4;\nand.b32 %%r9, %%r9, 0x3fff;\n"
                  "cvt.u64.u32 %%l4, %%r9;\nor.b64 %%l4, %%l4, 0x%llx;\n",
                  with->no_proxy ? "" : "fence.proxy.async.shared::cta;\n",
                  (unsigned long long)descriptor(p->a, ROWS), TILE_A,
                  (unsigned long long)descriptor(p->b, p->columns));
    if (p->registers) /* rows of 16 bytes; the second unit follows all rows of the first */
        strbuf_format(
            &t, "shr.u32 %%r10, %%r0, 5;\nand.b32 %%r11, %%r0, 31;\nshr.u32 %%r12, %%r11, 2;\n"
                "and.b32 %%r11, %%r11, 3;\nmad.lo.u32 %%r12, %%r10, 16, %%r12;\n"
                "mad.lo.u32 %%r12, %%r12, 16, %%r1;\nmad.lo.u32 %%r12, %%r11, 4, %%r12;\n"
                "ld.shared.b32 %%r13, [%%r12];\nld.shared.b32 %%r14, [%%r12+128];\n"
                "ld.shared.b32 %%r15, [%%r12+1024];\nld.shared.b32 %%r16, [%%r12+1152];\n");
    strbuf_format(&t, "%s%s", with->no_fence ? "" : "wgmma.fence.sync.aligned;\n",
                  with->ahead ? with->ahead : "");
    const char *type = p->bfloat ? "bf16" : "f16";
    strbuf_format(&t, "wgmma.mma_async.sync.aligned.m64n%uk16.f32.%s.%s ", p->columns, type, type);
    put_sums(&t, p->columns);
    strbuf_format(&t, ", %s, %%l4, %d, %d, 1%s, 0;\nwgmma.commit_group.sync.aligned;\n%s%s",
                  p->registers ? "{%r13, %r14, %r15, %r16}" : "%l3", p->adds, p->negative ? -1 : 1,
                  p->registers ? "" : ", 0", with->behind ? with->behind : "",
                  with->no_wait ? "" : "wgmma.wait_group.sync.aligned 0;\n");
    strbuf_put(&t, "mad.wide.u32 %l5, %r0, 4, %l0;\n");
    for (unsigned i = 0; i < p->columns / 2; i++)
        strbuf_format(&t, "st.global.f32 [%%l5+%u], %%f%u;\n", i * THREADS * 4, i);
    strbuf_put(&t, "ret;\n}\n");
    return t.text;
}

static float out[MOST_COLUMNS / 2][THREADS];

static bool run(const char *text, const uint8_t *tiles, unsigned threads, emu_report *report)
{
    static char message[256];
    arena *a = arena_new();
    emu_memory *memory = emu_memory_new(NULL);
    uint64_t addresses[] = { emu_map(memory, out, sizeof out, false),
                             emu_map(memory, (void *)(uintptr_t)tiles, TILES, true) };
    const void *params[] = { &addresses[0], &addresses[1] };
    const emu_module *module = emu_load(a, text, strlen(text), report);
    emu_launch_config config = { .module = module,
                                 .entry = "k",
                                 .grid = { 1, 1, 1 },
                                 .block = { threads, 1, 1 },
                                 .dynamic_shared = TILES,
                                 .params = params,
                                 .param_count = 2 };
    bool good = module && emu_launch(memory, &config, NULL, report);
    snprintf(message, sizeof message, "%s", report->message ? report->message : "");
    report->message = message;
    emu_memory_free(memory);
    arena_free(a);
    return good;
}

static void check(const product *p, const matrices *m)
{
    for (unsigned i = 0; i < p->columns / 2; i++)
        for (unsigned t = 0; t < THREADS; t++) {
            unsigned lane = t % 32;
            unsigned row = t / 32 * 16 + lane / 4 + i / 2 % 2 * 8;
            unsigned column = i / 4 * 8 + lane % 4 * 2 + i % 2;
            int sum = 0;
            for (unsigned k = 0; k < DEPTH; k++)
                sum += m->a[row][k] * m->b[column][k];
            sum = (p->negative ? -sum : sum) + (p->adds ? first_sum(i, t) : 0);
            if ((int)out[i][t] != sum)
                fail_msg("%u columns, ways %u and %u: D[%u][%u] is %g, expected %d", p->columns,
                         p->a, p->b, row, column, (double)out[i][t], sum);
        }
}

static void expect_right(arena *a, const product *p)
{
    static matrices m;
    static uint8_t tiles[TILES];
    emu_report report;
    fill(&m, tiles, p);
    const char *text = text_of(a, p, &(parts){ 0 });
    expect_ptxas_to_take(text, "sm_90a");
    if (!run(text, tiles, THREADS, &report))
        fail_msg("line %u, thread %u: %s\n%s", report.line, report.thread[0], report.message, text);
    check(p, &m);
}

ARENA_TEST(matrices_are_read_in_each_way_that_a_descriptor_names)
{
    for (way left = APART; left <= BY_32; left++)
        for (way right = APART; right <= BY_32; right++)
            expect_right(a, &(product){ .columns = 64, .a = left, .b = right, .adds = true });
}

ARENA_TEST(every_number_of_columns_has_a_product)
{
    for (unsigned columns = 8; columns <= MOST_COLUMNS; columns += columns < 32 ? 8 : 56)
        expect_right(
            a, &(product){ .columns = columns, .a = BY_64, .b = BY_128, .adds = columns % 3 });
}

ARENA_TEST(a_may_be_in_registers_be_negative_and_of_bf16)
{
    for (unsigned i = 0; i < 8; i++)
        expect_right(a, &(product){ .columns = 32,
                                    .b = BY_64,
                                    .registers = i & 1,
                                    .bfloat = i & 2,
                                    .negative = i & 4,
                                    .adds = true });
}

static void expect_fault(arena *a, const parts *with, unsigned threads, emu_fault fault,
                         const char *message)
{
    static matrices m;
    static uint8_t tiles[TILES];
    const product p = { .columns = 16, .a = BY_64, .b = BY_64, .adds = true };
    emu_report report;
    fill(&m, tiles, &p);
    const char *text = text_of(a, &p, with);
    if (run(text, tiles, threads, &report) || report.fault != fault ||
        !strstr(report.message, message))
        fail_msg("%s: %s,, expected %s: %s\n%s", emu_fault_name(report.fault), report.message,
                 emu_fault_name(fault), message, text);
}

ARENA_TEST(a_missing_fence_or_wait_is_found)
{
    expect_fault(a, &(parts){ .no_fence = true }, THREADS, EMU_RACE,
                 "with no wgmma.fence before it");
    expect_fault(a, &(parts){ .no_proxy = true }, THREADS, EMU_RACE,
                 "no fence.proxy.async in between");
    expect_fault(a, &(parts){ .no_wait = true }, THREADS, EMU_RACE, "wait with wgmma.wait_group");
}

ARENA_TEST(accesses_to_a_product_in_flight_are_found)
{
    expect_fault(a,
                 &(parts){ .behind = "setp.eq.u32 %p1, %r0, 0;\n@%p1 st.shared.b32 [%r1], %r0;\n" },
                 THREADS, EMU_RACE,
                 "which an asynchronous copy or wgmma of thread 0 of the block may still read");
    expect_fault(a, &(parts){ .behind = "add.f32 %f3, %f3, %f3;\n" }, THREADS, EMU_RACE,
                 "register %f3 is written while a wgmma that accumulates in it is in flight");
    expect_fault(a, &(parts){ .ahead = "add.f32 %f3, %f3, %f3;\n" }, THREADS, EMU_RACE,
                 "accumulates in register %f3, which was written since the latest wgmma.fence");
}

ARENA_TEST(all_four_warps_must_execute_the_same_wgmma)
{
    expect_fault(a, &(parts){ 0 }, 96, EMU_INACTIVE_LANE, "the block has 3");
    expect_fault(a, &(parts){ .ahead = "setp.lt.u32 %p1, %r0, 64;\n@%p1 add.u64 %l4, %l4, 64;\n" },
                 THREADS, EMU_INACTIVE_LANE, "another one executes that");
    expect_fault(a, &(parts){ .ahead = "setp.eq.u32 %p1, %r0, 5;\n@%p1 add.u64 %l4, %l4, 64;\n" },
                 THREADS, EMU_INACTIVE_LANE, "lane 5 has another one");
}

ARENA_TEST(other_targets_refuse_wgmma)
{
    static const char *const others[] = { "sm_90", "sm_100", "sm_100a" };
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        expect_fault(a, &(parts){ .target = others[i] }, THREADS, EMU_SYNTAX,
                     "requires .target sm_90a");
}
