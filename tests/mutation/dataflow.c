#include "mutation/dataflow.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* A set of registers, by class and number: "%rd12" is number 12 of its class. */
enum { CLASSES = 8, MOST_REGISTERS = 1 << 16 };

typedef struct register_set {
    bool has[CLASSES][MOST_REGISTERS];
} register_set;

static size_t register_length(const char *at)
{
    size_t name = *at == '%' ? 1 + strspn(at + 1, "rdfhp") : 0;
    return name > 1 ? name + strspn(at + name, "0123456789") : 0;
}

/* Returns the set's flag for the register at `at`, NULL if there is no register's name. */
static bool *place_of(register_set *set, const char *at)
{
    static const char classes[] = "rfhp";
    if (!register_length(at))
        return NULL;
    const char *class = strchr(classes, at[1]);
    size_t name = 1 + strspn(at + 1, "rdfhp");
    unsigned long number = strtoul(at + name, NULL, 10);
    return class && number < MOST_REGISTERS
               ? &set->has[2 * (class - classes) + (at[2] == 'd')][number]
               : NULL;
}

/* Returns true if the text up to end names a register of the set. */
static bool names_one(register_set *set, const char *at, const char *end)
{
    for (; at < end; at++) {
        const bool *has = place_of(set, at);
        if (has && *has)
            return true;
    }
    return false;
}

/* Adds every register that the text names before end. Returns true if any was new. */
static bool add_all(register_set *set, const char *at, const char *end)
{
    bool added = false;
    for (; at < end; at++) {
        bool *has = place_of(set, at);
        if (has && !*has)
            *has = added = true;
    }
    return added;
}

/* Returns the end of an instruction's result, its first operand. */
static const char *result_end(const char *line, const char *end)
{
    const char *brace = memchr(line, '{', (size_t)(end - line));
    const char *comma = memchr(line, ',', (size_t)(end - line));
    if (brace && comma && brace < comma)
        comma = memchr(line, '}', (size_t)(end - line));
    return comma ? comma : end;
}

static bool starts(const char *text, const char *with)
{
    return strncmp(text, with, strlen(with)) == 0;
}

static const char *skip_guard(const char *code)
{
    size_t guard = *code == '@' ? strcspn(code, " \n") : 0;
    return code + guard + strspn(code + guard, " ");
}

/* Adds the results of a line that depends on data. Returns true if any was new. */
static bool add_results(register_set *set, const char *line, const char *end)
{
    bool writes =
        !starts(line, "st.") && !starts(line, "bra") && !starts(line, ".") && !starts(line, "$");
    const char *result = result_end(line, end);
    return writes && (starts(line, "ld.") || names_one(set, result, end)) &&
           add_all(set, line, result);
}

bool depends_on_position_alone(arena *a, const char *text, unsigned number)
{
    register_set *set = arena_zalloc(a, sizeof *set);
    bool alone = false;
    for (bool more = true; more;) {
        unsigned at = 1;
        more = false;
        for (const char *line = text; *line; at++) {
            const char *code = line + strspn(line, " "), *end = code + strcspn(code, ";\n");
            more |= add_results(set, skip_guard(code), end);
            if (*code == '@' && names_one(set, code, end))
                return false;
            if (at == number)
                alone = !names_one(set, code, end);
            line += strcspn(line, "\n");
            line += *line == '\n';
        }
    }
    return alone;
}

/* Returns true if an instruction does more than compute its result from registers. */
static bool has_effect(const char *code)
{
    static const char *const pure[] = { "add.", "sub.", "mul.", "mad.", "mov.", "cvt.",
                                        "shl.", "shr.", "and.", "or.",  "xor.", "selp." };
    for (size_t i = 0; i < sizeof pure / sizeof *pure; i++)
        if (starts(code, pure[i]))
            return false;
    return true;
}

bool result_is_unused(arena *a, const char *text, unsigned number)
{
    register_set *used = arena_zalloc(a, sizeof *used);
    bool unused = false;
    for (bool more = true; more;) {
        unsigned at = 1;
        more = false;
        for (const char *line = text; *line; at++) {
            const char *code = line + strspn(line, " "), *end = code + strcspn(code, ";\n");
            const char *result = result_end(code, end);
            bool effect = has_effect(code), wanted = names_one(used, code, result);
            if (*code != '.' && (effect || wanted))
                more |= add_all(used, effect ? code : result, end);
            if (at == number)
                unused = !effect && !wanted;
            line += strcspn(line, "\n");
            line += *line == '\n';
        }
    }
    return unused;
}

/* Returns true for the instructions without effect that has_effect lists, and for further ones. */
static bool is_pure(const char *code)
{
    static const char *const others[] = { "min.",  "max.", "div.", "rem.",
                                          "setp.", "bfe.", "not.", "ld.param.u64" };
    bool pure = !has_effect(code);
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        pure |= starts(code, others[i]);
    return pure;
}

static unsigned count_definitions(const char *text, const char *name, size_t length,
                                  const char **definition)
{
    unsigned count = 0;
    for (const char *line = text; *line; line += *line == '\n') {
        const char *code = line + strspn(line, " "), *end = code + strcspn(code, ";\n");
        const char *guarded = skip_guard(code), *result = result_end(guarded, end);
        bool writes =
            *code != '.' && *code != '/' && !starts(guarded, "st.") && !starts(guarded, "bra");
        for (const char *at = guarded; writes && at < result; at++)
            if (register_length(at) == length && strncmp(at, name, length) == 0) {
                count++;
                *definition = code;
            }
        line += strcspn(line, "\n");
    }
    return count;
}

/* Marks the lines that define the registers named before end, and their operands' definitions.
 * Returns false if a register is defined more than once, or from more than registers. */
static bool mark_definitions(const char *text, const char *at, const char *end, bool *marked)
{
    for (; at < end; at++) {
        const char *definition;
        size_t length = register_length(at);
        if (!length)
            continue;
        if (count_definitions(text, at, length, &definition) != 1 || !is_pure(definition))
            return false;
        if (marked[definition - text])
            continue;
        marked[definition - text] = true;
        const char *stop = definition + strcspn(definition, ";\n");
        if (!mark_definitions(text, result_end(definition, stop), stop, marked))
            return false;
    }
    return true;
}

static bool mark_operands(const char *text, const char *instruction, bool *marked)
{
    const char *end = instruction + strcspn(instruction, ";");
    return mark_definitions(text, result_end(instruction, end), end, marked);
}

const char *operand_slice(arena *a, const char *text, const char *one, const char *other)
{
    bool *marked = arena_zalloc(a, strlen(text) + 1);
    strbuf slice = strbuf_new(a);
    if (!mark_operands(text, one, marked) || !mark_operands(text, other, marked))
        return NULL;
    for (const char *at = text; *at; at++)
        if (marked[at - text])
            strbuf_format(&slice, "%.*s;\n", (int)strcspn(at, ";"), at);
    return slice.text;
}

unsigned first_instruction(const char *text)
{
    unsigned number = 1;
    for (const char *line = text; *line; number++) {
        const char *code = line + strspn(line, " ");
        if (starts(code, "ld.param") || starts(code, "mov."))
            return number;
        line += strcspn(line, "\n");
        line += *line == '\n';
    }
    return 0;
}

const char *line_phase(arena *a, const char *text, unsigned number)
{
    const char *phase = "";
    for (const char *line = text; *line && number; number--) {
        const char *code = line + strspn(line, " ");
        if (code != line && starts(code, "// "))
            phase = code + strlen("// ");
        line += strcspn(line, "\n");
        line += *line == '\n';
    }
    return arena_copy(a, phase, strcspn(phase, "\n"));
}
