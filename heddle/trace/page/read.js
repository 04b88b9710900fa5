// Reads the .nanotrace that the page holds, with the table behind its tracks, into arrays that are cheap to draw.
"use strict";

const kNone = 0xffffffff, kMaxWaits = 3;
const kWait = 3, kPublish = 4, kNothing = 5, kFirstOp = 6;  // formats
const kHeaderBytes = 12;

class Fields {
  constructor(bytes) {
    this.bytes = bytes;
    this.view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    this.at = 0;
  }
  u8() { return this.view.getUint8(this.at++); }
  u16() { this.at += 2; return this.view.getUint16(this.at - 2, true); }
  u32() { this.at += 4; return this.view.getUint32(this.at - 4, true); }
  i32() { this.at += 4; return this.view.getInt32(this.at - 4, true); }
  u64() { this.at += 8; return Number(this.view.getBigUint64(this.at - 8, true)); }
  f64() { this.at += 8; return this.view.getFloat64(this.at - 8, true); }
  text() {
    const length = this.u16();
    this.at += length;
    return new TextDecoder().decode(this.bytes.subarray(this.at - length, this.at));
  }
  list(count, read) { return Array.from({length: count}, read); }
}

async function payloadOf(base64) {
  const bytes = Uint8Array.from(atob(base64), c => c.charCodeAt(0));
  const payload = bytes.subarray(kHeaderBytes);
  if (bytes[kHeaderBytes - 1] === 0) return payload;
  const stream = new Blob([payload]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

// The events of one lane, column by column.
function newLane(track, count) {
  const lane = {worker: track.block, role: track.lane, count: 0, busy: new Float64Array(count + 1)};
  for (const name of ["fetched", "ready", "computed", "done", "instruction", "step", "starved"])
    lane[name] = new Uint32Array(count);
  lane.op = new Uint16Array(count);
  return lane;
}

// An instruction is up to three events: its wait, its work, its publication.
function readLane(f, formats) {
  const track = {block: f.u32(), format: f.u16(), lane: f.u32()};
  f.at += 4 * formats[track.format].params;
  const count = f.u32();
  const lane = newLane(track, count);
  let fetched = -1, n = 0;
  for (let i = 0; i < count; ++i) {
    const begin = f.u32(), duration = f.u32(), format = f.u16();
    if (format === kWait) {
      fetched = begin;
    } else if (format === kPublish) {
      lane.done[n - 1] = begin + duration;
    } else {
      lane.fetched[n] = fetched >= 0 ? fetched : begin;
      lane.ready[n] = begin, lane.computed[n] = lane.done[n] = begin + duration;
      lane.instruction[n] = f.u32(), lane.step[n] = f.u32(), lane.starved[n] = f.u32();
      lane.op[n] = format - kNothing;  // 0: no work
      fetched = -1, ++n;
    }
  }
  lane.count = n;
  for (let i = 0; i < n; ++i) lane.busy[i + 1] = lane.busy[i] + lane.done[i] - lane.ready[i];
  return lane;
}

function readTable(f, model) {
  f.at += 7;  // "heddle"
  const version = f.u8();
  f.text();   // executor
  model.calls = f.list(f.u32(), () => ({op: f.u32(), node: f.text(), body: version > 1 ? f.text() : ""}));
  for (const worker of model.workers)
    worker.stream = f.list(f.u32(), () => ({
      call: f.u32(), tile: f.list(4, () => f.i32()), bytes: f.u64(), flops: f.f64(),
      waits: f.list(kMaxWaits, () => f.u32()), previous: f.u8(), signal: f.u32(),
    }));
}

// Who signals each counter: [worker, instruction]...
function producersOf(model) {
  const producers = new Map();
  model.workers.forEach((worker, w) => worker.stream.forEach((instruction, i) => {
    if (instruction.signal === kNone) return;
    if (!producers.has(instruction.signal)) producers.set(instruction.signal, []);
    producers.get(instruction.signal).push([w, i]);
  }));
  return producers;
}

// The elements of a timeline: the page may hold several.
const elementOf = (name, which) => document.getElementById(which > 0 ? `${name}-${which}` : name);
const summaryOf = which => JSON.parse(elementOf("summary", which).textContent);

async function readModel(which) {
  const element = elementOf("nanotrace", which);
  const f = new Fields(await payloadOf(element.textContent.trim()));
  const model = {name: f.text(), summary: summaryOf(which)};
  f.at += 24;  // grid, cluster
  const formats = f.u32(), blocks = f.u32(), tracks = f.u32();
  model.events = f.u64();
  model.formats = f.list(formats, () => ({label: f.text(), tooltip: f.text(), params: f.u8()}));
  model.workers = f.list(blocks, () => ({id: f.u32(), cluster: f.u32(), unit: f.u16(), format: f.u16()}));
  model.lanes = f.list(tracks, () => readLane(f, model.formats));
  model.ops = ["no work", ...model.formats.slice(kFirstOp).map(format => format.label)];
  readTable(f, model);
  model.producers = producersOf(model);
  model.consumers = [];  // by worker: index of its lane
  model.lanes.forEach((lane, l) => { if (lane.role === 0) model.consumers[lane.worker] = l; });
  model.begin = model.summary.begin, model.end = Math.max(model.summary.end, model.begin + 1);
  return model;
}

// The first index below `count` for which `holds`; it holds for all after it.
function firstWhere(count, holds) {
  let low = 0, high = count;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (holds(middle)) high = middle; else low = middle + 1;
  }
  return low;
}

// The event of an instruction in a step, or -1.
function eventOf(lane, instruction, step) {
  const at = firstWhere(lane.count, i =>
    lane.step[i] > step || (lane.step[i] === step && lane.instruction[i] >= instruction));
  return at < lane.count && lane.step[at] === step && lane.instruction[at] === instruction ? at : -1;
}

// The last signal that a wait was for: {lane, event, of}, or null where the trace has none.
function lastSignal(model, counter, step) {
  let last = null;
  for (const [worker, instruction] of model.producers.get(counter) || []) {
    const l = model.consumers[worker];
    if (l === undefined) continue;
    const lane = model.lanes[l], event = eventOf(lane, instruction, step);
    if (event >= 0 && (!last || lane.done[event] > last.done))
      last = {lane: l, event, worker, done: lane.done[event], of: model.producers.get(counter).length};
  }
  return last;
}

// What an event of a consumer's lane waited for: the last signal of each wait; null where there is none.
function lastSignals(model, lane, event) {
  const instruction = model.workers[lane.worker].stream[lane.instruction[event]];
  return instruction.waits.map((counter, i) => lane.role !== 0 || counter === kNone ? null :
    lastSignal(model, counter, lane.step[event] - (instruction.previous >> i & 1)));
}
