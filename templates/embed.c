/* Build-time program: converts text files to C, so that ptxgen contains its templates.
 *
 *     embed OUT.c OUT.h FILE... [--table NAME FILE...]...
 *
 * FILE header.h.in becomes template_header_h_in[], NUL-terminated, and template_header_h_in_size,
 * without the NUL. NAME[] is a table of the files after it, with NAME_count rows. A file may be in
 * several tables. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BYTES_A_LINE = 16 };

_Noreturn static void fail(const char *path)
{
    perror(path);
    exit(1);
}

static FILE *open_file(const char *path, const char *mode)
{
    FILE *file = fopen(path, mode);
    if (!file)
        fail(path);
    return file;
}

static void close_file(FILE *file, const char *path)
{
    if (ferror(file) || fclose(file) != 0)
        fail(path);
}

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

/* Prints the file's base name with '_' for all characters that identifiers cannot have. */
static void put_identifier(FILE *out, const char *path)
{
    fputs("template_", out);
    for (const char *c = base_name(path); *c; c++)
        fputc(strchr("abcdefghijklmnopqrstuvwxyz0123456789", *c) ? *c : '_', out);
}

static void declare(FILE *header, const char *path)
{
    fputs("extern const char ", header);
    put_identifier(header, path);
    fputs("[];\nextern const size_t ", header);
    put_identifier(header, path);
    fputs("_size;\n", header);
}

/* Defines the array with character constants: C guarantees only 4095 characters in a string
 * literal. Returns its size. */
static unsigned long define(FILE *source, const char *path)
{
    fputs("[] = {\n", source);
    FILE *text = open_file(path, "rb");
    unsigned long size = 0;
    for (int c; (c = getc(text)) != EOF; size++)
        fprintf(source, "'\\x%02x',%c", (unsigned)c,
                size % BYTES_A_LINE == BYTES_A_LINE - 1 ? '\n' : ' ');
    close_file(text, path);

    fputs("'\\0'\n};\n", source);
    return size;
}

static void define_file(FILE *source, const char *path)
{
    fputs("\nconst char ", source);
    put_identifier(source, path);
    unsigned long size = define(source, path);
    fputs("const size_t ", source);
    put_identifier(source, path);
    fprintf(source, "_size = %lu;\n", size);
}

/* Returns the index of the first argument that names a file. */
static int first_of(char **arguments, const char *path)
{
    int first = 0;
    while (strcmp(arguments[first], path) != 0)
        first++;
    return first;
}

/* Defines a table of files, up to the next table, and those of them that no earlier table has. */
static void define_table(FILE *source, FILE *header, const char *name, char **files, char **all)
{
    int count = 0;
    for (char **file = files; *file && strcmp(*file, "--table") != 0; file++)
        if (all + first_of(all, *file) == file) {
            fprintf(source, "\nstatic const char file_%d", first_of(all, *file));
            define(source, *file);
        }
    fprintf(source, "\nconst template_file %s[] = {\n", name);
    for (; files[count] && strcmp(files[count], "--table") != 0; count++)
        fprintf(source, "    { \"%s\", file_%d },\n", base_name(files[count]),
                first_of(all, files[count]));
    fputs("};\n", source);
    fprintf(header, "enum { %s_count = %d };\nextern const template_file %s[];\n", name, count,
            name);
}

int main(int argc, char **argv)
{
    if (argc < 4) {
        fputs("usage: embed OUT.c OUT.h FILE... [--table NAME FILE...]...\n", stderr);
        return 2;
    }
    FILE *source = open_file(argv[1], "w"), *header = open_file(argv[2], "w");
    fputs("#ifndef PTXGEN_TEMPLATES_H\n#define PTXGEN_TEMPLATES_H\n\n#include <stddef.h>\n\n",
          header);
    fputs("typedef struct template_file {\n    const char *name, *text;\n} template_file;\n\n",
          header);
    fputs("#include \"templates/templates.h\"\n", source);
    int at = 3;
    for (; at < argc && strcmp(argv[at], "--table") != 0; at++) {
        declare(header, argv[at]);
        define_file(source, argv[at]);
    }
    for (; at < argc; at++)
        if (strcmp(argv[at], "--table") == 0)
            define_table(source, header, argv[at + 1], argv + at + 2, argv);
    fputs("\n#endif\n", header);
    close_file(source, argv[1]);
    close_file(header, argv[2]);
    return 0;
}
