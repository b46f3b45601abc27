/* The token that comes next in each of m sequences: the largest logit's, or one by chance, as
 * ref_sample says. The order of filters, top_k, top_p, min_p, temperature, is that of llama.cpp.
 *
 * All that changes from step to step, or from sequence to sequence, is in device memory, so that a
 * captured graph never needs an update: positions, and for each row how to choose, SAMPLING_WORDS
 * words (see ref/reference.h). What the next step needs comes out: its token, its position (that of
 * the logits plus 1), and the positions that its attention is over (plus 2, its own being in the
 * cache by then). Outputs may be positions itself.
 *
 * A block of 1024 threads has a row, fewer of a short one. It looks for the largest logit, and with
 * temperature 0 that is all. Else it gathers a few candidates in shared memory (sampler_few.c).
 * More than there is room for, as without top_k or with one above some 350, stay where they are
 * (sampler_many.c): that gives the same token, by a hundred passes over the row in place of two.
 *
 * Sums are of whole numbers, and everything that leads to them is rounded in one way: the same seed
 * gives the same tokens on every GPU.
 */
#include "gen/attention_keys.h"
#include "gen/blocks/sampler.h"
#include "family/formula.h"

static void take_first(ptx *p, const sampler *s, void *context, val height, val number)
{
    (void)s;
    const first_number *f = context; /* numbers ascend: of equal heights the one there stays */
    val ahead = gt(p, height, f->height);
    assign(p, f->height, select(p, ahead, height, f->height));
    assign(p, f->number, select(p, ahead, number, f->number));
}

/* Finds the first token of the row, told to all, and leaves each thread's own height in f. */
static val find_first(ptx *p, sampler *s)
{
    first_number f = { var_u32(p, 0), var_u32(p, UINT32_MAX) };
    ptx_loop_work(p, row_turn(s, AT_ONCE), "logits");
    over_row(p, s, AT_ONCE, take_first, &f);
    val own = get(p, f.height), lane = lane_id(p);
    first_of_warp(p, &f);
    PTX_IF (p, eq(p, lane, 0)) {
        val at = mad(p, warp_id(p), 2 * WORD, s->parts);
        st_shared(p, U32, at, 0, f.height);
        st_shared(p, U32, at, WORD, f.number);
    }
    barrier(p);
    PTX_IF (p, eq(p, warp_id(p), 0)) {
        assign(p, f.height, imm(U32, 0));
        PTX_IF (p, lt(p, lane, s->warps)) {
            val at = mad(p, lane, 2 * WORD, s->parts);
            assign(p, f.height, ld_shared(p, U32, at, 0));
            assign(p, f.number, ld_shared(p, U32, at, WORD));
        }
        first_of_warp(p, &f);
        PTX_IF (p, eq(p, lane, 0)) {
            st_shared(p, U32, s->found, 0, f.height);
            st_shared(p, U32, s->found, WORD, f.number);
        }
    }
    barrier(p);
    s->best = named(p, "best", ld_shared(p, U32, s->found, 0));
    s->number = ld_shared(p, U32, s->found, WORD);
    return own;
}

static val at_row(ptx *p, const sampler *s, const char *name)
{
    return mad_wide(p, s->row, WORD, parameter(p, name));
}

static void store_row(ptx *p, const sampler *s, val token, val position, val length)
{
    PTX_IF (p, eq(p, tid_x(p), 0)) {
        if (token.kind)
            st_global(p, U32, s->token, 0, token);
        st_global(p, U32, at_row(p, s, "next_position"), 0, position);
        st_global(p, U32, at_row(p, s, "length"), 0, length);
    }
}

static sampler sampler_new(ptx *p, const instance *in)
{
    sampler s = { .in = in,
                  .n = (unsigned)in->shape.n,
                  .warps = (unsigned)formula_value("warps", in, NULL) };
    s.row = named(p, "row", ctaid_x(p));
    s.logits = add(p, parameter(p, "logits"), mul_wide(p, s.row, imm(U32, s.n * WORD)));
    s.token = at_row(p, &s, "token");
    s.heights = shared_array(p, "heights", U32, sampler_most_candidates(&s));
    s.numbers = shared_array(p, "numbers", U32, sampler_most_candidates(&s));
    s.weights = shared_array(p, "weights", U32, sampler_most_candidates(&s));
    s.parts = shared_array(p, "parts", U64, s.warps + s.warps % 2);
    s.found = shared_array(p, "found", U32, FOUND_WORDS);
    return s;
}

/* How the row's token is chosen. */
static void load_way(ptx *p, sampler *s, val position)
{
    val at = mad_wide(p, s->row, SAMPLING_WORDS * WORD, parameter(p, "sampling"));
    val4 first = ld_const_v4(p, U32, at, 0), second = ld_const_v4(p, U32, at, 4 * WORD);
    val k = first.v[SAMPLING_TOP_K];
    s->temperature = bits_as(p, F32, first.v[SAMPLING_TEMPERATURE]);
    s->top_k = named(p, "top_k", select(p, eq(p, k, 0), imm(U32, s->n), min(p, k, s->n)));
    s->top_p = bits_as(p, F32, first.v[SAMPLING_TOP_P]);
    s->min_p = bits_as(p, F32, first.v[SAMPLING_MIN_P]);
    s->chance = named(
        p, "chance",
        philox(p, position, second.v[SAMPLING_SEED_LOW - 4], second.v[SAMPLING_SEED_HIGH - 4]));
    s->inverse = min(p, rcp(p, s->temperature), 0x1.fffffep127f);
}

static void build(ptx *p, const instance *in)
{
    const val unused = imm(U32, UINT32_MAX);
    sampler s = sampler_new(p, in);
    val position = named(p, "position", ld_global(p, U32, at_row(p, &s, "positions"), 0));
    val idle = eq(p, position, unused);
    PTX_IF (p, idle)
        store_row(p, &s, unused, unused, imm(U32, 0));
    ret_if(p, idle);
    load_way(p, &s, position);
    phase(p, "the largest logit");
    val own = find_first(p, &s);
    val drawn = bit_and(p, gt(p, s.best, HEIGHT_MINUS_INFINITY), lt(p, s.best, HEIGHT_INFINITY));
    PTX_IF (p, bit_and(p, drawn, gt(p, s.temperature, 0.0f))) {
        s.most = counts_as(p, &s, s.best);
        phase(p, "candidates");
        val count = gather_candidates(p, &s, own);
        bool all_fit = s.n <= sampler_most_candidates(&s);
        PTX_IF (p, all_fit ? imm(PRED, 1) : le(p, count, sampler_most_candidates(&s)))
            draw_candidate(p, &s, count);
        PTX_ELSE (p) {
            phase(p, "the same of more candidates");
            draw_of_all(p, &s);
        }
    }
    PTX_ELSE (p) {
        val none =
            bit_or(p, eq(p, s.best, imm(U32, HEIGHT_NAN)), le(p, s.best, HEIGHT_MINUS_INFINITY));
        PTX_IF (p, eq(p, tid_x(p), 0))
            st_global(p, U32, s.token, 0, select(p, none, unused, s.number));
    }
    store_row(p, &s, (val){ 0 }, add(p, position, 1), add(p, position, 2));
}

static const key keys[] = {
    { .name = "n",
      .summary = "tokens",
      .field = KEY_FIELD(shape.n),
      .min = 1,
      .max = 1 << 28,
      .required = true,
      .tag = "n" },
    KEY_ROW_COUNT,
    KEY_SCALE("of logits"),
    { .name = "softcap",
      .summary = "c of c tanh(logit/c)",
      .field = KEY_FIELD(options.softcap),
      .tag = "cap",
      .real = &softcap_range },
    KEY_END,
};

static const param params[] = {
    OUT(U32, token, "m", 4),
    OUT(U32, next_position, "m", 4),
    OUT(U32, length, "m", 4),
    IN(F32, logits, "m*n", 16),
    IN_FITTED(U32, positions, "m", 4),
    IN_FITTED(U32, sampling, "m*8", 16),
    PARAM_END,
};

/* Three words a candidate; two words a warp, in pairs; and what is told to all. */
static const term terms[] = {
    { "warps", "min(32, ceil_div(n, 32))" },
    { "candidates", "min(512, 32*warps)" }, /* more take longer than to look through the row */
    { NULL, NULL },
};

const family sample = {
    .name = "sample",
    .summary = "the next token of m rows of logits: the largest or drawn, and its position",
    .computes =
        "token[m] = one of n by logits[m,n], next_position = positions+1, length = positions+2",
    .op = OP_SAMPLE,
    .same_bits = true,
    .activations = FORMAT_F32,
    .keys = keys,
    .params = params,
    .launch = { .block = "32*warps",
                .grid = { "m" },
                .shared = "12*candidates + 16*ceil_div(warps, 2) + 16",
                .terms = terms,
                .overlap = WAITS_FIRST,
                .registers = 64 },
    .build = build,
    .fit = ref_fit_sampling,
    .reference = ref_sample,
    .tolerance = 0,
};
