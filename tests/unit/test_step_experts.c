/* The reference of a step, for experts, attention sinks and gates: against plain code and by
 * equivalences. */
#include <math.h>

#include "test_arena.h"
#include "ref/reference.h"
#include "model/reference/step_call.h"
#include "step_sample.h"

/* Returns a decoder with experts in all layers, or in the layers after the dense ones. */
static decoder expert_decoder(int64_t layers)
{
    decoder d = sample_decoder(layers);
    sample_route(&d, 0);
    d.experts = 6;
    d.experts_used = 3;
    d.expert_ff = 32;
    d.experts_normed = 1;
    d.has[TENSOR_FFN_GATE_INP] = d.has[TENSOR_FFN_GATE_EXPS] = d.has[TENSOR_FFN_UP_EXPS] =
        d.has[TENSOR_FFN_DOWN_EXPS] = 1;
    return d;
}

/* Copies the dense feed-forward to every expert. */
static void make_alike(sample_model *m)
{
    static const uint8_t of[][2] = { { TENSOR_FFN_GATE_EXPS, TENSOR_FFN_GATE },
                                     { TENSOR_FFN_UP_EXPS, TENSOR_FFN_UP },
                                     { TENSOR_FFN_DOWN_EXPS, TENSOR_FFN_DOWN } };
    for (int64_t layer = 0; layer < m->d.layers; layer++)
        for (int i = 0; i < 3; i++) {
            size_t plane = sample_values(m, (decoder_tensor)of[i][1]);
            for (int64_t e = 0; e < m->d.experts; e++)
                memcpy(sample_tensor(m, (decoder_tensor)of[i][0], layer) + (size_t)e * plane,
                       m->blocks[of[i][1]][layer], plane * sizeof(float));
        }
}

ARENA_TEST(equal_experts_are_one_feed_forward)
{
    decoder d = expert_decoder(2);
    for (int64_t layer = 0; layer < d.layers; layer++)
        d.at[layer].ff = d.expert_ff;
    sample_model *m = sample_fill(a, &d, 7);
    make_alike(m);
    const double *mixed = sample_all_logits(a, m);
    sample_route(&m->d, 1);
    assert_same(mixed, sample_all_logits(a, m), LOGITS);
    sample_route(&m->d, 0);
    m->d.experts_normed = 0; /* the weights now add up to less than 1 */
    assert_other(mixed, sample_all_logits(a, m), LOGITS);
}

/* Computes y [hidden] of one token's x by plain code. */
static void mix(const sample_model *m, const double *x, double *y)
{
    const decoder *d = &m->d;
    size_t hidden = (size_t)d->hidden, ff = (size_t)d->expert_ff, experts = (size_t)d->experts;
    const float *router = m->blocks[TENSOR_FFN_GATE_INP][0],
                *w[3] = { m->blocks[TENSOR_FFN_GATE_EXPS][0], m->blocks[TENSOR_FFN_UP_EXPS][0],
                          m->blocks[TENSOR_FFN_DOWN_EXPS][0] };
    double p[16] = { 0 }, sum = 0;
    for (size_t e = 0; e < experts; e++)
        for (size_t i = 0; i < hidden; i++)
            p[e] += (double)router[e * hidden + i] * x[i];
    for (size_t e = 0; e < experts; e++)
        p[e] = exp(p[e]);
    memset(y, 0, hidden * sizeof *y);
    for (size_t e = 0; e < experts; e++) {
        int64_t above = 0;
        double f[64] = { 0 };
        for (size_t other = 0; other < experts; other++)
            above += p[other] > p[e];
        if (above >= d->experts_used)
            continue;
        sum += p[e];
        for (size_t j = 0; j < ff; j++) {
            double gate = 0, up = 0;
            for (size_t i = 0; i < hidden; i++) {
                gate += (double)w[0][(e * ff + j) * hidden + i] * x[i];
                up += (double)w[1][(e * ff + j) * hidden + i] * x[i];
            }
            f[j] = gate / (1 + exp(-gate)) * up;
        }
        for (size_t i = 0; i < hidden; i++)
            for (size_t j = 0; j < ff; j++)
                y[i] += p[e] * (double)w[2][(e * hidden + i) * ff + j] * f[j];
    }
    for (size_t i = 0; i < hidden; i++)
        y[i] /= sum;
}

/* Removes a layer's attention by zeroing its output. */
static void silence(sample_model *m, decoder_tensor output)
{
    sample_scale(m, output, 0);
}

ARENA_TEST(the_best_experts_are_weighted_by_their_scores)
{
    enum { HIDDEN = 64 };
    decoder d = expert_decoder(1);
    sample_model *m = sample_fill(a, &d, 7);
    silence(m, TENSOR_ATTN_OUTPUT);
    const double *hidden = sample_hidden(a, m);
    for (int token = 0; token < TOKENS; token++, hidden += 2 * HIDDEN) {
        double x[HIDDEN], y[HIDDEN];
        sample_norm(&d, hidden, m->blocks[TENSOR_FFN_NORM][0], HIDDEN, x);
        mix(m, x, y);
        for (int i = 0; i < HIDDEN; i++)
            y[i] += hidden[i];
        assert_same(y, hidden + HIDDEN, HIDDEN);
    }
}

ARENA_TEST(softmax_of_the_chosen_equals_normalized_softmax_of_all)
{
    decoder d = expert_decoder(2);
    sample_model *m = sample_fill(a, &d, 7);
    const double *of_all = sample_all_logits(a, m);
    m->d.experts_normed = 0;
    m->d.gating = GATING_SOFTMAX_OF_CHOSEN;
    assert_same(of_all, sample_all_logits(a, m), LOGITS);
    m->d.gating = GATING_SIGMOID;
    assert_other(of_all, sample_all_logits(a, m), LOGITS);
}

ARENA_TEST(weights_are_scaled)
{
    decoder d = expert_decoder(1);
    sample_model *m = sample_fill(a, &d, 7);
    m->d.experts_scale = 4;
    const double *scaled = sample_all_logits(a, m);
    m->d.experts_scale = 0;
    sample_scale(m, TENSOR_FFN_DOWN_EXPS, 4);
    assert_same(scaled, sample_all_logits(a, m), LOGITS);
}

ARENA_TEST(the_first_of_equal_scores_is_chosen)
{
    decoder d = expert_decoder(2);
    sample_model *m = sample_fill(a, &d, 7);
    for (int64_t layer = 0; layer < 2; layer++)
        for (size_t e = 1; e < 6; e++)
            memcpy(sample_tensor(m, TENSOR_FFN_GATE_INP, layer) + e * 64,
                   sample_tensor(m, TENSOR_FFN_GATE_INP, layer), 64 * sizeof(float));
    const double *of_six = sample_all_logits(a, m);
    m->d.experts = 3;
    assert_same(of_six, sample_all_logits(a, m), LOGITS);
}

/* A bias moves the last three experts to the top and must not change their weights. */
ARENA_TEST(a_bias_affects_the_choice_but_not_the_weights)
{
    decoder d = expert_decoder(1);
    d.has[TENSOR_EXP_PROBS_B] = 1;
    sample_model *m = sample_fill(a, &d, 7);
    float *bias = sample_tensor(m, TENSOR_EXP_PROBS_B, 0);
    for (int e = 0; e < 6; e++)
        bias[e] = e < 3 ? 0 : 10;
    const double *lifted = sample_all_logits(a, m);
    static const uint8_t planes[] = { TENSOR_FFN_GATE_INP, TENSOR_FFN_GATE_EXPS, TENSOR_FFN_UP_EXPS,
                                      TENSOR_FFN_DOWN_EXPS };
    for (int i = 0; i < 4; i++) { /* keeps experts 3 to 5 */
        size_t half = sample_values(m, (decoder_tensor)planes[i]) / 2;
        memcpy(m->blocks[planes[i]][0], sample_tensor(m, (decoder_tensor)planes[i], 0) + half,
               half * sizeof(float));
    }
    m->d.experts = 3;
    m->d.has[TENSOR_EXP_PROBS_B] = 0;
    assert_same(lifted, sample_all_logits(a, m), LOGITS);
}

/* Scores come from the bias only: groups (9, 0), (6, 5), (8, 1). The second group's best two sum to
 * the most; the first and the last are equal. */
ARENA_TEST(groups_are_chosen_by_their_two_best)
{
    static const float scores[] = { 9, 0, 6, 5, 8, 1 };
    decoder d = expert_decoder(1);
    d.has[TENSOR_EXP_PROBS_B] = 1;
    d.gating = GATING_SIGMOID;
    d.expert_groups = 3;
    d.expert_groups_used = 2;
    sample_model *m = sample_fill(a, &d, 7);
    sample_scale(m, TENSOR_FFN_GATE_INP, 0);
    memcpy(m->blocks[TENSOR_EXP_PROBS_B][0], scores, sizeof scores);
    const double *grouped = sample_all_logits(a, m);
    m->d.expert_groups = m->d.expert_groups_used = 0;
    assert_other(grouped, sample_all_logits(a, m), LOGITS); /* scores 9, 8 and 6 */
    memcpy(m->blocks[TENSOR_EXP_PROBS_B][0], (const float[]){ 9, 0, 6, 5, 0, 0 }, sizeof scores);
    assert_same(grouped, sample_all_logits(a, m), LOGITS); /* scores 9, 6 and 5 */
}

ARENA_TEST(the_gap_is_between_the_last_chosen_and_the_first_rejected)
{
    static const float scores[] = { 0.5F, 3, 2, 4, 1.25F, 1 };
    decoder d = expert_decoder(2);
    sample_route(&d, 1);
    d.has[TENSOR_FFN_GATE_INP_BIAS] = 1;
    sample_model *m = sample_fill(a, &d, 7);
    sample_scale(m, TENSOR_FFN_GATE_INP, 0);
    memcpy(m->blocks[TENSOR_FFN_GATE_INP_BIAS][1], scores, sizeof scores);
    ref_step *s = ref_step_new(a, &m->d, sample_weights, m);
    const ref_row rows[] = { { 0, 1 }, { 1, 2 } };
    ref_step_feed(s, rows, 2, NULL, NULL);
    const ref_choice none = ref_step_choice(s, 0, 1), choice = ref_step_choice(s, 1, 1);
    assert_true(!none.scores && isinf(none.gap));
    assert_true(fabs(choice.gap - 0.75) < SAME);
    for (int e = 0; e < 6; e++)
        assert_true(fabs(choice.scores[e] - (double)scores[e]) < SAME);
}

ARENA_TEST(fused_experts_have_their_gates_first)
{
    decoder d = expert_decoder(1);
    d.has[TENSOR_FFN_GATE_EXPS_BIAS] = d.has[TENSOR_FFN_UP_EXPS_BIAS] = 1;
    sample_model *m = sample_fill(a, &d, 7);
    const double *apart = sample_all_logits(a, m);
    size_t plane = (size_t)(d.expert_ff * d.hidden);
    float *both = sample_tensor(m, TENSOR_FFN_GATE_UP_EXPS, 0);
    for (size_t e = 0; e < 6; e++) {
        memcpy(both + 2 * e * plane, sample_tensor(m, TENSOR_FFN_GATE_EXPS, 0) + e * plane,
               plane * sizeof *both);
        memcpy(both + (2 * e + 1) * plane, sample_tensor(m, TENSOR_FFN_UP_EXPS, 0) + e * plane,
               plane * sizeof *both);
    }
    m->d.has[TENSOR_FFN_GATE_UP_EXPS] = 1;
    assert_same(apart, sample_all_logits(a, m), LOGITS);
}

/* A shared expert must equal a second feed-forward beside the experts. */
ARENA_TEST(a_shared_expert_adds_a_feed_forward)
{
    decoder d = expert_decoder(1);
    for (int64_t layer = 0; layer < d.layers; layer++)
        d.at[layer].ff = d.expert_ff;
    sample_model *m = sample_fill(a, &d, 7);
    make_alike(m);
    const double *without = sample_all_logits(a, m);
    m->d.shared_ff = d.expert_ff;
    m->d.has[TENSOR_FFN_GATE_SHEXP] = m->d.has[TENSOR_FFN_UP_SHEXP] =
        m->d.has[TENSOR_FFN_DOWN_SHEXP] = 1;
    memcpy(m->blocks[TENSOR_FFN_GATE_SHEXP], m->blocks[TENSOR_FFN_GATE], sizeof m->blocks[0]);
    memcpy(m->blocks[TENSOR_FFN_UP_SHEXP], m->blocks[TENSOR_FFN_UP], sizeof m->blocks[0]);
    memcpy(m->blocks[TENSOR_FFN_DOWN_SHEXP], m->blocks[TENSOR_FFN_DOWN], sizeof m->blocks[0]);
    const double *twice = sample_all_logits(a, m);
    m->d.has[TENSOR_FFN_GATE_INP_SHEXP] = 1;
    sample_scale(m, TENSOR_FFN_GATE_INP_SHEXP, 0); /* a gate of 1/2 */
    const double *and_a_half = sample_all_logits(a, m);
    m->d.shared_ff = 0;
    assert_same(without, sample_all_logits(a, m), LOGITS);
    m->d.experts_scale = 1.5;
    assert_same(and_a_half, sample_all_logits(a, m), LOGITS);
    m->d.experts_scale = 2;
    assert_same(twice, sample_all_logits(a, m), LOGITS);
}

ARENA_TEST(a_shared_expert_is_scaled)
{
    decoder d = expert_decoder(1);
    d.shared_ff = 48;
    d.shared_scale = 4;
    decoder_complete(&d);
    sample_model *m = sample_fill(a, &d, 7);
    const double *scaled = sample_all_logits(a, m);
    m->d.shared_scale = 0;
    assert_other(scaled, sample_all_logits(a, m), LOGITS);
    sample_scale(m, TENSOR_FFN_DOWN_SHEXP, 4);
    assert_same(scaled, sample_all_logits(a, m), LOGITS);
}

/* The shared expert has the other limit. */
ARENA_TEST(a_limit_clamps_the_experts_of_its_layer)
{
    decoder d = expert_decoder(2);
    d.shared_ff = 32;
    decoder_complete(&d);
    const double *before = sample_all_logits(a, sample_fill(a, &d, 7));
    d.at[1].expert_limit = 0.05;
    const double *experts = sample_all_logits(a, sample_fill(a, &d, 7));
    assert_other(before, experts, LOGITS);
    d.at[1].shared_limit = 0.05;
    assert_other(experts, sample_all_logits(a, sample_fill(a, &d, 7)), LOGITS);
    d.at[1].expert_limit = d.at[1].shared_limit = 1e6;
    assert_same(before, sample_all_logits(a, sample_fill(a, &d, 7)), LOGITS);
}

ARENA_TEST(layers_with_and_without_experts_may_alternate)
{
    decoder d = expert_decoder(3);
    for (int64_t layer = 0; layer < d.layers; layer++)
        d.at[layer].ff = d.expert_ff;
    sample_model *m = sample_fill(a, &d, 7);
    make_alike(m);
    m->d.at[1].is_routed = 0;
    m->d.at[1].is_dense = 1;
    const double *alternating = sample_all_logits(a, m);
    sample_route(&m->d, 3);
    assert_same(alternating, sample_all_logits(a, m), LOGITS);
}

/* With integer matrices the input of an expert is rounded like the input of a dense feed-forward.
 * The router's input is never rounded. */
ARENA_TEST(inputs_of_experts_are_rounded_but_not_the_router_s)
{
    static const uint8_t planes[][2] = { { TENSOR_FFN_GATE_EXPS, TENSOR_FFN_GATE },
                                         { TENSOR_FFN_UP_EXPS, TENSOR_FFN_UP },
                                         { TENSOR_FFN_DOWN_EXPS, TENSOR_FFN_DOWN } };
    decoder d = expert_decoder(1);
    for (int64_t layer = 0; layer < d.layers; layer++)
        d.at[layer].ff = d.expert_ff;
    d.experts_used = 1;
    d.formats[TENSOR_FFN_GATE_INP][0] = FORMAT_Q8_0;
    sample_model *m = sample_fill(a, &d, 7);
    const double *exact = sample_all_logits(a, m);
    m->d.precision = PRECISION_Q8;
    assert_same(exact, sample_all_logits(a, m), LOGITS);
    for (int i = 0; i < 3; i++)
        d.formats[planes[i][0]][0] = d.formats[planes[i][1]][0] = FORMAT_Q8_0;
    d.precision = PRECISION_Q8;
    m = sample_fill(a, &d, 7);
    for (int i = 0; i < 3; i++)
        for (size_t e = 0; e < 6; e++) {
            size_t plane = (size_t)decoder_bytes(&d, (decoder_tensor)planes[i][1], 0);
            memcpy((char *)m->blocks[planes[i][0]][0] + e * plane, m->blocks[planes[i][1]][0],
                   plane);
        }
    const double *mixed = sample_all_logits(a, m);
    sample_route(&m->d, 1);
    assert_same(mixed, sample_all_logits(a, m), LOGITS);
    m->d.precision = PRECISION_F32;
    assert_true(difference(mixed, sample_all_logits(a, m), LOGITS) > 1e-4);
}

ARENA_TEST(sinks_take_weight_and_add_no_value)
{
    decoder d = sample_decoder(2);
    sample_model *m = sample_fill(a, &d, 7);
    const double *without = sample_all_logits(a, m);
    m->d.has[TENSOR_ATTN_SINKS] = 1;
    assert_other(without, sample_all_logits(a, m), LOGITS);
    for (int64_t layer = 0; layer < 2; layer++)
        for (int head = 0; head < 4; head++)
            sample_tensor(m, TENSOR_ATTN_SINKS, layer)[head] = -1e4F;
    assert_same(without, sample_all_logits(a, m), LOGITS);
    sample_scale(m, TENSOR_ATTN_SINKS, -1);
    const double *all = sample_all_logits(a, m);
    silence(m, TENSOR_ATTN_OUTPUT);
    assert_same(all, sample_all_logits(a, m), LOGITS);
}

static void read_constant(const void *user, bool values, uint64_t position, double *row)
{
    (void)values;
    (void)position;
    memcpy(row, user, 4 * sizeof *row);
}

/* If all scores are 0, a sink of 0 equals one more position with value 0. */
ARENA_TEST(a_sink_is_a_logit_of_each_head)
{
    enum { DIM = 4 };
    const double q[2 * DIM] = { 0 }, sinks[] = { 0, log(3) };
    static const double row[DIM] = { 1, 2, 3, 4 };
    double o[2 * DIM], room[2 * 3 + DIM];
    const ref_query query = {
        .q = q, .sinks = sinks, .heads = 2, .head_dim = DIM, .value_dim = DIM, .scale = 1, .end = 3
    };
    ref_attend(&query, read_constant, row, o, room);
    for (int i = 0; i < DIM; i++) {
        assert_true(fabs(o[i] - row[i] * 3 / 4) < SAME);
        assert_true(fabs(o[DIM + i] - row[i] / 2) < SAME);
    }
}

/* Interleaves the rows of q, head by head, with gates whose sigmoid is 1/2. */
ARENA_TEST(a_gate_of_attention_follows_each_head_s_q)
{
    enum { DIM = 16, HIDDEN = 64 };
    decoder d = sample_decoder(1);
    d.attention_gate = 1;
    sample_model *gated = sample_fill(a, &d, 7);
    d.attention_gate = 0;
    sample_model *m = sample_fill(a, &d, 7);
    float *both = sample_tensor(gated, TENSOR_ATTN_Q, 0);
    for (size_t head = 0; head < 4; head++) {
        memcpy(both + 2 * head * DIM * HIDDEN,
               sample_tensor(m, TENSOR_ATTN_Q, 0) + head * DIM * HIDDEN,
               DIM * HIDDEN * sizeof *both);
        memset(both + (2 * head + 1) * DIM * HIDDEN, 0, DIM * HIDDEN * sizeof *both);
    }
    const double *halved = sample_all_logits(a, gated);
    sample_scale(m, TENSOR_ATTN_OUTPUT, 0.5F);
    assert_same(halved, sample_all_logits(a, m), LOGITS);
    both[DIM * HIDDEN] = 5; /* a gate of head 0 */
    assert_other(halved, sample_all_logits(a, gated), LOGITS);
}

ARENA_TEST(the_feed_forward_s_norm_may_have_either_name)
{
    decoder d = sample_decoder(2);
    sample_model *m = sample_fill(a, &d, 7);
    const double *before = sample_all_logits(a, m);
    memcpy(m->blocks[TENSOR_PRE_FFN_NORM], m->blocks[TENSOR_FFN_NORM], sizeof m->blocks[0]);
    m->d.has[TENSOR_FFN_NORM] = 0;
    m->d.has[TENSOR_PRE_FFN_NORM] = 1;
    assert_same(before, sample_all_logits(a, m), LOGITS);
}
