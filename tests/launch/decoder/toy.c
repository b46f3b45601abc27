/* Writes the headers of two toy decoders. Their tokens depend on every word of state that the host
 * handles. All values are u32.
 *
 *   toy_embed    h[m] = w[token[m]]; nothing for an unused row
 *   toy_write    K[m][position[m]] = h[m], V[...] = h[m] ^ v
 *   toy_attend   h[m] = (sum over p < length[m] of (p + 1) K[m][p]) + w[length[m] % 4] V[m][0]
 *   toy_sample   logits[n] = n * h of the last row; token = h % n, or seed % n if a temperature
 *                is set; advances position and length
 *
 *     toy FOLDER        writes the headers and manifests of toy and ptxgen to FOLDER
 *
 * - toy has 70 layers, of which only the first and the last have launches, steps of 1 and 4 tokens,
 *   and two sequences. Its embeddings are in host memory.
 * - ptxgen is the same but samples a token for every row. Its prefix must not clash with the names
 *   of the header's own functions.
 */
#include <stdio.h>
#include <string.h>

#include "base/os.h"
#include "emit/emit.h"
#include "model/storey.h"
#include "model/plan/plan.h"
#include "model/decoder.h"
#include "ref/reference.h"

enum { VOCAB = 16, LAYERS = 70, POSITIONS = 24, SEQUENCES = 2, ROWS = 4 };
enum { USED = 2 }; /* number of layers with launches: the first and the last */

/* Defines a kernel with a thread per row. The number of rows is formatted into name and body. */
#define TOY_PTX(name, params, body)                                                         \
    ".version 6.3\n.target sm_75\n.address_size 64\n.visible .entry " name "(" params ")\n" \
    ".reqntid 32, 1, 1\n{\n"                                                                \
    ".reg .pred %%p<4>; .reg .b32 %%r<16>; .reg .b64 %%rd<16>;\n"                           \
    "mov.u32 %%r0, %%tid.x;\nsetp.ge.u32 %%p0, %%r0, %d;\n@%%p0 ret;\n" body "ret;\n}\n"

/* Computes the address of a row's u32 in an array. */
#define ROW_ADDRESS(to, param) \
    "ld.param.u64 " to ", [" param "];\nmad.wide.u32 " to ", %%r0, 4, " to ";\n"

/* Computes the address of the cache of a row's sequence in a pool. */
#define ROW_CACHE(to, param)           \
    ROW_ADDRESS("%%rd14", "sequences") \
    "ld.global.u32 %%r14, [%%rd14];\n" \
    "ld.param.u64 " to ", [" param "];\nmad.wide.u32 " to ", %%r14, 256, " to ";\n"

/* clang-format off */
static const char embed_ptx[] = TOY_PTX("toy_embed_m%d",
    ".param .u64 h, .param .u64 w, .param .u64 tokens, .param .u32 vocab",
    ROW_ADDRESS("%%rd1", "tokens")
    "ld.global.u32 %%r1, [%%rd1];\nld.param.u32 %%r2, [vocab];\n"
    "setp.ge.u32 %%p1, %%r1, %%r2;\n@%%p1 ret;\n"
    "ld.param.u64 %%rd2, [w];\nmad.wide.u32 %%rd2, %%r1, 4, %%rd2;\n"
    "ld.global.u32 %%r3, [%%rd2];\n"
    ROW_ADDRESS("%%rd3", "h")
    "st.global.u32 [%%rd3], %%r3;\n");

static const char write_ptx[] = TOY_PTX("toy_write_m%d",
    ".param .u64 k, .param .u64 v, .param .u64 w, .param .u64 h, .param .u64 positions, "
    ".param .u64 sequences",
    ROW_ADDRESS("%%rd1", "positions")
    "ld.global.u32 %%r1, [%%rd1];\nsetp.eq.u32 %%p1, %%r1, 0xffffffff;\n@%%p1 ret;\n"
    ROW_ADDRESS("%%rd2", "h")
    "ld.global.u32 %%r2, [%%rd2];\n"
    ROW_CACHE("%%rd4", "k") "mad.wide.u32 %%rd4, %%r1, 4, %%rd4;\n"
    "st.global.u32 [%%rd4], %%r2;\n"
    ROW_CACHE("%%rd6", "v") "mad.wide.u32 %%rd6, %%r1, 4, %%rd6;\n"
    "ld.param.u64 %%rd7, [w];\nld.global.u32 %%r3, [%%rd7];\n"
    "xor.b32 %%r2, %%r2, %%r3;\nst.global.u32 [%%rd6], %%r2;\n");

static const char attend_ptx[] = TOY_PTX("toy_attend_m%d",
    ".param .u64 h, .param .u64 k, .param .u64 v, .param .u64 w, .param .u64 lengths, "
    ".param .u64 sequences",
    ROW_ADDRESS("%%rd1", "lengths")
    "ld.global.u32 %%r1, [%%rd1];\nsetp.eq.u32 %%p1, %%r1, 0;\n@%%p1 ret;\n"
    ROW_CACHE("%%rd3", "k") "mov.u32 %%r2, 0;\nmov.u32 %%r3, 0;\n"
    "$position:\n"
    "ld.global.u32 %%r4, [%%rd3];\nadd.u64 %%rd3, %%rd3, 4;\n"
    "add.u32 %%r3, %%r3, 1;\nmad.lo.u32 %%r2, %%r3, %%r4, %%r2;\n"
    "setp.lt.u32 %%p2, %%r3, %%r1;\n@%%p2 bra $position;\n"
    "and.b32 %%r5, %%r1, 3;\n"
    "ld.param.u64 %%rd4, [w];\nmad.wide.u32 %%rd4, %%r5, 4, %%rd4;\n"
    "ld.global.u32 %%r6, [%%rd4];\n"
    ROW_CACHE("%%rd6", "v") "ld.global.u32 %%r7, [%%rd6];\n"
    "mad.lo.u32 %%r2, %%r6, %%r7, %%r2;\n"
    ROW_ADDRESS("%%rd7", "h")
    "st.global.u32 [%%rd7], %%r2;\n");

/* One thread per sampled row. */
static const char sample_ptx[] = TOY_PTX("toy_sample_m%d",
    ".param .u64 tokens, .param .u64 next_positions, .param .u64 lengths, .param .u64 logits, "
    ".param .u64 h, .param .u64 positions, .param .u64 sampling, .param .u64 sequences",
    ROW_ADDRESS("%%rd1", "positions")
    "ld.global.u32 %%r1, [%%rd1];\nsetp.eq.u32 %%p1, %%r1, 0xffffffff;\n@%%p1 ret;\n"
    ROW_ADDRESS("%%rd2", "h")
    "ld.global.u32 %%r2, [%%rd2];\n"
    "ld.param.u64 %%rd3, [logits];\nmad.wide.u32 %%rd3, %%r0, 64, %%rd3;\nmov.u32 %%r3, 0;\n"
    "$logit:\n"
    "mul.lo.u32 %%r4, %%r3, %%r2;\nst.global.u32 [%%rd3], %%r4;\n"
    "add.u64 %%rd3, %%rd3, 4;\nadd.u32 %%r3, %%r3, 1;\n"
    "setp.lt.u32 %%p2, %%r3, 16;\n@%%p2 bra $logit;\n"
    ROW_ADDRESS("%%rd14", "sequences")
    "ld.global.u32 %%r14, [%%rd14];\n"
    "ld.param.u64 %%rd4, [sampling];\nmad.wide.u32 %%rd4, %%r14, 32, %%rd4;\n"
    "ld.global.u32 %%r5, [%%rd4];\nld.global.u32 %%r6, [%%rd4+16];\n"
    "setp.ne.u32 %%p3, %%r5, 0;\nselp.b32 %%r2, %%r6, %%r2, %%p3;\nand.b32 %%r2, %%r2, 15;\n"
    ROW_ADDRESS("%%rd5", "tokens")
    "st.global.u32 [%%rd5], %%r2;\nadd.u32 %%r1, %%r1, 1;\n"
    ROW_ADDRESS("%%rd6", "next_positions")
    "st.global.u32 [%%rd6], %%r1;\nadd.u32 %%r1, %%r1, 1;\n"
    ROW_ADDRESS("%%rd7", "lengths")
    "st.global.u32 [%%rd7], %%r1;\n");
/* clang-format on */

#define KEY_ROWS_OF_A_STEP                                                                         \
    {                                                                                              \
        .name = "m", .summary = "", .field = KEY_FIELD(shape.m), .min = 1, .max = ROWS, .tag = "m" \
    }
#define TOY(id, ...)                                                                          \
    {                                                                                         \
        .name = "toy_" #id, .summary = "a kernel of a toy decoder", .computes = "h[m] = ...", \
        .keys = (const key[]){ KEY_ROWS_OF_A_STEP, KEY_END },                                 \
        .params = (const param[]){ __VA_ARGS__, PARAM_END }, .launch = {                      \
            .block = "32"                                                                     \
        }                                                                                     \
    }

enum { EMBED, WRITE, ATTEND, SAMPLE, FAMILIES };
static const family toys[FAMILIES] = {
    [EMBED] = TOY(embed, OUT(U32, h, "m", 4), IN(U32, w, "16", 4), IN(U32, tokens, "m", 4),
                  { .name = "vocab", .kind = PARAM_U32, .size = "vocab" }),
    [WRITE] = TOY(write, IN(U32, k, "2*64", 4), IN(U32, v, "2*64", 4), IN(U32, w, "1", 4),
                  IN(U32, h, "m", 4), IN(U32, positions, "m", 4), IN(U32, sequences, "m", 4)),
    [ATTEND] = TOY(attend, OUT(U32, h, "m", 4), IN(U32, k, "2*64", 4), IN(U32, v, "2*64", 4),
                   IN(U32, w, "4", 4), IN(U32, lengths, "m", 4), IN(U32, sequences, "m", 4)),
    [SAMPLE] =
        TOY(sample, OUT(U32, tokens, "m", 4), OUT(U32, next_positions, "m", 4),
            OUT(U32, lengths, "m", 4), OUT(U32, logits, "m*16", 4), IN(U32, h, "m", 4),
            IN(U32, positions, "m", 4), IN(U32, sampling, "2*8", 4), IN(U32, sequences, "m", 4)),
};
static const char *const texts[FAMILIES] = { embed_ptx, write_ptx, attend_ptx, sample_ptx };

/* Two kernels per family: for 1 row and for all rows. */
enum { KERNELS = 2 * FAMILIES, LAUNCHES = 2 + 2 * USED, TENSORS = 1 + 2 * USED };

typedef struct toy {
    arena *arena;
    instance instances[KERNELS];
    kernel kernels[KERNELS];
    plan_tensor tensors[TENSORS];
    plan_launch launches[2][LAUNCHES];
    plan_step steps[2];
    plan_cache caches[LAYERS][PLAN_CACHE_PARTS];
    plan_buffer h;
    decoder decoder;
    plan plan;
} toy;

static void make_kernels(toy *t)
{
    for (size_t i = 0; i < KERNELS; i++) {
        size_t which = i / 2;
        int m = i % 2 ? ROWS : 1;
        instance *in = &t->instances[i];
        *in = (instance){ .family = &toys[which], .shape = { .m = m } };
        in->name = arena_format(t->arena, "%s_m%d", toys[which].name, m);
        strbuf text = strbuf_new(t->arena);
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
        strbuf_format(&text, texts[which], m, m);
#pragma GCC diagnostic pop
        t->kernels[i] = (kernel){ .instance = in,
                                  .target = target_find("sm_75"),
                                  .newest = target_find("sm_75"),
                                  .isa = 63,
                                  .file = arena_format(t->arena, "toy.%s.sm_75.ptx", in->name),
                                  .ptx = text.text,
                                  .ptx_length = text.length };
    }
}

static void make_tensors(toy *t)
{
    for (size_t i = 0; i < TENSORS; i++) {
        plan_tensor *made = &t->tensors[i];
        size_t layer = i > 2 ? LAYERS - 1 : 0;
        *made = (plan_tensor){ .format = FORMAT_F32,
                               .rows = 1,
                               .columns = i == 0 ? VOCAB : 4,
                               .bytes = i == 0 ? VOCAB * 4 : 16,
                               .memory = i == 0 ? PLAN_HOST : PLAN_WEIGHTS,
                               .offset = i == 0 ? 0 : 256 * (i - 1) };
        made->name = i == 0       ? "token_embd.weight"
                     : i % 2 == 1 ? arena_format(t->arena, "blk.%zu.v.weight", layer)
                                  : arena_format(t->arena, "blk.%zu.o.weight", layer);
    }
}

static plan_argument at(plan_memory memory, uint64_t offset, const char *said)
{
    return (plan_argument){ .memory = memory, .offset = offset, .said = said };
}

static plan_argument weight(const toy *t, size_t tensor)
{
    return at(t->tensors[tensor].memory, t->tensors[tensor].offset, t->tensors[tensor].name);
}

static void make_step(toy *t, size_t index, bool all)
{
    const plan_state *s = &t->plan.state;
    unsigned m = index ? ROWS : 1;
    unsigned sampled = all ? m : 1, ahead = 4 * (m - sampled);
    plan_launch *l = t->launches[index];
    plan_argument h = at(PLAN_WORKSPACE, 256, "h");
    *l++ = (plan_launch){ .kernel = 2 * EMBED + index,
                          .layer = -1,
                          .arguments = { h,
                                         weight(t, 0),
                                         at(PLAN_STATE, s->tokens, "tokens"),
                                         { .is_number = true, .number = VOCAB } },
                          .argument_count = 4,
                          .said = "token_embd.weight[token] -> h" };
    for (size_t used = 0; used < USED; used++) {
        size_t layer = used ? LAYERS - 1 : 0;
        plan_argument k = at(PLAN_CACHE, t->caches[layer][0].offset, "K"),
                      v = at(PLAN_CACHE, t->caches[layer][1].offset, "V"),
                      sequences = at(PLAN_STATE, s->sequences, "sequences");
        *l++ = (plan_launch){ .kernel = 2 * WRITE + index,
                              .layer = (int64_t)layer,
                              .arguments = { k, v, weight(t, 1 + 2 * used), h,
                                             at(PLAN_STATE, s->positions, "positions"), sequences },
                              .argument_count = 6,
                              .said = "h -> cache" };
        *l++ = (plan_launch){ .kernel = 2 * ATTEND + index,
                              .layer = (int64_t)layer,
                              .arguments = { h, k, v, weight(t, 2 + 2 * used),
                                             at(PLAN_STATE, s->lengths, "lengths"), sequences },
                              .argument_count = 6,
                              .said = "cache[0..length) -> h" };
    }
    plan_argument last = h;
    last.offset += ahead;
    *l = (plan_launch){ .kernel = 2 * SAMPLE + (all ? index : 0),
                        .layer = LAYERS,
                        .arguments = { at(PLAN_STATE, s->tokens, "tokens"),
                                       at(PLAN_STATE, s->positions, "positions"),
                                       at(PLAN_STATE, s->lengths, "lengths"),
                                       at(PLAN_STATE, s->logits, "logits"), last,
                                       at(PLAN_STATE, s->positions + ahead, "positions"),
                                       at(PLAN_STATE, s->sampling, "sampling"),
                                       at(PLAN_STATE, s->sequences + ahead, "sequences") },
                        .argument_count = 8,
                        .said = "logits -> token, position, length" };
    t->steps[index] = (plan_step){ .m = m,
                                   .launches = t->launches[index],
                                   .launch_count = LAUNCHES,
                                   .layer_launches = 2,
                                   .buffers = &t->h,
                                   .buffer_count = 1,
                                   .logits_rows = all ? m : 1,
                                   .sampled_rows = all ? m : 1 };
}

static void make_plan(toy *t, bool all)
{
    t->decoder = (decoder){ .architecture = "toy",
                            .layers = LAYERS,
                            .hidden = 1,
                            .vocab = VOCAB,
                            .max_seq_len = POSITIONS,
                            .sequences = SEQUENCES,
                            .all_logits = all };
    t->plan = (plan){
        .decoder = &t->decoder,
        .rows = ROWS,
        .tensors = t->tensors,
        .tensor_count = TENSORS,
        .bytes = { [PLAN_WEIGHTS] = 256 * (TENSORS - 1),
                   [PLAN_CACHE] = 2 * LAYERS * SEQUENCES * 256,
                   [PLAN_STATE] = 1792,
                   [PLAN_WORKSPACE] = 512,
                   [PLAN_HOST] = 256 },
        .state = { .tokens = 0,
                   .positions = 256,
                   .lengths = 512,
                   .sequences = 768,
                   .pages = 1024,
                   .sampling = 1024,
                   .logits = 1280 },
        .caches = t->caches,
        .steps = t->steps,
        .step_count = 2,
        .kernels = t->instances,
        .kernel_count = KERNELS,
    };
    for (uint64_t i = 0; i < 2 * LAYERS; i++)
        t->caches[i / 2][i % 2] = (plan_cache){ SEQUENCES * 256 * i, 256, PLAN_CACHE };
    t->h = (plan_buffer){ .name = "h", .bytes = 4 * ROWS, .offset = 256 };
    make_step(t, 0, all);
    make_step(t, 1, all);
}

static bool write_files(arena *a, const char *folder, const char *prefix, bool all)
{
    toy t = { .arena = a };
    const target *const only[] = { target_find("sm_75") };
    make_kernels(&t);
    make_tensors(&t);
    make_plan(&t, all);
    kernel_set set = { .prefix = prefix,
                       .targets = only,
                       .target_count = 1,
                       .kernels = t.kernels,
                       .kernel_count = KERNELS,
                       .upper = &model_storey,
                       .plan = &t.plan };
    described_set d = describe_set(a, &set);
    strbuf header = strbuf_new(a), manifest = strbuf_new(a);
    emit_header(&header, &d);
    emit_manifest(&manifest, &d);
    const char *error, *stem = arena_format(a, "%s/%s_kernels", folder, prefix);
    return os_write_file(a, arena_format(a, "%s.h", stem), header.text, header.length, &error) &&
           os_write_file(a, arena_format(a, "%s.json", stem), manifest.text, manifest.length,
                         &error);
}

int main(int argc, char **argv)
{
    arena *a = arena_new();
    bool written = argc == 2 && write_files(a, argv[1], "toy", false) &&
                   write_files(a, argv[1], "ptxgen", true);
    arena_free(a);
    return written ? 0 : 1;
}
