/* From sm_70 on an instruction is 16 bytes, two words of 64 bits, little-endian:
 *
 *   bits   0..11   opcode; the upper three bits give the kind of its operands
 *         34..81   signed distance of a branch from the next instruction, in units of four bytes;
 *                  from sm_90 on with eight lower bits in 16..23
 *         72..73   number of matrices of a matrix load, as a power of two: 1, 2, 4
 *           75     depth of an integer product: 16, 32
 *         73..75   size of a load or store: u8, s8, u16, s16, 32, 64, 128 bits
 *        110..112  scoreboard that is set until the result has arrived; 7: none
 *        116..121  scoreboards to wait for before the instruction starts, a bit each
 *
 * Layout: Jia et al., "Dissecting the NVIDIA Volta GPU Architecture via Microbenchmarking" (2018),
 * and the output of ptxas 13. */
#include "bench/machine_code.h"

#include <elf.h>
#include <string.h>

enum {
    INSTRUCTION_BYTES = 16,
    OPCODE_MASK = 0xfff,
    OPCODE_BRANCH = 0x947,
    OPCODE_UNIFORM_BRANCH = 0x547,
    OPCODE_HALF_PRODUCT = 0x23c,
    OPCODE_INTEGER_PRODUCT = 0x237,
    OPCODE_GROUP_PRODUCT = 0x9f0,
    DEPTH_32_SHIFT = 11,
    OPERATION_MASK = 0x1ff,
    OPERATION_LOAD_GENERIC = 0x180,
    OPERATION_LOAD_GLOBAL = 0x181,
    OPERATION_LOAD_SHARED = 0x184,
    OPERATION_STORE_SHARED = 0x188,
    OPERATION_COPY_TO_SHARED = 0x1ae,
    OPERATION_LOAD_MATRICES = 0x03b,
    SCOREBOARDS = 6,
};

static uint64_t word(const machine_code *m, size_t i, size_t half)
{
    uint64_t value;
    memcpy(&value, m->bytes + i * INSTRUCTION_BYTES + half * sizeof value, sizeof value);
    return value;
}

static int64_t branch_distance(const machine_code *m, size_t i, const target *t)
{
    uint64_t low = word(m, i, 0) >> 34, high = word(m, i, 1) & 0x3ffff;
    int64_t distance = (int64_t)((high << 30 | low) << 16) >> 16;
    if (t->sm >= 90)
        distance = distance * 256 + (int64_t)(word(m, i, 0) >> 16 & 0xff);
    return distance * 4 / INSTRUCTION_BYTES;
}

static bool holds_another(const code_range *l, const code_range *all, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (&all[i] != l && all[i].first >= l->first && all[i].last <= l->last)
            return true;
    return false;
}

/* Finds the loops. A backward branch closes a loop. */
static void find_loops(machine_code *m, const target *t)
{
    code_range all[MAX_LOOPS];
    size_t count = 0;
    for (size_t i = 0; i < m->instructions; i++) {
        uint64_t opcode = word(m, i, 0) & OPCODE_MASK;
        if (opcode != OPCODE_BRANCH && opcode != OPCODE_UNIFORM_BRANCH)
            continue;
        int64_t to = (int64_t)i + 1 + branch_distance(m, i, t);
        bool idle = to == (int64_t)i; /* the branch to itself that follows a kernel's last
                                         instruction */
        if (to >= 0 && to <= (int64_t)i && !idle && count < MAX_LOOPS)
            all[count++] = (code_range){ (size_t)to, i };
    }
    for (size_t i = 0; i < count; i++) {
        size_t length = all[i].last - all[i].first + 1;
        if (!holds_another(&all[i], all, count))
            m->loops[m->loop_count++] = all[i];
        else if (length > m->nest)
            m->nest = length;
    }
}

bool machine_code_read(const char *cubin, size_t size, const target *t, machine_code *out)
{
    const Elf64_Ehdr *head = (const Elf64_Ehdr *)(const void *)cubin;
    *out = (machine_code){ 0 };
    if (size < sizeof *head || memcmp(cubin, ELFMAG, SELFMAG) != 0)
        return false;
    const Elf64_Shdr *sections = (const Elf64_Shdr *)(const void *)(cubin + head->e_shoff);
    const char *names = cubin + sections[head->e_shstrndx].sh_offset;
    for (unsigned s = 0; s < head->e_shnum; s++) {
        if (strncmp(names + sections[s].sh_name, ".text.", 6) != 0)
            continue;
        out->bytes = (const unsigned char *)cubin + sections[s].sh_offset;
        out->instructions = sections[s].sh_size / INSTRUCTION_BYTES;
        find_loops(out, t);
        return true;
    }
    return false;
}

/* Returns the bytes that an instruction loads from device memory, or 0 if it is no load. */
static unsigned loaded_bytes(const machine_code *m, size_t i)
{
    static const unsigned sizes[] = { 1, 1, 2, 2, 4, 8, 16, 16 };
    uint64_t operation = word(m, i, 0) & OPERATION_MASK;
    bool loads = operation == OPERATION_LOAD_GLOBAL || operation == OPERATION_LOAD_GENERIC;
    return loads ? sizes[word(m, i, 1) >> 9 & 7] : 0;
}

/* Runs through a range, starting at time `now`. `ready` holds the time at which the loads of each
 * scoreboard are done. Returns the time at the end. */
static unsigned run(const machine_code *m, code_range range, unsigned now,
                    unsigned ready[SCOREBOARDS])
{
    for (size_t i = range.first; i <= range.last; i++) {
        uint64_t control = word(m, i, 1);
        for (unsigned s = 0; s < SCOREBOARDS; s++)
            if (control >> (52 + s) & 1 && ready[s] > now)
                now = ready[s];
        uint64_t set = control >> 46 & 7;
        if (loaded_bytes(m, i) && set < SCOREBOARDS)
            ready[set] = now + 1;
    }
    return now;
}

memory_use machine_code_memory(const machine_code *m, code_range range, bool is_loop)
{
    enum { TURNS_BEFORE = 4, TURNS = 16 };
    memory_use use = { 0 };
    for (size_t i = range.first; i <= range.last; i++) {
        use.loads += loaded_bytes(m, i) != 0;
        use.bytes += loaded_bytes(m, i);
        use.copies += (word(m, i, 0) & OPERATION_MASK) == OPERATION_COPY_TO_SHARED;
    }
    unsigned ready[SCOREBOARDS] = { 0 }, now = 0, start = 0;
    for (int turn = 0; is_loop && turn < TURNS_BEFORE + TURNS; turn++) {
        start = turn == TURNS_BEFORE ? now : start;
        now = run(m, range, now, ready);
    }
    use.round_trips = is_loop ? (double)(now - start) / TURNS : run(m, range, 0, ready);
    return use;
}

/* Returns the columns of a wgmma product with both matrices in shared memory, or 0 for any other
 * instruction. */
static size_t columns_of_group(const machine_code *m, size_t i)
{
    uint64_t low = word(m, i, 0);
    return (low & OPCODE_MASK) == OPCODE_GROUP_PRODUCT ? ((low >> 53 & 31) + 1) * 8 : 0;
}

size_t machine_code_products(const machine_code *m, code_range range)
{
    size_t count = 0;
    for (size_t i = range.first; i <= range.last; i++) {
        uint64_t opcode = word(m, i, 0) & OPCODE_MASK;
        count += opcode == OPCODE_HALF_PRODUCT;
        if (opcode == OPCODE_INTEGER_PRODUCT)
            count += word(m, i, 1) >> DEPTH_32_SHIFT & 1 ? 2 : 1;
        count += columns_of_group(m, i) / 8;
    }
    return count;
}

size_t machine_code_shared_bytes(const machine_code *m, code_range range)
{
    enum { MATRIX_BYTES = 4, SIZE_SHIFT = 9, COUNT_SHIFT = 8 };
    enum { GROUP_ROWS = 64, GROUP_DEPTH_BYTES = 32, GROUP_THREADS = 128 };
    static const size_t sizes[] = { 1, 1, 2, 2, 4, 8, 16, 16 };
    size_t bytes = 0;
    for (size_t i = range.first; i <= range.last; i++) {
        uint64_t high = word(m, i, 1);
        size_t columns = columns_of_group(m, i);
        if (columns) {
            bytes += (GROUP_ROWS + columns) * GROUP_DEPTH_BYTES / GROUP_THREADS;
            continue;
        }
        switch (word(m, i, 0) & OPERATION_MASK) {
        case OPERATION_LOAD_MATRICES:
            bytes += (size_t)MATRIX_BYTES << (high >> COUNT_SHIFT & 3);
            break;
        case OPERATION_LOAD_SHARED:
        case OPERATION_STORE_SHARED:
        case OPERATION_COPY_TO_SHARED:
            bytes += sizes[high >> SIZE_SHIFT & 7];
            break;
        default:
            break;
        }
    }
    return bytes;
}
