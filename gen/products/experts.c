#include "gen/products/experts.h"

enum { WORD = 4 };

int64_t experts_listed(const instance *in)
{
    return problem_experts_listed(&in->shape);
}

int64_t experts_shared_weights(const instance *in)
{
    return in->options.route.shared != SHARED_NONE;
}

/* Returns rows from an expert's matrix to the next: n if the family has no key plane_rows. */
static int64_t plane_rows(const problem_shape *s)
{
    return s->plane_rows ? s->plane_rows : s->n;
}

const char *check_experts(const instance *in, arena *a, const char **blamed)
{
    const problem_shape *s = &in->shape;
    if (s->experts_used > s->experts) {
        *blamed = "experts_used";
        return arena_format(a, "experts_used = %lld is more than experts = %lld",
                            (long long)s->experts_used, (long long)s->experts);
    }
    if (plane_rows(s) < s->n) {
        *blamed = "plane_rows";
        return arena_format(
            a,
            "plane_rows = %lld is less than n = %lld; use %lld for gate and up in one "
            "tensor",
            (long long)s->plane_rows, (long long)s->n, 2 * (long long)s->n);
    }
    if (s->experts > UINT32_MAX / plane_rows(s)) {
        *blamed = "experts";
        return arena_format(a, "%lld experts of %lld rows exceed 2^32 rows", (long long)s->experts,
                            (long long)plane_rows(s));
    }
    const problem_options *o = &in->options;
    *blamed = o->limit > 0 ? "limit" : "shared_limit";
    if ((o->limit > 0 || o->shared_limit > 0) && (o->activation != ACTIVATION_SILU || o->ungated))
        return "limits of gate and up need activation = silu and ungated = 0; use 0 for none";
    *blamed = "shared";
    if (s->n_shared && in->options.route.shared)
        return "shared = add is the output of another launch; use it with n_shared = 0";
    *blamed = "activation";
    if (in->options.ungated && in->options.activation == ACTIVATION_SWIGLU_OAI)
        return "activation = swiglu_oai needs a gate; use ungated = 0";
    return NULL;
}

const choice shared_output_choices[] = {
    [SHARED_NONE] = { "none", "" }, [SHARED_PLAIN] = { "add", "_shared" }, { NULL, NULL }
};
const choice ungated_choices[] = { { "0", "" }, { "1", "_ungated" }, { NULL, NULL } };

val experts_in_use(ptx *p, val list)
{
    return named(p, "experts in use", ld_const(p, U32, list, 0));
}

expert_entry expert_entry_at(ptx *p, const instance *in, val list, val number)
{
    val at = mad_wide(p, number, (EXPERT_FIRST_ROW + in->shape.m) * WORD, list);
    return (expert_entry){
        .id = named(p, "expert", ld_const(p, U32, at, (EXPERT_LIST_HEAD + EXPERT_ID) * WORD)),
        .count = named(p, "rows that use it",
                       ld_const(p, U32, at, (EXPERT_LIST_HEAD + EXPERT_ROWS) * WORD)),
        .choices = add(p, at, (EXPERT_LIST_HEAD + EXPERT_FIRST_ROW) * WORD),
    };
}

gemv_chosen experts_rows(const instance *in, const expert_entry *e)
{
    const problem_shape *s = &in->shape;
    bool down = in->family->op == OP_EXPERT_PRODUCT;
    return (gemv_chosen){ .words = e->choices,
                          .count = e->count,
                          .rows = (unsigned)(down ? s->m * s->experts_used : s->m),
                          .slots = down ? 1 : (unsigned)s->experts_used,
                          .slot_values = (unsigned)s->n,
                          .values_beside = (unsigned)s->n_shared };
}

val expert_choice(ptx *p, const expert_entry *e, val number)
{
    return ld_const(p, U32, mad_wide(p, number, WORD, e->choices), 0);
}

val expert_row(ptx *p, const instance *in, val word)
{
    return div(p, word, (unsigned)in->shape.experts_used);
}

val expert_nan(ptx *p)
{
    return bits_as(p, F32, imm(U32, 0x7fffffff));
}

val expert_exists(ptx *p, const instance *in, val id)
{
    return lt(p, id, (unsigned)in->shape.experts);
}

val expert_first_row(ptx *p, const instance *in, val id)
{
    return mul(p, id, (unsigned)plane_rows(&in->shape));
}

val expert_plane(ptx *p, const instance *in, val tensor, val id, val row_bytes)
{
    val row = expert_first_row(p, in, id);
    return named(p, "the expert's matrix", mad_wide(p, row, row_bytes, tensor));
}

instance expert_down_shared(const instance *in)
{
    instance shared = instance_matrix(in, EXPERT_DOWN_SHARED);
    shared.shape.k = in->shape.n_shared;
    shared.shape.n_shared = in->shape.k;
    shared.weights_of[EXPERT_DOWN_SHARED] = in->weights;
    return shared;
}
