/* Which kernels of a folder somebody has edited since ptxgen wrote them.
 *
 * The manifest holds a checksum of every PTX text that was written. A file that has it is as ptxgen
 * left it, by whatever version, and may be written anew. A file that does not, or that no manifest
 * of this prefix tells of, is somebody's work, unless its text is the generated one.
 */
#ifndef PTXGEN_EMIT_EDITED_H
#define PTXGEN_EMIT_EDITED_H

#include "gen/kernel.h"

typedef VEC(kernel) kernel_list;

/* The checksum of a PTX text as the manifest has it: 64-bit FNV-1a, 16 hexadecimal digits. */
const char *ptx_checksum(arena *a, const char *text, size_t length);

/* Appends those kernels of the set whose files in a folder were edited, with the path as their file
 * and what stands there as their PTX. False and a diagnostic where a file can't be read; a manifest
 * that is not JSON tells of no file. */
bool find_edited(arena *a, const kernel_set *set, const char *folder, kernel_list *edited,
                 diags *d);

#endif
