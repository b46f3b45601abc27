/* The reference of a step, for latent attention and delta nets: against plain code that computes
 * the same differently, and by properties of caches. */
#include <math.h>

#include "test_arena.h"
#include "model/reference/step_call.h"
#include "step_sample.h"
#include "ref/reference.h"

static void silence(sample_model *m, decoder_tensor output)
{
    sample_scale(m, output, 0);
}

/* Returns a decoder with latent attention, with or without a low-rank q. */
static decoder latent_decoder(int64_t q_rank)
{
    decoder d = sample_decoder(1);
    d.at[0].num_kv_heads = 1;
    d.at[0].head_dim = 24;
    d.rope[0].dims = 8;
    d.rope[0].style = ROPE_NORM;
    d.latent = 40;
    d.value_dim = 12;
    d.q_rank = q_rank;
    d.attention_scale = 0.3;
    d.has[TENSOR_ATTN_K] = d.has[TENSOR_ATTN_V] = 0;
    d.has[TENSOR_ATTN_Q] = !q_rank;
    d.has[TENSOR_ATTN_Q_A] = d.has[TENSOR_ATTN_Q_A_NORM] = d.has[TENSOR_ATTN_Q_B] = q_rank != 0;
    d.has[TENSOR_ATTN_KV_A] = d.has[TENSOR_ATTN_KV_A_NORM] = d.has[TENSOR_ATTN_K_B] =
        d.has[TENSOR_ATTN_V_B] = 1;
    return d;
}

/* Computes y = x times `rows` rows, from row `first` on, of a tensor of layer 0. */
static void times(const sample_model *m, decoder_tensor t, size_t first, size_t rows,
                  const double *x, double *y)
{
    size_t columns = (size_t)decoder_columns(&m->d, t, 0);
    const float *w = m->blocks[t][0];
    for (size_t r = 0; r < rows; r++) {
        y[r] = 0;
        for (size_t i = 0; i < columns; i++)
            y[r] += (double)w[(first + r) * columns + i] * x[i];
    }
}

static void rotate(const decoder *d, int position, double *x)
{
    int dims = (int)d->rope[0].dims;
    for (int i = 0; i < dims / 2; i++) {
        double angle = position * pow(d->rope[0].base, -2.0 * i / dims), kept = x[2 * i];
        x[2 * i] = kept * cos(angle) - x[2 * i + 1] * sin(angle);
        x[2 * i + 1] = kept * sin(angle) + x[2 * i + 1] * cos(angle);
    }
}

/* Checks against plain code without absorption: each head's k is [W_k_b' latent, rope], its v is
 * W_v_b latent. */
static void check_latent(arena *a, int64_t q_rank)
{
    enum { HIDDEN = 64, HEADS = 4, NOPE = 16, ROPE = 8, HEAD = 24, LATENT = 40, VALUE = 12 };
    decoder d = latent_decoder(q_rank);
    sample_model *m = sample_fill(a, &d, 7);
    const float *k_b = m->blocks[TENSOR_ATTN_K_B][0];
    static double k[TOKENS][HEADS][HEAD], v[TOKENS][HEADS][VALUE];
    silence(m, TENSOR_FFN_DOWN);
    const double *hidden = sample_hidden(a, m);
    for (int t = 0; t < TOKENS; t++, hidden += 2 * HIDDEN) {
        double x[HIDDEN], q[HEADS * HEAD], by_rank[64], row[LATENT + ROPE],
            o[HEADS * VALUE] = { 0 };
        sample_norm(&d, hidden, m->blocks[TENSOR_ATTN_NORM][0], HIDDEN, x);
        if (q_rank) {
            times(m, TENSOR_ATTN_Q_A, 0, (size_t)q_rank, x, by_rank);
            sample_norm(&d, by_rank, m->blocks[TENSOR_ATTN_Q_A_NORM][0], (size_t)q_rank, by_rank);
        }
        times(m, q_rank ? TENSOR_ATTN_Q_B : TENSOR_ATTN_Q, 0, HEADS * HEAD, q_rank ? by_rank : x,
              q);
        times(m, TENSOR_ATTN_KV_A, 0, LATENT + ROPE, x, row);
        sample_norm(&d, row, m->blocks[TENSOR_ATTN_KV_A_NORM][0], LATENT, row);
        rotate(&d, t, row + LATENT);
        for (size_t h = 0; h < HEADS; h++) {
            double p[TOKENS], sum = 0;
            rotate(&d, t, q + h * HEAD + NOPE);
            for (int i = 0; i < NOPE; i++) {
                k[t][h][i] = 0;
                for (size_t j = 0; j < LATENT; j++)
                    k[t][h][i] += (double)k_b[(h * LATENT + j) * NOPE + (size_t)i] * row[j];
            }
            memcpy(k[t][h] + NOPE, row + LATENT, ROPE * sizeof *row);
            times(m, TENSOR_ATTN_V_B, h * VALUE, VALUE, row, v[t][h]);
            for (int s = 0; s <= t; s++) {
                double score = 0;
                for (int i = 0; i < HEAD; i++)
                    score += q[h * HEAD + (size_t)i] * k[s][h][i];
                sum += p[s] = exp(d.attention_scale * score);
            }
            for (int s = 0; s <= t; s++)
                for (int i = 0; i < VALUE; i++)
                    o[h * VALUE + (size_t)i] += p[s] / sum * v[s][h][i];
        }
        times(m, TENSOR_ATTN_OUTPUT, 0, HIDDEN, o, x);
        for (int i = 0; i < HIDDEN; i++)
            x[i] += hidden[i];
        assert_same(x, hidden + HIDDEN, HIDDEN);
    }
}

ARENA_TEST(latent_attention_equals_attention_without_absorption)
{
    check_latent(a, 0);
    check_latent(a, 32);
}

/* attn_q_b, attn_k_b and attn_v_b take unrounded inputs, even with 8-bit precision and integer
 * weights. All other tensors here are floats. */
ARENA_TEST(latent_projections_take_unrounded_inputs)
{
    static const uint8_t exact[] = { TENSOR_ATTN_Q_B, TENSOR_ATTN_K_B, TENSOR_ATTN_V_B };
    decoder d = latent_decoder(32);
    d.at[0].head_dim = 40;
    d.latent = 32;
    for (size_t i = 0; i < sizeof exact; i++)
        d.formats[exact[i]][0] = FORMAT_Q8_0;
    sample_model *m = sample_fill(a, &d, 7);
    const double *before = sample_all_logits(a, m);
    m->d.precision = PRECISION_Q8;
    assert_same(before, sample_all_logits(a, m), LOGITS);
}

static decoder delta_decoder(int64_t layers, int64_t layout)
{
    decoder d = sample_decoder(layers);
    static const uint8_t has[] = { TENSOR_DELTA_QKV, TENSOR_DELTA_GATE, TENSOR_SSM_CONV1D,
                                   TENSOR_SSM_DT,    TENSOR_SSM_A,      TENSOR_SSM_NORM,
                                   TENSOR_SSM_OUT };
    sample_recur(&d, 0);
    d.delta_layout = layout;
    d.has[TENSOR_SSM_BA] = layout == DELTA_GROUPED;
    d.has[TENSOR_SSM_BETA] = d.has[TENSOR_SSM_ALPHA] = layout == DELTA_TILED;
    d.delta_key_heads = 2;
    d.delta_value_heads = 4;
    d.delta_head_dim = 8;
    for (size_t i = 0; i < sizeof has; i++)
        d.has[has[i]] = 1;
    return d;
}

/* Returns a random model with decaying states. */
static sample_model *delta_fill(arena *a, const decoder *d)
{
    sample_model *m = sample_fill(a, d, 7);
    for (int64_t layer = 0; layer < d->layers; layer++)
        for (int64_t i = 0; i < d->delta_value_heads; i++)
            sample_tensor(m, TENSOR_SSM_A, layer)[i] =
                -fabsf(sample_tensor(m, TENSOR_SSM_A, layer)[i]);
    return m;
}

static double silu(double x)
{
    return x / (1 + exp(-x));
}

/* Scales x to length 1 and multiplies it by factor. */
static void unit(double *x, size_t size, double factor)
{
    double squares = 0;
    for (size_t i = 0; i < size; i++)
        squares += x[i] * x[i];
    for (size_t i = 0; i < size; i++)
        x[i] *= factor / sqrt(squares);
}

/* Checks against plain code without a state. Position s adds k_s d_s', which decays; so H' k is the
 * sum over s of decay (k_s . k) d_s. */
static void check_delta_net(arena *a, int64_t layout)
{
    enum { HIDDEN = 64, KEYS = 2, HEADS = 4, S = 8, CHANNELS = (2 * KEYS + HEADS) * S };
    const bool tiled = layout == DELTA_TILED;
    decoder d = delta_decoder(1, layout);
    sample_model *m = delta_fill(a, &d);
    static double in[TOKENS][CHANNELS], k[TOKENS][KEYS][S], added[TOKENS][HEADS][S],
        decays[TOKENS][HEADS];
    const float *conv = m->blocks[TENSOR_SSM_CONV1D][0], *dt = m->blocks[TENSOR_SSM_DT][0],
                *by = m->blocks[TENSOR_SSM_A][0];
    silence(m, TENSOR_FFN_DOWN);
    const double *hidden = sample_hidden(a, m);
    for (int t = 0; t < TOKENS; t++, hidden += 2 * HIDDEN) {
        double x[HIDDEN], z[HEADS * S], ba[2 * HEADS], c[CHANNELS] = { 0 }, o[HEADS * S];
        sample_norm(&d, hidden, m->blocks[TENSOR_ATTN_NORM][0], HIDDEN, x);
        times(m, TENSOR_DELTA_QKV, 0, CHANNELS, x, in[t]);
        times(m, TENSOR_DELTA_GATE, 0, HEADS * S, x, z);
        if (tiled) {
            times(m, TENSOR_SSM_BETA, 0, HEADS, x, ba);
            times(m, TENSOR_SSM_ALPHA, 0, HEADS, x, ba + HEADS);
        } else {
            times(m, TENSOR_SSM_BA, 0, 2 * HEADS, x, ba);
        }
        for (int i = 0; i < CHANNELS; i++) {
            for (int j = 0; j < 4; j++)
                c[i] += t + j < 3 ? 0 : (double)conv[4 * i + j] * in[t + j - 3][i];
            c[i] = silu(c[i]);
        }
        for (size_t g = 0; g < KEYS; g++) {
            unit(c + g * S, S, 1 / sqrt(S));
            unit(c + (KEYS + g) * S, S, 1);
            memcpy(k[t][g], c + (KEYS + g) * S, sizeof k[t][g]);
        }
        for (size_t h = 0; h < HEADS; h++) {
            size_t g = tiled ? h % 2 : h / 2, at = tiled ? h : 4 * g + h % 2;
            double beta = 1 / (1 + exp(-ba[at])), alpha = ba[at + (tiled ? HEADS : 2)];
            double known[S] = { 0 }, decay = 1;
            decays[t][h] = exp((double)by[h] * log(1 + exp(alpha + (double)dt[h])));
            for (int s = t - 1; s >= 0; s--) {
                double product = 0;
                decay *= decays[s + 1][h];
                for (int i = 0; i < S; i++)
                    product += k[s][g][i] * k[t][g][i];
                for (int i = 0; i < S; i++)
                    known[i] += decay * product * added[s][h][i];
            }
            for (size_t i = 0; i < S; i++)
                added[t][h][i] = beta * (c[(2 * KEYS + h) * S + i] - known[i]);
            memset(o + h * S, 0, S * sizeof *o);
            decay = 1;
            for (int s = t; s >= 0; decay *= decays[s--][h]) {
                double product = 0;
                for (size_t i = 0; i < S; i++)
                    product += k[s][g][i] * c[g * S + i];
                for (size_t i = 0; i < S; i++)
                    o[h * S + i] += decay * product * added[s][h][i];
            }
            sample_norm(&d, o + h * S, m->blocks[TENSOR_SSM_NORM][0], S, o + h * S);
            for (size_t i = 0; i < S; i++)
                o[h * S + i] *= silu(z[h * S + i]);
        }
        times(m, TENSOR_SSM_OUT, 0, HIDDEN, o, x);
        for (int i = 0; i < HIDDEN; i++)
            x[i] += hidden[i];
        assert_same(x, hidden + HIDDEN, HIDDEN);
    }
}

ARENA_TEST(a_delta_net_is_a_sum_over_positions)
{
    check_delta_net(a, DELTA_GROUPED);
    check_delta_net(a, DELTA_TILED);
}

/* Returns a model with every kind of layer: a delta net, then attention with a gate and experts,
 * then a delta net. */
static sample_model *mixed_model(arena *a)
{
    decoder d = delta_decoder(3, DELTA_TILED);
    static const uint8_t has[] = { TENSOR_FFN_GATE_INP, TENSOR_FFN_GATE_EXPS, TENSOR_FFN_UP_EXPS,
                                   TENSOR_FFN_DOWN_EXPS };
    d.experts = 6;
    d.experts_used = 3;
    d.expert_ff = 32;
    sample_route(&d, 1);
    sample_recur(&d, 2);
    d.attention_gate = 1;
    for (size_t i = 0; i < sizeof has; i++)
        d.has[has[i]] = 1;
    return delta_fill(a, &d);
}

ARENA_TEST(tokens_at_once_equal_single_tokens_with_states)
{
    decoder latent = latent_decoder(32);
    sample_model *of[] = { mixed_model(a), sample_fill(a, &latent, 7) };
    for (int i = 0; i < 2; i++) {
        const double *one_by_one = sample_all_logits(a, of[i]);
        for (size_t at_once = 2; at_once <= TOKENS; at_once += 3)
            assert_same(one_by_one, sample_logits(a, of[i], some_tokens, TOKENS, at_once), LOGITS);
    }
}

ARENA_TEST(an_undone_call_leaves_no_trace)
{
    sample_model *m = mixed_model(a);
    const double *all = sample_all_logits(a, m);
    ref_step *s = ref_step_new(a, &m->d, sample_weights, m);
    for (int i = 0; i < TOKENS; i++) {
        double logits[SAMPLE_VOCAB];
        const ref_row others[] = { { 0, 9 }, { 1, 3 }, { 0, 8 } };
        ref_step_feed(s, others, 3, NULL, NULL);
        ref_step_undo(s);
        ref_step_feed(s, &(ref_row){ 0, some_tokens[i] }, 1, logits, NULL);
        assert_same(all + i * SAMPLE_VOCAB, logits, SAMPLE_VOCAB);
    }
}

typedef struct earlier_step {
    const ref_step *before;
    const decoder *d;
} earlier_step;

static void read_earlier(void *user, const ref_cached *which, float *row)
{
    const earlier_step *e = user;
    double exact[PROBLEM_MOST_CACHED];
    ref_step_cached(e->before, which, exact);
    for (uint64_t i = 0; i < ref_cached_values(e->d, which); i++)
        row[i] = (float)exact[i];
}

/* Checks steps that start from f32 copies of earlier rows and states. Copies of f16 rows are exact,
 * copies of states are not. */
static void check_earlier(arena *a, sample_model *m)
{
    enum { EARLIER = 7 };
    m->d.kv_type = KV_F16;
    const double *all = sample_all_logits(a, m);
    for (int earlier = 1; earlier <= EARLIER; earlier += 3) {
        ref_step *before = ref_step_new(a, &m->d, sample_weights, m);
        ref_step *after = ref_step_new(a, &m->d, sample_weights, m);
        earlier_step e = { before, &m->d };
        for (int i = 0; i < TOKENS; i++) {
            double logits[SAMPLE_VOCAB];
            const ref_row row = { 0, some_tokens[i] };
            ref_step_feed(i < earlier ? before : after, &row, 1, logits, NULL);
            if (i + 1 == earlier) /* after the earlier tokens */
                ref_step_start(after, 0, (uint64_t)earlier, read_earlier, &e);
            assert_true(difference(all + i * SAMPLE_VOCAB, logits, SAMPLE_VOCAB) < 1e-5);
        }
    }
}

ARENA_TEST(restored_rows_and_states_equal_fed_ones)
{
    decoder latent = latent_decoder(0);
    check_earlier(a, mixed_model(a));
    check_earlier(a, sample_fill(a, &latent, 7));
}

/* Blocks of 32 span the whole row: the second block has values of the latent and rotated values. */
ARENA_TEST(a_latent_row_is_rounded_in_blocks_of_the_whole_row)
{
    enum { ROW = 64, ROPE = 8 };
    decoder d = latent_decoder(0);
    d.latent = ROW - ROPE;
    sample_model *m = sample_fill(a, &d, 7);
    double exact[ROW], rounded[ROW];
    const ref_cached which = { .sequence = 0 };
    const ref_row row = { 0, 5 };
    assert_int_equal(ref_cached_values(&d, &which), ROW);
    for (int64_t type = KV_F32; type < KV_COUNT; type++) {
        double copy[ROW];
        m->d.kv_type = type;
        ref_step *s = ref_step_new(a, &m->d, sample_weights, m);
        ref_step_feed(s, &row, 1, NULL, NULL);
        ref_step_cached(s, &which, rounded);
        if (type == KV_F32)
            memcpy(exact, rounded, sizeof exact);
        memcpy(copy, exact, sizeof copy);
        ref_cache_round(type, copy, ROW);
        assert_same(copy, rounded, ROW);
    }
}
