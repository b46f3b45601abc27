#include "libcuda/fatbin.h"

#include <limits.h>
#include <stdbool.h>
#include <string.h>

#ifdef HAVE_ZSTD
#include <zstd.h>
#include <zstd_errors.h>
#endif
#ifdef HAVE_LZ4
#include <lz4.h>
#endif

enum {
    KIND_PTX = 1,
    FLAGS_PLAIN = 0x11, /* 64-bit addresses, Linux host */
    FLAG_LZ4 = 0x2000,
    FLAG_ZSTD = 0x8000,
    CONTENT_UNIT = 8,
    MOST_PTX_BYTES = 1 << 30,
};
#define FATBIN_MAGIC  0xba55ed50u
#define WRAPPER_MAGIC 0x466243b1u

typedef struct wrapper {
    uint32_t magic, version;
    const void *fatbin;
} wrapper;

typedef struct header {
    uint32_t magic;
    uint16_t version, header_bytes;
    uint64_t image_bytes;
} header;

typedef struct image_head {
    uint16_t kind, unused;
    uint32_t head_bytes;
    uint64_t content_bytes;
    uint32_t compressed_bytes, unused_too[2];
    uint32_t architecture;
    uint32_t name[2];
    uint64_t flags, reserved, plain_bytes;
} image_head;

_Static_assert(sizeof(header) == 16, "header");
_Static_assert(sizeof(image_head) == 64, "image_head");

typedef struct image {
    image_head head;
    const unsigned char *content;
    size_t size;
} image;

static uint32_t magic_of(const void *bytes)
{
    uint32_t magic = 0; /* no valid magic number has a zero byte */
    if (!memchr(bytes, 0, sizeof magic))
        memcpy(&magic, bytes, sizeof magic);
    return magic;
}

bool fatbin_is(const void *bytes)
{
    uint32_t magic = magic_of(bytes);
    return magic == FATBIN_MAGIC || magic == WRAPPER_MAGIC;
}

static CUresult malformed(const char **message, const char *why)
{
    *message = why;
    return CUDA_ERROR_INVALID_IMAGE;
}

/* Checks the header of a fat binary and moves *bytes to its first image. */
static CUresult open_images(const unsigned char **bytes, size_t size, size_t *left,
                            const char **message)
{
    header h;
    if (magic_of(*bytes) == WRAPPER_MAGIC) {
        wrapper w;
        if (size != FATBIN_ANY_SIZE)
            return malformed(message, "the fat binary is a wrapper, which is valid only in memory");
        memcpy(&w, *bytes, sizeof w);
        *bytes = w.fatbin;
    }
    if (!*bytes || (size != FATBIN_ANY_SIZE && size < sizeof h))
        return malformed(message, "the fat binary is truncated");
    memcpy(&h, *bytes, sizeof h);
    if (h.magic != FATBIN_MAGIC || h.version != 1 || h.header_bytes < sizeof h)
        return malformed(message, "the fat binary's header is not version 1");
    if (h.image_bytes > SIZE_MAX - h.header_bytes ||
        (size != FATBIN_ANY_SIZE &&
         (h.header_bytes > size || h.image_bytes > size - h.header_bytes)))
        return malformed(message, "the fat binary is truncated");
    *left = (size_t)h.image_bytes;
    *bytes += h.header_bytes;
    return CUDA_SUCCESS;
}

/* A compression of PTX. decompress is NULL if its library is not built in. */
typedef struct codec {
    uint64_t flag;
    const char *library;
    bool (*decompress)(arena *a, char *to, size_t size, const image *i);
} codec;

#ifdef HAVE_ZSTD
static bool decompress_zstd(arena *a, char *to, size_t size, const image *i)
{
    size_t written = ZSTD_decompress(to, size, i->content, i->size);
    if (ZSTD_getErrorCode(written) == ZSTD_error_memory_allocation)
        arena_exhausted(a, 0);
    return written == size;
}
#else
#define decompress_zstd NULL
#endif

#ifdef HAVE_LZ4
static bool decompress_lz4(arena *a, char *to, size_t size, const image *i)
{
    (void)a;
    return i->size <= INT_MAX &&
           LZ4_decompress_safe((const char *)i->content, to, (int)i->size, (int)size) == (int)size;
}
#else
#define decompress_lz4 NULL
#endif

static const codec codecs[] = { { FLAG_ZSTD, "libzstd", decompress_zstd },
                                { FLAG_LZ4, "liblz4", decompress_lz4 } };

static CUresult read_ptx(arena *a, image *i, const char **ptx, const char **message)
{
    const codec *c = NULL;
    for (size_t k = 0; !c && k < sizeof codecs / sizeof *codecs; k++)
        if (i->head.flags & codecs[k].flag)
            c = &codecs[k];
    if (c && !c->decompress) {
        *message = arena_format(
            a, "the PTX of the fat binary is compressed, but this library was built without %s",
            c->library);
        return CUDA_ERROR_NO_BINARY_FOR_GPU;
    }
    if (i->head.compressed_bytes > i->size || i->head.plain_bytes > MOST_PTX_BYTES)
        return malformed(message, "the PTX of the fat binary has invalid sizes");
    if (!c) { /* the text may fill the content without a terminating NUL */
        *ptx = arena_copy(a, i->content, i->size);
        return CUDA_SUCCESS;
    }
    size_t size = (size_t)i->head.plain_bytes;
    i->size = i->head.compressed_bytes;
    char *text = arena_alloc(a, size + 1);
    text[size] = '\0';
    *ptx = text;
    return c->decompress(a, text, size, i)
               ? CUDA_SUCCESS
               : malformed(message, "the PTX of the fat binary cannot be decompressed");
}

CUresult fatbin_ptx(arena *a, const void *bytes, size_t size, unsigned sm, const char **ptx,
                    const char **message)
{
    const unsigned char *at = bytes;
    size_t left;
    image best = { 0 };
    CUresult r = open_images(&at, size, &left, message);
    if (r)
        return r;
    while (left) {
        image i = { 0 };
        if (left >= sizeof i.head)
            memcpy(&i.head, at, sizeof i.head);
        uint64_t head = i.head.head_bytes, content = i.head.content_bytes;
        if (head < sizeof i.head || head > left || content > left - head)
            return malformed(message, "an image of the fat binary is truncated");
        i.content = at + head;
        i.size = (size_t)content;
        at += head + content;
        left -= (size_t)(head + content);
        unsigned for_sm = i.head.architecture, best_sm = best.head.architecture;
        bool better = for_sm <= sm && (best_sm > sm || for_sm > best_sm);
        if (i.head.kind == KIND_PTX && (!best.content || better))
            best = i;
    }
    if (!best.content) {
        *message = "the fat binary contains no PTX; this device runs only PTX";
        return CUDA_ERROR_NO_BINARY_FOR_GPU;
    }
    return read_ptx(a, &best, ptx, message);
}

void *fatbin_write(arena *a, const char *ptx, unsigned sm, size_t *size)
{
    size_t length = strlen(ptx), content = (length / CONTENT_UNIT + 1) * CONTENT_UNIT;
    header h = { FATBIN_MAGIC, 1, sizeof h, sizeof(image_head) + content };
    image_head head = { .kind = KIND_PTX,
                        .unused = 0x101,
                        .head_bytes = sizeof head,
                        .content_bytes = content,
                        .architecture = sm,
                        .flags = FLAGS_PLAIN };
    *size = sizeof h + sizeof head + content;
    unsigned char *bytes = arena_zalloc(a, *size);
    memcpy(bytes, &h, sizeof h);
    memcpy(bytes + sizeof h, &head, sizeof head);
    memcpy(bytes + sizeof h + sizeof head, ptx, length);
    return bytes;
}
