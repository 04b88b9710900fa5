"""Bars for the suite `shapes`: the geometric mean and the worst of a figure for each kind, and whether they
reach what is wanted on a GPU. A bar decides here, where works are timed, and never in a test."""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

from heddle.bench.suites import shapes
from heddle.bench.timing import is_gpu
from heddle.bench.work import BACKWARD, FORWARD


@dataclass(frozen=True)
class Figure:
    """A figure that bars judge rows by. `of(row)` is None where the row has no such figure."""

    title: str
    of: Callable
    more_is_better: bool
    digits: int = 2

    def worst(self, found):
        return (min if self.more_is_better else max)(found)

    def reaches(self, value, wanted):
        """Compares as many digits as are printed."""
        value = round(value, self.digits)
        return value >= wanted if self.more_is_better else value <= wanted


# A row's `ratio` is the fastest peer's time over heddle's.
TIME = Figure("time / fastest peer's", lambda row: 1 / row["ratio"] if row.get("ratio") else None, False)
COPY = Figure(
    "copy's time / time", lambda row: row["of_ceiling"] if row.get("ceiling") == "copy" else None, True
)
RATE = Figure("GB/s", lambda row: row["rate"] if row.get("rate_unit") == "GB/s" else None, True, 0)


@dataclass(frozen=True)
class Bar:
    """A figure of all rows of some kinds, and what is wanted of its `mean` and `worst`; empty: nothing is."""

    title: str
    kinds: tuple[str, ...]
    part: str
    figure: Figure
    wanted: dict
    device: str = ""  # the bar is for devices with this in their name


_ROWS = (shapes.NORMS, shapes.ROWS)
BARS = (
    Bar("gemm, all", (shapes.GEMM, shapes.GEMM_UNALIGNED), FORWARD, TIME, {"mean": 1.02}),
    Bar("gemm, rows and pointers of 16 bytes", (shapes.GEMM,), FORWARD, TIME, {"worst": 1.15}),
    Bar("gemm, others", (shapes.GEMM_UNALIGNED,), FORWARD, TIME, {"worst": 1.3}),
    Bar("rows", _ROWS, FORWARD, COPY, {"worst": 0.9}),
    Bar("rows", _ROWS, BACKWARD, COPY, {"worst": 0.88}),
    Bar("rows", _ROWS, FORWARD, TIME, {}),
    Bar("rows", _ROWS, BACKWARD, TIME, {}),
    Bar("rms_norm, layer_norm", (shapes.NORMS,), BACKWARD, RATE, {"worst": 3500}, device="H200"),
    Bar("copy, transpose, add", (shapes.ELEMENTS,), FORWARD, COPY, {}),
    Bar("copy, transpose, add", (shapes.ELEMENTS,), FORWARD, TIME, {}),
    Bar("attention", (shapes.ATTENTION,), FORWARD, TIME, {"worst": 1.0}),
    Bar("attention", (shapes.ATTENTION,), BACKWARD, TIME, {"worst": 1.0}),
    Bar("fp8, scales of rows", (shapes.FP8,), FORWARD, TIME, {}),
)
HOLDS, MISSED, NOT_MEASURED = "holds", "missed", "not measured"


def geometric_mean(values):
    return math.exp(sum(map(math.log, values)) / len(values))


@dataclass(frozen=True)
class Judged:
    """A bar, the figures that were found as (figure, work), and the rows that have none, as no peer ran."""

    bar: Bar
    found: list
    without: int

    def value(self, name):
        values = [value for value, _ in self.found]
        return geometric_mean(values) if name == "mean" else self.bar.figure.worst(values)

    def state(self, name):
        if not self.found:
            return NOT_MEASURED
        return HOLDS if self.bar.figure.reaches(self.value(name), self.bar.wanted[name]) else MISSED

    def record(self):
        """For a file."""
        bar = self.bar
        made = {"title": bar.title, "part": bar.part, "figure": bar.figure.title, "shapes": len(self.found)}
        if self.found:
            made["mean"] = round(self.value("mean"), 4)
            worst, made["worst_work"] = self.bar.figure.worst(self.found)
            made["worst"] = round(worst, 4)
        return made | {"wanted": bar.wanted, "states": {name: self.state(name) for name in bar.wanted}}

    def wishes(self):
        """Each thing that is wanted, and what it came to, as (state, text)."""
        figure = self.bar.figure
        for name, wanted in self.bar.wanted.items():
            sign, state = ">=" if figure.more_is_better else "<=", self.state(name)
            yield state, f"{name} {sign} {wanted:.{figure.digits}f} {state}"

    def line(self):
        digits = self.bar.figure.digits
        text = f"{self.bar.title}, {self.bar.part}, {self.bar.figure.title}: {len(self.found)} shapes"
        if self.found:
            worst, work = self.bar.figure.worst(self.found)
            text += f", mean {self.value('mean'):.{digits}f}, worst {worst:.{digits}f} ({work})"
        if self.without:
            text += f"; {self.without} without a peer"
        return "; ".join([text, *(text for _, text in self.wishes())])


def judge(rows, device, name):
    """All bars on the rows of a run on `device`, whose name is `name`. Nothing is wanted of a CPU, nor of a
    GPU that a bar is not for."""
    judged = []
    for bar in BARS:
        of_bar = [row for row in rows if row.get("kind") in bar.kinds and row["part"] == bar.part]
        found = [(value, row["work"]) for row in of_bar if (value := bar.figure.of(row)) is not None]
        if not is_gpu(device) or bar.device not in name:
            bar = replace(bar, wanted={})
        judged.append(Judged(bar, found, len(of_bar) - len(found)))
    return judged


def all_hold(judged):
    return all(state == HOLDS for each in judged for state, _ in each.wishes())


def verdict(judged, missing=0):
    """Sums up the bars. `missing`: works that failed or lacked time."""
    said = [
        (state, f"{each.bar.title}, {each.bar.part}: {text}")
        for each in judged
        for state, text in each.wishes()
    ]
    if not said:
        return "verdict: there are no bars for this device"
    holding = sum(state == HOLDS for state, _ in said)
    lines = [f"verdict: {holding} of {len(said)} bars hold"]
    lines += [f"  {text}" for state, text in said if state != HOLDS]
    if missing:
        lines.append(f"  {missing} works failed or lacked time, and are in no bar")
    return "\n".join(lines)
