#!/bin/sh
# Runs the kernel tests of a kit on this machine's GPU: run_tests.sh KIT [--seconds N]
#
# KIT has the program bin/ptxgen-test and tests/golden. Each group of tests runs in parts. Each processor runs one part,
# because the driver's compiler takes most of the time. Options are variables:
#     TEST_GROUPS="NAME ..."       only these groups; every_family has every family once in every format
#     PTXGEN_TEST_FAMILY=NAME,...  only the tests of these families
#     PTXGEN_TEST_TARGET=sm_90a    kernels of this target instead of the oldest
#     SECONDS_LEFT=N               same as --seconds: starts no part later, and stops running parts
#     LONGEST_TEST=N               a stopped test fails if it has run for N seconds (30)
#
# Prints "FAILED TEST: actual and expected value" when a test fails, and "passed N" for N more tests from time to time.
# Exit status: 0 all passed, 1 a test failed, 77 there is no GPU.
set -u
# shellcheck source=tests/bench/gpu/test_parts.sh
. "$(dirname "$0")/test_parts.sh"

# Runs part $2 of group $1 and reports its tests. The output arrives line by line and ends with the exit status.
run_part() {
    time_left || { not_reached "$@" && return 0; }
    {
        PTXGEN_TEST_PART=$2 timeout --foreground -k 2 "$left" "$kit/bin/ptxgen-test" "kernel/$1" 2>&1 </dev/null
        printf '\n[  STATUS  ] %d\n' $?
    } 2>/dev/null | report_part "$1" "$2"
}

fail() {
    echo "FAILED $1: $(printf %s "$2" | tr '\n\r' '  ' | cut -c1-2000)"
    failures=1
}

say_passed() {
    [ "$passed" = 0 ] || echo "passed $passed"
    passed=0
}

# Reads the output of part $2 of group $1. Reports passed tests early, so that a stop loses only a few.
report_part() {
    most=20
    passed=0 skipped=0 failures=0 ended=no test='' text='' status=0 started="$logs/$1.$2"
    while IFS= read -r line; do
        case $line in
        '[ RUN      ] '*) test=${line#*] } && text='' && : >"$started" ;;
        '[       OK ] '*)
            test='' && passed=$((passed + 1))
            [ "$passed" -lt "$most" ] || say_passed
            ;;
        '[  SKIPPED ] '*) [ -z "$test" ] || skipped=$((skipped + 1)) && test='' ;;
        '[  FAILED  ] '*) [ -z "$test" ] || fail "$test" "$text" && test='' ;;
        '[  PASSED  ] '*) ended=yes ;;
        '[  STATUS  ] '*) status=${line#*] } ;;
        '# '*) echo "$line" ;;
        '' | '[=========='*) ;;
        *'[   LINE   ] --- '*)
            line=${line##*--- } && line=${line%: error: Failure!}
            text="$text${text:+ }(${line##*/})"
            ;;
        *)
            line=${line#'[  ERROR   ] --- '} && line=${line#ERROR: }
            text="$text${text:+ }$line"
            ;;
        esac
    done
    if [ "$ended" = no ]; then
        during=${test:-$1}
        if time_is_over "$status"; then
            not_reached "$@"
            ran=$(($(date +%s) - $(stat -c %Y "$started" 2>/dev/null || date +%s)))
            if [ "$ran" -ge "$longest" ]; then
                fail "$during" "runs for $ran s and does not end"
            else
                echo "# cut off: $1, part $2, in $during"
            fi
        elif [ "$status" -gt 128 ]; then
            fail "$during" "$1 was ended by signal $(kill -l "$status" 2>/dev/null || echo $((status - 128)))${text:+: $text}"
        else
            fail "$during" "$1 ended with status $status${text:+: $text}"
        fi
    fi
    say_passed
    [ "$skipped" = 0 ] || echo "$skipped" >>"$logs/skipped"
    return "$failures"
}

if [ "${1-}" = --part ]; then # called by xargs, below
    run_part "$2" "$3"
    exit
fi
parts=16
[ "${TEST_GROUPS-}" != every_family ] || parts=$((2 * $(nproc)))
export longest="${LONGEST_TEST:-30}" PTXGEN_TEST_SHARE="$parts"
prepare_parts "$@"
for group in ${TEST_GROUPS-every_family kernels attention attention_rows delta_net experts mamba mla mma_q8 mma_q8_experts rope same_bits short_conv}; do
    seq -f "$group %g" 0 $((parts - 1))
done | run_parts 2
