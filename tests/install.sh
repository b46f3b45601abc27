#!/bin/sh
# Installs into a staging folder (DESTDIR), compares the files with a list, and checks that uninstalling removes them
# and their folders, and nothing else.
#
#     install.sh BUILD LIST NAME=FOLDER...
#
# LIST has one file per line, its folder as {NAME}. Exits with 77 (skipped) without Meson.
set -eu
. "$(dirname "$0")/stage.sh"
build=$1 list=$2
shift 2
command -v meson >/dev/null || { echo "meson is missing: skipped"; exit 77; }

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

files_in() {
    (cd "$1" && find . ! -type d) | sed 's/^\.//' | LC_ALL=C sort
}

cp "$list" "$work/listed"
for folder; do
    sed "s|^{${folder%%=*}}|${folder#*=}|" "$work/listed" >"$work/named"
    mv "$work/named" "$work/listed"
done
LC_ALL=C sort -o "$work/listed" "$work/listed"

stage "$build" "$work/staging folder" "$work/copy"
files_in "$work/staging folder" >"$work/installed"
diff -u "$work/listed" "$work/installed" || { echo "FAILED: installed other files than $list says"; exit 1; }

echo mine >"$work/staging folder/somebody_else"
(cd "$work/copy" && meson --internal uninstall >"$work/log") # "ninja uninstall" runs this command
left=$(cd "$work/staging folder" && find . ! -name .)
[ "$left" = ./somebody_else ] || { echo "$left"; echo "FAILED: uninstall left more than was there before"; exit 1; }
echo "$(wc -l <"$work/installed") files are installed, and uninstalled"
