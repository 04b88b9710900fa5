#!/usr/bin/env python3
"""Checks that no folders, and no files, include each other in a ring."""

import os

import measure


def violations(root):
    edges = measure.include_edges(root)
    folders = {os.path.dirname(path): set() for path in edges}
    for path, targets in edges.items():
        folders[os.path.dirname(path)] |= {os.path.dirname(t) for t in targets} - {os.path.dirname(path)}
    rings = measure.strongly_connected(folders) + measure.strongly_connected(edges)
    return ["in a ring: " + ", ".join(ring) for ring in rings], f"{len(folders)} folders"


if __name__ == "__main__":
    measure.run("cycles", violations)
