/* Valid GGUF files: all values, types, parts and sizes. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>

#include "base/os.h"
#include "kernel/format.h"
#include "gguf_writer.h"
#include "test_arena.h"

/* The file opened by a test, and the last error. */
static gguf_file file;
static gguf_error error;

static void open_written(const gguf_writer *w)
{
    if (!gguf_open_memory("m", w->out.text, w->out.length, &file, &error))
        fail_msg("%s", error.message);
}

/* Returns a file with one tensor and one key of every type. */
static gguf_writer write_all_values(arena *a, uint32_t version)
{
    gguf_writer w = gguf_start(a, version, 1, 16);
    gguf_put_number(&w, "u8", GGUF_U8, 200);
    gguf_put_number(&w, "i8", GGUF_I8, 0x80);
    gguf_put_number(&w, "u16", GGUF_U16, 60000);
    gguf_put_number(&w, "i16", GGUF_I16, 0xFFFF);
    gguf_put_number(&w, "u32", GGUF_U32, UINT32_MAX);
    gguf_put_number(&w, "i32", GGUF_I32, 0x80000000);
    gguf_put_f32(&w, "f32", 0.15625f);
    gguf_put_number(&w, "true", GGUF_BOOL, 1);
    gguf_put_text(&w, "text", "text");
    gguf_put_number(&w, "u64", GGUF_U64, UINT64_MAX);
    gguf_put_number(&w, "i64", GGUF_I64, (uint64_t)INT64_MIN);
    gguf_put_number(&w, "f64", GGUF_F64, UINT64_C(0x4000000000000000));
    gguf_put_array(&w, "layers", GGUF_I32, 3);
    gguf_put(&w, 7, 4);
    gguf_put(&w, UINT32_MAX, 4);
    gguf_put(&w, 9, 4);
    gguf_put_array(&w, "strings", GGUF_STRING, 3);
    gguf_put_string(&w, "one");
    gguf_put_string(&w, "");
    gguf_put_string(&w, "three");
    gguf_put_array(&w, "none", GGUF_F32, 0);
    gguf_put_array(&w, "bools", GGUF_BOOL, 2);
    gguf_put(&w, 0x0001, 2);
    gguf_put_tensor(&w, "t", GGUF_NE(256, 3), 12, 0);
    gguf_pad(&w, 32);
    gguf_put(&w, 0, 3 * 144 - 1);
    gguf_put(&w, 77, 1);
    return w;
}

static void check_integers(void)
{
    static const struct {
        const char *name;
        bool is_unsigned, is_signed;
        int64_t value;
    } expected[] = {
        { "u8", true, true, 200 },         { "i8", false, true, -128 },
        { "u16", true, true, 60000 },      { "i16", false, true, -1 },
        { "u32", true, true, UINT32_MAX }, { "i32", false, true, INT32_MIN },
        { "true", true, true, 1 },         { "u64", true, false, -1 },
        { "i64", false, true, INT64_MIN }, { "f32", false, false, 0 },
        { "f64", false, false, 0 },        { "text", false, false, 0 },
        { "strings", false, false, 0 },    { "none", false, false, 0 },
        { "missing", false, false, 0 },
    };
    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++) {
        const gguf_key *key = gguf_find_key(&file, expected[i].name);
        uint64_t u = 5;
        int64_t s = 5;
        assert_int_equal(gguf_get_u64(key, 0, &u), expected[i].is_unsigned);
        assert_int_equal(gguf_get_i64(key, 0, &s), expected[i].is_signed);
        assert_int_equal(u, expected[i].is_unsigned ? (uint64_t)expected[i].value : 5);
        assert_int_equal(s, expected[i].is_signed ? expected[i].value : 5);
    }
}

static double float_of(const char *name)
{
    double value;
    assert_true(gguf_get_f64(gguf_find_key(&file, name), 0, &value));
    return value;
}

static void check_floats(void)
{
    double value;
    assert_true(float_of("f32") == 0.15625);
    assert_true(float_of("f64") == 2);
    assert_true(float_of("i8") == -128);
    assert_true(float_of("u64") == 0x1p64);
    assert_true(float_of("i64") == -0x1p63);
    assert_false(gguf_get_f64(gguf_find_key(&file, "text"), 0, &value));
    assert_false(gguf_get_f64(gguf_find_key(&file, "none"), 0, &value));
    assert_false(gguf_get_f64(NULL, 0, &value));
}

static void check_strings(void)
{
    gguf_string one, all[3];
    assert_true(gguf_get_string(gguf_find_key(&file, "text"), &one));
    assert_true(gguf_string_is(one, "text"));
    assert_false(gguf_string_is(one, "tex"));
    assert_false(gguf_string_is(one, "texts"));
    assert_false(gguf_get_string(gguf_find_key(&file, "strings"), &one));
    assert_false(gguf_get_string(gguf_find_key(&file, "u8"), &one));
    assert_false(gguf_get_strings(gguf_find_key(&file, "text"), all));
    assert_true(gguf_get_strings(gguf_find_key(&file, "strings"), all));
    assert_true(gguf_string_is(all[0], "one"));
    assert_true(gguf_string_is(all[1], ""));
    assert_true(gguf_string_is(all[2], "three"));
}

/* Checks keys with one value for all layers and keys with one value per layer. */
static void check_layers(void)
{
    const gguf_key *layers = gguf_find_key(&file, "layers"), *one = gguf_find_key(&file, "u8");
    const gguf_key *bools = gguf_find_key(&file, "bools");
    int64_t value;
    bool is_set;
    assert_true(gguf_get_i64(layers, 0, &value) && value == 7);
    assert_true(gguf_get_i64(layers, 1, &value) && value == -1);
    assert_true(gguf_get_i64(layers, 2, &value) && value == 9);
    assert_false(gguf_get_i64(layers, 3, &value));
    assert_false(gguf_get_i64(layers, UINT64_MAX, &value));
    assert_true(gguf_get_i64(one, 12345, &value) && value == 200);
    assert_true(gguf_get_bool(bools, 0, &is_set) && is_set);
    assert_true(gguf_get_bool(bools, 1, &is_set) && !is_set);
    assert_false(gguf_get_bool(bools, 2, &is_set));
    assert_false(gguf_get_bool(one, 0, &is_set));
}

ARENA_TEST(every_value_of_both_versions_is_read)
{
    for (uint32_t version = 2; version <= 3; version++) {
        gguf_writer w = write_all_values(a, version);
        open_written(&w);
        assert_int_equal(file.version, version);
        assert_int_equal(file.alignment, 32);
        assert_int_equal(file.key_count, 16);
        assert_string_equal(file.keys[0].name, "u8");
        assert_string_equal(file.keys[15].name, "bools");
        check_integers();
        check_floats();
        check_strings();
        check_layers();
        const gguf_tensor *t = gguf_find(&file, "t");
        assert_int_equal(t->bytes, 432);
        assert_int_equal(t->offset, w.out.length - 432);
        assert_int_equal(t->ne[0], 256);
        assert_int_equal(t->ne[1], 3);
        assert_int_equal(t->ne[2], 1);
        assert_int_equal(t->ne[3], 1);
        assert_string_equal(t->type->name, "q4_K");
        assert_int_equal(((const uint8_t *)gguf_data(&file, t))[431], 77);
        assert_true(gguf_check_data(&file, &error));
        assert_null(gguf_find(&file, "s"));
        assert_null(gguf_find(&file, "u"));
        assert_null(gguf_find(&file, ""));
        gguf_close(&file);
    }
}

ARENA_TEST(names_may_have_characters_of_any_length)
{
    static const char name[] =
        "a\xC3\xA9\xE2\x82\xAC\xED\x9F\xBF\xEE\x80\x80\xF0\x9F\x98\x80\xF4\x8F\xBF\xBF";
    gguf_writer w = gguf_start(a, 3, 1, 1);
    gguf_put_number(&w, name, GGUF_U8, 7);
    gguf_put_tensor(&w, name, GGUF_NE(4), 0, 0);
    open_written(&w);
    assert_string_equal(gguf_find_key(&file, name)->name, name);
    assert_string_equal(gguf_find(&file, name)->name, name);
    gguf_close(&file);
}

ARENA_TEST(a_file_may_have_no_keys_and_no_tensors)
{
    gguf_writer w = gguf_start(a, 3, 0, 0);
    open_written(&w);
    assert_null(gguf_find_key(&file, "k"));
    assert_null(gguf_find(&file, "t"));
    assert_true(gguf_check_data(&file, &error));
    gguf_close(&file);
}

ARENA_TEST(a_file_truncated_after_its_header_opens)
{
    gguf_writer w = gguf_start(a, 3, 1, 0);
    gguf_put_tensor(&w, "t", GGUF_NE(4), 0, 32);
    size_t header = w.out.length;
    gguf_pad(&w, 32);
    gguf_put(&w, 0, 32 + 16);
    for (size_t size = header; size <= w.out.length; size++) {
        bool is_whole = size == w.out.length;
        assert_true(gguf_open_memory("m", w.out.text, size, &file, &error));
        assert_int_equal(gguf_data(&file, gguf_find(&file, "t")) != NULL, is_whole);
        assert_int_equal(gguf_check_data(&file, &error), is_whole);
        gguf_close(&file);
    }
}

ARENA_TEST(data_start_at_a_multiple_of_the_alignment)
{
    static const uint64_t alignments[] = { 1, 8, 32, 64, 4096 };
    for (size_t i = 0; i < sizeof alignments / sizeof *alignments; i++) {
        uint64_t alignment = alignments[i];
        gguf_writer w = gguf_start(a, 3, 1, 1);
        gguf_put_number(&w, "general.alignment", GGUF_U32, alignment);
        gguf_put_tensor(&w, "t", GGUF_NE(3), 0, 2 * alignment);
        size_t header = w.out.length;
        open_written(&w);
        assert_int_equal(file.alignment, alignment);
        assert_int_equal(file.parts[0].data, (header + alignment - 1) / alignment * alignment);
        assert_int_equal(file.tensors[0].offset, file.parts[0].data + 2 * alignment);
        gguf_close(&file);
    }
}

ARENA_TEST(a_hundred_thousand_tensors_are_found_by_name)
{
    enum { COUNT = 100000 };
    gguf_writer w = gguf_start(a, 3, COUNT, 0);
    for (unsigned i = 0; i < COUNT; i++)
        gguf_put_tensor(&w, arena_format(a, "blk.%u.weight", i * 7919 % COUNT), GGUF_NE(32), 2,
                        32 * (uint64_t)(COUNT - 1 - i));
    open_written(&w);
    for (unsigned i = 0; i < COUNT; i++) {
        const gguf_tensor *t = gguf_find(&file, arena_format(a, "blk.%u.weight", i * 7919 % COUNT));
        assert_ptr_equal(t, &file.tensors[i]);
    }
    gguf_close(&file);
}

TEST(types_match_the_table_of_formats)
{
    size_t found = 0;
    for (int f = 0; f < FORMAT_COUNT; f++) {
        if (formats[f].gguf_type == NO_GGUF_TYPE)
            continue;
        const gguf_type *type = gguf_find_type((uint32_t)formats[f].gguf_type);
        assert_non_null(type);
        assert_int_equal(strcasecmp(type->name, formats[f].name), 0);
        assert_int_equal(type->block_values, formats[f].block_values);
        assert_int_equal(type->block_bytes, formats[f].block_bytes);
        found++;
    }
    assert_true(found >= 27);
    assert_null(gguf_find_type(4));
    assert_null(gguf_find_type(31));
    assert_null(gguf_find_type(UINT32_MAX));
    for (uint32_t id = 0; id < 256; id++)
        assert_true(!gguf_find_type(id) || gguf_find_type(id)->id == id);
}

/* GGUF types that are not formats of weights. */
TEST(other_types_have_their_blocks)
{
    static const gguf_type others[] = {
        { 15, "q8_K", 256, 292 }, { 24, "i8", 1, 1 },     { 25, "i16", 1, 2 },
        { 26, "i32", 1, 4 },      { 27, "i64", 1, 8 },    { 28, "f64", 1, 8 },
        { 41, "q1_0", 128, 18 },  { 42, "q2_0", 64, 18 },
    };
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        const gguf_type *type = gguf_find_type(others[i].id);
        assert_string_equal(type->name, others[i].name);
        assert_int_equal(type->block_values, others[i].block_values);
        assert_int_equal(type->block_bytes, others[i].block_bytes);
    }
}

TEST(values_have_names)
{
    assert_string_equal(gguf_value_name(GGUF_U8), "u8");
    assert_string_equal(gguf_value_name(GGUF_STRING), "string");
    assert_string_equal(gguf_value_name(GGUF_F64), "f64");
    assert_string_equal(gguf_value_name((gguf_value)13), "unknown");
}

/* Keys of one part of a split file. Each of the three parts has one tensor. Tests pass wrong values
 * to corrupt a part. */

typedef struct part_values {
    uint64_t no, count, total;
    const char *tensor;
} part_values;

static const char *part_path(arena *a, const char *folder, unsigned part)
{
    return arena_format(a, "%s/m-%05u-of-00003.gguf", folder, part);
}

static void write_part(arena *a, const char *path, part_values values)
{
    const char *failure;
    gguf_writer w = gguf_start(a, 3, 1, 3);
    gguf_put_number(&w, "split.no", GGUF_U16, values.no);
    gguf_put_number(&w, "split.count", GGUF_U16, values.count);
    gguf_put_number(&w, "split.tensors.count", GGUF_I32, values.total);
    gguf_put_tensor(&w, values.tensor, GGUF_NE(4), 0, 0);
    gguf_pad(&w, 32);
    strbuf_bytes(&w.out, values.tensor, 1);
    gguf_put(&w, 0, 15);
    assert_true(os_write_file(a, path, w.out.text, w.out.length, &failure));
}

static const char *write_parts(arena *a)
{
    const char *folder, *failure;
    static const char *const names[] = { "x", "y", "z" };
    assert_true(os_temporary_directory(a, &folder, &failure));
    for (unsigned i = 0; i < 3; i++)
        write_part(a, part_path(a, folder, i + 1), (part_values){ i, 3, 3, names[i] });
    return folder;
}

ARENA_TEST(a_split_file_opens_by_any_of_its_parts)
{
    const char *folder = write_parts(a);
    for (unsigned i = 1; i <= 3; i++) {
        if (!gguf_open(part_path(a, folder, i), &file, &error))
            fail_msg("%s", error.message);
        assert_int_equal(file.part_count, 3);
        assert_int_equal(file.tensor_count, 3);
        assert_int_equal(file.key_count, 3);
        assert_string_equal(file.parts[2].path, part_path(a, folder, 3));
        assert_true(gguf_check_data(&file, &error));
        for (uint32_t part = 0; part < 3; part++) {
            const gguf_tensor *t = gguf_find(&file, part == 0 ? "x" : part == 1 ? "y" : "z");
            assert_int_equal(t->part, part);
            assert_int_equal(*(const char *)gguf_data(&file, t), *t->name);
        }
        gguf_close(&file);
    }
    os_remove_directory(a, folder);
}

/* Checks that opening fails with the message, after replacing the folder's path with FOLDER. */
static void refuse_parts(arena *a, const char *folder, const char *path, const char *message)
{
    assert_false(gguf_open(path, &file, &error));
    strbuf shown = strbuf_new(a);
    const char *at = error.message;
    for (const char *next; (next = strstr(at, folder)); at = next + strlen(folder)) {
        strbuf_bytes(&shown, at, (size_t)(next - at));
        strbuf_put(&shown, "FOLDER");
    }
    strbuf_put(&shown, at);
    assert_string_equal(shown.text, message);
    gguf_close(&file);
    os_remove_directory(a, folder);
}

ARENA_TEST(a_missing_part_is_named)
{
    const char *folder = write_parts(a);
    remove(part_path(a, folder, 2));
    refuse_parts(a, folder, part_path(a, folder, 3),
                 "FOLDER/m-00002-of-00003.gguf: part 2 of 3 of the model: No such file or "
                 "directory");
    folder = write_parts(a);
    refuse_parts(a, folder, part_path(a, folder, 4),
                 "FOLDER/m-00004-of-00003.gguf: No such file or directory");
}

ARENA_TEST(a_part_that_is_broken_is_named)
{
    const char *folder = write_parts(a), *failure;
    assert_true(os_write_file(a, part_path(a, folder, 2), "GGUF\1\0\0\0", 8, &failure));
    refuse_parts(
        a, folder, part_path(a, folder, 1),
        "FOLDER/m-00002-of-00003.gguf: byte 4: version 1 is not supported; versions 2 and 3 are");
}

ARENA_TEST(parts_that_contradict_their_names_are_refused)
{
    static const struct {
        part_values second;
        const char *message;
    } cases[] = {
        { { 2, 3, 3, "y" }, "FOLDER/m-00002-of-00003.gguf: byte 44: split.no = 2, expected 1" },
        { { 1, 4, 3, "y" }, "FOLDER/m-00002-of-00003.gguf: byte 69: split.count = 4, expected 3" },
        { { 1, 3, 3, "x" },
          "FOLDER/m-00002-of-00003.gguf: byte 106: duplicate tensor \"x\"; the first is at byte "
          "106 "
          "of FOLDER/m-00001-of-00003.gguf" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *folder = write_parts(a);
        write_part(a, part_path(a, folder, 2), cases[i].second);
        refuse_parts(a, folder, part_path(a, folder, 1), cases[i].message);
    }
    const char *folder = write_parts(a);
    write_part(a, part_path(a, folder, 1), (part_values){ 0, 3, 4, "x" });
    refuse_parts(a, folder, part_path(a, folder, 2),
                 "FOLDER/m-00001-of-00003.gguf: byte 102: split.tensors.count = 4, but the parts "
                 "have 3 tensors");
}

ARENA_TEST(a_part_must_have_a_part_s_file_name)
{
    static const char *const names[] = { "m.gguf",
                                         "m-00000-of-00003.gguf",
                                         "m-00004-of-00003.gguf",
                                         "m-0001-of-00003.gguf",
                                         "m-x0001-of-00003.gguf",
                                         "m-0000:-of-00003.gguf",
                                         "m-00001-of-0000a.gguf",
                                         "m-00001_of-00003.gguf",
                                         "m-00001-of-00003.ggud" };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const char *folder = write_parts(a);
        const char *path = arena_format(a, "%s/%s", folder, names[i]);
        write_part(a, path, (part_values){ 0, 3, 3, "x" });
        refuse_parts(a, folder, path,
                     arena_format(a,
                                  "FOLDER/%s: byte 69: split.count = 3, but the file's name does "
                                  "not end like -00001-of-00009.gguf",
                                  names[i]));
    }
    const char *folder = write_parts(a);
    const char *path = arena_format(a, "%s/m-00001-of-00004.gguf", folder);
    write_part(a, path, (part_values){ 0, 3, 3, "x" });
    refuse_parts(a, folder, path,
                 "FOLDER/m-00001-of-00004.gguf: byte 69: split.count = 3, but the file's name "
                 "says 4");
}

ARENA_TEST(a_part_must_have_valid_split_keys)
{
    const char *folder = write_parts(a), *failure;
    gguf_writer w = gguf_start(a, 3, 0, 1);
    gguf_put_number(&w, "split.count", GGUF_U16, 3);
    assert_true(os_write_file(a, part_path(a, folder, 3), w.out.text, w.out.length, &failure));
    refuse_parts(a, folder, part_path(a, folder, 1),
                 "FOLDER/m-00003-of-00003.gguf: byte 24: this part of a split model lacks the key "
                 "split.no");
    w = gguf_start(a, 3, 0, 1);
    gguf_put_text(&w, "split.count", "three");
    folder = write_parts(a);
    assert_true(os_write_file(a, part_path(a, folder, 1), w.out.text, w.out.length, &failure));
    refuse_parts(a, folder, part_path(a, folder, 1),
                 "FOLDER/m-00001-of-00003.gguf: byte 47: split.count is not an unsigned integer");
}

ARENA_TEST(a_split_model_opens_only_by_path)
{
    gguf_writer w = gguf_start(a, 3, 0, 1);
    gguf_put_number(&w, "split.count", GGUF_U16, 3);
    assert_false(gguf_open_memory("m", w.out.text, w.out.length, &file, &error));
    assert_string_equal(error.message,
                        "m: byte 47: split.count = 3: open a split model by path, not from memory");
}

ARENA_TEST(a_path_that_is_not_a_file_is_refused)
{
    static const struct {
        const char *path, *message;
    } cases[] = {
        { "/nowhere/m.gguf", "/nowhere/m.gguf: No such file or directory" },
        { "/", "/: is not a regular file" },
        { "/dev/null", "/dev/null: is not a regular file" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_false(gguf_open(cases[i].path, &file, &error));
        assert_string_equal(error.message, cases[i].message);
        gguf_close(&file);
    }
    const char *folder, *failure;
    assert_true(os_temporary_directory(a, &folder, &failure));
    const char *path = arena_format(a, "%s/empty.gguf", folder);
    assert_true(os_write_file(a, path, "", 0, &failure));
    refuse_parts(a, folder, path,
                 "FOLDER/empty.gguf: byte 0: not a GGUF file: it does not start with \"GGUF\"");
}

/* The small models in the folder PTXGEN_MODELS; skipped without it. */
ARENA_TEST(models_beside_the_project_open)
{
    const char *folder = getenv("PTXGEN_MODELS");
    DIR *models = folder ? opendir(folder) : NULL;
    size_t opened = 0;
    if (!models)
        skip();
    for (struct dirent *e; (e = readdir(models));) {
        const char *ending = strrchr(e->d_name, '.');
        if (!ending || strcmp(ending, ".gguf") != 0)
            continue;
        if (!gguf_open(arena_format(a, "%s/%s", folder, e->d_name), &file, &error) ||
            !gguf_check_data(&file, &error))
            fail_msg("%s", error.message);
        gguf_string architecture;
        assert_true(gguf_get_string(gguf_find_key(&file, "general.architecture"), &architecture));
        assert_non_null(gguf_find(&file, "token_embd.weight"));
        gguf_close(&file);
        opened++;
    }
    closedir(models);
    assert_true(opened);
}

/* Headers of real models without their data, written by models/make_gguf.py. They have the real
 * files' offsets. */
ARENA_TEST(headers_of_real_models_open)
{
    static const struct {
        const char *name;
        size_t tensors;
        uint64_t bytes; /* size of the file without tokenizer and chat template */
        const char *tensor, *type;
    } models[] = {
        { "llama_3.1_8b", 292, 4912916480, "blk.4.ffn_down.weight", "q4_K" },
        { "qwen2.5_7b", 339, 5438897792, "blk.5.attn_v.weight", "q6_K" },
        { "qwen3_4b", 398, 4274472704, "token_embd.weight", "q8_0" },
        { "gemma_3_12b", 626, 6880650528, "token_embd.weight", "q6_K" },
        { "phi_4_mini", 196, 2483635840, "blk.31.attn_qkv.weight", "q5_K" },
    };
    const char *folder = getenv("PTXGEN_REAL_HEADERS");
    if (!folder)
        skip();
    for (size_t i = 0; i < sizeof models / sizeof *models; i++) {
        if (!gguf_open(arena_format(a, "%s/%s.gguf", folder, models[i].name), &file, &error))
            fail_msg("%s", error.message);
        const gguf_tensor *last = &file.tensors[file.tensor_count - 1];
        uint64_t end = last->offset + last->bytes;
        assert_int_equal(file.tensor_count, models[i].tensors);
        assert_int_equal((end + 31) / 32 * 32, models[i].bytes);
        assert_string_equal(gguf_find(&file, models[i].tensor)->type->name, models[i].type);
        assert_false(gguf_check_data(&file, &error));
        gguf_close(&file);
    }
}
