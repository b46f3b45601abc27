/* Tests of --verify for a step: correct steps must pass; faults of a plan must be found and named.
 */
#include <string.h>

#include "test_arena.h"
#include "cli/summary.h"
#include "verify_sample.h"

typedef struct sample {
    const char *name, *text;
} sample;

/* Small decoders with the features of each architecture. */
static const sample samples[] = {
    { "llama", HEAD SMALL "layers = 3\nmax_seq_len = 64\nrope_factors = tensor\nweights = q8_0\n"
                          "weights.ffn_down = q5_0: 1\nweights.attn_v = q4_0: 1..2\nm = 1, 3, 8\n"
                          "biases = attn_q, attn_k, attn_v, attn_output, ffn_gate, ffn_up, "
                          "ffn_down\n" },
    { "gemma",
      HEAD SMALL "layers = 4\nmax_seq_len = 128\nweights = q4_1\nrope = neox\nwindow = 40\n"
                 "window_layers = 0..2\nrope_base.window = 500\noutput = tied\n"
                 "norms = attn_q_norm, attn_k_norm, post_attention_norm, post_ffw_norm\n"
                 "attention_softcap = 6\nfinal_softcap = 15\nembedding_scale = 8\n"
                 "activation = gelu\nkv_type = q8_0\n" },
    { "phi", HEAD SMALL "layers = 2\nmax_seq_len = 64\nweights = q8_0\nrope = neox\n"
                        "rope_factors = long\nrope_magnitude = 1.19\nfused = attn_qkv, "
                        "ffn_gate_up\nkv_type = bf16\n" },
    { "granite", HEAD SMALL "layers = 2\nmax_seq_len = 64\nweights = iq4_nl\nembedding_scale = 12\n"
                            "residual_scale = 0.22\nlogit_scale = 0.125\n"
                            "attention_scale = 0.0625\nrope_dims = 16\n" },
    { "granite with norms",
      HEAD SMALL "layers = 1\nmax_seq_len = 64\nweights = q8_0\nresidual_scale = 0.22\n"
                 "norms = post_attention_norm, post_ffw_norm\n" },
    { "halves", HEAD "hidden = 64\nff = 96\nnum_heads = 14\nnum_kv_heads = 2\nhead_dim = 256\n"
                     "vocab = 96\nlayers = 1\nmax_seq_len = 1000\nweights = f32\nrope = none\n"
                     "attention_softcap = 30\nm = 1, 3\n" },
    { "mistral", HEAD SMALL "layers = 2\nmax_seq_len = 64\nweights = f16\nrope_scaling = yarn\n"
                            "rope_factor = 4\nrope_original_context = 16\n"
                            "temperature_scale = 0.3\ntemperature_length = 16\n"
                            "sequences = 3\nlogits = all\nm = 1, 4\nkv_type = f32\n" },
    { "exact", HEAD SMALL "layers = 2\nmax_seq_len = 64\nweights = q8_0\nprecision = f32\n" },
    { "factors of matrices", HEAD SMALL
      "layers = 2\nmax_seq_len = 64\nweights = q8_0\n"
      "scales = attn_q, attn_k, attn_v, attn_output, ffn_gate, ffn_up, ffn_down, output\n"
      "biases = attn_q, attn_k, attn_v\nm = 1, 3\n" },
    { "factors of fused matrices",
      HEAD SMALL "layers = 1\nmax_seq_len = 64\nweights = q8_0\nfused = attn_qkv, ffn_gate_up\n"
                 "scales = attn_qkv, ffn_up\nprecision = f32\n" },
};

ARENA_TEST(steps_of_all_features_are_right)
{
    for (size_t i = 0; i < sizeof samples / sizeof *samples; i++) {
        made m;
        if (!test_takes_row(i, EACH))
            continue;
        make(a, samples[i].text, &m);
        step_result r = run(a, &m);
        if (!r.right)
            fail_msg("%s: %s", samples[i].name, r.message);
        assert_true(r.worst < 1 && r.worst_hidden < 1 && r.positions >= 6);
    }
}

enum { LLAMA, GEMMA, PHI, GRANITE, GRANITE_WITH_NORMS, HALVES, MISTRAL, EXACT };

ARENA_TEST(a_wrong_row_of_weights_is_found)
{
    made m;
    make(a, samples[LLAMA].text, &m);
    plan_argument *w = find_argument(a, &m, find_launch(&m, 1, "ffn_down"), "w");
    uint64_t bytes = format_bytes((format)m.decoder.formats[TENSOR_FFN_DOWN][1], 96);
    w->offset += bytes;
    assert_finds(a, &m, "out of bounds");
    w->offset -= bytes;
    w = find_argument(a, &m, find_launch(&m, 1, "ffn_down"), "bias");
    w->offset = find_argument(a, &m, find_launch(&m, 0, "ffn_down"), "bias")->offset;
    assert_finds(a, &m, "layer 1: h[");
}

ARENA_TEST(swapped_keys_and_values_are_found)
{
    made m;
    make(a, samples[LLAMA].text, &m);
    plan_launch *rope = find_launch(&m, 0, "cache");
    swap(find_argument(a, &m, rope, "k"), find_argument(a, &m, rope, "v"));
    assert_finds(a, &m, "layer 0: K[");
    swap(find_argument(a, &m, rope, "k"), find_argument(a, &m, rope, "v"));
    plan_launch *attention = find_launch(&m, 2, "-> o");
    swap(find_argument(a, &m, attention, "k"), find_argument(a, &m, attention, "v"));
    assert_finds(a, &m, "layer 2: h[");
}

ARENA_TEST(a_missing_residual_is_found)
{
    made m;
    make(a, samples[GRANITE].text, &m);
    plan_launch *output = find_launch(&m, 1, "attn_output");
    find_argument(a, &m, output, "residual")->offset = find_argument(a, &m, output, "x")->offset;
    assert_finds(a, &m, "layer 1: h[");
}

ARENA_TEST(a_wrong_address_of_the_next_position_is_found)
{
    made m;
    make(a, samples[PHI].text, &m);
    plan_launch *chooses = find_launch(&m, m.decoder.layers, "token, position");
    swap(find_argument(a, &m, chooses, "next_position"), find_argument(a, &m, chooses, "length"));
    assert_finds(a, &m, "the next position of row 0 is 2, expected 1");
}

/* Duplicates a launch of the one-token step. The results stay correct, but the launch reads its
 * inputs again. */
static void launch_twice(arena *a, made *m, const char *said)
{
    plan_step *step = &m->plan.steps[0];
    size_t at = (size_t)(find_launch(m, 1, said) - step->launches);
    plan_launch *more = arena_alloc(a, (step->launch_count + 1) * sizeof *more);
    memcpy(more, step->launches, (at + 1) * sizeof *more);
    memcpy(more + at + 1, step->launches + at, (step->launch_count - at) * sizeof *more);
    step->launches = more;
    step->launch_count++;
}

/* The feed-forward's weights repeat, so only a few blocks of its products are run. */
static const char wide[] = HEAD "hidden = 2048\nff = 66048\nnum_heads = 4\nnum_kv_heads = 2\n"
                                "head_dim = 64\nvocab = 96\nlayers = 1\nmax_seq_len = 64\n"
                                "weights = q4_k\nbiases = ffn_down\nm = 1, 8\n";

ARENA_TEST(results_of_large_products_are_repeated)
{
    made m;
    make(a, wide, &m);
    const step_result r = run_plan(a, &m);
    if (!r.right)
        fail_msg("%s", r.message);
    if (r.weights_read < 0.95 || r.weights_read > 1.05)
        fail_msg("weights are read %g times", r.weights_read);
    uint64_t weights = 0;
    for (size_t i = 0; i < m.plan.tensor_count; i++)
        weights += (uint64_t)(m.plan.tensors[i].rows * m.plan.tensors[i].columns);
    assert_true(r.instructions < 3 * weights); /* running all blocks takes several times more */
}

ARENA_TEST(swapped_matrices_of_large_products_are_found)
{
    made m;
    make(a, wide, &m);
    plan_launch *gate_up = find_launch(&m, 0, "ffn_gate");
    swap(find_argument(a, &m, gate_up, "wg"), find_argument(a, &m, gate_up, "wu"));
    assert_finds(a, &m, "layer 0: h[0][");
}

ARENA_TEST(a_missing_bias_of_a_large_product_is_found)
{
    made m;
    make(a, wide, &m);
    plan_launch *down = find_launch(&m, 0, "ffn_down");
    *find_argument(a, &m, down, "bias") = *find_argument(a, &m, down, "residual");
    assert_finds(a, &m, "layer 0: h[0][");
}

ARENA_TEST(weights_read_twice_are_counted_twice)
{
    static const char text[] = HEAD "hidden = 1024\nff = 1024\nnum_heads = 4\nnum_kv_heads = 2\n"
                                    "head_dim = 32\nvocab = 96\nlayers = 2\nmax_seq_len = 64\n"
                                    "weights = q8_0\nm = 1\n";
    made m;
    make(a, text, &m);
    const step_result once = run_plan(a, &m);
    assert_true(once.right && once.weights_read > 0.99 && once.weights_read < 1.01);
    assert_true(step_bytes_times(once.caches) > 0.99 && step_bytes_times(once.caches) < 1.05);
    launch_twice(a, &m, "ffn_gate");
    step_result more = run_plan(a, &m);
    uint64_t needed = 0, again = 0;
    for (size_t i = 0; i < m.plan.tensor_count; i++) {
        const plan_tensor *t = &m.plan.tensors[i];
        if (!tensor_infos[t->tensor].by_layer || !tensor_is_matrix(t->tensor))
            continue;
        needed += t->bytes;
        if (t->layer == 1 && (t->tensor == TENSOR_FFN_GATE || t->tensor == TENSOR_FFN_UP))
            again += t->bytes;
    }
    double expected = once.weights_read + (double)again / (double)needed;
    assert_true(more.right && more.weights_read > expected - 0.01 &&
                more.weights_read < expected + 0.01);
    assert_int_equal(more.caches.read, once.caches.read);
    launch_twice(a, &m, "-> o");
    more = run_plan(a, &m);
    assert_true(more.right && more.caches.read * 2 == once.caches.read * 3);
}

/* The kernels were generated for another decoder than the reference computes. */
ARENA_TEST(other_architectures_are_found)
{
    made m;
    make(a, samples[GEMMA].text, &m);
    const decoder right = m.decoder;
    m.decoder.window++;
    assert_finds(a, &m, "after earlier positions, the last at position");
    m.decoder.window = right.window - 1;
    assert_finds(a, &m, "layer 0: h[");
    m.decoder = right;
    m.decoder.at[1].windowed = 0;
    assert_finds(a, &m, "layer 1: ");
    m.decoder = right;
    m.decoder.rope[1].base = right.rope[0].base;
    assert_finds(a, &m, "layer 0: K[");
    m.decoder = right;
    m.decoder.attention_softcap = 0;
    m.decoder.attention_scale = 2 / 5.65685424949238;
    assert_finds(a, &m, "layer 0: h[");
    m.decoder = right;
    m.decoder.final_softcap = 0;
    assert_finds(a, &m, "after the layers: logits[0][");
    m.decoder = right;
    m.decoder.embedding_scale = 0;
    assert_finds(a, &m, "before the layers: h[");
    make(a, samples[MISTRAL].text, &m);
    m.decoder.rope[0].style = ROPE_NEOX;
    assert_finds(a, &m, "layer 0: K[");
    make(a, samples[MISTRAL].text, &m);
    m.decoder.rope[0].temperature_length = 0;
    assert_finds(a, &m, "layer 0: h[");
}

/* A single position out of 800 must show: the first positions of a test cache are large. */
ARENA_TEST(long_windows_that_are_one_off_are_found)
{
    static const char text[] = HEAD SMALL "layers = 2\nmax_seq_len = 1k\nweights = q8_0\n"
                                          "window = 800\nwindow_layers = 1\nm = 1, 2\n";
    made m;
    make(a, text, &m);
    assert_true(run_plan(a, &m).right);
    m.decoder.window = 801;
    assert_finds(a, &m, "layer 1: h[");
    m.decoder.window = 799;
    assert_finds(a, &m, "layer 1: h[");
}

/* Without rounding, small errors must be found. */
ARENA_TEST(exact_steps_are_held_to_closer_bounds)
{
    made m;
    make(a, samples[EXACT].text, &m);
    m.decoder.attention_scale = 1.01 / 5.65685424949238;
    assert_finds(a, &m, "layer 0: h[");
}

ARENA_TEST(absent_kernels_are_named)
{
    made m;
    make(a, samples[EXACT].text, &m);
    m.set.kernel_count--;
    assert_finds(a, &m, "the step needs the kernel ");
}

ARENA_TEST(the_fewest_layers_with_all_kernels_are_run)
{
    made m;
    make(a, samples[GEMMA].text, &m);
    chosen_layers chosen = verify_choose_layers(a, &m.plan);
    assert_int_equal(chosen.count, 2);
    assert_int_equal(chosen.numbers[0], 0);
    assert_int_equal(chosen.numbers[1], 3);
    make(a, samples[LLAMA].text, &m);
    chosen = verify_choose_layers(a, &m.plan);
    assert_int_equal(chosen.count, 2);
    assert_int_equal(chosen.numbers[0], 0);
    assert_int_equal(chosen.numbers[1], 1);
}

/* A kernel of attn_output is ffn_down's, too, but only in the second layer. */
ARENA_TEST(layers_with_other_operands_are_run)
{
    static const char text[] = HEAD "hidden = 64\nff = 64\nnum_heads = 2\nvocab = 96\nlayers = 4\n"
                                    "max_seq_len = 32\nweights = q8_0\n"
                                    "weights.ffn_down = q8_0, f32: 2\n"
                                    "weights.attn_output = f32\nm = 1\n";
    made m;
    make(a, text, &m);
    chosen_layers chosen = verify_choose_layers(a, &m.plan);
    assert_int_equal(chosen.count, 2);
    assert_int_equal(chosen.numbers[1], 2);
}

ARENA_TEST(skipped_layers_must_be_like_the_run_layers)
{
    made m;
    make(a, samples[GEMMA].text, &m);
    find_argument(a, &m, find_launch(&m, 1, "ffn_down"), "w")->offset =
        find_argument(a, &m, find_launch(&m, 2, "ffn_down"), "w")->offset;
    step_result r = run(a, &m);
    assert_false(r.right);
    assert_non_null(strstr(r.message, "step of 1, layer 1: stream_gemv"));
    assert_non_null(strstr(r.message, "differs from the layers that were run"));
}

/* Runs --verify. Returns its errors, followed by its output. */
static const char *verify_all(arena *a, made *m)
{
    const kernel_list none = { 0 };
    diags d = diags_new(a);
    verification v;
    strbuf out = strbuf_new(a);
    bool right = verify_set(a, &m->set, &none, 1, 2, NULL, &v, &d);
    diags_render(&d, &out, false);
    if (right)
        summary_verification(&out, &v, false);
    return out.text;
}

ARENA_TEST(a_run_prints_the_verified_parts_or_the_section)
{
    made m;
    make(a, samples[GRANITE].text, &m);
    const char *said = verify_all(a, &m);
    if (!strstr(said, "right, ") ||
        !strstr(said, "step right: 2 of 2 layers, 25 positions, m = 1 and 8, worst logit error "))
        fail_msg("%s", said);
    m.decoder.embedding_scale = 1;
    m.set.plan = &m.plan;
    said = verify_all(a, &m);
    if (!strstr(said, "spec.ini:4:") || !strstr(said, "step of 1, before the layers: embed_rows") ||
        strstr(said, "step right"))
        fail_msg("%s", said);
}

/* Verifying some of the kernels runs no step. */
ARENA_TEST(a_part_of_a_spec_is_verified_without_its_step)
{
    made m;
    make(a, samples[EXACT].text, &m);
    m.set.kernel_count = 1;
    const char *said = verify_all(a, &m);
    if (!strstr(said, "1 of 1 right") || strstr(said, "step"))
        fail_msg("%s", said);
}
