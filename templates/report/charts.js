// Draws bar charts of the first rows with Chart.js: occupancy by row, coloured by its limit, and the
// instruction mix by kernel.
"use strict";

const barHeight = 24, lineHeight = 13, axisHeight = 90;
const limitColors = {
  nothing: "#3a9d6e", registers: "#e0862d", "shared memory": "#3f86c9", "blocks per SM": "#8e6bbf", "block size": "#8a8f98",
};
const mixColors = ["#2f6fb5", "#74b4dd", "#d1495b", "#e8a33d", "#3a9d6e", "#a9c34f", "#8e6bbf", "#8a8f98"];
const dark = matchMedia("(prefers-color-scheme: dark)"), narrow = matchMedia("(max-width: 760px)");
const charts = {};

function style(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

function barsAtMost() {
  return narrow.matches ? 10 : 20;
}

// Returns the lines of a bar's label: the family, and the rest of the kernel's name. Long lines break after an underscore
// or a space.
function labelLines(row, rest) {
  const most = narrow.matches ? 24 : 40, family = row.kernel.family;
  const tail = row.kernel.name.slice(family.length).replace(/^_/, "").replaceAll("_", " ") + rest;
  const lines = [];
  for (const part of [...family.split(/(?<=_)/), null, ...tail.split(/(?<= )/)]) {
    const at = lines.length - 1;
    if (part === null) lines.push("");
    else if (at < 0 || lines[at].length + part.trimEnd().length > most) lines.push(part);
    else lines[at] += part;
  }
  return lines.map((line) => line.trimEnd()).filter((line) => line);
}

// Draws a horizontal stacked bar per row of bars. sets: [{ label, color, data }]; rest: end of a bar's label.
function drawBars(id, bars, sets, rest, explain) {
  const shownSets = sets.filter((set) => set.data.some((value) => value));
  const labels = bars.map((row) => labelLines(row, rest(row)));
  const lines = Math.max(1, ...labels.map((label) => label.length));
  byId(id).parentElement.style.height = `${axisHeight + (barHeight + lineHeight * (lines - 1)) * bars.length}px`;
  charts[id]?.destroy();
  charts[id] = new Chart(byId(id), {
    type: "bar",
    data: {
      labels: bars.map((row) => row.kernel.name + rest(row)),
      datasets: shownSets.map((set) => ({ label: set.label, data: set.data, backgroundColor: set.color, maxBarThickness: 16 })),
    },
    options: {
      indexAxis: "y", animation: false, maintainAspectRatio: false,
      onClick: (event, hits) => { if (hits.length) openKernel(bars[hits[0].index]); },
      scales: {
        x: { stacked: true, min: 0, max: 100, ticks: { color: style("--soft"), stepSize: 20, maxRotation: 0, callback: (v) => `${v} %` }, grid: { color: style("--line") } },
        y: { stacked: true, ticks: { color: style("--text"), font: { size: narrow.matches ? 10 : 12 }, autoSkip: false, callback: (value, i) => labels[i] }, grid: { display: false } },
      },
      plugins: {
        legend: { position: "bottom", labels: { color: style("--text"), boxWidth: 12, boxHeight: 12 } },
        tooltip: { callbacks: { label: (item) => explain(bars[item.dataIndex], item) } },
      },
    },
  });
}

function drawOccupancy(list) {
  const bars = list.filter((row) => known(row.on.occupancy) !== null).slice(0, barsAtMost());
  byId("occupancy-note").textContent = bars.length
    ? `of the first ${bars.length} rows, coloured by its limit`
    : "unknown: generate with --validate to run ptxas";
  byId("occupancy").parentElement.hidden = !bars.length;
  const sets = Object.entries(limitColors).map(([limit, color]) => ({
    label: limit, color, data: bars.map((row) => row.on.limit === limit ? 100 * row.on.occupancy : null),
  }));
  drawBars("occupancy", bars, sets, (row) => ` ${row.on.target}`,
    (row) => `${row.on.warps} warps in ${row.on.blocks} blocks, ${row.on.registers} registers; limit: ${row.on.limit}`);
}

function drawMix(list) {
  const kernels = [...new Map(list.map((row) => [row.kernel, row])).values()].slice(0, barsAtMost());
  const code = (row) => row.kernel.loop ?? row.kernel.code;
  byId("mix-note").textContent = "of the hot loop, or of all code if there is none (*)";
  const sets = facts.classes.map((label, i) => ({
    label, color: mixColors[i], data: kernels.map((row) => 100 * code(row).mix[i] / code(row).instructions),
  }));
  drawBars("mix", kernels, sets, (row) => row.kernel.loop ? "" : " *", (row, item) => {
    const count = code(row).mix[facts.classes.indexOf(item.dataset.label)];
    return `${item.dataset.label}: ${count} of ${code(row).instructions} instructions`;
  });
}

function drawCharts(list) {
  drawOccupancy(list);
  drawMix(list);
}

for (const query of [dark, narrow]) query.addEventListener("change", () => drawCharts(shown()));
