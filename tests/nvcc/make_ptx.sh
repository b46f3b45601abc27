#!/bin/sh -e
# Makes data.tar.xz from the .cu files beside it with nvcc (the checked-in file is of CUDA 13.0): a .ptx file for each
# target named, and fat binaries with each kind of compression, with machine code and PTX of two architectures. The
# compiler's output is not changed.
archive=$(realpath "$(dirname "$0")")/data.tar.xz
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cp "$(dirname "$0")"/*.cu "$work"
cd "$work"
for target in sm_75 sm_80 sm_90; do
    nvcc -arch=$target -ptx $target.cu
done
nvcc -arch=sm_75 -ptx grid.cu
nvcc -arch=sm_80 -ptx matrices.cu
nvcc -arch=sm_80 -std=c++17 -ptx barriers.cu
nvcc -arch=sm_90 -std=c++17 -ptx bulk.cu
for mode in none speed default; do # uncompressed, LZ4, zstd
    nvcc -gencode arch=compute_75,code='[sm_75,compute_75]' -gencode arch=compute_86,code=compute_86 \
        -fatbin --compress-mode=$mode fat.cu -o fat_$mode.fatbin
done
nvcc -arch=sm_80 -ptx idioms.cu
nvcc -arch=sm_80 -ptx stack.cu
nvcc -arch=sm_90 -std=c++17 -ptx small.cu
tar --format=ustar --sort=name --owner=0 --group=0 --mtime=@0 --mode=644 -cJf "$archive" ./*.ptx ./*.fatbin
