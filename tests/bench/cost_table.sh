#!/bin/sh
# Writes the table of machine instructions: cost_table.sh COST_PROGRAM TESTS_FOLDER
set -eu
mkdir -p "$2/bench/results"
"$1" "$2/bench/cost.ini" >"$2/bench/results/cost.md.new"
mv "$2/bench/results/cost.md.new" "$2/bench/results/cost.md"
