/* Each line of a kernel's body is parsed into guard, opcode and operands. Each kind of mutation
 * plants its defects in that form. The text must be ptxgen's, with one instruction per line.
 *
 * A register is replaced by the last register of its class that was defined before the line, which
 * is the likeliest confusion. Equal registers are skipped. */
#include "mutation/mutants.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_OPERANDS = 8 };

typedef struct instruction {
    const char *guard; /* "", "@%p1" or "@!%p1" */
    const char *opcode;
    const char *operands[MAX_OPERANDS];
    unsigned count;
} instruction;

typedef VEC(const char *) names;

typedef struct planter {
    arena *arena;
    mutant_list *out;
    names defined; /* registers defined by preceding lines */
    unsigned line;
    instruction in, previous;
    const char *before;
} planter;

static bool starts(const char *text, const char *with)
{
    return strncmp(text, with, strlen(with)) == 0;
}

static bool contains(const char *text, const char *part)
{
    return strstr(text, part) != NULL;
}

/* Returns the end of an operand: a comma outside of braces and brackets, or the semicolon. */
static const char *operand_end(const char *at)
{
    int depth = 0;
    for (; *at && *at != ';' && (*at != ',' || depth); at++)
        depth += (*at == '{' || *at == '[') - (*at == '}' || *at == ']');
    return at;
}

/* Parses a line. Returns false if it is not an instruction. */
static bool take_apart(arena *a, const char *line, instruction *in)
{
    *in = (instruction){ .guard = "" };
    size_t length = strcspn(line, ";\n");
    if (line[length] != ';' || *line == '.' || *line == '/' || *line == '$')
        return false;
    if (*line == '@') {
        size_t guard = strcspn(line, " ");
        in->guard = arena_copy(a, line, guard);
        line += guard + strspn(line + guard, " ");
    }
    size_t opcode = strcspn(line, " ;");
    in->opcode = arena_copy(a, line, opcode);
    line += opcode + strspn(line + opcode, " ");
    while (*line != ';' && in->count < MAX_OPERANDS) {
        const char *end = operand_end(line);
        in->operands[in->count++] = arena_copy(a, line, (size_t)(end - line));
        line = end + (*end == ',');
        line += strspn(line, " ");
    }
    return true;
}

static const char *print(arena *a, const instruction *in)
{
    strbuf text = strbuf_new(a);
    strbuf_format(&text, "%s%s%s", in->guard, *in->guard ? " " : "", in->opcode);
    for (unsigned i = 0; i < in->count; i++)
        strbuf_format(&text, "%s%s", i ? ", " : " ", in->operands[i]);
    strbuf_char(&text, ';');
    return text.text;
}

/* Returns the length of "%rd" for "%rd12", 0 if this is not a numbered register. */
static size_t class_length(const char *name)
{
    size_t length = *name == '%' ? 1 + strspn(name + 1, "rdfhp") : 0;
    return length && strspn(name + length, "0123456789") ? length : 0;
}

static bool is_integer(const char *operand)
{
    return (*operand >= '0' && *operand <= '9' && !starts(operand, "0f")) || *operand == '-';
}

static bool writes_register(const instruction *in)
{
    return in->count && class_length(in->operands[0]) && !starts(in->opcode, "st.");
}

/* Returns code that computes the result both ways and traps if they differ. */
static const char *value_probe(planter *p, const instruction *changed)
{
    const char *to = p->in.operands[0];
    bool predicate = starts(to, "%p"), wide = starts(to, "%rd");
    if (*p->in.guard || !writes_register(&p->in) || strcmp(to, changed->operands[0]) != 0 ||
        (!predicate && !starts(to, "%r")) || starts(p->in.opcode, "ld.") ||
        starts(p->in.opcode, "shfl."))
        return NULL;
    instruction other = *changed;
    const char *spare = predicate ? "%mutant_p" : wide ? "%mutant_rd" : "%mutant_r";
    other.operands[0] = spare;
    const char *compare = predicate
                              ? arena_format(p->arena, "xor.pred %%differs, %s, %s;", to, spare)
                              : arena_format(p->arena, "setp.ne.%s %%differs, %s, %s;",
                                             wide ? "b64" : "b32", to, spare);
    return arena_format(p->arena, "%s\n%s\n%s\n@%%differs trap;", print(p->arena, &other),
                        p->before, compare);
}

static void plant_text(planter *p, const char *kind, const char *after, const char *probe)
{
    if (strcmp(after, p->before) != 0)
        *VEC_PUSH(p->arena, p->out) = (mutant){ kind, p->line, p->before, after, probe };
}

static void plant(planter *p, const char *kind, const instruction *changed)
{
    plant_text(p, kind, print(p->arena, changed), value_probe(p, changed));
}

static void plant_opcode(planter *p, const char *kind, const char *from, const char *to)
{
    const char *at = strstr(p->in.opcode, from);
    if (!at)
        return;
    instruction changed = p->in;
    changed.opcode = arena_format(p->arena, "%.*s%s%s", (int)(at - p->in.opcode), p->in.opcode, to,
                                  at + strlen(from));
    plant(p, kind, &changed);
}

static void plant_operand(planter *p, const char *kind, unsigned index, const char *operand)
{
    instruction changed = p->in;
    changed.operands[index] = operand;
    plant(p, kind, &changed);
}

static void plant_number(planter *p, const char *kind, unsigned index, long long number)
{
    plant_operand(p, kind, index, arena_format(p->arena, "%lld", number));
}

/* Plants a mov of one operand instead of the computation. */
static void plant_move(planter *p, const char *kind, unsigned index)
{
    const char *to = p->in.operands[0];
    instruction moved = { .guard = p->in.guard,
                          .opcode = starts(to, "%f")    ? "mov.f32"
                                    : starts(to, "%rd") ? "mov.u64"
                                                        : "mov.u32",
                          .operands = { to, p->in.operands[index] },
                          .count = 2 };
    plant(p, kind, &moved);
}

static const char BARRIER[] = "barrier dropped", SHUFFLE[] = "shuffle of other lanes",
                  MASK[] = "shuffle mask", BOUND[] = "bound off by one",
                  COMPARISON[] = "comparison", SHIFT[] = "shift or field",
                  REGISTER[] = "other register", CLAMP[] = "clamp or selection skipped",
                  INCREMENT[] = "increment dropped", OFFSET[] = "address offset",
                  PREDICATE[] = "predicate", SIGN[] = "add or subtract", FMA[] = "fma operand",
                  CONSTANT[] = "constant", TYPE[] = "type", STORE[] = "store dropped";

const char *const mutant_kinds[] = { BARRIER,  SHUFFLE,  MASK,      BOUND,  COMPARISON, SHIFT,
                                     REGISTER, CLAMP,    INCREMENT, OFFSET, PREDICATE,  SIGN,
                                     FMA,      CONSTANT, TYPE,      STORE,  NULL };

static void plant_dropped(planter *p)
{
    const instruction *in = &p->in;
    if (starts(in->opcode, "bar.sync"))
        plant_text(p, BARRIER, "", NULL);
    if (starts(in->opcode, "st."))
        plant_text(p, STORE, "", NULL);
    bool in_place = in->count > 1 && strcmp(in->operands[0], in->operands[1]) == 0;
    if (starts(in->opcode, "add.") && in_place)
        plant_text(p, INCREMENT, "", NULL);
}

static void plant_shuffles(planter *p)
{
    if (!starts(p->in.opcode, "shfl.sync"))
        return;
    plant_opcode(p, SHUFFLE, ".bfly", ".down");
    plant_opcode(p, SHUFFLE, ".idx", ".bfly");
    if (is_integer(p->in.operands[2])) {
        long long lane = strtoll(p->in.operands[2], NULL, 0);
        plant_number(p, SHUFFLE, 2, lane > 1 ? lane / 2 : lane + 1);
        plant_number(p, SHUFFLE, 2, lane < 16 ? lane * 2 : lane - 1);
    }
    plant_operand(p, MASK, 4, "0x0000FFFF");
    plant_operand(p, MASK, 4, "0x7FFFFFFF");
}

static void plant_comparisons(planter *p)
{
    static const char *const others[][2] = { { ".lt.", ".le." }, { ".le.", ".lt." },
                                             { ".gt.", ".ge." }, { ".ge.", ".gt." },
                                             { ".eq.", ".ne." }, { ".ne.", ".eq." } };
    if (!starts(p->in.opcode, "setp."))
        return;
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (contains(p->in.opcode, others[i][0]))
            plant_opcode(p, COMPARISON, others[i][0], others[i][1]);
    if (is_integer(p->in.operands[2])) {
        long long bound = strtoll(p->in.operands[2], NULL, 0);
        plant_number(p, BOUND, 2, bound + 1);
        if (bound > 0)
            plant_number(p, BOUND, 2, bound - 1);
    }
}

static void plant_shifts(planter *p)
{
    const instruction *in = &p->in;
    bool field = starts(in->opcode, "bfe."),
         shift = starts(in->opcode, "shl.") || starts(in->opcode, "shr.");
    if ((!field && !shift) || !is_integer(in->operands[2]))
        return;
    long long amount = strtoll(in->operands[2], NULL, 0);
    plant_number(p, SHIFT, 2, amount + 1);
    if (amount > 1)
        plant_number(p, SHIFT, 2, amount - 1);
    if (field && is_integer(in->operands[3]))
        plant_number(p, SHIFT, 3, strtoll(in->operands[3], NULL, 0) / 2);
}

/* Returns true if the preceding line has made two registers equal. */
static bool are_copies(const planter *p, const char *a, const char *b)
{
    const instruction *mov = &p->previous;
    if (mov->count != 2 || *mov->guard || !starts(mov->opcode, "mov."))
        return false;
    const char *const *pair = mov->operands;
    return (strcmp(pair[0], a) == 0 && strcmp(pair[1], b) == 0) ||
           (strcmp(pair[0], b) == 0 && strcmp(pair[1], a) == 0);
}

/* Returns the last defined other register of the same class that is not a copy. */
static const char *confusable(const planter *p, const char *name)
{
    size_t length = class_length(name);
    for (size_t i = p->defined.count; i-- > 0;) {
        const char *other = p->defined.items[i];
        if (class_length(other) == length && strncmp(other, name, length) == 0 &&
            strcmp(other, name) != 0 && !are_copies(p, name, other))
            return other;
    }
    return NULL;
}

static void plant_registers(planter *p)
{
    const instruction *in = &p->in;
    for (unsigned i = !starts(in->opcode, "st."); i < in->count; i++) {
        const char *operand = in->operands[i];
        bool address = *operand == '[';
        const char *name = operand + address;
        if (!class_length(name))
            continue;
        size_t length = class_length(name) + strspn(name + class_length(name), "0123456789");
        const char *other = confusable(p, arena_copy(p->arena, name, length));
        if (other)
            plant_operand(
                p, REGISTER, i,
                arena_format(p->arena, "%s%s%s", address ? "[" : "", other, name + length));
    }
}

static void plant_moves(planter *p)
{
    const char *opcode = p->in.opcode;
    if (starts(opcode, "min.") || starts(opcode, "max.") || starts(opcode, "selp.")) {
        plant_move(p, CLAMP, 1);
        plant_move(p, CLAMP, 2);
    }
    if (starts(opcode, "neg.") || starts(opcode, "abs."))
        plant_move(p, SIGN, 1);
    if (starts(opcode, "fma.") || starts(opcode, "mad.lo.u32"))
        plant_move(p, FMA, 3);
}

static void plant_arithmetic(planter *p)
{
    const char *opcode = p->in.opcode;
    if (starts(opcode, "add."))
        plant_opcode(p, SIGN, "add.", "sub.");
    if (starts(opcode, "sub."))
        plant_opcode(p, SIGN, "sub.", "add.");
    if (starts(opcode, "fma.rn.") || starts(opcode, "mad.")) {
        instruction product = p->in;
        product.opcode = arena_format(p->arena, "mul%s", opcode + 3);
        product.count = 3;
        plant(p, FMA, &product);
    }
}

static unsigned access_bytes(const char *opcode)
{
    const char *type = strrchr(opcode, '.');
    unsigned bits = (unsigned)strtoul(type + 2, NULL, 10);
    return bits / 8 * (contains(opcode, ".v4.") ? 4 : contains(opcode, ".v2.") ? 2 : 1);
}

static void plant_offsets(planter *p)
{
    const instruction *in = &p->in;
    unsigned at = starts(in->opcode, "st.") ? 0 : 1;
    bool accesses = starts(in->opcode, "st.") || starts(in->opcode, "ld.");
    if (!accesses || starts(in->opcode, "ld.param"))
        return;
    const char *address = in->operands[at];
    size_t base = strcspn(address, "+-]");
    long long offset = strtoll(address + base, NULL, 0), size = access_bytes(in->opcode);
    plant_operand(p, OFFSET, at,
                  arena_format(p->arena, "%.*s+%lld]", (int)base, address, offset + size));
    if (offset >= size)
        plant_operand(p, OFFSET, at,
                      arena_format(p->arena, "%.*s+%lld]", (int)base, address, offset - size));
}

static void plant_predicates(planter *p)
{
    const char *guard = p->in.guard;
    if (!*guard)
        return;
    const char *name = guard + strcspn(guard, "%");
    bool negated = guard[1] == '!', jumps = starts(p->in.opcode, "bra");
    const char *taken = arena_format(p->arena, "%s trap;", guard);
    const char *passed = arena_format(p->arena, "@%s%s trap;", negated ? "" : "!", name);
    instruction changed = p->in;
    changed.guard = arena_format(p->arena, "@%s%s", negated ? "" : "!", name);
    plant_text(p, PREDICATE, print(p->arena, &changed), NULL);
    changed.guard = "";
    plant_text(p, PREDICATE, print(p->arena, &changed),
               jumps ? arena_format(p->arena, "%s\n%s", passed, p->before) : NULL);
    plant_text(p, PREDICATE, "", jumps ? taken : NULL);
}

/* Returns twice the number, half of it if that overflows, or 1 for 0. */
static const char *other_float(arena *a, const char *operand)
{
    uint32_t bits = (uint32_t)strtoul(operand + 2, NULL, 16);
    float number;
    memcpy(&number, &bits, sizeof number);
    bool zero = (bits << 1) == 0, large = (bits << 1) >= 0xfe000000;
    number = zero ? 1 : large ? number / 2 : number * 2;
    memcpy(&bits, &number, sizeof bits);
    return arena_format(a, "0f%08X", (unsigned)bits);
}

/* Returns a prmt selector whose first byte from the register is replaced by the adjacent byte. */
static long long other_byte(long long selector)
{
    for (int shift = 0; shift < 16; shift += 4)
        if ((selector >> shift & 0xf) < 4)
            return selector ^ 1LL << shift;
    return selector ^ 1;
}

/* Returns another immediate: without its lowest set bit for bitwise instructions, else one more. */
static long long other_number(const instruction *in, unsigned index)
{
    static const char *const bits[] = { "and.", "or.", "xor.", "lop3.", "dp4a." };
    long long number = (long long)strtoull(in->operands[index], NULL, 0);
    if (starts(in->opcode, "prmt."))
        return index == 3 ? other_byte(number) : number ^ 0x01000000;
    if (starts(in->opcode, "lop3.") && index == 4)
        return number ^ 2;
    for (size_t i = 0; i < sizeof bits / sizeof *bits; i++)
        if (starts(in->opcode, bits[i]))
            return number & (number - 1);
    return number + 1;
}

static void plant_constants(planter *p)
{
    const instruction *in = &p->in;
    static const char *const covered[] = { "setp.", "sh", "bfe.", "bar." };
    for (unsigned i = 1; i < in->count; i++)
        if (starts(in->operands[i], "0f"))
            plant_operand(p, CONSTANT, i, other_float(p->arena, in->operands[i]));
    for (size_t i = 0; i < sizeof covered / sizeof *covered; i++)
        if (starts(in->opcode, covered[i]))
            return;
    for (unsigned i = 1; i < in->count; i++)
        if (is_integer(in->operands[i]))
            plant_number(p, CONSTANT, i, other_number(in, i));
}

static void plant_types(planter *p)
{
    static const char *const narrow[][2] = { { ".u8", ".s8" },
                                             { ".s8", ".u8" },
                                             { ".u16", ".s16" },
                                             { ".s16", ".u16" },
                                             { ".u16", ".u8" } };
    const char *opcode = p->in.opcode;
    if (starts(opcode, "ld.global") || starts(opcode, "ld.shared"))
        for (size_t i = 0; i < sizeof narrow / sizeof *narrow; i++)
            plant_opcode(p, TYPE, narrow[i][0], narrow[i][1]);
    if (starts(opcode, "bfe.")) {
        plant_opcode(p, TYPE, ".u32", contains(opcode, ".u32") ? ".s32" : ".u32");
        plant_opcode(p, TYPE, ".s32", ".u32");
    }
    if (starts(opcode, "dp4a.")) {
        plant_opcode(p, TYPE, ".u32.s32", ".s32.s32");
        plant_opcode(p, TYPE, ".s32.s32", ".u32.s32");
        plant_opcode(p, TYPE, ".s32.s32", ".s32.u32");
        plant_opcode(p, TYPE, ".u32.s32", ".u32.u32");
    }
}

static void note_defined(planter *p)
{
    const instruction *in = &p->in;
    if (!in->count || starts(in->opcode, "st."))
        return;
    for (const char *at = in->operands[0]; (at = strchr(at, '%')); at++) {
        size_t length = class_length(at);
        if (length)
            *VEC_PUSH(p->arena, &p->defined) =
                arena_copy(p->arena, at, length + strspn(at + length, "0123456789"));
    }
}

void plant_mutants(arena *a, const char *ptx, mutant_list *out)
{
    static void (*const kinds[])(planter *) = {
        plant_dropped,    plant_shuffles,  plant_comparisons, plant_shifts,
        plant_registers,  plant_moves,     plant_arithmetic,  plant_offsets,
        plant_predicates, plant_constants, plant_types,
    };
    planter p = { .arena = a, .out = out };
    for (const char *line = ptx; *line; line += *line == '\n') {
        size_t length = strcspn(line, "\n");
        const char *code = line + strspn(line, " ");
        p.line++;
        line += length;
        p.previous = p.in;
        if (code > line || !take_apart(a, code, &p.in))
            continue;
        p.before = print(a, &p.in);
        for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
            kinds[i](&p);
        note_defined(&p);
    }
}

const char *replace_line(arena *a, const char *ptx, unsigned line, const char *by,
                         const char *declarations)
{
    strbuf text = strbuf_new(a);
    const char *body = strstr(ptx, ".reg ");
    for (unsigned number = 1; *ptx; number++) {
        size_t length = strcspn(ptx, "\n");
        if (body && ptx + strspn(ptx, " ") == body)
            strbuf_put(&text, declarations);
        if (number == line)
            strbuf_put(&text, by);
        else
            strbuf_bytes(&text, ptx, length);
        ptx += length;
        strbuf_bytes(&text, ptx, *ptx == '\n');
        ptx += *ptx == '\n';
    }
    return text.text;
}
