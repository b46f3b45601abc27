/* Samples the next token of each of m rows of logits: the largest logit's token, or a random one
 * (ref_sample defines it). The filters run in the order of llama.cpp: top_k, top_p, min_p,
 * temperature.
 *
 * Everything that changes between steps or sequences is in device memory, so that a captured graph
 * never needs an update: positions, and SAMPLING_WORDS words of settings per row (see
 * ref/reference.h). The outputs are the inputs of the next step: the token, its position (position
 * of the logits + 1), and the length for attention (position + 2, which includes the token). The
 * output next_position may alias positions.
 *
 * A block processes a row, or a part of a long row. It finds the largest logit. With temperature 0,
 * the row's last block then compares the results of all parts. Otherwise each block gathers
 * candidates, the tokens that may be among the row's first top_k: in shared memory, or in global
 * memory for the last block, which gathers the candidates of all parts (sampler_few.c). If the
 * candidates do not fit (without top_k, or with a top_k above about 300), the last block processes
 * the whole row (sampler_many.c). It gives the same token, with about 20 passes over the row each
 * for top_k, top_p and the draw.
 *
 * Sums are of integers, and every step before them has one defined rounding. So a seed gives the
 * same tokens on every GPU. */
#include <math.h>

#include "gen/common/reduce.h"
#include "gen/sampling/sampler.h"
#include "kernel/formula.h"
#include "kernel/problem.h"
#include "ref/reference.h"

/* A thread's first token so far, ignoring NaN, and whether all its logits were numbers. */
typedef struct first_logit {
    var logit, number, all_numbers;
} first_logit;

/* Keeps the first token of the order. Numbers ascend, so of equal logits the earlier one stays,
 * also if a token is visited twice. */
static void take_first(ptx *p, const sampler *s, void *context, val is_new, val logit, val number)
{
    (void)s;
    (void)is_new;
    const first_logit *f = context;
    val is_first = gt(p, logit, f->logit);
    assign(p, f->logit, select(p, is_first, logit, f->logit));
    assign(p, f->number, select(p, is_first, number, f->number));
    assign(p, f->all_numbers, bit_and(p, f->all_numbers, eq(p, logit, logit)));
}

/* Finds the first of the thread's tokens and returns its height: minus infinity if the thread has
 * no token, NaN if it saw one. */
static val first_of_thread(ptx *p, const sampler *s, const first_number *first)
{
    first_logit f = { var_f32(p, -INFINITY), var_u32(p, UINT32_MAX), var_like(p, imm(PRED, 1)) };
    ptx_loop_work(p, s->n % 4 ? 1 : 4 * AT_ONCE, "logits");
    visit_tokens(p, s, s->first, s->end, AT_ONCE, take_first, &f);
    val height = height_of_float(p, get(p, f.logit));
    val own = select(p, get(p, f.all_numbers), height, imm(U32, HEIGHT_NAN));
    assign(p, first->height, own);
    assign(p, first->number, f.number);
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
                  .warps = formula_unsigned("warps", in),
                  .parts = formula_unsigned("parts", in),
                  .first = imm(U32, 0),
                  .end = imm(U32, (unsigned)in->shape.n),
                  .adjusts = in->options.history || in->options.biases || in->options.mask };
    s.threads = s.warps * WARP;
    s.row = named(p, "row", ctaid_x(p));
    s.sequence = named(p, "sequence", ld_const(p, U32, at_row(p, &s, "sequences"), 0));
    s.logits = add(p, parameter(p, "logits"), mul_wide(p, s.row, imm(U32, s.n * WORD)));
    s.model_logits = s.logits;
    s.token = at_row(p, &s, "token");
    if (s.parts > 1) {
        val words = imm(U32, s.parts * formula_unsigned("told_words", in));
        s.part = named(p, "part", ctaid_z(p));
        s.first = mul(p, s.part, PART);
        s.end = min(p, add(p, s.first, PART), s.n);
        s.told = add(p, parameter(p, "told"), mul(p, mul_wide(p, s.row, words), WORD));
    }
    s.heights = shared_array(p, "heights", U32, s.threads);
    s.numbers = shared_array(p, "numbers", U32, s.threads);
    s.weights = shared_array(p, "weights", U32, s.threads);
    s.of_warps = shared_array(p, "of_warps", U64, s.warps + s.warps % 2);
    s.found = shared_array(p, "found", U32, FOUND_WORDS);
    return s;
}

/* For a row in several parts: ends all blocks but the last one, which sees the results of the
 * others. All blocks have read the row's position by then, so the last block may overwrite it. */
static void wait_for_parts(ptx *p, const sampler *s, const first_number *first, val own, val idle)
{
    store_first(p, s, first);
    if (s->in->options.logprobs)
        PTX_IF (p, bit_not(p, idle))
            rank_part(p, s);
    phase(p, "gather the part's candidates");
    PTX_IF (p, bit_and(p, gt(p, s->temperature, 0.0f), bit_not(p, idle)))
        gather_candidates(p, s, own);
    phase(p, "check for the row's last block");
    val counter = mad_wide(p, s->row, WORD, parameter(p, "counters"));
    val ticket = add(p, s->found, FOUND_TICKET);
    ret_if(p, bit_not(p, block_is_last(p, counter, imm(U32, s->parts), ticket)));
    phase(p, "find the largest logit of all parts");
}

static void draw(ptx *p, sampler *s, val position, val own)
{
    s->inverse = min(p, rcp(p, s->temperature), 0x1.fffffep127f);
    s->chance = named(p, "chance", philox(p, position, s->seed[0], s->seed[1]));
    s->most = scaled_logit(p, s, s->best);
    phase(p, "gather candidates");
    val count = s->parts > 1 ? gather_told(p, s) : gather_candidates(p, s, own);
    bool all_fit = s->n <= s->threads;
    PTX_IF (p, all_fit ? imm(PRED, 1) : le(p, count, s->threads))
        draw_candidate(p, s, count);
    PTX_ELSE (p) {
        phase(p, "draw from all tokens");
        draw_of_all(p, s);
    }
}

static void sample_build(ptx *p, const instance *in)
{
    const val unused = imm(U32, UINT32_MAX);
    sampler s = sampler_new(p, in);
    val position = named(p, "position", ld_global(p, U32, at_row(p, &s, "positions"), 0));
    val at = mad_wide(p, s.sequence, SAMPLING_WORDS * WORD, parameter(p, "sampling"));
    val4 low = ld_const_v4(p, U32, at, 0), high = ld_const_v4(p, U32, at, 4 * WORD);
    val k = low.v[SAMPLING_TOP_K];
    s.temperature = bits_as(p, F32, low.v[SAMPLING_TEMPERATURE]);
    s.top_k = named(p, "top_k", select(p, eq(p, k, 0), imm(U32, s.n), min(p, k, s.n)));
    s.top_p = bits_as(p, F32, low.v[SAMPLING_TOP_P]);
    s.min_p = bits_as(p, F32, low.v[SAMPLING_MIN_P]);
    s.seed[0] = high.v[SAMPLING_SEED_LOW - 4];
    s.seed[1] = high.v[SAMPLING_SEED_HIGH - 4];
    if (s.adjusts)
        adjust_logits(p, &s, high, position);
    phase(p, "find the largest logit");
    first_number first = { var_u32(p, 0), var_u32(p, UINT32_MAX) };
    val own = first_of_thread(p, &s, &first), idle = eq(p, position, unused);
    first_of_warp(p, &first);
    if (s.parts > 1)
        wait_for_parts(p, &s, &first, own, idle);
    PTX_IF (p, idle) {
        store_row(p, &s, unused, unused, imm(U32, 0));
        if (in->options.logprobs)
            store_logprobs(p, &s, false);
    }
    ret_if(p, idle);
    first_of_all(p, &s, &first, s.parts > 1);
    val drawn = bit_and(p, gt(p, s.best, HEIGHT_MINUS_INFINITY), lt(p, s.best, HEIGHT_INFINITY));
    PTX_IF (p, bit_and(p, drawn, gt(p, s.temperature, 0.0f))) {
        draw(p, &s, position, own);
    }
    PTX_ELSE (p) {
        val none =
            bit_or(p, eq(p, s.best, imm(U32, HEIGHT_NAN)), le(p, s.best, HEIGHT_MINUS_INFINITY));
        PTX_IF (p, eq(p, tid_x(p), 0))
            st_global(p, U32, s.token, 0, select(p, none, unused, s.number));
    }
    store_row(p, &s, (val){ 0 }, add(p, position, 1), add(p, position, 2));
    if (in->options.logprobs)
        store_logprobs(p, &s, true);
}

static const choice mask_choices[] = CHOICES({ "none", "" }, { "bits", "_mask" });

enum { MOST_BIASES = 1 << 16, MOST_LOGPROBS = 20 };

/* Shared memory: three words per candidate, two words per warp (padded to pairs), and four words
 * for all. The words of a part in global memory: two per warp, two per candidate, and four. */
const family sample = {
    .name = "sample",
    .summary = "next token of each row of logits, greedy or sampled, and its position",
    .computes = "token[m] = sample(logits[m,n]), next_position = positions+1, length = positions+2",
    F32_FAMILY(OP_SAMPLE, sample_build, ref_sample, 1e-6),
    .keys =
        KEYS(KEY_NUMBER("n", "tokens of the vocabulary, e.g. 128256", shape.n, 1,
                        PROBLEM_MOST_VOCAB, .required = true, .tag = "n"),
             KEY_ROW_COUNT, KEY_SCALE("factor of the logits"),
             KEY_REAL("softcap", "c in c tanh(logit/c), e.g. 30", options.softcap, "cap",
                      RANGE(.max = 1e6, .def_text = "none")),
             KEY_HISTORY("token ids kept per sequence for penalties, e.g. 256; 0: none"),
             KEY_NUMBER("biases", "most biases of a sequence, e.g. 64; 0: none", options.biases, 0,
                        MOST_BIASES, .zero_is_none = true, .tag = "biases"),
             KEY_WORD("mask", "bits: an input has the allowed tokens", options.mask, mask_choices),
             KEY_NUMBER("logprobs", "best tokens with log-probabilities; 0: none", options.logprobs,
                        0, MOST_LOGPROBS, .zero_is_none = true, .tag = "logprobs")),
    .params =
        PARAMS(OUT(U32, token, "m", 4), OUT(U32, next_position, "m", 4), OUT(U32, length, "m", 4),
               OUT(F32, logprobs, "m*(1+logprobs)", 4, .only_with = KEY_FIELD(options.logprobs),
                   .holds = "a row: of its token, then of the best tokens; NaN: none"),
               OUT(U32, best, "m*logprobs", 4, .only_with = KEY_FIELD(options.logprobs),
                   .holds = "the best tokens of the model's logits; 2^32-1: none"),
               SCRATCH(F32, adjusted, "m*n", 16, .row = KEY_FIELD(shape.n),
                       .only_with = KEY_FIELD(options.history),
                       .or_with = { KEY_FIELD(options.biases), KEY_FIELD(options.mask) }),
               SCRATCH(U32, ranked, "m*parts*(2*logprobs+2)", 8, .only_with = KEY_FIELD(shape.n),
                       .only_above = PART, .also_with = KEY_FIELD(options.logprobs)),
               SCRATCH(U32, told, "m*parts*told_words", 16, .only_with = KEY_FIELD(shape.n),
                       .only_above = PART),
               COUNTERS(counters, "m", .only_with = KEY_FIELD(shape.n), .only_above = PART),
               IN(F32, logits, "m*n", 16, .row = KEY_FIELD(shape.n), .random = RANDOM_ARRANGED),
               IN_FITTED(U32, positions, "m", 4),
               IN(U32, sampling, "m*8", 16, .random = RANDOM_FITTED, .holds = SAMPLING_SAID),
               IN_WHERE(history, U32, history, "m*history", 4, .random = RANDOM_FITTED,
                        .holds = "the token at position t of a sequence is its word t % history"),
               IN_WHERE(history, U32, penalties, "m*4", 16, .random = RANDOM_FITTED,
                        .holds = PENALTIES_SAID),
               IN_WHERE(biases, U32, biases, "m*biases*2", 8, .random = RANDOM_FITTED,
                        .holds = "pairs of u32 token, f32 bias"),
               IN_WHERE(mask, U32, mask, "m*ceil_div(n, 32)", 4, .random = RANDOM_FITTED,
                        .holds = "token t is allowed if bit t % 32 of word t / 32 is set"),
               ROW_SEQUENCES),
    .launch = { .block = "32*warps",
                .grid = { "m", "1", "parts" },
                .shared = "384*warps + 16*ceil_div(warps, 2) + 16 + "
                          "16*ceil_div(min(n, " PART_TEXT "), 4)*min(history, 1) + 8*logprobs",
                .terms =
                    TERMS({ "parts", "ceil_div(n, " PART_TEXT ")" },
                          { "warps", "min(16, ceil_div(n, 32))" }, { "told_words", "66*warps+4" }),
                .loads_at_once = true,
                .overlap = WAITS_FIRST,
                .registers = 64 },
    .fit = ref_fit_sampling,
};
