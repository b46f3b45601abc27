#!/bin/sh
# Builds a project that runs ptxgen as a build step, in an empty build folder. The program finds its kernels in C and in
# C++. Each later build runs exactly the commands that a change calls for. All folders have a space and a letter outside
# ASCII in their names.
#
#     consumer.sh KIND PTXGEN_SOURCE PTXGEN_BUILD PREFIX
#
# KIND is meson-subproject, meson-cross, meson, cmake-ninja, cmake-make or make. The folder before the dash has the
# build files, source/ the program. The first two use ptxgen as a subproject. Only meson-cross builds it; for
# meson-subproject the commands are inspected, since both would compile the same files. The others use ptxgen as
# installed from PTXGEN_BUILD, with this PREFIX, in a staging folder that is moved afterwards. Exits with 77 (skipped)
# if a tool is missing or the build cannot be moved. PTXGEN_OBJECTS may name a build of PTXGEN_SOURCE to copy objects
# from (cc_of_build.sh).
set -eu

here=$(cd "$(dirname "$0")" && pwd)
. "$here/../stage.sh"
kind=$1 ptxgen_source=$2 ptxgen_build=$3 prefix=$4

case $kind in
meson*) needs="meson ninja" ;;
cmake-ninja) needs="meson cmake ninja" ;;
cmake-make) needs="meson cmake make" ;;
make) needs="meson make pkg-config" ;;
esac
for tool in $needs cc c++; do
    command -v $tool >/dev/null || { echo "$tool is missing: skipped"; exit 77; }
done

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
log=$work/log
source="$work/the engine é"
build="$source/build ü"
installed="$work/installed ß"
# Meson 1.0 reads the "\ " of pkg-config as two characters.
[ "$kind" = meson ] && installed=$work/installed_ß

fail() {
    cat "$log"
    echo "FAILED: $1"
    exit 1
}

configure() {
    case $kind in
    meson-subproject | meson-cross)
        ln -s "$ptxgen_source" "$source/subprojects/ptxgen"
        [ "$kind" = meson-cross ] && set -- --cross-file "$work/cross.ini"
        [ -n "${PTXGEN_OBJECTS:-}" ] && export CC_FOR_BUILD="$ptxgen_source/tests/cc_of_build.sh"
        # Compiling takes longer than running the programs.
        meson setup --wrap-mode forcefallback -Doptimization=plain -Ddebug=false "$@" "$build" "$source"
        tool="$build/subprojects/ptxgen/ptxgen"
        ;;
    meson) meson setup "$build" "$source" ;;
    cmake-*)
        case $kind in *-ninja) generator=Ninja ;; *) generator="Unix Makefiles" ;; esac
        cmake -G "$generator" -DCMAKE_PREFIX_PATH="$installed" -S "$source" -B "$build"
        ;;
    make) build=$source ;;
    esac
}

# Compilers that claim to be for another machine: their programs must not run during the build.
make_cross_file() {
    for compiler in cc c++; do
        printf '#!/bin/sh\nexec %s "$@"\n' $compiler >"$work/cross-$compiler"
        chmod +x "$work/cross-$compiler"
    done
    cat >"$work/cross.ini" <<EOF
[binaries]
c = '$work/cross-cc'
cpp = '$work/cross-c++'
[host_machine]
system = 'linux'
cpu_family = 'aarch64'
cpu = 'aarch64'
endian = 'little'
[properties]
needs_exe_wrapper = true
EOF
}

# Prints each command of a build on one line.
build_verbosely() {
    case $kind in
    meson* | cmake-ninja) ninja -C "$build" -v ;;
    cmake-make) make -C "$build" VERBOSE=1 ;;
    make) make -C "$source" ;;
    esac
}

# Checks how often the next build runs ptxgen and compiles the engine, and that the build after it runs nothing.
build_takes() {
    change=$1 runs=$2 compilations=$3
    sleep 0.05
    build_verbosely >"$log" 2>&1 || fail "$change: the build"
    count ptxgen "$runs" -e '--spec'
    count compiler "$compilations" -e ' -c .*engine\.c'
    build_verbosely >"$log" 2>&1 || fail "$change: the second build"
    count "ptxgen once more" 0 -e '--spec'
    count "compiler once more" 0 -e ' -c '
    count "linker once more" 0 -e ' -o '
}

count() {
    what=$1 wanted=$2
    shift 2
    found=$(grep -c "$@" "$log") || true
    [ "$found" = "$wanted" ] || fail "$change: $what runs $found times, not $wanted"
}

mkdir -p "$source"
cp -R "$here/source/." "$here/${kind%%-*}/." "$source"
case $kind in
meson-subproject) ;;
meson-cross) make_cross_file ;;
*)
    stage "$ptxgen_build" "$work/stage" "$work/copy" >"$log" 2>&1 || fail install
    mv "$work/stage$prefix" "$installed"
    case $kind in meson | make)
        grep -q pcfiledir "$installed/share/pkgconfig/ptxgen.pc" ||
            { echo "configured with pkgconfig.relocatable=false: skipped"; exit 77; }
        ;;
    esac
    tool=$installed/bin/ptxgen
    export PKG_CONFIG_PATH="$installed/share/pkgconfig"
    ;;
esac
configure >"$log" 2>&1 || fail configure

if [ "$kind" = meson-subproject ]; then
    change="the build"
    ninja -C "$build" -t commands >"$log"
    count ptxgen 1 -e '--spec'
    count compiler 2 -e ' -c .*engine\.c'
    count "the compiler, for the main program of ptxgen," 1 -e ' -c .*src/cli/main\.c'
    count "the linker, for ptxgen," 1 -e ' -o subprojects/ptxgen/ptxgen '
    echo "$kind: the build would have ptxgen built and run"
    exit
fi
build_takes "the first build" 1 2
if [ "$kind" = meson-cross ]; then
    # The engine and ptxgen are programs for different machines.
    ninja -C "$build" -t commands >"$log"
    count "the cross compiler, for ptxgen," 0 -e 'cross-c.* -c .*ptxgen'
    count "the cross compiler, for the engine," 2 -e 'cross-c.* -c .*engine\.c'
fi
for program in engine_c engine_cpp; do
    "$build/$program" >"$log" || fail "$program"
    diff "$here/source/expected.txt" "$log" || fail "what $program finds"
done

spec=$source/kernels.ini
touch "$spec"
build_takes "a touched spec" 1 0
echo "; a comment" >>"$spec"
build_takes "a comment in the spec" 1 0
touch "$source/attention.ini"
build_takes "a touched included spec" 1 0
touch "$tool"
build_takes "a newer ptxgen" 1 0

rm "$(find "$build" -name engine_kernels.h)"
build_takes "a header that is gone" 1 2

cp "$spec" "$work/right.ini"
sed 's/^prefix .*/prefix = other/' "$work/right.ini" >"$spec"
if build_verbosely >"$log" 2>&1; then fail "another prefix leaves the old header and a green build"; fi
grep -q 'engine_kernels.h' "$log" || fail "another prefix: no word of the header that is missing"
cp "$work/right.ini" "$spec"
build_verbosely >"$log" 2>&1 || fail "the prefix of before"
sleep 0.05 # one clock tick: make does not see a change within the tick of the build
echo "no such key = 1" >>"$spec"
if build_verbosely >"$log" 2>&1; then fail "a wrong spec does not stop the build"; fi
cp "$work/right.ini" "$spec"
build_takes "a mended spec" 1 0

sed 's/^shape     = .*/shape = 4096x14336/' "$work/right.ini" >"$spec"
build_takes "a changed spec" 1 2
"$build/engine_c" >"$log"
grep -q '^output projection: not generated' "$log" || fail "the program does not see the changed spec"

sed 's/^num_heads .*/num_heads = 64/' "$here/source/attention.ini" >"$source/attention.ini"
build_takes "a changed included spec" 1 2
"$build/engine_c" >"$log"
grep -q '^attention: not generated' "$log" || fail "the program does not see the changed included spec"

sed '/^include/d' "$work/right.ini" >"$spec"
rm "$source/attention.ini"
if [ "$kind" = cmake-make ]; then # CMake reads the new depfile only when the next build has begun
    build_verbosely >"$log" 2>&1 || fail "an included spec that is gone"
else
    build_takes "an included spec that is gone" 1 2
fi

echo "$kind: each build ran what it had to, and the next one nothing"
