"""Finds rows that have become slower than their baseline by 5 % or more. Not part of `make test`.

    python3 bench/gate.py [--only TEXT] [--build build/release]

A row is measured in several processes and compared with the samples of bench/results/<device>/rows.json. One
that looks slower, or of which too little is known, is measured again, in up to MOST of them, before it fails.
The exit code is 1 if a row has become slower, 2 if there is no baseline for this kind of machine.
"""

import argparse
import json
import math
import statistics
import sys
from pathlib import Path

import rows
from report import ROOT

TOLERANCE = 0.015  # a loss of so much is no loss: what compilers and neighbours change by themselves
LOSS = 0.05  # that is to be found
FEW, MOST = 5, 30  # samples
CONFIRMED = 10  # samples that a failure takes at least
SURE = 2.6  # standard deviations: one look in 200 is wrong where the loss is just TOLERANCE


def rank_score(samples, others):
    """By how many standard deviations `samples` tend to be above `others`: Mann and Whitney's U."""
    n, m = len(samples), len(others)
    above = sum((a > b) + 0.5 * (a == b) for a in samples for b in others)
    return (above - n * m / 2) / math.sqrt(n * m * (n + m + 1) / 12)


def verdict(baseline, fresh):
    """'slower', 'fine', or '' where more samples are needed."""
    most = len(fresh) >= MOST
    if len(fresh) < FEW:
        return ""
    if rank_score(fresh, [value * (1 + TOLERANCE) for value in baseline]) > SURE and len(fresh) >= CONFIRMED:
        return "slower"
    if rank_score([value * (1 + LOSS) for value in baseline], fresh) > SURE or most:
        return "fine"
    return ""


def judge(baseline, take):
    """The verdict, and the samples that it took; `take` measures one."""
    fresh = []
    while not (found := verdict(baseline, fresh)):
        fresh.append(take())
    return found, fresh


def change(baseline, fresh):
    return statistics.median(fresh) / statistics.median(baseline) - 1


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", default="", help="rows whose names contain this")
    parser.add_argument("--build", type=Path, default=ROOT / "build/release")
    arguments = parser.parse_args()
    wanted, device = rows.all_rows(arguments.build, arguments.only)
    path = rows.baseline_path(device)
    if not path.exists():
        print(
            f"{path} is not there: bench/run.py writes a baseline for this kind of machine", file=sys.stderr
        )
        sys.exit(2)
    baseline = {row["name"]: row["units"] for row in json.loads(path.read_text())["rows"]}
    failed = 0
    for row in wanted:
        if row.name not in baseline:
            print(f"new      {row.name}: no baseline", flush=True)
            continue
        found, fresh = judge(baseline[row.name], lambda row=row: rows.sample(row, arguments.build).units)
        failed += found == "slower"
        print(
            f"{found:8} {change(baseline[row.name], fresh):+6.1%} ({len(fresh)} runs)  {row.name}", flush=True
        )
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
