// Data of the page: a row per kernel and target, and the columns.
"use strict";

const facts = JSON.parse(document.getElementById("facts").textContent);

const rows = facts.kernels.flatMap((kernel) => kernel.on.map((on) => ({ kernel, on })));

const noPtxas = "ptxas was not run for the target: use --validate";
const byLaunch = "depends on the launch";
const noLoop = "the PTX marks no hot loop";

// value: a number, a text, or null if unknown; the table is sorted by it. show: the displayed value and
// its unit. unknown: why a value may be unknown.
const allColumns = [
  { title: "family", value: (r) => r.kernel.family },
  { title: "configuration", value: (r) => r.kernel.configuration || "defaults" },
  { title: "target", value: (r) => r.on.target },
  { title: "registers", number: true, value: (r) => known(r.on.registers), unknown: noPtxas },
  { title: "shared", number: true, value: sharedBytes, show: (v) => [v.toLocaleString("en"), "B"], unknown: byLaunch },
  { title: "occupancy", number: true, value: (r) => known(r.on.occupancy), show: (v) => [Math.round(100 * v), "%"], unknown: `${noPtxas}; or ${byLaunch}` },
  { title: "limited by", value: (r) => known(r.on.limit), unknown: `${noPtxas}; or ${byLaunch}` },
  { title: "instructions", number: true, value: instructionsEach, show: (v, r) => [v.toFixed(2), "per " + one(r.kernel.loop.unit)], unknown: noLoop },
  { title: "bytes per load", number: true, value: bytesALoad, show: (v) => [v.toFixed(1), ""], unknown: `${noLoop}, or loads nothing in it` },
  { title: "verify error", number: true, value: (r) => known(r.kernel.verify?.error), show: (v) => [v.toFixed(3), ""], unknown: "the kernel was not run on the emulator: use --verify" },
];

// Columns without any known value are omitted.
const columns = allColumns.filter((column) => rows.some((row) => column.value(row) !== null));

// Returns why some cells have a dash, and some columns are missing.
function gaps() {
  const titles = (reason, all) => all.filter((column) => column.unknown === reason).map((column) => column.title).join(", ");
  const sentences = (lead, all) => [...new Set(all.map((column) => column.unknown))].map((reason) => `${lead} ${titles(reason, all)}: ${reason}.`);
  return [
    ...sentences("–", columns.filter((column) => rows.some((row) => column.value(row) === null))),
    ...sentences("Not shown:", allColumns.filter((column) => !columns.includes(column))),
  ].join(" ");
}

function ptxLines(kernel) {
  return kernel.ptx.map((index) => facts.lines[index]);
}

function known(value) {
  return value === undefined ? null : value;
}

function one(unit) {
  return unit.replace(/s$/, "");
}

function sharedBytes(row) {
  const shared = row.kernel.smem;
  return shared.dynamic === null ? null : shared.static + shared.dynamic;
}

function instructionsEach(row) {
  const loop = row.kernel.loop;
  return loop && loop.instructions / loop.work;
}

function bytesALoad(row) {
  const loop = row.kernel.loop;
  return loop && loop.loads ? loop.load_bytes / loop.loads : null;
}

function element(name, text, className) {
  const made = document.createElement(name);
  if (text !== undefined) made.textContent = text;
  if (className) made.className = className;
  return made;
}

function byId(id) {
  return document.getElementById(id);
}

// Returns the table cell of a column and a row.
function cell(column, row) {
  const value = column.value(row);
  const td = element("td", undefined, column.number ? "number" : column.title);
  if (value === null) {
    const dash = element("span", "–", "unit");
    dash.title = column.unknown;
    td.append(dash);
    return td;
  }
  const [shown, unit] = column.show ? column.show(value, row) : [value, ""];
  td.append(String(shown));
  if (unit) td.append(" ", element("span", unit, "unit"));
  return td;
}
