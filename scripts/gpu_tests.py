"""Runs the tests of `make gpu-tests`, each by itself; or compiles the device code that they will need.

    python3 scripts/gpu_tests.py compile [BUNDLE] [--cubins dist/cubins]
    python3 scripts/gpu_tests.py run [BUNDLE] [--cubins dist/cubins] [--out tests.json] [--logs logs]
        [--racecheck]

`compile` needs no GPU. It runs the tests on a driver, made in build/release, whose H200 does nothing. All
tests fail, which means nothing; the cubins that NVRTC made for them are kept. `run` needs a machine with a
GPU, the bundle, the tree and Python; with the same NVRTC nothing is left to compile. It prints which tests
did not pass. With --out it writes how many tests of each program passed, and on which device. --racecheck
runs them under compute-sanitizer's racecheck, with kernels in which every thread that has read a slot
releases it itself, because the tool orders only the threads that arrive at a barrier. A hazard is then a
failure.

"""

import argparse
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]

sys.path.append(str(ROOT / "bench"))
from report import commit, today, write  # noqa: E402

# Sources that replace the built-in ones.
SLOTS = Path("heddle/backend/cuda/device/ring.cuh")
ONE_ARRIVES, ALL_ARRIVE = (f"constexpr bool kEveryReaderArrives = {value};" for value in ("false", "true"))
RACECHECK = ["compute-sanitizer", "--tool", "racecheck", "--error-exitcode", "3"]
NO_HAZARD = "RACECHECK SUMMARY: 0 hazards"

OF_THE_CPU = "*threads*:*reference*:Threads.*:OnEmulatedGpu.*"


class Tests:
    """Programs of GoogleTest, and how they are run."""

    def __init__(self, arguments, environment):
        self.folder = arguments.bundle.resolve() / "tests"
        self.seconds = arguments.seconds
        self.under = []
        self.filters = f"{arguments.filter}-{OF_THE_CPU}"
        self.environment = os.environ | environment
        self.environment["HEDDLE_GOLDENS"] = str(ROOT / "tests/goldens/models")
        self.environment["HEDDLE_TREE"] = str(ROOT)
        self.environment["HEDDLE_PROGRAM"] = str(arguments.bundle.resolve() / "heddle")
        self.environment["HEDDLE_CACHE"] = str(arguments.cubins.resolve())

    def check_races(self, sources):
        if not shutil.which(RACECHECK[0]):
            raise SystemExit(f"{RACECHECK[0]} is not on the PATH: it comes with CUDA's toolkit")
        text = (ROOT / SLOTS).read_text()
        if ONE_ARRIVES not in text:
            raise SystemExit(f"{SLOTS} does not say {ONE_ARRIVES!r}")
        (sources / SLOTS).parent.mkdir(parents=True)
        (sources / SLOTS).write_text(text.replace(ONE_ARRIVES, ALL_ARRIVE))
        self.environment["HEDDLE_SOURCES"] = str(sources)
        self.under = RACECHECK

    def call(self, program, *arguments, seconds=60, under=()):
        return subprocess.run(
            [*under, self.folder / program, *arguments],
            env=self.environment,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=seconds,
            cwd=ROOT,
        )

    def of(self, program):
        listing = self.call(program, "--gtest_list_tests", f"--gtest_filter={self.filters}")
        if listing.returncode != 0:
            raise SystemExit(f"{program} does not list its tests: {listing.stderr}")
        tests, suite = [], ""
        for line in listing.stdout.splitlines():
            name = line.split("#")[0].rstrip()
            if name.startswith("  "):
                tests.append((program, suite + name.strip()))
            elif name.endswith("."):
                suite = name
        return tests

    def run(self, test):
        """(program, name, how it ended, seconds, its output)"""
        program, name = test
        begin = time.monotonic()
        try:
            done = self.call(program, f"--gtest_filter={name}", seconds=self.seconds, under=self.under)
            said = done.stdout + done.stderr
            ended = "skipped" if "[  SKIPPED ]" in said else "passed"
            if done.returncode != 0 or ("[       OK ]" not in said and ended == "passed"):
                ended = "failed"
            if self.under and NO_HAZARD not in said:
                ended = "failed"
        except subprocess.TimeoutExpired as error:
            ended, said = "timed out", str(error.stdout)
        return program, name, ended, time.monotonic() - begin, said


def run_all(tests, jobs):
    programs = sorted(path.name for path in tests.folder.iterdir() if path.is_file())
    every = [test for program in programs for test in tests.of(program)]
    if not every:
        raise SystemExit(f"{tests.folder} has no tests that {tests.filters} lets pass")
    with ThreadPoolExecutor(jobs) as pool:
        return list(pool.map(tests.run, every))


def compile_ahead(arguments):
    build = ROOT / "build/release"
    subprocess.run(
        ["cmake", "--build", build, "--target", "still_cuda"], check=True, stdout=subprocess.DEVNULL
    )
    tests = Tests(arguments, {"LD_LIBRARY_PATH": str(build / "still_gpu")})
    late = [name for _, name, ended, _, _ in run_all(tests, arguments.jobs) if ended == "timed out"]
    print(tests.call("../heddle", "cache").stdout, end="")
    if late:
        raise SystemExit(f"not all is compiled: no end within {arguments.seconds} s of {', '.join(late)}")


def report(arguments, tests, results):
    said = tests.call("../heddle", "env").stdout
    device = re.search(r"^gpu +cuda:\d+: (.*?) \(", said, re.MULTILINE)
    rows = []
    for program in sorted({r[0] for r in results}):
        ended = Counter(r[2] for r in results if r[0] == program)
        rows.append({"work": program, **ended, "value": ended["passed"], "unit": "tests passed"})
    result = {
        "device": device.group(1) if device else said,
        "date": today(),
        "commit": arguments.commit or commit(),
        "command": shlex.join(["python3", "scripts/gpu_tests.py", *sys.argv[1:]]),
        "rows": rows,
    }
    print("written to", write(result, arguments.out, "tests"))


def run_carried(arguments):
    tests = Tests(arguments, {})
    with tempfile.TemporaryDirectory() as sources:
        if arguments.racecheck:
            tests.check_races(Path(sources))
        results = run_all(tests, arguments.jobs)
    for program, name, ended, seconds, said in results:
        if arguments.logs:
            arguments.logs.mkdir(parents=True, exist_ok=True)
            (arguments.logs / f"{program}.{name.replace('/', '.')}.txt").write_text(said)
        if ended != "passed":
            print(f"{ended}: {program} {name}, {seconds:.1f} s")
    print(dict(Counter(r[2] for r in results)))
    if arguments.out:
        report(arguments, tests, results)
    if any(r[2] in ("failed", "timed out") for r in results):
        raise SystemExit(1)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(required=True)
    common = argparse.ArgumentParser(add_help=False)
    common.add_argument("bundle", type=Path, nargs="?", default=ROOT / "dist/heddle-bundle")
    common.add_argument("--filter", default="*", help="of GoogleTest; tests of the CPU alone are left out")
    common.add_argument("--jobs", type=int, default=os.cpu_count())
    common.add_argument("--seconds", type=float, default=600, help="for one test")
    common.add_argument(
        "--cubins", type=Path, default=ROOT / "dist/cubins", help="where compiled programs are kept"
    )
    commands.add_parser("compile", parents=[common]).set_defaults(action=compile_ahead)
    run = commands.add_parser("run", parents=[common])
    run.add_argument("--out", type=Path, help="a file for the counts")
    run.add_argument("--logs", type=Path, help="a folder for what tests said")
    run.add_argument("--commit", help="where git does not say it")
    run.add_argument("--racecheck", action="store_true", help="under compute-sanitizer")
    run.set_defaults(action=run_carried)
    arguments = parser.parse_args()
    arguments.action(arguments)


if __name__ == "__main__":
    main()
