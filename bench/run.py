"""Measures the rows of the gate, and keeps them as the baseline of this kind of machine or compares with it.

    python3 bench/run.py [--only TEXT] [--runs 20] [--build build/release]
    python3 bench/run.py --compare [--only TEXT]   # make gate: finds rows that have become slower by 5 %
    python3 bench/run.py --suite smoke --out results.json   # ops next to their peers: python -m heddle.bench

Runs go round by round over all rows, so that a change of the machine's speed meets all alike. Writes
bench/results/<device>/rows.json; with --only, the other rows of that file stay. --compare measures a row that
looks slower, or of which too little is known, in up to 30 processes. It exits with 1 if a row has become
slower, and with 2 if there is no baseline for this kind of machine.
"""

import argparse
import json
import shlex
import statistics
import sys
from pathlib import Path

import report
import rows
from report import ROOT, of_package

compare = of_package("compare")


def row_of(row, samples):
    return {
        "name": row.name,
        "command": shlex.join(row.command),
        "ms": round(statistics.median(s.ms for s in samples), 3),
        "units": [round(s.units, 5) for s in samples],
    }


def measure_suite():
    """Measures ops in place of the gate's rows: the package does that, which the interpreter must have."""
    try:
        from heddle.bench.__main__ import main as measure
    except ModuleNotFoundError as error:
        build = "PYTHONPATH=build/release/python .venv/bin/python bench/run.py"
        sys.exit(f"bench/run.py: --suite measures ops of the Python package, and {error}; try {build}")
    sys.exit(measure())


def compare_with_baseline(wanted, path, build):
    """The exit code."""
    if not path.exists():
        print(
            f"no baseline for this kind of machine: {path.relative_to(ROOT)} is not there;"
            " python3 bench/run.py measures it, and the next make gate compares with it",
            file=sys.stderr,
        )
        return 2
    baseline = {row["name"]: row["units"] for row in json.loads(path.read_text())["rows"]}
    failed = 0
    for row in wanted:
        if row.name not in baseline:
            print(f"new      {row.name}: no baseline", flush=True)
            continue
        found, fresh = compare.judge(baseline[row.name], lambda row=row: rows.sample(row, build).units)
        failed += found == "slower"
        change = compare.change(baseline[row.name], fresh)
        print(f"{found:8} {change:+6.1%} ({len(fresh)} runs)  {row.name}", flush=True)
    return 1 if failed else 0


def main():
    if any(word.split("=")[0] == "--suite" for word in sys.argv[1:]):
        measure_suite()
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", default="", help="rows whose names contain this")
    parser.add_argument("--compare", action="store_true", help="with the baseline of this kind of machine")
    parser.add_argument("--runs", type=int, default=20, help="processes for a row")
    parser.add_argument("--commit", help="that was built; default: what git says")
    parser.add_argument("--build", type=Path, default=ROOT / "build/release")
    arguments = parser.parse_args()
    wanted, device = rows.all_rows(arguments.build, arguments.only)
    path = rows.baseline_path(device)
    if arguments.compare:
        sys.exit(compare_with_baseline(wanted, path, arguments.build))
    commit = arguments.commit or report.commit()
    samples = {row: [] for row in wanted}
    for number in range(arguments.runs):
        for row in wanted:
            samples[row].append(rows.sample(row, arguments.build))
        print(f"run {number + 1} of {arguments.runs}", flush=True)
    old = json.loads(path.read_text())["rows"] if path.exists() else []
    made = {row["name"]: row for row in old} if arguments.only else {}
    made |= {row.name: row_of(row, samples[row]) for row in wanted}
    result = {
        "device": device,
        "date": report.today(),
        "commit": commit,
        "rows": list(made.values()),
    }
    report.write(result, path, "rows")
    for row in wanted:
        print(f"{made[row.name]['ms']:9.2f} ms  {row.name}")


if __name__ == "__main__":
    main()
