#include "emit/header_query.h"

typedef struct query_row {
    const char *key, *type, *member, *said; /* said: NULL where the member's name says all */
    const choice *words;                    /* of QUERY_WORD and QUERY_WAY, */
    int first;                              /* which count from here */
} query_row;

#define NOTHING(...)

static const query_row sizes[] = {
#define QUERY_SIZE(key, said) { #key, "int64_t", #key, said, NULL, 0 },
#define QUERY_OPTION          NOTHING
#define QUERY_WORD            NOTHING
#define QUERY_WAY(key, said)  { #key, "ptxgen_" #key, #key, said, key##_choices, 1 },
#define QUERY_MATRIX          NOTHING
#include "kernel/query.def"
};

static const query_row options[] = {
#define QUERY_SIZE                            NOTHING
#define QUERY_OPTION(key, type, member, said) { #key, #type, #member, said, NULL, 0 },
#define QUERY_WORD(key, said)                 { #key, "ptxgen_" #key, #key, said, key##_choices, 0 },
#define QUERY_WAY                             NOTHING
#define QUERY_MATRIX                          NOTHING
#include "kernel/query.def"
};

static const query_row matrices[] = {
#define QUERY_SIZE             NOTHING
#define QUERY_OPTION           NOTHING
#define QUERY_WORD             NOTHING
#define QUERY_WAY              NOTHING
#define QUERY_MATRIX(id, said) { "w" #id, "ptxgen_format", "weights_" #id, said, NULL, 0 },
#include "kernel/query.def"
};

enum {
    SIZES = sizeof sizes / sizeof *sizes,
    OPTIONS = sizeof options / sizeof *options,
    MATRICES = sizeof matrices / sizeof *matrices
};

static void print_enum(strbuf *out, const query_row *row)
{
    strbuf_format(out, "typedef enum %s {\n", row->type);
    for (const choice *c = row->words; c->word; c++) {
        strbuf_put(out, "    PTXGEN_");
        strbuf_upper(out, row->key);
        strbuf_char(out, '_');
        strbuf_upper(out, c->word);
        strbuf_put(out, row->first && c == row->words ? " = 1,\n" : ",\n");
    }
    strbuf_format(out, "} %s;\n", row->type);
}

static void print_members(strbuf *out, const query_row *rows, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        strbuf_format(out, "    %s %s;", rows[i].type, rows[i].member);
        if (rows[i].said)
            strbuf_format(out, " /* %s */", rows[i].said);
        strbuf_char(out, '\n');
    }
}

static void print_rows(strbuf *out, const query_row *rows, size_t count, const char *cast)
{
    for (size_t i = 0; i < count; i++)
        strbuf_format(out, "        { \"%s\", %squery->%s },\n", rows[i].key, cast, rows[i].member);
}

void print_query_enums(strbuf *out, const described_set *d)
{
    (void)d;
    for (size_t i = 0; i < SIZES; i++)
        if (sizes[i].words)
            print_enum(out, &sizes[i]);
    for (size_t i = 0; i < OPTIONS; i++)
        if (options[i].words)
            print_enum(out, &options[i]);
    strbuf_char(out, '\n');
}

void print_query_size_members(strbuf *out, const described_set *d)
{
    (void)d;
    print_members(out, sizes, SIZES);
}

void print_query_option_members(strbuf *out, const described_set *d)
{
    (void)d;
    print_members(out, options, OPTIONS);
}

void print_query_matrix_members(strbuf *out, const described_set *d)
{
    (void)d;
    print_members(out, matrices, MATRICES);
}

void print_query_matrix_count(strbuf *out, const described_set *d)
{
    (void)d;
    strbuf_unsigned(out, MATRICES);
}

void print_query_matrix_rows(strbuf *out, const described_set *d)
{
    (void)d;
    print_rows(out, matrices, MATRICES, "");
}

void print_query_size_count(strbuf *out, const described_set *d)
{
    (void)d;
    strbuf_unsigned(out, SIZES);
}

void print_query_option_count(strbuf *out, const described_set *d)
{
    (void)d;
    strbuf_unsigned(out, OPTIONS);
}

void print_query_size_rows(strbuf *out, const described_set *d)
{
    (void)d;
    print_rows(out, sizes, SIZES, "");
}

void print_query_option_rows(strbuf *out, const described_set *d)
{
    (void)d;
    print_rows(out, options, OPTIONS, "(double)");
}
