#!/bin/sh
# Tests --init engine and --init server: they write all files of the program and no other, the spec of a Llama or of the
# named model, and nothing if one of the files exists.
#
#     PTXGEN=build/ptxgen tests/engine/init.sh SOURCE LLAMA.gguf MODEL.gguf
#
# LLAMA is the file that the starter's spec was made from.
set -u
source=$(realpath "$1") llama=$(realpath "$2") model=$(realpath "$3") ptxgen=$(realpath "$PTXGEN")
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cd "$scratch" || exit 1
failed=0

fail() {
    echo "FAILED: $1"
    failed=1
}

# wanted STATUS ARGUMENT...: runs ptxgen and checks its exit status.
wanted() {
    status=$1
    shift
    "$ptxgen" "$@" >out 2>err
    found=$?
    [ $found -eq "$status" ] || { cat err; fail "$*: status $found, not $status"; }
}

# said FILE TEXT: the file has exactly this text.
said() {
    [ "$(cat "$1")" = "$2" ] || { cat "$1"; fail "not said: $2"; }
}

wanted 0 --init engine
said out "ptxgen: wrote 21 files -> engine; next: ptxgen --from-gguf MODEL.gguf > engine/model.ini"
said err ""
[ "$(find engine | wc -l)" -eq 22 ] || { find engine; fail "21 files"; }
for file in "$source"/templates/engine/* "$source"/src/model/gguf/*.[ch]; do
    cmp "$file" "engine/$(basename "$file")" || fail "$file is another in the engine"
done
"$ptxgen" -q --from-gguf "$llama" | sed '/^;/d' >spec
sed '/^;/d' engine/model.ini | diff -u - spec || fail "the starter's spec: of $llama, templates/engine/model.ini has to be"
[ "$(wc -l <engine/engine.c)" -le 400 ] || fail "engine.c has more than 400 lines"
for file in engine/*.c; do # a program may use the tokenizer without a model's header
    grep -q loader.h "$file" || "${CC:-cc}" -std=c99 -fsyntax-only "$file" || fail "$file needs another file"
done

wanted 2 --init server
said err "ptxgen: --init server needs --from-gguf FILE, whose spec it writes
Try 'ptxgen --help'."
wanted 0 --init server --from-gguf "$llama"
said out "ptxgen: wrote 23 files -> server; next: cd server && meson setup build && ninja -C build"
[ "$(find server | wc -l)" -eq 24 ] || { find server; fail "23 files"; }
for file in "$source"/templates/server/*; do
    cmp "$file" "server/$(basename "$file")" || fail "$file is another in the server"
done
"$ptxgen" -q --from-gguf "$llama" | diff - server/model.ini >changed
[ "$(grep -c '^>' changed)" -eq 4 ] && [ "$(grep -c '^<' changed)" -eq 1 ] || { cat changed; fail "the server's spec"; }
[ "$(wc -l <server/server.c)" -lt 600 ] || fail "server.c has 600 lines or more"
"$ptxgen" --spec server/model.ini --print-outputs >/dev/null || fail "the server's spec is wrong"

mkdir some
echo mine >some/split.h
wanted 3 --init engine --out some
said err "some/split.h: error: the file exists and is not overwritten [E027]
ptxgen: 1 error, nothing written"
[ "$(ls some)" = split.h ] || fail "files were written beside one that was there"

wanted 0 --init=engine --out a/folder --from-gguf "$model" --target sm_80,sm_90 --max-seq-len 16 --kv-type f32
said out "ptxgen: wrote 21 files -> a/folder; next: cd a/folder && meson setup build && ninja -C build"
grep -q '^ptxgen: llama, 2 layers' err || fail "nothing is said of the model"
"$ptxgen" -q --from-gguf "$model" --target sm_80,sm_90 --max-seq-len 16 --kv-type f32 | cmp - a/folder/model.ini ||
    fail "the spec of the model"
wanted 0 --init engine --out quiet --from-gguf "$model" --quiet
said out ""
said err ""

wanted 3 --init engine --out none --from-gguf none.gguf
[ ! -e none ] || fail "a folder for a model that is not there"
wanted 0 --init ./engine.ini
wanted 3 --init ./engine
try="
Try 'ptxgen --help'."
for options in "--prefix mine" "--target sm_90"; do
    # shellcheck disable=SC2086
    wanted 2 --init engine --out none $options
    said err "ptxgen: --init engine excludes --prefix, which engine.c fixes, and needs --from-gguf for --target$try"
done
wanted 2 --init kernels.ini --from-gguf "$model"
said err "ptxgen: --spec, --list, --help-family, --explain, --init, --from-gguf and --man exclude each other, except \
--init engine and --init server with --from-gguf$try"
exit $failed
