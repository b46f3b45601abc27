/* How much ptxas makes of the loops of products on tensor cores: other instructions for each
 * product, and nothing spilled.
 */
#include <stdlib.h>
#include <string.h>

#include "test.h"
#include "bench/machine_code.h"
#include "check/ptxas.h"
#include "generate.h"

/* Of the loop that takes fewest: the one for rows of X that need no powers of two. */
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

static kernel make(arena *a, instance *in, const target *t)
{
    kernel k;
    const char *error;
    arena *scratch = arena_new();
    for (const key *of = in->family->keys; of->name; of++)
        if (!of->required && of->field != KEY_FIELD(shape.m))
            instance_set(in, of, instance_default(in, of));
    in->name = instance_make_name(a, in);
    if (!generate_ptx(a, scratch, in, t, &k, &error))
        fail_msg("%s: %s", in->name, error);
    arena_free(scratch);
    return k;
}

static void check(arena *a, const ptxas *assembler, const char *name, format weights, int64_t m,
                  double most)
{
    const target *t = target_find(name);
    instance in = { .family = family_find(families, "mma_gemm"),
                    .weights = instance_weights_index(weights),
                    .shape = { .k = 4096, .n = 4096, .m = m } };
    kernel k = make(a, &in, t);
    ptxas_result r;
    machine_code code;
    const char *error;
    if (!ptxas_run(a, assembler, k.ptx, k.ptx_length, t, &r, &error))
        fail_msg("%s", error);
    assert_true(r.accepted);
    assert_true(machine_code_read(r.cubin, r.cubin_size, t, &code));
    double others = others_a_product(&code);
    if (getenv("PTXGEN_TEST_FIGURES"))
        print_message("%s, %s: %.2f, %u registers\n", in.name, name, others, r.registers);
    if (others > most)
        fail_msg("%s, %s: %.2f other instructions a product", in.name, name, others);
    if (r.spill_bytes)
        fail_msg("%s, %s: %u bytes spilled", in.name, name, r.spill_bytes);
}

TEST(a_product_takes_few_other_instructions)
{
    static const format weights[] = { FORMAT_Q4_K, FORMAT_Q6_K, FORMAT_Q8_0 };
    static const char *const names[] = { "sm_80", "sm_90" };
    arena *a = arena_new();
    ptxas assembler;
    const char *error;
    if (!ptxas_find(a, NULL, &assembler, &error)) {
        arena_free(a);
        skip();
    }
    for (size_t w = 0; w < sizeof weights / sizeof *weights; w++)
        for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
            check(a, &assembler, names[i], weights[w], 128, 3.0);
            check(a, &assembler, names[i], weights[w], 64, 4.5);
        }
    arena_free(a);
}
