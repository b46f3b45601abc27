/* Results go to standard output, diagnostics and progress to standard error. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/os.h"
#include "emit/describe.h"
#include "cli/modes.h"
#include "version.h"

#ifdef PTXGEN_HAS_MODEL
#include "model/storey.h"
#define UPPER_STOREY &model_storey
#else
#define UPPER_STOREY NULL
#endif

enum { STDERR = 2 };

/* Returns true if standard error is a terminal that supports escapes. */
static bool is_capable_terminal(void)
{
    const char *terminal = getenv("TERM");
    return os_is_terminal(STDERR) && terminal && *terminal && strcmp(terminal, "dumb") != 0;
}

static void show_progress(void *context, const char *what, size_t done, size_t total)
{
    (void)context;
    fprintf(stderr, "\r%s %zu of %zu\033[K", what, done, total);
    if (done == total)
        fputs("\r\033[K", stderr);
}

/* Runs the mode that the command line selects. Appends to out, which is printed at the end. */
static status run_command(arena *a, const command_line *o, strbuf *out, bool *wrote, diags *d)
{
    static const progress terminal = { .step = show_progress };
    if (o->help)
        options_help(out);
    else if (o->version)
        strbuf_format(out, "ptxgen %s, header ABI %d\n", PTXGEN_VERSION, PTXGEN_HEADER_ABI);
    else if (o->list)
        return mode_list(a, o, out);
    else if (o->help_family)
        return mode_help_family(a, o, out);
    else if (o->explain)
        return mode_explain(o->explain, out);
    else if (o->man)
        return mode_man(a, o, out);
    else if (o->init)
        mode_init(a, o, out, d);
    else if (o->from_gguf)
        mode_from_gguf(a, o, out, d);
    else
        run_request(a, &o->run, !o->run.quiet && is_capable_terminal() ? &terminal : NULL, out,
                    wrote, d);
    return EXIT_DONE;
}

/* Prints the diagnostics, and the output unless there are errors. */
static status finish(arena *a, const command_line *o, const strbuf *out, bool wrote, const diags *d)
{
    const char *no_color = getenv("NO_COLOR");
    bool color = o->color && strcmp(o->color, "auto") != 0
                     ? strcmp(o->color, "always") == 0
                     : is_capable_terminal() && !(no_color && *no_color);
    status result = options_status(d);
    strbuf text = strbuf_new(a);
    if (result != EXIT_DONE || !o->run.quiet)
        diags_render(d, &text, color);
    if (d->warnings > DIAG_LIMIT && (d->errors || !o->run.quiet))
        strbuf_format(&text, "ptxgen: %zu warnings, %d shown\n", d->warnings, DIAG_LIMIT);
    if (d->errors > DIAG_LIMIT)
        strbuf_format(&text, "ptxgen: %zu errors, %d shown%s\n", d->errors, DIAG_LIMIT,
                      wrote ? "" : ", nothing written");
    else if (d->errors)
        strbuf_format(&text, "ptxgen: %zu error%s%s\n", d->errors, d->errors == 1 ? "" : "s",
                      wrote ? "" : ", nothing written");
    fputs(text.text, stderr);

    const char *error;
    if (result == EXIT_DONE && out->length &&
        !os_write_file(a, "-", out->text, out->length, &error)) {
        fprintf(stderr, "ptxgen: cannot write to standard output: %s\n", error);
        result = EXIT_FILE;
    }
    return result;
}

int main(int argc, char **argv)
{
    arena *a = arena_new();
    if (argc > 1 && strcmp(argv[1], "run") == 0)
        return (int)mode_run(a, argv + 2);
    command_line o = { .run.seed = 1, .run.upper = UPPER_STOREY, .model.kv_type = -1 };
    diags d = diags_new(a);
    strbuf out = strbuf_new(a);
    bool wrote = false;
    status result = options_parse(a, argc, argv, &o);
    if (result == EXIT_DONE)
        result = run_command(a, &o, &out, &wrote, &d);
    if (result == EXIT_DONE)
        result = finish(a, &o, &out, wrote, &d);
    arena_free(a);
    return (int)result;
}
