#!/bin/sh
# Times a model by its generated header and by llama.cpp's CUDA library, on one file with random weights:
#
#     same_file.sh [--quick] KIT NAME [PEER]
#
# The file has the shapes of KIT/headers/NAME.gguf. It is written to $SCRATCH (/tmp) and removed. PEER is the argument
# of llama_peer.sh; without it only the header's program runs. Prints figures. same_tokens counts equal tokens at the
# start: both round activations to 8 bits in different ways, so that texts of random weights soon differ.
set -eu
quick=
[ "$1" != --quick ] || { quick=--quick && shift; }
kit=$1
name=$2
peer=${3-}
scratch=${SCRATCH:-/tmp}
file=$scratch/$name.gguf
trap 'rm -f "$file" "$file".*' EXIT
trap 'exit 1' HUP INT TERM

"$kit/bin/fill_gguf" "$kit/headers/$name.gguf" "$file" || {
    echo "FAILED $name: its file of weights cannot be written into $scratch"
    exit 1
}
# Runs a program, shows its output and keeps it in a file. Returns its exit status.
keep() {
    kept=$1
    shift
    { "$@" || echo $? >"$kept.status"; } | tee "$kept"
    [ ! -e "$kept.status" ] || return "$(cat "$kept.status")"
}

status=0
keep "$file.ours" "$kit/bin/bench_model_$name" $quick "$file" || status=$?
[ "$status" != 77 ] || exit 77
[ -n "$peer" ] || exit "$status"

if [ -n "$quick" ]; then
    set -- --tokens 4 --depth 0 --prompt 24 --repeat 1 --rows 8
else
    set -- --depth 0 --prompt 512 --prompt 2048 --rows 8
fi
of_peer=0
export SCRATCH="$scratch/peer" LLAMA_SPEED="$kit/bin/llama_speed"
# shellcheck disable=SC2086
keep "$file.theirs" sh "$kit/tests/bench/gpu/llama_peer.sh" "$peer" "$file" "$@" ${LLAMA_OPTIONS-} || of_peer=$?
case $of_peer in
0) ;;
3) echo "# the peer's library cannot be used here" ;;
*) echo "FAILED llama_speed: exit status $of_peer on $name" && status=1 ;;
esac
tokens() {
    sed -n "s/^# $1[0-9]* tokens //p" "$2" | tr ' ' '\n'
}
tokens ours_tg "$file.ours" >"$file.1"
tokens tg "$file.theirs" >"$file.2"
paste "$file.1" "$file.2" | awk '$1 != $2 { exit } { same++ } END { print "same_tokens", same + 0, "tokens" }'
exit "$status"
