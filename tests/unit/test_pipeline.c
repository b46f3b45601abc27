/* Pipelines: their tables fit the kernels that they name, a spec's section makes the kernels and
 * connects them, header and manifest tell it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "emit/emit.h"
#include "gen/formula.h"
#include "generate.h"

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
    if (!spec_parse(a, "t.ini", text, strlen(text), families_and_pipelines(a), NULL, &s, &d))
        fail_msg("%s", d.list.items[0].message);
    return s;
}

static const char *buffer_of(const pipeline *p, size_t index, const char *name)
{
    return step_buffer(&p->instance->family->steps[index], name);
}

static void every_parameter_of_every_step_is_bound_and_nothing_else(void **state)
{
    (void)state;
    arena *a = arena_new();
    for (const family *const *f = pipelines; *f; f++) {
        instance in = { .family = *f, .shape = { .k = 512, .n = 8, .m = 2 }, .n_kv = 4 };
        size_t steps = pipeline_step_count(*f);
        assert_in_range(steps, 2, MAX_STEPS);
        for (in.weights = 0; in.weights < 2; in.weights++)
            for (size_t i = 0; i < steps; i++) {
                const pipeline_step *s = &(*f)->steps[i];
                instance made = step_instance(a, &in, s);
                param params[MAX_PARAMS];
                size_t count = instance_params(a, &made, params), bound = 0;
                while (s->bind[bound].param)
                    bound++;
                assert_int_equal(bound, count);
                for (size_t j = 0; j < count; j++)
                    if (!step_buffer(s, params[j].name))
                        fail_msg("%s: step %zu binds no %s", (*f)->name, i, params[j].name);
            }
    }
    arena_free(a);
}

/* What a step reads from the workspace is what an earlier one wrote there: format and size. */
static void a_step_takes_from_the_workspace_what_one_before_it_put_there(void **state)
{
    (void)state;
    arena *a = arena_new();
    spec s = parse(a, two_pipelines);
    for (size_t i = 0; i < s.pipeline_count; i++) {
        const pipeline *p = &s.pipelines[i];
        const char *written = NULL;
        for (size_t j = 0; j < p->step_count; j++) {
            param params[MAX_PARAMS];
            size_t count = instance_params(a, p->steps[j], params);
            for (size_t n = 0; n < count; n++) {
                if (buffer_of(p, j, params[n].name) != WORKSPACE)
                    continue;
                int64_t bytes = formula_value(params[n].bytes, p->steps[j], NULL);
                const char *what =
                    arena_format(a, "%lld of %s", (long long)bytes, formats[params[n].format].name);
                if (params[n].kind == PARAM_OUT)
                    written = what;
                else
                    assert_string_equal(what, written ? written : "nothing");
            }
        }
    }
    arena_free(a);
}

static void a_section_makes_the_kernels_that_are_not_there_yet(void **state)
{
    (void)state;
    static const char *const names[] = {
        "hw_dp4a_q4k_gemv_k512_n256_w4",           "q8_1_quantize_k512_m1_w4",
        "fused_kv_hw_dp4a_q4k_gemv_k512_n64_w4",   "q8_1_quantize_k512_m3_w4",
        "batched_hw_dp4a_q4k_gemv_k512_n96_m3_w4",
    };
    arena *a = arena_new();
    spec s = parse(a, two_pipelines);
    assert_int_equal(s.instance_count, sizeof names / sizeof *names);
    for (size_t i = 0; i < s.instance_count; i++)
        assert_string_equal(s.instances[i].name, names[i]);
    assert_int_equal(s.pipeline_count, 2);
    const pipeline *p = &s.pipelines[0];
    assert_string_equal(p->instance->name, "qkv_k512_n256_kv64");
    assert_int_equal(p->step_count, 3);
    assert_ptr_equal(p->steps[0], &s.instances[1]);
    assert_ptr_equal(p->steps[1], &s.instances[0]);
    assert_ptr_equal(p->steps[2], &s.instances[2]);
    assert_ptr_equal(s.pipelines[1].steps[1], s.pipelines[1].steps[2]);
    arena_free(a);
}

static void buffers_are_outputs_weights_inputs_with_their_sizes(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        int64_t bytes;
    } expected[] = {
        { "q", 256 * 4 },       { "k", 64 * 4 },
        { "v", 64 * 4 },        { "wq", 256 * 512 / 256 * 144 },
        { "wk", 64 * 2 * 144 }, { "wv", 64 * 2 * 144 },
        { "x", 512 * 4 },
    };
    arena *a = arena_new();
    spec s = parse(a, two_pipelines);
    pipeline_buffers buffers = pipeline_buffers_of(a, &s.pipelines[0]);
    assert_int_equal(buffers.count, sizeof expected / sizeof *expected);
    for (size_t i = 0; i < buffers.count; i++) {
        assert_string_equal(buffers.params[i].name, expected[i].name);
        assert_int_equal(buffers.bytes[i], expected[i].bytes);
    }
    assert_int_equal(buffers.workspace, 512 / 32 * 36);
    assert_int_equal(pipeline_buffers_of(a, &s.pipelines[1]).workspace, 3 * 512 / 32 * 36);
    arena_free(a);
}

static void assert_has(const char *text, const char *part)
{
    if (!strstr(text, part))
        fail_msg("no '%s'", part);
}

static void header_and_manifest_tell_the_steps(void **state)
{
    (void)state;
    arena *a = arena_new();
    diags d = diags_new(a);
    spec s = parse(a, two_pipelines);
    kernel_set set;
    assert_true(generate_kernels(a, &s, &set, &d));
    strbuf header = strbuf_new(a), manifest = strbuf_new(a);
    emit_header(&header, &set);
    emit_manifest(&manifest, &set);
    assert_has(header.text, "extern const ptxgen_pipeline ptxgen_qkv_k512_n256_kv64;\n");
    assert_has(header.text, "ptxgen_qkv_k512_n256_kv64_step_1[] = "
                            "{ { 0, 0 }, { 3, 0 }, { PTXGEN_WORKSPACE, 0 } };\n");
    assert_has(header.text, "    &ptxgen_qkv_k512_n256_kv64,\n    "
                            "&ptxgen_batched_gate_up_k512_n96_m3,\n    NULL,\n");
    assert_has(manifest.text, "\"pipeline\": \"qkv\"");
    assert_has(manifest.text, "\"x\": \"workspace+0\"");
    assert_has(manifest.text, "\"workspace\": 576\n");
    arena_free(a);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_parameter_of_every_step_is_bound_and_nothing_else),
        cmocka_unit_test(a_step_takes_from_the_workspace_what_one_before_it_put_there),
        cmocka_unit_test(a_section_makes_the_kernels_that_are_not_there_yet),
        cmocka_unit_test(buffers_are_outputs_weights_inputs_with_their_sizes),
        cmocka_unit_test(header_and_manifest_tell_the_steps),
    };
    return cmocka_run_group_tests_name("pipeline", tests, NULL, NULL);
}
