#!/bin/bash
# The PTX of streaming kernels and of attention says where each phase begins, in their order.
#
#   phases.sh SOURCE_ROOT
set -u
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
failed=0

# phases NAME PHASE... : every kernel whose file is named so has these lines, one behind the other.
phases() {
    local files=("$out"/every.$1_*.ptx) file at phase
    [ -e "${files[0]}" ] || { echo "FAILED: no $1"; failed=1; }
    shift
    for file in "${files[@]}"; do
        at=0
        for phase; do
            line=$(grep -n "^    // $phase" "$file" | cut -d : -f 1 | awk -v at=$at '$1 > at { print; exit }')
            [ -n "$line" ] || { echo "FAILED: ${file##*/}: no '$phase' behind line $at"; failed=1; break; }
            at=$line
        done
    done
}

"$PTXGEN" --quiet --spec "$1/tests/every_family.ini" --out "$out" || exit 1
for family in $("$PTXGEN" --list | sed -n 's/^  \(stream_[^ ]*\) .*/\1/p'); do
    phases "$family" "stage x" "stream weights" "reduce"
done
phases incremental_attention "load q" attend merge store
phases multi_warp_attention "load q" attend merge "merge the warps"
phases batched_incremental_attention "load q" attend merge store
phases flash_decoding_chunk "load q" attend merge store
phases gqa_flash_decoding "stage q" products softmax "weighted values" "add the tile" "merge the warps" "merge the chunks"
exit $failed
