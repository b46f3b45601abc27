/* Prints the cost model's figures for --list -v. */
#include "cost/cost.h"

#include <math.h>
#include <string.h>

#include "kernel/formula.h"

enum { BATCH = 8, COLUMN = 11 };

static const double MICROSECONDS = 1e6, KILO = 1e3;

/* Returns an instance with default values, and an 8B model's sizes for required ones. */
static instance usual_instance(arena *a, const family *f, int64_t weights)
{
    static const struct {
        const char *key;
        int64_t value;
    } sizes[] = {
        { "k", 4096 },         { "n", 14336 },          { "head_dim", 128 },   { "num_heads", 32 },
        { "num_kv_heads", 8 }, { "max_seq_len", 8192 }, { "kv_type", KV_F16 }, { "n_kv", 1024 },
        { "n_v", 1024 },       { "latent", 512 },       { "n_rope", 64 },      { "nope", 128 },
        { "value_dim", 128 },  { "experts", 64 },       { "experts_used", 8 }, { "per_layer", 256 },
        { "conv_kernel", 4 },
    };
    instance in = instance_of_defaults(f);
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

/* Returns e.g. "stream_gemv q4_k". */
static const char *kind_of(arena *a, const instance *in)
{
    if (!family_key(in->family, "weights"))
        return in->family->name;
    return arena_format(a, "%s %s", in->family->name, formats[instance_weights(in)].name);
}

/* A usual instance of each family, or of each weight format of a family. */
typedef struct usual_list {
    VEC(instance) kernels;
    int name_width, kind_width;
} usual_list;

static usual_list usual_instances(arena *a)
{
    usual_list usual = { 0 };
    for (const family *const *f = families; *f; f++) {
        const key *weights = family_key(*f, "weights");
        for (const choice *c = weights ? weights->choices : NULL; !c || c->word; c++) {
            if (!c || key_takes_choice(weights, c)) {
                instance in = usual_instance(a, *f, c ? c - weights->choices : 0);
                int name_width = (int)strlen(in.name), kind_width = (int)strlen(kind_of(a, &in));
                usual.name_width = name_width > usual.name_width ? name_width : usual.name_width;
                usual.kind_width = kind_width > usual.kind_width ? kind_width : usual.kind_width;
                *VEC_PUSH(a, &usual.kernels) = in;
            }
            if (!c)
                break;
        }
    }
    return usual;
}

/* Predicts an instance on a target. Returns false if it is not counted. */
static bool predict(arena *a, const instance *in, const target *t, cost_figures *f,
                    cost_prediction *p)
{
    if (!cost_find(in, t, f))
        return false;
    cost_gpu gpu = cost_gpu_of(t);
    cost_work work = cost_work_of(a, in);
    *p = cost_predict(f, in, &work, &gpu);
    return true;
}

/* Appends the microseconds of a launch, or "-" if a block does not fit an SM. */
static void put_total(strbuf *out, int width, const cost_prediction *p)
{
    if (isinf(p->total))
        strbuf_format(out, "%*s", width, "-");
    else
        strbuf_format(out, "%*.1f", width, p->total * MICROSECONDS);
}

static const char *bound_of(const cost_prediction *p)
{
    return isinf(p->total) ? "room" : cost_bound_names[p->bound];
}

bool cost_list(strbuf *out, const target *t)
{
    static const char *const columns[] = { "warps/SM",  "instr/unit", "bytes/load", "KB/SM",
                                           "memory us", "issue us",   "latency us", "balance us",
                                           "tensor us", "shared us",  "start us",   "ahead us",
                                           "end us",    "total us" };
    const gpu_part *part = target_part(t);
    if (!part)
        return false;
    usual_list usual = usual_instances(out->arena);
    strbuf_format(out, "\n%s: %s, %u SMs, %u MHz, %u GB/s\n%-*s", t->name, part->name,
                  part->sm_count, part->clock_mhz, part->bandwidth_gbps, usual.name_width,
                  "kernel");
    for (size_t i = 0; i < sizeof columns / sizeof *columns; i++)
        strbuf_format(out, "%*s", COLUMN, columns[i]);
    strbuf_put(out, "  bound\n");
    for (size_t i = 0; i < usual.kernels.count; i++) {
        const instance *in = &usual.kernels.items[i];
        cost_figures f;
        cost_prediction p;
        if (!predict(out->arena, in, t, &f, &p))
            continue;
        strbuf_format(out, "%-*s%*u%*.2f%*.0f%*.1f", usual.name_width, in->name, COLUMN, p.warps_sm,
                      COLUMN, f.instructions, COLUMN, f.load_bytes, COLUMN, p.in_flight_sm / KILO);
        for (cost_bound b = 0; b < BOUND_COUNT; b++)
            strbuf_format(out, "%*.1f", COLUMN, p.times[b] * MICROSECONDS);
        strbuf_format(out, "%*.1f%*.1f%*.1f", COLUMN, p.start * MICROSECONDS, COLUMN,
                      p.ahead * MICROSECONDS, COLUMN, p.end * MICROSECONDS);
        put_total(out, COLUMN, &p);
        strbuf_format(out, "  %s\n", bound_of(&p));
    }
    return true;
}

void cost_summary(strbuf *out)
{
    usual_list usual = usual_instances(out->arena);
    strbuf_format(out, "\n%-*s", usual.kind_width, "kernel");
    for (size_t t = 0; t < target_count; t++)
        if (target_part(&targets[t]))
            strbuf_format(out, "%*s", COLUMN, targets[t].name);
    strbuf_char(out, '\n');
    for (size_t i = 0; i < usual.kernels.count; i++) {
        const instance *in = &usual.kernels.items[i];
        strbuf row = strbuf_new(out->arena);
        bool counted = false;
        for (size_t t = 0; t < target_count; t++) {
            cost_figures f;
            cost_prediction p;
            if (!target_part(&targets[t]))
                continue;
            if (!predict(out->arena, in, &targets[t], &f, &p)) {
                strbuf_format(&row, "%*s", COLUMN, "");
                continue;
            }
            put_total(&row, COLUMN - 2, &p);
            strbuf_format(&row, " %c", *bound_of(&p));
            counted = true;
        }
        if (counted)
            strbuf_format(out, "%-*s%s\n", usual.kind_width, kind_of(out->arena, in), row.text);
    }
}
