/* CPU references: what every kernel should compute, in plain C and double precision.
 *
 * A reference computes a run of elements of one output and, with each, its magnitude: the sum of
 * the absolute values of the terms that were added up (for a GEMV sum |w||x|, for attention sum
 * p|v|). Errors are judged relative to the magnitude, since a result may be small only because its
 * terms cancel.
 */
#ifndef PTXGEN_REF_REFERENCE_H
#define PTXGEN_REF_REFERENCE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "kernel/problem.h"

/* Room for rows and vectors that references have decoded, good for as long as the inputs stay as
 * they are. Elements are computed much faster with it. */
typedef struct ref_kept ref_kept;
ref_kept *ref_kept_new(arena *a);

/* Values first .. first + count - 1 of an input, decoded; both numbers are whole blocks. */
void problem_read(const problem *p, unsigned input, uint64_t first, uint64_t count, float *values);

/* The same of weights as products with x of 8 bits take them. */
void problem_read_rounded(const problem *p, unsigned input, uint64_t first, uint64_t count,
                          float *values);

/* One value of an input that is no blocks. */
double problem_read_one(const problem *p, unsigned input, uint64_t element);

/* Reads values of an input that is no blocks; their magnitudes are their own. */
void ref_read(const problem *p, unsigned input, uint64_t first, uint64_t count, ref_value *values);

/* Reads values of what a sequence's address points to. */
void problem_read_sequence(const problem *p, unsigned input, uint64_t sequence, uint64_t first,
                           uint64_t count, float *values);

/* Defines a reference of one output by a function that computes an element of it. */
#define REF_BY_ELEMENT(name, element_of)                                         \
    void name(const problem *p, unsigned output, uint64_t first, uint64_t count, \
              ref_value *values)                                                 \
    {                                                                            \
        (void)output;                                                            \
        for (uint64_t i = 0; i < count; i++)                                     \
            values[i] = element_of(p, first + i);                                \
    }

/* Computes a run of elements of an output row by row: row_of gives all width values of a row, by
 * its number. */
enum { REF_MOST_OF_ROW = 1024 };
void ref_by_rows(const problem *p, unsigned output, uint64_t width, uint64_t first, uint64_t count,
                 ref_value *values,
                 void (*row_of)(const problem *p, unsigned output, uint64_t number,
                                ref_value *row));

/* Defines a reference by such a function; width is an expression over p. */
#define REF_BY_ROWS(name, width, row_of)                                         \
    void name(const problem *p, unsigned output, uint64_t first, uint64_t count, \
              ref_value *values)                                                 \
    {                                                                            \
        ref_by_rows(p, output, (uint64_t)(width), first, count, values, row_of); \
    }

/* y[m,n] = sum over k of W[n,k] x[m,k]; inputs W (any format), x (f32 or q8_1), and where the
 * problem says so gamma [k] of a norm, by which x becomes x / sqrt(mean(x^2) + epsilon) * gamma
 * first, a factor [1] of the sum, a bias [n] that is added to it, a scale of both, a residual [m,n]
 * that is added to that, and a softcap c, by which it becomes c tanh(y / c). */
reference ref_gemv;

/* Of the products of a problem that quantizes. */
#define REF_QUANTIZING_TOLERANCE 3e-7

/* Makes random words such a list. Of three and more rows that don't all use it, the last expert is
 * one that does not exist. */
void ref_fit_experts(const problem *p, unsigned input, void *bytes, uint64_t values);

/* y[m,n] = residual + scale (sum over the experts of row m of weight (W[id] f + bias[id]) + weight
 * of the shared expert (Ws f of it)); inputs W [experts n, k], Ws [n, n_shared] where there is a
 * shared expert, f [m, experts_used k + n_shared] (the values of each slot, then of the shared
 * expert), bias [experts, n], residual [m,n] where the problem says so, weights [m, experts_used]
 * by slot, with that of the shared expert behind them, and the list. NaN where an expert does not
 * exist. */
reference ref_expert_down;

/* The same in two steps. y[m, experts_used, n] = W[id] x[m, slot] + bias[id]; inputs W [plane_rows
 * experts, k], x [m, experts_used, k], bias [experts, n] where there is one, the list. NaN where an
 * expert does not exist. */
reference ref_expert_product;

/* y[m,n] = residual + scale (sum over slots of weights[m, slot] x[m, slot, n]), with the shared
 * expert as the last slot where there is one; inputs x, the shared expert's values [m,n] and a
 * residual [m,n] where the problem says so, weights [m, experts_used, and 1 of the shared one]. */
reference ref_expert_sum;

/* Values of an input from one on. */
typedef struct ref_run {
    unsigned input;
    uint64_t first;
} ref_run;

/* The sum of count products of weights and x, with x normed by all of its values where the problem
 * says so, gamma being the input behind x, or multiplied by a factor of the
 * vector, and rounded to 8 bits where it does so. */
ref_value ref_dot(const problem *p, ref_run weights, ref_run x, uint64_t count);

/* What stands behind x of the inputs: gamma, or factors, or nothing. */
unsigned ref_beside_x(const problem *p);

/* A row of k values of one input times a vector of another. */
ref_value ref_dot_row(const problem *p, unsigned matrix, uint64_t row, unsigned vectors,
                      uint64_t vector);

/* Multiplies a sum by the problem's scale, where there is one. */
void ref_scale(const problem *p, ref_value *sum);

/* Adds a value of an input to a sum. */
void ref_add(const problem *p, unsigned input, uint64_t element, ref_value *sum);

/* Room in a magnitude for what a result loses where it is subnormal. */
double ref_lost(double value);

/* The problem's activation of a sum of gate, times one of up. */
ref_value ref_gated(const problem *p, ref_value gate, ref_value up);

/* Gate and up of the experts that rows use: f[m, experts_used n + n_shared] has a row's slots, then
 * the shared expert; each value is a(g) u as of ref_gate_up_swiglu. Inputs Wg, Wu [plane_rows
 * experts, k], those of the shared expert [n_shared, k] where there is one, x [m,k], gamma of a
 * norm, biases [experts, n] of gate and up, the list. NaN where an expert does not exist. */
reference ref_expert_gate_up;

/* Three products of m vectors: y[m, n + n_kv + n_v] has the rows of Q, of K, of V; inputs Wq [n,k],
 * Wk [n_kv,k], Wv [n_v,k] (any formats), x, gamma of a norm, factors [1] of each, and biases [n],
 * [n_kv], [n_v]. Where n_v is 0 there are two, and neither Wv nor its bias. */
reference ref_qkv;

/* Two products of one vector: output i is W_i x; inputs W_0, W_1 [n,k] (any format), x (f32 or
 * q8_1). */
reference ref_gemv_pair;

/* y = a(g) u with g = W_0 x, u = W_1 x and the problem's activation a, which for swiglu_oai takes u
 * clamped and plus 1, but infinities as NaN; inputs as above, of m vectors, gamma of a norm,
 * factors [1] and biases [n] of gate and up. */
reference ref_gate_up_swiglu;

/* a(g), and what it is multiplied by. */
double ref_activation(int64_t activation, double g);
double ref_gate_factor(int64_t activation, double u);

/* Element by element: inputs x [m,k], or g and u, or a and b, where b may be one row [k].
 *
 *   silu x sigmoid(x)    gelu by the problem's approximation    relu max(x, 0)    scale s x
 *   swiglu a(g) u with the problem's activation, as ref_gate_up_swiglu    add a + b    multiply a b
 *   convert W [n,k] of any format
 *
 * An infinity or a NaN gives what IEEE arithmetic makes of the formula. */
reference ref_silu_rows, ref_gelu_rows, ref_relu_rows, ref_scale_rows, ref_swiglu_rows,
    ref_add_rows, ref_multiply_rows, ref_convert;

/* y = exp(scale x - max) / sum of rows [m,k]; NaN where a row has no finite value, a NaN or plus
 * infinity. */
reference ref_softmax;

/* y[m,k,n] = x[m,n,k]. */
reference ref_transpose;

/* ref_gemv of kernels that always norm. */
reference ref_rmsnorm_gemv;

/* The values that become q8_1 blocks: inputs x. */
reference ref_q8_1_quantize;

/* y[m,k] = scale W[token[m]], with the scale as an f32; inputs W [n,k] (any format), tokens [m].
 * NaN where a token is not below n. Where the scale is 1 a result has to be exact. */
reference ref_embed_rows;

/* Makes random tokens such that are below n, but n of the last of several, and the largest number
 * of one of three and more. */
void ref_fit_tokens(const problem *p, unsigned input, void *bytes, uint64_t values);

/* y = norm(x) gamma with norm(x) = x / sqrt(mean(x^2) + epsilon); by the problem's residual
 *
 *   ADD                h_out = h + x, y = norm(h_out) gamma
 *   POST_NORM          h_out = h + norm(x) gamma, and no y
 *   POST_AND_PRE_NORM  h_out = h + norm(x) gamma, y = norm(h_out) next_gamma
 *
 * Outputs y and h_out [m,k], inputs gamma, next_gamma [k], x, h [m,k], those that there are. A row
 * whose squares no float can add up is NaN. */
reference ref_rms_norm;

/* y = (x - mean(x)) / sqrt(mean((x - mean(x))^2) + epsilon) gamma + beta, without beta unless the
 * problem has a bias: output y [m,k], inputs gamma, beta [k], x [m,k]. A row whose sum or variance
 * no float can hold is NaN. */
reference ref_layer_norm;

/* Rows of x as f16 and what is to be multiplied by, see problem_options.row_factors: outputs rows
 * [m,k], x times gamma where there is a norm, times a power of two, and factors [m], the inverse of
 * that and what is left of the norm; inputs x [m,k], gamma [k]. The power is 1 where the largest
 * value of the row is at least 1 and less than 2^15, else it brings that to 2^14 .. 2^15, but is
 * at most 2^126. */
reference ref_f16_rows;

/* The same in 8 bits, without a power: outputs rows [m,k], the values that become q8_f32 blocks,
 * and factors [m], what is left of the norm, or 1; inputs x [m,k], gamma [k]. */
reference ref_q8_rows;

/* The token that comes next in each of m sequences, its position, and how many positions attention
 * to it is over: outputs token, next_position, length [m]; inputs logits [m,n], the positions [m]
 * that the logits are of, and for each row how to choose, [m, SAMPLING_WORDS].
 *
 * A logit l counts as t = cap(scale l). Tokens stand in an order: the larger logit first, of equal
 * ones the lower number. top_k takes the first k of them, top_p of these as few as have p of all
 * their exp(t); min_p takes away what has less than min_p of the first one's exp(t). What is left
 * is drawn by exp(t / temperature): the first token in the order up to and including which there is
 * more than a fraction u of the sum, where u is the first word of Philox4x32-10, by 2^32, of the
 * seed and the counter (position, 0, 0, 0).
 *
 * A temperature that is not above 0, and a logit of plus infinity, take the first token. There is
 * no token, which is said by the largest number, where a logit is NaN or all are minus infinity. A
 * row whose position is the largest number is not in use: token and position are the same number,
 * and the length is 0. */
reference ref_sample;

/* Returns the number of turns after which each way of sampling has met each arrangement of logits:
 * the largest at either end, or equal in several tokens. */
uint64_t ref_sampling_turns(const problem_shape *s);
/* Makes positions and settings valid, and arranges logits. */
void ref_fit_sampling(const problem *p, unsigned input, void *bytes, uint64_t values);

/* The first word of Philox4x32-10. */
uint32_t ref_philox(uint32_t counter, uint32_t key_low, uint32_t key_high);

/* The experts of each of m rows of x, and which rows each expert has. With logits W x + bias of f32
 * sums (x RMS-normed where the problem says so), U experts_used and S 1 with a shared expert:
 *
 *   ids      [m, U]      the chosen experts, best first
 *   weights  [m, U + S]  their weights in that order, and last that of the shared expert
 *   list     [4 + L (2 + m)], L = min(experts, m U): the number of experts in use, three zeros;
 *            for each expert in use, ascending, its id, the number of rows that have it, and for
 *            each of these, ascending, row * U + slot, and of the words that are left 2^32 - 1.
 *            Entries that are left have 0 rows and elsewhere 2^32 - 1
 *
 * p is softmax(logits), sigmoid(logits), or the logits, by the gating. Scores are p, plus the
 * choice bias where there is one; of a group of neighbouring experts the sum of its two best ones.
 * The best groups_used groups are chosen (where there are groups), and of their experts the best by
 * score. A NaN is the largest score; of equal ones the lower number is better. Without choice bias
 * and groups the logits are the scores: the order is the same, and floats keep it.
 *
 * Weights are p of the chosen, or softmax over the chosen logits; where normed divided by their sum
 * (at least ROUTE_LEAST_SUM), then multiplied by the scale. The shared expert's is 1, or
 * sigmoid(w_shared . x).
 *
 * Inputs are W [experts, k] (any format), x [m, k], and where there are gamma [k], bias [experts],
 * choice bias [experts], w_shared [k]. Where rounding may change the choice, magnitudes are
 * infinite: of a slot whose place in the order is in doubt, or of all that depends on which experts
 * are chosen. That holds for errors of logits up to this tolerance times the magnitude. */
reference ref_moe_route;
#define REF_ROUTE_TOLERANCE 5e-7
#define ROUTE_LEAST_SUM     0x1p-14

/* How a row's experts are chosen. */
typedef struct ref_score {
    double value, error;
    unsigned number;
    bool same_bits; /* its logit was not rounded: of equal values floats are equal, too */
} ref_score;
typedef struct ref_routing {
    ref_value logits[PROBLEM_MOST_EXPERTS], p[PROBLEM_MOST_EXPERTS];
    double by_number[PROBLEM_MOST_EXPERTS]; /* scores of all experts */
    ref_score scores[PROBLEM_MOST_EXPERTS]; /* in their order; of groups that are not chosen none */
    unsigned count;
    double gap; /* by which the last chosen one, or the last group, is ahead of the next */
    bool slot_in_doubt[PROBLEM_MOST_EXPERTS_USED], set_in_doubt;
    ref_value weights[PROBLEM_MOST_EXPERTS_USED + 1];
} ref_routing;

/* Chooses and weighs experts by logits that are there. */
void ref_route(const problem *p, ref_routing *r);

/* Positions that a KV head of a cache has rows for: position t stands in row t modulo that. */
uint64_t ref_cache_rows(const problem *p);

/* o[m,h,d] = sum over t of softmax_t(cap(q[m,h] . k[kv(h),t] * scale)) v[kv(h),t,d]; inputs q, K,
 * V, of m sequences or one. Without positions, or where all scores are minus infinity, the sum is
 * 0. Where there are sinks [num_heads], an input behind V, exp(sink) is added to what softmax
 * divides by: minus infinity is as none, plus infinity gives NaN. Where there is a gate, the input
 * behind that, o is multiplied by 1 / (1 + exp(-gate)); infinite ones give NaN.
 *
 * The magnitude is sum p|v| for scores of unit size. A score's own rounding error is at most a
 * multiple of A = scale * sum |q||k| (and with a cap, of the score, or of the cap where tanh
 * bends), and an error of e moves p by e p: where A is large, the magnitude grows in proportion. */
reference ref_attention;

/* Partial sums of the chunks of each sequence, rows [m,h,chunk] of head_dim sums of exp(s - max) v,
 * max in units of log 2, the sum of exp(s - max), and two zeros. A chunk without positions has
 * infinite magnitudes: what stands there is of no account. Inputs as above. */
reference ref_attention_chunks;

/* o from such rows: inputs partials, sinks where there are, and seq_lens. */
reference ref_merge_chunks;

/* Makes some gates so large, of either sign, that their sigmoid is 1, or next to or below what f32
 * holds. */
void ref_fit_gates(const problem *p, unsigned input, void *bytes, uint64_t values);

/* Makes random partials possible ones, in place: sums of weights are at least 1, maxima of
 * every second head far apart, and the rows of chunks beyond a sequence's end NaN. */
void ref_fit_partials(const problem *p, unsigned input, void *bytes, uint64_t values);

/* By how much pair i turns at a position: cos and sin of its angle times the magnitude. divisor is
 * element i of the factors, 1 where there are none; NaN where that is infinite or a NaN. */
typedef struct rope_angle {
    double cos, sin;
} rope_angle;
rope_angle ref_rope_angle(const rope_options *o, uint64_t pair, double divisor, uint64_t position);

/* Turns a head's values in place; factors is the input that has these, where the options say so. */
void ref_turn(const problem *p, const rope_options *o, unsigned factors, uint64_t position,
              ref_value *values);

/* Finds the row of m that is written to a row of a cache, by the input that has the positions.
 * Returns false if there is none. */
bool ref_row_at(const problem *p, unsigned positions, uint64_t cache, uint64_t cache_row,
                uint64_t *row);

/* What q is multiplied by: 1 where there is no temperature. */
double ref_rope_temperature(const rope_options *o, uint64_t position);

/* Outputs q [m, num_heads, head_dim], and caches of K and V of m rows or of one sequence [.,
 * num_kv_heads, max_seq_len or ring, head_dim], and where q is gated gates [m, num_heads,
 * head_dim]; inputs qkv [m, num_heads + 2 num_kv_heads, head_dim], where behind each of num_heads
 * its gate may stand, positions [m], the weights of the norms of q and k where there are, the
 * factors where there are. What a kernel must not write (other positions than the rows', and of a
 * row at UINT32_MAX nothing counts) has an infinite magnitude. */
reference ref_rope_kv_write;

/* The caches alone, of inputs k_rows and v_rows [m, num_kv_heads, head_dim] in place of qkv; the
 * problem has no query heads, and no weights of the norm of q. */
reference ref_kv_write;

/* q_out [m, num_heads, head_dim] and k_out [m, num_kv_heads, head_dim] of inputs q, k where there
 * are KV heads, positions [m], factors where there are. */
reference ref_rope;

/* Makes random positions small, large or 0, and random factors nonzero, so that they can divide. */
void ref_fit_turns(const problem *p, unsigned input, void *bytes, uint64_t values);

/* Latent attention (MLA of DeepSeek V2, absorbed), H heads, L = latent, R = n_rope, P = nope: from
 * a row qc [m, H (P + R) + L + R], a head's q being [P, R], or [m, q_rank + L + R], where q is Wq
 * [H (P + R), q_rank] times the RMS norm of the first q_rank values, by gamma_q
 *
 *   q [m, H, L + R]            W[h] [L, P] times a head's first P values, and the RoPE of its R
 *   c [., max_seq_len, L + R]  at a row's position the RMS norm of the L, by gamma, and the RoPE of
 *                              the R: caches of m rows or of one sequence, as ref_rope_kv_write's
 *
 * Inputs W, Wq where there is one, qc, gamma, gamma_q with Wq, positions, factors where there are.
 * With inputs apart qc is [m, H (P + R)], and behind it is one more input, kv [m, L + R]. */
reference ref_mla_query;

/* o[m,h,l] = sum over t of softmax_t(q[m,h] . c[t] * scale) c[t,l], l < latent; inputs q [m, H, L +
 * R], the caches c of m sequences: ref_attention with one cache for all heads and values that are
 * the first ones of the keys. A position of weight 0 still makes NaN of what is infinite there. */

/* y[m,h,d] = sum over l of W[h,d,l] o[m,h,l]; inputs W [H * value_dim, latent], o. */
reference ref_mla_values;

/* Makes random positions the last ones of the sequences (UINT32_MAX of an empty one), and random
 * factors such that divide. */
void ref_fit_rope(const problem *p, unsigned input, void *bytes, uint64_t values);

/* A step of gated delta nets with S = head_dim, num_kv_heads heads of k and q and num_heads of v,
 * of which each of the former serves as many, see DELTA_GROUPED; C = (2 num_kv_heads + num_heads) S
 * channels, those of q, of k, of v. A row at position p:
 *
 *   u[c] = silu(sum over j < 4 of conv[c][j] input[p - 3 + j][c]), inputs ahead of p = 0 being 0
 *   q = u_q / max(|u_q|, epsilon) / sqrt(S),  k = u_k / max(|u_k|, epsilon),  v = u_v
 *   decay = exp(a softplus(alpha + dt)),  beta = sigmoid(b)
 *   d = beta (v - decay state^T k),  state = decay state + k d^T,  o = state^T q
 *   y = o / sqrt(mean(o^2) + epsilon) gamma silu(z)
 *
 * Outputs y [m, num_heads, S]; states, each [num_heads, S, S], of a head element (i, j) at j S + i;
 * the last inputs of the convolution, each [16, C], that of position p in row p % 16. The latter
 * two are updated; they are of m rows, or of one sequence with one position after the other. Inputs
 * x [m, C + num_heads S + 2 num_heads], of a row the inputs of the convolution, z, and key head by
 * key head its values b, then alpha; conv [C, 4]; dt, a [num_heads]; gamma [S]; positions [m]. Of
 * DELTA_TILED x ends with z, and ba [m, 2 num_heads] is one more input, the last: of a row all
 * values b, then all alpha.
 *
 * At position 0 a state counts as 0. A row at max_seq_len or beyond leaves all as it is, and its y
 * is 0. Infinite values of b, alpha, dt and a give NaN. */
reference ref_delta_net;

/* Makes random positions the last ones of the sequences (UINT32_MAX of an empty one), a negative,
 * and what is huge of b and dt as large as floats are. */
void ref_fit_delta_net(const problem *p, unsigned input, void *bytes, uint64_t values);

#endif
