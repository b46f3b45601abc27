#include "kernel/format.h"

const format_info formats[FORMAT_COUNT] = {
#define PLAIN(id, name, values, bytes, align) \
    [FORMAT_##id] = { name, NO_GGUF_TYPE, values, bytes, align },
#define FORMAT(id, name, gguf, values, bytes, align) \
    [FORMAT_##id] = { name, gguf, values, bytes, align },
#define CODED FORMAT
#include "kernel/format.def"
};

uint64_t format_bytes(format f, uint64_t values)
{
    return values / formats[f].block_values * formats[f].block_bytes;
}
