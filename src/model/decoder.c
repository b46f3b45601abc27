#include "model/decoder.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum {
#define SIZE(id, value) SIZE_##id,
#include "model/sizes.def"
#undef SIZE
};

const tensor_info tensor_infos[TENSOR_COUNT] = {
#define TENSOR(id, name, part, planes, rows, columns, kind) \
    { name,          PART_##part != PART_MODEL,             \
      PART_##part,   TENSOR_##kind,                         \
      SIZE_##planes, SIZE_##rows,                           \
      SIZE_##columns },
#include "model/tensors.def"
#undef TENSOR
};

int64_t decoder_kv_b_rows(const decoder *d, int64_t layer)
{
    return d->at[layer].head_dim - d->rope[0].dims + d->value_dim;
}

static uint64_t size_of(const decoder *d, int64_t layer, unsigned size)
{
    const decoder_layer *at = &d->at[layer];
    int64_t heads = at->num_heads, q = heads * at->head_dim, kv = at->num_kv_heads * at->head_dim;
    int64_t channels = (int64_t)decoder_channels(d);
    bool is_mamba = d->recurrence == RECURRENCE_MAMBA,
         is_mamba2 = d->recurrence == RECURRENCE_MAMBA2;
    int64_t groups = is_mamba2 && d->state_groups ? d->state_groups : 1;
    int64_t delta = d->delta_value_heads * d->delta_head_dim;
    int64_t inner = d->recurrence == RECURRENCE_DELTA ? delta : d->inner;
    const int64_t sizes[] = {
#define SIZE(id, value) value,
#include "model/sizes.def"
#undef SIZE
    };
    return (uint64_t)sizes[size];
}

bool decoder_has_part(const decoder *d, tensor_part part, int64_t layer)
{
    const decoder_layer *at = &d->at[layer];
    bool writes = at->attends && at->cache == layer;
    const bool has[] = {
        [PART_MODEL] = true,
        [PART_LAYER] = true,
        [PART_ATTENTION] = at->attends,
        [PART_KV] = writes,
        [PART_V] = writes && !at->v_from_k,
        [PART_RECURRENT] = at->recurs,
        [PART_FEED] = at->is_dense || at->is_routed,
        [PART_DENSE] = at->is_dense,
        [PART_EXPERTS] = at->is_routed,
        [PART_BESIDE] = at->is_dense && at->is_routed,
    };
    return has[part];
}

int64_t decoder_first_layer(const decoder *d, tensor_part part)
{
    for (int64_t layer = 0; layer < d->layers; layer++)
        if (decoder_has_part(d, part, layer))
            return layer;
    return -1;
}

bool decoder_has(const decoder *d, decoder_tensor t, int64_t layer)
{
    return d->has[t] && decoder_has_part(d, tensor_infos[t].part, layer);
}

static void add(decoder *d, bool there, const uint8_t *tensors)
{
    for (; *tensors != TENSOR_COUNT; tensors++)
        d->has[*tensors] = there;
}

void decoder_complete(decoder *d)
{
#define ADD(there, ...) add(d, there, (const uint8_t[]){ __VA_ARGS__, TENSOR_COUNT })
    bool tiled = d->delta_layout == DELTA_TILED, gated = !d->no_gates;
    bool attends = decoder_first_layer(d, PART_ATTENTION) >= 0;
    bool feeds = decoder_first_layer(d, PART_FEED) >= 0;
    bool dense = decoder_first_layer(d, PART_DENSE) >= 0;
    bool routed = decoder_first_layer(d, PART_EXPERTS) >= 0;
    bool separate = attends && !d->latent && !d->has[TENSOR_ATTN_QKV];
    bool recurs = decoder_first_layer(d, PART_RECURRENT) >= 0;
    bool delta = recurs && d->recurrence == RECURRENCE_DELTA;
    bool mamba = recurs && d->recurrence == RECURRENCE_MAMBA;
    bool mamba2 = recurs && d->recurrence == RECURRENCE_MAMBA2;
    d->state_groups = mamba2 ? d->state_groups : 0;
    for (decoder_layer *at = d->at; at < d->at + d->layers; at++) {
        if (!at->attends)
            at->num_heads = at->num_kv_heads = at->head_dim = at->cache = 0;
        at->ff = at->is_dense ? at->ff : 0;
    }
    d->embedded_layers = d->per_layer ? d->layers : 0;
    ADD(true, TENSOR_TOKEN_EMBD, TENSOR_OUTPUT_NORM);
    ADD(attends, TENSOR_ATTN_OUTPUT);
    ADD(!d->no_pre_norms, TENSOR_ATTN_NORM);
    ADD(feeds && !d->no_pre_norms && !d->parallel && !d->has[TENSOR_PRE_FFN_NORM], TENSOR_FFN_NORM);
    ADD(separate, TENSOR_ATTN_Q);
    ADD(separate, TENSOR_ATTN_K);
    ADD(separate && decoder_first_layer(d, PART_V) >= 0, TENSOR_ATTN_V);
    ADD(d->attention_gate >= ATTENTION_GATE_VALUES, TENSOR_ATTN_GATE);
    if (d->latent) {
        ADD(true, TENSOR_ATTN_KV_A, TENSOR_ATTN_KV_A_NORM);
        ADD(!d->has[TENSOR_ATTN_KV_B], TENSOR_ATTN_K_B, TENSOR_ATTN_V_B);
        ADD(d->q_rank, TENSOR_ATTN_Q_A, TENSOR_ATTN_Q_A_NORM, TENSOR_ATTN_Q_B);
        ADD(!d->q_rank, TENSOR_ATTN_Q);
    }
    ADD(delta || mamba || mamba2, TENSOR_SSM_CONV1D, TENSOR_SSM_DT, TENSOR_SSM_A, TENSOR_SSM_OUT);
    ADD(mamba || mamba2, TENSOR_SSM_IN, TENSOR_SSM_CONV1D_BIAS, TENSOR_SSM_D);
    ADD(mamba, TENSOR_SSM_X, TENSOR_SSM_DT_W);
    ADD(recurs && d->recurrence == RECURRENCE_SHORT_CONV, TENSOR_SHORTCONV_IN,
        TENSOR_SHORTCONV_CONV, TENSOR_SHORTCONV_OUT);
    ADD(delta, TENSOR_DELTA_QKV, TENSOR_DELTA_GATE);
    ADD(delta || (mamba2 && d->has[TENSOR_SSM_NORM]), TENSOR_SSM_NORM);
    ADD(delta && !tiled, TENSOR_SSM_BA);
    ADD(delta && tiled, TENSOR_SSM_BETA, TENSOR_SSM_ALPHA);
    ADD(dense && gated && !d->has[TENSOR_FFN_GATE_UP], TENSOR_FFN_GATE);
    ADD(dense && !d->has[TENSOR_FFN_GATE_UP], TENSOR_FFN_UP);
    ADD(dense, TENSOR_FFN_DOWN);
    ADD(routed, TENSOR_FFN_GATE_INP, TENSOR_FFN_DOWN_EXPS);
    ADD(routed && gated && !d->has[TENSOR_FFN_GATE_UP_EXPS], TENSOR_FFN_GATE_EXPS);
    ADD(routed && !d->has[TENSOR_FFN_GATE_UP_EXPS], TENSOR_FFN_UP_EXPS);
    ADD(d->shared_ff && gated, TENSOR_FFN_GATE_SHEXP);
    ADD(d->shared_ff, TENSOR_FFN_UP_SHEXP, TENSOR_FFN_DOWN_SHEXP);
    ADD(decoder_first_layer(d, PART_BESIDE) >= 0, TENSOR_PRE_FFW_NORM_2, TENSOR_POST_FFW_NORM_1,
        TENSOR_POST_FFW_NORM_2);
    ADD(d->per_layer, TENSOR_PER_LAYER_MODEL_PROJ, TENSOR_PER_LAYER_TOKEN_EMBD,
        TENSOR_PER_LAYER_PROJ_NORM, TENSOR_INP_GATE, TENSOR_PROJ, TENSOR_POST_NORM);
#undef ADD
}

decoder_tensor decoder_ffn_norm(const decoder *d)
{
    return d->has[TENSOR_PRE_FFN_NORM] ? TENSOR_PRE_FFN_NORM
           : d->has[TENSOR_FFN_NORM]   ? TENSOR_FFN_NORM
           : d->has[TENSOR_ATTN_NORM]  ? TENSOR_ATTN_NORM
                                       : TENSOR_COUNT;
}

void decoder_xielu(const decoder *d, int64_t layer, float numbers[XIELU_NUMBERS])
{
    const decoder_layer *at = &d->at[layer];
    numbers[XIELU_POSITIVE] = (float)log1p(exp(at->xielu_alpha_p));
    numbers[XIELU_NEGATIVE] = (float)(at->xielu_beta + log1p(exp(at->xielu_alpha_n)));
    numbers[XIELU_BETA] = (float)at->xielu_beta;
    numbers[XIELU_EPSILON] = (float)at->xielu_eps;
}

bool decoder_is_beside(const decoder *d, int64_t layer)
{
    return decoder_has_part(d, PART_BESIDE, layer);
}

decoder_tensor decoder_expert_norm(const decoder *d, int64_t layer)
{
    return decoder_is_beside(d, layer) ? TENSOR_PRE_FFW_NORM_2 : decoder_ffn_norm(d);
}

decoder_tensor decoder_last_norm(const decoder *d, int64_t layer)
{
    const decoder_layer *at = &d->at[layer];
    return d->per_layer                            ? TENSOR_POST_NORM
           : decoder_has_part(d, PART_FEED, layer) ? TENSOR_POST_FFW_NORM
           : at->attends && at->recurs             ? TENSOR_COUNT
                                                   : TENSOR_POST_ATTENTION_NORM;
}

rope_options decoder_rope(const decoder *d, int64_t layer)
{
    const decoder_layer *at = &d->at[layer];
    rope_options rope = d->rope[at->windowed != 0];
    if (at->unturned)
        rope.style = ROPE_NONE;
    return rope;
}

/* Returns the number of layers before a layer that have two slots. */
static int64_t with_two_slots(const decoder *d, int64_t layer)
{
    int64_t count = 0;
    for (int64_t l = 0; l < layer; l++)
        count += d->at[l].attends && d->at[l].recurs;
    return count;
}

int64_t decoder_slots(const decoder *d)
{
    return d->layers + with_two_slots(d, d->layers);
}

int64_t decoder_states_slot(const decoder *d, int64_t layer)
{
    return d->at[layer].attends ? d->layers + with_two_slots(d, layer) : layer;
}

uint64_t decoder_state_heads(const decoder *d)
{
    return (uint64_t)(d->recurrence == RECURRENCE_DELTA    ? d->delta_value_heads
                      : d->recurrence == RECURRENCE_MAMBA2 ? d->state_heads
                      : d->recurrence == RECURRENCE_MAMBA  ? d->inner
                                                           : 0); /* a convolution has inputs only */
}

uint64_t decoder_state_values(const decoder *d)
{
    return (uint64_t)(d->recurrence == RECURRENCE_DELTA ? d->delta_head_dim * d->delta_head_dim
                      : d->recurrence == RECURRENCE_MAMBA2
                          ? d->inner / d->state_heads * d->state_size
                      : d->recurrence == RECURRENCE_MAMBA ? d->state_size
                                                          : 0);
}

uint64_t decoder_channels(const decoder *d)
{
    int64_t delta_heads = 2 * d->delta_key_heads + d->delta_value_heads;
    return (uint64_t)(d->recurrence == RECURRENCE_DELTA        ? delta_heads * d->delta_head_dim
                      : d->recurrence == RECURRENCE_SHORT_CONV ? d->hidden
                      : d->recurrence == RECURRENCE_MAMBA2
                          ? d->inner + 2 * d->state_groups * d->state_size
                          : d->inner);
}

int64_t decoder_taps(const decoder *d)
{
    return d->recurrence == RECURRENCE_DELTA ? DELTA_CONV : d->conv_kernel;
}

int64_t decoder_window(const decoder *d, int64_t layer)
{
    return d->at[layer].windowed ? d->window : 0;
}

uint64_t decoder_planes(const decoder *d, decoder_tensor t, int64_t layer)
{
    return size_of(d, layer, tensor_infos[t].planes);
}

uint64_t decoder_rows(const decoder *d, decoder_tensor t, int64_t layer)
{
    return decoder_planes(d, t, layer) * size_of(d, layer, tensor_infos[t].rows);
}

uint64_t decoder_columns(const decoder *d, decoder_tensor t, int64_t layer)
{
    return size_of(d, layer, tensor_infos[t].columns);
}

static uint64_t most_of(const decoder *d, decoder_tensor t,
                        uint64_t (*size)(const decoder *d, decoder_tensor t, int64_t layer))
{
    uint64_t most = 0;
    for (int64_t layer = 0; layer < (tensor_infos[t].by_layer ? d->layers : 1); layer++)
        if (decoder_has(d, t, layer) && size(d, t, layer) > most)
            most = size(d, t, layer);
    return most;
}

uint64_t decoder_most_rows(const decoder *d, decoder_tensor t)
{
    return most_of(d, t, decoder_rows);
}

uint64_t decoder_most_columns(const decoder *d, decoder_tensor t)
{
    return most_of(d, t, decoder_columns);
}

format decoder_format(const decoder *d, decoder_tensor t, int64_t layer)
{
    return tensor_is_matrix(t) ? (format)d->formats[t][tensor_infos[t].by_layer ? layer : 0]
                               : FORMAT_F32;
}

/* Returns the tensor of the matrix's part with its name but another ending, or TENSOR_COUNT. */
static decoder_tensor find_sibling(decoder_tensor matrix, const char *ending)
{
    const tensor_info *of = &tensor_infos[matrix];
    size_t length = strcspn(of->name, ".");
    for (unsigned t = 0; t < TENSOR_COUNT; t++)
        if (tensor_infos[t].part == of->part &&
            strncmp(tensor_infos[t].name, of->name, length) == 0 &&
            strcmp(tensor_infos[t].name + length, ending) == 0)
            return (decoder_tensor)t;
    return TENSOR_COUNT;
}

decoder_tensor decoder_scale(decoder_tensor matrix)
{
    decoder_tensor found = find_sibling(matrix, ".scale");
    return found != TENSOR_COUNT && tensor_infos[found].kind == TENSOR_SCALE ? found : TENSOR_COUNT;
}

decoder_tensor decoder_bias(decoder_tensor matrix)
{
    return matrix == TENSOR_TOKEN_EMBD ? TENSOR_OUTPUT_BIAS : find_sibling(matrix, ".bias");
}

bool tensor_is_matrix(decoder_tensor t)
{
    return tensor_infos[t].kind == TENSOR_MATRIX || tensor_infos[t].kind == TENSOR_EXACT;
}

uint64_t decoder_bytes(const decoder *d, decoder_tensor t, int64_t layer)
{
    return decoder_rows(d, t, layer) *
           format_bytes(decoder_format(d, t, layer), decoder_columns(d, t, layer));
}

void decoder_tensor_name(const decoder *d, decoder_tensor t, int64_t layer, char name[DECODER_NAME])
{
    const char *own = tensor_infos[t].name;
    if (d->renamed[t])
        own = t == TENSOR_OUTPUT_NORM   ? "token_embd_norm.weight"
              : t == TENSOR_EXP_PROBS_B ? "exp_probs_b"
                                        : "ffn_norm";
    if (tensor_infos[t].by_layer)
        snprintf(name, DECODER_NAME, "blk.%lld.%s", (long long)layer, own);
    else
        snprintf(name, DECODER_NAME, "%s", own);
}

const char *tensor_word(arena *a, decoder_tensor t)
{
    const char *name = tensor_infos[t].name;
    const char *dot = strrchr(name, '.');
    return arena_copy(a, name, dot ? (size_t)(dot - name) : strlen(name));
}

bool decoder_is_prompt(int64_t m)
{
    return m > DECODER_FEW_ROWS;
}

int64_t decoder_logits_rows(const decoder *d, int64_t m)
{
    if (d->logits_rows)
        return d->logits_rows < m ? d->logits_rows : m;
    return d->all_logits ? m : 1;
}

/* Returns true if gate and up differ in format. A tensor-core kernel of both needs one format. */
static bool gates_differ(const decoder *d, decoder_tensor t, int64_t layer)
{
    static const uint8_t pairs[][2] = { { TENSOR_FFN_GATE, TENSOR_FFN_UP },
                                        { TENSOR_FFN_GATE_EXPS, TENSOR_FFN_UP_EXPS },
                                        { TENSOR_FFN_GATE_SHEXP, TENSOR_FFN_UP_SHEXP } };
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++)
        if (d->has[pairs[i][0]] && (t == pairs[i][0] || t == pairs[i][1]))
            return decoder_format(d, (decoder_tensor)pairs[i][0], layer) !=
                   decoder_format(d, (decoder_tensor)pairs[i][1], layer);
    return false;
}

/* An expert has few of a large step's rows. */
static bool format_takes_bytes(const decoder *d, int64_t m, format f, bool of_experts)
{
    int of = m <= DECODER_FEW_ROWS                  ? BYTES_FOR_FEW
             : m <= DECODER_BYTE_ROWS || of_experts ? BYTES_FOR_SOME
                                                    : BYTES_FOR_MANY;
    return formats[f].block_values > 1 && (d->bytes_for[f] & of);
}

bool decoder_takes_bytes(const decoder *d, int64_t m, decoder_tensor t, int64_t layer)
{
    enum { MOST = 3 };
    static const uint8_t together[][MOST] = {
        { TENSOR_ATTN_Q, TENSOR_ATTN_K, TENSOR_ATTN_V },
        { TENSOR_ATTN_Q, TENSOR_ATTN_Q_A, TENSOR_ATTN_KV_A },
        { TENSOR_DELTA_QKV, TENSOR_DELTA_GATE, TENSOR_DELTA_GATE },
        { TENSOR_SSM_BETA, TENSOR_SSM_ALPHA, TENSOR_SSM_ALPHA },
        { TENSOR_FFN_GATE_EXPS, TENSOR_FFN_UP_EXPS, TENSOR_FFN_DOWN_EXPS },
        { TENSOR_FFN_GATE_UP_EXPS, TENSOR_FFN_DOWN_EXPS, TENSOR_FFN_DOWN_EXPS },
    };
    bool of_experts = tensor_infos[t].planes == SIZE_EXPERTS;
    bool takes = !gates_differ(d, of_experts ? TENSOR_FFN_GATE_EXPS : t, layer) &&
                 format_takes_bytes(d, m, decoder_format(d, t, layer), of_experts);
    for (size_t i = 0; i < sizeof together / sizeof *together; i++)
        for (int j = 0; memchr(together[i], (int)t, MOST) && j < MOST; j++) {
            decoder_tensor other = (decoder_tensor)together[i][j];
            takes &= !decoder_has(d, other, layer) ||
                     format_takes_bytes(d, m, decoder_format(d, other, layer), of_experts);
        }
    return takes;
}

const char *decoder_lacks_prompts(const decoder *d)
{
    for (int64_t layer = 0; layer < d->layers; layer++)
        if (decoder_has(d, TENSOR_FFN_GATE_EXPS, layer) &&
            gates_differ(d, TENSOR_FFN_GATE_EXPS, layer))
            return "experts whose gate and up differ in format";
    return d->experts && d->precision == PRECISION_F32 ? "experts with precision = f32" : NULL;
}

decoder_rounding decoder_product_rounding(const decoder *d, int64_t m, decoder_tensor t,
                                          int64_t layer)
{
    if (t == TENSOR_OUTPUT || t == TENSOR_TOKEN_EMBD)
        m = decoder_logits_rows(d, m);
    bool prompt = decoder_is_prompt(m);
    /* With few rows one kernel computes ATTN_Q_B together with other exact products. */
    bool rounds = tensor_infos[t].kind == TENSOR_MATRIX || (t == TENSOR_ATTN_Q_B && prompt);
    if (d->precision == PRECISION_F32 || !rounds)
        return ROUNDS_NOTHING;
    if (prompt && !gates_differ(d, t, layer) && !decoder_takes_bytes(d, m, t, layer))
        return ROUNDS_TO_HALVES;
    return formats[decoder_format(d, t, layer)].block_values > 1 ? ROUNDS_TO_8_BITS
                                                                 : ROUNDS_NOTHING;
}
