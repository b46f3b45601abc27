/* The recurrence of selective state space models (Mamba, Mamba-2) for the rows of a sequence:
 *
 *   state = decay state + delta X B^T,  y = (state C + d X) silu(z)
 *
 * A state is [inner, N] by channel. A block processes 32 channels, for a row and the following rows
 * of its sequence, in order; blocks of the other rows of the sequence end immediately. The channels'
 * state stays in registers: it is read once and written once. Up to 8 rows at a time are prepared
 * in shared memory, per row:
 *
 *   B [N], C [N], X [32], silu(z) [32], y without the gate [32], factors
 *
 * The factors are delta and decay of all channels. With by_channel they are delta [32]; decay is
 * exp(delta a) for each element of the state. */
#pragma once

#include "gen/recurrent/conv_rows.h"
#include "kernel/family.h"
#include "ptx/ptx.h"

enum { SCAN_TILE = 32, SCAN_PIECE = 4, SCAN_MOST_CHANNELS = 2, SCAN_MOST_VALUES = 32 };
enum { SCAN_X, SCAN_GATE, SCAN_Y, SCAN_VECTORS };
enum { SCAN_DELTA, SCAN_DECAY };

typedef struct scan {
    const instance *in;
    conv_rows rows;
    unsigned inner, size; /* channels, and N */
    bool by_channel;
    unsigned lanes, channels; /* lanes that share the channels of a thread; their number */
    unsigned row_bytes;       /* of a row in shared memory */
    val tile;                 /* the block's first channel is 32 tile */
    val first, end;           /* range of the block's rows in the current group of rows */
    val channel, piece;       /* the thread's first channel in the tile, and its first piece */
    val d;                    /* d of the thread's first channel */
    val shared, place;
    var state[SCAN_MOST_CHANNELS][SCAN_MOST_VALUES];
    var a[SCAN_PIECE]; /* by_channel: a of the thread's elements */
    void (*prepare)(ptx *p, const struct scan *s);
} scan;

/* Sets all fields that other fields and the instance determine: in, rows.columns, inner, size,
 * by_channel, lanes, channels and prepare must be set. The family also sets tile and d. */
void scan_start(ptx *p, scan *s);

/* Finds the block's rows and stores y of an unused row. */
void scan_find_rows(ptx *p, scan *s);

/* Advances the state over all rows of the block, and stores y and the state. */
void scan_advance(ptx *p, scan *s);

unsigned scan_threads(const scan *s);

/* Returns the shared memory of a row. */
val scan_row(ptx *p, const scan *s, val number);

/* Return offsets in a row of shared memory. */
int64_t scan_vector_at(const scan *s, unsigned vector);
int64_t scan_factors_at(const scan *s);
