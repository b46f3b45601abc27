/* A layer's kernels, and the buffers of the workspace that they hand on. The same buffers have the
 * same places in every layer. Attention, or what stands in its place, makes middle of h; then comes
 * the feed-forward:
 *
 *   gate_up    norm(middle), W_gate W_up           -> f
 *   down       W_down f + middle                   -> h
 *
 * In steps of prompts what products on tensor cores take is made f16 ahead of them, norm(middle) or
 * f -> rows, once for all that take the same.
 *
 * With norms behind attention and feed-forward, their last products make one of their own, and a
 * norm adds it to h or middle. h and middle are two buffers: no kernel writes what it reads.
 */
#include "model/plan/plan_product.h"

/* Which targets overlap or not, kernels have one name on all of them. */
static bool may_overlap(const planner *p)
{
    for (size_t i = 0; i < p->target_count; i++)
        if (target_overlaps(p->targets[i]))
            return true;
    return false;
}

/* The first launch of a step waits for the step ahead before it lets others start, which then find
 * what that has left: tokens, positions and lengths. */
void plan_embed(planner *p)
{
    static const plan_bind binds[] = {
        { "y", BIND_BUFFER, BUFFER_H },
        { "w", BIND_TENSOR, TENSOR_TOKEN_EMBD },
        { "tokens", BIND_STATE, AT_TOKENS },
        { 0 },
    };
    const decoder *d = p->d;
    const plan_key keys[] = {
        { "weights", planner_format(p, TENSOR_TOKEN_EMBD) },
        { "m", p->m },
        { "k", d->hidden },
        { "n", d->vocab },
        { "scale", real_bits(d->embedding_scale) },
        { "trigger", may_overlap(p) ? TRIGGER_WAITED : TRIGGER_FIRST },
        { 0 },
    };
    planner_launch(p, FAMILY_EMBED_ROWS, keys, binds, "token_embd[token] -> h");
}

void plan_layer(planner *p)
{
    static const plan_gates gates = { .gate = TENSOR_FFN_GATE,
                                      .up = TENSOR_FFN_UP,
                                      .fused = TENSOR_FFN_GATE_UP,
                                      .y = BUFFER_F,
                                      .said = "norm(middle), ffn_gate ffn_up, activation -> f",
                                      .said_fused = "norm(middle), ffn_up, activation -> f" };
    static const plan_branch down = { .w = TENSOR_FFN_DOWN,
                                      .post_norm = TENSOR_POST_FFW_NORM,
                                      .x = BUFFER_F,
                                      .product = BUFFER_DOWN,
                                      .residual = BUFFER_MIDDLE,
                                      .sum = BUFFER_H,
                                      .said = "ffn_down f + middle -> h",
                                      .said_alone = "ffn_down f -> down",
                                      .said_norm = "norm(down) + middle -> h" };
    if (p->d->recurrent[p->layer])
        plan_delta_net(p);
    else if (p->d->latent)
        plan_latent_attention(p);
    else
        plan_attention(p);
    if (planner_has(p, TENSOR_FFN_GATE_INP)) {
        plan_experts(p);
    } else {
        plan_multiply_gates(p, &gates);
        plan_add_branch(p, &down);
    }
}

void plan_logits(planner *p, int64_t rows)
{
    const decoder *d = p->d;
    bool own = planner_has(p, TENSOR_OUTPUT);
    const plan_product of = { .w = own ? TENSOR_OUTPUT : TENSOR_TOKEN_EMBD,
                              .x = BUFFER_H,
                              .y = BUFFERS,
                              .residual = BUFFERS,
                              .norm = TENSOR_OUTPUT_NORM,
                              .scale = d->logit_scale,
                              .softcap = d->final_softcap,
                              .said = own ? "norm(h), output -> logits"
                                          : "norm(h), token_embd -> logits" };
    plan_multiply(p, &of, rows, (uint64_t)(p->m - rows));
}

void plan_sample(planner *p, int64_t rows, int64_t logits_rows)
{
    static const plan_bind binds[] = {
        { "token", BIND_STATE, AT_TOKENS },      { "next_position", BIND_STATE, AT_POSITIONS },
        { "length", BIND_STATE, AT_LENGTHS },    { "told", BIND_BUFFER, BUFFER_TOLD },
        { "sampling", BIND_STATE, AT_SAMPLING }, { 0 },
    };
    const plan_state *s = &p->plan->state;
    uint64_t ahead = (uint64_t)(logits_rows - rows) * (uint64_t)p->d->vocab * sizeof(float);
    const plan_key keys[] = { { "n", p->d->vocab }, { "m", rows }, { 0 } };
    instance in = planner_kernel(p, FAMILY_SAMPLE, keys);
    bindings b = { 0 };
    planner_bind(p, &b, binds);
    planner_bind_state(&b, "logits", s->logits + ahead, "logits");
    planner_bind_state(&b, "positions", s->positions + (uint64_t)(p->m - rows) * sizeof(uint32_t),
                       rows < p->m ? "positions of the last row" : "positions");
    planner_add(p, &in, &b, "logits -> token, position, length");
}
