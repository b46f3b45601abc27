/* Converts costs.tsv to the table of cost.h at build time. Its head describes the format.
 *
 *     embed_costs COSTS.tsv OUT.c
 */
#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_LINE = 1024, MAX_TARGETS = 16, KEY_COLUMNS = 5 };

typedef struct table_line {
    const char *path;
    int number;
    char *columns[KEY_COLUMNS + MAX_TARGETS]; /* family, format, m, checksum, all; then targets */
    int count;
} table_line;

_Noreturn static void fail(const table_line *line, const char *what)
{
    fprintf(stderr, "%s:%d: error: %s\n", line->path, line->number, what);
    exit(1);
}

/* Reads the next line that is not a comment. Returns false at the end of the file. */
static bool read_line(FILE *in, char text[MAX_LINE], table_line *line)
{
    do {
        line->number++;
        if (!fgets(text, MAX_LINE, in))
            return false;
        if (!strchr(text, '\n'))
            fail(line, "the line is too long");
    } while (*text == '#');
    line->count = 0;
    for (char *word = strtok(text, "\t\n"); word; word = strtok(NULL, "\t\n")) {
        if (line->count == KEY_COLUMNS + MAX_TARGETS)
            fail(line, "too many columns");
        line->columns[line->count++] = word;
    }
    return true;
}

/* Writes "r44 i2" as ".registers = 44, .instructions = 2, ". */
static void write_figures(FILE *out, const table_line *line, const char *cell)
{
    static const char *const fields[] = {
        ['r'] = "registers",  ['s'] = "shared",       ['i'] = "instructions", ['b'] = "beside",
        ['g'] = "load_bytes", ['u'] = "unit_bytes",   ['t'] = "turn",         ['w'] = "in_flight",
        ['p'] = "products",   ['h'] = "shared_bytes", ['x'] = "x_bytes",      ['l'] = "l1_clocks",
    };
    for (const char *at = cell; *at;) {
        size_t field = (unsigned char)*at++, digits = strspn(at, "-0123456789.");
        if (field >= sizeof fields / sizeof *fields || !fields[field] || !digits)
            fail(line, "a figure must be a letter of the head's list and a number");
        fprintf(out, ".%s = %.*s, ", fields[field], (int)digits, at);
        at += digits + (at[digits] == ' ');
    }
}

static void write_row(FILE *out, const table_line *head, const table_line *line)
{
    if (line->count != head->count)
        fail(line, "the numbers of columns of row and heading differ");
    fprintf(out, "    { \"%s\", FORMAT_", line->columns[0]);
    for (const char *c = line->columns[1]; *c; c++)
        fputc(toupper((unsigned char)*c), out);
    fprintf(out, ", %s, (const cost_figures[]){\n", line->columns[2]);
    for (int i = KEY_COLUMNS; i < line->count; i++) {
        if (strcmp(line->columns[i], "-") == 0)
            continue;
        char *letter;
        unsigned long sm = strtoul(head->columns[i] + strlen("sm_"), &letter, 10);
        fprintf(out, "        { .sm = %lu, .specific = %s, ", sm, *letter ? "true" : "false");
        write_figures(out, line, line->columns[KEY_COLUMNS - 1]);
        if (strcmp(line->columns[i], "=") != 0)
            write_figures(out, line, line->columns[i]);
        fputs("},\n", out);
    }
    fputs("        { .sm = 0 } } },\n", out);
}

int main(int argc, char **argv)
{
    if (argc != 3) {
        fputs("usage: embed_costs COSTS.tsv OUT.c\n", stderr);
        return 2;
    }
    FILE *in = fopen(argv[1], "r"), *out = fopen(argv[2], "w");
    if (!in || !out) {
        perror(in ? argv[2] : argv[1]);
        return 1;
    }
    char version_text[MAX_LINE], head_text[MAX_LINE], text[MAX_LINE];
    table_line version = { .path = argv[1] }, head = version, line;
    if (!read_line(in, version_text, &version) || version.count != 2)
        fail(&version, "ptxas and its version are missing");
    head.number = version.number;
    if (!read_line(in, head_text, &head) || head.count <= KEY_COLUMNS)
        fail(&head, "the heading is missing");
    fprintf(out,
            "#include \"cost/cost.h\"\n\nconst char cost_table_ptxas[] = \"%s\";\n\n"
            "const cost_row cost_table[] = {\n",
            version.columns[1]);
    for (line = head; read_line(in, text, &line);)
        write_row(out, &head, &line);
    fputs("    { 0 }\n};\n", out);
    if (ferror(in) || ferror(out) || fclose(out) != 0) {
        perror(argv[2]);
        return 1;
    }
    fclose(in);
    return 0;
}
