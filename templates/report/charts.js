// Bars for the first rows of the table, drawn by Chart.js: occupancy by row, coloured by what limits
// it, and the instruction mix by kernel.
"use strict";

const barHeight = 24, axisHeight = 90;
const limitColors = {
  nothing: "#3a9d6e", registers: "#e0862d", "shared memory": "#3f86c9", "blocks an SM": "#8e6bbf", "block size": "#8a8f98",
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

// The end of a name tells kernels apart: of a long one the middle of the family goes.
function shorten(name) {
  const most = narrow.matches ? 24 : 36, head = 7;
  return name.length <= most ? name : name.slice(0, head) + "…" + name.slice(name.length - (most - head - 1));
}

// One horizontal, stacked bar for each row of bars; sets: [{ label, color, data }].
function drawBars(id, bars, sets, label, explain) {
  const shownSets = sets.filter((set) => set.data.some((value) => value));
  byId(id).parentElement.style.height = `${axisHeight + barHeight * bars.length}px`;
  charts[id]?.destroy();
  charts[id] = new Chart(byId(id), {
    type: "bar",
    data: {
      labels: bars.map(label),
      datasets: shownSets.map((set) => ({ label: set.label, data: set.data, backgroundColor: set.color, maxBarThickness: 16 })),
    },
    options: {
      indexAxis: "y", animation: false, maintainAspectRatio: false,
      onClick: (event, hits) => { if (hits.length) openKernel(bars[hits[0].index]); },
      scales: {
        x: { stacked: true, min: 0, max: 100, ticks: { color: style("--soft"), stepSize: 20, maxRotation: 0, callback: (v) => `${v} %` }, grid: { color: style("--line") } },
        y: { stacked: true, ticks: { color: style("--text"), font: { size: narrow.matches ? 10 : 12 }, autoSkip: false, callback(i) { return shorten(this.getLabelForValue(i)); } }, grid: { display: false } },
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
    ? `of the first ${bars.length} rows, by what limits it`
    : "is known where ptxas was run: generate with --validate";
  byId("occupancy").parentElement.hidden = !bars.length;
  const sets = Object.entries(limitColors).map(([limit, color]) => ({
    label: limit, color, data: bars.map((row) => row.on.limit === limit ? 100 * row.on.occupancy : null),
  }));
  drawBars("occupancy", bars, sets, (row) => `${row.kernel.name} ${row.on.target}`,
    (row) => `${row.on.warps} warps in ${row.on.blocks} blocks, ${row.on.registers} registers; limit: ${row.on.limit}`);
}

function drawMix(list) {
  const kernels = [...new Map(list.map((row) => [row.kernel, row])).values()].slice(0, barsAtMost());
  const code = (row) => row.kernel.loop ?? row.kernel.code;
  byId("mix-note").textContent = "of the hot loop, or of all code where there is none (*)";
  const sets = facts.classes.map((label, i) => ({
    label, color: mixColors[i], data: kernels.map((row) => 100 * code(row).mix[i] / code(row).instructions),
  }));
  drawBars("mix", kernels, sets, (row) => row.kernel.name + (row.kernel.loop ? "" : " *"), (row, item) => {
    const count = code(row).mix[facts.classes.indexOf(item.dataset.label)];
    return `${item.dataset.label}: ${count} of ${code(row).instructions} instructions`;
  });
}

function drawCharts(list) {
  drawOccupancy(list);
  drawMix(list);
}

for (const query of [dark, narrow]) query.addEventListener("change", () => drawCharts(shown()));
