/* Writes the report. Its text, styles and scripts are in templates/report. The facts are the
 * manifest with these additions to each kernel:
 *
 *     "configuration": "k=4096 n=4096", "computes": "y[n] = W[n,k] x[k]",
 *     "ptx": [0, 1, ...],                                  lines, as indices of "lines"
 *     "code": { "instructions": 120, "mix": [14, ...] },   counts in the order of "classes"
 *     "loop": { "work": 16, "unit": "weights", "instructions": 55, "mix": [...],
 *               "loads": 4, "load_bytes": 52 },            null if no loop is marked
 *     "on": [ { "target": "sm_80", "registers": 40, "spill_bytes": 0, "stack_bytes": 0,
 *               "blocks": 16, "warps": 64, "occupancy": 1, "limit": "nothing" } ],
 *     "verify": { "error": 0.2 }
 *
 * Unknown figures are missing in "on"; "verify" is null if the kernel was not verified. */
#include <string.h>

#include "base/hash.h"
#include "emit/emit.h"
#include "emit/json.h"
#include "emit/ptx_stats.h"
#include "templates/templates.h"

/* Returns the counts of instructions as an object, which loop_json extends. */
static json_t *code_json(const ptx_counts *c)
{
    json_t *mix = json_made(json_array());
    for (size_t i = 0; i < PTX_CLASS_COUNT; i++)
        json_add(mix, json_integer(c->by_class[i]));
    return json_made(
        json_pack("{s:I, s:o}", "instructions", (json_int_t)c->instructions, "mix", mix));
}

static json_t *loop_json(const ptx_hot_loops *l)
{
    if (!l->work)
        return json_null();
    json_t *loop = code_json(&l->counts);
    json_put_number(loop, "work", l->work);
    json_put_string(loop, "unit", l->unit);
    json_put_number(loop, "loads", l->counts.loads);
    json_put_number(loop, "load_bytes", l->counts.load_bytes);
    return loop;
}

/* Returns the resource that limits the number of blocks per SM. */
static const char *limit_of(const target *t, unsigned threads, unsigned registers, size_t shared,
                            unsigned blocks)
{
    unsigned warps = (threads + WARP - 1) / WARP;
    if (blocks * warps == t->warps_sm)
        return "nothing";
    if (target_blocks_per_sm(t, threads, 0, shared) > blocks)
        return "registers";
    if (target_blocks_per_sm(t, threads, registers, 0) > blocks)
        return "shared memory";
    return blocks == t->blocks_sm ? "blocks per SM" : "block size";
}

static json_t *occupancy_json(const description *d, const target *t, const resources *r)
{
    json_t *figures = json_made(json_object());
    json_put_string(figures, "target", t->name);
    if (!r || !r->known)
        return figures;
    json_put_number(figures, "registers", r->registers);
    json_put_number(figures, "spill_bytes", r->spill_bytes);
    json_put_number(figures, "stack_bytes", r->stack_bytes);
    if (d->dynamic_shared < 0 || d->block < 0)
        return figures;
    unsigned threads = (unsigned)d->block;
    size_t shared = d->kernel->shared_bytes + (size_t)d->dynamic_shared;
    unsigned blocks = target_blocks_per_sm(t, threads, r->registers, shared);
    unsigned warps = blocks * ((threads + WARP - 1) / WARP);
    json_put_number(figures, "blocks", blocks);
    json_put_number(figures, "warps", warps);
    json_put(figures, "occupancy", json_real((double)warps / t->warps_sm));
    json_put_string(figures, "limit", limit_of(t, threads, r->registers, shared, blocks));
    return figures;
}

/* The distinct lines of all kernels; kernels of a family share most of them. */
typedef struct line_table {
    arena *arena;
    name_map numbers;
    json_t *lines;
} line_table;

static json_t *lines_json(line_table *table, const kernel *k)
{
    json_t *indices = json_made(json_array());
    char *line = arena_copy(table->arena, k->ptx, k->ptx_length), *next;
    for (; *line; line = next) {
        size_t length = strcspn(line, "\n");
        next = line + length + (line[length] == '\n');
        line[length] = '\0';
        size_t count = json_array_size(table->lines);
        size_t number = name_map_find_or_add(table->arena, &table->numbers, line, count);
        if (number == count)
            json_add(table->lines, json_string(line));
        json_add(indices, json_integer((json_int_t)number));
    }
    return indices;
}

static void put_facts(strbuf *out, const described_set *d)
{
    const kernel_set *set = d->set;
    json_t *facts = manifest_json(out->arena, d), *classes = json_made(json_array());
    for (size_t i = 0; i < PTX_CLASS_COUNT; i++)
        json_add(classes, json_string(ptx_class_names[i]));
    json_put(facts, "classes", classes);
    line_table lines = { .arena = out->arena, .lines = json_made(json_array()) };
    json_t *kernels = json_object_get(facts, "kernels");
    for (size_t i = 0; i < set->kernel_count; i++) {
        const description *one = &d->kernels[i];
        const kernel *k = one->kernel;
        json_t *item = json_array_get(kernels, i), *on = json_made(json_array());
        ptx_stats stats = ptx_stats_of(k->ptx);
        for (size_t t = 0; t < set->target_count; t++)
            if (set->targets[t] >= k->target && set->targets[t] <= k->newest)
                json_add(on, occupancy_json(one, set->targets[t],
                                            k->on_targets ? &k->on_targets[t] : NULL));
        json_put_string(item, "configuration", instance_configuration(out->arena, k->instance));
        json_put_string(item, "computes", k->instance->family->computes);
        json_put(item, "ptx", lines_json(&lines, k));
        json_put(item, "code", code_json(&stats.all));
        json_put(item, "loop", loop_json(&stats.hot));
        json_put(item, "on", on);
        json_put(item, "verify", k->verified ? json_pack("{s:f}", "error", k->error) : json_null());
    }
    json_put(facts, "lines", lines.lines);

    /* "</script>" in a string would end the script element. */
    for (const char *c = json_text(out->arena, facts, JSON_COMPACT | JSON_REAL_PRECISION(6)); *c;) {
        size_t length = strcspn(c, "<");
        strbuf_bytes(out, c, length);
        c += length;
        if (*c == '<') {
            strbuf_put(out, "\\u003c");
            c++;
        }
    }
}

void emit_report(strbuf *out, const described_set *d)
{
    const struct {
        const char *mark, *text;
    } parts[] = {
        { "@STYLE@", template_page_css },
        { "@CHART_LICENSE@", template_chart_license_md },
        { "@FACTS@", NULL },
        { "@CHART@", template_chart_umd_min_js },
        { "@ROWS@", template_rows_js },
        { "@TABLE@", template_table_js },
        { "@CHARTS@", template_charts_js },
        { "@KERNEL@", template_kernel_js },
    };
    const char *at = template_page_html;
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        const char *mark = strstr(at, parts[i].mark);
        strbuf_bytes(out, at, (size_t)(mark - at));
        if (parts[i].text)
            strbuf_put(out, parts[i].text);
        else
            put_facts(out, d);
        at = mark + strlen(parts[i].mark);
    }
    strbuf_put(out, at);
}
