#!/bin/sh
# Checks that packed models run on the emulated driver, and that a wrong result is reported with model, case, position
# and both values: try_pack.sh PTXGEN SOURCE MODELS
set -eu
export PTXGEN_TEST_TIER=full # a kit runs all checks
source=$2
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
pack="$scratch/pack"
status=0
"$source/tests/models/pack_models.py" "$1" "$source" "$3" "$pack" granite llama || status=$?
[ "$status" = 0 ] || exit "$status"

run() {
    expected=$1
    shift
    status=0
    "$source/tests/bench/gpu/run_models.py" "$pack" "$@" >"$scratch/out" 2>"$scratch/err" || status=$?
    cat "$scratch/out" "$scratch/err"
    [ "$status" = "$expected" ]
    ! grep -Ev '^(# |FAILED [a-z0-9_.]+: .|passed [0-9]+$)' "$scratch/out"
}
said() { grep -qE "$1" "$scratch/${2-out}" || { echo "not said: $1" && exit 1; }; }

run 0 granite.q8 granite.prompt llama.prompt
[ "$(awk '{ sum += $2 } END { print sum }' "$scratch/out")" = 6 ]

# A changed golden logit, a changed token of a story, and a missing program.
python3 - "$pack/granite" <<'END'
import array
import json
import sys

path = sys.argv[1]
with open(path + ".json") as file:
    facts = json.load(file)
logits = array.array("f", open(path + ".logits", "rb").read())
logits[7 * facts["vocab"] + 12] += 1
with open(path + ".logits", "wb") as file:
    logits.tofile(file)
facts["story"] = [{"prompt": facts["tokens"], "tokens": [facts["greedy"][0], facts["greedy"][1] + 1]}]
with open(path + ".json", "w") as file:
    json.dump(facts, file)
END
rm "$pack/llama.q8"
printf '#!/bin/sh\n: >"$3"\n' >"$pack/llama.prompt"
run 1 granite.f32 granite.story llama.q8 llama.prompt
said '^FAILED granite\.f32: logits: worst 1 of 0\.0002, rms 0\.0[0-9]* of 2e-05; position 7, token 12: [-0-9.]+, expected [-0-9.]+$'
said '^FAILED granite\.story: tokens after 36; token 1: [0-9]+, expected [0-9]+$'
said '^FAILED llama\.q8: .*No such file'
said '^FAILED llama\.prompt: logits; 0 logits, expected 11520$'
[ "$(grep -c FAILED "$scratch/out")" = 4 ]
[ "$(awk '/^passed/ { sum += $2 } END { print sum }' "$scratch/out")" = 4 ]

PTXGEN_CUDA_TARGET=sm_75 run 1 granite.q8
said '^FAILED granite\.q8: status 1 run_model: .*the kernel needs sm_80 or newer'
run 0 --seconds 0 granite
said '^# not reached: 4 of 4 parts$'
run 1 granite.q9
said 'granite.q9: no such model, or case' err
LD_LIBRARY_PATH='' CUDA_VISIBLE_DEVICES=-1 run 77
