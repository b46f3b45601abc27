/* Products of a tile of rows of X and of 128 rows of W on the tensor cores: what blocks of mma_gemm
 * and its like share. Of families whose activations are f16 X is what f16_rows.c makes. See gemm.c
 * for the order of the work, gemm_weights.h for the weights.
 */
#ifndef PTXGEN_GEN_PRODUCTS_GEMM_H
#define PTXGEN_GEN_PRODUCTS_GEMM_H

#include "gen/products/experts.h"
#include "gen/products/gemm_sums.h"
#include "gen/products/gemm_weights.h"
#include "gen/products/gemv.h"

/* At once: with wgmma, and else. */
enum { GEMM_MOST_ROWS = 256, GEMM_USUAL_ROWS = 128 };

/* Rows of X that a tile has room for: the key m, up to the next power of two from 16 on. */
int64_t gemm_rows(const instance *in);

/* Of experts: rows of one that a block has at a time. */
int64_t gemm_expert_rows(const instance *in);

/* Columns of Y that a block makes. */
int64_t gemm_columns(const instance *in);

/* Bytes of dynamic shared memory. */
int64_t gemm_shared_bytes(const instance *in);

/* Bytes of the powers of two that rows of W have, too, of formats that f16 has no room for. */
int64_t gemm_powers_bytes(const instance *in);

/* Values that a block with a part of k stores of a tile. */
int64_t gemm_tile_values(const instance *in);

/* Refuses parts of k that are not whole chunks of weights. */
const char *gemm_check_splits(const instance *in, arena *a, const char **blamed);

/* Computes the block's tile of Y and stores it. */
void gemm_build(ptx *p, const instance *in);

/* The same of the rows that use an expert, as many tiles as they are: the block's in y is the
 * number of its entry in the list (products/experts.h), those in z take turns. Y has a row for each
 * choice, [m * experts_used, n]; X has one for each row, or where there is no gate one for each
 * choice. An expert that does not exist reads no weights and gives NaN. */
void gemm_build_of_experts(ptx *p, const instance *in);

#define KEY_STAGES \
    KEY_NUMBER("stages", "chunks of weights in shared memory", stages, 2, 4, .def = 3, .tag = "s")

/* X as f16_rows.c makes it, in a buffer of so many values, and what each row of k values of it is
 * multiplied by. */
#define F16_ROWS(rows) IN(F16, x, rows "*k", 16), IN(F32, factors, rows, 4)

/* Bytes of shared memory, static and dynamic, and columns of Y that a block makes. */
#define GEMM_SHARED        "8*tile_rows+powers"
#define GEMM_SHARED_OF_F16 "powers"
#define GEMM_SIZES                                                                              \
    { "powers", gemm_powers_bytes,                                                              \
      "where W may have what f16 has no room for: bytes of what its rows are multiplied by" },  \
        { "tile_rows", gemm_rows, "16, 32, 64 or 128: rows of X that there is room for" },      \
        { "columns", gemm_columns, "of Y that a block makes" },                                 \
    {                                                                                           \
        "tiles", gemm_shared_bytes, "bytes of the tiles of X and W, and of the ring of weights" \
    }

#endif
