/* Elementwise kernels: each value is computed from the values at its index in one or two arrays.
 *
 *   silu, gelu, relu, scale    y = f(x)
 *   swiglu, add, multiply      y = f(a, b); swiglu also to q8_1
 *   convert                    y = W, decoded from any format
 *
 * Rows are contiguous, so the row length does not matter. A thread processes 16 bytes of the
 * narrower type at once; the remainder at the end of all rows is processed value by value. Threads
 * loop with the stride of the grid, whose usual size gives each thread one iteration. A thread
 * reads a value before it writes that index, and no other thread reads it: y may alias x, a or b of
 * the same type. */
#include "gen/common/functions.h"
#include "gen/products/gemv.h"
#include "gen/common/q8_1.h"
#include "gen/formats/weight_format.h"
#include "gen/common/values.h"
#include "gen/products/product_keys.h"
#include "ref/reference.h"

enum { THREADS = 256, WIDE_VALUES = 4 };

typedef struct elements {
    const instance *in;
    format x, y;
    type number; /* type of an element's index: U32, or U64 for large arrays */
    unsigned at_once;
    val count, columns;
} elements;

static format format_of_x(const instance *in)
{
    return in->family->op == OP_CONVERT ? instance_weights(in) : instance_activations(in);
}

static int64_t values_at_once(const instance *in)
{
    if (in->y_type == TYPE_Q8_1)
        return 1;
    bool wide = format_of_x(in) == FORMAT_F32 && in->y_type == TYPE_F32;
    return wide ? WIDE_VALUES : MOST_VALUES;
}

/* Returns a * b in the type of an element's index; a and b fit 32 bits. */
static val product(ptx *p, const elements *e, val a, val b)
{
    return e->number == U64 ? mul_wide(p, a, b) : mul(p, a, b);
}

static elements elements_new(ptx *p, const instance *in)
{
    elements e = { .in = in,
                   .x = format_of_x(in),
                   .y = instance_result(in),
                   .at_once = (unsigned)values_at_once(in) };
    int64_t most_rows = in->family->op == OP_CONVERT ? in->shape.n : in->shape.m;
    if (in->rows_mode == ROWS_RUN_TIME)
        most_rows *= TARGET_MOST_GRID_YZ;
    e.number = in->dims == DIMS_DYNAMIC || most_rows * in->shape.k > INT32_MAX ? U64 : U32;
    e.columns = dim_k(p, in);
    val rows = in->family->op == OP_CONVERT     ? dim_n(p, in)
               : in->rows_mode == ROWS_RUN_TIME ? parameter(p, "m_val")
                                                : imm(U32, in->shape.m);
    e.count = product(p, &e, rows, e.columns);
    return e;
}

static val address(ptx *p, const elements *e, const char *array, format f, val element)
{
    unsigned bytes = formats[f].block_bytes;
    return e->number == U64 ? mad(p, element, bytes, parameter(p, array))
                            : mad_wide(p, element, bytes, parameter(p, array));
}

/* Loads the second operand of count elements. With broadcast = row it comes from their columns. */
static void load_second(ptx *p, const elements *e, const char *array, val element, unsigned count,
                        val *values)
{
    unsigned bytes = formats[e->x].block_bytes;
    bool whole = e->columns.kind == VAL_IMM && e->columns.bits % count == 0;
    if (!e->in->options.broadcast) {
        values_load(p, e->x, address(p, e, array, e->x, element), count, values);
        return;
    }
    val columns = convert(p, e->number, e->columns);
    for (unsigned i = 0; i < (whole ? 1 : count); i++) {
        val column = convert(p, U32, rem(p, add(p, element, i), columns));
        values_load(p, e->x, mad_wide(p, column, bytes, parameter(p, array)), whole ? count : 1,
                    &values[i]);
    }
}

static val computed(ptx *p, const instance *in, val x, val second)
{
    operation op = in->family->op;
    bool by_erf = op == OP_GELU && in->options.approximation != GELU_TANH;
    return op == OP_SILU       ? activation_of(p, ACTIVATION_SILU, x)
           : by_erf            ? gelu_by_erf(p, x)
           : op == OP_GELU     ? activation_of(p, ACTIVATION_GELU, x)
           : op == OP_RELU     ? select(p, lt(p, x, 0.0f), 0.0f, x) /* max would lose a NaN */
           : op == OP_SCALE    ? mul(p, x, (float)in->options.scale)
           : op == OP_ADD      ? add(p, x, second)
           : op == OP_MULTIPLY ? mul(p, x, second)
           : op == OP_SWIGLU   ? activation_times(p, &in->options, x, second)
                               : x;
}

static void compute(ptx *p, const elements *e, val piece, val element, unsigned count)
{
    val x[MOST_VALUES], second[MOST_VALUES] = { 0 };
    operation op = e->in->family->op;
    const param *names = e->in->family->params;
    if (formats[e->x].block_values > 1)
        unpack_piece(p, e->x, parameter(p, "w"), convert(p, U32, piece), x);
    else
        values_load(p, e->x, address(p, e, names[1].name, e->x, element), count, x);
    if (op == OP_ADD || op == OP_MULTIPLY || op == OP_SWIGLU)
        load_second(p, e, names[2].name, element, count, second);
    for (unsigned i = 0; i < count; i++)
        x[i] = computed(p, e->in, x[i], second[i]);
    values_store(p, e->y, address(p, e, "y", e->y, element), count, x);
}

/* Writes q8_1 blocks of 32 values, one block per warp. */
static void write_q8_1(ptx *p, const elements *e)
{
    enum { WARPS = THREADS / 32 };
    const param *names = e->in->family->params;
    val first =
        add(p, product(p, e, ctaid_x(p), imm(U32, WARPS)), convert(p, e->number, warp_id(p)));
    val step = product(p, e, nctaid_x(p), imm(U32, WARPS));
    val blocks = div(p, e->count, Q8_1_VALUES), lane = convert(p, e->number, lane_id(p));
    PTX_FOR (p, block, first, blocks, step) {
        val x, second, element = mad(p, block, Q8_1_VALUES, lane);
        values_load(p, e->x, address(p, e, names[1].name, e->x, element), 1, &x);
        values_load(p, e->x, address(p, e, names[2].name, e->x, element), 1, &second);
        q8_1_store_warp(p, address(p, e, "y", FORMAT_Q8_1, block), computed(p, e->in, x, second));
    }
}

/* Returns true if the number of values is known to be a multiple of at_once. */
static bool is_even(const elements *e)
{
    return formats[e->x].block_values > 1 ||
           (e->columns.kind == VAL_IMM && e->columns.bits % e->at_once == 0) ||
           (e->count.kind == VAL_IMM && e->count.bits % e->at_once == 0);
}

static void elementwise_build(ptx *p, const instance *in)
{
    elements e = elements_new(p, in);
    if (e.y == FORMAT_Q8_1) {
        write_q8_1(p, &e);
        return;
    }
    val first =
        add(p, product(p, &e, ctaid_x(p), imm(U32, THREADS)), convert(p, e.number, tid_x(p)));
    val step = product(p, &e, nctaid_x(p), imm(U32, THREADS));
    val whole = div(p, e.count, e.at_once);
    val pieces = is_even(&e) ? whole : div(p, add(p, e.count, e.at_once - 1), e.at_once);
    ptx_loop_work(p, e.at_once, "values");
    PTX_FOR (p, piece, first, pieces, step) {
        val element = named(p, "element", mul(p, piece, e.at_once));
        if (is_even(&e)) {
            compute(p, &e, piece, element, e.at_once);
            continue;
        }
        PTX_IF (p, lt(p, piece, whole))
            compute(p, &e, piece, element, e.at_once);
        PTX_ELSE (p) {
            ptx_loop_seldom(p);
            PTX_FOR (p, last, element, e.count, 1)
                compute(p, &e, piece, last, 1);
        }
    }
}

#define KEYS_OF_ROWS(type_said) KEYS_OF_ROWS_TO(type_said, FLOAT_TYPES)
#define KEYS_OF_ROWS_TO(type_said, types)                                             \
    KEY_NUMBER("k", "columns", shape.k, 1, 1 << 24, .of_out = true, .required = true, \
               .at_run_time = true, .tag = "k"),                                      \
        KEYS_OF_ANY_ROWS, KEY_TYPE(type_said), KEY_OUT("type of y", types)
#define LAUNCH_OVER(count)                                                                       \
    .launch = { .block = "256",                                                                  \
                .grid = { "ceil_div(" count ", 256*at_once)" },                                  \
                .sizes =                                                                         \
                    SIZES({ "at_once", values_at_once,                                           \
                            "values per thread: 4 if all are f32, else 8; 1 with out = q8_1" }), \
                .overlap = WAITS_FIRST,                                                          \
                .registers = 64 },                                                               \
    .build = elementwise_build

static const key keys_of_one[] = { KEYS_OF_ROWS("type of x"), KEY_DIMS, KEY_END };
static const param params_of_one[] = { TYPED_OUT(y, "m*k"), TYPED_IN(x, "m*k"), PARAM_END };

#define ELEMENTWISE(id, ID, said, formula)                                                       \
    .name = #id, .summary = said, .computes = formula, .op = OP_##ID, .activations = FORMAT_F32, \
    .same_bits = true, LAUNCH_OVER("m*k"), .reference = ref_##id##_rows

const family silu = {
    ELEMENTWISE(silu, SILU, "SiLU of rows", "y[m,k] = x[m,k] sigmoid(x[m,k])"),
    .keys = keys_of_one,
    .params = params_of_one,
    .tolerance = 5e-7,
};

const family gelu = {
    ELEMENTWISE(gelu, GELU, "GELU of rows, erf (exact) or tanh", "y[m,k] = x[m,k] Phi(x[m,k])"),
    .keys = KEYS(KEYS_OF_ROWS("type of x"),
                 KEY_OPTION(approximation, "form of Phi: erf (exact), or tanh"), KEY_DIMS),
    .params = params_of_one,
    .tolerance = 5e-7,
};

const family relu = {
    ELEMENTWISE(relu, RELU, "ReLU of rows", "y[m,k] = max(x[m,k], 0)"),
    .keys = keys_of_one,
    .params = params_of_one,
    .tolerance = 6e-8,
};

const family scale = {
    ELEMENTWISE(scale, SCALE, "rows multiplied by a number", "y[m,k] = scale x[m,k]"),
    .keys = KEYS(KEYS_OF_ROWS("type of x"),
                 KEY_REAL("scale", "factor, e.g. 0.5", options.scale, "by",
                          RANGE(.min = -1e30, .max = 1e30, .def = 1)),
                 KEY_DIMS),
    .params = params_of_one,
    .tolerance = 1e-7,
};

static const param params_of_two[] = {
    TYPED_OUT(y, "m*k"),
    TYPED_IN(a, "m*k"),
    { TYPED(b, PARAM_IN, x_type, "m*k"), .only_with = KEY_FIELD(options.broadcast),
      .only_of = UINT64_C(1) << BROADCAST_NONE },
    { TYPED(b, PARAM_IN, x_type, "k"), .only_with = KEY_FIELD(options.broadcast) },
    PARAM_END,
};
static const key keys_of_two[] = {
    KEYS_OF_ROWS("type of a and b"),
    KEY_OPTION(broadcast, "row: b is one row, used for all rows of a"),
    KEY_DIMS,
    KEY_END,
};

const family add = {
    ELEMENTWISE(add, ADD, "sum of two arrays of rows, or of rows and one row",
                "y[m,k] = a[m,k] + b[m,k]"),
    .keys = keys_of_two,
    .params = params_of_two,
    .tolerance = 1e-7,
};

const family multiply = {
    ELEMENTWISE(multiply, MULTIPLY, "product of two arrays of rows, or of rows and one row",
                "y[m,k] = a[m,k] b[m,k]"),
    .keys = keys_of_two,
    .params = params_of_two,
    .tolerance = 1e-7,
};

const family swiglu = {
    ELEMENTWISE(swiglu, SWIGLU, "gated activation of two arrays of rows, e.g. SwiGLU",
                "y[m,k] = activation(g[m,k]) u[m,k]"),
    .keys = KEYS(KEYS_OF_ROWS_TO("type of g and u", FLOAT_TYPES | UINT64_C(1) << TYPE_Q8_1),
                 KEYS_OF_GATE, KEY_DIMS),
    .params = PARAMS(TYPED_OUT(y, "m*k"), TYPED_IN(g, "m*k"), TYPED_IN(u, "m*k")),
    .check = check_product,
    .tolerance = 6e-7,
};

const family convert = {
    .name = "convert",
    .summary = "matrix of any weight format converted to f32, f16 or bf16",
    .computes = "y[n,k] = W[n,k]",
    .op = OP_CONVERT,
    .same_bits = true,
    .keys = KEYS(
        KEY_WEIGHTS,
        KEY_NUMBER("k", "columns of W; any number for float formats", shape.k, 1, INT32_MAX,
                   .of_weights = true, .of_blocks = true, .required = true, .at_run_time = true,
                   .tag = "k"),
        KEY_N,
        KEY_WORD("out", "type of y", y_type, out_choices, .allowed = FLOAT_TYPES, .tag = "to_"),
        KEY_DIMS),
    .params = PARAMS(TYPED_OUT(y, "n*k"), WEIGHTS(w, "n*k", .order = ORDER_WRITTEN)),
    LAUNCH_OVER("n*k"),
    .reference = ref_convert,
    .tolerance = 6e-8,
};
