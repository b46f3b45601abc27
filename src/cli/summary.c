#include "cli/summary.h"

#include <string.h>

enum { WHAT_WIDTH = 16 };

void summary_validation(strbuf *out, const ptxas *assembler, const validation *v)
{
    size_t line = out->length;
    strbuf_format(out, "ptxas %s", assembler->version);
    strbuf_pad(out, line, WHAT_WIDTH);
    strbuf_format(out, "%zu of %zu accepted, %u spills, %u..%u registers\n", v->accepted,
                  v->checked, v->spills, v->least_registers, v->most_registers);
}

/* Appends a count with separators, "1,234,567", right-aligned in width columns. */
static void put_count(strbuf *out, uint64_t count, int width)
{
    char text[32];
    char *at = text + sizeof text - 1;
    *at = '\0';
    for (int digits = 0; count || !digits; count /= 10, digits++) {
        if (digits && digits % 3 == 0)
            *--at = ',';
        *--at = (char)('0' + count % 10);
    }
    strbuf_format(out, "%*s", width, at);
}

static const char *shown_file(const kernel *k)
{
    return k->edited_file ? k->edited_file : k->file;
}

/* Writes a table with a line for each kernel. Errors and bounds are relative to the sum of absolute
 * terms; for quantized outputs they are in rounding steps. */
static void put_verified(strbuf *out, const verification *v)
{
    size_t widest = 0;
    for (size_t i = 0; i < v->checked; i++) {
        size_t width = strlen(shown_file(v->kernels[i].kernel));
        widest = width > widest ? width : widest;
    }
    strbuf_format(out, "%-*s  %10s  %19s  %13s  %10s\n", (int)widest, "kernel", "blocks",
                  "thread instructions", "largest error", "bound");
    for (size_t i = 0; i < v->checked; i++) {
        const verified *one = &v->kernels[i];
        const family *f = one->kernel->instance->family;
        bool quantized = false;
        for (const param *p = f->params; p->name; p++)
            quantized |= p->kind == PARAM_OUT && formats[p->format].block_values > 1;
        strbuf_format(out, "%-*s", (int)widest, shown_file(one->kernel));
        put_count(out, one->blocks, 12);
        put_count(out, one->instructions, 21);
        if (quantized)
            strbuf_format(out, "%15.2f  %10s\n", one->worst, "1 rounding");
        else
            strbuf_format(out, "%15.1e  %10.0e\n", one->worst * f->tolerance, f->tolerance);
    }
}

void summary_verification(strbuf *out, const verification *v, bool all)
{
    const verified *worst = NULL; /* NULL for an empty shard */
    size_t sampled = 0;
    for (size_t i = 0; i < v->checked; i++) {
        worst = !worst || v->kernels[i].worst > worst->worst ? &v->kernels[i] : worst;
        sampled += v->kernels[i].sampled;
    }
    if (all)
        put_verified(out, v);
    size_t line = out->length;
    strbuf_put(out, "verify");
    strbuf_pad(out, line, WHAT_WIDTH);
    strbuf_format(out, "%zu of %zu right", v->right, v->checked);
    if (sampled)
        strbuf_format(out, ", %zu on sampled blocks", sampled);
    if (worst)
        strbuf_format(out, ", worst error %.2g of its bound (%s)", worst->worst,
                      worst->kernel->instance->name);
    strbuf_char(out, '\n');
    if (v->step) {
        line = out->length;
        strbuf_pad(out, line, WHAT_WIDTH);
        strbuf_format(out, "%s\n", v->step);
    }
}

void summary_kernels(strbuf *out, const kernel_set *set)
{
    for (size_t i = 0; i < set->kernel_count; i++) {
        const kernel *k = &set->kernels[i];
        strbuf_format(out, "%s  %s, PTX %u.%u, %zu bytes", k->instance->name, k->target->name,
                      k->isa / 10, k->isa % 10, k->ptx_length);
        if (k->resources.known)
            strbuf_format(out, ", %u registers", k->resources.registers);
        strbuf_char(out, '\n');
    }
}
