/* RoPE of rows of q and optionally of k, without a cache. The results may alias the inputs if their
 * types are equal.
 *
 * A thread has up to four neighbouring values of a head and their partners. For pairs (2i, 2i+1)
 * the partners are among them; for pairs (i, i + n_rot/2) they are n_rot/2 values away. It reads
 * both before it writes either, and no other thread reads them. Values after the first n_rot are
 * copied.
 *
 * Angles are counted in turns, in fixed point: see rows/rope.c. */
#include "gen/rows/rope.h"
#include "gen/common/values.h"
#include "ref/reference.h"

enum { THREADS = 128, MOST_LOADED = 4 };

/* Returns the neighbouring values that a thread loads: a power of two that divides every run. */
static unsigned loaded_values(const instance *in)
{
    const rope_options *o = &in->options.rope;
    unsigned count = MOST_LOADED;
    int64_t run = o->style == ROPE_NORM ? o->dims : o->dims / 2;
    while (run % count || in->shape.head_dim % count)
        count /= 2;
    return count;
}

static unsigned turning_threads(const instance *in)
{
    const rope_options *o = &in->options.rope;
    return (unsigned)(o->style == ROPE_NORM ? o->dims : o->dims / 2) / loaded_values(in);
}

static int64_t threads_of_head(const instance *in)
{
    return turning_threads(in) + (in->shape.head_dim - in->options.rope.dims) / loaded_values(in);
}

typedef struct heads {
    const instance *in;
    format x, y;
    val from, to; /* addresses of the head's first value */
    val is_k, position;
} heads;

static heads heads_new(ptx *p, const instance *in, val head)
{
    const problem_shape *s = &in->shape;
    heads h = { .in = in, .x = instance_activations(in), .y = instance_result(in) };
    val row = named(p, "row", ctaid_y(p));
    val number = mad(p, row, imm(U32, s->num_heads), head);
    val from = parameter(p, "q"), to = parameter(p, "q_out");
    h.is_k = imm(PRED, 0);
    if (s->num_kv_heads) {
        h.is_k = ge(p, head, s->num_heads);
        val number_of_k = mad(p, row, imm(U32, s->num_kv_heads), sub(p, head, s->num_heads));
        number = select(p, h.is_k, number_of_k, number);
        from = select(p, h.is_k, parameter(p, "k"), from);
        to = select(p, h.is_k, parameter(p, "k_out"), to);
    }
    h.from = mad_wide(p, number, s->head_dim * formats[h.x].block_bytes, from);
    h.to = mad_wide(p, number, s->head_dim * formats[h.y].block_bytes, to);
    h.position = ld_const(p, U32, mad_wide(p, row, 4, parameter(p, "positions")), 0);
    return h;
}

static void load_values(ptx *p, const heads *h, val place, val *values)
{
    val at = mad_wide(p, place, formats[h->x].block_bytes, h->from);
    values_load(p, h->x, at, loaded_values(h->in), values);
}

static void store_values(ptx *p, const heads *h, val place, val *values)
{
    val at = mad_wide(p, place, formats[h->y].block_bytes, h->to);
    if (h->in->options.rope.temperature_length > 0) {
        val factor = rope_temperature(p, h->in, h->position);
        if (h->in->shape.num_kv_heads)
            factor = select(p, h->is_k, 1.0f, factor);
        for (unsigned i = 0; i < loaded_values(h->in); i++)
            values[i] = mul(p, values[i], factor);
    }
    values_store(p, h->y, at, loaded_values(h->in), values);
}

static void turn_pair(ptx *p, const heads *h, val pair, val *first, val *second)
{
    rope_turn by = rope_turn_at(p, h->in, pair, h->position);
    val turned = fma(p, *first, by.cos, mul(p, *second, neg(p, by.sin)));
    *second = fma(p, *second, by.cos, mul(p, *first, by.sin));
    *first = turned;
}

static void turn(ptx *p, const heads *h, val thread)
{
    unsigned count = loaded_values(h->in), half = (unsigned)h->in->options.rope.dims / 2;
    val place = mul(p, thread, count), values[2 * MOST_LOADED], *partners = values + MOST_LOADED;
    load_values(p, h, place, values);
    if (h->in->options.rope.style == ROPE_NORM) {
        for (unsigned i = 0; i < count; i += 2)
            turn_pair(p, h, add(p, mul(p, thread, count / 2), i / 2), &values[i], &values[i + 1]);
        store_values(p, h, place, values);
        return;
    }
    load_values(p, h, add(p, place, half), partners);
    for (unsigned i = 0; i < count; i++)
        turn_pair(p, h, add(p, place, i), &values[i], &partners[i]);
    store_values(p, h, place, values);
    store_values(p, h, add(p, place, half), partners);
}

static void rope_rows_build(ptx *p, const instance *in)
{
    unsigned of_head = (unsigned)threads_of_head(in), turning = turning_threads(in);
    int64_t all = (in->shape.num_heads + in->shape.num_kv_heads) * of_head;
    val number = mad(p, ctaid_x(p), THREADS, tid_x(p));
    ret_if(p, ge(p, number, all));
    heads h = heads_new(p, in, named(p, "head", div(p, number, of_head)));
    val thread = rem(p, number, of_head);
    if (turning == of_head) {
        turn(p, &h, thread);
        return;
    }
    PTX_IF (p, lt(p, thread, turning))
        turn(p, &h, thread);
    PTX_ELSE (p) {
        unsigned count = loaded_values(h.in);
        val values[MOST_LOADED];
        val place = mul(p, sub(p, thread, turning_threads(h.in)), count);
        place = add(p, place, h.in->options.rope.dims);
        load_values(p, &h, place, values);
        store_values(p, &h, place, values);
    }
}

static const char *check_rope_rows(const instance *in, arena *a, const char **blamed)
{
    if (in->options.rope.dims > in->shape.head_dim)
        return blame_key(a, blamed, "n_rot",
                         "n_rot = %lld is more than head_dim = %lld; use at most %lld",
                         (long long)in->options.rope.dims, (long long)in->shape.head_dim,
                         (long long)in->shape.head_dim);
    return check_rope(in, a, blamed);
}

const family rope = {
    .name = "rope",
    .summary = "RoPE of rows of q and k, without a cache, in place if wanted",
    .computes = "q_out[m,h] = rope(q[m,h], positions[m]), k_out[m,h] = rope(k[m,h], positions[m])",
    F32_FAMILY(OP_ROPE, rope_rows_build, ref_rope, 6e-7),
    .keys =
        KEYS(KEY_HEAD_DIM(2, PROBLEM_MOST_HEAD_DIM), KEY_NUM_HEADS,
             KEY_NUMBER("num_kv_heads", "KV heads, e.g. 8; 0 = no k", shape.num_kv_heads, 0, 65535,
                        .zero_is_none = true, .tag = "kv"),
             KEY_NUMBER("m", "rows", shape.m, 1, 65535, .def = 1, .at_run_time = true, .tag = "m"),
             KEY_TYPE("type of q and k"), KEY_OUT("type of the results", FLOAT_TYPES),
             KEY_WORD("rope", "pairs: norm (2i, 2i+1), neox (i, i+n_rot/2)", options.rope.style,
                      rope_style_choices,
                      .allowed = UINT64_C(1) << ROPE_NORM | UINT64_C(1) << ROPE_NEOX),
             KEY_N_ROT, KEYS_ROPE("n_rot"), KEYS_ROPE_SECTIONS, KEY_DIMS),
    .params = PARAMS(TYPED_OUT(q_out, "m*num_heads*head_dim"),
                     { TYPED(k_out, PARAM_OUT, y_type, "m*num_kv_heads*head_dim"),
                       .only_with = KEY_FIELD(shape.num_kv_heads), .of_others = true },
                     TYPED_IN(q, "m*num_heads*head_dim"),
                     { TYPED(k, PARAM_IN, x_type, "m*num_kv_heads*head_dim"),
                       .only_with = KEY_FIELD(shape.num_kv_heads) },
                     IN(U32, positions, "m", 4, .random = RANDOM_FITTED), ROPE_FACTORS("n_rot/2")),
    .launch = { .block = "128",
                .grid = { "ceil_div((num_heads+num_kv_heads)*threads, 128)", "m" },
                .others = "ceil_div((num_heads+num_kv_heads)*threads, 128)"
                          "-ceil_div(num_heads*threads, 128)",
                .sizes = SIZES({ "threads", threads_of_head, "per head" }),
                .overlap = WAITS_FIRST,
                .registers = 64 },
    .check = check_rope_rows,
    .fit = ref_fit_turns,
};
