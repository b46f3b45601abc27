/* A plan while it is made: launches of kernels, whose arguments are bound by the names of the
 * parameters, and buffers, whose places are known when a step has all its launches.
 */
#ifndef PTXGEN_MODEL_PLAN_PLANNER_H
#define PTXGEN_MODEL_PLAN_PLANNER_H

#include "base/hash.h"
#include "base/diag.h"
#include "model/plan/plan.h"

/* The launches of a layer, ahead of and behind which stand those of the model. */
typedef enum phase {
    PHASE_EMBED,
    PHASE_QKV,
    PHASE_ROPE,
    PHASE_ATTENTION,
    PHASE_VALUES,
    PHASE_OUTPUT,
    PHASE_POST_ATTENTION,
    PHASE_ROUTE,
    PHASE_GATE_UP,
    PHASE_DOWN,
    PHASE_POST_FFW,
    PHASE_LOGITS,
} phase;

typedef enum buffer_id {
#define BUFFER(id, ...) BUFFER_##id,
#include "model/plan/buffers.def"
#undef BUFFER
    BUFFERS
} buffer_id;

/* An argument while the plan is made: a buffer's place is known at the end of its step. */
typedef struct bound {
    const char *param;
    plan_argument argument;
    buffer_id buffer; /* of the workspace */
} bound;

/* A launch before it is added: its kernel, and what parameters are bound to. */
typedef struct launch_draft {
    instance in;
    bound bound[MAX_PARAMS];
    size_t bound_count;
} launch_draft;

typedef struct placed_launch {
    plan_launch launch; /* its kernel is known when the step has all its launches */
    instance kernel;
    buffer_id buffers[MAX_PARAMS];
} placed_launch;

/* Rows of a product's x. */
typedef struct plan_rows {
    buffer_id x;
    uint64_t first; /* row */
    int64_t count, columns;
    decoder_tensor norm; /* TENSOR_COUNT: none */
    format made;         /* what they are made for products ahead of these; f32: nothing */
} plan_rows;

typedef struct planner {
    arena *arena;
    const decoder *d;
    plan *plan;
    const target *const *targets;
    size_t target_count;
    location where;
    diags *diags;

    uint32_t (*numbers)[DECODER_MOST_LAYERS]; /* [TENSOR_COUNT]: of tensors, by layer */
    VEC(plan_tensor) tensors;
    VEC(instance) kernels;
    name_map names;
    VEC(instance) tuned; /* by the model, */
    name_map asked;      /* for kernels and rows of these names */

    /* The step that is being made. */
    int64_t m, layer;
    VEC(placed_launch) launches;
    bool settled;   /* its first launch waits for the step ahead before any other one may start */
    plan_rows rows; /* that the buffer of rows has, of a layer */
    int64_t rows_layer;
    int64_t buffer_bytes[BUFFERS];
    int64_t counters; /* bytes that one launch needs, at most */
} planner;

extern const struct buffer_life {
    const char *name;
    phase first, last;
} buffer_lives[BUFFERS];

/* Keys of a kernel and what they are set to: numbers, choices, formats by their index in
 * weights_choices; real numbers by their bits, where 0 leaves the default. The last has no name. */
typedef struct plan_key {
    const char *name;
    int64_t value;
} plan_key;

/* What parameters get: a buffer; a tensor, nothing where the layer has none; a part of the state;
 * one of the two addresses of the rows' caches of the layer. A kernel need not have all parameters
 * of a table. The last has no name. */
typedef enum bind_kind { BIND_BUFFER, BIND_TENSOR, BIND_STATE, BIND_CACHE } bind_kind;
typedef enum state_part { AT_TOKENS, AT_POSITIONS, AT_LENGTHS, AT_SAMPLING } state_part;
typedef struct plan_bind {
    const char *param;
    bind_kind kind;
    unsigned id;
} plan_bind;

/* Returns true if the present layer, or the model, has a tensor; and that tensor. */
bool planner_has(const planner *p, decoder_tensor t);
const plan_tensor *planner_tensor(const planner *p, decoder_tensor t);

/* Bind a parameter: to a tensor, if the layer has it; to rows of a tensor from one on; to bytes of
 * the state, which are said to be; to bytes of a buffer from one on; to a number. A later binding
 * of a name replaces an earlier one. */
void planner_bind_tensor(const planner *p, launch_draft *l, const char *name, decoder_tensor t);
void planner_bind_rows(const planner *p, launch_draft *l, const char *name, decoder_tensor t,
                       uint64_t row);
void planner_bind_state(launch_draft *l, const char *name, uint64_t offset, const char *said);
void planner_bind_buffer(launch_draft *l, const char *name, buffer_id buffer, uint64_t offset);
void planner_bind_number(launch_draft *l, const char *name, int64_t number, const char *said);

/* Gives a buffer room for bytes. */
void planner_need(planner *p, buffer_id buffer, int64_t bytes);

/* Makes a draft with keys as given; of the others those that are named as a size of the decoder or
 * of the step have that size, and the rest has its defaults. A key that the family does not have is
 * a defect of the plan, at which the program aborts. binds may be NULL. */
launch_draft planner_draft(const planner *p, family_id of, const plan_key *keys,
                           const plan_bind *binds);
void planner_set_all(instance *in, const plan_key *keys);
void planner_set(instance *in, const char *key_name, int64_t value);

/* Returns the value of a key for a tensor's format in the present layer. */
int64_t planner_format(const planner *p, decoder_tensor t);

/* Returns true if a kernel is faster, on targets that all have it, than another one that computes
 * the same of the same parameters. */
bool planner_prefers(const planner *p, const instance *in, const instance *to);

/* Returns true if the model has two launches of some rows, one ahead of the other (NULL: it has
 * been made), finish before one that does the same; sets the numbers of warps and rows of these. */
bool planner_prepares(planner *p, const instance *ahead, instance *in, instance *to, int64_t rows);

/* Sets the rows of a product: all of them at once; where they take too much shared memory with
 * fewer stages, or (where the family can) as many as fit or as it takes, with a block of the grid
 * for each of those. */
void planner_set_rows(const planner *p, launch_draft *l, int64_t rows);

/* Adds a launch of a kernel to the step. What a kernel needs for itself gets a place. Reports an
 * error where its family does not take its keys. */
void planner_add(planner *p, launch_draft *l, const char *said);
void planner_launch(planner *p, family_id of, const plan_key *keys, const plan_bind *binds,
                    const char *said);

/* Has launches of the step fetch what later ones read first: see plan_next.c. */
void planner_fetch_ahead(planner *p);

/* Gives the buffers of a step their places, and the launches their kernels and the addresses. */
void planner_place_buffers(planner *p, plan_step *step);

/* Gives all steps' counters one place in the state: each launch leaves them zero for the next. */
void planner_place_counters(planner *p, uint64_t at);

#endif
