#include "input/help.h"

#include <string.h>

#include "input/section.h"
#include "kernel/formula.h"
#include "kernel/pipeline.h"

enum { HEADING = 8, COLUMN_GAP = 2, RANGE_WIDTH = 26, DEFAULT_WIDTH = 10 };

const purpose_text help_purposes[PURPOSE_COUNT] = {
    [PURPOSE_PRODUCT] = { "Matrix times vector",
                          "stream_gemv is the fastest; for 2 to 64 rows use mma_q8 or "
                          "mma_gemm, for many rows mma_gemm_f16; gemv does not round its inputs; "
                          "variant = auto selects the kernel for a GPU and shape" },
    [PURPOSE_QUANTIZED] = { "Matrix times quantized vector",
                            "for several products of one x; the pipelines quantize x first" },
    [PURPOSE_SEVERAL] = { "Several products of one vector",
                          "stream_qkv and stream_gate_up; for 2 to 64 rows mma_q8_qkv and "
                          "mma_q8_gate_up, for many rows mma_qkv, mma_gate_up and "
                          "mma_gate_up_f16; stream_gemv fuses one product with a norm, bias or "
                          "residual" },
    [PURPOSE_VECTORS] = { "Quantize and convert vectors",
                          "q8_1_quantize for products with quantized vectors, q8_rows for "
                          "stream_gemv_q8, mma_q8 and other families with 8-bit rows, f16_rows for "
                          "mma_gemm_f16 and other mma families with f16 rows" },
    [PURPOSE_ATTENTION] = { "Attention",
                            "gqa_flash_decoding for long sequences and batches, "
                            "mma_flash_decoding for f16 caches, mma_attention for prompts; "
                            "multi_warp_attention needs no scratch memory" },
    [PURPOSE_AROUND] = { "Other operations of a decoder step", "each processes all rows at once" },
    [PURPOSE_ALONE] = { "Activations and copies",
                        "single operations, which the families above do in fewer launches; convert "
                        "reads any format and writes f32, f16 or bf16" },
    [PURPOSE_EXPERTS] = { "Mixtures of experts",
                          "moe_route selects experts for each row, the other families read its "
                          "lists; for 2 rows or more use mma_q8_expert_gate_up, "
                          "mma_q8_expert_down and expert_sum, for f16 products "
                          "mma_expert_gate_up and mma_expert_down" },
    [PURPOSE_LATENT] = { "Latent attention (MLA)",
                         "all heads share the cache rows: mla_query, mla_attention, mla_values" },
    [PURPOSE_PIPELINE] = { "Pipelines", "kernels that run in sequence, launched with one call" },
};

purpose help_purpose_of(const family *f)
{
    if (f->steps)
        return PURPOSE_PIPELINE;
    purpose p = operations[f->op].purpose;
    return p == PURPOSE_PRODUCT && f->activations == FORMAT_Q8_1 ? PURPOSE_QUANTIZED : p;
}

void spec_list_families(strbuf *out, const family *const *list)
{
    size_t width = 0;
    for (const family *const *f = list; *f; f++)
        width = wider(width, (*f)->name);
    for (purpose p = 0; p < PURPOSE_COUNT; p++) {
        bool any = false;
        for (const family *const *f = list; *f; f++) {
            if (help_purpose_of(*f) != p)
                continue;
            if (!any)
                strbuf_format(out, "%s%s: %s\n", out->length ? "\n" : "", help_purposes[p].heading,
                              help_purposes[p].advice);
            any = true;
            size_t line = out->length;
            strbuf_format(out, "  %s", (*f)->name);
            strbuf_pad(out, line, width + COLUMN_GAP + 2);
            strbuf_format(out, "%s\n", (*f)->summary);
        }
    }
}

/* Begins a row of a table; only the first row shows the heading. Returns the offset of the line. */
static size_t begin_row(strbuf *out, const char *heading, bool first)
{
    size_t line = out->length;
    strbuf_put(out, first ? heading : "");
    strbuf_pad(out, line, HEADING);
    return line;
}

void help_put_range(strbuf *out, const key *k)
{
    if (k->real) {
        strbuf_format(out, "%s..%s", real_text(out->arena, k->real->min),
                      real_text(out->arena, k->real->max));
        return;
    }
    if (k->choices) {
        const char *before = "";
        for (const choice *c = k->choices; c->word; c++) {
            if (!key_takes_choice(k, c))
                continue;
            strbuf_format(out, "%s%s", before, c->word);
            before = ", ";
        }
        return;
    }
    bool bounded = k->max < INT32_MAX;
    if (k->of_weights && (!bounded || !k->min)) {
        strbuf_put(out, "multiple of W's block");
        return;
    }
    if (k->multiple_of <= 1 || bounded) {
        strbuf_format(out, "%lld..", (long long)k->min);
        strbuf_put(out, bounded ? "" : "2^31-1");
    }
    if (bounded)
        strbuf_signed(out, k->max);
    if (k->multiple_of > 1)
        strbuf_format(out, "%smultiple of %lld", bounded ? ", " : "", (long long)k->multiple_of);
    if (k->of_weights)
        strbuf_put(out, ", multiple of W's block");
}

/* Writes a range into its column; wraps after commas. Returns the offset of the last line. */
static size_t put_wrapped_range(strbuf *out, const char *word, size_t line, size_t column)
{
    while (*word) {
        const char *comma = strstr(word, ", ");
        size_t length = comma ? (size_t)(comma - word) + 1 : strlen(word);
        size_t used = out->length - line - column;
        if (used && used + 1 + length >= RANGE_WIDTH) {
            strbuf_char(out, '\n');
            line = out->length;
            strbuf_pad(out, line, column);
        } else if (used) {
            strbuf_char(out, ' ');
        }
        strbuf_bytes(out, word, length);
        word += length + (comma != NULL);
    }
    return line;
}

/* Returns the name of the key that sets a field of an instance. */
static const char *key_of_field(const family *f, size_t field)
{
    const key *k = f->keys;
    while (k->field != field)
        k++;
    return k->name;
}

const char *help_default(arena *a, const family *f, const key *k)
{
    if (k->required)
        return "required";
    if (k->real)
        return k->real->def_text ? k->real->def_text : real_text(a, k->real->def);
    if (k->like)
        return key_of_field(f, k->like);
    if (k->choices)
        return k->choices[k->def].word;
    if (k->zero_is_none && k->def == 0)
        return "none";
    return arena_format(a, "%lld", (long long)k->def);
}

void help_put_keys(strbuf *out, const help_row *rows, size_t count)
{
    size_t width = 0;
    for (size_t i = 0; i < count; i++)
        width = wider(width, rows[i].key->name);
    for (const help_row *row = rows; row < rows + count; row++) {
        strbuf range = strbuf_new(out->arena);
        size_t line = begin_row(out, "keys", row == rows), column = HEADING + width + COLUMN_GAP;
        if (!row->range)
            help_put_range(&range, row->key);
        strbuf_put(out, row->key->name);
        strbuf_pad(out, line, column);
        line = put_wrapped_range(out, row->range ? row->range : range.text, line, column);
        strbuf_pad(out, line, column + RANGE_WIDTH);
        strbuf_put(out, row->def);
        if (row->key->summary || row->with)
            strbuf_pad(out, line, column + RANGE_WIDTH + DEFAULT_WIDTH - 1);
        if (row->key->summary)
            strbuf_format(out, " %s", row->key->summary);
        if (row->with)
            strbuf_format(out, " (with %s)", row->with);
        strbuf_char(out, '\n');
    }
}

static void put_param(strbuf *out, const family *f, const param *p)
{
    switch (p->kind) {
    case PARAM_OUT:
    case PARAM_IN:
    case PARAM_SCRATCH:
        strbuf_format(out, "%-3s %s[%s]", param_direction(p),
                      p->weights              ? "weights"
                      : p->type_in            ? key_of_field(f, p->type_in)
                      : p->data == DATA_CACHE ? "kv_type"
                                              : formats[p->format].name,
                      p->values);
        if (p->align > 1)
            strbuf_format(out, ", aligned to %u bytes", p->align);
        break;
    case PARAM_SEQ_LEN:
        strbuf_put(out, "in  u32 when direct, a pointer to it when indirect");
        break;
    case PARAM_U32:
    case PARAM_NONE:
        strbuf_put(out, p->format == FORMAT_F32 ? "in  f32" : "in  u32");
        break;
    }
    strbuf_char(out, '\n');
}

/* Begins a parameter's line: the heading on the first one, the name, spaces up to a column. */
static void begin_param(strbuf *out, bool first, const char *name, const char *suffix, size_t width)
{
    size_t line = begin_row(out, "params", first);
    strbuf_format(out, "%s%s", name, suffix);
    strbuf_pad(out, line, HEADING + width + COLUMN_GAP);
}

static void put_params(strbuf *out, const family *f)
{
    size_t width = strlen("k_dim");
    for (const param *p = f->params; p->name; p++)
        width = wider(width, p->name);
    for (const param *p = f->params; p->name; p++) {
        begin_param(out, p == f->params, p->name, "", width);
        put_param(out, f, p);
        const char *holds = p->data == DATA_PARTIAL_ROWS
                                ? "a row: head_dim sums of 2^(s-max) v, max, sum of "
                                  "2^(s-max), 0, 0; s is the score times log2(e)"
                                : p->holds;
        if (holds) {
            begin_param(out, false, "", "", width);
            strbuf_format(out, "%s\n", holds);
        }
    }
    for (const key *k = f->keys; family_key(f, "dims") && k->name; k++) {
        if (!k->at_run_time)
            continue;
        begin_param(out, false, k->name, "_dim", width);
        strbuf_put(out, "in  u32 when dims are dynamic\n");
    }
    for (const key *k = f->keys; family_key(f, "rows") && k->name; k++) {
        if (!k->counted_with)
            continue;
        begin_param(out, false, k->name, "_val", width);
        strbuf_put(out, "in  u32 when rows = run_time: rows of X and Y\n");
    }
}

static void put_launch(strbuf *out, const launch *l)
{
    size_t axes = l->grid[2] ? 3 : l->grid[1] ? 2 : 1;
    begin_row(out, "launch", true);
    strbuf_format(out, "block %s, grid ", l->block);
    for (size_t i = 0; i < axes; i++)
        strbuf_format(out, "%s%s", i ? " x " : "", formula_text(l->grid[i]));
    if (l->shared)
        strbuf_format(out, ", shared %s bytes", l->shared);
    if (l->dynamic_shared)
        strbuf_format(out, ", dynamic shared %s bytes", l->dynamic_shared);
    strbuf_char(out, '\n');
    for (const term *t = l->terms; t && t->name; t++) {
        begin_row(out, "", false);
        strbuf_format(out, "%s = %s\n", t->name, t->formula);
    }
    for (const derived_size *d = l->sizes; d && d->name; d++) {
        begin_row(out, "", false);
        strbuf_format(out, "%s: %s\n", d->name, d->said);
    }
}

static void put_steps(strbuf *out, const family *f)
{
    for (const pipeline_step *s = f->steps; s->family; s++) {
        begin_row(out, "steps", s == f->steps);
        strbuf_put(out, s->family);
        for (const binding *b = s->bind; b->param; b++)
            strbuf_format(out, "%s %s = %s", b == s->bind ? " " : ",", b->param, b->buffer);
        for (const condition *c = s->when; c->key; c++) {
            const key *k = family_key(f, c->key);
            strbuf_format(out, "%s %s = %s", c == s->when ? ", when" : " and", c->key,
                          k->choices[c->value].word);
        }
        strbuf_char(out, '\n');
    }
}

const help_row *help_global_rows(arena *a, size_t *count)
{
    static const key keys[] = {
        { .name = "prefix", .summary = "prefix of C names and file names, e.g. llama" },
        { .name = "targets", .summary = "GPU architectures, a list" },
        { .name = "dims", .summary = "default of dims in all sections", .choices = dims_choices },
        { .name = "embed",
          .summary = "PTX in the header: strings, or read by #embed or the assembler" },
        { .name = "include", .summary = "spec files to include, a list" },
    };
    enum { KEYS = sizeof keys / sizeof *keys };
    strbuf names = strbuf_new(a);
    for (size_t i = 0; i < target_count; i++)
        strbuf_format(&names, "%s%s", i ? ", " : "", targets[i].name);
    const help_row rows[KEYS] = {
        { &keys[0], "a C identifier", DEFAULT_PREFIX, NULL },
        { &keys[1], names.text, DEFAULT_TARGET, NULL },
        { &keys[2], NULL, dims_choices[0].word, NULL },
        { &keys[3], "string, c23, incbin", "string", NULL },
        { &keys[4], "file names", "none", NULL },
    };
    *count = KEYS;
    return memcpy(arena_alloc(a, sizeof rows), rows, sizeof rows);
}

void spec_help_globals(strbuf *out)
{
    size_t count;
    const help_row *rows = help_global_rows(out->arena, &count);
    strbuf_put(out, GLOBAL_SECTION
               " - settings for the whole spec\n    a section of a spec, without kernels\n");
    help_put_keys(out, rows, count);
}

void spec_help_family(strbuf *out, const family *f)
{
    strbuf_format(out, "%s - %s\n    %s\n", f->name, f->summary, f->computes);
    VEC(help_row) rows = { 0 };
    for (const key *k = f->keys; k->name; k++)
        *VEC_PUSH(out->arena, &rows) =
            (help_row){ .key = k, .def = help_default(out->arena, f, k) };
    help_put_keys(out, rows.items, rows.count);
    if (f->steps) {
        put_steps(out, f);
        return;
    }
    put_params(out, f);
    put_launch(out, &f->launch);
    if (!f->same_bits)
        return;
    strbuf_put(out, "bits    a row's results do not depend on grid, SM count, num_warps or m, bit "
                    "for bit");
    for (const key *k = f->keys; f->same_bits_with && k->name; k++)
        if (k->field == f->same_bits_with)
            strbuf_format(out, ", with %s = %s", k->name, k->choices[1].word);
    strbuf_char(out, '\n');
}
