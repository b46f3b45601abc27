#!/bin/bash
# Tests runs that are interrupted, killed, or write into one folder at the same time: they leave no temporary files, and
# a header and its manifest come from one run.
#
# A report into a pipe that nobody reads blocks a run while its temporary files exist. Signals that the caller ignores
# are ignored by every program of a script, so this script restarts itself without them.
if [ -z "${SIGNALS_ARE_DEFAULT:-}" ] && env --default-signal true 2>/dev/null; then
    SIGNALS_ARE_DEFAULT=1 exec env --default-signal bash "$0" "$@"
fi
set -um # jobs in groups of their own, so that SIGINT reaches them
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cd "$scratch" || exit 1
mkdir tmp
export TMPDIR=$scratch/tmp
failed=0

fail() {
    echo "FAILED: $1"
    failed=1
}

spec() { printf '[ptxgen]\nprefix = k\n[f32_gemv]\nk = 64\nn = %s\n' "$1"; }
spec 1..40 >a.ini
spec 30..60 >b.ini
"$PTXGEN" -q --spec a.ini --out expected_a && "$PTXGEN" -q --spec b.ini --out expected_b || fail "the specs"

temporaries() { find "$1" -name '*.tmp' | wc -l; }

# Waits up to 20 seconds for a condition.
wait_for() {
    for ((turn = 0; turn < 2000; turn++)); do
        eval "$1" && return
        sleep 0.01
    done
    fail "never: $1"
}

# Starts a run of b.ini into out/, which has the files of a.ini, and waits until the run blocks. Sets $run to its
# process.
start_stuck() {
    rm -rf out && cp -r expected_a out
    "$PTXGEN" -q --spec b.ini --out out --report pipe &
    run=$!
    wait_for '[ "$(temporaries out)" -ge 21 ]' # 20 kernels, the manifest and the header
    sleep 0.05
}
mkfifo pipe
exec 7<>pipe # keeps the pipe open without reading

for signal in INT TERM HUP QUIT; do
    start_stuck
    kill -$signal "$run"
    wait "$run"
    status=$?
    [ $status = $((128 + $(kill -l $signal))) ] || fail "SIG$signal: status $status"
    diff -r expected_a out || fail "SIG$signal: another output"
done

# A signal that the caller ignores stays ignored.
(trap '' HUP; exec "$PTXGEN" -q --spec b.ini --out ignoring --report pipe) &
run=$!
wait_for '[ -d ignoring ] && [ "$(temporaries ignoring)" -ge 32 ]'
kill -HUP "$run"
sleep 0.1
kill -0 "$run" || fail "an ignored SIGHUP ended a run"
kill -TERM "$run"
wait "$run"

# The run after a killed one removes its temporary files and nothing else.
start_stuck
kill -KILL "$run"
wait "$run" 2>/dev/null
[ "$(temporaries out)" -ge 21 ] || fail "a killed run leaves no temporary file: this test shows nothing"
touch out/mine.tmp out/ptxgen-notes.tmp expected_a/mine.tmp expected_a/ptxgen-notes.tmp
"$PTXGEN" -q --spec a.ini --out out || fail "the run after a killed one"
diff -r expected_a out || fail "a killed run's files stay"
rm expected_a/*.tmp
exec 7>&-

# A pipe without a reader is an error at once.
timeout 20 "$PTXGEN" -q --spec b.ini --out out --report pipe 2>said
[ $? = 3 ] && grep -q 'no process reads this pipe' said || { cat said; fail "a pipe without a reader"; }

# ptxas is stopped, and its folder removed.
cat >ptxas <<'.'
#!/bin/sh
case $1 in
--version) echo 'Cuda compilation tools, release 12.4, V12.4.131' ;;
--help) echo "Allowed values for this option: 'sm_80','sm_90'." ;;
*) [ -z "${STUCK:-}" ] || { sleep 60; exit; }
   touch "$5" ;;
esac
.
chmod +x ptxas
for signal in INT TERM KILL; do
    STUCK=yes "$PTXGEN" -q --spec a.ini --validate=./ptxas -j2 &
    run=$!
    wait_for '[ "$(find tmp -name kernel.ptx | wc -l)" = 2 ]'
    sleep 0.05
    started=$SECONDS
    kill -$signal "$run"
    wait "$run" 2>/dev/null
    status=$?
    [ $status = $((128 + $(kill -l $signal))) ] || fail "SIG$signal while ptxas runs: status $status"
    [ $((SECONDS - started)) -le 10 ] || fail "SIG$signal waits for ptxas"
    [ $signal = KILL ] || [ -z "$(ls tmp)" ] || fail "SIG$signal leaves $(ls tmp)"
done
[ -n "$(ls tmp)" ] || fail "a killed run leaves no folder: this test shows nothing"
mkdir tmp/ptxgen.others && touch tmp/ptxgen.others/file # a temporary file of another program
"$PTXGEN" -q --spec a.ini --validate=./ptxas || fail "ptxas after a killed run"
[ "$(ls tmp)" = ptxgen.others ] || fail "a killed run's folder stays: $(ls tmp)"

# An unusable folder for temporary files is not reported as an error of ptxas.
TMPDIR=$scratch/none "$PTXGEN" -q --spec a.ini --validate=./ptxas 2>said
[ $? = 3 ] && grep -q "none: error: cannot write a temporary file for ptxas: No such file" said ||
    { head -n 3 said; fail "a TMPDIR that is not there"; }

# Two runs into one folder: one waits for the other.
if command -v flock >/dev/null; then
    rm -rf out && mkdir out
    flock out sh -c 'echo >locked; sleep 1; echo >released' &
    wait_for '[ -f locked ]'
    "$PTXGEN" -q --spec a.ini --out out || fail "a locked folder"
    [ -f released ] || fail "a run did not wait for the lock"
    wait
fi
for ((round = 0; round < 5; round++)); do
    rm -rf out
    for name in a b a b a b; do
        "$PTXGEN" -q --spec $name.ini --out out &
    done
    wait
    for name in a b; do
        cmp -s out/k_kernels.h expected_$name/k_kernels.h && header=$name
        cmp -s out/k_kernels.json expected_$name/k_kernels.json && manifest=$name
    done
    [ "$header" = "$manifest" ] || fail "the header of $header and the manifest of $manifest"
    [ "$(temporaries out)" = 0 ] || fail "runs at the same time leave temporary files"
done

# The message says so if the folder can be neither locked nor written.
"$PTXGEN" -q --spec a.ini --out /proc/self/out 2>said
[ $? = 3 ] || fail "/proc"
exit $failed
