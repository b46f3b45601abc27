/* The page's text, styles and scripts stand in templates/report; here the facts are gathered and
 * all of it put together. The facts are the manifest's, and under each kernel what a reader of the
 * page wants besides:
 *
 *     "configuration": "k=4096 n=4096", "computes": "y[n] = W[n,k] x[k]",
 *     "ptx": [0, 1, ...],                                  lines, as indices of "lines"
 *     "code": { "instructions": 120, "mix": [14, ...] },   counts in the order of "classes"
 *     "loop": { "work": 16, "unit": "weights", "instructions": 55, "mix": [...],
 *               "loads": 4, "load_bytes": 52 },            null where none is marked
 *     "on": [ { "target": "sm_80", "registers": 40, "spill_bytes": 0, "stack_bytes": 0,
 *               "blocks": 16, "warps": 64, "occupancy": 1, "limit": "nothing" } ],
 *     "verify": { "error": 0.2 }
 *
 * "verify" is null and a figure of "on" missing where it is not known.
 */
#include "emit/report.h"

#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/os.h"
#include "emit/json.h"
#include "emit/manifest.h"
#include "emit/ptx_stats.h"
#include "templates/templates.h"

static json_t *mix_json(const ptx_counts *c)
{
    json_t *mix = json_made(json_array());
    for (size_t i = 0; i < PTX_CLASS_COUNT; i++)
        json_add(mix, json_integer(c->by_class[i]));
    return mix;
}

static json_t *code_json(const ptx_counts *c)
{
    json_t *code = json_made(json_object());
    json_put_number(code, "instructions", c->instructions);
    json_put(code, "mix", mix_json(c));
    return code;
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

/* What keeps more blocks from an SM. */
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
    return blocks == t->blocks_sm ? "blocks an SM" : "block size";
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

static json_t *targets_json(const kernel_set *set, const description *d)
{
    const kernel *k = d->kernel;
    json_t *list = json_made(json_array());
    for (size_t i = 0; i < set->target_count; i++)
        if (set->targets[i] >= k->target && set->targets[i] <= k->newest)
            json_add(list,
                     occupancy_json(d, set->targets[i], k->on_targets ? &k->on_targets[i] : NULL));
    return list;
}

/* The lines of all kernels, each once: kernels of a family differ in a few of them. */
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

static void add_facts(line_table *lines, const kernel_set *set, const description *d, json_t *item)
{
    const kernel *k = d->kernel;
    ptx_stats stats = ptx_stats_of(k->ptx);
    json_put_string(item, "configuration", instance_configuration(lines->arena, k->instance));
    json_put_string(item, "computes", k->instance->family->computes);
    json_put(item, "ptx", lines_json(lines, k));
    json_put(item, "code", code_json(&stats.all));
    json_put(item, "loop", loop_json(&stats.hot));
    json_put(item, "on", targets_json(set, d));
    json_t *verify = k->verified ? json_made(json_object()) : json_null();
    if (k->verified)
        json_put(verify, "error", json_real(k->error));
    json_put(item, "verify", verify);
}

static void put_facts(strbuf *out, const described_set *d)
{
    json_t *facts = manifest_json(out->arena, d), *classes = json_made(json_array());
    for (size_t i = 0; i < PTX_CLASS_COUNT; i++)
        json_add(classes, json_string(ptx_class_names[i]));
    json_put(facts, "classes", classes);
    line_table lines = { .arena = out->arena, .lines = json_made(json_array()) };
    json_t *kernels = json_object_get(facts, "kernels");
    for (size_t i = 0; i < d->set->kernel_count; i++)
        add_facts(&lines, d->set, &d->kernels[i], json_array_get(kernels, i));
    json_put(facts, "lines", lines.lines);

    char *text = json_dumps(facts, JSON_COMPACT | JSON_PRESERVE_ORDER | JSON_REAL_PRECISION(6));
    if (!text)
        arena_exhausted(out->arena, 0);
    /* "</script>" in a string would end the element that the facts are in. */
    for (const char *c = text; *c;) {
        size_t length = strcspn(c, "<");
        strbuf_bytes(out, c, length);
        c += length;
        if (*c == '<') {
            strbuf_put(out, "\\u003c");
            c++;
        }
    }
    free(text);
    json_decref(facts);
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
