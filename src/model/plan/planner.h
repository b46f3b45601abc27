/* A plan under construction: launches whose arguments are bound by parameter names, and buffers
 * that get addresses when a step has all its launches. */
#pragma once

#include "base/hash.h"
#include "base/diag.h"
#include "model/plan/plan.h"

/* Phases of a layer, between the model's first and last launches. */
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
    PHASE_PER_LAYER,
    PHASE_LOGITS,
} phase;

typedef enum buffer_id {
#define BUFFER(id, ...) BUFFER_##id,
#include "model/plan/buffers.def"
#undef BUFFER
    BUFFERS
} buffer_id;

/* A bound argument. A buffer's address is known at the end of its step. */
typedef struct bound {
    const char *param;
    plan_argument argument;
    buffer_id buffer; /* in the workspace; BUFFERS = none */
} bound;

/* A launch before it is added: a kernel and its bound parameters. */
typedef struct launch_draft {
    instance in;
    bound bound[MAX_PARAMS];
    size_t bound_count;
} launch_draft;

typedef struct placed_launch {
    plan_launch launch; /* kernel index set when the step is complete */
    instance kernel;
    buffer_id buffers[MAX_PARAMS];
} placed_launch;

/* Rows of a product's x. */
typedef struct plan_rows {
    buffer_id x;
    uint64_t first; /* first row */
    int64_t count, columns;
    decoder_tensor norm; /* TENSOR_COUNT = none */
    format made;         /* format they are converted to before the product; f32 = not converted */
} plan_rows;

typedef struct planner {
    arena *arena;
    const decoder *d;
    plan *plan;
    const target *const *targets;
    size_t target_count;
    location where;
    diags *diags;

    uint32_t (*numbers)[DECODER_MOST_LAYERS]; /* [TENSOR_COUNT]: index in tensors, by layer */
    VEC(plan_tensor) tensors;
    VEC(instance) kernels;
    name_map names;
    VEC(instance) tuned; /* kernels tuned by the cost model */
    name_map asked;      /* their names and rows, by index in tuned */

    /* The step under construction. Branches of a layer take the hidden states from h to middle and
     * back. After an odd number of branches the two buffers are exchanged for the next layer. */
    int64_t m, layer;
    int64_t branches; /* branches of the layer so far */
    bool exchanged;   /* h of the layer is in middle's memory */
    bool exchanges;   /* true if any layer's is, or middle is used between branches of attention and
                         recurrence */
    VEC(placed_launch) launches;
    bool settled;   /* the first launch waits for the preceding step before others may start */
    plan_rows rows; /* contents of BUFFER_ROWS, for rows_layer */
    int64_t rows_layer;
    decoder_tensor normed; /* norm of BUFFER_NORMED, in normed_layer; TENSOR_COUNT = none */
    int64_t normed_layer;
    int64_t buffer_bytes[BUFFERS];
    int64_t counters; /* bytes, the most that a launch needs */
} planner;

extern const struct buffer_life {
    const char *name;
    phase first, last;
} buffer_lives[BUFFERS];

/* A kernel's key and its value: a number, a choice, a format's index in weights_choices, or the
 * bits of a real number, 0 for its default. Lists end without name. */
typedef struct plan_key {
    const char *name;
    int64_t value;
} plan_key;

/* A parameter's binding: a buffer; a tensor, unbound if the layer lacks it; a part of the state;
 * addresses of K (0) or V (1) that the layer reads; or of its recurrence's states (0) or inputs
 * (1). A kernel may lack parameters of a list. Lists end without name. */
typedef enum bind_kind { BIND_BUFFER, BIND_TENSOR, BIND_STATE, BIND_CACHE, BIND_STATES } bind_kind;
typedef enum state_part {
    AT_TOKENS,
    AT_POSITIONS,
    AT_LENGTHS,
    AT_SAMPLING,
    AT_CHOSEN,
    AT_CHOSEN_POSITIONS,
    AT_CHOSEN_TOKENS,
    AT_HISTORY,
    AT_PENALTIES,
    AT_BIASES,
    AT_MASK,
    AT_LOGPROBS,
    AT_BEST
} state_part;
typedef struct plan_bind {
    const char *param;
    bind_kind kind;
    unsigned id;
} plan_bind;

/* Returns the current layer; 0 before and after the layers. */
int64_t planner_layer(const planner *p);

/* Returns true if the current layer, or the model, has a tensor; returns that tensor. */
bool planner_has(const planner *p, decoder_tensor t);
const plan_tensor *planner_tensor(const planner *p, decoder_tensor t);

/* Binds a parameter: to a tensor, also from a row on; to an offset in the state, with a label; to
 * an offset in a buffer; to a number. A later binding replaces an earlier one. */
void planner_bind_tensor(const planner *p, launch_draft *l, const char *name, decoder_tensor t);
void planner_bind_rows(const planner *p, launch_draft *l, const char *name, decoder_tensor t,
                       uint64_t row);
void planner_bind_state(launch_draft *l, const char *name, uint64_t offset, const char *said);
void planner_bind_buffer(const planner *p, launch_draft *l, const char *name, buffer_id buffer,
                         uint64_t offset);
void planner_bind_number(launch_draft *l, const char *name, int64_t number, const char *said);

/* Returns the hidden states' buffer, H or MIDDLE. A further branch writes the other one. */
buffer_id planner_stream(const planner *p);

/* Enlarges a buffer to at least some bytes. */
void planner_reserve(planner *p, buffer_id buffer, int64_t bytes);

/* Drafts a launch with the given keys. Others have the decoder's or step's size of their name, or
 * their defaults. Aborts if the family lacks a given key. binds may be NULL. */
launch_draft planner_draft(const planner *p, family_id of, const plan_key *keys,
                           const plan_bind *binds);
void planner_set_all(instance *in, const plan_key *keys);
void planner_set(instance *in, const char *key_name, int64_t value);

/* Returns a weight key's value for a tensor's format in the current layer. */
int64_t planner_format(const planner *p, decoder_tensor t);

/* Returns true if all targets have a kernel and it is faster than an equivalent one. */
bool planner_prefers(const planner *p, const instance *in, const instance *to);

/* Returns true if the cost model expects two launches, ahead and in, to finish before the launch
 * `to` that replaces both. ahead is NULL if its result exists already. Tunes in and to. */
bool planner_prefers_rows(planner *p, const instance *ahead, instance *in, instance *to,
                          int64_t rows);

/* Sets the rows of a product: all at once if shared memory allows. Else it reduces the stages of
 * the pipeline, or the rows at once, and the grid has further blocks for the other rows. */
void planner_set_rows(const planner *p, launch_draft *l, int64_t rows);

/* Adds a launch with its counters and scratch. Reports keys that its family rejects. */
void planner_add(planner *p, launch_draft *l, const char *said);
void planner_launch(planner *p, family_id of, const plan_key *keys, const plan_bind *binds,
                    const char *said);

/* Lets launches of the step prefetch weights of later launches: see plan_next.c. */
void planner_fetch_ahead(planner *p);

/* Gives the step's buffers their offsets, and its launches kernels and addresses. exchanged tells
 * for each layer whether its hidden states are in middle's memory. */
void planner_place_buffers(planner *p, plan_step *step, const bool *exchanged);

/* Gives the counters of all steps one place in the state. Each launch leaves them zero. */
void planner_place_counters(planner *p, uint64_t at);
