/* Renders manual pages as plain text without man. Supports the part of mdoc(7) that the pages use.
 */
#pragma once

#include <stdbool.h>

#include "base/strbuf.h"

/* Appends a page as text. Returns false with line and error if a macro is wrong. */
bool mdoc_render(strbuf *out, const char *page, unsigned *line, const char **error);
