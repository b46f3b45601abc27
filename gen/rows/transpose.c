/* Transposes m matrices: y[k,n] = x[n,k]. A block reads a tile by rows into shared memory and
 * writes it by columns. A tile is 32 x 32 values. For 16-bit values in even rows and columns it is
 * 64 x 64, and two neighbouring values are moved at once:
 *
 *   x[2r][2c], x[2r][2c+1]          word c of two rows
 *   x[2r+1][2c], x[2r+1][2c+1]
 *   x[2r][2c], x[2r+1][2c]          word r of rows 2c and 2c+1 of y
 *   x[2r][2c+1], x[2r+1][2c+1]
 *
 * A row of the tile is padded by one word, so that the words of a column are in 32 different banks.
 * Values are copied as bits, so NaN payloads are kept. */
#include "gen/products/gemv.h"
#include "gen/common/values.h"
#include "ref/reference.h"

enum { THREADS = 256, SIDE = 32, STRIDE = SIDE + 1, WARPS = THREADS / 32 };
enum { LOW_HALVES = 0x5410, HIGH_HALVES = 0x7632 };

typedef struct matrix {
    val rows, columns; /* size in words */
    val first_row, first_column;
    val base;
    unsigned bytes; /* bytes per word */
} matrix;

/* Returns true if two values are moved at once. */
static bool has_pairs(const instance *in)
{
    bool even = in->dims == DIMS_STATIC && in->shape.n % 2 == 0 && in->shape.k % 2 == 0;
    return in->x_type != TYPE_F32 && even;
}

static int64_t tile_side(const instance *in)
{
    return has_pairs(in) ? 2 * SIDE : SIDE;
}

static val is_inside(ptx *p, const matrix *m, val row, val column)
{
    return bit_and(p, lt(p, row, m->rows), lt(p, column, m->columns));
}

/* Loads the thread's words of a tile, from every eighth row or pair of rows. Words outside the
 * matrix are 0. */
static void load_tile(ptx *p, const matrix *x, unsigned rows_a_word, var *words)
{
    val column = add(p, x->first_column, lane_id(p));
    for (unsigned i = 0; i < SIDE / WARPS; i++)
        for (unsigned j = 0; j < rows_a_word; j++) {
            val row = mul(p, add(p, warp_id(p), i * WARPS), rows_a_word);
            row = add(p, x->first_row, add(p, row, j));
            words[i * rows_a_word + j] = var_u32(p, 0);
            PTX_IF (p, is_inside(p, x, row, column)) {
                val element = mad_wide(p, row, x->columns, convert(p, U64, column));
                assign(
                    p, words[i * rows_a_word + j],
                    ld_global(p, x->bytes == 4 ? U32 : U16, mad(p, element, x->bytes, x->base), 0));
            }
        }
}

static val tile_word(ptx *p, val tile, val row, val column)
{
    return mad(p, mad(p, row, STRIDE, column), sizeof(uint32_t), tile);
}

static void store_tile(ptx *p, const matrix *y, unsigned columns, val tile)
{
    val lane = lane_id(p), column = add(p, y->first_column, lane);
    for (unsigned i = 0; i < columns / WARPS; i++) {
        val own = add(p, warp_id(p), i * WARPS), row = add(p, y->first_row, own);
        PTX_IF (p, is_inside(p, y, row, column)) {
            val element = mad_wide(p, row, y->columns, convert(p, U64, column));
            st_global(p, y->bytes == 4 ? U32 : U16, mad(p, element, y->bytes, y->base), 0,
                      ld_shared(p, U32, tile_word(p, tile, own, lane), 0));
        }
    }
}

static void transpose_build(ptx *p, const instance *in)
{
    unsigned values = has_pairs(in) ? 2 : 1, words = SIDE / WARPS * values;
    unsigned bytes = in->x_type == TYPE_F32 ? 4 : 2;
    val n = dim_n(p, in), k = dim_k(p, in), lane = lane_id(p), tile;
    val matrix_bytes = mul(p, mul_wide(p, n, k), bytes);
    val behind = mul(p, matrix_bytes, convert(p, U64, ctaid_z(p)));
    matrix x = { .rows = n,
                 .columns = div(p, k, values),
                 .first_row = mul(p, ctaid_y(p), SIDE * values),
                 .first_column = mul(p, ctaid_x(p), SIDE),
                 .base = add(p, parameter(p, "x"), behind),
                 .bytes = bytes * values };
    matrix y = { .rows = k,
                 .columns = div(p, n, values),
                 .first_row = mul(p, ctaid_x(p), SIDE * values),
                 .first_column = mul(p, ctaid_y(p), SIDE),
                 .base = add(p, parameter(p, "y"), behind),
                 .bytes = bytes * values };
    var loaded[2 * SIDE / WARPS];
    tile = shared_array(p, "tile", U32, SIDE * values * STRIDE);
    phase(p, "load rows");
    load_tile(p, &x, values, loaded);
    for (unsigned i = 0; i < words; i += values) {
        val row = add(p, warp_id(p), i / values * WARPS), first = get(p, loaded[i]);
        if (values == 1) {
            st_shared(p, U32, tile_word(p, tile, lane, row), 0, first);
            continue;
        }
        val second = get(p, loaded[i + 1]), at = tile_word(p, tile, mul(p, lane, 2), row);
        st_shared(p, U32, at, 0, prmt(p, first, second, LOW_HALVES));
        st_shared(p, U32, at, STRIDE * sizeof(uint32_t), prmt(p, first, second, HIGH_HALVES));
    }
    barrier(p);
    phase(p, "store columns");
    store_tile(p, &y, SIDE * values, tile);
}

const family transpose = {
    .name = "transpose",
    .summary = "transposed copies of matrices",
    .computes = "y[m,k,n] = x[m,n,k]",
    F32_FAMILY(OP_TRANSPOSE, transpose_build, ref_transpose, 1e-9),
    .keys = KEYS(KEY_NUMBER("k", "columns of x", shape.k, 1, INT32_MAX, .required = true,
                            .at_run_time = true, .tag = "k"),
                 KEY_NUMBER("n", "rows of x", shape.n, 1, INT32_MAX, .required = true,
                            .at_run_time = true, .tag = "n"),
                 KEY_NUMBER("m", "contiguous matrices", shape.m, 1, 65535, .def = 1,
                            .at_run_time = true, .tag = "m"),
                 KEY_TYPE("type of x and y"), KEY_DIMS),
    .params = PARAMS({ TYPED(y, PARAM_OUT, x_type, "m*n*k") }, TYPED_IN(x, "m*n*k")),
    .launch = { .block = "256",
                .grid = { "ceil_div(k, side)", "ceil_div(n, side)", "m" },
                .shared = "4*side*33",
                .sizes = SIZES({ "side", tile_side,
                                 "of a tile: 32, or 64 for 16-bit values with n and k even" }),
                .overlap = WAITS_FIRST,
                .registers = 64 },
};
