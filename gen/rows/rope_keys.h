/* The keys of heads, and of families that turn them by RoPE. */
#ifndef PTXGEN_GEN_ROWS_ROPE_KEYS_H
#define PTXGEN_GEN_ROWS_ROPE_KEYS_H

#include "kernel/family.h"

#define KEY_HEAD_DIM(values)                                                                \
    {                                                                                       \
        .name = "head_dim", .summary = "values a head", .field = KEY_FIELD(shape.head_dim), \
        .min = (values), .max = 256, .multiple_of = (values), .required = true, .tag = "d"  \
    }
#define KEY_NUM_HEADS                                                                       \
    {                                                                                       \
        .name = "num_heads", .summary = "query heads", .field = KEY_FIELD(shape.num_heads), \
        .min = 1, .max = 65535, .required = true, .tag = "h"                                \
    }

#define KEY_ROPE_STYLE(said)                                                     \
    {                                                                            \
        .name = "rope", .summary = said, .field = KEY_FIELD(options.rope.style), \
        .choices = rope_style_choices                                            \
    }

#define ROPE_REAL(key_name, what, member, range, word)                              \
    {                                                                               \
        .name = key_name, .summary = what, .field = KEY_FIELD(options.rope.member), \
        .only_with = KEY_FIELD(options.rope.scaling), .tag = word, .real = &(range) \
    }

#define KEY_N_ROT                                                                      \
    {                                                                                  \
        .name = "n_rot", .summary = "first values of a head that turn",                \
        .field = KEY_FIELD(options.rope.dims), .min = 2, .max = 256, .multiple_of = 2, \
        .like = KEY_FIELD(shape.head_dim), .tag = "rot"                                \
    }

/* Angles, magnitude and the temperature of q; dims is the key of how many values turn. */
#define KEYS_ROPE(dims) KEYS_ROPE_ANGLES(dims), KEYS_ROPE_TEMPERATURE
#define KEYS_ROPE_ANGLES(dims)                                                                    \
    { .name = "rope_base",                                                                        \
      .summary = "of pair i's base^(-2i/" dims ")",                                               \
      .field = KEY_FIELD(options.rope.base),                                                      \
      .tag = "base",                                                                              \
      .real = &rope_base_range },                                                                 \
        { .name = "rope_factors",                                                                 \
          .summary = "angles by an input, too",                                                   \
          .field = KEY_FIELD(options.rope.factors),                                               \
          .choices = rope_factors_choices },                                                      \
        { .name = "rope_scaling",                                                                 \
          .summary = "of angles",                                                                 \
          .field = KEY_FIELD(options.rope.scaling),                                               \
          .choices = rope_scaling_choices },                                                      \
        ROPE_REAL("rope_factor", "by which they are divided", factor, rope_divisor_range, "by"),  \
        ROPE_REAL("rope_original_context", "yarn: positions trained", original_context,           \
                  rope_context_range, "of"),                                                      \
        ROPE_REAL("rope_extension", "yarn: share of the mix", extension, rope_extension_range,    \
                  "ext"),                                                                         \
        ROPE_REAL("rope_beta_fast", "yarn: turns of what stays", beta_fast, rope_beta_fast_range, \
                  "fast"),                                                                        \
        ROPE_REAL("rope_beta_slow", "yarn: turns of what is divided", beta_slow,                  \
                  rope_beta_slow_range, "slow"),                                                  \
    {                                                                                             \
        .name = "rope_magnitude", .summary = "of cos and sin",                                    \
        .field = KEY_FIELD(options.rope.magnitude), .tag = "mag", .real = &rope_magnitude_range   \
    }
#define KEYS_ROPE_TEMPERATURE                                                   \
    { .name = "temperature_length",                                             \
      .summary = "q by 1 + scale ln(1 + floor(pos/length))",                    \
      .field = KEY_FIELD(options.rope.temperature_length),                      \
      .tag = "every",                                                           \
      .real = &rope_temperature_length_range },                                 \
    {                                                                           \
        .name = "temperature_scale", .summary = "of that",                      \
        .field = KEY_FIELD(options.rope.temperature_scale),                     \
        .only_with = KEY_FIELD(options.rope.temperature_length), .tag = "temp", \
        .real = &rope_temperature_range                                         \
    }

/* By which angles are divided, besides. */
#define ROPE_FACTORS(count)                                                                     \
    {                                                                                           \
        .name = "factors", .kind = PARAM_IN, .format = FORMAT_F32, .values = count, .align = 4, \
        .only_with = KEY_FIELD(options.rope.factors), .fitted = true, .settled = true           \
    }

extern const choice rope_style_choices[], rope_scaling_choices[], rope_factors_choices[];
extern const real_range rope_base_range, rope_divisor_range, rope_context_range,
    rope_extension_range, rope_beta_fast_range, rope_beta_slow_range, rope_magnitude_range,
    rope_temperature_range, rope_temperature_length_range;

/* YaRN knows the positions trained; a temperature's length is a whole number. */
const char *check_rope(const instance *in, arena *a, const char **blamed);

#endif
