"""Nsight Systems over the cases of ops, or over a command: kernels and the ranges of calls, in words.

Ranges of NVTX stand around the calls of ops (heddle.ranges), so that a timeline says which op launched what.
"""

import csv
import io
import os
import subprocess
import sys
from pathlib import Path

from heddle.commands.command_line import Said
from heddle.errors import Unsupported
from heddle.profile.tools import find

REPORTS = {"cuda_gpu_kern_sum": "kernels", "nvtx_pushpop_sum": "ranges"}


def command_of(tool, program, out):
    return [
        tool,
        "profile",
        "--trace",
        "cuda,nvtx",
        "--force-overwrite",
        "true",
        "--output",
        str(out),
        *program,
    ]


def tables(text):
    """The tables of what `nsys stats --format csv` printed, each a list of rows: an empty line ends one."""
    for part in text.split("\n\n"):
        lines = part.strip().splitlines()
        begin = next((i for i, line in enumerate(lines) if "Time (%)" in line), None)
        if begin is not None:
            yield list(csv.DictReader(io.StringIO("\n".join(lines[begin:]))))


def in_words(rows, most):
    """Lines about a table, the longest first."""
    name = "Range" if rows and "Range" in rows[0] else "Name"
    for row in rows[: most or len(rows)]:
        total, median = float(row["Total Time (ns)"]), float(row["Med (ns)"])
        found = {
            "kind": name.lower() if name == "Range" else "kernel",
            "name": row[name].lstrip(":"),
            "per_cent": float(row["Time (%)"]),
            "times": int(row["Instances"]),
            "total_ns": total,
            "median_ns": median,
        }
        yield Said(
            f"    {found['per_cent']:5.1f} % {total / 1e6:10.3f} ms, {found['times']} times"
            f" {median / 1e3:.1f} us (median): {found['name']}",
            found,
        )
    if most and len(rows) > most:
        yield f"    and {len(rows) - most} others; --most 0 shows all"


def run(program, out="heddle.nsys-rep", most=8, to_stderr=False, run_process=subprocess.run):
    """Records a program; lines about its kernels and ranges. The report stays in `out`, for Nsight
    Systems. What the program prints goes to stderr with `to_stderr`."""
    tool, out = find("nsys"), Path(out)
    recorded = run_process(
        command_of(tool, program, out.with_suffix("")),
        env={**os.environ, "HEDDLE_NVTX": "1"},
        stdout=2 if to_stderr else None,
        check=False,
    )
    report = out.with_suffix(".nsys-rep")
    if recorded.returncode and not report.exists():
        raise Unsupported(f"[profile] nsys ended with {recorded.returncode} and wrote no {report}")
    stats = [tool, "stats", "--format", "csv", "--force-export", "true"]
    for kind, title in REPORTS.items():
        made = run_process(
            [*stats, "--report", kind, str(report)], capture_output=True, text=True, check=False
        )
        rows = next(tables(made.stdout), [])
        yield f"{title}:" if rows else f"no {title} were recorded"
        yield from in_words(rows, most)
    yield f"wrote {report}: nsys-ui shows it"
    if recorded.returncode:
        raise Unsupported(f"[profile] the command ended with {recorded.returncode}")


def of_ops(ops, device, most):
    return [sys.executable, "-m", "heddle.profile.calls", *ops, "--device", device, "--most", str(most)]
