/* What is done where the emulator finds what a device would let pass: PTXGEN_CUDA_CHECKS. */
#ifndef PTXGEN_LIBCUDA_CHECKS_H
#define PTXGEN_LIBCUDA_CHECKS_H

#include "emu/emu.h"

/* As the environment variable says when they are first asked for, when also what is wrong with it
 * is said. */
const emu_checks *checks_of_device(void);

#endif
