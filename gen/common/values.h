/* Arrays of f32, f16 or bf16 in global memory: neighbouring values are loaded as f32, and rounded
 * to nearest even when they are stored. Also the keys and parameters of kernels with such arrays.
 */
#pragma once

#include "kernel/family.h"
#include "ptx/ptx.h"

enum { MOST_VALUES = 8 };

/* Load or store 1, 2, 4 or 8 neighbouring values, up to 16 bytes per instruction. The address is a
 * multiple of their total size, or of 16 bytes. */
void values_load(ptx *p, format f, val at, unsigned count, val *values);
void values_store(ptx *p, format f, val at, unsigned count, const val *values);

/* Returns the bits of an f32 as bf16, rounded to nearest even. A NaN keeps its upper half and is
 * quiet. */
val bfloat_bits(ptx *p, val x);

#define FLOAT_TYPES    (UINT64_C(1) << TYPE_F32 | UINT64_C(1) << TYPE_F16 | UINT64_C(1) << TYPE_BF16)
#define KEY_TYPE(said) KEY_WORD("type", said, x_type, out_choices, .allowed = FLOAT_TYPES)
/* The type of the result. */
#define KEY_OUT(said, types)                                                                  \
    KEY_WORD("out", said, y_type, out_choices, .allowed = (types), .like = KEY_FIELD(x_type), \
             .tag = "to_")
/* Any number of rows; with rows = run_time, the number is a launch parameter. */
#define KEYS_OF_ANY_ROWS                                                                         \
    KEY_NUMBER("m", "rows; with rows = run_time, at most 65535 m per launch", shape.m, 1, 65535, \
               .def = 1, .counted_with = KEY_FIELD(rows_mode), .tag = "m"),                      \
        KEY_ROWS

#define TYPED(id, how, type_field, count)                                             \
    .name = #id, .kind = how, .format = FORMAT_F32, .type_in = KEY_FIELD(type_field), \
    .values = count, .align = 16
#define TYPED_OUT(id, count)                \
    {                                       \
        TYPED(id, PARAM_OUT, y_type, count) \
    }
#define TYPED_IN(id, count)                \
    {                                      \
        TYPED(id, PARAM_IN, x_type, count) \
    }
