#!/usr/bin/env python3
"""Shows the results of measure.py, and updates README and the cost model from them.

    report.py RESULTS.json                    prints figures, tables, failures, and predictions that are off by
                                              more than 15 %
    report.py --steps RESULTS.json            prints only the table of models
    report.py --readme README RESULTS.json    writes that table, without predictions, into README's section "Speed"
    report.py --check README RESULTS.json     exits with 1 if README's table differs
    report.py --constants MEASURED RESULTS.json    sets the constants of the cost model in MEASURED, src/cost/measured.tsv

A model's step is timed as a graph on the device (bench_step). It is also timed through the header, with the host's work
(bench_model, "ours_"), as llama.cpp is. The comparison with llama.cpp uses the latter if it exists.
"""
import json
import os
import re
import signal
import statistics
import sys

OFF = 0.15
MODELS = {"llama_3.1_8b": "Llama-3.1-8B Q4_K_M", "llama_3.1_8b_q8_0": "Llama-3.1-8B Q8_0",
          "qwen3_30b_a3b": "Qwen3-30B-A3B Q4_K_M", "gpt_oss_20b": "gpt-oss-20b MXFP4",
          "llama_3.2_1b_bf16": "Llama-3.2-1B BF16"}
# A model's work: names of rows in bench_step's table, of which the first counts, and figures of bench_model and
# llama_speed.
WORK = {"1 row": (["step of 1"], "ours_tg128", "tg128"), "8 rows": (["step of 8"], "ours_rows8", "rows8"),
        "prompt of 512": (["prompt of 512", "step of 256"], "ours_pp512", "pp512")}
HEADING = "## Speed, measured"
PARTS = "../../../src/kernel/target.c"


def read(path):
    with open(path) as file:
        return json.load(file)


def rows_of(task):
    """Yields (title of the table, row as a dictionary)."""
    for table in task["tables"]:
        for row in table["rows"]:
            yield table["title"], dict(zip(table["columns"], row))


def name_of(row):
    return str(next(iter(row.values()))).strip("* ")


def step_rows(results):
    """Returns {model: {row's name: row}} of the tables of bench_step."""
    found = {}
    for task in results["tasks"]:
        for title, row in rows_of(task):
            model = re.match(r"(\S+), after ", title)
            if model and task["stage"] == "steps":
                found.setdefault(model[1], {}).setdefault(name_of(row), row)
    return found


def figures_of(results, stage):
    """Returns {task: {name: value}} of a stage."""
    return {task["task"]: {name: value for name, (value, _) in task["figures"].items()}
            for task in results["tasks"] if task["stage"] == stage}


def count(value):
    return "{:,.0f}".format(value) if value else "–"


def cells(rows, figures, names, ours, theirs):
    """Returns {column: text} of tokens per second: measured on the device, predicted, by the header, and llama.cpp's."""
    row = next((rows[name] for name in names if name in rows), None)
    measured = row.get("tokens/s") if row else None
    predicted = measured * row["us"] / row["model us"] if measured and row.get("model us") else None
    beside = figures.get(ours) or measured
    llama = figures.get(theirs)
    ratio = "%s (%.2f x)" % (count(llama), beside / llama) if llama and beside else count(llama)
    return {"measured": count(measured), "predicted": count(predicted), "ptxgen": count(beside), "llama.cpp": ratio}


def table_of_models(results, columns=("measured", "predicted", "llama.cpp")):
    steps, files = step_rows(results), figures_of(results, "llama")
    head = ["model"] + [work if column == columns[0] else column for work in WORK for column in columns]
    lines = ["| %s |" % " | ".join(head), "|---|" + "---:|" * (len(head) - 1)]
    for model, title in MODELS.items():
        if model in steps or model in files:
            row = [title]
            for work in WORK.values():
                texts = cells(steps.get(model, {}), files.get(model, {}), *work)
                row += [texts[column] for column in columns]
            lines.append("| %s |" % " | ".join(row))
    return "\n".join(lines) + "\n"


def readme_table(results):
    return table_of_models(results, ("ptxgen", "llama.cpp"))


def readme_with(text, table):
    """Returns the text with the first table after HEADING replaced."""
    at = text.index("\n" + HEADING + "\n")
    found = re.compile(r"(?m)(^\|.*\n)+").search(text, at)
    if not found:
        sys.exit("report.py: there is no table after '%s'" % HEADING)
    return text[:found.start()] + table + text[found.end():]


def deviations(results):
    """Returns (ratio, bound, row's name, title) of wrong predictions, the worst first. Predictions assume reads from
    device memory, so rows are left out if all launches together fit the L2.
    """
    off = [(row["of model"], str(row.get("bound", "")), name_of(row), title)
           for task in results["tasks"] for title, row in rows_of(task)
           if isinstance(row.get("of model"), float) and abs(row["of model"] - 1) > OFF and row.get("remark") != "in L2"]
    return sorted(off, key=lambda entry: -max(entry[0], 1 / entry[0] if entry[0] else 1))


def ramp(results, ending, of_model):
    """Returns the excess time of a launch that reads weights over its prediction without RAMP: the median of steps of 1
    and 8 rows. `of_model` is the figure with the RAMP that the predictions used.
    """
    found, before = [], 0
    for figures in figures_of(results, "constants").values():
        before = figures.get(of_model, 0) * 1e-6
    for rows in step_rows(results).values():
        for name in ("step of 1" + ending, "step of 8" + ending):
            row = rows.get(name, {})
            if row.get("of weights"):
                found.append((row["us"] - row["model us"]) * 1e-6 / row["of weights"] + before)
    return statistics.median(found) if found else None


def published(device):
    """Returns name and GB/s of a GPU's data sheet, from the table of parts in the source, or None."""
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), PARTS)) as file:
        parts = re.findall(r'{ "([^"]+)", \d+, \d+, \d+, (\d+),', file.read())
    words = set(re.split(r"\W+", device)) | {"SXM"}
    return next(((name, float(bandwidth)) for name, bandwidth in parts if words.issuperset(name.split())), None)


def constants(results):
    """Returns {name: value} of the constants that the results determine."""
    measured, part = {}, published(results["device"])
    for figures in figures_of(results, "constants").values():
        if part:
            measured["READ_SHARE " + part[0]] = figures.get("read", 0) / part[1]
        if "copy" in figures:
            measured["READ_OF_COPY"] = figures.get("read", 0) / figures["copy"]
        measured["LAUNCH"] = figures.get("launch_gap", 0) * 1e-6
        measured["OVERLAPPED_LAUNCH"] = figures.get("launch_gap_overlapping", 0) * 1e-6
    measured["RAMP"] = ramp(results, ", no overlap", "model_ramp")
    measured["OVERLAPPED_RAMP"] = ramp(results, "", "model_overlapped_ramp")
    return {name: value for name, value in measured.items() if value}


def set_constants(path, results):
    with open(path) as file:
        lines = [line.rstrip("\n").split("\t") for line in file]
    before = {line[0]: float(line[1]) for line in lines if len(line) > 2}
    after = constants(results)
    for name in sorted(set(after) - set(before)):
        lines.append([name, "", "1", "the same for a part"])
    for line in lines:
        if line[0] in after:
            line[1] = "%.3g" % float("%.2g" % after[line[0]]) if line[2] == "s" else "%.2f" % after[line[0]]
            print("%s %s, was %s" % (line[0], line[1], before.get(line[0], "not measured")))
    with open(path, "w") as file:
        file.write("".join("\t".join(line) + "\n" for line in lines))


def show(results):
    print("# %s, driver %s, %s, commit %s%s\n" % (
        results["device"], results.get("driver", "unknown"), results["date"], results["commit"],
        ", tried only: times mean nothing" if results.get("quick") else ""))
    for task in results["tasks"]:
        print("## %s, %s: %s\n" % (task["stage"], task["task"], task["state"]))
        for name, (value, unit) in task["figures"].items():
            print("    %-30s %g %s" % (name, value, unit))
        for table in task["tables"]:
            rows = [table["columns"], ["---"] * len(table["columns"])] + table["rows"]
            print("\n%s\n" % table["title"])
            print("\n".join("| %s |" % " | ".join("%g" % c if isinstance(c, float) else c for c in row) for row in rows))
        print("".join("FAILED %s: %s\n" % tuple(failure) for failure in task["failures"]))
    print("## Models, tokens a second\n\n" + table_of_models(results))
    print("## Predictions that are off by more than %.0f %%\n" % (100 * OFF))
    for ratio, bound, name, title in deviations(results):
        print("    %5.2f x  %-8s %s: %s" % (ratio, bound, title, name))


def main(words):
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    if len(words) == 1:
        show(read(words[0]))
    elif len(words) == 2 and words[0] == "--steps":
        print(table_of_models(read(words[1])), end="")
    elif len(words) == 3 and words[0] == "--constants":
        set_constants(words[1], read(words[2]))
    elif len(words) == 3 and words[0] in ("--readme", "--check"):
        with open(words[1]) as file:
            text = file.read()
        new = readme_with(text, readme_table(read(words[2])))
        if words[0] == "--check" and new != text:
            sys.exit("%s has another table than %s: report.py --readme %s %s" % (words[1], words[2], *words[1:]))
        if words[0] == "--readme":
            with open(words[1] + ".new", "w") as file:
                file.write(new)
            os.replace(words[1] + ".new", words[1])
    else:
        sys.exit(__doc__)


if __name__ == "__main__":
    main(sys.argv[1:])
