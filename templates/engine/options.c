#define _POSIX_C_SOURCE 200809L
#include "options.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tokenizer.h"

static const struct {
    const char *name;
    double usual, most;
    bool is_whole;
    const char *help;
} OPTION_INFO[OPTIONS] = {
    [TOKENS] = { "-n", 256, 4294967295.0, true, "maximum tokens to print; 0: up to max_seq_len" },
    [TEMPERATURE] = { "--temp", 0, 1e6, false, "temperature; 0: always the likeliest token" },
    [TOP_K] = { "--top-k", 40, 4294967295.0, true, "sample from the k likeliest tokens; 0: all" },
    [TOP_P] = { "--top-p", 0.95, 1, false,
                "sample from the likeliest tokens with this total probability" },
    [MIN_P] = { "--min-p", 0.05, 1, false,
                "minimum probability, relative to the likeliest token's" },
    [SEED] = { "--seed", 0, 9007199254740992.0, true,
               "random seed; the same seed gives the same text" },
    [ANY_MODEL] = { "--any-model", 0, 1, true, "1: accept a model that differs from the header's" },
    [NO_OVERLAP] = { "--no-overlap", 0, 1, true, "1: launches do not overlap" },
    [PAGES] = { "--pages", 0, 4294967295.0, true, "pages of the KV cache; 0: for all sequences" },
    [QUEUE] = { "--queue", 256, 1e6, true, "requests that may wait; more are refused" },
};

/* Returns the bytes of the character at the start of a text, or 0 if it is invalid UTF-8 or a
 * control character: below U+0020, or U+007F to U+009F. */
static size_t printable_bytes(const char *text, size_t length)
{
    const uint8_t *bytes = (const uint8_t *)text;
    size_t count = bytes[0] < 0x80 ? 1 : bytes[0] >> 5 == 6 ? 2 : bytes[0] >> 4 == 14 ? 3 : 4;
    if (count == 1)
        return bytes[0] >= ' ' && bytes[0] < 0x7F;
    if (count > length || bytes[0] < 0xC2 || bytes[0] > 0xF4 ||
        (bytes[0] == 0xC2 && bytes[1] < 0xA0))
        return 0;
    for (size_t i = 1; i < count; i++)
        if (bytes[i] >> 6 != 2)
            return 0;
    return count;
}

/* Writes text with '?' for each byte that is not printable and not in also. */
static void write_printable(FILE *file, const char *text, size_t length, const char *also)
{
    for (size_t at = 0, bytes; at < length; at += bytes ? bytes : 1) {
        bytes = printable_bytes(text + at, length - at);
        if (bytes || (text[at] && strchr(also, text[at])))
            fwrite(text + at, 1, bytes ? bytes : 1, file);
        else
            fputc('?', file);
    }
}

bool fail(const char *format, ...)
{
    char message[2048];
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    fprintf(stderr, "%s: ", PROGRAM.name);
    if (length > 0)
        write_printable(stderr, message, strlen(message), "");
    fputs(length >= (int)sizeof message ? "...\n" : "\n", stderr);
    return false;
}

void print_text(const char *text, size_t length)
{
    if (isatty(STDOUT_FILENO))
        write_printable(stdout, text, length, "\n\t");
    else
        fwrite(text, 1, length, stdout);
}

bool print_piece(text_output *o, const char *bytes, size_t length)
{
    char *waiting = realloc(o->waiting, o->count + length + 1);
    if (!waiting)
        return fail("out of memory for %lu bytes of text", (unsigned long)length);
    o->waiting = waiting;
    memcpy(waiting + o->count, bytes, length);
    o->count += length;
    size_t whole = tokenizer_whole_bytes(waiting, o->count);
    print_text(waiting, whole);
    fflush(stdout);
    o->count -= whole;
    memmove(waiting, waiting + whole, o->count);
    return true;
}

bool print_end(const text_output *o)
{
    print_text(o->waiting, o->count);
    putchar('\n');
    return (fflush(stdout) == 0 && !ferror(stdout)) || fail("cannot write the text");
}

/* Returns the number of options that the program has. */
static int option_count(void)
{
    return PROGRAM.is_server ? OPTIONS : PAGES;
}

static void print_usage(FILE *file)
{
    fprintf(file, "usage: %s %s", PROGRAM.name, PROGRAM.usage);
    for (int i = 0; i < option_count(); i++)
        fprintf(file, "  %-14s %s (%g)\n", OPTION_INFO[i].name, OPTION_INFO[i].help,
                OPTION_INFO[i].usual);
    fputs("  -h, --help     print this help\n", file);
}

bool option_accepts(int option, double value, char *range, size_t size)
{
    snprintf(range, size, "a %s from 0 to %.0f",
             OPTION_INFO[option].is_whole ? "whole number" : "number", OPTION_INFO[option].most);
    return value >= 0 && value <= OPTION_INFO[option].most &&
           (!OPTION_INFO[option].is_whole || (double)(uint64_t)value >= value);
}

static bool read_value(int option, const char *text, double *value)
{
    const char *name = OPTION_INFO[option].name;
    char *end, range[64];
    if (!text)
        return fail("%s needs a value; see %s --help", name, PROGRAM.name);
    *value = strtod(text, &end);
    bool right = option_accepts(option, *value, range, sizeof range) && end != text && !*end;
    return right || fail("%s %s is not %s", name, text, range);
}

static int find_option(const char *name)
{
    int option = 0;
    while (option < option_count() && strcmp(OPTION_INFO[option].name, name) != 0)
        option++;
    return option < option_count() ? option : OPTIONS;
}

int command_read(command *c, int argc, char **argv)
{
    bool ended = false; /* "--" was read */
    for (int i = 0; i < OPTIONS; i++)
        c->options[i] = i < option_count() ? OPTION_INFO[i].usual : 0;
    for (int i = 1; i < argc; i++) {
        const char *argument = argv[i];
        int option = ended ? OPTIONS : find_option(argument);
        if (!ended && (strcmp(argument, "-h") == 0 || strcmp(argument, "--help") == 0)) {
            print_usage(stdout);
            return fflush(stdout) == 0 ? 0 : 1;
        }
        if (option < OPTIONS) {
            if (!read_value(option, argv[++i], &c->options[option]))
                return 2;
        } else if (PROGRAM.is_server && !ended && strcmp(argument, "--socket") == 0 &&
                   argv[i + 1]) {
            c->socket = argv[++i];
        } else if (!ended && strcmp(argument, "--") == 0) {
            ended = true;
        } else if (!ended && argument[0] == '-' && argument[1]) {
            fail("unknown option %s; see %s --help%s", argument, PROGRAM.name,
                 PROGRAM.is_server ? "" : ". Put -- before a prompt that starts with '-'");
            return 2;
        } else if (!c->path) {
            c->path = argument;
        } else if (!c->text && !PROGRAM.is_server) {
            c->text = argument;
        } else {
            fail("unexpected argument %s%s", argument,
                 PROGRAM.is_server ? "" : ": put the prompt in quotes");
            return 2;
        }
    }
    if (PROGRAM.is_server ? c->path : c->text)
        return GO_ON;
    print_usage(stderr);
    return 2;
}
