/* Tests of --verify for steps whose kernels may overlap. They insert
 * griddepcontrol.launch_dependents and griddepcontrol.wait into generated kernels of small models,
 * at right and at wrong places. */
#include <string.h>

#include "base/strbuf.h"
#include "test_arena.h"
#include "verify_sample.h"

#define TRIGGER "griddepcontrol.launch_dependents;\n"
#define WAIT    "griddepcontrol.wait;\n"

static const char llama[] = HEAD SMALL "layers = 2\nmax_seq_len = 64\nweights = q8_0\n";
static const char small[] = HEAD SMALL "layers = 1\nmax_seq_len = 32\nweights = q8_0\n";
static const char wide[] = HEAD "hidden = 2048\nff = 66048\nnum_heads = 4\nnum_kv_heads = 2\n"
                                "head_dim = 64\nvocab = 96\nlayers = 1\nmax_seq_len = 32\n"
                                "weights = q4_k\nm = 1\n";
static const char gemma[] =
    HEAD SMALL "layers = 2\nmax_seq_len = 128\nweights = q4_1\nrope = neox\nwindow = 40\n"
               "window_layers = 0\nnorms = attn_q_norm, attn_k_norm, post_attention_norm, "
               "post_ffw_norm\nkv_type = q8_0\n";

/* Returns the text with every occurrence of word replaced. */
static const char *replace_all(arena *a, const char *text, const char *word, const char *by)
{
    strbuf changed = strbuf_new(a);
    const char *found;
    while ((found = strstr(text, word))) {
        strbuf_format(&changed, "%.*s%s", (int)(found - text), text, by);
        text = found + strlen(word);
    }
    strbuf_put(&changed, text);
    return changed.text;
}

/* Returns the text with a line inserted at `at`. */
static const char *insert(arena *a, const char *text, const char *at, const char *line)
{
    return arena_format(a, "%.*s%s%s", (int)(at - text), text, line, at);
}

/* Returns the first instruction of a kernel. */
static const char *body_of(const char *text)
{
    const char *line = strstr(text, "\n{\n") + 3;
    while (line[strspn(line, " ")] == '.' || *line == '\n')
        line = strchr(line, '\n') + 1;
    return line;
}

/* Returns the line after the first occurrence of word. */
static const char *line_after(const char *text, const char *word)
{
    const char *found = strstr(text, word);
    assert_non_null(found);
    return strchr(found, '\n') + 1;
}

static void set_text(kernel *k, const char *text)
{
    k->ptx = text;
    k->ptx_length = strlen(text);
}

/* Makes a plan whose kernels are all correct with overlap: each waits before it loads what a
 * preceding launch may store. */
static void make_dependent(arena *a, const char *text_of_spec, made *m)
{
    make(a, text_of_spec, m);
    for (size_t i = 0; i < m->set.kernel_count; i++) {
        const char *text = replace_all(a, m->set.kernels[i].ptx, ".target sm_80", ".target sm_90");
        text = replace_all(a, text, ".global.nc", ".global");
        set_text(&m->set.kernels[i], insert(a, text, body_of(text), TRIGGER WAIT));
    }
}

static step_result run_orders(arena *a, const made *m, unsigned orders)
{
    return verify_step(a, &m->plan, m->set.targets, m->set.target_count, m->set.kernels,
                       m->set.kernel_count, 1, orders, 1);
}

static void assert_right(arena *a, const made *m, unsigned orders)
{
    step_result r = run_orders(a, m, orders);
    if (!r.right)
        fail_msg("%s", r.message);
}

ARENA_TEST(steps_with_windows_and_norms_are_equal_in_some_orders)
{
    made m;
    make_dependent(a, gemma, &m);
    assert_right(a, &m, 10);
}

ARENA_TEST(steps_are_equal_in_a_hundred_orders)
{
    made m;
    make_dependent(a, small, &m);
    assert_right(a, &m, test_takes_row(1, EACH) ? 100 : 10);
}

/* Moves the wait of kernels whose names begin with name to the line after the first occurrence of
 * word. NULL removes the wait. */
static void move_wait(arena *a, made *m, const char *name, const char *word)
{
    size_t count = 0;
    for (size_t i = 0; i < m->set.kernel_count; i++) {
        kernel *k = &m->set.kernels[i];
        if (strncmp(k->instance->name, name, strlen(name)) != 0)
            continue;
        const char *text = replace_all(a, k->ptx, WAIT, "");
        set_text(k, word ? insert(a, text, line_after(text, word), WAIT) : text);
        count++;
    }
    assert_true(count > 0);
}

/* Checks that the race is reported for every number of orders except 0. */
static void assert_race(arena *a, const made *m, const char *const *words)
{
    assert_right(a, m, 0);
    step_result r = run_orders(a, m, 1);
    assert_false(r.right);
    for (; *words; words++)
        if (!strstr(r.message, *words))
            fail_msg("'%s' is not in '%s'", *words, r.message);
}

#define NO_WAIT "may not have finished: no griddepcontrol.wait precedes the access [race]"

ARENA_TEST(a_kernel_of_a_step_that_does_not_wait_is_found)
{
    made m;
    make_dependent(a, llama, &m);
    move_wait(a, &m, "gqa_flash_decoding", NULL);
    assert_race(a, &m,
                (const char *[]){ "step of 1 token from the first position on, ",
                                  "race between launches: 'stream_gemv", " loads byte ",
                                  " of 'h' at line ", "; 'embed_rows", "4 launches before it",
                                  "covers launches up to 'gqa_flash_decoding",
                                  "which ends without waiting [race]", NULL });
}

ARENA_TEST(a_wait_after_staging_is_found)
{
    made m;
    make_dependent(a, llama, &m);
    move_wait(a, &m, "stream_gate_up", "bar.sync");
    assert_race(a, &m,
                (const char *[]){ "race between launches: 'stream_gate_up", " loads byte ",
                                  " of 'middle' at line ", " before it, stores it at line ",
                                  NO_WAIT, NULL });
}

/* Only a few blocks of a large product are run. */
ARENA_TEST(a_large_product_that_does_not_wait_is_found)
{
    made m;
    make_dependent(a, wide, &m);
    assert_right(a, &m, 1);
    move_wait(a, &m, "stream_gate_up", "bar.sync");
    assert_race(a, &m,
                (const char *[]){ "race between launches: 'stream_gate_up", " loads byte ",
                                  " before it, stores it at line ", NO_WAIT, NULL });
}

/* The position is stored by the preceding step, three launches earlier. */
ARENA_TEST(a_state_read_before_the_wait_races_with_the_preceding_step)
{
    made m;
    make_dependent(a, llama, &m);
    move_wait(a, &m, "rope_kv_write", "ld.global");
    assert_race(a, &m,
                (const char *[]){ "race between launches: 'rope_kv_write", " loads byte ",
                                  " of 'positions'", "; 'sample", "3 launches before it", NO_WAIT,
                                  NULL });
}

/* ld.global.nc, as in kernels for targets without dependent launches. */
ARENA_TEST(ld_nc_is_found)
{
    made m;
    make_dependent(a, llama, &m);
    for (size_t i = 0; i < m.set.kernel_count; i++)
        if (strncmp(m.set.kernels[i].instance->name, "stream_qkv", 10) == 0)
            set_text(&m.set.kernels[i],
                     replace_all(a, m.set.kernels[i].ptx, "ld.global.", "ld.global.nc."));
    assert_race(a, &m,
                (const char *[]){ "race between launches: 'stream_qkv", " of 'h'",
                                  "a non-coherent load (.nc)", NULL });
}
