/* Instructions that every lane does on its own: the LANE rows of emu_ops.def as loops over a warp,
 * which compilers turn into vector code. Inactive lanes are computed with the others and their
 * results dropped. */
#include "emu/machine.h"
#include "emu/run/halves.h"

#define WRITE(to, from, mask) \
    _Generic((from), lanes32 * : write_lanes32, lanes64 * : write_lanes64)(to, from, mask)

#define RUN(name) name(warp *w, const op *o, lane_mask mask)
#define BEGIN(R)                 \
    {                            \
        unsigned mods = o->mods; \
        lanes_of_##R result;     \
        (void)mods;              \
        for (int i = 0; i < WARP_LANES; i++) {
#define GET(n, T, x) T x = get_##T(source(w, o, n), i);
/* Repeats the fast path of WRITE: a function for plain vectors is not inlined for wider ones. */
#define END(R, value)                                        \
    put_##R(&result, i, (R)(value));                         \
    }                                                        \
    if (mask == ALL_LANES)                                   \
        memcpy(w->file + o->dst[0], &result, sizeof result); \
    else                                                     \
        WRITE(w->file + o->dst[0], &result, mask);           \
    }
#define BODY2(R, A, B, value)    BEGIN(R) GET(0, A, a) GET(1, B, b) END(R, value)
#define BODY3(R, A, B, C, value) BEGIN(R) GET(0, A, a) GET(1, B, b) GET(2, C, c) END(R, value)
#define BODY4(R, A, B, C, D, value) \
    BEGIN(R) GET(0, A, a) GET(1, B, b) GET(2, C, c) GET(3, D, d) END(R, value)

#define LANE1(name, pattern, R, A, value) void RUN(exec_##name) BEGIN(R) GET(0, A, a) END(R, value)
#define LANE2(name, pattern, ...)         void RUN(exec_##name) BODY2(__VA_ARGS__)
#define LANE3(name, pattern, ...)         void RUN(exec_##name) BODY3(__VA_ARGS__)
#define LANE4(name, pattern, ...)         void RUN(exec_##name) BODY4(__VA_ARGS__)

#if defined(__x86_64__) && defined(__GNUC__)
/* The plain vectors of the processor have no shift of each element by a number of its own, no
 * product of 32 bits, and no fma, which is a call per lane there. Hence what runs often is there
 * twice. */
#define WIDER __attribute__((target("avx2,fma"))) static void
#define OFTEN2(name, pattern, ...) \
    LANE2(name, pattern, __VA_ARGS__) WIDER RUN(wider_##name) BODY2(__VA_ARGS__)
#define OFTEN3(name, pattern, ...) \
    LANE3(name, pattern, __VA_ARGS__) WIDER RUN(wider_##name) BODY3(__VA_ARGS__)
#define OFTEN4(name, pattern, ...) \
    LANE4(name, pattern, __VA_ARGS__) WIDER RUN(wider_##name) BODY4(__VA_ARGS__)
#include "emu/emu_ops.def"

static const struct {
    op_exec *exec, *wider;
} twice[] = {
#define OFTEN2(name, ...) { exec_##name, wider_##name },
#define OFTEN3            OFTEN2
#define OFTEN4            OFTEN2
#include "emu/emu_ops.def"
};

op_exec *exec_lanes_here(op_exec *exec)
{
    bool wide = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    for (size_t i = 0; wide && i < sizeof twice / sizeof *twice; i++)
        if (twice[i].exec == exec)
            return twice[i].wider;
    return exec;
}
#else
#include "emu/emu_ops.def"

op_exec *exec_lanes_here(op_exec *exec)
{
    return exec;
}
#endif
