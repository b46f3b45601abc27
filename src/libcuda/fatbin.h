/* Fat binaries: images for several architectures in one, as nvcc and fatbinary write them.
 *
 *   header   0  u32  magic 0xba55ed50
 *            4  u16  version 1
 *            6  u16  bytes of this header: 16
 *            8  u64  bytes of all images, which follow
 *   image    0  u16  kind: 1 PTX, 2 machine code, others
 *            4  u32  bytes of this head: 64 or more
 *            8  u64  bytes of the content, which follows, with padding
 *           16  u32  bytes of the content if it is compressed
 *           28  u32  architecture: 80 for sm_80
 *           40  u64  flags: 0x2000 compressed with LZ4, 0x8000 with zstd
 *           56  u64  bytes of the content after decompression
 *
 * Host programs hold a pointer to one in a wrapper: u32 magic 0x466243b1, u32 version, and the
 * pointer. All numbers are little-endian. */
#ifndef PTXGEN_LIBCUDA_FATBIN_H
#define PTXGEN_LIBCUDA_FATBIN_H

#include "base/arena.h"
#include "libcuda/api.h"

enum { FATBIN_ANY_SIZE = 0 };

/* Recognizes a fat binary or a wrapper by its first four bytes, or fewer that end with a NUL. */
bool fatbin_is(const void *bytes);

/* Copies the PTX that a device takes into an arena: for its architecture or the newest of the older
 * ones, or the first if all are newer. size: all bytes that are there, or FATBIN_ANY_SIZE for a fat
 * binary in memory, which alone may be a wrapper. On an error message says why. */
CUresult fatbin_ptx(arena *a, const void *bytes, size_t size, unsigned sm, const char **ptx,
                    const char **message);

/* Makes a fat binary with one image, which is PTX for an architecture. */
void *fatbin_write(arena *a, const char *ptx, unsigned sm, size_t *size);

#endif
