/* The constant text stands in templates/header*.h.in; here their @PLACEHOLDERS@ are filled in. */
#include "emit/header.h"

#include <inttypes.h>
#include <string.h>

#include "emit/header_cuda.h"
#include "emit/header_data.h"
#include "emit/header_pipelines.h"
#include "emit/header_ptx.h"
#include "emit/header_query.h"
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

static void print_abi(strbuf *out, const described_set *d)
{
    (void)d;
    strbuf_unsigned(out, PTXGEN_HEADER_ABI);
}

static void print_enumerator(strbuf *out, const char *name)
{
    strbuf_put(out, "    PTXGEN_");
    strbuf_upper(out, name);
    strbuf_put(out, ",\n");
}

static void print_operations(strbuf *out, const described_set *d)
{
    (void)d;
    for (size_t i = 0; i < OP_COUNT; i++)
        print_enumerator(out, operations[i].name);
}

static void print_formats(strbuf *out, const described_set *d)
{
    (void)d;
    for (size_t i = 0; i < FORMAT_COUNT; i++)
        print_enumerator(out, formats[i].name);
}

static void print_quoted(strbuf *out, const char *name)
{
    strbuf_format(out, "        \"%s\",\n", name);
}

static void print_operation_names(strbuf *out, const described_set *d)
{
    (void)d;
    for (size_t i = 0; i < OP_COUNT; i++)
        print_quoted(out, operations[i].name);
}

static void print_format_names(strbuf *out, const described_set *d)
{
    (void)d;
    for (size_t i = 0; i < FORMAT_COUNT; i++)
        print_quoted(out, formats[i].name);
}

typedef struct family_count {
    const family *family;
    size_t kernels;
} family_count;

typedef VEC(family_count) family_counts;

/* The families in the order in which the set has them. */
static family_counts count_families(arena *a, const kernel_set *set)
{
    family_counts counts = { 0 };
    for (size_t i = 0; i < set->kernel_count; i++) {
        const family *f = set->kernels[i].instance->family;
        size_t at = 0;
        while (at < counts.count && counts.items[at].family != f)
            at++;
        if (at == counts.count)
            *VEC_PUSH(a, &counts) = (family_count){ .family = f };
        counts.items[at].kernels++;
    }
    return counts;
}

/* "14 kernels for sm_75, sm_80:", each family with its number of kernels, and what was chosen. */
static void print_contents(strbuf *out, const described_set *d)
{
    const kernel_set *set = d->set;
    family_counts counts = count_families(out->arena, set);
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

/* The family's line of mathematics with the sizes that the configuration fixes: inside brackets
 * keys become numbers. Returns which keys, a bit each. */
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

/* The numbers of the configuration that the mathematics does not show, and the words that are not
 * the first choice. */
static void print_rest_of_config(strbuf *out, const instance *in, uint64_t said)
{
    const key *keys = in->family->keys;
    for (size_t i = 0; keys[i].name; i++) {
        bool shown =
            said >> i & 1 || instance_value(in, &keys[i]) == 0 || !key_matters(in, &keys[i]);
        if (is_number(in, &keys[i]) && !shown)
            strbuf_format(out, ", %s %s", keys[i].name,
                          instance_value_text(out->arena, in, &keys[i]));
        else if (keys[i].choices && instance_value(in, &keys[i]))
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
    print_pipeline_declarations(out, d);
}

static void print_data(strbuf *out, const described_set *d)
{
    const run_functions *at_run_time = print_run_functions(out, d);
    for (size_t i = 0; i < d->set->kernel_count; i++) {
        if (d->kernels[i].like == &d->kernels[i])
            print_ptx(out, d->set, &d->kernels[i]);
        print_definitions(out, d->set, &d->kernels[i], &at_run_time[i]);
    }
    print_pipeline_definitions(out, d);
}

static void print_table(strbuf *out, const described_set *d)
{
    for (size_t i = 0; i < d->set->kernel_count; i++)
        strbuf_format(out, "    &%s,\n", d->kernels[i].id);
}

static void print_most_arguments(strbuf *out, const described_set *d)
{
    (void)d;
    strbuf_unsigned(out, MAX_PARAMS);
}

static void print_most_steps(strbuf *out, const described_set *d)
{
    (void)d;
    strbuf_unsigned(out, PIPELINE_MOST_STEPS);
}

static void print_most_sms(strbuf *out, const described_set *d)
{
    (void)d;
    strbuf_unsigned(out, TARGET_MOST_SMS);
}

/* "{ 75, 65536 },", of each architecture from the first one on that differs from the one before. */
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

static void print_first_arguments(strbuf *out, const described_set *d)
{
    print_arguments(out, &d->kernels[0]);
}

static void print_embedding(strbuf *out, const described_set *d)
{
    static const char *const texts[EMBED_COUNT] = {
        [EMBED_STRING] = "",
        [EMBED_C23] = template_header_c23_h_in,
        [EMBED_INCBIN] = template_header_incbin_h_in,
    };
    header_fill(out, texts[d->set->embed], d);
}

/* What only a header with a plan has. */
#define PRINT_PLACE(name, place)                          \
    static void name(strbuf *out, const described_set *d) \
    {                                                     \
        if (d->set->plan)                                 \
            d->set->upper->header(out, d, place);         \
    }
PRINT_PLACE(print_plan_head, HEADER_PLAN_HEAD)
PRINT_PLACE(print_plan_types, HEADER_PLAN_TYPES)
PRINT_PLACE(print_plan_declarations, HEADER_PLAN_DECLARATIONS)
PRINT_PLACE(print_plan_data, HEADER_PLAN_DATA)
PRINT_PLACE(print_plan_functions, HEADER_PLAN_FUNCTIONS)

static void print_most_rows(strbuf *out, const described_set *d)
{
    (void)d;
    strbuf_unsigned(out, PROBLEM_MOST_ROWS);
}

static void print_sampling_words(strbuf *out, const described_set *d)
{
    (void)d;
    strbuf_unsigned(out, SAMPLING_WORDS);
}

static void print_piece_alignment(strbuf *out, const described_set *d)
{
    (void)d;
    strbuf_unsigned(out, MEMORY_ALIGNMENT);
}

/* What stands in its place: what a function prints, or a text with placeholders of its own. */
typedef struct placeholder {
    const char *name;
    void (*print)(strbuf *out, const described_set *d);
    const char *text;
} placeholder;

static const placeholder placeholders[] = {
    { "@PREFIX@", print_prefix, NULL },
    { "@UPPER@", print_upper_prefix, NULL },
    { "@VERSION@", NULL, PTXGEN_VERSION },
    { "@ABI@", print_abi, NULL },
    { "@CONTENTS@", print_contents, NULL },
    { "@OPERATIONS@", print_operations, NULL },
    { "@FORMATS@", print_formats, NULL },
    { "@DECLARATIONS@", print_declarations, NULL },
    { "@DATA@", print_data, NULL },
    { "@TABLE@", print_table, NULL },
    { "@PIPELINES@", print_pipeline_table, NULL },
    { "@PLAN_HEAD@", print_plan_head, NULL },
    { "@PLAN_TYPES@", print_plan_types, NULL },
    { "@PLAN_DECLARATIONS@", print_plan_declarations, NULL },
    { "@PLAN_DATA@", print_plan_data, NULL },
    { "@DECODER@", print_plan_functions, NULL },
    { "@MOST_ROWS@", print_most_rows, NULL },
    { "@SAMPLING_WORDS@", print_sampling_words, NULL },
    { "@PIECE_ALIGNMENT@", print_piece_alignment, NULL },
    { "@CUDA@", NULL, template_header_cuda_h_in },
    { "@EXPLAIN@", NULL, template_header_explain_h_in },
    { "@EMBED@", print_embedding, NULL },
    { "@OPERATION_NAMES@", print_operation_names, NULL },
    { "@FORMAT_NAMES@", print_format_names, NULL },
    { "@MOST_ARGUMENTS@", print_most_arguments, NULL },
    { "@MOST_STEPS@", print_most_steps, NULL },
    { "@MOST_SMS@", print_most_sms, NULL },
    { "@KERNEL_COUNT@", print_kernel_count, NULL },
    { "@SHARED_LIMITS@", print_shared_limits, NULL },
    { "@LAUNCHES@", print_launches, NULL },
    { "@PIPELINE_LAUNCHES@", print_pipeline_launches, NULL },
    { "@QUERY_ENUMS@", print_query_enums, NULL },
    { "@QUERY_SIZE_MEMBERS@", print_query_size_members, NULL },
    { "@QUERY_OPTION_MEMBERS@", print_query_option_members, NULL },
    { "@QUERY_MATRIX_MEMBERS@", print_query_matrix_members, NULL },
    { "@QUERY_MATRICES@", print_query_matrix_count, NULL },
    { "@QUERY_MATRIX_ROWS@", print_query_matrix_rows, NULL },
    { "@QUERY_SIZES@", print_query_size_count, NULL },
    { "@QUERY_OPTIONS@", print_query_option_count, NULL },
    { "@QUERY_SIZE_ROWS@", print_query_size_rows, NULL },
    { "@QUERY_OPTION_ROWS@", print_query_option_rows, NULL },
    { "@ALIAS_LAUNCHES@", print_alias_launches, NULL },
    { "@FIRST@", print_first, NULL },
    { "@FIRST_ARGUMENTS@", print_first_arguments, NULL },
};

static const placeholder *find_placeholder(const char *text)
{
    for (size_t i = 0; i < sizeof placeholders / sizeof *placeholders; i++)
        if (strncmp(text, placeholders[i].name, strlen(placeholders[i].name)) == 0)
            return &placeholders[i];
    return NULL;
}

void header_fill(strbuf *out, const char *text, const described_set *d)
{
    while (*text) {
        size_t plain = strcspn(text, "@");
        strbuf_bytes(out, text, plain);
        text += plain;
        const placeholder *p = find_placeholder(text);
        if (p && p->print)
            p->print(out, d);
        else if (p)
            header_fill(out, p->text, d);
        else if (*text)
            strbuf_char(out, *text++);
        text += p ? strlen(p->name) : 0;
    }
}

/* Roughly what a header has beside its PTX, so that it is not copied while it grows. */
enum { CONSTANT_BYTES = 64 * 1024, BYTES_A_KERNEL = 4096 };

static size_t likely_size(const kernel_set *set)
{
    size_t size = CONSTANT_BYTES + set->kernel_count * BYTES_A_KERNEL;
    for (size_t i = 0; set->embed == EMBED_STRING && i < set->kernel_count; i++)
        size += set->kernels[i].ptx_length + set->kernels[i].ptx_length / 8;
    return size;
}

void emit_header(strbuf *out, const described_set *d)
{
    strbuf_reserve(out, likely_size(d->set));
    header_fill(out, template_header_h_in, d);
}
