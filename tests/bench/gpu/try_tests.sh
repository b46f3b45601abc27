#!/bin/sh
# The kit's tests report what fails, on the emulated driver: try_tests.sh RUN_TESTS_SH SOURCE_ROOT
# TEST_EVERY_FAMILY FAILING_TESTS
set -eu
run_tests=$1
root=$2
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
kit="$scratch/a kit"
mkdir -p "$kit/bin" "$kit/tests"
cp "$3" "$kit/bin/test_every_family"
cp "$4" "$kit/bin/test_failing"
ln -s "$root/tests/golden" "$kit/tests/golden"
export PTXGEN_TEST_FAMILY=silu

# Runs all, and checks the exit status $1 and the form of the output.
run() {
    expected=$1
    shift
    status=0
    "$@" >"$scratch/out" 2>"$scratch/err" || status=$?
    cat "$scratch/out" "$scratch/err"
    [ "$status" = "$expected" ]
    ! grep -Ev '^(# |FAILED [A-Za-z0-9_]+: .|passed [0-9]+$)' "$scratch/out"
}
said() { grep -qE "$1" "$scratch/${2-out}" || { echo "not said: $1" && exit 1; }; }
passed() { awk '/^passed/ { sum += $2 } END { print sum + 0 }' "$scratch/out"; }

run 1 "$run_tests" "$kit"
said '^FAILED a_sum_is_wrong: y\[3\] is 1\.25, expected 2\.5: 0\.5 of its bound \(failing_tests\.c:[0-9]+\)$'
said '^FAILED two_is_three: 0x2 != 0x3 \(failing_tests\.c:[0-9]+\)$'
said '^FAILED nothing_is_read: .*Segmentation fault'
said '^FAILED the_program_ends: test_failing was ended by signal ABRT'
[ "$(grep -c FAILED "$scratch/out")" = 4 ]
[ "$(passed)" = 7 ]

PTXGEN_TEST_TIER=quick run 0 "$run_tests" "$kit"
[ "$(passed)" = 4 ]

# What hangs fails where it is stopped; what is only slow is not reached.
PTXGEN_TEST_HANG=60 run 1 "$run_tests" "$kit" --seconds 5
said '^# cut off: test_failing, part 4, in one_takes_long$'
said '^# not reached: 1 of 32 parts$'
[ "$(passed)" = 6 ]
PTXGEN_TEST_HANG=60 LONGEST_TEST=1 SECONDS_LEFT=5 run 1 "$run_tests" "$kit"
said '^FAILED one_takes_long: runs for [0-9]+ s and does not end$'
SECONDS_LEFT=0 run 0 "$run_tests" "$kit"
said '^# not reached: 32 of 32 parts$'

PTXGEN_TEST_FAMILY=silo run 1 "$run_tests" "$kit"
said 'silo is no family' err
LD_LIBRARY_PATH='' CUDA_VISIBLE_DEVICES=-1 run 77 "$run_tests" "$kit"
said 'no tests on a GPU' err
