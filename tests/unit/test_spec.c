/* Valid specs: their instances and the order of them, and the other parsed values. */
#include "test_arena.h"
#include "diags_text.h"
#include "spec_sample.h"
#include "input/help.h"
#include "input/spec.h"

typedef struct right_spec {
    const char *what;
    const char *text;
    const char *instances; /* names, each followed by a blank */
} right_spec;

static const right_spec right_specs[] = {
    { "one of each key", "[gemv]\nk = 256\nn = 1\n", "gemv_k256_n1_w4 " },
    { "the last key varies fastest", "[gemv]\nn = 1, 2\nnum_warps = 2, 4\nk = 256, 512\n",
      "gemv_k256_n1_w2 gemv_k256_n1_w4 gemv_k256_n2_w2 gemv_k256_n2_w4 "
      "gemv_k512_n1_w2 gemv_k512_n1_w4 gemv_k512_n2_w2 gemv_k512_n2_w4 " },
    { "a list keeps its order", "[gemv]\nk = 512, 256\nn = 1\n",
      "gemv_k512_n1_w4 gemv_k256_n1_w4 " },
    { "shapes are pairs", "[gemv]\nshape = 256x512, 512 x 3, 4kX1k\nnum_warps = 1, 2\n",
      "gemv_k256_n512_w1 gemv_k256_n512_w2 gemv_k512_n3_w1 gemv_k512_n3_w2 "
      "gemv_k4096_n1024_w1 gemv_k4096_n1024_w2 " },
    { "powers less a number, as help prints them",
      "[gemv]\nk = 256\nn = 2^31-1, 2^3-1 .. 2^3\n[gemv:shape]\nshape = 2^9-256x2^2-1\n",
      "gemv_k256_n2147483647_w4 gemv_k256_n7_w4 gemv_k256_n8_w4 gemv_k256_n3_w4 " },
    { "suffixes and powers", "[gemv]\nk = 4k, 1M, 2^10\nn = 2^0\n",
      "gemv_k4096_n1_w4 gemv_k1048576_n1_w4 gemv_k1024_n1_w4 " },
    { "a range has both ends", "[gemv]\nk = 256\nn = 2..4\n",
      "gemv_k256_n2_w4 gemv_k256_n3_w4 gemv_k256_n4_w4 " },
    { "a range of one", "[gemv]\nk = 256\nn = 7..7\n", "gemv_k256_n7_w4 " },
    { "a range with a step stops below its end", "[gemv]\nk = 256\nn = 1 .. 8 : 3\n",
      "gemv_k256_n1_w4 gemv_k256_n4_w4 gemv_k256_n7_w4 " },
    { "a range steps by the key's multiple", "[gemv]\nk = 256..1000\nn = 1\n",
      "gemv_k256_n1_w4 gemv_k512_n1_w4 gemv_k768_n1_w4 " },
    { "ranges of suffixes among numbers", "[gemv]\nk = 256, 1k..2k:1k\nn = 1\n",
      "gemv_k256_n1_w4 gemv_k1024_n1_w4 gemv_k2048_n1_w4 " },
    { "the largest numbers", "[gemv]\nk = 2147483392\nn = 2147483647\n",
      "gemv_k2147483392_n2147483647_w4 " },
    { "leading zeros", "[gemv]\nk = 0256\nn = 01\n", "gemv_k256_n1_w4 " },
    { "a list continues on indented lines",
      "[gemv]\nk = 256, ; first\n\n; between\n  512,\n\t768 ; last\nn =\n  1\n  2\n",
      "gemv_k256_n1_w4 gemv_k256_n2_w4 gemv_k512_n1_w4 gemv_k512_n2_w4 gemv_k768_n1_w4 "
      "gemv_k768_n2_w4 " },
    { "comments", "; one\n# two\n  ; three\n[gemv] ; four\nk = 256 ; five\nn = 1\t;six\n",
      "gemv_k256_n1_w4 " },
    { "blanks around names", "[ gemv ]\n   k=256\nn\t =\t1   \n", "gemv_k256_n1_w4 " },
    { "no line end at the end", "[gemv]\nk = 256\nn = 1", "gemv_k256_n1_w4 " },
    { "lines that end in CR LF", "[gemv]\r\nk = 256,\r\n  512\r\nn = 1 ; x\r\n",
      "gemv_k256_n1_w4 gemv_k512_n1_w4 " },
    { "a byte order mark", "\xef\xbb\xbf[gemv]\nk = 256\nn = 1\n", "gemv_k256_n1_w4 " },
    { "text beyond ASCII in comments",
      "; \xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80\n[gemv]\nk = 256\nn = 1\n", "gemv_k256_n1_w4 " },
    { "labels distinguish sections", "[gemv:one]\nshape = 256x1\n[gemv:two]\nshape = 256x2\n",
      "gemv_k256_n1_w4 gemv_k256_n2_w4 " },
    { "a label longer than inih's names",
      "[gemv:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa1]\nshape = 256x1\n"
      "[gemv:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa2]\nshape = 256x2\n",
      "gemv_k256_n1_w4 gemv_k256_n2_w4 " },
    { "families in the order of the spec", "[tiled_gemv]\nshape = 256x1\n[gemv]\nshape = 256x1\n",
      "tiled_gemv_k256_n1 gemv_k256_n1_w4 " },
    { "words", "[attention]\nhead_dim = 64\nnum_heads = 8\nseq_len = indirect, direct\n",
      "attention_d64_h8_kv8_indirect attention_d64_h8_kv8 " },
    { "dynamic dims need no sizes", "[gemv]\ndims = dynamic\nnum_warps = 2, 4\n",
      "gemv_w2_dynamic gemv_w4_dynamic " },
    { "dynamic dims keep given sizes", "[gemv]\ndims = dynamic\nshape = 256x1\n",
      "gemv_k256_n1_w4_dynamic " },
    { "an absent size is 1, or a run-time value", "[quantize]\nk = 32\ndims = static, dynamic\n",
      "quantize_k32_m1 quantize_k32_dynamic " },
    { "both dims", "[gemv]\ndims = static, dynamic\nshape = 256x1\n",
      "gemv_k256_n1_w4 gemv_k256_n1_w4_dynamic " },
    { "global dims are for the families that have them",
      "[gemv]\nn = 3\n[attention]\nhead_dim = 64\nnum_heads = 8\n[ptxgen]\ndims = dynamic\n",
      "gemv_n3_w4_dynamic attention_d64_h8_kv8 " },
    { "a section's dims override the global dims",
      "[ptxgen]\ndims = dynamic\n[gemv]\ndims = static\nshape = 256x1\n", "gemv_k256_n1_w4 " },
};

typedef struct outcome {
    spec spec;
    bool right;
    const char *messages, *names;
} outcome;

static outcome parse(arena *a, const char *text, const spec_overrides *overrides)
{
    outcome o;
    diags d = diags_new(a);
    o.right = spec_parse(a, "spec.ini", text, strlen(text), sample_families, NULL, overrides,
                         &o.spec, &d);
    strbuf names = strbuf_new(a);
    for (size_t i = 0; i < o.spec.instance_count; i++)
        strbuf_format(&names, "%s ", o.spec.instances[i].name);
    o.messages = diags_text(a, &d);
    o.names = names.text;
    return o;
}

ARENA_TEST(every_right_spec_makes_its_instances_in_order)
{
    size_t wrong = 0;
    for (size_t i = 0; i < sizeof right_specs / sizeof *right_specs; i++) {
        const right_spec *r = &right_specs[i];
        outcome o = parse(a, r->text, NULL);
        if (!o.right || *o.messages || strcmp(o.names, r->instances) != 0) {
            print_error("%s:\n%s%s\ninstead of\n%s\n", r->what, o.messages, o.names, r->instances);
            wrong++;
        }
    }
    assert_int_equal(wrong, 0);
}

ARENA_TEST(an_instance_holds_the_values_of_its_keys)
{
    outcome o = parse(a, "; comment\n[gemv]\nshape = 512x3\nnum_warps = 2\ndims = dynamic\n", NULL);
    assert_true(o.right);
    const instance *in = &o.spec.instances[0];
    assert_ptr_equal(in->family, &sample_gemv);
    assert_int_equal(in->shape.k, 512);
    assert_int_equal(in->shape.n, 3);
    assert_int_equal(in->num_warps, 2);
    assert_int_equal(in->dims, DIMS_DYNAMIC);
    assert_int_equal(in->where.line, 2);
    assert_int_equal(in->where.column, 1);
    assert_int_equal(in->where.length, 6);
    assert_string_equal(in->where.text, "[gemv]");
}

ARENA_TEST(run_time_sizes_are_zero)
{
    outcome o = parse(a,
                      "[gemv]\ndims = static, dynamic\nk = 256\nn = 1\n"
                      "[tiled_gemv]\ndims = dynamic\nn = 5\n",
                      NULL);
    assert_true(o.right);
    assert_int_equal(o.spec.instances[1].shape.k, 256);
    assert_int_equal(o.spec.instances[2].shape.k, 0);
    assert_int_equal(o.spec.instances[2].shape.n, 5);
}

ARENA_TEST(targets_are_unique_and_oldest_first)
{
    outcome o = parse(
        a, "[ptxgen]\ntargets = sm_90, sm_75, sm_100, sm_80, sm_90\n[gemv]\nshape = 256x1\n", NULL);
    assert_true(o.right);
    assert_int_equal(o.spec.target_count, 4);
    static const char *const oldest_first[] = { "sm_75", "sm_80", "sm_90", "sm_100" };
    for (size_t i = 0; i < 4; i++)
        assert_string_equal(o.spec.targets[i]->name, oldest_first[i]);
    assert_string_equal(
        o.messages,
        "spec.ini:2:40: warning: 'sm_90' repeats a target; the duplicate is ignored [E017]\n"
        "    2 | targets = sm_90, sm_75, sm_100, sm_80, sm_90\n"
        "      |                                        ^~~~~\n");
}

ARENA_TEST(absent_keys_have_defaults)
{
    outcome o = parse(a, "[gemv]\nshape = 256x1\n", NULL);
    assert_string_equal(o.spec.prefix, "ptxgen");
    assert_int_equal(o.spec.target_count, 1);
    assert_string_equal(o.spec.targets[0]->name, "sm_80");
}

ARENA_TEST(the_command_line_overrides_prefix_and_targets)
{
    outcome o = parse(a, "[ptxgen]\nprefix = a\ntargets = sm_75\n[gemv]\nshape = 256x1\n",
                      &(spec_overrides){ .prefix = "b", .targets = "sm_90,sm_80" });
    assert_true(o.right);
    assert_string_equal(o.spec.prefix, "b");
    assert_int_equal(o.spec.target_count, 2);
    assert_string_equal(o.spec.targets[0]->name, "sm_80");
}

ARENA_TEST(the_command_line_overrides_how_ptx_is_embedded)
{
    static const char text[] = "[ptxgen]\nembed = incbin\n[gemv]\nshape = 256x1\n";
    outcome plain = parse(a, "[gemv]\nshape = 256x1\n", NULL), said = parse(a, text, NULL);
    outcome overridden = parse(a, text, &(spec_overrides){ .embed = &(embedding){ EMBED_C23 } });
    assert_int_equal(plain.spec.embed, EMBED_STRING);
    assert_int_equal(said.spec.embed, EMBED_INCBIN);
    assert_int_equal(overridden.spec.embed, EMBED_C23);
}

ARENA_TEST(the_limits_of_the_overriding_targets_apply)
{
    static const char text[] = "[tiled_gemv]\nshape = 32kx1\n";
    outcome o = parse(a, text, &(spec_overrides){ .targets = "sm_90a" });
    assert_true(o.right);
    o = parse(a, text, &(spec_overrides){ .targets = "sm_75" });
    assert_false(o.right);
}

ARENA_TEST(a_duplicate_value_is_made_once_with_a_warning)
{
    outcome o = parse(a, "[gemv]\nk = 512, 256..768, 2^8\nn = 1\n", NULL);
    assert_true(o.right);
    assert_string_equal(o.names, "gemv_k512_n1_w4 gemv_k256_n1_w4 gemv_k768_n1_w4 ");
    assert_string_equal(o.messages, "spec.ini:2:10: warning: '256..768' repeats a value of 'k'; "
                                    "the duplicate is ignored [E017]\n"
                                    "    2 | k = 512, 256..768, 2^8\n"
                                    "      |          ^~~~~~~~\n");
}

ARENA_TEST(an_instance_of_two_sections_is_made_once_with_a_note)
{
    outcome o = parse(a,
                      "[gemv]\nshape = 256x1, 256x2\n[gemv:more]\nk = 256\nn = 2, 3\n"
                      "[gemv:same]\nk = 256\nn = 1..3\n",
                      NULL);
    assert_true(o.right);
    assert_string_equal(o.names, "gemv_k256_n1_w4 gemv_k256_n2_w4 gemv_k256_n3_w4 ");
    assert_string_equal(
        o.messages,
        "spec.ini:3:1: note: gemv_k256_n2_w4 is also requested by the section on line 1; it is "
        "generated once [E025]\n"
        "    3 | [gemv:more]\n"
        "      | ^~~~~~~~~~~\n"
        "spec.ini:6:1: note: 3 instances are also requested by other sections, gemv_k256_n1_w4 by "
        "the section on line 1; each is generated once [E025]\n"
        "    6 | [gemv:same]\n"
        "      | ^~~~~~~~~~~\n");
}

ARENA_TEST(the_list_of_families_is_grouped_and_aligned)
{
    strbuf out = strbuf_new(a);
    spec_list_families(&out, sample_families);
    assert_string_equal(
        out.text, "Matrix times vector: stream_gemv is the fastest; for 2 to 64 rows use mma_q8 "
                  "or mma_gemm, for many rows mma_gemm_f16; gemv does not round its inputs; "
                  "variant = auto selects the kernel for a GPU and shape\n"
                  "  gemv        y = W x\n"
                  "  tiled_gemv  y = W x, x in shared memory\n"
                  "  fixed_gemv  y = W x\n"
                  "\nQuantize and convert vectors: q8_1_quantize for products with quantized "
                  "vectors, q8_rows for stream_gemv_q8, mma_q8 and other families with 8-bit "
                  "rows, f16_rows for mma_gemm_f16 and other mma families with f16 rows\n"
                  "  quantize    q = Q(x)\n"
                  "\nAttention: gqa_flash_decoding for long sequences and batches, "
                  "mma_flash_decoding for f16 caches, mma_attention for prompts; "
                  "multi_warp_attention needs no scratch memory\n"
                  "  attention   o = softmax(q K) V\n");
}

ARENA_TEST(help_for_a_family_shows_all_of_its_struct)
{
    strbuf out = strbuf_new(a);
    spec_help_family(&out, &sample_gemv);
    spec_help_family(&out, &sample_attention);
    assert_string_equal(
        out.text,
        "gemv - y = W x\n"
        "    y[n] = W[n,k] x[k]\n"
        "keys    k          multiple of 256           required  columns of W\n"
        "        n          1..2^31-1                 required  rows of W\n"
        "        num_warps  1..32                     4         warps per block\n"
        "        dims       static, dynamic           static    sizes built in, or parameters\n"
        "params  y      out f32[n], aligned to 4 bytes\n"
        "        w      in  q4_k[n*k], aligned to 16 bytes\n"
        "        x      in  f32[k], aligned to 16 bytes\n"
        "        k_dim  in  u32 when dims are dynamic\n"
        "        n_dim  in  u32 when dims are dynamic\n"
        "launch  block 32*num_warps, grid n, shared 4*num_warps bytes\n"
        "attention - o = softmax(q K) V\n"
        "    o = softmax(q K) V\n"
        "keys    head_dim      8..256, multiple of 8     required  of a test\n"
        "        num_heads     1..1024                   required  of a test\n"
        "        num_kv_heads  1..1024                   8\n"
        "        seq_len       direct, indirect          direct\n"
        "params  o        out f32[num_heads*head_dim], aligned to 4 bytes\n"
        "        q        in  f32[num_heads*head_dim], aligned to 16 bytes\n"
        "        seq_len  in  u32 when direct, a pointer to it when indirect\n"
        "launch  block 32, grid num_heads\n");
}
