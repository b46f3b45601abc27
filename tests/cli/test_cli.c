/* The command line as a user sees it: a shell runs the built program in an empty folder. */
#define _POSIX_C_SOURCE 200809L

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "test.h"
#include "base/os.h"
#include "base/hash.h"
#include "base/strbuf.h"
#include "cost/cost.h"
#include "version.h"

static const char RIGHT[] = "[ptxgen]\nprefix = llama\n[f32_gemv]\nshape = 256x3, 512x4\n";

/* The manual's example with two errors. */
static const char WRONG[] = "; a comment\n"
                            "[ptxgen]\n"
                            "prefix = llama\n"
                            "\n"
                            "[mwv_q4k_gemv]\n"
                            "n         = 4096\n"
                            "k         = 1000\n"
                            "; another\n"
                            "num_warp  = 2, 4\n";

typedef struct fixture {
    arena *arena;
    const char *folder;
} fixture;

typedef struct outcome {
    int status;
    const char *out, *err;
} outcome;

static const char *read_text(fixture *f, const char *path)
{
    char *bytes;
    size_t size;
    const char *error;
    return os_read_file(f->arena, path, &bytes, &size, &error) ? bytes : NULL;
}

static void write_text(fixture *f, const char *path, const char *text)
{
    const char *error;
    assert_true(os_write_file(f->arena, path, text, strlen(text), &error));
}

static int shell(const char *command)
{
    int how = system(command);
    return WIFEXITED(how) ? WEXITSTATUS(how) : -1;
}

static void do_in_shell(const char *command)
{
    assert_int_equal(shell(command), 0);
}

/* Runs ptxgen with arguments in shell syntax. */
static outcome ptxgen(fixture *f, const char *arguments)
{
    outcome o;
    o.status =
        shell(arena_format(f->arena, "\"$PTXGEN\" %s >.stdout 2>.stderr </dev/null", arguments));
    o.out = read_text(f, ".stdout");
    o.err = read_text(f, ".stderr");
    return o;
}

static outcome succeed(fixture *f, const char *arguments)
{
    outcome o = ptxgen(f, arguments);
    if (o.status != 0)
        fail_msg("ptxgen %s: %s", arguments, o.err);
    return o;
}

static int enter_folder(void **state)
{
    fixture *f = calloc(1, sizeof *f);
    f->arena = arena_new();
    const char *error;
    assert_true(os_temporary_directory(f->arena, &f->folder, &error));
    assert_int_equal(chdir(f->folder), 0);
    write_text(f, "right.ini", RIGHT);
    write_text(f, "wrong.ini", WRONG);
    *state = f;
    return 0;
}

static int leave_folder(void **state)
{
    fixture *f = *state;
    assert_int_equal(chdir("/"), 0);
    shell(arena_format(f->arena, "rm -rf '%s'", f->folder));
    arena_free(f->arena);
    free(f);
    return 0;
}

typedef struct invocation {
    const char *arguments;
    int status;
    const char *out, *err; /* the complete output; NULL = any text but not "" */
} invocation;

static void check(fixture *f, const invocation *i)
{
    outcome o = ptxgen(f, i->arguments);
    bool out_right = i->out ? strcmp(o.out, i->out) == 0 : *o.out != '\0';
    bool err_right = i->err ? strcmp(o.err, i->err) == 0 : *o.err != '\0';
    if (o.status == i->status && out_right && err_right)
        return;
    print_error("ptxgen %s: status %d, not %d\nstdout:\n%sstderr:\n%s", i->arguments, o.status,
                i->status, o.out, o.err);
    fail();
}

/* Checks that ptxgen prints only the reason why a spec is refused. */
static void check_refused(fixture *f, const char *spec, const char *said)
{
    write_text(f, "spec.ini", spec);
    const invocation refused = { "--spec spec.ini --out build", 1, "", said };
    check(f, &refused);
    assert_false(os_exists("build"));
}

#define TRY             "\nTry 'ptxgen --help'.\n"
#define NOTHING_WRITTEN "ptxgen: 1 error, nothing written\n"

#define CLI_TEST(name)  TEST_OF(name, enter_folder, leave_folder, fixture *f)

CLI_TEST(every_option_works_as_documented)
{
    static const invocation invocations[] = {
        { "--version", 0, NULL, "" },
        { "--help", 0, NULL, "" },
        { "-h", 0, NULL, "" },
        { "--help --spec", 2, "", "ptxgen: option '--spec' needs an argument" TRY },
        { "--list", 0, NULL, "" },
        { "--explain", 0, NULL, "" },
        { "--explain E014", 0, NULL, "" },
        { "--explain=e14", 0, NULL, "" },
        { "--list -v", 0, NULL, "" },
        { "--list -v --target sm_80,sm_90", 0, NULL, "" },
        { "--help-family mwv_q4k_gemv", 0, NULL, "" },
        { "--spec right.ini --out build", 0,
          "ptxgen: 2 kernels -> build/llama_kernels.h (4 files, 4 changed)\n", "" },
        { "--spec right.ini --out build/", 0,
          "ptxgen: 2 kernels -> build/llama_kernels.h (4 files, 0 changed)\n", "" },
        { "-s right.ini -o short", 0,
          "ptxgen: 2 kernels -> short/llama_kernels.h (4 files, 4 changed)\n", "" },
        { "--spec=right.ini --out=build --prefix=phi", 0,
          "ptxgen: 2 kernels -> build/phi_kernels.h (4 files, 4 changed)\n", "" },
        { "--spec right.ini --out build --embed c23", 0,
          "ptxgen: 2 kernels -> build/llama_kernels.h (4 files, 1 changed)\n", "" },
        { "--spec right.ini --out two --target sm_75,sm_90 --quiet", 0, "", "" },
        { "--spec right.ini --out build -v", 0, NULL, "" },
        { "--spec right.ini --print-outputs", 0,
          "llama_kernels.h\nllama_kernels.json\nllama.f32_gemv_k256_n3.sm_80.ptx\n"
          "llama.f32_gemv_k512_n4.sm_80.ptx\n",
          "" },
        { "--spec right.ini --verify --jobs 2 --seed 7", 0, NULL, "" },
        { "--spec right.ini --verify -j1 -q -j2 --seed 1 --seed=2 --quiet", 0, "", "" },
        { "--spec right.ini --dump build --dump=print", 0, NULL, "" },
        { "--init=starter.ini", 0,
          "ptxgen: wrote starter.ini; next: ptxgen --spec starter.ini --out build/\n", "" },
        { "--init starter.ini", 3, "",
          "starter.ini: error: the file exists and is not overwritten [E027]\n" NOTHING_WRITTEN },
        { "--init -q", 0, "", "" },
        { "--init=-", 0, NULL, "" },
        { "--spec starter.ini --out starter -q", 0, "", "" },
    };
    for (size_t i = 0; i < sizeof invocations / sizeof *invocations; i++)
        check(f, &invocations[i]);
}

/* Returns the expected --print-outputs list for q4k_gemv with variant = auto: each shape's kernel
 * per target. Consecutive targets with equal kernels are listed once. */
static const char *outputs_of_auto(fixture *f, const int64_t (*shapes)[2], size_t shape_count,
                                   int64_t precision, const char *const *target_names)
{
    strbuf text = strbuf_new(f->arena);
    strbuf_put(&text, "ptxgen_kernels.h\nptxgen_kernels.json\n");
    for (size_t s = 0; s < shape_count; s++) {
        const char *before = "";
        for (size_t t = 0; target_names[t]; t++) {
            instance asked = { .family = family_find(families, "q4k_gemv"),
                               .shape = { .k = shapes[s][0], .n = shapes[s][1] },
                               .precision = precision };
            instance chosen = cost_choose(&asked, target_find(target_names[t]), 0, NULL);
            const char *name = instance_make_name(f->arena, &chosen);
            if (strcmp(name, before) != 0)
                strbuf_format(&text, "ptxgen.%s.%s.ptx\n", name, target_names[t]);
            before = name;
        }
    }
    return text.text;
}

CLI_TEST(variant_auto_makes_its_choice_for_each_target)
{
    static const int64_t shapes[][2] = { { 4096, 4096 }, { 512, 64 } };
    static const char *const two[] = { "sm_75", "sm_80", NULL }, *const newest[] = { "sm_90",
                                                                                     NULL };
    const invocation invocations[] = {
        { "--spec auto.ini --print-outputs", 0, outputs_of_auto(f, shapes, 2, PRECISION_Q8, two),
          "" },
        { "--spec exact.ini --print-outputs", 0,
          outputs_of_auto(f, shapes, 1, PRECISION_F32, two + 1), "" },
        { "--spec auto.ini --print-outputs --target sm_90", 0,
          outputs_of_auto(f, shapes, 2, PRECISION_Q8, newest), "" },
        { "--spec auto.ini --verify", 0, NULL, "" },
        { "--spec wrong_variant.ini --print-outputs", 1, "",
          "wrong_variant.ini:3:11: error: variant cannot be 'aut'; did you mean 'auto'? "
          "[E016]\n"
          "    3 | variant = aut\n"
          "      |           ^~~\n" NOTHING_WRITTEN },
    };
    write_text(f, "auto.ini",
               "[ptxgen]\ntargets = sm_75, sm_80\n"
               "[q4k_gemv]\nshape = 4096x4096, 512x64\nvariant = auto\n");
    write_text(f, "exact.ini", "[q4k_gemv]\nshape = 4096x4096\nvariant = auto\nprecision = f32\n");
    write_text(f, "wrong_variant.ini", "[q6k_gemv]\nshape = 256x1\nvariant = aut\n");
    for (size_t i = 0; i < sizeof invocations / sizeof *invocations; i++)
        check(f, &invocations[i]);
}

CLI_TEST(wrong_usage_is_status_2_with_a_reason)
{
    static const invocation invocations[] = {
        { "", 2, "", "ptxgen: no spec; give --spec FILE, or --init to start with an example" TRY },
        { "--spec right.ini", 2, "",
          "ptxgen: nothing to do; give --out DIR, --validate, --verify or --print-outputs" TRY },
        { "--spce right.ini", 2, "",
          "ptxgen: unknown option '--spce'; did you mean '--spec'?" TRY },
        { "--frobnicate", 2, "", "ptxgen: unknown option '--frobnicate'" TRY },
        { "-x", 2, "", "ptxgen: unknown option '-x'" TRY },
        { "-qxv", 2, "", "ptxgen: unknown option '-x'" TRY },
        { "right.ini --spce", 2, "",
          "ptxgen: unknown option '--spce'; did you mean '--spec'?" TRY },
        { "--list=all", 2, "", "ptxgen: option '--list' has no argument" TRY },
        { "--quiet=yes", 2, "", "ptxgen: option '--quiet' has no argument" TRY },
        { "--spec", 2, "", "ptxgen: option '--spec' needs an argument" TRY },
        { "right.ini --out build", 2, "",
          "ptxgen: unexpected argument 'right.ini'; name a spec with --spec FILE" TRY },
        { "help", 2, "", "ptxgen: unexpected argument 'help'; did you mean '--help'?" TRY },
        { "-spec right.ini -out build", 2, "",
          "ptxgen: unknown option '-spec'; did you mean '--spec'?" TRY },
        { "--spec '' --out build", 2, "", "ptxgen: --spec needs a file name" TRY },
        { "--spec right.ini --out build --depfile=", 2, "",
          "ptxgen: --depfile needs a file name" TRY },
        { "--spec right.ini --spec wrong.ini", 2, "",
          "ptxgen: --spec is given twice; one spec can include others" TRY },
        { "--explain EO14", 2, "", "ptxgen: unknown code 'EO14'; did you mean 'E014'?" TRY },
        { "--explain sorrow", 2, "",
          "ptxgen: unknown code 'sorrow'; --explain lists all codes" TRY },
        { "--spec right.ini --out ''", 2, "", "ptxgen: --out needs a folder, e.g. build or ." TRY },
        { "--spec right.ini --out -", 2, "", "ptxgen: --out needs a folder, e.g. build or ." TRY },
        { "--spec right.ini --out a -o b", 2, "", "ptxgen: --out is given twice" TRY },
        { "--spec right.ini --depfile a --out b --depfile c", 2, "",
          "ptxgen: --depfile is given twice" TRY },
        { "--explain E014 --explain", 2, "", "ptxgen: --explain is given twice" TRY },
        { "--spec right.ini --dump print --out build", 2, "",
          "ptxgen: --dump only prints kernels; it excludes --out, --validate, "
          "--verify, --print-outputs and --report" TRY },
        { "--spec right.ini --dump print --verify", 2, "",
          "ptxgen: --dump only prints kernels; it excludes --out, --validate, "
          "--verify, --print-outputs and --report" TRY },
        { "--spec right.ini --plan --verify", 2, "",
          "ptxgen: --plan only prints the decoder's steps; it excludes --out, "
          "--validate, --verify, --print-outputs, --dump and --report" TRY },
        { "--spec right.ini --plan", 1, "",
          "right.ini: error: --plan needs a [decoder] section, and this spec has none "
          "[E038]\n" NOTHING_WRITTEN },
        { "--spec right.ini --list", 2, "",
          "ptxgen: --spec, --list, --help-family, --explain, --init, --from-gguf and --man exclude "
          "each "
          "other, except --init engine and --init server with --from-gguf" TRY },
        { "--spec right.ini --verify --depfile d", 2, "",
          "ptxgen: --depfile needs --out: it lists what the outputs depend on" TRY },
        { "--spec right.ini --verify --prune", 2, "",
          "ptxgen: --prune needs --out: it deletes files there" TRY },
        { "--spec right.ini --verify --expect llama_kernels.h", 2, "",
          "ptxgen: --expect needs --out: it names one of the outputs" TRY },
        { "--spec right.ini --verify --stamp s", 2, "",
          "ptxgen: --stamp needs --out: it records when the outputs were written" TRY },
        { "--spec right.ini --out build -q -v", 2, "",
          "ptxgen: --quiet and --verbose exclude each other" TRY },
        { "--jobs 0 --list", 2, "", "ptxgen: --jobs accepts a number from 1 to 256, not '0'" TRY },
        { "-j 1x --list", 2, "", "ptxgen: --jobs accepts a number from 1 to 256, not '1x'" TRY },
        { "--seed 18446744073709551616 --list", 2, "",
          "ptxgen: --seed accepts a number of 64 bits, not '18446744073709551616'" TRY },
        { "--spec right.ini --dump=build,inline", 2, "",
          "ptxgen: --dump accepts a list of build, fold and print, not 'build,inline'" TRY },
        { "--seed '' --list", 2, "", "ptxgen: --seed accepts a number of 64 bits, not ''" TRY },
        { "--color maybe --list", 2, "",
          "ptxgen: --color accepts auto, always or never, not 'maybe'" TRY },
        { "--list -v --target sm_7", 2, "",
          "ptxgen: the cost model has no GPU for --target 'sm_7'" TRY },
        { "--help-family mwv_q4k_gem", 2, "",
          "ptxgen: unknown kernel family 'mwv_q4k_gem'; did you mean 'mwv_q4k_gemv'?" TRY },
        { "--help-family nothing_of_the_kind", 2, "",
          "ptxgen: unknown kernel family 'nothing_of_the_kind'; --list shows all families" TRY },
        { "--spec right.ini --out build --target sm_81", 2, "",
          "ptxgen: error: --target 'sm_81' is not a target; did you mean 'sm_80'? "
          "[E019]\n" NOTHING_WRITTEN },
        { "--spec right.ini --out build --embed text", 2, "",
          "ptxgen: --embed accepts string, c23 or incbin, not 'text'" TRY },
        { "--spec right.ini --out build --prefix 1", 2, "",
          "ptxgen: error: --prefix '1' is not a valid prefix: a prefix starts with a letter "
          "[E020]\n" NOTHING_WRITTEN },
    };
    for (size_t i = 0; i < sizeof invocations / sizeof *invocations; i++)
        check(f, &invocations[i]);
    assert_false(os_exists("build"));
}

CLI_TEST(a_wrong_spec_is_status_1_and_all_its_errors)
{
    static const invocation wrong = {
        "--spec wrong.ini --out build/", 1, "",
        "wrong.ini:7:13: error: k = 1000 is not a multiple of 256; use 768 or 1024 "
        "[E014]\n"
        "    7 | k         = 1000\n"
        "      |             ^~~~\n"
        "wrong.ini:9:1: error: mwv_q4k_gemv has no key 'num_warp'; did you mean 'num_warps'? "
        "[E008]\n"
        "    9 | num_warp  = 2, 4\n"
        "      | ^~~~~~~~\n"
        "ptxgen: 2 errors, nothing written\n"
    };
    check(f, &wrong);
    assert_false(os_exists("build"));
}

CLI_TEST(a_q8_0_cache_of_rows_that_are_not_whole_blocks_is_an_error)
{
    check_refused(
        f,
        "[gqa_flash_decoding]\nhead_dim = 64, 80\nnum_heads = 8\nnum_kv_heads = 2\n"
        "max_seq_len = 100\nm = 1\nkv_type = f16, q8_0\n",
        "spec.ini:2:16: error: head_dim = 80 is not a multiple of 32, as kv_type = q8_0 needs; "
        "use 96 [E022]\n"
        "    2 | head_dim = 64, 80\n"
        "      |                ^~\n"
        "ptxgen: 1 error, nothing written\n");
}

CLI_TEST(a_softcap_whose_scores_leave_f32_is_an_error)
{
    check_refused(
        f,
        "[incremental_attention]\nhead_dim = 64\nnum_heads = 8\nnum_kv_heads = 2\n"
        "max_seq_len = 100\nsoftcap = 0, 1e-36\n",
        "spec.ini:6:14: error: softcap = 1e-36 is less than 0.001, where scores overflow f32; use "
        "0 for no cap [E022]\n"
        "    6 | softcap = 0, 1e-36\n"
        "      |              ^~~~~\n"
        "ptxgen: 1 error, nothing written\n");
}

CLI_TEST(a_family_that_no_target_can_run_is_an_error)
{
    check_refused(f, "[ptxgen]\ntargets = sm_75\n[mma_gemm]\nweights = q4_k\nshape = 256x1\n",
                  "spec.ini:3:2: error: mma_gemm needs sm_80 or newer; the targets are sm_75: add "
                  "a newer target [E039]\n"
                  "    3 | [mma_gemm]\n"
                  "      |  ^~~~~~~~\n"
                  "ptxgen: 1 error, nothing written\n");
}

CLI_TEST(a_ring_that_does_not_hold_the_window_is_an_error)
{
    check_refused(
        f,
        "[gqa_flash_decoding]\nhead_dim = 64\nnum_heads = 8\nnum_kv_heads = 2\n"
        "max_seq_len = 1000\nm = 1\nwindow = 128, 0\nring = 128, 127\n",
        "spec.ini:8:8: error: ring = 128 needs a window of at most 128 positions; without one all "
        "max_seq_len = 1000 positions are read [E022]\n"
        "    8 | ring = 128, 127\n"
        "      |        ^~~\n"
        "spec.ini:8:13: error: ring = 127 is less than window = 128; use at least 128 rows, and m "
        "- 1 more if a launch writes m positions of a sequence [E022]\n"
        "    8 | ring = 128, 127\n"
        "      |             ^~~\n"
        "ptxgen: 2 errors, nothing written\n");
}

CLI_TEST(products_that_a_target_lacks_are_an_error)
{
    check_refused(
        f,
        "[ptxgen]\ntargets = sm_75, sm_90\n[mla_attention]\nnum_heads = 16\nlatent = 512\n"
        "n_rope = 64, 128\nmax_seq_len = 70\nm = 1\nproducts = f16\n",
        "spec.ini:9:12: error: products = f16 needs sm_80 or newer, but sm_75 is a target; use "
        "products = f32 [E022]\n"
        "    9 | products = f16\n"
        "      |            ^~~\n"
        "ptxgen: 1 error, nothing written\n");
}

CLI_TEST(rope_that_no_kernel_computes_is_an_error)
{
    check_refused(
        f,
        "[rope_kv_write]\nhead_dim = 64, 80\nnum_heads = 8\nnum_kv_heads = 2\n"
        "max_seq_len = 100\nkv_type = q8_0\nn_rot = 32, 72\n"
        "rope_scaling = none, yarn\ntemperature_length = 16, 16.5\n",
        "spec.ini:2:16: error: head_dim = 80 is not a multiple of 32, as kv_type = q8_0 needs; use "
        "96 [E022]\n"
        "    2 | head_dim = 64, 80\n"
        "      |                ^~\n"
        "spec.ini:7:13: error: n_rot = 72 is more than head_dim = 64; use at most 64 [E022]\n"
        "    7 | n_rot = 32, 72\n"
        "      |             ^~\n"
        "spec.ini:8:22: error: rope_scaling = yarn needs rope_original_context, the context length "
        "that the model was trained with, e.g. 8192 [E022]\n"
        "    8 | rope_scaling = none, yarn\n"
        "      |                      ^~~~\n"
        "spec.ini:9:26: error: temperature_length = 16.5 is not a whole number; use 17 [E022]\n"
        "    9 | temperature_length = 16, 16.5\n"
        "      |                          ^~~~\n"
        "ptxgen: 4 errors, nothing written\n");
}

CLI_TEST(files_that_cannot_be_read_or_written_are_status_3)
{
    static const invocation invocations[] = {
        { "--spec none.ini --out build", 3, "",
          "none.ini: error: cannot read: No such file or directory [E026]\n" NOTHING_WRITTEN },
        { "--spec . --out build", 3, "",
          ".: error: cannot read: Is a directory [E026]\n" NOTHING_WRITTEN },
        { "--spec /dev/zero --out build", 3, "",
          "/dev/zero: error: cannot read: not a regular file [E026]\n" NOTHING_WRITTEN },
        { "--spec endless.ini --out build", 3, "",
          "endless.ini:2:11: error: cannot read /dev/zero: not a regular file [E026]\n"
          "    2 | include = /dev/zero\n"
          "      |           ^~~~~~~~~\n" NOTHING_WRITTEN },
        { "--spec right.ini --out right.ini", 3, "",
          "right.ini: error: cannot write: Not a directory [E027]\n" NOTHING_WRITTEN },
        { "--spec right.ini --out build --depfile right.ini/d", 3, "",
          "right.ini: error: cannot write: Not a directory [E027]\n" NOTHING_WRITTEN },
        { "--init=none/kernels.ini", 3, "",
          "none/kernels.ini: error: cannot write: No such file or directory "
          "[E027]\n" NOTHING_WRITTEN },
    };
    write_text(f, "endless.ini", "[ptxgen]\ninclude = /dev/zero\n");
    for (size_t i = 0; i < sizeof invocations / sizeof *invocations; i++)
        check(f, &invocations[i]);
}

#define SAME_PATH(arguments, path, options)                                                   \
    {                                                                                         \
        "--spec right.ini " arguments, 2, "",                                                 \
            path ": error: " options                                                          \
                 " would both write this file; name different files [E035]\n" NOTHING_WRITTEN \
    }
#define OVERWRITES(arguments, path, option)                                                      \
    {                                                                                            \
        "--spec right.ini " arguments, 2, "",                                                    \
            path                                                                                 \
            ": error: " option                                                                   \
            " would overwrite this file of the spec; name another file [E035]\n" NOTHING_WRITTEN \
    }

CLI_TEST(two_files_of_a_run_at_one_path_are_an_error)
{
    static const invocation invocations[] = {
        SAME_PATH("--out o --report o/llama_kernels.h", "o/llama_kernels.h", "--out and --report"),
        SAME_PATH("--out o --report=./none/../o//llama_kernels.json",
                  "./none/../o//llama_kernels.json", "--out and --report"),
        SAME_PATH("--out o --depfile linked/o/llama.f32_gemv_k256_n3.sm_80.ptx",
                  "linked/o/llama.f32_gemv_k256_n3.sm_80.ptx", "--out and --depfile"),
        SAME_PATH("--out o --depfile x --stamp ./x", "./x", "--depfile and --stamp"),
        SAME_PATH("--out o --report x --stamp x", "x", "--stamp and --report"),
        SAME_PATH("--out . --emit-ninja llama_kernels.h", "llama_kernels.h",
                  "--out and --emit-ninja"),
        SAME_PATH("--out o --emit-ninja n --report n.d", "n.d", "--depfile and --report"),
        OVERWRITES("--out o --depfile ./right.ini", "./right.ini", "--depfile"),
        OVERWRITES("--out o --stamp o/../right.ini", "o/../right.ini", "--stamp"),
        OVERWRITES("--out o --emit-ninja \"$PWD/right.ini\"", "%s/right.ini", "--emit-ninja"),
        OVERWRITES("--report right.ini", "right.ini", "--report"),
        { "--spec llama_kernels.h --out .", 2, "",
          "./llama_kernels.h: error: --out would overwrite this file of the spec; name another "
          "file "
          "[E035]\n" NOTHING_WRITTEN },
        { "--spec right.ini --out full --depfile /dev/null --stamp /dev/null", 0,
          "ptxgen: 2 kernels -> full/llama_kernels.h (4 files, 4 changed)\n", "" },
    };
    write_text(f, "llama_kernels.h", RIGHT);
    assert_int_equal(symlink(".", "linked"), 0);
    for (size_t i = 0; i < sizeof invocations / sizeof *invocations; i++) {
        invocation one = invocations[i];
        char here[4096];
        if (strncmp(one.err, "%s", 2) == 0)
            one.err = arena_format(f->arena, "%s%s", getcwd(here, sizeof here), one.err + 2);
        check(f, &one);
        assert_false(os_exists("o"));
    }
    assert_string_equal(read_text(f, "llama_kernels.h"), RIGHT);
}

CLI_TEST(a_file_that_cannot_be_written_leaves_all_others_as_they_were)
{
    static const char *const full[] = { "--depfile /dev/full", "--report /dev/full",
                                        "--depfile d --report r.html --stamp right.ini/s" };
    if (!os_exists("/dev/full"))
        skip();
    for (int there = 0; there < 2; there++) {
        for (size_t i = 0; i < sizeof full / sizeof *full; i++) {
            outcome o = ptxgen(f, arena_format(f->arena,
                                               "--spec right.ini --out build -q %s "
                                               "--target sm_90",
                                               full[i]));
            assert_int_equal(o.status, 3);
            assert_non_null(strstr(o.err, "ptxgen: 1 error, nothing written\n"));
            assert_int_equal(shell("ls d r.html build/*.tmp build/*sm_90* 2>.nothing"), 2);
            assert_int_equal(os_exists("build/llama_kernels.h"), there);
            if (there)
                do_in_shell("diff -r build old");
        }
        succeed(f, "--spec right.ini --out build");
        do_in_shell("rm -rf old && cp -r build old");
    }
}

CLI_TEST(prune_removes_obsolete_files_of_ptxgen)
{
    do_in_shell("mkdir more"); /* kernels name their spec's file, without its folder */
    write_text(f, "more/right.ini",
               "[ptxgen]\nprefix = llama\n[f32_gemv]\nshape = 256x3, 256x5, 256x7, 512x4\n");
    write_text(f, "other.ini", "[ptxgen]\nprefix = other\n[f32_gemv]\nshape = 256x5\n");
    succeed(f, "--spec more/right.ini --out build");
    succeed(f, "--spec other.ini --out build");
    write_text(f, "outside.ptx", "mine");
    write_text(f, "build/llama.mine.sm_80.ptx", "mine");
    do_in_shell("echo '// mine' >>build/llama.f32_gemv_k256_n7.sm_80.ptx && "
                "sed -i 's|\"llama.f32_gemv_k512_n4.sm_80.ptx\"|\"../outside.ptx\"|' "
                "build/llama_kernels.json && cp -r build before");
    outcome o = ptxgen(f, "--spec right.ini --out build");
    assert_string_equal(o.out, "ptxgen: 2 kernels -> build/llama_kernels.h (4 files, 2 changed)\n");
    assert_true(os_exists("build/llama.f32_gemv_k256_n5.sm_80.ptx"));

    do_in_shell("rm -r build && mv before build");
    o = succeed(f, "--spec right.ini --out build --prune");
    assert_string_equal(o.out, "ptxgen: 2 kernels -> build/llama_kernels.h (4 files, 2 changed, 1 "
                               "removed)\n");
    assert_string_equal(o.err, "build/llama.f32_gemv_k256_n7.sm_80.ptx: warning: edited since "
                               "ptxgen wrote it: kept, although no kernel of the spec needs it "
                               "[E032]\n");
    do_in_shell("ls build >found");
    assert_string_equal(read_text(f, "found"),
                        "llama.f32_gemv_k256_n3.sm_80.ptx\nllama.f32_gemv_k256_n7.sm_80.ptx\n"
                        "llama.f32_gemv_k512_n4.sm_80.ptx\nllama.mine.sm_80.ptx\n"
                        "llama_kernels.h\nllama_kernels.json\n"
                        "other.f32_gemv_k256_n5.sm_80.ptx\nother_kernels.h\n"
                        "other_kernels.json\n");
    assert_string_equal(read_text(f, "outside.ptx"), "mine");
    assert_int_equal(ptxgen(f, "--spec wrong.ini --out build --prune").status, 1);
    assert_true(os_exists("build/llama.f32_gemv_k256_n3.sm_80.ptx"));
}

CLI_TEST(an_invalid_manifest_is_reported_and_replaced)
{
    static const char *const texts[] = { "", "{", "[]", "{\"kernels\": 3}", "\xff" };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        succeed(f, "--spec right.ini --out build");
        write_text(f, "build/llama_kernels.json", texts[i]);
        outcome o = succeed(f, i % 2 ? "--spec right.ini --out build --prune"
                                     : "--spec right.ini --out build --verify");
        assert_string_equal(o.err,
                            "build/llama_kernels.json: warning: is not a manifest of ptxgen: "
                            "it is replaced, and .ptx files of earlier runs are kept [E026]\n");
        assert_string_equal(ptxgen(f, "--spec right.ini --out build --prune").err, "");
    }
}

/* Reading a FIFO would block; reading /dev/zero would exhaust memory. */
CLI_TEST(irregular_files_in_the_output_folder_are_refused)
{
    static const struct {
        const char *name, *options, *said;
    } cases[] = {
        { "llama_kernels.h", "", "cannot write: no process reads this pipe [E027]" },
        { "llama_kernels.json", "--prune", "cannot read: not a regular file [E026]" },
        { "llama_kernels.json", "--verify", "cannot read: not a regular file [E026]" },
        { "llama.f32_gemv_k256_n3.sm_80.ptx", "--verify",
          "cannot read: not a regular file [E026]" },
        { "llama.f32_gemv_k256_n5.sm_80.ptx", "--prune", "cannot read: not a regular file [E026]" },
    };
    write_text(f, "more.ini", "[ptxgen]\nprefix = llama\n[f32_gemv]\nshape = 256x3, 256x5\n");
    for (size_t i = 0; i < 2 * sizeof cases / sizeof *cases; i++) {
        const char *name = cases[i / 2].name;
        bool is_device = i % 2;
        if (is_device && strstr(name, ".h")) /* writes to /dev/zero succeed */
            continue;
        do_in_shell("rm -rf build");
        succeed(f, "--spec more.ini --out build");
        do_in_shell(arena_format(
            f->arena, is_device ? "ln -sf /dev/zero build/%s" : "cd build && rm %s && mkfifo %s",
            name, name));
        int status = shell(arena_format(f->arena,
                                        "timeout 20 \"$PTXGEN\" --spec right.ini --out build %s "
                                        "2>said",
                                        cases[i / 2].options));
        assert_int_equal(status, 3);
        assert_non_null(strstr(read_text(f, "said"), arena_format(f->arena, "build/%s: error: %s",
                                                                  name, cases[i / 2].said)));
    }
}

CLI_TEST(columns_suit_the_weights)
{
    static const struct {
        const char *weights;
        int k;
        const char *said; /* NULL = the spec is valid */
    } cases[] = {
        { "q5_k", 100, "100 is not a multiple of 256, as q5_k needs; the smallest is 256 [E014]" },
        { "q5_k", 320, "320 is not a multiple of 256, as q5_k needs; use 256 or 512 [E014]" },
        { "mxfp4", 100, "100 is not a multiple of 32, as mxfp4 needs; use 96 or 128 [E014]" },
        { "nvfp4", 96, "96 is not a multiple of 64, as nvfp4 needs; use 64 or 128 [E014]" },
        { "q2_0", 96, "96 is not a multiple of 64, as q2_0 needs; use 64 or 128 [E014]" },
        { "q1_0", 320, "320 is not a multiple of 128, as q1_0 needs; use 256 or 384 [E014]" },
        { "mxfp4", 96, NULL },
        { "nvfp4", 320, NULL },
        { "q2_0", 320, NULL },
        { "q1_0", 384, NULL },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        write_text(f, "columns.ini",
                   arena_format(f->arena, "[gemv]\nweights = %s\nn = 1\nk = %d\n", cases[i].weights,
                                cases[i].k));
        const char *err = ptxgen(f, "--spec columns.ini --out build").err;
        if (cases[i].said ? !strstr(err, cases[i].said) : *err != '\0')
            fail_msg("%s, k %d: %s", cases[i].weights, cases[i].k, err);
    }
}

CLI_TEST(a_build_that_expects_another_header_fails)
{
    static const invocation invocations[] = {
        { "--spec right.ini --out build --expect build/llama_kernels.h", 0,
          "ptxgen: 2 kernels -> build/llama_kernels.h (4 files, 4 changed)\n", "" },
        { "--spec right.ini --out build --prefix phi --expect ./build//llama_kernels.h", 1, "",
          "./build//llama_kernels.h: error: --expect names a file that is not an output; with "
          "prefix = phi the header "
          "is build/phi_kernels.h [E036]\n" NOTHING_WRITTEN },
        { "--spec right.ini --out build --expect right.ini", 1, "",
          "right.ini: error: --expect names a file that is not an output; with prefix = llama the "
          "header is "
          "build/llama_kernels.h [E036]\n" NOTHING_WRITTEN },
    };
    for (size_t i = 0; i < sizeof invocations / sizeof *invocations; i++)
        check(f, &invocations[i]);
    assert_false(os_exists("build/phi_kernels.h"));
}

CLI_TEST(a_full_standard_output_is_status_3)
{
    if (!os_exists("/dev/full"))
        skip();
    static const char *const arguments[] = { "--help", "--version", "--list",
                                             "--spec right.ini --print-outputs", "--init=-" };
    for (size_t i = 0; i < sizeof arguments / sizeof *arguments; i++) {
        int status =
            shell(arena_format(f->arena, "\"$PTXGEN\" %s >/dev/full 2>.stderr", arguments[i]));
        assert_int_equal(status, 3);
        assert_non_null(strstr(read_text(f, ".stderr"), "No space left on device"));
    }
}

CLI_TEST(a_read_only_folder_is_status_3_and_keeps_its_files)
{
    succeed(f, "--spec right.ini --out build");
    const char *before = read_text(f, "build/llama_kernels.h");
    assert_int_equal(chmod("build", 0555), 0);
    bool writable = access("build", W_OK) == 0; /* root may write anywhere */
    outcome o = ptxgen(f, "--spec right.ini --out build --target sm_75,sm_90");
    assert_int_equal(chmod("build", 0755), 0);
    if (writable)
        skip();
    assert_int_equal(o.status, 3);
    assert_non_null(strstr(o.err, "cannot write: Permission denied"));
    assert_string_equal(read_text(f, "build/llama_kernels.h"), before);
}

CLI_TEST(print_outputs_names_every_output_and_writes_nothing)
{
    static const char arguments[] = "--spec \"$PTXGEN_STARTER\" --out 'a b'";
    outcome printed = ptxgen(f, arena_format(f->arena, "%s --print-outputs", arguments));
    assert_int_equal(printed.status, 0);
    assert_false(os_exists("a b"));
    succeed(f, arguments);
    write_text(f, "printed", printed.out);
    do_in_shell("find 'a b' -type f | LC_ALL=C sort >found && "
                "LC_ALL=C sort printed | cmp - found");
}

#ifdef PTXGEN_HAS_MODEL
CLI_TEST(a_plan_shows_what_each_step_launches_and_writes_nothing)
{
    write_text(f, "model.ini",
               "[ptxgen]\nprefix = model\ntargets = sm_80, sm_90\n"
               "[decoder]\narchitecture = llama\nlayers = 3\nhidden = 256\nff = 512\n"
               "num_heads = 4\nnum_kv_heads = 2\nhead_dim = 64\nvocab = 320\n"
               "norm_epsilon = 1e-5\nrope = norm\nrope_base = 10000\nmax_seq_len = 64\n"
               "kv_type = f16\nm = 1, 8\nweights = q8_0\nweights.ffn_down = q4_k: 1\n");
    static const char *const shown[] = {
        "^step of 1 token, 21 launches, .* on sm_90 (memory traffic ",
        "^step of 8 tokens, 21 launches, .* on sm_90 (memory traffic ",
        "^      layer 0, 2:$",
        "^      layer 1:$",
        "^    1 embed_rows q8_0 .* us",
        "^   13 stream_gemv q4_k .*ffn_down",
        "^   21 sample  *logits -> token, position, length ",
        "^memory  weights [0-9.]* MiB, cache [0-9.]* KiB (64 positions, f16), state ",
    };
    write_text(f, "plan", ptxgen(f, "--spec model.ini --plan").out);
    for (size_t i = 0; i < sizeof shown / sizeof *shown; i++)
        if (shell(arena_format(f->arena, "grep -q '%s' plan", shown[i])) != 0)
            fail_msg("not in the plan: %s", shown[i]);
    check(f, &(invocation){ "--spec model.ini --plan --target sm_80", 0, NULL, "" });
    assert_int_equal(shell("ls | grep -q model_kernels"), 1);
}
#endif

CLI_TEST(a_second_run_touches_no_file)
{
    static const char arguments[] = "--spec right.ini --out build --depfile build/kernels.d";
    succeed(f, arguments);
    do_in_shell("touch -t 200001010000 build/*");
    succeed(f, arguments);
    struct stat status;
    static const char *const files[] = { "build/llama_kernels.h", "build/llama_kernels.json",
                                         "build/llama.f32_gemv_k256_n3.sm_80.ptx",
                                         "build/kernels.d" };
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        assert_int_equal(stat(files[i], &status), 0);
        assert_true(status.st_mtime < 1000000000);
    }
}

CLI_TEST(a_failure_leaves_the_old_outputs_alone)
{
    succeed(f, "--spec right.ini --out build");
    do_in_shell("cp -r build old");
    assert_int_equal(ptxgen(f, "--spec wrong.ini --out build").status, 1);
    do_in_shell("diff -r build old");
}

CLI_TEST(the_depfile_makes_the_header_depend_on_the_spec)
{
    succeed(f, "--spec right.ini --out build --depfile kernels.d");
    const char *rule = read_text(f, "kernels.d");
    assert_non_null(rule);
    assert_string_equal(rule, "build/llama_kernels.h: right.ini\n");
}

CLI_TEST(a_stamp_is_new_after_each_run_and_the_depfile_names_it)
{
    static const char arguments[] =
        "--spec right.ini --out build --depfile build/d --stamp build/stamp";
    struct stat status;
    succeed(f, arguments);
    assert_string_equal(read_text(f, "build/d"), "build/stamp: right.ini\n");
    do_in_shell("touch -t 200001010000 build/*");
    succeed(f, arguments);
    assert_int_equal(stat("build/stamp", &status), 0);
    assert_true(status.st_mtime > 1000000000);

    do_in_shell("rm build/stamp");
    assert_int_equal(ptxgen(f, "--spec wrong.ini --out build --stamp build/stamp").status, 1);
    assert_int_equal(stat("build/stamp", &status), -1);
}

CLI_TEST(a_dump_shows_kernels_stage_by_stage)
{
    succeed(f, "--spec right.ini --dump build,fold,print");
    const char *text = read_text(f, ".stdout");
    const char *first = strstr(text, ".visible .entry f32_gemv_k256_n3(");
    assert_non_null(first);
    const char *second = strstr(first + 1, ".visible .entry f32_gemv_k256_n3(");
    assert_non_null(second);
    assert_non_null(strstr(second + 1, ".visible .entry f32_gemv_k256_n3("));
    assert_int_equal(shell("ls build 2>.nothing"), 2);
}

CLI_TEST(a_dash_reads_the_spec_from_standard_input)
{
    do_in_shell("\"$PTXGEN\" --spec - --out piped --depfile d <right.ini >.stdout");
    do_in_shell("cp right.ini '<stdin>'"); /* kernels name their spec's file */
    succeed(f, "--spec '<stdin>' --out build");
    do_in_shell("diff -r piped build");
    assert_null(strstr(read_text(f, "d"), "stdin"));
    assert_int_equal(shell("\"$PTXGEN\" --spec - --out piped <wrong.ini 2>.stderr"), 1);
    assert_int_equal(strncmp(read_text(f, ".stderr"), "<stdin>:7:13: error:", 20), 0);
}

CLI_TEST(line_ends_do_not_change_the_outputs)
{
    succeed(f, "--spec right.ini --out build");
    do_in_shell("mkdir dos && awk '{ printf \"%s\\r\\n\", $0 }' right.ini >dos/right.ini");
    succeed(f, "--spec dos/right.ini --out crlf");
    do_in_shell("diff -r crlf build");
}

CLI_TEST(messages_are_colored_on_demand_only)
{
    static const char *const plain[] = { "", "--color=auto", "--color=never" };
    for (size_t i = 0; i < sizeof plain / sizeof *plain; i++)
        assert_null(strchr(
            ptxgen(f, arena_format(f->arena, "--spec wrong.ini --out b %s", plain[i])).err, 033));
    assert_non_null(strstr(ptxgen(f, "--spec wrong.ini --out b --color=always").err, "\033[1;31m"));
}

CLI_TEST(quiet_hides_warnings_but_no_errors)
{
    write_text(f, "twice.ini", "[f32_gemv]\nk = 256, 256\nn = 1\n");
    assert_non_null(strstr(ptxgen(f, "--spec twice.ini --out build").err, "[E017]"));
    assert_string_equal(ptxgen(f, "--spec twice.ini --out build -q").err, "");
    assert_non_null(strstr(ptxgen(f, "--spec wrong.ini --out build -q").err, "[E014]"));
}

CLI_TEST(validation_without_ptxas_is_a_clear_error)
{
    outcome o = ptxgen(f, "--spec right.ini --out build --validate=/none/ptxas");
    assert_int_equal(o.status, 1);
    assert_non_null(strstr(o.err, "/none/ptxas"));
    assert_non_null(strstr(o.err, "[E028]"));
    assert_false(os_exists("build"));
}

CLI_TEST(checks_report_their_figures)
{
    if (shell("ptxas --version >.stdout 2>&1") != 0)
        skip();
    outcome o = succeed(f, "--spec right.ini --validate --verify");
    assert_int_equal(strncmp(o.out, "ptxas ", 6), 0);
    assert_non_null(strstr(o.out, " 2 of 2 accepted, 0 spills, "));
    assert_non_null(strstr(o.out, "\nverify          2 of 2 right, worst error 0."));
}

static const char GEMV[] = "build/llama.f32_gemv_k256_n3.sm_80.ptx";

/* Generates right.ini and edits a kernel's file with sed. Returns the file's new text. */
static const char *edit_kernel(fixture *f, const char *sed)
{
    succeed(f, "--spec right.ini --out build");
    const char *before = read_text(f, GEMV);
    do_in_shell(arena_format(f->arena, "sed -i '%s' %s", sed, GEMV));
    const char *after = read_text(f, GEMV);
    assert_string_not_equal(before, after);
    return after;
}

CLI_TEST(verify_finds_the_error_in_an_edited_kernel_and_its_line)
{
    static const struct {
        const char *sed, *line, *what;
    } edits[] = {
        { "s/%r4, 256;/%r4, 384;/", "ld.global.nc.v4.f32 {", "[out of bounds]" },
        { "s/, 8, 31, 0x/, 4, 31, 0x/", "st.global.f32", ", stored by PTX line " },
        { "s/fma.rn.f32/fmma.rn.f32/", "fmma.rn.f32", "fmma" },
        { "s/mov.f32 .*0f00000000;//", "fma.rn.f32", "[undefined register]" },
    };
    for (size_t i = 0; i < sizeof edits / sizeof *edits; i++) {
        const char *edited = edit_kernel(f, edits[i].sed);
        outcome o = ptxgen(f, "--verify --spec right.ini --out build/");
        assert_int_equal(o.status, 1);
        unsigned line = 0;
        assert_int_equal(
            sscanf(o.err, "build/llama.f32_gemv_k256_n3.sm_80.ptx:%u:5: error: ", &line), 1);
        const char *named = edited;
        for (unsigned l = 1; l < line; l++)
            named = strchr(named, '\n') + 1;
        assert_int_equal(strncmp(named + 4, edits[i].line, strlen(edits[i].line)), 0);
        assert_non_null(strstr(o.err, edits[i].what));
        assert_string_equal(read_text(f, GEMV), edited);
    }
}

/* The kernel for sm_86 also runs on RTX 40 and 50. */
CLI_TEST(verify_applies_the_limits_of_all_gpus_to_an_edit)
{
    static const char kernels[] = "build/ptxgen.stream_gemv_q8_q4k_k14336_n24_m8_w12_r2";
    write_text(f, "room.ini",
               "[ptxgen]\ntargets = sm_80, sm_86\n"
               "[stream_gemv_q8]\nweights = q4_k\nshape = 14336x24\nm = 8\n");
    for (int i = 0; i < 2; i++) { /* as generated, and with more static shared memory */
        succeed(f, "--spec room.ini --out build");
        if (i)
            do_in_shell(arena_format(
                f->arena, "sed -i 's/x_factors.8./x_factors[8000]/' %s.sm_86.ptx", kernels));
        outcome o = ptxgen(f, "--verify --spec room.ini --out build");
        assert_int_equal(o.status, i);
        assert_int_equal(strstr(o.err, "sm_86 (101376), sm_89 (101376), sm_120 (101376)") != NULL,
                         i);
    }
}

CLI_TEST(verify_keeps_a_correct_edit_and_reports_it)
{
    const char *edited = edit_kernel(f, "$ a // tuned by hand");
    const char *header = read_text(f, "build/llama_kernels.h");
    for (int i = 0; i < 2; i++) {
        outcome o = succeed(f, "--verify --spec right.ini --out build");
        assert_string_equal(
            o.err, "build/llama.f32_gemv_k256_n3.sm_80.ptx: warning: edited since ptxgen wrote it; "
                   "verified and kept; the header embeds the generated kernel [E032]\n");
        assert_non_null(strstr(o.out, "3 of 3 right"));
        assert_string_equal(read_text(f, GEMV), edited);
        assert_string_equal(read_text(f, "build/llama_kernels.h"), header);
    }
    succeed(f, "--spec right.ini --out build");
    assert_string_not_equal(read_text(f, GEMV), edited);
}

#ifdef PTXGEN_HAS_MODEL
/* A length that is wrong only after position 1 passes a kernel's own trials. */
CLI_TEST(verify_runs_a_step_with_edited_kernels_however_they_are_embedded)
{
    static const char *const embeds[] = { "string", "incbin", "c23" };
    write_text(f, "step.ini",
               "[ptxgen]\ntargets = sm_80\n"
               "[decoder]\narchitecture = llama\nlayers = 1\nhidden = 64\nff = 64\n"
               "num_heads = 2\nnum_kv_heads = 1\nhead_dim = 32\nvocab = 64\n"
               "max_seq_len = 16\nweights = q8_0\nm = 1\n");
    for (size_t i = 0; i < sizeof embeds / sizeof *embeds; i++) {
        const char *run =
            arena_format(f->arena, "--spec step.ini --out build --embed %s", embeds[i]);
        succeed(f, run);
        do_in_shell("cp build/*sample* sample.ptx && sed -i 's/add.u32 *\\(%r[0-9]*\\), "
                    "\\(%r[0-9]*\\), 2;/&\\n    setp.eq.u32 %p0, \\2, 1;\\n"
                    "    @%p0 add.u32 \\1, \\1, 1;/' build/*sample* && "
                    "! cmp -s sample.ptx build/*sample*");
        outcome o = ptxgen(f, arena_format(f->arena, "%s --verify", run));
        assert_int_equal(o.status, 1);
        if (!strstr(o.err, "step.ini:3:2: error: step of 1 token") ||
            !strstr(o.err, "the next length of row 0 is 4, expected 3"))
            fail_msg("%s", o.err);
    }
}
#endif

/* With embed = c23 or incbin, the compiler embeds the edited files. */
CLI_TEST(a_header_that_embeds_files_lists_verified_edits)
{
    edit_kernel(f, "s/^\\.version 6.3/.version 7.0/; $ a // tuned by hand");
    const char *edited = read_text(f, GEMV);
    const char *sum = fnv1a64_text(f->arena, fnv1a64(edited, strlen(edited)));
    for (int i = 0; i < 3; i++) {
        outcome o = succeed(f, "--verify --spec right.ini --out build --embed incbin");
        assert_string_equal(
            o.err, "build/llama.f32_gemv_k256_n3.sm_80.ptx: warning: edited since ptxgen wrote it; "
                   "verified and kept; the header embeds the edited kernel [E032]\n");
        assert_non_null(strstr(o.out, "2 of 2 right"));
        assert_string_equal(read_text(f, GEMV), edited);
        const char *header = read_text(f, "build/llama_kernels.h");
        assert_non_null(
            strstr(header, arena_format(f->arena, "_k256_n3_ptx, %zu, UINT64_C(0x%s),\n",
                                        strlen(edited), sum)));
        assert_non_null(strstr(header, "    80, 70, 0, 0, /* sm, isa, overlaps, specific */"));
        assert_non_null(strstr(read_text(f, "build/llama_kernels.json"),
                               arena_format(f->arena, "\"edited_fnv1a64\": \"%s\"", sum)));
    }
    succeed(f, "--spec right.ini --out build --embed incbin");
    assert_string_not_equal(read_text(f, GEMV), edited);
    assert_null(strstr(read_text(f, "build/llama_kernels.h"), sum));
    assert_null(strstr(read_text(f, "build/llama_kernels.json"), "edited"));
}

CLI_TEST(a_kernel_whose_wait_was_edited_out_does_not_overlap)
{
    const char *run = "--verify --spec norm.ini --out build --embed incbin";
    write_text(f, "norm.ini", "[ptxgen]\nprefix = llama\ntargets = sm_90\n[rms_norm]\nk = 64\n");
    succeed(f, run);
    assert_non_null(strstr(read_text(f, "build/llama_kernels.json"), "\"overlaps\": true"));
    do_in_shell("sed -i '/griddepcontrol.wait/d' build/llama.rms_norm*.ptx");
    succeed(f, run);
    assert_non_null(strstr(read_text(f, "build/llama_kernels.json"), "\"overlaps\": false"));
    assert_non_null(strstr(read_text(f, "build/llama_kernels.h"),
                           "    90, 78, 0, 0, /* sm, isa, overlaps, specific */"));
}

CLI_TEST(an_edit_for_a_newer_target_is_an_error)
{
    edit_kernel(f, "s/^\\.version .*/.version 7.8/; s/^\\.target sm_80/.target sm_90/");
    outcome o = ptxgen(f, "--verify --spec right.ini --out build");
    assert_int_equal(o.status, 1);
    assert_string_equal(o.err, "build/llama.f32_gemv_k256_n3.sm_80.ptx: error: f32_gemv_k256_n3: "
                               ".target sm_90 is too new for sm_80 [E030]\n" NOTHING_WRITTEN);
}

CLI_TEST(verify_rewrites_outputs_of_an_earlier_ptxgen)
{
    succeed(f, "--spec right.ini --out build");
    const char *generated = read_text(f, GEMV);
    const char *now = fnv1a64_text(f->arena, fnv1a64(generated, strlen(generated)));
    const char *stale = edit_kernel(f, "s/fma.rn.f32/sub.rn.f32/; s/, %f1;/;/");
    const char *then = fnv1a64_text(f->arena, fnv1a64(stale, strlen(stale)));
    do_in_shell(arena_format(f->arena, "sed -i 's/%s/%s/' build/llama_kernels.json", now, then));
    outcome o = succeed(f, "--verify --spec right.ini --out build");
    assert_string_equal(o.err, "");
    assert_string_equal(read_text(f, GEMV), generated);
}

CLI_TEST(a_kernel_absent_from_the_manifest_is_verified_unchanged)
{
    edit_kernel(f, "s/fma.rn.f32/fmma.rn.f32/");
    do_in_shell("echo '{' >build/llama_kernels.json");
    assert_int_equal(ptxgen(f, "--verify --spec right.ini --out build").status, 1);
    do_in_shell("rm build/llama_kernels.json");
    assert_int_equal(ptxgen(f, "--verify --spec right.ini --out build").status, 1);
}

CLI_TEST(verify_prints_one_line_per_kernel_in_spec_order)
{
    outcome o = succeed(f, "--spec right.ini --verify -v -j1");
    static const char expected[] =
        "kernel                                blocks  thread instructions  largest error       "
        "bound\n"
        "llama.f32_gemv_k256_n3.sm_80.ptx         222 ";
    assert_int_equal(strncmp(o.out, expected, strlen(expected)), 0);
    assert_non_null(strstr(o.out, "\nllama.f32_gemv_k512_n4.sm_80.ptx         296 "));
    assert_string_equal(ptxgen(f, "--spec right.ini --verify -v -j4").out, o.out);
}

CLI_TEST(the_starter_spec_is_right_and_short)
{
    outcome o = succeed(f, "--spec \"$PTXGEN_STARTER\" --out build -v");
    assert_string_equal(o.err, "");
    size_t kernels = 0;
    for (const char *at = o.out; (at = strstr(at, ", PTX ")); at++)
        kernels++;
    assert_in_range(kernels, 5, 16);
    succeed(f, "--init");
    do_in_shell("cmp kernels.ini \"$PTXGEN_STARTER\"");
}
