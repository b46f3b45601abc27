/* Broken GGUF files, each with one message that names place and problem. */
#include <stdio.h>
#include <stdlib.h>

#include "gguf_writer.h"
#include "test_arena.h"

/* Checks the message for a file given as bytes. They are copied to their own allocation, so that a
 * sanitizer sees reads past the end. */
static void refuse_bytes(const char *bytes, size_t size, const char *message)
{
    gguf_file file;
    gguf_error error;
    char *copy = malloc(size + 1), *exact = realloc(copy, size ? size : 1);
    memcpy(exact, bytes, size);
    assert_false(gguf_open_memory("m", exact, size, &file, &error));
    assert_string_equal(error.message, message);
    assert_null(file.parts);
    gguf_close(&file);
    free(exact);
}

static void refuse(const gguf_writer *w, const char *message)
{
    refuse_bytes(w->out.text, w->out.length, message);
}

static gguf_writer start_key(arena *a)
{
    return gguf_start(a, 3, 0, 1);
}

static gguf_writer start_tensor(arena *a)
{
    return gguf_start(a, 3, 1, 0);
}

/* Checks the message for a tensor's info, followed by enough bytes for any number of dimensions. */
static void refuse_tensor(arena *a, const char *name, const uint64_t *ne, uint32_t type,
                          uint64_t offset, const char *message)
{
    gguf_writer w = start_tensor(a);
    gguf_put_tensor(&w, name, ne, type, offset);
    refuse(&w, message);
}

TEST(files_of_other_formats_are_refused)
{
    const char *expected = "m: byte 0: not a GGUF file: it does not start with \"GGUF\"";
    refuse_bytes("", 0, expected);
    refuse_bytes("GGU", 3, expected);
    refuse_bytes("GGML\3\0\0\0", 8, expected);
    refuse_bytes("FUGG\0\0\0\3", 8, expected);
    refuse_bytes("gguf\3\0\0\0", 8, expected);
}

ARENA_TEST(other_versions_are_refused)
{
    static const struct {
        uint32_t version;
        const char *message;
    } cases[] = {
        { 0, "m: byte 4: version 0 is not supported; versions 2 and 3 are" },
        { 1, "m: byte 4: version 1 is not supported; versions 2 and 3 are" },
        { 4, "m: byte 4: version 4 is not supported; versions 2 and 3 are" },
        { 0x02000000, "m: byte 4: version 0x02000000: big-endian files are not supported, only "
                      "little-endian files" },
        { 0x03000000, "m: byte 4: version 0x03000000: big-endian files are not supported, only "
                      "little-endian files" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        gguf_writer w = gguf_start(a, cases[i].version, 0, 0);
        refuse(&w, cases[i].message);
    }
}

TEST(a_file_truncated_in_its_counts_is_refused)
{
    static const char bytes[] = "GGUF\3\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0";
    refuse_bytes(bytes, 4, "m: byte 4: the file ends in the version: 4 bytes expected, 0 left");
    refuse_bytes(bytes, 7, "m: byte 4: the file ends in the version: 4 bytes expected, 3 left");
    refuse_bytes(bytes, 8,
                 "m: byte 8: the file ends in the number of tensors: 8 bytes expected, 0 left");
    refuse_bytes(bytes, 15,
                 "m: byte 8: the file ends in the number of tensors: 8 bytes expected, 7 left");
    refuse_bytes(bytes, 23,
                 "m: byte 16: the file ends in the number of keys: 8 bytes expected, 7 left");
}

ARENA_TEST(counts_that_exceed_the_file_are_refused)
{
    gguf_writer w = gguf_start(a, 3, 1, 0);
    refuse(&w, "m: byte 8: 1 tensors, but the file has room for 0 at most");
    w = gguf_start(a, 3, UINT64_MAX, 0);
    refuse(&w, "m: byte 8: 18446744073709551615 tensors, but the file has room for 0 at most");
    w = gguf_start(a, 3, 4, 0);
    gguf_pad(&w, 155); /* of 33 bytes each, three have room in 131 */
    refuse(&w, "m: byte 8: 4 tensors, but the file has room for 3 at most");
    w = gguf_start(a, 2, 0, UINT64_MAX);
    refuse(&w, "m: byte 16: 18446744073709551615 keys, but the file has room for 0 at most");
    w = gguf_start(a, 3, 0, 3);
    gguf_pad(&w, 65);
    refuse(&w, "m: byte 16: 3 keys, but the file has room for 2 at most");
}

ARENA_TEST(names_that_run_past_the_end_are_refused)
{
    gguf_writer w = start_key(a);
    gguf_put(&w, UINT64_MAX, 8);
    gguf_put(&w, 0, 6);
    refuse(&w, "m: byte 24: the name of a key has a length of 18446744073709551615 bytes, 6 are "
               "left in the file");
    w = start_key(a);
    gguf_put(&w, 7, 8);
    gguf_put(&w, 0, 6);
    refuse(&w, "m: byte 24: the name of a key has a length of 7 bytes, 6 are left in the file");
    w = gguf_start(a, 3, 0, 2);
    gguf_put_number(&w, "k", GGUF_U64, 1);
    gguf_put(&w, 0, 7);
    refuse(&w, "m: byte 45: the file ends in the name of a key: 8 bytes expected, 7 left");
    w = start_tensor(a);
    gguf_put(&w, UINT64_MAX - 7, 8);
    gguf_put(&w, 0, 25);
    refuse(&w, "m: byte 24: the name of a tensor has a length of 18446744073709551608 bytes, 25 "
               "are left in the file");
}

/* Checks the message for a name with an invalid byte at index 1. */
static void refuse_name(arena *a, const char *name, size_t size, const char *message)
{
    gguf_writer w = start_key(a);
    gguf_put(&w, size, 8);
    strbuf_bytes(&w.out, name, size);
    gguf_put(&w, GGUF_U64, 4);
    gguf_put(&w, 0, 8);
    refuse(&w, message);
}

ARENA_TEST(names_that_are_not_printable_utf_8_are_refused)
{
#define AT_1(byte) "m: byte 33: the name of a key has a byte " byte " that is not printable UTF-8"
    refuse_name(a, "a\0b", 3, AT_1("0x00"));
    refuse_name(a, "a\nb", 3, AT_1("0x0a"));
    refuse_name(a, "a\x7F", 2, AT_1("0x7f"));
    refuse_name(a, "a\x80", 2, AT_1("0x80"));
    refuse_name(a, "a\xC2\x80", 3, AT_1("0xc2")); /* U+0080 to U+009F are control characters */
    refuse_name(a, "a\xC2\x9F", 3, AT_1("0xc2"));
    refuse_name(a, "a\xC0\x80", 3, AT_1("0xc0"));
    refuse_name(a, "a\xC3", 2, AT_1("0xc3"));
    refuse_name(a, "a\xC3(", 3, AT_1("0xc3"));
    refuse_name(a, "a\xE0\x80\x80", 4, AT_1("0xe0"));
    refuse_name(a, "a\xED\xA0\x80", 4, AT_1("0xed"));
    refuse_name(a, "a\xF0\x80\x80\x80", 5, AT_1("0xf0"));
    refuse_name(a, "a\xF4\x90\x80\x80", 5, AT_1("0xf4"));
    refuse_name(a, "a\xF8\x88\x80\x80\x80", 6, AT_1("0xf8"));
    refuse_name(a, "a\xFF", 2, AT_1("0xff"));
#undef AT_1
}

ARENA_TEST(empty_and_too_long_names_are_refused)
{
    refuse_name(a, "", 0, "m: byte 24: the name of a key is empty");
    char name[65537];
    memset(name, 'k', sizeof name);
    refuse_name(a, name, 65536,
                "m: byte 24: the name of a key has 65536 bytes; the maximum is 65535");
    refuse_tensor(a, "", GGUF_NE(1), 0, 0,
                  "m: byte 8: 1 tensors, but the file has room for 0 at most");
    refuse_tensor(a, "", GGUF_NE(1, 1), 0, 0, "m: byte 24: the name of a tensor is empty");
    name[65] = '\0';
    refuse_tensor(a, name, GGUF_NE(1), 0, 0,
                  "m: byte 24: the name of a tensor has 65 bytes; the maximum is 64");
    refuse_tensor(a, "x\ty", GGUF_NE(1), 0, 0,
                  "m: byte 33: the name of a tensor has a byte 0x09 that is not printable UTF-8");
}

ARENA_TEST(unknown_types_of_values_are_refused)
{
    gguf_writer w = start_key(a);
    gguf_put_key(&w, "k", 13);
    gguf_put(&w, 0, 8);
    refuse(&w, "m: byte 33: key \"k\": the type of a value is 13; known types are 0 to 12");
    w = start_key(a);
    gguf_put_key(&w, "k", UINT32_MAX);
    gguf_put(&w, 0, 8);
    refuse(&w, "m: byte 33: key \"k\": the type of a value is 4294967295; known types are 0 to 12");
    w = start_key(a);
    gguf_put_array(&w, "k", 99, 0);
    refuse(&w,
           "m: byte 37: key \"k\": the type of an array's values is 99; known types are 0 to 12");
    w = start_key(a);
    gguf_put_array(&w, "k", GGUF_ARRAY, 1);
    gguf_put(&w, 0, 20);
    refuse(&w, "m: byte 37: key \"k\" is an array of arrays, which is not supported");
}

ARENA_TEST(a_file_that_ends_in_a_value_is_refused)
{
    for (int type = GGUF_U8; type <= GGUF_F64; type++) {
        size_t width = gguf_value_bytes((gguf_value)type);
        if (!width)
            continue;
        gguf_writer w = gguf_start(a, 3, 0, 2);
        gguf_put_number(&w, "first", GGUF_U64, 0);
        gguf_put_key(&w, "k", (uint32_t)type);
        gguf_put(&w, 0, (unsigned)width - 1);
        refuse(&w, arena_format(a,
                                "m: byte 62: the file ends in the value of key \"k\": %zu bytes "
                                "expected, %zu left",
                                width, width - 1));
    }
    gguf_writer w = start_key(a);
    gguf_put_string(&w, "keyname");
    gguf_put(&w, GGUF_U8, 3);
    refuse(&w, "m: byte 39: the file ends in the type of a value: 4 bytes expected, 3 left");
    w = start_key(a);
    gguf_put_key(&w, "k", GGUF_STRING);
    gguf_put(&w, 3, 7);
    refuse(&w, "m: byte 37: the file ends in a string: 8 bytes expected, 7 left");
    w = start_key(a);
    gguf_put_key(&w, "k", GGUF_STRING);
    gguf_put(&w, 3, 8);
    strbuf_put(&w.out, "ab");
    refuse(&w, "m: byte 37: a string has a length of 3 bytes, 2 are left in the file");
    w = start_key(a);
    gguf_put_key(&w, "k", GGUF_STRING);
    gguf_put(&w, UINT64_MAX, 8);
    refuse(&w, "m: byte 37: a string has a length of 18446744073709551615 bytes, 0 are left in "
               "the file");
}

ARENA_TEST(a_file_that_ends_in_an_array_is_refused)
{
    static const struct {
        uint32_t type;
        uint64_t count;
        const char *message;
    } cases[] = {
        { GGUF_U8, 25,
          "m: byte 41: key \"k\" has 25 values, but the file has room for 24 at most" },
        { GGUF_U32, 7, "m: byte 41: key \"k\" has 7 values, but the file has room for 6 at most" },
        { GGUF_F64, UINT64_C(0x2000000000000001),
          "m: byte 41: key \"k\" has 2305843009213693953 values, but the file has room for 3 at "
          "most" },
        { GGUF_BOOL, UINT64_MAX,
          "m: byte 41: key \"k\" has 18446744073709551615 values, but the file has room for 24 at "
          "most" },
        { GGUF_STRING, 4,
          "m: byte 41: key \"k\" has 4 values, but the file has room for 3 at most" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        gguf_writer w = start_key(a);
        gguf_put_array(&w, "k", cases[i].type, cases[i].count);
        gguf_put(&w, 0, 24);
        refuse(&w, cases[i].message);
    }
    gguf_writer w = start_key(a);
    gguf_put_key(&w, "k", GGUF_ARRAY);
    gguf_put(&w, GGUF_U8, 3);
    refuse(&w, "m: byte 37: the file ends in the type of an array's values: 4 bytes expected, 3 "
               "left");
    w = start_key(a);
    gguf_put_key(&w, "k", GGUF_ARRAY);
    gguf_put(&w, GGUF_U8, 4);
    gguf_put(&w, 0, 5);
    refuse(&w, "m: byte 41: the file ends in the length of an array: 8 bytes expected, 5 left");
    w = start_key(a);
    gguf_put_array(&w, "k", GGUF_STRING, 2);
    gguf_put_string(&w, "ab");
    gguf_put(&w, 9, 8);
    strbuf_put(&w.out, "12345678");
    refuse(&w, "m: byte 59: a string has a length of 9 bytes, 8 are left in the file");
}

ARENA_TEST(bools_other_than_0_and_1_are_refused)
{
    gguf_writer w = start_key(a);
    gguf_put_number(&w, "k", GGUF_BOOL, 2);
    refuse(&w, "m: byte 37: key \"k\": a bool is 2, not 0 or 1");
    w = start_key(a);
    gguf_put_array(&w, "k", GGUF_BOOL, 3);
    gguf_put(&w, 0xFF0001, 3);
    refuse(&w, "m: byte 51: key \"k\": a bool is 255, not 0 or 1");
}

ARENA_TEST(duplicate_keys_are_refused)
{
    gguf_writer w = gguf_start(a, 3, 0, 3);
    gguf_put_number(&w, "k", GGUF_U8, 1);
    gguf_put_number(&w, "between", GGUF_U8, 1);
    gguf_put_number(&w, "k", GGUF_U16, 1);
    refuse(&w, "m: byte 71: duplicate key \"k\"; the first value is at byte 37");
    char name[101] = "";
    memset(name, 'n', 100);
    w = gguf_start(a, 3, 0, 2);
    gguf_put_number(&w, name, GGUF_U8, 1);
    gguf_put_number(&w, name, GGUF_U8, 1);
    name[80] = '\0'; /* all that is shown */
    refuse(&w, arena_format(a,
                            "m: byte 249: duplicate key \"%s\"; the first value is at byte "
                            "136",
                            name));
}

ARENA_TEST(invalid_alignments_are_refused)
{
    static const struct {
        gguf_value type;
        uint64_t bits;
        const char *message;
    } cases[] = {
        { GGUF_U32, 0, "m: byte 53: general.alignment = 0 is not a power of 2 below 2^32" },
        { GGUF_U32, 48, "m: byte 53: general.alignment = 48 is not a power of 2 below 2^32" },
        { GGUF_U64, UINT64_C(1) << 33,
          "m: byte 53: general.alignment = 8589934592 is not a power of 2 below 2^32" },
        { GGUF_I32, UINT32_MAX, "m: byte 53: general.alignment is not an unsigned integer" },
        { GGUF_F32, 0x42000000, "m: byte 53: general.alignment is not an unsigned integer" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        gguf_writer w = start_key(a);
        gguf_put_number(&w, "general.alignment", cases[i].type, cases[i].bits);
        refuse(&w, cases[i].message);
    }
    gguf_writer w = start_key(a);
    gguf_put_text(&w, "general.alignment", "32");
    refuse(&w, "m: byte 53: general.alignment is not an unsigned integer");
    w = start_key(a);
    gguf_put_array(&w, "general.alignment", GGUF_U32, 1);
    gguf_put(&w, 32, 4);
    refuse(&w, "m: byte 65: general.alignment is not an unsigned integer");
}

ARENA_TEST(numbers_of_dimensions_other_than_1_to_4_are_refused)
{
    static const uint64_t none[] = { 0 };
    refuse_tensor(a, "eight_by", none, 0, 0,
                  "m: byte 8: 1 tensors, but the file has room for 0 at most");
    refuse_tensor(
        a, "seventeen_letters", none, 0, 0,
        "m: byte 49: tensor \"seventeen_letters\" has 0 dimensions; 1 to 4 are supported");
    refuse_tensor(a, "t", GGUF_NE(1, 1, 1, 1, 1), 0, 0,
                  "m: byte 33: tensor \"t\" has 5 dimensions; 1 to 4 are supported");
    gguf_writer w = start_tensor(a);
    gguf_put_string(&w, "t");
    gguf_put(&w, UINT32_MAX, 4);
    gguf_pad(&w, 64);
    refuse(&w, "m: byte 33: tensor \"t\" has 4294967295 dimensions; 1 to 4 are supported");
}

/* Checks the message for a tensor of three dimensions, each of which may be 0. */
static void refuse_dims(arena *a, uint64_t x, uint64_t y, uint64_t z, uint32_t type,
                        const char *message)
{
    gguf_writer w = start_tensor(a);
    gguf_put_string(&w, "t");
    gguf_put(&w, 3, 4);
    gguf_put(&w, x, 8);
    gguf_put(&w, y, 8);
    gguf_put(&w, z, 8);
    gguf_put(&w, type, 4);
    gguf_put(&w, 0, 8);
    refuse(&w, message);
}

ARENA_TEST(dimensions_that_are_0_or_too_large_are_refused)
{
    uint64_t large = UINT64_C(1) << 32;
    refuse_dims(a, 0, 1, 1, 0, "m: byte 37: tensor \"t\": dimension 0 is 0");
    refuse_dims(a, 1, 1, 0, 0, "m: byte 53: tensor \"t\": dimension 2 is 0");
    refuse_dims(a, UINT64_MAX, 1, 1, 0, "m: byte 37: tensor \"t\" has more than 2^63 values");
    refuse_dims(a, large, large, 1, 0, "m: byte 45: tensor \"t\" has more than 2^63 values");
    refuse_dims(a, large, large / 4, 2, 0, "m: byte 53: tensor \"t\" has more than 2^63 values");
    refuse_dims(a, large, large / 8, 1, 0, "m: byte 61: tensor \"t\" has more than 2^63 bytes");
    refuse_dims(a, large, large / 16, 1, 28, "m: byte 61: tensor \"t\" has more than 2^63 bytes");
}

ARENA_TEST(unknown_types_of_tensors_are_refused)
{
    static const uint32_t ids[] = { 4, 5, 31, 32, 33, 36, 37, 38, 43, 12000, UINT32_MAX };
    for (size_t i = 0; i < sizeof ids / sizeof *ids; i++)
        refuse_tensor(a, "t", GGUF_NE(256), ids[i], 0,
                      arena_format(a, "m: byte 45: tensor \"t\" has the unknown type %u", ids[i]));
}

ARENA_TEST(columns_that_are_not_whole_blocks_are_refused)
{
    refuse_tensor(a, "t", GGUF_NE(100, 32), 2, 0,
                  "m: byte 53: tensor \"t\": q4_0 needs rows of a multiple of 32 values, this "
                  "tensor has 100");
    refuse_tensor(a, "t", GGUF_NE(896, 2), 12, 0,
                  "m: byte 53: tensor \"t\": q4_K needs rows of a multiple of 256 values, this "
                  "tensor has 896");
    refuse_tensor(
        a, "t", GGUF_NE(1, 256), 8, 0,
        "m: byte 53: tensor \"t\": q8_0 needs rows of a multiple of 32 values, this tensor has 1");
}

ARENA_TEST(offsets_that_are_not_aligned_or_too_large_are_refused)
{
    refuse_tensor(a, "t", GGUF_NE(4), 0, 16,
                  "m: byte 49: tensor \"t\": offset 16 is not a multiple of the alignment 32");
    gguf_writer w = gguf_start(a, 3, 1, 1);
    gguf_put_number(&w, "general.alignment", GGUF_U32, 64);
    gguf_put_tensor(&w, "t", GGUF_NE(4), 0, 96);
    refuse(&w, "m: byte 82: tensor \"t\": offset 96 is not a multiple of the alignment 64");
    refuse_tensor(a, "t", GGUF_NE(4), 0, UINT64_MAX - 31,
                  "m: byte 49: tensor \"t\": offset 18446744073709551584 is past 2^63 bytes");
    refuse_tensor(a, "t", GGUF_NE(32), 0, INT64_MAX - 31,
                  "m: byte 49: tensor \"t\": offset 9223372036854775776 is past 2^63 bytes");
    refuse_tensor(a, "t", GGUF_NE(4), 0, INT64_MAX - 31,
                  "m: byte 24: tensor \"t\" ends past 2^63 bytes");
}

ARENA_TEST(a_file_that_ends_in_a_tensors_info_is_refused)
{
    gguf_writer w = gguf_start(a, 3, 2, 0);
    gguf_put_tensor(&w, "long_enough_for_two_of_them", GGUF_NE(4, 4, 4, 4), 0, 0);
    size_t second = w.out.length;
    gguf_put_tensor(&w, "t", GGUF_NE(4), 0, 1024);
    static const struct {
        size_t kept; /* bytes of the second info that remain */
        const char *message;
    } cases[] = {
        { 0, "m: byte 107: the file ends in the name of a tensor: 8 bytes expected, 0 left" },
        { 8, "m: byte 107: the name of a tensor has a length of 1 bytes, 0 are left in the file" },
        { 12, "m: byte 116: the file ends in a tensor's number of dimensions: 4 bytes expected, 3 "
              "left" },
        { 20, "m: byte 120: the file ends in a tensor's dimension: 8 bytes expected, 7 left" },
        { 21, "m: byte 128: the file ends in a tensor's type: 4 bytes expected, 0 left" },
        { 32, "m: byte 132: the file ends in a tensor's offset: 8 bytes expected, 7 left" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        refuse_bytes(w.out.text, second + cases[i].kept, cases[i].message);
}

ARENA_TEST(duplicate_and_overlapping_tensors_are_refused)
{
    static const struct {
        const char *name;
        uint64_t columns, offset;
        const char *message;
    } cases[] = {
        { "b", 8, 32, "m: byte 90: duplicate tensor \"b\"; the first is at byte 57 of m" },
        { "c", 1, 32,
          "m: byte 90: tensor \"c\" at byte 32 of the data overlaps tensor \"b\", which has 128 "
          "bytes from byte 32 on" },
        { "c", 1, 128,
          "m: byte 90: tensor \"c\" at byte 128 of the data overlaps tensor \"b\", which has 128 "
          "bytes from byte 32 on" },
        { "c", 9, 0,
          "m: byte 57: tensor \"b\" at byte 32 of the data overlaps tensor \"c\", which has 36 "
          "bytes from byte 0 on" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        gguf_writer w = gguf_start(a, 3, 3, 0);
        gguf_put_tensor(&w, "a", GGUF_NE(8), 0, 4096);
        gguf_put_tensor(&w, "b", GGUF_NE(32), 0, 32);
        bool is_twice = strcmp(cases[i].name, "b") == 0;
        gguf_put_tensor(&w, cases[i].name, GGUF_NE(cases[i].columns), 0,
                        is_twice ? 1024 : cases[i].offset);
        refuse(&w, cases[i].message);
    }
}

/* A file truncated anywhere in its header must be refused, with an offset inside of the file. */
ARENA_TEST(a_file_truncated_anywhere_in_its_header_is_refused)
{
    gguf_writer w = gguf_start(a, 3, 2, 3);
    gguf_put_text(&w, "general.architecture", "llama");
    gguf_put_array(&w, "strings", GGUF_STRING, 2);
    gguf_put_string(&w, "one");
    gguf_put_string(&w, "two");
    gguf_put_number(&w, "llama.block_count", GGUF_U32, 2);
    gguf_put_tensor(&w, "x", GGUF_NE(32, 4), 8, 0);
    gguf_put_tensor(&w, "y", GGUF_NE(4), 0, 160);
    for (size_t size = 0; size <= w.out.length; size++) {
        gguf_file file;
        gguf_error error;
        unsigned long long at;
        char *exact = malloc(size ? size : 1);
        memcpy(exact, w.out.text, size);
        bool good = gguf_open_memory("m", exact, size, &file, &error);
        assert_int_equal(good, size == w.out.length);
        if (!good) {
            assert_int_equal(sscanf(error.message, "m: byte %llu: ", &at), 1);
            assert_true(at <= size);
        }
        gguf_close(&file);
        free(exact);
    }
}

ARENA_TEST(tensors_with_truncated_data_are_named)
{
    gguf_file file;
    gguf_error error;
    gguf_writer w = gguf_start(a, 3, 2, 0);
    gguf_put_tensor(&w, "x", GGUF_NE(32), 0, 0);
    gguf_put_tensor(&w, "y", GGUF_NE(32), 8, 128);
    gguf_pad(&w, 32);
    gguf_put(&w, 0, 128 + 33);
    assert_true(gguf_open_memory("m", w.out.text, w.out.length, &file, &error));
    assert_non_null(gguf_data(&file, gguf_find(&file, "x")));
    assert_null(gguf_data(&file, gguf_find(&file, "y")));
    assert_false(gguf_check_data(&file, &error));
    assert_string_equal(
        error.message,
        "m: byte 257: the file ends here, but the data of tensor \"y\" are at bytes 224 to 257");
    gguf_close(&file);
}

ARENA_TEST(a_message_has_one_line_whatever_the_names)
{
    gguf_file file;
    gguf_error error;
    char *path = arena_alloc(a, 3000);
    memset(path, 'p', 2999);
    path[2999] = '\0';
    assert_false(gguf_open_memory(path, "", 0, &file, &error));
    assert_int_equal(strlen(error.message), GGUF_MESSAGE_SIZE - 1);
    assert_false(gguf_open(path, &file, &error));
    assert_int_equal(strlen(error.message), GGUF_MESSAGE_SIZE - 1);
    path[GGUF_MESSAGE_SIZE - 20] = '\0';
    assert_false(gguf_open_memory(path, "", 0, &file, &error));
    assert_string_equal(error.message + GGUF_MESSAGE_SIZE - 20, ": byte 0: not a GGU");
}
