/* Embedding lookup: y[m] = scale W[token[m]], with W of any format.
 *
 * A thread decodes eight neighbouring weights with unpack_piece (four for f32). A block decodes
 * part of a row; the grid's y is the token's index.
 *
 * Tokens are read from device memory. For a token >= n nothing of W is read, and the row of y is
 * NaN. With the key history a row's other tokens are also stored, by position. */
#include "gen/products/gemv.h"
#include "gen/formats/weight_format.h"
#include "ref/reference.h"

enum { THREADS = 128, LINE_VALUES = 4 };

static unsigned piece_values(const instance *in)
{
    return instance_weights(in) == FORMAT_F32 ? LINE_VALUES : UNPACKED;
}

static void store_token(ptx *p, const instance *in, val row, val token)
{
    const val history = imm(U32, in->options.history);
    val position = ld_const(p, U32, mad_wide(p, row, 4, parameter(p, "positions")), 0);
    val sequence = ld_const(p, U32, mad_wide(p, row, 4, parameter(p, "sequences")), 0);
    PTX_IF (p, ne(p, position, imm(U32, UINT32_MAX))) {
        val slot = mad_wide(p, sequence, history, convert(p, U64, rem(p, position, history)));
        st_global(p, U32, add(p, parameter(p, "history"), shl(p, slot, 2)), 0, token);
    }
}

static void embed_rows_build(ptx *p, const instance *in)
{
    const format_info *weights = &formats[instance_weights(in)];
    unsigned count = piece_values(in);
    val columns = dim_k(p, in), y = parameter(p, "y"), w = parameter(p, "w");
    val row = named(p, "row", ctaid_y(p)), token_at = mad_wide(p, row, 4, parameter(p, "tokens"));
    val piece = named(p, "piece", mad(p, ctaid_x(p), THREADS, tid_x(p)));
    ret_if(p, ge(p, piece, div(p, columns, count)));

    val token = named(p, "token", ld_const(p, U32, token_at, 0)), values[UNPACKED];
    val element = mad_wide(p, row, columns, mul_wide(p, piece, count));
    val out = add(p, y, shl(p, element, 2));
    PTX_IF (p, lt(p, token, dim_n(p, in))) {
        if (in->options.history)
            PTX_IF (p, eq(p, piece, 0))
                store_token(p, in, row, token);
        val row_bytes = mul(p, div(p, columns, weights->block_values), weights->block_bytes);
        val w_row = mad_wide(p, token, row_bytes, w);
        const float scale = (float)in->options.scale;
        /* Rows of f32 may be hidden states, which earlier launches of the step write. */
        ptx_keep_loads(p, instance_weights(in) == FORMAT_F32);
        if (instance_weights(in) == FORMAT_F32)
            load_floats(p, mad_wide(p, piece, LINE_VALUES * F32_BYTES, w_row), 0, count, values);
        else
            unpack_piece(p, instance_weights(in), w_row, piece, values);
        for (unsigned i = 0; i < count && in->options.scale > 0; i++)
            values[i] = mul(p, values[i], scale);
        store_floats(p, out, 0, count, values);
    }
    PTX_ELSE (p) {
        for (unsigned i = 0; i < count; i++)
            values[i] = bits_as(p, F32, imm(U32, 0x7fffffff));
        store_floats(p, out, 0, count, values);
    }
}

static int64_t block_columns(const instance *in)
{
    return THREADS * piece_values(in);
}

const family embed_rows = {
    .name = "embed_rows",
    .summary = "embedding rows of any format, by token ids in device memory",
    .computes = "y[m,k] = scale W[token[m],k]",
    .op = OP_EMBED_ROWS,
    .same_bits = true,
    .keys =
        KEYS(KEY_WEIGHTS, KEY_K_OF_WEIGHTS, KEY_N, KEY_ROW_COUNT, KEY_SCALE("factor of the result"),
             KEY_TRIGGER, KEY_DIMS, KEY_HISTORY("token ids kept per sequence, e.g. 256; 0: none")),
    .params =
        PARAMS(OUT(F32, y, "m*k", 16),
               OUT(U32, history, "m*history", 4, .data = DATA_PARTLY, .touched = "1",
                   .only_with = KEY_FIELD(options.history),
                   .holds = "the token at position t of a sequence is its word t % history"),
               WEIGHTS(w, "n*k", .touched = "k"), IN_FITTED(U32, tokens, "m", 4),
               IN_WHERE(history, U32, positions, "m", 4, .random = RANDOM_FITTED),
               ROW_SEQUENCES_WITH(.order = ORDER_SETTLED, .only_with = KEY_FIELD(options.history))),
    .launch = { .block = "128",
                .grid = { "ceil_div(k, columns)", "m" },
                .sizes = SIZES({ "columns", block_columns, "per block: 1024, or 512 of f32" }),
                .overlap = WAITS_FIRST,
                .registers = 64 },
    .build = embed_rows_build,
    .fit = ref_fit_tokens,
    .reference = ref_embed_rows,
    .tolerance = 6e-8,
};
