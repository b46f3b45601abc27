#include <jansson.h>
#include <string.h>

#include "test.h"
#include "emit/emit.h"
#include "emit_sample.h"

typedef struct parsed {
    arena *arena;
    strbuf text;
    json_t *manifest;
} parsed;

static int set_up(void **state)
{
    arena *a = arena_new();
    parsed *p = arena_zalloc(a, sizeof *p);
    kernel kernels[SAMPLE_KERNELS];
    const target *found[2];
    kernel_set set = sample_set("llama", kernels, found);
    p->arena = a;
    p->text = strbuf_new(a);
    described_set d = describe_set(a, &set);
    emit_manifest(&p->text, &d);
    p->manifest = json_loads(p->text.text, JSON_REJECT_DUPLICATES, NULL);
    *state = p;
    return p->manifest ? 0 : -1;
}

static int tear_down(void **state)
{
    parsed *p = *state;
    json_decref(p->manifest);
    arena_free(p->arena);
    return 0;
}

static json_t *kernel_at(void **state, size_t i)
{
    parsed *p = *state;
    return json_array_get(json_object_get(p->manifest, "kernels"), i);
}

static const char *compact(void **state, json_t *value)
{
    parsed *p = *state;
    char *text = json_dumps(value, JSON_COMPACT | JSON_PRESERVE_ORDER | JSON_ENCODE_ANY);
    const char *copy = arena_strdup(p->arena, text);
    free(text);
    return copy;
}

TEST(keys_are_in_the_promised_order)
{
    static const char *const top[] = { "ptxgen",    "abi",     "prefix",     "kernels",
                                       "pipelines", "aliases", "conventions" };
    static const char *const of_a_kernel[] = {
        "name", "family",    "operation", "entry",   "file",      "target",
        "isa",  "overlaps",  "config",    "params",  "block",     "grid",
        "smem", "workspace", "ptxas",     "fnv1a64", "precision",
    };
    parsed *p = *state;
    const char *name;
    json_t *value;
    size_t at = 0;
    json_object_foreach(p->manifest, name, value) assert_string_equal(name, top[at++]);
    assert_int_equal(at, sizeof top / sizeof *top);
    at = 0;
    json_object_foreach(kernel_at(state, 0), name, value)
        assert_string_equal(name, of_a_kernel[at++]);
    assert_int_equal(at, sizeof of_a_kernel / sizeof *of_a_kernel);
}

TEST(a_kernel_is_described_in_full)
{
    json_t *k = kernel_at(state, 0);
    assert_string_equal(compact(state, json_object_get(k, "name")),
                        "\"plain_gemv_k4096_n14336_w4\"");
    assert_string_equal(compact(state, json_object_get(k, "operation")), "\"gemv\"");
    assert_string_equal(compact(state, json_object_get(k, "isa")), "\"6.3\"");
    assert_string_equal(compact(state, json_object_get(k, "config")),
                        "{\"k\":4096,\"n\":14336,\"num_warps\":4,\"dims\":\"static\"}");
    assert_string_equal(compact(state, json_array_get(json_object_get(k, "params"), 1)),
                        "{\"name\":\"w\",\"kind\":\"pointer\",\"dir\":\"in\",\"element\":\"q4_k\","
                        "\"bytes\":33030144,\"size\":\"n*k/256*144\",\"align\":16}");
    assert_string_equal(compact(state, json_object_get(k, "block")), "[128,1,1]");
    assert_string_equal(compact(state, json_object_get(k, "grid")), "[14336,1,1]");
    assert_null(json_object_get(k, "grid_expr"));
    assert_string_equal(compact(state, json_object_get(k, "smem")),
                        "{\"static\":16,\"dynamic\":0}");
    assert_string_equal(compact(state, json_object_get(k, "ptxas")),
                        "{\"registers\":40,\"spill_bytes\":8,\"stack_bytes\":0}");
}

TEST(run_time_values_are_null_with_a_formula)
{
    json_t *k = kernel_at(state, 2);
    assert_string_equal(compact(state, json_object_get(k, "grid")), "null");
    assert_string_equal(compact(state, json_object_get(k, "grid_expr")), "[\"n\",\"1\",\"1\"]");
    json_t *params = json_object_get(k, "params");
    assert_string_equal(compact(state, json_object_get(json_array_get(params, 0), "bytes")),
                        "null");
    assert_string_equal(compact(state, json_array_get(params, 3)),
                        "{\"name\":\"k_dim\",\"kind\":\"u32\",\"dir\":\"in\",\"size\":\"k\"}");
    assert_string_equal(compact(state, json_object_get(kernel_at(state, 4), "grid_expr")),
                        "[\"min(n, sm_count*16)\",\"1\",\"1\"]");
}

TEST(without_ptxas_its_figures_are_null)
{
    assert_true(json_is_null(json_object_get(kernel_at(state, 1), "ptxas")));
}

TEST(the_text_ends_with_one_newline)
{
    parsed *p = *state;
    assert_int_equal(strlen(p->text.text), p->text.length);
    assert_string_equal(p->text.text + p->text.length - 3, "\n}\n");
}

TEST_FIXTURE(set_up, tear_down)
