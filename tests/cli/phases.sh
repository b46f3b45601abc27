#!/bin/bash
# Checks the phase comments in the PTX of streaming kernels and of attention, and their order.
#
#     phases.sh SOURCE_ROOT
set -u
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
failed=0

# phases NAME PHASE...: every kernel whose file has this name contains these lines in this order.
phases() {
    local files=("$out"/every.$1_*.ptx)
    [ -e "${files[0]}" ] || { echo "FAILED: no $1"; failed=1; return; }
    shift
    awk -v phases="$(printf '|%s' "$@")" '
        function ends() {
            if (at && at <= count) {
                print "FAILED: " file ": no \047" wanted[at] "\047"
                bad = 1
            }
        }
        BEGIN { count = split(substr(phases, 2), wanted, "|") }
        FNR == 1 { ends(); file = FILENAME; at = 1 }
        at <= count && index($0, "    // " wanted[at]) == 1 { at++ }
        END { ends(); exit bad }' "${files[@]}" || failed=1
}

"$PTXGEN" --quiet --spec "$1/tests/every_family.ini" --target sm_90 --out "$out" || exit 1
for family in $("$PTXGEN" --list | sed -n 's/^  \(stream_[^ ]*\) .*/\1/p' | grep -v stream_expert_down); do
    phases "$family" "stage x" "stream weights" "reduce"
done
phases stream_expert_down plan stream "reduce and store"
phases moe_route "multiply a row of W" "check for the last block" choose "write the list"
phases mla_query "the last block" "q of the head" "apply RoPE" "multiply q by W"
phases mla_attention "load q" "stage the rows" products softmax "weighted values" "merge the chunks"
phases "delta_net_*_h6" "load the state" convolve "delta rule" "store the state" norm
phases "delta_net_*_h4" "load the state" convolve "delta rule" norm "store the state" "store the last inputs"
phases incremental_attention "load q" attend merge store
phases multi_warp_attention "load q" attend merge "merge the warps"
phases batched_incremental_attention "load q" attend merge store
phases flash_decoding_chunk "load q" attend merge store
phases mma_flash_decoding "load q" products softmax "weighted values" "store the warp" "merge the warps" "merge the chunks"
phases gqa_flash_decoding "stage q" products softmax "weighted values" "add the tile" "merge the warps" "merge the chunks"
tiles=("find the positions" "load q" "unmasked tiles" products softmax "weighted values" "masked tiles: rows end")
phases "mma_attention_*_cs*" "${tiles[@]}" "store partial rows" "merge the chunks"
rm -f "$out"/every.mma_attention_*_cs*
phases mma_attention "${tiles[@]}" "normalize and store"
exit $failed
