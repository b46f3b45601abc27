#include "model/storey.h"

#include <string.h>

#include "model/from_gguf/read.h"
#include "model/check/verify_model.h"
#include "model/emit/emit_plan.h"
#include "model/plan/plan.h"
#include "model/plan_cost.h"
#include "model/section/decoder_section.h"

static bool read_section(arena *a, const section *s, const target *const *wanted,
                         size_t wanted_count, planned *out, diags *d)
{
    decoder *read = arena_alloc(a, sizeof *read);
    if (!decoder_read(a, s, read, d))
        return false;
    if (read->metadata_count) { /* compare the section with its metadata */
        decoder_file *file = arena_zalloc(a, sizeof *file);
        model *expected = arena_alloc(a, sizeof *expected);
        diags found = diags_new(a);
        read->file = file;
        file->edited = model_expect(a, read, expected, file, &found)
                           ? decoder_edited(a, read, &expected->decoder)
                           : found.list.items[0].message;
    }
    const plan *p = cost_make_plan(a, read, s->name_where, wanted, wanted_count, d);
    if (p)
        *out = (planned){ p, p->kernels, p->kernel_count };
    return p != NULL;
}

static bool is_whole(const kernel_set *set)
{
    for (size_t i = 0; i < set->plan->kernel_count; i++) {
        bool found = false;
        for (size_t k = 0; k < set->kernel_count && !found; k++)
            found = strcmp(set->kernels[k].instance->name, set->plan->kernels[i].name) == 0;
        if (!found)
            return false;
    }
    return true;
}

static step_proof verify_set_step(arena *a, const kernel_set *set, const kernel *kernels,
                                  uint64_t seed, unsigned jobs)
{
    const plan *p = set->plan;
    step_result r = verify_step(a, p, set->targets, set->target_count, kernels, set->kernel_count,
                                seed, verify_orders(p), jobs);
    strbuf said = strbuf_new(a);
    strbuf_format(&said, "step right: %lld of %lld layers, %zu positions, ", (long long)r.layers,
                  (long long)r.of_layers, r.positions);
    for (size_t i = 0; i < p->step_count; i++)
        strbuf_format(&said, "%s%lld",
                      !i                      ? "m = "
                      : i + 1 < p->step_count ? ", "
                                              : " and ",
                      (long long)p->steps[i].m);
    strbuf_format(&said,
                  ", worst logit error %.2g of its bound, weights read %.2f times, caches %.2f",
                  r.worst, r.weights_read, step_bytes_times(r.caches));
    return (step_proof){ r.right, said.text, r.message, p->kernels[0].where };
}

static bool read_file(arena *a, const char *path, const spec_overrides *overrides,
                      const model_options *options, strbuf *out, strbuf *said, diags *d)
{
    return from_gguf(a, path, &model_storey, overrides, options, out, said, d);
}

const upper_storey model_storey = {
    .section = DECODER_SECTION,
    .read = read_section,
    .help = decoder_help,
    .keys = decoder_help_rows,
    .header = header_print_plan,
    .manifest = plan_json,
    .manifest_convention = plan_convention,
    .is_whole = is_whole,
    .verify = verify_set_step,
    .print = cost_plan,
    .architectures = model_architectures,
    .from_file = read_file,
};
