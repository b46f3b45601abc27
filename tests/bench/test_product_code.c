/* Checks the machine code that ptxas makes of tensor-core loops: the number of other instructions
 * for each product, or of all for each weight, and no spills. */
#include <stdlib.h>
#include <string.h>

#include "test_arena.h"
#include "bench/machine_code.h"
#include "check/ptxas.h"
#include "kernel/generate.h"
#include "input/spec.h"

/* Returns the other instructions per product of the loop that needs the fewest. This is the loop
 * for rows of x without powers of two, or the loop for tiles of positions without a mask. */
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

/* Returns the instructions per weight of mma_q8's loop, whose turn multiplies a set of 16 rows of 256
 * weights. */
static double all_a_weight(const machine_code *m)
{
    enum { WEIGHTS_OF_LANE = 16 * 256 / 32 };
    size_t most = 0;
    for (size_t i = 0; i < m->loop_count; i++) {
        size_t all = m->loops[i].last - m->loops[i].first + 1;
        if (machine_code_products(m, m->loops[i]) && all > most)
            most = all;
    }
    return most ? (double)most / WEIGHTS_OF_LANE : 1e9;
}

static const double WITHOUT_PRODUCTS = 1e9;

/* Checks that the machine code of a spec's kernel has a figure of at most `most`, and no spills. */
static void check_figure(const ptxas *assembler, const target *t, const char *text,
                         double (*figure)(const machine_code *m), double most)
{
    arena *a = arena_new(), *scratch = arena_new();
    diags d = { .arena = a };
    spec s;
    kernel k;
    ptxas_result r;
    machine_code code;
    const char *error = "the spec has errors";
    if (!spec_parse(a, "test", text, strlen(text), families, NULL, NULL, &s, &d) ||
        !generate_ptx(a, scratch, s.instances, t, &k, &error) ||
        !ptxas_run(a, assembler, k.ptx, k.ptx_length, t, &r, &error))
        fail_msg("%s: %s", text, error);
    const char *name = s.instances->name;
    assert_true(r.accepted);
    assert_true(machine_code_read(r.cubin, r.cubin_size, t, &code));
    double got = figure(&code);
    if (getenv("PTXGEN_TEST_FIGURES"))
        print_message("%s, %s: %.2f, %u registers\n", name, t->name, got, r.registers);
    if (got > most)
        fail_msg("%s, %s: %.2f %s, at most %.2f are allowed", name, t->name, got,
                 figure == all_a_weight ? "instructions per weight"
                                        : "other instructions per product",
                 most);
    if (r.spill_bytes)
        fail_msg("%s, %s: %u bytes spilled", name, t->name, r.spill_bytes);
    arena_free(scratch);
    arena_free(a);
}

static void check(const ptxas *assembler, const target *t, const char *text, double most)
{
    check_figure(assembler, t, text, others_a_product, most);
}

static bool find(arena *a, ptxas *assembler)
{
    const char *error;
    return ptxas_find(a, NULL, assembler, &error);
}

ARENA_TEST(a_product_with_weights_needs_few_other_instructions)
{
    static const char *const weights[] = { "q4_k", "q6_k", "q8_0" };
    static const char *const families_of[] = { "mma_gemm", "mma_gemm_f16" };
    static const char *const names[] = { "sm_80", "sm_90" };
    ptxas assembler;
    if (!find(a, &assembler))
        skip();
    for (size_t w = 0; w < sizeof weights / sizeof *weights; w++)
        for (size_t i = 0; i < 2 * sizeof names / sizeof *names; i++)
            for (int m = 64; m <= 128; m *= 2)
                check(&assembler, target_find(names[i % 2]),
                      arena_format(a, "[%s]\nweights = %s\nshape = 4096x4096\nm = %d\n",
                                   families_of[i / 2], weights[w], m),
                      m == 128 ? 3.0 : 4.5);
}

/* Measured figures, and 5 percent. */
ARENA_TEST(a_weight_of_mma_q8_needs_few_instructions)
{
    static const struct {
        const char *weights;
        int m;
        double most;
    } cases[] = {
        { "q4_k", 8, 1.70 }, { "q4_k", 32, 4.17 }, { "q8_0", 8, 1.45 },  { "q8_0", 32, 3.51 },
        { "q6_k", 8, 2.97 }, { "q6_k", 32, 6.80 }, { "mxfp4", 8, 2.24 }, { "iq4_xs", 8, 2.31 },
    };
    ptxas assembler;
    if (!find(a, &assembler))
        skip();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        check_figure(&assembler, target_find("sm_80"),
                     arena_format(a, "[mma_q8]\nweights = %s\nshape = 4096x4096\nm = %d\n",
                                  cases[i].weights, cases[i].m),
                     all_a_weight, 1.05 * cases[i].most);
}

/* Every format, for few rows, many rows and rows beyond 64, which another loop multiplies. Shared
 * memory has no room for those rows with q2_k. */
ARENA_TEST(mma_q8_spills_no_registers)
{
    static const char *const weights[] = {
        "q4_0",  "q4_1",   "q5_0",   "q5_1",  "q8_0",    "q2_k",   "q3_k",  "q4_k",    "q5_k",
        "q6_k",  "iq4_nl", "iq4_xs", "mxfp4", "iq2_xxs", "iq2_xs", "iq2_s", "iq3_xxs", "iq3_s",
        "iq1_s", "iq1_m",  "tq1_0",  "tq2_0", "nvfp4",   "nf4",    "nf4_h", "q1_0",    "q2_0",
    };
    static const char *const kinds[] = {
        "[mma_q8]\nm = 8\nbias = add\nresidual = add\n",
        "[mma_q8_gate_up]\nm = 64\nbias = add\n",
        "[mma_q8_qkv]\nn_kv = 1024\nm = 64\nbias = add\n",
        "[mma_q8]\nm = 512\nresidual = add\n",
    };
    enum { KINDS = sizeof kinds / sizeof *kinds };
    ptxas assembler;
    if (!find(a, &assembler))
        skip();
    for (size_t w = 0; w < sizeof weights / sizeof *weights; w++)
        for (size_t i = 0; i < KINDS; i++)
            if (test_takes_row(w + i, FOURTH) && (i < 3 || strcmp(weights[w], "q2_k") != 0))
                check_figure(
                    &assembler, target_find("sm_80"),
                    arena_format(a, "%sweights = %s\nshape = 4096x4096\n", kinds[i], weights[w]),
                    all_a_weight, 100);
}

#define HEADS "[mma_attention]\nnum_heads = 8\nnum_kv_heads = 2\nmax_seq_len = 4096\n"

ARENA_TEST(a_product_of_attention_needs_few_other_instructions)
{
    static const char *const names[] = { "sm_80", "sm_90" };
    ptxas assembler;
    if (!find(a, &assembler))
        skip();
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const target *t = target_find(names[i]);
        check(&assembler, t, HEADS "kv_type = f16\nhead_dim = 128\nm = 128\n", 2.5);
        check(&assembler, t, HEADS "kv_type = f16\nhead_dim = 128\nm = 64\n", 2.8);
        check(&assembler, t, HEADS "kv_type = f16\nhead_dim = 64\nm = 128\n", 3.2);
    }
}

/* Specs of a family: each kind combined with each size. */
typedef struct spec_cases {
    const char *head;
    const char *const *kinds, *const *sizes; /* lists of spec lines, ended by NULL */
} spec_cases;

/* Checks that no case spills on sm_80, and on each newer target every `turns`-th case. Only the
 * tier full checks all of these; others check a fourth. */
static void expect_no_spills(arena *a, const spec_cases *c, size_t turns)
{
    size_t number = 0;
    ptxas assembler;
    if (!find(a, &assembler))
        skip();
    for (const char *const *kind = c->kinds; *kind; kind++)
        for (const char *const *size = c->sizes; *size; size++, number++)
            for (size_t t = 0; t < target_count; t++)
                if (targets[t].sm == 80 || (targets[t].sm > 80 && (t + number) % turns == 0 &&
                                            test_takes_row((t + number) / turns, FOURTH)))
                    check(&assembler, &targets[t], arena_format(a, "%s%s%s", c->head, *kind, *size),
                          100);
}

/* The cases that need most registers: long heads, or two fragments per warp, with all options. */
ARENA_TEST(attention_spills_no_registers)
{
    static const char *const sizes[] = { "head_dim = 128\nm = 128\n", "head_dim = 192\nm = 64\n",
                                         "head_dim = 256\nm = 128\n", NULL };
    static const char *const kinds[] = {
        "kv_type = f16\n",
        "kv_type = f16\nwindow = 1000\nring = 1200\nsoftcap = 30\nsinks = add\ngate = sigmoid\n",
        "kv_type = q8_0\nwindow = 1000\nring = 1200\nsoftcap = 30\nsinks = add\ngate = sigmoid\n",
        NULL
    };
    expect_no_spills(a, &(spec_cases){ HEADS, kinds, sizes }, 3);
}

/* The cases of decode attention that need most registers: two sets of heads, or long heads. */
ARENA_TEST(decode_attention_spills_no_registers)
{
    static const char head[] = "[mma_flash_decoding]\nnum_kv_heads = 8\nmax_seq_len = 8k\nm = 8\n";
    static const char *const sizes[] = {
        "head_dim = 64\nnum_heads = 128\n",  "head_dim = 128\nnum_heads = 64\n",
        "head_dim = 128\nnum_heads = 128\n", "head_dim = 192\nnum_heads = 64\n",
        "head_dim = 256\nnum_heads = 64\n",  NULL
    };
    static const char *const kinds[] = {
        "chunking = fixed\nchunk_limit = 32\n",
        "chunking = fixed\nchunk_limit = 32\nstate = settled\n",
        "state = settled\nwindow = 1000\nring = 1200\n",
        "window = 1000\nring = 1200\nsoftcap = 30\nsinks = add\ngate = sigmoid\n", NULL
    };
    expect_no_spills(a, &(spec_cases){ head, kinds, sizes }, 2);
}

ARENA_TEST(sampling_spills_no_registers)
{
    static const char *const texts[] = { "n = 1001\n", "n = 128256\nsoftcap = 30\n",
                                         "n = 1000\nsoftcap = 30\n", "n = 128257\n" };
    enum { TEXTS = sizeof texts / sizeof *texts };
    ptxas assembler;
    if (!find(a, &assembler))
        skip();
    for (size_t t = 0; t < target_count; t++)
        check(&assembler, &targets[t],
              arena_format(a,
                           "[sample]\nm = 8\nhistory = 256\nbiases = 64\nmask = bits\n"
                           "logprobs = 20\n%s",
                           texts[t % TEXTS]),
              WITHOUT_PRODUCTS);
}

/* The cases of expert products that need most registers: formats decoded by grids, with tiles of
 * many rows. */
ARENA_TEST(products_of_experts_spill_no_registers)
{
    static const char *const weights[] = { "iq2_xxs", "iq2_xs", "iq2_s", "iq3_xxs",
                                           "iq3_s",   "iq1_s",  "iq1_m" };
    static const char *const families_of[] = { "mma_expert_gate_up", "mma_expert_down" };
    static const char *const biases[] = { "none", "add" };
    ptxas assembler;
    if (!find(a, &assembler))
        skip();
    for (size_t w = 0; w < sizeof weights / sizeof *weights; w++)
        for (size_t i = 0; i < 4; i++)
            if (test_takes_row(w + i, FOURTH))
                check(&assembler, target_find("sm_80"),
                      arena_format(a,
                                   "[%s]\nweights = %s\nk = 4096\nn = 4096\nexperts = 8\n"
                                   "experts_used = 2\nm = 256\ntile = 128\nbias = %s\n",
                                   families_of[i / 2], weights[w], biases[i % 2]),
                      100);
}

ARENA_TEST(byte_products_of_experts_spill_no_registers)
{
    static const char head[] = "[mma_q8_expert_gate_up]\nk = 2048\nn = 768\nexperts = 8\n"
                               "experts_used = 2\nm = 512\nbias = add\n";
    static const char *const weights[] = { "weights = q4_k\n", "weights = q5_k\n",
                                           "weights = q6_k\n", "weights = iq3_s\n", NULL };
    static const char *const tiles[] = { "tile = 8\n", "tile = 16\n", "tile = 32\n", NULL };
    expect_no_spills(a, &(spec_cases){ head, weights, tiles }, 2);
}
