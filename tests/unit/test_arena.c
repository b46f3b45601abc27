#define _POSIX_C_SOURCE 200809L

#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "test_arena.h"
#include "base/arena.h"
#include "base/strbuf.h"

/* A function's request for too much memory, from an arena or from an arena nested in it. */
typedef struct attempt {
    arena *arena;
    int reached; /* 1 before the allocation, 2 after it */
    bool inner_done;
} attempt;

static void want_too_much(void *context)
{
    attempt *t = context;
    t->reached = 1;
    arena_alloc(t->arena, SIZE_MAX);
    t->reached = 2;
}

static void want_little(void *context)
{
    attempt *t = context;
    memset(arena_alloc(t->arena, 100000), 1, 100000);
    t->reached = 2;
}

ARENA_TEST(a_failed_allocation_ends_the_tried_call)
{
    attempt t = { .arena = a };
    char *before = arena_strdup(a, "before");
    assert_false(arena_try(a, want_too_much, &t));
    assert_int_equal(t.reached, 1);
    assert_true(arena_try(a, want_little, &t));
    assert_int_equal(t.reached, 2);
    assert_string_equal(before, "before");
    assert_string_equal(arena_format(a, "%d", 7), "7");
}

TEST(a_nested_arena_fails_like_its_outer_arena)
{
    arena *outer = arena_new(), *middle = arena_new_in(outer);
    attempt t = { .arena = arena_new_in(middle) };
    assert_false(arena_try(outer, want_too_much, &t));
    assert_int_equal(t.reached, 1);
    arena_free(outer); /* frees both nested arenas, too; the sanitizers report leaks */
}

TEST(nested_arenas_are_freed_in_any_order)
{
    arena *outer = arena_new();
    arena *inner[] = { arena_new_in(outer), arena_new_in(outer), arena_new_in(outer) };
    arena_free(inner[1]);
    arena_free(inner[2]);
    arena_strdup(inner[0], "kept");
    inner[1] = arena_new_in(outer);
    arena_free(inner[0]);
    arena_free(outer);
}

static void try_inside(void *context)
{
    attempt *t = context;
    t->inner_done = arena_try(t->arena, want_too_much, t);
    want_too_much(t);
}

TEST(tries_nest)
{
    attempt t = { .arena = arena_new(), .inner_done = true };
    assert_false(arena_try(t.arena, try_inside, &t));
    assert_false(t.inner_done);
    assert_int_equal(t.reached, 1);
    arena_free(t.arena);
}

static void push_one_too_many(void *context)
{
    struct {
        char (*items)[SIZE_MAX / 8];
        size_t count, capacity;
    } list = { 0 };
    attempt *t = context;
    (void)VEC_PUSH(t->arena, &list);
    t->reached = 2;
}

static void reserve_too_much(void *context)
{
    attempt *t = context;
    strbuf s = strbuf_new(t->arena);
    strbuf_put(&s, "text");
    strbuf_reserve(&s, SIZE_MAX - 3);
    t->reached = 2;
}

TEST(arrays_and_strings_fail_like_their_arena)
{
    attempt t = { .arena = arena_new() };
    assert_false(arena_try(t.arena, push_one_too_many, &t));
    assert_false(arena_try(t.arena, reserve_too_much, &t));
    assert_int_equal(t.reached, 0);
    arena_free(t.arena);
}

TEST(an_allocation_that_may_fail_returns_null)
{
    arena *a = arena_try_new(NULL);
    assert_null(arena_try_alloc(a, SIZE_MAX));
    assert_null(arena_try_alloc(a, SIZE_MAX - 15));
    assert_non_null(arena_try_alloc(a, 64));
    arena_free(a);
}

TEST(without_a_try_the_process_ends_with_a_message)
{
    char text[100] = "";
    int ends[2], how;
    assert_int_equal(pipe(ends), 0);
    pid_t child = fork();
    if (child == 0) {
        arena *a = arena_new_in(arena_new());
        dup2(ends[1], STDERR_FILENO);
        if (arena_try(a, want_little, &(attempt){ .arena = a }))
            arena_exhausted(a, 17);
        _exit(1);
    }
    close(ends[1]);
    assert_true(read(ends[0], text, sizeof text - 1) > 0);
    close(ends[0]);
    assert_int_equal(waitpid(child, &how, 0), child);
    assert_true(WIFEXITED(how));
    assert_int_equal(WEXITSTATUS(how), 3);
    assert_string_equal(text, "ptxgen: out of memory (17 bytes requested)\n");
}
