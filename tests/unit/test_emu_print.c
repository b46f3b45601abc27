/* Device printf: the output of a vprintf call with a format and arguments in memory. */
#include "test_emu_run.h"

typedef struct argument {
    unsigned size; /* 4 or 8; 0 ends the list */
    uint64_t bits;
} argument;

typedef struct row {
    const char *format;
    argument arguments[4];
    const char *printed;
    unsigned taken;
} row;

#define INT(value)           \
    {                        \
        4, (uint32_t)(value) \
    }
#define LONG(value)          \
    {                        \
        8, (uint64_t)(value) \
    }
#define ONE_HALF                        \
    {                                   \
        8, UINT64_C(0x3fe0000000000000) \
    }
#define MINUS_TEN                       \
    {                                   \
        8, UINT64_C(0xc024000000000000) \
    }

static const row rows[] = {
    { "nothing\n", { { 0, 0 } }, "nothing\n", 0 },
    { "%d %u", { INT(-5), INT(-5) }, "-5 4294967291", 2 },
    { "%i|%5d|%-5d|%05d", { INT(1), INT(2), INT(3), INT(-4) }, "1|    2|3    |-0004", 4 },
    { "%+d|% d|%.3d", { INT(1), INT(2), INT(3) }, "+1| 2|003", 3 },
    { "%ld %lu %lld", { LONG(-1), LONG(-1), LONG(1) }, "-1 18446744073709551615 1", 3 },
    { "%d then %lld", { INT(7), LONG(INT64_C(1) << 40) }, "7 then 1099511627776", 2 },
    { "%zu %hd %hhu", { LONG(9), INT(0x1ffff), INT(0x1ff) }, "9 -1 255", 3 },
    { "%x %#X %o %#llx",
      { INT(255), INT(255), INT(8), LONG(-1) },
      "ff 0XFF 10 0xffffffffffffffff",
      4 },
    { "%f %e %g %.1f",
      { ONE_HALF, MINUS_TEN, ONE_HALF, MINUS_TEN },
      "0.500000 -1.000000e+01 0.5 -10.0",
      4 },
    { "%8.3f|%-8G|%a", { ONE_HALF, MINUS_TEN, ONE_HALF }, "   0.500|-10     |0x1p-1", 3 },
    { "%c%c%%%5c", { INT('a'), INT('b'), INT('c') }, "ab%    c", 3 },
    { "%p", { LONG(0x1234) }, "0x1234", 1 },
    { "%s|%*d", { LONG(0), INT(4), INT(5) }, "(null)|   5", 3 },
    { "%k %d 100%", { INT(5) }, "%k 5 100%", 1 },
};

typedef struct heard {
    char text[4096];
    size_t length;
} heard;

static void hear(void *context, const char *text, size_t length)
{
    heard *h = context;
    memcpy(h->text + h->length, text, length);
    h->text[h->length += length] = '\0';
}

/* Writes a kernel that prints, and traps if vprintf's result is not the expected one. */
static void make_text(char *text, size_t room, const row *w)
{
    size_t at = (size_t)snprintf(text, room, "%s.global .align 1 .b8 format[%zu] = {", PTX_HEAD,
                                 strlen(w->format) + 1);
    for (const char *c = w->format; *c; c++)
        at += (size_t)snprintf(text + at, room - at, "%d, ", *c);
    at += (size_t)snprintf(text + at, room - at,
                           "0};\n.visible .entry k() {\n.local .align 8 .b8 a[64];\n"
                           ".reg .b64 %%l<4>; .reg .b32 %%r<2>; .reg .pred %%p<3>;\n"
                           "mov.u32 %%r1, %%tid.x; setp.ge.u32 %%p2, %%r1, 2; @%%p2 ret;\n");
    unsigned offset = 0;
    for (const argument *a = w->arguments; a < w->arguments + 4 && a->size; offset += a++->size) {
        offset = (offset + a->size - 1) / a->size * a->size;
        at += (size_t)snprintf(text + at, room - at, "st.local.b%u [a+%u], %lld;\n", 8 * a->size,
                               offset, (long long)a->bits);
    }
    snprintf(text + at, room - at,
             "{ .param .b64 p; .param .b64 q; .param .b32 r; mov.u64 %%l1, format;\n"
             "mov.u64 %%l2, a; cvta.local.u64 %%l2, %%l2; st.param.b64 [p], %%l1;\n"
             "st.param.b64 [q], %%l2; call.uni (r), vprintf, (p, q); ld.param.b32 %%r1, [r]; }\n"
             "setp.ne.u32 %%p1, %%r1, %u; @%%p1 trap; ret; }\n",
             w->taken);
}

TEST(device_printf_prints_like_printf_of_c)
{
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char text[4096], expected[256];
        arena *a = arena_new();
        emu_memory *m = emu_memory_new(NULL);
        emu_report report;
        heard h = { .length = 0 };
        make_text(text, sizeof text, &rows[i]);
        emu_launch_config config = { .module = emu_load(a, text, strlen(text), &report),
                                     .entry = "k",
                                     .grid = { 1, 1, 1 },
                                     .block = { 32, 1, 1 },
                                     .print = hear,
                                     .print_context = &h };
        if (!config.module || !emu_launch(m, &config, NULL, &report))
            fail_msg("'%s': line %u: %s\n%s", rows[i].format, report.line, report.message, text);
        snprintf(expected, sizeof expected, "%s%s", rows[i].printed, rows[i].printed);
        assert_string_equal(h.text, expected);
        config.print = NULL;
        assert_true(emu_launch(m, &config, NULL, &report));
        emu_memory_free(m);
        arena_free(a);
    }
}

TEST(an_invalid_format_pointer_is_a_fault)
{
    run r = { .text = KERNEL("mov.u64 %l1, 4096;\n{ .param .b64 p; .param .b64 q;\n"
                             "st.param.b64 [p], %l1; st.param.b64 [q], %l1;\n"
                             "call (_), vprintf, (p, q); }") };
    assert_false(run_kernel(&r));
    assert_int_equal(r.report.fault, EMU_OUT_OF_BOUNDS);
    assert_int_equal(r.report.line, BODY_LINE + 3);
}
