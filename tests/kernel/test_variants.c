/* A variant must use the instructions that its name promises; they are counted in the PTX. */
#include <string.h>

#include "test.h"
#include "kernel/suite.h"

/* The number of lines that contain a text. With these sizes, loop bodies are emitted once. */
typedef struct claim {
    const char *family, *keys, *text;
    unsigned least, most;
    const char *since;
} claim;

static const claim claims[] = {
    { "q4k_gemv", "k=1024 n=3", "ld.global.nc.u8", 4, 4, "byte loads" },
    { "coalesced_q4k_gemv", "k=1024 n=3", "ld.global.nc.v4.u32", 4, 4, "one lane loads a header" },
    { "coalesced_q4k_gemv", "k=1024 n=3", "shfl.sync.idx", 16, 16,
      "four words go to all other lanes" },
    { "coalesced_q4k_gemv", "k=1024 n=3", "ld.global.nc.u8", 0, 0, "nibbles come as words" },
    { "vectorized_q4k_gemv", "k=1024 n=3", "ld.global.nc.u32", 4, 4, "nibbles come as words" },
    { "vectorized_q4k_gemv", "k=1024 n=3", "ld.global.nc.u8", 0, 0, "nibbles come as words" },
    { "wide_q4k_gemv", "k=4096 n=3", ".reqntid 256,", 1, 1, "eight warps" },
    { "wide_q4k_gemv", "k=4096 n=3", "bar.sync", 1, 1, "merges their sums" },
    { "wide_q4k_gemv", "k=4096 n=3", "ld.global.nc.u8", 0, 0, "nibbles come as words" },
    { "tiled_q4k_gemv", "k=2048 n=3", "ld.global.nc.v4.f32", 4, 4, "x is loaded to be staged" },
    { "tiled_q4k_gemv", "k=2048 n=3", "ld.shared.v4.f32", 8, 8, "and read from shared memory" },
    { "tiled_q4k_gemv", "k=2048 n=3", ".extern .shared", 1, 1, "any k fits the launch" },
    { "chunked_tiled_q4k_gemv", "k=8192 n=3", "tile[8192]", 1, 1, "a chunk of x" },
    { "chunked_tiled_q4k_gemv", "k=8192 n=3", "bar.sync", 2, 2, "before and after staging" },
    { "dp4a_q4k_gemv", "k=512 n=3", "dp4a.", 8, 8, "four products, four sums" },
    { "dp4a_q4k_gemv", "k=512 n=3", "rcp.approx", 2, 2, "quantized here" },
    { "hw_dp4a_q4k_gemv", "k=4096 n=4 num_warps=4", "ld.global.nc.v2.u32", 4, 4,
      "16 threads a super-block, two rows" },
    { "hw_dp4a_q4k_gemv", "k=4096 n=4 num_warps=4", "ld.global.nc.b16", 4, 4,
      "the scales of x are loaded once for both rows" },
    { "hw_dp4a_q4k_gemv", "k=4096 n=4 num_warps=4", "dp4a.", 24, 24,
      "four sums of x serve both rows, four products each" },
    { "batched_hw_dp4a_q4k_gemv", "k=2048 n=4 m=8 num_warps=4", "ld.global.nc.v2.u32", 2, 2,
      "weights are loaded once for all vectors" },
    { "batched_hw_dp4a_q4k_gemv", "k=2048 n=4 m=8 num_warps=4", "and.b32", 12, 24,
      "and unpacked once" },
    { "batched_hw_dp4a_q4k_gemv", "k=2048 n=4 m=8 num_warps=4", "dp4a.", 96, 96,
      "four sums and eight products a vector" },
    { "inline_q8_dp4a_q4k_gemv", "k=2048 n=4 m=4 num_warps=4", "ld.global.nc.v2.u32", 2, 2,
      "weights are loaded once for all vectors" },
    { "inline_q8_dp4a_q4k_gemv", "k=2048 n=4 m=4 num_warps=4", "dp4a.", 48, 48,
      "four sums and eight products a vector" },
    { "inline_q8_dp4a_q4k_gemv", "k=2048 n=4 m=4 num_warps=4", "rcp.approx", 8, 8,
      "quantized here, once for two rows" },
    { "fused_fp32_q4k_gemv", "k=1024 n=4 m=4 num_warps=4", "ld.global.nc.u32", 2, 2,
      "weights are loaded once for all vectors" },
    { "fused_fp32_q4k_gemv", "k=1024 n=4 m=4 num_warps=4", "ld.global.nc.v4.f32", 8, 8,
      "and each vector once for two rows" },
    { "fused_fp32_q4k_gemv", "k=1024 n=4 m=4 num_warps=4", "dp4a.", 0, 0, "f32 throughout" },
    { "fused_gate_up_q4k_gemv", "k=2048 n=3", "ld.global.nc.v4.f32", 2, 2,
      "x is loaded once for both matrices" },
    { "fused_gate_up_q4k_gemv", "k=2048 n=3", "ld.global.nc.v4.u32", 2, 2, "a header each" },
    { "fused_gate_up_q4k_gemv", "k=2048 n=3", "ld.global.nc.u8", 0, 0, "nibbles come as words" },
    { "fused_rmsnorm_q4k_gemv", "k=2048 n=3", "st.global", 1, 1, "only y is written" },
    { "fused_rmsnorm_q4k_gemv", "k=2048 n=3", "st.shared.v4.f32", 2, 2, "x goes to shared memory" },
    { "fused_rmsnorm_q4k_gemv", "k=2048 n=3", "ld.global.nc.v4.f32", 4, 4,
      "x and gamma are loaded once, to be staged" },
    { "fused_rmsnorm_q4k_gemv", "k=2048 n=3", ".extern .shared", 1, 1, "any k fits the launch" },
    { "fused_kv_hw_dp4a_q4k_gemv", "k=2048 n=3 num_warps=4", "ld.global.nc.b16", 2, 2,
      "the scales of x are loaded once for both matrices" },
    { "fused_kv_hw_dp4a_q4k_gemv", "k=2048 n=3 num_warps=4", "dp4a.", 12, 12,
      "four sums of x serve both matrices, four products each" },
    { "fused_kv_hw_dp4a_q4k_gemv", "k=2048 n=3 num_warps=4", "st.global", 2, 2, "both outputs" },
    { "fused_gate_up_swiglu_hw_dp4a_q4k_gemv", "k=2048 n=3 num_warps=4", "dp4a.", 12, 12,
      "four sums of x serve both matrices, four products each" },
    { "fused_gate_up_swiglu_hw_dp4a_q4k_gemv", "k=2048 n=3 num_warps=4", "st.global", 1, 1,
      "gate and up stay in registers" },
    { "fused_gate_up_swiglu_hw_dp4a_q4k_gemv", "k=2048 n=3 num_warps=4", "ex2.approx", 1, 1,
      "silu is computed in place" },
    { "q8_0_gemv", "k=1024 n=3", "ld.global.nc.u16", 16, 16, "two halves for four weights" },
    { "q6k_gemv", "k=1024 n=3", "ld.global.nc.s8", 8, 8, "two scales a lane" },
    { "coalesced_q6k_gemv", "k=1024 n=3", "ld.global.nc.s8", 4, 4, "one scale a lane" },
    { "coalesced_q6k_gemv", "k=1024 n=3", "shfl.sync.idx", 8, 8, "two more from other lanes" },
    { "mwv_q6k_gemv", "k=4096 n=3 num_warps=4", "ld.global.nc.u16", 12, 12,
      "twelve bytes for sixteen weights, twice" },
    { "batched_q6k_gemv", "k=512 n=3 m=4", "ld.global.nc.u16", 6, 6, "weights are loaded once" },
    { "batched_q6k_gemv", "k=512 n=3 m=4", "ld.global.nc.v4.f32", 16, 16, "and x m times" },
    { "batched_q6k_gemv", "k=256 n=3 m=8", "ld.global.nc.u16", 4, 4, "weights are loaded once" },
    { "batched_q6k_gemv", "k=256 n=3 m=8", "ld.global.nc.v4.f32", 16, 16, "and x m times" },
    { "dp4a_q6k_gemv", "k=2048 n=3 num_warps=2", "dp4a.s32.s32", 8, 8, "a word a group" },
    { "dp4a_q6k_gemv", "k=2048 n=3 num_warps=2", "ld.global.nc.s8", 8, 8, "a scale a group" },
    { "hw_dp4a_q6k_gemv", "k=2048 n=3 num_warps=2", "dp4a.s32.s32", 8, 8, "a word a group" },
    { "hw_dp4a_q6k_gemv", "k=2048 n=3 num_warps=2", "ld.global.nc.u16", 12, 12,
      "upper bits are loaded once for four groups" },
    { "q4_0_gemv", "k=1024 n=3", "ld.global.nc.u32", 0, 0, "blocks are 2-byte aligned" },
    { "q5_0_gemv", "k=1024 n=3", "ld.global.nc.u32", 0, 0, "blocks are 2-byte aligned" },
    { "q8_0_gemv", "k=1024 n=3", "ld.global.nc.u32", 0, 0, "blocks are 2-byte aligned" },
    { "q6k_gemv", "k=1024 n=3", "ld.global.nc.u32", 0, 0, "blocks are 2-byte aligned" },
    { "mwv_q6k_gemv", "k=1024 n=3", "ld.global.nc.u32", 0, 0, "blocks are 2-byte aligned" },
};

static unsigned count_lines(const char *lines, const char *text)
{
    unsigned count = 0;
    for (const char *at = strstr(lines, text); at; at = strstr(at, text)) {
        count++;
        at += strcspn(at, "\n");
    }
    return count;
}

TEST(variants_are_what_their_names_say)
{
    for (size_t i = 0; i < sizeof claims / sizeof *claims; i++) {
        const claim *c = &claims[i];
        arena *a = arena_new();
        const family *f = family_find(families, c->family);
        instance in;
        if (!f || !suite_instance(a, f, c->keys, &in))
            fail_msg("no family %s with %s", c->family, c->keys);
        kernel k = suite_kernel(a, &in);
        unsigned count = count_lines(k.ptx, c->text);
        if (count < c->least || count > c->most)
            fail_msg("%s has %u lines with '%s', not %u to %u: %s", in.name, count, c->text,
                     c->least, c->most, c->since);
        arena_free(a);
    }
}
