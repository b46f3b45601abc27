#!/bin/sh
# Checks that "ptxgen run" runs a program on the emulated driver without any path set: from the build folder, as
# installed, and after the installation was moved. Also checks that pkg-config and CMake name the driver's folder.
#
#     run.sh PTXGEN_BUILD PREFIX PROGRAM
#
# PROGRAM prints the device's name first. Exits with 77 (skipped) without Meson.
set -eu
. "$(dirname "$0")/../../stage.sh"
build=$1 prefix=$2 program=$(realpath "$3")
command -v meson >/dev/null || { echo "meson is missing: skipped"; exit 77; }
unset LD_LIBRARY_PATH

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

fail() {
    echo "FAILED: $1"
    exit 1
}

runs_emulated() {
    "$1" run "$program" >"$work/log" || fail "$1 run ends with status $?"
    head -n 1 "$work/log" | grep -q '^ptxgen emulator' || fail "$1 run: another device"
}

# status WANTED MESSAGE ARGUMENT...: checks a command's exit status and message.
status() {
    wanted=$1 message=$2
    shift 2
    got=0
    "$@" >"$work/log" 2>&1 || got=$?
    [ "$got" = "$wanted" ] || fail "$* ends with status $got"
    grep -q -e "$message" "$work/log" || { cat "$work/log"; fail "$*: no word of '$message'"; }
}

ptxgen=$build/ptxgen
runs_emulated "$ptxgen"

status 7 'one two;three' "$ptxgen" run sh -c 'echo "$1;$2"; exit 7' sh "one two" three
status 137 '' sh -c "\"$ptxgen\" run sh -c 'kill -9 \$\$'"
status 0 '^from here$' sh -c "echo from here | '$ptxgen' run cat"
status 0 ':/mine$' env LD_LIBRARY_PATH=/mine "$ptxgen" run -- sh -c 'echo $LD_LIBRARY_PATH'
status 2 'needs a program' "$ptxgen" run
status 2 "run has no options: '--quiet'" "$ptxgen" run --quiet "$program"
status 2 "'no_such_program' is not an executable program" "$ptxgen" run no_such_program
status 2 "'$work' is not an executable program" "$ptxgen" run "$work"
cp "$program" "$work/engine"
(cd "$work" && status 2 "did you mean './engine'" "$ptxgen" run engine)
printf 'no program\n' >"$work/text"
chmod +x "$work/text"
status 2 'cannot run .*text: Exec format error' "$ptxgen" run "$work/text"

stage "$build" "$work/staging folder" "$work/copy"
mv "$work/staging folder$prefix" "$work/moved ß"
runs_emulated "$work/moved ß/bin/ptxgen"
ln -s "$work/moved ß/bin/ptxgen" "$work/link"
runs_emulated "$work/link"

# A copied program finds the folder it was configured for, or none.
if ! find "$prefix" -name libcuda.so.1 2>/dev/null | grep -q ptxgen; then
    cp "$work/moved ß/bin/ptxgen" "$work/alone"
    status 2 'emulated driver is missing: .*/ptxgen$' "$work/alone" run "$program"
fi

if command -v pkg-config >/dev/null && grep -q pcfiledir "$work/moved ß/share/pkgconfig/ptxgen.pc"; then
    cp -R "$work/moved ß" "$work/moved"
    folder=$(PKG_CONFIG_PATH=$work/moved/share/pkgconfig pkg-config --variable=libcudadir ptxgen)
    [ -f "$folder/libcuda.so.1" ] || fail "libcudadir of ptxgen.pc is $folder"
    LD_LIBRARY_PATH=$folder "$program" >"$work/log" || fail "the driver of ptxgen.pc"
fi

if command -v cmake >/dev/null; then
    cat >"$work/CMakeLists.txt" <<EOF
cmake_minimum_required(VERSION 3.20)
project(engine NONE)
find_package(ptxgen REQUIRED)
enable_testing()
add_test(NAME by_ptxgen COMMAND ptxgen::ptxgen run "$program")
add_test(NAME by_folder COMMAND "$program")
set_tests_properties(by_folder PROPERTIES ENVIRONMENT "LD_LIBRARY_PATH=\${PTXGEN_LIBCUDA_DIR}")
EOF
    cmake -DCMAKE_PREFIX_PATH="$work/moved ß" -S "$work" -B "$work/cmake" >"$work/log" 2>&1 ||
        { cat "$work/log"; fail "CMake"; }
    (cd "$work/cmake" && ctest -V) >"$work/log" 2>&1 || { cat "$work/log"; fail "ctest"; }
    [ "$(grep -c ': ptxgen emulator' "$work/log")" = 2 ] || { cat "$work/log"; fail "the driver in CMake"; }
fi
echo "programs run on the emulated driver"
