#!/bin/sh
# out/ holds what the tool writes for the starter spec: neither more nor less.
#
#   fresh.sh SOURCE_FOLDER
set -eu
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
"$PTXGEN" -q --spec "$1/templates/kernels.ini" --out "$scratch"
diff -rq "$1/out" "$scratch"
