#!/bin/sh
# Checks that the installed list of entry points has exactly the functions that the library exports.
#
#     tests/libcuda/entry_points.sh LIST LIBRARY
#
# Exits with 77 (skipped) without nm.
set -eu
export LC_ALL=C
command -v nm >/dev/null || { echo "nm is missing: skipped"; exit 77; }

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
sed -n 's/^\(cu[A-Za-z0-9_]*\) .*/\1/p' "$1" | sort >"$work/listed"
nm -D --defined-only "$2" | sed 's/.* //' | grep -v '_pt[ds][sz]$' | sort >"$work/exported"
diff "$work/listed" "$work/exported" || { echo "FAILED: the list is not what $2 exports"; exit 1; }
grep -q '^cuLaunchKernel .* built$' "$1" && grep -q '^cuGetExportTable .* not supported$' "$1" ||
    { echo "FAILED: the list says otherwise what is built"; exit 1; }
echo "$(wc -l <"$work/listed") entry points"
