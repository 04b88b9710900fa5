"""Nsight Compute over the cases of an op, or over a command: bytes, rates, occupancy and stalls, in words."""

import csv
import subprocess
import sys
from dataclasses import dataclass, field

from heddle.commands.command_line import Said
from heddle.errors import Unsupported
from heddle.profile.tools import find

STALL = "smsp__average_warps_issue_stalled_"
STALLS = {
    "long_scoreboard": "waits for memory",
    "short_scoreboard": "waits for shared memory",
    "barrier": "waits at a barrier",
    "wait": "fixed latency of instructions",
    "math_pipe_throttle": "a full arithmetic pipe",
    "mio_throttle": "a full queue of shared memory",
    "lg_throttle": "a full queue of memory",
    "tex_throttle": "a full queue of textures",
    "membar": "fences",
    "sleeping": "sleeps",
    "gmma": "waits for tensor cores",
    "not_selected": "another warp was chosen",
    "no_instruction": "waits for instructions",
    "branch_resolving": "branches",
    "dispatch_stall": "the dispatcher",
    "drain": "stores at the end",
    "imc_miss": "misses of constants",
    "misc": "others",
}
METRICS = {
    "gpu__time_duration.sum": "time",
    "dram__bytes_read.sum": "read",
    "dram__bytes_write.sum": "written",
    "gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed": "memory",
    "sm__throughput.avg.pct_of_peak_sustained_elapsed": "compute",
    "sm__inst_executed_pipe_tensor.avg.pct_of_peak_sustained_active": "tensor",
    "sm__warps_active.avg.pct_of_peak_sustained_active": "occupancy",
    "launch__registers_per_thread": "registers",
    "launch__grid_size": "grid",
    "launch__block_size": "threads",
} | {f"{STALL}{name}_per_issue_active.ratio": f"stall {name}" for name in STALLS}
SCALES = {
    "nsecond": 1e-9,
    "usecond": 1e-6,
    "msecond": 1e-3,
    "second": 1,
    "ns": 1e-9,
    "us": 1e-6,
    "ms": 1e-3,
    "s": 1,
}
SCALES |= {"byte": 1, "Kbyte": 1e3, "Mbyte": 1e6, "Gbyte": 1e9}


@dataclass
class Kernel:
    """Values in seconds, bytes, per cent, and cycles of a stall for each issued instruction."""

    name: str
    values: dict = field(default_factory=dict)


def rows_of(table):
    """(launch, kernel, metric, unit, value) of a table with a line for each metric (page "details"), or with
    a column for each and a line of units (page "raw")."""
    if "Metric Name" in table.fieldnames:
        for row in table:
            yield row["ID"], row["Kernel Name"], row["Metric Name"], row["Metric Unit"], row["Metric Value"]
        return
    units = next(table, {})
    for row in table:
        for metric in METRICS:
            if metric in row:
                yield row["ID"], row["Kernel Name"], metric, units[metric], row[metric]


def parse(text):
    """Kernels of what ncu printed as CSV, after lines of its own and of the program."""
    lines = text.splitlines()
    begin = next((i for i, line in enumerate(lines) if line.startswith('"ID"')), None)
    if begin is None:
        problem = next((line for line in lines if line.startswith(("==ERROR==", "==WARNING=="))), "no table")
        raise Unsupported(f"[profile] ncu measured nothing: {problem.strip()}")
    table = [line for line in lines[begin:] if line.startswith('"')]
    kernels = {}
    for launch, name, metric, unit, text_of_value in rows_of(csv.DictReader(table)):
        kernel = kernels.setdefault(launch, Kernel(name))
        try:
            value = float(text_of_value.replace(",", ""))
        except ValueError:
            continue  # "n/a": the device does not count it
        if metric in METRICS:
            kernel.values[METRICS[metric]] = value * SCALES.get(unit, 1)
    return list(kernels.values())


def in_words(kernel):
    """Lines about one launch. The first has its record."""
    v = kernel.values
    seconds = v.get("time", 0)
    size = f"{v.get('grid', 0):.0f} CTAs of {v.get('threads', 0):.0f} threads"
    record = {"kernel": kernel.name} | {name.replace(" ", "_"): x for name, x in v.items()}
    yield Said(f"{kernel.name}: {seconds * 1e6:.1f} us, {size}", record)
    if "read" in v and seconds:
        moved = v["read"] + v.get("written", 0)
        yield (
            f"    memory: {v['read'] / 1e6:.2f} MB read, {v.get('written', 0) / 1e6:.2f} MB written:"
            f" {moved / seconds / 1e9:.0f} GB/s, {v.get('memory', 0):.0f} % of what it can"
        )
    arithmetic = "not counted"
    if "compute" in v:
        arithmetic = f"{v['compute']:.0f} % of the SMs, tensor cores {v.get('tensor', 0):.0f} %"
    occupancy = f"occupancy {v.get('occupancy', 0):.0f} %, {v.get('registers', 0):.0f} registers a thread"
    yield f"    arithmetic: {arithmetic}; {occupancy}"
    stalls = {name.removeprefix("stall "): x for name, x in v.items() if name.startswith("stall ") and x > 0}
    total = sum(stalls.values())
    top = sorted(stalls, key=stalls.get, reverse=True)[:3]
    if top:
        words = ", ".join(f"{STALLS[name]} {stalls[name] / total:.0%}" for name in top)
        yield f"    a warp that does not issue: {words}"


# Kernels of heddle; torch's fill the tensors.
OURS = "regex:^(launch[0-9]+|standalone|call|megakernel)$"


def command_of(tool, program, choice=()):
    form = ["--csv", "--page", "details", "--print-units", "base", "--metrics", ",".join(METRICS)]
    return [tool, *form, *choice, *program]


def measured(program, choice, run_process):
    command = command_of(find("ncu"), program, choice)
    done = run_process(command, capture_output=True, text=True, check=False)
    return parse(done.stdout + done.stderr)


def run(op, most=4, device="cuda", run_process=subprocess.run):
    """Lines about all launches of an op's cases."""
    program = [sys.executable, "-m", "heddle.profile.calls", op, "--device", device, "--most", str(most)]
    kernels = measured(program, ["--kernel-name-base", "function", "--kernel-name", OURS], run_process)
    return [line for kernel in kernels for line in in_words(kernel)]


def run_command(command, most=8, run_process=subprocess.run):
    """Lines about the kernels of a command: of each name the launch of median time, the longest in all
    first."""
    by_name = {}
    for kernel in measured(command, (), run_process):
        by_name.setdefault(kernel.name, []).append(kernel)

    def seconds(kernel):
        return kernel.values.get("time", 0)

    groups = sorted(by_name.values(), key=lambda group: -sum(map(seconds, group)))
    for group in groups[: most or len(groups)]:
        first, *rest = in_words(sorted(group, key=seconds)[len(group) // 2])
        total = sum(map(seconds, group))
        of_all = f"; the median of {len(group)} launches, {total * 1e6:.1f} us in all"
        record = first.record | {"launches": len(group), "time_in_all": total}
        yield Said(first + (of_all if len(group) > 1 else ""), record)
        yield from rest
    if most and len(groups) > most:
        yield f"and {len(groups) - most} other kernels; --most 0 shows all"
