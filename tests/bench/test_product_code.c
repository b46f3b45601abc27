/* How much ptxas makes of the loops of products on tensor cores: other instructions for each
 * product, and nothing spilled.
 */
#include <stdlib.h>
#include <string.h>

#include "test_arena.h"
#include "bench/machine_code.h"
#include "check/ptxas.h"
#include "generate.h"
#include "kernel/suite.h"

/* Of the loop that takes fewest: the one for rows of X that need no powers of two, or for tiles of
 * positions that count for all rows. */
static double others_a_product(const machine_code *m)
{
    double fewest = 1e9;
    for (size_t i = 0; i < m->loop_count; i++) {
        size_t products = machine_code_products(m, m->loops[i]);
        size_t all = m->loops[i].last - m->loops[i].first + 1;
        if (products && (double)(all - products) / (double)products < fewest)
            fewest = (double)(all - products) / (double)products;
    }
    return fewest;
}

/* A kernel of an instance that a text says, as ptxas makes it; without more than so many other
 * instructions a product. */
static void check(arena *a, const ptxas *assembler, const target *t, const char *family,
                  const char *text, double most)
{
    arena *run = arena_new();
    instance in;
    kernel k;
    ptxas_result r;
    machine_code code;
    const char *error;
    suite_instance(run, family_find(families, family), text, &in);
    if (!generate_ptx(run, a, &in, t, &k, &error) ||
        !ptxas_run(run, assembler, k.ptx, k.ptx_length, t, &r, &error))
        fail_msg("%s: %s", in.name, error);
    assert_true(r.accepted);
    assert_true(machine_code_read(r.cubin, r.cubin_size, t, &code));
    double others = others_a_product(&code);
    if (getenv("PTXGEN_TEST_FIGURES"))
        print_message("%s, %s: %.2f, %u registers\n", in.name, t->name, others, r.registers);
    if (others > most)
        fail_msg("%s, %s: %.2f other instructions a product", in.name, t->name, others);
    if (r.spill_bytes)
        fail_msg("%s, %s: %u bytes spilled", in.name, t->name, r.spill_bytes);
    arena_free(run);
}

static bool find(arena *a, ptxas *assembler)
{
    const char *error;
    return ptxas_find(a, NULL, assembler, &error);
}

ARENA_TEST(a_product_with_weights_takes_few_other_instructions)
{
    static const char *const weights[] = { "q4_k", "q6_k", "q8_0" };
    static const char *const names[] = { "sm_80", "sm_90" };
    ptxas assembler;
    if (!find(a, &assembler))
        skip();
    for (size_t w = 0; w < sizeof weights / sizeof *weights; w++)
        for (size_t i = 0; i < sizeof names / sizeof *names; i++)
            for (int m = 64; m <= 128; m *= 2)
                check(a, &assembler, target_find(names[i]), "mma_gemm",
                      arena_format(a, "weights=%s k=4096 n=4096 m=%d", weights[w], m),
                      m == 128 ? 3.0 : 4.5);
}

#define HEADS "num_heads=8 num_kv_heads=2 max_seq_len=4096 "

ARENA_TEST(a_product_of_attention_takes_few_other_instructions)
{
    static const char *const names[] = { "sm_80", "sm_90" };
    ptxas assembler;
    if (!find(a, &assembler))
        skip();
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const target *t = target_find(names[i]);
        check(a, &assembler, t, "mma_attention", HEADS "head_dim=128 kv_type=f16 m=128", 2.2);
        check(a, &assembler, t, "mma_attention", HEADS "head_dim=128 kv_type=f16 m=64", 2.8);
        check(a, &assembler, t, "mma_attention", HEADS "head_dim=64 kv_type=f16 m=128", 2.8);
    }
}

/* What takes most registers: long heads, or two parts a warp, with all that a family may do. */
ARENA_TEST(attention_spills_no_registers)
{
    static const char *const options[] = {
        "kv_type=f16 ", "kv_type=f16 window=1000 ring=1200 softcap=30 sinks=add gate=sigmoid ",
        "kv_type=q8_0 window=1000 ring=1200 softcap=30 sinks=add gate=sigmoid "
    };
    static const char *const sizes[] = { "head_dim=128 m=128", "head_dim=192 m=64",
                                         "head_dim=256 m=128" };
    ptxas assembler;
    if (!find(a, &assembler))
        skip();
    for (size_t t = 0; t < target_count; t++)
        for (size_t o = 0; o < sizeof options / sizeof *options; o++)
            for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++)
                if (targets[t].sm == 80 || (targets[t].sm > 80 && (t + o + s) % 3 == 0))
                    check(a, &assembler, &targets[t], "mma_attention",
                          arena_format(a, HEADS "%s%s", options[o], sizes[s]), 100);
}
