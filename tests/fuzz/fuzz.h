/* What libFuzzer calls: a target gets one input after the other and stops at the first that breaks
 * a rule, by a sanitizer's report or a failed assertion. */
#ifndef PTXGEN_TESTS_FUZZ_FUZZ_H
#define PTXGEN_TESTS_FUZZ_FUZZ_H

#include <stddef.h>
#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Changes size bytes of data, which has room for max_size, and returns how many they are then. */
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed);

/* libFuzzer's own change of bytes. */
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max_size);

#endif
