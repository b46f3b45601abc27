#include "gen/formats/codes.h"

#include "gen/common/bytes.h"

enum { HALF = 8 };

code_table code_table_new(ptx *p, const int8_t values[16])
{
    uint32_t low_words[2] = { 0 }, high_words[2] = { 0 };
    for (unsigned i = 0; i < HALF; i++) {
        /* Each makes good for the other's sign, which is -1 of a negative byte. */
        int low = values[i] + (values[HALF + i] < 0), high = values[HALF + i] + (low < 0);
        low_words[i / 4] |= (uint32_t)(uint8_t)low << (8 * (i % 4));
        high_words[i / 4] |= (uint32_t)(uint8_t)high << (8 * (i % 4));
    }
    return (code_table){
        .low = { kept_in_register(p, low_words[0]), imm(U32, low_words[1]) },
        .high = { kept_in_register(p, high_words[0]), imm(U32, high_words[1]) },
    };
}

static val look_up(ptx *p, const val half[2], val codes)
{
    return as(p, S32, prmt(p, half[0], half[1], codes));
}

void look_up_codes(ptx *p, const code_table *table, val codes, val parts[2][2])
{
    val flipped = bit_xor(p, codes, IN_EACH_BYTE(0x88));
    for (unsigned i = 0; i < 2; i++) {
        parts[i][0] = look_up(p, table->low, i ? shr(p, codes, 16) : codes);
        parts[i][1] = look_up(p, table->high, i ? shr(p, flipped, 16) : flipped);
    }
}
