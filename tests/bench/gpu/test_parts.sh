# Functions of run_tests.sh and sanitize.sh. Both run test programs of a kit in parts, by xargs, which calls them again with
# --part. Variables that such a call needs are exported.
#
# shellcheck shell=sh

# Reads KIT [--seconds N], opens the GPU once to find problems that every part would have, and makes the folder $logs.
# Exits with 77 if there is no GPU.
prepare_parts() {
    if [ $# != 1 ] && { [ $# != 3 ] || [ "$2" != --seconds ]; }; then
        echo "usage: $0 KIT [--seconds N]" >&2 && exit 2
    fi
    kit=$(cd "$1" && pwd) || exit 2
    seconds=${3-${SECONDS_LEFT-}}
    case $seconds in
    *[!0-9]*) echo "'$seconds' is not a number of seconds" >&2 && exit 2 ;;
    esac
    deadline=${seconds:+$(($(date +%s) + ${seconds:-0}))} # end of the time, in seconds of the clock; empty: no limit
    logs=$(mktemp -d)
    trap 'rm -rf "$logs"' EXIT
    trap 'exit 1' HUP INT TERM
    LD_LIBRARY_PATH="$kit/bin${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
    # The driver's cache of thousands of compiled kernels, for the next run.
    CUDA_CACHE_PATH="${CUDA_CACHE_PATH:-$kit/cache}"
    PTXGEN_GOLDEN="$kit/tests/golden" PTXGEN_TEST_DEVICE=GPU
    export kit deadline logs LD_LIBRARY_PATH CUDA_CACHE_PATH PTXGEN_GOLDEN PTXGEN_TEST_DEVICE
    mkdir -p "$CUDA_CACHE_PATH"
    said=$(PTXGEN_TEST_PART=1 PTXGEN_TEST_SHARE=1000000 timeout 60 "$kit/bin/ptxgen-test" kernel/every_family 2>&1) && return
    printf '%s\n' "$said" | tail -5 >&2
    case $said in
    *'# no tests on a GPU'*) exit 77 ;;
    esac
    exit 1
}

not_reached() {
    echo "$*" >>"$logs/not_reached"
}

# Sets $left to the seconds left for a part, 0 without a limit. Returns false if no time is left.
time_left() {
    left=0
    [ -n "$deadline" ] || return 0
    left=$((deadline - $(date +%s)))
    [ "$left" -gt 0 ]
}

# Returns true if exit status $1 means that a part's time was over.
time_is_over() {
    [ "$1" = 124 ] || { [ "$1" = 137 ] && [ -n "$deadline" ] && [ "$(date +%s)" -ge "$deadline" ]; }
}

# Runs the parts that standard input lists, $1 words each, and prints how many were not started.
run_parts() {
    cat >"$logs/parts"
    status=0
    xargs -P "$(nproc)" -n "$1" sh "$0" --part <"$logs/parts" || status=1
    if [ -s "$logs/skipped" ]; then
        awk '{ sum += $1 } END { printf "# skipped: %d tests, for the emulator alone or for other GPUs\n", sum }' "$logs/skipped"
    fi
    if [ -s "$logs/not_reached" ]; then
        echo "# not reached: $(wc -l <"$logs/not_reached") of $(wc -l <"$logs/parts") parts"
    fi
    return "$status"
}
