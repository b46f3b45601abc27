#!/bin/sh
# Tests specs of several files: the order of sections, which file decides, the places of errors, and the depfile. Every
# case writes its files into its own folder.
set -u
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
failed=0

# case_of NAME: begins a case. The name says what must hold.
case_of() {
    name=$1
    rm -rf "$scratch/case"
    mkdir -p "$scratch/case/parts"
    cd "$scratch/case" || exit 1
}

# file NAME: writes standard input to a file.
file() {
    cat >"$1"
}

# expect STATUS ARGUMENT...: checks the exit status, and all output against standard input.
expect() {
    status=$1
    shift
    cat >"$scratch/expected"
    "$PTXGEN" "$@" >"$scratch/printed" 2>&1 </dev/null
    got=$?
    if [ "$got" != "$status" ] || ! diff -u "$scratch/expected" "$scratch/printed"; then
        echo "FAILED: $name: ptxgen $* (status $got, not $status)"
        failed=1
    fi
}

case_of "included sections join in the place of the include, relative to the including file"
file kernels.ini <<'.'
[f32_gemv:first]
shape = 256x1
[ptxgen]
include = parts/a.ini
[f32_gemv:last]
shape = 256x5
.
file parts/a.ini <<'.'
[f32_gemv]
shape = 256x2
[ptxgen]
include = b.ini,
    c.ini
[f32_gemv:more]
shape = 256x4
.
file parts/b.ini <<'.'
[ptxgen]
prefix = from_b
.
file parts/c.ini <<'.'
[f32_gemv]
shape = 256x3
.
expect 0 --spec kernels.ini --print-outputs <<'.'
from_b_kernels.h
from_b_kernels.json
from_b.f32_gemv_k256_n1.sm_80.ptx
from_b.f32_gemv_k256_n2.sm_80.ptx
from_b.f32_gemv_k256_n3.sm_80.ptx
from_b.f32_gemv_k256_n4.sm_80.ptx
from_b.f32_gemv_k256_n5.sm_80.ptx
.

case_of "the depfile lists every file of the spec"
mkdir "a b"
printf '[ptxgen]\ninclude = common.ini\n[f32_gemv]\nshape = 256x1\n' >"a b/kernels.ini"
printf '[ptxgen]\nprefix = llama\n' >"a b/common.ini"
"$PTXGEN" --quiet --spec "a b/kernels.ini" --out build --depfile kernels.d || failed=1
printf 'build/llama_kernels.h: a\\ b/kernels.ini \\\n  a\\ b/common.ini\na\\ b/common.ini:\n' |
    diff -u - kernels.d || { echo "FAILED: $name"; failed=1; }

case_of "the file that includes decides, and what it does not say comes from what it includes"
file kernels.ini <<'.'
[ptxgen]
include = parts/a.ini, parts/b.ini
prefix = mine
[f32_gemv]
n = 1
.
file parts/a.ini <<'.'
[ptxgen]
prefix = theirs
dims = dynamic
.
file parts/b.ini <<'.'
[ptxgen]
prefix = other
.
expect 0 --spec kernels.ini --print-outputs <<'.'
mine_kernels.h
mine_kernels.json
mine.f32_gemv_n1_dynamic.sm_80.ptx
.

case_of "two included files must not both decide"
file kernels.ini <<'.'
[ptxgen]
include = parts/a.ini
include = parts/b.ini
[f32_gemv]
shape = 256x1
.
printf '[ptxgen]\nprefix = a\n' >parts/a.ini
printf '[ptxgen]\nprefix = b\n' >parts/b.ini
expect 1 --spec kernels.ini --print-outputs <<'.'
In file included from kernels.ini:3:
parts/b.ini:2:1: error: 'prefix' is also set on line 2 of parts/a.ini; set it in the file that includes both [E009]
    2 | prefix = b
      | ^~~~~~
ptxgen: 1 error, nothing written
.

case_of "errors are shown in their file, in the order of one long text"
file kernels.ini <<'.'
[ptxgen]
include = parts/a.ini
[f32_gemv]
shape = wide
.
file parts/a.ini <<'.'
[ptxgen]
include = b.ini
[f32_gemw]
shape = 256x1
.
file parts/b.ini <<'.'
[f32_gemv]
k = 256
n = many, few
.
expect 1 --spec kernels.ini --out build <<'.'
In file included from kernels.ini:2:
In file included from parts/a.ini:2:
parts/b.ini:3:5: error: n = 'many' is not a number; write 4096, 4k, 1M, 2^12 or a range 1..8 [E012]
    3 | n = many, few
      |     ^~~~
parts/b.ini:3:11: error: n = 'few' is not a number; write 4096, 4k, 1M, 2^12 or a range 1..8 [E012]
    3 | n = many, few
      |           ^~~
In file included from kernels.ini:2:
parts/a.ini:3:2: error: unknown kernel family 'f32_gemw'; did you mean 'f32_gemv'? [E006]
    3 | [f32_gemw]
      |  ^~~~~~~~
kernels.ini:4:9: error: 'wide' is not a shape; write K x N, such as 4096x14336 [E018]
    4 | shape = wide
      |         ^~~~
ptxgen: 4 errors, nothing written
.

case_of "a file that is not there is status 3, shown where it is included"
printf '[ptxgen]\ninclude = parts/none.ini\n' >kernels.ini
expect 3 --spec kernels.ini --out build <<'.'
kernels.ini:2:11: error: cannot read parts/none.ini: No such file or directory [E026]
    2 | include = parts/none.ini
      |           ^~~~~~~~~~~~~~
ptxgen: 1 error, nothing written
.
printf '[ptxgen]\ninclude = parts\n' >kernels.ini
expect 3 --spec kernels.ini --out build <<'.'
kernels.ini:2:11: error: cannot read parts: Is a directory [E026]
    2 | include = parts
      |           ^~~~~
ptxgen: 1 error, nothing written
.

case_of "a file that includes itself is an error"
printf '[ptxgen]\ninclude = ./kernels.ini\n[f32_gemv]\nshape = 256x1\n' >kernels.ini
expect 1 --spec kernels.ini --out build <<'.'
kernels.ini:2:11: error: ./kernels.ini includes itself; remove this include [E033]
    2 | include = ./kernels.ini
      |           ^~~~~~~~~~~~~
ptxgen: 1 error, nothing written
.

case_of "a circle of files is an error, under whatever names"
printf '[ptxgen]\ninclude = parts/a.ini\n[f32_gemv]\nshape = 256x1\n' >kernels.ini
printf '[ptxgen]\ninclude = ../linked.ini\n' >parts/a.ini
ln -s kernels.ini linked.ini
expect 1 --spec kernels.ini --out build <<'.'
In file included from kernels.ini:2:
parts/a.ini:2:11: error: parts/../linked.ini includes itself through other files; remove this include [E033]
    2 | include = ../linked.ini
      |           ^~~~~~~~~~~~~
ptxgen: 1 error, nothing written
.

case_of "a file that is included twice is read once"
printf '[ptxgen]\ninclude = parts/a.ini, parts/b.ini\n' >kernels.ini
printf '[ptxgen]\ninclude = common.ini\n[f32_gemv]\nshape = 256x1\n' >parts/a.ini
printf '[ptxgen]\ninclude = ./common.ini\n[f32_gemv]\nshape = 256x2\n' >parts/b.ini
printf '[ptxgen]\nprefix = once\n[f32_gemv]\nshape = 256x3\n' >parts/common.ini
expect 0 --spec kernels.ini --print-outputs <<'.'
once_kernels.h
once_kernels.json
once.f32_gemv_k256_n3.sm_80.ptx
once.f32_gemv_k256_n1.sm_80.ptx
once.f32_gemv_k256_n2.sm_80.ptx
.

case_of "an instance of two files is made once, with a note that names the other file"
printf '[f32_gemv]\nshape = 256x1\n[ptxgen]\ninclude = parts/a.ini\n' >kernels.ini
printf '[f32_gemv]\nshape = 256x1\n' >parts/a.ini
expect 0 --spec kernels.ini --print-outputs <<'.'
In file included from kernels.ini:4:
parts/a.ini:1:1: note: f32_gemv_k256_n1 is also requested by the section on line 1 of kernels.ini; it is generated once [E025]
    1 | [f32_gemv]
      | ^~~~~~~~~~
ptxgen_kernels.h
ptxgen_kernels.json
ptxgen.f32_gemv_k256_n1.sm_80.ptx
.

case_of "a dash is a file of that name, not standard input"
printf '[ptxgen]\ninclude = -\n' >kernels.ini
expect 3 --spec kernels.ini --out build <<'.'
kernels.ini:2:11: error: cannot read ./-: No such file or directory [E026]
    2 | include = -
      |           ^
ptxgen: 1 error, nothing written
.

case_of "a spec on standard input includes files of the present folder"
printf '[f32_gemv]\nshape = 256x1\n' >parts/a.ini
printf '[ptxgen]\ninclude = parts/a.ini\n' |
    "$PTXGEN" --quiet --spec - --out build --depfile kernels.d || { echo "FAILED: $name"; failed=1; }
printf 'build/ptxgen_kernels.h: parts/a.ini\n' | diff -u - kernels.d || { echo "FAILED: $name"; failed=1; }

case_of "a depfile does not overwrite an included file"
printf '[ptxgen]\ninclude = parts/a.ini\n' >kernels.ini
printf '[f32_gemv]\nshape = 256x1\n' >parts/a.ini
cp parts/a.ini saved
expect 2 --spec kernels.ini --out build --depfile parts/a.ini <<'.'
parts/a.ini: error: --depfile would overwrite this file of the spec; name another file [E035]
ptxgen: 1 error, nothing written
.
cmp -s parts/a.ini saved || { echo "FAILED: $name: overwritten"; failed=1; }

case_of "a spec and what it includes are read once from a pipe that the command line names, never from another"
printf '[f32_gemv]\nshape = 256x1\n' >parts/a.ini
printf '[ptxgen]\ninclude = parts/a.ini\n' >kernels.ini
for stream in /dev/stdin /dev/fd/0 /dev/fd/9; do
    rm -rf build
    "$PTXGEN" --quiet --spec $stream --out build --depfile kernels.d <kernels.ini 9<kernels.ini ||
        { echo "FAILED: $name: $stream"; failed=1; }
    printf 'build/ptxgen_kernels.h: parts/a.ini\n' | diff -u - kernels.d || { echo "FAILED: $name"; failed=1; }
done
mkfifo pipe
printf '[ptxgen]\ninclude = pipe, /dev/stdin\n' >kernels.ini
expect 3 --spec kernels.ini --out build <<'.'
kernels.ini:2:11: error: cannot read pipe: not a regular file [E026]
    2 | include = pipe, /dev/stdin
      |           ^~~~
kernels.ini:2:17: error: cannot read /dev/stdin: not a regular file [E026]
    2 | include = pipe, /dev/stdin
      |                 ^~~~~~~~~~
ptxgen: 2 errors, nothing written
.
expect 3 --spec pipe --out build <<'.'
pipe: error: cannot read: not a regular file [E026]
ptxgen: 1 error, nothing written
.

# A long chain of includes takes no longer than one file that includes them all, and its trace is limited.
case_of "a chain of 3000 files is read, and one of 10001 refused"
i=0
while [ $i -lt 3000 ]; do
    printf '[ptxgen]\ninclude = %s.ini\nprefix = k\n' $((i += 1))
done | awk '/^.ptxgen/ { close(file); file = "parts/" n++ ".ini" } { print >file }'
printf '[f32_gemv]\nshape = 256x1\n' >parts/3000.ini
expect 0 --spec parts/0.ini --print-outputs <<'.'
k_kernels.h
k_kernels.json
k.f32_gemv_k256_n1.sm_80.ptx
.
printf '[f32_gemv]\nshape = 256x0\n' >parts/3000.ini
"$PTXGEN" --spec parts/0.ini --print-outputs >"$scratch/printed" 2>&1
[ "$(wc -l <"$scratch/printed")" = 25 ] && grep -q '^In a file included through 2980 others:' "$scratch/printed" ||
    { head -n 3 "$scratch/printed"; echo "FAILED: $name: what is shown"; failed=1; }


case_of "each .ptx names the section that it comes from, with its file and line"
file kernels.ini <<'.'
[ptxgen]
include = parts/a.ini

[f32_gemv:small] ; a note
shape = 256x1
.
file parts/a.ini <<'.'
; two lines

[f32_gemv]
shape = 256x2
.
"$PTXGEN" -q --spec "$PWD/kernels.ini" --out out || failed=1
grep -qx '// from kernels.ini:4 \[f32_gemv:small\]' out/*_n1.*.ptx && grep -qx '// from a.ini:3 \[f32_gemv\]' out/*_n2.*.ptx || {
    head -4 out/*.ptx
    echo "FAILED: $name"
    failed=1
}

cd / || exit 1
exit "$failed"
