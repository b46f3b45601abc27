#!/bin/sh
# Checks that the files of --init engine build with Meson and a ptxgen that is not installed, that a changed spec makes
# the header again, and that the engine prints text.
#
#     PTXGEN=build/ptxgen tests/engine/build.sh MODEL.gguf OTHER.gguf
#
# The layers of MODEL and OTHER have different types. Exits with 77 (skipped) if a tool is missing.
set -eu
model=$(realpath "$1") other=$(realpath "$2") ptxgen=$(realpath "$PTXGEN")
for tool in meson ninja cc pkg-config; do
    command -v $tool >/dev/null || { echo "$tool is missing: skipped"; exit 77; }
done
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

fail() {
    cat log
    echo "FAILED: $1"
    exit 1
}

"$ptxgen" --init engine --from-gguf "$model" >log 2>&1 || fail "--init engine"
next=$(sed -n 's/.*; next: //p' log)
[ "$next" = "cd engine && meson setup build && ninja -C build" ] || fail "what comes next: $next"

# The printed command, with options: ptxgen is not on PATH, and warnings are errors here, not in a release.
mv engine "the engine"
cd "the engine"
meson setup build -Dptxgen="$ptxgen" -Dwerror=true -Doptimization=0 >../log 2>&1 || { cd ..; fail "meson setup"; }
ninja -C build >../log 2>&1 || { cd ..; fail "ninja"; }
cd ..
"$ptxgen" run "the engine/build/engine" "$model" "once" -n 2 >text 2>log || fail "the engine"
grep -q '^once' text || fail "the text"
ninja -C "the engine/build" -n >log
grep -q 'no work to do' log || fail "the second build has work to do"

"$ptxgen" -q --from-gguf "$other" >"the engine/model.ini"
ninja -C "the engine/build" >log 2>&1 || fail "the build of another model"
"$ptxgen" run "the engine/build/engine" "$other" "once" -n 2 >text 2>log || fail "the engine of another model"
