/* What kernel tests share: instances from short texts, kernels from instances, runs on a device. */
#ifndef PTXGEN_TESTS_SUITE_H
#define PTXGEN_TESTS_SUITE_H

#include "test_arena.h"
#include "check/run.h"
#include "check/verify.h"
#include "kernel/kernel.h"
#include "kernel/mutate.h"
#include "kernel/oldest_target.h"

/* The instance of a family that a text like "k=512 n=33 num_warps=2" says; keys that it does not
 * name have their defaults, and n_kv 2, experts 5, experts_used 2. Words are given as in a spec
 * ("dims=dynamic"). False where the family has no such key or word; a value that it refuses fails
 * the test. */
bool suite_instance(arena *a, const family *f, const char *text, instance *in);

/* The same, where its having none fails the test. */
instance suite_made(arena *a, const family *f, const char *keys, ...) PRINTF_LIKE(3, 4);

/* Returns true for families of attention, whose tests are apart from those of other families. */
bool suite_is_attention(const family *f);

/* Of such a text what sets keys that the family has, to words that it takes. */
const char *suite_known_keys(arena *a, const family *f, const char *text);

/* The text that sets a family's weights to number i of what it takes, "weights=q4_k ": "" at 0
 * where it has no such key, NULL behind the last. */
const char *suite_weights(arena *a, const family *f, size_t i);

/* The smallest number that a key takes with those weights, and that all others are multiples of. */
int64_t suite_multiple(arena *a, const family *f, const char *weights, const key *k);

/* Builds a kernel for sm_75, which every device runs, or for the oldest target that has what the
 * instance's keys choose. Fails the test when it can't be built. */
kernel suite_kernel(arena *a, const instance *in);

/* The same for a target. */
kernel suite_kernel_for(arena *a, const instance *in, const target *t);

/* As suite_kernel, of a family by its name and the text of an instance. */
kernel suite_kernel_of(arena *a, const char *family_name, const char *text, instance *in);

/* An instance, its kernel and a trial of it. */
typedef struct launched {
    instance in;
    kernel kernel;
    trial trial;
} launched;

/* Makes one of a family by its name, on one SM. */
launched *suite_launched(arena *a, const char *family_name, const char *text);

/* An instance's trial with so many rows. */
trial suite_rows(arena *a, const instance *in, int64_t m);

/* A parameter of a trial by its name; fails the test where there is none. */
trial_param *suite_param(trial *t, const char *name);

/* Opens a GPU: false and an error where there is none. */
bool suite_gpu(arena *a, device *d);

/* Tests that are given the emulator as a device: EMULATOR_TEST(name) { … } has it as d, and an
 * arena as a. */
#define EMULATOR_TEST(name)                     \
    static void name##_on(arena *a, device *d); \
    ARENA_TEST(name)                            \
    {                                           \
        device d = device_emulator(a);          \
        name##_on(a, &d);                       \
        d.close(&d);                            \
    }                                           \
    static void name##_on(__attribute__((unused)) arena *a, device *d)

/* The sizes of an instance, with all positions of a cache valid. */
trial_setup suite_setup(const instance *in, const device *d);

/* Runs a whole grid and judges all outputs; every element must be written. Returns NULL or what is
 * wrong. expected (may be NULL) has the values of the first output, in place of the reference's;
 * their tolerance is the family's. output (may be NULL) is set to the bytes of the first output. */
const char *suite_run(arena *a, device *d, const kernel *k, const trial *t, const double *expected,
                      const void **output);

/* The same with an output where an input is, by their names. */
const char *suite_run_in_place(arena *a, device *d, const kernel *k, const trial *t,
                               const char *output, const char *input);

/* Runs a grid without judging. output and written (one byte a block of its format) are those of the
 * first output; what is not written is 0xff. Returns NULL or what went wrong. */
const char *suite_launch(arena *a, device *d, const kernel *k, const trial *t, const void **output,
                         const uint8_t **written);

/* The same, with the bytes of all outputs by the number of their parameter; those that addresses
 * point to one behind the other. */
const char *suite_launch_all(arena *a, device *d, const kernel *k, const trial *t,
                             const void *outputs[MAX_PARAMS]);

/* What running a grid on the emulator takes, without judging. output (may be NULL) is set to the
 * bytes of the first output. A fault fails the test. */
emu_stats suite_count(arena *a, const kernel *k, const trial *t, const void **output);

/* The first output of a run on the emulator, which is not judged. */
const void *suite_output(arena *a, const launched *l);

/* An instance's trial on a device: all positions valid, ordinary inputs. */
trial suite_trial(arena *a, const instance *in, const device *d);

/* Verifies a kernel that is expected to be right, or wrong. What was as expected is found again in
 * the cache, with its message and line alone. */
verify_result suite_verify(arena *a, const kernel *k, bool expected);

/* Fails the test where there is a text. */
void expect_right(const char *wrong);

/* Runs a kernel on a trial of its own, and fails the test where it is not right. */
void expect_runs_right(arena *a, device *d, const launched *l);

/* Builds an instance's kernel and does that on a trial, or with inputs of a kind, all positions
 * valid. */
void expect_trial_right(arena *a, device *d, const instance *in, const trial *t);
void expect_filled_right(arena *a, device *d, const instance *in, fill_kind kind);

/* Fails the test if two results of a kernel differ in a bit. Says which word differs first, and
 * both of its values. of names the results, such as "row 3 alone". */
void expect_same_bits(const char *kernel_name, const char *of, const void *got,
                      const void *expected, size_t bytes);

/* Fails the test where a kernel is not right as it is. */
void expect_kernel_right(arena *a, const kernel *k);

/* Fails the test where a kernel is not right as it is, or where it is found right with a fault. */
void expect_fault_found(arena *a, const kernel *k, const line_edit *fault);

/* A fault in a kernel of some configuration; the same of many. */
typedef struct planted_fault {
    const char *family, *text;
    line_edit edit;
} planted_fault;
#define FAULT(of, keys, ...) \
    {                        \
        of, keys,            \
        {                    \
            __VA_ARGS__      \
        }                    \
    }
void expect_faults_found(arena *a, const planted_fault *faults, size_t count);

/* The same of faults in one kernel. */
void expect_edits_found(arena *a, const char *family_name, const char *text,
                        const line_edit *faults, size_t count);

/* The same of a kernel that is right, with a text that has a fault; how is a part of what is said
 * of it. */
void expect_text_wrong(arena *a, const kernel *k, const char *text, const char *how);

/* Overwrites the content of the input numbered input, all of it. */
void put_input(trial *t, size_t input, const void *bytes);

/* One cmocka test: a check of a family, with weights that it takes, on a device. */
typedef struct subject {
    const family *family;
    const char *weights;   /* suite_weights, or another suite_texts */
    size_t number;         /* of that text */
    device *device;        /* launch NULL: there is none, skip */
    size_t sharing, *runs; /* for suite_takes_run */
    bool shared;           /* the normal tier makes a third of its runs */
} subject;

/* Returns true if a check is to make its next run. The formats of a family that has many of them
 * share its code: each makes one run in some, which those before and after it leave out. Experts
 * read each format by code of other families, and make fewer. The tier full makes all. */
bool suite_takes_run(const subject *s);

typedef struct suite_check {
    const char *name;
    void (*check)(arena *a, const subject *s);
    const char *key; /* without which the check makes no sense for a family; NULL: none */
    bool emulator_only;
} suite_check;

/* A function as a check of its name, with more of its fields in CHECK_WITH(function, .key = "m").
 */
#define CHECK(function)                      \
    {                                        \
        .name = #function, .check = function \
    }
#define CHECK_WITH(function, ...)                         \
    {                                                     \
        .name = #function, .check = function, __VA_ARGS__ \
    }

/* Returns text number i of those that set a family's formats, or NULL behind the last. */
typedef const char *suite_texts(arena *a, const family *f, size_t i);

/* Lists every check of every family that fits, in the formats that texts names, on every device, as
 * FAMILY_WEIGHTS_CHECK_on_the_DEVICE. But in the tier full it lists one in step of a family's
 * formats for each check, and in the tier quick the first of all.
 * PTXGEN_TEST_FAMILY=NAME,NAME tests some families, PTXGEN_TEST_DEVICE=GPU the GPU alone, which
 * then has to be there, PTXGEN_TEST_TARGET=sm_90 the kernels of that target in place of the oldest
 * one's where it has them. Ends the program if one of these is unknown. */
void suite_list(const char *file, suite_texts *texts, size_t step, bool (*fits)(const family *f),
                const suite_check *checks, size_t count);

#endif
