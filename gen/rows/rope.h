/* Rotary position embedding of a head whose values are spread over the lanes of a warp, and the
 * cache rows that heads become. Value i of a head is lane i % 32's; the 32 values from 32 j on are
 * its part j. */
#ifndef PTXGEN_GEN_ROWS_ROPE_H
#define PTXGEN_GEN_ROWS_ROPE_H

#include "kernel/family.h"
#include "ptx/ptx.h"

enum { HEAD_PART = 32, MOST_HEAD_PARTS = 8 };

/* Parts of a head, of which the last may have fewer lanes. */
unsigned head_parts(const instance *in);

/* The place of the lane's value of a part in its head, and whether there is one: where there is
 * none, the place is that of the head's last value. */
val head_place(ptx *p, const instance *in, unsigned part);
val head_has(ptx *p, const instance *in, unsigned part);

/* The value with which another one turns: sin is minus sin for the first of the two. A value behind
 * those that turn has itself. */
typedef struct rope_pair {
    val pair;    /* number: of cos and sin */
    val partner; /* place in the head */
    val first;   /* predicates: it is the first of the two; */
    val turns;   /* it does turn */
} rope_pair;
rope_pair rope_pair_of(ptx *p, const instance *in, unsigned part);

/* cos and sin of a pair's angle at a position, times the magnitude: within 2e-7. */
typedef struct rope_turn {
    val cos, sin;
} rope_turn;
rope_turn rope_turn_at(ptx *p, const instance *in, val pair, val position);

/* A value of a pair, turned by its angle with its partner; behind those that turn, itself. */
val rope_turned_by(ptx *p, const rope_pair *r, const rope_turn *by, val x, val partner);
val rope_turned(ptx *p, const instance *in, const rope_pair *r, val position, val x, val partner);

/* What q is multiplied by at a position, where the options say so. */
val rope_temperature(ptx *p, const instance *in, val position);

/* Stores the lane's value of a part to a row of a cache of kv_type, where a predicate holds. Lanes
 * without a value and rows of q8_0 take part in any case. */
void cache_store(ptx *p, const instance *in, val row, unsigned part, val value, val where);

/* The keys of heads, and of families that turn them by RoPE. */
#define KEY_HEAD_DIM(values)                                                                      \
    KEY_NUMBER("head_dim", "values a head", shape.head_dim, values, 256, .multiple_of = (values), \
               .required = true, .tag = "d")
#define KEY_NUM_HEADS \
    KEY_NUMBER("num_heads", "query heads", shape.num_heads, 1, 65535, .required = true, .tag = "h")

#define KEY_ROPE_STYLE(said) KEY_WORD("rope", said, options.rope.style, rope_style_choices)

#define ROPE_REAL(key_name, what, member, word, ...)                 \
    KEY_REAL(key_name, what, options.rope.member, word, __VA_ARGS__, \
             .only_with = KEY_FIELD(options.rope.scaling))

#define KEY_N_ROT                                                                      \
    KEY_NUMBER("n_rot", "first values of a head that turn", options.rope.dims, 2, 256, \
               .multiple_of = 2, .like = KEY_FIELD(shape.head_dim), .tag = "rot")

/* Angles, magnitude and the temperature of q; dims is the key of how many values turn. */
#define KEYS_ROPE(dims) KEYS_ROPE_ANGLES(dims), KEYS_ROPE_TEMPERATURE
#define KEYS_ROPE_ANGLES(dims)                                                                \
    KEY_REAL("rope_base", "of pair i's base^(-2i/" dims ")", options.rope.base, "base",       \
             RANGE(.min = 1.0001, .max = 1e12, .def = 1e4)),                                  \
        KEY_WORD("rope_factors", "angles by an input, too", options.rope.factors,             \
                 rope_factors_choices),                                                       \
        KEY_WORD("rope_scaling", "of angles", options.rope.scaling, rope_scaling_choices),    \
        ROPE_REAL("rope_factor", "by which they are divided", factor, "by",                   \
                  RANGE(.min = 1e-3, .max = 1e6, .def = 1)),                                  \
        ROPE_REAL("rope_original_context", "yarn: positions trained", original_context, "of", \
                  RANGE(.max = UINT32_MAX, .def_text = "none")),                              \
        ROPE_REAL("rope_extension", "yarn: share of the mix", extension, "ext",               \
                  RANGE(.max = 1, .def = 1)),                                                 \
        ROPE_REAL("rope_beta_fast", "yarn: turns of what stays", beta_fast, "fast",           \
                  RANGE(.min = 1e-3, .max = 1e6, .def = 32)),                                 \
        ROPE_REAL("rope_beta_slow", "yarn: turns of what is divided", beta_slow, "slow",      \
                  RANGE(.min = 1e-3, .max = 1e6, .def = 1)),                                  \
        KEY_REAL("rope_magnitude", "of cos and sin", options.rope.magnitude, "mag",           \
                 RANGE(.min = 1e-3, .max = 1e3, .def = 1))
#define KEYS_ROPE_TEMPERATURE                                                            \
    KEY_REAL("temperature_length", "q by 1 + scale ln(1 + floor(pos/length))",           \
             options.rope.temperature_length, "every",                                   \
             RANGE(.max = UINT32_MAX, .def_text = "none")),                              \
        KEY_REAL("temperature_scale", "of that", options.rope.temperature_scale, "temp", \
                 RANGE(.max = 1e3), .only_with = KEY_FIELD(options.rope.temperature_length))

/* By which angles are divided, besides. */
#define ROPE_FACTORS(count)                                                  \
    IN(F32, factors, count, 4, .only_with = KEY_FIELD(options.rope.factors), \
       .random = RANDOM_FITTED, .order = ORDER_SETTLED)

extern const choice rope_style_choices[], rope_scaling_choices[], rope_factors_choices[];

/* YaRN knows the positions trained; a temperature's length is a whole number. */
const char *check_rope(const instance *in, arena *a, const char **blamed);

#endif
