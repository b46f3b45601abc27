#!/bin/sh
# Measures llama.cpp's CUDA library on a model, on a machine with a GPU:
#
#     llama_peer.sh FOLDER MODEL.gguf [OPTION OF llama_speed]...
#
# FOLDER has libllama, libggml, libggml-base, libggml-cuda and a libggml-cpu-*.so. It may be a .tar.xz of this folder,
# which is unpacked into $SCRATCH (default: a folder beside the archive). CUDA's libraries are searched on the machine.
# llama_speed is $LLAMA_SPEED, or lies beside this script or in bin/ there. The driver's compiled kernels stay in
# $CUDA_CACHE_PATH for the next run.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
[ $# -ge 2 ] || {
    sed -n '2,5s/^# \{0,1\}//p' "$0" >&2
    exit 2
}
folder=$1
shift
case $folder in
*.tar.xz)
    scratch=${SCRATCH:-${folder%.tar.xz}.unpacked}
    if [ ! -e "$scratch/complete" ]; then
        mkdir -p "$scratch"
        tar -xJf "$folder" -C "$scratch" 2>/dev/null ||
            python3 -c 'import sys, tarfile; tarfile.open(sys.argv[1]).extractall(sys.argv[2])' \
                "$folder" "$scratch"
        touch "$scratch/complete"
    fi
    folder=$(dirname "$(find "$scratch" -name 'libggml-base.so*' | head -n 1)")
    ;;
esac
folder=$(cd "$folder" && pwd)
for speed in "${LLAMA_SPEED-}" "$here/llama_speed" "$here/bin/llama_speed"; do
    [ -z "$speed" ] || [ ! -x "$speed" ] || break
done

# Folders that may have CUDA's libraries: the toolkit's first, all others only if it lacks one.
places() {
    ls -d /usr/local/cuda/lib64 /usr/local/cuda*/lib64 /usr/local/cuda*/lib \
        /usr/local/cuda*/targets/x86_64-linux/lib 2>/dev/null || true
    python3 -c 'import glob, site, sys
for top in dict.fromkeys(site.getsitepackages() + [site.getusersitepackages()] + sys.path):
    print("\n".join(glob.glob(top + "/nvidia/*/lib") + glob.glob(top + "/torch/lib")))' 2>/dev/null || true
    ls -d /usr/lib/x86_64-linux-gnu /opt/*/lib64 /opt/*/lib /opt/*/targets/x86_64-linux/lib \
        /opt/*/lib/python3*/site-packages/nvidia/*/lib 2>/dev/null || true
}
list=$(places)
path=
for name in libcudart.so.13 libcublas.so.13 libcublasLt.so.13; do
    found=
    for place in $list; do
        if [ -e "$place/$name" ]; then
            found=$place
            break
        fi
    done
    [ -n "$found" ] || found=$(find /usr /opt "${HOME:-/root}" -xdev -name "$name" -printf '%h\n' 2>/dev/null | head -n 1)
    echo "# $name: ${found:-not found; the CUDA 13 toolkit or the pip packages nvidia-cuda-runtime and nvidia-cublas have it}"
    case :$path: in
    *":$found:"*) ;;
    *) path=${path:+$path:}$found ;;
    esac
done
export LD_LIBRARY_PATH="$folder${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}${path:+:$path}"
export CUDA_CACHE_PATH="${CUDA_CACHE_PATH:-${TMPDIR:-/tmp}/llama_peer_cache}" CUDA_CACHE_MAXSIZE=4294967296
mkdir -p "$CUDA_CACHE_PATH"
ldd "$folder/libggml-cuda.so" 2>&1 | sed -n 's/^[[:space:]]*\(.*not found.*\)/# libggml-cuda.so needs \1/p'
status=0
"$speed" "$folder" "$@" || status=$?
case $status in
0 | 2 | 3) exit "$status" ;;
esac
[ -z "${CUDA_FORCE_PTX_JIT-}" ] || exit "$status"
echo "# failed with status $status: once more, with all kernels compiled from PTX by the driver"
CUDA_FORCE_PTX_JIT=1 "$speed" "$folder" "$@"
