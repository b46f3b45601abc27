/* Prints diagnostics as text for tests that compare messages. */
#ifndef PTXGEN_TESTS_DIAGS_TEXT_H
#define PTXGEN_TESTS_DIAGS_TEXT_H

#include "base/diag.h"
#include "base/strbuf.h"

static inline const char *diags_text(arena *a, const diags *d)
{
    strbuf text = strbuf_new(a);
    diags_render(d, &text, false);
    return text.text;
}

#endif
