/* What the storey above, which knows a model's step, adds to runs of the storey of kernels. It is
 * one table of functions; the rooms of kernels call them and know nothing else of that storey. A
 * program without it has NULL in its place.
 */
#ifndef PTXGEN_KERNEL_UPPER_H
#define PTXGEN_KERNEL_UPPER_H

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

/* Places of a header's template that the upper storey fills in. */
typedef enum header_place {
    HEADER_PLAN_HEAD,
    HEADER_PLAN_TYPES,
    HEADER_PLAN_DECLARATIONS,
    HEADER_PLAN_DATA,
    HEADER_PLAN_FUNCTIONS
} header_place;

/* A plan, and the kernels that it needs, each configuration once. */
typedef struct planned {
    const struct plan *plan;
    const struct instance *kernels;
    size_t kernel_count;
} planned;

/* What running a plan has shown. */
typedef struct step_proof {
    bool right;
    const char *said;    /* when right: a line of the summary */
    const char *message; /* when not */
    location where;      /* of the section */
} step_proof;

/* What a model's file does not decide; 0 and -1: the usual. */
typedef struct model_options {
    int64_t max_seq_len; /* 0: what the model was trained for, at most 8k */
    int64_t kv_type;     /* KV_; -1: f16 */
} model_options;

typedef struct upper_storey {
    const char *section; /* the name of its section in a spec */

    /* Reads the section and plans its kernels for some targets. Returns false after errors. */
    bool (*read)(arena *a, const struct section *s, const target *const *wanted,
                 size_t wanted_count, planned *out, diags *d);

    /* Prints what --help-family says of the section. */
    void (*help)(strbuf *out);

    /* Returns the keys of the section, for the manual. */
    const struct help_row *(*keys)(arena *a, size_t *count);

    /* Prints its part of a header, and returns its part of a manifest. */
    void (*header)(strbuf *out, const struct described_set *d, header_place place);
    struct json_t *(*manifest)(arena *a, const struct plan *p);
    const char *manifest_convention; /* what no number of that part says */

    /* Returns true if a set has all kernels of its plan; that of a part of a spec has not. */
    bool (*is_whole)(const struct kernel_set *set);

    /* Runs the set's plan with these kernels, which are in the order of the set. */
    step_proof (*verify)(arena *a, const struct kernel_set *set, const struct kernel *kernels,
                         uint64_t seed, unsigned jobs);

    /* Prints a plan with its predicted times on a target, for --plan. */
    void (*print)(strbuf *out, const struct plan *p, const target *t, bool overlapped);

    /* Returns the architectures whose files from_file reads. */
    const char *(*architectures)(arena *a);

    /* Writes the spec of a model's file, and a line that sums the model up. Returns false after
     * errors. */
    bool (*from_file)(arena *a, const char *path, const struct spec_overrides *overrides,
                      const model_options *options, strbuf *spec, strbuf *said, diags *d);
} upper_storey;

#endif
