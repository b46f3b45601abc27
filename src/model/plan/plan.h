/* The plan of a decoder's steps: the kernels for one token, or for m tokens, in launch order, with
 * the address of each argument. It is data that header and manifest print; a runtime only launches.
 *
 * Memory consists of pieces with known sizes, all on the device but host:
 *
 *   weights    the tensors as in the GGUF, each at a multiple of MEMORY_ALIGNMENT
 *   cache      two parts a slot, each with a place for every sequence: K and V [num_kv_heads,
 *              max_seq_len, head_dim], or a ring of fewer positions with a window; latent attention:
 *              one part, rows [max_seq_len, latent + rope_dims]; a recurrence: its state, and a ring
 *              of its last inputs. A layer that reads an earlier layer's K and V has no part
 *   pages      with decoder.page, K and V of layers without a ring: two parts a slot, each with a
 *              place for every page. How many there are is decided when the model is loaded:
 *              sizes and offsets are those of one page
 *   state      kept between steps, zero at first: tokens, positions, lengths and sequences of rows,
 *              the page table, sampling settings, counters, logits
 *   workspace  buffers between the kernels of a step; buffers not live together share memory
 *   host       tensors of which a step reads few bytes, in host memory that the device addresses
 *
 * The rows of a step are tokens of one sequence at ascending positions, or of several sequences:
 * their sequences and positions decide. A row with position UINT32_MAX and length 0 is unused. With
 * one sequence, or logits of the last row only, a step samples one token, which becomes row 0 of
 * the next step. Otherwise each row gets its own next token. A step that chooses its rows with
 * logits samples to a list, and leaves the rows as they are. */
#pragma once

#include "base/diag.h"
#include "kernel/family.h"
#include "model/decoder.h"

typedef enum plan_memory {
    PLAN_WEIGHTS,
    PLAN_CACHE,
    PLAN_PAGES,
    PLAN_STATE,
    PLAN_WORKSPACE,
    PLAN_HOST,
    PLAN_MEMORIES
} plan_memory;
extern const char *const plan_memory_names[PLAN_MEMORIES];

enum { PLAN_CACHE_PARTS = 2 };

typedef struct plan_tensor {
    const char *name; /* name in the GGUF */
    decoder_tensor tensor;
    int64_t layer;
    format format;
    uint64_t rows, columns, bytes;
    plan_memory memory; /* PLAN_WEIGHTS or PLAN_HOST */
    uint64_t offset;    /* byte offset in it */
} plan_tensor;

typedef struct plan_argument {
    bool is_number;
    uint32_t number;
    plan_memory memory;
    uint64_t offset;
    const char *said; /* name of the tensor or buffer */
} plan_argument;

typedef struct plan_launch {
    size_t kernel;                       /* index in plan.kernels */
    int64_t layer;                       /* -1 = before the layers, decoder.layers = after them */
    plan_argument arguments[MAX_PARAMS]; /* in the order of parameters */
    size_t argument_count;
    const char *said; /* computation: "norm(h), attn_q attn_k attn_v -> qkv" */
} plan_launch;

typedef struct plan_buffer {
    const char *name;
    uint64_t bytes, offset;
} plan_buffer;

/* Tiles of `rows` rows for attention of runs, as DATA_TILES says. */
typedef struct plan_tiles {
    int64_t rows;
    uint64_t offset; /* in the state, u32 [rows of the largest step] */
} plan_tiles;

typedef struct plan_step {
    int64_t m;
    plan_launch *launches;
    size_t launch_count;
    size_t layer_launches; /* launches of the layer with most of them */
    plan_buffer *buffers;  /* in the workspace */
    size_t buffer_count;
    uint64_t
        *hidden; /* [layers + 1]: offset in the workspace of the hidden states after each layer,
                         first of the embedding */
    int64_t logits_rows;  /* rows with logits: the last ones, or the chosen ones */
    int64_t sampled_rows; /* last rows with logits, which get a sampled token; 0 = none */
    bool chooses;         /* plan_state.chosen lists the rows with logits */
} plan_step;

/* A part of a layer's cache: its offset, and the bytes of a sequence, or of a page. */
typedef struct plan_cache {
    uint64_t offset, bytes;
    plan_memory memory; /* PLAN_CACHE or PLAN_PAGES */
} plan_cache;

/* Byte offsets in the state. rows is that of the largest step. */
typedef struct plan_state {
    uint64_t tokens, positions, lengths, sequences; /* u32 [rows] */
    /* u32 [rows]: rows with logits (UINT32_MAX = none), their positions, and their tokens, which a
     * step that chooses samples; offsets 0 if no step does */
    uint64_t chosen, chosen_positions, chosen_sequences, chosen_tokens;
    uint64_t pages;    /* u32 [sequences, plan_pages]: the page table */
    uint64_t sampling; /* u32 [sequences, SAMPLING_WORDS]: see SAMPLING_SAID */
    /* With keys of the decoder: u32 [sequences, plan_history], [sequences, PENALTY_WORDS],
     * [sequences, biases, 2], [logits rows, vocab / 32], f32 [logits rows, 1 + logprobs], u32
     * [logits rows, logprobs] */
    uint64_t history, penalties, biases, mask, logprobs, best;
    uint64_t logits; /* f32 [rows, vocab], or [1, vocab] with logits = last */
} plan_state;

/* The cost model as the planner uses it, for kernels that several targets share. */
typedef struct plan_model {
    /* Chooses settings without effect on results, such as warps, for a number of rows. */
    void (*tune)(instance *in, int64_t rows, const target *const *wanted, size_t count);

    /* Returns true if a kernel is faster than one that computes the same of the same parameters.
     * Both are compared at one row, whatever rows and positions they are made for. */
    bool (*is_faster)(const instance *in, const instance *than, const target *const *wanted,
                      size_t count);

    /* Returns true if a kernel, after the launch `ahead` (NULL = none), finishes earlier than a
     * third kernel that replaces both. rows is their number of rows. */
    bool (*is_worth)(const instance *ahead, const instance *in, const instance *than, int64_t rows,
                     const target *const *wanted, size_t count);
} plan_model;

typedef struct plan {
    const decoder *decoder;
    const plan_model *model;      /* NULL = no cost model */
    const target *const *targets; /* oldest first */
    size_t target_count;
    int64_t rows;         /* rows of the largest step */
    plan_tensor *tensors; /* in order of use */
    size_t tensor_count;
    uint64_t bytes[PLAN_MEMORIES];
    plan_state state;
    plan_tiles *tiles; /* one per size; behind plan_state.sequences, at the same distances */
    size_t tile_count;
    plan_cache (*caches)[PLAN_CACHE_PARTS]; /* [slots]: see decoder_slots */
    plan_step *steps;                       /* one per decoder.m */
    size_t step_count;
    instance *kernels; /* distinct configurations, all named */
    size_t kernel_count;
} plan;

/* Makes the plan of a decoder for targets, oldest first, with kernels tuned by model, or by family
 * if NULL. Returns NULL after an error at where, with tensor and size, that a kernel has. */
plan *plan_make(arena *a, const decoder *of, location where, const target *const *wanted,
                size_t wanted_count, const plan_model *model, diags *d);

/* Returns the tensor in which an argument begins, or NULL. */
const plan_tensor *plan_tensor_of(const plan *p, const plan_argument *argument);

/* Writes a list of tiles of a step's rows: of each run of one sequence, and of unused rows, whose
 * positions are UINT32_MAX. Words behind the last tile are 0. */
void plan_list_tiles(const plan_tiles *of, const uint32_t *sequences, const uint32_t *positions,
                     size_t rows, uint32_t *list);

/* Returns the number of the cache's part that an argument names, PLAN_CACHE_PARTS per slot, or -1. */
int64_t plan_part_of(const plan *p, const plan_argument *argument);

/* Returns the bytes from an argument's offset to the end of its tensor; 0 if it is no tensor's. */
uint64_t plan_bytes_from(const plan *p, const plan_argument *argument);

/* Inserts an argument into a launch, or removes it. */
void plan_insert_argument(plan_launch *l, size_t number, plan_argument argument);
void plan_remove_argument(plan_launch *l, size_t number);

/* Returns the positions of a layer's ring cache: the window of a step's last token, plus the other
 * positions that the step writes. Returns 0 if the cache has max_seq_len positions. */
int64_t plan_ring(const decoder *d, int64_t layer);

/* Returns the tokens kept of a sequence: those that penalties count, and further ones of a step. */
int64_t plan_history(const decoder *d);

/* Returns the words of a row's mask of allowed tokens; 0 without masks. */
uint64_t plan_mask_words(const decoder *d);

/* Returns the pages of a sequence of max_seq_len positions; 0 without decoder.page. */
int64_t plan_pages(const decoder *d);
