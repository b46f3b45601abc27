/* The plan of a decoder's steps: which kernels one token, or m of them, takes, in their order, and
 * where each of their arguments lies. It is data: header and manifest print it, and whoever runs it
 * does nothing but launch.
 *
 * Device memory is in four pieces, whose sizes are known beforehand:
 *
 *   weights    the tensors, as they stand in the GGUF, each at a multiple of MEMORY_ALIGNMENT
 *   cache      two parts for every layer and sequence: K and V, [num_kv_heads, max_seq_len,
 *              head_dim] each, or of a window a ring of fewer positions; of latent attention rows
 *              [max_seq_len, latent + rope_dims] alone; of a delta net its state and the ring of
 *              its last inputs
 *   state      what one step leaves for the next, zero at first: tokens, positions and lengths of
 *              rows, how to sample, the addresses of the rows' caches, counters, logits
 *   workspace  what the kernels of a step hand on; parts whose lives don't meet share memory
 *
 * Rows of a step are tokens of one sequence, of ascending positions, or of several sequences: the
 * addresses of their caches and their positions say it. A row of position UINT32_MAX and length 0
 * is none: nothing comes of it. Where there is one sequence, or logits of the last row alone, a
 * step samples one token of its last row, which becomes row 0 of the next step; else a token a row,
 * its own next.
 */
#ifndef PTXGEN_MODEL_PLAN_PLAN_H
#define PTXGEN_MODEL_PLAN_PLAN_H

#include "base/diag.h"
#include "kernel/family.h"
#include "model/decoder.h"

typedef enum plan_memory {
    PLAN_WEIGHTS,
    PLAN_CACHE,
    PLAN_STATE,
    PLAN_WORKSPACE,
    PLAN_MEMORIES
} plan_memory;
extern const char *const plan_memory_names[PLAN_MEMORIES];

enum { PLAN_CACHE_PARTS = 2 };

typedef struct plan_tensor {
    const char *name; /* in the GGUF */
    decoder_tensor tensor;
    int64_t layer;
    format format;
    uint64_t rows, columns, bytes;
    uint64_t offset; /* in the weights */
} plan_tensor;

/* An argument of a kernel: an address, or a number. */
typedef struct plan_argument {
    bool is_number;
    uint32_t number;
    plan_memory memory;
    uint64_t offset;
    const char *said; /* what lies there: the name of a tensor or of a buffer */
} plan_argument;

typedef struct plan_launch {
    size_t kernel;                       /* number in plan.kernels */
    int64_t layer;                       /* -1: ahead of the layers, layers: behind them */
    plan_argument arguments[MAX_PARAMS]; /* in the order of the kernel's parameters */
    size_t argument_count;
    const char *said; /* what it does: "norm(h), attn_q k v -> qkv" */
} plan_launch;

/* A part of the workspace of a step, or of the state. */
typedef struct plan_buffer {
    const char *name;
    uint64_t bytes, offset;
} plan_buffer;

typedef struct plan_step {
    int64_t m;
    plan_launch *launches;
    size_t launch_count;
    size_t layer_launches; /* of a layer, the most */
    plan_buffer *buffers;  /* of the workspace */
    size_t buffer_count;
    int64_t logits_rows;  /* 1: of the last row alone */
    int64_t sampled_rows; /* the last of them */
} plan_step;

/* A part of the cache of a layer, of sequence 0. */
typedef struct plan_cache {
    uint64_t offset, bytes;
} plan_cache;

/* Offsets in the state. Rows are those of the largest step. */
typedef struct plan_state {
    uint64_t tokens, positions, lengths; /* u32 [rows] */
    uint64_t sampling;                   /* u32 [rows, SAMPLING_WORDS]: see ref/reference.h */
    uint64_t caches; /* u64 [layers, 2, rows]: addresses of K, then V, of each row */
    uint64_t logits; /* f32 [rows or 1, vocab] */
} plan_state;

/* What knows how long kernels take that some targets share. */
typedef struct plan_model {
    /* Chooses how one of so many rows computes, and nothing of what: warps, rows at once. */
    void (*tune)(instance *in, int64_t rows, const target *const *wanted, size_t count);

    /* Whether one is done ahead of another one that computes the same of the same parameters: a row
     * of each, whatever rows and positions they are made for. */
    bool (*is_faster)(const instance *in, const instance *than, const target *const *wanted,
                      size_t count);

    /* Whether one with another one ahead of it (NULL: none) is done ahead of a third, with so many
     * rows. */
    bool (*is_worth)(const instance *ahead, const instance *in, const instance *than, int64_t rows,
                     const target *const *wanted, size_t count);
} plan_model;

typedef struct plan {
    const decoder *decoder;
    const plan_model *model;      /* with which its kernels were made; NULL: with none */
    const target *const *targets; /* that its kernels are made for, oldest first */
    size_t target_count;
    int64_t rows;         /* of the largest step */
    plan_tensor *tensors; /* in the order of use */
    size_t tensor_count;
    uint64_t bytes[PLAN_MEMORIES];
    plan_state state;
    plan_cache (*caches)[PLAN_CACHE_PARTS]; /* [layers] */
    uint64_t sequence_bytes;                /* from a sequence's caches to those of the next */
    plan_step *steps;                       /* for each m of the decoder */
    size_t step_count;
    instance *kernels; /* each configuration once; all named */
    size_t kernel_count;
} plan;

/* Makes the plan for a decoder on some targets, oldest first, with kernels as model has them (NULL:
 * as their families do). NULL and an error at where, that says which tensor and size, where a
 * kernel does not take what the decoder needs. */
plan *plan_make(arena *a, const decoder *of, location where, const target *const *wanted,
                size_t wanted_count, const plan_model *model, diags *d);

/* Bytes of a tensor from where an argument lies on; 0: it is of none. */
uint64_t plan_bytes_from(const plan *p, const plan_argument *argument);

/* An argument of a launch more, or less. */
void plan_insert_argument(plan_launch *l, size_t number, plan_argument argument);
void plan_remove_argument(plan_launch *l, size_t number);

/* Rows of K and V of a head that a layer's caches have where they are rings: as many as the window
 * of a step's last token reaches, and those that it writes besides; 0: max_seq_len. */
int64_t plan_ring(const decoder *d, int64_t layer);

#endif
