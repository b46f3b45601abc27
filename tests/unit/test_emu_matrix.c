/* Warp-level matrix instructions: every form of mma.sync and wmma against three nested loops;
 * ldmatrix, stmatrix and movmatrix against the moved matrices. */
#include <stdlib.h>

#include "expect_ptxas.h"
#include "test_emu_bad.h"
#include "ref/half.h"

enum { LANES = 32, MOST = 256 };

typedef enum element {
    F16,
    BF16,
    TF32,
    F64,
    S8,
    U8,
    S4,
    U4,
    F32,
    S32,
    E4M3,
    E5M2,
    B1_AND,
    B1_XOR
} element;

static const struct {
    const char *name;
    unsigned bits;
    int lowest, count; /* range of the test's integer values */
} elements[] = {
    [F16] = { "f16", 16, -8, 17 }, [BF16] = { "bf16", 16, -8, 17 }, [TF32] = { "tf32", 32, -8, 17 },
    [F64] = { "f64", 64, -8, 17 }, [S8] = { "s8", 8, -128, 256 },   [U8] = { "u8", 8, 0, 256 },
    [S4] = { "s4", 4, -8, 16 },    [U4] = { "u4", 4, 0, 16 },       [F32] = { "f32", 32, -50, 101 },
    [S32] = { "s32", 32, -9, 19 }, [E4M3] = { "e4m3", 8, -8, 17 },  [E5M2] = { "e5m2", 8, -8, 17 },
    [B1_AND] = { "b1", 1, 0, 2 },  [B1_XOR] = { "b1", 1, 0, 2 },
};

static uint32_t random_state = 1;

static int random_of(element e)
{
    random_state = random_state * 1664525u + 1013904223u;
    return elements[e].lowest + (int)((random_state >> 8) % (uint32_t)elements[e].count);
}

/* Encodes an integer of magnitude up to 8 as a float with the given mantissa and bias. Halves it to
 * find the exponent. */
static uint64_t encode_eighth(int value, int mantissa_bits, int bias)
{
    int magnitude = value < 0 ? -value : value, exponent = 0;
    while (magnitude >> (exponent + 1))
        exponent++;
    int fraction = (magnitude << mantissa_bits >> exponent) - (1 << mantissa_bits);
    uint64_t sign = value < 0 ? 0x80 : 0;
    return magnitude ? sign | (uint64_t)((exponent + bias) << mantissa_bits | fraction) : 0;
}

/* Encodes an integer as an element, and decodes it. */
static uint64_t encode(element e, int value)
{
    float single = (float)value;
    double wide = value;
    uint64_t bits = 0;
    switch (e) {
    case F16:
        return half_from_float(single);
    case E4M3:
        return encode_eighth(value, 3, 7);
    case E5M2:
        return encode_eighth(value, 2, 15);
    case F64:
        memcpy(&bits, &wide, sizeof wide);
        return bits;
    case BF16:
    case TF32:
    case F32:
        memcpy(&bits, &single, sizeof single);
        return e == BF16 ? bits >> 16 : bits;
    default:
        return (uint64_t)(int64_t)value & ((UINT64_C(1) << elements[e].bits) - 1);
    }
}

static double decode(element e, uint64_t bits)
{
    float single;
    double wide;
    uint32_t word = (uint32_t)bits;
    switch (e) {
    case F16:
        return (double)half_to_float((uint16_t)bits);
    case F64:
        memcpy(&wide, &bits, sizeof wide);
        return wide;
    case S32:
        return (int32_t)word;
    default:
        memcpy(&single, &word, sizeof single);
        return (double)single;
    }
}

typedef struct problem {
    int a[MOST][MOST], b[MOST][MOST], c[MOST][MOST];
    double d[MOST][MOST];
} problem;

static void make_problem(problem *p, element a, element b, element c)
{
    for (int i = 0; i < MOST; i++)
        for (int j = 0; j < MOST; j++) {
            p->a[i][j] = random_of(a);
            p->b[i][j] = random_of(b);
            p->c[i][j] = random_of(c);
        }
}

static void check_problem(const problem *p, int rows, int columns, int depth, bool by_xor,
                          const char *text)
{
    for (int i = 0; i < rows; i++)
        for (int j = 0; j < columns; j++) {
            double sum = p->c[i][j];
            for (int k = 0; k < depth; k++)
                sum += by_xor ? p->a[i][k] ^ p->b[k][j] : p->a[i][k] * p->b[k][j];
            if (p->d[i][j] != sum)
                fail_msg("d[%d][%d] is %g, expected %g: %s", i, j, p->d[i][j], sum, text);
        }
}

typedef struct form {
    int rows, columns, depth;
    element a, b, c; /* D has the type of C */
} form;

/* Returns the modifier of single-bit products, "" for other types. */
static const char *made_by(const form *f)
{
    return f->a == B1_XOR ? ".xor.popc" : f->a == B1_AND ? ".and.popc" : "";
}

/* Returns element i of a lane's fragment of A, B or C, by the layouts of the PTX ISA. A register
 * holds n elements; i counts them in register order. */
static int *place_a(problem *p, const form *f, int lane, int i, int n)
{
    int group = lane / 4, thread = lane % 4;
    if (f->rows == 8)
        return &p->a[group][thread * n + i];
    return &p->a[i / n % 2 ? group + 8 : group][thread * n + i % n + i / (2 * n) * 4 * n];
}

static int *place_b(problem *p, int lane, int i, int n)
{
    return &p->b[lane % 4 * n + i % n + i / n * 4 * n][lane / 4];
}

static void place_c(int lane, int i, int *row, int *column)
{
    *row = i < 2 ? lane / 4 : lane / 4 + 8;
    *column = lane % 4 * 2 + i % 2;
}

/* Prints "{%r4, %r5}", or "{%l4, %l5}" for 64 bits. */
static size_t print_group(char *to, size_t size, char letter, int first, int count)
{
    size_t length = 0;
    for (int i = 0; i < count; i++)
        length += (size_t)snprintf(to + length, size - length, "%s%%%c%d", i ? ", " : "{", letter,
                                   first + i);
    return length + (size_t)snprintf(to + length, size - length, "}");
}

enum { ROOM = 4096, WORDS = 32 };

/* Writes a kernel that loads registers from 4 on from `in`, WORDS 64-bit words per lane. It stores
 * registers from 24 on to `out`, 4 per lane. */
static void write_mma(char *text, const form *f, int of_a, int of_b, int of_c)
{
    char groups[4][128], name[128];
    bool wide = f->a == F64;
    char letter = wide ? 'd' : 'r', sums = wide ? 'd' : f->c == F32 ? 'f' : 'r';
    int at = 0;
    snprintf(name, sizeof name, "mma.sync.aligned.m%dn%dk%d.row.col.%s.%s.%s.%s%s", f->rows,
             f->columns, f->depth, elements[f->c].name, elements[f->a].name, elements[f->b].name,
             elements[f->c].name, made_by(f));
    print_group(groups[0], sizeof groups[0], sums, 24, of_c);
    print_group(groups[1], sizeof groups[1], letter, 0, of_a);
    print_group(groups[2], sizeof groups[2], letter, of_a, of_b);
    print_group(groups[3], sizeof groups[3], sums, of_a + of_b, of_c);
    at += snprintf(text + at, ROOM, "%s",
                   ".version 8.7\n.target sm_90\n.address_size 64\n"
                   ".visible .entry k(.param .u64 out, .param .u64 in)\n{\n"
                   ".reg .b32 %r<40>; .reg .f32 %f<40>; .reg .f64 %d<40>; .reg .b64 %l<9>;\n"
                   "ld.param.u64 %l0, [out];\nld.param.u64 %l1, [in];\nmov.u32 %r39, %tid.x;\n"
                   "mad.wide.u32 %l1, %r39, 256, %l1;\nmad.wide.u32 %l0, %r39, 32, %l0;\n");
    for (int i = 0; i < of_a + of_b + of_c; i++) {
        char to = i < of_a + of_b ? letter : sums;
        at += snprintf(text + at, ROOM - (size_t)at, "ld.global.b%d %%%c%d, [%%l1+%d];\n",
                       wide ? 64 : 32, to, i, 8 * i);
    }
    at += snprintf(text + at, ROOM - (size_t)at, "%s %s, %s, %s, %s;\n", name, groups[0], groups[1],
                   groups[2], groups[3]);
    for (int i = 0; i < of_c; i++)
        at += snprintf(text + at, ROOM - (size_t)at, "st.global.b%d [%%l0+%d], %%%c%d;\n",
                       wide ? 64 : 32, 8 * i, sums, 24 + i);
    snprintf(text + at, ROOM - (size_t)at, "ret;\n}\n");
}

static int per_register(element e)
{
    return elements[e].bits < 32 ? 32 / (int)elements[e].bits : 1;
}

static void check_mma(const form *f, bool first)
{
    static problem p;
    static uint64_t in[LANES][WORDS];
    static run r;
    char text[ROOM];
    int n = per_register(f->a), packed = per_register(f->c);
    int of_a = f->rows * f->depth / LANES / n, of_b = f->columns * f->depth / LANES / n;
    int of_c = f->rows * f->columns / LANES / packed;
    make_problem(&p, f->a, f->b, f->c);
    memset(in, 0, sizeof in);
    for (int lane = 0; lane < LANES; lane++) {
        for (int i = 0; i < of_a * n; i++)
            in[lane][i / n] |= encode(f->a, *place_a(&p, f, lane, i, n))
                               << i % n * (int)elements[f->a].bits;
        for (int i = 0; i < of_b * n; i++)
            in[lane][of_a + i / n] |= encode(f->b, *place_b(&p, lane, i, n))
                                      << i % n * (int)elements[f->b].bits;
        for (int i = 0; i < of_c * packed; i++) {
            int row, column;
            place_c(lane, i, &row, &column);
            in[lane][of_a + of_b + i / packed] |= encode(f->c, p.c[row][column])
                                                  << i % packed * (int)elements[f->c].bits;
        }
    }
    write_mma(text, f, of_a, of_b, of_c);
    if (first)
        expect_ptxas_to_take(text, "sm_90");
    r = (run){ .text = text, .in = in, .in_size = sizeof in };
    if (!run_kernel(&r))
        fail_msg("line %u: %s\n%s", r.report.line, r.message, text);
    for (int lane = 0; lane < LANES; lane++)
        for (int i = 0; i < of_c * packed; i++) {
            int row, column;
            place_c(lane, i, &row, &column);
            uint64_t word = r.out[lane * 4 + i / packed] >> i % packed * (int)elements[f->c].bits;
            p.d[row][column] = decode(f->c, word);
        }
    check_problem(&p, f->rows, f->columns, f->depth, f->a == B1_XOR, text);
}

TEST(mma_equals_three_loops)
{
    static const form forms[] = {
        { 16, 8, 8, F16, F16, F32 },         { 16, 8, 8, F16, F16, F16 },
        { 16, 8, 16, F16, F16, F32 },        { 16, 8, 16, F16, F16, F16 },
        { 16, 8, 8, BF16, BF16, F32 },       { 16, 8, 16, BF16, BF16, F32 },
        { 16, 8, 4, TF32, TF32, F32 },       { 16, 8, 8, TF32, TF32, F32 },
        { 8, 8, 4, F64, F64, F64 },          { 16, 8, 4, F64, F64, F64 },
        { 16, 8, 8, F64, F64, F64 },         { 16, 8, 16, F64, F64, F64 },
        { 8, 8, 16, S8, S8, S32 },           { 8, 8, 16, U8, S8, S32 },
        { 16, 8, 16, S8, U8, S32 },          { 16, 8, 16, U8, U8, S32 },
        { 16, 8, 32, S8, S8, S32 },          { 16, 8, 32, U8, S8, S32 },
        { 8, 8, 32, S4, S4, S32 },           { 16, 8, 32, U4, S4, S32 },
        { 16, 8, 64, S4, U4, S32 },          { 16, 8, 16, E4M3, E4M3, F32 },
        { 16, 8, 16, E5M2, E4M3, F16 },      { 16, 8, 32, E4M3, E5M2, F32 },
        { 16, 8, 32, E5M2, E5M2, F32 },      { 16, 8, 32, E4M3, E4M3, F16 },
        { 8, 8, 128, B1_XOR, B1_XOR, S32 },  { 8, 8, 128, B1_AND, B1_AND, S32 },
        { 16, 8, 128, B1_AND, B1_AND, S32 }, { 16, 8, 256, B1_XOR, B1_XOR, S32 },
        { 16, 8, 256, B1_AND, B1_AND, S32 },
    };
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++)
        for (int round = 0; round < 4; round++)
            check_mma(&forms[i], round == 0);
}

/* Writes a matrix to memory by rows or columns, with a stride that may exceed their length. */
static void lay_out(uint8_t *to, element e, int values[MOST][MOST], int rows, int columns,
                    bool by_columns, int stride)
{
    unsigned size = elements[e].bits;
    for (int i = 0; i < rows; i++)
        for (int j = 0; j < columns; j++) {
            size_t at = (size_t)(by_columns ? j * stride + i : i * stride + j) * size;
            uint64_t bits = encode(e, values[i][j]);
            if (size >= 8)
                memcpy(to + at / 8, &bits, size / 8);
            else
                to[at / 8] =
                    (uint8_t)((to[at / 8] & ~(((1u << size) - 1) << at % 8)) | bits << at % 8);
        }
}

typedef struct wmma {
    form form;
    int of_a, of_b, of_c;                 /* numbers of registers */
    bool columns_a, columns_b, columns_c; /* layouts in memory; D has the layout of C */
    bool shared;                          /* A is loaded from shared memory */
} wmma;

enum { AT_B = 2048, AT_C = 6144, BYTES = 12288, APART = 16 };

/* Returns the stride in elements. Sub-byte elements need rows that start at a register's alignment.
 */
static int stride_of(int rows, int columns, bool by_columns, element e)
{
    return (by_columns ? rows : columns) + (elements[e].bits < 8 ? 128 : APART);
}

static void write_wmma(char *text, const wmma *t, const int strides[3])
{
    const form *f = &t->form;
    char shape[32], groups[4][256];
    bool wide = f->a == F64, halves = f->a == F16 && (f->c == F32 || f->c == F16);
    char letter = wide ? 'd' : 'r', sums = wide ? 'd' : f->c == F32 ? 'f' : 'r';
    snprintf(shape, sizeof shape, "m%dn%dk%d", f->rows, f->columns, f->depth);
    print_group(groups[0], sizeof groups[0], letter, 0, t->of_a);
    print_group(groups[1], sizeof groups[1], letter, 8, t->of_b);
    print_group(groups[2], sizeof groups[2], sums, 16, t->of_c);
    print_group(groups[3], sizeof groups[3], sums, 24, t->of_c);
    int at = snprintf(
        text, ROOM,
        ".version 8.0\n.target sm_90\n.address_size 64\n"
        ".visible .entry k(.param .u64 out, .param .u64 in)\n{\n"
        ".reg .b32 %%r<40>; .reg .f32 %%f<40>; .reg .f64 %%d<40>; .reg .b64 %%l<9>;\n"
        ".shared .align 32 .b8 tile[2048];\n.reg .pred %%p;\n"
        "ld.param.u64 %%l0, [out];\nld.param.u64 %%l1, [in];\nmov.u32 %%r39, %%tid.x;\n"
        "mov.u32 %%r38, tile;\nmad.lo.u32 %%r38, %%r39, 4, %%r38;\n"
        "mad.wide.u32 %%l2, %%r39, 4, %%l1;\nmov.u32 %%r36, 0;\n"
        "$copy:\nld.global.b32 %%r37, [%%l2];\nst.shared.b32 [%%r38], %%r37;\n"
        "add.u64 %%l2, %%l2, 128;\nadd.u32 %%r38, %%r38, 128;\nadd.u32 %%r36, %%r36, 1;\n"
        "setp.lt.u32 %%p, %%r36, 16;\n@%%p bra $copy;\nbar.warp.sync -1;\n"
        "wmma.load.a.sync.aligned.%s.%s%s.%s %s, [%s], %d;\n"
        "wmma.load.b.sync.aligned.%s.%s.%s %s, [%%l1+%d], %d;\n"
        "wmma.load.c.sync.aligned.%s.%s.global.%s %s, [%%l1+%d], %d;\n",
        t->columns_a ? "col" : "row", shape, t->shared ? ".shared" : ".global", elements[f->a].name,
        groups[0], t->shared ? "tile" : "%l1", strides[0], t->columns_b ? "col" : "row", shape,
        elements[f->b].name, groups[1], AT_B, strides[1], t->columns_c ? "col" : "row", shape,
        elements[f->c].name, groups[2], AT_C, strides[2]);
    at += snprintf(text + at, ROOM - (size_t)at, "wmma.mma%s.sync.aligned.%s.%s.%s.%s", made_by(f),
                   t->columns_a ? "col" : "row", t->columns_b ? "col" : "row", shape,
                   elements[f->c].name);
    if (!halves)
        at += snprintf(text + at, ROOM - (size_t)at, ".%s.%s", elements[f->a].name,
                       elements[f->b].name);
    snprintf(text + at, ROOM - (size_t)at,
             ".%s %s, %s, %s, %s;\n"
             "wmma.store.d.sync.aligned.%s.%s.%s [%%l0], %s, %d;\nret;\n}\n",
             elements[f->c].name, groups[3], groups[0], groups[1], groups[2],
             t->columns_c ? "col" : "row", shape, elements[f->c].name, groups[3], strides[2]);
}

static void check_wmma(const wmma *t, bool first)
{
    static problem p;
    static uint8_t in[BYTES];
    static run r;
    const form *f = &t->form;
    char text[ROOM];
    unsigned bytes = elements[f->c].bits / 8;
    int strides[] = { stride_of(f->rows, f->depth, t->columns_a, f->a),
                      stride_of(f->depth, f->columns, t->columns_b, f->b),
                      stride_of(f->rows, f->columns, t->columns_c, f->c) };
    make_problem(&p, f->a, f->b, f->c);
    lay_out(in, f->a, p.a, f->rows, f->depth, t->columns_a, strides[0]);
    lay_out(in + AT_B, f->b, p.b, f->depth, f->columns, t->columns_b, strides[1]);
    lay_out(in + AT_C, f->c, p.c, f->rows, f->columns, t->columns_c, strides[2]);
    write_wmma(text, t, strides);
    if (first)
        expect_ptxas_to_take(text, "sm_90");
    r = (run){ .text = text, .in = in, .in_size = sizeof in };
    if (!run_kernel(&r))
        fail_msg("line %u: %s\n%s", r.report.line, r.message, text);
    for (int i = 0; i < f->rows; i++)
        for (int j = 0; j < f->columns; j++) {
            uint64_t bits = 0;
            int at = t->columns_c ? j * strides[2] + i : i * strides[2] + j;
            memcpy(&bits, (const uint8_t *)r.out + (size_t)at * bytes, bytes);
            p.d[i][j] = decode(f->c, bits);
        }
    check_problem(&p, f->rows, f->columns, f->depth, f->a == B1_XOR, text);
}

TEST(wmma_equals_three_loops)
{
    static const wmma forms[] = {
        { .form = { 16, 16, 16, F16, F16, F32 }, .of_a = 8, .of_b = 8, .of_c = 8 },
        { .form = { 16, 16, 16, F16, F16, F16 }, .of_a = 8, .of_b = 8, .of_c = 4 },
        { .form = { 32, 8, 16, F16, F16, F32 }, .of_a = 8, .of_b = 8, .of_c = 8 },
        { .form = { 8, 32, 16, F16, F16, F16 }, .of_a = 8, .of_b = 8, .of_c = 4 },
        { .form = { 16, 16, 16, BF16, BF16, F32 }, .of_a = 4, .of_b = 4, .of_c = 8 },
        { .form = { 32, 8, 16, BF16, BF16, F32 }, .of_a = 8, .of_b = 2, .of_c = 8 },
        { .form = { 8, 32, 16, BF16, BF16, F32 }, .of_a = 2, .of_b = 8, .of_c = 8 },
        { .form = { 16, 16, 8, TF32, TF32, F32 }, .of_a = 4, .of_b = 4, .of_c = 8 },
        { .form = { 16, 16, 16, S8, S8, S32 }, .of_a = 2, .of_b = 2, .of_c = 8 },
        { .form = { 32, 8, 16, U8, U8, S32 }, .of_a = 4, .of_b = 1, .of_c = 8 },
        { .form = { 8, 32, 16, S8, S8, S32 }, .of_a = 1, .of_b = 4, .of_c = 8 },
        { .form = { 8, 8, 4, F64, F64, F64 }, .of_a = 1, .of_b = 1, .of_c = 2 },
        { .form = { 8, 8, 32, S4, S4, S32 }, .of_a = 1, .of_b = 1, .of_c = 2 },
        { .form = { 8, 8, 32, U4, U4, S32 }, .of_a = 1, .of_b = 1, .of_c = 2 },
        { .form = { 8, 8, 128, B1_XOR, B1_XOR, S32 }, .of_a = 1, .of_b = 1, .of_c = 2 },
        { .form = { 8, 8, 128, B1_AND, B1_AND, S32 }, .of_a = 1, .of_b = 1, .of_c = 2 },
    };
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++)
        for (unsigned lies = 0; lies < 16; lies++) {
            wmma t = forms[i];
            t.columns_a = lies & 1;
            t.columns_b = lies & 2;
            t.columns_c = lies & 4;
            t.shared = lies & 8;
            if (elements[t.form.a].bits < 8 && (t.columns_a || !t.columns_b))
                continue; /* sub-byte types have a fixed layout */
            check_wmma(&t, lies == 0 || lies == 2);
        }
}

/* A tile of 32 rows of eight 16-bit elements. Lane i stores row i, whose element j is 100 i + j. */
#define SM90(body)                                                                              \
    ".version 8.0\n.target sm_90\n.address_size 64\n"                                           \
    ".visible .entry k(.param .u64 out, .param .u64 in)\n{\n"                                   \
    ".reg .b16 %h<9>; .reg .b32 %r<40>; .reg .b64 %l<9>; .reg .pred %p<3>;\n"                   \
    ".shared .align 128 .b8 tile[512];\nld.param.u64 %l0, [out];\nmov.u32 %r0, %tid.x;\n"       \
    "mad.wide.u32 %l0, %r0, 16, %l0;\nmov.u32 %r1, tile;\nmad.lo.u32 %r2, %r0, 16, %r1;\n" body \
    "ret;\n}\n"
#define ROWS                                                                             \
    "mul.lo.u32 %r3, %r0, 6553700; add.u32 %r3, %r3, 0x10000;\n"                         \
    "add.u32 %r4, %r3, 0x20002; add.u32 %r5, %r4, 0x20002; add.u32 %r6, %r5, 0x20002;\n" \
    "st.shared.v4.b32 [%r2], {%r3, %r4, %r5, %r6};\n"
#define MEET  "bar.warp.sync -1;\n"
#define GIVE  "st.global.v4.b32 [%l0], {%r10, %r11, %r12, %r13};\n"
#define ZEROS "mov.b32 %r10, 0; mov.b32 %r11, 0; mov.b32 %r12, 0; mov.b32 %r13, 0;\n"

static unsigned element_of(int row, int column)
{
    return (unsigned)(100 * row + column);
}

static void run_sm90(run *r, const char *text)
{
    static const uint32_t nothing[4];
    expect_ptxas_to_take(text, "sm_90");
    *r = (run){ .text = text, .in = nothing, .in_size = sizeof nothing };
    run_well(r);
}

/* Returns a lane's register of the matrix whose rows start at 8 j. */
static uint32_t pair_of(int lane, int j, bool transposed)
{
    int g = lane / 4, first = lane % 4 * 2;
    unsigned low = transposed ? element_of(8 * j + first, g) : element_of(8 * j + g, first);
    unsigned high =
        transposed ? element_of(8 * j + first + 1, g) : element_of(8 * j + g, first + 1);
    return low | high << 16;
}

TEST(ldmatrix_distributes_the_rows_of_matrices)
{
    static const struct {
        const char *text;
        int count;
        bool transposed;
    } cases[] = {
#define LDMATRIX(form, to) \
    SM90(ROWS ZEROS MEET "ldmatrix.sync.aligned.m8n8." form " " to ";\n" GIVE)
        { LDMATRIX("x1.shared.b16", "{%r10}, [%r2]"), 1, false },
        { LDMATRIX("x2.shared.b16", "{%r10, %r11}, [%r2]"), 2, false },
        { LDMATRIX("x4.shared.b16", "{%r10, %r11, %r12, %r13}, [%r2]"), 4, false },
        { LDMATRIX("x1.trans.shared.b16", "{%r10}, [%r2]"), 1, true },
        { LDMATRIX("x2.trans.shared.b16", "{%r10, %r11}, [%r2]"), 2, true },
        { LDMATRIX("x4.trans.shared.b16", "{%r10, %r11, %r12, %r13}, [%r2]"), 4, true },
        { SM90(ROWS MEET
               "cvt.u64.u32 %l1, %r2; cvta.shared.u64 %l1, %l1;\n"
               "ldmatrix.sync.aligned.m8n8.x4.b16 {%r10, %r11, %r12, %r13}, [%l1];\n" GIVE),
          4, false },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        static run r;
        run_sm90(&r, cases[i].text);
        assert_int_equal(r.stats.shared_bank_conflicts, 0);
        for (int lane = 0; lane < LANES; lane++)
            for (int j = 0; j < 4; j++) {
                uint32_t got = ((const uint32_t *)r.out)[lane * 4 + j];
                uint32_t want = j < cases[i].count ? pair_of(lane, j, cases[i].transposed) : 0;
                if (got != want)
                    fail_msg("case %zu, lane %d, matrix %d: %08x, expected %08x", i, lane, j, got,
                             want);
            }
    }
}

/* Storing fragments and reading the rows back must give the loaded rows. */
TEST(stmatrix_inverts_ldmatrix)
{
    static const char *const texts[] = {
#define THERE_AND_BACK(trans)                                                                   \
    SM90(ROWS MEET "ldmatrix.sync.aligned.m8n8.x4" trans                                        \
                   ".shared.b16 {%r10, %r11, %r12, %r13}, [%r2];\n" MEET                        \
                   "xor.b32 %r20, %r2, 256;\n"                                                  \
                   "stmatrix.sync.aligned.m8n8.x4.trans.shared.b16 [%r20], {%r10, %r11, %r12, " \
                   "%r13};\n" MEET "ld.shared.v4.b32 {%r10, %r11, %r12, %r13}, [%r2];\n" GIVE)
        THERE_AND_BACK(""),
        THERE_AND_BACK(".trans"),
    };
    for (int transposed = 0; transposed < 2; transposed++) {
        static run r;
        run_sm90(&r, texts[transposed]);
        for (int lane = 0; lane < LANES; lane++)
            for (int e = 0; e < 8; e++) {
                int row = lane ^ 16, in = row % 8;
                unsigned want = transposed ? element_of(row, e) : element_of(row - in + e, in);
                assert_int_equal(((const uint16_t *)r.out)[lane * 8 + e], want);
            }
    }
}

TEST(movmatrix_transposes_registers)
{
    static run r;
    run_sm90(&r, SM90(ROWS ZEROS MEET "ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r11}, [%r2];\n"
                                      "movmatrix.sync.aligned.m8n8.trans.b16 %r10, %r11;\n" GIVE));
    for (int lane = 0; lane < LANES; lane++) {
        assert_int_equal(((const uint32_t *)r.out)[lane * 4], pair_of(lane, 0, true));
        assert_int_equal(((const uint32_t *)r.out)[lane * 4 + 1], pair_of(lane, 0, false));
    }
}

/* Eight rows 32 bytes apart: rows 4 apart share a bank. */
TEST(bank_conflicts_of_ldmatrix_are_counted)
{
    static run r;
    run_sm90(&r, SM90(ROWS ZEROS MEET
                      "and.b32 %r20, %r0, 15; mad.lo.u32 %r20, %r20, 32, %r1;\n"
                      "ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%r10, %r11}, [%r20];\n" GIVE));
    assert_int_equal(r.stats.shared_bank_conflicts, 2);
}

TEST(elect_chooses_the_lowest_member)
{
    static run r;
    run_sm90(
        &r,
        SM90("mov.b32 %r12, 0; mov.b32 %r13, 0; mov.b32 %r10, 0; mov.b32 %r11, 0;\n"
             "setp.lt.u32 %p1, %r0, 20; setp.lt.u32 %p2, %r0, 5;\n@%p2 bra $no;\n@!%p1 bra $no;\n"
             "elect.sync %r10|%p2, 0xfffe0;\nselp.b32 %r11, 1, 0, %p2;\n$no:\n" GIVE));
    for (int lane = 0; lane < LANES; lane++) {
        assert_int_equal(((const uint32_t *)r.out)[lane * 4], lane >= 5 && lane < 20 ? 5 : 0);
        assert_int_equal(((const uint32_t *)r.out)[lane * 4 + 1], lane == 5);
    }
}

#define LDM4 "ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r10, %r11, %r12, %r13}"

static void expect_fault(const char *text, emu_fault fault, const char *message)
{
    static run r;
    static const uint32_t nothing[4];
    r = (run){ .text = text, .in = nothing, .in_size = sizeof nothing };
    if (run_kernel(&r) || r.report.fault != fault || !strstr(r.message, message))
        fail_msg("%s: %s,, expected %s: %s\n%s", emu_fault_name(r.report.fault), r.message,
                 emu_fault_name(fault), message, text);
}

TEST(mistakes_with_matrices_in_memory_are_found)
{
    expect_fault(SM90(ROWS LDM4 ", [%r2];\n"), EMU_RACE, " of the block wrote");
    expect_fault(SM90(ROWS "ldmatrix.sync.aligned.m8n8.x1.trans.shared.b16 {%r10}, [%r2];\n"),
                 EMU_RACE, " of the block wrote");
    expect_fault(SM90(ROWS MEET LDM4 ", [%r2];\nst.shared.b32 [%r2], %r10;\n"), EMU_RACE,
                 " of the block read");
    expect_fault(SM90(ROWS MEET LDM4 ", [%r2];\nst.shared.b32 [%r2], %r10;\n"), EMU_RACE,
                 "with no barrier in between");
    expect_fault(SM90(ROWS MEET LDM4 ", [%r2+8];\n"), EMU_MISALIGNED, "is not aligned to 16");
    expect_fault(SM90(ROWS MEET LDM4 ", [%r2+16];\n"), EMU_OUT_OF_BOUNDS, "past the end of 'tile'");
    expect_fault(SM90(LDM4 ", [%r2];\n"), EMU_UNINITIALISED, "never written");
    expect_fault(
        SM90(ROWS MEET "cvt.u64.u32 %l1, %r2;\nldmatrix.sync.aligned.m8n8.x1.b16 {%r10}, [%l1];\n"),
        EMU_OUT_OF_BOUNDS, "is not in shared memory");
    expect_fault(SM90(ROWS MEET "setp.lt.u32 %p1, %r0, 8;\n@%p1 " LDM4 ", [%r2];\n"),
                 EMU_INACTIVE_LANE, "ldmatrix needs all 32 lanes");
    /* a copy to the last word of a row */
    expect_fault(SM90(ROWS "ld.param.u64 %l1, [in];\nsetp.eq.u32 %p1, %r0, 9;\n"
                           "@%p1 cp.async.ca.shared.global [%r2+12], [%l1], 4;\n" MEET LDM4
                           ", [%r2];\n"),
                 EMU_RACE, "at byte 156 of 'tile', to which a cp.async of thread 9");
    expect_fault(SM90(ROWS "stmatrix.sync.aligned.m8n8.x1.shared.b16 [%r2], {%r3};\n"), EMU_RACE,
                 "with no barrier in between");
    expect_fault(
        SM90("mov.b32 %r10, 5;\nstmatrix.sync.aligned.m8n8.x1.shared.b16 [%r1], {%r10};\n"),
        EMU_RACE, "with no barrier in between");
}

#define WMMA_LOAD                                                                             \
    "wmma.load.a.sync.aligned.row.m16n16k16.shared.f16 {%r10, %r11, %r12, %r13, %r14, %r15, " \
    "%r16, %r17}"

TEST(mistakes_with_wmma_are_found)
{
    expect_fault(SM90(ROWS MEET WMMA_LOAD ", [tile+16], 16;\n"), EMU_MISALIGNED,
                 "is not aligned to the 32 bytes");
    expect_fault(SM90(ROWS MEET WMMA_LOAD ", [tile], 12;\n"), EMU_MISALIGNED,
                 "a stride of 24 bytes, which is not a multiple of 16");
    expect_fault(SM90(ROWS MEET WMMA_LOAD ", [tile], 24;\n"), EMU_OUT_OF_BOUNDS, "of 'tile'");
    expect_fault(SM90(ROWS MEET WMMA_LOAD ", [tile], %r0;\n"), EMU_INACTIVE_LANE,
                 "all lanes must give the same stride");
    expect_fault(SM90(ROWS MEET WMMA_LOAD ", [%r2], 16;\n"), EMU_INACTIVE_LANE,
                 "all lanes must give the same address");
    expect_fault(SM90(ROWS WMMA_LOAD ", [tile], 16;\n"), EMU_RACE, " of the block wrote");
}

/* An uninitialized row of A makes only the same row of D undefined. */
TEST(undefined_elements_make_their_row_of_a_product_undefined)
{
    static const emu_checks carries = { .carries = true };
    static const uint32_t nothing[4];
    static run r;
#define PRODUCT(give)                                                                            \
    SM90("setp.lt.u32 %p1, %r0, 4;\nmov.b32 %r12, 0; mov.b32 %r13, 0;\n@!%p1 mov.b32 %r11, 0;\n" \
         ".reg .f32 %f<8>; mov.f32 %f0, 0f00000000;\n"                                           \
         "mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%f1, %f2, %f3, %f4}, {%r11, %r12}, " \
         "{%r13}, {%f0, %f0, %f0, %f0};\n" give)
    const char *others = PRODUCT("@!%p1 st.global.f32 [%l0], %f1;\nst.global.f32 [%l0+4], %f3;\n");
    r = (run){ .text = others, .in = nothing, .in_size = sizeof nothing, .checks = &carries };
    run_well(&r);
    r = (run){ .text = PRODUCT("st.global.f32 [%l0], %f1;\n"),
               .in = nothing,
               .in_size = sizeof nothing,
               .checks = &carries };
    assert_false(run_kernel(&r));
    assert_int_equal(r.report.fault, EMU_UNDEFINED_REGISTER);
    assert_int_equal(r.report.thread[0], 0);
}

/* Sums that overflow s32 wrap, or saturate with .satfinite. */
TEST(integer_sums_wrap_or_saturate)
{
#define PAST_THE_END(sat)                                                                        \
    SM90("mov.b32 %r5, 0x01010101; mov.b32 %r6, 0x7fffffff; mov.b32 %r12, 0; mov.b32 %r13, 0;\n" \
         "mma.sync.aligned.m8n8k16.row.col" sat                                                  \
         ".s32.s8.s8.s32 {%r10, %r11}, {%r5}, {%r5}, {%r6, %r6};\n" GIVE)
    static const char *const texts[] = { PAST_THE_END(""), PAST_THE_END(".satfinite") };
    static const uint32_t sums[] = { 0x8000000f, 0x7fffffff };
    for (int i = 0; i < 2; i++) {
        static run r;
        run_sm90(&r, texts[i]);
        for (int lane = 0; lane < LANES; lane++)
            assert_int_equal(((const uint32_t *)r.out)[lane * 4 + 1], sums[i]);
    }
}

/* tf32 has ten fraction bits. Products ignore the bits below. Conversions round to nearest, ties
 * away from zero. */
TEST(tf32_has_ten_fraction_bits)
{
    static run r;
    run_sm90(&r, SM90(".reg .f32 %f<9>; mov.b32 %r5, 0x3f801fff; mov.b32 %r6, 0x3f800000;\n"
                      "mov.f32 %f0, 0f00000000;\n"
                      "mma.sync.aligned.m16n8k4.row.col.f32.tf32.tf32.f32 {%f1, %f2, %f3, %f4}, "
                      "{%r5, %r5}, {%r6}, {%f0, %f0, %f0, %f0};\nmov.b32 %r10, %f4;\n"
                      "mov.b32 %f5, 0x3f801000; cvt.rna.tf32.f32 %r11, %f5;\n"
                      "mov.b32 %f5, 0xbf800fff; cvt.rna.tf32.f32 %r12, %f5;\n"
                      "mov.b32 %f5, 0xff800000; cvt.rna.tf32.f32 %r13, %f5;\n" GIVE));
    static const uint32_t expected[] = { 0x40800000, 0x3f802000, 0xbf800000, 0xff800000 };
    for (int i = 0; i < 4; i++)
        assert_int_equal(((const uint32_t *)r.out)[i], expected[i]);
}
