/* What kernels cost on paper: registers, machine instructions, and those of the hot loop a weight.
 *
 *   cost SPEC > TABLE.md
 *
 * Every kernel of the spec is assembled by ptxas for every target of the spec. Machine code is 16
 * bytes an instruction from sm_70 on, with the opcode in the low 12 bits; a branch backwards closes
 * a loop. The loop that the generator marks in the PTX with the work of one turn ("// 32 weights a
 * lane") is the hot one; where a kernel has several, that with the most. A figure per weight is
 * what a lane executes in a turn by the weights it covers in it.
 */
#include <elf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/os.h"
#include "emit/ptx_stats.h"
#include "generate.h"

enum {
    INSTRUCTION_BYTES = 16,
    OPCODE_MASK = 0xfff,
    OPCODE_BRANCH = 0x947,
    OPCODE_UNIFORM_BRANCH = 0x547,
    MAX_LOOPS = 64,
};

typedef struct loop {
    size_t first, last; /* instructions */
} loop;

typedef struct machine_code {
    size_t instructions;
    loop loops[MAX_LOOPS]; /* that hold no other loop, in the order of the code */
    size_t loop_count;
} machine_code;

static _Noreturn void give_up(const char *what, const char *why)
{
    fprintf(stderr, "cost: %s: %s\n", what, why);
    exit(1);
}

static uint64_t word(const unsigned char *bytes)
{
    uint64_t value;
    memcpy(&value, bytes, sizeof value);
    return value;
}

/* How far a branch goes from the next instruction. Its signed distance in units of four bytes
 * stands in 48 bits from bit 34 on; from sm_90 on eight lower bits follow it, in bits 16 to 23. */
static int64_t branch_distance(const unsigned char *instruction, const target *t)
{
    uint64_t low = word(instruction) >> 34, high = word(instruction + 8) & 0x3ffff;
    int64_t distance = (int64_t)((high << 30 | low) << 16) >> 16;
    if (t->sm >= 90)
        distance = distance * 256 + (int64_t)(word(instruction) >> 16 & 0xff);
    return distance * 4 / INSTRUCTION_BYTES;
}

static bool holds_another(const loop *l, const loop *all, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (&all[i] != l && all[i].first >= l->first && all[i].last <= l->last)
            return true;
    return false;
}

static void find_loops(const unsigned char *code, const target *t, machine_code *m)
{
    loop all[MAX_LOOPS];
    size_t count = 0;
    for (size_t i = 0; i < m->instructions; i++) {
        const unsigned char *instruction = code + i * INSTRUCTION_BYTES;
        uint64_t opcode = word(instruction) & OPCODE_MASK;
        if (opcode != OPCODE_BRANCH && opcode != OPCODE_UNIFORM_BRANCH)
            continue;
        int64_t to = (int64_t)i + 1 + branch_distance(instruction, t);
        bool idle = to == (int64_t)i; /* the trap behind a kernel's end */
        if (to >= 0 && to <= (int64_t)i && !idle && count < MAX_LOOPS)
            all[count++] = (loop){ (size_t)to, i };
    }
    for (size_t i = 0; i < count; i++)
        if (!holds_another(&all[i], all, count))
            m->loops[m->loop_count++] = all[i];
}

static machine_code read_cubin(const char *bytes, size_t size, const target *t)
{
    machine_code m = { 0 };
    const Elf64_Ehdr *head = (const Elf64_Ehdr *)(const void *)bytes;
    if (size < sizeof *head || memcmp(bytes, ELFMAG, SELFMAG) != 0)
        give_up("cubin", "not an ELF file");
    const Elf64_Shdr *sections = (const Elf64_Shdr *)(const void *)(bytes + head->e_shoff);
    const char *names = bytes + sections[head->e_shstrndx].sh_offset;
    for (unsigned s = 0; s < head->e_shnum; s++) {
        if (strncmp(names + sections[s].sh_name, ".text.", 6) != 0)
            continue;
        m.instructions = sections[s].sh_size / INSTRUCTION_BYTES;
        find_loops((const unsigned char *)bytes + sections[s].sh_offset, t, &m);
    }
    return m;
}

static machine_code assemble(arena *a, const ptxas *assembler, const char *folder, const kernel *k,
                             const target *t, ptxas_result *result)
{
    const char *error = NULL, *cubin = arena_format(a, "%s/kernel.cubin", folder);
    const char *source = arena_format(a, "%s/kernel.ptx", folder);
    if (!ptxas_run(a, assembler, k->ptx, k->ptx_length, t, result, &error) ||
        !os_write_file(a, source, k->ptx, k->ptx_length, &error))
        give_up(k->instance->name, error);
    if (!result->accepted)
        give_up(k->instance->name, result->message);
    const char *argv[] = { assembler->path, arena_format(a, "-arch=%s", t->name),
                           source,          "-o",
                           cubin,           NULL };
    char *output, *bytes;
    int status;
    size_t size;
    if (!os_run(a, argv, &output, &status, &error) || status != 0 ||
        !os_read_file(a, cubin, &bytes, &size, &error))
        give_up(k->instance->name, error ? error : output);
    return read_cubin(bytes, size, t);
}

static void print_row(arena *a, const ptxas *assembler, const char *folder, const kernel *k,
                      const target *t)
{
    ptxas_result r;
    machine_code m = assemble(a, assembler, folder, k, t, &r);
    ptx_loop hot = ptx_stats_of(k->ptx).hot;
    printf("| %s | %s | %u | %u | %zu |", k->instance->name, t->name, r.registers, r.spill_bytes,
           m.instructions);
    if (hot.work && hot.number < m.loop_count) {
        const loop *l = &m.loops[hot.number];
        size_t length = l->last - l->first + 1;
        size_t hundredths = (length * 100 + hot.work / 2) / hot.work;
        printf(" %zu | %u %s | %zu.%02zu | %u |\n", length, hot.work, hot.unit, hundredths / 100,
               hundredths % 100, hot.counts.load_bytes / hot.counts.loads);
    } else {
        printf(" | | | |\n");
    }
}

int main(int argc, char **argv)
{
    if (argc != 2) {
        fprintf(stderr, "usage: cost SPEC\n");
        return 2;
    }
    arena *a = arena_new();
    diags d = diags_new(a);
    char *text;
    size_t size;
    const char *error, *folder;
    ptxas assembler;
    spec s;
    kernel_set set;
    if (!os_read_file(a, argv[1], &text, &size, &error) ||
        !os_temporary_directory(a, &folder, &error) || !ptxas_find(a, NULL, &assembler, &error))
        give_up(argv[1], error);
    if (!spec_parse(a, argv[1], text, size, families, NULL, &s, &d) ||
        !generate_kernels(a, &s, &set, &d)) {
        strbuf message = strbuf_new(a);
        diags_render(&d, &message, false);
        give_up(argv[1], message.text);
    }
    printf("ptxas %s. Machine instructions in all and in one turn of the hot loop, the work of a "
           "lane in that\n"
           "turn, instructions a unit of work, average bytes of a load of device memory in the "
           "loop.\n\n"
           "| kernel | target | registers | spills | instructions | loop | work | each | bytes a "
           "load |\n"
           "|---|---|---|---|---|---|---|---|---|\n",
           assembler.version);
    for (size_t i = 0; i < set.kernel_count; i++)
        for (size_t t = 0; t < set.target_count; t++)
            if (set.targets[t]->sm >= set.kernels[i].target->sm)
                print_row(a, &assembler, folder, &set.kernels[i], set.targets[t]);
    os_remove_directory(a, folder);
    arena_free(a);
    return 0;
}
