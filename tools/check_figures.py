#!/usr/bin/env python3
"""Checks that figures of the pages are those of bench/results.

A figure is a link to the file that has it: `[0.72](bench/results/DEVICE/FILE.json "WORK | FIELD")`. WORK
is the work or case of a row. FIELD is a key of the row (default: value), or peer with the beginning of
its name, maybe with a factor: `value / 1000`, `512000 / value`. The page shows the file's number,
rounded. Where a page or section is about measurements (STRICT), every number with a unit is a link."""

import json
import pathlib
import re

import measure

LINK = re.compile(r'\[([^\]]+)\]\((\S+?\.json) "([^"]+)"\)')
FIELD = re.compile(r"(?:([\d.]+) / )?([a-z_]+|peer [A-Za-z]+)(?: ([*/]) ([\d.]+))?")
NUMBER = re.compile(r"\d[\d,]*(?:\.\d+)?")
# Pages of measurements, or their section.
STRICT = {"README.md": "## Measured", "docs/measured.md": "# Measured"}
UNLINKED = re.compile(
    r"(?<![\w.,-])\d(?:[\d,.]*\d)?\s?(?:ms|us|GB/s|tokens/s|TFLOP/s|GB)\b|\|\s*\d[\d,.]*\s*(?=\|)"
)


def number_of(row, field):
    """The number that FIELD is of a row; None where the row has none."""
    inverse, name, sign, factor = FIELD.fullmatch(field).groups()
    found = row.get(name)
    if name.startswith("peer"):
        peers = row.get("peers", {})
        found = next((peers[peer] for peer in peers if peer.startswith(name[len("peer ") :])), None)
    if isinstance(found, dict):  # a suite's peers have their times and more
        found = found.get("us")
    if found is None:
        return None
    if sign:
        found = found * float(factor) if sign == "*" else found / float(factor)
    return float(inverse) / found if inverse else found


def fault_of(page, shown, path, key):
    """The fault of a figure; "" where there is none."""
    file = (page.parent / path).resolve()
    if not file.is_file():
        return f"there is no {path}"
    work, _, field = (part.strip() for part in key.partition("|"))
    rows = [
        row
        for row in json.loads(file.read_text()).get("rows", [])
        if work in (row.get("work"), row.get("case"))
    ]
    if len(rows) != 1:
        return f"{path} has {len(rows)} rows '{work}'"
    if not FIELD.fullmatch(field or "value"):
        return f"'{field}' is no field with a factor"
    number, text = number_of(rows[0], field or "value"), NUMBER.search(shown)
    if number is None or not text:
        return f"'{shown}' cannot be compared with {field or 'value'} of '{work}'"
    text = text.group().replace(",", "")
    digits = len(text.partition(".")[2])
    return "" if abs(float(text) - number) <= 0.5001 * 10**-digits else f"the file says {number:.6g}"


def strict_part(text, heading):
    """The section below `heading`, with spaces for links, code and heads of tables; "" without it."""
    found = heading and re.search(
        rf"^{re.escape(heading)}$(.*?)(?=^{heading.split()[0]} |\Z)", text, re.M | re.S
    )
    if not found:
        return ""
    part = re.sub(r"\[[^\]]*\]\([^)]*\)|`[^`]*`", " ", found.group(1))
    return re.sub(r"^\|.*\|\n(?=\|[-: |]+\|$)", "\n", part, flags=re.M)


def violations(root):
    wrong, figures = [], 0
    pages = [*pathlib.Path(root).glob("*.md"), *pathlib.Path(root, "docs").rglob("*.md")]
    for page in sorted(pages):
        text, name = page.read_text(), str(page.relative_to(root))
        for match in LINK.finditer(text):
            figures += 1
            if fault := fault_of(page, *match.groups()):
                line = text.count("\n", 0, match.start()) + 1
                wrong.append(f"{name}:{line}: {match.group(1)}: {fault}")
        part = strict_part(text, STRICT.get(name))
        wrong += [f"{name}: '{found.strip(' |')}' is no link to a result" for found in UNLINKED.findall(part)]
    return wrong, f"{figures} figures"


if __name__ == "__main__":
    measure.run("figures", violations)
