#!/bin/sh
# Writes FOLDER/results.md: results.sh MUTATION FOLDER
"$1" "$2/equivalent.txt" "$2/subjects.ini" 0 1 "$(nproc)" >"$2/results.md.new"
status=$?
mv "$2/results.md.new" "$2/results.md"
exit $status
