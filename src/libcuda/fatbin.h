/* Fat binaries: images for several architectures in one file, as written by nvcc and fatbinary.
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
 * Host programs point to a wrapper: u32 magic 0x466243b1, u32 version, pointer to the fat binary.
 * All numbers are little-endian. */
#pragma once

#include "base/arena.h"
#include "libcuda/api.h"

enum { FATBIN_ANY_SIZE = 0 };

/* Returns true for a fat binary's or wrapper's magic number. Short text ends with a NUL. */
bool fatbin_is(const void *bytes);

/* Copies the PTX for a device of version sm into an arena. Prefers the newest image that is not
 * newer than sm, or the first if all are newer. size is the number of bytes, or FATBIN_ANY_SIZE for
 * a fat binary in memory; only the latter may be a wrapper. On failure, *message is the reason. */
CUresult fatbin_ptx(arena *a, const void *bytes, size_t size, unsigned sm, const char **ptx,
                    const char **message);

/* Returns a fat binary with one image, PTX for an architecture, and its size in bytes. */
void *fatbin_write(arena *a, const char *ptx, unsigned sm, size_t *size);
