/* Blocks of a launch on several host threads: all results of a kernel must equal the results on one
 * thread. */
#include <stdlib.h>

#include "test_arena.h"
#include "base/hash.h"
#include "base/strbuf.h"
#include "test_emu_run.h"

enum {
    BLOCKS = 96,
    THREADS = 64,
    REGION = BLOCKS * THREADS * 8,
    IN_WORDS = 4096,
    RANDOM_RUNS = 12
};
static const unsigned thread_counts[] = { 1, 2, 3, 8 };

/* A kernel k(out, in). The work lasts for several rounds of blocks. Its registers:
 * - %out, %in: the parameters
 * - %b, %t: the indices of block and thread
 * - %g: the thread's index in the grid
 * - %mine: the address of the thread's word of out
 * - %p0: true for t = 0
 */
#define THREADS_KERNEL(body)                                                                    \
    PTX_HEAD                                                                                    \
    ".extern .func (.param .b32 r) vprintf (.param .b64 f, .param .b64 a);\n"                   \
    ".extern .func (.param .b64 p) malloc (.param .b64 n);\n"                                   \
    ".global .align 1 .b8 format[10] = {98, 108, 111, 99, 107, 32, 37, 117, 10, 0};\n"          \
    ".visible .entry k(.param .u64 out, .param .u64 in)\n{\n"                                   \
    ".reg .pred %p<10>; .reg .b16 %h<9>; .reg .b32 %r<40>, %t, %b, %g; .reg .b64 %l<20>;\n"     \
    ".reg .b64 %out, %in, %mine; .shared .align 4 .b32 words[64]; .local .align 4 .b32 a[1];\n" \
    "ld.param.u64 %out, [out];\nld.param.u64 %in, [in];\nmov.u32 %t, %tid.x;\n"                 \
    "mov.u32 %b, %ctaid.x;\nmad.lo.u32 %g, %b, 64, %t;\nmad.wide.u32 %mine, %g, 4, %out;\n"     \
    "setp.eq.u32 %p0, %t, 0;\nmov.u32 %r0, 0;\n"                                                \
    "$busy: add.u32 %r0, %r0, 1;\nsetp.lt.u32 %p9, %r0, 1000;\n@%p9 bra $busy;\n" body          \
    "\nret;\n}\n"

/* Ends all blocks except block 70. */
#define ONLY_70 "setp.ne.u32 %p1, %b, 70;\n@%p1 ret;\n"

/* %l9: the address of the thread's own word. Neighbouring threads' words are in different pages, so
 * all blocks store to each page. */
#define SPREAD "mad.lo.u32 %r9, %t, 96, %b;\nmad.wide.u32 %l9, %r9, 4, %out;\n"

/* The share of blocks that must run speculatively on several threads. */
typedef enum wanted_speculation {
    MOST,
    SOME,
    NONE,
    ANY,
} wanted_speculation;

typedef struct kernel_row {
    const char *what, *text;
    wanted_speculation speculated;
    const char *says; /* a substring of the report's message; NULL = no fault */
    bool filled;      /* out is zeroed, else uninitialized */
    bool no_race_check, warns, passes, descending, shared_host;
} kernel_row;

static const kernel_row rows[] = {
    { "each thread stores its own word",
      THREADS_KERNEL("and.b32 %r1, %g, 4095;\nmad.wide.u32 %l1, %r1, 4, %in;\n"
                     "ld.global.u32 %r2, [%l1];\nadd.u32 %r2, %r2, %g;\nst.global.u32 [%mine], "
                     "%r2;"),
      .speculated = MOST },
    { "each thread stores its own word, blocks in descending order",
      THREADS_KERNEL("st.global.u32 [%mine], %g;"), .speculated = MOST, .descending = true },
    { "each thread adds to its own word",
      THREADS_KERNEL("ld.global.u32 %r1, [%mine];\nadd.u32 %r1, %r1, %g;\n"
                     "st.global.u32 [%mine], %r1;"),
      .speculated = MOST, .filled = true },
    { "blocks read back their own stores",
      THREADS_KERNEL("st.global.u32 [%mine], %g;\nbar.sync 0;\nxor.b32 %r1, %g, 63;\n"
                     "mad.wide.u32 %l1, %r1, 4, %out;\nld.global.u32 %r2, [%l1];\nbar.sync 0;\n"
                     "st.global.u32 [%mine], %r2;"),
      .speculated = SOME },
    { "blocks store to different words of the same pages",
      THREADS_KERNEL(SPREAD "st.global.u32 [%l9], %g;"), .speculated = MOST },
    { "blocks add to different words of the same pages",
      THREADS_KERNEL(SPREAD "ld.global.u32 %r1, [%l9];\nadd.u32 %r1, %r1, %g;\n"
                            "st.global.u32 [%l9], %r1;"),
      .speculated = MOST, .filled = true },
    { "pages of several blocks, and one block stores another block's value again",
      THREADS_KERNEL(SPREAD "st.global.u32 [%l9], %t;\n" ONLY_70 "st.global.u32 [%l9+-8], %t;"),
      .speculated = MOST },
    { "pages of several blocks, and one block overwrites another block's word",
      .says = "block (70, 0, 0) overwrites bytes that block (68",
      .text =
          THREADS_KERNEL(SPREAD "st.global.u32 [%l9], %t;\n" ONLY_70 "st.global.u32 [%l9+-8], %b;"),
      .speculated = SOME },
    { "pages of several blocks, and one block loads another block's store",
      THREADS_KERNEL(SPREAD "st.global.u32 [%l9], %g;\n" ONLY_70 "ld.global.u32 %r1, [%l9+-8];"),
      .speculated = SOME, .says = "block (70, 0, 0) reads bytes that block (68, 0, 0) stored" },
    { "pages of several blocks, without race checks",
      THREADS_KERNEL(SPREAD "st.global.u32 [%l9], %g;\n" ONLY_70
                            "ld.global.u32 %r1, [%l9+-8];\nst.global.u32 [%l9], %r1;"),
      .speculated = SOME, .no_race_check = true },
    { "adjacent vectors, halves and bytes",
      THREADS_KERNEL("@!%p0 ret;\nmad.wide.u32 %l1, %b, 32, %out;\nmov.u32 %r1, 7;\n"
                     "st.global.v4.u32 [%l1], {%b, %r1, %b, %r1};\ncvt.u16.u32 %h1, %b;\n"
                     "st.global.u16 [%l1+16], %h1;\nst.global.u8 [%l1+21], %b;\n"
                     "mad.wide.u32 %l2, %b, 1, %out;\nst.global.u8 [%l2+16384], %b;\n"
                     "mad.wide.u32 %l2, %b, 2, %out;\nst.global.u16 [%l2+20480], %h1;"),
      .speculated = MOST },
    { "all blocks store the same value to one address",
      THREADS_KERNEL("mov.u32 %r1, 5;\nst.global.u32 [%out], %r1;"), .speculated = MOST },
    { "one block stores another block's value again",
      .says = "block (70, 0, 0) overwrites bytes that block (20",
      .text = THREADS_KERNEL("setp.eq.u32 %p1, %b, 20;\nsetp.eq.u32 %p2, %b, 70;\n"
                             "or.pred %p1, %p1, %p2;\nand.pred %p1, %p1, %p0;\n"
                             "@%p1 mov.u64 %mine, %out;\n@%p1 add.u64 %mine, %mine, 40000;\n"
                             "st.global.u32 [%mine], %b;"),
      .speculated = SOME },
    { "one block stores two values to one address, the second equal to another block's",
      THREADS_KERNEL("@!%p0 ret;\nsetp.ne.u32 %p1, %b, 70;\n@%p1 bra $two;\n"
                     "mov.u32 %r1, 1;\nst.global.u32 [%out], %r1;\n"
                     "$two: mov.u32 %r1, 2;\nst.global.u32 [%out], %r1;"),
      .speculated = SOME, .says = "block (70, 0, 0) overwrites bytes that" },
    { "a vector store with one word of another block",
      THREADS_KERNEL("@!%p0 ret;\nmov.u32 %r1, 2;\nsetp.eq.u32 %p1, %b, 70;\n"
                     "@%p1 st.global.v2.u32 [%out], {%r1, %b};\n@%p1 ret;\n"
                     "st.global.u32 [%out], %r1;"),
      .speculated = SOME, .says = "block (70, 0, 0) overwrites bytes that" },
    { "one block loads another block's store",
      THREADS_KERNEL("st.global.u32 [%mine], %g;\n" ONLY_70 "ld.global.u32 %r1, [%out+5120];"),
      .speculated = SOME, .says = "block (70, 0, 0) reads bytes that block (20, 0, 0) stored" },
    { "one block loads bytes of another block's stores, by distant lanes",
      THREADS_KERNEL("st.global.u32 [%mine], %g;\n" ONLY_70
                     "mul.lo.u32 %r1, %t, 256;\ncvt.u64.u32 %l1, %r1;\nadd.u64 %l1, %l1, %out;\n"
                     "ld.global.u8 %r1, [%l1];"),
      .speculated = SOME, .says = "block (70, 0, 0) reads bytes that block (0, 0, 0) stored" },
    { "two threads of a block store to one address",
      THREADS_KERNEL("st.global.u32 [%mine], %g;\n" ONLY_70 "st.global.u32 [%out+40000], %t;"),
      .speculated = SOME,
      .says = "overwrites a different value that thread 0 of the block stored" },
    { "ld.global.nc of another block's store",
      THREADS_KERNEL("st.global.u32 [%mine], %g;\n" ONLY_70 "ld.global.nc.u32 %r1, [%mine];"),
      .speculated = SOME, .says = "a non-coherent load (.nc) reads bytes that this block stored" },
    { "uninitialized memory",
      THREADS_KERNEL("st.global.u32 [%mine], %g;\n" ONLY_70 "ld.global.u32 %r1, [%out+40000];"),
      .speculated = SOME, .says = "reads bytes that were never written" },
    { "an address out of bounds in the middle",
      THREADS_KERNEL("st.global.u32 [%mine], %g;\n" ONLY_70
                     "setp.ne.u32 %p1, %t, 33;\n@%p1 ret;\nst.global.u32 [%out+-4], %t;"),
      .speculated = SOME, .says = "is 4 bytes before the start" },
    { "an infinite loop in the middle",
      THREADS_KERNEL("st.global.u32 [%mine], %g;\n" ONLY_70 "$ever: bra $ever;"),
      .speculated = SOME, .says = "does not end" },
    { "a race in shared memory in the middle",
      THREADS_KERNEL("st.global.u32 [%mine], %g;\n" ONLY_70 "st.shared.u32 [words], %t;"),
      .speculated = SOME, .says = "race: 4-byte shared store" },
    { "a block that prints",
      THREADS_KERNEL("st.global.u32 [%mine], %g;\n@!%p0 ret;\nst.local.u32 [a], %b;\n"
                     "{ .param .b64 p; .param .b64 q; .param .b32 r; mov.u64 %l1, format;\n"
                     "mov.u64 %l2, a; cvta.local.u64 %l2, %l2; st.param.b64 [p], %l1;\n"
                     "st.param.b64 [q], %l2; call.uni (r), vprintf, (p, q); }"),
      .speculated = MOST },
    { "each block draws a ticket",
      THREADS_KERNEL("atom.global.add.u32 %r1, [%out], 1;\n"
                     "st.global.u32 [%mine+4096], %r1;"),
      .speculated = NONE, .filled = true },
    { "each block draws a ticket by a generic address",
      THREADS_KERNEL("@!%p0 ret;\natom.add.u32 %r1, [%out], 1;\nst.global.u32 [%mine+4096], %r1;"),
      .speculated = NONE, .filled = true },
    { "the sum of all thread indices by red", THREADS_KERNEL("red.global.add.u32 [%out], %g;"),
      .speculated = MOST, .filled = true },
    { "the sum of all thread indices by atom without its result",
      THREADS_KERNEL("atom.global.add.u32 %r1, [%out], %g;"), .speculated = MOST, .filled = true },
    { "the sum of all thread indices by a generic address",
      THREADS_KERNEL("red.add.u32 [%out], %g;"), .speculated = MOST, .filled = true },
    { "sums of floats in block order",
      THREADS_KERNEL(".reg .f32 %f1; cvt.rn.f32.u32 %f1, %g; rcp.rn.f32 %f1, %f1;\n"
                     "red.global.add.f32 [%out], %f1;\nst.global.u32 [%mine+4096], %g;"),
      .speculated = MOST, .filled = true },
    { "a histogram and a maximum",
      THREADS_KERNEL("mul.lo.u32 %r1, %g, 40503;\nbfe.u32 %r1, %r1, 4, 6;\n"
                     "mad.wide.u32 %l1, %r1, 4, %out;\nred.global.add.u32 [%l1], 1;\n"
                     "red.global.max.u32 [%out+1024], %r1;\n"
                     "cvt.u64.u32 %l2, %g;\nred.global.min.u64 [%out+2048], %l2;"),
      .speculated = MOST, .filled = true },
    { "a flag that one block acquires",
      THREADS_KERNEL("@!%p0 ret;\nadd.u32 %r1, %b, 1;\natom.global.cas.b32 %r2, [%out], 0, %r1;\n"
                     "atom.global.exch.b32 %r3, [%out+64], %r1;"),
      .speculated = MOST, .filled = true },
    { "one block stores to a word that others add to",
      THREADS_KERNEL("setp.ne.u32 %p1, %b, 70;\n@%p1 red.global.add.u32 [%out], 1;\n"
                     "@%p1 ret;\nst.global.u32 [%out], %t;"),
      .speculated = SOME, .filled = true,
      .says = "overwrites bytes that block (69, 0, 0) stored atomically" },
    { "one block loads a word that others add to",
      THREADS_KERNEL("setp.ne.u32 %p1, %b, 70;\n@%p1 red.global.add.u32 [%out], 1;\n"
                     "@%p1 ret;\nld.global.u32 %r1, [%out];\nst.global.u32 [%mine], %r1;"),
      .speculated = SOME, .filled = true,
      .says = "reads bytes that block (69, 0, 0) stored atomically" },
    { "a block adds to another block's store",
      THREADS_KERNEL("setp.eq.u32 %p1, %b, 20;\n@%p1 st.global.u32 [%out+40000], %b;\n" ONLY_70
                     "red.global.add.u32 [%out+40000], 1;"),
      .speculated = SOME, .filled = true,
      .says = "block (70, 0, 0) updates bytes that block (20, 0, 0) stored" },
    { "a block adds to its own store and loads the sum",
      THREADS_KERNEL("@!%p0 ret;\nst.global.u32 [%mine], %b;\nred.global.add.u32 [%mine], 5;\n"
                     "red.global.add.u32 [%out], 1;\nld.global.u32 %r1, [%mine];\n"
                     "st.global.u32 [%mine+4], %r1;"),
      .speculated = ANY, .filled = true, .no_race_check = true },
    { "a block adds to its own store",
      THREADS_KERNEL("@!%p0 ret;\nst.global.u32 [%mine], %b;\nred.global.add.u32 [%mine], 5;"),
      .speculated = MOST },
    { "a block loads a word after adding to it",
      THREADS_KERNEL("@!%p0 ret;\nred.global.add.u32 [%mine], 5;\nld.global.u32 %r1, [%mine];\n"
                     "st.global.u32 [%mine+4], %r1;"),
      .speculated = ANY, .filled = true },
    { "the last block loads a word that all others add to",
      THREADS_KERNEL("ld.global.u32 %r2, [%mine+4096];\nsetp.ne.u32 %p1, %b, 95;\n"
                     "@%p1 red.global.add.u32 [%out], %g;\n@%p1 ret;\n"
                     "ld.global.u32 %r1, [%out];\nst.global.u32 [%mine+4096], %r1;"),
      .speculated = SOME, .filled = true, .no_race_check = true },
    { "a block stores to a word after adding to it",
      THREADS_KERNEL("@!%p0 ret;\nred.global.add.u32 [%mine], 5;\nst.global.u32 [%mine], %b;\n"
                     "red.global.add.u32 [%mine], 5;"),
      .speculated = ANY, .filled = true, .no_race_check = true },
    { "adding to uninitialized memory",
      THREADS_KERNEL("@%p0 st.global.u32 [%mine], %b;\n" ONLY_70
                     "red.global.add.u32 [%out+40000], 1;"),
      .speculated = SOME, .says = "reads bytes that were never written" },
    { "sums with and without release", THREADS_KERNEL("red.release.gpu.global.add.u32 [%out], 1;"),
      .speculated = NONE, .filled = true },
    { "without race checks, the last block loads a sum",
      THREADS_KERNEL("red.global.add.u32 [%out], %g;\nsetp.ne.u32 %p1, %b, 95;\n@%p1 ret;\n"
                     "ld.global.u32 %r1, [%out];\nst.global.u32 [%mine+4096], %r1;"),
      .speculated = SOME, .filled = true, .no_race_check = true },
    { "tickets in shared memory",
      THREADS_KERNEL("@%p0 st.shared.u32 [words], %b;\nbar.sync 0;\n"
                     "atom.shared.add.u32 %r1, [words], 1;\nst.global.u32 [%mine], %r1;"),
      .speculated = MOST },
    { "strong accesses and fences",
      THREADS_KERNEL("ld.volatile.global.u32 %r1, [%out];\nadd.u32 %r1, %r1, 1;\nmembar.gl;\n"
                     "@%p0 st.volatile.global.u32 [%out], %r1;"),
      .speculated = NONE, .filled = true },
    { "a strong load by a generic address",
      THREADS_KERNEL("ld.volatile.u32 %r1, [%out];\nadd.u32 %r1, %r1, %b;\n"
                     "st.global.u32 [%mine+128], %r1;"),
      .speculated = NONE, .filled = true },
    { "byte accesses in words that others store as words",
      .says = "block (70, 0, 0) overwrites bytes that block (20",
      .text = THREADS_KERNEL("@!%p0 ret;\nmad.wide.u32 %l1, %b, 256, %out;\n"
                             "st.global.u32 [%l1], %b;\nsetp.eq.u32 %p1, %b, 20;\n"
                             "setp.eq.u32 %p2, %b, 70;\nor.pred %p1, %p1, %p2;\n@!%p1 ret;\n"
                             "mad.wide.u32 %l1, %b, 1, %out;\n@%p2 add.u64 %l1, %l1, -50;\n"
                             "st.global.u8 [%l1+17972], %b;"),
      .speculated = SOME },
    { "each block allocates",
      THREADS_KERNEL("@!%p0 ret;\n"
                     "{ .param .b64 p; .param .b64 n; mov.u64 %l1, 16;\n"
                     "st.param.b64 [n], %l1; call.uni (p), malloc, (n);\n"
                     "ld.param.b64 %l2, [p]; }\nst.global.u32 [%l2], %b;\n"
                     "mad.wide.u32 %l1, %b, 8, %out;\n"
                     "st.global.u64 [%l1], %l2;"),
      .speculated = NONE },
    { "each block continues from its predecessor",
      THREADS_KERNEL("@!%p0 ret;\nsetp.eq.u32 %p1, %b, 0;\n@%p1 mov.u32 %r1, 1;\n@%p1 bra $on;\n"
                     "ld.global.u32 %r1, [%mine+-256];\n$on: mad.lo.u32 %r1, %r1, 3, 1;\n"
                     "st.global.u32 [%mine], %r1;"),
      .speculated = ANY, .no_race_check = true },
    { "a block continues from the store of the block 50 before it",
      THREADS_KERNEL("st.global.u32 [%mine], %g;\n" ONLY_70
                     "ld.global.u32 %r1, [%mine+-12800];\nadd.u32 %r1, %r1, 1;\n"
                     "st.global.u32 [%mine], %r1;"),
      .speculated = SOME, .no_race_check = true },
    { "only the last block continues",
      THREADS_KERNEL("mad.wide.u32 %l1, %t, 4, %out;\nst.global.u32 [%l1], %b;"),
      .speculated = MOST, .no_race_check = true },
    { "one memory mapped at two addresses",
      THREADS_KERNEL("mad.wide.u32 %l1, %b, 4, %in;\nld.global.u32 %r1, [%l1];\n"
                     "add.u32 %r1, %r1, %b;\nmad.wide.u32 %l1, %b, 4, %out;\n"
                     "@%p0 st.global.u32 [%l1+80], %r1;"),
      .speculated = ANY, .no_race_check = true, .shared_host = true },
    { "warnings about a race, uninitialized memory and an undefined register",
      THREADS_KERNEL("st.global.u32 [%mine], %g;\nrem.u32 %r1, %b, 7;\nsetp.ne.u32 %p1, %r1, 3;\n"
                     "@%p1 ret;\nld.global.u32 %r2, [%out+5120];\nst.global.u32 [%mine], %r2;\n"
                     "ld.global.u32 %r2, [%out+40000];\n@%p0 mov.u32 %r3, %b;\n"
                     "st.global.u32 [%mine+24576], %r3;\nld.shared.u32 %r4, [words];\n"
                     "@%p0 st.shared.u32 [words], %b;\nst.global.u32 [%mine+24576], %r4;"),
      .speculated = SOME, .warns = true },
    { "contents of uninitialized registers and shared memory",
      THREADS_KERNEL("@%p0 mov.u32 %r3, %b;\n@!%p0 add.u32 %r3, %r3, 1;\n"
                     "mul.wide.u32 %l1, %t, 4;\nmov.u64 %l2, words;\nadd.u64 %l1, %l1, %l2;\n"
                     "ld.shared.u32 %r4, [%l1];\nadd.u32 %r4, %r4, %r3;\nst.shared.u32 [%l1], %g;\n"
                     "st.global.u32 [%mine], %r4;"),
      .speculated = MOST, .passes = true },
};

/* All results of a launch. */
typedef struct outcome {
    bool good;
    emu_report report;
    emu_stats stats;
    uint64_t memory, loaded, speculated_blocks;
    strbuf said; /* prints and warnings */
} outcome;

static void hear(void *context, const char *text, size_t length)
{
    strbuf_bytes(&((outcome *)context)->said, text, length);
}

static void hear_warning(void *context, const emu_launch_config *launch, const emu_report *r)
{
    strbuf_format(&((outcome *)context)->said, "%s: line %u, block %u, thread %u: %s\n",
                  launch->entry, r->line, r->block[0], r->thread[0], r->message);
}

/* Returns a hash of a region's bytes, of which bytes are initialized, and of which were written
 * since the start. */
static uint64_t hash_memory(arena *a, const emu_memory *m, uint64_t address)
{
    uint8_t *bytes = arena_alloc(a, (size_t)3 * REGION);
    emu_read(m, address, bytes, REGION);
    for (uint64_t i = 0; i < REGION; i++) {
        bytes[REGION + i] = emu_initialised(m, address + i, 1);
        bytes[2 * REGION + i] = emu_written(m, address + i, 1);
    }
    return fnv1a64(bytes, (size_t)3 * REGION);
}

static outcome run_row(arena *a, const kernel_row *k, unsigned threads)
{
    static uint32_t words[IN_WORDS], host[REGION / 4];
    outcome o = { .said = strbuf_new(a) };
    emu_checks checks = { .warn = hear_warning, .context = &o, .carries = k->warns };
    for (int i = 0; i < EMU_CHECK_COUNT && (k->warns || k->passes); i++)
        checks.actions[i] = k->warns ? EMU_WARNS : EMU_PASSES;
    emu_memory *m = emu_memory_new(NULL);
    for (size_t i = 0; i < IN_WORDS; i++)
        words[i] = (uint32_t)i * 2654435761u;
    memset(host, 0, sizeof host);
    uint64_t out = k->shared_host ? emu_map(m, host, REGION, false) : emu_alloc(m, REGION);
    uint64_t in =
        k->shared_host ? emu_map(m, host, REGION, false) : emu_map(m, words, sizeof words, false);
    if (k->filled)
        emu_fill(m, out, host, 4, REGION / 4);
    emu_clear_written(m, out);
    const void *params[] = { &out, &in };
    emu_module *module = emu_load(a, k->text, strlen(k->text), &o.report);
    if (!module)
        fail_msg("%s: line %u: %s", k->what, o.report.line, o.report.message);
    emu_launch_config config = { .checks = &checks,
                                 .module = module,
                                 .entry = "k",
                                 .grid = { BLOCKS, 1, 1 },
                                 .block = { THREADS, 1, 1 },
                                 .params = params,
                                 .param_count = 2,
                                 .descending = k->descending,
                                 .no_race_check = k->no_race_check,
                                 .instruction_limit = 1 << 20,
                                 .threads = threads,
                                 .speculated_blocks = &o.speculated_blocks,
                                 .print = hear,
                                 .print_context = &o,
                                 .watch = out + 80 };
    o.good = emu_launch(m, &config, &o.stats, &o.report);
    o.report.message = arena_strdup(a, o.report.message);
    o.memory = hash_memory(a, m, out);
    o.loaded = emu_loaded(m, in) + 3 * emu_loaded(m, out);
    emu_memory_free(m);
    return o;
}

static void compare(const char *what, unsigned threads, const outcome *one, const outcome *o)
{
    const emu_report *r = &one->report, *s = &o->report;
    const char *differs =
        o->good != one->good                                             ? "success"
        : s->fault != r->fault || strcmp(s->message, r->message) != 0    ? "fault"
        : s->line != r->line || s->address != r->address                 ? "place"
        : memcmp(s->block, r->block, sizeof s->block) != 0               ? "block"
        : memcmp(s->thread, r->thread, sizeof s->thread) != 0            ? "thread"
        : o->stats.thread_instructions != one->stats.thread_instructions ? "instructions"
        : memcmp(&o->stats, &one->stats, sizeof o->stats) != 0           ? "statistics"
        : o->loaded != one->loaded                                       ? "loaded bytes"
        : strcmp(o->said.text ? o->said.text : "", one->said.text ? one->said.text : "") != 0
            ? "what is said"
        : o->memory != one->memory ? "memory"
                                   : NULL;
    if (differs)
        fail_msg("%s: with %u threads %s differs from one thread's: %s, expected %s", what, threads,
                 differs, s->message, r->message);
}

static void check_speculated(const kernel_row *k, unsigned threads, uint64_t speculated)
{
    uint64_t least = k->speculated == MOST ? BLOCKS * 3 / 4 : k->speculated == SOME ? 12 : 0;
    if (speculated < least || (k->speculated == NONE && speculated))
        fail_msg("%s: %llu blocks ran speculatively on %u threads", k->what,
                 (unsigned long long)speculated, threads);
}

TEST(kernels_give_equal_results_on_any_number_of_threads)
{
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        if (!test_takes_row(i, EACH))
            continue;
        arena *a = arena_new();
        outcome one = run_row(a, &rows[i], 1);
        assert_int_equal(one.speculated_blocks, 0);
        if (rows[i].says ? !strstr(one.report.message, rows[i].says) : !one.good)
            fail_msg("%s: line %u: %s", rows[i].what, one.report.line, one.report.message);
        for (size_t j = 1; j < sizeof thread_counts / sizeof *thread_counts; j++) {
            outcome o = run_row(a, &rows[i], thread_counts[j]);
            compare(rows[i].what, thread_counts[j], &one, &o);
            check_speculated(&rows[i], thread_counts[j], o.speculated_blocks);
        }
        arena_free(a);
    }
}

ARENA_TEST(blocks_print_in_their_order)
{
    strbuf expected = strbuf_new(a);
    for (unsigned b = 0; b < BLOCKS; b++)
        strbuf_format(&expected, "block %u\n", b);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (strcmp(rows[i].what, "a block that prints") == 0)
            assert_string_equal(run_row(a, &rows[i], 3).said.text, expected.text);
}

ARENA_TEST(warnings_are_the_same_on_any_number_of_threads)
{
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (rows[i].warns) {
            outcome o = run_row(a, &rows[i], 3);
            assert_non_null(
                strstr(o.said.text, "race: block (24, 0, 0) reads bytes that block (20"));
            assert_non_null(strstr(o.said.text, "reads bytes that were never written"));
            assert_non_null(strstr(o.said.text, "undefined: register %r3"));
        }
}

static uint32_t draw(uint32_t *state, uint32_t below)
{
    *state = *state * 1664525u + 1013904223u;
    return (*state >> 8) % below;
}

/* Returns a kernel whose threads store, load or add at random addresses, a linear function of
 * block, thread and step. Some addresses collide, most do not. */
static const char *random_kernel(arena *a, uint32_t seed)
{
    uint32_t state = seed;
    strbuf body = strbuf_new(a);
    strbuf_put(&body, "mov.u32 %r9, 0;\n");
    for (int i = 0; i < 6; i++) {
        static const unsigned wide[] = { 8, 16, 32, 64 };
        unsigned bits = wide[draw(&state, 4)];
        bool own = draw(&state, 3) != 0, some = draw(&state, 3) == 0;
        uint32_t by_block = own ? 64 : draw(&state, 70);
        strbuf_format(&body,
                      "mad.lo.u32 %%r1, %%b, %u, %u;\nmad.lo.u32 %%r1, %%t, %u, %%r1;\n"
                      "rem.u32 %%r1, %%r1, %u;\nmad.wide.u32 %%l1, %%r1, %u, %%out;\n",
                      by_block, draw(&state, own ? 1 : 99), own ? 1 : draw(&state, 3), REGION / 8,
                      bits / 8);
        if (some)
            strbuf_format(&body, "setp.eq.u32 %%p1, %%b, %u;\n@%%p1 ", draw(&state, BLOCKS));
        if (bits >= 32 && draw(&state, 4) == 0)
            strbuf_format(&body, "red.global.add.u%u [%%l1], %s;\n", bits,
                          bits == 64 ? "%out" : "%g");
        else if (draw(&state, 2))
            strbuf_format(&body, "ld.global.u%u %s, [%%l1];\n", bits, bits == 64 ? "%l3" : "%r8");
        else
            strbuf_format(&body, "st.global.u%u [%%l1], %s;\n", bits,
                          bits == 64        ? "%out"
                          : draw(&state, 2) ? "%r9"
                                            : "%g");
        if (draw(&state, 3) == 0)
            strbuf_put(&body, "bar.sync 0;\n");
        strbuf_put(&body, "add.u32 %r9, %r9, %r8;\n");
    }
    static const char kernel[] = THREADS_KERNEL("BODY");
    const char *at = strstr(kernel, "BODY");
    return arena_format(a, "%.*s%s%s", (int)(at - kernel), kernel, body.text, at + 4);
}

TEST(random_kernels_give_equal_results_on_any_number_of_threads)
{
    const char *given = getenv("PTXGEN_TEST_SEED");
    uint32_t first = given ? (uint32_t)strtoul(given, NULL, 10) : 1, runs = given ? 1 : RANDOM_RUNS;
    uint64_t speculated = 0, least = 0;
    for (uint32_t seed = first; seed < first + runs; seed++) {
        if (!test_takes_row(seed, EACH))
            continue;
        least += BLOCKS;
        for (int mode = 0; mode < 3; mode++) {
            arena *a = arena_new();
            kernel_row k = { .what = arena_format(a, "seed %u", seed),
                             .text = random_kernel(a, seed),
                             .filled = true,
                             .warns = mode == 1,
                             .passes = mode == 2,
                             .no_race_check = mode == 2 };
            outcome one = run_row(a, &k, 1);
            for (unsigned threads = 2; threads <= 3; threads++) {
                outcome o = run_row(a, &k, threads);
                compare(k.what, threads, &one, &o);
                speculated += o.speculated_blocks;
            }
            arena_free(a);
        }
    }
    assert_true(speculated > least);
}
