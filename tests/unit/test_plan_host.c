/* Plans with a tensor in host memory. */
#include <string.h>

#include "plan_sample.h"

/* Only the rows of per-layer embeddings read the table, and no launch prefetches it. */
ARENA_TEST(a_table_on_the_host_takes_no_device_memory)
{
    static const char model[] = "[decoder]\nlayers = 2\nhidden = 256\nff = 512\nnum_heads = 4\n"
                                "vocab = 8k\nweights = q4_k\nper_layer = 256\nm = 1, 8\n"
                                "next = fetched\n";
    const plan *usual = right_plan(a, model, "sm_90");
    const plan *p = right_plan(a, arena_format(a, "%sper_layer_table = host\n", model), "sm_90");
    uint64_t bytes = format_bytes(FORMAT_Q4_K, 2 * 256 * 8192);
    size_t readers = 0, on_host = 0;
    strbuf said = strbuf_new(a);
    assert_int_equal(p->bytes[PLAN_HOST], bytes);
    assert_int_equal(p->bytes[PLAN_WEIGHTS], usual->bytes[PLAN_WEIGHTS] - bytes);
    assert_int_equal(usual->bytes[PLAN_HOST], 0);
    for (size_t i = 0; i < p->tensor_count; i++)
        on_host += p->tensors[i].memory == PLAN_HOST;
    assert_int_equal(on_host, 1);
    for (size_t s = 0; s < p->step_count; s++)
        for (size_t l = 0; l < p->steps[s].launch_count; l++) {
            const plan_launch *one = &p->steps[s].launches[l];
            const instance *in = &p->kernels[one->kernel];
            assert_string_equal(in->name, usual->kernels[usual->steps[s].launches[l].kernel].name);
            for (size_t n = 0; n < one->argument_count; n++)
                if (one->arguments[n].memory == PLAN_HOST) {
                    assert_int_equal(in->family->op, OP_PER_LAYER_ROWS);
                    assert_string_equal(plan_tensor_of(p, &one->arguments[n])->name,
                                        "per_layer_token_embd.weight");
                    readers++;
                }
        }
    assert_int_equal(readers, p->step_count);
    cost_plan(&said, p, target_find("sm_90"), false);
    assert_non_null(strstr(said.text, ", on the host 2.2 MiB, cache "));
}
