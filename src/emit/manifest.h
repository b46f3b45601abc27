/* PREFIX_kernels.json: what the header says, for other languages and tools. */
#ifndef PTXGEN_EMIT_MANIFEST_H
#define PTXGEN_EMIT_MANIFEST_H

#include <jansson.h>

#include "emit/describe.h"

void emit_manifest(strbuf *out, const described_set *d);

/* The same as a value, for who has more to say. The kernels under "kernels" are in the order of the
 * set. */
json_t *manifest_json(arena *a, const described_set *d);

#endif
