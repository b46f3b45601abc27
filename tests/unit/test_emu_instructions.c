/* Every group of instructions with edge values, one case per row. Each case runs with all lanes and
 * with a few lanes. The registers of the other lanes must not change. */
#include "test_emu_run.h"

/* %a %b %c hold the operands in 32 bits, %la %lb %lc in 64, %ha %hb %hc in 16. The result is the
 * value written to %r, %l, %h or %p. */
typedef struct row {
    const char *code;
    uint64_t a, b, c, expected;
} row;

#define ONE   UINT64_C(0x3f800000)
#define NAN32 UINT64_C(0x7fffffff)
#define INF   UINT64_C(0x7f800000)
#define MINUS UINT64_C(0x80000000)
#define LOW   UINT64_C(0x8000000000000000)

static void check_row(const row *t)
{
    static const char format[] =
        ".version 8.1\n.target sm_89\n.address_size 64\n"
        ".visible .entry k(.param .u64 out, .param .u64 in)\n{\n"
        ".reg .pred %%p, %%q, %%g; .reg .b16 %%h, %%ha, %%hb, %%hc; .reg .b32 %%r, %%r2, %%a, %%b, "
        "%%c, %%t;\n.reg .f32 %%x, %%y; .reg .b64 %%l, %%la, %%lb, %%lc, %%out, %%in, %%slot;\n"
        "ld.param.u64 %%out, [out]; ld.param.u64 %%in, [in]; mov.u32 %%t, %%tid.x;\n"
        "ld.global.b64 %%la, [%%in]; ld.global.b64 %%lb, [%%in+8]; ld.global.b64 %%lc, [%%in+16];\n"
        "cvt.u32.u64 %%a, %%la; cvt.u32.u64 %%b, %%lb; cvt.u32.u64 %%c, %%lc;\n"
        "mov.b32 %%x, %%a; mov.b32 %%y, %%b;\n"
        "cvt.u16.u64 %%ha, %%la; cvt.u16.u64 %%hb, %%lb; cvt.u16.u64 %%hc, %%lc;\n"
        "mad.wide.u32 %%slot, %%t, 8, %%out;\n"
        "mov.b16 %%h, 7; mov.b32 %%r, 7; mov.b64 %%l, 7; setp.ne.u32 %%p, %%a, %%a;\n"
        "mov.pred %%q, %%p;\n"
        "setp.lt.u32 %%g, %%t, %u;\n"
        "@!%%g bra $done;\n"
        "%s\n"
        "$done:\n%s"
        "st.global.b64 [%%slot], %%l;\nret;\n}\n";
    const char *result = strstr(t->code, "%");
    const char *widen = "";
    uint64_t untouched = 7;
    if (result[1] == 'r')
        widen = "cvt.u64.u32 %l, %r;\n";
    else if (result[1] == 'h')
        widen = "cvt.u64.u16 %l, %h;\n";
    else if (result[1] == 'p') {
        widen = "selp.b64 %l, 1, 0, %p;\n";
        untouched = 0;
    }
    for (unsigned active = 32; active; active = active == 32 ? 5 : 0) {
        static char text[4096];
        uint64_t in[] = { t->a, t->b, t->c };
        run r = { .text = text, .in = in, .in_size = sizeof in };
        snprintf(text, sizeof text, format, active, t->code, widen);
        if (!run_kernel(&r))
            fail_msg("%s: line %u: %s", t->code, r.report.line, r.message);
        for (unsigned i = 0; i < 32; i++) {
            uint64_t expected = i < active ? t->expected : untouched;
            if (r.out[i] != expected)
                fail_msg("%s of %llx, %llx, %llx in lane %u is %llx, expected %llx", t->code,
                         (unsigned long long)t->a, (unsigned long long)t->b,
                         (unsigned long long)t->c, i, (unsigned long long)r.out[i],
                         (unsigned long long)expected);
        }
    }
}

static void check_rows(const row *rows, size_t count)
{
    for (size_t i = 0; i < count; i++)
        check_row(&rows[i]);
}

#define TEST_ROWS(name, ...)                          \
    TEST(name)                                        \
    {                                                 \
        static const row rows[] = { __VA_ARGS__ };    \
        check_rows(rows, sizeof rows / sizeof *rows); \
    }

/* clang-format off */
TEST_ROWS(approximations_of_pairs_are_rounded_once,
    { "ex2.approx.f16 %h, %ha;", 0x4000, 0, 0, 0x4400 },
    { "ex2.approx.f16x2 %r, %a;", 0x40003c00, 0, 0, 0x44004000 },
    { "tanh.approx.f16 %h, %ha;", 0x7bff, 0, 0, 0x3c00 },
    { "tanh.approx.f16x2 %r, %a;", 0xfbff0000, 0, 0, 0xbc000000 },
    { "ex2.approx.ftz.bf16 %h, %ha;", 0x4000, 0, 0, 0x4080 },
    { "ex2.approx.ftz.bf16x2 %r, %a;", 0x40003f80, 0, 0, 0x40804000 },
    { "tanh.approx.bf16 %h, %ha;", 0x7f80, 0, 0, 0x3f80 },
    { "tanh.approx.bf16x2 %r, %a;", 0xff800000, 0, 0, 0xbf800000 },
    { "slct.b64.f32 %l, %la, %lb, %c;", 1, 2, 0xbf800000, 2 },
    { "slct.b64.f32 %l, %la, %lb, %c;", 1, 2, MINUS, 1 },
)

#define PAIR(form) \
    "cvt.rn.satfinite." form ".f32 %h, %x, %y;"

TEST_ROWS(eight_bit_floats_round_saturate_and_convert_back,
    { PAIR("e4m3x2"), ONE, 0xc0000000, 0, 0x38c0 },
    { PAIR("e4m3x2"), 0x43e00000, 0x43e80001, 0, 0x7e7e }, /* 448 is the maximum; larger values
                                                              saturate */
    { PAIR("e4m3x2"), 0xff800000, NAN32, 0, 0xfe7f },
    { PAIR("e4m3x2"), 0x3b000000, 0x3a800000, 0, 0x0100 }, /* 2^-9 is the smallest value; 2^-10 is a
                                                              tie */
    { PAIR("e4m3x2"), 0x3f880000, 0x3f980000, 0, 0x383a }, /* ties round to even */
    { PAIR("e5m2x2"), ONE, 0xc0000000, 0, 0x3cc0 },
    { PAIR("e5m2x2"), 0x47600000, INF, 0, 0x7b7b },
    { PAIR("e5m2x2"), NAN32, 0x37800000, 0, 0x7f01 },
    { "cvt.rn.satfinite.e4m3x2.f16x2 %h, %a;", 0x3c00c000, 0, 0, 0x38c0 },
    { "cvt.rn.satfinite.relu.e4m3x2.f16x2 %h, %a;", 0x3c00c000, 0, 0, 0x3800 },
    { "cvt.rn.satfinite.e5m2x2.f16x2 %h, %a;", 0x7c00fc00, 0, 0, 0x7bfb },
    { "cvt.rn.f16x2.e4m3x2 %r, %ha;", 0x38c0, 0, 0, 0x3c00c000 },
    { "cvt.rn.f16x2.e4m3x2 %r, %ha;", 0x7e01, 0, 0, 0x5f001800 },
    { "cvt.rn.f16x2.e4m3x2 %r, %ha;", 0x7fff, 0, 0, 0x7fff7fff },
    { "cvt.rn.relu.f16x2.e4m3x2 %r, %ha;", 0x38c0, 0, 0, 0x3c000000 },
    { "cvt.rn.f16x2.e5m2x2 %r, %ha;", 0x7cfc, 0, 0, 0x7c00fc00 },
    { "cvt.rn.f16x2.e5m2x2 %r, %ha;", 0x7e01, 0, 0, 0x7fff0100 },
)

TEST_ROWS(parts_of_words_are_compared_and_subtracted,
    { "min.u16x2 %r, %a, %b;", 0x80010005, 0x7fff0006, 0, 0x7fff0005 },
    { "max.u16x2 %r, %a, %b;", 0x80010005, 0x7fff0006, 0, 0x80010006 },
    { "min.s16x2 %r, %a, %b;", 0x80010005, 0x7fff0006, 0, 0x80010005 },
    { "min.s16x2.relu %r, %a, %b;", 0x80010005, 0x7fff0006, 0, 0x00000005 },
    { "min.relu.s16x2 %r, %a, %b;", 0x80010005, 0x7fff0006, 0, 0x00000005 },
    { "max.s16x2 %r, %a, %b;", 0xffff8000, 0xfffe0001, 0, 0xffff0001 },
    { "max.s16x2.relu %r, %a, %b;", 0xffff8000, 0xfffe0001, 0, 0x00000001 },
    { "max.s32.relu %r, %a, %b;", 0xffff8000, 0xfffe0001, 0, 0 },
    { "min.s32.relu %r, %a, %b;", 7, 5, 0, 5 },
    { "vabsdiff4.u32.u32.u32 %r, %a, %b, %c;", 0xff000510, 0x01ff0610, 9, 0xfeff0100 },
    { "vabsdiff4.u32.u32.u32.add %r, %a, %b, %c;", 0xff000510, 0x01ff0610, 1, 511 },
    { "vabsdiff2.u32.u32.u32 %r, %a, %b, %c;", 0xffff0003, 0x00010005, 9, 0xfffe0002 },
    { "vabsdiff2.u32.u32.u32.add %r, %a, %b, %c;", 0xffff0003, 0x00010005, 2, 65538 },
    { "sad.u16 %h, %ha, %hb, %hc;", 3, 10, 1, 8 },
    { "sad.s16 %h, %ha, %hb, %hc;", 0xfffd, 2, 1, 6 },
    { "sad.u64 %l, %la, %lb, %lc;", 3, LOW, 5, LOW + 2 },
    { "sad.s64 %l, %la, %lb, %lc;", 3, (uint64_t)-4, 5, 12 },
    { "mul24.hi.u32 %r, %a, %b;", 0xffffff, 0x1ffffff, 0, 0xfffffe00 },
    { "mul24.hi.s32 %r, %a, %b;", 0x800000, 2, 0, 0xffffff00 },
)

TEST_ROWS(integers_wrap_saturate_and_widen,
    { "add.u32 %r, %a, %b;", 0xffffffff, 2, 0, 1 },
    { "add.u16 %h, %ha, %hb;", 0xffff, 2, 0, 1 },
    { "add.s64 %l, %la, %lb;", UINT64_MAX, 2, 0, 1 },
    { "add.sat.s32 %r, %a, %b;", 0x7fffffff, 1, 0, 0x7fffffff },
    { "add.sat.s32 %r, %a, %b;", 0x80000000, 0xffffffff, 0, 0x80000000 },
    { "sub.sat.s32 %r, %a, %b;", 0x80000000, 1, 0, 0x80000000 },
    { "sub.s32 %r, %a, %b;", 0, 1, 0, 0xffffffff },
    { "sub.u16 %h, %ha, %hb;", 0, 1, 0, 0xffff },
    { "mul.lo.s32 %r, %a, %b;", 0x10001, 0x10001, 0, 0x20001 },
    { "mul.lo.u16 %h, %ha, %hb;", 0xffff, 0xffff, 0, 1 },
    { "mul.hi.u32 %r, %a, %b;", 0xffffffff, 0xffffffff, 0, 0xfffffffe },
    { "mul.hi.s32 %r, %a, %b;", 0xffffffff, 2, 0, 0xffffffff },
    { "mul.hi.u64 %l, %la, %lb;", UINT64_MAX, UINT64_MAX, 0, UINT64_MAX - 1 },
    { "mul.hi.s64 %l, %la, %lb;", UINT64_MAX, 5, 0, UINT64_MAX },
    { "mul.hi.s64 %l, %la, %lb;", LOW, LOW, 0, UINT64_C(1) << 62 },
    { "mul.wide.u32 %l, %a, %b;", 0xffffffff, 0xffffffff, 0, UINT64_C(0xfffffffe00000001) },
    { "mul.wide.s32 %l, %a, %b;", 0xffffffff, 3, 0, UINT64_MAX - 2 },
    { "mul.wide.s16 %r, %ha, %hb;", 0xffff, 3, 0, 0xfffffffd },
    { "mul.wide.u16 %r, %ha, %hb;", 0xffff, 0xffff, 0, 0xfffe0001 },
    { "mul24.lo.u32 %r, %a, %b;", 0xff000003, 0xff000005, 0, 15 },
    { "mul24.lo.s32 %r, %a, %b;", 0x00ffffff, 5, 0, 0xfffffffb },
    { "mad.lo.s32 %r, %a, %b, %c;", 3, 4, 5, 17 },
    { "mad.hi.u32 %r, %a, %b, %c;", 0x80000000, 4, 5, 7 },
    { "mad.hi.s32 %r, %a, %b, %c;", 0x80000000, 4, 5, 3 },
    { "mad.wide.u32 %l, %a, %b, %lc;", 0xffffffff, 0xffffffff, 1, UINT64_C(0xfffffffe00000002) },
    { "mad.wide.s32 %l, %a, %b, %lc;", 0xffffffff, 3, 10, 7 },
    { "mad.lo.u64 %l, %la, %lb, %lc;", UINT64_C(1) << 40, 3, 1, (UINT64_C(3) << 40) + 1 },
    { "sad.s32 %r, %a, %b, %c;", 0x80000000, 0x7fffffff, 1, 0 },
    { "sad.u32 %r, %a, %b, %c;", 3, 5, 10, 12 },
    { "div.s32 %r, %a, %b;", 0xfffffff9, 2, 0, 0xfffffffd },
    { "div.s32 %r, %a, %b;", 0x80000000, 0xffffffff, 0, 0x80000000 },
    { "div.u32 %r, %a, %b;", 7, 0, 0, 0xffffffff },
    { "div.s64 %l, %la, %lb;", LOW, UINT64_MAX, 0, LOW },
    { "rem.s32 %r, %a, %b;", 0xfffffff9, 2, 0, 0xffffffff },
    { "rem.s32 %r, %a, %b;", 0x80000000, 0xffffffff, 0, 0 },
    { "rem.s64 %l, %la, %lb;", LOW, UINT64_MAX, 0, 0 },
    { "rem.u64 %l, %la, %lb;", 100, 7, 0, 2 },
    { "abs.s32 %r, %a;", 0x80000000, 0, 0, 0x80000000 },
    { "abs.s16 %h, %ha;", 0xffff, 0, 0, 1 },
    { "neg.s32 %r, %a;", 0x80000000, 0, 0, 0x80000000 },
    { "neg.s64 %l, %la;", 5, 0, 0, UINT64_MAX - 4 },
    { "min.s32 %r, %a, %b;", 0xffffffff, 1, 0, 0xffffffff },
    { "min.u32 %r, %a, %b;", 0xffffffff, 1, 0, 1 },
    { "max.s64 %l, %la, %lb;", UINT64_MAX, 1, 0, 1 },
    { "max.u16 %h, %ha, %hb;", 0xffff, 1, 0, 0xffff },
    { "max.s16 %h, %ha, %hb;", 0xffff, 1, 0, 1 },
    { "add.u32 %r, %a, -3;", 10, 0, 0, 7 },
    { "add.u32 %r, %a, (1<<4|3)*2-1;", 0, 0, 0, 37 },
    { "add.cc.u32 %r, %a, %b; addc.u32 %r, 0, 0;", 0xffffffff, 1, 0, 1 },
    { "add.cc.u64 %l, %la, %lb; addc.u64 %l, 5, 0;", UINT64_MAX, 1, 0, 6 },
    { "sub.cc.u32 %r, %a, %b; subc.u32 %r, 10, 0;", 0, 1, 0, 9 },
    { "sub.cc.u32 %r, %a, %b; subc.u32 %r, 10, 0;", 1, 1, 0, 10 },
    { "sub.cc.u32 %r, %a, %b; addc.u32 %r, 10, 0;", 0, 1, 0, 10 },
    { "sub.cc.u32 %r, %a, %b; addc.u32 %r, 10, 0;", 1, 1, 0, 11 },
    { "sub.cc.u64 %l, %la, %lb; addc.u64 %l, 10, 0;", 0, 1, 0, 10 },
    { "add.cc.u32 %r, %a, %b; subc.u32 %r, 10, 0;", 1, 1, 0, 9 },
    { "add.cc.u32 %r, %a, %b; subc.u32 %r, 10, 0;", 0xffffffff, 1, 0, 10 },
    { "mad.lo.cc.u32 %r, %a, %b, %c; madc.hi.u32 %r, %a, %b, 0;", 0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff })

TEST_ROWS(bits_are_shifted_extracted_and_permuted,
    { "shl.b32 %r, %a, %b;", 1, 31, 0, 0x80000000 },
    { "shl.b32 %r, %a, %b;", 1, 32, 0, 0 },
    { "shl.b32 %r, %a, %b;", 1, 0xffffffff, 0, 0 },
    { "shl.b64 %l, %la, %b;", 1, 63, 0, LOW },
    { "shl.b64 %l, %la, %b;", 1, 64, 0, 0 },
    { "shl.b16 %h, %ha, %b;", 3, 15, 0, 0x8000 },
    { "shr.u32 %r, %a, %b;", 0x80000000, 31, 0, 1 },
    { "shr.u32 %r, %a, %b;", 0x80000000, 32, 0, 0 },
    { "shr.s32 %r, %a, %b;", 0x80000000, 40, 0, 0xffffffff },
    { "shr.s64 %l, %la, %b;", LOW, 100, 0, UINT64_MAX },
    { "shr.s16 %h, %ha, %b;", 0x8000, 3, 0, 0xf000 },
    { "shr.u16 %h, %ha, %b;", 0x8000, 3, 0, 0x1000 },
    { "shf.l.wrap.b32 %r, %a, %b, %c;", 0x80000000, 1, 33, 3 },
    { "shf.l.clamp.b32 %r, %a, %b, %c;", 0x12345678, 1, 33, 0x12345678 },
    { "shf.l.clamp.b32 %r, %a, %b, %c;", 0x80000000, 1, 1, 3 },
    { "shf.r.wrap.b32 %r, %a, %b, %c;", 2, 1, 33, 0x80000001 },
    { "shf.r.clamp.b32 %r, %a, %b, %c;", 2, 0x12345678, 40, 0x12345678 },
    { "bfe.u32 %r, %a, %b, %c;", 0xabcd1234, 8, 8, 0x12 },
    { "bfe.s32 %r, %a, %b, %c;", 0x0000f000, 12, 4, 0xffffffff },
    { "bfe.s32 %r, %a, %b, %c;", 0x80000000, 31, 8, 0xffffffff },
    { "bfe.s32 %r, %a, %b, %c;", 0x80000000, 40, 8, 0xffffffff },
    { "bfe.s32 %r, %a, %b, %c;", 0xffffffff, 4, 0, 0 },
    { "bfe.u32 %r, %a, %b, %c;", 0xffffffff, 30, 32, 3 },
    { "bfe.u64 %l, %la, %b, %c;", UINT64_C(0xff00000000000000), 56, 8, 0xff },
    { "bfe.s64 %l, %la, %b, %c;", UINT64_C(0x0800000000000000), 56, 4, UINT64_MAX - 7 },
    { "bfi.b32 %r, %a, %b, 8, 4;", 0xff, 0x12345678, 0, 0x12345f78 },
    { "bfi.b32 %r, %a, %b, 40, 4;", 0xff, 0x12345678, 0, 0x12345678 },
    { "bfi.b64 %l, %la, %lb, 60, 20;", 0xf5, 0, 0, UINT64_C(0x5000000000000000) },
    { "bmsk.clamp.b32 %r, %a, %b;", 4, 8, 0, 0xff0 },
    { "brev.b32 %r, %a;", 1, 0, 0, 0x80000000 },
    { "brev.b64 %l, %la;", 2, 0, 0, UINT64_C(1) << 62 },
    { "clz.b32 %r, %a;", 0, 0, 0, 32 },
    { "clz.b32 %r, %a;", 1, 0, 0, 31 },
    { "clz.b64 %r, %la;", 1, 0, 0, 63 },
    { "popc.b32 %r, %a;", 0xf0f0f0f1, 0, 0, 17 },
    { "popc.b64 %r, %la;", UINT64_MAX, 0, 0, 64 },
    { "bfind.u32 %r, %a;", 0x00010000, 0, 0, 16 },
    { "bfind.s32 %r, %a;", 0xffffffff, 0, 0, 0xffffffff },
    { "bfind.s32 %r, %a;", 0xfffffff0, 0, 0, 3 },
    { "bfind.shiftamt.u32 %r, %a;", 0x00010000, 0, 0, 15 },
    { "bfind.u64 %r, %la;", 0, 0, 0, 0xffffffff },
    { "fns.b32 %r, %a, %b, 1;", 0x50, 0, 0, 4 },
    { "fns.b32 %r, %a, %b, 2;", 0x50, 0, 0, 6 },
    { "fns.b32 %r, %a, %b, 3;", 0x50, 0, 0, 0xffffffff },
    { "fns.b32 %r, %a, %b, 1;", 0x50, 4, 0, 4 },
    { "fns.b32 %r, %a, %b, -1;", 0x50, 5, 0, 4 },
    { "fns.b32 %r, %a, %b, -2;", 0x50, 6, 0, 4 },
    { "fns.b32 %r, %a, %b, %c;", 0x50, 4, 0, 4 },
    { "fns.b32 %r, %a, %b, %c;", 0x50, 5, 0, 0xffffffff },
    { "fns.b32 %r, %a, %b, -1;", 0x50, 40, 0, 0xffffffff },
    { "szext.wrap.s32 %r, %a, %b;", 0x3ff, 8, 0, 0xffffffff },
    { "szext.wrap.u32 %r, %a, %b;", 0x3ff, 40, 0, 0xff },
    { "szext.clamp.u32 %r, %a, %b;", 0x3ff, 40, 0, 0x3ff },
    { "szext.clamp.s32 %r, %a, %b;", 0x17f, 8, 0, 0x7f },
    { "szext.clamp.s32 %r, %a, %b;", 0xff, 0, 0, 0 },
    { "prmt.b32 %r, %a, %b, 0x7531;", 0x33221100, 0x77665544, 0, 0x77553311 },
    { "prmt.b32 %r, %a, %b, 0xc480;", 0x33221180, 0x77665584, 0, 0xff84ff80 },
    { "prmt.b32.f4e %r, %a, %b, 3;", 0x33221100, 0x77665544, 0, 0x66554433 },
    { "prmt.b32.b4e %r, %a, %b, 1;", 0x33221100, 0x77665544, 0, 0x66770011 },
    { "prmt.b32.rc8 %r, %a, %b, 2;", 0x33221100, 0x77665544, 0, 0x22222222 },
    { "prmt.b32.ecl %r, %a, %b, 1;", 0x33221100, 0x77665544, 0, 0x33221111 },
    { "prmt.b32.ecr %r, %a, %b, 2;", 0x33221100, 0x77665544, 0, 0x22221100 },
    { "prmt.b32.rc16 %r, %a, %b, 1;", 0x33221100, 0x77665544, 0, 0x33223322 },
    { "lop3.b32 %r, %a, %b, %c, 0xea;", 0xf0, 0x3c, 0x01, 0x31 },
    { "lop3.b32 %r, %a, %b, %c, 0x96;", 0xf0, 0x3c, 0x01, 0xcd },
    { "and.b32 %r, %a, %b;", 0xf0, 0x3c, 0, 0x30 },
    { "xor.b64 %l, %la, %lb;", UINT64_MAX, 1, 0, UINT64_MAX - 1 },
    { "not.b16 %h, %ha;", 0x00ff, 0, 0, 0xff00 },
    { "cnot.b32 %r, %a;", 0, 0, 0, 1 })

TEST_ROWS(dot_products_extend_each_operand_by_its_sign,
    { "dp4a.u32.u32 %r, %a, %b, %c;", 0xff010203, 0xff040506, 1, 0xfe01 + 4 + 10 + 18 + 1 },
    { "dp4a.s32.s32 %r, %a, %b, %c;", 0xff010203, 0xff040506, 1, 1 + 4 + 10 + 18 + 1 },
    { "dp4a.u32.s32 %r, %a, %b, %c;", 0xff000000, 0xff000000, 0, 0xffffff01 },
    { "dp4a.s32.u32 %r, %a, %b, %c;", 0xff000000, 0xfe000000, 0, 0xffffff02 },
    { "dp4a.s32.s32 %r, %a, %b, %c;", 0x80808080, 0x80808080, 0xffffffff, 65535 },
    { "dp2a.lo.u32.u32 %r, %a, %b, %c;", 0x00020003, 0x01020304, 5, 3 * 4 + 2 * 3 + 5 },
    { "dp2a.hi.u32.u32 %r, %a, %b, %c;", 0x00020003, 0x01020304, 5, 3 * 2 + 2 * 1 + 5 },
    { "dp2a.lo.s32.s32 %r, %a, %b, %c;", 0xffff0000, 0x0000ff00, 0, 1 },
    { "dp2a.lo.s32.u32 %r, %a, %b, %c;", 0xffff0000, 0x0000ff00, 0, 0xffffff01 },
    { "dp2a.hi.u32.s32 %r, %a, %b, %c;", 0xffff0000, 0xff000000, 0, 0xffff0001 })

TEST_ROWS(single_precision_rounds_flushes_and_makes_nans_canonical,
    { "add.f32 %r, %a, %b;", ONE, ONE, 0, 0x40000000 },
    { "add.f32 %r, %a, %b;", INF, INF | MINUS, 0, NAN32 },
    { "add.f32 %r, %a, %b;", 0x7fc12345, ONE, 0, NAN32 },
    { "add.rn.f32 %r, %a, %b;", ONE, 0x33800000, 0, ONE },
    { "add.rp.f32 %r, %a, %b;", ONE, 0x33000000, 0, ONE + 1 },
    { "add.rz.f32 %r, %a, %b;", ONE, 0xb3000000, 0, ONE - 1 },
    { "add.rm.f32 %r, %a, %b;", ONE, 0xb3000000, 0, ONE - 1 },
    { "add.f32 %r, %a, %b;", 1, 1, 0, 2 },
    { "add.ftz.f32 %r, %a, %b;", 1, 0x80000001, 0, 0 },
    { "mul.ftz.f32 %r, %a, %b;", 0x00800000, 0xbf000000, 0, MINUS },
    { "mul.f32 %r, %a, %b;", 0x00800000, 0x3f000000, 0, 0x00400000 },
    { "add.sat.f32 %r, %a, %b;", ONE, ONE, 0, ONE },
    { "add.sat.f32 %r, %a, %b;", NAN32, ONE, 0, 0 },
    { "sub.f32 %r, %a, %b;", ONE, ONE, 0, 0 },
    { "sub.rm.f32 %r, %a, %b;", ONE, ONE, 0, MINUS },
    { "fma.rn.f32 %r, %a, %b, %c;", 0x3f800001, 0x3f800001, 0xbf800002, 0x28800000 },
    { "mad.rn.f32 %r, %a, %b, %c;", 0x3f800001, 0x3f800001, 0xbf800002, 0x28800000 },
    { "fma.rz.f32 %r, %a, %b, %c;", ONE, ONE, 0xb3000000, ONE - 1 },
    { "fma.rn.f32 %r, %a, %b, %c;", INF, 0, ONE, NAN32 },
    { "fma.rn.sat.f32 %r, %a, %b, %c;", ONE, ONE, ONE, ONE },
    { "div.rn.f32 %r, %a, %b;", ONE, 0x40400000, 0, 0x3eaaaaab },
    { "div.rz.f32 %r, %a, %b;", ONE, 0x40400000, 0, 0x3eaaaaaa },
    { "div.full.f32 %r, %a, %b;", ONE, 0, 0, INF },
    { "rcp.approx.f32 %r, %a;", 0x40000000, 0, 0, 0x3f000000 },
    { "rcp.approx.ftz.f32 %r, %a;", 1, 0, 0, INF },
    { "sqrt.rn.f32 %r, %a;", 0x40000000, 0, 0, 0x3fb504f3 },
    { "sqrt.approx.f32 %r, %a;", 0xbf800000, 0, 0, NAN32 },
    { "rsqrt.approx.f32 %r, %a;", 0x40800000, 0, 0, 0x3f000000 },
    { "rsqrt.approx.ftz.f32 %r, %a;", MINUS, 0, 0, INF | MINUS },
    { "ex2.approx.f32 %r, %a;", 0x40400000, 0, 0, 0x41000000 },
    { "ex2.approx.ftz.f32 %r, %a;", 0xc3000000, 0, 0, 0 },
    { "ex2.approx.f32 %r, %a;", INF | MINUS, 0, 0, 0 },
    { "lg2.approx.f32 %r, %a;", 0x41000000, 0, 0, 0x40400000 },
    { "lg2.approx.f32 %r, %a;", 0, 0, 0, INF | MINUS },
    { "lg2.approx.f32 %r, %a;", 0xbf800000, 0, 0, NAN32 },
    { "sin.approx.f32 %r, %a;", 0, 0, 0, 0 },
    { "cos.approx.f32 %r, %a;", 0, 0, 0, ONE },
    { "tanh.approx.f32 %r, %a;", INF, 0, 0, ONE },
    { "abs.f32 %r, %a;", 0xbf800000, 0, 0, ONE },
    { "abs.ftz.f32 %r, %a;", 0x80000001, 0, 0, 0 },
    { "neg.f32 %r, %a;", 0, 0, 0, MINUS },
    { "min.f32 %r, %a, %b;", NAN32, ONE, 0, ONE },
    { "min.f32 %r, %a, %b;", ONE, 0xffc00001, 0, ONE },
    { "min.f32 %r, %a, %b;", NAN32, 0xffc00001, 0, NAN32 },
    { "min.NaN.f32 %r, %a, %b;", NAN32, ONE, 0, NAN32 },
    { "min.f32 %r, %a, %b;", 0, MINUS, 0, MINUS },
    { "max.f32 %r, %a, %b;", MINUS, 0, 0, 0 },
    { "max.f32 %r, %a, %b;", ONE, 0x40000000, 0, 0x40000000 },
    { "copysign.f32 %r, %a, %b;", MINUS, ONE, 0, 0xbf800000 })

TEST_ROWS(double_precision_is_exact_where_ieee_says_so,
    { "add.f64 %l, %la, %lb;", UINT64_C(0x3ff0000000000000), UINT64_C(0x3ff0000000000000), 0, UINT64_C(0x4000000000000000) },
    { "add.rp.f64 %l, %la, %lb;", UINT64_C(0x3ff0000000000000), 1, 0, UINT64_C(0x3ff0000000000001) },
    { "fma.rn.f64 %l, %la, %lb, %lc;", UINT64_C(0x3ff0000000000001), UINT64_C(0x3ff0000000000001), UINT64_C(0xbff0000000000002), UINT64_C(0x3970000000000000) },
    { "div.rn.f64 %l, %la, %lb;", UINT64_C(0x3ff0000000000000), UINT64_C(0x4008000000000000), 0, UINT64_C(0x3fd5555555555555) },
    { "min.f64 %l, %la, %lb;", UINT64_C(0x7ff8000000000000), UINT64_C(0x3ff0000000000000), 0, UINT64_C(0x3ff0000000000000) },
    { "sqrt.rn.f64 %l, %la;", UINT64_C(0x4010000000000000), 0, 0, UINT64_C(0x4000000000000000) },
    { "neg.f64 %l, %la;", 0, 0, 0, LOW })

TEST_ROWS(halves_round_to_nearest_even_and_keep_subnormals,
    { "add.f16 %h, %ha, %hb;", 0x3c00, 0x3c00, 0, 0x4000 },
    { "add.f16 %h, %ha, %hb;", 1, 1, 0, 2 },
    { "add.ftz.f16 %h, %ha, %hb;", 1, 0x8001, 0, 0 },
    { "add.f16 %h, %ha, %hb;", 0x6800, 0x3c00, 0, 0x6800 },
    { "add.f16 %h, %ha, %hb;", 0x7bff, 0x4c00, 0, 0x7c00 },
    { "sub.f16 %h, %ha, %hb;", 0x7c00, 0x7c00, 0, 0x7fff },
    { "mul.f16 %h, %ha, %hb;", 0x0400, 0x3800, 0, 0x0200 },
    { "add.sat.f16 %h, %ha, %hb;", 0x3c00, 0x3c00, 0, 0x3c00 },
    { "fma.rn.f16 %h, %ha, %hb, %hc;", 0x3c01, 0x3c01, 0xbc02, 0x0010 },
    { "fma.rn.relu.f16 %h, %ha, %hb, %hc;", 0x3c00, 0x3c00, 0xc000, 0 },
    { "fma.rn.f16 %h, %ha, %hb, %hc;", 0x7800, 0x1000, 0x0001, 0x4c00 },
    { "add.f16x2 %r, %a, %b;", 0x3c004000, 0x3c003c00, 0, 0x40004200 },
    { "fma.rn.f16x2 %r, %a, %b, %c;", 0x3c004000, 0x40004000, 0x3c003c00, 0x42004500 },
    { "min.f16 %h, %ha, %hb;", 0x7fff, 0x3c00, 0, 0x3c00 },
    { "max.NaN.f16 %h, %ha, %hb;", 0x7fff, 0x3c00, 0, 0x7fff },
    { "neg.f16 %h, %ha;", 0x3c00, 0, 0, 0xbc00 },
    { "fma.rn.bf16 %h, %ha, %hb, %hc;", 0x3f80, 0x3f80, 0x3f80, 0x4000 },
    { "fma.rn.bf16x2 %r, %a, %b, %c;", 0x3f803f80, 0x3f804000, 0x3f803f80, 0x40004040 },
    { "max.bf16 %h, %ha, %hb;", 0x3f80, 0x4000, 0, 0x4000 })

TEST_ROWS(conversions_clamp_round_and_extend,
    { "cvt.u64.u32 %l, %a;", 0xffffffff, 0, 0, 0xffffffff },
    { "cvt.s64.s32 %l, %a;", 0xffffffff, 0, 0, UINT64_MAX },
    { "cvt.u32.u8 %r, %a;", 0x1ff, 0, 0, 0xff },
    { "cvt.s32.s8 %r, %a;", 0x180, 0, 0, 0xffffff80 },
    { "cvt.s8.s32 %r, %a;", 0x180, 0, 0, 0xffffff80 },
    { "cvt.s8.s32 %h, %a;", 0x180, 0, 0, 0xff80 },
    { "cvt.u16.u32 %h, %a;", 0x12345678, 0, 0, 0x5678 },
    { "cvt.sat.s8.s32 %r, %a;", 300, 0, 0, 127 },
    { "cvt.sat.s8.s32 %r, %a;", 0xfffffc00, 0, 0, 0xffffff80 },
    { "cvt.sat.u8.s32 %r, %a;", 0xffffffff, 0, 0, 0 },
    { "cvt.sat.s32.u64 %r, %la;", UINT64_MAX, 0, 0, 0x7fffffff },
    { "cvt.sat.u32.s64 %r, %la;", UINT64_MAX, 0, 0, 0 },
    { "cvt.rn.f32.u32 %r, %a;", 0xffffffff, 0, 0, 0x4f800000 },
    { "cvt.rz.f32.u32 %r, %a;", 0xffffffff, 0, 0, 0x4f7fffff },
    { "cvt.rn.f32.s32 %r, %a;", 0xffffffff, 0, 0, 0xbf800000 },
    { "cvt.rn.f32.s8 %r, %a;", 0x1ff, 0, 0, 0xbf800000 },
    { "cvt.rn.f32.u64 %r, %la;", UINT64_MAX, 0, 0, 0x5f800000 },
    { "cvt.rn.f64.u64 %l, %la;", 1, 0, 0, UINT64_C(0x3ff0000000000000) },
    { "cvt.rzi.s32.f32 %r, %a;", 0xbfc00000, 0, 0, 0xffffffff },
    { "cvt.rni.s32.f32 %r, %a;", 0x40200000, 0, 0, 2 },
    { "cvt.rni.s32.f32 %r, %a;", 0x40600000, 0, 0, 4 },
    { "cvt.rmi.s32.f32 %r, %a;", 0xbfc00000, 0, 0, 0xfffffffe },
    { "cvt.rpi.s32.f32 %r, %a;", 0x3fc00000, 0, 0, 2 },
    { "cvt.rzi.s32.f32 %r, %a;", NAN32, 0, 0, 0 },
    { "cvt.rzi.s64.f32 %l, %a;", NAN32, 0, 0, LOW },
    { "cvt.rzi.s32.f32 %r, %a;", INF, 0, 0, 0x7fffffff },
    { "cvt.rzi.u32.f32 %r, %a;", 0xbf800000, 0, 0, 0 },
    { "cvt.rzi.u64.f32 %l, %a;", INF, 0, 0, UINT64_MAX },
    { "cvt.rni.s8.f32 %r, %a;", 0x43480000, 0, 0, 127 },
    { "cvt.rni.f32.f32 %r, %a;", 0x40200000, 0, 0, 0x40000000 },
    { "cvt.f32.f16 %r, %ha;", 0x3c00, 0, 0, ONE },
    { "cvt.f32.f16 %r, %ha;", 1, 0, 0, 0x33800000 },
    { "cvt.f32.f16 %r, %ha;", 0xfc00, 0, 0, INF | MINUS },
    { "cvt.f32.f16 %r, %ha;", 0x7c01, 0, 0, NAN32 },
    { "cvt.rn.f16.f32 %h, %a;", 0x3f801000, 0, 0, 0x3c00 },
    { "cvt.rn.f16.f32 %h, %a;", 0x3f803000, 0, 0, 0x3c02 },
    { "cvt.rz.f16.f32 %h, %a;", 0x3f803000, 0, 0, 0x3c01 },
    { "cvt.rn.f16.f32 %h, %a;", 0x477ff000, 0, 0, 0x7c00 },
    { "cvt.rz.f16.f32 %h, %a;", 0x477ff000, 0, 0, 0x7bff },
    { "cvt.rz.f16.f32 %h, %a;", 0x47800000, 0, 0, 0x7bff },
    { "cvt.rn.f16.f32 %h, %a;", 0x33000001, 0, 0, 1 },
    { "cvt.rn.f16.f32 %h, %a;", 0x33000000, 0, 0, 0 },
    { "cvt.rn.f16.s32 %h, %a;", 0xffffffff, 0, 0, 0xbc00 },
    { "cvt.f32.bf16 %r, %ha;", 0x3f80, 0, 0, ONE },
    { "cvt.rn.bf16.f32 %h, %a;", 0x3f808000, 0, 0, 0x3f80 },
    { "cvt.rn.bf16.f32 %h, %a;", 0x3f818000, 0, 0, 0x3f82 },
    { "cvt.rn.bf16.f32 %h, %a;", NAN32, 0, 0, 0x7fff },
    { "cvt.rn.f16x2.f32 %r, %a, %b;", ONE, 0x40000000, 0, 0x3c004000 },
    { "cvt.rn.bf16x2.f32 %r, %a, %b;", ONE, 0x40000000, 0, 0x3f804000 },
    { "cvt.rn.f32.f64 %r, %la;", UINT64_C(0x3ff0000010000000), 0, 0, ONE },
    { "cvt.rp.f32.f64 %r, %la;", UINT64_C(0x3ff0000010000000), 0, 0, ONE + 1 },
    { "cvt.f64.f32 %l, %a;", ONE, 0, 0, UINT64_C(0x3ff0000000000000) },
    { "cvt.sat.f32.f32 %r, %a;", 0x40000000, 0, 0, ONE },
    { "cvt.ftz.f64.f32 %l, %a;", 0x80000001, 0, 0, LOW },
    { "cvt.pack.sat.s8.s32.b32 %r, %a, %b, %c;", 300, 0xfffffc00, 0x11223344, 0x33447f80 },
    { "cvt.pack.sat.u16.s32 %r, %a, %b;", 70000, 0xffffffff, 0, 0xffff0000 })

TEST_ROWS(comparisons_order_signs_and_nans,
    { "setp.lt.s32 %p, %a, %b;", 0xffffffff, 1, 0, 1 },
    { "setp.lt.u32 %p, %a, %b;", 0xffffffff, 1, 0, 0 },
    { "setp.hs.u32 %p, %a, %b;", 0xffffffff, 1, 0, 1 },
    { "setp.ge.s64 %p, %la, %lb;", UINT64_MAX, 0, 0, 0 },
    { "setp.gt.s16 %p, %ha, %hb;", 0x7fff, 0x8000, 0, 1 },
    { "setp.eq.b64 %p, %la, %lb;", 5, 5, 0, 1 },
    { "setp.ne.f32 %p, %a, %b;", NAN32, ONE, 0, 0 },
    { "setp.neu.f32 %p, %a, %b;", NAN32, ONE, 0, 1 },
    { "setp.equ.f32 %p, %a, %b;", NAN32, ONE, 0, 1 },
    { "setp.eq.f32 %p, %a, %b;", 0, MINUS, 0, 1 },
    { "setp.ltu.f32 %p, %a, %b;", NAN32, ONE, 0, 1 },
    { "setp.lt.f32 %p, %a, %b;", NAN32, ONE, 0, 0 },
    { "setp.leu.f32 %p, %a, %b;", 0x40000000, ONE, 0, 0 },
    { "setp.gtu.f32 %p, %a, %b;", 0x40000000, ONE, 0, 1 },
    { "setp.geu.f32 %p, %a, %b;", ONE, 0x40000000, 0, 0 },
    { "setp.num.f32 %p, %a, %b;", NAN32, ONE, 0, 0 },
    { "setp.nan.f32 %p, %a, %b;", NAN32, ONE, 0, 1 },
    { "setp.gt.ftz.f32 %p, %a, %b;", 1, 0, 0, 0 },
    { "setp.gt.f64 %p, %la, %lb;", UINT64_C(0x4000000000000000), UINT64_C(0x3ff0000000000000), 0, 1 },
    { "setp.lt.f16 %p, %ha, %hb;", 0xbc00, 0x3c00, 0, 1 },
    { "setp.lt.and.s32 %p|%q, %a, %b, !%p; ", 1, 2, 0, 1 },
    { "setp.lt.or.s32 %p|%q, %a, %b, !%p; ", 3, 2, 0, 1 },
    { "setp.lt.xor.s32 %p, %a, %b, !%p; ", 1, 2, 0, 0 },
    { "mov.pred %p, %q; setp.lt.s32 %q|%p, %a, %b;", 3, 2, 0, 1 },
    { "set.lt.u32.s32 %r, %a, %b;", 1, 2, 0, 0xffffffff },
    { "set.gt.f32.s32 %r, %a, %b;", 1, 2, 0, 0 },
    { "set.lt.f32.f32 %r, %a, %b;", ONE, 0x40000000, 0, ONE },
    { "set.lt.f16.f16 %h, %ha, %hb;", 0x3c00, 0x4000, 0, 0x3c00 },
    { "set.ltu.f16.f16 %h, %ha, %hb;", 0x3c00, 0x7e00, 0, 0x3c00 },
    { "set.eq.bf16.bf16 %h, %ha, %hb;", 0x3f80, 0x3f80, 0, 0x3f80 },
    { "set.ge.u16.s16 %h, %ha, %hb;", 0xffff, 0, 0, 0 },
    { "set.le.s16.s16 %h, %ha, %hb;", 0xffff, 0, 0, 0xffff },
    { "set.lt.f16x2.f16x2 %r, %a, %b;", 0x3c003c00, 0x40003c00, 0, 0x3c000000 },
    { "set.eq.u32.f16x2 %r, %a, %b;", 0x3c003c00, 0x40003c00, 0, 0x0000ffff },
    { "set.neu.bf16x2.bf16x2 %r, %a, %b;", 0x7fc03f80, 0x7fc03f80, 0, 0x3f800000 },
    { "set.nan.f16x2.f16x2 %r, %a, %b;", 0x7e003c00, 0x3c003c00, 0, 0x3c000000 },
    { "set.ge.and.f16x2.f16x2 %r, %a, %b, %q;", 0x40004000, 0x3c003c00, 0, 0 },
    { "set.gt.ftz.f16x2.f16x2 %r, %a, %b;", 0x00010001, 0, 0, 0 },
    { "set.gt.f16x2.f16x2 %r, %a, %b;", 0x00010001, 0, 0, 0x3c003c00 },
    { "setp.gt.f16x2 %p|%q, %a, %b;", 0x3c004000, 0x3c003c00, 0, 1 },
    { "mov.pred %p, %q; setp.gt.f16x2 %q|%p, %a, %b;", 0x3c004000, 0x3c003c00, 0, 0 },
    { "selp.b32 %r, %a, %b, %p;", 1, 2, 0, 2 },
    { "selp.f32 %r, %a, %b, !%p;", 1, 2, 0, 1 },
    { "selp.b64 %l, %la, %lb, %p;", 1, 2, 0, 2 },
    { "slct.b32.s32 %r, %a, %b, %c;", 1, 2, 0xffffffff, 2 },
    { "slct.f32.f32 %r, %a, %b, %c;", 1, 2, MINUS, 1 },
    { "testp.notanumber.f32 %p, %a;", NAN32, 0, 0, 1 },
    { "testp.subnormal.f32 %p, %a;", 1, 0, 0, 1 },
    { "testp.finite.f64 %p, %la;", UINT64_C(0x7ff0000000000000), 0, 0, 0 },
    { "not.pred %p, %p;", 0, 0, 0, 1 },
    { "mov.pred %p, 1;", 0, 0, 0, 1 },
    { "or.pred %p, %p, !%q;", 0, 0, 0, 1 },
    { "xor.pred %p, %p, %q;", 0, 0, 0, 0 })

TEST_ROWS(moves_pack_and_unpack,
    { "mov.b32 %r, {%ha, %hb};", 0x1111, 0x2222, 0, 0x22221111 },
    { "mov.b64 %l, {%a, %b};", 0x11111111, 0x22222222, 0, UINT64_C(0x2222222211111111) },
    { "mov.b64 %l, {%ha, %hb, %hc, %ha};", 1, 2, 3, UINT64_C(0x0001000300020001) },
    { "mov.b32 {%h, %hc}, %a;", 0x22221111, 0, 0, 0x1111 },
    { "mov.b64 {_, %r}, %la;", UINT64_C(0x2222222211111111), 0, 0, 0x22222222 },
    { "mov.f32 %r, 0f3F800000;", 0, 0, 0, ONE },
    { "mov.f32 %r, 1.5;", 0, 0, 0, 0x3fc00000 },
    { "mov.f32 %r, -0.25;", 0, 0, 0, 0xbe800000 },
    { "mov.f64 %l, 0d3ff0000000000000;", 0, 0, 0, UINT64_C(0x3ff0000000000000) },
    { "mov.b32 %r, 0b1011;", 0, 0, 0, 11 },
    { "mov.u32 %r, 017;", 0, 0, 0, 15 },
    { "mov.u32 %r, 0xffU;", 0, 0, 0, 255 },
    { "mov.u32 %r, WARP_SZ;", 0, 0, 0, 32 })
/* clang-format on */
