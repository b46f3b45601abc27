/* Writes the header. Its constant text is in templates/header*.h.in; this file fills in the
 * @PLACEHOLDERS@. */
#include <inttypes.h>
#include <string.h>

#include "emit/emit.h"
#include "emit/header_parts.h"
#include "kernel/formula.h"
#include "kernel/memory_plan.h"
#include "templates/templates.h"

static void print_prefix(strbuf *out, const described_set *d)
{
    strbuf_put(out, d->set->prefix);
}

static void print_upper_prefix(strbuf *out, const described_set *d)
{
    strbuf_upper(out, d->set->prefix);
}

/* Prints one line per operation or format: its enumerator, or its name as a string. */
enum { OPERATION_ENUMERATORS, FORMAT_ENUMERATORS, OPERATION_NAMES, FORMAT_NAMES };
static void print_names(strbuf *out, const described_set *d, int what)
{
    (void)d;
    bool of_formats = what == FORMAT_ENUMERATORS || what == FORMAT_NAMES;
    for (int i = 0; i < (of_formats ? (int)FORMAT_COUNT : (int)OP_COUNT); i++) {
        const char *name = of_formats ? formats[i].name : operations[i].name;
        strbuf_put(out, what >= OPERATION_NAMES ? "        \"" : "    ");
        if (what >= OPERATION_NAMES)
            strbuf_put(out, name);
        else
            print_constant(out, name);
        strbuf_put(out, what >= OPERATION_NAMES ? "\",\n" : ",\n");
    }
}

/* Prints "14 kernels for sm_75, sm_80:", the kernels per family, and what auto chose. */
static void print_contents(strbuf *out, const described_set *d)
{
    typedef struct family_count {
        const family *family;
        size_t kernels;
    } family_count;
    const kernel_set *set = d->set;
    VEC(family_count) counts = { 0 }; /* in the order of first use in the set */
    for (size_t i = 0, at; i < set->kernel_count; i++) {
        const family *f = set->kernels[i].instance->family;
        for (at = 0; at < counts.count && counts.items[at].family != f;)
            at++;
        if (at == counts.count)
            *VEC_PUSH(out->arena, &counts) = (family_count){ .family = f };
        counts.items[at].kernels++;
    }
    strbuf_format(out, " * %zu kernel%s for ", set->kernel_count,
                  set->kernel_count == 1 ? "" : "s");
    for (size_t i = 0; i < set->target_count; i++)
        strbuf_format(out, "%s%s", i ? ", " : "", set->targets[i]->name);
    strbuf_put(out, ":\n");
    for (size_t i = 0; i < counts.count; i++)
        strbuf_format(out, " * %5zu  %-24s %s\n", counts.items[i].kernels,
                      counts.items[i].family->name, counts.items[i].family->summary);
    for (size_t i = 0; i < set->kernel_count; i++) {
        if (!kernel_is_chosen(&set->kernels[i]))
            continue;
        strbuf_format(out, " *        %s ", set->kernels[i].instance->name);
        print_choice(out, &set->kernels[i]);
        strbuf_char(out, '\n');
    }
}

static bool is_number(const instance *in, const key *k)
{
    return !k->choices && !key_is_passed(in, k);
}

/* Prints the family's formula. Fixed keys inside brackets become numbers; returns their mask. */
static uint64_t print_mathematics(strbuf *out, const instance *in)
{
    uint64_t said = 0;
    unsigned depth = 0;
    for (const char *c = in->family->computes; *c;) {
        size_t length = strspn(c, "abcdefghijklmnopqrstuvwxyz0123456789_");
        if (length && depth) {
            const char *word = arena_copy(out->arena, c, length);
            const key *k = family_key(in->family, word);
            if (k && is_number(in, k)) {
                strbuf_put(out, instance_value_text(out->arena, in, k));
                said |= UINT64_C(1) << (k - in->family->keys);
            } else {
                strbuf_put(out, word);
            }
        } else {
            length += length == 0;
            depth += *c == '[';
            depth -= *c == ']' && depth;
            strbuf_bytes(out, c, length);
        }
        c += length;
    }
    return said;
}

/* Prints the numbers that the formula does not show, and words that are no first choice. */
static void print_rest_of_config(strbuf *out, const instance *in, uint64_t said)
{
    const key *keys = in->family->keys;
    for (size_t i = 0; keys[i].name; i++) {
        bool shown =
            said >> i & 1 || instance_value(in, &keys[i]) == 0 || !key_matters(in, &keys[i]);
        if (is_number(in, &keys[i]) && !shown)
            strbuf_format(out, ", %s %s", keys[i].name,
                          instance_value_text(out->arena, in, &keys[i]));
        else if (keys[i].choices && instance_value(in, &keys[i]) &&
                 strcmp(keys[i].name, "weights") != 0)
            strbuf_format(out, ", %s %s", config_word(in, &keys[i]), keys[i].name);
    }
}

static void print_summary(strbuf *out, const description *d)
{
    const kernel *k = d->kernel;
    const instance *in = k->instance;
    const launch *how = &in->family->launch;

    strbuf_put(out, "/* ");
    uint64_t said = print_mathematics(out, in);
    if (instance_weights(in) != FORMAT_NONE)
        strbuf_format(out, ", weights %s", formats[instance_weights(in)].name);
    if (instance_activations(in) != FORMAT_NONE)
        strbuf_format(out, ", activations %s%s", formats[instance_activations(in)].name,
                      instance_precision(in) == instance_activations(in) ? ""
                      : in->family->halves                               ? " rounded to f16"
                                                                         : " rounded to 8 bits");
    print_rest_of_config(out, in, said);
    strbuf_format(out, ".  %s, block %" PRId64 ", grid ", kernel_target_name(k), d->block);
    size_t dimensions = how->grid[2] ? 3 : how->grid[1] ? 2 : 1;
    for (size_t i = 0; i < dimensions; i++) {
        strbuf_put(out, i ? " x " : "");
        if (d->grid[i] >= 0)
            strbuf_signed(out, d->grid[i]);
        else
            formula_print(out, how->grid[i], in, FORMULA_NUMBERS);
    }
    if (k->shared_bytes)
        strbuf_format(out, ", %zu bytes shared", k->shared_bytes);
    if (d->dynamic_shared > 0)
        strbuf_format(out, ", %" PRId64 " bytes dynamic shared", d->dynamic_shared);
    else if (d->dynamic_shared < 0) {
        strbuf_put(out, ", ");
        formula_print(out, how->dynamic_shared, in, FORMULA_NUMBERS);
        strbuf_put(out, " bytes dynamic shared");
    }
    if (k->resources.known)
        strbuf_format(out, ", %u registers", k->resources.registers);
    if (kernel_is_chosen(k)) {
        strbuf_put(out, "; ");
        print_choice(out, k);
    }
    strbuf_char(out, '.');
    for (size_t i = 0; i < d->param_count; i++)
        if (d->params[i].holds)
            strbuf_format(out, "\n * %s: %s.", d->params[i].name, d->params[i].holds);
    strbuf_put(out, " */\n");
}

static void print_declarations(strbuf *out, const described_set *d)
{
    for (size_t i = 0; i < d->set->kernel_count; i++) {
        print_summary(out, &d->kernels[i]);
        strbuf_format(out, "extern const ptxgen_kernel %s;\n\n", d->kernels[i].id);
    }
}

static void print_table(strbuf *out, const described_set *d)
{
    for (size_t i = 0; i < d->set->kernel_count; i++)
        strbuf_format(out, "    &%s,\n", d->kernels[i].id);
}

/* Prints "{ 75, 65536 }," for each architecture whose limit differs from its predecessor's. */
static void print_shared_limits(strbuf *out, const described_set *d)
{
    (void)d;
    for (size_t i = 0; i < target_count; i++)
        if (!i || targets[i].shared_block != targets[i - 1].shared_block)
            strbuf_format(out, "        { %u, %u },\n", targets[i].sm, targets[i].shared_block);
}

static void print_kernel_count(strbuf *out, const described_set *d)
{
    strbuf_unsigned(out, d->set->kernel_count);
}

static void print_first(strbuf *out, const described_set *d)
{
    strbuf_put(out, d->kernels[0].id);
}

static void print_embedding(strbuf *out, const described_set *d)
{
    static const char *const texts[EMBED_COUNT] = { [EMBED_STRING] = "",
                                                    [EMBED_C23] = template_header_c23_h_in,
                                                    [EMBED_INCBIN] = template_header_incbin_h_in };
    header_fill(out, texts[d->set->embed], d);
}

/* Prints a part that only headers with a plan have. */
static void print_plan(strbuf *out, const described_set *d, int place)
{
    if (d->set->plan)
        d->set->upper->header(out, d, (header_place)place);
}

/* A placeholder of a template. A function prints its text, with or without a number, or the text
 * itself, with placeholders of its own, or the number is printed. */
typedef struct placeholder {
    const char *name;
    void (*print)(strbuf *out, const described_set *d);
    void (*print_of)(strbuf *out, const described_set *d, int number);
    int number;
    const char *text;
} placeholder;

static const placeholder placeholders[] = {
    { "@PREFIX@", .print = print_prefix },
    { "@UPPER@", .print = print_upper_prefix },
    { "@VERSION@", .text = PTXGEN_VERSION },
    { "@ABI@", .number = PTXGEN_HEADER_ABI },
    { "@CONTENTS@", .print = print_contents },
    { "@OPERATIONS@", .print_of = print_names, .number = OPERATION_ENUMERATORS },
    { "@FORMATS@", .print_of = print_names, .number = FORMAT_ENUMERATORS },
    { "@DECLARATIONS@", .print = print_declarations },
    { "@PIPELINE_DECLARATIONS@", .print = print_pipeline_declarations },
    { "@DATA@", .print = print_kernel_definitions },
    { "@PIPELINE_DATA@", .print = print_pipeline_definitions },
    { "@TABLE@", .print = print_table },
    { "@PIPELINES@", .print = print_pipeline_table },
    { "@PLAN_HEAD@", .print_of = print_plan, .number = HEADER_PLAN_HEAD },
    { "@PLAN_TYPES@", .print_of = print_plan, .number = HEADER_PLAN_TYPES },
    { "@PLAN_DECLARATIONS@", .print_of = print_plan, .number = HEADER_PLAN_DECLARATIONS },
    { "@PLAN_DATA@", .print_of = print_plan, .number = HEADER_PLAN_DATA },
    { "@DECODER@", .print_of = print_plan, .number = HEADER_PLAN_FUNCTIONS },
    { "@MOST_ROWS@", .number = PROBLEM_MOST_ROWS },
    { "@MOST_TILES@", .number = PROBLEM_MOST_TILES },
    { "@SAMPLING_WORDS@", .number = SAMPLING_WORDS },
    { "@PIECE_ALIGNMENT@", .number = MEMORY_ALIGNMENT },
    { "@CUDA@", .text = template_header_cuda_h_in },
    { "@EXPLAIN@", .text = template_header_explain_h_in },
    { "@EMBED@", .print = print_embedding },
    { "@OPERATION_NAMES@", .print_of = print_names, .number = OPERATION_NAMES },
    { "@FORMAT_NAMES@", .print_of = print_names, .number = FORMAT_NAMES },
    { "@MOST_ARGUMENTS@", .number = MAX_PARAMS },
    { "@MOST_STEPS@", .number = PIPELINE_MOST_STEPS },
    { "@MOST_SMS@", .number = TARGET_MOST_SMS },
    { "@KERNEL_COUNT@", .print = print_kernel_count },
    { "@SHARED_LIMITS@", .print = print_shared_limits },
    { "@LAUNCHES@", .print = print_launches },
    { "@PIPELINE_LAUNCHES@", .print = print_pipeline_launches },
    { "@QUERY_ENUMS@", .print = print_query_enums },
    { "@QUERY_SIZE_MEMBERS@", .print_of = print_query_members, .number = QUERY_SIZES },
    { "@QUERY_OPTION_MEMBERS@", .print_of = print_query_members, .number = QUERY_OPTIONS },
    { "@QUERY_MATRIX_MEMBERS@", .print_of = print_query_members, .number = QUERY_MATRICES },
    { "@QUERY_MATRICES@", .print_of = print_query_count, .number = QUERY_MATRICES },
    { "@QUERY_MATRIX_ROWS@", .print_of = print_query_rows, .number = QUERY_MATRICES },
    { "@QUERY_SIZES@", .print_of = print_query_count, .number = QUERY_SIZES },
    { "@QUERY_OPTIONS@", .print_of = print_query_count, .number = QUERY_OPTIONS },
    { "@QUERY_SIZE_ROWS@", .print_of = print_query_rows, .number = QUERY_SIZES },
    { "@QUERY_OPTION_ROWS@", .print_of = print_query_rows, .number = QUERY_OPTIONS },
    { "@ALIAS_LAUNCHES@", .print = print_alias_launches },
    { "@FIRST@", .print = print_first },
    { "@FIRST_ARGUMENTS@", .print = print_first_arguments },
};

void header_fill(strbuf *out, const char *text, const described_set *d)
{
    while (*text) {
        size_t plain = strcspn(text, "@");
        strbuf_bytes(out, text, plain);
        text += plain;
        const placeholder *p = NULL;
        for (size_t i = 0; !p && i < sizeof placeholders / sizeof *placeholders; i++)
            if (strncmp(text, placeholders[i].name, strlen(placeholders[i].name)) == 0)
                p = &placeholders[i];
        if (p && p->print)
            p->print(out, d);
        else if (p && p->print_of)
            p->print_of(out, d, p->number);
        else if (p && p->text)
            header_fill(out, p->text, d);
        else if (p)
            strbuf_signed(out, p->number);
        else if (*text)
            strbuf_char(out, *text++);
        text += p ? strlen(p->name) : 0;
    }
}

void emit_header(strbuf *out, const described_set *d)
{
    /* Approximate size of a header without PTX, reserved to avoid copies while the text grows. */
    enum { CONSTANT_BYTES = 64 * 1024, BYTES_A_KERNEL = 4096 };
    const kernel_set *set = d->set;
    size_t size = CONSTANT_BYTES + set->kernel_count * BYTES_A_KERNEL;
    for (size_t i = 0; set->embed == EMBED_STRING && i < set->kernel_count; i++)
        size += set->kernels[i].ptx_length + set->kernels[i].ptx_length / 8;
    strbuf_reserve(out, size);
    header_fill(out, template_header_h_in, d);
}
