#!/bin/sh
# Writes the table of costs and the model's embedded figures: cost_table.sh COST_PROGRAM SOURCE_ROOT
set -eu
mkdir -p "$2/tests/bench/results"
"$1" "$2/tests/bench/cost.ini" "$2/tests/bench/results/cost.md" "$2/src/cost/table.c"
