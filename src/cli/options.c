/* One table of options for getopt_long and --help. */
#include "cli/options.h"

#include <getopt.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/os.h"
#include "input/spec.h"
#include "input/values.h"

enum { MAX_JOBS = 256, LONG_COLUMN = 6, HELP_COLUMN = 30 };

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

/* Parses a number that ends at the character `end`. */
static bool parse_number(const char *text, char end, uint64_t least, uint64_t most, uint64_t *out)
{
    uint64_t number = 0;
    for (const char *c = text; *c != end; c++) {
        unsigned digit = (unsigned)(*c - '0');
        if (digit > 9 || number > (UINT64_MAX - digit) / 10)
            return false;
        number = number * 10 + digit;
    }
    *out = number;
    return *text != end && number >= least && number <= most;
}

static bool parse_positions(command_line *o, const char *text)
{
    int64_t *positions = &o->model.max_seq_len;
    return spec_parse_number(text, positions) && *positions >= 1 &&
           *positions <= PROBLEM_MOST_POSITIONS;
}

static bool parse_kv_type(command_line *o, const char *text)
{
    for (int64_t i = 0; i < KV_COUNT; i++)
        if (strcmp(formats[kv_formats[i]].name, text) == 0) {
            o->model.kv_type = i;
            return true;
        }
    return false;
}

/* Parses "build,print". */
static bool parse_stages(command_line *o, const char *list)
{
    for (const char *word = list;; word++) {
        size_t length = strcspn(word, ",");
        unsigned stage = generate_stage(word, length);
        o->run.dump |= stage;
        word += length;
        if (!stage || !*word)
            return stage;
    }
}

/* Parses "3/8". */
static bool parse_shard(command_line *o, const char *text)
{
    size_t slash = strcspn(text, "/");
    shard *part = &o->run.shard;
    return text[slash] && parse_number(text + slash + 1, '\0', 1, UINT32_MAX, &part->count) &&
           parse_number(text, '/', 1, part->count, &part->index);
}

static bool parse_embed(command_line *o, const char *how)
{
    o->run.overrides.embed = &o->run.embed;
    return embedding_find(how, &o->run.embed);
}

static bool parse_validate(command_line *o, const char *ptxas)
{
    (void)ptxas;
    return o->run.validate = true;
}

static bool parse_color(command_line *o, const char *when)
{
    (void)o;
    return strcmp(when, "auto") == 0 || strcmp(when, "always") == 0 || strcmp(when, "never") == 0;
}

/* An option: sets a field, then parse, if not NULL, checks or parses its argument. */
typedef struct option_row {
    char letter; /* short option; 0: none */
    const char *name;
    int has_argument;
    const char *argument, *help;
    enum { SETS_NOTHING, SETS_TEXT, SETS_FLAG, SETS_NUMBER } kind;
    size_t field;         /* offset in command_line */
    uint64_t least, most; /* range of a number */
    const char *absent;   /* value of a text whose optional argument is missing */
    const char *accepts;  /* values that parse accepts, for messages */
    bool (*parse)(command_line *o, const char *argument);
    bool may_repeat; /* other options with an argument may be given only once */
} option_row;

#define TEXT(member)   .kind = SETS_TEXT, .field = offsetof(command_line, member)
#define FLAG(member)   .kind = SETS_FLAG, .field = offsetof(command_line, member)
#define NUMBER(member) .kind = SETS_NUMBER, .field = offsetof(command_line, member)
static const option_row option_table[] = {
    { 's', "spec", required_argument, "FILE", "read the spec from FILE; - is standard input",
      TEXT(run.spec) },
    { 'o', "out", required_argument, "DIR", "write header, manifest and kernels into DIR",
      TEXT(run.out) },
    { 0, "target", required_argument, "LIST", "override the spec's targets, e.g. sm_80,sm_90",
      TEXT(run.overrides.targets) },
    { 0, "prefix", required_argument, "NAME", "override the spec's C prefix, e.g. llama",
      TEXT(run.overrides.prefix) },
    { 0, "embed", required_argument, "HOW", "PTX in the header: string, c23 (#embed) or incbin",
      .accepts = "string, c23 or incbin", .parse = parse_embed },
    { 0, "validate", optional_argument, "PTXAS", "assemble every kernel with ptxas",
      TEXT(run.ptxas), .parse = parse_validate },
    { 0, "verify", no_argument, NULL,
      "run every kernel on the CPU and compare with its reference;\n"
      "                              with --out, edited kernels are checked and kept",
      FLAG(run.verify) },
    { 0, "only", required_argument, "NAME", "check only the instance NAME, e.g. f32_gemv_k256_n1",
      TEXT(run.only) },
    { 0, "shard", required_argument, "I/N", "check part I of N of the instances, e.g. 1/8",
      .accepts = "I/N, from 1/8 to 8/8 for eight parts", .parse = parse_shard },
    { 0, "seed", required_argument, "N", "seed of the random inputs of --verify (default 1)",
      NUMBER(run.seed), .most = UINT64_MAX, .accepts = "a number of 64 bits", .may_repeat = true },
    { 0, "prune", no_argument, NULL, "delete stale files that ptxgen wrote into DIR",
      FLAG(run.prune) },
    { 0, "expect", required_argument, "FILE", "fail unless FILE is one of the outputs",
      TEXT(run.expect) },
    { 0, "depfile", required_argument, "FILE", "write a dependency file for Make and Ninja",
      TEXT(run.depfile) },
    { 0, "stamp", required_argument, "FILE",
      "touch FILE after all outputs; FILE is the depfile's target", TEXT(run.stamp) },
    { 0, "emit-ninja", required_argument, "FILE", "write a Ninja build with an edge for each check",
      TEXT(run.emit_ninja) },
    { 0, "report", required_argument, "FILE", "write an HTML report on all kernels",
      TEXT(run.report) },
    { 0, "print-outputs", no_argument, NULL, "print the paths that --out would write, and exit",
      FLAG(run.print_outputs) },
    { 0, "plan", no_argument, NULL,
      "print the launches of the decoder's steps and their\n"
      "                              predicted times, and exit",
      FLAG(run.plan) },
    { 0, "dump", required_argument, "STAGES",
      "print the kernels after the stages build, fold, print, and exit",
      .accepts = "a list of build, fold and print", .parse = parse_stages, .may_repeat = true },
    { 0, "list", no_argument, NULL, "list the kernel families; with -v: predicted times",
      FLAG(list) },
    { 0, "help-family", required_argument, "NAME", "show a family's keys, parameters and launch",
      TEXT(help_family) },
    { 0, "explain", optional_argument, "CODE",
      "explain a message's code, e.g. E014; without CODE: list all", TEXT(explain), .absent = "" },
    { 0, "init", optional_argument, "FILE",
      "write a starter spec (default kernels.ini); --init engine\n"
      "                              writes a C program that generates text from a model,\n"
      "                              --init server one that serves it to several clients",
      TEXT(init), .absent = "kernels.ini" },
    { 0, "from-gguf", required_argument, "FILE", "print a spec with the [decoder] of a GGUF model",
      TEXT(from_gguf) },
    { 0, "max-seq-len", required_argument, "N", "KV-cache length in tokens, e.g. 8192, 8k or 1M",
      .accepts = "a number from 1 to 16M, such as 8192, 8k or 1M", .parse = parse_positions },
    { 0, "kv-type", required_argument, "TYPE", "KV-cache element type: f32, f16, bf16 or q8_0",
      .accepts = "f32, f16, bf16 or q8_0", .parse = parse_kv_type },
    { 0, "man", optional_argument, "PAGE",
      "show a manual page: ptxgen, spec, formats, header,\n                              libcuda",
      TEXT(man), .absent = "ptxgen" },
    { 'j', "jobs", required_argument, "N", "threads for the checks (default: all CPUs)",
      NUMBER(run.jobs), .least = 1, .most = MAX_JOBS, .accepts = "a number from 1 to 256",
      .may_repeat = true },
    { 'q', "quiet", no_argument, NULL, "print errors only", FLAG(run.quiet) },
    { 'v', "verbose", no_argument, NULL, "print a line for every kernel", FLAG(run.verbose) },
    { 0, "color", required_argument, "WHEN", "color messages: auto, always or never", TEXT(color),
      .accepts = "auto, always or never", .parse = parse_color, .may_repeat = true },
    { 0, "version", no_argument, NULL, "print the version", FLAG(version) },
    { 'h', "help", no_argument, NULL, "print this help", FLAG(help) },
};

enum { TABLE_SIZE = sizeof option_table / sizeof *option_table };
_Static_assert(PROBLEM_MOST_POSITIONS == 16 << 20 && MAX_JOBS == 256, "as the table says");

void options_help(strbuf *out)
{
    strbuf_put(out,
               "Generates PTX kernels for LLM inference, and a C header to launch them.\n\n"
               "Usage: ptxgen --spec FILE --out DIR [OPTION]...\n"
               "       ptxgen --spec FILE [--validate] [--verify] [--print-outputs]\n"
               "       ptxgen --list | --help-family NAME | --explain[=CODE] | --init[=FILE] |\n"
               "              --man[=PAGE]\n"
               "       ptxgen --from-gguf FILE [--target LIST] [--prefix NAME]\n"
               "       ptxgen --init engine|server [--out DIR] [--from-gguf FILE [--target LIST]]\n"
               "       ptxgen run PROGRAM [ARGUMENT]...   on the emulated CUDA driver\n\n");
    for (size_t i = 0; i < TABLE_SIZE; i++) {
        const option_row *row = &option_table[i];
        size_t line = out->length;
        if (row->letter)
            strbuf_format(out, "  -%c, ", row->letter);
        strbuf_pad(out, line, LONG_COLUMN);
        strbuf_format(out, "--%s", row->name);
        if (row->argument)
            strbuf_format(out, row->has_argument == optional_argument ? "[=%s]" : " %s",
                          row->argument);
        strbuf_pad(out, line, HELP_COLUMN);
        strbuf_format(out, "%s\n", row->help);
    }
    strbuf_put(out, "\nExit status: 0 success; 1 the spec is wrong or a kernel failed a check; "
                    "2 wrong usage;\n3 a file could not be read or written.\n");
}

static bool option_named(const char *word)
{
    for (size_t i = 0; i < TABLE_SIZE; i++)
        if (strcmp(option_table[i].name, word) == 0)
            return true;
    return false;
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

/* Rejects options that need --out without it, and combinations that --emit-ninja excludes. */
static status check_files(const command_line *o)
{
    const struct {
        const char *option, *path;
        const char *use_of_out;
    } files[] = {
        { "--emit-ninja", o->run.emit_ninja, "it checks the files there" },
        { "--depfile", o->run.depfile, "it lists what the outputs depend on" },
        { "--stamp", o->run.stamp, "it records when the outputs were written" },
        { "--expect", o->run.expect, "it names one of the outputs" },
        { "--prune", o->run.prune ? "" : NULL, "it deletes files there" },
    };
    for (size_t i = 0; i < sizeof files / sizeof *files; i++)
        if (files[i].path && !o->run.out)
            return wrong_usage("%s needs --out: %s", files[i].option, files[i].use_of_out);
    if (o->run.emit_ninja && os_is_stream(o->run.spec))
        return wrong_usage("--emit-ninja needs a spec file: its build reads the spec again");
    if (o->run.emit_ninja && o->run.stamp)
        return wrong_usage("--emit-ninja and --stamp exclude each other: the Ninja build needs no "
                           "stamp");
    return EXIT_DONE;
}

/* Rejects options that exclude each other or need another one, and a command without a task. */
static status check_options(const command_line *o)
{
    bool starts =
        o->init && (strcmp(o->init, STARTER_ENGINE) == 0 || strcmp(o->init, STARTER_SERVER) == 0);
    int modes = (o->run.spec != NULL) + o->list + (o->help_family != NULL) + (o->explain != NULL) +
                (o->init != NULL) + (o->man != NULL) + (o->from_gguf != NULL && !starts);
    if (modes == 0)
        return wrong_usage("no spec; give --spec FILE, or --init to start with an example");
    if (modes > 1)
        return wrong_usage(
            "--spec, --list, --help-family, --explain, --init, --from-gguf and --man exclude each "
            "other, except --init engine and --init server with --from-gguf");
    if (!o->from_gguf && (o->model.max_seq_len || o->model.kv_type >= 0))
        return wrong_usage("--max-seq-len and --kv-type need --from-gguf; in a spec, set "
                           "max_seq_len and kv_type");
    if (starts && (o->run.overrides.prefix || (o->run.overrides.targets && !o->from_gguf)))
        return wrong_usage("--init %s excludes --prefix, which %s.c fixes, and needs --from-gguf "
                           "for --target",
                           o->init, o->init);
    if (starts && strcmp(o->init, STARTER_SERVER) == 0 && !o->from_gguf)
        return wrong_usage("--init server needs --from-gguf FILE, whose spec it writes");
    if (o->from_gguf && o->run.out && !starts)
        return wrong_usage("--from-gguf prints a spec and excludes --out; write the kernels with "
                           "--spec and --out");
    if (o->run.spec && !o->run.out && !o->run.validate && !o->run.verify && !o->run.print_outputs &&
        !o->run.plan && !o->run.dump && !o->run.report && !o->run.emit_ninja)
        return wrong_usage("nothing to do; give --out DIR, --validate, --verify or "
                           "--print-outputs");
    if (o->run.dump &&
        (o->run.out || o->run.validate || o->run.verify || o->run.print_outputs || o->run.report))
        return wrong_usage("--dump only prints kernels; it excludes --out, --validate, --verify, "
                           "--print-outputs and --report");
    if (o->run.plan && (o->run.out || o->run.validate || o->run.verify || o->run.print_outputs ||
                        o->run.dump || o->run.report))
        return wrong_usage("--plan only prints the decoder's steps; it excludes --out, --validate, "
                           "--verify, --print-outputs, --dump and --report");
    if ((o->run.shard.count || o->run.only) &&
        (o->run.out || o->run.report || o->run.print_outputs))
        return wrong_usage("--shard and --only select instances for --validate and --verify; they "
                           "exclude --out, --report and --print-outputs");
    if (o->run.shard.count && o->run.only)
        return wrong_usage("--shard and --only exclude each other");
    if (o->run.quiet && o->run.verbose)
        return wrong_usage("--quiet and --verbose exclude each other");
    return check_files(o);
}

/* getopt_long's ids of long options without a letter are FIRST_NUMBER + their index. */
enum { FIRST_NUMBER = 256 };

status options_parse(arena *a, int argc, char **argv, command_line *o)
{
    struct option long_options[TABLE_SIZE + 2] = { 0 };
    for (int i = 0; i < TABLE_SIZE; i++) {
        const option_row *row = &option_table[i];
        long_options[i] = (struct option){ row->name, row->has_argument, NULL,
                                           row->letter ? row->letter : FIRST_NUMBER + i };
        if (strcmp(row->name, "target") == 0) { /* alias, the name of the key */
            long_options[TABLE_SIZE] = long_options[i];
            long_options[TABLE_SIZE].name = "targets";
        }
    }
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
            return wrong_usage("option '%.*s' has no argument", (int)strcspn(last, "="), last);
        if (id == '?')
            return unknown_option(a, optopt ? arena_format(a, "-%c", optopt) : last);
        const option_row *row = option_table + (id >= FIRST_NUMBER ? id - FIRST_NUMBER : 0);
        while (id < FIRST_NUMBER && row->letter != id)
            row++;
        /* getopt_long accepts optional arguments only after '='; "-" is a file name */
        if (!optarg && row->has_argument && optind < argc &&
            (argv[optind][0] != '-' || !argv[optind][1]))
            optarg = argv[optind++];
        if (row->has_argument && seen[row - option_table] && !row->may_repeat)
            return wrong_usage(id == 's' ? "--%s is given twice; one spec can include others"
                                         : "--%s is given twice",
                               row->name);
        seen[row - option_table] = true;
        if (optarg && !*optarg && strcmp(row->argument, "FILE") == 0)
            return wrong_usage("--%s needs a file name", row->name);
        if (id == 'o' && (!*optarg || strcmp(optarg, "-") == 0))
            return wrong_usage("--out needs a folder, e.g. build or .");
        void *field = (char *)o + row->field;
        if (row->kind == SETS_TEXT)
            *(const char **)field = optarg ? optarg : row->absent;
        else if (row->kind == SETS_FLAG)
            *(bool *)field = true;
        if ((row->kind == SETS_NUMBER &&
             !parse_number(optarg, '\0', row->least, row->most, field)) ||
            (row->parse && !row->parse(o, optarg)))
            return wrong_usage("--%s accepts %s, not '%s'", row->name, row->accepts, optarg);
    }
    if (optind < argc)
        return wrong_usage(option_named(argv[optind])
                               ? "unexpected argument '%s'; did you mean '--%s'?"
                               : "unexpected argument '%s'; name a spec with --spec FILE",
                           argv[optind], argv[optind]);
    o->run.program = argv[0];
    o->run.arguments = (const char *const *)argv + 1;
    o->run.argument_count = (size_t)argc - 1;
    if (o->run.emit_ninja && !o->run.depfile)
        o->run.depfile = arena_format(a, "%s.d", o->run.emit_ninja);
    return o->help || o->version ? EXIT_DONE : check_options(o);
}
