/* All kernel families, in the order of kernel/families.def. */
#include "kernel/family.h"

#define FAMILY(id, name) extern const family name;
#include "kernel/families.def"
#undef FAMILY

const family *const families[] = {
#define FAMILY(id, name) &name,
#include "kernel/families.def"
#undef FAMILY
    NULL,
};
