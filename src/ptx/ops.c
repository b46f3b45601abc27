/* What is known of instructions and types. */
#include "ptx/ir.h"

const op_info op_table[OP_KINDS] = {
#define OP(id, text, results, operands, types, isa, sm, flags)                             \
    [OP_##id] = { text, results, operands, sizeof(results) - 1, sizeof(operands) - 1, isa, \
                  sm,   types,   flags },
#include "ptx/ops.def"
#undef OP
};

const type_info type_table[] = {
    [NO_TYPE] = { "", "", 0, 0, NO_TYPE },       [PRED] = { "pred", "pred", 1, CLASS_PRED, PRED },
    [U8] = { "u8", "b8", 1, CLASS_32, U32 },     [S8] = { "s8", "b8", 1, CLASS_32, S32 },
    [U16] = { "u16", "b16", 2, CLASS_32, U32 },  [S16] = { "s16", "b16", 2, CLASS_32, S32 },
    [F16] = { "f16", "b16", 2, CLASS_16, F16 },  [U32] = { "u32", "b32", 4, CLASS_32, U32 },
    [S32] = { "s32", "b32", 4, CLASS_32, S32 },  [F32] = { "f32", "b32", 4, CLASS_F32, F32 },
    [U64] = { "u64", "b64", 8, CLASS_64, U64 },  [S64] = { "s64", "b64", 8, CLASS_64, S64 },
    [F64] = { "f64", "b64", 8, CLASS_F64, F64 },
};

const class_info class_table[CLASS_COUNT] = {
    [CLASS_PRED] = { ".pred", "%p" }, [CLASS_16] = { ".b16", "%h" },
    [CLASS_32] = { ".b32", "%r" },    [CLASS_F32] = { ".f32", "%f" },
    [CLASS_64] = { ".b64", "%rd" },   [CLASS_F64] = { ".f64", "%fd" },
};

const char *op_name(op o)
{
    return op_table[o].text;
}
