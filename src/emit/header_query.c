#include "emit/header_parts.h"

/* All members of ptxgen_query. */
static const struct query_row {
    int kind;
    const char *key, *type, *member, *said; /* said: comment of the member, or NULL */
    const choice *words;                    /* of QUERY_WORD and QUERY_WAY */
    int first;                              /* value of the first enumerator */
} rows[] = {
#define QUERY_SIZE(key, said) { QUERY_SIZES, #key, "int64_t", #key, said, NULL, 0 },
#define QUERY_WAY(key, said)  { QUERY_SIZES, #key, "ptxgen_" #key, #key, said, key##_choices, 1 },
#define QUERY_OPTION(key, type, member, said) \
    { QUERY_OPTIONS, #key, #type, #member, said, NULL, 0 },
#define QUERY_WORD(key, said) { QUERY_OPTIONS, #key, "ptxgen_" #key, #key, said, key##_choices, 0 },
#define QUERY_MATRIX(id, said) \
    { QUERY_MATRICES, "w" #id, "ptxgen_format", "weights_" #id, said, NULL, 0 },
#include "kernel/query.def"
};
static const struct query_row *const end = rows + sizeof rows / sizeof *rows;

void print_query_enums(strbuf *out, const described_set *d)
{
    (void)d;
    for (const struct query_row *row = rows; row < end; row++) {
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
    for (const struct query_row *row = rows; row < end; row++)
        if (row->kind == kind)
            strbuf_format(out, "    %s %s;%s%s%s\n", row->type, row->member,
                          row->said ? " /* " : "", row->said ? row->said : "",
                          row->said ? " */" : "");
}

void print_query_count(strbuf *out, const described_set *d, int kind)
{
    (void)d;
    size_t count = 0;
    for (const struct query_row *row = rows; row < end; row++)
        count += row->kind == kind;
    strbuf_unsigned(out, count);
}

void print_query_rows(strbuf *out, const described_set *d, int kind)
{
    (void)d;
    for (const struct query_row *row = rows; row < end; row++)
        if (row->kind == kind)
            strbuf_format(out, "        { \"%s\", %squery->%s },\n", row->key,
                          kind == QUERY_OPTIONS ? "(double)" : "", row->member);
}
