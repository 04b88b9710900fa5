"""Finds rows that have become slower than their baseline by 5 % or more. Not part of `make test`.

    python3 bench/gate.py [--only TEXT] [--build build/release]

A row is measured in several processes and compared with the samples of bench/results/<device>/rows.json. One
that looks slower, or of which too little is known, is measured again, in up to 30 of them, before it fails.
The exit code is 1 if a row has become slower, 2 if there is no baseline for this kind of machine.
"""

import argparse
import json
import sys
from pathlib import Path

import rows
from report import ROOT, of_package

compare = of_package("compare")


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
        found, fresh = compare.judge(
            baseline[row.name], lambda row=row: rows.sample(row, arguments.build).units
        )
        failed += found == "slower"
        print(
            f"{found:8} {compare.change(baseline[row.name], fresh):+6.1%} ({len(fresh)} runs)  {row.name}",
            flush=True,
        )
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
