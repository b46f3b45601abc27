#!/bin/sh
# Checks that ptxgen's output depends only on the spec: not on its compiler or optimisation, the locale, the working
# directory, or existing files. A second run writes no file.
#
#     reproducible.sh SOURCE_FOLDER [TOOL...]
#
# PTXGEN names the tool as built. TOOLs are builds by other compilers or with other options; with TOOLs, only these are
# compared. The spec of all families is compared for two targets, all kernels for the newer one; with
# PTXGEN_TEST_TIER=full, for all.
set -eu
source=$(cd "$1" && pwd)
shift
for tool; do
    set -- "$@" "$(realpath "$tool")"
    shift
done
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cp "$source/tests/llama_8b.ini" "$source/tests/every_family.ini" "$scratch"
cd "$scratch"
[ "${PTXGEN_TEST_TIER-}" = full ] || target=sm_75,sm_90

generate_llama() { # TOOL FOLDER [TOOL'S ENVIRONMENT]
    tool=$1 folder=$2
    shift 2
    env "$@" "$tool" -q --spec llama_8b.ini --out "$folder/llama"
}
generate() { # the same
    generate_llama "$@"
    shift 2
    env "$@" "$tool" -q --spec every_family.ini ${target:+--target "$target"} --out "$folder/every"
}
same() { # FOLDER WHAT [PART]
    diff -r "reference/${3-}" "$1/${3-}" >difference || { head -20 difference; echo "$2: other bytes"; exit 1; }
}

generate "$PTXGEN" reference
[ "$(find reference -name '*.ptx' | wc -l)" -gt 100 ]

for tool; do
    generate "$tool" other
    same other "$tool"
    rm -r other
done
[ $# = 0 ] || exit 0

generate_llama "$PTXGEN" again
same again "a second run" llama

# A locale with a decimal comma, and one with other upper-case letters.
generate "$PTXGEN" locale LC_ALL=de_DE.UTF-8 LANG=de_DE.UTF-8
same locale "a second run, with the locale de_DE.UTF-8"
for locale in C.UTF-8 tr_TR.UTF-8; do
    generate_llama "$PTXGEN" locale LC_ALL=$locale LANG=$locale
    same locale "locale $locale" llama
done

mkdir -p far/away
cp llama_8b.ini far/away
(cd far/away && generate_llama "$PTXGEN" "$scratch/elsewhere")
same elsewhere "another working directory" llama

touch -d '2001-01-01' reference/*/*
find reference -type f -printf '%p %T@\n' | sort >before
generate_llama "$PTXGEN" reference
find reference -type f -printf '%p %T@\n' | sort >after
cmp before after || { echo "a run with nothing to change touched files"; exit 1; }
