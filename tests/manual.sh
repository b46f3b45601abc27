#!/bin/bash
# The manual pages: --man shows what man shows; the specs in them are taken, the commands run, the C of ptxgen-header
# compiles against the header that its spec makes, and messages are those that they show.
#
#   manual.sh SOURCE_ROOT        with PTXGEN set
set -u
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
failed=0
man_pages=$scratch/man
mkdir "$man_pages"
for page in "$1"/templates/man/*.[1-8]; do
    "$PTXGEN" --man "$(basename "$page")" >"$man_pages/$(basename "$page")" || exit 1
done

fail() {
    echo "FAILED: $1"
    failed=1
}

# Text as it is read: without margins and with plain quotes and dashes.
plain() {
    sed "s/[‘’]/'/g; s/[“”]/\"/g; s/[−‐–—]/-/g; s/⟨/</g; s/⟩/>/g" | tr -d ' \n\t'
}

# Example NUMBER of a page, as it is read.
example() {
    awk -v wanted="$2" '/^\.Bd -literal/ { count++; on = count == wanted; next } /^\.Ed/ { on = 0 } on' "$man_pages/$1" |
        sed 's/^\\&//; s/\\e/\\/g'
}

examples() {
    grep -c '^\.Bd -literal' "$man_pages/$1"
}

for page in ptxgen.1 ptxgen-spec.5 ptxgen-formats.7 ptxgen-header.3 ptxgen-libcuda.7; do
    "$PTXGEN" --man "${page%.*}" >"$scratch/shown" || fail "--man ${page%.*}"
    awk '/^ *\$ ptxgen --help-family/ { printed = 1 } /^$/ { printed = 0 } # as wide as the tool has it
         length > 80 && !printed { print; wide = 1 } END { exit wide }' "$scratch/shown" ||
        fail "$page is wider than a terminal"
    command -v man >/dev/null || continue
    MANWIDTH=80 man --nh --nj -E UTF-8 -l "$man_pages/$page" 2>/dev/null | sed '1d;$d' | plain >"$scratch/by_man"
    [ -s "$scratch/by_man" ] || continue # a man that knows none of these options
    sed 1d "$scratch/shown" | plain | cmp "$scratch/by_man" - || fail "$page reads otherwise with man"
done

# Specs are what begins with a section.
specs=0
for page in ptxgen-spec.5 ptxgen-header.3; do
    for ((i = 1; i <= $(examples $page); i++)); do
        example $page $i >"$scratch/spec.ini"
        grep -q '^\[' <(head -n 1 "$scratch/spec.ini") || continue
        specs=$((specs + 1))
        "$PTXGEN" --spec "$scratch/spec.ini" --print-outputs >"$scratch/log" 2>&1 ||
            { cat "$scratch/log"; fail "example $i of $page is no right spec"; }
    done
done
[ $specs -ge 3 ] || fail "$specs specs were tried"

# The messages of ptxgen-spec: line 7 and line 9 of a spec.
printf '%s\n' '[ptxgen]' '' '[q4k_gemv]' 'shape = 256x1' '' '[mwv_q4k_gemv]' 'k         = 1000' 'n         = 1' \
    'num_warp  = 2, 4' >"$scratch/wrong.ini"
(cd "$scratch" && "$PTXGEN" --spec wrong.ini --out out 2>&1) | plain >"$scratch/printed"
example ptxgen-spec.5 "$(awk '/^\.Bd/ { count++ } /^wrong.ini:7/ { print count; exit }' "$man_pages/ptxgen-spec.5")" |
    plain >"$scratch/shown"
cmp "$scratch/shown" "$scratch/printed" || fail "ptxgen-spec shows other messages"

# The commands of ptxgen(1), on a small spec; --validate where there is a ptxas.
mkdir "$scratch/place"
printf '[f32_gemv]\nshape = 256x3\n' >"$scratch/place/kernels.ini"
commands=0
for ((i = 1; i <= $(examples ptxgen.1); i++)); do
    while read -r command; do
        case $command in
        ptxgen\ --init* | *--validate* | "ptxgen = "*) continue ;;
        ptxgen\ *) commands=$((commands + 1)) ;;
        ninja\ *verify) command -v ninja >/dev/null || continue ;;
        *) continue ;;
        esac
        (cd "$scratch/place" && eval "${command/#ptxgen /\"\$PTXGEN\" }") >"$scratch/log" 2>&1 ||
            { cat "$scratch/log"; fail "$command"; }
    done < <(example ptxgen.1 "$i")
done
[ $commands -ge 4 ] || fail "$commands commands were tried"

# The Makefile of ptxgen(1) makes the header once, and engine.o with it.
mkdir "$scratch/make"
example ptxgen.1 "$(awk '/^\.Bd/ { count++ } /^PTXGEN :=/ { print count; exit }' "$man_pages/ptxgen.1")" |
    sed 's/pkg-config --variable=ptxgen ptxgen/echo "$$PTXGEN"/' >"$scratch/make/Makefile"
if command -v make >/dev/null && command -v cc >/dev/null; then
    printf '[ptxgen]\nprefix = llama\n[f32_gemv]\nshape = 256x3\n' >"$scratch/make/kernels.ini"
    printf '#define LLAMA_KERNELS_IMPLEMENTATION\n#include "llama_kernels.h"\n' >"$scratch/make/engine.c"
    (cd "$scratch/make" && make && make -q && [ -f engine.o ]) >"$scratch/log" 2>&1 ||
        { cat "$scratch/log"; fail "the Makefile of ptxgen(1)"; }
fi

# The C of ptxgen-header: what begins with # or is no statement stands by itself, the rest goes into one function.
page=ptxgen-header.3
for ((i = 1; i <= $(examples $page); i++)); do
    example $page $i >"$scratch/example"
    case $(head -n 1 "$scratch/example") in
    \#*) cp "$scratch/example" "$scratch/head" ;;
    \[*) cp "$scratch/example" "$scratch/header.ini" ;;
    "no gemv"*) plain <"$scratch/example" >"$scratch/miss" ;;
    *) cat "$scratch/example" >>"$scratch/body" ;;
    esac
done
"$PTXGEN" -q --spec "$scratch/header.ini" --out "$scratch" || fail "the spec of $page"
{
    echo '#include <dlfcn.h>'
    echo '#include <stdio.h>'
    cat "$scratch/head"
    cat <<'C'
static void log_error(const char *text) { puts(text); }
static void allocate(int64_t size) { (void)size; }
static int pool, *my_pool = &pool;
static ptxgen_deviceptr my_allocate(void *user, uint64_t bytes, ptxgen_piece piece)
{
    return user == my_pool && bytes > (uint64_t)piece;
}
static int number_in_gguf(const char *name, double *number)
{
    (void)name;
    *number = 0;
    return 1;
}
static const void *find_in_gguf(const char *name, unsigned type, uint64_t bytes)
{
    return type < 40 && bytes > 0 ? name : NULL;
}
void example(ptxgen_stream stream, ptxgen_deviceptr y, ptxgen_deviceptr w, ptxgen_deviceptr x, ptxgen_deviceptr q,
             ptxgen_deviceptr k, ptxgen_deviceptr v, ptxgen_deviceptr wq, ptxgen_deviceptr wk, ptxgen_deviceptr wv,
             ptxgen_deviceptr workspace);
void example(ptxgen_stream stream, ptxgen_deviceptr y, ptxgen_deviceptr w, ptxgen_deviceptr x, ptxgen_deviceptr q,
             ptxgen_deviceptr k, ptxgen_deviceptr v, ptxgen_deviceptr wq, ptxgen_deviceptr wk, ptxgen_deviceptr wv,
             ptxgen_deviceptr workspace)
{
C
    cat "$scratch/body"
    cat <<'C'
    (void)bytes;
    (void)r;
}
int main(void)
{
    char text[256];
    ptxgen_query query = { .op = PTXGEN_GEMV, .weights = PTXGEN_Q4_K, .k = 14336, .n = 4000, .sm = 90 };
    llama_explain_miss(&query, text, sizeof text);
    puts(text);
    query.n = 4096;
    return !llama_find(&query);
}
C
} >"$scratch/example.c"
if command -v cc >/dev/null; then
    cc -std=c99 -D_GNU_SOURCE -Wall -Wextra -I"$scratch" "$scratch/example.c" -o "$scratch/example_c" -ldl ||
        fail "the C of $page does not compile"
    "$scratch/example_c" | plain | cmp "$scratch/miss" - || fail "$page shows another miss"
fi

exit $failed
