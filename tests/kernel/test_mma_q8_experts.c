/* Experts on int8 tensor cores: a choice has the bits of mma_q8 with its expert's matrix, for any m,
 * tile, passes and grid. Faults in row indices, matrices and tiles are found. */
#include <string.h>

#include "test_arena.h"
#include "kernel/planted.h"

enum { K = 1312, N = 37, EXPERTS = 9, USED = 3, SM_COUNT = 3 };

static bool is_of_int8_experts(const family *f)
{
    return strncmp(f->name, "mma_q8_expert", strlen("mma_q8_expert")) == 0;
}

static bool is_of_int8_products(const family *f)
{
    return is_of_int8_experts(f) && f->op == OP_EXPERT_PRODUCT;
}

static launched *prepare(arena *a, const subject *s, const char *keys)
{
    launched *l = suite_launched(a, s->family->name, arena_format(a, "%s%s", s->weights, keys));
    trial_setup setup = { .shape = l->in.shape, .sm_count = SM_COUNT, .seed = 5 };
    l->trial = trial_prepare(a, &l->in, &setup);
    return l;
}

/* Returns a copy of y, since the device's buffer is valid only until the next launch. */
static const char *run(arena *a, const subject *s, const launched *l)
{
    const void *y;
    const uint8_t *written;
    expect_right(suite_launch(a, s->device, &l->kernel, &l->trial, &y, &written));
    return memcpy(arena_alloc(a, l->trial.params[0].size), y, l->trial.params[0].size);
}

/* The trials have the same inputs. */
static void any_tile_gives_the_same_bits(arena *a, const subject *s)
{
    static const char *const others[] = { "tile=1",           "tile=3 passes=2", "tile=8",
                                          "tile=17 passes=1", "tile=32",         "passes=3" };
    const char *shape = suite_known_keys(
        a, s->family, "k=1280 n=37 plane_rows=74 experts=5 experts_used=3 m=33 bias=add");
    launched *all = prepare(a, s, shape);
    const char *y = run(a, s, all);
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        launched *l = prepare(a, s, arena_format(a, "%s %s", shape, others[i]));
        l->trial.grid[0] = 1 + (unsigned)i;
        expect_same_bits(all->in.name, others[i], run(a, s, l), y, l->trial.params[0].size);
    }
}

/* Copies an input, or its part number `part` of `size` bytes. */
static void put_part(trial *t, const char *name, const void *from, uint64_t part, uint64_t size)
{
    memcpy(suite_param(t, name)->content.bytes, (const char *)from + part * size, size);
}

static void choices_have_the_bits_of_one_matrix(arena *a, const subject *s)
{
    enum { M = 9 };
    int64_t multiple = suite_multiple(a, s->family, s->weights, family_key(s->family, "k"));
    launched *all =
        prepare(a, s,
                arena_format(a, "k=%lld n=%d experts=%d experts_used=%d m=%d",
                             (long long)(K / multiple * multiple), N, EXPERTS, USED, M));
    const char *y = run(a, s, all);
    trial *t = &all->trial;
    instance in = suite_made(a, family_find(families, "mma_q8"), "%sk=%lld n=%d m=1", s->weights,
                             (long long)all->in.shape.k, N);
    kernel one = suite_kernel(a, &in);
    trial alone = suite_rows(a, &in, 1);
    const uint32_t *list = suite_param(t, "list")->content.bytes, *entry = list + EXPERT_LIST_HEAD;
    for (uint32_t e = 0; e < list[0]; e++, entry += EXPERT_FIRST_ROW + M) {
        if (entry[EXPERT_ID] >= EXPERTS)
            continue;
        put_part(&alone, "w", suite_param(t, "w")->content.bytes, entry[EXPERT_ID],
                 alone.params[1].size);
        for (uint32_t i = 0; i < entry[EXPERT_ROWS]; i += 2) {
            uint32_t word = entry[EXPERT_FIRST_ROW + i];
            const void *expected;
            const uint8_t *written;
            put_part(&alone, "x", suite_param(t, "x")->content.bytes, word,
                     suite_param(&alone, "x")->size);
            put_part(&alone, "factors", suite_param(t, "factors")->content.bytes, word, F32_BYTES);
            expect_right(suite_launch(a, s->device, &one, &alone, &expected, &written));
            expect_same_bits(all->in.name, arena_format(a, "choice %u", word),
                             y + word * alone.params[0].size, expected, alone.params[0].size);
        }
    }
}

static const char *const families_of_experts[] = { "mma_q8_expert_gate_up", "mma_q8_expert_down" };

/* Loads of the list, in order: the number of entries, an entry's expert, its number of rows, then a
 * row's factor, its values and, after those of x and W, its place in the result. */
ARENA_TEST(faults_of_experts_are_found)
{
    enum { OF_FACTOR = 4, OF_VALUES = 5, OF_RESULT = 25 };
    const char *text = "weights=q4_k k=512 n=20 experts=5 experts_used=3 m=20 tile=16";
    instance in;
    kernel k = suite_kernel_of(a, *families_of_experts, text, &in);
    bool waits =
        !strstr(k.ptx, "ld.global.nc.u32"); /* the launch before may still write the list */
    const char *load = waits ? "ld.global.u32" : "ld.global.nc.u32";
    const line_edit faults[] = {
        { load, "", OF_FACTOR, "mov.u32 $1, 0;" },
        { load, "", OF_VALUES, "mov.u32 $1, 0;" },
        { load, "", OF_RESULT, "mov.u32 $1, 0;" },
        { "mul.lo.u32", ", 20;", 1, "mov.u32 $1, 0;" },          /* the expert's first row */
        { "setp.lt.u32", ", 5;", 1, "setp.ge.u32 $1, $2, 0;" },  /* an id out of range */
        { "min.u32", ", 16;", 1, "min.u32 $1, $2, 8;" },         /* rows at once */
        { "setp.gt.u32", ", 8;", 1, "setp.gt.u32 $1, $2, 16;" }, /* the second tile exists */
        { "setp.gt.u32", ", 8;", 5, "setp.gt.u32 $1, $2, 16;" },
        { "bar.sync", "", 1, "" },
        { "bar.sync", "", 2, "" },
        { "bar.sync", "", 3, "" },
    };
    for (size_t i = 0; i < sizeof families_of_experts / sizeof *families_of_experts; i++)
        expect_edits_found(a, families_of_experts[i], text, faults, sizeof faults / sizeof *faults);
}

LIST_TESTS
{
    enum { ONE_FORMAT_IN = 9 }; /* formats share the code under test */
    static const suite_check checks[] = {
        CHECK(any_tile_gives_the_same_bits),
    };
    static const suite_check of_products[] = { CHECK(choices_have_the_bits_of_one_matrix) };
    suite_list(__FILE__, suite_weights, ONE_FORMAT_IN, is_of_int8_experts, checks,
               sizeof checks / sizeof *checks);
    suite_list(__FILE__, suite_weights, 2, is_of_int8_products, of_products, 1);
}
