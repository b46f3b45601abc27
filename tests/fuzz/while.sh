#!/bin/sh
# Fuzzes for ten seconds from the corpus, with a fixed seed. Leaves a failing input in the working directory.
#
#     while.sh FUZZER DICTIONARY MAX_LEN CORPUS
set -eu
found=$(mktemp -d)
trap 'rm -rf "$found"' EXIT
"$1" -dict="$2" -max_len="$3" -timeout=10 -rss_limit_mb=2048 -seed=1 -max_total_time=10 \
    -print_final_stats=1 "$found" "$4"
