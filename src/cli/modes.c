#include "cli/modes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/diag.h"
#include "base/mdoc.h"
#include "base/os.h"
#include "base/os_process.h"
#include "cost/cost.h"
#include "emit/tree.h"
#include "input/help.h"
#include "input/section.h"
#include "templates/templates.h"
#include "version.h"

/* Reports an unknown name, with the most similar name or else a hint. */
static status no_such(const char *kind, const char *name, const char *const *names, size_t count,
                      const char *hint)
{
    const char *closest = closest_match(name, names, count);
    return closest ? wrong_usage("unknown %s '%s'; did you mean '%s'?", kind, name, closest)
                   : wrong_usage("unknown %s '%s'; %s", kind, name, hint);
}

/* Appends the cost model's predictions: details for --target, or times on all targets. */
static status list_costs(const char *only, strbuf *out)
{
    bool any = !only;
    strbuf_put(out, "Times of a cost model in microseconds, predicted, not measured. Instructions "
                    "and loads are counted in\n");
    strbuf_format(out, "the code that ptxas %s makes of each family; the GPUs' data is published.",
                  cost_table_ptxas);
    if (!only) {
        strbuf_put(out, " The letter\nafter a time is its bound: m memory bandwidth, i instruction "
                        "issue, l memory latency. --target shows details of a GPU.\n");
        cost_summary(out);
    } else {
        strbuf_put(out, " A unit\nis a weight, a cache element or a value; KB/SM are the bytes in "
                        "flight per SM; the largest time is the bound.\n");
    }
    for (size_t i = 0; only && i < target_count; i++)
        if (lists_word(only, targets[i].name))
            any |= cost_list(out, &targets[i]);
    return any ? EXIT_DONE : wrong_usage("the cost model has no GPU for --target '%s'", only);
}

status mode_list(arena *a, const command_line *o, strbuf *out)
{
    if (o->run.verbose)
        return list_costs(o->run.overrides.targets, out);
    spec_list_families(out, families_and_pipelines(a));
    if (o->run.upper)
        strbuf_format(out, "\nModels: --from-gguf supports %s; see --help-family %s\n",
                      o->run.upper->architectures(a), o->run.upper->section);
    return EXIT_DONE;
}

status mode_help_family(arena *a, const command_line *o, strbuf *out)
{
    const char *name = o->help_family;
    const upper_storey *upper = o->run.upper;
    const family *const *all = families_and_pipelines(a);
    const family *f = family_find(all, name);
    if (f) {
        spec_help_family(out, f);
        return EXIT_DONE;
    }
    bool is_upper = upper && strcmp(name, upper->section) == 0;
    if (is_upper || strcmp(name, GLOBAL_SECTION) == 0) {
        (is_upper ? upper->help : spec_help_globals)(out);
        return EXIT_DONE;
    }
    size_t count = 0;
    while (all[count])
        count++;
    const char **names = arena_alloc(a, (count + 1) * sizeof *names);
    for (size_t i = 0; i < count; i++)
        names[i] = all[i]->name;
    if (upper)
        names[count++] = upper->section;
    return no_such("kernel family", name, names, count, "--list shows all families");
}

/* Returns the next explanation in a text of several, which starts with its code: "E014: ...". */
static const char *next_explanation(const char *text)
{
    enum { DIGITS = 3 };
    while ((text = strstr(text, "\nE")) && strspn(text + 2, "0123456789") != DIGITS)
        text++;
    return text ? text + 1 : NULL;
}

/* Skips the E and the zeros of a code. */
static const char *digits(const char *code)
{
    code += *code == 'E' || *code == 'e';
    return code + strspn(code, "0");
}

status mode_explain(const char *code, strbuf *out)
{
    VEC(const char *) codes = { 0 };
    const char *next;
    for (const char *at = next_explanation(template_explanations_txt); at; at = next) {
        const char *one = arena_copy(out->arena, at, strcspn(at, ":"));
        const char *meaning = at + strlen(one) + strlen(": ");
        next = next_explanation(at);
        *VEC_PUSH(out->arena, &codes) = one;
        if (!*code) {
            strbuf_format(out, "%s  %.*s\n", one, (int)strcspn(meaning, "\n"), meaning);
        } else if (strcmp(digits(code), digits(one)) == 0) {
            strbuf_bytes(out, at, next ? (size_t)(next - at) : strlen(at));
            return EXIT_DONE;
        }
    }
    return *code ? no_such("code", code, codes.items, codes.count, "--explain lists all codes")
                 : EXIT_DONE;
}

status mode_man(arena *a, const command_line *o, strbuf *out)
{
    const char *names[manual_pages_count], *error;
    unsigned line;
    for (size_t i = 0; i < manual_pages_count; i++) {
        const template_file *of = &manual_pages[i];
        bool as_mdoc = strcmp(of->name, o->man) == 0;
        names[i] = arena_copy(a, of->name, strcspn(of->name, "."));
        const char *rest = strchr(names[i], '-'); /* "spec" also names ptxgen-spec */
        if (!as_mdoc && strcmp(names[i], o->man) != 0 && (!rest || strcmp(rest + 1, o->man) != 0))
            continue;
        strbuf page = strbuf_new(a);
        manual_page(as_mdoc ? out : &page, of->text, families_and_pipelines(a), o->run.upper);
        if (as_mdoc || mdoc_render(out, page.text, &line, &error))
            return EXIT_DONE;
        return wrong_usage("%s, line %u: %s", names[i], line, error);
    }
    return no_such("page", o->man, names, manual_pages_count,
                   "the pages are ptxgen, spec, formats, header and libcuda");
}

static bool read_model(arena *a, const command_line *o, strbuf *out, strbuf *said, diags *d)
{
    const upper_storey *upper = o->run.upper;
    if (upper)
        return upper->from_file(a, o->from_gguf, &o->run.overrides, &o->model, out, said, d);
    diag_error(d, DIAG_NO_DECODER, (location){ .file = o->from_gguf },
               "this ptxgen was built without models (-Dmodel=false)");
    return false;
}

/* Returns a spec with steps of at most 64 rows, and with pages and sequences. */
static const char *server_spec(arena *a, const char *from)
{
    enum { NOTE_COLUMN = 39 };
    static const char *const keys[][3] = {
        { "m", "1, 8, 64", "tokens per step; each number makes a step" },
        { "page", "64", "positions per page of the KV cache" },
        { "sequences", "16", "sequences, each with a KV cache" },
        { "logits_rows", "16", "rows of a step with logits: one per sequence" },
    };
    const char *m = strstr(from, "\nm ") + 1, *rest = strchr(m, '\n') + 1;
    const int width = (int)strcspn(m, "=");
    const char *large = strstr(m, ", 256 ");
    const bool has_large = large && large < rest;
    strbuf out = strbuf_new(a);
    strbuf_bytes(&out, from, (size_t)((has_large ? m : rest) - from));
    for (size_t i = !has_large; i < sizeof keys / sizeof *keys; i++) {
        size_t start = out.length;
        strbuf_format(&out, "%-*s= %s", width, keys[i][0], keys[i][1]);
        strbuf_pad(&out, start, NOTE_COLUMN);
        strbuf_format(&out, " ; %s\n", keys[i][2]);
    }
    strbuf_put(&out, rest);
    return out.text;
}

/* Writes the files of a starter program, for --from-gguf or Llama 3.1 8B, unless one exists. */
static void init_program(arena *a, const command_line *o, strbuf *out, diags *d)
{
    const bool serves = strcmp(o->init, STARTER_SERVER) == 0;
    const template_file *program = serves ? server_files : engine_files;
    const size_t count = serves ? server_files_count : engine_files_count;
    const char *folder = o->run.out ? o->run.out : o->init;
    strbuf model = strbuf_new(a), said = strbuf_new(a);
    if (o->from_gguf && !read_model(a, o, &model, &said, d))
        return;
    output_file *files = arena_alloc(a, count * sizeof *files);
    for (size_t i = 0; i < count; i++) {
        const bool is_spec = strcmp(program[i].name, "model.ini") == 0;
        const char *text = !is_spec || !o->from_gguf ? program[i].text
                           : serves                  ? server_spec(a, model.text)
                                                     : model.text;
        files[i] = (output_file){ .path = path_in(a, folder, program[i].name), .bytes = text };
        files[i].size = strlen(files[i].bytes);
        if (os_exists(files[i].path))
            diag_error(d, DIAG_UNWRITABLE, (location){ .file = files[i].path },
                       "the file exists and is not overwritten");
    }
    if (d->errors || !emit_tree(a, files, count, d) || o->run.quiet)
        return;
    fputs(said.text, stderr);
    strbuf_format(out, "ptxgen: wrote %zu files -> %s; next: ", count, folder);
    if (o->from_gguf)
        strbuf_format(out, "cd %s && meson setup build && ninja -C build\n", folder);
    else
        strbuf_format(out, "ptxgen --from-gguf MODEL.gguf > %s\n", path_in(a, folder, "model.ini"));
}

void mode_init(arena *a, const command_line *o, strbuf *out, diags *d)
{
    const char *path = o->init, *error;
    bool is_file = strcmp(path, "-") != 0;
    if (strcmp(path, STARTER_ENGINE) == 0 || strcmp(path, STARTER_SERVER) == 0)
        init_program(a, o, out, d);
    else if (is_file && os_exists(path))
        diag_error(d, DIAG_UNWRITABLE, (location){ .file = path },
                   "the file exists and is not overwritten");
    else if (!os_write_file(a, path, template_kernels_ini, template_kernels_ini_size, &error))
        diag_error(d, DIAG_UNWRITABLE, (location){ .file = path }, "cannot write: %s", error);
    else if (is_file && !o->run.quiet)
        strbuf_format(out, "ptxgen: wrote %s; next: ptxgen --spec %s --out build/\n", path, path);
}

void mode_from_gguf(arena *a, const command_line *o, strbuf *out, diags *d)
{
    strbuf said = strbuf_new(a);
    if (read_model(a, o, out, &said, d) && !o->run.quiet)
        fputs(said.text, stderr);
}

#define LIBRARY "libcuda.so.1"

status mode_run(arena *a, char *const *argv)
{
    const char *name = argv[0];
    if (name && strcmp(name, "--") == 0)
        name = *++argv;
    else if (name && name[0] == '-')
        return wrong_usage("run has no options: '%s'; write ptxgen run PROGRAM [ARGUMENT]...",
                           name);
    if (!name || !*name)
        return wrong_usage("run needs a program: ptxgen run PROGRAM [ARGUMENT]...");

    const char *path = os_find_program(a, name);
    const char *here = arena_format(a, "./%s", name);
    if (!path && !strchr(name, '/') && os_find_program(a, here))
        return wrong_usage("no program '%s' on PATH; did you mean '%s'?", name, here);
    if (!path)
        return wrong_usage("'%s' is not an executable program", name);
    /* Folders with only the library, for LD_LIBRARY_PATH: of the build, or of an installation. */
    const char *own = os_program_folder(a), *folder = NULL;
    const char *places[] = {
        own ? arena_format(a, "%s/src/libcuda", own) : NULL,
        own ? arena_format(a, "%s/%s", own, PTXGEN_LIBCUDA_FROM_BINDIR) : NULL,
        PTXGEN_LIBCUDA_DIR,
    };
    for (size_t i = 0; !folder && i < sizeof places / sizeof *places; i++)
        if (places[i] && os_exists(arena_format(a, "%s/" LIBRARY, places[i])))
            folder = places[i];
    if (!folder)
        return wrong_usage("the emulated driver is missing: no " LIBRARY " next to ptxgen or in %s",
                           PTXGEN_LIBCUDA_DIR);

    const char *error, *others = getenv("LD_LIBRARY_PATH");
    if (others && *others)
        folder = arena_format(a, "%s:%s", folder, others);
    os_become(a, path, argv, "LD_LIBRARY_PATH", folder, &error);
    return wrong_usage("cannot run %s: %s", path, error);
}
