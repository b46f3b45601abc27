// Shows a kernel's facts, parameters and coloured PTX, and starts the page.
"use strict";

// Tried in this order at each position of a line.
const tokens = [
  ["comment", /\/\/.*/],
  ["label", /\$\w+/],
  ["mnemonic", /(?<=^\s+(?:@!?%\w+\s+)?)[a-z]\w*(?:[.:]+\w+)*/],
  ["type", /\.[a-z]\w*/],
  ["register", /%\w+(?:\.[xyz])?/],
  ["value", /\b(?:0[fFdDxX][0-9a-fA-F]+|\d[\w.]*)\b|"[^"]*"/],
];
const token = new RegExp(tokens.map(([name, pattern]) => `(?<${name}>${pattern.source})`).join("|"), "g");

function colored(line) {
  const span = element("span", undefined, "line");
  let end = 0;
  for (const match of line.matchAll(token)) {
    const [name] = Object.entries(match.groups).find(([, found]) => found !== undefined);
    span.append(line.slice(end, match.index), element("span", match[0], name));
    end = match.index + match[0].length;
  }
  span.append(line.slice(end) + "\n");
  return span;
}

function table(id, titles, lines) {
  const row = (name, cells) => {
    const tr = element("tr");
    tr.append(...cells.map((text) => element(name, text)));
    return tr;
  };
  byId(id).replaceChildren(row("th", titles), ...lines.map((line) => row("td", line)));
}

function targets(kernel) {
  return kernel.on.map((on) => {
    const missing = known(on.registers) === null ? "not assembled" : byLaunch;
    const shown = (value, unit = "") => known(value) === null ? missing : `${value}${unit}`;
    const share = known(on.occupancy) === null ? null : Math.round(100 * on.occupancy);
    return [
      on.target, shown(on.registers), shown(on.spill_bytes, " B"), shown(on.stack_bytes, " B"), shown(on.blocks),
      shown(share, " %"), shown(on.limit),
    ];
  });
}

function parameters(kernel) {
  return kernel.params.map((p) => [
    p.name, p.dir, p.kind === "pointer" ? p.element : p.kind, p.size ?? "", p.bytes ? p.bytes.toLocaleString("en") : "",
  ]);
}

function summary(kernel) {
  const loop = kernel.loop;
  return {
    file: kernel.file,
    PTX: kernel.isa,
    block: kernel.block.join(" × "),
    grid: (kernel.grid ?? kernel.grid_expr).join(" × "),
    instructions: kernel.code.instructions,
    "hot loop": loop ? `${loop.instructions} for ${loop.work} ${loop.unit} per lane` : "none marked",
    "verify error": kernel.verify ? kernel.verify.error.toFixed(3) + " of the allowed error" : "not run",
  };
}

function openKernel(row) {
  const kernel = row.kernel;
  byId("kernel-name").textContent = kernel.name;
  byId("kernel-computes").textContent = kernel.computes;
  byId("kernel-facts").replaceChildren(...Object.entries(summary(kernel)).map(([title, value]) => {
    const pair = element("div");
    pair.append(element("dt", title), element("dd", value));
    return pair;
  }));
  table("kernel-targets", ["target", "registers", "spilled", "stack", "blocks per SM", "occupancy", "limited by"], targets(kernel));
  table("kernel-params", ["parameter", "", "type", "size", "bytes"], parameters(kernel));
  const lines = ptxLines(kernel);
  byId("ptx").replaceChildren(...lines.map(colored));
  byId("copy").onclick = () => navigator.clipboard.writeText(lines.join("\n") + "\n").then(() => { byId("copy").textContent = "Copied"; });
  byId("copy").textContent = "Copy PTX";
  byId("kernel").showModal();
  byId("kernel").scrollTop = 0;
}

function start() {
  const counts = new Set(facts.kernels.map((kernel) => kernel.family)).size;
  document.title = `${facts.prefix} kernels`;
  byId("title").textContent = `${facts.prefix} kernels`;
  byId("summary").textContent = `${facts.kernels.length} kernels of ${counts} families, written by ptxgen ${facts.ptxgen}`;
  byId("close").addEventListener("click", () => byId("kernel").close());
  byId("kernel").addEventListener("click", (event) => { if (event.target === byId("kernel")) byId("kernel").close(); });
  startTable();
  draw();
}

start();
