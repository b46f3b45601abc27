/* What is done where the emulator finds what a device would let pass: PTXGEN_CUDA_CHECKS. */
#ifndef PTXGEN_LIBCUDA_CHECKS_H
#define PTXGEN_LIBCUDA_CHECKS_H

#include "emu/emu.h"

/* Reads the environment variable, and says what is wrong with it. */
emu_checks checks_read(void);

#endif
