/* Writes the Ninja build. A .cubin, ptxas' output, marks an accepted kernel: the options below make
 * ptxas fail on spills or stack use, as --validate does. A stamp marks a verified kernel.
 *
 * Text is escaped for two readers. In the paths of a build line, Ninja needs '$' before a space, a
 * colon and a dollar sign; in a command only before a dollar sign. The shell needs single quotes
 * around what it would split or expand; Ninja quotes $in and $out itself. */
#include <string.h>

#include "emit/emit.h"

static const char PLAIN[] =
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+=./,:@%";

static void put_path(strbuf *out, const char *path)
{
    for (const char *c = path; *c; c++) {
        if (*c == ' ' || *c == ':' || *c == '$')
            strbuf_char(out, '$');
        strbuf_char(out, *c);
    }
}

static void put_path_in(strbuf *out, const char *folder, const char *name)
{
    put_path(out, folder);
    if (folder[strlen(folder) - 1] != '/')
        strbuf_char(out, '/');
    put_path(out, name);
}

static void put_word(strbuf *out, const char *word)
{
    bool plain = *word && word[strspn(word, PLAIN)] == '\0';
    if (!plain)
        strbuf_char(out, '\'');
    for (const char *c = word; *c; c++) {
        if (*c == '\'')
            strbuf_put(out, "'\\'");
        else if (*c == '$')
            strbuf_char(out, '$');
        strbuf_char(out, *c);
    }
    if (!plain)
        strbuf_char(out, '\'');
}

static void put_command(strbuf *out, const char *program, const char *const *arguments,
                        size_t count)
{
    strbuf_put(out, "  command = ");
    put_word(out, program);
    for (size_t i = 0; i < count; i++) {
        strbuf_char(out, ' ');
        put_word(out, arguments[i]);
    }
}

static void put_rules(strbuf *out, const kernel_set *set, const ninja_build *b)
{
    strbuf_format(out,
                  "# Checks of the kernels %s_*, written by ptxgen " PTXGEN_VERSION
                  ". Run it in the folder where ptxgen ran:\n"
                  "#\n"
                  "#     ninja -f %s           assembles every kernel for every target\n"
                  "#     ninja -f %s verify    runs every kernel on the CPU\n"
                  "ninja_required_version = 1.7\n"
                  "builddir = ",
                  set->prefix, b->file, b->file);
    put_path_in(out, b->folder, "checks");
    strbuf_put(out, "\n\nrule generate\n");
    put_command(out, b->ptxgen, b->generate, b->generate_count);
    strbuf_put(out, "\n  depfile = ");
    put_path(out, b->depfile);
    strbuf_put(out, "\n  generator = 1\n  restat = 1\n  description = ptxgen\n"
                    "\nrule assemble\n");
    put_command(out, b->ptxas, NULL, 0);
    strbuf_put(out, " -arch=$target -warn-spills -warn-lmem-usage -Werror $in -o $out\n"
                    "  description = ptxas $target $in\n"
                    "\nrule verify\n");
    put_command(out, b->ptxgen, b->verify, b->verify_count);
    strbuf_put(out, " --only=$instance && touch $out\n  description = verify $instance\n");
}

/* Cubins and stamps have the prefix in their names: the folder may serve several specs. */
static void put_cubin(strbuf *out, const kernel_set *set, const assembly_plan *one)
{
    strbuf_format(out, " $builddir/%s.%s.%s.cubin", set->prefix, one->kernel->instance->name,
                  one->target->name);
}

static void put_stamp(strbuf *out, const kernel_set *set, const instance *in)
{
    strbuf_format(out, " $builddir/%s.%s.verified", set->prefix, in->name);
}

/* Writes the verification of an instance. Returns its number of kernels, which are adjacent. */
static size_t put_verification(strbuf *out, const kernel_set *set, const ninja_build *b, size_t i)
{
    const instance *in = set->kernels[i].instance;
    strbuf_put(out, "build");
    put_stamp(out, set, in);
    strbuf_put(out, ": verify |");
    size_t first = i;
    for (; i < set->kernel_count && set->kernels[i].instance->name == in->name; i++) {
        strbuf_char(out, ' ');
        put_path_in(out, b->folder, set->kernels[i].file);
    }
    strbuf_char(out, ' ');
    put_path(out, b->ptxgen);
    strbuf_format(out, "\n  instance = %s\n", in->name);
    return i - first;
}

void emit_ninja(strbuf *out, const kernel_set *set, const ninja_build *b)
{
    put_rules(out, set, b);
    strbuf_put(out, "\nbuild");
    for (size_t i = 0; i < b->output_count; i++) {
        strbuf_put(out, i ? " $\n  " : " ");
        put_path(out, b->outputs[i].path);
    }
    strbuf_put(out, " $\n  ");
    put_path(out, b->file);
    strbuf_put(out, ": generate | ");
    put_path(out, b->ptxgen);
    strbuf_char(out, '\n');

    strbuf validate = strbuf_new(out->arena), verify = strbuf_new(out->arena);
    strbuf_char(out, '\n');
    for (size_t i = 0; i < b->plan_count; i++) {
        const assembly_plan *one = &b->plan[i];
        strbuf_put(out, "build");
        put_cubin(out, set, one);
        strbuf_put(out, ": assemble ");
        put_path_in(out, b->folder, one->kernel->file);
        strbuf_put(out, " | ");
        put_path(out, b->ptxas);
        strbuf_format(out, "\n  target = %s\n", one->target->name);
        strbuf_put(&validate, " $\n ");
        put_cubin(&validate, set, one);
    }
    strbuf_char(out, '\n');
    for (size_t i = 0; i < set->kernel_count;) {
        strbuf_put(&verify, " $\n ");
        put_stamp(&verify, set, set->kernels[i].instance);
        i += put_verification(out, set, b, i);
    }
    strbuf_format(out, "\nbuild validate: phony%s\n", validate.text);
    strbuf_format(out, "build verify: phony%s\n", verify.text);
    strbuf_put(out, "default validate\n");
}
