// Sorts and filters the table. shown() returns the rows that pass the filters, in order.
"use strict";

const rowsAtOnce = 200;
const order = { column: null, descending: false };
const text = new Intl.Collator("en", { numeric: true });
let limit = rowsAtOnce;

function passes(row) {
  const name = `${row.kernel.name} ${row.kernel.family} ${row.kernel.configuration} ${row.on.target}`;
  const words = byId("search").value.toLowerCase().split(/\s+/);
  return words.every((word) => name.toLowerCase().includes(word)) &&
    (!byId("family").value || row.kernel.family === byId("family").value) &&
    (!byId("target").value || row.on.target === byId("target").value);
}

// Compares rows; unknown values come last in both directions.
function compare(a, b) {
  const x = order.column.value(a), y = order.column.value(b);
  if (x === null || y === null) return (x === null) - (y === null);
  const difference = typeof x === "number" ? x - y : text.compare(x, y);
  return order.descending ? -difference : difference;
}

function shown() {
  const passing = rows.filter(passes);
  return order.column ? passing.sort(compare) : passing;
}

// Returns a family's button; long names break after an underscore.
function familyButton(family) {
  const button = element("button");
  button.append(...family.split(/(?<=_)/).flatMap((part) => [part, element("wbr")]));
  return button;
}

function tableRow(row) {
  const tr = element("tr");
  const name = familyButton(row.kernel.family);
  name.type = "button";
  name.title = row.kernel.name;
  const head = element("th");
  head.scope = "row";
  head.append(name);
  tr.append(head, ...columns.slice(1).map((column) => cell(column, row)));
  tr.dataset.kernel = row.kernel.name;
  tr.addEventListener("click", () => openKernel(row));
  return tr;
}

function draw() {
  const list = shown();
  byId("rows").replaceChildren(...list.slice(0, limit).map(tableRow));
  byId("count").value = `${list.length} of ${rows.length} rows`;
  byId("more").hidden = list.length <= limit;
  byId("more").textContent = `Show all ${list.length} rows`;
  columns.forEach((column, i) => {
    const head = byId("columns").children[i];
    if (column === order.column) head.ariaSort = order.descending ? "descending" : "ascending";
    else head.removeAttribute("aria-sort");
  });
  drawCharts(list);
}

function sortBy(column) {
  order.descending = order.column === column && !order.descending;
  order.column = column;
  draw();
}

function drawHead() {
  for (const column of columns) {
    const head = element("th", undefined, column.number ? "number" : "");
    const button = element("button", column.title);
    button.type = "button";
    button.addEventListener("click", () => sortBy(column));
    head.scope = "col";
    head.append(button);
    byId("columns").append(head);
  }
}

function fillSelect(id, values) {
  byId(id).append(...[...new Set(values)].map((value) => element("option", value)));
}

function startTable() {
  drawHead();
  byId("gaps").textContent = gaps();
  fillSelect("family", rows.map((row) => row.kernel.family));
  fillSelect("target", rows.map((row) => row.on.target).sort(text.compare));
  byId("filters").addEventListener("input", () => { limit = rowsAtOnce; draw(); });
  byId("filters").addEventListener("submit", (event) => event.preventDefault());
  byId("more").addEventListener("click", () => { limit = Infinity; draw(); });
}
