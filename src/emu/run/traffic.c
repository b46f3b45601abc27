/* Memory traffic of a warp's accesses: sectors of global memory and passes over shared banks. */
#include "emu/memory/speculation.h"
#include "emu/run/access.h"

enum { BANKS = 32, BANK_BYTES = 4, LINE = 128 };

static void note_loaded(warp *w, allocation *of, unsigned sectors)
{
    uint64_t bytes = (uint64_t)sectors * SECTOR_BYTES;
    if (w->machine->speculation)
        speculation_count_loaded(w->machine->speculation, of, bytes);
    else
        of->loaded += bytes;
}

/* Counts a load's sectors; for the allocation, only those that the L1 cache lacks. */
static unsigned count_sectors(warp *w, const addresses *a, unsigned size, lane_mask mask)
{
    uint64_t seen[2 * WARP_LANES], highest = 0; /* 1 + the highest sector seen */
    unsigned count = 0, fresh = 0;
    allocation *of = NULL;
    EACH_LANE (i, mask) {
        uint64_t last = (a->at[i] + size - 1) / SECTOR_BYTES;
        of = of ? of : memory_find(w->machine->memory, a->at[i]);
        for (uint64_t sector = a->at[i] / SECTOR_BYTES; sector <= last; sector++) {
            if (sector + 1 == highest)
                continue;
            unsigned known = sector < highest ? count : 0;
            while (known && seen[known - 1] != sector)
                known--;
            if (known)
                continue;
            uint64_t *recent = &w->recent[sector % RECENT_SECTORS];
            fresh += *recent != sector + 1;
            *recent = sector + 1;
            seen[count++] = sector;
            highest = sector < highest ? highest : sector + 1;
        }
    }
    if (of)
        note_loaded(w, of, fresh);
    return count;
}

/* Returns true if no two lanes of a group, from first on, share a bank. words: words per lane. */
static bool are_banks_apart(const addresses *a, unsigned first, unsigned words, lane_mask mask)
{
    uint32_t used = 0, twice = 0, each = words < BANKS ? (UINT32_C(1) << words) - 1 : UINT32_MAX;
    for (unsigned i = first; i < first + WARP_LANES / words; i++) {
        uint32_t banks = mask >> i & 1 ? each << a->at[i] / BANK_BYTES % BANKS : 0;
        twice |= used & banks;
        used |= banks;
    }
    return !twice;
}

/* Counts additional passes: 128 bytes of lanes at a time, one word per bank and pass. */
static unsigned count_conflicts(const addresses *a, unsigned size, lane_mask mask)
{
    unsigned conflicts = 0, words = size < BANK_BYTES ? 1 : size / BANK_BYTES;
    uint64_t step = a->at[1] - a->at[0], off = 0;
    for (int i = 1; i < WARP_LANES; i++)
        off |= a->at[i] - a->at[i - 1] - step;
    if (!off && (!step || step == size)) /* one address, or adjacent addresses in lane order */
        return 0;
    for (unsigned group = 0; group < words; group++) {
        if (are_banks_apart(a, group * (WARP_LANES / words), words, mask))
            continue;
        uint64_t seen[BANKS][WARP_LANES];
        unsigned counts[BANKS] = { 0 }, most = 1, lanes = WARP_LANES / words;
        for (unsigned i = group * lanes; i < (group + 1) * lanes; i++) {
            if (!(mask >> i & 1))
                continue;
            for (unsigned k = 0; k < words; k++) {
                uint64_t word = a->at[i] / BANK_BYTES + k;
                unsigned bank = (unsigned)(word % BANKS), known = counts[bank];
                while (known && seen[bank][known - 1] != word)
                    known--;
                if (!known)
                    seen[bank][counts[bank]++] = word;
                most = counts[bank] > most ? counts[bank] : most;
            }
        }
        conflicts += most - 1;
    }
    return conflicts;
}

/* Returns the clocks of a load in the L1 cache, if it hits: the longer of its stages. The tag stage
 * looks up four lines per clock ("4 sets x 4 sectors": NVIDIA on GV100 and newer,
 * forums.developer.nvidia.com/t/273699 and /t/49571). The data stage reads one word per bank and
 * clock from the banks of shared memory (/t/242776). */
static unsigned count_load_passes(const addresses *a, unsigned size, lane_mask mask)
{
    enum { TAGS = 4 };
    uint64_t seen[2 * WARP_LANES], latest = UINT64_MAX;
    unsigned lines = 0, data = (size < BANK_BYTES ? 1 : size / BANK_BYTES);
    EACH_LANE (i, mask)
        for (uint64_t line = a->at[i] / LINE; line <= (a->at[i] + size - 1) / LINE; line++) {
            unsigned known = line == latest ? 1 : lines;
            while (known && line != latest && seen[known - 1] != line)
                known--;
            if (!known)
                seen[lines++] = line;
            latest = line;
        }
    data += count_conflicts(a, size, mask);
    return data * TAGS > lines ? data : (lines + TAGS - 1) / TAGS;
}

void access_count(warp *w, const op *o, ptx_space space, const addresses *a, lane_mask mask,
                  access_kind kind)
{
    emu_stats *stats = w->machine->stats;
    unsigned size = emu_type_bytes(o->type) * o->vector;
    if (!stats)
        return;
    if (kind == ACCESS_PREFETCH) {
        stats->global_prefetches += count_lanes(mask);
    } else if (space == SPACE_SHARED) {
        stats->shared_bank_conflicts += count_conflicts(a, size, mask);
    } else if (space != SPACE_LOCAL && kind == ACCESS_LOAD) {
        stats->global_load_bytes += size * count_lanes(mask);
        stats->global_load_sectors += count_sectors(w, a, size, mask);
        stats->global_load_passes += count_load_passes(a, size, mask);
    } else if (space != SPACE_LOCAL) {
        stats->global_store_bytes += size * count_lanes(mask);
    }
}

void access_count_bulk(warp *w, uint64_t address, unsigned size, access_kind kind)
{
    emu_stats *stats = w->machine->stats;
    unsigned sectors = (unsigned)((address + size - 1) / SECTOR_BYTES - address / SECTOR_BYTES + 1);
    allocation *of = stats && size ? memory_find(w->machine->memory, address) : NULL;
    if (!of)
        return;
    if (kind == ACCESS_PREFETCH) {
        stats->global_prefetches += (size + LINE - 1) / LINE;
    } else if (kind == ACCESS_LOAD) {
        stats->global_load_bytes += size;
        stats->global_load_sectors += sectors;
        note_loaded(w, of, sectors);
    } else {
        stats->global_store_bytes += size;
    }
}
