"""Rounds of benchmarks on CPU threads: heddle and transformers, each in a process of its own, warm."""

import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from report import ROOT


def add_arguments(parser):
    parser.add_argument("--heddle", type=Path, default=ROOT / "build/release/heddle")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--prompt", type=int, default=512)
    parser.add_argument("--steps", type=int, default=32)
    parser.add_argument("--repeats", type=int, default=4, help="of a measurement within a round")
    parser.add_argument("--rounds", type=int, default=3)


def flags_of(arguments):
    """As a reader would type them."""
    names = ("rounds", "threads", "prompt", "steps", "repeats")
    return " ".join(f"--{name} {getattr(arguments, name)}" for name in names)


def run_measured(command):
    """Standard output and peak resident bytes of one process."""
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT)
    out = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        sys.exit(f"{' '.join(command)} ended with {process.returncode}")
    return out, usage.ru_maxrss * 1024


def value_of(results, start, end=""):
    """The value of the last row whose work begins and ends with these texts."""
    rows = [r for r in results["rows"] if r["work"].startswith(start) and r["work"].endswith(end)]
    return rows[-1]["value"]


def heddle_round(arguments, checkpoint):
    with tempfile.NamedTemporaryFile(suffix=".json") as file:
        command = [str(arguments.heddle), "bench", str(checkpoint), "--executor", "threads"]
        command += ["--threads", str(arguments.threads), "--positions", str(arguments.prompt)]
        command += ["--prefill", str(arguments.prompt), "--steps", str(arguments.steps)]
        _, resident = run_measured([*command, "--rounds", str(arguments.repeats), "--out", file.name])
        results = json.loads(Path(file.name).read_text())
    threads = f"{arguments.threads} threads"
    return {
        "decode_ms": value_of(results, "decode at position", threads),
        "prefill_tokens_per_s": value_of(results, "prefill", threads),
        "first_tokens_per_s": value_of(results, "prefill", "the first"),
        "build_s": value_of(results, "program of"),
        "load_s": value_of(results, "start"),
        "bandwidth": value_of(results, "read bandwidth") * 1e9,
        "resident_bytes": resident,
        "device": results["device"],
    }


def transformers_round(arguments, checkpoint, dtype="bfloat16"):
    command = [sys.executable, "bench/peers/transformers_cpu.py", str(checkpoint), "--dtype", dtype]
    for name in ("threads", "prompt", "steps", "repeats"):
        command += [f"--{name}", str(getattr(arguments, name))]
    out, resident = run_measured([*command, "--position", str(arguments.prompt)])
    return {**json.loads(out), "resident_bytes": resident}


def interleaved(arguments, checkpoint, dtype="bfloat16"):
    """The rounds of heddle and of transformers, in pairs, and what transformers calls itself."""
    ours, theirs = [], []
    for number in range(arguments.rounds):
        ours.append(heddle_round(arguments, checkpoint))
        theirs.append(transformers_round(arguments, checkpoint, dtype))
        for name, made in (("heddle", ours[-1]), ("transformers", theirs[-1])):
            shown = {k: round(v, 2) for k, v in made.items() if isinstance(v, float)}
            print(f"{checkpoint.name} round {number + 1} {name}: {shown}", file=sys.stderr)
    versions = theirs[0]["versions"]
    return ours, theirs, f"transformers {versions['transformers']} torch {versions['torch']}"


def median_row(work, unit, ours, ceiling=None):
    middle = statistics.median(ours)
    return {
        "work": work,
        "value": round(middle, 3),
        "unit": unit,
        "ceiling": ceiling,
        "all": [round(v, 3) for v in ours],
    }


def row_with_peer(work, unit, ours, theirs, peer, ceiling=None):
    """A ratio above 1 is in heddle's favour."""
    row = median_row(work, unit, ours, ceiling)
    value, other = statistics.median(ours), statistics.median(theirs)
    ratio = value / other if unit == "tokens/s" else other / value
    row |= {"peers": {peer: round(other, 3)}, "ratio": round(ratio, 3)}
    return row | {"peer_all": [round(v, 3) for v in theirs]}
