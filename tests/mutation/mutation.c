/* Measures how many defects --verify finds: plants mutants in kernels of every family, verifies
 * each, and reports the caught ones.
 *
 *   mutation EQUIVALENT SUBJECTS [SAMPLE [SEED [JOBS [FAMILY]...]]]
 *
 * EQUIVALENT lists mutants that are known to compute the same. SUBJECTS is a spec with kernels of
 * families that subjects.c cannot build by itself. SAMPLE is the number of mutants, chosen by SEED;
 * 0, the default, takes all. FAMILY selects families. The report goes to standard output. The exit
 * status is 1 if less than 95 % of the mutants that change behaviour are caught; for a sample, the
 * bound is statistical.
 *
 * A mutant that the emulator cannot load is left out. A mutant that passes is proven equivalent in
 * these cases:
 * - Its line depends only on thread and block indices, whose values every trial of a small kernel
 *   covers, and computes the same in all trials. A probe in its place traps if not. If data decide
 *   whether a thread reaches the line, the probe and its operands' instructions are moved to the
 *   kernel's start.
 * - Nothing uses the result of its line.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/os.h"
#include "base/os_process.h"
#include "emu/emu.h"
#include "mutation/dataflow.h"
#include "mutation/equivalent.h"
#include "mutation/subjects.h"
#include "ref/random.h"
#include "check/verify.h"

enum { LEAST_PERCENT = 95 };
static const double CERTAINTY = 0.99; /* required confidence that a sample has too many survivors */

typedef enum fate { INVALID, CAUGHT, PROVEN, LISTED, SURVIVED, FATES } fate;

typedef struct planted {
    const kernel *kernel;
    mutant mutant;
    fate fate;
    int reason; /* index of the pattern if LISTED */
} planted;

typedef VEC(planted) planted_list;

typedef struct score {
    const char *name;
    size_t fates[FATES];
} score;

typedef VEC(score) score_list;

typedef struct mutation_run {
    const equivalence_list *equivalent;
    planted_list list;
} mutation_run;

static bool passes(arena *a, const kernel *k, const char *text)
{
    kernel changed = *k;
    changed.ptx = text;
    changed.ptx_length = strlen(text);
    return verify_kernel(a, &changed, 1, NULL, false, NULL).right;
}

static const char *text_line(arena *a, const char *text, unsigned number)
{
    while (--number)
        text = strchr(text, '\n') + 1;
    return arena_copy(a, text, strcspn(text, "\n"));
}

static bool passes_probe(arena *a, const kernel *k, unsigned line, const char *probe)
{
    static const char spare[] = "    .reg .pred %mutant_p, %differs;\n    .reg .b32 %mutant_r;\n"
                                "    .reg .b64 %mutant_rd;\n";
    return passes(a, k, replace_line(a, k->ptx, line, probe, spare));
}

/* Runs the kernel with the probe and its operands' instructions at its start. Returns true if it
 * passes. */
static bool passes_hoisted_probe(arena *a, const kernel *k, const mutant *m)
{
    unsigned line = first_instruction(k->ptx);
    const char *slice = *m->before == '@' ? NULL : operand_slice(a, k->ptx, m->before, m->after);
    return slice &&
           passes_probe(a, k, line,
                        arena_format(a, "%s%s\n%s", slice, m->probe, text_line(a, k->ptx, line)));
}

static bool computes_the_same(arena *a, const kernel *k, const mutant *m)
{
    return result_is_unused(a, k->ptx, m->line) ||
           (m->probe && ((depends_on_position_alone(a, k->ptx, m->line) &&
                          passes_probe(a, k, m->line, m->probe)) ||
                         passes_hoisted_probe(a, k, m)));
}

static void try_one(void *context, size_t i)
{
    mutation_run *r = context;
    planted *p = &r->list.items[i];
    const kernel *k = p->kernel;
    arena *a = arena_new();
    emu_report report;
    const char *text = replace_line(a, k->ptx, p->mutant.line, p->mutant.after, "");
    if (!emu_load(a, text, strlen(text), &report))
        p->fate = INVALID;
    else if (!passes(a, k, text))
        p->fate = CAUGHT;
    else if (computes_the_same(a, k, &p->mutant))
        p->fate = PROVEN;
    else if ((p->reason = find_equivalence(a, r->equivalent, k, &p->mutant)) >= 0)
        p->fate = LISTED;
    else
        p->fate = SURVIVED;
    arena_free(a);
}

static void plant_all(arena *a, const subject_list *subjects, planted_list *out)
{
    for (size_t s = 0; s < subjects->count; s++) {
        mutant_list mutants = { 0 };
        plant_mutants(a, subjects->items[s].ptx, &mutants);
        for (size_t i = 0; i < mutants.count; i++)
            *VEC_PUSH(a, out) = (planted){ &subjects->items[s], mutants.items[i], INVALID, -1 };
    }
}

/* Keeps `count` mutants, chosen by the seed. */
static void keep_sample(planted_list *list, size_t count, uint64_t seed)
{
    random_source r = { seed };
    for (size_t i = 0; i < count && i < list->count; i++) {
        size_t other = i + random_below(&r, list->count - i);
        planted moved = list->items[other];
        list->items[other] = list->items[i];
        list->items[i] = moved;
    }
    list->count = count < list->count ? count : list->count;
}

static score *score_of(arena *a, score_list *list, const char *name)
{
    for (size_t i = 0; i < list->count; i++)
        if (strcmp(list->items[i].name, name) == 0)
            return &list->items[i];
    score *made = VEC_PUSH(a, list);
    *made = (score){ .name = name };
    return made;
}

static size_t changing(const score *s)
{
    return s->fates[CAUGHT] + s->fates[SURVIVED];
}

static void print_score(const score *s)
{
    size_t same = s->fates[PROVEN] + s->fates[LISTED], all = changing(s);
    printf("| %s | %zu | %zu | %zu | %zu | %zu | %.1f %% |\n", s->name, all + same,
           s->fates[CAUGHT], s->fates[PROVEN], s->fates[LISTED], s->fates[SURVIVED],
           all ? 100.0 * (double)s->fates[CAUGHT] / (double)all : 100.0);
}

static void print_scores(const char *what, const score_list *list)
{
    printf("\n| %s | planted | caught | same, proven | same, listed | survived | caught of those "
           "that change |\n|---|---|---|---|---|---|---|\n",
           what);
    for (size_t i = 0; i < list->count; i++)
        print_score(&list->items[i]);
}

static void print_survivors(const planted_list *list)
{
    printf("\n## Survivors\n\n");
    for (size_t i = 0; i < list->count; i++) {
        const planted *p = &list->items[i];
        if (p->fate == SURVIVED)
            printf("- `%s` line %u, %s: `%s` became `%s`\n", p->kernel->instance->name,
                   p->mutant.line, p->mutant.kind, p->mutant.before,
                   *p->mutant.after ? p->mutant.after : "nothing");
    }
}

/* Prints the patterns and their numbers of mutants. With all, prints also patterns without mutants.
 */
static void print_reasons(arena *a, const planted_list *list, const equivalence_list *equivalent,
                          bool all)
{
    size_t *counts = arena_zalloc(a, (equivalent->count + 1) * sizeof *counts);
    for (size_t i = 0; i < list->count; i++)
        if (list->items[i].fate == LISTED)
            counts[list->items[i].reason]++;
    printf("\n## Listed as computing the same\n\n");
    for (size_t i = 0; i < equivalent->count; i++) {
        const equivalence *e = &equivalent->items[i];
        if (counts[i] || all)
            printf("- %zu of %s, %s, `%s`: %s\n", counts[i], e->kernel, e->kind, e->before,
                   e->reason);
    }
}

/* Prints the report. Returns the total score. */
static score report(arena *a, const mutation_run *r, bool all)
{
    score total = { .name = "all" };
    score_list kinds = { 0 }, families_seen = { 0 };
    for (const char *const *kind = mutant_kinds; *kind; kind++)
        score_of(a, &kinds, *kind);
    for (size_t i = 0; i < r->list.count; i++) {
        const planted *p = &r->list.items[i];
        total.fates[p->fate]++;
        score_of(a, &kinds, p->mutant.kind)->fates[p->fate]++;
        score_of(a, &families_seen, p->kernel->instance->family->name)->fates[p->fate]++;
    }
    print_scores("", &(score_list){ &total, 1, 1 });
    print_scores("kind", &kinds);
    print_scores("family", &families_seen);
    print_survivors(&r->list);
    print_reasons(a, &r->list, r->equivalent, all);
    return total;
}

/* Returns the probability of at least `least` hits in `count` tries of the given chance. */
static double chance_of_at_least(size_t least, size_t count, double chance)
{
    double sum = 0;
    for (size_t i = least; i <= count; i++)
        sum += exp(lgamma((double)count + 1) - lgamma((double)i + 1) -
                   lgamma((double)(count - i) + 1) + (double)i * log(chance) +
                   (double)(count - i) * log1p(-chance));
    return sum;
}

static bool is_enough(const score *s)
{
    return 100 * s->fates[CAUGHT] >= LEAST_PERCENT * changing(s);
}

/* Returns true if the survivors of a sample are consistent with the required share of caught
 * mutants. Each change of a kernel's text draws another sample. With 3 % survivors in total, one
 * sample in eight has 6 or more of 113 by chance. A number that chance gives in at most one sample
 * of a hundred is a defect of the verifier. */
static bool may_be_enough(const score *s)
{
    return chance_of_at_least(s->fates[SURVIVED], changing(s), 1 - LEAST_PERCENT / 100.0) >=
           1 - CERTAINTY;
}

static bool read_listed(arena *a, const char *path, spec *out, const char **error)
{
    diags d = diags_new(a);
    if (spec_read(a, path, families, NULL, NULL, out, &d))
        return true;
    *error = d.list.items[0].message;
    return false;
}

int main(int argc, char **argv)
{
    enum { EQUIVALENT = 1, SUBJECTS, SAMPLE, SEED, JOBS, FIRST_FAMILY };
    arena *a = arena_new();
    subject_list subjects = { 0 };
    equivalence_list equivalent = { 0 };
    spec listed;
    const char *error = "usage: mutation EQUIVALENT SUBJECTS [SAMPLE [SEED [JOBS [FAMILY]...]]]";
    char *text;
    size_t size;
    if (argc <= SUBJECTS || !os_read_file(a, argv[EQUIVALENT], &text, &size, &error) ||
        !read_equivalences(a, text, &equivalent, &error) ||
        !read_listed(a, argv[SUBJECTS], &listed, &error) ||
        !make_subjects(a, &listed, argv + (argc > FIRST_FAMILY ? FIRST_FAMILY : argc), &subjects,
                       &error)) {
        fprintf(stderr, "mutation: %s\n", error);
        arena_free(a);
        return 2;
    }
    size_t sample = argc > SAMPLE ? strtoul(argv[SAMPLE], NULL, 10) : 0;
    mutation_run r = { .equivalent = &equivalent };
    plant_all(a, &subjects, &r.list);
    size_t possible = r.list.count;
    if (sample)
        keep_sample(&r.list, sample, argc > SEED ? strtoull(argv[SEED], NULL, 10) : 1);
    os_parallel(argc > JOBS ? (unsigned)strtoul(argv[JOBS], NULL, 10) : 1, r.list.count, try_one,
                &r);

    printf("# Mutation testing\n\n%zu kernels, %zu of %zu mutants tried.\n", subjects.count,
           r.list.count, possible);
    score total = report(a, &r, !sample);
    bool enough = sample < possible && sample ? may_be_enough(&total) : is_enough(&total);
    arena_free(a);
    return enough ? 0 : 1;
}
