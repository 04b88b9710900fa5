"""Rows of the gate: times, each next to a unit of work that shows how fast the machine is.

A row has a name and the command that measures it, once per process. A sample of a row is the median, over one
process, of its time as a multiple of the unit's time around it, so that a slow or busy machine changes it
little. Each sample comes from a separate process, because processes differ (in where memory lies, and in what
runs at the same time) by more than the times within one.

"""

import json
import statistics
import subprocess
from dataclasses import dataclass

import report
from report import ROOT

# Each lists its rows: --list.
PROGRAMS = ("bench_op_call", "bench_programs", "bench_trace_cost", "bench_tune_store")


@dataclass(frozen=True)
class Row:
    name: str
    command: tuple[str, ...]


@dataclass(frozen=True)
class Sample:
    units: float
    ms: float


def run(command, build):
    program = build / command[0]
    if not program.exists():
        raise SystemExit(f"{program} is not there; ninja -C {build} {' '.join(PROGRAMS)} builds it")
    done = subprocess.run([program, *command[1:]], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(command)} ended with {done.returncode}: {done.stderr.strip()}")
    return json.loads(done.stdout)


def all_rows(build, only=""):
    """The rows whose names contain `only`, and the device."""
    rows, device = [], ""
    for program in PROGRAMS:
        listed = run((program, "--list"), build)
        device = listed["device"]
        names = [row["name"] for row in listed["rows"] if only in row["name"]]
        rows += [Row(name, (program, "--only", name, "--repeats", "5")) for name in names]
    return rows, device


def sample(row, build):
    (measured,) = run(row.command, build)["rows"]
    units = [ms / unit for ms, unit in zip(measured["ms"], measured["unit_ms"], strict=True)]
    return Sample(statistics.median(units), statistics.median(measured["ms"]))


def baseline_path(device):
    return ROOT / "bench/results" / report.folder_name(device) / "rows.json"
