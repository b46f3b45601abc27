#!/bin/sh
# Checks that the kit's tests report failures, on the emulated driver: try_tests.sh RUN_TESTS_SH GOLDEN_FOLDER
# PTXGEN_TEST FAILING_TESTS
set -eu
run_tests=$1
golden=$2
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
kit="$scratch/a kit"
mkdir -p "$kit/bin" "$kit/tests"
# Group failing has the tests of another program.
cp "$3" "$kit/bin/all"
cp "$4" "$kit/bin/failing"
printf '#!/bin/sh\nprogram=all\nif [ "$1" = kernel/failing ]; then program=failing; shift; fi\nexec "${0%%/*}/$program" "$@"\n' >"$kit/bin/ptxgen-test"
chmod +x "$kit/bin/ptxgen-test"
export TEST_GROUPS="every_family failing"
ln -s "$golden" "$kit/tests/golden"
export PTXGEN_TEST_FAMILY=silu

# Runs all groups, and checks the exit status $1 and the form of the output.
run() {
    expected=$1
    shift
    status=0
    "$@" >"$scratch/out" 2>"$scratch/err" || status=$?
    cat "$scratch/out" "$scratch/err"
    [ "$status" = "$expected" ]
    ! grep -Ev '^(# |FAILED [A-Za-z0-9_.]+: .|passed [0-9]+$)' "$scratch/out"
}
said() { grep -qE "$1" "$scratch/${2-out}" || { echo "not said: $1" && exit 1; }; }
passed() { awk '/^passed/ { sum += $2 } END { print sum + 0 }' "$scratch/out"; }

run 1 "$run_tests" "$kit"
said '^FAILED a_sum_is_wrong: y\[3\] is 1\.25, expected 2\.5: 0\.5 of its bound \(failing_tests\.c:[0-9]+\)$'
said '^FAILED two_is_three: 0x2 != 0x3 \(failing_tests\.c:[0-9]+\)$'
said '^FAILED nothing_is_read: .*Segmentation fault'
said '^FAILED the_program_ends: failing was ended by signal ABRT'
[ "$(grep -c FAILED "$scratch/out")" = 4 ]
[ "$(passed)" = 7 ]

TEST_GROUPS=every_family PTXGEN_TEST_FAMILY=silu,sample run 0 "$run_tests" "$kit"
[ "$(passed)" = 5 ]

# A test that hangs fails when it is stopped. A test that is only slow counts as not run.
PTXGEN_TEST_HANG=60 run 1 "$run_tests" "$kit" --seconds 5
said '^# cut off: failing, part 4, in one_takes_long$'
said '^# not reached: 1 of 32 parts$'
[ "$(passed)" = 6 ]
PTXGEN_TEST_HANG=60 LONGEST_TEST=1 SECONDS_LEFT=5 run 1 "$run_tests" "$kit"
said '^FAILED one_takes_long: runs for [0-9]+ s and does not end$'
run 2 "$run_tests" "$kit" --second 5
said 'usage: ' err
run 2 "$run_tests" "$kit" --seconds 1.5
said "'1.5' is not a number of seconds" err
SECONDS_LEFT=0 run 0 "$run_tests" "$kit"
said '^# not reached: 32 of 32 parts$'

# A signal to its process group ends all its children.
cut_off() {
    setsid "$@" "$kit" >"$scratch/out" 2>&1 &
    leader=$!
    for _ in $(seq 100); do
        ! pgrep -f "$kit/bin/$program" >/dev/null || break
        sleep 0.1
    done
    sleep 1
    pgrep -f "$kit/bin/$program" >/dev/null
    kill -TERM "-$leader"
    for _ in $(seq 50); do
        pgrep -f "$kit/bin/" >/dev/null || return 0
        sleep 0.1
    done
    echo "these are left:" && pgrep -af "$kit/bin/" && exit 1
}
program=failing
PTXGEN_TEST_HANG=60 cut_off "$run_tests"

PTXGEN_TEST_FAMILY=silu,silo,sample run 1 "$run_tests" "$kit"
said 'silu,silo,sample: 1 of 3 names are not families' err
LD_LIBRARY_PATH='' CUDA_VISIBLE_DEVICES=-1 run 77 "$run_tests" "$kit"
said 'no tests on a GPU' err

# A stand-in for a sanitizer: runs the program and prints $FAKE for one family.
mkdir "$scratch/tools"
cat >"$scratch/tools/compute-sanitizer" <<'END'
#!/bin/sh
while [ "${1#--}" != "$1" ]; do
    case $1 in
    --tool) tool=$2 && shift 2 ;;
    --log-file) log=$2 && shift 2 ;;
    --*) shift 2 ;;
    esac
done
"$@"
status=$?
summary="ERROR SUMMARY: 0 errors"
[ "$tool" = memcheck ] || summary="RACECHECK SUMMARY: 0 hazards displayed (0 errors, 0 warnings)"
echo "========= COMPUTE-SANITIZER" >"$log"
case $PTXGEN_TEST_FAMILY.$tool.$FAKE in
silu.memcheck.wrong)
    summary="ERROR SUMMARY: 2 errors"
    cat >>"$log" <<'LOG'
========= Invalid __global__ read of size 4 bytes
=========     at silu_k1280_m3+0x30
=========     by thread (7,0,0) in block (0,0,0)
=========     Access to 0xd67bffffc is out of bounds
=========     and is 1 bytes after the nearest allocation at 0xd67800000 of size 4,194,300 bytes
=========     Saved host backtrace up to driver entry point at kernel launch time
=========         Host Frame: main [0xabeb] in test_every_family
=========
========= Program hit CUDA_ERROR_LAUNCH_FAILED (error 719) due to "unspecified launch failure" on CUDA API call to cuCtxSynchronize.
=========     Saved host backtrace up to driver entry point at error
=========
LOG
    ;;
silu.racecheck.wrong)
    summary="RACECHECK SUMMARY: 1 hazard displayed (1 error, 0 warnings)"
    cat >>"$log" <<'LOG'
========= Error: Race reported between Write access at silu_k1280_m3+0xb0
=========     and Read access at silu_k1280_m3+0x2c0 [508 hazards]
=========
LOG
    ;;
*.racecheck.warned)
    summary="RACECHECK SUMMARY: 1 hazard displayed (0 errors, 1 warning)"
    echo "========= Warning: Race reported between Write access at a+0x10" >>"$log"
    ;;
silu.*.slow) sh -c "sleep 60; : $1" ;;
silu.*.killed) kill -KILL $$ ;;
esac
echo "========= $summary" >>"$log"
exit $status
END
chmod +x "$scratch/tools/compute-sanitizer"
sanitize="$(dirname "$run_tests")/sanitize.sh"
export SANITIZE_FAMILIES="silu sample" FAKE=right
if ! command -v compute-sanitizer && ! [ -e /usr/local/cuda/bin/compute-sanitizer ]; then
    run 77 "$sanitize" "$kit"
    said 'compute-sanitizer is neither on PATH' err
fi
PATH=$scratch/tools:$PATH
run 0 "$sanitize" "$kit"
[ "$(passed)" = 8 ]
FAKE=wrong run 1 "$sanitize" "$kit"
said '^FAILED memcheck\.silu: 2 errors: Invalid __global__ read of size 4 bytes at silu_k1280_m3\+0x30 by thread .* of size 4,194,300 bytes$'
said '^FAILED racecheck\.silu: 1 hazard displayed \(1 error, 0 warnings\): Error: Race reported between .* \[508 hazards\]$'
[ "$(passed)" = 2 ]
FAKE=warned run 0 "$sanitize" "$kit"
said '^# warning of racecheck in silu: Warning: Race reported'
FAKE=killed run 1 "$sanitize" "$kit"
said '^FAILED memcheck\.silu: ended with status 137'
program=ptxgen-test
FAKE=slow cut_off "$sanitize"
FAKE=slow run 0 "$sanitize" "$kit" --seconds 3
said '^# not reached: [0-9]+ of [0-9]+ parts$'
SANITIZE_FAMILIES=silo run 1 "$sanitize" "$kit"
said '^FAILED memcheck\.silo: ended with status 1: .*silo: 1 of 1 names'
