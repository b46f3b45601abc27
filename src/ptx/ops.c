/* Tables of instructions and types, and operands that are not results of instructions. */
#include "ptx/ir.h"

#include <string.h>

const op_info op_table[INST_KINDS] = {
#define OP(id, text, results, operands, types, isa, sm, flags) \
    [INST_##id] = { text, results, operands, isa, sm, types, flags },
#include "ptx/ops.def"
#undef OP
};

const type_info type_table[] = {
    [NO_TYPE] = { "", "", 0, NO_TYPE }, [PRED] = { "pred", "pred", 1, PRED },
    [U8] = { "u8", "b8", 1, U32 },      [S8] = { "s8", "b8", 1, S32 },
    [U16] = { "u16", "b16", 2, U32 },   [S16] = { "s16", "b16", 2, S32 },
    [F16] = { "f16", "b16", 2, F16 },   [U32] = { "u32", "b32", 4, U32 },
    [S32] = { "s32", "b32", 4, S32 },   [F32] = { "f32", "b32", 4, F32 },
    [U64] = { "u64", "b64", 8, U64 },   [S64] = { "s64", "b64", 8, S64 },
};

const uint8_t register_classes[] = {
    [NO_TYPE] = CLASS_COUNT, [PRED] = CLASS_PRED, [U8] = CLASS_32,  [S8] = CLASS_32,
    [U16] = CLASS_32,        [S16] = CLASS_32,    [F16] = CLASS_16, [U32] = CLASS_32,
    [S32] = CLASS_32,        [F32] = CLASS_F32,   [U64] = CLASS_64, [S64] = CLASS_64,
};

const class_info class_table[CLASS_COUNT] = {
    [CLASS_PRED] = { ".pred", "%p", 2 }, [CLASS_16] = { ".b16", "%h", 2 },
    [CLASS_32] = { ".b32", "%r", 2 },    [CLASS_F32] = { ".f32", "%f", 2 },
    [CLASS_64] = { ".b64", "%rd", 3 },
};

const char *op_name(ptx_op o)
{
    return op_table[o].text;
}

val val_of_var(var v)
{
    v.storage.kind = VAL_VAR;
    return v.storage;
}

val val_of_int(long long number)
{
    return (val){ .kind = VAL_NUMBER, .bits = (uint64_t)number };
}

val val_of_f32(float number)
{
    uint32_t bits;
    memcpy(&bits, &number, sizeof bits);
    return (val){ .kind = VAL_IMM, .type = F32, .bits = bits };
}

val imm(type t, long long number)
{
    uint64_t mask = type_table[t].bytes == 8 ? UINT64_MAX : UINT32_MAX;
    return (val){ .kind = VAL_IMM, .type = (uint8_t)t, .bits = (uint64_t)number & mask };
}
