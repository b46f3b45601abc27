/* Checks that kernels of real models assemble without spills and without a stack, and that --verify
 * can run them.
 *
 * For each model and each list of targets, --from-gguf writes the spec, and ptxas assembles the
 * kernels for each GPU that runs them, as --validate does. A kernel that several models share is
 * assembled once. Below tier full, one in PAIRS pairs of model and list is generated, and one in
 * ASSEMBLIES of their kernels and GPUs is assembled. Environment variables:
 *
 *   PTXGEN_REAL_HEADERS   the folder of the models' headers
 *   PTXGEN_REAL_MODELS    their names, separated by spaces
 *   PTXGEN_REAL_TARGETS   lists of targets, separated by spaces: "sm_80,sm_90 sm_90a". "default" is
 *                         the list that --from-gguf writes.
 */
#include <stdlib.h>
#include <string.h>

#include "test_arena.h"
#include "base/hash.h"
#include "base/os_process.h"
#include "check/verify.h"
#include "model/from_gguf/read.h"
#include "kernel/generate.h"
#include "model/storey.h"
#include "check/ptxas.h"

enum { PAIRS = 8, ASSEMBLIES = 53 };

typedef struct assembly {
    arena *arena; /* memory of the fields below */
    const char *file, *kernel, *ptx;
    size_t length;
    const target *target;
    const char *problem; /* NULL if the kernel assembles without spills and stack */
} assembly;

typedef struct assemblies {
    arena *arena;
    const ptxas *assembler;
    VEC(assembly) list; /* those that run */
    name_map known;     /* hash of the PTX, and the target's name */
    size_t known_count;
} assemblies;

/* Returns the words of an environment variable, ended by NULL. Skips the test if it is not set. */
static const char **words_of(arena *a, const char *variable)
{
    VEC(const char *) words = { 0 };
    const char *at = getenv(variable);
    if (!at)
        skip();
    for (size_t length; *(at += strspn(at, " ")); at += length) {
        length = strcspn(at, " ");
        *VEC_PUSH(a, &words) = arena_copy(a, at, length);
    }
    *VEC_PUSH(a, &words) = NULL;
    return words.items;
}

/* Generates the kernels of a model for a list of targets. */
static kernel_set kernels_of(arena *a, const char *file, const char *target_list)
{
    diags d = diags_new(a);
    strbuf text = strbuf_new(a), said = strbuf_new(a), messages = strbuf_new(a);
    spec_overrides overrides = { 0 };
    model_options options = { .kv_type = -1 };
    spec *s = arena_alloc(a, sizeof *s);
    kernel_set set = { 0 };
    if (strcmp(target_list, "default") != 0)
        overrides.targets = target_list;
    if (!from_gguf(a, file, &model_storey, &overrides, &options, &text, &said, &d) ||
        !spec_parse(a, file, text.text, text.length, families, &model_storey, NULL, s, &d) ||
        !generate_kernels(a, s, &set, &d)) {
        diags_render(&d, &messages, false);
        fail_msg("%s for %s: %s", file, target_list, messages.text);
    }
    return set;
}

/* Appends the chosen ones of a model's ptxas runs that are not known yet. */
static void add_model(assemblies *all, const char *file, const char *target_list)
{
    arena *a = arena_new();
    const kernel_set set = kernels_of(a, file, target_list);
    assembly_plans plans = { 0 };
    kernel_plan_assemblies(a, &set, all->assembler->known, all->assembler->oldest, &plans);
    for (size_t i = 0; i < plans.count; i++) {
        const kernel *k = plans.items[i].kernel;
        const target *t = plans.items[i].target;
        const char *hash = fnv1a64_text(a, fnv1a64(k->ptx, k->ptx_length));
        const char *id = arena_format(all->arena, "%s %s", hash, t->name);
        size_t row = all->known_count;
        if (name_map_find_or_add(all->arena, &all->known, id, row) < row)
            continue;
        all->known_count++;
        if (!test_takes_row(row, ASSEMBLIES))
            continue;
        arena *own = arena_new_in(all->arena);
        *VEC_PUSH(all->arena, &all->list) = (assembly){
            .arena = own,
            .file = file,
            .kernel = arena_strdup(own, k->instance->name),
            .ptx = arena_copy(own, k->ptx, k->ptx_length),
            .length = k->ptx_length,
            .target = t,
        };
    }
    arena_free(a);
}

static void assemble(void *context, size_t i)
{
    const assemblies *all = context;
    assembly *one = &all->list.items[i];
    ptxas_result r;
    if (!ptxas_run(one->arena, all->assembler, one->ptx, one->length, one->target, &r,
                   &one->problem))
        return;
    one->problem = r.message;
    if (!ptxas_is_lean(&r, one->ptx, one->target))
        one->problem = arena_format(one->arena, "%u bytes spilled, %u bytes of stack",
                                    r.spill_bytes, r.stack_bytes);
}

/* Prints each kernel of the models that has a problem. `first` is the list's index. Returns the
 * number of problems. */
static size_t count_problems(const ptxas *assembler, const char **models, const char *target_list,
                             size_t first)
{
    assemblies all = { .arena = arena_new(), .assembler = assembler };
    size_t problems = 0;
    for (size_t i = 0; models[i]; i++)
        if (test_takes_row(first + i, PAIRS))
            add_model(
                &all,
                arena_format(all.arena, "%s/%s.gguf", getenv("PTXGEN_REAL_HEADERS"), models[i]),
                target_list);
    os_parallel(os_cpu_count(), all.list.count, assemble, &all);
    for (size_t i = 0; i < all.list.count; i++) {
        const assembly *one = &all.list.items[i];
        problems += one->problem != NULL;
        if (one->problem)
            print_error("%s: %s for %s: %s\n", one->file, one->kernel, one->target->name,
                        one->problem);
    }
    print_message("%s: %zu of %zu assemble without spills\n", target_list,
                  all.list.count - problems, all.list.count);
    arena_free(all.arena);
    return problems;
}

/* Returns the reason why --verify cannot run a kernel at its own size, or NULL if it can. */
static const char *refusal_of(arena *a, const instance *in)
{
    arena *scratch = arena_new();
    trial_setup setup = { .shape = in->shape, .sm_count = 132 };
    setup.shape.seq_len = in->shape.max_seq_len;
    if (in->rows_mode == ROWS_RUN_TIME)
        setup.shape.m = 1; /* the fewest blocks; each does as much work as with more rows */
    trial t = trial_prepare(scratch, in, &setup);
    const char *refusal = verifier_refusal(a, &t);
    arena_free(scratch);
    return refusal;
}

/* Prints each kernel of a model that --verify refuses to run. Returns their number. */
static size_t count_refused(const char *file)
{
    arena *a = arena_new();
    const kernel_set set = kernels_of(a, file, "default");
    size_t refused = 0;
    for (size_t i = 0; i < set.kernel_count; i++) {
        const instance *in = set.kernels[i].instance;
        bool known = i && strcmp(in->name, set.kernels[i - 1].instance->name) == 0;
        const char *refusal = known ? NULL : refusal_of(a, in);
        refused += refusal != NULL;
        if (refusal)
            print_error("%s: %s: %s\n", file, in->name, refusal);
    }
    arena_free(a);
    return refused;
}

ARENA_TEST(kernels_of_real_models_are_small_enough_to_verify)
{
    size_t refused = 0;
    const char *folder = getenv("PTXGEN_REAL_HEADERS");
    const char **models = words_of(a, "PTXGEN_REAL_MODELS");
    if (!folder)
        skip();
    for (; *models; models++)
        refused += count_refused(arena_format(a, "%s/%s.gguf", folder, *models));
    assert_int_equal(refused, 0);
}

ARENA_TEST(kernels_of_real_models_assemble_without_spills)
{
    ptxas assembler;
    const char *error;
    size_t problems = 0;
    if (!ptxas_find(a, NULL, &assembler, &error) || !getenv("PTXGEN_REAL_HEADERS"))
        skip();
    const char **models = words_of(a, "PTXGEN_REAL_MODELS");
    const char **lists = words_of(a, "PTXGEN_REAL_TARGETS");
    for (size_t i = 0; lists[i]; i++)
        problems += count_problems(&assembler, models, lists[i], i);
    assert_int_equal(problems, 0);
}
