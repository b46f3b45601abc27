#include "emit/header_parts.h"

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

static const struct {
    const query_row *rows;
    size_t count;
} kinds[QUERY_KINDS] = {
    [QUERY_SIZES] = { sizes, sizeof sizes / sizeof *sizes },
    [QUERY_OPTIONS] = { options, sizeof options / sizeof *options },
    [QUERY_MATRICES] = { matrices, sizeof matrices / sizeof *matrices },
};

void print_query_enums(strbuf *out, const described_set *d)
{
    (void)d;
    for (int kind = 0; kind < QUERY_KINDS; kind++)
        for (size_t i = 0; i < kinds[kind].count; i++) {
            const query_row *row = &kinds[kind].rows[i];
            if (!row->words)
                continue;
            strbuf_format(out, "typedef enum %s {\n", row->type);
            for (const choice *c = row->words; c->word; c++) {
                strbuf_put(out, "    ");
                print_constant(out, row->key);
                strbuf_char(out, '_');
                strbuf_upper(out, c->word);
                strbuf_put(out, row->first && c == row->words ? " = 1,\n" : ",\n");
            }
            strbuf_format(out, "} %s;\n", row->type);
        }
    strbuf_char(out, '\n');
}

void print_query_members(strbuf *out, const described_set *d, int kind)
{
    (void)d;
    for (size_t i = 0; i < kinds[kind].count; i++) {
        const query_row *row = &kinds[kind].rows[i];
        strbuf_format(out, "    %s %s;", row->type, row->member);
        if (row->said)
            strbuf_format(out, " /* %s */", row->said);
        strbuf_char(out, '\n');
    }
}

void print_query_count(strbuf *out, const described_set *d, int kind)
{
    (void)d;
    strbuf_unsigned(out, kinds[kind].count);
}

void print_query_rows(strbuf *out, const described_set *d, int kind)
{
    (void)d;
    for (size_t i = 0; i < kinds[kind].count; i++)
        strbuf_format(out, "        { \"%s\", %squery->%s },\n", kinds[kind].rows[i].key,
                      kind == QUERY_OPTIONS ? "(double)" : "", kinds[kind].rows[i].member);
}
