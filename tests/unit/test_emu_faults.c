/* Every kind of fault, with the line, thread and message of its report. */
#include "test_arena.h"
#include "test_emu_bad.h"

/* clang-format off */
TEST_FAULTS(out_of_bounds_accesses_report_place_and_distance,
    { "add.u64 %l1, %in, 4096;\nld.global.u32 %r1, [%l1+8];", 1, 0, EMU_OUT_OF_BOUNDS,
      "4-byte global load at 0x1000140001008 is 8 bytes past the end of an allocation of 4096 bytes", 32 },
    { "mad.wide.u32 %l1, %t, 128, %in;\n\nld.global.v4.u32 {%r1,%r2,%r3,%r4}, [%l1+512];", 2, 28,
      EMU_OUT_OF_BOUNDS, "16-byte global load", 32 },
    { "ld.global.u32 %r1, [%in+-4];", 0, 0, EMU_OUT_OF_BOUNDS, "4 bytes before the start of an allocation", 32 },
    { "ld.global.u64 %l1, [%in+4092];", 0, 0, EMU_MISALIGNED, "is not aligned to 8 bytes", 32 },
    { "ld.global.u16 %r1, [%in+4095];", 0, 0, EMU_MISALIGNED, "", 32 },
    { "mad.wide.u32 %l1, %t, 4, %in;\nsetp.eq.u32 %p1, %t, 9;\n@%p1 add.u64 %l1, %l1, 2;\nld.global.u32 %r1, [%l1];", 3, 9,
      EMU_MISALIGNED, "4-byte global load", 32 },
    { "st.global.u32 [%out+6], %t;", 0, 0, EMU_MISALIGNED, "4-byte global store", 32 },
    { "ld.global.u32 %r1, [16];", 0, 0, EMU_OUT_OF_BOUNDS, "is in no allocation", 32 },
    { "mad.wide.u32 %l1, %t, 128, %in;\n\nprefetch.global.L2 [%l1+128];", 2, 31, EMU_OUT_OF_BOUNDS,
      "1-byte global prefetch at 0x1000140001000 is 0 bytes past the end of an allocation of 4096 bytes", 32 },
    { "prefetch.global.L2 [%in];\nprefetch.global.L1 [%out+1];\nprefetch.global.L2 [%in+-1];", 2, 0, EMU_OUT_OF_BOUNDS,
      "1 bytes before the start", 32 },
    { "mov.u64 %l1, 0; ld.u32 %r1, [%l1];", 0, 0, EMU_OUT_OF_BOUNDS, "", 32 },
    { "st.global.u32 [%in], %t;", 0, 0, EMU_READ_ONLY, "read-only", 32 },
    { "setp.gt.u32 %p1, %t, 4;\n@%p1 st.global.u32 [%in], %t;", 1, 5, EMU_READ_ONLY, "", 32 },
    { "atom.global.add.u32 %r1, [%in], 1;", 0, 0, EMU_READ_ONLY, "atomic", 32 },
    { "red.global.add.u32 [%out+8192], 1;", 0, 0, EMU_OUT_OF_BOUNDS, "0 bytes past the end of an allocation of 8192", 32 },
    { TILE "ld.shared.u32 %r1, [%r8+256];", 2, 0, EMU_OUT_OF_BOUNDS, "0 bytes past the end of 'tile' of 256 bytes", 32 },
    { TILE "st.shared.u32 [%r8+-8], %t;", 2, 0, EMU_OUT_OF_BOUNDS, "8 bytes before the start of 'tile'", 32 },
    { TILE "st.shared.u32 [0], %t;", 2, 0, EMU_OUT_OF_BOUNDS, "shared store at 0x0", 32 },
    { TILE "st.shared.u16 [%r8+1], 1;", 2, 0, EMU_MISALIGNED, "", 32 },
    { ".extern .shared .align 4 .b8 dyn[];\nst.shared.u32 [dyn], %t;", 1, 0, EMU_OUT_OF_BOUNDS, "'dyn' of 0 bytes", 32 },
    { ".local .align 4 .b8 l[8];\nmov.u32 %r1, l; st.local.u32 [%r1+8], %t;", 1, 0, EMU_OUT_OF_BOUNDS, "'l' of 8 bytes", 32 },
    { "ld.param.u32 %r1, [out+8];", 0, 0, EMU_OUT_OF_BOUNDS, "byte 8 of 'out' of 8 bytes", 32 },
    { "ld.param.u64 %l1, [in+4];", 0, 0, EMU_MISALIGNED, "", 32 })

TEST_FAULTS(reads_of_uninitialized_memory_are_found,
    { "setp.eq.u32 %p1, %t, 7;\n@%p1 bra $x;\nmov.u32 %r1, 1;\n$x:\nadd.u32 %r2, %r1, 1;", 4, 7,
      EMU_UNDEFINED_REGISTER, "register %r1 is read", 32 },
    { "add.u32 %r2, %r3, 1;", 0, 0, EMU_UNDEFINED_REGISTER, "%r3", 32 },
    { "@%p3 add.u32 %r2, %t, 1;", 0, 0, EMU_UNDEFINED_REGISTER, "%p3", 32 },
    { "setp.lt.u32 %p1, %t, 3;\n@%p1 mov.u32 %r1, 1;\n@!%p1 add.u32 %r2, %r1, 1;", 2, 3, EMU_UNDEFINED_REGISTER, "%r1", 32 },
    { "st.global.u32 [%slot], %r5;", 0, 0, EMU_UNDEFINED_REGISTER, "%r5", 32 },
    { TILE "ld.shared.u32 %r1, [%r8];", 2, 0, EMU_UNINITIALISED, "at byte 0 of 'tile' reads bytes that were never written", 32 },
    { TILE "setp.ne.u32 %p1, %t, 9;\n@%p1 st.shared.u32 [%r8], %t;\nld.shared.u32 %r1, [%r8];", 4, 9, EMU_UNINITIALISED, "byte 36", 32 },
    { TILE "st.shared.u8 [%r8], 1;\nld.shared.u16 %r1, [%r8];", 3, 0, EMU_UNINITIALISED, "", 32 },
    { TILE "atom.shared.add.u32 %r1, [tile], 1;", 2, 0, EMU_UNINITIALISED, "", 32 },
    { ".local .align 4 .b8 l[8];\nst.local.u8 [l], 1;\nld.local.u32 %r1, [l];", 2, 0, EMU_UNINITIALISED, "", 32 })

TEST_FAULTS(races_on_shared_memory_are_found_in_any_order,
    { TILE "st.shared.u32 [%r8], %t;\nxor.b32 %r1, %r8, 4;\nld.shared.u32 %r2, [%r1];", 4, 0, EMU_RACE,
      "4-byte shared load at byte 4 of 'tile', which thread 1 of the block wrote with no barrier in between", 32 },
    { TILE "st.shared.u32 [tile], %t;", 2, 1, EMU_RACE, "thread 0 of the block wrote", 32 },
    { TILE "st.shared.u32 [tile], 1;\nbar.sync 0;\nld.shared.u32 %r1, [tile];\nst.shared.u32 [tile], 1;", 5, 0,
      EMU_RACE, "which several threads read", 32 },
    { TILE "st.shared.u32 [%r8], %t;\nbar.sync 0;\nsub.u32 %r1, 63, %t;\nmad.lo.u32 %r1, %r1, 4, %r9;\nld.shared.u32 %r2, [%r1];\nst.shared.u32 [%r8], %r2;",
      6, 0, EMU_RACE, "thread 63 of the block wrote", 64 },
    { TILE "setp.ge.u32 %p1, %t, 32; and.b32 %r1, %t, 31; mad.lo.u32 %r1, %r1, 4, %r9;\n@%p1 bra $x;\nst.shared.u32 [%r1], %t;\n$x:\n@!%p1 bra $y;\nst.shared.u32 [%r1], %t;\n$y:",
      7, 32, EMU_RACE, "thread 0 of the block wrote", 64 },
    { TILE "mad.lo.u32 %r1, %t, 1, %r9;\nst.shared.u8 [%r1], 1;\nld.shared.u32 %r2, [tile];", 4, 0, EMU_RACE, "thread 1 of the block wrote", 32 },
    { TILE "setp.eq.u32 %p1, %t, 0;\n@%p1 st.shared.u32 [tile], 0;\nbar.warp.sync -1;\natom.shared.add.u32 %r1, [tile], 1;\n@%p1 ld.shared.u32 %r2, [tile];",
      6, 0, EMU_RACE, "thread 31 of the block wrote", 32 })

TEST_FAULTS(barriers_that_some_threads_never_reach_are_found,
    { "setp.lt.u32 %p1, %t, 32;\n@%p1 bra $x;\nbar.sync 0;\n$x:", 2, 32, EMU_BARRIER,
      "barrier 0 waits for 64 threads, but only 32 arrive: warp 0 has ended", 64 },
    { "setp.lt.u32 %p1, %t, 5;\n@%p1 bra $x;\nbar.sync 0;\n$x:", 2, 0, EMU_BARRIER,
      "reached by only lanes 0xffffffe0 of the warp's 0xffffffff", 32 },
    { "setp.eq.u32 %p1, %t, 5;\n@%p1 ret;\nbar.sync 0;", 2, 5, EMU_BARRIER, "this thread has ended", 32 },
    { "setp.lt.u32 %p1, %t, 32;\n@%p1 bra $x;\nbar.sync 0;\nbra $y;\n$x:\nbar.sync 1;\n$y:", 5, 0,
      EMU_BARRIER, "warp 1 waits at barrier 0 (line 16)", 64 },
    { "bar.sync 0, 64;", 0, 0, EMU_BARRIER, "waits for 64 threads, but the block has 32", 32 },
    { "bar.sync 0, 20;", 0, 0, EMU_BARRIER, "not a multiple of 32", 32 },
    { "add.u32 %r1, %t, 64;\nbar.sync %r1;", 1, 0, EMU_BARRIER, "barrier 64 does not exist", 32 },
    { "setp.lt.u32 %p1, %t, 32;\n@%p1 bra $x;\nbar.sync 0, 64;\nbra $y;\n$x:\nbar.sync 0, 32;\nbar.sync 0, 96;\n$y:",
      2, 32, EMU_BARRIER, "waits for 64 threads here, but for 96", 64 })

TEST_FAULTS(masks_with_absent_lanes_are_found,
    { "setp.lt.u32 %p1, %t, 16;\n@%p1 shfl.sync.bfly.b32 %r1, %t, 1, 31, 0xffffffff;\nbar.warp.sync -1;", 1, 0,
      EMU_INACTIVE_LANE, "member mask 0xffffffff names lane 16, which does not participate: it waits at line 16", 32 },
    /* a loop that some lanes leave, with a vote of all lanes in it */
    { "mov.u32 %r2, 0;\n$next: setp.ge.u32 %p1, %r2, %t;\n@%p1 bra $out;\nvote.sync.any.pred %p2, %p1, -1;\n"
      "add.u32 %r2, %r2, 1; bra $next;\n$out: vote.sync.any.pred %p2, %p1, -1;", 3, 1,
      EMU_INACTIVE_LANE, "lane 0, which does not participate: it waits at line 19", 32 },
    { "shfl.sync.idx.b32 %r1, %t, 0, 31, 0xfffffffe;", 0, 0, EMU_INACTIVE_LANE, "not in its own member mask", 32 },
    { "setp.lt.u32 %p1, %t, 16;\n@!%p1 bra $x;\nshfl.sync.idx.b32 %r1, %t, 20, 31, 0x0000ffff;\n$x:", 2, 0,
      EMU_INACTIVE_LANE, "reads from lane 20", 32 },
    { "shfl.sync.down.b32 %r1, %t, 1, 31, -1;", 0, 19, EMU_INACTIVE_LANE, "reads from lane 20", 20 })

TEST_FAULTS(a_kernel_that_hangs_or_traps_is_stopped,
    { "$loop:\nbra $loop;", 1, 0, EMU_LIMIT, "does not end", 32 },
    { "setp.eq.u32 %p1, %t, 3;\n@%p1 trap;", 1, 3, EMU_TRAP, "trap", 32 })

TEST_FAULTS(invalid_ptx_is_refused_at_its_line,
    { "// 3 \xb5s", 0, 0, EMU_SYNTAX, "byte 0xb5 is not allowed in PTX", 32 },
    { "\n/* caf\xc3\xa9 */", 1, 0, EMU_SYNTAX, "byte 0xc3 is not allowed in PTX", 32 },
    { "\v", 0, 0, EMU_SYNTAX, "unexpected byte 0x0b", 32 },
    { "frobnicate.u32 %r1, %t;", 0, 0, EMU_SYNTAX, "unknown instruction 'frobnicate.u32'", 32 },
    { "\nadd.q32 %r1, %t, 1;", 1, 0, EMU_SYNTAX, "'add.q32' is not a known form of add", 32 },
    { "add.rn.u32 %r1, %t, 1;", 0, 0, EMU_SYNTAX, "", 32 },
    { "add.u32 %r1, %t;", 0, 0, EMU_SYNTAX, "add has 2 operands; it needs 3", 32 },
    { "add.u32 %r1, %t, %l1;", 0, 0, EMU_SYNTAX, "add needs a .u32 here; %l1 is a .b64", 32 },
    { "add.u32 %f1, %t, 1;", 0, 0, EMU_SYNTAX, "%f1 is a .f32", 32 },
    { "add.f32 %f1, %f1, 1;", 0, 0, EMU_SYNTAX, "not the integer constant 1", 32 },
    { "add.u32 %r1, %t, 0f3f800000;", 0, 0, EMU_SYNTAX, "not a floating-point constant", 32 },
    { "add.u32 %r1, %t, 4294967296;", 0, 0, EMU_SYNTAX, "constant 4294967296 does not fit into a .u32", 32 },
    { "add.u32 %r1, %t, 99999999999999999999;", 0, 0, EMU_SYNTAX, "more than 64 bits", 32 },
    { "add.u32 5, %t, 1;", 0, 0, EMU_SYNTAX, "the result must be a register", 32 },
    { "add.u32 %r1, %nothing, 1;", 0, 0, EMU_SYNTAX, "'%nothing' is not declared", 32 },
    { "add.u32 %r99, %t, 1;", 0, 0, EMU_SYNTAX, "'%r99' is not declared", 32 },
    { "add.u32 %r01, %t, 1;", 0, 0, EMU_SYNTAX, "'%r01' is not declared", 32 },
    { "add.u32 %r1, %tid.x, 1;", 0, 0, EMU_SYNTAX, "add cannot read a special register; only mov and cvt can", 32 },
    { "bra $nowhere;", 0, 0, EMU_SYNTAX, "'$nowhere' is not declared", 32 },
    { "$a:\n$a:", 1, 0, EMU_SYNTAX, "'$a' is declared twice", 32 },
    { "cvt.f32.s32 %f1, %t;", 0, 0, EMU_SYNTAX, "needs a rounding modifier", 32 },
    { "cvt.rn.f64.f32 %d1, %f1;", 0, 0, EMU_SYNTAX, "exact", 32 },
    { "cvt.u32.f32 %r1, %f1;", 0, 0, EMU_SYNTAX, "needs .rni", 32 },
    { "setp.lo.s32 %p1, %t, 1;", 0, 0, EMU_SYNTAX, "does not exist for this type", 32 },
    { "setp.lt.b32 %p1, %t, 1;", 0, 0, EMU_SYNTAX, "", 32 },
    { "ld.global.v2.u32 {%r1, %r2, %r3}, [%in];", 0, 0, EMU_SYNTAX, "number of elements does not match", 32 },
    { "ld.global.v4.u64 {%l1, %l2, %l3, %l4}, [%in];", 0, 0, EMU_SYNTAX, "at most 128 bits", 32 },
    { "ld.global.u32 %h1, [%in];", 0, 0, EMU_SYNTAX, "", 32 },
    { "ld.global.u32 %r1, %in;", 0, 0, EMU_SYNTAX, "brackets", 32 },
    { "ld.global.u32 %r1, [out];", 0, 0, EMU_SYNTAX, "another state space", 32 },
    { "atom.global.add.s64 %l1, [%in], 1;", 0, 0, EMU_SYNTAX, "does not exist for this type", 32 },
    { "set.eq.ftz.u32.u32 %r1, %t, 1;", 0, 0, EMU_SYNTAX, "'.ftz' is not allowed with this type", 32 },
    { "setp.lt.ftz.f64 %p1, %d1, %d1;", 0, 0, EMU_SYNTAX, "'.ftz' is not allowed with this type", 32 },
    { "cvt.ftz.f64.f16 %d1, %h1;", 0, 0, EMU_SYNTAX, "'.ftz' is only allowed with .f32", 32 },
    { "cvt.rzi.relu.s32.f32 %r1, %f1;", 0, 0, EMU_SYNTAX, "'.relu' is only allowed from", 32 },
    { "ld.shared.nc.u32 %r1, [%r2];", 0, 0, EMU_SYNTAX, "'.nc' is only allowed with .global", 32 },
    { "ld.relaxed.global.u32 %r1, [%in];", 0, 0, EMU_SYNTAX, "needs a scope", 32 },
    { "st.gpu.global.u32 [%out], %t;", 0, 0, EMU_SYNTAX, "a scope is only allowed with", 32 },
    { "vote.sync.any.pred %p1|%p2, %p3, -1;", 0, 0, EMU_SYNTAX, "a second result", 32 },
    { "match.any.sync.b32 %r1|%p1, %t, -1;", 0, 0, EMU_SYNTAX, "a second result", 32 },
    { "setp.eq.u32 !%p1, %t, 1;", 0, 0, EMU_SYNTAX, "must be a predicate", 32 },
    { "add.f32.rn %f1, %f1, %f1;", 0, 0, EMU_SYNTAX, "not a known form of add", 32 },
    { "add.sat.u32 %r1, %t, 1;", 0, 0, EMU_SYNTAX, "not a known form of add", 32 },
    { "fma.f32 %f1, %f1, %f1, %f1;", 0, 0, EMU_SYNTAX, "not a known form of fma", 32 },
    { "min.xorsign.abs.f32 %f1, %f1, %f1;", 0, 0, EMU_SYNTAX, "not a known form of min", 32 },
    { "ld.global.L1::sometimes.u32 %r1, [%in];", 0, 0, EMU_SYNTAX, "not a known form of ld", 32 },
    { "ld.global.gpu.relaxed.sys.u32 %r1, [%in];", 0, 0, EMU_SYNTAX, "not a known form of ld", 32 },
    { "ld.u32.global %r1, [%in];", 0, 0, EMU_SYNTAX, "not a known form of ld", 32 },
    { "atom.add.global.add.u32 %r1, [%out], 1;", 0, 0, EMU_SYNTAX, "not a known form of atom", 32 },
    { "fence.gpu.acq_rel;", 0, 0, EMU_SYNTAX, "not a known form of fence", 32 },
    { "shfl.bfly.b32 %r1, %t, 1, 31;", 0, 0, EMU_SYNTAX, "not a known form of shfl", 32 },
    { "fence.proxy.tensormap::generic.release.gpu;", 0, 0, EMU_SYNTAX, "not a known form of fence", 32 },
    { "cp.async.cg.shared.global [%r1], [%in], 4;", 0, 0, EMU_SYNTAX, "with .cg the copy size must be 16 bytes", 32 },
    { "cp.async.ca.shared.global [%r1], [%in], 12;", 0, 0, EMU_SYNTAX, "4, 8 or 16 bytes", 32 },
    { "cp.async.bulk.tensor.1d.global.shared::cta.bulk_group;", 0, 0, EMU_SYNTAX, "not a known form of cp", 32 },
    { "tensormap.replace.tile.rank.shared::cta.b1024.b32 [%r1], 1;", 0, 0, EMU_SYNTAX, "unknown instruction 'tensormap.replace.tile.rank.shared::cta.b1024.b32'", 32 },
    { "mma.sync.aligned.m16n8k256.row.col.s32.b1.b1.s32.or.popc %r1, %r1, %r1;", 0, 0, EMU_SYNTAX, "not a known form of mma", 32 },
    { "atom.global.add.f16 %h1, [%out], %h1;", 0, 0, EMU_SYNTAX, "not a known form of atom", 32 },
    { ".extern .global .b32 elsewhere;", 0, 0, EMU_SYNTAX, "defined in another module", 32 },
    { "@%r1 bra $x; $x:", 0, 0, EMU_SYNTAX, "a guard must be a predicate register", 32 },
    { "call foo;", 0, 0, EMU_SYNTAX, "'foo' has no body in this module", 32 },
    { ".reg .q8 x;", 0, 0, EMU_SYNTAX, "expected a type before '.q8'", 32 },
    { "\n.reg .b64 %l30, %clock;", 1, 0, EMU_SYNTAX, "'%clock' cannot be declared: %clock is a special register", 32 },
    { ".reg .b32 %tid;", 0, 0, EMU_SYNTAX, "'%tid' cannot be declared: %tid.x is a special register", 32 },
    { ".reg .b32 %envreg<4>;", 0, 0, EMU_SYNTAX, "'%envreg' cannot be declared: %envreg1 is a special register", 32 },
    { ".reg .b32 %clock_, %clock<64>, %ti<9>, %clock<65>;", 0, 0, EMU_SYNTAX, "'%clock' cannot be declared: %clock64 is a special register", 32 },
    { ".shared .b8 huge[999999];", 0, 0, EMU_SYNTAX, "does not fit into shared memory", 32 },
    { ".local .b8 a[500000], b[500000];\n.local .b8 c[500000];", 1, 0, EMU_SYNTAX, "'c' does not fit into local memory", 32 },
    { ".shared .align 3 .b8 s[4];", 0, 0, EMU_SYNTAX, "not a power of two", 32 },
    { "mov.f32 %f1, 0f3f80;", 0, 0, EMU_SYNTAX, "8 hexadecimal digits", 32 },
    { "mov.f32 %f1, 0.1234567890123456789012345;", 0, 0, EMU_SYNTAX, "not exact", 32 },
    { "mov.u32 %r1, 1/0;", 0, 0, EMU_SYNTAX, "division by zero", 32 },
    { "mov.u32 %r1, 08;", 0, 0, EMU_SYNTAX, "'8' in a number", 32 },
    { "mov.u32 %r1, #;", 0, 0, EMU_SYNTAX, "expected a number before '#'", 32 },
    { "mov.u32 %r1, \x01;", 0, 0, EMU_SYNTAX, "byte 0x01", 32 },
    { "\n\n/* no end", 2, 0, EMU_SYNTAX, "unterminated comment", 32 })
/* clang-format on */

TEST(ordered_accesses_are_not_a_race)
{
    static const char *const good[] = {
        /* lanes of a warp with a bar.warp.sync in between */
        KERNEL(TILE "st.shared.u32 [%r8], %t; bar.warp.sync -1; xor.b32 %r1, %r8, 4;\n"
                    "ld.shared.u32 %r2, [%r1]; bar.warp.sync -1; st.shared.u32 [%r1], %r2;"),
        /* all lanes write the same value at once */
        KERNEL(TILE "st.shared.u32 [tile], 7; bar.warp.sync -1; ld.shared.u32 %r2, [tile];"),
        /* different lanes access different bytes of a word */
        KERNEL(TILE "add.u32 %r1, %r9, %t; st.shared.u8 [%r1], %t; ld.shared.u8 %r2, [%r1];"),
        /* atomic operations on the same word */
        KERNEL(TILE
               "setp.eq.u32 %p1, %t, 0; @%p1 st.shared.u32 [tile], 0; bar.sync 0;\n"
               "red.shared.add.u32 [tile], 1; atom.shared.add.u32 %r1, [tile], 1; bar.sync 0;\n"
               "ld.shared.u32 %r1, [tile];"),
        /* a thread's own accesses */
        KERNEL(TILE "st.shared.u32 [%r8], 1; ld.shared.u32 %r1, [%r8]; st.shared.u32 [%r8], %r1;"),
    };
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        run r = { .text = good[i] };
        run_well(&r);
    }
    run r = { .text = good[3], .threads = 1024, .blocks = 3 };
    run_well(&r);
}

ARENA_TEST(a_report_names_block_and_thread_in_three_dimensions)
{
    const char *text = PTX_HEAD ".visible .entry k() {\n.reg .b32 %r<9>; .reg .pred %p<3>;\n"
                                "mov.u32 %r1, %ctaid.y; mov.u32 %r2, %tid.z; mov.u32 %r3, %tid.x;\n"
                                "setp.eq.u32 %p1, %r1, 2; setp.eq.and.u32 %p1, %r2, 3, %p1; "
                                "setp.eq.and.u32 %p1, %r3, 1, %p1;\n"
                                "@%p1 trap;\nret; }";
    emu_memory *m = emu_memory_new(NULL);
    emu_report report;
    emu_launch_config config = { .module = emu_load(a, text, strlen(text), &report),
                                 .entry = "k",
                                 .grid = { 2, 3, 2 },
                                 .block = { 4, 4, 4 } };
    assert_non_null(config.module);
    assert_false(emu_launch(m, &config, NULL, &report));
    assert_int_equal(report.fault, EMU_TRAP);
    assert_int_equal(report.line, 8);
    const unsigned where[] = { report.block[0],  report.block[1],  report.block[2],
                               report.thread[0], report.thread[1], report.thread[2] };
    static const unsigned expected[] = { 0, 2, 0, 1, 0, 3 };
    assert_memory_equal(where, expected, sizeof expected);
    emu_memory_free(m);
}

ARENA_TEST(a_launch_that_does_not_fit_its_entry_is_refused)
{
    static const char text[] = PTX_HEAD
        ".visible .entry k(.param .u32 a) .reqntid 64 { ret; }\n"
        ".entry m() .maxntid 128 { .shared .b8 s[48000]; .reg .b32 r; mov.u32 r, s; ret; }";
    static const struct {
        const char *entry;
        unsigned grid, block;
        size_t params, dynamic;
        const char *message;
    } rows[] = {
        { "none", 1, 64, 1, 0, "no entry 'none'" },
        { "k", 1, 32, 1, 0, "'k' requires 64 x 1 x 1" },
        { "k", 0, 64, 1, 0, "grid dimension x is 0" },
        { "k", 1, 2000, 1, 0, "block dimension x is 2000" },
        { "k", 1, 64, 0, 0, "0 parameters given; 'k' has 1" },
        { "k", 1, 64, 1, 300000, "0 static + 300000 dynamic bytes of shared memory" },
        { "m", 1, 256, 0, 0, "'m' allows 128" },
        { "m", 1, 64, 0, 200000, "48000 static + 200000 dynamic bytes" },
    };
    emu_memory *m = emu_memory_new(NULL);
    uint32_t value = 0;
    const void *params[] = { &value };
    emu_report report;
    emu_module *module = emu_load(a, text, sizeof text - 1, &report);
    assert_non_null(module);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        emu_launch_config config = { .module = module,
                                     .entry = rows[i].entry,
                                     .grid = { rows[i].grid, 1, 1 },
                                     .block = { rows[i].block, 1, 1 },
                                     .params = params,
                                     .param_count = rows[i].params,
                                     .dynamic_shared = rows[i].dynamic };
        assert_false(emu_launch(m, &config, NULL, &report));
        assert_int_equal(report.fault, EMU_BAD_LAUNCH);
        if (!strstr(report.message, rows[i].message))
            fail_msg("'%s' does not contain '%s'", report.message, rows[i].message);
    }
    emu_entry_info info;
    assert_true(emu_entry(module, "m", &info));
    assert_int_equal(info.shared_bytes, 48000);
    assert_true(emu_entry(module, "k", &info));
    assert_int_equal(info.param_count, 1);
    assert_int_equal(info.param_bytes, 4);
    assert_int_equal(info.reqntid[0], 64);
    assert_false(emu_entry(module, "none", &info));
    emu_memory_free(m);
}

TEST(a_truncated_module_is_an_error_and_never_a_crash)
{
    static const char text[] =
        KERNEL(TILE "st.shared.u32 [%r8], (1+2)*-3; $x: @!%p1 bra $x; mov.b64 {%r1, _}, %l1;");
    const size_t entry = sizeof PTX_HEAD; /* the head without a kernel is a valid module */
    for (size_t length = entry; length + 4 < sizeof text; length++) {
        arena *a = arena_new();
        char *cut = arena_copy(a, text, length);
        emu_report report;
        if (emu_load(a, cut, length, &report))
            fail_msg("a module truncated at byte %zu is accepted", length);
        assert_int_equal(report.fault, EMU_SYNTAX);
        arena_free(a);
    }
}
