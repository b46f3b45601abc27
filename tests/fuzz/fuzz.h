/* The interface of libFuzzer. A target gets one input after the other. It stops at the first input
 * that breaks a rule, by a sanitizer's report or a failed assertion. */
#ifndef PTXGEN_TESTS_FUZZ_FUZZ_H
#define PTXGEN_TESTS_FUZZ_FUZZ_H

#include <stddef.h>
#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Mutates `size` bytes of data in place, with room for max_size. Returns the new size. */
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed);

/* Mutates bytes by libFuzzer's own method. */
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max_size);

#endif
