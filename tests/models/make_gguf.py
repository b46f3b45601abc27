#!/usr/bin/env python3
"""Writes the header of a real model's GGUF file: its keys, tensor names, sizes and types, without data.

    make_gguf.py [--sparse] MODEL FILE   MODEL is a name in MODELS or FURTHER_MODELS, e.g. llama_3.1_8b
    make_gguf.py [--sparse] --all FOLDER writes every model of MODELS as FOLDER/MODEL.gguf

Types are the choices of llama.cpp's quantizer for each tensor (Q4_K_M, Q5_K_M, Q8_0, Q4_0 and MXFP4_MOE, without an
importance matrix), or BF16 as its converter writes them. The tokenizer has only keys that affect the model's step, and
no tokens. --sparse extends the file to its real length by a hole, which takes no room on the disk and reads as zeros.
"""
import itertools
import math
import os
import struct
import sys

ALIGNMENT = 32
U32, I32, F32, BOOL, STRING, ARRAY = 4, 5, 6, 7, 8, 9
# Type number in the file, values per block, bytes per block.
TYPES = {
    "F32": (0, 1, 4),
    "F16": (1, 1, 2),
    "Q4_0": (2, 32, 18),
    "Q4_1": (3, 32, 20),
    "Q5_0": (6, 32, 22),
    "Q5_1": (7, 32, 24),
    "Q8_0": (8, 32, 34),
    "Q2_K": (10, 256, 84),
    "Q3_K": (11, 256, 110),
    "Q4_K": (12, 256, 144),
    "Q5_K": (13, 256, 176),
    "Q6_K": (14, 256, 210),
    "IQ2_XXS": (16, 256, 66),
    "IQ2_XS": (17, 256, 74),
    "IQ3_XXS": (18, 256, 98),
    "IQ1_S": (19, 256, 50),
    "IQ4_NL": (20, 32, 18),
    "IQ3_S": (21, 256, 110),
    "IQ2_S": (22, 256, 82),
    "IQ4_XS": (23, 256, 136),
    "IQ1_M": (29, 256, 56),
    "BF16": (30, 1, 2),
    "TQ1_0": (34, 256, 54),
    "TQ2_0": (35, 256, 66),
    "MXFP4": (39, 32, 17),
    "NVFP4": (40, 64, 36),
    "Q1_0": (41, 128, 18),
    "Q2_0": (42, 64, 18),
}
FILE_TYPES = {"Q4_0": 2, "Q8_0": 7, "Q4_K_M": 15, "Q5_K_M": 17, "BF16": 32, "MXFP4_MOE": 38}
# Norms before attention and feed-forward, as some files name them; norms after them; and both.
PRE_NORMS = ("attn_norm", "post_attention_norm")
AFTER_NORMS = ("post_attention_norm", "post_ffw_norm")
ALL_NORMS = ("attn_norm", "ffn_norm", *AFTER_NORMS)
# The replacement for types whose super-blocks do not divide a row.
SHORT_ROWS = {"Q4_K": "Q5_0", "Q6_K": "Q8_0"}


def string(text):
    data = text.encode()
    return struct.pack("<Q", len(data)) + data


def key(name, value):
    kinds = {bool: (BOOL, "?"), int: (U32, "I"), float: (F32, "f")}
    if isinstance(value, str):
        return string(name) + struct.pack("<I", STRING) + string(value)
    if isinstance(value, list):
        kind, form = (I32, "i") if type(value[0]) is int else kinds[type(value[0])]
        return string(name) + struct.pack(f"<IIQ{len(value)}{form}", ARRAY, kind, len(value), *value)
    kind, form = kinds[type(value)]
    return string(name) + struct.pack(f"<I{form}", kind, value)


def header_of(keys, tensors):
    """Returns the header for keys and (name, sizes, type) of tensors, padded to the start of the data, and the number
    of data bytes.
    """
    offset, infos = 0, b""
    for name, ne, kind in tensors:
        number, values, size = TYPES[kind]
        assert ne[0] % values == 0, name
        infos += string(name) + struct.pack(f"<I{len(ne)}Q", len(ne), *ne) + struct.pack("<IQ", number, offset)
        offset += -(-math.prod(ne) // values * size // ALIGNMENT) * ALIGNMENT
    data = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(keys))
    data += b"".join(key(name, value) for name, value in keys.items()) + infos
    return data + bytes(-len(data) % ALIGNMENT), offset


def gets_more(layer, layers):
    """Returns True if the _M mixes store this layer's attn_v and ffn_down as Q6_K."""
    return layer < layers // 8 or layer >= 7 * layers // 8 or (layer - layers // 8) % 3 == 2


class Model:
    """Keys and tensors in the order of the file."""

    def __init__(self, architecture, mix, **keys):
        self.architecture, self.mix, self.tensors = architecture, mix, []
        self.base = {"Q4_K_M": "Q4_K", "Q5_K_M": "Q5_K"}.get(mix, mix)
        self.keys = {"general.architecture": architecture, "general.type": "model"}
        for name, value in keys.items():
            name = name.replace("__", ".")
            self.keys[name if name.startswith(("general.", "tokenizer.")) else f"{architecture}.{name}"] = value
        self.keys |= {"general.file_type": FILE_TYPES[mix], "general.quantization_version": 2}

    def get(self, name, fallback=None):
        return self.keys.get(f"{self.architecture}.{name}", fallback)

    def type_of(self, name, ne):
        chosen = self.chosen_type(name, ne)
        return chosen if ne[0] % TYPES[chosen][1] == 0 else SHORT_ROWS[chosen]

    def chosen_type(self, name, columns):
        """Returns the quantizer's choice, for columns that are whole blocks of every type."""
        part = name.split(".")[-2] if "." in name else name
        vectors = "ffn_gate_inp", "ssm_conv1d", "conv", "ssm_norm"
        if len(columns) == 1 or part in vectors or name.endswith((".bias", ".ssm_a", ".ssm_d")):
            return "F32"
        if self.mix == "MXFP4_MOE":
            return "MXFP4" if len(columns) == 3 else "Q8_0"
        if self.get("expert_count", 0) == 8 and part in ("attn_k", "attn_v"):
            return "Q8_0"
        if self.get("expert_count", 0) == 8 and part == "attn_output":
            return "Q5_K"
        is_mixed = self.mix.endswith("_M")
        if part == "per_layer_model_proj":
            return "BF16"
        if name in ("output.weight", "per_layer_token_embd.weight") or (name == "token_embd.weight" and self.is_tied):
            return self.mix if self.mix in ("Q8_0", "BF16") else "Q6_K"
        if is_mixed and part == "attn_qkv":
            return {"Q4_K": "Q5_K", "Q5_K": "Q6_K"}[self.base]
        if is_mixed and part in ("attn_v", "ffn_down", "ffn_down_exps", "ffn_down_shexp") and gets_more(*self.place(name)):
            return "Q6_K"
        return self.base

    def place(self, name):
        """Returns a tensor's layer and the number of layers. Of Gemma 4's attn_v only the layers that have one count."""
        if self.architecture != "gemma4" or not name.endswith("attn_v.weight"):
            return int(name.split(".")[1]), self.get("block_count")
        alike = [other for other, _ in self.tensors if other.endswith("attn_v.weight")]
        return alike.index(name), len(alike)

    def add(self, name, *ne):
        self.tensors.append((name, ne))

    def add_all(self, vocab, head, layer, tied, extra=()):
        """Adds all tensors: the embedding, `extra`, each layer's (`layer` yields them for a head size), the norm and
        the head.
        """
        self.is_tied = tied
        self.add("token_embd.weight", self.get("embedding_length"), vocab)
        for name, ne in extra:
            self.add(name, *ne)
        for i in range(self.get("block_count")):
            for name, *ne in layer(self, head):
                self.add(f"blk.{i}.{name}", *ne)
        self.add("output_norm.weight", self.get("embedding_length"))
        if not tied:
            self.add("output.weight", self.get("embedding_length"), vocab)
        return self

    def header(self):
        return header_of(self.keys, [(name, ne, self.type_of(name, ne)) for name, ne in self.tensors])


def dense_layer(model, head, norms=("attn_norm", "ffn_norm"), **attention):
    """Returns llama's layer, and the additions of other architectures."""
    for name in norms:
        yield name + ".weight", model.get("embedding_length")
    yield from softmax_attention(model, head, **attention)
    yield from dense_feed_forward(model)


def dense_feed_forward(model):
    n, ff = model.get("embedding_length"), model.get("feed_forward_length")
    yield "ffn_gate.weight", n, ff
    yield "ffn_up.weight", n, ff
    yield "ffn_down.weight", ff, n


def fused_layer(model, head):
    """Returns phi3's layer: q, k and v are one tensor, gate and up another."""
    n, ff = model.get("embedding_length"), model.get("feed_forward_length")
    q, kv = model.get("attention.head_count") * head, model.get("attention.head_count_kv") * head
    yield "attn_norm.weight", n
    yield "attn_qkv.weight", n, q + 2 * kv
    yield "attn_output.weight", q, n
    yield "ffn_norm.weight", n
    yield "ffn_up.weight", n, 2 * ff
    yield "ffn_down.weight", ff, n


def softmax_attention(model, head, bias=(), head_norm=False, row_norm=False, gate=False, own_gate=False):
    """Returns attention's tensors. bias names products with a bias. The gate is fused with q or a matrix of its own."""
    n = model.get("embedding_length")
    kv_heads = model.get("attention.head_count_kv")
    kv_heads = max(kv_heads) if isinstance(kv_heads, list) else kv_heads
    q, kv = model.get("attention.head_count") * head, kv_heads * head
    for name, rows in ("q", q), ("k", kv), ("v", kv):
        yield f"attn_{name}.weight", n, 2 * rows if gate and name == "q" else rows
        if name in bias:
            yield f"attn_{name}.bias", rows
        if (head_norm or row_norm) and name != "v":
            yield f"attn_{name}_norm.weight", rows if row_norm else head
    if own_gate:
        yield "attn_gate.weight", n, q
    yield "attn_output.weight", q, n
    if "output" in bias:
        yield "attn_output.bias", n


def latent_attention(model):
    n, heads, latent = (model.get(name) for name in (
        "embedding_length", "attention.head_count", "attention.kv_lora_rank"))
    split = model.get("attention.key_length_mla") is not None # files of 2024 have attn_kv_b
    rope, key, value = (model.get(name) for name in (
        "rope.dimension_count", "attention.key_length" + "_mla" * split, "attention.value_length" + "_mla" * split))
    rank = model.get("attention.q_lora_rank")
    if rank:
        yield "attn_q_a.weight", n, rank
        yield "attn_q_a_norm.weight", rank
        yield "attn_q_b.weight", rank, heads * key
    else:
        yield "attn_q.weight", n, heads * key
    yield "attn_kv_a_mqa.weight", n, latent + rope
    yield "attn_kv_a_norm.weight", latent
    if split:
        yield "attn_k_b.weight", key - rope, latent, heads
        yield "attn_v_b.weight", latent, value, heads
    else:
        yield "attn_kv_b.weight", latent, heads * (key - rope + value)
    yield "attn_output.weight", heads * value, n


def delta_net(model):
    n, inner, size, groups, heads = (model.get(name) for name in (
        "embedding_length", "ssm.inner_size", "ssm.state_size", "ssm.group_count", "ssm.time_step_rank"))
    channels = inner + 2 * groups * size
    yield "attn_qkv.weight", n, channels
    yield "attn_gate.weight", n, inner
    yield "ssm_conv1d.weight", 4, channels
    yield "ssm_dt.bias", heads
    yield "ssm_a", heads
    if model.architecture == "qwen3next":
        yield "ssm_ba.weight", n, 2 * heads
    else:
        yield "ssm_beta.weight", n, heads
        yield "ssm_alpha.weight", n, heads
    yield "ssm_norm.weight", size
    yield "ssm_out.weight", inner, n


def short_conv(model):
    n = model.get("embedding_length")
    yield "shortconv.conv.weight", model.get("shortconv.l_cache"), n
    yield "shortconv.in_proj.weight", n, 3 * n
    yield "shortconv.out_proj.weight", n, n


def mamba_2(model):
    n, inner, size, groups, heads = (model.get(name) for name in (
        "embedding_length", "ssm.inner_size", "ssm.state_size", "ssm.group_count", "ssm.time_step_rank"))
    channels = inner + 2 * groups * size
    yield "ssm_in.weight", n, inner + channels + heads
    yield "ssm_conv1d.weight", model.get("ssm.conv_kernel"), channels
    yield "ssm_conv1d.bias", channels
    yield "ssm_dt.bias", heads
    yield "ssm_a", 1, heads
    yield "ssm_d", 1, heads
    yield "ssm_norm.weight", inner // groups, groups
    yield "ssm_out.weight", inner, n


def experts(model, bias=False, shared=0, gate=False):
    n, count = model.get("embedding_length"), model.get("expert_count")
    ff = model.get("expert_feed_forward_length") or model.get("feed_forward_length")
    yield "ffn_gate_inp.weight", n, count
    if bias:
        yield "ffn_gate_inp.bias", count
    for name, columns, rows in ("gate", n, ff), ("up", n, ff), ("down", ff, n):
        yield f"ffn_{name}_exps.weight", columns, rows, count
        if bias:
            yield f"ffn_{name}_exps.bias", rows, count
        if shared:
            yield f"ffn_{name}_shexp.weight", shared if name == "down" else n, n if name == "down" else shared
    if gate:
        yield "ffn_gate_inp_shexp.weight", n


def further_tokens(model):
    """Returns the additional tensors of a layer that predicts further tokens."""
    n = model.get("embedding_length")
    yield "nextn.eh_proj.weight", 2 * n, n
    for name in "enorm", "hnorm", "shared_head_norm":
        yield f"nextn.{name}.weight", n


def layers_of_experts(model, head, **attention):
    yield "attn_norm.weight", model.get("embedding_length")
    yield from softmax_attention(model, head, **attention)
    yield "ffn_norm.weight", model.get("embedding_length")
    yield from experts(model)


def llama_3(name, mix, layers, columns, ff, heads, head=128, tied=False):
    return Model(
        "llama", mix, general__name=name, block_count=layers, context_length=131072,
        embedding_length=columns, feed_forward_length=ff, attention__head_count=heads, attention__head_count_kv=8,
        rope__freq_base=500000.0, attention__layer_norm_rms_epsilon=1e-5, vocab_size=128256, rope__dimension_count=head,
        tokenizer__ggml__model="gpt2", tokenizer__ggml__pre="llama-bpe", tokenizer__ggml__bos_token_id=128000,
        tokenizer__ggml__eos_token_id=128009,
    ).add_all(128256, head, dense_layer, tied, extra=[("rope_freqs.weight", (head // 2,))])


def llama_3_1_8b():
    return llama_3("Llama 3.1 8B Instruct", "Q4_K_M", 32, 4096, 14336, 32)


def llama_3_1_8b_q8_0():
    return llama_3("Llama 3.1 8B Instruct", "Q8_0", 32, 4096, 14336, 32)


def llama_3_1_70b():
    return llama_3("Llama 3.1 70B Instruct", "Q4_K_M", 80, 8192, 28672, 64)


def llama_3_1_405b():
    return llama_3("Llama 3.1 405B Instruct", "Q4_K_M", 126, 16384, 53248, 128)


def llama_3_2_1b():
    return llama_3("Llama 3.2 1B Instruct", "Q4_K_M", 16, 2048, 8192, 32, 64, tied=True)


def llama_3_2_1b_bf16():
    return llama_3("Llama 3.2 1B Instruct", "BF16", 16, 2048, 8192, 32, 64, tied=True)


def qwen2_5_7b():
    return Model(
        "qwen2", "Q5_K_M", general__name="Qwen2.5 7B Instruct", block_count=28, context_length=32768,
        embedding_length=3584, feed_forward_length=18944, attention__head_count=28, attention__head_count_kv=4,
        rope__freq_base=1000000.0, attention__layer_norm_rms_epsilon=1e-6, tokenizer__ggml__model="gpt2",
        tokenizer__ggml__pre="qwen2", tokenizer__ggml__bos_token_id=151643, tokenizer__ggml__eos_token_id=151645,
        tokenizer__ggml__add_bos_token=False,
    ).add_all(152064, 128, lambda model, head: dense_layer(model, head, bias="qkv"), tied=False)


def qwen3(name, mix, columns, ff, tied):
    return Model(
        "qwen3", mix, general__name=name, block_count=36, context_length=40960, embedding_length=columns,
        feed_forward_length=ff, attention__head_count=32, attention__head_count_kv=8, rope__freq_base=1000000.0,
        attention__layer_norm_rms_epsilon=1e-6, attention__key_length=128, attention__value_length=128,
        tokenizer__ggml__model="gpt2", tokenizer__ggml__pre="qwen2", tokenizer__ggml__bos_token_id=151643,
        tokenizer__ggml__eos_token_id=151645, tokenizer__ggml__add_bos_token=False,
    ).add_all(151936, 128, lambda model, head: dense_layer(model, head, head_norm=True), tied)


def qwen3_4b():
    return qwen3("Qwen3 4B", "Q8_0", 2560, 9728, tied=True)


def qwen3_8b():
    return qwen3("Qwen3 8B", "Q4_K_M", 4096, 12288, tied=False)


def gemma_3_12b():
    return Model(
        "gemma3", "Q4_0", general__name="Gemma 3 12b It", context_length=131072, embedding_length=3840, block_count=48,
        feed_forward_length=15360, attention__head_count=16, attention__layer_norm_rms_epsilon=1e-6,
        attention__key_length=256, attention__value_length=256, rope__freq_base=1000000.0,
        attention__sliding_window=1024, attention__head_count_kv=8, rope__scaling__type="linear",
        rope__scaling__factor=8.0, tokenizer__ggml__model="llama", tokenizer__ggml__pre="default",
        tokenizer__ggml__bos_token_id=2, tokenizer__ggml__eos_token_id=1, tokenizer__ggml__add_bos_token=True,
        tokenizer__ggml__add_space_prefix=False,
    ).add_all(262208, 256, lambda model, head: dense_layer(model, head, ALL_NORMS, head_norm=True), tied=True)


def gemma_4_layer(all_v=False, all_kv=False):
    """Returns the layers of Gemma 4. all_v: those without a window have attn_v; all_kv: the last ones have K and V."""
    seen = {"layers": 0}

    def layer(model, head):
        n, i = model.get("embedding_length"), seen["layers"]
        seen["layers"] += 1
        is_full, per_layer = not model.get("attention.sliding_window_pattern")[i], model.get("embedding_length_per_layer_input")
        head = head if is_full else model.get("attention.key_length_swa")
        kv, ff = (of[i] if isinstance(of, list) else of
                  for of in (model.get("attention.head_count_kv"), model.get("feed_forward_length")))
        q = model.get("attention.head_count") * head
        own = all_kv or i < model.get("block_count") - model.get("attention.shared_kv_layers")
        yield "attn_norm.weight", n
        yield "attn_q.weight", n, q
        yield "attn_q_norm.weight", head
        if own:
            yield "attn_k.weight", n, kv * head
            yield "attn_k_norm.weight", head
        if own and (all_v or not is_full):
            yield "attn_v.weight", n, kv * head
        yield "attn_output.weight", q, n
        yield "post_attention_norm.weight", n
        yield "ffn_norm.weight", n
        yield "ffn_gate.weight", n, ff
        yield "ffn_up.weight", n, ff
        yield "ffn_down.weight", ff, n
        count, rows = model.get("expert_count", 0), model.get("expert_feed_forward_length")
        if count:
            yield "ffn_gate_inp.scale", n
            yield "ffn_gate_inp.weight", n, count
            yield "pre_ffw_norm_2.weight", n
            yield "post_ffw_norm_1.weight", n
            yield "post_ffw_norm_2.weight", n
            yield "ffn_gate_up_exps.weight", n, 2 * rows, count
            yield "ffn_down_exps.weight", rows, n, count
            yield "ffn_down_exps.scale", count
        yield "post_ffw_norm.weight", n
        if per_layer:
            yield "inp_gate.weight", n, per_layer
            yield "proj.weight", per_layer, n
            yield "post_norm.weight", n
        yield "layer_output_scale.weight", 1

    return layer


def gemma_4(name, mix, layers, period, columns, ff, heads, kv, layer, context=262144, window=1024, shared=0, per_layer=0, **keys):
    windowed = [int(i % period < period - 1) for i in range(layers)]
    extra = [("rope_freqs.weight", (256,))]
    if per_layer:
        extra += [("per_layer_token_embd.weight", (per_layer * layers, 262144)),
                  ("per_layer_model_proj.weight", (columns, per_layer * layers)),
                  ("per_layer_proj_norm.weight", (per_layer,))]
    return Model(
        "gemma4", mix, general__name=name, block_count=layers, context_length=context, embedding_length=columns,
        feed_forward_length=ff, attention__head_count=heads,
        attention__head_count_kv=kv[0] if kv[0] == kv[1] else [kv[0] if of else kv[1] for of in windowed],
        attention__layer_norm_rms_epsilon=1e-6, attention__key_length=512, attention__value_length=512,
        attention__key_length_swa=256, attention__value_length_swa=256, attention__sliding_window=window,
        attention__sliding_window_pattern=windowed, attention__shared_kv_layers=shared, final_logit_softcapping=30.0,
        embedding_length_per_layer_input=per_layer, rope__freq_base=1000000.0, rope__freq_base_swa=10000.0,
        rope__dimension_count=512, rope__dimension_count_swa=256, tokenizer__ggml__model="gemma4",
        tokenizer__ggml__bos_token_id=2, tokenizer__ggml__eos_token_id=106, **keys,
    ).add_all(262144, 512, layer, tied=True, extra=extra)


def gemma_4_e2b():
    return gemma_4("Gemma 4 E2B It", "Q4_K_M", 35, 5, 1536, [6144] * 15 + [12288] * 20, 8, (1, 1),
                   gemma_4_layer(all_v=True, all_kv=True), 131072, 512, shared=20, per_layer=256)


def gemma_4_e4b():
    return gemma_4("Gemma 4 E4B It", "Q4_K_M", 42, 6, 2560, 10240, 8, (2, 2), gemma_4_layer(all_v=True), 131072, 512,
                   shared=18, per_layer=256)


def gemma_4_12b():
    return gemma_4("Gemma 4 12B It", "Q4_0", 48, 6, 3840, 15360, 16, (8, 1), gemma_4_layer())


def gemma_4_26b_a4b():
    return gemma_4("Gemma 4 26B A4B It", "Q4_K_M", 30, 6, 2816, 2112, 16, (8, 2), gemma_4_layer(), expert_count=128,
                   expert_used_count=8, expert_feed_forward_length=704)


def phi_4_mini():
    return Model(
        "phi3", "Q4_K_M", rope__scaling__attn_factor=1.190238, general__name="Phi 4 Mini Instruct",
        context_length=131072, rope__scaling__original_context_length=4096, embedding_length=3072,
        feed_forward_length=8192, block_count=32, attention__head_count=24, attention__head_count_kv=8,
        attention__layer_norm_rms_epsilon=1e-5, rope__dimension_count=96, rope__freq_base=10000.0,
        attention__sliding_window=262144, tokenizer__ggml__model="gpt2", tokenizer__ggml__pre="gpt-4o",
        tokenizer__ggml__bos_token_id=199999, tokenizer__ggml__eos_token_id=199999,
    ).add_all(200064, 128, fused_layer, tied=True,
              extra=[("rope_factors_long.weight", (48,)), ("rope_factors_short.weight", (48,))])


def phi_4():
    return Model(
        "phi3", "Q4_K_M", general__name="Phi 4", context_length=16384, rope__scaling__original_context_length=16384,
        embedding_length=5120, feed_forward_length=17920, block_count=40, attention__head_count=40,
        attention__head_count_kv=10, attention__layer_norm_rms_epsilon=1e-5, rope__dimension_count=128,
        rope__freq_base=250000.0, attention__sliding_window=0, tokenizer__ggml__model="gpt2",
        tokenizer__ggml__pre="dbrx", tokenizer__ggml__bos_token_id=100257, tokenizer__ggml__eos_token_id=100265,
    ).add_all(100352, 128, fused_layer, tied=False)


def mixtral_8x7b():
    return Model(
        "llama", "Q4_K_M", general__name="Mixtral 8x7B Instruct v0.1", block_count=32, context_length=32768,
        embedding_length=4096, feed_forward_length=14336, attention__head_count=32, attention__head_count_kv=8,
        rope__freq_base=1000000.0, attention__layer_norm_rms_epsilon=1e-5, expert_count=8, expert_used_count=2,
        vocab_size=32000, rope__dimension_count=128, tokenizer__ggml__model="llama", tokenizer__ggml__pre="default",
        tokenizer__ggml__bos_token_id=1, tokenizer__ggml__eos_token_id=2,
    ).add_all(32000, 128, layers_of_experts, tied=False)


def qwen3_moe(name, layers, columns, ff, heads, expert_ff):
    return Model(
        "qwen3moe", "Q4_K_M", general__name=name, block_count=layers, context_length=40960,
        embedding_length=columns, feed_forward_length=ff, attention__head_count=heads, attention__head_count_kv=4,
        rope__freq_base=1000000.0, attention__layer_norm_rms_epsilon=1e-6, expert_used_count=8,
        attention__key_length=128, attention__value_length=128, expert_count=128, expert_feed_forward_length=expert_ff,
        tokenizer__ggml__model="gpt2", tokenizer__ggml__pre="qwen2", tokenizer__ggml__bos_token_id=151643,
        tokenizer__ggml__eos_token_id=151645, tokenizer__ggml__add_bos_token=False,
    ).add_all(151936, 128, lambda model, head: layers_of_experts(model, head, head_norm=True), tied=False)


def qwen3_30b_a3b():
    return qwen3_moe("Qwen3 30B A3B", 48, 2048, 6144, 32, 768)


def qwen3_235b_a22b():
    return qwen3_moe("Qwen3 235B A22B", 94, 4096, 12288, 64, 1536)


def gpt_oss(name, layers, expert_count):
    def layer(model, head):
        yield "attn_norm.weight", model.get("embedding_length")
        yield from softmax_attention(model, head, bias=("q", "k", "v", "output"))
        yield "attn_sinks.weight", model.get("attention.head_count")
        yield "post_attention_norm.weight", model.get("embedding_length")
        yield from experts(model, bias=True)

    return Model(
        "gpt-oss", "MXFP4_MOE", general__name=name, block_count=layers, context_length=131072,
        embedding_length=2880, feed_forward_length=2880, attention__head_count=64, attention__head_count_kv=8,
        rope__freq_base=150000.0, attention__layer_norm_rms_epsilon=1e-5, expert_count=expert_count, expert_used_count=4,
        attention__key_length=64, attention__value_length=64, attention__sliding_window=128,
        expert_feed_forward_length=2880, rope__scaling__type="yarn", rope__scaling__factor=32.0,
        rope__scaling__original_context_length=4096, tokenizer__ggml__model="gpt2", tokenizer__ggml__pre="gpt-4o",
        tokenizer__ggml__bos_token_id=199998, tokenizer__ggml__eos_token_id=200002,
    ).add_all(201088, 64, layer, tied=False)


def gpt_oss_20b():
    return gpt_oss("Gpt Oss 20b", 24, 32)


def gpt_oss_120b():
    return gpt_oss("Gpt Oss 120b", 36, 128)


def deepseek_layer():
    """Returns a function that gives the layers' tensors in order: dense layers first."""
    seen = {"layers": 0}

    def layer(model, _):
        seen["layers"] += 1
        yield "attn_norm.weight", model.get("embedding_length")
        yield from latent_attention(model)
        yield "ffn_norm.weight", model.get("embedding_length")
        if seen["layers"] <= model.get("leading_dense_block_count"):
            yield from dense_feed_forward(model)
        else:
            yield from experts(model, shared=model.get("expert_shared_count") * model.get("expert_feed_forward_length"))
            if model.get("expert_gating_func") == 2:
                yield "exp_probs_b.bias", model.get("expert_count")

    return layer


def deepseek_v3():
    return Model(
        "deepseek2", "Q4_K_M", general__name="DeepSeek V3", block_count=61, context_length=163840,
        embedding_length=7168, feed_forward_length=18432, attention__head_count=128, attention__head_count_kv=1,
        rope__freq_base=10000.0, attention__layer_norm_rms_epsilon=1e-6, expert_used_count=8, expert_group_count=8,
        expert_group_used_count=4, expert_gating_func=2, leading_dense_block_count=3, vocab_size=129280,
        attention__q_lora_rank=1536, attention__kv_lora_rank=512, attention__key_length=576,
        attention__value_length=512, attention__key_length_mla=192, attention__value_length_mla=128,
        expert_feed_forward_length=2048, expert_count=256, expert_shared_count=1, expert_weights_scale=2.5,
        expert_weights_norm=True, rope__dimension_count=64, rope__scaling__type="yarn", rope__scaling__factor=40.0,
        rope__scaling__original_context_length=4096, rope__scaling__yarn_log_multiplier=0.1,
        tokenizer__ggml__model="gpt2", tokenizer__ggml__pre="deepseek-v3", tokenizer__ggml__bos_token_id=0,
        tokenizer__ggml__eos_token_id=1,
    ).add_all(129280, 0, deepseek_layer(), tied=False)


def deepseek_v2_lite(**attention):
    attention = attention or {
        "attention__head_count_kv": 1, "attention__key_length": 576, "attention__value_length": 512,
        "attention__key_length_mla": 192, "attention__value_length_mla": 128}
    return Model(
        "deepseek2", "Q4_K_M", general__name="DeepSeek V2 Lite Chat", block_count=27, context_length=163840,
        embedding_length=2048, feed_forward_length=10944, attention__head_count=16,
        rope__freq_base=10000.0, attention__layer_norm_rms_epsilon=1e-6, expert_used_count=6,
        leading_dense_block_count=1, vocab_size=102400, attention__kv_lora_rank=512, **attention,
        expert_feed_forward_length=1408, expert_count=64, expert_shared_count=2, expert_weights_scale=1.0,
        rope__dimension_count=64, rope__scaling__type="yarn", rope__scaling__factor=40.0,
        rope__scaling__original_context_length=4096, rope__scaling__yarn_log_multiplier=0.0707,
        tokenizer__ggml__model="gpt2", tokenizer__ggml__pre="deepseek-llm", tokenizer__ggml__bos_token_id=100000,
        tokenizer__ggml__eos_token_id=100001,
    ).add_all(102400, 0, deepseek_layer(), tied=False)


def deepseek_v2_lite_2024():
    return deepseek_v2_lite(
        attention__head_count_kv=16, attention__key_length=192, attention__value_length=128)


def qwen3_next_80b_a3b():
    seen = {"layers": 0}

    def layer(model, head):
        seen["layers"] += 1
        is_recurrent = seen["layers"] % model.get("full_attention_interval")
        yield "attn_norm.weight", model.get("embedding_length")
        yield from delta_net(model) if is_recurrent else softmax_attention(model, head, head_norm=True, gate=True)
        yield "post_attention_norm.weight", model.get("embedding_length")
        yield from experts(model, shared=model.get("expert_shared_feed_forward_length"), gate=True)

    return Model(
        "qwen3next", "Q4_K_M", general__name="Qwen3 Next 80B A3B Instruct", block_count=48, context_length=262144,
        embedding_length=2048, feed_forward_length=5120, attention__head_count=16, attention__head_count_kv=2,
        rope__freq_base=10000000.0, attention__layer_norm_rms_epsilon=1e-6, expert_used_count=10,
        attention__key_length=256, attention__value_length=256, expert_count=512, expert_feed_forward_length=512,
        expert_shared_feed_forward_length=512, ssm__conv_kernel=4, ssm__state_size=128, ssm__group_count=16,
        ssm__time_step_rank=32, ssm__inner_size=4096, full_attention_interval=4, rope__dimension_count=64,
        tokenizer__ggml__model="gpt2", tokenizer__ggml__pre="qwen2", tokenizer__ggml__bos_token_id=151643,
        tokenizer__ggml__eos_token_id=151645, tokenizer__ggml__add_bos_token=False,
    ).add_all(151936, 256, layer, tied=False)


def qwen3_5_27b():
    seen = {"layers": 0}

    def layer(model, head):
        n = model.get("embedding_length")
        seen["layers"] += 1
        predicts = seen["layers"] > model.get("block_count") - model.get("nextn_predict_layers")
        is_recurrent = not predicts and seen["layers"] % model.get("full_attention_interval")
        yield "attn_norm.weight", n
        yield from delta_net(model) if is_recurrent else softmax_attention(model, head, head_norm=True, gate=True)
        yield "post_attention_norm.weight", n
        yield from dense_feed_forward(model)
        if predicts:
            yield from further_tokens(model)

    return Model(
        "qwen35", "Q4_K_M", general__name="Qwen3.5 27B", block_count=65, context_length=262144, embedding_length=5120,
        feed_forward_length=17408, attention__head_count=24, attention__head_count_kv=4,
        rope__dimension_sections=[11, 11, 10, 0], rope__freq_base=10000000.0,
        attention__layer_norm_rms_epsilon=1e-6, attention__key_length=256, attention__value_length=256,
        ssm__conv_kernel=4, ssm__state_size=128, ssm__group_count=16, ssm__time_step_rank=48, ssm__inner_size=6144,
        full_attention_interval=4, rope__dimension_count=64, nextn_predict_layers=1,
        tokenizer__ggml__model="gpt2", tokenizer__ggml__pre="qwen35", tokenizer__ggml__eos_token_id=248046,
        tokenizer__ggml__add_bos_token=False,
    ).add_all(248320, 256, layer, tied=False)


def sigmoid_experts(norms, **attention):
    """Returns a function that gives the layers' tensors in order: dense layers first, then experts with a bias."""
    numbers = itertools.count()

    def layer(model, head):
        number = next(numbers)
        shared = model.get("expert_shared_count", 0) * model.get("expert_feed_forward_length")
        for name in norms:
            yield name + ".weight", model.get("embedding_length")
        yield from softmax_attention(model, head, **attention)
        if number < model.get("leading_dense_block_count", 0):
            yield from dense_feed_forward(model)
        else:
            yield from experts(model, shared=shared)
            yield "exp_probs_b.bias", model.get("expert_count")
        if number >= model.get("block_count") - model.get("nextn_predict_layers", 0):
            yield from further_tokens(model)

    return layer


def glm_4_5_air():
    return Model(
        "glm4moe", "Q4_K_M", general__name="GLM 4.5 Air", block_count=47, context_length=131072,
        embedding_length=4096, feed_forward_length=10944, attention__head_count=96, attention__head_count_kv=8,
        rope__freq_base=1000000.0, attention__layer_norm_rms_epsilon=1e-5, expert_used_count=8,
        attention__key_length=128, attention__value_length=128, rope__dimension_count=64, expert_count=128,
        expert_feed_forward_length=1408, expert_shared_count=1, leading_dense_block_count=1, expert_gating_func=2,
        expert_weights_scale=1.0, expert_weights_norm=True, nextn_predict_layers=1,
        tokenizer__ggml__model="gpt2", tokenizer__ggml__pre="glm4",
    ).add_all(151552, 128, sigmoid_experts(PRE_NORMS, bias="qkv"), tied=False)


def trinity_mini():
    return Model(
        "afmoe", "Q4_K_M", general__name="Trinity Mini", block_count=32, context_length=131072, embedding_length=2048,
        feed_forward_length=6144, attention__head_count=32, attention__head_count_kv=4, rope__freq_base=10000.0,
        attention__layer_norm_rms_epsilon=1e-5, expert_used_count=8, attention__key_length=128,
        attention__value_length=128, rope__dimension_count=128, expert_count=128, expert_feed_forward_length=1024,
        expert_shared_count=1, leading_dense_block_count=2, expert_gating_func=2, expert_weights_scale=2.826,
        expert_weights_norm=True, attention__sliding_window=2048, tokenizer__ggml__model="gpt2",
        tokenizer__ggml__pre="afmoe",
    ).add_all(200192, 128, sigmoid_experts(ALL_NORMS, head_norm=True, own_gate=True), tied=False)


def minimax_m2():
    return Model(
        "minimax-m2", "Q4_K_M", general__name="MiniMax M2", block_count=62, context_length=196608,
        embedding_length=3072, feed_forward_length=1536, attention__head_count=48, attention__head_count_kv=8,
        rope__freq_base=5000000.0, attention__layer_norm_rms_epsilon=1e-6, expert_used_count=8, expert_count=256,
        expert_gating_func=2, attention__key_length=128, attention__value_length=128, expert_feed_forward_length=1536,
        rope__dimension_count=64, tokenizer__ggml__model="gpt2", tokenizer__ggml__pre="minimax-m2",
    ).add_all(200064, 128, sigmoid_experts(("attn_norm", "ffn_norm"), row_norm=True), tied=False)


def olmo_3_7b():
    return Model(
        "olmo2", "Q4_K_M", general__name="Olmo 3 7B Instruct", block_count=32, context_length=65536,
        embedding_length=4096, feed_forward_length=11008, attention__head_count=32, attention__head_count_kv=32,
        rope__freq_base=500000.0, attention__layer_norm_rms_epsilon=1e-6, attention__sliding_window=4096,
        rope__scaling__type="yarn", rope__scaling__factor=8.0, rope__scaling__attn_factor=1.2079441,
        rope__scaling__original_context_length=8192, tokenizer__ggml__model="gpt2", tokenizer__ggml__pre="dbrx",
    ).add_all(100278, 128, lambda model, head: dense_layer(model, head, AFTER_NORMS, row_norm=True), tied=False)


def command_r7b():
    return Model(
        "cohere2", "Q4_K_M", general__name="C4Ai Command R7B 12 2024", block_count=32, context_length=8192,
        embedding_length=4096, feed_forward_length=14336, attention__head_count=32, attention__head_count_kv=8,
        rope__freq_base=50000.0, attention__layer_norm_epsilon=1e-5, attention__key_length=128,
        attention__value_length=128, logit_scale=0.25, attention__sliding_window=4096, vocab_size=256000,
        rope__dimension_count=128, rope__scaling__type="none", tokenizer__ggml__model="gpt2",
        tokenizer__ggml__pre="command-r",
    ).add_all(256000, 128, lambda model, head: dense_layer(model, head, ("attn_norm",)), tied=True)


def seed_oss_36b():
    return Model(
        "seed_oss", "Q4_K_M", general__name="Seed OSS 36B Instruct", block_count=64, context_length=524288,
        embedding_length=5120, feed_forward_length=27648, attention__head_count=80, attention__head_count_kv=8,
        rope__freq_base=10000000.0, attention__layer_norm_rms_epsilon=1e-6, attention__key_length=128,
        attention__value_length=128, tokenizer__ggml__model="gpt2", tokenizer__ggml__pre="seed-coder",
    ).add_all(155136, 128, lambda model, head: dense_layer(model, head, PRE_NORMS, bias="qkv"), tied=False)


def smollm3_3b():
    return Model(
        "smollm3", "Q4_K_M", general__name="SmolLM3 3B", block_count=36, context_length=65536, embedding_length=2048,
        feed_forward_length=11008, attention__head_count=16, attention__head_count_kv=4, rope__freq_base=5000000.0,
        attention__layer_norm_rms_epsilon=1e-6, vocab_size=128256, rope__dimension_count=128,
        tokenizer__ggml__model="gpt2", tokenizer__ggml__pre="smaug-bpe",
    ).add_all(128256, 128, dense_layer, tied=True)


def exaone_4_32b():
    return Model(
        "exaone4", "Q4_K_M", general__name="EXAONE 4.0 32B", block_count=64, context_length=131072,
        embedding_length=5120, feed_forward_length=27392, attention__head_count=40, attention__head_count_kv=8,
        rope__freq_base=1000000.0, attention__layer_norm_rms_epsilon=1e-5, attention__key_length=128,
        attention__value_length=128, attention__sliding_window=4096,
        attention__sliding_window_pattern=[layer % 4 < 3 for layer in range(64)], rope__dimension_count=128,
        tokenizer__ggml__model="gpt2", tokenizer__ggml__pre="exaone4",
    ).add_all(102400, 128, lambda model, head: dense_layer(model, head, AFTER_NORMS, head_norm=True), tied=False,
              extra=[("rope_freqs.weight", (64,))])


def lfm2_8b_a1b():
    kv_heads = [8 if layer in (2, 6, 10, 14, 18, 21) else 0 for layer in range(24)]
    numbers = iter(range(24))

    def layer(model, head):
        number, n = next(numbers), model.get("embedding_length")
        yield "attn_norm.weight", n
        yield from softmax_attention(model, head, head_norm=True) if kv_heads[number] else short_conv(model)
        yield "ffn_norm.weight", n
        if number < model.get("leading_dense_block_count"):
            yield from dense_feed_forward(model)
        else:
            yield from experts(model)
            yield "exp_probs_b.bias", model.get("expert_count")

    model = Model(
        "lfm2moe", "Q4_K_M", general__name="LFM2 8B A1B", block_count=24, context_length=128000, embedding_length=2048,
        feed_forward_length=7168, attention__head_count=32, attention__head_count_kv=kv_heads,
        rope__freq_base=1000000.0, attention__layer_norm_rms_epsilon=1e-5, expert_count=32, expert_used_count=4,
        expert_feed_forward_length=1792, leading_dense_block_count=2, expert_gating_func=2, shortconv__l_cache=3,
        vocab_size=65536, tokenizer__ggml__model="gpt2", tokenizer__ggml__pre="lfm2", tokenizer__ggml__bos_token_id=1,
        tokenizer__ggml__eos_token_id=7,
    ).add_all(65536, 64, layer, tied=True)
    model.tensors = [("token_embd_norm.weight" if name == "output_norm.weight" else name, ne)
                     for name, ne in model.tensors]
    return model


def nemotron_h_8b():
    pattern = "M-M-M-M*-M-M-M-M-M*-M-M-M-M-M*-M-M-M-M-M*-M-M-M-M-M-"
    branches = iter(pattern)

    def layer(model, head):
        branch, n, ff = next(branches), model.get("embedding_length"), max(model.get("feed_forward_length"))
        yield "attn_norm.weight", n
        if branch == "M":
            yield from mamba_2(model)
        elif branch == "*":
            yield from softmax_attention(model, head)
        else:
            yield "ffn_up.weight", n, ff
            yield "ffn_down.weight", ff, n

    return Model(
        "nemotron_h", "Q4_K_M", general__name="Nemotron H 8B Base 8K", block_count=len(pattern), context_length=8192,
        embedding_length=4096, feed_forward_length=[21504 * (branch == "-") for branch in pattern],
        attention__head_count=32, attention__head_count_kv=[8 * (branch == "*") for branch in pattern],
        attention__layer_norm_epsilon=1e-5, attention__layer_norm_rms_epsilon=1e-5, attention__key_length=128,
        attention__value_length=128, ssm__conv_kernel=4, ssm__inner_size=8192, ssm__state_size=128,
        ssm__time_step_rank=128, ssm__group_count=8, vocab_size=131072, tokenizer__ggml__model="gpt2",
        tokenizer__ggml__pre="tekken",
    ).add_all(131072, 128, layer, tied=False)


MODELS = {
    "llama_3.1_8b": llama_3_1_8b,
    "llama_3.1_8b_q8_0": llama_3_1_8b_q8_0,
    "llama_3.1_70b": llama_3_1_70b,
    "llama_3.1_405b": llama_3_1_405b,
    "llama_3.2_1b": llama_3_2_1b,
    "llama_3.2_1b_bf16": llama_3_2_1b_bf16,
    "qwen2.5_7b": qwen2_5_7b,
    "qwen3_4b": qwen3_4b,
    "qwen3_8b": qwen3_8b,
    "gemma_3_12b": gemma_3_12b,
    "gemma_4_e2b": gemma_4_e2b,
    "gemma_4_e4b": gemma_4_e4b,
    "gemma_4_12b": gemma_4_12b,
    "gemma_4_26b_a4b": gemma_4_26b_a4b,
    "phi_4": phi_4,
    "phi_4_mini": phi_4_mini,
    "mixtral_8x7b": mixtral_8x7b,
    "qwen3_30b_a3b": qwen3_30b_a3b,
    "qwen3_235b_a22b": qwen3_235b_a22b,
    "gpt_oss_20b": gpt_oss_20b,
    "gpt_oss_120b": gpt_oss_120b,
    "deepseek_v2_lite": deepseek_v2_lite,
    "deepseek_v2_lite_2024": deepseek_v2_lite_2024,
    "deepseek_v3": deepseek_v3,
    "qwen3_next_80b_a3b": qwen3_next_80b_a3b,
    "qwen3.5_27b": qwen3_5_27b,
    "command_r7b": command_r7b,
    "glm_4.5_air": glm_4_5_air,
    "lfm2_8b_a1b": lfm2_8b_a1b,
    "nemotron_h_8b": nemotron_h_8b,
}
# Models that --all leaves out.
FURTHER_MODELS = {
    "exaone_4.0_32b": exaone_4_32b,
    "minimax_m2": minimax_m2,
    "olmo_3_7b": olmo_3_7b,
    "seed_oss_36b": seed_oss_36b,
    "smollm3_3b": smollm3_3b,
    "trinity_mini": trinity_mini,
}


def write(name, path, is_sparse):
    header, data = (MODELS | FURTHER_MODELS)[name]().header()
    with open(path, "wb") as file:
        file.write(header)
    if is_sparse:
        os.truncate(path, len(header) + data)


def main(words):
    is_sparse = "--sparse" in words
    words = [word for word in words if word != "--sparse"]
    if len(words) == 2 and words[0] == "--all":
        for name in MODELS:
            write(name, os.path.join(words[1], name + ".gguf"), is_sparse)
    elif len(words) == 2 and words[0] in MODELS | FURTHER_MODELS:
        write(*words, is_sparse)
    else:
        sys.exit(__doc__)


if __name__ == "__main__":
    main(sys.argv[1:])
