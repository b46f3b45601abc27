#!/bin/bash
# Checks that the Ninja builds of --emit-ninja, also of shards, give the results of --validate: for correct kernels, for
# one that ptxas rejects, and for one that spills. Ninja runs only what a change requires.
#
#     PTXGEN=build/ptxgen tests/report/checks.sh tests/report/report.ini
#
# A stand-in for ptxas rejects or spills on demand. The real one is used as well, if there is one.
set -u
here=$(cd "$(dirname "$1")" && pwd)
command -v ninja >/dev/null || { echo "skipped: no ninja"; exit 77; }
PTXGEN=$(realpath "$PTXGEN")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/a spec, \$1 für alle"
cd "$work/a spec, \$1 für alle"
cp "$here/$(basename "$1")" spec.ini
cp "$here/stand_in_ptxas.sh" "stand in"

failed=0
holds() { # WHAT COMMAND...
    local what=$1
    shift
    "$@" >log 2>&1 || { echo "FAILED: $what"; tail -15 log output; failed=1; }
}
verdict() { "$@" >output 2>&1 && echo right || echo wrong; }
make_build() { # PTXAS FOLDER
    "$PTXGEN" -q --spec spec.ini --out "$2" --emit-ninja "$2/checks.ninja" --validate="$1"
}
steps() { # NINJA'S ARGUMENTS: prints how many commands it ran
    ninja "$@" 2>&1 | tee output | grep -c '^\['
}
ninja_alone() { # the build as generated, without a run of --validate
    PLANT= make_build "$1" "$2" && ninja -k 0 -f "$2/checks.ninja"
}
shards() { # PTXAS: prints the verdicts of three shards
    local part all=
    for part in 1/3 2/3 3/3; do
        all="$all $(verdict "$PTXGEN" -q --spec spec.ini --shard "$part" --validate="$1")"
    done
    echo "${all# }"
}
planted=mwv_q4k_gemv_k256_n8_w4
export PLANT= PLANT_AT=$planted

judge() { # PTXAS WHAT VERDICT: checks all three ways
    local ptxas=$1 what=$2 expected=$3 wrong
    holds "--validate finds $what $expected" \
        [ "$(verdict "$PTXGEN" -q --spec spec.ini --validate="$ptxas")" = "$expected" ]
    holds "ninja finds $what $expected" \
        [ "$(verdict ninja_alone "$ptxas" "$what")" = "$expected" ]
    [ "$expected" = right ] || grep -q "FAILED: .*$planted" output ||
        { echo "FAILED: ninja names no $planted"; failed=1; }
    wrong=$(shards "$ptxas" | tr ' ' '\n' | grep -c wrong)
    holds "one shard finds $what $expected" [ "$wrong" = "$([ "$expected" = right ] && echo 0 || echo 1)" ]
}
judge "./stand in" "good kernels" right
PLANT=broken judge "./stand in" broken wrong
PLANT=spilling judge "./stand in" spilling wrong

total=$(grep -c ': assemble ' "good kernels/checks.ninja")
gpus=3 # options of the stand-in
holds "6 kernels on each" [ "$total" = $((6 * gpus)) ]
build="good kernels/checks.ninja"
holds "nothing to do" [ "$(steps -f "$build")" = 0 ]

edited=$(find "good kernels" -name "*.$planted.*.ptx" | sort | head -1)
edges=$(grep -c ": assemble good\$ kernels/$(basename "$edited")" "$build")
cp -p "$edited" original
echo "// broken" >>"$edited"
holds "an edited kernel is judged, and no other" [ "$(steps -k 0 -f "$build")" = "$edges" ]
holds "and found wrong" grep -q "FAILED: .*$planted" output
"$PTXGEN" -q --spec spec.ini --out "good kernels"
holds "written again it is right" [ "$(steps -f "$build")" = "$edges" ]
holds "and that is all" [ "$(steps -f "$build")" = 0 ]

sleep 1
sed -i 's/512x4/512x5/' spec.ini
holds "a changed kernel: ptxgen, and ptxas for each" [ "$(steps -f "$build")" = $((1 + gpus)) ]
holds "its old one is forgotten" [ "$(grep -c k512_n4 "$build")" = 0 ]
sleep 1
echo "; a comment" >>spec.ini
holds "a comment: ptxgen alone" [ "$(steps -f "$build")" = 1 ]
holds "and once" [ "$(steps -f "$build")" = 0 ]

instances=$(grep -c ': verify ' "$build")
holds "every instance is verified" [ "$(steps -f "$build" verify)" = "$instances" ]
holds "once" [ "$(steps -f "$build" verify)" = 0 ]

"$PTXGEN" --spec spec.ini --verify >whole
for part in 1 2 3 4; do "$PTXGEN" --spec spec.ini --verify --shard $part/4; done >parts
right() { awk '{ sum += $2 } END { print sum }' "$1"; }
holds "the shards verify all, and each once" [ "$(right parts)" = "$(right whole)" ]
holds "more parts than kernels" "$PTXGEN" -q --spec spec.ini --verify --shard 90/100

real=$(command -v ptxas)
if [ -n "$real" ]; then
    holds "the real ptxas accepts all" ninja_alone "$real" real
    for plant in 's/^\.maxnreg .*/.maxnreg 24/' 's/^}/    broken;\n}/'; do
        one=$(find real -name '*.incremental*.ptx' | head -1)
        cp -p "$one" original
        sed -i "$plant" "$one"
        holds "the real ptxas and $plant" [ "$(verdict ninja -k 0 -f real/checks.ninja)" = wrong ]
        mv original "$one"
    done
fi
exit $failed
