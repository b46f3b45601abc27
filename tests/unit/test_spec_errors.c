/* Invalid specs and their complete messages: place, text, code and caret. */
#include "test_arena.h"
#include "diags_text.h"
#include "spec_sample.h"

#define SPEC(text) text, sizeof(text) - 1
#define DECODER_KEYS                                      \
    "layers = 4\nhidden = 256\nff = 512\nnum_heads = 4\n" \
    "vocab = 8k\nweights = q4_k\n"

/* A reader of [decoder] that plans nothing. */
static bool read_nothing(arena *a, const struct section *s, const target *const *wanted,
                         size_t wanted_count, planned *out, diags *d)
{
    (void)a, (void)s, (void)wanted, (void)wanted_count, (void)d;
    *out = (planned){ 0 };
    return true;
}
static const upper_storey sample_storey = { .section = "decoder", .read = read_nothing };

typedef struct wrong_spec {
    const char *what;
    const char *text;
    size_t size;
    const char *messages; /* in the form that in_full accepts */
} wrong_spec;

/* clang-format off */
static const wrong_spec wrong_specs[] = {
    { "unknown family", SPEC("[gemw]\nk = 1\n"),
      "1:2-5: error: unknown kernel family 'gemw'; did you mean 'gemv'? [E006]\n" },
    { "unknown family without a similar name", SPEC("[softmax_everything]\n"),
      "1:2-19: error: unknown kernel family 'softmax_everything'; ptxgen --list shows all families [E006]\n" },
    { "section of a family in capitals", SPEC("[GEMV]\n"),
      "1:2-5: error: unknown kernel family 'GEMV'; did you mean 'gemv'? [E006]\n" },
    { "unknown key", SPEC("[gemv]\nshape = 4096x1\nnum_warp = 2, 4\n"),
      "3:1-8: error: gemv has no key 'num_warp'; did you mean 'num_warps'? [E008]\n" },
    { "unknown key without a similar name", SPEC("[gemv]\nshape = 4096x1\nepsilon = 2\n"),
      "3:1-7: error: gemv has no key 'epsilon'; its keys are k, n, num_warps, dims, shape [E008]\n" },
    { "misspelt keys are not reported as missing, too", SPEC("[gemv]\nK = 256\nN = 1\n[tiled_gemv]\nshap = 256x1\n"),
      "2:1-1: error: gemv has no key 'K'; did you mean 'k'? [E008]\n"
      "3:1-1: error: gemv has no key 'N'; did you mean 'n'? [E008]\n"
      "5:1-4: error: tiled_gemv has no key 'shap'; did you mean 'shape'? [E008]\n" },
    { "key of [ptxgen] in a family's section", SPEC("[gemv]\nshape = 4096x1\ntargets = sm_80\n"),
      "3:1-7: error: gemv has no key 'targets'; set it in [ptxgen] [E008]\n" },
    { "shape for a family without k and n", SPEC("[attention]\nhead_dim = 64\nnum_heads = 8\nshape = 4096x1\n"),
      "4:1-5: error: attention has no key 'shape'; its keys are head_dim, num_heads, num_kv_heads, seq_len [E008]\n" },
    { "several errors at once", SPEC("; two\n; lines\n[gemv]\nn         = 1\nk         = 1000\n; more\nnum_warp  = 2, 4\n"),
      "5:13-16: error: k = 1000 is not a multiple of 256; use 768 or 1024 [E014]\n"
      "7:1-8: error: gemv has no key 'num_warp'; did you mean 'num_warps'? [E008]\n" },
    { "k not a multiple", SPEC("[gemv]\nk = 4096, 1000\nn = 1\n"),
      "2:11-14: error: k = 1000 is not a multiple of 256; use 768 or 1024 [E014]\n" },
    { "k zero", SPEC("[gemv]\nk = 0\nn = 1\n"),
      "2:5-5: error: k = 0 is too small; the smallest is 256 [E013]\n" },
    { "n negative", SPEC("[gemv]\nk = 256\nn = -1\n"),
      "3:5-6: error: n = -1 is too small; the smallest is 1 [E013]\n" },
    { "number above 32 bits", SPEC("[gemv]\nk = 4294967296\nn = 1\n"),
      "2:5-14: error: k = 4294967296 is too large; the largest is 2147483392 [E013]\n" },
    { "n just above 32 bits signed", SPEC("[gemv]\nk = 256\nn = 2147483648\n"),
      "3:5-14: error: n = 2147483648 is too large; the largest is 2147483647 [E013]\n" },
    { "largest k is a multiple", SPEC("[gemv]\nk = 2147483647\nn = 1\n"),
      "2:5-14: error: k = 2147483647 is too large; the largest is 2147483392 [E013]\n" },
    { "number above 64 bits", SPEC("[gemv]\nk = 256\nn = 18446744073709551616\n"),
      "3:5-24: error: n = 18446744073709551616 is too large; the largest is 2147483647 [E013]\n" },
    { "number far below 64 bits", SPEC("[gemv]\nk = 256\nn = -99999999999999999999\n"),
      "3:5-25: error: n = -99999999999999999999 is too small; the smallest is 1 [E013]\n" },
    { "suffix beyond 64 bits", SPEC("[gemv]\nk = 256\nn = 9007199254740992M\n"),
      "3:5-21: error: n = 9007199254740992M is too large; the largest is 2147483647 [E013]\n" },
    { "power beyond 64 bits", SPEC("[gemv]\nk = 256\nn = 2^63\n"),
      "3:5-8: error: n = 2^63 is too large; the largest is 2147483647 [E013]\n" },
    { "power less too much", SPEC("[gemv]\nk = 256\nn = 2^63-1, 2^3-99, 2^3-99999999999999999999, 2^3-x\n"),
      "3:5-10: error: n = 2^63-1 is too large; the largest is 2147483647 [E013]\n"
      "3:13-18: error: n = -91 is too small; the smallest is 1 [E013]\n"
      "3:21-44: error: n = 2^3-99999999999999999999 is too small; the smallest is 1 [E013]\n"
      "3:47-51: error: n = '2^3-x' is not a number; write 4096, 4k, 1M, 2^12 or a range 1..8 [E012]\n" },
    { "power with a huge exponent", SPEC("[gemv]\nk = 256\nn = 2^99999999999999999999\n"),
      "3:5-26: error: n = 2^99999999999999999999 is too large; the largest is 2147483647 [E013]\n" },
    { "word for a real number", SPEC("[tiled_gemv]\nk = 256\nn = 1\nepsilon = tiny, 1e-5f, nan, 0x1p-20, 1..2\n"),
      "4:11-14: error: epsilon = 'tiny' is not a number; write 1e-5 or 0.00001 [E012]\n"
      "4:17-21: error: epsilon = '1e-5f' is not a number; write 1e-5 or 0.00001 [E012]\n"
      "4:24-26: error: epsilon = 'nan' is not a number; write 1e-5 or 0.00001 [E012]\n"
      "4:29-35: error: epsilon = '0x1p-20' is not a number; write 1e-5 or 0.00001 [E012]\n"
      "4:38-41: error: epsilon = '1..2' is not a number; write 1e-5 or 0.00001 [E012]\n" },
    { "real number out of range", SPEC("[tiled_gemv]\nk = 256\nn = 1\nepsilon = 0, 1e400\n"),
      "4:11-11: error: epsilon = 0 is too small; the smallest is 1e-30 [E013]\n"
      "4:14-18: error: epsilon = 1e400 is too large; the largest is 1 [E013]\n" },
    { "word for a number", SPEC("[gemv]\nk = many\nn = 1\n"),
      "2:5-8: error: k = 'many' is not a number; write 4096, 4k, 1M, 2^12 or a range 1..8 [E012]\n" },
    { "unknown suffix", SPEC("[gemv]\nk = 4K\nn = 1\n"),
      "2:5-6: error: k = '4K' is not a number; write 4096, 4k, 1M, 2^12 or a range 1..8 [E012]\n" },
    { "fraction", SPEC("[gemv]\nk = 256\nn = 1.5\n"),
      "3:5-7: error: n = '1.5' is not a number; write 4096, 4k, 1M, 2^12 or a range 1..8 [E012]\n" },
    { "hash after a value", SPEC("[gemv]\nk = 256 # columns\nn = 1\n"),
      "2:5-17: error: k = '256 # columns' is not a number; a comment after a value starts with ';' [E012]\n" },
    { "key without a value", SPEC("[gemv]\nk =\nn = 1\n"),
      "2:1-1: error: 'k' has no value; write 'k = value' [E011]\n" },
    { "key with a comment for a value", SPEC("[gemv]\nk = ; later\nn = 1\n"),
      "2:1-1: error: 'k' has no value; write 'k = value' [E011]\n" },
    { "empty item", SPEC("[gemv]\nk = 256,, 512\nn = 1\n"),
      "2:9-9: error: the list of 'k' has an empty item; remove the extra comma [E011]\n" },
    { "comma in front", SPEC("[gemv]\nk = , 512\nn = 1\n"),
      "2:5-5: error: the list of 'k' has an empty item; remove the extra comma [E011]\n" },
    { "comma at the end", SPEC("[gemv]\nk = 256, 512,\nn = 1\n"),
      "2:13-13: error: the list of 'k' ends with a comma; remove it, or continue the list on an indented line [E011]\n" },
    { "comma at the end of a continued line", SPEC("[gemv]\nk = 256,\n    512,\nn = 1\n"),
      "3:8-8: error: the list of 'k' ends with a comma; remove it, or continue the list on an indented line [E011]\n" },
    { "range backwards", SPEC("[gemv]\nk = 256\nn = 8..2\n"),
      "3:5-8: error: the range 8..2 is descending; write 2..8 [E015]\n" },
    { "range with step zero", SPEC("[gemv]\nk = 256\nn = 2..8:0\n"),
      "3:10-10: error: the step 0 is too small; the smallest is 1 [E015]\n" },
    { "range with a negative step", SPEC("[gemv]\nk = 256\nn = 2..8:-2\n"),
      "3:10-11: error: the step -2 is too small; the smallest is 1 [E015]\n" },
    { "range without end", SPEC("[gemv]\nk = 256\nn = 2..\n"),
      "3:5-7: error: n = '2..' is not a number; write 4096, 4k, 1M, 2^12 or a range 1..8 [E012]\n" },
    { "range without step", SPEC("[gemv]\nk = 256\nn = 2..8:\n"),
      "3:5-9: error: n = '2..8:' is not a number; write 4096, 4k, 1M, 2^12 or a range 1..8 [E012]\n" },
    { "range that leaves the multiples", SPEC("[gemv]\nk = 256..1024:128\nn = 1\n"),
      "2:5-17: error: k = 384 is not a multiple of 256; use 256 or 512 [E014]\n" },
    { "range of two billion", SPEC("[gemv]\nk = 256\nn = 1..2147483647\n"),
      "3:5-17: error: n = 1..2147483647 has 2147483647 values; a spec may have at most 10000 instances [E021]\n" },
    { "range beyond 64 bits", SPEC("[gemv]\nk = 256\nn = 1..99999999999999999999\n"),
      "3:8-27: error: n = 99999999999999999999 is too large; the largest is 2147483647 [E013]\n" },
    { "num_warps too large", SPEC("[gemv]\nshape = 256x1\nnum_warps = 2, 64\n"),
      "3:16-17: error: num_warps = 64 is too large; the largest is 32 [E013]\n" },
    { "list of two bad items", SPEC("[gemv]\nshape = 256x1\nnum_warps = 0, 4, 33\n"),
      "3:13-13: error: num_warps = 0 is too small; the smallest is 1 [E013]\n"
      "3:19-20: error: num_warps = 33 is too large; the largest is 32 [E013]\n" },
    { "bad item on a continued line", SPEC("[gemv]\nk = 256,\n    1000, ; a comment\n    512\nn = 1\n"),
      "3:5-8: error: k = 1000 is not a multiple of 256; use 768 or 1024 [E014]\n" },
    { "same value twice and an error", SPEC("[gemv]\nk = 256, 512, 256\nn = x\n"),
      "2:15-17: warning: '256' repeats a value of 'k'; the duplicate is ignored [E017]\n"
      "3:5-5: error: n = 'x' is not a number; write 4096, 4k, 1M, 2^12 or a range 1..8 [E012]\n" },
    { "wrong choice", SPEC("[gemv]\nshape = 256x1\ndims = dynamc\n"),
      "3:8-13: error: dims cannot be 'dynamc'; did you mean 'dynamic'? [E016]\n" },
    { "wrong choice without a similar name", SPEC("[gemv]\nshape = 256x1\ndims = 4096\n"),
      "3:8-11: error: dims cannot be '4096'; the choices are static, dynamic [E016]\n" },
    { "wrong dims give no messages about sizes", SPEC("[gemv]\ndims = dynamc\n"),
      "2:8-13: error: dims cannot be 'dynamc'; did you mean 'dynamic'? [E016]\n" },
    { "wrong global dims give no messages about sizes", SPEC("[ptxgen]\ndims = any\n[gemv]\nnum_warps = 2\n"),
      "2:8-10: error: dims cannot be 'any'; the choices are static, dynamic [E016]\n" },
    { "missing key of a family without dims", SPEC("[attention]\nhead_dim = 64\n"),
      "1:2-10: error: attention requires the key 'num_heads' [E010]\n" },
    { "shape of one number", SPEC("[gemv]\nshape = 4096\n"),
      "2:9-12: error: '4096' is not a shape; write K x N, such as 4096x14336 [E018]\n" },
    { "shape of three numbers", SPEC("[gemv]\nshape = 4096x1x1\n"),
      "2:9-16: error: '4096x1x1' is not a shape; write K x N, such as 4096x14336 [E018]\n" },
    { "shape with a wrong k", SPEC("[gemv]\nshape = 4096x4096, 1000x1000\n"),
      "2:20-23: error: k = 1000 is not a multiple of 256; use 768 or 1024 [E014]\n" },
    { "shape with both wrong", SPEC("[gemv]\nshape = 100x0\n"),
      "2:9-11: error: k = 100 is too small; the smallest is 256 [E013]\n"
      "2:13-13: error: n = 0 is too small; the smallest is 1 [E013]\n" },
    { "shape beside n", SPEC("[gemv]\nshape = 4096x4096\nn = 1\n"),
      "2:1-5: error: shape already sets k and n; remove 'n' on line 3 [E018]\n" },
    { "missing keys", SPEC("[gemv]\nnum_warps = 4\n"),
      "1:2-5: error: gemv requires the key 'k' [E010]\n"
      "1:2-5: error: gemv requires the key 'n' [E010]\n" },
    { "missing key of one of two dims", SPEC("[gemv]\ndims = static, dynamic\nk = 256\n"),
      "1:2-5: error: gemv requires the key 'n' [E010]\n" },
    { "key twice", SPEC("[gemv]\nk = 256\nn = 1\nk = 512\n"),
      "4:1-1: error: duplicate key 'k'; the first is on line 2 [E009]\n" },
    { "prefix twice", SPEC("[ptxgen]\nprefix = a\nprefix = b\n[gemv]\nshape = 256x1\n"),
      "3:1-6: error: duplicate key 'prefix'; the first is on line 2 [E009]\n" },
    { "section twice", SPEC("[gemv]\nshape = 256x1\n[gemv]\nshape = 256x2\n"),
      "3:1-6: error: duplicate section [gemv]; the first is on line 1; add a label, such as [gemv:name] [E007]\n" },
    { "label twice", SPEC("[gemv:a]\nshape = 256x1\n[gemv:a]\nshape = 256x2\n"),
      "3:1-8: error: duplicate section [gemv:a]; the first is on line 1; add a label, such as [gemv:name] [E007]\n" },
    { "global section twice", SPEC("[ptxgen]\n[ptxgen]\n[gemv]\nshape = 256x1\n"),
      "2:1-8: error: duplicate section [ptxgen]; the first is on line 1; merge the two [E007]\n" },
    { "global section with label", SPEC("[ptxgen:a]\n[gemv]\nshape = 256x1\n"),
      "1:1-10: error: [ptxgen] cannot have a label; write [ptxgen] [E004]\n" },
    { "two decoders", SPEC("[decoder:a]\n" DECODER_KEYS "[decoder:b]\n" DECODER_KEYS "[gemv]\nshape = 256x1\n"),
      "8:1-11: error: a spec may have only one decoder; the first is [decoder:a] on line 1 [E007]\n" },
    { "misspelt decoder", SPEC("[decode]\n" DECODER_KEYS),
      "1:2-7: error: unknown kernel family 'decode'; did you mean 'decoder'? [E006]\n" },
    { "empty label", SPEC("[gemv:]\nshape = 256x1\n"),
      "1:1-7: error: '' is not a label; use letters, digits, '_', '-' and '.' [E004]\n" },
    { "label with blanks", SPEC("[gemv:my own]\nshape = 256x1\n"),
      "1:7-12: error: 'my own' is not a label; use letters, digits, '_', '-' and '.' [E004]\n" },
    { "empty section name", SPEC("[]\nshape = 256x1\n"),
      "1:1-2: error: the section header has no name; write [family] or [family:label] [E004]\n" },
    { "section without bracket", SPEC("[gemv\nshape = 256x1\n"),
      "1:1-5: error: the section header has no ']'; write [family] or [family:label] [E004]\n" },
    { "text after a section", SPEC("[gemv] k = 256\nn = 1\n"),
      "1:8-14: error: text after a section header; move it to its own line [E004]\n" },
    { "unknown key of ptxgen", SPEC("[ptxgen]\ntarget = sm_80\n[gemv]\nshape = 256x1\n"),
      "2:1-6: error: [ptxgen] has no key 'target'; did you mean 'targets'? [E008]\n" },
    { "bad target", SPEC("[ptxgen]\ntargets = sm_80, sm_8O\n[gemv]\nshape = 256x1\n"),
      "2:18-22: error: 'sm_8O' is not a target; did you mean 'sm_80'? [E019]\n" },
    { "bad target without a similar name", SPEC("[ptxgen]\ntargets = hopper\n[gemv]\nshape = 256x1\n"),
      "2:11-16: error: 'hopper' is not a target; the targets are sm_75, sm_80, sm_86, sm_87, sm_89, sm_90, sm_90a, sm_100, sm_103, sm_110, sm_120, sm_121 [E019]\n" },
    { "prefix with a dash", SPEC("[ptxgen]\nprefix = my-llama\n[gemv]\nshape = 256x1\n"),
      "2:10-17: error: 'my-llama' is not a valid prefix: a prefix has only letters, digits and '_' [E020]\n" },
    { "prefix starting with a digit", SPEC("[ptxgen]\nprefix = 3llama\n[gemv]\nshape = 256x1\n"),
      "2:10-15: error: '3llama' is not a valid prefix: a prefix starts with a letter [E020]\n" },
    { "prefix with letters beyond ASCII", SPEC("[ptxgen]\nprefix = lam\303\244\n[gemv]\nshape = 256x1\n"),
      "2:10-13: error: 'lam\303\244' is not a valid prefix: a prefix has only letters, digits and '_' [E020]\n" },
    { "prefix ending in underscore", SPEC("[ptxgen]\nprefix = llama_\n[gemv]\nshape = 256x1\n"),
      "2:10-15: error: 'llama_' is not a valid prefix: ptxgen appends '_', and C++ reserves names with '__' [E020]\n" },
    { "two prefixes", SPEC("[ptxgen]\nprefix = a, b\n[gemv]\nshape = 256x1\n"),
      "2:13-13: error: prefix must be one name, not a list [E020]\n" },
    { "embed wrong", SPEC("[ptxgen]\nembed = strings\n[gemv]\nshape = 256x1\n"),
      "2:9-15: error: embed cannot be 'strings'; did you mean 'string'? [E016]\n" },
    { "embed a list", SPEC("[ptxgen]\nembed = string, c23\n[gemv]\nshape = 256x1\n"),
      "2:17-19: error: embed must be one word, not a list [E016]\n" },
    { "global dims wrong", SPEC("[ptxgen]\ndims = sometimes\n[gemv]\nshape = 256x1\n"),
      "2:8-16: error: dims cannot be 'sometimes'; the choices are static, dynamic [E016]\n" },
    { "key before the first section", SPEC("k = 256\nn = 1\n[gemv]\nshape = 256x1\n"),
      "1:1-1: error: a key precedes the first section; put [ptxgen] or [family] above it [E005]\n" },
    { "text that is not a key", SPEC("[gemv]\nshape = 256x1\nnum_warps 4\n"),
      "3:1-11: error: expected 'key = value', a [section] or a comment [E003]\n" },
    { "no key in front of =", SPEC("[gemv]\nshape = 256x1\n= 4\n"),
      "3:1-1: error: no key before '='; write 'key = value' [E003]\n" },
    { "colon for equals", SPEC("[gemv]\nshape = 256x1\nnum_warps: 4\n"),
      "3:10-10: error: a key and its value are separated by '=', not ':' [E003]\n" },
    { "indented key", SPEC("[gemv]\nk = 256\n  n = 1\n"),
      "3:3-3: error: an indented line continues the list of 'k'; remove the indent before 'n' [E003]\n" },
    { "indented section", SPEC("[gemv]\nshape = 256x1\n  [attention]\n"),
      "3:3-13: error: an indented line continues the list of 'shape'; remove the indent before '[attention]' [E003]\n" },
    { "heads that don't divide", SPEC("[attention]\nhead_dim = 64\nnum_heads = 32\nnum_kv_heads = 8, 7\n"),
      "4:19-19: error: num_heads = 32 is not a multiple of num_kv_heads = 7 [E022]\n" },
    { "heads that don't divide the default", SPEC("[attention]\nhead_dim = 64, 80\nnum_heads = 12\n"),
      "1:2-10: error: num_heads = 12 is not a multiple of num_kv_heads = 8 [E022]\n" },
    { "shared memory above the limit of one target", SPEC("[ptxgen]\ntargets = sm_75, sm_90\n[tiled_gemv]\nk = 4k, 32k\nn = 1, 2\n"),
      "4:9-11: error: no kernel for sm_75, sm_86, sm_89, sm_120, sm_121: tiled_gemv_k32768_n1 needs 131072 bytes of shared memory per block; sm_75 has 65536; use gemv, which accepts any size [E023]\n" },
    { "product above the limit", SPEC("[gemv]\nk = 256..262144\nn = 1..1000\n"),
      "1:2-5: error: the lists up to this section make more than 10000 instances; shorten them [E021]\n" },
    { "sum of products above the limit", SPEC("[gemv]\nk = 256\nn = 1..9999\n[attention]\nhead_dim = 64\nnum_heads = 8, 16\n"),
      "4:2-10: error: the lists up to this section make more than 10000 instances; shorten them [E021]\n" },
    { "dims of a family that is static only", SPEC("[attention]\nhead_dim = 64\nnum_heads = 8\ndims = dynamic\n[fixed_gemv]\nk = 256\nn = 1\ndims = static, dynamic\n[fixed_gemv:two]\nshape = 256x2\ndims = static\n"),
      "4:8-14: error: attention has no dims = dynamic: its sizes are compile-time constants; use dims = static [E016]\n"
      "8:16-22: error: fixed_gemv has no dims = dynamic: its sizes are compile-time constants; use dims = static [E016]\n" },
    { "global dims and a family that is static only", SPEC("[ptxgen]\ndims = static, dynamic\n[fixed_gemv]\nshape = 256x1\n[fixed_gemv:told]\nshape = 256x1\ndims = static\n[attention]\nhead_dim = 64\nnum_heads = 8\n"),
      "3:2-11: error: fixed_gemv has no dims = dynamic, which [ptxgen] sets; add dims = static to this section [E022]\n"
      "5:1-17: note: fixed_gemv_k256_n1 is also requested by the section on line 3; it is generated once [E025]\n" },
    { "product beyond 32 bits", SPEC("[gemv]\nk = 256..2560000\nn = 1..10000\nnum_warps = 1..32\ndims = static, dynamic\n[tiled_gemv]\nshape = 256x1\n"),
      "1:2-5: error: the lists up to this section make more than 10000 instances; shorten them [E021]\n" },
    { "NUL byte", SPEC("[gemv]\nk = 25\0006\nn = 1\n"),
      "spec.ini:2:7: error: byte 0x00 is not UTF-8 text; save the file as UTF-8 without control characters [E001]\n"
      "    2 | k = 25?6\n"
      "      |       ^\n" },
    { "control character", SPEC("[gemv]\nk = \033[31m256\nn = 1\n"),
      "spec.ini:2:5: error: byte 0x1b is not UTF-8 text; save the file as UTF-8 without control characters [E001]\n"
      "    2 | k = ?[31m256\n"
      "      |     ^\n" },
    { "invalid UTF-8", SPEC("[gemv]\n; gr\374\337e\nshape = 256x1\n"),
      "spec.ini:2:5: error: byte 0xfc is not UTF-8 text; save the file as UTF-8 without control characters [E001]\n"
      "    2 | ; gr??e\n"
      "      |     ^\n" },
    { "overlong UTF-8", SPEC("[gemv]\nk = \300\257\nn = 1\n"),
      "spec.ini:2:5: error: byte 0xc0 is not UTF-8 text; save the file as UTF-8 without control characters [E001]\n"
      "    2 | k = ??\n"
      "      |     ^\n" },
    { "surrogate in UTF-8", SPEC("[gemv]\n; \355\240\200\nshape = 256x1\n"),
      "spec.ini:2:3: error: byte 0xed is not UTF-8 text; save the file as UTF-8 without control characters [E001]\n"
      "    2 | ; ???\n"
      "      |   ^\n" },
    { "truncated UTF-8 at the end", SPEC("[gemv]\nshape = 256x1\n; \342\202"),
      "spec.ini:3:3: error: byte 0xe2 is not UTF-8 text; save the file as UTF-8 without control characters [E001]\n"
      "    3 | ; ??\n"
      "      |   ^\n" },
    { "UTF-16", SPEC("\377\376[\000g\000e\000m\000v\000]\000\n\000k\000 \000=\000 \0001\000\n\000"),
      "spec.ini:1:1: error: byte 0xff is not UTF-8 text; save the file as UTF-8 without control characters [E001]\n"
      "    1 | ??[?g?e?m?v?]?\n"
      "      | ^\n"
      "spec.ini:2:1: error: byte 0x00 is not UTF-8 text; save the file as UTF-8 without control characters [E001]\n"
      "    2 | ?k? ?=? ?1?\n"
      "      | ^\n"
      "spec.ini:3:1: error: byte 0x00 is not UTF-8 text; save the file as UTF-8 without control characters [E001]\n"
      "    3 | ?\n"
      "      | ^\n" },
    { "byte order mark and an error", SPEC("\357\273\277[gemw]\n"),
      "spec.ini:1:2: error: unknown kernel family 'gemw'; did you mean 'gemv'? [E006]\n"
      "    1 | [gemw]\n"
      "      |  ^~~~\n" },
    { "CR LF and an error", SPEC("[gemv]\r\nk = 1000\r\nn = 1\r\n"),
      "spec.ini:2:5: error: k = 1000 is not a multiple of 256; use 768 or 1024 [E014]\n"
      "    2 | k = 1000\n"
      "      |     ^~~~\n" },
    { "CR alone", SPEC("[gemv]\rk = 256\rn = 1\r"),
      "spec.ini:1:7: error: carriage return inside a line; end lines with LF or CR LF [E003]\n"
      "    1 | [gemv]?k = 256?n = 1\n"
      "      |       ^\n" },
    { "include of a text that is not a file", SPEC("[ptxgen]\ninclude = other.ini\n[gemv]\nshape = 256x1\n"),
      "2:1-7: error: include works only in a spec that is read from a file [E033]\n" },
    { "empty file", SPEC(""),
      "spec.ini: error: the spec has no section of a kernel family; ptxgen --init writes an example [E024]\n" },
    { "only comments", SPEC("# nothing\n\n; here\n"),
      "spec.ini: error: the spec has no section of a kernel family; ptxgen --init writes an example [E024]\n" },
    { "only a global section", SPEC("[ptxgen]\nprefix = a\n"),
      "spec.ini: error: the spec has no section of a kernel family; ptxgen --init writes an example [E024]\n" },
};
/* clang-format on */

static const char *messages_of(arena *a, const char *text, size_t size,
                               const spec_overrides *overrides)
{
    diags d = diags_new(a);
    spec s;
    bool right =
        spec_parse(a, "spec.ini", text, size, sample_families, &sample_storey, overrides, &s, &d);
    assert_int_equal(right, d.errors == 0);
    return diags_text(a, &d);
}

/* Expands "3:5-8: error: …" to the full message: the place in spec.ini, line 3, and a caret line
 * under columns 5 to 8. */
static const char *in_full(arena *a, const char *text, const char *messages)
{
    strbuf full = strbuf_new(a);
    for (const char *at = messages; *at; at += strcspn(at, "\n") + 1) {
        unsigned line, first, last;
        int place = 0, length = (int)strcspn(at, "\n");
        sscanf(at, "%u:%u-%u:%n", &line, &first, &last, &place);
        if (!place) {
            strbuf_bytes(&full, at, (size_t)length + 1);
            continue;
        }
        const char *shown = text;
        for (unsigned i = 1; i < line; i++)
            shown += strcspn(shown, "\n") + 1;
        strbuf_format(&full, "spec.ini:%u:%u:%.*s\n%5u | %.*s\n      | %*s", line, first,
                      length - place, at + place, line, (int)strcspn(shown, "\n"), shown,
                      (int)first, "^");
        for (unsigned i = first; i < last; i++)
            strbuf_char(&full, '~');
        strbuf_char(&full, '\n');
    }
    return full.text;
}

TEST(every_wrong_spec_is_refused_with_its_messages)
{
    size_t wrong = 0;
    for (size_t i = 0; i < sizeof wrong_specs / sizeof *wrong_specs; i++) {
        const wrong_spec *w = &wrong_specs[i];
        arena *a = arena_new();
        const char *messages = messages_of(a, w->text, w->size, NULL);
        const char *expected = in_full(a, w->text, w->messages);
        if (strcmp(messages, expected) != 0) {
            print_error("%s:\n%sinstead of\n%s", w->what, messages, expected);
            wrong++;
        }
        arena_free(a);
    }
    assert_int_equal(wrong, 0);
}

/* A truncated spec is valid or invalid, but must never crash. */
TEST(every_truncated_spec_is_accepted_or_refused)
{
    for (size_t i = 0; i < sizeof wrong_specs / sizeof *wrong_specs; i++) {
        size_t step = wrong_specs[i].size / 40 + 1;
        for (size_t size = 0; size < wrong_specs[i].size; size += step) {
            if (!test_takes_row(i + size / step, EACH))
                continue;
            arena *a = arena_new();
            char *text = test_malloc(size + 1); /* an exact allocation, so that a sanitizer sees
                                                   reads past the end */
            memcpy(text, wrong_specs[i].text, size);
            messages_of(a, text, size, NULL);
            test_free(text);
            arena_free(a);
        }
    }
}

enum { INIH_LINE = 200 }; /* inih's line buffer in common builds */

/* A list of any number of items in one line must be read. */
TEST(a_line_may_have_any_length)
{
    static const size_t items[] = { 1, 30, 35, 36, 37, 38, 39, 40, 41, 42, 60, 2000 };
    for (size_t i = 0; i < sizeof items / sizeof *items; i++)
        for (size_t blanks = 1; blanks < 9; blanks++) {
            arena *a = arena_new();
            diags d = diags_new(a);
            strbuf text = strbuf_new(a);
            spec s;
            strbuf_put(&text, "[gemv]\nn =");
            for (size_t n = 1; n <= items[i]; n++)
                strbuf_format(&text, "%s %zu", n > 1 ? "," : "", n + 1000);
            for (size_t b = 0; b < blanks; b++)
                strbuf_char(&text, ' ');
            strbuf_put(&text, "; and a comment\n     1");
            for (size_t n = 1; n < items[i]; n++)
                strbuf_format(&text, ", %zu", n + 4000);
            strbuf_put(&text, "\nk = 256\n");
            assert_true(spec_parse(a, "spec.ini", text.text, text.length, sample_families,
                                   &sample_storey, NULL, &s, &d));
            assert_int_equal(s.instance_count, 2 * items[i]);
            assert_int_equal(s.instances[items[i] - 1].shape.n, 1000 + items[i]);
            assert_int_equal(s.instances[items[i]].shape.n, 1);
            arena_free(a);
        }
}

/* Long lines of every kind must be classified correctly. */
TEST(a_long_line_is_parsed_like_a_short_line)
{
    static const struct {
        const char *before, *after, *message;
    } lines[] = {
        { "[gemv]\nk = 256\nn = 1\n", " = 1\n", "spec.ini:4:1: error: gemv has no key 'xxx" },
        { "[gemv]\nk = 256\nn = 1\n", "\n", "spec.ini:4:1: error: expected 'key = value'" },
        { "[gemv]\nk = 256\nn = 1\n= ", "\n",
          "spec.ini:4:1: error: no key before '='; write 'key = value'" },
        { "[gemv]\nn = 1\nk = 256,\n ", "\n", "spec.ini:4:2: error: k = 'xxx" },
        { "[gemv]\nn = 1\nk = 256\n ", " = 1\n", "spec.ini:4:2: error: an indented line" },
        { "[gemv]\n  ", " = 256\n", "spec.ini:2:3: error: gemv has no key 'xxx" },
        { "[gemv]\nk = 256\nn: ", "\n", "spec.ini:3:2: error: a key and its value are" },
        { "[gemv]\nn = 1\nk = ", "\n", "spec.ini:3:5: error: k = 'xxx" },
        { "[gemv]\nk = 256\nn = 1\n[gemv:", "!]\n", "spec.ini:4:7: error: 'xxx" },
    };
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++)
        for (size_t length = INIH_LINE - 12; length < 100000;
             length += length < INIH_LINE + 4 ? 1 : 30000) {
            arena *a = arena_new();
            strbuf text = strbuf_new(a);
            strbuf_put(&text, lines[i].before);
            for (size_t x = 0; x < length; x++)
                strbuf_char(&text, 'x');
            strbuf_put(&text, lines[i].after);
            const char *messages = messages_of(a, text.text, text.length, NULL);
            assert_non_null(strstr(messages, lines[i].message));
            assert_true(strlen(messages) < 8000);
            arena_free(a);
        }
}

ARENA_TEST(a_binary_file_is_refused_after_ten_lines)
{
    char noise[2000];
    for (size_t i = 0; i < sizeof noise; i++)
        noise[i] = i % 20 == 19 ? '\n' : (char)(128 + i % 50);
    diags d = diags_new(a);
    spec s;
    assert_false(spec_parse(a, "spec.ini", noise, sizeof noise, sample_families, &sample_storey,
                            NULL, &s, &d));
    assert_int_equal(d.errors, 10);
}

ARENA_TEST(wrong_overrides_are_named_by_their_option)
{
    static const char text[] = "[gemv]\nshape = 256x1\n";
    assert_string_equal(
        messages_of(a, SPEC(text), &(spec_overrides){ .prefix = "4", .targets = "sm_80,sm_800" }),
        "ptxgen: error: --prefix '4' is not a valid prefix: a prefix starts with a letter [E020]\n"
        "ptxgen: error: --target 'sm_800' is not a target; did you mean 'sm_80'? [E019]\n");
}
