#!/bin/sh
# Tests --from-gguf: the spec on standard output and one line on standard error, split and truncated files, the effect
# of options, and that an error leaves standard output empty.
#
#     from_gguf.sh SOURCE_ROOT     with PTXGEN and PTXGEN_REAL_HEADERS set
set -u
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
llama=$PTXGEN_REAL_HEADERS/llama_3.1_8b.gguf
failed=0

fail() {
    echo "FAILED: $1"
    failed=1
}

# wanted STATUS ARGUMENT...: runs ptxgen and checks its exit status.
wanted() {
    status=$1
    shift
    "$PTXGEN" "$@" >"$scratch/out" 2>"$scratch/err"
    found=$?
    [ $found -eq "$status" ] || { cat "$scratch/err"; fail "$*: status $found, not $status"; }
    [ "$status" -eq 0 ] || [ ! -s "$scratch/out" ] || fail "$*: something on standard output"
}

# line TEXT: the spec has this line.
line() {
    grep -qxF -- "$1" "$scratch/out" || { cat "$scratch/out"; fail "no line '$1'"; }
}

# said TEXT: standard error is this line.
said() {
    [ "$(cat "$scratch/err")" = "$1" ] || { cat "$scratch/err"; fail "not said: $1"; }
}

wanted 0 --from-gguf "$llama"
said "ptxgen: llama, 32 layers, 4096 wide, 32/8 heads of 128, 292 tensors (q4_k 193, q6_k 33, f32 66)
ptxgen: targets sm_80, sm_86, sm_90 run on A100, RTX 30, Jetson Orin, RTX 40, H100, B200, B300, Jetson Thor, RTX 50, \
DGX Spark; not RTX 20 (sm_75)"
[ "$(head -n 1 "$scratch/out")" = "; The spec of llama_3.1_8b.gguf, written by ptxgen --from-gguf. From now on this \
is the source: edit it." ] || fail "the first line"
line "prefix  = model                         ; start of all names in the header"
line "targets = sm_80, sm_86, sm_90           ; GPU architectures; newer GPUs run them, too"
line "max_seq_len  = 8k                       ; KV-cache length in tokens; the model was trained for 128k"
line "rope_factors = tensor                   ; rope_freqs.weight"
line "weights.attn_v   = q6_k: 0..3, 6..24:3, 27..31"
cp "$scratch/out" "$scratch/spec.ini"

wanted 0 --from-gguf "$llama" --quiet
said ""
cmp "$scratch/out" "$scratch/spec.ini" || fail "the same file gives another spec"

# The spec's own keys have their tests elsewhere. Here they are only read.
"$PTXGEN" --spec "$scratch/spec.ini" --list >/dev/null 2>&1 && fail "--spec and --list go together"
sed 's/^hidden .*/hidden = 4000/' "$scratch/spec.ini" >"$scratch/edited.ini"
wanted 1 --spec "$scratch/edited.ini" --print-outputs
grep -q 'E014' "$scratch/err" || fail "4000 columns of q4_k"

wanted 0 --from-gguf "$llama" --targets sm_90,sm_100 --prefix mine --max-seq-len 32k --kv-type q8_0
line "prefix  = mine                          ; start of all names in the header"
line "targets = sm_90, sm_100                 ; GPU architectures; newer GPUs run them, too"
line "max_seq_len  = 32k                      ; KV-cache length in tokens; the model was trained for 128k"
line "kv_type      = q8_0                     ; type of the KV cache"
wanted 0 --from-gguf "$PTXGEN_REAL_HEADERS/phi_4_mini.gguf" --max-seq-len=4096
line "rope_factors   = short                  ; short factors up to max_seq_len = 4k, else long ones"

# Steps of prompts, also with experts, if all targets have the tensor cores for them.
line "m              = 1, 8, 256              ; tokens per step; each number makes a step"
wanted 0 --from-gguf "$PTXGEN_REAL_HEADERS/qwen3_30b_a3b.gguf"
line "m              = 1, 8, 256              ; tokens per step; each number makes a step"
cp "$scratch/out" "$scratch/spec.ini"
wanted 0 --spec "$scratch/spec.ini" --plan
grep -q 'mma_q8_expert_gate_up q4_k .* us  [a-z]' "$scratch/out" || { cat "$scratch/out"; fail "no time of experts"; }
wanted 0 --spec "$scratch/spec.ini" --plan --target sm_86,sm_90a # its shared memory has room for fewer stages
wanted 0 --from-gguf "$PTXGEN_REAL_HEADERS/qwen3_30b_a3b.gguf" --target sm_75,sm_80
line "m              = 1, 8                   ; tokens per step; each number makes a step"

# Downloads that stopped after the header, and inside it.
header=$(wc -c <"$llama")
head -c "$header" "$llama" >"$scratch/cut.gguf"
wanted 0 --from-gguf "$scratch/cut.gguf"
head -c 2000 "$llama" >"$scratch/cut.gguf"
wanted 1 --from-gguf "$scratch/cut.gguf"
grep -q "^$scratch/cut.gguf: error: .*E070" "$scratch/err" || { cat "$scratch/err"; fail "a cut header"; }

# Vocabularies that the starter engine cannot read do not prevent kernels.
maker=$(dirname "$0")/../models/make_small.py
python3 "$maker" --tokenizer t5 "$scratch/small.gguf" || fail "make_small.py"
wanted 0 --from-gguf "$scratch/small.gguf"
grep -q 'warning: tokenizer.ggml.model = t5 is not supported by the starter engine.*E074' "$scratch/err" ||
    { cat "$scratch/err"; fail "no warning of a tokenizer"; }
python3 "$maker" --tokenizer gpt2 --pre superbpe2 "$scratch/small.gguf"
wanted 0 --init engine --out "$scratch/engine" --from-gguf "$scratch/small.gguf"
grep -q 'warning: tokenizer.ggml.pre = superbpe2 is not supported' "$scratch/err" ||
    { cat "$scratch/err"; fail "no warning of a pre-tokenizer"; }
python3 "$maker" --tokenizer gpt2 --pre kimi-k2 "$scratch/small.gguf"
wanted 0 --from-gguf "$scratch/small.gguf"
grep -q warning "$scratch/err" && fail "a warning of kimi-k2"
python3 "$maker" --tokenizer gemma4 "$scratch/small.gguf"
wanted 0 --from-gguf "$scratch/small.gguf"
grep -q warning "$scratch/err" && fail "a warning of gemma4"

wanted 1 --from-gguf "$scratch/spec.ini"

# A file that cannot be read is not a wrong model: it is missing, a folder, a pipe, or a part is missing.
wanted 3 --from-gguf "$scratch/none.gguf"
mkdir "$scratch/folder.gguf"
wanted 3 --from-gguf "$scratch/folder.gguf"
mkfifo "$scratch/pipe.gguf"
wanted 3 --from-gguf "$scratch/pipe.gguf"
printf 'GGUF\3\0\0\0\0\0\0\0\0\0\0\0\2\0\0\0\0\0\0\0' >"$scratch/m-00001-of-00002.gguf"
printf '\13\0\0\0\0\0\0\0split.count\2\0\0\0\2\0\10\0\0\0\0\0\0\0split.no\2\0\0\0\0\0' \
    >>"$scratch/m-00001-of-00002.gguf"
wanted 3 --from-gguf "$scratch/m-00001-of-00002.gguf"
grep -q 'part 2 of 2 of the model: No such file' "$scratch/err" || { cat "$scratch/err"; fail "a missing part"; }
if [ "$(id -u)" != 0 ]; then
    cp "$llama" "$scratch/closed.gguf" && chmod 0 "$scratch/closed.gguf"
    wanted 3 --from-gguf "$scratch/closed.gguf"
fi
wanted 2 --from-gguf "$llama" --target sm_1
wanted 2 --from-gguf "$llama" --prefix 3x
wanted 2 --from-gguf "$llama" --out "$scratch"
said "ptxgen: --from-gguf prints a spec and excludes --out; write the kernels with --spec and --out
Try 'ptxgen --help'."
wanted 2 --from-gguf "$llama" --kv-type q4_0
said "ptxgen: --kv-type accepts f32, f16, bf16 or q8_0, not 'q4_0'
Try 'ptxgen --help'."
for number in 0 k M -1 16385k 17M 1Mk 1.5k 9999999999999999999999 2^70 ''; do
    wanted 2 --from-gguf "$llama" "--max-seq-len=$number"
done
for number in 1048576 1024k 1M 2^20; do
    wanted 0 --from-gguf "$llama" "--max-seq-len=$number"
    line "max_seq_len  = 1024k                    ; KV-cache length in tokens; the model was trained for 128k"
done
wanted 2 --list --kv-type f16
said "ptxgen: --max-seq-len and --kv-type need --from-gguf; in a spec, set max_seq_len and kv_type
Try 'ptxgen --help'."
exit $failed
