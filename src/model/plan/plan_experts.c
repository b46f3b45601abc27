/* A mixture of experts as the feed-forward of a layer:
 *
 *   route    norm(middle), ffn_gate_inp                    -> ids, mix, list
 *   gate_up  norm(middle), of the experts in use, shared   -> f
 *   down     of the experts in use, shared, mix + middle   -> h
 *
 * With a post-norm the sum goes to a buffer, and the norm adds it to middle.
 *
 * With a dense feed-forward beside experts, norms make f of both outputs:
 *
 *   norm     norm(dense)                                   -> both
 *   norm     norm(down) + both                             -> both
 *   norm     norm(both) + middle                           -> h
 *
 * On tensor cores the shared expert has separate products:
 *
 *   gate_up  norm(middle), of the experts in use           -> f
 *   gate_up  norm(middle), shared                          -> f_shared
 *   down     f_shared                                      -> shared
 *   down     of the experts in use, f                      -> choices
 *   sum      mix of choices and shared + middle            -> h
 */
#include "model/plan/plan_product.h"

/* Returns the rows that a layer's experts read, with their norm. */
static plan_rows rows_of_experts(planner *p)
{
    if (!decoder_is_beside(p->d, p->layer))
        return plan_feed_rows(p);
    return plan_normed(p, planner_stream(p), TENSOR_PRE_FFW_NORM_2, 0, p->m, p->d->hidden);
}

static void add_route(planner *p)
{
    static const plan_bind binds[] = { { "ids", BIND_BUFFER, BUFFER_IDS },
                                       { "weights", BIND_BUFFER, BUFFER_MIX },
                                       { "list", BIND_BUFFER, BUFFER_LIST },
                                       { "w", BIND_TENSOR, TENSOR_FFN_GATE_INP },
                                       { "bias", BIND_TENSOR, TENSOR_FFN_GATE_INP_BIAS },
                                       { "choice_bias", BIND_TENSOR, TENSOR_EXP_PROBS_B },
                                       { "expert_scale", BIND_TENSOR, TENSOR_FFN_DOWN_EXPS_SCALE },
                                       { "w_shared", BIND_TENSOR, TENSOR_FFN_GATE_INP_SHEXP },
                                       { "scratch", BIND_BUFFER, BUFFER_SCORES },
                                       { 0 } };
    const decoder *d = p->d;
    const plan_key keys[] = {
        { "weights", planner_format(p, TENSOR_FFN_GATE_INP) },
        { "k", d->hidden },
        { "bias", planner_has(p, TENSOR_FFN_GATE_INP_BIAS) },
        { "choice_bias", planner_has(p, TENSOR_EXP_PROBS_B) },
        { "expert_scale", planner_has(p, TENSOR_FFN_DOWN_EXPS_SCALE) },
        { "logit_scale", real_bits(d->router_scale) },
        { "groups", d->expert_groups },
        { "groups_used", d->expert_groups_used },
        { "normed", d->experts_normed },
        { "scale", real_bits(d->experts_scale) },
        { "shared", d->shared_ff ? 1 + planner_has(p, TENSOR_FFN_GATE_INP_SHEXP) : 0 },
        { 0 },
    };
    const buffer_id from = d->parallel ? BUFFER_H : planner_stream(p);
    const plan_rows x = planner_has(p, TENSOR_ROUTER_NORM)
                            ? plan_normed(p, from, TENSOR_ROUTER_NORM, 0, p->m, d->hidden)
                            : rows_of_experts(p);
    launch_draft l = planner_draft(p, FAMILY_MOE_ROUTE, keys, binds);
    if (d->shared_scale > 0)
        planner_set(&l.in, "shared_scale", real_bits(d->shared_scale));
    plan_bind_rows(p, &l, &x);
    planner_add(p, &l,
                arena_format(p->arena,
                             x.norm != TENSOR_COUNT ? "norm(%s), ffn_gate_inp -> ids, mix, list"
                                                    : "%s, ffn_gate_inp -> ids, mix, list",
                             buffer_lives[x.x].name));
}

static void add_gate_up(planner *p, bool apart)
{
    static const plan_bind binds[] = { { "y", BIND_BUFFER, BUFFER_F },
                                       { "wsg", BIND_TENSOR, TENSOR_FFN_GATE_SHEXP },
                                       { "wsu", BIND_TENSOR, TENSOR_FFN_UP_SHEXP },
                                       { "bg", BIND_TENSOR, TENSOR_FFN_GATE_EXPS_BIAS },
                                       { "bu", BIND_TENSOR, TENSOR_FFN_UP_EXPS_BIAS },
                                       { "list", BIND_BUFFER, BUFFER_LIST },
                                       { 0 } };
    const decoder *d = p->d;
    bool fused = planner_has(p, TENSOR_FFN_GATE_UP_EXPS);
    decoder_tensor gate = fused         ? TENSOR_FFN_GATE_UP_EXPS
                          : d->no_gates ? TENSOR_FFN_UP_EXPS
                                        : TENSOR_FFN_GATE_EXPS;
    decoder_tensor up = fused ? TENSOR_FFN_GATE_UP_EXPS : TENSOR_FFN_UP_EXPS;
    const plan_key keys[] = { { "weights", planner_format(p, gate) },
                              { "k", d->hidden },
                              { "n", d->expert_ff },
                              { "plane_rows", fused ? 2 * d->expert_ff : d->expert_ff },
                              { "bias", planner_has(p, TENSOR_FFN_UP_EXPS_BIAS) },
                              { "ungated", d->no_gates },
                              { 0 } };
    const plan_key formats_keys[] = { { "weights_g", planner_format(p, gate) },
                                      { "weights_u", planner_format(p, up) },
                                      { "n_shared", d->shared_ff },
                                      { 0 } };
    const plan_key shared_keys[] = {
        { "weights_sg",
          planner_format(p, d->no_gates ? TENSOR_FFN_UP_SHEXP : TENSOR_FFN_GATE_SHEXP) },
        { "weights_su", planner_format(p, TENSOR_FFN_UP_SHEXP) },
        { 0 },
    };
    family_id of =
        plan_product_family(p, gate, FAMILY_MMA_Q8_EXPERT_GATE_UP, FAMILY_STREAM_EXPERT_GATE_UP,
                            FAMILY_EXACT_EXPERT_GATE_UP, FAMILY_MMA_EXPERT_GATE_UP);
    launch_draft l = planner_draft(p, of, keys, binds);
    if (!d->no_gates)
        planner_bind_rows(p, &l, "wg", gate, 0);
    planner_bind_rows(p, &l, "wu", up, fused ? (uint64_t)d->expert_ff : 0);
    if (!apart)
        planner_set_all(&l.in, formats_keys);
    if (!apart && d->shared_ff)
        planner_set_all(&l.in, shared_keys);
    const plan_rows x = rows_of_experts(p);
    if (d->at[p->layer].expert_limit > 0)
        planner_set(&l.in, "limit", real_bits(d->at[p->layer].expert_limit));
    if (!apart && d->shared_ff && d->at[p->layer].shared_limit > 0)
        planner_set(&l.in, "shared_limit", real_bits(d->at[p->layer].shared_limit));
    plan_bind_rows(p, &l, &x);
    if (apart)
        planner_set_rows(p, &l, p->m);
    planner_add(p, &l,
                arena_format(p->arena,
                             x.norm != TENSOR_COUNT ? "norm(%s), %s of experts, activation -> f"
                                                    : "%s, %s of experts, activation -> f",
                             buffer_lives[x.x].name, d->no_gates ? "up" : "gate and up"));
}

/* Adds the norms of a dense feed-forward and of experts, and that of their sum. */
static void add_both(planner *p)
{
    static const plan_branch both = { .post_norm = TENSOR_POST_FFW_NORM, .product = BUFFER_BOTH };
    static const plan_bind dense_binds[] = { { "y", BIND_BUFFER, BUFFER_BOTH },
                                             { "x", BIND_BUFFER, BUFFER_DENSE },
                                             { "gamma", BIND_TENSOR, TENSOR_POST_FFW_NORM_1 },
                                             { 0 } };
    static const plan_bind expert_binds[] = { { "h_out", BIND_BUFFER, BUFFER_BOTH },
                                              { "h", BIND_BUFFER, BUFFER_BOTH },
                                              { "x", BIND_BUFFER, BUFFER_DOWN },
                                              { "gamma", BIND_TENSOR, TENSOR_POST_FFW_NORM_2 },
                                              { 0 } };
    const decoder *d = p->d;
    double epsilon = d->post_norm_epsilon > 0 ? d->post_norm_epsilon : d->epsilon;
    plan_key keys[] = {
        { "k", d->hidden }, { "epsilon", real_bits(epsilon) }, { "residual", RESIDUAL_NONE }, { 0 }
    };
    planner_launch(p, FAMILY_RMS_NORM, keys, dense_binds, "norm(dense) -> both");
    keys[2].value = RESIDUAL_POST_NORM;
    planner_launch(p, FAMILY_RMS_NORM, keys, expert_binds, "norm(down) + both -> both");
    plan_add_normed(p, &both);
}

/* Adds a kernel whose y is added to the hidden states, by the kernel or by a post-norm. */
static void add_sum(planner *p, launch_draft *l, const char *said)
{
    static const plan_branch sum = { .post_norm = TENSOR_POST_FFW_NORM, .product = BUFFER_DOWN };
    const buffer_id residual = planner_stream(p), next = plan_next_stream(p);
    bool post = planner_has(p, sum.post_norm);
    planner_bind_buffer(p, l, "y", post ? sum.product : next, 0);
    if (!post) {
        planner_set(&l->in, "residual", 1);
        if (p->d->residual_scale > 0)
            planner_set(&l->in, "scale", real_bits(p->d->residual_scale));
        planner_bind_buffer(p, l, "residual", residual, 0);
        said = arena_format(p->arena, "%s + %s -> %s", said, buffer_lives[residual].name,
                            buffer_lives[next].name);
    } else {
        said = arena_format(p->arena, "%s -> %s", said, buffer_lives[sum.product].name);
    }
    planner_add(p, l, said);
    if (decoder_is_beside(p->d, p->layer))
        add_both(p);
    else if (post)
        plan_add_normed(p, &sum);
    else
        p->branches++;
}

/* Adds the product of f and ffn_down: to choices if the shared expert is apart, else summed into
 * middle. */
static void add_down(planner *p, bool apart)
{
    static const plan_bind binds[] = { { "y", BIND_BUFFER, BUFFER_CHOICES },
                                       { "w", BIND_TENSOR, TENSOR_FFN_DOWN_EXPS },
                                       { "ws", BIND_TENSOR, TENSOR_FFN_DOWN_SHEXP },
                                       { "x", BIND_BUFFER, BUFFER_F },
                                       { "bd", BIND_TENSOR, TENSOR_FFN_DOWN_EXPS_BIAS },
                                       { "bias", BIND_TENSOR, TENSOR_FFN_DOWN_EXPS_BIAS },
                                       { "weights", BIND_BUFFER, BUFFER_MIX },
                                       { "list", BIND_BUFFER, BUFFER_LIST },
                                       { 0 } };
    const decoder *d = p->d;
    const plan_key keys[] = {
        { "weights", planner_format(p, TENSOR_FFN_DOWN_EXPS) },
        { "k", d->expert_ff },
        { "n", d->hidden },
        { apart ? "plane_rows" : "n_shared", apart ? d->hidden : d->shared_ff },
        { "bias", planner_has(p, TENSOR_FFN_DOWN_EXPS_BIAS) },
        { 0 },
    };
    const plan_rows f = { BUFFER_F,     0,         p->m * d->experts_used, d->expert_ff,
                          TENSOR_COUNT, FORMAT_F32 };
    family_id of = plan_product_family(p, TENSOR_FFN_DOWN_EXPS, FAMILY_MMA_Q8_EXPERT_DOWN,
                                       FAMILY_STREAM_EXPERT_DOWN, FAMILY_EXACT_EXPERT_DOWN,
                                       FAMILY_MMA_EXPERT_DOWN);
    launch_draft l = planner_draft(p, of, keys, binds);
    if (apart)
        plan_bind_rows(p, &l, &f);
    else if (d->shared_ff)
        planner_set(&l.in, "weights_s", planner_format(p, TENSOR_FFN_DOWN_SHEXP));
    planner_set_rows(p, &l, p->m);
    if (apart)
        planner_add(p, &l, "ffn_down of experts f -> choices");
    else
        add_sum(p, &l, "mix of ffn_down of experts f");
}

bool plan_separates_shared(const planner *p)
{
    return decoder_is_prompt(p->m) || plan_uses_bytes(p, TENSOR_FFN_DOWN_EXPS);
}

void plan_experts(planner *p)
{
    static const plan_gates shared_gates = { .gate = TENSOR_FFN_GATE_SHEXP,
                                             .up = TENSOR_FFN_UP_SHEXP,
                                             .fused = TENSOR_COUNT,
                                             .y = BUFFER_F_SHARED };
    static const plan_product shared_down = { .w = TENSOR_FFN_DOWN_SHEXP,
                                              .x = BUFFER_F_SHARED,
                                              .y = BUFFER_SHARED,
                                              .residual = BUFFERS,
                                              .norm = TENSOR_COUNT };
    static const plan_bind mix_binds[] = { { "x", BIND_BUFFER, BUFFER_CHOICES },
                                           { "shared", BIND_BUFFER, BUFFER_SHARED },
                                           { "weights", BIND_BUFFER, BUFFER_MIX },
                                           { 0 } };
    const plan_key mix_keys[] = { { "n", p->d->hidden }, { "shared", p->d->shared_ff > 0 }, { 0 } };
    bool apart = plan_separates_shared(p);
    add_route(p);
    add_gate_up(p, apart);
    if (apart && p->d->shared_ff) {
        plan_multiply_gates(p, &shared_gates);
        plan_multiply(p, &shared_down, p->m, 0);
    }
    add_down(p, apart);
    if (apart) {
        launch_draft l = planner_draft(p, FAMILY_EXPERT_SUM, mix_keys, mix_binds);
        add_sum(p, &l, "mix of choices");
    }
}
