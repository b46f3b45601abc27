#include "base/explain.h"

#include <string.h>

typedef struct explanation {
    const char *number, *meaning, *why, *example, *remedy;
} explanation;

static const explanation explanations[] = {
#define NUMBER_TEXT(number) (number) < 10 ? "E00" #number : "E0" #number
#define DIAG(id, number, meaning, why, example, remedy) \
    [DIAG_##id] = { NUMBER_TEXT(number), meaning, why, example, remedy },
#include "base/diag.def"
#undef DIAG
};

const char *diag_number(diag_code code)
{
    return explanations[code].number;
}

/* Behind the E and zeros. */
static const char *digits(const char *number)
{
    number += *number == 'E' || *number == 'e';
    return number + strspn(number, "0");
}

bool diag_find(const char *text, diag_code *out)
{
    for (int code = 0; code < DIAG_COUNT; code++)
        if (strcmp(digits(text), digits(explanations[code].number)) == 0) {
            *out = (diag_code)code;
            return true;
        }
    return false;
}

void diag_list(strbuf *out)
{
    for (int code = 0; code < DIAG_COUNT; code++)
        strbuf_format(out, "%s  %s\n", explanations[code].number, explanations[code].meaning);
}

static void put_indented(strbuf *out, const char *text)
{
    while (*text) {
        size_t length = strcspn(text, "\n");
        strbuf_put(out, length ? "    " : "");
        strbuf_bytes(out, text, length);
        strbuf_char(out, '\n');
        text += length + (text[length] == '\n');
    }
}

void diag_explain(strbuf *out, diag_code code)
{
    const explanation *e = &explanations[code];
    strbuf_format(out, "%s: %s\n\n%s\n\nExample:\n\n", e->number, e->meaning, e->why);
    put_indented(out, e->example);
    strbuf_format(out, "\nWhat to do:\n\n%s\n", e->remedy);
}
