#include "kernel/target.h"

#include <string.h>

enum {
    REGISTER_UNIT = 8,      /* allocation unit of registers per thread */
    SM_PARTS = 4,           /* partitions of an SM, each with its own registers */
    SHARED_UNIT = 128,      /* allocation unit of shared memory from sm_80 on */
    SHARED_RESERVED = 1024, /* bytes per block reserved for the system, from sm_80 on */
    SHARED_RESERVED_FROM = 80,
    KIB = 1024
};

const target targets[] = {
    { "sm_75", 75, 63, 48 * KIB, 64 * KIB, 64 * KIB, 32, 16, 81, 80 * KIB, false, "RTX 20" },
    { "sm_80", 80, 70, 48 * KIB, 163 * KIB, 164 * KIB, 64, 32, 100, 379 * KIB, false, "A100" },
    { "sm_86", 86, 71, 48 * KIB, 99 * KIB, 100 * KIB, 48, 16, 100, 73 * KIB, false, "RTX 30" },
    { "sm_87", 87, 74, 48 * KIB, 163 * KIB, 164 * KIB, 48, 16, 100, 256 * KIB, false,
      "Jetson Orin" },
    { "sm_89", 89, 78, 48 * KIB, 99 * KIB, 100 * KIB, 48, 24, 100, 576 * KIB, false, "RTX 40" },
    { "sm_90", 90, 78, 48 * KIB, 227 * KIB, 228 * KIB, 64, 32, 100, 387 * KIB, false, "H100" },
    { "sm_90a", 90, 80, 48 * KIB, 227 * KIB, 228 * KIB, 64, 32, 100, 387 * KIB, true, "H100" },
    { "sm_100", 100, 86, 48 * KIB, 227 * KIB, 228 * KIB, 64, 32, 100, 871 * KIB, false, "B200" },
    { "sm_103", 103, 88, 48 * KIB, 227 * KIB, 228 * KIB, 64, 32, 100, 871 * KIB, false, "B300" },
    { "sm_110", 110, 90, 48 * KIB, 227 * KIB, 228 * KIB, 48, 24, 100, 1638 * KIB, false,
      "Jetson Thor" },
    { "sm_120", 120, 87, 48 * KIB, 99 * KIB, 100 * KIB, 48, 24, 100, 578 * KIB, false, "RTX 50" },
    { "sm_121", 121, 88, 48 * KIB, 99 * KIB, 100 * KIB, 48, 24, 100, 512 * KIB, false,
      "DGX Spark" },
};

const size_t target_count = sizeof targets / sizeof *targets;

static const gpu_part parts[] = {
    { "T4", 75, 40, 1590, 320, 512, 0, 1024 },
    { "A100 SXM", 80, 108, 1410, 2039, 1024, 0, 2048 },
    { "RTX 3090", 86, 82, 1695, 936, 256, 0, 1024 },
    { "RTX 4090", 89, 128, 2520, 1008, 256, 0, 1024 },
    { "H200 SXM", 90, 132, 1980, 4800, 1024, 2048, 2048 },
    { "B200", 100, 148, 1965, 7672, 1024, 0, 2048 },
    { "RTX 5090", 120, 170, 2407, 1792, 256, 0, 1024 },
};

const gpu_part *target_part(const target *t)
{
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        if (parts[i].sm == t->sm)
            return &parts[i];
    return NULL;
}

const target *target_find(const char *name)
{
    for (size_t i = 0; i < target_count; i++)
        if (strcmp(targets[i].name, name) == 0)
            return &targets[i];
    return NULL;
}

target_set target_bit(const target *t)
{
    return (target_set)1 << (t - targets);
}

void target_print_set(strbuf *out, target_set set)
{
    const char *before = "";
    for (size_t i = 0; i < target_count; i++)
        if (set & target_bit(&targets[i])) {
            strbuf_format(out, "%s%s", before, targets[i].name);
            before = ", ";
        }
}

bool target_runs(const target *gpu, const target *of)
{
    return of->specific ? gpu->sm == of->sm : gpu->sm >= of->sm;
}

size_t target_newest_for(const target *gpu, const target *const *of, size_t count)
{
    for (size_t i = count; i-- > 0;)
        if (target_runs(gpu, of[i]))
            return i;
    return count;
}

static uint64_t round_up(uint64_t value, uint64_t unit)
{
    return (value + unit - 1) / unit * unit;
}

static unsigned at_most(unsigned limit, uint64_t value)
{
    return value < limit ? (unsigned)value : limit;
}

unsigned target_bytes_ahead(const target *t)
{
    enum { WARPS = 24, MOST = 2 * WARP * TARGET_LINE };
    return at_most(MOST, t->l2_sm / 2 / WARPS / TARGET_LINE * TARGET_LINE);
}

bool target_overlaps(const target *t)
{
    enum { HOPPER = 90 };
    return t->sm >= HOPPER;
}

/* Registers of an SM partition per lane. */
enum { PART_REGISTERS = TARGET_REGISTERS / SM_PARTS / WARP };

unsigned target_warps_with(unsigned registers)
{
    return PART_REGISTERS / (unsigned)round_up(registers, REGISTER_UNIT) * SM_PARTS;
}

unsigned target_registers_for(unsigned warps)
{
    unsigned of_part = (warps + SM_PARTS - 1) / SM_PARTS;
    return PART_REGISTERS / of_part / REGISTER_UNIT * REGISTER_UNIT;
}

unsigned target_blocks_per_sm(const target *t, unsigned threads, unsigned registers, size_t shared)
{
    unsigned warps = (threads + WARP - 1) / WARP;
    if (!warps)
        return 0;
    unsigned blocks = t->blocks_sm;
    blocks = at_most(blocks, t->warps_sm / warps);
    if (registers)
        blocks = at_most(blocks, target_warps_with(registers) / warps);
    uint64_t reserved = t->sm >= SHARED_RESERVED_FROM ? SHARED_RESERVED : 0;
    uint64_t taken = round_up(shared, SHARED_UNIT) + reserved;
    return taken ? at_most(blocks, t->shared_sm / taken) : blocks;
}
