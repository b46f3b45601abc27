#!/bin/sh
# Packs programs and data to test and measure kernels on a machine with a GPU and its driver, but without our libraries
# and without a compiler.
#
#     gpu_kit.sh SOURCE_ROOT BUILD_ROOT KIT TIMED FILE...
#
# KIT is the folder to make. FILE is a program, PTX, or the header of a model, a .gguf file without weights. Programs
# and PTX go into bin/. A header's spec goes into models/. TIMED lists some headers, "NAME,NAME": these also go into
# headers/, each with a program bench_model_NAME. Models with golden logits are added (pack_models.py) if they lie
# beside the source and $WITHOUT_MODELS is not set. $ARCHIVE=FILE.tar.xz packs the folder, too.
set -eu
root=$(cd "$1" && pwd)
build=$(cd "$2" && pwd)
kit=$3
timed=,$4,
shift 4
gpu=tests/bench/gpu
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
rm -rf "$kit"
mkdir -p "$kit/bin" "$kit/models" "$kit/headers" "$kit/$gpu/peers" "$kit/tests/models"
kit=$(cd "$kit" && pwd)
cp -r "$build/tests/golden" "$kit/tests/"
cp "$root/$gpu"/*.ini "$root/$gpu"/*.py "$kit/$gpu/"
for script in run_tests test_parts sanitize same_file llama_peer; do
    cp "$root/$gpu/$script.sh" "$kit/$gpu/"
done
cp "$root/tests/models/judge_models.py" "$kit/tests/models/"
cp "$root/$gpu/peers/torch_peers.py" "$kit/$gpu/peers/"
cp "$root/$gpu/run_kit.sh" "$kit/run"
cp "$root/tests/launch/decoder/tiny.ini" "$kit/models/"
for file; do
    name=$(basename "$file" .gguf)
    case $file in
    *.gguf) "$build/ptxgen" -q --from-gguf "$file" >"$kit/models/$name.ini" ;;
    *) cp "$file" "$kit/bin/" ;;
    esac
    case $file:$timed in
    *.gguf:*,"$name",*) cp "$file" "$kit/headers/" ;;
    esac
done
for file; do
    ldd "$file" 2>/dev/null || true
done | sed -n 's,.*=> \(.*/lib\(inih\|jansson\|cmocka\|pcre2-8\|utf8proc\)\.so[^ ]*\) .*,\1,p' | sort -u |
    while read -r library; do
        cp -L "$library" "$kit/bin/"
    done

for header in "$kit"/headers/*.gguf; do
    name=$(basename "$header" .gguf)
    "$build/ptxgen" -q --spec "$kit/models/$name.ini" --out "$scratch/$name"
    ${CC:-cc} -O1 -I "$scratch/$name" -I "$root/src" -I "$root/src/model/gguf" -o "$kit/bin/bench_model_$name" \
        "$root/tests/models/bench_model.c" "$build/libptxgen-core.a" -L "$build/src/libcuda" -l:libcuda.so.1 -ldl -lm
done
strip "$kit"/bin/bench_* "$kit"/bin/ptxgen-test 2>/dev/null || true
if [ -d "$root/../shared/models" ] && [ -z "${WITHOUT_MODELS-}" ]; then
    python3 "$root/tests/models/pack_models.py" "$build/ptxgen" "$root" "$root/../shared/models" "$kit/golden_models"
fi
git -C "$root" describe --always --dirty >"$kit/commit" 2>/dev/null || echo unknown >"$kit/commit"
[ -z "${ARCHIVE-}" ] || XZ_OPT=-T0 tar -C "$(dirname "$kit")" -cJf "$ARCHIVE" "$(basename "$kit")"
echo "wrote $kit"
