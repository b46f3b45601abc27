/* Prints the plan of a decoder's steps for --plan. */
#include "model/plan_cost.h"

#include <inttypes.h>
#include <string.h>

static const double MICROSECONDS = 1e6, MILLISECONDS = 1e3, MEGA = 1e6, GIGA = 1e9;

typedef struct shown_plan {
    strbuf *out;
    const plan *plan;
    cost_gpu gpu;
    launch_cost *costs; /* of the step being printed, by kernel */
    bool overlapped;
    size_t kind_width, said_width;
} shown_plan;

const char *cost_label(arena *a, const instance *in)
{
    strbuf kind = strbuf_new(a);
    uint64_t said = 0;
    strbuf_put(&kind, in->family->name);
    for (const key *k = in->family->keys; k->name; k++) {
        int64_t value = instance_value(in, k);
        if (k->choices != weights_choices || !key_matters(in, k) || value < 0 || said >> value & 1)
            continue;
        said |= UINT64_C(1) << value;
        strbuf_format(&kind, " %s", k->choices[value].word);
    }
    return kind.text;
}

typedef struct layer_part {
    size_t first, count;
} layer_part;

static layer_part layer_of(const plan_step *step, int64_t layer)
{
    layer_part part = { 0 };
    while (part.first < step->launch_count && step->launches[part.first].layer < layer)
        part.first++;
    while (part.first + part.count < step->launch_count &&
           step->launches[part.first + part.count].layer == layer)
        part.count++;
    return part;
}

static bool same_layers(const plan_step *step, int64_t a, int64_t b)
{
    layer_part of_a = layer_of(step, a), of_b = layer_of(step, b);
    const plan_launch *launches_a = step->launches + of_a.first;
    const plan_launch *launches_b = step->launches + of_b.first;
    bool same = of_a.count == of_b.count;
    for (size_t i = 0; same && i < of_a.count; i++)
        same = launches_a[i].kernel == launches_b[i].kernel &&
               strcmp(launches_a[i].said, launches_b[i].said) == 0;
    return same;
}

/* Appends "layer 0..3, 7, 10:", equal layers. Returns false if an earlier layer is equal. */
static bool print_layers(const shown_plan *p, const plan_step *step, int64_t of)
{
    int64_t layers = p->plan->decoder->layers;
    for (int64_t l = 0; l < of; l++)
        if (same_layers(step, l, of))
            return false;
    strbuf_put(p->out, "      layer ");
    for (int64_t l = of; l < layers;) {
        int64_t last = l;
        while (last + 1 < layers && same_layers(step, last + 1, of))
            last++;
        strbuf_format(p->out, "%s%" PRId64, l > of ? ", " : "", l);
        if (last > l)
            strbuf_format(p->out, "%s%" PRId64, last == l + 1 ? ", " : "..", last);
        for (l = last + 1; l < layers && !same_layers(step, l, of);)
            l++;
    }
    strbuf_put(p->out, ":\n");
    return true;
}

/* Prints "1.55 ms" or "23.4 us". */
static void print_time(strbuf *out, double seconds)
{
    bool is_long = seconds >= 1 / MILLISECONDS;
    strbuf_format(out, "%.*f %s", is_long ? 2 : 1,
                  seconds * (is_long ? MILLISECONDS : MICROSECONDS), is_long ? "ms" : "us");
}

static void print_step(const shown_plan *p, const plan_step *step)
{
    cost_of_launches(p->out->arena, p->plan, step, COST_USUAL_POSITIONS, &p->gpu, p->costs);
    step_cost cost = cost_of_step(step, p->costs, p->overlapped);
    bool large = cost.bytes >= GIGA;
    strbuf_format(p->out,
                  "step of %" PRId64 " token%s, %zu launches, %.*f %s read and written: predicted ",
                  step->m, step->m == 1 ? "" : "s", step->launch_count, large ? 2 : 1,
                  cost.bytes / (large ? GIGA : MEGA), large ? "GB" : "MB");
    print_time(p->out, cost.seconds);
    strbuf_format(p->out, " on %s (memory traffic ", p->gpu.target->name);
    print_time(p->out, cost.bytes / p->gpu.bandwidth);
    strbuf_put(p->out, ", launch gaps ");
    print_time(p->out, cost.between);
    strbuf_put(p->out, ")\n");
    for (size_t i = 0; i < step->launch_count;) {
        int64_t layer = step->launches[i].layer;
        layer_part part = { i, 1 };
        bool shown = true;
        if (layer >= 0 && layer < p->plan->decoder->layers) {
            part = layer_of(step, layer);
            shown = print_layers(p, step, layer);
        }
        for (size_t number = part.first; shown && number < part.first + part.count; number++) {
            const plan_launch *l = &step->launches[number];
            const launch_cost *of = &p->costs[l->kernel];
            bool guessed = !*of->bound;
            double seconds = of->seconds - of->spared[p->overlapped];
            strbuf_format(
                p->out, "%5zu %-*s  %-*s %9s us%s%s\n", number + 1, (int)p->kind_width,
                cost_label(p->out->arena, &p->plan->kernels[l->kernel]), (int)p->said_width,
                l->said,
                arena_format(p->out->arena, "%s%.1f", guessed ? "~" : "", seconds * MICROSECONDS),
                guessed ? "" : "  ", of->bound);
        }
        i += part.count;
    }
}

static void print_bytes(strbuf *out, uint64_t bytes)
{
    static const char *const units[] = { "KiB", "MiB", "GiB", "TiB" };
    enum { UNITS = sizeof units / sizeof *units, KIB = 1024 };
    double number = (double)bytes / KIB;
    size_t unit = 0;
    if (bytes < KIB) {
        strbuf_format(out, "%" PRIu64 " bytes", bytes);
        return;
    }
    for (; number >= KIB && unit + 1 < UNITS; unit++)
        number /= KIB;
    strbuf_format(out, "%.*f %s", unit > 1 ? 2 : 1, number, units[unit]);
}

static void print_memory(strbuf *out, const plan *p)
{
    const decoder *d = p->decoder;
    strbuf_put(out, "memory  weights ");
    print_bytes(out, p->bytes[PLAN_WEIGHTS]);
    if (p->bytes[PLAN_HOST]) {
        strbuf_put(out, ", on the host ");
        print_bytes(out, p->bytes[PLAN_HOST]);
    }
    strbuf_put(out, ", cache ");
    uint64_t pages = (uint64_t)(d->sequences * plan_pages(d));
    print_bytes(out, p->bytes[PLAN_CACHE] + p->bytes[PLAN_PAGES] * pages);
    strbuf_format(out, " (%" PRId64 " positions", d->max_seq_len);
    if (d->page)
        strbuf_format(out, " in pages of %" PRId64, d->page);
    if (d->sequences > 1)
        strbuf_format(out, " of %" PRId64 " sequences", d->sequences);
    strbuf_format(out, ", %s), state ", formats[kv_formats[d->kv_type]].name);
    print_bytes(out, p->bytes[PLAN_STATE]);
    strbuf_put(out, ", workspace ");
    print_bytes(out, p->bytes[PLAN_WORKSPACE]);
    const plan_step *largest = &p->steps[p->step_count - 1];
    size_t count = largest->buffer_count, places = 0;
    for (size_t i = 0; i < count; i++) {
        size_t earlier = 0;
        while (largest->buffers[earlier].offset != largest->buffers[i].offset)
            earlier++;
        places += earlier == i;
    }
    strbuf_format(out, " (%zu buffer%s at %zu offset%s)\n", count, count == 1 ? "" : "s", places,
                  places == 1 ? "" : "s");
}

void cost_plan(strbuf *out, const plan *p, const target *t, bool overlapped)
{
    arena *a = out->arena;
    shown_plan shown = { .out = out,
                         .plan = p,
                         .gpu = cost_gpu_of(t),
                         .overlapped = overlapped,
                         .costs = arena_alloc(a, p->kernel_count * sizeof *shown.costs) };
    for (size_t i = 0; i < p->kernel_count; i++)
        shown.kind_width = wider(shown.kind_width, cost_label(a, &p->kernels[i]));
    for (size_t s = 0; s < p->step_count; s++)
        for (size_t i = 0; i < p->steps[s].launch_count; i++)
            shown.said_width = wider(shown.said_width, p->steps[s].launches[i].said);
    for (size_t s = 0; s < p->step_count; s++) {
        print_step(&shown, &p->steps[s]);
        strbuf_char(out, '\n');
    }
    print_memory(out, p);
    int64_t positions = p->decoder->max_seq_len < COST_USUAL_POSITIONS ? p->decoder->max_seq_len
                                                                       : COST_USUAL_POSITIONS;
    strbuf_format(out,
                  "model   predicted times, not measured, with %" PRId64
                  " positions in the cache; ~ from bytes or products only\n",
                  positions);
}
