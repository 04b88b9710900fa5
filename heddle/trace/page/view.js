// Draws the lanes: each pixel is the mean of what happened in its time, so that a frame costs as many steps as it has
// pixels, however many events there are.
"use strict";

const kGutter = 92, kRuler = 24, kMostLane = 56, kLeastLane = 3;  // CSS pixels
const kPalette = ["#5b9cf5", "#f2a65a", "#6bd08f", "#e06c9f", "#b18cf2", "#4fc4cf", "#e8d36a", "#f07f6a", "#8fb87a",
  "#c792b0", "#7fa7c9", "#d6a37c"];
const kBack = [16, 20, 28], kLane = [23, 28, 39], kWaiting = [52, 61, 80];
const kExact = 8;  // events of a pixel that are looked at one by one; of more, as many samples

const rgb = hex => [1, 3, 5].map(i => parseInt(hex.slice(i, i + 2), 16));
const pack = (r, g, b) => (255 << 24 | b << 16 | g << 8 | r) >>> 0;

function timeText(ns) {
  const [unit, name] = Math.abs(ns) >= 1e6 ? [1e6, "ms"] : Math.abs(ns) >= 1e3 ? [1e3, "µs"] : [1, "ns"];
  const value = ns / unit;
  return `${value.toFixed(unit === 1 || Math.abs(value) >= 100 ? 0 : Math.abs(value) >= 10 ? 1 : 2)} ${name}`;
}

// How long a lane ran instructions before a time.
function busyUntil(lane, time) {
  const begun = firstWhere(lane.count, e => lane.ready[e] >= time);
  return begun === 0 ? 0 : lane.busy[begun] - Math.max(0, lane.done[begun - 1] - time);
}

class View {
  constructor(model, canvas, overview) {
    Object.assign(this, {model, canvas, overview, scroll: 0, picked: -1, showPath: true, hovered: null});
    const byTime = model.summary.work.map(work => work.op).filter(op => op > 0);
    const order = [...byTime].sort((a, b) => model.busyOf(b) - model.busyOf(a));
    this.colours = model.ops.map(() => [110, 120, 138]);
    order.forEach((op, i) => { this.colours[op] = rgb(kPalette[i % kPalette.length]); });
    this.pathBegin = Float64Array.from(model.summary.path, step => step[2]);
    this.pathEvents = new Set(model.summary.path.map(step => step[0] * 2 ** 32 + step[1]));
    this.fit();
    this.resize();
  }

  colourName(op) { return `rgb(${this.colours[op].join(" ")})`; }
  fit() { [this.begin, this.end, this.scroll] = [this.model.begin, this.model.end, 0]; this.redraw(); }

  resize() {
    this.ratio = window.devicePixelRatio || 1;
    for (const canvas of [this.canvas, this.overview]) {
      canvas.width = Math.max(1, Math.round(canvas.clientWidth * this.ratio));
      canvas.height = Math.max(1, Math.round(canvas.clientHeight * this.ratio));
    }
    this.width = Math.max(1, this.canvas.clientWidth - kGutter);
    this.overviewImage = null;
    this.place();
    this.redraw();
  }
  // Where each lane lies, in CSS pixels below the ruler; a loader's is half as high.
  place() {
    const room = this.canvas.clientHeight - kRuler, lanes = this.model.lanes;
    const shares = lanes.map(lane => lane.role === 0 ? 1 : 0.5);
    const all = shares.reduce((a, b) => a + b, 0) || 1;
    const unit = Math.max(kLeastLane, Math.min(kMostLane, Math.floor(room / all)));
    const order = lanes.map((_, l) => l).sort((a, b) => lanes[a].worker - lanes[b].worker || lanes[a].role - lanes[b].role);
    this.tops = [], this.heights = [];
    let top = 0;
    for (const l of order) {
      this.tops[l] = top, this.heights[l] = Math.max(2, Math.round(unit * shares[l]));
      top += this.heights[l];
    }
    this.laneRoom = room, this.laneEnd = top;
  }

  x(time) { return kGutter + (time - this.begin) / (this.end - this.begin) * this.width; }
  time(x) { return this.begin + (x - kGutter) / this.width * (this.end - this.begin); }
  zoom(factor, x) {
    const least = 20, centre = this.time(x), whole = this.model.end - this.model.begin;
    const span = Math.max(least, Math.min(whole * 1.02, (this.end - this.begin) * factor));
    this.begin = centre - (centre - this.begin) / (this.end - this.begin) * span;
    this.end = this.begin + span;
    this.pan(0, 0);
  }
  pan(dx, dy) {
    const span = this.end - this.begin, whole = this.model.end - this.model.begin, slack = 0.02 * whole;
    const shift = dx / this.width * span;
    this.begin = Math.max(this.model.begin - slack, Math.min(this.model.end + slack - span, this.begin + shift));
    this.end = this.begin + span;
    this.scroll = Math.max(0, Math.min(this.laneEnd - this.laneRoom, this.scroll + dy));
    this.redraw();
  }
  redraw() {
    if (this.pending) return;
    this.pending = true;
    requestAnimationFrame(() => { this.pending = false; this.draw(); });
  }

  // What lies below a point: {lane, event}, or null.
  find(x, y) {
    if (x < kGutter || y < kRuler) return null;
    const at = y - kRuler + this.scroll, time = this.time(x);
    const l = this.tops.findIndex((top, i) => at >= top && at < top + this.heights[i]);
    if (l < 0) return null;
    const lane = this.model.lanes[l], event = firstWhere(lane.count, i => lane.done[i] > time);
    return event < lane.count && lane.fetched[event] <= time ? {lane: l, event} : null;
  }

  // Fills `run` and `wait` (a colour for each pixel) with what a lane did in [begin, end).
  aggregate(lane, begin, end, run, wait) {
    const pixels = run.length, step = (end - begin) / pixels, {fetched, ready, done, busy, count} = lane;
    let i = firstWhere(count, e => done[e] > begin);
    for (let p = 0; p < pixels; ++p) {
      const a = begin + p * step, b = a + step;
      while (i < count && done[i] <= a) {  // a few steps, or a leap
        if (i + kExact < count && done[i + kExact] <= a) {
          const from = i;
          i = from + firstWhere(count - from, e => done[from + e] > a);
        } else {
          ++i;
        }
      }
      let last = i, r = 0, g = 0, bl = 0, sum = 0, waited = 0;
      while (last < count && last < i + kExact && fetched[last] < b) ++last;
      const many = last < count && fetched[last] < b;
      if (many) last = i + firstWhere(count - i, e => fetched[i + e] >= b);
      const stride = many ? Math.max(1, Math.floor((last - i) / kExact)) : 1;
      for (let e = i; e < last; e += stride) {
        const time = Math.min(done[e], b) - Math.max(ready[e], a);
        waited += Math.max(0, Math.min(ready[e], b) - Math.max(fetched[e], a));
        if (time <= 0) continue;
        const colour = this.shades[lane.op[e]];
        r += time * colour[0], g += time * colour[1], bl += time * colour[2], sum += time;
      }
      let share = many ? (busy[last] - busy[i]) / step : sum / step;
      share = sum > 0 ? Math.max(0.12, Math.min(1, share)) : 0;  // what is too short to see is seen all the same
      const rest = 1 - share, scale = sum > 0 ? share / sum : 0;
      run[p] = pack(kLane[0] * rest + r * scale, kLane[1] * rest + g * scale, kLane[2] * rest + bl * scale);
      const ground = waited * 2 > step * rest ? kWaiting : kLane;
      wait[p] = pack(ground[0] * rest + r * scale, ground[1] * rest + g * scale, ground[2] * rest + bl * scale);
    }
  }

  drawLanes(context) {
    const ratio = this.ratio, top = Math.round(kRuler * ratio);
    const width = Math.max(1, Math.round(this.width * ratio)), height = Math.max(1, this.canvas.height - top);
    if (!this.image || this.image.width !== width || this.image.height !== height)
      this.image = context.createImageData(width, height);
    const pixels = new Uint32Array(this.image.data.buffer), run = new Uint32Array(width), wait = new Uint32Array(width);
    pixels.fill(pack(...kBack));
    this.shades = this.colours.map((colour, op) =>
      this.picked < 0 || this.picked === op ? colour : colour.map((c, i) => kLane[i] + (c - kLane[i]) * 0.22));
    this.model.lanes.forEach((lane, l) => {
      const first = Math.round((this.tops[l] - this.scroll) * ratio), gap = this.heights[l] > 5 ? 1 : 0;
      const last = Math.round((this.tops[l] + this.heights[l] - this.scroll) * ratio) - Math.round(gap * ratio);
      if (last <= 0 || first >= height) return;
      this.aggregate(lane, this.begin, this.end, run, wait);
      const inset = (last - first) * 0.36;  // waits are drawn thin
      for (let y = Math.max(0, first); y < Math.min(height, last); ++y)
        pixels.set(y - first >= inset && last - y > inset ? wait : run, y * width);
    });
    context.putImageData(this.image, Math.round(kGutter * ratio), top);
  }

  drawNames(context) {
    context.textBaseline = "middle";
    this.model.lanes.forEach((lane, l) => {
      const height = this.heights[l], y = kRuler + this.tops[l] - this.scroll + height / 2;
      if (height < 13 || y < kRuler || y > this.canvas.clientHeight) return;
      const from = firstWhere(lane.count, i => lane.done[i] > this.begin);
      const to = firstWhere(lane.count, i => lane.fetched[i] >= this.end);
      if (to - from > this.width / 8) return;
      context.font = "11px ui-sans-serif, system-ui, 'DejaVu Sans', sans-serif";
      for (let i = from; i < to; ++i) {
        const left = Math.max(kGutter, this.x(lane.ready[i])), right = Math.min(kGutter + this.width, this.x(lane.done[i]));
        const room = right - left - 8;
        if (room < 26 || (this.picked >= 0 && this.picked !== lane.op[i])) continue;
        const instruction = this.model.workers[lane.worker].stream[lane.instruction[i]];
        let text = instruction.call === kNone ? "waits" : this.model.calls[instruction.call].node;
        const letters = Math.floor(room / 6);
        if (text.length > letters) text = "…" + text.slice(text.length - letters + 1);
        context.fillStyle = "#0d1119";
        context.fillText(text, left + 4, y);
      }
    });
  }

  // A frame around each of its instructions, and lines from one to the next; where they are too small for that, a
  // stripe along the lane.
  drawPath(context) {
    const path = this.model.summary.path;
    if (!this.showPath || path.length === 0) return;
    const boxes = new Path2D(), lines = new Path2D(), stripes = new Path2D();
    let from = null, stripe = null;
    const endStripe = () => {
      if (stripe) stripes.rect(stripe.left, stripe.y, Math.max(1, stripe.right - stripe.left), 2);
      stripe = null;
    };
    let i = Math.max(0, firstWhere(path.length, e => this.pathBegin[e] > this.begin) - 1);
    for (; i < path.length && this.pathBegin[i] < this.end; ++i) {
      const [l, e] = path[i], lane = this.model.lanes[l];
      const y = kRuler + this.tops[l] - this.scroll, height = this.heights[l] - (this.heights[l] > 5 ? 1 : 0);
      const left = this.x(lane.ready[e]), right = this.x(lane.done[e]), middle = y + height / 2;
      if (right - left > 5) {
        boxes.rect(left, y + 0.5, right - left, height - 1);
        if (from) lines.moveTo(from[0], from[1]), lines.lineTo(left, middle);
      } else if (stripe && stripe.y === y && left - stripe.right < 1) {
        stripe.right = right;
      } else {
        endStripe();
        stripe = {left, right, y};
        if (from && left - from[0] > 3) lines.moveTo(from[0], from[1]), lines.lineTo(left, middle);
      }
      from = [right, middle];
    }
    endStripe();
    context.save();
    context.beginPath(), context.rect(kGutter, kRuler, this.width, this.laneRoom), context.clip();
    context.strokeStyle = context.fillStyle = "#ffd866";
    context.lineWidth = 1, context.globalAlpha = 0.65, context.stroke(lines);
    context.lineWidth = 1.5, context.globalAlpha = 1, context.stroke(boxes), context.fill(stripes);
    context.restore();
  }

  drawFrame(context) {
    const width = this.canvas.clientWidth;
    context.fillStyle = "#10141c";
    context.fillRect(0, 0, kGutter, this.canvas.clientHeight);
    context.fillRect(0, 0, width, kRuler);
    context.font = "11px ui-sans-serif, system-ui, 'DejaVu Sans', sans-serif";
    context.textBaseline = "middle";
    context.fillStyle = "#8a94a8";
    let free = kRuler;  // where there is room for a name
    const order = this.model.lanes.map((_, l) => l).sort((a, b) => this.tops[a] - this.tops[b]);
    for (const l of order) {
      const lane = this.model.lanes[l], y = kRuler + this.tops[l] - this.scroll + this.heights[l] / 2;
      if (y < Math.max(kRuler, free) || y > this.canvas.clientHeight) continue;
      if (lane.role === 0) context.fillText(`worker ${lane.worker}`, 12, y);
      else if (this.heights[l] >= 10) context.fillText("loader", 24, y);
      else continue;
      free = y + 13;
    }
    this.drawRuler(context, width);
  }
  drawRuler(context, width) {
    const raw = (this.end - this.begin) / (this.width / 110), power = 10 ** Math.floor(Math.log10(raw));
    const step = [1, 2, 5, 10].find(factor => factor * power >= raw) * power;
    context.strokeStyle = "#262d3c";
    context.lineWidth = 1;
    for (let time = Math.ceil(this.begin / step) * step; time < this.end; time += step) {
      const x = Math.round(this.x(time)) + 0.5;
      if (x < kGutter) continue;
      context.beginPath(), context.moveTo(x, kRuler - 6), context.lineTo(x, kRuler), context.stroke();
      if (x < width - 60) context.fillText(timeText(time - this.model.begin), x + 4, kRuler / 2);
    }
  }
  // The event under the pointer, and lines from what it waited for.
  drawHovered(context) {
    if (!this.hovered) return;
    const {lane: l, event: e} = this.hovered, lane = this.model.lanes[l];
    const middle = i => kRuler + this.tops[i] - this.scroll + this.heights[i] / 2;
    const left = Math.max(kGutter, this.x(lane.fetched[e])), right = this.x(lane.done[e]);
    context.save();
    context.beginPath(), context.rect(kGutter, kRuler, this.width, this.laneRoom), context.clip();
    context.strokeStyle = "#ffffff", context.lineWidth = 1.5;
    context.strokeRect(left, kRuler + this.tops[l] - this.scroll, Math.max(2, right - left), this.heights[l] - 1);
    const lines = new Path2D();
    for (const last of lastSignals(this.model, lane, e))
      if (last) lines.moveTo(this.x(last.done), middle(last.lane)), lines.lineTo(this.x(lane.ready[e]), middle(l));
    context.setLineDash([4, 3]), context.stroke(lines);
    context.restore();
  }

  drawOverview() {
    const context = this.overview.getContext("2d"), {width, height} = this.overview, ratio = this.ratio;
    const left = Math.round(kGutter * ratio), pixels = Math.max(1, width - left);
    if (!this.overviewImage || this.overviewPicked !== this.picked) {
      this.overviewImage = this.makeOverview(context, pixels, height), this.overviewPicked = this.picked;
    }
    context.setTransform(1, 0, 0, 1, 0, 0);
    context.fillStyle = "#10141c";
    context.fillRect(0, 0, width, height);
    context.putImageData(this.overviewImage, left, 0);
    const whole = this.model.end - this.model.begin, at = time => left + (time - this.model.begin) / whole * pixels;
    const from = Math.max(left, at(this.begin)), to = Math.min(width, at(this.end));
    context.fillStyle = "#10141cb0";
    context.fillRect(left, 0, from - left, height), context.fillRect(to, 0, width - to, height);
    context.strokeStyle = "#8a94a8", context.lineWidth = ratio;
    context.strokeRect(from + 0.5, 0.5, Math.max(2, to - from - 1), height - 1);
    context.fillStyle = "#8a94a8", context.font = `${11 * ratio}px ui-sans-serif, system-ui, 'DejaVu Sans', sans-serif`;
    context.textBaseline = "middle", context.fillText("busy", 12 * ratio, height / 2);
  }
  // How many of the workers computed, over the whole run, in the mean of their colours.
  makeOverview(context, pixels, height) {
    const image = context.createImageData(pixels, height), out = new Uint32Array(image.data.buffer);
    const run = new Uint32Array(pixels), wait = new Uint32Array(pixels), sums = new Float64Array(pixels * 4);
    const {begin, end} = this.model, step = (end - begin) / pixels;
    const lanes = this.model.lanes.filter(lane => lane.role === 0);
    for (const lane of lanes) {
      this.aggregate(lane, begin, end, run, wait);
      let before = 0;
      for (let p = 0; p < pixels; ++p) {
        const until = busyUntil(lane, begin + (p + 1) * step), busy = until - before;
        before = until;
        sums[p * 4 + 3] += busy;
        for (let c = 0; c < 3; ++c) sums[p * 4 + c] += busy * (run[p] >> (8 * c) & 255);
      }
    }
    out.fill(pack(...kLane));
    const units = Math.max(1, this.model.summary.units);
    for (let p = 0; p < pixels; ++p) {
      const busy = sums[p * 4 + 3];
      if (busy <= 0) continue;
      const colour = pack(sums[p * 4] / busy, sums[p * 4 + 1] / busy, sums[p * 4 + 2] / busy);
      const bar = Math.round(Math.min(1, busy / (step * units)) * (height - 6));
      for (let y = height - bar; y < height; ++y) out[y * pixels + p] = colour;
    }
    return image;
  }

  draw() {
    const begin = performance.now(), context = this.canvas.getContext("2d");
    context.setTransform(1, 0, 0, 1, 0, 0);
    this.drawLanes(context);
    context.setTransform(this.ratio, 0, 0, this.ratio, 0, 0);
    this.drawNames(context);
    this.drawPath(context);
    this.drawHovered(context);
    this.drawFrame(context);
    this.drawOverview();
    this.frameMs = performance.now() - begin;
  }
}
