#include "kernel/suite.h"

#include <stdlib.h>
#include <string.h>

#include "test.h"
#include "kernel/cache.h"
#include "kernel/limits.h"
#include "kernel/generate.h"
#include "ref/reference.h"

static int64_t word_index(const key *k, const char *word)
{
    for (int64_t i = 0; k->choices[i].word; i++)
        if (strcmp(k->choices[i].word, word) == 0)
            return i;
    fail_msg("%s does not accept '%s'", k->name, word);
    return 0;
}

static void check_range(const instance *in, const key *k)
{
    int64_t value = instance_value(in, k);
    bool left_out = k->at_run_time && value == 0;
    if (!k->choices && !k->real && !left_out &&
        (value < k->min || value > k->max || value % key_multiple(in, k)))
        fail_msg("%s does not accept %s = %lld", in->family->name, k->name, (long long)value);
}

const char *suite_weights(arena *a, const family *f, size_t i)
{
    const key *k = family_key(f, "weights");
    if (!k)
        return i ? NULL : "";
    for (const choice *c = k->choices; c->word; c++)
        if (key_takes_choice(k, c) && i-- == 0)
            return arena_format(a, "weights=%s ", c->word);
    return NULL;
}

int64_t suite_multiple(arena *a, const family *f, const char *weights, const key *k)
{
    instance in = { .family = f };
    for (const key *each = f->keys; each->name; each++)
        instance_set(&in, each, key_default(each));
    for (const key *each = f->keys; each->name; each++)
        if (each->choices && strncmp(weights, each->name, strlen(each->name)) == 0 &&
            weights[strlen(each->name)] == '=')
            instance_set(
                &in, each,
                word_index(each, arena_copy(a, strchr(weights, '=') + 1,
                                            strcspn(weights, " ") - strlen(each->name) - 1)));
    for (const key *each = f->keys; each->name; each++)
        if (each->like)
            instance_set(&in, each, instance_default(&in, each));
    return key_multiple(&in, k);
}

/* Rows of the smallest tile; larger tiles take longer to emulate. */
enum { LEAST_TILE = 16 };

bool suite_instance(arena *a, const family *f, const char *text, instance *in)
{
    uint64_t given = 0;
    *in = instance_of_defaults(f);
    if (f->halves)
        in->shape.m = LEAST_TILE;
    in->shape.n_kv = family_key(f, "n_kv") ? 2 : 0;
    in->shape.experts = family_key(f, "experts") ? 5 : 0;
    in->shape.experts_used = family_key(f, "experts_used") ? 2 : 0;
    for (const char *at = text + strspn(text, " "); *at; at += strspn(at, " ")) {
        size_t name_length = strcspn(at, "="), length = strcspn(at, " ");
        const char *name = arena_copy(a, at, name_length);
        const char *value = arena_copy(a, at + name_length + 1, length - name_length - 1);
        const key *k = family_key(f, name);
        if (!k || (k->choices && !key_takes_choice(k, k->choices + word_index(k, value))))
            return false;
        instance_set(in, k,
                     k->choices ? word_index(k, value)
                     : k->real  ? real_bits(atof(value))
                                : atoll(value));
        given |= UINT64_C(1) << (k - f->keys);
        at += length;
    }
    for (const key *k = f->keys; k->name; k++)
        if (k->like && !(given >> (k - f->keys) & 1))
            instance_set(in, k, instance_default(in, k));
    for (const key *k = f->keys; k->name; k++) {
        int64_t multiple = key_multiple(in, k), least = key_least(in, k);
        if (k->required && !k->at_run_time && !k->choices && !k->real && !instance_value(in, k))
            instance_set(in, k, (least + multiple - 1) / multiple * multiple);
    }
    for (const key *k = f->keys; k->name; k++)
        check_range(in, k);
    const char *blamed, *refusal = f->check ? f->check(in, a, &blamed) : NULL;
    if (refusal)
        fail_msg("%s refuses '%s': %s", f->name, text, refusal);
    /* Use a number of stages that fits every GPU, as the reader of a spec does. */
    const key *stages = family_key(f, "stages");
    const target *oldest = instance_oldest_target(in);
    if (stages && !(given >> (stages - f->keys) & 1))
        launch_fit_stages(in, &oldest, 1);
    in->name = instance_make_name(a, in);
    return true;
}

bool suite_is_attention(const family *f)
{
    return family_key(f, "head_dim") && f->op != OP_ROPE && f->op != OP_KV_WRITE &&
           f->op != OP_ROPE_KV_WRITE && f->op != OP_DELTA_NET && f->op != OP_MAMBA2;
}

const char *suite_known_keys(arena *a, const family *f, const char *text)
{
    strbuf known = strbuf_new(a);
    for (const char *at = text + strspn(text, " "); *at; at += strspn(at, " ")) {
        size_t length = strcspn(at, " "), name = strcspn(at, "=");
        const key *k = family_key(f, arena_copy(a, at, name));
        const char *word = arena_copy(a, at + name + 1, length - name - 1);
        if (k && k->multiple_of > 1 && strcmp(k->name, "chunk_size") == 0)
            strbuf_format(&known, "chunk_size=%lld ",
                          (atoll(word) + k->multiple_of - 1) / k->multiple_of * k->multiple_of);
        else if (k && (!k->choices || key_takes_choice(k, k->choices + word_index(k, word))))
            strbuf_format(&known, "%.*s ", (int)length, at);
        at += length;
    }
    return known.text;
}

kernel suite_kernel_for(arena *a, const instance *in, const target *t)
{
    kernel k;
    const char *error;
    arena *scratch = arena_new();
    bool built = generate_ptx(a, scratch, in, t, &k, &error);
    arena_free(scratch);
    if (!built)
        fail_msg("%s can't be built for %s: %s", in->name, t->name, error);
    return k;
}

kernel suite_kernel(arena *a, const instance *in)
{
    const char *name = getenv("PTXGEN_TEST_TARGET");
    const target *oldest = instance_oldest_target(in), *asked = name ? target_find(name) : NULL;
    bool serves = asked && target_runs(asked, oldest) && instance_suits(in, asked);
    return suite_kernel_for(a, in, serves ? asked : oldest);
}

instance suite_made(arena *a, const family *f, const char *keys, ...)
{
    va_list rest;
    instance in;
    va_start(rest, keys);
    const char *text = arena_vformat(a, keys, rest);
    va_end(rest);
    if (!suite_instance(a, f, text, &in))
        fail_msg("%s: no instance '%s'", f->name, text);
    return in;
}

kernel suite_kernel_of(arena *a, const char *family_name, const char *text, instance *in)
{
    *in = suite_made(a, family_find(families, family_name), "%s", text);
    return suite_kernel(a, in);
}

launched *suite_launched(arena *a, const char *family_name, const char *text)
{
    launched *l = arena_alloc(a, sizeof *l);
    l->kernel = suite_kernel_of(a, family_name, text, &l->in);
    trial_setup setup = { .shape = l->in.shape, .sm_count = 1, .seed = 1 };
    l->trial = trial_prepare(a, &l->in, &setup);
    return l;
}

trial suite_rows(arena *a, const instance *in, int64_t m)
{
    trial_setup setup = { .shape = in->shape, .sm_count = 1, .seed = 3 };
    setup.shape.m = m;
    return trial_prepare(a, in, &setup);
}

trial_param *suite_param(trial *t, const char *name)
{
    size_t i = 0;
    while (i < t->param_count && strcmp(t->params[i].param.name, name) != 0)
        i++;
    if (i == t->param_count)
        fail_msg("%s has no parameter %s", t->instance->name, name);
    return &t->params[i];
}

trial_setup suite_setup(const instance *in, const device *d)
{
    trial_setup setup = { .shape = in->shape, .sm_count = d->sm_count, .seed = 1 };
    setup.shape.seq_len = in->shape.max_seq_len;
    return setup;
}

trial suite_trial(arena *a, const instance *in, const device *d)
{
    trial_setup setup = suite_setup(in, d);
    return trial_prepare(a, in, &setup);
}

/* Places a trial and launches its whole grid. Skips the test if the GPU cannot run the kernel's
 * target. Returns NULL, or a description of the failure. */
static const char *launch_trial(trial_run *r, const kernel *k)
{
    device *d = r->device;
    unsigned sm = k->target->sm;
    if (!d->memory && (d->sm < sm || (k->specific && d->sm != sm)))
        skip();
    if (!run_place(r) || !run_clear(r))
        return d->error;
    device_launch l = run_launch(r, &(block_choice){ 0 });
    l.module = d->load(d, k->ptx, k->ptx_length);
    return l.module && d->launch(d, &l) ? NULL : d->error;
}

static const char *describe_failure(arena *a, const trial_run *r, const kernel *k,
                                    const char *wrong)
{
    return arena_format(a, "%s on the %s: %s (%s)", k->instance->name, r->device->name, wrong,
                        trial_describe(a, r->trial));
}

/* Compares the first output with expected values. The reference supplies the error bounds. */
static const char *judge_by(arena *a, const trial_run *r, const trial_output *o,
                            const double *expected)
{
    const trial_param *p = &r->trial->params[0];
    const family *f = r->trial->instance->family;
    ref_value *values = arena_alloc(a, p->values * sizeof *values);
    judgement j = { 0 };
    f->reference(&r->trial->problem, 0, 0, p->values, values);
    for (uint64_t i = 0; i < p->values; i++)
        values[i].value = expected[i];
    judge_values(&p->param, o->bytes, values, 0, p->values, f->tolerance, &j);
    return j.worst <= 1
               ? NULL
               : arena_format(a, "%s%s[%llu] is %.9g, expected %.9g: %.3g of its bound", j.field,
                              j.output, (unsigned long long)j.element, j.got, j.expected, j.worst);
}

static trial_output read_output(arena *a, const trial_run *r, size_t index)
{
    return run_read(a, r, index, 0, trial_output_blocks(&r->trial->params[index]));
}

/* Returns the cache key of a run on the emulator. A run in place includes its parameters' names. */
static uint64_t key_of_run(const trial_run *r, const kernel *k, const double *expected)
{
    uint64_t id = cache_key("run", k, r->trial);
    if (r->output)
        id = cache_hash(cache_hash(id, r->output, strlen(r->output)), r->in_place_of,
                        strlen(r->in_place_of));
    return expected ? cache_hash(id, expected, r->trial->params[0].values * sizeof *expected) : id;
}

static size_t output_bytes(const trial_param *p)
{
    return trial_output_blocks(p) * formats[p->param.format].block_bytes;
}

static const char *run_and_judge(arena *a, trial_run *r, const kernel *k, const double *expected,
                                 const void **output)
{
    judgement j = { 0 };
    bool kept = r->device->memory;
    size_t bytes = output ? output_bytes(&r->trial->params[0]) : 0;
    uint64_t id = kept ? key_of_run(r, k, expected) ^ (output != NULL) : 0;
    const void *found = kept ? cache_find(a, id, bytes) : NULL;
    if (found) {
        if (output)
            *output = found;
        return NULL;
    }
    const char *wrong = launch_trial(r, k);
    if (!wrong && !expected)
        wrong = run_judge(a, r, &(block_choice){ 0 }, &j).what;
    if (!wrong && (expected || output)) {
        const trial_output o = read_output(a, r, 0);
        wrong = expected ? judge_by(a, r, &o, expected) : NULL;
        if (output)
            *output = o.bytes;
    }
    if (wrong)
        wrong = describe_failure(a, r, k, wrong);
    else if (kept)
        cache_keep(id, output ? *output : "", bytes);
    r->device->reset(r->device);
    return wrong;
}

const char *suite_run(arena *a, device *d, const kernel *k, const trial *t, const double *expected,
                      const void **output)
{
    trial_run r = { .device = d, .trial = t };
    return run_and_judge(a, &r, k, expected, output);
}

const char *suite_run_in_place(arena *a, device *d, const kernel *k, const trial *t,
                               const char *output, const char *input)
{
    trial_run r = { .device = d, .trial = t, .output = output, .in_place_of = input };
    return run_and_judge(a, &r, k, NULL, NULL);
}

/* Launches a trial without judging it. Sets outputs, indexed by parameter. */
static const char *launch_and_read(arena *a, device *d, const kernel *k, const trial *t,
                                   trial_output outputs[MAX_PARAMS])
{
    trial_run r = { .device = d, .trial = t };
    const char *wrong = launch_trial(&r, k);
    if (wrong)
        wrong = describe_failure(a, &r, k, wrong);
    for (size_t i = 0; i < MAX_PARAMS; i++)
        outputs[i] = !wrong && i < t->param_count && t->params[i].param.kind == PARAM_OUT
                         ? read_output(a, &r, i)
                         : (trial_output){ 0 };
    d->reset(d);
    return wrong;
}

/* Launches a trial without judging it, or finds its outputs in the cache if the device is the
 * emulator. */
static const char *launch_or_find(arena *a, device *d, const kernel *k, const trial *t,
                                  trial_output outputs[MAX_PARAMS])
{
    size_t bytes = 0;
    for (const trial_param *p = t->params; p < t->params + t->param_count; p++)
        if (p->param.kind == PARAM_OUT)
            bytes += output_bytes(p) + trial_output_blocks(p);
    uint64_t id = d->memory ? cache_key("launch", k, t) : 0;
    uint8_t *kept = d->memory ? cache_find(a, id, bytes) : NULL;
    const char *wrong = kept ? NULL : launch_and_read(a, d, k, t, outputs);
    if (wrong || !d->memory)
        return wrong;
    bool found = kept;
    kept = found ? kept : arena_alloc(a, bytes);
    uint8_t *at = kept;
    for (size_t i = 0; i < MAX_PARAMS; i++) {
        const trial_param *p = &t->params[i];
        if (i >= t->param_count || p->param.kind != PARAM_OUT) {
            outputs[i] = (trial_output){ 0 };
            continue;
        }
        size_t size = output_bytes(p), count = trial_output_blocks(p);
        if (found) {
            outputs[i] = (trial_output){ at, at + size, 0, count };
        } else {
            memcpy(at, outputs[i].bytes, size);
            memcpy(at + size, outputs[i].written, count);
        }
        at += size + count;
    }
    if (!found)
        cache_keep(id, kept, bytes);
    return NULL;
}

const char *suite_launch_all(arena *a, device *d, const kernel *k, const trial *t,
                             const void *outputs[MAX_PARAMS])
{
    trial_output all[MAX_PARAMS];
    const char *wrong = launch_or_find(a, d, k, t, all);
    for (size_t i = 0; i < MAX_PARAMS; i++)
        outputs[i] = all[i].bytes;
    return wrong;
}

const char *suite_launch(arena *a, device *d, const kernel *k, const trial *t, const void **output,
                         const uint8_t **written)
{
    trial_output all[MAX_PARAMS];
    const char *wrong = launch_or_find(a, d, k, t, all);
    *output = all[0].bytes;
    *written = all[0].written;
    return wrong;
}

emu_stats suite_count(arena *a, const kernel *k, const trial *t, const void **output)
{
    device d = device_emulator(a);
    trial_output all[MAX_PARAMS];
    const char *wrong = launch_and_read(a, &d, k, t, all);
    if (output)
        *output = all[0].bytes;
    if (wrong)
        fail_msg("%s: %s", k->instance->name, wrong);
    d.close(&d);
    return d.stats;
}

const void *suite_output(arena *a, const launched *l)
{
    const void *output;
    suite_count(a, &l->kernel, &l->trial, &output);
    return output;
}

void expect_right(const char *wrong)
{
    if (wrong)
        fail_msg("%s", wrong);
}

void expect_runs_right(arena *a, device *d, const launched *l)
{
    expect_right(suite_run(a, d, &l->kernel, &l->trial, NULL, NULL));
}

void expect_trial_right(arena *a, device *d, const instance *in, const trial *t)
{
    kernel k = suite_kernel(a, in);
    expect_right(suite_run(a, d, &k, t, NULL, NULL));
}

void expect_filled_right(arena *a, device *d, const instance *in, fill_kind kind)
{
    trial_setup setup = suite_setup(in, d);
    setup.kind = kind;
    trial t = trial_prepare(a, in, &setup);
    expect_trial_right(a, d, in, &t);
}

void expect_same_bits(const char *kernel_name, const char *of, const void *got,
                      const void *expected, size_t bytes)
{
    const uint8_t *of_got = got, *of_expected = expected;
    size_t at = 0;
    while (at < bytes && of_got[at] == of_expected[at])
        at++;
    if (at == bytes)
        return;
    uint32_t words[2] = { 0 };
    float numbers[2];
    at -= at % sizeof *words;
    size_t taken = bytes - at < sizeof *words ? bytes - at : sizeof *words;
    memcpy(&words[0], of_got + at, taken);
    memcpy(&words[1], of_expected + at, taken);
    memcpy(numbers, words, sizeof numbers);
    fail_msg("%s: %s, word %zu is 0x%08x (%.9g), expected 0x%08x (%.9g)", kernel_name, of,
             at / sizeof *words, words[0], (double)numbers[0], words[1], (double)numbers[1]);
}

verify_result suite_verify(arena *a, const kernel *k, bool expected)
{
    struct kept {
        unsigned line;
        char message[4096];
    } * kept;
    trial t = trial_prepare(
        a, k->instance, &(trial_setup){ .shape = k->instance->shape, .sm_count = 1, .seed = 1 });
    uint64_t id = cache_key(expected ? "right" : "wrong", k, &t);
    kept = cache_find(a, id, sizeof *kept);
    if (kept)
        return (verify_result){ .right = expected, .line = kept->line, .message = kept->message };
    verify_result r = verify_kernel(a, k, 1, NULL, false, NULL);
    if (r.right == expected) {
        kept = arena_zalloc(a, sizeof *kept);
        kept->line = r.line;
        strncpy(kept->message, r.right ? "" : r.message, sizeof kept->message - 1);
        cache_keep(id, kept, sizeof *kept);
    }
    return r;
}

void expect_kernel_right(arena *a, const kernel *k)
{
    verify_result r = suite_verify(a, k, true);
    if (!r.right)
        fail_msg("%s", r.message);
}

void expect_fault_found(arena *a, const kernel *k, const line_edit *fault)
{
    kernel faulty = *k;
    expect_kernel_right(a, k);
    faulty.ptx = edit_lines(a, k->ptx, fault);
    faulty.ptx_length = strlen(faulty.ptx);
    if (suite_verify(a, &faulty, false).right)
        fail_msg("%s passes verification with '%s' in place of %s number %u", k->instance->name,
                 fault->to, fault->mnemonic, fault->which);
}

void expect_faults_found(arena *a, const planted_fault *faults, size_t count)
{
    for (const planted_fault *f = faults; f < faults + count; f++)
        expect_edits_found(a, f->family, f->text, &f->edit, 1);
}

void expect_edits_found(arena *a, const char *family_name, const char *text,
                        const line_edit *faults, size_t count)
{
    instance in;
    kernel k = suite_kernel_of(a, family_name, text, &in);
    for (size_t i = 0; i < count; i++)
        expect_fault_found(a, &k, &faults[i]);
}

void expect_text_wrong(arena *a, const kernel *k, const char *text, const char *how)
{
    kernel faulty = *k;
    faulty.ptx = text;
    faulty.ptx_length = strlen(text);
    verify_result r = suite_verify(a, &faulty, false);
    if (r.right)
        fail_msg("%s passes verification with the fault", k->instance->name);
    if (!strstr(r.message, how))
        fail_msg("the fault is reported as '%s', without '%s'", r.message, how);
}

void put_input(trial *t, size_t input, const void *bytes)
{
    for (size_t i = 0; i < t->param_count; i++)
        if (t->params[i].param.kind == PARAM_IN && input-- == 0)
            memcpy(t->params[i].content.bytes, bytes, t->params[i].size);
}

void suite_put_sequences(trial *t, const uint32_t *sequences)
{
    memcpy(t->sequences, sequences, t->row_count * sizeof *sequences);
    for (size_t i = 0; i < t->param_count; i++)
        if (t->params[i].param.data == DATA_SEQUENCES)
            memcpy(t->params[i].content.bytes, sequences, t->params[i].size);
}

const uint32_t *suite_put_places(arena *a, trial *t, const int *numbers)
{
    uint32_t *places = arena_zalloc(a, t->row_count * sizeof *places);
    for (size_t i = 0; i < t->row_count; i++)
        while (numbers[places[i]] != numbers[i])
            places[i]++;
    suite_put_sequences(t, places);
    return places;
}

size_t suite_cache_offset(const trial *t, const trial_param *pool, size_t sequence, int64_t kv_head,
                          int64_t position)
{
    uint64_t row = ref_cache_row(&t->problem, sequence, (uint64_t)kv_head, (uint64_t)position);
    return row * format_bytes(pool->param.format, (uint64_t)problem_cache_values(&t->setup.shape));
}

void suite_copy_cache(cache_part to, cache_part from, int64_t count)
{
    size_t bytes =
        format_bytes(to.pool->param.format, (uint64_t)problem_cache_values(&to.trial->setup.shape));
    for (int64_t i = 0; i < count; i++)
        memcpy((char *)to.pool->content.bytes +
                   suite_cache_offset(to.trial, to.pool, to.sequence, to.kv_head, to.first + i),
               (const char *)from.pool->content.bytes +
                   suite_cache_offset(from.trial, from.pool, from.sequence, from.kv_head,
                                      from.first + i),
               bytes);
}

typedef struct test_state {
    subject subject;
    const suite_check *check;
    size_t runs;
} test_state;

bool suite_takes_run(const subject *s)
{
    size_t run = (*s->runs)++;
    return run % s->sharing == 0 && (!s->shared || test_takes_row(run / s->sharing, THIRD));
}

/* Number of formats that divide a family's runs among themselves: few, or enough that each run is
 * made with one format. */
enum { OF_FORMATS = 3, OF_LARGE = 28 };

static size_t formats_sharing(arena *a, const family *f)
{
    enum { MANY = 8 };
    bool experts = family_key(f, "experts");
    if (test_tier_asked() == TIER_FULL || !suite_weights(a, f, MANY))
        return 1;
    return experts || f->halves ? OF_LARGE : OF_FORMATS;
}

static void run_check(void **state)
{
    const test_state *t = *state;
    bool emulator = strcmp(t->subject.device->name, "emulator") == 0;
    if (!t->subject.device->launch || (t->check->emulator_only && !emulator))
        skip();
    arena *a = arena_new();
    t->check->check(a, &t->subject);
    arena_free(a);
}

/* Adds tests with names like "stream_gemv_q4_k_equals_golden_data_on_the_emulator". */
static void add_tests(arena *a, const char *file, const subject *s, size_t step,
                      size_t family_number, const suite_check *checks, size_t count)
{
    const char *words = "";
    for (const char *at = s->weights; (at = strchr(at, '=')); at++)
        words = arena_format(a, "%s_%.*s", words, (int)strcspn(at + 1, " "), at + 1);
    for (size_t i = 0; i < count; i++) {
        /* Spreads the formats over the checks: no check and no format is left out. */
        size_t number = s->number + 5 * i + 7 * family_number;
        if ((checks[i].key && !family_key(s->family, checks[i].key)) ||
            (test_tier_asked() != TIER_FULL && number % step))
            continue;
        test_state *t = arena_alloc(a, sizeof *t);
        *t = (test_state){ *s, &checks[i], s->number };
        t->subject.runs = &t->runs;
        const char *name = arena_format(a, "%s%s_%s_on_the_%s", s->family->name, words,
                                        checks[i].name, s->device->name);
        test_add(file,
                 (struct CMUnitTest){ .name = name, .test_func = run_check, .initial_state = t },
                 number / step);
    }
}

/* Returns a variable's value, or NULL if it is not set or empty. */
static const char *asked_for(const char *variable)
{
    const char *value = getenv(variable);
    return value && *value ? value : NULL;
}

/* Returns true if a comma-separated list contains a word. */
static bool list_has(const char *list, const char *word)
{
    size_t length = strlen(word);
    for (; list; list = strchr(list, ','), list += list != NULL)
        if (strncmp(list, word, length) == 0 && strchr(",", list[length]))
            return true;
    return false;
}

/* Ends the program with a message if an environment variable names an unknown family or target. */
static void check_names(void)
{
    const char *only = asked_for("PTXGEN_TEST_FAMILY"),
               *of_target = asked_for("PTXGEN_TEST_TARGET");
    size_t named = 0, known = 0;
    for (const char *at = only; at; at = strchr(at, ','), at += at != NULL)
        named++;
    for (const family *const *f = families; *f; f++)
        known += list_has(only, (*f)->name);
    bool no_target = of_target && !target_find(of_target);
    if (known != named)
        print_message(
            "PTXGEN_TEST_FAMILY = %s: %zu of %zu names are not families; see ptxgen --list\n", only,
            named - known, named);
    if (no_target)
        print_message("PTXGEN_TEST_TARGET = %s is not a target; use e.g. sm_90\n", of_target);
    if (known != named || no_target)
        exit(1);
}

enum { DEVICES = 2 };

/* Returns the emulator and the GPU, which are opened once. The GPU's functions are NULL if there is
 * none. */
static device *open_devices(void)
{
    static device devices[DEVICES];
    static arena *kept;
    if (kept)
        return devices;
    check_names();
    kept = arena_new();
    devices[0] = device_emulator(kept);
    const char *only = asked_for("PTXGEN_TEST_DEVICE");
    if (only && strcmp(only, devices[0].name) == 0)
        return devices;
    if (!suite_gpu(kept, &devices[1])) {
        print_message("# no tests on a GPU: %s\n", devices[1].error);
        if (only)
            exit(1);
    }
    return devices;
}

void suite_list(const char *file, suite_texts *texts, size_t step, bool (*fits)(const family *f),
                const suite_check *checks, size_t count)
{
    static arena *kept;
    const char *only = asked_for("PTXGEN_TEST_FAMILY");
    const char *only_device = asked_for("PTXGEN_TEST_DEVICE");
    device *devices = open_devices();
    kept = kept ? kept : arena_new();
    for (device *d = devices; d < devices + DEVICES; d++)
        for (const family *const *f = families; *f; f++) {
            if (!fits(*f) || (only && !list_has(only, (*f)->name)) ||
                (only_device && (!d->name || strcmp(only_device, d->name) != 0)))
                continue;
            const char *weights;
            size_t sharing = formats_sharing(kept, *f);
            for (size_t i = 0; (weights = texts(kept, *f, i)); i++)
                if (i == 0 || test_tier_asked() != TIER_QUICK)
                    add_tests(kept, file,
                              &(subject){ .family = *f,
                                          .weights = weights,
                                          .number = i,
                                          .device = d,
                                          .sharing = sharing,
                                          .shared = sharing == OF_FORMATS },
                              step, (size_t)(f - families), checks, count);
        }
}
