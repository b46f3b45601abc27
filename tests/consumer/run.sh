#!/bin/sh
# A project that uses ptxgen as a build step: builds, finds its kernels in C and in C++, does nothing
# when built again, and makes the header anew when the spec changes.
#
#     PTXGEN=build/ptxgen tests/consumer/run.sh
#
# Exits with 77 (skipped) where Meson, Ninja or a C++ compiler is missing.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
ptxgen=${PTXGEN:-ptxgen}
case $ptxgen in
*/*) ptxgen=$(cd "$(dirname "$ptxgen")" && pwd)/$(basename "$ptxgen") ;;
esac
for tool in meson ninja c++; do
    command -v $tool >/dev/null || { echo "$tool is missing: skipped"; exit 77; }
done

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cp -R "$here/meson" "$work/source"
source=$work/source
build="$work/build folder"

fail() {
    echo "FAILED: $1"
    exit 1
}

meson setup -Dptxgen="$ptxgen" "$build" "$source" >"$work/log" 2>&1 || { cat "$work/log"; fail setup; }
ninja -C "$build" >"$work/log" 2>&1 || { cat "$work/log"; fail build; }

for program in engine_c engine_cpp; do
    "$build/$program" >"$work/$program.txt"
    diff "$source/expected.txt" "$work/$program.txt" || fail "what $program finds"
done

ninja -C "$build" -n | grep -q 'no work to do' || fail "a second build does something"

# The same spec, touched: ptxgen runs, its files stay, nothing is compiled.
sleep 1
touch "$source/kernels.ini"
ninja -C "$build" -v >"$work/log"
grep -q -e '--depfile' "$work/log" || { cat "$work/log"; fail "a touched spec does not run ptxgen"; }
if grep -q 'engine\.c ' "$work/log"; then
    cat "$work/log"
    fail "a touched spec compiles the engine again"
fi

sed 's/^shape     = .*/shape = 4096x14336/' "$source/kernels.ini" >"$work/fewer.ini"
cp "$work/fewer.ini" "$source/kernels.ini"
ninja -C "$build" >"$work/log" 2>&1 || { cat "$work/log"; fail "build after a change"; }
"$build/engine_c" | grep -q '^output projection: not generated' || fail "the changed spec is not seen"

echo "a consumer builds in C and in C++, and only what changed is built again"
