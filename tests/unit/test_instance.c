#include <string.h>

#include "test_arena.h"
#include "diags_text.h"
#include "spec_sample.h"

TEST(families_and_keys_are_found_by_name)
{
    assert_ptr_equal(family_find(sample_families, "tiled_gemv"), &sample_tiled);
    assert_null(family_find(sample_families, "tiled"));
    assert_ptr_equal(family_key(&sample_gemv, "num_warps"), &sample_gemv.keys[2]);
    assert_null(family_key(&sample_gemv, "num_warp"));
    assert_null(family_key(&sample_gemv, ""));
}

TEST(a_field_is_reached_by_its_key)
{
    instance in = { .family = &sample_gemv };
    instance_set(&in, family_key(&sample_gemv, "k"), INT64_C(1) << 40);
    instance_set(&in, family_key(&sample_gemv, "num_warps"), 7);
    assert_true(in.shape.k == INT64_C(1) << 40);
    assert_int_equal(in.num_warps, 7);
    assert_int_equal(instance_value(&in, family_key(&sample_gemv, "num_warps")), 7);
}

ARENA_TEST(a_name_distinguishes_every_instance)
{
    instance in = { .family = &sample_gemv, .shape = { .k = 4096, .n = 14336 }, .num_warps = 4 };
    assert_string_equal(instance_make_name(a, &in), "gemv_k4096_n14336_w4");
    in.dims = DIMS_DYNAMIC;
    assert_string_equal(instance_make_name(a, &in), "gemv_k4096_n14336_w4_dynamic");
    in.shape.k = 0; /* a run-time size */
    assert_string_equal(instance_make_name(a, &in), "gemv_n14336_w4_dynamic");

    instance attention = { .family = &sample_attention,
                           .shape = { .head_dim = 128, .num_heads = 32, .num_kv_heads = 8 } };
    assert_string_equal(instance_make_name(a, &attention), "attention_d128_h32_kv8");
    attention.seq_len_mode = SEQ_LEN_INDIRECT;
    assert_string_equal(instance_make_name(a, &attention), "attention_d128_h32_kv8_indirect");
}

ARENA_TEST(a_real_number_is_in_the_name_unless_it_is_the_default)
{
    instance in = { .family = &sample_tiled, .shape = { .k = 256, .n = 1 } };
    const key *epsilon = family_key(&sample_tiled, "epsilon");
    instance_set(&in, epsilon, key_default(epsilon));
    assert_string_equal(instance_make_name(a, &in), "tiled_gemv_k256_n1");
    assert_string_equal(instance_value_text(a, &in, epsilon), "1e-5");
    in.options.epsilon = 1e-6;
    assert_string_equal(instance_make_name(a, &in), "tiled_gemv_k256_n1_eps1em6");
    in.options.epsilon = 0.00125;
    assert_string_equal(instance_make_name(a, &in), "tiled_gemv_k256_n1_eps0p00125");
}

ARENA_TEST(a_real_number_is_written_with_as_many_digits_as_it_needs)
{
    assert_string_equal(real_text(a, 1), "1");
    assert_string_equal(real_text(a, 0.00001), "1e-5");
    assert_string_equal(real_text(a, 1e-30), "1e-30");
    assert_string_equal(real_text(a, 1.0 / 3), "0.3333333333333333");
    assert_string_equal(real_text(a, 50), "50");
    assert_string_equal(real_text(a, 0.125), "0.125");
    assert_string_equal(real_text(a, 0.001), "0.001");
    assert_string_equal(real_text(a, 0.00025), "2.5e-4");
    assert_string_equal(real_text(a, 999999.5), "999999.5");
    assert_string_equal(real_text(a, 123456), "123456");
    assert_string_equal(real_text(a, 1e6), "1e6");
    assert_string_equal(real_text(a, 0), "0");
}

ARENA_TEST(parameters_carry_their_size_in_bytes)
{
    param params[MAX_PARAMS];
    instance in = { .family = &sample_gemv };
    assert_int_equal(instance_params(a, &in, params), 3);
    assert_string_equal(params[0].bytes, "n*4");
    assert_string_equal(params[1].bytes, "n*k/256*144");
    assert_string_equal(params[2].bytes, "k*4");
}

ARENA_TEST(a_sum_of_values_is_put_in_parentheses)
{
    const family summed = { .keys = (const key[]){ KEY_END },
                            .params = (const param[]){ OUT(F32, o, "n*(k+2) + m", 4), PARAM_END } };
    param params[MAX_PARAMS];
    assert_int_equal(instance_params(a, &(instance){ .family = &summed }, params), 1);
    assert_string_equal(params[0].bytes, "(n*(k+2) + m)*4");
}

TEST(all_parameters_of_every_family_fit)
{
    for (const family *const *f = families; *f; f++) {
        size_t count = 0;
        for (const param *p = (*f)->params; p->name; p++)
            count++;
        for (const key *k = (*f)->keys; k->name; k++)
            count += k->at_run_time;
        if (count > MAX_PARAMS)
            fail_msg("%s has %zu parameters", (*f)->name, count);
    }
}

TEST(families_that_round_x_state_their_precision)
{
    for (const family *const *f = families; *f; f++) {
        instance in = { .family = *f,
                        .weights = WEIGHTS_Q4_K,
                        .weights_of = { WEIGHTS_F32, WEIGHTS_Q4_K, WEIGHTS_F32 } };
        assert_int_equal(instance_precision(&in), (*f)->quantizes ? FORMAT_Q8_1
                                                  : (*f)->halves  ? FORMAT_F16
                                                                  : (*f)->activations);
    }
}

ARENA_TEST(a_weights_key_has_format_precision_and_columns)
{
    const family *f = family_find(families, "stream_gemv");
    const key *k = family_key(f, "k");
    instance in = { .family = f, .weights = WEIGHTS_Q5_0, .shape = { .k = 64, .n = 3, .m = 1 } };
    param params[MAX_PARAMS];
    assert_int_equal(instance_weights(&in), FORMAT_Q5_0);
    assert_int_equal(instance_precision(&in), FORMAT_Q8_1);
    assert_int_equal(key_multiple(&in, k), 32);
    instance_params(a, &in, params);
    assert_int_equal(params[1].format, FORMAT_Q5_0);
    assert_string_equal(params[1].bytes,
                        "ceil_div(n*k/32*22, 16)*16"); /* reads are in whole 16-byte
                                                                           lines */
    in.weights = WEIGHTS_BF16;
    assert_int_equal(instance_precision(&in), FORMAT_F32);
    assert_int_equal(key_multiple(&in, k), 8);
    in.weights = WEIGHTS_F32;
    assert_int_equal(key_multiple(&in, k), 4);
    in.weights = WEIGHTS_E4M3;
    assert_int_equal(instance_precision(&in), FORMAT_F32);
    assert_int_equal(key_multiple(&in, k), 16);
}

ARENA_TEST(fused_matrices_have_their_own_formats_and_rows)
{
    const family *f = family_find(families, "stream_qkv");
    instance in = { .family = f,
                    .weights = WEIGHTS_Q4_K,
                    .weights_of = { WEIGHTS_F32, WEIGHTS_IQ4_XS, WEIGHTS_Q5_0 },
                    .shape = { .k = 256, .n = 8, .n_kv = 4, .n_v = 2, .m = 1 } };
    param params[MAX_PARAMS];
    instance_params(a, &in, params);
    assert_string_equal(params[1].bytes, "n*k*4");
    assert_string_equal(params[2].bytes, "ceil_div(n_kv*k/256*136, 16)*16");
    assert_string_equal(params[3].bytes, "ceil_div(n_v*k/32*22, 16)*16");
    assert_int_equal(instance_strictest_weights(&in), FORMAT_IQ4_XS);
    assert_int_equal(key_multiple(&in, family_key(f, "k")), 256);
    instance v = instance_matrix(&in, 2);
    assert_int_equal(instance_weights(&v), FORMAT_Q5_0);
    assert_int_equal(v.shape.n, 2);
}

/* Returns true if a query can state the name: rows of the query's table and ptxgen_query's own
 * members. */
static bool a_query_says(const char *name, size_t length)
{
    static const char *const said[] = {
#define QUERY_SIZE(key, ...)   #key,
#define QUERY_OPTION(key, ...) #key,
#define QUERY_WORD(key, ...)   #key,
#define QUERY_WAY(key, ...)    #key,
#define QUERY_MATRIX(id, ...)  "weights_" #id,
#include "kernel/query.def"
        "epsilon",
    };
    for (size_t i = 0; i < sizeof said / sizeof *said; i++)
        if (strlen(said[i]) == length && memcmp(said[i], name, length) == 0)
            return true;
    return false;
}

TEST(a_query_can_state_every_identifying_key)
{
    for (size_t op = 0; op < OP_COUNT; op++)
        for (const char *word = operations[op].identity; *word;) {
            size_t length = strcspn(word, " ");
            if (!a_query_says(word, length))
                fail_msg("no query states %.*s, part of the identity of %s", (int)length, word,
                         operations[op].name);
            word += length + (word[length] == ' ');
        }
}

ARENA_TEST(dynamic_dims_are_passed_after_the_other_parameters)
{
    param params[MAX_PARAMS];
    instance in = { .family = &sample_gemv, .dims = DIMS_DYNAMIC };
    assert_int_equal(instance_params(a, &in, params), 5);
    assert_string_equal(params[3].name, "k_dim");
    assert_int_equal(params[3].kind, PARAM_U32);
    assert_string_equal(params[3].size, "k");
    assert_string_equal(params[4].name, "n_dim");
}

ARENA_TEST(a_number_of_rows_is_passed_after_all_other_parameters)
{
    param params[MAX_PARAMS];
    instance in = { .family = family_find(families, "gemv"),
                    .shape = { .k = 512, .n = 9, .m = 4 },
                    .dims = DIMS_DYNAMIC };
    assert_int_equal(instance_params(a, &in, params), 5);
    in.rows_mode = ROWS_RUN_TIME;
    assert_int_equal(instance_params(a, &in, params), 6);
    assert_string_equal(params[5].name, "m_val");
    assert_int_equal(params[5].kind, PARAM_U32);
    assert_string_equal(params[5].size, "m");

    const key *m = family_key(in.family, "m"), *n = family_key(in.family, "n");
    assert_true(key_is_passed(&in, m) && key_is_passed(&in, n));
    assert_int_equal(key_least(&in, m), 1);
    assert_int_equal(key_most(&in, m), 4 * 65535);
    assert_int_equal(key_most(&in, n), n->max);
    in.dims = DIMS_STATIC;
    assert_true(key_is_passed(&in, m) && !key_is_passed(&in, n));
    in.rows_mode = ROWS_FIXED;
    assert_false(key_is_passed(&in, m));
    assert_int_equal(key_most(&in, m), MAX_VECTORS);
}

ARENA_TEST(a_sequence_length_is_a_number_or_a_pointer)
{
    param params[MAX_PARAMS];
    instance in = { .family = &sample_attention };
    assert_int_equal(instance_params(a, &in, params), 3);
    assert_int_equal(params[2].kind, PARAM_U32);
    assert_string_equal(params[2].size, "seq_len");

    in.seq_len_mode = SEQ_LEN_INDIRECT;
    assert_int_equal(instance_params(a, &in, params), 3);
    assert_int_equal(params[2].kind, PARAM_IN);
    assert_int_equal(params[2].format, FORMAT_U32);
    assert_string_equal(params[2].values, "1");
    assert_string_equal(params[2].bytes, "4");
}

/* Parses a spec with all families. Returns its messages. */
static const char *messages_of(arena *a, const char *text)
{
    spec made;
    diags d = diags_new(a);
    spec_parse(a, "s.ini", text, strlen(text), families, NULL, &(const spec_overrides){ 0 }, &made,
               &d);
    return diags_text(a, &d);
}

#define MLA_QUERY                                                                               \
    "[mla_query]\nnum_heads = 4\nlatent = 512\nn_rope = 64\nmax_seq_len = 64\nweights = q5_0\n" \
    "weights_q = q4_k\n"

ARENA_TEST(columns_of_each_matrix_are_blocks_of_its_own_format)
{
    static const struct {
        const char *text, *message;
    } cases[] = {
        { MLA_QUERY "nope = 128\nq_rank = 1536\n", NULL },
        { MLA_QUERY "nope = 128\nq_rank = 1408\n",
          "q_rank = 1408 is not a multiple of 256, as q4_k needs; use 1280 or 1536" },
        { MLA_QUERY "nope = 100\nq_rank = 1536\n",
          "nope = 100 is not a multiple of 32, as q5_0 needs; use 96 or 128" },
        { MLA_QUERY "nope = 128\nq_rank = 64\n",
          "q_rank = 64 is not a multiple of 256, as q4_k needs; the smallest is 256" },
        { "[mla_query]\nnum_heads = 4\nlatent = 512\nn_rope = 64\nmax_seq_len = 64\n"
          "weights = q4_k\nnope = 100\n",
          "nope = 100 is not a multiple of 256, as q4_k needs; the smallest is 256" },
        { MLA_QUERY "nope = 72\nq_rank = 1536\nplane_rows = 200\n", NULL },
        { MLA_QUERY "nope = 100\nq_rank = 1536\nplane_rows = 200\n",
          "nope = 100 is not a multiple of 8; use 96 or 104" },
        { MLA_QUERY "nope = 128\nplane_rows = 128\n",
          "plane_rows = 128 is not more than nope = 128" },
        { "[mla_query]\nnum_heads = 4\nlatent = 320\nn_rope = 64\nmax_seq_len = 64\n"
          "weights = q4_k\nnope = 40\nplane_rows = 64\n",
          "latent = 320 is not a multiple of 256, as q4_k needs; use 256 or 512" },
        { "[mla_values]\nnum_heads = 4\nvalue_dim = 8\nweights = q8_0\nlatent = 64\nplane_rows = "
          "8\n",
          "plane_rows = 8 is not more than value_dim = 8" },
        { "[embed_rows]\nweights = q4_k\nk = 2147483520\nn = 8\n",
          "k = 2147483520 is not a multiple of 256, as q4_k needs; the largest is 2147483392" },
        { "[stream_expert_down]\nweights = q5_0\nweights_s = q6_k\nk = 704\nn = 64\nexperts = 8\n"
          "experts_used = 2\nn_shared = 704\n",
          "n_shared = 704 is not a multiple of 256, as q6_k needs; use 512 or 768" },
        { "[mla_values]\nnum_heads = 4\nvalue_dim = 8\nweights = q8_0\nlatent = 48\n",
          "latent = 48 is not a multiple of 32, as q8_0 needs; use 32 or 64" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *said = messages_of(a, cases[i].text);
        if (cases[i].message ? !strstr(said, cases[i].message) : *said)
            fail_msg("%s\nmessage: %s", cases[i].text, said);
    }
}
