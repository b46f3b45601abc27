/* Interface of the model storey (src/model) to the kernel storey: one table of functions. The
 * kernel storey knows nothing else about it. A program without models has NULL in its place. */
#pragma once

#include "base/diag.h"
#include "base/strbuf.h"
#include "kernel/target.h"

struct described_set;
struct json_t;
struct instance;
struct kernel;
struct kernel_set;
struct plan;
struct section;
struct spec_overrides;

/* Parts of a header's template that the upper storey prints. */
typedef enum header_place {
    HEADER_PLAN_HEAD,
    HEADER_PLAN_TYPES,
    HEADER_PLAN_DECLARATIONS,
    HEADER_PLAN_DATA,
    HEADER_PLAN_FUNCTIONS
} header_place;

/* A plan and its kernels, each configuration once. */
typedef struct planned {
    const struct plan *plan;
    const struct instance *kernels;
    size_t kernel_count;
} planned;

/* Result of verifying a plan. */
typedef struct step_proof {
    bool right;
    const char *said;    /* if right: a line for the summary */
    const char *message; /* if wrong: the error */
    location where;      /* place of the section */
} step_proof;

/* Settings that a model's file does not decide; 0 and -1: defaults. */
typedef struct model_options {
    int64_t max_seq_len; /* 0: the model's training length, at most 8k */
    int64_t kv_type;     /* KV_; -1: f16 */
} model_options;

typedef struct upper_storey {
    const char *section; /* name of its section in a spec */

    /* Reads the section and plans its kernels for count targets. Returns false after errors. */
    bool (*read)(arena *a, const struct section *s, const target *const *wanted,
                 size_t wanted_count, planned *out, diags *d);

    /* Prints the section's text for --help-family. */
    void (*help)(strbuf *out);

    /* Returns the keys of the section, for the manual. */
    const struct help_row *(*keys)(arena *a, size_t *count);

    /* Print its parts of a header, and return its part of a manifest. */
    void (*header)(strbuf *out, const struct described_set *d, header_place place);
    struct json_t *(*manifest)(arena *a, const struct plan *p);
    const char *manifest_convention; /* text of conventions.decoder in the manifest */

    /* Returns true if a set has all kernels of its plan; false with --only, for example. */
    bool (*is_whole)(const struct kernel_set *set);

    /* Runs the set's plan with these kernels, which are in the set's order. */
    step_proof (*verify)(arena *a, const struct kernel_set *set, const struct kernel *kernels,
                         uint64_t seed, unsigned jobs);

    /* Prints a plan with its predicted times on a target, for --plan. */
    void (*print)(strbuf *out, const struct plan *p, const target *t, bool overlapped);

    /* Returns the names of the architectures that from_file reads. */
    const char *(*architectures)(arena *a);

    /* Writes a model file's spec and a one-line summary. Returns false after errors. */
    bool (*from_file)(arena *a, const char *path, const struct spec_overrides *overrides,
                      const model_options *options, strbuf *spec, strbuf *said, diags *d);
} upper_storey;
