#!/bin/sh
# Checks that out/ has exactly the files that the tool writes from the starter spec for sm_80.
#
#     fresh.sh SOURCE_FOLDER
set -eu
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
"$PTXGEN" -q --spec "$1/templates/kernels.ini" --target sm_80 --out "$scratch"
diff -rq "$1/out" "$scratch"
