/* Rotary position embedding (RoPE) of a head whose values are spread over the lanes of a warp, and
 * stores of heads to cache rows. Lane i % 32 has value i of a head. Part j of a head is its 32
 * values from 32 j on. */
#pragma once

#include "kernel/family.h"
#include "ptx/ptx.h"

enum { HEAD_PART = 32, MOST_HEAD_PARTS = PROBLEM_MOST_HEAD_DIM / HEAD_PART };

/* Returns the number of parts of a head. The last part may use fewer lanes. */
unsigned head_parts(const instance *in);

/* Returns the index in the head of the lane's value of a part. A lane without a value gets the
 * index of the head's last value. */
val head_place(ptx *p, const instance *in, unsigned part);
/* Returns true if the lane has a value of the part. */
val head_has(ptx *p, const instance *in, unsigned part);

/* The pair that a value is rotated in. The first value of a pair uses -sin. A value after the
 * rotated ones is its own partner. */
typedef struct rope_pair {
    val pair;    /* index of the pair, for cos and sin */
    val partner; /* the partner's index in the head */
    val first;   /* predicate: the value is the first of its pair */
    val turns;   /* predicate: the value is rotated */
} rope_pair;
rope_pair rope_pair_of(ptx *p, const instance *in, unsigned part);

/* cos and sin of a pair's angle at a position, times rope_magnitude. The error is at most 2e-7. */
typedef struct rope_turn {
    val cos, sin;
} rope_turn;
rope_turn rope_turn_at(ptx *p, const instance *in, val pair, val position);

/* Return x rotated with its partner by the pair's angle, or x itself if it is not rotated. */
val rope_turned_by(ptx *p, const rope_pair *r, const rope_turn *by, val x, val partner);
val rope_turned(ptx *p, const instance *in, const rope_pair *r, val position, val x, val partner);

/* Returns the factor of q at a position; only with temperature_length. */
val rope_temperature(ptx *p, const instance *in, val position);

/* Stores the lane's value of a part to a cache row of kv_type, if the predicate where holds. All
 * lanes must call it, also lanes without a value: q8_0 quantizes over the warp. */
void cache_store(ptx *p, const instance *in, val row, unsigned part, val value, val where);

/* The keys of heads and of families that apply RoPE. */
#define KEY_HEAD_DIM(values, most)                                                    \
    KEY_NUMBER("head_dim", "values per head, e.g. 128", shape.head_dim, values, most, \
               .multiple_of = (values), .required = true, .tag = "d")
#define KEY_NUM_HEADS                                                                            \
    KEY_NUMBER("num_heads", "query heads, e.g. 32", shape.num_heads, 1, 65535, .required = true, \
               .tag = "h")

#define KEY_ROPE_STYLE(said) KEY_WORD("rope", said, options.rope.style, rope_style_choices)

#define ROPE_REAL(key_name, what, member, word, ...)                 \
    KEY_REAL(key_name, what, options.rope.member, word, __VA_ARGS__, \
             .only_with = KEY_FIELD(options.rope.scaling))

#define KEY_N_ROT                                                                            \
    KEY_NUMBER("n_rot", "leading values of a head to rotate, e.g. 64", options.rope.dims, 2, \
               PROBLEM_MOST_HEAD_DIM, .multiple_of = 2, .like = KEY_FIELD(shape.head_dim),   \
               .tag = "rot")

/* Keys of the angles, the magnitude and the temperature of q. dims is the name of the key with the
 * number of rotated values. */
#define KEYS_ROPE(dims) KEYS_ROPE_ANGLES(dims), KEYS_ROPE_TEMPERATURE
#define KEYS_ROPE_ANGLES(dims)                                                                     \
    KEY_REAL("rope_base", "base of angles, base^(-2i/" dims "), e.g. 1e4", options.rope.base,      \
             "base", RANGE(.min = 1.0001, .max = 1e12, .def = 1e4)),                               \
        KEY_WORD("rope_factors", "divide: angles are divided by the input factors",                \
                 options.rope.factors, rope_factors_choices),                                      \
        KEY_WORD("rope_scaling", "context extension", options.rope.scaling, rope_scaling_choices), \
        ROPE_REAL("rope_factor", "divisor of the angles, e.g. 8", factor, "by",                    \
                  RANGE(.min = 1e-3, .max = 1e6, .def = 1)),                                       \
        ROPE_REAL("rope_original_context", "yarn: context of training, e.g. 8192",                 \
                  original_context, "of", RANGE(.max = UINT32_MAX, .def_text = "none")),           \
        ROPE_REAL("rope_extension", "yarn: strength of the blend, 0 to 1", extension, "ext",       \
                  RANGE(.max = 1, .def = 1)),                                                      \
        ROPE_REAL("rope_beta_fast", "yarn: pairs with more turns are kept", beta_fast, "fast",     \
                  RANGE(.min = 1e-3, .max = 1e6, .def = 32)),                                      \
        ROPE_REAL("rope_beta_slow", "yarn: pairs with fewer turns are divided", beta_slow, "slow", \
                  RANGE(.min = 1e-3, .max = 1e6, .def = 1)),                                       \
        KEY_REAL("rope_magnitude", "factor of cos and sin", options.rope.magnitude, "mag",         \
                 RANGE(.min = 1e-3, .max = 1e3, .def = 1))
/* Keys of interleaved multi-axis RoPE (Qwen3-VL) of text, whose positions are equal in all axes. */
#define KEYS_ROPE_SECTIONS                                                                     \
    ROPE_SECTION("rope_section_t", "interleaved axes: pairs of time, e.g. 24", 0, "st"),       \
        ROPE_SECTION("rope_section_h", "pairs of height, e.g. 20", 1, "sh"),                   \
        ROPE_SECTION("rope_section_w", "pairs of width; pair i turns if i/3 < section i%3", 2, \
                     "sw")
#define ROPE_SECTION(key_name, said, axis, word)                                          \
    KEY_NUMBER(key_name, said, options.rope.sections[axis], 0, PROBLEM_MOST_HEAD_DIM / 2, \
               .zero_is_none = true, .tag = word)
#define KEYS_ROPE_TEMPERATURE                                                        \
    KEY_REAL("temperature_length", "q is times 1 + scale ln(1 + floor(pos/length))", \
             options.rope.temperature_length, "every",                               \
             RANGE(.max = UINT32_MAX, .def_text = "none")),                          \
        KEY_REAL("temperature_scale", "scale of that formula, e.g. 0.1",             \
                 options.rope.temperature_scale, "temp", RANGE(.max = 1e3),          \
                 .only_with = KEY_FIELD(options.rope.temperature_length))

/* The input of rope_factors: divisors of the angles, one per pair. */
#define ROPE_FACTORS(count)                                                  \
    IN(F32, factors, count, 4, .only_with = KEY_FIELD(options.rope.factors), \
       .random = RANDOM_FITTED, .order = ORDER_SETTLED)

extern const choice rope_style_choices[], rope_scaling_choices[], rope_factors_choices[];

/* Checks that rope_scaling = yarn has rope_original_context, that temperature_length is a whole
 * number, and that sections have all pairs. Returns NULL, or a message and the key that it blames. */
const char *check_rope(const instance *in, arena *a, const char **blamed);
