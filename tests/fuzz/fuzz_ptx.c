/* Any bytes as PTX text: the result must be a located error, or a module whose entries end or fault
 * with a report.
 *
 * Small requests of a kernel are met: 8-byte parameters are buffer addresses, 4-byte parameters a
 * size that every generated kernel accepts. */
#include <assert.h>
#include <string.h>

#include "emu/emu.h"
#include "tests/fuzz/fuzz.h"

enum {
    BUFFER_BYTES = 64 * 1024,
    SIZE_PARAM = 256,
    DYNAMIC_SHARED = 4096,
    MAX_LOCAL = 64 * 1024 * 1024, /* bytes per block; more would only take time */
    THREADS = 40,                 /* a full warp and a partial warp, unless the kernel sets a
                                     size */
    INSTRUCTIONS = 1 << 15,
};

static unsigned line_count(const uint8_t *text, size_t size)
{
    unsigned lines = 1;
    for (size_t i = 0; i < size; i++)
        lines += text[i] == '\n';
    return lines;
}

static void check_report(const emu_report *r, unsigned lines)
{
    assert(r->message && *r->message);
    assert(*emu_fault_name(r->fault));
    assert(r->line <= lines);
    assert(r->line || r->fault == EMU_BAD_LAUNCH);
}

/* Returns a buffer. The kinds alternate: uninitialized, read-only, and a repeated pattern. */
static uint64_t make_buffer(emu_memory *memory, size_t which, uint8_t *bytes)
{
    switch (which % 3) {
    case 0:
        return emu_alloc(memory, BUFFER_BYTES);
    case 1:
        return emu_map(memory, bytes, BUFFER_BYTES, true);
    default:
        return emu_map_pattern(memory, UINT64_C(1) << 33, bytes, BUFFER_BYTES, false);
    }
}

static const void **make_params(arena *a, emu_memory *memory, const emu_module *module,
                                const char *entry, size_t count)
{
    const void **params = arena_alloc(a, (count + 1) * sizeof *params);
    uint8_t *bytes = arena_alloc(a, BUFFER_BYTES);
    for (size_t i = 0; i < BUFFER_BYTES; i++)
        bytes[i] = (uint8_t)(i % 61);
    for (size_t i = 0; i < count; i++) {
        size_t offset, size = 0;
        bool known = emu_param(module, entry, i, &offset, &size);
        assert(known && size);
        uint64_t value = size == sizeof value ? make_buffer(memory, i, bytes) : SIZE_PARAM;
        uint8_t *param = arena_zalloc(a, size > sizeof value ? size : sizeof value);
        memcpy(param, &value, sizeof value);
        params[i] = param;
    }
    return params;
}

static void pass_over(void *context, const emu_launch_config *launch, const emu_report *report)
{
    (void)context, (void)launch;
    assert(report->fault && *report->message);
}

static void print(void *context, const char *text, size_t length)
{
    (void)context;
    assert(text || !length);
}

/* Checks that warn instead of stopping the kernel. */
static const emu_checks lenient = {
    .actions = { [EMU_CHECK_RACE] = EMU_WARNS,
                 [EMU_CHECK_UNINIT] = EMU_WARNS,
                 [EMU_CHECK_UNDEFINED] = EMU_WARNS,
                 [EMU_CHECK_LANES] = EMU_WARNS,
                 [EMU_CHECK_BARRIER] = EMU_WARNS },
    .carries = true,
    .warn = pass_over,
};

static void launch(const emu_module *module, const char *entry, unsigned lines, bool strict)
{
    emu_entry_info info;
    bool known = emu_entry(module, entry, &info);
    assert(known);
    emu_launch_config config = { .module = module,
                                 .entry = entry,
                                 .grid = { 2, 1, 1 },
                                 .block = { THREADS, 1, 1 },
                                 .dynamic_shared = DYNAMIC_SHARED,
                                 .checks = strict ? NULL : &lenient,
                                 .print = print,
                                 .param_count = info.param_count,
                                 .instruction_limit = INSTRUCTIONS };
    if (info.reqntid[0])
        memcpy(config.block, info.reqntid, sizeof config.block);
    uint64_t threads = (uint64_t)config.block[0] * config.block[1] * config.block[2];
    if (threads * info.local_bytes > MAX_LOCAL)
        return;

    arena *a = arena_new();
    emu_memory *memory = emu_memory_new(NULL);
    emu_stats stats = { 0 };
    emu_report report;
    config.params = make_params(a, memory, module, entry, info.param_count);
    bool good = emu_launch(memory, &config, &stats, &report);
    assert(good == (report.fault == EMU_OK));
    if (!good)
        check_report(&report, lines);
    emu_memory_free(memory);
    arena_free(a);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    arena *a = arena_new();
    emu_report report;
    unsigned lines = line_count(data, size);
    emu_module *module = size % 2 ? emu_load(a, (const char *)data, size, &report)
                                  : emu_load_any(a, (const char *)data, size, &report);
    assert(!module == (report.fault == EMU_SYNTAX));
    if (!module)
        check_report(&report, lines);
    const char *entry;
    for (size_t i = 0; module && (entry = emu_entry_name(module, i)); i++)
        launch(module, entry, lines, size / 2 % 2);
    arena_free(a);
    return 0;
}
