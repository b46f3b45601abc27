#include "emu/types.h"

static const struct {
    const char *name;
    unsigned bits;
    type_kind kind;
} types[] = { [TYPE_NONE] = { "", 0, KIND_NONE },
#define X(name, bits, kind) [TYPE_##name] = { #name, bits, kind },
              PTX_TYPES(X)
#undef X
};

ptx_type emu_type_named(const char *name)
{
    for (unsigned i = 1; i < sizeof types / sizeof *types; i++)
        if (strcmp(types[i].name, name) == 0)
            return (ptx_type)i;
    return TYPE_NONE;
}

const char *emu_type_name(unsigned type)
{
    return types[type].name;
}

unsigned emu_type_bits(unsigned type)
{
    return types[type].bits;
}

type_kind emu_type_kind(unsigned type)
{
    return types[type].kind;
}
