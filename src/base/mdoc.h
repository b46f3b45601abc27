/* Manual pages as plain text, for where there is no man: the part of mdoc(7) that our pages are
 * written in. */
#ifndef PTXGEN_BASE_MDOC_H
#define PTXGEN_BASE_MDOC_H

#include <stdbool.h>

#include "base/strbuf.h"

/* Appends a page's text. False, and its line and what is wrong with it, where a macro is not known
 * here or does not fit where it stands. */
bool mdoc_render(strbuf *out, const char *page, unsigned *line, const char **error);

#endif
