/* Plans: every launch of a plan is valid, or the plan is refused. */
#include "plan_sample.h"
#include "kernel/formula.h"
#include "kernel/limits.h"

#define HEAD "[decoder]\nlayers = 1\nnum_heads = 4\nhead_dim = 64\nvocab = 8k\nm = 1, 8\n"

/* Eight rows of these lengths exceed a block's shared memory, so they need passes. */
ARENA_TEST(wide_rows_are_staged_in_passes_if_shared_memory_is_small)
{
    static const char *const sections[] = {
        HEAD "hidden = 512\nff = 28672\nweights = q4_k\n",
        HEAD "hidden = 16384\nff = 512\nweights = q6_k\n",
        HEAD "hidden = 512\nweights = q4_k\nexperts = 8\nexperts_used = 2\nexpert_ff = 14336\n",
        HEAD "hidden = 512\nweights = f32\nexperts = 8\nexperts_used = 2\nexpert_ff = 14336\n",
        HEAD "hidden = 512\nweights = q5_0\nexperts = 8\nexperts_used = 2\nexpert_ff = 512\n"
             "shared_ff = 14336\n",
    };
    static const char *const of[] = { "sm_75", "sm_86", "sm_90" };
    for (size_t i = 0; i < sizeof sections / sizeof *sections; i++)
        for (size_t t = 0; t < sizeof of / sizeof *of; t++) {
            const plan *p = right_plan(a, sections[i], of[t]);
            instance made;
            for (size_t k = 0; k < p->kernel_count; k++)
                if (launch_fit(&p->kernels[k], p->targets, 1, &made))
                    fail_msg("%s does not fit all GPUs from %s up", p->kernels[k].name, of[t]);
        }
}

ARENA_TEST(a_kernel_that_exceeds_shared_memory_is_an_error)
{
    diags d = diags_new(a);
    static const char text[] = HEAD "hidden = 1048576\nweights = q4_k\nexperts = 8\n"
                                    "experts_used = 2\nexpert_ff = 512\n";
    assert_null(plan_of(a, text, "sm_75", &cost_model, &d));
    if (!strstr(diags_text(a, &d), "bytes of shared memory per block; sm_75 has "))
        fail_msg("%s", diags_text(a, &d));
}

static void take_three_warps(instance *in, int64_t rows, const target *const *wanted, size_t count)
{
    assert_true(rows >= 1 && count == 1 && wanted[0] == target_find("sm_90"));
    if (family_key(in->family, "num_warps"))
        in->num_warps = 3;
}

static bool is_never_faster(const instance *in, const instance *than, const target *const *wanted,
                            size_t count)
{
    assert_true(in->family != than->family && count == 1 && wanted[0] == target_find("sm_90"));
    return false;
}

static bool is_never_worth(const instance *ahead, const instance *in, const instance *than,
                           int64_t rows, const target *const *wanted, size_t count)
{
    assert_true(!ahead || ahead->shape.m == rows);
    return is_never_faster(in, than, wanted, count);
}

static const plan_model three_warps = { .tune = take_three_warps,
                                        .is_faster = is_never_faster,
                                        .is_worth = is_never_worth };

ARENA_TEST(the_cost_model_chooses_the_kernels)
{
    const plan *p =
        modelled_plan(a, HEAD "hidden = 512\nff = 2048\nweights = f16\n", "sm_90", &three_warps);
    size_t found = 0;
    assert_true(p->model == &three_warps);
    for (size_t k = 0; k < p->kernel_count; k++)
        if (family_key(p->kernels[k].family, "num_warps")) {
            assert_int_equal(p->kernels[k].num_warps, 3);
            assert_non_null(strstr(p->kernels[k].name, "_w3"));
            found++;
        }
    assert_true(found > 4);
}

static size_t count_of(const plan *p, const plan_step *step, const char *family_name)
{
    size_t count = 0;
    for (size_t i = 0; i < step->launch_count; i++)
        count += strcmp(p->kernels[step->launches[i].kernel].family->name, family_name) == 0;
    return count;
}

#define PROMPTS "[decoder]\nlayers = 2\nhidden = 512\nnum_heads = 4\nff = 1024\nvocab = 8k\n"

/* A low-rank q is exact in steps of few rows. */
ARENA_TEST(a_low_rank_q_of_prompts_uses_tensor_cores)
{
    const plan *p = right_plan(
        a,
        "[decoder]\nlayers = 2\nhidden = 64\nff = 96\nnum_heads = 2\nnum_kv_heads = 1\nvocab = 96\n"
        "head_dim = 64\nlatent = 64\nvalue_dim = 32\nrope_dims = 32\nattention_scale = 0.3\n"
        "q_rank = 64\nmax_seq_len = 160\nweights = q8_0\nm = 1, 128\n",
        "sm_80");
    for (size_t s = 0; s < 2; s++) {
        size_t found = 0;
        for (size_t i = 0; i < p->steps[s].launch_count; i++) {
            const plan_launch *l = &p->steps[s].launches[i];
            if (!strstr(l->said, "attn_q_b"))
                continue;
            assert_string_equal(p->kernels[l->kernel].family->name,
                                s ? "mma_gemm_f16" : "mla_query");
            found++;
        }
        assert_int_equal(found, 2);
    }
}

/* Prompt steps use tensor cores for products and attention, and compute the logits of one row.
 * Products of up to 64 rows are of 8-bit integers. */
ARENA_TEST(steps_of_prompts_use_tensor_cores)
{
    const plan *p = right_plan(a, PROMPTS "weights = q4_k\nm = 1, 8, 9, 256\n", "sm_80");
    assert_int_equal(p->rows, 256);
    for (size_t s = 0; s < p->step_count; s++) {
        const plan_step *step = &p->steps[s];
        size_t of_prompts = step->m > 64 ? 2 : 0, others = 2 - of_prompts,
               tiles = step->m > 8 ? 2 : 0;
        assert_int_equal(count_of(p, step, "mma_qkv"), of_prompts);
        assert_int_equal(count_of(p, step, "mma_gate_up_f16"), of_prompts);
        assert_int_equal(count_of(p, step, "mma_gemm_f16"), 2 * of_prompts);
        assert_int_equal(count_of(p, step, "f16_rows"), 4 * of_prompts);
        assert_int_equal(count_of(p, step, "mma_attention"), tiles);
        assert_int_equal(count_of(p, step, "mma_q8_qkv"), others);
        assert_int_equal(count_of(p, step, "mma_q8_gate_up"), others);
        assert_int_equal(count_of(p, step, "mma_q8"), 2 * others + 1);
        assert_int_equal(count_of(p, step, "q8_rows"), 4 * others + 1);
        assert_int_equal(count_of(p, step, "mma_flash_decoding"), 2 - tiles);
        assert_int_equal(step->logits_rows, 1);
    }
}

/* Returns the split-K parts of the launch whose description contains said. */
static int64_t parts_of(const plan *p, const plan_step *step, const char *said)
{
    for (size_t i = 0; i < step->launch_count; i++)
        if (strstr(step->launches[i].said, said))
            return p->kernels[step->launches[i].kernel].splits;
    return -1;
}

/* Products with few tiles are split along k. The number of parts does not depend on the number of
 * rows. */
ARENA_TEST(steps_of_prompts_split_long_products_alike)
{
    const plan *p = right_plan(a,
                               "[decoder]\nlayers = 1\nhidden = 4096\nnum_heads = 32\nff = 14336\n"
                               "vocab = 8k\nweights = q4_k\nm = 8, 65, 512\n",
                               "sm_90");
    assert_int_equal(parts_of(p, &p->steps[0], "ffn_down"), 0);
    for (size_t s = 1; s < p->step_count; s++) {
        assert_int_equal(parts_of(p, &p->steps[s], "ffn_down"), 4);
        assert_int_equal(parts_of(p, &p->steps[s], "attn_output"), 2);
        assert_int_equal(parts_of(p, &p->steps[s], "ffn_gate"), 0);
    }
}

/* Matrices of one kernel have integer products together. A decoder of one row has none. */
ARENA_TEST(integer_products_need_integer_weights_and_several_rows)
{
    const plan *p =
        right_plan(a, PROMPTS "weights = q4_k\nweights.attn_v = f16\nm = 1, 16\n", "sm_80");
    assert_int_equal(count_of(p, &p->steps[0], "stream_qkv"), 2);
    assert_int_equal(count_of(p, &p->steps[0], "mma_q8"), 5);
    assert_int_equal(count_of(p, &p->steps[1], "mma_qkv"), 2);
    assert_int_equal(count_of(p, &p->steps[1], "mma_q8"), 5);
    p = right_plan(a, PROMPTS "weights = q4_k\nm = 1\n", "sm_80");
    assert_int_equal(count_of(p, p->steps, "stream_gemv"), 5);
    p = right_plan(a, PROMPTS "weights = q4_k\nm = 1, 8\n", "sm_75");
    assert_int_equal(count_of(p, p->steps, "stream_gemv"), 5);
}

/* Returns the row count that a launch passes as an argument; 0 = the kernel's own. */
static uint32_t rows_of(const plan_launch *l)
{
    for (size_t i = 0; i < l->argument_count; i++)
        if (l->arguments[i].is_number)
            return l->arguments[i].number;
    return 0;
}

/* A launch has the rows of its step, rounded up to the kernel's blocks. */
ARENA_TEST(launches_of_prompts_have_the_rows_of_the_step)
{
    static const char *const precisions[] = { "q8", "f32" };
    for (size_t i = 0; i < 2; i++) {
        const char *text =
            arena_format(a,
                         PROMPTS "weights = q4_k\nweights.ffn_up = q6_k\nlogits = all\n"
                                 "m = 1, 500\nprecision = %s\n",
                         precisions[i]);
        const plan *p = right_plan(a, text, "sm_80");
        const plan_step *step = &p->steps[1];
        assert_int_equal(step->logits_rows, 500);
        assert_int_equal(count_of(p, step, "stream_gate_up") +
                             count_of(p, step, "stream_gate_up_q8"),
                         i ? 0 : 2);
        for (size_t l = 0; l < step->launch_count; l++) {
            const instance *in = &p->kernels[step->launches[l].kernel];
            if (in->rows_mode == ROWS_RUN_TIME)
                assert_int_equal(rows_of(&step->launches[l]), 500);
            else if (strcmp(in->family->name, "sample") != 0)
                assert_int_equal(in->shape.m, 500);
        }
    }
}

/* Rows of several sequences have different caches; tiled attention needs one cache. */
ARENA_TEST(prompts_of_several_sequences_have_other_attention)
{
    const plan *p = right_plan(a, PROMPTS "weights = q4_k\nm = 64\nsequences = 4\n", "sm_80");
    assert_int_equal(count_of(p, p->steps, "mma_attention"), 0);
    assert_int_equal(count_of(p, p->steps, "mma_flash_decoding"), 2);
}

/* Attention of few rows uses tensor cores if all of these hold:
 * - the cost model predicts that it is faster
 * - the targets have tensor cores
 * - its operands may be rounded
 * - the kernel accepts the cache
 */
ARENA_TEST(attention_of_few_rows_is_the_cost_model_s_choice)
{
    static const struct {
        const char *target, *keys;
        const plan_model *model;
        bool halves;
    } decoders[] = {
        { "sm_90", "", &cost_model, true },
        { "sm_90", "head_dim = 192\n", &cost_model, true },
        { "sm_90", "", &three_warps, false },
        { "sm_90", "", NULL, false },
        { "sm_75", "", &cost_model, false },
        { "sm_90", "precision = f32\n", &cost_model, false },
        { "sm_90", "kv_type = q8_0\n", &cost_model, false },
        { "sm_90", "kv_type = f32\n", &cost_model, false },
        { "sm_90", "head_dim = 96\n", &cost_model, false },
    };
    for (size_t i = 0; i < sizeof decoders / sizeof *decoders; i++) {
        const char *text =
            arena_format(a, PROMPTS "weights = q8_0\nm = 1, 8\n%s", decoders[i].keys);
        const plan *p = modelled_plan(a, text, decoders[i].target, decoders[i].model);
        for (size_t s = 0; s < p->step_count; s++) {
            const plan_step *step = &p->steps[s];
            assert_int_equal(count_of(p, step, "mma_flash_decoding"), decoders[i].halves ? 2 : 0);
            assert_int_equal(count_of(p, step, "gqa_flash_decoding"), decoders[i].halves ? 0 : 2);
        }
    }
}

#define WIDE "[decoder]\nlayers = 2\nhidden = 4096\nnum_heads = 32\nff = 14336\nvocab = 8k\n"

/* The cost model chooses integer products for all steps of up to 64 rows, for those of 9 to 64 rows,
 * or for none. */
ARENA_TEST(steps_of_few_rows_have_the_same_products)
{
    static const char *const of[] = { "sm_75", "sm_80", "sm_89", "sm_90" };
    for (size_t i = 0; i < sizeof of / sizeof *of; i++) {
        const target *wanted = target_find(of[i]);
        diags d = diags_new(a);
        decoder *read = arena_zalloc(a, sizeof *read);
        location where = { .file = "spec.ini", .line = 1 };
        const char *text =
            arena_format(a, WIDE "weights = q4_k\nm = 1, 8%s\n", i ? ", 32, 512" : "");
        assert_true(parse_decoder(a, text, read, &d));
        const plan *p = cost_make_plan(a, read, where, &wanted, 1, &d);
        assert_non_null(p);
        size_t first = count_of(p, p->steps, "mma_q8_qkv");
        assert_true(first == 0 || (i && first == 2));
        assert_int_equal(count_of(p, &p->steps[1], "mma_q8_qkv"), first);
        size_t some = i ? count_of(p, &p->steps[2], "mma_q8_qkv") : first;
        assert_true(some == 0 || some == 2);
        assert_true(some >= first);
    }
}

/* Returns the plan of a decoder without integer products on tensor cores. */
static const plan *plan_without_bytes(arena *a, const char *text, const char *target_name,
                                      const plan_model *model)
{
    const target *wanted = target_find(target_name);
    diags d = diags_new(a);
    decoder *of = arena_zalloc(a, sizeof *of);
    location where = { .file = "spec.ini", .line = 1 };
    assert_true(parse_decoder(a, text, of, &d));
    memset(of->bytes_for, BYTES_FOR_NONE, sizeof of->bytes_for);
    const plan *p = plan_make(a, of, where, &wanted, 1, model, &d);
    assert_non_null(p);
    return p;
}

/* Without tensor cores, a launch quantizes x of several rows to 8 bits before each product. The cost
 * model must predict that this pays, and the weights need integer products. A fused norm moves into
 * that launch. */
ARENA_TEST(rows_are_quantized_if_the_cost_model_says_so)
{
    static const struct {
        const char *target, *keys;
        const plan_model *model;
        bool worth;
    } decoders[] = {
        { "sm_90", "weights = q4_k\n", &cost_model, true },
        { "sm_90", "weights = iq3_s\nweights.attn_v = q6_k\n", &cost_model, true },
        { "sm_90", "weights = f16\n", &cost_model, false },
        { "sm_90", "weights = q4_k\n", &three_warps, false },
        { "sm_90", "weights = q4_k\n", NULL, false },
        { "sm_90", "weights = q4_k\nprecision = f32\n", &cost_model, false },
    };
    for (size_t i = 0; i < sizeof decoders / sizeof *decoders; i++) {
        const char *text = arena_format(a, WIDE "%sm = 1, 8\n", decoders[i].keys);
        const plan *p = plan_without_bytes(a, text, decoders[i].target, decoders[i].model);
        assert_int_equal(count_of(p, &p->steps[0], "q8_rows"), 0);
        size_t of_layers = decoders[i].worth ? 2 : 0;
        assert_int_equal(count_of(p, &p->steps[1], "q8_rows"), 4 * of_layers);
        assert_int_equal(count_of(p, &p->steps[1], "stream_qkv_q8"), of_layers);
        assert_int_equal(count_of(p, &p->steps[1], "stream_gate_up_q8"), of_layers);
        assert_int_equal(count_of(p, &p->steps[1], "stream_gemv_q8"), 2 * of_layers);
        for (size_t k = 0; k < p->kernel_count; k++)
            if (family_takes_rows(p->kernels[k].family))
                assert_int_equal(p->kernels[k].options.norm, 0);
    }
}

ARENA_TEST(prompts_need_targets_with_tensor_cores)
{
    diags d = diags_new(a);
    assert_null(plan_of(a, PROMPTS "weights = q4_k\nm = 8, 64\n", "sm_75", &cost_model, &d));
    if (!strstr(diags_text(a, &d), "m = 64 needs the tensor cores of sm_80 or newer, and "
                                   "sm_75 is a target; use m <= 8"))
        fail_msg("%s", diags_text(a, &d));
    right_plan(a, PROMPTS "weights = q4_k\nm = 8, 64\nprecision = f32\n", "sm_75");
}

/* Two chunks of weights fit where three do not. */
ARENA_TEST(products_of_prompts_fit_small_shared_memory)
{
    const plan *p = right_plan(a, PROMPTS "weights = q6_k\nm = 256\n", "sm_86");
    for (size_t k = 0; k < p->kernel_count; k++)
        if (strcmp(p->kernels[k].family->name, "mma_gemm") == 0)
            assert_int_equal(p->kernels[k].stages, 2);
}

/* Alignment must also hold for rows of odd lengths and for tensors that start in the middle of
 * others. */
#define ODD "[decoder]\nlayers = 2\nhidden = 512\nnum_heads = 4\nff = 1024\nvocab = 8001\n"

ARENA_TEST(arguments_of_steps_are_aligned_as_their_kernels_want)
{
    static const char *const sections[] = {
        ODD "weights = q4_k\nm = 1, 3, 8\nlogits = all\n",
        ODD "weights = q4_k\nm = 1, 8, 64\nlogits = all\n",
        ODD "weights = q8_0\nm = 1, 5\nlogits = all\nsequences = 5\n",
        ODD "weights = q6_k\nm = 1, 8\nfused = attn_qkv, ffn_gate_up\n",
        "[decoder]\nlayers = 2\nhidden = 104\nnum_heads = 3\nnum_kv_heads = 1\nhead_dim = 8\n"
        "ff = 40\nvocab = 301\nm = 1, 7\nweights = f16\nfused = attn_qkv, ffn_gate_up\n"
        "logits = all\n",
    };
    static const char *const precisions[] = { "precision = q8\n", "precision = f32\n" };
    for (size_t i = 0; i < 2 * sizeof sections / sizeof *sections; i++) {
        const char *text = arena_format(a, "%s%s", sections[i / 2], precisions[i % 2]);
        const plan *p = right_plan(a, text, "sm_90");
        for (size_t s = 0; s < p->step_count; s++)
            for (size_t l = 0; l < p->steps[s].launch_count; l++) {
                const plan_launch *of = &p->steps[s].launches[l];
                const instance *in = &p->kernels[of->kernel];
                param params[MAX_PARAMS];
                instance_params(a, in, params);
                for (size_t n = 0; n < of->argument_count; n++)
                    if (!of->arguments[n].is_number && of->arguments[n].offset % params[n].align)
                        fail_msg("%s%s: %s begins at byte %llu, not at a multiple of %u", text,
                                 in->name, params[n].name,
                                 (unsigned long long)of->arguments[n].offset, params[n].align);
            }
    }
}

/* Returns the bytes from an argument to the next tensor or to the end of its piece of memory. */
static uint64_t room_after(const plan *p, const plan_argument *argument)
{
    uint64_t end = p->bytes[argument->memory];
    for (size_t i = 0; i < p->tensor_count; i++)
        if (p->tensors[i].memory == argument->memory && p->tensors[i].offset > argument->offset &&
            p->tensors[i].offset < end)
            end = p->tensors[i].offset;
    return end - argument->offset;
}

/* Returns the number of arguments whose kernel reads past the tensor's end, up to a whole 16-byte
 * line. There must be room for the line. */
static size_t longer_than_tensors(arena *a, const plan *p)
{
    size_t longer = 0;
    for (size_t s = 0; s < p->step_count; s++)
        for (size_t l = 0; l < p->steps[s].launch_count; l++) {
            const plan_launch *of = &p->steps[s].launches[l];
            const instance *in = &p->kernels[of->kernel];
            param params[MAX_PARAMS];
            instance_params(a, in, params);
            for (size_t n = 0; n < of->argument_count; n++) {
                const plan_argument *argument = &of->arguments[n];
                if (!plan_tensor_of(p, argument) || params[n].order == ORDER_FETCHED)
                    continue;
                uint64_t bytes = (uint64_t)formula_value(params[n].bytes, in, NULL);
                if (bytes > room_after(p, argument))
                    fail_msg("%s reads %llu bytes of %s, which has %llu", in->name,
                             (unsigned long long)bytes, argument->said,
                             (unsigned long long)room_after(p, argument));
                longer += bytes > plan_bytes_from(p, argument);
            }
        }
    return longer;
}

ARENA_TEST(last_lines_of_tensors_have_room_in_the_weights)
{
    static const char *const sections[] = {
        "hidden = 96\nhead_dim = 32\nff = 160\nm = 1, 3, 8, 64\n",
        "hidden = 96\nhead_dim = 32\nff = 160\nm = 1, 8\nfused = attn_qkv, ffn_gate_up\n",
        "hidden = 96\nhead_dim = 32\nff = 160\nm = 1\nper_layer = 32\nper_layer_table = host\n",
        "hidden = 96\nhead_dim = 32\nm = 1, 8\nexperts = 3\nexperts_used = 2\nexpert_ff = 32\n",
    };
    static const char *const weights_of[] = { "q8_0", "q5_0", "q4_0", "mxfp4", "q4_1", "q5_1" };
    size_t longer = 0;
    for (size_t i = 0; i < sizeof sections / sizeof *sections; i++)
        for (size_t w = 0; w < sizeof weights_of / sizeof *weights_of; w++)
            longer += longer_than_tensors(
                a, right_plan(a,
                              arena_format(a,
                                           "[decoder]\nlayers = 2\nnum_heads = 3\n"
                                           "num_kv_heads = 1\nvocab = 301\nweights = %s\n%s",
                                           weights_of[w], sections[i]),
                              "sm_90"));
    assert_true(longer > 0);
}

/* Returns the tensor that a launch prefetches, and its bytes: "" if the kernel can prefetch but has
 * nothing to, NULL if the kernel cannot prefetch. */
static const char *fetched_by(arena *a, const plan *p, const plan_launch *l, int64_t *bytes)
{
    const instance *in = &p->kernels[l->kernel];
    param params[MAX_PARAMS];
    size_t count = instance_params(a, in, params);
    assert_int_equal(count, l->argument_count);
    *bytes = in->next;
    for (size_t i = 0; i < count; i++)
        if (params[i].order == ORDER_FETCHED) {
            assert_int_equal(l->arguments[i].memory, PLAN_WEIGHTS);
            return l->arguments[i].said;
        }
    return family_key(in->family, "next") ? "" : NULL;
}

static bool reads_tensor(const plan_launch *l, const char *name)
{
    for (size_t i = 0; i < l->argument_count; i++)
        if (l->arguments[i].said && strcmp(l->arguments[i].said, name) == 0)
            return true;
    return false;
}

#define DENSE                                                                              \
    "[decoder]\nlayers = 2\nhidden = 4096\nnum_heads = 32\nnum_kv_heads = 8\nff = 14336\n" \
    "vocab = 8k\nweights = q4_k\nnext = fetched\n"

enum { SQUARE = 4096 * 4096 / 256 * 144 };

/* A launch prefetches the first matrix of the next launch, up to 16 MiB. */
ARENA_TEST(launches_prefetch_the_next_launch_s_first_matrix)
{
    static const struct {
        const char *reads, *fetches;
        int64_t bytes;
    } expected[] = {
        { "blk.0.attn_q.weight", "", 0 }, /* RoPE and attention follow */
        { "blk.0.attn_output.weight", "blk.0.ffn_gate.weight", 16 << 20 },
        { "blk.0.ffn_up.weight", "blk.0.ffn_down.weight", 16 << 20 },
        { "blk.0.ffn_down.weight", "blk.1.attn_q.weight", SQUARE },
        { "blk.1.ffn_down.weight", "output.weight", SQUARE }, /* as in the other layers */
        { "output.weight", "", 0 },
    };
    static const char *const models[] = { DENSE "m = 1\n", DENSE "m = 8\n",
                                          DENSE "norms = post_attention_norm, post_ffw_norm\n"
                                                "m = 1\n" };
    for (size_t i = 0; i < sizeof models / sizeof *models; i++) {
        const plan *p = right_plan(a, models[i], "sm_90");
        size_t found = 0;
        for (size_t l = 0; l < p->steps[0].launch_count; l++) {
            const plan_launch *one = &p->steps[0].launches[l];
            int64_t bytes;
            const char *tensor = fetched_by(a, p, one, &bytes);
            if (p->kernels[one->kernel].family->op == OP_BATCHED_ATTENTION) {
                assert_int_equal(bytes, SQUARE);
                assert_true(reads_tensor(one, one->layer ? "blk.1.attn_output.weight"
                                                         : "blk.0.attn_output.weight"));
            }
            for (size_t e = 0; e < sizeof expected / sizeof *expected; e++)
                if (tensor && reads_tensor(one, expected[e].reads) &&
                    strcmp(tensor, expected[e].reads) != 0) {
                    assert_string_equal(tensor, expected[e].fetches);
                    assert_int_equal(bytes, expected[e].bytes);
                    found++;
                }
        }
        assert_int_equal(found, sizeof expected / sizeof *expected);
    }
}

/* A run-time row count is the last argument, after the prefetch's arguments. The experts of a
 * mixture are unknown in advance and cannot be prefetched. */
ARENA_TEST(prefetching_kernels_get_their_arguments_in_order)
{
    const plan *p =
        right_plan(a,
                   "[decoder]\nlayers = 2\nhidden = 4096\nnum_heads = 4\nhead_dim = 64\n"
                   "ff = 4096\nvocab = 8k\nm = 8\nweights = f16\nlogits = all\nnext = fetched\n",
                   "sm_75");
    size_t in_parts = 0;
    for (size_t l = 0; l < p->steps[0].launch_count; l++) {
        const plan_launch *one = &p->steps[0].launches[l];
        const instance *in = &p->kernels[one->kernel];
        int64_t bytes;
        const char *tensor = fetched_by(a, p, one, &bytes);
        if (in->rows_mode == ROWS_RUN_TIME && tensor && *tensor) {
            assert_int_equal(rows_of(one), 8);
            assert_true(one->arguments[one->argument_count - 1].is_number);
            in_parts++;
        }
    }
    assert_true(in_parts > 0);
    p = right_plan(a,
                   "[decoder]\nlayers = 2\nhidden = 512\nnum_heads = 4\nvocab = 8k\n"
                   "weights = q4_k\nm = 1\nexperts = 8\nexperts_used = 2\nexpert_ff = 512\n"
                   "next = fetched\n",
                   "sm_90");
    for (size_t l = 0; l < p->steps[0].launch_count; l++) {
        int64_t bytes;
        const char *tensor = fetched_by(a, p, &p->steps[0].launches[l], &bytes);
        assert_true(!tensor || !strstr(tensor, "exps"));
        if (reads_tensor(&p->steps[0].launches[l], "blk.0.ffn_down_exps.weight"))
            assert_string_equal(tensor, "blk.1.attn_q.weight");
        if (reads_tensor(&p->steps[0].launches[l], "blk.0.attn_output.weight") && *tensor)
            assert_true(strcmp(tensor, "blk.0.ffn_gate_inp.weight") == 0 ||
                        strcmp(tensor, "blk.0.attn_output.weight") == 0);
    }
}

/* A window's cache leaves room in the L2 for a prefetch through RoPE and attention. A cache of 8192
 * positions does not. */
ARENA_TEST(launches_prefetch_through_attention_over_short_caches)
{
    static const char *const caches[] = { "ring", "full" };
    for (size_t c = 0; c < sizeof caches / sizeof *caches; c++) {
        const char *text = arena_format(a,
                                        DENSE "m = 1\nmax_seq_len = 8k\nwindow = 128\n"
                                              "window_layers = 0\nwindow_cache = %s\n",
                                        caches[c]);
        const plan *p = right_plan(a, text, "sm_90");
        size_t found = 0;
        for (size_t l = 0; l < p->steps[0].launch_count; l++) {
            const plan_launch *one = &p->steps[0].launches[l];
            int64_t bytes;
            const char *tensor = fetched_by(a, p, one, &bytes);
            if (p->kernels[one->kernel].family->op == OP_QKV) {
                assert_string_equal(tensor, one->layer ? "" : "blk.0.attn_output.weight");
                assert_int_equal(bytes, one->layer ? 0 : SQUARE);
                found++;
            } else if (p->kernels[one->kernel].family->op == OP_BATCHED_ATTENTION) {
                assert_int_equal(bytes, SQUARE);
                found++;
            }
        }
        assert_int_equal(found, 4);
    }
}
