#!/bin/sh
# Acts as cc, but copies objects of ptxgen's libraries from an existing build of the same sources. Tests of the build
# process use it, because these libraries take longest to compile.
#
#     cc_of_build.sh ARGUMENT...     with PTXGEN_OBJECTS, the folder of that build, set
#
# Dependency files stay empty: sources must not change afterwards.
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
