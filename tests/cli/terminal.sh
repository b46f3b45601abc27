#!/bin/sh
# Checks that color and progress go to terminals that support them and nowhere else. Needs script(1), which runs a
# program in a pseudo-terminal.
set -u
script --version 2>/dev/null | grep -q util-linux || exit 77
script -qec true /dev/null </dev/null >/dev/null 2>&1 || exit 77 # no pseudo-terminals here
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cd "$scratch" || exit 1
unset NO_COLOR
printf '[f32_gemw]\n' >wrong.ini
printf '[f32_gemv]\nshape = 256x1, 256x2\n' >right.ini
escape=$(printf '\033')
failed=0

# expect escapes|none "SETTINGS" ARGUMENT...: checks ptxgen's output on a terminal with these settings.
expect() {
    wanted=$1 settings=$2
    shift 2
    script -qec "env $settings '$PTXGEN' $*" seen </dev/null >/dev/null 2>&1
    [ $? -lt 128 ] || { echo "FAILED: $settings ptxgen $*: crashed"; failed=1; }
    if grep -q "$escape" seen; then found=escapes; else found=none; fi
    [ "$found" = "$wanted" ] || { echo "FAILED: $settings ptxgen $*: $found"; failed=1; }
}

expect escapes "TERM=xterm" --spec wrong.ini --out o
expect escapes "TERM=xterm NO_COLOR=" --spec wrong.ini --out o
expect none "TERM=xterm NO_COLOR=1" --spec wrong.ini --out o
expect none "TERM=xterm" --spec wrong.ini --out o --color=never
expect none "TERM=dumb" --spec wrong.ini --out o
expect none "-u TERM" --spec wrong.ini --out o
expect escapes "TERM=dumb NO_COLOR=1" --spec wrong.ini --out o --color=always
expect escapes "TERM=xterm NO_COLOR=1" --spec right.ini --verify
expect none "TERM=xterm" --spec right.ini --verify --quiet
expect none "TERM=dumb" --spec right.ini --verify
exit "$failed"
