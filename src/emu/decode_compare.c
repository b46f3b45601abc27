/* Comparisons, selections and predicates. */
#include "emu/decoder.h"
#include "emu/machine.h"

void decode_predicate_move(decoder *d)
{
    decode_expect(d, 2, 2);
    d->op.dst[0] = decode_predicate_result(d, decode_operand(d, 0));
    decode_predicate(d, 0, 1);
    d->op.exec = exec_predicate_move;
}

void decode_predicate_not(decoder *d)
{
    decode_predicate_move(d);
    d->op.exec = exec_predicate_not;
}

void decode_predicate_logic(decoder *d)
{
    decode_expect(d, 3, 3);
    d->op.combine = (uint8_t)(d->in->name[0] == 'a'   ? COMBINE_AND
                              : d->in->name[0] == 'o' ? COMBINE_OR
                                                      : COMBINE_XOR);
    d->op.dst[0] = decode_predicate_result(d, decode_operand(d, 0));
    decode_predicate(d, 1, 1);
    if (d->op.pred_not)
        decode_error(d, "'!' stands before the last operand only");
    d->op.src[0] = d->op.src[1];
    decode_predicate(d, 1, 2);
    d->op.exec = exec_predicate_logic;
}

static void take_compare(decoder *d, ptx_type type)
{
    static const struct {
        const char *name;
        ptx_compare compare;
    } names[] = {
        { "eq", COMPARE_EQ },   { "ne", COMPARE_NE },   { "lt", COMPARE_LT },
        { "le", COMPARE_LE },   { "gt", COMPARE_GT },   { "ge", COMPARE_GE },
        { "lo", COMPARE_LT },   { "ls", COMPARE_LE },   { "hi", COMPARE_GT },
        { "hs", COMPARE_GE },   { "equ", COMPARE_EQU }, { "neu", COMPARE_NEU },
        { "ltu", COMPARE_LTU }, { "leu", COMPARE_LEU }, { "gtu", COMPARE_GTU },
        { "geu", COMPARE_GEU }, { "num", COMPARE_NUM }, { "nan", COMPARE_NAN },
    };
    const char *name = d->in->modifiers[0];
    type_kind kind = emu_type_kind(type);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(names[i].name, name) == 0)
            d->op.compare = (uint8_t)names[i].compare;
    bool unordered = d->op.compare >= COMPARE_EQU;
    bool of_unsigned = name[0] == 'h' || strcmp(name, "lo") == 0 || strcmp(name, "ls") == 0;
    if ((unordered && kind != KIND_FLOAT) || (of_unsigned && kind != KIND_UNSIGNED) ||
        (kind == KIND_BITS && d->op.compare > COMPARE_NE))
        decode_error(d, "this comparison does not exist for this type");
}

static void decode_comparison(decoder *d, unsigned results)
{
    ptx_type type = instruction_type(d->in);
    d->op.combine = (uint8_t)instruction_combine(d->in);
    bool combined = d->op.combine != COMBINE_NONE;
    decode_expect(d, results + 2 + combined, results + 2 + combined);
    d->op.type2 = (uint8_t)type;
    if (d->op.mods & MOD_FTZ && type != TYPE_f32 && type != TYPE_f16)
        decode_error(d, "'.ftz' does not go with this type");
    take_compare(d, type);
    decode_source(d, 0, results, type);
    decode_source(d, 1, results + 1, type);
    d->op.src[2] = PREDICATE_TRUE;
    if (combined)
        decode_predicate(d, 2, results + 2);
}

void decode_setp(decoder *d)
{
    const operand *to = decode_operand(d, 0);
    decode_comparison(d, 1);
    d->op.dst[0] = decode_predicate_result(d, to);
    d->op.dst[1] = decode_pair_result(d, to);
    d->op.exec = exec_setp;
}

void decode_set(decoder *d)
{
    decode_comparison(d, 1);
    d->op.type = (uint8_t)emu_type_named(d->in->modifiers[d->in->modifier_count - 2]);
    decode_result(d, 0, 0, (ptx_type)d->op.type);
    d->op.exec = exec_set;
}

void decode_selp(decoder *d)
{
    ptx_type type = instruction_type(d->in);
    decode_expect(d, 4, 4);
    decode_result(d, 0, 0, type);
    decode_source(d, 0, 1, type);
    decode_source(d, 1, 2, type);
    decode_predicate(d, 2, 3);
    d->op.exec = emu_type_bits(type) == 64 ? exec_selp64 : exec_selp32;
}

void decode_testp(decoder *d)
{
    static const char *const names[] = { "finite",     "infinite", "number",
                                         "notanumber", "normal",   "subnormal" };
    ptx_type type = instruction_type(d->in);
    decode_expect(d, 2, 2);
    d->op.type = (uint8_t)type;
    d->op.variant = (uint8_t)instruction_which(d->in, names, 6);
    d->op.dst[0] = decode_predicate_result(d, decode_operand(d, 0));
    decode_source(d, 0, 1, type);
    d->op.exec = exec_testp;
}
