/* Counts in one pass over the lines. The counts at every label are kept; a backward branch to it
 * closes a loop, whose counts are the difference. */
#include "emit/ptx_stats.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_LABELS = 64, DECIMAL = 10 };

const char *const ptx_class_names[PTX_CLASS_COUNT] = {
    [PTX_GLOBAL] = "global memory", [PTX_SHARED] = "shared memory", [PTX_FLOAT] = "floating point",
    [PTX_DOT] = "dot product",      [PTX_INTEGER] = "integer",      [PTX_CONVERT] = "convert, move",
    [PTX_WARP] = "warp, barrier",   [PTX_CONTROL] = "control",
};

/* Classes by prefix of the instruction, first match; all others are classed by type. */
static const struct {
    const char *start;
    ptx_class class;
} known[] = {
    { "ld.global", PTX_GLOBAL },  { "st.global", PTX_GLOBAL }, { "atom.global", PTX_GLOBAL },
    { "ld.relaxed", PTX_GLOBAL }, /* never used on shared memory */
    { "red.global", PTX_GLOBAL }, { "ld.", PTX_SHARED },       { "st.", PTX_SHARED },
    { "atom.", PTX_SHARED },      { "red.", PTX_SHARED },      { "dp4a", PTX_DOT },
    { "dp2a", PTX_DOT },          { "mma.", PTX_DOT },         { "cvt", PTX_CONVERT },
    { "mov", PTX_CONVERT },       { "shfl", PTX_WARP },        { "vote", PTX_WARP },
    { "redux", PTX_WARP },        { "bar", PTX_WARP },         { "setp", PTX_CONTROL },
    { "selp", PTX_CONTROL },      { "bra", PTX_CONTROL },      { "ret", PTX_CONTROL },
    { "exit", PTX_CONTROL },
};

typedef struct label {
    const char *name;
    size_t length;
    unsigned line;
    ptx_counts before;
} label;

typedef struct scan {
    ptx_counts here;
    label labels[MAX_LABELS];
    size_t label_count;
    unsigned line, last_loop_end;
    size_t inner_loops;
    unsigned hot_work; /* work per iteration of each hot loop */
    ptx_hot_loops hot;
    bool has_seldom;
} scan;

static bool mentions(const char *mnemonic, size_t length, const char *part)
{
    size_t size = strlen(part);
    for (size_t i = 0; i + size <= length; i++)
        if (memcmp(mnemonic + i, part, size) == 0)
            return true;
    return false;
}

static ptx_class class_of(const char *mnemonic, size_t length)
{
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strncmp(mnemonic, known[i].start, strlen(known[i].start)) == 0)
            return known[i].class;
    bool real = mentions(mnemonic, length, ".f32") || mentions(mnemonic, length, ".f16") ||
                mentions(mnemonic, length, ".bf16") || mentions(mnemonic, length, ".f64");
    return real ? PTX_FLOAT : PTX_INTEGER;
}

/* Returns the bytes per lane of an access: 16 for "ld.global.nc.v4.f32". */
static unsigned access_bytes(const char *mnemonic, size_t length)
{
    unsigned width = mentions(mnemonic, length, ".v4")   ? 4
                     : mentions(mnemonic, length, ".v2") ? 2
                                                         : 1;
    while (length && mnemonic[length - 1] >= '0' && mnemonic[length - 1] <= '9')
        length--;
    return width * (unsigned)strtoul(mnemonic + length, NULL, DECIMAL) / 8;
}

static void close_loop(scan *s, const label *l)
{
    static const char seldom[] = "seldom";
    bool innermost = s->last_loop_end <= l->line;
    const char *line_end = l->name + strcspn(l->name, "\n"), *mark = strstr(l->name, "// ");
    const char *note = mark && mark < line_end ? mark + strlen("// ") : line_end;
    s->last_loop_end = s->line;
    s->has_seldom |= strncmp(note, seldom, strlen(seldom)) == 0;
    if (!innermost)
        return;
    size_t number = s->inner_loops++;
    unsigned work = 0;
    char unit[sizeof s->hot.unit] = "";
    if (sscanf(note, "%u %15s", &work, unit) != 2 || !work || work < s->hot_work)
        return;
    if (work > s->hot_work)
        s->hot = (ptx_hot_loops){ 0 };
    if (s->hot.count == PTX_MOST_LOOPS)
        return;
    s->hot_work = work;
    s->hot.work += work;
    memcpy(s->hot.unit, unit, sizeof unit);
    s->hot.numbers[s->hot.count++] = number;
    ptx_counts *sum = &s->hot.counts;
    sum->instructions += s->here.instructions - l->before.instructions;
    sum->loads += s->here.loads - l->before.loads;
    sum->load_bytes += s->here.load_bytes - l->before.load_bytes;
    for (size_t i = 0; i < PTX_CLASS_COUNT; i++)
        sum->by_class[i] += s->here.by_class[i] - l->before.by_class[i];
}

static void take_instruction(scan *s, const char *text)
{
    if (*text == '@') {
        text += strcspn(text, " \n");
        text += strspn(text, " ");
    }
    size_t length = strcspn(text, " ;\n");
    ptx_class class = class_of(text, length);
    s->here.instructions++;
    s->here.by_class[class]++;
    if (class == PTX_GLOBAL && strncmp(text, "ld.", strlen("ld.")) == 0) {
        s->here.loads++;
        s->here.load_bytes += access_bytes(text, length);
    }
    if (strncmp(text, "bra", strlen("bra")) != 0)
        return;
    const char *to = text + length + strspn(text + length, " ");
    for (size_t i = 0, size = strcspn(to, ";\n"); i < s->label_count; i++)
        if (s->labels[i].length == size && memcmp(s->labels[i].name, to, size) == 0)
            close_loop(s, &s->labels[i]);
}

ptx_stats ptx_stats_of(const char *ptx)
{
    scan s = { 0 };
    bool in_body = false;
    for (const char *line = ptx; *line; s.line++) {
        const char *text = line + strspn(line, " \t");
        if (*line == '{' || *line == '}')
            in_body = *line == '{';
        else if (*line == '$' && s.label_count < MAX_LABELS)
            s.labels[s.label_count++] = (label){
                .name = line, .length = strcspn(line, ":\n"), .line = s.line, .before = s.here
            };
        else if (in_body && *text && !strchr("./\n{}", *text))
            take_instruction(&s, text);
        line += strcspn(line, "\n");
        line += *line == '\n';
    }
    return (ptx_stats){ .all = s.here, .hot = s.hot, .has_seldom = s.has_seldom };
}
