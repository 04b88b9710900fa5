#!/usr/bin/env python3
"""Checks how long files and functions are, how many parameters they take, and how wide headers are.

What is over a limit with good reason is a line in tools/size_exemptions.txt:

    path[:function]  limit  reason

An exemption that is no longer needed fails too, so that the list shrinks.
"""

import collections
import pathlib

import measure

FILE, HEADER = 600, 300  # lines
FUNCTION, TILE_BODY = 80, 150  # lines, from brace to brace
PARAMETERS = 7
WIDE_HEADER = 10_000  # lines x files that include it
LONG, LONG_SHARE = 60, 0.04  # at most 4 % of functions are longer than 60 lines


def exemptions(root):
    path = pathlib.Path(root, "tools/size_exemptions.txt")
    found = {}
    for line in path.read_text().splitlines() if path.exists() else []:
        if line.strip() and not line.startswith("#"):
            target, limit, reason = line.split(None, 2)
            found[target] = int(limit)
            assert reason, line
    return found


def measured(root):
    """(what, where, size, limit) for everything that has a limit; messages print `what`."""
    texts = {p: measure.read(root, p) for p in measure.files(root, (*measure.CPP, ".py"))}
    texts |= {p: measure.read(root, p) for p in measure.files(root, (".cmake", ".txt"), ("cmake",))}
    for path, text in texts.items():
        yield "lines", path, measure.line_count(text), HEADER if path.endswith(".h") else FILE
    for f in measure.functions(root):
        yield "lines", f"{f.path}:{f.name}", f.lines, TILE_BODY if f.path.endswith(".cuh") else FUNCTION
        if f.path.endswith(measure.CPP):
            yield "parameters", f"{f.path}:{f.name}", f.parameters, PARAMETERS
    fan_in = collections.Counter(t for targets in measure.include_edges(root).values() for t in targets)
    for path, n in fan_in.items():
        yield "lines x includers", path, n * measure.line_count(texts[path]), WIDE_HEADER


def violations(root):
    exempt, needed, wrong = exemptions(root), set(), []
    for what, where, size, limit in measured(root):
        if size > limit:
            needed.add(where)
            if size > exempt.get(where, limit):
                wrong.append(f"{where}: {size} {what}; the limit is {exempt.get(where, limit)}")
    wrong += [
        f"tools/size_exemptions.txt: {w}: no longer needed, remove it" for w in exempt if w not in needed
    ]
    lengths = sorted(f.lines for f in measure.functions(root)) or [0]
    share = sum(n > LONG for n in lengths) / len(lengths)
    if share > LONG_SHARE:
        wrong.append(f"{share:.1%} of functions are longer than {LONG} lines; the limit is {LONG_SHARE:.0%}")
    median, p90 = lengths[len(lengths) // 2], lengths[len(lengths) * 9 // 10]
    summary = (
        f"{len(lengths)} functions, median {median}, p90 {p90}, "
        f"over {LONG} lines {share:.1%}, longest {lengths[-1]}, {len(exempt)} exemptions"
    )
    return wrong, summary


if __name__ == "__main__":
    measure.run("sizes", violations)
