#!/bin/sh
# Packs what a machine with a GPU needs to run the kernel tests and the benchmarks, and that has
# neither our libraries nor a compiler: gpu_kit.sh SOURCE_ROOT KIT.tar.gz PROGRAM_PTX_OR_MODEL...
set -eu
root=$1
kit=$2
shift 2
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
to=$scratch/gpu-kit
gpu=tests/bench/gpu
mkdir -p "$to/bin" "$to/models" "$to/$gpu/peers" "$to/tests/models"
cp -r "$root/tests/golden" "$to/tests/"
for file in gpu_bench.sh run_tests.sh sanitize.sh test_parts.sh run_models.py ncu_prompts.py shapes.ini \
    measure.ini in_l2.ini experiments.ini; do
    cp "$root/$gpu/$file" "$to/$gpu/"
done
cp "$root/tests/models/judge_models.py" "$to/tests/models/"
cp "$root/$gpu/peers/torch_peers.py" "$to/$gpu/peers/"
cp "$root/$gpu/run_kit.sh" "$to/run"
for file; do
    case $file in
    *.ini | *.gguf) cp "$file" "$to/models/" ;;
    *) cp "$file" "$to/bin/" ;;
    esac
done
for file; do
    ldd "$file" 2>/dev/null || true
done | sed -n 's,.*=> \(.*/lib\(inih\|jansson\|cmocka\)\.so[^ ]*\) .*,\1,p' | sort -u |
    while read -r library; do
        cp -L "$library" "$to/bin/"
    done
git -C "$root" describe --always --dirty >"$to/commit" 2>/dev/null || echo unknown >"$to/commit"
tar -C "$scratch" -czf "$kit" gpu-kit
echo "wrote $kit"
