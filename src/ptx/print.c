/* PTX text: made to be read, and the same to the byte on every run.
 *
 * Registers are numbered by class in the order in which they first appear. Mnemonics, operands and
 * comments stand in columns.
 *
 * Most of a kernel's generation time would go into its text, so lines are put together by hand:
 * every put_ function writes at a place and returns the end of what it wrote, into room for the
 * longest line made beforehand, and register names and mnemonics are kept to be copied.
 */
#include "ptx/ir.h"

#include <string.h>

#include "base/strbuf.h"

enum { OPERAND_COLUMN = 24, COMMENT_COLUMN = 64 };

/* Room for a line: names are no longer than LONGEST_NAME, and a line has at most one a value, an
 * address and a comment; the rest is far shorter. */
enum {
    LONGEST_LINE = (MAX_VECTOR + 3) * (LONGEST_NAME + 1) + 256,
    USUAL_LINE = 56,
    USUAL_HEAD = 1024
};

static const char *const sreg_names[SREG_COUNT] = {
    [SREG_TID_X] = "%tid.x",     [SREG_CTAID_X] = "%ctaid.x",   [SREG_CTAID_Y] = "%ctaid.y",
    [SREG_CTAID_Z] = "%ctaid.z", [SREG_NCTAID_X] = "%nctaid.x", [SREG_NCTAID_Z] = "%nctaid.z",
};

/* A register as printed, "%rd12". */
typedef struct register_name {
    char text[15];
    uint8_t length; /* 0: not numbered so far */
} register_name;

/* A mnemonic with its indentation, padded to the operands' column; longer ones are not kept. */
typedef struct mnemonic {
    uint8_t type, second, width;
    uint8_t length; /* 0: none so far */
    char text[OPERAND_COLUMN + 8];
} mnemonic;

typedef struct printer {
    ptx *p;
    register_name *names;       /* by register */
    uint32_t used[CLASS_COUNT]; /* registers of each class */
    uint32_t *label_number;     /* 0: the name alone */
    mnemonic last[OP_KINDS];    /* of every instruction: most come again with the same types */
} printer;

/* A literal: inline, so that its length is a constant. */
static inline char *put(char *at, const char *text)
{
    size_t length = strlen(text);
    memcpy(at, text, length);
    return at + length;
}

/* A name, mostly of a few characters. */
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
    *at++ = (char)('0' + number % 10);
    return at;
}

static char *put_signed(char *at, int64_t number)
{
    if (number < 0)
        *at++ = '-';
    return put_number(at, number < 0 ? 0 - (uint64_t)number : (uint64_t)number);
}

static char *put_hex(char *at, uint64_t bits, int digits)
{
    while (digits-- > 0)
        *at++ = "0123456789ABCDEF"[bits >> 4 * digits & 15];
    return at;
}

/* Spaces up to a column, at least one. Writes more than that, so that it is a few moves. */
static inline char *put_spaces(char *at, const char *line, int column)
{
    memset(at, ' ', COMMENT_COLUMN);
    return at - line < column ? at + (column - (at - line)) : at + 1;
}

static void name_register(printer *w, uint32_t id)
{
    unsigned c = type_table[w->p->registers.items[id].type].reg_class;
    register_name *name = &w->names[id];
    char *end = put_number(put_name(name->text, class_table[c].prefix), ++w->used[c]);
    name->length = (uint8_t)(end - name->text);
}

/* Results stand in front of operands, and nothing is read before it is defined, so this is the
 * order of first appearance. */
static void name_registers(printer *w)
{
    w->names = arena_zalloc(w->p->arena, w->p->registers.count * sizeof *w->names);
    for (size_t n = 0; n < w->p->count; n++) {
        const inst *i = w->p->list[n];
        for (unsigned r = 0; r < i->results; r++)
            if (!w->names[i->result[r]].length)
                name_register(w, i->result[r]);
    }
}

static inline char *put_register(const printer *w, char *at, uint32_t id)
{
    const register_name *name = &w->names[id];
    if (!name->length)
        return put(at, "%undefined");          /* in a kernel that is not verified */
    memcpy(at, name->text, sizeof name->text); /* more than there is, so that it is two moves */
    return at + name->length;
}

/* Masks, selectors and tables are read digit by digit, sizes and counts as numbers. */
static bool is_bit_pattern(op o, uint64_t bits)
{
    enum { SMALL = 64, LARGE = 4096 };
    switch (o) {
    case OP_AND:
    case OP_OR:
    case OP_XOR:
    case OP_LOP3:
    case OP_PRMT:
    case OP_DP4A:
        return bits > SMALL;
    case OP_SELP:
        return bits > LARGE;
    default:
        return bits == UINT32_MAX;
    }
}

static char *put_immediate(char *at, val v, op o)
{
    switch (v.type) {
    case F32:
        return put_hex(put(at, "0f"), v.bits, 8);
    case F64:
        return put_hex(put(at, "0d"), v.bits, 16);
    case S32:
        return put_signed(at, (int32_t)v.bits);
    case S64:
        return put_signed(at, (int64_t)v.bits);
    default:
        if (!is_bit_pattern(o, v.bits))
            return put_number(at, v.bits);
        int digits = v.bits > UINT32_MAX   ? 16
                     : v.bits > UINT16_MAX ? 8
                     : v.bits > UINT8_MAX  ? 4
                                           : 2;
        return put_hex(put(at, "0x"), v.bits, digits);
    }
}

static char *put_value(const printer *w, char *at, val v, op o)
{
    if (val_register(v))
        return put_register(w, at, v.id);
    if (v.kind == VAL_SHARED)
        return put_name(at, w->p->shared.items[v.id].name);
    return put_immediate(at, v, o);
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

static unsigned vector_width(const inst *i)
{
    return op_table[i->op].flags & STORE ? i->operands : i->results;
}

/* Fills in the placeholders of ops.def. */
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
        default:
            if (vector_width(i) > 1)
                at = put_number(put(at, ".v"), vector_width(i));
        }
    }
    return at;
}

/* An unguarded instruction up to its operands. */
static char *put_indented_mnemonic(printer *w, char *line, const inst *i)
{
    mnemonic *m = &w->last[i->op];
    unsigned width = vector_width(i);
    if (m->length && m->type == i->type && m->second == i->second && m->width == width) {
        memcpy(line, m->text, sizeof m->text); /* more than there is, so that it is a few moves */
        return line + m->length;
    }
    char *end = put_spaces(put_mnemonic(put(line, "    "), i), line, OPERAND_COLUMN);
    if ((size_t)(end - line) <= sizeof m->text) {
        *m = (mnemonic){ i->type, i->second, (uint8_t)width, (uint8_t)(end - line), { 0 } };
        memcpy(m->text, line, sizeof m->text);
    }
    return end;
}

static char *put_address(const printer *w, char *at, const inst *i)
{
    *at++ = '[';
    at = put_value(w, at, i->base, i->op);
    if (i->offset) {
        if (i->offset > 0)
            *at++ = '+';
        at = put_signed(at, i->offset);
    }
    *at++ = ']';
    return at;
}

static char *put_results(const printer *w, char *at, const inst *i)
{
    if (i->results == 1)
        return put_register(w, at, i->result[0]);
    *at++ = '{';
    for (unsigned r = 0; r < i->results; r++)
        at = put_register(w, r ? put(at, ", ") : at, i->result[r]);
    *at++ = '}';
    return at;
}

static char *put_values(const printer *w, char *at, const inst *i)
{
    for (unsigned n = 0; n < i->operands; n++)
        at = put_value(w, n ? put(at, ", ") : at, i->operand[n], i->op);
    return at;
}

static char *put_stored(const printer *w, char *at, const inst *i)
{
    if (i->operands == 1)
        return put_values(w, at, i);
    *at++ = '{';
    at = put_values(w, at, i);
    *at++ = '}';
    return at;
}

static char *put_operands(const printer *w, char *at, const inst *i)
{
    if (i->results)
        at = put(put_results(w, at, i), ", ");
    if (i->operands && !(op_table[i->op].flags & STORE))
        return put_values(w, at, i);
    switch (i->op) {
    case OP_LD_PARAM:
        *at++ = '[';
        at = put_name(at, w->p->params.items[i->target].name);
        *at++ = ']';
        return at;
    case OP_MOV_SREG:
        return put_name(at, sreg_names[i->target]);
    case OP_BRA:
        return put_label(w, at, i->target);
    default:
        at = put_address(w, at, i);
        return i->operands ? put_stored(w, put(at, ", "), i) : at;
    }
}

static char *put_guard(const printer *w, char *at, const inst *i)
{
    at = put(at, i->guard_not ? "@!" : "@");
    at = put_register(w, at, i->guard);
    *at++ = ' ';
    return at;
}

static char *put_comment(char *at, const char *line, const char *comment)
{
    if (!comment)
        return at;
    return put_name(put(put_spaces(at, line, COMMENT_COLUMN), "// "), comment);
}

static char *put_instruction(printer *w, char *line, const inst *i)
{
    char *at;
    if (i->op == OP_LABEL) {
        *line++ = '\n';
        at = put(put_label(w, line, i->target), ":");
        return put(put_comment(at, line, i->comment), "\n");
    }
    bool has_operands = i->results || i->operands || i->op == OP_BRA;
    if (!i->guard && has_operands) {
        at = put_indented_mnemonic(w, line, i);
    } else {
        at = put(line, "    ");
        if (i->guard)
            at = put_guard(w, at, i);
        at = put_mnemonic(at, i);
        if (has_operands)
            at = put_spaces(at, line, OPERAND_COLUMN);
    }
    if (has_operands)
        at = put_operands(w, at, i);
    *at++ = ';';
    return put(put_comment(at, line, i->comment), "\n");
}

unsigned ptx_isa(const ptx *p)
{
    unsigned isa = p->target->isa;
    for (size_t n = 0; n < p->count; n++)
        if (op_table[p->list[n]->op].isa > isa)
            isa = op_table[p->list[n]->op].isa;
    return isa;
}

/* Arrays follow each other, each aligned to 16 bytes so that vector loads may be used on any. */
enum { SHARED_ALIGNMENT = 16 };

size_t ptx_shared_bytes(const ptx *p)
{
    size_t bytes = 0;
    for (size_t n = 0; n < p->shared.count; n++) {
        const ptx_shared *array = &p->shared.items[n];
        bytes = (bytes + SHARED_ALIGNMENT - 1) / SHARED_ALIGNMENT * SHARED_ALIGNMENT;
        bytes += (size_t)array->count * type_table[array->type].bytes;
    }
    return bytes;
}

/* ".align 16 .b32 partial[" */
static void print_array(const ptx_shared *array, strbuf *out)
{
    strbuf_put(out, " .align ");
    strbuf_unsigned(out, SHARED_ALIGNMENT);
    strbuf_put(out, " .");
    strbuf_put(out, type_table[array->type].bits_name);
    strbuf_char(out, ' ');
    strbuf_put(out, array->name);
    strbuf_char(out, '[');
}

/* External arrays stand outside the kernel, by the grammar of ptxas. */
static void print_dynamic_arrays(const ptx *p, strbuf *out)
{
    for (size_t n = 0; n < p->shared.count; n++) {
        if (p->shared.items[n].count != PTX_DYNAMIC)
            continue;
        strbuf_put(out, ".extern .shared");
        print_array(&p->shared.items[n], out);
        strbuf_put(out, "];\n\n");
    }
}

static void print_head(const ptx *p, unsigned isa, strbuf *out, size_t *body_offset)
{
    for (size_t n = 0; n < p->headings.count; n++) {
        strbuf_put(out, "// ");
        strbuf_put(out, p->headings.items[n]);
        strbuf_char(out, '\n');
    }
    strbuf_put(out, ".version ");
    strbuf_unsigned(out, isa / 10);
    strbuf_char(out, '.');
    strbuf_unsigned(out, isa % 10);
    strbuf_put(out, "\n.target ");
    strbuf_put(out, p->target->name);
    strbuf_char(out, '\n');
    *body_offset = out->length;
    strbuf_put(out, ".address_size 64\n\n");
    print_dynamic_arrays(p, out);
    strbuf_put(out, ".visible .entry ");
    strbuf_put(out, p->name);
    strbuf_char(out, '(');
    for (size_t n = 0; n < p->params.count; n++) {
        strbuf_put(out, n ? ",\n    .param ." : "\n    .param .");
        strbuf_put(out, type_table[p->params.items[n].type].name);
        strbuf_char(out, ' ');
        strbuf_put(out, p->params.items[n].name);
    }
    strbuf_put(out, ")\n.reqntid ");
    strbuf_unsigned(out, p->block);
    strbuf_put(out, ", 1, 1\n");
    if (p->min_blocks) {
        strbuf_put(out, ".minnctapersm ");
        strbuf_unsigned(out, p->min_blocks);
        strbuf_char(out, '\n');
    }
    if (p->max_registers) {
        strbuf_put(out, ".maxnreg ");
        strbuf_unsigned(out, p->max_registers);
        strbuf_char(out, '\n');
    }
    strbuf_put(out, "{\n");
}

static void print_declarations(const printer *w, strbuf *out)
{
    for (unsigned c = 0; c < CLASS_COUNT; c++) {
        if (!w->used[c])
            continue;
        size_t line = out->length;
        strbuf_put(out, "    .reg ");
        strbuf_put(out, class_table[c].type);
        strbuf_pad(out, line, 15);
        strbuf_char(out, ' ');
        strbuf_put(out, class_table[c].prefix);
        strbuf_char(out, '<');
        strbuf_unsigned(out, w->used[c] + 1);
        strbuf_put(out, ">;\n");
    }
    for (size_t n = 0; n < w->p->shared.count; n++) {
        const ptx_shared *array = &w->p->shared.items[n];
        if (array->count == PTX_DYNAMIC)
            continue;
        strbuf_put(out, "    .shared");
        print_array(array, out);
        strbuf_unsigned(out, array->count);
        strbuf_put(out, "];\n");
    }
    strbuf_char(out, '\n');
}

static bool same_name(const ptx_label *a, const ptx_label *b)
{
    return strcmp(a->name, b->name) == 0 && strcmp(a->suffix, b->suffix) == 0;
}

/* Gives the second and later labels of one name a number. */
static void number_labels(printer *w)
{
    ptx *p = w->p;
    w->label_number = arena_zalloc(p->arena, (p->labels.count + 1) * sizeof *w->label_number);
    uint32_t *printed = arena_alloc(p->arena, (p->labels.count + 1) * sizeof *printed);
    size_t count = 0;
    for (size_t n = 0; n < p->count; n++) {
        if (p->list[n]->op != OP_LABEL)
            continue;
        uint32_t label = p->list[n]->target, same = 0;
        for (size_t l = 0; l < count; l++)
            same += same_name(&p->labels.items[printed[l]], &p->labels.items[label]);
        w->label_number[label] = same ? same + 1 : 0;
        printed[count++] = label;
    }
}

void ptx_print(ptx *p, ptx_output *out)
{
    printer w = { .p = p };
    name_registers(&w);
    number_labels(&w);
    out->isa = ptx_isa(p);
    out->shared_bytes = ptx_shared_bytes(p);
    out->asked_target = p->asked_target;

    strbuf text = strbuf_new(p->arena);
    strbuf_reserve(&text, USUAL_HEAD + p->count * USUAL_LINE + LONGEST_LINE);
    print_head(p, out->isa, &text, &out->body_offset);
    print_declarations(&w, &text);
    for (size_t n = 0; n < p->count; n++) {
        char *line = strbuf_reserve(&text, LONGEST_LINE);
        text.length += (size_t)(put_instruction(&w, line, p->list[n]) - line);
    }
    strbuf_put(&text, "}\n");
    out->text = text.text;
    out->length = text.length;
}
