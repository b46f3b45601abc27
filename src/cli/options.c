/* One table of options serves getopt_long and --help. */
#include "cli/options.h"

#include <getopt.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/os.h"
#include "input/spec.h"
#include "input/values.h"

enum { MAX_JOBS = 256, LONG_COLUMN = 6, HELP_COLUMN = 30 };

/* Options without a letter. */
enum {
    OPTION_TARGET = 256,
    OPTION_PREFIX,
    OPTION_EMBED,
    OPTION_VALIDATE,
    OPTION_VERIFY,
    OPTION_ONLY,
    OPTION_SHARD,
    OPTION_SEED,
    OPTION_PRUNE,
    OPTION_EXPECT,
    OPTION_DEPFILE,
    OPTION_STAMP,
    OPTION_EMIT_NINJA,
    OPTION_REPORT,
    OPTION_PRINT_OUTPUTS,
    OPTION_PLAN,
    OPTION_DUMP,
    OPTION_LIST,
    OPTION_HELP_FAMILY,
    OPTION_EXPLAIN,
    OPTION_INIT,
    OPTION_FROM_GGUF,
    OPTION_MAX_SEQ_LEN,
    OPTION_KV_TYPE,
    OPTION_MAN,
    OPTION_COLOR,
    OPTION_VERSION
};

/* What getopt_long takes and --help shows. */
typedef struct option_row {
    int id; /* a character: also a short option */
    const char *name;
    int has_argument;
    const char *argument, *help;
} option_row;

static const option_row option_table[] = {
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
    { OPTION_ONLY, "only", required_argument, "NAME", "check this instance alone" },
    { OPTION_SHARD, "shard", required_argument, "I/N", "check part I of N parts of the instances" },
    { OPTION_SEED, "seed", required_argument, "N", "random inputs of --verify (default 1)" },
    { OPTION_PRUNE, "prune", no_argument, NULL,
      "remove from DIR what ptxgen wrote and no longer does" },
    { OPTION_EXPECT, "expect", required_argument, "FILE",
      "fail unless FILE is among what --out writes" },
    { OPTION_DEPFILE, "depfile", required_argument, "FILE",
      "write a Makefile rule for Make and Ninja" },
    { OPTION_STAMP, "stamp", required_argument, "FILE",
      "make FILE new when all is written; the depfile names it" },
    { OPTION_EMIT_NINJA, "emit-ninja", required_argument, "FILE",
      "write the checks as a Ninja build, an edge each" },
    { OPTION_REPORT, "report", required_argument, "FILE",
      "write a page about all kernels: FILE.html" },
    { OPTION_PRINT_OUTPUTS, "print-outputs", no_argument, NULL,
      "print what --out would write, write nothing" },
    { OPTION_PLAN, "plan", no_argument, NULL,
      "print the launches of the decoder's steps and their\n"
      "                              predicted times, write nothing" },
    { OPTION_DUMP, "dump", required_argument, "STAGES",
      "print kernels after build, fold or print, write nothing" },
    { OPTION_LIST, "list", no_argument, NULL,
      "list the kernel families by purpose; -v: predicted times" },
    { OPTION_HELP_FAMILY, "help-family", required_argument, "NAME",
      "show a family's keys, parameters and launch" },
    { OPTION_EXPLAIN, "explain", optional_argument, "CODE",
      "explain a message's code, E014; without: list all" },
    { OPTION_INIT, "init", optional_argument, "FILE",
      "write a starter spec (default kernels.ini), or with\n"
      "                              FILE = engine a program that prints text from a model" },
    { OPTION_FROM_GGUF, "from-gguf", required_argument, "FILE",
      "print the spec of a model's step, with its [decoder]" },
    { OPTION_MAX_SEQ_LEN, "max-seq-len", required_argument, "N",
      "KV-cache length in tokens, such as 8192, 8k or 1M" },
    { OPTION_KV_TYPE, "kv-type", required_argument, "TYPE",
      "elements of its caches: f32, f16, bf16 or q8_0" },
    { OPTION_MAN, "man", optional_argument, "PAGE",
      "show a manual page: ptxgen, spec, header, libcuda" },
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

status options_status(const diags *d)
{
    status worst = EXIT_DONE;
    for (size_t i = 0; i < d->list.count; i++) {
        const diagnostic *found = &d->list.items[i];
        if (found->severity != SEVERITY_ERROR)
            continue;
        if (found->code == DIAG_UNREADABLE || found->code == DIAG_UNWRITABLE)
            return EXIT_FILE;
        bool from_command_line = found->code == DIAG_SAME_PATH || found->code == DIAG_BAD_NAME ||
                                 (!found->where.file && (found->code == DIAG_BAD_PREFIX ||
                                                         found->code == DIAG_BAD_TARGET));
        if (from_command_line || worst == EXIT_DONE)
            worst = from_command_line ? EXIT_USAGE : EXIT_SPEC;
    }
    return worst;
}

void options_help(strbuf *out)
{
    strbuf_put(out,
               "Generates PTX kernels for LLM inference, and a C header to launch them.\n\n"
               "Usage: ptxgen --spec FILE --out DIR [OPTION]...\n"
               "       ptxgen --spec FILE [--validate] [--verify] [--print-outputs]\n"
               "       ptxgen --list | --help-family NAME | --explain[=CODE] | --init[=FILE] |\n"
               "              --man[=PAGE]\n"
               "       ptxgen --from-gguf FILE [--target LIST] [--prefix NAME]\n"
               "       ptxgen --init engine [--out DIR] [--from-gguf FILE [--target LIST]]\n"
               "       ptxgen run PROGRAM [ARGUMENT]...   on the emulated CUDA driver\n\n");
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

static status take_positions(command_line *o, const char *text)
{
    int64_t *positions = &o->model.max_seq_len;
    if (spec_parse_number(text, positions) && *positions >= 1 &&
        *positions <= PROBLEM_MOST_POSITIONS)
        return EXIT_DONE;
    return wrong_usage("--max-seq-len takes a number from 1 to %dM, such as 8192, 8k or 1M, not "
                       "'%s'",
                       PROBLEM_MOST_POSITIONS >> 20, text);
}

static status take_kv_type(command_line *o, const char *text)
{
    for (int64_t i = 0; i < KV_COUNT; i++)
        if (strcmp(formats[kv_formats[i]].name, text) == 0) {
            o->model.kv_type = i;
            return EXIT_DONE;
        }
    return wrong_usage("--kv-type takes f32, f16, bf16 or q8_0, not '%s'", text);
}

/* "build,print" */
static status take_stages(command_line *o, const char *list)
{
    for (const char *word = list;; word++) {
        size_t length = strcspn(word, ",");
        unsigned stage = generate_stage(word, length);
        if (!stage)
            return wrong_usage("--dump takes a list of build, fold and print, not '%s'", list);
        o->run.dump |= stage;
        word += length;
        if (!*word)
            return EXIT_DONE;
    }
}

/* "3/8" */
static status take_shard(arena *a, command_line *o, const char *text)
{
    size_t slash = strcspn(text, "/");
    shard *part = &o->run.shard;
    if (text[slash] && parse_number(text + slash + 1, 1, UINT32_MAX, &part->count) &&
        parse_number(arena_copy(a, text, slash), 1, part->count, &part->index))
        return EXIT_DONE;
    return wrong_usage("--shard takes I/N, from 1/8 to 8/8 for eight parts, not '%s'", text);
}

static status take_option(arena *a, command_line *o, int id, const char *argument)
{
    switch (id) {
    case 's':
        o->run.spec = argument;
        break;
    case 'o':
        o->run.out = argument;
        if (!*argument || strcmp(argument, "-") == 0)
            return wrong_usage("--out needs a folder; . is the present one");
        break;
    case OPTION_TARGET:
        o->run.overrides.targets = argument;
        break;
    case OPTION_PREFIX:
        o->run.overrides.prefix = argument;
        break;
    case OPTION_EMBED:
        if (!embedding_find(argument, &o->run.embed))
            return wrong_usage("--embed takes string, c23 or incbin, not '%s'", argument);
        o->run.overrides.embed = &o->run.embed;
        break;
    case OPTION_VALIDATE:
        o->run.validate = true;
        o->run.ptxas = argument;
        break;
    case OPTION_VERIFY:
        o->run.verify = true;
        break;
    case OPTION_ONLY:
        o->run.only = argument;
        break;
    case OPTION_SHARD:
        return take_shard(a, o, argument);
    case OPTION_SEED:
        if (!parse_number(argument, 0, UINT64_MAX, &o->run.seed))
            return wrong_usage("--seed takes a number of 64 bits, not '%s'", argument);
        break;
    case OPTION_PRUNE:
        o->run.prune = true;
        break;
    case OPTION_EXPECT:
        o->run.expect = argument;
        break;
    case OPTION_DEPFILE:
        o->run.depfile = argument;
        break;
    case OPTION_STAMP:
        o->run.stamp = argument;
        break;
    case OPTION_EMIT_NINJA:
        o->run.emit_ninja = argument;
        break;
    case OPTION_REPORT:
        o->run.report = argument;
        break;
    case OPTION_PRINT_OUTPUTS:
        o->run.print_outputs = true;
        break;
    case OPTION_PLAN:
        o->run.plan = true;
        break;
    case OPTION_DUMP:
        return take_stages(o, argument);
    case OPTION_LIST:
        o->list = true;
        break;
    case OPTION_HELP_FAMILY:
        o->help_family = argument;
        break;
    case OPTION_EXPLAIN:
        o->explain = argument ? argument : "";
        break;
    case OPTION_INIT:
        o->init = argument ? argument : "kernels.ini";
        break;
    case OPTION_FROM_GGUF:
        o->from_gguf = argument;
        break;
    case OPTION_MAX_SEQ_LEN:
        return take_positions(o, argument);
    case OPTION_KV_TYPE:
        return take_kv_type(o, argument);
    case OPTION_MAN:
        o->man = argument ? argument : "ptxgen";
        break;
    case 'j':
        if (!parse_number(argument, 1, MAX_JOBS, &o->run.jobs))
            return wrong_usage("--jobs takes a number from 1 to %d, not '%s'", MAX_JOBS, argument);
        break;
    case 'q':
        o->run.quiet = true;
        break;
    case 'v':
        o->run.verbose = true;
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

/* Whether a word without its dashes is a long option. */
static bool option_named(const char *word)
{
    for (size_t i = 0; i < TABLE_SIZE; i++)
        if (strcmp(option_table[i].name, word) == 0)
            return true;
    return false;
}

static status unexpected_argument(const char *text)
{
    return option_named(text)
               ? wrong_usage("unexpected argument '%s'; did you mean '--%s'?", text, text)
               : wrong_usage("unexpected argument '%s'; a spec is named with --spec", text);
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

/* What goes with --out alone. */
static status check_files(const command_line *o)
{
    const struct {
        const char *option, *path;
        const char *use_of_out;
    } files[] = {
        { "--emit-ninja", o->run.emit_ninja, "it checks the files there" },
        { "--depfile", o->run.depfile, "it says what the outputs depend on" },
        { "--stamp", o->run.stamp, "it says when the outputs were made" },
        { "--expect", o->run.expect, "it says which file is made there" },
        { "--prune", o->run.prune ? "" : NULL, "it removes files there" },
    };
    for (size_t i = 0; i < sizeof files / sizeof *files; i++)
        if (files[i].path && !o->run.out)
            return wrong_usage("%s needs --out: %s", files[i].option, files[i].use_of_out);
    if (o->run.emit_ninja && os_is_stream(o->run.spec))
        return wrong_usage("--emit-ninja reads the spec again, which standard input can't give");
    if (o->run.emit_ninja && o->run.stamp)
        return wrong_usage("--emit-ninja and --stamp exclude each other: Ninja needs no stamp of "
                           "what it generates");
    return EXIT_DONE;
}

/* Options that make no sense together, or nothing to do. */
static status check_options(const command_line *o)
{

    bool starts_engine = o->init && strcmp(o->init, STARTER_ENGINE) == 0;
    int modes = (o->run.spec != NULL) + o->list + (o->help_family != NULL) + (o->explain != NULL) +
                (o->init != NULL) + (o->man != NULL) + (o->from_gguf != NULL && !starts_engine);
    if (modes == 0)
        return wrong_usage("no spec; give --spec FILE, or --init to start with an example");
    if (modes > 1)
        return wrong_usage(
            "--spec, --list, --help-family, --explain, --init, --from-gguf and --man exclude each "
            "other, but for --init engine --from-gguf");
    if (!o->from_gguf && (o->model.max_seq_len || o->model.kv_type >= 0))
        return wrong_usage("--max-seq-len and --kv-type go with --from-gguf; a spec says them "
                           "itself");
    if (starts_engine && (o->run.overrides.prefix || (o->run.overrides.targets && !o->from_gguf)))
        return wrong_usage("--init engine goes without --prefix, which engine.c has, and with "
                           "--target only where --from-gguf is");
    if (o->from_gguf && o->run.out && !starts_engine)
        return wrong_usage("--from-gguf prints a spec; --out is for what --spec makes of it");
    if (o->run.spec && !o->run.out && !o->run.validate && !o->run.verify && !o->run.print_outputs &&
        !o->run.plan && !o->run.dump && !o->run.report && !o->run.emit_ninja)
        return wrong_usage("nothing to do; give --out DIR, --validate, --verify or "
                           "--print-outputs");
    if (o->run.dump &&
        (o->run.out || o->run.validate || o->run.verify || o->run.print_outputs || o->run.report))
        return wrong_usage("--dump prints kernels and does nothing else: it goes without --out, "
                           "--validate, --verify, --print-outputs and --report");
    if (o->run.plan && (o->run.out || o->run.validate || o->run.verify || o->run.print_outputs ||
                        o->run.dump || o->run.report))
        return wrong_usage("--plan prints the decoder's steps and does nothing else: it goes "
                           "without --out, --validate, --verify, --print-outputs, --dump and "
                           "--report");
    if ((o->run.shard.count || o->run.only) &&
        (o->run.out || o->run.report || o->run.print_outputs))
        return wrong_usage("--shard and --only take part of the instances, for --validate and "
                           "--verify; --out, --report and --print-outputs are about all");
    if (o->run.shard.count && o->run.only)
        return wrong_usage("--shard and --only exclude each other");
    if (o->run.quiet && o->run.verbose)
        return wrong_usage("--quiet and --verbose exclude each other");
    return check_files(o);
}

static const option_row *row_of(int id)
{
    const option_row *row = option_table;
    while (row->id != id)
        row++;
    return row;
}

/* An option with an argument stands once: only one of two could count. But for those that gather,
 * or that a user appends to change what an alias says. */
static bool may_repeat(int id)
{
    return id == OPTION_DUMP || id == OPTION_COLOR || id == OPTION_SEED || id == 'j';
}

/* Whether an argument may be the optional one of the option in front of it: getopt_long sees it
 * only behind '='. */
static bool is_word(const char *argument)
{
    return argument[0] != '-' || !argument[1]; /* "-" is a file */
}

status options_parse(arena *a, int argc, char **argv, command_line *o)
{
    struct option long_options[TABLE_SIZE + 2] = { 0 };
    for (size_t i = 0; i < TABLE_SIZE; i++)
        long_options[i] = (struct option){ .name = option_table[i].name,
                                           .has_arg = option_table[i].has_argument,
                                           .val = option_table[i].id };
    /* As the key is called. */
    long_options[TABLE_SIZE] = (struct option){ "targets", required_argument, NULL, OPTION_TARGET };
    for (int i = 1; i < argc; i++)
        if (argv[i][0] == '-' && option_named(argv[i] + 1))
            return unknown_option(a, argv[i]);
    bool seen[TABLE_SIZE] = { false };
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
        if (!optarg && row_of(id)->has_argument && optind < argc && is_word(argv[optind]))
            optarg = argv[optind++];
        const option_row *row = row_of(id);
        if (row->has_argument && seen[row - option_table] && !may_repeat(id))
            return wrong_usage(id == 's' ? "--%s stands twice; one spec can include others"
                                         : "--%s stands twice",
                               row->name);
        seen[row - option_table] = true;
        if (optarg && !*optarg && strcmp(row_of(id)->argument, "FILE") == 0)
            return wrong_usage("--%s needs the name of a file", row_of(id)->name);
        status result = take_option(a, o, id, optarg);
        if (result != EXIT_DONE)
            return result;
    }
    if (optind < argc)
        return unexpected_argument(argv[optind]);
    o->run.program = argv[0];
    o->run.arguments = (const char *const *)argv + 1;
    o->run.argument_count = (size_t)argc - 1;
    if (o->run.emit_ninja && !o->run.depfile)
        o->run.depfile = arena_format(a, "%s.d", o->run.emit_ninja);
    return o->help || o->version ? EXIT_DONE : check_options(o);
}
