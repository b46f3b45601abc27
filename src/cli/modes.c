#include "cli/modes.h"

#include <stdio.h>
#include <string.h>

#include "base/diag.h"
#include "base/mdoc.h"
#include "base/os.h"
#include "cost/cost.h"
#include "emit/tree.h"
#include "input/help.h"
#include "cli/starter.h"

#include "templates/templates.h"

static bool is_listed(const char *list, const char *name)
{
    size_t length = strlen(name);
    for (const char *at = list; (at = strstr(at, name)); at += length)
        if ((at == list || at[-1] == ',' || at[-1] == ' ') && strchr(", ", at[length]))
            return true;
    return false;
}

/* What the cost model says of the families: all of it on the targets of --target, or the times on
 * all targets. */
static status list_costs(const char *only, strbuf *out)
{
    bool any = !only;
    strbuf_put(out, "A model's times, in microseconds; nothing here was measured. Instructions and "
                    "loads are counted in what\n");
    strbuf_format(out, "ptxas %s makes of each family, the GPU's figures are published ones.",
                  cost_table_ptxas);
    if (!only) {
        strbuf_put(out, " Beside each time\nstands what bounds it: m memory, i instructions, l "
                        "the latency of memory. --target says more of one GPU.\n");
        cost_summary(out);
    } else {
        strbuf_put(out,
                   " A unit is a weight, an element of a\ncache or a value; KB/SM are asked of "
                   "memory at a time; the largest time is the bound.\n");
    }
    for (size_t i = 0; only && i < target_count; i++)
        if (is_listed(only, targets[i].name))
            any |= cost_list(out, &targets[i]);
    return any ? EXIT_DONE : wrong_usage("the cost model knows no GPU of --target '%s'", only);
}

status mode_list(arena *a, const command_line *o, strbuf *out)
{
    if (o->run.verbose)
        return list_costs(o->run.overrides.targets, out);
    spec_list_families(out, families_and_pipelines(a));
    if (o->run.upper)
        strbuf_format(out, "\nModels: --from-gguf takes %s; see --help-family %s\n",
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
    if (upper && strcmp(name, upper->section) == 0) {
        upper->help(out);
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
    const char *closest = closest_match(name, names, count);
    return closest
               ? wrong_usage("there is no kernel family '%s'; did you mean '%s'?", name, closest)
               : wrong_usage("there is no kernel family '%s'; --list shows them all", name);
}

status mode_explain(const char *code, strbuf *out)
{
    diag_code found;
    if (!*code) {
        diag_list(out);
    } else if (diag_find(code, &found)) {
        diag_explain(out, found);
    } else {
        const char *numbers[DIAG_COUNT];
        for (int i = 0; i < DIAG_COUNT; i++)
            numbers[i] = diag_number((diag_code)i);
        const char *closest = closest_match(code, numbers, DIAG_COUNT);
        return closest ? wrong_usage("there is no code '%s'; did you mean '%s'?", code, closest)
                       : wrong_usage("there is no code '%s'; --explain lists them all", code);
    }
    return EXIT_DONE;
}

/* "spec" is ptxgen-spec as well. */
static bool is_page(const char *page, const char *name)
{
    const char *rest = strchr(page, '-');
    return strcmp(page, name) == 0 || (rest && strcmp(rest + 1, name) == 0);
}

status mode_man(const char *name, strbuf *out)
{
    static const struct {
        const char *name, *text;
    } pages[] = {
        { "ptxgen", template_ptxgen_1 },
        { "ptxgen-spec", template_ptxgen_spec_5 },
        { "ptxgen-header", template_ptxgen_header_3 },
        { "ptxgen-libcuda", template_ptxgen_libcuda_7 },
    };
    enum { PAGES = sizeof pages / sizeof *pages };
    const char *names[PAGES], *error;
    unsigned line;
    for (size_t i = 0; i < PAGES; i++) {
        names[i] = pages[i].name;
        if (!is_page(pages[i].name, name))
            continue;
        if (mdoc_render(out, pages[i].text, &line, &error))
            return EXIT_DONE;
        return wrong_usage("%s, line %u: %s", pages[i].name, line, error);
    }
    const char *closest = closest_match(name, names, PAGES);
    return closest ? wrong_usage("there is no page '%s'; did you mean '%s'?", name, closest)
                   : wrong_usage("there is no page '%s'; there are %s, %s, %s and %s", name,
                                 names[0], names[1], names[2], names[3]);
}

static bool read_model(arena *a, const command_line *o, strbuf *out, strbuf *said, diags *d)
{
    const upper_storey *upper = o->run.upper;
    if (upper)
        return upper->from_file(a, o->from_gguf, &o->run.overrides, &o->model, out, said, d);
    diag_error(d, DIAG_NO_DECODER, (location){ .file = o->from_gguf },
               "is a model, and this ptxgen was built for kernels alone (-Dmodel=false)");
    return false;
}

/* The starter engine, with the spec of a model where one is named. */
static void init_engine(arena *a, const command_line *o, strbuf *out, diags *d)
{
    const char *folder = o->run.out ? o->run.out : STARTER_ENGINE;
    strbuf text = strbuf_new(a), said = strbuf_new(a);
    size_t count;
    if (o->from_gguf && !read_model(a, o, &text, &said, d))
        return;
    if (!starter_write(a, folder, o->from_gguf ? &text : NULL, &count, d) || o->run.quiet)
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
    if (strcmp(path, STARTER_ENGINE) == 0)
        init_engine(a, o, out, d);
    else if (is_file && os_exists(path))
        diag_error(d, DIAG_UNWRITABLE, (location){ .file = path },
                   "exists already, and is left as it is");
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
