#!/bin/sh
# Stands in for ptxas, so that tests need no CUDA. Prints what ptxas prints, with 40 registers on sm_75 and 80 on
# others. It rejects a file that contains the word "broken" and spills for "spilling". $PLANT and $PLANT_AT select
# kernels by name that it treats the same way.
target= input= output= strict=
while [ $# -gt 0 ]; do
    case $1 in
    --version) echo "Cuda compilation tools, release 13.0, V13.0.88"; exit ;;
    --help) echo "Allowed values for this option:  'sm_75','sm_80','sm_90'."; exit ;;
    -arch=*) target=${1#-arch=} ;;
    -o) output=$2; shift ;;
    -Werror) strict=1 ;;
    -*) ;;
    *) input=$1 ;;
    esac
    shift
done
has() {
    grep -q "$1" "$input" || { [ "${PLANT:-}" = "$1" ] && grep -q "entry $PLANT_AT(" "$input"; }
}
if has broken; then
    echo "ptxas $input, line 20; fatal   : Parsing error near 'broken': syntax error"
    echo "ptxas fatal   : Ptx assembly aborted due to errors"
    exit 255
fi
spills=0
if has spilling; then
    spills=8
    if [ -n "$strict" ]; then
        echo "ptxas error   : Registers are spilled to local memory in function"
        exit 255
    fi
fi
registers=80
[ "$target" = sm_75 ] && registers=40
echo "    0 bytes stack frame, $spills bytes spill stores, $spills bytes spill loads"
echo "ptxas info    : Used $registers registers, used 0 barriers"
echo "$target" >"$output"
