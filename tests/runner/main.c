#define _POSIX_C_SOURCE 200809L
#include <stdlib.h>

#include "test.h"

int main(int argc, char **argv)
{
    setenv("PTXGEN_GOLDEN", BUILD_ROOT "/tests/golden", 0);
    setenv("PTXGEN_MODELS", SOURCE_ROOT "/../shared/models", 0);
    setenv("PTXGEN_REAL_HEADERS", BUILD_ROOT "/tests", 0);
    setenv("PTXGEN_NVCC_DATA", BUILD_ROOT "/tests/nvcc", 0);
    setenv("PTXGEN_TEST_CACHE", BUILD_ROOT "/test-cache", 0);
    return test_main(argc, argv);
}
