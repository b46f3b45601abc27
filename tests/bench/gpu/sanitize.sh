#!/bin/sh
# Runs kernels of ten families under compute-sanitizer on this machine's GPU. The families use different methods.
#
#     sanitize.sh KIT [--seconds N]
#
# KIT is the same as for run_tests.sh. Memcheck and racecheck each run a family in every format, in several processes at
# once. Prints "FAILED TOOL.FAMILY: the first error", and "passed N" for N cases without an error. Variables:
#     SANITIZE_FAMILIES="NAME ..."   other families
#     SECONDS_LEFT=N                 same as --seconds: starts nothing later, and stops running programs
#
# Exit status: 0 no error, 1 an error, 77 there is no compute-sanitizer or no GPU.
set -u
# shellcheck source=tests/bench/gpu/test_parts.sh
. "$(dirname "$0")/test_parts.sh"

# Runs part $3 of $4 of the cases of family $2 under tool $1.
run_part() {
    log=$logs/$1.$2.$3
    time_left || { not_reached "$@" && return 0; }
    PTXGEN_TEST_FAMILY=$2 PTXGEN_TEST_PART=$3 PTXGEN_TEST_SHARE=$4 timeout -k 5 "$left" "$sanitizer" --tool "$1" \
        --max-connections 1000 --print-limit 10 --log-file "$log" "$kit/bin/ptxgen-test" kernel/every_family >"$log.out" 2>&1 </dev/null &
    child=$! # which kills its own process group, with its children
    trap 'kill "$child"; exit 1' HUP INT TERM
    wait "$child"
    status=$?
    : >>"$log"
    summary=$(sed -n 's/^========= \(ERROR\|RACECHECK\) SUMMARY: //p' "$log" | tail -1)
    # Prints the first report: its first line and the indented lines below it, up to the host's backtrace.
    first=$(awk '/^========= +(COMPUTE-SANITIZER|ERROR SUMMARY|RACECHECK SUMMARY|Target application)/ { next }
        /^=========( |$)/ {
            sub(/^========= */, "")
            if ($0 == "" || /Saved host backtrace|Host Frame/) { if (text) exit; next }
            text = text (text ? " " : "") $0
        }
        END { print substr(text, 1, 1500) }' "$log")
    wrong=''
    case $summary in
    '0 errors'* | *'(0 errors, 0 warnings)'*) ;;
    *'(0 errors, '*) echo "# warning of $1 in $2: $first" ;;
    *) wrong=${summary:+$summary: }$first ;;
    esac
    if time_is_over "$status"; then
        not_reached "$@"
    elif ! grep -q '^\[  PASSED  \]' "$log.out" || [ -z "$summary" ]; then
        wrong="ended with status $status: ${wrong:-$(cat "$log" "$log.out" | tail -3 | tr '\n' ' ')}"
    fi
    [ -z "$wrong" ] || echo "FAILED $1.$2: $wrong"
    # Wrong results that were found as well.
    sed -n "s/^ERROR: /FAILED $1.$2: /p" "$log.out"
    if [ -n "$wrong" ] || grep -q '^\[  FAILED  \]' "$log.out"; then
        return 1
    fi
    passed=$(grep -c '^\[       OK \].*_on_the_GPU$' "$log.out")
    [ "$passed" = 0 ] || echo "passed $passed"
}

if [ "${1-}" = --part ]; then # called by xargs, below
    shift
    run_part "$@"
    exit
fi
sanitizer=$(PATH="$PATH:/usr/local/cuda/bin" command -v compute-sanitizer) || {
    echo "compute-sanitizer is neither on PATH nor in /usr/local/cuda/bin" >&2
    exit 77
}
export sanitizer
prepare_parts "$@"

# Families with weights have many cases and run in four parts. The first part of every family comes first.
families=${SANITIZE_FAMILIES-stream_gemv stream_gate_up stream_gemv_q8 mma_gemm_f16 gqa_flash_decoding mma_flash_decoding \
mma_attention stream_expert_down moe_route sample}
for part in 0 1 2 3; do
    for tool in memcheck racecheck; do
        for family in $families; do
            case $family in
            *attention | *decoding* | sample) [ $part != 0 ] || echo "$tool $family 0 1" ;;
            *) echo "$tool $family $part 4" ;;
            esac
        done
    done
done | run_parts 4
