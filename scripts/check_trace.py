#!/usr/bin/env python3
"""Reads the files of `heddle profile --out` and `heddle trace` with independent readers.

It reads the .nanotrace with its own reader, the Perfetto file with the schema that Perfetto publishes, and
the page in a headless browser: for the shipped model, and for 3,000,000 made-up events. Screenshots are in
build/trace.

"""

import argparse
import collections
import pathlib
import random
import shutil
import statistics
import struct
import subprocess
import zlib

from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import Trace, TrackEvent
from playwright.sync_api import sync_playwright

ROOT = pathlib.Path(__file__).resolve().parent.parent
OUT = ROOT / "build/trace"
BROWSERS = ("chromium-headless-shell", "chromium", "google-chrome")
STEPS, WORKERS = 4, 8
LANES, EVENTS = 150, 20_000
FRAME_MS = 100  # the longest time of a frame with all of these on a busy machine; 20 on a quiet one


class Fields:
    """The little-endian fields of a .nanotrace, one after the other."""

    def __init__(self, data):
        self.data, self.at = data, 0

    def get(self, form):
        values = struct.unpack_from("<" + form, self.data, self.at)
        self.at += struct.calcsize("<" + form)
        return values[0] if len(values) == 1 else values

    def text(self):
        size = self.get("H")
        self.at += size
        return self.data[self.at - size : self.at].decode()


def read_nanotrace(path):
    """Events by track and label, read by the layout of version 1. It knows nothing of heddle."""
    data = path.read_bytes()
    assert data[:12] == b"nanotrace\0\x01\x01", data[:12]
    fields = Fields(zlib.decompress(data[12:]))
    fields.text(), fields.get("6I")
    formats, blocks, tracks, total = fields.get("IIIQ")
    kinds = [(fields.text(), fields.text(), fields.get("B")) for _ in range(formats)]
    units = [fields.get("IIHH")[2] for _ in range(blocks)]
    found = []
    for _ in range(tracks):
        block, kind, _ = fields.get("IHI")
        fields.get(f"{kinds[kind][2]}I") if kinds[kind][2] else None
        events = []
        for _ in range(fields.get("I")):
            begin, duration, kind = fields.get("IIH")
            fields.get(f"{kinds[kind][2]}I") if kinds[kind][2] else None
            events.append((kinds[kind][0], begin, begin + duration))
        found.append((block, units[block], events))
    assert sum(len(events) for *_, events in found) == total
    return found


def read_perfetto(path):
    """Reads Perfetto's file: slices by track, and how many arrows begin and end."""
    trace = Trace()
    trace.ParseFromString(path.read_bytes())
    names, slices, arrows = {}, collections.defaultdict(list), collections.Counter()
    tracks, notes = [], collections.Counter()
    note_names = {}
    for packet in trace.packet:
        assert packet.trusted_packet_sequence_id == 1
        names |= {name.iid: name.name for name in packet.interned_data.event_names}
        note_names |= {name.iid: name.name for name in packet.interned_data.debug_annotation_names}
        if packet.HasField("track_descriptor"):
            tracks.append(packet.track_descriptor)
        if not packet.HasField("track_event"):
            continue
        event = packet.track_event
        if event.type == TrackEvent.TYPE_SLICE_BEGIN:
            slices[event.track_uuid].append([names[event.name_iid], packet.timestamp])
            notes.update(note_names[note.name_iid] for note in event.debug_annotations)
        else:
            assert event.type == TrackEvent.TYPE_SLICE_END
            slices[event.track_uuid][-1].append(packet.timestamp)
        arrows["begin"] += len(event.flow_ids)
        arrows["end"] += len(event.terminating_flow_ids)
    root, *lanes = tracks
    assert root.process.process_name
    assert {lane.parent_uuid for lane in lanes} == {root.uuid}
    assert {"step", "instruction", "node", "tile", "bytes", "flops"} <= notes.keys(), notes
    assert 0 < arrows["begin"] <= arrows["end"], arrows
    return [[tuple(span) for span in slices[lane.uuid]] for lane in lanes]


def write_many(path):
    """A .nanotrace of another program: LANES x EVENTS, in eight kinds."""
    chance = random.Random(1)
    kinds = ["block", "lane", *(f"op{i}" for i in range(8))]

    def text(value):
        return struct.pack("<H", len(value)) + value.encode()

    parts = [text("many"), struct.pack("<6I", LANES, 1, 1, 0, 0, 0)]
    parts.append(struct.pack("<IIIQ", len(kinds), LANES, LANES, LANES * EVENTS))
    parts += [text(kind) + text("") + b"\0" for kind in kinds]
    parts += [struct.pack("<IIHH", block, 0, block, 0) for block in range(LANES)]
    for block in range(LANES):
        parts.append(struct.pack("<IHII", block, 1, 0, EVENTS))
        at, events = 0, bytearray()
        for event in range(EVENTS):
            at += 50 + int(chance.random() * 350)
            duration = 500 + int(chance.random() * 3500)
            kind = event // 50 if event // 50 % 2 else event * 7 + block
            events += struct.pack("<IIH", at, duration, 2 + kind % 8)
            at += duration
        parts.append(bytes(events))
    path.write_bytes(b"nanotrace\0\x01\x01" + zlib.compress(b"".join(parts), 1))


def expect(text, *words):
    for word in words:
        assert word in text, f"no {word!r} in\n{text}"


class Page:
    """A page that heddle wrote, in the browser."""

    def __init__(self, browser, path):
        self.page = browser.new_page(viewport={"width": 1500, "height": 900})
        self.errors = []
        self.page.on("pageerror", lambda error: self.errors.append(str(error)))
        self.page.on(
            "request", lambda request: self.errors.append(request.url) if "http" in request.url else None
        )
        self.page.goto(path.as_uri())
        self.page.wait_for_function("window.timeline || document.getElementById('failure')", timeout=120_000)
        self.frame()

    def __getattr__(self, name):
        return getattr(self.page, name)

    def frame(self):
        """Milliseconds that the next frame takes to draw."""
        self.page.evaluate("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")
        return self.page.evaluate("timeline.view.frameMs")

    def shot(self, name):
        self.page.screenshot(path=OUT / f"{name}.png")

    def pixels(self):
        return self.page.evaluate("document.getElementById('lanes').toDataURL()")

    def point_at(self, lane, event):
        """Moves the pointer to the middle of an event's work and returns the page's text about it."""
        x, y = self.page.evaluate(
            """([l, e]) => {
              const {view, model} = timeline, lane = model.lanes[l];
              const box = view.canvas.getBoundingClientRect();
              return [box.left + view.x((lane.ready[e] + lane.done[e]) / 2),
                      box.top + kRuler + view.tops[l] - view.scroll + view.heights[l] / 2];
            }""",
            [lane, event],
        )
        self.page.mouse.move(x, y)
        self.frame()
        return self.page.locator("#hover").inner_text()


def check_page(browser, path, tracks):
    page = Page(browser, path)
    page.shot("storyteller")
    work = sum(label not in ("wait", "publish") for *_, events in tracks for label, *_ in events)
    facts = page.locator("#facts").inner_text()
    expect(facts, f"workers {WORKERS} on 2", f"events {work:,}")
    expect(page.locator("#ops").inner_text(), "attention", "GB/s", "rms_norm linear")
    expect(page.locator("#idle").inner_text(), "the last producer had not signalled")
    counts = page.evaluate("timeline.model.lanes.map(lane => lane.count)")
    assert sum(counts) == work, (counts, work)

    # Points at a tile of attention that waited for another worker.
    lane, event = page.evaluate(
        """() => {
          const {model} = timeline;
          for (let l = 0; l < model.lanes.length; ++l)
            for (let lane = model.lanes[l], e = lane.count - 1; e >= 0; --e)
              if (model.ops[lane.op[e]] === "attention" && lastSignals(model, lane, e).some(last => last))
                return [l, e];
        }"""
    )
    before = page.evaluate("timeline.view.end - timeline.view.begin")
    page.evaluate(
        """([l, e]) => { const {view, model} = timeline, lane = model.lanes[l];
          view.begin = lane.ready[e] - 60000, view.end = lane.done[e] + 60000, view.pan(0, 0); }""",
        [lane, event],
    )
    said = page.point_at(lane, event)
    expect(said, ".attention", "tile", "GB/s", "waited for\tlayers.", "from worker")
    page.shot("storyteller_hover")
    box = page.locator("#lanes").bounding_box()
    page.mouse.move(box["x"] + 600, box["y"] + 100)
    page.mouse.wheel(0, -400)
    page.frame()
    assert page.evaluate("timeline.view.end - timeline.view.begin") < before / 2
    with_path = page.pixels()
    page.keyboard.press("c")
    page.frame()
    assert page.pixels() != with_path, "the critical path is drawn"
    all_ops = page.pixels()
    page.locator("#ops tbody tr").first.click()
    page.frame()
    assert page.pixels() != all_ops, "one op is singled out"
    page.keyboard.press("f")
    page.frame()
    assert abs(page.evaluate("timeline.view.end - timeline.view.begin") - before) < 1
    assert not page.errors, page.errors


def check_bodies(browser, path):
    page = Page(browser, path)
    expect(page.locator("#bodies").inner_text(), "linear_kernel.sm90 (", "no whole kernel because")
    lane, event = page.evaluate(
        """() => {
          const {model} = timeline, lane = model.lanes[0];
          for (let e = 0; e < lane.count; ++e) {
            const {call} = model.workers[0].stream[lane.instruction[e]];
            if (call !== kNone && model.calls[call].body) return [0, e];
          }
        }"""
    )
    expect(page.point_at(lane, event), "run by")
    assert not page.errors, page.errors


def check_many(browser, path):
    page = Page(browser, path)
    assert f"events {LANES * EVENTS:,}" in page.locator("#facts").inner_text()
    page.shot("many")
    frames = []
    page.mouse.move(750, 300)
    for step in range(24):  # in, along, and out again
        page.mouse.wheel(0, -300 if step < 10 else 300 if step >= 14 else 0)
        if 10 <= step < 14:
            page.mouse.wheel(200, 0)
        frames.append(page.frame())
    assert not page.errors, page.errors
    assert statistics.median(frames) < FRAME_MS, frames
    return frames


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--heddle", default=ROOT / "build/release/heddle")
    arguments = parser.parse_args()
    OUT.mkdir(parents=True, exist_ok=True)

    def heddle(*args):
        return subprocess.run([arguments.heddle, *args], check=True, capture_output=True, text=True).stdout

    story = OUT / "storyteller.nanotrace"
    run = ("--threads", "2", "--workers", str(WORKERS), "--steps", str(STEPS), "--out", story)
    printed = heddle("profile", ROOT / "models/storyteller", *run)
    assert heddle("trace", story, "--out", OUT / "storyteller.html") == printed
    assert heddle("trace", OUT / "storyteller.html", "--out", OUT / "storyteller.perfetto-trace") == printed
    tracks = read_nanotrace(story)
    slices = read_perfetto(OUT / "storyteller.perfetto-trace")
    assert [events for *_, events in tracks] == slices, "both files have the same events"
    print(f"check_trace: {len(tracks)} tracks, {sum(map(len, slices))} slices: .nanotrace and Perfetto agree")

    of_prompts = ("--executor", "megakernel", "--workers", str(WORKERS), "--rows", "512")
    heddle("schedule", ROOT / "models/storyteller", *of_prompts, "--plot", OUT / "prompt.html")

    browser_path = next(filter(None, map(shutil.which, BROWSERS)), None)
    assert browser_path, f"none of {BROWSERS} is here; scripts/setup browser installs one"
    write_many(OUT / "many.nanotrace")
    heddle("trace", OUT / "many.nanotrace", "--out", OUT / "many.html")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=browser_path, args=["--no-sandbox"])
        check_page(browser, OUT / "storyteller.html", tracks)
        check_bodies(browser, OUT / "prompt.html")
        frames = check_many(browser, OUT / "many.html")
        browser.close()
    print(
        f"check_trace: a page of {LANES} x {EVENTS} events takes {statistics.median(frames):.0f} ms a frame, "
        f"{max(frames):.0f} at most; screenshots in {OUT.relative_to(ROOT)}"
    )


if __name__ == "__main__":
    main()
