/* Prints PTX text that is readable and identical to the byte on every run.
 *
 * Registers are numbered by class in the order of first appearance. Mnemonics, operands and
 * comments are aligned in columns.
 *
 * Text would dominate generation time, so lines are assembled by hand. Every put_ function writes
 * at a position and returns the end of its text, within room reserved for the longest line.
 * Register names and mnemonics are cached. */
#include "ptx/ir.h"

#include <string.h>

#include "base/strbuf.h"

#define INDENTATION "    "
enum { OPERAND_COLUMN = 24, COMMENT_COLUMN = 64 };

/* LONGEST_LINE bounds a line: at most one name of LONGEST_NAME per value, address and comment. */
enum {
    LONGEST_LINE = (MAX_RESULTS + MAX_OPERANDS + 2) * (LONGEST_NAME + 1) + MAX_SUMS * 16 + 256,
    USUAL_LINE = 56,
    USUAL_HEAD = 1024
};

static const char *const special_names[SPECIAL_COUNT] = {
    [SPECIAL_TID_X] = "%tid.x",       [SPECIAL_CTAID_X] = "%ctaid.x",
    [SPECIAL_CTAID_Y] = "%ctaid.y",   [SPECIAL_CTAID_Z] = "%ctaid.z",
    [SPECIAL_NCTAID_X] = "%nctaid.x", [SPECIAL_NCTAID_Y] = "%nctaid.y",
    [SPECIAL_NCTAID_Z] = "%nctaid.z", [SPECIAL_LANEID] = "%laneid",
};

/* A printed register, e.g. "%rd12". */
typedef struct register_name {
    char text[15];
    uint8_t length; /* 0: not numbered yet */
} register_name;

/* A mnemonic with its indentation and the padding up to the operands. */
typedef struct mnemonic {
    uint8_t length;
    char text[LONGEST_MNEMONIC + COMMENT_COLUMN];
} mnemonic;

typedef struct printer {
    ptx *p;
    unsigned isa;
    bool specific;              /* an instruction needs exactly this target */
    register_name *names;       /* by register */
    uint32_t used[CLASS_COUNT]; /* number of registers per class */
    uint32_t *label_number;     /* 0: name without a number */
    /* Cache of each instruction's last mnemonic and key (see put_beginning); 0: empty. */
    uint32_t kept[INST_KINDS];
    mnemonic *mnemonics;
} printer;

/* Writes a literal. Inline, so that its length is a constant. */
static inline char *put(char *at, const char *text)
{
    size_t length = strlen(text);
    memcpy(at, text, length);
    return at + length;
}

/* Writes a name, usually a short one. */
static char *put_name(char *at, const char *name)
{
    while (*name)
        *at++ = *name++;
    return at;
}

static char *put_number(char *at, uint64_t number)
{
    if (number >= 10)
        at = put_number(at, number / 10);
    *at = (char)('0' + number % 10);
    return at + 1;
}

static char *put_signed(char *at, int64_t number)
{
    if (number < 0)
        *at++ = '-';
    return put_number(at, number < 0 ? 0 - (uint64_t)number : (uint64_t)number);
}

static char *put_hex(char *at, uint64_t bits, unsigned digits)
{
    for (unsigned n = digits; n-- > 0; bits >>= 4)
        at[n] = "0123456789ABCDEF"[bits & 15];
    return at + digits;
}

/* Pads to a column by at least one space. A fixed number of bytes compiles to a few moves. */
static inline char *put_spaces(char *at, const char *line, int column)
{
    memset(at, ' ', COMMENT_COLUMN);
    return at - line < column ? at + (column - (at - line)) : at + 1;
}

static inline char *put_register(const printer *w, char *at, uint32_t id)
{
    const register_name *name = &w->names[id];
    if (!name->length)
        return put(at, "%undefined");          /* only in a kernel that is not verified */
    memcpy(at, name->text, sizeof name->text); /* fixed size: two moves */
    return at + name->length;
}

/* Writes an immediate: masks and large tables in hexadecimal, sizes and counts in decimal. */
static char *put_immediate(char *at, val v, ptx_op o)
{
    static const uint16_t limits[INST_KINDS] = {
        [INST_AND] = 64,  [INST_OR] = 64,   [INST_XOR] = 64,    [INST_LOP3] = 64,
        [INST_PRMT] = 64, [INST_DP4A] = 64, [INST_SELP] = 4096,
    };
    bool pattern = limits[o] ? v.bits > limits[o] : v.bits == UINT32_MAX;
    switch (v.type) {
    case F32:
        return put_hex(put(at, "0f"), v.bits, 8);
    case S32:
        return put_signed(at, (int32_t)v.bits);
    case S64:
        return put_signed(at, (int64_t)v.bits);
    default:
        if (!pattern)
            return put_number(at, v.bits);
        unsigned digits = v.bits > UINT32_MAX   ? 16
                          : v.bits > UINT16_MAX ? 8
                          : v.bits > UINT8_MAX  ? 4
                                                : 2;
        return put_hex(put(at, "0x"), v.bits, digits);
    }
}

static inline char *put_value(const printer *w, char *at, const val *v, ptx_op o)
{
    if (v->id)
        return put_register(w, at, v->id);
    return v->kind == VAL_SHARED ? put_name(at, w->p->shared.items[v->bits].name)
                                 : put_immediate(at, *v, o);
}

static char *put_label(const printer *w, char *at, uint32_t label)
{
    *at++ = '$';
    at = put_name(at, w->p->labels.items[label].name);
    at = put_name(at, w->p->labels.items[label].suffix);
    if (w->label_number[label]) {
        *at++ = '_';
        at = put_number(at, w->label_number[label]);
    }
    return at;
}

/* Returns the number of values of a load or store. */
static unsigned vector_width(const inst *i)
{
    return i->results ? i->results : i->operands - 1u;
}

/* Writes the mnemonic of ops.def with its placeholders filled in. */
static char *put_mnemonic(char *at, const inst *i)
{
    for (const char *text = op_table[i->op].text; *text; text++) {
        if (*text != '%') {
            *at++ = *text;
            continue;
        }
        switch (*++text) {
        case 't':
            at = put_name(at, type_table[i->type].name);
            break;
        case 'm':
            at =
                put_name(at, i->type == F16 ? type_table[F16].bits_name : type_table[i->type].name);
            break;
        case 'b':
            at = put_name(at, type_table[i->type].bits_name);
            break;
        case 's':
            at = put_name(at, type_table[i->second].name);
            break;
        case 'r':
            at = BIT(i->type) & FLOATS ? put(at, ".rn") : at;
            break;
        case 'n':
            at = put_number(at, i->results);
            break;
        case 'c':
            at = put_number(at, 2 * i->results);
            break;
        default:
            if (vector_width(i) > 1)
                at = put_number(put(at, ".v"), vector_width(i));
        }
    }
    return at;
}

/* Writes the mnemonic by types and counts. A guarded branch starts with "@!%p1 bra". */
static inline char *put_beginning(printer *w, char *line, const inst *i)
{
    enum { USUAL = 32 }; /* fixed size: a few moves */
    const op_info *info = &op_table[i->op];
    bool alone = i->op == INST_RET || (!*info->results && !*info->operands);
    mnemonic *m = &w->mnemonics[i->op];
    uint32_t key = i->type | (uint32_t)i->second << 8 | (uint32_t)i->results << 16 |
                   (uint32_t)i->operands << 24;
    if (w->kept[i->op] != key || !key) {
        w->kept[i->op] = key;
        char *end = put_mnemonic(put(m->text, INDENTATION), i);
        if (!alone)
            end = put_spaces(end, m->text, OPERAND_COLUMN);
        m->length = (uint8_t)(end - m->text);
    }
    if (info->flags & BRANCH && i->operands) {
        char *at = put(put(line, INDENTATION), i->guard_not ? "@!" : "@");
        at = put_mnemonic(put(put_register(w, at, i->operand[0].id), " "), i);
        return alone ? at : put_spaces(at, line, OPERAND_COLUMN);
    }
    memcpy(line, m->text, USUAL);
    if (m->length > USUAL)
        memcpy(line + USUAL, m->text + USUAL, LONGEST_MNEMONIC - USUAL);
    return line + m->length;
}

static inline char *put_results(const printer *w, char *at, const inst *i)
{
    if (i->results == 1 && !(op_table[i->op].flags & GROUPS))
        return put_register(w, at, i->result[0]);
    for (unsigned r = 0; r < i->results; r++)
        at = put_register(w, put(at, r ? ", " : "{"), i->result[r]);
    return put(at, "}");
}

static inline char *put_values(const printer *w, char *at, const val *v, unsigned count, ptx_op o)
{
    for (unsigned n = 0; n < count; n++)
        at = put_value(w, n ? put(at, ", ") : at, &v[n], o);
    return at;
}

/* Writes values with the braces of ops.def: "{%r1, %r2}, %r3". */
static char *put_groups(const printer *w, char *at, const inst *i)
{
    const val *v = i->operand;
    bool first = true;
    for (const char *letter = op_table[i->op].operands; *letter; letter++) {
        if (*letter == '}') {
            at = put(at, "}");
            continue;
        }
        if (!first)
            at = put(at, ", ");
        first = *letter == '{';
        at = first ? put(at, "{") : put_value(w, at, v++, i->op);
    }
    return at;
}

/* Writes "[%rd1+16]". */
static char *put_address(const printer *w, char *at, const val *base, int32_t offset, ptx_op o)
{
    at = put_value(w, put(at, "["), base, o);
    if (offset)
        at = put_signed(put(at, "+"), offset); /* "+" also before a negative offset: the grammar of
                                                  ptxas */
    return put(at, "]");
}

/* Writes "[%rd1+16], {%f1, %f2}": the address and the stored values. */
static char *put_access(const printer *w, char *at, const inst *i)
{
    unsigned values = i->operands - 1u;
    at = put_address(w, at, &i->operand[values], i->offset, i->op);
    if (!values)
        return at;
    at = put_values(w, put(at, values > 1 ? ", {" : ", "), i->operand, values, i->op);
    return values > 1 ? put(at, "}") : at;
}

static char *put_comment(const printer *w, char *at, const char *line, const inst *i)
{
    return put_name(put(put_spaces(at, line, COMMENT_COLUMN), "// "), ptx_comment_of(w->p, i));
}

static char *put_instruction(printer *w, char *line, const inst *i)
{
    char *at;
    if (i->op == INST_LABEL) {
        at = put(put_label(w, put(line++, "\n"), i->target), ":");
        return put(i->commented ? put_comment(w, at, line, i) : at, "\n");
    }
    if (i->op == INST_PHASE)
        return put(put_name(put(line, "\n" INDENTATION "// "), ptx_comment_of(w->p, i)), "\n");
    unsigned flags = op_table[i->op].flags;
    at = put_beginning(w, line, i);
    if (i->results)
        at = put(put_results(w, at, i), ", ");
    switch (i->op) {
    case INST_RET:
        break;
    case INST_LD_PARAM:
        at = put(put_name(put(at, "["), w->p->params.items[i->target].name), "]");
        break;
    case INST_MOV_SREG:
        at = put_name(at, special_names[i->target]);
        break;
    case INST_MOV_GLOBAL:
        at = put_name(at, w->p->globals.items[i->target].name);
        break;
    case INST_BRA:
        at = put_label(w, at, i->target);
        break;
    default:
        if (is_copy(i->op)) { /* "[%r1+16], [%rd1], 16, %r2": to, from, bytes written and read */
            at = put_address(w, at, &i->operand[i->operands - 1], i->offset, i->op);
            at = put_address(w, put(at, ", "), &i->operand[0], (int32_t)i->target, i->op);
            at = put_values(w, put(at, ", "), i->operand + 1, i->operands - 2u, i->op);
        } else if (flags & (GLOBAL | SHARED))
            at = put_access(w, at, i);
        else if (flags & GROUPS)
            at = put_groups(w, at, i);
        else
            at = put_values(w, at, i->operand, i->operands, i->op);
    }
    at = put(at, ";");
    return put(i->commented ? put_comment(w, at, line, i) : at, "\n");
}

static void print_array(strbuf *out, const char *space, const char *name, type t, unsigned align)
{
    strbuf_format(out, "%s .align %u .%s %s[", space, align, type_table[t].bits_name, name);
}

/* Prints the arrays outside the kernel: tables and, as ptxas requires, external arrays. */
static void print_module_arrays(const ptx *p, strbuf *out)
{
    enum { WORDS_A_LINE = 5, DIGITS = 16 };
    for (size_t n = 0; n < p->globals.count; n++) {
        const ptx_global *array = &p->globals.items[n];
        for (const char *const *line = array->comment; line && *line; line++)
            strbuf_format(out, "// %s\n", *line);
        print_array(out, ".global", array->name, U64, ARRAY_ALIGNMENT);
        strbuf_format(out, "%u] = {", array->count);
        for (unsigned i = 0; i < array->count; i++) {
            strbuf_put(out, i % WORDS_A_LINE ? ", 0x" : i ? ",\n    0x" : "\n    0x");
            strbuf_hex(out, array->words[i], DIGITS);
        }
        strbuf_put(out, "\n};\n\n");
    }
    for (size_t n = 0; n < p->shared.count; n++) {
        const ptx_shared *array = &p->shared.items[n];
        if (array->count != PTX_DYNAMIC)
            continue;
        print_array(out, ".extern .shared", array->name, array->type, array->align);
        strbuf_put(out, "];\n\n");
    }
}

/* Prints the head. The suffix "a" appears only if an instruction needs that target. */
static void print_head(const printer *w, strbuf *out)
{
    const ptx *p = w->p;
    for (size_t n = 0; n < p->headings.count; n++)
        strbuf_format(out, "// %s\n", p->headings.items[n]);
    strbuf_format(out, ".version %u.%u\n.target sm_%u%s\n.address_size 64\n\n", w->isa / 10,
                  w->isa % 10, p->target->sm, w->specific ? "a" : "");
    print_module_arrays(p, out);
    strbuf_format(out, ".visible .entry %s(", p->name);
    for (size_t n = 0; n < p->params.count; n++) {
        const ptx_parameter *param = &p->params.items[n];
        strbuf_format(out, "%s\n    .param .%s %s", n ? "," : "", type_table[param->type].name,
                      param->name);
    }
    strbuf_format(out, ")\n.reqntid %u, 1, 1\n", p->block);
    if (p->max_registers)
        strbuf_format(out, ".maxnreg %u\n", p->max_registers);
    strbuf_put(out, "{\n");
}

static void print_declarations(const printer *w, strbuf *out)
{
    for (unsigned c = 0; c < CLASS_COUNT; c++)
        if (w->used[c])
            strbuf_format(out, "    .reg %-6s %s<%u>;\n", class_table[c].type,
                          class_table[c].prefix, w->used[c] + 1);
    for (size_t n = 0; n < w->p->shared.count; n++) {
        const ptx_shared *array = &w->p->shared.items[n];
        if (array->count == PTX_DYNAMIC)
            continue;
        print_array(out, "    .shared", array->name, array->type, array->align);
        strbuf_format(out, "%u];\n", array->count);
    }
    strbuf_char(out, '\n');
}

/* Returns the number for a repeated label name, from 2 on; 0 for the first one. */
static uint32_t label_number(const ptx *p, const uint32_t *above, size_t count, uint32_t label)
{
    uint32_t same = 0;
    const ptx_label *own = &p->labels.items[label];
    for (size_t n = 0; n < count; n++) {
        const ptx_label *other = &p->labels.items[above[n]];
        same += strcmp(other->name, own->name) == 0 && strcmp(other->suffix, own->suffix) == 0;
    }
    return same ? same + 1 : 0;
}

/* Names registers, numbers labels and finds the PTX version, which the head needs. Results are in
 * order of first appearance, since no register is read before its definition. */
static void survey(printer *w)
{
    ptx *p = w->p;
    uint32_t *labels = arena_alloc(p->arena, p->labels.count * sizeof *labels);
    size_t count = 0;
    for (size_t n = 0; n < p->count; n++) {
        const inst *i = p->list[n];
        for (unsigned r = 0; r < i->results; r++) {
            register_name *name = &w->names[i->result[r]];
            unsigned class = register_classes[p->registers.items[i->result[r]].type];
            const class_info *info = &class_table[class];
            if (name->length)
                continue;
            memcpy(name->text, info->prefix, sizeof info->prefix);
            char *end = put_number(name->text + info->prefix_length, ++w->used[class]);
            name->length = (uint8_t)(end - name->text);
        }
        if (op_table[i->op].isa > w->isa)
            w->isa = op_table[i->op].isa;
        w->specific |= (op_table[i->op].flags & SPECIFIC) != 0;
        if (i->op != INST_LABEL)
            continue;
        w->label_number[i->target] = label_number(p, labels, count, i->target);
        labels[count++] = i->target;
    }
}

void ptx_print(ptx *p, arena *a, ptx_output *out)
{
    printer w = { .p = p,
                  .isa = p->target->isa,
                  .names = arena_zalloc(p->arena, p->registers.count * sizeof *w.names),
                  .label_number = arena_zalloc(p->arena, p->labels.count * sizeof *w.label_number),
                  .mnemonics = arena_alloc(p->arena, INST_KINDS * sizeof *w.mnemonics) };
    survey(&w);
    strbuf text = { .arena = a, .capacity = USUAL_HEAD + p->count * USUAL_LINE + LONGEST_LINE };
    text.text = arena_alloc(a, text.capacity);
    print_head(&w, &text);
    print_declarations(&w, &text);
    for (size_t n = 0; n < p->count; n++) {
        char *line = strbuf_reserve(&text, LONGEST_LINE);
        text.length += (size_t)(put_instruction(&w, line, p->list[n]) - line);
    }
    strbuf_put(&text, "}\n");
    arena_shrink(a, text.text, text.length + 1);

    out->text = text.text;
    out->length = text.length;
    out->isa = w.isa;
    out->specific = w.specific;
    out->shared_bytes = 0;
    for (size_t n = 0; n < p->shared.count; n++) {
        const ptx_shared *array = &p->shared.items[n];
        unsigned align = array->count == PTX_DYNAMIC ? ARRAY_ALIGNMENT : array->align;
        out->shared_bytes = (out->shared_bytes + align - 1) / align * align;
        out->shared_bytes += (size_t)array->count * type_table[array->type].bytes;
    }
}
