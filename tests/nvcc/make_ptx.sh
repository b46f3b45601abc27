#!/bin/sh -e
# Makes the .ptx files of this directory from the .cu files beside them with the CUDA toolkit's nvcc
# (13.0 made those that are checked in). They are the compiler's output as it came.
cd "$(dirname "$0")"
for source in *.cu; do
    name=${source%.cu}
    case $name in
    vector_add|block_sum|gemv|transpose|histogram|softmax) arch=sm_75 ;;
    bfloat16_math|atomics|single_math) arch=sm_90 ;;
    *) arch=sm_80 ;;
    esac
    nvcc -arch=$arch -ptx "$source" -o "$name.ptx"
done
