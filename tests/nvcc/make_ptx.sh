#!/bin/sh -e
# Makes the .ptx files of this directory from the .cu files beside them with the CUDA toolkit's nvcc
# (13.0 made those that are checked in), each for the target it is named for, if it is. They are the
# compiler's output as it came.
cd "$(dirname "$0")"
for target in sm_75 sm_80 sm_90; do
    nvcc -arch=$target -ptx $target.cu
done
nvcc -arch=sm_80 -ptx idioms.cu
