/* The model's figures as --list prints them. */
#include "cost/cost.h"

#include <math.h>
#include <string.h>

#include "kernel/formula.h"

enum { BATCH = 8, COLUMN = 11, SUMMARY_COLUMN = 11 };

static const double MICROSECONDS = 1e6, KILO = 1e3;

/* Defaults, and of the sizes that have none those of an 8B model's. */
static instance usual_instance(arena *a, const family *f, int64_t weights)
{
    static const struct {
        const char *key;
        int64_t value;
    } sizes[] = {
        { "k", 4096 },         { "n", 14336 },          { "head_dim", 128 },   { "num_heads", 32 },
        { "num_kv_heads", 8 }, { "max_seq_len", 8192 }, { "kv_type", KV_F16 }, { "n_kv", 1024 },
        { "n_v", 1024 },       { "latent", 512 },       { "n_rope", 64 },      { "nope", 128 },
        { "value_dim", 128 },  { "experts", 64 },       { "experts_used", 8 },
    };
    instance in = { .family = f };
    for (const key *k = f->keys; k->name; k++)
        instance_set(&in, k, key_default(k));
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        const key *k = family_key(f, sizes[i].key);
        if (k)
            instance_set(&in, k, sizes[i].value);
    }
    in.weights = weights;
    for (const key *k = f->keys; k->name; k++)
        if (k->like)
            instance_set(&in, k, instance_default(&in, k));
    if (in.shape.n_kv)
        in.shape.n = in.shape.k;
    if (in.shape.m == 0 && family_key(f, "m"))
        in.shape.m = BATCH;
    in.shape.seq_len = in.shape.max_seq_len;
    in.name = instance_make_name(a, &in);
    return in;
}

static void put_heading(strbuf *out, const target *t, const gpu_part *part)
{
    strbuf_format(out, "\n%s: %s, %u SMs, %u MHz, %u GB/s\n", t->name, part->name, part->sm_count,
                  part->clock_mhz, part->bandwidth_gbps);
}

/* Returns a launch's microseconds as text, "-" for a kernel that has no room on an SM. */
static const char *total_of(arena *a, const cost_prediction *p)
{
    return isinf(p->total) ? "-" : arena_format(a, "%.1f", p->total * MICROSECONDS);
}

static const char *bound_of(const cost_prediction *p)
{
    return isinf(p->total) ? "room" : cost_bound_names[p->bound];
}

static void put_row(strbuf *out, const instance *in, const cost_figures *f, const cost_gpu *gpu,
                    size_t width)
{
    cost_work work = cost_work_of(out->arena, in);
    cost_prediction p = cost_predict(f, in, &work, gpu);
    strbuf_format(out, "%-*s%*u%*.2f%*.0f%*.1f", (int)width, in->name, COLUMN, p.warps_sm, COLUMN,
                  f->instructions, COLUMN, f->load_bytes, COLUMN, p.in_flight_sm / KILO);
    for (cost_bound b = 0; b < BOUND_COUNT; b++)
        strbuf_format(out, "%*.1f", COLUMN, p.times[b] * MICROSECONDS);
    strbuf_format(out, "%*.1f%*.1f%*.1f%*s  %s\n", COLUMN, p.start * MICROSECONDS, COLUMN,
                  p.ahead * MICROSECONDS, COLUMN, p.end * MICROSECONDS, COLUMN,
                  total_of(out->arena, &p), bound_of(&p));
}

/* A usual instance of each family, or of each format of its weights. */
typedef VEC(instance) instance_list;

static instance_list usual_instances(arena *a)
{
    instance_list usual = { 0 };
    for (const family *const *f = families; *f; f++) {
        const key *weights = family_key(*f, "weights");
        for (const choice *c = weights ? weights->choices : NULL; !c || c->word; c++) {
            if (!c || key_takes_choice(weights, c))
                *VEC_PUSH(a, &usual) = usual_instance(a, *f, c ? c - weights->choices : 0);
            if (!c)
                break;
        }
    }
    return usual;
}

bool cost_list(strbuf *out, const target *t)
{
    static const char *const columns[] = { "warps/SM",  "instr/unit", "bytes/load", "KB/SM",
                                           "memory us", "issue us",   "latency us", "balance us",
                                           "tensor us", "shared us",  "start us",   "ahead us",
                                           "end us",    "total us" };
    if (!target_part(t))
        return false;
    cost_gpu gpu = cost_gpu_of(t);
    cost_figures figures;
    size_t width = 0;
    instance_list usual = usual_instances(out->arena);
    for (size_t i = 0; i < usual.count; i++) {
        size_t length = strlen(usual.items[i].name);
        width = length > width ? length : width;
    }
    put_heading(out, t, target_part(t));
    strbuf_format(out, "%-*s", (int)width, "kernel");
    for (size_t i = 0; i < sizeof columns / sizeof *columns; i++)
        strbuf_format(out, "%*s", COLUMN, columns[i]);
    strbuf_put(out, "  bound\n");
    for (size_t i = 0; i < usual.count; i++)
        if (cost_find(&usual.items[i], t, &figures))
            put_row(out, &usual.items[i], &figures, &gpu, width);
    return true;
}

/* A summary's row: "stream_gemv q4_k". */
static const char *kind_of(arena *a, const instance *in)
{
    if (!family_key(in->family, "weights"))
        return in->family->name;
    return arena_format(a, "%s %s", in->family->name, formats[instance_weights(in)].name);
}

/* Whether the model knows a time for any target. */
static bool is_counted(const instance *in)
{
    cost_figures figures;
    bool counted = false;
    for (size_t t = 0; t < target_count; t++)
        counted |= target_part(&targets[t]) && cost_find(in, &targets[t], &figures);
    return counted;
}

static void put_total(strbuf *out, const instance *in, const target *t)
{
    cost_gpu gpu = cost_gpu_of(t);
    cost_figures figures;
    if (!cost_find(in, t, &figures)) {
        strbuf_format(out, "%*s", SUMMARY_COLUMN, "");
        return;
    }
    cost_work work = cost_work_of(out->arena, in);
    cost_prediction p = cost_predict(&figures, in, &work, &gpu);
    strbuf_format(out, "%*s %c", SUMMARY_COLUMN - 2, total_of(out->arena, &p), *bound_of(&p));
}

void cost_summary(strbuf *out)
{
    instance_list usual = usual_instances(out->arena);
    size_t width = 0;
    for (size_t i = 0; i < usual.count; i++) {
        size_t length = strlen(kind_of(out->arena, &usual.items[i]));
        width = length > width ? length : width;
    }
    strbuf_format(out, "\n%-*s", (int)width, "kernel");
    for (size_t t = 0; t < target_count; t++)
        if (target_part(&targets[t]))
            strbuf_format(out, "%*s", SUMMARY_COLUMN, targets[t].name);
    strbuf_char(out, '\n');
    for (size_t i = 0; i < usual.count; i++) {
        if (!is_counted(&usual.items[i]))
            continue;
        strbuf_format(out, "%-*s", (int)width, kind_of(out->arena, &usual.items[i]));
        for (size_t t = 0; t < target_count; t++)
            if (target_part(&targets[t]))
                put_total(out, &usual.items[i], &targets[t]);
        strbuf_char(out, '\n');
    }
}
