#!/bin/sh
# Generates the page of --report and runs browser.py on it, which clicks and takes pictures.
#
#     PTXGEN=build/ptxgen tests/report/browser.sh tests/report/report.ini PICTURE_FOLDER
#
# Exits with 77 (skipped) without Chromium and its driver, or without Selenium for Python.
set -eu
here=$(cd "$(dirname "$1")" && pwd)
page=$(mktemp -d)
trap 'rm -rf "$page"' EXIT

browser=$(command -v chromium || command -v chromium-browser || command -v google-chrome || true)
driver=$(command -v chromedriver || true)
python=
for candidate in python3 /usr/bin/python3; do
    if "$candidate" -c 'import selenium' 2>/dev/null; then python=$candidate; fi
done
if [ -z "$browser" ] || [ -z "$driver" ] || [ -z "$python" ]; then
    echo "skipped: needs chromium, chromedriver and Selenium for Python (Debian: chromium-driver python3-selenium)"
    exit 77
fi

# A ptxas that needs no CUDA: 40 registers on sm_75, 80 on others.
"$PTXGEN" -q --spec "$1" --validate="$here/stand_in_ptxas.sh" --verify --out "$page" --report "$page/all & some.html"
"$PTXGEN" -q --spec "$1" --report "$page/unchecked.html"
mkdir -p "$2"
"$python" "$here/browser.py" "$browser" "$driver" "$page/all & some.html" "$2"
