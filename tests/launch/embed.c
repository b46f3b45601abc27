/* Prints the PTX of all kernels of a header. Exits with status 2 if the PTX of one was changed. */
#include <stdio.h>

#define ENGINE_KERNELS_IMPLEMENTATION
#include "engine_kernels.h"

int main(void)
{
    size_t i;
    for (i = 0; i < engine_kernel_count; i++) {
        const ptxgen_kernel *k = engine_kernels[i];
        if (!ptxgen_is_intact(k))
            return 2;
        if (k->ptx[k->ptx_length] != '\0' ||
            fwrite(k->ptx, 1, k->ptx_length, stdout) != k->ptx_length)
            return 1;
    }
    return 0;
}
