/* Products of a tile of rows of X and of 128 rows of W on the tensor cores: what blocks of mma_gemm
 * share. See gemm.c for the order of the work, gemm_weights.h for the weights.
 */
#ifndef PTXGEN_GEN_BLOCKS_GEMM_H
#define PTXGEN_GEN_BLOCKS_GEMM_H

#include "gen/blocks/gemm_weights.h"
#include "gen/blocks/gemv.h"

enum { GEMM_MOST_ROWS = 128 };

/* Rows of X that a tile has room for: the key m, up to the next power of two from 16 on. */
int64_t gemm_rows(const instance *in);

/* Columns of Y that a block makes. */
int64_t gemm_columns(const instance *in);

/* Bytes of dynamic shared memory. */
int64_t gemm_shared_bytes(const instance *in);

/* Whether rows of W have powers of two, too: of formats that f16 has no room for. */
bool gemm_has_powers(const instance *in);

/* Computes the block's tile of Y and stores it. */
void gemm_build(ptx *p, const instance *in);

#endif
