/* Instructions that every lane does on its own: the LANE rows of emu_ops.def as loops over a warp,
 * which compilers turn into vector code. Inactive lanes are computed with the others and their
 * results dropped. */
#include "emu/exec.h"
#include "emu/halves.h"
#include "emu/machine.h"

#define WRITE(to, from, mask) \
    _Generic((from), lanes32 * : write_lanes32, lanes64 * : write_lanes64)(to, from, mask)

#define BEGIN(name, R)                                     \
    void exec_##name(warp *w, const op *o, lane_mask mask) \
    {                                                      \
        unsigned mods = o->mods;                           \
        lanes_of_##R result;                               \
        (void)mods;                                        \
        for (int i = 0; i < WARP_LANES; i++) {
#define GET(n, T, x) T x = get_##T(source(w, o, n), i);
#define END(R, value)                          \
    put_##R(&result, i, (R)(value));           \
    }                                          \
    WRITE(w->file + o->dst[0], &result, mask); \
    }

#define LANE1(name, pattern, R, A, value)    BEGIN(name, R) GET(0, A, a) END(R, value)
#define LANE2(name, pattern, R, A, B, value) BEGIN(name, R) GET(0, A, a) GET(1, B, b) END(R, value)
#define LANE3(name, pattern, R, A, B, C, value) \
    BEGIN(name, R) GET(0, A, a) GET(1, B, b) GET(2, C, c) END(R, value)
#define LANE4(name, pattern, R, A, B, C, D, value) \
    BEGIN(name, R) GET(0, A, a) GET(1, B, b) GET(2, C, c) GET(3, D, d) END(R, value)
#include "emu/emu_ops.def"

#if defined(__x86_64__) && defined(__GNUC__)
/* fmaf is a call per lane where the processor is not known to have the instruction. */
__attribute__((target("avx2,fma"))) static void exec_fma_f32_avx2(warp *w, const op *o,
                                                                  lane_mask mask)
{
    const lanes32 *a = source(w, o, 0), *b = source(w, o, 1), *c = source(w, o, 2);
    lanes32 result;
    for (int i = 0; i < WARP_LANES; i++)
        result.f32[i] = canonical(__builtin_fmaf(a->f32[i], b->f32[i], c->f32[i]));
    write_lanes32(w->file + o->dst[0], &result, mask);
}

op_exec *exec_lanes_here(op_exec *exec)
{
    bool has_fma = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    return exec == exec_fma_f32 && has_fma ? exec_fma_f32_avx2 : exec;
}
#else
op_exec *exec_lanes_here(op_exec *exec)
{
    return exec;
}
#endif
