#!/bin/bash
# Checks that old files stay whole if writing fails: a full disk, a folder without write permission, a killed process.
#
#     failing_disk.sh LLAMA_8B_INI
#
# PTXGEN names the tool. Cases that need a small file system or another user are left out if these cannot be had.
set -u
scratch=$(mktemp -d)
trap 'umount "$scratch/small" 2>/dev/null; chmod -R u+w "$scratch"; rm -rf "$scratch"' EXIT
sed 's/^targets = .*/targets = sm_80/' "$1" >"$scratch/old.ini"
sed 's/^targets = .*/targets = sm_75/; s/n = 128256/n = 128000/' "$1" >"$scratch/new.ini"
cd "$scratch" || exit 1

fail() {
    echo "$*"
    exit 1
}
unchanged() { # FOLDER WHAT: has the files and bytes of expected/
    diff -r expected "$1" >difference || { head -5 difference; fail "$2 changed the output"; }
}

"$PTXGEN" -q --spec old.ini --out expected || fail "the old spec failed"

# A small file system has room for the old set, but not for a second one.
mkdir small
size=$(du -sk expected | cut -f1)
if mount -t tmpfs -o "size=$((size * 3 / 2))k" tmpfs small 2>/dev/null; then
    "$PTXGEN" -q --spec old.ini --out small/out || fail "the old set does not fit"
    "$PTXGEN" -q --spec new.ini --out small/out 2>message
    [ $? = 3 ] || fail "a full disk: exit status"
    grep -q 'No space left on device' message || fail "a full disk: $(cat message)"
    grep -q 'nothing written' message || fail "a full disk: $(cat message)"
    unchanged small/out "a full disk"
else
    echo "left out: no small file system can be mounted here"
fi

# Standard output on a full device.
"$PTXGEN" --list >/dev/full 2>message
[ $? = 3 ] || fail "/dev/full: exit status"

# A folder without write permission. Root can write anyway, so the tool runs as nobody.
cp -r expected locked && chmod a-w locked && chmod a+rx "$scratch"
if [ "$(id -u)" = 0 ]; then
    command -v setpriv >/dev/null && as_user="setpriv --reuid=65534 --regid=65534 --clear-groups"
else
    as_user=""
fi
if [ -n "${as_user+set}" ] && $as_user test -x "$PTXGEN"; then
    chmod a+r old.ini new.ini
    $as_user "$PTXGEN" -q --spec new.ini --out locked 2>message
    [ $? = 3 ] || fail "a locked folder: exit status: $(cat message)"
    grep -q 'Permission denied' message || fail "a locked folder: $(cat message)"
    unchanged locked "a locked folder"
else
    echo "left out: no other user can run the tool here"
fi

# After a kill at any moment, a file has its old or its new bytes. The next run removes temporary files.
"$PTXGEN" -q --spec new.ini --out wanted || fail "the new spec failed"
for delay in 0 0.001 0.002 0.004 0.006 0.008 0.01 0.015 0.02; do
    rm -rf killed && cp -r expected killed
    "$PTXGEN" -q --spec new.ini --out killed &
    sleep "$delay"
    kill -9 $! 2>/dev/null
    wait $! 2>/dev/null
    for file in killed/*.h killed/*.json killed/*.ptx; do
        name=${file#killed/}
        cmp -s "$file" "expected/$name" || cmp -s "$file" "wanted/$name" ||
            fail "killed after $delay s: $name is neither old nor new"
    done
    "$PTXGEN" -q --spec old.ini --out killed --prune || fail "the run after the killed one"
    unchanged killed "a run killed after $delay s"
done
