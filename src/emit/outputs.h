/* The output files of a set: header, manifest and a .ptx file a kernel. */
#ifndef PTXGEN_EMIT_OUTPUTS_H
#define PTXGEN_EMIT_OUTPUTS_H

#include "emit/describe.h"
#include "emit/tree.h"

/* The files of a set in a folder; NULL: by their names alone. */
const char *emit_header_path(arena *a, const kernel_set *set, const char *folder);
const char *emit_manifest_path(arena *a, const kernel_set *set, const char *folder);

/* Appends them in this order. */
enum { GENERATED_HEADER, GENERATED_MANIFEST, GENERATED_KERNELS };
void emit_files(arena *a, const described_set *d, const char *folder, output_files *files);

#endif
