"""compute-sanitizer over the cases of ops, or over a command: what it found, in words."""

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import threading
from dataclasses import dataclass, field

from heddle.commands.command_line import Said
from heddle.profile.tools import find

CHECKS = ("memcheck", "racecheck", "initcheck")
FOUND = 3  # exit code of a run that found something
MARK = "========="
GRACE = 20  # seconds for the last case and the summary
SUMMARY = re.compile(r"(?:ERROR SUMMARY: (\d+) error|RACECHECK SUMMARY: (\d+) hazard)")
OF_THE_TOOL = re.compile(r"Internal Sanitizer Error|Error: (?!Race)|Tip: |Target application")


@dataclass
class Report:
    """`kinds`: {"count", "at"} by message, where `at` is the place of the first one."""

    kinds: dict = field(default_factory=dict)
    problems: list = field(default_factory=list)  # the tool's own, or the program's
    total: int | None = None  # errors in the summary; None where the tool did not come to it


def parse(lines):
    """Reads what compute-sanitizer printed. Its lines begin with "=========": one with an indent of one is an
    error, further ones with more indent explain it ("at kernel+0x90 in file:line"), the last is a summary."""
    report, last = Report(), None
    for line in lines:
        if not line.startswith(MARK):
            continue
        words = line.removeprefix(MARK)
        said = words.strip()
        if summary := SUMMARY.match(said):
            report.total = int(summary[1] or summary[2])
        elif OF_THE_TOOL.match(said):
            report.problems.append(said)
        elif re.match(r" \S", words) and not said.startswith("COMPUTE-SANITIZER"):
            kind = re.sub(r"0x[0-9a-f]+", "0x...", said)
            last = report.kinds.setdefault(kind, {"count": 0, "at": ""})
            last["count"] += 1
        elif last and not last["at"] and said.startswith("at "):
            last["at"] = said.removeprefix("at ")
    return report


def by_op(text):
    """({"op", "cases", ...}, lines) of each op: what the tool said before the line that ended it. The last
    pair is ({}, lines after all ops). `text`: lines, which may still be written."""
    lines = []
    for line in text:
        line = line.rstrip("\n")
        if line.startswith('{"op"'):
            yield json.loads(line), lines
            lines = []
        else:
            lines.append(line)
    yield {}, lines


def of_an_op(check, ran, report):
    """Lines about one op."""
    bodies = ", ".join(f"{body} {count}" for body, count in ran["bodies"].items())
    found = sum(each["count"] for each in report.kinds.values())
    verdict = f"{found} FOUND" if found else "clean"
    record = {"check": check, **ran, "found": found, "kinds": report.kinds}
    yield Said(f"{check:9} {ran['op']:28} {verdict:9} {ran['cases']:3} cases: {bodies}", record)
    for kind, each in report.kinds.items():
        yield f"    {each['count']} x {kind}" + (f" at {each['at']}" if each["at"] else "")
    for why, count in ran["refused"].items():
        yield f"    {count} x refused: {why}"


def command_of(tool, check, ops, device, most, seconds):
    program = [sys.executable, "-m", "heddle.profile.calls", *ops, "--device", device, "--most", str(most)]
    program += ["--seconds", str(seconds)]
    return [tool, "--tool", check, "--error-exitcode", str(FOUND), "--print-limit", "1000", *program]


class Process:
    """A command whose lines are read while it runs. It ends, with all of its own, after `limit` seconds."""

    def __init__(self, command, limit):
        self.child = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True
        )
        self.lines = self.child.stdout
        self.late = False
        self.timer = threading.Timer(limit, self.end)
        self.timer.start()

    def end(self):
        self.late = True
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.child.pid, signal.SIGKILL)

    def code(self):
        found = self.child.wait()
        self.timer.cancel()
        return found


def run_command(command, check, start=Process):
    """Runs a command under a check. Yields what it prints, what was found, and last whether all is clean."""
    tool = [find("compute-sanitizer"), "--tool", check, "--error-exitcode", str(FOUND), *command]
    process, said = start(tool, 1e6), []
    for line in process.lines:
        line = line.rstrip("\n")
        said.append(line)
        if not line.startswith(MARK):
            yield line
    report, code = parse(said), process.code()
    found = sum(each["count"] for each in report.kinds.values())
    is_clean = code == 0 and report.total == 0 and not report.kinds
    verdict = f"{found or report.total} FOUND" if found or report.total else "clean" if is_clean else "FAILED"
    record = {"check": check, "clean": is_clean, "found": found or report.total, "kinds": report.kinds}
    yield Said(f"{check:9} {verdict}", record)
    for kind, each in report.kinds.items():
        yield f"    {each['count']} x {kind}" + (f" at {each['at']}" if each["at"] else "")
    yield from (f"    {problem}" for problem in report.problems)
    if report.total is None:
        yield f"    no summary, and exit code {code}; the last lines were:"
        yield from (f"    {line}" for line in said[-8:])
    yield is_clean


def run(ops, check, most=8, seconds=0.0, device="cuda", start=Process, names=None):
    """Runs the cases of all ops in one process under a check. Yields lines, and last whether all is clean.
    `names`: the registry's of ops that are named by a file."""
    process = start(
        command_of(find("compute-sanitizer"), check, ops, device, most, seconds),
        seconds + GRACE if seconds else 1e6,
    )
    clean, seen = True, []
    for ran, lines in by_op(process.lines):
        report = parse(lines)
        if ran:
            seen.append(ran["op"])
            yield from of_an_op(check, ran, report)
        else:
            yield from (f"    after all ops: {each['count']} x {kind}" for kind, each in report.kinds.items())
            if report.total is None:
                why = "it was ended, as it was late" if process.late else "no summary"
                yield f"{check}: {why}; the last lines were:"
                yield from (f"    {line}" for line in lines[-8:])
            clean = clean and report.total == 0
        yield from (f"    {problem}" for problem in report.problems)
        clean = clean and not report.kinds and not report.problems
    if missing := [op for op in names or ops if op not in seen]:
        yield f"{check}: not run: {', '.join(missing)}"
    yield process.code() == 0 and clean and not missing
