#!/bin/sh
# Checks that bench_step prints a row for each way to run a step, that bench_load prints its figures, and that programs
# can read both: steps.sh BENCH_STEP BENCH_LOAD MODEL
set -eu
bench_step=$1
bench_load=$2
model=$3
scratch=$(mktemp -d)
trap '[ $? = 0 ] || tail -n 60 "$scratch"/table "$scratch"/figures; rm -rf "$scratch"' EXIT
touch "$scratch/figures"

# Prints the first cells of rows, and all lines outside tables. Stops at a cell that should be a number.
read_table() {
    awk -F ' *[|] *' '
        /^[|] step or kernel/ { columns = NF; next }
        /^[|]---/ || /^# / || /^$/ { next }
        !/^[|]/ { print; next }
        {
            for (i = 3; i < columns - 2; i++)
                if ($i !~ /^([0-9]+([.][0-9]+)?)?$/ || NF != columns) { print "not a number: " $0; exit }
            if (!$6) { print "no time: " $0; exit }
            print $2
        }' "$1"
}

"$bench_step" --quick --prompts 20,99 --next --warps gate_up=4,8,5000 --early --without rope_kv_write --kernels \
    --repeat 2 --jobs 2 "$model" >"$scratch/table"
read_table "$scratch/table" | sed 's/_k[0-9].*\|_d[0-9].*\|_n[0-9].*//' >"$scratch/rows"
diff - "$scratch/rows" <<'END'
tiny, after 32 tokens:
step of 1
step of 1, no overlap
step of 1, not captured
step of 8
step of 8, no overlap
step of 8, not captured
prompt of 20
prompt of 20, no overlap
step of 1, next fetched
step of 1, next fetched, no overlap
step of 8, next fetched
step of 8, next fetched, no overlap
step of 1, gate_up early
step of 8, gate_up early
step of 1, gate_up of 8 warps
step of 1, gate_up of 8 warps, no overlap
step of 8, gate_up of 8 warps
step of 8, gate_up of 8 warps, no overlap
step of 1, gate_up of 8 warps, early
step of 8, gate_up of 8 warps, early
step of 1, without rope_kv_write
step of 1, without rope_kv_write, no overlap
step of 8, without rope_kv_write
step of 8, without rope_kv_write, no overlap
tiny, kernels of the step of 1, after 32 tokens:
embed_rows_q8_0
stream_qkv_q8_0
rope_kv_write
mma_flash_decoding
stream_gemv_q8_0
stream_gate_up_q8_0
stream_gemv_q8_0
stream_gemv_q8_0
sample
sum of the kernels
tiny, kernels of the step of 8, after 32 tokens:
stream_gemv_q8_0
sample
embed_rows_q8_0
stream_qkv_q8_0
rope_kv_write
mma_flash_decoding
stream_gemv_q8_0
stream_gate_up_q8_0
stream_gemv_q8_0
sum of the kernels
passed 1
END
head -n 1 "$scratch/table" | grep -q '^# DEVICE: .*, driver for CUDA [0-9.]*, [0-9]* SMs, [0-9]* MHz, L2 [0-9]* MB$'
grep -q '^# A prompt of 99 does not fit max_seq_len = 48' "$scratch/table"
grep -q '^# gate_up of 4 warps: ' "$scratch/table"
grep -q '^# gate_up of 5000 warps: .*does not accept num_warps = 5000' "$scratch/table"
# The launches of two layers, removed from a step.
grep -q '^| step of 1 | 15 |' "$scratch/table"
grep -q '^| step of 1, without rope_kv_write | 13 |' "$scratch/table"
# Steps of 8, 8 and 4 rows.
grep -q '^| prompt of 20 | 45 .* | 3 steps of up to 8 rows |$' "$scratch/table"

# Numbers of rows that the spec does not have.
"$bench_step" --quick --prompts 5 --rows 1,2 --positions 0 "$model" >"$scratch/table"
read_table "$scratch/table" >"$scratch/rows"
diff - "$scratch/rows" <<'END'
tiny, after 0 tokens:
step of 1
step of 1, no overlap
step of 1, not captured
step of 2
step of 2, no overlap
step of 2, not captured
prompt of 5
prompt of 5, no overlap
passed 1
END

# A kernel by itself reads the workspace as the step leaves it: with other contents, expert numbers would be out of
# range. Layer 1 has its own kernels, which run after the kernels of layer 0.
sed -e 's/^ff  .*/experts = 4\nexperts_used = 2\nexpert_ff = 64/' \
    -e 's/^weights .*/&\nweights.ffn_down_exps = q5_0: 1\nweights.attn_v = q5_0: 1/' "$model" >"$scratch/experts.ini"
"$bench_step" --quick --prompts none --kernels "$scratch/experts.ini" >"$scratch/table"
[ "$(grep -c '^| stream_expert_down_q5_0_' "$scratch/table")" = 2 ]

for wrong in '--rows 8,1' '--rows 513'; do
    status=0
    # shellcheck disable=SC2086 # an option and its value
    "$bench_step" --quick $wrong "$model" >"$scratch/table" || status=$?
    [ "$status" = 1 ]
    grep -q '^FAILED tiny: ' "$scratch/table"
done
status=0
"$bench_step" --prompts none "$model" >"$scratch/table" || status=$?
[ "$status" = 1 ]
grep -q '^FAILED tiny: max_seq_len = 48 is too short; at least 128 are needed' "$scratch/table"
for wrong in '--rows 1,x' '--warps gate_up' '--prompts 0' '--positions' '--positions -1' '--other'; do
    status=0
    # shellcheck disable=SC2086
    "$bench_step" --quick $wrong "$model" 2>"$scratch/usage" || status=$?
    [ "$status" = 2 ]
    grep -q '^usage: bench_step' "$scratch/usage"
done

export TMPDIR="$scratch/tmp"
mkdir "$TMPDIR"
"$bench_load" --quick --threads 3 "$model" >"$scratch/figures"
sed -n 's/ [0-9.]* s$//p; s/^passed/&/p' "$scratch/figures" >"$scratch/names"
diff - "$scratch/names" <<'END'
load_tiny_1thread_cold
load_tiny_1thread_cached
load_tiny_3threads_cold
load_tiny_3threads_cached
passed 4
END
head -n 1 "$scratch/figures" | grep -q '^# DEVICE: '
[ -z "$(ls "$TMPDIR")" ]
printf '[decoder]\n' >"$scratch/wrong.ini"
status=0
"$bench_load" "$scratch/wrong.ini" >"$scratch/figures" || status=$?
[ "$status" = 1 ]
grep -q '^FAILED load_wrong_1thread_cold: ' "$scratch/figures"
