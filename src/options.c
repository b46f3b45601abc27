/* One table of options serves getopt_long and --help. */
#include "options.h"

#include <getopt.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/os.h"
#include "generate.h"

enum { MAX_JOBS = 256, LONG_COLUMN = 6, HELP_COLUMN = 30 };

/* Options without a letter. */
enum {
    OPTION_TARGET = 256,
    OPTION_PREFIX,
    OPTION_EMBED,
    OPTION_VALIDATE,
    OPTION_VERIFY,
    OPTION_SEED,
    OPTION_DEPFILE,
    OPTION_PRINT_OUTPUTS,
    OPTION_DUMP,
    OPTION_LIST,
    OPTION_HELP_FAMILY,
    OPTION_INIT,
    OPTION_COLOR,
    OPTION_VERSION
};

/* What getopt_long takes and --help shows. */
static const struct {
    int id; /* a character: also a short option */
    const char *name;
    int has_argument;
    const char *argument, *help;
} option_table[] = {
    { 's', "spec", required_argument, "FILE", "read the spec from FILE; - is standard input" },
    { 'o', "out", required_argument, "DIR", "write header, manifest and kernels into DIR" },
    { OPTION_TARGET, "target", required_argument, "LIST",
      "targets instead of the spec's: sm_80,sm_90" },
    { OPTION_PREFIX, "prefix", required_argument, "NAME", "C prefix instead of the spec's" },
    { OPTION_EMBED, "embed", required_argument, "HOW",
      "PTX in the header: string, c23 (#embed) or incbin" },
    { OPTION_VALIDATE, "validate", optional_argument, "PTXAS", "assemble every kernel with ptxas" },
    { OPTION_VERIFY, "verify", no_argument, NULL,
      "run every kernel on the CPU against its reference;\n"
      "                              with --out, edited files are checked and kept" },
    { OPTION_SEED, "seed", required_argument, "N", "random inputs of --verify (default 1)" },
    { OPTION_DEPFILE, "depfile", required_argument, "FILE",
      "write a Makefile rule for Make and Ninja" },
    { OPTION_PRINT_OUTPUTS, "print-outputs", no_argument, NULL,
      "print what --out would write, write nothing" },
    { OPTION_DUMP, "dump", required_argument, "STAGES",
      "print kernels after build, fold or print, write nothing" },
    { OPTION_LIST, "list", no_argument, NULL,
      "list the kernel families; with -v their predicted times" },
    { OPTION_HELP_FAMILY, "help-family", required_argument, "NAME",
      "show a family's keys, parameters and launch" },
    { OPTION_INIT, "init", optional_argument, "FILE",
      "write a starter spec (default kernels.ini)" },
    { 'j', "jobs", required_argument, "N", "threads for the checks (default: all CPUs)" },
    { 'q', "quiet", no_argument, NULL, "print errors only" },
    { 'v', "verbose", no_argument, NULL, "print a line for every kernel" },
    { OPTION_COLOR, "color", required_argument, "WHEN", "color messages: auto, always or never" },
    { OPTION_VERSION, "version", no_argument, NULL, "print the version" },
    { 'h', "help", no_argument, NULL, "print this help" },
};

enum { TABLE_SIZE = sizeof option_table / sizeof *option_table };

status wrong_usage(const char *text, ...)
{
    va_list args;
    va_start(args, text);
    fputs("ptxgen: ", stderr);
    vfprintf(stderr, text, args);
    fputs("\nTry 'ptxgen --help'.\n", stderr);
    va_end(args);
    return EXIT_USAGE;
}

void options_help(strbuf *out)
{
    strbuf_put(out, "Generates PTX kernels for LLM inference, and a C header to launch them.\n\n"
                    "Usage: ptxgen --spec FILE --out DIR [OPTION]...\n"
                    "       ptxgen --spec FILE [--validate] [--verify] [--print-outputs]\n"
                    "       ptxgen --list | --help-family NAME | --init[=FILE]\n\n");
    for (size_t i = 0; i < TABLE_SIZE; i++) {
        size_t line = out->length;
        if (option_table[i].id < OPTION_TARGET)
            strbuf_format(out, "  -%c, ", (char)option_table[i].id);
        strbuf_pad(out, line, LONG_COLUMN);
        strbuf_format(out, "--%s", option_table[i].name);
        if (option_table[i].has_argument == optional_argument)
            strbuf_format(out, "[=%s]", option_table[i].argument);
        else if (option_table[i].argument)
            strbuf_format(out, " %s", option_table[i].argument);
        strbuf_pad(out, line, HELP_COLUMN);
        strbuf_format(out, "%s\n", option_table[i].help);
    }
    strbuf_put(out, "\nExit status: 0 done; 1 the spec is wrong or a kernel failed a check; "
                    "2 wrong usage;\n3 a file could not be read or written.\n");
}

static bool parse_number(const char *text, uint64_t least, uint64_t most, uint64_t *out)
{
    uint64_t number = 0;
    for (const char *c = text; *c; c++) {
        unsigned digit = (unsigned)(*c - '0');
        if (digit > 9 || number > (UINT64_MAX - digit) / 10)
            return false;
        number = number * 10 + digit;
    }
    *out = number;
    return *text && number >= least && number <= most;
}

/* "build,print" */
static status take_stages(command_line *o, const char *list)
{
    for (const char *item = list;; item++) {
        size_t length = strcspn(item, ",");
        unsigned stage = generate_stage(item, length);
        if (!stage)
            return wrong_usage("--dump takes a list of build, fold and print, not '%s'", list);
        o->dump |= stage;
        item += length;
        if (!*item)
            return EXIT_DONE;
    }
}

static status take_option(command_line *o, int id, const char *argument)
{
    switch (id) {
    case 's':
        o->spec = argument;
        break;
    case 'o':
        o->out = argument;
        return *argument ? EXIT_DONE : wrong_usage("--out needs a folder; . is the present one");
    case OPTION_TARGET:
        o->overrides.targets = argument;
        break;
    case OPTION_PREFIX:
        o->overrides.prefix = argument;
        break;
    case OPTION_EMBED:
        if (!embedding_find(argument, &o->embed))
            return wrong_usage("--embed takes string, c23 or incbin, not '%s'", argument);
        o->overrides.embed = &o->embed;
        break;
    case OPTION_VALIDATE:
        o->validate = true;
        o->ptxas = argument;
        break;
    case OPTION_VERIFY:
        o->verify = true;
        break;
    case OPTION_SEED:
        if (!parse_number(argument, 0, UINT64_MAX, &o->seed))
            return wrong_usage("--seed takes a number of 64 bits, not '%s'", argument);
        break;
    case OPTION_DEPFILE:
        o->depfile = argument;
        break;
    case OPTION_PRINT_OUTPUTS:
        o->print_outputs = true;
        break;
    case OPTION_DUMP:
        return take_stages(o, argument);
    case OPTION_LIST:
        o->list = true;
        break;
    case OPTION_HELP_FAMILY:
        o->help_family = argument;
        break;
    case OPTION_INIT:
        o->init = argument ? argument : "kernels.ini";
        break;
    case 'j':
        if (!parse_number(argument, 1, MAX_JOBS, &o->jobs))
            return wrong_usage("--jobs takes a number from 1 to %d, not '%s'", MAX_JOBS, argument);
        break;
    case 'q':
        o->quiet = true;
        break;
    case 'v':
        o->verbose = true;
        break;
    case OPTION_COLOR:
        o->color = argument;
        if (strcmp(argument, "auto") != 0 && strcmp(argument, "always") != 0 &&
            strcmp(argument, "never") != 0)
            return wrong_usage("--color takes auto, always or never, not '%s'", argument);
        break;
    case OPTION_VERSION:
        o->version = true;
        break;
    case 'h':
        o->help = true;
        break;
    }
    return EXIT_DONE;
}

static status unknown_option(arena *a, const char *text)
{
    const char *names[TABLE_SIZE];
    for (size_t i = 0; i < TABLE_SIZE; i++)
        names[i] = arena_format(a, "--%s", option_table[i].name);
    const char *closest = closest_match(text, names, TABLE_SIZE);
    return closest ? wrong_usage("unknown option '%s'; did you mean '%s'?", text, closest)
                   : wrong_usage("unknown option '%s'", text);
}

/* Options that make no sense together, or nothing to do. */
static status check_options(const command_line *o)
{
    int modes = (o->spec != NULL) + o->list + (o->help_family != NULL) + (o->init != NULL);
    if (modes == 0)
        return wrong_usage("no spec; give --spec FILE, or --init to start with an example");
    if (modes > 1)
        return wrong_usage("--spec, --list, --help-family and --init exclude each other");
    if (o->spec && !o->out && !o->validate && !o->verify && !o->print_outputs && !o->dump)
        return wrong_usage("nothing to do; give --out DIR, --validate, --verify or "
                           "--print-outputs");
    if (o->depfile && !o->out)
        return wrong_usage("--depfile needs --out: it says what the outputs depend on");
    if (o->depfile && o->spec && os_same_file(o->depfile, o->spec))
        return wrong_usage("--depfile would overwrite the spec");
    if (o->quiet && o->verbose)
        return wrong_usage("--quiet and --verbose exclude each other");
    return EXIT_DONE;
}

status options_parse(arena *a, int argc, char **argv, command_line *o)
{
    struct option long_options[TABLE_SIZE + 1] = { 0 };
    for (size_t i = 0; i < TABLE_SIZE; i++)
        long_options[i] = (struct option){ .name = option_table[i].name,
                                           .has_arg = option_table[i].has_argument,
                                           .val = option_table[i].id };
    opterr = 0;
    for (;;) {
        int id = getopt_long(argc, argv, ":s:o:j:qvh", long_options, NULL);
        if (id == -1)
            break;
        const char *last = argv[optind - 1];
        bool has_value = strncmp(last, "--", 2) == 0 && strchr(last, '=');
        if (id == ':')
            return wrong_usage("option '%s' needs an argument", last);
        if (id == '?' && optopt && has_value)
            return wrong_usage("option '%.*s' takes no argument", (int)strcspn(last, "="), last);
        if (id == '?')
            return unknown_option(a, optopt ? arena_format(a, "-%c", optopt) : last);
        status result = take_option(o, id, optarg);
        if (result != EXIT_DONE)
            return result;
    }
    if (optind < argc)
        return wrong_usage("unexpected argument '%s'", argv[optind]);
    return o->help || o->version ? EXIT_DONE : check_options(o);
}
