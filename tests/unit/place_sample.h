/* PLACE_TEST(name) { … } defines a test that gets a temporary folder as p. */
#ifndef PTXGEN_TESTS_PLACE_SAMPLE_H
#define PTXGEN_TESTS_PLACE_SAMPLE_H

#include "test.h"
#include "base/diag.h"
#include "base/os.h"

typedef struct place {
    arena *arena;
    const char *folder;
    diags problems;
} place;

static inline int make_place(void **state)
{
    arena *a = arena_new();
    place *p = arena_zalloc(a, sizeof *p);
    const char *error;
    p->arena = a;
    p->problems = diags_new(a);
    *state = p;
    return os_temporary_directory(a, &p->folder, &error) ? 0 : -1;
}

static inline int remove_place(void **state)
{
    place *p = *state;
    os_remove_directory(p->arena, p->folder);
    assert_false(os_exists(p->folder));
    arena_free(p->arena);
    return 0;
}

#define PLACE_TEST(name) TEST_OF(name, make_place, remove_place, place *p)

static inline const char *path_of(place *p, const char *name)
{
    return arena_format(p->arena, "%s/%s", p->folder, name);
}

#endif
