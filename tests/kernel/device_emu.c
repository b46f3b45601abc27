#include "kernel/device.h"

#include <string.h>

#include "emu/emu.h"

enum { KEPT = 64 };

/* A module that has been parsed, and its text: tests launch the same kernel many times. */
typedef struct kept_module {
    arena *arena; /* NULL: none yet */
    const emu_module *module;
    const char *text;
    size_t length;
} kept_module;

typedef struct emulator {
    arena *owner; /* with which it goes, if it is not closed */
    arena *arena;
    emu_memory *memory;
    const emu_module *module;
    emu_stats stats;
    kept_module kept[KEPT];
    unsigned next; /* of these, the one that has been there longest */
} emulator;

static bool fail(arena *a, const emu_report *r, const char **error)
{
    *error = arena_format(a, "%s: %s (PTX line %u, block %u, thread %u)", emu_fault_name(r->fault),
                          r->message, r->line, r->block[0], r->thread[0]);
    return false;
}

static bool alloc(void *state, size_t size, uint64_t *address, const char **error)
{
    emulator *e = state;
    (void)error;
    *address = emu_alloc(e->memory, size);
    return true;
}

static bool copy_in(void *state, const void *bytes, size_t size, bool read_only, uint64_t *address,
                    const char **error)
{
    emulator *e = state;
    (void)error;
    *address = emu_map(e->memory, arena_copy(e->arena, bytes, size), size, read_only);
    return true;
}

static bool copy_out(void *state, uint64_t address, void *bytes, size_t blocks, size_t block_bytes,
                     uint8_t *written, const char **error)
{
    emulator *e = state;
    (void)error;
    for (size_t i = 0; i < blocks; i++) {
        uint64_t at = address + i * block_bytes;
        written[i] = emu_written(e->memory, at, block_bytes);
        if (written[i])
            emu_read(e->memory, at, (char *)bytes + i * block_bytes, block_bytes);
    }
    return true;
}

static bool load(void *state, const char *ptx, size_t length, const char **error)
{
    emulator *e = state;
    emu_report report;
    for (kept_module *k = e->kept; k < e->kept + KEPT; k++)
        if (k->length == length && k->module && memcmp(k->text, ptx, length) == 0) {
            e->module = k->module;
            return true;
        }
    kept_module *k = &e->kept[e->next];
    if (k->arena)
        arena_reset(k->arena);
    else
        k->arena = arena_new_in(e->owner);
    k->module = NULL;
    k->text = arena_copy(k->arena, ptx, k->length = length);
    e->module = k->module = emu_load(k->arena, ptx, length, &report);
    if (!e->module)
        return fail(e->arena, &report, error);
    e->next = (e->next + 1) % KEPT;
    return true;
}

static bool launch(void *state, const device_launch *l, const char **error)
{
    emulator *e = state;
    emu_report report;
    e->stats = (emu_stats){ 0 };
    emu_launch_config config = {
        .module = e->module,
        .entry = l->entry,
        .grid = { l->grid[0], l->grid[1], l->grid[2] },
        .block = { l->block, 1, 1 },
        .dynamic_shared = l->dynamic_shared,
        .params = l->params,
        .param_count = l->param_count,
    };
    return emu_launch(e->memory, &config, &e->stats, &report) || fail(e->arena, &report, error);
}

static void reset(void *state)
{
    emulator *e = state;
    emu_memory_free(e->memory);
    e->memory = emu_memory_new_in(e->owner);
    e->module = NULL;
    arena_reset(e->arena);
}

static void close_emulator(void *state)
{
    emulator *e = state;
    emu_memory_free(e->memory);
    arena_free(e->arena);
    for (unsigned i = 0; i < KEPT && e->kept[i].arena; i++)
        arena_free(e->kept[i].arena);
}

bool device_open_emulator(arena *a, device *d, const char **why)
{
    (void)why;
    emulator *e = arena_alloc(a, sizeof *e);
    *e = (emulator){ .owner = a, .arena = arena_new_in(a), .memory = emu_memory_new_in(a) };
    *d = (device){
        .name = "emulator",
        .state = e,
        .sm = 90,
        .sm_count = 1,
        .stats = &e->stats,
        .alloc = alloc,
        .copy_in = copy_in,
        .copy_out = copy_out,
        .load = load,
        .launch = launch,
        .reset = reset,
        .close = close_emulator,
    };
    return true;
}
