/* A launch function packs its arguments for cuLaunchKernel and says which place among the loaded
 * kernels is its own; ptxgen_launch finds all else in the kernel's descriptor. An instance that has
 * kernels for several targets has one place, that of the first of them in the table.
 */
#include "emit/header_cuda.h"

#include <inttypes.h>

#include "gen/formula.h"

/* The parameters one after the other, with ", " between them. */
static void print_each(strbuf *out, const instance *in,
                       void (*print)(strbuf *out, const instance *in, const param *p))
{
    param params[MAX_PARAMS];
    size_t count = instance_params(out->arena, in, params);
    for (size_t i = 0; i < count; i++) {
        strbuf_put(out, i ? ", " : "");
        print(out, in, &params[i]);
    }
}

/* "y out f32[4096]", "n_dim in u32". */
static void print_role(strbuf *out, const instance *in, const param *p)
{
    if (!param_is_pointer(p)) {
        strbuf_format(out, "%s in u32", p->name);
        return;
    }
    strbuf_format(out, "%s %s %s[", p->name, p->kind == PARAM_OUT ? "out" : "in",
                  formats[p->format].name);
    int64_t values = formula_value(p->values, in, NULL);
    if (values >= 0)
        strbuf_signed(out, values);
    else
        strbuf_put(out, p->values);
    strbuf_char(out, ']');
}

static void print_parameter(strbuf *out, const instance *in, const param *p)
{
    (void)in;
    strbuf_format(out, "%s %s", param_is_pointer(p) ? "CUdeviceptr" : "uint32_t", p->name);
}

static void print_name(strbuf *out, const instance *in, const param *p)
{
    (void)in;
    strbuf_put(out, p->name);
}

static void print_address(strbuf *out, const instance *in, const param *p)
{
    (void)in;
    strbuf_format(out, "&%s", p->name);
}

void print_arguments(strbuf *out, const instance *in)
{
    print_each(out, in, print_name);
}

static void print_launch(strbuf *out, const kernel_set *set, const kernel *k)
{
    strbuf_put(out, "\n/* ");
    print_each(out, k->instance, print_role);
    strbuf_format(out,
                  " */\n"
                  "static inline CUresult %s_launch(\n"
                  "    const %s_cuda *cuda, CUstream stream,\n"
                  "    ",
                  kernel_identifier(out->arena, set, k), set->prefix);
    print_each(out, k->instance, print_parameter);
    strbuf_put(out, ")\n{\n    void *arguments[] = { ");
    print_each(out, k->instance, print_address);
    strbuf_format(out,
                  " };\n"
                  "    return ptxgen_launch(&cuda->driver, &cuda->kernels[%td], stream, "
                  "arguments);\n"
                  "}\n",
                  k - set->kernels);
}

void print_launches(strbuf *out, const kernel_set *set)
{
    for (size_t i = 0; i < set->kernel_count; i++)
        if (i == 0 || set->kernels[i].instance != set->kernels[i - 1].instance)
            print_launch(out, set, &set->kernels[i]);
}
