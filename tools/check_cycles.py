#!/usr/bin/env python3
"""Checks that no folders, and no files (a header with its source is one), include each other in a ring."""

import os

import measure


def units(edges):
    """The includes of headers with their sources: heddle/ir/op.h and heddle/ir/op.cpp are heddle/ir/op."""
    found = {}
    for path, targets in edges.items():
        unit = os.path.splitext(path)[0]
        found.setdefault(unit, set()).update({os.path.splitext(t)[0] for t in targets} - {unit})
    return found


def violations(root):
    edges = measure.include_edges(root)
    folders = {os.path.dirname(path): set() for path in edges}
    for path, targets in edges.items():
        folders[os.path.dirname(path)] |= {os.path.dirname(t) for t in targets} - {os.path.dirname(path)}
    rings = measure.strongly_connected(folders) + measure.strongly_connected(edges)
    pairs = measure.strongly_connected(units(edges))
    rings += [ring for ring in pairs if ring not in rings]
    return ["in a ring: " + ", ".join(ring) for ring in rings], f"{len(folders)} folders"


if __name__ == "__main__":
    measure.run("cycles", violations)
