/* PTX text: made to be read, and the same to the byte on every run.
 *
 * Registers are numbered by class in the order in which they first appear. Mnemonics, operands and
 * comments stand in columns. The text is put together by hand, since generation time is mostly
 * printing.
 */
#include "ptx/ir.h"

#include <string.h>

#include "base/strbuf.h"

enum { OPERAND_COLUMN = 24, COMMENT_COLUMN = 64, LONGEST_LINE = 1024 };

static const char *const sreg_names[SREG_COUNT] = {
    [SREG_TID_X] = "%tid.x",     [SREG_CTAID_X] = "%ctaid.x",   [SREG_CTAID_Y] = "%ctaid.y",
    [SREG_CTAID_Z] = "%ctaid.z", [SREG_NCTAID_X] = "%nctaid.x",
};

/* A register as printed, "%rd12": numbered within its class when it first appears. */
typedef struct register_name {
    char text[15];
    uint8_t length; /* 0: not printed so far */
} register_name;

/* A mnemonic with its indentation, padded to the operands' column. */
typedef struct mnemonic {
    uint8_t type, second, width;
    uint8_t length; /* 0: none so far */
    char text[OPERAND_COLUMN + 8];
} mnemonic;

typedef struct printer {
    ptx *p;
    mnemonic last[OP_KINDS]; /* of every instruction: most come again with the same types */
    char *at;
    register_name *names; /* by register */
    uint32_t used[CLASS_COUNT];
    uint32_t *label_number; /* 0: the name alone */
} printer;

static void put(printer *w, const char *text)
{
    size_t length = strlen(text);
    memcpy(w->at, text, length);
    w->at += length;
}

static void put_number(printer *w, uint64_t number)
{
    if (number < 10) {
        *w->at++ = (char)('0' + number);
        return;
    }
    char digits[20];
    int count = 0;
    do
        digits[count++] = (char)('0' + number % 10);
    while (number /= 10);
    while (count)
        *w->at++ = digits[--count];
}

static void put_signed(printer *w, int64_t number)
{
    if (number < 0)
        *w->at++ = '-';
    put_number(w, number < 0 ? 0 - (uint64_t)number : (uint64_t)number);
}

static void put_hex(printer *w, uint64_t bits, int digits)
{
    while (digits-- > 0)
        *w->at++ = "0123456789ABCDEF"[bits >> 4 * digits & 15];
}

static void put_spaces(printer *w, const char *line, int column)
{
    do
        *w->at++ = ' ';
    while (w->at - line < column);
}

static void put_register(printer *w, uint32_t id)
{
    register_name *name = &w->names[id];
    char *start = w->at;
    if (!name->length) {
        const type_info *t = &type_table[w->p->registers.items[id].type];
        put(w, t->prefix);
        put_number(w, ++w->used[t->reg_class]);
        name->length = (uint8_t)(w->at - start);
        memcpy(name->text, start, name->length);
        return;
    }
    memcpy(start, name->text, sizeof name->text); /* more than there is: one move */
    w->at += name->length;
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

static void put_value(printer *w, val v, op o)
{
    switch (v.kind) {
    case VAL_REG:
    case VAL_VAR:
        put_register(w, v.id);
        break;
    case VAL_SHARED:
        put(w, w->p->shared.items[v.id].name);
        break;
    default:
        if (v.type == F32) {
            put(w, "0f");
            put_hex(w, v.bits, 8);
        } else if (v.type == F64) {
            put(w, "0d");
            put_hex(w, v.bits, 16);
        } else if (v.type == S32 || v.type == S64) {
            put_signed(w, v.type == S32 ? (int32_t)v.bits : (int64_t)v.bits);
        } else if (is_bit_pattern(o, v.bits)) {
            put(w, "0x");
            put_hex(w, v.bits,
                    v.bits > UINT32_MAX   ? 16
                    : v.bits > UINT16_MAX ? 8
                    : v.bits > UINT8_MAX  ? 4
                                          : 2);
        } else {
            put_number(w, v.bits);
        }
    }
}

static void put_label(printer *w, uint32_t label)
{
    *w->at++ = '$';
    put(w, w->p->labels.items[label].name);
    put(w, w->p->labels.items[label].suffix);
    if (w->label_number[label]) {
        *w->at++ = '_';
        put_number(w, w->label_number[label]);
    }
}

static unsigned vector_width(const inst *i)
{
    return op_table[i->op].flags & STORE ? i->operands : i->results;
}

/* Fills in the placeholders of ops.def. */
static void put_mnemonic(printer *w, const inst *i)
{
    for (const char *text = op_table[i->op].text; *text; text++) {
        if (*text != '%') {
            *w->at++ = *text;
            continue;
        }
        switch (*++text) {
        case 't':
            put(w, type_table[i->type].name);
            break;
        case 'm':
            put(w, i->type == F16 ? type_table[F16].bits_name : type_table[i->type].name);
            break;
        case 'b':
            put(w, type_table[i->type].bits_name);
            break;
        case 's':
            put(w, type_table[i->second].name);
            break;
        default:
            if (vector_width(i) > 1) {
                put(w, ".v");
                put_number(w, vector_width(i));
            }
        }
    }
}

/* An unguarded instruction up to its operands. */
static void put_indented_mnemonic(printer *w, const inst *i)
{
    mnemonic *m = &w->last[i->op];
    unsigned width = vector_width(i);
    if (!m->length || m->type != i->type || m->second != i->second || m->width != width) {
        char *line = w->at;
        put(w, "    ");
        put_mnemonic(w, i);
        put_spaces(w, line, OPERAND_COLUMN);
        *m = (mnemonic){ .type = i->type, .second = i->second, .width = (uint8_t)width };
        m->length = (uint8_t)(w->at - line);
        memcpy(m->text, line, m->length);
        return;
    }
    memcpy(w->at, m->text, sizeof m->text); /* more than there is, so that it is a few moves */
    w->at += m->length;
}

static void put_address(printer *w, const inst *i)
{
    *w->at++ = '[';
    put_value(w, i->base, i->op);
    if (i->offset) {
        if (i->offset > 0)
            *w->at++ = '+';
        put_signed(w, i->offset);
    }
    *w->at++ = ']';
}

static void put_results(printer *w, const inst *i)
{
    if (i->results > 1)
        *w->at++ = '{';
    for (unsigned r = 0; r < i->results; r++) {
        if (r)
            put(w, ", ");
        put_register(w, i->result[r]);
    }
    if (i->results > 1)
        *w->at++ = '}';
}

static void put_values(printer *w, const inst *i)
{
    bool vector = op_table[i->op].flags & STORE && i->operands > 1;
    if (vector)
        *w->at++ = '{';
    for (unsigned n = 0; n < i->operands; n++) {
        if (n)
            put(w, ", ");
        put_value(w, i->operand[n], i->op);
    }
    if (vector)
        *w->at++ = '}';
}

static void put_operands(printer *w, const inst *i)
{
    unsigned flags = op_table[i->op].flags;
    if (i->results) {
        put_results(w, i);
        put(w, ", ");
    }
    if (i->op == OP_LD_PARAM) {
        *w->at++ = '[';
        put(w, w->p->params.items[i->target].name);
        *w->at++ = ']';
    } else if (i->op == OP_MOV_SREG) {
        put(w, sreg_names[i->target]);
    } else if (i->op == OP_BRA) {
        put_label(w, i->target);
    } else if (flags & LOAD) {
        put_address(w, i);
    } else if (flags & STORE) {
        put_address(w, i);
        put(w, ", ");
        put_values(w, i);
    } else {
        put_values(w, i);
    }
}

static void put_instruction(printer *w, const inst *i)
{
    const char *line = w->at;
    if (i->op == OP_LABEL) {
        put_label(w, i->target);
        put(w, ":\n");
        return;
    }
    bool has_operands = i->results || i->operands || i->op == OP_BRA;
    if (!i->guard && has_operands) {
        put_indented_mnemonic(w, i);
    } else {
        put(w, "    ");
        if (i->guard) {
            put(w, i->guard_not ? "@!" : "@");
            put_register(w, i->guard);
            *w->at++ = ' ';
        }
        put_mnemonic(w, i);
        if (has_operands)
            put_spaces(w, line, OPERAND_COLUMN);
    }
    if (has_operands)
        put_operands(w, i);
    *w->at++ = ';';
    if (i->comment) {
        put_spaces(w, line, COMMENT_COLUMN);
        put(w, "// ");
        put(w, i->comment);
    }
    *w->at++ = '\n';
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

static void print_head(const ptx *p, strbuf *out, size_t *body_offset)
{
    for (size_t n = 0; n < p->headings.count; n++) {
        strbuf_put(out, "// ");
        strbuf_put(out, p->headings.items[n]);
        strbuf_char(out, '\n');
    }
    unsigned isa = ptx_isa(p);
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
    static const struct {
        const char *type, *prefix;
    } classes[CLASS_COUNT] = {
        [CLASS_PRED] = { ".pred", "%p" }, [CLASS_16] = { ".b16", "%h" },
        [CLASS_32] = { ".b32", "%r" },    [CLASS_F32] = { ".f32", "%f" },
        [CLASS_64] = { ".b64", "%rd" },   [CLASS_F64] = { ".f64", "%fd" },
    };
    for (unsigned c = 0; c < CLASS_COUNT; c++) {
        if (!w->used[c])
            continue;
        size_t line = out->length;
        strbuf_put(out, "    .reg ");
        strbuf_put(out, classes[c].type);
        strbuf_pad(out, line, 15);
        strbuf_char(out, ' ');
        strbuf_put(out, classes[c].prefix);
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
    strbuf code = strbuf_new(p->arena), text = strbuf_new(p->arena);
    printer w = { .p = p };
    w.names = arena_zalloc(p->arena, p->registers.count * sizeof *w.names);
    number_labels(&w);
    /* The code first: it decides how many registers there are. */
    for (size_t n = 0; n < p->count; n++) {
        char *start = strbuf_reserve(&code, LONGEST_LINE);
        w.at = start;
        if (p->list[n]->op == OP_LABEL)
            *w.at++ = '\n';
        put_instruction(&w, p->list[n]);
        code.length += (size_t)(w.at - start);
    }
    strbuf_reserve(&text, code.length + 2048);
    print_head(p, &text, &out->body_offset);
    print_declarations(&w, &text);
    strbuf_bytes(&text, code.text, code.length);
    strbuf_put(&text, "}\n");
    out->text = text.text;
    out->length = text.length;
    out->isa = ptx_isa(p);
    out->shared_bytes = ptx_shared_bytes(p);
}

const char *ptx_print_unverified(ptx *p)
{
    ptx_output out;
    ptx_print(p, &out);
    return out.text;
}
