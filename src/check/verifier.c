#include "check/verifier.h"

#include <math.h>
#include <string.h>

enum {
    HANGING = 20,            /* instruction limit of a block: this multiple of its estimated work */
    HANGING_SMALL = 2000000, /* plus this constant */
    TENSOR_CORE_SHARE = 16,  /* thread instructions that one tensor-core product replaces */
};
#define MOST_WORK  (UINT64_C(4) * 1000 * 1000 * 1000) /* maximum instructions of a block */
#define MOST_BYTES (UINT64_C(1) << 46)                /* maximum size of a buffer */

static bool reject(verifier *v, const char *what)
{
    v->result.right = false;
    v->result.message = arena_format(v->result_arena, "%s: %s (%s)", v->kernel->instance->name,
                                     what, trial_describe(v->scratch, &v->trial));
    return false;
}

/* Returns ": " and a line of the text without surrounding blanks, shortened if it is long. */
static const char *text_line(arena *a, const char *text, unsigned number)
{
    enum { MOST_SHOWN = 120 };
    for (unsigned i = 1; i < number && text; i++) {
        text = strchr(text, '\n');
        text = text ? text + 1 : NULL;
    }
    if (!text || !number)
        return "";
    text += strspn(text, " \t");
    size_t length = strcspn(text, "\n");
    return arena_format(a, ": %.*s%s", (int)(length < MOST_SHOWN ? length : MOST_SHOWN), text,
                        length > MOST_SHOWN ? " ..." : "");
}

static const char *fault_message(verifier *v)
{
    const emu_report *r = &v->run.device->report;
    arena *a = v->scratch;
    const char *entry = strstr(v->kernel->ptx, ".entry"); /* for faults of the launch */
    v->result.line = r->line ? r->line : entry != NULL;
    for (const char *at = v->kernel->ptx; !r->line && entry && at < entry; at++)
        v->result.line += *at == '\n';
    const char *what = arena_format(a, "%s [%s]", r->message, emu_fault_name(r->fault));
    if (!r->line)
        return what;
    return arena_format(a, "%s, at block (%u, %u, %u) thread %u, PTX line %u%s", what, r->block[0],
                        r->block[1], r->block[2], r->thread[0], r->line,
                        text_line(a, v->kernel->ptx, r->line));
}

/* Inputs may give one block the work of all rows, or the last one that of its partners. */
uint64_t verifier_block_work(const trial *t)
{
    uint64_t rows = t->instance->family->launch.dealt ? t->grid[1] : 1;
    return blocks_work(t) / blocks_of_grid(t) * rows * blocks_partners(t);
}

static bool launch_blocks(verifier *v, const block_choice *c, uint64_t watch)
{
    uint64_t speculated = 0;
    size_t kernels = v->cores ? atomic_load(&v->cores->unfinished) : 0;
    const trial *t = &v->trial;
    device *d = v->run.device;
    device_launch l = run_launch(&v->run, c);
    l.module = v->module;
    l.instruction_limit = HANGING * verifier_block_work(t) + HANGING_SMALL;
    l.watch = watch;
    l.threads = kernels && kernels < v->cores->count ? v->cores->count / (unsigned)kernels : 1;
    l.speculated_blocks = &speculated;
    bool overlaps = v->kernel->overlaps && t->setup.kind == FILL_NORMAL && !t->spoiled && !watch &&
                    !c->descending;
    bool ended = overlaps ? run_after_unknown(&v->run, &l) : d->launch(d, &l);
    if (v->cores)
        atomic_fetch_add(&v->cores->speculated_blocks, speculated);
    return ended;
}

static bool launch_and_judge(verifier *v, const block_choice *c)
{
    uint64_t grid = blocks_of_grid(&v->trial);
    judgement j = { 0 };
    run_clear(&v->run);
    bool ended = launch_blocks(v, c, 0);
    v->result.instructions += v->run.device->stats.thread_instructions;
    v->result.blocks += c->count ? c->count : grid;
    v->result.of_blocks += grid;
    if (!ended)
        return reject(v, fault_message(v));
    const run_verdict verdict = run_judge(v->scratch, &v->run, c, &j);
    v->result.worst = fmax(v->result.worst, j.worst);
    if (!verdict.what || !verdict.address)
        return !verdict.what || reject(v, verdict.what);
    /* runs again to find the PTX line that stores to the address */
    launch_blocks(v, c, verdict.address);
    v->result.line = v->run.device->stats.watched_line;
    return reject(v, arena_format(v->scratch, "%s%s PTX line %u%s", verdict.what, verdict.blame,
                                  v->result.line,
                                  text_line(v->scratch, v->kernel->ptx, v->result.line)));
}

/* Launches and judges a trial, in two orders if sampled blocks finish a result together. */
bool verifier_launch(verifier *v, selection which)
{
    block_choice c = blocks_choose(v->scratch, &v->trial, which);
    if (!launch_and_judge(v, &c))
        return false;
    c.descending = true;
    return blocks_partners(&v->trial) == 1 || which != SAMPLED_BLOCKS || v->alike ||
           launch_and_judge(v, &c);
}

const char *verifier_refusal(arena *a, const trial *t)
{
    uint64_t at_once = t->instance->family->halves ? TENSOR_CORE_SHARE : 1;
    uint64_t work = blocks_work(t) / blocks_of_grid(t) / at_once;
    for (size_t i = 0; i < t->param_count; i++)
        if (t->params[i].size > MOST_BYTES)
            return arena_format(
                a,
                "%s has %.0e bytes, too many to verify; verify a smaller size with the same code",
                t->params[i].param.name, (double)t->params[i].size);
    if (work <= MOST_WORK)
        return NULL;
    return arena_format(a,
                        "a block runs about %.0e instructions, too many to verify; verify a "
                        "smaller size with the same code",
                        (double)work);
}

bool verifier_try(verifier *v, const trial_setup *setup, bool (*runs)(verifier *))
{
    if (v->alike && (setup->kind != FILL_NORMAL || setup->spoiled))
        return true;
    arena *a = arena_new();
    v->trial = trial_prepare(a, v->kernel->instance, setup);
    const char *refusal = verifier_refusal(v->scratch, &v->trial);
    bool right = refusal ? reject(v, refusal) : true;
    if (right) {
        device d = device_emulator(a);
        v->run = (trial_run){ .device = &d, .trial = &v->trial };
        run_place(&v->run);
        right = runs(v);
        d.close(&d);
    }
    arena_free(a);
    return right;
}

/* Adds a PTX line that the emulator cannot run to the message. */
static void add_refusal(verifier *v, const emu_report *report)
{
    const kernel *k = v->kernel;
    const char *before = v->result.message;
    if (!before)
        v->result.line = report->line;
    v->result.message =
        arena_format(v->result_arena, "%s%s: PTX line %u%s: %s",
                     before ? arena_format(v->scratch, "%s\n", before) : "", k->instance->name,
                     report->line, text_line(v->scratch, k->ptx, report->line), report->message);
}

bool verifier_load(verifier *v)
{
    const kernel *k = v->kernel;
    emu_report report;
    v->module = emu_load_any(v->scratch, k->ptx, k->ptx_length, &report);
    if (!v->module)
        add_refusal(v, &report);
    for (size_t i = 0; v->module && emu_unknown(v->module, i, &report); i++)
        add_refusal(v, &report);
    v->result.right = !v->result.message;
    if (!v->result.right)
        return false;
    emu_module_info module;
    emu_entry_info entry;
    emu_module_describe(v->module, &module);
    v->result.isa = module.isa;
    if (emu_entry(v->module, k->instance->name, &entry))
        v->result.shared_bytes = entry.shared_bytes;
    /* a newer .target would not run on GPUs that the header promises */
    v->result.right = !k->target || module.target <= k->target->sm;
    if (!v->result.right)
        v->result.message = arena_format(v->result_arena, "%s: .target sm_%u is too new",
                                         k->instance->name, module.target);
    return v->result.right;
}

/* Returns true if a mnemonic contains one of the modifiers: "fma.rz.f32" contains ".rz". */
static bool has_modifier(const char *mnemonic, const char *const *modifiers)
{
    for (; *modifiers; modifiers++) {
        size_t length = strlen(*modifiers);
        for (const char *at = mnemonic; (at = strstr(at, *modifiers)); at += length)
            if (at[length] == '.' || !at[length])
                return true;
    }
    return false;
}

/* Rejects instructions with directed rounding or flushing, which no generated kernel has and whose
 * errors can be within the tolerance of a sum. Approximations may flush subnormals. Since the text
 * has been parsed, a word that starts with a letter and contains a dot is a mnemonic. */
void verifier_check_rounding(verifier *v)
{
    static const char *const directed[] = { ".rz", ".rm", ".rp", NULL };
    static const char *const flushing[] = { ".ftz", NULL }, *const inexact[] = { ".approx", NULL };
    static const char letters[] = "abcdefghijklmnopqrstuvwxyz";
    static const char in_words[] = "abcdefghijklmnopqrstuvwxyz0123456789_.$%"
                                   "ABCDEFGHIJKLMNOPQRSTUVWXYZ";
    const char *at = arena_copy(v->scratch, v->kernel->ptx, v->kernel->ptx_length);
    for (unsigned line = 1; *at && v->result.right; at++) {
        size_t length = strspn(at, in_words);
        const char *fault = NULL, *word = "";
        if (strncmp(at, "//", 2) == 0) {
            at += strcspn(at, "\n");
        } else if (strncmp(at, "/*", 2) == 0) {
            const char *end = strstr(at + 2, "*/");
            for (; at < end; at++)
                line += *at == '\n';
        } else if (length) {
            word = arena_copy(v->scratch, at, length);
            if (strspn(word, letters) && has_modifier(word, directed))
                fault = "does not round to nearest; use .rn";
            else if (strspn(word, letters) && has_modifier(word, flushing) &&
                     !has_modifier(word, inexact))
                fault = "flushes subnormal values to zero; remove .ftz";
            at += length;
        }
        if (fault) {
            v->result.right = false;
            v->result.line = line;
            v->result.message =
                arena_format(v->result_arena, "%s: %s %s", v->kernel->instance->name, word, fault);
        }
        line += *at == '\n';
        if (!*at)
            break;
    }
}
