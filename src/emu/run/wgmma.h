/* wgmma: products of matrices that a group of four warps does together and that go on while these
 * do: D = A B + D of 64 rows and up to 256 columns, or D = A B.
 *
 * A warp w of its group has rows 16 w to 16 w + 15. Its registers of D are fragments of 16 x 8 (see
 * matrix.h), one for every eight columns; a register of A, where it is in registers, is that of a
 * fragment of 16 x 16. Matrices in shared memory are named by descriptors: rows of A, and columns
 * of B, have their values along k side by side, in units of 16 bytes that lie in one of four ways.
 */
#ifndef PTXGEN_EMU_RUN_WGMMA_H
#define PTXGEN_EMU_RUN_WGMMA_H

#include "emu/machine.h"

/* Forgets the products of the block before. */
void wgmma_begin_block(machine *m, const warp *w);

/* Lanes end: a fault where products of theirs are under way. */
void wgmma_exit(warp *w, const op *o, lane_mask mask);

#endif
