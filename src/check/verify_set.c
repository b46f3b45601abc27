#include "check/verify_set.h"

#include <string.h>

#include "base/os_process.h"
#include "check/verify.h"
#include "kernel/limits.h"

/* Returns true if a line is a directive with one operand. */
static bool is_directive(const char *line, const char *name)
{
    size_t length = strlen(name);
    return strncmp(line, name, length) == 0 && line[length] == ' ' &&
           !strpbrk(line + length + 1, " ,;/");
}

/* Reads the next line that affects results, without comments, with single spaces, and without the
 * cache hint of a load. Returns false at the end. Skipped lines affect no results as long as no
 * access is faulty. line must have room for the whole text. */
static bool next_line(const char **text, const char *end, char *line)
{
    static const char load[] = "ld.global", hint[] = ".nc";
    while (*text < end) {
        const char *newline = memchr(*text, '\n', (size_t)(end - *text));
        char *to = line;
        for (const char *c = *text; c < (newline ? newline : end) && strncmp(c, "//", 2) != 0; c++)
            if (*c != ' ' && *c != '\t' && *c != '\r')
                *to++ = *c;
            else if (to > line && to[-1] != ' ')
                *to++ = ' ';
        *(to > line && to[-1] == ' ' ? to - 1 : to) = '\0';
        *text = newline ? newline + 1 : end;
        char *at = strstr(line, load);
        at = at ? at + strlen(load) : line;
        if (strncmp(at, hint, strlen(hint)) == 0)
            memmove(at, at + strlen(hint), strlen(at + strlen(hint)) + 1);
        if (*line && !is_directive(line, ".version") && !is_directive(line, ".target") &&
            strcmp(line, "griddepcontrol.wait;") != 0 &&
            strcmp(line, "griddepcontrol.launch_dependents;") != 0)
            return true;
    }
    return false;
}

/* Returns false if "//" in a string or in another comment may have truncated a line. */
static bool is_plain(const char *line)
{
    size_t quotes = 0;
    for (const char *at = line; (at = strchr(at, '"')); at++)
        quotes++;
    return quotes % 2 == 0 && !strstr(line, "/*");
}

bool kernels_are_alike(const kernel *a, const kernel *b)
{
    if (strcmp(a->instance->name, b->instance->name) != 0 ||
        a->instance->passes != b->instance->passes)
        return false;
    arena *scratch = arena_new();
    const char *x = a->ptx, *y = b->ptx, *x_end = x + a->ptx_length, *y_end = y + b->ptx_length;
    char *of_x = arena_alloc(scratch, a->ptx_length + 1);
    char *of_y = arena_alloc(scratch, b->ptx_length + 1);
    bool alike = true, more = true;
    while (alike && more) {
        more = next_line(&x, x_end, of_x);
        alike = next_line(&y, y_end, of_y) == more &&
                (!more || (is_plain(of_x) && strcmp(of_x, of_y) == 0));
    }
    arena_free(scratch);
    return alike;
}

/* A kernel to verify, its result, and an arena for it. */
typedef struct proof {
    const kernel *kernel;
    const struct proof *alike; /* equivalent kernel that is verified in full, or NULL */
    arena *arena;
    verify_result result;
} proof;

typedef struct proofs {
    uint64_t seed;
    unsigned jobs;
    proof *list;
    const kernel_set *with_step; /* NULL: no step to verify */
    const kernel *step_kernels;  /* kernels of the set; edited files replace generated ones */
    arena *step_arena;
    step_proof step;
    verify_cores cores;
    shown_work work;
} proofs;

/* Verifies the step first, since it takes longest. */
static void prove(void *context, size_t i)
{
    proofs *all = context;
    const kernel_set *set = all->with_step;
    if (set && i == 0) {
        all->step =
            set->upper->verify(all->step_arena, set, all->step_kernels, all->seed, all->jobs);
    } else {
        proof *one = &all->list[i - (set != NULL)];
        one->result = verify_kernel(one->arena, one->kernel, all->seed, &all->cores,
                                    one->alike != NULL, NULL);
    }
    atomic_fetch_sub(&all->cores.unfinished, 1);
    progress_finished_one(&all->work);
}

/* Returns the location of a line of an edited file, without surrounding blanks. */
static location place_in_file(arena *a, const kernel *k, unsigned line)
{
    const char *text = k->ptx, *end = k->ptx + k->ptx_length;
    for (unsigned i = 1; i < line && text < end; i++)
        text += strcspn(text, "\n") + 1;
    if (!line || text >= end)
        return (location){ .file = k->edited_file };
    size_t length = strcspn(text, "\r\n"), indent = strspn(text, " \t");
    return (location){ .file = k->edited_file,
                       .text = arena_copy(a, text, length),
                       .line = line,
                       .column = (unsigned)indent + 1,
                       .length = (unsigned)strcspn(text + indent, ";\r\n") };
}

/* Rejects a right kernel, e.g. an edited one, with more shared memory than its GPUs have. */
static void judge_room(arena *a, const kernel_set *set, proof *p)
{
    const kernel *k = p->kernel;
    const launch *how = &k->instance->family->launch;
    int64_t dynamic = launch_shared_bytes(how->dynamic_shared, k->instance);
    int64_t need = (int64_t)p->result.shared_bytes + dynamic;
    target_set gpus = kernel_gpus(set, k);
    strbuf lacking = strbuf_new(a);
    for (size_t g = 0; p->result.right && g < target_count; g++)
        if (gpus & target_bit(&targets[g]) && need > targets[g].shared_block)
            strbuf_format(&lacking, "%s%s (%u)", lacking.length ? ", " : "", targets[g].name,
                          targets[g].shared_block);
    if (!lacking.length)
        return;
    p->result.right = false;
    p->result.message =
        arena_format(a, "%s uses %lld bytes of shared memory per block, above the limit of %s",
                     k->instance->name, (long long)need, lacking.text);
}

static void judge_proof(arena *a, const kernel_set *set, const proof *p, verified *out, diags *d)
{
    const kernel *k = p->kernel;
    const verify_result *r = &p->result;
    *out =
        (verified){ k, r->right, r->blocks, r->instructions, r->blocks < r->of_blocks, r->worst };
    if (!r->right)
        diag_error(d, DIAG_VERIFY_FAILED,
                   k->edited_file ? place_in_file(a, k, r->line) : k->instance->where, "%s for %s",
                   r->message, k->target->name);
    else if (k->edited_file)
        diag_warning(d, DIAG_EDITED, (location){ .file = k->edited_file },
                     "edited since ptxgen wrote it; verified and kept; the header embeds the %s "
                     "kernel",
                     set->embed == EMBED_STRING ? "generated" : "edited");
}

/* Returns the kernels of a set with edited files from the folder. */
static const kernel *kernels_in_folder(arena *a, const kernel_set *set, const kernel_list *edited)
{
    kernel *found = arena_alloc(a, set->kernel_count * sizeof *found);
    memcpy(found, set->kernels, set->kernel_count * sizeof *found);
    for (size_t i = 0; i < edited->count; i++)
        for (size_t k = 0; k < set->kernel_count; k++)
            if (strcmp(found[k].file, edited->items[i].file) == 0)
                found[k] = edited->items[i];
    return found;
}

bool verify_set(arena *a, kernel_set *set, const kernel_list *edited, uint64_t seed, unsigned jobs,
                const progress *show, verification *out, diags *d)
{
    size_t count = set->kernel_count + edited->count;
    bool step = set->plan && set->upper->is_whole(set);
    proofs all = {
        .seed = seed,
        .jobs = jobs,
        .list = arena_zalloc(a, count * sizeof *all.list),
        .with_step = step ? set : NULL,
        .step_kernels = step ? kernels_in_folder(a, set, edited) : NULL,
        .step_arena = arena_new(),
        .cores = { .count = jobs, .unfinished = count + step },
        .work = { .show = show, .what = "verify", .total = count + step, .busy = ATOMIC_FLAG_INIT },
    };
    for (size_t i = 0; i < count; i++) {
        bool generated = i < set->kernel_count;
        all.list[i].kernel = generated ? &set->kernels[i] : &edited->items[i - set->kernel_count];
        for (const proof *p = all.list; p < &all.list[i] && !all.list[i].alike; p++)
            if (!p->alike && kernels_are_alike(p->kernel, all.list[i].kernel))
                all.list[i].alike = p;
        all.list[i].arena = arena_new();
    }
    os_parallel(jobs, all.work.total, prove, &all);

    *out =
        (verification){ .kernels = arena_alloc(a, count * sizeof *out->kernels), .checked = count };
    for (size_t i = 0; i < count; i++) {
        proof *one = &all.list[i];
        if (one->alike && one->result.right && !one->alike->result.right)
            one->result = verify_kernel(one->arena, one->kernel, seed, NULL, false, NULL);
        else if (one->alike && one->result.right && one->alike->result.worst > one->result.worst)
            one->result.worst = one->alike->result.worst;
        judge_room(a, set, one);
        judge_proof(a, set, one, &out->kernels[i], d);
        const verify_result *r = &one->result;
        kernel *k = i < set->kernel_count ? &set->kernels[i] : NULL;
        if (k) {
            k->verified = r->right;
            k->error = r->worst;
        }
        if (k && k->edited_file && r->right) {
            k->isa = r->isa;
            k->shared_bytes = r->shared_bytes;
        }
        out->right += out->kernels[i].right;
        arena_free(one->arena);
    }
    /* Reports a wrong step only if its kernels are right: their messages are more precise. */
    if (step && out->right == count && all.step.right)
        out->step = arena_strdup(a, all.step.said);
    else if (step && out->right == count)
        diag_error(d, DIAG_VERIFY_FAILED, all.step.where, "%s", arena_strdup(a, all.step.message));
    arena_free(all.step_arena);
    return d->errors == 0;
}
