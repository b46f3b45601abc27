/* Counts machine instructions and bytes in flight of kernels, which are the rows of
 * src/cost/costs.tsv.
 *
 *   cost check SPEC COSTS.tsv LIST         names the rows whose kernels have changed since they
 *                                          were counted, on stdout and in the file LIST
 *   cost count SPEC COSTS.tsv [FAMILY...]  counts these rows again, or rows of some families
 *   cost table SPEC TABLE.md               writes the predictions for each kernel of SPEC
 *
 * A row has a family, a weight format and a number of vectors. It is counted in the first kernel of
 * SPEC that matches, assembled by ptxas for every target of SPEC.
 *
 * The PTX marks the hot loops (emit/ptx_stats.h). In the machine code they are found by their index
 * among the innermost loops. A figure per weight is the count of one iteration of a lane, divided
 * by the weights that the iteration covers. A kernel without a marked loop is counted as a whole,
 * per value of a thread. Loops that the PTX marks as rarely run are not counted as code beside a
 * loop. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/os.h"
#include "bench/machine_code.h"
#include "cost/cost.h"
#include "emit/ptx_stats.h"
#include "kernel/formula.h"
#include "kernel/generate.h"
#include "input/spec.h"
#include "check/ptxas.h"
#include "check/run.h"

enum { TILE_COLUMNS = 128 }; /* columns of a tile of products on tensor cores */

/* A row of the table and its kernels: one kernel for each distinct PTX text among the targets. */
typedef struct row {
    const instance *in;
    const kernel *kernels;
    size_t kernel_count;
    const char *key;  /* the first three columns: "stream_gemv\tq4_k\t1\t" */
    const char *ptx;  /* checksum of the kernels generated now: "1f00b2c3\t" */
    const char *line; /* the row in the file, or as counted by this run; NULL if neither exists */
    bool is_old;      /* the file's row is missing or has another checksum */
} row;

typedef struct table {
    arena *arena;
    const kernel_set *set;
    VEC(row) rows;
    const char *path, *text;        /* path and contents of the file */
    const char *comments, *heading; /* copies of the file's leading comments and heading */
} table;

static _Noreturn void give_up(const char *what, const char *why)
{
    fprintf(stderr, "cost: %s: %s\n", what, why);
    exit(1);
}

static double thread_count(const instance *in)
{
    double threads = (double)formula_value(in->family->launch.block, in, NULL);
    for (int i = 0; i < 3; i++)
        threads *= (double)formula_value(in->family->launch.grid[i], in, NULL);
    return threads;
}

/* Counts of one iteration of each hot loop, or of the whole kernel if it has no hot loop. */
typedef struct hot_code {
    size_t instructions, products, shared_bytes, seldom; /* seldom: instructions of rarely run code
                                                            outside the hot loops */
    double units; /* units of work of a lane; negative if blocks are persistent and their loop was
                     not found */
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
    hot->memory.copies += use.copies;
    hot->memory.round_trips += use.round_trips;
}

static hot_code hot_code_of(const kernel *k, const machine_code *m, const cost_work *work)
{
    ptx_stats stats = ptx_stats_of(k->ptx);
    ptx_hot_loops loops = stats.hot;
    bool found = loops.count && loops.numbers[loops.count - 1] < m->loop_count;
    hot_code hot = { .units = found ? loops.work : work->units / thread_count(k->instance),
                     .seldom = stats.has_seldom ? m->nest : 0 };
    for (size_t i = 0; found && i < loops.count; i++)
        add_loop(m, m->loops[loops.numbers[i]], true, &hot);
    if (!found)
        add_loop(m, (code_range){ 0, m->instructions - 1 }, false, &hot);
    return hot;
}

/* Adds the figures of products on tensor cores. A kernel with stages copies its weights to shared
 * memory, a chunk at a time, so its counted loads are loads of x. */
static void count_products(const instance *in, const hot_code *hot, const cost_work *work,
                           cost_figures *f)
{
    f->products = (double)hot->products / hot->units;
    f->shared_bytes = (double)hot->shared_bytes / hot->units;
    if (!in->stages)
        return;
    f->x_bytes = fmin(hot->memory.bytes / hot->units, /* with few rows only some threads load x */
                      (double)(cost_vectors(in) * sizeof(float)) / TILE_COLUMNS);
    f->unit_bytes = work->unit_bytes;
    f->in_flight = f->unit_bytes * hot->units;
}

static cost_figures count_figures(arena *a, const ptxas *assembler, const kernel *k,
                                  const target *t)
{
    const instance *in = k->instance;
    const char *error;
    ptxas_result r;
    machine_code m;
    if (!ptxas_run(a, assembler, k->ptx, k->ptx_length, t, &r, &error))
        give_up(in->name, error);
    if (!r.accepted)
        give_up(in->name, r.message);
    if (!machine_code_read(r.cubin, r.cubin_size, t, &m))
        give_up(in->name, "ptxas wrote no cubin");
    if (r.spill_bytes)
        printf("%s spills %u bytes on %s\n", in->name, r.spill_bytes, t->name);
    cost_work work = cost_work_of(a, in);
    hot_code hot = hot_code_of(k, &m, &work);
    if (!in->stages && hot.memory.copies) { /* an iteration waits for all of the one before */
        enum { LINE_BYTES = 16 };
        hot.memory.loads += hot.memory.copies;
        hot.memory.bytes += hot.memory.copies * LINE_BYTES;
        hot.memory.round_trips += 1;
    }
    double loaded = hot.memory.bytes / hot.units;
    cost_figures f = {
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
    return f;
}

/* Returns true if a target runs this kernel. The set has a kernel once for all targets of equal
 * text. For a target with specific kernels only these count. */
static bool serves(const kernel_set *set, const kernel *k, const target *t)
{
    const kernel *next = k + 1;
    bool last =
        next == set->kernels + set->kernel_count || next->instance->name != k->instance->name;
    return t >= k->target && (last || t < next->target) && t->specific == k->specific;
}

/* Appends the text that the machine code depends on: the targets' names and the PTX without comments
 * and empty lines. */
static void put_code(strbuf *out, const kernel_set *set, const kernel *k)
{
    for (size_t t = 0; t < set->target_count; t++)
        if (serves(set, k, set->targets[t]))
            strbuf_put(out, set->targets[t]->name);
    for (const char *line = k->ptx; *line;) {
        size_t whole = strcspn(line, "\n"), length = whole;
        for (size_t i = 0; i + 1 < length; i++)
            if (line[i] == '/' && line[i + 1] == '/')
                length = i;
        while (length && line[length - 1] == ' ')
            length--;
        strbuf_bytes(out, line, length);
        strbuf_put(out, length ? "\n" : "");
        line += whole + (line[whole] == '\n');
    }
}

static row row_of(const table *in, const kernel *first)
{
    row made = { .in = first->instance, .kernels = first };
    const kernel_set *set = in->set;
    strbuf code = strbuf_new(in->arena);
    for (const kernel *k = first;
         k < set->kernels + set->kernel_count && k->instance->name == made.in->name; k++) {
        put_code(&code, set, k);
        made.kernel_count++;
    }
    uint64_t hash = fnv1a64(code.text, code.length);
    made.key = arena_format(in->arena, "%s\t%s\t%u\t", made.in->family->name,
                            formats[instance_weights(made.in)].name, cost_vectors(made.in));
    made.ptx = arena_format(in->arena, "%08x\t", (unsigned)(hash ^ hash >> 32));
    for (const char *line = in->text; !made.line && *line; line += strcspn(line, "\n") + 1)
        if (strncmp(line, made.key, strlen(made.key)) == 0)
            made.line = arena_copy(in->arena, line, strcspn(line, "\n"));
    made.is_old =
        !made.line || strncmp(made.line + strlen(made.key), made.ptx, strlen(made.ptx)) != 0;
    return made;
}

static bool is_alike(const instance *a, const instance *b)
{
    return a->family == b->family && instance_weights(a) == instance_weights(b) &&
           cost_vectors(a) == cost_vectors(b);
}

static void find_rows(table *out)
{
    const kernel_set *set = out->set;
    for (size_t i = 0; i < set->kernel_count;) {
        const instance *in = set->kernels[i].instance;
        bool is_first = true;
        for (size_t r = 0; r < out->rows.count; r++)
            is_first &= !is_alike(out->rows.items[r].in, in);
        if (is_first)
            *VEC_PUSH(out->arena, &out->rows) = row_of(out, &set->kernels[i]);
        while (i < set->kernel_count && set->kernels[i].instance->name == in->name)
            i++;
    }
}

/* Returns the heading of the file's table for a version of ptxas. */
static const char *heading_of(const table *in, const char *version)
{
    strbuf heading = strbuf_new(in->arena);
    strbuf_format(&heading, "ptxas\t%s\nfamily\tformat\tm\tptx\tall", version);
    for (size_t t = 0; t < in->set->target_count; t++)
        strbuf_format(&heading, "\t%s", in->set->targets[t]->name);
    strbuf_char(&heading, '\n');
    return heading.text;
}

static void read_table(table *out, const char *path)
{
    const char *error;
    char *text;
    size_t size;
    if (!os_read_file(out->arena, path, &text, &size, &error))
        give_up(path, error);
    out->path = path;
    out->text = text;
    while (*text == '#')
        text += strcspn(text, "\n") + 1;
    out->comments = arena_copy(out->arena, out->text, (size_t)(text - out->text));
    const char *heading = text;
    for (int line = 0; line < 2 && *text; line++)
        text += strcspn(text, "\n") + 1;
    out->heading = arena_copy(out->arena, heading, (size_t)(text - heading));
    find_rows(out);
}

/* Prints the names of the rows whose kernels have changed, and writes them into a file. */
static void check_rows(const table *in, const char *path)
{
    const char *error;
    strbuf out = strbuf_new(in->arena);
    size_t old = 0;
    for (size_t i = 0; i < in->rows.count; i++) {
        const row *r = &in->rows.items[i];
        if (r->is_old && !old++)
            strbuf_format(&out, "%s: kernels have changed since they were counted:\n", in->path);
        if (r->is_old)
            strbuf_format(&out, "    %s %s m = %u\n", r->in->family->name,
                          formats[instance_weights(r->in)].name, cost_vectors(r->in));
    }
    if (old)
        strbuf_format(&out, "%zu of %zu rows; ninja count-costs counts them again\n", old,
                      in->rows.count);
    fputs(out.text, stdout);
    if (!os_write_file(in->arena, path, out.text, out.length, &error))
        give_up(path, error);
}

/* The letter of each figure in the file, and its number of decimals. */
static const char letters[] = "rsibgutwphxl";
enum { FIGURES = sizeof letters - 1 };
static const int decimals[FIGURES] = { 0, 0, 2, 0, 1, 3, 1, 1, 3, 1, 1, 3 };

/* Formats each figure as in the file: "r44", or "" for 0. */
static void write_figures(arena *a, const cost_figures *f, const char *written[FIGURES])
{
    const double values[FIGURES] = {
        f->registers, f->shared,    f->instructions, f->beside,       f->load_bytes, f->unit_bytes,
        f->turn,      f->in_flight, f->products,     f->shared_bytes, f->x_bytes,    f->l1_clocks
    };
    for (int i = 0; i < FIGURES; i++) {
        char *text = arena_format(a, "%c%.*f", letters[i], decimals[i], values[i]);
        size_t length = strlen(text);
        while (decimals[i] && text[length - 1] == '0')
            text[--length] = '\0';
        if (text[length - 1] == '.')
            text[--length] = '\0';
        written[i] = strcmp(text + 1, "0") == 0 ? "" : text;
    }
}

/* Appends a cell with the figures whose `equal` flag is `wanted`, or "=" if there are none. */
static void put_cell(strbuf *out, const char *const written[FIGURES], const bool equal[FIGURES],
                     bool wanted)
{
    bool any = false;
    for (int i = 0; i < FIGURES; i++)
        if (equal[i] == wanted && *written[i]) {
            strbuf_format(out, "%s%s", any ? " " : "", written[i]);
            any = true;
        }
    strbuf_put(out, any ? "" : "=");
}

/* Counts the clocks of the L1 cache for the loads of a streaming product, on the emulator with one
 * SM: there staging x takes a small part of them. Returns 0 for other families. */
static double count_l1_clocks(arena *a, const kernel *k)
{
    const instance *in = k->instance;
    const family *of = in->family;
    if ((!of->launch.weights_first && !of->block_rows) || !of->launch.rows)
        return 0;
    device d = device_emulator(a);
    trial_setup setup = { .shape = in->shape, .sm_count = 1, .seed = 1 };
    trial t = trial_prepare(a, in, &setup);
    trial_run r = { .device = &d, .trial = &t };
    bool placed = run_place(&r) && run_clear(&r);
    device_launch l = run_launch(&r, &(block_choice){ 0 });
    l.module = placed ? d.load(&d, k->ptx, k->ptx_length) : NULL;
    if (!l.module || !d.launch(&d, &l))
        give_up(in->name, d.error);
    double passes = (double)d.stats.global_load_passes;
    d.close(&d);
    return passes * WARP / cost_work_of(a, in).units;
}

/* Counts a row on all targets. Returns false if ptxas removed the kernel's hot loop. */
static bool count_row(const table *in, const ptxas *assembler, row *r)
{
    const kernel_set *set = in->set;
    const char *written[TARGET_MOST][FIGURES];
    bool counted[TARGET_MOST] = { false }, equal[FIGURES];
    size_t first = set->target_count; /* first target that has a kernel */
    double l1_clocks = count_l1_clocks(in->arena, r->kernels);
    for (int f = 0; f < FIGURES; f++)
        equal[f] = true;
    for (size_t t = 0; t < set->target_count; t++)
        for (const kernel *k = r->kernels; k < r->kernels + r->kernel_count; k++) {
            if (!serves(set, k, set->targets[t]))
                continue;
            cost_figures figures = count_figures(in->arena, assembler, k, set->targets[t]);
            if (figures.turn <= 0)
                return false;
            figures.l1_clocks = l1_clocks;
            write_figures(in->arena, &figures, written[t]);
            counted[t] = true;
            first = first < t ? first : t;
            for (int f = 0; f < FIGURES; f++)
                equal[f] &= strcmp(written[t][f], written[first][f]) == 0;
        }
    strbuf line = strbuf_new(in->arena);
    strbuf_format(&line, "%s%s", r->key, r->ptx);
    put_cell(&line, written[first], equal, true);
    for (size_t t = 0; t < set->target_count; t++) {
        strbuf_char(&line, '\t');
        if (counted[t])
            put_cell(&line, written[t], equal, false);
        else
            strbuf_char(&line, '-');
    }
    r->line = line.text;
    return true;
}

static void write_table(const table *in, const char *heading)
{
    const char *error;
    strbuf out = strbuf_new(in->arena);
    strbuf_format(&out, "%s%s", in->comments, heading);
    for (size_t i = 0; i < in->rows.count; i++)
        if (in->rows.items[i].line)
            strbuf_format(&out, "%s\n", in->rows.items[i].line);
    if (!os_write_file(in->arena, in->path, out.text, out.length, &error))
        give_up(in->path, error);
}

/* Counts the outdated rows of some families, or of all, and writes the file after each row. */
static void count_rows(table *of, char **families_wanted)
{
    const char *error;
    ptxas assembler;
    if (!ptxas_find(of->arena, NULL, &assembler, &error))
        give_up("ptxas", error);
    const char *heading = heading_of(of, assembler.version);
    bool is_other = strcmp(heading, of->heading) != 0;
    if (is_other && *families_wanted)
        give_up(
            of->path,
            "was counted by another ptxas or for other targets; count all rows, without FAMILY");
    size_t number = 0;
    for (size_t i = 0; i < of->rows.count; i++) {
        row *r = &of->rows.items[i];
        bool is_wanted = !*families_wanted;
        for (char **name = families_wanted; *name; name++)
            is_wanted |= strcmp(*name, r->in->family->name) == 0;
        if (!is_wanted || !(r->is_old || is_other))
            continue;
        if (!count_row(of, &assembler, r)) {
            printf("%s has no hot loop; give it a larger k\n", r->in->name);
            continue;
        }
        printf("%zu: %s\n", ++number, r->line);
        fflush(stdout);
        if (!is_other)
            write_table(of, heading);
    }
    write_table(of, heading);
}

/* Writes the prediction of the cost model for each kernel and target, as a Markdown table. */
static void write_predictions(arena *a, const kernel_set *set, const char *path)
{
    const char *error;
    strbuf out = strbuf_new(a);
    strbuf_format(
        &out,
        "Predictions of the cost model (`src/cost/cost.h`) for the kernels of "
        "`tests/bench/cost.ini`, from counts\n"
        "with ptxas %s. **All times are predicted; nothing here was measured.**\n\n"
        "- *units*: units of work of a lane in an iteration of the hot loop.\n"
        "- *instructions*: instructions per unit.\n"
        "- *bytes/load*: bytes of a lane's load of device memory in the loop, on average.\n"
        "- *warps*: warps per SM that registers and shared memory allow.\n"
        "- *KB in flight*: kilobytes of weights or caches that these warps wait for at a time.\n"
        "- *memory*, *issue*, *latency*, *balance*, *tensor*, *shared*, *cache* (L1): microseconds "
        "if only this "
        "limits the kernel,\n"
        "  at the size in its name. The largest is the *bound*.\n"
        "- *balance*: memory's time until the first SMs are done, then the rest of the busiest "
        "SM.\n"
        "- *start*: microseconds until weights arrive; *early*: the part of it in which memory "
        "already reads weights.\n"
        "- *end*: microseconds of a last block that merges results.\n\n"
        "| target | GPU | SMs | MHz | GB/s |\n|---|---|---|---|---|\n",
        cost_table_ptxas);
    for (size_t t = 0; t < set->target_count; t++) {
        const gpu_part *part = target_part(set->targets[t]);
        if (!part)
            give_up(set->targets[t]->name, "no GPU of this architecture is known");
        strbuf_format(&out, "| %s | %s | %u | %u | %u |\n", set->targets[t]->name, part->name,
                      part->sm_count, part->clock_mhz, part->bandwidth_gbps);
    }
    strbuf_put(&out, "\n| kernel | target | registers | units | instructions | bytes/load | warps "
                     "| KB in flight");
    for (cost_bound b = 0; b < BOUND_COUNT; b++)
        strbuf_format(&out, " | %s", cost_bound_names[b]);
    strbuf_put(&out, " | start | early | end | total | bound |\n|");
    for (int column = 0; column < 13 + BOUND_COUNT; column++)
        strbuf_put(&out, "---|");
    strbuf_char(&out, '\n');
    for (const kernel *k = set->kernels; k < set->kernels + set->kernel_count; k++)
        for (size_t t = 0; t < set->target_count; t++) {
            cost_figures f;
            if (!serves(set, k, set->targets[t]) || !cost_find(k->instance, set->targets[t], &f))
                continue;
            cost_gpu gpu = cost_gpu_of(set->targets[t]);
            cost_work work = cost_work_of(a, k->instance);
            cost_prediction p = cost_predict(&f, k->instance, &work, &gpu);
            strbuf_format(&out, "| %s | %s | %u | %.0f | %.2f | %.0f | %u | %.1f",
                          k->instance->name, set->targets[t]->name, f.registers, f.turn,
                          f.instructions, f.load_bytes, p.warps_sm, p.in_flight_sm / 1e3);
            for (cost_bound b = 0; b < BOUND_COUNT; b++)
                strbuf_format(&out, " | %.1f", p.times[b] * 1e6);
            strbuf_format(&out, " | %.1f | %.1f | %.1f | %.1f | %s |\n", p.start * 1e6,
                          p.ahead * 1e6, p.end * 1e6, p.total * 1e6, cost_bound_names[p.bound]);
        }
    if (!os_write_file(a, path, out.text, out.length, &error))
        give_up(path, error);
}

int main(int argc, char **argv)
{
    const char *mode = argc >= 4 ? argv[1] : "";
    bool counts = strcmp(mode, "count") == 0, checks = strcmp(mode, "check") == 0;
    if ((!counts && !checks && strcmp(mode, "table") != 0) ||
        (!counts && argc != (checks ? 5 : 4))) {
        fprintf(stderr, "usage: cost check SPEC COSTS.tsv LIST\n"
                        "       cost count SPEC COSTS.tsv [FAMILY...]\n"
                        "       cost table SPEC TABLE.md\n");
        return 2;
    }
    arena *a = arena_new();
    diags d = diags_new(a);
    char *text;
    size_t size;
    const char *error;
    spec s;
    kernel_set set;
    if (!os_read_file(a, argv[2], &text, &size, &error))
        give_up(argv[2], error);
    if (!spec_parse(a, argv[2], text, size, families_and_pipelines(a), NULL, NULL, &s, &d) ||
        !generate_kernels(a, &s, &set, &d)) {
        strbuf message = strbuf_new(a);
        diags_render(&d, &message, false);
        give_up(argv[2], message.text);
    }
    if (counts || checks) {
        table t = { .arena = a, .set = &set };
        read_table(&t, argv[3]);
        if (checks)
            check_rows(&t, argv[4]);
        else
            count_rows(&t, argv + 4);
    } else {
        write_predictions(a, &set, argv[3]);
    }
    arena_free(a);
    return 0;
}
