/* Products on int8 tensor cores: a row of Y has the same bits for any m up to 64, any other rows, any
 * grid and number of passes, alone and among Q, K and V. NaN and infinity reach the results that
 * depend on them and no others. Errors are those of streaming products. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "test_arena.h"
#include "golden/golden.h"
#include "kernel/planted.h"
#include "kernel/suite.h"
#include "ref/quant.h"
#include "ref/reference.h"

enum { ROWS = 64, SM_COUNT = 3 };

static bool multiplies_bytes(const family *f)
{
    return strncmp(f->name, "mma_q8", strlen("mma_q8")) == 0 && !family_key(f, "experts");
}

static bool multiplies_one(const family *f)
{
    return multiplies_bytes(f) && f->op == OP_GEMV;
}

static bool has_rows(const char *name)
{
    static const char *const names[] = { "x", "factors", "residual", "times" };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(name, names[i]) == 0)
            return true;
    return false;
}

/* The reference for comparisons: one launch of ROWS rows of X. */
typedef struct whole {
    const subject *s;
    const char *text; /* keys without m */
    trial trial;
    const char *y;
    size_t row; /* bytes per row of Y */
} whole;

static whole run_whole(arena *a, const subject *s, const char *text)
{
    instance in = suite_made(a, s->family, "%s m=%d", text, ROWS);
    kernel k = suite_kernel(a, &in);
    trial_setup setup = { .shape = in.shape, .sm_count = SM_COUNT, .seed = 5 };
    whole w = { .s = s, .text = text, .trial = trial_prepare(a, &in, &setup) };
    const void *y;
    expect_right(suite_run(a, s->device, &k, &w.trial, NULL, &y));
    w.y = memcpy(arena_alloc(a, w.trial.params[0].size), y, w.trial.params[0].size);
    w.row = w.trial.params[0].size / ROWS;
    return w;
}

/* Runs `rows` rows from `first` on with further keys and compares their bits. */
static void compare(arena *a, const whole *w, const char *keys, int64_t first, int64_t rows,
                    int64_t sm_count)
{
    instance in = suite_made(a, w->s->family, "%s %s", w->text, keys);
    kernel k = suite_kernel(a, &in);
    trial_setup setup = { .shape = in.shape, .sm_count = sm_count, .seed = 6 };
    setup.shape.m = rows;
    trial t = trial_prepare(a, &in, &setup);
    const void *y;
    const uint8_t *written;
    for (size_t i = 0; i < t.param_count; i++) {
        const trial_param *from = &w->trial.params[i];
        if (t.params[i].param.kind != PARAM_IN)
            continue;
        uint64_t at = has_rows(from->param.name) ? (uint64_t)first * from->size / ROWS : 0;
        memcpy(t.params[i].content.bytes, (const char *)from->content.bytes + at, t.params[i].size);
    }
    expect_right(suite_launch(a, w->s->device, &k, &t, &y, &written));
    expect_same_bits(in.name,
                     arena_format(a, "%lld rows from %lld on, %lld SMs", (long long)rows,
                                  (long long)first, (long long)sm_count),
                     y, w->y + (size_t)first * w->row, (size_t)rows * w->row);
}

/* Returns a size of K that ends within a step of 256 values if the format allows it, and with steps
 * that the four warps do not share evenly. */
static int64_t uneven_k(arena *a, const subject *s)
{
    enum { STEPS = 5, STEP = 256 };
    const key *k = family_key(s->family, "k");
    return STEPS * STEP + suite_multiple(a, s->family, s->weights, k) % STEP;
}

static void rows_have_the_same_bits(arena *a, const subject *s)
{
    static const int64_t counts[] = { 1, 2, 3, 7, 8, 9, 16, 17, 31, 32, 33, 48, 64 };
    const char *shapes[] = { arena_format(a, "k=%lld n=37 bias=add", (long long)uneven_k(a, s)),
                             "k=1024 n=48 residual=add" };
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        const char *keys = suite_known_keys(a, s->family, shapes[i]);
        whole w = run_whole(a, s, arena_format(a, "%s%s", s->weights, keys));
        for (size_t c = 0; c < sizeof counts / sizeof *counts; c++) {
            int64_t m = counts[c], sm_count = c % 3 ? 1 : SM_COUNT;
            if (test_takes_row(c + i + s->number, THIRD))
                compare(a, &w, arena_format(a, "m=%lld", (long long)m), (ROWS - m) * 2 / 3, m,
                        sm_count);
        }
        compare(a, &w, "m=8 rows=run_time", 5, 29, 1);
        compare(a, &w, "m=64 rows=run_time", 2, 3, 1);
    }
}

/* Twelve passes exceed the number of turns, which limits the passes. */
static void passes_give_the_same_bits(arena *a, const subject *s)
{
    static const int passes[] = { 1, 2, 3, 12 };
    int64_t k = uneven_k(a, s) + 6 * 256;
    whole w = run_whole(a, s, arena_format(a, "%sk=%lld n=21", s->weights, (long long)k));
    for (size_t i = 0; i < sizeof passes / sizeof *passes; i++) {
        compare(a, &w, arena_format(a, "m=5 passes=%d", passes[i]), 7, 5, 1);
        if (test_takes_row(i, THIRD))
            compare(a, &w, arena_format(a, "m=33 passes=%d", passes[i]), 30, 33, SM_COUNT);
    }
}

/* Runs one matrix of a trial alone and returns its Y. */
static const char *run_alone(arena *a, const subject *s, const whole *w, const char *text,
                             const char *weights, const char *times)
{
    instance in = suite_made(a, family_find(families, s->family->each_matrix), "%s m=%d", text, 9);
    kernel k = suite_kernel(a, &in);
    trial t = suite_rows(a, &in, 9);
    const void *y;
    const uint8_t *written;
    for (size_t i = 0; i < t.param_count; i++) {
        trial_param *to = &t.params[i];
        if (to->param.kind != PARAM_IN)
            continue;
        const char *name = strcmp(to->param.name, "w") == 0 ? weights : to->param.name;
        const void *from = times;
        for (size_t j = 0; j < w->trial.param_count; j++)
            if (strcmp(w->trial.params[j].param.name, name) == 0)
                from = w->trial.params[j].content.bytes;
        memcpy(to->content.bytes, from, to->size);
    }
    expect_right(suite_launch(a, s->device, &k, &t, &y, &written));
    return memcpy(arena_alloc(a, t.params[0].size), y, t.params[0].size);
}

/* K and V have formats of their own. */
static void separate_launches_give_the_same_bits(arena *a, const subject *s)
{
    enum { N = 21, N_KV = 7 };
    static const char *const weights[] = { "wq", "wk", "wv" };
    const char *formats_of[] = { s->weights, "weights=q8_0 ", "weights=q6_k " };
    for (int mixed = 0; mixed < 2; mixed++) {
        const char *others = mixed ? "weights_k=q8_0 weights_v=q6_k " : "";
        whole w = run_whole(
            a, s, arena_format(a, "%s%sk=1280 n=%d n_kv=%d", s->weights, others, N, N_KV));
        size_t before = 0;
        for (size_t i = 0; i < sizeof weights / sizeof *weights; i++) {
            size_t n = i ? N_KV : N, bytes = n * F32_BYTES;
            const char *text = arena_format(a, "%sk=1280 n=%zu", formats_of[mixed ? i : 0], n);
            const char *y = run_alone(a, s, &w, text, weights[i], NULL);
            for (size_t row = 0; row < 9; row++)
                expect_same_bits(w.trial.instance->name,
                                 arena_format(a, "row %zu of %s", row, weights[i]),
                                 w.y + row * w.row + before, y + row * bytes, bytes);
            before += bytes;
        }
    }
}

static void gate_and_up_have_the_bits_of_two_launches(arena *a, const subject *s)
{
    const char *text = arena_format(a, "%sk=1280 n=21", s->weights);
    whole w = run_whole(a, s, text);
    const char *up = run_alone(a, s, &w, text, "wu", NULL);
    const char *y =
        run_alone(a, s, &w, arena_format(a, "%s epilogue=silu times=rows", text), "wg", up);
    expect_same_bits(w.trial.instance->name, "gate and up", w.y, y, 9 * w.row);
}

/* More than 64 rows are tiles of another kernel, whose sums have another order. With WHOLE_LINES values, rows
 * of Q4_K and Q5_K start at multiples of 128 bytes, and lanes swap chunks. */
static void is_right_for_more_rows(arena *a, const subject *s)
{
    enum { WHOLE_LINES = 2048 };
    static const int64_t counts[] = { 65, 80, 129, 512 };
    for (size_t c = 0; c < sizeof counts / sizeof *counts; c++) {
        if (!test_takes_row(c + s->number, FOURTH))
            continue;
        instance in = suite_made(a, s->family, "%sk=%lld n=%d m=%lld", s->weights,
                                 c == 1 ? WHOLE_LINES : (long long)uneven_k(a, s), c % 2 ? 133 : 21,
                                 (long long)counts[c]);
        trial t = suite_rows(a, &in, counts[c]);
        expect_trial_right(a, s->device, &in, &t);
    }
}

/* Fails the test unless exactly the results of one row of X or of one row of W are not finite. -1:
 * none. */
static void expect_spoiled(const instance *in, const float *y, int64_t of_x, int64_t of_w)
{
    int64_t rows = in->shape.n;
    if (in->family->op == OP_QKV)
        rows += in->shape.n_kv + in->shape.n_v;
    for (int64_t i = 0; i < in->shape.m * rows; i++)
        if (!isfinite(y[i]) != (i / rows == of_x || i % rows == of_w))
            fail_msg("%s: y[%lld][%lld] is %g", in->name, (long long)(i / rows),
                     (long long)(i % rows), (double)y[i]);
}

/* The scale of a block of X, or the factor of a row, is NaN or infinite. */
static void nan_and_infinity_reach_their_row_of_x(arena *a, const subject *s)
{
    static const float values[] = { NAN, -NAN, INFINITY, -INFINITY };
    enum { K = 1280, BLOCKS = K / Q8_F32_VALUES, M = 11 };
    static const int64_t blocks[] = { 0, 1, 7, 8, 13, 22, BLOCKS - 1 };
    instance in = suite_made(a, s->family, "%sk=%d n=19 m=%d", s->weights, K, M);
    kernel k = suite_kernel(a, &in);
    trial t = suite_rows(a, &in, M);
    char *x = suite_param(&t, "x")->content.bytes;
    float *factors = suite_param(&t, "factors")->content.bytes;
    const void *y;
    const uint8_t *written;
    for (size_t i = 0; i <= sizeof blocks / sizeof *blocks; i++)
        for (size_t v = 0; v < sizeof values / sizeof *values; v++) {
            bool of_factor = i == sizeof blocks / sizeof *blocks;
            if (!test_takes_row(i + v + s->number, THIRD))
                continue;
            int64_t row = (int64_t)(3 * i + v) % M;
            char *at = of_factor ? (char *)&factors[row]
                                 : x + (row * BLOCKS + blocks[i]) * Q8_F32_BYTES + Q8_F32_D;
            float usual;
            memcpy(&usual, at, sizeof usual);
            memcpy(at, &values[v], sizeof usual);
            expect_right(suite_launch(a, s->device, &k, &t, &y, &written));
            expect_spoiled(&in, y, row, -1);
            memcpy(at, &usual, sizeof usual);
        }
}

/* A block of weights has all bits set. If the format decodes it as NaN, its row is NaN. */
static void nan_in_a_scale_reaches_its_row_of_w(arena *a, const subject *s)
{
    enum { K = 1280, M = 3 };
    static const int64_t rows[] = { 0, 9, 18 }, columns[] = { 0, 512, 1024 };
    instance in = suite_made(a, s->family, "%sk=%d n=19 m=%d", s->weights, K, M);
    format weights = instance_weights(&in);
    const format_info *f = &formats[weights];
    kernel k = suite_kernel(a, &in);
    trial t = suite_rows(a, &in, M);
    char *w = t.params[1].content.bytes;
    const void *y;
    const uint8_t *written;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char *block = w + format_bytes(weights, (uint64_t)(rows[i] * K + columns[i]));
        char usual[256];
        float decoded[256];
        memcpy(usual, block, f->block_bytes);
        memset(block, 0xff, f->block_bytes);
        ref_decode(weights, block, f->block_values, decoded);
        expect_right(suite_launch(a, s->device, &k, &t, &y, &written));
        expect_spoiled(&in, y, -1, isfinite(decoded[0]) ? -1 : rows[i]);
        memcpy(block, usual, f->block_bytes);
    }
}

/* Returns the root mean square of the differences from golden results. */
static double error_of(const float *y, const double *golden_y, int64_t count)
{
    double squares = 0;
    for (int64_t i = 0; i < count; i++)
        squares += ((double)y[i] - golden_y[i]) * ((double)y[i] - golden_y[i]);
    return sqrt(squares / (double)count);
}

/* Multiplies ggml's weights by ggml's x, and compares the error with that of stream_gemv. */
static void errors_are_those_of_streaming_products(arena *a, const subject *s)
{
    const golden_dims *d = golden(a, "dims.i32", sizeof *d);
    instance of_rows, of_streaming, in = suite_made(a, s->family, "%sk=256 n=1", s->weights);
    format weights = instance_weights(&in);
    if (formats[weights].gguf_type == NO_GGUF_TYPE)
        return;
    kernel rows = suite_kernel_of(a, "q8_rows", arena_format(a, "k=%d m=%d", d->k, d->m), &of_rows);
    trial t_rows = suite_rows(a, &of_rows, d->m);
    const void *outputs[MAX_PARAMS], *got, *expected;
    const uint8_t *written;
    const float *x = golden(a, "x.f32", 0);
    put_input(&t_rows, 0, x);
    expect_right(suite_launch_all(a, s->device, &rows, &t_rows, outputs));
    for (int random = 0; random < 2; random++) {
        golden_matrix g = golden_matrix_of(a, weights, random);
        const char *text = arena_format(a, "%sk=%d n=%u m=%d", s->weights, d->k, g.rows, d->m);
        in = suite_made(a, s->family, "%s", text);
        kernel k = suite_kernel(a, &in),
               streaming = suite_kernel_of(a, "stream_gemv", text, &of_streaming);
        trial t = suite_rows(a, &in, d->m), t_streaming = suite_rows(a, &of_streaming, d->m);
        put_input(&t, 0, g.weights);
        put_input(&t, 1, outputs[0]);
        put_input(&t, 2, outputs[1]);
        put_input(&t_streaming, 0, g.weights);
        put_input(&t_streaming, 1, x);
        expect_right(suite_run(a, s->device, &k, &t, NULL, &got));
        expect_right(suite_launch(a, s->device, &streaming, &t_streaming, &expected, &written));
        int64_t count = (int64_t)d->m * g.rows;
        double own = error_of(got, g.y, count), usual = error_of(expected, g.y, count);
        if (!(own <= 1.03 * usual + 1e-9))
            fail_msg("%s: the error is %.4g, that of stream_gemv %.4g", in.name, own, usual);
    }
}

/* A fault in line number `which`, from 1, that begins with a mnemonic and contains `from`: that text
 * becomes `to`, or without `to` the line's address is `shift` bytes further, or with `stride` as far
 * in each row. 0: `from` becomes `to` everywhere. */
typedef struct part_edit {
    const char *mnemonic;
    unsigned which;
    const char *from, *to;
    int shift, stride;
} part_edit;

#define TEXT(of, number, before, after)                              \
    {                                                                \
        .mnemonic = of, .which = number, .from = before, .to = after \
    }

/* Returns line number `which` that begins with a mnemonic and contains a text. */
static const char *line_number(const char *text, const char *mnemonic, const char *with,
                               unsigned which)
{
    for (const char *line = text; *line; line += strcspn(line, "\n") + 1) {
        const char *code = line + strspn(line, " "), *at = strstr(code, with);
        if (strncmp(code, mnemonic, strlen(mnemonic)) == 0 && at &&
            at <= line + strcspn(line, "\n") && --which == 0)
            return code;
    }
    fail_msg("nothing to edit: there are %u too few lines '%s…%s' in\n%s", which, mnemonic, with,
             text);
    return NULL;
}

static const char *replaced(arena *a, const char *text, const char *at, size_t length,
                            const char *to)
{
    return arena_format(a, "%.*s%s%s", (int)(at - text), text, to, at + length);
}

/* Returns the register of a line's address, and its offset. */
static const char *address_of(arena *a, const char *line, int *offset)
{
    const char *from = strchr(line, '[') + 1;
    size_t length = strcspn(from, "+]");
    *offset = from[length] == '+' ? atoi(from + length) : 0;
    return arena_copy(a, from, length);
}

static const char *edit_part(arena *a, const char *text, const part_edit *e)
{
    if (!e->which)
        return mutate(a, text, e->from, e->to);
    const char *line = line_number(text, e->mnemonic, e->from ? e->from : "", e->which);
    if (e->to)
        return replaced(a, text, strstr(line, e->from), strlen(e->from), e->to);
    int offset;
    const char *base = address_of(a, line, &offset);
    if (e->shift)
        return replaced(a, text, strchr(line, '['), strcspn(strchr(line, '['), ";"),
                        arena_format(a, "[%s+%d]", base, offset + e->shift));
    /* mad.lo.u32 base, row, stride, start */
    const char *mad = line_number(text, "mad.lo.u32", arena_format(a, " %s,", base), 1);
    for (int commas = 0; commas < 2; mad++)
        commas += *mad == ',';
    return replaced(a, text, mad, strcspn(mad, ","), arena_format(a, " %d", atoi(mad) + e->stride));
}

static void expect_parts_found(arena *a, const char *family_name, const char *text,
                               const part_edit *faults, size_t count)
{
    kernel k = right_kernel(a, family_name, text);
    for (size_t i = 0; i < count; i++) {
        kernel faulty = k;
        faulty.ptx = edit_part(a, k.ptx, &faults[i]);
        faulty.ptx_length = strlen(faulty.ptx);
        if (suite_verify(a, &faulty, false).right)
            fail_msg("%s passes verification with fault %zu: '%s', line %u", k.instance->name, i,
                     faults[i].mnemonic, faults[i].which);
    }
}

ARENA_TEST(faults_of_fragments_are_found)
{
    kernel nibbles = right_kernel(a, "mma_q8", "weights=q4_k k=1280 n=37 m=11");
    expect_exchanged_registers_found(a, &nibbles, 1, 2);
    expect_transposed_fragments_found(a, &nibbles);
    expect_missing_meeting_found(a, &nibbles);
    for (unsigned which = 1; which <= 2; which++)
        expect_fault_found(a, &nibbles, &(line_edit){ "bar.sync", "", which, "" });
    /* the halves of 32 values that have scales of their own */
    kernel halves = right_kernel(a, "mma_q8", "weights=q6_k k=1280 n=37 m=11");
    expect_text_wrong(a, &halves, exchange_registers(a, halves.ptx, "ldmatrix", 0, 0, 2), "");
    expect_text_wrong(a, &halves, exchange_registers(a, halves.ptx, "ldmatrix", 0, 1, 3), "");
}

ARENA_TEST(faults_of_int8_products_are_found)
{
    static const part_edit of_nibbles[] = {
        { "ld.global.nc.v2.u32", 2, .shift = 8 }, /* words of W and of x */
        { "ld.shared.v2.u32", 1, .shift = 8 },
        { "ld.shared.v2.u32", 16, .shift = -64 },
        TEXT("mma.sync", 1, "u8.s8", "u8.u8"), /* signs */
        TEXT("mma.sync", 2, "u8.s8", "s8.s8"),
        TEXT("neg.f32", 1, "neg.f32", "mov.f32"), /* minima */
        TEXT("neg.f32", 4, "neg.f32", "mov.f32"),
        TEXT("and.b32", 1, "0xFFFFE000", "0xFFFFFFFF"),
        { "st.shared.v2.f32", 1, .shift = 8 },
        { "st.shared.v4.f32", 1, .stride = 16 }, /* strides of records */
        { "ld.shared.v4.f32", 1, .stride = 16 },
        { "ldmatrix", 2, .shift = 32 },
        TEXT("min.u32", 0, ", 36;", ", 35;"), /* the last row of W */
        TEXT("min.u32", 0, ", 10;", ", 9;"),  /* the last row of X */
        TEXT("min.u32", 0, ", 4;", ", 3;"),   /* the last blocks */
        TEXT("setp.lt.u32", 1, ", 40;", ", 48;"),
    };
    static const part_edit of_tiles[] = {
        { "ldmatrix", 1, .shift = 16 }, /* units of W and of x */
        { "ldmatrix", 2, .shift = 16 },
        { "ldmatrix", 5, .shift = -32 },
        { "st.shared.v4.u32", 1, .stride = 16 }, /* stride of rows */
    };
    static const part_edit of_groups[] = { TEXT("min.u32", 0, ", 148;", ", 147;") };
    static const part_edit of_sixths[] = {
        { "ldmatrix", 1, .shift = 16 },
        TEXT("mma.sync", 1, ".s8.s32", ".u8.s32"),
        TEXT("mma.sync", 3, ".s8.s32", ".u8.s32"),
        { "ld.shared.v4.s32", 1, .shift = 16 },
        { "ld.shared.v2.f32", 1, .shift = 8 },
        TEXT("mad.lo.s32", 1, "mad.lo", "mad.hi"),
    };
    static const part_edit of_bytes[] = {
        TEXT("mma.sync", 1, "s8.s8", "u8.s8"),
        TEXT("mma.sync", 16, "s8.s8", "s8.u8"),
    };
    static const part_edit of_stored_bytes[] = {
        TEXT("cp.async", 0, "+256], 16;", "+240], 16;"), /* unit 16 */
        TEXT("cp.async.wait_all", 1, "cp.async.wait_all;", ""),
        TEXT("selp.s32", 1, ", 0,", ", -1,"), /* zeros beside the scales of x */
        TEXT("selp.u32", 1, "0xFFFF,", "0,"), /* masks, and what they leave */
        TEXT("selp.u32", 5, "0xFFFF,", "0,"),
        TEXT("selp.u32", 2, "0xFFFFFFFF,", "0,"),
        TEXT("sub.u32", 4, "sub.u32", "or.b32 "),
        { "ld.shared.b16", 1, .shift = 34 },                    /* scales */
        TEXT("mma.sync.aligned.m16n8k16", 1, "s8.s8", "u8.s8"), /* tails */
        TEXT("mma.sync.aligned.m16n8k16", 7, "s8.s8", "s8.u8"),
        TEXT("mma.sync.aligned.m16n8k32", 8, "s8.s8", "s8.u8"),
    };
    expect_parts_found(a, "mma_q8", "weights=q4_k k=1280 n=37 m=11", of_nibbles,
                       sizeof of_nibbles / sizeof *of_nibbles);
    expect_parts_found(a, "mma_q8", "weights=q4_0 k=1280 n=37 m=11", of_tiles,
                       sizeof of_tiles / sizeof *of_tiles);
    expect_parts_found(a, "mma_q8", "weights=q4_k k=1280 n=149 m=11", of_groups,
                       sizeof of_groups / sizeof *of_groups);
    expect_parts_found(a, "mma_q8", "weights=q6_k k=1280 n=37 m=11", of_sixths,
                       sizeof of_sixths / sizeof *of_sixths);
    expect_parts_found(a, "mma_q8", "weights=q8_0 k=1312 n=37 m=11", of_bytes,
                       sizeof of_bytes / sizeof *of_bytes);
    expect_parts_found(a, "mma_q8", "weights=q8_0 k=1280 n=37 m=5", of_stored_bytes,
                       sizeof of_stored_bytes / sizeof *of_stored_bytes);
}

/* Parts that are added in another order give other bits; one that is added twice is found. */
EMULATOR_TEST(the_order_of_parts_shows_in_the_bits)
{
    launched *l = suite_launched(a, "mma_q8", "weights=q4_k k=1280 n=37 m=8");
    const char *text = l->kernel.ptx, *sums = strstr(text, "// add the parts");
    int first, second;
    address_of(a, line_number(sums, "ld.shared.f32", "+", 1), &first);
    address_of(a, line_number(sums, "ld.shared.f32", "+", 2), &second);
    const part_edit twice = { "ld.shared.f32", 1, "+", .shift = second - first };
    const part_edit back = { "ld.shared.f32", 2, "+", .shift = first - second };
    const char *with_twice = edit_part(a, sums, &twice);
    const char *exchanged = edit_part(a, with_twice, &back);
    int before = (int)(sums - text);
    kernel other = l->kernel;
    const void *y, *of_other;
    const uint8_t *written;
    other.ptx = arena_format(a, "%.*s%s", before, text, exchanged);
    other.ptx_length = strlen(other.ptx);
    expect_right(suite_run(a, d, &l->kernel, &l->trial, NULL, &y));
    expect_right(suite_launch(a, d, &other, &l->trial, &of_other, &written));
    assert_memory_not_equal(y, of_other, l->trial.params[0].size);
    expect_right(suite_run(a, d, &other, &l->trial, NULL, &of_other));
    expect_text_wrong(a, &l->kernel, arena_format(a, "%.*s%s", before, text, with_twice), "");
}

LIST_TESTS
{
    enum { ONE_FORMAT_IN = 9 }; /* formats share the code under test */
    static const suite_check of_one[] = {
        CHECK(errors_are_those_of_streaming_products),
        CHECK(is_right_for_more_rows),
    };
    static const suite_check checks[] = {
        CHECK(rows_have_the_same_bits),
        CHECK_WITH(passes_give_the_same_bits, .key = "passes"),
        CHECK_WITH(separate_launches_give_the_same_bits, .key = "n_kv"),
        CHECK_WITH(gate_and_up_have_the_bits_of_two_launches, .key = "activation"),
        CHECK(nan_and_infinity_reach_their_row_of_x),
        CHECK(nan_in_a_scale_reaches_its_row_of_w),
    };
    suite_list(__FILE__, suite_weights, ONE_FORMAT_IN, multiplies_bytes, checks,
               sizeof checks / sizeof *checks);
    suite_list(__FILE__, suite_weights, 2, multiplies_one, of_one, sizeof of_one / sizeof *of_one);
}
