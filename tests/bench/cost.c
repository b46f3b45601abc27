/* What kernels cost on paper: machine instructions, bytes in flight, and the model's times.
 *
 *   cost SPEC TABLE.md TABLE.c
 *
 * Every kernel of the spec is assembled by ptxas for every target of the spec. Its hot loops are
 * those that the PTX marks (emit/ptx_stats.h), found in the machine code by their numbers among the
 * innermost loops. A figure per weight is what a lane executes in a turn by the weights it covers
 * in it. Of a kernel without a marked loop all is counted, by the values that a thread has; what
 * few launches come to, as the PTX says, stands beside no loop. TABLE.c is for src/cost/cost.h: the
 * first kernel of each family, weights and number of vectors.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/os.h"
#include "bench/machine_code.h"
#include "cost/cost.h"
#include "emit/ptx_stats.h"
#include "kernel/formula.h"
#include "cli/generate.h"

enum { TILE_COLUMNS = 128 }; /* of products on tensor cores */

typedef struct tables {
    arena *arena;
    ptxas assembler;
    strbuf markdown, c;
} tables;

static _Noreturn void give_up(const char *what, const char *why)
{
    fprintf(stderr, "cost: %s: %s\n", what, why);
    exit(1);
}

static machine_code assemble(tables *out, const kernel *k, const target *t, ptxas_result *result)
{
    const char *error;
    machine_code m;
    if (!ptxas_run(out->arena, &out->assembler, k->ptx, k->ptx_length, t, result, &error))
        give_up(k->instance->name, error);
    if (!result->accepted)
        give_up(k->instance->name, result->message);
    if (!machine_code_read(result->cubin, result->cubin_size, t, &m))
        give_up(k->instance->name, "ptxas wrote no cubin");
    return m;
}

static double thread_count(const instance *in)
{
    double threads = (double)formula_value(in->family->launch.block, in, NULL);
    for (int i = 0; i < 3; i++)
        threads *= (double)formula_value(in->family->launch.grid[i], in, NULL);
    return threads;
}

static const char *upper_case(arena *a, const char *name)
{
    strbuf upper = strbuf_new(a);
    strbuf_upper(&upper, name);
    return upper.text;
}

/* A turn of the hot loops one after the other, or the whole kernel where it has none. */
typedef struct hot_code {
    size_t instructions, products, shared_bytes, seldom; /* the last beside the loops */
    double units;
    char what[16];
    memory_use memory;
} hot_code;

static void add_loop(const machine_code *m, code_range range, bool is_loop, hot_code *hot)
{
    memory_use use = machine_code_memory(m, range, is_loop);
    hot->instructions += range.last - range.first + 1;
    hot->products += machine_code_products(m, range);
    hot->shared_bytes += machine_code_shared_bytes(m, range);
    hot->memory.loads += use.loads;
    hot->memory.bytes += use.bytes;
    hot->memory.round_trips += use.round_trips;
}

static hot_code hot_code_of(const kernel *k, const machine_code *m, const cost_work *work)
{
    ptx_stats stats = ptx_stats_of(k->ptx);
    ptx_hot_loops loops = stats.hot;
    bool found = loops.count && loops.numbers[loops.count - 1] < m->loop_count;
    hot_code hot = { .units = found ? loops.work : work->units / thread_count(k->instance),
                     .seldom = stats.has_seldom ? m->nest : 0 };
    snprintf(hot.what, sizeof hot.what, "%s", found ? loops.unit : "values");
    for (size_t i = 0; found && i < loops.count; i++)
        add_loop(m, m->loops[loops.numbers[i]], true, &hot);
    if (!found)
        add_loop(m, (code_range){ 0, m->instructions - 1 }, false, &hot);
    return hot;
}

/* Of kernels with stages weights come by copies to shared memory, a chunk at a time; loads are
 * those of x. */
static void count_products(const instance *in, const hot_code *hot, const cost_work *work,
                           cost_figures *f)
{
    f->products = (double)hot->products / hot->units;
    f->shared_bytes = (double)hot->shared_bytes / hot->units;
    if (!in->stages)
        return;
    f->x_bytes = fmin(hot->memory.bytes / hot->units, /* of few rows some threads load it alone */
                      (double)(cost_vectors(in) * sizeof(float)) / TILE_COLUMNS);
    f->unit_bytes = work->unit_bytes;
    f->in_flight = f->unit_bytes * hot->units;
}

static void add_row(tables *out, const kernel *k, const target *t, bool embedded)
{
    const instance *in = k->instance;
    ptxas_result r;
    machine_code m = assemble(out, k, t, &r);
    cost_work work = cost_work_of(out->arena, in);
    hot_code hot = hot_code_of(k, &m, &work);
    double loaded = hot.memory.bytes / hot.units;
    cost_figures f = {
        .family = in->family->name,
        .weights = instance_weights(in),
        .m = cost_vectors(in),
        .sm = t->sm,
        .specific = k->specific,
        .registers = r.registers,
        .shared = r.shared_bytes,
        .instructions = (double)hot.instructions / hot.units,
        .beside = (double)(m.instructions - hot.instructions - hot.seldom),
        .load_bytes = (double)hot.memory.bytes / hot.memory.loads,
        .turn = hot.units,
        .unit_bytes = loaded < work.unit_bytes ? loaded : work.unit_bytes,
    };
    f.in_flight = f.unit_bytes * hot.units / hot.memory.round_trips;
    if (hot.products)
        count_products(in, &hot, &work, &f);
    cost_gpu gpu = cost_gpu_of(t);
    cost_prediction p = cost_predict(&f, in, &work, &gpu);
    strbuf_format(&out->markdown,
                  "| %s | %s | %u | %u | %zu | %zu | %.0f %s | %.2f | %.0f | %u | %.1f | %.1f | "
                  "%.1f | %.1f | %.1f | %.1f | %.1f | %.1f | %.1f | %.1f | %s |\n",
                  in->name, t->name, r.registers, r.spill_bytes, m.instructions, hot.instructions,
                  hot.units, hot.what, f.instructions, f.load_bytes, p.warps_sm,
                  p.in_flight_sm / 1e3, p.times[BOUND_MEMORY] * 1e6, p.times[BOUND_ISSUE] * 1e6,
                  p.times[BOUND_LATENCY] * 1e6, p.times[BOUND_BALANCE] * 1e6,
                  p.times[BOUND_TENSOR] * 1e6, p.times[BOUND_SHARED] * 1e6, p.start * 1e6,
                  p.ahead * 1e6, p.end * 1e6, cost_bound_names[p.bound]);
    if (embedded)
        strbuf_format(&out->c,
                      "    { \"%s\", FORMAT_%s, %u, %u, %u, %u, %.2f, %.0f, %.1f, %.3f, %.1f, "
                      "%.1f, %.3f, %.1f, "
                      "%.1f%s },\n",
                      f.family, upper_case(out->arena, formats[f.weights].name), f.m, f.sm,
                      f.registers, f.shared, f.instructions, f.beside, f.load_bytes, f.unit_bytes,
                      f.turn, f.in_flight, f.products, f.shared_bytes, f.x_bytes,
                      f.specific ? ", true" : ", false");
}

static void begin_markdown(strbuf *out, const char *version, const kernel_set *set)
{
    strbuf_format(
        out,
        "What ptxas %s makes of the kernels of `tests/bench/cost.ini`, counted, and what the model "
        "of\n`src/cost/cost.h` makes of that. **Times are a model's; nothing here was "
        "measured.**\n\n"
        "- *loop*, *work*, *each*: machine instructions in one turn of the hot loop, what a lane "
        "does in that\n  turn, instructions a unit of work.\n"
        "- *bytes a load*: average load of device memory in the loop, a lane.\n"
        "- *warps*: that registers and shared memory allow an SM.\n"
        "- *KB in flight*: bytes of weights or caches that so many warps wait for at a time: "
        "lanes x bytes of\n  a turn, each byte once, / times that a turn waits for memory (by the "
        "scoreboards in the machine\n  code, in the loop's steady state).\n"
        "- *memory*, *issue*, *latency*, *balance*, *tensor*, *shared*: microseconds that each "
        "alone would take, at "
        "the "
        "size in the\n  kernel's name; the largest is the *bound*. *balance*: memory until the "
        "first "
        "SMs have nothing left, then\n  the rest of the busiest. *start*: until weights come in, x "
        "being in shared memory where blocks keep it\n  there; *ahead*: of that memory is at work "
        "on "
        "the first weights, and has less to do behind it; *end*:\n  of a last block that merges. "
        "Start and end come on top.\n\n"
        "| target | taken as | SMs | MHz | GB/s |\n|---|---|---|---|---|\n",
        version);
    for (size_t i = 0; i < set->target_count; i++) {
        const gpu_part *part = target_part(set->targets[i]);
        if (!part)
            give_up(set->targets[i]->name, "there are no figures of a GPU");
        strbuf_format(out, "| %s | %s | %u | %u | %u |\n", set->targets[i]->name, part->name,
                      part->sm_count, part->clock_mhz, part->bandwidth_gbps);
    }
    strbuf_put(
        out,
        "\n| kernel | target | registers | spills | instructions | loop | work | each "
        "| bytes a load | warps | KB in flight | memory | issue | latency | balance "
        "| tensor | shared | start | ahead | end | bound |\n"
        "|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|\n");
}

static void begin_c(strbuf *out, const char *version)
{
    strbuf_format(out,
                  "/* The figures of the cost model, counted in what ptxas makes of one kernel of "
                  "each family.\n * Written by ninja cost-table; see tests/bench/cost.c. */\n"
                  "#include \"cost/cost.h\"\n\n"
                  "const char cost_table_ptxas[] = \"%s\";\n\n"
                  "/* clang-format off */\n"
                  "const cost_figures cost_table[] = {\n",
                  version);
}

static bool is_alike(const instance *a, const instance *b)
{
    return a->family == b->family && instance_weights(a) == instance_weights(b) &&
           cost_vectors(a) == cost_vectors(b);
}

static bool seen_before(const kernel_set *set, size_t i)
{
    const instance *in = set->kernels[i].instance;
    for (size_t j = 0; j < i; j++)
        if (set->kernels[j].instance->name != in->name && is_alike(set->kernels[j].instance, in))
            return true;
    return false;
}

/* Kernels stand once for several targets of the same text. For one whose kernels run there alone
 * only these are counted. */
static bool serves(const kernel_set *set, size_t i, const target *t)
{
    const kernel *k = &set->kernels[i], *next = k + 1;
    bool last = i + 1 == set->kernel_count || next->instance->name != k->instance->name;
    return t >= k->target && (last || t < next->target) && t->specific == k->specific;
}

static void write_tables(tables *out, const kernel_set *set, char **paths)
{
    const char *error;
    begin_markdown(&out->markdown, out->assembler.version, set);
    begin_c(&out->c, out->assembler.version);
    for (size_t i = 0; i < set->kernel_count; i++)
        for (size_t t = 0; t < set->target_count; t++)
            if (serves(set, i, set->targets[t]))
                add_row(out, &set->kernels[i], set->targets[t], !seen_before(set, i));
    strbuf_put(&out->c, "};\n/* clang-format on */\n\n"
                        "const size_t cost_table_size = sizeof cost_table / sizeof *cost_table;\n");
    if (!os_write_file(out->arena, paths[0], out->markdown.text, out->markdown.length, &error) ||
        !os_write_file(out->arena, paths[1], out->c.text, out->c.length, &error))
        give_up("cannot write the tables", error);
}

int main(int argc, char **argv)
{
    if (argc != 4) {
        fprintf(stderr, "usage: cost SPEC TABLE.md TABLE.c\n");
        return 2;
    }
    arena *a = arena_new();
    diags d = diags_new(a);
    tables out = { .arena = a, .markdown = strbuf_new(a), .c = strbuf_new(a) };
    char *text;
    size_t size;
    const char *error;
    spec s;
    kernel_set set;
    if (!os_read_file(a, argv[1], &text, &size, &error) ||
        !ptxas_find(a, NULL, &out.assembler, &error))
        give_up(argv[1], error);
    if (!spec_parse(a, argv[1], text, size, families_and_pipelines(a), NULL, &s, &d) ||
        !generate_kernels(a, &s, &set, &d)) {
        strbuf message = strbuf_new(a);
        diags_render(&d, &message, false);
        give_up(argv[1], message.text);
    }
    write_tables(&out, &set, argv + 2);
    arena_free(a);
    return 0;
}
