#include "check/device.h"

#include <string.h>

enum { KEPT = 64 };

/* A parsed module and its text, cached since tests launch the same kernel many times. */
typedef struct kept_module {
    arena *arena; /* NULL for an empty slot */
    const emu_module *module;
    const char *text;
    size_t length;
} kept_module;

typedef struct emulator {
    kept_module kept[KEPT];
    unsigned next; /* index of the oldest slot */
} emulator;

static bool report_error(device *d, bool done)
{
    const emu_report *r = &d->report;
    if (!done)
        d->error =
            arena_format(d->arena, "%s: %s (PTX line %u, block %u, thread %u)",
                         emu_fault_name(r->fault), r->message, r->line, r->block[0], r->thread[0]);
    return done;
}

static bool alloc(device *d, uint64_t size, bool sparse, uint64_t *address)
{
    *address = sparse ? emu_alloc_sparse(d->memory, size) : emu_alloc(d->memory, size);
    return true;
}

static bool map(device *d, const device_buffer *b, bool read_only, uint64_t *address)
{
    uint64_t stored = b->stored == b->size ? b->readable : b->stored;
    *address = read_only && stored == b->readable
                   ? emu_map(d->memory, b->bytes, stored, true)
                   : emu_map_pattern(d->memory, b->readable, b->bytes, stored, read_only);
    return true;
}

static bool put(device *d, uint64_t address, const void *bytes, uint64_t size)
{
    if (bytes)
        emu_write(d->memory, address, bytes, size);
    emu_clear_written(d->memory, address);
    return true;
}

/* fast path: all blocks are usually written */
static bool read(device *d, uint64_t address, void *bytes, uint64_t count, size_t block_bytes,
                 uint8_t *written)
{
    if (!written || emu_written(d->memory, address, count * block_bytes)) {
        if (written)
            memset(written, 1, count);
        return emu_read(d->memory, address, bytes, count * block_bytes);
    }
    for (uint64_t i = 0; i < count; i++, address += block_bytes) {
        written[i] = emu_written(d->memory, address, block_bytes);
        if (written[i])
            emu_read(d->memory, address, (char *)bytes + i * block_bytes, block_bytes);
    }
    return true;
}

static const void *load(device *d, const char *ptx, size_t length)
{
    emulator *e = d->state;
    if (!e)
        e = d->state = arena_zalloc(d->arena, sizeof *e);
    for (kept_module *k = e->kept; k < e->kept + KEPT; k++)
        if (k->length == length && k->module && memcmp(k->text, ptx, length) == 0)
            return k->module;
    kept_module *k = &e->kept[e->next];
    if (k->arena)
        arena_reset(k->arena);
    else
        k->arena = arena_new_in(d->arena);
    k->text = arena_copy(k->arena, ptx, k->length = length);
    k->module = emu_load(k->arena, ptx, length, &d->report);
    e->next = (e->next + (k->module != NULL)) % KEPT;
    report_error(d, k->module);
    return k->module;
}

emu_launch_config device_emu_config(const device_launch *l)
{
    return (emu_launch_config){
        .module = l->module,
        .entry = l->entry,
        .grid = { l->grid[0], l->grid[1], l->grid[2] },
        .block = { l->block, 1, 1 },
        .dynamic_shared = l->dynamic_shared,
        .params = l->params,
        .param_count = l->param_count,
        .blocks = l->blocks,
        .block_count = l->block_count,
        .descending = l->descending,
        .no_race_check = l->no_race_check,
        .instruction_limit = l->instruction_limit,
        .watch = l->watch,
        .threads = l->threads,
        .speculated_blocks = l->speculated_blocks,
    };
}

static bool launch(device *d, const device_launch *l)
{
    const emu_launch_config config = device_emu_config(l);
    d->stats = (emu_stats){ 0 };
    return report_error(d, emu_launch(d->memory, &config, &d->stats, &d->report));
}

static void reset(device *d)
{
    emu_memory_free(d->memory);
    d->memory = emu_memory_new(d->arena);
}

static void close_emulator(device *d)
{
    emulator *e = d->state;
    emu_memory_free(d->memory);
    for (unsigned i = 0; e && i < KEPT && e->kept[i].arena; i++)
        arena_free(e->kept[i].arena);
}

device device_emulator(arena *a)
{
    return (device){
        .name = "emulator",
        .arena = a,
        .sm = 90,
        .sm_count = 1,
        .memory = emu_memory_new(a),
        .alloc = alloc,
        .map = map,
        .put = put,
        .read = read,
        .load = load,
        .launch = launch,
        .reset = reset,
        .close = close_emulator,
    };
}
