/* What products on the tensor cores have in common: see products/gemm.h. */
#ifndef PTXGEN_GEN_PRODUCTS_GEMM_KEYS_H
#define PTXGEN_GEN_PRODUCTS_GEMM_KEYS_H

#include "gen/products/gemm.h"

#define KEY_STAGES                                                           \
    {                                                                        \
        .name = "stages", .summary = "chunks of weights in shared memory",   \
        .field = KEY_FIELD(stages), .min = 2, .max = 4, .def = 3, .tag = "s" \
    }

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
