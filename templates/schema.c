/* Build-time program: prints the JSON schema of manifests, from the rows of manifest.def and
 * plan.def.
 *
 *     schema manifest.schema.json.in > manifest.schema.json
 *
 * The definitions of all objects replace the line @OBJECTS@. */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A field of an object. It is required if when is ALWAYS. */
typedef struct field {
    const char *name, *type, *when, *doc;
    int least; /* minimum items of a list; -1: not a list */
} field;

static void print_description(const char *doc)
{
    if (*doc)
        printf("\"description\": \"%s\", ", doc);
}

/* Prints a definition. fields ends with a NULL name. type is "object", or also "null". */
static void print_object(const char *name, const char *type, const char *doc, const field *fields)
{
    static bool is_first = true;
    const char *comma = "";
    printf("%s    \"%s\": {\n      ", is_first ? "" : ",\n", name);
    is_first = false;
    print_description(doc);
    printf("\"type\": %s, \"additionalProperties\": false,\n      \"required\": [", type);
    for (const field *f = fields; f->name; f++) {
        if (strcmp(f->when, "ALWAYS") != 0)
            continue;
        printf("%s\"%s\"", comma, f->name);
        comma = ", ";
    }
    printf("],\n      \"properties\": {");
    for (const field *f = fields; f->name; f++) {
        printf("%s\n        \"%s\": { ", f == fields ? "" : ",", f->name);
        print_description(f->doc);
        if (f->least >= 0)
            printf(
                "\"type\": \"array\", \"minItems\": %d, \"items\": { \"$ref\": \"#/$defs/%s\" } }",
                f->least, f->type);
        else
            printf("\"$ref\": \"#/$defs/%s\" }", f->type);
    }
    printf("\n      }\n    }");
}

static void print_objects(void)
{
#define OBJECT(type, parameters, doc) \
    print_object(#type, "\"object\"", doc, (const field[]){
#define OBJECT_OR_NULL(type, parameters, there, doc) \
    print_object(#type, "[\"object\", \"null\"]", doc, (const field[]){
#define LET(declaration)
#define TEXT(name, type, when, value, doc)             { #name, #type, #when, doc, -1 },
#define NUMBER(name, type, when, value, doc)           { #name, #type, #when, doc, -1 },
#define VALUE(name, type, when, value, doc)            { #name, #type, #when, doc, -1 },
#define PART(name, type, when, arguments, doc)         { #name, #type, #when, doc, -1 },
#define EACH(name, type, least, count, arguments, doc) { #name, #type, "ALWAYS", doc, least },
#define END                       \
    {                             \
        NULL, NULL, NULL, NULL, 0 \
    }                             \
    });
#include "../src/emit/manifest.def"
#include "../src/model/emit/plan.def"
    putchar('\n');
}

int main(int argc, char **argv)
{
    char line[256];
    FILE *file = argc == 2 ? fopen(argv[1], "r") : NULL;
    if (!file) {
        perror(argc == 2 ? argv[1] : "schema FILE");
        return EXIT_FAILURE;
    }
    while (fgets(line, sizeof line, file)) {
        if (strcmp(line, "@OBJECTS@\n") == 0)
            print_objects();
        else
            fputs(line, stdout);
    }
    return fclose(file) == 0 && fflush(stdout) == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
