#include "model.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "values.h"

enum { Q4_K_VALUES = 256, Q4_K_BYTES = 144, BLOCK_VALUES = 32, LONGEST = 512 };

static const struct {
    int rows, columns;
} shapes[MATRICES] = {
    [Q] = { HIDDEN, HIDDEN },
    [K] = { KV, HIDDEN },
    [V] = { KV, HIDDEN },
    [OUTPUT] = { HIDDEN, HIDDEN },
    [GATE] = { FEED_FORWARD, HIDDEN },
    [UP] = { FEED_FORWARD, HIDDEN },
    [DOWN] = { HIDDEN, FEED_FORWARD },
    [WORD] = { WORDS, HIDDEN },
};

static float half_at(const unsigned char *bytes)
{
    return half_value(bytes[0] | (unsigned)bytes[1] << 8);
}

/* Decodes a Q4_K block (144 bytes): d, dmin, 12 bytes of 6-bit scales and mins, 256 nibbles. */
static void dequantise(const unsigned char *block, float *y)
{
    const unsigned char *s = block + 4, *nibbles = block + 16;
    for (int j = 0; j < 8; j++) {
        int scale = j < 4 ? s[j] & 63 : (s[j + 4] & 15) | (s[j - 4] >> 6 << 4);
        int min = j < 4 ? s[j + 4] & 63 : (s[j + 4] >> 4) | (s[j] >> 6 << 4);
        for (int i = 0; i < 32; i++) {
            int nibble = (nibbles[j / 2 * 32 + i] >> 4 * (j % 2)) & 15;
            y[32 * j + i] =
                half_at(block) * (float)(scale * nibble) - half_at(block + 2) * (float)min;
        }
    }
}

/* Makes a block with weights close to 0. d is about 2^-13, for scales of about 32 and nibbles up to
 * 15; dmin is eight times d. */
static void random_block(uint64_t *random, unsigned char *block)
{
    for (int i = 0; i < Q4_K_BYTES; i++)
        block[i] = (unsigned char)random_bits(random);
    block[1] = (block[1] & 3) | 2 << 2;
    block[3] = (block[3] & 3) | 5 << 2;
}

int model_make(model *m)
{
    uint64_t random = 1;
    memset(m, 0, sizeof *m);
    for (int i = 0; i < MATRICES; i++) {
        size_t values = (size_t)shapes[i].rows * (size_t)shapes[i].columns;
        size_t blocks = values / Q4_K_VALUES;
        m->bytes[i] = blocks * Q4_K_BYTES;
        m->blocks[i] = malloc(m->bytes[i]);
        m->weights[i] = malloc(values * sizeof(float));
        if (!m->blocks[i] || !m->weights[i])
            return 0;
        for (size_t b = 0; b < blocks; b++) {
            random_block(&random, m->blocks[i] + b * Q4_K_BYTES);
            dequantise(m->blocks[i] + b * Q4_K_BYTES, m->weights[i] + b * Q4_K_VALUES);
        }
    }
    for (int i = 0; i < HIDDEN; i++)
        m->gamma[i] = 1 + random_value(&random) / 4;
    return 1;
}

void model_free(model *m)
{
    for (int i = 0; i < MATRICES; i++) {
        free(m->blocks[i]);
        free(m->weights[i]);
    }
}

void model_embedding(unsigned position, float x[HIDDEN])
{
    uint64_t random = 1000 + position;
    for (int i = 0; i < HIDDEN; i++)
        x[i] = random_value(&random);
}

static void multiply(const model *m, matrix w, const float *x, float *y)
{
    int columns = shapes[w].columns;
    for (int row = 0; row < shapes[w].rows; row++) {
        double sum = 0;
        for (int i = 0; i < columns; i++)
            sum += (double)m->weights[w][(size_t)row * (size_t)columns + (size_t)i] * (double)x[i];
        y[row] = (float)sum;
    }
}

static float as_it_is(float step)
{
    return step;
}

/* Quantizes x to 8 bits and back. 32 values share a step: their largest magnitude / 127, which q8_1
 * stores as a half. */
static void keep_bytes(const float *x, int count, float (*stored)(float), float *y)
{
    for (int block = 0; block < count; block += BLOCK_VALUES) {
        float largest = 0;
        for (int i = 0; i < BLOCK_VALUES; i++)
            largest = fmaxf(largest, fabsf(x[block + i]));
        float step = largest / 127;
        for (int i = 0; i < BLOCK_VALUES; i++)
            y[block + i] = step > 0 ? rintf(x[block + i] / step) * stored(step) : 0;
    }
}

static void keep_q8_1(const float *x, int count, float *y)
{
    keep_bytes(x, count, round_to_half, y);
}

static void add(float *x, const float *y)
{
    for (int i = 0; i < HIDDEN; i++)
        x[i] += y[i];
}

static void normalise(const model *m, const float *x, float *y)
{
    double squares = 0;
    for (int i = 0; i < HIDDEN; i++)
        squares += (double)x[i] * (double)x[i];
    double scale = 1 / sqrt(squares / HIDDEN + 1e-5);
    for (int i = 0; i < HIDDEN; i++)
        y[i] = (float)((double)x[i] * scale) * m->gamma[i];
}

void model_step(model *m, unsigned position, float x[HIDDEN], float logits[WORDS])
{
    float kept[LONGEST], q[HIDDEN], k[KV], v[KV], mixed[HIDDEN], y[HIDDEN];
    float gate[FEED_FORWARD], up[FEED_FORWARD];

    keep_q8_1(x, HIDDEN, kept);
    multiply(m, Q, kept, q);
    multiply(m, K, kept, k);
    multiply(m, V, kept, v);
    for (int head = 0; head < KV_HEADS; head++) {
        memcpy(m->keys[head][position], k + head * HEAD_DIM, HEAD_DIM * sizeof *k);
        memcpy(m->values[head][position], v + head * HEAD_DIM, HEAD_DIM * sizeof *v);
    }
    attend(q, m->keys[0][0], m->values[0][0], MAX_SEQ_LEN, position + 1, mixed);
    keep_bytes(mixed, HIDDEN, as_it_is, kept);
    multiply(m, OUTPUT, kept, y);
    add(x, y);

    keep_q8_1(x, HIDDEN, kept);
    multiply(m, GATE, kept, gate);
    multiply(m, UP, kept, up);
    for (int i = 0; i < FEED_FORWARD; i++)
        gate[i] = gate[i] / (1 + expf(-gate[i])) * up[i];
    keep_q8_1(gate, FEED_FORWARD, kept);
    multiply(m, DOWN, kept, y);
    add(x, y);

    normalise(m, x, y);
    multiply(m, WORD, y, logits);
}
