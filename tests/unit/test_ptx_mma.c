/* Tensor-core products as a kernel generator writes them, from the builder to the result. ptxas
 * must accept the text, and the emulator's result must equal three nested loops. */
#include "expect_ptxas.h"
#include "test_arena.h"
#include "emu/emu.h"
#include "ptx/ptx.h"
#include "ref/half.h"
#include "ref/random.h"

enum { ROWS = 16, COLUMNS = 8, MOST_DEPTH = 120, WORD = 4, PIECE = 16 };
static const char TARGET[] = "sm_80";

typedef enum element { OF_F16, OF_TF32, OF_S8, OF_U8 } element; /* of A */

typedef struct product {
    element of;
    unsigned step; /* depth per step */
} product;

static const product products[] = {
    { OF_F16, 16 }, { OF_TF32, 8 }, { OF_S8, 32 }, { OF_S8, 16 }, { OF_U8, 32 }, { OF_U8, 16 },
};
enum { PRODUCTS = sizeof products / sizeof *products };

/* How operands are loaded:
 * - DIRECT: words from global memory
 * - COPIED: through shared memory, A and B as they are
 * - TRANSPOSED: through shared memory, A by columns and B by rows
 */
typedef enum way { DIRECT, COPIED, TRANSPOSED } way;

static bool are_bytes(element e)
{
    return e == OF_S8 || e == OF_U8;
}

static unsigned bytes_of(element e)
{
    return are_bytes(e) ? 1 : e == OF_TF32 ? 4 : 2;
}

/* Rows are whole 16-byte pieces, but not whole steps of 16 f16, 8 tf32 or 32 bytes. Zeros fill the
 * last step. */
static unsigned depth_of(element e)
{
    return are_bytes(e) ? 112 : e == OF_TF32 ? 60 : MOST_DEPTH;
}

static unsigned row_bytes(const product *f)
{
    return depth_of(f->of) * bytes_of(f->of);
}

static unsigned step_bytes(const product *f)
{
    return f->step * bytes_of(f->of);
}

static val4 multiply(ptx *p, const product *f, val4 a, val2 b, val4 c)
{
    if (f->of == OF_F16)
        return mma_m16n8k16_f16(p, a, b, c);
    if (f->of == OF_TF32)
        return mma_m16n8k8_tf32(p, a, b, c);
    for (int i = 0; i < 4 && f->of == OF_S8; i++)
        a.v[i] = as(p, S32, a.v[i]);
    return ptx_mma_bytes(p, a.v, b.v, f->step, c);
}

/* Returns the word of a matrix [lines, depth] at line g + lines_down, 4t + behind bytes into the
 * step. */
static val word_at(ptx *p, const product *f, val matrix, val g, val at, int lines_down, int behind)
{
    int row = (int)row_bytes(f);
    return ld_const(p, U32, mad_wide(p, g, row, add(p, matrix, convert(p, U64, at))),
                    lines_down * row + behind);
}

static void load_direct(ptx *p, const product *f, val at, val4 *a, val2 *b)
{
    val g = div(p, lane_id(p), 4), left = parameter(p, "a"), right = parameter(p, "b");
    at = mad(p, rem(p, lane_id(p), 4), WORD, at);
    bool deep = step_bytes(f) > PIECE;
    val none = imm(U32, 0);
    *a = (val4){ { word_at(p, f, left, g, at, 0, 0), word_at(p, f, left, g, at, 8, 0),
                   deep ? word_at(p, f, left, g, at, 0, PIECE) : none,
                   deep ? word_at(p, f, left, g, at, 8, PIECE) : none } };
    *b = (val2){ { word_at(p, f, right, g, at, 0, 0),
                   deep ? word_at(p, f, right, g, at, 0, PIECE) : none } };
}

/* Copies `width` bytes of each line of a matrix to consecutive rows in shared memory, one piece per
 * lane. Absent lines become zeros. */
static void copy_lines(ptx *p, val matrix, val tile, unsigned lines, unsigned width, unsigned row,
                       val first_line, val at, val last_line)
{
    unsigned pieces = width / PIECE;
    PTX_IF (p, lt(p, lane_id(p), lines * pieces)) {
        val line = add(p, first_line, div(p, lane_id(p), pieces));
        val behind = mad(p, rem(p, lane_id(p), pieces), PIECE, at);
        val left = sub(p, row, min(p, behind, row)); /* inside of the row */
        val present = select(p, lt(p, line, last_line), min(p, left, PIECE), 0);
        val from = mad_wide(p, line, row, add(p, matrix, convert(p, U64, behind)));
        cp_async_cg_fill(p, mad(p, lane_id(p), PIECE, tile), 0, from, 0, present);
    }
}

/* Returns the lane's row address for ldmatrix, in rows of `width` bytes. Lane i gives row i % 8 of
 * matrix i / 8; matrices are numbered down first, then to the right. */
static val row_address(ptx *p, val tile, unsigned width, unsigned matrices_down)
{
    val j = div(p, lane_id(p), 8), row = rem(p, lane_id(p), 8);
    val down = rem(p, j, matrices_down), right = div(p, j, matrices_down);
    return mad(p, mad(p, down, 8, row), width, mad(p, right, PIECE, tile));
}

static void load_copied(ptx *p, const product *f, val left_tile, val right_tile, val at, val4 *a,
                        val2 *b)
{
    unsigned width = step_bytes(f), row = row_bytes(f);
    copy_lines(p, parameter(p, "a"), left_tile, ROWS, width, row, imm(U32, 0), at, imm(U32, ROWS));
    copy_lines(p, parameter(p, "b"), right_tile, COLUMNS, width, row, imm(U32, 0), at,
               imm(U32, COLUMNS));
    cp_async_commit(p);
    cp_async_wait(p, 0);
    warp_barrier(p);
    val left = row_address(p, left_tile, width, 2), none = imm(U32, 0);
    val right = row_address(p, right_tile, width, 1);
    if (width > PIECE) {
        *a = ldmatrix_x4(p, left, 0);
        *b = ldmatrix_x2(p, right, 0);
    } else {
        val2 two = ldmatrix_x2(p, left, 0);
        *a = (val4){ { two.v[0], two.v[1], none, none } };
        *b = (val2){ { ldmatrix_x1(p, right, 0), none } };
    }
}

/* Loads fragments of A [depth, ROWS] and B [depth, COLUMNS] with two bytes per element. */
static void load_transposed(ptx *p, const product *f, val left_tile, val right_tile, val at,
                            val4 *a, val2 *b)
{
    val first = div(p, at, bytes_of(f->of)), zero = imm(U32, 0), depth = imm(U32, depth_of(f->of));
    copy_lines(p, parameter(p, "a"), left_tile, f->step, ROWS * 2, ROWS * 2, first, zero, depth);
    copy_lines(p, parameter(p, "b"), right_tile, f->step, COLUMNS * 2, COLUMNS * 2, first, zero,
               depth);
    cp_async_commit(p);
    cp_async_wait_all(p);
    warp_barrier(p);
    val j = div(p, lane_id(p), 8), row = rem(p, lane_id(p), 8);
    val left =
        mad(p, mad(p, div(p, j, 2), 8, row), ROWS * 2, mad(p, rem(p, j, 2), PIECE, left_tile));
    val right = mad(p, rem(p, lane_id(p), f->step), COLUMNS * 2, right_tile);
    *a = ldmatrix_x4_trans(p, left, 0);
    *b = ldmatrix_x2_trans(p, right, 0);
}

/* Builds d = A B for one warp. Only the shared-memory variants have steps past the end of the
 * depth. */
static void build(ptx *p, const product *f, way how)
{
    type t = are_bytes(f->of) ? S32 : F32;
    unsigned row = row_bytes(f), width = step_bytes(f);
    val left_tile = { 0 }, right_tile = { 0 };
    var sums[4];
    if (how != DIRECT) {
        left_tile = shared_array(p, "left", U32, 256);
        right_tile = shared_array(p, "right", U32, 128);
    }
    for (int i = 0; i < 4; i++)
        sums[i] = ptx_var(p, t, t == S32 ? imm(S32, 0) : val_of_f32(0.0f));
    PTX_FOR (p, at, 0, how == DIRECT ? row / width * width : row, width) {
        val4 a;
        val2 b;
        if (how == DIRECT)
            load_direct(p, f, at, &a, &b);
        else
            (how == COPIED ? load_copied : load_transposed)(p, f, left_tile, right_tile, at, &a,
                                                            &b);
        val4 c = { { get(p, sums[0]), get(p, sums[1]), get(p, sums[2]), get(p, sums[3]) } };
        val4 d = multiply(p, f, a, b, c);
        for (int i = 0; i < 4; i++)
            assign(p, sums[i], d.v[i]);
        warp_barrier(p);
    }
    val g = div(p, lane_id(p), 4), pair = mul(p, rem(p, lane_id(p), 4), 2);
    val to = mad_wide(p, mad(p, g, COLUMNS, pair), WORD, parameter(p, "d"));
    for (int i = 0; i < 4; i++)
        st_global(p, t, to, (int64_t)((i / 2 * 8 * COLUMNS + i % 2) * WORD), get(p, sums[i]));
}

static ptx_output built(arena *a, const product *f, way how)
{
    ptx *p = ptx_new(a, "product", target_find(TARGET), 32);
    ptx_output out;
    const char *error;
    ptx_param(p, U64, "d");
    ptx_param(p, U64, "a");
    ptx_param(p, U64, "b");
    build(p, f, how);
    if (!ptx_finish(p, a, &out, &error))
        fail_msg("%s", error);
    return out;
}

/* Matrices of small integers: products and sums are exact in any order. */
typedef struct matrices {
    int left[ROWS][MOST_DEPTH], right[COLUMNS][MOST_DEPTH];
    uint8_t left_bytes[ROWS * MOST_DEPTH * 2], right_bytes[COLUMNS * MOST_DEPTH * 2];
} matrices;

static void put(uint8_t *to, unsigned at, element e, int value)
{
    float number = (float)value;
    uint32_t bits;
    memcpy(&bits, &number, sizeof bits);
    uint16_t half = half_from_float(number);
    if (are_bytes(e))
        to[at] = (uint8_t)value;
    else if (e == OF_TF32)
        memcpy(to + 4 * at, &bits, sizeof bits);
    else
        memcpy(to + 2 * at, &half, sizeof half);
}

static void fill(matrices *m, element e, way how, random_source *r)
{
    unsigned range = are_bytes(e) ? 255 : 17, depth = depth_of(e);
    int least = e == OF_U8 ? 0 : -(int)range / 2; /* of A */
    for (unsigned k = 0; k < depth; k++) {
        for (unsigned i = 0; i < ROWS; i++) {
            m->left[i][k] = (int)random_below(r, range) + least;
            put(m->left_bytes, how == TRANSPOSED ? k * ROWS + i : i * depth + k, e, m->left[i][k]);
        }
        for (unsigned j = 0; j < COLUMNS; j++) {
            m->right[j][k] = (int)random_below(r, range) - (int)range / 2;
            put(m->right_bytes, how == TRANSPOSED ? k * COLUMNS + j : j * depth + k, e,
                m->right[j][k]);
        }
    }
}

/* Checks the kernel's sums over `depth` values. */
static void check(const matrices *m, const product *f, const uint32_t *d, unsigned depth)
{
    for (unsigned i = 0; i < ROWS; i++)
        for (unsigned j = 0; j < COLUMNS; j++) {
            int sum = 0;
            float got;
            memcpy(&got, &d[i * COLUMNS + j], sizeof got);
            int whole = are_bytes(f->of) ? (int)d[i * COLUMNS + j] : (int)got;
            for (unsigned k = 0; k < depth; k++)
                sum += m->left[i][k] * m->right[j][k];
            if (whole != sum)
                fail_msg("step %u, d[%u][%u] is %d, expected %d", f->step, i, j, whole, sum);
        }
}

static void check_product(arena *a, const product *f, way how)
{
    static matrices m;
    static uint32_t d[ROWS * COLUMNS];
    random_source r = { 7 };
    fill(&m, f->of, how, &r);
    ptx_output text = built(a, f, how);
    emu_report report;
    emu_memory *memory = emu_memory_new(NULL);
    size_t bytes = row_bytes(f);
    unsigned depth = depth_of(f->of);
    uint64_t addresses[] = { emu_alloc(memory, sizeof d),
                             emu_map(memory, m.left_bytes, ROWS * bytes, true),
                             emu_map(memory, m.right_bytes, COLUMNS * bytes, true) };
    const void *params[] = { &addresses[0], &addresses[1], &addresses[2] };
    const emu_module *module = emu_load(a, text.text, text.length, &report);
    if (!module)
        fail_msg("line %u: %s", report.line, report.message);
    emu_launch_config config = { .module = module,
                                 .entry = "product",
                                 .grid = { 1, 1, 1 },
                                 .block = { 32, 1, 1 },
                                 .params = params,
                                 .param_count = 3 };
    if (!emu_launch(memory, &config, NULL, &report))
        fail_msg("line %u, thread %u: %s\n%s", report.line, report.thread[0], report.message,
                 text.text);
    assert_true(emu_read(memory, addresses[0], d, ROWS * COLUMNS * sizeof *d));
    check(&m, f, d, how == DIRECT ? depth / f->step * f->step : depth);
    emu_memory_free(memory);
}

ARENA_TEST(the_emulator_equals_three_loops)
{
    for (int i = 0; i < PRODUCTS; i++)
        check_product(a, &products[i], DIRECT);
}

ARENA_TEST(operands_from_shared_memory_give_the_same_result)
{
    for (int i = 0; i < PRODUCTS; i++)
        check_product(a, &products[i], COPIED);
}

ARENA_TEST(transposed_operands_give_the_same_result)
{
    for (int i = 0; i < PRODUCTS; i++)
        if (bytes_of(products[i].of) == 2)
            check_product(a, &products[i], TRANSPOSED);
}

ARENA_TEST(ptxas_accepts_the_products)
{
    for (int i = 0; i < PRODUCTS * 3; i++) {
        const product *f = &products[i / 3];
        if (bytes_of(f->of) != 2 && i % 3 == TRANSPOSED)
            continue;
        if (!expect_ptxas_to_take(built(a, f, (way)(i % 3)).text, TARGET))
            skip();
    }
}
