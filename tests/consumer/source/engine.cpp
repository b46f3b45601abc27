#define ENGINE_KERNELS_IMPLEMENTATION
#include "lookups.h"

int main(void)
{
    look_up_all();
    return 0;
}
