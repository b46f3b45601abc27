#include "cli/run.h"

#include <inttypes.h>
#include <string.h>

#include "base/os.h"
#include "base/os_process.h"
#include "base/hash.h"
#include "check/validate.h"
#include "check/verify_set.h"
#include "emit/emit.h"
#include "ptx/ptx.h"
#include "cli/summary.h"

typedef struct run {
    arena *arena;
    const request *request;
    const progress *show;
    strbuf *out;
    diags *diags;
    spec spec;
    kernel_set set;
    kernel_list edited;   /* edited kernel files, which are kept */
    ptxas ptxas;          /* set if a check needs it */
    output_files outputs; /* files of the output folder */
    output_files stale;   /* files to delete from the output folder */
    output_files files;   /* all files to write or delete, in order */
} run;

/* The option that writes a file; SPEC marks a file that is read as the spec. */
static const char OUT[] = "--out", SPEC[] = "";

typedef struct claims {
    name_map numbers; /* by absolute path */
    VEC(const char *) options;
} claims;

/* Claims a path for an option. Returns false with an error if it is already claimed. */
static bool claim(run *r, claims *c, const char *path, const char *option)
{
    if (os_is_device(path))
        return true;
    size_t next = c->options.count;
    size_t at = name_map_find_or_add(r->arena, &c->numbers, os_absolute_path(r->arena, path), next);
    if (at == next) {
        *VEC_PUSH(r->arena, &c->options) = option;
        return true;
    }
    if (c->options.items[at] == SPEC)
        diag_error(r->diags, DIAG_SAME_PATH, (location){ .file = path },
                   "%s would overwrite this file of the spec; name another file", option);
    else
        diag_error(r->diags, DIAG_SAME_PATH, (location){ .file = path },
                   "%s and %s would both write this file; name different files",
                   c->options.items[at], option);
    return false;
}

/* Checks that all files of the run differ, and that the file of --expect is an output. */
static bool check_paths(run *r)
{
    const request *q = r->request;
    const struct {
        const char *path, *option;
    } beside[] = { { q->depfile, "--depfile" },
                   { q->stamp, "--stamp" },
                   { q->emit_ninja, "--emit-ninja" },
                   { q->report, "--report" } };
    claims c = { 0 };
    bool right = true;
    for (size_t i = 0; i < r->spec.file_count; i++)
        right = claim(r, &c, r->spec.files[i], SPEC) && right;
    const char *header = emit_header_path(r->arena, &r->set, q->out);
    if (q->out) {
        right = claim(r, &c, header, OUT) && right;
        right = claim(r, &c, emit_manifest_path(r->arena, &r->set, q->out), OUT) && right;
    }
    for (size_t i = 0; q->out && i < r->set.kernel_count; i++)
        right = claim(r, &c, path_in(r->arena, q->out, r->set.kernels[i].file), OUT) && right;
    if (q->expect) {
        const char *path = os_absolute_path(r->arena, q->expect);
        size_t at = name_map_find_or_add(r->arena, &c.numbers, path, SIZE_MAX);
        if (at == SIZE_MAX || c.options.items[at] != OUT) {
            diag_error(r->diags, DIAG_EXPECTED, (location){ .file = q->expect },
                       "--expect names a file that is not an output; with prefix = %s the header "
                       "is %s",
                       r->set.prefix, header);
            return false;
        }
    }
    for (size_t i = 0; i < sizeof beside / sizeof *beside; i++)
        if (beside[i].path)
            right = claim(r, &c, beside[i].path, beside[i].option) && right;
    return right;
}

static bool make_kernels(run *r)
{
    const request *q = r->request;
    spec *s = &r->spec;
    if (!spec_read(r->arena, q->spec, families_and_pipelines(r->arena), q->upper, &q->overrides, s,
                   r->diags))
        return false;
    if (q->shard.count)
        spec_keep_shard(s, q->shard);
    if (q->only && !spec_keep_instance(r->arena, s, q->only, r->diags))
        return false;
    return generate_kernels(r->arena, s, &r->set, r->diags) && check_paths(r);
}

/* Runs all requested checks, even after one failed. Returns false if any failed. */
static bool check_kernels(run *r)
{
    const request *q = r->request;
    unsigned jobs = q->jobs ? (unsigned)q->jobs : os_cpu_count();
    validation accepted = { 0 };
    verification right = { 0 };
    const char *error;
    bool ok = true;
    if ((q->validate || q->emit_ninja) && !ptxas_find(r->arena, q->ptxas, &r->ptxas, &error)) {
        diag_error(r->diags, DIAG_NO_PTXAS, (location){ 0 }, "%s", error);
        ok = false;
    } else if (q->validate) {
        ok = validate_set(r->arena, &r->set, &r->ptxas, jobs, r->show, &accepted, r->diags);
        if (ok)
            summary_validation(r->out, &r->ptxas, &accepted);
    }
    if (!q->verify)
        return ok;
    if (!verify_set(r->arena, &r->set, &r->edited, q->seed, jobs, r->show, &right, r->diags))
        return false;
    summary_verification(r->out, &right, q->verbose);
    return ok;
}

static bool print_plan(run *r)
{
    const kernel_set *set = &r->set;
    if (!set->plan) {
        diag_error(r->diags, DIAG_NO_DECODER, (location){ .file = r->request->spec },
                   "--plan needs a [decoder] section, and this spec has none");
        return false;
    }
    const target *newest = set->targets[set->target_count - 1];
    set->upper->print(r->out, set->plan, newest, target_overlaps(newest));
    return true;
}

static void add_files(run *r, const output_file *files, size_t count)
{
    for (size_t i = 0; i < count; i++)
        *VEC_PUSH(r->arena, &r->files) = files[i];
}

/* Prepares the files of the output folder, except edited files that the header does not embed. The
 * header is written last: after a killed run, a build finds the old header and runs ptxgen again.
 * The manifest is written after stale files are deleted, since the old one lists them. */
static void make_outputs(run *r, const described_set *d)
{
    output_files *files = &r->outputs;
    emit_files(r->arena, d, r->request->out, files);
    size_t kept = 0;
    for (size_t i = 0; i < files->count; i++) {
        bool leave = false;
        for (size_t e = 0; e < r->edited.count; e++)
            leave |= strcmp(files->items[i].path, r->edited.items[e].edited_file) == 0;
        if (!leave)
            files->items[kept++] = files->items[i];
    }
    files->count = kept;
    add_files(r, &files->items[GENERATED_KERNELS], kept - GENERATED_KERNELS);
    add_files(r, r->stale.items, r->stale.count);
    add_files(r, &files->items[GENERATED_MANIFEST], 1);
    add_files(r, &files->items[GENERATED_HEADER], 1);
}

static void add_text(run *r, const char *path, const strbuf *text)
{
    add_files(r, &(output_file){ .path = path, .bytes = text->text, .size = text->length }, 1);
}

/* Returns true if the file that `option` writes can contain a path. */
static bool check_name(run *r, const char *option, const char *path, depfile_reader reader)
{
    char found = depfile_obstacle(path, reader);
    if (!found)
        return true;
    const char *shown = (unsigned char)found < ' ' || found == '\177'
                            ? arena_format(r->arena, "byte 0x%02x", (unsigned)found)
                            : arena_format(r->arena, "'%c'", found);
    diag_error(r->diags, DIAG_BAD_NAME, (location){ .file = path },
               "%s cannot write this name: %s cannot be escaped for %s; use a path without it",
               option, shown, reader == FOR_NINJA ? "Ninja" : "both Make and Ninja");
    return false;
}

static bool add_depfile(run *r)
{
    const request *q = r->request;
    const char *option = q->emit_ninja ? "--emit-ninja" : "--depfile";
    depfile_reader reader = q->emit_ninja ? FOR_NINJA : FOR_MAKE_AND_NINJA;
    /* The header represents all outputs, since Ninja rejects a depfile with several. */
    const char *output = q->stamp ? q->stamp : r->outputs.items[GENERATED_HEADER].path;
    strbuf rule = strbuf_new(r->arena);
    bool right = check_name(r, option, output, reader);
    for (size_t i = 0; i < r->spec.file_count; i++)
        right = check_name(r, option, r->spec.files[i], reader) && right;
    if (!right)
        return false;
    emit_depfile(&rule, output, r->spec.files, r->spec.file_count);
    add_text(r, q->depfile, &rule);
    return true;
}

/* Returns true if a relative path could begin with '-' after Ninja removes "." and "..". */
static bool begins_with_dash(const char *path)
{
    size_t depth = 0;
    for (size_t length; *path; path += length + (path[length] == '/')) {
        length = strcspn(path, "/");
        if (length == 2 && path[0] == '.' && path[1] == '.')
            depth -= depth > 0;
        else if (length && !(length == 1 && path[0] == '.') && depth++ == 0 && path[0] == '-')
            return true;
    }
    return false;
}

/* Returns true if Ninja and the shell can represent all names and arguments of the build. */
static bool check_ninja_names(run *r)
{
    static const char option[] = "--emit-ninja";
    const request *q = r->request;
    const char *const paths[] = { q->out, q->emit_ninja, q->depfile, q->program, r->ptxas.path };
    bool right = true;
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++)
        right = check_name(r, option, paths[i], FOR_NINJA) && right;
    for (size_t i = 0; i < q->argument_count; i++)
        if (strpbrk(q->arguments[i], "\n\r")) {
            diag_error(r->diags, DIAG_BAD_NAME, (location){ 0 },
                       "--emit-ninja cannot pass on an argument that has a line break");
            right = false;
        }
    if (q->out[0] != '/' && begins_with_dash(q->out)) {
        diag_error(r->diags, DIAG_BAD_NAME, (location){ .file = q->out },
                   "--emit-ninja cannot use this folder: ptxas would read its name as an option; "
                   "use an absolute path");
        right = false;
    }
    return right;
}

/* Adds a Ninja build that generates and verifies. Returns the number of runs of ptxas. */
static size_t add_ninja(run *r)
{
    const request *q = r->request;
    assembly_plans plans = { 0 };
    kernel_plan_assemblies(r->arena, &r->set, r->ptxas.known, r->ptxas.oldest, &plans);
    const char *only = q->overrides.targets;
    const char *verify[] = {
        "--verify",
        "--quiet",
        arena_format(r->arena, "--spec=%s", q->spec),
        arena_format(r->arena, "--seed=%" PRIu64, q->seed),
        only ? arena_format(r->arena, "--target=%s", only) : NULL,
    };
    const char *program = os_find_program(r->arena, q->program);
    ninja_build build = {
        .file = q->emit_ninja,
        .depfile = q->depfile,
        .folder = q->out,
        .outputs = r->outputs.items,
        .output_count = r->outputs.count,
        .ptxgen = program ? program : q->program,
        .ptxas = r->ptxas.path,
        .generate = q->arguments,
        .generate_count = q->argument_count,
        .verify = verify,
        .verify_count = sizeof verify / sizeof *verify - !only,
        .plan = plans.items,
        .plan_count = plans.count,
    };
    strbuf text = strbuf_new(r->arena);
    emit_ninja(&text, &r->set, &build);
    add_text(r, q->emit_ninja, &text);
    return plans.count;
}

/* Prints the summary. The first folder_count files are in the output folder. */
static void put_written(run *r, size_t folder_count)
{
    const kernel_set *set = &r->set;
    size_t changed = 0;
    for (size_t i = 0; i < folder_count; i++)
        changed += r->files.items[i].changed && r->files.items[i].bytes;
    strbuf_format(r->out, "ptxgen: %zu kernel%s", set->kernel_count,
                  set->kernel_count == 1 ? "" : "s");
    if (set->pipeline_count)
        strbuf_format(r->out, ", %zu pipeline%s", set->pipeline_count,
                      set->pipeline_count == 1 ? "" : "s");
    if (set->plan)
        strbuf_put(r->out, ", 1 decoder");
    strbuf_format(r->out, " -> %s (%zu files, %zu changed", r->outputs.items[GENERATED_HEADER].path,
                  r->outputs.count, changed);
    if (r->stale.count)
        strbuf_format(r->out, ", %zu removed", r->stale.count);
    strbuf_put(r->out, ")\n");
}

static bool write_files(run *r, bool *wrote)
{
    const request *q = r->request;
    described_set d = describe_set(r->arena, &r->set);
    if (q->out)
        make_outputs(r, &d);
    size_t folder_count = r->files.count;
    if ((q->emit_ninja && !check_ninja_names(r)) || (q->depfile && !add_depfile(r)))
        return false;
    size_t checks = q->emit_ninja ? add_ninja(r) : 0;
    if (q->report) {
        strbuf page = strbuf_new(r->arena);
        emit_report(&page, &d);
        add_text(r, q->report, &page);
    }
    if (q->stamp)
        add_files(r, &(output_file){ .path = q->stamp, .bytes = "", .always = true }, 1);
    bool written = emit_tree(r->arena, r->files.items, r->files.count, r->diags);
    for (size_t i = 0; i < r->files.count; i++)
        *wrote |= r->files.items[i].changed;
    if (!written)
        return false;
    if (q->out)
        put_written(r, folder_count);
    if (q->emit_ninja)
        strbuf_format(r->out, "ptxgen: %zu run%s of ptxas -> %s; next: ninja -f %s\n", checks,
                      checks == 1 ? "" : "s", q->emit_ninja, q->emit_ninja);
    if (q->report)
        strbuf_format(r->out, "ptxgen: report -> %s\n", q->report);
    return true;
}

bool run_request(arena *a, const request *q, const progress *show, strbuf *out, bool *wrote,
                 diags *d)
{
    run r = { .arena = a, .request = q, .show = show, .out = out, .diags = d };
    if (!make_kernels(&r))
        return false;
    if (q->dump) {
        generate_dump(&r.spec, q->dump, out);
        return true;
    }
    if (q->plan)
        return print_plan(&r);
    if (q->print_outputs) {
        described_set described = describe_set(a, &r.set);
        emit_files(a, &described, q->out, &r.outputs);
        for (size_t i = 0; i < r.outputs.count; i++)
            strbuf_format(out, "%s\n", r.outputs.items[i].path);
        return true;
    }
    earlier_run earlier; /* files of an earlier run in the output folder */
    if (q->out && (q->verify || q->prune) &&
        !(earlier_read(a, q->out, r.set.prefix, &earlier, d) &&
          (!q->verify || earlier_edited(a, &earlier, &r.set, &r.edited, d)) &&
          (!q->prune || earlier_stale(a, &earlier, &r.set, &r.stale, d))))
        return false;
    if (!check_kernels(&r))
        return false;
    if (q->verbose)
        summary_kernels(out, &r.set);
    if (!write_files(&r, wrote))
        return false;
    if (q->quiet)
        out->length = 0;
    return true;
}
