#!/bin/bash
# Runs what README.md prints: its shell blocks, its C, and the tests and targets that it names.
#
#   readme.sh SOURCE BUILD       with PTXGEN set
#
# A shell block's commands start with "$". They run one after the other, in a copy of the source's root, with an installed
# ptxgen on PATH. The lines below a command are part of what it prints, in this order. Exits with 77 (skipped) without
# Meson or cc. (.ci/run runs the first two code lines, tests/install.sh "meson install".)
set -u
. "$(dirname "$0")/stage.sh"
root=$1 build=$2 readme=$1/README.md
for tool in meson cc; do
    command -v $tool >/dev/null || { echo "$tool is missing: skipped"; exit 77; }
done
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
failed=0

fail() {
    echo "FAILED: $1"
    failed=1
}

[ "$(wc -l <"$readme")" -le 110 ] || fail "the README has more than 110 lines"

stage "$build" "$scratch/installed" "$scratch/copy"
PATH=$(dirname "$(find "$scratch/installed" -path '*/bin/ptxgen')"):$PATH
export PATH

mkdir "$scratch/root"
ln -s "$build" "$scratch/root/build"
awk -v work="$scratch" '
    /^    \$ / { count++; print "echo " count " >" work "/running"
                 print "{ " substr($0, 7) "; } >" work "/" count ".printed 2>&1"; print substr($0, 7) >(work "/commands"); on = 1; next }
    !/^    / { on = 0 }
    on { print substr($0, 5) >(work "/" count ".shown") }' "$readme" >"$scratch/script"
commands=$(wc -l <"$scratch/commands")
[ "$commands" -ge 4 ] || fail "$commands commands"
if ! (cd "$scratch/root" && bash -eu "$scratch/script"); then
    cat "$scratch/$(cat "$scratch/running").printed"
    fail "command $(cat "$scratch/running") of the README"
fi
for shown in "$scratch"/*.shown; do
    grep -nxFf "$shown" "${shown%.shown}.printed" | cut -d: -f 2- | cmp -s - "$shown" || {
        diff -u "$shown" "${shown%.shown}.printed"
        fail "the README shows another output of command $(basename "$shown" .shown)"
    }
done
grep -q warning "$scratch"/*.printed && { cat "$scratch"/*.printed; fail "a command of the README warns"; }

# Kernels of a model name its section.
for kernel in "$scratch"/root/engine/*.ptx; do
    grep -q '^// from model.ini:[0-9]* \[decoder\]$' "$kernel" || { head -4 "$kernel"; fail "$kernel does not name its section"; break; }
done

# The C block. Its preprocessor lines go first, the others into a function.
sed -n '/^## In a program/,/^## /s/^    //p' "$readme" >"$scratch/block"
{
    printf '#include <dlfcn.h>\n'
    grep '^#' "$scratch/block"
    printf 'void run(ptxgen_stream stream, ptxgen_deviceptr y, ptxgen_deviceptr w, ptxgen_deviceptr x)\n{\n'
    grep -v '^#' "$scratch/block"
    printf '}\n'
} >"$scratch/block.c"
[ "$(grep -c . "$scratch/block")" -ge 5 ] || fail "the README has no C"
cc -std=gnu11 -Wall -Wextra -Werror -I"$root" -c -o "$scratch/block.o" "$scratch/block.c" || fail "the README's C"

# Checks the names in `build/ptxgen-test FILTER` and `ninja -C build TARGET`, the links, and the families.
grep -o '`[^`]*`' "$readme" | tr -d '`' >"$scratch/inline"
while read -r filter; do
    "$build/ptxgen-test" --list "$filter" | grep -q . || fail "no test is named $filter"
done < <(sed -n 's/^build\/ptxgen-test //p' "$scratch/inline")
while read -r target; do
    grep -q "^build $target:" "$build/build.ninja" || fail "no target is named $target"
done < <(sed -n 's/^ninja -C build \([a-z-]*\).*/\1/p' "$scratch/inline")
for file in $(grep -o '^\(tests\|templates\|gen\|src\)/[^ ]*' "$scratch/inline") $(sed -n 's/.*](\([^)]*\)).*/\1/p' "$readme"); do
    [ -e "$root/$file" ] || fail "there is no $file"
done
"$PTXGEN" --list >"$scratch/families"
while read -r family; do
    grep -q "^  $family " "$scratch/families" || fail "no family is named $family"
done < <(sed -n '/^| part of a model/,/^$/p' "$readme" | grep -o '`[a-z0-9]*_[a-z0-9_]*`' | tr -d '`' | grep -v '^sm_\|^q8_0')

exit $failed
