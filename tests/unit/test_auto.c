/* variant = auto from the spec to the files: which instances and kernels it makes, what header and
 * manifest say of them, and which of them a program finds. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "base/os.h"
#include "generate.h"

/* Choices that differ between targets, with a gap: sm_80 and sm_89 get the same. */
#define MIXED                                          \
    "[ptxgen]\ntargets = sm_75, sm_80, sm_86, sm_89\n" \
    "[q4k_gemv]\nshape = 4096x4096\nvariant = auto\nprecision = f32\n"

/* The same where x may be rounded: sm_80 gets a kernel that does. */
#define ROUNDED                                        \
    "[ptxgen]\ntargets = sm_75, sm_80, sm_86, sm_89\n" \
    "[q4k_gemv]\nshape = 4096x4096\nvariant = auto\n"

typedef struct outcome {
    arena *arena;
    diags diags;
    spec spec;
    kernel_set set;
    const char *messages;
} outcome;

static outcome generate(const char *text)
{
    outcome o = { .arena = arena_new() };
    o.diags = diags_new(o.arena);
    strbuf messages = strbuf_new(o.arena);
    bool right = spec_parse(o.arena, "t.ini", text, strlen(text), families_and_pipelines(o.arena),
                            NULL, &o.spec, &o.diags) &&
                 generate_kernels(o.arena, &o.spec, &o.set, &o.diags);
    diags_render(&o.diags, &messages, false);
    o.messages = messages.text;
    if (!right)
        fail_msg("%s", messages.text);
    return o;
}

static const char *instance_names(const outcome *o)
{
    strbuf names = strbuf_new(o->arena);
    for (size_t i = 0; i < o->spec.instance_count; i++)
        strbuf_format(&names, "%s ", o->spec.instances[i].name);
    return names.text;
}

/* "NAME sm_75..sm_80 chosen f32 q8\n" of each kernel. */
static const char *kernel_names(const outcome *o)
{
    strbuf names = strbuf_new(o->arena);
    for (size_t i = 0; i < o->set.kernel_count; i++) {
        const kernel *k = &o->set.kernels[i];
        unsigned chosen = instance_chosen(k->instance, k->target);
        strbuf_format(&names, "%s %s..%s%s%s%s\n", k->instance->name, k->target->name,
                      k->newest->name, chosen ? " chosen" : "",
                      chosen >> PRECISION_F32 & 1 ? " f32" : "",
                      chosen >> PRECISION_Q8 & 1 ? " q8" : "");
    }
    return names.text;
}

typedef struct example {
    const char *what, *text, *instances;
} example;

static const example examples[] = {
    { "each shape its own",
      "[q4k_gemv]\nshape = 4096x4096, 4096x1024, 512x64, 4096x2048\nvariant = auto\n",
      "stream_q4k_gemv_k4096_n4096_m1_w12_r1 mwv_q4k_gemv_k4096_n1024_w4 "
      "vectorized_q4k_gemv_k512_n64 mwv_q4k_gemv_k4096_n2048_w2 " },
    { "x is not rounded where that is not allowed",
      "[q4k_gemv]\nshape = 4096x4096\nvariant = auto\nprecision = f32\n",
      "mwv_q4k_gemv_k4096_n4096_w2 " },
    { "x is not rounded where sizes are left to the run",
      "[ptxgen]\ndims = dynamic\n[q4k_gemv]\nshape = 4096x4096\nvariant = auto\n",
      "mwv_q4k_gemv_k4096_n4096_w2_dynamic " },
    { "both precisions", "[q4k_gemv]\nshape = 4096x4096\nvariant = auto\nprecision = q8, f32\n",
      "stream_q4k_gemv_k4096_n4096_m1_w12_r1 mwv_q4k_gemv_k4096_n4096_w2 " },
    { "both precisions where they are the same",
      "[q4k_gemv]\nshape = 4096x1024\nvariant = auto\nprecision = f32, q8\n",
      "mwv_q4k_gemv_k4096_n1024_w4 " },
    { "precision does not matter to the plain one",
      "[q4k_gemv]\nshape = 4096x4096\nprecision = q8, f32\n", "q4k_gemv_k4096_n4096 " },
    { "Q6_K, where the plain one may be best",
      "[q6k_gemv]\nshape = 4096x4096, 512x64, 256x64\nvariant = auto\n",
      "mwv_q6k_gemv_k4096_n4096_w2 mwv_q6k_gemv_k512_n64_w1 q6k_gemv_k256_n64 " },
    { "blocks of 32 weights, few rows of which go to the streaming kernel",
      "[q8_0_gemv]\nshape = 4096x4096, 4096x1024\nvariant = auto\n",
      "q8_0_gemv_k4096_n4096 stream_q8_0_gemv_k4096_n1024_m1_w12_r1 " },
    { "an instance for each choice, the oldest target's first",
      "[ptxgen]\ntargets = sm_90, sm_75\n[q4k_gemv]\nk = 4096\nn = 1024, 4096\nvariant = auto\n",
      "mwv_q4k_gemv_k4096_n1024_w4 mwv_q4k_gemv_k4096_n1024_w8 mwv_q4k_gemv_k4096_n4096_w2 "
      "stream_q4k_gemv_k4096_n4096_m1_w12_r1 " },
    { "sizes left to the run", "[ptxgen]\ndims = dynamic\n[q4k_gemv]\nvariant = auto\n",
      "mwv_q4k_gemv_w4_dynamic " },
    { "one size left to the run",
      "[ptxgen]\ndims = dynamic\n[q4k_gemv]\nvariant = auto\nk = 512, 4096\n",
      "vectorized_q4k_gemv_k512_dynamic mwv_q4k_gemv_k4096_w4_dynamic " },
    { "both variants", "[q4k_gemv]\nshape = 4096x4096\nvariant = plain, auto\n",
      "q4k_gemv_k4096_n4096 stream_q4k_gemv_k4096_n4096_m1_w12_r1 " },
    { "both variants where they are the same",
      "[q6k_gemv]\nshape = 256x64\nvariant = plain, auto\n", "q6k_gemv_k256_n64 " },
    { "plain is the default", "[q4k_gemv]\nshape = 4096x4096\n", "q4k_gemv_k4096_n4096 " },
};

static void every_section_makes_the_instances_chosen_for_its_shapes_and_targets(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof examples / sizeof *examples; i++) {
        outcome o = generate(examples[i].text);
        if (*o.messages || strcmp(instance_names(&o), examples[i].instances) != 0)
            fail_msg("%s: %s%s", examples[i].what, o.messages, instance_names(&o));
        arena_free(o.arena);
    }
}

static void a_kernel_stands_for_the_targets_in_a_row_that_it_was_chosen_for(void **state)
{
    (void)state;
    outcome o = generate(MIXED);
    assert_string_equal(kernel_names(&o), "mwv_q4k_gemv_k4096_n4096_w2 sm_75..sm_80 chosen f32\n"
                                          "mwv_q4k_gemv_k4096_n4096_w2 sm_89..sm_89 chosen f32\n"
                                          "mwv_q4k_gemv_k4096_n4096_w4 sm_86..sm_86 chosen f32\n");
    arena_free(o.arena);
}

static void a_kernel_that_both_precisions_chose_is_one_where_both_did(void **state)
{
    (void)state;
    outcome o = generate("[ptxgen]\ntargets = sm_75, sm_80, sm_86, sm_89\n[q4k_gemv]\n"
                         "shape = 4096x4096\nvariant = auto\nprecision = q8, f32\n");
    assert_string_equal(kernel_names(&o),
                        "mwv_q4k_gemv_k4096_n4096_w2 sm_75..sm_75 chosen f32 q8\n"
                        "mwv_q4k_gemv_k4096_n4096_w2 sm_80..sm_80 chosen f32\n"
                        "mwv_q4k_gemv_k4096_n4096_w2 sm_89..sm_89 chosen f32 q8\n"
                        "stream_q4k_gemv_k4096_n4096_m1_w12_r1 sm_80..sm_80 "
                        "chosen q8\n"
                        "mwv_q4k_gemv_k4096_n4096_w4 sm_86..sm_86 chosen f32 q8\n");
    arena_free(o.arena);
}

static void what_the_spec_names_as_well_is_made_once_for_all_targets_with_a_note(void **state)
{
    (void)state;
    outcome o = generate(MIXED "[mwv_q4k_gemv]\nshape = 4096x4096\nnum_warps = 4\n");
    assert_string_equal(o.messages, "t.ini:7:1: note: mwv_q4k_gemv_k4096_n4096_w4 is made for the "
                                    "section on line 3 already; it is made once [E025]\n"
                                    "    7 | [mwv_q4k_gemv]\n"
                                    "      | ^~~~~~~~~~~~~~\n");
    assert_string_equal(kernel_names(&o), "mwv_q4k_gemv_k4096_n4096_w2 sm_75..sm_80 chosen f32\n"
                                          "mwv_q4k_gemv_k4096_n4096_w2 sm_89..sm_89 chosen f32\n"
                                          "mwv_q4k_gemv_k4096_n4096_w4 sm_75..sm_80\n"
                                          "mwv_q4k_gemv_k4096_n4096_w4 sm_86..sm_86 chosen f32\n"
                                          "mwv_q4k_gemv_k4096_n4096_w4 sm_89..sm_89\n");
    arena_free(o.arena);
}

static void the_largest_shape_has_a_choice(void **state)
{
    (void)state;
    outcome o = generate("[ptxgen]\ntargets = sm_75, sm_90\n"
                         "[q4k_gemv]\nshape = 2147483392x2147483647\nvariant = auto\n");
    assert_string_equal(instance_names(&o), "mwv_q4k_gemv_k2147483392_n2147483647_w2 ");
    arena_free(o.arena);
}

static void assert_has(const char *text, const char *part)
{
    if (!strstr(text, part))
        fail_msg("no '%s'", part);
}

static const char *header(const outcome *o)
{
    strbuf text = strbuf_new(o->arena);
    emit_header(&text, &o->set);
    return text.text;
}

static void the_header_says_what_was_chosen_for_which_targets(void **state)
{
    (void)state;
    outcome o = generate(MIXED "[q4k_gemv:named]\nshape = 256x1\n");
    const char *text = header(&o);
    assert_has(text, " *        mwv_q4k_gemv_k4096_n4096_w2 chosen by q4k_gemv auto, precision "
                     "f32, for sm_75 to "
                     "sm_80\n");
    assert_has(text, " *        mwv_q4k_gemv_k4096_n4096_w4 chosen by q4k_gemv auto, precision "
                     "f32, for sm_86\n");
    assert_has(text, "16 bytes shared; chosen by q4k_gemv auto, precision f32, for sm_86. */\n"
                     "extern const ptxgen_kernel ptxgen_mwv_q4k_gemv_k4096_n4096_w4;\n");
    assert_has(text, "chosen by q4k_gemv auto, precision f32, for sm_89. */\n"
                     "extern const ptxgen_kernel ptxgen_mwv_q4k_gemv_k4096_n4096_w2_sm_89;\n");
    assert_has(text, "block 32, grid 1. */\nextern const ptxgen_kernel ptxgen_q4k_gemv_k256_n1;\n");
    assert_has(text, "    { \"precision\", 0, 0, \"f32\", 0, 0, 0, 1 },\n");
    arena_free(o.arena);
}

static void the_manifest_says_it_too(void **state)
{
    (void)state;
    outcome o = generate(MIXED "[q4k_gemv:named]\nshape = 256x1\n");
    strbuf text = strbuf_new(o.arena);
    emit_manifest(&text, &o.set);
    assert_has(text.text, "      \"file\": \"mwv_q4k_gemv_k4096_n4096_w2.sm_75.ptx\",\n"
                          "      \"target\": \"sm_75\",\n"
                          "      \"isa\": \"6.3\",\n"
                          "      \"chosen_by\": \"q4k_gemv\",\n"
                          "      \"chosen_for\": [\n"
                          "        \"sm_75\",\n"
                          "        \"sm_80\"\n"
                          "      ],\n"
                          "      \"chosen_with\": [\n"
                          "        \"f32\"\n"
                          "      ],\n");
    const char *named = strstr(text.text, "\"name\": \"q4k_gemv_k256_n1\"");
    assert_non_null(named);
    assert_null(strstr(named, "chosen_by"));
    arena_free(o.arena);
}

/* Prints what is found on devices of several ages, with any precision and without rounding. */
static const char finder[] =
    "#include <stdio.h>\n"
    "#define PTXGEN_KERNELS_IMPLEMENTATION\n"
    "#include \"ptxgen_kernels.h\"\n"
    "int main(void)\n"
    "{\n"
    "    static const unsigned devices[] = { 0, 70, 75, 80, 86, 87, 89, 90 };\n"
    "    for (size_t i = 0; i < 2 * (sizeof devices / sizeof *devices); i++) {\n"
    "        ptxgen_query q = { .op = PTXGEN_GEMV, .k = 4096, .n = 4096, .sm = devices[i / 2] };\n"
    "        q.precision = i % 2 ? PTXGEN_F32 : PTXGEN_NONE;\n"
    "        const ptxgen_kernel *k = ptxgen_find(&q);\n"
    "        if (i % 2 == 0)\n"
    "            printf(\"%u:\", devices[i / 2]);\n"
    "        printf(\"%ld/%u%c\", k ? (long)k->num_warps : 0, k ? k->sm : 0, i % 2 ? ' ' : ',');\n"
    "    }\n"
    "    return 0;\n"
    "}\n";

static void write(arena *a, const char *path, const char *text)
{
    const char *error;
    assert_true(os_write_file(a, path, text, strlen(text), &error));
}

/* Compiles the header of a spec and gives what the program prints: "device:num_warps/sm,exact one
 * ". */
static const char *find(const outcome *o, const char *compiler)
{
    arena *a = o->arena;
    const char *folder, *error;
    char *output;
    int status;
    assert_true(os_temporary_directory(a, &folder, &error));
    const char *source = arena_format(a, "%s/finder.c", folder);
    const char *program = arena_format(a, "%s/finder", folder);
    write(a, arena_format(a, "%s/ptxgen_kernels.h", folder), header(o));
    write(a, source, finder);
    assert_true(os_run(a, (const char *const[]){ compiler, "-o", program, source, NULL }, &output,
                       &status, &error));
    if (status != 0)
        fail_msg("%s", output);
    assert_true(os_run(a, (const char *const[]){ program, NULL }, &output, &status, &error));
    os_remove_directory(a, folder);
    return output;
}

static void a_device_finds_what_was_chosen_for_it(void **state)
{
    (void)state;
    static const char exact[] = "0:2/75,2/75 70:0/0,0/0 75:2/75,2/75 80:2/75,2/75 "
                                "86:4/86,4/86 87:4/86,4/86 89:2/89,2/89 90:2/89,2/89 ";
    static const char rounded[] = "0:2/75,2/75 70:0/0,0/0 75:2/75,2/75 80:12/80,2/75 "
                                  "86:4/86,4/86 87:4/86,4/86 89:2/89,2/89 90:2/89,2/89 ";
    static const char both[] = "0:2/75,2/75 70:0/0,0/0 75:2/75,2/75 80:12/80,2/80 "
                               "86:4/86,4/86 87:4/86,4/86 89:2/89,2/89 90:2/89,2/89 ";
    static const struct {
        const char *spec, *found;
    } cases[] = {
        { MIXED, exact },
        /* beside kernels that the spec names, before and behind */
        { MIXED "[mwv_q4k_gemv]\nshape = 4096x4096\nnum_warps = 8, 2, 4\n[q4k_gemv:plain]\n"
                "shape = 4096x4096\n",
          exact },
        { "[mwv_q4k_gemv]\nshape = 4096x4096\nnum_warps = 8, 4, 2\n" MIXED, exact },
        { MIXED "[stream_q4k_gemv]\nshape = 4096x4096\nnum_warps = 8\n", exact },
        { ROUNDED, rounded },
        { ROUNDED "[stream_q4k_gemv]\nshape = 4096x4096\nnum_warps = 8\n", rounded },
        { ROUNDED "[q4k_gemv:exact]\nshape = 4096x4096\nvariant = auto\nprecision = f32\n", both },
        { MIXED "[q4k_gemv:rounded]\nshape = 4096x4096\nvariant = auto\n", both },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        outcome o = generate(cases[i].spec);
        const char *compiler = os_find_program(o.arena, "cc");
        if (!compiler) {
            arena_free(o.arena);
            skip();
        }
        const char *found = find(&o, compiler);
        if (strcmp(found, cases[i].found) != 0)
            fail_msg("case %zu: %s", i, found);
        arena_free(o.arena);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_section_makes_the_instances_chosen_for_its_shapes_and_targets),
        cmocka_unit_test(a_kernel_stands_for_the_targets_in_a_row_that_it_was_chosen_for),
        cmocka_unit_test(a_kernel_that_both_precisions_chose_is_one_where_both_did),
        cmocka_unit_test(what_the_spec_names_as_well_is_made_once_for_all_targets_with_a_note),
        cmocka_unit_test(the_largest_shape_has_a_choice),
        cmocka_unit_test(the_header_says_what_was_chosen_for_which_targets),
        cmocka_unit_test(the_manifest_says_it_too),
        cmocka_unit_test(a_device_finds_what_was_chosen_for_it),
    };
    return cmocka_run_group_tests_name("auto", tests, NULL, NULL);
}
