/* The keys of heads, and of families that turn them by RoPE. */
#ifndef PTXGEN_GEN_ROWS_ROPE_KEYS_H
#define PTXGEN_GEN_ROWS_ROPE_KEYS_H

#include "kernel/family.h"

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
#define ROPE_FACTORS(count)                                                                  \
    IN(F32, factors, count, 4, .only_with = KEY_FIELD(options.rope.factors), .fitted = true, \
       .settled = true)

extern const choice rope_style_choices[], rope_scaling_choices[], rope_factors_choices[];

/* YaRN knows the positions trained; a temperature's length is a whole number. */
const char *check_rope(const instance *in, arena *a, const char **blamed);

#endif
