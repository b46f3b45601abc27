/* Descriptors are initialised by position, since C++ before C++20 knows no designated initialisers;
 * their order is that of ptxgen_kernel in templates/header.h.in. */
#include "emit/header_data.h"

#include <inttypes.h>

#include "emit/header_ptx.h"
#include "kernel/formula.h"

enum { WARP = 32 };

static void print_params(strbuf *out, const description *d)
{
    strbuf_format(out, "static const ptxgen_param %s_params[] = {\n", d->id);
    for (size_t i = 0; i < d->param_count; i++) {
        const param *p = &d->params[i];
        bool pointer = param_is_pointer(p);
        strbuf_format(out, "    { \"%s\", PTXGEN_PARAM_%s, PTXGEN_PARAM_", p->name,
                      pointer ? "POINTER" : "U32");
        strbuf_upper(out, param_direction(p));
        strbuf_put(out, ", PTXGEN_");
        strbuf_upper(out, formats[pointer ? p->format : FORMAT_U32].name);
        strbuf_format(out, ", %" PRId64 ", \"%s\", %u },\n",
                      d->param_bytes[i] < 0 ? 0 : d->param_bytes[i],
                      pointer ? formula_names(out->arena, p->bytes, d->kernel->instance) : p->size,
                      pointer ? p->align : (unsigned)sizeof(uint32_t));
    }
    strbuf_put(out, "};\n");
}

size_t print_config(strbuf *out, const char *id, const instance *in)
{
    const key *first = in->family->keys, *k = first;
    strbuf_format(out, "static const ptxgen_config %s_config[] = {\n", id);
    for (; k->name; k++) {
        const char *word = config_word(in, k), *quote = word ? "\"" : "";
        strbuf_format(out, "    { \"%s\", %" PRId64 ", %s, %s%s%s, ", k->name,
                      k->real ? 0 : instance_value(in, k),
                      k->real ? instance_value_text(out->arena, in, k) : "0", quote,
                      word ? word : "NULL", quote);
        if (key_is_passed(in, k))
            strbuf_format(out, "1, %" PRId64 ", %" PRId64 ", %" PRId64 " },\n", key_least(in, k),
                          key_most(in, k), key_multiple(in, k));
        else
            strbuf_put(out, "0, 0, 0, 1 },\n");
    }
    strbuf_put(out, "};\n");
    return (size_t)(k - first);
}

static void print_launch(strbuf *out, const description *d, const run_functions *at_run_time)
{
    strbuf_format(out, "    { %" PRId64 ", 1, 1 }, ", d->block);
    if (d->grid_fixed)
        strbuf_format(out, "{ %" PRId64 ", %" PRId64 ", %" PRId64 " }, NULL,", d->grid[0],
                      d->grid[1], d->grid[2]);
    else
        strbuf_format(out, "{ 0, 0, 0 }, %s,", at_run_time->grid);
    strbuf_format(out,
                  " /* block, grid, grid_at */\n"
                  "    %zu, ",
                  d->kernel->shared_bytes);
    if (d->dynamic_shared >= 0)
        strbuf_format(out, "%" PRId64 ", NULL,", d->dynamic_shared);
    else
        strbuf_format(out, "0, %s,", at_run_time->shared);
    strbuf_put(out, " 0, /* shared_static, shared_dynamic, shared_at, workspace */\n");
}

static void print_sizes(strbuf *out, const description *d)
{
    const instance *in = d->kernel->instance;
    const problem_shape *s = &in->shape;
    const key *warps = family_key(in->family, "num_warps");
    strbuf_format(out,
                  "    %" PRId64 ", %" PRId64 ", %" PRId64 ", /* k, n, m */\n"
                  "    %" PRId64 ", %" PRId64 ", %" PRId64 ", %" PRId64 ", %" PRId64
                  ", /* num_warps, head_dim, num_heads, num_kv_heads, max_seq_len */\n"
                  "    %d, %d, /* dynamic_dims, seq_len_indirect */\n",
                  s->k, s->n, family_key(in->family, "m") ? s->m : 1,
                  warps ? instance_value(in, warps) : d->block / WARP, s->head_dim, s->num_heads,
                  s->num_kv_heads, s->max_seq_len, in->dims == DIMS_DYNAMIC,
                  in->seq_len_mode == SEQ_LEN_INDIRECT);
}

static void print_resources(strbuf *out, const description *d)
{
    const kernel *k = d->kernel;
    const resources *r = &k->resources;
    size_t shared = k->shared_bytes + (size_t)d->dynamic_shared;
    unsigned blocks =
        r->known && d->dynamic_shared >= 0
            ? target_blocks_per_sm(k->target, (unsigned)d->block, r->registers, shared)
            : 0;
    strbuf_format(out, "    %u, %u, /* registers, blocks_per_sm */\n", r->known ? r->registers : 0,
                  blocks);
}

void print_definitions(strbuf *out, const kernel_set *set, const description *d,
                       const run_functions *at_run_time)
{
    const kernel *k = d->kernel;
    const instance *in = k->instance;
    const family *f = in->family;

    print_params(out, d);
    size_t config_count = print_config(out, d->id, in);

    strbuf_format(out, "const ptxgen_kernel %s = {\n    \"%s\", \"%s\",\n", d->id, in->name,
                  d->like->kernel->instance->name);
    strbuf_format(out,
                  "    %s%s_ptx, %zu, UINT64_C(0x%016" PRIx64 "),\n"
                  "    \"%s\", PTXGEN_",
                  is_printed_as_words(set, d->like) ? "(const char *)" : "", d->like->id,
                  d->like->text.length, d->like->text.checksum, f->name);
    strbuf_upper(out, operations[f->op].name);
    strbuf_put(out, ", PTXGEN_");
    strbuf_upper(out, formats[weights_of(in)].name);
    strbuf_put(out, ", PTXGEN_");
    strbuf_upper(out, formats[instance_activations(in)].name);
    strbuf_put(out, ", PTXGEN_");
    strbuf_upper(out, formats[instance_precision(in)].name);
    strbuf_format(out, ",\n    %u, %u, %d, %d, /* sm, isa, overlaps, specific */\n", k->target->sm,
                  k->isa, k->overlaps, k->specific);
    strbuf_format(out, "    %s_params, %zu,\n", d->id, d->param_count);
    print_launch(out, d, at_run_time);
    print_sizes(out, d);
    strbuf_format(out, "    %s_config, %zu,\n", d->id, config_count);
    print_resources(out, d);
    strbuf_format(out, "    %d, /* preference */\n    ", f->preference);
    unsigned chosen = instance_chosen(in, k->target);
    if (chosen)
        strbuf_format(out, "\"%s\"", in->chosen_by->name);
    else
        strbuf_put(out, "NULL");
    strbuf_format(out, ", %u, %u, /* chosen_by, chosen_f32, chosen_q8 */\n};\n\n",
                  chosen >> PRECISION_F32 & 1, chosen >> PRECISION_Q8 & 1);
}
