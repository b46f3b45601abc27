/* What the command line asks for, done. Results go to standard output, diagnostics and progress to
 * standard error. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/explain.h"
#include "base/os.h"
#include "cost.h"
#include "emit/describe.h"
#include "emit/report.h"
#include "generate.h"
#include "options.h"
#include "templates/templates.h"

enum { STDERR = 2, SUMMARY_WIDTH = 16 };

typedef struct run {
    arena *arena;
    command_line options;
    diags diags;
    strbuf out; /* of standard output, written at the end */
    bool wrote; /* the outputs */
} run;

/* Whether standard error is a terminal that takes escapes. */
static bool is_capable_terminal(void)
{
    const char *terminal = getenv("TERM");
    return os_is_terminal(STDERR) && terminal && *terminal && strcmp(terminal, "dumb") != 0;
}

static bool use_color(const char *when)
{
    if (when && strcmp(when, "auto") != 0)
        return strcmp(when, "always") == 0;
    const char *no_color = getenv("NO_COLOR");
    return is_capable_terminal() && !(no_color && *no_color);
}

static status diags_status(const diags *d)
{
    status worst = EXIT_DONE;
    for (size_t i = 0; i < d->list.count; i++) {
        const diagnostic *item = &d->list.items[i];
        if (item->severity != SEVERITY_ERROR)
            continue;
        if (item->code == DIAG_UNREADABLE || item->code == DIAG_UNWRITABLE)
            return EXIT_FILE;
        bool from_command_line =
            !item->where.file && (item->code == DIAG_BAD_PREFIX || item->code == DIAG_BAD_TARGET);
        if (from_command_line || worst == EXIT_DONE)
            worst = from_command_line ? EXIT_USAGE : EXIT_SPEC;
    }
    return worst;
}

/* Shows the diagnostics and gives the exit status that they ask for. */
static status finish(run *r)
{
    status result = diags_status(&r->diags);
    strbuf text = strbuf_new(r->arena);
    if (result != EXIT_DONE || !r->options.quiet)
        diags_render(&r->diags, &text, use_color(r->options.color));
    if (r->diags.errors)
        strbuf_format(&text, "ptxgen: %zu error%s%s\n", r->diags.errors,
                      r->diags.errors == 1 ? "" : "s", r->wrote ? "" : ", nothing written");
    fputs(text.text, stderr);

    const char *error;
    if (result == EXIT_DONE && r->out.length &&
        !os_write_file(r->arena, "-", r->out.text, r->out.length, &error)) {
        fprintf(stderr, "ptxgen: cannot write to standard output: %s\n", error);
        result = EXIT_FILE;
    }
    return result;
}

static void show_progress(void *context, const char *what, size_t done, size_t total)
{
    (void)context;
    fprintf(stderr, "\r%s %zu of %zu\033[K", what, done, total);
    if (done == total)
        fputs("\r\033[K", stderr);
}

/* Whether none of the files to write besides the outputs is one that the spec was read from. */
static bool spares_spec(run *r, const spec *s)
{
    const command_line *o = &r->options;
    const char *const written[] = { o->depfile, o->stamp, o->emit_ninja, o->report };
    for (size_t i = 0; i < sizeof written / sizeof *written; i++)
        for (size_t f = 0; written[i] && f < s->file_count; f++)
            if (os_same_file(written[i], s->files[f])) {
                diag_error(&r->diags, DIAG_UNWRITABLE, (location){ .file = written[i] },
                           "is a file of the spec, and is left as it is");
                return false;
            }
    return true;
}

/* Reads the spec and builds its kernels. */
static bool make_kernels(run *r, spec *s, kernel_set *set)
{
    const command_line *o = &r->options;
    if (!spec_read(r->arena, o->spec, families_and_pipelines(r->arena), &o->overrides, s,
                   &r->diags) ||
        !spares_spec(r, s))
        return false;
    if (o->shard.count)
        spec_keep_shard(s, o->shard);
    if (o->only && !spec_keep_instance(r->arena, s, o->only, &r->diags))
        return false;
    return generate_kernels(r->arena, s, set, &r->diags);
}

static unsigned job_count(const command_line *o)
{
    return o->jobs ? (unsigned)o->jobs : os_cpu_count();
}

static bool find_ptxas(run *r, ptxas *out)
{
    const char *error;
    if (ptxas_find(r->arena, r->options.ptxas, out, &error))
        return true;
    diag_error(&r->diags, DIAG_NO_PTXAS, (location){ 0 }, "%s", error);
    return false;
}

static bool validate(run *r, kernel_set *set, const progress *show)
{
    ptxas assembler;
    validation v = { 0 };
    if (!find_ptxas(r, &assembler) ||
        !generate_validate(r->arena, set, &assembler, job_count(&r->options), show, &v, &r->diags))
        return false;
    size_t line = r->out.length;
    strbuf_format(&r->out, "ptxas %s", assembler.version);
    strbuf_pad(&r->out, line, SUMMARY_WIDTH);
    strbuf_format(&r->out, "%zu of %zu accepted, %u spills, %u..%u registers\n", v.accepted,
                  v.checked, v.spills, v.least_registers, v.most_registers);
    return true;
}

/* "1,234,567", to end at a column. */
static void put_count(strbuf *out, uint64_t count, int width)
{
    char text[32];
    char *at = text + sizeof text - 1;
    *at = '\0';
    for (int digits = 0; count || !digits; count /= 10, digits++) {
        if (digits && digits % 3 == 0)
            *--at = ',';
        *--at = (char)('0' + count % 10);
    }
    strbuf_format(out, "%*s", width, at);
}

/* Errors and bounds are relative to the sum of absolute terms; quantized outputs have steps of
 * rounding instead. */
static void put_error(strbuf *out, const verified *v)
{
    const family *f = v->kernel->instance->family;
    bool quantized = false;
    for (const param *p = f->params; p->name; p++)
        quantized |= p->kind == PARAM_OUT && formats[p->format].block_values > 1;
    if (quantized)
        strbuf_format(out, "%15.2f  %10s", v->worst, "1 rounding");
    else
        strbuf_format(out, "%15.1e  %10.0e", v->worst * f->tolerance, f->tolerance);
}

static void put_verified(strbuf *out, const verification *v)
{
    size_t widest = 0;
    for (size_t i = 0; i < v->checked; i++) {
        size_t width = strlen(v->kernels[i].kernel->file);
        widest = width > widest ? width : widest;
    }
    strbuf_format(out, "%-*s  %10s  %19s  %13s  %10s\n", (int)widest, "kernel", "blocks",
                  "thread instructions", "largest error", "bound");
    for (size_t i = 0; i < v->checked; i++) {
        const verified *one = &v->kernels[i];
        strbuf_format(out, "%-*s", (int)widest, one->kernel->file);
        put_count(out, one->blocks, 12);
        put_count(out, one->instructions, 21);
        put_error(out, one);
        strbuf_char(out, '\n');
    }
}

static bool verify(run *r, kernel_set *set, const kernel_list *edited, const progress *show)
{
    const command_line *o = &r->options;
    verification v = { 0 };
    if (!generate_verify(r->arena, set, edited, o->seed, job_count(o), show, &v, &r->diags))
        return false;
    const verified *worst = NULL; /* a shard may be empty */
    for (size_t i = 0; i < v.checked; i++)
        worst = !worst || v.kernels[i].worst > worst->worst ? &v.kernels[i] : worst;
    if (o->verbose)
        put_verified(&r->out, &v);
    size_t line = r->out.length;
    strbuf_put(&r->out, "verify");
    strbuf_pad(&r->out, line, SUMMARY_WIDTH);
    strbuf_format(&r->out, "%zu of %zu right", v.right, v.checked);
    if (worst)
        strbuf_format(&r->out, ", worst error %.2f of its bound (%s)", worst->worst,
                      worst->kernel->instance->name);
    strbuf_char(&r->out, '\n');
    return true;
}

/* Both checks, so that a run shows all that is wrong. */
static bool check_kernels(run *r, kernel_set *set, const kernel_list *edited)
{
    const command_line *o = &r->options;
    static const progress terminal = { .step = show_progress };
    const progress *show = !o->quiet && is_capable_terminal() ? &terminal : NULL;
    bool accepted = !o->validate || validate(r, set, show);
    bool right = !o->verify || verify(r, set, edited, show);
    return accepted && right;
}

/* Puts text at a path, where it is not there already. */
static bool write_text(run *r, const char *path, const strbuf *text)
{
    const char *slash = strrchr(path, '/');
    const char *folder = !slash          ? "."
                         : slash == path ? "/"
                                         : arena_copy(r->arena, path, (size_t)(slash - path));
    output_file file = { .name = slash ? slash + 1 : path,
                         .bytes = text->text,
                         .size = text->length };
    size_t changed;
    return emit_tree(r->arena, folder, &file, 1, &changed, &r->diags);
}

static bool write_depfile(run *r, const spec *s, const output_files *files)
{
    const command_line *o = &r->options;
    /* The header stands for all outputs: Ninja refuses a depfile that names one it was not told of.
     */
    const char *output = o->stamp ? o->stamp : path_in(r->arena, o->out, files->items[0].name);
    strbuf rule = strbuf_new(r->arena);
    emit_depfile(&rule, &output, 1, s->files, s->file_count);
    return write_text(r, o->depfile, &rule);
}

/* The same run of ptxgen again generates; another one, of the same instances, verifies them. */
static bool write_ninja(run *r, const kernel_set *set, const ptxas *assembler,
                        const output_files *files)
{
    const command_line *o = &r->options;
    assembly_plans plans = { 0 };
    generate_assembly_plans(r->arena, set, assembler, &plans);
    const char *verify[] = {
        "--verify",
        "--quiet",
        arena_format(r->arena, "--spec=%s", o->spec),
        arena_format(r->arena, "--seed=%" PRIu64, o->seed),
        o->overrides.targets ? arena_format(r->arena, "--target=%s", o->overrides.targets) : NULL,
    };
    const char *program = os_find_program(r->arena, o->program);
    ninja_build build = {
        .file = o->emit_ninja,
        .depfile = o->depfile,
        .folder = o->out,
        .outputs = files->items,
        .output_count = files->count,
        .ptxgen = program ? program : o->program,
        .ptxas = assembler->path,
        .generate = o->arguments,
        .generate_count = o->argument_count,
        .verify = verify,
        .verify_count = sizeof verify / sizeof *verify - !o->overrides.targets,
        .plan = plans.items,
        .plan_count = plans.count,
    };
    strbuf text = strbuf_new(r->arena);
    emit_ninja(&text, set, &build);
    if (!write_text(r, o->emit_ninja, &text))
        return false;
    strbuf_format(&r->out, "ptxgen: %zu run%s of ptxas -> %s; next: ninja -f %s\n", plans.count,
                  plans.count == 1 ? "" : "s", o->emit_ninja, o->emit_ninja);
    return true;
}

static bool write_report(run *r, const kernel_set *set)
{
    strbuf page = strbuf_new(r->arena);
    emit_report(&page, set);
    if (!write_text(r, r->options.report, &page))
        return false;
    strbuf_format(&r->out, "ptxgen: report -> %s\n", r->options.report);
    return true;
}

/* New even when nothing else is: a build step whose outputs all keep their time would run for ever
 * under Make. */
static bool write_stamp(run *r)
{
    const char *path = r->options.stamp, *error;
    if (os_write_file(r->arena, path, "", 0, &error))
        return true;
    diag_error(&r->diags, DIAG_UNWRITABLE, (location){ .file = path }, "cannot write: %s", error);
    return false;
}

/* Takes the files that were edited out of those to write. */
static void leave_edited(arena *a, output_files *files, const kernel_list *edited,
                         const char *folder)
{
    size_t kept = 0;
    for (size_t i = 0; i < files->count; i++) {
        const char *path = path_in(a, folder, files->items[i].name);
        bool leave = false;
        for (size_t e = 0; e < edited->count; e++)
            leave |= strcmp(path, edited->items[e].file) == 0;
        if (!leave)
            files->items[kept++] = files->items[i];
    }
    files->count = kept;
}

static void put_kernels(strbuf *out, const kernel_set *set)
{
    for (size_t i = 0; i < set->kernel_count; i++) {
        const kernel *k = &set->kernels[i];
        strbuf_format(out, "%s  %s, PTX %u.%u, %zu bytes", k->instance->name, k->target->name,
                      k->isa / 10, k->isa % 10, k->ptx_length);
        if (k->resources.known)
            strbuf_format(out, ", %u registers", k->resources.registers);
        strbuf_char(out, '\n');
    }
}

static void generate(run *r)
{
    const command_line *o = &r->options;
    spec s;
    kernel_set set;
    if (!make_kernels(r, &s, &set))
        return;
    if (o->dump) {
        generate_dump(&s, o->dump, &r->out);
        return;
    }
    output_files files = { 0 };
    if (o->print_outputs) {
        generate_files(r->arena, &set, &files);
        for (size_t i = 0; i < files.count; i++)
            strbuf_format(&r->out, "%s\n",
                          o->out ? path_in(r->arena, o->out, files.items[i].name)
                                 : files.items[i].name);
        return;
    }
    kernel_list edited = { 0 };
    ptxas assembler;
    if (o->verify && o->out && !find_edited(r->arena, &set, o->out, &edited, &r->diags))
        return;
    if (!check_kernels(r, &set, &edited) || (o->emit_ninja && !find_ptxas(r, &assembler)))
        return;
    if (o->verbose)
        put_kernels(&r->out, &set);
    if (o->out) {
        size_t changed;
        generate_files(r->arena, &set, &files);
        leave_edited(r->arena, &files, &edited, o->out);
        r->wrote = emit_tree(r->arena, o->out, files.items, files.count, &changed, &r->diags);
        if (!r->wrote || (o->depfile && !write_depfile(r, &s, &files)) ||
            (o->stamp && !write_stamp(r)))
            return;
        strbuf_format(&r->out, "ptxgen: %zu kernel%s", set.kernel_count,
                      set.kernel_count == 1 ? "" : "s");
        if (set.pipeline_count)
            strbuf_format(&r->out, ", %zu pipeline%s", set.pipeline_count,
                          set.pipeline_count == 1 ? "" : "s");
        strbuf_format(&r->out, " -> %s (%zu files, %zu changed)\n",
                      path_in(r->arena, o->out, files.items[0].name), files.count, changed);
    }
    if (o->emit_ninja && !write_ninja(r, &set, &assembler, &files))
        return;
    if (o->report && !write_report(r, &set))
        return;
    if (o->quiet)
        r->out.length = 0;
}

static void write_starter(run *r)
{
    const char *path = r->options.init, *error;
    if (strcmp(path, "-") != 0 && os_exists(path))
        diag_error(&r->diags, DIAG_UNWRITABLE, (location){ .file = path },
                   "exists already, and is left as it is");
    else if (!os_write_file(r->arena, path, template_kernels_ini, template_kernels_ini_size,
                            &error))
        diag_error(&r->diags, DIAG_UNWRITABLE, (location){ .file = path }, "cannot write: %s",
                   error);
    else if (strcmp(path, "-") != 0 && !r->options.quiet)
        strbuf_format(&r->out, "ptxgen: wrote %s; next: ptxgen --spec %s --out build/\n", path,
                      path);
}

static bool is_listed(const char *list, const char *name)
{
    size_t length = strlen(name);
    for (const char *at = list; (at = strstr(at, name)); at += length)
        if ((at == list || at[-1] == ',' || at[-1] == ' ') && strchr(", ", at[length]))
            return true;
    return false;
}

/* What the cost model says of the families, on the targets of --target or on all. */
static status list_costs(run *r)
{
    const char *only = r->options.overrides.targets;
    bool any = false;
    strbuf_format(
        &r->out,
        "A model's times, in microseconds; nothing here was measured. Instructions and "
        "loads are counted in what\nptxas %s makes of each family, the GPU's figures are "
        "published ones. A unit is a weight, an element of a\ncache or a value; KB/SM are "
        "asked of memory at a time; the largest time is the bound.\n",
        cost_table_ptxas);
    for (size_t i = 0; i < target_count; i++)
        if (!only || is_listed(only, targets[i].name))
            any |= cost_list(&r->out, &targets[i]);
    return any ? EXIT_DONE : wrong_usage("the cost model knows no GPU of --target '%s'", only);
}

static status show_family(run *r)
{
    const family *const *all = families_and_pipelines(r->arena);
    const family *f = family_find(all, r->options.help_family);
    if (f) {
        spec_help_family(&r->out, f);
        return EXIT_DONE;
    }
    size_t count = 0;
    while (all[count])
        count++;
    const char **names = arena_alloc(r->arena, count * sizeof *names);
    for (size_t i = 0; i < count; i++)
        names[i] = all[i]->name;
    const char *closest = closest_match(r->options.help_family, names, count);
    return closest ? wrong_usage("there is no kernel family '%s'; did you mean '%s'?",
                                 r->options.help_family, closest)
                   : wrong_usage("there is no kernel family '%s'; --list shows them all",
                                 r->options.help_family);
}

static status explain(run *r)
{
    const char *text = r->options.explain;
    diag_code code;
    if (!*text) {
        diag_list(&r->out);
    } else if (diag_find(text, &code)) {
        diag_explain(&r->out, code);
    } else {
        const char *numbers[DIAG_COUNT];
        for (int i = 0; i < DIAG_COUNT; i++)
            numbers[i] = diag_number((diag_code)i);
        const char *closest = closest_match(text, numbers, DIAG_COUNT);
        return closest ? wrong_usage("there is no code '%s'; did you mean '%s'?", text, closest)
                       : wrong_usage("there is no code '%s'; --explain lists them all", text);
    }
    return EXIT_DONE;
}

static status run_command(run *r)
{
    const command_line *o = &r->options;
    if (o->help)
        options_help(&r->out);
    else if (o->version)
        strbuf_format(&r->out, "ptxgen %s, header ABI %d\n", PTXGEN_VERSION, PTXGEN_HEADER_ABI);
    else if (o->list && o->verbose)
        return list_costs(r);
    else if (o->list)
        spec_list_families(&r->out, families_and_pipelines(r->arena));
    else if (o->help_family)
        return show_family(r);
    else if (o->explain)
        return explain(r);
    else if (o->init)
        write_starter(r);
    else
        generate(r);
    return EXIT_DONE;
}

int main(int argc, char **argv)
{
    arena *a = arena_new();
    run r = { .arena = a, .options = { .seed = 1 }, .diags = diags_new(a), .out = strbuf_new(a) };
    status result = options_parse(a, argc, argv, &r.options);
    if (result == EXIT_DONE)
        result = run_command(&r);
    if (result == EXIT_DONE)
        result = finish(&r);
    arena_free(a);
    return (int)result;
}
