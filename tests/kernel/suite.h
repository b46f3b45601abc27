/* Helpers of the kernel tests: instances from short texts, kernels from instances, runs on a
 * device. */
#ifndef PTXGEN_TESTS_SUITE_H
#define PTXGEN_TESTS_SUITE_H

#include "test_arena.h"
#include "check/run.h"
#include "check/verify.h"
#include "kernel/kernel.h"
#include "kernel/mutate.h"
#include "kernel/oldest_target.h"

/* Sets in to the instance that a text describes, such as "k=512 n=33 num_warps=2". Words are
 * written as in a spec ("dims=dynamic"). Other keys have their defaults, except n_kv = 2, experts =
 * 5 and experts_used = 2. Returns false if the family lacks a key or does not accept a word. An
 * invalid value fails the test. */
bool suite_instance(arena *a, const family *f, const char *text, instance *in);

/* Returns the instance that a formatted text describes. Fails the test if suite_instance returns
 * false. */
instance suite_made(arena *a, const family *f, const char *keys, ...) PRINTF_LIKE(3, 4);

/* Returns true for attention families, which have test files of their own. */
bool suite_is_attention(const family *f);

/* Returns the part of a text whose keys the family has and whose words it accepts. Chunk sizes are
 * rounded up to those that it accepts. */
const char *suite_known_keys(arena *a, const family *f, const char *text);

/* Returns a text that selects the i-th weight format of a family, such as "weights=q4_k ". A family
 * without that key has one text, "". Returns NULL after the last format. */
const char *suite_weights(arena *a, const family *f, size_t i);

/* Returns the number that a key's values must be a multiple of with these weights. */
int64_t suite_multiple(arena *a, const family *f, const char *weights, const key *k);

/* Builds a kernel for the oldest target that supports the instance's keys, mostly sm_75.
 * PTXGEN_TEST_TARGET replaces it with a newer target. Fails the test if the kernel cannot be built.
 */
kernel suite_kernel(arena *a, const instance *in);

/* Builds a kernel for a target. Fails the test if it cannot be built. */
kernel suite_kernel_for(arena *a, const instance *in, const target *t);

/* Sets in to the instance that a text describes and builds its kernel as suite_kernel does. */
kernel suite_kernel_of(arena *a, const char *family_name, const char *text, instance *in);

/* An instance, its kernel and a trial of the kernel. */
typedef struct launched {
    instance in;
    kernel kernel;
    trial trial;
} launched;

/* Makes an instance of a named family with its kernel and a trial for one SM. */
launched *suite_launched(arena *a, const char *family_name, const char *text);

/* Returns a trial of an instance with m rows. */
trial suite_rows(arena *a, const instance *in, int64_t m);

/* Returns the named parameter of a trial. Fails the test if there is none. */
trial_param *suite_param(trial *t, const char *name);

/* Opens a GPU. Returns false and sets d->error if there is none. */
bool suite_gpu(arena *a, device *d);

/* Defines a test that runs on the emulator: EMULATOR_TEST(name) { … } has the device d and an arena
 * a. */
#define EMULATOR_TEST(name)                     \
    static void name##_on(arena *a, device *d); \
    ARENA_TEST(name)                            \
    {                                           \
        device d = device_emulator(a);          \
        name##_on(a, &d);                       \
        d.close(&d);                            \
    }                                           \
    static void name##_on(__attribute__((unused)) arena *a, device *d)

/* Returns the sizes of an instance's trial, with all cache positions valid. */
trial_setup suite_setup(const instance *in, const device *d);

/* Runs a whole grid and judges all outputs; every element must be written. expected replaces the
 * reference's values of the first output, within the family's tolerance; it may be NULL. output,
 * which may be NULL, is set to the bytes of the first output. Returns NULL, or a description of the
 * failure. */
const char *suite_run(arena *a, device *d, const kernel *k, const trial *t, const double *expected,
                      const void **output);

/* Runs and judges a grid whose named output aliases the named input. */
const char *suite_run_in_place(arena *a, device *d, const kernel *k, const trial *t,
                               const char *output, const char *input);

/* Runs a grid without judging it. output and written are set to the first output and to one byte
 * per block of its format. Unwritten bytes are 0xff. Returns NULL, or a description of the failure.
 */
const char *suite_launch(arena *a, device *d, const kernel *k, const trial *t, const void **output,
                         const uint8_t **written);

/* Runs a grid without judging it and sets outputs, indexed by parameter. */
const char *suite_launch_all(arena *a, device *d, const kernel *k, const trial *t,
                             const void *outputs[MAX_PARAMS]);

/* Runs a grid on the emulator without judging it and returns the statistics. output, which may be
 * NULL, is set to the bytes of the first output. A fault fails the test. */
emu_stats suite_count(arena *a, const kernel *k, const trial *t, const void **output);

/* Returns the first output of a run on the emulator, without judging it. */
const void *suite_output(arena *a, const launched *l);

/* Returns an instance's trial on a device: all positions valid, ordinary inputs. */
trial suite_trial(arena *a, const instance *in, const device *d);

/* Verifies a kernel that is expected to be right, or wrong. An expected result is cached; from the
 * cache it has only its message and line. */
verify_result suite_verify(arena *a, const kernel *k, bool expected);

/* Fails the test with the text `wrong`, unless that is NULL. */
void expect_right(const char *wrong);

/* Runs a kernel on its own trial. Fails the test if a result is wrong. */
void expect_runs_right(arena *a, device *d, const launched *l);

/* Builds an instance's kernel and runs it on a trial, or on a new trial with inputs of a kind and
 * all positions valid. Fails the test if a result is wrong. */
void expect_trial_right(arena *a, device *d, const instance *in, const trial *t);
void expect_filled_right(arena *a, device *d, const instance *in, fill_kind kind);

/* Fails the test if two results of a kernel differ in a bit. The message gives the first differing
 * word and both values. `of` names the results, such as "row 3 alone". */
void expect_same_bits(const char *kernel_name, const char *of, const void *got,
                      const void *expected, size_t bytes);

/* Fails the test if a kernel does not pass verification. */
void expect_kernel_right(arena *a, const kernel *k);

/* Fails the test if a kernel does not pass verification, or if it still passes with a fault
 * planted. */
void expect_fault_found(arena *a, const kernel *k, const line_edit *fault);

/* A fault to plant in a kernel, with the kernel's family and keys. */
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

/* Fails the test if one of these faults in one kernel is not found. */
void expect_edits_found(arena *a, const char *family_name, const char *text,
                        const line_edit *faults, size_t count);

/* Fails the test if a faulty text of a kernel passes verification, or if the message does not
 * contain `how`. */
void expect_text_wrong(arena *a, const kernel *k, const char *text, const char *how);

/* Overwrites all bytes of an input. Inputs are numbered from 0. */
void put_input(trial *t, size_t input, const void *bytes);

/* Sets the sequence of each row. Lengths and caches stay as they are. */
void suite_put_sequences(trial *t, const uint32_t *sequences);

/* Gives rows with equal numbers the place of the first of them in the buffers of sequences, and
 * returns the place of each row. */
const uint32_t *suite_put_places(arena *a, trial *t, const int *numbers);

/* Returns the offset in bytes of a position's row in a pool. */
size_t suite_cache_offset(const trial *t, const trial_param *pool, size_t sequence, int64_t kv_head,
                          int64_t position);

/* Copies positions of a KV head's cache from a pool of one trial to a pool of another. */
typedef struct cache_part {
    const trial *trial;
    const trial_param *pool;
    size_t sequence;
    int64_t kv_head, first;
} cache_part;
void suite_copy_cache(cache_part to, cache_part from, int64_t count);

/* A check's parameters: a family, the formats of its weights, and a device. */
typedef struct subject {
    const family *family;
    const char *weights;   /* text from suite_weights or another suite_texts */
    size_t number;         /* index of that text */
    device *device;        /* launch is NULL if there is no device: skip */
    size_t sharing, *runs; /* used by suite_takes_run */
    bool shared;           /* the tier normal makes only a third of the runs */
} subject;

/* Returns true if a check is to make its next run. Formats of one family share most of their code,
 * so that the runs are divided among them. Families with experts use the format code of other
 * families and make fewer runs. The tier full makes all. */
bool suite_takes_run(const subject *s);

typedef struct suite_check {
    const char *name;
    void (*check)(arena *a, const subject *s);
    const char *key; /* key that a family must have for this check, or NULL */
    bool emulator_only;
} suite_check;

/* Defines a check named for its function. CHECK_WITH(function, .key = "m") sets further fields. */
#define CHECK(function)                      \
    {                                        \
        .name = #function, .check = function \
    }
#define CHECK_WITH(function, ...)                         \
    {                                                     \
        .name = #function, .check = function, __VA_ARGS__ \
    }

/* Returns the i-th text that sets a family's formats, or NULL after the last. */
typedef const char *suite_texts(arena *a, const family *f, size_t i);

/* Lists each check for each family that fits, on each device, as
 * FAMILY_WEIGHTS_CHECK_on_the_DEVICE. The tier full lists a check with all texts, the tier normal
 * with every step-th text, and the tier quick at most with the first text.
 *
 * These environment variables select tests; an unknown name ends the program:
 * - PTXGEN_TEST_FAMILY=NAME,NAME: only these families
 * - PTXGEN_TEST_DEVICE=GPU: only the GPU, which must be present
 * - PTXGEN_TEST_TARGET=sm_90: kernels for this target where it supports them, instead of the oldest
 */
void suite_list(const char *file, suite_texts *texts, size_t step, bool (*fits)(const family *f),
                const suite_check *checks, size_t count);

#endif
