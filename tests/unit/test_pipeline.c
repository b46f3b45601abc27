/* Pipelines: their tables fit the kernels they name, a section makes and connects the kernels, and
 * header and manifest describe the result. */
#include <string.h>

#include "test_arena.h"
#include "emit/emit.h"
#include "kernel/formula.h"
#include "kernel/generate.h"
#include "input/spec.h"

static const char two_pipelines[] = "[hw_dp4a_q4k_gemv]\n"
                                    "shape = 512x256\n"
                                    "[qkv]\n"
                                    "k = 512\n"
                                    "n = 256\n"
                                    "n_kv = 64\n"
                                    "[batched_gate_up]\n"
                                    "shape = 512x96\n"
                                    "m = 3\n";

static spec parse(arena *a, const char *text)
{
    diags d = diags_new(a);
    spec s;
    if (!spec_parse(a, "t.ini", text, strlen(text), families_and_pipelines(a), NULL, NULL, &s, &d))
        fail_msg("%s", d.list.items[0].message);
    return s;
}

/* Advances to the next combination of words of a pipeline's keys. Returns false after the last. */
static bool next_words(instance *in)
{
    for (const key *k = in->family->keys; k->name; k++) {
        int64_t value = instance_value(in, k);
        if (!k->choices || !k->choices[1].word)
            continue;
        while (k->choices[++value].word)
            if (key_takes_choice(k, &k->choices[value])) {
                instance_set(in, k, value);
                return true;
            }
        value = 0;
        while (!key_takes_choice(k, &k->choices[value]))
            value++;
        instance_set(in, k, value);
    }
    return false;
}

static instance first_of(const family *f)
{
    instance in = { .family = f };
    for (const key *k = f->keys; k->name; k++) {
        instance_set(&in, k, k->choices || k->real || k->zero_is_none ? key_default(k) : k->min);
        for (int64_t i = 0; k->choices && !key_takes_choice(k, &k->choices[i]); i++)
            instance_set(&in, k, i + 1);
    }
    in.shape.k = 512;
    in.shape.n = 8;
    in.shape.n_kv = 4;
    return in;
}

enum { MOST_STEPS = PIPELINE_MOST_STEPS };

typedef struct written_buffer {
    const char *name;
    format format;
    int64_t bytes;
} written_buffer;

/* Checks a configuration:
 * - exactly its parameters are bound
 * - each buffer is written at most once
 * - each step reads a buffer with the format and size that were written
 */
static void check_steps(arena *a, const instance *in)
{
    const pipeline_step *taken[16];
    written_buffer written[MOST_STEPS * MAX_PARAMS];
    size_t count = pipeline_take_steps(in, taken), written_count = 0;
    assert_in_range(count, 1, MOST_STEPS);
    for (size_t i = 0; i < count; i++) {
        instance made = step_instance(a, in, taken[i]);
        param params[MAX_PARAMS];
        size_t param_count = instance_params(a, &made, params), bound = 0, table_count = 0;
        while (taken[i]->bind[bound].param)
            bound++;
        for (const param *p = made.family->params; p->name; p++)
            table_count++;
        assert_int_equal(bound, table_count);
        for (size_t j = 0; j < param_count; j++) {
            const char *buffer = step_buffer(taken[i], params[j].name);
            if (!buffer)
                fail_msg("%s: step %zu binds no %s", in->family->name, i, params[j].name);
            const param *p = &params[j];
            int64_t bytes = p->bytes ? formula_value(p->bytes, &made, NULL) : 0;
            for (size_t w = 0; w < written_count; w++) {
                const written_buffer *one = &written[w];
                bool same = strcmp(one->name, buffer) == 0;
                if (same && p->kind == PARAM_OUT)
                    fail_msg("%s: %s is written twice", in->family->name, buffer);
                if (same && (one->format != p->format || one->bytes != bytes))
                    fail_msg("%s: %s is read with another format or size than written",
                             in->family->name, buffer);
            }
            if (p->kind == PARAM_OUT)
                written[written_count++] = (written_buffer){ buffer, p->format, bytes };
        }
    }
}

ARENA_TEST(every_configuration_binds_all_parameters_and_reads_what_it_wrote)
{
    for (const family *const *f = pipelines; *f; f++) {
        instance in = first_of(*f);
        assert_in_range(pipeline_step_count(*f), 2, 16);
        do
            check_steps(a, &in);
        while (next_words(&in));
    }
}

ARENA_TEST(a_section_makes_the_missing_kernels)
{
    static const char *const names[] = {
        "hw_dp4a_q4k_gemv_k512_n256_w4",           "q8_1_quantize_k512_m1_w4",
        "fused_kv_hw_dp4a_q4k_gemv_k512_n64_w4",   "q8_1_quantize_k512_m3_w4",
        "batched_hw_dp4a_q4k_gemv_k512_n96_m3_w4",
    };
    spec s = parse(a, two_pipelines);
    assert_int_equal(s.instance_count, sizeof names / sizeof *names);
    for (size_t i = 0; i < s.instance_count; i++)
        assert_string_equal(s.instances[i].name, names[i]);
    assert_int_equal(s.pipeline_count, 2);
    const pipeline *p = &s.pipelines[0];
    assert_string_equal(p->instance->name, "qkv_k512_n256_kv64");
    assert_int_equal(p->step_count, 3);
    assert_ptr_equal(p->steps[0].kernel, &s.instances[1]);
    assert_ptr_equal(p->steps[1].kernel, &s.instances[0]);
    assert_ptr_equal(p->steps[2].kernel, &s.instances[2]);
    assert_ptr_equal(s.pipelines[1].steps[1].kernel, s.pipelines[1].steps[2].kernel);
}

ARENA_TEST(buffers_are_outputs_weights_inputs_with_their_sizes)
{
    static const struct {
        const char *name;
        int64_t bytes;
    } expected[] = {
        { "q", 256 * 4 },       { "k", 64 * 4 },
        { "v", 64 * 4 },        { "wq", 256 * 512 / 256 * 144 },
        { "wk", 64 * 2 * 144 }, { "wv", 64 * 2 * 144 },
        { "x", 512 * 4 },
    };
    spec s = parse(a, two_pipelines);
    pipeline_buffers buffers = pipeline_buffers_of(a, &s.pipelines[0]);
    assert_int_equal(buffers.count, sizeof expected / sizeof *expected);
    for (size_t i = 0; i < buffers.count; i++) {
        assert_string_equal(buffers.params[i].name, expected[i].name);
        assert_int_equal(buffers.bytes[i], expected[i].bytes);
    }
    assert_int_equal(buffers.workspace, 512 / 32 * 36);
    assert_int_equal(pipeline_buffers_of(a, &s.pipelines[1]).workspace, 3 * 512 / 32 * 36);
}

/* Returns the names of a pipeline's steps: "q8_1_quantize_k512_m1_w4 …". */
static const char *step_names(arena *a, const pipeline *p)
{
    strbuf names = strbuf_new(a);
    for (size_t i = 0; i < p->step_count; i++)
        strbuf_format(&names, "%s%s", i ? " " : "", p->steps[i].kernel->name);
    return names.text;
}

TEST(keys_choose_the_steps)
{
#define QKV     "[qkv]\nk = 512\nn = 256\nn_kv = 64\n"
#define BATCHED "[batched_qkv]\nk = 512\nn = 256\nn_kv = 64\nm = 3\n"
    static const struct {
        const char *text, *name, *steps;
    } cases[] = {
        { QKV "weights_v = q6_k\n", "qkv_k512_n256_kv64_vq6k",
          "q8_1_quantize_k512_m1_w4 hw_dp4a_q4k_gemv_k512_n256_w4 hw_dp4a_q4k_gemv_k512_n64_w4 "
          "hw_dp4a_q6k_gemv_k512_n64_w2" },
        { QKV "weights = q6_k\nweights_q = q4_k\n", "qkv_k512_n256_kv64_q6k_qq4k",
          "q8_1_quantize_k512_m1_w4 hw_dp4a_q4k_gemv_k512_n256_w4 hw_dp4a_q6k_gemv_k512_n64_w2 "
          "hw_dp4a_q6k_gemv_k512_n64_w2" },
        { QKV "weights_k = q4_k\nweights_v = q4_k\n", "qkv_k512_n256_kv64",
          "q8_1_quantize_k512_m1_w4 hw_dp4a_q4k_gemv_k512_n256_w4 "
          "fused_kv_hw_dp4a_q4k_gemv_k512_n64_w4" },
        { QKV "kv = separate\nnum_warps = 8\n", "qkv_k512_n256_kv64_separate_w8",
          "q8_1_quantize_k512_m1_w8 hw_dp4a_q4k_gemv_k512_n256_w8 hw_dp4a_q4k_gemv_k512_n64_w8 "
          "hw_dp4a_q4k_gemv_k512_n64_w8" },
        { QKV "activations = q8_1\n", "qkv_k512_n256_kv64_q8",
          "hw_dp4a_q4k_gemv_k512_n256_w4 fused_kv_hw_dp4a_q4k_gemv_k512_n64_w4" },
        { BATCHED "weights_v = q6_k\n", "batched_qkv_k512_n256_kv64_m3_vq6k",
          "q8_1_quantize_k512_m3_w4 batched_hw_dp4a_q4k_gemv_k512_n256_m3_w4 "
          "batched_hw_dp4a_q4k_gemv_k512_n64_m3_w4 batched_q6k_gemv_k512_n64_m3" },
        { BATCHED "weights = q6_k\n", "batched_qkv_k512_n256_kv64_m3_q6k",
          "batched_q6k_gemv_k512_n256_m3 batched_q6k_gemv_k512_n64_m3 "
          "batched_q6k_gemv_k512_n64_m3" },
        { "[dp4a]\nshape = 512x256\nweights = q6_k\nactivations = q8_1\n", "dp4a_k512_n256_q6k_q8",
          "hw_dp4a_q6k_gemv_k512_n256_w2" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        arena *a = arena_new();
        spec s = parse(a, cases[i].text);
        assert_string_equal(s.pipelines[0].instance->name, cases[i].name);
        assert_string_equal(step_names(a, &s.pipelines[0]), cases[i].steps);
        arena_free(a);
    }
}

ARENA_TEST(already_quantized_inputs_come_from_the_caller)
{
    spec s = parse(a, QKV "activations = q8_1\n" BATCHED "activations = q8_1\nweights_v = q6_k\n");
    pipeline_buffers one = pipeline_buffers_of(a, &s.pipelines[0]);
    pipeline_buffers mixed = pipeline_buffers_of(a, &s.pipelines[1]);
    assert_string_equal(one.params[one.count - 1].name, "x_q8_1");
    assert_int_equal(one.bytes[one.count - 1], 512 / 32 * 36);
    assert_int_equal(one.workspace, 0);
    assert_int_equal(mixed.count, one.count + 1);
    assert_string_equal(mixed.params[mixed.count - 2].name, "x_q8_1");
    assert_string_equal(mixed.params[mixed.count - 1].name, "x");
}

/* A chain of quantizations, each of its predecessor's result. A result lives for two steps, so two
 * regions suffice for a chain of any length. */
static const family relay = { .name = "relay",
                              .computes = "nothing",
                              .keys = (const key[]){ KEY_END } };

ARENA_TEST(intermediate_buffers_share_the_workspace)
{
    enum { STEPS = 40 };
    instance in = { .family = &relay };
    instance quantize = { .family = family_find(families, "q8_1_quantize"),
                          .shape = { .k = 512, .m = 1 } };
    pipeline_step *steps = arena_zalloc(a, STEPS * sizeof *steps);
    pipeline_launch *launches = arena_alloc(a, STEPS * sizeof *launches);
    for (size_t i = 0; i < STEPS; i++) {
        steps[i].bind[0] = (binding){ "q8", arena_format(a, "b%zu", i + 1) };
        steps[i].bind[1] = (binding){ "x", arena_format(a, "b%zu", i) };
        launches[i] = (pipeline_launch){ &steps[i], &quantize };
    }
    pipeline p = { &in, launches, STEPS };
    pipeline_buffers buffers = pipeline_buffers_of(a, &p);
    assert_int_equal(buffers.count, 2);
    assert_string_equal(buffers.params[0].name, "b40");
    assert_string_equal(buffers.params[1].name, "b0");
    assert_int_equal(buffers.part_count, STEPS - 1);
    /* Read as f32, which needs more bytes than the q8_1 that was written. */
    for (size_t i = 1; i < STEPS; i++) {
        const pipeline_part *one = pipeline_place_of(&buffers, &steps[i - 1], "q8").part;
        const pipeline_part *read = pipeline_place_of(&buffers, &steps[i], "x").part;
        assert_ptr_equal(one, read);
        assert_int_equal(one->bytes, 512 * 4);
        assert_int_equal(one->offset % 256, 0);
        const pipeline_part *next = pipeline_place_of(&buffers, &steps[i], "q8").part;
        if (next)
            assert_true(next->offset != one->offset);
    }
    assert_int_equal(buffers.workspace, 2 * 512 * 4);
}

static void assert_has(const char *text, const char *part)
{
    if (!strstr(text, part))
        fail_msg("'%s' is missing", part);
}

ARENA_TEST(header_and_manifest_list_the_steps)
{
    diags d = diags_new(a);
    spec s = parse(a, two_pipelines);
    kernel_set set;
    assert_true(generate_kernels(a, &s, &set, &d));
    strbuf header = strbuf_new(a), manifest = strbuf_new(a);
    described_set described = describe_set(a, &set);
    emit_header(&header, &described);
    emit_manifest(&manifest, &described);
    assert_has(header.text, "extern const ptxgen_pipeline ptxgen_qkv_k512_n256_kv64;\n");
    assert_has(header.text, "ptxgen_qkv_k512_n256_kv64_step_1[] = "
                            "{ { 0, 0 }, { 3, 0 }, { PTXGEN_WORKSPACE, 0 } };\n");
    assert_has(header.text, "    &ptxgen_qkv_k512_n256_kv64,\n    "
                            "&ptxgen_batched_gate_up_k512_n96_m3,\n    NULL,\n");
    assert_has(manifest.text, "\"pipeline\": \"qkv\"");
    assert_has(manifest.text, "\"x\": \"workspace+0\"");
    assert_has(manifest.text, "\"workspace\": 576,\n");
}
