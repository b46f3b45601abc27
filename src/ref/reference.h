/* CPU references of the kernels, in plain C and double precision.
 *
 * A reference computes a range of elements of one output. Each element comes with a magnitude: the
 * sum of the absolute values of its terms (sum |w||x| for a GEMV, sum p|v| for attention). Errors
 * are judged relative to the magnitude, since cancelling terms may leave a small result. Shapes and
 * lists of inputs below are in order; inputs of options that are off are absent. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "kernel/problem.h"

/* Cache of decoded rows and vectors, valid while inputs do not change: saves most time. */
typedef struct ref_kept ref_kept;
ref_kept *ref_kept_new(arena *a);

/* Decodes values [first, first + count) of an input, both multiples of the block size. */
void problem_read(const problem *p, unsigned input, uint64_t first, uint64_t count, float *values);

/* Like problem_read, with weights rounded as in products with 8-bit x. */
void problem_read_rounded(const problem *p, unsigned input, uint64_t first, uint64_t count,
                          float *values);

/* Returns a value of an input without blocks. */
double problem_read_one(const problem *p, unsigned input, uint64_t element);

/* Reads values of an input without blocks, with their absolute values as magnitudes. */
void ref_read(const problem *p, unsigned input, uint64_t first, uint64_t count, ref_value *values);

/* Defines a reference of a single output by a function that computes one element. */
#define REF_BY_ELEMENT(name, element_of)                                         \
    void name(const problem *p, unsigned output, uint64_t first, uint64_t count, \
              ref_value *values)                                                 \
    {                                                                            \
        (void)output;                                                            \
        for (uint64_t i = 0; i < count; i++)                                     \
            values[i] = element_of(p, first + i);                                \
    }

/* Computes elements by rows of `width` <= REF_MOST_OF_ROW values; row_of computes one. */
enum { REF_MOST_OF_ROW = 1024 };
void ref_by_rows(const problem *p, unsigned output, uint64_t width, uint64_t first, uint64_t count,
                 ref_value *values,
                 void (*row_of)(const problem *p, unsigned output, uint64_t number,
                                ref_value *row));

/* Defines a reference by a function that computes a row; width is an expression over p. */
#define REF_BY_ROWS(name, width, row_of)                                         \
    void name(const problem *p, unsigned output, uint64_t first, uint64_t count, \
              ref_value *values)                                                 \
    {                                                                            \
        ref_by_rows(p, output, (uint64_t)(width), first, count, values, row_of); \
    }

/* y[m,n] = cap(residual + scale times activation(factor sum over k of W[n,k] x[m,k] + bias)),
 * cap(y) = c tanh(y / c), with the epilogue's activation. A norm makes x = x / sqrt(mean(x^2) +
 * epsilon) gamma. Inputs W (any format), x (f32 or q8_1), gamma [k], factor [1], bias [n], residual
 * [m,n], times [m,n]. */
reference ref_gemv;

/* Tolerance of problems that quantize x. */
#define REF_QUANTIZING_TOLERANCE 3e-7

/* Turns random words into a valid list of experts. With three or more rows, the last expert gets an
 * id that does not exist, unless all rows use it. */
void ref_fit_experts(const problem *p, unsigned input, void *bytes, uint64_t values);

/* y[m,n] = residual + scale (sum over slots of weight (W[id] f + bias[id]) + shared weight Ws
 * f_shared). Inputs W [experts n, k], Ws [n, n_shared], f [m, experts_used k + n_shared], bias
 * [experts, n], residual [m,n], the shared expert's output [m,n] in place of Ws, weights [m,
 * experts_used + 1 with a shared expert], the list. NaN for an expert that does not exist. */
reference ref_expert_down;

/* First step of the same. y[m, experts_used, n] = W[id] x[m, slot] + bias[id]. Inputs W [plane_rows
 * experts, k], x [m, experts_used, k], bias [experts, n], the list. NaN for an expert that does not
 * exist. */
reference ref_expert_product;

/* Second step. y[m,n] = residual + scale (sum over slots of weights[m, slot] x[m, slot, n]). A
 * shared expert is the last slot. Inputs x, values of the shared expert [m,n], residual [m,n],
 * weights [m, slots]. */
reference ref_expert_sum;

/* A position in an input, in values. */
typedef struct ref_run {
    unsigned input;
    uint64_t first;
} ref_run;

/* Returns the dot product of count weights and values of x, changed by the problem's options:
 * normed over all values (gamma is the next input), times a row factor, or rounded to 8 bits. */
ref_value ref_dot(const problem *p, ref_run weights, ref_run x, uint64_t count);

/* Returns the number of inputs that belong to x (gamma or row factors): 0 or 1. */
unsigned ref_beside_x(const problem *p);

/* Returns the dot product of a matrix row of k values and a vector. */
ref_value ref_dot_row(const problem *p, unsigned matrix, uint64_t row, unsigned vectors,
                      uint64_t vector);

/* Multiplies a sum by the problem's scale, if any. */
void ref_scale(const problem *p, ref_value *sum);

void ref_add(const problem *p, unsigned input, uint64_t element, ref_value *sum);

/* Returns the magnitude that covers the rounding of subnormal results; 0 if value is 0. */
double ref_lost(double value);

/* Returns activation(gate) up, with the problem's activation. */
ref_value ref_gated(const problem *p, ref_value gate, ref_value up);

/* Gate and up products of the experts in use. f[m, experts_used n + n_shared] holds a row's slots,
 * then its shared expert; each value is a(g) u as in ref_gate_up_swiglu. Inputs Wg, Wu [plane_rows
 * experts, k], Wg, Wu of the shared expert [n_shared, k], x [m,k], gamma, biases [experts, n] of
 * gate and up, the list. NaN for an expert that does not exist. Ungated experts are a(u), without
 * Wg and its bias. */
reference ref_expert_gate_up;

/* y[m, n + n_kv + n_v] = the rows of Wq x, Wk x, Wv x. Inputs Wq [n,k], Wk [n_kv,k], Wv [n_v,k]
 * (any formats), x, gamma, factors [1] and biases [n], [n_kv], [n_v] of each. If n_v is 0, Wv and
 * its bias are absent. */
reference ref_qkv;

/* Output i is W_i x, for i = 0, 1. Inputs W_0, W_1 [n,k] (any format), x (f32 or q8_1). */
reference ref_gemv_pair;

/* y[m,n] = a(g) u with g = W_0 x, u = W_1 x and the problem's activation a. swiglu_oai clamps u and
 * adds 1; infinite g or u give NaN. Inputs W_0, W_1, x [m,k], gamma, factors [1] and biases [n] of
 * gate and up. */
reference ref_gate_up_swiglu;

/* Returns an activation of g. Infinities give NaN with relu and relu2, and all with xielu. */
double ref_activation(int64_t activation, double g);
/* Returns xielu(x), see problem.h. */
double ref_xielu(const float numbers[XIELU_NUMBERS], double x);
/* Return a(g), at most the limit, and its factor for u. */
double ref_gate(const problem_options *o, double g);
double ref_gate_factor(const problem_options *o, double u);

/* Elementwise kernels. Inputs x [m,k], or g and u, or a and b, where b may be one row [k].
 *
 *   silu     x sigmoid(x)                 gelu      by the problem's approximation
 *   relu     max(x, 0)                    scale     s x
 *   swiglu   a(g) u, see ref_gate_up_swiglu
 *   add      a + b                        multiply  a b
 *   convert  W [n,k] of any format
 *
 * Infinities and NaN follow IEEE arithmetic. */
reference ref_silu_rows, ref_gelu_rows, ref_relu_rows, ref_scale_rows, ref_swiglu_rows,
    ref_add_rows, ref_multiply_rows, ref_convert;

/* y = exp(scale x - max) / sum, by rows [m,k]. NaN for rows without finite values or with NaN. */
reference ref_softmax;

/* y[m,k,n] = x[m,n,k]. */
reference ref_transpose;

/* ref_gemv with a norm. */
reference ref_rmsnorm_gemv;

/* Values that are quantized to q8_1 blocks: input x. */
reference ref_q8_1_quantize;

/* y[m,k] = scale W[token[m]], with scale as f32. Inputs W [n,k] (any format), tokens [m]. NaN for a
 * token of n or more. With scale = 1 the result must be exact. With a history, output history
 * [m,history]: token of row i at word positions[i] % history; the other words are not written.
 * Nothing is stored for a token of n or more, or position UINT32_MAX. */
reference ref_embed_rows;

/* Turns random words into tokens below n. The last of two is n, the second of three UINT32_MAX.
 * Makes one of several positions (input 2) UINT32_MAX. */
void ref_fit_tokens(const problem *p, unsigned input, void *bytes, uint64_t values);

/* y[layers, m, P] = (norm(a[m, layers, P]) gamma + scale W[token[m], layers, P]) factor, with norm as
 * in ref_rms_norm, P = per_layer and k = layers P. Inputs W [n,k] (any format), a [m,k], gamma [P],
 * tokens [m]. NaN for a token of n or more, and where a sum of squares overflows f32. */
reference ref_per_layer_rows;

/* y = norm(x) gamma with norm(x) = x / sqrt(mean(x^2) + epsilon); with a residual
 *
 *   ADD                h_out = h + scale x, y = norm(h_out) gamma
 *   POST_NORM          h_out = h + scale norm(x) gamma, without y
 *   POST_AND_PRE_NORM  h_out = h + scale norm(x) gamma, y = norm(h_out) next_gamma
 *
 * Options: GAMMA_NONE counts gamma as 1; out_scale multiplies h_out, before the norm of it; with G =
 * num_groups rows of gamma, row r has weights r % G. Outputs y, h_out [m,k]; inputs gamma [G, k],
 * next_gamma [k], x, h [m,k], out_scale [1]. NaN if a row's sum of squares overflows f32. */
reference ref_rms_norm;

/* y = (x - mean(x)) / sqrt(mean((x - mean(x))^2) + epsilon) gamma + beta. Output y [m,k], inputs
 * gamma, beta [k] (only with a bias), x [m,k]. NaN if a row's sum or variance overflows f32. */
reference ref_layer_norm;

/* Rows of x as f16 with a factor per row, see problem_options.row_factors. Outputs rows [m,k] = x
 * gamma 2^e, factors [m] = 2^-e times the norm's factor; inputs x [m,k], gamma [k]. e is 0 if the
 * row's largest value is in [1, 2^15). Otherwise 2^e scales it to [2^14, 2^15), with e <= 126. */
reference ref_f16_rows;

/* Like ref_f16_rows in 8 bits, without a power of two. Outputs rows [m,k], which become q8_f32
 * blocks, and factors [m], the norm's factor or 1; inputs x [m,k], gamma [k]. */
reference ref_q8_rows;

/* Samples the next token of m sequences. Outputs token, next_position, length [m], the number of
 * positions that attention to the token covers. Inputs logits [m,n], positions [m] of the logits,
 * settings [m, SAMPLING_WORDS]; with these options history [m,history], penalties
 * [m, PENALTY_WORDS], biases [m,biases,2], mask [m,ceil(n/32)].
 *
 * Tokens are ordered by logit, descending, then by number. A logit l is transformed to t =
 * cap(scale l). With a history, biases or a mask, t is then adjusted, and tokens are ordered by t:
 * - Penalties: for a token that occurs c > 0 times in the last last_n positions of the history, up
 *   to the row's own, t is divided by repetition if t > 0, else multiplied. Then c * frequency +
 *   presence is subtracted. Tokens of n or more do not count.
 * - Biases of the token are added in the order of the list. Tokens of n or more have no effect.
 * - A masked row's tokens that are not allowed get minus infinity.
 *
 * NaN and infinite l are not scaled or capped before the adjustments. Steps:
 * - top_k keeps the first k tokens.
 * - top_p keeps the shortest prefix of these with a share of p of their sum of exp(t).
 * - min_p drops tokens with exp(t) below min_p of the first token's.
 * - A token is drawn from the rest with weights exp(t / temperature): the first at which the
 *   running sum exceeds u times the total. u is the first word of Philox4x32-10 / 2^32, with the
 *   seed as key and counter (position, 0, 0, 0).
 *
 * If temperature is not above 0, or a logit is plus infinity, the first token is taken. If a logit
 * is NaN, or all are minus infinity, the token is UINT32_MAX. A row with position UINT32_MAX is
 * unused: its token and next_position are UINT32_MAX, its length is 0.
 *
 * With N = logprobs: outputs logprobs [m,1+N], t - ln(sum of exp(t)) of the drawn token and of the N
 * first tokens, best [m,N], these tokens; both without adjustments. They are NaN and UINT32_MAX if
 * the row has no token or its largest logit is infinite, or if n < N for the missing tokens. */
reference ref_sample;

/* Returns the runs in which each sampling setting meets each arrangement of logits. */
uint64_t ref_sampling_turns(const problem_shape *s);
/* Makes positions and settings valid, and arranges logits. */
void ref_fit_sampling(const problem *p, unsigned input, void *bytes, uint64_t values);

/* Returns the first word of Philox4x32-10 with counter (counter, 0, 0, 0). */
uint32_t ref_philox(uint32_t counter, uint32_t key_low, uint32_t key_high);

/* Routes m rows of x to experts. With logits logit_scale W x + bias (f32 sums; x RMS-normed if the
 * problem says so), U = experts_used, S = 1 with a shared expert, else 0, the outputs are
 *
 *   ids      [m, U]      the chosen experts, best first
 *   weights  [m, U + S]  their weights in that order, then the shared expert's
 *   list     [4 + L (2 + m)], L = min(experts, m U): the number of experts in use, three zeros; per
 *            expert in use, ascending: its id, its number of rows, and for each row, ascending,
 *            row * U + slot; unused words are UINT32_MAX. Unused entries have 0 rows and
 *            otherwise UINT32_MAX
 *
 * p is softmax(logits), sigmoid(logits) or the logits, by the gating. A score is p plus the choice
 * bias. The score of a group of adjacent experts is the sum of its two best scores. The best
 * groups_used groups are chosen, then the best experts in them. A NaN is the largest score; of
 * equal scores the lower number is better. Without choice bias and groups the logits are the
 * scores: the order is the same, and floats preserve it.
 *
 * Weights are p of the chosen, or a softmax over the chosen logits. If normed, they are divided by
 * their sum (at least ROUTE_LEAST_SUM); then they are multiplied by the scale and by their expert's
 * scale. The shared expert's weight is 1 or sigmoid(w_shared . x), times the shared scale.
 *
 * Inputs are W [experts, k] (any format), x [m, k], gamma [k], bias [experts], choice bias
 * [experts], expert scale [experts], w_shared [k]. If rounding may change the choice, the magnitudes
 * that depend on it are infinite: those of a slot with an uncertain rank, or all if the set of
 * experts is uncertain. This covers logit errors up to REF_ROUTE_TOLERANCE times the magnitude. */
reference ref_moe_route;
#define REF_ROUTE_TOLERANCE 5e-7
#define ROUTE_LEAST_SUM     0x1p-14

/* The routing of a row. A ref_score ranks an expert or a group. */
typedef struct ref_score {
    double value, error;
    unsigned number;
    bool same_bits; /* its logit is exact, so equal values are equal as floats */
} ref_score;
typedef struct ref_routing {
    ref_value logits[PROBLEM_MOST_EXPERTS], p[PROBLEM_MOST_EXPERTS];
    double by_number[PROBLEM_MOST_EXPERTS]; /* scores by expert */
    ref_score scores[PROBLEM_MOST_EXPERTS]; /* sorted candidates, only of chosen groups */
    unsigned count;
    double gap; /* margin of the last chosen expert, or group, over the next */
    bool slot_in_doubt[PROBLEM_MOST_EXPERTS_USED], set_in_doubt;
    ref_value weights[PROBLEM_MOST_EXPERTS_USED + 1];
} ref_routing;

/* Chooses and weighs experts. r->logits is the input. */
void ref_route(const problem *p, ref_routing *r);

/* Return the rows per KV head in a page of a cache; the sequence of a row of the batch; and the
 * number of a position's row in the pool of pages. Position t is in row t modulo those of a page. */
uint64_t ref_page_rows(const problem *p);
uint64_t ref_sequence(const problem *p, uint64_t row);
uint64_t ref_cache_row(const problem *p, uint64_t sequence, uint64_t kv_head, uint64_t position);

/* Returns the page at an entry of a test's page table: neighbouring entries have distant pages. */
uint64_t ref_scattered_page(uint64_t entry, uint64_t count);

/* o[m,h,d] = sum over t of softmax_t(cap(q[m,h] . k[kv(h),t] * scale)) v[kv(h),t,d]. Inputs q, K, V
 * of m sequences or one, sinks [num_heads], gate. o is 0 without positions, or if all scores are
 * minus infinity. A sink adds exp(sink) to the divisor: minus infinity is a no-op, plus infinity
 * gives NaN. A gate multiplies o by 1 / (1 + exp(-gate)); infinite gates give NaN.
 *
 * The magnitude is sum p|v| for scores of unit size. A score's rounding error is at most a multiple
 * of A = scale * sum |q||k|, plus, with a cap, of the score, or of the cap where tanh saturates. An
 * error of e changes p by e p, so the magnitude grows in proportion to a large A.
 *
 * With latent > 0, q is [m, H, L + R], all heads share a cache c, and the values are c[t,l] with l
 * < latent. An infinite value gives NaN even with weight 0. */
reference ref_attention;

/* Partial results of attention by chunks. Rows [m, h, chunk] hold head_dim sums of exp(s - max) v,
 * max / ln 2, the sum of exp(s - max), and two zeros. Rows of chunks without positions have
 * infinite magnitudes and are unspecified. Inputs as in ref_attention. */
reference ref_attention_chunks;

/* o from partial rows. Inputs partials, sinks, seq_lens. */
reference ref_merge_chunks;

/* Sets some gates to large values: their sigmoid is 1, or near or below the smallest f32. */
void ref_fit_gates(const problem *p, unsigned input, void *bytes, uint64_t values);

/* Turns random partials into valid ones. Sums of weights are at least 1. The maxima of every second
 * head are far apart. Rows of chunks beyond the sequence's end are NaN. */
void ref_fit_partials(const problem *p, unsigned input, void *bytes, uint64_t values);

/* cos and sin of a pair's angle times the magnitude; NaN for infinite or NaN divisors. */
typedef struct rope_angle {
    double cos, sin;
} rope_angle;
rope_angle ref_rope_angle(const rope_options *o, uint64_t pair, double divisor, uint64_t position);

/* Rotates a head's values in place. factors is the input of the factors, if any. */
void ref_turn(const problem *p, const rope_options *o, unsigned factors, uint64_t position,
              ref_value *values);

/* Finds the batch row and KV head that a row of the pool belongs to, by the input positions. Returns
 * false if the launch does not write it. */
bool ref_row_at(const problem *p, unsigned positions, uint64_t cache_row, uint64_t *row,
                uint64_t *head);

/* Returns the factor for q: 1 without a temperature. */
double ref_rope_temperature(const rope_options *o, uint64_t position);

/* Outputs q [m, num_heads, head_dim], the K and V caches of m rows or of one sequence [.,
 * num_kv_heads, max_seq_len or ring, head_dim], and gates [m, num_heads, head_dim]. Inputs qkv [m,
 * num_heads + 2 num_kv_heads, head_dim] (a gated head of q is followed by its gate), positions [m],
 * norm weights of q and k, factors. Elements that the kernel must not write have infinite
 * magnitudes: cache rows of other positions, and everything of a row at UINT32_MAX. */
reference ref_rope_kv_write;

/* Writes only the caches, from k_rows, v_rows [m, num_kv_heads, head_dim], without q. */
reference ref_kv_write;

/* q_out [m, num_heads, head_dim], k_out by KV heads. Inputs q, k, positions [m], factors. */
reference ref_rope;

/* Makes random positions small, large or 0, and random factors nonzero. */
void ref_fit_turns(const problem *p, unsigned input, void *bytes, uint64_t values);

/* Queries and cache rows of latent attention (MLA of DeepSeek V2, absorbed) with H heads, L =
 * latent, R = n_rope, P = nope. A row of qc [m, H (P + R) + L + R] holds H heads of q as [P, R],
 * then [L, R]. With q_rank, it is [m, q_rank + L + R], and q is Wq [H (P + R), q_rank] times the
 * RMS norm (gamma_q) of the first q_rank values. With plane_rows, W is [H * plane_rows, L], and W[h]
 * is the transpose of the first P rows of each plane_rows.
 *
 *   q [m, H, L + R]            W[h] [L, P] times a head's first P values, and the RoPE of its R
 *   c [., max_seq_len, L + R]  at the row's position: the RMS norm (gamma) of the L, and the RoPE
 *                              of the R; caches of m rows or of one sequence
 *
 * Inputs W, Wq, qc, gamma, gamma_q, positions, factors. With options.apart, qc is [m, H (P + R)]
 * and is followed by kv [m, L + R]. */
reference ref_mla_query;

/* y[m,h,d] = sum over l of W[h,d,l] o[m,h,l]. Inputs W [H * value_dim, latent], o. With
 * plane_rows, W is [H * plane_rows, latent], and W[h] the last value_dim rows of each plane_rows. */
reference ref_mla_values;

/* Sets positions to the sequences' last (UINT32_MAX: empty). Makes factors nonzero. */
void ref_fit_rope(const problem *p, unsigned input, void *bytes, uint64_t values);

/* A step of gated delta nets with S = head_dim, num_kv_heads heads of q and k, num_heads heads of v
 * (DELTA_GROUPED or DELTA_TILED assigns them), and C = (2 num_kv_heads + num_heads) S channels: q,
 * k, v. For a row at position p:
 *
 *   u[c] = silu(sum over j < 4 of conv[c][j] input[p - 3 + j][c]), inputs before p = 0 being 0
 *   q = u_q / max(|u_q|, epsilon) / sqrt(S),  k = u_k / max(|u_k|, epsilon),  v = u_v
 *   decay = exp(a softplus(alpha + dt)),  beta = sigmoid(b)
 *   d = beta (v - decay state^T k),  state = decay state + k d^T,  o = state^T q
 *   y = o / sqrt(mean(o^2) + epsilon) gamma silu(z)
 *
 * Outputs:
 * - y [m, num_heads, S]
 * - states [num_heads, S, S], element (i, j) of a head at j S + i
 * - convolution inputs [16, C], of position p in row p % 16
 *
 * States and convolution inputs are updated in place. They belong to m rows, or to one sequence
 * with consecutive positions.
 *
 * Inputs:
 * - x [m, C + num_heads S + 2 num_heads]: convolution inputs, z, and per key head its b, then alpha
 * - conv [C, 4], dt, a [num_heads], gamma [S], positions [m]
 * - ba [m, 2 num_heads], only of DELTA_TILED: all b, then all alpha; x ends with z
 *
 * The state at position 0 is 0. A row at max_seq_len or beyond changes nothing, and its y is 0.
 * Infinite b, alpha, dt or a give NaN. */
reference ref_delta_net;

/* Sets positions to the last ones, a negative, and huge b and dt to the f32 limit. */
void ref_fit_delta_net(const problem *p, unsigned input, void *bytes, uint64_t values);

/* A step of Mamba-2 with H = num_heads heads of D = head_dim channels, G = num_groups, N =
 * state_size, k = conv_kernel and C = H D + 2 G N channels: X of all heads, B, C of all groups. For
 * a row at position p:
 *
 *   u[c] = silu(bias[c] + sum over j < k of conv[c][j] input[p - k + 1 + j][c]), inputs before p = 0
 *          being 0
 *   X = u_X,  B = u_B,  C = u_C;  head h uses group h / (H / G)
 *   delta = softplus(x_dt + dt),  decay = exp(delta a)
 *   state = decay state + delta X B^T,  y = (state C + d X) silu(z)
 *
 * Outputs y [m, H D], states [H D, N], convolution inputs [16, C]; rows and updates as in
 * ref_delta_net. Inputs x [m, H D + C + H] (z, convolution inputs, x_dt), conv [C, k], dt, a, d [H],
 * positions [m], bias [C]. Infinite x_dt, dt or a give NaN. */
reference ref_mamba2;

/* The recurrence of Mamba with I = n channels and N = state_size. For a row:
 *
 *   delta = softplus(dt),  decay = exp(delta a)
 *   state = decay state + (delta u) B^T,  y = (state C + d u) silu(z)
 *
 * With NORM_RMS, B and C are divided by sqrt(mean of squares + epsilon) first. Outputs y [m, I],
 * states [I, N]; rows and updates as in ref_delta_net. Inputs x [m, 2 I] (I other values, z), u, dt
 * [m, I], a [I, N], d [I], positions [m], bc [m, dt_rank + 2 N] (dt_rank other values, B, C).
 * Infinite dt or a give NaN. */
reference ref_mamba_scan;

/* Sets positions to the last ones of the sequences (UINT32_MAX if empty), and makes a negative. */
void ref_fit_mamba(const problem *p, unsigned input, void *bytes, uint64_t values);

/* A step of a short convolution. With L = conv_kernel:
 *
 *   w_p = sum over j < L of conv[][j] v_(p - L + 1 + j), values v before p = 0 being 0
 *   CONV_GATED  v = b u, y = c w; a row of x [m, 3n] has b, c, u
 *   CONV_SILU   v = u, y = silu(w + bias); a row of x [m, 2n] has u and n other values
 *
 * Outputs y [m,n] and rings [16, n] of v, rounded to f32, of position p in row p % 16; rows and
 * updates as in ref_delta_net. Inputs x, conv [n, L], positions [m], bias [n]. */
reference ref_short_conv;
