#include "gen/common/bytes.h"
#include "gen/common/values.h"

enum { HALF_BITS = 16, WORD_BYTES = 4, AT_ONCE = 4 };

/* Loads 32-bit words, up to four per instruction. */
static void load_words(ptx *p, type t, val at, unsigned count, val *words)
{
    unsigned at_once = count < AT_ONCE ? count : AT_ONCE;
    for (unsigned i = 0; i < count; i += at_once)
        ptx_load_values(p, INST_LD_GLOBAL, t, at_once, at, i * WORD_BYTES, words + i);
}

static void store_words(ptx *p, type t, val at, unsigned count, const val *words)
{
    unsigned at_once = count < AT_ONCE ? count : AT_ONCE;
    for (unsigned i = 0; i < count; i += at_once)
        ptx_store_values(p, INST_ST_GLOBAL, t, at_once, at, i * WORD_BYTES, words + i);
}

/* Converts a bf16 to f32: it is the upper half of the f32. */
static val wide_bfloat(ptx *p, val bits)
{
    return bits_as(p, F32, shl(p, bits, HALF_BITS));
}

void values_load(ptx *p, format f, val at, unsigned count, val *values)
{
    if (formats[f].block_bytes == 1) {
        val of_bytes[MOST_VALUES / 4], four[4];
        if (count == 1)
            of_bytes[0] = convert(p, U32, ld_global(p, U8, at, 0));
        else
            load_words(p, U32, at, count / 4, of_bytes);
        for (unsigned i = 0; i < count; i += 4) {
            (f == FORMAT_E4M3 ? e4m3_as_f32 : e5m2_as_f32)(p, of_bytes[i / 4], four);
            for (unsigned j = 0; j < 4 && i + j < count; j++)
                values[i + j] = four[j];
        }
    } else if (f == FORMAT_F32) {
        load_words(p, F32, at, count, values);
    } else if (count == 1) {
        values[0] = f == FORMAT_F16 ? convert(p, F32, ld_global(p, F16, at, 0))
                                    : wide_bfloat(p, ld_global(p, U16, at, 0));
    } else {
        val words[MOST_VALUES / 2];
        load_words(p, U32, at, count / 2, words);
        for (unsigned i = 0; i < count / 2; i++) {
            if (f == FORMAT_F16) {
                val2 two = halves(p, words[i]);
                values[2 * i] = convert(p, F32, two.v[0]);
                values[2 * i + 1] = convert(p, F32, two.v[1]);
            } else {
                values[2 * i] = wide_bfloat(p, words[i]);
                values[2 * i + 1] = bits_as(p, F32, bit_and(p, words[i], 0xffff0000));
            }
        }
    }
}

val bfloat_bits(ptx *p, val x)
{
    enum { MOST_FINITE_OR_INFINITE = 0x7f800000, QUIET = 64 };
    val bits = bits_as(p, U32, x), upper = shr(p, bits, HALF_BITS);
    val nan = gt(p, bit_and(p, bits, 0x7fffffff), imm(U32, MOST_FINITE_OR_INFINITE));
    val rounded = shr(p, add(p, add(p, bits, 0x7fff), bit_and(p, upper, 1)), HALF_BITS);
    return select(p, nan, bit_or(p, upper, QUIET), rounded);
}

void values_store(ptx *p, format f, val at, unsigned count, const val *values)
{
    enum { PACKS_FROM = 80, LOW_HALVES = 0x5410 };
    val words[MOST_VALUES / 2];
    if (f == FORMAT_F32) {
        store_words(p, F32, at, count, values);
    } else if (f == FORMAT_F16 && (count == 1 || ptx_target(p)->sm < PACKS_FROM)) {
        unsigned at_once = count < AT_ONCE ? count : AT_ONCE;
        for (unsigned i = 0; i < count; i += at_once) { /* no instruction packs two f16 */
            val rounded[AT_ONCE];
            for (unsigned j = 0; j < at_once; j++)
                rounded[j] = convert(p, F16, values[i + j]);
            ptx_store_values(p, INST_ST_GLOBAL, F16, at_once, at, i * F16_BYTES, rounded);
        }
    } else if (count == 1) {
        st_global(p, U16, at, 0, bfloat_bits(p, values[0]));
    } else {
        for (unsigned i = 0; i < count; i += 2)
            words[i / 2] = f == FORMAT_F16 ? pack_halves(p, values[i], values[i + 1])
                                           : prmt(p, bfloat_bits(p, values[i]),
                                                  bfloat_bits(p, values[i + 1]), LOW_HALVES);
        store_words(p, U32, at, count / 2, words);
    }
}
