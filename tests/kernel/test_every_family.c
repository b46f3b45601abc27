/* The tier quick: every family once in every format that it accepts, compared with its reference.
 * On a GPU this takes seconds and runs the code of each format. Other files vary sizes, options and
 * inputs. A family's formats are the words of its keys weights, kv_type, type and out. */
#include <string.h>

#include "test_arena.h"
#include "kernel/suite.h"

static const char *const format_keys[] = { "weights", "kv_type", "type", "out" };
enum { FORMAT_KEYS = sizeof format_keys / sizeof *format_keys };

/* Returns the i-th choice that a key accepts, or NULL after the last. */
static const choice *accepted_choice(const key *k, size_t i)
{
    for (const choice *c = k->choices; c->word; c++)
        if (key_takes_choice(k, c) && i-- == 0)
            return c;
    return NULL;
}

static size_t accepted_count(const key *k)
{
    size_t count = 0;
    while (accepted_choice(k, count))
        count++;
    return count;
}

/* Returns the text that sets a family's formats in case i, such as "weights=q4_k kv_type=f16 ", or
 * NULL after the last case. The number of cases is the length of the longest list of words; shorter
 * lists repeat. The lists start at different words, so that types differ within a case. */
static const char *formats_of_case(arena *a, const family *f, size_t i)
{
    strbuf text = strbuf_new(a);
    size_t cases = 1;
    for (size_t j = 0; j < FORMAT_KEYS; j++) {
        const key *k = family_key(f, format_keys[j]);
        size_t count = k ? accepted_count(k) : 0;
        cases = count > cases ? count : cases;
        if (k)
            strbuf_format(&text, "%s=%s ", k->name, accepted_choice(k, (i + j) % count)->word);
    }
    return i < cases ? text.text : NULL;
}

/* Returns "KEY=VALUE " with the smallest accepted value that is at least `value`, or "" if the
 * family has no such key. */
static const char *size_of(arena *a, const family *f, const char *said, const char *name,
                           int64_t value)
{
    const key *k = family_key(f, name);
    if (!k)
        return "";
    int64_t multiple = suite_multiple(a, f, said, k);
    value = value > k->min ? value : k->min;
    return arena_format(a, "%s=%lld ", name,
                        (long long)((value + multiple - 1) / multiple * multiple));
}

/* Makes the instance of a case: several blocks, several loop iterations, and a remainder where the
 * family allows one. Every second case also has the family's prologue and epilogue options. */
static bool make_case(arena *a, const family *f, const char *said, bool adds, instance *in)
{
    enum { ROWS = 3, ROWS_OF_TILES = 20, K = 1280, N = 33, WIDTH = 128 };
    bool tiles = f->halves || f->by_runs;
    strbuf text = strbuf_new(a);
    strbuf_put(&text, said);
    strbuf_put(&text, size_of(a, f, said, "m", tiles ? ROWS_OF_TILES : ROWS));
    strbuf_put(&text, size_of(a, f, said, "k", K));
    strbuf_put(&text, size_of(a, f, said, "n", N));
    strbuf_put(&text, size_of(a, f, said, "latent", WIDTH));
    strbuf_put(&text, size_of(a, f, said, "nope", WIDTH));
    strbuf_put(&text,
               "head_dim=64 num_heads=8 num_kv_heads=2 max_seq_len=300 chunk_size=32 n_rope=32 "
               "value_dim=33 n_kv=17 experts=7 experts_used=3 ");
    if (adds)
        strbuf_put(&text, "norm=rms bias=add residual=add qk_norm=rms k_norm=rms sinks=add ");
    return suite_instance(a, f, suite_known_keys(a, f, text.text), in);
}

static void is_right(arena *a, const subject *s)
{
    instance in;
    if (!make_case(a, s->family, s->weights, s->number % 2, &in))
        fail_msg("%s does not accept '%s'", s->family->name, s->weights);
    trial t = suite_trial(a, &in, s->device);
    expect_trial_right(a, s->device, &in, &t);
}

/* Returns the number of a family's cases that set a key to a word. NULL counts all cases. */
static size_t cases_with(arena *a, const family *f, const char *name, const char *word)
{
    size_t count = 0;
    const char *text, *wanted = word ? arena_format(a, "%s=%s ", name, word) : "";
    for (size_t i = 0; (text = formats_of_case(a, f, i)); i++)
        count += (strncmp(text, wanted, strlen(wanted)) == 0 ||
                  strstr(text, arena_format(a, " %s", wanted)));
    return count;
}

ARENA_TEST(every_family_has_a_case_for_each_of_its_formats)
{
    for (const family *const *f = families; *f; f++) {
        size_t cases = cases_with(a, *f, NULL, NULL), most = 1;
        const char *text;
        for (size_t i = 0; (text = formats_of_case(a, *f, i)); i++) {
            instance in;
            assert_true(make_case(a, *f, text, i % 2, &in));
        }
        for (const key *k = (*f)->keys; k->name; k++) {
            size_t words = 0;
            bool names_format = k->choices == weights_choices || k->choices == kv_type_choices ||
                                k->choices == out_choices;
            /* Further matrices have the first one's format by default. */
            if (!names_format || strncmp(k->name, "weights_", 8) == 0)
                continue;
            for (const choice *c = k->choices; c->word; c++)
                if (key_takes_choice(k, c) && ++words && !cases_with(a, *f, k->name, c->word))
                    fail_msg("%s has no case with %s = %s", (*f)->name, k->name, c->word);
            most = words > most ? words : most;
        }
        if (cases != most)
            fail_msg("%s has %zu cases, expected %zu", (*f)->name, cases, most);
    }
}

static bool is_any(const family *f)
{
    (void)f;
    return true;
}

LIST_TESTS
{
    static const suite_check check = { "is_right", is_right, NULL, false };
    suite_list(__FILE__, formats_of_case, EACH, is_any, &check, 1);
}
