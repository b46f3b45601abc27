#!/usr/bin/env python3
"""Counts the results of Meson test runs: count_results.py BUILD_FOLDER ...

Reads the logs that `meson test` leaves in each build folder and prints `N passed, N failed, N skipped`. A cmocka
program counts with its tests, by the lines at its end; any other test counts as one. Exits with 1 if a test failed or
none ran.
"""
import json
import pathlib
import re
import sys

CMOCKA_TOTAL = re.compile(r"^\[  (PASSED|FAILED|SKIPPED) ? ?\] (\d+) test\(s\)", re.MULTILINE)


def count(entry):
    totals = {"PASSED": 0, "FAILED": 0, "SKIPPED": 0}
    for word, number in CMOCKA_TOTAL.findall((entry.get("stdout") or "") + (entry.get("stderr") or "")):
        totals[word] += int(number)
    result = entry["result"]
    if not any(totals.values()):
        word = {"OK": "PASSED", "EXPECTEDFAIL": "PASSED", "SKIP": "SKIPPED"}.get(result, "FAILED")
        totals[word] = 1
    elif result not in ("OK", "SKIP") and not totals["FAILED"]:
        totals["FAILED"] = 1 # failed outside of its tests: a crash, a sanitizer's report, a timeout
    return totals


def main(folders):
    sums = {"PASSED": 0, "FAILED": 0, "SKIPPED": 0}
    for folder in folders:
        for log in sorted(pathlib.Path(folder, "meson-logs").glob("testlog*.json")):
            for line in log.read_text().splitlines():
                for word, number in count(json.loads(line)).items():
                    sums[word] += number
    print(f"{sums['PASSED']} passed, {sums['FAILED']} failed, {sums['SKIPPED']} skipped")
    return 1 if sums["FAILED"] or not sums["PASSED"] else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
