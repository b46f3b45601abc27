/* Build-time program: writes the grids of grid.def as C tables.
 *
 *     embed_grids OUT.c
 */
#include <stdint.h>
#include <stdio.h>

typedef struct grid_source {
    const char *name;
    unsigned run, code_bits; /* values per entry, bits per code */
    const char *levels;      /* "(8, 25, 43)" */
    const char *set;
} grid_source;

static const grid_source grids[] = {
#define GRID(id, run, bits, levels, set) { #id, run, bits, #levels, set },
#include "grid.def"
};

/* Writes the entries of a set in ascending order, four per word. Returns their number. */
static unsigned write_words(FILE *out, const grid_source *g)
{
    unsigned base = 1, entries = 0;
    uint64_t word = 0;
    for (const char *c = g->levels; *c; c++)
        base += *c == ',';
    fprintf(out, "static const uint64_t %s_words[] = {\n", g->name);
    for (unsigned number = 0; g->set[number / 4]; number++) {
        char c = g->set[number / 4];
        unsigned digit = (unsigned)(c <= '9' ? c - '0' : c - 'a' + 10), rest = number;
        if (!(digit >> number % 4 & 1))
            continue;
        for (unsigned i = 0; i < g->run; i++, rest /= base)
            word |= (uint64_t)(rest % base) << (16 * (entries % 4) + g->code_bits * i);
        if (++entries % 4 == 0) {
            fprintf(out, "    UINT64_C(0x%llx),\n", (unsigned long long)word);
            word = 0;
        }
    }
    fputs("};\n", out);
    return entries;
}

int main(int argc, char **argv)
{
    FILE *out = argc == 2 ? fopen(argv[1], "w") : NULL;
    if (!out) {
        perror(argc == 2 ? argv[1] : "usage: embed_grids OUT.c");
        return 1;
    }
    fputs("#include \"kernel/grid.h\"\n\n#define LEVELS(...) { __VA_ARGS__ }\n\n", out);
    for (const grid_source *g = grids; g < grids + sizeof grids / sizeof *grids; g++) {
        unsigned entries = write_words(out, g);
        fprintf(out,
                "const weight_grid grid_%s = { \"grid_%s\", %u, %u, %u, LEVELS%s, %s_words };\n\n",
                g->name, g->name, entries, g->run, g->code_bits, g->levels, g->name);
    }
    if (ferror(out) || fclose(out) != 0) {
        perror(argv[1]);
        return 1;
    }
    return 0;
}
