#!/bin/sh
# cc, but that it takes objects of ptxgen's libraries, which take longest to compile, from a build of the same sources:
# for tests of how ptxgen is built, not of what it is then.
#
#   cc_of_build.sh ARGUMENT...     with PTXGEN_OBJECTS, the folder of that build, set
#
# Of dependencies nothing is noted: no source is to change after that.
set -eu
output='' dependencies='' before=''
for word; do
    case $before in
    -o) output=$word ;;
    -MF) dependencies=$word ;;
    esac
    before=$word
done
part=${output#subprojects/ptxgen/}
case $part in
libptxgen-*.a.p/*.o | src/libcuda/*.p/*.o)
    if [ -n "$dependencies" ] && [ -f "$PTXGEN_OBJECTS/$part" ]; then
        cp "$PTXGEN_OBJECTS/$part" "$output"
        echo "$output:" >"$dependencies"
        exit 0
    fi
    ;;
esac
exec cc "$@"
