#!/bin/bash
# --explain shows for every code an example and the message that ptxgen prints for it. Runs each example and compares the
# message, word for word. A wrong kernels.ini is read; commands run next to a correct one. "..." in a message matches any
# text. unit/ptx_verify tests the message of E031, which no user can cause.
#
#   explain.sh SOURCE_ROOT VERSION     with PTXGEN and WRITE_SAMPLE_MODEL set; PTXGEN_PRINT=FOLDER keeps the messages there
set -u
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cd "$scratch" || exit 1
printf '#!/bin/sh\nexec "%s" "$@"\n' "$PTXGEN" >ptxgen
chmod +x ptxgen
PATH=$scratch:$PATH
failed=0

fail() {
    echo "FAILED: $1: $2"
    failed=1
}

# Makes what the example of a code needs besides kernels.ini.
prepare() {
    case $1 in
    E029) # a ptxas that rejects all kernels, first on PATH
        cat >ptxas <<'END'
#!/bin/sh
case $1 in
--version) echo 'Cuda compilation tools, release 12.4, V12.4.131' ;;
--help) echo "--gpu-name 'sm_75', 'sm_80'" ;;
*) echo "ptxas kernel.ptx, line 21; error   : Unknown symbol '%r9'" >&2; exit 255 ;;
esac
END
        chmod +x ptxas ;;
    E071) "$WRITE_SAMPLE_MODEL" plamo2.gguf plamo2 ;;
    E072) "$WRITE_SAMPLE_MODEL" model.gguf llama "llama.attention.clamp_kqv = 8.0" ;;
    E073) "$WRITE_SAMPLE_MODEL" model.gguf llama "blk.0.ffn_up.weight: 512 768 i8" ;;
    E074) "$WRITE_SAMPLE_MODEL" model.gguf llama "tokenizer.ggml.model = t5" ;;
    esac
}

# Prints the indented lines below a heading of the explanation.
part() {
    awk -v heading="$1:" '$0 == heading { on = 1; getline; next } on && /^[^ ]/ { exit }
        on { sub(/^    /, ""); lines = lines $0 "\n" } END { sub(/\n+$/, "\n", lines); printf "%s", lines }' explanation
}

ptxgen --explain >list || exit 1
codes=$(sed 's/ .*//' list)
ptxgen --explain E014 >explanation
for code in e014 E14 014 14; do
    ptxgen --explain "$code" | cmp -s - explanation || fail "$code" "not explained like E014"
done
for code in E E000 E140 "E014 " fourteen; do
    ptxgen --explain "$code" >/dev/null 2>&1 && fail "$code" "explained"
done
[ "$(echo "$codes" | wc -l)" -ge 30 ] || fail list "too short"
[ "$codes" = "$(echo "$codes" | LC_ALL=C sort -u)" ] || fail list "not sorted, or a code twice"

for code in $codes; do
    ptxgen --explain "$code" >explanation || fail "$code" "not explained"
    [ "$(wc -l <explanation)" -ge 10 ] || fail "$code" "explained in a few words"
    awk 'length > 84 && !/^    /' explanation | grep . && fail "$code" "a line above 84 characters"
    [ "$(head -n 1 explanation)" = "$(sed -n "s/^$code  /$code: /p" list)" ] ||
        fail "$code" "list and explanation differ"
    [ "$code" = E031 ] && continue
    part Example >example
    part Message >wanted

    rm -rf case && mkdir case && cd case || exit 1
    prepare "$code"
    if grep -q '^\$ ' ../example; then
        printf '[f32_gemv]\nshape = 256x1\n' >kernels.ini
        sed -n 's/^\$ //p' ../example >commands
        PATH=$scratch/case:$PATH sh ./commands >/dev/null 2>messages
    else
        cp ../example kernels.ini
        ptxgen --spec kernels.ini --print-outputs >/dev/null 2>messages
    fi
    cd .. || exit 1
    # without excerpts and the last line's count of errors, and of --from-gguf without the model in one line
    grep -vE '^ *[0-9]* \| |^ptxgen: [0-9]+ errors?, |^ptxgen: (llama|targets) ?' case/messages >found
    [ -z "${PTXGEN_PRINT-}" ] || cp found "$PTXGEN_PRINT/$code"
    [[ "$(cat found)" == $(sed 's/[][*?\\]/\\&/g; s/\.\.\./*/g' wanted) ]] ||
        { diff wanted found; fail "$code" "the example prints another message"; }
    grep -q "\[$code\]" found || fail "$code" "its example has another code"
done
exit "$failed"
