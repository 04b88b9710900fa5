// The tables beside the lanes, and what is said of the event under the pointer.
"use strict";

const kCauseColours = {late: "#c65f5f", taken: "#8a7fd0", hop: "#d69a4e", fetch: "#5f8fc6", starved: "#5fb0a0",
  signal: "#9aa85f", outside: "#566078"};

function make(name, properties = {}, ...children) {
  const element = Object.assign(document.createElement(name), properties);
  element.append(...children);
  return element;
}
const number = (value, digits = 1) => value.toLocaleString("en", {minimumFractionDigits: digits, maximumFractionDigits: digits});
const us = ns => number(ns / 1e3);

function showFacts(model) {
  const s = model.summary, facts = document.getElementById("facts");
  const add = (name, value) => facts.append(make("span", {}, `${name} `, make("b", {textContent: value})));
  if (s.executor) add("on", s.executor);
  add("workers", s.units === s.workers ? s.workers : `${s.workers} on ${s.units}`);
  add("steps", s.steps), add("a step", timeText(s.step)), add("critical path", timeText(s.total.path));
  add("events", model.lanes.reduce((sum, lane) => sum + lane.count, 0).toLocaleString("en"));
  if (s.lost > 0) add("lost", s.lost.toLocaleString("en"));
}

function showOps(model, view) {
  const table = document.getElementById("ops"), body = make("tbody");
  const columns = ["op", "calls", "busy µs", "of all", "path µs", "late µs", "MB", "GB/s", "GFLOP/s"];
  table.append(make("thead", {}, make("tr", {}, ...columns.map(name => make("th", {textContent: name})))), body);
  const all = model.summary.total.busy || 1, rate = (amount, ns) => ns > 0 && amount > 0 ? number(amount / ns, 2) : "–";
  const row = work => {
    const colour = work.op === undefined ? "transparent" : view.colourName(work.op);
    const meter = make("span", {className: "meter", style: `color: ${colour}`},
      make("i", {style: `width: ${100 * work.busy / all}%`}));
    const share = work.op === undefined ? [""] : [`${number(100 * work.busy / all)} %`, meter];
    const cells = [[make("span", {className: "swatch", style: `background: ${colour}`}), work.ops],
      [number(work.calls, 0)], [us(work.busy)], share, [us(work.path)], [us(work.late)], [number(work.bytes / 1e6, 3)],
      [rate(work.bytes, work.busy)], [rate(work.flops, work.busy)]];
    return make("tr", {}, ...cells.map(cell => make("td", {}, ...cell)));
  };
  for (const work of [...model.summary.work].sort((a, b) => b.busy - a.busy)) {
    const line = row(work);
    line.addEventListener("click", () => {
      view.picked = view.picked === work.op ? -1 : work.op;
      for (const other of body.children) other.classList.toggle("picked", other === line && view.picked >= 0);
      view.redraw();
    });
    body.append(line);
  }
  const total = row({...model.summary.total, ops: "all"});
  total.className = "total";
  body.append(total);
}

// What ran the calls that are not the tiles of their op.
function showBodies(model) {
  document.getElementById("bodies").append(...model.summary.bodies.map(line => make("li", {textContent: line})));
}

function showIdle(model) {
  const bar = document.getElementById("idle-bar"), table = document.getElementById("idle"), step = model.summary.step || 1;
  for (const {name, meaning, ns} of model.summary.idle) {
    const colour = kCauseColours[name], share = 100 * ns / step;
    bar.append(make("i", {title: `${name}: ${us(ns)} µs`, style: `width: ${share}%; background: ${colour}`}));
    table.append(make("tr", {},
      make("td", {}, make("span", {className: "swatch", style: `background: ${colour}`}), name),
      make("td", {textContent: `${us(ns)} µs`}), make("td", {textContent: `${number(share)} %`}),
      make("td", {textContent: meaning})));
  }
  bar.style.background = "#242c3b";
}

function describeWait(model, lane, e, last) {
  const maker = model.lanes[last.lane], step = maker.step[last.event];
  const producer = model.workers[last.worker].stream[maker.instruction[last.event]];
  const node = producer.call === kNone ? "no work" : model.calls[producer.call].node;
  return `${node}: last of ${last.of} from worker ${last.worker}, ` +
    `${timeText(Math.max(0, lane.ready[e] - last.done))} before${step < lane.step[e] ? ", in the step before" : ""}`;
}

function showHover(model, view, found, x, y) {
  const box = document.getElementById("hover");
  view.hovered = found;
  box.hidden = !found;
  if (!found) return;
  const lane = model.lanes[found.lane], e = found.event;
  const instruction = model.workers[lane.worker].stream[lane.instruction[e]], run = lane.done[e] - lane.ready[e];
  const table = make("table"), row = (name, value, long) => table.append(make("tr", {},
    make("td", {textContent: name}), make("td", {textContent: value, className: long ? "long" : ""})));
  const node = instruction.call === kNone ? "no work" : model.calls[instruction.call].node;
  const body = instruction.call === kNone ? "" : model.calls[instruction.call].body;
  if (instruction.call !== kNone) row("tile", `[${instruction.tile.join(", ")}]`);
  if (body) row("run by", body, true);
  row("worker", `${lane.worker}${lane.role ? ", loader," : ""} on unit ${model.workers[lane.worker].unit}; ` +
    `step ${lane.step[e]}, instruction ${lane.instruction[e]}`);
  row("from", timeText(lane.fetched[e] - model.begin));
  row("wait", timeText(lane.ready[e] - lane.fetched[e]));
  row("run", timeText(lane.computed[e] - lane.ready[e]) +
    (lane.starved[e] ? `, of these ${timeText(lane.starved[e])} without weights` : ""));
  row("publish", timeText(lane.done[e] - lane.computed[e]));
  const works = lane.op[e] > 0, rate = (amount, unit) => run > 0 ? `, ${number(amount / run, 2)} ${unit}` : "";
  if (works && instruction.bytes > 0)
    row("moved", `${number(instruction.bytes / 1e3)} kB${rate(instruction.bytes, "GB/s")}`);
  if (works && instruction.flops > 0)
    row("computed", `${number(instruction.flops / 1e6, 3)} MFLOP${rate(instruction.flops, "GFLOP/s")}`);
  for (const last of lastSignals(model, lane, e))
    if (last) row("waited for", describeWait(model, lane, e, last), true);
  if (view.pathEvents.has(found.lane * 2 ** 32 + e)) row("", "on the critical path");
  const swatch = make("span", {className: "swatch", style: `background: ${view.colourName(lane.op[e])}`});
  box.replaceChildren(make("h3", {}, swatch, node), make("p", {textContent: model.ops[lane.op[e]]}), table);
  const area = box.parentElement;
  box.style.left = `${Math.max(4, Math.min(x + 16, area.clientWidth - box.offsetWidth - 8))}px`;
  box.style.top = `${y + 18 + box.offsetHeight < area.clientHeight ? y + 18 : Math.max(4, y - box.offsetHeight - 14)}px`;
}
