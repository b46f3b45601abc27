/* PTX types and the representation of a warp's values.
 *
 * A register is a vector with one element per lane. Registers of up to 32 bits have 32-bit
 * elements, whose bits above the register's width are zero. 64-bit registers have 64-bit elements.
 * A predicate is a lane_mask with one bit per lane. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

enum { WARP_LANES = 32 };

typedef uint32_t lane_mask;
typedef unsigned long long ull; /* argument type of %llu */
#define ALL_LANES 0xffffffffu

typedef union lanes32 {
    uint32_t u32[WARP_LANES];
    int32_t s32[WARP_LANES];
    float f32[WARP_LANES];
} lanes32;

typedef union lanes64 {
    uint64_t u64[WARP_LANES];
    int64_t s64[WARP_LANES];
    double f64[WARP_LANES];
} lanes64;

/* name, bits, kind of value */
#define PTX_TYPES(X)           \
    X(pred, 1, KIND_PREDICATE) \
    X(b8, 8, KIND_BITS)        \
    X(b16, 16, KIND_BITS)      \
    X(b32, 32, KIND_BITS)      \
    X(b64, 64, KIND_BITS)      \
    X(u8, 8, KIND_UNSIGNED)    \
    X(u16, 16, KIND_UNSIGNED)  \
    X(u32, 32, KIND_UNSIGNED)  \
    X(u64, 64, KIND_UNSIGNED)  \
    X(s8, 8, KIND_SIGNED)      \
    X(s16, 16, KIND_SIGNED)    \
    X(s32, 32, KIND_SIGNED)    \
    X(s64, 64, KIND_SIGNED)    \
    X(f16, 16, KIND_FLOAT)     \
    X(bf16, 16, KIND_FLOAT)    \
    X(f16x2, 32, KIND_FLOAT)   \
    X(bf16x2, 32, KIND_FLOAT)  \
    X(f32, 32, KIND_FLOAT)     \
    X(f64, 64, KIND_FLOAT)

typedef enum type_kind {
    KIND_NONE,
    KIND_PREDICATE,
    KIND_BITS,
    KIND_UNSIGNED,
    KIND_SIGNED,
    KIND_FLOAT,
} type_kind;

typedef enum ptx_type {
    TYPE_NONE,
#define X(name, bits, kind) TYPE_##name,
    PTX_TYPES(X)
#undef X
} ptx_type;

static const struct {
    const char *name;
    unsigned bits;
    type_kind kind;
} ptx_types[] = { [TYPE_NONE] = { "", 0, KIND_NONE },
#define X(name, bits, kind) [TYPE_##name] = { #name, bits, kind },
                  PTX_TYPES(X)
#undef X
};

/* Returns the type with a name like "u32", without the dot, or TYPE_NONE. */
static inline ptx_type emu_type_named(const char *name)
{
    size_t i = sizeof ptx_types / sizeof *ptx_types;
    while (--i && strcmp(ptx_types[i].name, name) != 0)
        continue;
    return (ptx_type)i;
}

static inline const char *emu_type_name(unsigned type)
{
    return ptx_types[type].name;
}

static inline unsigned emu_type_bits(unsigned type)
{
    return ptx_types[type].bits;
}

static inline unsigned emu_type_bytes(unsigned type)
{
    return emu_type_bits(type) / 8;
}

static inline type_kind emu_type_kind(unsigned type)
{
    return ptx_types[type].kind;
}

/* C types with the names of PTX types, for emu_ops.def. 16-bit and packed floats are bits. */
typedef uint16_t u16, b16, f16, bf16;
typedef int16_t s16;
typedef uint32_t u32, b32, f16x2, bf16x2;
typedef int32_t s32;
typedef uint64_t u64, b64;
typedef int64_t s64;
typedef float f32;
typedef double f64;

/* Reinterprets bits as another type. */
#define SAME_BITS(name, R, A)               \
    static inline R name(A value)           \
    {                                       \
        R bits;                             \
        memcpy(&bits, &value, sizeof bits); \
        return bits;                        \
    }
SAME_BITS(float_of_bits, float, u32)
SAME_BITS(bits_of_float, u32, float)
SAME_BITS(double_of_bits, double, u64)
SAME_BITS(bits_of_double, u64, double)

/* Defines get_u32(register, lane), put_u32(register, lane, value), lanes_of_u32 for each type. */
#define PTX_VALUES(X)                 \
    X(b16, lanes32, u32, uint16_t)    \
    X(u16, lanes32, u32, uint16_t)    \
    X(s16, lanes32, u32, uint16_t)    \
    X(f16, lanes32, u32, uint16_t)    \
    X(bf16, lanes32, u32, uint16_t)   \
    X(b32, lanes32, u32, uint32_t)    \
    X(u32, lanes32, u32, uint32_t)    \
    X(s32, lanes32, s32, int32_t)     \
    X(f16x2, lanes32, u32, uint32_t)  \
    X(bf16x2, lanes32, u32, uint32_t) \
    X(f32, lanes32, f32, float)       \
    X(b64, lanes64, u64, uint64_t)    \
    X(u64, lanes64, u64, uint64_t)    \
    X(s64, lanes64, s64, int64_t)     \
    X(f64, lanes64, f64, double)

#define X(type, lanes, member, stored)                             \
    typedef lanes lanes_of_##type;                                 \
    static inline type get_##type(const void *from, int lane)      \
    {                                                              \
        return (type)((const lanes *)from)->member[lane];          \
    }                                                              \
    static inline void put_##type(lanes *to, int lane, type value) \
    {                                                              \
        to->member[lane] = (stored)value;                          \
    }
PTX_VALUES(X)
#undef X

/* Bit masks of the lanes. A table, since baseline vector code has no shift by the lane number. */
#define LANE_BITS_4(i) \
    UINT32_C(1) << (i), UINT32_C(2) << (i), UINT32_C(4) << (i), UINT32_C(8) << (i)
static const lane_mask lane_bits[WARP_LANES] = {
    LANE_BITS_4(0),  LANE_BITS_4(4),  LANE_BITS_4(8),  LANE_BITS_4(12),
    LANE_BITS_4(16), LANE_BITS_4(20), LANE_BITS_4(24), LANE_BITS_4(28),
};

/* Loops over the lanes of a mask. */
#define EACH_LANE(i, mask)               \
    for (int i = 0; i < WARP_LANES; i++) \
        if ((mask) >> i & 1)

/* Writes the elements of the lanes in mask to a register. */
static inline void write_lanes32(void *to, const lanes32 *from, lane_mask mask)
{
    lanes32 *reg = to;
    if (mask == ALL_LANES) {
        memcpy(reg, from, sizeof *reg);
        return;
    }
    for (int i = 0; i < WARP_LANES; i++)
        reg->u32[i] = mask & lane_bits[i] ? from->u32[i] : reg->u32[i];
}

static inline void write_lanes64(void *to, const lanes64 *from, lane_mask mask)
{
    lanes64 *reg = to;
    if (mask == ALL_LANES) {
        memcpy(reg, from, sizeof *reg);
        return;
    }
    for (int i = 0; i < WARP_LANES; i++)
        reg->u64[i] = mask >> i & 1 ? from->u64[i] : reg->u64[i];
}

/* Returns a lane of a register of 32 bits or, if wide, 64 bits. */
static inline u64 get_bits(const void *from, int lane, bool wide)
{
    return wide ? get_u64(from, lane) : get_u32(from, lane);
}

static inline void write_lanes(void *to, const u64 *values, bool wide, lane_mask mask)
{
    if (wide) {
        write_lanes64(to, (const lanes64 *)(const void *)values, mask);
        return;
    }
    lanes32 narrow;
    for (int i = 0; i < WARP_LANES; i++)
        narrow.u32[i] = (u32)values[i];
    write_lanes32(to, &narrow, mask);
}

/* Returns the lowest lane of a mask, or the last lane for an empty mask. */
static inline int lowest_lane(lane_mask mask)
{
    return mask ? __builtin_ctz(mask) : WARP_LANES - 1;
}

static inline unsigned count_lanes(lane_mask mask)
{
    mask -= mask >> 1 & 0x55555555u;
    mask = (mask & 0x33333333u) + (mask >> 2 & 0x33333333u);
    return ((mask + (mask >> 4)) & 0x0f0f0f0fu) * 0x01010101u >> 24;
}
