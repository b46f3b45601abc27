#!/bin/bash
# Checks the messages of --shard, --only, --emit-ninja and --report about wrong arguments.
set -u
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cd "$scratch" || exit 1
printf '[f32_gemv]\nshape = 256x3, 512x4\n' >right.ini
failed=0

says() { # STATUS MESSAGE ARGUMENTS
    local status=$1 message=$2 got
    "$PTXGEN" $3 >out 2>err
    got=$?
    [ "$got" = "$status" ] && [ "$(head -1 err)" = "ptxgen: $message" ] && [ ! -s out ] && return
    echo "FAILED: ptxgen $3: status $got, not $status"
    cat out err
    failed=1
}

for shard in 1 /2 1/ 0/3 4/3 -1/3 1/0 1/x 1/2/3; do
    says 2 "--shard accepts I/N, from 1/8 to 8/8 for eight parts, not '$shard'" \
        "--spec right.ini --verify --shard $shard"
done
part="--shard and --only select instances for --validate and --verify; they exclude --out, --report and --print-outputs"
for whole in "--out o" "--report r.html" --print-outputs; do
    says 2 "$part" "--spec right.ini --shard 1/2 $whole"
    says 2 "$part" "--spec right.ini --only f32_gemv_k256_n3 $whole"
done
says 2 "--shard and --only exclude each other" "--spec right.ini --verify --shard 1/2 --only f32_gemv_k256_n3"
says 1 "error: the spec has no instance 'f32_gemv_k256_n4'; did you mean 'f32_gemv_k256_n3'? [E034]" \
    "--spec right.ini --verify --only f32_gemv_k256_n4"
says 2 "--emit-ninja needs --out: it checks the files there" "--spec right.ini --emit-ninja n"
says 2 "--emit-ninja needs a spec file: its build reads the spec again" "--spec - --out o --emit-ninja n"
[ "$(ls)" = "$(printf 'err\nout\nright.ini')" ] || { echo "FAILED: a wrong call left files"; ls; failed=1; }

"$PTXGEN" --spec right.ini --verify --only f32_gemv_k256_n3 | grep -q '1 of 1 right' ||
    { echo "FAILED: --only checks one instance"; failed=1; }
"$PTXGEN" -q --spec right.ini --report deep/in/all.html && "$PTXGEN" -q --spec right.ini --report again.html &&
    cmp deep/in/all.html again.html || { echo "FAILED: --report writes the same page again"; failed=1; }
exit $failed
