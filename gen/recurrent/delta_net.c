/* One step of a gated delta net, which Qwen3-Next uses in place of attention, for m rows: a causal
 * convolution of the inputs, the delta rule on the state of each value head, and the gated norm, in
 * one launch.
 *
 * With S = head_dim, Hk key heads, Hv = r Hk value heads and C = (2 Hk + Hv) S channels (of q, of
 * k, of v), for a row at position p:
 *
 *   u[c] = silu(sum over j < 4 of conv[c][j] input[p - 3 + j][c]), where inputs before p = 0 are 0
 *   q = u_q / max(|u_q|, epsilon) / sqrt(S),  k = u_k / max(|u_k|, epsilon),  v = u_v
 *   decay = exp(a softplus(alpha + dt)),  beta = sigmoid(b)
 *   d = beta (v - decay state^T k),  state = decay state + k d^T,  o = state^T q
 *   y = o / sqrt(mean(o^2) + epsilon) gamma silu(z)
 *
 * Source: Yang et al., "Gated Delta Networks", as llama.cpp computes it, with its epsilon.
 *
 * The key layout says which value heads a key head serves, and where b and alpha are. With r = 2
 * and Hk = 3, key head 1 serves
 *
 *   grouped   value heads 2 and 3. x [m, C + Hv S + 2 Hv] has per row: the inputs of the
 *             convolution, z, then for each key head its r values b and its r values alpha
 *   tiled     value heads 1 and 4. x [m, C + Hv S] ends with z; ba [m, 2 Hv] has per row all
 *             values b, then all values alpha, in the order of the value heads
 *
 * A state is [Hv, S, S] by head, column and row: element (i, j) of the state above is at j S + i.
 * The elements for one value of v are contiguous and aligned to 16 bytes. convs points to the ring
 * of the last inputs, [16, C]; position p is in slot p % 16.
 *
 * Rows with the same state address belong to one sequence. They must be neighbours with consecutive
 * positions; their inputs then come from x. At position 0 the state counts as 0 and no inputs are
 * read, so a sequence may start in memory that was not cleared. A row at max_seq_len or beyond
 * (such as 2^32 - 1) leaves state and inputs unchanged, and its y is 0.
 *
 * A block processes one value head of a row and of the following rows of its sequence, in order.
 * The state stays in registers: it is read once and written once. Blocks of the other rows of the
 * sequence end immediately. 8 lanes share two columns. One pass over the state gives both products,
 * since o = decay state^T q + (k . q) d.
 *
 * The new inputs of up to 8 rows go to the ring's slots p to p + 7, and the launch reads only slots
 * p - 3 to p - 1. More rows are processed 8 at a time, and their inputs may go to any slot. So the
 * last 16 of them are stored after all reads: those of v by the only block that reads them, those
 * of q and k by the last block of their key head, found by a counter. */
#include <math.h>

#include "gen/recurrent/conv_rows.h"
#include "gen/common/reduce.h"
#include "gen/common/functions.h"
#include "kernel/family.h"
#include "kernel/formula.h"
#include "kernel/problem.h"
#include "ref/reference.h"

enum { MOST_DIM = 128, PIECE = 4, LINE = PIECE * F32_BYTES };
enum { LANES = 8, COLUMNS = 2, MOST_PIECES = MOST_DIM / (LANES * PIECE) };
enum { GROUP_ROWS = CONV_GROUP_ROWS };

/* A row in shared memory: u of q, k and v; silu(z) gamma; o; each warp's three partial sums over u
 * of q and k; decay and beta. */
enum { AT_Q, AT_K, AT_V, AT_GATE, AT_O, VECTORS };
enum { SQUARES_OF_Q, SQUARES_OF_K, K_TIMES_Q, SUMS };
enum { DECAY, BETA, FACTORS };

typedef struct net {
    const instance *in;
    conv_rows rows;
    unsigned size, warps;                            /* S; warps per part of a block */
    unsigned vector_bytes, sums, factors, row_bytes; /* bytes or offsets in shared memory */
    bool tiled;
    val head, key_head, number; /* value head, its key head, and its index in the key head */
    val first, end;             /* range of the block's rows in the current group */
    val lane, part;             /* index in a part of S threads; index of the part */
    val shared;
} net;

static val shared_row(ptx *p, const net *n, val row)
{
    val place = conv_rows_are_many(n->in) ? rem(p, row, GROUP_ROWS) : row;
    return mad(p, place, n->row_bytes, n->shared);
}

static void put_vector(ptx *p, const net *n, val number, unsigned vector, val value)
{
    st_shared(p, F32, mad(p, n->lane, F32_BYTES, shared_row(p, n, number)),
              vector * n->vector_bytes, value);
}

/* Computes u of q and k, and the warp's partial sums of their squares and of k . q. */
static void make_q_and_k(ptx *p, const net *n, val number)
{
    val channel = mad(p, n->key_head, n->size, n->lane), first = eq(p, n->number, 0);
    unsigned keys = (unsigned)n->in->shape.num_kv_heads * n->size;
    val q = conv_rows_convolve(p, &n->rows, number, channel, first);
    val k = conv_rows_convolve(p, &n->rows, number, add(p, channel, keys), first);
    put_vector(p, n, number, AT_Q, q);
    put_vector(p, n, number, AT_K, k);
    const val sums[SUMS] = { warp_sum(p, mul(p, q, q)), warp_sum(p, mul(p, k, k)),
                             warp_sum(p, mul(p, k, q)) };
    val warp = div(p, n->lane, WARP);
    val at = mad(p, warp, SUMS * F32_BYTES, shared_row(p, n, number));
    PTX_IF (p, eq(p, rem(p, n->lane, WARP), 0))
        for (unsigned i = 0; i < SUMS; i++)
            st_shared(p, F32, at, n->sums + i * F32_BYTES, sums[i]);
}

/* Computes decay and beta from b and alpha. exp and the sigmoid would turn NaN and infinities into
 * numbers; adding 0 times the argument makes the result NaN. */
static void make_factors(ptx *p, const net *n, val number)
{
    const problem_shape *s = &n->in->shape;
    unsigned heads = (unsigned)s->num_heads, group = heads / (unsigned)s->num_kv_heads;
    unsigned ahead = n->tiled ? 0 : n->rows.channels + heads * n->size;
    unsigned apart = n->tiled ? heads : group; /* values between b and alpha */
    val from;
    if (n->tiled) {
        val place = mad(p, add(p, n->rows.row, number), 2 * heads, n->head);
        from = mad_wide(p, place, F32_BYTES, parameter(p, "ba"));
    } else {
        val place = mad(p, n->key_head, 2 * group, n->number);
        from = mad_wide(p, place, F32_BYTES, conv_rows_x(p, &n->rows, number));
    }
    val behind = mul_wide(p, n->head, 4);
    val b = ld_global(p, F32, from, ahead * F32_BYTES);
    val alpha = ld_global(p, F32, from, (ahead + apart) * F32_BYTES);
    val a = ld_const(p, F32, add(p, parameter(p, "a"), behind), 0);
    val t = add(p, alpha, ld_const(p, F32, add(p, parameter(p, "dt"), behind), 0));
    val decay = power_of_e(p, mul(p, a, softplus(p, t)));
    decay = fma(p, t, imm(F32, 0), fma(p, a, imm(F32, 0), decay));
    val beta = fma(p, b, imm(F32, 0), by_sigmoid(p, val_of_f32(1), b));
    val to = shared_row(p, n, number);
    st_shared(p, F32, to, n->factors + DECAY * F32_BYTES, decay);
    st_shared(p, F32, to, n->factors + BETA * F32_BYTES, beta);
}

/* Prepares the recurrence of the group's rows; each part of the block computes other values. */
static void prepare(ptx *p, const net *n)
{
    PTX_FOR (p, number, n->first, n->end, 1) {
        PTX_IF (p, eq(p, n->part, 0))
            make_q_and_k(p, n, number);
        PTX_IF (p, eq(p, n->part, 1)) {
            unsigned ahead = 2 * (unsigned)n->in->shape.num_kv_heads;
            val channel = mad(p, add(p, n->head, ahead), n->size, n->lane);
            put_vector(p, n, number, AT_V,
                       conv_rows_convolve(p, &n->rows, number, channel, imm(PRED, 1)));
        }
        PTX_IF (p, eq(p, n->part, 2)) {
            val place = mad(p, n->head, n->size, n->lane), row = conv_rows_x(p, &n->rows, number);
            val z =
                ld_global(p, F32, mad_wide(p, place, F32_BYTES, row), n->rows.channels * F32_BYTES);
            val gamma = ld_const(p, F32, mad_wide(p, n->lane, F32_BYTES, parameter(p, "gamma")), 0);
            put_vector(p, n, number, AT_GATE, mul(p, by_sigmoid(p, z, z), gamma));
        }
        PTX_IF (p, eq(p, tid_x(p), 3 * n->size))
            make_factors(p, n, number);
    }
}

/* The thread's part of two columns of a state: S / 2 columns apart, every eighth piece of each. */
typedef struct columns {
    unsigned pieces;
    val first; /* index of the first column */
    val piece; /* index of the first piece */
    val place; /* &state[head][first][piece] */
    var values[COLUMNS][MOST_PIECES * PIECE];
} columns;

static int64_t column_at(const net *n, unsigned column, unsigned piece)
{
    unsigned half = n->size / COLUMNS;
    return ((int64_t)column * half * n->size + (int64_t)piece * LANES * PIECE) * F32_BYTES;
}

static columns load_columns(ptx *p, const net *n)
{
    columns c = { .pieces = n->size / (LANES * PIECE) };
    c.first = named(p, "column", div(p, tid_x(p), LANES));
    c.piece = rem(p, tid_x(p), LANES);
    val column = mad(p, n->head, n->size, c.first);
    val value = mad(p, column, n->size, mul(p, c.piece, PIECE));
    c.place = mad_wide(p, value, F32_BYTES, n->rows.state);
    for (unsigned i = 0; i < COLUMNS; i++)
        for (unsigned j = 0; j < c.pieces * PIECE; j++)
            c.values[i][j] = var_f32(p, 0.0f);
    PTX_IF (p, ne(p, n->rows.position, 0))
        for (unsigned i = 0; i < COLUMNS; i++)
            for (unsigned j = 0; j < c.pieces; j++) {
                val4 four = ld_global_v4(p, F32, c.place, column_at(n, i, j));
                for (unsigned l = 0; l < PIECE; l++)
                    assign(p, c.values[i][j * PIECE + l], four.v[l]);
            }
    return c;
}

static void store_columns(ptx *p, const net *n, const columns *c)
{
    for (unsigned i = 0; i < COLUMNS; i++)
        for (unsigned j = 0; j < c->pieces; j++) {
            val4 four;
            for (unsigned l = 0; l < PIECE; l++)
                four.v[l] = get(p, c->values[i][j * PIECE + l]);
            st_global_v4(p, F32, c->place, column_at(n, i, j), four);
        }
}

static val sum_of_parts(ptx *p, const net *n, val row, unsigned which)
{
    val sum = ld_shared(p, F32, row, n->sums + which * F32_BYTES);
    for (unsigned warp = 1; warp < n->warps; warp++)
        sum = add(p, sum, ld_shared(p, F32, row, n->sums + (warp * SUMS + which) * F32_BYTES));
    return sum;
}

/* Returns 1 / max(|u|, epsilon); `which` is the sum of u's squares. */
static val inverse_length(ptx *p, const net *n, val row, unsigned which)
{
    val squares = sum_of_parts(p, n, row, which);
    return min(p, rsqrt(p, squares), (float)(1 / n->in->options.epsilon));
}

/* Loads a piece of u of q or k, at the thread's rows of the state. */
static val4 piece_of(ptx *p, const net *n, const columns *c, val row, unsigned vector,
                     unsigned piece)
{
    val first = mad(p, c->piece, PIECE * F32_BYTES, row);
    return ld_shared_v4(p, F32, first,
                        vector * n->vector_bytes + piece * LANES * PIECE * F32_BYTES);
}

static void step(ptx *p, const net *n, const columns *c, val number)
{
    val row = shared_row(p, n, number), products[COLUMNS][2], added[COLUMNS];
    for (unsigned j = 0; j < c->pieces; j++) { /* state^T u_k and state^T u_q */
        val4 k = piece_of(p, n, c, row, AT_K, j), q = piece_of(p, n, c, row, AT_Q, j);
        for (unsigned i = 0; i < COLUMNS; i++)
            for (unsigned l = 0; l < PIECE; l++) {
                val element = get(p, c->values[i][j * PIECE + l]), *sums = products[i];
                bool first = j == 0 && l == 0;
                sums[0] = first ? mul(p, element, k.v[l]) : fma(p, element, k.v[l], sums[0]);
                sums[1] = first ? mul(p, element, q.v[l]) : fma(p, element, q.v[l], sums[1]);
            }
    }
    for (unsigned i = 0; i < COLUMNS * 2; i++)
        products[i / 2][i % 2] = group_sum(p, products[i / 2][i % 2], LANES);
    val of_k = inverse_length(p, n, row, SQUARES_OF_K);
    val of_q = mul(p, inverse_length(p, n, row, SQUARES_OF_Q), (float)(1 / sqrt((double)n->size)));
    val k_q = mul(p, mul(p, sum_of_parts(p, n, row, K_TIMES_Q), of_k), of_q);
    val decay = ld_shared(p, F32, row, n->factors + DECAY * F32_BYTES);
    val beta = ld_shared(p, F32, row, n->factors + BETA * F32_BYTES);
    val column = mad(p, c->first, F32_BYTES, row);
    for (unsigned i = 0; i < COLUMNS; i++) {
        int64_t behind = (int64_t)i * (n->size / COLUMNS) * F32_BYTES;
        val v = ld_shared(p, F32, column, AT_V * n->vector_bytes + behind);
        val held = mul(p, mul(p, products[i][0], of_k), decay);
        val d = mul(p, sub(p, v, held), beta);
        val o = fma(p, mul(p, products[i][1], of_q), decay, mul(p, k_q, d));
        PTX_IF (p, eq(p, c->piece, 0))
            st_shared(p, F32, column, AT_O * n->vector_bytes + behind, o);
        added[i] = mul(p, d, of_k);
    }
    for (unsigned j = 0; j < c->pieces; j++) {
        val4 k = piece_of(p, n, c, row, AT_K, j); /* loaded again to save registers */
        for (unsigned i = 0; i < COLUMNS; i++)
            for (unsigned l = 0; l < PIECE; l++) {
                var element = c->values[i][j * PIECE + l];
                assign(p, element, fma(p, k.v[l], added[i], mul(p, element, decay)));
            }
    }
}

/* Returns &y[row][head] for a row of the block. */
static val y_of(ptx *p, const net *n, val number)
{
    val head = mad(p, add(p, n->rows.row, number), imm(U32, n->in->shape.num_heads), n->head);
    return mad_wide(p, head, n->size * F32_BYTES, parameter(p, "y"));
}

/* Stores y; each warp processes a row. */
static void store_y(ptx *p, const net *n)
{
    enum { MOST_VALUES = MOST_DIM / WARP };
    val lane = lane_id(p), o[MOST_VALUES];
    PTX_FOR (p, number, add(p, n->first, warp_id(p)), n->end, ptx_block(p) / WARP) {
        val from = mad(p, lane, F32_BYTES, shared_row(p, n, number)), squares = imm(F32, 0);
        for (unsigned i = 0; i < n->warps; i++) {
            o[i] = ld_shared(p, F32, from, AT_O * n->vector_bytes + i * WARP * F32_BYTES);
            squares = i ? fma(p, o[i], o[i], squares) : mul(p, o[i], o[i]);
        }
        val mean = mul(p, warp_sum(p, squares), 1.0f / (float)n->size);
        val factor = norm_factor_or_nan(p, n->in, mean);
        val to = mad_wide(p, lane, F32_BYTES, y_of(p, n, number));
        for (unsigned i = 0; i < n->warps; i++) {
            int64_t behind = i * WARP * F32_BYTES;
            val gate = ld_shared(p, F32, from, AT_GATE * n->vector_bytes + behind);
            st_global(p, F32, to, behind, mul(p, mul(p, o[i], factor), gate));
        }
    }
}

static net net_new(ptx *p, const instance *in)
{
    const problem_shape *s = &in->shape;
    net n = { .in = in,
              .rows = { .in = in, .taps = DELTA_CONV },
              .size = (unsigned)s->head_dim,
              .warps = (unsigned)s->head_dim / WARP };
    n.rows.state_values = s->num_heads * s->head_dim * s->head_dim;
    n.rows.channels = (unsigned)(2 * s->num_kv_heads + s->num_heads) * n.size;
    n.tiled = in->options.layout == DELTA_TILED;
    n.rows.columns = n.rows.channels + (unsigned)s->num_heads * (n.size + (n.tiled ? 0 : 2));
    n.vector_bytes = n.size * F32_BYTES;
    n.sums = VECTORS * n.vector_bytes;
    n.factors = n.sums + n.warps * SUMS * F32_BYTES;
    n.row_bytes = (n.factors + FACTORS * F32_BYTES + LINE - 1) / LINE * LINE;
    n.shared = shared_array(p, "rows", F32,
                            (conv_rows_are_many(in) ? GROUP_ROWS : (unsigned)s->m) * n.row_bytes /
                                F32_BYTES);
    if (conv_rows_are_many(in))
        n.rows.word = shared_array(p, "word", U32, 1);
    unsigned keys = (unsigned)s->num_kv_heads, group = (unsigned)s->num_heads / keys;
    if (conv_rows_are_many(in)) { /* z is the index of the value head in its key head */
        n.key_head = named(p, "key_head", ctaid_x(p));
        n.number = named(p, "number", ctaid_z(p));
        n.head = named(p, "head",
                       n.tiled ? mad(p, n.number, imm(U32, keys), n.key_head)
                               : mad(p, n.key_head, imm(U32, group), n.number));
    } else {
        n.head = named(p, "head", ctaid_x(p));
        n.key_head = n.tiled ? rem(p, n.head, keys) : div(p, n.head, group);
        n.number = n.tiled ? div(p, n.head, keys) : rem(p, n.head, group);
    }
    n.part = div(p, warp_id(p), n.warps);
    n.lane = rem(p, tid_x(p), n.size);
    return n;
}

/* Processes the rows of a group. */
static void step_rows(ptx *p, const net *n, const columns *c)
{
    phase(p, "convolve and gate");
    prepare(p, n);
    barrier(p);
    phase(p, "delta rule, row by row");
    ptx_loop_work(p, COLUMNS * c->pieces * PIECE, "elements of the state");
    PTX_FOR (p, number, n->first, n->end, 1)
        step(p, n, c, number);
}

static void step_many(ptx *p, net *n, const columns *c)
{
    PTX_FOR (p, group, imm(U32, 0), n->rows.count, GROUP_ROWS) {
        n->first = group;
        n->end = min(p, add(p, group, GROUP_ROWS), n->rows.count);
        step_rows(p, n, c);
        barrier(p);
        phase(p, "norm and store y");
        store_y(p, n);
        barrier(p);
    }
    phase(p, "store the state");
    store_columns(p, n, c);
    phase(p, "store the last inputs to the ring");
    const problem_shape *s = &n->in->shape;
    unsigned keys = (unsigned)s->num_kv_heads, group = (unsigned)s->num_heads / keys;
    PTX_IF (p, eq(p, n->part, 2))
        conv_rows_keep_last(p, &n->rows, mad(p, add(p, n->head, 2 * keys), n->size, n->lane));
    val number = mad(p, n->rows.row, imm(U32, keys), n->key_head);
    val counter = mad_wide(p, number, sizeof(uint32_t), parameter(p, "counters"));
    val is_last = block_is_last(p, counter, imm(U32, group), n->rows.word);
    PTX_IF (p, bit_and(p, is_last, lt(p, n->part, 2))) /* part 0: q, part 1: k */
        conv_rows_keep_last(p, &n->rows,
                            mad(p, mad(p, n->part, imm(U32, keys), n->key_head), n->size, n->lane));
}

static void delta_net_build(ptx *p, const instance *in)
{
    phase(p, "find the block's rows");
    net n = net_new(p, in);
    conv_rows_find(p, &n.rows);
    n.rows.x = mad_wide(p, n.rows.row, n.rows.columns * F32_BYTES, parameter(p, "x"));
    PTX_IF (p, ge(p, n.rows.position, imm(U32, in->shape.max_seq_len))) {
        PTX_IF (p, eq(p, n.part, 0))
            st_global(p, F32, mad_wide(p, n.lane, F32_BYTES, y_of(p, &n, imm(U32, 0))), 0,
                      imm(F32, 0));
        ret(p);
    }
    phase(p, "load the state");
    columns c = load_columns(p, &n);
    if (conv_rows_are_many(in))
        step_many(p, &n, &c);
    else {
        n.first = imm(U32, 0);
        n.end = n.rows.count;
        step_rows(p, &n, &c);
        phase(p, "store the state");
        store_columns(p, &n, &c);
        barrier(p);
        phase(p, "norm and store y");
        store_y(p, &n);
    }
}

static const char *check_delta_net(const instance *in, arena *a, const char **blamed)
{
    long long heads = in->shape.num_heads, keys = in->shape.num_kv_heads, dim = in->shape.head_dim;
    long long of_x =
        (2 * keys + 2 * heads) * dim + (in->options.layout == DELTA_GROUPED ? 2 * heads : 0);
    return conv_rows_check(a, "num_kv_heads", heads, keys, of_x, blamed);
}

#define CHANNELS "(2*num_kv_heads+num_heads)*head_dim"

static int64_t heads_together(const instance *in)
{
    return conv_rows_are_many(in) ? in->shape.num_heads / in->shape.num_kv_heads : 1;
}

static int64_t heads_across(const instance *in)
{
    return in->shape.num_heads / heads_together(in);
}

static int64_t shared_bytes(const instance *in)
{
    const char *rows = "4*min(m, 8)*(5*head_dim+4*ceil_div(3*head_dim/32+2, 4))";
    return formula_value(rows, in, NULL) + (conv_rows_are_many(in) ? F32_BYTES : 0);
}

const family delta_net = {
    .name = "delta_net",
    .summary = "one step of a gated delta net: convolution, delta rule and gated norm",
    .computes = "S[h] = decay S[h] + k d', y[m,h] = rmsnorm(S[h]' q) * gamma * silu(z)",
    F32_FAMILY(OP_DELTA_NET, delta_net_build, ref_delta_net, 5e-7),
    .keys = KEYS(KEY_NUMBER("head_dim", "values per head, e.g. 128", shape.head_dim, WARP, MOST_DIM,
                            .multiple_of = WARP, .required = true, .tag = "d"),
                 KEY_NUMBER("num_heads", "value heads, e.g. 32", shape.num_heads, 1, 65535,
                            .required = true, .tag = "h"),
                 KEY_NUMBER("num_kv_heads", "key heads, e.g. 16", shape.num_kv_heads, 1, 65535,
                            .required = true, .tag = "kv"),
                 KEY_WORD("layout", "key head of value head h: grouped h/r, tiled h%num_kv_heads",
                          options.layout, layout_choices),
                 KEYS_OF_SEQUENCES,
                 KEY_REAL("epsilon", "epsilon of the norms, e.g. 1e-6", options.epsilon, "eps",
                          epsilon_range)),
    .params = PARAMS(
        OUT(F32, y, "m*num_heads*head_dim", 4),
        UPDATED(F32, states, "num_heads*head_dim*head_dim", "2*num_heads*head_dim*head_dim"),
        UPDATED(F32, convs, "16*" CHANNELS, "4*" CHANNELS),
        COUNTERS(counters, "m*num_kv_heads", .only_with = KEY_FIELD(shape.m),
                 .only_above = GROUP_ROWS),
        IN_FITTED(F32, x, "m*((2*num_kv_heads+2*num_heads)*head_dim+2*num_heads*(1-layout))", 4),
        IN(F32, conv, "4*" CHANNELS, 16), IN_FITTED(F32, dt, "num_heads", 4),
        IN_FITTED(F32, a, "num_heads", 4), IN(F32, gamma, "head_dim", 4),
        IN_FITTED(U32, positions, "m", 4),
        IN(F32, ba, "m*2*num_heads", 4, .only_with = KEY_FIELD(options.layout),
           .random = RANDOM_FITTED),
        ROW_SEQUENCES),
    .launch = { .block = "4*head_dim",
                .grid = { "heads", "m", "together" },
                .sizes = SIZES(
                    { "heads", heads_across, "value heads; with m > 8, key heads" },
                    { "together", heads_together, "with m > 8, value heads per key head; else 1" },
                    { "shared", shared_bytes, "bytes of up to 8 rows; with m > 8, a word more" }),
                .shared = "shared",
                .dealt = true,
                .overlap = WAITS_FIRST,
                .registers = 64 },
    .check = check_delta_net,
    .fit = ref_fit_delta_net,
};
