#!/bin/sh
# The tutorial in the README works as it stands there: its commands, ten at most, are run one after
# the other in a copy of the source, each succeeds, and what is shown below one is what it prints.
#
#     tutorial.sh README SOURCE
#
# Nothing is installed: exits with 77 (skipped) where a tool is missing. PTXGEN_OBJECTS may name a build of SOURCE whose
# objects are taken (cc_of_build.sh).
set -eu
readme=$1 source=$2
for tool in meson ninja cc pkg-config tar; do
    command -v $tool >/dev/null || { echo "$tool is missing: skipped"; exit 77; }
done

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/source"
tar -C "$source" --exclude='./build*' --exclude=./.git -cf - . | tar -C "$work/source" -xf -

# commands: a script whose command N prints to N.printed. N.shown: what the README has below it, if
# anything.
awk -v work="$work" '
    /^## / { on = /^## Tutorial/ }
    on && sub(/^    [$] /, "") { count++; print "echo \"" count "\" >" work "/running"
                                 print "{ " $0 "; } >" work "/" count ".printed 2>&1"; next }
    on && sub(/^    /, "") { print >(work "/" count ".shown") }
    END { print count + 0 >(work "/count") }' "$readme" >"$work/commands"

count=$(cat "$work/count")
[ "$count" -ge 1 ] && [ "$count" -le 10 ] || { echo "FAILED: the tutorial has $count commands"; exit 1; }
unset LD_LIBRARY_PATH
if [ -n "${PTXGEN_OBJECTS:-}" ]; then
    export CC="$work/source/tests/cc_of_build.sh" CFLAGS='-O0 -g0'
fi
if ! (cd "$work/source" && NO_INSTALL=1 sh -eu "$work/commands"); then
    cat "$work/$(cat "$work/running").printed"
    echo "FAILED: command $(cat "$work/running") of the tutorial"
    exit 1
fi
for shown in "$work"/*.shown; do
    diff -u "$shown" "${shown%.shown}.printed" || { echo "FAILED: the README shows another output"; exit 1; }
done
echo "$count commands, from the source to a launched kernel"
